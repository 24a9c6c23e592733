#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Queue numbers: several workers give 500 students the numbers max(position) + 1: 1..500, no gap, no double."""
import sys

sys.dont_write_bytecode = True

from examples import MAX_LEASE_MS, Fixture, Worker, check, clock_us, main

WORKERS, STUDENTS = 5, 500
FEW = 100  # without the lock


def table(fixture):
    fixture.sql("CREATE TABLE queue (id INTEGER PRIMARY KEY, position INTEGER NOT NULL, worker TEXT NOT NULL)")


def begin(fixture, numbers, nodes, students=STUDENTS):
    return [Worker(f"worker {n}", "queue_numbers", n, students // WORKERS, fixture.database, *nodes) for n in numbers]


def finish(workers):
    for worker in workers:
        worker.rest()


def form_without():
    """All have looked before anybody writes."""
    with Fixture(MAX_LEASE_MS) as fixture:
        table(fixture)
        with fixture.writes_held():
            workers = begin(fixture, range(WORKERS), [], FEW)
            for worker in workers:
                worker.expect("looked")
        finish(workers)
        given = fixture.number("SELECT count(*) FROM queue")
        doubles = given - fixture.number("SELECT count(DISTINCT position) FROM queue")
        check(given == FEW and doubles >= WORKERS - 1, f"{doubles} doubles of {given}, so this proves nothing")
        print(f"queue numbers, without the lock: {given} students, {doubles} have a number that another has, the last "
              f"number is {fixture.number('SELECT max(position) FROM queue')}", flush=True)


def check_all(fixture, name, since_us):
    ms = (clock_us() - since_us) / 1000
    fixture.await_no_key("queue")
    positions = [row[0] for row in fixture.sql("SELECT position FROM queue ORDER BY id")]
    check(positions == list(range(1, STUDENTS + 1)), f"{name}: the numbers are {positions}")
    print(f"queue numbers, {name}: {WORKERS} workers, {STUDENTS} students, 1..{STUDENTS}, no gap, no double, "
          f"{ms:.0f} ms", flush=True)


def form_with():
    with Fixture(MAX_LEASE_MS) as fixture:
        table(fixture)
        since_us = clock_us()
        finish(begin(fixture, range(WORKERS), fixture.servers))
        check_all(fixture, "with the lock", since_us)


def form_with_fault():
    """The server dies while one of three workers is inside, and comes back empty while one of the others is."""
    with Fixture(MAX_LEASE_MS) as fixture:
        table(fixture)
        since_us = clock_us()
        with fixture.writes_held():
            first = begin(fixture, range(3), fixture.servers)
            fixture.await_inside("queue")
            fixture.servers[0].kill()
        finish(first)
        with fixture.writes_held():
            others = begin(fixture, range(3, WORKERS), fixture.servers)
            fixture.await_inside("queue")
            fixture.servers[0].replace()
        finish(others)
        check_all(fixture, "with the lock, a server killed and back empty", since_us)


def scenario():
    form_without()
    form_with()
    form_with_fault()


if __name__ == "__main__":
    main(scenario)
