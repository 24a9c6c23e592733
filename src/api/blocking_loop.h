/* SPDX-License-Identifier: BSD-3-Clause */
/* blocking_loop.h - the loop's thread of the blocking facade, and the queue of jobs for it */
#pragma once

#include <quorlock/blocking.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct job {
    struct job *next;
    void (*run)(struct job *);
    int (*start)(quorlock *, quorlock_cb, void *); /* what run_operation starts; NULL: an extend */
    quorlock_blocking *blocking;
    quorlock_blocking_lock *lock;
    pthread_cond_t done_cond;
    bool done;
    struct quorlock_blocking_result result;

    /* Arguments of the call. */
    const char *const *keys;
    size_t n_keys;
    const struct quorlock_options *options;
    uint32_t lease_ms;
    quorlock_blocking_lost_cb lost;
    void *lost_arg;
    quorlock_blocking_statistics_cb read;
    void *read_arg;
    const struct quorlock_metrics_options *metrics;
    char *buffer;
    size_t size, *ret_length;
    void *member; /* a candidate or an observer */
};

struct quorlock_blocking {
    struct event_base *base;
    struct event *wake;
    int wake_fd;
    pthread_t thread;
    /* The loop's thread only. */
    quorlock_client *client;
    struct list locks, candidates, observers;

    pthread_mutex_t mutex;
    pthread_cond_t no_callers;
    struct job *first, *last;
    size_t n_callers;
    bool closed; /* the loop takes no more jobs */
};

/* blocking_call - hands the job to the loop and waits for its end; its status. The loop's own thread is refused, for it
 * would wait for itself. blocking_do_anywhere: there the job is done at once. */
int blocking_call(struct job *);
int blocking_do_anywhere(struct job *);
/* blocking_done - the job's end; it may be gone then. blocking_fail: with the client's text. */
void blocking_done(struct job *);
void blocking_fail(struct job *, int status);
/* blocking_no_place - the caller gave no place for the lock, or what it wants: INVAL, and the text. */
int blocking_no_place(const char *what, char *error, size_t error_size);
/* blocking_on_wake - runs the jobs, in the loop. blocking_take_jobs: those that wait. */
void blocking_on_wake(int fd, short what, void *blocking);
struct job *blocking_take_jobs(quorlock_blocking *);
