#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ten items, 100,000 buyers: all of them wait in one process for one key, and another shop sells from the same
stock. Ten win, and the rest leave as soon as the stock is gone; once all stay, and the wait bound ends all.

What the nodes have to do is counted at the nodes, and what a buyer costs is counted where it is allocated.
"""
import re
import sys
import time

sys.dont_write_bytecode = True

from examples import LIMIT_S, Fixture, Worker, check, main

MAX_LEASE_MS = 2000
ITEMS = 10
BUYERS, FEW, UNLOCKED = 100_000, 100, 1_000
RIVALS = 3  # in the other shop: some items are left for this one
WAIT_MS, BOUND_MS = 30_000, 2_000
MOMENT_MS, LONG_MOMENT_MS = 5, 200  # in which a buyer pays; long: a server is killed and comes back meanwhile
TRIES = 5
BYTES_MOST = 1024  # a waiter
# What a server may be asked for one grant, and in a second of waiting, by one shop. Measured: less
# than 20 and 20; what matters is that the number of buyers is not in it.
COMMANDS_A_SALE, COMMANDS_A_SECOND = 60, 60


def stock(fixture, items):
    fixture.sql("DROP TABLE IF EXISTS stock")
    fixture.sql("DROP TABLE IF EXISTS orders")
    fixture.sql("CREATE TABLE stock (left INTEGER NOT NULL)")
    fixture.sql("CREATE TABLE orders (id INTEGER PRIMARY KEY, shop INTEGER NOT NULL)")
    fixture.sql(f"INSERT INTO stock VALUES ({items})")


def sold(fixture):
    return fixture.sql("SELECT count(*) FROM orders")[0][0], fixture.sql("SELECT left FROM stock")[0][0]


def commands(fixture):
    """How many each server has executed, also inside scripts; None for one that is down."""
    return [sum(int(n) for n in re.findall(r"calls=(\d+)", server.ask("INFO", "commandstats")))
            if server.running() else None for server in fixture.servers]


def shut_doors(fixture, lease_ms):
    """Another program has the key, which sends no notice of its release."""
    for server in fixture.servers:
        check(server.ask("SET", "stock", "doorkeeper", "NX", "PX", lease_ms) == "OK", "the key is not free")


def open_doors(fixture):
    for server in fixture.servers:
        server.ask("DEL", "stock")


def shop(fixture, name, buyers, wait_ms=WAIT_MS, moment_ms=MOMENT_MS):
    worker = Worker(name, "ten_items", buyers, wait_ms, moment_ms, fixture.database, *fixture.servers)
    return worker, worker.expect("waiting")


def close(worker):
    """Reads what it says until it closes: how often it sold, and its figures as numbers."""
    n = 0
    while True:
        event = worker.expect("sold", "too-late", "expired", "closed")
        if event["what"] == "closed":
            break
        n += event["what"] == "sold"
    worker.end()
    return n, {name: int(value) for name, value in event.items() if name != "what"}


def await_keys_gone(fixture):
    end = time.monotonic() + LIMIT_S
    while any(fixture.holders("stock")):
        check(time.monotonic() < end, f"keys are left: {fixture.holders('stock')}")
        time.sleep(0.01)


def await_left(fixture, most):
    end = time.monotonic() + LIMIT_S
    while sold(fixture)[1] > most:
        check(time.monotonic() < end, f"{sold(fixture)} sold and left: there are no more sales")
        time.sleep(0.005)


def check_bounded(name, asked, began, n_shops):
    """No storm: by sales and by seconds, not by buyers."""
    most = n_shops * (COMMANDS_A_SALE * (ITEMS + 2) + COMMANDS_A_SECOND * (1 + int(time.monotonic() - began)))
    check(max(asked) <= most, f"{name}: the servers executed {asked} commands, and {most} is plenty")


def sale(fixture, buyers, fault=False):
    """All wait, then the doors open. The figures of the big shop, and the commands at each server.

    None where a busy machine was too slow to bring the server back before all was sold.
    """
    moment_ms = LONG_MOMENT_MS if fault else MOMENT_MS
    stock(fixture, ITEMS)
    shut_doors(fixture, 60_000)
    began, before = time.monotonic(), commands(fixture)
    big, waiting = shop(fixture, "shop", buyers, moment_ms=moment_ms)
    rival, _ = shop(fixture, "rival", RIVALS, moment_ms=moment_ms)
    open_doors(fixture)
    victim = None
    if fault:
        await_left(fixture, ITEMS - 2)
        # The one that the waiters ask first.
        victim = max(zip(commands(fixture), before, fixture.servers), key=lambda one: one[0] - one[1])[2]
        victim.kill()
        await_left(fixture, ITEMS - 4)
        victim.come_back()
    in_time = not fault or sold(fixture)[1] > 0
    n_big, figures = close(big)
    n_rival, rivals = close(rival)
    after = commands(fixture)
    asked = [b - a for a, b, server in zip(before, after, fixture.servers) if server is not victim]
    check(sold(fixture) == (ITEMS, 0), f"{sold(fixture)} sold and left of {ITEMS}")
    check(n_big == figures["sold"] and n_rival == rivals["sold"] and n_big + n_rival == ITEMS,
          f"the shops sold {n_big} and {n_rival}, and not {ITEMS}")
    for n, one in ((buyers, figures), (RIVALS, rivals)):
        check(one["told"] == n, f"{one['told']} of {n} buyers were told")
        check(one["refused"] == 0, f"{one['refused']} buyers waited out their limit")
        check(one["latest_ms"] <= WAIT_MS, f"one was told after {one['latest_ms']} ms")
    check_bounded("sale", asked, began, 2)
    figures.update(bytes_each=int(waiting["bytes_each"]), resident_each=int(waiting["resident_each"]),
                   elsewhere=n_rival)
    await_keys_gone(fixture)
    return (figures, asked) if in_time else None


def form_without():
    with Fixture(MAX_LEASE_MS) as fixture:
        stock(fixture, ITEMS)
        worker = Worker("shop", "ten_items", UNLOCKED, 0, MOMENT_MS, fixture.database)
        worker.expect("waiting")
        close(worker)
        orders, left = sold(fixture)
        check(orders > ITEMS, f"only {orders} sold without a lock, so this proves nothing")
        print(f"ten items, without the lock: {orders} sold of {ITEMS}, {left} left", flush=True)


def tell(name, figures, asked):
    check(max(figures["bytes_each"], figures["bytes_each_most"]) < BYTES_MOST,
          f"a waiter costs {figures['bytes_each']} bytes, {figures['bytes_each_most']} at the most")
    print(f"ten items, {name}: {figures['sold']} sold here and {figures['elsewhere']} elsewhere, "
          f"{figures['canceled']} left, the last told after {figures['latest_ms']} ms; "
          f"a waiter costs {figures['bytes_each']} bytes ({figures['resident_each']} of the process); commands at the "
          f"servers {asked}", flush=True)


def form_with():
    with Fixture(MAX_LEASE_MS) as fixture:
        _, few = sale(fixture, FEW)
    with Fixture(MAX_LEASE_MS) as fixture:
        figures, many = sale(fixture, BUYERS)
    tell("with the lock", figures, f"{many}, and {few} with {FEW} buyers")


def form_with_fault():
    for _ in range(TRIES):
        with Fixture(MAX_LEASE_MS) as fixture:
            found = sale(fixture, BUYERS, fault=True)
        if found is not None:
            tell("with the lock, a server killed and back", *found)
            return
    raise AssertionError(f"in {TRIES} tries no server was back before all was sold")


def form_bound():
    """The key is not released: the wait bound ends all waits, at the cost of few commands."""
    with Fixture(MAX_LEASE_MS) as fixture:
        stock(fixture, ITEMS)
        shut_doors(fixture, 60_000)
        began, before = time.monotonic(), commands(fixture)
        worker, _ = shop(fixture, "shop", BUYERS, wait_ms=BOUND_MS)
        n, figures = close(worker)
        asked = [b - a for a, b in zip(before, commands(fixture))]
        check(n == 0 and figures["refused"] == BUYERS, f"{figures['refused']} of {BUYERS} waited out their limit")
        check(figures["latest_ms"] <= 2 * BOUND_MS, f"told after {figures['latest_ms']} ms of {BOUND_MS}")
        check(figures["bytes_each_most"] < BYTES_MOST, f"a waiter cost {figures['bytes_each_most']} bytes")
        check_bounded("bound", asked, began, 1)
        check(fixture.holders("stock") == ["doorkeeper"] * 3, f"the keys are {fixture.holders('stock')}")
        print(f"ten items, all stay: {BUYERS} waited {BOUND_MS} ms, the last told after {figures['latest_ms']} ms; "
              f"commands at the servers {asked}", flush=True)


def scenario():
    form_without()
    form_with()
    form_with_fault()
    form_bound()


if __name__ == "__main__":
    main(scenario)
