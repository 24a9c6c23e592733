/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_faults.c - nodes killed, frozen, silent and wiped
 *
 * Limits compare with a promise of seconds (a node timeout, a wait bound), never with how fast the machine is.
 */
#include "fixture.h"

/* With one node away, far less than this. */
#define LONG_NODE_TIMEOUT_MS 8000u
#define WELL_BEFORE_US       4000000u

struct renewal_watch {
    const struct server *server;
    const char *key;
    int64_t pttl_ms;
};

static bool is_renewed(void *arg)
{
    struct renewal_watch *watch = arg;
    int64_t pttl_ms = server_pttl(watch->server, watch->key);
    bool renewed = pttl_ms > watch->pttl_ms;

    if (!renewed) watch->pttl_ms = pttl_ms;
    return renewed;
}

/* Its expiry runs down, and rises with a renewal. */
static void await_renewal(const struct server *server, const char *key)
{
    struct renewal_watch watch = {server, key, server_pttl(server, key)};

    assert_true(watch.pttl_ms > 0);
    await(is_renewed, &watch, GENEROUS_MS, "renewal");
}

enum hurt { KILLED, FROZEN };

static void hurt_node(uint32_t node, enum hurt how)
{
    if (how == KILLED) {
        server_kill(SERVER(node));
    } else {
        server_freeze(SERVER(node));
    }
}

static void heal_node(uint32_t node, enum hurt how)
{
    if (how == KILLED) {
        server_start(SERVER(node));
    } else {
        server_thaw(SERVER(node));
    }
}

/* The servers that answer, all but node 2, have the value. */
static void assert_two_hold(const char *key, const char *value)
{
    for (int i = 0; i < 2; i++) assert_true(server_holds(SERVER(i), key, value));
}

/* Acquire, renew, extend and release while node 2 is out of order. */
static void life_without_node_2(quorlock_client *client, const char *key)
{
    struct seen seen;
    uint64_t begun_us = clock_us();
    quorlock_lock *lock = fixture_lock(client, key, LEASE(LONG_LEASE_MS, .renew_ms = 200));

    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    assert_true(seen.at_us - begun_us < WELL_BEFORE_US);
    assert_int_equal(seen.result.granted, 2);
    assert_two_hold(key, seen.owner);
    await_renewal(SERVER(0), key);
    await_renewal(SERVER(1), key);

    begun_us = clock_us();
    assert_status(fixture_extend(lock, 0, &seen), QUORLOCK_OK);
    assert_true(seen.at_us - begun_us < WELL_BEFORE_US);
    begun_us = clock_us();
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    assert_true(seen.at_us - begun_us < WELL_BEFORE_US);
    for (int i = 0; i < 2; i++) assert_false(server_has(SERVER(i), key));
    quorlock_lock_free(lock);
}

static void one_gone(enum hurt how)
{
    struct seen seen;
    struct seen_loss loss = {0};
    quorlock_lock *lock;

    fixture.options.node_timeout_ms = LONG_NODE_TIMEOUT_MS;
    fixture_client(3);
    lock = fixture_lock(fixture.client, "held before", LEASE(LONG_LEASE_MS, .renew_ms = 200));
    quorlock_lock_set_on_lost(lock, on_loss, &loss);
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    await_holders("held before", seen.owner, 3);

    hurt_node(2, how);
    life_without_node_2(fixture.client, "taken after");
    await_renewal(SERVER(0), "held before");
    await_renewal(SERVER(1), "held before");
    assert_int_equal(loss.calls, 0);
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    quorlock_lock_free(lock);

    /* The key on that node is released as soon as it is back, long before the lease ends. */
    heal_node(2, how);
    await_free("held before");
    await_free("taken after");
    assert_int_equal(loss.calls, 0);
}

SERVERS_TEST(one_node_killed)
{
    one_gone(KILLED);
}

SERVERS_TEST(one_node_frozen)
{
    one_gone(FROZEN);
}

/* Close does not wait for a frozen node longer than one node timeout. */
SERVERS_TEST(close_does_not_wait_for_the_frozen)
{
    struct seen seen;
    uint64_t begun_us;
    quorlock_lock *lock;

    fixture.options.node_timeout_ms = 300;
    fixture_client(3);
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    await_holders("key", seen.owner, 3);
    server_freeze(SERVER(2));
    begun_us = clock_us();
    fixture_close(fixture.client);
    assert_true(clock_us() - begun_us < WELL_BEFORE_US);
    for (int i = 0; i < 2; i++) assert_false(server_has(SERVER(i), "key"));
    server_thaw(SERVER(2));
}

SERVERS_TEST(a_frozen_node_does_not_delay_the_report_of_another)
{
    struct seen_report frozen = {.calls = 0}, other = {.calls = 0};

    fixture.options.node_timeout_ms = LONG_NODE_TIMEOUT_MS;
    fixture_client(3);
    take_by_hand(2, "key", "another");
    fixture_inspect(fixture.client, "key", &other);
    assert_int_equal(other.nodes[0].waiters, 0);
    server_freeze(SERVER(0));
    memset(&other, 0, sizeof(other));
    assert_status(quorlock_client_inspect_node(fixture.client, 0, "key", on_inspected, &frozen), QUORLOCK_OK);
    assert_status(quorlock_client_inspect_node(fixture.client, 1, "key", on_inspected, &other), QUORLOCK_OK);
    await_count(&other.calls, 1, GENEROUS_MS, "the report of the other node");
    assert_int_equal(frozen.calls, 0);
    assert_int_equal(other.status, QUORLOCK_OK);
    assert_int_equal(other.report.n_nodes, 1);
    assert_int_equal(other.report.quorum, 2);
    assert_int_equal(other.report.held, 0);
    assert_int_equal(other.nodes[0].state, QUORLOCK_INSPECT_HELD);
    assert_string_equal(other.nodes[0].holder, "another");
    await_count(&frozen.calls, 1, GENEROUS_MS, "the report of the frozen node");
    assert_int_equal(frozen.status, QUORLOCK_ERR_NOQUORUM);
    assert_int_equal(frozen.nodes[0].state, QUORLOCK_INSPECT_DOWN);
    server_thaw(SERVER(0));
}
