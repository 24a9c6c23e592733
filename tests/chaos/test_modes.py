#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Modes of cluster/chaos: keys of all modes in one run are sound, and half a quorum is caught in each mode.

usage: tests/chaos/test_modes.py BUILD_BIN [TEST...]
"""
import json
import os
import subprocess
from pathlib import Path

import chaos_case

CHECK = chaos_case.ROOT / "cluster" / "check"
LIMIT_S = 200
PERMITS = 3
DIVIDED = ("--faults", "divide,split,cut", "--nodes", "4", "--clients", "6", "--users", "2", "--keys", "1", "--seconds", "10",
           "--seed", "3")
# What half a quorum leads to.
BROKEN = {"permits": "slot-overlap", "shared": "shared-overlap", "election": "leaders"}


def chaos(*words, rule=None):
    return chaos_case.chaos(*words, limit_s=LIMIT_S, env=os.environ | ({"QUORLOCK_CHAOS_BREAK": rule} if rule else {}))


def judged(path):
    check = subprocess.run([str(CHECK), "--json", path], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    return json.loads(check.stdout)


def why_not_broken():
    if not (chaos_case.BIN / "chaos_client_controls").exists():
        return "chaos_client_controls is not built"
    if not chaos("--plan", *DIVIDED, "--faults", "divide").stdout:
        return "no packet filter to divide the network with"
    return None


class Modes(chaos_case.Runs):
    at_once = 3

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.mixed = cls.pool.submit(chaos, "--mode", "mixed", "--permits", str(PERMITS), "--keys", "1", "--users", "8", "--seconds", "20",
                                "--seed", "21", "--history", f"{cls.folder}/mixed", "--report", f"{cls.folder}/mixed.html")
        cls.skipped = why_not_broken()
        cls.broken = {} if cls.skipped else {
            mode: cls.pool.submit(chaos, "--mode", mode, *DIVIDED, "--history", f"{cls.folder}/{mode}", rule="half-quorum")
            for mode in BROKEN}

    def test_all_modes_in_one_run(self):
        """Sound, and enough was tried for that to mean something."""
        run = self.mixed.result()
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        verdict = judged(f"{self.folder}/mixed")
        for mode in ("lock", "permits", "shared", "election"):
            self.assertGreaterEqual(verdict["modes"][mode]["grants"], 10, mode)
        self.assertEqual(verdict["modes"]["permits"]["at_once"], PERMITS)
        self.assertGreaterEqual(verdict["modes"]["shared"]["at_once"], 2)
        for name in ("writes", "observations"):
            self.assertGreaterEqual(verdict["counts"][name], 10, name)
        self.assertIn('"adopted":1', Path(self.folder, "mixed").read_text(encoding="utf-8"))
        page = Path(self.folder, "mixed.html").read_text(encoding="utf-8")
        for lane in ("pool-1/2", "data-1", "lead-1"):
            self.assertIn(f">{lane}</text>", page)
        self.assertIn("<h2>Modes</h2>", page)

    def check_broken(self, mode):
        if self.skipped:
            self.skipTest(self.skipped)
        run = self.broken[mode].result()
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        self.assertGreaterEqual(judged(f"{self.folder}/{mode}")["violations"].get(BROKEN[mode], 0), 3, run.stdout)

    def test_half_a_quorum_of_permits(self):
        self.check_broken("permits")

    def test_half_a_quorum_of_readers_and_writers(self):
        self.check_broken("shared")

    def test_half_a_quorum_elects_two(self):
        self.check_broken("election")

    def test_wrong_usage(self):
        for words, text in ((("--mode", "election", "--no-fence"), "a term is a fencing token"),
                            (("--mode", "mixed", "--keys", "8"), "give 7 at most"),
                            (("--mode", "reading"), "invalid choice: 'reading'"),
                            (("--permits", "65"), "'65' is not a number from 1 to 64")):
            run = chaos("--plan", *words)
            self.assertEqual((run.returncode, run.stdout), (64, ""), words)
            self.assertIn(text, run.stderr)


if __name__ == "__main__":
    chaos_case.main(verbosity=2)
