#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock acquire, renew and release: a lock for several commands: test_acquire.py PATH_TO_quorlock [TEST...]"""
import json
import os
import pathlib
import signal
import stat
import sys

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import SERVERS, Bootstrapped, wait_for

# A verb ends when a quorum has answered. A node that connects too late keeps its key for so long.
LEASE = ("--lease", "10s")
SHORTER_MS = 8000
LONG = ("--lease", "25s")  # longer than nodes are frozen here, and than a test waits for a release


class Steps(Bootstrapped):
    def holders(self):
        return {value.decode() for value in self.values() if value is not None}

    def acquire(self, *options, lease=LEASE):
        status, out, err = self.quorlock("acquire", *lease, *options, self.key)
        self.assertEqual((status, err), (0, ""))
        return out

    def shorten(self):
        for server in SERVERS:
            server.ask("PEXPIRE", self.key, str(SHORTER_MS))

    def is_renewed(self):
        return sum(server.ask("PTTL", self.key) > SHORTER_MS for server in SERVERS) >= 2

    def test_steps_share_a_lock_by_its_token(self):
        token = self.acquire().rstrip("\n")
        self.assertEqual(self.holders(), {token})
        self.assertEqual(self.quorlock("acquire", "-n", self.key)[0], 1)
        self.shorten()
        self.assertEqual(self.quorlock("renew", *LEASE, self.key, token), (0, "", ""))
        self.assertTrue(self.is_renewed())
        self.assertEqual(self.quorlock("release", *LEASE, self.key, token), (0, "", ""))
        self.assert_free()
        for verb in ("renew", "release"):
            status, out, err = self.quorlock(verb, *LEASE, self.key, token)
            self.assertEqual((status, out), (75, ""))
            self.assertIn("its token is gone from", err)

    def test_each_step_leaves_the_lock_on_all_nodes(self):
        for server in SERVERS:
            token = self.acquire().rstrip("\n")
            self.assertEqual(self.values(), [token.encode()] * len(SERVERS))
            server.ask("DEL", self.key)
            self.assertEqual(self.quorlock("renew", *LEASE, self.key, token)[0], 0)
            self.assertEqual(self.values(), [token.encode()] * len(SERVERS))
            self.assertEqual(self.quorlock("release", *LEASE, self.key, token)[0], 0)
            self.assert_free()

    def test_several_keys_a_fencing_token_and_json(self):
        keys = [self.key, self.key + "2"]
        status, out, err = self.quorlock("acquire", *LEASE, "--json", "--fence", *keys)
        self.assertEqual((status, err), (0, ""))
        first = json.loads(out)
        self.assertEqual(first["keys"], keys)
        self.assertGreater(first["fence"], 0)
        self.assertGreater(first["valid_ms"], 0)
        _, out, _ = self.quorlock("renew", *LEASE, "--json", "--fence", *keys, first["token"])
        renewed = json.loads(out)
        self.assertEqual((renewed["keys"], renewed["token"], renewed["fence"]), (keys, None, first["fence"]))
        _, out, _ = self.quorlock("release", *LEASE, "--json", *keys, first["token"])
        self.assertEqual(json.loads(out), {"keys": keys, "expired": False})
        self.assert_free()
        token, fence = self.acquire("--fence").split()
        self.assertGreater(int(fence), first["fence"])
        _, out, _ = self.quorlock("release", *LEASE, "--json", self.key, token)
        self.assertEqual(json.loads(out), {"keys": keys[:1], "expired": False})
        status, out, _ = self.quorlock("release", *LEASE, "--json", self.key, token)
        self.assertEqual((status, json.loads(out)), (75, {"keys": keys[:1], "expired": True}))

    def test_a_token_is_for_all_its_keys_and_for_its_fencing(self):
        keys = [self.key, self.key + "2"]
        token = self.quorlock("acquire", *LONG, *keys)[1].strip()
        held = [[server.ask("GET", key) for server in SERVERS] for key in keys]
        for verb in ("renew", "release"):
            for words in ([keys[0]], [keys[1]], [*keys, "k3"]):
                status, out, err = self.quorlock(verb, *LONG, *words, token)
                self.assertEqual((status, out), (64, ""))
                self.assertIn("the token is of a lock with other keys: name all the keys", err)
            status, out, err = self.quorlock(verb, *LONG, "--fence", *keys, token)
            self.assertEqual((status, out), (64, ""))
            self.assertIn("the token is of a lock without fencing", err)
        self.assertEqual([[server.ask("GET", key) for server in SERVERS] for key in keys], held)
        self.assertEqual(self.quorlock("release", *LONG, *reversed(keys), token)[0], 0)
        self.assert_free()

    def test_a_token_file_is_for_its_user_only(self):
        path = pathlib.Path(self.path("token"))
        path.touch(0o644)
        self.assertEqual(self.acquire("--token-file", path), "")
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        self.assertEqual(self.holders(), {path.read_text(encoding="ascii").rstrip("\n")})
        for verb in ("renew", "release"):
            self.assertEqual(self.quorlock(verb, *LEASE, "--token-file", path, self.key), (0, "", ""))
        self.assert_free()

    def test_a_token_that_nobody_would_get_is_released(self):
        status, _, err = self.quorlock("acquire", *LONG, "--token-file", self.path("no/folder"), self.key)
        self.assertEqual(status, 74)
        self.assertIn("cannot write", err)
        self.assert_free()

    def test_a_token_goes_into_a_new_regular_file_only(self):
        """Nobody reads the pipe, so opening it would hang; a link leads to a file of somebody else."""
        os.mkfifo(self.path("pipe"))
        pathlib.Path(self.path("target")).write_text("old", encoding="ascii")
        os.symlink(self.path("target"), self.path("link"))
        for name in (self.path("pipe"), self.path("link"), self.folder, "/dev/null"):
            status, out, err = self.quorlock("acquire", *LONG, "--token-file", name, self.key)
            self.assertEqual((status, out), (74, ""), err)
            self.assertIn("Is a directory" if name == self.folder else "it is not a regular file: give the file itself", err)
            self.assertEqual(self.values(), [None] * len(SERVERS))
        self.assertEqual(self.read("target"), "old")
        os.link(self.path("target"), self.path("name"))
        self.acquire("--token-file", self.path("name"))
        self.assertEqual(self.read("target"), "old")
        self.assertEqual(self.holders(), {self.read("name")})
        self.assertEqual(sorted(os.listdir(self.folder)), ["link", "name", "pipe", "target"])

    def assert_signal_gives_back(self, begin, silent=()):
        """SIGTERM when the lock is granted and its token not shown yet: a caller who gets 143 has nothing to give back."""
        for server in silent:
            server.freeze()
        try:
            for _ in range(20):  # on a busy machine the signal may come too late
                process = begin()
                wait_for(lambda: sum(server.ask("EXISTS", self.key) for server in SERVERS[:2]) == 2)
                process.send_signal(signal.SIGTERM)
                status, out, err = self.end(process)
                if status == 0:
                    self.assertEqual(self.quorlock("release", *LONG, self.key, out.strip())[0], 0)
                    continue
                self.assertEqual((status, out), (128 + signal.SIGTERM, ""), err)
                break
            wait_for(lambda: [server.ask("GET", self.key) for server in SERVERS[:2]] == [None] * 2)
        finally:
            for server in silent:
                server.thaw()
        self.assert_free()

    def test_a_signal_after_the_grant_while_a_node_is_silent_gives_the_lock_back(self):
        self.assert_signal_gives_back(lambda: self.start("acquire", *LONG, self.key), silent=SERVERS[2:])

    def test_a_signal_while_nobody_reads_the_token_gives_the_lock_back(self):
        """And without a signal it ends when the lease does."""
        unread, full = os.pipe()
        command_case.fill(full)
        try:
            self.assert_signal_gives_back(lambda: self.start("acquire", *LONG, self.key, stdout=full))
            status, _, err = self.quorlock("acquire", "--lease", "2s", self.key, stdout=full)
            self.assertEqual(status, 75, err)
            self.assertIn("its lease ended before its token was handed on", err)
        finally:
            os.close(unread)
            os.close(full)

    def test_without_a_quorum_nothing_is_released(self):
        token = self.acquire(lease=LONG).rstrip("\n")
        for server in SERVERS[1:]:
            server.freeze()
        try:
            for verb in ("renew", "release"):
                status, _, err = self.quorlock(verb, *LONG, "--node-timeout", "200ms", "--connect-timeout", "1s", self.key, token)
                self.assertEqual(status, 69)
                self.assertIn("it may still be held until its lease ends", err)
        finally:
            for server in SERVERS[1:]:
                server.thaw()
        self.assertEqual(self.quorlock("renew", *LONG, self.key, token)[0], 0)
        self.assertEqual(self.quorlock("release", *LONG, self.key, token)[0], 0)

    def test_ps_does_not_show_the_token(self):
        token = self.acquire(lease=LONG).rstrip("\n")
        for server in SERVERS:
            server.freeze()
        try:
            for words in (("renew", *LONG, self.key, token), ("--owner", token, "--node-timeout", "9s", "break", self.key)):
                process = self.start(*words)
                line = pathlib.Path(f"/proc/{process.pid}/cmdline")
                wait_for(lambda line=line: b"*" * 40 in line.read_bytes())
                self.assertNotIn(token.rsplit(":", 1)[1].encode(), line.read_bytes())
                os.kill(process.pid, signal.SIGTERM)
                # It hides the token before it watches signals.
                self.assertIn(self.end(process)[0], (128 + signal.SIGTERM, -signal.SIGTERM))
        finally:
            for server in SERVERS:
                server.thaw()
        self.assertEqual(self.quorlock("release", *LONG, self.key, token)[0], 0)

    def test_a_signal_ends_the_wait_of_acquire(self):
        token = self.acquire().rstrip("\n")
        process = self.start("acquire", self.key)
        self.await_words(process, b"waiting for")
        os.kill(process.pid, signal.SIGTERM)
        self.assertEqual(self.end(process)[0], 128 + signal.SIGTERM)
        self.assertEqual(self.holders(), {token})
        self.assertEqual(self.quorlock("release", *LEASE, self.key, token)[0], 0)
        self.assert_free()

    def test_usage_errors_say_what_to_give(self):
        for args, said in [
                (("renew", "k"), "no token: give quorlock renew KEY... TOKEN"),
                (("release", "k", "text"), "this is no owner token"),
                (("renew", "--token-file", self.path("none"), "k"), "cannot read"),
                (("acquire", "--dialect", "redisson", "k"), "only the plain dialect"),
                (("acquire", "--permits", "2", "k"), "does not belong"), (("renew", "--wait", "1s", "k"), "does not belong")]:
            status, out, err = self.quorlock(*args)
            self.assertEqual((status, out), (64, ""), args)
            self.assertIn(said, err)


if __name__ == "__main__":
    command_case.main()
