#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The faults of the network of cluster/hurt, with a real server in a network of its own: test_network.sh PATH_TO_quorlock.
# Where the machine permits none, or no packet filter in it, it is skipped.
set -euo pipefail

root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
export QUORLOCK=${1:?test_network.sh PATH_TO_quorlock}
if [ -z "${QUORLOCK_TEST_INSIDE:-}" ]; then
    alone=(unshare --net)
    [ "$EUID" = 0 ] || alone+=(--map-root-user)
    if ! "${alone[@]}" sh -c 'ip link set lo up && iptables -A INPUT -p tcp -d 127.0.0.1 --dport 1 -j DROP' 2>/dev/null; then
        echo 'skipped: no network of its own here, or no ip and iptables'
        exit 0
    fi
    QUORLOCK_TEST_INSIDE=1 exec "${alone[@]}" "$0" "$@"
fi
ip link set lo up
work=$(mktemp -d)
# shellcheck source=tests/cluster/lib.sh
. "$root/tests/cluster/lib.sh"
trap '"$root/cluster/down" --dir "$work/c" >/dev/null || :; rm -rf -- "$work"' EXIT
"$root/cluster/up" --dir "$work/c" --nodes 1 --port-base 6390 >/dev/null
hurt() { "$root/cluster/hurt" --dir "$work/c" 1 "$1" >"$work/said" 2>&1; }
status() { "$root/cluster/status" --dir "$work/c" || :; }
rules() { iptables -S | grep -c 6390 || :; }

# ping SECONDS: succeeds if the server answers in that time.
ping() {
    local line=''
    exec 8<>/dev/tcp/127.0.0.1/6390 && printf 'PING\r\n' >&8
    IFS= read -r -t "$1" line <&8 || :
    exec 8>&-
    [ "${line%$'\r'}" = +PONG ]
}
dropped() { iptables -L -v -x -n | awk '/DROP/ && /6390/ { n += $1 } END { exit !n }'; }

hurt heal && check 'heal of a sound network' grep -q 'had a sound network' "$work/said"
hurt one-way
check 'one way: it is connected, and no reply comes' eval '! ping 1'
check 'one way: the replies are dropped' dropped
check 'status names it' grep -q 'silent.*; network: one-way' <(status)
hurt heal
check 'healed' ping 30
check 'healed: no rule is left' [ "$(rules)" = 0 ]

hurt loss
check 'loss: both ways' [ "$(rules)" = 2 ]
until dropped; do ping 30 || :; done
ok 'loss: packets are lost'

if hurt delay; then
    check 'delay: in place of the loss' grep -q '; network: delay' <(status)
    begin=${EPOCHREALTIME/[.,]/}
    ping 30 || bad 'delay: it answers'
    # Four packets that wait for each other: two to connect, one for the question and one for the answer.
    check 'delay: an answer takes 400 ms' [ $((${EPOCHREALTIME/[.,]/} - begin)) -ge 390000 ]
    hurt restart && check 'a restart heals' [ "$(rules)" = 0 ]
    hurt delay
else
    check 'no delay here' grep -q 'permits no delay' "$work/said"
    hurt loss
fi
"$root/cluster/down" --dir "$work/c" >/dev/null
check 'down leaves no rule' [ "$(rules)" = 0 ]
while grep -qzs "$work/c/node-1/network-delay" /proc/[0-9]*/cmdline; do sleep 0.05; done
ok 'down leaves no process'
verdict
