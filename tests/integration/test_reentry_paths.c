/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_reentry_paths.c - the ways into an owner's hold and out of it: from the queue, by options, freed,
 * canceled, closed
 */
#include "reentry_fixture.h"

/* ---- in the queue ---- */

FLAVOURS_TEST(admitted_out_of_the_queue)
{
    struct seen first, stranger, second, third, seen;
    quorlock *mine[3], *yours;

    for (int i = 0; i < 3; i++) mine[i] = waiter_of("me");
    take_by_hand(3, "key", "peer");
    yours = waiter_of("you");
    fixture_start_acquire(mine[0], &first);
    fixture_start_acquire(yours, &stranger);
    fixture_start_acquire(mine[1], &second);
    fixture_start_acquire(mine[2], &third);
    run_ms(100);
    assert_status(quorlock_cancel(mine[2]), QUORLOCK_OK);
    drop_by_hand("key");
    await_count(&first.calls, 1, GENEROUS_MS, "the first");
    await_count(&second.calls, 1, GENEROUS_MS, "of the same owner");
    assert_status(first.result.status, QUORLOCK_OK);
    assert_status(second.result.status, QUORLOCK_OK);
    assert_status(third.result.status, QUORLOCK_CANCELED);
    assert_string_equal(first.owner, second.owner);
    assert_int_equal(stranger.calls, 0);
    assert_status(fixture_release(mine[0], &seen), QUORLOCK_OK);
    run_ms(50);
    assert_int_equal(stranger.calls, 0);
    assert_status(fixture_release(mine[1], &seen), QUORLOCK_OK);
    await_status(&stranger, QUORLOCK_OK, "the other owner");
    for (int i = 0; i < 3; i++) quorlock_free(mine[i]);
    quorlock_free(yours);
    await_free("key");
}

/* Two of one owner at once, of which one does not queue: the first grant admits the other. */
FLAVOUR_TEST(tries_at_the_same_time, majority)
{
    struct seen seen[2];

    for (int round = 0; round < 4; round++) {
        quorlock *locks[2] = {round % 2 == 0 ? waiter_of("me") : lock_of("me", LONG_LEASE_MS),
                              round < 2 ? lock_of("me", LONG_LEASE_MS) : waiter_of("me")};

        for (int i = 0; i < 2; i++) fixture_start_acquire(locks[i], &seen[i]);
        for (int i = 0; i < 2; i++) {
            await_status(&seen[i], QUORLOCK_OK, "acquire");
        }
        assert_string_equal(seen[0].owner, seen[1].owner);
        quorlock_free(locks[0]);
        assert_true(quorlock_valid_ms(locks[1]) > 0);
        quorlock_free(locks[1]);
        await_free("key");
    }
}

/* A waiter that is admitted this way still gets its own options. */
FLAVOUR_TEST(admitted_on_its_own_terms, majority)
{
    struct seen first, second, third;
    quorlock *longer =
        fixture_lock(fixture.client, "key", LEASE(60000, .owner = "me", .wait_ms = QUORLOCK_WAIT_FOREVER));
    quorlock *fenced = fixture_lock(fixture.client, "key",
                                    LEASE(60000, .owner = "me", .wait_ms = QUORLOCK_WAIT_FOREVER, .fencing = 1));
    quorlock *outer =
        fixture_lock(fixture.client, "key", LEASE(5000, .owner = "me", .wait_ms = QUORLOCK_WAIT_FOREVER, .fencing = 0));

    fixture_start_acquire(outer, &first);
    fixture_start_acquire(longer, &second);
    fixture_start_acquire(fenced, &third);
    await_count(&first.calls, 1, GENEROUS_MS, "outer");
    await_count(&second.calls, 1, GENEROUS_MS, "inner");
    await_count(&third.calls, 1, GENEROUS_MS, "fenced");
    assert_status(first.result.status, QUORLOCK_OK);
    assert_status(second.result.status, QUORLOCK_OK);
    assert_true(second.result.valid_ms > 30000);
    assert_status(third.result.status, QUORLOCK_INVAL);
    assert_contains(third.text, "without a fencing token");
    quorlock_free(outer);
    quorlock_free(longer);
    quorlock_free(fenced);
    await_free("key");
}

/* ---- options ---- */

FLAVOURS_TEST(one_fencing_token)
{
    struct seen seen;
    uint64_t fence;
    quorlock *unfenced = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .owner = "me"));
    quorlock *outer = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .owner = "me", .fencing = 1));
    quorlock *inner = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .owner = "me", .fencing = 1));

    assert_status(fixture_acquire(outer, &seen), QUORLOCK_OK);
    fence = seen.result.fence;
    assert_true(fence > 0);
    assert_status(fixture_acquire(inner, &seen), QUORLOCK_OK);
    assert_true(seen.result.fence == fence && quorlock_fence(inner) == fence);
    assert_status(fixture_acquire(unfenced, &seen), QUORLOCK_OK);
    assert_status(fixture_release(outer, &seen), QUORLOCK_OK);
    assert_status(fixture_release(inner, &seen), QUORLOCK_OK);
    assert_status(fixture_release(unfenced, &seen), QUORLOCK_OK);
    await_free("key");
    /* A hold without a token has none to share. */
    assert_status(fixture_acquire(unfenced, &seen), QUORLOCK_OK);
    assert_status(quorlock_acquire(inner, on_result, &seen), QUORLOCK_INVAL);
    assert_contains(quorlock_client_error(fixture.client), "without a fencing token");
    assert_status(fixture_release(unfenced, &seen), QUORLOCK_OK);
    await_free("key");
}

/* ---- free, cancel, close ---- */

FLAVOUR_TEST(the_outer_handle_is_freed, majority)
{
    struct seen_loss loss = {.calls = 0};
    struct seen seen, after;
    quorlock *outer = lock_of("me", 4000);
    quorlock *inner = lock_of("me", 4000);
    quorlock *waiting = waiter_of("you");

    quorlock_on_lost(inner, on_loss, &loss);
    for (int round = 0; round < 2; round++) {
        assert_status(fixture_acquire(outer, &seen), QUORLOCK_OK);
        assert_status(fixture_acquire(inner, &seen), QUORLOCK_OK);
        await_holders("key", NULL, 3);
        quorlock_free(outer);
        outer = lock_of("me", 4000);
        assert_true(quorlock_valid_ms(inner) > 0);
        assert_int_equal(holders("key", NULL), 3);
        assert_int_equal(loss.calls, 0);
        if (round == 1) break;
        fixture_start_acquire(waiting, &after);
        run_ms(20);
        assert_status(fixture_release(inner, &seen), QUORLOCK_OK);
        await_status(&after, QUORLOCK_OK, "the next owner");
        assert_status(fixture_release(waiting, &seen), QUORLOCK_OK);
        await_free("key");
    }
    drop_by_hand("key");
    await_count(&loss.calls, 1, GENEROUS_MS, "loss");
    assert_status(quorlock_acquire(outer, on_result, &seen), QUORLOCK_LOST);
    /* A freed handle is released. */
    quorlock_free(inner);
    assert_status(fixture_acquire(outer, &seen), QUORLOCK_OK);
    quorlock_free(outer);
    quorlock_free(waiting);
    await_free("key");
}

FLAVOUR_TEST(freed_one_after_the_other, majority)
{
    struct seen seen, pending, released;
    quorlock *outer = lock_of("me", LONG_LEASE_MS);
    quorlock *inner = lock_of("me", LONG_LEASE_MS);

    assert_status(fixture_acquire(outer, &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(inner, &seen), QUORLOCK_OK);
    await_holders("key", NULL, 3);
    quorlock_free(inner);
    assert_true(quorlock_valid_ms(outer) > 0);
    run_ms(20);
    assert_int_equal(holders("key", NULL), 3);
    /* Freed before the callback of its grant, and before that of its release. */
    inner = lock_of("me", LONG_LEASE_MS);
    fixture_start_acquire(inner, &pending);
    quorlock_free(inner);
    fixture_start_acquire(outer, &seen);
    await_status(&pending, QUORLOCK_CANCELED, "freed before the callback of its grant");
    await_count(&seen.calls, 1, GENEROUS_MS, "outer");
    fixture_start_release(outer, &released);
    quorlock_free(outer);
    await_status(&released, QUORLOCK_OK, "freed before the callback of its release");
    await_free("key");
}

FLAVOUR_TEST(canceled_in_each_state, majority)
{
    struct seen seen, pending, released;
    quorlock *outer = unrenewed_of("me", 10000);
    quorlock *inner = lock_of("me", 60000);
    quorlock *longer = lock_of("me", LONG_LEASE_MS);

    assert_status(fixture_acquire(outer, &seen), QUORLOCK_OK);
    await_holders("key", NULL, 3);
    /* Waiting for a renewal. */
    fixture_start_acquire(inner, &pending);
    assert_status(quorlock_cancel(inner), QUORLOCK_OK);
    await_status(&pending, QUORLOCK_CANCELED, "the canceled inner acquire");
    assert_status(quorlock_release(inner, on_result, &seen), QUORLOCK_STATE);
    assert_true(quorlock_valid_ms(outer) > 0);
    /* And a release right after it is not refused because of a renewal that no call waits for. */
    run_ms(50);
    fixture_start_acquire(longer, &pending);
    assert_status(quorlock_cancel(longer), QUORLOCK_OK);
    fixture_start_release(outer, &released);
    await_status(&released, QUORLOCK_OK, "release");
    await_count(&pending.calls, 1, GENEROUS_MS, "the canceled inner acquire");
    assert_int_equal(quorlock_valid_ms(outer), 0);
    await_free("key");
    /* Granted, before its callback. */
    assert_status(fixture_acquire(inner, &seen), QUORLOCK_OK);
    fixture_start_acquire(outer, &pending);
    assert_status(quorlock_cancel(outer), QUORLOCK_OK);
    await_status(&pending, QUORLOCK_CANCELED, "canceled before its callback");
    assert_status(quorlock_release(outer, on_result, &seen), QUORLOCK_STATE);
    assert_int_equal(holders("key", NULL), 3);
    assert_status(fixture_release(inner, &seen), QUORLOCK_OK);
    await_free("key");
}

/* The last hold goes while another handle waits to enter. */
FLAVOUR_TEST(released_while_another_enters, majority)
{
    struct seen seen, pending;
    quorlock *outer = unrenewed_of("me", 10000);
    quorlock *inner = lock_of("me", 60000);

    assert_status(fixture_acquire(outer, &seen), QUORLOCK_OK);
    await_holders("key", NULL, 3);
    fixture_start_acquire(inner, &pending);
    assert_status(fixture_release(outer, &seen), QUORLOCK_OK);
    await_status(&pending, QUORLOCK_OK, "inner");
    assert_true(quorlock_valid_ms(inner) > 30000);
    assert_int_equal(holders("key", NULL), 3);
    assert_status(fixture_release(inner, &seen), QUORLOCK_OK);
    await_free("key");
    /* And if that one is canceled, nothing stays. */
    assert_status(fixture_acquire(outer, &seen), QUORLOCK_OK);
    fixture_start_acquire(inner, &pending);
    assert_int_equal(quorlock_release(outer, NULL, NULL), 0);
    assert_status(quorlock_cancel(inner), QUORLOCK_OK);
    await_free("key");
    await_count(&pending.calls, 1, GENEROUS_MS, "the canceled inner acquire");
}

/* A handle's extend admits another handle, also when it is for less, or canceled. */
FLAVOUR_TEST(anothers_renewal, majority)
{
    struct seen seen, extended, pending;
    quorlock *outer = unrenewed_of("me", 10000);
    quorlock *inner = lock_of("me", 60000);

    assert_status(fixture_acquire(outer, &seen), QUORLOCK_OK);
    fixture_start_extend(outer, 0, &extended);
    fixture_start_acquire(inner, &pending);
    await_count(&extended.calls, 1, GENEROUS_MS, "extend");
    await_count(&pending.calls, 1, GENEROUS_MS, "inner");
    assert_status(extended.result.status, QUORLOCK_OK);
    assert_status(pending.result.status, QUORLOCK_OK);
    assert_true(pending.result.valid_ms > 30000);
    quorlock_free(inner);
    assert_status(fixture_release(outer, &seen), QUORLOCK_OK);
    await_free("key");

    inner = lock_of("me", 60000);
    assert_status(fixture_acquire(outer, &seen), QUORLOCK_OK);
    fixture_start_extend(outer, 20000, &extended);
    fixture_start_acquire(inner, &pending);
    assert_status(quorlock_cancel(outer), QUORLOCK_OK);
    await_count(&extended.calls, 1, GENEROUS_MS, "canceled extend");
    await_count(&pending.calls, 1, GENEROUS_MS, "inner");
    assert_status(extended.result.status, QUORLOCK_CANCELED);
    assert_status(pending.result.status, QUORLOCK_OK);
    assert_true(pending.result.valid_ms > 30000);
    quorlock_free(inner);
    quorlock_free(outer);
    await_free("key");
}

FLAVOUR_TEST(closed_in_each_state, majority)
{
    struct seen seen, granted, entering, extended, released;
    quorlock *locks[4];

    for (int round = 0; round < 3; round++) {
        if (round > 0) fixture_client(3);
        for (int i = 0; i < 4; i++) locks[i] = i == 1 ? lock_of("me", 60000) : unrenewed_of("me", 10000);
        assert_status(fixture_acquire(locks[0], &seen), QUORLOCK_OK);
        assert_status(fixture_acquire(locks[0], &seen), QUORLOCK_OK);
        assert_status(fixture_acquire(locks[3], &seen), QUORLOCK_OK);
        await_holders("key", NULL, 3);
        fixture_start_release(locks[3], &released);
        fixture_start_acquire(locks[2], &granted);
        if (round != 0) fixture_start_extend(locks[0], 0, &extended);
        fixture_start_acquire(locks[1], &entering);
        if (round == 2) quorlock_free(locks[0]);
        fixture_close(fixture.client);
        assert_int_equal(released.calls, 1);
        assert_int_equal(granted.calls, 1);
        assert_int_equal(entering.calls, 1);
        assert_status(released.result.status, QUORLOCK_OK);
        assert_status(granted.result.status, QUORLOCK_CLOSED);
        assert_status(entering.result.status, QUORLOCK_CLOSED);
        if (round == 1) assert_status(extended.result.status, QUORLOCK_CLOSED);
        if (round == 2) assert_status(extended.result.status, QUORLOCK_CANCELED);
        assert_int_equal(holders("key", NULL), 0);
    }
}
