# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154
#
# Configures the build folders of scripts. Each script has its own folder below $root/build, and gives every option that
# decides what can be built there, so that an earlier configuration does not matter. Sourced; needs $root.

# build_configure DIR CMAKE-OPTIONS...: configures DIR with Ninja, even if it was configured with another generator.
build_configure() {
    local dir=$1
    shift
    # A folder that was copied from elsewhere cannot be used.
    if [ -f "$dir/CMakeCache.txt" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$dir/CMakeCache.txt"; then
        rm -rf -- "$dir"
    fi
    cmake -S "$root" -B "$dir" -G Ninja -DQUORLOCK_COMMAND=ON "$@"
}
