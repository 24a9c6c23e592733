#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tasks of asyncio that wait for locks: test_waiters.py PATH_TO_quorlock [TEST...]"""
import asyncio
import gc
import os
import threading

import test_python
from test_own_thread import threads_of_the_process
from test_python import LIMIT_S, command_case, wait_for

from quorlock import Closed, Held
from quorlock._started import STARTED

MANY = 300

# A task waits and another one holds when the interpreter ends.
LEFT_OVER = """
import asyncio, os, quorlock
quorlock.configure(os.environ["QUORLOCK_NODES"], guard="off")
key = os.environ["KEY"]

async def hold():
    async with quorlock.lock(key):
        await asyncio.sleep(3600)

async def begin():
    while not quorlock._started.STARTED or not tasks[0].get_stack():
        await asyncio.sleep(0.001)

loop = asyncio.new_event_loop()
tasks = [loop.create_task(hold()) for _ in range(20)]
loop.run_until_complete(begin())
"""


class Waiters(test_python.PythonCase):
    def test_they_take_no_threads(self):
        async def hold():
            async with self.lock():
                self.now += 1
                self.most = max(self.most, self.now)
                await asyncio.sleep(0)
                self.now -= 1
                self.ended += 1

        async def run():
            async with self.lock():
                before = threads_of_the_process()
                tasks = [asyncio.create_task(hold()) for _ in range(MANY)]
                while len(STARTED) < MANY:
                    await asyncio.sleep(0.001)
                self.assertLessEqual(threads_of_the_process(), before)
                for task in tasks[::2]:
                    task.cancel()
            found = await asyncio.gather(*tasks, return_exceptions=True)
            self.assertTrue(all(isinstance(end, asyncio.CancelledError) for end in found[::2]))
            self.assertEqual(set(found[1::2]), {None})

        self.now = self.most = self.ended = 0
        asyncio.run(asyncio.wait_for(run(), LIMIT_S))
        self.assertEqual((self.most, self.ended), (1, MANY // 2))
        self.assert_free()

    def test_one_that_is_canceled_at_any_moment_holds_nothing_and_can_be_used_again(self):
        async def run():
            lock = self.lock(wait_ms=20000)
            ends = set()
            for i in range(150):
                task = asyncio.create_task(lock.acquire_async())
                for _ in range(i % 50):
                    await asyncio.sleep(0)
                task.cancel()
                try:
                    await task
                    ends.add("granted")
                    self.assertGreater(lock.valid_ms, 0)
                    await lock.release_async()
                except asyncio.CancelledError:
                    ends.add("canceled")
                    self.assertEqual(lock.valid_ms, 0)
            self.assertIn("canceled", ends)
            async with lock:
                lock.check()

        asyncio.run(asyncio.wait_for(run(), LIMIT_S))
        self.assertEqual(STARTED, {})
        self.assert_free()

    def test_two_cancellations_leave_nothing_held(self):
        async def run():
            async with self.lock():
                tasks = [asyncio.create_task(self.lock().acquire_async()) for _ in range(20)]
                while len(STARTED) < len(tasks):
                    await asyncio.sleep(0.001)
                for task in tasks:
                    task.cancel()
                await asyncio.sleep(0)
                for task in tasks:
                    task.cancel()
            for end in await asyncio.gather(*tasks, return_exceptions=True):
                self.assertIsInstance(end, asyncio.CancelledError)

        asyncio.run(asyncio.wait_for(run(), LIMIT_S))
        wait_for(lambda: not STARTED)
        self.assert_free()

    def test_a_grant_that_comes_to_a_loop_before_its_close_is_given_back(self):
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda *_: None)  # of the task that is left over
        lock = self.lock()
        with self.lock():
            loop.create_task(lock.acquire_async())
            while not STARTED:
                loop.run_until_complete(asyncio.sleep(0.001))
        # Its end has been handed to the loop, which does not run any more.
        wait_for(lambda: not STARTED)
        self.assertGreater(lock.valid_ms, 0)
        loop.close()
        wait_for(lambda: gc.collect() is not None and not any(self.values()))  # the client's thread may refer to the task
        with lock:
            lock.check()

    def test_a_close_ends_them(self):
        async def run():
            async with self.open().lock(self.key):
                waits = [asyncio.create_task(self.lock().acquire_async()) for _ in range(20)]
                while len(STARTED) < len(waits):
                    await asyncio.sleep(0.001)
                self.client.close()
                ends = await asyncio.gather(*waits, return_exceptions=True)
                self.assertEqual({type(end) for end in ends}, {Closed})

        asyncio.run(asyncio.wait_for(run(), LIMIT_S))

    def test_a_failed_one_does_not_undo_a_loss(self):
        async def run():
            lock = self.lock(lease_ms=test_python.LEASE_MS, wait_ms=0)
            await lock.acquire_async()
            self.take_away()
            while not lock.lost:
                await asyncio.sleep(0.005)
            async with self.open().lock(self.key):
                with self.assertRaises(Held):
                    await lock.acquire_async()
                self.assertTrue(lock.lost)

        asyncio.run(asyncio.wait_for(run(), LIMIT_S))

    def test_a_loop_that_stands_still_keeps_no_other_one_waiting(self):
        async def work():
            for _ in range(20):
                async with self.client.lock(self.key + ":other"):
                    pass
            done.append(True)

        async def stand_still():
            async with self.lock():
                pass
            thread = threading.Thread(target=asyncio.run, args=(work(),), daemon=True)
            thread.start()
            thread.join(LIMIT_S)

        done = []
        asyncio.run(stand_still())
        self.assertEqual(done, [True])

    def test_loops_and_clients_that_end_leave_no_descriptor(self):
        async def use(client):
            async with client.lock(self.key):
                pass

        async def use_and_close():
            client = self.open()
            await use(client)
            client.close()
            while descriptors() != before:
                await asyncio.sleep(0.001)

        def descriptors():
            gc.collect()
            return len(os.listdir("/proc/self/fd"))

        asyncio.run(use(self.client))
        wait_for(lambda: gc.collect() is not None and not self.client._events._readers)
        before = descriptors()
        for _ in range(5):
            asyncio.run(use(self.client))
        wait_for(lambda: descriptors() == before)
        before = descriptors() + 3  # of the loop
        asyncio.run(asyncio.wait_for(use_and_close(), LIMIT_S))

    def test_an_interpreter_that_ends_meanwhile_ends_well_and_releases(self):
        process = self.python(LEFT_OVER)
        _, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 0, err)
        self.assert_free()


if __name__ == "__main__":
    command_case.main()
