#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock run: signals at the same time as the grant, and waits that end otherwise: test_command_signals.py PATH_TO_quorlock
[TEST...]

All other signals are in the tables of test_supervision.py and test_supervision_terminal.py."""
import os
import signal
import socket
import sys
import threading
import time

sys.dont_write_bytecode = True  # the tree stays as it is
from command_case import SERVERS, Bootstrapped, fill, listen, state, wait_for


class Proxy:
    """In front of one server. Holds back the replies on a connection after a SET of this key."""

    def __init__(self, server, key):
        self.server, self.mark = server, b"SET\r\n$%d\r\n%s\r\n" % (len(key), key.encode())
        self.listener = listen()
        self.lock, self.holding, self.held = threading.Lock(), True, []
        threading.Thread(target=self.accept, daemon=True).start()

    def __str__(self):
        return "127.0.0.1:%d" % self.listener.getsockname()[1]

    def accept(self):
        try:
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.server.port))
                marked = threading.Event()
                threading.Thread(target=self.forward, args=(client, server, marked, True), daemon=True).start()
                threading.Thread(target=self.forward, args=(server, client, marked, False), daemon=True).start()
        except OSError:
            pass

    def forward(self, source, target, marked, upwards):
        try:
            while data := source.recv(65536):
                if upwards and self.mark in data:
                    marked.set()
                with self.lock:
                    if not upwards and self.holding and marked.is_set():
                        self.held.append((target, data))
                    else:
                        target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def release(self):
        """When this returns, all that was held back is in the receiver's socket."""
        with self.lock:
            self.holding = False
            for target, data in self.held:
                target.sendall(data)

    def cut(self):
        """What was held back never arrives."""
        with self.lock:
            for target, _ in self.held:
                target.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.close()


class Waiting(Bootstrapped):
    def stop_before_the_grant(self, *options, **more):
        """A stopped command that would read all grants next, but for the proxies in front of it."""
        proxies = [Proxy(server, self.key) for server in SERVERS]
        for proxy in proxies:
            self.addCleanup(proxy.close)
        process = self.start("run", *options, "--set-name", "behind-proxies", "--guard", "off", "--node-timeout", "5s",
                             self.key, "--", "touch", self.path("ran"), **more,
                             env={"QUORLOCK_NODES": ",".join(str(proxy) for proxy in proxies)})
        wait_for(lambda: all(self.values()) and all(proxy.held for proxy in proxies))
        process.send_signal(signal.SIGSTOP)
        wait_for(lambda: state(process.pid) == "T")
        return proxies, process

    def test_a_term_at_the_time_of_the_grant_starts_nothing(self):
        proxies, process = self.stop_before_the_grant()
        for proxy in proxies:
            proxy.release()
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        status, _, err = self.end(process)
        self.assertEqual(status, 128 + signal.SIGTERM, err)
        self.assertFalse(os.path.exists(self.path("ran")))
        self.assert_free()

    def test_a_term_between_the_grant_and_the_start_starts_nothing(self):
        """A line about the third node is written before the grant is handled, and blocks until there is a reader."""
        reader, writer = os.pipe()
        proxies, process = self.stop_before_the_grant("-v", stderr=writer)
        fill(writer)
        os.close(writer)
        proxies[0].release()
        proxies[1].release()
        proxies[2].cut()
        process.send_signal(signal.SIGCONT)
        time.sleep(0.3)  # it blocks in that write by now; if not, the signal comes before the grant, and the result is the same
        process.send_signal(signal.SIGTERM)
        with open(reader, "rb") as said:
            err = said.read().replace(b"..", b"").decode()
        self.assertEqual(self.end(process)[0], 128 + signal.SIGTERM, err)
        # A command that was started could die of the signal before it did anything.
        self.assertNotIn("granted", err)
        self.assertFalse(os.path.exists(self.path("ran")), err)
        wait_for(lambda: self.values()[:2] == [None] * 2)
        SERVERS[2].ask("DEL", self.key)

    def after_an_outage(self, wait):
        """How a wait ends when the nodes come back and another client holds the lock."""
        for server in SERVERS[1:]:
            server.freeze()
        process = self.start("run", "--wait", wait, "--node-timeout", "500ms", self.key, "--", "touch",
                             self.path("ran"))
        self.await_words(process, b"1 of 3 did, 2 needed")
        for server in SERVERS[1:]:
            server.thaw()
        return self.end(process)

    def test_an_outage_and_then_contention_is_contention(self):
        for wait in ["4s", "8s", "16s"]:  # a busy machine may need longer to connect again
            self.hold("someone-else-entirely", count=3)
            status, _, err = self.after_an_outage(wait)
            for server in SERVERS:
                server.ask("DEL", self.key)
            if status == 1:
                break
        self.assertEqual(status, 1, err)
        self.assertIn("is held by someone-", err)
        self.assertFalse(os.path.exists(self.path("ran")))


if __name__ == "__main__":
    import command_case
    command_case.main()
