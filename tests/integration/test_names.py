#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The command with host names and real name servers: test_names.py PATH_TO_quorlock [TEST...]

It runs in a network of its own, in which 127.0.0.2 is a name server that never answers, and 127.0.0.3 is one of ours."""
import collections
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import SERVERS, Case, wait_for

SILENT, GOOD = "127.0.0.2", "127.0.0.3"
INSIDE = "QUORLOCK_TEST_NAMES_INSIDE"
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
TYPE_A = 1


class NameServer:
    """Answers for NAME.test with `address`, for others that there is no such host."""

    def __init__(self):
        self.delay_s, self.address, self.asked = 0, "127.0.0.1", []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((GOOD, 53))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            query, peer = self.socket.recvfrom(512)
            threading.Timer(self.delay_s, self.answer, (query, peer)).start()

    def answer(self, query, peer):
        labels, at = [], 12
        while query[at] != 0:
            labels.append(query[at + 1:at + 1 + query[at]].decode())
            at += 1 + query[at]
        kind = struct.unpack("!H", query[at + 1:at + 3])[0]
        known = labels[-1] == "test"
        given = known and kind == TYPE_A
        reply = query[:2] + struct.pack("!HHHHH", 0x8180 if known else 0x8183, 1, given, 0, 0) + query[12:at + 5]
        if given:
            reply += struct.pack("!HHHIH", 0xc00c, TYPE_A, 1, 0, 4) + socket.inet_aton(self.address)
        self.asked.append(labels[0])
        self.socket.sendto(reply, peer)


class Names(Case):
    @classmethod
    def setUpClass(cls):
        cls.server = NameServer()
        cls.silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        cls.silent.bind((SILENT, 53))

    def setUp(self):
        super().setUp()
        self.server.delay_s, self.server.address = 0, "127.0.0.1"
        self.bootstrap("--set-name", "names")

    def resolve_by(self, *servers, options="timeout:1 attempts:2"):
        """From now on the system has these name servers."""
        with open("/etc/resolv.conf", "w", encoding="ascii") as file:
            file.write("".join(f"nameserver {server}\n" for server in servers) + f"options {options}\n")

    def nodes(self, *names):
        """The servers by these names, and the rest by their addresses."""
        hosts = list(names) + ["127.0.0.1"] * (len(SERVERS) - len(names))
        return ",".join(f"{host}:{server.port}" for host, server in zip(hosts, SERVERS))

    def take(self, nodes, *options, script="true"):
        return self.start("run", "-v", "--set-name", "names", "--connect-timeout", "300ms", *options, self.key, "--",
                          "sh", "-c", f"cd {self.folder}; {script}", env={"QUORLOCK_NODES": nodes})

    def assert_taken(self, nodes, *options):
        status, _, err = self.end(self.take(nodes, "--wait", "15s", *options))
        self.assertEqual(status, 0, err)
        return err

    def test_the_systems_resolver_has_its_time(self):
        three = self.nodes("a.test", "b.test", "c.test")
        # It waits a second for the first, and then asks the second.
        self.resolve_by(SILENT, GOOD)
        err = self.assert_taken(three)
        self.assertIn("cannot resolve a.test: no answer within 300 ms yet", err)
        self.resolve_by(GOOD, options="timeout:5")
        self.server.delay_s = 1
        self.server.asked.clear()
        process = self.take(three, "--wait", "15s", script="while [ ! -e asked ]; do sleep 0.01; done")
        # Two nodes are enough for the lock, so the third name may be asked for later.
        wait_for(lambda: len(self.server.asked) >= 6)
        open(self.path("asked"), "wb").close()
        status, _, err = self.end(process)
        self.assertEqual(status, 0, err)
        # Each for two kinds of address, and not again at every connect timeout. A busy machine may connect once more.
        asked = collections.Counter(self.server.asked)
        self.assertEqual(set(asked), {"a", "b", "c"})
        self.assertLessEqual(max(asked.values()), 4, asked)

    def test_a_name_that_does_not_exist(self):
        self.resolve_by(GOOD)
        status, _, err = self.end(self.take(self.nodes("nobody.example"), "-n"))
        self.assertEqual(status, 0, err)
        status, _, err = self.end(self.take(self.nodes("nobody.example", "no.example"), "-n"))
        self.assertEqual(status, 69, err)
        self.assertIn("cannot resolve nobody.example: there is no such host, or it has no address", err)

    def test_an_address_that_changes(self):
        self.resolve_by(GOOD)
        self.server.address = "127.0.0.9"  # refuses
        process = self.take(self.nodes("a.test", "b.test"), "--wait", "15s")
        self.await_words(process, b"connect to 127.0.0.9: Connection refused")
        self.server.address = "127.0.0.1"
        status, _, err = self.end(process)
        self.assertEqual(status, 0, err)

    def test_a_lookup_that_hangs_delays_nobody(self):
        self.resolve_by(SILENT, options="timeout:30 attempts:5")
        for names, threads in [((), 1), (("a.test",), 2)]:
            process = self.take(self.nodes(*names), "-n", script="touch up; while [ -e up ]; do sleep 0.01; done")
            self.wait_file("up", process)
            tasks = os.listdir(f"/proc/{process.pid}/task")
            os.remove(self.path("up"))
            # It ends within the limit of every test, and the resolver would give up minutes later.
            status, _, err = self.end(process)
            self.assertEqual((status, len(tasks)), (0, threads), err)


def isolate():
    """Runs this program again in namespaces of its own, where only it sees what it changes. Does not return."""
    for rights in ([], ["--map-root-user"]):
        words = ["unshare", "--net", "--mount", *rights]
        try:
            fine = subprocess.run([*words, "mount", "--bind", "/etc/hosts", "/etc/resolv.conf"], check=False,
                                  stderr=subprocess.DEVNULL).returncode == 0
        except FileNotFoundError:
            fine = False
        if fine:
            os.environ[INSIDE] = "1"
            os.execvp(words[0], [*words, sys.executable, *sys.argv])
    print("SKIPPED: no namespaces for networks and mounts are to be had here (unshare --net --mount): host names are not "
          "tested with real name servers", file=sys.stderr)
    sys.exit(0)


def prepare():
    """Files and a loopback that are this test's alone."""
    folder = tempfile.mkdtemp(prefix="quorlock-names-")
    for name, text in [("resolv.conf", ""), ("nsswitch.conf", "hosts: files dns\n"), ("hosts", "127.0.0.1 localhost\n")]:
        path = os.path.join(folder, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        if os.path.exists(f"/etc/{name}"):
            subprocess.run(["mount", "--bind", path, f"/etc/{name}"], check=True)
    shutil.rmtree(folder)  # the mounts keep what they need
    if os.path.isdir("/run/nscd"):  # it would ask the name servers of the system
        subprocess.run(["mount", "-t", "tmpfs", "none", "/run/nscd"], check=True)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


if __name__ == "__main__":
    if not os.environ.get(INSIDE):
        isolate()
    prepare()
    command_case.main()
