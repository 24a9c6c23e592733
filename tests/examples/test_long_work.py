#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Work longer than the lease: 3 s under a lease of 1 s, renewed on every node throughout; no key is left.

A machine so busy that the lock cannot be renewed in time costs the worker its lock: it is told, writes nothing and
begins anew. That is right, too, but shows nothing here: then it is tried again.
"""
import sys
import time

sys.dont_write_bytecode = True

from examples import LIMIT_S, MAX_LEASE_MS, START_BALANCE, Server, TooBusy, Fixture, Worker, check, clock_us, main, try_often

WORK_MS, SHORT_MS, LEASE_MS = 3000, 10, 1000
LOOK_S = 0.02  # between two looks at the servers


def begin(fixture, name, work_ms, nodes):
    return Worker(name, "long_work", work_ms, fixture.database, *nodes)


def form_without():
    """The second reads what the first has not written yet."""
    with Fixture(MAX_LEASE_MS) as fixture:
        with fixture.writes_held():
            workers = [begin(fixture, name, SHORT_MS, []) for name in ("first", "second")]
            for worker in workers:
                worker.expect("granted")
        for worker in workers:
            worker.rest()
        missing = START_BALANCE + 2 - fixture.balance()
        check(missing == 1, f"{missing} missing in the account without a lock, so this proves nothing")
        print(f"long work, without the lock: 2 workers at once, {missing} missing in the account", flush=True)


def look(fixture, token, ends):
    """Adds what the servers say of the key's end; False where one of them does not have the key."""
    everywhere = True
    for server in filter(Server.running, fixture.servers):
        holder, end = server.ask("GET", "account"), int(server.ask("PEXPIRETIME", "account"))
        if holder == token:
            ends[server].add(end)
        elif holder is None:
            everywhere = False
        else:
            raise TooBusy("the lock was lost")
    return everywhere


def watch(fixture, worker, token, fault):
    """How often each server renewed the key while the work was done, and one that came back since then."""
    victim = fixture.servers[0]
    ends = {server: set() for server in fixture.servers}
    began_us = clock_us()
    while clock_us() - began_us < WORK_MS * 1000 or min(map(len, ends.values())) < 2:
        elapsed_ms = (clock_us() - began_us) / 1000
        check(elapsed_ms < LIMIT_S * 1000, f"not renewed everywhere: {list(ends.values())}")
        if fault == "kill" and elapsed_ms > WORK_MS / 4:
            victim.kill()
            fault = "return"
        elif fault == "return" and elapsed_ms > WORK_MS / 2:
            victim.come_back_empty()
            ends[victim].clear()
            fault = "back"
        if not worker.says_nothing():
            raise TooBusy("the lock was lost")
        if not look(fixture, token, ends) and fault != "back":
            raise TooBusy("a server had no key for a moment")
        time.sleep(LOOK_S)
    return [len(ends[server]) - 1 for server in fixture.servers]


def with_lock(fault):
    """fault kills a server after a quarter of the work, and half way an empty one takes its place, which gets the
    key with a renewal. The worker is kept from its write until that was seen."""
    with Fixture(MAX_LEASE_MS) as fixture:
        worker = begin(fixture, "first", WORK_MS, fixture.servers)
        granted = worker.expect("granted")
        rival = begin(fixture, "rival", SHORT_MS, fixture.servers)
        with fixture.writes_held():
            renewed = watch(fixture, worker, granted["token"], "kill" if fault else None)
        event = worker.expect("written", "lost")
        if event["what"] == "lost":
            raise TooBusy("the lock was lost")
        worker.rest()
        turn = rival.expect("granted")
        check(turn["t_us"] >= event["t_us"], f"two inside for {(event['t_us'] - turn['t_us']) / 1000:.1f} ms")
        rival.rest()
        fixture.await_no_key("account")
        check(fixture.balance() == START_BALANCE + 2, f"{fixture.balance()} in the account")
        return event["t_us"] - granted["t_us"], renewed


def form_with(name, fault):
    work_us, renewed = try_often(with_lock, fault)
    print(f"long work, {name}: {work_us / 1000:.0f} ms under a lease of {LEASE_MS} ms, the key renewed "
          f"{renewed} times on the servers, 0 missing, no key left", flush=True)


def scenario():
    form_without()
    form_with("with the lock", False)
    form_with("with the lock, a server killed and back empty", True)


if __name__ == "__main__":
    main(scenario)
