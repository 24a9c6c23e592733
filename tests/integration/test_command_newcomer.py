#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock: what a newcomer stumbles over: test_command_newcomer.py PATH_TO_quorlock [TEST...]"""
import re
import sys
import time

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import SERVERS, Bootstrapped, Case, wait_for


class Addresses(Case):
    def test_addresses_that_are_written_differently(self):
        """The summary has the reason, once and for all nodes, without the hashes that the guards compare."""
        short = ("--max-lease", "2s")  # also on a busy machine the lock is not lost
        names = ",".join(f"localhost:{server.port}" for server in SERVERS)
        self.bootstrap(*short)
        status, out, err = self.connected("run", "-n", *short, "--nodes", names, self.key, "--", "echo", "ran")
        self.assertEqual((status, out), (78, ""), err)
        said = "clients write the addresses in different ways (as localhost and 127.0.0.1)"
        summary = err[err.index("quorlock: cannot lock "):]
        self.assertEqual(summary.count(said), 1, err)
        self.assertEqual(summary.count("--set-name NAME in all clients"), 1, err)
        self.assertEqual(err.count(said), 2, err)  # a node's line in full, the others' shortened, and the summary
        self.assertNotRegex(err, r"\b[0-9a-f]{16}\b")
        self.assertIn(f"quorlock:   {names.replace(',', ', ')}  no vote: set up differently: ", summary)
        self.assertEqual(len(re.findall(r"(?m)^quorlock: localhost:\d+: down: .* \.\.\.$", err)), len(SERVERS) - 1, err)
        self.assertNotIn("see above", err)
        # What it says helps.
        command = re.search(r"by 'quorlock (bootstrap --reconfigure .*) --set-name NAME' once", err).group(1).split()
        self.assertEqual(self.quorlock(*command, "--set-name", "blue", "--yes")[0], 0)
        for addresses in (names, command_case.nodes()):
            named = ("--nodes", addresses, "--set-name", "blue")
            status, out, err = self.quorlock("run", *short, *named, self.key, "--", "echo", "ran")
            self.assertEqual((status, out), (0, "ran\n"), err)


class Waiting(Bootstrapped):
    def test_the_first_line_of_a_wait_comes_once(self):
        """A third node's answer that comes a moment after those of the quorum is no news."""
        for round_number in range(5):
            self.hold("someone-else-entirely", count=3, ms=400)
            began = time.monotonic()
            status, _, err = self.quorlock("run", self.key, "--", "true")
            self.assertEqual(status, 0, err)
            lines = re.findall(r"waiting for .*", err)
            held = [" is held by someone- on " in line for line in lines]
            # The same reason is repeated every ten seconds.
            if time.monotonic() - began < 8:
                self.assertNotIn((True, True), list(zip(held, held[1:])), (round_number, err))


class Released(Bootstrapped):
    def test_what_is_still_on_its_way_is_no_failure(self):
        process = self.shell("-v", script=">up; while [ ! -e go ]; do sleep .01; done")
        wait_for(lambda: None not in self.values())
        SERVERS[2].freeze()
        open(self.path("go"), "w").close()
        status, _, err = self.end(process)
        SERVERS[2].thaw()
        self.assertEqual(status, 0, err)
        self.assertRegex(err, r'released "\S+" on 2 of 3 nodes; on its way to 1 more\n')
        self.assert_free()
        # A node that is not there gets nothing.
        SERVERS[2].kill()
        _, _, err = self.connected("run", "-v", self.key, "--", "true")
        self.assertRegex(err, r'released "\S+" on (2 of 3 nodes|1 of 3 nodes; on its way to 1 more)\n')


class Words(Bootstrapped):
    """What stands on the command line."""

    def test_keys_that_begin_with_a_dash(self):
        for verb, said in [("inspect", '"-key" is free'), ("break", '"-key" is free')]:
            for words in [("--", "-key"), ("--key", "-key"), ("--key=-key",), ("-v", "--", "-key")]:
                status, out, err = self.connected(verb, *words)
                self.assertEqual(status, 0, err)
                self.assertIn(said, out)
        _, out, _ = self.connected("inspect", "a", "--key", "-b", "c", "--", "-d", "--json", "--")
        self.assertEqual(re.findall(r'(?m)^"(\S+)" is free', out), ["a", "-b", "c", "-d", "--json", "--"])
        for words in [("--key", "-key", "b"), ("--key=-key", "b", "-v")]:
            status, out, _ = self.connected("run", *words, "--", "printenv", "QUORLOCK_KEYS")
            self.assertEqual((status, out), (0, "-key\nb\n"))
        # Who does not know it is told.
        for words in [("run", "-key", "--", "true"), ("run", "--", "-key", "--", "true"), ("inspect", "-key"),
                      ("break", "--key-1")]:
            status, _, err = self.quorlock(*words)
            self.assertEqual(status, 64)
            self.assertIn("for a key that begins with - write --key KEY", err)

    def test_blanks_or_commas_are_between_nodes(self):
        one, two, three = SERVERS
        for text in [f"{one}, {two} ,{three}", f" {one},{two},{three}, ", f"{one} {two} {three}", f"{one} {two},  {three}\n", f"{one},\n\t{two},\n\t{three},\n"]:
            for args, env in [(("--nodes", text), {}), ((), {"QUORLOCK_NODES": text})]:
                status, out, err = self.connected("run", "-n", *args, self.key, "--", "echo", "ran", env=env)
                self.assertEqual((status, out), (0, "ran\n"), (text, err))
        for text, said in [(f"{one},,{two}", "address 2 of 3 is empty"), (",", "address 1 of 1 is empty"),
                           (f"{one},{two},,", "address 3 of 3 is empty"), (f"{one} , , {two}", "address 2 of 3 is empty")]:
            status, _, err = self.quorlock("--nodes", text, "inspect", "k")
            self.assertEqual(status, 64)
            self.assertIn(said, err)

    def test_limits_agree(self):
        """What a message gives as the limit is accepted, and it is no limit that another message takes back."""
        for option, wrong, least, most in [("--node-timeout", "0ms", "1ms", "60s"),
                                           ("--node-timeout", "61s", "1ms", "60s"),
                                           ("--connect-timeout", "0ms", "1ms", "60s"),
                                           ("--lease", "0s", "25ms", "24h"), ("--max-lease", "25h", "10ms", "24h")]:
            status, _, err = self.quorlock("run", option, wrong, "k", "--", "true")
            self.assertEqual(status, 64)
            self.assertIn(f'"{wrong}" is out of range: give {least} to {most}\n', err)
        for timeout in ["1ms", "60s"]:
            status, _, err = self.quorlock("inspect", "--node-timeout", timeout, self.key)
            self.assertIn(status, (0, 69), err)
        # A lease and a node timeout that do not go together: one that does is named.
        status, _, err = self.quorlock("run", "--lease", "1s", "--node-timeout", "1s", "k", "--", "true")
        self.assertEqual(status, 64)
        longest = re.search(r"a node timeout of at most (\d+) ms", err).group(1)
        status, _, err = self.quorlock("run", "-n", "--lease", "1s", "--node-timeout", longest + "ms", self.key, "--",
                                       "true")
        self.assertIn(status, (0, 69, 75), err)

    def test_messages_use_the_words_of_the_command(self):
        """No name of a field of the C interface: the command has options."""
        many = ",".join(f"127.0.0.1:{port}" for port in range(1, 33))
        run = ("k", "--", "true")
        for args in [("--lease", "1s", "--node-timeout", "1s", *run), ("--lease", "40s", *run), ("--nodes", many, *run),
                     ("--label", "a b", *run), ("--label", "x" * 65, *run), ("--set-name", "a|b", *run),
                     ("--max-lease", "1s", *run), ("--max-lease", "1s", "--lease", "2s", *run),
                     ([f"k{n}" for n in range(65)] + ["--", "true"]), ("", "--", "true"), ("quorlock:x", "--", "true"),
                     ("--set-name", "other", *run)]:
            status, _, err = self.quorlock("run", "-n", *args)
            self.assertIn(status, (64, 78), err)
            self.assertNotRegex(err, r"\b[a-z]+_[a-z_]+\b")

    def test_a_label_stands_apart_from_the_token(self):
        for label, front in [("my", "my:"), ("my:", "my:"), ("x" * 64, "x" * 64 + ":"), ("a/b", "a/b:")]:
            status, out, err = self.connected("run", "-v", "--label", label, self.key, "--", "printenv",
                                              "QUORLOCK_OWNER")
            self.assertEqual(status, 0, err)
            self.assertRegex(out, rf"^{front}[0-9a-f]{{40}}\n$")
            self.assertRegex(err, rf"owner {front}[0-9a-f]{{8}}\n")


if __name__ == "__main__":
    command_case.main()
