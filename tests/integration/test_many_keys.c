/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_many_keys.c - several keys in one lock: all or none of them, one validity, in any order
 */
#include "fixture.h"

#define DIALECTS_TEST(name)                                                                                            \
    TEST_RUNS(name,                                                                                                    \
              RUN_WITH(name, " (plain)", fixture_setup_client) RUN_WITH(name, " (redisson)", fixture_setup_redisson))

static const char *const ab[] = {"a", "b"};
static const char *const ba[] = {"b", "a"};
static const char *const bc[] = {"b", "c"};
static const char *const abc[] = {"c", "a", "b"};

static void await_all_free(const char *const *keys, size_t n_keys)
{
    for (size_t i = 0; i < n_keys; i++) await_free(keys[i]);
}

DIALECTS_TEST(one_whole_life)
{
    struct seen seen;
    quorlock *lock = fixture_lock_all(fixture.client, abc, 3, LEASE(4000, .fencing = 1));

    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    assert_contains(seen.text, "\"a, b, c\"");
    assert_true(seen.result.fence > 0);
    for (int i = 0; i < 3; i++) await_holders(abc[i], NULL, 3);
    if (fixture.options.dialect == QUORLOCK_DIALECT_PLAIN) {
        for (int i = 0; i < 3; i++) assert_int_equal(holders(abc[i], seen.owner), 3);
    }
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    await_all_free(abc, 3);
}

/* Another owner has one of the keys on so many nodes that no quorum is possible. */
DIALECTS_TEST(all_or_none)
{
    struct seen seen;
    quorlock *lock = fixture_lock_all(fixture.client, abc, 3, LEASE(LONG_LEASE_MS));

    for (int k = 0; k < 3; k++) {
        take_by_hand(2, abc[k], "by-hand");
        assert_status(fixture_acquire(lock, &seen), QUORLOCK_HELD);
        assert_contains(seen.text, "by-hand");
        for (int j = 0; j < 3; j++) await_holders(abc[j], NULL, j == k ? 2 : 0);
        for (int i = 0; i < 2; i++) server_do(SERVER(i), "DEL %s", abc[k]);
    }
    /* On a minority it blocks nothing, and that node has none of ours. */
    take_by_hand(1, "b", "by-hand");
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    await_holders("a", NULL, 2);
    assert_int_equal(server_has(SERVER(0), "a"), 0);
    assert_int_equal(server_has(SERVER(0), "c"), 0);
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    await_holders("b", NULL, 1);
    await_free("a");
    await_free("c");
}

/* ---- order ---- */

/* The same keys in another order have the same queue and the same owner. */
CLIENT_TEST(order_makes_no_difference)
{
    struct seen first, second, third;
    quorlock *waits;
    quorlock *one = fixture_lock_all(fixture.client, ab, 2, LEASE(LONG_LEASE_MS, .owner = "me"));
    quorlock *two = fixture_lock_all(fixture.client, ba, 2, LEASE(LONG_LEASE_MS, .owner = "me"));

    waits =
        fixture_lock_all(fixture.client, ba, 2, LEASE(LONG_LEASE_MS, .owner = NULL, .wait_ms = QUORLOCK_WAIT_FOREVER));
    assert_status(fixture_acquire(one, &first), QUORLOCK_OK);
    assert_status(fixture_acquire(two, &second), QUORLOCK_OK);
    assert_string_equal(first.owner, second.owner);
    assert_contains(second.text, "\"a, b\" is held by its owner already: 2 holds now");
    fixture_start_acquire(waits, &third);
    assert_status(fixture_release(one, &first), QUORLOCK_OK);
    assert_int_equal(third.calls, 0);
    assert_status(fixture_release(two, &second), QUORLOCK_OK);
    await_status(&third, QUORLOCK_OK, "the waiter");
    quorlock_free(one);
    quorlock_free(two);
    quorlock_free(waits);
    await_all_free(ab, 2);
}

CLIENT_TEST(one_owner_reenters_the_same_list_only)
{
    struct seen seen;
    quorlock *outer = fixture_lock_all(fixture.client, ab, 2, LEASE(LONG_LEASE_MS, .owner = "me"));
    quorlock *overlaps = fixture_lock_all(fixture.client, bc, 2, LEASE(LONG_LEASE_MS, .owner = "me"));
    quorlock *apart = fixture_lock_all(fixture.client, abc, 1, LEASE(LONG_LEASE_MS, .owner = "me"));
    quorlock *yours = fixture_lock_all(fixture.client, bc, 2, LEASE(LONG_LEASE_MS, .owner = "you"));

    assert_status(fixture_acquire(outer, &seen), QUORLOCK_OK);
    assert_status(quorlock_acquire(overlaps, on_result, &seen), QUORLOCK_INVAL);
    assert_string_equal(quorlock_client_error(fixture.client),
                        "owner \"me\" has \"b\" in the list \"a, b\" already and asks for the list \"b, c\": one "
                        "owner nests the same list of keys only");
    /* Other keys are independent, and another owner gets the usual result. */
    assert_status(fixture_acquire(apart, &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(yours, &seen), QUORLOCK_HELD);
    assert_status(fixture_release(apart, &seen), QUORLOCK_OK);
    assert_status(fixture_release(outer, &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(overlaps, &seen), QUORLOCK_OK);
    assert_status(fixture_release(overlaps, &seen), QUORLOCK_OK);
    await_all_free(abc, 3);
}

/* A waiter is refused when its turn comes, if its owner took one of the keys meanwhile. */
CLIENT_TEST(overlap_is_found_in_the_queue_too)
{
    struct seen first, waited, seen;
    quorlock *waiter, *overlaps;
    quorlock *holder = fixture_lock_all(fixture.client, ab, 2, LEASE(LONG_LEASE_MS));
    quorlock *first_waiter =
        fixture_lock_all(fixture.client, ab, 2, LEASE(LONG_LEASE_MS, .wait_ms = QUORLOCK_WAIT_FOREVER));

    waiter =
        fixture_lock_all(fixture.client, ab, 2, LEASE(LONG_LEASE_MS, .wait_ms = QUORLOCK_WAIT_FOREVER, .owner = "me"));
    overlaps = fixture_lock_all(fixture.client, bc, 2, LEASE(LONG_LEASE_MS, .wait_ms = 0, .owner = "me"));
    assert_status(fixture_acquire(holder, &seen), QUORLOCK_OK);
    fixture_start_acquire(first_waiter, &first);
    fixture_start_acquire(waiter, &waited);
    run_ms(20);
    /* A lock that is broken by hand lets the other list in. */
    for (int i = 0; i < 3; i++) server_do(SERVER(i), "DEL a b");
    assert_status(fixture_acquire(overlaps, &seen), QUORLOCK_OK);
    assert_status(quorlock_cancel(first_waiter), QUORLOCK_OK);
    await_count(&first.calls, 1, GENEROUS_MS, "canceled");
    await_status(&waited, QUORLOCK_INVAL, "the refusal");
    assert_contains(waited.text, "its owner holds one of the keys in another list");
    quorlock_free(holder);
    quorlock_free(first_waiter);
    quorlock_free(waiter);
    quorlock_free(overlaps);
    await_all_free(abc, 3);
}
