#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The scheduled job: three replicas fire at each tick; one of them runs the job, and the others say so and go.

Once with the library and once as `quorlock run` from a shell loop. This test is the clock of each replica: it
tells them each tick, to all at once or, where their clocks differ, to one when the other is done.
"""
import os
import sys
import time

sys.dont_write_bytecode = True

import examples
from examples import LIMIT_S, MAX_LEASE_MS, Fixture, TooBusy, Worker, await_that, check, main, try_often

REPLICAS, TICKS = 3, 6
WORK_MS = 50
KEEP_S = 4  # as in the programs
KEPT_TICKS = 2  # each waits until the key is free
WAYS = {"lock": "with the lock alone", "tick": "with the lock and a fence a tick"}
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scheduled_job.sh")


def table(fixture):
    fixture.sql("CREATE TABLE job (tick INTEGER NOT NULL)")
    fixture.sql("INSERT INTO job VALUES (0)")
    fixture.sql("CREATE TABLE runs (tick INTEGER NOT NULL, replica TEXT NOT NULL)")


def library(fixture, way, nodes):
    return [Worker(f"replica {n}", "scheduled_job", way, n, WORK_MS, fixture.database, *nodes)
            for n in range(REPLICAS)]


def shell(fixture, way, nodes):
    path = f"{examples.PROGRAMS}:{os.path.dirname(examples.PROGRAMS)}:{os.environ['PATH']}"
    env = dict(os.environ, PATH=path, QUORLOCK_NODES=",".join(map(str, nodes)))
    return [Worker(f"replica {n}", SCRIPT, way, n, WORK_MS, fixture.database, env=env) for n in range(REPLICAS)]


def fire(fixture, replicas, tick, meanwhile):
    """All at once, with the lock alone. It gives how often none of them got it, as the machine was too busy for the
    servers to answer the one try in time; then all are told once more.

    The job takes so long that all others have come and gone, and meanwhile() is done.
    """
    refused, end = 0, time.monotonic() + LIMIT_S
    while True:
        with fixture.writes_held():
            for replica in replicas:
                replica.tell(tick)
            await_that(lambda: sum(not replica.says_nothing() for replica in replicas) >= REPLICAS - 1,
                       f"tick {tick}: more than one runs, or waits")
            if refused == 0:
                meanwhile()
        said = [replica.expect("ran", "another-runs", "no-lock", "lost")["what"] for replica in replicas]
        check(said.count("ran") <= 1, f"tick {tick}: the replicas said {said}")
        if said.count("ran") == 1:
            return refused
        refused += 1
        check(time.monotonic() < end, f"tick {tick}: {refused} times none got the lock")


def fire_with_fence(fixture, replicas, tick, meanwhile):
    """All at once; they wait for the lock, and the job tells them that it was run. No time matters."""
    with fixture.writes_held():
        for replica in replicas:
            replica.tell(tick)
        fixture.await_inside("job")
        meanwhile()
    said = sorted(replica.expect("ran", "was-run")["what"] for replica in replicas)
    check(said == ["ran"] + ["was-run"] * (REPLICAS - 1), f"tick {tick}: the replicas said {said}")
    return 0


def runs(fixture):
    return [row[0] for row in fixture.sql("SELECT count(*) FROM runs GROUP BY tick ORDER BY tick")]


def finish(replicas):
    for replica in replicas:
        replica.end()


def form_without():
    with Fixture(MAX_LEASE_MS) as fixture:
        table(fixture)
        replicas = library(fixture, "lock", [])
        for tick in range(1, TICKS + 1):
            for replica in replicas:
                replica.tell(tick)
            for replica in replicas:
                replica.expect("ran")
        finish(replicas)
        check(runs(fixture) == [REPLICAS] * TICKS, f"it ran {runs(fixture)} times, so this proves nothing")
        print(f"scheduled job, without the lock: {TICKS} ticks, run {sum(runs(fixture))} times", flush=True)


def form_with(name, begin, way, fault):
    """fault kills a server while the job of a tick runs; while that of a later one runs it is back."""
    refused = 0
    with Fixture(MAX_LEASE_MS) as fixture:
        table(fixture)
        replicas = begin(fixture, way, fixture.servers)
        faults = {2: fixture.servers[0].kill, 4: fixture.servers[0].come_back} if fault else {}
        for tick in range(1, TICKS + 1):
            next_tick = time.monotonic() + 2 * WORK_MS / 1000  # at the earliest: it takes half a tick
            refused += (fire if way == "lock" else fire_with_fence)(fixture, replicas, tick, faults.pop(tick, int))
            fixture.await_free("job")
            time.sleep(max(0.0, next_tick - time.monotonic()))
        finish(replicas)
        check(runs(fixture) == [1] * TICKS, f"{name}, {way}: it ran {runs(fixture)} times")
        print(f"scheduled job, {name}, {WAYS[way]}{', a server killed and back' if fault else ''}: {REPLICAS} "
              f"replicas, {TICKS} ticks, run {sum(runs(fixture))} times; {refused} times none got it at first", flush=True)


def form_clocks(name, begin, way):
    """Each replica fires when the one before is done."""
    with Fixture(MAX_LEASE_MS) as fixture:
        table(fixture)
        replicas = begin(fixture, way, fixture.servers)
        for tick in range(1, TICKS + 1):
            for replica in replicas:
                wanted = "ran" if way == "lock" or replica is replicas[0] else "was-run"
                said = "no-lock"
                while said == "no-lock":  # a machine too busy for the one try
                    fixture.await_free("job")
                    replica.tell(tick)
                    said = replica.expect("ran", "was-run", "no-lock")["what"]
                check(said == wanted, f"tick {tick}: {replica.name} said {said}")
        finish(replicas)
        check(runs(fixture) == [REPLICAS if way == "lock" else 1] * TICKS, f"{name}, {way}: it ran {runs(fixture)} times")
        print(f"scheduled job, {name}, clocks that differ, {WAYS[way]}: {TICKS} ticks, run {sum(runs(fixture))} times",
              flush=True)


def form_kept(name, begin):
    """As form_clocks, but the lock is kept: the replicas that fire within that time find it held."""
    with Fixture(MAX_LEASE_MS) as fixture:
        table(fixture)
        replicas = begin(fixture, "keep", fixture.servers)
        for tick in range(1, KEPT_TICKS + 1):
            fixture.await_free("job")
            began, said = time.monotonic(), []
            for replica in replicas:
                replica.tell(tick)
                said.append(replica.expect("ran", "another-runs", "no-lock")["what"])
            if time.monotonic() - began > KEEP_S or "no-lock" in said:
                raise TooBusy(f"tick {tick}: the replicas said {said}")
            check(said == ["ran"] + ["another-runs"] * (REPLICAS - 1), f"tick {tick}: the replicas said {said}")
        finish(replicas)
        check(runs(fixture) == [1] * KEPT_TICKS, f"{name}, kept: it ran {runs(fixture)} times")
        print(f"scheduled job, {name}, clocks that differ, with a lock that is kept for {KEEP_S} s: {KEPT_TICKS} ticks, run "
              f"{sum(runs(fixture))} times", flush=True)


def scenario():
    form_without()
    for name, begin in (("library", library), ("shell loop", shell)):
        for way in WAYS:
            for fault in (False, True):
                form_with(name, begin, way, fault)
            form_clocks(name, begin, way)
        try_often(form_kept, name, begin)


if __name__ == "__main__":
    main(scenario)
