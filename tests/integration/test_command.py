#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock: usage, locks of others, failing nodes, inspect, break: test_command.py PATH_TO_quorlock [TEST...]"""
import contextlib
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import SERVERS, Bootstrapped, die_with_us, listen, wait_for

MANUAL = pathlib.Path(__file__).resolve().parents[2] / "src" / "man" / "quorlock.1"


class Usage(Bootstrapped):
    def test_help_and_manual_list_every_option(self):
        manual = MANUAL.read_text(encoding="utf-8").replace("\\-", "-")
        _, out, _ = self.quorlock("--help")
        verbs = re.findall(r"(?m)^  ([a-z]+) ", out.split("Options:")[0])
        self.assertGreaterEqual(len(verbs), 10)
        listed = re.search("no verb: give (.*); see", self.quorlock()[2])[1]
        self.assertEqual(sorted(re.split(", | or ", listed)), sorted(verbs))
        for verb in [(), *((name,) for name in verbs)]:
            for name in verb:
                self.assertRegex(manual, rf"(?m)^\.TP\n\.B {name}\n", f"the verb {name} is not explained in the manual")
                self.assertRegex(manual.split(".SH DESCRIPTION")[0], rf"(?m)^\.B {name}\n",
                                 f"the verb {name} is not in the manual's synopsis")
            status, out, err = self.quorlock(*verb, "--help")
            self.assertEqual((status, err), (0, ""), verb)
            self.assertIn("usage: quorlock", out)
            found = re.findall(r"^  (-[-\w]+)(?:, (--[-\w]+))?", out, re.M)
            self.assertGreaterEqual(len(found), 2)
            for names in found:
                for name in filter(None, names):
                    self.assertRegex(manual, rf"{name}(?![-\w])", f"{name} of {verb} is not in the manual")
            for line in out.splitlines():
                self.assertLessEqual(len(line), 110)
            # Of an option that differs by verb, what is true of this one.
            self.assertEqual("--reconfigure" in out, verb == ("bootstrap",), verb)
            self.assertEqual("that of the guards" in out, verb == ("doctor",), verb)
        status, out, err = self.quorlock("--version")
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"^quorlock \d+\.\d+\.\d+\n$")

    def verbs_of_options(self):
        """As --help of each verb lists them: {option: verbs}. config, which has the options of all others, is left out."""
        verbs = re.findall(r"(?m)^  ([a-z]+) ", self.quorlock("--help")[1].split("Options:")[0])
        verbs.remove("config")
        found = {}
        for verb in verbs:
            for names in re.findall(r"(?m)^  (-\w)?(?:, )?(--[-\w]+)?", self.quorlock(verb, "--help")[1].split("\nOptions:")[1]):
                for name in filter(None, names):
                    found.setdefault(name, set()).add(verb)
        return set(verbs), found

    @staticmethod
    def verbs_in(text, verbs):
        """Of the words behind "Verbs:"."""
        named = set(re.findall(r"[a-z]+", text)) & verbs
        return verbs - named if text.strip().startswith("all") else named

    def test_the_manual_names_the_verbs_of_each_option(self):
        """Behind "Verbs:"; or those of the section's head."""
        verbs, expected = self.verbs_of_options()
        page = MANUAL.read_text(encoding="utf-8").replace("\\-", "-")
        page = re.split(r"(?m)^\.SH OPTIONS\n", page)[1].split("\n.SH ")[0]
        listed = {}
        for section in re.split(r"(?m)^\.SS ", page):
            for entry in re.split(r"(?m)^\.TP\n(?=\.B[IR]* -)", section)[1:]:
                head, body = entry.split("\n", 1)
                text = re.sub(r"(?m)^\.\w+ ", "", body).replace('"', "").replace("\n", " ")
                if "Verbs:" in text:
                    named = self.verbs_in(text.split("Verbs:")[1].split(".")[0], verbs)
                else:
                    named = self.verbs_in(section.split("\n")[0], verbs)
                for name in re.findall(r"(?<![-\w])--?[a-zA-Z][-a-z]*", head):
                    listed.setdefault(name, set()).update(named)
        self.assertGreater(len(listed), 40)
        for name in listed.keys() - {"-h", "--help", "-V", "--version"}:
            self.assertEqual(listed[name], expected[name], name)

    def test_usage_errors_name_value_and_remedy(self):
        run = ("run", "k", "--", "touch", self.path("ran"))
        for args, said in [
                ((), "no verb"), (("fly",), '"fly" is no verb: give run'), (("--fly",), "--fly: no such option"),
                (("--", "run"), "no verb"), (("--nodes",), "--nodes needs a value: --nodes URI"),
                (("--nodes", "", *run), "address 1 of 1 is empty"), (("--nodes", "a,,b", *run), "address 2 of 3 is empty"),
                (("--lease", "3", *run), '--lease: "3" has no unit'), (("--json", *run), "--json does not belong to this verb"),
                (("--lease",), "--lease needs a value"), (("--lease", "3s"), "no verb"),
                (("run",), "no key"), (("run", "--", "true"), "no key"), (("run", "k"), "write -- before it"),
                (("run", "k", "true"), "write -- before it"), (("run", "k", "--"), "no command"),
                (("run", "--json", *run[1:]), "--json does not belong to this verb"),
                (("run", "--lease", *run[2:]), "--lease needs a value"),
                (("run", "--lease", "30", *run[1:]), '"30" has no unit: write 250ms, 30s or 2m'),
                (("run", "--lease", "", *run[1:]), '"" is no duration'),
                (("run", "--lease", "1.5s", *run[1:]), '"1.5s" is no duration'),
                (("run", "--lease=-1s", *run[1:]), '"-1s" is no duration'),
                (("run", "--lease", "5d", *run[1:]), '"5d" is no duration'),
                (("run", "--lease", "0s", *run[1:]), '"0s" is out of range: give 25ms'),
                # Too short to renew it, and to end a command in time.
                (("run", "--lease", "24ms", *run[1:]), '"24ms" is out of range: give 25ms to 24h'),
                (("elect", "--lease", "24ms", *run[1:]), '"24ms" is out of range: give 25ms to 24h'),
                (("run", "--max-lease", "24ms", *run[1:]), "--max-lease (QUORLOCK_MAX_LEASE) of 24 ms is too short"),
                (("elect", "--max-lease", "10ms", *run[1:]), "--max-lease (QUORLOCK_MAX_LEASE) of 10 ms is too short"),
                (("run", "--lease", "25h", *run[1:]), '"25h" is out of range'),
                (("run", "--lease", "18446744073709551617ms", *run[1:]), "is too long"),
                (("run", "--lease", "300ms", "--node-timeout", "200ms", *run[1:]), "Choose a longer lease"),
                (("run", "--lease", "40s", "--guard", "off", *run[1:]), "--max-lease"),
                (("run", "--lease", "40s", "--max-lease", "35s", *run[1:]), "--lease of 40000 ms is longer"),
                (("run", "--node-timeout", "20s", *run[1:]), "timeout"),
                (("run", "--max-hold", "24ms", *run[1:]), '"24ms" is out of range: give 25ms to 1000h'),
                (("run", "--max-hold", "29s", *run[1:]), "--max-hold of 29000 ms is shorter than the lease of 30000 ms"),
                (("run", "--max-hold", "1s", "--lease", "2s", *run[1:]), "give a longer one, or a shorter --lease"),
                (("elect", "--max-hold", "40s", *run[1:]), "--max-hold does not belong to this verb"),
                (("run", "--wait", "5", *run[1:]), '"5" has no unit'),
                (("run", "--wait", "never", *run[1:]), '"never" is no duration'),
                (("run", "--wait", "50d", *run[1:]), '"50d" is no duration'),
                (("run", "--wait", "1200h", *run[1:]), '"1200h" is too long'),
                (("run", "-E", "256", *run[1:]), '"256" is no exit status: give a number from 0 to 255'),
                (("run", "-E-1", *run[1:]), '"-1" is no exit status'),
                (("run", "-ny", *run[1:]), "-y: no such option"),
                (("run", "--node", "x", *run[1:]), "--node is ambiguous: write --nodes or --node-timeout"),
                (("run", "--leas", "30", *run[1:]), '--lease: "30" has no unit'),
                (("bootstrap", "--reconfigure=yes"), "--reconfigure takes no value"),
                (("run", "--fence=on", *run[1:]), '"on" is unknown: give yes or no'),
                (("run", "--policy", "most", *run[1:]), '"most" is unknown: give majority or all'),
                (("run", "--dialect", "x", *run[1:]), '"x" is unknown: give plain or redisson'),
                (("run", "--guard", "x", *run[1:]), '"x" is unknown: give connection, strict or off'),
                (("run", "--label", "a b", *run[1:]), "label"),
                (("run", "--label", "x" * 65, *run[1:]), "label"),
                (("run", "", *run[2:]), "key"), (("run", "x" * 1025, *run[2:]), "key"),
                (("run", "quorlock:x", *run[2:]), "quorlock:"),
                (("inspect",), "takes keys"),
                (("inspect", "--"), "takes keys"), (("inspect", "--fence", "a"), "does not belong"),
                (("inspect", ""), "key"), (("break",), "takes keys"),
                (("break", ""), "key"), (("bootstrap", "k"), "takes no key"), (("bootstrap", "--", "k"), "takes no key"),
                (("bootstrap", "--lease", "3s"), "does not belong"), (("bootstrap", "--guard", "off"), "does not belong"),
                (("bootstrap", "--max-lease", "9ms"), '"9ms" is out of range'),
                (("bootstrap", "--set-name", "a|b"), '"a|b": 1 to 64 characters'),
                (("run", "--set-name", "", *run[1:]), "1 to 64 characters"),
                (("run", "--reconfigure", *run[1:]), "does not belong"),
                (("bench", "k"), "takes no key"), (("bench", "--wait", "1s"), "--wait does not belong"),
                (("bench", "--seconds", "0"), '"0" is no number of seconds: give a number from 1 to 3600'),
                (("bench", "--seconds", "5s"), '"5s" is no number of seconds'),
                (("bench", "--in-flight", "100001"), '"100001" is no number of locks: give a number from 1 to 100000'),
                (("bench", "--in-flight", ""), '"" is no number of locks'),
                (("bench", "--lease", "40s", "--guard", "off"), "10 to 30000"),
                (("run", "--seconds", "3", *run[1:]), "--seconds does not belong"),
                # Of several entries of one name each is named once.
                (("run", "--m", "3s", *run[1:]), "--m is ambiguous: write --max-lease or --max-hold or --metrics-file\n"),
                (("inspect", "--max-l", "3s", "k"), "--max-lease does not belong"),
                (("inspect", "--wai", "k"), "--wait does not belong")]:
            status, out, err = self.quorlock(*args)
            self.assertEqual((status, out), (64, ""), (args, err))
            self.assertIn(said, err, args)
            self.assertTrue(all(line.startswith("quorlock: ") for line in err.splitlines()), err)
        self.assertFalse(os.path.exists(self.path("ran")))

    def test_the_grace_leaves_the_longest_node_timeout_its_room(self):
        """As the library counts it: a third of the lease, two node timeouts, 1 % and 2 ms for drift, 10 ms at the end."""
        for timeout_ms, expected in [(59, 69), (60, 69), (75, 69), (92, 69), (93, 64)]:
            status, _, err = self.quorlock("--nodes=127.0.0.1:1", "run", "-n", "--lease=300ms",
                                           f"--node-timeout={timeout_ms}ms", "k", "--", "true")
            self.assertEqual(status, expected, (timeout_ms, err))

    def test_times_may_be_as_long_as_each_other(self):
        """A usage error comes before any node is asked."""
        for options in [("--lease=30s", "--max-lease=30s"), ("--max-hold=1s", "--lease=1s"), ("--keep=1s", "--lease=1s"),
                        ("--keep=30s",), ("--keep=40s", "--max-lease=40s"), ("--max-lease=25ms",)]:
            status, _, err = self.quorlock("--nodes=127.0.0.1:1", "run", "-n", *options, "k", "--", "true")
            self.assertEqual(status, 69, (options, err))

    def test_options_may_be_abbreviated_joined_and_after_the_keys(self):
        self.hold("someone-else-entirely", count=3)
        for args in [("-nvE9", self.key), (self.key, "-vnE", "9"), ("--wai=0", self.key, "--verb", "-E9")]:
            for env in [{}, {"POSIXLY_CORRECT": "1"}]:
                status, _, err = self.quorlock("run", *args, "--", "sh", "-c", "exit 5", env=env)
                self.assertEqual(status, 9, err)
        # What follows -- is the command, whatever it looks like.
        status, out, err = self.quorlock("run", self.key + "-free", "--", "printf", "%s|", "-n", "--", "--lease")
        self.assertEqual((status, out), (0, "-n|--|--lease|"), err)

    def test_options_may_stand_before_the_verb(self):
        out = self.quorlock("-v", "--node-timeout", "9s", "--connect-timeout=10s", "config", "-v")[1]
        self.assertRegex(out, r"(?m)^node-timeout +9s +.*--node-timeout$")
        self.assertRegex(out, r"(?m)^connect-timeout +10s +.*--connect-timeout$")
        for words in [("-v", "run"), ("--verbose", "run"), ("run", "-v")]:
            status, _, err = self.connected(*words, self.key, "--", "true")
            self.assertEqual(status, 0)
            self.assertIn("granted", err, words)
        # Those of some verbs, too; what follows the verb goes on behind them.
        status, out, err = self.connected("--prefix", "app:", "--fence", "-nE", "7", "--shared", self.key, "run", "--lease=3s", "--",
                                          "sh", "-c", 'echo "$QUORLOCK_KEYS"; "$0" --prefix app: --json ls', command_case.QUORLOCK)
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(out.splitlines()[0], self.key)
        self.assertEqual(json.loads(out.splitlines()[1])["key"], self.key)
        self.assertEqual(json.loads(out.splitlines()[1])["mode"], "shared")
        self.assertIn("usage: quorlock", self.quorlock("--prefix", "app:", "--help", "ls")[1])

    def test_a_bad_environment_is_named_too(self):
        for name, value, said in [("QUORLOCK_MAX_LEASE", "30", '"30" has no unit'),
                                  ("QUORLOCK_NODES", "a:1,,b:2", "address 2 of 3 is empty")]:
            status, _, err = self.quorlock("run", "k", "--", "true", env={name: value})
            self.assertEqual(status, 64)
            self.assertIn(name + ": ", err)
            self.assertIn(said, err)

    def test_bad_nodes(self):
        many = ",".join(f"127.0.0.1:{port}" for port in range(1, 33))
        for value, said in [("ftp://x", '"ftp://": unknown scheme'), ("127.0.0.1:0", '"127.0.0.1": the port'),
                            (f"{SERVERS[0]},{SERVERS[0]}", "same server"), (many, "31")]:
            for verb in [("run", "k", "--", "true"), ("inspect", "k"), ("break", "k"), ("bootstrap",)]:
                status, out, err = self.quorlock("--nodes", value, *verb)
                self.assertEqual((status, out), (64, ""), err)
                self.assertIn(said, err)

    def test_a_list_of_keys_that_cannot_be_locked_is_refused(self):
        for keys, said in [(("a", "b", "a"), 'keys 1 and 3 are the same, "a"'), (("a", "quorlock:b"), "quorlock:b"),
                           (("a", ""), "empty"), ([f"k{number}" for number in range(65)], "at most 64 keys")]:
            status, _, err = self.quorlock("run", *keys, "--", "touch", self.path("ran"))
            self.assertEqual(status, 64, err)
            self.assertIn(said, err)
        self.assertFalse(os.path.exists(self.path("ran")))

    def test_passwords_stay_secret(self):
        # Nodes that accept the connection and never answer, so that it still runs when we look.
        with listen() as one, listen() as two:
            silent = ["127.0.0.1:%d" % listener.getsockname()[1] for listener in (one, two)]
            secret = ",".join(f"redis://user:geheim@{node}" for node in silent)
            for form in [("--nodes", secret), ("--nodes=" + secret,)]:
                process = self.start("run", "-v", *form, self.key, "--", "true")
                command_line = pathlib.Path(f"/proc/{process.pid}/cmdline")
                wait_for(lambda: b"run" in command_line.read_bytes() and b"geheim" not in command_line.read_bytes())
                self.assertIn(silent[1].encode(), command_line.read_bytes())
                process.send_signal(signal.SIGTERM)
                status, out, err = self.end(process)
                # We may have looked before it handled signals itself.
                self.assertIn(status, (128 + signal.SIGTERM, -signal.SIGTERM))
                self.assertNotIn("geheim", out + err)
        for args in [("--nodez=redis://u:geheim@h",), ("redis://u:geheim@h",), ("--nodez=redis://u:geheim",),
                     ("redis://u:geheim", "run"), ("u:geheim@h1,redis://h2", "run"), ("u:geheim", "inspect", "k"),
                     ("-Nredis://u:geheim", "inspect", "k"), ("inspect", "k", "--json=redis://:geheim"),
                     ("run", "--lease", "redis://:geheim", "k", "--", "true"),
                     ("run", "--wait=u:geheim@h", "k", "--", "true"),
                     ("run", "redis://u:geheim@h", "k", "--", "true"), ("--nod=u:geheim@h", "run"), ("inspect", "redis://u:geheim"),
                     ("break", "k", "unix://:geheim@/run/x"),
                     ("--nodes", "a,,u:geheim@h", "inspect", "k"),
                     ("--nodes", "redis://:geh,eim@h,,x", "inspect", "k"),
                     ("--nodes", "ftp://u:geheim@h", "inspect", "k"),
                     ("--nodes", "redis://:geheim@127.0.0.1:0", "inspect", "k"),
                     ("inspect", "k", "--json=redis://:geheim@h"),
                     ("run", "--lease", "redis://:geheim@h", "k", "--", "true")]:
            status, out, err = self.quorlock(*args)
            self.assertEqual(status, 64, err)
            self.assertNotRegex(out + err, "geh|eim", args)

    def test_a_wrong_address_shows_no_password(self):
        wrong = [("redis://app:geheim", "node 1: address \"redis://app\": the port"),
                 ("redis://:geheim", "node 1: address \"redis://\": there is no host"),
                 ("redis://app:ge,heim@h1,redis://h2", "address 2 of 3 has an @"),
                 ("redis://app:12,geheim,34@h1", "address 3 of 3 has an @"),
                 ("redis://app:geheim@h1,redis://app:geheim", "node 2: address \"redis://app\": the port"),
                 ("app:geheim@h1;redis://h2", "address 1 of 1 has an @"),
                 ("redis://h1, redis://app:ge heim@h2", "address 3 of 3 has an @"),
                 ("redis://app:ge heim@h1", "address 2 of 2 has an @"),
                 ("redis://app:a geh eim@h1", "address 3 of 3 has an @"),
                 ("redis://app:geheim@h1;redis://app:geheim@h2", "address 1 of 1 has :// twice"),
                 ("redis://app:geheim,,", "address 2 of 2 is empty"), (",redis://app:geheim", "address 1 of 2 is empty"),
                 ("redis://app:geheim,,h", "address 2 of 3 is empty"),
                 ("redis://app:gehe%im@h1", "node 1: address \"redis://h1\": in the password, %"),
                 ("redis://app:geh/eim@h1", "node 1: address \"redis://h1\": write a /"),
                 ("http://app:geheim@h1", "node 1: address \"http://\": unknown scheme"),
                 ("rediss://app:geheim@h1:x", "node 1: address \"rediss://h1\": the port"),
                 ("unix://app:geheim", "node 1: address \"unix://\": the path")]
        for nodes_given, said in wrong:
            for verb in [("run", "-v", "-v", self.key, "--", "true"), ("inspect", "--json", self.key), ("break", self.key),
                         ("bootstrap", "--json"), ("doctor",), ("doctor", "--json")]:
                for args, env in [(verb, {"QUORLOCK_NODES": nodes_given}), (("--nodes", nodes_given, *verb), {}),
                                  ((verb[0], "--nodes=" + nodes_given, *verb[1:]), {})]:
                    status, out, err = self.quorlock(*args, env=env)
                    self.assertEqual((status, out), (64, ""), (args, env, err))
                    self.assertIn(said, err, (args, env))
                    self.assertNotRegex(err, "ge?h|eim", (args, env))

    def test_a_user_without_password_may_be_the_password(self):
        listed = ",".join(f"redis://geheim@{server}" for server in SERVERS)
        for verb, expected in [(("run", "-n", "-v", "-v", self.key, "--", "true"), 78), (("inspect", self.key), 78),
                               (("break", self.key), 78), (("bootstrap",), 78), (("doctor",), 2)]:
            status, out, err = self.quorlock(*verb, env={"QUORLOCK_NODES": listed})
            self.assertEqual(status, expected, out + err)
            self.assertIn("WRONGPASS", out + err)
            self.assertNotIn("geheim", out + err)
        # Nothing but the status. One node that refuses us leaves a quorum.
        self.assertEqual(self.quorlock("inspect", "--quiet", self.key, env={"QUORLOCK_NODES": listed})[0], 78)
        one = listed.split(",")[0] + "," + ",".join(str(server) for server in SERVERS[1:])
        self.assertEqual(self.quorlock("inspect", self.key, env={"QUORLOCK_NODES": one})[0], 0)


class Descriptors(Bootstrapped):
    def test_without_descriptors_it_says_so(self):
        """Not with status 1, which means that somebody else holds the lock."""
        for limit in [*range(3, 21), 64]:
            def few():
                die_with_us()
                resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
            for args in [("run", "-n", self.key, "--", "true"), ("inspect", self.key), ("bootstrap",)]:
                status, out, err = self.connected(*args, preexec=few)
                if limit == 3 and status == 127:
                    continue  # the loader finds no library
                # The nodes have their guards, which is the 1 of bootstrap.
                self.assertIn(status, (0, 69, 71, *([1] if "guarded" in out else [])), (limit, args, err))
                if status in (69, 71):
                    self.assertRegex(out + err, "descriptor|Too many open files", (limit, args))
                if limit < 7:
                    self.assertEqual((status, out), (71, ""), (limit, args))
                    self.assertTrue(err.startswith("quorlock: "), err)
            self.assert_free()
        self.assertEqual(self.quorlock("run", self.key, "--", "sh", "-c", "exit 7", preexec=few)[0], 7)


    def test_a_standard_descriptor_that_is_closed_becomes_no_socket(self):
        """Else messages would go to a server."""
        def close_all():
            die_with_us()
            for number in range(3):
                os.close(number)
        process = self.shell(script=">up; while [ ! -e go ]; do sleep .01; done", preexec=close_all)
        found = [os.readlink(f"/proc/{process.pid}/fd/{number}") for number in range(3)]
        self.assertEqual(found, ["/dev/null"] * 3)
        open(self.path("go"), "w").close()
        self.assertEqual(self.end(process)[0], 0)


class Held(Bootstrapped):
    def test_held_by_another_client(self):
        self.hold("someone-else-entirely")
        for options, expected in [(("-n",), 1), (("--wait", "0"), 1), (("-n", "-E", "42"), 42), (("-n", "-E0"), 0),
                                  (("--wait", "300ms", "-E9"), 9)]:
            status, out, err = self.quorlock("run", "--node-timeout", "5s", *options, self.key, "--", "touch",
                                             self.path("ran"))
            self.assertEqual((status, out), (expected, ""), err)
            # A waiter may have asked one node only at the end.
            named = "[12]" if "300ms" in options else "2"
            self.assertRegex(err, rf'"{self.key}" is held by someone- on {named} of 3 nodes, 2\d{{4}} ms left')
            self.assertNotIn("someone-e", err)
            wait_for(lambda: self.values() == [b"someone-else-entirely"] * 2 + [None])
        self.assertFalse(os.path.exists(self.path("ran")))

    def test_a_holder_that_is_our_own_parent(self):
        inner = f'{command_case.QUORLOCK} run --wait 400ms {self.key} -- true'
        status, _, err = self.quorlock("run", self.key, "--", "sh", "-c", inner)
        self.assertEqual(status, 1, err)
        said = [line for line in err.splitlines() if "that is the quorlock around this command (QUORLOCK_OWNER)" in line]
        self.assertEqual([line.startswith("quorlock: waiting for ") for line in said], [True, False], err)
        self.hold("someone-else-entirely")
        status, _, err = self.quorlock("run", "-n", self.key, "--", "true", env={"QUORLOCK_OWNER": "someone-else:1"})
        self.assertEqual(status, 1, err)
        self.assertNotIn("around", err)

    def test_a_reader_that_is_our_own_parent(self):
        """An exclusive lock inside of a shared one waits for its own parent, which the nodes do not name."""
        other = self.key + "2"
        for options in [("-n",), ("--wait", "400ms")]:
            inner = [command_case.QUORLOCK, "run", *options, other, self.key, "--", "true"]
            status, _, err = self.quorlock("run", "before", "--shared", self.key, "--", *inner)
            self.assertEqual(status, 1, err)
            hinted = [line for line in err.splitlines() if "the quorlock around this command (QUORLOCK_OWNER)" in line]
            self.assertEqual(len(hinted), len(options), err)
            self.assertTrue(all("held by readers" in line for line in hinted), err)
        inner = [command_case.QUORLOCK, "run", "-n", self.key, "--", "true"]
        env = {"QUORLOCK_OWNER": "a:1", "QUORLOCK_KEYS": f"{self.key}3\n{other}"}
        status, _, err = self.quorlock("run", "--shared", self.key, "--", "env", *(f"{k}={v}" for k, v in env.items()), *inner)
        self.assertEqual(status, 1, err)
        self.assertNotIn("around", err)

    def test_quiet(self):
        self.assertEqual(self.quorlock("inspect", "-q", self.key), (1, "", ""))
        self.hold("someone-else-entirely")
        other = self.key + "-free"
        for words, expected in [(("run", "-n", "-q", self.key, "--", "true"), 1),
                                (("run", "--wait", "300ms", "--quiet", "-E9", self.key, "--", "true"), 9),
                                (("inspect", "-q", self.key), 0), (("inspect", "--quiet", "--json", self.key), 0),
                                (("inspect", "-q", self.key, other), 1), (("inspect", "-q", other, self.key), 1)]:
            self.assertEqual(self.quorlock(*words), (expected, "", ""), words)
        SERVERS[0].kill()
        SERVERS[1].kill()
        status, out, _ = self.quorlock("inspect", "-q", self.key, other)
        self.assertEqual((status, out), (69, ""))
        status, _, err = self.quorlock("run", "-n", "-q", self.key, "--", "true")
        self.assertEqual(status, 69)
        self.assertIn("cannot lock", err)  # an outage is no refusal

    def test_the_time_left_is_that_of_the_quorum(self):
        for server, ms in zip(SERVERS, [30000, 9000, 20000]):
            server.ask("SET", self.key, "someone-else-entirely", "PX", ms)
        status, _, err = self.quorlock("run", "-n", "--policy", "majority", self.key, "--", "true")
        self.assertEqual(status, 1)
        # Any two or three nodes may have answered by then; it is never 30 s.
        self.assertRegex(err, r"on [23] of 3 nodes, (1\d{4}|20000|[89]\d{3}) ms left")

    def test_a_binary_holder_does_not_reach_the_terminal(self):
        self.hold(b"\x1b[31m\xff\xe2\x82\xac01234567", count=3)
        status, _, err = self.quorlock("run", "-n", self.key, "--", "true")
        self.assertEqual(status, 1)
        self.assertIn("held by \\x1b[31m\\xff", err)
        status, out, _ = self.quorlock("inspect", self.key)
        self.assertEqual(status, 0)
        self.assertIn("\\x1b[31m\\xff€01234567", out)
        self.assertNotIn("\x1b", out + err)
        status, out, _ = self.quorlock("inspect", "--json", self.key)
        self.assertEqual(json.loads(out)["holder"], r"\x1b[31m\xff€01234567")

    def test_no_expiry_is_reported(self):
        for server in SERVERS:
            server.ask("SET", self.key, "forgotten")
        status, _, err = self.quorlock("run", "-n", self.key, "--", "true")
        self.assertEqual(status, 1)
        self.assertIn("no expiry", err)
        self.assertIn("quorlock break", err)

    def test_a_waiter_says_so_and_gets_the_lock(self):
        self.hold("someone-else-entirely", count=3, ms=2500)
        status, out, err = self.quorlock("run", self.key, "--", "echo", "ran")
        self.assertEqual((status, out), (0, "ran\n"))
        self.assertIn(f'quorlock: waiting for "{self.key}"', err)
        self.assertIn("someone-", err)
        self.assertNotIn("someone-e", err)

    def test_a_signal_ends_the_wait(self):
        self.hold("someone-else-entirely")
        for number in [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1]:
            process = self.start("run", self.key, "--", "touch", self.path("ran"))
            self.await_words(process, b"waiting for")
            process.send_signal(number)
            self.assertEqual(self.end(process)[0], 128 + number)
            wait_for(lambda: self.values() == [b"someone-else-entirely"] * 2 + [None])
        self.assertFalse(os.path.exists(self.path("ran")))

    def test_a_signal_that_is_ignored_on_entry_stays_ignored(self):
        def nohup():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.hold("someone-else-entirely")
        process = self.start("run", self.key, "--", "sh", "-c", f"cd {self.folder}; >up; while [ ! -e go ]; do "
                             "sleep .01; done; exit 5", preexec=nohup)
        self.await_words(process, b"waiting for")
        process.send_signal(signal.SIGHUP)
        for server in SERVERS[:2]:
            server.ask("DEL", self.key)
        self.wait_file("up", process)
        process.send_signal(signal.SIGHUP)
        open(self.path("go"), "w").close()
        self.assertEqual(self.end(process)[0], 5)


class Nodes(Bootstrapped):
    def test_a_command_that_ends_amid_lookups_leaves_nothing(self):
        """A sanitizer tells what is left of them, and makes the status its own."""
        names = ",".join(f"host{number}.invalid:6379" for number in range(15))
        for ms in range(10, 210, 20):
            status, _, err = self.quorlock("run", "-n", "--connect-timeout", f"{ms}ms", "--nodes", names, self.key, "--",
                                           "true")
            self.assertEqual(status, 69, err)

    def test_a_frozen_node_is_not_waited_for(self):
        SERVERS[2].freeze()
        start = time.monotonic()
        status, _, err = self.quorlock("run", "--node-timeout", "7s", self.key, "--", "true")
        self.assertEqual(status, 0, err)
        self.hold("someone-else-entirely")
        self.assertEqual(self.quorlock("run", "-n", "--node-timeout", "7s", self.key, "--", "true")[0], 1)
        SERVERS[2].thaw()
        for server in SERVERS:
            server.ask("DEL", self.key)
        # And one that freezes while it has our key: it releases the key after the command has ended.
        status, _, err = self.quorlock("run", "--node-timeout", "7s", self.key, "--",
                                       "sh", "-c", f"kill -STOP {SERVERS[2].process.pid}")
        self.assertEqual(status, 0, err)
        self.assertLess(time.monotonic() - start, 6, "it waited for the frozen node")
        SERVERS[2].thaw()
        self.assert_free()
        self.hold("someone-else-entirely")
        wait_for(lambda: self.values() == [b"someone-else-entirely"] * 2 + [None])

    def test_a_dead_node_does_not_stop_the_lock(self):
        SERVERS[0].kill()
        self.assertEqual(self.quorlock("run", self.key, "--", "sh", "-c", "exit 4")[0], 4)
        status, _, err = self.quorlock("run", "-n", "--policy", "all", self.key, "--", "true")
        self.assertEqual(status, 69, err)
        self.assertIn("; 2 of 3 nodes voted, 3 are needed\n", err)
        self.assertIn(str(SERVERS[0]), err)
        wait_for(lambda: [server.ask("GET", self.key) for server in SERVERS[1:]] == [None, None])

    def test_no_quorum(self):
        SERVERS[0].kill()
        SERVERS[1].freeze()
        soon = ("--connect-timeout", "300ms", "--node-timeout", "300ms")
        for options in [("-n",), ("--wait", "700ms"), ("-n", "-E", "42")]:
            status, out, err = self.quorlock("run", "--lease", "2s", *soon[:2], *options, self.key, "--",
                                             "touch", self.path("ran"))
            self.assertEqual((status, out), (69, ""), err)
            waits = f'waiting for "{self.key}": too few nodes can vote on "{self.key}": ' in err
            self.assertEqual(waits, "--wait" in options, err)
            for server in SERVERS:
                self.assertRegex(err, rf"quorlock:   {server}  \w+")
        for verb in ["inspect", "break"]:
            status, out, err = self.quorlock(verb, *soon, self.key)
            self.assertEqual(status, 69, err)
            for server in SERVERS:
                self.assertIn(str(server), out)
        status, out, _ = self.quorlock("inspect", "--json", *soon, self.key)
        self.assertEqual((status, len(json.loads(out)["nodes"])), (69, 3))
        self.assertFalse(os.path.exists(self.path("ran")))
        SERVERS[1].thaw()
        wait_for(lambda: [server.ask("GET", self.key) for server in SERVERS[1:]] == [None, None])

    def test_no_quorum_then_the_nodes_come_back(self):
        SERVERS[0].kill()
        SERVERS[1].kill()
        # It comes back empty; another test shows what the guard does then.
        process = self.start("run", "--guard", "off", self.key, "--", "echo", "ran")
        self.await_words(process, b"waiting for")
        SERVERS[0].start()
        self.assertEqual(self.end(process)[:2], (0, "ran\n"))

    def test_a_key_of_another_type(self):
        for server in SERVERS:
            server.ask("HSET", self.key, "uuid:1", "1")
        status, _, err = self.quorlock("run", "-n", self.key, "--", "true")
        self.assertEqual(status, 78, err)
        status, out, _ = self.quorlock("inspect", "--json", self.key)
        report = json.loads(out)
        self.assertEqual((status, report["held"]), (0, False), report)
        self.assertEqual([node["state"] for node in report["nodes"]], ["foreign"] * 3)

    def test_a_server_that_is_no_redis(self):
        def serve(listener):
            with contextlib.suppress(OSError):
                while True:
                    with listener.accept()[0] as connection:
                        connection.recv(65536)
                        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        with listen() as listener:
            threading.Thread(target=serve, args=(listener,), daemon=True).start()
            status, _, err = self.quorlock("--nodes", "127.0.0.1:%d" % listener.getsockname()[1], "run", "-n", self.key, "--",
                                           "true")
            self.assertEqual(status, 78, err)

    def test_no_redis_and_a_wrong_password(self):
        with listen() as listener:
            silent = "127.0.0.1:%d" % listener.getsockname()[1]
            status, _, err = self.quorlock("--nodes", silent, "run", "-n", "--lease", "2s", self.key, "--", "true")
            self.assertEqual(status, 69, err)
            self.assertIn(silent, err)
        wrong = ",".join(f"redis://:geheim@{server}" for server in SERVERS)
        status, _, err = self.quorlock("run", "-n", self.key, "--", "true", env={"QUORLOCK_NODES": wrong})
        self.assertEqual(status, 78, err)
        self.assertNotIn("geheim", err)


class Reports(Bootstrapped):
    def inspect(self):
        status, out, err = self.quorlock("inspect", "--json", self.key)
        self.assertEqual((status, err), (0, ""))
        report = json.loads(out)
        self.assertEqual(list(report), ["key", "quorum", "held", "holder", "valid_ms", "nodes"])
        for node in report["nodes"]:
            self.assertEqual(list(node), ["node", "state", "holder", "ttl_ms", "latency_us", "fence", "quarantine_ms",
                                          "waiters", "error"])
            self.assertEqual((node["fence"], node["quarantine_ms"]), (None, 0))
            self.assertGreater(node["latency_us"], 0)
        self.assertEqual((report["key"], report["quorum"]), (self.key, 2))
        self.assertEqual([node["node"] for node in report["nodes"]], [str(server) for server in SERVERS])
        return report

    def test_inspect(self):
        report = self.inspect()
        self.assertEqual((report["held"], report["holder"], report["valid_ms"]), (False, None, 0))
        self.assertEqual([(n["state"], n["holder"], n["ttl_ms"], n["error"]) for n in report["nodes"]],
                         [("free", None, None, None)] * 3)
        self.assertIn(f'"{self.key}" is free\n', self.quorlock("inspect", self.key)[1])
        self.hold('a"b\\c', count=1)
        report = self.inspect()
        self.assertEqual((report["held"], report["holder"]), (False, None))
        self.assertEqual([n["holder"] for n in report["nodes"]], ['a"b\\c', None, None])
        SERVERS[1].ask("SET", self.key, 'a"b\\c', "PX", 9000)
        report = self.inspect()
        self.assertEqual((report["held"], report["holder"]), (True, 'a"b\\c'))
        self.assertTrue(0 < report["valid_ms"] <= 9000)
        self.assertTrue(0 < report["nodes"][1]["ttl_ms"] <= 9000 < report["nodes"][0]["ttl_ms"] <= 30000)
        status, out, _ = self.quorlock("inspect", self.key)
        self.assertEqual(status, 0)
        self.assertIn(f'"{self.key}" is held by a"b\\c on 2 of 3 nodes, ', out)
        self.assertEqual(len(out.splitlines()), 5)
        SERVERS[0].kill()
        status, out, _ = self.quorlock("inspect", "--json", self.key)
        node = json.loads(out)["nodes"][0]
        self.assertEqual((status, node["state"]), (0, "down"))
        self.assertEqual([node[name] for name in ("holder", "ttl_ms", "latency_us", "fence", "quarantine_ms")],
                         [None] * 5)
        self.assertTrue(node["error"])

    def test_inspect_knows_the_policy(self):
        self.hold("x", count=2)
        report = json.loads(self.quorlock("inspect", "--json", "--policy", "all", self.key)[1])
        self.assertEqual((report["quorum"], report["held"]), (3, False))

    def test_odd_keys(self):
        odd = 'tab\there "quoted" \x1b[1m €'
        status, out, _ = self.quorlock("inspect", "--json", odd)
        self.assertEqual((status, json.loads(out)["key"]), (0, odd))
        status, out, _ = self.quorlock("inspect", odd)
        self.assertEqual(status, 0)
        self.assertIn('"tab\\x09here "quoted" \\x1b[1m €" is free', out)
        status, out, _ = self.quorlock("run", odd, "--", "printenv", "QUORLOCK_KEY")
        self.assertEqual((status, out), (0, odd + "\n"))

    def test_break(self):
        self.hold("someone-else-entirely")
        status, out, err = self.quorlock("break", self.key)
        self.assertEqual((status, err), (0, ""))
        self.assertTrue(out.startswith(f'"{self.key}" is held by someone-else-entirely on 2 of 3 nodes, '), out)
        self.assertTrue(out.endswith("broken on 2 of 3 nodes\n"), out)
        self.assertEqual(self.values(), [None] * 3)
        self.hold("someone-else-entirely")
        status, out, err = self.quorlock("break", "--json", self.key)
        self.assertEqual(status, 0)
        self.assertIn("held by someone-else-entirely", err)
        self.assertEqual([n["broken"] for n in json.loads(out)["nodes"]], [True, True, False])
        self.assertEqual([n["holder"] for n in json.loads(out)["nodes"]], ["someone-else-entirely"] * 2 + [None])
        self.assertEqual(self.values(), [None] * 3)
        self.assertEqual(self.quorlock("break", self.key)[0], 0)

    def test_what_was_deleted_is_not_called_held(self):
        self.hold("someone-else-entirely")
        out = self.quorlock("break", self.key)[1].splitlines()
        self.assertEqual([re.split("  +", line)[1] for line in out[2:5]], ["was held", "was held", "free"])
        self.hold("someone-else-entirely")
        report = json.loads(self.quorlock("break", "--json", self.key)[1])
        self.assertEqual([report[name] for name in ("held", "holder", "valid_ms")], [False, "someone-else-entirely", 0])
        self.assertEqual([node["state"] for node in report["nodes"]], ["broken", "broken", "free"])

    def test_break_of_an_owner_leaves_the_next_one_alone(self):
        for dialect, other in [("plain", ("SET", self.key, "other", "PX", 30000)),
                               ("redisson", ("HSET", self.key, "12345678-1234-1234-1234-123456789abc:7", 1))]:
            token = self.quorlock("run", "--dialect", dialect, self.key, "--", "printenv", "QUORLOCK_OWNER")[1].strip()
            for server in SERVERS:
                server.ask("DEL", self.key)
                server.ask(*other)
            words = ("break", "--dialect", dialect, self.key, "--owner")
            status, out, err = self.quorlock(*words, token)
            self.assertEqual((status, err), (1, ""), out)
            self.assertTrue(out.endswith("broken on 0 of 3 nodes, for that owner does not hold it\n"), out)
            self.assertEqual([server.ask("EXISTS", self.key) for server in SERVERS], [1] * 3)
            report = json.loads(self.quorlock(*words, token, "--json")[1])
            self.assertEqual([node["state"] for node in report["nodes"]], ["held"] * 3)
            self.assertTrue(report["held"])
            SERVERS[0].ask("DEL", self.key)
            status, out, err = self.quorlock(*words, other[2])
            self.assertEqual((status, err), (0, ""), out)
            self.assertTrue(out.endswith("broken on 2 of 3 nodes\n"), out)
            self.assertEqual([server.ask("EXISTS", self.key) for server in SERVERS], [0] * 3)
        SERVERS[0].ask("RPUSH", self.key, "a")
        status, out, err = self.quorlock("break", self.key, "--owner", "a")
        self.assertEqual((status, SERVERS[0].ask("EXISTS", self.key)), (1, 1), out)
        self.assertEqual(self.quorlock("break", self.key, "--owner", "")[0], 64)

    def test_break_of_one_reader_and_of_one_permit(self):
        for options, key in [(("--shared", self.key), self.key), (("--permits", "3", self.key + "p"), self.key + "p")]:
            script = "echo $QUORLOCK_OWNER; read line"
            first, second = (self.start("run", *options, "--", "sh", "-c", script, stdin=subprocess.PIPE) for _ in range(2))
            tokens = [process.stdout.readline().decode().strip() for process in (first, second)]
            status, out, err = self.connected("break", key, "--owner", tokens[0])
            self.assertEqual((status, err), (0, ""), out)
            self.assertEqual(self.end(first)[0], 75)
            self.assertIsNone(second.poll())
            report = json.loads(self.quorlock("inspect", "--json", key)[1])
            self.assertEqual([holder["holder"] for holder in report["holders"]], [tokens[1]])
            self.assertEqual(self.connected("break", key, "--owner", tokens[0])[0], 1)
            self.assertEqual(self.connected("break", key, "--owner", tokens[1])[0], 0)
            self.assertEqual(self.end(second)[0], 75)
            self.assertEqual(self.quorlock("run", "-n", self.key, "--", "true")[0], 0)

    def test_output_that_cannot_be_written(self):
        self.hold("someone-else-entirely", count=3)
        for args in [("inspect", self.key), ("inspect", "--json", self.key), ("break", self.key), ("--help",),
                     ("run", "--help"), ("--version",)]:
            with open("/dev/full", "wb") as full:
                status, _, err = self.quorlock(*args, stdout=full)
            self.assertEqual(status, 74, (args, err))
            self.assertIn("cannot write to standard output", err)
            reader, writer = os.pipe()
            os.close(reader)
            status, _, err = self.quorlock(*args, stdout=writer)
            os.close(writer)
            self.assertEqual(status, 74, (args, err))
        self.assertEqual(self.values(), [b"someone-else-entirely"] * 3, "broken without having been shown")


if __name__ == "__main__":
    command_case.main()
