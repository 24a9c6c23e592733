#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The lost master: one server dies with a lock in it, and an empty one takes its place at the same address.

The first owner has its lock on two of three servers only, for it cannot reach the third. When one of the two is
replaced by an empty one, a majority knows nothing of the lock.
"""
import sys

sys.dont_write_bytecode = True

from examples import START_BALANCE, World, Worker, check, main, reserve

MAX_LEASE_MS = 3000
FIRST, SECOND = 5, 10  # what the two workers add
TRIES = 5


def validity_end_us(granted):
    return granted["t_us"] + 1000 * int(granted["valid_ms"])


def write(worker, amount):
    worker.tell(amount)
    return worker.expect("written", "too-late")["what"] == "written"


def without(world):
    """No lock at all: both are inside, of course."""
    first = Worker("first", "lost_master", "off", world.database)
    second = Worker("second", "lost_master", "off", world.database)
    for worker in (first, second):
        worker.expect("granted")
    for worker, amount in ((second, SECOND), (first, FIRST)):
        check(write(worker, amount), "not written")
        worker.end()


def first_owner(world, guard, cut):
    """It holds the lock on the servers 0 and 1; at the third address it knows nobody answers."""
    first = Worker("first", "lost_master", guard, world.database, *world.servers[:2],
                   f"127.0.0.1:{cut.getsockname()[1]}")
    granted = first.expect("granted")
    holders = world.holders("account")
    check(holders[0] and holders[0] == holders[1] and holders[2] is None, f"the lock is on {holders}")
    return first, granted


def unguarded(world):
    """The milliseconds for which there were two owners; None where the replacement came too late to tell."""
    with reserve() as cut:
        first, granted = first_owner(world, "off", cut)
        world.servers[1].replace()
        second = Worker("second", "lost_master", "off", world.database, *world.servers)
        other = second.expect("granted", "refused")
        both_ms = (validity_end_us(granted) - other["t_us"]) / 1000
        if other["what"] == "refused" or both_ms <= 0 or not write(second, SECOND) or not write(first, FIRST):
            return None
        for worker in (second, first):
            worker.process.stdin.close()
            worker.expect("released", "lost")
        return both_ms


def guarded(world, hurt):
    """How long after the end of the first's validity the second got the lock, and how it was refused before;
    None where the replacement came too late for the second to be tempted.

    hurt kills another server too, which comes back with its memory.
    """
    with reserve() as cut:
        first, granted = first_owner(world, "connection", cut)
        world.servers[1].replace()
        if hurt:
            world.servers[0].kill()
        second = Worker("second", "lost_master", "connection", world.database, *world.servers)
        refused = second.expect("refused", "granted")
        if refused["what"] == "granted":
            check(refused["t_us"] >= validity_end_us(granted), "two owners")
            return None
        if hurt:
            world.servers[0].come_back()
        wrote = write(first, FIRST)
        # Nobody releases it: its lease alone ends it.
        first.expect("lost")
        check(first.expect("released")["expired"] == "1", "the first's lock was not over")
        first.end()
        other = second.expect("granted")
        check(write(second, SECOND), "the second's lock did not last for a write")
        second.process.stdin.close()
        second.expect("released")
        second.end()
    after_ms = (other["t_us"] - validity_end_us(granted)) / 1000
    check(after_ms >= 0, f"the second was inside {-after_ms:.0f} ms before the first's lease was over")
    check(world.balance() == START_BALANCE + (FIRST if wrote else 0) + SECOND, f"{world.balance()} in the account")
    return after_ms, refused


def form_without():
    with World(MAX_LEASE_MS) as world:
        without(world)
        missing = START_BALANCE + FIRST + SECOND - world.balance()
        check(missing > 0, "no damage without a lock, so this proves nothing")
        print(f"lost master, without the lock: 2 inside at once, {missing} missing in the account", flush=True)


def form_unguarded():
    """The damage needs the replacement within one lease: a machine too busy for that tries again."""
    for _ in range(TRIES):
        with World(MAX_LEASE_MS) as world:
            both_ms = unguarded(world)
            missing = START_BALANCE + FIRST + SECOND - world.balance()
        if both_ms is not None:
            check(missing > 0, "two owners and no damage, so this proves nothing")
            print(f"lost master, with the lock and the guard off: 2 owners for {both_ms:.0f} ms, {missing} missing "
                  "in the account", flush=True)
            return
    raise AssertionError(f"no two owners in {TRIES} tries without the guard, so this proves nothing")


def form_guarded(name, hurt):
    for _ in range(TRIES):
        with World(MAX_LEASE_MS) as world:
            found = guarded(world, hurt)
        if found is not None:
            after_ms, refused = found
            check(int(refused["quarantined"]) > 0, f"refused, but not for the guard: {refused}")
            print(f"lost master, {name}: second refused ({refused['status']}, {refused['quarantined']} node "
                  f"in quarantine), inside {after_ms:.0f} ms after the first's validity, 0 missing", flush=True)
            return
    raise AssertionError(f"{name}: in {TRIES} tries no server was replaced within one lease")


def scenario():
    form_without()
    form_unguarded()
    form_guarded("with the lock", False)
    form_guarded("with the lock, another server killed and back", True)


if __name__ == "__main__":
    main(scenario)
