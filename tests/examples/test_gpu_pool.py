#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The GPU pool: workers with many jobs share a few GPUs, and never are two on the same one; with the library and by
`quorlock run --permits` in a shell loop."""
import os
import sys

sys.dont_write_bytecode = True

import examples
from examples import MAX_LEASE_MS, Fixture, Worker, await_that, check, clock_us, main

GPUS, WORKERS, JOBS = 3, 6, 20
SHELL_JOBS = 5
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpu_pool.sh")


def tables(fixture):
    fixture.sql("CREATE TABLE gpu (id INTEGER PRIMARY KEY, busy INTEGER NOT NULL, worst INTEGER NOT NULL, "
                "fence INTEGER NOT NULL)")
    fixture.sql("INSERT INTO gpu VALUES " + ", ".join(f"({gpu}, 0, 0, 0)" for gpu in range(GPUS)))
    fixture.sql("CREATE TABLE job (gpu INTEGER NOT NULL, worker TEXT NOT NULL)")


def library(fixture, jobs, nodes):
    return [Worker(f"worker {n}", "gpu_pool", n, jobs, GPUS, fixture.database, *nodes) for n in range(WORKERS)]


def shell(fixture, jobs, nodes):
    path = f"{examples.PROGRAMS}:{os.path.dirname(examples.PROGRAMS)}:{os.environ['PATH']}"
    env = dict(os.environ, PATH=path, QUORLOCK_NODES=",".join(map(str, nodes)))
    return [Worker(f"worker {n}", SCRIPT, n, jobs, GPUS, fixture.database, env=env) for n in range(WORKERS)]


def worst(fixture):
    return fixture.number("SELECT max(worst) FROM gpu")


def form_without():
    """All have looked before anybody writes."""
    with Fixture(MAX_LEASE_MS) as fixture:
        tables(fixture)
        with fixture.writes_held():
            workers = library(fixture, 1, [])
            for worker in workers:
                worker.expect("looked")
        for worker in workers:
            worker.rest()
        used = fixture.number("SELECT count(DISTINCT gpu) FROM job")
        check(used == 1, f"{WORKERS} jobs went to {used} GPUs, so this proves nothing")
        print(f"GPU pool, without permits: {WORKERS} jobs, {GPUS} GPUs, all on one of them", flush=True)


def slots(fixture):
    """The slots that a server knows to be held, server by server."""
    return [sum(server.ask("GET", f"quorlock:slot:{slot}:gpu") is not None for slot in range(GPUS))
            for server in fixture.servers if server.running()]


def form_with(name, begin, jobs, fault):
    """While all GPUs are taken, and nobody comes on, a server is killed; while they are taken again it is back."""
    with Fixture(MAX_LEASE_MS) as fixture:
        tables(fixture)
        since_us = clock_us()
        with fixture.writes_held():
            workers = begin(fixture, jobs, fixture.servers)
            await_that(lambda: sorted(slots(fixture))[1] == GPUS, lambda: f"slots are free: {slots(fixture)}")
            if fault:
                fixture.servers[0].kill()
        await_that(lambda: fixture.number("SELECT count(*) FROM job") >= WORKERS, "no job is done")
        if fault:
            fixture.servers[0].come_back()
        for worker in workers:
            worker.rest()
        done = fixture.number("SELECT count(*) FROM job")
        by_gpu = [row[0] for row in fixture.sql("SELECT count(*) FROM job GROUP BY gpu")]
        check(done == WORKERS * jobs, f"{name}: {done} jobs were done")
        check(worst(fixture) == 1, f"{name}: {worst(fixture)} jobs at once on one GPU")
        check(len(by_gpu) == GPUS, f"{name}: {len(by_gpu)} GPUs had a job")
        print(f"GPU pool, {name}{', a server killed and back' if fault else ''}: {WORKERS} workers, {done} jobs, "
              f"{GPUS} GPUs ({', '.join(map(str, by_gpu))}), one job on each at a time, "
              f"{(clock_us() - since_us) / 1000:.0f} ms", flush=True)


def scenario():
    form_without()
    for name, begin, jobs in (("library", library, JOBS), ("shell loop", shell, SHELL_JOBS)):
        for fault in (False, True):
            form_with(name, begin, jobs, fault)


if __name__ == "__main__":
    main(scenario)
