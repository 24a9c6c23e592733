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
    struct list completed;  /* handles with callbacks that are due without a core */
    struct list lost;       /* handles whose locks were lost at rest, for want of memory */
    struct spare blocks[2]; /* for struct pending and for records; the second with fencing */
    struct turn turn;
    size_t ready_budget, completed_budget; /* callbacks left for this turn */
    size_t releases;                       /* of all handles, whose callbacks have not run */
    struct node_observer observer;
    char token[REQUEST_OWNER_SIZE]; /* what quorlock_token returned last */
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
    struct quorlock *lock;
    struct named_owner *owner;
    struct link in_share;   /* where held */
    struct list given_back; /* callbacks that no core knows */
    struct list spare;      /* one for each hold, so that it can always be given back */
};

/* What a handle needs while an acquire or an extend is in flight. */
struct pending {
    struct quorlock *lock;
    struct link turn; /* in its key list's wait queue, or among a claim's pending holds */
    struct lock_callback ended;
    struct claim *pending_on; /* of which it is a pending hold */
    const char *why;          /* the reason, where it is not in the votes; else NULL */
};

struct quorlock {
    struct keylist *keylist;
    struct link in_all;
    union {
        struct applicant applicant; /* without a nest: of the first attempt, before there is a claim; or of the rest */
        struct link in_completed;   /* or, where lost_at_rest, in locks->lost; it does not wait for room then */
    };
    struct waker waker;  /* the wait bound, while no claim asks the nodes for it; or of the rest */
    struct claim *claim; /* its own; NULL until it is needed */
    struct claim *held;  /* of which it has a share */
    /* One block, from the begin of an acquire until that has failed, or the keys are given back. */
    union {
        struct pending *pending; /* while an operation is in flight */
        struct core_rest *rest;  /* stands for the claim while the lock rests; then held is NULL */
    };
    struct nest *nest; /* NULL: no owner */
    quorlock_lost_cb lost;
    void *lost_arg;
    struct terms *terms;
    uint32_t holds;
    uint32_t releases; /* whose callbacks have not run */
    uint16_t pins;     /* callbacks of it on the stack */
    int16_t acquired_status;
    enum operation operation : 8;
    bool acquire_completed : 1; /* without a core; the callback is due */
    bool freed : 1;             /* the handle is dead; its memory goes when nothing is owed to it */
    bool rests : 1;
    bool lost_at_rest : 1; /* and not told so yet */
    bool dropped : 1;      /* released at rest without memory; the callback, in pending, is due */
    uint8_t seen : 2;      /* what stood in the way before, while it waits for room: bits of enum core_seen */
};

static inline struct locks *locks_of(const struct quorlock *lock)
{
    return CONTAINER_OF(lock->keylist->all, struct locks, keylists);
}

/* handle_owner - NULL: none. */
static inline struct named_owner *handle_owner(const struct quorlock *lock)
{
    return lock->nest != NULL ? lock->nest->owner : NULL;
}

/* handle_blocks - none yet, for locks with fencing or without. */
struct spare handle_blocks(struct runtime *, bool fencing);
/* handle_begin - an operation; its block is made where there is none. 0 or NOMEM. handle_end: it is over. handle_keep:
 * gives the block back where it is not needed. */
int handle_begin(struct quorlock *, enum operation, const struct lock_callback *);
void handle_end(struct quorlock *);
void handle_keep(struct quorlock *);
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
