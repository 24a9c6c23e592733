#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a lock costs, in things that can be counted: test_counts.py PATH_TO_quorlock PATH_TO_bench_counts [TEST...]

bench_held is expected beside bench_counts.

A time says little on a busy machine; a count says the same everywhere, or nearly: how much comes together in one read
depends on who runs when. So a count that is too high is taken again, and the least of some counts.

Where a change makes one of these figures smaller, put the new figure into the table, with a little room.
"""
import functools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # the tree stays as it is
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import command_case
from command_case import Bootstrapped, Case, SERVERS, nodes
from redis_server import Wire

TRIES = 6
LIMIT_S = 200
NO_QUORUM = 69
PROGRAM = ""
MEANINGS = {
    "allocations": "calls of malloc, calloc and realloc by all libraries: a lock that is used again needs none",
    "system_calls": "reads, writes, epoll_wait, timers and random bytes: what many locks do in one turn of the loop "
                    "goes out in one write a node",
    "clock_readings": "clock_gettime: one takes as long as much of what else an event does; of many locks two are the "
                      "benchmark's own, and four are ours: both calls, and before both callbacks",
    "requests": "commands to all nodes: an acquire is one to each of three nodes, and so is a release; but what is a "
                "script goes with others of its turn of the loop",
    "bytes_out": "bytes that are sent to all nodes; keys and tokens have the same length in every run",
    "bytes_in": "bytes of the nodes' answers",
}
# What a lock may cost at most: options, then the figures in the order of MEANINGS.
LIMITS = [
    # Six requests of 141 bytes; fewer where some wait for others and leave together.
    ("one at a time", ["--rounds", "500"], (0.1, 24, 28, 6.02, 855, 28)),
    ("16 at a time", ["--in-flight", "16", "--rounds", "60"], (0.1, 4, 9, 3.6, 650, 30)),
    ("256 at a time", ["--in-flight", "256", "--rounds", "12"], (0.1, 1.9, 7, 3.6, 650, 30)),
    ("a fencing token", ["--in-flight", "16", "--rounds", "60", "--fence"], (0.1, 4, 10, 1.2, 1150, 160)),
    ("guard connection", ["--in-flight", "16", "--rounds", "60", "--guard", "connection"],
     (0.1, 4, 9, 3.6, 690, 30)),
    ("guard strict", ["--in-flight", "16", "--rounds", "60", "--guard", "strict"], (0.1, 4, 9, 1.2, 750, 112)),
    ("the redisson dialect", ["--in-flight", "16", "--rounds", "60", "--redisson"], (0.1, 4, 9, 1.2, 750, 112)),
]
# Of one of 50,000 locks with a short key on three nodes: blocks of memory, and bytes as malloc_usable_size tells them.
# In them is a share of the blocks for claims, of 2 KB each: the client keeps 1,024 of them, and as many may still be in
# use, which makes 83 bytes of each of these locks.
HELD = 50_000
MEMORY = {"blocks_per_idle": 2.01, "bytes_per_idle": 374, "blocks_per_lock": 2.1, "bytes_per_lock": 450}
INSTRUCTIONS_MAX = 32000  # a lock, 16 at a time


def run(*words):
    """What it prints. Where the machine is too busy for the limits of a lock, it runs again."""
    for _ in range(TRIES):
        done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=LIMIT_S)
        if done.returncode == 0:
            return json.loads(done.stdout)
        if done.returncode != NO_QUORUM:
            break
    raise AssertionError(f"{' '.join(words)}: status {done.returncode}: {done.stderr}")


def count(*options):
    return run(PROGRAM, *options, nodes())


def least_of(measure, limits):
    """The least of each figure, of some runs, until none is above its limit: a machine that is busy, or a server that is
    behind, adds to them."""
    least = {}
    for _ in range(TRIES):
        for what, figure in measure().items():
            least[what] = min(figure, least.get(what, figure))
        if all(least[what] <= limit for what, limit in limits.items()):
            break
    return least


# What a client costs a node that waits behind others, however many they are: its options, the keys that are held, and of
# each script that it sends the commands that the script runs, the elements that these return, and the bytes of its reply.
# The script is executed for a client that just comes, and then again.
QUEUES = [
    ("a fair lock", ["--fair"], {"": "another"}, {"fair_acquire": (20, 20, 30), "fair_leave": (3, 3, 1)}),
    ("a fair permit", ["--fair", "--permits", "2"], {"quorlock:slot:0:": "another", "quorlock:slot:1:": "a third"},
     {"fair_permit": (26, 25, 34), "fair_leave": (3, 3, 1)}),
    ("a reader", ["--shared"], {"": "another"}, {"shared_acquire": (4, 6, 19), "intend": (17, 16, 4)}),
    ("a reader behind a writer that waits, too", ["--shared"], {"": "quorlock:readers"}, {"shared_acquire": (18, 21, 27)}),
    ("a writer", ["--exclusive"], {"": "quorlock:readers"}, {"intend": (17, 16, 4)}),
]
WAITING = (10, 100, 1000)
KEPT_MS = 600000
COUNTING = """
local calls, elements, real = 0, 0, redis
local function counted(reply)
  calls, elements = calls + 1, elements + (type(reply) == 'table' and #reply or 1)
  return reply
end
local redis = setmetatable({
  call = function(...) return counted(real.call(...)) end,
  pcall = function(...) return counted(real.pcall(...)) end}, {__index = real})
local function request()
%s
end
request()
return {calls, elements}"""
SCRIPTS = Path(__file__).resolve().parents[2] / "src/redis/dialect/scripts"


def lines_of(script):
    return [line.strip() for line in script.splitlines() if line.strip() and not line.strip().startswith("--")]


def name_of(script):
    """The longest file of which the script has all lines; what the file imports stands among them."""
    has = set(lines_of(script))
    files = ((path.stem, lines_of(path.read_text(encoding="utf-8"))) for path in SCRIPTS.glob("*.lua"))
    return max((len(lines), name) for name, lines in files if has.issuperset(lines))[1]


def size_of(reply):
    if isinstance(reply, list):
        return sum(map(size_of, reply))
    return len(str(reply))


def monitor_escapes(server):
    """Whether MONITOR shows a command so that it can be read again. That of Valkey 8.1 does not."""
    wire = Wire(server.port)
    wire.ask("MONITOR")
    server.ask("ECHO", "\\")
    shown = next(line for line in iter(wire.file.readline, b"") if b'"ECHO"' in line)
    wire.file.close()
    wire.socket.close()
    return rb'"\\"' in shown


class Queues(Case):
    def fill(self, server, held, n):
        """The keys have holders, and so many writers and as many readers wait in either queue of the name."""
        server.ask("FLUSHALL")
        now_ms = int(server.ask("TIME")[0]) * 1000
        for key, holder in held.items():
            server.ask("SET", key + self.key, holder, "PX", KEPT_MS)
        server.ask("ZADD", f"quorlock:readers:{self.key}", now_ms + KEPT_MS, "another")
        for queue in ("queue", "intents") if n else ():
            words = []
            for i in range(n):
                words += [10**14 + i, f"ww{i}", now_ms + KEPT_MS, f"~w{i}"]
                words += [10**14 + 2**52 + i, f"rr{i}", now_ms + KEPT_MS, f"~r{i}"]
            server.ask("ZADD", f"quorlock:{queue}:{self.key}", *words)

    def scripts(self, options, held):
        """What a client sends that waits for a moment: for each script its text and its arguments."""
        for server in SERVERS:
            self.fill(server, held, 0)
        seen = [Wire(server.port) for server in SERVERS]
        for wire in seen:
            wire.ask("MONITOR")
        self.quorlock("run", "--guard", "off", "--wait", "1500ms", *options, self.key, "--", "true")
        found = {}
        for server, wire in zip(SERVERS, seen):
            server.ask("ECHO", "the end")
            for line in iter(wire.file.readline, b""):
                words = [re.sub(rb'\\(["\\])', rb"\\1", word.replace(b"\\n", b"\n"))
                         for word in re.findall(rb'"((?:[^"\\]|\\.)*)"', line)]
                if words == [b"ECHO", b"the end"]:
                    break
                if words and words[0].upper() == b"EVAL" and self.key.encode() in b" ".join(words[3:]):
                    found.setdefault(name_of(words[1].decode()), (words[1].decode(), words[2:]))
            wire.file.close()
            wire.socket.close()
        return found

    def test_one_more_that_waits_costs_no_more_however_many_are_before_it(self):
        if not monitor_escapes(SERVERS[0]):
            self.skipTest("MONITOR of this server does not tell a newline from a backslash and an n")
        for name, options, held, limits in QUEUES:
            found = self.scripts(options, held)
            self.assertLessEqual(set(limits), set(found), name)
            for script, limit in limits.items():
                text, words = found[script]
                for n in WAITING:
                    with self.subTest(f"{name}, {script}, {n} before it"):
                        self.fill(SERVERS[0], held, n)
                        for _ in range(2):
                            counts = SERVERS[0].ask("EVAL", COUNTING % text, *words)
                            counts.append(size_of(SERVERS[0].ask("EVAL", text, *words)))
                            print(f"{name}, {script}, {n} before it: {counts}", flush=True)
                            self.assertTrue(all(figure <= most for figure, most in zip(counts, limit)),
                                            f"{counts}, at most {limit} were enough before")


class Counts(Bootstrapped):
    def test_a_lock_costs_no_more_than_it_did(self):
        for name, options, figures in LIMITS:
            with self.subTest(name):
                limits = dict(zip(MEANINGS, figures))
                least = least_of(functools.partial(count, *options), limits)
                print(f"{name}: " + ", ".join(f"{what} {least[what]:g}" for what in MEANINGS), flush=True)
                for what, limit in limits.items():
                    self.assertLessEqual(least[what], limit, f"{name}: {least[what]:g} {what} a lock, at most {limit} "
                                                             f"were enough before ({MEANINGS[what]})")

    def test_the_baseline_is_what_is_said(self):
        """Two requests to each of three nodes, and nothing else."""
        self.assertAlmostEqual(count("--raw", "--in-flight", "16", "--rounds", "2")["requests"], 6, delta=0.02)

    def test_a_held_lock_takes_no_more_memory_than_it_did(self):
        program = os.path.join(os.path.dirname(PROGRAM), "bench_held")
        least = least_of(functools.partial(run, program, str(HELD), "1", "30000", nodes()), MEMORY)
        print(", ".join(f"{what} {least[what]:g}" for what in MEMORY), flush=True)
        for what, limit in MEMORY.items():
            self.assertGreater(least[what], 0)
            self.assertLessEqual(least[what], limit, f"{least[what]:g} {what} of {HELD}, at most {limit} were enough "
                                                     "before; src/README.md says which blocks there are")

    def test_a_lock_needs_no_more_instructions_than_it_did(self):
        valgrind = shutil.which("valgrind")
        if valgrind is None:
            self.skipTest("no valgrind here")
        out = self.path("callgrind.out")
        done = run(valgrind, "--tool=callgrind", f"--callgrind-out-file={out}", "--toggle-collect=measured*", PROGRAM,
                   "--uncounted", "--in-flight", "16", "--rounds", "60", nodes())
        with open(out, encoding="utf-8") as file:
            instructions = int(re.search(r"^(?:summary|totals): (\d+)", file.read(), re.M)[1])
        a_lock = instructions / done["locks"]
        print(f"instructions {a_lock:.0f}", flush=True)
        self.assertGreater(a_lock, 0)
        self.assertLessEqual(a_lock, INSTRUCTIONS_MAX, "instructions of this process a lock, by callgrind, in the "
                                                       "library and those below it; fewer were enough before")


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(2)) if len(sys.argv) > 2 else sys.exit(__doc__)
    command_case.main()
