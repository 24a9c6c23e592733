# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the quorlock command share: three real redis-servers of their own, and ways to run the command.

Every wait is for an event, with a limit. The only time limits that judge the product are those that it promises: the
command is dead before another client can get its lock, and it does not wait for a frozen node.
"""
import atexit
import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import redis_server
from redis_server import LIBC, die_with_us

QUORLOCK = FOLDER = ""
LIMIT_S = 20  # for anything that must happen at all
WHOLE_LIMIT_S = 500  # CTest's own is shorter; this one ends a run by hand
PTRACE_CONT, PTRACE_DETACH, PTRACE_SEIZE, PTRACE_GETEVENTMSG, PTRACE_O_TRACEFORK = 7, 17, 0x4206, 0x4201, 2
WALL = 0x40000000
# What a machine that is too busy for the limits of bench makes it say.
BENCH_BUSY = r"down:|slow|did not answer in time|waiting for|some locks failed|not every node answers"
STOOD_STILL_S = 0.02  # a machine that keeps one process waiting so long may keep another for longer


def wait_for(what, limit_s=LIMIT_S):
    """The first true result of what(), or a failure."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        result = what()
        if result:
            return result
        time.sleep(0.005)
    raise AssertionError(f"did not happen within {limit_s} s: {what}")


def fill(pipe):
    """Leaves no room in the pipe: the next write blocks."""
    os.set_blocking(pipe, False)
    try:
        while True:
            os.write(pipe, b"." * 4096)
    except BlockingIOError:
        os.set_blocking(pipe, True)


def state(pid):
    """R, S, T ... as ps shows it; Z for a process that is gone, too."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(word) for word in f.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def first_named(name, pids):
    """The first of these processes that has the name and has not ended, or None."""
    for pid in pids:
        try:
            with open(f"/proc/{pid}/comm", encoding="latin-1") as f:
                if f.read() == name + "\n" and state(pid) not in "ZX":
                    return pid
        except (FileNotFoundError, ProcessLookupError):
            pass
    return None


def warden_of(pid):
    """Of that quorlock: its warden's process id, or None."""
    return first_named("quorlock-warden", children(pid))


def copies_in(pid, secret):
    """How often it stands in the memory of that process. The test is skipped where that cannot be read."""
    with open(QUORLOCK, "rb") as program:
        sanitized = b"__asan_init" in program.read()
    if sanitized:
        raise unittest.SkipTest("a sanitizer's memory is too large to read")
    found = 0
    try:
        with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
            for line in maps:
                place, rights, *_, name = line.split(None, 5) if line.count(" ") > 4 else (*line.split(), "")
                if "w" not in rights or name.startswith("[v"):
                    continue
                first, last = (int(number, 16) for number in place.split("-"))
                memory.seek(first)
                found += memory.read(last - first).count(secret.encode())
    except PermissionError as error:
        raise unittest.SkipTest("the memory of another process cannot be read here") from error
    return found


def trace(request, pid, data=0):
    if LIBC.ptrace(ctypes.c_long(request), ctypes.c_long(pid), None, ctypes.c_void_p(data)) != 0:
        raise OSError(f"ptrace {request} of {pid}")


def wait_for_fork(pid):
    """Of a process that is traced: its new process, which has not run yet, as it does not itself."""
    while True:
        status = os.waitpid(pid, WALL)[1]
        if status >> 16 == 1:  # PTRACE_EVENT_FORK
            message = ctypes.c_ulong()
            LIBC.ptrace(ctypes.c_long(PTRACE_GETEVENTMSG), ctypes.c_long(pid), None, ctypes.byref(message))
            os.waitpid(message.value, WALL)
            return message.value
        if not os.WIFSTOPPED(status):
            raise AssertionError(f"it ended: {status}")
        trace(PTRACE_CONT, pid, os.WSTOPSIG(status))


def now_s():
    """By the clock of leases and wardens."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def listen(port=0):
    """Not socket.create_server(): it would be given a port that another test keeps for a server that is down."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", port))
    listener.listen()
    return listener


class Server(redis_server.Server):
    def restart(self, empty):
        """Another process at the same address, with or without the memory of this one."""
        dump = os.path.join(self.folder, "dump.rdb")
        if not empty:
            self.ask("SAVE")
        self.kill()
        if empty and os.path.exists(dump):
            os.remove(dump)  # of a sync
        self.start()
        if os.path.exists(dump):
            os.remove(dump)


SERVERS = []
RUNNING = []


def stop_all():
    for process in RUNNING + [server.process for server in SERVERS]:
        if process.poll() is None:
            process.kill()
            process.wait()


def nodes():
    return ",".join(str(server) for server in SERVERS)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="case-", dir=FOLDER)
        self.key = self.id().rsplit(".", 1)[1]
        for server in SERVERS:
            server.thaw()
            if server.process.poll() is not None:
                server.start()
            server.ask("FLUSHALL")

    def tearDown(self):
        for process in RUNNING:
            if process.poll() is None:
                process.kill()
            process.communicate()
        RUNNING.clear()

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, *args, env=None, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("QUORLOCK_")}
        # What this machine's users have configured is not read.
        environment.update({"QUORLOCK_NODES": nodes(), "QUORLOCK_CONFIG": "/dev/null"}, **(env or {}))
        process = subprocess.Popen([QUORLOCK, *args], env=environment, stdout=stdout, stderr=stderr,
                                   preexec_fn=more.pop("preexec", die_with_us), **more)
        RUNNING.append(process)
        return process

    def await_words(self, process, *texts):
        """What it said on stderr until each of these was there; a failure where it ends before."""
        said = b""
        while not all(text in said for text in texts):
            more = os.read(process.stderr.fileno(), 4096)
            self.assertTrue(more, said)
            said += more
        return said

    def end(self, process):
        out, err = process.communicate(timeout=LIMIT_S)
        return process.returncode, (out or b"").decode(), (err or b"").decode()

    def quorlock(self, *args, **more):
        """Runs it to its end: (status, stdout, stderr)."""
        return self.end(self.start(*args, **more))

    def connected(self, *args, busy=r"(down|no vote):? +connecting(: .* yet|: its name is .*)?$", **more):
        """The same for a command that does nothing where it reaches too few nodes. All nodes can be reached here, so it runs
        again where the machine was too busy to connect within the command's own limit."""
        end = time.monotonic() + LIMIT_S
        while True:
            result = self.quorlock(*args, **more)
            if not re.search(busy, result[1] + result[2], re.M) or time.monotonic() > end:
                return result

    def shell(self, *options, script, **more):
        """Starts "run OPTIONS KEY -- sh -c SCRIPT" and waits until the script has made the file `up`."""
        process = self.start("run", *options, self.key, "--", "sh", "-c", f"cd {self.folder}; {script}", **more)
        self.wait_file("up", process)
        return process

    def wait_file(self, name, process=None):
        def there():
            if process and process.poll() is not None and not os.path.exists(self.path(name)):
                raise AssertionError(f"ended: {self.end(process)}")
            return os.path.exists(self.path(name))
        wait_for(there)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as f:
            return f.read().strip()

    def line_of(self, name):
        """What a command wrote into that file: a shell makes the file a moment earlier."""
        self.wait_file(name)
        return wait_for(lambda: self.read(name))

    def values(self):
        return [server.ask("GET", self.key) for server in SERVERS]

    def assert_free(self):
        """No key of ours is left, once the nodes have executed what was sent to them."""
        wait_for(lambda: self.values() == [None] * len(SERVERS))

    def assert_gone(self, *pids):
        """Those processes ended (a zombie counts as ended)."""
        wait_for(lambda: all(state(pid) in "ZX" for pid in pids))

    def hold(self, value, count=2, ms=30000):
        """Another client's lock, set by hand on the first `count` nodes."""
        for server in SERVERS[:count]:
            self.assertEqual(server.ask("SET", self.key, value, "NX", "PX", ms), b"OK")

    def bootstrap(self, *options):
        """Declares the nodes free of locks, so that the first lock need not wait. Connections of the test before may
        still be there."""
        status, out, err = self.connected("bootstrap", "--yes", *options)
        self.assertEqual((status, err), (0, ""), out)


class Bootstrapped(Case):
    """The nodes have their guards from the beginning."""

    def setUp(self):
        super().setUp()
        self.bootstrap()


def begin(prefix, usage, kind=Server):
    """Reads the first argument and starts the servers."""
    global QUORLOCK, FOLDER
    if len(sys.argv) < 2 or not os.access(sys.argv[1], os.X_OK):
        sys.exit(f"usage: PROGRAM PATH_TO_quorlock {usage}")
    QUORLOCK = os.path.abspath(sys.argv[1])
    FOLDER = tempfile.mkdtemp(prefix=prefix)
    signal.alarm(WHOLE_LIMIT_S)
    atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
    atexit.register(stop_all)
    for number in range(3):
        SERVERS.append(kind(FOLDER, number))


def main(kind=Server):
    """Runs the tests of the program that imported this: PROGRAM PATH_TO_quorlock [TEST...]"""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    begin("quorlock-command-", "[TEST...]", kind)
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)

