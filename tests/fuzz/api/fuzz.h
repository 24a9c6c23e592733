/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz.h - clients, handles and calls on them, and what the header promises of them, checked throughout
 *
 * Every call of the API is drawn from the seed: which handle, what is asked, and what is done inside the
 * callback that answers. Checked are:
 *
 * - a start that returned 0 is answered exactly once, from the loop, never from inside the call, and within its
 *   bound; one that returned anything else never is
 * - a loss callback comes only to a handle that holds, once, and never after its release
 * - at the callback of a grant no other handle believes to hold one of its keys, but of the same owner, a reader
 *   beside a reader, or one with another slot of a name; and a writer's fencing token is larger than all before
 * - after close all memory is back
 */
#ifndef TESTS_FUZZ_API_FUZZ_H
#define TESTS_FUZZ_API_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quorlock/quorlock.h>

#include "draw.h"
#include "memory.h"

#define FUZZ_CLIENTS      4u
#define FUZZ_KEYS         24u /* exclusion is checked on these */
#define FUZZ_NAMES        3u  /* the first of them, which have permits: as many as FUZZ_PERMITS says */
#define FUZZ_SLOTS        4u  /* at most */
#define FUZZ_PERMITS(key) (2u + (key))
#define FUZZ_FREE_KEYS    4u /* these are broken by force, too */
#define FUZZ_KEYS_AT_ONCE 4u
#define FUZZ_LEASE_MAX_MS 2000u
#define FUZZ_NODES        3u

struct event_base;
struct fuzz;

struct fuzz_client {
    struct fuzz *fuzz;
    quorlock_client *client; /* NULL: the place is free */
    struct memory memory;
    bool closing;
    uint64_t closing_since_us;
    uint32_t serial;
};

struct fuzz_handle {
    struct fuzz *fuzz;
    struct fuzz_client *client;
    quorlock *lock; /* NULL: freed, or its client closed */
    struct fuzz_handle *next;
    uint32_t keys[FUZZ_KEYS_AT_ONCE], n_keys;
    uint64_t shared; /* a bit for each of them */
    uint32_t permits, slot;
    int owner; /* -1: none */
    uint32_t wait_ms;
    bool fencing;
    uint32_t holds; /* granted, and not released or lost */
    bool lost;      /* this grant was lost */
};

enum fuzz_kind { FUZZ_ACQUIRE, FUZZ_EXTEND, FUZZ_RELEASE, FUZZ_REPORT, FUZZ_EXAMINE, FUZZ_KINDS };

/* One start of an operation. */
struct fuzz_op {
    struct fuzz *fuzz;
    struct fuzz_client *client;
    struct fuzz_handle *handle; /* NULL: of the client */
    struct fuzz_op *next;
    enum fuzz_kind kind;
    uint32_t client_serial;
    bool promised, inside;
    uint32_t calls;
    uint64_t begun_us, bound_us; /* UINT64_MAX: none */
    struct draw draw;            /* what is done in its callback */
};

struct fuzz_counts {
    uint64_t calls, callbacks, refused, grants, losses, closes, frees, failed_allocations, lines, bytes_read;
    uint64_t statuses[16];
};

struct fuzz {
    struct event_base *base;
    uint64_t seed;
    uint32_t round;
    const char *nodes[FUZZ_NODES];
    /* What the present round is like. */
    bool spoiled;   /* replies are flipped: exclusion and tokens prove nothing */
    bool breaks;    /* some keys are deleted by force */
    bool log_calls; /* the log hook frees and cancels, too */
    uint32_t fail_once_in;
    int dialect;
    bool ended;    /* nothing new is begun, also inside callbacks */
    bool troubled; /* a node did not answer in time, or we stood still: on a busy machine that happens */

    struct fuzz_client clients[FUZZ_CLIENTS];
    uint32_t client_count;
    struct fuzz_handle **slots;
    uint32_t n_slots;
    struct fuzz_handle *handles; /* all of the round */
    struct fuzz_op *ops;         /* all unanswered ones, and those that were refused */
    uint64_t fences[FUZZ_KEYS][FUZZ_SLOTS];
    uint64_t alive_us; /* time in which the loop ran */
    uint64_t call_count;
    uint32_t depth;
    const char *inside; /* the start function that runs */
    struct fuzz_counts counts;
};

/* fuzz_fail - prints what does not hold, with the seed and round that show it, and ends the process. */
__attribute__((noreturn, format(printf, 2, 3))) void fuzz_fail(const struct fuzz *, const char *format, ...);

void fuzz_begin_round(struct fuzz *, uint32_t round);
/* fuzz_call - the next call that the seed has. */
void fuzz_call(struct fuzz *);
/* fuzz_check - bounds, exclusion; every few milliseconds, with the time since the last. */
void fuzz_check(struct fuzz *, uint64_t passed_us);
/* fuzz_free_all - frees every handle; fuzz_is_quiet: what the clients count has come to nothing. */
void fuzz_free_all(struct fuzz *);
bool fuzz_is_quiet(const struct fuzz *);
/* fuzz_close_all - closes every client; fuzz_is_closed: all of them are closed. */
void fuzz_close_all(struct fuzz *);
bool fuzz_is_closed(const struct fuzz *);
/* fuzz_end_round - every promise was kept; frees what was kept of the round. */
void fuzz_end_round(struct fuzz *);

#endif
