/* SPDX-License-Identifier: BSD-3-Clause */
/* blocking_loop.h - the loop's thread of the blocking facade, and the queue of jobs for it */
#pragma once

#include <quorlock/blocking.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/expiry.h"
#include "base/list.h"
#include "base/system.h"

struct job {
    struct job *next;
    void (*run)(struct job *);
    int (*start)(quorlock *, quorlock_cb, void *); /* what run_operation starts; NULL: an extend */
    quorlock_blocking *blocking;
    quorlock_blocking_lock *lock;
    quorlock_blocking_cb cb; /* its end; NULL: a thread waits for it */
    void *cb_arg;
    pthread_cond_t done_cond;
    bool done;
    bool withdrawn; /* its lock was freed, or it was canceled, before the loop came to it */
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
    int (*ask)(quorlock_client *, const char *key, quorlock_report_cb, void *);
    const char *key;
    quorlock_report_cb report;
    void *report_arg;
    const struct quorlock_metrics_options *metrics;
    char *buffer;
    size_t size, *ret_length;
    const char *user, *password;
    void *member; /* a candidate or an observer */
};

/* What any thread reads without the mutex. A child of fork() finds it zeroed, where the system has such memory. */
struct blocking_shown {
    atomic_int here; /* 1 */
    struct expiry_clock clock;
};

/*
 * It lives until it is closed and each handle of it is freed, so that a call on a handle always finds out that the
 * client is closed. What belongs to the loop ends with the close.
 */
struct quorlock_blocking {
    atomic_size_t n_users; /* who has it open, and each handle */
    struct blocking_shown *shown;
    bool wiped; /* a child finds shown zeroed; else it is told by pid */
    pid_t pid;
    struct system system; /* for its clocks, by any thread */

    struct event_base *base;
    struct event *wake;
    int wake_fd;
    pthread_t thread;
    /* The loop's thread only. */
    quorlock_client *client;
    struct list locks, candidates, observers;
    struct job *taken; /* out of the queue, and not run yet */
    bool shut;         /* nothing new begins */

    pthread_mutex_t mutex;
    pthread_cond_t no_callers;
    struct job *first, *last;
    size_t n_callers;
    bool closed; /* the loop takes no more jobs */
};

/* blocking_call - hands the job to the loop and waits for its end; its status. The loop's own thread is refused, for it
 * would wait for itself. blocking_do_anywhere: there the job is done at once. Both: INVAL without a client, and CLOSED
 * once it is closed, or in a child of fork(); the job was not run then. */
int blocking_call(struct job *);
int blocking_do_anywhere(struct job *);
/* blocking_start - puts a copy of the job, which has a cb, into the queue, and waits for nothing. Errors: as
 * blocking_call, and NOMEM; the cb is not called then. */
int blocking_start(const struct job *);
/* blocking_withdraw - in the loop's thread: what was started on the lock and has not been run will not be, nor touch
 * the lock: all of it, or acquires and extends alone. Returns whether there was any. */
bool blocking_withdraw(quorlock_blocking *, const quorlock_blocking_lock *, bool all);
/* blocking_done - the job's end; it may be gone then. blocking_fail: with the client's text. */
void blocking_done(struct job *);
void blocking_fail(struct job *, int status);
/* blocking_refuse - gives the job that status and text; returns the status. blocking_refuse_new: CLOSED where the
 * client is shut, so that nothing new begins; else 0. */
int blocking_refuse(struct job *, int status, const char *text);
int blocking_refuse_new(struct job *);
/* blocking_here - this process opened it, and not one that it was forked from. blocking_join, blocking_leave: one user
 * more, or less, for which it may be gone. */
bool blocking_here(const quorlock_blocking *);
void blocking_join(quorlock_blocking *);
void blocking_leave(quorlock_blocking *);
/* blocking_valid_ms - what is left of that validity, in any thread. */
uint32_t blocking_valid_ms(quorlock_blocking *, const struct expiry *);
/* blocking_no_place - the caller gave no place for the lock, or what it wants: INVAL, and the text. */
int blocking_no_place(const char *what, char *error, size_t error_size);
/* blocking_on_wake - runs the jobs, in the loop. blocking_next_job: the next of those that were taken out of the queue,
 * or NULL. blocking_take_jobs: adds to these what is in it. */
void blocking_on_wake(int fd, short what, void *blocking);
struct job *blocking_next_job(quorlock_blocking *);
void blocking_take_jobs(quorlock_blocking *);
