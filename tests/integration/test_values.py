#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What stands at a key, and what quorlock says of it: test_values.py PATH_TO_quorlock [TEST...]

One table of values, each looked at in both dialects by inspect, inspect --json, a run that waits for a moment, and
break. Whatever it is: nothing of it reaches the terminal as it is, run does not touch it, and break deletes it.
"""
import json
import os
import re
import sys
import unicodedata

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import SERVERS, Case, wait_for

LONG_MS = 60000
THEIRS = "9d1c0b7a-0000-4000-8000-0123456789ab:41"
OTHERS = "1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b:7"
DIALECTS = ("plain", "redisson")
HELD, FOREIGN = 1, 78  # run's exit statuses
BIDI = "\u202egnp.txt\u061c\u200b\u2066\ufeff"


def each(*commands):
    """The same on every server."""
    return [commands] * 3


def words(*values):
    """A string on each server, of each its own."""
    return [(("SET", "KEY", value, "PX", LONG_MS),) for value in values]


def fields(*pairs):
    return ("HSET", "KEY", *pairs)


class Value:
    """What stands there on each server, and for each dialect what is said: the state of each node, the type where it
    is foreign, the holder of each node in JSON, a part of inspect's first line, and of run's lines."""

    def __init__(self, commands, plain, redisson, expires=True):
        self.commands, self.said, self.expires = commands, dict(zip(DIALECTS, (plain, redisson))), expires


def no_lock(kind):
    return ("foreign", kind, None, f"is no lock on 3 of 3 nodes: a {kind} is there, and no (string|hash)$",
            f"the key holds a {kind}, not a (string|hash): it is not a lock")


PLAIN_THERE = ("foreign", "string", None, "is no lock on 3 of 3 nodes: a string is there, and no hash. If that is a lock "
               "of the plain dialect, give --dialect plain$", "a string, not a hash: .*give --dialect plain")
HASH_THERE = ("foreign", "hash", None, "is no lock on 3 of 3 nodes: a hash is there, and no string. If that is a lock of "
              "Redisson's, give --dialect redisson$", "a hash, not a string: .*give --dialect redisson")


def held(holder, shown, nodes=3):
    """By one owner, whose name messages show shortened."""
    return ("held", None, [holder] * 3, f"is held by {re.escape(shown[0])} on {nodes} of 3 nodes, \\d+ ms left$",
            f"is held by {re.escape(shown[1])} on [23] of 3 nodes, ")


def taken(*holders):
    return ("held", None, list(holders), "is taken on 3 of 3 nodes, by several owners$",
            r"is taken on [23] of 3 nodes, by (several owners|\S+ and others)")


def escaped(value):
    return "".join(f"\\x{byte:02x}" for byte in value)


RAW = [b"\0\xfa\x01\x1b[2J" + bytes([number]) * 13 for number in range(0xb0, 0xb3)]
RAW_TEXTS = ["\\x00\\xfa\\x01\\x1b[2J" + escaped(raw[7:]) for raw in RAW]
MEGABYTE = "m" * (1 << 20)
LONG = "m" * 4096  # of a longer value the scripts tell so much

VALUES = {
    "list": Value(each(("RPUSH", "KEY", "a")), no_lock("list"), no_lock("list")),
    "set": Value(each(("SADD", "KEY", "a")), no_lock("set"), no_lock("set")),
    "sorted set": Value(each(("ZADD", "KEY", 1, "a")), no_lock("zset"), no_lock("zset")),
    "stream": Value(each(("XADD", "KEY", "*", "a", "b")), no_lock("stream"), no_lock("stream")),
    "different types": Value(
        [(("RPUSH", "KEY", "a"),), (("SADD", "KEY", "a"),), (("XADD", "KEY", "*", "a", "b"),)],
        ("foreign", ["list", "set", "stream"], None, "is no lock on 3 of 3 nodes: a value of another type is there, and no string$", "it is not a lock"),
        ("foreign", ["list", "set", "stream"], None, "is no lock on 3 of 3 nodes: a value of another type is there, and no hash$", "it is not a lock")),
    "token": Value(words(*["someone-else-entirely"] * 3),
                   held("someone-else-entirely", ("someone-else-entirely", "someone-")), PLAIN_THERE),
    "empty string": Value(words(*[""] * 3), held("", ('""', '""')), PLAIN_THERE),
    "a megabyte": Value(words(*[MEGABYTE] * 3), held(LONG, (LONG[:128] + "...", "m" * 8)), PLAIN_THERE),
    "binary": Value(words(*[RAW[0]] * 3),
                    held(RAW_TEXTS[0], (RAW_TEXTS[0], "\\x00\\xfa\\x01\\x1b[2J\\xb0")), PLAIN_THERE),
    # Equal up to the first zero byte, and no further.
    "different binaries": Value(words(*RAW), taken(*RAW_TEXTS), PLAIN_THERE),
    "no UTF-8": Value(words(*[b"\xc3(\xed\xa0\x80"] * 3),
                      held("\\xc3(\\xed\\xa0\\x80", ("\\xc3(\\xed\\xa0\\x80", "\\xc3(\\xed\\xa0\\x80")), PLAIN_THERE),
    "terminal escapes": Value(words(*["\x1b]0;mine\x07\x9b2J\r\n"] * 3),
                              held("\\x1b]0;mine\\x07\\xc2\\x9b2J\\x0d\\x0a",
                                   ("\\x1b]0;mine\\x07\\xc2\\x9b2J\\x0d\\x0a", "\\x1b]0;mine")), PLAIN_THERE),
    "other order": Value(words(*[BIDI] * 3),
                         held(BIDI, ("\\xe2\\x80\\xaegnp.txt\\xd8\\x9c\\xe2\\x80\\x8b\\xe2\\x81\\xa6\\xef\\xbb\\xbf",
                                     "\\xe2\\x80\\xaegnp.txt")), PLAIN_THERE),
    "a token each": Value(words("0a1b2c3d4e5f", "1a1b2c3d4e5f", "2a1b2c3d4e5f"),
                          taken("0a1b2c3d4e5f", "1a1b2c3d4e5f", "2a1b2c3d4e5f"), PLAIN_THERE),
    "a token each, no expiry": Value([(("SET", "KEY", f"{n}a1b2c3d4e5f"),) for n in range(3)],
                                     taken("0a1b2c3d4e5f", "1a1b2c3d4e5f", "2a1b2c3d4e5f"), PLAIN_THERE, expires=False),
    "lock of Redisson": Value(each(fields(THEIRS, 2)), HASH_THERE,
                              held(THEIRS, (THEIRS, "9d1c0b7a:41"))),
    "a hash of Redisson's each": Value([(fields(f"{THEIRS}{n}", 1),) for n in range(3)], HASH_THERE,
                                       taken(*[f"{THEIRS}{n}" for n in range(3)])),
    # Its fields have another order on each server.
    "read lock": Value([(fields(*a, *b, *c),) for a, b, c in [
        (("mode", "read"), (THEIRS, 1), (OTHERS, 2)), ((OTHERS, 2), ("mode", "read"), (THEIRS, 1)),
        ((THEIRS, 1), (OTHERS, 2), ("mode", "read"))]], HASH_THERE,
        held("RReadWriteLock:read", ("RReadWriteLock:read",) * 2)),
    "write lock": Value([(fields(*pairs),) for pairs in [
        ("mode", "write", THEIRS + ":write", 1), (OTHERS + ":write", 1, "mode", "write"),
        ("mode", "write", THEIRS + ":write", 2, THEIRS, 1)]], HASH_THERE,
        held("RReadWriteLock:write", ("RReadWriteLock:write",) * 2)),
    "left of a read lock": Value(each(fields("mode", "read")), HASH_THERE,
                                 held("RReadWriteLock:leftover", ("RReadWriteLock:leftover",) * 2)),
    "left of a write lock": Value(each(fields("mode", "write")), HASH_THERE,
                                  held("RReadWriteLock:leftover", ("RReadWriteLock:leftover",) * 2)),
    "data of another program": Value([(fields(*pairs),) for pairs in [
        ("name", "Ada", "born", 1815), ("born", 1815, "name", "Ada"), ("name", "Ada", "born", 1815)]], HASH_THERE,
        held("born", ("born", "born"))),
    "data with a mode": Value(each(fields("mode", "dark", "font", "mono")), HASH_THERE, held("font", ("font", "font"))),
    "nothing but a mode": Value(each(fields("mode", "dark")), HASH_THERE, held("mode", ("mode", "mode"))),
}


class Values(Case):
    def fill(self, value):
        """As it is set, without expiry where its row says so."""
        for server, commands in zip(SERVERS, value.commands):
            server.ask("DEL", self.key)
            for command in commands:
                server.ask(*[self.key if word == "KEY" else word for word in command])
            if value.expires:
                server.ask("PEXPIRE", self.key, LONG_MS)

    def dumped(self):
        return [server.ask("DUMP", self.key) for server in SERVERS]

    def assert_harmless(self, text):
        """Nothing that a terminal obeys, or that changes or hides what is shown beside it."""
        for line in text.splitlines():
            bad = [char for char in line if unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp", "Cs")]
            self.assertEqual(bad, [], ascii(line))

    def inspected(self, dialect, said):
        state, types, holders, summary, _ = said
        status, out, err = self.quorlock("inspect", "--dialect", dialect, self.key)
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out.splitlines()[0], f'^"{self.key}" {summary}')
        self.assertNotIn("by nobody", out)
        self.assert_harmless(out)
        self.assertLess(max(map(len, out.splitlines())), 1000)
        status, out, err = self.quorlock("inspect", "--dialect", dialect, "--json", self.key)
        self.assertEqual((status, err), (0, ""))
        self.assert_harmless(out.replace(LONG, ""))
        nodes = json.loads(out)["nodes"]
        self.assertEqual([node["state"] for node in nodes], [state] * 3)
        self.assertEqual([node.get("type") for node in nodes], types if isinstance(types, list) else [types] * 3)
        self.assertEqual([node["holder"] for node in nodes], holders or [None] * 3)

    def try_to_run(self, dialect, wait):
        return self.quorlock("run", "--dialect", dialect, "--guard", "off", "--wait", wait, self.key,
                             "--", "touch", self.path("ran"))

    def refused(self, said, status, out, err):
        self.assertEqual((status, out), (HELD if said[0] == "held" else FOREIGN, ""), err)
        self.assert_harmless(err)
        return err

    def ran(self, dialect, said):
        before = self.dumped()
        if said[0] == "held":
            # The first line comes during the wait, after all were asked. On a busy machine a short wait is over before.
            for wait in ("100ms", "1s", "10s"):
                status, out, err = self.try_to_run(dialect, wait)
                if err.startswith("quorlock: waiting for"):
                    break
            self.refused(said, status, out, err)
            self.assertRegex(err.splitlines()[0], f'^quorlock: waiting for "{self.key}": "{self.key}" {said[4]}')
        self.assertRegex(self.refused(said, *self.try_to_run(dialect, "0")), said[4])
        self.assertFalse(os.path.exists(self.path("ran")))
        self.assertEqual(self.dumped(), before)

    def broken(self, dialect, said):
        status, out, err = self.quorlock("break", "--dialect", dialect, self.key)
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out.splitlines()[0], f'^"{self.key}" {said[3]}')
        types = said[1] if isinstance(said[1], list) else [said[1]] * 3
        for server, kind, line in zip(SERVERS, types, out.splitlines()[2:]):
            self.assertTrue(line.startswith(str(server)), line)
            self.assertRegex(line, rf"  broken \(a {kind}\)$" if kind else "  broken$")
        self.assertTrue(out.endswith("broken on 3 of 3 nodes\n"), out)
        self.assert_harmless(out)
        self.assertEqual([server.ask("EXISTS", self.key) for server in SERVERS], [0] * 3)

    def test_whatever_stands_there(self):
        for name, value in VALUES.items():
            for dialect in DIALECTS:
                with self.subTest(name, dialect=dialect):
                    said = list(value.said[dialect])
                    if not value.expires:
                        said[3] = said[3].replace(r"\d+ ms left", "no expiry")
                    self.fill(value)
                    self.inspected(dialect, said)
                    self.ran(dialect, said)
                    self.broken(dialect, said)

    def test_the_least_time_until_a_quorum_can_be_free(self):
        for lefts, said in [((50000, 9000, 20000), r"; enough of their leases end in (1\d{4}|20000) ms$"),
                            ((0, 9000, 0), '; too many have no expiry; only its owner or "quorlock break" releases a lock without expiry$')]:
            for number, (server, ms) in enumerate(zip(SERVERS, lefts)):
                server.ask("SET", self.key, f"token {number}")
                if ms:
                    server.ask("PEXPIRE", self.key, ms)
            run = ("run", "-n", "--guard", "off", self.key, "--", "true")
            # Reported if all had answered by the time of the verdict, for which two of them are enough.
            wait_for(lambda: re.search("several owners" + said, self.quorlock(*run)[2], re.MULTILINE))

    def test_a_minority_is_told_as_one(self):
        SERVERS[0].ask("SET", self.key, "someone-else-entirely", "PX", LONG_MS)
        inspect = ("inspect", self.key)
        self.assertIn("is held by nobody: no owner is on 2 of 3 nodes\n", self.quorlock(*inspect)[1])
        self.assertIn("is taken on 1 of 3 nodes by someone-else-entirely, and free on fewer than 3\n",
                      self.quorlock(*inspect, "--policy", "all")[1])
        SERVERS[1].ask("SET", self.key, "another", "PX", LONG_MS)
        self.assertIn("is taken on 2 of 3 nodes, by several owners\n", self.quorlock(*inspect)[1])
        # One owner on a quorum is one, whatever else is there.
        SERVERS[1].ask("SET", self.key, "someone-else-entirely", "PX", LONG_MS)
        SERVERS[2].ask("SADD", self.key, "a")
        out = self.quorlock(*inspect)[1]
        self.assertIn("is held by someone-else-entirely on 2 of 3 nodes, ", out)
        self.assertIn("the key holds a set, not a string", out)

    def test_a_set_with_an_odd_name_is_bootstrapped(self):
        """The guard that was written is the one that is found, whatever bytes its name has."""
        name = ("--set-name", b"b\xfcro\x07")
        # A shorter max lease is written when the longer one is over, and all guards are as they were written.
        for more in [("--max-lease", "1s", "--yes"), ("--max-lease", "500ms", "--reconfigure", "--yes")]:
            status, out, err = self.connected("bootstrap", *name, *more)
            self.assertEqual(status, 0, out + err)
            self.assert_harmless(out + err)

    def test_keys_are_shown_as_harmlessly(self):
        """Each character of Unicode that is a control or is not seen for itself."""
        seen = {*range(0x600, 0x606), 0x6dd, 0x70f, 0x890, 0x891, 0x8e2, 0x110bd, 0x110cd}
        codes = [code for code in range(1, 0x110000)
                 if unicodedata.category(chr(code)) in ("Cc", "Cf", "Zl", "Zp") and code not in seen
                 and not 0x13430 <= code <= 0x1345f]  # hieroglyphs are put together by these
        self.assertGreater(len(codes), 200)
        for at in range(0, len(codes), 200):
            key = "".join(map(chr, codes[at:at + 200]))
            status, out, err = self.quorlock("inspect", key)
            self.assertEqual((status, err), (0, ""))
            self.assert_harmless(out)
            self.assertIn("".join(escaped(char.encode()) for char in key), out)
            status, out, _ = self.quorlock("inspect", "--json", key)
            self.assert_harmless(out)
            self.assertEqual(json.loads(out)["key"], key)


if __name__ == "__main__":
    command_case.main()
