#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Four traps of locks made by hand: each first walked into, then the same job with the library.

Where a machine is so busy that the library's lock of 2 s is lost, which is noticed and does no damage, the job is
done again.
"""
import sys

sys.dont_write_bytecode = True

from examples import MAX_LEASE_MS, START_BALANCE, TooBusy, Fixture, Worker, await_that, check, main, try_often

KEY, LEASE_MS = "account", 2000
FIRST, SECOND = 5, 10  # what the two workers add


def begin(fixture, name, way):
    return Worker(name, "traps", way, fixture.database, *fixture.servers)


def step(worker, said, line=""):
    """Tells it to go on; what it says when it has."""
    worker.tell(line)
    event = worker.expect(said, "lost") if said == "written" else worker.expect(said)
    if event["what"] == "lost":
        raise TooBusy("the lock was lost")
    return event


def finish(worker, amount):
    """It is inside, and does the rest of its work."""
    step(worker, "written", amount)
    give_back(worker)


def give_back(worker):
    """It had the lock until now."""
    event = step(worker, "released")
    worker.end()
    if event.get("expired") == "1":
        raise TooBusy("the lock was lost")


def missing(fixture):
    return START_BALANCE + FIRST + SECOND - fixture.balance()


def tell(trap, text):
    print(f"trap {trap}: {text}", flush=True)


# ---- SETNX, and then EXPIRE ----

def two_commands_wrong():
    with Fixture(MAX_LEASE_MS) as fixture:
        first = begin(fixture, "first", "two-commands")
        first.expect("between")
        first.kill()
        second = begin(fixture, "second", "two-commands")
        second.expect("taken-by-another")
        ttl = fixture.servers[0].ask("PTTL", KEY)
        check(ttl == "-1", f"the dead one's key ends in {ttl} ms, so this proves nothing")
        return "killed between SETNX and EXPIRE, its key never ends"


def two_commands_right():
    with Fixture(MAX_LEASE_MS) as fixture:
        first = begin(fixture, "first", "right")
        granted = first.expect("granted")
        first.kill()
        ttls = [int(server.ask("PTTL", KEY)) for server in fixture.servers]
        check(all(ttl == -2 or 0 <= ttl <= LEASE_MS for ttl in ttls), f"the dead one's keys end in {ttls} ms")
        second = begin(fixture, "second", "right")
        after_ms = (second.expect("granted")["t_us"] - granted["t_us"]) / 1000
        finish(second, SECOND)
        check(fixture.balance() == START_BALANCE + SECOND, f"{fixture.balance()} in the account")
        return f"killed inside, the next is inside {after_ms:.0f} ms after it, with a lease of {LEASE_MS} ms"


# ---- deleting without a look at the owner ----

def blind_delete_wrong():
    """The first has written, and is late with its release; the third gets in while the second is inside."""
    with Fixture(MAX_LEASE_MS) as fixture:
        first = begin(fixture, "first", "blind-delete")
        first.expect("granted")
        step(first, "written", FIRST)
        second = begin(fixture, "second", "blind-delete")
        second.expect("granted")  # the first's lease is over
        if step(first, "released")["deleted"] == "0":
            raise TooBusy("the second's lease is over as well")
        third = begin(fixture, "third", "blind-delete")
        third.expect("granted")
        step(second, "written", SECOND)
        step(third, "written", SECOND)
        lost = START_BALANCE + FIRST + 2 * SECOND - fixture.balance()
        check(lost > 0, "nothing is missing, so this proves nothing")
        return f"released late, it deletes the second's key: a third is inside, {lost} missing"


def blind_delete_right():
    """Stopped until its lease is over: a running one would have renewed it."""
    with Fixture(MAX_LEASE_MS) as fixture:
        first = begin(fixture, "first", "right")
        first.expect("granted")
        step(first, "written", FIRST)
        first.stop()
        second = begin(fixture, "second", "right")
        second.expect("granted")
        before = fixture.holders(KEY)
        third = begin(fixture, "third", "right")
        first.wake()
        check(step(first, "released")["expired"] == "1", "the first did not learn that its lock had expired")
        after, waits = fixture.holders(KEY), third.says_nothing()
        first.end()
        step(second, "written", SECOND)  # unless it has lost its lock by itself
        theirs = max(before, key=before.count)  # a key of the first may stay a little longer on the third node
        stayed = [key for was, key in zip(before, after) if was == theirs]
        check(len(stayed) >= 2 and set(stayed) == {theirs}, f"the keys were {before}, and are {after}")
        check(waits, "a third is inside")
        give_back(second)
        third.expect("granted")
        finish(third, SECOND)
        lost = START_BALANCE + FIRST + 2 * SECOND - fixture.balance()
        check(lost == 0, f"{lost} missing")
        return "released late, it learns that its lock had expired; the second's key stays, the third waits, 0 missing"


# ---- released before the commit ----

def early_release_wrong():
    with Fixture(MAX_LEASE_MS) as fixture:
        first = begin(fixture, "first", "early-release")
        first.expect("granted")
        step(first, "released", FIRST)
        second = begin(fixture, "second", "early-release")
        second.expect("granted")
        second.tell(SECOND)  # it waits for the first's transaction, and writes then what it has reckoned before
        step(first, "written")
        second.expect("released")
        step(second, "written")
        check(missing(fixture) == FIRST, f"{missing(fixture)} is missing, so this proves nothing")
        return f"the next reads what was before the commit, {missing(fixture)} missing"


def early_release_right():
    with Fixture(MAX_LEASE_MS) as fixture:
        first = begin(fixture, "first", "right")
        first.expect("granted")
        second = begin(fixture, "second", "right")
        step(first, "written", FIRST)
        waits = second.says_nothing()
        give_back(first)
        check(waits, "the second is inside before the release")
        second.expect("granted")
        finish(second, SECOND)
        check(missing(fixture) == 0, f"{missing(fixture)} missing")
        return "committed and then released, 0 missing"


# ---- a lease that the work outlasts ----

def fixed_lease_wrong():
    with Fixture(MAX_LEASE_MS) as fixture:
        first = begin(fixture, "first", "fixed-lease")
        first.expect("granted")
        second = begin(fixture, "second", "fixed-lease")
        second.expect("granted")  # the first is still at work
        finish(first, FIRST)
        finish(second, SECOND)
        check(missing(fixture) == FIRST, f"{missing(fixture)} is missing, so this proves nothing")
        return f"the work outlasts the lease, a second is inside as well, {missing(fixture)} missing"


def ends(fixture):
    return [int(server.ask("PEXPIRETIME", KEY)) for server in fixture.servers]


def fixed_lease_right():
    with Fixture(MAX_LEASE_MS) as fixture:
        first = begin(fixture, "first", "right")
        first.expect("granted")
        second = begin(fixture, "second", "right")
        over_ms = max(ends(fixture))
        # The whole lease is over, by the servers' clocks, and a good part of the next.
        await_that(lambda: not second.says_nothing() or min(ends(fixture)) > over_ms + LEASE_MS,
                   lambda: f"the keys are not renewed: {ends(fixture)}, and at first {over_ms}")
        waits = second.says_nothing()
        finish(first, FIRST)
        check(waits, "the second is inside before the release")
        second.expect("granted")
        finish(second, SECOND)
        check(missing(fixture) == 0, f"{missing(fixture)} missing")
        return "the work outlasts the lease, which is renewed; the second waits, 0 missing"


TRAPS = {
    "two_commands": (two_commands_wrong, two_commands_right),
    "blind_delete": (blind_delete_wrong, blind_delete_right),
    "early_release": (early_release_wrong, early_release_right),
    "fixed_lease": (fixed_lease_wrong, fixed_lease_right),
}


def scenario(trap):
    wrong, right = TRAPS[trap]
    tell(f"{trap}, walked into", try_often(wrong))
    tell(f"{trap}, avoided", try_often(right))


if __name__ == "__main__":
    main(scenario, *TRAPS)
