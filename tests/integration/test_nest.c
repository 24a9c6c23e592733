/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nest.c - one owner's holds of the same keys nest: both policies, both dialects
 *
 * Also run under valgrind.
 */
#include "kit.h"

#include <unistd.h>

struct flavour {
    int policy, dialect;
};

static struct flavour majority = {QUORLOCK_MAJORITY, QUORLOCK_DIALECT_PLAIN};
static struct flavour majority_redisson = {QUORLOCK_MAJORITY, QUORLOCK_DIALECT_REDISSON};
static struct flavour all = {QUORLOCK_ALL, QUORLOCK_DIALECT_PLAIN};
static struct flavour all_redisson = {QUORLOCK_ALL, QUORLOCK_DIALECT_REDISSON};

static void begin(void **state)
{
    const struct flavour *flavour = *state;
    struct quorlock_client_options client_options = kit_options();

    client_options.policy = flavour->policy;
    client_options.dialect = flavour->dialect;
    kit_client(&client_options, 3);
}

static struct quorlock_options owned(const char *owner, uint32_t lease_ms)
{
    struct quorlock_options options = kit_lease(lease_ms);

    options.owner = owner;
    return options;
}

static quorlock *lock_of(const char *owner, uint32_t lease_ms)
{
    struct quorlock_options options = owned(owner, lease_ms);

    return kit_lock(kit.client, "key", &options);
}

static quorlock *waiter_of(const char *owner)
{
    struct quorlock_options options = owned(owner, LONG_LEASE_MS);

    options.wait_ms = QUORLOCK_WAIT_FOREVER;
    return kit_lock(kit.client, "key", &options);
}

/* Held for one lease, which nobody renews but who is asked to. */
static quorlock *unrenewed_of(const char *owner, uint32_t lease_ms)
{
    struct quorlock_options options = owned(owner, lease_ms);

    options.renew_ms = QUORLOCK_RENEW_NEVER;
    return kit_lock(kit.client, "key", &options);
}

static long long calls(void)
{
    long long sum = 0;

    for (int i = 0; i < 3; i++) sum += server_lock_calls(&kit.cluster.servers[i]);
    return sum;
}

static int64_t least_pttl(void)
{
    int64_t least_ms = INT64_MAX;

    for (int i = 0; i < 3; i++) {
        int64_t left_ms = server_pttl(&kit.cluster.servers[i], "key");

        if (left_ms < least_ms) least_ms = left_ms;
    }
    return least_ms;
}

static bool valid_below(void *arg)
{
    return quorlock_valid_ms(*(quorlock **)arg) < 1000;
}

/* ---- counts ---- */

static void one_handle_twice(void **state)
{
    char owner[TEXT_SIZE];
    struct seen seen;
    long long before;
    quorlock *lock;

    begin(state);
    lock = lock_of("me", LONG_LEASE_MS);
    assert_status(kit_acquire(lock, &seen), QUORLOCK_OK);
    await_holders("key", NULL, 3);
    snprintf(owner, sizeof(owner), "%s", seen.owner);
    before = calls();
    for (int holds = 2; holds <= 4; holds++) {
        char text[64];

        assert_status(kit_acquire(lock, &seen), QUORLOCK_OK);
        assert_string_equal(seen.owner, owner);
        assert_true(seen.result.valid_ms > 0);
        assert_int_equal(seen.result.n_votes, 3);
        snprintf(text, sizeof(text), "%d holds now", holds);
        assert_contains(seen.text, text);
    }
    for (int holds = 3; holds >= 1; holds--) {
        assert_status(kit_release(lock, &seen), QUORLOCK_OK);
        assert_int_equal(seen.result.expired, 0);
        assert_contains(seen.text, "one hold of \"key\" given back");
        assert_true(quorlock_valid_ms(lock) > 0);
        assert_string_equal(quorlock_owner(lock), owner);
    }
    /* No server heard of any of that. */
    assert_int_equal(calls(), before);
    assert_int_equal(cluster_holders(&kit.cluster, "key", NULL), 3);
    assert_status(kit_release(lock, &seen), QUORLOCK_OK);
    assert_int_equal(quorlock_valid_ms(lock), 0);
    await_free("key");
    /* More than was acquired. */
    assert_status(quorlock_release(lock, on_result, &seen), QUORLOCK_STATE);
    assert_contains(quorlock_client_error(kit.client), "there is no grant to release");
    quorlock_free(lock);
}

/* Whichever is the last to release. */
static void two_handles_of_one_owner(void **state)
{
    struct seen seen;

    begin(state);
    for (int first = 0; first < 2; first++) {
        quorlock *locks[2] = {lock_of("me", LONG_LEASE_MS), lock_of("me", LONG_LEASE_MS)};
        char owner[TEXT_SIZE];
        long long before;

        assert_status(kit_acquire(locks[0], &seen), QUORLOCK_OK);
        snprintf(owner, sizeof(owner), "%s", seen.owner);
        await_holders("key", NULL, 3);
        before = calls();
        assert_status(kit_acquire(locks[1], &seen), QUORLOCK_OK);
        assert_string_equal(seen.owner, owner);
        assert_true(quorlock_valid_ms(locks[0]) > 0);
        assert_true(quorlock_valid_ms(locks[1]) > 0);
        assert_status(kit_release(locks[first], &seen), QUORLOCK_OK);
        assert_int_equal(quorlock_valid_ms(locks[first]), 0);
        assert_null(quorlock_owner(locks[first]));
        assert_status(quorlock_release(locks[first], on_result, &seen), QUORLOCK_STATE);
        assert_true(quorlock_valid_ms(locks[1 - first]) > 0);
        assert_int_equal(calls(), before);
        assert_int_equal(cluster_holders(&kit.cluster, "key", NULL), 3);
        /* In again, and out. */
        assert_status(kit_acquire(locks[first], &seen), QUORLOCK_OK);
        assert_string_equal(seen.owner, owner);
        assert_status(kit_release(locks[first], &seen), QUORLOCK_OK);
        assert_status(kit_release(locks[1 - first], &seen), QUORLOCK_OK);
        assert_int_equal(seen.result.granted, 3 - seen.result.failed - seen.result.refused -
                                                  (seen.votes[0].outcome == QUORLOCK_VOTE_PENDING) -
                                                  (seen.votes[1].outcome == QUORLOCK_VOTE_PENDING) -
                                                  (seen.votes[2].outcome == QUORLOCK_VOTE_PENDING));
        await_free("key");
        quorlock_free(locks[0]);
        quorlock_free(locks[1]);
    }
}

static void different_owners_exclude_each_other(void **state)
{
    struct seen seen, waited, nobody_waited;
    quorlock *mine, *yours, *nobodys, *waiting, *nobody_waits;

    begin(state);
    mine = lock_of("me", LONG_LEASE_MS);
    yours = lock_of("you", LONG_LEASE_MS);
    nobodys = lock_of(NULL, LONG_LEASE_MS);
    waiting = waiter_of("you");
    nobody_waits = waiter_of(NULL);
    assert_status(kit_acquire(mine, &seen), QUORLOCK_OK);
    assert_status(kit_acquire(yours, &seen), QUORLOCK_HELD);
    assert_status(kit_acquire(nobodys, &seen), QUORLOCK_HELD);
    kit_start_acquire(waiting, &waited);
    kit_start_acquire(nobody_waits, &nobody_waited);
    run_ms(50);
    assert_int_equal(waited.calls, 0);
    assert_status(kit_release(mine, &seen), QUORLOCK_OK);
    await_count(&waited.calls, 1, GENEROUS_MS, "the other owner");
    assert_status(waited.result.status, QUORLOCK_OK);
    assert_status(kit_acquire(mine, &seen), QUORLOCK_HELD);
    /* Who has no name does not nest, not even with himself. */
    assert_status(kit_release(waiting, &seen), QUORLOCK_OK);
    await_count(&nobody_waited.calls, 1, GENEROUS_MS, "nobody's");
    assert_status(nobody_waited.result.status, QUORLOCK_OK);
    assert_status(kit_acquire(nobodys, &seen), QUORLOCK_HELD);
    assert_status(quorlock_acquire(nobody_waits, on_result, &seen), QUORLOCK_STATE);
    assert_status(kit_release(nobody_waits, &seen), QUORLOCK_OK);
    await_free("key");
    quorlock_free(mine);
    quorlock_free(yours);
    quorlock_free(nobodys);
    quorlock_free(waiting);
    quorlock_free(nobody_waits);
}

/* ---- validity ---- */

static void renewed_first_where_little_is_left(void **state)
{
    struct seen seen;
    long long before;
    quorlock *outer, *inner;

    begin(state);
    outer = unrenewed_of("me", 4000);
    inner = unrenewed_of("me", 4000);
    assert_status(kit_acquire(outer, &seen), QUORLOCK_OK);
    await_holders("key", NULL, 3);
    before = calls();
    assert_status(kit_acquire(inner, &seen), QUORLOCK_OK);
    assert_int_equal(calls(), before);
    assert_status(kit_release(inner, &seen), QUORLOCK_OK);
    await(valid_below, &outer, GENEROUS_MS, "less than a third");
    assert_true(quorlock_valid_ms(outer) > 0);
    assert_status(kit_acquire(inner, &seen), QUORLOCK_OK);
    assert_true(calls() > before);
    assert_true(seen.result.valid_ms > 2000);
    assert_true(quorlock_valid_ms(outer) > 2000);
    assert_true(least_pttl() > 2000);
    assert_status(kit_release(outer, &seen), QUORLOCK_OK);
    assert_status(kit_release(inner, &seen), QUORLOCK_OK);
    await_free("key");
    quorlock_free(outer);
    quorlock_free(inner);
}

static void a_longer_lease_is_asked_for(void **state)
{
    struct seen seen;
    quorlock *outer, *longer, *shorter;

    begin(state);
    outer = lock_of("me", 10000);
    longer = lock_of("me", 60000);
    shorter = lock_of("me", 2000);
    assert_status(kit_acquire(outer, &seen), QUORLOCK_OK);
    assert_true(quorlock_valid_ms(outer) < 10000);
    assert_status(kit_acquire(longer, &seen), QUORLOCK_OK);
    assert_true(seen.result.valid_ms > 30000);
    assert_true(quorlock_valid_ms(outer) > 30000);
    assert_status(kit_acquire(shorter, &seen), QUORLOCK_OK);
    assert_true(seen.result.valid_ms > 30000);
    assert_true(least_pttl() > 30000);
    assert_status(kit_release(longer, &seen), QUORLOCK_OK);
    assert_status(kit_release(outer, &seen), QUORLOCK_OK);
    assert_int_equal(cluster_holders(&kit.cluster, "key", NULL), 3);
    assert_status(kit_release(shorter, &seen), QUORLOCK_OK);
    await_free("key");
    quorlock_free(outer);
    quorlock_free(longer);
    quorlock_free(shorter);
}

static bool valid_below_3s(void *arg)
{
    return quorlock_valid_ms(*(quorlock **)arg) < 3000;
}

static void as_much_validity_as_is_asked_for(void **state)
{
    struct quorlock_options options = owned("me", 4000);
    struct seen seen;
    quorlock *outer, *inner;

    begin(state);
    outer = unrenewed_of("me", 4000);
    options.min_valid_ms = 3000;
    inner = kit_lock(kit.client, "key", &options);
    assert_status(kit_acquire(outer, &seen), QUORLOCK_OK);
    await(valid_below_3s, &outer, GENEROUS_MS, "less than it wants");
    assert_true(quorlock_valid_ms(outer) > 1500);
    assert_status(kit_acquire(inner, &seen), QUORLOCK_OK);
    assert_true(seen.result.valid_ms >= 3000);
    quorlock_free(inner);
    quorlock_free(outer);
    await_free("key");
}

static void a_renewal_that_fails_is_told(void **state)
{
    struct seen seen;
    quorlock *outer, *inner;

    begin(state);
    outer = unrenewed_of("me", 4000);
    inner = unrenewed_of("me", 4000);
    assert_status(kit_acquire(outer, &seen), QUORLOCK_OK);
    await_holders("key", NULL, 3);
    await(valid_below, &outer, GENEROUS_MS, "less than a third");
    for (int i = 0; i < 2; i++) server_kill(&kit.cluster.servers[i]);
    assert_status(kit_acquire(inner, &seen), QUORLOCK_NOQUORUM);
    assert_contains(seen.text, "renewing it first reached no quorum");
    assert_int_equal(quorlock_valid_ms(inner), 0);
    /* What is left is the outer one's as before. */
    assert_true(quorlock_valid_ms(outer) > 0);
    quorlock_free(inner);
    quorlock_free(outer);
    for (int i = 0; i < 2; i++) server_start(&kit.cluster.servers[i]);
}

static void the_wait_bound_holds_for_a_renewal_too(void **state)
{
    struct quorlock_options options = owned("me", 10000);
    struct seen seen;
    quorlock *outer, *inner;

    begin(state);
    outer = unrenewed_of("me", 5000);
    options.wait_ms = 200;
    inner = kit_lock(kit.client, "key", &options);
    assert_status(kit_acquire(outer, &seen), QUORLOCK_OK);
    await_holders("key", NULL, 3);
    for (int i = 0; i < 2; i++) server_freeze(&kit.cluster.servers[i]);
    assert_status(kit_acquire(inner, &seen), QUORLOCK_TIMEDOUT);
    assert_contains(seen.text, "renewing it first took too long");
    assert_true(seen.result.elapsed_ms >= 200);
    /* Its node timeout is a half second. */
    assert_true(seen.result.elapsed_ms < 450);
    assert_true(quorlock_valid_ms(outer) > 0);
    for (int i = 0; i < 2; i++) server_thaw(&kit.cluster.servers[i]);
    quorlock_free(inner);
    quorlock_free(outer);
    await_free("key");
}

/* ---- loss ---- */

static void delete_by_hand(void)
{
    for (int i = 0; i < 3; i++) server_do(&kit.cluster.servers[i], "DEL key");
}

static void a_loss_is_everybodys(void **state)
{
    struct seen_loss losses[3] = {{.calls = 0}};
    struct seen seen;
    quorlock *locks[3], *later;

    begin(state);
    for (int i = 0; i < 3; i++) {
        locks[i] = lock_of("me", 1500);
        quorlock_on_lost(locks[i], on_loss, &losses[i]);
        assert_status(kit_acquire(locks[i], &seen), QUORLOCK_OK);
    }
    later = lock_of("me", 1500);
    assert_status(kit_acquire(locks[1], &seen), QUORLOCK_OK);
    await_holders("key", NULL, 3);
    delete_by_hand();
    for (int i = 0; i < 3; i++) await_count(&losses[i].calls, 1, GENEROUS_MS, "loss");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(losses[i].valid_ms, 0);
        assert_int_equal(losses[i].loss.reason, QUORLOCK_LOST_GONE);
        assert_int_equal(quorlock_valid_ms(locks[i]), 0);
        assert_status(quorlock_acquire(locks[i], on_result, &seen), QUORLOCK_LOST);
    }
    assert_status(quorlock_acquire(later, on_result, &seen), QUORLOCK_LOST);
    assert_contains(quorlock_client_error(kit.client), "its owner has not released all that was lost");
    /* Somebody else may take it. */
    for (int i = 0; i < 3; i++) {
        for (int holds = i == 1 ? 2 : 1; holds > 0; holds--) {
            assert_status(quorlock_acquire(later, on_result, &seen), QUORLOCK_LOST);
            assert_status(kit_release(locks[i], &seen), QUORLOCK_OK);
            assert_int_equal(seen.result.expired, 1);
        }
        assert_status(quorlock_release(locks[i], on_result, &seen), QUORLOCK_STATE);
    }
    assert_status(kit_acquire(later, &seen), QUORLOCK_OK);
    assert_status(kit_acquire(locks[2], &seen), QUORLOCK_OK);
    assert_status(kit_release(later, &seen), QUORLOCK_OK);
    assert_status(kit_release(locks[2], &seen), QUORLOCK_OK);
    await_free("key");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(losses[i].calls, 1);
        quorlock_free(locks[i]);
    }
    quorlock_free(later);
}

static void stand_still_until_over(const quorlock *lock)
{
    uint64_t until_us = clock_us() + GENEROUS_MS * 1000ull;

    while (quorlock_valid_ms(lock) > 0 && clock_us() < until_us) usleep(5000);
}

/* Granted by the hold that the owner has; but before that is told the lease is over. */
static void lost_before_it_was_told(void **state)
{
    struct seen_loss outer_loss = {.calls = 0}, inner_loss = {.calls = 0};
    struct seen seen, pending, again;
    quorlock *outer, *inner;

    begin(state);
    outer = unrenewed_of("me", 1000);
    inner = unrenewed_of("me", 1000);
    quorlock_on_lost(outer, on_loss, &outer_loss);
    quorlock_on_lost(inner, on_loss, &inner_loss);
    assert_status(kit_acquire(outer, &seen), QUORLOCK_OK);
    kit_start_acquire(inner, &pending);
    kit_start_acquire(outer, &again);
    stand_still_until_over(outer);
    await_count(&pending.calls, 1, GENEROUS_MS, "the inner acquire");
    await_count(&again.calls, 1, GENEROUS_MS, "the second of the outer");
    assert_status(pending.result.status, QUORLOCK_LOST);
    assert_status(again.result.status, QUORLOCK_LOST);
    assert_int_equal(outer_loss.calls, 1);
    assert_true(outer_loss.order < pending.order);
    /* It never held anything that could be lost. */
    assert_int_equal(inner_loss.calls, 0);
    assert_status(quorlock_release(inner, on_result, &seen), QUORLOCK_STATE);
    assert_status(kit_release(outer, &seen), QUORLOCK_OK);
    assert_status(quorlock_release(outer, on_result, &seen), QUORLOCK_STATE);
    quorlock_free(inner);
    quorlock_free(outer);
    await_free("key");
}

/* It is over, and nobody was told yet: nothing can be entered any more. */
static void over_and_not_told_yet(void **state)
{
    struct seen_loss loss = {.calls = 0};
    struct seen seen;
    quorlock *outer, *inner;

    begin(state);
    outer = unrenewed_of("me", 1000);
    inner = unrenewed_of("me", 1000);
    quorlock_on_lost(outer, on_loss, &loss);
    assert_status(kit_acquire(outer, &seen), QUORLOCK_OK);
    stand_still_until_over(outer);
    assert_status(quorlock_acquire(inner, on_result, &seen), QUORLOCK_LOST);
    assert_int_equal(loss.calls, 0);
    assert_status(kit_release(outer, &seen), QUORLOCK_OK);
    assert_int_equal(seen.result.expired, 1);
    assert_int_equal(loss.calls, 0);
    quorlock_free(inner);
    quorlock_free(outer);
    await_free("key");
}

/* The renewal that an inner acquire waits for finds the keys gone. */
static void lost_while_it_is_renewed(void **state)
{
    struct seen_loss loss = {.calls = 0};
    struct seen seen;
    quorlock *outer, *inner;

    begin(state);
    outer = unrenewed_of("me", 5000);
    inner = lock_of("me", 60000);
    quorlock_on_lost(outer, on_loss, &loss);
    assert_status(kit_acquire(outer, &seen), QUORLOCK_OK);
    await_holders("key", NULL, 3);
    delete_by_hand();
    assert_status(kit_acquire(inner, &seen), QUORLOCK_LOST);
    assert_int_equal(loss.calls, 1);
    assert_true(loss.order < seen.order);
    assert_status(quorlock_release(inner, on_result, &seen), QUORLOCK_STATE);
    assert_status(kit_release(outer, &seen), QUORLOCK_OK);
    assert_status(kit_acquire(inner, &seen), QUORLOCK_OK);
    quorlock_free(inner);
    quorlock_free(outer);
    await_free("key");
}

/* ---- in line ---- */

static void admitted_out_of_the_line(void **state)
{
    struct seen first, stranger, second, third, seen;
    quorlock *mine[3], *yours;

    begin(state);
    for (int i = 0; i < 3; i++) {
        mine[i] = waiter_of("me");
        server_do(&kit.cluster.servers[i], "SET key by-hand PX 60000");
    }
    if (((struct flavour *)*state)->dialect == QUORLOCK_DIALECT_REDISSON) {
        for (int i = 0; i < 3; i++) {
            server_do(&kit.cluster.servers[i], "DEL key");
            server_do(&kit.cluster.servers[i], "HSET key somebody:1 1");
        }
    }
    yours = waiter_of("you");
    kit_start_acquire(mine[0], &first);
    kit_start_acquire(yours, &stranger);
    kit_start_acquire(mine[1], &second);
    kit_start_acquire(mine[2], &third);
    run_ms(100);
    assert_status(quorlock_cancel(mine[2]), QUORLOCK_OK);
    for (int i = 0; i < 3; i++) server_do(&kit.cluster.servers[i], "DEL key");
    await_count(&first.calls, 1, GENEROUS_MS, "the first");
    await_count(&second.calls, 1, GENEROUS_MS, "of the same owner");
    assert_status(first.result.status, QUORLOCK_OK);
    assert_status(second.result.status, QUORLOCK_OK);
    assert_status(third.result.status, QUORLOCK_CANCELED);
    assert_string_equal(first.owner, second.owner);
    assert_int_equal(stranger.calls, 0);
    assert_status(kit_release(mine[0], &seen), QUORLOCK_OK);
    run_ms(50);
    assert_int_equal(stranger.calls, 0);
    assert_status(kit_release(mine[1], &seen), QUORLOCK_OK);
    await_count(&stranger.calls, 1, GENEROUS_MS, "the other owner");
    assert_status(stranger.result.status, QUORLOCK_OK);
    for (int i = 0; i < 3; i++) quorlock_free(mine[i]);
    quorlock_free(yours);
    await_free("key");
}

/* Two of one owner at once, of which one does not stand in line: whoever is granted first admits the other. */
static void tries_at_the_same_time(void **state)
{
    struct seen seen[2];

    begin(state);
    for (int round = 0; round < 4; round++) {
        quorlock *locks[2] = {round % 2 == 0 ? waiter_of("me") : lock_of("me", LONG_LEASE_MS),
                              round < 2 ? lock_of("me", LONG_LEASE_MS) : waiter_of("me")};

        for (int i = 0; i < 2; i++) kit_start_acquire(locks[i], &seen[i]);
        for (int i = 0; i < 2; i++) {
            await_count(&seen[i].calls, 1, GENEROUS_MS, "acquire");
            assert_status(seen[i].result.status, QUORLOCK_OK);
        }
        assert_string_equal(seen[0].owner, seen[1].owner);
        quorlock_free(locks[0]);
        assert_true(quorlock_valid_ms(locks[1]) > 0);
        quorlock_free(locks[1]);
        await_free("key");
    }
}

/* Who is let in this way is asked for the same terms as everybody. */
static void admitted_on_its_own_terms(void **state)
{
    struct quorlock_options options = owned("me", 60000);
    struct seen first, second, third;
    quorlock *outer, *longer, *fenced;

    begin(state);
    options.wait_ms = QUORLOCK_WAIT_FOREVER;
    longer = kit_lock(kit.client, "key", &options);
    options.fencing = 1;
    fenced = kit_lock(kit.client, "key", &options);
    options.lease_ms = 5000;
    options.fencing = 0;
    outer = kit_lock(kit.client, "key", &options);
    kit_start_acquire(outer, &first);
    kit_start_acquire(longer, &second);
    kit_start_acquire(fenced, &third);
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

/* ---- terms ---- */

static void one_fencing_token(void **state)
{
    struct quorlock_options options = owned("me", LONG_LEASE_MS);
    struct seen seen;
    uint64_t fence;
    quorlock *outer, *inner, *unfenced;

    begin(state);
    unfenced = kit_lock(kit.client, "key", &options);
    options.fencing = 1;
    outer = kit_lock(kit.client, "key", &options);
    inner = kit_lock(kit.client, "key", &options);
    assert_status(kit_acquire(outer, &seen), QUORLOCK_OK);
    fence = seen.result.fence;
    assert_true(fence > 0);
    assert_status(kit_acquire(inner, &seen), QUORLOCK_OK);
    assert_true(seen.result.fence == fence && quorlock_fence(inner) == fence);
    assert_status(kit_acquire(unfenced, &seen), QUORLOCK_OK);
    assert_status(kit_release(outer, &seen), QUORLOCK_OK);
    assert_status(kit_release(inner, &seen), QUORLOCK_OK);
    assert_status(kit_release(unfenced, &seen), QUORLOCK_OK);
    await_free("key");
    /* What was taken without has none to give. */
    assert_status(kit_acquire(unfenced, &seen), QUORLOCK_OK);
    assert_status(quorlock_acquire(inner, on_result, &seen), QUORLOCK_INVAL);
    assert_contains(quorlock_client_error(kit.client), "without a fencing token");
    assert_status(kit_release(unfenced, &seen), QUORLOCK_OK);
    await_free("key");
    quorlock_free(outer);
    quorlock_free(inner);
    quorlock_free(unfenced);
}

static void bootstrap(uint32_t max_lease_ms)
{
    struct quorlock_client_options client_options = kit_options();
    struct seen_report report = {.calls = 0};
    quorlock_client *client;

    client_options.max_lease_ms = max_lease_ms;
    client = kit_new_client(&client_options);
    assert_status(quorlock_bootstrap(client, NULL, on_report, &report), QUORLOCK_OK);
    await_count(&report.calls, 1, GENEROUS_MS, "bootstrap");
    assert_status(report.status, QUORLOCK_OK);
    kit_close(client);
}

/* A restarted node stays away for the max lease of its guard: no hold may be made longer than that. */
static void no_lease_longer_than_the_guards(void **state)
{
    struct quorlock_client_options client_options = kit_options();
    struct seen seen;
    quorlock *outer, *longer;

    (void)state;
    bootstrap(6000);
    client_options.guard = QUORLOCK_GUARD_CONNECTION;
    client_options.max_lease_ms = 0;
    kit_client(&client_options, 3);
    outer = lock_of("me", 5000);
    longer = lock_of("me", 7000);
    assert_status(kit_acquire(outer, &seen), QUORLOCK_OK);
    assert_status(quorlock_acquire(longer, on_result, &seen), QUORLOCK_INVAL);
    assert_contains(quorlock_client_error(kit.client), "the guard of a node allows no lease as long");
    assert_true(least_pttl() <= 5000);
    quorlock_free(longer);
    quorlock_free(outer);
    await_free("key");
}

/* ---- free, cancel, close ---- */

static void the_outer_handle_is_freed(void **state)
{
    struct seen_loss loss = {.calls = 0};
    struct seen seen, after;
    quorlock *outer, *inner, *waiting;

    begin(state);
    outer = lock_of("me", 1500);
    inner = lock_of("me", 1500);
    waiting = waiter_of("you");
    quorlock_on_lost(inner, on_loss, &loss);
    for (int round = 0; round < 2; round++) {
        assert_status(kit_acquire(outer, &seen), QUORLOCK_OK);
        assert_status(kit_acquire(inner, &seen), QUORLOCK_OK);
        await_holders("key", NULL, 3);
        quorlock_free(outer);
        outer = lock_of("me", 1500);
        /* Longer than the lease: it is renewed as before. */
        run_ms(2000);
        assert_true(quorlock_valid_ms(inner) > 0);
        assert_int_equal(cluster_holders(&kit.cluster, "key", NULL), 3);
        assert_int_equal(loss.calls, 0);
        if (round == 1) break;
        kit_start_acquire(waiting, &after);
        run_ms(20);
        assert_status(kit_release(inner, &seen), QUORLOCK_OK);
        await_count(&after.calls, 1, GENEROUS_MS, "the next owner");
        assert_status(after.result.status, QUORLOCK_OK);
        assert_status(kit_release(waiting, &seen), QUORLOCK_OK);
        await_free("key");
    }
    delete_by_hand();
    await_count(&loss.calls, 1, GENEROUS_MS, "loss");
    assert_status(quorlock_acquire(outer, on_result, &seen), QUORLOCK_LOST);
    /* Freed is released. */
    quorlock_free(inner);
    assert_status(kit_acquire(outer, &seen), QUORLOCK_OK);
    quorlock_free(outer);
    quorlock_free(waiting);
    await_free("key");
}

static void freed_one_after_the_other(void **state)
{
    struct seen seen, pending, released;
    quorlock *outer, *inner;

    begin(state);
    outer = lock_of("me", LONG_LEASE_MS);
    inner = lock_of("me", LONG_LEASE_MS);
    assert_status(kit_acquire(outer, &seen), QUORLOCK_OK);
    assert_status(kit_acquire(inner, &seen), QUORLOCK_OK);
    await_holders("key", NULL, 3);
    quorlock_free(inner);
    assert_true(quorlock_valid_ms(outer) > 0);
    run_ms(20);
    assert_int_equal(cluster_holders(&kit.cluster, "key", NULL), 3);
    /* One that was admitted and not told yet, and one whose release was not told yet. */
    inner = lock_of("me", LONG_LEASE_MS);
    kit_start_acquire(inner, &pending);
    quorlock_free(inner);
    kit_start_acquire(outer, &seen);
    await_count(&pending.calls, 1, GENEROUS_MS, "freed before it was told");
    assert_status(pending.result.status, QUORLOCK_CANCELED);
    await_count(&seen.calls, 1, GENEROUS_MS, "outer");
    kit_start_release(outer, &released);
    quorlock_free(outer);
    await_count(&released.calls, 1, GENEROUS_MS, "freed before its release was told");
    assert_status(released.result.status, QUORLOCK_OK);
    await_free("key");
}

static void canceled_in_each_state(void **state)
{
    struct seen seen, pending, released;
    quorlock *outer, *inner, *longer;

    begin(state);
    outer = unrenewed_of("me", 10000);
    inner = lock_of("me", 60000);
    longer = lock_of("me", LONG_LEASE_MS);
    assert_status(kit_acquire(outer, &seen), QUORLOCK_OK);
    await_holders("key", NULL, 3);
    /* Waiting for a renewal. */
    kit_start_acquire(inner, &pending);
    assert_status(quorlock_cancel(inner), QUORLOCK_OK);
    await_count(&pending.calls, 1, GENEROUS_MS, "canceled entrant");
    assert_status(pending.result.status, QUORLOCK_CANCELED);
    assert_status(quorlock_release(inner, on_result, &seen), QUORLOCK_STATE);
    assert_true(quorlock_valid_ms(outer) > 0);
    /* And the release right behind is not refused for a renewal that nobody wants any more. */
    run_ms(50);
    kit_start_acquire(longer, &pending);
    assert_status(quorlock_cancel(longer), QUORLOCK_OK);
    kit_start_release(outer, &released);
    await_count(&released.calls, 1, GENEROUS_MS, "release");
    assert_status(released.result.status, QUORLOCK_OK);
    await_count(&pending.calls, 1, GENEROUS_MS, "canceled entrant");
    assert_int_equal(quorlock_valid_ms(outer), 0);
    await_free("key");
    /* Granted, and not told yet. */
    assert_status(kit_acquire(inner, &seen), QUORLOCK_OK);
    kit_start_acquire(outer, &pending);
    assert_status(quorlock_cancel(outer), QUORLOCK_OK);
    await_count(&pending.calls, 1, GENEROUS_MS, "canceled before it was told");
    assert_status(pending.result.status, QUORLOCK_CANCELED);
    assert_status(quorlock_release(outer, on_result, &seen), QUORLOCK_STATE);
    assert_int_equal(cluster_holders(&kit.cluster, "key", NULL), 3);
    assert_status(kit_release(inner, &seen), QUORLOCK_OK);
    await_free("key");
    quorlock_free(outer);
    quorlock_free(inner);
    quorlock_free(longer);
}

/* The last hold goes while another handle waits to enter. */
static void released_while_another_enters(void **state)
{
    struct seen seen, pending;
    quorlock *outer, *inner;

    begin(state);
    outer = unrenewed_of("me", 10000);
    inner = lock_of("me", 60000);
    assert_status(kit_acquire(outer, &seen), QUORLOCK_OK);
    await_holders("key", NULL, 3);
    kit_start_acquire(inner, &pending);
    assert_status(kit_release(outer, &seen), QUORLOCK_OK);
    await_count(&pending.calls, 1, GENEROUS_MS, "inner");
    assert_status(pending.result.status, QUORLOCK_OK);
    assert_true(quorlock_valid_ms(inner) > 30000);
    assert_int_equal(cluster_holders(&kit.cluster, "key", NULL), 3);
    assert_status(kit_release(inner, &seen), QUORLOCK_OK);
    await_free("key");
    /* And where that one does not come in after all, nothing stays. */
    assert_status(kit_acquire(outer, &seen), QUORLOCK_OK);
    kit_start_acquire(inner, &pending);
    assert_int_equal(quorlock_release(outer, NULL, NULL), 0);
    assert_status(quorlock_cancel(inner), QUORLOCK_OK);
    await_free("key");
    await_count(&pending.calls, 1, GENEROUS_MS, "canceled entrant");
    quorlock_free(outer);
    quorlock_free(inner);
}

/* A renewal that a handle asked for is another's way in, also when it is for less, or canceled. */
static void anothers_renewal(void **state)
{
    struct seen seen, extended, pending;
    quorlock *outer, *inner;

    begin(state);
    outer = unrenewed_of("me", 10000);
    inner = lock_of("me", 60000);
    assert_status(kit_acquire(outer, &seen), QUORLOCK_OK);
    kit_start_extend(outer, 0, &extended);
    kit_start_acquire(inner, &pending);
    await_count(&extended.calls, 1, GENEROUS_MS, "extend");
    await_count(&pending.calls, 1, GENEROUS_MS, "inner");
    assert_status(extended.result.status, QUORLOCK_OK);
    assert_status(pending.result.status, QUORLOCK_OK);
    assert_true(pending.result.valid_ms > 30000);
    quorlock_free(inner);
    assert_status(kit_release(outer, &seen), QUORLOCK_OK);
    await_free("key");

    inner = lock_of("me", 60000);
    assert_status(kit_acquire(outer, &seen), QUORLOCK_OK);
    kit_start_extend(outer, 20000, &extended);
    kit_start_acquire(inner, &pending);
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

static void closed_in_each_state(void **state)
{
    struct seen seen, told, entering, extended, released;
    quorlock *locks[4];

    for (int round = 0; round < 3; round++) {
        begin(state);
        for (int i = 0; i < 4; i++) locks[i] = i == 1 ? lock_of("me", 60000) : unrenewed_of("me", 10000);
        assert_status(kit_acquire(locks[0], &seen), QUORLOCK_OK);
        assert_status(kit_acquire(locks[0], &seen), QUORLOCK_OK);
        assert_status(kit_acquire(locks[3], &seen), QUORLOCK_OK);
        await_holders("key", NULL, 3);
        kit_start_release(locks[3], &released);
        kit_start_acquire(locks[2], &told);
        if (round != 0) kit_start_extend(locks[0], 0, &extended);
        kit_start_acquire(locks[1], &entering);
        if (round == 2) quorlock_free(locks[0]);
        kit_close(kit.client);
        kit.client = NULL;
        assert_int_equal(released.calls, 1);
        assert_int_equal(told.calls, 1);
        assert_int_equal(entering.calls, 1);
        assert_status(released.result.status, QUORLOCK_OK);
        assert_status(told.result.status, QUORLOCK_CLOSED);
        assert_status(entering.result.status, QUORLOCK_CLOSED);
        if (round == 1) assert_status(extended.result.status, QUORLOCK_CLOSED);
        if (round == 2) assert_status(extended.result.status, QUORLOCK_CANCELED);
        assert_int_equal(cluster_holders(&kit.cluster, "key", NULL), 0);
    }
}

#define FLAVOURED(test, flavour)                                                                               \
    {                                                                                                          \
#test " (" #flavour ")", test, kit_setup, kit_teardown, &(flavour)                                     \
    }
#define EVERY_FLAVOUR(test)                                                                                    \
    FLAVOURED(test, majority), FLAVOURED(test, majority_redisson), FLAVOURED(test, all),                       \
        FLAVOURED(test, all_redisson)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EVERY_FLAVOUR(one_handle_twice),
        EVERY_FLAVOUR(two_handles_of_one_owner),
        EVERY_FLAVOUR(different_owners_exclude_each_other),
        EVERY_FLAVOUR(renewed_first_where_little_is_left),
        EVERY_FLAVOUR(a_longer_lease_is_asked_for),
        EVERY_FLAVOUR(a_loss_is_everybodys),
        EVERY_FLAVOUR(admitted_out_of_the_line),
        EVERY_FLAVOUR(one_fencing_token),
        FLAVOURED(as_much_validity_as_is_asked_for, majority),
        FLAVOURED(a_renewal_that_fails_is_told, majority),
        FLAVOURED(the_wait_bound_holds_for_a_renewal_too, majority),
        FLAVOURED(lost_before_it_was_told, majority),
        FLAVOURED(over_and_not_told_yet, majority),
        FLAVOURED(lost_while_it_is_renewed, majority),
        FLAVOURED(tries_at_the_same_time, majority),
        FLAVOURED(admitted_on_its_own_terms, majority),
        FLAVOURED(no_lease_longer_than_the_guards, majority),
        FLAVOURED(the_outer_handle_is_freed, majority),
        FLAVOURED(freed_one_after_the_other, majority),
        FLAVOURED(canceled_in_each_state, majority),
        FLAVOURED(released_while_another_enters, majority),
        FLAVOURED(anothers_renewal, majority),
        FLAVOURED(closed_in_each_state, majority),
    };

    return cmocka_run_group_tests_name("nest", tests, NULL, NULL);
}
