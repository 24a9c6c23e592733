#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Names with permits and shared keys at the command line: run, inspect, break: test_command_parts.py PATH_TO_quorlock
[TEST...]"""
import json
import sys
import time

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import SERVERS, Bootstrapped, wait_for

TOKEN = "host:1:" + "ab" * 20
OTHER = "host:2:" + "cd" * 20
WAITER = "host:3:" + "ef" * 20
READERS = "quorlock:readers"
TERM = 2**50 + 12345678901  # more digits than a number of a script keeps when it becomes text


class Usage(command_case.Case):
    def refused(self, *words):
        status, out, err = self.quorlock("run", *words, "--", "touch", self.path("ran"))
        self.assertEqual((status, out), (64, ""), (words, err))
        return err

    def test_numbers_of_permits(self):
        for number in ("0", "65", "abc", "-1", "", "3.0"):
            err = self.refused("--permits", number, "a")
            self.assertIn(f'--permits: "{number}" is no number of permits: give a number from 1 to 64', err)

    def test_modes_that_do_not_go_together(self):
        self.assertIn("--permits belongs to one name, and 2 keys are given", self.refused("--permits", "2", "a", "b"))
        self.assertIn("--permits and --shared", self.refused("--permits", "2", "--shared", "a"))
        for mode in (("--permits", "2", "a"), ("--shared", "a")):
            err = self.refused("--dialect", "redisson", *mode)
            self.assertIn(f"{mode[0]}: the redisson dialect has neither permits nor shared locks", err)

    def test_no_option_becomes_a_key(self):
        for option in ("--shared", "--exclusive"):
            self.assertIn(f'{option} needs a key, and "--wait" looks like an option',
                          self.refused(option, "--wait", "0", "a"))
            self.assertIn(f"{option} needs a value: {option} KEY", self.refused(option))
            self.assertIn("the key is empty", self.refused(option + "="))
        self.assertIn('keys 1 and 2 are the same, "a"', self.refused("--shared", "a", "a"))
        self.assertIn('keys 1 and 2 are the same, "a"', self.refused("--shared", "a", "--exclusive", "a"))

    def test_a_file_cannot_have_them(self):
        for line in ("permits = 3", "shared = a", "exclusive = a"):
            with open(self.path("config"), "w", encoding="utf-8") as f:
                f.write(line + "\n")
            status, _, err = self.quorlock("config", env={"QUORLOCK_CONFIG": self.path("config")})
            self.assertEqual(status, 64, err)
            self.assertIn("cannot stand in a file", err)


class Seen(Bootstrapped):
    """What is on the nodes is put there by hand."""

    def slot(self, slot, token, servers, ms=30000, fence=None):
        for server in servers:
            server.ask("SET", f"quorlock:slot:{slot}:{self.key}", token, "PX", ms)
            server.ask("SET", f"quorlock:permits:{self.key}", "5", "PX", 30000)
            if fence is not None:
                server.ask("SET", f"quorlock:fence:quorlock:slot:{slot}:{self.key}", fence)

    def readers(self, tokens, servers, ms=30000):
        for server in servers:
            now_ms = int(time.time() * 1000)
            server.ask("SET", self.key, READERS, "PX", ms)
            for token in tokens:
                server.ask("ZADD", f"quorlock:readers:{self.key}", now_ms + ms, token)

    def inspect(self, verb="inspect"):
        status, out, err = self.quorlock(verb, "--json", self.key)
        self.assertEqual(status, 0, err)
        return json.loads(out)

    def lines(self, verb="inspect"):
        status, out, err = self.quorlock(verb, self.key)
        self.assertEqual((status, err), (0, ""), out)
        return out

    def test_slots(self):
        self.slot(2, TOKEN, SERVERS, fence=TERM)
        self.slot(0, OTHER, SERVERS[:2], ms=20000)
        self.slot(4, WAITER, SERVERS[2:])
        report = self.inspect()
        self.assertEqual((report["permits"], report["held"], report["holder"]), (5, False, None))
        for part in report["holders"]:
            self.assertTrue(0 <= part.pop("valid_ms") <= 30000)
        self.assertEqual(report["holders"], [
            {"kind": "slot", "slot": 0, "holder": OTHER, "nodes": 2, "fence": None},
            {"kind": "slot", "slot": 2, "holder": TOKEN, "nodes": 3, "fence": TERM},
            {"kind": "slot", "slot": 4, "holder": WAITER, "nodes": 1, "fence": None}])
        node = report["nodes"][2]
        self.assertEqual((node["state"], node["permits"]), ("free", 5))
        self.assertEqual([(part["slot"], part["holder"]) for part in node["holders"]], [(2, TOKEN), (4, WAITER)])
        self.assertTrue(all(0 < part["ttl_ms"] <= 30000 for part in node["holders"]))
        out = self.lines()
        self.assertTrue(out.startswith(f'"{self.key}": 2 of 5 permits are held\n'), out)
        self.assertRegex(out, rf"\nslot 0 +{OTHER} +2 of 3 +1\d{{4}} ms")
        self.assertRegex(out, rf"\nslot 2 +{TOKEN} +3 of 3 +2\d{{4}} ms +{TERM}\n")
        self.assertRegex(out, rf"\nslot 4 +{WAITER} +1 of 3")
        self.assertRegex(out, rf"\n{SERVERS[0]} +2 of 5 ")

    def test_the_end_of_a_slot_is_that_on_a_quorum(self):
        for server, ms in zip(SERVERS, (30000, 20000, 10000)):
            self.slot(0, TOKEN, [server], ms=ms)
        self.assertTrue(10000 < self.inspect()["holders"][0]["valid_ms"] <= 20000)
        status, out, _ = self.quorlock("inspect", "--json", "--policy", "all", self.key)
        self.assertEqual(status, 0)
        self.assertTrue(0 < json.loads(out)["holders"][0]["valid_ms"] <= 10000)

    def test_readers_and_who_waits(self):
        self.readers([TOKEN, OTHER], SERVERS[:2])
        self.readers([TOKEN], SERVERS[2:])
        for server in SERVERS:
            now_ms = int(time.time() * 1000)
            server.ask("ZADD", f"quorlock:intents:{self.key}", now_ms + 20000, f"w:{now_ms}:{WAITER}", now_ms + 20000,
                       "r:17:late", now_ms - 20000, "w:18:dead", now_ms + 20000, "nonsense")
            server.ask("ZADD", f"quorlock:readers:{self.key}", now_ms - 1, "gone")
        report = self.inspect()
        self.assertEqual((report["held"], report["holder"]), (True, READERS))
        self.assertNotIn("permits", report)
        for part in report["holders"]:
            self.assertTrue(0 < part.pop("valid_ms") <= 30000)
        self.assertEqual(report["holders"], [
            {"kind": "reader", "holder": TOKEN, "nodes": 3}, {"kind": "reader", "holder": OTHER, "nodes": 2},
            {"kind": "waits", "shared": False, "holder": WAITER, "nodes": 3},
            {"kind": "waits", "shared": True, "holder": "late", "nodes": 3}])
        out = self.lines()
        self.assertTrue(out.startswith(f'"{self.key}" is held shared by 2 readers, each on 2 of 3 nodes or more, '), out)
        self.assertRegex(out, rf"\nreader +{TOKEN} +3 of 3 +2\d{{4}} ms")
        self.assertRegex(out, rf"\nwriter waits +{WAITER} +3 of 3 +1\d{{4}} ms")
        self.assertRegex(out, r"\nreader waits +late +3 of 3 ")
        self.assertRegex(out, rf"\n{SERVERS[0]} +held +2 readers")
        self.assertRegex(out, rf"\n{SERVERS[2]} +held +1 reader ")

    def test_odd_names(self):
        odd = b"a b\n\x00c" + b"x" * 300
        self.slot(1, odd, SERVERS)
        self.assertEqual(self.inspect()["holders"][0]["holder"], r"a b\x0a\x00c" + "x" * 250)

    def test_many(self):
        for slot in range(64):
            self.slot(slot, "y" * 5000, SERVERS[:1])
        for server in SERVERS:
            server.ask("SET", f"quorlock:permits:{self.key}", "64")
        self.readers(["x" * 1000 + str(i) for i in range(600)], SERVERS[:1])
        report = self.inspect()
        self.assertEqual([node["error"] for node in report["nodes"]], [None] * 3)
        self.assertEqual(len([p for p in report["nodes"][0]["holders"] if p["kind"] == "slot"]), 64)
        self.assertEqual(len([p for p in report["nodes"][0]["holders"] if p["kind"] == "reader"]), 256)

    def test_other_values_at_these_keys(self):
        for server in SERVERS:
            for name in ("permits", "slot:0", "fence:quorlock:slot:1"):
                server.ask("LPUSH", f"quorlock:{name}:{self.key}", "x")
            server.ask("SET", f"quorlock:readers:{self.key}", "x")
            server.ask("SET", f"quorlock:intents:{self.key}", "x")
        report = self.inspect()
        self.assertEqual([node["state"] for node in report["nodes"]], ["free"] * 3)
        self.assertNotIn("holders", report)

    def test_break_takes_all_slots(self):
        self.slot(2, TOKEN, SERVERS, fence=7)
        self.slot(63, OTHER, SERVERS[:2])
        out = self.lines("break")
        # Slot 63 is none of five, and yet it goes.
        self.assertTrue(out.startswith(f'"{self.key}": 1 of 5 permits is held\n'), out)
        self.assertTrue(out.endswith("broken on 3 of 3 nodes\n"), out)
        for server in SERVERS:
            self.assertEqual([server.ask("GET", f"quorlock:slot:{slot}:{self.key}") for slot in (2, 63)], [None] * 2)
            self.assertEqual(server.ask("GET", f"quorlock:permits:{self.key}"), None)
            # The next holder's token is above it.
            self.assertEqual(server.ask("GET", f"quorlock:fence:quorlock:slot:2:{self.key}"), b"7")
        self.slot(2, TOKEN, SERVERS[:1])
        report = self.inspect("break")
        self.assertEqual([node["broken"] for node in report["nodes"]], [True, False, False])
        self.assertEqual([part["slot"] for part in report["nodes"][0]["holders"]], [2])
        self.assertEqual(self.quorlock("inspect", self.key)[1].splitlines()[0], f'"{self.key}" is free')

    def test_break_of_a_key_leaves_names_like_it(self):
        self.slot(2, TOKEN, SERVERS)
        self.hold("someone", count=3)
        other = self.key + "x"
        SERVERS[0].ask("SET", f"quorlock:slot:2:{other}", "z")
        self.lines("break")
        self.assertEqual(self.values(), [None] * 3)
        self.assertEqual(SERVERS[0].ask("GET", f"quorlock:slot:2:{self.key}"), None)
        self.assertEqual(SERVERS[0].ask("GET", f"quorlock:slot:2:{other}"), b"z")


if __name__ == "__main__":
    command_case.main()
