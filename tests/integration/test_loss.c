/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_loss.c - losing a lock: its callback comes in time, first and once; and calls after it
 */
#include "fixture.h"

struct hold {
    quorlock_lock *lock;
    struct seen seen;
    struct seen_loss loss;
};

static void grant_key(struct hold *hold, const struct quorlock_lock_options *options)
{
    struct quorlock_lock_options patient = *options;

    /* So short a lease may be over before the grant on a busy machine: then another try follows. */
    patient.wait_ms = GENEROUS_MS;
    memset(hold, 0, sizeof(*hold));
    hold->lock = fixture_lock(fixture.client, "key", &patient);
    quorlock_lock_set_on_lost(hold->lock, on_loss, &hold->loss);
    assert_status(fixture_acquire(hold->lock, &hold->seen), QUORLOCK_OK);
}

static void hold_key(struct hold *hold, const struct quorlock_lock_options *options)
{
    grant_key(hold, options);
    await_holders("key", hold->seen.owner, 3);
}

static void check_lost(struct hold *hold, int reason)
{
    assert_int_equal(hold->loss.calls, 1);
    assert_int_equal(hold->loss.loss.reason, reason);
    assert_int_equal(hold->loss.valid_ms, 0);
    assert_true(strlen(hold->loss.text) > 0);
    assert_int_equal(quorlock_lock_valid_ms(hold->lock), 0);
}

static void check_lost_release(struct hold *hold)
{
    assert_status(fixture_release(hold->lock, &hold->seen), QUORLOCK_ERR_LOST);
    assert_int_equal(hold->loss.calls, 1);
    quorlock_lock_free(hold->lock);
}

/* The loop did not run for longer than the lease: loss comes before the result of what was in flight. */
CLIENT_TEST(a_stalled_loop_reports_the_loss_first)
{
    struct hold hold;
    struct seen extended;

    hold_key(&hold, LEASE(1000));
    fixture_start_extend(hold.lock, 0, &extended);
    cluster_pause_us(1300000);
    assert_int_equal(quorlock_lock_valid_ms(hold.lock), 0);
    await_status(&extended, QUORLOCK_ERR_LOST, "extend");
    check_lost(&hold, QUORLOCK_LOSS_EXPIRED);
    assert_int_equal(hold.loss.loss.remaining_ms, 0);
    assert_true(hold.loss.order < extended.order);
    check_lost_release(&hold);
    await_free("key");
}

struct slow {
    struct seen seen;
    const struct hold *hold;
};

/* At its end the loss is due. */
static void on_slow_result(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct slow *slow = arg;

    on_result(lock, result, &slow->seen);
    while (quorlock_lock_valid_ms(slow->hold->lock) > 0) cluster_pause_us(1000);
}

/* Both callbacks wait for the same turn of the loop, because they need no server. */
CLIENT_TEST(a_loss_that_is_due_comes_before_the_next_callback)
{
    struct quorlock_lock_options options = *LEASE(LONG_LEASE_MS);
    struct slow slow = {.seen = {.calls = 0}};
    struct seen seen;
    struct hold hold;
    quorlock_lock *mine[3];

    options.owner = "me";
    for (int i = 0; i < 3; i++) mine[i] = fixture_lock(fixture.client, "other", &options);
    assert_status(fixture_acquire(mine[0], &seen), QUORLOCK_OK);
    options = *LEASE(1000);
    options.renew_ms = QUORLOCK_RENEW_NEVER;
    grant_key(&hold, &options);
    slow.hold = &hold;
    memset(&seen, 0, sizeof(seen));
    assert_status(quorlock_lock_acquire(mine[1], on_slow_result, &slow), QUORLOCK_OK);
    fixture_start_acquire(mine[2], &seen);
    await_count(&seen.calls, 1, GENEROUS_MS, "the second of one turn");
    assert_int_equal(slow.seen.calls, 1);
    check_lost(&hold, QUORLOCK_LOSS_NOT_RENEWED);
    assert_true(hold.loss.order < seen.order);
    check_lost_release(&hold);
    for (int i = 0; i < 3; i++) quorlock_lock_free(mine[i]);
    await_free("other");
}

static void block(evutil_socket_t fd, short what, void *arg)
{
    uint64_t *until_us = arg;

    *until_us = clock_us() + 4300000;
    while (clock_us() < *until_us) continue;
}

static void lost_ends_the_loop(quorlock_lock *lock, const struct quorlock_loss *loss, void *arg)
{
    on_loss(lock, loss, arg);
    event_base_loopbreak(fixture.base);
}

/* libevent computes its next wait from the time before a callback; the loss must not be late for that. */
SERVERS_TEST(a_long_callback_of_another_does_not_delay_the_loss)
{
    const struct timeval soon = {.tv_usec = 20000};
    struct hold hold;
    uint64_t until_us = 0;

    fixture_needs_real_servers();
    /* Otherwise the nodes' own timers would wake the loop. */
    fixture.options.node_timeout_ms = 20000;
    fixture_client(3);
    hold_key(&hold, LEASE(4000, .renew_ms = QUORLOCK_RENEW_NEVER));
    assert_int_equal(event_base_once(fixture.base, -1, EV_TIMEOUT, block, &until_us, &soon), 0);
    quorlock_lock_set_on_lost(hold.lock, lost_ends_the_loop, &hold.loss);
    /* One run of the loop, and no timer of the fixture's that would wake it. The test's time limit is the
     * limit. */
    event_base_dispatch(fixture.base);
    assert_true(until_us != 0);
    assert_true(hold.loss.at_us < until_us + 2000000);
    check_lost(&hold, QUORLOCK_LOSS_NOT_RENEWED);
    check_lost_release(&hold);
}

/* ---- renewal ---- */

static int n_degraded[QUORLOCK_LOG_ERROR + 1];

static void count_degraded(int level, const char *text, void *arg)
{
    (void)arg;
    if (strstr(text, "degraded") != NULL) n_degraded[level]++;
}

/* A busy client takes many locks while it lasts. */
SERVERS_TEST(a_node_in_quarantine_makes_no_warning_for_each_lock)
{
    quorlock_lock *lock;
    struct seen seen;

    memset(n_degraded, 0, sizeof(n_degraded));
    fixture_bootstrap();
    server_do(SERVER(0), "FLUSHALL");
    fixture.options.guard = QUORLOCK_GUARD_CONNECTION;
    fixture.options.log = count_degraded;
    fixture_client(3);
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    await_count(&n_degraded[QUORLOCK_LOG_INFO], 1, GENEROUS_MS, "the first round");
    assert_int_equal(n_degraded[QUORLOCK_LOG_WARN], 0);
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
}

CLIENT_TEST(the_log_says_why_nodes_do_not_renew)
{
    quorlock_lock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .renew_ms = 50));
    struct seen seen;

    fixture_needs_real_servers();
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "CONFIG SET min-replicas-to-write 1");
    /* They answer, and stay connected: only these lines tell of it. */
    await_log("degraded \"key\"", 1);
    await_log("reached 0 of 3 nodes", 1);
    assert_contains(strstr(fixture.log, "degraded \"key\""), "NOREPLICAS");
    assert_contains(strstr(fixture.log, "reached 0 of 3 nodes"), "NOREPLICAS");
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "CONFIG SET min-replicas-to-write 0");
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
}

CLIENT_TEST(an_extend_that_finds_the_lock_gone_says_so)
{
    struct hold hold = {0};
    struct seen seen;

    hold_key(&hold, LEASE(LONG_LEASE_MS));
    for (uint32_t i = 0; i < 2; i++) server_do(SERVER(i), "DEL key");
    assert_status(fixture_extend(hold.lock, LONG_LEASE_MS, &seen), QUORLOCK_ERR_LOST);
    assert_contains(seen.text, "the lock was lost: \"key\": the key is gone from so many nodes");
    assert_null(strstr(seen.text, "no answer yet"));
}

CLIENT_TEST(the_log_names_another_owner_on_a_node)
{
    quorlock_lock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .renew_ms = 50));
    struct seen seen;

    server_do(SERVER(1), "SET key another");
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    await_log("degraded \"key\": held on 2 of 3 nodes; held by another on 1, no expiry, by another program", 1);
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
}

CLIENT_TEST(the_log_tells_other_programs_from_other_owners)
{
    static const char *const ours[] = {"label:0123456789abcdef0123456789abcdef01234567",
                                       "12345678-1234-1234-1234-123456789abc:7", "quorlock:readers"};

    for (size_t i = 0; i < LENGTH(ours); i++) {
        quorlock_lock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .renew_ms = 50));
        struct seen seen;

        server_do(SERVER(1), "SET key %s", ours[i]);
        assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
        await_log("degraded \"key\": held on 2 of 3 nodes; held by ", (uint32_t)i + 1);
        assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    }
    assert_null(strstr(fixture.log, "by another program"));
}

CLIENT_TEST(silent_nodes_still_count_in_the_log)
{
    quorlock_lock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    struct seen seen;

    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    for (uint32_t i = 0; i < 3; i++) server_freeze(SERVER(i));
    assert_status(fixture_extend(lock, LONG_LEASE_MS, &seen), QUORLOCK_ERR_NOQUORUM);
    await_log("degraded \"key\": held on", 1);
    assert_null(strstr(fixture.log, "held on 0 of 3"));
    assert_contains(strstr(fixture.log, "degraded \"key\""), "3 did not renew it");
    assert_true(quorlock_lock_valid_ms(lock) > 0);
    for (uint32_t i = 0; i < 3; i++) server_thaw(SERVER(i));
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
}

/* Long before the renewal. */
SERVERS_TEST(rolling_empty_restarts_lose_no_lock)
{
    static const char *const list[] = {"list-a", "list-b"};
    struct quorlock_lock_options options = *LEASE(LONG_LEASE_MS);
    struct {
        const char *key; /* on the nodes */
        quorlock_lock *lock;
        struct seen seen;
        struct seen_loss loss;
    } kept[] = {
        {.key = "plain"}, {.key = "fenced"}, {.key = "owned"}, {.key = "list-b"}, {.key = "quorlock:slot:0:permit"},
        {.key = "shared"}};

    fixture_client(3);
    kept[0].lock = fixture_lock(fixture.client, "plain", &options);
    kept[1].lock = fixture_lock(fixture.client, "fenced", LEASE(LONG_LEASE_MS, .fencing = 1));
    kept[2].lock = fixture_lock(fixture.client, "owned", LEASE(LONG_LEASE_MS, .owner = "owner"));
    kept[3].lock = fixture_lock_all(fixture.client, list, 2, &options);
    kept[4].lock = fixture_lock(fixture.client, "permit", LEASE(LONG_LEASE_MS, .permits = 1));
    kept[5].lock = fixture_lock(fixture.client, "shared", LEASE(LONG_LEASE_MS, .shared = QUORLOCK_SHARED_ALL));
    for (size_t i = 0; i < LENGTH(kept); i++) {
        quorlock_lock_set_on_lost(kept[i].lock, on_loss, &kept[i].loss);
        assert_status(fixture_acquire(kept[i].lock, &kept[i].seen), QUORLOCK_OK);
        await_holders(kept[i].key, NULL, 3);
    }
    for (uint32_t i = 0; i < 3; i++) {
        server_wipe(SERVER(i));
        for (size_t k = 0; k < LENGTH(kept); k++) await_holders(kept[k].key, NULL, 3);
    }
    for (size_t i = 0; i < LENGTH(kept); i++) {
        assert_int_equal(kept[i].loss.calls, 0);
        assert_status(fixture_release(kept[i].lock, &kept[i].seen), QUORLOCK_OK);
    }
}

static bool is_renewed(void *arg)
{
    struct quorlock_statistics now = {.size = sizeof(now)};

    (void)arg;
    assert_status(quorlock_client_statistics(fixture.client, &now), QUORLOCK_OK);
    return now.renewals > 0;
}

/* The nodes forget all. The next renewal is due later than a test waits. */
static void lose_to_flush(int policy)
{
    struct seen seen = {0};
    struct seen_loss loss = {0};
    quorlock_lock *lock;

    fixture_bootstrap();
    fixture.options.guard = QUORLOCK_GUARD_CONNECTION;
    fixture.options.policy = policy;
    fixture_client(fixture.cluster.n);
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    quorlock_lock_set_on_lost(lock, on_loss, &loss);
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    await(is_renewed, NULL, GENEROUS_MS, "the first renewal");
    server_do(SERVER(0), "FLUSHALL");
    await_count(&loss.calls, 1, GENEROUS_MS, "the loss");
    assert_int_equal(loss.loss.reason, QUORLOCK_LOSS_GONE);
    /* The holder may not read that nobody holds a lock. */
    assert_int_equal(logged("first contact"), 0);
    assert_int_equal(logged("bootstrap"), 0);
    assert_true(logged("its guard is gone: it lost its memory") > 0);
}

SERVER_TEST(a_single_node_that_forgets_all_is_asked_before_the_renewal)
{
    lose_to_flush(QUORLOCK_POLICY_MAJORITY);
}

SERVERS_TEST(a_node_of_a_lock_on_all_nodes_that_forgets_all_is_asked_before_the_renewal)
{
    lose_to_flush(QUORLOCK_POLICY_ALL);
}

static bool is_renewed_again(void *arg)
{
    struct quorlock_statistics now = {.size = sizeof(now)};

    (void)arg;
    assert_status(quorlock_client_statistics(fixture.client, &now), QUORLOCK_OK);
    return now.renewals > 1;
}

/* Servers end connections that are idle, as proxies do. The next renewal is due later than a test waits. */
static void delete_after_reconnect(const char *owner)
{
    struct seen seen = {0};
    struct seen_loss loss = {0};
    quorlock_lock *lock;

    fixture_bootstrap();
    fixture.options.guard = QUORLOCK_GUARD_CONNECTION;
    fixture_client(3);
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .owner = owner));
    quorlock_lock_set_on_lost(lock, on_loss, &loss);
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    await(is_renewed, NULL, GENEROUS_MS, "the first renewal");
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "CLIENT KILL TYPE normal SKIPME yes");
    await(is_renewed_again, NULL, GENEROUS_MS, "a round on the new connections");
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "DEL key");
    await_count(&loss.calls, 1, GENEROUS_MS, "the loss");
    assert_int_equal(loss.loss.reason, QUORLOCK_LOSS_GONE);
}

SERVERS_TEST(a_deletion_is_noticed_on_a_connection_that_was_made_anew)
{
    delete_after_reconnect(NULL);
}

SERVERS_TEST(a_deletion_is_noticed_by_a_lock_with_a_name_on_a_new_connection)
{
    delete_after_reconnect("owner");
}

static bool has_failed_often(void *arg)
{
    struct quorlock_statistics now = {.size = sizeof(now)};

    assert_status(quorlock_client_statistics(fixture.client, &now), QUORLOCK_OK);
    return now.renewals_failed >= *(const uint64_t *)arg;
}

/* Many locks with few nodes would fill the log. */
CLIENT_TEST(renewals_that_fail_as_before_are_logged_seldom)
{
    quorlock_lock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .renew_ms = 50));
    struct seen seen;
    uint64_t often = 30;

    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    for (uint32_t i = 0; i < 3; i++) server_freeze(SERVER(i));
    await(has_failed_often, &often, LONG_LEASE_MS, "renewals that fail");
    /* The connections end one after the other, and each such change is news. */
    assert_in_range(logged("renewal of \"key\""), 1, often / 2);
    for (uint32_t i = 0; i < 3; i++) server_thaw(SERVER(i));
    fixture_await_ready(fixture.client, 3);
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
}
