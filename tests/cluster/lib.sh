# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154
#
# What the tests of cluster/ print: each claim, and how many were false. Sourced; needs $work.
failed=0 checked=0

ok() { checked=$((checked + 1)) && printf 'ok    %s\n' "$1"; }
bad() {
    failed=$((failed + 1)) && printf 'FAIL  %s\n' "$1"
    sed 's/^/      | /' "$work/out" "$work/err" 2>/dev/null || :
}

# check WHAT COMMAND...: the command succeeds.
check() {
    local what=$1
    shift
    if "$@" >"$work/out" 2>"$work/err"; then ok "$what"; else bad "$what"; fi
}

# verdict: prints the sum, and fails if a claim was false.
verdict() {
    printf '%d checks, %d failed\n' "$((checked + failed))" "$failed"
    [ "$failed" = 0 ]
}
