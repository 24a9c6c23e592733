/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hand_off.c - the head of the queue that gives up hands off its place at the nodes to the next
 */
#include "fixture.h"

#define BOUND_MS 3000
#define WAITERS  100
#define APART_MS 3 /* they come one after the other */

/* Commands that all servers have executed so far, also inside scripts. */
static long long commands(void)
{
    static const char script[] = "local n = 0 "
                                 "for calls in string.gmatch(redis.call('INFO', 'commandstats'), 'calls=(%d+)') do "
                                 "n = n + calls end return n";
    long long n = 0;

    for (uint32_t i = 0; i < fixture.cluster.n; i++) {
        n += server_ask_number(SERVER(i), "EVAL %s 0", script);
    }
    return n;
}

/* A peer has the key, and the head of the queue has seen it. */
static void begin_queue(quorlock_lock **locks, struct seen *seen, uint32_t n, uint32_t wait_ms)
{
    take_by_hand(3, "key", "peer");
    for (uint32_t i = 0; i < n; i++) {
        locks[i] = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = wait_ms));
        fixture_start_acquire(locks[i], &seen[i]);
        run_ms(APART_MS);
    }
    run_ms(300);
    for (uint32_t i = 0; i < n; i++) assert_int_equal(seen[i].calls, 0);
}

static void expect_handed_over(quorlock_lock *lock, struct seen *seen)
{
    drop_by_hand("key");
    await_count(&seen->calls, 1, GENEROUS_MS, "the successor's grant");
    assert_status(seen->result.status, QUORLOCK_OK);
    await_holders("key", seen->owner, 3);
    assert_status(fixture_release(lock, seen), QUORLOCK_OK);
    await_free("key");
}

/* One after the other ends with HELD and the holder that the first one saw, and no command is sent. */
CLIENT_TEST(timeouts_in_the_queue_cost_no_commands)
{
    static struct seen seen[WAITERS];
    quorlock_lock *locks[WAITERS];
    long long before;

    fixture_needs_real_servers();
    begin_queue(locks, seen, WAITERS, BOUND_MS);
    before = commands();
    for (int i = 0; i < WAITERS; i++) {
        await_status(&seen[i], QUORLOCK_ERR_HELD, "the wait bound");
        assert_true(seen[i].result.elapsed_ms >= BOUND_MS);
        assert_contains(seen[i].text, "peer");
        quorlock_lock_free(locks[i]);
    }
    /* A poll now and then, and the release of the last; three commands for each waiter would be 300. */
    assert_true(commands() - before < 100);
    assert_int_equal(holders("key", "peer"), 3);
    drop_by_hand("key");
}

/* From the head on, canceled or freed: the last one continues the attempt of the first. */
CLIENT_TEST(a_canceled_waiter_hands_off_its_place)
{
    static struct seen seen[WAITERS];
    quorlock_lock *locks[WAITERS];
    long long before;

    fixture_needs_real_servers();
    begin_queue(locks, seen, WAITERS, NO_LIMIT);
    before = commands();
    for (int i = 0; i < WAITERS - 1; i++) {
        if (i % 2 == 0) {
            assert_int_equal(quorlock_lock_cancel(locks[i]), 0);
        } else {
            quorlock_lock_free(locks[i]);
        }
        await_status(&seen[i], QUORLOCK_ERR_CANCELED, "the end");
        if (i % 2 == 0) quorlock_lock_free(locks[i]);
    }
    assert_true(commands() - before < 100);
    assert_int_equal(seen[WAITERS - 1].calls, 0);
    expect_handed_over(locks[WAITERS - 1], &seen[WAITERS - 1]);
}

/* ---- options in which the successor differs, one in each ---- */

enum unlike {
    UNLIKE_LEASE,
    UNLIKE_FENCING,
    UNLIKE_FENCE_TTL,
    UNLIKE_RENEWAL,
    UNLIKE_MIN_VALID,
    UNLIKE_MAX_HOLD,
    UNLIKE_MARGIN,
    UNLIKE_NO_OWNER,
    UNLIKE_OWNER,
    UNLIKE_LABEL,
    UNLIKE_KEEP,
    UNLIKES
};

#define SOON_MS         200
#define DAY_MS          86400000ll
#define SHORT_LEASE_MS  2000u
#define LARGE_MARGIN_MS 1900u

struct wishes {
    quorlock_lock *first, *successor;
    struct seen first_seen, seen;
    struct seen_loss loss;
    char key[16];
};

/* The first one's value is such that the successor's fails if it takes over the attempt. */
static void wish(enum unlike unlike, struct quorlock_lock_options *first, struct quorlock_lock_options *successor)
{
    *first = *successor = *LEASE(LONG_LEASE_MS, .wait_ms = NO_LIMIT);
    first->renew_ms = successor->renew_ms = SOON_MS;
    switch (unlike) {
    case UNLIKE_LEASE: successor->lease_ms = LONG_LEASE_MS / 2; break;
    case UNLIKE_FENCING: successor->fencing = 1; break;
    case UNLIKE_FENCE_TTL:
        first->fencing = successor->fencing = 1;
        first->fence_ttl_ms = 2 * LONG_LEASE_MS;
        break;
    case UNLIKE_RENEWAL: first->renew_ms = QUORLOCK_RENEW_NEVER; break;
    case UNLIKE_MIN_VALID:
        /* All but 10 us of what drift leaves: no server answers so soon. */
        first->lease_ms = successor->lease_ms = 10099;
        first->min_valid_ms = 9996;
        break;
    case UNLIKE_MAX_HOLD: first->max_hold_ms = 1; break;
    case UNLIKE_MARGIN:
        first->lease_ms = successor->lease_ms = SHORT_LEASE_MS;
        first->renew_ms = successor->renew_ms = QUORLOCK_RENEW_NEVER;
        first->lost_margin_ms = LARGE_MARGIN_MS;
        break;
    case UNLIKE_NO_OWNER: first->owner = "me"; break;
    case UNLIKE_OWNER: successor->owner = "me"; break;
    case UNLIKE_LABEL:
        first->label = "one";
        successor->label = "two";
        break;
    case UNLIKE_KEEP: successor->keep_ms = LONG_LEASE_MS; break;
    case UNLIKES: break;
    }
}

static bool was_renewed(void *arg)
{
    const struct wishes *wishes = arg;
    char line[64];

    snprintf(line, sizeof(line), "renewed \"%s\"", wishes->key);
    return strstr(fixture.log, line) != NULL;
}

/* Another handle of the owner "me" tries: it reenters where the successor is of that owner. */
static void expect_nesting(const struct wishes *wishes, int status)
{
    struct seen seen;
    quorlock_lock *third = fixture_lock(fixture.client, wishes->key, LEASE(LONG_LEASE_MS, .owner = "me"));

    assert_status(fixture_acquire(third, &seen), status);
    quorlock_lock_free(third);
}

static bool has_short_lease(void *arg)
{
    const struct wishes *wishes = arg;
    bool has = true;

    for (int i = 0; i < 3; i++) has &= server_pttl(SERVER(i), wishes->key) <= LONG_LEASE_MS / 2;
    return has;
}

static void expect_fence_ttl(const struct wishes *wishes)
{
    char fence[64];
    int long_ones = 0;

    snprintf(fence, sizeof(fence), "quorlock:fence:%.15s", wishes->key);
    for (int i = 0; i < 3; i++) long_ones += server_pttl(SERVER(i), fence) > DAY_MS;
    assert_true(long_ones >= 2);
}

static void expect_kept(const struct wishes *wishes)
{
    char kept[sizeof("quorlock:kept:") + sizeof(wishes->seen.owner)];
    struct seen seen;

    snprintf(kept, sizeof(kept), "quorlock:kept:%s", wishes->seen.owner);
    assert_status(fixture_release(wishes->successor, &seen), QUORLOCK_OK);
    assert_in_range(holders(wishes->key, kept), 2, 3); /* the third answer may come after the result */
    drop_by_hand(wishes->key);
}

static void expect_own_wish(enum unlike unlike, struct wishes *wishes)
{
    switch (unlike) {
    case UNLIKE_LEASE: await(has_short_lease, wishes, GENEROUS_MS, "the lease of the successor"); break;
    case UNLIKE_FENCING: assert_true(wishes->seen.result.fence > 0); break;
    case UNLIKE_FENCE_TTL: expect_fence_ttl(wishes); break;
    case UNLIKE_RENEWAL:
    case UNLIKE_MAX_HOLD: await(was_renewed, wishes, GENEROUS_MS, "a renewal"); break;
    case UNLIKE_MARGIN:
        await_count(&wishes->loss.calls, 1, GENEROUS_MS, "loss");
        assert_true(wishes->loss.loss.remaining_ms < SHORT_LEASE_MS / 2);
        break;
    case UNLIKE_NO_OWNER: expect_nesting(wishes, QUORLOCK_ERR_HELD); break;
    case UNLIKE_OWNER: expect_nesting(wishes, QUORLOCK_OK); break;
    case UNLIKE_LABEL:
        assert_int_equal(strncmp(wishes->seen.owner, "two:", 4), 0);
        await_holders(wishes->key, wishes->seen.owner, 3);
        break;
    case UNLIKE_KEEP: expect_kept(wishes); break;
    case UNLIKE_MIN_VALID: /* that it was granted */
    case UNLIKES: break;
    }
}

static void ask_for_both(enum unlike unlike, struct wishes *wishes)
{
    struct quorlock_lock_options first, successor;

    wish(unlike, &first, &successor);
    wishes->first = fixture_lock(fixture.client, wishes->key, &first);
    wishes->successor = fixture_lock(fixture.client, wishes->key, &successor);
    quorlock_lock_set_on_lost(wishes->successor, on_loss, &wishes->loss);
    fixture_start_acquire(wishes->first, &wishes->first_seen);
    fixture_start_acquire(wishes->successor, &wishes->seen);
}

static void expect_its_own(enum unlike unlike, struct wishes *wishes)
{
    await_count(&wishes->seen.calls, 1, GENEROUS_MS, wishes->key);
    assert_status(wishes->first_seen.result.status, QUORLOCK_ERR_CANCELED);
    assert_status(wishes->seen.result.status, QUORLOCK_OK);
    expect_own_wish(unlike, wishes);
    quorlock_lock_free(wishes->first);
    quorlock_lock_free(wishes->successor);
    await_free(wishes->key);
}

/* The first one waits for a peer's keys; or, midway, for the answers of frozen nodes. */
static void each_unlike_wish_is_its_own(bool midway)
{
    static struct wishes all[UNLIKES];

    memset(all, 0, sizeof(all));
    /* Otherwise it follows from lease, renewal and margin, and would differ too. */
    fixture.options.node_timeout_ms = 1500;
    fixture_client(3);
    for (int i = 0; i < UNLIKES; i++) {
        snprintf(all[i].key, sizeof(all[i].key), "key%d", i);
        for (int k = 0; k < 3 && !midway; k++) server_do(SERVER(k), "SET %s peer PX 60000", all[i].key);
    }
    for (int k = 0; k < 3 && midway; k++) server_freeze(SERVER(k));
    for (int i = 0; i < UNLIKES; i++) ask_for_both((enum unlike)i, &all[i]);
    run_ms(midway ? 20 : 300);
    for (int i = 0; i < UNLIKES; i++) assert_int_equal(quorlock_lock_cancel(all[i].first), 0);
    for (int k = 0; k < 3 && midway; k++) server_thaw(SERVER(k));
    for (int i = 0; i < UNLIKES; i++) {
        for (int k = 0; k < 3 && !midway; k++) server_do(SERVER(k), "DEL %s", all[i].key);
        expect_its_own((enum unlike)i, &all[i]);
    }
}

SERVERS_TEST(each_unlike_wish_of_a_successor_is_its_own)
{
    each_unlike_wish_is_its_own(false);
}

SERVERS_TEST(each_unlike_wish_is_its_own_in_the_midst_of_an_attempt)
{
    each_unlike_wish_is_its_own(true);
}
