/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop.h - a client on any event loop
 *
 * struct quorlock_loop is a table of functions by which the library uses an event loop: it watches descriptors, and
 * sets timers and tasks. quorlock/adapters/ has such tables for libevent, libuv, sd-event, GLib and epoll. The manual
 * explains how to write another one: quorlock_client_new_on_loop(3).
 *
 * The library
 * - calls these functions in the client's thread only: from inside functions that the caller calls, and from inside
 *   callbacks of the loop;
 * - frees each object once, and a watch before it closes the descriptor; a descriptor has at most one watch;
 * - has freed everything when the close of the client is reported, or quorlock_client_new_on_loop() has failed.
 *
 * The loop
 * - calls back in that thread, one callback after the other, and never from inside one of these functions; if it is run
 *   inside a callback, callbacks may come from there too;
 * - lets a callback change, stop or free any object, also its own, and close a descriptor and watch its number again;
 * - does not call back an object that was stopped or freed, even if it was ready before.
 */
#ifndef QUORLOCK_LOOP_H
#define QUORLOCK_LOOP_H

#include <quorlock/quorlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bits. */
#define QUORLOCK_LOOP_READ  1u
#define QUORLOCK_LOOP_WRITE 2u

/* All functions are required. The struct is copied; the object behind arg must stay until the close of the client is
 * reported. `of` is handed back to the callback. */
struct quorlock_loop {
    size_t size;
    void *arg; /* the first argument of the functions that make an object */

    /* A watch of a nonblocking descriptor, which belongs to the library. Call ready() with the wanted events that have
     * occurred, again while they last. An error or a hang-up counts as all wanted events. A new watch wants none. NULL
     * or -1: out of memory; to want fewer events never fails. */
    void *(*watch_new)(void *arg, int fd, void (*ready)(void *of, unsigned events), void *of);
    int (*watch_set)(void *watch, unsigned events);
    void (*watch_free)(void *watch);

    /* Call fire() once, after that time or a little earlier; a loop that counts milliseconds rounds up. Setting a timer
     * again moves it. NULL or -1: out of memory. Whether a lock is held does not depend on a timer. */
    void *(*timer_new)(void *arg, void (*fire)(void *of), void *of);
    int (*timer_set)(void *timer, uint64_t after_us);
    void (*timer_stop)(void *timer);
    void (*timer_free)(void *timer);

    /* After task_run the loop does not sleep before it has called run() once, however often task_run was called. It
     * should call run() after the callbacks that are ready, so that requests leave together. NULL: out of memory. */
    void *(*task_new)(void *arg, void (*run)(void *of), void *of);
    void (*task_run)(void *task);
    void (*task_stop)(void *task);
    void (*task_free)(void *task);
};

/* quorlock_client_new_on_loop - make a client, as quorlock_client_new, on that loop. Errors: as there; also INVAL if
 * the loop lacks a function, or has a member that this version does not know. */
QUORLOCK_API int quorlock_client_new_on_loop(quorlock_client **ret, const struct quorlock_loop *loop,
                                             const struct quorlock_client_options *options,
                                             struct quorlock_error *error);

#ifdef __cplusplus
}
#endif
#endif
