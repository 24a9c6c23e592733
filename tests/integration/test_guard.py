#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock: restart guard, bootstrap and fencing on real servers: test_guard.py PATH_TO_quorlock [TEST...]

A quarantine that must be over within a test has a short max lease; one that must not end while the test looks has a
long one. Times are only compared one way: nothing may come too early.
"""
import json
import os
import sys
import time

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import SERVERS, Case, nodes, wait_for

GUARD = "quorlock:guard"
SHORT, SHORT_S = "2s", 2
LONG, LONG_MS = "10m", 600000
LEASE = "1s"


def guards():
    return [server.ask("GET", GUARD) for server in SERVERS]


class GuardCase(Case):
    def run_once(self, *options, key=None, command=("true",), **more):
        """One try: (status, stdout, stderr)."""
        return self.connected("run", "-n", "--lease", LEASE, *options, key or self.key, "--", *command, **more)

    def report(self):
        status, out, err = self.quorlock("inspect", "--json", self.key)
        self.assertEqual(status, 0, err)
        return json.loads(out)["nodes"]

    def assert_quarantined(self, index, most_ms):
        left_ms = self.report()[index]["quarantine_ms"]
        self.assertTrue(left_ms is not None and 0 < left_ms <= most_ms + 1, left_ms)


class ColdStart(GuardCase):
    def test_the_first_contact_waits_one_max_lease_and_says_why(self):
        start = time.monotonic()
        status, out, err = self.quorlock("run", "--max-lease", SHORT, "--lease", LEASE, self.key, "--", "echo", "ran")
        self.assertGreaterEqual(time.monotonic() - start, SHORT_S)
        self.assertEqual((status, out), (0, "ran\n"), err)
        waiting = [line for line in err.splitlines() if "waiting for" in line]
        self.assertTrue(waiting, err)
        # Told once and again every ten seconds, not at every try because the seconds count down.
        self.assertLessEqual(len(waiting), 3, err)
        for server in SERVERS:
            self.assertIn(str(server), waiting[0])
        self.assertRegex(waiting[0], r"quarantined for [0-9.]+ s more: no guard yet")
        self.assertIn("'quorlock bootstrap'", waiting[0])
        for server, guard in zip(SERVERS, guards()):
            self.assertRegex(guard.decode(), r"^1\|3\|[0-9a-f]{16}\|2000\|[0-9a-f]{40}\|[0-9a-f]{40}\|[0-9]+$")
            self.assertEqual(server.ask("PTTL", GUARD), -1)
        # Everybody after that is served at once, and learns the max lease from the guards.
        self.assertEqual(self.run_once()[0], 0)

    def test_one_try_says_why_too(self):
        status, _, err = self.run_once("--max-lease", LONG)
        self.assertEqual(status, 69)
        for server in SERVERS:
            self.assertRegex(err, rf"{server}  no vote: quarantined for [0-9.]+ s more: (no guard yet|it restarted, or is new)")
        for index in range(3):
            self.assert_quarantined(index, LONG_MS)
        status, out, _ = self.quorlock("inspect", self.key)
        self.assertRegex(out, r"quarantined \d+\.\d s")

    def test_the_default_is_written_only_where_no_guard_can_say_better(self):
        SERVERS[0].kill()
        SERVERS[1].kill()
        # One node alone may be the one that was emptied.
        status, _, err = self.run_once("--node-timeout", "300ms")
        self.assertEqual(status, 69)
        self.assertRegex(err, rf"{SERVERS[2]}  no vote: quarantined: no guard yet, and too few other nodes")
        self.assertIsNone(SERVERS[2].ask("GET", GUARD))
        SERVERS[1].start()
        status, _, err = self.run_once()
        self.assertRegex(err, rf"{SERVERS[2]}  no vote: quarantined for (29|30)\.[0-9] s more")
        for index in [1, 2]:
            self.assert_quarantined(index, 30000)

    def test_who_only_looks_writes_no_guard(self):
        self.hold("x")
        for verb in [("inspect", self.key), ("break", self.key), ("doctor",), ("run", "-n", "--guard", "off", self.key,
                                                                            "--", "true")]:
            self.quorlock(*verb)
            self.assertEqual(guards(), [None] * 3, verb)
        self.assertEqual([node["quarantine_ms"] for node in self.report()], [None] * 3)
        self.assertRegex(self.quorlock("inspect", self.key)[1], rf"{SERVERS[0]} .* none ")


class Bootstrap(GuardCase):
    def test_it_spares_the_wait_and_refuses_the_second_time(self):
        status, out, err = self.quorlock("bootstrap", "--max-lease", LONG)
        self.assertEqual((status, err), (0, ""))
        self.assertTrue(out.startswith("bootstrapped 3 nodes for leases up to 600000 ms; no lock is held on them\n"), out)
        self.assertEqual(self.run_once()[0], 0)
        before = guards()
        status, out, _ = self.quorlock("bootstrap", "--max-lease", SHORT)
        self.assertEqual(status, 1)
        self.assertIn("3 of 3 nodes have a guard already", out)
        self.assertIn("nothing was written", out)
        self.assertEqual(out.count("max lease 600000 ms"), 3)
        self.assertEqual(guards(), before)
        status, out, _ = self.quorlock("bootstrap", "--json")
        self.assertEqual(status, 1)
        report = json.loads(out)
        self.assertEqual(report["key"], GUARD)
        self.assertEqual([(n["state"], n["holder"].encode()) for n in report["nodes"]], [("guarded", g) for g in before])

    def test_one_guard_is_enough_to_refuse(self):
        SERVERS[1].ask("SET", GUARD, "something else")
        status, out, _ = self.quorlock("bootstrap")
        self.assertEqual(status, 1)
        self.assertRegex(out, rf"{SERVERS[1]}  guarded  something else")
        self.assertRegex(out, rf"{SERVERS[0]}  free")
        self.assertEqual(guards(), [None, b"something else", None])

    def test_a_node_that_is_down_or_refuses_leaves_all_unwritten(self):
        SERVERS[2].kill()
        for options in [(), ("--reconfigure",)]:
            status, out, _ = self.quorlock("bootstrap", *options)
            self.assertEqual(status, 69)
            self.assertIn("nothing was written", out)
            self.assertRegex(out, rf"{SERVERS[2]}  down .*refused")
            self.assertEqual([server.ask("GET", GUARD) for server in SERVERS[:2]], [None] * 2)
        SERVERS[2].start()
        self.assertEqual(self.quorlock("bootstrap")[0], 0)


class Restart(GuardCase):
    def test_a_restarted_node_has_no_vote_while_a_lock_may_run(self):
        for empty in [False, True]:
            self.setUp()
            self.bootstrap("--max-lease", LONG)
            SERVERS[0].restart(empty)
            SERVERS[1].kill()
            # Or the third was heard too late to tell the max lease.
            status, _, err = self.run_once(busy="no vote: (connecting|quarantined: no guard yet)")
            self.assertEqual(status, 69, err)
            self.assertRegex(err, rf"{SERVERS[0]}  no vote: quarantined for [0-9.]+ s more: \w+")
            # The max lease is that of the other nodes, also where the node forgot it.
            self.assert_quarantined(0, LONG_MS)
            self.assertGreater(self.report()[0]["quarantine_ms"], 30000)
            self.assertIsNone(SERVERS[2].ask("GET", self.key))

    def test_it_votes_again_when_no_lock_can_be_left(self):
        for empty in [False, True]:
            self.setUp()
            self.bootstrap("--max-lease", SHORT)
            SERVERS[0].restart(empty)
            SERVERS[1].kill()
            start = time.monotonic()
            status, out, err = self.quorlock("run", "--lease", LEASE, self.key, "--", "echo", "ran")
            self.assertGreaterEqual(time.monotonic() - start, SHORT_S)
            self.assertEqual((status, out), (0, "ran\n"))
            self.assertIn(f'waiting for "{self.key}": ', err)
            # There, or in a line of its own: at first the node may not have heard the max lease from the third.
            self.assertRegex(err, rf"{SERVERS[0]}: quarantined for [0-9.]+ s more")

    def test_the_holder_keeps_its_lock_and_mends_the_node(self):
        for empty in [False, True]:
            self.setUp()
            self.bootstrap("--max-lease", LONG)
            holder = self.shell("--lease", "3s", script='echo "$QUORLOCK_OWNER" >owner; >up; while [ ! -e go ]; do '
                                'sleep .01; done')
            wait_for(lambda: None not in self.values())
            for server in SERVERS:  # a rolling restart
                server.restart(empty)
                wait_for(lambda: self.values() == [self.read("owner").encode()] * 3)
            for index in range(3):
                wait_for(lambda: self.report()[index]["quarantine_ms"])
                self.assert_quarantined(index, LONG_MS)
            # Nobody else gets in meanwhile.
            self.assertEqual(self.run_once()[0], 69)
            open(self.path("go"), "w").close()
            self.assertEqual(self.end(holder)[0], 0)
            self.assert_free()
            os.remove(self.path("up"))
            os.remove(self.path("go"))


class Setup(GuardCase):
    def test_one_server_by_two_names(self):
        port = SERVERS[0].port
        self.bootstrap("--set-name", "s")
        # With the third node it would look like a majority.
        SERVERS[1].kill()
        for twins in [(f"127.0.0.1:{port}", f"localhost:{port}"),
                      (f"redis://127.0.0.1:{port}", f"redis://localhost:{port}/1")]:
            for options in [(), ("--guard", "off"), ("--wait", "forever")]:
                status, _, err = self.run_once("--nodes", ",".join([*twins, str(SERVERS[1])]), "--set-name", "s", *options)
                self.assertEqual(status, 69, err)
                self.assertRegex(err, rf"(127.0.0.1:{port} and localhost:{port}\S*|localhost:{port}\S* and 127.0.0.1:{port}) are one server")
        SERVERS[1].start()
        for server in SERVERS:
            server.ask("DEL", GUARD)
        status, out, err = self.quorlock("bootstrap", "--nodes", ",".join([*twins, str(SERVERS[1])]))
        self.assertEqual(status, 69, err)
        self.assertIn("are one server", out)
        self.assertEqual(guards(), [None] * 3)

    def test_what_the_nodes_were_not_set_up_for_is_refused_with_both_values(self):
        self.bootstrap("--max-lease", SHORT, "--set-name", "blue")
        for options, theirs, ours in [
                (("--set-name", "blue", "--nodes", f"{SERVERS[0]},{SERVERS[1]}"), "3 nodes, set blue", "2 nodes, set blue"),
                (("--set-name", "green"), "3 nodes, set blue", "3 nodes, set green"),
                (("--set-name", "blue", "--max-lease", "3s"), "max_lease 2000 ms", "max_lease 3000 ms"),
                (("--set-name", "blue", "--lease", "60s"), "leases up to 2000 ms", "ours is 60000 ms")]:
            for wait in ["0", "forever"]:  # no waiting mends it
                status, _, err = self.run_once(*options, "--wait", wait)
                self.assertEqual(status, 69, err)
                self.assertIn("cannot lock", err)
                self.assertRegex(err, rf"{SERVERS[0]}  no vote: .*{theirs}.*{ours}.*--reconfigure")
        self.assertEqual(self.run_once("--set-name", "blue")[0], 0)
        self.assertEqual(self.run_once("--set-name", "blue", "--max-lease", SHORT)[0], 0)

    def test_evicting_nodes(self):
        self.bootstrap()

        def policy(name, memory):
            for server in SERVERS[:2]:
                server.ask("CONFIG", "SET", "maxmemory", memory)
                server.ask("CONFIG", "SET", "maxmemory-policy", name)
        self.addCleanup(policy, "noeviction", 0)
        # A quorum of two has one of them; the other may come too late to be seen.
        either = f"({SERVERS[0]}|{SERVERS[1]})"
        for name in ["allkeys-lru", "volatile-ttl"]:
            policy(name, 100000000)
            status, _, err = self.run_once()
            self.assertEqual(status, 69, err)
            self.assertRegex(err, rf"{either}  no vote: .*may evict.*100000000 bytes.*{name}.*noeviction")
            status, _, err = self.run_once("--allow-eviction")
            self.assertEqual(status, 0, err)
            self.assertRegex(err, rf"{either}: .*may evict.*{name}")
        policy("allkeys-lru", 0)  # without a limit nothing is evicted
        self.assertEqual(self.run_once()[::2], (0, ""))


class LostMemory(GuardCase):
    def waiting(self, *options):
        """A client that waits behind another's lock, on connections that are open."""
        self.hold("someone-else-entirely", count=3, ms=600000)
        process = self.start("run", "--lease", LEASE, *options, self.key, "--", "echo", "ran")
        wait_for(lambda: b"is held by" in os.read(process.stderr.fileno(), 4096))
        return process

    def flush(self):
        """What an operator should not do: the lock of the other is forgotten, while the servers run on."""
        for server in SERVERS:
            server.ask("FLUSHALL")

    def test_whoever_waits_sees_it(self):
        # A try after the first goes by script, which looks at the guard in either mode.
        for guard in ["connection", "strict"]:
            with self.subTest(guard):
                self.flush()
                self.bootstrap("--max-lease", SHORT)
                process = self.waiting("--guard", guard)
                start = time.monotonic()
                self.flush()
                status, out, err = self.end(process)
                self.assertGreaterEqual(time.monotonic() - start, SHORT_S)
                self.assertEqual((status, out), (0, "ran\n"))
                self.assertIn("quarantined for", err)

    def test_a_later_connection_sees_it(self):
        self.bootstrap("--max-lease", LONG)
        self.assertEqual(self.run_once()[0], 0)
        self.flush()
        status, _, err = self.run_once("--guard", "connection", "--max-lease", LONG)
        self.assertEqual(status, 69)
        self.assertIn("no guard yet", err)


class Fencing(GuardCase):
    def token(self, *options):
        status, out, err = self.quorlock("run", "--fence", "--lease", LEASE, *options, self.key, "--",
                                         "printenv", "QUORLOCK_FENCE")
        self.assertEqual(status, 0, err)
        return int(out)

    def test_tokens_rise_also_while_nodes_die_and_forget(self):
        self.bootstrap("--max-lease", SHORT)
        tokens = []
        for number in range(24):
            if number in (4, 12):
                SERVERS[0].kill()
            if number in (8, 16):
                SERVERS[0].start()  # empty: its counter is gone too
            if number == 20:
                # From now on the node that forgot is needed for every quorum.
                SERVERS[1].kill()
            tokens.append(self.token("--guard", ("connection", "strict")[number % 2]))
        self.assertEqual(tokens, sorted(set(tokens)))

    def test_many_keys_have_counters_of_their_own(self):
        self.bootstrap()
        first, second = self.token(), self.token()
        self.assertLess(first, second)
        for node in self.report():
            self.assertGreaterEqual(node["fence"], first)
        self.assertIn(str(second), self.quorlock("inspect", self.key)[1])
        ttl_ms = [server.ask("PTTL", f"quorlock:fence:{self.key}") for server in SERVERS]
        self.assertGreater(sorted(ttl_ms)[1], 6 * 24 * 3600 * 1000)

    def test_without_it_there_is_no_token(self):
        self.bootstrap()
        status, out, _ = self.run_once(command=("printenv", "QUORLOCK_FENCE"), env={"QUORLOCK_FENCE": "7"})
        self.assertEqual((status, out), (1, ""))
        self.assertEqual([server.ask("EXISTS", f"quorlock:fence:{self.key}") for server in SERVERS], [0] * 3)

    def test_a_used_up_counter_is_no_token(self):
        self.bootstrap()
        for server in SERVERS:
            server.ask("SET", f"quorlock:fence:{self.key}", 2**53)
        status, _, err = self.run_once("--fence", command=("touch", self.path("ran")))
        self.assertEqual(status, 69)
        self.assertIn("counter", err)
        self.assertFalse(os.path.exists(self.path("ran")))
        self.assert_free()


class Reconfigure(GuardCase):
    def test_another_max_lease(self):
        self.bootstrap("--max-lease", SHORT)
        start = time.monotonic()
        status, out, err = self.quorlock("bootstrap", "--reconfigure", "--max-lease", "1s")
        self.assertEqual((status, err), (0, ""))
        self.assertTrue(out.startswith("bootstrapped 3 nodes for leases up to 1000 ms; none votes before"), out)
        status, _, err = self.run_once("--lease", "500ms")
        self.assertEqual(status, 69)
        self.assertIn("quarantined for", err)
        status, _, err = self.quorlock("run", "--lease", "1s", self.key, "--", "true")
        # The longer of both: a lock of the old length may still run.
        self.assertGreaterEqual(time.monotonic() - start, SHORT_S)
        self.assertEqual(status, 0, err)
        self.assertTrue(all(b"|1000|" in guard for guard in guards()), guards())

    def test_fewer_nodes(self):
        self.bootstrap("--max-lease", SHORT)
        SERVERS[2].kill()
        two = f"{SERVERS[0]},{SERVERS[1]}"
        status, _, err = self.run_once("--nodes", two)
        self.assertIn("3 nodes", err)
        status, out, _ = self.quorlock("bootstrap", "--reconfigure", "--max-lease", SHORT, "--nodes", two)
        self.assertEqual(status, 0, out)
        self.assertEqual(self.quorlock("run", "--lease", LEASE, "--nodes", two, self.key, "--", "true")[0], 0)

    def test_clients_that_run_hear_of_it(self):
        self.bootstrap("--max-lease", SHORT)
        self.hold("someone-else-entirely", count=3, ms=600000)
        process = self.start("run", "--max-lease", SHORT, "--lease", LEASE, self.key, "--", "true")
        wait_for(lambda: b"is held by" in os.read(process.stderr.fileno(), 4096))
        self.assertEqual(self.quorlock("bootstrap", "--reconfigure", "--max-lease", "3s")[0], 0)
        status, _, err = self.end(process)
        self.assertEqual(status, 69)
        self.assertRegex(err, "max_lease 3000 ms.*max_lease 2000 ms")


if __name__ == "__main__":
    command_case.main()
