/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/blocking_loop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MS 1000u

/* ---- life ---- */

bool blocking_here(const quorlock_blocking *blocking)
{
    return atomic_load_explicit(&blocking->shown->here, memory_order_relaxed) != 0 &&
           (blocking->wiped || getpid() == blocking->pid);
}

void blocking_join(quorlock_blocking *blocking)
{
    atomic_fetch_add(&blocking->n_users, 1);
}

void blocking_leave(quorlock_blocking *blocking)
{
    if (atomic_fetch_sub(&blocking->n_users, 1) > 1) return;
    /* In a child of fork() a thread that does not run there may hold the mutex; to destroy it would wait for that
     * thread.
     */
    if (blocking_here(blocking)) {
        blocking_events_end(&blocking->events);
        pthread_cond_destroy(&blocking->no_callers);
        pthread_mutex_destroy(&blocking->mutex);
    }
    if (blocking->wiped) {
        blocking->system.ops->wiped_free(&blocking->system, blocking->shown, sizeof(*blocking->shown));
    } else {
        free(blocking->shown);
    }
    free(blocking);
}

uint32_t blocking_valid_ms(quorlock_blocking *blocking, const struct expiry *expiry)
{
    if (!blocking_here(blocking)) return 0;
    return (uint32_t)(expiry_left_us(expiry, &blocking->shown->clock, &blocking->system) / MS);
}

/* ---- jobs ---- */

/* is_loop - return whether this is the loop's thread. After the close another thread may have its id. */
static bool is_loop(quorlock_blocking *blocking)
{
    bool closed;

    pthread_mutex_lock(&blocking->mutex);
    closed = blocking->closed;
    pthread_mutex_unlock(&blocking->mutex);
    return !closed && pthread_equal(pthread_self(), blocking->thread) != 0;
}

static void blocking_loop_wake(const quorlock_blocking *blocking)
{
    const uint64_t one = 1;
    ssize_t n;

    /* EAGAIN means that the counter is full; then the loop wakes anyway. */
    do {
        n = write(blocking->wake_fd, &one, sizeof(one));
    } while (n < 0 && errno == EINTR);
}

/* blocking_loop_tell - call cb, which may free the lock or start another operation; or put the event into the queue. */
static void blocking_loop_tell(struct job *job)
{
    if (job->cb != NULL) {
        job->result.size = sizeof(job->result);
        job->cb(&job->result, job->cb_arg);
    } else {
        blocking_events_put_result(&job->blocking->events, job->event, &job->result);
    }
    free(job);
}

void blocking_done(struct job *job)
{
    quorlock_blocking *blocking = job->blocking;

    if (job->cb != NULL || job->event != NULL) {
        blocking_loop_tell(job);
        return;
    }
    pthread_mutex_lock(&blocking->mutex);
    job->done = true;
    pthread_cond_signal(&job->done_cond);
    /* From here on the job may be gone: it is on the stack of the thread that waits. */
    pthread_mutex_unlock(&blocking->mutex);
}

/* enqueue - add the job to the queue. The caller holds the mutex. */
static void enqueue(struct job *job)
{
    quorlock_blocking *blocking = job->blocking;

    if (blocking->last != NULL) {
        blocking->last->next = job;
    } else {
        blocking->first = job;
    }
    blocking->last = job;
    blocking_loop_wake(blocking);
}

/* hand_over - have the loop's thread run the job, and wait for its end. */
static int hand_over(struct job *job)
{
    quorlock_blocking *blocking = job->blocking;

    job->done_cond = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(&blocking->mutex);
    blocking->n_callers++;
    if (blocking->closed) {
        (void)blocking_refuse(job, QUORLOCK_CLOSED, quorlock_status_text(QUORLOCK_CLOSED));
        job->done = true;
    } else {
        enqueue(job);
    }
    while (!job->done) pthread_cond_wait(&job->done_cond, &blocking->mutex);
    if (--blocking->n_callers == 0) pthread_cond_signal(&blocking->no_callers);
    pthread_mutex_unlock(&blocking->mutex);
    pthread_cond_destroy(&job->done_cond);
    return job->result.status;
}

int blocking_refuse(struct job *job, int status, const char *text)
{
    job->result = (struct quorlock_blocking_result){.status = status};
    snprintf(job->result.text, sizeof(job->result.text), "%s", text);
    return status;
}

int blocking_refuse_new(struct job *job)
{
    return job->blocking->shut ? blocking_refuse(job, QUORLOCK_CLOSED, "the client was shut down: nothing new begins")
                               : 0;
}

/* blocking_loop_refuse - check the client without the mutex: in a child of fork() its owner may not run. */
static int blocking_loop_refuse(struct job *job)
{
    if (job->blocking == NULL) return blocking_refuse(job, QUORLOCK_INVAL, "NULL was given for a client or a handle");
    if (blocking_here(job->blocking)) return 0;
    return blocking_refuse(job, QUORLOCK_CLOSED,
                           "the parent of this process opened the client: this process must open one of its own");
}

int blocking_call(struct job *job)
{
    if (blocking_loop_refuse(job) != 0) return job->result.status;
    if (!is_loop(job->blocking)) return hand_over(job);
    return blocking_refuse(job, QUORLOCK_STATE, "called in the loop's thread, which would wait for itself");
}

int blocking_do_anywhere(struct job *job)
{
    if (blocking_loop_refuse(job) != 0) return job->result.status;
    if (!is_loop(job->blocking)) return hand_over(job);
    job->run(job);
    return job->result.status;
}

int blocking_start(const struct job *given)
{
    struct job *job = malloc(sizeof(*job));
    quorlock_blocking *blocking = given->blocking;
    int status;

    if (job == NULL) return QUORLOCK_NOMEM;
    *job = *given;
    status = blocking_loop_refuse(job);
    if (status == 0) {
        pthread_mutex_lock(&blocking->mutex);
        if (blocking->closed) {
            status = QUORLOCK_CLOSED;
        } else {
            enqueue(job);
        }
        pthread_mutex_unlock(&blocking->mutex);
    }
    if (status != 0) free(job);
    return status;
}

void blocking_take_jobs(quorlock_blocking *blocking)
{
    struct job **end = &blocking->taken;

    while (*end != NULL) end = &(*end)->next;
    pthread_mutex_lock(&blocking->mutex);
    *end = blocking->first;
    blocking->first = blocking->last = NULL;
    pthread_mutex_unlock(&blocking->mutex);
}

struct job *blocking_next_job(quorlock_blocking *blocking)
{
    struct job *job = blocking->taken;

    if (job != NULL) blocking->taken = job->next;
    return job;
}

bool blocking_withdraw(quorlock_blocking *blocking, const void *handle, bool all)
{
    bool any = false;

    /* All jobs are in `taken` then, in their order. */
    blocking_take_jobs(blocking);
    for (struct job *job = blocking->taken; job != NULL; job = job->next) {
        if ((job->lock != handle && job->candidate != handle) || !(all || job->cancelable)) continue;
        job->withdrawn = any = true;
    }
    return any;
}

void blocking_on_wake(int fd, short what, void *arg)
{
    quorlock_blocking *blocking = arg;
    uint64_t count;
    struct job *job;

    (void)what;
    /* Read the counter before taking the jobs: a job that comes in between wakes the loop again. */
    (void)(read(fd, &count, sizeof(count)) == 0);
    blocking_take_jobs(blocking);
    while ((job = blocking_next_job(blocking)) != NULL) {
        if (job->withdrawn) {
            (void)blocking_refuse(job, QUORLOCK_CANCELED, "canceled before it began");
            blocking_done(job);
        } else {
            job->run(job);
        }
    }
}

void blocking_fail(struct job *job, int status)
{
    job->result.status = status;
    snprintf(job->result.text, sizeof(job->result.text), "%s", quorlock_client_error(job->blocking->client));
    blocking_done(job);
}

int blocking_no_place(const char *what, char *error, size_t error_size)
{
    if (error != NULL && error_size > 0) snprintf(error, error_size, "ret is NULL: there is no place for the %s", what);
    return QUORLOCK_INVAL;
}
