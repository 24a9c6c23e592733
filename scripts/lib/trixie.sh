# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154
#
# `scripts/test trixie`: the same tree in a Debian 13 root, with hiredis 1.x, Redis 8 and Valkey. Sourced by
# scripts/test, after roots.sh.

TRIXIE_PACKAGES='gcc libc6-dev cmake ninja-build pkgconf libhiredis-dev libevent-dev libjansson-dev libcmocka-dev libssl-dev liblua5.1-0-dev openssl
    redis-server valkey-server procps python3-minimal python3 python3-prometheus-client systemtap-sdt-dev
    libuv1-dev libsystemd-dev libglib2.0-dev'

# The part that runs as root.
trixie_prepare() {
    root_make trixie "$ROOTS_CACHE/trixie"
    # shellcheck disable=SC2086
    root_install "$ROOTS_CACHE/trixie" $TRIXIE_PACKAGES
}
trixie_work() {
    local dir=$ROOTS_CACHE/trixie status=0
    root_copy "$dir/src/quorlock"
    echo 'trixie: versions'
    root_in "$dir" sh -c 'redis-server --version; valkey-server --version; pkgconf --modversion hiredis; gcc --version | head -n 1'
    echo 'trixie: unit and redis with redis-server'
    root_in "$dir" /src/quorlock/scripts/test --no-setup unit redis || status=1
    echo 'trixie: redis with valkey-server'
    root_in "$dir" REDIS_SERVER=valkey-server /src/quorlock/scripts/test --no-setup redis || status=1
    return "$status"
}

stage_trixie() {
    local log=$out/trixie.log start=$SECONDS status=0 lines passed failed skipped
    if [ -n "$impossible" ]; then roots_cannot trixie "$impossible" 0 && return; fi
    echo "trixie: in $ROOTS_CACHE/trixie; the log is $log"
    as_root "$ROOTS_PREPARE_S" trixie_prepare >"$log" 2>&1 7>&- || status=$?
    if [ "$status" = 0 ]; then as_root "$ROOTS_WORK_S" trixie_work >>"$log" 2>&1 7>&- || status=$?; fi
    # Both runs inside print the line that counts tests.
    lines=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" || :)
    read -r passed failed skipped <<<"$(awk '{ p += $1; f += $3; s += $5 } END { print p + 0, f + 0, s + 0 }' <<<"$lines")"
    if [ "$status" = 0 ] && [ "$(grep -c . <<<"$lines")" = 2 ]; then
        grep -E '^(Redis|Valkey) server|^[0-9.]+$' "$log" || :
        say "ok    trixie, $((SECONDS - start)) s"
        result label trixie "$passed" "$failed" "$skipped" $((SECONDS - start))
    else
        roots_ended trixie "$status" $((SECONDS - start)) "$log"
        # The failure itself was counted as a test.
        [ -z "$lines" ] || result label trixie/tests "$passed" "$((failed > 0 ? failed - 1 : 0))" "$skipped" $((SECONDS - start))
    fi
}
