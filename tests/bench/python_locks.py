#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A peer of the benchmark, as programs.py describes it: locks that Python takes and gives back, by our package or redis-py's.

usage: python_locks.py quorlock|redis-py threads|tasks NODE...

One thread is the main thread. redis-py locks on the first node alone.
"""
import asyncio
import json
import sys
import threading
import time

LEASE_S = 30


class Times:
    """Of the locks of one order; each thread or task has a list of its own."""

    def __init__(self, ms):
        self.until = time.perf_counter() + ms / 1000
        self.lists = []
        self.failed = 0

    def list(self):
        self.lists.append([])
        return self.lists[-1]

    def line(self, begun, cpu):
        found = sorted(us for one in self.lists for us in one)
        return {"locks": len(found), "failed": self.failed, "seconds": time.perf_counter() - begun, "cpu_s": time.process_time() - cpu,
                **{name: quantile(found, q) for name, q in (("p50_us", 0.5), ("p99_us", 0.99), ("p999_us", 0.999))}}


def quantile(found, q):
    return found[min(len(found) - 1, int(q * len(found)))] if found else 0


def work(lock, times):
    mine, clock = times.list(), time.perf_counter
    while (begun := clock()) < times.until:
        if lock.acquire() is not False:  # 0.2 returned nothing
            mine.append((clock() - begun) * 1e6)
            lock.release()
        else:
            times.failed += 1


def by_threads(locks, times):
    if len(locks) == 1:
        work(locks[0], times)
        return
    threads = [threading.Thread(target=work, args=(lock, times)) for lock in locks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


async def work_async(acquire, release, times):
    mine, clock = times.list(), time.perf_counter
    while (begun := clock()) < times.until:
        if await acquire() is not False:
            mine.append((clock() - begun) * 1e6)
            await release()
        else:
            times.failed += 1


def open_client(client, style, nodes):
    """What makes a lock of a key, and the version."""
    if client == "quorlock":
        import quorlock
        one = quorlock.Client(nodes, guard="off")
        return (lambda key: one.lock(key, lease_ms=LEASE_S * 1000)), quorlock.__version__
    import redis
    host, _, port = nodes[0].rpartition(":")
    kind = redis.asyncio.Redis if style == "tasks" else redis.Redis
    one = kind(host=host, port=int(port))
    return (lambda key: one.lock(key, timeout=LEASE_S)), redis.__version__


def orders():
    for line in sys.stdin:
        in_flight, ms, prefix = line.split()
        yield [f"{prefix}{i}" for i in range(int(in_flight))], int(ms)


def tell(times, begun, cpu):
    print(json.dumps(times.line(begun, cpu)), flush=True)


def serve_threads(new_lock):
    for keys, ms in orders():
        locks = [new_lock(key) for key in keys]
        begun, cpu, times = time.perf_counter(), time.process_time(), Times(ms)
        by_threads(locks, times)
        tell(times, begun, cpu)


async def serve_tasks(new_lock, ours):
    for keys, ms in orders():
        locks = [new_lock(key) for key in keys]
        begun, cpu, times = time.perf_counter(), time.process_time(), Times(ms)
        await asyncio.gather(*[work_async(lock.acquire_async, lock.release_async, times) if ours else
                               work_async(lock.acquire, lock.release, times) for lock in locks])
        tell(times, begun, cpu)


def main():
    client, style, *nodes = sys.argv[1:]
    new_lock, version = open_client(client, style, nodes)
    print("ready", client, version, flush=True)
    if style == "tasks":
        asyncio.run(serve_tasks(new_lock, client == "quorlock"))
    else:
        serve_threads(new_lock)


main()
