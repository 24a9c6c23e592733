# SPDX-License-Identifier: BSD-3-Clause
"""The same short program in each runtime: work.py RUNTIME, or as a module of gunicorn, uWSGI and Celery.

It takes its steps as it is ordered to, by files in FOLDER, and says what happens in the file `said` there.
"""
import contextlib
import logging
import os
import sys
import threading
import time

FOLDER, KEY = os.environ["FOLDER"], os.environ["KEY"]
RUNTIME = os.environ.get("RUNTIME") or sys.argv[1]
if RUNTIME == "gevent":
    from gevent import monkey
    monkey.patch_all()
if RUNTIME == "eventlet":
    import eventlet
    eventlet.monkey_patch()

import quorlock

LEASE_MS = 6000
PAUSE_S = 0.005
logging.getLogger("quorlock").addHandler(logging.NullHandler())  # losses are on purpose


def say(*words):
    """At once, from any thread and process."""
    fd = os.open(os.path.join(FOLDER, "said"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, (" ".join(words) + "\n").encode())
    os.close(fd)


def ordered(word):
    return os.path.exists(os.path.join(FOLDER, word))


# What the parent of workers has made and used, they use too.
client = quorlock.configure(os.environ["QUORLOCK_NODES"], guard="off", max_lease_ms=120000)
lock = quorlock.lock(KEY, lease_ms=LEASE_MS, on_lost=lambda *_: say("lost"))
with quorlock.lock(KEY + ":before"):
    pass


def block():
    """Compute: nothing else of this loop or hub runs meanwhile."""
    say("computes")
    while not ordered("stop"):
        pass


def wait():
    say("waits")
    with lock:
        say("has it")


def tick():
    say("ticks")


def compute():
    try:
        with lock:
            block()
    except quorlock.Lost:
        say("raises Lost")


def keep():
    """Its owner leaves it held."""
    lock.acquire()
    say("keeps")


def fork():
    pid = os.fork()
    if pid == 0:
        with lock:
            say("child has it")
        os._exit(0)
    os.waitpid(pid, 0)


STEPS = {"wait": wait, "tick": tick, "compute": compute, "keep": keep, "keep-again": keep, "fork": fork}
ORDERS = ["wait", "tick", "compute", "fork", "keep", "keep-again"]


def run(spawn, sleep, orders=()):
    """In a runtime without workers: each step is a thread, a greenlet or a process."""
    for word in orders or ORDERS:
        while not ordered(word):
            sleep(PAUSE_S)
        spawn(STEPS[word])
    while not ordered("end"):
        sleep(PAUSE_S)


# ---- with await ----

async def run_async(spawn, sleep, held, acquire):
    """`held` is how a lock is held for a block, `acquire` how it is taken."""
    async def wait_():
        say("waits")
        async with held(lock):
            say("has it")

    async def compute_():
        try:
            async with held(lock):
                block()
        except quorlock.Lost:
            say("raises Lost")

    async def at_once(step):
        step()

    async def keep_():
        await acquire()
        say("keeps")

    steps = {"wait": wait_, "compute": compute_, "keep": keep_, "keep-again": keep_}
    for word in ORDERS:
        while not ordered(word):
            await sleep(PAUSE_S)
        spawn(steps[word] if word in steps else lambda step=STEPS[word]: at_once(step))
    while not ordered("end"):
        await sleep(PAUSE_S)


def run_asyncio(runner):
    import asyncio
    tasks = []
    runner(run_async(lambda step: tasks.append(asyncio.ensure_future(step())), asyncio.sleep, lambda one: one, lock.acquire_async))


def run_uvloop():
    import uvloop
    run_asyncio(uvloop.run)


def in_thread(call):
    @contextlib.asynccontextmanager
    async def held(one):
        await call(one.acquire)
        try:
            yield one
        finally:
            await call(one.release)
    return held


def run_trio():
    import trio

    async def main():
        async with trio.open_nursery() as nursery:
            await run_async(nursery.start_soon, trio.sleep, in_thread(trio.to_thread.run_sync), lambda: trio.to_thread.run_sync(lock.acquire))
    trio.run(main)


def run_anyio():
    import anyio

    async def main():
        async with anyio.create_task_group() as group:
            await run_async(group.start_soon, anyio.sleep, in_thread(anyio.to_thread.run_sync), lambda: anyio.to_thread.run_sync(lock.acquire))
    anyio.run(main)


# ---- others ----

def run_threads():
    run(lambda step: threading.Thread(target=step).start(), time.sleep)


def run_gevent():
    import gevent
    run(gevent.spawn, gevent.sleep)


def run_eventlet():
    run(eventlet.spawn, eventlet.sleep)


def run_multiprocessing(method):
    import multiprocessing
    make = multiprocessing.get_context(method).Process
    run(lambda step: make(target=step).start(), time.sleep, ["wait", "tick", "compute", "keep"])


def application(environ, start_response):
    """For gunicorn and uWSGI."""
    STEPS[environ["PATH_INFO"][1:]]()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "0")])
    return [b""]


if RUNTIME == "celery":
    import celery
    app = celery.Celery("work", broker=os.environ["BROKER"])
    app.conf.broker_connection_retry_on_startup = True

    @app.task
    def step(word):
        STEPS[word]()


def main():
    runs = {"threads": run_threads, "gevent": run_gevent, "eventlet": run_eventlet, "uvloop": run_uvloop, "trio": run_trio,
            "anyio": run_anyio}
    if RUNTIME == "asyncio":
        import asyncio
        run_asyncio(asyncio.run)
    elif RUNTIME in runs:
        runs[RUNTIME]()
    else:
        run_multiprocessing(RUNTIME)


if __name__ == "__main__":
    main()
