#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# test_install.sh SOURCE BUILD - installs into a fresh prefix: what is there, which version it says it is, what it
# exports, and that programs can be built with nothing else (consumers.sh).
set -euo pipefail

source_dir=$1
build_dir=$2
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
prefix=$work/prefix

install_it() {
    cmake --install "$build_dir" --prefix "$prefix" >"$work/install.log" 2>&1 || {
        cat "$work/install.log" >&2
        fail "cmake --install"
    }
    libdir=$(dirname "$(find "$prefix" -name libquorlock.so | head -n 1)")
    [ -e "$libdir/libquorlock.so" ] || fail "no shared library"
    for file in include/quorlock/{quorlock.{h,hpp},common.hpp,async.hpp} bin/quorlock share/man/man1/quorlock.1 share/man/man5/quorlock.conf.5 \
        share/bash-completion/completions/quorlock share/zsh/site-functions/_quorlock \
        share/fish/vendor_completions.d/quorlock.fish lib/quorlock/tls.so \
        lib/systemd/{system,user}/quorlock{@.service,-job@.service,-job@.timer}; do
        [ -s "$prefix/$file" ] || fail "$file is not installed"
    done
    for file in libquorlock.a pkgconfig/quorlock.pc cmake/quorlock/quorlock-config.cmake \
        cmake/quorlock/quorlock-config-version.cmake; do
        [ -s "$libdir/$file" ] || fail "$file is not installed"
    done
    compgen -G "$libdir/libquorlock.so.*.*.*" >/dev/null || fail "no versioned shared library"
    for manager in system user; do
        for unit in quorlock@ quorlock-job@; do
            grep -qF "ExecStart=$prefix/bin/quorlock run " "$prefix/lib/systemd/$manager/$unit.service" || fail "$unit.service has another command"
        done
        for unit in quorlock@.service quorlock-job@.timer; do
            grep -q '^WantedBy=.*\.target$' "$prefix/lib/systemd/$manager/$unit" || fail "$unit is wanted by nothing"
        done
    done
    # Nobody may need the folders it was made in.
    if grep -rlF -e "$build_dir" -e "$source_dir/" "$libdir/pkgconfig" "$libdir/cmake" "$prefix/include" "$prefix/lib/systemd"; then
        fail "an installed file names the build or source folder"
    fi
    version=$("$prefix/bin/quorlock" --version) || fail "the installed command does not run"
    said=$("$prefix/bin/quorlock" --nodes rediss://127.0.0.1:1 inspect key 2>&1) && fail "a lock on a closed port: $said"
    case $said in *'TLS needs'*) fail "the installed command does not find its module: $said" ;; esac
    header=$(sed -n 's/^#define QUORLOCK_VERSION  *"\(.*\)"/\1/p' "$prefix/include/quorlock/quorlock.h")
    case $version in *"$header"*) ;; *) fail "version '$version' is not the header's '$header'" ;; esac
    passed "installed, version $header"
}

# What may stand in for what: before 1.0 the minor version counts too.
check_version() {
    local major=${header%%.*} minor=${header#*.} soname
    minor=${minor%%.*}
    interface=$major
    foreign=("$((major + 1)).0")
    if [ "$major" = 0 ]; then
        interface=0.$minor
        foreign+=("0.$((minor + 1))")
        if [ "$minor" -gt 0 ]; then foreign+=("0.$((minor - 1))"); fi
    fi
    soname=$(objdump -p "$libdir/libquorlock.so" | awk '$1 == "SONAME" { print $2 }')
    [ "$soname" = "libquorlock.so.$interface" ] || fail "soname $soname does not go with version $header"
    [ -e "$libdir/$soname" ] || fail "$soname is not installed"
    find_package "$header" || fail "find_package(quorlock $header) does not find it: $(tail -n 20 "$work/find.log")"
    find_package "$interface" || fail "find_package(quorlock $interface) does not find $header"
    for version in "${foreign[@]}"; do
        if find_package "$version"; then fail "find_package(quorlock $version) finds $header"; fi
        grep -q "version: $header" "$work/find.log" || fail "find_package: $(tail -n 20 "$work/find.log")"
    done
    passed "soname $soname; find_package takes $interface and $header, not ${foreign[*]}"
}

find_package() {
    rm -rf -- "$work/find"
    mkdir "$work/find"
    printf '%s\n' 'cmake_minimum_required(VERSION 3.18)' 'project(find LANGUAGES C)' \
        "find_package(quorlock $1 REQUIRED)" >"$work/find/CMakeLists.txt"
    cmake -G Ninja -S "$work/find" -B "$work/find/build" -DCMAKE_PREFIX_PATH="$prefix" >"$work/find.log" 2>&1
}

check_symbols() {
    local exported versions
    # name@@QUORLOCK_0.3; the version itself is an absolute symbol.
    exported=$(nm -D --defined-only "$libdir/libquorlock.so" | awk '$2 != "A" { print $NF }')
    versions=$(cut -d@ -f3 <<<"$exported" | sort -u)
    [ "$versions" = "QUORLOCK_$interface" ] || fail "symbols of version $versions, not QUORLOCK_$interface"
    declared=$(grep -hv "^#" "$prefix"/include/quorlock/*.h | tr '\n' ' ' | grep -o 'QUORLOCK_API [^(]*(' |
        sed 's/ *($//; s/.*[ *]//' | sort -u)
    [ "$(wc -l <<<"$declared")" -ge 15 ] || fail "found few declarations: $declared"
    diff <(echo "$declared") <(cut -d@ -f1 <<<"$exported" | sort -u) ||
        fail "declared in the headers (<) and exported (>) differ"
    diff <(echo "$declared") <(sed -n 's/^ \(quorlock_[a-z_]*\)@.*/\1/p' "$source_dir/scripts/debian/libquorlock0.symbols") ||
        fail "scripts/debian/libquorlock0.symbols has others (>): a new function gets a line ' NAME@QUORLOCK_$interface VERSION', the version being the one that first has it, in the order of the alphabet"
    passed "symbols: $(wc -l <<<"$declared") in version QUORLOCK_$interface, exactly those of the headers"
}

# Each function has a page by its own name, in the order that man looks for it.
check_pages() {
    local name
    for name in $declared; do
        man -M "$prefix/share/man" -w 3 "$name" >/dev/null 2>&1 || fail "no manual page $name(3)"
    done
    passed "each function has its manual page"
}

# Its programs are one command, and what that says holds without the source.
check_harness() {
    local verb said
    said=$(cd / && "$prefix/bin/quorlock-chaos" --seconds 5 --seed 7 --plan) || fail 'quorlock-chaos does not find its programs'
    [ -n "$said" ] || fail 'quorlock-chaos has no plan'
    for verb in '' check compare down hurt status up with; do
        # shellcheck disable=SC2086
        said=$(cd / && "$prefix/bin/quorlock-chaos" $verb --help) || fail "quorlock-chaos $verb --help"
        grep -q "^usage: quorlock-chaos $verb" <<<"$said" || fail "quorlock-chaos $verb --help is of another: $said"
        if grep -E 'cluster/|build/|scripts/|tests/' <<<"$said"; then fail "quorlock-chaos $verb --help names the source"; fi
    done
    said=$(MANWIDTH=200 man -M "$prefix/share/man" 7 quorlock-chaos 2>/dev/null) || fail 'no page quorlock-chaos(7)'
    grep -qF "$prefix/share/doc/quorlock-chaos/examples" <<<"$said" || fail 'quorlock-chaos(7) does not name the examples'
    if grep 'cluster/' <<<"$said"; then fail 'quorlock-chaos(7) names the source'; fi
    man -M "$prefix/share/man" -w 1 quorlock-chaos >/dev/null 2>&1 || fail 'no page quorlock-chaos(1)'
    [ -x "$prefix/share/doc/quorlock-chaos/examples/example.py" ] || fail 'no example of a client'
    said=$(cd / && "$prefix/bin/quorlock-chaos" --client "$prefix/share/doc/quorlock-chaos/examples/example.py" --seconds 4 \
        --seed 7 --clients 3 --keys 1 --faults kill-client,reset 2>&1) || fail "quorlock-chaos --client of the example: $said"
    passed 'the harness is quorlock-chaos, and names nothing of the source'
}

install_it
check_version
check_harness
check_symbols
check_pages
"$source_dir/tests/package/consumers.sh" "$prefix" "$source_dir"
printf '%d checks passed\n' "$checks"
