#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# test_cpp.sh SOURCE BUILD [all] - quorlock.hpp with every warning of g++ and clang++, by g++ under the address sanitizer with
# three real servers, with `all` by clang++ under valgrind, too; in C++17 or 23, with `all` in 17, 20 and 23; without
# exceptions; the examples in C++.
set -euo pipefail

source_dir=$1
build=$(cd "$2" && pwd)
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

flags=(-std=c++17 -g -Wall -Wextra -Wold-style-cast -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Werror
    -I"$source_dir/include")
# Not wanted: to be C++98, structs without padding, an error whose destructor is in a library, and (of newer versions)
# no pointer arithmetic at all, as in `argv + 1`, nor the types of std::scoped_lock spelled out.
clang_flags=(-Weverything -Wno-c++98-compat -Wno-c++98-compat-pedantic -Wno-padded -Wno-weak-vtables
    -Wno-unknown-warning-option -Wno-unsafe-buffer-usage -Wno-ctad-maybe-unsupported)
read -ra libraries <<<"$(pkg-config --cflags --libs libevent_core) -L$build/lib -lquorlock -Wl,-rpath,$build/lib -pthread"

manual_example "$source_dir" quorlock.hpp >"$work/manual.cpp"
manual_example "$source_dir" quorlock.hpp 2 >"$work/manual2.cpp"
printf '#include <quorlock/quorlock.hpp>\n' >"$work/whole.cpp"
printf '#include <quorlock/async.hpp>\n' >"$work/async.cpp"
awk '/^```/ { inside = 0 } inside; /^```cpp example.cpp/ { inside = 1 }' "$source_dir/README.md" >"$work/readme.cpp"
cat >"$work/part.cpp" <<'CPP'
#include <quorlock/quorlock.hpp>
extern "C" [[gnu::visibility("default")]] const void *category();
const void *category()
{
    return &quorlock::category();
}
CPP
cat >"$work/two.cpp" <<'CPP'
#include <quorlock/quorlock.hpp>
extern "C" const void *category();
int main()
{
    return category() == &quorlock::category() ? 0 : 1;
}
CPP
cp "$source_dir"/tests/package/test_cpp.cpp "$source_dir"/tests/examples/stock.cpp "$work"
start_nodes "$build/bin/quorlock"
# by COMPILER: the test and the examples, compiled and run.
by() {
    local compiler=$1 more checker program line key
    # The sanitizer sees what the header does, valgrind what the library does for it.
    more=('-fsanitize=address,undefined' -fno-sanitize-recover=all) checker=()
    if [ "$compiler" = clang++ ]; then
        more=("${clang_flags[@]}")
        checker=(valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite)
    fi
    for program in test_cpp stock manual readme; do
        "$compiler" "${flags[@]}" "${more[@]}" "$work/$program.cpp" "${libraries[@]}" -o "$work/$program" ||
            fail "$program.cpp with $compiler"
    done
    timeout 200 ${checker[@]+"${checker[@]}"} "$work/test_cpp" "${nodes[@]}" >"$work/said" 2>&1 || fail "test_cpp by $compiler: $(cat "$work/said")"
    timeout 60 "$work/stock" "${nodes[@]}" >"$work/said" 2>&1 || fail "stock by $compiler: $(cat "$work/said")"
    for line in '^token 1, valid for [0-9]* ms$' '^1 left$'; do
        grep -q "$line" "$work/said" || fail "stock by $compiler: $(cat "$work/said")"
    done
    timeout 60 "$work/readme" "${nodes[@]}" | grep -q '^valid for [1-9]' || fail "the example of README.md"
    [ "$(timeout 60 "$work/manual" "${nodes[@]}" | grep -c '^a step')" = 3 ] || fail "the example of quorlock.hpp(3)"
    for key in file under one two time left right late shared pool work lost kept pass on cancel report code leader itself order \
        order-leader async stock account:3; do
        no_key "$key"
    done
    passed "quorlock.hpp by $compiler"
}
for compiler in g++ clang++; do
    command -v "$compiler" >/dev/null || fail "$compiler is not installed; run scripts/setup"
    if [ "$compiler" = g++ ] || [ "${3-}" = all ]; then by "$compiler"; fi
    standards=(17)
    [ "$compiler" = g++ ] || standards=(2b)
    [ "${3-}" != all ] || standards=(17 20 2b)
    for standard in "${standards[@]}"; do
        "$compiler" "-std=c++$standard" -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -fsyntax-only \
            -I"$source_dir/include" "$work"/{test_cpp,manual2,async}.cpp || fail "C++$standard with $compiler"
    done
    [ "$compiler" = g++ ] || "$compiler" "${flags[@]}" "${clang_flags[@]}" -fsyntax-only "$work"/{test_cpp,stock,manual,readme}.cpp ||
        fail "the warnings of $compiler"
    "$compiler" -std=c++17 -Wall -Wextra -Werror -fno-exceptions -fno-rtti -fsyntax-only -I"$source_dir/include" \
        "$work/whole.cpp" || fail "$compiler -fno-exceptions"
    passed "C++ ${standards[*]}, and no exceptions, by $compiler"
    hidden=(-std=c++17 -fvisibility=hidden -fvisibility-inlines-hidden -I"$source_dir/include")
    "$compiler" "${hidden[@]}" -shared -fPIC "$work/part.cpp" "${libraries[@]}" -o "$work/libpart.so"
    "$compiler" "${hidden[@]}" "$work/two.cpp" -L"$work" -lpart "${libraries[@]}" -Wl,-rpath,"$work" -o "$work/two"
    "$work/two" || fail "two categories in one program by $compiler"
    passed "one category in a program, by $compiler"
done
printf '%d checks passed\n' "$checks"
