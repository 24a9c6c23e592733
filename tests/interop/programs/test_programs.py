#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Whether what the programs of programs.py start ends with the lock: test_programs.py PATH_TO_quorlock [TEST...]

QUORLOCK_ONLY is a part of the names of the programs to try. One that is not there is skipped, by name."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # the tree stays as it is
sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[2] / "integration"))

import command_case
import programs
from command_case import SERVERS, Bootstrapped, state, wait_for
from programs import ENDS, GOES_ON, KILLED, VARIES
from test_command_contain import LEFT_S, permits

FOR_ROOT = ("sudo", "su", "runuser")
WORK = """#!/bin/sh
cd {folder}
trap 'echo >termed; {on_term}' TERM
echo >up
while [ ! -e let_go ]; do sleep 0.02; done
"""


class Programs(Bootstrapped):
    def begin(self, program, options, on_term):
        """quorlock, in a folder where every user may write."""
        self.folder = tempfile.mkdtemp(dir=command_case.FOLDER)
        os.chmod(command_case.FOLDER, 0o711)
        os.chmod(self.folder, 0o777)
        self.work = pathlib.Path(self.path("work"))
        self.work.write_text(WORK.format(folder=self.folder, on_term=on_term), encoding="ascii")
        self.work.chmod(0o755)
        words = [word.format(work=self.work) for word in program.words]
        with open(self.path("log"), "wb") as log:
            process = self.start("run", "--lease", "5s", *options, self.key, "--", *words, cwd=self.folder, stdin=subprocess.DEVNULL,
                                 stdout=log, stderr=log)
        wait_for(lambda: os.path.exists(self.path("up")) or process.poll() is not None)
        self.assertIsNone(process.poll(), self.read("log"))
        return process

    def works(self):
        """Whether the script runs."""
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = pathlib.Path("/proc", name, "cmdline").read_bytes().split(b"\0")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if words[:2] == [b"/bin/sh", str(self.work).encode()] and state(name) not in "ZX":
                return True
        return False

    def assert_it(self, wanted):
        if wanted == GOES_ON:
            time.sleep(LEFT_S)
            self.assertTrue(self.works(), "it has ended")
        elif wanted != VARIES:
            wait_for(lambda: not self.works())
        if wanted == KILLED:
            self.assertFalse(os.path.exists(self.path("termed")))

    def try_it(self, program, options, event, wanted):
        process = self.begin(program, options, "exit 1" if event == "term" else "")
        try:
            if event == "term":
                process.send_signal(signal.SIGTERM)
            else:
                for server in SERVERS:
                    server.ask("SET", self.key, "somebody else")
            status = process.wait(timeout=command_case.LIMIT_S)
            self.assertTrue(event == "term" or status == 75, self.read("log"))
            self.assert_it(wanted)
        finally:
            pathlib.Path(self.path("let_go")).touch()
            wait_for(lambda: not self.works())
            self.forget_faketime()
            for server in SERVERS:
                server.ask("DEL", self.key)

    def tries(self):
        """The programs that are here."""
        for program in programs.PROGRAMS:
            needs = program.needs or program.words[0]
            if os.environ.get("QUORLOCK_ONLY", "") not in program.name:
                continue
            if not shutil.which(needs) or needs in FOR_ROOT and os.geteuid() != 0:
                print(f"SKIPPED {program.name}: no {needs} here, or we are not root; scripts/setup --for more installs it", flush=True)
                continue
            yield program

    def test_each_does_what_the_page_says(self):
        for program in self.tries():
            for options in ((), ("--subreaper", "--group", "end")):
                for event in ("loss", "term"):
                    with self.subTest(program=program.name, options=options, event=event):
                        self.try_it(program, options, event, getattr(program, event))

    def test_each_ends_where_it_is_contained(self):
        for kind in ("pid", "cgroup"):
            if not permits(kind):
                print(f"SKIPPED --contain {kind}: this machine does not permit it", flush=True)
                continue
            for program in self.tries():
                with self.subTest(program=program.name, contain=kind):
                    self.try_it(program, ("--contain", kind), "loss", ENDS)

    @staticmethod
    def forget_faketime():
        """One that was killed leaves names with its process id, which another gets: soon, in a namespace."""
        for name in pathlib.Path("/dev/shm").glob("*faketime_s*_*"):
            number = name.name.rpartition("_")[2]
            if number.isdigit() and (int(number) < 10 or not os.path.exists(f"/proc/{number}")):
                name.unlink(missing_ok=True)

    def with_clock(self, lease, rate):
        """quorlock itself has that clock."""
        if not shutil.which("faketime"):
            self.skipTest("no faketime here; scripts/setup --for more installs it")
        script = pathlib.Path(self.path("quorlock"))
        script.write_text(f"#!/bin/sh\nexec faketime -f '{rate}' {command_case.QUORLOCK} \"$@\"\n", encoding="ascii")
        script.chmod(0o755)
        before, command_case.QUORLOCK = command_case.QUORLOCK, str(script)
        try:
            return self.shell("--lease", lease, script=">up; while [ ! -e go ]; do sleep 0.02; done")
        finally:
            command_case.QUORLOCK = before

    def test_quorlock_at_another_time_of_day_keeps_its_lock(self):
        process = self.with_clock("10s", "-1d")
        renewals, last = 0, SERVERS[0].ask("PTTL", self.key)
        end = time.monotonic() + command_case.LIMIT_S
        while renewals < 2:
            self.assertLess(time.monotonic(), end)
            now = SERVERS[0].ask("PTTL", self.key)
            renewals, last = renewals + (now > last), now
        pathlib.Path(self.path("go")).touch()
        self.assertEqual(self.end(process), (0, "", ""))

    def test_quorlock_with_a_slow_clock_outlives_its_lock(self):
        """The caveat."""
        process = self.with_clock("2s", "+0 x0.05")
        wait_for(lambda: self.values() == [None] * len(SERVERS))
        self.assertIsNone(process.poll())
        pathlib.Path(self.path("go")).touch()
        self.assertEqual(self.end(process)[0], 75)


if __name__ == "__main__":
    command_case.WHOLE_LIMIT_S = 1000
    command_case.main()
