#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock run --keep: a job that several machines start runs once: test_command_keep.py PATH_TO_quorlock [TEST...]"""
import json
import os
import re
import signal
import subprocess
import sys

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import SERVERS, Bootstrapped, wait_for

KEEP_S = 25  # longer than a busy machine keeps a test waiting


class Keep(Bootstrapped):
    def job(self, *options):
        """Starts what two machines have in their crontab."""
        return self.start("run", "-n", "-E", "99", *options, self.key, "--", "sh", "-c", f"echo did >>{self.path('done')}")

    def ttls(self):
        """How long the key stays, in ms, where a node has it."""
        return [ttl for ttl in (server.ask("PTTL", self.key) for server in SERVERS) if ttl > 0]

    def test_the_lock_stays_until_the_end_of_the_time_whatever_the_command_did(self):
        for script, expected in [("true", 0), ("exit 7", 7)]:
            status, _, err = self.quorlock("run", "-v", "--keep", f"{KEEP_S}s", self.key, "--", "sh", "-c", script)
            self.assertEqual(status, expected, err)
            self.assertIn("; kept for another ", err)
            wait_for(lambda: all(ttl <= KEEP_S * 1000 for ttl in self.ttls()))
            self.assertGreaterEqual(len(self.ttls()), 2)
            for server in SERVERS:
                server.ask("DEL", self.key)

    def test_what_is_kept_is_not_shown_as_held(self):
        script = f"echo $QUORLOCK_OWNER >{self.path('owner')}"
        self.quorlock("run", "--keep", f"{KEEP_S}s", "--label", "job:7", self.key, "--", "sh", "-c", script)
        token = self.read("owner")
        short = token[:len("job:7:") + 8]
        wait_for(lambda: self.values() == [f"quorlock:kept:{token}".encode()] * 3)
        out = self.quorlock("inspect", self.key)[1]
        self.assertIn(f'"{self.key}" is kept after its release by {token} on 3 of 3 nodes, ', out)
        self.assertEqual(re.findall(r"(?m)^\S+ +kept +(\S+) ", out), [token] * 3)
        report = json.loads(self.quorlock("inspect", "--json", self.key)[1])
        self.assertEqual([report[name] for name in ("held", "kept", "holder")], [False, True, token])
        self.assertEqual({(node["state"], node["holder"]) for node in report["nodes"]}, {("kept", token)})
        self.assertGreater(report["valid_ms"], 0)
        self.assertRegex(self.quorlock("ls", self.key)[1], rf"(?m)^{self.key} +kept +{short} ")
        lock = json.loads(self.quorlock("ls", "--json", self.key)[1].splitlines()[0])
        self.assertEqual([lock[name] for name in ("mode", "holder", "held")], ["kept", token, False])
        status, _, err = self.end(self.job("--label", "x"))
        self.assertEqual(status, 99)
        self.assertIn(f'"{self.key}" is kept after its release by {short} on ', err)
        waiter = self.start("run", self.key, "--", "true")
        self.await_words(waiter, b"waiting for", b"is kept after its release by " + short.encode())
        status, out, err = self.quorlock("break", self.key, "--owner", token)
        self.assertEqual((status, err), (0, ""), out)
        self.assertEqual(self.end(waiter)[0], 0)

    def test_a_full_server_keeps_without_the_mark(self):
        process = self.start("run", "--keep", f"{KEEP_S}s", self.key, "--", "sh", "-c", "echo; read line || :", stdin=subprocess.PIPE)
        process.stdout.readline()
        for server in SERVERS:
            server.ask("CONFIG", "SET", "maxmemory", 1)
            self.addCleanup(server.ask, "CONFIG", "SET", "maxmemory", 0)
        self.assertEqual(self.end(process)[0], 0)
        wait_for(lambda: len(self.ttls()) >= 2 and all(ttl <= KEEP_S * 1000 for ttl in self.ttls()))

    def test_a_command_that_was_not_executed_keeps_nothing(self):
        with open(self.path("text"), "w", encoding="ascii") as file:
            file.write("no program")
        for words, expected in [(("no-such-program",), 127), ((self.path("text"),), 126)]:
            status, _, err = self.quorlock("run", "-v", "--keep", f"{KEEP_S}s", self.key, "--", *words)
            self.assertEqual(status, expected, err)
            self.assertNotIn("kept", err)
            self.assert_free()

    def test_a_wait_that_a_signal_ends_keeps_nothing(self):
        self.hold("somebody", count=3)
        process = self.start("run", "-v", "--keep", f"{KEEP_S}s", self.key, "--", "true")
        self.await_words(process, b"somebody")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.end(process)[0], 143)
        self.assertEqual(self.values(), [b"somebody"] * 3)

    def test_times_that_do_not_fit_are_refused(self):
        for options, said in [(("--keep", "0s"), '"0s" is out of range: give 1ms to 24h'),
                              (("--keep", "1001ms", "--lease", "1s"), "--keep of 1001 ms is longer than --lease of 1000 ms"),
                              (("--keep", "31s"), "--keep of 31000 ms is longer than the max lease of 30000 ms"),
                              (("--keep", "31s"), "quorlock bootstrap --reconfigure --max-lease 31000ms"),
                              (("--keep", "1s", "--permits", "2"), "--keep is for exclusive locks"),
                              (("--keep", "1s", "--shared", "other"), "--keep is for exclusive locks"),
                              (("--keep", "1s", "--dialect", "redisson"), "--keep: the redisson dialect has no such locks")]:
            status, _, err = self.end(self.job(*options))
            self.assertEqual(status, 64, err)
            self.assertIn(said, err)
        self.assertFalse(os.path.exists(self.path("done")))


if __name__ == "__main__":
    command_case.main()
