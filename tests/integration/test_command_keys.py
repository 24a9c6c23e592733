#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock with several keys: run, inspect, break: test_command_keys.py PATH_TO_quorlock [TEST...]"""
import json
import os
import signal
import sys

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import SERVERS, Bootstrapped, wait_for

WAIT_TO_GO = ">up; while [ ! -e go ]; do sleep .01; done"


class Keys(Bootstrapped):
    def setUp(self):
        super().setUp()
        self.keys = [self.key + suffix for suffix in ("-b", "-c", "-a")]

    def under(self, keys, script, *options):
        """Starts a shell script under these keys and waits until it has made the file `up`."""
        process = self.start("run", *options, *keys, "--", "sh", "-c", f"cd {self.folder}; {script}")
        self.wait_file("up", process)
        return process

    def go(self):
        with open(self.path("go"), "w", encoding="utf-8"):
            pass

    def all_values(self):
        return [server.ask("GET", key) for server in SERVERS for key in self.keys]

    def assert_all_free(self):
        wait_for(lambda: self.all_values() == [None] * len(SERVERS) * len(self.keys))

    def hold_one(self, key, value, count=2):
        for server in SERVERS[:count]:
            self.assertEqual(server.ask("SET", key, value, "NX", "PX", 30000), b"OK")

    def test_all_are_on_the_nodes_while_the_command_runs(self):
        process = self.under(self.keys, "printf %s $QUORLOCK_OWNER >owner; " + WAIT_TO_GO, "-v")
        owner = self.read("owner").encode()
        wait_for(lambda: self.all_values() == [owner] * 9)
        self.go()
        status, out, err = self.end(process)
        self.assertEqual((status, out), (0, ""), err)
        self.assertIn('quorlock: granted "' + ", ".join(sorted(self.keys)) + '" by ', err)
        self.assertIn('quorlock: released "' + ", ".join(sorted(self.keys)) + '" on ', err)
        self.assert_all_free()

    def test_the_environment_of_the_command(self):
        script = 'printf "%s|%s|%s" "$QUORLOCK_KEY" "$QUORLOCK_KEYS" "${QUORLOCK_FENCE:-none}"'
        status, out, err = self.quorlock("run", *self.keys, "--", "sh", "-c", script)
        self.assertEqual((status, out), (0, "|".join([self.keys[0], "\n".join(self.keys), "none"])), err)
        status, out, err = self.quorlock("run", "--fence", self.keys[2], "with a space", "--", "sh", "-c", script)
        self.assertEqual(status, 0, err)
        self.assertRegex(out, rf"^{self.keys[2]}\|{self.keys[2]}\nwith a space\|[1-9][0-9]+$")
        # One key is a list of one, and the value that an outer quorlock set is replaced.
        status, out, err = self.quorlock("run", self.key, "--", "sh", "-c", script, env={"QUORLOCK_KEYS": "stale"})
        self.assertEqual((status, out), (0, f"{self.key}|{self.key}|none"), err)
        status, out, err = self.quorlock("run", *self.keys, "--", "sh", "-c",
                                         'for key in $QUORLOCK_KEYS; do echo "<$key>"; done')
        self.assertEqual((status, out), (0, "".join(f"<{key}>\n" for key in self.keys)), err)
        self.assert_all_free()

    def test_a_key_with_a_newline_would_be_two_in_the_environment(self):
        for keys in [("a\nb",), (self.keys[0], "a\nb"), (self.keys[0], "--shared", "a\nb"), ("--permits=2", "a\n")]:
            status, out, err = self.quorlock("run", *keys, "--", "echo", "ran")
            self.assertEqual((status, out, err.count("\n")), (64, "", 1), err)
            self.assertIn('has a newline, but QUORLOCK_KEYS has one key a line: give a key', err)
            self.assertIn('the key "a\\x0a', err)
        # An election has one name, and no list of them.
        status, out, err = self.quorlock("elect", "a\nb", "--", "sh", "-c", 'printf %s "$QUORLOCK_KEY"')
        self.assertEqual((status, out), (0, "a\nb"), err)

    def test_the_token_is_above_those_of_every_key(self):
        token = ("--", "printenv", "QUORLOCK_FENCE")
        first = int(self.quorlock("run", "--fence", *self.keys, *token)[1])
        one = int(self.quorlock("run", "--fence", self.keys[1], *token)[1])
        second = int(self.quorlock("run", "--fence", *reversed(self.keys), *token)[1])
        self.assertTrue(first < one < second, (first, one, second))

    def test_all_or_none(self):
        for taken in self.keys:
            self.hold_one(taken, "somebody")
            status, out, err = self.quorlock("run", "-n", "-E", "7", *self.keys, "--", "touch", self.path("ran"))
            self.assertEqual((status, out), (7, ""), err)
            self.assertIn('"' + ", ".join(sorted(self.keys)) + '" is held by somebody on 2 of 3 nodes', err)
            wait_for(lambda: sorted(filter(None, self.all_values())) == [b"somebody"] * 2)
            for server in SERVERS:
                server.ask("DEL", taken)
        self.assertFalse(os.path.exists(self.path("ran")))

    def test_lists_that_share_a_key_exclude_each_other(self):
        process = self.under(self.keys[:2], WAIT_TO_GO)
        for other in [self.keys[1:], list(reversed(self.keys[:2])), self.keys[:1]]:
            self.assertEqual(self.quorlock("run", "-n", *other, "--", "true")[0], 1, other)
        self.assertEqual(self.quorlock("run", "-n", self.keys[2], "--", "true")[0], 0)
        self.go()
        self.assertEqual(self.end(process)[0], 0)
        self.assertEqual(self.quorlock("run", "--wait", "20s", *self.keys[1:], "--", "true")[0], 0)
        self.assert_all_free()

    def test_opposite_orders_take_turns(self):
        script = ('i=0; while [ $i -lt 5 ]; do %s run --wait 60s %s -- '
                  'sh -c "mkdir inside && rmdir inside" || exit 1; i=$((i+1)); done')
        processes = [self.sh(script % (command_case.QUORLOCK, " ".join(keys)))
                     for keys in (self.keys, list(reversed(self.keys)), self.keys[1:])]
        for process in processes:
            status, _, err = self.end(process)
            self.assertEqual(status, 0, err)
        self.assert_all_free()

    def sh(self, script):
        """A shell that runs quorlock; started as quorlock itself is, in this case's folder."""
        return self.start("run", self.key + str(len(command_case.RUNNING)), "--", "sh", "-c",
                          f"cd {self.folder}; {script}")

    def test_one_key_gone_is_the_lock_lost(self):
        process = self.under(self.keys, ">up; sleep 60", "--lease", "3s")
        wait_for(lambda: None not in self.all_values())
        status, out, err = self.quorlock("break", self.keys[1])
        self.assertEqual(status, 0, err)
        self.assertIn("broken on 3 of 3 nodes", out)
        status, _, err = self.end(process)
        self.assertEqual(status, 75, err)
        self.assertIn('"' + ", ".join(sorted(self.keys)) + '"', err)
        self.assert_all_free()

    def test_a_signal_ends_the_wait_and_leaves_nothing(self):
        self.hold_one(self.keys[1], "somebody", count=3)
        process = self.start("run", "-v", *self.keys, "--", "touch", self.path("ran"))
        wait_for(lambda: SERVERS[0].ask("EXISTS", self.keys[1]) == 1)
        process.send_signal(signal.SIGTERM)
        status, _, err = self.end(process)
        # We may have looked before it handled signals itself.
        self.assertIn(status, (128 + signal.SIGTERM, -signal.SIGTERM), err)
        wait_for(lambda: list(filter(None, self.all_values())) == [b"somebody"] * 3)
        self.assertFalse(os.path.exists(self.path("ran")))

    def test_redisson_too(self):
        process = self.under(self.keys, WAIT_TO_GO, "--dialect", "redisson")
        for server in SERVERS[:2]:
            wait_for(lambda server=server: all(server.ask("HLEN", key) == 1 for key in self.keys))
        self.assertEqual(self.quorlock("run", "-n", "--dialect", "redisson", self.keys[2], "--", "true")[0], 1)
        self.go()
        self.assertEqual(self.end(process)[0], 0)
        self.assert_all_free()

    def test_inspect(self):
        self.hold_one(self.keys[1], "somebody")
        status, out, err = self.quorlock("inspect", *self.keys)
        self.assertEqual((status, err), (0, ""))
        parts = out.split("\n\n")
        self.assertEqual(len(parts), 3, out)
        for part, key, said in zip(parts, self.keys, ["is free", "is held by somebody on 2 of 3", "is free"]):
            self.assertTrue(part.startswith(f'"{key}" {said}'), part)
        status, out, err = self.quorlock("inspect", "--json", *self.keys)
        self.assertEqual((status, err), (0, ""))
        reports = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([report["key"] for report in reports], self.keys)
        self.assertEqual([report["held"] for report in reports], [False, True, False])
        status, out, err = self.quorlock("inspect", self.keys[1], "quorlock:guard", self.keys[0])
        self.assertEqual(status, 64, err)
        self.assertIn('"quorlock:guard" begins with', err)
        self.assertIn("is held by somebody", out)

    def test_break(self):
        self.hold_one(self.keys[0], "first")
        self.hold_one(self.keys[2], "last", count=3)
        status, out, err = self.quorlock("break", *self.keys)
        self.assertEqual((status, err), (0, ""))
        looked = [out.index(f'"{key}" is ') for key in self.keys]
        broken = [out.index(f'"{key}" broken on {n} of 3 nodes\n') for key, n in zip(self.keys, (2, 0, 3))]
        self.assertEqual(looked + broken, sorted(looked + broken), out)
        self.assert_all_free()
        # Nothing is broken where one of them is no key.
        self.hold_one(self.keys[0], "first")
        status, out, err = self.quorlock("break", self.keys[0], "quorlock:guard")
        self.assertEqual(status, 64, out)
        self.assertIn("quorlock:", err)
        self.assertEqual(list(filter(None, self.all_values())), [b"first"] * 2)
        status, out, err = self.quorlock("break", "--json", *self.keys)
        self.assertEqual(status, 0, err)
        self.assertEqual([json.loads(line)["key"] for line in out.splitlines()], self.keys)
        self.assertEqual(err.count("about to break: "), 3, err)
        self.assert_all_free()


if __name__ == "__main__":
    command_case.main()
