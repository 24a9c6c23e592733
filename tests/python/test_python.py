#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The Python package on real servers: test_python.py PATH_TO_quorlock [TEST...]

QUORLOCK_LIBRARY names the library, PYTHONPATH the folder of the package.
"""
import asyncio
import gc
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
import unittest.mock

sys.dont_write_bytecode = True  # the tree stays as it is
sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

import command_case
from command_case import LIMIT_S, SERVERS, Case, die_with_us, nodes, wait_for

import quorlock
from quorlock import Closed, Held, Invalid, Lost, NoQuorum, TimedOut
from quorlock import _lock
from quorlock._started import STARTED

LEASE_MS = 600
LONG_MS = 120000


def waiting(client):
    """How many acquires of the client have not ended."""
    return int(re.search(r"^quorlock_waiting (\d+)$", client.metrics(), re.MULTILINE)[1])


class PythonCase(Case):
    def setUp(self):
        super().setUp()
        self.client = self.open()

    def open(self, **options):
        """A client that reaches all nodes."""
        client = quorlock.Client(nodes(), guard="off", **{"max_lease_ms": LONG_MS, **options})
        self.addCleanup(client.close)
        return client

    def lock(self, **options):
        return self.client.lock(self.key, **options)

    def holders(self):
        return {value.decode() for value in self.values() if value is not None}

    def take_away(self):
        """The holder loses it at its next renewal."""
        for server in SERVERS:
            server.ask("DEL", self.key)

    def python(self, text, **more):
        """Another process with this program."""
        environment = {**os.environ, "QUORLOCK_NODES": nodes(), "KEY": self.key}
        process = subprocess.Popen([sys.executable, "-c", text], env=environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, preexec_fn=die_with_us, **more)
        command_case.RUNNING.append(process)
        return process


class With(PythonCase):
    def test_the_block_holds_the_lock(self):
        with self.lock() as lock:
            self.assertEqual(self.holders(), {lock.token})
            self.assertGreater(lock.valid_ms, 0)
            self.assertFalse(lock.lost)
            lock.check()
        self.assert_free()
        self.assertEqual(lock.valid_ms, 0)
        with self.assertRaises(Lost):
            lock.check()

    def test_locked_says_whether_it_is_held(self):
        with self.lock() as lock:
            self.assertTrue(lock.locked())
        self.assertFalse(lock.locked())

    def test_each_call_of_a_decorated_function_holds_a_lock_of_its_own(self):
        tokens = []

        @self.lock(lease_ms=LONG_MS)
        def add(depth, *, by):
            """What it does."""
            tokens.append(self.holders())
            return depth + by

        self.assertEqual([add(1, by=2), add(3, by=4)], [3, 7])
        self.assertEqual([len(token) for token in tokens], [1, 1])
        self.assertNotEqual(*tokens)
        self.assertEqual((add.__name__, add.__doc__), ("add", "What it does."))
        self.assert_free()
        running = [threading.Thread(target=add, args=(1,), kwargs={"by": 1}) for _ in range(4)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        self.assertEqual(len(tokens), 6)
        self.assert_free()

    def test_so_does_a_coroutine_function_and_a_generator_is_refused(self):
        @self.lock()
        async def held():
            return self.holders()

        self.assertEqual(len(asyncio.run(held())), 1)
        self.assert_free()
        with self.assertRaisesRegex(TypeError, "is a generator: its body runs after the call"):
            @self.lock()
            def generate():
                yield 1

    def test_nobody_else_gets_it(self):
        with self.lock():
            with self.assertRaises(Held) as caught:
                self.lock(wait_ms=0).acquire()
            self.assertEqual(caught.exception.name, "HELD")
            self.assertIn(self.key, str(caught.exception))
            with self.assertRaises((Held, TimedOut)):
                self.open().lock(self.key, wait_ms=50).acquire()

    def test_a_time_limit_of_one_call_as_that_of_threads(self):
        lock = self.lock(lease_ms=LONG_MS)
        with self.lock(lease_ms=LONG_MS):
            self.assertIs(lock.acquire(blocking=False), False)
            begin = time.monotonic()
            self.assertIs(lock.acquire(timeout=0.05), False)
            self.assertGreaterEqual(time.monotonic() - begin, 0.05)
            self.assertIs(asyncio.run(lock.acquire_async(timeout=0)), False)
            with self.assertRaises(Held):
                self.lock(wait_ms=0).acquire()
        self.assertIs(lock.acquire(True, LIMIT_S), True)
        with self.assertRaisesRegex(quorlock.Error, "it is held already"):
            lock.acquire(timeout=-1)
        self.assertGreater(lock.valid_ms, 0)
        lock.release()
        self.assertIs(lock.acquire(), True)  # as its options say again
        lock.release()
        for timeout in (-2, float("nan"), 1e10):
            with self.assertRaisesRegex(Invalid, "^timeout is .*: it must be 0 to 4294967 seconds, or -1"):
                lock.acquire(timeout=timeout)
        with self.assertRaisesRegex(Invalid, "with blocking=False nothing waits"):
            lock.acquire(False, 1)
        with self.assertRaisesRegex(TypeError, "timeout is '1': it must be a number of seconds"):
            lock.acquire(timeout="1")
        self.assert_free()

    def test_a_busy_interpreter_does_not_lose_it(self):
        # Also when the machine stalls for a moment.
        with self.lock(lease_ms=8 * LEASE_MS) as lock:
            end = time.monotonic() + 12 * LEASE_MS / 1000
            while time.monotonic() < end:
                sum(range(10000))
            lock.check()

    def test_an_exception_gives_it_back(self):
        with self.assertRaises(ZeroDivisionError):
            with self.lock():
                self.assertNotEqual(self.holders(), set())
                raise ZeroDivisionError
        self.assert_free()

    def test_a_loss_that_only_the_release_finds_is_raised(self):
        lock = self.lock(lease_ms=LONG_MS)
        lock.acquire()
        self.take_away()
        with self.assertRaises(Lost):
            lock.release()

    def test_extend(self):
        with self.lock(lease_ms=LEASE_MS) as lock:
            lock.extend(LONG_MS)
            self.assertGreater(lock.valid_ms, LONG_MS / 2)
            with self.assertRaises(Invalid):
                lock.extend(LONG_MS + 1)

    def test_a_lock_that_is_dropped_is_released(self):
        lock = self.lock()
        lock.acquire()
        del lock
        gc.collect()
        self.assert_free()


class Modes(PythonCase):
    def test_a_detached_lock_is_adopted_by_another_client(self):
        with self.lock(fencing=True, lease_ms=LONG_MS) as lock:
            token, fence, valid_ms = lock.detach()
            self.assertEqual((token, fence, lock.valid_ms), (lock.token, lock.fence, 0))
            self.assertGreater(valid_ms, 0)
        self.assertEqual(self.holders(), {token})
        heir = self.open().lock(self.key, fencing=True, lease_ms=LONG_MS)
        heir.adopt(token)
        self.assertEqual((heir.token, heir.fence), (token, fence))
        heir.check()
        self.assertTrue(heir.release())
        self.assert_free()
        with self.assertRaises(Lost):
            self.lock().adopt(token)
        with self.assertRaises(quorlock.Error):
            heir.detach()
        with lock:
            self.assertNotEqual(lock.token, token)
        self.assert_free()

    def test_ctrl_c_releases_nothing_that_was_adopted_meanwhile(self):
        """The signal comes when the lock is adopted, before the caller hears of it."""
        canceled = threading.Event()

        class Library:
            def __getattr__(self, name):
                return getattr(real, name)

            def quorlock_sync_lock_adopt(self, *words):
                status = real.quorlock_sync_lock_adopt(*words)
                os.kill(os.getpid(), signal.SIGINT)
                canceled.wait()
                return status

            def quorlock_sync_lock_cancel(self, handle):
                canceled.set()
                return real.quorlock_sync_lock_cancel(handle)

        real = _lock.library
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        with self.lock(lease_ms=LONG_MS) as lock:
            token = lock.detach().token
        heir = self.lock(lease_ms=LONG_MS)
        with unittest.mock.patch.object(_lock, "library", Library()), self.assertRaises(KeyboardInterrupt):
            heir.adopt(token)
        self.assertEqual((heir.valid_ms, self.holders()), (0, {token}))

    def test_permits(self):
        def slot(number):
            return [server.ask("GET", f"quorlock:slot:{number}:{self.key}") for server in SERVERS]
        locks = [self.lock(permits=3, fencing=True, wait_ms=0) for _ in range(3)]
        for lock in locks:
            lock.acquire()
        self.assertEqual(sorted(lock.slot for lock in locks), [0, 1, 2])
        for lock in locks:
            self.assertGreater(lock.fence, 0)
            self.assertGreaterEqual(slot(lock.slot).count(lock.token.encode()), 2)
        with self.assertRaises(Held):
            self.lock(permits=3, wait_ms=0).acquire()
        with self.assertRaises(Invalid) as caught:
            self.open().lock(self.key, permits=4, wait_ms=0).acquire()
        self.assertIn("3", str(caught.exception))
        self.assertIn("4", str(caught.exception))
        given_back = locks[1].slot
        locks[1].release()
        with self.lock(permits=3, wait_ms=20000) as lock:
            self.assertEqual(lock.slot, given_back)
        for lock in locks[::2]:
            lock.release()
        with self.lock() as lock:
            self.assertIsNone(lock.slot)

    def test_shared(self):
        readers = [client.lock(self.key, shared=True, wait_ms=20000) for client in (self.client, self.client, self.open())]
        with readers[0], readers[1], readers[2]:
            self.assertEqual(self.holders(), {"quorlock:readers"})
            with self.assertRaises(Held):
                self.open().lock(self.key, wait_ms=0).acquire()
        with self.lock(wait_ms=20000):
            with self.assertRaises(Held):
                self.open().lock(self.key, shared=True, wait_ms=0).acquire()
        self.assert_free()

    def test_fair(self):
        for server in SERVERS:  # what somebody leaves that waits
            server.ask("ZADD", f"quorlock:queue:{self.key}", 10**14 + 17, "wother", 10**14 - 1, "~other")
        with self.assertRaises(Held):
            self.lock(fair=True, wait_ms=0).acquire()
        with self.lock(wait_ms=0):
            pass
        for server in SERVERS:
            server.ask("DEL", f"quorlock:queue:{self.key}")
        with self.lock(fair=True, wait_ms=0):
            pass
        self.assert_free()

    def test_keys_in_both_modes(self):
        keys = [self.key + suffix for suffix in "cab"]
        other = self.open()
        for shared in (keys[:1], keys[0], [keys[0].encode()]):
            with self.client.lock(*keys, shared=shared, wait_ms=20000):
                with other.lock(keys[0], shared=True, wait_ms=20000):
                    pass
                for key in keys[1:]:
                    with self.assertRaises(Held):
                        other.lock(key, shared=True, wait_ms=0).acquire()


class Loss(PythonCase):
    def test_a_loss_calls_back_and_raises(self):
        told = []
        event = threading.Event()

        def on_lost(lock, text):
            told.append((lock, text, lock.valid_ms))
            event.set()

        lock = self.lock(lease_ms=LEASE_MS, on_lost=on_lost)
        with self.assertRaises(Lost):
            with lock:
                self.take_away()
                self.assertTrue(event.wait(LIMIT_S))
                self.assertTrue(lock.lost)
                with self.assertRaises(Lost):
                    lock.check()
        self.assertEqual([(lock, 0)], [(found, valid) for found, _, valid in told])
        self.assertNotEqual(told[0][1], "")
        # It can be taken again.
        with lock:
            lock.check()
            self.assertFalse(lock.lost)

    def test_a_failed_acquire_does_not_undo_the_loss(self):
        lock = self.lock(lease_ms=LEASE_MS, wait_ms=0)
        lock.acquire()
        self.take_away()
        wait_for(lambda: lock.lost)
        with self.open().lock(self.key):
            with self.assertRaises(Held):
                lock.acquire()
            self.assertTrue(lock.lost)
        lock.acquire()
        self.assertFalse(lock.lost)
        lock.release()

    def test_the_exception_of_the_block_comes_first(self):
        lock = self.lock(lease_ms=LEASE_MS)
        with self.assertRaises(ZeroDivisionError):
            with lock:
                self.take_away()
                wait_for(lambda: lock.lost)
                raise ZeroDivisionError


class Ends(PythonCase):
    def test_close_releases(self):
        lock = self.lock()
        lock.acquire()
        self.client.close()
        self.client.close()
        self.assertTrue(self.client.closed)
        self.assert_free()
        for call in (lock.acquire, lock.release, self.lock):
            with self.assertRaises(Closed):
                call()
        self.assertEqual(lock.valid_ms, 0)

    def test_close_ends_those_who_wait(self):
        found = []
        threads = [threading.Thread(target=self.wait_in_vain, args=(found,), daemon=True) for _ in range(8)]
        with self.open().lock(self.key):
            for thread in threads:
                thread.start()
            wait_for(lambda: waiting(self.client) == len(threads))
            self.client.close()
            for thread in threads:
                thread.join(LIMIT_S)
        self.assertEqual(found, [Closed] * len(threads))

    def wait_in_vain(self, found):
        try:
            self.lock().acquire()
        except quorlock.Error as problem:
            found.append(type(problem))

    def test_configure_closes_the_client_before_it(self):
        clients = [quorlock.configure(nodes(), guard="off") for _ in range(2)]
        self.addCleanup(clients[1].close)
        self.assertEqual([client.closed for client in clients], [True, False])
        with quorlock.lock(self.key):
            self.assertEqual(len(clients[1]._locks), 1)

    def test_a_child_of_fork_has_the_nodes_of_configure(self):
        child = self.python("""
import os, sys, warnings, quorlock
warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of forks beside threads
nodes = os.environ.pop("QUORLOCK_NODES")
quorlock.configure(nodes, guard="off").lock(os.environ["KEY"]).acquire()
pid = os.fork()
if pid == 0:
    try:
        quorlock.lock(os.environ["KEY"] + ":child", wait_ms=0).acquire()
    except BaseException as problem:
        print(problem, flush=True)
        os._exit(1)
    os._exit(0)
sys.exit(os.waitpid(pid, 0)[1] != 0)
""")
        out, err = child.communicate(timeout=LIMIT_S)
        self.assertEqual((child.returncode, out, err), (0, "", ""))

    def test_cancel(self):
        found = []
        lock = self.lock()

        def wait():
            try:
                lock.acquire()
            except quorlock.Canceled:
                found.append("canceled")

        with self.open().lock(self.key):
            thread = threading.Thread(target=wait, daemon=True)
            thread.start()
            wait_for(lambda: lock.cancel() or found)
            thread.join(LIMIT_S)

    def test_an_interpreter_that_ends_releases(self):
        process = self.python("import os, quorlock\n"
                              "quorlock.configure(os.environ['QUORLOCK_NODES'], guard='off')\n"
                              "lock = quorlock.lock(os.environ['KEY'])\n"
                              "lock.acquire()\n"
                              "print(lock.token)\n")
        status, out, err = self.end_text(process)
        self.assertEqual((status, err), (0, ""))
        self.assertNotEqual(out.strip(), "")
        self.assert_free()

    def end_text(self, process):
        out, err = process.communicate(timeout=LIMIT_S)
        return process.returncode, out, err

    def test_ctrl_c_ends_a_wait(self):
        """Also where it comes before, or while, the wait begins."""
        for pause_s in (0, 0.001, 0.002, 0.003, 0.005, 0.1):
            with self.subTest(pause_s=pause_s):
                self.interrupt(pause_s)

    def interrupt(self, pause_s):
        with self.lock() as lock:
            # A shell that runs this in the background has SIGINT ignored.
            process = self.python("import os, quorlock, signal\n"
                                  "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
                                  "client = quorlock.configure(os.environ['QUORLOCK_NODES'], guard='off')\n"
                                  "print('waits', flush=True)\n"
                                  "with quorlock.lock(os.environ['KEY']):\n"
                                  "    print('has it', flush=True)\n")
            self.assertEqual(process.stdout.readline(), "waits\n")
            time.sleep(pause_s)
            process.send_signal(signal.SIGINT)
            status, out, err = self.end_text(process)
            self.assertEqual((status, out), (-signal.SIGINT, ""), err)
            self.assertIn("KeyboardInterrupt", err)
            self.assertEqual(self.holders(), {lock.token})
        self.assert_free()

    def test_a_child_of_fork_has_a_client_of_its_own(self):
        with self.lock() as lock:
            child = os.fork()
            if child == 0:
                os._exit(self.live_in_child(lock))
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
            lock.check()
            self.assertEqual(self.holders(), {lock.token})

    def live_in_child(self, lock):
        try:
            lock.release()
            return 1
        except Closed:
            pass
        self.client.close()
        if lock.valid_ms != 0:
            return 2
        try:
            quorlock.Client(nodes(), guard="off", max_lease_ms=LONG_MS).lock(self.key, wait_ms=0).acquire()
            return 3
        except Held:
            return 0

class Refusals(PythonCase):
    def test_arguments(self):
        for wrong, text in [({"nodes": []}, "0 node addresses"), ({"nodes": "a:b:c"}, "more than one colon"),
                            ({"policy": "some"}, "'some'"), ({"max_lease_ms": -1}, "max_lease_ms is -1"),
                            ({"max_lease_ms": 2**32}, "max_lease_ms is 4294967296"),
                            ({"key_prefix": "a\0b"}, "NUL"), ({"owner_label": "two words"}, "two words"),
                            ({"tls_ca": "ca.pem"}, "rediss://"),
                            ({"nodes": "rediss://127.0.0.1:1", "tls_ca": "/no/such/ca.pem"}, "/no/such/ca.pem")]:
            with self.subTest(text=text), self.assertRaises(Invalid) as caught:
                quorlock.Client(**{"nodes": nodes(), **wrong})
            self.assertIn(text, str(caught.exception))
        for keys, options, text in [((), {}, "key"), (("",), {}, "empty"), (("a\0b",), {}, "NUL"),
                                    (("a",), {"lease_ms": 1}, "is 1: it must be"),
                                    (("a",), {"lease_ms": LONG_MS + 1}, "120001"),
                                    (("a",), {"label": "two words"}, "two words"), (("a",), {"owner": ""}, "owner"),
                                    (("a",), {"permits": 65}, "permits is 65: 1 to 64"),
                                    (("a", "b"), {"permits": 2}, "2 keys"),
                                    (("a",), {"permits": 2, "shared": True}, "choose one of both"),
                                    (("a",), {"permits": -1}, "permits is -1"),
                                    (("a",), {"keep_ms": LONG_MS + 1}, f"keep_ms is {LONG_MS + 1}: at most"),
                                    (("a",), {"keep_ms": 2, "permits": 2}, "keep_ms is for exclusive locks"),
                                    (("a",), {"shared": ["b"]}, "shared has 'b'"),
                                    (("a",), {"shared": "ab"}, "shared has 'ab'")]:
            with self.subTest(keys=keys, options=options), self.assertRaises(Invalid) as caught:
                self.client.lock(*keys, **options)
            self.assertIn(text, str(caught.exception))
        for call, text in [(lambda: self.client.lock("a", lease_ms=0.5), "lease_ms is 0.5: it must be an integer"),
                           (lambda: self.client.lock(5), "the key is 5: it must be str or bytes-like"),
                           (lambda: self.client.lock(None), "the key is None"), (lambda: self.client.lock({1: 2}), "{1: 2}"),
                           (lambda: self.client.lock([17, 42]), "[17, 42]: it must be str or bytes-like; give several"),
                           (lambda: self.client.lock(["a", "b"]), "['a', 'b']: it must be str or bytes-like; give several"),
                           (lambda: quorlock.Lock(self.client, "ab"), "keys is 'ab': it must be a list of keys"),
                           (lambda: self.client.lock("a", shared=[5]), "the key is 5"),
                           (lambda: self.client.lock("a", shared=5), "shared is 5"),
                           (lambda: self.client.lock("a", label=5), "label is 5"),
                           (lambda: self.client.inspect(5), "the key is 5"),
                           (lambda: self.client.candidate(5), "the name is 5"),
                           (lambda: quorlock.Client(5), "nodes is 5"),
                           (lambda: quorlock.Client([5]), "the address of a node is of type int")]:
            with self.subTest(text=text), self.assertRaises(TypeError) as caught:
                call()
            self.assertIn(text, str(caught.exception))
        for key in (bytearray(b"a"), memoryview(b"a")):
            self.assertEqual(self.client.lock("a", shared=[key])._options.shared, 1)

    def test_no_message_shows_a_password(self):
        for wrong in [{"password": "ge\0heim"}, {"nodes": ["redis://user:ge\0heim@127.0.0.1:1"]},
                      {"nodes": "redis://:geheim@127.0.0.1:x"}]:
            with self.assertRaises(Invalid) as caught:
                quorlock.Client(**{"nodes": nodes(), **wrong})
            self.assertNotIn("heim", str(caught.exception))

    def test_states(self):
        lock = self.lock()
        with self.assertRaises(quorlock.Error) as caught:
            lock.release()
        self.assertEqual(caught.exception.name, "STATE")
        with lock, self.assertRaises(quorlock.Error):
            lock.acquire()

    def test_troubles_on_purpose(self):
        lines = []
        with unittest.mock.patch.dict(os.environ, {"QUORLOCK_BUGGIFY": "7"}):
            client = self.open(log=lambda level, line: lines.append(line))
        with self.assertRaises((NoQuorum, Lost)):
            for _ in range(200):
                with client.lock(self.key, wait_ms=LONG_MS):
                    pass
        wait_for(lambda: any("buggify" in line.lower() and "7" in line for line in lines))
        with unittest.mock.patch.dict(os.environ, {"QUORLOCK_BUGGIFY": "lots"}), self.assertRaises(Invalid):
            self.open()

    def test_the_nodes_of_the_environment(self):
        process = self.python("import quorlock\nquorlock.lock('a')\n")
        self.assertEqual(process.wait(LIMIT_S), 0)
        environment = {name: value for name, value in os.environ.items() if name != "QUORLOCK_NODES"}
        environment["QUORLOCK_LIBRARY"] = "/nowhere/libquorlock.so"
        found = subprocess.run([sys.executable, "-c", "import quorlock\n"], env=environment, capture_output=True,
                               text=True, timeout=LIMIT_S, check=False)
        self.assertIn("or set QUORLOCK_LIBRARY", found.stderr)


class Log(PythonCase):
    def test_lines(self):
        lines = []
        client = self.open(log=lambda level, text: lines.append((level, text)))
        with client.lock(self.key, lease_ms=LEASE_MS) as lock:
            self.take_away()
            wait_for(lambda: lock.lost)
            lock.cancel()
            with self.assertRaises(Lost):
                lock.release()
            lock.acquire()
        # A thread of the package's brings the lines.
        wait_for(lambda: any(f'lost "{self.key}"' in text for _, text in lines))

    def test_the_logger_of_the_package(self):
        with self.assertLogs("quorlock", "DEBUG") as caught, self.lock(lease_ms=LEASE_MS) as lock:
            self.take_away()
            wait_for(lambda: lock.lost)
            lock.cancel()
            with self.assertRaises(Lost):
                lock.release()
            lock.acquire()
            wait_for(lambda: any(one.levelname == "ERROR" for one in caught.records))
        self.assertIn(f'lost "{self.key}"', next(one.getMessage() for one in caught.records if one.levelname == "ERROR"))
        logger, lines = logging.getLogger("another"), []
        logger.setLevel("DEBUG")
        logger.propagate = False
        logger.addHandler(logging.Handler())
        logger.handlers[0].emit = lambda record: lines.append(record.levelname)
        with self.open(log=logger.log).lock(self.key):
            wait_for(lambda: "INFO" in lines)

    def test_who_waits_for_servers_that_are_not_there_is_told_why(self):
        process = self.python("import quorlock\ntry: quorlock.Client('127.0.0.1:1').lock('a', wait_ms=500).acquire()\n"
                              "except quorlock.NoQuorum: pass\n")
        _, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("127.0.0.1:1: down: ", err)

    def test_a_long_wait_is_a_warning(self):
        told, times = [], [0.0]
        tell = quorlock._client.line_to(lambda level, text: told.append((level, text)))
        with unittest.mock.patch("time.monotonic", lambda: times[0]):
            for now in (0, 0.5, 10, 100, 100.5, 110):
                times[0] = now
                tell(1, 'waiting for "a": held')
        self.assertEqual([level for level, _ in told], [20, 20, 30, 20, 20, 30])


class Asyncio(PythonCase):
    def test_the_block_holds_the_lock(self):
        async def hold():
            async with self.lock() as lock:
                self.assertEqual(self.holders(), {lock.token})
                await asyncio.sleep(0)
                lock.check()
        asyncio.run(hold())
        self.assert_free()

    def test_the_block_releases_nothing_that_was_detached_in_it(self):
        async def hand_out():
            async with self.lock(lease_ms=LONG_MS) as lock:
                return lock.detach().token
        token = asyncio.run(hand_out())
        self.assertEqual(self.holders(), {token})

    def test_a_loss_ends_the_wait_of_the_block(self):
        async def lose(lock):
            async with lock:
                self.take_away()
                await asyncio.sleep(3600)
        async def lose_twice():
            lock = self.lock(lease_ms=LEASE_MS)
            for _ in range(2):
                with self.assertRaises(Lost):
                    await lose(lock)
            # Nothing of the cancellation is left.
            await asyncio.sleep(0)
        asyncio.run(lose_twice())
        self.assert_free()

    def test_a_loss_that_the_block_does_not_wait_for(self):
        async def lose():
            async with self.lock(lease_ms=LEASE_MS) as lock:
                self.take_away()
                wait_for(lambda: lock.lost)
        with self.assertRaises(Lost):
            asyncio.run(lose())

    def test_a_waiter_that_is_canceled_holds_nothing(self):
        async def cancel():
            async with self.lock():
                waits = asyncio.create_task(self.open().lock(self.key).acquire_async())
                await asyncio.sleep(0.05)
                waits.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await waits
            await asyncio.sleep(0.05)
            self.assertEqual(self.holders(), set())
        asyncio.run(cancel())
        self.assert_free()

    def close_loop(self, work, begun):
        """Closes a loop that runs this work as soon as it has begun."""
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda *_: None)  # of the task that is left over
        loop.create_task(work())
        while not begun():
            loop.run_until_complete(asyncio.sleep(0.001))
        loop.close()

    def assert_freed(self):
        """Nobody has a lock any more, and the library has none either: the close of the client is not waited for. What the
        client's thread still refers to is collected later."""
        wait_for(lambda: gc.collect() is not None and not self.client._locks)

    def test_without_a_thread_to_be_had_nothing_stays_held(self):
        def refuse(_):
            raise RuntimeError("can't start new thread")

        async def cancel_and_release():
            async with self.lock() as holder:
                waits = asyncio.create_task(self.lock().acquire_async())
                while len(STARTED) == 0:
                    await asyncio.sleep(0.001)
                waits.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await waits
                self.assertTrue(await holder.release_async())
                self.assert_free()
                await holder.acquire_async()
        with unittest.mock.patch.object(threading.Thread, "start", refuse):
            asyncio.run(cancel_and_release())
        self.assert_free()

    def test_a_waiter_whose_loop_is_closed_holds_nothing(self):
        lock = self.lock()
        with self.lock():
            self.close_loop(lock.acquire_async, lambda: STARTED)
        wait_for(lambda: not STARTED)
        self.assert_free()
        self.assertEqual(lock.valid_ms, 0)
        # It goes on to be of use, and is freed as any other.
        with lock:
            self.assertGreater(lock.valid_ms, 0)
        del lock
        self.assert_freed()

    def test_a_block_whose_loop_is_closed_gives_the_lock_back(self):
        problems = []

        async def hold():
            async with self.lock():
                await asyncio.sleep(LIMIT_S)

        self.addCleanup(setattr, sys, "unraisablehook", sys.unraisablehook)
        sys.unraisablehook = problems.append
        self.close_loop(hold, lambda: all(self.values()) and not STARTED)
        self.assert_freed()
        self.assert_free()
        self.assertEqual(problems, [])

    def test_another_cancellation_stays_one(self):
        async def hold():
            async with self.lock():
                await asyncio.sleep(3600)

        async def cancel():
            task = asyncio.create_task(hold())
            while not self.holders():
                await asyncio.sleep(0.005)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
        asyncio.run(cancel())
        self.assert_free()

    def test_errors(self):
        async def fail():
            async with self.lock():
                with self.assertRaises(Held):
                    async with self.lock(wait_ms=0):
                        pass
                raise ZeroDivisionError
        with self.assertRaises(ZeroDivisionError):
            asyncio.run(fail())
        self.assert_free()


if __name__ == "__main__":
    command_case.main()
