#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What cluster/chaos finds: each mistake of cluster/examples/flawed.py, by the fault that is made for it.

usage: tests/chaos/test_power.py BUILD_BIN [TEST...]
"""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock
from pathlib import Path

import chaos_case

CHECK, FLAWED = chaos_case.ROOT / "cluster" / "check", chaos_case.ROOT / "cluster" / "examples" / "flawed.py"
sys.dont_write_bytecode = True
sys.path.insert(0, str(chaos_case.ROOT / "cluster" / "chaos.d"))

import known  # noqa: E402
import power  # noqa: E402
import recorder  # noqa: E402
import report  # noqa: E402
import verdict  # noqa: E402
from aims import Moment  # noqa: E402
from system import now_us  # noqa: E402
from usage import EX_USAGE  # noqa: E402

LIMIT_S = 240
# A run ends at its first violation. How soon the right moment comes is up to the machine.
UNTIL_FOUND = ("--until-broken", "--seconds", "120", "--seed", "7")
WRITES = {"stale-write", "lost-update"}
# Of each mistake: the faults that show it, and what must be found. Some show without any.
RUNS = {
    "no-renewal": ("kill-client", WRITES),
    "no-compare": ("stop-writer", {"overlap"}),
    "no-validity-check": ("stop-asker", {"overlap", "token-duplicate"}),
    "answers-majority": ("divide", {"overlap"}),
    "no-guard": ("wipe-owned", {"overlap"}),
    "same-token": ("kill-client", {"token-duplicate"}),
    "no-fencing": ("stop-writer", WRITES),
    "renews-each": ("cut-owner", {"overlap"}),
    "half-quorum": ("kill-client", {"overlap"}),
}


def chaos(*words, verb=()):
    return chaos_case.chaos(*words, verb=verb, limit_s=LIMIT_S)


def flawed(*words):
    return shlex.join([sys.executable, str(FLAWED), *words])


class Mistakes(chaos_case.Runs):
    at_once = 3

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.good = cls.pool.submit(chaos, "--client", flawed(), "--faults", "aimed", "--seconds", "20", "--seed", "7", "--history",
                               f"{cls.folder}/good")
        cls.ours = cls.pool.submit(chaos, "--faults", "aimed", "--hold-ms", "10-1500", "--seconds", "20", "--seed", "7")
        cls.runs = {mistake: cls.pool.submit(chaos, "--client", flawed(mistake), "--faults", faults, *UNTIL_FOUND, "--history",
                                         f"{cls.folder}/{mistake}") for mistake, (faults, _) in RUNS.items()}

    def judged(self, name):
        done = subprocess.run([str(CHECK), "--json", f"{self.folder}/{name}"], capture_output=True, text=True, timeout=60, check=False)
        return json.loads(done.stdout)

    def check(self, mistake):
        run, (faults, kinds) = self.runs[mistake].result(), RUNS[mistake]
        if run.returncode == EX_USAGE and "no packet filter here" in run.stderr:
            self.skipTest(f"this machine permits no {faults}")
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        self.assertTrue(kinds & set(self.judged(mistake)["violations"]), run.stdout)

    def test_no_renewal(self):
        self.check("no-renewal")

    def test_no_compare(self):
        self.check("no-compare")

    def test_no_validity_check(self):
        self.check("no-validity-check")

    def test_answers_majority(self):
        self.check("answers-majority")

    def test_no_guard(self):
        self.check("no-guard")

    def test_same_token(self):
        self.check("same-token")

    def test_no_fencing(self):
        self.check("no-fencing")

    def test_renews_each(self):
        self.check("renews-each")

    def test_half_quorum(self):
        self.check("half-quorum")

    def test_without_a_mistake_it_holds(self):
        run = self.good.result()
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        good = self.judged("good")
        self.assertEqual((good["verdict"], good["violations"]), ("held", {}))
        self.assertIn("verdict: held; how many bad locks such a run finds was not measured", run.stdout)
        with open(f"{self.folder}/good", encoding="utf-8") as file:
            begun = [line for line in map(json.loads, file) if line["event"] == "fault" and line["phase"] == "begin"]
        self.assertTrue(begun)
        for line in begun:
            self.assertEqual(len(line["clients"]), 1, line)

    def test_ours_holds(self):
        run = self.ours.result()
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("verdict: sound", run.stdout)

    def test_all_are_tried(self):
        done = subprocess.run([sys.executable, str(FLAWED), "none"], capture_output=True, text=True, timeout=60, check=False,
                              env=os.environ | {"QUORLOCK_CHAOS_NODES": "a:1"})
        self.assertEqual((done.returncode, done.stderr), (EX_USAGE, f"'none' is none of {', '.join(RUNS)}\n"))
        self.assertEqual(list(RUNS), list(known.LOCKS))


class Measured(unittest.TestCase):
    def test_a_table_of_one_run(self):
        done = chaos("--only", "half-quorum", "--seeds", "1", "--seconds", "60", verb=["power"])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"(?m)^half-quorum        seed 1    ([\d.]+ s|held)$")
        self.assertRegex(done.stdout, r"(?m)^\| a lock by half of the nodes \| (100|0) % \| (100|0) % \| (100|0) % \|")

    def test_wrong_usage(self):
        done = chaos("--only", "none", verb=["power"])
        self.assertEqual((done.returncode, done.stdout), (EX_USAGE, ""))
        self.assertIn("'none' is no mistake; choose from no-renewal, ", done.stderr)


class Kept(unittest.TestCase):
    def test_a_minute_finds_each(self):
        self.assertEqual(set(known.FOUND_S), set(known.LOCKS))
        self.assertLessEqual(known.enough_seconds(), 60)

    def test_the_page_shows_the_kept_times(self):
        text = (chaos_case.ROOT / "cluster" / "README.md").read_text(encoding="utf-8")
        shown = re.findall(r"(?m)^\| a lock .* \| (\d+) % \| (\d+) % \| (\d+) % \|", text)
        kept = [tuple(str(known.share(known.FOUND_S[mistake], seconds)) for seconds in (10, 30, 60)) for mistake in known.LOCKS]
        self.assertEqual(shown, kept)


class Worth(unittest.TestCase):
    """What a run without a violation says of itself."""
    TIMES = {mistake: [1.0] * 20 for mistake in known.LOCKS} | {"no-guard": [5.0] * 8 + [40.0] * 11 + [None]}

    def setUp(self):
        patch = unittest.mock.patch.object(known, "FOUND_S", self.TIMES)
        patch.start()
        self.addCleanup(patch.stop)

    def test_a_run_that_is_too_short_says_so(self):
        told = {"shares": known.shares(20), "enough_s": known.enough_seconds()}
        self.assertEqual(known.doubt(known.read(told)),
                         "a lock that believes restarted nodes would have been found with 40 % only: give --seconds 60")
        self.assertEqual(known.doubt({"shares": known.shares(60)}), "")
        self.assertEqual(known.shares(600)["no-guard"], 95)

    def test_options_that_were_not_measured(self):
        self.assertIn("was not measured", known.doubt({}))
        self.assertEqual(known.doubt(None), "")

    def test_the_page_has_no_tick_then(self):
        for told, sign in (({}, "?"), ({"shares": known.shares(20), "enough_s": 60}, "?"), ({"shares": known.shares(60)}, "✓"), (None, "✓")):
            self.assertEqual(report.headline(verdict.Verdict("inside", power=told))[1], sign, told)

    def test_a_history_of_others_may_say_anything(self):
        for told in (None, 5, [], {"shares": {}}, {"shares": 3}, {"shares": {"a": "b"}}, {"shares": {"a": 1}, "enough_s": "x"}):
            self.assertIsNone(known.read(told), told)
        self.assertEqual(known.read({}), {})

    def test_the_table(self):
        text = power.table({"no-guard": self.TIMES["no-guard"], power.GOOD: [None, None]}, 60)
        self.assertIn("| a lock that believes restarted nodes | 40 % | 40 % | 95 % | 40.0 s |", text)
        self.assertIn("Without a mistake it held in 2 of 2 runs of 60 s.", text)


class Held(unittest.TestCase):
    """A line that a fault waits for."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.recording = recorder.Recorder(os.path.join(self.folder, "history"), ["job"], 2000)
        self.addCleanup(self.recording.file.close)
        self.channel = recorder.Channel("c1", None)
        for fields in ({"event": "hello", "version": 1}, {"event": "invoke", "key": "job"}):
            self.take(**fields)

    def take(self, **fields):
        return self.recording.take(self.channel, json.dumps(fields).encode() + b"\n")

    def held(self, event, **fields):
        """The last event of the history while that line is held."""
        aims = self.recording.aims
        moment = aims.moment = Moment(event, lambda channel, fields: channel.name == "c1")
        taken = threading.Thread(target=self.take, kwargs={"event": event, **fields})
        taken.start()
        self.assertTrue(moment.caught.wait(60))
        last = self.recording.lines()[-1]["event"]
        self.assertTrue(taken.is_alive())
        moment.let_go()
        taken.join(60)
        return last

    def test_a_write_is_not_in_the_register_yet(self):
        self.take(event="granted", key="job", deadline_us=now_us() + 1_000_000)
        self.assertEqual(self.held("write", key="job", value=1), "granted")
        self.assertEqual(self.recording.lines()[-1]["event"], "write")

    def test_a_grant_is_in_the_history(self):
        self.assertEqual(self.held("granted", key="job", deadline_us=now_us() + 1_000_000), "granted")
        self.assertEqual(self.recording.aims.owners("job"), {"c1"})
        self.take(event="released", key="job")
        self.assertEqual(self.recording.aims.owners("job"), set())


if __name__ == "__main__":
    chaos_case.main()
