/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_sync.c - the sync facade: threads that share one client
 */
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sync_fixture.h"

#define THREADS  6
#define TURNS    15
#define WAITERS  8
#define BOUND_MS 1500u /* in which nodes answer on a busy machine, too */
#define HANG_MS  4000u

/* ---- one thread ---- */

BLOCKING_TEST(one_life)
{
    quorlock_sync_lock *lock = new_lock("key", LONG_LEASE_MS, 0);
    struct quorlock_sync_result result = {.size = sizeof(result)};

    assert_int_equal(quorlock_sync_lock_valid_ms(lock), 0);
    assert_int_equal(quorlock_sync_lock_release(lock, &result), QUORLOCK_ERR_STATE);
    assert_true(strlen(result.text) > 0);
    assert_int_equal(quorlock_sync_lock_acquire(lock, &result), QUORLOCK_OK);
    assert_int_equal(result.status, QUORLOCK_OK);
    assert_true(result.granted >= 2);
    assert_true(cluster_holders(&fixture.cluster, "key", result.token) >= 2);
    assert_true(quorlock_sync_lock_valid_ms(lock) > LONG_LEASE_MS / 2);
    assert_int_equal(quorlock_sync_lock_acquire(lock, NULL), QUORLOCK_ERR_STATE);
    assert_int_equal(quorlock_sync_lock_cancel(lock), QUORLOCK_ERR_STATE);
    assert_int_equal(quorlock_sync_lock_extend(lock, LONG_LEASE_MS, &result), QUORLOCK_OK);
    assert_int_equal(quorlock_sync_lock_extend(lock, LONG_LEASE_MS + 1, &result), QUORLOCK_ERR_INVAL);
    assert_int_equal(quorlock_sync_lock_release(lock, &result), QUORLOCK_OK);
    assert_int_equal(quorlock_sync_lock_valid_ms(lock), 0);
    cluster_await_free(&fixture.cluster, "key");
    quorlock_sync_lock_free(lock);
    quorlock_sync_lock_free(NULL);
}

BLOCKING_TEST(a_lock_passes_from_one_handle_to_another)
{
    quorlock_sync_lock *lock = new_lock("key", LONG_LEASE_MS, 0);
    struct quorlock_sync_result result = {.size = sizeof(result)}, adopted = result;
    quorlock_sync_lock *heir = new_lock("key", LONG_LEASE_MS, 0);

    assert_int_equal(quorlock_sync_lock_detach(lock, &result), QUORLOCK_ERR_STATE);
    assert_int_equal(quorlock_sync_lock_acquire(lock, NULL), QUORLOCK_OK);
    assert_int_equal(quorlock_sync_lock_detach(lock, NULL), QUORLOCK_ERR_INVAL);
    assert_int_equal(quorlock_sync_lock_detach(lock, &result), QUORLOCK_OK);
    assert_true(result.valid_ms > 0 && cluster_holders(&fixture.cluster, "key", result.token) >= 2);
    assert_int_equal(quorlock_sync_lock_valid_ms(lock), 0);
    assert_int_equal(quorlock_sync_lock_adopt(heir, NULL, &adopted), QUORLOCK_ERR_INVAL);
    assert_int_equal(quorlock_sync_lock_adopt(heir, result.token, &adopted), QUORLOCK_OK);
    assert_string_equal(adopted.token, result.token);
    assert_true(quorlock_sync_lock_valid_ms(heir) > 0);
    assert_int_equal(quorlock_sync_lock_release(heir, NULL), QUORLOCK_OK);
    cluster_await_free(&fixture.cluster, "key");
    quorlock_sync_lock_free(lock);
    quorlock_sync_lock_free(heir);
}

/* A result of another size than the library's, and the bytes behind it. */
BLOCKING_TEST(results_say_their_size)
{
    struct {
        struct quorlock_sync_result known;
        unsigned char newer[32];
    } result = {.known = {.size = sizeof(result)}}, untouched;
    quorlock_sync_lock *lock = new_lock("key", LONG_LEASE_MS, 0);

    assert_int_equal(quorlock_sync_lock_acquire(lock, &result.known), QUORLOCK_OK);
    assert_int_equal(result.known.size, sizeof(result));
    assert_true(strlen(result.known.token) > 0);
    assert_int_equal(quorlock_sync_lock_release(lock, &result.known), QUORLOCK_OK);
    /* An unknown size is refused, and nothing is written. */
    result.newer[31] = 1;
    memcpy(&untouched, &result, sizeof(result));
    assert_int_equal(quorlock_sync_lock_acquire(lock, &result.known), QUORLOCK_ERR_INVAL);
    assert_memory_equal(&untouched, &result, sizeof(result));
    untouched.known.size = result.known.size =
        offsetof(struct quorlock_sync_result, token) + sizeof(result.known.token) - 1;
    assert_int_equal(quorlock_sync_lock_acquire(lock, &result.known), QUORLOCK_ERR_INVAL);
    assert_memory_equal(&untouched, &result, sizeof(result));
    assert_int_equal(quorlock_sync_lock_valid_ms(lock), 0);
    /* Bytes behind the size do not matter, and stay. */
    memset(result.newer, 0xa5, sizeof(result.newer));
    result.known.size = sizeof(result.known);
    assert_int_equal(quorlock_sync_lock_acquire(lock, &result.known), QUORLOCK_OK);
    assert_int_equal(result.known.size, sizeof(result.known));
    for (size_t i = 0; i < sizeof(result.newer); i++) assert_int_equal(result.newer[i], 0xa5);
    assert_int_equal(quorlock_sync_lock_release(lock, NULL), QUORLOCK_OK);
    /* So do members that a caller of the first release does not know. */
    result.known.size = offsetof(struct quorlock_sync_result, token) + sizeof(result.known.token);
    result.known.slot = 77;
    assert_int_equal(quorlock_sync_lock_acquire(lock, &result.known), QUORLOCK_OK);
    assert_true(strlen(result.known.token) > 0);
    assert_int_equal(result.known.slot, 77);
    quorlock_sync_lock_free(lock);
}

/* The keep time of the lock is over when it is undone. */
BLOCKING_TEST(an_undo_keeps_nothing)
{
    const struct quorlock_lock_options options = {
        .size = sizeof(options), .lease_ms = LONG_LEASE_MS, .keep_ms = LONG_LEASE_MS};
    struct quorlock_sync_result result = {.size = sizeof(result)};
    quorlock_sync_lock *lock;
    const char *key = "key";

    assert_int_equal(quorlock_sync_lock_new(&lock, sync_client, &key, 1, &options, NULL), 0);
    assert_int_equal(quorlock_sync_lock_undo(lock, &result), QUORLOCK_ERR_STATE);
    assert_int_equal(quorlock_sync_lock_acquire(lock, NULL), QUORLOCK_OK);
    assert_int_equal(quorlock_sync_lock_undo(lock, &result), QUORLOCK_OK);
    assert_int_equal(result.status, QUORLOCK_OK);
    cluster_await_free(&fixture.cluster, "key");
    /* A release keeps them. */
    assert_int_equal(quorlock_sync_lock_acquire(lock, NULL), QUORLOCK_OK);
    assert_int_equal(quorlock_sync_lock_release(lock, NULL), QUORLOCK_OK);
    assert_true(cluster_holders(&fixture.cluster, "key", NULL) >= 2);
    quorlock_sync_lock_free(lock);
}

BLOCKING_TEST(tokens_are_those_of_the_grant)
{
    const struct quorlock_lock_options options = {.size = sizeof(options), .lease_ms = LONG_LEASE_MS, .fencing = 1};
    struct quorlock_sync_result result = {.size = sizeof(result)};
    char token[QUORLOCK_SYNC_TOKEN_SIZE] = "untouched";
    quorlock_sync_lock *lock;
    const char *key = "key";

    assert_int_equal(quorlock_sync_lock_new(&lock, sync_client, &key, 1, &options, NULL), 0);
    assert_int_equal(quorlock_sync_lock_token(lock, token, sizeof(token)), QUORLOCK_ERR_STATE);
    assert_true(quorlock_sync_lock_fence(lock) == 0);
    assert_int_equal(quorlock_sync_lock_acquire(lock, &result), QUORLOCK_OK);
    assert_int_equal(quorlock_sync_lock_token(lock, NULL, sizeof(token)), QUORLOCK_ERR_INVAL);
    assert_int_equal(quorlock_sync_lock_token(lock, token, strlen(result.token)), QUORLOCK_ERR_INVAL);
    assert_string_equal(token, "untouched");
    assert_int_equal(quorlock_sync_lock_token(lock, token, strlen(result.token) + 1), QUORLOCK_OK);
    assert_string_equal(token, result.token);
    assert_true(result.fence > 0 && quorlock_sync_lock_fence(lock) == result.fence);
    assert_int_equal(quorlock_sync_lock_release(lock, NULL), QUORLOCK_OK);
    assert_int_equal(quorlock_sync_lock_token(lock, token, sizeof(token)), QUORLOCK_ERR_STATE);
    assert_true(quorlock_sync_lock_fence(lock) == 0);
    quorlock_sync_lock_free(lock);
}

BLOCKING_TEST(sets_how_long_the_next_acquire_waits)
{
    const struct quorlock_lock_options options = {.size = sizeof(options), .lease_ms = LONG_LEASE_MS};
    struct quorlock_sync_result result = {.size = sizeof(result)};
    quorlock_sync_lock *holder, *lock;
    struct quorlock_error error;
    const char *key = "key";

    assert_int_equal(quorlock_sync_lock_new(&holder, sync_client, &key, 1, &options, NULL), 0);
    assert_int_equal(quorlock_sync_lock_new(&lock, sync_client, &key, 1, &options, NULL), 0);
    assert_int_equal(quorlock_sync_lock_acquire(holder, NULL), QUORLOCK_OK);
    assert_int_equal(quorlock_sync_lock_set_wait_ms(holder, 1, &error), QUORLOCK_ERR_STATE);
    assert_true(error.status == QUORLOCK_ERR_STATE && strstr(error.text, "held") != NULL);
    assert_int_equal(quorlock_sync_lock_set_wait_ms(lock, QUORLOCK_TRY_ONCE, NULL), QUORLOCK_OK);
    assert_int_equal(quorlock_sync_lock_acquire(lock, NULL), QUORLOCK_ERR_HELD);
    assert_int_equal(quorlock_sync_lock_set_wait_ms(lock, BOUND_MS, NULL), QUORLOCK_OK);
    assert_int_equal(quorlock_sync_lock_acquire(lock, &result), QUORLOCK_ERR_HELD);
    assert_true(result.elapsed_ms >= BOUND_MS);
    assert_int_equal(quorlock_sync_lock_set_wait_ms(NULL, 1, NULL), QUORLOCK_ERR_INVAL);
    quorlock_sync_lock_free(holder);
    assert_int_equal(quorlock_sync_lock_set_wait_ms(lock, 0, NULL), QUORLOCK_OK);
    assert_int_equal(quorlock_sync_lock_acquire(lock, NULL), QUORLOCK_OK);
    quorlock_sync_lock_free(lock);
}

/* The second of two permits, and so a slot that is not 0 for one of them. */
static uint32_t slots_of_two(void)
{
    const struct quorlock_lock_options options = {
        .size = sizeof(options), .lease_ms = LONG_LEASE_MS, .wait_ms = QUORLOCK_TRY_ONCE, .permits = 2};
    struct quorlock_sync_result results[2] = {{.size = sizeof(results[0])}, {.size = sizeof(results[1])}};
    quorlock_sync_lock *locks[2];
    const char *key = "permits";

    for (int i = 0; i < 2; i++) {
        assert_int_equal(quorlock_sync_lock_new(&locks[i], sync_client, &key, 1, &options, NULL), 0);
        assert_int_equal(quorlock_sync_lock_acquire(locks[i], &results[i]), QUORLOCK_OK);
    }
    for (int i = 0; i < 2; i++) quorlock_sync_lock_free(locks[i]);
    return results[0].slot + results[1].slot;
}

BLOCKING_TEST(each_member_of_a_result_comes_from_the_library)
{
    struct quorlock_lock_options options = {.size = sizeof(options), .lease_ms = LONG_LEASE_MS, .fencing = 1};
    struct quorlock_sync_result granted = {.size = sizeof(granted)}, held = granted, expired = granted;
    quorlock_sync_lock *lock, *bounded;
    const char *key = "key";

    server_kill(SERVER(2));
    assert_int_equal(quorlock_sync_lock_new(&lock, sync_client, &key, 1, &options, NULL), 0);
    options.wait_ms = BOUND_MS;
    assert_int_equal(quorlock_sync_lock_new(&bounded, sync_client, &key, 1, &options, NULL), 0);
    assert_int_equal(quorlock_sync_lock_acquire(lock, &granted), QUORLOCK_OK);
    for (int i = 0; i < 2; i++) server_do(SERVER(i), "SET key by-hand PX 60000");
    assert_int_equal(quorlock_sync_lock_release(lock, &expired), QUORLOCK_ERR_LOST);
    assert_int_not_equal(quorlock_sync_lock_acquire(bounded, &held), QUORLOCK_OK);
    const struct {
        const char *name;
        uint64_t value, least, most;
    } members[] = {
        {"granted", granted.granted, 2, 2},
        {"failed", held.failed, 1, 1},
        {"valid_ms", granted.valid_ms, 1, LONG_LEASE_MS},
        {"fence", granted.fence, 1, UINT64_MAX},
        {"rounds", held.rounds, 1, UINT64_MAX},
        {"refused", held.refused, 1, 2},
        {"elapsed_ms", held.elapsed_ms, BOUND_MS, UINT32_MAX},
        {"lost", expired.status == QUORLOCK_ERR_LOST, 1, 1},
        {"slot", slots_of_two(), 1, 1},
    };
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        if (members[i].value < members[i].least || members[i].value > members[i].most)
            fail_msg("%s is %llu", members[i].name, (unsigned long long)members[i].value);
    }
    assert_int_equal(cluster_holders(&fixture.cluster, "key", granted.token), 0);
    assert_true(strlen(granted.token) > 0);
    quorlock_sync_lock_free(lock);
    quorlock_sync_lock_free(bounded);
}

/* An inner function takes the lock of its caller; and several keys at once. */
BLOCKING_TEST(nested_and_many_keys)
{
    static const char *const keys[] = {"zebra", "ant"};
    static const char *const overlapping[] = {"ant", "bee"};
    struct quorlock_lock_options options = {
        .size = sizeof(options), .lease_ms = LONG_LEASE_MS, .wait_ms = QUORLOCK_TRY_ONCE, .owner = "main"};
    quorlock_sync_lock *outer, *inner, *overlaps, *other;
    struct quorlock_sync_result result = {.size = sizeof(result)};

    assert_int_equal(quorlock_sync_lock_new(&outer, sync_client, keys, 2, &options, NULL), 0);
    assert_int_equal(quorlock_sync_lock_new(&inner, sync_client, keys, 2, &options, NULL), 0);
    assert_int_equal(quorlock_sync_lock_new(&overlaps, sync_client, overlapping, 2, &options, NULL), 0);
    options.owner = "other";
    assert_int_equal(quorlock_sync_lock_new(&other, sync_client, keys, 2, &options, NULL), 0);
    assert_int_equal(quorlock_sync_lock_acquire(outer, &result), QUORLOCK_OK);
    assert_int_equal(quorlock_sync_lock_acquire(inner, &result), QUORLOCK_OK);
    assert_non_null(strstr(result.text, "2 holds now"));
    assert_int_equal(quorlock_sync_lock_acquire(inner, &result), QUORLOCK_OK);
    assert_true(quorlock_sync_lock_valid_ms(inner) > LONG_LEASE_MS / 2);
    assert_int_equal(quorlock_sync_lock_acquire(other, &result), QUORLOCK_ERR_HELD);
    assert_int_equal(quorlock_sync_lock_acquire(overlaps, &result), QUORLOCK_ERR_INVAL);
    assert_non_null(strstr(result.text, "\"ant\""));
    assert_int_equal(quorlock_sync_lock_release(inner, &result), QUORLOCK_OK);
    assert_int_equal(quorlock_sync_lock_release(inner, &result), QUORLOCK_OK);
    assert_int_equal(quorlock_sync_lock_release(inner, &result), QUORLOCK_ERR_STATE);
    assert_true(cluster_holders(&fixture.cluster, "zebra", NULL) >= 2 &&
                cluster_holders(&fixture.cluster, "ant", NULL) >= 2);
    assert_int_equal(quorlock_sync_lock_release(outer, &result), QUORLOCK_OK);
    cluster_await_free(&fixture.cluster, "zebra");
    cluster_await_free(&fixture.cluster, "ant");
    assert_int_equal(quorlock_sync_lock_acquire(other, &result), QUORLOCK_OK);
    quorlock_sync_lock_free(other);
    quorlock_sync_lock_free(overlaps);
    quorlock_sync_lock_free(inner);
    quorlock_sync_lock_free(outer);
}

BLOCKING_TEST(errors_of_open_and_new)
{
    struct quorlock_client_options options = {.size = sizeof(options), .nodes = fixture.nodes};
    const char *key = "quorlock:guard";
    quorlock_sync_lock *lock = NULL;
    quorlock_sync_candidate *candidate = NULL;
    quorlock_sync_client *other = NULL;
    struct quorlock_error error;

    assert_int_equal(quorlock_sync_client_new(&other, &options, &error), QUORLOCK_ERR_INVAL);
    assert_null(other);
    assert_true(strlen(error.text) > 0);
    assert_int_equal(quorlock_sync_lock_new(&lock, sync_client, &key, 1, NULL, &error), QUORLOCK_ERR_INVAL);
    assert_null(lock);
    assert_non_null(strstr(error.text, key));
    assert_int_equal(quorlock_sync_candidate_new(&candidate, sync_client, key, NULL, &error), QUORLOCK_ERR_INVAL);
    assert_null(candidate);
    assert_non_null(strstr(error.text, key));
    assert_int_equal(quorlock_sync_client_close(NULL), 0);
}

/* ---- many threads ---- */

static atomic_int inside, together, failures;

static void *take_turns(void *arg)
{
    quorlock_sync_lock *lock = arg;

    for (int i = 0; i < TURNS; i++) {
        if (quorlock_sync_lock_acquire(lock, NULL) != 0) atomic_fetch_add(&failures, 1);
        if (atomic_fetch_add(&inside, 1) != 0) atomic_fetch_add(&together, 1);
        if (quorlock_sync_lock_valid_ms(lock) == 0) atomic_fetch_add(&failures, 1);
        atomic_fetch_sub(&inside, 1);
        if (quorlock_sync_lock_release(lock, NULL) != 0) atomic_fetch_add(&failures, 1);
    }
    return NULL;
}

BLOCKING_TEST(threads_take_turns)
{
    quorlock_sync_lock *locks[THREADS];
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        locks[i] = new_lock("key", LONG_LEASE_MS, NO_LIMIT);
        assert_int_equal(pthread_create(&threads[i], NULL, take_turns, locks[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        quorlock_sync_lock_free(locks[i]);
    }
    assert_int_equal(atomic_load(&failures), 0);
    assert_int_equal(atomic_load(&together), 0);
    cluster_await_free(&fixture.cluster, "key");
}

BLOCKING_TEST(cancel_and_free_end_a_wait)
{
    quorlock_sync_lock *holder = new_lock("key", LONG_LEASE_MS, 0);
    struct waiter waiter = {0};

    assert_int_equal(quorlock_sync_lock_acquire(holder, NULL), 0);
    start_waiter(&waiter);
    assert_int_equal(quorlock_sync_lock_cancel(waiter.lock), 0);
    end_waiter(&waiter, QUORLOCK_ERR_CANCELED);
    quorlock_sync_lock_free(waiter.lock);
    start_waiter(&waiter);
    quorlock_sync_lock_free(waiter.lock);
    end_waiter(&waiter, QUORLOCK_ERR_CANCELED);
    assert_int_equal(quorlock_sync_lock_release(holder, NULL), 0);
    quorlock_sync_lock_free(holder);
    cluster_await_free(&fixture.cluster, "key");
}

/* ---- the end ---- */

static void *extend_lock(void *arg)
{
    struct waiter *waiter = arg;

    waiter->status = quorlock_sync_lock_extend(waiter->lock, LONG_LEASE_MS, NULL);
    atomic_store(&waiter->ended, true);
    return NULL;
}

/* Returns when its extend is in flight, or has ended already: no server answers it. */
static void start_extender(struct waiter *extender)
{
    uint64_t until_us = clock_us() + GENEROUS_US;

    assert_int_equal(pthread_create(&extender->thread, NULL, extend_lock, extender), 0);
    while (quorlock_sync_lock_acquire(extender->lock, NULL) != QUORLOCK_ERR_BUSY && !atomic_load(&extender->ended)) {
        if (clock_us() > until_us) fail_msg("the extend of the other thread did not begin");
    }
}

/* The answer to what was in flight comes when the handle is gone. */
BLOCKING_TEST(free_ends_an_extend)
{
    struct waiter extender = {.lock = new_lock("key", LONG_LEASE_MS, 0)};

    assert_int_equal(quorlock_sync_lock_acquire(extender.lock, NULL), 0);
    for (int i = 0; i < 3; i++) server_freeze(SERVER(i));
    start_extender(&extender);
    quorlock_sync_lock_free(extender.lock);
    assert_int_equal(pthread_join(extender.thread, NULL), 0);
    assert_true(extender.status == QUORLOCK_ERR_CANCELED || extender.status == QUORLOCK_ERR_NOQUORUM);
    for (int i = 0; i < 3; i++) server_thaw(SERVER(i));
}

/*
 * No node answers, many calls wait, and one extends: all end with CLOSED (the extend with NOQUORUM where a node
 * timeout has passed before), and close waits for no server longer than one node timeout; after three the
 * connections would be dropped.
 */
BLOCKING_TEST(close_under_callers_while_servers_hang)
{
    struct waiter waiters[WAITERS] = {{0}};
    struct waiter extender = {0};
    uint64_t begun_us;

    fixture.options.node_timeout_ms = HANG_MS;
    assert_int_equal(quorlock_sync_client_close(sync_client), 0);
    assert_int_equal(quorlock_sync_client_new(&sync_client, &fixture.options, NULL), 0);
    extender.lock = new_lock("key", LONG_LEASE_MS, NO_LIMIT);
    assert_int_equal(quorlock_sync_lock_acquire(extender.lock, NULL), 0);
    for (int i = 0; i < WAITERS; i++) start_waiter(&waiters[i]);
    for (int i = 0; i < 3; i++) server_freeze(SERVER(i));
    start_extender(&extender);
    begun_us = clock_us();
    assert_int_equal(quorlock_sync_client_close(sync_client), 0);
    sync_client = NULL;
    assert_true(clock_us() - begun_us < 2500ull * HANG_MS);
    for (int i = 0; i < WAITERS; i++) end_waiter(&waiters[i], QUORLOCK_ERR_CLOSED);
    assert_int_equal(pthread_join(extender.thread, NULL), 0);
    assert_true(extender.status == QUORLOCK_ERR_CLOSED || extender.status == QUORLOCK_ERR_NOQUORUM);
    for (int i = 0; i < 3; i++) server_thaw(SERVER(i));
    for (int i = 0; i < WAITERS; i++) quorlock_sync_lock_free(waiters[i].lock);
    quorlock_sync_lock_free(extender.lock);
}

/* Held, waiting and idle locks that were not freed: close ends the wait, and no key stays. */
BLOCKING_TEST(close_ends_everything)
{
    struct waiter waiter = {0};
    quorlock_sync_lock *holder = new_lock("key", LONG_LEASE_MS, 0);
    quorlock_sync_lock *idle = new_lock("idle", LONG_LEASE_MS, 0);

    assert_int_equal(quorlock_sync_lock_acquire(holder, NULL), 0);
    start_waiter(&waiter);
    assert_int_equal(quorlock_sync_client_close(sync_client), 0);
    end_waiter(&waiter, QUORLOCK_ERR_CLOSED);
    sync_client = NULL;
    cluster_await_free(&fixture.cluster, "key");
    quorlock_sync_lock_free(waiter.lock);
    quorlock_sync_lock_free(holder);
    quorlock_sync_lock_free(idle);
}

/* ---- statistics ---- */

/* The client's, copied in its thread. */
struct copied {
    pthread_t thread;
    uint64_t held, acquired, lost;
    size_t n_nodes;
};

static void copy_statistics(const struct quorlock_statistics *statistics, void *arg)
{
    *(struct copied *)arg = (struct copied){.thread = pthread_self(),
                                            .held = statistics->held,
                                            .acquired = statistics->acquires[0]->count,
                                            .lost = statistics->losses[QUORLOCK_LOSS_GONE],
                                            .n_nodes = statistics->n_nodes};
}

static struct copied statistics(void)
{
    struct copied copied = {0};

    assert_int_equal(quorlock_sync_client_statistics(sync_client, copy_statistics, &copied), QUORLOCK_OK);
    return copied;
}

static int losses_counted(void)
{
    return (int)statistics().lost;
}

BLOCKING_TEST(statistics_are_read_in_the_loops_thread)
{
    quorlock_sync_lock *lock = new_lock("key", LONG_LEASE_MS, 0);
    char text[65536];
    size_t length = 0;

    assert_int_equal(quorlock_sync_lock_acquire(lock, NULL), QUORLOCK_OK);
    assert_int_equal(statistics().held, 1);
    assert_int_equal(statistics().acquired, 1);
    assert_int_equal(statistics().n_nodes, 3);
    assert_int_equal(pthread_equal(statistics().thread, pthread_self()), 0);
    assert_int_equal(quorlock_sync_client_statistics(sync_client, NULL, NULL), QUORLOCK_ERR_INVAL);
    assert_int_equal(quorlock_sync_client_metrics(sync_client, NULL, text, sizeof(text), &length), QUORLOCK_OK);
    assert_int_equal(length, strlen(text));
    assert_contains(text, "\nquorlock_held 1\n");
    assert_int_equal(quorlock_sync_client_metrics(sync_client, NULL, text, sizeof(text), NULL), QUORLOCK_ERR_INVAL);
    quorlock_sync_lock_free(lock);
}

/* ---- loss ---- */

struct losses {
    atomic_int calls, reason, valid_ms, acquire_status, close_status, counted;
};

static void on_lost(quorlock_sync_lock *lock, const struct quorlock_loss *loss, void *arg)
{
    struct losses *losses = arg;

    atomic_store(&losses->reason, loss->reason);
    atomic_store(&losses->valid_ms, (int)quorlock_sync_lock_valid_ms(lock));
    /* A call that would wait for the loop is refused in the loop. */
    atomic_store(&losses->acquire_status, quorlock_sync_lock_acquire(lock, NULL));
    atomic_store(&losses->close_status, quorlock_sync_client_close(sync_client));
    atomic_store(&losses->counted, losses_counted());
    atomic_fetch_add(&losses->calls, 1);
}

BLOCKING_TEST(loss_is_told_from_the_loop)
{
    quorlock_sync_lock *lock = new_lock("key", 900, NO_LIMIT);
    struct quorlock_sync_result result = {.size = sizeof(result)};
    struct losses losses = {0};
    uint64_t until_us;

    quorlock_sync_lock_set_on_lost(lock, on_lost, &losses);
    assert_int_equal(quorlock_sync_lock_acquire(lock, NULL), 0);
    for (int i = 0; i < 3; i++) server_do(SERVER(i), "DEL key");
    until_us = clock_us() + GENEROUS_US;
    while (atomic_load(&losses.calls) == 0) {
        if (clock_us() > until_us) fail_msg("no loss callback");
        (void)quorlock_sync_lock_valid_ms(lock);
    }
    assert_int_equal(atomic_load(&losses.reason), QUORLOCK_LOSS_GONE);
    assert_int_equal(atomic_load(&losses.valid_ms), 0);
    assert_int_equal(atomic_load(&losses.acquire_status), QUORLOCK_ERR_STATE);
    assert_int_equal(atomic_load(&losses.close_status), QUORLOCK_ERR_STATE);
    assert_int_equal(atomic_load(&losses.counted), 1);
    assert_int_equal(quorlock_sync_lock_valid_ms(lock), 0);
    assert_int_equal(quorlock_sync_lock_release(lock, &result), QUORLOCK_ERR_LOST);
    assert_int_equal(atomic_load(&losses.calls), 1);
    quorlock_sync_lock_free(lock);
}

/* ---- election ---- */

static void count_leader(quorlock_observer *observer, const struct quorlock_leader *leader, void *arg)
{
    if (leader->state == QUORLOCK_LEADER_KNOWN) atomic_fetch_add((atomic_int *)arg, 1);
}

BLOCKING_TEST(candidates_stand_one_after_the_other)
{
    static atomic_int leaders;
    const struct quorlock_observer_options watching = {
        .size = sizeof(watching), .changed = count_leader, .arg = &leaders, .poll_ms = 10};
    struct stand stands_[2] = {{.candidate = new_candidate("a")}, {.candidate = new_candidate("b")}};
    quorlock_sync_observer *observer = NULL;
    uint64_t end_us = clock_us() + GENEROUS_US;
    uint64_t term = 0;

    atomic_store(&leaders, 0);
    assert_int_equal(quorlock_sync_observer_new(&observer, sync_client, "election", &watching, NULL), 0);
    assert_int_equal(quorlock_sync_candidate_resign(stands_[0].candidate), QUORLOCK_ERR_STATE);
    assert_int_equal(quorlock_sync_candidate_stand(stands_[0].candidate, &term), 0);
    assert_true(term > 0);
    assert_true(quorlock_sync_candidate_valid_ms(stands_[0].candidate) > LONG_LEASE_MS / 2);
    assert_int_equal(quorlock_sync_candidate_stand(stands_[0].candidate, NULL), 0);
    while (atomic_load(&leaders) < 1) assert_true(clock_us() < end_us);
    assert_int_equal(pthread_create(&stands_[1].thread, NULL, stands, &stands_[1]), 0);
    assert_int_equal(quorlock_sync_candidate_resign(stands_[0].candidate), 0);
    assert_int_equal(quorlock_sync_candidate_valid_ms(stands_[0].candidate), 0);
    assert_int_equal(pthread_join(stands_[1].thread, NULL), 0);
    assert_int_equal(stands_[1].status, 0);
    assert_true(stands_[1].term > term);
    quorlock_sync_observer_free(observer);
    quorlock_sync_candidate_free(stands_[0].candidate);
    quorlock_sync_candidate_free(stands_[1].candidate);
    quorlock_sync_candidate_free(NULL);
    quorlock_sync_observer_free(NULL);
    cluster_await_free(&fixture.cluster, "election");
}

static void count_deposed(quorlock_candidate *candidate, const struct quorlock_loss *loss, void *arg)
{
    (void)candidate;
    (void)loss;
    atomic_fetch_add((atomic_int *)arg, 1);
}

BLOCKING_TEST(who_stands_after_a_deposition_gets_the_next_term)
{
    static atomic_int deposed;
    const struct quorlock_candidate_options options = {
        .size = sizeof(options), .lease_ms = 900, .deposed = count_deposed, .arg = &deposed};
    struct stand again = {.candidate = NULL};
    uint64_t end_us = clock_us() + GENEROUS_US, before_us = 0, term = 0;

    atomic_store(&deposed, 0);
    assert_int_equal(quorlock_sync_candidate_new(&again.candidate, sync_client, "election", &options, NULL), 0);
    assert_int_equal(quorlock_sync_candidate_stand(again.candidate, &term), 0);
    for (int i = 0; i < 3; i++) server_do(SERVER(i), "SET election peer PX 60000");
    while (atomic_load(&deposed) == 0) assert_true(clock_us() < end_us);
    assert_int_equal(pthread_create(&again.thread, NULL, stands, &again), 0);
    /* A call that does not wait has returned by then; it would pass without. */
    before_us = clock_us() + 50000;
    while (clock_us() < before_us) (void)quorlock_sync_candidate_valid_ms(again.candidate);
    for (int i = 0; i < 3; i++) server_do(SERVER(i), "DEL election");
    assert_int_equal(pthread_join(again.thread, NULL), 0);
    assert_int_equal(again.status, 0);
    assert_true(again.term > term);
    quorlock_sync_candidate_free(again.candidate);
}

/* By a thread that resigns, and one that closes. */
BLOCKING_TEST(a_stand_that_waits_ends)
{
    struct stand waiting[3];
    quorlock_sync_candidate *leader = new_candidate("leader");
    uint64_t end_us = clock_us() + GENEROUS_US;
    int status;

    assert_int_equal(quorlock_sync_candidate_stand(leader, NULL), 0);
    for (int i = 0; i < 3; i++) {
        waiting[i] = (struct stand){.candidate = new_candidate("waits")};
        assert_int_equal(pthread_create(&waiting[i].thread, NULL, stands, &waiting[i]), 0);
    }
    /* Not before it stands. */
    while ((status = quorlock_sync_candidate_resign(waiting[0].candidate)) == QUORLOCK_ERR_STATE) continue;
    assert_int_equal(status, 0);
    assert_int_equal(pthread_join(waiting[0].thread, NULL), 0);
    assert_int_equal(waiting[0].status, QUORLOCK_ERR_CANCELED);
    while (acquires_waiting() < 2) assert_true(clock_us() < end_us);
    assert_int_equal(quorlock_sync_client_close(sync_client), 0);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(pthread_join(waiting[i].thread, NULL), 0);
        assert_int_equal(waiting[i].status, QUORLOCK_ERR_CLOSED);
    }
    cluster_await_free(&fixture.cluster, "election");
    for (int i = 0; i < 3; i++) quorlock_sync_candidate_free(waiting[i].candidate);
    quorlock_sync_candidate_free(leader);
    assert_int_equal(quorlock_sync_client_new(&sync_client, &fixture.options, NULL), 0);
}

BLOCKING_TEST(a_candidate_is_freed_under_a_stand)
{
    quorlock_sync_candidate *leader = new_candidate("leader");
    struct stand waiting = {.candidate = new_candidate("waits")};
    uint64_t end_us = clock_us() + GENEROUS_US;

    assert_int_equal(quorlock_sync_candidate_stand(leader, NULL), 0);
    assert_int_equal(pthread_create(&waiting.thread, NULL, stands, &waiting), 0);
    while (acquires_waiting() < 1) assert_true(clock_us() < end_us);
    quorlock_sync_candidate_free(waiting.candidate);
    assert_int_equal(pthread_join(waiting.thread, NULL), 0);
    assert_int_equal(waiting.status, QUORLOCK_ERR_CANCELED);
    quorlock_sync_candidate_free(leader);
}

static atomic_int elected, ended;

/* Slow, so that a call that does not wait for it is noticed. */
static void count_slowly(atomic_int *count)
{
    usleep(50000);
    atomic_fetch_add(count, 1);
}

static void on_elected(quorlock_candidate *candidate, uint64_t term, void *arg)
{
    count_slowly(&elected);
}

static void on_ended(quorlock_candidate *candidate, int status, const char *text, void *arg)
{
    count_slowly(&ended);
}

/* What the callbacks use may be freed when the calls have returned. */
BLOCKING_TEST(calls_return_behind_the_callbacks_of_a_candidate)
{
    const struct quorlock_candidate_options options = {
        .size = sizeof(options), .elected = on_elected, .ended = on_ended};
    quorlock_sync_candidate *candidate = NULL;

    atomic_store(&elected, 0);
    atomic_store(&ended, 0);
    assert_int_equal(quorlock_sync_candidate_new(&candidate, sync_client, "election", &options, NULL), 0);
    assert_int_equal(quorlock_sync_candidate_stand(candidate, NULL), 0);
    assert_int_equal(atomic_load(&elected), 1);
    assert_int_equal(quorlock_sync_candidate_resign(candidate), 0);
    assert_int_equal(atomic_load(&ended), 1);
    quorlock_sync_candidate_free(candidate);
}

static void free_it(quorlock_candidate *candidate, uint64_t term, void *arg)
{
    quorlock_sync_candidate_free(*(quorlock_sync_candidate **)arg);
}

BLOCKING_TEST(a_candidate_is_freed_in_its_callback)
{
    quorlock_sync_candidate *candidate = NULL;
    const struct quorlock_candidate_options options = {.size = sizeof(options), .elected = free_it, .arg = &candidate};

    assert_int_equal(quorlock_sync_candidate_new(&candidate, sync_client, "election", &options, NULL), 0);
    assert_int_equal(quorlock_sync_candidate_stand(candidate, NULL), QUORLOCK_ERR_CANCELED);
    cluster_await_free(&fixture.cluster, "election");
}

/* ---- signals ---- */

static atomic_int n_handled;

static void count_signal(int number)
{
    (void)number;
    atomic_fetch_add(&n_handled, 1);
}

/* The library's thread does a whole acquire, so it would have handled what it does not block. */
BLOCKING_TEST(a_signal_waits_for_a_thread_of_the_program)
{
    quorlock_sync_lock *lock = new_lock("key", LONG_LEASE_MS, 0);
    const struct sigaction counts = {.sa_handler = count_signal};
    struct sigaction before;
    sigset_t usual, blocked, pending;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    assert_int_equal(sigaction(SIGUSR2, &counts, &before), 0);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &blocked, &usual), 0);
    assert_int_equal(kill(getpid(), SIGUSR2), 0);
    assert_int_equal(quorlock_sync_lock_acquire(lock, NULL), QUORLOCK_OK);
    assert_int_equal(sigpending(&pending), 0);
    assert_int_equal(sigismember(&pending, SIGUSR2), 1);
    assert_int_equal(atomic_load(&n_handled), 0);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &usual, NULL), 0);
    assert_int_equal(atomic_load(&n_handled), 1);
    assert_int_equal(sigaction(SIGUSR2, &before, NULL), 0);
    quorlock_sync_lock_free(lock);
}

/* ---- a call that wakes late ---- */

static int gate[2]; /* the thread that a signal stopped goes on when a byte comes */

static void stop_here(int number)
{
    char byte;

    (void)number;
    while (read(gate[0], &byte, 1) < 0) continue;
}

struct late {
    pthread_t thread;
    quorlock_sync_candidate *candidate;
    quorlock_sync_lock *lock;
    atomic_int id;
    bool stopped;
    int status, canceled;
};

static void *resigns_late(void *arg)
{
    struct late *late = arg;

    atomic_store(&late->id, (int)syscall(SYS_gettid));
    late->status = quorlock_sync_candidate_resign(late->candidate);
    return NULL;
}

/* Until the thread waits, by the system's own account. */
static bool await_sleep(int id)
{
    uint64_t end_us = clock_us() + GENEROUS_US;
    char path[64], state = 'R';

    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", id);
    while (state != 'S' && clock_us() < end_us) {
        FILE *file = fopen(path, "r");

        if (file != NULL) {
            if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = 'R';
            fclose(file);
        }
    }
    return state == 'S';
}

static void *extends_late(void *arg)
{
    struct late *late = arg;

    atomic_store(&late->id, (int)syscall(SYS_gettid));
    late->status = quorlock_sync_lock_extend(late->lock, 0, NULL);
    return NULL;
}

/* In the loop's thread, which has not seen the extend. */
static void cancel_extender(const struct quorlock_statistics *statistics, void *arg)
{
    struct late *late = arg;

    (void)statistics;
    if (pthread_create(&late->thread, NULL, extends_late, late) != 0) return;
    while (atomic_load(&late->id) == 0) continue;
    if (await_sleep(atomic_load(&late->id))) late->canceled = quorlock_sync_lock_cancel(late->lock);
}

BLOCKING_TEST(an_extend_is_canceled_before_it_begins)
{
    struct late late = {.lock = new_lock("key", LONG_LEASE_MS, 0), .canceled = 1, .status = 1};

    assert_int_equal(quorlock_sync_lock_acquire(late.lock, NULL), 0);
    assert_int_equal(quorlock_sync_client_statistics(sync_client, cancel_extender, &late), 0);
    assert_int_equal(late.canceled, QUORLOCK_OK);
    assert_int_equal(pthread_join(late.thread, NULL), 0);
    assert_int_equal(late.status, QUORLOCK_ERR_CANCELED);
    assert_true(quorlock_sync_lock_valid_ms(late.lock) > 0);
    quorlock_sync_lock_free(late.lock);
}

/* In the loop's thread, so that the loop does not see the call before its thread is stopped. */
static void stop_resigner(const struct quorlock_statistics *statistics, void *arg)
{
    struct late *late = arg;

    (void)statistics;
    if (pthread_create(&late->thread, NULL, resigns_late, late) != 0) return;
    while (atomic_load(&late->id) == 0) continue;
    late->stopped = await_sleep(atomic_load(&late->id)) && pthread_kill(late->thread, SIGUSR1) == 0;
}

/* It resigned, and stands again before the call that resigned has woken: that returns all the same. */
BLOCKING_TEST(a_resign_that_wakes_late_returns)
{
    const struct sigaction stopping = {.sa_handler = stop_here};
    struct sigaction before;
    struct late late = {.candidate = new_candidate("late"), .status = 1};
    uint64_t end_us = clock_us() + GENEROUS_US;
    uint64_t first, term = 0;
    struct timespec limit;

    assert_int_equal(pipe(gate), 0);
    assert_int_equal(sigaction(SIGUSR1, &stopping, &before), 0);
    assert_int_equal(quorlock_sync_candidate_stand(late.candidate, &first), 0);
    assert_int_equal(quorlock_sync_client_statistics(sync_client, stop_resigner, &late), 0);
    assert_true(late.stopped);
    while (quorlock_sync_candidate_stand(late.candidate, &term) != 0 || term == first) assert_true(clock_us() < end_us);
    assert_int_equal(write(gate[1], "", 1), 1);
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += GENEROUS_US / 1000000;
    if (pthread_timedjoin_np(late.thread, NULL, &limit) != 0) fail_msg("the resign waits for the end of another stand");
    assert_int_equal(late.status, 0);
    assert_true(quorlock_sync_candidate_valid_ms(late.candidate) > 0);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    close(gate[0]);
    close(gate[1]);
    quorlock_sync_candidate_free(late.candidate);
}

static void *closes_late(void *arg)
{
    struct late *late = arg;

    atomic_store(&late->id, (int)syscall(SYS_gettid));
    late->status = quorlock_sync_client_close(sync_client);
    return NULL;
}

/* While the first one waits for an answer to the release. */
BLOCKING_TEST(a_second_close_is_refused)
{
    struct late first = {.status = 1};
    quorlock_sync_lock *lock;

    fixture.options.node_timeout_ms = HANG_MS;
    assert_int_equal(quorlock_sync_client_close(sync_client), 0);
    assert_int_equal(quorlock_sync_client_new(&sync_client, &fixture.options, NULL), 0);
    lock = new_lock("key", LONG_LEASE_MS, NO_LIMIT);
    assert_int_equal(quorlock_sync_lock_acquire(lock, NULL), 0);
    for (int i = 0; i < 3; i++) server_freeze(SERVER(i));
    assert_int_equal(pthread_create(&first.thread, NULL, closes_late, &first), 0);
    while (atomic_load(&first.id) == 0) continue;
    assert_true(await_sleep(atomic_load(&first.id)));
    assert_int_equal(quorlock_sync_client_close(sync_client), QUORLOCK_ERR_CLOSED);
    assert_int_equal(pthread_join(first.thread, NULL), 0);
    assert_int_equal(first.status, 0);
    sync_client = NULL;
    for (int i = 0; i < 3; i++) server_thaw(SERVER(i));
    quorlock_sync_lock_free(lock);
}
