#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Faults of cluster/chaos: each kind in a short run of its own, where the report must show that it hit.

usage: tests/chaos/test_faults.py BUILD_BIN [TEST...]
"""
import json
import os
import shutil
import tempfile
import unittest
from pathlib import Path

import chaos_case

SEEDS = range(40)
# Of each run: the kind of fault, what its plan must say of it, what must have been counted, and more options.
RUNS = {
    "fsync-stall": ("fsync-stall", "", ["fsyncs stalled"]),
    "disk-full": ("disk-full", "then=refuse", ["writes refused"]),
    "disk-full-end": ("disk-full", "then=end", ["writes refused", "servers ended"]),
    "aof-cut": ("aof-cut", "", ["bytes cut off"]),
    "clock-strobe": ("clock-strobe", "", ["steps read"]),
    "emfile": ("emfile", "", ["sockets missing"]),
    "partitions": ("partitions", "", ["packets dropped"]),
    "loss": ("loss", "", ["packets dropped"]),
    "late": ("late", "", ["packets late"]),
    "reorder": ("reorder", "high_ms=40", ["packets that overtook others"]),
    "names-dies": ("names", "how=dies", ["names asked for"]),
    "names-hangs": ("names", "how=hangs", ["names asked for"]),
    "names-late": ("names", "how=late", ["names asked for"]),
    "password-before": ("password", "file=before", ["logins with a new password"], "--password"),
    "password-after": ("password", "file=after", ["logins with a new password"], "--password"),
    "certificate-before": ("certificate", "file=before", ["connections with a new certificate"], "--tls"),
    "certificate-after": ("certificate", "file=after", ["connections with a new certificate"], "--tls"),
    # With a lease so long, a key that nobody holds blocks all clients until the run is refused.
    "blackout": ("blackout", "", ["packets dropped"], "--lease-ms", "60000", "--max-lease-ms", "60000"),
    "reconfigure-lease": ("reconfigure", "max_lease_ms=", ["asks of old clients refused", "clients moved"]),
    "reconfigure-node": ("reconfigure", "replaced=", ["asks of old clients refused", "clients moved"]),
}


def chaos(*words, env=None):
    return chaos_case.chaos(*words, limit_s=120, env=os.environ | (env or {}))


# Another way of a kind of which one run is among the others.
OTHER_WAYS = {"disk-full-end", "names-hangs", "names-late", "password-after", "certificate-after", "reconfigure-node"}


class Runs(chaos_case.Runs):
    at_once = 5
    names = RUNS.keys() - OTHER_WAYS

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.runs = {name: cls.pool.submit(cls.run_one, name) for name in RUNS if name in cls.names}

    @classmethod
    def run_one(cls, name):
        """The first seed whose plan is of that kind; None where this machine has none."""
        kind, wanted, _, *more = RUNS[name]
        for seed in SEEDS:
            words = ["--faults", kind, "--seconds", "5", "--seed", str(seed), *more]
            planned = chaos(*words, "--plan").stdout
            if kind in planned and wanted in planned:
                return chaos(*words, "--history", f"{cls.folder}/{name}")
        return None

    def check(self, name):
        kind, _, counted, *_ = RUNS[name]
        run = self.runs[name].result()
        if run is None:
            self.skipTest("this machine permits no such fault")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        kinds, hits = set(), {}
        with open(f"{self.folder}/{name}", encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        for line in lines:
            if line["event"] == "fault":
                kinds.add(line["kind"])
            for what, number in line.get("hits", {}).items():
                hits[what] = hits.get(what, 0) + number
        self.assertEqual(kinds, {kind})
        for what in counted:
            self.assertGreater(hits.get(what, 0), 0, what)
            self.assertIn(f"{hits[what]} {what}", run.stdout)


class Kinds(Runs):
    def test_fsync_stall(self):
        self.check("fsync-stall")

    def test_disk_full(self):
        self.check("disk-full")

    def test_aof_cut(self):
        self.check("aof-cut")

    def test_clock_strobe(self):
        self.check("clock-strobe")

    def test_emfile(self):
        self.check("emfile")

    def test_partitions(self):
        self.check("partitions")

    def test_loss(self):
        self.check("loss")

    def test_late(self):
        self.check("late")

    def test_reorder(self):
        self.check("reorder")

    def test_a_name_server_that_dies(self):
        self.check("names-dies")

    def test_a_new_password(self):
        self.check("password-before")

    def test_a_new_certificate(self):
        self.check("certificate-before")

    def test_blackout(self):
        self.check("blackout")

    def test_reconfigure_of_the_lease(self):
        self.check("reconfigure-lease")


class OtherWays(Runs):
    names = OTHER_WAYS

    def test_disk_full_ends_a_server(self):
        self.check("disk-full-end")

    def test_a_name_server_that_hangs(self):
        self.check("names-hangs")

    def test_a_name_server_that_is_late(self):
        self.check("names-late")

    def test_a_new_password_in_the_file_after_the_servers(self):
        self.check("password-after")

    def test_a_new_certificate_in_the_file_after_the_servers(self):
        self.check("certificate-after")

    def test_reconfigure_of_a_node(self):
        self.check("reconfigure-node")


class NothingHit(unittest.TestCase):
    @staticmethod
    def with_all_of(kinds):
        """The options of a run whose plan has each of them."""
        for seed in SEEDS:
            words = ["--faults", ",".join(kinds), "--seconds", "5", "--seed", str(seed)]
            planned = chaos(*words, "--plan").stdout
            if all(kind in planned for kind in kinds):
                return words
        raise AssertionError(f"no plan with {kinds}")

    def test_a_fault_that_hits_nothing_fails_the_run(self):
        with tempfile.TemporaryDirectory() as folder:
            server = Path(folder) / "server"
            real = shutil.which(os.environ.get("REDIS_SERVER", "redis-server"))
            server.write_text(f'#!/bin/sh\nunset LD_PRELOAD\nexec "{real}" "$@"\n')
            server.chmod(0o755)
            runs = [chaos(*self.with_all_of(kinds), env={"REDIS_SERVER": str(server)})
                    for kinds in (["clock-strobe"], ["clock-strobe", "kill-client"])]
        for run, status, text in zip(runs, (64, 70), ("no fault has hit anything, so this run proves nothing",
                                                      "clock-strobe came but never hit anything")):
            self.assertEqual(run.returncode, status, run.stdout + run.stderr)
            self.assertIn(text, run.stderr)


if __name__ == "__main__":
    chaos_case.main()
