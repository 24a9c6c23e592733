#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Faults of cluster/chaos: each kind in a short run of its own, where the report must show that it hit.

usage: tests/chaos/test_faults.py BUILD_BIN [TEST...]
"""
import asyncio
import concurrent.futures
import json
import mmap
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import types
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHAOS = ROOT / "cluster" / "chaos"
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "cluster" / "chaos.d"))

import plan  # noqa: E402
from descriptors import Descriptors  # noqa: E402
from faults import ROUTINES  # noqa: E402
from system import Node  # noqa: E402

BIN = None
SEEDS = range(40)
AT_ONCE = 5  # runs side by side
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
    return subprocess.run([str(CHAOS), "--bin", str(BIN), *words], capture_output=True, text=True, timeout=120,
                          check=False, env=os.environ | (env or {}))


class Runs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
        cls.addClassCleanup(pool.shutdown)
        cls.runs = {name: pool.submit(cls.run_one, name) for name in RUNS}

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

    def test_fsync_stall(self):
        self.check("fsync-stall")

    def test_disk_full(self):
        self.check("disk-full")

    def test_disk_full_ends_a_server(self):
        self.check("disk-full-end")

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

    def test_a_name_server_that_hangs(self):
        self.check("names-hangs")

    def test_a_name_server_that_is_late(self):
        self.check("names-late")

    def test_a_new_password(self):
        self.check("password-before")
        self.check("password-after")

    def test_a_new_certificate(self):
        self.check("certificate-before")
        self.check("certificate-after")

    def test_blackout(self):
        self.check("blackout")

    def test_reconfigure_of_the_lease(self):
        self.check("reconfigure-lease")

    def test_reconfigure_of_a_node(self):
        self.check("reconfigure-node")


class NothingHit(unittest.TestCase):
    def test_a_fault_that_hits_nothing_fails_the_run(self):
        with tempfile.TemporaryDirectory() as folder:
            server = Path(folder) / "server"
            real = shutil.which(os.environ.get("REDIS_SERVER", "redis-server"))
            server.write_text(f'#!/bin/sh\nunset LD_PRELOAD\nexec "{real}" "$@"\n')
            server.chmod(0o755)
            run = chaos("--faults", "clock-strobe", "--seconds", "3", "--seed", "3", env={"REDIS_SERVER": str(server)})
        self.assertEqual(run.returncode, 70, run.stdout + run.stderr)
        self.assertIn("clock-strobe came but never hit anything", run.stderr)


class Disk(unittest.TestCase):
    @staticmethod
    def watch(path, seconds):
        """Runs in a process of its own, as the server does: how often the disk had no room."""
        with open(path, "r+b") as file:
            disk = memoryview(mmap.mmap(file.fileno(), 32)).cast("q")
        end, full = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            full += sum(disk[1] == 0 for _ in range(1000))
        return full

    def test_a_disk_that_becomes_slow_is_not_full_for_an_instant(self):
        with tempfile.TemporaryDirectory() as folder, concurrent.futures.ProcessPoolExecutor(1) as pool:
            address = ("127.0.0.1", 1)
            node = Node(types.SimpleNamespace(folder=Path(folder)), 1, address, address)
            watch = pool.submit(self.watch, node.folder / "disk", 0.5)
            while not watch.done():
                node.set_disk(stall_ms=20)
            self.assertEqual(watch.result(), 0)


class Strobe(unittest.TestCase):
    @staticmethod
    async def strobe(folder):
        """The offsets that a clock had, and the last one."""
        address = ("127.0.0.1", 1)
        node = Node(types.SimpleNamespace(folder=Path(folder)), 1, address, address)
        fault = types.SimpleNamespace(nodes=[1], for_ms=200, detail={"spread_ms": 50, "every_ms": 1})
        run = asyncio.ensure_future(ROUTINES["clock-strobe"](types.SimpleNamespace(node=lambda _: node), fault))
        seen = set()
        while not run.done():
            seen.add(node.clock_offset_ms())
            await asyncio.sleep(0)
            node.clock[1] = 1  # as the shim of a server that has read a step
        await run
        return seen, node.clock_offset_ms()

    def test_the_clock_steps_between_two_values(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(asyncio.run(self.strobe(folder)), ({0, 50}, 0))


class OutOfDescriptors(unittest.TestCase):
    PROGRAM = ("import socket, sys\n"
               "for line in sys.stdin:\n"
               "    opened = socket.socket()\n"
               "    print('open', flush=True)\n")

    def test_a_program_that_is_being_loaded_can_open_files(self):
        with subprocess.Popen([sys.executable, "-c", self.PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True, start_new_session=True) as process:
            descriptors = Descriptors(types.SimpleNamespace(process=process))
            whole = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
            descriptors.exhaust()
            self.assertEqual(resource.prlimit(process.pid, resource.RLIMIT_NOFILE), whole)
            process.stdin.write("\n")
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), "open\n")
            descriptors.exhaust()
            self.assertEqual(resource.prlimit(process.pid, resource.RLIMIT_NOFILE), (3, whole[1]))
            descriptors.restore()
            self.assertEqual(resource.prlimit(process.pid, resource.RLIMIT_NOFILE), whole)
            process.stdin.close()


class Plans(unittest.TestCase):
    def faults(self, kind, outside=False, lease_ms=500):
        made = [fault for seed in SEEDS
                for fault in plan.make(seed, 30, 5, 6, [kind, "kill"], [2, 4], 2000, True, outside, lease_ms)
                if fault.kind == kind]
        self.assertGreater(len(made), len(SEEDS))
        return made

    def test_a_strobe_stays_within_the_allowance(self):
        for lease_ms in (10, 500, 2000):
            for fault in self.faults("clock-strobe", lease_ms=lease_ms):
                self.assertLessEqual(fault.detail["spread_ms"], max(1, lease_ms // 100))
        self.assertTrue(any(fault.detail["spread_ms"] > 100 for fault in self.faults("clock-strobe", outside=True)))

    def test_partitions_overlap(self):
        for fault in self.faults("partitions"):
            cuts = fault.detail["cuts"]
            self.assertIn(len(cuts), (2, 3))
            for one, next_one in zip(cuts, cuts[1:]):
                self.assertTrue(set(one["nodes"]) & set(next_one["nodes"]))

    def test_a_new_set_comes_when_no_node_is_struck(self):
        for seed in SEEDS:
            made = plan.make(seed, 60, 5, 6, ["reconfigure", "kill"], [2, 4], 2000, True)
            for fault in (fault for fault in made if fault.kind == "reconfigure"):
                self.assertNotIn(fault.detail.get("replaced"), (2, 4))
                for other in made:
                    if other is not fault and other.at_ms <= fault.at_ms:
                        self.assertLess(other.at_ms + other.for_ms, fault.at_ms)

    def test_what_the_machine_lacks_is_left_out_with_the_reason(self):
        asked = {"shim": "clock-strobe", "disk": "fsync-stall,disk-full", "filter": "partitions,loss",
                 "queue": "late,reorder", "names": "names", "guard": "reconfigure", "tls": "certificate", "password": "password"}
        for lacking, kinds in asked.items():
            chosen, left_out = plan.choose_kinds(kinds, "inside", "connection", True, set(asked) - {lacking})
            self.assertEqual((chosen, set(left_out)), ([], set(kinds.split(","))))
            chosen, left_out = plan.choose_kinds(kinds, "inside", "connection", True, set(asked))
            self.assertEqual((chosen, left_out), (kinds.split(","), {}))

    def test_a_log_cut_off_without_the_guard_is_outside(self):
        _, left_out = plan.choose_kinds("all", "inside", "off", True, {"disk", "shim"})
        self.assertIn("guard off", left_out["aof-cut"])
        self.assertNotIn("disk-full", left_out)


if __name__ == "__main__":
    if len(sys.argv) < 2 or not (Path(sys.argv[1]) / "chaos_client").exists():
        print(f"usage: {sys.argv[0]} BUILD_BIN [TEST...], the folder of chaos_client", file=sys.stderr)
        sys.exit(64)
    BIN = Path(sys.argv[1]).resolve()
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
