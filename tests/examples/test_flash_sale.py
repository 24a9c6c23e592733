#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Flash sale: 200 buyers in four shops at once, 100 items: 100 orders, nothing left, 100 refusals."""
import sys

sys.dont_write_bytecode = True

from examples import MAX_LEASE_MS, Fixture, Worker, check, clock_us, main

STOCK, BUYERS, SHOPS = 100, 200, 4


def table(fixture):
    fixture.sql("CREATE TABLE stock (left INTEGER NOT NULL)")
    fixture.sql("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    fixture.sql(f"INSERT INTO stock VALUES ({STOCK})")


def begin(fixture, n_shops, nodes):
    return [Worker("shop", "flash_sale", BUYERS // SHOPS, fixture.database, *nodes) for _ in range(n_shops)]


def finish(shops):
    """How many buyers were told that they bought, and that nothing is left."""
    said = [event["what"] for shop in shops for event in shop.rest()]
    return said.count("bought"), said.count("sold-out")


def orders_and_stock(fixture):
    return fixture.number("SELECT count(*) FROM orders"), fixture.number("SELECT left FROM stock")


def form_without():
    """All have looked before anybody writes, as the database stalls for a moment."""
    with Fixture(MAX_LEASE_MS) as fixture:
        table(fixture)
        with fixture.writes_held():
            shops = begin(fixture, SHOPS, [])
            for shop in shops:
                for _ in range(BUYERS // SHOPS):
                    shop.expect("looked")
        finish(shops)
        orders, left = orders_and_stock(fixture)
        check(orders > STOCK and left > 0, f"{orders} orders, {left} left, so this proves nothing")
        print(f"flash sale, without the lock: {BUYERS} buyers, {orders} orders for {STOCK} items, {left} left",
              flush=True)


def check_all(fixture, name, bought, refused, since_us):
    ms = (clock_us() - since_us) / 1000
    fixture.await_free("stock")
    orders, left = orders_and_stock(fixture)
    check((orders, left, bought, refused) == (STOCK, 0, STOCK, BUYERS - STOCK),
          f"{name}: {orders} orders, {left} left, {bought} buyers were told yes and {refused} no")
    print(f"flash sale, {name}: {BUYERS} buyers, {orders} orders, {left} left, {refused} refused, {ms:.0f} ms",
          flush=True)


def form_with():
    with Fixture(MAX_LEASE_MS) as fixture:
        table(fixture)
        since_us = clock_us()
        bought, refused = finish(begin(fixture, SHOPS, fixture.servers))
        check_all(fixture, "with the lock", bought, refused, since_us)


def form_with_fault():
    """The server dies while a buyer is between its look and its commit, and comes back, with its memory, while
    another is: the first shop cannot buy all, and the rest comes then."""
    with Fixture(MAX_LEASE_MS) as fixture:
        table(fixture)
        since_us = clock_us()
        with fixture.writes_held():
            first = begin(fixture, 1, fixture.servers)
            first[0].expect("looked")
            fixture.servers[1].kill()
        bought, refused = finish(first)
        with fixture.writes_held():
            others = begin(fixture, SHOPS - 1, fixture.servers)
            fixture.await_inside("stock")
            fixture.servers[1].come_back()
        more, others_refused = finish(others)
        check_all(fixture, "with the lock, a server killed and back", bought + more, refused + others_refused, since_us)


def scenario():
    form_without()
    form_with()
    form_with_fault()


if __name__ == "__main__":
    main(scenario)
