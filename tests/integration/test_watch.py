#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock watch without a terminal: its events as JSON and as lines, what it asks of the nodes, and how it ends:
test_watch.py PATH_TO_quorlock [TEST...]"""
import json
import os
import pathlib
import queue
import re
import signal
import socket
import sys
import threading
import time

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import LIMIT_S, SERVERS, Bootstrapped, Case, fill, wait_for
from watch_case import waits_to_write

MANUAL = pathlib.Path(__file__).resolve().parents[2] / "src" / "man" / "quorlock.1"
TOKEN = r"[0-9a-f]{40}"
READ_RIGHTS = ["+info", "+get", "+pttl", "+time", "+type", "+eval", "+evalsha", "+pubsub|numsub"]


class Watched(Case):
    def watch(self, *args, **more):
        """Starts it with JSON, and a thread that reads its events."""
        process = self.start("watch", "--json", "--interval", "250ms", *args, **more)
        self.events, self.seen = queue.Queue(), []

        def read():
            for line in process.stdout:
                self.events.put(line)
        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        self.addCleanup(reader.join, LIMIT_S)
        return process

    def event(self, *names, **fields):
        """The next event of one of these names that has these fields; those before it are passed over."""
        end = time.monotonic() + LIMIT_S
        while True:
            try:
                line = self.events.get(timeout=max(0.001, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no {names} {fields} came, but {self.seen}") from None
            event = json.loads(line)
            self.seen.append(event)
            if event["event"] in names and all(event[name] == value for name, value in fields.items()):
                return event

    def names(self):
        return [event["event"] for event in self.seen]

    def ended(self, process, number):
        """A signal ends it."""
        process.send_signal(number)
        self.assertEqual(process.wait(LIMIT_S), 128 + number)


class Events(Watched, Bootstrapped):
    def test_a_holder_appears_renews_and_is_gone(self):
        self.watch(self.key)
        free = self.event("freed", "unknown", state="free")
        self.assertEqual((free["key"], free["holder"], free["votes"], free["quorum"], free["nodes"]),
                         (self.key, None, 0, 2, 3))
        self.assertRegex(free["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        process = self.start("run", "--lease", "6s", "--label", "a-label:", self.key, "--", "cat",
                             stdin=command_case.subprocess.PIPE)
        held = self.event("holder", "quorum-gained", state="held")
        # Two nodes have it by now, whichever they are.
        token = next(value for value in self.values() if value is not None).decode()
        self.assertRegex(token, f"^a-label:{TOKEN}$")
        self.assertEqual(held["holder"], "a-label:" + token[8:16])
        self.assertGreaterEqual(held["votes"], 2)
        self.assertTrue(0 < held["left_ms"] <= 6000)
        self.event("renewed", holder=held["holder"], state="held")
        self.event("renewed", holder=held["holder"])
        process.communicate(timeout=LIMIT_S)
        self.event("freed", state="free", holder=None)
        self.assertNotIn(token[16:], json.dumps(self.seen))

    def test_a_lease_that_only_runs_down_is_not_renewed(self):
        self.hold("somebody", count=3, ms=600000)
        _, out, _ = self.quorlock("watch", "--json", "--interval", "250ms", "--count", "6", self.key)
        self.assertNotIn('"event": "renewed"', out)
        self.watch(self.key)
        seen = self.event("holder", "quorum-gained", holder="somebody", state="held")
        # One more vote with a later end would be no renewal.
        if seen["votes"] < 3:
            self.event("votes", votes=3)
        for server in SERVERS:
            server.ask("PERSIST", self.key)
        self.event("renewed", left_ms=None)
        self.assertEqual(self.names().count("renewed"), 1)

    def test_one_more_vote_with_a_later_end_is_no_renewal(self):
        for server, ms in zip(SERVERS, (600000, 700000)):
            server.ask("SET", self.key, "somebody", "PX", ms)
        self.watch(self.key)
        self.event("holder", "quorum-gained", "votes", state="held", votes=2)
        SERVERS[2].ask("SET", self.key, "somebody", "PX", 800000)
        self.event("votes", votes=3)
        SERVERS[2].ask("DEL", self.key)
        self.event("votes", votes=2)
        self.assertNotIn("renewed", self.names())

    def test_another_holder_and_one_on_too_few_nodes(self):
        self.hold("first", count=3)
        self.watch(self.key)
        self.event("holder", "quorum-gained", "votes", holder="first", state="held", votes=3)
        for server in SERVERS:
            server.ask("SET", self.key, "second", "PX", 30000)
        change = self.event("holder", holder="second")
        self.assertEqual(change["previous"], "first")
        if change["votes"] < 3:
            self.event("quorum-gained", "votes", holder="second", votes=3)
        for server in SERVERS[:2]:
            server.ask("DEL", self.key)
        lost = self.event("quorum-lost", state="taken")
        self.assertEqual((lost["holder"], lost["votes"]), ("second", 1))
        SERVERS[0].ask("SET", self.key, "second", "PX", 30000)
        self.assertEqual(self.event("quorum-gained")["votes"], 2)

    def test_a_node_is_killed_and_comes_back(self):
        self.hold("somebody", count=3)
        self.watch(self.key)
        self.event("holder", "quorum-gained", state="held")
        SERVERS[2].kill()
        down = self.event("node-down")
        self.assertEqual(down["node"], str(SERVERS[2]))
        self.assertTrue(down["error"])
        SERVERS[2].start()
        self.event("node-up", node=str(SERVERS[2]), error=None)
        self.assertNotIn("quorum-lost", self.names())

    def test_too_few_nodes_are_told_from_free(self):
        self.hold("somebody", count=3)
        self.watch(self.key)
        self.event("holder", "quorum-gained", state="held")
        for server in SERVERS[:2]:
            server.kill()
        lost = self.event("quorum-lost", state="unknown")
        self.assertEqual((lost["holder"], lost["votes"]), ("somebody", 1))
        self.assertNotIn("freed", self.names())
        for server in SERVERS[:2]:
            server.start()  # empty
        self.event("holder", state="taken", votes=1)

    def test_a_frozen_node_does_not_delay_what_others_say(self):
        self.hold("first", count=3)
        # Long, so that a machine that is busy is not taken for a frozen node.
        self.watch("--node-timeout", "9s", self.key)
        self.event("holder", "quorum-gained", "votes", state="held", votes=3)
        SERVERS[2].freeze()
        for server in SERVERS[:2]:
            server.ask("SET", self.key, "second", "PX", 60000)
        self.event("holder", "quorum-gained", holder="second", state="held")
        self.assertNotIn("node-down", self.names())
        self.event("node-down", node=str(SERVERS[2]))
        for server in SERVERS[:2]:
            server.ask("DEL", self.key)
        self.event("freed", state="free")
        SERVERS[2].thaw()
        self.event("node-up", node=str(SERVERS[2]))

    def test_waiters_are_counted(self):
        self.hold("somebody", count=3)
        self.watch(self.key)
        self.event("holder", "quorum-gained", state="held", waiters=0, waiting_ms=None)
        waiters = [self.start("run", self.key, "--", "true", stderr=command_case.subprocess.DEVNULL) for _ in range(2)]
        two = self.event("waiters", waiters=2)
        self.assertGreaterEqual(two["waiting_ms"], 0)
        waiters[0].kill()
        one = self.event("waiters", waiters=1)
        self.assertGreater(one["waiting_ms"], 0)
        waiters[1].kill()
        self.event("waiters", waiters=0, waiting_ms=None)

    def test_several_keys_and_odd_ones(self):
        odd = 'tab\there "quoted" \x1b[2J\u202e €'
        self.watch(odd, self.key)
        for key in (odd, self.key):
            SERVERS[0].ask("SET", key, "x", "PX", 30000)
            SERVERS[1].ask("SET", key, "x", "PX", 30000)
        names = set()
        while names != {odd, self.key}:
            names.add(self.event("holder", "quorum-gained", state="held")["key"])
        process = self.start("watch", "--once", odd)
        out = process.stdout.read()
        self.assertIn('"tab\\x09here "quoted" \\x1b[2J\\xe2\\x80\\xae €" is held by x on 2 of 3 nodes'.encode(), out)

    def test_other_values_and_the_other_dialect(self):
        for server in SERVERS:
            server.ask("HSET", self.key, "12345678-0000-0000-0000-000000000000:7", "1")
        _, out, _ = self.quorlock("watch", "--once", self.key)
        self.assertIn("is no lock: a hash is there\n", out)
        _, out, _ = self.quorlock("watch", "--once", "--dialect", "redisson", self.key)
        self.assertIn("is held by 12345678:7 on 3 of 3 nodes, no expiry\n", out)

    def test_lines_for_people(self):
        process = self.start("watch", "--interval", "250ms", self.key)
        date = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  "
        self.assertRegex(process.stdout.readline().decode(), date + f'"{self.key}" is free\n$')
        self.hold("somebody", count=3, ms=60000)
        wait_for(lambda: b"held by somebody on 3 of 3 nodes, " in process.stdout.readline())
        SERVERS[2].kill()
        self.assertRegex(process.stdout.readline().decode(), date + f"{SERVERS[2]} is down: .+\n$")
        self.assertRegex(process.stdout.readline().decode(), date + ".* is held by somebody on 2 of 3 nodes, ")
        SERVERS[2].start()
        self.assertRegex(process.stdout.readline().decode(), date + f"{SERVERS[2]} is up again\n$")
        self.ended(process, signal.SIGTERM)
        self.assertEqual(process.stderr.read(), b"")


class Quarantine(Watched):
    def test_a_quarantine_begins_and_ends(self):
        self.bootstrap("--max-lease", "2s")
        self.watch(self.key)
        self.event("freed", state="free")
        SERVERS[2].restart(empty=True)
        # A client of the nodes finds out that it lost its memory.
        guard = self.start("run", "--max-lease", "2s", "--lease", "1s", self.key + "-other", "--", "cat",
                           stdin=command_case.subprocess.PIPE, stderr=command_case.subprocess.DEVNULL)
        began = self.event("quarantine-began")
        self.assertEqual(began["node"], str(SERVERS[2]))
        self.assertTrue(0 < began["quarantine_ms"] <= 2001)
        self.event("quarantine-ended", node=str(SERVERS[2]), quarantine_ms=0)
        guard.communicate(timeout=LIMIT_S)


class Asks(Watched, Bootstrapped):
    def test_it_writes_nothing_and_asks_once_a_round(self):
        for rights in (["~*"], ["%R~*"]):
            for server in SERVERS:
                server.ask("ACL", "SETUSER", "reader", "reset", "on", ">x", *rights, *READ_RIGHTS, "+eval_ro", "+evalsha_ro")
                server.ask("SET", self.key, "somebody", "PX", 60000)
                server.ask("CONFIG", "RESETSTAT")
            addresses = ",".join(f"redis://reader:x@{server}" for server in SERVERS)
            before = [self.info(server, "rdb_changes_since_last_save") for server in SERVERS]
            # A reply that is late is asked for again in the next round, not twice in one.
            status, out, err = self.quorlock("watch", "--json", "--interval", "250ms", "--count", "4", self.key,
                                             env={"QUORLOCK_NODES": addresses})
            self.assertEqual((status, err), (0, ""))
            self.assertRegex(out, '"votes": [23]')
            self.assertIn('"waiters": 0', out)
            self.assertEqual([self.info(server, "rdb_changes_since_last_save") for server in SERVERS], before)
            for server in SERVERS:
                stats = server.ask("INFO", "commandstats").decode()
                self.assertNotRegex(stats, r"cmdstat_(set|del|pexpire|publish):")
                calls = sum(int(n) for n in re.findall(r"cmdstat_eval(?:sha)?(?:_ro)?:calls=(\d+)", stats))
                self.assertLessEqual(calls, 5)  # one when it connected
                self.assertGreaterEqual(calls, 1)
        for server in SERVERS:
            server.ask("ACL", "DELUSER", "reader")

    @staticmethod
    def info(server, field):
        return re.search(rf"^{field}:(\d+)", server.ask("INFO", "persistence").decode(), re.M).group(1)

    def test_rights_that_are_missing_cost_only_what_they_are_for(self):
        for right, text in (("pubsub|numsub", '"waiters": null'), ("time", '"state": "free"')):
            for server in SERVERS:
                server.ask("ACL", "SETUSER", "reader", "reset", "on", ">x", "~*", *READ_RIGHTS, "-" + right)
            addresses = ",".join(f"redis://reader:x@{server}" for server in SERVERS)
            status, out, _ = self.quorlock("watch", "--json", "--once", self.key, env={"QUORLOCK_NODES": addresses})
            self.assertEqual(status, 0, out)
            self.assertIn(text, out)
        for server in SERVERS:
            server.ask("ACL", "DELUSER", "reader")

    def test_the_rights_in_the_manual_suffice(self):
        manual = MANUAL.read_text(encoding="utf-8").replace("\\-", "-")
        words = re.search(r"^ +ACL SETUSER watcher (.*?)^\.fi$", manual, re.M | re.S).group(1).split()
        for server in SERVERS:
            server.ask("ACL", "SETUSER", "watcher", "reset", *(">x" if word == ">PASSWORD" else word for word in words))
        addresses = ",".join(f"redis://watcher:x@{server}" for server in SERVERS)
        for mode, shown in ((("--permits", "2"), '"permits": 2, "slots": 1,'), (("--shared",), '"readers": 1,')):
            key = f"job:{self.key}{mode[0]}"
            holder = self.start("run", *mode, key, "--", "sh", "-c", f"cd {self.folder}; >{mode[0]}; exec sleep 100")
            self.wait_file(mode[0], holder)
            status, out, err = self.quorlock("watch", "--json", "--once", key, env={"QUORLOCK_NODES": addresses})
            self.assertEqual((status, err), (0, ""))
            self.assertIn(shown, out)
            self.assertIn('"waiters": 0', out)
        for server in SERVERS:
            server.ask("ACL", "DELUSER", "watcher")

    def test_many_keys_share_the_pace(self):
        keys = [f"{self.key}-{n}" for n in range(6)]
        begun = time.monotonic()
        status, out, _ = self.quorlock("watch", "--json", "--interval", "250ms", "--count", "3", *keys)
        # After the first look at all of them, four looks a second and node.
        self.assertGreater(time.monotonic() - begun, 2 * 6 * 0.25 - 0.3)
        self.assertEqual(status, 0)
        self.assertEqual({json.loads(line)["key"] for line in out.splitlines()}, set(keys))


class Ends(Watched, Bootstrapped):
    def test_once(self):
        self.assertRegex(self.quorlock("watch", "--once", self.key)[1], f'^[-: 0-9]+"{self.key}" is free\n$')
        for server in SERVERS[:2]:
            server.kill()
        status, out, err = self.quorlock("watch", "--once", self.key)
        self.assertEqual((status, err), (69, ""))
        self.assertIn(f'"{self.key}": only 1 of 3 nodes answered, 2 are needed to tell\n', out)
        self.assertIn(f"{SERVERS[0]} is down: ", out)

    def test_a_signal_ends_it(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            process = self.watch(self.key)
            self.event("freed")
            self.ended(process, number)
            self.assertEqual(process.stderr.read(), b"")

    def test_a_signal_ends_it_where_nobody_reads(self):
        reader, writer = os.pipe()
        process = self.start("watch", "--json", "--interval", "250ms", self.key, stdout=writer)
        self.assertIn(b"freed", os.read(reader, 4096))
        fill(writer)
        self.hold("somebody", count=3)
        wait_for(lambda: waits_to_write(process.pid, writer))
        self.ended(process, signal.SIGTERM)
        os.close(writer)
        os.close(reader)

    def test_the_reader_is_gone_though_nothing_changes(self):
        for args in ((), ("--json",)):
            reader, writer = os.pipe()
            process = self.start("watch", *args, self.key, stdout=writer)
            os.close(writer)
            self.assertIn(self.key.encode(), os.read(reader, 4096))
            os.close(reader)
            self.assertEqual(process.wait(LIMIT_S), 128 + signal.SIGPIPE)
            self.assertEqual(process.stderr.read(), b"")

    def test_output_that_cannot_be_written(self):
        for args in [(), ("--once",), ("--once", "--json", self.key + "2")]:
            with open("/dev/full", "wb") as full:
                status, _, err = self.quorlock("watch", *args, self.key, stdout=full)
            # What comes on the way out is not said once more.
            self.assertEqual((status, err),
                             (74, "quorlock: cannot write to standard output: No space left on device\n"))

    def test_a_socket_is_an_output_too(self):
        ours, theirs = socket.socketpair()
        process = self.start("watch", "--json", self.key, stdout=theirs)
        theirs.close()
        self.assertIn(b"freed", ours.recv(4096))
        ours.close()
        self.assertEqual(process.wait(LIMIT_S), 128 + signal.SIGPIPE)

    def test_usage(self):
        for args, said in [((), "watch takes keys"), (("",), "key"),
                           (("--interval", "249ms", "a"), '"249ms" is out of range: give 250ms to 1h'),
                           (("--interval", "2", "a"), '"2" has no unit'),
                           (("--count", "0", "a"), '"0" is no number of rounds: give a number from 1 to'),
                           (("quorlock:a",), "quorlock:"), (("a", "quorlock:b"), "quorlock:"),
                           (("x" * 1025,), "key"), (("--lease", "3s", "a"), "does not belong"),
                           (tuple(f"k{n}" for n in range(65)), "64 keys at most, and not 65")]:
            status, out, err = self.quorlock("watch", *args)
            self.assertEqual((status, out), (64, ""), (args, err))
            self.assertIn(said, err)


if __name__ == "__main__":
    command_case.main()
