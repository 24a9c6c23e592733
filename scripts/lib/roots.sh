# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154
#
# Debian systems of other versions, in folders that are kept for the next time. Sourced by scripts/test.
#
# What runs in one has a mount and a process namespace of its own: however it ends, no mount, no server and no process
# can stay behind.

ROOTS_MIRROR=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
ROOTS_CACHE=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/quorlock

# roots_check: or ends the script. Sets $roots_sudo.
roots_check() {
    roots_sudo=()
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || {
            echo 'scripts/test: trixie and packages need root (debootstrap, chroot) and there is no sudo; run it as root' >&2
            exit 1
        }
        roots_sudo=(sudo --)
    fi
    command -v debootstrap >/dev/null || {
        echo 'scripts/test: debootstrap is not installed; run scripts/setup --for trixie' >&2
        exit 1
    }
}

# as_root FUNCTION ARGUMENTS...: of the files in scripts/lib.
as_root() {
    ${roots_sudo[@]+"${roots_sudo[@]}"} bash -euo pipefail -c '
        root=$1 ROOTS_MIRROR=$2 ROOTS_CACHE=$3
        shift 3
        mkdir -p -- "$ROOTS_CACHE"
        for part in roots trixie packages; do . "$root/scripts/lib/$part.sh"; done
        "$@"
    ' bash "$root" "$ROOTS_MIRROR" "$ROOTS_CACHE" "$@"
}

# root_make RELEASE DIR: what every system of that version has and nothing else, whole or not at all.
root_make() {
    local dir=$2
    [ ! -e "$dir/.quorlock-base" ] || return 0
    rm -rf --one-file-system -- "$dir"
    mkdir -p -- "$dir"
    debootstrap --variant=minbase "$1" "$dir" "$ROOTS_MIRROR"
    printf '#!/bin/sh\nexit 101\n' >"$dir/usr/sbin/policy-rc.d"
    chmod 755 "$dir/usr/sbin/policy-rc.d"
    touch "$dir/.quorlock-base"
}

# root_install DIR PACKAGE...: unless it was done.
root_install() {
    local dir=$1
    shift
    [ "$(cat "$dir/.quorlock-packages" 2>/dev/null)" != "$*" ] || return 0
    root_apt "$dir" install "$@"
    printf '%s\n' "$*" >"$dir/.quorlock-packages"
}

# root_apt DIR VERB PACKAGE...: what apt-get says only where it fails, and then its end.
root_apt() {
    local dir=$1 log=$1.apt.log
    shift
    root_in "$dir" sh -c 'apt-get -q -y update && apt-get -q -y --no-install-recommends "$@" && apt-get clean' sh "$@" >"$log" 2>&1 || {
        tail -n 40 "$log"
        return 1
    }
}

# root_in DIR COMMAND...: inside, with /proc and /dev. What it writes there stays.
root_in() {
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

# root_try DIR FOLDER COMMAND...: inside a copy that is gone afterwards, in which /work is that folder of ours. Packages
# that are fetched are kept beside DIR.
root_try() {
    local dir=$1 folder=$2
    shift 2
    mkdir -p -- "$dir.fetched/partial" "$folder/root"
    # shellcheck disable=SC2016
    unshare --mount --propagation private bash -euo pipefail -c '
        root=$1 dir=$2 folder=$3
        shift 3
        . "$root/scripts/lib/roots.sh"
        mount -t tmpfs none "$folder/root"
        mkdir "$folder/root/upper" "$folder/root/work" "$folder/root/whole"
        # Not every system has overlays.
        mount -t overlay -o "lowerdir=$dir,upperdir=$folder/root/upper,workdir=$folder/root/work" overlay \
            "$folder/root/whole" 2>/dev/null || cp -a "$dir/." "$folder/root/whole"
        mkdir "$folder/root/whole/work"
        mount --bind "$folder" "$folder/root/whole/work"
        mount --bind "$dir.fetched" "$folder/root/whole/var/cache/apt/archives"
        root_in "$folder/root/whole" "$@"
    ' bash "$root" "$dir" "$folder" "$@"
}

# root_copy DIR: this tree, without what was built here. What was built there stays, and file times are kept, so only
# what changed is built again.
root_copy() {
    mkdir -p -- "$1"
    find "$1" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf -- {} +
    tar -C "$root" --exclude=./build --exclude='./build-*' --exclude=./.git -cf - . | tar -C "$1" --no-same-owner -xf -
}
