# SPDX-License-Identifier: BSD-3-Clause
"""What must hold beside every peer: both sides exclude, hand over to, outlive and outrenew one another.

Three redis-servers of our own, the peer's program, and ours. Every wait is for an event, with a limit; time only
ever judges that a lock was not given away too early.
"""
import atexit
import collections
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import command_case
import peers
from command_case import LIMIT_S, SERVERS, die_with_us, wait_for

LONG_MS = 30000  # a lease that does not end in a test
SHORT_MS = 4500  # one that does, and outlives a machine that stalls for a moment
WAIT_MS = 1000 * LIMIT_S
MAX_LEASE = "2m"  # Redisson takes twice its wait for a moment; ours.c has the same
PACE_S = 0.02
SETTLE_MS = 5  # a server's PTTL is rounded, and it looks at its clock once a command
OURS = ""
PEER = None
PROGRAMS = []


class Program:
    """A program that takes orders and tells events, by lines that begin with the name of a slot."""

    def __init__(self, words):
        self.log = tempfile.TemporaryFile(dir=command_case.FOLDER)
        self.process = subprocess.Popen([str(word) for word in words], stdin=subprocess.PIPE, stderr=self.log,
                                        stdout=subprocess.PIPE, preexec_fn=die_with_us)
        PROGRAMS.append(self)
        self.name = os.path.basename(words[0])
        self.unread = b""
        self.events = collections.defaultdict(collections.deque)
        self.name = " ".join(self.expect("-", "ready")[1:])

    def fail(self, text):
        self.log.seek(0)
        raise AssertionError(f"{self.name} {text}; on stderr:\n{self.log.read().decode(errors='replace')}")

    def _read(self, limit_s):
        """False where nothing came in time."""
        if not select.select([self.process.stdout], [], [], max(0, limit_s))[0]:
            return False
        part = os.read(self.process.stdout.fileno(), 65536)
        if not part:
            self.fail(f"ended with status {self.process.wait()}")
        *lines, self.unread = (self.unread + part).split(b"\n")
        for line in lines:
            slot, *words = line.decode().split(" ")
            self.events[slot].append(words)
        return True

    def order(self, slot, *words):
        self.process.stdin.write((" ".join(str(word) for word in (slot, *words)) + "\n").encode())
        self.process.stdin.flush()

    def next(self, slot, limit_s=LIMIT_S):
        end = time.monotonic() + limit_s
        while not self.events[slot]:
            if not self._read(end - time.monotonic()):
                self.fail(f"told nothing of {slot} within {limit_s} s")
        return self.events[slot].popleft()

    def expect(self, slot, *events, limit_s=LIMIT_S):
        """The slot's next event, which must be one of these: its words."""
        words = self.next(slot, limit_s)
        if words[0] not in events:
            self.fail(f"told '{' '.join(words)}' of {slot} and not '{' or '.join(events)}'")
        return words

    def quiet(self, slot):
        """No event of the slot is left."""
        while self._read(0):
            pass
        if self.events[slot]:
            self.fail(f"told '{' '.join(self.events[slot][0])}' of {slot} too early")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        """By itself, at the end of its input."""
        self.process.stdin.close()
        status = self.process.wait(LIMIT_S)
        if status != 0:
            self.fail(f"ended with status {status}")


class Contender:
    """One slot of a program. `more` is what this side's acquire takes besides, the kind of lock."""
    count = 0

    def __init__(self, program, *more):
        Contender.count += 1
        self.program, self.more = program, more
        self.slot = f"s{Contender.count}"

    def order(self, *words):
        self.program.order(self.slot, *words)

    def ask(self, *words):
        """An order, and the words of the event that answers it."""
        self.order(*words)
        return self.program.next(self.slot)

    def expect(self, *events):
        return self.program.expect(self.slot, *events)

    def quiet(self):
        self.program.quiet(self.slot)

    def attempt(self, key, lease_ms=LONG_MS):
        """One try: its event."""
        self.order("acquire", key, lease_ms, 0, *self.more)
        return self.expect("acquired", "refused")

    def take(self, key, lease_ms=LONG_MS):
        """The owners that it wrote."""
        words = self.attempt(key, lease_ms)
        if words[0] != "acquired":
            self.program.fail(f"was refused: {' '.join(words)}")
        return words[1:]

    def stand_in_line(self, key, lease_ms=LONG_MS):
        """Waits, and is known to: it has asked, was refused, and has asked again."""
        before = asked()
        self.order("acquire", key, lease_ms, WAIT_MS, *self.more)
        wait_for(lambda: asked() >= before + 2)
        self.quiet()

    def give_back(self):
        self.order("release")
        self.expect("released")


def asked():
    """How many commands that could take a lock the servers have executed."""
    text = b"".join(server.ask("INFO", "commandstats") for server in SERVERS).decode()
    return sum(int(line.split("calls=")[1].split(",")[0]) for line in text.splitlines()
               if line.split(":")[0] in ("cmdstat_set", "cmdstat_eval", "cmdstat_evalsha"))


def remaining_ms(key):
    """How long a quorum of nodes still holds the key."""
    return sorted(server.ask("PTTL", key) for server in SERVERS)[len(SERVERS) // 2]


def nodes():
    return [str(server) for server in SERVERS]


class Stage(unittest.TestCase):
    """A contender of ours and one of theirs, and a key that no other test has."""
    more = ()  # what its acquire takes besides
    policy = "majority"
    the_peer = None  # its program, shared by the tests of a class

    @classmethod
    def tearDownClass(cls):
        end_programs()
        cls.the_peer = None

    def setUp(self):
        self.key = f"{type(self).__name__}.{self._testMethodName}"
        self.ours = Contender(Program([OURS, PEER.dialect, self.policy, *nodes()]))
        if type(self).the_peer is None:
            type(self).the_peer = Program(PEER.words(nodes()))
            print(f"beside {self.the_peer.name}: ", end="", flush=True)
        self.theirs = Contender(self.the_peer, *self.more)

    def tearDown(self):
        if self.ours.program.process.poll() is None:
            self.ours.program.end()

    def another_of_ours(self):
        return Contender(self.ours.program)

    def kill_theirs(self):
        self.the_peer.kill()
        type(self).the_peer = None

    def command(self, *words):
        """The quorlock command: status, stdout, stderr."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("QUORLOCK_")}
        environment["QUORLOCK_NODES"] = ",".join(nodes())
        environment["QUORLOCK_MAX_LEASE"] = MAX_LEASE
        done = subprocess.run([command_case.QUORLOCK, words[0], "--dialect", PEER.dialect, *words[1:]], check=False,
                              env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def assert_held(self, words):
        """Ours was refused for the right reason."""
        self.assertEqual(words[:2], ["refused", "HELD"], " ".join(words))

    def assert_free(self):
        wait_for(lambda: [server.ask("EXISTS", self.key) for server in SERVERS] == [0] * len(SERVERS))

    def for_leases(self, count):
        """Again and again until so many leases of SHORT_MS have passed, at a pace that leaves others the machine."""
        end = time.monotonic() + count * SHORT_MS / 1000
        while time.monotonic() < end:
            yield
            time.sleep(PACE_S)


class Beside(Stage):
    """What must hold beside each peer, and each kind of its locks."""

    def take_renewed(self):
        """Theirs takes a lock of SHORT_MS that renew_theirs keeps, or that it keeps itself."""
        return self.theirs.take(self.key, SHORT_MS)

    def renew_theirs(self):
        pass

    def assert_shown(self, report, owners):
        """What inspect tells of a lock of theirs."""
        self.assertEqual((report["held"], report["holder"]), (True, owners[0]))

    def test_ours_excludes_theirs(self):
        owner, = self.ours.take(self.key)
        self.assertEqual(self.theirs.attempt(self.key)[0], "refused")
        self.assertIn(owner, self.command("inspect", self.key)[1])
        self.ours.give_back()
        self.theirs.take(self.key)
        self.theirs.give_back()
        self.assert_free()

    def test_theirs_excludes_ours(self):
        owners = self.theirs.take(self.key)
        self.assert_held(self.ours.attempt(self.key))
        status, out, err = self.command("run", "-n", "--lease", "10s", self.key, "--", "echo", "ran")
        self.assertEqual((status, out), (1, ""), err)
        self.assert_shown(json.loads(self.command("inspect", "--json", self.key)[1]), owners)
        self.theirs.give_back()
        self.ours.take(self.key)
        self.ours.give_back()
        status, out, err = self.command("run", "-n", "--lease", "10s", self.key, "--", "echo", "ran")
        self.assertEqual((status, out), (0, "ran\n"), err)
        self.assert_free()

    def test_ours_hands_over_to_theirs(self):
        self.ours.take(self.key)
        self.theirs.stand_in_line(self.key)
        self.ours.give_back()
        self.theirs.expect("acquired")
        self.assert_held(self.ours.attempt(self.key))
        self.theirs.give_back()

    def test_theirs_hands_over_to_ours(self):
        self.theirs.take(self.key)
        self.ours.stand_in_line(self.key)
        self.theirs.give_back()
        self.ours.expect("acquired")
        self.assertEqual(self.theirs.attempt(self.key)[0], "refused")
        self.ours.give_back()

    def test_theirs_waits_for_ours_that_died(self):
        self.ours.take(self.key, SHORT_MS)
        self.theirs.stand_in_line(self.key)
        self.ours.program.kill()
        since = time.monotonic()
        lasts_ms = remaining_ms(self.key)
        self.theirs.expect("acquired")
        self.assertGreaterEqual(1000 * (time.monotonic() - since) + SETTLE_MS, lasts_ms)
        self.theirs.give_back()
        self.assert_free()

    def test_ours_waits_for_theirs_that_died(self):
        self.take_renewed()
        self.ours.stand_in_line(self.key)
        self.kill_theirs()
        since = time.monotonic()
        lasts_ms = remaining_ms(self.key)
        self.ours.expect("acquired")
        self.assertGreaterEqual(1000 * (time.monotonic() - since) + SETTLE_MS, lasts_ms)
        self.ours.give_back()
        self.assert_free()

    def test_ours_is_renewed_under_their_eyes(self):
        self.ours.take(self.key, SHORT_MS)
        for _ in self.for_leases(2):
            self.assertEqual(self.theirs.attempt(self.key)[0], "refused")
            valid, ms = self.ours.ask("valid")
            self.assertEqual(valid, "valid")
            self.assertGreater(int(ms), 0)
        self.ours.give_back()
        self.theirs.take(self.key)
        self.theirs.give_back()

    def test_theirs_is_renewed_under_our_eyes(self):
        self.take_renewed()
        for _ in self.for_leases(2):
            self.assert_held(self.ours.attempt(self.key))
            self.renew_theirs()
        self.theirs.give_back()
        self.ours.take(self.key)
        self.ours.give_back()


def end_programs():
    for program in PROGRAMS:
        program.kill()
        for pipe in (program.process.stdin, program.process.stdout, program.log):
            pipe.close()
    PROGRAMS.clear()


def begin(quorlock, ours):
    """Three servers that know one another, and all ends when this process does."""
    global OURS
    OURS = os.path.abspath(ours)
    command_case.QUORLOCK = os.path.abspath(quorlock)
    command_case.FOLDER = tempfile.mkdtemp(prefix="quorlock-interop-")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    atexit.register(shutil.rmtree, command_case.FOLDER, ignore_errors=True)
    atexit.register(command_case.stop_all)
    atexit.register(end_programs)
    for number in range(3):
        SERVERS.append(command_case.Server(command_case.FOLDER, number))
    subprocess.run([quorlock, "--nodes", ",".join(nodes()), "bootstrap", "--yes", "--max-lease", MAX_LEASE], check=True,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=LIMIT_S)


def main(name):
    """Runs the tests of the program that imported this: PROGRAM PATH_TO_quorlock PATH_TO_ours FOLDER [TEST...]"""
    global PEER
    if len(sys.argv) < 4 or not os.access(sys.argv[2], os.X_OK):
        sys.exit("usage: PROGRAM PATH_TO_quorlock PATH_TO_ours FOLDER [TEST...]")
    PEER = peers.peer_named(name, sys.argv[3])
    peers.leave_without(PEER)
    if not PEER.prepared():
        sys.exit(f"{name} is not prepared: run prepare.py {name} {sys.argv[3]}")
    begin(sys.argv[1], sys.argv[2])
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
