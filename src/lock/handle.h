/* SPDX-License-Identifier: BSD-3-Clause */
/* handle.h - the caller's handle of a lock: its share of a claim, and the callbacks that are due to it */
#pragma once

#include "lock/claim.h"

/* All locks of one client. */
struct locks {
    struct runtime *runtime;
    struct keylists keylists;
    struct claims claims;
    struct list handles;
    struct list completed; /* handles with callbacks that are due without a core */
    struct list lost;      /* handles whose locks were lost at rest, for want of memory */
    struct turn turn;
    size_t ready_budget, completed_budget; /* callbacks left for this turn */
    size_t releases;                       /* of all handles, whose callbacks have not run */
    struct node_observer observer;
    char token[CLAIM_OWNER_SIZE]; /* what quorlock_token returned last */
};

/* A hold that was given back while its owner has others. */
struct given_back {
    struct link link;
    struct lock_callback callback;
    bool expired;
};

/* The acquire or extend in flight. */
enum operation { OPERATION_NONE, OPERATION_ACQUIRE, OPERATION_EXTEND };

/* Of a handle that has an owner, whose holds nest. */
struct nest {
    struct list given_back; /* callbacks that no core knows */
    struct list spare;      /* one for each hold, so that it can always be given back */
};

struct quorlock {
    struct locks *all;
    struct keylist *keylist;
    struct link in_all, in_share;
    struct link in_completed; /* or, where lost_at_rest, in lost */
    struct link turn;         /* in its key list's wait queue, or among a claim's pending holds */
    struct waker waker;       /* the wait bound, while another handle asks the nodes; or of the rest */
    struct named_owner *named;
    struct claim *claim;        /* its own; NULL until it is needed */
    struct claim *held;         /* of which it has a share */
    struct claim *pending_on;   /* of which it is a pending hold */
    struct core_rest *rest;     /* stands for the claim while the lock rests; then held is NULL */
    struct applicant applicant; /* of the first attempt, before there is a claim; or of the rest */
    uint32_t holds;
    uint32_t releases; /* whose callbacks have not run */
    struct lock_callback operation_ended;
    struct nest *nest; /* NULL: no owner */
    quorlock_lost_cb lost;
    void *lost_arg;
    struct terms *terms;
    const char *why; /* the reason, where it is not in the votes; else NULL */
    uint32_t pins;   /* callbacks of it on the stack */
    enum operation operation : 8;
    uint8_t seen;           /* what stood in the way before, while it waits for room: bits of enum core_seen */
    bool acquire_completed; /* without a core; the callback is due */
    int acquired_status;
    bool lost_at_rest; /* and not told so yet */
    bool freed;        /* the handle is dead; its memory goes when nothing is owed to it */
};

/* handle_rests - it holds the keys, or lost them, and a record stands for its claim. */
static inline bool handle_rests(const struct quorlock *lock)
{
    return lock->rest != NULL && lock->held == NULL;
}

/* handle_share - the handle holds the claim, once more. handle_unshare: so many times less. */
void handle_share(struct quorlock *, struct claim *);
void handle_unshare(struct quorlock *, uint32_t holds);
/* handle_ask - its claim, made where it has none, begins to ask; see claim_acquire. Where it has none, and the nodes
 * have no room, the handle waits for that first. 0 or a status. handle_asks: its claim asks the nodes for it.
 * handle_waits_for_room: it has no claim yet. handle_begin_admitted: there is room; see struct admission.
 * handle_stop_waiting: neither for room nor for its wait bound. */
int handle_ask(struct quorlock *, bool behind, bool promised, uint32_t seen);
bool handle_asks(const struct quorlock *);
bool handle_waits_for_room(const struct quorlock *);
bool handle_begin_admitted(struct quorlock *);
void handle_stop_waiting(struct quorlock *);
/* handle_valid_ms - validity left then. */
uint32_t handle_valid_ms(const struct quorlock *, uint64_t now_us);
/* handle_complete_acquire - ends an acquire without a core; the callback follows from the loop. why: a literal,
 * or NULL where the votes say it. handle_complete_release: the same for one hold of several; takes a spare. */
void handle_complete_acquire(struct quorlock *, int status, const char *why);
void handle_complete_release(struct quorlock *, const struct lock_callback *);
/* handle_fail - notes the text for a call that fails, and returns the status. */
int handle_fail(struct quorlock *, int status, const char *why);
/* handle_reap - frees a freed handle once nothing is owed to it. handle_destroy: frees it, whatever is owed. */
void handle_reap(struct quorlock *);
void handle_destroy(struct quorlock *);
