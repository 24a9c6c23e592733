/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * runtime.h - one client's loop: time, deadlines, the log, and callbacks that run at the top of the loop
 *
 * The layers above register a waker for each deadline, and a turn for callbacks of the user. User callbacks run
 * from a turn only, never from inside a call. Before each of them every deadline that has passed is served, and
 * turns run in the order of registration: so a process that was stopped reports its losses first.
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
    struct wheel_entry entry; /* its kind: of the function that is called, in runtime->wakes */
};

#define RUNTIME_WAKES_MAX 16

/* A layer's part in each turn of the loop. */
struct turn {
    struct link link; /* in runtime->turns */
    /* Serves what needs no user callback, and limits next() to what waits now. */
    void (*begin)(struct turn *);
    /* Runs one user callback. False: none is left in this turn. */
    bool (*next)(struct turn *);
    void (*end)(struct turn *);
    /* A user callback is due, or, while the client closes, something else that must happen before its end. */
    bool (*waits)(struct turn *, bool closing);
};

struct runtime {
    struct system system; /* with our alloc */
    struct alloc alloc;
    struct quorlock_client_options options; /* checked; nodes and error are the caller's, not kept */
    bool max_lease_given;                   /* not the default; else reports take the guards' word */
    char *key_prefix, *owner_label;
    char set[OPTIONS_SET_SIZE]; /* name of the nodes in their guards */
    char uuid[OWNER_UUID_SIZE]; /* front of our owners in the redisson dialect; else empty */
    struct clock clock;
    struct random random;
    uint64_t batch_us; /* the time of the present batch; 0: none */
    struct caller_error error;

    struct wheel deadlines;
    void (*wakes[RUNTIME_WAKES_MAX])(struct waker *);
    struct alarm *alarm; /* for the earliest deadline, and for work put off to the next turn */
    uint64_t armed_us;   /* what it is armed for; UINT64_MAX: not at all */
    struct task *at_top; /* runs the turns at the top of the loop */
    struct list turns;
    uint32_t running; /* depth of the run of the turns */

    struct list log_lines; /* that wait for the log hook */
    size_t log_lines_dropped;
    size_t log_budget; /* lines left for this turn */

    struct list observers; /* of the nodes */
    uint32_t node_changes; /* counts changes of the nodes' states, for claims that were idle meanwhile */
    bool logged_in;        /* a node has taken requests, so it accepted a login */
    uint64_t no_news;      /* hash of the reason that was logged last why there are no new credentials; 0: there are */
    size_t in_flight;      /* requests at the nodes */

    bool closing;
    uint64_t close_until_us;
    void (*ended)(void *arg); /* the client is closed, and nothing is owed any more: it frees everything */
    void *ended_arg;

    uint32_t n_nodes;
    struct tls *tls;               /* of nodes that are reached over it; NULL: there is none */
    uint8_t order[CORE_NODES_MAX]; /* of nodes, the same for all clients of the set */
    struct runtime_node *nodes;    /* nodes.h */
};

/* runtime_start - alarm and turns of a zeroed runtime with system, alloc and options. 0, or -1 out of memory or
 * of file descriptors. runtime_stop: frees them, also where they were made in part. */
int runtime_start(struct runtime *);
void runtime_stop(struct runtime *);
/*
 * runtime_read_us - the client's clock. runtime_now_us: in a batch, what it showed when that began. runtime_clock: the
 * same for the layers below. runtime_batch: begins a batch, or ends it
 *
 * Reading the clock costs more than most of what one reply brings about, so a batch of events shares one reading: the
 * replies that came with one read, the deadlines that passed, one call of the user's. No user code runs inside a
 * batch. Its time may be too early by what the batch took so far, and that is safe:
 *
 * - A command's send time is too early: its vote counts for less long.
 * - A reply's time is not before the reply came, for the batch begins behind the read: so no clock of a node seems to
 *   have stepped that did not. A loss may be noticed a batch later, but not told later, for before each user callback
 *   the clock is read again. A renewal that the nodes answered meanwhile is one: its yes says that the key was ours.
 * - Whether a grant is still good, and whether a loss comes first, is decided by a reading right before the callback,
 *   behind which nothing runs but that decision.
 *
 * So a lock that is taken and given back, among many, reads the clock four times. None of them can go: what the user
 * does in a callback may take long, so the time before it is too old for a call that is made in it, whose lease and
 * wait would be shorter, and for the next callback, also of a release, before which a loss must be told that fell due
 * meanwhile.
 */
uint64_t runtime_read_us(struct runtime *);
uint64_t runtime_now_us(struct runtime *);
uint64_t runtime_clock(void *runtime);
void runtime_batch(void *runtime, bool begins);
/* runtime_fail - notes the text for quorlock_client_error and returns the status. runtime_fail_plainly: with
 * the status' own text. */
#define runtime_fail(runtime, ...) caller_fail(&(runtime)->error, __VA_ARGS__)
int runtime_fail_plainly(struct runtime *, int status);
/* runtime_log - a log line. Like any callback the hook may call anything, so it runs from the loop, in order,
 * before the callback that the line explains. */
void runtime_log(struct runtime *, int level, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* runtime_start_waker - it has no deadline yet. runtime_stop_waker: it has none any more, and the client does not know
 * it. runtime_wake_at: moves the deadline; UINT64_MAX: none. runtime_wakes_at: when it is, or UINT64_MAX. */
void runtime_start_waker(struct runtime *, struct waker *, void (*wake)(struct waker *));
void runtime_stop_waker(struct waker *);
void runtime_wake_at(struct runtime *, struct waker *, uint64_t at_us);
static inline uint64_t runtime_wakes_at(const struct waker *waker)
{
    return waker->entry.at_us;
}
/* runtime_add_turn - registers a turn. runtime_run_soon: runs the turns at the top of the loop. */
void runtime_add_turn(struct runtime *, struct turn *);
void runtime_run_soon(struct runtime *);
/* runtime_close - ends when nothing is owed any more, or after one node timeout; runtime_extend_close begins
 * that timeout anew, for the answer to a release that was just sent. */
void runtime_close(struct runtime *, void (*ended)(void *arg), void *arg);
void runtime_extend_close(struct runtime *);
/* runtime_timeout_ms - the node timeout where no lock's lease says it. */
uint32_t runtime_timeout_ms(const struct runtime *);
uint32_t runtime_quorum(const struct runtime *);
