#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# cluster/chaos with real servers: a short run must be sound, broken rules must be caught, an end leaves nothing.
#
# usage: tests/chaos/test_chaos.sh BUILD_BIN [TEST...]
# QUORLOCK_CHAOS_SECONDS sets the length of the sound run (default 15), QUORLOCK_CHAOS_OPTIONS adds options to
# every run.
set -euo pipefail
here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
chaos=$here/../../cluster/chaos
check=$here/../../cluster/check
if [ $# = 0 ] || [ ! -x "$1/chaos_client" ]; then
    echo "usage: $0 BUILD_BIN [TEST...], the folder of chaos_client" >&2
    exit 64
fi
seconds=${QUORLOCK_CHAOS_SECONDS:-15}
read -ra more <<<"${QUORLOCK_CHAOS_OPTIONS:-}"
common=(--bin "$1" "${more[@]}")
work=$(mktemp -d)
started=''
tidy() {
    [ -z "$started" ] || kill "$started" 2>/dev/null || :
    rm -rf -- "$work"
}
trap tidy EXIT

failed=0
all=()
not_ok() {
    echo "FAILED: $*" >&2
    failed=$((failed + 1))
}

# value FILE PATH...: a number in the verdict that check --json printed.
value() { python3 -c 'import json, sys
at = json.load(open(sys.argv[1]))
for name in sys.argv[2:]:
    at = at.get(name, 0)
print(at)' "$@"; }

# expect_status WANTED COMMAND...
expect_status() {
    local wanted=$1 status=0
    shift
    "$@" >"$work/out" 2>&1 || status=$?
    [ "$status" = "$wanted" ] || {
        not_ok "status $status instead of $wanted: ${*##*/}"
        tail -n 20 "$work/out" >&2
    }
}

test_the_plan_follows_from_the_seed() {
    "$chaos" "${common[@]}" --plan --seed 5 --seconds 60 >"$work/plan-1"
    "$chaos" "${common[@]}" --plan --seed 5 --seconds 60 >"$work/plan-2"
    "$chaos" "${common[@]}" --plan --seed 6 --seconds 60 >"$work/plan-3"
    cmp -s "$work/plan-1" "$work/plan-2" || not_ok "one seed, two plans"
    ! cmp -s "$work/plan-1" "$work/plan-3" || not_ok "two seeds, one plan"
    [ "$(wc -l <"$work/plan-1")" -ge 15 ] || not_ok "a minute has only $(wc -l <"$work/plan-1") faults"
}

test_wrong_usage_is_told() {
    expect_status 64 "$chaos" "${common[@]}" --nodes 0
    grep -q "'0' is not a number from 1 to 9" "$work/out" || not_ok "no word of the wrong number of nodes"
    expect_status 64 "$chaos" "${common[@]}" --faults flood
    grep -q "'flood' is no fault" "$work/out" || not_ok "no word of the unknown fault"
    expect_status 64 "$chaos" "${common[@]}" --faults flush --guard off
    grep -q -- '--profile outside' "$work/out" || not_ok "no remedy for a fault outside the claim"
    expect_status 64 "$chaos" "${common[@]}" --faults reconfigure --guard off
    grep -q 'prove nothing (reconfigure: there is no guard' "$work/out" || not_ok "a run without a fault"
    expect_status 64 "$chaos" --bin "$work" --plan
    expect_status 64 "$chaos" "${common[@]}" --lease-ms 3000
    expect_status 64 "$chaos" "${common[@]}" --report /nonexistent/report.html
    expect_status 64 "$chaos" "${common[@]}" --tls --executed "$work"
}

test_faults_are_left_out_as_the_help_writes_it() {
    "$chaos" "${common[@]}" --plan --seed 5 --faults -kill,-wipe >"$work/plan" || not_ok "--faults -kill,-wipe"
    [ -s "$work/plan" ] || not_ok "no plan without kill and wipe"
    ! grep -Eq ' s  (kill|wipe) ' "$work/plan" || not_ok "kill or wipe in spite of -kill,-wipe"
    "$chaos" "${common[@]}" --plan --seed 5 --faults all,-pause >"$work/plan" || not_ok "--faults all,-pause"
    expect_status 64 "$chaos" "${common[@]}" --plan --faults -flood
    grep -q "'-flood' is no fault" "$work/out" || not_ok "no word of the unknown fault that is left out"
    expect_status 64 "$chaos" "${common[@]}" --plan --faults --seed 5
}

test_output_that_nobody_takes() {
    local status=0 gone
    # A pipe whose reader has left already, as head has when it has seen enough.
    exec {gone}> >(:)
    wait $!
    (
        exec >&"$gone"
        exec "$chaos" "${common[@]}" --plan --seed 5 2>"$work/err"
    ) || status=$?
    exec {gone}>&-
    [ "$status" = 141 ] || not_ok "status $status of a plan without a reader"
    [ ! -s "$work/err" ] || not_ok "$(tail -n 1 "$work/err")"
    status=0
    "$chaos" "${common[@]}" --seconds 3 >/dev/full 2>"$work/err" || status=$?
    [ "$status" = 74 ] || not_ok "status $status where standard output is full"
    grep -qx 'chaos: standard output: No space left on device' "$work/err" || not_ok "it says $(tail -n 1 "$work/err")"
    expect_status 64 "$chaos" "${common[@]}" --seconds 3 --report "$work"
    grep -qx "cluster/chaos: --report: $work is a folder, not a file" "$work/out" || not_ok "it says $(tail -n 1 "$work/out")"
}

test_a_run_inside_the_claim_is_sound() {
    expect_status 0 "$chaos" "${common[@]}" --seconds "$seconds" --seed 11 --history "$work/sound" --report "$work/sound.html"
    cat "$work/out"
    expect_status 0 "$check" --json "$work/sound"
    cp "$work/out" "$work/verdict"
    # Far below what it does, and enough that something was tried.
    [ "$(value "$work/verdict" counts grants)" -ge 10 ] || not_ok "only $(value "$work/verdict" counts grants) grants"
    [ "$(value "$work/verdict" counts writes)" -ge 10 ] || not_ok "only $(value "$work/verdict" counts writes) writes"
    grep -q '"event":"healed"' "$work/sound" || not_ok "no mark of healing in the history"
    grep -q '"event":"fault"' "$work/sound" || not_ok "no fault in the history"
    grep -q '<svg id="overview"' "$work/sound.html" || not_ok "no timeline in the report"
    ! grep -Eq '(src|href)="?(https?:|//)' "$work/sound.html" || not_ok "the report needs something from elsewhere"
    [ "$(stat -c %s "$work/sound.html")" -lt 2000000 ] || not_ok "the report is larger than 2 MB"
}

test_a_run_over_tls_is_sound() {
    expect_status 0 "$chaos" "${common[@]}" --tls --seconds 10 --seed 12 --history "$work/tls"
    cat "$work/out"
    expect_status 0 "$check" --json "$work/tls"
    [ "$(value "$work/out" counts grants)" -ge 5 ] || not_ok "only $(value "$work/out" counts grants) grants over TLS"
}

# Servers that come back empty, and no guard that keeps them from voting: the judge must see two owners at once.
test_empty_restarts_without_the_guard_are_caught() {
    local seed
    # How many meet is up to the machine: a few seeds, one of which must show it.
    for seed in 3 4 5 6; do
        expect_status 0 "$chaos" "${common[@]}" --guard off --profile outside --faults wipe --seconds 12 --seed "$seed" \
            --keys 3 --clients 7 --hold-ms 300-2000 --max-lease-ms 6000 --lease-ms 4000-6000 --history "$work/unguarded"
        cp "$work/out" "$work/outside"
        "$check" --json "$work/unguarded" >"$work/out" 2>&1 || :
        [ "$(value "$work/out" violations overlap)" -lt 2 ] || break
    done
    expect_status 1 "$check" --json "$work/unguarded"
    grep -q 'outside the claim: .* overlap' "$work/outside" || not_ok "the outside profile shows no overlap"
    [ "$(value "$work/out" violations overlap)" -ge 2 ] || not_ok "only $(value "$work/out" violations overlap) overlaps without the guard"
}

# Half of the nodes instead of more than half, and a network divided in two.
test_half_a_quorum_is_caught() {
    if [ ! -x "$1/chaos_client_controls" ]; then
        echo "skipped: half a quorum (chaos_client_controls is not built)"
        return
    fi
    case $("$chaos" "${common[@]}" --plan --faults divide --seconds 10 --seed 3) in
    '')
        echo "skipped: half a quorum (no packet filter to divide the network with)"
        return
        ;;
    esac
    QUORLOCK_CHAOS_BREAK=half-quorum expect_status 1 "$chaos" "${common[@]}" --faults divide,split,cut --nodes 4 \
        --clients 6 --keys 1 --seconds 10 --seed 3 --history "$work/half"
    expect_status 1 "$check" --json "$work/half"
    [ "$(value "$work/out" violations overlap)" -ge 3 ] || not_ok "only $(value "$work/out" violations overlap) overlaps with half a quorum"
}

# A client stopped between its last check and its write: the token refuses the write, without one it does damage.
test_a_paused_writer_is_refused_by_its_token() {
    local seed stale lost paused=(--faults pause-writer --keys 1 --clients 8 --seconds 10 --seed 12)
    expect_status 0 "$chaos" "${common[@]}" --fence "${paused[@]}" --seed 12 --history "$work/fenced"
    expect_status 0 "$check" --json "$work/fenced"
    [ "$(value "$work/out" counts "writes refused")" -ge 1 ] || not_ok "no stale write was refused"
    # Whether a paused writer meets another is up to the machine: a few seeds, one of which must show it.
    for seed in 12 13 14 15 16; do
        expect_status 0 "$chaos" "${common[@]}" --no-fence --profile outside "${paused[@]}" --seed "$seed" \
            --history "$work/unfenced"
        if "$check" --json "$work/unfenced" >"$work/out"; then continue; fi
        stale=$(value "$work/out" violations stale-write)
        lost=$(value "$work/out" violations lost-update)
        if [ $((stale + lost)) -ge 1 ]; then return; fi
    done
    not_ok "no stale write was accepted, and no update lost, without tokens"
}

# Every process of our run, servers and clients too: they inherit a mark in their environment.
processes() { grep -lzs "QUORLOCK_TEST_MARK=$work" /proc/[0-9]*/environ | cut -d / -f 3 || :; }

test_an_end_leaves_nothing() {
    local signal status mode
    mkdir -p "$work/tmp"
    for mode in '' --plain; do
        for signal in TERM KILL; do
            # shellcheck disable=SC2086
            TMPDIR=$work/tmp QUORLOCK_TEST_MARK=$work "$chaos" "${common[@]}" $mode --seconds 60 --seed 4 --history "$work/never" \
                --report "$work/never.html" >"$work/out" 2>&1 &
            started=$!
            wait_for clients_run || not_ok "the run did not start"
            kill "-$signal" "$started"
            status=0
            wait "$started" 2>/dev/null || status=$?
            started=''
            [ "$status" = $((128 + $(kill -l "$signal"))) ] || not_ok "ended by $signal with status $status"
            wait_for nothing_left || not_ok "after $signal ${mode:-in a namespace}: left are $(processes | tr '\n' ' ')"
            [ -z "$(ls -A "$work/tmp")" ] || not_ok "after $signal a folder is left: $(ls -A "$work/tmp")"
            if [ -e "$work/never" ] || [ -e "$work/never.html" ]; then not_ok "an interrupted run wrote files"; fi
        done
    done
}

# Both supervisors, three servers, the proxy and five clients.
clients_run() { [ "$(processes | wc -l)" -ge 11 ]; }
nothing_left() { [ -z "$(processes)" ]; }
wait_for() {
    local until=$((SECONDS + 30))
    until "$@"; do
        [ "$SECONDS" -lt "$until" ] || return 1
        sleep 0.05
    done
}

bin=$1
shift
[ $# -gt 0 ] || mapfile -t all < <(declare -F | sed -n 's/^declare -f \(test_.*\)/\1/p')
for name in "$@" "${all[@]}"; do
    before=$failed
    "$name" "$bin"
    [ "$failed" != "$before" ] || echo "ok: ${name#test_}"
done
[ "$failed" = 0 ] || exit 1
