#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock run under a supervisor: what it tells it, and lines for the journal: test_notify.py PATH_TO_quorlock [TEST...]"""
import configparser
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import LIMIT_S, SERVERS, Bootstrapped, wait_for

UNITS = Path(__file__).resolve().parents[2] / "src" / "packaging"
WORK = ">up; while [ ! -e go ]; do sleep .01; done"


class Notify(Bootstrapped):
    def setUp(self):
        super().setUp()
        self.listen(self.path("notify"))

    def listen(self, name):
        """The supervisor's socket."""
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.socket.close)
        self.socket.settimeout(LIMIT_S)
        self.socket.bind(name)

    def environment(self, **more):
        return {"NOTIFY_SOCKET": self.path("notify"), **more}

    def next(self):
        return self.socket.recv(4096).decode()

    def until(self, wanted):
        """All messages up to the first that holds the text."""
        found = [self.next()]
        while wanted not in found[-1]:
            found.append(self.next())
        return found

    def go(self):
        open(self.path("go"), "w").close()

    def test_ready_when_the_lock_is_held(self):
        self.hold("someone-else-entirely", count=3)
        process = self.start("run", self.key, "--", "sh", "-c", f"cd {self.folder}; {WORK}", env=self.environment())
        waiting = self.next()
        self.assertTrue(waiting.startswith(f'STATUS=waiting for "{self.key}": '), waiting)
        self.assertIn("someone-", waiting)
        self.assertFalse(os.path.exists(self.path("up")))
        for server in SERVERS:
            server.ask("DEL", self.key)
        *before, ready = self.until("READY=1")
        self.assertTrue(all(message.startswith("STATUS=waiting for") for message in before), before)
        self.assertEqual(ready, f'READY=1\nSTATUS=sh runs under "{self.key}"')
        self.wait_file("up", process)
        self.go()
        self.assertEqual(self.until("STOPPING=1")[-1], f'STOPPING=1\nSTATUS=releasing "{self.key}"')
        self.assertEqual(self.end(process)[0], 0)

    def test_an_abstract_name(self):
        name = f"quorlock-{os.getpid()}-{self.key}"
        self.listen("\0" + name)
        process = self.start("run", self.key, "--", "true", env={"NOTIFY_SOCKET": "@" + name})
        self.assertEqual(self.end(process)[0], 0)
        self.assertEqual([message.split("\n")[0] for message in (self.next(), self.next())], ["READY=1", "STOPPING=1"])

    def test_no_lock(self):
        self.hold("someone-else-entirely", count=3)
        process = self.start("run", "-n", self.key, "--", "true", env=self.environment())
        self.assertEqual(self.end(process)[0], 1)
        self.assertEqual(self.next(), f'STOPPING=1\nSTATUS=no lock on "{self.key}"')

    def test_a_candidate_is_ready_before_it_leads(self):
        self.hold("someone-else-entirely", count=3)
        process = self.start("elect", self.key, "--", "true", env=self.environment())
        self.assertEqual(self.next(), f'READY=1\nSTATUS=candidate for "{self.key}"')
        process.terminate()
        self.assertEqual(self.until("STOPPING=1")[-1], f'STOPPING=1\nSTATUS=resigning from "{self.key}"')
        self.assertEqual(self.end(process)[0], 128 + signal.SIGTERM)

    def test_the_watchdog_is_fed_while_the_lock_is_renewed(self):
        env = self.environment(WATCHDOG_USEC="100000")
        self.hold("someone-else-entirely", count=3)
        process = self.start("run", "--lease", "4s", self.key, "--", "sh", "-c", f"cd {self.folder}; trap '' TERM; {WORK}",
                             env=env)
        self.until("WATCHDOG=1")  # while it waits, too
        for server in SERVERS:
            server.ask("DEL", self.key)
        self.until("READY=1")
        for _ in range(3):
            self.until("WATCHDOG=1")
        for server in SERVERS:
            server.freeze()
        self.until(f'STATUS=ending the command: "{self.key}" is lost')
        self.until("STOPPING=1")
        self.assertEqual(self.end(process)[0], 75)

    def test_not_while_it_stands_still(self):
        process = self.start("run", self.key, "--", "sh", "-c", f"cd {self.folder}; {WORK}",
                             env=self.environment(WATCHDOG_USEC="100000"))
        self.until("WATCHDOG=1")
        process.send_signal(signal.SIGSTOP)
        wait_for(lambda: command_case.state(process.pid) == "T")
        self.socket.settimeout(0.5)
        # What was sent before it stalled, and no more.
        with self.assertRaises(TimeoutError):
            for _ in range(100):
                self.next()
        process.send_signal(signal.SIGCONT)
        self.socket.settimeout(LIMIT_S)
        self.until("WATCHDOG=1")
        self.go()
        self.assertEqual(self.end(process)[0], 0)

    def test_the_watchdog_of_another_process(self):
        for env in [{"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "0"}, {"WATCHDOG_USEC": "x"}, {}]:
            process = self.start("run", self.key, "--", "sleep", "0.05", env=self.environment(**env))
            self.assertEqual(self.end(process)[0], 0)
            found = self.until("STOPPING=1")
            self.assertFalse([message for message in found if "WATCHDOG" in message], found)

    def test_the_command_does_not_inherit_it(self):
        status, out, _ = self.quorlock("run", self.key, "--", "env", env=self.environment(WATCHDOG_USEC="1000000",
                                                                                         WATCHDOG_PID="1"))
        self.assertEqual(status, 0)
        self.assertNotRegex(out, "NOTIFY_SOCKET|WATCHDOG")

    def test_a_supervisor_that_does_not_read_or_is_not_there(self):
        other = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        other.connect(self.path("notify"))
        other.setblocking(False)
        try:
            while True:
                other.send(b"full")
        except BlockingIOError:
            pass
        other.close()
        for name in (self.path("notify"), "/nonexistent", "relative", "@", "", "/" + "x" * 200):
            status, out, err = self.quorlock("run", self.key, "--", "echo", "ran",
                                             env={"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "1000"})
            self.assertEqual((status, out, err), (0, "ran\n", ""), name)

    def units(self):
        """The units as they are installed, in our folder: their paths."""
        found = []
        for source in sorted(UNITS.glob("quorlock*@.*")):
            text = source.read_text(encoding="utf-8").replace("@BINDIR@/quorlock", command_case.QUORLOCK)
            found.append(Path(self.path(source.name.removesuffix(".in"))))
            found[-1].write_text(text.replace("@WANTED_BY@", "multi-user.target"), encoding="utf-8")
            self.assertNotRegex(found[-1].read_text(encoding="utf-8"), "@[A-Z]+@")
        return found

    def test_the_units_are_understood(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("no systemd-analyze")
        units = self.units()
        self.assertEqual(len(units), 3)
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *units], check=False,
                              capture_output=True, text=True, timeout=LIMIT_S)
        wrong = [line for line in done.stderr.splitlines() if "quorlock" in line]
        self.assertEqual((done.returncode, wrong), (0, []), done.stderr)

    def test_a_unit_is_restarted_for_ever_and_a_job_is_not(self):
        job, service = (configparser.ConfigParser(strict=False, interpolation=None) for _ in range(2))
        for parser, name in ((job, "quorlock-job@.service.in"), (service, "quorlock@.service.in")):
            parser.read(UNITS / name)
        self.assertEqual(service["Unit"].get("StartLimitIntervalSec"), "0")  # else five quick ends are the last
        self.assertEqual(service["Service"]["Restart"], "always")
        self.assertGreaterEqual(int(service["Service"]["RestartSec"].removesuffix("s")), 5)
        self.assertEqual((job["Service"]["Type"], job["Service"].get("Restart", "no")), ("oneshot", "no"))

    def test_the_job_of_a_unit_that_another_machine_does(self):
        line, = re.findall("ExecStart=.*/quorlock (.*)", (UNITS / "quorlock-job@.service.in").read_text(encoding="utf-8"))
        words = line.replace("%I", self.key).replace("$OPTIONS ", "").replace("$COMMAND", "echo ran").split()
        self.assertEqual(self.quorlock(*words)[:2], (0, "ran\n"))
        self.hold("someone-else-entirely", count=3)
        status, out, err = self.quorlock(*words)
        self.assertEqual((status, out), (0, ""), err)
        self.assertIn("is held by", err)


class Journal(Bootstrapped):
    def lines(self, *args, stream=None):
        """(status, lines): with stderr to a pipe that JOURNAL_STREAM names, or another."""
        reader, writer = os.pipe()
        found = os.fstat(writer)
        process = self.start("run", *args, stderr=writer, env={"JOURNAL_STREAM": stream or f"{found.st_dev}:{found.st_ino}"})
        os.close(writer)
        with os.fdopen(reader, encoding="utf-8") as file:
            lines = file.read().splitlines()
        return self.end(process)[0], lines

    def test_lines_have_levels(self):
        status, lines = self.lines("-vv", self.key, "--", "true")
        self.assertEqual(status, 0)
        self.assertTrue(all(re.match(r"<[67]>(?!quorlock: )", line) for line in lines), lines)
        self.assertTrue(any(line.startswith(f'<6>granted "{self.key}"') for line in lines), lines)
        self.hold("someone-else-entirely", count=3)
        status, lines = self.lines("-n", self.key, "--", "true")
        self.assertEqual((status, len(lines)), (1, 1), lines)
        self.assertTrue(lines[0].startswith(f'<3>"{self.key}" is held by'), lines)
        for verbose, wanted in (("-v", False), ("-vv", True)):
            _, lines = self.lines(verbose, "--wait", "1s", self.key, "--", "true")
            self.assertEqual(any(line.startswith("<7>") for line in lines), wanted, lines)
        SERVERS[0].kill()
        _, lines = self.lines("-n", self.key, "--", "true")
        self.assertTrue(any(re.match(r"<4>\S+: down: ", line) for line in lines), lines)

    def test_another_stream_is_no_journal(self):
        for stream in ("1:1", "x", "0:0"):
            status, lines = self.lines("-v", self.key, "--", "true", stream=stream)
            self.assertEqual(status, 0)
            self.assertTrue(all(line.startswith("quorlock: ") for line in lines), lines)


if __name__ == "__main__":
    command_case.main()
