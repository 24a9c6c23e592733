# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154
#
# `scripts/test trixie forky`: the same tree in a root of that Debian release, with the Redis and the Valkey that it has.
# Sourced by scripts/test, after roots.sh.

RELEASES_PACKAGES='gcc libc6-dev cmake ninja-build pkgconf libhiredis-dev libevent-dev libjansson-dev libcmocka-dev libssl-dev liblua5.1-0-dev openssl
    valkey-server procps python3-minimal python3 python3-prometheus-client python3-yaml systemtap-sdt-dev
    libuv1-dev libsystemd-dev libglib2.0-dev'

# releases_redis RELEASE: prints the packages of the newest Redis for this release.
releases_redis() {
    case $1 in
    forky) echo redis-server/experimental redis-tools/experimental ;;
    *) echo redis-server ;;
    esac
}

# The part that runs as root.
releases_prepare() {
    local dir=$ROOTS_CACHE/$1
    root_make "$1" "$dir"
    # Testing and experimental change every day: that their packages do not fit together is no fault of our tree.
    # shellcheck disable=SC2046,SC2086
    root_install "$dir" $RELEASES_PACKAGES $(releases_redis "$1") || {
        [ "$1" = forky ] || return
        root_cannot "packages cannot be installed: $(grep -m 1 '^E: ' -- "$dir.apt.log")"
    }
}
releases_work() {
    local release=$1 dir=$ROOTS_CACHE/$1 labels=redis status=0
    # New servers change nothing for the unit tests, which trixie runs with hiredis 1.x.
    [ "$release" != trixie ] || labels='unit redis'
    root_copy "$dir/src/quorlock"
    echo "$release: versions"
    root_in "$dir" sh -c 'redis-server --version; valkey-server --version; pkgconf --modversion hiredis; gcc --version | head -n 1'
    echo "$release: $labels with redis-server"
    # shellcheck disable=SC2086
    root_in "$dir" /src/quorlock/scripts/test --no-setup $labels || status=1
    echo "$release: redis with valkey-server"
    root_in "$dir" REDIS_SERVER=valkey-server /src/quorlock/scripts/test --no-setup redis || status=1
    return "$status"
}

stage_release() {
    local release=$1 log=$out/$1.log start=$SECONDS status=0 lines passed failed skipped
    if [ -n "$impossible" ]; then roots_cannot "$release" "$impossible" 0 && return; fi
    echo "$release: in $ROOTS_CACHE/$release; the log is $log"
    as_root "$ROOTS_PREPARE_S" releases_prepare "$release" >"$log" 2>&1 7>&- || status=$?
    if [ "$status" = 0 ]; then as_root "$ROOTS_WORK_S" releases_work "$release" >>"$log" 2>&1 7>&- || status=$?; fi
    # Both runs inside print the line that counts tests.
    lines=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" || :)
    read -r passed failed skipped <<<"$(awk '{ p += $1; f += $3; s += $5 } END { print p + 0, f + 0, s + 0 }' <<<"$lines")"
    if [ "$status" = 0 ] && [ "$(grep -c . <<<"$lines")" = 2 ]; then
        grep -E '^(Redis|Valkey) server|^[0-9.]+$' "$log" || :
        say "ok    $release, $((SECONDS - start)) s"
        result label "$release" "$passed" "$failed" "$skipped" $((SECONDS - start))
    else
        roots_ended "$release" "$status" $((SECONDS - start)) "$log"
        # The failure itself was counted as a test.
        [ -z "$lines" ] || result label "$release/tests" "$passed" "$((failed > 0 ? failed - 1 : 0))" "$skipped" $((SECONDS - start))
    fi
}
