#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""cluster/chaos compare: ours beside a client without any lock, its figures held against the histories.

usage: tests/chaos/test_compare.py BUILD_BIN [TEST...]
"""
import collections
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import chaos_case

sys.path.insert(1, str(chaos_case.ROOT / "cluster" / "chaos.d"))

import compare as known_compare
import plan

HERE = Path(__file__).resolve().parent
CLUSTER = chaos_case.ROOT / "cluster"
NO_LOCK = f"no-lock={sys.executable} {HERE / 'no_lock.py'}"


def compare(*words, env=None):
    return chaos_case.chaos(*words, verb=["compare"], limit_s=150, env=env)


class Compared(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.kept, cls.page, figures = Path(folder) / "kept", Path(folder) / "page.html", Path(folder) / "figures.json"
        cls.done = compare("--client", NO_LOCK, "--only", "quorlock,no-lock", "--faults", "kill,pause-client,slow",
                           "--seconds", "6", "--seed", "5", "--keep", str(cls.kept), "--report", str(cls.page),
                           "--json", str(figures))
        if cls.done.returncode != 0:
            raise AssertionError(cls.done.stdout + cls.done.stderr)
        with open(figures, encoding="utf-8") as file:
            cls.index = json.load(file)
        cls.clients = {client["name"]: client for client in cls.index["clients"]}

    def figures_of(self, name):
        return self.clients[name]["runs"]["chosen"]["figures"]

    def lines_of(self, name):
        with open(self.kept / self.clients[name]["runs"]["chosen"]["history"], encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def test_figures_follow_from_the_histories(self):
        for name in ("quorlock", "no-lock"):
            events = collections.Counter(line["event"] for line in self.lines_of(name))
            figures = self.figures_of(name)
            self.assertEqual((figures["grants"], figures["refused"], figures["writes"], figures["stale_refused"]),
                             (events["granted"], events["refused"], events["write"],
                              events["write_refused"] + events["read_refused"]))
            self.assertGreater(figures["grants"], 5)
            checked = subprocess.run([str(CLUSTER / "check"), "--json", str(self.kept / f"chosen-{name}.jsonl")],
                                     capture_output=True, text=True, timeout=60, check=False)
            verdict = json.loads(checked.stdout)
            self.assertEqual(figures["overlaps"], verdict["violations"].get("overlap", 0))
            self.assertEqual(figures["stale_writes"], verdict["counts"].get("stale writes accepted", 0))
            self.assertEqual(figures["handovers"], verdict["handover_us"]["count"])

    def test_overlaps_counted_anew(self):
        """By hand, without the judge: pairs of one key that follow each other."""
        held, found = {}, 0
        ends = {"released", "lost", "killed"}
        for line in self.lines_of("no-lock"):
            keys = [line["key"]] if "key" in line else list(held)
            for key in keys:
                owners = held.setdefault(key, {})
                if line["event"] == "granted":
                    found += any(until_us > line["t_us"] for until_us in owners.values())
                    owners[line["client"]] = line["deadline_us"]
                elif line["event"] in ends - {"killed"}:
                    owners.pop(line["client"], None)
        self.assertGreater(found, 5)
        self.assertEqual(self.figures_of("no-lock")["overlaps"], found)

    def test_ours_holds_and_the_other_does_not(self):
        ours, none = self.figures_of("quorlock"), self.figures_of("no-lock")
        self.assertEqual((ours["overlaps"], ours["stale_writes"], ours["never_told"]), (0, 0, 0))
        self.assertEqual(ours["broken_otherwise"], {})
        self.assertGreater(none["overlaps"], 5)
        self.assertGreater(none["stale_writes"], 0)
        self.assertGreater(none["never_told"], 0)

    def test_all_meet_the_same_faults(self):
        plans = [[[line[field] for field in ("id", "kind", "nodes", "clients", "at_ms")]
                  for line in self.lines_of(name) if line["event"] == "fault" and line["phase"] == "begin"]
                 for name in ("quorlock", "no-lock")]
        self.assertEqual(sorted(plans[0]), sorted(plans[1]))
        self.assertTrue(plans[0])

    def test_the_command_line_does_it_again(self):
        run = self.clients["no-lock"]["runs"]["chosen"]
        words = shlex.split(run["replay"])
        self.assertEqual(words[0], "cluster/chaos")
        again = subprocess.run([*words, "--plan"], capture_output=True, text=True, timeout=60, check=False,
                               cwd=CLUSTER.parent)
        self.assertEqual(again.stdout.splitlines(), self.index["rounds"]["chosen"]["plan"], again.stderr)

    def test_drawn_again_from_the_histories(self):
        again = self.page.with_name("again.html")
        done = compare("--from", str(self.kept), "--report", str(again))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(again.read_bytes(), self.page.read_bytes())


class Seeds(unittest.TestCase):
    """Several seeds, side by side."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.kept, figures = Path(folder) / "kept", Path(folder) / "figures.json"
        cls.done = compare("--client", NO_LOCK, "--only", "no-lock", "--faults", "kill-client", "--seconds", "3", "--seed", "7,5,6",
                           "--at-once", "3", "--keep", str(cls.kept), "--json", str(figures))
        if cls.done.returncode != 0:
            raise AssertionError(cls.done.stdout + cls.done.stderr)
        cls.indexes = json.loads(figures.read_text(encoding="utf-8"))

    def test_each_has_its_own_plan_and_folder(self):
        self.assertEqual([index["seed"] for index in self.indexes], [7, 5, 6])
        plans = {tuple(index["rounds"]["chosen"]["plan"]) for index in self.indexes}
        self.assertEqual(len(plans), 3)
        for seed in (5, 6, 7):
            history = self.kept / f"seed-{seed}" / "chosen-no-lock.jsonl"
            self.assertIn(f'"seed":{seed}', history.read_text(encoding="utf-8").replace(" ", ""))

    def test_the_table_has_median_and_range(self):
        runs = sorted(index["clients"][0]["runs"]["chosen"]["figures"]["grants"] for index in self.indexes)
        self.assertGreater(runs[0], 0)
        self.assertIn(f"  {runs[1]} ({runs[0]} to {runs[2]})", self.done.stdout)
        self.assertIn("seeds 7, 5, 6)", self.done.stdout)

    def test_from_their_folder_again(self):
        done = compare("--from", str(self.kept))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(sorted(done.stdout.splitlines()[2].split()), sorted(self.done.stdout.splitlines()[-1].split()))

    def test_a_run_that_failed_is_not_counted(self):
        figures = {"overlaps": 1, "never_told": 0, "stale_writes": 0, "grants": 9, "after_healing_ms": None,
                   "handover_ms": {"p50": 1.5, "p99": None}}
        good, bad = {"failed": "", "figures": figures}, {"failed": "too busy"}
        indexes = [{"clients": [{"title": "x", "missing": "", "runs": {"kept": run} if run else {}}]} for run in (good, bad)]
        self.assertEqual(known_compare.row(indexes, 0, "kept"), ["1", "0", "0", "9", "1.5 ms", "-", "never", "  1 of 2 runs"])
        self.assertEqual(known_compare.row(indexes[1:], 0, "kept"), ["left out: too busy"])


class Rounds(unittest.TestCase):
    def test_servers_keep_their_memory_where_it_says_so(self):
        left_out = known_compare.ROUNDS["kept"][1].split(",")
        for name, kind in plan.KINDS.items():
            if kind.forgets and name in plan.GROUPS["all"]:
                self.assertIn(f"-{name}", left_out)
                self.assertNotIn(f"-{name}", known_compare.ROUNDS["lost"][1].split(","))


class Alone(unittest.TestCase):
    def test_a_client_of_others_without_a_build(self):
        done = compare("--bin", "/nonexistent", "--client", NO_LOCK, "--only", "no-lock", "--faults", "kill-client", "--seconds",
                       "3", "--seed", "5")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"no-lock +\d")

    def test_a_client_without_its_runtime_is_left_out(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("python3", os.environ.get("REDIS_SERVER", "redis-server"), "env"):
                os.symlink(shutil.which(name), Path(folder) / os.path.basename(name))
            page = Path(folder) / "page.html"
            done = compare("--only", "quorlock,redsync", "--plain", "--faults", "kill-client", "--seconds", "3",
                           "--report", str(page), env={"PATH": folder})
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertRegex(done.stdout, r"redsync +left out: no go here")
            self.assertIn("left out: no go here", page.read_text(encoding="utf-8"))

    def test_a_client_that_does_not_run_is_left_out(self):
        done = compare("--client", "mute=false", "--only", "mute", "--faults", "kill-client", "--seconds", "3")
        self.assertEqual(done.returncode, 70, done.stdout)
        self.assertIn("mute, chosen: left out: ", done.stdout)
        self.assertEqual(done.stderr, "compare: no client could be compared\n")

    def test_wrong_usage_is_told(self):
        for words, told in ((["--only", "nobody"], "'nobody' is not a client"),
                            (["--rounds", "third"], "'third' is not a round"),
                            (["--seconds", "5"], "too short for 2 rounds"),
                            (["--seed", "5,6,5"], "'5,6,5' has a seed twice"),
                            (["--seed", "five"], "'five' is not a number from 0 to"),
                            (["--from", "/nonexistent"], "no compare.json"),
                            (["--report", "/nonexistent/page.html"], "no folder that can be written to"),
                            (["--keep", "/dev/null"], "no folder that can be written to"),
                            (["--faults", "rain"], "'rain' is no fault"),
                            (["--lease-ms", "long"], "'long' is not MIN-MAX"),
                            (["--nodes", "²"], "'²' is not a number from 1 to 9"),
                            (["--client", "x="], "no program"),
                            (["--client", "/nonexistent/program"], "no program that can be run")):
            done = compare(*words)
            self.assertEqual((done.returncode, done.stdout), (64, ""), words)
            self.assertIn(told, done.stderr)


if __name__ == "__main__":
    chaos_case.main()
