# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154
#
# `scripts/test trixie`: the same tree in a Debian 13 root, with hiredis 1.x,
# Redis 8 and Valkey. Sourced by scripts/test.
#
# All of it happens in a mount and a process namespace of its own: however it
# ends, no mount, no server and no test process can stay behind.

TRIXIE_PACKAGES='gcc libc6-dev cmake ninja-build pkgconf libhiredis-dev libevent-dev libjansson-dev libcmocka-dev libssl-dev liblua5.1-0-dev openssl
    redis-server valkey-server procps python3-minimal python3 python3-prometheus-client systemtap-sdt-dev'
TRIXIE_MIRROR=${DEBIAN_MIRROR:-http://deb.debian.org/debian}

trixie_check() {
    trixie_sudo=()
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || {
            echo 'scripts/test: trixie needs root (debootstrap, chroot) and there is no sudo; run it as root' >&2
            exit 1
        }
        trixie_sudo=(sudo --)
    fi
    command -v debootstrap >/dev/null || {
        echo 'scripts/test: debootstrap is not installed; run scripts/setup --for trixie' >&2
        exit 1
    }
}

# trixie_make DIR: the root, whole or not at all. Kept for the next time.
trixie_make() {
    local dir=$1
    if [ ! -e "$dir/.quorlock-base" ]; then
        rm -rf --one-file-system -- "$dir"
        mkdir -p -- "$dir"
        debootstrap --variant=minbase trixie "$dir" "$TRIXIE_MIRROR"
        printf '#!/bin/sh\nexit 101\n' >"$dir/usr/sbin/policy-rc.d"
        chmod 755 "$dir/usr/sbin/policy-rc.d"
        touch "$dir/.quorlock-base"
    fi
    if [ "$(cat "$dir/.quorlock-packages" 2>/dev/null)" != "$TRIXIE_PACKAGES" ]; then
        # shellcheck disable=SC2086
        trixie_in "$dir" sh -c 'apt-get -q -y update && apt-get -q -y install --no-install-recommends "$@" && apt-get clean' \
            sh $TRIXIE_PACKAGES
        printf '%s\n' "$TRIXIE_PACKAGES" >"$dir/.quorlock-packages"
    fi
}

# trixie_in DIR COMMAND...: inside, with /proc and /dev.
trixie_in() {
    local dir=$1
    shift
    # shellcheck disable=SC2016
    unshare --mount --propagation private --pid --fork --kill-child sh -c '
        dir=$1
        shift
        mount -t proc proc "$dir/proc" && mount --rbind /dev "$dir/dev" || exit 1
        cp -L /etc/resolv.conf "$dir/etc/resolv.conf" 2>/dev/null || :
        exec chroot "$dir" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
            DEBIAN_FRONTEND=noninteractive TERM=dumb http_proxy="${http_proxy:-}" "$@"
    ' sh "$dir" "$@" </dev/null
}

# trixie_copy DIR: this tree, without what was built here. What was built there
# stays, and file times are kept, so only what changed is built again.
trixie_copy() {
    local dir=$1/src/quorlock
    mkdir -p -- "$dir"
    find "$dir" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf -- {} +
    tar -C "$root" --exclude=./build --exclude='./build-*' --exclude=./.git -cf - . | tar -C "$dir" --no-same-owner -xf -
}

# The part that runs as root. LABELS are separated by commas.
trixie_main() {
    local dir=$1 status=0
    set -e
    trixie_make "$dir"
    trixie_copy "$dir"
    echo 'trixie: versions'
    trixie_in "$dir" sh -c 'redis-server --version; valkey-server --version; pkgconf --modversion hiredis; gcc --version | head -n 1'
    echo 'trixie: unit and redis with redis-server'
    trixie_in "$dir" /src/quorlock/scripts/test --no-setup unit redis || status=1
    echo 'trixie: redis with valkey-server'
    trixie_in "$dir" REDIS_SERVER=valkey-server /src/quorlock/scripts/test --no-setup redis || status=1
    return "$status"
}

stage_trixie() {
    local dir=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/quorlock/trixie log=$out/trixie.log start=$SECONDS status=0 lines passed failed skipped
    echo "trixie: in $dir; the log is $log"
    ${trixie_sudo[@]+"${trixie_sudo[@]}"} bash -euo pipefail -c '
        root=$1
        . "$root/scripts/lib/trixie.sh"
        mkdir -p -- "$2"
        trixie_main "$2"
    ' bash "$root" "$dir" >"$log" 2>&1 7>&- || status=$?
    # Both runs inside end in the line that counts.
    lines=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" || :)
    read -r passed failed skipped <<<"$(awk '{ p += $1; f += $3; s += $5 } END { print p + 0, f + 0, s + 0 }' <<<"$lines")"
    if [ "$status" = 0 ] && [ "$(grep -c . <<<"$lines")" = 2 ]; then
        grep -E '^(Redis|Valkey) server|^[0-9.]+$' "$log" || :
        say "ok    trixie, $((SECONDS - start)) s"
        result label trixie "$passed" "$failed" "$skipped" $((SECONDS - start))
    else
        stage_bad trixie $((SECONDS - start)) "$log"
        # The failure itself was counted as one.
        result label trixie/tests "$passed" "$((failed > 0 ? failed - 1 : 0))" "$skipped" $((SECONDS - start))
    fi
}
