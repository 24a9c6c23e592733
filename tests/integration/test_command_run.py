#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock run: the command, its signals, the loss of its lock: test_command_run.py PATH_TO_quorlock [TEST...]"""
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import LIMIT_S, SERVERS, Bootstrapped, die_with_us, fill, nodes, wait_for

TRIES = 5
STOOD_STILL_S = 0.1  # the command gets SIGKILL so long before its lock ends


class Run(Bootstrapped):
    def test_status_is_that_of_the_command(self):
        for script, expected in [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -9 $$", 137),
                                 ("kill -TERM $$", 143)]:
            status, out, err = self.quorlock("run", self.key, "--", "sh", "-c", script)
            self.assertEqual((status, out), (expected, ""), err)
        status, _, err = self.quorlock("run", self.key, "--", "no-such-command-here")
        self.assertEqual(status, 127)
        self.assertIn("quorlock: cannot execute no-such-command-here: No such file or directory\n", err)
        status, _, err = self.quorlock("run", self.key, "--", self.folder)
        self.assertEqual(status, 126, err)
        self.assertIn("cannot execute", err)
        self.assert_free()

    def test_holds_the_lock_and_passes_its_name_on(self):
        probe = ("import os, sys; print(os.environ['QUORLOCK_KEY'], os.environ['QUORLOCK_OWNER'],"
                 " 'QUORLOCK_FENCE' in os.environ, os.getpgid(0) == os.getpid(),"
                 " sorted(int(n) for n in os.listdir('/proc/self/fd'))[:4], sys.stdin.read())")
        status, out, err = self.quorlock("run", "-v", "--label", "me:", self.key, "--", sys.executable, "-c", probe,
                                         stdin=subprocess.PIPE, env={"QUORLOCK_FENCE": "stale"})
        self.assertEqual(status, 0, err)
        self.assertRegex(out, rf"^{self.key} me:[0-9a-f]{{40}} False True \[0, 1, 2, 3\] \n$")
        token = out.split()[1][:len("me:") + 8]
        self.assertRegex(err, rf'quorlock: granted "{self.key}" by [23] of 3 nodes in [\d.]+ ms, '
                              rf'valid \d+ ms, owner {token}\n')
        self.assertRegex(err, rf'quorlock: released "{self.key}" on [23] of 3 nodes\n')
        self.assertNotIn(out.split()[1], err, "messages do not show the whole token")
        self.assert_free()

    def test_the_key_is_on_the_nodes_while_the_command_runs(self):
        process = self.shell("--lease", "10s", script="printf %s $QUORLOCK_OWNER >owner; >up; "
                                                      "while [ ! -e go ]; do sleep .01; done")
        owner = self.read("owner").encode()
        wait_for(lambda: self.values() == [owner] * 3)
        self.assertTrue(all(0 < server.ask("PTTL", self.key) <= 10000 for server in SERVERS))
        self.assertRegex(owner.decode(), rf"^{re.escape(socket.gethostname()[:40])}:{process.pid}:[0-9a-f]{{40}}$")
        open(self.path("go"), "w").close()
        self.assertEqual(self.end(process)[:2], (0, ""))
        self.assert_free()

    def test_renews_work_of_many_leases(self):
        process = self.shell("--lease", "2s", script="printf %s $QUORLOCK_OWNER >owner; >up; sleep 7; >done")
        owner = self.read("owner").encode()
        looks = 0
        while not os.path.exists(self.path("done")):
            held = self.values().count(owner)
            if os.path.exists(self.path("done")):
                break
            self.assertGreaterEqual(held, 2)
            looks += 1
            time.sleep(0.02)
        self.assertGreater(looks, 20)
        self.assertEqual(self.end(process)[0], 0)
        self.assert_free()

    def test_the_command_inherits_no_descriptor_and_no_disposition(self):
        def clean():
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        probe = ["sh", "-c", "grep -E '^(Sig|Shd)(Blk|Ign|Cgt)' /proc/self/status; ls /proc/self/fd | wc -l"]
        plain = subprocess.run(probe, capture_output=True, preexec_fn=clean, check=True).stdout.decode()
        self.assertEqual(len(plain.splitlines()), 4)
        self.assertEqual(self.quorlock("run", self.key, "--", *probe, preexec=clean)[:2], (0, plain))

    def test_one_after_the_other(self):
        script = (f"cd {self.folder}; mkdir in || exit 9; n=$(cat n 2>/dev/null || echo 0); sleep .02; "
                  "echo $((n+1)) >n; rmdir in")
        several = [self.start("run", "--lease", "5s", self.key, "--", "sh", "-c", script) for _ in range(5)]
        self.assertEqual([self.end(process)[0] for process in several], [0] * 5)
        self.assertEqual(self.read("n"), "5")
        self.assert_free()


class Signals(Bootstrapped):
    def test_signals_reach_the_whole_group(self):
        script = ("sh -c 'trap \"echo x >>inner\" USR1 USR2; echo >>ready; while [ ! -e go ]; do sleep .01; done' & "
                  "trap 'echo x >>outer' USR1 USR2; while [ ! -e ready ]; do sleep .01; done; >up; "
                  "while [ ! -e go ]; do sleep .01; done; wait; exit 6")
        process = self.shell(script=script)
        for number in [signal.SIGUSR1, signal.SIGUSR2]:
            process.send_signal(number)
            for name in ["inner", "outer"]:
                self.wait_file(name, process)
                os.unlink(self.path(name))
        open(self.path("go"), "w").close()
        self.assertEqual(self.end(process)[0], 6)
        for number in [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]:
            os.unlink(self.path("up"))
            process = self.shell(script=f"trap 'exit 3' {number.value}; >up; while :; do sleep .01; done")
            process.send_signal(number)
            self.assertEqual(self.end(process)[0], 3)
            self.assert_free()

    def test_kill_9_ends_the_command_and_what_it_started(self):
        process = self.shell("--lease", "2s",
                             script="sleep 100 & echo $! >inner; echo $$ >outer; >up; wait; >survived")
        process.kill()
        process.wait()
        self.assert_gone(self.read("inner"), self.read("outer"))
        self.assertFalse(os.path.exists(self.path("survived")))
        self.assert_free()  # by the end of the lease

    def test_nothing_is_left_of_us_when_the_command_ends(self):
        process = self.shell(script="sleep 100 >/dev/null 2>&1 & echo $! >inner; >up")
        self.assertEqual(self.end(process)[0], 0)
        inner = int(self.read("inner"))
        os.kill(inner, 0)  # what the command left behind is not touched
        os.kill(inner, signal.SIGKILL)
        self.assert_free()


class Loss(Bootstrapped):
    def test_broken_by_another(self):
        process = self.shell("--lease", "3s", script="sleep 100 & echo $! >inner; echo $$ >outer; trap '' TERM; "
                                                     ">up; wait; sleep 100")
        status, out, _ = self.quorlock("break", self.key)
        self.assertEqual(status, 0)
        status, _, err = self.end(process)
        self.assertEqual(status, 75, err)
        self.assertIn(f'lost "{self.key}"', err)
        self.assert_gone(self.read("inner"), self.read("outer"))
        self.assert_free()

    def test_taken_over_by_another(self):
        process = self.shell("--lease", "2s", script=">up; sleep 100")
        for server in SERVERS:
            server.ask("SET", self.key, "someone-else-entirely")
        self.assertEqual(self.end(process)[0], 75)
        self.assertEqual(self.values(), [b"someone-else-entirely"] * 3)

    def end_after(self, change):
        """The keys change before the first renewal, and the command ends by itself."""
        process = self.shell("--lease", "30s", script=">up; until [ -e go ]; do sleep .01; done; exit 7")
        for server in SERVERS:
            change(server)
        open(self.path("go"), "w").close()
        status, _, err = self.end(process)
        self.assertEqual(status, 75, err)
        self.assertIn("its own exit status would have been 7", err)
        return err

    def test_deleted_before_the_command_ends(self):
        err = self.end_after(lambda server: server.ask("DEL", self.key))
        self.assertIn(f'released "{self.key}" on 0 of 3 nodes; not there any more on', err)
        self.assert_free()

    def test_taken_over_before_the_command_ends(self):
        err = self.end_after(lambda server: server.ask("SET", self.key, "a-peer"))
        self.assertRegex(err, "on 0 of 3 nodes; held by a-peer on [23]")
        self.assertEqual(self.values(), [b"a-peer"] * 3)

    def lose_nodes(self, lease_s, trap, own):
        """Two nodes freeze under a command. For how long it outlived its lock (negative: it was dead in time), and the
        longest time for which this machine did not run the test."""
        process = self.shell("--lease", f"{lease_s}s",
                             script=f"echo $$ >outer; {trap}; >up; while :; do >beat; sleep .01; done")
        outer = self.read("outer")
        for server in SERVERS[1:]:
            server.freeze()
        frozen_s = time.time()
        looked, stood_s = time.monotonic(), 0
        while process.poll() is None:
            time.sleep(0.005)
            now = time.monotonic()
            looked, stood_s = now, max(stood_s, now - looked)
            self.assertLess(time.time() - frozen_s, LIMIT_S, "the command is still alive")
        status, _, err = self.end(process)
        self.assertEqual(status, 75, err)
        self.assert_gone(outer)
        self.assertIn(f"its own exit status would have been {own}", err)
        self.assertTrue(self.read("term"))
        # No renewal was sent to two nodes after they froze, so validity cannot end later than this.
        late_s = os.stat(self.path("beat")).st_mtime - frozen_s - lease_s
        for server in SERVERS:
            server.thaw()
        self.assert_free()
        for name in ["up", "beat", "term"]:
            os.unlink(self.path(name))
        return late_s, stood_s

    def test_nodes_gone_term_first_and_dead_in_time(self):
        for trap, own in [("trap 'date +%s.%N >term; exit 3' TERM", 3), ("trap 'date +%s.%N >term' TERM", 137)]:
            # Where the machine itself stands still no process can be in time, and nothing is proven.
            for _ in range(TRIES):
                late_s, stood_s = self.lose_nodes(4, trap, own)
                if late_s < 0 or stood_s < STOOD_STILL_S:
                    break
            self.assertLess(late_s, 0, "the command outlived its lock")

    def test_the_rest_of_the_group_dies_too(self):
        process = self.shell("--lease", "2s", script="sh -c 'trap \"\" TERM; >up; while :; do sleep .01; done' & "
                                                     "echo $! >inner; wait")
        for server in SERVERS[1:]:
            server.freeze()
        self.assertEqual(self.end(process)[0], 75)
        self.assert_gone(self.read("inner"))

    def test_a_stopped_supervisor_sees_the_loss_when_it_wakes(self):
        process = self.shell("--lease", "1s", script="echo $$ >outer; >up; while :; do sleep .01; done")
        process.send_signal(signal.SIGSTOP)
        self.assert_free()
        self.hold("someone-else-entirely", count=3)
        process.send_signal(signal.SIGCONT)
        status, _, err = self.end(process)
        self.assertEqual(status, 75, err)
        self.assert_gone(self.read("outer"))
        self.assertEqual(self.values(), [b"someone-else-entirely"] * 3)

    def test_command_ends_while_the_supervisor_is_stopped_too_long(self):
        process = self.shell("--lease", "1s",
                             script="echo $$ >outer; >up; while [ ! -e go ]; do sleep .01; done; exit 0")
        process.send_signal(signal.SIGSTOP)
        self.assert_free()
        open(self.path("go"), "w").close()
        self.assert_gone(self.read("outer"))
        process.send_signal(signal.SIGCONT)
        self.assertEqual(self.end(process)[0], 75)

    def test_a_stderr_without_a_reader_does_not_stop_us(self):
        reader, writer = os.pipe()
        fill(writer)
        process = self.shell("-v", "-v", "--lease", "1s", stderr=writer,
                             script="exec 2>/dev/null; echo $$ >outer; >up; while :; do sleep .01; done")
        for server in SERVERS[1:]:
            server.freeze()
        process.wait(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 75)
        self.assert_gone(self.read("outer"))
        os.close(reader)
        os.close(writer)


class Terminal(Bootstrapped):
    def start_on_terminal(self, script):
        environment = dict(os.environ, QUORLOCK_NODES=nodes())
        pid, master = pty.fork()
        if pid == 0:
            die_with_us()
            os.execve(command_case.QUORLOCK, [command_case.QUORLOCK, "run", "--lease", "3s", self.key, "--",
                                              "sh", "-c", f"cd {self.folder}; {script}"], environment)
        self.addCleanup(os.close, master)
        self.addCleanup(self.reap, pid)
        self.wait_file("up")
        return pid, master

    def start_to_be_stopped(self, beat):
        """A command that does `beat` every 10 ms until there is a file `go`, and exits with 8. No shell: one that
        is stopped while it starts a program (dash by vfork) never shows as stopped."""
        return self.start_on_terminal(f"exec {sys.executable} -c '"
                                      "import os, time; open(\"outer\", \"w\").write(str(os.getpid())); "
                                      "beats = open(\"beats\", \"wb\", 0); open(\"up\", \"w\")\n"
                                      f"while not os.path.exists(\"go\"): {beat}; time.sleep(0.01)\n"
                                      "os._exit(8)'")

    def reap(self, pid):
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass

    def status(self, pid):
        result = []
        wait_for(lambda: result.append(os.waitpid(pid, os.WNOHANG)) or result[-1][0])
        return os.waitstatus_to_exitcode(result[-1][1])

    def test_the_command_has_the_foreground(self):
        pid, master = self.start_on_terminal("trap 'exit 4' INT; >up; read line; echo \"$line\" >read; "
                                             "while :; do sleep .01; done")
        os.write(master, b"typed\n")
        self.wait_file("read")
        wait_for(lambda: self.read("read") == "typed")
        self.assertNotEqual(os.tcgetpgrp(master), os.getpgid(pid))
        os.write(master, b"\x03")
        self.assertEqual(self.status(pid), 4)
        self.assert_free()

    def test_a_stopped_command_keeps_its_lock(self):
        pid, master = self.start_to_be_stopped("pass")
        outer = self.read("outer")
        group = os.getpgid(int(outer))
        os.write(master, b"\x1a")
        wait_for(lambda: os.tcgetpgrp(master) == os.getpgid(pid))
        # On all three: a node that connected late gets the key with the next renewal.
        value = wait_for(lambda: len(set(self.values())) == 1 and self.values())
        self.assertIsNotNone(value[0])
        end = time.monotonic() + 4  # more than a lease
        while time.monotonic() < end:
            self.assertEqual(self.values(), value)
            time.sleep(0.05)
        os.kill(pid, signal.SIGCONT)
        wait_for(lambda: os.tcgetpgrp(master) == group)
        open(self.path("go"), "w").close()
        self.assertEqual(self.status(pid), 8)
        self.assert_free()

    def test_stopping_the_supervisor_of_a_stopped_command(self):
        pid, master = self.start_to_be_stopped("beats.write(b\"x\")")
        os.write(master, b"\x1a")
        wait_for(lambda: os.tcgetpgrp(master) == os.getpgid(pid))
        os.write(master, b"\x1a")
        self.assert_free()  # nothing renews any more
        self.hold("someone-else-entirely", count=3)
        beats = self.read("beats")
        os.kill(pid, signal.SIGCONT)
        self.assertEqual(self.status(pid), 75)
        self.assert_gone(self.read("outer"))
        self.assertEqual(self.read("beats"), beats, "the command went on without the lock")

    def test_interrupting_a_stopped_command(self):
        pid, master = self.start_to_be_stopped("pass")
        os.write(master, b"\x1a")
        wait_for(lambda: os.tcgetpgrp(master) == os.getpgid(pid))
        os.write(master, b"\x03")
        self.assertEqual(self.status(pid), -signal.SIGINT)
        self.assert_free()


if __name__ == "__main__":
    command_case.main()
