#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock run: when SIGTERM and SIGKILL come by the clock, and no command without a warden: test_command_warden.py
PATH_TO_quorlock [TEST...]

What happens to quorlock, the command and the warden is in the table of test_supervision.py."""
import os
import re
import resource
import signal
import sys
import threading
import time

sys.dont_write_bytecode = True  # the tree stays as it is
from command_case import (PTRACE_DETACH, PTRACE_O_TRACEFORK, PTRACE_SEIZE, SERVERS, STOOD_STILL_S, WALL, Bootstrapped,
                          children, now_s, state, trace, wait_for, wait_for_fork, warden_of)

TRIES = 8
DISTURBED_S = 0.025  # a machine that stalled may be late by that
LEASE_S, GRACE_S, RESERVE_S = 4, 1, 0.1  # a quarter of the lease, and a tenth of that
ALLOWANCE_S = 0.042  # for the rates of the clocks: a hundredth of the lease, and 2 ms

# Appends the time to the file `beats`, or to that named by its argument, every few milliseconds.
BEAT = """
import os, signal, sys, time
def now():
    return b"%.6f\\n" % time.clock_gettime(time.CLOCK_BOOTTIME)
def on_term(number, frame):
    os.write(terms, now())
    if leave: os._exit(3)
beats = os.open((sys.argv + ["beats"])[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
terms = os.open("terms", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
leave = "leave" in sys.argv
signal.signal(signal.SIGTERM, on_term)
os.write(beats, now())
open("up", "w").close()
while True:
    os.write(beats, now())
    time.sleep(0.003)
"""


class Watch(threading.Thread):
    """When the keys end by the nodes' own clocks, and for how long this machine did not run the test."""

    def __init__(self, key):
        super().__init__(daemon=True)
        self.key, self.ends, self.stood_s, self.over = key, {}, 0, False
        self.start()

    def run(self):
        looked = now_s()
        while not self.over:
            for server in SERVERS:
                before = now_s()
                try:
                    left_ms = server.ask("PTTL", self.key)
                except OSError:  # a test that failed is being cleaned up
                    return
                if left_ms > 0:
                    self.ends[server] = before + left_ms / 1000
            time.sleep(0.005)
            looked, self.stood_s = now_s(), max(self.stood_s, now_s() - looked)

    def end(self):
        """(when another client could get the lock, stood_s)"""
        self.over = True
        self.join()
        return sorted(self.ends.values())[1], self.stood_s


class Guarded(Bootstrapped):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.allow_renewals)

    @staticmethod
    def deny_renewals():
        for server in SERVERS:
            server.ask("ACL", "SETUSER", "default", "-@scripting", "-pexpire")

    @staticmethod
    def allow_renewals():
        for server in SERVERS:
            server.ask("ACL", "SETUSER", "default", "+@all")

    def beat(self, *more, lease=f"{LEASE_S}s", script="exec {beat}", **options):
        """Starts a command that beats."""
        with open(self.path("beat.py"), "w", encoding="ascii") as f:
            f.write(BEAT)
        return self.shell("--lease", lease, *more, **options,
                          script=script.format(beat=f"{sys.executable} beat.py"))

    def stamps(self, name):
        return [float(line) for line in self.read(name).split()]

    def command_of(self, process):
        return next(pid for pid in children(process.pid) if pid != warden_of(process.pid))

    def in_time(self, attempt):
        """attempt(): (the last beat, when the lock was over, how long the machine stalled). Where the machine
        itself stalls no process can be in time, and nothing is proven."""
        for _ in range(TRIES):
            last, over, stood_s = attempt()
            if last < over or stood_s < STOOD_STILL_S:
                break
            for name in ["up", "beats", "terms"]:
                os.unlink(self.path(name))
        self.assertLess(last, over, "the command outlived its lock")


class Warden(Guarded):
    def test_both_stopped_while_the_command_is_being_ended(self):
        process = self.beat(lease="2s")
        command = self.command_of(process)
        self.deny_renewals()
        wait_for(lambda: self.read("terms"))  # SIGTERM came; a grace is left
        process.send_signal(signal.SIGSTOP)
        os.killpg(command, signal.SIGSTOP)
        wait_for(lambda: state(process.pid) == "T" and state(command) in "TZ")
        beats = len(self.stamps("beats"))
        self.assert_gone(command)
        os.kill(process.pid, signal.SIGCONT)
        self.assertEqual(self.end(process)[0], 75)
        self.assertEqual(len(self.stamps("beats")), beats, "the command went on without its lock")

    def limit_descriptors(self, process, more):
        """It may open so many more than it has now."""
        wanted = {int(name) for name in os.listdir(f"/proc/{process.pid}/fd")}
        lowest_free = [number for number in range(max(wanted) + 2 + more) if number not in wanted]
        hard = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (lowest_free[more], hard))

    def test_no_warden_no_command(self):
        for more in range(3):
            self.hold("someone-else-entirely", count=3)
            process = self.start("run", self.key, "--", "touch", self.path("ran"))
            self.await_words(process, b"waiting for")
            self.limit_descriptors(process, more)
            for server in SERVERS:
                server.ask("DEL", self.key)
            status, _, err = self.end(process)
            self.assertFalse(os.path.exists(self.path("ran")), more)
            self.assertEqual(status, 71, err)
            self.assertRegex(err, "cannot start a process for the (command|warden, without which the command must not "
                                  "run): Too many open files", more)
            self.assert_free()

    def unanswered(self):
        process = self.beat()  # a shorter lease has a shorter reserve, which a busy machine takes
        first = warden_of(process.pid)
        trace(PTRACE_SEIZE, process.pid, PTRACE_O_TRACEFORK)
        os.kill(first, signal.SIGKILL)
        second = wait_for_fork(process.pid)
        watch = Watch(self.key)
        ends_s = sorted(now_s() + server.ask("PTTL", self.key) / 1000 for server in SERVERS)[1]
        # It looks for the answer ten times a second, and shall not do so just before it must send SIGKILL.
        kill_s = ends_s - ALLOWANCE_S - RESERVE_S
        time.sleep((kill_s - now_s() - 0.015) % 0.1)
        trace(PTRACE_DETACH, process.pid)
        # The second one is ours to bury, for it is still traced.
        wait_for(lambda: os.waitpid(second, os.WNOHANG | WALL)[0])
        status, _, err = self.end(process)
        over, stood_s = watch.end()
        self.assertEqual(status, 75, err)
        self.assertIn("no other can be started, and without it the command must not run: Connection timed out", err)
        return self.stamps("beats")[-1], over, stood_s

    def test_the_next_warden_never_runs(self):
        for _ in range(TRIES):
            last, over, stood_s = self.unanswered()
            if last < over:
                return
            self.assertGreaterEqual(stood_s, STOOD_STILL_S, "the command outlived its lock")
            for name in ["up", "beats", "terms"]:
                os.unlink(self.path(name))
        self.skipTest("the machine stalled each time")

    def test_no_other_warden_no_command(self):
        process = self.beat(script="exec {beat} beats leave")
        self.limit_descriptors(process, 0)
        command = self.command_of(process)
        os.kill(warden_of(process.pid), signal.SIGKILL)
        status, _, err = self.end(process)
        self.assertEqual(status, 71, err)
        self.assertIn("no other can be started, and without it the command must not run: Too many open files", err)
        self.assertIn("its own exit status would have been 3", err)
        self.assert_gone(command)
        self.assert_free()


class Ends(Guarded):
    """When SIGTERM and SIGKILL come, by the clock."""

    def ignores(self):
        process = self.beat()
        self.deny_renewals()
        watch = Watch(self.key)
        status, _, err = self.end(process)
        over, stood_s = watch.end()
        self.allow_renewals()
        self.assertEqual(status, 75, err)
        self.assertIn("its own exit status would have been 137", err)
        left_ms = int(re.search(r"; (\d+) ms of validity left", err).group(1))
        told = re.search(r"SIGTERM now, SIGKILL in (\d+) ms", err)
        last = self.stamps("beats")[-1]
        if not told:  # the machine stalled until there was no time for SIGTERM
            self.measured.append((0, over - ALLOWANCE_S - last, stood_s))
            return last, over - ALLOWANCE_S, stood_s
        # The validity is read again for the command, so it may be less than the library's message says.
        self.assertLessEqual(int(told.group(1)), left_ms - RESERVE_S * 1000)
        self.assertLessEqual(left_ms, GRACE_S * 1000)
        term = self.stamps("terms")[0]
        # Nor too early, on any machine: validity ends before the key by the allowance, and by the time that the renewal
        # took to the nodes.
        self.measured.append((over - ALLOWANCE_S - term, over - ALLOWANCE_S - last, stood_s))
        return last, over - ALLOWANCE_S, stood_s

    def test_term_a_grace_before_the_end_and_kill_in_time(self):
        self.measured = []
        for _ in range(TRIES):
            self.in_time(self.ignores)
            before_term_s, before_kill_s, stood_s = self.measured[-1]
            good = (GRACE_S - RESERVE_S < before_term_s < GRACE_S + RESERVE_S
                    and before_kill_s < 3 * RESERVE_S)
            if good or stood_s < DISTURBED_S:
                break
            for name in ["up", "beats", "terms"]:
                os.unlink(self.path(name))
        if not good and stood_s >= DISTURBED_S:
            self.skipTest(f"this machine stalls too often: {self.measured}")
        self.assertTrue(good, self.measured)

    def test_a_stopped_command_gets_its_term(self):
        def attempt():
            process = self.beat(lease="2s", script="exec {beat} beats leave")
            command = self.command_of(process)
            self.deny_renewals()
            watch = Watch(self.key)
            os.killpg(command, signal.SIGSTOP)
            status, _, err = self.end(process)
            over, stood_s = watch.end()
            self.allow_renewals()
            self.assertEqual(status, 75, err)
            self.assertIn("its own exit status would have been 3", err)
            return self.stamps("terms")[0], over - ALLOWANCE_S, stood_s
        self.in_time(attempt)


if __name__ == "__main__":
    import command_case
    command_case.main()
