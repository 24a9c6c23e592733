#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scripts/bench: it runs to its end, writes what it promises, and leaves nothing behind: test_suite.py BUILD [TEST...]

Small amounts of a few workloads: what they say of the machine is not looked at.
"""
import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True  # the tree stays as it is
import repeats

HERE = os.path.dirname(os.path.abspath(__file__))
SUITE = os.path.join(HERE, "suite.py")
LIMIT_S = 200
BUILD = ""


def children(pid):
    """The processes of this parent, and theirs."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], check=True, capture_output=True, text=True).stdout
    pairs = [tuple(map(int, line.split())) for line in listed.splitlines()]
    found, wanted = [], {pid}
    while wanted:
        wanted = {child for child, parent in pairs if parent in wanted}
        found += wanted
    return found


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


class Suite(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="quorlock-suite-")
        self.out = os.path.join(self.folder.name, "out")
        # Its own scratch folders are made here too, so that what it leaves is seen.
        self.scratch = os.path.join(self.folder.name, "tmp")
        os.mkdir(self.scratch)

    def tearDown(self):
        self.folder.cleanup()

    def start(self, *options):
        return subprocess.Popen([SUITE, "--build", BUILD, "--out", self.out, "--quick", "--no-peers", *options],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=dict(os.environ, TMPDIR=self.scratch))

    def wait_for(self, what):
        end = time.monotonic() + LIMIT_S
        while not what():
            self.assertLess(time.monotonic(), end, "did not happen in time")
            time.sleep(0.02)

    def test_results_and_report(self):
        suite = self.start("--workloads", "5,7,8,12,13,14,15,16", "--before", BUILD, "--seconds", "0.5", "--held", "50", "--hold", "1", "--flood", "64",
                           "--crowd", "5")
        out, err = suite.communicate(timeout=LIMIT_S)
        self.assertEqual((suite.returncode, err), (0, ""), out)
        with open(os.path.join(self.out, "bench.json"), encoding="utf-8") as file:
            results = json.load(file)
        workloads = results["workloads"]
        self.assertEqual([(key, each["failed"]) for key, each in workloads.items()], [(key, "") for key in ("5", "7", "8", "12", "13", "14", "15", "16")])
        held, = workloads["5"]["rows"]
        self.assertEqual(held["locks"], 50)
        self.assertGreater(held["rss_bytes_per_lock"], 0)
        names = [row["name"] for row in workloads["7"]["rows"]]
        self.assertEqual(names[:3], ["flock FILE true", "quorlock run KEY -- true", "true"])
        flood, = workloads["8"]["rows"]
        self.assertGreaterEqual(flood["quorlock"]["locks"], 64)
        self.assertGreater(flood["ratio_to_raw"]["throughput"]["median"], 0)
        modes = {(row["in_flight"], row["delay_ms"], row["mode"]): row for row in workloads["12"]["rows"]}
        for mode in ("plain", "permit", "shared"):
            self.assertGreater(modes[16, 0, mode]["locks"], 0)
            self.assertEqual(modes[16, 0, mode]["failed"], 0)
            # One trip; the raw one beside it, which it is measured in, may have been slowed by other tests.
            self.assertGreater(modes[1, 5, mode]["round_trips"]["median"], 0.5)
        limits = {row["in_flight"]: row for row in workloads["13"]["rows"]}
        self.assertEqual(list(limits), [16, 256, 4096])
        for row in limits.values():
            self.assertEqual(set(row["of_raw"]), {"quorlock", "raw", "sent", "bare"})
            for side, figures in row["sides"].items():
                self.assertTrue(all(value > 0 for value in figures.values()), (side, figures))
        self.assertEqual([row["threads"] for row in workloads["14"]["rows"]], [1, 8, 64])
        for row in workloads["14"]["rows"]:
            self.assertEqual(row["failed"], 0)
            self.assertGreater(row["locks_per_s_ratio"]["median"], 0)
        python = [(row["mode"], row["style"], row["in_flight"]) for row in workloads["15"]["rows"]]
        self.assertEqual(python, [("before", "threads", 1), ("before", "threads", 8), ("before", "tasks", 1), ("before", "tasks", 32)])
        for row in workloads["15"]["rows"]:
            self.assertEqual(row["failed"], 0)
            self.assertGreater(row["locks_per_s_ratio"]["median"], 0)
        self.assertEqual([row["kind"] for row in workloads["16"]["rows"]], ["plain", "fair", "shared", "permits", "fair permits"])
        for row in workloads["16"]["rows"]:
            for build in ("now", "before"):
                self.assertEqual((row[build]["waiters"], row[build]["lost"]), (5, 0))
                self.assertGreater(row[build]["requests_a_grant"], 0)
        self.assertEqual([(one["figure"], one["values"]) for one in results["figures"]], [
            ("the limit, 256 under way: locks/s, of raw", [limits[256]["of_raw"]["sent"]["median"]]),
            ("beside the limit, quorlock: locks/s, of raw", [limits[256]["of_raw"]["quorlock"]["median"]])])
        with open(os.path.join(self.out, "bench.html"), encoding="utf-8") as file:
            page = file.read()
        for text in ("5. Held and renewed", "7. From a shell", "8. A flood", "12. Uncontended, by mode", "13. The limit", "14. Threads", "15. Python", "16. Waiting crowds", "50 held",
                     "quorlock run KEY -- true"):
            self.assertIn(text, page)
        self.assertGreaterEqual(page.count("<svg"), 5)
        # It needs nothing else.
        self.assertEqual(re.findall(r'(?:src|href)="|https?://|@import', page), [])
        self.assertEqual(glob.glob(os.path.join(self.scratch, "*")), [])

    def test_figures_of_several_runs(self):
        runs = [{"workloads": {"5": {"rows": [{"locks": 1_000_000, "lost": lost}, {"locks": 9, "lost": 9}]}}}
                for lost in (3, 0, 1)]
        self.assertEqual(repeats.figures(runs), [{"figure": "1,000,000 held: lost", "values": [0, 1, 3], "median": 1}])

    def test_what_it_runs_is_built_first(self):
        """scripts/bench builds that one target, in a tree where nothing else may be built yet."""
        with open(os.path.join(HERE, "..", "..", "scripts", "bench"), encoding="utf-8") as file:
            self.assertIn("--target bench_programs ", file.read())
        commands = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", "bench_programs"], check=True,
                                  capture_output=True, text=True).stdout
        wanted = set()
        for path in glob.glob(os.path.join(HERE, "*.py")):
            with open(path, encoding="utf-8") as file:
                wanted |= set(re.findall(r'path\("(\w+)"\)', file.read()))
        self.assertIn("bench_limit", wanted)
        for program in wanted | {"quorlock"}:
            self.assertIn(f" -o bin/{program} ", commands)

    def test_a_signal_ends_all_of_it(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with self.subTest(number):
                suite = self.start("--workloads", "1", "--seconds", "600")
                # Three servers and a program that measures.
                self.wait_for(lambda suite=suite: len(children(suite.pid)) >= 4)
                started = children(suite.pid)
                suite.send_signal(number)
                _, err = suite.communicate(timeout=LIMIT_S)
                self.assertEqual(suite.returncode, status, err)
                self.wait_for(lambda started=started: not any(map(is_alive, started)))
                self.assertEqual(glob.glob(os.path.join(self.scratch, "*")), [])

    def test_bad_options_are_named(self):
        for options, said in ((("--workloads", "17"), "'17' is no list of numbers from 1 to 16"),
                              (("--workloads", ""), "'' is no list of numbers"),
                              (("--seconds", "0"), "'0' is no number from 0.5 to 3600"),
                              (("--clients", "1"), "'1' is no list of numbers from 2"), (("contention",), "contention")):
            suite = self.start(*options)
            out, err = suite.communicate(timeout=LIMIT_S)
            self.assertEqual((suite.returncode, out), (64, ""), err)
            self.assertIn(said, err)


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else sys.exit(__doc__)
    unittest.main(verbosity=2)
