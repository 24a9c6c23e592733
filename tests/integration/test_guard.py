#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock: restart guard and fencing on real servers: test_guard.py PATH_TO_quorlock [TEST...]"""
import contextlib
import json
import os
import re
import socket
import sys
import threading
import time

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import SERVERS, wait_for
from guard_case import GUARD, LEASE, LONG, LONG_MS, SHORT, SHORT_S, GuardCase, guards


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
        self.assertRegex(waiting[0], r"quarantined for [0-9.]+ s more: first contact: ")
        self.assertIn("'quorlock bootstrap --yes'", waiting[0])
        for server, guard in zip(SERVERS, guards()):
            self.assertRegex(guard.decode(), r"^2\|3\|[0-9a-f]{16}\|2000\|[0-9a-f]{40}\|[0-9a-f]{40}\|[0-9]+\|2000\|found\|[0-9]+\|first\|0\|0$")
            self.assertEqual(server.ask("PTTL", GUARD), -1)
        # Everybody after that is served at once.
        self.assertEqual(self.run_once("--max-lease", SHORT)[0], 0)

    def test_one_try_says_why_too(self):
        status, _, err = self.run_once("--max-lease", LONG)
        self.assertEqual(status, 69)
        for server in SERVERS:
            self.assertRegex(err, rf"{server}  no vote: quarantined for [0-9.]+ s more: first contact: .*'quorlock bootstrap --yes'")
        for index in range(3):
            self.assert_quarantined(index, LONG_MS)
        status, out, _ = self.quorlock("inspect", self.key)
        self.assertRegex(out, r"quarantined \d+\.\d s")

    def test_as_long_as_it_lasts_every_text_says_that_bootstrap_ends_it_and_it_does(self):
        first = r"first contact: .*'quorlock bootstrap --yes' ends that"
        waiter = self.start("run", "--max-lease", LONG, "--lease", LEASE, self.key, "--", "echo", "ran")
        self.await_words(waiter, b"'quorlock bootstrap --yes' ends that")
        self.environment = {"QUORLOCK_MAX_LEASE": LONG}
        self.assertRegex(self.run_once()[2], rf"{SERVERS[0]}  no vote: .*{first}")  # the second contact
        self.assertRegex(self.quorlock("inspect", self.key)[1], rf"quarantined: {SERVERS[0]}, .*{SERVERS[2]}: {first}")
        self.assertRegex(self.report()[0]["quarantine_why"], first)
        self.assertRegex(self.quorlock("watch", "--once", self.key)[1], first)
        remedies = {finding["code"]: finding["remedy"] for finding in
                    json.loads(self.quorlock("doctor", "--json")[1])["findings"]}
        for code in ["no-quorum", "quarantine"]:
            self.assertIn("quorlock bootstrap, if no lock is held", remedies[code])
        status, out, _ = self.quorlock("bootstrap", "--max-lease", LONG)  # the waiter may hold another lock
        self.assertEqual(status, 1)
        self.assertIn("give --yes if none of them holds a lock", out)
        self.bootstrap("--max-lease", LONG, "--yes")
        status, out, err = self.end(waiter)
        self.assertEqual((status, out), (0, "ran\n"), err)

    def test_a_client_with_too_long_a_max_lease_costs_others_nothing_where_it_was_declared(self):
        self.bootstrap("--max-lease", LONG)
        before = guards()
        self.assertEqual(self.run_once("--max-lease", "24h")[0], 78)
        self.assertEqual(self.quorlock("bench", "--max-lease", "1h", "--seconds", "1")[0], 78)
        self.assertEqual(guards(), before)
        self.assertEqual(self.run_once()[0], 0)

    def test_without_a_declaration_it_costs_a_quarantine_that_bootstrap_ends(self):
        self.assertEqual(self.quorlock("run", "--max-lease", SHORT, "--lease", LEASE, self.key, "--", "true")[0], 0)
        self.environment = {"QUORLOCK_MAX_LEASE": SHORT}
        holder = self.shell("--lease", LEASE, script='>up; while [ ! -e go ]; do sleep .01; done')
        self.assertEqual(self.run_once("--max-lease", "24h", key="other")[0], 78)
        for index in range(3):
            self.assert_quarantined(index, 24 * 3600000, 23 * 3600000)
        ends = r"for a client with a max lease of 24h.*'quorlock bootstrap' ends that"
        self.assertRegex(self.run_once(key="other")[2], rf"quarantined for .*{ends}")
        self.assertRegex(self.quorlock("inspect", self.key)[1], rf"quarantined: .*: {ends}")
        self.assertRegex(self.quorlock("doctor")[1], rf"{ends}.*\n +-> quorlock bootstrap, if no client with that max")
        # Locks that are held stay held.
        status, out, _ = self.quorlock("bootstrap")
        self.assertEqual(status, 0, out)
        self.assertIn("ended the quarantine of 3 of 3 nodes", out)
        self.assertEqual(self.run_once("--max-lease", "24h", key="other")[0], 78)
        self.assertEqual(self.run_once(key="other")[0], 0)
        self.assertEqual(self.run_once()[0], 1)
        open(self.path("go"), "w").close()
        self.assertEqual(self.end(holder)[0], 0)

    def test_who_only_looks_writes_no_guard(self):
        self.hold("x")
        for verb in [("inspect", self.key), ("break", self.key), ("doctor",), ("run", "-n", "--guard", "off", self.key,
                                                                            "--", "true")]:
            self.quorlock(*verb)
            self.assertEqual(guards(), [None] * 3, verb)
        self.assertEqual([node["quarantine_ms"] for node in self.report()], [None] * 3)
        self.assertRegex(self.quorlock("inspect", self.key)[1], rf"{SERVERS[0]} .* none ")


class MaxLease(GuardCase):
    """It is the same for all clients: no client takes it from the nodes."""

    def test_a_client_without_the_max_lease_is_refused_with_the_value_to_give(self):
        self.bootstrap("--max-lease", "5m")
        status, out, err = self.run_once(env={"QUORLOCK_MAX_LEASE": ""}, command=("echo", "ran"))
        self.assertEqual((status, out), (78, ""), err)
        self.assertRegex(err, r"max lease 300000 ms; this client says .* max lease 30000 ms: ")
        for server in SERVERS:
            self.assertRegex(err, rf"{server}(, \S+)*  no vote: ")
        # The values of the message work unchanged.
        value = re.search(r"QUORLOCK_MAX_LEASE=(\w+)", err).group(1)
        option = re.search(r"here (--max-lease) (\S+) ", err).groups()
        self.assertEqual(self.run_once(env={"QUORLOCK_MAX_LEASE": value})[0], 0)
        self.assertEqual(self.run_once(*option, env={"QUORLOCK_MAX_LEASE": ""})[0], 0)
        self.assertEqual(self.run_once("--lease", "4m", *option, env={"QUORLOCK_MAX_LEASE": ""})[0], 0)

    def test_verbs_that_read_take_the_max_lease_of_the_guards(self):
        self.bootstrap("--max-lease", LONG)
        self.environment = {}
        before = guards()
        self.assertEqual(self.quorlock("inspect", self.key)[0], 0)
        self.assertEqual(self.quorlock("break", self.key)[0], 0)
        self.assertNotIn("guard-lease", self.quorlock("doctor", "--json")[1])
        self.assertEqual(guards(), before)


class Restart(GuardCase):
    def test_a_restarted_node_has_no_vote_while_a_lock_may_run(self):
        for empty in [False, True]:
            self.setUp()
            self.bootstrap("--max-lease", LONG)
            SERVERS[0].restart(empty)
            SERVERS[1].kill()
            status, _, err = self.run_once()
            self.assertEqual(status, 69, err)
            self.assertRegex(err, rf"{SERVERS[0]}  no vote: quarantined for [0-9.]+ s more: \w+")
            self.assert_quarantined(0, LONG_MS, 30000)
            self.assertIsNone(SERVERS[2].ask("GET", self.key))

    def test_it_is_shown_before_a_client_that_locks_has_seen_it(self):
        self.bootstrap("--max-lease", LONG)
        before = guards()
        SERVERS[0].restart(False)
        for options in [(), ("--dialect", "redisson")]:
            for _ in range(2):
                status, out, err = self.quorlock("inspect", "--json", *options, self.key)
                self.assertEqual((status, err), (0, ""))
                self.assertEqual([node["quarantine_ms"] for node in json.loads(out)["nodes"]], [LONG_MS, 0, 0])
            self.assertIn(f"{SERVERS[0]} is quarantined, its votes are ignored", self.quorlock("watch", "--once", *options, self.key)[1])
        # Looking changes nothing.
        self.assertEqual(guards(), before)


class Replicas(GuardCase):
    """Nodes with replicas. Two of the three are up, so each has a say."""

    def setUp(self):
        super().setUp()
        # Nodes that never had a replica.
        for server in SERVERS:
            server.restart(True)
        SERVERS[2].kill()
        self.nodes = SERVERS[:2]
        self.configure("repl-diskless-sync-delay", 0)

    def bootstrap(self, *options):
        self.environment["QUORLOCK_NODES"] = ",".join(map(str, self.nodes))
        super().bootstrap(*options)

    def configure(self, *setting):
        for server in self.nodes:
            server.ask("CONFIG", "SET", *setting)

    def replica_of(self, server):
        replica = command_case.Server(self.folder, len(os.listdir(self.folder)), "--replicaof", server.host, server.port)
        self.addCleanup(replica.kill)
        wait_for(lambda: b"master_link_status:up" in replica.ask("INFO", "replication"))
        return replica

    def ids(self):
        return [re.search(rb"master_replid:(\w+)", server.ask("INFO", "replication"))[1] for server in self.nodes]

    def needs_the_counter(self):
        if b"total_net_repl_input_bytes" not in self.nodes[0].ask("INFO", "stats"):
            self.skipTest("a server before Redis 7 does not count what it takes from a master")

    def test_those_that_come_or_were_away_stop_nobody(self):
        self.needs_the_counter()
        self.configure("repl-backlog-ttl", 1)
        self.bootstrap("--max-lease", LONG)
        before = self.ids()
        replicas = [self.replica_of(server) for server in self.nodes]
        came = self.ids()
        self.assertTrue(set(before).isdisjoint(came))
        self.assertNotIn('"code": "quarantine"', self.quorlock("doctor", "--json")[1])
        self.assertEqual(self.run_once()[0], 0)
        for replica in replicas:
            replica.kill()
        wait_for(lambda: set(came).isdisjoint(self.ids()))
        self.assertEqual(self.run_once()[0], 0)

    def assert_quarantined_for_its_id(self):
        self.assertIn("its replication id changed since a client last saw it", self.quorlock("doctor")[1])
        status, _, err = self.run_once()
        self.assertEqual(status, 69, err)
        self.assertIn("its replication id changed: it took its memory from another server", err)

    def test_a_counter_that_was_reset_proves_nothing(self):
        self.bootstrap("--max-lease", LONG)
        for server in self.nodes:
            self.replica_of(server)
            server.ask("CONFIG", "RESETSTAT")
        self.assert_quarantined_for_its_id()

    def flip(self, server, then=None):
        """Gives it the older memory of a replica."""
        older = self.replica_of(server)
        older.ask("REPLICAOF", "NO", "ONE")
        server.ask("SET", "newer", "")
        server.ask("REPLICAOF", older.host, older.port)
        wait_for(lambda: b"master_link_status:up" in server.ask("INFO", "replication"))
        if then:
            then(server)
        server.ask("REPLICAOF", "NO", "ONE")
        self.replica_of(server)

    def test_a_role_that_flipped_is_quarantined(self):
        self.bootstrap("--max-lease", LONG)
        for server in self.nodes:
            self.flip(server)
        self.assert_quarantined_for_its_id()

    def test_so_is_one_that_shows_no_trace_of_it(self):
        """Where a second sync begins and fails, some servers forget the former id as soon as a replica comes."""
        for dump in (b"", b"$18\r\nREDIS9999" + bytes(9)):
            with self.subTest(dump=dump):
                self.setUp()
                self.bootstrap("--max-lease", LONG)
                for server in self.nodes:
                    self.flip(server, lambda server, dump=dump: self.sync_in_vain(server, dump))
                status, _, err = self.run_once()
                self.assertEqual(status, 69, err)
                # Others have no memory left, and no guard.
                self.assertRegex(err, "quarantined for .*: (its replication id changed|first contact|its guard|it had)")

    def sync_in_vain(self, server, dump):
        """Makes it the replica of a master that sends no more than this, and waits until it has noticed."""
        syncs = []

        def serve(connection):
            with contextlib.suppress(OSError), connection, connection.makefile("rb") as file:
                for line in file:
                    if b"PSYNC" in line:
                        syncs.append(line)
                        connection.sendall(b"+FULLRESYNC " + b"e" * 40 + b" 1\r\n" + dump)
                    elif line.startswith((b"PING", b"REPLCONF")):
                        connection.sendall(b"+PONG\r\n" if line.startswith(b"PING") else b"+OK\r\n")

        def accept():
            try:
                while True:
                    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
            except OSError:
                return

        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        threading.Thread(target=accept, daemon=True).start()
        server.ask("REPLICAOF", *listener.getsockname())
        if dump:
            wait_for(lambda: len(syncs) > 1)
        else:
            wait_for(lambda: syncs and b"master_sync_in_progress:1" in server.ask("INFO", "replication"))


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
                self.assertIn(status, (69, 78), err)  # whichever was seen first: that, or the dead node
                self.assertRegex(err, rf"(127.0.0.1:{port} and localhost:{port}\S*|localhost:{port}\S* and 127.0.0.1:{port}) are one server")
        SERVERS[1].start()
        for server in SERVERS:
            server.ask("DEL", GUARD)
        status, out, err = self.quorlock("bootstrap", "--nodes", ",".join([*twins, str(SERVERS[1])]))
        self.assertEqual(status, 69, err)
        self.assertIn("are one server", out)
        out = self.quorlock("bootstrap", "--reconfigure", "--dry-run", "--nodes", ",".join([twins[0], str(SERVERS[1]), twins[1]]))[1]
        self.assertEqual(len(re.findall("(?m)^  .*connections.*; the same server as .*: list each server once$", out)), 1, out)
        self.assertEqual(guards(), [None] * 3)

    def test_another_configuration_is_refused_with_both_values(self):
        self.bootstrap("--max-lease", SHORT, "--set-name", "blue")
        for options, theirs, ours in [
                (("--set-name", "blue", "--nodes", f"{SERVERS[0]},{SERVERS[1]}"), "3 nodes, set blue", "2 nodes, set blue"),
                (("--set-name", "green"), "3 nodes, set blue", "3 nodes, set green"),
                (("--set-name", "blue", "--max-lease", "1500ms", "--lease", "1s"),
                 "max lease 2000 ms", "max lease 1500 ms")]:
            for wait in ["0", "forever"]:  # no waiting mends it
                status, _, err = self.run_once(*options, "--wait", wait)
                self.assertEqual(status, 78, err)
                self.assertIn("cannot lock", err)
                self.assertRegex(err, rf"{theirs}.*{ours}.*--reconfigure")
                self.assertRegex(err, rf"{SERVERS[0]}(, \S+)*  no vote: ")
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
            self.assertEqual(status, 78, err)
            self.assertRegex(err, rf"{either}: down: .*may evict.*100000000 bytes.*{name}.*noeviction")
            self.assertRegex(err, rf"{either}  no vote: ")
            status, _, err = self.run_once("--allow-eviction")
            self.assertEqual(status, 0, err)
            self.assertRegex(err, rf"{either}: .*may evict.*{name}")
        policy("allkeys-lru", 0)  # without a limit nothing is evicted
        self.assertEqual(self.run_once()[::2], (0, ""))


class Set(GuardCase):
    def test_the_order_of_the_addresses_makes_no_other_set(self):
        self.bootstrap()
        for turned in (SERVERS[::-1], SERVERS[1:] + SERVERS[:1]):
            status, _, err = self.run_once("--nodes", ",".join(map(str, turned)))
            self.assertEqual((status, err), (0, ""))


class Strict(GuardCase):
    def test_it_is_checked_by_a_script_in_the_acquire_too(self):
        self.bootstrap()
        scripts = {}
        for guard in ("connection", "strict"):
            for server in SERVERS:
                server.ask("CONFIG", "RESETSTAT")
            self.assertEqual(self.run_once("--guard", guard)[0], 0)
            stats = b"".join(server.ask("INFO", "commandstats") for server in SERVERS).decode()
            scripts[guard] = sum(map(int, re.findall(r"cmdstat_eval(?:sha)?:calls=(\d+)", stats)))
        self.assertGreater(scripts["strict"], scripts["connection"])


class Fencing(GuardCase):
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


if __name__ == "__main__":
    command_case.main()
