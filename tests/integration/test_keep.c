/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_keep.c - a lock that is released early keeps its keys until keep_ms after the grant
 */
#include <string.h>
#include <time.h>

#include "fixture.h"

/* The servers' clocks have milliseconds. */
#define CLOCK_US 5000u
#define SHORT_MS 1500u
#define LONG_MS  60000u

static const char *const keys[] = {"one", "two"};
static struct seen seen, after;
static quorlock_lock *lock, *other;

/* Held and released at once, and another client has a lock on the same keys. Return when the acquire began. */
static uint64_t keep_for(uint32_t keep_ms, size_t n_keys, bool fencing)
{
    struct quorlock_lock_options *options = LEASE(LONG_LEASE_MS, .keep_ms = keep_ms, .fencing = fencing);
    uint64_t begun_us = clock_us();

    memset(&seen, 0, sizeof(seen));
    memset(&after, 0, sizeof(after));
    lock = fixture_lock_all(fixture.client, keys, n_keys, options);
    other = fixture_lock_all(fixture_new_client(3), keys, n_keys, LEASE(LONG_LEASE_MS, .wait_ms = 0));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    assert_status(fixture_release(lock, &after), QUORLOCK_OK);
    return begun_us;
}

/* On a quorum at least: the third answer may come after the result. */
static void expect_kept(const char *key, int64_t at_most_ms)
{
    char value[sizeof("quorlock:kept:") + sizeof(seen.owner)];
    uint32_t kept = 0;

    snprintf(value, sizeof(value), "quorlock:kept:%s", seen.owner);
    for (uint32_t i = 0; i < 3; i++) {
        int64_t ttl_ms = server_pttl(SERVER(i), key);

        kept += server_holds(SERVER(i), key, value) && ttl_ms > 0 && ttl_ms <= at_most_ms;
    }
    assert_in_range(kept, 2, 3);
}

CLIENT_TEST(an_early_release_leaves_the_key_until_the_end_of_the_keep_time)
{
    keep_for(LONG_MS, 1, 0);
    assert_contains(after.text, "; kept for another ");
    assert_int_equal(quorlock_lock_valid_ms(lock), 0);
    expect_kept("one", LONG_MS);
    assert_status(fixture_acquire(other, &after), QUORLOCK_ERR_HELD);
    assert_status(fixture_acquire(lock, &after), QUORLOCK_ERR_HELD);
    expect_kept("one", LONG_MS);
    drop_by_hand("one");
}

CLIENT_TEST(several_keys_with_a_counter_are_kept)
{
    uint64_t fence;

    keep_for(LONG_MS, 2, 1);
    fence = seen.result.fence;
    expect_kept("one", LONG_MS);
    expect_kept("two", LONG_MS);
    drop_by_hand("one");
    assert_status(fixture_acquire(other, &after), QUORLOCK_ERR_HELD);
    drop_by_hand("two");
    assert_status(fixture_acquire(lock, &after), QUORLOCK_OK);
    assert_true(after.result.fence > fence);
}

/* Another client's waiter, and then one of the same client, which a release wakes. */
static void expect_granted_after(quorlock_client *client, uint64_t free_us)
{
    quorlock_lock *waiter =
        fixture_lock_all(client, keys, 1, LEASE(LONG_LEASE_MS, .wait_ms = NO_LIMIT, .keep_ms = SHORT_MS));
    struct seen granted;

    assert_status(fixture_acquire(waiter, &granted), QUORLOCK_OK);
    assert_true(clock_us() + CLOCK_US >= free_us);
    assert_status(fixture_release(waiter, &granted), QUORLOCK_OK);
}

CLIENT_TEST(a_waiter_has_the_key_after_the_keep_time_and_not_before)
{
    for (int same = 0; same < 2; same++) {
        uint64_t begun_us = keep_for(SHORT_MS, 1, 0);

        expect_granted_after(same != 0 ? fixture.client : fixture.clients[1], begun_us + SHORT_MS * UINT64_C(1000));
        await_free("one");
    }
}

/* The queue of the client has the waiter before the release. */
CLIENT_TEST(a_kept_key_is_not_handed_on_inside_the_client)
{
    uint64_t begun_us = clock_us();
    quorlock_lock *waiter = fixture_lock(fixture.client, "one", LEASE(LONG_LEASE_MS, .wait_ms = NO_LIMIT));

    memset(&after, 0, sizeof(after));
    lock = fixture_lock(fixture.client, "one", LEASE(LONG_LEASE_MS, .keep_ms = SHORT_MS));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    fixture_start_acquire(waiter, &after);
    quorlock_lock_free(lock);
    await_status(&after, QUORLOCK_OK, "the end of the keep time");
    assert_true(clock_us() + CLOCK_US >= begun_us + SHORT_MS * UINT64_C(1000));
}

static bool is_over(void *valid_from_us)
{
    return clock_us() > *(uint64_t *)valid_from_us;
}

CLIENT_TEST(a_hold_longer_than_the_keep_time_ends_as_any_other)
{
    uint64_t over_us;

    lock = fixture_lock(fixture.client, "one", LEASE(LONG_LEASE_MS, .keep_ms = 100));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    over_us = clock_us() + UINT64_C(100000);
    await(is_over, &over_us, GENEROUS_MS, "the keep time");
    assert_status(fixture_release(lock, &after), QUORLOCK_OK);
    assert_null(strstr(after.text, "kept"));
    await_free("one");
}

CLIENT_TEST(a_hold_that_is_undone_keeps_nothing)
{
    lock = fixture_lock_all(fixture.client, keys, 2, LEASE(LONG_LEASE_MS, .keep_ms = LONG_MS, .fencing = 1));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    memset(&after, 0, sizeof(after));
    assert_int_equal(quorlock_lock_undo(lock, on_result, &after), 0);
    await_status(&after, QUORLOCK_OK, "the end of the release");
    assert_null(strstr(after.text, "kept"));
    await_free("one");
    await_free("two");
    /* The next hold is kept again. */
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    assert_status(fixture_release(lock, &after), QUORLOCK_OK);
    expect_kept("one", LONG_MS);
    drop_by_hand("one");
    drop_by_hand("two");
}

CLIENT_TEST(a_canceled_acquire_keeps_nothing)
{
    struct quorlock_lock_options *options = LEASE(LONG_LEASE_MS, .keep_ms = LONG_MS, .wait_ms = NO_LIMIT);

    memset(&seen, 0, sizeof(seen));
    lock = fixture_lock(fixture.client, "one", options);
    fixture_start_acquire(lock, &seen);
    assert_int_equal(quorlock_lock_cancel(lock), 0);
    await_status(&seen, QUORLOCK_ERR_CANCELED, "the end of the acquire");
    await_free("one");
}

/* The outermost acquire decides, and the last release keeps. */
CLIENT_TEST(nested_holds_are_kept_as_the_outermost_one_asked)
{
    struct quorlock_lock_options *outer = LEASE(LONG_LEASE_MS, .keep_ms = LONG_MS, .owner = "me");
    struct quorlock_lock_options *longer = LEASE(LONG_LEASE_MS, .keep_ms = LONG_MS + 1, .owner = "me");
    struct quorlock_lock_options *shorter = LEASE(LONG_LEASE_MS, .owner = "me");

    lock = fixture_lock(fixture.client, "one", outer);
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    other = fixture_lock(fixture.client, "one", longer);
    assert_int_equal(quorlock_lock_acquire(other, on_result, &after), QUORLOCK_ERR_INVAL);
    assert_contains(quorlock_client_error(fixture.client), "keep_ms");
    other = fixture_lock(fixture.client, "one", shorter);
    assert_status(fixture_acquire(other, &after), QUORLOCK_OK);
    assert_status(fixture_release(lock, &after), QUORLOCK_OK);
    assert_true(quorlock_lock_valid_ms(other) > 0);
    assert_status(fixture_release(other, &after), QUORLOCK_OK);
    expect_kept("one", LONG_MS);
    drop_by_hand("one");
}

CLIENT_TEST(a_closed_client_leaves_the_key_kept)
{
    quorlock_client *client = fixture_new_client(3);

    lock = fixture_lock(client, "one", LEASE(LONG_LEASE_MS, .keep_ms = LONG_MS));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    fixture_close(client);
    expect_kept("one", LONG_MS);
    drop_by_hand("one");
}
