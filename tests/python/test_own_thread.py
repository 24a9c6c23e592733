#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the Python package does in the thread of a client itself: test_own_thread.py PATH_TO_quorlock [TEST...]"""
import os
import threading

import test_python
from test_python import LEASE_MS, LIMIT_S, LONG_MS, command_case, nodes, wait_for

import quorlock


def threads_of_the_process():
    return len(os.listdir("/proc/self/task"))


class OwnThread(test_python.PythonCase):
    def test_close_in_the_clients_own_thread_is_refused_at_once(self):
        found, waited = [], []

        def on_lost(_lock, _text):
            try:
                self.client.close()
            except quorlock.Error as problem:
                found.append((problem.name, self.client.closed))

        with self.open().lock(self.key + ":other"):
            thread = threading.Thread(target=self.wait_for_other, args=(waited,), daemon=True)
            thread.start()
            wait_for(lambda: self.client._calls)
            lock = self.lock(lease_ms=LEASE_MS, on_lost=on_lost)
            lock.acquire()
            self.take_away()
            wait_for(lambda: found)
            self.assertEqual(found, [("STATE", False)])
            self.assertEqual(waited, [])
        thread.join(LIMIT_S)
        self.assertEqual(waited, ["held"])

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
        held, dropped = threading.Event(), threading.Event()

        def on_lost(_lock, _text):
            held.set()
            dropped.wait(LIMIT_S)

        before = threads_of_the_process()
        client = quorlock.Client(nodes(), guard="off", max_lease_ms=LONG_MS)
        lock = client.lock(self.key, lease_ms=LEASE_MS, on_lost=on_lost)
        lock.acquire()
        self.take_away()
        wait_for(held.is_set)
        del client, lock
        dropped.set()
        wait_for(lambda: threads_of_the_process() == before)


if __name__ == "__main__":
    command_case.main()
