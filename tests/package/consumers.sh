#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# consumers.sh PREFIX SOURCE - builds and runs programs with nothing but what is installed at PREFIX: the examples of
# README.md and of the manual in SOURCE, in C, one of them as C++ too, and in C++; by pkg-config and by CMake, shared and
# static, against three real servers.
set -euo pipefail

prefix=$1
source_dir=$2
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

CC=${CC:-cc} CXX=${CXX:-g++}
libdir=$(dirname "$(find "$prefix/lib"* -name libquorlock.so 2>/dev/null | head -n 1)")
[ -e "$libdir/libquorlock.so" ] || fail "no libquorlock.so below $prefix"
c_flags=(-std=c11 -Wall -Wextra -Werror)
cxx_flags=(-std=c++11 -Wall -Wextra -Wpedantic -Wold-style-cast -Werror)

# As their users compile them: by the compilers that are here, in the standards that they may choose.
c_compilers=() cxx_compilers=()
for compiler in gcc clang; do
    if command -v "$compiler" >/dev/null; then c_compilers+=("$compiler"); fi
done
for compiler in g++ clang++; do
    if command -v "$compiler" >/dev/null; then cxx_compilers+=("$compiler"); fi
done

# alone HEADER [FLAG...]: it compiles by all of them, as C and as C++.
alone() {
    local header=$1 compiler standard
    shift
    printf '#include <%s>\nint main(void) { return 0; }\n' "$header" >"$work/alone.c"
    cp "$work/alone.c" "$work/alone.cpp"
    for compiler in "${c_compilers[@]}"; do
        for standard in c11 c17 c2x; do
            "$compiler" -std=$standard -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -I"$prefix/include" "$@" \
                -fsyntax-only "$work/alone.c" || fail "$header alone, as $standard by $compiler"
        done
    done
    for compiler in "${cxx_compilers[@]}"; do
        for standard in c++11 c++17 c++20 c++2b; do
            "$compiler" -std=$standard -Wall -Wextra -Wpedantic -Wold-style-cast -Wshadow -Werror -I"$prefix/include" "$@" \
                -fsyntax-only "$work/alone.cpp" || fail "$header alone, as $standard by $compiler"
        done
    done
}

check_headers() {
    local path header
    while IFS= read -r path; do
        header=quorlock/${path##*/quorlock/}
        alone "$header"
        if "$CC" -I"$prefix/include" -M "$work/alone.c" | grep -E 'hiredis|event2?/|event\.h|openssl'; then
            fail "$header includes hiredis, libevent or OpenSSL"
        fi
    done < <(find "$prefix/include/quorlock" -maxdepth 1 -name '*.h')
    passed "headers alone: C11 to C23 by ${c_compilers[*]}, C++11 to C++23 by ${cxx_compilers[*]}, no hiredis, no libevent, no OpenSSL"
}

check_no_hiredis() {
    if grep -r hiredis "$libdir/pkgconfig/quorlock.pc" "$libdir/cmake/quorlock"; then fail "a user needs hiredis"; fi
    if readelf -d "$libdir/libquorlock.so" | grep hiredis; then fail "libquorlock.so needs hiredis"; fi
    passed "no hiredis, at run time and to link"
}

# Each adapter for an event loop, where the headers of that loop are here.
check_adapters() {
    local path name package flags seen=''
    for path in "$prefix"/include/quorlock/adapters/*.h; do
        name=${path##*/}
        case $name in
        libevent.h) package=libevent_core ;;
        libuv.h) package=libuv ;;
        sd-event.h) package=libsystemd ;;
        glib.h) package=glib-2.0 ;;
        epoll.h) package= ;;
        cast.h) continue ;; # a part of the others
        *) fail "no package is known for $name" ;;
        esac
        flags=()
        if [ -n "$package" ]; then
            pkg-config --exists "$package" || continue
            # Warnings are about our headers.
            read -ra flags <<<"$(pkg-config --cflags "$package" | sed 's/-I/-isystem/g')"
        fi
        alone "quorlock/adapters/$name" -D_GNU_SOURCE ${flags[@]+"${flags[@]}"}
        if "$CC" -D_GNU_SOURCE -I"$prefix/include" ${flags[@]+"${flags[@]}"} -dM -E "$work/alone.c" | grep QUORLOCK_CAST; then
            fail "$name leaves its macro behind"
        fi
        seen+=" ${name%.h}"
    done
    passed "adapters alone:$seen"
}

# The README's blocks of C and of C++, and the programs of the manual.
extract_examples() {
    local program
    [ -s "$source_dir/README.md" ] || fail "no README.md"
    awk -v work="$work" '/^```c / { inside = 1; next } /^```/ { inside = 0 }
        inside { print > (work "/example.c") }' "$source_dir/README.md"
    awk '/^```/ { inside = 0 } inside; /^```cpp / { inside = 1 }' "$source_dir/README.md" >"$work/example_cxx.cpp"
    manual_example "$source_dir" quorlock >"$work/manual.c"
    manual_example "$source_dir" quorlock 2 >"$work/callbacks.c"
    manual_example "$source_dir" quorlock_sync_client_new >"$work/nested.c"
    manual_example "$source_dir" quorlock_sync_client_new 2 >"$work/daemon.c"
    manual_example "$source_dir" quorlock_settings_load >"$work/settings.c"
    grep -q 'quorlock_settings_options' "$work/settings.c" || fail "no C example in quorlock_settings_load(3)"
    grep -q 'quorlock_sync_client_shutdown' "$work/daemon.c" || fail "no C example of a daemon in quorlock_sync_client_new(3)"
    grep -q 'quorlock_sync_lock_with' "$work/example.c" || fail "no C example in README.md"
    grep -q 'quorlock::lock' "$work/example_cxx.cpp" || fail "no C++ example in README.md"
    grep -q 'quorlock_lock_acquire' "$work/callbacks.c" || fail "no C example with callbacks in quorlock(3)"
    grep -q 'quorlock_sync_lock_acquire' "$work/nested.c" || fail "no C example of nested calls in quorlock_sync_client_new(3)"
    grep -q 'quorlock_sync_lock_with' "$work/manual.c" || fail "no C example in quorlock(3)"
    cp "$source_dir/tests/package/consumer.cpp" "$work"
    # The same with one number changed: a lease that is longer than the longest.
    cp "$work/callbacks.c" "$work/callbacks_cxx.cpp"
    for program in example callbacks; do
        sed 's/lease_ms = [0-9]*/lease_ms = 99999999/' "$work/$program.c" >"$work/${program}_too_long.c"
    done
    sed 's/\.wait_ms = [0-9]*/.lease_ms = 99999999/' "$work/manual.c" >"$work/manual_too_long.c"
    sed 's/\.wait_ms = [0-9]*/.lease_ms = 99999999/' "$work/nested.c" >"$work/nested_too_long.c"
}

by_pkg_config() {
    local program flags private
    export PKG_CONFIG_PATH=$libdir/pkgconfig
    read -ra flags <<<"$(pkg-config --cflags --libs quorlock libevent_core)"
    for program in example callbacks nested manual daemon settings {example,callbacks,nested,manual}_too_long; do
        "$CC" "${c_flags[@]}" "$work/$program.c" "${flags[@]}" -o "$work/$program" ||
            fail "$program.c with pkg-config: ${flags[*]}"
    done
    "$CXX" "${cxx_flags[@]}" "$work/consumer.cpp" "${flags[@]}" -o "$work/consumer" ||
        fail "consumer.cpp with pkg-config: ${flags[*]}"
    # Its casts are those of C, which has no others.
    "$CXX" "${cxx_flags[@]}" -Wno-old-style-cast "$work/callbacks_cxx.cpp" "${flags[@]}" -o "$work/callbacks_cxx" ||
        fail "callbacks.c as C++"
    "$CXX" "${cxx_flags[@]}" -std=c++17 "$work/example_cxx.cpp" "${flags[@]}" -o "$work/example_cxx" ||
        fail "example.cpp with pkg-config: ${flags[*]}"
    read -ra private <<<"$(pkg-config --print-requires-private quorlock | tr '\n' ' ')"
    read -ra flags <<<"$(pkg-config --cflags quorlock) $libdir/libquorlock.a $(pkg-config --libs "${private[@]}") -lpthread"
    "$CC" "${c_flags[@]}" "$work/example.c" "${flags[@]}" -o "$work/example_static" || fail "the example, static"
    unset PKG_CONFIG_PATH
    passed "examples in C and C++ built by pkg-config, and with the static library"
}

by_cmake() {
    mkdir "$work/project"
    cp "$work/example.c" "$work/consumer.cpp" "$work/project"
    cat >"$work/project/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.18)
project(example LANGUAGES C CXX)
set(CMAKE_CXX_STANDARD 11)
find_package(quorlock REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(EVENT REQUIRED IMPORTED_TARGET libevent_core)
foreach(source example.c consumer.cpp)
  foreach(kind quorlock quorlock_static)
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name}_${kind} ${source})
    target_link_libraries(${name}_${kind} PRIVATE quorlock::${kind} PkgConfig::EVENT)
  endforeach()
endforeach()
CMAKE
    {
        CC=$CC CXX=$CXX cmake -G Ninja -S "$work/project" -B "$work/project/build" -DCMAKE_PREFIX_PATH="$prefix" &&
            cmake --build "$work/project/build"
    } >"$work/cmake.log" 2>&1 || {
        tail -n 40 "$work/cmake.log" >&2
        fail "the examples with find_package(quorlock)"
    }
    passed "examples in C and C++ built by find_package: quorlock::quorlock, quorlock::quorlock_static"
}

# run PROGRAM LINE...: it ends well, says these, and leaves no key. Shared ones made by CMake know where the library is.
run() {
    local program=$1 line output key
    shift
    output=$(LD_LIBRARY_PATH=$libdir timeout 60 "$program" "${nodes[@]}") || fail "$program ended with $?: $output"
    for line; do
        grep -q -- "$line" <<<"$output" || fail "$program did not say '$line': $output"
    done
    for key in report nightly-report reports:daily account:3 account:7 queue:mail; do no_key "$key"; done
    passed "${program##*/} ran: $(printf '%s' "$output" | tr '\n' ';')"
}

# refused PROGRAM: it fails, says why, and prints no empty line.
refused() {
    local status=0 output
    output=$(LD_LIBRARY_PATH=$libdir timeout 60 "$1" "${nodes[@]}" 2>&1) || status=$?
    [ "$status" != 0 ] || fail "${1##*/} ended with 0 and its work undone: $output"
    grep -q 99999999 <<<"$output" || fail "${1##*/} ended with $status, and did not name the lease: $output"
    if grep -q '^$' <<<"$output"; then fail "${1##*/} printed an empty line: $output"; fi
    passed "${1##*/} ended with $status: $output"
}

check_headers
check_no_hiredis
check_adapters
extract_examples
by_pkg_config
by_cmake
start_nodes "$prefix/bin/quorlock"
run "$work/example_cxx" 'valid for [1-9][0-9]* ms'
for program in "$work"/{example,callbacks,callbacks_cxx} "$work/example_static" "$work"/project/build/example_quorlock{,_static}; do
    run "$program" 'valid for [1-9][0-9]* ms' '^released'
done
for program in "$work"/{example,callbacks,manual,nested}_too_long; do refused "$program"; done
# Both keys, the inner hold at once, given back by the outer release only.
run "$work/nested" 'granted "account:3, account:7" by' 'held by its owner already: 2 holds' '^released "account:3, account:7" on'
run "$work/manual" '^released "nightly-report" on'
QUORLOCK_NODES=$(IFS=,; echo "${nodes[*]}") run "$work/settings" 'valid for [1-9][0-9]* ms' '^released "daily"'
# Its workers hold locks, and wait for them, when it is told to end.
printf '#!/bin/sh\nexec timeout -s TERM --preserve-status 1 %s "$@"\n' "$work/daemon" >"$work/daemon_until_term"
chmod +x "$work/daemon_until_term"
run "$work/daemon_until_term"
for program in "$work/consumer" "$work"/project/build/consumer_quorlock{,_static}; do
    run "$program" 'valid for [1-9][0-9]* ms, token 1' '^released' 'report: free, [23] answered'
done
printf '%d checks passed\n' "$checks"
