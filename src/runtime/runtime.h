/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * runtime.h - one client's loop: time, deadlines, the log, and callbacks that run at the top of the loop
 *
 * The layers above register a waker for each deadline, and a turn for user callbacks. User callbacks run from a turn
 * only, never from inside a call. Before each user callback every deadline that has passed is served. Turns run in the
 * order of registration. So a process that was suspended reports its losses first.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/random.h"
#include "base/system.h"
#include "base/wheel.h"
#include "core/limits.h"
#include "runtime/options.h"
#include "runtime/owner.h"

struct runtime;
struct runtime_node;
struct tls;

/* Something with a deadline. */
struct waker {
    struct wheel_entry entry; /* entry.kind: the place of the function in runtime->wakes */
};

#define RUNTIME_WAKES_MAX 16

/* A layer's part in each turn of the loop. */
struct turn {
    struct link link; /* in runtime->turns */
    /* Does the work that needs no user callback, and limits next() to the callbacks that are due now. */
    void (*begin)(struct turn *);
    /* Runs one user callback. Returns false if none is left in this turn. */
    bool (*next)(struct turn *);
    void (*end)(struct turn *);
    /* Tells whether a user callback is due. closing: or other work that must be done before the client ends. */
    bool (*waits)(struct turn *, bool closing);
};

struct runtime {
    struct system system; /* with our alloc */
    struct alloc alloc;
    struct quorlock_client_options options; /* checked; its nodes and error belong to the caller and are not kept */
    bool max_lease_given;                   /* otherwise reports use the max_lease of the guards */
    char *key_prefix, *owner_label;
    size_t prefix_length;
    char set[OPTIONS_SET_SIZE]; /* name of the set of nodes, in their guards */
    char uuid[OWNER_UUID_SIZE]; /* first part of our owners in the redisson dialect; else empty */
    struct clock clock;
    struct random random;
    uint64_t batch_us; /* the time of the present batch; 0: none */
    struct quorlock_error error;

    struct wheel deadlines;
    void (*wakes[RUNTIME_WAKES_MAX])(struct waker *);
    struct alarm *alarm; /* for the earliest deadline, and for callbacks that wait for the next turn */
    uint64_t armed_us;   /* the time of the alarm; UINT64_MAX: not armed */
    struct task *at_top; /* runs the turns at the top of the loop */
    struct list turns;
    uint32_t running; /* depth of nested runs of the turns */

    int log_from;          /* the least level that is logged */
    struct list log_lines; /* waiting for the log hook */
    size_t log_lines_dropped;
    size_t log_budget; /* lines left for this turn */

    struct list observers; /* of the nodes */
    struct list logins;    /* links that wait for credentials from the program */
    uint32_t node_changes; /* counts changes of the nodes' states, for claims that were idle meanwhile */
    bool logged_in;        /* a node has taken requests, so it accepted a login */
    uint64_t buggify;      /* a seed: faults are made up; 0: none */
    uint64_t no_news;      /* hash of the latest logged reason for missing new credentials; 0: none is missing */
    size_t in_flight;      /* requests at the nodes */

    bool closing;
    uint64_t close_until_us;
    void (*ended)(void *arg); /* called when the client is closed and nothing is owed: frees everything */
    void *ended_arg;

    uint32_t n_nodes;
    struct tls *tls;               /* NULL: no address asks for TLS */
    uint8_t order[CORE_NODES_MAX]; /* the nodes in an order that all clients of the set share */
    struct runtime_node *nodes;    /* nodes.h */
};

/* runtime_start - start a zeroed runtime that has system, alloc and options. Returns 0, or -1 out of memory or of file
 * descriptors. */
int runtime_start(struct runtime *);
/* runtime_stop - free what runtime_start made, even if it failed. */
void runtime_stop(struct runtime *);
/*
 * Time. Reading the clock costs more than most of the work for one reply. So a batch of events shares one reading: the
 * replies of one read, the deadlines that have passed, or one call by the user. No user code runs inside a batch. The
 * time of a batch may be too early by the time that the batch has taken so far. This is safe:
 *
 * - A command's send time is too early, so its vote counts for a shorter time.
 * - A reply's time is not before the reply came, because the batch begins after the read. So no step of a node's clock
 *   is found that did not happen.
 * - A loss may be noticed one batch later, but its callback does not run later, because the clock is read again before
 *   each user callback. A renewal that the nodes answered meanwhile counts: its yes proves that the nodes had the key.
 * - Whether a grant is still valid, and whether a loss comes first, is decided by a reading right before the callback.
 *
 * So one acquire and release, among many, reads the clock four times. No reading can be saved, for a user callback may
 * take long. A call from a callback needs the time after that: otherwise its lease and its wait would be shorter. The
 * next callback needs it, too, for a loss that has become due meanwhile must be reported first.
 *
 * runtime_read_us - read the client's clock.
 * runtime_now_us - return the time of the present batch, or read the clock.
 * runtime_clock - the same, for the layers below.
 * runtime_batch - begin a batch, or end it.
 */
uint64_t runtime_read_us(struct runtime *);
uint64_t runtime_now_us(struct runtime *);
uint64_t runtime_clock(void *runtime);
void runtime_batch(void *runtime, bool begins);
/* runtime_fail - keep the text for quorlock_client_error, and return the status. */
#define runtime_fail(runtime, ...) caller_fail(&(runtime)->error, __VA_ARGS__)
/* runtime_fail_plainly - the same with the status' own text. */
int runtime_fail_plainly(struct runtime *, int status);
/* runtime_log - queue a log line. The hook may call anything, like any callback, so it runs from the loop, in order,
 * before the callback that the line explains. */
void runtime_log(struct runtime *, int level, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* runtime_start_waker - make a waker without a deadline. */
void runtime_start_waker(struct runtime *, struct waker *, void (*wake)(struct waker *));
/* runtime_stop_waker - drop the deadline, so that the waker's memory may be freed. */
void runtime_stop_waker(struct waker *);
/* runtime_wake_at - set the deadline; UINT64_MAX: none. */
void runtime_wake_at(struct runtime *, struct waker *, uint64_t at_us);
/* runtime_wakes_at - return the deadline, or UINT64_MAX. */
static inline uint64_t runtime_wakes_at(const struct waker *waker)
{
    return waker->entry.at_us;
}
/* runtime_add_turn - register a turn. */
void runtime_add_turn(struct runtime *, struct turn *);
/* runtime_run_soon - run the turns at the top of the loop. */
void runtime_run_soon(struct runtime *);
/* runtime_close - call `ended` when nothing is owed any more, or after one node timeout. */
void runtime_close(struct runtime *, void (*ended)(void *arg), void *arg);
/* runtime_extend_close - begin that timeout anew, for the answer to a release that was just sent. */
void runtime_extend_close(struct runtime *);
/* runtime_timeout_ms - return the node timeout for requests that belong to no lock. */
uint32_t runtime_timeout_ms(const struct runtime *);
/* runtime_quorum - return the number of nodes that form a quorum. */
uint32_t runtime_quorum(const struct runtime *);
