#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""One order a user: 200 requests of one user at once, and of many users mixed, on four servers.

That different users do not wait for one another is shown without a look at the time: 200 of them are inside at
once, before the first has ordered. The time that they take is told, too.
"""
import sys

sys.dont_write_bytecode = True

from examples import MAX_LEASE_MS, Fixture, Worker, check, clock_us, main

REQUESTS, SERVERS = 200, 4
EACH = REQUESTS // SERVERS
MIXED = 40  # users with five requests each


def table(fixture):
    fixture.sql("CREATE TABLE orders (id INTEGER PRIMARY KEY, user INTEGER NOT NULL)")


def begin(fixture, first_users, users, nodes, requests=EACH):
    """A server for each of first_users, which has so many users from that one on."""
    return [Worker("server", "one_order", requests, first, users, fixture.database, *nodes) for first in first_users]


def finish(servers):
    return [event["what"] for server in servers for event in server.rest()]


def check_one_each(fixture, users, said, requests=REQUESTS):
    orders = fixture.sql("SELECT user, count(*) FROM orders GROUP BY user")
    check(len(orders) == users and all(n == 1 for _, n in orders), f"{users} users; orders by user: {orders}")
    counts = said.count("ordered"), said.count("has-one")
    check(counts == (users, requests - users), f"{counts} requests were told that they ordered, or had one")
    fixture.sql("DELETE FROM orders")


def form_without():
    """All have looked before anybody writes, as the database stalls for a moment."""
    with Fixture(MAX_LEASE_MS) as fixture:
        table(fixture)
        with fixture.writes_held():
            servers = begin(fixture, [0] * SERVERS, 1, [])
            for server in servers:
                for _ in range(EACH):
                    server.expect("inside")
        finish(servers)
        orders = fixture.number("SELECT count(*) FROM orders")
        check(orders > 1, "only one order without a lock, so this proves nothing")
        print(f"one order a user, without the lock: {REQUESTS} requests of one user, {orders} orders", flush=True)


def elapsed_ms(began_us):
    return (clock_us() - began_us) / 1000


def form_with():
    with Fixture(MAX_LEASE_MS) as fixture:
        table(fixture)
        check_one_each(fixture, 1, finish(begin(fixture, [0] * SERVERS, 1, fixture.servers)))
        check_one_each(fixture, MIXED, finish(begin(fixture, [0] * SERVERS, MIXED, fixture.servers)))
        print(f"one order a user, with the lock: {REQUESTS} requests of one user, 1 order; {REQUESTS} of {MIXED} "
              f"users, {MIXED} orders", flush=True)


def form_apart():
    with Fixture(MAX_LEASE_MS) as fixture:
        table(fixture)
        began_us = clock_us()
        check_one_each(fixture, 1, finish(begin(fixture, [0], 1, fixture.servers, 1)), 1)
        one_ms = elapsed_ms(began_us)
        began_us = clock_us()
        check_one_each(fixture, REQUESTS, finish(begin(fixture, range(0, REQUESTS, EACH), EACH, fixture.servers)))
        all_ms = elapsed_ms(began_us)
        check(all_ms < REQUESTS * one_ms, f"{REQUESTS} users took {all_ms} ms, and one {one_ms} ms")
        with fixture.writes_held():
            servers = begin(fixture, range(0, REQUESTS, EACH), EACH, fixture.servers)
            for server in servers:
                for _ in range(EACH):
                    server.expect("inside")
        check_one_each(fixture, REQUESTS, finish(servers))
        print(f"one order a user, with the lock: one user took {one_ms:.0f} ms, {REQUESTS} users {all_ms:.0f} ms, for "
              f"{REQUESTS} of {REQUESTS} were inside at once", flush=True)


def form_with_fault():
    """The server dies while requests are inside, and comes back empty while others are."""
    with Fixture(MAX_LEASE_MS) as fixture:
        table(fixture)
        with fixture.writes_held():
            servers = begin(fixture, [0] * 2, MIXED, fixture.servers)
            fixture.await_inside("order:0")
            fixture.servers[2].kill()
        said = finish(servers)
        # More users come, and the old ones again.
        with fixture.writes_held():
            servers = begin(fixture, [MIXED // 2] * 2, MIXED, fixture.servers)
            fixture.await_inside(f"order:{MIXED + MIXED // 2 - 1}")
            fixture.servers[2].replace()
        said += finish(servers)
        users = MIXED + MIXED // 2
        check_one_each(fixture, users, said)
        print(f"one order a user, with the lock, a server killed and back empty: {REQUESTS} requests of {users} users, "
              f"{users} orders", flush=True)


def scenario():
    form_without()
    form_with()
    form_apart()
    form_with_fault()


if __name__ == "__main__":
    main(scenario)
