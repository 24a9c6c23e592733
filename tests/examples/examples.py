# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the examples share: redis-servers of their own, an account in SQLite, and workers.

Nothing here waits by sleeping in hope: every wait is for a line that a worker says or for a state of a process,
with a generous limit.
"""
import atexit
import ctypes
import os
import select
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

LIMIT_S = 30  # for anything that must happen at all
WHOLE_LIMIT_S = 110  # CTest's own is longer; this one still cleans up
START_BALANCE = 100
LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
PROGRAMS = FOLDER = ""
STARTED = []  # every process of this test


def die_with_us():
    """Whatever ends this test, also SIGKILL, ends what it started."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def start(words, **more):
    process = subprocess.Popen([str(word) for word in words], preexec_fn=die_with_us, **more)
    STARTED.append(process)
    return process


def check(truth, text):
    """A test of its own, for python -O leaves assertions out."""
    if not truth:
        raise AssertionError(text)


def clock_us():
    """The clock of the workers' lines."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


def reserve():
    """A socket that keeps a free port ours: nobody is answered there, and only our own server may take it."""
    reservation = socket.socket()
    reservation.bind(("127.0.0.1", 0))
    reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return reservation


class Server:
    """One redis-server. Its memory outlives its process, until it is replaced."""

    def __init__(self, number):
        self.folder = tempfile.mkdtemp(prefix=f"server-{number}-", dir=FOLDER)
        self.reservation = reserve()
        self.port = self.reservation.getsockname()[1]
        self.process = None
        self.launch()

    def __str__(self):
        return f"127.0.0.1:{self.port}"

    def launch(self):
        self.process = start(
            [os.environ.get("REDIS_SERVER") or "redis-server", "--bind", "127.0.0.1", "--port", self.port, "--dir",
             self.folder, "--save", "", "--appendonly", "yes", "--appendfsync", "always", "--daemonize", "no",
             "--logfile", os.path.join(self.folder, "log")], stdin=subprocess.DEVNULL)

    def await_answer(self):
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end and self.process.poll() is None:
            try:
                check(f"process_id:{self.process.pid}\r" in self.ask("INFO", "server"), f"{self} is not ours")
                self.ask("DBSIZE")
                return
            except (OSError, RuntimeError):
                time.sleep(0.005)  # refused, or it still loads its memory: asked again
        raise AssertionError(f"redis-server does not start on {self}; see {self.folder}/log")

    def ask(self, *words):
        """One command; the answer as text, None for nil, a list of those for an array."""
        words = [str(word).encode() for word in words]
        with socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT_S) as s, s.makefile("rb") as answer:
            s.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
            return self.read(answer)

    def read(self, answer):
        line = answer.readline().decode().rstrip()
        if line[:1] in ("", "-"):
            raise RuntimeError(line or "closed")
        if line[:1] == "*":
            return [self.read(answer) for _ in range(int(line[1:]))]
        if line[:1] != "$":
            return line[1:]
        if line == "$-1":
            return None
        return answer.read(int(line[1:]) + 2)[:-2].decode()

    def running(self):
        return self.process.poll() is None

    def kill(self):
        self.process.kill()
        self.process.wait()

    def come_back(self):
        """With its memory."""
        self.launch()
        self.await_answer()

    def replace(self):
        """Dies, and an empty one takes its address."""
        self.kill()
        shutil.rmtree(os.path.join(self.folder, "appendonlydir"), ignore_errors=True)
        for name in os.listdir(self.folder):
            if name.endswith(".aof"):
                os.remove(os.path.join(self.folder, name))
        self.come_back()


class World:
    """Three servers on which the largest lease is so long, and an account with START_BALANCE in it."""

    def __init__(self, max_lease_ms):
        self.servers = [Server(number) for number in range(3)]
        for server in self.servers:
            server.await_answer()
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
        # Every client of these servers is told the same.
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

    def balance(self):
        return self.sql("SELECT balance FROM account")[0][0]

    def holders(self, key):
        """What stands at the key, server by server."""
        return [server.ask("GET", key) if server.running() else None for server in self.servers]


class Worker:
    """A process of an example, and the lines that it says."""

    def __init__(self, name, *words):
        self.name = name
        self.log = tempfile.TemporaryFile(dir=FOLDER)
        self.process = start([os.path.join(PROGRAMS, words[0]), *words[1:]], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=self.log)
        self.unread = b""
        self.said = []

    def fail(self, text):
        self.log.seek(0)
        raise AssertionError(f"{self.name} {text}; it said:\n  " + "\n  ".join(self.said) + "\nand on stderr:\n"
                             + self.log.read().decode())

    def line(self, wanted):
        end = time.monotonic() + LIMIT_S
        while b"\n" not in self.unread:
            if not select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))[0]:
                self.fail(f"did not say '{wanted}' within {LIMIT_S} s")
            part = os.read(self.process.stdout.fileno(), 65536)
            if not part:
                self.fail(f"ended before it said '{wanted}'")
            self.unread += part
        line, self.unread = self.unread.split(b"\n", 1)
        self.said.append(line.decode())
        return self.said[-1]

    def expect(self, *wanted):
        """Its next line, which must be one of these events, as a dict."""
        words = self.line(" or ".join(wanted)).split()
        if words[1] not in wanted:
            self.fail(f"said '{words[1]}' and not '{' or '.join(wanted)}'")
        event = dict(word.rstrip(":").split("=", 1) for word in words[2:] if "=" in word)
        event.update(what=words[1], t_us=int(words[0]))
        return event

    def tell(self, text):
        try:
            os.write(self.process.stdin.fileno(), f"{text}\n".encode())
        except BrokenPipeError:
            pass  # it has ended: its lines say why

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


def main(scenario):
    """Runs scenario() of the program that imported this: PROGRAM FOLDER_OF_THE_EXAMPLES"""
    global PROGRAMS, FOLDER
    if len(sys.argv) != 2 or not os.access(os.path.join(sys.argv[1], "bootstrap"), os.X_OK):
        sys.exit("usage: PROGRAM FOLDER_OF_THE_EXAMPLES")
    PROGRAMS = os.path.abspath(sys.argv[1])
    FOLDER = tempfile.mkdtemp(prefix="quorlock-examples-")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    signal.signal(signal.SIGALRM, lambda *_: sys.exit(f"not done within {WHOLE_LIMIT_S} s"))
    signal.alarm(WHOLE_LIMIT_S)
    atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
    atexit.register(stop_all)
    scenario()
