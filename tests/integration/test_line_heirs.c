/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_line_heirs.c - who gives up at the head of a line leaves its place at the nodes to the next
 */
#include "kit.h"

#define BOUND_MS 3000
#define WAITERS  100
#define APART_MS 3 /* one comes after the other, and each is the first for a while */

/* That all servers have executed so far, also inside scripts. */
static long long commands(void)
{
    static const char script[] =
        "local n = 0 "
        "for calls in string.gmatch(redis.call('INFO', 'commandstats'), 'calls=(%d+)') do "
        "n = n + calls end return n";
    long long n = 0;

    for (uint32_t i = 0; i < kit.cluster.n; i++) {
        n += server_ask_number(&kit.cluster.servers[i], "EVAL %s 0", script);
    }
    return n;
}

static struct quorlock_options waiting(uint32_t wait_ms)
{
    struct quorlock_options options = kit_lease(LONG_LEASE_MS);

    options.wait_ms = wait_ms;
    return options;
}

/* A peer has the key, and the head of the line knows it. */
static void begin_line(quorlock **locks, struct seen *seen, uint32_t n, const struct quorlock_options *options)
{
    struct quorlock_client_options client_options = kit_options();

    kit_client(&client_options, 3);
    for (int i = 0; i < 3; i++) server_do(&kit.cluster.servers[i], "SET key peer PX 60000");
    for (uint32_t i = 0; i < n; i++) {
        locks[i] = kit_lock(kit.client, "key", options);
        kit_start_acquire(locks[i], &seen[i]);
        run_ms(APART_MS);
    }
    run_ms(300);
    for (uint32_t i = 0; i < n; i++) assert_int_equal(seen[i].calls, 0);
}

static void expect_handed_over(quorlock *lock, struct seen *seen)
{
    for (int i = 0; i < 3; i++) server_do(&kit.cluster.servers[i], "DEL key");
    await_count(&seen->calls, 1, GENEROUS_MS, "the heir's grant");
    assert_status(seen->result.status, QUORLOCK_OK);
    await_holders("key", seen->owner, 3);
    assert_status(kit_release(lock, seen), QUORLOCK_OK);
    await_free("key");
}

/* One after the other: each is told HELD with what the first learned, and the servers hear nothing of it. */
static void bounds_of_a_line_cost_nothing(void **state)
{
    static struct seen seen[WAITERS];
    quorlock *locks[WAITERS];
    struct quorlock_options options = waiting(BOUND_MS);
    long long before;

    (void)state;
    memset(seen, 0, sizeof(seen));
    begin_line(locks, seen, WAITERS, &options);
    before = commands();
    for (int i = 0; i < WAITERS; i++) {
        await_count(&seen[i].calls, 1, GENEROUS_MS, "the wait bound");
        assert_status(seen[i].result.status, QUORLOCK_HELD);
        assert_true(seen[i].result.elapsed_ms >= BOUND_MS);
        assert_contains(seen[i].text, "peer");
        quorlock_free(locks[i]);
    }
    /* A poll now and then, and the last one's release; three questions a waiter would be 300. */
    assert_true(commands() - before < 100);
    assert_int_equal(cluster_holders(&kit.cluster, "key", "peer"), 3);
    for (int i = 0; i < 3; i++) server_do(&kit.cluster.servers[i], "DEL key");
}

/* From the head on, canceled or freed: the last one goes on with what the first began. */
static void who_is_canceled_leaves_its_place(void **state)
{
    static struct seen seen[WAITERS];
    quorlock *locks[WAITERS];
    struct quorlock_options options = waiting(QUORLOCK_WAIT_FOREVER);
    long long before;

    (void)state;
    memset(seen, 0, sizeof(seen));
    begin_line(locks, seen, WAITERS, &options);
    before = commands();
    for (int i = 0; i < WAITERS - 1; i++) {
        if (i % 2 == 0) {
            assert_int_equal(quorlock_cancel(locks[i]), 0);
        } else {
            quorlock_free(locks[i]);
        }
        await_count(&seen[i].calls, 1, GENEROUS_MS, "the end");
        assert_status(seen[i].result.status, QUORLOCK_CANCELED);
        if (i % 2 == 0) quorlock_free(locks[i]);
    }
    assert_true(commands() - before < 100);
    assert_int_equal(seen[WAITERS - 1].calls, 0);
    expect_handed_over(locks[WAITERS - 1], &seen[WAITERS - 1]);
    quorlock_free(locks[WAITERS - 1]);
}

/* Its keys must last as long as it wished, not as long as the first one did. */
static void unlike_wishes_are_not_inherited(void **state)
{
    struct seen seen[2] = {{0}};
    quorlock *locks[2];
    struct quorlock_options options = waiting(QUORLOCK_WAIT_FOREVER);

    (void)state;
    begin_line(locks, seen, 1, &options);
    options.lease_ms = LONG_LEASE_MS / 2;
    locks[1] = kit_lock(kit.client, "key", &options);
    kit_start_acquire(locks[1], &seen[1]);
    assert_int_equal(quorlock_cancel(locks[0]), 0);
    await_count(&seen[0].calls, 1, GENEROUS_MS, "the end");
    for (int i = 0; i < 3; i++) server_do(&kit.cluster.servers[i], "DEL key");
    await_count(&seen[1].calls, 1, GENEROUS_MS, "the grant");
    assert_status(seen[1].result.status, QUORLOCK_OK);
    await_holders("key", seen[1].owner, 3);
    for (int i = 0; i < 3; i++) {
        assert_true(server_pttl(&kit.cluster.servers[i], "key") <= LONG_LEASE_MS / 2);
    }
    assert_status(kit_release(locks[1], &seen[1]), QUORLOCK_OK);
    await_free("key");
    quorlock_free(locks[0]);
    quorlock_free(locks[1]);
}

/* The place may be a grant already that was not told yet: it is the heir's then. */
static void a_grant_that_was_not_told_is_inherited(void **state)
{
    struct seen seen[3] = {{0}};
    quorlock *locks[3];
    struct quorlock_options options = waiting(QUORLOCK_WAIT_FOREVER);

    (void)state;
    begin_line(locks, seen, 3, &options);
    for (int i = 0; i < 3; i++) server_do(&kit.cluster.servers[i], "DEL key");
    /* In whatever phase the servers' having its keys finds it. */
    while (cluster_holders(&kit.cluster, "key", NULL) < 3) event_base_loop(kit.base, EVLOOP_ONCE);
    if (seen[0].calls == 0) {
        assert_int_equal(quorlock_cancel(locks[0]), 0);
        await_count(&seen[0].calls, 1, GENEROUS_MS, "the end");
        assert_status(seen[0].result.status, QUORLOCK_CANCELED);
    } else {
        assert_status(kit_release(locks[0], &seen[0]), QUORLOCK_OK);
    }
    for (int i = 1; i < 3; i++) {
        await_count(&seen[i].calls, 1, GENEROUS_MS, "the grant");
        assert_status(seen[i].result.status, QUORLOCK_OK);
        await_holders("key", seen[i].owner, 3);
        assert_status(kit_release(locks[i], &seen[i]), QUORLOCK_OK);
    }
    await_free("key");
    for (int i = 0; i < 3; i++) quorlock_free(locks[i]);
}

/* All in flight, the first with votes pending. */
static void a_client_that_closes_tells_all_of_them(void **state)
{
    static struct seen seen[WAITERS];
    quorlock *locks[WAITERS];
    struct quorlock_options options = waiting(QUORLOCK_WAIT_FOREVER);

    (void)state;
    memset(seen, 0, sizeof(seen));
    begin_line(locks, seen, WAITERS, &options);
    kit_close(kit.client);
    kit.client = NULL;
    for (int i = 0; i < WAITERS; i++) {
        assert_int_equal(seen[i].calls, 1);
        assert_status(seen[i].result.status, QUORLOCK_CLOSED);
    }
    assert_int_equal(cluster_holders(&kit.cluster, "key", "peer"), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bounds_of_a_line_cost_nothing, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(who_is_canceled_leaves_its_place, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(unlike_wishes_are_not_inherited, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(a_grant_that_was_not_told_is_inherited, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(a_client_that_closes_tells_all_of_them, kit_setup, kit_teardown),
    };

    return cmocka_run_group_tests_name("heirs in a line", tests, NULL, NULL);
}
