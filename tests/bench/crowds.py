# SPDX-License-Identifier: BSD-3-Clause
"""The rows of crowds that wait for one key: what they cost the busiest node while nothing happens, and a release, and
how late that makes renewals."""
import os

KINDS = (("plain", ()), ("fair", ("--fair",)), ("shared", ("--shared",)), ("permits", ("--permits", "4")),
         ("fair permits", ("--fair", "--permits", "4")))
GRANTS = 50     # fewer than a large crowd: each release is to meet all of it
GRANT_MS = 5    # each of these holds the key for so long
LEASE_MS = 30_000  # nothing is to expire on a machine that is busy


def crowd(setting, build, options, waiters):
    words = [os.path.join(build, "bin", "bench_crowd"), *options, "--waiters", waiters, "--grants", GRANTS, "--grant-ms",
             GRANT_MS, "--lease-ms", LEASE_MS, "--hold-ms", round(4000 * setting.seconds)]
    with setting.servers() as servers:
        return setting.programs.run([*words, *servers.nodes()])


def waiting(setting):
    builds = {"now": setting.programs.build}
    if setting.options.before:
        builds["before"] = setting.options.before
    for waiters in setting.options.crowd:
        for kind, options in KINDS:
            row = {"name": f"{waiters:,} waiting, {kind}", "kind": kind, "waiters": waiters,
                   **{name: crowd(setting, build, options, waiters) for name, build in builds.items()}}
            for name in builds:
                one = row[name]
                setting.say(f"{row['name']}, {name}: {one['cpu_percent']} % of a core a node and "
                            f"{one['requests_a_second']} requests a second at rest; {one['cpu_ms_a_grant']} ms and "
                            f"{one['requests_a_grant']} requests a release; another lock of the holder was renewed "
                            f"{one['late_ms']} ms late")
            yield row
