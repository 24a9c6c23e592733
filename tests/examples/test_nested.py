#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Nested calls: a function that has the lock calls another one that takes it as the same owner.

What the servers have is looked at after every step, with both policies and both dialects, and all the while
another process waits to do the same work.
"""
import sys
import time

sys.dont_write_bytecode = True

from examples import LIMIT_S, START_BALANCE, Fixture, Worker, check, clock_us, main

MAX_LEASE_MS = 2000
DEPOSIT, BONUS = 5, 1
BOUND_MS = 500  # so long does the inner one wait
KINDS = [(policy, dialect) for policy in ("majority", "all") for dialect in ("plain", "redisson")]


def holders(fixture, dialect):
    """Whose key stands where: None where there is no key or no server. In a hash the count is one, always."""
    found = []
    for server in fixture.servers:
        if not server.running() or dialect == "plain":
            found.append(server.ask("GET", "account") if server.running() else None)
            continue
        words = server.ask("HGETALL", "account")
        check(words == [] or (len(words) == 2 and words[1] == "1"), f"{server} has {words}")
        found.append(words[0] if words else None)
    return found


def await_holders(fixture, dialect, wanted, text):
    """Where a server is late with a grant or a release, for two of three may do, it comes soon."""
    end = time.monotonic() + LIMIT_S
    while (found := holders(fixture, dialect)) != wanted:
        check(time.monotonic() < end, f"{text}: the servers have {found} and not {wanted}")
        time.sleep(0.005)


def begin(fixture, name, policy, dialect, owner):
    return Worker(name, "nested", policy, dialect, owner, fixture.database, *fixture.servers)


def go(*workers):
    for worker in workers:
        worker.tell("")


def finish_rival(fixture, dialect, rival, since_us, owner):
    """It waited all the while; now it has its turn, and leaves nothing."""
    event = rival.expect("outer-granted")
    check(event["t_us"] >= since_us, f"two inside for {(since_us - event['t_us']) / 1000:.1f} ms")
    check(event["owner"] != owner, "both have the same token")
    go(rival, rival, rival)
    for what in ("inner-granted", "inner-released", "outer-released"):
        rival.expect(what)
    rival.end()
    await_holders(fixture, dialect, [None] * 3, "after both")
    return event["t_us"]


def check_balance(fixture, days):
    wanted = START_BALANCE + days * (DEPOSIT + BONUS)
    check(fixture.balance() == wanted, f"{fixture.balance()} in the account, not {wanted}")


def begin_both(fixture, policy, dialect):
    """The first is inside, the rival waits."""
    first = begin(fixture, "first", policy, dialect, "request-1")
    first.expect("waiting")
    owner = first.expect("outer-granted")["owner"]
    await_holders(fixture, dialect, [owner] * 3, "after the outer acquire")
    rival = begin(fixture, "rival", policy, dialect, "request-1" if dialect == "plain" else "request-2")
    rival.expect("waiting")
    return first, rival, owner


def without_owner(policy, dialect):
    with Fixture(MAX_LEASE_MS) as fixture:
        worker = begin(fixture, "first", policy, dialect, "-")
        worker.expect("waiting")
        worker.expect("outer-granted")
        go(worker)
        refused = worker.expect("inner-refused")
        check(refused["status"] == "HELD", f"the inner one was refused with {refused['status']}")
        check(int(refused["waited_ms"]) >= BOUND_MS, f"it waited {refused['waited_ms']} ms for itself")
        go(worker)
        worker.expect("not-deposited")
        worker.expect("outer-released")
        worker.end()
        missing = START_BALANCE + DEPOSIT + BONUS - fixture.balance()
        check(missing == DEPOSIT, f"{missing} is missing in the account, so this proves nothing")
        await_holders(fixture, dialect, [None] * 3, "after the work")
    return int(refused["waited_ms"])


def step_in(fixture, first, rival, owner):
    """The inner acquire: the same token, and nothing of it at the servers."""
    go(first)
    inner = first.expect("inner-granted")
    check(inner["owner"] == owner, f"the inner one has {inner['owner']}, the outer one {owner}")
    check(rival.says_nothing(), "the rival is not waiting any more")
    return int(inner["waited_ms"])


def nest(policy, dialect):
    """How long the inner one waited."""
    with Fixture(MAX_LEASE_MS) as fixture:
        first, rival, owner = begin_both(fixture, policy, dialect)
        waited_ms = step_in(fixture, first, rival, owner)
        check(holders(fixture, dialect) == [owner] * 3, "the inner acquire changed the key")
        go(first)
        check(first.expect("inner-released")["status"] == "OK", "the lock was lost")
        check(holders(fixture, dialect) == [owner] * 3, "the inner release gave the lock back")
        check(rival.says_nothing(), "the rival is not waiting any more")
        since_us = clock_us()
        go(first)
        check(first.expect("outer-released")["status"] == "OK", "the lock was lost")
        first.end()
        finish_rival(fixture, dialect, rival, since_us, owner)
        check_balance(fixture, 2)
    return waited_ms


def nest_with_fault(dialect):
    """A majority holds while one server is down, and the one that comes back has the key no longer than they."""
    with Fixture(MAX_LEASE_MS) as fixture:
        first, rival, owner = begin_both(fixture, "majority", dialect)
        step_in(fixture, first, rival, owner)
        fixture.servers[0].kill()
        go(first)
        first.expect("inner-released")
        check(holders(fixture, dialect) == [None, owner, owner], "the inner release gave the lock back")
        fixture.servers[0].come_back()
        # With its memory, or given the key anew with the next renewal.
        await_holders(fixture, dialect, [owner] * 3, "after the server came back")
        check(rival.says_nothing(), "the rival is not waiting any more")
        since_us = clock_us()
        go(first)
        check(first.expect("outer-released")["status"] == "OK", "the lock was lost")
        first.end()
        finish_rival(fixture, dialect, rival, since_us, owner)
        check_balance(fixture, 2)


def lose_with_fault(dialect):
    """All must hold: without one of them the lock is lost, both holds are told, and neither writes."""
    with Fixture(MAX_LEASE_MS) as fixture:
        first, rival, owner = begin_both(fixture, "all", dialect)
        step_in(fixture, first, rival, owner)
        fixture.servers[0].kill()
        lost = [first.expect("lost") for _ in range(2)]
        check(sorted(event["hold"] for event in lost) == ["day", "deposit"], f"told were {lost}")
        check(all(event["valid_ms"] == "0" for event in lost), "lost, and still valid")
        go(first)
        first.expect("too-late")
        check(first.expect("inner-released")["status"] == "LOST", "the inner release did not say that it was lost")
        go(first)
        first.expect("too-late")
        check(first.expect("outer-released")["status"] == "LOST", "the outer release did not say that it was lost")
        first.end()
        check(rival.says_nothing(), "the rival got all of two servers")
        back_us = clock_us()
        fixture.servers[0].come_back()
        granted_us = finish_rival(fixture, dialect, rival, back_us, owner)
        check_balance(fixture, 1)
    return (granted_us - back_us) / 1000


def scenario():
    for policy, dialect in KINDS:
        waited_ms = without_owner(policy, dialect)
        print(f"nested calls, {policy}, {dialect}, without an owner: the inner one waited {waited_ms} ms for itself, "
              f"{DEPOSIT} missing in the account", flush=True)
    for policy, dialect in KINDS:
        waited_ms = nest(policy, dialect)
        print(f"nested calls, {policy}, {dialect}: inside after {waited_ms} ms, the key of one token on 3 servers "
              "until the outer release, 0 missing", flush=True)
    for dialect in ("plain", "redisson"):
        nest_with_fault(dialect)
        print(f"nested calls, majority, {dialect}, a server killed and back: held on two until the outer release, "
              "0 missing", flush=True)
    for dialect in ("plain", "redisson"):
        after_ms = lose_with_fault(dialect)
        print(f"nested calls, all, {dialect}, a server killed and back: both holds told of the loss, nothing written; "
              f"the next inside {after_ms:.0f} ms after the server was back", flush=True)


if __name__ == "__main__":
    main(scenario)
