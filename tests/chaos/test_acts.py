#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Faults of cluster/chaos without a run: what each kind does to its targets, what plans may hold, and the shims' numbers.

usage: tests/chaos/test_acts.py [BUILD_BIN [TEST...]]
"""
import ast
import asyncio
import concurrent.futures
import graphlib
import itertools
import mmap
import re
import resource
import struct
import subprocess
import sys
import tempfile
import time
import types
import unittest
import unittest.mock
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "cluster" / "chaos.d"))

import faults  # noqa: E402
import plan  # noqa: E402
from descriptors import Descriptors  # noqa: E402
from faults import ROUTINES  # noqa: E402
from held_packets import HeldPackets  # noqa: E402
from system import Client, Node  # noqa: E402

SEEDS = range(40)


class Scripts(unittest.TestCase):
    def test_no_circle_of_imports(self):
        """Also of those within functions."""
        imports = {}
        for path in (ROOT / "cluster" / "chaos.d").glob("*.py"):
            nodes = list(ast.walk(ast.parse(path.read_text())))
            imports[path.stem] = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
            imports[path.stem] |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
        graphlib.TopologicalSorter(imports).prepare()  # raises CycleError


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


TO = "INPUT -p tcp -d host{n} --dport {n} "
FROM = "OUTPUT -p tcp -s host{n} --sport {n} "
DATA, DROP = "--tcp-flags SYN,PSH PSH ", "-j DROP"


def random_share(share):
    return f"-m statistic --mode random --probability {share} "


# Of each kind: its detail, what is done to each of its nodes (n) when it begins, and what when it ends.
ACTS = {
    "kill": ({}, ["kill {n}"], ["start {n} empty=False"]),
    "wipe": ({}, ["kill {n}"], ["start {n} empty=True"]),
    "aof-cut": ({"permille": 20}, ["kill {n}", "cut_log {n} 20"], ["start {n}"]),
    "pause": ({}, ["signal {n} 19", "set_state {n} paused"], ["signal {n} 18", "set_state {n} up"]),
    "cut": ({}, [TO + DROP], []),
    "mute": ({}, [FROM + DROP], []),
    "blackout": ({}, [TO + DROP, FROM + DROP], []),
    "lost-replies": ({}, [FROM + DATA + DROP], []),
    "lost-requests": ({}, [TO + DATA + DROP], []),
    "lossy": ({}, [TO + random_share(0.33) + DROP], []),
    "loss": ({"percent": 5}, [TO + random_share(0.05) + DROP, FROM + random_share(0.05) + DROP], []),
    "split": ({}, [TO + "-s c1 " + DROP], []),
    "divide": ({}, [TO + "-s c2 " + DROP, "INPUT -p tcp -d host3 --dport 3 -s c1 " + DROP], []),
    "slow": ({"to_server_ms": 20, "to_client_ms": 40}, ["order {n} slow 20 40"], ["order {n} slow 0 0"]),
    "half-open": ({"requests": 1, "then": "cut"}, ["order {n} hold 1 1"], ["order {n} cut", "order {n} hold 0 0"]),
    "reset": ({}, ["order {n} cut"], []),
    "oom": ({}, ["ask {n} CONFIG SET maxmemory 1mb"], ["ask {n} CONFIG SET maxmemory 0"]),
    "no-replicas": ({}, ["ask {n} CONFIG SET min-replicas-to-write 1"], ["ask {n} CONFIG SET min-replicas-to-write 0"]),
    "readonly": ({}, ["ask {n} REPLICAOF server{n} 1"], ["ask {n} REPLICAOF NO ONE"]),
    "flush": ({}, ["ask {n} FLUSHALL"], []),
    "clock-back": ({"step_ms": -50}, ["step_clock {n} -50"], []),
    "clock-forward": ({"step_ms": 300}, ["step_clock {n} 300"], ["step_clock {n} -300"]),
    "pause-client": ({}, ["stop c1"], ["go_on c1"]),
    "pause-writer": ({}, ["hold_next_write c1", "stop c1"], ["go_on c1", "let_go c1"]),
    "kill-client": ({}, ["kill c1"], ["start c1"]),
}


class Target:
    """A node or a client that only takes note of what is done to it."""
    ASYNC = ("kill", "start", "ask")

    def __init__(self, name, done, **more):
        self.name, self.done = name, done
        self.__dict__.update(more)

    def __getattr__(self, verb):
        def act(*words, **options):
            named = [f"{name}={value}" for name, value in options.items()]
            self.done.append(" ".join([verb, self.name, *(str(int(word) if verb == "signal" else word) for word in words),
                                       *named]))
            return 1

        async def act_later(*words, **options):
            if self.name[0] != "c" or verb != "start":
                act(*words, **options)

        if self.name[0] == "c" and verb == "start":
            return act
        return act_later if verb in self.ASYNC else act


class Acts(unittest.TestCase):
    @staticmethod
    def system(done):
        nodes = [Target(str(n), done, number=n, front_host=f"host{n}", front_port=n, server_host=f"server{n}", state="up")
                 for n in (1, 2, 3)]
        holding = types.SimpleNamespace(is_set=lambda: True)
        clients = [Target(f"c{n}", done, number=n, address=f"c{n}", channel=Target(f"c{n}", done, holding=holding))
                   for n in (1, 2)]
        rules = types.SimpleNamespace(add=lambda added: done.extend(" ".join(map(str, rule)) for rule in added),
                                      remove=lambda removed: done.extend(f"no {' '.join(map(str, rule))}" for rule in removed),
                                      dropped=lambda _: 1)
        links = types.SimpleNamespace(order=lambda node, *words: node.order(*words))
        return types.SimpleNamespace(nodes=nodes, clients=clients, node=lambda n: nodes[n - 1], filter=rules, links=links,
                                     client=lambda n: clients[n - 1])

    def test_each_fault_does_what_its_kind_says(self):
        for kind, (detail, begins, ends) in ACTS.items():
            done, targets = [], [1, 2] if kind in plan.AT_ONCE | {"blackout", "divide", "split"} else [1]
            fault = types.SimpleNamespace(kind=kind, nodes=targets, clients=[1], for_ms=0, detail=detail)

            async def hold(_, done=done):
                done.append("")

            with unittest.mock.patch.object(faults, "hold", hold):
                asyncio.run(ROUTINES[kind](self.system(done), fault))
            begun, ended = done[:done.index("")] if "" in done else done, done[done.index("") + 1:] if "" in done else []
            wanted = {act.format(n=n) for act in begins for n in targets}
            undone = {act.format(n=n) for act in ends for n in targets} | {f"no {act}" for act in wanted if act.endswith(DROP)}
            self.assertEqual((kind, set(begun), set(ended)), (kind, wanted, undone))


    def test_a_password_changes_in_the_order_of_the_plan(self):
        for file, order in ("before", ("more", "file", "less")), ("after", ("more", "less", "file")):
            done, system = [], None

            async def logins(count=itertools.count()):
                return next(count)

            system = self.system(done)
            for node in system.nodes:
                node.logins = logins
            system.passwords, system.write = ["old"], lambda *words: done.append(" ".join(words))
            fault = types.SimpleNamespace(id=7, nodes=[], for_ms=0, detail={"file": file})
            asyncio.run(ROUTINES["password"](system, fault))
            acts = {"more": [f"ask {n} ACL SETUSER default >password-7" for n in (1, 2, 3)], "file": ["password password-7\n"],
                    "less": [f"ask {n} ACL SETUSER default <old" for n in (1, 2, 3)]}
            self.assertEqual((file, done), (file, sum((acts[step] for step in order), [])))
            self.assertEqual(system.passwords, ["password-7"])


class Late(unittest.TestCase):
    @staticmethod
    async def pass_on(in_order):
        """The order in which packets of one connection go on."""
        done, held = [], HeldPackets.__new__(HeldPackets)
        held.__dict__.update(low_ms=0, high_ms=5, in_order=in_order, held={}, due={}, late=0, overtaken=0)
        held.send = lambda _kind, _flags, verdict: done.append(struct.unpack(">I", verdict[-4:])[0])
        for packet in range(40):
            held.take(packet, b"way")
        while len(done) < 40:
            await asyncio.sleep(0.001)
        return done, held.overtaken

    def test_late_packets_stay_in_order_and_others_do_not(self):
        self.assertEqual(asyncio.run(self.pass_on(True)), ([*range(40)], 0))
        done, overtaken = asyncio.run(self.pass_on(False))
        self.assertNotEqual(done, sorted(done))
        self.assertGreater(overtaken, 0)


class Programs(unittest.TestCase):
    def test_each_variable_of_a_client_has_its_own_value(self):
        """All that the manual names, and no others."""
        options = types.SimpleNamespace(permits=2, users=3)
        system = types.SimpleNamespace(private=True, commands=["a"], setup=0, options=options, keys=["k", "l"], lease="4-5",
                                       places=[types.SimpleNamespace(mode=mode) for mode in ("lock", "shared")], hold="6-7",
                                       max_lease_ms=8, guard="strict", fence=True, verbose=False, seed=9, source_shim="shim",
                                       addresses=lambda: "nodes")
        wanted = {"VERSION": "1", "CLIENT": "c2", "NODES": "nodes", "KEYS": "k,l", "MODES": "lock,shared", "PERMITS": "2",
                  "USERS": "3", "LEASE_MS": "4-5", "HOLD_MS": "6-7", "THINK_MS": "1-60", "WAIT_MS": "0-3000", "MAX_LEASE_MS": "8",
                  "GUARD": "strict", "FENCE": "1", "VERBOSE": "0", "SOURCE": "127.0.3.2"}
        front = "QUORLOCK_CHAOS_"
        # Those of the caller are handed on.
        with unittest.mock.patch.dict("os.environ", clear=True):
            environment = Client(system, 2).environment()
        found = {name.removeprefix(front): value for name, value in environment.items() if name.startswith(front)}
        self.assertTrue(found.pop("SEED").isdigit())
        self.assertEqual(found, wanted)
        manual = (ROOT / "src" / "man" / "quorlock-chaos.7").read_text(encoding="utf-8").replace("\\-", "-")
        self.assertEqual({*re.findall(front + r"(\w+)", manual)}, {*wanted, "SEED"})


class Log(unittest.TestCase):
    def test_what_was_marked_is_never_cut_off(self):
        with tempfile.TemporaryDirectory() as folder:
            node = Node(types.SimpleNamespace(folder=Path(folder)), 1, ("127.0.0.1", 1), ("127.0.0.1", 1))
            (node.folder / "data" / "aof").mkdir(parents=True)
            log = node.folder / "data" / "aof" / "appendonly.aof.1.incr.aof"
            log.write_bytes(b"." * 1000)
            node.keep_log()
            log.write_bytes(b"." * 1100)
            self.assertEqual([node.cut_log(permille) for permille in (0, 100, 1000, 1000)], [1, 9, 90, 0])
            self.assertEqual(log.stat().st_size, 1000)


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

    def test_aimed_faults_come_beside_the_others_and_hit_most_nodes(self):
        aimed = plan.GROUPS["aimed"]
        for seed in SEEDS:
            made = plan.make(seed, 60, 5, 6, [*aimed, "kill", "wipe"], [2, 4], 1000, True)
            self.assertEqual([fault.id for fault in made], [*range(1, len(made) + 1)])
            times = {kind: [fault.at_ms for fault in made if fault.kind == kind] for kind in (*aimed, "kill")}
            counts = [len(times[kind]) / plan.KINDS[kind].weight for kind in aimed]
            self.assertLessEqual(max(counts) - min(counts), 1)
            self.assertGreater(min(counts), 4)
            self.assertTrue(times["kill"])
            self.assertGreaterEqual(min(fault.at_ms for fault in made), plan.SETTLE_MS)
            for fault in made:
                if fault.kind in aimed:
                    wanted = {"stop-writer": 0, "stop-asker": 5}.get(fault.kind, 3)
                    self.assertEqual((fault.clients, len(fault.nodes)), ([], wanted), fault)

    def test_a_plan_without_aimed_faults_has_its_own_pace(self):
        without, beside = (sum(fault.kind == "kill" for seed in SEEDS for fault in plan.make(seed, 60, 5, 6, kinds, [], 500, False))
                           for kinds in (["kill"], ["kill", "stop-writer"]))
        self.assertGreater(without, 1.5 * beside)

    def test_groups_of_faults(self):
        able = set(plan.MISSING)
        for asked, wanted in (("all", plan.GROUPS["all"]), ("aimed", plan.GROUPS["aimed"]), ("-kill", plan.GROUPS["all"]),
                              ("aimed,all", [*plan.GROUPS["aimed"], *plan.GROUPS["all"]]), ("wipe,kill", ["wipe", "kill"]),
                              ("aimed,kill", ["kill", *plan.GROUPS["aimed"]])):
            chosen, left_out = plan.choose_kinds(asked, "inside", "connection", able)
            without = {"clock-forward", *asked.replace("-", "").split(",")} if asked == "-kill" else {"clock-forward"}
            self.assertEqual(chosen, [kind for kind in wanted if kind not in without], asked)

    def test_a_strobe_stays_within_the_allowance(self):
        for lease_ms in (10, 500, 2000):
            for fault in self.faults("clock-strobe", lease_ms=lease_ms):
                self.assertLessEqual(fault.detail["spread_ms"], max(1, lease_ms // 100))
        self.assertTrue(any(fault.detail["spread_ms"] > 100 for fault in self.faults("clock-strobe", outside=True)))

    def test_steps_back_of_a_node_add_up_to_little(self):
        for seed in SEEDS:
            steps = {}
            for fault in plan.make(seed, 90, 3, 2, ["clock-back"], [], 2000, True):
                steps[fault.nodes[0]] = steps.get(fault.nodes[0], 0) - fault.detail["step_ms"]
            self.assertLessEqual(max(steps.values()), plan.BACK_TOTAL_MS)

    def hit_together(self, kinds, of, **more):
        """How many of them are hit at once, at most."""
        most = 0
        for seed in SEEDS:
            made = plan.make(seed, 60, 5, 2, kinds, [], 2000, False, **more)
            for fault in made:
                others = [set(getattr(other, of)) for other in made if other.at_ms <= fault.at_ms < other.at_ms + other.for_ms]
                most = max(most, len(set.union(set(), *others)))
        return most

    def test_a_client_and_most_nodes_are_left_alone(self):
        self.assertEqual(self.hit_together(["kill-client", "pause-client"], "clients"), 1)
        with unittest.mock.patch.object(plan, "STORMS", 0):
            self.assertEqual(self.hit_together(["kill", "pause", "cut"], "nodes"), 2)

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
        asked = {"shim": "clock-strobe", "disk": "fsync-stall,disk-full", "filter": "cut,loss", "source": "split,divide,partitions",
                 "queue": "late,reorder", "names": "names", "guard": "reconfigure", "tls": "certificate", "password": "password"}
        for lacking, kinds in asked.items():
            chosen, left_out = plan.choose_kinds(kinds, "inside", "connection", set(asked) - {lacking})
            self.assertEqual((chosen, set(left_out)), ([], set(kinds.split(","))))
            chosen, left_out = plan.choose_kinds(kinds, "inside", "connection", set(asked))
            self.assertEqual((chosen, left_out), (kinds.split(","), {}))

    def test_a_log_cut_off_without_the_guard_is_outside(self):
        _, left_out = plan.choose_kinds("all", "inside", "off", {"disk", "shim"})
        self.assertIn("guard off", left_out["aof-cut"])
        self.assertNotIn("disk-full", left_out)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
