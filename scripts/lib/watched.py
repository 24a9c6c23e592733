# SPDX-License-Identifier: BSD-3-Clause
"""Runs CTest, and watches whether the machine stalls meanwhile.

usage: watched.py FOLDER CTEST-OPTION...

On a shared machine all processes may stall for a second. A lock then ends as it should and its test fails, though neither
is wrong. So a failed test is run again, alone, if the machine is known to have stalled during the test: a thread of this
process on each core, which only sleeps, woke STALL_MS too late. Otherwise the failure counts; so it does after TRIES, or
when repeated tests have taken AGAIN_S. The threads have the same niceness as the tests, so that they wait for a core as
the tests do.

FOLDER holds CTestTestfile.cmake. It gets "log", the output of CTest; "junit.xml"; and junit.xml.N.TEST if a test was run
for the Nth time. Standard output: a line for each failure, with the length of the stall. Exit status: that of CTest, or 0
if all failed tests passed later.
"""
import os
import re
import subprocess
import sys
import threading
import time

NAP_S = 0.01
STALL_MS = 100  # a longer stall may make a test miss its deadlines
RECORD_MS = 20
TRIES = 3
AGAIN_S = 300  # the longest time for running failed tests again
ENDED = re.compile(r"^ *\d+/\d+ Test +#\d+: (\S+) [ .]*(\*\*\*)?(.*?) +([0-9.]+) sec")


class Watch:
    """Records the stalls: when the threads should have woken, and when they did."""

    def __init__(self):
        self.stalls = []  # (from, until) by the monotonic clock
        for core in sorted(os.sched_getaffinity(0)):
            threading.Thread(target=self.sleep, args=(core,), daemon=True).start()

    def sleep(self, core):
        os.sched_setaffinity(0, {core})  # for this thread
        before = time.monotonic()
        while True:
            time.sleep(NAP_S)
            now = time.monotonic()
            if (now - before - NAP_S) * 1000 >= RECORD_MS:
                self.stalls.append((before + NAP_S, now))
            before = now

    def stall_ms(self, begin, end):
        """The longest stall that overlaps this time."""
        time.sleep(2 * NAP_S)  # a thread that was just stalled is about to record it
        stalls = list(self.stalls)
        return max((1000 * (until - since) for since, until in stalls if since <= end and until >= begin), default=0)


class Failure:
    def __init__(self, name, how, stall_ms):
        self.name, self.how, self.stall_ms = name, how, stall_ms

    def report(self, attempt):
        verdict = "it is run again" if self.of_machine() and attempt < TRIES else "the failure counts"
        print(f"time {attempt}  {self.name}: {self.how}; the machine stalled for {self.stall_ms:.0f} ms: {verdict}",
              flush=True)

    def of_machine(self):
        return self.stall_ms >= STALL_MS and self.how != "Not Run"


class Run:
    def __init__(self, folder, options):
        self.folder, self.options, self.watch = folder, options, Watch()

    def ctest(self, log, report, *options):
        """(exit status, failures); a test that could not be run counts as a failure"""
        words = ["ctest", "--test-dir", self.folder, *self.options, *options, "--output-junit",
                 os.path.join(self.folder, report)]
        failures = []
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              encoding="utf-8", errors="replace") as process:
            for line in process.stdout:
                now = time.monotonic()
                log.write(line)
                ended = ENDED.match(line)
                if ended is not None and ended[2] is not None and ended[3] != "Skipped":
                    failures.append(Failure(ended[1], ended[3], self.watch.stall_ms(now - float(ended[4]), now)))
        return process.returncode, failures

    def again(self, log, name, until):
        """Runs the test again, unless it is too late; returns whether it passes."""
        for attempt in range(2, TRIES + 1):
            if time.monotonic() > until:
                print(f"time {attempt}  {name}: not run, others took {AGAIN_S} s", flush=True)
                break
            status, failures = self.ctest(log, f"junit.xml.{attempt}.{name}", "-j", "1", "-R", f"^{re.escape(name)}$")
            if status == 0:
                print(f"time {attempt}  {name}: passed", flush=True)
                return True
            for failure in failures:
                failure.report(attempt)
            if not failures or not all(failure.of_machine() for failure in failures):
                break
        return False

    def whole(self):
        with open(os.path.join(self.folder, "log"), "w", encoding="utf-8", errors="replace") as log:
            status, failures = self.ctest(log, "junit.xml")
            for failure in failures:
                failure.report(1)
            until = time.monotonic() + AGAIN_S
            passed = [failure.of_machine() and self.again(log, failure.name, until) for failure in failures]
            return 0 if failures and all(passed) else status


def main():
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        os._exit(64)
    status = Run(sys.argv[1], sys.argv[2:]).whole()
    os._exit(status if status >= 0 else 128 - status)  # the threads sleep on


main()
