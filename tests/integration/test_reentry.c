/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_reentry.c - one owner's holds of the same keys: counts, validity, loss, and the ways into a hold and out of it
 *
 * The simulator cancels, frees and closes handles of an owner in every state.
 */
#include "reentry_fixture.h"

#include <unistd.h>

static bool valid_below(void *arg)
{
    return quorlock_lock_valid_ms(*(quorlock_lock **)arg) < 2600;
}

/* ---- counts ---- */

FLAVOURS_TEST(one_handle_twice)
{
    char owner[TEXT_SIZE];
    struct seen seen;
    long long before;
    quorlock_lock *lock = lock_of("me", LONG_LEASE_MS);

    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    await_holders("key", NULL, 3);
    snprintf(owner, sizeof(owner), "%s", seen.owner);
    before = lock_calls();
    for (int holds = 2; holds <= 4; holds++) {
        char text[64];

        assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
        assert_string_equal(seen.owner, owner);
        assert_true(seen.result.valid_ms > 0);
        assert_int_equal(seen.result.n_votes, 3);
        snprintf(text, sizeof(text), "%d holds now", holds);
        assert_contains(seen.text, text);
    }
    for (int holds = 3; holds >= 1; holds--) {
        assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
        assert_contains(seen.text, "one hold of \"key\" given back");
        assert_true(quorlock_lock_valid_ms(lock) > 0);
        assert_string_equal(quorlock_lock_token(lock), owner);
    }
    /* No command was sent for any of that. */
    assert_int_equal(lock_calls(), before);
    assert_int_equal(holders("key", NULL), 3);
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    assert_int_equal(quorlock_lock_valid_ms(lock), 0);
    await_free("key");
    /* More than was acquired. */
    assert_status(quorlock_lock_release(lock, on_result, &seen), QUORLOCK_ERR_STATE);
    assert_contains(quorlock_client_error(fixture.client), "there is no grant to release");
}

/* ---- validity ---- */

static bool renewed(void *key)
{
    return least_pttl(*(const char **)key) > 4000;
}

/* Each flavour has a client and a key of its own: their leases run down together. */
SERVERS_TEST(renewed_first_where_little_is_left)
{
    static const int policies[3] = {QUORLOCK_POLICY_MAJORITY, QUORLOCK_POLICY_ALL, QUORLOCK_POLICY_MAJORITY};
    static const int dialects[3] = {QUORLOCK_DIALECT_REDISSON, QUORLOCK_DIALECT_PLAIN, QUORLOCK_DIALECT_PLAIN};
    static const char *const keys[3] = {"first", "second", "third"};
    quorlock_lock *outers[3], *inners[3];
    const char *key;
    struct seen seen;
    long long before;

    for (int i = 0; i < 3; i++) {
        flavoured_client(policies[i], dialects[i], 3000);
        outers[i] = fixture_lock(fixture.client, keys[i], LEASE(8000, .owner = "me", .renew_ms = QUORLOCK_RENEW_NEVER));
        inners[i] = fixture_lock(fixture.client, keys[i], LEASE(8000, .owner = "me", .renew_ms = QUORLOCK_RENEW_NEVER));
        assert_status(fixture_acquire(outers[i], &seen), QUORLOCK_OK);
        await_holders(keys[i], NULL, 3);
        before = lock_calls();
        assert_status(fixture_acquire(inners[i], &seen), QUORLOCK_OK);
        assert_int_equal(lock_calls(), before);
        assert_status(fixture_release(inners[i], &seen), QUORLOCK_OK);
    }
    await(valid_below, &outers[2], GENEROUS_MS, "less than a third");
    for (int i = 0; i < 2; i++) {
        assert_true(quorlock_lock_valid_ms(outers[i]) > 0);
        before = lock_calls();
        assert_status(fixture_acquire(inners[i], &seen), QUORLOCK_OK);
        assert_true(lock_calls() > before);
        assert_true(seen.result.valid_ms > 4000);
        assert_true(quorlock_lock_valid_ms(outers[i]) > 4000);
        key = keys[i];
        await(renewed, &key, GENEROUS_MS, "all nodes renewed");
    }
    /* A renewal that fails gives the inner lock nothing, and leaves the outer one what it has. */
    for (int i = 0; i < 2; i++) server_kill(SERVER(i));
    assert_status(fixture_acquire(inners[2], &seen), QUORLOCK_ERR_NOQUORUM);
    assert_contains(seen.text, "renewing it first reached no quorum");
    assert_int_equal(quorlock_lock_valid_ms(inners[2]), 0);
    assert_true(quorlock_lock_valid_ms(outers[2]) > 0);
}

static bool valid_below_3s(void *arg)
{
    return quorlock_lock_valid_ms(*(quorlock_lock **)arg) < 3000;
}

FLAVOUR_TEST(as_much_validity_as_is_asked_for, patient)
{
    struct seen seen;
    quorlock_lock *outer = unrenewed_of("me", 4000);
    quorlock_lock *inner = fixture_lock(
        fixture.client, "key", LEASE(4000, .owner = "me", .min_valid_ms = 3000, .renew_ms = QUORLOCK_RENEW_NEVER));

    assert_status(fixture_acquire(outer, &seen), QUORLOCK_OK);
    await(valid_below_3s, &outer, GENEROUS_MS, "less than it wants");
    assert_true(quorlock_lock_valid_ms(outer) > 1500);
    assert_status(fixture_acquire(inner, &seen), QUORLOCK_OK);
    assert_true(seen.result.valid_ms >= 3000);
    quorlock_lock_free(inner);
    quorlock_lock_free(outer);
    await_free("key");
}

/* It was enough when the acquire began, and is no more when its callback is due. */
FLAVOUR_TEST(what_ran_out_before_the_callback_is_renewed, patient)
{
    struct seen seen;
    quorlock_lock *outer = unrenewed_of("me", 4000);
    quorlock_lock *ended = fixture_lock(
        fixture.client, "key", LEASE(4000, .owner = "me", .renew_ms = QUORLOCK_RENEW_NEVER, .max_hold_ms = 100));
    quorlock_lock *inner = fixture_lock(
        fixture.client, "key", LEASE(4000, .owner = "me", .min_valid_ms = 3000, .renew_ms = QUORLOCK_RENEW_NEVER));

    assert_status(fixture_acquire(outer, &seen), QUORLOCK_OK);
    fixture_start_acquire(inner, &seen);
    cluster_pause_us(1500000);
    await_status(&seen, QUORLOCK_OK, "the renewal");
    assert_true(seen.result.valid_ms >= 3000);
    quorlock_lock_free(outer);
    assert_status(fixture_release(inner, &seen), QUORLOCK_OK);
    await_free("key");
    /* It may not be renewed. */
    assert_status(fixture_acquire(ended, &seen), QUORLOCK_OK);
    run_ms(200);
    fixture_start_acquire(inner, &seen);
    cluster_pause_us(1500000);
    await_status(&seen, QUORLOCK_ERR_STATE, "the refused renewal");
    assert_contains(seen.text, "max_hold_ms has ended the renewal");
    assert_int_equal(quorlock_lock_valid_ms(inner), 0);
    assert_true(quorlock_lock_valid_ms(ended) > 0);
    quorlock_lock_free(inner);
    quorlock_lock_free(ended);
    await_free("key");
}

/* All but 10 us of what drift leaves: no server answers so soon. */
FLAVOUR_TEST(more_than_a_renewal_gives, patient)
{
    struct seen seen;
    quorlock_lock *outer = unrenewed_of("me", 10099);
    quorlock_lock *inner =
        fixture_lock(fixture.client, "key", LEASE(10099, .owner = "me", .min_valid_ms = 9996, .wait_ms = GENEROUS_MS));

    assert_status(fixture_acquire(outer, &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(inner, &seen), QUORLOCK_ERR_TIMEDOUT);
    assert_contains(seen.text, "less validity is left than is asked for");
    assert_true(seen.result.elapsed_ms < GENEROUS_MS / 2);
    assert_true(quorlock_lock_valid_ms(outer) > 0);
}

/* What the outermost acquire asked for decides what may nest in it. */
FLAVOUR_TEST(only_what_suits_the_hold_nests, majority)
{
    static const struct {
        struct quorlock_lock_options outer, inner;
        int status;
        const char *text;
    } rows[] = {
        {{.shared = QUORLOCK_SHARED_ALL}, {.shared = QUORLOCK_SHARED_ALL}, QUORLOCK_OK, NULL},
        {{.shared = 0}, {.shared = QUORLOCK_SHARED_ALL}, QUORLOCK_OK, NULL},
        {{.shared = QUORLOCK_SHARED_ALL}, {.shared = 0}, QUORLOCK_ERR_STATE, "holds it shared"},
        {{.fencing = 1}, {.fencing = 0}, QUORLOCK_OK, NULL},
        {{.fencing = 0}, {.fencing = 1}, QUORLOCK_ERR_INVAL, "without a fencing token"},
        {{.keep_ms = 2000}, {.keep_ms = 1000}, QUORLOCK_OK, NULL},
        {{.keep_ms = 1000}, {.keep_ms = 2000}, QUORLOCK_ERR_INVAL, "a shorter keep_ms"},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct quorlock_lock_options outer = rows[i].outer, inner = rows[i].inner;
        quorlock_lock *first, *second;
        struct seen seen, nested;

        outer.size = inner.size = sizeof(outer);
        outer.lease_ms = inner.lease_ms = LONG_LEASE_MS;
        outer.owner = inner.owner = "me";
        outer.wait_ms = inner.wait_ms = QUORLOCK_TRY_ONCE;
        first = fixture_lock(fixture.client, "key", &outer);
        second = fixture_lock(fixture.client, "key", &inner);
        assert_status(fixture_acquire(first, &seen), QUORLOCK_OK);
        if (rows[i].status != QUORLOCK_OK) {
            assert_status(quorlock_lock_acquire(second, on_result, &nested), rows[i].status);
            assert_contains(quorlock_client_error(fixture.client), rows[i].text);
        } else {
            assert_status(fixture_acquire(second, &nested), QUORLOCK_OK);
        }
        quorlock_lock_free(second);
        quorlock_lock_free(first);
        drop_by_hand("key");
    }
}

/* Slots of permits are other keys, and so is another key. */
FLAVOUR_TEST(other_keys_of_the_owner_are_no_part_of_it, majority)
{
    struct seen first, second, third;
    quorlock_lock *key = lock_of("me", LONG_LEASE_MS), *permit, *other;

    permit = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .owner = "me", .permits = 2));
    other = fixture_lock(fixture.client, "other", LEASE(LONG_LEASE_MS, .owner = "me"));
    fixture_start_acquire(key, &first);
    fixture_start_acquire(other, &second);
    fixture_start_acquire(permit, &third);
    await_status(&first, QUORLOCK_OK, "the key");
    await_status(&second, QUORLOCK_OK, "another key");
    await_status(&third, QUORLOCK_OK, "a permit");
    assert_string_not_equal(first.owner, second.owner);
    assert_status(quorlock_lock_set_wait_ms(key, 1), QUORLOCK_ERR_STATE);
}

FLAVOUR_TEST(the_wait_bound_holds_for_a_renewal_too, patient)
{
    struct seen seen;
    quorlock_lock *outer = unrenewed_of("me", 5000);
    quorlock_lock *inner = fixture_lock(fixture.client, "key", LEASE(10000, .owner = "me", .wait_ms = 200));

    assert_status(fixture_acquire(outer, &seen), QUORLOCK_OK);
    await_holders("key", NULL, 3);
    for (int i = 0; i < 2; i++) server_freeze(SERVER(i));
    assert_status(fixture_acquire(inner, &seen), QUORLOCK_ERR_TIMEDOUT);
    assert_contains(seen.text, "renewing it first took too long");
    assert_true(seen.result.elapsed_ms >= 200);
    /* Its node timeout is three seconds. */
    assert_true(seen.result.elapsed_ms < 2500);
    assert_true(quorlock_lock_valid_ms(outer) > 0);
    for (int i = 0; i < 2; i++) server_thaw(SERVER(i));
    quorlock_lock_free(inner);
    quorlock_lock_free(outer);
    await_free("key");
}

/* ---- loss ---- */

FLAVOURS_TEST(a_loss_ends_every_hold)
{
    struct seen_loss losses[3] = {{.calls = 0}};
    struct seen seen;
    quorlock_lock *locks[3], *later;

    for (int i = 0; i < 3; i++) {
        locks[i] = lock_of("me", 6000);
        quorlock_lock_set_on_lost(locks[i], on_loss, &losses[i]);
        assert_status(fixture_acquire(locks[i], &seen), QUORLOCK_OK);
    }
    later = lock_of("me", 6000);
    assert_status(fixture_acquire(locks[1], &seen), QUORLOCK_OK);
    await_holders("key", NULL, 3);
    drop_by_hand("key");
    for (int i = 0; i < 3; i++) await_count(&losses[i].calls, 1, GENEROUS_MS, "loss");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(losses[i].valid_ms, 0);
        assert_int_equal(losses[i].loss.reason, QUORLOCK_LOSS_GONE);
        assert_int_equal(quorlock_lock_valid_ms(locks[i]), 0);
        assert_status(quorlock_lock_acquire(locks[i], on_result, &seen), QUORLOCK_ERR_LOST);
    }
    assert_status(quorlock_lock_acquire(later, on_result, &seen), QUORLOCK_ERR_LOST);
    assert_contains(quorlock_client_error(fixture.client), "its owner has not released all that was lost");
    for (int i = 0; i < 3; i++) {
        for (int holds = i == 1 ? 2 : 1; holds > 0; holds--) {
            assert_status(quorlock_lock_acquire(later, on_result, &seen), QUORLOCK_ERR_LOST);
            assert_status(fixture_release(locks[i], &seen), QUORLOCK_ERR_LOST);
        }
        assert_status(quorlock_lock_release(locks[i], on_result, &seen), QUORLOCK_ERR_STATE);
    }
    assert_status(fixture_acquire(later, &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(locks[2], &seen), QUORLOCK_OK);
    assert_status(fixture_release(later, &seen), QUORLOCK_OK);
    assert_status(fixture_release(locks[2], &seen), QUORLOCK_OK);
    await_free("key");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(losses[i].calls, 1);
        quorlock_lock_free(locks[i]);
    }
}

static void stand_still_until_over(const quorlock_lock *lock)
{
    uint64_t until_us = clock_us() + GENEROUS_MS * 1000ull;

    while (quorlock_lock_valid_ms(lock) > 0 && clock_us() < until_us) cluster_pause_us(5000);
}

/* Granted by the hold that the owner has; but the lease ends before the callback. */
FLAVOUR_TEST(lost_before_its_completion, patient)
{
    struct seen_loss outer_loss = {.calls = 0}, inner_loss = {.calls = 0};
    struct seen seen, pending, again;
    quorlock_lock *outer = unrenewed_of("me", 1000);
    quorlock_lock *inner = unrenewed_of("me", 1000);

    quorlock_lock_set_on_lost(outer, on_loss, &outer_loss);
    quorlock_lock_set_on_lost(inner, on_loss, &inner_loss);
    assert_status(fixture_acquire(outer, &seen), QUORLOCK_OK);
    fixture_start_acquire(inner, &pending);
    fixture_start_acquire(outer, &again);
    stand_still_until_over(outer);
    await_count(&pending.calls, 1, GENEROUS_MS, "the inner acquire");
    await_count(&again.calls, 1, GENEROUS_MS, "the second of the outer");
    assert_status(pending.result.status, QUORLOCK_ERR_LOST);
    assert_status(again.result.status, QUORLOCK_ERR_LOST);
    assert_int_equal(outer_loss.calls, 1);
    assert_true(outer_loss.order < pending.order);
    /* It never held anything that could be lost. */
    assert_int_equal(inner_loss.calls, 0);
    assert_status(quorlock_lock_release(inner, on_result, &seen), QUORLOCK_ERR_STATE);
    assert_status(fixture_release(outer, &seen), QUORLOCK_ERR_LOST);
    assert_status(quorlock_lock_release(outer, on_result, &seen), QUORLOCK_ERR_STATE);
    quorlock_lock_free(inner);
    quorlock_lock_free(outer);
    await_free("key");
}

/* The lease is over, before the callback of the loss: reentry is refused already. */
FLAVOUR_TEST(over_before_the_loss_callback, patient)
{
    struct seen_loss loss = {.calls = 0};
    struct seen seen;
    quorlock_lock *outer = unrenewed_of("me", 1000);
    quorlock_lock *inner = unrenewed_of("me", 1000);

    quorlock_lock_set_on_lost(outer, on_loss, &loss);
    assert_status(fixture_acquire(outer, &seen), QUORLOCK_OK);
    stand_still_until_over(outer);
    assert_status(quorlock_lock_acquire(inner, on_result, &seen), QUORLOCK_ERR_LOST);
    assert_int_equal(loss.calls, 0);
    assert_status(fixture_release(outer, &seen), QUORLOCK_ERR_LOST);
    assert_int_equal(loss.calls, 0);
    quorlock_lock_free(inner);
    quorlock_lock_free(outer);
    await_free("key");
}

/* The renewal that an inner acquire waits for finds the keys gone. */
FLAVOUR_TEST(lost_while_it_is_renewed, patient)
{
    struct seen_loss loss = {.calls = 0};
    struct seen seen;
    quorlock_lock *outer = unrenewed_of("me", 5000);
    quorlock_lock *inner = lock_of("me", 60000);

    quorlock_lock_set_on_lost(outer, on_loss, &loss);
    assert_status(fixture_acquire(outer, &seen), QUORLOCK_OK);
    await_holders("key", NULL, 3);
    drop_by_hand("key");
    assert_status(fixture_acquire(inner, &seen), QUORLOCK_ERR_LOST);
    assert_int_equal(loss.calls, 1);
    assert_true(loss.order < seen.order);
    assert_status(quorlock_lock_release(inner, on_result, &seen), QUORLOCK_ERR_STATE);
    assert_status(fixture_release(outer, &seen), QUORLOCK_ERR_LOST);
    assert_status(fixture_acquire(inner, &seen), QUORLOCK_OK);
    quorlock_lock_free(inner);
    quorlock_lock_free(outer);
    await_free("key");
}

/* ---- in the queue ---- */

FLAVOURS_TEST(admitted_out_of_the_queue)
{
    struct seen first, stranger, second, third, seen;
    quorlock_lock *mine[3], *yours;

    for (int i = 0; i < 3; i++) mine[i] = waiter_of("me");
    take_by_hand(3, "key", "peer");
    yours = waiter_of("you");
    fixture_start_acquire(mine[0], &first);
    fixture_start_acquire(yours, &stranger);
    fixture_start_acquire(mine[1], &second);
    fixture_start_acquire(mine[2], &third);
    run_ms(100);
    assert_status(quorlock_lock_cancel(mine[2]), QUORLOCK_OK);
    drop_by_hand("key");
    await_count(&first.calls, 1, GENEROUS_MS, "the first");
    await_count(&second.calls, 1, GENEROUS_MS, "of the same owner");
    assert_status(first.result.status, QUORLOCK_OK);
    assert_status(second.result.status, QUORLOCK_OK);
    assert_status(third.result.status, QUORLOCK_ERR_CANCELED);
    assert_string_equal(first.owner, second.owner);
    assert_int_equal(stranger.calls, 0);
    assert_status(fixture_release(mine[0], &seen), QUORLOCK_OK);
    run_ms(50);
    assert_int_equal(stranger.calls, 0);
    assert_status(fixture_release(mine[1], &seen), QUORLOCK_OK);
    await_status(&stranger, QUORLOCK_OK, "the other owner");
    for (int i = 0; i < 3; i++) quorlock_lock_free(mine[i]);
    quorlock_lock_free(yours);
    await_free("key");
}

/* The first in the queue asks the nodes, and another handle of its owner, which tries once, has the key before. */
FLAVOUR_TEST(admitted_while_it_asks, majority)
{
    struct seen waited, seen;
    quorlock_lock *waiting = waiter_of("me"), *once = lock_of("me", LONG_LEASE_MS);

    take_by_hand(3, "key", "peer");
    fixture_start_acquire(waiting, &waited);
    run_ms(1000);
    assert_int_equal(waited.calls, 0);
    drop_by_hand("key");
    assert_status(fixture_acquire(once, &seen), QUORLOCK_OK);
    await_status(&waited, QUORLOCK_OK, "of the same owner");
    assert_string_equal(waited.owner, seen.owner);
    quorlock_lock_free(once);
    assert_status(fixture_release(waiting, &seen), QUORLOCK_OK);
    await_free("key");
}

/* A waiter that is admitted this way still gets its own options. */
FLAVOUR_TEST(admitted_on_its_own_terms, majority)
{
    struct seen first, second, third;
    quorlock_lock *longer = fixture_lock(fixture.client, "key", LEASE(60000, .owner = "me", .wait_ms = NO_LIMIT));
    quorlock_lock *fenced =
        fixture_lock(fixture.client, "key", LEASE(60000, .owner = "me", .wait_ms = NO_LIMIT, .fencing = 1));
    quorlock_lock *outer =
        fixture_lock(fixture.client, "key", LEASE(5000, .owner = "me", .wait_ms = NO_LIMIT, .fencing = 0));

    fixture_start_acquire(outer, &first);
    fixture_start_acquire(longer, &second);
    fixture_start_acquire(fenced, &third);
    await_count(&first.calls, 1, GENEROUS_MS, "outer");
    await_count(&second.calls, 1, GENEROUS_MS, "inner");
    await_count(&third.calls, 1, GENEROUS_MS, "fenced");
    assert_status(first.result.status, QUORLOCK_OK);
    assert_status(second.result.status, QUORLOCK_OK);
    assert_true(second.result.valid_ms > 30000);
    assert_status(third.result.status, QUORLOCK_ERR_INVAL);
    assert_contains(third.text, "without a fencing token");
    quorlock_lock_free(outer);
    quorlock_lock_free(longer);
    quorlock_lock_free(fenced);
    await_free("key");
}

/* The renewal that two wait for is not the one they need, and max_hold_ms allows no other. */
FLAVOUR_TEST(nobody_is_admitted_after_max_hold, patient)
{
    struct seen seen, extended, pending[2];
    quorlock_lock *inner[2];
    quorlock_lock *outer = fixture_lock(
        fixture.client, "key", LEASE(5000, .owner = "me", .renew_ms = QUORLOCK_RENEW_NEVER, .max_hold_ms = 300));

    assert_status(fixture_acquire(outer, &seen), QUORLOCK_OK);
    for (int i = 0; i < 3; i++) server_freeze(SERVER(i));
    fixture_start_extend(outer, 0, &extended);
    for (int i = 0; i < 2; i++) {
        inner[i] = lock_of("me", 60000);
        fixture_start_acquire(inner[i], &pending[i]);
    }
    run_ms(400);
    for (int i = 0; i < 3; i++) server_thaw(SERVER(i));
    await_status(&extended, QUORLOCK_OK, "the renewal that began before");
    for (int i = 0; i < 2; i++) {
        await_status(&pending[i], QUORLOCK_ERR_STATE, "an inner one");
        assert_contains(pending[i].text, "max_hold_ms has ended the renewal");
    }
    assert_true(quorlock_lock_valid_ms(outer) > 0);
}

/* ---- free, cancel, close ---- */

FLAVOUR_TEST(the_outer_handle_is_freed, majority)
{
    struct seen_loss loss = {.calls = 0};
    struct seen seen, after;
    quorlock_lock *outer = lock_of("me", 4000);
    quorlock_lock *inner = lock_of("me", 4000);
    quorlock_lock *waiting = waiter_of("you");

    quorlock_lock_set_on_lost(inner, on_loss, &loss);
    for (int round = 0; round < 2; round++) {
        assert_status(fixture_acquire(outer, &seen), QUORLOCK_OK);
        assert_status(fixture_acquire(inner, &seen), QUORLOCK_OK);
        await_holders("key", NULL, 3);
        quorlock_lock_free(outer);
        outer = lock_of("me", 4000);
        assert_true(quorlock_lock_valid_ms(inner) > 0);
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
    assert_status(quorlock_lock_acquire(outer, on_result, &seen), QUORLOCK_ERR_LOST);
    /* A freed handle is released. */
    quorlock_lock_free(inner);
    assert_status(fixture_acquire(outer, &seen), QUORLOCK_OK);
    quorlock_lock_free(outer);
    quorlock_lock_free(waiting);
    await_free("key");
}

/* The extend ends with this status, and admits the other handle with a lease of its own. */
static void expect_admitted(struct seen *extended, int status, struct seen *pending)
{
    await_count(&extended->calls, 1, GENEROUS_MS, "extend");
    await_count(&pending->calls, 1, GENEROUS_MS, "inner");
    assert_status(extended->result.status, status);
    assert_status(pending->result.status, QUORLOCK_OK);
    assert_true(pending->result.valid_ms > 30000);
}

/* A handle's extend admits another handle, also when it is for less, or canceled. */
FLAVOUR_TEST(anothers_renewal, majority)
{
    struct seen seen, extended, pending;
    quorlock_lock *outer = unrenewed_of("me", 10000);
    quorlock_lock *inner = lock_of("me", 60000);

    assert_status(fixture_acquire(outer, &seen), QUORLOCK_OK);
    fixture_start_extend(outer, 0, &extended);
    fixture_start_acquire(inner, &pending);
    expect_admitted(&extended, QUORLOCK_OK, &pending);
    quorlock_lock_free(inner);
    assert_status(fixture_release(outer, &seen), QUORLOCK_OK);
    await_free("key");

    inner = lock_of("me", 60000);
    assert_status(fixture_acquire(outer, &seen), QUORLOCK_OK);
    fixture_start_extend(outer, 20000, &extended);
    fixture_start_acquire(inner, &pending);
    assert_status(quorlock_lock_cancel(outer), QUORLOCK_OK);
    expect_admitted(&extended, QUORLOCK_ERR_CANCELED, &pending);
    quorlock_lock_free(inner);
    quorlock_lock_free(outer);
    await_free("key");
}
