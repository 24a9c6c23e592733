#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The cache refresher: readers that never end and refreshers, and no reader sees parts of two versions; with the library
and by `quorlock run --shared` in a shell loop."""
import os
import sys

sys.dont_write_bytecode = True

import examples
from examples import MAX_LEASE_MS, Fixture, Worker, await_that, check, clock_us, main

PARTS, READERS, REFRESHERS, TIMES = 5, 4, 2, 20
SHELL_READS, SHELL_TIMES = 8, 4
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cache_refresher.sh")


def table(fixture):
    fixture.sql("CREATE TABLE part (id INTEGER PRIMARY KEY, version INTEGER NOT NULL, fence INTEGER NOT NULL)")
    fixture.sql("INSERT INTO part VALUES " + ", ".join(f"({part}, 1, 0)" for part in range(PARTS)))


def begin(fixture, what, times, count, nodes):
    return [Worker(f"{what} {n}", "cache_refresher", what, times, fixture.database, *nodes) for n in range(count)]


def begin_shell(fixture, what, times, count, nodes):
    path = f"{examples.PROGRAMS}:{os.path.dirname(examples.PROGRAMS)}:{os.environ['PATH']}"
    env = dict(os.environ, PATH=path, QUORLOCK_NODES=",".join(map(str, nodes)))
    return [Worker(f"{what} {n}", SCRIPT, what, times, fixture.database, env=env) for n in range(count)]


def version(fixture):
    return fixture.number("SELECT max(version) FROM part")


def form_without():
    """They go on until it happens."""
    with Fixture(MAX_LEASE_MS) as fixture:
        table(fixture)
        readers = begin(fixture, "read", 0, READERS, [])
        begin(fixture, "refresh", 1_000_000, 1, [])
        reader = readers[0]
        torn = reader.await_event("torn")
        check(torn["version"] != "0", "a version that nobody wrote")
        print(f"cache refresher, without the lock: read {len(reader.said)} of a reader saw parts of two versions",
              flush=True)


def report(name, fault, fixture, said, refreshed, since_us):
    check(said and set(said) <= {"whole", "late"}, f"{name}: readers saw {sorted(set(said))}")
    check(version(fixture) == 1 + refreshed, f"{name}: version {version(fixture)} after {refreshed} times")
    check(fixture.number("SELECT count(DISTINCT version) FROM part") == 1, f"{name}: the parts have several versions")
    print(f"cache refresher, {name}{', a server killed and back' if fault else ''}: {said.count('whole')} reads by "
          f"{READERS} readers, refreshed {refreshed} times by {REFRESHERS}, no read saw two versions, "
          f"{(clock_us() - since_us) / 1000:.0f} ms", flush=True)


def form_with(fault):
    """Readers go on until all refreshers are done, so these come in between endless readers."""
    with Fixture(MAX_LEASE_MS) as fixture:
        table(fixture)
        since_us = clock_us()
        readers = begin(fixture, "read", 0, READERS, fixture.servers)
        for reader in readers:
            reader.await_event("whole")
        refreshers = begin(fixture, "refresh", TIMES, REFRESHERS, fixture.servers)
        if fault:
            await_that(lambda: version(fixture) > 3, "nothing is refreshed")
            fixture.servers[0].kill()
            await_that(lambda: version(fixture) > 6, "nothing is refreshed while a server is down")
            fixture.servers[0].come_back()
        for refresher in refreshers:
            refresher.rest()
        last = version(fixture)
        for reader in readers:
            while (event := reader.await_event("whole"))["version"] != str(last):
                pass  # it comes in again, too
            reader.tell("enough")
        said = []
        for reader in readers:
            reader.rest()
            said += [Worker.event(line)["what"] for line in reader.said]
        report("library", fault, fixture, said, REFRESHERS * TIMES, since_us)


def form_with_shell(fault):
    with Fixture(MAX_LEASE_MS) as fixture:
        table(fixture)
        since_us = clock_us()
        readers = begin_shell(fixture, "read", SHELL_READS, READERS, fixture.servers)
        refreshers = begin_shell(fixture, "refresh", SHELL_TIMES, REFRESHERS, fixture.servers)
        if fault:
            await_that(lambda: version(fixture) > 2, "nothing is refreshed")
            fixture.servers[0].kill()
            await_that(lambda: version(fixture) > 4, "nothing is refreshed while a server is down")
            fixture.servers[0].come_back()
        for refresher in refreshers:
            refresher.rest()
        said = [event["what"] for reader in readers for event in reader.rest()]
        report("shell loop", fault, fixture, said, REFRESHERS * SHELL_TIMES, since_us)


def scenario():
    form_without()
    for fault in (False, True):
        form_with(fault)
        form_with_shell(fault)


if __name__ == "__main__":
    main(scenario)
