#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The long pause: the owner of the lock is stopped for longer than its lease, and another takes the lock.

The owner is stopped at two places: while it waits in its loop, and between its last look at the lock and its
write. The other takes the lock meanwhile, and is inside when the owner wakes.
"""
import sys

sys.dont_write_bytecode = True

from examples import START_BALANCE, Fixture, Worker, check, main

MAX_LEASE_MS = 2000
FIRST, SECOND = 5, 10  # what the two workers add


def pause_without(fixture, late):
    """The same two workers and the same pause, without a lock: what it does to the account."""
    first = Worker("first", "long_pause", *(["--pause"] if late else []), fixture.database)
    first.expect("granted")
    if late:
        first.tell(FIRST)
        first.expect("checked")
        first.await_stop()
    else:
        first.stop()
    second = Worker("second", "long_pause", fixture.database)
    second.tell(SECOND)
    for event in ("granted", "checked", "written"):
        second.expect(event)
    second.end()
    first.wake()
    if not late:
        first.tell(FIRST)
        first.expect("checked")
    first.expect("written")
    first.end()


def wake_and_learn(first, late, figures):
    """What the first says on waking: told first thing, its write refused, its release harmless."""
    woke_us = first.wake()
    if late:
        # The write was already on its way when it was stopped.
        first.expect("write-refused")
        figures["refused"] += 1
    lost = first.expect("lost")
    check(lost["valid_ms"] == "0", f"lost, and still valid for {lost['valid_ms']} ms")
    figures["told_ms"] = max(figures["told_ms"], (lost["t_us"] - woke_us) / 1000)
    check(first.expect("released")["status"] == "LOST", "the release did not say that the lock had expired")


def pause_with(fixture, late, fault, figures):
    """fault kills a server while the first stalls; it comes back before the first wakes."""
    first = Worker("first", "long_pause", *(["--pause"] if late else []), fixture.database, *fixture.servers)
    old = first.expect("granted")
    if late:
        first.tell(FIRST)
        first.expect("checked")
        first.await_stop()
    else:
        first.stop()
    if fault:
        fixture.servers[0].kill()
    second = Worker("second", "long_pause", fixture.database, *fixture.servers)
    new = second.expect("granted")
    check(int(new["fence"]) > int(old["fence"]), f"token {new['fence']} after {old['fence']}")
    if fault:
        fixture.servers[0].come_back()
    before = fixture.holders("account")
    check(before.count(new["owner"]) >= 2, f"the second holds the lock, and the servers say {before}")
    wake_and_learn(first, late, figures)
    after = fixture.holders("account")
    check(all(a == b for a, b in zip(after, before) if b == new["owner"]),
          f"the first's release touched the second's key: {before} became {after}")
    # The second is still inside, undisturbed; then the first gets its turn, and begins anew.
    second.tell(SECOND)
    for event in ("checked", "written", "released"):
        figures["expired"] += second.expect(event).get("status") == "LOST"
    second.end()
    if not late:
        first.tell(FIRST)
    again = first.expect("granted")
    check(int(again["fence"]) > int(new["fence"]), f"token {again['fence']} after {new['fence']}")
    for event in ("checked", "written", "released"):
        figures["expired"] += first.expect(event).get("status") == "LOST"
    first.end()


def form(name, use_lock, fault):
    figures = {"refused": 0, "told_ms": 0.0, "expired": 0}
    lost = 0
    for late in (False, True):
        with Fixture(MAX_LEASE_MS) as fixture:
            if use_lock:
                pause_with(fixture, late, fault, figures)
            else:
                pause_without(fixture, late)
            lost += fixture.balance() != START_BALANCE + FIRST + SECOND
    if use_lock:
        check(lost == 0, f"{name}: {lost} of 2 pauses lost an update")
        check(figures["refused"] == 1, f"{name}: {figures['refused']} late writes refused, not 1")
        check(figures["expired"] == 0, f"{name}: a lock without a pause expired")
        print(f"long pause, {name}: 2 pauses, loss told {figures['told_ms']:.1f} ms after waking at the latest, "
              "1 late write refused, no key of the other's touched, 0 updates lost", flush=True)
    else:
        check(lost == 2, f"{name}: only {lost} of 2 pauses did damage, so this proves nothing")
        print(f"long pause, {name}: 2 pauses, {lost} updates lost", flush=True)


def scenario():
    form("without the lock", False, False)
    form("with the lock", True, False)
    form("with the lock, a server killed and back", True, True)


if __name__ == "__main__":
    main(scenario)
