#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Users and passwords that change while a client of the Python package runs: test_logins.py PATH_TO_quorlock [TEST...]"""
import contextlib
import os

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

    def test_a_file_is_read_again(self):
        file = self.path("password")

        def write(text):
            with open(file + "~", "w", encoding="ascii") as f:
                f.write(text)
            os.rename(file + "~", file)
        write(self.OLD + "\n")
        client = self.app(user="app", password_file=file)
        self.survive(client, lambda: write(self.NEW + "\r\nmore"))
        # The library's thread has run no Python for it.
        self.assertIsNone(client._home._thread)
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
