/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_sync_with.c - quorlock_sync_lock_with(): a function that runs while a lock is held
 */
#include <unistd.h>

#include "sync_fixture.h"

#define RESULT 7

/* What the function does with the lock, and what it found. */
struct work {
    void (*act)(quorlock_sync_lock *, struct work *);
    int calls;
    uint32_t held_on, valid_ms;
    struct quorlock_sync_result grant, inner;
    atomic_bool begun, goes_on; /* a thread's work is under way, and waits */
};

static int run_work(quorlock_sync_lock *lock, const struct quorlock_sync_result *grant, void *arg)
{
    struct work *work = arg;

    work->calls++;
    work->grant = *grant;
    work->held_on = holders("key", grant->token);
    if (work->act != NULL) work->act(lock, work);
    work->valid_ms = quorlock_sync_lock_valid_ms(lock);
    return RESULT;
}

static const struct quorlock_lock_options fenced = {
    .size = sizeof(fenced), .lease_ms = LONG_LEASE_MS, .wait_ms = QUORLOCK_TRY_ONCE, .fencing = 1};

static uint32_t nodes_with_key(void)
{
    return (uint32_t)server_has(SERVER(0), "key") + server_has(SERVER(1), "key") + server_has(SERVER(2), "key");
}

/* Of what other threads and servers do; `lacks` says what did not come. */
static void await_true(bool (*came)(quorlock_sync_lock *), quorlock_sync_lock *lock, const char *lacks)
{
    uint64_t until_us = clock_us() + GENEROUS_US;

    while (!came(lock)) {
        if (clock_us() > until_us) fail_msg("%s", lacks);
        usleep(1000);
    }
}

static bool is_free(quorlock_sync_lock *lock)
{
    return nodes_with_key() == 0;
}

static bool is_taken(quorlock_sync_lock *lock)
{
    return nodes_with_key() >= 2;
}

static bool another_waits(quorlock_sync_lock *lock)
{
    return acquires_waiting() > 0;
}

static bool is_lost(quorlock_sync_lock *lock)
{
    return quorlock_sync_lock_valid_ms(lock) == 0;
}

/* A release returns when a quorum has answered. */
static void await_released(void)
{
    await_true(is_free, NULL, "the key was not released");
}

BLOCKING_TEST(with_runs_the_function_under_the_lock)
{
    struct work work = {0};
    struct quorlock_sync_result result = {.size = sizeof(result)};
    int returned = 0;

    assert_int_equal(quorlock_sync_lock_with(sync_client, "key", &fenced, run_work, &work, &returned, &result),
                     QUORLOCK_OK);
    assert_int_equal(returned, RESULT);
    assert_int_equal(work.calls, 1);
    assert_true(work.held_on >= 2);
    assert_true(work.valid_ms > 0);
    assert_true(work.grant.fence > 0);
    assert_int_equal(result.status, QUORLOCK_OK);
    assert_contains(result.text, "released");
    await_released();
    /* The lock is free for the next one, with the defaults. */
    assert_int_equal(quorlock_sync_lock_with(sync_client, "key", NULL, run_work, &work, NULL, NULL), QUORLOCK_OK);
    assert_int_equal(work.calls, 2);
}

BLOCKING_TEST(with_does_not_run_the_function_without_the_lock)
{
    struct work work = {0};
    struct quorlock_lock_options wrong = {
        .size = sizeof(wrong), .lease_ms = LONG_LEASE_MS + 1, .wait_ms = QUORLOCK_TRY_ONCE};
    struct quorlock_sync_result result = {.size = sizeof(result)};
    quorlock_sync_lock *other = new_lock("key", LONG_LEASE_MS, 0);
    int returned = -1;

    assert_int_equal(quorlock_sync_lock_acquire(other, NULL), 0);
    assert_int_equal(quorlock_sync_lock_with(sync_client, "key", &fenced, run_work, &work, &returned, &result),
                     QUORLOCK_ERR_HELD);
    assert_int_equal(returned, -1);
    assert_int_equal(result.status, QUORLOCK_ERR_HELD);
    assert_contains(result.text, "held by");
    assert_int_equal(quorlock_sync_lock_with(sync_client, "key", &wrong, run_work, &work, NULL, &result),
                     QUORLOCK_ERR_INVAL);
    assert_int_equal(result.status, QUORLOCK_ERR_INVAL);
    assert_contains(result.text, "120001");
    assert_int_equal(quorlock_sync_lock_with(sync_client, NULL, NULL, run_work, &work, NULL, &result),
                     QUORLOCK_ERR_INVAL);
    assert_int_equal(quorlock_sync_lock_with(sync_client, "key", NULL, NULL, NULL, NULL, &result), QUORLOCK_ERR_INVAL);
    assert_int_equal(quorlock_sync_lock_with(NULL, "key", NULL, run_work, &work, NULL, &result), QUORLOCK_ERR_INVAL);
    result.size = 1;
    assert_int_equal(quorlock_sync_lock_with(sync_client, "free", NULL, run_work, &work, NULL, &result),
                     QUORLOCK_ERR_INVAL);
    assert_int_equal(work.calls, 0);
    quorlock_sync_lock_free(other);
}

/* ---- a loss ---- */

static void delete_key(quorlock_sync_lock *lock, struct work *work)
{
    for (int i = 0; i < 3; i++) server_do(SERVER(i), "DEL key");
}

static void delete_key_and_see(quorlock_sync_lock *lock, struct work *work)
{
    delete_key(lock, work);
    await_true(is_lost, lock, "the function does not find the loss");
}

BLOCKING_TEST(with_reports_a_loss_to_the_function_and_to_its_caller)
{
    const struct quorlock_lock_options renewed = {
        .size = sizeof(renewed), .lease_ms = 2000, .wait_ms = QUORLOCK_TRY_ONCE};
    struct work work = {.act = delete_key_and_see};
    struct quorlock_sync_result result = {.size = sizeof(result)};

    assert_int_equal(quorlock_sync_lock_with(sync_client, "key", &renewed, run_work, &work, NULL, &result),
                     QUORLOCK_ERR_LOST);
    assert_int_equal(work.calls, 1);
    assert_int_equal(result.status, QUORLOCK_ERR_LOST);
    assert_contains(result.text, "lost");
    await_released();
}

BLOCKING_TEST(with_reports_a_loss_that_only_the_nodes_know)
{
    struct work work = {.act = delete_key};

    assert_int_equal(quorlock_sync_lock_with(sync_client, "key", &fenced, run_work, &work, NULL, NULL),
                     QUORLOCK_ERR_LOST);
    assert_true(work.valid_ms > 0);
}

/* ---- other threads, and nested calls ---- */

static void wait_to_go_on(quorlock_sync_lock *lock, struct work *work)
{
    atomic_store(&work->begun, true);
    while (!atomic_load(&work->goes_on)) usleep(1000);
}

struct with {
    pthread_t thread;
    struct work work;
    int status;
};

static void *call_with(void *arg)
{
    struct with *with = arg;
    const struct quorlock_lock_options waits = {.size = sizeof(waits), .lease_ms = LONG_LEASE_MS};

    with->status = quorlock_sync_lock_with(sync_client, "key", &waits, run_work, &with->work, NULL, NULL);
    return NULL;
}

BLOCKING_TEST(shutdown_ends_a_with_that_waits_and_lets_one_finish_that_runs)
{
    struct with runs = {.work = {.act = wait_to_go_on}};
    struct with waits = {.work = {0}};

    assert_int_equal(pthread_create(&runs.thread, NULL, call_with, &runs), 0);
    await_true(is_taken, NULL, "the first thread does not get the lock");
    assert_int_equal(pthread_create(&waits.thread, NULL, call_with, &waits), 0);
    await_true(another_waits, NULL, "the second thread does not wait");
    assert_int_equal(quorlock_sync_client_shutdown(sync_client), 0);
    pthread_join(waits.thread, NULL);
    assert_int_equal(waits.status, QUORLOCK_ERR_CLOSED);
    assert_int_equal(waits.work.calls, 0);
    atomic_store(&runs.work.goes_on, true);
    pthread_join(runs.thread, NULL);
    assert_int_equal(runs.status, QUORLOCK_OK);
    await_released();
}

BLOCKING_TEST(close_under_a_running_with_is_a_loss)
{
    struct with runs = {.work = {.act = wait_to_go_on}};

    assert_int_equal(pthread_create(&runs.thread, NULL, call_with, &runs), 0);
    while (!atomic_load(&runs.work.begun)) usleep(1000);
    assert_int_equal(quorlock_sync_client_close(sync_client), 0);
    sync_client = NULL;
    atomic_store(&runs.work.goes_on, true);
    pthread_join(runs.thread, NULL);
    assert_int_equal(runs.status, QUORLOCK_ERR_LOST);
    assert_int_equal(runs.work.valid_ms, 0);
}

static void take_again(quorlock_sync_lock *lock, struct work *work)
{
    struct work inner = {0};
    const struct quorlock_lock_options same = {
        .size = sizeof(same), .lease_ms = LONG_LEASE_MS, .wait_ms = QUORLOCK_TRY_ONCE, .owner = "clerk 4"};

    work->inner.size = sizeof(work->inner);
    assert_int_equal(quorlock_sync_lock_with(sync_client, "key", &same, run_work, &inner, NULL, &work->inner),
                     QUORLOCK_OK);
    assert_true(quorlock_sync_lock_valid_ms(lock) > 0);
}

BLOCKING_TEST(with_of_the_same_owner_nests)
{
    struct work work = {.act = take_again};
    const struct quorlock_lock_options same = {
        .size = sizeof(same), .lease_ms = LONG_LEASE_MS, .wait_ms = QUORLOCK_TRY_ONCE, .owner = "clerk 4"};

    assert_int_equal(quorlock_sync_lock_with(sync_client, "key", &same, run_work, &work, NULL, NULL), QUORLOCK_OK);
    assert_int_equal(work.inner.status, QUORLOCK_OK);
    await_released();
}
