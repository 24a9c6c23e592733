#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The Python package beside gevent, eventlet, trio, anyio and Celery: test_python_runtimes.py PATH_TO_quorlock [TEST...]

QUORLOCK_RUNTIMES names the folder into which pip brings them, once. Without them the tests are skipped, and in CI they fail.
"""
import os
import pathlib
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True  # the tree stays as it is
sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

import test_python
from test_python import LIMIT_S, command_case, nodes

PACKAGES = ["gevent>=24.2", "eventlet>=0.36", "trio>=0.24", "anyio>=4.2", "celery>=5.3"]
SKIPPED = 77
PIP_S = 250
FOLDER = os.path.abspath(os.environ.get("QUORLOCK_RUNTIMES") or "runtimes")

BEGIN = {
    "gevent": """
from gevent import monkey; monkey.patch_all()
import gevent
spawn, sleep = gevent.spawn, gevent.sleep
def join(all_): gevent.joinall(all_, raise_error=True)
""",
    "gevent, whose patches come after the import": """
import quorlock
from gevent import monkey; monkey.patch_all()
import gevent
spawn, sleep = gevent.spawn, gevent.sleep
def join(all_): gevent.joinall(all_, raise_error=True)
""",
    "gevent without patches": """
import gevent
spawn, sleep = gevent.spawn, gevent.sleep
def join(all_): gevent.joinall(all_, raise_error=True)
""",
    "eventlet": """
import eventlet; eventlet.monkey_patch()
spawn, sleep = eventlet.spawn, eventlet.sleep
def join(all_): [one.wait() for one in all_]
"""}

GREENLETS = """
import logging, os
import quorlock

logging.getLogger("quorlock").addHandler(logging.NullHandler())  # a loss is on purpose
key = os.environ["KEY"]
client = quorlock.configure(os.environ["QUORLOCK_NODES"], guard="off", max_lease_ms=120000)
order, ticks, lost = [], [], []

def tick():
    while len(order) < 6:
        ticks.append(1)
        sleep(0.001)

def work(number):
    # Each holds it for longer than others may stall in a wait.
    with quorlock.lock(key) as lock:
        order.append(number)
        sleep(0.02)
        lock.extend()
        order.append(number)

join([spawn(work, number) for number in range(3)] + [spawn(tick)])
assert order[::2] == order[1::2] and len(ticks) > 10, (order, ticks)
with quorlock.lock(key):
    waits = spawn(work, 9)
    while "quorlock_waiting 1\\n" not in client.metrics():
        sleep(0.001)
    sleep(0.01)
    waits.kill()
lock = quorlock.lock(key, lease_ms=600, on_lost=lambda lock, text: lost.append(text))
lock.acquire()
client.break_lock(key)
while not lost:
    sleep(0.01)
with client.candidate(key + ":leader") as leader:
    leader.check()
client.close()
"""

# A wait that stands in a thread, and one that is canceled.
THREADS = """
import os
import quorlock

key = os.environ["KEY"]
client = quorlock.configure(os.environ["QUORLOCK_NODES"], guard="off", max_lease_ms=120000)
ticks = []

async def tick():
    for _ in range(20):
        ticks.append(1)
        await sleep(0.001)

async def work():
    lock = quorlock.lock(key)
    await run(lock.acquire)
    lock.check()
    await sleep(0.01)
    await run(lock.release)

async def main():
    async with group() as tasks:
        for function in work, work, work, tick:
            tasks.start_soon(function)
    assert len(ticks) == 20
"""
TASKS = {"trio": "import trio\n" + THREADS + """
run, sleep, group = trio.to_thread.run_sync, trio.sleep, trio.open_nursery
trio.run(main)
""", "anyio": "import anyio\n" + THREADS + """
run, sleep, group = anyio.to_thread.run_sync, anyio.sleep, anyio.create_task_group
anyio.run(main)
with_asyncio = quorlock.lock(key)
async def block():
    async with with_asyncio as lock:
        lock.check()
anyio.run(block)
"""}

CELERY = """
import os, sys
import billiard, celery.signals
import quorlock

client = quorlock.configure(os.environ["QUORLOCK_NODES"], guard="off", max_lease_ms=120000)

held = []

def hold():
    held.append(quorlock.lock(os.environ["KEY"], lease_ms=120000))
    held[0].acquire()

def work():
    # As a worker of the pool ends: by this signal, and without atexit and finalizers.
    hold()
    celery.signals.worker_process_shutdown.send(sender=None, pid=os.getpid(), exitcode=0)
    os._exit(0)

child = billiard.Process(target={"ends": hold, "shutdown": work}[sys.argv[1]])
child.start()
child.join()
sys.exit(child.exitcode)
"""


class Runtimes(test_python.PythonCase):
    def end(self, text, *words):
        environment = {**os.environ, "QUORLOCK_NODES": nodes(), "KEY": self.key,
                       "PYTHONPATH": FOLDER + os.pathsep + os.environ["PYTHONPATH"]}
        found = subprocess.run([sys.executable, "-W", "ignore", "-c", text, *words], env=environment, timeout=2 * LIMIT_S,
                               capture_output=True, text=True, check=False)
        self.assertEqual((found.returncode, found.stdout, found.stderr), (0, "", ""))
        self.assert_free()

    def test_greenlets_go_on_while_others_wait(self):
        for name, begin in BEGIN.items():
            with self.subTest(runtime=name):
                self.end(begin + GREENLETS)

    def test_tasks_wait_in_threads(self):
        for name, text in TASKS.items():
            with self.subTest(runtime=name):
                self.end(text)

    def test_a_worker_of_celery_releases_what_it_holds_at_its_end(self):
        for way in ("ends", "shutdown"):
            with self.subTest(way=way):
                self.end(CELERY, way)
                self.assertFalse(any(self.values()))


def prepare():
    """Bring the packages, once."""
    stamp = os.path.join(FOLDER, "prepared")
    wanted = "\n".join([sys.version, *PACKAGES])
    if os.path.exists(stamp) and pathlib.Path(stamp).read_text(encoding="utf-8") == wanted:
        return
    found = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade",
                            "--target", FOLDER, *PACKAGES], timeout=PIP_S, capture_output=True, text=True, check=False)
    if found.returncode != 0:
        in_ci = os.environ.get("CI", "") not in ("", "0", "false")
        print(f"{'FAILED' if in_ci else 'SKIPPED'}: pip cannot bring {', '.join(PACKAGES)}: {found.stderr[-300:]}")
        sys.exit(1 if in_ci else SKIPPED)
    pathlib.Path(stamp).write_text(wanted, encoding="utf-8")


if __name__ == "__main__":
    prepare()
    command_case.main()
