#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The scheduler with a hot standby: jobs are numbered and dispatched by one of three, and none twice and none is missing,
although the leader is killed, and its successor stopped and continued when another one leads."""
import sys

sys.dont_write_bytecode = True

from examples import MAX_LEASE_MS, Fixture, Worker, await_that, check, main

SCHEDULERS, PAUSE_MS, JOBS = 3, 10, 600


def begin(fixture, n, nodes):
    return Worker(f"scheduler {n}", "hot_standby", f"scheduler-{n}", PAUSE_MS, JOBS, fixture.database, *nodes)


def tables(fixture):
    fixture.sql("CREATE TABLE reign (term INTEGER NOT NULL)")
    fixture.sql("INSERT INTO reign VALUES (0)")
    fixture.sql("CREATE TABLE jobs (number INTEGER NOT NULL, scheduler TEXT NOT NULL, term INTEGER NOT NULL)")


def dispatched(fixture):
    return fixture.number("SELECT count(*) FROM jobs")


def await_more(fixture, count=20):
    wanted = min(JOBS, dispatched(fixture) + count)
    await_that(lambda: dispatched(fixture) >= wanted, f"no {wanted} jobs are dispatched")


def leader(schedulers, fixture, after):
    """The scheduler of the newest term, when that is newer than this one."""
    await_that(lambda: fixture.number("SELECT max(term) FROM jobs") > after, "nobody takes over")
    name = fixture.sql("SELECT scheduler FROM jobs ORDER BY term DESC LIMIT 1")[0][0]
    return next(scheduler for n, scheduler in enumerate(schedulers) if name == f"scheduler-{n}")


def form_without():
    with Fixture(MAX_LEASE_MS) as fixture:
        tables(fixture)
        schedulers = [begin(fixture, n, []) for n in range(2)]
        for scheduler in schedulers:
            scheduler.await_event("leads")
        for scheduler in schedulers:
            scheduler.await_event("done")
            scheduler.end()
        twice = fixture.number("SELECT count(*) - count(DISTINCT number) FROM jobs")
        check(twice > 0, "no job was dispatched twice, so this proves nothing")
        print(f"hot standby, without an election: {JOBS} jobs, {twice} dispatched twice", flush=True)


def form_with(fault):
    with Fixture(MAX_LEASE_MS) as fixture:
        tables(fixture)
        fixture.sql("UPDATE reign SET term = 1")
        fixture.sql("INSERT INTO jobs VALUES (0, 'nobody', 1)")
        schedulers = [begin(fixture, n, fixture.servers) for n in range(SCHEDULERS)]
        first = leader(schedulers, fixture, 1)
        await_more(fixture)
        if fault:
            fixture.servers[0].kill()
            await_more(fixture)
        term = fixture.number("SELECT max(term) FROM jobs")
        first.kill()
        second = leader(schedulers, fixture, term)
        check(second is not first, "a process that was killed dispatches jobs")
        if fault:
            fixture.servers[0].come_back()
        await_more(fixture)
        term = fixture.number("SELECT max(term) FROM jobs")
        # Stopped in the middle of a write it would keep the database from everybody.
        with fixture.writes_held():
            second.stop()
        third = leader(schedulers, fixture, term)
        check(third is not first and third is not second, "a process that stalls dispatches jobs")
        await_more(fixture)
        second.wake()
        told = [event["what"] for event in second.rest() if event["what"] in ("deposed", "refused")]
        check(told, "the one that was stopped was told nothing")
        third.await_event("done")
        third.end()
        numbers = [row[0] for row in fixture.sql("SELECT number FROM jobs ORDER BY rowid")]
        check(numbers == list(range(JOBS + 1)), f"jobs are missing, or were dispatched twice: {numbers}")
        terms = [row[0] for row in fixture.sql("SELECT term FROM jobs ORDER BY rowid")]
        check(terms == sorted(terms), "a job was taken by an older term")
        fixture.await_free("scheduler")
        print(f"hot standby{', a server killed and back' if fault else ''}: {JOBS} jobs, each once, by "
              f"{len(set(terms)) - 1} leaders; one was killed, and one stopped, which was {told[0]}", flush=True)


def scenario():
    form_without()
    for fault in (False, True):
        form_with(fault)


if __name__ == "__main__":
    main(scenario)
