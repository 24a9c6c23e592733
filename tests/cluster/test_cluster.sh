#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# cluster/up, down, status and hurt against real servers, on free ports and in
# a folder of its own: test_cluster.sh PATH_TO_quorlock. Prints each claim; the
# exit status is the verdict.
set -euo pipefail

root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
up=$root/cluster/up down=$root/cluster/down status=$root/cluster/status hurt=$root/cluster/hurt
work=$(mktemp -d)
# A blank in the name: paths must be quoted everywhere.
dir="$work/a cluster"
server=${REDIS_SERVER:-redis-server}
cli=${REDIS_CLI:-${server%-server}-cli}
unset REDISCLI_AUTH QUORLOCK_NODES QUORLOCK_MAX_LEASE
export QUORLOCK=${1:?test_cluster.sh PATH_TO_quorlock}
blocker=''
# shellcheck source=tests/cluster/lib.sh
. "$root/tests/cluster/lib.sh"

cleanup() {
    trap '' INT TERM HUP
    if [ -n "$blocker" ]; then kill -KILL "$blocker" 2>/dev/null || :; fi
    for d in "$dir" "$work"/other*; do
        if [ -e "$d/.quorlock-cluster" ]; then "$down" --dir "$d" >/dev/null || :; fi
    done
    rm -rf -- "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# expect WHAT STATUS PATTERN COMMAND...: exit status, and a pattern in what it
# says; errors must be on stderr.
expect() {
    local what=$1 want=$2 pattern=$3 got=0 where
    shift 3
    timeout 60 "$@" >"$work/out" 2>"$work/err" </dev/null || got=$?
    where=$work/out
    if [ "$want" != 0 ] && [ "$want" != any ]; then where=$work/err; fi
    if { [ "$want" = any ] || [ "$got" = "$want" ]; } && grep -qE -- "$pattern" "$where"; then
        ok "$what"
    else
        bad "$what (status $got, wanted $want and /$pattern/)"
    fi
}

check_not() {
    local what=$1
    shift
    if "$@" >"$work/out" 2>"$work/err"; then bad "$what"; else ok "$what"; fi
}

listening() {
    local hex
    printf -v hex '%04X' "$1"
    awk -v p=":$hex" 'index($2, p) && $4 == "0A" { f = 1 } END { exit !f }' /proc/net/tcp /proc/net/tcp6
}

# Five free ports in a row, away from the ports that clients are given.
free_base() {
    local p i
    for ((p = 20000 + RANDOM % 8000; p < 32000; p += 5)); do
        for ((i = 0; i < 5; i++)); do if listening $((p + i)); then continue 2; fi; done
        echo "$p" && return
    done
    return 1
}

redis() { local node=$1 && shift && timeout 5 "$cli" -p $((base + node - 1)) "$@"; }
has() { [ "$(redis "$1" GET "$2")" = "$3" ]; }
pid_of() { cat "$dir/node-$1/pid"; }
# The tick of its start.
start_of() {
    local line
    read -r line <"/proc/$1/stat"
    # shellcheck disable=SC2086
    set -- ${line##*) }
    echo "${20}"
}
# A zombie that is not reaped is dead too.
dead() { [ ! -e "/proc/$1" ] || grep -q '^State:.*[ZX]' "/proc/$1/status"; }
# Another test may have taken the ports.
none_left() { ! pgrep -f -- "$work/.*/redis.conf" >/dev/null; }

base=$(free_base)

# What is asked for is wrong
expect 'help of up' 0 'usage: cluster/up' "$up" --help
expect 'help of down' 0 'usage: cluster/down' "$down" --help
expect 'help of status' 0 'usage: cluster/status' "$status" --help
expect 'help of hurt' 0 'usage: cluster/hurt' "$hurt" --help
for n in 0 32 -1 3x '' 03 99999999999999999999; do
    expect "--nodes '$n' is refused by name" 64 "--nodes: '$n'" "$up" --dir "$dir" --nodes "$n"
done
for p in 0 65536 -5 x 99999999999999999999; do
    expect "--port-base $p is refused by name" 64 "--port-base: '$p'" "$up" --dir "$dir" --port-base "$p"
done
for d in 0s 30 -1s 1d '' 25h 9ms 99999999999999999999s; do
    expect "--max-lease '$d' is refused by name" 64 "--max-lease: '$d'" "$up" --dir "$dir" --max-lease "$d"
done
expect 'ports beyond the last are refused' 64 'beyond 65535' "$up" --dir "$dir" --port-base 65535
expect 'an option without its value' 64 'needs a value' "$up" --nodes
expect 'an empty folder name' 64 "--dir: ''" "$up" --dir=
expect 'an unknown option' 64 "unknown argument '--bogus'" "$up" --bogus
expect 'no server installed: names the remedy' 1 'scripts/setup' env REDIS_SERVER=no-such-server "$up" --dir "$dir"
expect 'a program that is no server' 1 'does not look like Redis or Valkey' env REDIS_SERVER=true "$up" --dir "$dir"
expect 'down with nothing running is harmless' 0 'nothing to do' "$down" --dir "$dir"
expect 'status without a cluster' 3 'no cluster in' "$status" --dir "$dir"
expect 'hurt without a cluster' 1 'no cluster in' "$hurt" --dir "$dir" 1 kill
mkdir -p "$work/mine" && touch "$work/mine/precious"
expect 'a folder in use is not taken' 1 'not empty' "$up" --dir "$work/mine" --port-base "$base"
expect 'a folder that is not ours is not removed' 1 'left alone' "$down" --dir "$work/mine"
check 'its files are still there' test -e "$work/mine/precious"

# Up
expect 'up starts three' 0 "QUORLOCK_NODES=127.0.0.1:$base,127.0.0.1:$((base + 1)),127.0.0.1:$((base + 2))" "$up" --dir "$dir" --port-base "$base"
check 'and bootstraps them' grep -qE '[|]30000[|].*[|]0$' <<<"$(redis 3 GET quorlock:guard)"
for i in 1 2 3; do check "node $i answers" redis "$i" PING; done
check 'a pid file holds the pid and nothing else' kill -0 "$(cat "$dir/node-1/pid")"
lock() { timeout 20 "$QUORLOCK" --nodes "$("$status" --dir "$dir" --addresses)" run -n --lease "$@" key -- true; }
check 'so the first lock does not wait' lock 30s
check_not 'a lease above the max lease is refused' lock 31s
expect 'status shows all up' 0 '3 of 3 up' "$status" --dir "$dir"
expect 'status --addresses' 0 "^127.0.0.1:$base,127.0.0.1:$((base + 1)),127.0.0.1:$((base + 2))\$" "$status" --dir "$dir" --addresses
expect 'up again says so' 0 'already up: 3' "$up" --dir "$dir"
expect 'up again with another size is refused' 1 'cluster of 3 .*already runs' "$up" --dir "$dir" --nodes 5
expect 'up again with other ports is refused' 1 'already runs' "$up" --dir "$dir" --port-base $((base + 100))
for pair in 'bind 127.0.0.1' 'appendonly yes' 'appendfsync always' 'protected-mode yes' 'save '; do
    check "runs with $pair" test "$(redis 1 CONFIG GET "${pair%% *}" | paste -sd' ')" = "$pair"
done
check 'listens on loopback only' test "$(awk -v p="$(printf ':%04X' "$base")" 'index($2, p) && $4 == "0A" { print $2 }' /proc/net/tcp /proc/net/tcp6 | grep -vc '^0100007F')" = 0

# A port in use
expect 'a port in use is named' 1 "port $((base + 2)) is in use.*--port-base" "$up" --dir "$work/other1" --port-base $((base + 2))
check 'and nothing was started' test ! -e "$work/other1"
check_not 'not even on the free ports' listening $((base + 3))

# Hurt
for i in 1 2 3; do redis "$i" SET k "$i" >/dev/null; done
expect 'no such node' 64 'there is no node 4' "$hurt" --dir "$dir" 4 kill
expect 'node 0' 64 "'0' is not a node" "$hurt" --dir "$dir" 0 kill
expect 'a bad verb' 64 "'maim' is none of" "$hurt" --dir "$dir" 1 maim
expect 'no verb' 64 'needs a node' "$hurt" --dir "$dir" 1
expect 'kill' 0 'killed' "$hurt" --dir "$dir" 1 kill
check_not 'a killed node listens no more' listening "$base"
expect 'status shows it dead' any 'node 1 .* dead' "$status" --dir "$dir"
check_not 'status fails then' "$status" --dir "$dir"
expect 'killing the dead says what to do' 1 'hurt.* 1 restart' "$hurt" --dir "$dir" 1 kill
expect 'up with one dead says what to do' 1 'node 1 is dead .cluster/hurt.* 1 restart' "$up" --dir "$dir"
expect 'restart after a crash' 0 'restarted with its data' "$hurt" --dir "$dir" 1 restart
check 'the data survived SIGKILL' has 1 k 1
expect 'restart of a running node' 0 'restarted' "$hurt" --dir "$dir" 2 restart
check 'the data survived the restart' has 2 k 2
expect 'wipe' 0 'restarted empty' "$hurt" --dir "$dir" 3 wipe
check 'the wiped node is empty' has 3 k ''
expect 'stop' 0 'stopped' "$hurt" --dir "$dir" 2 stop
expect 'stop twice' 0 'stopped already' "$hurt" --dir "$dir" 2 stop
check_not 'a stopped node does not answer' timeout 0.3 "$cli" -p $((base + 1)) PING
expect 'status shows it stopped' any 'node 2 .* stopped' "$status" --dir "$dir"
expect 'up with one stopped says what to do' 1 'node 2 is stopped .cluster/hurt.* 2 cont' "$up" --dir "$dir"
expect 'cont' 0 'continues' "$hurt" --dir "$dir" 2 cont
check 'a continued node answers with its data' has 2 k 2
expect 'cont of what runs' 0 'was not stopped' "$hurt" --dir "$dir" 2 cont
"$hurt" --dir "$dir" 2 stop >/dev/null
expect 'a stopped node cannot be told' 1 'it is stopped' "$hurt" --dir "$dir" 2 cut
expect 'restart of a stopped node' 0 'restarted' "$hurt" --dir "$dir" 2 restart
check 'it has its data' has 2 k 2

# Slow, and cut off
connection_is_closed() {
    local line='' status=0
    IFS= read -r -t 20 line <&7 || status=$?
    [ "$status" = 1 ] && [ -z "$line" ]
}
exec 7<>"/dev/tcp/127.0.0.1/$base"
printf 'PING\r\n' >&7
IFS= read -r _ <&7
expect 'cut' 0 'closed the connections' "$hurt" --dir "$dir" 1 cut
check 'a cut connection is closed' connection_is_closed
exec 7>&-
expect 'slow' 0 'answers nobody for' "$hurt" --dir "$dir" 1 slow
check 'a slow node was paused' grep -q 'client|pause:calls=1,' <(redis-cli -p "$base" INFO commandstats)

# What a restart means to clients
"$hurt" --dir "$dir" 1 wipe >/dev/null && "$hurt" --dir "$dir" 2 restart >/dev/null
expect 'a wiped node has no guard' 0 'node 1 .*no guard' "$status" --dir "$dir"
expect 'a restarted one has an old guard' 0 'node 2 .*restarted: quarantined at the next contact' "$status" --dir "$dir"
check_not 'neither has a vote' lock 30s --node-timeout 7s
expect 'the first contact quarantines the wiped one' 0 'node 1 .*quarantined for (30|2[0-9]) s' "$status" --dir "$dir"
expect 'and the restarted one' 0 'node 2 .*quarantined for (30|2[0-9]) s' "$status" --dir "$dir"

# A recycled pid: the file names a process that is not our server.
sleep 300 &
blocker=$!
"$hurt" --dir "$dir" 3 kill >/dev/null
echo "$blocker" >"$dir/node-3/pid"
start_of "$blocker" >"$dir/node-3/started"
expect 'a recycled pid is not taken for ours' 1 'not running' "$hurt" --dir "$dir" 3 kill
check 'and is not signalled' kill -0 "$blocker"
pid1=$(pid_of 1)
echo 1 >"$dir/node-1/started"
expect 'nor is our server of another time' any 'node 1 .* dead' "$status" --dir "$dir"
start_of "$pid1" >"$dir/node-1/started"
expect 'the mended file is believed' any 'node 1 .* up' "$status" --dir "$dir"

# Down, with one frozen and one gone
"$hurt" --dir "$dir" 2 stop >/dev/null
pid2=$(pid_of 2)
expect 'down ends all' 0 'down: 2 servers ended' "$down" --dir "$dir"
check 'a running one is gone' dead "$pid1"
check 'the frozen one is gone' dead "$pid2"
check 'the process of the recycled pid lives' kill -0 "$blocker"
check 'the folder is removed' test ! -e "$dir"
check 'no port is held' none_left
kill "$blocker" && wait "$blocker" 2>/dev/null || :
blocker=''

# Files that were lost: pid files, a node's whole folder, the configuration
expect 'up for what gets lost' 0 'node 3 .* up' "$up" --dir "$dir" --port-base "$base"
pids=("$(pid_of 1)" "$(pid_of 2)" "$(pid_of 3)")
rm "$dir/node-2/pid" && : >"$dir/node-3/pid"
expect 'a server without its pid file is found' 0 '3 of 3 up' "$status" --dir "$dir"
check 'and its pid is written down again' test "$(pid_of 2) $(pid_of 3)" = "${pids[1]} ${pids[2]}"
# As earlier versions wrote it: both numbers in one file.
echo "$(pid_of 1) $(cat "$dir/node-1/started")" >"$dir/node-1/pid" && rm "$dir/node-1/started"
expect 'one whose start was written elsewhere is found' 0 '3 of 3 up' "$status" --dir "$dir"
rm "$dir/node-2/pid"
expect 'up finds it too' 0 'already up: 3 nodes' "$up" --dir "$dir" --port-base "$base"
rm -r "$dir/node-1" "$dir/node-3/pid" "$dir/cluster.conf"
expect 'down ends what lost its files' 0 'down: 3 servers ended' "$down" --dir "$dir"
for i in 0 1 2; do check "server $((i + 1)) is gone" dead "${pids[i]}"; done
check 'and none is left' none_left

# A port that is taken by what is not Redis, in the middle of the range
"$server" --port $((base + 1)) --bind 127.0.0.1 --save '' --dir "$work" >/dev/null 2>&1 &
blocker=$!
for ((i = 0; i < 500; i++)); do if listening $((base + 1)); then break; fi; sleep 0.02; done
expect 'a foreign port in the middle' 1 "port $((base + 1)) is in use" "$up" --dir "$work/other2" --nodes 4 --port-base "$base"
check_not 'leaves no half cluster' listening "$base"
check 'nor a folder' test ! -e "$work/other2"
check 'the foreign server lives' kill -0 "$blocker"
kill "$blocker" && wait "$blocker" 2>/dev/null || :
blocker=''

# All killed behind our back, then up again
expect 'up with five, and another max lease' 0 'leases up to 2m' "$up" --dir "$dir" --nodes 5 --port-base "$base" --max-lease 2m
check 'the max lease is in the guards' grep -q '|120000|' <<<"$(redis 5 GET quorlock:guard)"
expect 'up again says what all clients must be told' 0 'QUORLOCK_MAX_LEASE=2m' "$up" --dir "$dir"
expect 'up again with yet another is refused' 1 'set up for leases up to 2m' "$up" --dir "$dir" --max-lease 3m
check 'told so, a client locks for longer' env QUORLOCK_MAX_LEASE=2m timeout 20 "$QUORLOCK" --nodes "$("$status" --dir "$dir" --addresses)" run -n --lease 100s key -- true
check_not 'and not without' lock 30s
redis 1 SET old 1 >/dev/null
for i in 1 2 3 4 5; do "$hurt" --dir "$dir" "$i" kill >/dev/null; done
expect 'up after all died starts anew' 0 'starting anew, empty' env QUORLOCK=no-such-command "$up" --dir "$dir" --nodes 1 --port-base "$base"
check 'and empty' has 1 old ''
check 'without the command it is not bootstrapped' has 1 quorlock:guard ''
expect 'which up says' 0 'not bootstrapped, because there is no quorlock' env QUORLOCK=no-such-command "$up" --dir "$work/other4" --nodes 1 --port-base $((base + 1)) --max-lease 20s
remedy=$(sed -n 's|^  .*/build/bin/quorlock \(bootstrap .*\)$|\1|p' "$work/out")
# shellcheck disable=SC2086
check 'and how that is made up for' "$QUORLOCK" $remedy
check 'which does it' grep -q '|20000|' <<<"$("$cli" -p $((base + 1)) GET quorlock:guard)"
"$down" --dir "$work/other4" >/dev/null
check_not 'up whose output cannot be written fails' sh -c '"$1" --dir "$2" --nodes 1 --port-base "$3" >/dev/full' sh "$up" "$work/other5" $((base + 1))
check 'and the nodes are bootstrapped all the same' grep -q '|30000|' <<<"$("$cli" -p $((base + 1)) GET quorlock:guard)"
"$down" --dir "$work/other5" >/dev/null
# An extra file in the folder survives down.
touch "$dir/note"
expect 'down ends the one' 0 'down: 1 server ended' "$down" --dir "$dir"
check 'a file that is not ours is left' test -e "$dir/note"
rm -rf "$dir"

# Interrupted while it starts
"$up" --dir "$work/other3" --nodes 5 --port-base "$base" >/dev/null 2>&1 &
blocker=$!
for ((i = 0; i < 500; i++)); do if [ -e "$work/other3/node-2/pid" ] || dead "$blocker"; then break; fi; sleep 0.002; done
kill -TERM "$blocker" 2>/dev/null || :
got=0 && wait "$blocker" || got=$?
blocker=''
# It may have been ready before the signal came: then it stands, whole.
if [ "$got" = 0 ]; then
    expect 'not interrupted: all up' 0 '5 of 5 up' "$status" --dir "$work/other3"
    "$down" --dir "$work/other3" >/dev/null
else
    check 'an interrupted up leaves no folder' test ! -e "$work/other3"
    check 'nor a server' none_left
fi

verdict
