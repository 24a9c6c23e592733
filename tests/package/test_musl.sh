#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# test_musl.sh SOURCE BUILD - builds the library and the command with musl-gcc, and uses them. Debian has no libraries for
# musl: hiredis, libevent and jansson are built here from their source packages, which are kept for the next time.
set -euo pipefail

source_dir=$1
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=../../scripts/lib/roots.sh
. "$source_dir/scripts/lib/roots.sh"
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")
kept=$ROOTS_CACHE/sources-$release
root=$work/root

cannot() {
    printf 'SKIPPED test_musl: %s\n' "$*"
    exit 77
}

# ours APT-GET-ARGUMENTS...: with an entry for sources, and without a change to this system.
ours() {
    timeout 240 apt-get -q -y -o Dir::Etc::sourcelist="$work/apt/sources" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::State::lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" -o Acquire::Retries=3 \
        -o APT::Update::Error-Mode=any -o APT::Sandbox::User=root "$@" >"$work/apt/log" 2>&1
}

# fetch MIRROR: into $kept, whole or not at all.
fetch() {
    local folder
    folder=$(mktemp -d "$kept/new.XXXXXX")
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $1 $release main" >"$work/apt/sources"
    (cd "$folder" && ours update && ours source --download-only hiredis libevent jansson && mv -f ./*.orig.tar.* "$kept") || :
    rm -rf -- "$folder"
}

# sources: a tar file of each in $kept.
sources() {
    local mirror
    mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial" "$kept" || cannot "there is no place for $kept"
    for mirror in '' $(roots_mirrors); do
        if [ -n "$mirror" ]; then fetch "$mirror"; fi
        if compgen -G "$kept/hiredis_*" && compgen -G "$kept/libevent_*" && compgen -G "$kept/jansson_*"; then return; fi
    done >/dev/null
    cannot "the sources of hiredis, libevent and jansson cannot be fetched: $(grep -m 1 '^E: ' "$work/apt/log" || echo 'apt-get timed out')"
}

# unpacked NAME: in $work/NAME.
unpacked() {
    mkdir "$work/$1"
    tar -C "$work/$1" --strip-components=1 -xf "$(compgen -G "$kept/$1_*" | sort -V | tail -n 1)"
}

# archive NAME FOLDER SOURCES FLAGS...: lib$NAME.a, of the sources whose names match.
archive() {
    local files
    mapfile -t files < <(printf '%s\n' "$2"/*.c | grep -E "/($3)[.]c$")
    mkdir "$work/objects-$1"
    (cd "$work/objects-$1" && musl-gcc -w -O0 -fPIC -D_GNU_SOURCE -I"$root/include" "${@:4}" -c "${files[@]}") ||
        fail "$1 by musl-gcc"
    ar rcs "$root/lib/lib$1.a" "$work/objects-$1"/*.o
}

# described PACKAGE: as on this system, whose version it is.
described() {
    printf 'Name: %s\nDescription: for musl\nVersion: %s\nCflags: -I%s\nLibs: -L%s -l%s\n' "$1" \
        "$(pkg-config --modversion "$1")" "$root/include" "$root/lib" "${1#lib}" >"$root/lib/pkgconfig/$1.pc"
}

libraries() {
    local file name core
    mkdir -p "$root/include/hiredis" "$root/include/event2" "$root/lib/pkgconfig"
    for file in linux asm-generic; do ln -s "/usr/include/$file" "$root/include"; done
    ln -s "/usr/include/$(gcc -print-multiarch)/asm" "$root/include"
    for name in hiredis libevent jansson; do unpacked "$name"; done

    cp -r "$work"/hiredis/{*.h,adapters} "$root/include/hiredis"
    archive hiredis "$work/hiredis" 'alloc|async|hiredis|net|read|sds|sockcompat'

    # What glibc has is configured already; what musl lacks of that goes.
    cp "$work"/libevent/include/event2/*.h "$root/include/event2"
    sed -E '/define EVENT__HAVE_(ARC4RANDOM|ARC4RANDOM_BUF|STRLCPY|SYS_QUEUE_H|SYS_SYSCTL_H|TAILQFOREACH) /d' \
        "$(find /usr/include -name event-config.h | head -n 1)" >"$root/include/event2/event-config.h"
    : >"$root/include/evconfig-private.h"
    core='buffer|bufferevent|bufferevent_(filter|pair|ratelim|sock)|event|evmap|evthread|evutil|evutil_(rand|time)'
    archive event_core "$work/libevent" "$core|listener|log|signal|strlcpy|select|poll|epoll" \
        -I"$work/libevent" -I"$work/libevent/include" -I"$work/libevent/compat"

    cp "$work/jansson/src/jansson.h" "$(find /usr/include -name jansson_config.h | head -n 1)" "$root/include"
    : >"$root/include/jansson_private_config.h"
    archive jansson "$work/jansson/src" '.*' -DHAVE_STDINT_H -DINITIAL_HASHTABLE_ORDER=3 -DUSE_URANDOM
    for name in hiredis libevent_core jansson; do described "$name"; done
}

build_it() {
    {
        PKG_CONFIG_LIBDIR=$root/lib/pkgconfig CC=musl-gcc cmake -G Ninja -S "$source_dir" -B "$work/build" \
            -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS=-O0 -DQUORLOCK_WERROR=ON -DQUORLOCK_HARNESS=OFF &&
            cmake --build "$work/build" --target quorlock_command quorlock quorlock_static
    } >"$work/log" 2>&1 || {
        tail -n 40 "$work/log" >&2
        fail "the build"
    }
    command=$work/build/bin/quorlock
    readelf -l "$command" | grep -q 'interpreter: /lib/ld-musl' || fail "the command is not for musl"
    passed "library and command build without a warning"
}

# expect STATUS COMMAND...
expect() {
    local status=0
    timeout 60 "${@:2}" >"$work/said" 2>&1 || status=$?
    [ "$status" = "$1" ] || fail "$status, not $1, from ${*:2}: $(cat "$work/said")"
}

run_a_command() {
    export QUORLOCK_CONFIG=/dev/null QUORLOCK_NODES
    QUORLOCK_NODES=$(IFS=, && echo "${nodes[*]}")
    # shellcheck disable=SC2016
    expect 7 "$command" run -n report -- \
        sh -c '"$0" inspect -q report && { "$0" run -n -E 9 report -- true; [ $? = 9 ]; } && exit 7' "$command"
    grep -q 'report" is held by' "$work/said" || fail "of a lock that is held it says: $(cat "$work/said")"
    expect 1 "$command" inspect -q report
    expect 64 "$command" run --lease -- true
    grep -q -- '--lease needs a value' "$work/said" || fail "of a missing value it says: $(cat "$work/said")"
    expect 71 bash -c 'ulimit -n 3; exec "$0" run -n report -- true' "$command"
    passed "the command takes, shows, refuses and releases a lock"
}

run_a_program() {
    cat >"$work/program.c" <<'C'
#include <quorlock/sync.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    struct quorlock_client_options options = {.size = sizeof(options), .nodes = (const char *const *)argv + 1,
        .n_nodes = (size_t)(argc - 1)};
    struct quorlock_lock_options lease = {.size = sizeof(lease), .fencing = 1};
    quorlock_sync_client *client = NULL;
    quorlock_sync_lock *lock = NULL;
    struct quorlock_sync_result result = {.size = sizeof(result)};
    struct quorlock_error error;

    if (quorlock_sync_client_new(&client, &options, &error) != 0) return 1;
    if (quorlock_sync_lock_new(&lock, client, &(const char *){"report"}, 1, &lease, &error) != 0) return 2;
    if (quorlock_sync_lock_acquire(lock, &result) != 0 || result.fence == 0) return 3;
    if (quorlock_sync_lock_release(lock, NULL) != 0) return 4;
    quorlock_sync_lock_free(lock);
    return quorlock_sync_client_close(client);
}
C
    musl-gcc -O0 -I"$source_dir/include" "$work/program.c" -o "$work/shared" -L"$work/build/lib" -lquorlock \
        -Wl,-rpath,"$work/build/lib"
    musl-gcc -O0 -static -I"$source_dir/include" "$work/program.c" "$work/build/lib/libquorlock.a" -o "$work/static" \
        -L"$root/lib" -levent_core
    expect 0 "$work/shared" "${nodes[@]}"
    expect 0 "$work/static" "${nodes[@]}"
    expect 1 "$command" inspect -q report
    passed "a program takes and releases it, with the shared library and the static one"
}

command -v musl-gcc >/dev/null || cannot "musl-gcc is not installed; run scripts/setup"
sources
libraries
build_it
start_nodes "$command"
run_a_command
run_a_program
printf '%d checks passed\n' "$checks"
