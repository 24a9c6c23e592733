#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# cluster/with: a command with servers of its own, which end with it whatever happens: test_with.sh PATH_TO_quorlock.
# Prints each claim; the exit status is the verdict.
# shellcheck disable=SC2016
set -euo pipefail

root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
with=$root/cluster/with
work=$(mktemp -d)
export TMPDIR="$work/a folder" QUORLOCK=${1:?test_with.sh PATH_TO_quorlock} LIMIT=60
mkdir "$TMPDIR"
running=''
# shellcheck source=tests/cluster/lib.sh
. "$root/tests/cluster/lib.sh"

cleanup() {
    trap '' INT TERM HUP
    if [ -n "$running" ]; then kill -KILL "$running" 2>/dev/null || :; fi
    for d in "$TMPDIR"/quorlock-with-*/servers; do
        if [ -e "$d" ]; then "$root/cluster/down" --dir "$d" >/dev/null || :; fi
    done
    rm -rf -- "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# expect WHAT STATUS PATTERN COMMAND...: its status, and a pattern in what it says.
expect() {
    local what=$1 want=$2 pattern=$3 got=0
    shift 3
    timeout "$LIMIT" "$@" >"$work/out" 2>"$work/err" || got=$?
    if [ "$got" = "$want" ] && cat "$work/out" "$work/err" | grep -qE -- "$pattern"; then
        ok "$what"
    else
        bad "$what (status $got, wanted $want and /$pattern/)"
    fi
}

# until_so COMMAND...: waits until it succeeds.
until_so() {
    local end=$((SECONDS + LIMIT))
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.02
    done
}
# No folder is left, nor a server whose configuration was in one.
nothing_left() {
    local left=("$TMPDIR"/*)
    [ ! -e "${left[0]}" ] && ! pgrep -f "$TMPDIR/quorlock-with-" >/dev/null
}

# start ARG...: starts it behind this script, and waits until its command runs.
start() {
    rm -f -- "$work/pid" "$work/ended"
    WORK=$work "$with" "$@" sh -c 'trap "echo TERM >\"$WORK/ended\"; exit 9" TERM; echo $$ >"$WORK/new"; mv "$WORK/new" "$WORK/pid"; while :; do sleep 0.05; done' \
        >"$work/out" 2>"$work/err" &
    running=$!
    until_so test -e "$work/pid"
}

expect 'help' 0 'usage: cluster/with' "$with" --help
expect 'no command' 64 'no command is given' "$with" --nodes 3
expect 'too many nodes' 64 "--nodes: '32' is not" "$with" --nodes 32 -- true
expect 'an unknown argument' 64 "unknown argument '--node'" "$with" --node 3 -- true
expect 'a server that is not there' 125 "'no-such-server' is not installed" env REDIS_SERVER=no-such-server "$with" true
expect 'a command that is not there' 127 'no-such-command' "$with" --nodes 1 no-such-command
check 'nothing is left' nothing_left
expect 'without quorlock' 0 '^cluster/with: not bootstrapped, because .* waits one max lease \(30s\)' env QUORLOCK=no-such "$with" true

expect 'its status, and a lock on its servers' 7 'held' env QUORLOCK_NODES=127.0.0.1:1 QUORLOCK_PREFIX=app: "$with" -- \
    sh -c '"$QUORLOCK" run k -- sh -c "\"\$QUORLOCK\" inspect k"; exit 7'
expect 'the number of servers, and their longest lease' 0 '^127[^,]*,127[^,]*,127[^,]*,127[^,]*,127[^,]* 2m$' \
    "$with" --nodes=5 --max-lease 2m sh -c 'echo "$QUORLOCK_NODES $QUORLOCK_MAX_LEASE" && "$QUORLOCK" run --lease 100s k -- true'
expect 'standard input' 0 '^some words$' sh -c 'echo some words | "$1" --nodes 1 cat' sh "$with"
expect 'a server can be hurt' 1 'dead' "$with" sh -c '"$1/hurt" --dir "$QUORLOCK_WITH" 2 kill; "$1/status" --dir "$QUORLOCK_WITH"' sh "$root/cluster"
expect 'two at once' 0 '^both$' sh -c '"$1" --nodes 1 -- sh -c "\"\$0\" --nodes 1 -- true && echo both" "$1"' sh "$with"
check 'nothing is left' nothing_left

start --nodes 3
kill -TERM "$running"
got=0 && wait "$running" || got=$?
check 'SIGTERM goes to the command' grep -q TERM "$work/ended"
check 'whose status it is' test "$got" = 9
check 'and nothing is left' nothing_left
start --nodes 3
kill -KILL "$running"
wait "$running" 2>/dev/null || :
check 'killed: the servers end all the same' until_so nothing_left
kill -KILL "$(cat "$work/pid")"
running=''

verdict
