/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_sync_start.c - acquires and releases that no thread waits for
 */
#include "sync_fixture.h"

#define ENDS_MAX 8

/* What callbacks of the loop's thread said. */
struct ended {
    pthread_t thread;
    atomic_int calls, status;
    size_t size;
    char token[QUORLOCK_SYNC_TOKEN_SIZE];
    quorlock_sync_lock *frees; /* in the callback */
};

static void on_end(const struct quorlock_sync_result *result, void *arg)
{
    struct ended *ended = arg;

    ended->thread = pthread_self();
    ended->size = result->size;
    memcpy(ended->token, result->token, sizeof(ended->token));
    quorlock_sync_lock_free(ended->frees);
    atomic_store(&ended->status, result->status);
    atomic_fetch_add(&ended->calls, 1);
}

static void await_end(struct ended *ended, int status)
{
    uint64_t until_us = clock_us() + GENEROUS_US;

    while (atomic_load(&ended->calls) == 0) {
        if (clock_us() > until_us) fail_msg("the callback did not run");
        sched_yield();
    }
    if (atomic_load(&ended->status) != status)
        fail_msg("%s, not %s", quorlock_status_name(atomic_load(&ended->status)), quorlock_status_name(status));
    assert_int_equal(atomic_load(&ended->calls), 1);
}

BLOCKING_TEST(a_started_acquire_and_release_end_in_the_loops_thread)
{
    quorlock_sync_lock *lock = new_lock("key", LONG_LEASE_MS, 0);
    struct ended acquired = {0}, again = {0}, released = {0};

    assert_int_equal(quorlock_sync_lock_start_acquire(lock, on_end, &acquired), 0);
    await_end(&acquired, QUORLOCK_OK);
    assert_int_equal(pthread_equal(acquired.thread, pthread_self()), 0);
    assert_int_equal(acquired.size, sizeof(struct quorlock_sync_result));
    assert_true(cluster_holders(&fixture.cluster, "key", acquired.token) >= 2);
    /* An error of the operation is its result. */
    assert_int_equal(quorlock_sync_lock_start_acquire(lock, on_end, &again), 0);
    await_end(&again, QUORLOCK_ERR_STATE);
    assert_int_equal(quorlock_sync_lock_start_release(lock, on_end, &released), 0);
    await_end(&released, QUORLOCK_OK);
    cluster_await_free(&fixture.cluster, "key");
    assert_int_equal(quorlock_sync_lock_start_acquire(lock, NULL, NULL), QUORLOCK_ERR_INVAL);
    assert_int_equal(quorlock_sync_lock_start_acquire(NULL, on_end, &again), QUORLOCK_ERR_INVAL);
    assert_int_equal(quorlock_sync_lock_start_release(NULL, on_end, &again), QUORLOCK_ERR_INVAL);
    quorlock_sync_lock_free(lock);
}

/* ---- their ends before a verdict ---- */

static int cancel(quorlock_sync_lock *lock)
{
    return quorlock_sync_lock_cancel(lock);
}

static int free_it(quorlock_sync_lock *lock)
{
    quorlock_sync_lock_free(lock);
    return 0;
}

static int shut_down(quorlock_sync_lock *lock)
{
    return quorlock_sync_client_shutdown(sync_client);
}

static int close_client(quorlock_sync_lock *lock)
{
    int status = quorlock_sync_client_close(sync_client);

    sync_client = NULL;
    return status;
}

BLOCKING_TEST(a_started_acquire_that_waits_ends_once)
{
    static const struct {
        int (*end)(quorlock_sync_lock *);
        int status;
    } rows[] = {{cancel, QUORLOCK_ERR_CANCELED},
                {free_it, QUORLOCK_ERR_CANCELED},
                {shut_down, QUORLOCK_ERR_CLOSED},
                {close_client, QUORLOCK_ERR_CLOSED}};
    quorlock_sync_lock *holder = new_lock("key", LONG_LEASE_MS, 0), *locks[LENGTH(rows)];
    struct ended ended[LENGTH(rows)] = {0};

    assert_int_equal(quorlock_sync_lock_acquire(holder, NULL), 0);
    for (size_t i = 0; i < LENGTH(rows); i++) locks[i] = new_lock("key", LONG_LEASE_MS, NO_LIMIT);
    for (size_t i = 0; i < LENGTH(rows); i++) {
        /* What the shutdown ended is not begun anew. */
        assert_int_equal(quorlock_sync_lock_start_acquire(locks[i], on_end, &ended[i]), 0);
        assert_int_equal(rows[i].end(locks[i]), 0);
        await_end(&ended[i], rows[i].status);
    }
    assert_int_equal(quorlock_sync_lock_start_acquire(holder, on_end, &ended[0]), QUORLOCK_ERR_CLOSED);
    for (size_t i = 0; i < LENGTH(rows); i++) {
        if (rows[i].end != free_it) quorlock_sync_lock_free(locks[i]);
        assert_int_equal(atomic_load(&ended[i].calls), 1);
    }
    quorlock_sync_lock_free(holder);
}

/* ---- in the loop's thread, where what was started stands in the queue yet ---- */

struct inside {
    quorlock_sync_lock *canceled, *freed, *frees, *other;
    struct ended ends[ENDS_MAX];
    int statuses[ENDS_MAX];
};

static void start_and_end(const struct quorlock_statistics *statistics, void *arg)
{
    struct inside *inside = arg;
    size_t i = 0;

    (void)statistics;
    inside->statuses[i++] = quorlock_sync_lock_start_acquire(inside->canceled, on_end, &inside->ends[0]);
    inside->statuses[i++] = quorlock_sync_lock_cancel(inside->canceled);
    inside->statuses[i++] = quorlock_sync_lock_start_acquire(inside->freed, on_end, &inside->ends[1]);
    inside->statuses[i++] = quorlock_sync_lock_start_release(inside->freed, on_end, &inside->ends[2]);
    quorlock_sync_lock_free(inside->freed);
    /* The first of these frees the lock of the second, which has left the queue by then. */
    inside->ends[3].frees = inside->other;
    inside->statuses[i++] = quorlock_sync_lock_start_release(inside->frees, on_end, &inside->ends[3]);
    inside->statuses[i++] = quorlock_sync_lock_start_acquire(inside->other, on_end, &inside->ends[4]);
}

BLOCKING_TEST(what_was_started_is_canceled_and_freed_before_it_begins)
{
    struct inside inside = {.canceled = new_lock("canceled", LONG_LEASE_MS, 0),
                            .freed = new_lock("freed", LONG_LEASE_MS, 0),
                            .frees = new_lock("frees", LONG_LEASE_MS, 0),
                            .other = new_lock("other", LONG_LEASE_MS, 0)};
    static const int wanted[] = {QUORLOCK_ERR_CANCELED, QUORLOCK_ERR_CANCELED, QUORLOCK_ERR_CANCELED,
                                 QUORLOCK_ERR_STATE, QUORLOCK_ERR_CANCELED};

    assert_int_equal(quorlock_sync_client_statistics(sync_client, start_and_end, &inside), 0);
    for (size_t i = 0; i < LENGTH(wanted); i++) await_end(&inside.ends[i], wanted[i]);
    for (size_t i = 0; i < ENDS_MAX; i++) assert_int_equal(inside.statuses[i], 0);
    assert_int_equal(quorlock_sync_lock_acquire(inside.canceled, NULL), 0);
    quorlock_sync_lock_free(inside.canceled);
    quorlock_sync_lock_free(inside.frees);
}

/* ---- acquires that are waited for in parts ---- */

#define PART_MS 5u

BLOCKING_TEST(a_wait_in_parts_goes_on)
{
    quorlock_sync_lock *holder = new_lock("key", LONG_LEASE_MS, 0), *lock = new_lock("key", LONG_LEASE_MS, NO_LIMIT);
    struct quorlock_sync_result result = {.size = sizeof(result)}, other = result;
    int status;

    assert_int_equal(quorlock_sync_lock_acquire_for(lock, PART_MS, NULL), QUORLOCK_ERR_INVAL);
    assert_int_equal(quorlock_sync_lock_acquire(holder, NULL), QUORLOCK_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(quorlock_sync_lock_acquire_for(lock, PART_MS, &result), QUORLOCK_SYNC_WAITS);
        assert_int_equal((int)acquires_waiting(), 1);
    }
    assert_int_equal(quorlock_sync_lock_acquire_for(lock, PART_MS, &other), QUORLOCK_ERR_BUSY);
    assert_int_equal(quorlock_sync_lock_acquire(lock, NULL), QUORLOCK_ERR_BUSY);
    assert_int_equal(quorlock_sync_lock_release(holder, NULL), QUORLOCK_OK);
    do status = quorlock_sync_lock_acquire_for(lock, PART_MS, &result);
    while (status == QUORLOCK_SYNC_WAITS);
    assert_int_equal(status, QUORLOCK_OK);
    assert_true(cluster_holders(&fixture.cluster, "key", result.token) >= 2);
    /* The next call begins anew. */
    assert_int_equal(quorlock_sync_lock_acquire_for(lock, UINT32_MAX, &other), QUORLOCK_ERR_STATE);
    quorlock_sync_lock_free(holder);
    quorlock_sync_lock_free(lock);
}

BLOCKING_TEST(a_wait_in_parts_is_canceled_closed_and_left)
{
    quorlock_sync_lock *holder = new_lock("key", LONG_LEASE_MS, 0), *locks[3];
    struct quorlock_sync_result results[LENGTH(locks)] = {0};

    assert_int_equal(quorlock_sync_lock_acquire(holder, NULL), QUORLOCK_OK);
    for (size_t i = 0; i < LENGTH(locks); i++) {
        locks[i] = new_lock("key", LONG_LEASE_MS, NO_LIMIT);
        results[i].size = sizeof(results[i]);
        assert_int_equal(quorlock_sync_lock_acquire_for(locks[i], PART_MS, &results[i]), QUORLOCK_SYNC_WAITS);
    }
    assert_int_equal(quorlock_sync_lock_cancel(locks[0]), 0);
    assert_int_equal(quorlock_sync_lock_acquire_for(locks[0], UINT32_MAX, &results[0]), QUORLOCK_ERR_CANCELED);
    quorlock_sync_lock_free(locks[1]);
    assert_int_equal((int)acquires_waiting(), 1);
    assert_int_equal(quorlock_sync_client_close(sync_client), 0);
    sync_client = NULL;
    assert_int_equal(quorlock_sync_lock_acquire_for(locks[2], UINT32_MAX, &results[2]), QUORLOCK_ERR_CLOSED);
    assert_int_equal(results[2].status, QUORLOCK_ERR_CLOSED);
    quorlock_sync_lock_free(locks[0]);
    quorlock_sync_lock_free(locks[2]);
    quorlock_sync_lock_free(holder);
}
