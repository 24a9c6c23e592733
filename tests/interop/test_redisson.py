#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock --dialect redisson beside Redisson: test_redisson.py PATH_TO_quorlock PATH_TO_ours FOLDER"""
import json
import re
import sys
import time

sys.dont_write_bytecode = True  # the tree stays as it is
import peer_case
from peer_case import LONG_MS, SERVERS, SHORT_MS, Beside, Contender, Program, Stage, wait_for

UNLOCK_BYTES_MIN = 100  # a ping is shorter


def unread(port):
    """How many bytes wait in the sockets of this port until their owner reads them."""
    with open("/proc/net/tcp", encoding="ascii") as f:
        rows = [line.split() for line in f][1:]
    return sum(int(row[4].split(":")[1], 16) for row in rows
               if int(row[1].split(":")[1], 16) == port and row[3] == "01")


def refusals():
    """How often each server has told how long a key lasts, as it does to each try of theirs that it refuses."""
    found = [re.search(rb"cmdstat_pttl:calls=(\d+)", server.ask("INFO", "commandstats")) for server in SERVERS]
    return [int(match.group(1)) if match else 0 for match in found]


class Redisson(Beside):
    def take_renewed(self):
        """Without a lease of its own Redisson's watchdog renews it."""
        return self.theirs.take(self.key, 0)

    def assert_shown(self, report, owners):
        """They have a client for each server, and each of these writes an owner of its own."""
        self.assertEqual([(node["state"], node["holder"], node["count"]) for node in report["nodes"]],
                         [("held", owner, 1) for owner in owners])
        self.assertTrue(report["held"])
        self.assertGreater(report["valid_ms"], 0)


class RedLock(Redisson):
    more = ("redlock",)


class MultiLock(Redisson):
    more = ("multilock",)
    policy = "all"


class RLockOnEach(Redisson):
    more = ("rlock",)
    policy = "all"


class Besides(Stage):
    """What only Redisson does."""
    more = ("rlock",)

    def on(self, number, kind="rlock"):
        """A contender of theirs for the lock on one server."""
        return Contender(self.the_peer, f"{kind}{number}")

    def on_each(self, kind):
        return [self.on(number, kind) for number in range(len(SERVERS))]

    def assert_everywhere(self, key):
        """Also where the vote was not waited for."""
        wait_for(lambda: [server.ask("EXISTS", key) for server in SERVERS] == [1] * len(SERVERS))

    def line_up(self, key):
        """Theirs waits on every server for a lock that ours will keep for longer than they wait."""
        return self.order_each("rlock", key)

    def order_each(self, kind, key):
        """Theirs waits on every server: it asked, listens, has asked again, and sleeps."""
        self.assert_everywhere(key)
        before = refusals()
        waiting = self.on_each(kind)
        for contender in waiting:
            contender.order("acquire", key, LONG_MS, peer_case.WAIT_MS, *contender.more)
        wait_for(lambda: all(now >= then + 2 for now, then in zip(refusals(), before)))
        for contender in waiting:
            contender.quiet()
        return waiting

    def test_our_release_wakes_theirs(self):
        for key in (self.key, f"{self.key}{{tag}}"):
            with self.subTest(key):
                self.ours.take(key)
                waiting = self.line_up(key)
                # They ask again when the lease shown to them ends, which is after their wait: or with a notice.
                for server in SERVERS:
                    self.assertGreater(server.ask("PTTL", key), peer_case.WAIT_MS)
                self.ours.give_back()
                for contender in waiting:
                    contender.expect("acquired")
                    contender.give_back()

    def test_our_release_wakes_who_waits_for_a_fair_lock(self):
        """Each listens on a channel of its own, and the queue says whose turn it is."""
        self.ours.take(self.key)
        waiting = self.order_each("fair", self.key)
        # They would sleep until the lease ends that was shown to them, which is after their wait.
        for server in SERVERS:
            self.assertGreater(server.ask("PTTL", self.key), peer_case.WAIT_MS)
        self.ours.give_back()
        for contender in waiting:
            contender.expect("acquired")
        self.assert_held(self.ours.attempt(self.key))
        for contender in waiting:
            contender.give_back()
        self.assert_free()

    def test_a_read_write_lock_of_theirs_has_one_name(self):
        """Its fields have the order of arrival, which differs from server to server."""
        readers = list(zip(self.on_each("read"), self.on_each("read")))
        for number, pair in enumerate(readers):
            for contender in pair if number % 2 else reversed(pair):
                contender.take(self.key)
        report = json.loads(self.command("inspect", "--json", self.key)[1])
        self.assertEqual([node["holder"] for node in report["nodes"]], ["RReadWriteLock:read"] * len(SERVERS))
        self.assertTrue(report["held"])
        self.assert_held(self.ours.attempt(self.key))
        for pair in readers:
            for contender in pair:
                contender.give_back()
        self.assert_free()
        writers = self.on_each("write")
        for contender in writers:
            contender.take(self.key)
        status, _, err = self.command("run", "-n", "--lease", "10s", self.key, "--", "echo")
        self.assertEqual(status, 1)
        self.assertIn("is held by RReadWriteLock:write on ", err)
        for contender in writers:
            contender.give_back()
        self.ours.take(self.key)
        self.ours.give_back()

    def test_a_read_lock_of_theirs_ends_ours_and_that_is_told(self):
        """It asks for no lock, and its unlock deletes the key: so the two must not have one name."""
        self.ours.take(self.key, SHORT_MS)
        self.assert_everywhere(self.key)
        readers = self.on_each("read")
        for contender in readers:
            contender.take(self.key)
        for contender in readers:
            contender.give_back()
        self.ours.expect("lost")
        self.assertEqual(self.ours.ask("valid"), ["valid", "0"])
        self.assertEqual(self.ours.ask("release"), ["released", "expired"])
        self.assert_free()

    def test_our_break_wakes_theirs(self):
        self.ours.take(self.key)
        waiting = self.line_up(self.key)
        self.assertEqual(self.command("break", self.key)[0], 0)
        for contender in waiting:
            contender.expect("acquired")
            contender.give_back()

    def connected(self):
        """A program of ours that every server has answered."""
        ours = Contender(Program([peer_case.OURS, peer_case.PEER.dialect, self.policy, *peer_case.nodes()]))
        ours.take(self.key)
        self.assert_everywhere(self.key)
        ours.give_back()
        self.assert_free()
        return ours

    def test_our_failed_attempt_wakes_theirs(self):
        """A vote of ours that came to nothing is taken back: the refused must not wait for the end of its lease.

        The others give ours no answer in time. Which it asks first is its own business, so each votes in turn."""
        for free in range(len(SERVERS)):
            frozen = [server for server in SERVERS if server is not SERVERS[free]]
            ours, theirs = self.connected(), self.on(free)
            for server in frozen:
                server.freeze()
            try:
                ours.order("acquire", self.key, LONG_MS, 0)
                wait_for(lambda: SERVERS[free].ask("EXISTS", self.key))
                theirs.order("acquire", self.key, LONG_MS, peer_case.WAIT_MS, *theirs.more)
                ours.expect("refused")
                theirs.expect("acquired")
            finally:
                for server in frozen:
                    server.thaw()
            theirs.give_back()
            self.assert_free()
            ours.program.end()

    def test_they_see_ours(self):
        self.assertEqual(self.theirs.ask("see", self.key), ["seen", "0"])
        self.ours.take(self.key)
        wait_for(lambda: self.theirs.ask("see", self.key) == ["seen", "3"])
        self.ours.give_back()
        wait_for(lambda: self.theirs.ask("see", self.key) == ["seen", "0"])

    def test_a_minority_of_theirs_stops_us_not_and_is_let_be(self):
        first = self.on(0)
        first.take(self.key)
        owner, = self.ours.take(self.key, SHORT_MS)
        self.assertEqual(self.on(1).attempt(self.key)[0], "refused")
        for _ in self.for_leases(1):
            self.assertEqual(first.ask("held"), ["held", "1"])
        first.give_back()
        # Ours is put where theirs stood.
        wait_for(lambda: [server.ask("HGET", self.key, owner) for server in SERVERS] == [b"1"] * len(SERVERS))
        self.ours.give_back()
        self.assert_free()

    def test_a_majority_of_theirs_stops_us(self):
        two = [self.on(0), self.on(2)]
        for contender in two:
            contender.take(self.key)
        self.assert_held(self.ours.attempt(self.key))
        # And nothing of ours is left on the third.
        wait_for(lambda: SERVERS[1].ask("EXISTS", self.key) == 0)
        two[0].give_back()
        self.ours.take(self.key)
        two[1].give_back()
        self.ours.give_back()

    def test_they_hold_it_twice(self):
        self.theirs.take(self.key)
        self.theirs.take(self.key)
        report = json.loads(self.command("inspect", "--json", self.key)[1])
        self.assertEqual([node["count"] for node in report["nodes"]], [2] * len(SERVERS))
        self.theirs.give_back()
        self.assert_held(self.ours.attempt(self.key))
        self.assertEqual(self.theirs.ask("held"), ["held", "1"])
        self.theirs.give_back()
        self.ours.take(self.key)
        self.ours.give_back()

    def test_they_force_ours(self):
        self.ours.take(self.key, SHORT_MS)
        wait_for(lambda: self.theirs.ask("see", self.key) == ["seen", "3"])
        self.assertEqual(self.theirs.ask("force", self.key), ["forced", "3"])
        self.theirs.take(self.key)
        self.ours.expect("lost")
        self.assertEqual(self.ours.ask("valid"), ["valid", "0"])
        # Our release says that it came too late, and does theirs no harm.
        self.assertEqual(self.ours.ask("release"), ["released", "expired"])
        self.assert_held(self.another_of_ours().attempt(self.key))
        self.assertEqual(self.theirs.ask("held"), ["held", "1"])
        self.theirs.give_back()
        self.assert_free()

    def test_they_force_ours_and_nobody_takes_it(self):
        self.ours.take(self.key, SHORT_MS)
        wait_for(lambda: self.theirs.ask("see", self.key) == ["seen", "3"])
        self.assertEqual(self.theirs.ask("force", self.key), ["forced", "3"])
        self.ours.expect("lost")
        # What was lost is not put back.
        self.assertEqual(self.theirs.ask("see", self.key), ["seen", "0"])
        self.ours.ask("release")

    def test_we_break_theirs(self):
        owners = self.theirs.take(self.key, 0)
        status, out, err = self.command("break", self.key)
        self.assertEqual(status, 0, err)
        for owner in owners:
            self.assertIn(owner, out)
        self.assertEqual(self.theirs.ask("held"), ["held", "0"])
        self.ours.take(self.key)
        self.assertEqual(self.theirs.ask("release")[0], "failed")
        # Nor does their watchdog touch ours.
        for server in SERVERS:
            self.assertEqual(server.ask("HLEN", self.key), 1)
        self.assertGreater(int(self.ours.ask("valid")[1]), 0)
        self.ours.give_back()
        self.assert_free()

    def test_a_latch_of_theirs_is_tolerated(self):
        """It holds the answer of an unlock, for the unlock to be repeated; and stays where its client is gone."""
        last = self.on(0)
        last.take(self.key)
        last.give_back()  # the server has the scripts now
        last.take(self.key)
        SERVERS[0].freeze()
        last.order("release")
        wait_for(lambda: unread(SERVERS[0].port) >= UNLOCK_BYTES_MIN)
        self.kill_theirs()
        SERVERS[0].thaw()
        wait_for(lambda: SERVERS[0].ask("EXISTS", self.key) == 0)
        latches = ("EVAL", "return #redis.call('KEYS', ARGV[1])", 0, f"redisson_unlock_latch:*{self.key}*")
        self.assertEqual(SERVERS[0].ask(*latches), 1)
        owner, = self.ours.take(self.key)
        status, out, err = self.command("inspect", self.key)
        self.assertEqual(status, 0, err)
        self.assertIn(f'"{self.key}" is held by {owner} on 3 of 3', out)
        self.assertEqual(SERVERS[0].ask(*latches), 1)
        self.ours.give_back()
        self.assert_free()

    def test_the_other_dialect_is_foreign(self):
        owners = self.theirs.take(self.key)
        status, out, err = self.command("run", "-n", "--dialect", "plain", "--lease", "10s", self.key, "--", "echo")
        self.assertEqual((status, out), (78, ""), err)
        self.assertIn("not a string", err)
        report = json.loads(self.command("inspect", "--dialect", "plain", "--json", self.key)[1])
        self.assertEqual([node["state"] for node in report["nodes"]], ["foreign"] * len(SERVERS))
        for server, owner in zip(SERVERS, owners):
            self.assertEqual(server.ask("HGET", self.key, owner), b"1")
        self.theirs.give_back()

    def test_a_plain_lock_is_foreign(self):
        for server in SERVERS:
            server.ask("SET", self.key, "theirs", "PX", LONG_MS)
        self.assertEqual(self.ours.attempt(self.key)[:2], ["refused", "FOREIGN"])
        self.assertEqual(self.theirs.attempt(self.key)[0], "refused")
        for server in SERVERS:
            self.assertEqual(server.ask("GET", self.key), b"theirs")


class Woken(Stage):
    """Their release wakes ours: beside one of ours that is told nothing, and so can only ask now and then."""
    more = ("redlock",)
    TRIES, ROUNDS = 3, 5
    ASKED = 6  # so often in vain before the release: the pauses have grown by then

    def deaf(self):
        for server in SERVERS:
            server.ask("ACL", "SETUSER", "deaf", "reset", "on", ">secret", "~*", "+@all", "-client|tracking",
                       "resetchannels")
        return Contender(Program([peer_case.OURS, peer_case.PEER.dialect, self.policy,
                                  *(f"redis://deaf:secret@{node}" for node in peer_case.nodes())]))

    def hand_over_s(self, ours):
        """From their release to our grant."""
        self.theirs.take(self.key)
        ours.stand_in_line(self.key)
        before = peer_case.asked()
        wait_for(lambda: peer_case.asked() >= before + self.ASKED)
        self.theirs.give_back()
        since = time.monotonic()
        ours.expect("acquired")
        took_s = time.monotonic() - since
        ours.give_back()
        return took_s

    def test_sooner_than_by_asking(self):
        deaf = self.deaf()
        # One pause of the machine is longer than all these hand-overs together: then nothing is proven.
        for _ in range(self.TRIES):
            asking_s = [self.hand_over_s(deaf) for _ in range(self.ROUNDS)]
            woken_s = [self.hand_over_s(self.ours) for _ in range(self.ROUNDS)]
            print("asking", *(f"{1000 * s:.1f}" for s in asking_s), "ms; woken", *(f"{1000 * s:.1f}" for s in woken_s),
                  "ms", flush=True)
            if 3 * sum(woken_s) < sum(asking_s):
                break
        self.assertLess(3 * sum(woken_s), sum(asking_s))


del Beside, Redisson, Stage  # derived from, not run
peer_case.main("redisson")
