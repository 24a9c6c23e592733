/* SPDX-License-Identifier: BSD-3-Clause */
/* handle.h - the caller's handle of a lock: its share of a claim, and the callbacks that are due to it */
#pragma once

#include <assert.h>

#include "base/expiry.h"
#include "lock/claim.h"

/* All locks of one client. */
struct locks {
    struct runtime *runtime;
    struct keylists keylists;
    struct claims claims;
    struct list handles;
    struct list completed; /* handles with callbacks that are due without a core */
    struct list lost;      /* compact handles whose locks were lost, for want of memory to renew them */
    struct turn turn;
    size_t ready_budget, completed_budget; /* callbacks left for this turn */
    size_t releases;                       /* of all handles: whose callbacks have not run */
    struct node_observer observer;
    char token[REQUEST_OWNER_SIZE]; /* what quorlock_lock_token returned last */
};

/* A hold that was released while its owner has others. */
struct given_back {
    struct link link;
    struct lock_callback callback;
    bool expired;
};

/* The acquire or extend in flight. */
enum operation { OPERATION_NONE, OPERATION_ACQUIRE, OPERATION_EXTEND };

/* What only a handle with a named owner has: such an owner may hold the keys several times (reentry.h). */
struct reentrant {
    struct quorlock_lock *lock;
    struct named_owner *owner;
    struct claim *held;     /* the claim of which the handle has a share; valid while lock->holds > 0 */
    struct link in_share;   /* in held->sharers */
    struct list given_back; /* releases whose callbacks are due, and of which no core knows */
    struct list spare;      /* one for each hold, so that it can always be given back */
};

/* What a handle needs while an acquire or an extend is in flight. */
struct pending {
    struct link turn; /* in its key list's wait queue, or among a claim's pending holds */
    struct lock_callback ended;
    struct claim *pending_on; /* of which it is a pending hold */
    const char *why;          /* the reason, where it is not in the votes; else NULL */
};

/*
 * What stands for a handle, and which callback is due to it without a core. Beside it there is the operation in flight.
 *
 *               no claim asked, or no more          callback
 *            +-------------------------------> COMPLETED -----+
 *            |                                                |
 *         EXPANDED <------------------------------------------+
 *          ^ |                                                |
 *          | | held and quiet (compact_claim)                 |
 *          | v                 released, no memory            |
 *        COMPACT ---------------------------> DROPPED --------+
 *          ^ |                                        callback
 * callback | | validity ends, no memory
 *          | v
 *      COMPACT_LOST
 *
 * COMPACT and COMPACT_LOST become EXPANDED (compact_expand) for a renewal, an extend, a release or a new acquire.
 */
enum handle_state {
    HANDLE_EXPANDED,     /* held where it has a share of a claim */
    HANDLE_COMPLETED,    /* its acquire ended without a core: the callback is due */
    HANDLE_COMPACT,      /* it has a record, and no claim: it is held, or lost and its owner knows */
    HANDLE_COMPACT_LOST, /* compact and lost; the loss callback is due */
    HANDLE_DROPPED       /* it was compact, and released without memory: the callback is due */
};

/* A compact lock has no operation, and its record (handle_record) takes the place of `pending` and what is behind it.
 */
struct quorlock_lock {
    struct waker waker; /* the wait bound, while no claim asks the nodes for it; or the deadline of the record */
    struct keylist *keylist;
    struct terms *terms;
    struct claim *claim;         /* its own; NULL until it is needed, and while the lock is compact */
    struct reentrant *reentrant; /* NULL: its owner has no name */
    struct expiry *shown;        /* where other threads read its validity; NULL: none does */
    struct link in_all;
    struct link in_due;         /* in locks->completed, or, where COMPACT_LOST, in locks->lost */
    struct applicant applicant; /* for the first attempt, before there is a claim; or for the renewal of a record */
    quorlock_lost_cb lost;
    void *lost_arg;
    uint32_t holds;    /* without a named owner 1 at most */
    uint32_t releases; /* whose callbacks have not run */
    uint16_t pins;     /* callbacks of it on the stack */
    int16_t acquired_status;
    enum operation operation : 4;
    enum handle_state state : 4;
    uint32_t seen : 2; /* what stood in the way before, while it waits for room: bits of enum core_seen */
    bool freed : 1;    /* the handle is dead; its memory goes when nothing is owed to it */
    struct pending pending;
};

static inline struct locks *locks_of(const struct quorlock_lock *lock)
{
    return CONTAINER_OF(lock->keylist->all, struct locks, keylists);
}

static inline bool handle_is_compact(const struct quorlock_lock *lock)
{
    return lock->state == HANDLE_COMPACT || lock->state == HANDLE_COMPACT_LOST;
}

/* handle_record - return the record of a compact lock. handle_record_room - return the room for one, to be written. */
static inline const struct core_compact *handle_record(const struct quorlock_lock *lock)
{
    assert(handle_is_compact(lock));
    return (const void *)((const char *)lock + offsetof(struct quorlock_lock, pending));
}

static inline struct core_compact *handle_record_room(struct quorlock_lock *lock)
{
    assert(lock->operation == OPERATION_NONE);
    return (void *)((char *)lock + offsetof(struct quorlock_lock, pending));
}

/* handle_owner - return the named owner, or NULL. handle_held - return the claim of which the handle has a share, or
 * NULL. */
static inline struct named_owner *handle_owner(const struct quorlock_lock *lock)
{
    return lock->reentrant != NULL ? lock->reentrant->owner : NULL;
}

static inline struct claim *handle_held(const struct quorlock_lock *lock)
{
    if (lock->holds == 0) return NULL;
    return lock->reentrant != NULL ? lock->reentrant->held : lock->claim;
}

/* handle_make - make a handle for these sorted keys, with its key list and, where one is named, its owner; else zeroed.
 * NULL: out of memory. handle_unmake - the reverse. */
struct quorlock_lock *handle_make(struct locks *, const struct core_config *, const char *const *keys, size_t n_keys,
                                  const char *owner);
void handle_unmake(struct quorlock_lock *);
/* handle_check - assert which members go with which state, at the begin and the end of each call and callback. */
void handle_check(const struct quorlock_lock *);
/* handle_begin - begin an operation. NOMEM: the callback of a release without memory is due first.
 * handle_end - end the operation. */
int handle_begin(struct quorlock_lock *, enum operation, const struct lock_callback *);
void handle_end(struct quorlock_lock *);
/* handle_agree - go on by these terms, with a claim of its own. The handle takes over the caller's reference to them.
 */
void handle_agree(struct quorlock_lock *, struct terms *);
/* handle_share - add a hold of the claim to the handle. handle_unshare - take that many holds away. */
void handle_share(struct quorlock_lock *, struct claim *);
void handle_unshare(struct quorlock_lock *, uint32_t holds);
/* handle_ask - let the handle's claim ask the nodes, and make the claim where there is none; see claim_acquire. Without
 * a claim, while the nodes have no room, the handle waits for room first. 0 or a status.
 * handle_adopt - let the handle's claim ask the nodes to extend the keys of that token. 0 or a status.
 * handle_asks - return whether the claim asks the nodes for this handle.
 * handle_waits_for_room - return whether the handle waits for room at the nodes, without a claim.
 * handle_begin_admitted - begin to ask, now that there is room; see struct admission.
 * handle_stop_waiting - wait neither for room nor for the wait bound. */
int handle_ask(struct quorlock_lock *, bool behind, bool promised, uint32_t seen);
int handle_adopt(struct quorlock_lock *, const struct core_token *);
bool handle_asks(const struct quorlock_lock *);
bool handle_waits_for_room(const struct quorlock_lock *);
bool handle_begin_admitted(struct quorlock_lock *);
void handle_stop_waiting(struct quorlock_lock *);
/* handle_show_in - show the validity to other threads there, from now on; behind client_show_lock.
 * handle_show - write there what is known of the validity now. Nothing is written any more for a freed handle. */
void handle_show_in(struct quorlock_lock *, struct expiry *);
void handle_show(struct quorlock_lock *);
/* handle_valid_ms - return the validity that is left then. */
uint32_t handle_valid_ms(const struct quorlock_lock *, uint64_t now_us);
/* handle_complete_acquire - end an acquire without a core; its callback follows from the loop. why: a literal, or NULL
 * where the votes are the reason.
 * handle_complete_release - the same for one hold of several; uses one of the spare given_back. */
void handle_complete_acquire(struct quorlock_lock *, int status, const char *why);
void handle_complete_release(struct quorlock_lock *, const struct lock_callback *);
/* handle_fail - set the text of a call that fails, and return the status. */
int handle_fail(struct quorlock_lock *, int status, const char *why);
/* handle_reap - free a freed handle once no callback is owed to it. handle_destroy - free it, whatever is owed. */
void handle_reap(struct quorlock_lock *);
void handle_destroy(struct quorlock_lock *);
