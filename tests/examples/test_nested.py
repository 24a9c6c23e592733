#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Nested calls: a function that has the lock calls another one that takes it as the same owner.

What the servers have is looked at after every step, with both policies and both dialects, and all the while
another process waits to do the same work.
"""
import sys
import time

sys.dont_write_bytecode = True

from examples import LIMIT_S, START_BALANCE, World, Worker, check, clock_us, main

MAX_LEASE_MS = 2000
DEPOSIT, BONUS = 5, 1
BOUND_MS = 500  # so long does the inner one wait
KINDS = [(policy, dialect) for policy in ("majority", "all") for dialect in ("plain", "redisson")]


def holders(world, dialect):
    """Whose key stands where: None where there is no key or no server. In a hash the count is one, always."""
    found = []
    for server in world.servers:
        if not server.running() or dialect == "plain":
            found.append(server.ask("GET", "account") if server.running() else None)
            continue
        words = server.ask("HGETALL", "account")
        check(words == [] or (len(words) == 2 and words[1] == "1"), f"{server} has {words}")
        found.append(words[0] if words else None)
    return found


def await_holders(world, dialect, wanted, text):
    """Where a server is late with a grant or a release, for two of three may do, it comes soon."""
    end = time.monotonic() + LIMIT_S
    while (found := holders(world, dialect)) != wanted:
        check(time.monotonic() < end, f"{text}: the servers have {found} and not {wanted}")
        time.sleep(0.005)


def begin(world, name, policy, dialect, owner):
    return Worker(name, "nested", policy, dialect, owner, world.database, *world.servers)


def go(*workers):
    for worker in workers:
        worker.tell("")


def finish_rival(world, dialect, rival, since_us, owner):
    """It waited all the while; now it has its turn, and leaves nothing."""
    event = rival.expect("outer-granted")
    check(event["t_us"] >= since_us, f"two inside for {(since_us - event['t_us']) / 1000:.1f} ms")
    check(event["owner"] != owner, "both have the same token")
    go(rival, rival, rival)
    for what in ("inner-granted", "inner-released", "outer-released"):
        rival.expect(what)
    rival.end()
    await_holders(world, dialect, [None] * 3, "after both")
    return event["t_us"]


def check_balance(world, days):
    wanted = START_BALANCE + days * (DEPOSIT + BONUS)
    check(world.balance() == wanted, f"{world.balance()} in the account, not {wanted}")


def begin_both(world, policy, dialect):
    """The first is inside, the rival waits."""
    first = begin(world, "first", policy, dialect, "request-1")
    first.expect("waiting")
    owner = first.expect("outer-granted")["owner"]
    await_holders(world, dialect, [owner] * 3, "after the outer acquire")
    rival = begin(world, "rival", policy, dialect, "request-1" if dialect == "plain" else "request-2")
    rival.expect("waiting")
    return first, rival, owner


def without_owner(policy, dialect):
    with World(MAX_LEASE_MS) as world:
        worker = begin(world, "first", policy, dialect, "-")
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
        missing = START_BALANCE + DEPOSIT + BONUS - world.balance()
        check(missing == DEPOSIT, f"{missing} is missing in the account, so this proves nothing")
        await_holders(world, dialect, [None] * 3, "after the work")
    return int(refused["waited_ms"])


def step_in(world, first, rival, owner):
    """The inner acquire: the same token, and nothing of it at the servers."""
    go(first)
    inner = first.expect("inner-granted")
    check(inner["owner"] == owner, f"the inner one has {inner['owner']}, the outer one {owner}")
    check(rival.says_nothing(), "the rival is not waiting any more")
    return int(inner["waited_ms"])


def nest(policy, dialect):
    """How long the inner one waited."""
    with World(MAX_LEASE_MS) as world:
        first, rival, owner = begin_both(world, policy, dialect)
        waited_ms = step_in(world, first, rival, owner)
        check(holders(world, dialect) == [owner] * 3, "the inner acquire changed the key")
        go(first)
        check(first.expect("inner-released")["expired"] == "0", "the lock was lost")
        check(holders(world, dialect) == [owner] * 3, "the inner release gave the lock back")
        check(rival.says_nothing(), "the rival is not waiting any more")
        since_us = clock_us()
        go(first)
        check(first.expect("outer-released")["expired"] == "0", "the lock was lost")
        first.end()
        finish_rival(world, dialect, rival, since_us, owner)
        check_balance(world, 2)
    return waited_ms


def nest_hurt(dialect):
    """A majority holds while one server is down, and the one that comes back has the key no longer than they."""
    with World(MAX_LEASE_MS) as world:
        first, rival, owner = begin_both(world, "majority", dialect)
        step_in(world, first, rival, owner)
        world.servers[0].kill()
        go(first)
        first.expect("inner-released")
        check(holders(world, dialect) == [None, owner, owner], "the inner release gave the lock back")
        world.servers[0].come_back()
        # With its memory, or given the key anew with the next renewal.
        await_holders(world, dialect, [owner] * 3, "after the server came back")
        check(rival.says_nothing(), "the rival is not waiting any more")
        since_us = clock_us()
        go(first)
        check(first.expect("outer-released")["expired"] == "0", "the lock was lost")
        first.end()
        finish_rival(world, dialect, rival, since_us, owner)
        check_balance(world, 2)


def lose_hurt(dialect):
    """All must hold: without one of them the lock is lost, both holds are told, and neither writes."""
    with World(MAX_LEASE_MS) as world:
        first, rival, owner = begin_both(world, "all", dialect)
        step_in(world, first, rival, owner)
        world.servers[0].kill()
        lost = [first.expect("lost") for _ in range(2)]
        check(sorted(event["hold"] for event in lost) == ["day", "deposit"], f"told were {lost}")
        check(all(event["valid_ms"] == "0" for event in lost), "lost, and still valid")
        go(first)
        first.expect("too-late")
        check(first.expect("inner-released")["expired"] == "1", "the inner release did not say that it was lost")
        go(first)
        first.expect("too-late")
        check(first.expect("outer-released")["expired"] == "1", "the outer release did not say that it was lost")
        first.end()
        check(rival.says_nothing(), "the rival got all of two servers")
        back_us = clock_us()
        world.servers[0].come_back()
        granted_us = finish_rival(world, dialect, rival, back_us, owner)
        check_balance(world, 1)
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
        nest_hurt(dialect)
        print(f"nested calls, majority, {dialect}, a server killed and back: held on two until the outer release, "
              "0 missing", flush=True)
    for dialect in ("plain", "redisson"):
        after_ms = lose_hurt(dialect)
        print(f"nested calls, all, {dialect}, a server killed and back: both holds told of the loss, nothing written; "
              f"the next inside {after_ms:.0f} ms after the server was back", flush=True)


if __name__ == "__main__":
    main(scenario)
