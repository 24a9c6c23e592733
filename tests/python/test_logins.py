#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Users and passwords that change while a client of the Python package runs: test_logins.py PATH_TO_quorlock [TEST...]"""
import contextlib
import os
import signal
import threading

import test_python
from test_python import LIMIT_S, LONG_MS, SERVERS, Closed, Invalid, NoQuorum, TimedOut, command_case, wait_for

import quorlock


class Credentials(test_python.PythonCase):
    OLD, NEW = "xq7-old-secret", "xq7-new-secret"

    def setUp(self):
        super().setUp()
        self.lines = []
        for server in SERVERS:
            server.ask("ACL", "SETUSER", "app", "reset", "on", ">" + self.OLD, "~*", "&*", "+@all")

    def rotate(self):
        for server in SERVERS:
            server.ask("ACL", "SETUSER", "app", "resetpass", ">" + self.NEW)
            server.ask("CLIENT", "KILL", "USER", "app")

    def survive(self, client, learn):
        """A lock that is held while the password changes, and a login that is refused meanwhile."""
        with client.lock(self.key, lease_ms=LONG_MS) as lock:
            self.rotate()
            wait_for(lambda: any("WRONGPASS" in line for line in self.lines))
            learn()
            wait_for(lambda: self.extends(lock))
        self.assertFalse(any("xq7" in line for line in self.lines), self.lines)

    def extends(self, lock):
        with contextlib.suppress(NoQuorum, TimedOut):
            lock.extend()
            return True
        return False

    def app(self, **options):
        return self.open(log=lambda level, line: self.lines.append(line), **options)

    def test_they_are_set(self):
        client = self.app(user="app", password=self.OLD)
        self.survive(client, lambda: client.set_credentials("app", self.NEW))
        client = quorlock.Client(f"redis://app:x@{SERVERS[0]}")
        with self.assertRaises(Invalid) as caught:
            client.set_credentials("app", self.NEW)
        self.assertIn("in its address", str(caught.exception))
        client.close()
        with self.assertRaises(Closed):
            client.set_credentials()

    def test_a_child_of_fork_logs_in_with_what_was_set(self):
        client = self.app(user="app", password=self.OLD)
        client.set_credentials("app", self.NEW)
        self.rotate()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                with client.lock(self.key, wait_ms=1000 * LIMIT_S):
                    status = 0
            finally:
                os._exit(status)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    def test_a_function_is_asked(self):
        nodes_asked, found = set(), []

        def ask(node):
            nodes_asked.add(node)
            if not found:
                raise OSError("the vault is sealed")
            return found[0]
        client = self.app(credentials=ask)
        lock = client.lock(self.key)
        wait_for(lambda: any("no credentials yet: the vault is sealed" in line for line in self.lines))
        found.append(("app", self.OLD))
        with lock:
            self.assertEqual(nodes_asked, {str(server) for server in SERVERS})
        self.survive(client, lambda: found.insert(0, ("app", self.NEW)))
        with self.assertRaises(quorlock.Error) as caught:
            client.set_credentials("app", self.NEW)
        self.assertEqual(caught.exception.name, "STATE")

    def vault(self):
        """A function that gives the password, but blocks for the nodes in `sealed` until `opened`; and whom it was asked for."""
        sealed, opened, asked, here = set(), threading.Event(), [], os.getpid()
        self.addCleanup(opened.set)

        def ask(node):
            asked.append(node)
            # The library's thread has all signals blocked.
            self.assertEqual(signal.pthread_sigmask(signal.SIG_BLOCK, ()), set())
            if node in sealed and os.getpid() == here:
                self.assertTrue(opened.wait(LIMIT_S))
            return "app", self.OLD
        return ask, sealed, opened, asked

    def test_renewals_wait_for_no_function_that_is_asked(self):
        ask, sealed, opened, asked = self.vault()
        client, node = self.app(credentials=ask), str(SERVERS[0])
        with client.lock(self.key, lease_ms=LONG_MS) as lock:
            wait_for(lambda: sum(": ready, " in line for line in self.lines) == len(SERVERS))
            sealed.add(node)
            before = asked.count(node)
            for server in SERVERS:
                server.ask("CLIENT", "KILL", "USER", "app")
            wait_for(lambda: asked.count(node) > before)
            # The others log in again, and renew the lock.
            wait_for(lambda: self.extends(lock))
            self.assertIn("quorlock_", client.metrics())
            self.assertFalse(opened.is_set())
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    with client.lock(self.key + ":child", wait_ms=1000 * LIMIT_S):
                        status = 0
                finally:
                    os._exit(status)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
            opened.set()
            wait_for(lambda: SERVERS[0].ask("CLIENT", "LIST").count(b" user=app "))
        self.assertFalse(any("no credentials" in line or "no new credentials" in line for line in self.lines), self.lines)

    def test_a_function_that_takes_longer_than_the_try(self):
        ask, sealed, opened, asked = self.vault()
        sealed |= {str(server) for server in SERVERS}
        client = self.app(credentials=ask, connect_timeout_ms=200)
        wait_for(lambda: sum("gave no credentials within 200 ms" in line for line in self.lines) == len(SERVERS))
        lock = client.lock(self.key)
        self.assertEqual(sorted(asked), sorted(sealed))
        opened.set()
        with lock:
            lock.check()

    def test_a_function_may_close_the_client(self):
        clients, told = [], threading.Event()

        def ask(_node):
            wait_for(lambda: clients)
            clients[0].close()
            told.set()
            return "app", self.OLD
        clients.append(self.app(credentials=ask))
        self.assertTrue(told.wait(LIMIT_S))
        self.assertTrue(clients[0].closed)

    def test_a_file_is_read_again(self):
        file = self.path("password")

        def write(text):
            with open(file + "~", "w", encoding="ascii") as f:
                f.write(text)
            os.rename(file + "~", file)
        write(self.OLD + "\n")
        client = self.app(user="app", password_file=file)
        self.survive(client, lambda: write(self.NEW + "\r\nmore"))
        for text in ("", "\nx", "x" * 1001, "a\0b"):
            write(text)
            with self.assertRaises(Invalid) as caught:
                self.app(user="app", password_file=file)
            self.assertIn(f"password file '{file}'", str(caught.exception))
        with self.assertRaises(Invalid):
            self.app(password_file="/no/such/file")
        with self.assertRaises(Invalid):
            self.app(password=self.OLD, password_file=file)
        write(self.NEW)
        process = self.python("import os, quorlock\n"
                              f"os.environ['QUORLOCK_USER'], os.environ['QUORLOCK_PASSWORD_FILE'] = 'app', {file!r}\n"
                              "try: quorlock.lock('a', wait_ms=0).acquire()\n"
                              "except quorlock.NoQuorum as problem: print(problem)\n")
        # Let in, as one that has to wait because the nodes have no guard yet.
        self.assertIn("quarantined", process.communicate(timeout=LIMIT_S)[0])


if __name__ == "__main__":
    command_case.main()
