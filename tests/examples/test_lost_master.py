#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The lost master: one server dies with a lock in it, and an empty one takes its place at the same address.

The first owner has its lock on two of three servers only, for it cannot reach the third. When one of the two is
replaced by an empty one, a majority knows nothing of the lock.
"""
import sys

sys.dont_write_bytecode = True

from examples import START_BALANCE, Fixture, Worker, check, clock_us, main
from redis_server import keep_port

MAX_LEASE_MS = 3000
FIRST, SECOND = 5, 10  # what the two workers add
TRIES = 15  # on a machine busy with other work most are too late


def enter(worker):
    """Its grant. It tries once before it waits, and a busy machine may be too slow for that one try."""
    event = worker.expect("granted", "refused")
    return event if event["what"] == "granted" else worker.expect("granted")


def write(worker, amount):
    """What became of it; a worker that has lost its lock reads nothing any more."""
    worker.tell(amount)
    return worker.expect("written", "too-late", "lost")


def without(fixture):
    """No lock at all: both are inside, of course."""
    first = Worker("first", "lost_master", "off", fixture.database)
    second = Worker("second", "lost_master", "off", fixture.database)
    for worker in (first, second):
        worker.expect("granted")
    for worker, amount in ((second, SECOND), (first, FIRST)):
        check(write(worker, amount)["what"] == "written", "not written")
        worker.end()


def first_owner(fixture, guard, cut):
    """It holds the lock on the servers 0 and 1; at the third address that it knows no server answers."""
    first = Worker("first", "lost_master", guard, fixture.database, *fixture.servers[:2],
                   f"127.0.0.1:{cut.getsockname()[1]}")
    until_us = int(enter(first)["until_us"])
    holders = fixture.holders("account")
    check(clock_us() >= until_us or (holders[0] and holders[0] == holders[1] and holders[2] is None),
          f"the lock is on {holders}")
    return first, until_us


def unguarded(fixture):
    """The milliseconds for which there were two owners; None where the replacement came too late to tell."""
    with keep_port() as cut:
        first, until_us = first_owner(fixture, "off", cut)
        fixture.servers[1].replace()
        second = Worker("second", "lost_master", "off", fixture.database, *fixture.servers)
        other = second.expect("granted", "refused")
        both_ms = (until_us - other["t_us"]) / 1000
        if other["what"] == "refused" or both_ms <= 0:
            return None
        if any(write(worker, amount)["what"] != "written" for worker, amount in ((second, SECOND), (first, FIRST))):
            return None
        for worker in (second, first):
            worker.process.stdin.close()
            worker.expect("released", "lost")
        return both_ms


def guarded(fixture, fault):
    """How long after the first's lock was over the second got it, and how it was refused before; None where the
    machine was too busy for the second to be tempted.

    fault kills another server too, which comes back with its memory.
    """
    with keep_port() as cut:
        first, until_us = first_owner(fixture, "connection", cut)
        fixture.servers[1].replace()
        if fault:
            fixture.servers[0].kill()
        second = Worker("second", "lost_master", "connection", fixture.database, *fixture.servers)
        refused = second.expect("refused", "granted")
        if fault:
            fixture.servers[0].come_back()
        wrote = write(first, FIRST)
        lost = wrote if wrote["what"] == "lost" else first.expect("lost")
        # The first is told before the end, and gives the lock back: from then on another one may have it.
        over_us = min(until_us, lost["t_us"])
        other = refused if refused["what"] == "granted" else second.expect("granted")
        after_ms = (other["t_us"] - over_us) / 1000
        check(after_ms >= 0, f"the second was inside {-after_ms:.1f} ms before the first's lock was over")
        check(first.expect("released")["status"] == "LOST", "the first's lock was not over")
        first.end()
        if refused["t_us"] >= over_us or write(second, SECOND)["what"] != "written":
            return None
        second.process.stdin.close()
        second.expect("released", "lost")
        second.end()
    balance = START_BALANCE + (FIRST if wrote["what"] == "written" else 0) + SECOND
    check(fixture.balance() == balance, f"{fixture.balance()} in the account, not {balance}")
    return after_ms, refused


def form_without():
    with Fixture(MAX_LEASE_MS) as fixture:
        without(fixture)
        missing = START_BALANCE + FIRST + SECOND - fixture.balance()
        check(missing > 0, "no damage without a lock, so this proves nothing")
        print(f"lost master, without the lock: 2 inside at once, {missing} missing in the account", flush=True)


def form_unguarded():
    """The damage needs the replacement within one lease: a machine too busy for that tries again."""
    for _ in range(TRIES):
        with Fixture(MAX_LEASE_MS) as fixture:
            both_ms = unguarded(fixture)
            missing = START_BALANCE + FIRST + SECOND - fixture.balance()
        if both_ms is not None:
            check(missing > 0, "two owners and no damage, so this proves nothing")
            print(f"lost master, with the lock and the guard off: 2 owners for {both_ms:.0f} ms, {missing} missing "
                  "in the account", flush=True)
            return
    raise AssertionError(f"no two owners in {TRIES} tries without the guard, so this proves nothing")


def form_guarded(name, fault):
    found, refused = None, "granted at once"
    for _ in range(TRIES):
        with Fixture(MAX_LEASE_MS) as fixture:
            found = guarded(fixture, fault)
        if found is None:
            continue
        after_ms, refused = found
        # Where a node was too slow to be heard at all, the guard was not tried.
        if int(refused["quarantined"]) > 0:
            print(f"lost master, {name}: second refused ({refused['status']}, {refused['quarantined']} node "
                  f"in quarantine), inside {after_ms:.0f} ms after the first's lock was over, 0 missing", flush=True)
            return
    raise AssertionError(f"{name}: in {TRIES} tries no second refused for the guard within one lease; the last: "
                         f"{refused}")


def scenario():
    form_without()
    form_unguarded()
    form_guarded("with the lock", False)
    form_guarded("with the lock, another server killed and back", True)


if __name__ == "__main__":
    main(scenario)
