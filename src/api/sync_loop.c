/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/sync_loop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/caller.h"

#define MS 1000u

/* ---- life ---- */

bool sync_here(const quorlock_sync_client *sync)
{
    return atomic_load_explicit(&sync->shown->here, memory_order_relaxed) != 0 &&
           (sync->wiped || getpid() == sync->pid);
}

void sync_join(quorlock_sync_client *sync)
{
    atomic_fetch_add(&sync->n_users, 1);
}

void sync_leave(quorlock_sync_client *sync)
{
    if (atomic_fetch_sub(&sync->n_users, 1) > 1) return;
    /* In a child of fork() a thread that does not run there may hold the mutex; to destroy it would wait for that
     * thread.
     */
    if (sync_here(sync)) {
        sync_events_end(&sync->events);
        pthread_cond_destroy(&sync->no_callers);
        pthread_mutex_destroy(&sync->mutex);
    }
    if (sync->wiped) {
        sync->system.ops->wiped_free(&sync->system, sync->shown, sizeof(*sync->shown));
    } else {
        free(sync->shown);
    }
    free(sync);
}

uint32_t sync_valid_ms(quorlock_sync_client *sync, const struct expiry *expiry)
{
    if (!sync_here(sync)) return 0;
    return (uint32_t)(expiry_left_us(expiry, &sync->shown->clock, &sync->system) / MS);
}

/* ---- jobs ---- */

/* is_loop - return whether this is the loop's thread. After the close another thread may have its id. */
static bool is_loop(quorlock_sync_client *sync)
{
    bool closed;

    pthread_mutex_lock(&sync->mutex);
    closed = sync->closed;
    pthread_mutex_unlock(&sync->mutex);
    return !closed && pthread_equal(pthread_self(), sync->thread) != 0;
}

static void sync_loop_wake(const quorlock_sync_client *sync)
{
    const uint64_t one = 1;
    ssize_t n;

    /* EAGAIN means that the counter is full; then the loop wakes anyway. */
    do {
        n = write(sync->wake_fd, &one, sizeof(one));
    } while (n < 0 && errno == EINTR);
}

/* sync_loop_tell - call cb, which may free the lock or start another operation; or put the event into the queue. */
static void sync_loop_tell(struct job *job)
{
    if (job->cb != NULL) {
        job->result.size = sizeof(job->result);
        job->cb(&job->result, job->cb_arg);
    } else {
        sync_events_put_result(&job->sync->events, job->event, &job->result);
    }
    free(job);
}

void sync_done(struct job *job)
{
    quorlock_sync_client *sync = job->sync;

    if (job->cb != NULL || job->event != NULL) {
        sync_loop_tell(job);
        return;
    }
    pthread_mutex_lock(&sync->mutex);
    job->done = true;
    pthread_cond_signal(&job->done_cond);
    /* From here on the job may be gone: it is on the stack of the thread that waits. */
    pthread_mutex_unlock(&sync->mutex);
}

/* enqueue - add the job to the queue. The caller holds the mutex. */
static void enqueue(struct job *job)
{
    quorlock_sync_client *sync = job->sync;

    if (sync->last != NULL) {
        sync->last->next = job;
    } else {
        sync->first = job;
    }
    sync->last = job;
    sync_loop_wake(sync);
}

/* hand_over - have the loop's thread run the job, and wait for its end. */
static int hand_over(struct job *job)
{
    quorlock_sync_client *sync = job->sync;

    job->done_cond = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(&sync->mutex);
    sync->n_callers++;
    if (sync->closed) {
        (void)sync_refuse(job, QUORLOCK_ERR_CLOSED, quorlock_status_text(QUORLOCK_ERR_CLOSED));
        job->done = true;
    } else {
        enqueue(job);
    }
    while (!job->done) pthread_cond_wait(&job->done_cond, &sync->mutex);
    if (--sync->n_callers == 0) pthread_cond_signal(&sync->no_callers);
    pthread_mutex_unlock(&sync->mutex);
    pthread_cond_destroy(&job->done_cond);
    return job->result.status;
}

int sync_refuse(struct job *job, int status, const char *text)
{
    job->result = (struct quorlock_sync_result){.status = status};
    snprintf(job->result.text, sizeof(job->result.text), "%s", text);
    return status;
}

int sync_refuse_new(struct job *job)
{
    return job->sync->shut ? sync_refuse(job, QUORLOCK_ERR_CLOSED, "the client was shut down: nothing new begins") : 0;
}

/* sync_loop_refuse - check the client without the mutex: in a child of fork() its owner may not run. */
static int sync_loop_refuse(struct job *job)
{
    if (job->sync == NULL) return sync_refuse(job, QUORLOCK_ERR_INVAL, "NULL was given for a client or a handle");
    if (sync_here(job->sync)) return 0;
    return sync_refuse(job, QUORLOCK_ERR_CLOSED,
                       "the parent of this process opened the client: this process must open one of its own");
}

int sync_call(struct job *job)
{
    if (sync_loop_refuse(job) != 0) return job->result.status;
    if (!is_loop(job->sync)) return hand_over(job);
    return sync_refuse(job, QUORLOCK_ERR_STATE, "called in the loop's thread, which would wait for itself");
}

int sync_do_anywhere(struct job *job)
{
    if (sync_loop_refuse(job) != 0) return job->result.status;
    if (!is_loop(job->sync)) return hand_over(job);
    job->run(job);
    return job->result.status;
}

int sync_start(const struct job *given)
{
    struct job *job = malloc(sizeof(*job));
    quorlock_sync_client *sync = given->sync;
    int status;

    if (job == NULL) return QUORLOCK_ERR_NOMEM;
    *job = *given;
    status = sync_loop_refuse(job);
    if (status == 0) {
        pthread_mutex_lock(&sync->mutex);
        if (sync->closed) {
            status = QUORLOCK_ERR_CLOSED;
        } else {
            enqueue(job);
        }
        pthread_mutex_unlock(&sync->mutex);
    }
    if (status != 0) free(job);
    return status;
}

void sync_take_jobs(quorlock_sync_client *sync)
{
    struct job **end = &sync->taken;

    while (*end != NULL) end = &(*end)->next;
    pthread_mutex_lock(&sync->mutex);
    *end = sync->first;
    sync->first = sync->last = NULL;
    pthread_mutex_unlock(&sync->mutex);
}

struct job *sync_next_job(quorlock_sync_client *sync)
{
    struct job *job = sync->taken;

    if (job != NULL) sync->taken = job->next;
    return job;
}

bool sync_withdraw(quorlock_sync_client *sync, const void *handle, bool all)
{
    bool any = false;

    /* All jobs are in `taken` then, in their order. */
    sync_take_jobs(sync);
    for (struct job *job = sync->taken; job != NULL; job = job->next) {
        if ((job->lock != handle && job->candidate != handle) || !(all || job->cancelable)) continue;
        job->withdrawn = any = true;
    }
    return any;
}

void sync_on_wake(int fd, short what, void *arg)
{
    quorlock_sync_client *sync = arg;
    uint64_t count;
    struct job *job;

    (void)what;
    /* Read the counter before taking the jobs: a job that comes in between wakes the loop again. */
    (void)(read(fd, &count, sizeof(count)) == 0);
    sync_take_jobs(sync);
    while ((job = sync_next_job(sync)) != NULL) {
        if (job->withdrawn) {
            (void)sync_refuse(job, QUORLOCK_ERR_CANCELED, "canceled before it began");
            sync_done(job);
        } else {
            job->run(job);
        }
    }
}

void sync_fail(struct job *job, int status)
{
    job->result.status = status;
    snprintf(job->result.text, sizeof(job->result.text), "%s", quorlock_client_error(job->sync->client));
    sync_done(job);
}

int sync_no_place(const char *what, struct quorlock_error *ret_error)
{
    struct quorlock_error error;
    int status = caller_fail(&error, QUORLOCK_ERR_INVAL, "ret is NULL: there is no place for the %s", what);

    return caller_report(ret_error, status, error.text);
}
