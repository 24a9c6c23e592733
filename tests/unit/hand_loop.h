/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hand_loop.h - a loop in the test's hands: one watch of one socket, one task, and one timer
 *
 * What the connection wants of the loop is in the struct. The loop calls back only when the test says so.
 */
#pragma once

#include <quorlock/loop.h>

#include "test.h"

struct hand_loop {
    int fd;                     /* of the socket that may be watched */
    bool no_watch, watch_fails; /* memory is out in the coming calls */
    bool no_task, no_timer, timer_fails;
    int objects; /* that have not been freed */
    unsigned watched;
    bool due;          /* the task is to run */
    bool timed;        /* the timer is set, */
    uint64_t after_us; /* so long after the call that set it */
    void (*ready)(void *, unsigned);
    void (*run)(void *);
    void (*fire)(void *);
    void *ready_of, *run_of, *fire_of;
};

/* hand_loop_functions - return its table. hand_loop_ready: these events have occurred. hand_loop_run: the task's turn.
 * hand_loop_fire: the timer's. */
struct quorlock_loop hand_loop_functions(struct hand_loop *);
void hand_loop_ready(const struct hand_loop *, unsigned events);
void hand_loop_run(struct hand_loop *);
void hand_loop_fire(struct hand_loop *);
