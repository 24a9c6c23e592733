#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Threads, signals and children of fork() beside the Python package: test_threads_and_forks.py PATH_TO_quorlock [TEST...]"""
import asyncio
import os
import subprocess
import sys

import test_python
from test_python import LEASE_MS, LIMIT_S, Lost, command_case, nodes, wait_for

import quorlock

FRONT = """
import gc, logging, os, re, signal, sys, threading, time, warnings
import quorlock
from quorlock import _lock
warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of forks beside threads
logging.getLogger("quorlock").addHandler(logging.NullHandler())  # losses and waits are on purpose here
KEY = os.environ["KEY"]
client = quorlock.configure(os.environ["QUORLOCK_NODES"], guard="off", max_lease_ms=120000)

def waiting(client):
    return int(re.search(r"^quorlock_waiting (\\d+)$", client.metrics(), re.MULTILINE)[1])

def wait_for(condition):
    end = time.monotonic() + 30
    while not condition():
        if time.monotonic() > end:
            sys.exit("it did not come")
        time.sleep(0.002)
"""

# As another thread does that makes a lock at that moment: it gets the handle's address.
REUSE = """
class Library:
    def __getattr__(self, name):
        return getattr(real, name)

    def quorlock_sync_lock_free(self, handle):
        real.quorlock_sync_lock_free(handle)
        made.append(client.lock(KEY, lease_ms=600))
        reused.append(made[-1]._handle == handle)

real, made, reused = _lock.library, [client.lock(KEY, lease_ms=600)], []
_lock.library = Library()
for _ in range(200):
    del made[0]
    if reused[-1]:
        break
_lock.library = real
gc.collect()
made[0].acquire()
print("held", flush=True)
wait_for(lambda: made[0].lost)
print("lost", flush=True)
"""

# The second one comes while the first is being handled, a little later each time.
TWO_SIGNALS = """
other = quorlock.Client(os.environ["QUORLOCK_NODES"], guard="off", max_lease_ms=120000)

def interrupt(_number, frame):
    while frame is not None and frame.f_code is not quorlock.Lock.acquire.__code__:
        frame = frame.f_back
    if frame is not None:
        raise KeyboardInterrupt

def interrupt_twice(pause_s):
    wait_for(lambda: waiting(client))
    os.kill(os.getpid(), signal.SIGINT)
    if pause_s is not None:
        time.sleep(pause_s)
        os.kill(os.getpid(), signal.SIGINT)

class Library:
    def __getattr__(self, name):
        return getattr(real, name)

    def quorlock_sync_lock_cancel(self, handle):
        os.kill(os.getpid(), signal.SIGINT)
        return real.quorlock_sync_lock_cancel(handle)

real = _lock.library
signal.signal(signal.SIGINT, interrupt)
for i in range(21):
    if i == 20:  # right when the acquire is about to be canceled
        _lock.library = Library()
    key = f"{KEY}:{i}"
    holder, lock = other.lock(key), client.lock(key)
    holder.acquire()
    thread = threading.Thread(target=interrupt_twice, args=(i * 0.0002 if i < 20 else None,), daemon=True)
    thread.start()
    try:
        lock.acquire()
        sys.exit("granted")
    except KeyboardInterrupt:
        pass
    thread.join()
    holder.release()
    # Were it granted now, it would have to be given back.
    wait_for(lambda: not waiting(client))
    with other.lock(key, wait_ms=20000):
        if lock.valid_ms:
            sys.exit("it holds what it gave up")
"""

FORK = """
def in_child(call):
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        try:
            call()
        except BaseException as problem:
            print(call.__name__, repr(problem), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    if status:
        sys.exit(f"{call.__name__}: {status}")

def while_held(guard, call):
    held, ended = threading.Event(), threading.Event()

    def hold():
        with guard:
            held.set()
            ended.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    in_child(call)
    ended.set()
    thread.join()

module_level = quorlock.lock(KEY + ":module")
parents = quorlock.lock(KEY)
parents.acquire()
dropped = [quorlock.lock(KEY)]
lost = quorlock.lock(KEY + ":lost", lease_ms=600, wait_ms=0)
lost.acquire()
client.break_lock(KEY + ":lost")
wait_for(lambda: lost.lost)

def uses_the_default():
    with quorlock.lock(KEY + ":child") as lock:
        lock.check()

def drops_a_lock():
    dropped.pop()

def uses_the_module_s():
    for _ in range(2):
        with module_level as lock:
            lock.check()
    with client.lock(KEY + ":child"):
        pass

def does_not_hold_the_parents():
    assert parents.valid_ms == 0
    for call in parents.check, parents.release, parents.extend:
        try:
            call()
        except (quorlock.Lost, quorlock.Closed):
            continue
        raise AssertionError(call.__name__)
    try:
        quorlock.lock(KEY, wait_ms=0).acquire()
    except quorlock.Held:
        return
    raise AssertionError("granted")

def has_lost_nothing():
    try:
        lost.acquire()
    except quorlock.Held:
        assert not lost.lost
        return
    raise AssertionError("granted")

while_held(quorlock._guard, uses_the_default)
while_held(client._changed, drops_a_lock)
in_child(uses_the_module_s)
in_child(lambda: in_child(uses_the_module_s))
in_child(does_not_hold_the_parents)
with quorlock.lock(KEY + ":lost"):
    in_child(has_lost_nothing)
assert lost.lost
in_child(client.close)
parents.check()
parents.release()
with module_level:
    pass
"""

# As uWSGI forks: Python is not told. Its workers use what the application has made at its import.
FORK_IN_C = """
import ctypes
module_level = quorlock.lock(KEY + ":module")
parents = quorlock.lock(KEY)
parents.acquire()
pid = ctypes.PyDLL(None).fork()
if pid == 0:
    signal.alarm(20)
    try:
        assert parents.valid_ms == 0
        try:
            parents.check()
        except quorlock.Lost:
            pass
        with module_level as lock:
            lock.check()
        with quorlock.lock(KEY + ":child") as lock:
            lock.check()
        assert not client.closed
        os._exit(0)
    except BaseException as problem:
        print(repr(problem), file=sys.stderr, flush=True)
        os._exit(1)
if os.waitpid(pid, 0)[1]:
    sys.exit("the child has failed")
parents.check()
parents.release()
"""

# A child of multiprocessing ends without atexit.
MULTIPROCESSING = """
import multiprocessing, os, sys
import quorlock

quorlock.configure(os.environ["QUORLOCK_NODES"], guard="off", max_lease_ms=120000)

held = []

def hold():
    held.append(quorlock.lock(os.environ["KEY"], lease_ms=120000))
    held[0].acquire()

if __name__ == "__main__":
    module_level = quorlock.lock("used:before:the:fork")
    with module_level:
        pass
    child = multiprocessing.get_context(sys.argv[1]).Process(target=hold)
    child.start()
    child.join()
    sys.exit(child.exitcode)
"""


class ThreadsAndForks(test_python.PythonCase):
    def run_text(self, text):
        child = self.python(FRONT + text)
        out, err = child.communicate(timeout=LIMIT_S)
        self.assertEqual((child.returncode, out, err), (0, "", ""))

    def test_a_lock_at_the_address_of_a_freed_one_hears_of_its_own_loss(self):
        child = self.python(FRONT + REUSE)
        self.assertEqual(child.stdout.readline(), "held\n")
        self.take_away()
        out, err = child.communicate(timeout=LIMIT_S)
        self.assertEqual((child.returncode, out, err), (0, "lost\n", ""))

    def test_two_interrupts_leave_nothing_held(self):
        self.run_text(TWO_SIGNALS)

    def test_a_child_goes_on_with_a_client_of_its_own(self):
        self.run_text(FORK)

    def test_a_child_of_which_python_is_not_told_goes_on_with_a_client_of_its_own(self):
        self.run_text(FORK_IN_C)

    def test_a_child_of_multiprocessing_releases_what_it_holds_at_its_end(self):
        with open(self.path("program.py"), "w", encoding="ascii") as file:
            file.write(MULTIPROCESSING)
        environment = {**os.environ, "QUORLOCK_NODES": nodes(), "KEY": self.key}
        for method in ("fork", "forkserver", "spawn"):
            with self.subTest(method=method):
                found = subprocess.run([sys.executable, "-W", "ignore", self.path("program.py"), method], env=environment,
                                       timeout=LIMIT_S, capture_output=True, text=True, check=False)
                self.assertEqual((found.returncode, found.stderr), (0, ""))
                self.assertFalse(any(self.values()), "the lock is held by a process that has ended")

    def test_a_lock_that_is_lost_before_its_block_is_not_entered(self):
        case = self

        class LostEarly(quorlock.Lock):
            async def acquire_async(self):
                await super().acquire_async()
                case.take_away()
                wait_for(lambda: self.lost)

        async def enter():
            async with LostEarly(self.client, [self.key], lease_ms=LEASE_MS):
                entered.append(True)

        entered = []
        with self.assertRaises(Lost):
            asyncio.run(enter())
        self.assertEqual(entered, [])
        self.assert_free()


if __name__ == "__main__":
    command_case.main()
