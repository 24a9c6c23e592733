#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the Python package does in the thread of a client itself: test_own_thread.py PATH_TO_quorlock [TEST...]"""
import ctypes
import importlib
import os
import signal
import threading
import unittest.mock

import test_python
from test_python import LEASE_MS, LIMIT_S, LONG_MS, command_case, nodes, wait_for, waiting

import quorlock


def threads_of_the_process():
    """The ids of the threads; one that was joined may still be among them for a moment."""
    return {int(name) for name in os.listdir("/proc/self/task")}


class OwnThread(test_python.PythonCase):
    def test_all_may_be_called_in_on_lost(self):
        found, waited = [], []

        def on_lost(lock, _text):
            found.append(lock.valid_ms)
            with self.assertRaises(quorlock.Lost):
                lock.release()
            lock.acquire()
            found.append(lock.valid_ms > 0)
            found.append(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
            self.client.close()
            found.append(self.client.closed)

        with self.open().lock(self.key + ":other"):
            thread = threading.Thread(target=self.wait_for_other, args=(waited,), daemon=True)
            thread.start()
            wait_for(lambda: waiting(self.client))
            lock = self.lock(lease_ms=LEASE_MS, on_lost=on_lost)
            lock.acquire()
            self.take_away()
            wait_for(lambda: len(found) == 4)
            thread.join(LIMIT_S)
        # What it starts has no signals blocked, and what waited has ended.
        self.assertEqual((found, waited), ([0, True, set(), True], ["CLOSED"]))
        self.assert_free()

    def test_renewals_wait_for_no_interpreter(self):
        # C code that keeps the interpreter longer than the lease lasts; each renewal has something to tell.
        lines, seen, keeps = [], [], ctypes.PyDLL(None).usleep
        client = self.open(log=lambda level, line: lines.append(line))
        with client.observe(self.key, seen.append, poll_ms=10), client.lock(self.key, lease_ms=5 * LEASE_MS) as lock:
            keeps(7500 * LEASE_MS)  # in microseconds
            lock.check()
        wait_for(lambda: any("renewed" in line for line in lines))

    def test_what_the_program_gave_may_fail(self):
        told = []

        def on_lost(_lock, _text):
            told.append("first")
            raise ZeroDivisionError("on purpose")

        with unittest.mock.patch("sys.unraisablehook", lambda problem: told.append(str(problem.exc_value))):
            for _ in range(2):
                lock = self.lock(lease_ms=LEASE_MS, on_lost=on_lost)
                lock.acquire()
                self.take_away()
                wait_for(lambda: told[-1:] == ["on purpose"])
                told.append("again")
        self.assertEqual(told, ["first", "on purpose", "again"] * 2)

    def test_a_subinterpreter_is_refused_in_words(self):
        for name in ("_interpreters", "_xxsubinterpreters"):
            try:
                interpreters = importlib.import_module(name)
                break
            except ImportError:
                continue
        else:
            self.skipTest("this Python has no module for subinterpreters")
        other = interpreters.create()
        text = "try:\n import quorlock\nexcept ImportError as problem:\n open({!r}, 'w').write(str(problem))\n"
        interpreters.run_string(other, text.format(self.path("why")))
        with open(self.path("why"), encoding="utf-8") as file:
            self.assertIn("does not work in a subinterpreter", file.read())
        interpreters.destroy(other)

    def wait_for_other(self, waited):
        try:
            with self.client.lock(self.key + ":other"):
                waited.append("held")
        except quorlock.Error as problem:
            waited.append(problem.name)

    def test_a_callback_waits_for_no_thread_that_waits_for_it(self):
        entered, found = threading.Event(), []
        dropped = [self.client.lock(self.key + ":other")]

        def on_lost(lock, _text):
            entered.set()
            wait_for(lambda: not dropped)
            found.append(lock.valid_ms)

        def drop():
            # As the collector does that comes while the thread is there.
            with self.client._changed:
                dropped.pop()

        lock = self.lock(lease_ms=LEASE_MS, on_lost=on_lost)
        lock.acquire()
        self.take_away()
        self.assertTrue(entered.wait(LIMIT_S))
        threading.Thread(target=drop, daemon=True).start()
        wait_for(lambda: found)
        self.assertEqual(found, [0])

    def test_a_client_that_is_dropped_in_its_own_thread_is_closed(self):
        own_thread, dropped = [], threading.Event()

        def on_lost(_lock, _text):
            own_thread.append(threading.get_native_id())
            dropped.wait(LIMIT_S)

        client = quorlock.Client(nodes(), guard="off", max_lease_ms=LONG_MS)
        lock = client.lock(self.key, lease_ms=LEASE_MS, on_lost=on_lost)
        lock.acquire()
        self.take_away()
        wait_for(lambda: own_thread)
        del client, lock
        dropped.set()
        wait_for(lambda: threads_of_the_process().isdisjoint(own_thread))


if __name__ == "__main__":
    command_case.main()
