#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# packages.sh PACKAGES SOURCE - as root in a Debian system that may be spoilt (scripts/test packages makes one): installs
# the packages in the folder PACKAGES, uses them, upgrades them from an older version, and purges them.
set -euo pipefail

packages=$1
source_dir=$2
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=../../scripts/lib/roots.sh
. "$source_dir/scripts/lib/roots.sh"
NAMES='libquorlock0 libquorlock-dev quorlock python3-quorlock quorlock-chaos'

# The tests are in the system's hands only where it was made for them.
[ -e /.quorlock-base ] || fail 'this is no root of scripts/test packages: it would install into your system'

apt() {
    apt-get -q -y -o Dpkg::Use-Pty=0 -o DPkg::Options::=--force-unsafe-io "$@" >"$work/apt.log" 2>&1 || {
        cat "$work/apt.log"
        if root_network_failed "$work/apt.log"; then root_cannot "packages cannot be fetched: apt-get $*"; fi
        fail "apt-get $*"
    }
}

version_of() { dpkg-query -W -f '${Version}' "$1"; }

# The same packages with a lower version, and one file that the new ones do not have.
make_old() {
    local name path
    for name in $NAMES; do
        path=$(echo "$packages/${name}"_*.deb)
        dpkg-deb -R "$path" "$work/$name"
        sed -i -E "s/^Version: .*/Version: $OLD/; s/\\(= [^)]*\\)/(= $OLD)/; s/(libquorlock0 \\(>=) [^)]*/\\1 $OLD/" "$work/$name/DEBIAN/control"
        echo 'of the older version' >"$work/$name/usr/share/doc/$name/older"
        mkdir -p "$work/old"
        dpkg-deb -b "$work/$name" "$work/old/${name}_$OLD.deb" >/dev/null
    done
}

# Alone the command needs neither a compiler nor our library.
check_command_alone() {
    local before
    before=$(dpkg-query -W | wc -l)
    apt install --no-install-recommends "$work/old/quorlock_$OLD.deb"
    quorlock --version >/dev/null || fail 'the command does not run'
    passed "the command alone needs $(($(dpkg-query -W | wc -l) - before - 1)) packages"
}

# A program that was built with the older version.
check_upgrade() {
    local name
    apt install --no-install-recommends "$work"/old/*.deb gcc libc6-dev pkgconf redis-server
    manual_example "$source_dir" quorlock >"$work/manual.c"
    # shellcheck disable=SC2046
    cc "$work/manual.c" $(pkg-config --cflags --libs quorlock) -o "$work/manual" || fail 'the example of quorlock(3)'
    start_nodes quorlock
    apt install --no-install-recommends "$packages"/{libquorlock0,libquorlock-dev,quorlock,python3-quorlock,quorlock-chaos}_*.deb
    for name in $NAMES; do
        [ "$(version_of "$name")" = "$NEW" ] || fail "$name is $(version_of "$name") after the upgrade, not $NEW"
        [ ! -e "/usr/share/doc/$name/older" ] || fail "a file of the older $name was left"
    done
    "$work/manual" "${nodes[@]}" | grep '^released "nightly-report"' >/dev/null || fail 'the program of the older version'
    passed "upgraded from $OLD to $NEW, and what was built before runs"
}

check_files() {
    local said
    # shellcheck disable=SC2086
    said=$(dpkg -V $NAMES) || :
    # Manual pages and documentation are left out on systems that want none.
    said=$(grep -v ' /usr/share/\(man\|doc\)/' <<<"$said") || :
    [ -z "$said" ] || fail "installed files differ from the packages: $said"
    [ -e "/usr/lib/$(gcc -print-multiarch)/libquorlock.so.0.3" ] || fail 'the library is not where this architecture has libraries'
    ldconfig -p | grep 'libquorlock\.so\.' >/dev/null || fail 'the loader does not find the library'
    passed 'every file as the packages have it, the library where the architecture has them'
}

# As autopkgtest does: what debian/tests/control names, with what it depends on.
run_tests() {
    local tests=$source_dir/scripts/debian/tests name depends
    while IFS=: read -r name depends; do
        apt satisfy --no-install-recommends "$depends"
        (cd "$source_dir" && "$tests/$name") 2>"$work/stderr" || fail "scripts/debian/tests/$name: $(cat "$work/stderr")"
        # autopkgtest takes that for a failure.
        [ ! -s "$work/stderr" ] || fail "scripts/debian/tests/$name says on standard error: $(cat "$work/stderr")"
        passed "scripts/debian/tests/$name"
    done < <(awk '/^Tests: / { name = $2 } /^Depends: / { sub(/^Depends: /, ""); print name ":" $0 }' "$tests/control")
}

# A line of theirs that says what was skipped is for scripts/test.
check_units() {
    local status=0
    apt install --no-install-recommends systemd
    "$(dirname "${BASH_SOURCE[0]}")/units.sh" "$source_dir" || status=$?
    [ "$status" = 0 ] || [ "$status" = 77 ] || fail 'the units'
}

check_purge() {
    local left
    # shellcheck disable=SC2086
    apt purge $NAMES
    # shellcheck disable=SC2086
    left=$(dpkg-query -W -f '${Package} ${db:Status-Abbrev}\n' $NAMES 2>/dev/null | grep -v ' un' || :)
    [ -z "$left" ] || fail "dpkg still knows $left"
    left=$(find / -xdev \( -path "$work" -o -path /mnt -o -path /proc -o -path /dev \) -prune -o -name '*quorlock*' \
        ! -name '.quorlock-*' -print)
    [ -z "$left" ] || fail "purged, but there is $left"
    if ldconfig -p | grep quorlock; then fail 'the loader still knows the library'; fi
    [ -z "$(dpkg --audit)" ] || fail "dpkg --audit: $(dpkg --audit)"
    passed 'purged, and nothing is left'
}

OLD=0.0.1-1
NEW=$(dpkg-deb -f "$packages"/libquorlock0_*.deb Version)
apt update
apt autoclean
make_old
check_command_alone
check_upgrade
check_files
run_tests
check_units
check_purge
