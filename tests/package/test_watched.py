#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_watched.py SOURCE BUILD - which tests scripts/test runs again: those that failed while the machine stalled,
and no others. Here only the watch is stalled: a test stops its process for a while."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True  # the tree stays as it is

LIMIT_S = 120
CALM_RUNS_MAX = 20  # until the machine does not stall by itself
# What the test does in each of its runs, by letters: s the watch is stopped, f it fails.
PROGRAM = """
echo run >>"$0.runs"
n=$(wc -l <"$0.runs")
shift $((n - 1))
case $1 in *s*) watch=$(awk '{ print $4 }' /proc/$PPID/stat) && kill -STOP $watch && sleep 0.5 && kill -CONT $watch ;; esac
case $1 in *f*) exit 1 ;; esac
"""


def check(true, text):
    if not true:
        sys.exit(f"test_watched: FAILED: {text}")


class Tests:
    def __init__(self, folder, watched, **plans):
        self.folder, self.watched = folder, watched
        folder.mkdir()
        lines = []
        for name, plan in plans.items():
            (folder / name).write_text(PROGRAM, encoding="ascii")
            lines.append(f'add_test({name} sh {folder}/{name} {" ".join(plan)})\n')
        (folder / "CTestTestfile.cmake").write_text("".join(lines), encoding="ascii")

    def run(self):
        done = subprocess.run([sys.executable, str(self.watched), str(self.folder), "--output-on-failure"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=LIMIT_S, check=False)
        return done.returncode, done.stdout

    def runs(self, name):
        return len((self.folder / f"{name}.runs").read_text(encoding="ascii").splitlines())


def main():
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} SOURCE BUILD")
    watched = Path(sys.argv[1]) / "scripts" / "lib" / "watched.py"
    with tempfile.TemporaryDirectory(prefix="quorlock-watched-") as name:
        top = Path(name)

        tests = Tests(top / "once", watched, one=["sf", "-"], other=["-"])
        status, said = tests.run()
        check(status == 0 and "it is run again" in said and "one: passed" in said, said)
        check((tests.runs("one"), tests.runs("other")) == (2, 1), said)
        check((tests.folder / "junit.xml.2.one").exists(), os.listdir(tests.folder))

        tests = Tests(top / "always", watched, one=["sf"] * 9)
        status, said = tests.run()
        check(status != 0 and tests.runs("one") == 3 and "counts" in said, said)

        # The real machine may stall, too; then that is reported.
        for i in range(CALM_RUNS_MAX):
            tests = Tests(top / f"calm{i}", watched, one=["f", "-"], two=["sf", "-"])
            status, said = tests.run()
            if tests.runs("one") == 1:
                break
        check(status != 0 and "one: Failed" in said and "the failure counts" in said, said)
        check(tests.runs("two") == 2, said)
    print("tests are run again if the machine stalled, and only then")


if __name__ == "__main__":
    main()
