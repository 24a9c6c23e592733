#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# test_install.sh SOURCE BUILD - installs into a fresh prefix, and builds and runs the README's example with
# nothing but what was installed: by pkg-config and by CMake, shared and static, against three real servers.
set -euo pipefail

source_dir=$1
build_dir=$2
work=$(mktemp -d)
prefix=$work/prefix
servers=()
checks=0

finish() {
    for pid in ${servers[@]+"${servers[@]}"}; do
        kill -9 "$pid" 2>/dev/null || :
        wait "$pid" 2>/dev/null || :
    done
    rm -rf -- "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

fail() {
    printf 'test_install: FAILED: %s\n' "$*" >&2
    exit 1
}
passed() {
    checks=$((checks + 1))
    printf 'ok: %s\n' "$*"
}

# What an image may set so that everything is found: without it.
unset LIBRARY_PATH LD_LIBRARY_PATH CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH CMAKE_PREFIX_PATH PKG_CONFIG_PATH || :
CC=${CC:-cc}

install_it() {
    cmake --install "$build_dir" --prefix "$prefix" >"$work/install.log" 2>&1 || {
        cat "$work/install.log" >&2
        fail "cmake --install"
    }
    libdir=$(dirname "$(find "$prefix" -name libquorlock.so | head -n 1)")
    [ -e "$libdir/libquorlock.so" ] || fail "no shared library"
    for file in include/quorlock/quorlock.h bin/quorlock share/man/man1/quorlock.1 share/man/man5/quorlock.conf.5 \
        share/bash-completion/completions/quorlock share/zsh/site-functions/_quorlock \
        share/fish/vendor_completions.d/quorlock.fish \
        lib/systemd/system/quorlock@.service lib/systemd/user/quorlock@.service; do
        [ -s "$prefix/$file" ] || fail "$file is not installed"
    done
    for file in libquorlock.a pkgconfig/quorlock.pc cmake/quorlock/quorlock-config.cmake \
        cmake/quorlock/quorlock-config-version.cmake; do
        [ -s "$libdir/$file" ] || fail "$file is not installed"
    done
    compgen -G "$libdir/libquorlock.so.*.*.*" >/dev/null || fail "no versioned shared library"
    for manager in system user; do
        grep -qF "ExecStart=$prefix/bin/quorlock run " "$prefix/lib/systemd/$manager/quorlock@.service" || fail "the unit has another command"
        grep -q '^WantedBy=.*\.target$' "$prefix/lib/systemd/$manager/quorlock@.service" || fail "the unit is wanted by nothing"
    done
    # Nobody may need the folders it was made in.
    if grep -rlF -e "$build_dir" -e "$source_dir/" "$libdir/pkgconfig" "$libdir/cmake" "$prefix/include" "$prefix/lib/systemd"; then
        fail "an installed file names the build or source folder"
    fi
    version=$("$prefix/bin/quorlock" --version) || fail "the installed command does not run"
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
    printf '%s\n' 'cmake_minimum_required(VERSION 3.23)' 'project(find LANGUAGES C)' \
        "find_package(quorlock $1 REQUIRED)" >"$work/find/CMakeLists.txt"
    cmake -G Ninja -S "$work/find" -B "$work/find/build" -DCMAKE_PREFIX_PATH="$prefix" >"$work/find.log" 2>&1
}

check_symbols() {
    local exported declared versions
    # name@@QUORLOCK_0.1; the version itself is an absolute symbol.
    exported=$(nm -D --defined-only "$libdir/libquorlock.so" | awk '$2 != "A" { print $NF }')
    versions=$(cut -d@ -f3 <<<"$exported" | sort -u)
    [ "$versions" = "QUORLOCK_$interface" ] || fail "symbols of version $versions, not QUORLOCK_$interface"
    declared=$(grep -hv "^#" "$prefix"/include/quorlock/*.h | tr '\n' ' ' | grep -o 'QUORLOCK_API [^(]*(' |
        sed 's/ *($//; s/.*[ *]//' | sort -u)
    [ "$(wc -l <<<"$declared")" -ge 15 ] || fail "found few declarations: $declared"
    diff <(echo "$declared") <(cut -d@ -f1 <<<"$exported" | sort -u) ||
        fail "declared in the headers (<) and exported (>) differ"
    passed "symbols: $(wc -l <<<"$declared") in version QUORLOCK_$interface, exactly those of the headers"
}

check_headers() {
    local path header
    for path in "$prefix"/include/quorlock/*.h; do
        header=quorlock/${path##*/}
        printf '#include <%s>\nint main(void) { return 0; }\n' "$header" >"$work/alone.c"
        cp "$work/alone.c" "$work/alone.cpp"
        "$CC" -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$prefix/include" -fsyntax-only "$work/alone.c" ||
            fail "$header alone, as C11"
        if command -v g++ >/dev/null; then
            g++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -I"$prefix/include" -fsyntax-only "$work/alone.cpp" ||
                fail "$header alone, as C++"
        fi
        if "$CC" -I"$prefix/include" -M "$work/alone.c" | grep -E 'hiredis|event2?/|event\.h|openssl'; then
            fail "$header includes hiredis, libevent or OpenSSL"
        fi
    done
    passed "headers alone: C11, C++, no hiredis, no libevent, no OpenSSL"
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
        *) fail "no package is known for $name" ;;
        esac
        flags=()
        if [ -n "$package" ]; then
            pkg-config --exists "$package" || continue
            read -ra flags <<<"$(pkg-config --cflags "$package")"
        fi
        printf '#include <quorlock/adapters/%s>\nint main(void) { return 0; }\n' "$name" >"$work/alone.c"
        cp "$work/alone.c" "$work/alone.cpp"
        "$CC" -std=gnu11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -I"$prefix/include" ${flags[@]+"${flags[@]}"} \
            -fsyntax-only "$work/alone.c" || fail "$name, as C11"
        if command -v g++ >/dev/null; then
            g++ -std=gnu++11 -Wall -Wextra -Wpedantic -Werror -I"$prefix/include" ${flags[@]+"${flags[@]}"} -fsyntax-only \
                "$work/alone.cpp" || fail "$name, as C++"
        fi
        seen+=" ${name%.h}"
    done
    passed "adapters alone:$seen"
}

# The README's first and second block of C.
extract_examples() {
    [ -s "$source_dir/README.md" ] || fail "no README.md"
    awk -v work="$work" '/^```c / { inside = 1; n++; next } /^```/ { inside = 0 }
        inside { print > (work "/" (n == 1 ? "example.c" : "nested.c")) }' "$source_dir/README.md"
    grep -q 'quorlock_acquire' "$work/example.c" || fail "no C example in README.md"
    grep -q 'quorlock_blocking_acquire' "$work/nested.c" || fail "no C example of nested calls in README.md"
}

by_pkg_config() {
    export PKG_CONFIG_PATH=$libdir/pkgconfig
    local flags
    read -ra flags <<<"$(pkg-config --cflags --libs quorlock libevent_core)"
    "$CC" -std=c11 -Wall -Wextra -Werror "$work/example.c" "${flags[@]}" -o "$work/by_pkg_config" ||
        fail "the example with pkg-config: ${flags[*]}"
    "$CC" -std=c11 -Wall -Wextra -Werror "$work/nested.c" "${flags[@]}" -o "$work/nested" || fail "the nested example"
    local private
    read -ra private <<<"$(pkg-config --print-requires-private quorlock | tr '\n' ' ')"
    read -ra flags <<<"$(pkg-config --cflags quorlock) $libdir/libquorlock.a $(pkg-config --libs "${private[@]}") -lpthread"
    "$CC" -std=c11 "$work/example.c" "${flags[@]}" -o "$work/by_hand_static" || fail "the example, static"
    unset PKG_CONFIG_PATH
    passed "example built by pkg-config, and with the static library"
}

by_cmake() {
    mkdir "$work/project"
    cp "$work/example.c" "$work/project"
    cat >"$work/project/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.23)
project(example LANGUAGES C)
find_package(quorlock REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(EVENT REQUIRED IMPORTED_TARGET libevent_core)
foreach(kind quorlock quorlock_static)
  add_executable(by_${kind} example.c)
  target_link_libraries(by_${kind} PRIVATE quorlock::${kind} PkgConfig::EVENT)
endforeach()
CMAKE
    {
        cmake -G Ninja -S "$work/project" -B "$work/project/build" -DCMAKE_PREFIX_PATH="$prefix" &&
            cmake --build "$work/project/build"
    } >"$work/cmake.log" 2>&1 || {
        tail -n 40 "$work/cmake.log" >&2
        fail "the example with find_package(quorlock)"
    }
    passed "example built by find_package: quorlock::quorlock, quorlock::quorlock_static"
}

# A port may be taken in the moment between: then the server ends, and the next is tried.
start_server() {
    local port pid try i
    for try in 1 2 3 4 5 6 7 8; do
        port=$((20000 + RANDOM % 12000))
        mkdir "$work/$port" 2>/dev/null || continue
        setpriv --pdeathsig KILL "${REDIS_SERVER:-redis-server}" --port "$port" --bind 127.0.0.1 --save '' \
            --dir "$work/$port" >"$work/$port/log" 2>&1 &
        pid=$!
        for ((i = 0; i < 400; i++)); do
            kill -0 "$pid" 2>/dev/null || break
            if grep -q "^process_id:$pid" <<<"$(redis-cli -p "$port" info server 2>/dev/null)"; then
                servers+=("$pid")
                nodes+=("127.0.0.1:$port")
                return
            fi
            sleep 0.05
        done
        kill -9 "$pid" 2>/dev/null || :
    done
    fail "redis-server does not start (after $try tries)"
}

run_example() {
    local program=$1 output
    output=$(LD_LIBRARY_PATH=${2:-} timeout 60 "$program" "${nodes[@]}") || fail "$program ended with $?: $output"
    grep -q 'valid for [1-9][0-9]* ms' <<<"$output" || fail "$program did not get the lock: $output"
    grep -q '^released' <<<"$output" || fail "$program did not release: $output"
    for node in "${nodes[@]}"; do
        [ "$(redis-cli -p "${node##*:}" exists report)" = 0 ] || fail "$program left its key on $node"
    done
    passed "${program##*/} ran: $(printf '%s' "$output" | tr '\n' ';')"
}

# Both keys, the inner hold at once, given back by the outer release only.
run_nested() {
    local output key
    output=$(LD_LIBRARY_PATH=$libdir timeout 60 "$work/nested" "${nodes[@]}") || fail "nested ended with $?: $output"
    grep -q 'granted "account:3, account:7" by' <<<"$output" || fail "nested did not get the lock: $output"
    grep -q 'held by its owner already: 2 holds' <<<"$output" || fail "nested did not nest: $output"
    grep -q '^released "account:3, account:7" on' <<<"$output" || fail "nested did not release: $output"
    for node in "${nodes[@]}"; do
        for key in account:3 account:7; do
            [ "$(redis-cli -p "${node##*:}" exists "$key")" = 0 ] || fail "nested left $key on $node"
        done
    done
    passed "nested ran: $(printf '%s' "$output" | tr '\n' ';')"
}

install_it
check_version
check_symbols
check_headers
check_adapters
extract_examples
by_pkg_config
by_cmake
nodes=()
for _ in 1 2 3; do start_server; done
# Fresh nodes: there is no lock on them.
"$prefix/bin/quorlock" --nodes "$(IFS=,; echo "${nodes[*]}")" bootstrap >"$work/bootstrap.log" 2>&1 ||
    fail "bootstrap: $(cat "$work/bootstrap.log")"
run_example "$work/by_pkg_config" "$libdir"
run_example "$work/by_hand_static"
run_example "$work/project/build/by_quorlock"
run_example "$work/project/build/by_quorlock_static"
run_nested
printf '%d checks passed\n' "$checks"
