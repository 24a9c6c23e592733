/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blocking.c - a loop thread behind a queue
 *
 * A call puts a job, which lives on its own stack, into the queue, wakes the loop through an eventfd and waits
 * until the loop's thread has marked it done. Client and locks are touched by that thread only, so libevent
 * needs no locking of its own (evthread_use_pthreads would be process-wide). The mutex guards the queue, the
 * done marks and the count of callers.
 */
#include <quorlock/blocking.h>

#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/blocking_election.h"
#include "api/blocking_loop.h"
#include "base/caller.h"
#include "base/own_base.h"

struct quorlock_blocking_lock {
    quorlock_blocking *blocking;
    quorlock *lock;
    struct link link; /* in blocking->locks */
    quorlock_blocking_lost_cb lost;
    void *lost_arg;
};

/* ---- jobs, in the loop's thread ---- */

static void on_result(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    struct job *job = arg;

    (void)lock;
    job->result = (struct quorlock_blocking_result){
        .status = result->status,
        .granted = result->granted,
        .refused = result->refused,
        .failed = result->failed,
        .rounds = result->rounds,
        .elapsed_ms = result->elapsed_ms,
        .valid_ms = result->valid_ms,
        .expired = result->expired,
        .fence = result->fence,
        .slot = result->slot,
    };
    snprintf(job->result.text, sizeof(job->result.text), "%s", result->text != NULL ? result->text : "");
    snprintf(job->result.token, sizeof(job->result.token), "%s", result->token != NULL ? result->token : "");
    blocking_done(job);
}

static void run_operation(struct job *job)
{
    quorlock *lock = job->lock->lock;
    int status =
        job->start != NULL ? job->start(lock, on_result, job) : quorlock_extend(lock, job->lease_ms, on_result, job);

    if (status != 0) blocking_fail(job, status);
}

static void run_cancel(struct job *job)
{
    job->result.status = quorlock_cancel(job->lock->lock);
    blocking_done(job);
}

static void run_valid_ms(struct job *job)
{
    job->result.valid_ms = quorlock_valid_ms(job->lock->lock);
    blocking_done(job);
}

static void run_statistics(struct job *job)
{
    struct quorlock_statistics statistics = {.size = sizeof(statistics)};

    job->result.status = quorlock_client_statistics(job->blocking->client, &statistics);
    if (job->result.status == 0) job->read(&statistics, job->read_arg);
    blocking_done(job);
}

static void run_metrics(struct job *job)
{
    job->result.status =
        quorlock_client_metrics(job->blocking->client, job->metrics, job->buffer, job->size, job->ret_length);
    blocking_done(job);
}

static void on_lost(quorlock *lock, const struct quorlock_loss *loss, void *arg)
{
    quorlock_blocking_lock *handle = arg;

    (void)lock;
    if (handle->lost != NULL) handle->lost(handle, loss, handle->lost_arg);
}

static void run_on_lost(struct job *job)
{
    job->lock->lost = job->lost;
    job->lock->lost_arg = job->lost_arg;
    blocking_done(job);
}

static void run_new(struct job *job)
{
    quorlock_blocking *blocking = job->blocking;
    quorlock_blocking_lock *handle = job->lock;
    int status = quorlock_new(&handle->lock, blocking->client, job->keys, job->n_keys, job->options);

    if (status != 0) {
        blocking_fail(job, status);
        return;
    }
    quorlock_on_lost(handle->lock, on_lost, handle);
    handle->blocking = blocking;
    list_add(&blocking->locks, &handle->link);
    blocking_done(job);
}

static void run_free(struct job *job)
{
    quorlock_blocking_lock *handle = job->lock;

    list_remove(&job->blocking->locks, &handle->link);
    quorlock_free(handle->lock);
    free(handle);
    blocking_done(job);
}

/* Without the wake event nothing is left on the base: the loop ends by itself. */
static void on_closed(void *arg)
{
    struct job *close_job = arg;
    quorlock_blocking *blocking = close_job->blocking;
    struct job *next;

    event_del(blocking->wake);
    pthread_mutex_lock(&blocking->mutex);
    blocking->closed = true;
    pthread_mutex_unlock(&blocking->mutex);
    /* Jobs that came too late for the client. */
    for (struct job *job = blocking_take_jobs(blocking); job != NULL; job = next) {
        next = job->next;
        job->result.status = QUORLOCK_CLOSED;
        blocking_done(job);
    }
    blocking_done(close_job);
}

static void run_close(struct job *job)
{
    /* Cannot fail: this is the only close. */
    (void)quorlock_client_close(job->blocking->client, on_closed, job);
}

/* ---- life ---- */

static void *loop(void *arg)
{
    const quorlock_blocking *blocking = arg;

    event_base_dispatch(blocking->base);
    return NULL;
}

static int open_base(quorlock_blocking *blocking)
{
    blocking->base = own_base_new();
    if (blocking->base == NULL) return QUORLOCK_NOMEM;
    blocking->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (blocking->wake_fd < 0) return QUORLOCK_NOMEM;
    blocking->wake = event_new(blocking->base, blocking->wake_fd, EV_READ | EV_PERSIST, blocking_on_wake, blocking);
    if (blocking->wake == NULL || event_add(blocking->wake, NULL) != 0) return QUORLOCK_NOMEM;
    return 0;
}

static int start_thread(quorlock_blocking *blocking)
{
    sigset_t all;
    sigset_t before;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&blocking->thread, NULL, loop, blocking);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed != 0 ? QUORLOCK_NOMEM : 0;
}

static void free_all(quorlock_blocking *blocking)
{
    blocking_election_free(blocking);
    LIST_WALK (quorlock_blocking_lock, handle, &blocking->locks, link) {
        list_remove(&blocking->locks, &handle->link);
        free(handle);
    }
    if (blocking->wake != NULL) event_free(blocking->wake);
    if (blocking->wake_fd >= 0) close(blocking->wake_fd);
    if (blocking->base != NULL) event_base_free(blocking->base);
    pthread_cond_destroy(&blocking->no_callers);
    pthread_mutex_destroy(&blocking->mutex);
    free(blocking);
}

/* No thread runs the base yet: the client has nothing to wait for, and closes as the loop turns here. */
static void undo_client(quorlock_blocking *blocking)
{
    event_del(blocking->wake);
    quorlock_client_close(blocking->client, NULL, NULL);
    event_base_dispatch(blocking->base);
}

static int fail_open(const struct quorlock_client_options *options)
{
    caller_report(options, "no memory, descriptor or thread for the loop");
    return QUORLOCK_NOMEM;
}

int quorlock_blocking_open(quorlock_blocking **ret, const struct quorlock_client_options *options)
{
    quorlock_blocking *blocking;
    int status;

    if (ret == NULL) {
        caller_report(options, "ret is NULL: there is no place for the client");
        return QUORLOCK_INVAL;
    }
    blocking = calloc(1, sizeof(*blocking));
    if (blocking == NULL) return fail_open(options);
    blocking->wake_fd = -1;
    if (pthread_mutex_init(&blocking->mutex, NULL) != 0 || pthread_cond_init(&blocking->no_callers, NULL) != 0) {
        free(blocking);
        return fail_open(options);
    }
    status = open_base(blocking);
    if (status != 0) {
        status = fail_open(options);
        goto failed;
    }
    status = quorlock_client_new(&blocking->client, blocking->base, options);
    if (status != 0) goto failed;
    status = start_thread(blocking);
    if (status != 0) {
        status = fail_open(options);
        undo_client(blocking);
        goto failed;
    }
    *ret = blocking;
    return 0;
failed:
    free_all(blocking);
    return status;
}

int quorlock_blocking_close(quorlock_blocking *blocking)
{
    struct job job = {.run = run_close, .blocking = blocking};

    if (blocking == NULL) return 0;
    if (blocking_call(&job) != 0) return job.result.status;
    pthread_join(blocking->thread, NULL);
    /* Calls that ended with CLOSED are on their way out of the mutex. */
    pthread_mutex_lock(&blocking->mutex);
    while (blocking->n_callers > 0) pthread_cond_wait(&blocking->no_callers, &blocking->mutex);
    pthread_mutex_unlock(&blocking->mutex);
    free_all(blocking);
    return 0;
}

/* ---- calls ---- */

/* The caller may know a shorter or a longer struct than we do. */
static void give(struct quorlock_blocking_result *ret, const struct quorlock_blocking_result *result)
{
    size_t size = ret->size;

    memcpy(ret, result, size < sizeof(*ret) ? size : sizeof(*ret));
    ret->size = size;
}

/* A result that the caller made, and can be written; it may be NULL. */
static int check_result(const struct quorlock_blocking_result *given)
{
    /* As the struct was first given out: this stays, whatever is added behind. */
    size_t least = offsetof(struct quorlock_blocking_result, token) + QUORLOCK_BLOCKING_TOKEN_SIZE;
    struct caller_error error;

    if (given == NULL) return 0;
    return caller_check(least, sizeof(*given), given, given->size, "quorlock_blocking_result", &error);
}

static int call(struct job *job, struct quorlock_blocking_result *result)
{
    job->blocking = job->lock->blocking;
    if (check_result(result) != 0) return QUORLOCK_INVAL;
    (void)blocking_call(job);
    if (result != NULL) give(result, &job->result);
    return job->result.status;
}

int quorlock_blocking_new(quorlock_blocking_lock **ret, quorlock_blocking *blocking, const char *const *keys,
                          size_t n_keys, const struct quorlock_options *options, char *error, size_t error_size)
{
    quorlock_blocking_lock *handle = ret != NULL ? calloc(1, sizeof(*handle)) : NULL;
    struct job job = {
        .run = run_new, .blocking = blocking, .lock = handle, .keys = keys, .n_keys = n_keys, .options = options};

    if (ret == NULL) return blocking_no_place("lock", error, error_size);
    if (handle == NULL) {
        job.result.status = QUORLOCK_NOMEM;
        snprintf(job.result.text, sizeof(job.result.text), "%s", quorlock_status_text(QUORLOCK_NOMEM));
        goto failed;
    }
    if (blocking_call(&job) != 0) goto failed;
    *ret = handle;
    return 0;
failed:
    free(handle);
    if (error != NULL && error_size > 0) snprintf(error, error_size, "%s", job.result.text);
    return job.result.status;
}

int quorlock_blocking_acquire(quorlock_blocking_lock *lock, struct quorlock_blocking_result *result)
{
    return call(&(struct job){.run = run_operation, .lock = lock, .start = quorlock_acquire}, result);
}

int quorlock_blocking_extend(quorlock_blocking_lock *lock, uint32_t lease_ms, struct quorlock_blocking_result *result)
{
    return call(&(struct job){.run = run_operation, .lock = lock, .lease_ms = lease_ms}, result);
}

int quorlock_blocking_release(quorlock_blocking_lock *lock, struct quorlock_blocking_result *result)
{
    return call(&(struct job){.run = run_operation, .lock = lock, .start = quorlock_release}, result);
}

int quorlock_blocking_cancel(quorlock_blocking_lock *lock)
{
    return blocking_do_anywhere(&(struct job){.run = run_cancel, .blocking = lock->blocking, .lock = lock});
}

void quorlock_blocking_free(quorlock_blocking_lock *lock)
{
    if (lock == NULL) return;
    (void)blocking_do_anywhere(&(struct job){.run = run_free, .blocking = lock->blocking, .lock = lock});
}

void quorlock_blocking_on_lost(quorlock_blocking_lock *lock, quorlock_blocking_lost_cb cb, void *arg)
{
    struct job job = {.run = run_on_lost, .blocking = lock->blocking, .lock = lock, .lost = cb, .lost_arg = arg};

    (void)blocking_do_anywhere(&job);
}

uint32_t quorlock_blocking_valid_ms(const quorlock_blocking_lock *lock)
{
    /* The rest of it belongs to the loop. */
    struct quorlock_blocking_lock copy = {.blocking = lock->blocking, .lock = lock->lock};
    struct job job = {.run = run_valid_ms, .blocking = lock->blocking, .lock = &copy};

    return blocking_do_anywhere(&job) == 0 ? job.result.valid_ms : 0;
}

int quorlock_blocking_statistics(quorlock_blocking *blocking, quorlock_blocking_statistics_cb cb, void *arg)
{
    if (cb == NULL) return QUORLOCK_INVAL;
    return blocking_do_anywhere(
        &(struct job){.run = run_statistics, .blocking = blocking, .read = cb, .read_arg = arg});
}

int quorlock_blocking_metrics(quorlock_blocking *blocking, const struct quorlock_metrics_options *options, char *buffer,
                              size_t size, size_t *ret_length)
{
    return blocking_do_anywhere(&(struct job){.run = run_metrics,
                                              .blocking = blocking,
                                              .metrics = options,
                                              .buffer = buffer,
                                              .size = size,
                                              .ret_length = ret_length});
}
