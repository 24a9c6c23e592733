# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034
#
# Debian systems of other versions, in folders that are kept for later runs. Sourced by scripts/test.
#
# Commands in such a root run in a mount and a process namespace of their own: however they end, no mount, no server and
# no process is left over.

ROOTS_CACHE=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/quorlock
# How long a stage may prepare its roots, and work in them, in seconds. On two busy cores a build takes ten minutes, and
# so do the tests with each of the two servers.
ROOTS_PREPARE_S=600
ROOTS_WORK_S=2400
# Disk space in megabytes, for two releases with the build tools, and the test suite in one of them.
ROOTS_SPACE_MB=5000
# The exit status if this machine or network prevents the work, which is no fault of the tree. The last line that
# begins with "cannot: " has the reason.
ROOTS_CANNOT=75

# roots_check: sets $impossible to the reason why this machine cannot have such systems, or ''; and $roots_sudo and
# $ROOTS_MIRRORS.
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

# roots_mirrors: prints $DEBIAN_MIRROR; without it the mirrors of this machine's apt sources, and deb.debian.org.
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

# roots_proxy: sets the proxy of apt for debootstrap, unless the environment names one.
roots_proxy() {
    local proxy='' detect=''
    [ -z "${http_proxy:-}" ] || return 0
    eval "$(apt-config shell proxy Acquire::http::Proxy detect Acquire::http::Proxy-Auto-Detect 2>/dev/null)"
    if [ -z "$proxy" ] && [ -n "$detect" ]; then proxy=$("$detect" "${ROOTS_MIRRORS%%$'\n'*}" 2>/dev/null) || proxy=''; fi
    case $proxy in '' | DIRECT) ;; *) export http_proxy=$proxy ;; esac
}

# as_root SECONDS FUNCTION ARGUMENTS...: runs a function of scripts/lib in a mount and a process namespace that end with
# it. Status 137: it took longer.
as_root() {
    local limit=$1
    shift
    # shellcheck disable=SC2016
    ${roots_sudo[@]+"${roots_sudo[@]}"} env "http_proxy=${http_proxy:-}" "https_proxy=${https_proxy:-}" \
        "no_proxy=${no_proxy:-}" timeout --foreground -s KILL "$limit" \
        unshare --mount --propagation private --pid --fork --kill-child bash -euo pipefail -c '
        root=$1
        for part in roots releases packages; do . "$root/scripts/lib/$part.sh"; done
        ROOTS_MIRRORS=$2 ROOTS_CACHE=$3
        shift 3
        trap "exit 143" TERM
        mkdir -p -- "$ROOTS_CACHE" || root_cannot "there is no place for $ROOTS_CACHE; XDG_CACHE_HOME names another"
        "$@"
    ' bash "$root" "$ROOTS_MIRRORS" "$ROOTS_CACHE" "$@"
}

# roots_ended NAME STATUS SECONDS LOG: reports the failure of a part of a stage.
roots_ended() {
    local reason
    case $2 in
    "$ROOTS_CANNOT") reason=$(sed -n 's/^cannot: //p' -- "$4" | tail -n 1) ;;
    137) reason="it was ended after $3 s, for it took too long; the end of its log: $(tail -n 1 -- "$4")" ;;
    esac
    # A test that failed before counts.
    if [ -n "${reason:-}" ] && ! grep -q '^FAIL ' -- "$4"; then roots_cannot "$1" "$reason" "$3"; else stage_bad "$1" "$3" "$4"; fi
}

# roots_cannot NAME REASON SECONDS: reports a failure; with --if-possible only a conspicuous message.
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

# root_cannot REASON: ends the part that runs as root.
root_cannot() {
    echo "cannot: $*"
    exit "$ROOTS_CANNOT"
}

# root_probe: tries once each operation that making and using a root needs.
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

# root_mirror RELEASE: prints the first of $ROOTS_MIRRORS that has the release, and is a mirror of Debian.
root_mirror() {
    local mirror try
    for try in 1 2 3; do
        for mirror in $ROOTS_MIRRORS; do
            # All input is read, because wget would fail otherwise.
            if wget -q -T 20 -t 1 -O - "$mirror/dists/$1/Release" | grep '^Origin: Debian$' >/dev/null; then
                echo "$mirror"
                return 0
            fi
        done
        sleep $((3 * try))
    done
    return 1
}

# root_make RELEASE DIR: makes a minimal system of that version, completely or not at all.
root_make() {
    local dir=$2 mirror
    mirror=$(root_mirror "$1") || mirror=''
    if [ ! -e "$dir/.quorlock-base" ]; then
        [ -n "$mirror" ] || root_cannot "no mirror of Debian $1 can be reached; tried $(paste -sd' ' <<<"$ROOTS_MIRRORS")"
        root_bootstrap "$1" "$dir" "$mirror"
    fi
    # The mirror may be another one now. Without any, the root is used as it is.
    [ -n "$mirror" ] || return 0
    printf 'deb %s %s main\n' "$mirror" "$1" >"$dir/etc/apt/sources.list"
    # The newest servers are there first. Nothing comes from it that is not asked for by its name.
    [ "$1" != forky ] || printf 'deb %s experimental main\n' "$mirror" >>"$dir/etc/apt/sources.list"
}

# root_bootstrap RELEASE DIR MIRROR: runs debootstrap. It does not depend on our tree, so a failure is the machine's or
# the network's.
root_bootstrap() {
    local dir=$2 try script=()
    # An older debootstrap does not know the release; the script of sid makes any newer one.
    [ -e "/usr/share/debootstrap/scripts/$1" ] || script=(/usr/share/debootstrap/scripts/sid)
    for try in 1 2 3; do
        rm -rf --one-file-system -- "$dir"
        mkdir -p -- "$dir"
        if unshare --mount --propagation private timeout --foreground -k 10 300 debootstrap --variant=minbase "$@" ${script[@]+"${script[@]}"} >"$dir.log" 2>&1; then
            break
        fi
        tail -n 20 -- "$dir.log"
        [ "$try" -lt 3 ] || root_cannot "debootstrap $* fails: $(tail -n 1 -- "$dir.log")"
        sleep $((5 * try))
    done
    printf '#!/bin/sh\nexit 101\n' >"$dir/usr/sbin/policy-rc.d"
    chmod 755 "$dir/usr/sbin/policy-rc.d"
    printf '%s\n' 'Acquire::Retries "5";' 'Acquire::http::Timeout "30";' 'APT::Update::Error-Mode "any";' \
        'Acquire::Check-Valid-Until "false";' \
        >"$dir/etc/apt/apt.conf.d/90-retries"
    touch "$dir/.quorlock-base"
}

# root_install DIR PACKAGE...: installs the packages, once.
root_install() {
    local dir=$1
    shift
    [ "$(cat "$dir/.quorlock-packages" 2>/dev/null)" != "$*" ] || return 0
    root_apt "$dir" install "$@" || return
    printf '%s\n' "$*" >"$dir/.quorlock-packages"
}

# root_apt DIR VERB PACKAGE...: runs apt-get; prints the end of its output if it fails.
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

# root_network_failed LOG: succeeds if apt-get reports a failure of the network. A missing package is not one.
root_network_failed() {
    grep -qE '^E: (Failed to fetch|Unable to fetch|Some index files failed to download)' -- "$1"
}

# root_in DIR COMMAND...: runs a command inside, with /proc and /dev. Its changes stay.
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

# root_try DIR FOLDER COMMAND...: runs a command inside a temporary copy, with FOLDER at /mnt. Packages that it
# downloads are kept beside DIR.
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

# root_copy DIR: copies this tree without its build folders. Build folders in DIR stay, and file times are kept, so
# only changed files are built again.
root_copy() {
    mkdir -p -- "$1"
    find "$1" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf -- {} +
    tar -C "$root" --exclude=./build --exclude='./build-*' --exclude=./.git -cf - . | tar -C "$1" --no-same-owner -xf -
}
