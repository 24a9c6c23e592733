#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ten of theirs and ten of ours for one key: test_contention.py PATH_TO_quorlock PATH_TO_ours FOLDER PEER

Inside they read a counter and write the next number a moment later, so that two inside at once lose an increment.
A trace that each contender writes on entering and leaving shows which ones these were.
QUORLOCK_INTEROP_SECONDS is the length, 12 when not set.
"""
import os
import sys
import unittest

sys.dont_write_bytecode = True  # the tree stays as it is
import peer_case
from peer_case import LIMIT_S, SERVERS, Contender, Program, nodes, wait_for

SECONDS = float(os.environ.get("QUORLOCK_INTEROP_SECONDS") or 12)
BARE_SECONDS = 2
LEASE_MS = 10000  # no contender is inside for so long
# Processes of ours and contenders in each: some meet in one process, some do not.
PROCESSES, IN_EACH = 5, 2
THEIRS = 10
# One kind of lock for each of theirs, where there are several.
KINDS = {"redisson": ["redlock"] * 4 + ["multilock"] * 3 + ["rlock"] * 3}
DIGITS = 12


def overlaps(path):
    """The contenders that were inside at once, in pairs: lines of the trace, 'TIME SLOT enter|leave|late SIDE OWNER', in their order.
    One that saw that its grant was over, and left the counter alone, is no overlap."""
    inside, pairs = {}, []
    with open(path, encoding="ascii") as f:
        for line in f:
            _, slot, what, *_ = line.split()
            if what == "enter":
                pairs += [(other, line.strip()) for other in inside.values()]
                inside[slot] = line.strip()
            else:
                entered = inside.pop(slot)
                if what == "late":
                    pairs = [pair for pair in pairs if entered not in pair]
    return pairs


def is_ours(line):
    return line.split()[3] == "ours"


class Side:
    def __init__(self, name, contenders):
        self.name, self.contenders = name, contenders
        self.turns, self.late = [], 0

    def start(self, *words):
        for contender in self.contenders:
            contender.order(*words, *contender.more)

    def finish(self, seconds):
        for contender in self.contenders:
            words = contender.program.expect(contender.slot, "contended", limit_s=seconds + LIMIT_S)
            self.turns.append(int(words[1]))
            self.late += int(words[2])

    def __str__(self):
        return (f"{self.name} {sum(self.turns)} turns by {len(self.turns)} ({min(self.turns)} to {max(self.turns)} "
                f"each), {self.late} too late")


class Contention(unittest.TestCase):
    def setUp(self):
        programs = [Program([peer_case.OURS, peer_case.PEER.dialect, "majority", *nodes()]) for _ in range(PROCESSES)]
        the_peer = Program(peer_case.PEER.words(nodes()))
        self.peer_name = the_peer.name
        kinds = KINDS.get(peer_case.PEER.name)
        self.ours = Side("ours", [Contender(program) for program in programs for _ in range(IN_EACH)])
        self.theirs = Side("theirs", [Contender(the_peer, *([kinds[i]] if kinds else [])) for i in range(THEIRS)])
        self.counter = os.path.join(peer_case.command_case.FOLDER, self._testMethodName)
        with open(self.counter, "w", encoding="ascii") as f:
            f.write("0" * DIGITS)
        self.trace = self.counter + ".trace"
        with open(self.trace, "w", encoding="ascii"):
            pass

    def tearDown(self):
        peer_case.end_programs()

    def contend(self, verb, key, seconds):
        """How many increments were lost, and which contenders were inside at once."""
        for side in (self.ours, self.theirs):
            side.start(verb, key, LEASE_MS, self.counter, int(1000 * seconds))
        for side in (self.ours, self.theirs):
            side.finish(seconds)
        with open(self.counter, encoding="ascii") as f:
            counter = int(f.read())
        made = sum(self.ours.turns) + sum(self.theirs.turns)
        pairs = overlaps(self.trace)
        print(f"\n{self.peer_name} {verb}, {seconds:g} s: {self.ours}; {self.theirs}; {made - counter} lost of "
              f"{made}, {len(pairs)} overlaps", flush=True)
        return made - counter, pairs

    def test_nothing_is_lost_and_both_get_turns(self):
        lost, pairs = self.contend("contend", "contend", SECONDS)
        told = "\n".join(f"{first}\n  and {second}" for first, second in pairs)
        # Overlaps among peers are printed; they are no fault of ours.
        if told:
            print(told, flush=True)
        self.assertFalse([pair for pair in pairs if any(map(is_ours, pair))], told)
        self.assertLessEqual(lost, len(pairs))
        self.assertGreater(sum(self.ours.turns), 0)
        self.assertGreater(sum(self.theirs.turns), 0)
        wait_for(lambda: [server.ask("EXISTS", "contend") for server in SERVERS] == [0] * len(SERVERS))

    def test_without_the_lock_updates_are_lost(self):
        lost, pairs = self.contend("bare", "-", BARE_SECONDS)
        self.assertGreater(lost, 0)
        self.assertTrue([pair for pair in pairs if any(map(is_ours, pair))])
        self.assertTrue([pair for pair in pairs if not all(map(is_ours, pair))])


if len(sys.argv) < 5:
    sys.exit("usage: test_contention.py PATH_TO_quorlock PATH_TO_ours FOLDER PEER [TEST...]")
peer_case.main(sys.argv.pop(4))
