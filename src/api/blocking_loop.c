/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/blocking_loop.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static bool is_loop(const quorlock_blocking *blocking)
{
    return pthread_equal(pthread_self(), blocking->thread) != 0;
}

static void wake(const quorlock_blocking *blocking)
{
    const uint64_t one = 1;
    ssize_t n;

    /* A counter that is full wakes the loop as well. */
    do {
        n = write(blocking->wake_fd, &one, sizeof(one));
    } while (n < 0 && errno == EINTR);
}

/* The caller may be gone as soon as the mutex is released. */
void blocking_done(struct job *job)
{
    quorlock_blocking *blocking = job->blocking;

    pthread_mutex_lock(&blocking->mutex);
    job->done = true;
    pthread_cond_signal(&job->done_cond);
    pthread_mutex_unlock(&blocking->mutex);
}

static int hand_over(struct job *job)
{
    quorlock_blocking *blocking = job->blocking;

    if (pthread_cond_init(&job->done_cond, NULL) != 0) return job->result.status = QUORLOCK_NOMEM;
    pthread_mutex_lock(&blocking->mutex);
    blocking->n_callers++;
    if (blocking->closed) {
        job->result.status = QUORLOCK_CLOSED;
        job->done = true;
    } else {
        if (blocking->last != NULL) {
            blocking->last->next = job;
        } else {
            blocking->first = job;
        }
        blocking->last = job;
        wake(blocking);
    }
    while (!job->done) pthread_cond_wait(&job->done_cond, &blocking->mutex);
    if (--blocking->n_callers == 0) pthread_cond_signal(&blocking->no_callers);
    pthread_mutex_unlock(&blocking->mutex);
    pthread_cond_destroy(&job->done_cond);
    return job->result.status;
}

int blocking_call(struct job *job)
{
    struct quorlock_blocking_result *result = &job->result;

    if (!is_loop(job->blocking)) return hand_over(job);
    *result = (struct quorlock_blocking_result){.status = QUORLOCK_STATE};
    snprintf(result->text, sizeof(result->text), "called from the loop's own thread: it would wait for itself");
    return result->status;
}

int blocking_do_anywhere(struct job *job)
{
    if (!is_loop(job->blocking)) return hand_over(job);
    job->run(job);
    return job->result.status;
}

struct job *blocking_take_jobs(quorlock_blocking *blocking)
{
    struct job *first;

    pthread_mutex_lock(&blocking->mutex);
    first = blocking->first;
    blocking->first = blocking->last = NULL;
    pthread_mutex_unlock(&blocking->mutex);
    return first;
}

void blocking_on_wake(int fd, short what, void *arg)
{
    quorlock_blocking *blocking = arg;
    uint64_t count;
    struct job *next;

    (void)what;
    /* Emptied before the queue is: a job that comes in between wakes us again. */
    (void)(read(fd, &count, sizeof(count)) == 0);
    for (struct job *job = blocking_take_jobs(blocking); job != NULL; job = next) {
        next = job->next;
        job->run(job);
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
