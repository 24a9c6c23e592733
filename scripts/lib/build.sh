# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154
#
# Build folders of scripts. Each script has a folder of its own below $root/build, and names every option that decides
# what can be built there, so that nothing depends on how a folder was configured before. Sourced; needs $root.

# build_configure DIR CMAKE-OPTIONS...: configures DIR with Ninja, in any case.
build_configure() {
    local dir=$1
    shift
    # A folder copied from elsewhere is no good.
    if [ -f "$dir/CMakeCache.txt" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$dir/CMakeCache.txt"; then
        rm -rf -- "$dir"
    fi
    cmake -S "$root" -B "$dir" -G Ninja -DQUORLOCK_COMMAND=ON "$@"
}
