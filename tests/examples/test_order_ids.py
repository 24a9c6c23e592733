#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Order ids: 300 tasks take 100 ids each from three nodes, and no id comes twice; also while a node dies and comes
back empty, within a second, and with clocks that are set back.

What "within a second" needs is not left to luck: the clients' clock stops where that is the point.
"""
import sys
import time

sys.dont_write_bytecode = True

from examples import Fixture, Worker, await_that, check, clock_us, main

MAX_LEASE_MS = 2000  # as in order_ids.c
EPOCH = 1704067200  # as in order_ids.c
TASKS, IDS, OFFICES = 300, 100, 3
FEW = 60  # tasks, where it is the same 300 times
COUNTER_BITS, NODE_BITS = 27, 5


def table(fixture):
    fixture.sql("CREATE TABLE ids (number INTEGER PRIMARY KEY, task INTEGER NOT NULL, id INTEGER NOT NULL)")


def init(fixture):
    Worker("init", "order_ids", "init", *fixture.servers).end()


def begin(fixture, way, first_task, n_tasks, clock="real"):
    return Worker(f"office of task {first_task}", "order_ids", way, "books", first_task, n_tasks, IDS, clock,
                  fixture.database, *fixture.servers)


def run(fixture, way, first_task, n_tasks, clock="real"):
    begin(fixture, way, first_task, n_tasks, clock).rest()


def stored(fixture):
    return fixture.number("SELECT count(*) FROM ids") // IDS


def node(one):
    return one >> COUNTER_BITS & (1 << NODE_BITS) - 1


def check_ids(fixture, n_tasks):
    """No double, 64 bits, positive, and those of a task rise. Gives all of them in the order of storing."""
    rows = fixture.sql("SELECT task, id FROM ids ORDER BY number")
    ids = [one for _, one in rows]
    check(len(ids) == n_tasks * IDS, f"{len(ids)} ids of {n_tasks} tasks")
    check(len(set(ids)) == len(ids), f"{len(ids) - len(set(ids))} of {len(ids)} ids are double")
    check(all(0 < one < 1 << 63 for one in ids), "an id is not of 63 bits")
    check(all(a < b for (task, a), (other, b) in zip(rows, rows[1:]) if task == other), "the ids of a task do not rise")
    return ids


def check_counters(fixture):
    """Each node counts by day and business."""
    for server in fixture.servers:
        keys = [key for key in server.ask("KEYS", "icr:books:*")]
        check(keys and all(time.strptime(key, "icr:books:%Y:%m:%d") for key in keys), f"{server} has {keys}")


def form_plain():
    """A counter and a clock: in the second in which a node comes back empty it counts from 1 again."""
    with Fixture(MAX_LEASE_MS) as fixture:
        table(fixture)
        second = int(time.time()) - EPOCH
        run(fixture, "plain", 0, FEW, second)
        fixture.servers[0].replace()
        run(fixture, "plain", FEW, FEW, second)
        n = fixture.number("SELECT count(*) FROM ids")
        doubles = n - fixture.number("SELECT count(DISTINCT id) FROM ids")
        check(doubles > 0, "no double, so this proves nothing")
        print(f"order ids, a counter and a clock, a node back empty within the second: {n} ids, {doubles} double",
              flush=True)


def form_safe():
    with Fixture(MAX_LEASE_MS) as fixture:
        table(fixture)
        init(fixture)
        began_us = clock_us()
        offices = [begin(fixture, "safe", TASKS // OFFICES * n, TASKS // OFFICES) for n in range(OFFICES)]
        for office in offices:
            office.rest()
        ms = (clock_us() - began_us) / 1000
        ids = check_ids(fixture, TASKS)
        check_counters(fixture)
        check({node(one) for one in ids} == {0, 1, 2}, "a node gave no id")
        check(abs((max(ids) >> 32) + EPOCH - time.time()) < 3600, "the seconds are not of today")
        print(f"order ids, with the lock: {TASKS} tasks x {IDS} ids, 0 double, from 3 nodes, {ms:.0f} ms", flush=True)


def form_with_fault():
    """A node dies while tasks take ids, and is empty when it comes back; others are there to ask it then."""
    with Fixture(MAX_LEASE_MS) as fixture:
        table(fixture)
        init(fixture)
        offices = [begin(fixture, "safe", TASKS // OFFICES * n, TASKS // OFFICES) for n in range(OFFICES - 1)]
        await_that(lambda: stored(fixture) >= TASKS // 20, "no ids are given")
        await_that(lambda: 0 in {node(one) for one, in fixture.sql("SELECT id FROM ids")}, "one node gives no ids")
        fixture.servers[0].replace()
        back = stored(fixture)
        offices.append(begin(fixture, "safe", TASKS // OFFICES * (OFFICES - 1), TASKS // OFFICES))
        for office in offices:
            office.rest()
        ids = check_ids(fixture, TASKS)
        check(0 in {node(one) for one in ids[:back * IDS]}, "the node gave no id before it died")
        check(0 in {node(one) for one in ids[back * IDS:]}, "the node gave no id when it was back")
        print(f"order ids, with the lock, a node killed and back empty: {TASKS} tasks x {IDS} ids, 0 double, "
              f"{back} tasks had theirs before", flush=True)


def form_clocks():
    """All of it within one second of the clients' clock, which at last is set back by an hour. A run after each fault,
    in which each node gives ids: each node in turn comes back empty, one that is up loses its counter of the day, one
    comes back with all of its memory and one with that of an hour ago, as it were."""
    with Fixture(MAX_LEASE_MS) as fixture:
        table(fixture)
        init(fixture)
        first, second, third = fixture.servers
        now = int(time.time()) - EPOCH
        old = second.copy_memory()
        faults = [first.replace, second.replace, third.replace, lambda: check(first.ask("DEL", *first.ask(
            "KEYS", "icr:books:*")) != "0", "there was no counter"), lambda: second.replace(old),
            lambda: third.replace(third.copy_memory()), first.replace]
        run(fixture, "safe", 0, FEW, now)
        for n, fault in enumerate(faults, 1):
            fault()
            run(fixture, "safe", FEW * n, FEW, now - 3600 if n == len(faults) else now)
        ids = check_ids(fixture, FEW * (len(faults) + 1))
        for part in range(len(faults) + 1):
            nodes = {node(one) for one in ids[FEW * IDS * part:FEW * IDS * (part + 1)]}
            check(nodes == {0, 1, 2}, f"after {part} faults the nodes {nodes} gave ids")
        print(f"order ids, with the lock, nodes back empty or with an old memory, a counter gone, all in one second, and "
              f"an hour before it: {len(ids)} ids, 0 double, {(max(ids) >> 32) - now} s ahead of the clock", flush=True)


def form_forgotten():
    """Two of three are empty at once, and too few know which seconds they had: rather no id than a double one."""
    with Fixture(MAX_LEASE_MS) as fixture:
        table(fixture)
        init(fixture)
        second = int(time.time()) - EPOCH
        run(fixture, "safe", 0, FEW, second)
        fixture.servers[0].replace()
        fixture.servers[1].replace()
        # The third has not forgotten its range, until it ends.
        run(fixture, "safe", FEW, FEW, second)
        office = begin(fixture, "safe", 2 * FEW, FEW, second + 3600)
        office.await_event("forgotten")
        office.kill()
        ids = check_ids(fixture, 2 * FEW)
        check({node(one) for one in ids[FEW * IDS:]} == {2}, "a node that has forgotten all gave an id")
        print(f"order ids, with the lock, two of three nodes back empty at once: {len(ids)} ids, 0 double, and then no "
              "more", flush=True)


def form_old_memory():
    """Two of three have an old memory at once, and the third is down: what they remember is not enough."""
    with Fixture(MAX_LEASE_MS) as fixture:
        table(fixture)
        init(fixture)
        now = int(time.time()) - EPOCH
        old = [server.copy_memory() for server in fixture.servers]
        run(fixture, "safe", 0, FEW, now)
        fixture.servers[2].kill()
        for server, memory in zip(fixture.servers[:2], old):
            server.replace(memory)
        office = begin(fixture, "safe", FEW, FEW, now)
        office.await_event("forgotten")
        office.kill()
        ids = check_ids(fixture, FEW)
        print(f"order ids, with the lock, one node down and two back with an old memory: {len(ids)} ids, 0 double, and "
              "then no more", flush=True)


def scenario():
    form_plain()
    form_safe()
    form_with_fault()
    form_clocks()
    form_forgotten()
    form_old_memory()


if __name__ == "__main__":
    main(scenario)
