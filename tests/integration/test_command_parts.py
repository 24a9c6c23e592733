#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Names with permits and shared keys at the command line: run, inspect, break: test_command_parts.py PATH_TO_quorlock
[TEST...]"""
import itertools
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
        self.assertIn("--permits needs exactly one key: 2 keys are given", self.refused("--permits", "2", "a", "b"))
        self.assertIn("--permits and --shared", self.refused("--permits", "2", "--shared", "a"))
        for mode in (("--permits", "2", "a"), ("--shared", "a")):
            err = self.refused("--dialect", "redisson", *mode)
            self.assertIn(f"{mode[0]}: the redisson dialect has no such locks", err)

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
            self.assertIn("is no key of a file", err)


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

    def wait(self, server, letter, place, name, left_ms=20000):
        """One that waits, as in modules/queue.lua, where the queues' clock is the server's."""
        server.ask("DEL", "quorlock:clock")
        server.ask("ZADD", f"quorlock:intents:{self.key}", 10**14 + place + (2**52 if letter == "r" else 0), letter + name,
                   int(time.time() * 1000) + left_ms, "~" + name)

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
        for times_ms in itertools.permutations((30000, 20000, 10000)):
            for server, ms in zip(SERVERS, times_ms):
                self.slot(0, TOKEN, [server], ms=ms)
            self.assertTrue(10000 < self.inspect()["holders"][0]["valid_ms"] <= 20000, times_ms)
        status, out, _ = self.quorlock("inspect", "--json", "--policy", "all", self.key)
        self.assertEqual(status, 0)
        self.assertTrue(0 < json.loads(out)["holders"][0]["valid_ms"] <= 10000)

    def test_readers_and_who_waits(self):
        self.readers([TOKEN, OTHER], SERVERS[:2])
        self.readers([TOKEN], SERVERS[2:])
        for server in SERVERS:
            now_ms = int(time.time() * 1000)
            self.wait(server, "w", 1, WAITER)
            self.wait(server, "m", 2, "in-both-modes")
            self.wait(server, "r", 3, "late")
            self.wait(server, "w", 4, "dead", -20000)
            server.ask("ZADD", f"quorlock:intents:{self.key}", now_ms + 20000, "nonsense")
            server.ask("ZADD", f"quorlock:readers:{self.key}", now_ms - 1, "gone")
        report = self.inspect()
        self.assertEqual((report["held"], report["holder"]), (True, READERS))
        self.assertNotIn("permits", report)
        for part in report["holders"]:
            self.assertTrue(0 < part.pop("valid_ms") <= 30000)
        self.assertEqual(report["holders"], [
            {"kind": "reader", "holder": TOKEN, "nodes": 3}, {"kind": "reader", "holder": OTHER, "nodes": 2},
            {"kind": "waits", "shared": False, "place": None, "holder": WAITER, "nodes": 3},
            {"kind": "waits", "shared": False, "place": None, "holder": "in-both-modes", "nodes": 3},
            {"kind": "waits", "shared": True, "place": None, "holder": "late", "nodes": 3}])
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

    def test_numbers_beyond_any_use(self):
        """No node is down because of what somebody wrote beside a lock."""
        self.slot(1, TOKEN, SERVERS, fence=2**53 + 1)
        self.readers([OTHER], SERVERS)
        for server in SERVERS:
            server.ask("ZADD", f"quorlock:readers:{self.key}", "inf", TOKEN, "1e300", WAITER, "-inf", "dead")
            server.ask("ZADD", f"quorlock:intents:{self.key}", "inf", "r" + OTHER, "1e300", "~" + OTHER, 10**14, "w" + WAITER,
                       "inf", "~" + WAITER, "-inf", "~dead", "1e300", "")
        report = self.inspect()
        self.assertEqual([(node["state"], node["error"]) for node in report["nodes"]], [("held", None)] * 3)
        self.assertEqual([(part["kind"], part["holder"], part.get("fence")) for part in report["holders"]],
                         [("slot", TOKEN, None), *(("reader", reader, None) for reader in (TOKEN, OTHER, WAITER)),
                          *(("waits", waiter, None) for waiter in (OTHER, WAITER))])
        self.assertTrue(self.lines("break").endswith("broken on 3 of 3 nodes\n"))

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

    def test_run_passes_over_what_is_no_slot(self):
        for server in SERVERS:
            server.ask("LPUSH", f"quorlock:slot:0:{self.key}", "x")
        # Which slot is asked for first is drawn.
        for _ in range(12):
            status, _, err = self.quorlock("run", "-n", "--permits", "2", self.key, "--", "true")
            self.assertEqual((status, err), (0, ""))
        for server in SERVERS:
            server.ask("LPUSH", f"quorlock:slot:1:{self.key}", "x")
        status, _, err = self.quorlock("run", "-n", "--permits", "2", self.key, "--", "true")
        self.assertEqual(status, 78, err)
        self.assertRegex(err, rf'no vote: the key "quorlock:slot:[01]:{self.key}" holds a list')

    def test_what_stands_in_place_of_the_number_is_named(self):
        for server in SERVERS:
            server.ask("HSET", f"quorlock:permits:{self.key}", "f", "v")
        status, _, err = self.quorlock("run", "-n", "--permits", "2", self.key, "--", "true")
        self.assertEqual(status, 78, err)
        self.assertIn(f'the key "quorlock:permits:{self.key}" holds a hash, not a string', err)

    def test_break_says_that_it_took_what_is_no_slot(self):
        for server in SERVERS[:2]:
            server.ask("SET", f"quorlock:permits:{self.key}", "5", "PX", 30000)
        SERVERS[0].ask("LPUSH", f"quorlock:slot:3:{self.key}", "x")
        report = self.inspect("break")
        self.assertEqual([node["broken"] for node in report["nodes"]], [True, False, False])
        self.assertEqual(SERVERS[0].ask("EXISTS", f"quorlock:slot:3:{self.key}"), 0)

    def test_break_takes_all_readers(self):
        self.readers([TOKEN, OTHER], SERVERS)
        for server in SERVERS:
            self.wait(server, "w", 17, WAITER)
        self.assertTrue(self.lines("break").endswith("broken on 3 of 3 nodes\n"))
        for server in SERVERS:
            self.assertEqual(server.ask("EVAL", "return redis.call('EXISTS', unpack(KEYS))", 3, self.key,
                                        f"quorlock:readers:{self.key}", f"quorlock:intents:{self.key}"), 0)
        # Nothing is broken where somebody only waits.
        self.wait(SERVERS[0], "w", 17, WAITER)
        self.assertIn("broken on 0 of 3 nodes\n", self.lines("break"))

    def test_break_of_a_key_leaves_names_like_it(self):
        self.slot(2, TOKEN, SERVERS)
        self.hold("someone", count=3)
        other = self.key + "x"
        SERVERS[0].ask("SET", f"quorlock:slot:2:{other}", "z")
        self.lines("break")
        self.assertEqual(self.values(), [None] * 3)
        self.assertEqual(SERVERS[0].ask("GET", f"quorlock:slot:2:{self.key}"), None)
        self.assertEqual(SERVERS[0].ask("GET", f"quorlock:slot:2:{other}"), b"z")


class Holding(Bootstrapped):
    """Several commands at a time, each until it is told to go on."""

    def setUp(self):
        super().setUp()
        self.count = 0

    def hold_with(self, *words, env=None):
        """A command that is inside: its process, what its environment says of it, and the file that lets it go on."""
        self.count += 1
        up, go = self.path(f"up{self.count}"), self.path(f"go{self.count}")
        script = (f'echo "${{QUORLOCK_SLOT-none}} ${{QUORLOCK_FENCE-none}}" >{up}.new; mv {up}.new {up}; '
                  f"while [ ! -e {go} ]; do sleep .01; done")
        process = self.start("run", *words, "--", "sh", "-c", script, env=env)
        return process, f"up{self.count}", go

    def inside(self, held):
        self.wait_file(held[1], held[0])
        return self.read(held[1]).split()

    def go_on(self, held, status=0):
        with open(held[2], "w", encoding="utf-8"):
            pass
        result = self.end(held[0])
        self.assertEqual(result[0], status, result)
        return result[2]

    def try_once(self, *words, status=1):
        found, out, err = self.quorlock("run", "-n", *words, "--", "echo", "ran")
        self.assertEqual((found, out), (status, "ran\n" if status == 0 else ""), err)
        return err

    def report(self, key=None):
        return json.loads(self.quorlock("inspect", "--json", key or self.key)[1])

    def assert_no_key(self, *names):
        """Fencing counters stay, and so may the number of permits until the last lease would have ended."""
        wait_for(lambda: not [key for server in SERVERS for name in names or (self.key,)
                              for key in server.ask("EVAL", "return table.concat(redis.call('KEYS', '*'), ' ')", 0)
                              .decode().split() if key.endswith(name) and "fence:" not in key and "permits:" not in key])


class Permits(Holding):
    def test_each_has_a_slot_of_its_own(self):
        held = [self.hold_with("--permits", "3", self.key, env={"QUORLOCK_FENCE": "7"}) for _ in range(3)]
        found = [self.inside(one) for one in held]
        self.assertEqual(sorted(found), [["0", "none"], ["1", "none"], ["2", "none"]])
        report = self.report()
        self.assertEqual((report["permits"], len(report["holders"]), report["held"]), (3, 3, False))
        self.assertTrue(all(part["nodes"] >= 2 for part in report["holders"]), report)
        self.assertIn(f'"{self.key}": 3 of 3 permits are held\n', self.quorlock("inspect", self.key)[1])
        err = self.try_once("--permits", "3", self.key)
        self.assertRegex(err, f'all 3 permits are taken; slot [012] of "{self.key}" is held by .* on [23] of 3 nodes, ')
        status, out, err = self.quorlock("watch", "--once", self.key)
        self.assertEqual((status, err), (0, ""))
        self.assertIn(f'"{self.key}": 3 of 3 permits are held', out)
        event = json.loads(self.quorlock("watch", "--once", "--json", self.key)[1].splitlines()[0])
        self.assertEqual([event[name] for name in ("event", "state", "permits", "slots")], ["freed", "free", 3, 3])
        slot = self.inside(held[1])[0]
        self.go_on(held[1])
        status, out, err = self.quorlock("run", "-v", "--wait", "20s", "--permits", "3", self.key, "--", "printenv",
                                         "QUORLOCK_SLOT")
        self.assertEqual((status, out), (0, slot + "\n"), err)
        self.assertIn(f'granted "{self.key}" slot {slot} of 3 by ', err)
        for one in (held[0], held[2]):
            self.go_on(one)
        self.assert_no_key()

    def test_a_lock_without_permits_is_another(self):
        held = self.hold_with("--permits", "1", self.key)
        self.inside(held)
        self.assertEqual(self.quorlock("run", "-n", self.key, "--", "printenv", "QUORLOCK_SLOT",
                                       env={"QUORLOCK_SLOT": "7"})[0], 1)  # of printenv: it is not set
        self.try_once(self.key, status=0)
        self.go_on(held)

    def test_broken(self):
        held = [self.hold_with("--permits", "2", "--lease", "3s", self.key) for _ in range(2)]
        for one in held:
            self.inside(one)
        status, out, err = self.quorlock("break", self.key)
        self.assertEqual(status, 0, err)
        self.assertIn("2 of 2 permits are held", out)
        for one in held:
            self.assertEqual(self.end(one[0])[0], 75)
        self.assert_no_key()

    def test_all_nodes(self):
        held = self.hold_with("--policy", "all", "--permits", "2", self.key)
        self.inside(held)
        self.assertEqual([part["nodes"] for part in self.report()["holders"]], [3])
        self.go_on(held)
        self.assert_no_key()


class Shared(Holding):
    def test_readers_and_writers(self):
        held = [self.hold_with("--shared", self.key) for _ in range(3)]
        for one in held:
            self.assertEqual(self.inside(one), ["none", "none"])
        report = self.report()
        self.assertEqual((report["held"], report["holder"]), (True, READERS))
        self.assertEqual([part["kind"] for part in report["holders"]], ["reader"] * 3)
        self.assertIn(f'"{self.key}" is held shared by 3 readers, ', self.quorlock("inspect", self.key)[1])
        err = self.try_once(self.key)
        self.assertIn("held by readers", err)
        status, out, err = self.quorlock("watch", "--once", self.key)
        self.assertEqual((status, err), (0, ""))
        self.assertIn(f'"{self.key}" is held by 3 readers on ', out)
        event = json.loads(self.quorlock("watch", "--once", "--json", self.key)[1].splitlines()[0])
        self.assertEqual([event[name] for name in ("event", "holder", "readers")], ["holder", "readers", 3])
        # Another program's lock.
        self.assertEqual([server.ask("SET", self.key, "peer", "NX", "PX", 1000) for server in SERVERS].count(None), 3)
        for one in held:
            self.go_on(one)
        self.assert_no_key()
        writer = self.hold_with(self.key)
        self.inside(writer)
        self.try_once("--shared", self.key)
        self.go_on(writer)
        self.try_once("--shared", self.key, status=0)

    def test_mixed(self):
        names = [self.key + suffix for suffix in ("-a", "-b", "-c")]
        held = self.hold_with(names[0], "--shared", names[2], "--exclusive", names[1])
        self.inside(held)
        self.assertEqual([self.report(name)["holder"] == READERS for name in names], [False, False, True])
        self.try_once("--shared", names[2], status=0)
        for words in (("--shared", names[0]), ("--shared", names[1]), (names[2],), (names[1],),
                      ("--shared", names[2], names[0])):
            self.try_once(*words)
        status, out, err = self.quorlock("run", "-n", "--shared", names[2], "--", "printenv", "QUORLOCK_KEY")
        self.assertEqual((status, out), (0, names[2] + "\n"), err)
        self.go_on(held)
        self.assert_no_key(*names)

    def test_what_changes_is_an_event(self):
        def next_event(what, **wanted):
            while (event := json.loads(watch.stdout.readline()))["event"] != what:
                pass
            self.assertEqual({name: event.get(name) for name in wanted}, wanted)
        held = [self.hold_with("--shared", self.key)]
        self.inside(held[0])
        watch = self.start("watch", "--json", "--interval", "250ms", self.key)
        next_event("holder", holder="readers", readers=1)
        held.append(self.hold_with("--shared", self.key))
        next_event("holders", state="held", readers=2)
        self.go_on(held[0])
        next_event("holders", state="held", readers=1)
        self.go_on(held[1])
        next_event("freed", state="free", readers=None)

    def test_a_readers_token(self):
        self.assertEqual(self.quorlock("run", "--fence", "--shared", self.key, "--", "printenv", "QUORLOCK_FENCE")[:2],
                         (0, "0\n"))  # no writer was there

        def write():
            return int(self.quorlock("run", "--fence", self.key, "--", "printenv", "QUORLOCK_FENCE")[1])

        before = write()
        held = [self.hold_with("--fence", "--shared", self.key) for _ in range(2)]
        tokens = [int(self.inside(one)[1]) for one in held]
        for one in held:
            self.go_on(one)
        after = write()
        for token in tokens:
            self.assertLessEqual(before, token)  # more if a node connected late and granted the writer's key then
            self.assertLess(token, after)

    def test_a_key_that_begins_with_a_dash(self):
        self.try_once("--shared=--wait", status=0)
        self.assertEqual(self.quorlock("run", "--shared=-a", "--exclusive=-b", "--", "printenv", "QUORLOCK_KEYS")[1],
                         "-a\n-b\n")

if __name__ == "__main__":
    command_case.main()
