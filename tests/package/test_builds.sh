#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# test_builds.sh SOURCE BUILD - builds the library as others build it: as a part of another project, without hiredis and
# with the flags of a distribution; and by clang, optimized across files at linking. The static library has no global name
# but its own, so that a program may have a tls_free() or a list_init().
set -euo pipefail

source_dir=$1
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# As Fedora builds its packages, but for -O2, which takes twice as long and is how the tests themselves are built.
flags='-O1 -flto=auto -ffat-lto-objects -fexceptions -g -Wall -Werror=format-security -Wp,-U_FORTIFY_SOURCE
    -Wp,-D_FORTIFY_SOURCE=2 -fstack-protector-strong -fasynchronous-unwind-tables -fstack-clash-protection'

# own_names_only ARCHIVE
own_names_only() {
    local foreign
    foreign=$(nm -g --defined-only "$1" | awk 'NF == 3 && $3 !~ /^quorlock_/ { print $3 }')
    [ -z "$foreign" ] || fail "$1 has global names of others: $(head -n 5 <<<"$foreign" | tr '\n' ' ')"
}

# built NAME COMMAND...
built() {
    "${@:2}" >"$work/$1.log" 2>&1 || {
        tail -n 40 "$work/$1.log" >&2
        fail "$1: $2"
    }
    if grep -i 'warning' "$work/$1.log"; then fail "$1: a warning"; fi
}

as_a_part_of_another_project() {
    local project=$work/project
    mkdir "$project"
    cat >"$project/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.18)
project(parent LANGUAGES C)
set(QUORLOCK_WERROR ON)
add_subdirectory($source_dir quorlock EXCLUDE_FROM_ALL)
if(CMAKE_BUILD_TYPE)
  message(FATAL_ERROR "the build type is \${CMAKE_BUILD_TYPE} now")
endif()
foreach(kind quorlock quorlock_static)
  add_executable(program_\${kind} program.c)
  target_link_libraries(program_\${kind} PRIVATE quorlock::\${kind})
endforeach()
CMAKE
    # Its names are those of functions in this library.
    cat >"$project/program.c" <<'C'
#include <assert.h>
#include <quorlock/sync.h>
#include <stdio.h>
#include <stdlib.h>

void tls_free(void *);
void link_drop(void);

void tls_free(void *nothing) { (void)nothing; abort(); }
void link_drop(void) { abort(); }

int main(int argc, char **argv)
{
    struct quorlock_client_options options = {.size = sizeof(options), .nodes = (const char *const *)argv + 1,
        .n_nodes = (size_t)(argc - 1), .guard = QUORLOCK_GUARD_OFF};
    struct quorlock_lock_options lease = {.size = sizeof(lease), .wait_ms = 30000};
    quorlock_sync_client *client = NULL;
    quorlock_sync_lock *lock = NULL;
    struct quorlock_error error;
    int alive = 0;

    assert(++alive == 1); /* not compiled away by another project's build type */
    if (alive != 1 || quorlock_sync_client_new(&client, &options, &error) != 0) return 1;
    if (quorlock_sync_lock_new(&lock, client, &(const char *){"report"}, 1, &lease, &error) != 0) return 2;
    if (quorlock_sync_lock_acquire(lock, NULL) != 0 || quorlock_sync_lock_release(lock, NULL) != 0) return 3;
    quorlock_sync_lock_free(lock);
    return quorlock_sync_client_close(client);
}
C
    printf '#!/bin/sh\ncase "$*" in *hiredis*) exit 1 ;; esac\nexec pkg-config "$@"\n' >"$work/pkg-config"
    chmod +x "$work/pkg-config"
    built project env PKG_CONFIG="$work/pkg-config" cmake -G Ninja -S "$project" -B "$project/build" -DCMAKE_C_FLAGS="$(tr -d '\n' <<<"$flags")"
    built project cmake --build "$project/build"
    own_names_only "$project/build/quorlock/lib/libquorlock.a"
    [ ! -e "$project/build/bin" ] || fail "it writes into the bin folder of the project"
    if find "$project/build" -name 'quorlock' -type f -o -name '*chaos*' -type f | grep .; then fail "the command or the harness was built"; fi
    if readelf -d "$project/build/quorlock/lib/libquorlock.so" | grep hiredis; then fail "libquorlock.so needs a hiredis"; fi
    for program in "$project"/build/program_*; do
        timeout 60 "$program" "${nodes[@]}" || fail "$program ended with $?"
    done
    passed "a part of another project, without hiredis and with the flags of a distribution"
}

by_clang() {
    command -v clang >/dev/null || return 0
    # With a build type its -O2 would replace -O1.
    built clang env CC=clang cmake -G Ninja -S "$source_dir" -B "$work/clang" -DCMAKE_BUILD_TYPE=None \
        -DCMAKE_C_FLAGS='-O1 -flto -DNDEBUG' \
        -DQUORLOCK_WERROR=ON -DQUORLOCK_COMMAND=ON -DQUORLOCK_HARNESS=OFF -DQUORLOCK_TESTS=OFF -DCMAKE_UNITY_BUILD=ON
    built clang cmake --build "$work/clang" --target quorlock quorlock_static quorlock_command
    own_names_only "$work/clang/lib/libquorlock.a"
    passed "by clang, optimized across files at linking"
}

elsewhere_it_says_why_not() {
    local said
    if said=$(cmake -S "$source_dir" -B "$work/other" -DCMAKE_SYSTEM_NAME=FreeBSD 2>&1); then fail "it configures for FreeBSD"; fi
    grep -q 'quorlock builds on Linux only, not on FreeBSD' <<<"$said" || fail "for FreeBSD it says: $said"
    passed "for another system it is refused"
}

start_server
as_a_part_of_another_project
by_clang
elsewhere_it_says_why_not
printf '%d checks passed\n' "$checks"
