# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034
#
# Debian systems of other versions, in folders that are kept for the next time. Sourced by scripts/test.
#
# What runs in one has a mount and a process namespace of its own: however it ends, no mount, no server and no process
# can stay behind.

ROOTS_CACHE=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/quorlock
# So long a stage may prepare its roots, and work in them, in seconds.
ROOTS_PREPARE_S=600
ROOTS_WORK_S=1500
# In megabytes, of two releases with what makes packages, and the suite on one of them.
ROOTS_SPACE_MB=5000
# The exit status of what cannot be done on this machine or network, and is no fault of the tree. The last line that
# begins with "cannot: " says why.
ROOTS_CANNOT=75

# roots_check: sets $impossible to why this machine cannot have such systems, or ''; $roots_sudo and $ROOTS_MIRRORS.
roots_check() {
    local said
    impossible='' roots_sudo=()
    if [ "$(id -u)" != 0 ]; then
        roots_sudo=(sudo --)
        if ! command -v sudo >/dev/null; then
            impossible='they need root (debootstrap, chroot) and there is no sudo; run it as root'
        elif [ ! -t 0 ] && ! sudo -n true 2>/dev/null; then
            impossible='they need root (debootstrap, chroot), sudo wants a password and there is no terminal; run it as root'
        fi
    fi
    if [ -n "$impossible" ]; then
        return 0
    elif ! command -v debootstrap >/dev/null; then
        impossible='debootstrap is not installed; run scripts/setup --for trixie'
    elif ! ${roots_sudo[@]+"${roots_sudo[@]}"} unshare --mount --propagation private --pid --fork true 2>/dev/null; then
        impossible='mount and process namespaces are not permitted here'
    else
        ROOTS_MIRRORS=$(roots_mirrors)
        roots_proxy
        said=$(as_root 300 root_probe 2>&1 7>&-) && return
        impossible=$(sed -n 's/^cannot: //p' <<<"$said" | tail -n 1)
        if [ -n "$impossible" ]; then return 0; fi
        # That is our own mistake.
        printf 'scripts/test: %s\n' "$said" >&2
        exit 1
    fi
}

# roots_mirrors: $DEBIAN_MIRROR; else what the sources of this machine name, and then the one for all.
roots_mirrors() {
    if [ -n "${DEBIAN_MIRROR:-}" ]; then
        echo "$DEBIAN_MIRROR"
    else
        # shellcheck disable=SC2016
        apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
            awk '$1 ~ /^https?:/ && $2 !~ /[-\/]/ && $3 == "main" { sub("/$", "", $1); print $1 }' || :
        echo http://deb.debian.org/debian
    fi | awk '!seen[$0]++'
}

# roots_proxy: that of apt, which debootstrap does not know, unless the environment names one.
roots_proxy() {
    local proxy='' detect=''
    [ -z "${http_proxy:-}" ] || return 0
    eval "$(apt-config shell proxy Acquire::http::Proxy detect Acquire::http::Proxy-Auto-Detect 2>/dev/null)"
    if [ -z "$proxy" ] && [ -n "$detect" ]; then proxy=$("$detect" "${ROOTS_MIRRORS%%$'\n'*}" 2>/dev/null) || proxy=''; fi
    case $proxy in '' | DIRECT) ;; *) export http_proxy=$proxy ;; esac
}

# as_root SECONDS FUNCTION ARGUMENTS...: of the files in scripts/lib, in a mount and a process namespace that end with
# it. 137 when it took longer.
as_root() {
    local limit=$1
    shift
    # shellcheck disable=SC2016
    ${roots_sudo[@]+"${roots_sudo[@]}"} env "http_proxy=${http_proxy:-}" "https_proxy=${https_proxy:-}" \
        "no_proxy=${no_proxy:-}" timeout --foreground -s KILL "$limit" \
        unshare --mount --propagation private --pid --fork --kill-child bash -euo pipefail -c '
        root=$1
        for part in roots trixie packages; do . "$root/scripts/lib/$part.sh"; done
        ROOTS_MIRRORS=$2 ROOTS_CACHE=$3
        shift 3
        trap "exit 143" TERM
        mkdir -p -- "$ROOTS_CACHE" || root_cannot "there is no place for $ROOTS_CACHE; XDG_CACHE_HOME names another"
        "$@"
    ' bash "$root" "$ROOTS_MIRRORS" "$ROOTS_CACHE" "$@"
}

# roots_ended NAME STATUS SECONDS LOG: of a part of a stage that did not end well.
roots_ended() {
    local reason
    case $2 in
    "$ROOTS_CANNOT") reason=$(sed -n 's/^cannot: //p' -- "$4" | tail -n 1) ;;
    137) reason="it was ended after $3 s, for it took too long; the end of its log: $(tail -n 1 -- "$4")" ;;
    esac
    # A test that failed before counts.
    if [ -n "${reason:-}" ] && ! grep -q '^FAIL ' -- "$4"; then roots_cannot "$1" "$reason" "$3"; else stage_bad "$1" "$3" "$4"; fi
}

# roots_cannot NAME REASON SECONDS: a failure, but where --if-possible was given: there it is said so that nobody can
# overlook it.
roots_cannot() {
    if [ "$if_possible" = 0 ]; then
        echo "scripts/test: $1: $2" >&2
        result stage "$1" 0 1 0 "$3"
        return 0
    fi
    result stage "$1" 0 0 1 "$3"
    printf '%s\n' '' '************************************************************************' \
        "SKIPPED: $1 was NOT tested here: $2" '************************************************************************' '' >&2
}

# root_cannot REASON: ends what runs as root.
root_cannot() {
    echo "cannot: $*"
    exit "$ROOTS_CANNOT"
}

# root_probe: does once what making and using a root does again and again.
root_probe() {
    local dir free said
    dir=$(mktemp -d "$ROOTS_CACHE/probe.XXXXXX") || root_cannot "$ROOTS_CACHE cannot be written to"
    mkdir "$dir/proc" "$dir/dev"
    # shellcheck disable=SC2016
    if ! said=$(unshare --mount --propagation private sh -euc '
        mknod "$1/null" c 1 3
        : >"$1/null"
        cp /bin/true "$1/true"
        "$1/true"
        mount -t proc proc "$1/proc"
        mount --rbind /dev "$1/dev"
        chroot / true
    ' sh "$dir" 2>&1); then
        rm -r -- "$dir"
        root_cannot "mounts, device nodes or programs are not permitted in $ROOTS_CACHE: $said"
    fi
    rm -r -- "$dir"
    [ ! -e "$ROOTS_CACHE/trixie/.quorlock-base" ] || return 0
    free=$(df --output=avail -m "$ROOTS_CACHE" | tail -n 1)
    [ "$free" -ge "$ROOTS_SPACE_MB" ] || root_cannot "$ROOTS_CACHE has ${free// /} MB free; $ROOTS_SPACE_MB are needed"
}

# root_mirror RELEASE: the first of $ROOTS_MIRRORS that has it, and is Debian's.
root_mirror() {
    local mirror try
    for try in 1 2 3; do
        for mirror in $ROOTS_MIRRORS; do
            # It reads all, for else wget would fail.
            if wget -q -T 20 -t 1 -O - "$mirror/dists/$1/Release" | grep '^Origin: Debian$' >/dev/null; then
                echo "$mirror"
                return 0
            fi
        done
        sleep $((3 * try))
    done
    return 1
}

# root_make RELEASE DIR: what every system of that version has and nothing else, whole or not at all.
root_make() {
    local dir=$2 mirror
    mirror=$(root_mirror "$1") || mirror=''
    if [ ! -e "$dir/.quorlock-base" ]; then
        [ -n "$mirror" ] || root_cannot "no mirror of Debian $1 can be reached; tried $(paste -sd' ' <<<"$ROOTS_MIRRORS")"
        root_bootstrap "$1" "$dir" "$mirror"
    fi
    # It may be another one today. Without any, what there is must do.
    [ -n "$mirror" ] || return 0
    printf 'deb %s %s main\n' "$mirror" "$1" >"$dir/etc/apt/sources.list"
}

# root_bootstrap RELEASE DIR MIRROR: debootstrap knows nothing of our tree: where it fails the machine or the network does.
root_bootstrap() {
    local dir=$2 try
    for try in 1 2 3; do
        rm -rf --one-file-system -- "$dir"
        mkdir -p -- "$dir"
        if unshare --mount --propagation private timeout --foreground -k 10 300 debootstrap --variant=minbase "$@" >"$dir.log" 2>&1; then
            break
        fi
        tail -n 20 -- "$dir.log"
        [ "$try" -lt 3 ] || root_cannot "debootstrap $* fails: $(tail -n 1 -- "$dir.log")"
        sleep $((5 * try))
    done
    printf '#!/bin/sh\nexit 101\n' >"$dir/usr/sbin/policy-rc.d"
    chmod 755 "$dir/usr/sbin/policy-rc.d"
    printf '%s\n' 'Acquire::Retries "5";' 'Acquire::http::Timeout "30";' 'APT::Update::Error-Mode "any";' \
        >"$dir/etc/apt/apt.conf.d/90-retries"
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
    local dir=$1 log=$1.apt.log try
    shift
    for try in 1 2 3; do
        # shellcheck disable=SC2016
        if root_in "$dir" sh -c 'apt-get -q -y update && apt-get -q -y --no-install-recommends "$@" && apt-get clean' sh "$@" \
            >"$log" 2>&1; then
            return 0
        fi
        root_network_failed "$log" || break
        sleep $((5 * try))
    done
    tail -n 40 -- "$log"
    if root_network_failed "$log"; then root_cannot "packages cannot be fetched: $(grep -m 1 '^E: ' -- "$log")"; else return 1; fi
}

# root_network_failed LOG: whether that is what apt-get says. A package that does not exist is another matter.
root_network_failed() {
    grep -qE '^E: (Failed to fetch|Unable to fetch|Some index files failed to download)' -- "$1"
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
            DEBIAN_FRONTEND=noninteractive TERM=dumb http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" \
            no_proxy="${no_proxy:-}" "$@"
    ' sh "$dir" "$@" </dev/null
}

# root_try DIR FOLDER COMMAND...: inside a copy that is gone afterwards, in which /mnt is that folder of ours. Packages
# that are fetched are kept beside DIR.
root_try() {
    local dir=$1 folder=$2 status=0
    shift 2
    rm -rf --one-file-system -- "$dir.try"
    cp -a --reflink=auto -- "$dir" "$dir.try"
    mkdir -p -- "$dir.fetched/partial" "$dir.try/mnt"
    mount --bind "$folder" "$dir.try/mnt"
    mount --bind "$dir.fetched" "$dir.try/var/cache/apt/archives"
    root_in "$dir.try" "$@" || status=$?
    umount "$dir.try/mnt" "$dir.try/var/cache/apt/archives"
    rm -rf --one-file-system -- "$dir.try"
    return "$status"
}

# root_copy DIR: this tree, without what was built here. What was built there stays, and file times are kept, so only
# what changed is built again.
root_copy() {
    mkdir -p -- "$1"
    find "$1" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf -- {} +
    tar -C "$root" --exclude=./build --exclude='./build-*' --exclude=./.git -cf - . | tar -C "$1" --no-same-owner -xf -
}
