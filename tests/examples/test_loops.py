#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Daemons on every event loop that there is an adapter for: they wait for each other, and keep the lock for several
leases, also while a server is down."""
import sys

sys.dont_write_bytecode = True

from examples import MAX_LEASE_MS, Fixture, TooBusy, Worker, check, main, try_often

LOOPS = "libevent libuv sd_event glib epoll".split()
KEY = "daemon"
WORK_MS = 1500  # three leases


def begin(name, loop, nodes, work_ms=WORK_MS):
    return Worker(name, f"on_{loop}", work_ms, *nodes)


def expect_held(worker, what):
    event = worker.expect(what, "lost")
    if event["what"] == "lost":
        raise TooBusy(f"{worker.name} lost the lock")
    return event


def finish(worker):
    """When it began to give the lock back."""
    worked = expect_held(worker, "worked")
    if worker.expect("released", "expired")["what"] == "expired":
        raise TooBusy(f"{worker.name} had lost the lock when it gave it back")
    worker.expect("closed")
    worker.end()
    return worked["t_us"]


def form(loop):
    """The first is on that loop, the second on libevent; then the other way round, with a server down."""
    with Fixture(MAX_LEASE_MS) as fixture:
        first = begin("first", loop, fixture.servers)
        granted = first.expect("granted")
        check(fixture.holders(KEY).count(granted["token"]) >= 2, f"{fixture.holders(KEY)} is not {granted['token']}")
        second = begin("second", "libevent", fixture.servers)
        worked_us = finish(first)
        check(worked_us - granted["t_us"] >= (WORK_MS - 5) * 1000, "the first gave the lock back too early")
        check(second.expect("granted")["t_us"] > worked_us, "both had the lock")
        third = begin("third", loop, fixture.servers)
        fixture.servers[0].kill()
        worked_us = finish(second)
        check(third.expect("granted")["t_us"] > worked_us, "both had the lock")
        fixture.servers[0].come_back()
        finish(third)
        fixture.await_no_key(KEY)
        print(f"{loop}: kept for {WORK_MS} ms, given to the next on libevent, and got back", flush=True)


def scenario(loop):
    try_often(form, loop)


if __name__ == "__main__":
    main(scenario, *LOOPS)
