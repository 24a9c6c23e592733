/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_many_keys.c - several keys in one lock, in any order; and lists that overlap
 */
#include "fixture.h"

static const char *const ab[] = {"a", "b"};
static const char *const ba[] = {"b", "a"};
static const char *const bc[] = {"b", "c"};
static const char *const abc[] = {"c", "a", "b"};

static void await_all_free(const char *const *keys, size_t n_keys)
{
    for (size_t i = 0; i < n_keys; i++) await_free(keys[i]);
}

/* The same keys in another order have the same queue and the same owner. */
CLIENT_TEST(order_makes_no_difference)
{
    struct seen first, second, third;
    quorlock_lock *waits;
    quorlock_lock *one = fixture_lock_all(fixture.client, ab, 2, LEASE(LONG_LEASE_MS, .owner = "me"));
    quorlock_lock *two = fixture_lock_all(fixture.client, ba, 2, LEASE(LONG_LEASE_MS, .owner = "me"));

    waits = fixture_lock_all(fixture.client, ba, 2, LEASE(LONG_LEASE_MS, .owner = NULL, .wait_ms = NO_LIMIT));
    assert_status(fixture_acquire(one, &first), QUORLOCK_OK);
    assert_status(fixture_acquire(two, &second), QUORLOCK_OK);
    assert_string_equal(first.owner, second.owner);
    assert_contains(second.text, "\"a, b\" is held by its owner already: 2 holds now");
    fixture_start_acquire(waits, &third);
    assert_status(fixture_release(one, &first), QUORLOCK_OK);
    assert_int_equal(third.calls, 0);
    assert_status(fixture_release(two, &second), QUORLOCK_OK);
    await_status(&third, QUORLOCK_OK, "the waiter");
    quorlock_lock_free(one);
    quorlock_lock_free(two);
    quorlock_lock_free(waits);
    await_all_free(ab, 2);
}

CLIENT_TEST(one_owner_reenters_the_same_list_only)
{
    struct seen seen;
    quorlock_lock *outer = fixture_lock_all(fixture.client, ab, 2, LEASE(LONG_LEASE_MS, .owner = "me"));
    quorlock_lock *overlaps = fixture_lock_all(fixture.client, bc, 2, LEASE(LONG_LEASE_MS, .owner = "me"));
    quorlock_lock *apart = fixture_lock_all(fixture.client, abc, 1, LEASE(LONG_LEASE_MS, .owner = "me"));
    quorlock_lock *yours = fixture_lock_all(fixture.client, bc, 2, LEASE(LONG_LEASE_MS, .owner = "you"));

    assert_status(fixture_acquire(outer, &seen), QUORLOCK_OK);
    assert_status(quorlock_lock_acquire(overlaps, on_result, &seen), QUORLOCK_ERR_INVAL);
    assert_string_equal(
        quorlock_client_error(fixture.client),
        "owner \"me\" has \"b\" in the list \"a, b\" already and asks for \"b, c\": an owner can nest only "
        "the identical list of keys; use another owner, or the same keys");
    /* Other keys are independent, and another owner gets the usual result. */
    assert_status(fixture_acquire(apart, &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(yours, &seen), QUORLOCK_ERR_HELD);
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
    quorlock_lock *waiter, *overlaps;
    quorlock_lock *holder = fixture_lock_all(fixture.client, ab, 2, LEASE(LONG_LEASE_MS));
    quorlock_lock *first_waiter = fixture_lock_all(fixture.client, ab, 2, LEASE(LONG_LEASE_MS, .wait_ms = NO_LIMIT));

    waiter = fixture_lock_all(fixture.client, ab, 2, LEASE(LONG_LEASE_MS, .wait_ms = NO_LIMIT, .owner = "me"));
    overlaps = fixture_lock_all(fixture.client, bc, 2, LEASE(LONG_LEASE_MS, .wait_ms = 0, .owner = "me"));
    assert_status(fixture_acquire(holder, &seen), QUORLOCK_OK);
    fixture_start_acquire(first_waiter, &first);
    fixture_start_acquire(waiter, &waited);
    run_ms(20);
    /* A lock that is broken by hand lets the other list in. */
    for (int i = 0; i < 3; i++) server_do(SERVER(i), "DEL a b");
    assert_status(fixture_acquire(overlaps, &seen), QUORLOCK_OK);
    assert_status(quorlock_lock_cancel(first_waiter), QUORLOCK_OK);
    await_count(&first.calls, 1, GENEROUS_MS, "canceled");
    await_status(&waited, QUORLOCK_ERR_INVAL, "the refusal");
    assert_contains(waited.text, "its owner holds one of the keys in another list");
    quorlock_lock_free(holder);
    quorlock_lock_free(first_waiter);
    quorlock_lock_free(waiter);
    quorlock_lock_free(overlaps);
    await_all_free(abc, 3);
}
