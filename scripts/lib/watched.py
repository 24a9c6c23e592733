# SPDX-License-Identifier: BSD-3-Clause
"""Runs CTest and watches beside it whether the machine stands still.

usage: watched.py FOLDER CTEST-OPTION...

On a machine that others share every process may stand still for a second, and a lock then ends as it should: its test
fails, and neither of them is wrong. So a test that failed is run again, by itself, if the machine is known to have
stood still meanwhile: a thread of this process, one on each core, only sleeps, and woke STILL_MS too late. Without that
the failure stands, as it does after TRIES, or when AGAIN_S have gone into that. The thread runs as nice as the tests,
so that it waits for a core as they do.

FOLDER holds CTestTestfile.cmake. It gets "log", what CTest said; "junit.xml"; and junit.xml.N.TEST where a test was run
for the Nth time. Standard output: a line for each failure, with how long the machine stood still. Exit status: of
CTest; 0 where all that failed passed later.
"""
import os
import re
import subprocess
import sys
import threading
import time

NAP_S = 0.01
STILL_MS = 100  # tests leave little more between a deadline and what must be done by then
TOLD_MS = 20
TRIES = 3
AGAIN_S = 300  # no test is run again when so long was spent on that
ENDED = re.compile(r"^ *\d+/\d+ Test +#\d+: (\S+) [ .]*(\*\*\*)?(.*?) +([0-9.]+) sec")


class Watch:
    """When the threads should have woken, and when they woke."""

    def __init__(self):
        self.stills = []  # (from, until) by the monotonic clock
        for core in sorted(os.sched_getaffinity(0)):
            threading.Thread(target=self.sleep, args=(core,), daemon=True).start()

    def sleep(self, core):
        os.sched_setaffinity(0, {core})  # of this thread
        before = time.monotonic()
        while True:
            time.sleep(NAP_S)
            now = time.monotonic()
            if (now - before - NAP_S) * 1000 >= TOLD_MS:
                self.stills.append((before + NAP_S, now))
            before = now

    def still_ms(self, begin, end):
        """The longest that touches this time."""
        time.sleep(2 * NAP_S)  # a thread that just stood still is about to tell
        stills = list(self.stills)
        return max((1000 * (until - since) for since, until in stills if since <= end and until >= begin), default=0)


class Failure:
    def __init__(self, name, how, still_ms):
        self.name, self.how, self.still_ms = name, how, still_ms

    def tell(self, attempt):
        verdict = "it is run again" if self.of_machine() and attempt < TRIES else "the failure stands"
        print(f"time {attempt}  {self.name}: {self.how}; the machine stood still for {self.still_ms:.0f} ms: {verdict}",
              flush=True)

    def of_machine(self):
        return self.still_ms >= STILL_MS and self.how != "Not Run"


class Run:
    def __init__(self, folder, options):
        self.folder, self.options, self.watch = folder, options, Watch()

    def ctest(self, log, report, *options):
        """(exit status, failures); a test that could not be run is one"""
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
                    failures.append(Failure(ended[1], ended[3], self.watch.still_ms(now - float(ended[4]), now)))
        return process.returncode, failures

    def again(self, log, name, until):
        """Whether it passes now; it is not begun later than that."""
        for attempt in range(2, TRIES + 1):
            if time.monotonic() > until:
                print(f"time {attempt}  {name}: not run, others took {AGAIN_S} s", flush=True)
                break
            status, failures = self.ctest(log, f"junit.xml.{attempt}.{name}", "-j", "1", "-R", f"^{re.escape(name)}$")
            if status == 0:
                print(f"time {attempt}  {name}: passed", flush=True)
                return True
            for failure in failures:
                failure.tell(attempt)
            if not failures or not all(failure.of_machine() for failure in failures):
                break
        return False

    def whole(self):
        with open(os.path.join(self.folder, "log"), "w", encoding="utf-8", errors="replace") as log:
            status, failures = self.ctest(log, "junit.xml")
            for failure in failures:
                failure.tell(1)
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
