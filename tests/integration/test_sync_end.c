/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_sync_end.c - the end of sync clients, handles that outlive them, and children of fork()
 */
#include <sys/wait.h>
#include <unistd.h>

#include "sync_fixture.h"

#define WORKERS       4
#define READS_OF_EACH 20
#define SHORT_MS      400u
#define CHILD_S       20u

static void join(pthread_t thread)
{
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void close_now(void)
{
    assert_int_equal(quorlock_sync_client_close(sync_client), 0);
    sync_client = NULL;
}

/* ---- NULL ---- */

struct null_row {
    const char *name;
    int status, wanted;
};

TEST(null_is_harmless)
{
    struct quorlock_sync_result result = {.size = sizeof(result)};
    struct quorlock_error error;
    const char *key = "key";
    quorlock_sync_lock *lock = NULL;
    quorlock_sync_candidate *candidate = NULL;
    quorlock_sync_observer *observer = NULL;
    const struct null_row rows[] = {
        {"client_close", quorlock_client_close(NULL, NULL, NULL), QUORLOCK_ERR_INVAL},
        {"cancel", quorlock_lock_cancel(NULL), QUORLOCK_ERR_INVAL},
        {"resign", quorlock_candidate_resign(NULL), QUORLOCK_ERR_INVAL},
        {"sync_close", quorlock_sync_client_close(NULL), QUORLOCK_OK},
        {"sync_shutdown", quorlock_sync_client_shutdown(NULL), QUORLOCK_OK},
        {"sync_cancel", quorlock_sync_lock_cancel(NULL), QUORLOCK_ERR_INVAL},
        {"sync_acquire", quorlock_sync_lock_acquire(NULL, &result), QUORLOCK_ERR_INVAL},
        {"sync_acquire_for", quorlock_sync_lock_acquire_for(NULL, 1, &result), QUORLOCK_ERR_INVAL},
        {"sync_extend", quorlock_sync_lock_extend(NULL, 0, &result), QUORLOCK_ERR_INVAL},
        {"sync_release", quorlock_sync_lock_release(NULL, &result), QUORLOCK_ERR_INVAL},
        {"sync_undo", quorlock_sync_lock_undo(NULL, &result), QUORLOCK_ERR_INVAL},
        {"sync_token", quorlock_sync_lock_token(NULL, error.text, sizeof(error.text)), QUORLOCK_ERR_INVAL},
        {"sync_fence", (int)quorlock_sync_lock_fence(NULL), 0},
        {"sync_lost_margin_max_ms", (int)quorlock_sync_client_lost_margin_max_ms(NULL, 1000, 0), 0},
        {"sync_valid_ms", (int)quorlock_sync_lock_valid_ms(NULL), 0},
        {"sync_new", quorlock_sync_lock_new(&lock, NULL, &key, 1, NULL, &error), QUORLOCK_ERR_INVAL},
        {"sync_stand", quorlock_sync_candidate_stand(NULL, NULL), QUORLOCK_ERR_INVAL},
        {"sync_resign", quorlock_sync_candidate_resign(NULL), QUORLOCK_ERR_INVAL},
        {"sync_candidate_valid_ms", (int)quorlock_sync_candidate_valid_ms(NULL), 0},
        {"sync_candidate_new", quorlock_sync_candidate_new(&candidate, NULL, key, NULL, NULL), QUORLOCK_ERR_INVAL},
        {"sync_observe", quorlock_sync_observer_new(&observer, NULL, key, NULL, NULL), QUORLOCK_ERR_INVAL},
        {"sync_metrics", quorlock_sync_client_metrics(NULL, NULL, error.text, sizeof(error.text), NULL),
         QUORLOCK_ERR_INVAL},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        if (rows[i].status != rows[i].wanted)
            fail_msg("quorlock_%s: %s", rows[i].name, quorlock_status_name(rows[i].status));
    }
    assert_contains(result.text, "NULL");
    quorlock_lock_free(NULL);
    quorlock_candidate_free(NULL);
    quorlock_observer_free(NULL);
    quorlock_sync_lock_free(NULL);
    quorlock_sync_lock_set_on_lost(NULL, NULL, NULL);
    quorlock_sync_candidate_free(NULL);
    quorlock_sync_observer_free(NULL);
}

/* ---- all calls on handles of a client that is at its end ---- */

struct handles {
    quorlock_sync_lock *lock;
    quorlock_sync_candidate *candidate;
    quorlock_sync_observer *observer;
};

static void ignore_leader(quorlock_observer *observer, const struct quorlock_leader *leader, void *arg)
{
}

static struct handles make_handles(void)
{
    const struct quorlock_observer_options options = {.size = sizeof(options), .changed = ignore_leader};
    struct handles handles = {.lock = new_lock("key", LONG_LEASE_MS, NO_LIMIT), .candidate = new_candidate("me")};

    assert_int_equal(quorlock_sync_observer_new(&handles.observer, sync_client, "election", &options, NULL), 0);
    return handles;
}

static void no_loss(quorlock_sync_lock *lock, const struct quorlock_loss *loss, void *arg)
{
}

static void no_end(const struct quorlock_sync_result *result, void *arg)
{
}

/* The first call that is not CLOSED; NULL: all are. No assertion, for a child runs it. */
static const char *call_all(const struct handles *handles, const char *text)
{
    struct quorlock_sync_result result = {.size = sizeof(result)};
    uint64_t term = 0;

    if (quorlock_sync_lock_acquire(handles->lock, &result) != QUORLOCK_ERR_CLOSED) return "acquire";
    if (strstr(result.text, text) == NULL) return "the text of acquire";
    if (quorlock_sync_lock_acquire_for(handles->lock, 1, &result) != QUORLOCK_ERR_CLOSED) return "acquire_for";
    if (quorlock_sync_lock_extend(handles->lock, 0, NULL) != QUORLOCK_ERR_CLOSED) return "extend";
    if (quorlock_sync_lock_release(handles->lock, NULL) != QUORLOCK_ERR_CLOSED) return "release";
    if (quorlock_sync_lock_start_acquire(handles->lock, no_end, NULL) != QUORLOCK_ERR_CLOSED) return "start_acquire";
    if (quorlock_sync_lock_start_release(handles->lock, no_end, NULL) != QUORLOCK_ERR_CLOSED) return "start_release";
    if (quorlock_sync_lock_cancel(handles->lock) != QUORLOCK_ERR_CLOSED) return "cancel";
    if (quorlock_sync_lock_undo(handles->lock, NULL) != QUORLOCK_ERR_CLOSED) return "undo";
    if (quorlock_sync_lock_token(handles->lock, result.token, sizeof(result.token)) != QUORLOCK_ERR_CLOSED)
        return "token";
    if (quorlock_sync_lock_fence(handles->lock) != 0) return "fence";
    if (quorlock_sync_lock_valid_ms(handles->lock) != 0) return "valid_ms";
    if (quorlock_sync_candidate_stand(handles->candidate, &term) != QUORLOCK_ERR_CLOSED) return "stand";
    if (quorlock_sync_candidate_resign(handles->candidate) != QUORLOCK_ERR_CLOSED) return "resign";
    if (quorlock_sync_candidate_valid_ms(handles->candidate) != 0) return "candidate_valid_ms";
    quorlock_sync_lock_set_on_lost(handles->lock, no_loss, NULL);
    return NULL;
}

static void free_handles(const struct handles *handles)
{
    quorlock_sync_lock_free(handles->lock);
    quorlock_sync_candidate_free(handles->candidate);
    quorlock_sync_observer_free(handles->observer);
}

BLOCKING_TEST(handles_outlive_their_client)
{
    struct handles handles = make_handles();
    const char *wrong;

    assert_int_equal(quorlock_sync_lock_acquire(handles.lock, NULL), 0);
    assert_int_equal(quorlock_sync_candidate_stand(handles.candidate, NULL), 0);
    close_now();
    wrong = call_all(&handles, "closed");
    if (wrong != NULL) fail_msg("not CLOSED after the close: %s", wrong);
    free_handles(&handles);
    cluster_await_free(&fixture.cluster, "key");
}

/* ---- fork() ---- */

static void count_reconnects(const struct quorlock_statistics *statistics, void *arg)
{
    for (size_t i = 0; i < statistics->n_nodes; i++) *(uint64_t *)arg += statistics->nodes[i]->reconnects;
}

/* What the child of fork() does with what its parent opened; it ends with 0 where all is as it should be. */
static void live_as_child(const struct handles *handles)
{
    struct quorlock_error error;
    const char *key = "key", *wrong;
    quorlock_sync_lock *lock = NULL;
    uint64_t reconnects = 0;

    alarm(CHILD_S);
    wrong = call_all(handles, "the parent of this process");
    if (wrong == NULL && quorlock_sync_client_shutdown(sync_client) != QUORLOCK_ERR_CLOSED) wrong = "shutdown";
    if (wrong == NULL &&
        quorlock_sync_client_statistics(sync_client, count_reconnects, &reconnects) != QUORLOCK_ERR_CLOSED)
        wrong = "statistics";
    if (wrong == NULL && quorlock_sync_lock_new(&lock, sync_client, &key, 1, NULL, &error) != QUORLOCK_ERR_CLOSED)
        wrong = "new";
    free_handles(handles);
    if (wrong == NULL && quorlock_sync_client_close(sync_client) != 0) wrong = "close";
    if (wrong != NULL) fprintf(stderr, "child: %s\n", wrong);
    _exit(wrong != NULL);
}

/* While another thread waits in a call. */
BLOCKING_TEST(a_child_finds_its_parents_client_closed)
{
    struct handles handles = make_handles();
    struct waiter waiter = {0};
    uint64_t reconnects = 0;
    int status = -1;
    pid_t child;

    assert_int_equal(quorlock_sync_lock_acquire(handles.lock, NULL), 0);
    assert_int_equal(quorlock_sync_candidate_stand(handles.candidate, NULL), 0);
    start_waiter(&waiter);
    child = fork();
    if (child == 0) live_as_child(&handles);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    /* The parent's goes on as if nothing had been. */
    assert_true(quorlock_sync_lock_valid_ms(handles.lock) > LONG_LEASE_MS / 2);
    assert_int_equal(quorlock_sync_lock_extend(handles.lock, 0, NULL), 0);
    assert_int_equal(quorlock_sync_lock_release(handles.lock, NULL), 0);
    end_waiter(&waiter, QUORLOCK_OK);
    assert_int_equal(quorlock_sync_client_statistics(sync_client, count_reconnects, &reconnects), 0);
    assert_int_equal(reconnects, 0);
    quorlock_sync_lock_free(waiter.lock);
    free_handles(&handles);
}

/* ---- shutdown ---- */

/* As daemons have it: each worker frees its lock when an acquire fails. */
static void *work(void *arg)
{
    static char wrong;
    quorlock_sync_lock *lock = arg;
    int status;

    while ((status = quorlock_sync_lock_acquire(lock, NULL)) == 0) (void)quorlock_sync_lock_release(lock, NULL);
    quorlock_sync_lock_free(lock);
    return status == QUORLOCK_ERR_CLOSED ? NULL : &wrong;
}

static void start_workers(pthread_t *threads)
{
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, work, new_lock("key", LONG_LEASE_MS, NO_LIMIT)), 0);
    }
}

static void join_workers(const pthread_t *threads)
{
    for (int i = 0; i < WORKERS; i++) {
        void *wrong = NULL;

        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
}

BLOCKING_TEST(a_daemon_ends_by_shutdown_join_and_close)
{
    pthread_t threads[WORKERS];

    start_workers(threads);
    assert_int_equal(quorlock_sync_client_shutdown(sync_client), 0);
    join_workers(threads);
    close_now();
    cluster_await_free(&fixture.cluster, "key");
}

/* Without a shutdown: the workers free what they have while the client is closed, or afterwards. */
BLOCKING_TEST(workers_free_their_locks_while_the_client_is_closed)
{
    pthread_t threads[WORKERS];
    quorlock_sync_lock *holder = new_lock("key", LONG_LEASE_MS, 0);

    assert_int_equal(quorlock_sync_lock_acquire(holder, NULL), 0);
    start_workers(threads);
    while (acquires_waiting() < WORKERS) continue;
    close_now();
    join_workers(threads);
    quorlock_sync_lock_free(holder);
}

BLOCKING_TEST(a_shutdown_ends_what_waits_and_leaves_what_is_held)
{
    struct handles handles = make_handles();
    struct waiter waiter = {0};
    struct stand stand = {.candidate = new_candidate("other")};
    struct quorlock_sync_result result = {.size = sizeof(result)};
    const char *key = "other";
    quorlock_sync_lock *lock = NULL;

    assert_int_equal(quorlock_sync_lock_acquire(handles.lock, NULL), 0);
    assert_int_equal(quorlock_sync_candidate_stand(handles.candidate, NULL), 0);
    start_waiter(&waiter);
    assert_int_equal(pthread_create(&stand.thread, NULL, stands, &stand), 0);
    while (acquires_waiting() < 2) continue;
    assert_int_equal(quorlock_sync_client_shutdown(sync_client), 0);
    assert_int_equal(quorlock_sync_client_shutdown(sync_client), 0);
    end_waiter(&waiter, QUORLOCK_ERR_CLOSED);
    join(stand.thread);
    assert_int_equal(stand.status, QUORLOCK_ERR_CLOSED);
    /* Nothing new. */
    assert_int_equal(quorlock_sync_lock_acquire(waiter.lock, &result), QUORLOCK_ERR_CLOSED);
    assert_contains(result.text, "shut down");
    assert_int_equal(quorlock_sync_candidate_stand(stand.candidate, NULL), QUORLOCK_ERR_CLOSED);
    assert_int_equal(quorlock_sync_lock_new(&lock, sync_client, &key, 1, NULL, NULL), QUORLOCK_ERR_CLOSED);
    /* What is held comes to its end. */
    assert_true(quorlock_sync_lock_valid_ms(handles.lock) > LONG_LEASE_MS / 2);
    assert_true(quorlock_sync_candidate_valid_ms(handles.candidate) > LONG_LEASE_MS / 2);
    assert_int_equal(quorlock_sync_lock_extend(handles.lock, 0, NULL), 0);
    assert_int_equal(quorlock_sync_lock_release(handles.lock, NULL), 0);
    assert_int_equal(quorlock_sync_candidate_resign(handles.candidate), 0);
    assert_int_equal(quorlock_sync_candidate_valid_ms(handles.candidate), 0);
    quorlock_sync_lock_free(waiter.lock);
    quorlock_sync_candidate_free(stand.candidate);
    free_handles(&handles);
}

/* ---- validity ---- */

struct hold_up {
    quorlock_sync_lock *lock;
    quorlock_sync_candidate *candidate;
    atomic_bool begun, ended;
    bool in_time;
};

/* Nothing is renewed meanwhile, nor is a loss noticed. */
static void hold_up_loop(const struct quorlock_statistics *statistics, void *arg)
{
    struct hold_up *hold_up = arg;
    uint64_t until_us = clock_us() + GENEROUS_US;

    (void)statistics;
    atomic_store(&hold_up->begun, true);
    while (!atomic_load(&hold_up->ended) && clock_us() < until_us) continue;
    hold_up->in_time = atomic_load(&hold_up->ended);
}

static void *await_end(void *arg)
{
    struct hold_up *hold_up = arg;

    while (!atomic_load(&hold_up->begun)) continue;
    while (quorlock_sync_lock_valid_ms(hold_up->lock) > 0) continue;
    while (quorlock_sync_candidate_valid_ms(hold_up->candidate) > 0) continue;
    atomic_store(&hold_up->ended, true);
    return NULL;
}

/* A thread that asks sees the validity end, though the loop stalls. */
BLOCKING_TEST(a_late_loop_makes_nothing_valid_for_longer)
{
    const struct quorlock_candidate_options options = {.size = sizeof(options), .lease_ms = SHORT_MS};
    struct hold_up hold_up = {.lock = new_lock("key", SHORT_MS, NO_LIMIT)};
    pthread_t thread;

    assert_int_equal(quorlock_sync_candidate_new(&hold_up.candidate, sync_client, "election", &options, NULL), 0);
    assert_int_equal(quorlock_sync_lock_acquire(hold_up.lock, NULL), 0);
    assert_int_equal(quorlock_sync_candidate_stand(hold_up.candidate, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, await_end, &hold_up), 0);
    assert_int_equal(quorlock_sync_client_statistics(sync_client, hold_up_loop, &hold_up), 0);
    join(thread);
    assert_true(hold_up.in_time);
    assert_int_equal(quorlock_sync_lock_valid_ms(hold_up.lock), 0);
    quorlock_sync_lock_free(hold_up.lock);
    quorlock_sync_candidate_free(hold_up.candidate);
}

struct reader {
    quorlock_sync_lock *lock;
    atomic_bool ended;
    atomic_uint most_ms;
};

static void *read_validity(void *arg)
{
    struct reader *reader = arg;

    while (!atomic_load(&reader->ended)) {
        uint32_t ms = quorlock_sync_lock_valid_ms(reader->lock);

        if (ms > atomic_load(&reader->most_ms)) atomic_store(&reader->most_ms, ms);
    }
    return NULL;
}

/* Another thread reads all the time. A late yes may lengthen what the result says, so the bound is the lease; the
 * simulated world compares what is read with what the loop knows at the same moment. */
BLOCKING_TEST(threads_read_no_more_validity_than_the_lease_has)
{
    struct reader reader = {.lock = new_lock("key", LONG_LEASE_MS, 0)};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, read_validity, &reader), 0);
    for (int i = 0; i < READS_OF_EACH; i++) {
        assert_int_equal(quorlock_sync_lock_valid_ms(reader.lock), 0);
        assert_int_equal(quorlock_sync_lock_acquire(reader.lock, NULL), 0);
        assert_in_range(quorlock_sync_lock_valid_ms(reader.lock), LONG_LEASE_MS / 2, LONG_LEASE_MS - 1);
        assert_int_equal(quorlock_sync_lock_extend(reader.lock, 0, NULL), 0);
        assert_in_range(quorlock_sync_lock_valid_ms(reader.lock), LONG_LEASE_MS / 2, LONG_LEASE_MS - 1);
        assert_int_equal(quorlock_sync_lock_release(reader.lock, NULL), 0);
    }
    atomic_store(&reader.ended, true);
    join(thread);
    assert_in_range(atomic_load(&reader.most_ms), LONG_LEASE_MS / 2, LONG_LEASE_MS);
    quorlock_sync_lock_free(reader.lock);
}
