# SPDX-License-Identifier: BSD-3-Clause
"""What the tables of quorlock run's supervision share: how a table is read and printed, how its cells run side by side,
and the processes of one cell.

A row is a state of quorlock and of its command, and whom a signal is for; a column is a class of signals; a word says
what must happen by the manual. Each signal of a class is a cell of its own: real processes, real servers, a key of its
own. Each worker runs one cell at a time. It adopts orphans, so it sees every process that a cell leaves behind.
"""
import concurrent.futures
import faulthandler
import multiprocessing
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter, namedtuple

import command_case
from command_case import (LIBC, LIMIT_S, SERVERS, STOOD_STILL_S, Server, children, die_with_us, now_s, state, stop_all,
                          warden_of, wait_for)

# The classes of signals, in the order of the columns.
CLASSES = {
    "ends": "HUP INT QUIT TERM USR1 USR2 ALRM IO PWR RTMIN RTMAX",  # passed on; they end a process without a handler
    "calm": "WINCH URG",  # passed on; they do nothing to a process without a handler
    "CONT": "CONT",
    "TSTP": "TSTP",
    "tty": "TTIN TTOU",
    "PIPE": "PIPE",
    "CHLD": "CHLD",
    "STOP": "STOP",
    "KILL": "KILL",
    "fatal": "ABRT XCPU PROF",  # not passed on; they end a process without a handler
}
PING, END = signal.SIGRTMIN + 8, signal.SIGRTMIN + 9  # as supervised.c has them
UNSEEN = (signal.SIGSTOP, signal.SIGKILL)  # by the process that gets them
PR_SET_CHILD_SUBREAPER = 36
TRIES = 8
# Under the sanitizers one signal stands for its class: what differs within a class is the number.
OF_CLASS = 1 if os.environ.get("QUORLOCK_SUPERVISION") == "classes" else None
LEASE_S, RELEASE_LIMIT_S = 30, 15  # renewed at every third: no lock ends by itself within the limit
TURN_S = 0.01
FAILED_MAX = 12
JOBS, SLOW_JOBS = 6, 56  # cells side by side
JOB = ("feeder", "reader")  # before and behind quorlock in a pipeline

Cell = namedtuple("Cell", "row column word slow make")


class Disturbed(Exception):
    """The machine was too busy for this cell, which proved nothing: again, with more time."""


def number_of(name):
    return int(getattr(signal, "SIG" + name))


def descendants(pid):
    found = children(pid)
    for child in list(found):
        found += descendants(child)
    return found


def is_settled(pid):
    """Whether a process has handled every signal that it was sent, and sleeps."""
    try:
        with open(f"/proc/{pid}/status", encoding="latin-1") as f:
            fields = dict(line.split(":", 1) for line in f if ":" in line)
    except (FileNotFoundError, ProcessLookupError):
        return False
    pending = int(fields["SigPnd"], 16) | int(fields["ShdPnd"], 16)
    return pending == 0 and fields["State"].split()[0] == "S"


def bootstrap(nodes):
    """Declares the nodes free of locks; again where the machine was too busy to connect in time."""
    words = [command_case.QUORLOCK, "--nodes", nodes, "bootstrap", "--yes", "--set-name", "supervision"]
    wait_for(lambda: subprocess.run(words, capture_output=True, check=False).returncode == 0)


class World:
    """The folder, the key and the processes of one cell, in a worker that has no others."""

    own_server = None
    wake = -1  # of a worker: readable when a process of it has ended or stopped

    def __init__(self, key, lease_s=LEASE_S):
        self.key, self.lease_s = key, lease_s
        self.folder = tempfile.mkdtemp(prefix="cell-", dir=command_case.FOLDER)
        os.mkfifo(self.path("events"))
        self.events = os.open(self.path("events"), os.O_RDWR | os.O_NONBLOCK)
        self.unread, self.written, self.master = b"", b"", -1
        self.pid, self.reported, self.seen, self.status = {}, set(), {}, {}
        self.servers, self.user = SERVERS, None
        self.looked_s, self.stood_s = now_s(), 0

    # ---- what happens ----

    def path(self, name):
        return os.path.join(self.folder, name)

    def look(self):
        """Reads the reports of processes, what was written to the terminal, and how processes ended."""
        watched = [World.wake, self.events] + [self.master] * (self.master >= 0)
        for fd in select.select(watched, [], [], TURN_S)[0]:
            try:
                data = os.read(fd, 65536)
            except OSError:  # all have closed the terminal
                time.sleep(TURN_S)
                continue
            if fd == self.master:
                self.written += data
            elif fd == self.events:
                self.unread += data
        *lines, self.unread = self.unread.split(b"\n")
        for line in lines:
            name, number, sender = line.decode().split()
            if number == "0" and name not in self.reported:
                self.pid[name] = int(sender)
                self.reported.add(name)
            else:
                self.seen.setdefault(name, Counter())[int(number)] += 1
        self.reap()
        self.stood_s, self.looked_s = max(self.stood_s, now_s() - self.looked_s - TURN_S), now_s()

    def reap(self):
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0] != 0:
                self.status[ended[0]] = os.waitstatus_to_exitcode(ended[1])
        except ChildProcessError:
            pass

    def wait(self, text, what, limit_s=LIMIT_S):
        end = time.monotonic() + limit_s
        while True:
            self.look()
            result = what()
            if result:
                return result
            if time.monotonic() > end:
                raise AssertionError(f"not within {limit_s} s: {text}")

    def check(self, true, text):
        if not true:
            raise AssertionError(text)

    def said(self):
        """What quorlock wrote to standard error, wherever that is."""
        if self.master >= 0:
            return self.written.replace(b"\r\n", b" ").replace(b"\n", b" ").decode(errors="replace")
        try:
            with open(self.path("err"), encoding="utf-8", errors="replace") as f:
                return f.read()
        except FileNotFoundError:  # it has not begun
            return ""

    def count(self, name, number):
        return self.seen.get(name, Counter())[number]

    def is_gone(self, pid):
        return pid in self.status or state(pid) in "ZX"

    def has_ended(self, name):
        return self.is_gone(self.pid[name])

    def runs(self, name):
        return not self.has_ended(name) and not self.is_stopped(name)

    def group_is_gone(self):
        return all(self.has_ended(name) for name in ("outer", "inner") if name in self.pid)

    # ---- processes ----

    def spawn(self, words, group=None, stdin=None, stdout=None):
        """A process in a group of its own (0), in that of another, or in this one's."""
        pid = os.fork()
        if pid == 0:
            try:
                self.become(words, group, stdin, stdout)
            finally:
                os._exit(98)
        if group is not None:
            try:
                os.setpgid(pid, group or pid)
            except (PermissionError, ProcessLookupError):  # it did so itself
                pass
        return pid

    def become(self, words, group, stdin, stdout):
        die_with_us()
        if group is not None:
            os.setpgid(0, group)
        for fd, new in [(stdin, 0), (stdout, 1)]:
            os.dup2(fd if fd is not None else os.open("/dev/null", os.O_RDWR), new)
        os.dup2(os.open(self.path("err"), os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
        self.execute(words, self.environment())

    def execute(self, words, env):
        """With the signals of a fresh login: whoever runs the tests may ignore some."""
        os.chdir(self.folder)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        for number in signal.valid_signals() - set(UNSEEN):
            signal.signal(number, signal.SIG_DFL)
        os.execvpe(words[0], words, env)

    def environment(self):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("QUORLOCK_") and k != "ENV"}
        # The leak check of a sanitized build runs as a process ends, in a helper that signals to the group would kill;
        # the process would wait for it for ever.
        return dict(environment, QUORLOCK_NODES=self.nodes(), QUORLOCK_CONFIG="/dev/null",
                    ASAN_OPTIONS="detect_leaks=0")

    def nodes(self):
        return ",".join(f"redis://{self.user}:x@{server}" if self.user else str(server) for server in self.servers)

    def supervised(self, *words):
        return [os.path.join(os.path.dirname(command_case.QUORLOCK), "supervised"), *words]

    def run_words(self, how, *more):
        return [command_case.QUORLOCK, "run", "--set-name", "supervision", "--lease", f"{self.lease_s}s", self.key,
                "--", *self.supervised("outer", how, *more)]

    def warden(self):
        return warden_of(self.pid["quorlock"])

    def kill(self, name, number):
        """It may have ended."""
        try:
            os.kill(self.pid[name], number)
        except ProcessLookupError:
            pass

    def is_stopped(self, name):
        return not self.is_gone(self.pid[name]) and state(self.pid[name]) == "T"

    def up(self, *names):
        self.wait(f"{names} are up", lambda: self.reported.issuperset(names))

    def ping(self):
        """All that run answer. Whoever does so has got all signals before it."""
        for name in ("outer", "inner", "apart", *JOB):
            if name not in self.pid:
                continue
            before = self.count(name, PING)
            self.kill(name, PING)
            self.wait(f"{name} answers", lambda: self.count(name, PING) > before or not self.runs(name))

    def settle(self):
        self.wait("quorlock has handled its signals", lambda: is_settled(self.pid["quorlock"]))

    def story(self):
        """What a reader of a failure wants to know."""
        seen = {name: dict(numbers) for name, numbers in self.seen.items()}
        states = {name: state(pid) for name, pid in self.pid.items() if not self.is_gone(pid)}
        return (f"pids {self.pid}, states {states}, seen {seen}, status {self.status}, "
                f"stalled {self.stood_s:.3f} s, said: {self.said()}")

    # ---- the lock ----

    def use_own_server(self):
        """One server that this worker may freeze."""
        if World.own_server is None:
            World.own_server = Server(tempfile.mkdtemp(prefix="own-", dir=command_case.FOLDER), 0)
        self.servers = [World.own_server]
        if World.own_server.ask("EXISTS", "quorlock:guard") == 0:
            bootstrap(self.nodes())

    def use_own_user(self):
        """One whose renewals can be refused."""
        self.user = "".join(letter for letter in self.key if letter.isalnum())
        for server in self.servers:
            server.ask("ACL", "SETUSER", self.user, "on", ">x", "~*", "&*", "+@all")

    def refuse_renewals(self):
        """Returns when the lock ends by that."""
        for server in self.servers:
            server.ask("ACL", "SETUSER", self.user, "-@scripting", "-pexpire")
        return self.lock_ends_s()

    def lose(self):
        """Returns when the lock ends, once the command's group has its SIGTERM for that."""
        over_s = self.refuse_renewals()
        for name in ("outer", "inner"):
            self.wait(f"{name} has its SIGTERM", lambda name=name: self.count(name, signal.SIGTERM))
            # The signal of the cell may be the same: it is counted from here.
            self.check(self.seen[name][signal.SIGTERM] == 1, "SIGTERM came twice")
            self.seen[name].clear()
        return over_s

    def release_unanswered(self):
        """The command ends, and the nodes do not answer to the release."""
        self.servers[0].freeze()
        self.kill("outer", signal.SIGTERM)
        self.wait("the command and the warden have ended", lambda: not children(self.pid["quorlock"]))
        self.settle()  # the release is on its way
        self.seen["outer"].clear()

    def wait_in_grace(self, number, *names):
        """All of them get the signal, if the grace leaves the time."""
        for name in names:
            self.wait(f"{name} gets the signal", lambda name=name: self.count(name, number) or self.has_ended(name))
            if not self.count(name, number):
                raise Disturbed("the grace was over before the signal came")

    def let_in(self):
        """Whoever waits for the lock, or for the node, has it now."""
        if self.servers == SERVERS:
            for server in SERVERS:
                server.ask("DEL", self.key)
        else:
            self.servers[0].thaw()

    def values(self):
        return [server.ask("GET", self.key) for server in self.servers]

    def is_held(self):
        """By our quorlock, on a quorum."""
        value, times = Counter(self.values()).most_common(1)[0]
        return value is not None and value != b"another" and times > len(self.servers) // 2

    def is_free(self):
        return self.values() == [None] * len(self.servers)

    def hold(self):
        for server in self.servers:
            server.ask("SET", self.key, "another", "PX", 600000)

    def lock_ends_s(self):
        """When another client could get the lock, if nothing renews it any more."""
        return sorted(map(self.key_ends_s, self.servers))[len(self.servers) // 2]

    def key_ends_s(self, server):
        """Each reading is too early by the time that it took."""
        return max(now_s() + server.ask("PTTL", self.key) / 1000 for _ in range(4))

    def beats_s(self):
        with open(self.path("beats"), encoding="ascii") as f:
            return [float(word) for word in f.read().split()]

    def check_in_time(self, over_s):
        """The command's group was dead before the lock was over. Where this process or the command was kept from
        running, a late end proves nothing."""
        beats_s = self.beats_s()
        if not beats_s or beats_s[-1] < over_s:
            return
        stood_s = max([self.stood_s] + [after - before - TURN_S for before, after in zip(beats_s, beats_s[1:])])
        late_s = beats_s[-1] - over_s
        text = f"the command outlived its lock by {late_s:.3f} s; the machine stalled for {stood_s:.3f} s"
        raise Disturbed(text) if stood_s >= STOOD_STILL_S else AssertionError(text)

    # ---- the end ----

    def check_nothing_left(self, *survivors):
        """Besides those names, which end now, there is no process, and no key."""
        for name in survivors:
            if name not in self.pid:  # it never began
                continue
            self.check(not self.is_gone(self.pid[name]), f"{name} is gone")
            self.kill(name, signal.SIGKILL)
        self.wait("no process is left", lambda: not self.left())
        self.wait("no key is left", self.is_free, RELEASE_LIMIT_S)

    def left(self):
        own = [World.own_server.process.pid] if World.own_server else []
        return [pid for pid in descendants(os.getpid()) if pid not in own and not self.is_gone(pid)]

    def clean(self):
        for server in self.servers:
            if server is World.own_server:
                server.thaw()
            server.ask("DEL", self.key)
            if self.user:
                server.ask("ACL", "DELUSER", self.user)
        while self.left():
            for pid in self.left():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            self.reap()
        for fd in (self.events, self.master):
            if fd >= 0:
                os.close(fd)
        shutil.rmtree(self.folder)


# ---- a table ----

def read_table(text, classes, make, slow):
    """The rows of a table, each a list of cells, or a reason why there are none. Columns stand two spaces apart."""
    lines = [line for line in text.splitlines() if line.strip()]
    columns = [word.strip() for word in lines[0].split("  ") if word.strip()]
    signs = columns[3:]
    for line in lines[1:]:
        words = [word.strip() for word in line.split("  ") if word.strip()]
        row = tuple(words[:3])
        if words[3].startswith("not possible"):
            yield row, words[3], []
            continue
        if len(words) != len(columns):
            raise SystemExit(f"{len(words)} columns, not {len(columns)}: {line}")
        named = [(column, word) for sign, word in zip(signs, words[3:])
                 for column in classes.get(sign, sign).split()[:OF_CLASS] if word != "-"]
        yield row, None, [Cell(row, column, word, row[0] in slow, make) for column, word in named]


def begin_worker():
    os.setsid()
    die_with_us()
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    faulthandler.register(signal.SIGUSR1)
    World.wake, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)


def run_cell(cell):
    """None, or what went wrong; and how often the machine was too busy."""
    for attempt in range(TRIES):
        world = cell.make(cell, attempt)
        try:
            world.run()
            return None, attempt
        except Disturbed as error:
            disturbed = str(error)
        except Exception as error:  # pylint: disable=broad-except
            where = traceback.extract_tb(error.__traceback__)
            steps = " < ".join(frame.name for frame in reversed(where[1:]))
            return f"{error or repr(error)} [{steps}] {world.story()}", attempt
        finally:
            world.clean()
    return (None if "stalled" in disturbed else disturbed), TRIES


def run_cells(cells, jobs):
    """Side by side; prints each failure as it comes, and gives up after many."""
    context, results, failed = multiprocessing.get_context("fork"), {}, 0
    with concurrent.futures.ProcessPoolExecutor(jobs, mp_context=context, initializer=begin_worker) as pool:
        futures = {pool.submit(run_cell, cell): cell for cell in cells}
        for future in concurrent.futures.as_completed(futures):
            cell = futures[future]
            if future.cancelled():
                continue
            results[cell] = future.result()
            if results[cell][0]:
                failed += 1
                print(f"FAILED {', '.join(cell.row)}: {cell.column}: not \"{cell.word}\": {results[cell][0]}",
                      flush=True)
            if failed == FAILED_MAX:
                print("too many; the other cells are not run", flush=True)
                pool.shutdown(wait=False, cancel_futures=True)
    return results


def print_table(rows, results):
    """The cells that were run, those with the same word together. A cross marks a word that did not come true, a tilde
    one that was never proven."""
    for row, reason, cells in rows:
        words = {}
        for cell in cells:
            if cell in results:
                error, tries = results[cell]
                mark = "x" if error else "~" if tries == TRIES else ""
                words.setdefault(cell.word, []).append(mark + cell.column)
        if words or reason:
            shown = reason or "; ".join(f"{word} ({' '.join(columns)})" for word, columns in words.items())
            print(f"{row[0]:17} {row[1]:8} {row[2]:9} {shown}")


def give_up(number, _):
    """The workers end with this process."""
    print(f"ended by signal {number}", flush=True)
    stop_all()
    shutil.rmtree(command_case.FOLDER, ignore_errors=True)
    os._exit(1)


def prepare():
    """Reads the arguments, and starts the servers that all cells share: the words of the rows that are wanted."""
    for number in (signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, give_up)
    command_case.begin("quorlock-supervision-", "[WORD...]   only rows and columns with all these words")
    return sys.argv[2:]


def main(table, classes, make, slow):
    """Runs all cells of a table. Those of `slow` states mostly wait for the end of a lease."""
    began = time.monotonic()
    wanted = prepare()
    rows = list(read_table(table, classes, make, slow))
    cells = [cell for _, _, of_row in rows for cell in of_row
             if all(word in (*cell.row, cell.column, cell.word) for word in wanted)]
    bootstrap(command_case.nodes())
    results = run_cells([cell for cell in cells if not cell.slow], JOBS)
    if sum(1 for error, _ in results.values() if error) < FAILED_MAX:
        results.update(run_cells([cell for cell in cells if cell.slow], SLOW_JOBS))
    print_table(rows, results)
    failed = sum(1 for error, _ in results.values() if error)
    unproven = sum(1 for error, tries in results.values() if not error and tries == TRIES)
    again = sum(1 for _, tries in results.values() if tries > 0)
    print(f"{len(results)} cells, {failed} failed, {again} run again and {unproven} not proven because the machine "
          f"stalled, {time.monotonic() - began:.0f} s")
    sys.exit(1 if failed or not results else 0)
