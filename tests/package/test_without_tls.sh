#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# test_without_tls.sh SOURCE BUILD - builds the command with -DQUORLOCK_TLS=OFF, as a release with warnings as errors: it
# links no OpenSSL, serves plain nodes, and says of rediss:// that it has no TLS. It may be installed into any folder.
set -euo pipefail

source_dir=$1
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
trap 'exit 130' INT TERM HUP

fail() {
    printf 'test_without_tls: FAILED: %s\n' "$*" >&2
    exit 1
}

{
    cmake -G Ninja -S "$source_dir" -B "$work/build" -DQUORLOCK_TLS=OFF -DQUORLOCK_HARNESS=OFF -DQUORLOCK_TESTS=OFF \
        -DQUORLOCK_WERROR=ON -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS=-O1 -DCMAKE_INSTALL_BINDIR="$work/bin" &&
        cmake --build "$work/build" --target quorlock_command quorlock quorlock_static
} >"$work/log" 2>&1 || {
    tail -n 40 "$work/log" >&2
    fail "the build"
}
command=$work/build/bin/quorlock
for file in "$command" "$work/build/lib/libquorlock.so"; do
    if ldd "$file" | grep -E 'libssl|libcrypto'; then fail "$file links OpenSSL"; fi
done
if grep -q openssl "$work/build/src/quorlock.pc"; then fail "quorlock.pc asks for OpenSSL"; fi

status=0
said=$("$command" inspect --nodes rediss://app:geheim@redis.example key 2>&1) || status=$?
[ "$status" = 64 ] || fail "rediss:// ended with $status: $said"
grep -q 'rediss://redis.example:6379: this build of quorlock has no TLS: build it with' <<<"$said" || fail "it says: $said"
if grep -q geheim <<<"$said"; then fail "it says the password: $said"; fi
status=0
said=$("$command" inspect --nodes unix://"$work"/none key 2>&1) || status=$?
[ "$status" = 69 ] || fail "a plain node ended with $status: $said"
DESTDIR=$work/root cmake --install "$work/build" >>"$work/log" 2>&1 || fail "cmake --install: $(tail -n 5 "$work/log")"
[ -x "$work/root$work/bin/quorlock" ] || fail "the command is not in $work/bin"
grep -rqF "ExecStart=$work/bin/quorlock run " "$work/root" || fail "the unit does not name $work/bin"
echo 'ok: without OpenSSL it builds, and says so where TLS is asked for'
