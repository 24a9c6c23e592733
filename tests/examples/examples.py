# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the examples share: redis-servers of their own, an account in SQLite, and workers.

Nothing here waits by sleeping in hope: every wait is for a line that a worker says or for a state of a process,
with a generous limit.
"""
import atexit
import contextlib
import os
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import redis_server
from redis_server import as_text, die_with_us

LIMIT_S = 60  # for anything that must happen at all
WHOLE_LIMIT_S = 280  # CTest's own is longer; this one still cleans up
MAX_LEASE_MS = 30_000  # the library's default
TRIES = 10
MORE = 50  # lines of a worker that are shown
START_BALANCE = 100
PROGRAMS = FOLDER = ""
STARTED = []  # every process of this test


def start(words, **more):
    process = subprocess.Popen([str(word) for word in words], preexec_fn=die_with_us, **more)
    STARTED.append(process)
    return process


def check(truth, text):
    """A test of its own, for python -O leaves assertions out."""
    if not truth:
        raise AssertionError(text)


def await_that(truth, text):
    """truth() becomes true; it is asked again and again."""
    end = time.monotonic() + LIMIT_S
    while not truth():
        check(time.monotonic() < end, text() if callable(text) else text)
        time.sleep(0.005)


class TooBusy(Exception):
    """The machine was too busy for what was to be shown: nothing was wrong, and nothing was shown."""


def try_often(form, *words):
    """What form() gives as soon as the machine is not too busy for it."""
    for _ in range(TRIES):
        try:
            return form(*words)
        except TooBusy as reason:
            print(f"too busy a machine, tried again: {reason}", flush=True)
            last = reason
        finally:
            stop_all()
    raise AssertionError(f"too busy a machine in {TRIES} tries; the last: {last}")


def clock_us():
    """The clock of the workers' lines."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


class Server(redis_server.Server):
    """Its memory outlives its process, until it is replaced."""

    def __init__(self, number):
        folder = tempfile.mkdtemp(prefix="server-", dir=FOLDER)
        super().__init__(folder, number, "--appendonly", "yes", "--appendfsync", "always")

    def start(self):
        super().start()
        STARTED.append(self.process)

    def ask(self, *words):
        """One command; the answer as text, None for nil, a list of those for an array."""
        return as_text(super().ask(*words))

    def running(self):
        return self.process.poll() is None

    def come_back(self):
        """With its memory."""
        self.start()

    def copy_memory(self):
        """What it has now, for replace(). It must have nothing to do meanwhile."""
        copy = tempfile.mkdtemp(prefix="memory-", dir=FOLDER)
        return shutil.copytree(os.path.join(self.folder, "appendonlydir"), copy, dirs_exist_ok=True)

    def replace(self, memory=None):
        """Dies, and one that is empty, or has that memory, takes its address."""
        self.kill()
        self.come_back_empty(memory)

    def come_back_empty(self, memory=None):
        folder = os.path.join(self.folder, "appendonlydir")
        shutil.rmtree(folder, ignore_errors=True)
        for name in os.listdir(self.folder):
            if name.endswith(".aof"):
                os.remove(os.path.join(self.folder, name))
        if memory is not None:
            shutil.copytree(memory, folder)
        self.start()


class Fixture:
    """Three servers on which the largest lease is so long, and an account with START_BALANCE in it."""

    def __init__(self, max_lease_ms):
        self.servers = [Server(number) for number in range(3)]
        self.bootstrap(max_lease_ms)
        self.database = os.path.join(tempfile.mkdtemp(prefix="account-", dir=FOLDER), "account.db")
        self.sql("PRAGMA journal_mode = WAL")
        self.sql("CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL, fence INTEGER NOT NULL)")
        self.sql(f"INSERT INTO account VALUES (1, {START_BALANCE}, 0)")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        stop_all()

    def bootstrap(self, max_lease_ms):
        """It writes nothing where it does not reach all servers: a machine too busy for that tries again."""
        # Every client of these servers has the same.
        os.environ["EXAMPLE_MAX_LEASE_MS"] = str(max_lease_ms)
        end = time.monotonic() + LIMIT_S
        down = True
        while down:
            bootstrap = Worker("bootstrap", "bootstrap", max_lease_ms, *self.servers)
            states = [bootstrap.expect("bootstrapped", "free", "down")["what"] for _ in self.servers]
            down = "down" in states and time.monotonic() < end
            if down:
                bootstrap.process.wait(LIMIT_S)
        check(states == ["bootstrapped"] * len(states), f"not bootstrapped, but {states}")
        bootstrap.end()

    def sql(self, text):
        connection = sqlite3.connect(self.database, timeout=LIMIT_S)
        try:
            with connection:
                return connection.execute(text).fetchall()
        finally:
            connection.close()

    @contextlib.contextmanager
    def writes_held(self):
        """Writers of the database stall until this ends; readers do not."""
        connection = sqlite3.connect(self.database, timeout=LIMIT_S, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
            yield
        finally:
            connection.close()

    def number(self, text):
        return self.sql(text)[0][0]

    def await_inside(self, key):
        """Somebody has the lock: one token is at the key on two servers."""
        def held():
            holders = [holder for holder in self.holders(key) if holder]
            return len(holders) > len(set(holders))
        await_that(held, lambda: f"no worker gets the lock: {self.holders(key)}")

    def await_free(self, key):
        """Two servers have no such key. The third may have one of a holder that ended while it was down."""
        await_that(lambda: self.holders(key).count(None) >= 2, lambda: f"no worker is inside: {self.holders(key)}")

    def await_no_key(self, key):
        """A server that was too slow for the release itself gets it later."""
        await_that(lambda: not any(self.holders(key)), lambda: f"keys are left: {self.holders(key)}")

    def balance(self):
        return self.sql("SELECT balance FROM account")[0][0]

    def holders(self, key):
        """What stands at the key, server by server."""
        return [server.ask("GET", key) if server.running() else None for server in self.servers]


class Worker:
    """A process of an example, and the lines that it says."""

    def __init__(self, name, *words, env=None):
        self.name = name
        self.log = tempfile.TemporaryFile(dir=FOLDER)
        self.process = start([os.path.join(PROGRAMS, words[0]), *words[1:]], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=self.log, env=env)
        self.unread = b""
        self.said = []

    def fail(self, text):
        self.log.seek(0)
        raise AssertionError(f"{self.name} {text}; it said:\n  " + "\n  ".join(self.said[-MORE:])
                             + "\nand on stderr:\n" + "\n".join(self.log.read().decode().splitlines()[-MORE:]))

    def line(self, wanted):
        """Its next line; None where there is none any more, and none is wanted."""
        end = time.monotonic() + LIMIT_S
        while b"\n" not in self.unread:
            if not select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))[0]:
                self.fail(f"did not say '{wanted or 'more, nor end,'}' within {LIMIT_S} s")
            part = os.read(self.process.stdout.fileno(), 65536)
            if not part and wanted is None:
                return None
            if not part:
                self.fail(f"ended before it said '{wanted}'")
            self.unread += part
        line, self.unread = self.unread.split(b"\n", 1)
        self.said.append(line.decode())
        return self.said[-1]

    def expect(self, *wanted):
        """Its next line, which must be one of these events, as a dict."""
        event = self.event(self.line(" or ".join(wanted)))
        if event["what"] not in wanted:
            self.fail(f"said '{event['what']}' and not '{' or '.join(wanted)}'")
        return event

    @staticmethod
    def event(line):
        words = line.split()
        words[1] = words[1].rstrip(":")
        event = dict(word.rstrip(":").split("=", 1) for word in words[2:] if "=" in word)
        event.update(what=words[1], t_us=int(words[0]))
        return event

    def await_event(self, what):
        """The next of these; what it says before is passed over."""
        while (event := self.event(self.line(what)))["what"] != what:
            pass
        return event

    def rest(self):
        """All that it says until it ends, which it must do well."""
        events = []
        while (line := self.line(None)) is not None:
            events.append(self.event(line))
        self.end()
        return events

    def tell(self, text):
        try:
            os.write(self.process.stdin.fileno(), f"{text}\n".encode())
        except BrokenPipeError:
            pass  # it has ended: its lines say why

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)
        self.await_stop()

    def await_stop(self):
        """Stopped is stopped only when the kernel says so."""
        _, status = os.waitpid(self.process.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            self.fail("ended and did not stop")

    def wake(self):
        """When it was woken."""
        now_us = clock_us()
        self.process.send_signal(signal.SIGCONT)
        return now_us

    def says_nothing(self):
        """So far; whatever it says later will be read then."""
        return not self.unread and not select.select([self.process.stdout], [], [], 0)[0]

    def end(self):
        self.process.stdin.close()
        if self.process.wait(LIMIT_S) != 0:
            self.fail(f"ended with status {self.process.returncode}")


def stop_all():
    for process in STARTED:
        if process.poll() is None:
            process.kill()
        process.wait()
    STARTED.clear()


def main(scenario, *names):
    """Runs scenario() of the program that imported this: PROGRAM FOLDER_OF_THE_EXAMPLES [NAME...]

    Where there are names, scenario() is called with each of those that were given, or with all.
    """
    global PROGRAMS, FOLDER
    if len(sys.argv) < 2 or not os.access(os.path.join(sys.argv[1], "bootstrap"), os.X_OK) \
            or not set(sys.argv[2:]) <= set(names):
        sys.exit(f"usage: PROGRAM FOLDER_OF_THE_EXAMPLES {' '.join(f'[{name}]' for name in names)}")
    PROGRAMS = os.path.abspath(sys.argv[1])
    FOLDER = tempfile.mkdtemp(prefix="quorlock-examples-")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    signal.signal(signal.SIGALRM, lambda *_: sys.exit(f"not done within {WHOLE_LIMIT_S} s"))
    signal.alarm(WHOLE_LIMIT_S)
    atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
    atexit.register(stop_all)
    if not names:
        scenario()
    for name in sys.argv[2:] or names:
        scenario(name)
