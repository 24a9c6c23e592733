#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Locks of other programs beside the quorlock command: test_locks.py PATH_TO_quorlock RUNTIME FOLDER [TEST...]

RUNTIME is python, node or java, whose registry brings the packages of table.py into FOLDER, once. Without them the tests
are skipped, and in CI those of python and node fail.
"""
import json
import os
import pathlib
import re
import select
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True  # the tree stays as it is
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parents[1] / "integration"))

import command_case
import table
from command_case import LIMIT_S, SERVERS, wait_for

SKIPPED = 77
BRING_S = 250
NAME = "job"
LONG_MS = 30000  # of a lease that does not end in a test
RUNTIME = FOLDER = ""


def asked():
    """How many commands that could take a lock the first server has executed."""
    text = SERVERS[0].ask("INFO", "commandstats").decode()
    return sum(int(calls) for calls in re.findall(r"cmdstat_(?:set|setnx|eval|evalsha):calls=(\d+)", text))


class Theirs:
    """A program of theirs, which takes orders."""

    def __init__(self, case, lock):
        words = {"python": [sys.executable, "-W", "ignore", str(HERE / "locks.py")],
                 "node": ["node", os.path.join(FOLDER, "locks.js")],
                 "java": ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{FOLDER}/classes:{FOLDER}/lib/*", "Locks"]}[RUNTIME]
        self.case = case
        self.process = subprocess.Popen([*words, lock.name, *map(str, SERVERS)], stdin=subprocess.PIPE, text=True,
                                        stdout=subprocess.PIPE, preexec_fn=command_case.die_with_us,
                                        env={**os.environ, "PYTHONPATH": FOLDER})
        self.expect("ready")

    def order(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def answer(self):
        limit_s = (3 if RUNTIME == "java" else 1) * LIMIT_S
        self.case.assertTrue(select.select([self.process.stdout], [], [], limit_s)[0], "no answer in time")
        return self.process.stdout.readline().strip()

    def expect(self, word):
        self.case.assertEqual(self.answer(), word)

    def quiet(self):
        self.case.assertFalse(select.select([self.process.stdout], [], [], 0)[0], "it answered too early")

    def take(self, word, lease_ms=LONG_MS):
        self.order("take", NAME, lease_ms)
        self.expect(word)

    def give(self):
        self.order("give")
        self.expect("given")

    def end(self):
        self.process.kill()
        self.process.communicate()


class Locks(command_case.Case):
    """Of each row of the table."""

    def for_each(self, test, servers=("one", "quorum")):
        for lock in table.LOCKS:
            if lock.runtime != RUNTIME or lock.servers not in servers:
                continue
            with self.subTest(lock=lock.name):
                for server in SERVERS:
                    server.ask("FLUSHALL")
                self.on = SERVERS[:1] if lock.servers == "one" else SERVERS
                self.bootstrap_these()
                theirs = Theirs(self, lock)
                try:
                    test(lock, theirs)
                finally:
                    theirs.end()

    def bootstrap_these(self):
        status, _, err = self.connected("bootstrap", "--yes", env=self.those())
        self.assertEqual((status, err), (0, ""))

    def those(self):
        return {"QUORLOCK_NODES": ",".join(map(str, self.on))}

    def run_once(self, lock, *options):
        """Status, output and messages of a command under the lock, which does not wait."""
        return self.connected("run", *options, *lock.options, NAME, "--", "echo", "ran", env=self.those())

    def hold_ours(self, lock):
        """A command of ours that holds the lock until its input ends."""
        process = self.start("run", *lock.options, NAME, "--", "sh", "-c", "echo held; read -r line || :",
                             stdin=subprocess.PIPE, env=self.those())
        self.assertTrue(select.select([process.stdout], [], [], LIMIT_S)[0])
        self.assertEqual(os.read(process.stdout.fileno(), 100), b"held\n")
        return process

    def test_theirs_excludes_ours(self):
        def test(lock, theirs):
            theirs.take("yes")
            # It may not have waited for the last of a quorum's servers.
            holding = wait_for(lambda: [server for server in self.on if server.ask("EXISTS", lock.key)][:len(self.on) // 2 + 1])
            value = holding[0].ask("GET", lock.key).decode()
            self.assertRegex(value, f"^{lock.value}$")
            for server in holding:
                self.assertEqual(server.ask("GET", lock.key).decode(), value)
                self.assertTrue(0 < server.ask("PTTL", lock.key) <= LONG_MS)
            status, out, err = self.run_once(lock, "-n")
            self.assertEqual((status, out), (1, ""), err)
            report = json.loads(self.connected("inspect", "--json", *lock.options, NAME, env=self.those())[1])
            self.assertEqual((report["held"], report["holder"]), (True, value))
            theirs.give()
            status, out, err = self.run_once(lock)
            self.assertEqual((status, out, err), (0, "ran\n", ""))
        self.for_each(test)

    def test_ours_excludes_theirs(self):
        def test(lock, theirs):
            ours = self.hold_ours(lock)
            theirs.take("no")
            status, _, err = self.end(ours)
            self.assertEqual((status, err), (0, ""))
            theirs.take("yes")
        self.for_each(test)

    def test_each_waits_for_the_other(self):
        """Where our release tells theirs nothing, a command after it does."""
        def test(lock, theirs):
            ours = self.hold_ours(lock)
            before = asked()
            theirs.order("wait", NAME, LONG_MS)
            if lock.asleep:
                words, answer = lock.asleep
                wait_for(lambda: answer in str(SERVERS[0].ask(*words)), 3 * LIMIT_S)
            else:
                wait_for(lambda: asked() > before)
            theirs.quiet()
            self.end(ours)
            told = [SERVERS[0].ask(*command.split()) for command in lock.wake]
            self.assertNotIn(0, told[:1])
            theirs.expect("yes")
            ours = self.start("run", *lock.options, NAME, "--", "echo", "ran", env=self.those())
            self.await_words(ours, b"waiting for")
            theirs.give()
            self.assertEqual(self.end(ours)[:2], (0, "ran\n"))
        self.for_each(test)

    def test_one_server_does_not_exclude_a_quorum_and_only_a_renewal_tells(self):
        def test(lock, theirs):
            self.on = SERVERS
            SERVERS[0].ask("FLUSHALL")
            self.bootstrap_these()
            theirs.take("yes")
            # Both have it now. That may be told already, where the server is ready after the grant.
            self.assertEqual(self.run_once(lock, "-n")[:2], (0, "ran\n"))
            self.assertRegex(SERVERS[0].ask("GET", lock.key).decode(), f"^{lock.value}$")
            ours = self.start("run", "--lease", "1s", *lock.options, NAME, "--", "cat", stdin=subprocess.PIPE, env=self.those())
            self.await_words(ours, b"by another program: see quorlock-interop(7)")
            self.assertEqual(self.end(ours)[0], 0)
            theirs.give()
        self.for_each(test, ("one",))


def bring():
    """What brings the packages, in words."""
    if RUNTIME == "python":
        return [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade", "--target", FOLDER,
                *table.pip_packages()]
    if RUNTIME == "java":
        return ["mvn", "-B", "-q", "-ntp", "-Dstyle.color=never", "-f", str(HERE / "pom.xml"), f"-Dout={FOLDER}", "compile",
                "dependency:copy-dependencies"]
    for name in ("package.json", "package-lock.json", "locks.js"):
        shutil.copy(HERE / name, FOLDER)
    return ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]


def leave(why):
    in_ci = os.environ.get("CI", "") not in ("", "0", "false") and RUNTIME != "java"
    print(f"{'FAILED' if in_ci else 'SKIPPED'} locks of {RUNTIME}: {why}")
    sys.exit(1 if in_ci else SKIPPED)


def prepare():
    os.makedirs(FOLDER, exist_ok=True)
    stamp = pathlib.Path(FOLDER, "prepared")
    for tool in {"python": [], "node": ["node", "npm"], "java": ["mvn", "javac"]}[RUNTIME]:
        if shutil.which(tool) is None:
            leave(f"no {tool} here; scripts/setup --for interop installs it")
    words = bring()
    wanted = "\n".join([sys.version, *words, *(path.read_text(encoding="utf-8") for path in sorted([*HERE.glob("*.js*"), *HERE.glob("pom.xml"), *HERE.glob("src/*")]))])
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    found = subprocess.run(words, cwd=FOLDER, timeout=BRING_S, capture_output=True, text=True, check=False)
    if found.returncode != 0:
        leave(f"{words[0]} cannot bring the packages: {(found.stdout + found.stderr)[-300:]}")
    stamp.write_text(wanted, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit("usage: test_locks.py PATH_TO_quorlock python|node|java FOLDER [TEST...]")
    RUNTIME, FOLDER = sys.argv[2], os.path.abspath(sys.argv[3])
    del sys.argv[2:4]
    prepare()
    command_case.main()
