/* SPDX-License-Identifier: BSD-3-Clause */
/* blocking_loop.h - the blocking API: its loop's thread, and the queue of jobs for that thread */
#pragma once

#include <quorlock/blocking.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "api/blocking_events.h"
#include "base/expiry.h"
#include "base/list.h"
#include "base/system.h"

/* A call for the loop's thread. A call that passes more than its handle has a struct of its own, which begins with the
 * job and goes on with the arguments. Members that a job does not need are zero. */
struct job {
    struct job *next;
    void (*run)(struct job *);
    quorlock_blocking *blocking;
    quorlock_blocking_lock *lock;
    quorlock_blocking_candidate *candidate;
    quorlock_blocking_cb cb; /* runs at the end */
    void *cb_arg;
    struct blocking_event *event; /* or comes at the end; both NULL: a thread waits for the end */
    pthread_cond_t done_cond;
    bool done;
    bool cancelable; /* a cancel of the lock ends it, too, if the loop has not run it */
    bool withdrawn;  /* canceled, or its lock or candidate freed, before the loop ran it */
    struct quorlock_blocking_result result;
};

/* Read by any thread without the mutex. In a child of fork() it is zeroed, if the system has such memory. */
struct blocking_shown {
    atomic_int here; /* 1 in the process that opened the client */
    struct expiry_clock clock;
};

/* It lives until it is closed and all its handles are freed: a call on a handle must find out that the client is
 * closed. The loop and its client end with the close. */
struct quorlock_blocking {
    atomic_size_t n_users; /* 1 until it is closed, and 1 for each handle */
    struct blocking_shown *shown;
    bool wiped; /* *shown is zeroed in a child; else compare pid */
    pid_t pid;
    struct system system; /* its clocks, for any thread */

    struct event_base *base;
    struct event *wake;
    int wake_fd;
    pthread_t thread;
    /* The loop's thread only. */
    quorlock_client *client;
    struct list locks, candidates, observers;
    struct job *taken; /* jobs that were taken from the queue and not run yet */
    bool shut;         /* by a shutdown: nothing new begins */

    pthread_mutex_t mutex;
    pthread_cond_t no_callers;
    struct job *first, *last;
    size_t n_callers;
    bool closed; /* the loop takes no jobs any more */
    struct blocking_events events;
};

/*
 * blocking_call        - hand the job to the loop, wait for its end, and return its status; STATE in the loop's thread
 * blocking_do_anywhere - do the same; in the loop's thread run the job at once
 *
 * Errors, without running the job: INVAL (no client), CLOSED (it is closed, or this is a child of fork()).
 */
int blocking_call(struct job *);
int blocking_do_anywhere(struct job *);
/* blocking_start - put a copy of the job, which has a cb or an event and no arguments, into the queue, and return.
 * Errors, without calling cb: INVAL, CLOSED, NOMEM. */
int blocking_start(const struct job *);
/* blocking_withdraw - withdraw jobs of the lock or candidate that have not been run: all, or only those that a cancel
 * ends. They will not touch it, and end with CANCELED. Return true if there was any. The loop's thread only. */
bool blocking_withdraw(quorlock_blocking *, const void *handle, bool all);
/*
 * blocking_done - end the job; it may not exist any more then
 * blocking_fail - end the job with that status and the text of the client's error
 */
void blocking_done(struct job *);
void blocking_fail(struct job *, int status);
/*
 * blocking_refuse     - give the job that status and text; return the status
 * blocking_refuse_new - do the same with CLOSED after a shutdown, when nothing new may begin; else return 0
 */
int blocking_refuse(struct job *, int status, const char *text);
int blocking_refuse_new(struct job *);
/*
 * blocking_here  - return whether this process opened the client, not a parent of it
 * blocking_join  - count one more user
 * blocking_leave - count one user less; the last one frees it
 */
bool blocking_here(const quorlock_blocking *);
void blocking_join(quorlock_blocking *);
void blocking_leave(quorlock_blocking *);
/* blocking_valid_ms - return the validity that is left. Any thread. */
uint32_t blocking_valid_ms(quorlock_blocking *, const struct expiry *);
/* blocking_no_place - write the error that `ret` is NULL, and return INVAL; `what` names the object. */
int blocking_no_place(const char *what, char *error, size_t error_size);
/*
 * blocking_on_wake   - run all jobs; the callback of the wake event
 * blocking_take_jobs - move all jobs from the queue to `taken`
 * blocking_next_job  - remove and return the first job of `taken`, or NULL
 *
 * The loop's thread only.
 */
void blocking_on_wake(int fd, short what, void *blocking);
struct job *blocking_next_job(quorlock_blocking *);
void blocking_take_jobs(quorlock_blocking *);
