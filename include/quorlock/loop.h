/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop.h - a client on any event loop
 *
 * The library asks a loop for three things: to watch descriptors, timers, and tasks that run soon. struct
 * quorlock_loop is the table of functions that does these with one loop. quorlock/adapters/ has such tables for
 * libevent, libuv, sd-event, GLib and bare epoll. quorlock_client_new() is libevent's by itself.
 *
 * What the library promises to a loop:
 *
 * - Threads. It calls these functions only from inside its own functions that the caller calls, and from inside the
 *   callbacks that the loop runs: all of this is in the client's thread, which is the one that runs the loop.
 * - Lifetime. Each thing that it made it frees once, and does not use it again. It frees a watch before it closes the
 *   descriptor, and has at most one watch for a descriptor. When quorlock_client_close() reports its end, or
 *   quorlock_client_new_on() has failed, everything is freed: from then on it calls none of these functions.
 *
 * What the library asks of a loop:
 *
 * - Callbacks come from the loop, one after the other in that thread, and never from inside one of these functions.
 * - A callback may do anything with any watch, timer or task of the loop: change it, stop it, free it, also the one
 *   that it was called for, and may close the descriptor and watch its number anew.
 * - What is freed, stopped or not wanted any more is not called again, not even where it was ready before.
 * - Where the loop runs a loop inside a callback, callbacks may come from there, too.
 */
#ifndef QUORLOCK_LOOP_H
#define QUORLOCK_LOOP_H

#include <quorlock/quorlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What C does by itself, and C++ wants to be told: for the adapters. */
#ifdef __cplusplus
#define quorlock_cast(type, value) static_cast<type>(value)
#else
#define quorlock_cast(type, value) ((type)(value))
#endif

/* Bits. */
#define QUORLOCK_LOOP_READ  1u
#define QUORLOCK_LOOP_WRITE 2u

/* All functions are needed. It is copied, with arg, which must stay until the close of the client is reported. In
 * each callback `of` is what the same name was given. */
struct quorlock_loop {
    size_t size;
    void *arg; /* the loop */

    /* A descriptor. ready() is told which of the wanted events are there, again and again while they are; an error or
     * a hang-up is every event that is wanted. At first, and after watch_set with 0, none is. NULL, or -1 from
     * watch_set: out of memory; wanting less never fails. The descriptor is nonblocking, and stays the library's. */
    void *(*watch_new)(void *arg, int fd, void (*ready)(void *of, unsigned events), void *of);
    int (*watch_set)(void *watch, unsigned events);
    void (*watch_free)(void *watch);

    /* A timer fires once, after so many microseconds or a little earlier; a loop that counts milliseconds rounds up.
     * Setting it again moves it. NULL or -1: out of memory. Those deadlines that decide whether a lock is held do not
     * depend on it. */
    void *(*timer_new)(void *arg, void (*fire)(void *of), void *of);
    int (*timer_set)(void *timer, uint64_t after_us);
    void (*timer_stop)(void *timer);
    void (*timer_free)(void *timer);

    /* A task. After task_run the loop does not sleep before run() was called, once, however often task_run was
     * called meanwhile. It should come behind what is ready already: then requests leave together. NULL: out of
     * memory. */
    void *(*task_new)(void *arg, void (*run)(void *of), void *of);
    void (*task_run)(void *task);
    void (*task_stop)(void *task);
    void (*task_free)(void *task);
};

/* quorlock_client_new_on - as quorlock_client_new, on that loop. Further errors: INVAL where the loop has not all of
 * its functions, or has what this library does not know. */
QUORLOCK_API int quorlock_client_new_on(quorlock_client **ret, const struct quorlock_loop *loop,
                                        const struct quorlock_client_options *options);

#ifdef __cplusplus
}
#endif
#endif
