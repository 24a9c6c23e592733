# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the guard and of bootstrap share.

A quarantine that must be over within a test has a short max lease; one that must not end while the test looks has a
long one. Times are only compared one way: nothing may come too early.
"""
import json

from command_case import SERVERS, Case

GUARD = "quorlock:guard"
SHORT, SHORT_S = "2s", 2
LONG, LONG_MS = "10m", 600000
LEASE = "2s"  # a busy machine takes some of it


def guards():
    return [server.ask("GET", GUARD) for server in SERVERS]


class GuardCase(Case):
    def setUp(self):
        super().setUp()
        self.environment = {}

    def start(self, *args, env=None, **more):
        return super().start(*args, env={**self.environment, **(env or {})}, **more)

    def bootstrap(self, *options):
        """All clients have the max lease that the nodes were set up for."""
        if "--max-lease" in options:
            self.environment["QUORLOCK_MAX_LEASE"] = options[options.index("--max-lease") + 1]
        super().bootstrap(*options)

    def run_once(self, *options, key=None, command=("true",), **more):
        """One try: (status, stdout, stderr)."""
        return self.connected("run", "-n", "--lease", LEASE, *options, key or self.key, "--", *command, **more)

    def report(self):
        status, out, err = self.quorlock("inspect", "--json", self.key)
        self.assertEqual(status, 0, err)
        return json.loads(out)["nodes"]

    def assert_quarantined(self, index, most_ms, least_ms=0):
        left_ms = self.report()[index]["quarantine_ms"]
        self.assertTrue(left_ms is not None and least_ms < left_ms <= most_ms + 1, left_ms)
