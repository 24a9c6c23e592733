#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A client for cluster/chaos, with redis-cli. quorlock-chaos(7) describes its lines. Its lock is a plain SET NX PX on a majority.
#
# cluster/chaos --client 'bash example.sh'
RELEASE="return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1])"
IFS=, read -ra nodes <<<"$QUORLOCK_CHAOS_NODES"
IFS=, read -ra keys <<<"$QUORLOCK_CHAOS_KEYS"
stop='' value='' time_us='' hello_us='' then_us=''

# Sets $picked to a number of the range MIN-MAX.
pick() { picked=$((${1%-*} + (RANDOM << 15 | RANDOM) % (${1#*-} - ${1%-*} + 1))); }

# Microseconds of some clock: bash hides CLOCK_MONOTONIC. EPOCHREALTIME has a point or, in some languages, a comma.
now_us() { now=${EPOCHREALTIME/[.,]/} now=$((now - then_us + hello_us)); }

# Writes one line of the history; sets $time_us to its time and $value to the value of the register.
say() {
    local answer
    printf '{"event":"%s"%s}\n' "$1" "$2"
    read -ra answer || exit 1 # the harness is gone
    time_us=${answer[1]} value=${answer[2]:-}
    if [ "${answer[-1]}" = stop ]; then stop=1; fi
}

# Sets $votes to the number of nodes that say yes.
everywhere() {
    local node
    votes=0
    for node in "${nodes[@]}"; do
        if [ "$(timeout 0.2 redis-cli -h "${node%:*}" -p "${node##*:}" "$@" 2>&1 </dev/null)" = OK ]; then
            votes=$((votes + 1))
        fi
    done
}

work() { # END KEY
    local key=",\"key\":\"$2\"" until_us
    say granted "$key,\"deadline_us\":$1"
    say read "$key"
    pick "$QUORLOCK_CHAOS_HOLD_MS" && now_us && until_us=$((now + picked * 1000))
    while now_us && [ "$now" -lt "$1" ] && [ "$now" -lt "$until_us" ] && [ -z "$stop" ]; do
        say write "$key,\"value\":$((value + 1))"
        sleep 0.01
    done
    if now_us && [ "$now" -lt "$1" ]; then say released "$key"; else say lost "$key"; fi # before any node hears of it
}

operate() { # KEY OWNER
    local end_us lease_ms
    say invoke ",\"key\":\"$1\""
    pick "$QUORLOCK_CHAOS_LEASE_MS" && lease_ms=$picked
    now_us && end_us=$((now + lease_ms * 990 - 2000)) # less what clocks may differ by
    everywhere SET "$1" "$2" NX PX "$lease_ms"
    if now_us && [ "$votes" -gt $((${#nodes[@]} / 2)) ] && [ "$now" -lt "$end_us" ]; then
        work "$end_us" "$1"
    else
        say refused ",\"key\":\"$1\",\"status\":\"HELD\""
    fi
    everywhere EVAL "$RELEASE" 1 "$1" "$2"
}

RANDOM=$((QUORLOCK_CHAOS_SEED % 32768))
# A signal would end redis-cli, too, in the middle of a release.
say hello ',"version":1,"program":"example.sh","stop":"answer"'
hello_us=$time_us then_us=${EPOCHREALTIME/[.,]/}
while [ -z "$stop" ]; do
    operate "${keys[RANDOM % ${#keys[@]}]}" "$$-$SRANDOM-$RANDOM"
    pick "$QUORLOCK_CHAOS_THINK_MS" && sleep "$(printf '0.%03d' "$picked")"
done
