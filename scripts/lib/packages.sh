# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154
#
# `scripts/test packages`: makes the Debian packages, and examines, installs, uses, upgrades and purges them in clean
# roots of Debian 12 and 13; also tests their units under systemd there. Sourced by scripts/test, after roots.sh.

PACKAGES_RELEASES='bookworm trixie'
PACKAGES_TOOLS='build-essential blhc lintian'

# Each passed test prints a line that begins with ok.
packages_ok() { printf 'ok: %s\n' "$*"; }

# packages_make_root BASE DIR: makes the root that builds packages, and keeps it. It has only what Build-Depends names.
packages_make_root() {
    local base=$1 dir=$2 needs
    needs=$(sed -n 's/^Build-Depends: //p' "$root/scripts/debian/control")
    [ "$(cat "$dir/.quorlock-packages" 2>/dev/null)" != "$PACKAGES_TOOLS, $needs" ] || return 0
    rm -rf --one-file-system -- "$dir"
    cp -a -- "$base" "$dir"
    # shellcheck disable=SC2086
    root_apt "$dir" install $PACKAGES_TOOLS
    root_apt "$dir" satisfy "$needs"
    printf '%s\n' "$PACKAGES_TOOLS, $needs" >"$dir/.quorlock-packages"
}

# The part that runs as root, for one release.
packages_prepare() {
    local release=$1 base=$ROOTS_CACHE/$1-base
    root_make "$release" "$base"
    packages_make_root "$base" "$ROOTS_CACHE/$release-package"
}
packages_work() {
    local release=$1 folder=$2 made
    rm -rf --one-file-system -- "$folder"
    mkdir -p -- "$folder/tree" "$folder/out"
    root_copy "$folder/tree"
    # shellcheck disable=SC2016
    root_try "$ROOTS_CACHE/$release-package" "$folder" sh -c '
        set -e
        /mnt/tree/scripts/package --out /mnt/out >/mnt/build.log 2>&1 || { cat /mnt/build.log; exit 1; }
        blhc --all /mnt/build.log
        # The lintian of Debian 12 does not know the standards version of Debian 13, and finds spelling errors in machine
        # code.
        said=$(lintian --allow-root --pedantic --display-info --suppress-tags newer-standards-version,spelling-error-in-binary \
            /mnt/out/*.changes) || :
        [ -z "$said" ] || { printf "lintian: mend it, or explain it in scripts/debian/*lintian-overrides:\\n%s\\n" "$said"; exit 1; }
    '
    made=$(cd "$folder/out" && echo ./*.deb)
    packages_ok "$release: $made"
    packages_ok "$release: hardened, and lintian has nothing to say"
    root_try "$ROOTS_CACHE/$release-base" "$folder" /mnt/tree/tests/package/packages.sh /mnt/out /mnt/tree
}

packages_stage() {
    local release=$1 log=$out/packages-$1.log start=$SECONDS status=0 passed why
    echo "packages: $release; the log is $log"
    as_root "$ROOTS_PREPARE_S" packages_prepare "$release" >"$log" 2>&1 7>&- || status=$?
    if [ "$status" = 0 ]; then
        as_root "$ROOTS_WORK_S" packages_work "$release" "$out/packages-$release" >>"$log" 2>&1 7>&- || status=$?
    fi
    if [ "$status" = 0 ]; then
        say "ok    packages/$release, $((SECONDS - start)) s"
        why=$(sed -n 's/^SKIPPED: //p' "$log")
        [ -z "$why" ] || roots_cannot "packages/$release/units" "$why" 0
    else
        roots_ended "packages/$release" "$status" $((SECONDS - start)) "$log"
    fi
    passed=$(grep -c '^ok: ' "$log") && result label "packages/$release" "$passed" 0 0 $((SECONDS - start))
}

stage_packages() {
    local release pids=()
    if [ -n "$impossible" ]; then roots_cannot packages "$impossible" 0 && return; fi
    for release in $PACKAGES_RELEASES; do
        packages_stage "$release" &
        pids+=($!)
    done
    for release in "${pids[@]}"; do wait "$release" || :; done
}
