/* SPDX-License-Identifier: BSD-3-Clause */
/* sync_loop.h - the sync API: its loop, and the jobs that threads post for it */
#pragma once

#include <quorlock/sync.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "api/sync_events.h"
#include "base/expiry.h"
#include "base/list.h"
#include "base/system.h"

/* Who runs the loop. */
enum sync_leader {
    LEADER_NONE,   /* calls come, one at a time: the next one leads, or soon the own thread */
    LEADER_CALLER, /* a thread that calls, until its job has ended */
    LEADER_OWN     /* the client's own thread */
};

enum job_state { JOB_UNDER_WAY, JOB_AWAITED, JOB_ENDED, JOB_ABANDONED };

/* A call for the loop. A call that passes more than its handle has a struct of its own, which begins with the
 * job and goes on with the arguments. Members that a job does not need are zero. */
struct job {
    struct job *next;
    void (*run)(struct job *);
    quorlock_sync_client *sync;
    quorlock_sync_lock *lock;
    quorlock_sync_candidate *candidate;
    quorlock_sync_result_cb cb; /* runs at the end */
    void *cb_arg;
    struct sync_event *event; /* or comes at the end; both NULL: a thread waits for the end */
    atomic_int state;         /* enum job_state, where a thread waits; that thread sleeps on it */
    bool tells;               /* from it on a callback of the caller may run: until sync_tell_end */
    bool posted;              /* else it runs inside a callback, and no thread waits for it */
    bool cancelable;          /* a cancel of the lock ends it, too, if the loop has not run it */
    bool withdrawn;           /* canceled, or its lock or candidate freed, before the loop ran it */
    struct quorlock_sync_result result;
};

/* Read by any thread without the mutex. In a child of fork() it is zeroed, if the system has such memory. */
struct sync_shown {
    atomic_int here; /* 1 in the process that opened the client */
    struct expiry_clock clock;
};

/* It lives until it is closed and all its handles are freed: a call on a handle must find out that the client is
 * closed. The loop and its client end with the close. */
struct quorlock_sync_client {
    atomic_size_t n_users; /* 1 until it is closed, and 1 for each handle */
    struct sync_shown *shown;
    bool wiped; /* *shown is zeroed in a child; else compare pid */
    pid_t pid;
    struct system system; /* its clocks, for any thread */

    struct event_base *base;
    struct event *wake;
    int wake_fd;
    pthread_t thread;
    /* Only the thread that leads. */
    quorlock_client *client;
    struct list locks, candidates, observers;
    struct job *taken; /* jobs that were taken from `posted` and not run yet */
    size_t n_taken;    /* jobs that were taken and have not ended */
    struct job *ended; /* jobs that have ended, whose threads are woken at the end of the turn; the last first */
    bool keeps_log;    /* for events, because the caller has no log hook */
    bool shut;         /* by a shutdown: nothing new begins */
    bool served;       /* a thread's job has ended in this turn */
    bool over;         /* the client is closed: this is the last turn */

    /* Any thread. */
    _Atomic(struct job *) posted; /* jobs that the loop has not taken, the last first; &sync_closed: it takes none */
    atomic_int leader;            /* enum sync_leader */
    atomic_uint n_leads;          /* how often a caller began to lead */
    atomic_bool wanted;           /* the own thread wants to lead */
    atomic_uint n_own_calls;      /* how often the own thread was called; it sleeps on this */
    atomic_uint n_told;           /* reasons for which only the own thread leads: callbacks of the caller may run */
    int level;                    /* guest.h, of the thread that opened the client */
    atomic_bool sleeps;           /* the loop does not look at `posted` before it is woken */
    atomic_uint n_callers;        /* calls that may still use the client, and SYNC_CLOSING */
    struct sync_events events;
    pthread_mutex_t mutex; /* guards the state of candidates */
};

/* In n_callers: a thread waits until there is no call any more. */
#define SYNC_CLOSING 0x80000000u

extern struct job sync_closed; /* stands for jobs that are refused */

/*
 * sync_call        - hand the job to the loop, wait for its end, and return its status; STATE in the loop's thread
 * sync_do_anywhere - do the same; in the loop's thread run the job at once
 *
 * Errors, without running the job: INVAL (no client), CLOSED (it is closed, or this is a child of fork()).
 */
int sync_call(struct job *);
int sync_do_anywhere(struct job *);
/*
 * sync_call_for - do as sync_call, but wait about so long at most, and return whether the job has ended; it comes from
 *                 malloc(). Called again it only goes on waiting
 * sync_abandon  - free such a job, at once or when it has ended
 */
bool sync_call_for(struct job *, uint32_t most_ms);
void sync_abandon(struct job *);
/* sync_start - put a copy of the job, which has a cb or an event and no arguments, into the queue, and return.
 * Errors, without calling cb: INVAL, CLOSED, NOMEM. */
int sync_start(const struct job *);
/* sync_withdraw - withdraw jobs of the lock or candidate that have not been run: all, or only those that a cancel
 * ends. They will not touch it, and end with CANCELED. Return true if there was any. In the loop only. */
bool sync_withdraw(quorlock_sync_client *, const void *handle, bool all);
/*
 * sync_done - end the job; it may not exist any more then
 * sync_fail - end the job with that status and the text of the client's error
 */
void sync_done(struct job *);
void sync_fail(struct job *, int status);
/*
 * sync_refuse     - give the job that status and text; return the status
 * sync_refuse_new - do the same with CLOSED after a shutdown, when nothing new may begin; else return 0
 */
int sync_refuse(struct job *, int status, const char *text);
int sync_refuse_new(struct job *);
/*
 * sync_here  - return whether this process opened the client, not a parent of it
 * sync_join  - count one more user
 * sync_leave - count one user less; the last one frees it
 * sync_add_handle - count a new lock, candidate or observer; return whether less of the log is worth keeping now
 */
bool sync_here(const quorlock_sync_client *);
void sync_join(quorlock_sync_client *);
void sync_leave(quorlock_sync_client *);
bool sync_add_handle(quorlock_sync_client *);
/*
 * sync_begin_call    - keep what a call of this client uses, until sync_end_call
 * sync_await_no_call - wait until no call uses it
 */
void sync_begin_call(quorlock_sync_client *);
void sync_end_call(quorlock_sync_client *);
void sync_await_no_call(quorlock_sync_client *);
/* sync_valid_ms - return the validity that is left. Any thread. */
uint32_t sync_valid_ms(quorlock_sync_client *, const struct expiry *);
/* sync_no_place - report that `ret` is NULL, and return INVAL; `what` names the object. */
int sync_no_place(const char *what, struct quorlock_error *);
/* sync_tell_begin, _end - begin and end a time in which a callback of the caller may run, beside those of jobs. */
void sync_tell_begin(quorlock_sync_client *);
void sync_tell_end(quorlock_sync_client *);
/* sync_loop_own - lead whenever nobody else does, until the end; what the own thread does. */
void sync_loop_own(quorlock_sync_client *);
/*
 * sync_on_wake   - run all jobs; the callback of the wake event
 * sync_loop_end  - refuse all jobs from now on, and those that were not run
 *
 * In the loop only.
 */
void sync_on_wake(int fd, short what, void *sync);
void sync_loop_end(quorlock_sync_client *);
