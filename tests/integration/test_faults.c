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
    quorlock *lock = fixture_lock(client, key, LEASE(LONG_LEASE_MS, .renew_ms = 200));

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
    quorlock_free(lock);
}

static void one_gone(enum hurt how)
{
    struct seen seen;
    struct seen_loss loss = {0};
    quorlock *lock;

    fixture.options.node_timeout_ms = LONG_NODE_TIMEOUT_MS;
    fixture_client(3);
    lock = fixture_lock(fixture.client, "held before", LEASE(LONG_LEASE_MS, .renew_ms = 200));
    quorlock_on_lost(lock, on_loss, &loss);
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    await_holders("held before", seen.owner, 3);

    hurt_node(2, how);
    life_without_node_2(fixture.client, "taken after");
    await_renewal(SERVER(0), "held before");
    await_renewal(SERVER(1), "held before");
    assert_int_equal(loss.calls, 0);
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    quorlock_free(lock);

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

static void silent_from_the_start(bool mute_syn)
{
    struct blackhole hole;

    blackhole_open(&hole, mute_syn);
    fixture.nodes[2] = hole.address;
    fixture.options.node_timeout_ms = LONG_NODE_TIMEOUT_MS;
    fixture_client(0);
    /* No node is connected yet when the first acquire comes. */
    life_without_node_2(fixture.client, "key");
    fixture_close(fixture.client);
    blackhole_close(&hole);
}

SERVERS_TEST(one_node_takes_connections_and_is_silent)
{
    silent_from_the_start(false);
}

SERVERS_TEST(one_node_does_not_even_connect)
{
    silent_from_the_start(true);
}

SERVERS_TEST(one_node_dead_from_the_start)
{
    fixture.options.node_timeout_ms = LONG_NODE_TIMEOUT_MS;
    server_kill(SERVER(2));
    fixture_client(0);
    life_without_node_2(fixture.client, "key");
}

static void two_gone(enum hurt how)
{
    struct seen seen;
    quorlock *once, *patient;

    fixture.options.node_timeout_ms = 300;
    fixture_client(3);
    once = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    patient = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = 1500));
    hurt_node(1, how);
    hurt_node(2, how);

    assert_status(fixture_acquire(once, &seen), QUORLOCK_NOQUORUM);
    assert_true(seen.result.elapsed_ms < WELL_BEFORE_US / 1000);
    assert_int_equal(seen.result.valid_ms, 0);
    assert_int_equal(quorlock_valid_ms(once), 0);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(seen.votes[i].outcome, QUORLOCK_VOTE_FAILED);
        assert_true(strlen(seen.votes[i].error) > 0);
    }
    assert_status(fixture_acquire(patient, &seen), QUORLOCK_NOQUORUM);
    assert_true(seen.result.elapsed_ms >= 1500);
    assert_true(seen.result.elapsed_ms < 1500 + WELL_BEFORE_US / 1000);
    /* The grant of the remaining node is released. */
    cluster_await_free(&(struct cluster){.n = 1, .servers = {fixture.cluster.servers[0]}}, "key");

    heal_node(1, how);
    heal_node(2, how);
    quorlock_free(patient);
    patient = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = GENEROUS_MS - 5000));
    assert_status(fixture_acquire(patient, &seen), QUORLOCK_OK);
    /* Two were enough; the third node may be back a moment too late to be asked. */
    assert_true(holders("key", seen.owner) >= 2);
    assert_status(fixture_release(patient, &seen), QUORLOCK_OK);
    await_free("key");
    quorlock_free(patient);
    quorlock_free(once);
}

SERVERS_TEST(two_nodes_killed)
{
    two_gone(KILLED);
}

SERVERS_TEST(two_nodes_frozen)
{
    two_gone(FROZEN);
}

/* An acquire that waits while there is no quorum gets the lock by itself when the nodes are back. */
SERVERS_TEST(waits_for_the_nodes)
{
    struct seen seen;
    quorlock *lock;

    server_kill(SERVER(0));
    server_kill(SERVER(1));
    fixture_client(0);
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = QUORLOCK_WAIT_FOREVER));
    fixture_start_acquire(lock, &seen);
    run_ms(500);
    assert_int_equal(seen.calls, 0);
    server_start(SERVER(0));
    await_status(&seen, QUORLOCK_OK, "acquire when nodes are back");
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    quorlock_free(lock);
    server_start(SERVER(1));
    await_free("key");
}

SERVERS_TEST(all_needs_all)
{
    struct seen seen;
    quorlock *lock;

    fixture.options.policy = QUORLOCK_ALL;
    fixture.options.node_timeout_ms = 300;
    fixture_client(3);
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    assert_int_equal(seen.result.granted, 3);
    assert_int_equal(holders("key", seen.owner), 3);
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    assert_int_equal(holders("key", NULL), 0);

    server_freeze(SERVER(1));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_NOQUORUM);
    assert_true(seen.result.failed >= 1);
    server_thaw(SERVER(1));
    await_free("key");
    server_kill(SERVER(1));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_NOQUORUM);
    await_free("key");
    /* Held on one of three by another: with ALL that one is enough. */
    server_start(SERVER(1));
    fixture_await_ready(fixture.client, 3);
    server_do(SERVER(0), "SET key by-hand PX 30000");
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_HELD);
    assert_string_equal(seen.votes[0].holder, "by-hand");
    await_holders("key", NULL, 1);
    server_do(SERVER(0), "DEL key");
}

/* A wiped node gets the key again, and then counts: another node may fail. */
SERVERS_TEST(wiped_node_is_repaired_and_counts)
{
    struct seen seen;
    struct seen_loss loss = {0};
    uint64_t alone_until_us;
    quorlock *lock;

    fixture.options.reconnect_max_ms = 200;
    fixture.options.node_timeout_ms = 1000; /* time enough also on a busy machine */
    fixture_client(3);
    lock = fixture_lock(fixture.client, "key", LEASE(3000, .renew_ms = 200));
    quorlock_on_lost(lock, on_loss, &loss);
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    await_holders("key", seen.owner, 3);

    server_wipe(SERVER(2));
    assert_false(server_has(SERVER(2), "key"));
    await_holders("key", seen.owner, 3);
    await_renewal(SERVER(2), "key");

    server_kill(SERVER(0));
    alone_until_us = clock_us() + 4500000; /* longer than any validity from before */
    while (clock_us() < alone_until_us) {
        run_ms(100);
        assert_int_equal(loss.calls, 0);
        assert_true(quorlock_valid_ms(lock) > 0);
    }
    assert_int_equal(holders("key", seen.owner), 2);
    server_start(SERVER(0));
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    await_free("key");
}

/* ALL never repairs: a node that forgot the key loses the lock. */
SERVERS_TEST(all_loses_by_one_wiped_node)
{
    struct seen seen;
    struct seen_loss loss = {0};
    quorlock *lock;

    fixture.options.policy = QUORLOCK_ALL;
    fixture_client(3);
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .renew_ms = 200));
    quorlock_on_lost(lock, on_loss, &loss);
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    server_do(SERVER(1), "DEL key");
    await_count(&loss.calls, 1, GENEROUS_MS, "loss");
    assert_int_equal(loss.loss.reason, QUORLOCK_LOST_GONE);
    assert_false(server_has(SERVER(1), "key"));
    quorlock_free(lock);
    await_free("key");
}

/* A node that was away is sent the release when it is back, also when the lock is freed already. */
SERVERS_TEST(debts_are_paid_at_reconnect)
{
    struct seen seen;
    quorlock *lock;

    fixture.options.reconnect_max_ms = 200;
    fixture_client(3);
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    await_holders("key", seen.owner, 3);
    server_kill(SERVER(2));
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    quorlock_free(lock);
    server_start(SERVER(2));
    await_free("key");
}

/* A release that reaches no quorum says so after one node timeout, and is sent later. */
SERVERS_TEST(release_without_quorum_ends)
{
    struct seen seen;
    uint64_t begun_us;
    quorlock *lock;

    fixture.options.node_timeout_ms = 300;
    fixture.options.reconnect_max_ms = 200;
    fixture_client(3);
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = GENEROUS_MS));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    server_freeze(SERVER(0));
    server_freeze(SERVER(1));
    begun_us = clock_us();
    assert_status(fixture_release(lock, &seen), QUORLOCK_NOQUORUM);
    assert_true(seen.at_us - begun_us < WELL_BEFORE_US);
    assert_int_equal(quorlock_valid_ms(lock), 0);
    quorlock_free(lock);
    server_thaw(SERVER(0));
    server_thaw(SERVER(1));
    await_free("key");
}

/* Close does not wait for a frozen node longer than one node timeout. */
SERVERS_TEST(close_does_not_wait_for_the_frozen)
{
    struct seen seen;
    uint64_t begun_us;
    quorlock *lock;

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

/* A server that lost our scripts (SCRIPT FLUSH) gets them again within the round. */
CLIENT_TEST(forgotten_scripts_are_loaded_again)
{
    struct seen seen;
    quorlock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));

    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    for (int i = 0; i < 3; i++) server_do(SERVER(i), "SCRIPT FLUSH");
    assert_status(fixture_extend(lock, 0, &seen), QUORLOCK_OK);
    for (int i = 0; i < 3; i++) server_do(SERVER(i), "SCRIPT FLUSH");
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    assert_int_equal(seen.result.expired, 0);
    await_free("key");
}

SERVERS_TEST(a_frozen_node_does_not_delay_what_is_asked_of_another)
{
    struct seen_report frozen = {.calls = 0}, other = {.calls = 0};

    fixture.options.node_timeout_ms = LONG_NODE_TIMEOUT_MS;
    fixture_client(3);
    take_by_hand(2, "key", "another");
    fixture_inspect(fixture.client, "key", &other);
    assert_int_equal(other.nodes[0].waiters, 0);
    server_freeze(SERVER(0));
    memset(&other, 0, sizeof(other));
    assert_status(quorlock_inspect_node(fixture.client, 0, "key", on_report, &frozen), QUORLOCK_OK);
    assert_status(quorlock_inspect_node(fixture.client, 1, "key", on_report, &other), QUORLOCK_OK);
    await_count(&other.calls, 1, GENEROUS_MS, "the report of the other node");
    assert_int_equal(frozen.calls, 0);
    assert_int_equal(other.status, QUORLOCK_OK);
    assert_int_equal(other.report.n_nodes, 1);
    assert_int_equal(other.report.quorum, 2);
    assert_int_equal(other.report.held, 0);
    assert_string_equal(other.nodes[0].state, "held");
    assert_string_equal(other.nodes[0].holder, "another");
    await_count(&frozen.calls, 1, GENEROUS_MS, "the report of the frozen node");
    assert_int_equal(frozen.status, QUORLOCK_NOQUORUM);
    assert_string_equal(frozen.nodes[0].state, "down");
    server_thaw(SERVER(0));
}
