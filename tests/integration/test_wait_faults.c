/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wait_faults.c - faults while a lock waits: it is granted all the same, and a wait that ends leaves
 * nothing
 *
 * The leases are much longer than any limit here: a lock that is granted was woken, or it looked itself.
 */
#include "wait_fixture.h"

#define SHORT_LEASE_MS 1500u
/* From a release without a notice to the grant: the longest poll is a second. */
#define LITTLE_MS 10000u
#define SECRET    "sesame"
#define HOLDERS   30

static const char count_clients[] =
    "return tonumber(string.match(redis.call('INFO', 'clients'), 'connected_clients:(%d+)'))";

static long long connections(void)
{
    long long n = 0;

    for (uint32_t i = 0; i < 3; i++) {
        if (is_live(i)) n += server_ask_number(SERVER(i), "EVAL %s 0", count_clients);
    }
    return n;
}

/* Recorded times: the grant came within so long after that. */
static void expect_grant(uint64_t since_us, uint32_t within_ms, const char *what)
{
    await_count(&waited.calls, 1, GENEROUS_MS, what);
    assert_status(waited.result.status, QUORLOCK_OK);
    if (waited.at_us < since_us || waited.at_us - since_us > within_ms * 1000ull) {
        fail_msg("%s: the grant came %lld ms after it", what, (long long)(waited.at_us - since_us) / 1000);
    }
}

static void expect_hand_over(void (*release)(void), const char *what)
{
    uint64_t released_us = clock_us();

    assert_int_equal(waited.calls, 0);
    release();
    expect_grant(released_us, LITTLE_MS, what);
}

/* ---- notices ---- */

static uint64_t asked(void)
{
    struct quorlock_statistics now = {.size = sizeof(now)};
    uint64_t requests = 0;

    assert_int_equal(quorlock_client_statistics(fixture.client, &now), 0);
    for (size_t i = 0; i < now.n_nodes; i++) requests += now.nodes[i]->requests;
    return requests;
}

static bool asked_so_often(void *arg)
{
    return asked() >= *(uint64_t *)arg;
}

/* A line for each of them would fill the logs of all that wait where many contend. */
BOTH_TEST(holders_that_follow_each_other_are_logged_seldom)
{
    take_by_hand(3, "key", "peer");
    begin_to_wait();
    for (int i = 0; i < HOLDERS; i++) {
        uint64_t enough = asked() + 3; /* an attempt that saw it, whatever was under way */

        for (uint32_t j = 0; j < 3; j++) server_do(SERVER(j), "SET key another-%d PX 600000", i);
        await(asked_so_often, &enough, GENEROUS_MS, "the waiter looks at the key");
    }
    assert_int_equal(waited.calls, 0);
    assert_in_range(logged("waiting for"), 2, HOLDERS / 2);
    close_both();
}

/* Neither client may publish, subscribe, or ask how many listen. */
DIALECTS_TEST(an_acl_that_forbids_channels)
{
    fixture_needs_real_servers();
    close_both();
    for (uint32_t i = 0; i < 3; i++) {
        server_do(SERVER(i), "ACL SETUSER deaf on >%s resetchannels ~* +@all -pubsub", SECRET);
    }
    fixture_log_in("deaf:" SECRET "@", "");
    open_both();
    assert_status(fixture_acquire(holder, &held), QUORLOCK_OK);
    fixture_start_acquire(waiter, &waited);
    await_log("waiting for", 1);
    run_ms(300);
    assert_int_equal(listeners("key"), 0);
    expect_hand_over(release_holder, "hand-over without channels");
    assert_contains(fixture.log, "release notices");
    assert_null(strstr(fixture.log, SECRET));
}

/* The servers take no more connections, so none for notices. */
BOTH_TEST(a_subscriber_that_is_not_let_in)
{
    fixture_needs_real_servers();
    assert_status(fixture_acquire(holder, &held), QUORLOCK_OK);
    for (uint32_t i = 0; i < 3; i++) {
        long long taken = server_ask_number(SERVER(i), "EVAL %s 0", count_clients);

        /* The connection that asked is gone by now. */
        server_do(SERVER(i), "CONFIG SET maxclients %lld", taken - 1);
    }
    fixture_start_acquire(waiter, &waited);
    await_log("waiting for", 1);
    run_ms(300);
    expect_hand_over(release_holder, "hand-over without a subscriber");
}

/* ---- holders ---- */

/* A lock that waits behind another one of its client asks the arbiter now and then. Its no is an answer, and
 * the others were not asked: that is no lack of nodes. */
BOTH_TEST(a_local_waiter_logs_the_holder)
{
    quorlock_lock *third = lasting_lock(second, "key", NULL);
    struct seen behind;

    assert_status(fixture_acquire(holder, &held), QUORLOCK_OK);
    fixture_start_acquire(third, &behind);
    await_log("waiting for", 1);
    assert_contains(fixture.log, "\"key\" is held by");
    assert_null(strstr(fixture.log, "too few nodes"));
    assert_null(strstr(fixture.log, "not ready in time"));
    release_holder();
    await_status(&behind, QUORLOCK_OK, "the local hand-over");
}

/* The bound ends the wait in the middle of an attempt that no node has answered: the holder of before is named. */
SERVERS_TEST(a_wait_that_ends_unanswered_names_the_holder_of_before)
{
    quorlock_lock *lock;

    fixture.options.node_timeout_ms = GENEROUS_MS; /* no request is given up */
    fixture_client(3);
    lock = fixture_lock(fixture.client, "key", LEASE(4 * GENEROUS_MS, .wait_ms = 4 * SHORT_LEASE_MS));
    take_by_hand(3, "key", "peer");
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "PEXPIRE key %u", 2 * SHORT_LEASE_MS);
    fixture_start_acquire(lock, &waited);
    await_log("waiting for", 1);
    for (uint32_t i = 0; i < 3; i++) server_freeze(SERVER(i));
    /* It asks when the lease of the peer is over, at the latest. */
    await_status(&waited, QUORLOCK_ERR_HELD, "the wait bound");
    for (uint32_t i = 0; i < 3; i++) server_thaw(SERVER(i));
    assert_contains(waited.text, "\"key\" was held by peer when a node answered last");
    assert_contains(waited.text, "no answer yet");
}

/* ---- the end of a wait ---- */

static bool connections_are(void *arg)
{
    return connections() == *(const long long *)arg;
}

static bool no_server_listens(void *arg)
{
    return listeners("key") == 0;
}

static void expect_nothing_left(long long connections_before)
{
    await(no_server_listens, NULL, GENEROUS_MS, "the channels are left");
    await(connections_are, &connections_before, GENEROUS_MS, "the connections for notices end");
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(server_ask_number(SERVER(i), "DBSIZE"), 1);
}

DIALECTS_TEST(a_canceled_wait_leaves_nothing)
{
    long long before = connections();

    take_by_hand(3, "key", "peer");
    begin_to_wait();
    assert_true(connections() > before);
    assert_status(quorlock_lock_cancel(waiter), QUORLOCK_OK);
    await_status(&waited, QUORLOCK_ERR_CANCELED, "the canceled wait");
    expect_nothing_left(before);
}
