#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock bootstrap on real servers, whole and half done: test_bootstrap.py PATH_TO_quorlock [TEST...]"""
import contextlib
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import SERVERS, listen, wait_for
from guard_case import GUARD, LEASE, LONG, SHORT, SHORT_S, GuardCase, guards

WRITES = b"written:"  # in the script that writes a guard, and in no other


class Link:
    """A proxy before a server, which does something special when the guard is about to be written."""

    def __init__(self, server, on_write):
        """on_write(link) is called when the write came, before it goes on: True lets it go on."""
        self.server, self.on_write, self.answers = server, on_write, True
        self.listener = listen()
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            upstream = socket.create_connection(("127.0.0.1", self.server.port))
            threading.Thread(target=self.forth, args=(client, upstream), daemon=True).start()
            threading.Thread(target=self.back, args=(upstream, client), daemon=True).start()

    def forth(self, client, upstream):
        try:
            while data := client.recv(65536):
                if WRITES in data and not self.on_write(self):
                    break
                upstream.sendall(data)
        except OSError:
            pass
        upstream.close()
        client.close()

    def back(self, upstream, client):
        try:
            while data := upstream.recv(65536):
                if self.answers:
                    client.sendall(data)
        except OSError:
            pass

    def close(self):
        self.listener.close()


class BootstrapCase(GuardCase):
    def link(self, index, on_write):
        """--nodes and a name, with that server behind a proxy."""
        link = Link(SERVERS[index], on_write)
        self.addCleanup(link.close)
        addresses = [str(server) for server in SERVERS]
        addresses[index] = link.address
        return "--nodes", ",".join(addresses), "--set-name", "s"

    def weak(self, *indexes, rules):
        """--nodes and a name, where on these servers we are a user with some rights less."""
        addresses = [str(server) for server in SERVERS]
        for index in indexes:
            SERVERS[index].ask("ACL", "SETUSER", "few", "on", ">secret", "~*", "&*", "+@all", *rules)
            self.addCleanup(SERVERS[index].ask, "ACL", "DELUSER", "few")
            addresses[index] = f"redis://few:secret@{addresses[index]}"
        return "--nodes", ",".join(addresses), "--set-name", "s"

    def states(self, out):
        return [node["state"] for node in json.loads(out)["nodes"]]

    def assert_unwritten(self, before, result, status):
        self.assertEqual(result[0], status, result)
        self.assertIn("nothing was written", result[1])
        self.assertEqual(guards(), before)


class Bootstrap(BootstrapCase):
    def test_it_spares_the_wait_and_refuses_the_second_time(self):
        status, out, err = self.quorlock("bootstrap", "--max-lease", LONG)
        self.assertEqual((status, err), (0, ""))
        self.assertTrue(out.startswith("bootstrapped 3 nodes for leases up to 600000 ms; no lock is held on them\n"), out)
        self.assertEqual(self.run_once("--max-lease", LONG)[0], 0)
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

    def test_where_the_guards_fit_there_is_no_need(self):
        self.assertEqual(self.quorlock("bootstrap", "--if-needed", "--max-lease", LONG)[0], 0)
        before = guards()
        SERVERS[1].kill()
        for _ in range(2):  # one down, then emptied: a client quarantines it, and the quorum has its guards
            status, out, _ = self.quorlock("bootstrap", "--if-needed", "--max-lease", LONG)
            self.assertEqual(status, 0, out)
            self.assertIn("2 of 3 nodes have the right guards already: nothing was written", out)
            SERVERS[1].restart(True)
        for options in [(), ("--max-lease", LONG, "--set-name", "s")]:  # 30 s, and another set
            self.assertEqual(self.quorlock("bootstrap", "--if-needed", *options)[0], 1)
        self.assertEqual(self.quorlock("bootstrap", "--if-needed", "--reconfigure", "--yes")[0], 64)
        self.assertEqual([guards()[0], guards()[2]], [before[0], before[2]])

    def test_a_client_that_may_hold_a_lock_is_no_first_contact(self):
        self.bootstrap("--max-lease", LONG)
        holder = self.start("run", "-v", self.key, "--", "sleep", "600")
        self.await_words(holder, b"granted")
        holder.send_signal(signal.SIGSTOP)  # it believes that it holds the lock
        for server in SERVERS:
            server.ask("FLUSHALL")
        for more in [(), ("--json",)]:
            status, out, _ = self.quorlock("bootstrap", "--max-lease", LONG, *more)
            self.assertEqual((status, guards()), (1, [None] * 3), out)
        self.assertEqual(self.states(out), ["in use"] * 3)
        status, out, _ = self.quorlock("bootstrap", "--max-lease", LONG)
        self.assertIn("other clients of quorlock are connected", out)
        self.assertIn("nothing was written", out)
        self.assertIn("1 connection of other clients of quorlock", out)
        for server in SERVERS:
            self.addCleanup(server.ask, "ACL", "SETUSER", "default", "+client|list")
            server.ask("ACL", "SETUSER", "default", "-client|list")
        status, out, _ = self.quorlock("bootstrap", "--max-lease", LONG)
        self.assertEqual((status, guards()), (78, [None] * 3), out)
        self.assertIn("+client|list", out)
        status, out, err = self.quorlock("bootstrap", "--max-lease", LONG, "--yes")
        self.assertEqual((status, err), (0, ""), out)
        holder.send_signal(signal.SIGCONT)
        status, _, err = self.end(holder)
        self.assertEqual(status, 75, err)
        self.assertNotIn("bootstrap", err)

    def test_where_others_write_the_guards_it_looks_again(self):
        def other(link):
            SERVERS[1].ask("SET", GUARD, wait_for(lambda: SERVERS[0].ask("GET", GUARD)))
            return True

        where = self.link(1, other)
        status, out, _ = self.quorlock("bootstrap", "--if-needed", "--max-lease", LONG, *where)
        self.assertEqual(status, 0, out)
        mine = guards()
        for server in SERVERS[1:]:
            server.ask("DEL", GUARD)
        evals = lambda: re.search(r"cmdstat_eval(?:sha)?:calls=(\d+)", SERVERS[1].ask("INFO", "commandstats").decode())
        SERVERS[1].ask("CONFIG", "RESETSTAT")
        process = self.start("bootstrap", "--if-needed", "--max-lease", LONG, "--set-name", "s")
        wait_for(evals)  # it has looked, or will in a moment
        for server, guard in zip(SERVERS[1:], mine[1:]):
            server.ask("SET", GUARD, guard)
        status, out, err = self.end(process)
        self.assertEqual((status, err), (0, ""), out)
        self.assertEqual(guards(), mine)

    def test_several_at_once_all_end_well(self):
        for _ in range(3):
            for server in SERVERS:
                server.ask("FLUSHALL")
            for process in [self.start("bootstrap", "--if-needed", "--max-lease", LONG) for _ in range(5)]:
                status, out, err = self.end(process)
                self.assertEqual((status, err), (0, ""), out)

    def test_an_emptied_node_among_others_is_no_first_contact(self):
        self.bootstrap("--max-lease", LONG)
        for server in SERVERS[:2]:  # a quorum: what a stopped holder thinks that it holds is forgotten there
            server.restart(True)
        for _ in range(2):
            status, out, _ = self.quorlock("bootstrap", "--max-lease", LONG)
            self.assertEqual(status, 1, out)
            self.assertIn("nothing was written", out)
            status, _, err = self.run_once()  # writes guards of a first contact
            self.assertEqual(status, 69)
            for text in [err, self.quorlock("inspect", self.key)[1], self.quorlock("doctor")[1]]:
                self.assertIn("it had no guard, and other nodes have one", text)
                self.assertNotIn("bootstrap", text)
            self.assertNotIn("bootstrap", self.quorlock("watch", "--once", self.key)[1])
        for index in (0, 1):
            self.assert_quarantined(index, 600000, 30000)

    def test_it_ends_a_first_contact_with_another_max_lease(self):
        self.assertEqual(self.run_once("--max-lease", "24h")[0], 69)
        self.assertEqual(self.quorlock("bootstrap", "--set-name", "s")[0], 1)  # another set may have a quorum
        self.bootstrap("--max-lease", LONG)
        self.assertEqual(self.run_once()[0], 0)

    def test_one_guard_is_enough_to_refuse(self):
        SERVERS[1].ask("SET", GUARD, "something else")
        status, out, _ = self.quorlock("bootstrap")
        self.assertEqual(status, 1)
        self.assertRegex(out, rf"{SERVERS[1]}  guarded  something else")
        self.assertRegex(out, rf"{SERVERS[0]}  free")
        self.assertEqual(guards(), [None, b"something else", None])

    def test_a_node_that_is_down_or_refuses_leaves_all_unwritten(self):
        SERVERS[2].kill()
        for options in [(), ("--reconfigure", "--yes")]:
            status, out, _ = self.quorlock("bootstrap", *options)
            self.assertEqual(status, 69)
            self.assertIn("nothing was written", out)
            self.assertRegex(out, rf"{SERVERS[2]}  down .*refused")
            self.assertEqual([server.ask("GET", GUARD) for server in SERVERS[:2]], [None] * 2)
        SERVERS[2].start()
        self.assertEqual(self.quorlock("bootstrap")[0], 0)

    def test_half_done_says_so_and_how_to_go_on(self):
        where = self.link(1, lambda link: False)
        status, out, _ = self.quorlock("bootstrap", *where, "--max-lease", SHORT)
        self.assertEqual(status, 69)
        self.assertIn("half done: 2 of 3 nodes bootstrapped, 1 unknown (no answer came; the guard may be written). 'quorlock "
                      f"bootstrap --reconfigure --max-lease 2000ms --set-name s --nodes {where[1]}'", out)
        self.assertRegex(out, rf"{where[1].split(',')[1]}  unknown")
        self.assertEqual([guard is not None for guard in guards()], [True, False, True])
        command = out.split("'")[1].split()[1:]
        command[command.index("--nodes") + 1] = command_case.nodes()
        self.assertEqual(self.quorlock(*command, "--yes")[0], 0)
        self.environment = {"QUORLOCK_MAX_LEASE": SHORT}
        self.assertEqual(self.quorlock("run", "--set-name", "s", "--lease", LEASE, self.key, "--", "true")[0], 0)


class Reconfigure(BootstrapCase):
    def test_fewer_nodes(self):
        self.bootstrap("--max-lease", SHORT)
        SERVERS[2].kill()
        two = f"{SERVERS[0]},{SERVERS[1]}"
        status, _, err = self.run_once("--nodes", two)
        self.assertIn("3 nodes", err)
        status, out, _ = self.quorlock("bootstrap", "--reconfigure", "--yes", "--max-lease", SHORT, "--nodes", two)
        self.assertEqual(status, 0, out)
        self.assertEqual(self.quorlock("run", "--lease", LEASE, "--nodes", two, self.key, "--", "true")[0], 0)

    def test_clients_that_run_hear_of_it(self):
        self.bootstrap("--max-lease", SHORT)
        self.hold("someone-else-entirely", count=3, ms=600000)
        process = self.start("run", "--max-lease", SHORT, "--lease", LEASE, self.key, "--", "true")
        self.await_words(process, b"is held by")
        self.assertEqual(self.quorlock("bootstrap", "--reconfigure", "--yes", "--max-lease", "3s")[0], 0)
        status, _, err = self.end(process)
        self.assertEqual(status, 78)
        self.assertRegex(err, "max lease 3000 ms.*max lease 2000 ms")

    def test_all_connections_end_but_those_of_subscribers(self):
        """In RESP3 a subscriber could still ask for locks; quorlock's do not."""
        self.bootstrap("--max-lease", SHORT)
        with contextlib.ExitStack() as stack:
            for name, words in [("told2", "SUBSCRIBE x"), ("told3", "SUBSCRIBE x"), ("asks2", "PING"), ("asks3", "PING")]:
                peer = stack.enter_context(socket.create_connection(("127.0.0.1", SERVERS[0].port)))
                peer.sendall(f"HELLO {name[-1]} SETNAME {name}\r\n{words}\r\n".encode())

            def there():
                return set(re.findall(r" name=(told\d|asks\d) .*cmd=(?:subscribe|ping)", SERVERS[0].ask("CLIENT", "LIST").decode()))
            wait_for(lambda: len(there()) == 4)
            self.assertEqual(self.quorlock("bootstrap", "--reconfigure", "--yes", "--max-lease", "3s")[0], 0)
            self.assertEqual(there(), {"told2", "told3"})

    def test_a_client_that_waits_outlasts_one_that_is_half_done(self):
        self.bootstrap("--max-lease", SHORT, "--set-name", "s")
        where = self.link(1, lambda link: False)
        self.assertEqual(self.quorlock("bootstrap", "--reconfigure", "--yes", "--max-lease", SHORT, *where)[0], 69)
        process = self.start("run", "--set-name", "s", "--lease", LEASE, self.key, "--", "echo", "ran")
        self.assertIn(b"its guard admits no client", self.await_words(process, b"too few nodes can vote"))
        self.assertEqual(self.quorlock("bootstrap", "--reconfigure", "--yes", "--max-lease", SHORT, "--set-name", "s")[0], 0)
        status, out, err = self.end(process)
        self.assertEqual((status, out), (0, "ran\n"), err)

    def test_a_reconfigure_says_what_it_ends_and_asks(self):
        self.bootstrap("--max-lease", LONG)
        self.environment = {}
        before, words = guards(), ("bootstrap", "--reconfigure", "--set-name", "other")
        status, out, err = self.quorlock(*words, stdin=subprocess.DEVNULL)
        self.assertEqual((status, out, guards()), (64, "", before), err)
        self.assertIn("give --yes", err)
        status, out, err = self.quorlock(*words, "--dry-run", "--yes")
        self.assertEqual((status, err, guards()), (0, "", before), out)
        for server in SERVERS:
            self.assertRegex(out, rf"(?m)^  {server}  \d+ connections, including ours; its guard is for 3 nodes, max lease 600s$")
        self.assertIn("writes guards for 3 nodes, a set named other, max lease as now.\nIt ends every lock that is held", out)
        for more in [("--dry-run", "--json", "--reconfigure"), ("--dry-run",)]:
            self.assertEqual(self.quorlock("bootstrap", *more)[:2], (64, ""))
        for answer, expected in [(b"\n", 1), (b"no\n", 1), (b"yes\n", 0)]:
            master, slave = pty.openpty()
            os.write(master, answer)
            process = self.start(*words, stdin=slave, stdout=slave)
            self.assertEqual(self.end(process)[0], expected)
            self.assertEqual(guards() == before, expected == 1, answer)
            os.close(slave)
            self.assertIn(b"It ends every lock that is held", self.shown(master))
            os.close(master)

    def test_the_plan_tells_of_guards_that_cannot_be_read(self):
        self.bootstrap("--max-lease", LONG)
        SERVERS[0].ask("SET", "quorlock:guard", "another program's")
        SERVERS[1].ask("ACL", "SETUSER", "default", "-get", "-eval", "-evalsha")
        self.addCleanup(SERVERS[1].ask, "ACL", "SETUSER", "default", "+@all")
        SERVERS[2].ask("DEL", "quorlock:guard")
        status, out, err = self.quorlock("bootstrap", "--reconfigure", "--dry-run")
        self.assertEqual((status, err), (0, ""), out)
        for server, said in zip(SERVERS, ("its guard cannot be read", "whether it has a guard is not known", "it has no guard")):
            self.assertRegex(out, rf"(?m)^  {server}  .*; {said}$")

    @staticmethod
    def shown(terminal):
        """All that was written to a terminal whose other side is closed; it may come in pieces."""
        text = b""
        with contextlib.suppress(OSError):
            while piece := os.read(terminal, 4096):
                text += piece
        return text

    def test_the_present_max_lease_is_kept_where_none_is_given(self):
        self.bootstrap("--max-lease", LONG)
        self.environment = {}
        status, out, err = self.quorlock("bootstrap", "--reconfigure", "--yes", "--set-name", "other")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("for leases up to 600000 ms", out)
        self.assertTrue(all(b"|other|600000|" in guard for guard in guards()), guards())

    def test_nodes_that_disagree_need_a_value(self):
        for server, lease in zip(SERVERS, ["5s", "7s", "5s"]):
            super().bootstrap("--nodes", str(server), "--max-lease", lease)
        self.environment = {}
        before = guards()
        result = self.quorlock("bootstrap", "--reconfigure", "--yes")
        self.assert_unwritten(before, result, 64)
        self.assertIn("'quorlock bootstrap --reconfigure --max-lease 7000ms'", result[1])
        self.assertEqual(self.quorlock("bootstrap", "--reconfigure", "--yes", "--max-lease", "7000ms")[0], 0)
        # One that lost its guard does not disagree, and is quarantined as the others are.
        SERVERS[0].ask("DEL", GUARD)
        self.assertEqual(self.quorlock("bootstrap", "--reconfigure", "--yes")[0], 0)
        for index in range(3):
            self.assert_quarantined(index, 7000)

    def test_a_guard_that_cannot_be_read_leaves_all_unwritten(self):
        for words in [("SET", GUARD, "something else"), ("SET", GUARD, "3|3|s|1000|a|b|0"), ("HSET", GUARD, "a", "b")]:
            self.setUp()
            self.bootstrap("--max-lease", LONG)
            SERVERS[1].ask("DEL", GUARD)
            SERVERS[1].ask(*words)
            before = [SERVERS[index].ask("GET", GUARD) for index in (0, 2)]
            status, out, _ = self.quorlock("bootstrap", "--reconfigure", "--yes", "--max-lease", SHORT)
            self.assertEqual(status, 1, out)
            self.assertIn("nothing was written", out)
            self.assertIn("DEL quorlock:guard'", out)
            self.assertNotIn("give --reconfigure", out)
            self.assertRegex(out, rf"{SERVERS[1]}  guarded")
            self.assertEqual("the key quorlock:guard holds a value of another type" in out, words[0] == "HSET", out)
            self.assertNotIn("dialect", out)
            self.assertEqual([SERVERS[index].ask("GET", GUARD) for index in (0, 2)], before)

    def test_without_the_right_to_disconnect_others_nothing_is_written(self):
        self.bootstrap("--set-name", "s")
        for rules in [["-client|kill"], ["-multi"], ["-exec"]]:
            before = guards()
            result = self.quorlock("bootstrap", "--reconfigure", "--yes", "--max-lease", LONG, *self.weak(2, rules=rules))
            self.assert_unwritten(before, result, 69)
            self.assertRegex(result[1], rf"{SERVERS[2]} .*NOPERM")
            self.assertNotIn("secret", result[1] + result[2])

    def test_a_frozen_node_leaves_all_unwritten(self):
        self.bootstrap("--set-name", "s")
        before = guards()
        SERVERS[2].freeze()
        result = self.quorlock("bootstrap", "--reconfigure", "--yes", "--max-lease", LONG, "--set-name", "s")
        SERVERS[2].thaw()
        self.assert_unwritten(before, result, 69)

    def test_a_node_that_froze_in_between_may_be_written(self):
        for n_writes, others in [(1, "closed"), (2, "bootstrapped")]:
            self.setUp()
            self.bootstrap("--set-name", "s")
            writes = []

            def freezes(link):
                writes.append(link)
                link.answers = len(writes) < n_writes
                return True
            where = self.link(2, freezes)
            result = self.quorlock("bootstrap", "--reconfigure", "--yes", "--max-lease", LONG, "--json", *where)
            self.assertEqual(result[0], 69, result)
            self.assertEqual(self.states(result[1]), [others, others, "unknown"])
            wait_for(lambda: all(b"|600000|" in guard for guard in guards()))
            status, _, err = self.run_once("--set-name", "s", "--max-lease", LONG)
            self.assertEqual(status, 69)
            if others == "closed":
                self.assertIn("a 'quorlock bootstrap --reconfigure' was not finished: repeat that command until it exits with 0", err)

    def test_it_is_told_what_each_node_is_and_the_same_again_finishes_it(self):
        SERVERS[0].ask("DEL", GUARD)
        for server in SERVERS[1:]:
            self.bootstrap("--nodes", str(server), "--set-name", "old")
        where = self.link(1, lambda link: False)
        status, out, _ = self.quorlock("bootstrap", "--reconfigure", "--yes", "--max-lease", LONG, *where)
        self.assertEqual(status, 69)
        self.assertNotIn("nothing was written", out)
        self.assertIn("half done: 0 of 3 nodes bootstrapped, 2 closed to all clients, 1 unknown", out)
        self.assertIn("Run the same command again", out)
        self.assertRegex(out, rf"{where[1].split(',')[1]}  unknown  +1 nodes, set old")
        for index in (0, 2):
            self.assertRegex(out, rf"{SERVERS[index]}  closed  +of a reconfiguration that was not finished")
            self.assertIn(b"2|0|s|600000|", guards()[index])
        self.assertIn(b"|old|", guards()[1])
        # Neither the old clients nor the new are let in.
        for options in [("--nodes", str(SERVERS[2]), "--set-name", "old"), ("--set-name", "s", "--max-lease", LONG)]:
            status, _, err = self.run_once(*options)
            self.assertEqual(status, 69)
            self.assertIn("its guard admits no client", err)
        status, out, _ = self.quorlock("bootstrap")
        self.assertEqual(status, 1)
        for _ in range(2):
            self.assertEqual(self.quorlock("bootstrap", "--reconfigure", "--yes", "--max-lease", LONG, "--set-name", "s")[0], 0)
            self.assertTrue(all(b"2|3|s|600000|" in guard for guard in guards()), guards())

    def test_killed_in_between_it_is_whole_or_nothing_on_each_node(self):
        for goes_on in [False, True]:
            self.setUp()
            self.bootstrap("--set-name", "s")
            before = guards()
            process = []
            other = socket.create_connection(("127.0.0.1", SERVERS[1].port), timeout=command_case.LIMIT_S)
            self.addCleanup(other.close)
            other.sendall(b"PING\r\n")
            self.assertEqual(other.recv(7), b"+PONG\r\n")

            def kills(_):
                wait_for(lambda: process)
                process[0].kill()
                process[0].wait()
                return goes_on
            where = self.link(1, kills)
            process.append(self.start("bootstrap", "--reconfigure", "--yes", "--max-lease", LONG, *where))
            process[0].wait()
            def is_written():
                try:
                    return b"|600000|" in guards()[1]
                except OSError:  # our own question was disconnected, too
                    return False
            if goes_on:
                wait_for(is_written)
                self.assertEqual(other.recv(1), b"")  # disconnected
            else:
                self.assertEqual(guards()[1], before[1])
                other.sendall(b"PING\r\n")
                self.assertEqual(other.recv(7), b"+PONG\r\n")
            self.assertEqual(self.quorlock("bootstrap", "--reconfigure", "--yes", "--max-lease", LONG, "--set-name", "s")[0], 0)
            self.assertTrue(all(b"|600000|" in guard for guard in guards()), guards())

    def test_a_second_one_makes_no_quarantine_shorter(self):
        self.bootstrap("--max-lease", "60s")
        left = []
        for _ in range(3):
            process = self.start("bootstrap", "--reconfigure", "--yes", "--max-lease", "10s")
            self.await_words(process, b"waiting")
            process.kill()
            left.append([node["quarantine_ms"] for node in self.report()])
        self.assertGreater(min(min(line) for line in left), 30000, left)
        self.environment = {"QUORLOCK_MAX_LEASE": "10s"}
        SERVERS[1].restart(False)
        self.assertEqual(self.run_once()[0], 69)
        self.assertGreater(self.report()[1]["quarantine_ms"], 30000)


class ShorterLeases(BootstrapCase):
    """A client with a shorter max lease writes guards for that where all were lost: not while longer leases run."""

    def begin(self):
        self.bootstrap("--max-lease", SHORT)
        self.began = time.monotonic()
        process = self.start("bootstrap", "--reconfigure", "--yes", "--max-lease", "1s")
        self.words = self.await_words(process, b"waiting")
        return process

    def test_it_ends_when_none_of_the_longer_can_run(self):
        process = self.begin()
        self.assertRegex(self.words.decode(), "leases of up to 2s may still run: give clients the max lease of 1s when this")
        for options, why in [(("--max-lease", "1s", "--lease", "500ms"), "quarantined for"),
                             (("--max-lease", SHORT), "max lease 1000 ms; this client says .* 2000 ms")]:
            status, _, err = self.run_once(*options)
            if time.monotonic() - self.began < SHORT_S:
                self.assertEqual(status, 69 if why == "quarantined for" else 78)
                self.assertRegex(err, why)
        status, out, _ = self.end(process)
        self.assertGreaterEqual(time.monotonic() - self.began, SHORT_S)
        self.assertEqual(status, 0)
        self.assertTrue(out.startswith("bootstrapped 3 nodes for leases up to 1000 ms"), out)

    def test_a_node_that_was_emptied_meanwhile_is_told(self):
        process = self.begin()
        SERVERS[1].restart(True)
        status, out, _ = self.end(process)
        self.assertEqual(status, 69)
        self.assertIn("half done: 2 of 3 nodes bootstrapped, the others unchanged", out)
        self.assertRegex(out, rf"{SERVERS[1]}  free")
        self.assertEqual(self.quorlock("bootstrap", "--reconfigure", "--yes", "--max-lease", "1s")[0], 0)
        # It gets the lock. On a busy machine it may lose so short a one again.
        self.assertIn(self.quorlock("run", "--max-lease", "1s", "--lease", "1s", self.key, "--", "true")[0], (0, 75))

    def test_it_ends_early_on_a_signal_and_goes_on_with_the_next(self):
        process = self.begin()
        process.terminate()
        self.assertNotEqual(self.end(process)[0], 0)
        began = time.monotonic()
        self.assertEqual(self.quorlock("bootstrap", "--reconfigure", "--yes", "--max-lease", "1s")[0], 0)
        self.assertGreaterEqual(time.monotonic() - began, SHORT_S)


if __name__ == "__main__":
    command_case.main()
