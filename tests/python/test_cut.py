#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Requests that are under way when a connection ends, on real servers: test_cut.py PATH_TO_quorlock [TEST...]

QUORLOCK_LIBRARY names the library, PYTHONPATH the folder of the package. In a network of its own packets are really lost;
where that may not be made, its test says so. A proxy holds requests back until the next connection was used.
"""
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True  # the tree stays as it is
sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

import command_case
from command_case import LIMIT_S, SERVERS, Case, listen, nodes, wait_for
import place

import quorlock

INSIDE = "QUORLOCK_TEST_CUT_INSIDE"
LEASE_MS = 120000  # a key that stands that long has been forgotten
SOON_S = LIMIT_S  # much less than that
CUT_S = 2.3  # the system sends again 1.4 and 3.0 s after the first time, and gives up then
SETTLED_S = 4.0  # from the first time on: nothing comes any more

MODES = {"plain": ({}, {}), "fenced": ({}, {"fencing": True}), "shared": ({}, {"shared": True}),
         "permits": ({}, {"permits": 3}), "redisson": ({"dialect": "redisson"}, {}),
         "strict": ({"guard": "strict"}, {}), "all": ({"policy": "all"}, {})}


def standing(name):
    """What is locked of it, on each node."""
    counted = (b"quorlock:fence:", b"quorlock:permits:")
    return [[key for key in server.ask("KEYS", "*") if name.encode() in key and not key.startswith(counted)]
            for server in SERVERS]


class Modes(Case):
    """A client for each mode, all of whose nodes have granted once, and its lock of a key with the mode's name."""

    def open_all(self, addresses):
        self.locks = {}
        for mode, (client_options, options) in MODES.items():
            options = {"lease_ms": LEASE_MS, "wait_ms": 0, "renew_ms": quorlock.RENEW_NEVER, **options}
            client_options = {"guard": "off", "max_lease_ms": LEASE_MS, **client_options}
            if client_options["guard"] != "off":
                status, _, err = self.connected("bootstrap", "--yes", "--max-lease", f"{LEASE_MS}ms",
                                                env={"QUORLOCK_NODES": addresses})
                self.assertEqual(status, 0, err)
            client = quorlock.Client(addresses, **client_options)
            self.addCleanup(client.close)
            self.locks[mode] = client.lock("key:" + mode, **options)
            wait_for(lambda mode=mode: self.held_everywhere(mode))

    def held_everywhere(self, mode):
        try:
            self.locks[mode].acquire()
        except quorlock.NoQuorum:
            return False
        everywhere = all(standing("key:" + mode))
        self.locks[mode].release()
        wait_for(lambda: not any(standing("key:" + mode)))
        return everywhere

    def try_all(self):
        """Each tries once; returns the threads."""
        self.ends = {}

        def attempt(mode, lock):
            try:
                lock.acquire()
                lock.release()
                self.ends[mode] = "OK"
            except quorlock.Error as problem:
                self.ends[mode] = problem.name

        threads = [threading.Thread(target=attempt, args=item) for item in self.locks.items()]
        for thread in threads:
            thread.start()
        return threads

    def join(self, threads):
        for thread in threads:
            thread.join(LIMIT_S)
        self.assertEqual(set(self.ends), set(MODES))

    def assert_all_free(self):
        for mode in MODES:
            wait_for(lambda mode=mode: not any(standing("key:" + mode)), SOON_S)


class Proxy:
    """In front of one server. What holds back a connection's requests delivers them when it is told to, though the client
    ended that connection long before."""

    def __init__(self, server):
        self.server = server
        self.listener = listen()
        self.port = self.listener.getsockname()[1]
        self.connections = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return
            pair = Pair(self, near, socket.create_connection(("127.0.0.1", self.server.port)))
            self.connections.append(pair)
            for pump in (pair.forth, pair.back):
                threading.Thread(target=pump, daemon=True).start()

    def hold(self):
        """All present connections take requests, and pass none on."""
        self.held = [pair for pair in self.connections if not pair.over]
        for pair in self.held:
            pair.held = pair.answered = b""

    def cut(self):
        """Their clients see them end."""
        for pair in self.held:
            pair.near.shutdown(socket.SHUT_RDWR)

    def deliver(self):
        for pair in self.held:
            if pair.held:
                pair.far.sendall(pair.held)
            pair.far.shutdown(socket.SHUT_WR)

    def close(self):
        self.listener.close()
        for pair in self.connections:
            for end in (pair.near, pair.far):
                end.close()

    def __str__(self):
        return f"127.0.0.1:{self.port}"


class Pair:
    """One connection of a client, and the one to the server behind it."""

    def __init__(self, proxy, near, far):
        self.proxy, self.near, self.far = proxy, near, far
        self.held = None  # or what it holds back
        self.over = False
        self.asked = self.answered = b""

    def forth(self):
        try:
            while data := self.near.recv(65536):
                if self.held is not None:
                    self.held += data
                else:
                    self.answered = b""
                    self.asked += data
                    self.far.sendall(data)
        except OSError:
            pass
        self.over = True
        if self.held is None:
            self.far.close()

    def back(self):
        try:
            while data := self.far.recv(65536):
                self.answered += data
                if self.held is None:
                    self.near.sendall(data)
        except OSError:
            pass


class Late(Modes):
    def setUp(self):
        super().setUp()
        self.proxies = [Proxy(server) for server in SERVERS]
        for proxy in self.proxies:
            self.addCleanup(proxy.close)

    def everywhere(self, find):
        """Whether each proxy found that of each mode."""
        return all(any(find(pair, b"key:" + mode.encode()) for pair in proxy.connections)
                   for proxy in self.proxies for mode in MODES)

    def come_late(self, deliver=True):
        """Each tries once. The node executes that behind the release on the next connection, which was answered."""
        for proxy in self.proxies:
            proxy.hold()
        threads = self.try_all()
        wait_for(lambda: self.everywhere(lambda pair, key: pair.held and key in pair.held))
        for proxy in self.proxies:
            proxy.cut()
        self.join(threads)
        # A try that was cut off early is repeated on the next connection, and released there.
        self.assertLessEqual(set(self.ends.values()), {"NOQUORUM", "OK"})
        wait_for(lambda: self.everywhere(lambda pair, key: pair.held is None and key in pair.asked and
                                         pair.answered and pair not in pair.proxy.held))
        wait_for(lambda: not any(any(standing("key:" + mode)) for mode in MODES))
        if not deliver:
            return
        for proxy in self.proxies:
            proxy.deliver()
        wait_for(lambda: all(pair.answered for proxy in self.proxies for pair in proxy.held if pair.held))

    def test_a_key_that_comes_late_is_given_back(self):
        self.open_all(",".join(map(str, self.proxies)))
        self.come_late()
        self.assert_all_free()

    def test_a_token_that_may_come_late_is_not_adopted(self):
        """Its release, which is repeated until then, would delete the adopted lock."""
        self.open_all(",".join(map(str, self.proxies)))
        self.come_late(deliver=False)
        held = b"".join(pair.held for proxy in self.proxies for pair in proxy.held)
        token = re.search(rb"\r\nkey:plain\r\n\$\d+\r\n(\S+)\r\n", held)[1]
        with self.assertRaises(quorlock.Error) as caught:
            self.locks["plain"].adopt(token.decode())
        self.assertIn("is releasing it", str(caught.exception))

    def test_a_key_that_comes_late_is_not_in_the_way(self):
        self.open_all(",".join(map(str, self.proxies)))
        self.come_late()
        for lock in self.locks.values():
            lock.acquire()


def filter_packets(*words):
    subprocess.run(["iptables", "-w", "5", *words], check=True)


class Cut(Modes):
    def setUp(self):
        super().setUp()
        if not os.environ.get(INSIDE):
            self.skipTest("no network of its own, or no packet filter in it: unshare --net and iptables are needed")
        filter_packets("-N", "CUT")
        for server in SERVERS:
            filter_packets("-A", "CUT", "-p", "tcp", "--dport", str(server.port), "-j", "DROP")
            filter_packets("-A", "CUT", "-p", "tcp", "--sport", str(server.port), "-j", "DROP")

    def test_a_short_cut_of_the_network_leaves_no_key(self):
        self.open_all(nodes())
        for server in SERVERS:
            for name in ("bounded", "stopped"):
                server.ask("SET", name, "another", "PX", "1500")
        held_s = time.monotonic()
        options = ["--lease", f"{LEASE_MS}ms", "--max-lease", f"{LEASE_MS}ms"]
        bounded = self.start("run", "-v", "--wait", "2s", *options, "bounded", "--", "true")
        stopped = self.start("run", "-v", "--wait", "1m", *options, "stopped", "--", "true")
        for process in (bounded, stopped):
            self.await_words(process, b"held by")
        ended = self.shell(*options, script=">up; while [ ! -e go ]; do sleep .01; done")
        time.sleep(max(0.0, held_s + 1.4 - time.monotonic()))
        filter_packets("-I", "INPUT", "-j", "CUT")
        begun_s = time.monotonic()
        threads = self.try_all()
        open(self.path("go"), "w", encoding="ascii").close()
        time.sleep(0.7)
        stopped.send_signal(signal.SIGTERM)
        time.sleep(max(0.0, begun_s + CUT_S - time.monotonic()))
        filter_packets("-D", "INPUT", "-j", "CUT")
        self.join(threads)
        for process in (bounded, stopped, ended):
            self.end(process)
        time.sleep(max(0.0, begun_s + SETTLED_S - time.monotonic()))
        self.assert_all_free()
        for key in ("bounded", "stopped", self.key):
            wait_for(lambda key=key: not any(standing(key)), SOON_S)
        for lock in self.locks.values():
            lock.acquire()


def main():
    if not os.environ.get(INSIDE) and {"private", "filter"} <= place.probe():
        os.environ[INSIDE] = "1"
        os.execvp("unshare", [*place.unshare_command(), sys.executable, *sys.argv])
    if os.environ.get(INSIDE):
        place.loopback_up()
    command_case.main()


if __name__ == "__main__":
    main()
