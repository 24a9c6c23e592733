#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_elect.py PATH_TO_quorlock [TEST...] - quorlock elect and quorlock leader: a command runs while it leads, one at a
time, by terms that rise; and whoever wants to know is told who leads."""
import glob
import json
import os
import signal

import command_case
from command_case import SERVERS, Bootstrapped, children, first_named, state, wait_for

# Long enough that a machine under load ends a command in the time that is kept for it.
LEASE = "5s"
# Beats for as long as it lives, a file for each term, and does not go by itself.
BEATS = "trap '' TERM; while :; do date +%s%N >>beats.$QUORLOCK_TERM; sleep .01; done"


class Election(Bootstrapped):
    def elect(self, *options, script, lease=LEASE, **more):
        return self.start("elect", "--lease", lease, *options, self.key, "--", "sh", "-c", f"cd {self.folder}; {script}",
                          **more)

    def terms(self):
        """The terms whose commands have beaten, in their order."""
        return sorted(int(name.rsplit(".", 1)[1]) for name in glob.glob(self.path("beats.*")) if os.path.getsize(name) > 0)

    def wait_terms(self, count, process=None):
        def reached():
            self.assertTrue(process is None or process.poll() is None, process and process.returncode)
            return len(self.terms()) >= count
        wait_for(reached)
        return self.terms()

    def beats(self, term):
        return [int(line) for line in self.read(f"beats.{term}").split()]

    def assert_one_after_the_other(self):
        terms = self.terms()
        for before, after in zip(terms, terms[1:]):
            self.assertLess(self.beats(before)[-1], self.beats(after)[0], f"of terms {before} and {after}")

    def leader(self, *options):
        return self.quorlock("leader", *options, self.key)


class Life(Election):
    def test_the_command_has_its_term(self):
        status, _, err = self.end(self.elect(script='echo "$QUORLOCK_KEY $QUORLOCK_TERM" >seen; exit 7'))
        self.assertEqual(status, 7, err)
        name, term = self.read("seen").split()
        self.assertEqual(name, self.key)
        self.assertGreater(int(term), 0)
        self.assert_free()
        self.end(self.elect(script='echo "$QUORLOCK_TERM" >later'))
        self.assertGreater(int(self.read("later")), int(term))

    def test_a_term_that_was_over_when_the_command_ended(self):
        """As of run: nobody has said so before, and the answers to the release show it."""
        calls = "; ".join(f"redis-cli -p {server.port} del {self.key} >&2" for server in SERVERS)
        script = f"({calls}) 2>/dev/null; sleep 60 2>/dev/null >&2 & echo $! >left; exit 3"
        status, _, err = self.end(self.elect(script=script))
        self.assertEqual(status, 75, err)
        self.assertRegex(err, rf'^quorlock: lost "{self.key}" while the command ran: (?s:.*) would have been 3\n$')
        wait_for(lambda: state(int(self.read("left"))) == "Z")
        # With --restart it stands again all the same.
        process = self.elect("--restart", script=f"[ ! -e once ] || exec sleep 60; ({calls}) 2>/dev/null; >once")
        wait_for(lambda: os.path.exists(self.path("once")))
        wait_for(lambda: self.leader()[0] == 0)
        process.terminate()
        self.assertIn(f'lost "{self.key}" while the command ran', self.end(process)[2])

    def test_a_lock_around_it_is_not_the_commands_own(self):
        """Nor is a term around a lock: a token is of the key beside it, or there is none."""
        names = "printenv | grep -oE '^QUORLOCK_(KEYS?|OWNER|FENCE|SLOT|TERM)=' | sort | tr -d '\n'"
        elect, run = ("elect", "inner", "--"), ("run", "inner", "--")
        for outer, inner, found in [(("run", "--fence", "outer", "--"), elect, "KEY=TERM="),
                                    (("run", "--permits", "2", "outer", "--"), elect, "KEY=TERM="),
                                    (("elect", "outer", "--"), run, "KEY=KEYS=OWNER=")]:
            status, out, err = self.quorlock(*outer, command_case.QUORLOCK, *inner, "sh", "-c", names)
            self.assertEqual((status, out.replace("QUORLOCK_", "")), (0, found), err)

    def test_a_signal_ends_it(self):
        process = self.elect(script=">up; exec sleep 100")
        self.wait_file("up", process)
        process.terminate()
        self.assertEqual(self.end(process)[0], 128 + signal.SIGTERM)
        self.assert_free()

    def test_a_signal_ends_the_wait(self):
        self.hold("somebody")
        process = self.elect(script=">up")
        self.assertIn("waiting for", process.stderr.readline().decode())
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.end(process)[0], 128 + signal.SIGINT)
        self.assertFalse(os.path.exists(self.path("up")))
        self.assertEqual(self.values(), [b"somebody"] * 2 + [None])

    def test_a_command_that_is_not_there(self):
        status, _, err = self.quorlock("elect", "--restart", self.key, "--", "/no/such/command")
        self.assertEqual(status, 127, err)
        self.assertIn("/no/such/command", err)
        self.assert_free()

    def test_a_key_that_is_no_lock(self):
        for server in SERVERS:
            server.ask("RPUSH", self.key, "x")
        status, _, err = self.quorlock("elect", self.key, "--", "true")
        self.assertEqual(status, 78, err)
        self.assertIn(f'cannot be a candidate for "{self.key}"', err)

    def test_usage(self):
        for words, said in [((), "one name, and not 0"), (("a", "b", "--", "true"), "one name, and not 2"),
                            (("a",), "no command: write -- before it: quorlock elect a"),
                            (("a", "--"), "no command behind --"),
                            (("--advertise", "x" * 65, "a", "--", "true"),
                             "the advertised text has 65 characters: at most 64"),
                            (("--advertise", "my host", "a", "--", "true"), 'the advertised text "my host"'),
                            (("--advertise", "", "a", "--", "true"), "the advertised text is empty"),
                            (("--wait", "1s", "a", "--", "true"), "--wait does not belong to this verb"),
                            (("--dialect", "redisson", "a", "--", "true"), "the redisson dialect has no elections")]:
            status, _, err = self.quorlock("elect", *words)
            self.assertEqual(status, 64, err)
            self.assertIn(said, err)
        for words, said in [((), "takes keys"), (("a", "b"), "one name, and not 2"),
                            (("--dialect", "redisson", "a"), "the redisson dialect has no elections")]:
            status, _, err = self.quorlock("leader", *words)
            self.assertEqual(status, 64, err)
            self.assertIn(said, err)


class Restart(Election):
    def test_it_stands_again(self):
        script = "echo $QUORLOCK_TERM >>terms; sleep .1; exit 3"
        processes = [self.elect("--restart", script=script) for _ in range(2)]
        wait_for(lambda: os.path.exists(self.path("terms")) and len(self.read("terms").split()) >= 4)
        for process in processes:
            self.assertIsNone(process.poll())
            process.terminate()
        errors = [self.end(process)[2] for process in processes]
        terms = [int(term) for term in self.read("terms").split()]
        self.assertEqual(terms, sorted(set(terms)))
        # The term ended with the command, so that the other one had its turn.
        for err in errors:
            self.assertIn("the command ended with status 3: resigned from", err)
            self.assertIn("candidate again in 1000 ms", err)
        # Three of the four terms have ended, and so two of one candidate.
        self.assertTrue(any("candidate again in 2000 ms" in err for err in errors), errors)
        self.assert_free()

    def test_the_pause_grows_up_to_its_bound(self):
        def descriptors():
            return len(os.listdir(f"/proc/{process.pid}/fd"))

        process = self.elect("--restart", script="true")
        self.await_words(process, b"candidate again in 2000 ms")
        before = descriptors()
        self.await_words(process, b"candidate again in 16000 ms")
        self.assertLess(descriptors(), before + 3, "three terms left a descriptor each")
        self.assertIn(b"candidate again in 30000 ms", self.await_words(process, b"candidate again in 3"))
        process.terminate()
        self.assertEqual(self.end(process)[0], 128 + signal.SIGTERM)

    def test_a_signal_while_it_resigns(self):
        """It ends when the resignation is answered, or is known not to be, as without the signal."""
        process = self.elect("--restart", "-v", script=">up; while [ ! -e go ]; do sleep .01; done", lease="30s")
        self.wait_file("up", process)
        wait_for(lambda: None not in self.values())
        for server in SERVERS[:2]:
            server.freeze()
        open(self.path("go"), "w").close()
        self.await_words(process, b"the command ended with status 0: resigned")
        process.terminate()
        for server in SERVERS[:2]:
            server.thaw()
        status, _, err = self.end(process)
        self.assertEqual(status, 128 + signal.SIGTERM, err)
        self.assertNotIn("the client is closed", err)
        self.assert_free()

    def test_a_signal_that_the_command_outlives_ends_nothing(self):
        """Such as SIGHUP, at which daemons read their configuration anew."""
        script = ("trap '>reloaded' HUP USR1; echo $QUORLOCK_TERM >>terms; "
                  "while [ ! -e go ]; do sleep .01; done; rm go; exit 3")
        process = self.elect("--restart", script=script)
        for ends in range(2):
            wait_for(lambda: os.path.exists(self.path("terms")) and len(self.read("terms").split()) > 2 * ends)
            process.send_signal((signal.SIGHUP, signal.SIGUSR1)[ends])
            self.wait_file("reloaded", process)
            os.remove(self.path("reloaded"))
            # Deposed it stands again, and so it does when the command ends.
            for server in SERVERS:
                server.ask("DEL", self.key)
            wait_for(lambda: process.poll() is not None or len(self.read("terms").split()) == 2 * ends + 2)
            self.assertIsNone(process.poll(), process.poll() is not None and self.end(process))
            process.send_signal(signal.SIGHUP)
            self.wait_file("reloaded", process)
            os.remove(self.path("reloaded"))
            open(self.path("go"), "w").close()
            self.await_words(process, b"the command ended with status 3: resigned")
        process.terminate()
        self.assertEqual(self.end(process)[0], 128 + signal.SIGTERM)
        self.assert_free()

    def test_not_after_a_signal(self):
        process = self.elect("--restart", script=">up; exec sleep 100")
        self.wait_file("up", process)
        process.send_signal(signal.SIGHUP)
        self.assertEqual(self.end(process)[0], 128 + signal.SIGHUP)
        self.assert_free()


class Succession(Election):
    """The command of a leader is dead before that of the next one starts."""

    def command_of(self, process):
        return wait_for(lambda: first_named("sh", children(process.pid)))

    def two(self):
        first = self.elect("--advertise", "first", script=BEATS)
        self.wait_terms(1, first)
        second = self.elect("--advertise", "second", script=BEATS)
        self.assertIn("waiting for", second.stderr.readline().decode())
        return first, second

    def test_a_leader_that_ends_hands_over(self):
        first, second = self.two()
        first.send_signal(signal.SIGTERM)  # which its command ignores
        os.killpg(self.command_of(first), signal.SIGKILL)
        self.assertEqual(self.end(first)[0], 128 + signal.SIGKILL)
        self.wait_terms(2, second)
        self.assert_one_after_the_other()

    def test_a_stopped_leader_is_succeeded(self):
        first, second = self.two()
        command = self.command_of(first)
        first.send_signal(signal.SIGSTOP)
        self.wait_terms(2, second)
        self.assertIn(state(command), "ZX")
        first.send_signal(signal.SIGCONT)
        # It learns that it was deposed, and stands again.
        second.send_signal(signal.SIGSTOP)
        self.wait_terms(3, first)
        self.assert_one_after_the_other()
        second.send_signal(signal.SIGCONT)
        status, _, err = self.leader()
        self.assertEqual(status, 0, err)
        os.killpg(self.command_of(first), signal.SIGKILL)
        self.assertIn(f'deposed from "{self.key}"', self.end(first)[2])

    def test_a_killed_leader_is_succeeded(self):
        first, second = self.two()
        command = self.command_of(first)
        first.kill()
        self.wait_terms(2, second)
        self.assertIn(state(command), "ZX")
        self.assert_one_after_the_other()

    def test_without_a_quorum_nobody_leads(self):
        first, second = self.two()
        command = self.command_of(first)
        for server in SERVERS[1:]:
            server.freeze()
        self.assert_gone(command)
        self.assertEqual(len(self.terms()), 1)
        status, out, err = self.leader("--node-timeout", "200ms")
        self.assertEqual(status, 69, err)
        self.assertIn("unknown", out)
        for server in SERVERS[1:]:
            server.thaw()
        self.wait_terms(2)
        self.assert_one_after_the_other()
        self.assertEqual([first.poll(), second.poll()], [None, None])

    def test_nodes_that_come_back_end_no_term(self):
        first, _ = self.two()
        owner = SERVERS[0].ask("GET", self.key)
        for server in SERVERS:
            server.restart(empty=False)
            wait_for(lambda at=server: at.ask("GET", self.key) == owner)
        self.assertIsNone(first.poll())
        self.assertEqual(len(self.terms()), 1)


class Leader(Election):
    def test_nobody_leads(self):
        status, out, err = self.leader()
        self.assertEqual((status, out), (1, f'"{self.key}": nobody leads\n'), err)
        status, out, _ = self.leader("--json")
        self.assertEqual(status, 1)
        self.assertEqual(json.loads(out), {"name": self.key, "state": "none", "leader": None, "term": None,
                                           "owner": None, "valid_ms": None})

    def test_somebody_leads(self):
        process = self.elect("--advertise", "10.0.0.7:80", script="echo $QUORLOCK_TERM >up; exec sleep 100")
        self.wait_file("up", process)
        term = int(wait_for(lambda: self.read("up")))
        status, out, err = self.leader()
        self.assertEqual((status, out), (0, f'"{self.key}": 10.0.0.7:80 leads, term {term}\n'), err)
        status, out, _ = self.leader("--json")
        self.assertEqual(status, 0)
        shown = json.loads(out)
        self.assertEqual((shown["name"], shown["state"], shown["leader"], shown["term"]),
                         (self.key, "leads", "10.0.0.7:80", term))
        self.assertEqual(shown["owner"].encode(), SERVERS[0].ask("GET", self.key) or SERVERS[1].ask("GET", self.key))
        self.assertTrue(0 < shown["valid_ms"] <= 5000)

    def test_readers_do_not_lead(self):
        """Also where an earlier leader has left its counter, which readers do not raise."""
        self.assertEqual(self.end(self.elect(script="true"))[0], 0)
        reads = self.start("run", "--fence", "--shared", self.key, "--", "sh", "-c",
                           f"cd {self.folder}; >up; exec sleep 100")
        self.wait_file("up", reads)
        wait_for(lambda: self.values() == [b"quorlock:readers"] * len(SERVERS))
        status, out, err = self.leader()
        self.assertEqual((status, out), (1, f'"{self.key}": nobody leads\n'), err)
        status, out, _ = self.leader("--json")
        self.assertEqual((status, json.loads(out)["state"], json.loads(out)["owner"]), (1, "none", None))

    def test_waiting_for_a_leader(self):
        waits = self.start("leader", "--wait", self.key)
        self.assertEqual(waits.stderr.readline().decode(), f'quorlock: "{self.key}": nobody leads\n')
        self.elect("--advertise", "here", script="exec sleep 100")
        status, out, err = self.end(waits)
        self.assertEqual(status, 0, err)
        self.assertIn("here leads", out)

    def test_the_reader_is_gone_though_nothing_changes(self):
        for args in (("--follow",), ("--follow", "--json"), ("--wait",)):
            reader, writer = os.pipe()
            process = self.start("leader", *args, self.key, stdout=writer)
            os.close(writer)
            if args != ("--wait",):
                self.assertIn(self.key.encode(), os.read(reader, 4096))
            os.close(reader)
            self.assertEqual(process.wait(command_case.LIMIT_S), 128 + signal.SIGPIPE)

    def test_a_file_is_an_output_too(self):
        with open(self.path("out"), "wb") as out:
            process = self.start("leader", "--follow", self.key, stdout=out)
            self.assertIn("nobody leads", self.line_of("out"))
            self.elect("--advertise", "here", script="exec sleep 100")
            wait_for(lambda: "here leads" in self.read("out"))
        process.terminate()
        self.assertEqual(self.end(process)[0], -signal.SIGTERM)

    def test_following(self):
        follows = self.start("leader", "--follow", "--json", self.key)
        states = [json.loads(follows.stdout.readline())]
        self.assertEqual(states[0]["state"], "none")
        for i in range(3):
            process = self.elect("--advertise", f"host{i}", script=f">up{i}; exec sleep 100")
            states.append(json.loads(follows.stdout.readline()))
            self.wait_file(f"up{i}", process)
            process.terminate()
            self.end(process)
            states.append(json.loads(follows.stdout.readline()))
        self.assertEqual([shown["leader"] for shown in states], [None, "host0", None, "host1", None, "host2", None])
        terms = [shown["term"] for shown in states if shown["leader"]]
        self.assertEqual(terms, sorted(set(terms)))
        follows.terminate()
        self.assertEqual(self.end(follows)[0], -signal.SIGTERM)


if __name__ == "__main__":
    command_case.main()
