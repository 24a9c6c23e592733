#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A thousand clients that wait for one key cost its holder nothing: test_crowd.py PATH_TO_bench_crowd [TEST...]

The holder keeps the lock for longer than a lease, so that it is lost unless renewals reach the nodes beside the requests
of the crowd. Then it releases, and each of the others must get the lock. The lease is the longest that bench_crowd takes,
and no time is asserted.
"""
import json
import resource
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # the tree stays as it is
import servers

WAITERS = 1000
LEASE_MS = 30000
HOLD_MS = 34000
LIMIT_S = 900
FILES_MIN = 8192  # of a server and of each process of bench_crowd
PROGRAM, SERVERS = "", None


class Crowd(unittest.TestCase):
    def wait_together(self, *options):
        words = [PROGRAM, *options, "--waiters", WAITERS, "--lease-ms", LEASE_MS, "--hold-ms", HOLD_MS, *SERVERS.nodes()]
        done = subprocess.run([str(word) for word in words], check=False, capture_output=True, text=True,
                              timeout=LIMIT_S)
        print(*options, done.stdout.strip(), done.stderr.strip(), flush=True)
        self.assertEqual(done.returncode, 0, "the lock was lost, or not every client got it")
        self.assertEqual(json.loads(done.stdout)["lost"], 0)

    def test_fair_ones(self):
        self.wait_together("--fair")

    def test_readers(self):
        self.wait_together("--shared")


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else sys.exit(__doc__)
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < FILES_MIN:
        print(f"skipped: a process may not open {FILES_MIN} files here")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="quorlock-crowd-") as folder:
        with servers.Servers(folder, 3) as SERVERS:
            unittest.main(verbosity=2)
