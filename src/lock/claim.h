/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * claim.h - one owner's claim to the keys: ties one core to the nodes and the clock
 *
 * A handle gets a claim when its turn to ask the nodes comes, so a handle that waits behind others costs
 * little. The claim stays with it while it holds or owes anything; when the handle is freed the claim goes on
 * alone until every release was answered. Handles of one owner share one claim.
 *
 * What a claim has to say upwards it says through struct claim_events.
 */
#ifndef QUORLOCK_LOCK_CLAIM_H
#define QUORLOCK_LOCK_CLAIM_H

#include "core/core.h"
#include "lock/admission.h"
#include "lock/keylist.h"

#define CLAIM_OWNER_SIZE (OPTIONS_LABEL_MAX + 2 * CORE_TOKEN_SIZE + 1)

struct claim;
struct quorlock;

struct claim_events {
    /* A step had something worth a log line: bits of enum core_log. A loss now waits to be told. */
    void (*logs)(struct claim *, uint32_t log);
    void (*lost)(struct claim *);
    /* It does not hold the keys any more; its releases were just queued. */
    void (*keys_released)(struct claim *);
    /* Its deadline passed: the time to go on with, which may be a moment ago. */
    uint64_t (*due)(struct claim *);
    /* Its memory goes. */
    void (*destroyed)(struct claim *);
};

/* All claims of one client. */
struct claims {
    struct runtime *runtime;
    struct admission admission;
    const struct claim_events *events;
    struct list all;
    struct list active; /* hear of every change of a node */
    struct list lost;   /* a loss waits to be told */
    struct list ready;  /* something else waits to be told */
    struct hashtable owners;
    uint64_t last_fence; /* the latest token of any grant */
};

/* What one node said, for people; the verdict is the core's. */
struct node_result {
    char *error, *holder;
    struct unsent_release unsent;
    int64_t ttl_ms;
    uint64_t holder_attempt; /* in which it named the holder */
    uint64_t named_id;       /* the holder that it named last, also where it is not quoted any more */
    uint32_t latency_us;
    int released;                         /* enum quorlock_vote_outcome of the latest release, */
    char *release_holder, *release_error; /* and what its answer said; NULL: nothing */
};

struct lock_callback {
    quorlock_cb call;
    void *arg;
    uint64_t begun_us;
    bool owed; /* an operation is in flight: it will be told */
};

struct claim {
    struct claims *all;
    struct keylist *keylist;
    struct quorlock *handle; /* that made it; NULL when that was freed */
    struct requester requester;
    struct applicant applicant;
    struct waker waker;
    struct link in_all, in_active, in_lost, in_ready, in_owner;
    struct list sharers;       /* handles that hold it */
    uint32_t holds;            /* the sum of their shares */
    struct list pending_holds; /* handles of the same owner that hold it, too, when it has been renewed */
    struct named_owner *named; /* the caller's name of the owner; NULL: no reentry */
    bool counted;              /* in keylist->held */
    bool listens;              /* in keylist->listeners */
    uint32_t known_subscribed; /* nodes of which the core knows that their notices come, a bit each */
    bool put_off;              /* its release has not begun yet: a renewal is to be told first */
    struct quorlock *acquirer, *extender, *releaser; /* handles whose operation is in flight */
    struct lock_callback released;                   /* the releaser's */

    uint32_t pins;            /* callbacks of it on the stack */
    uint32_t in_flight;       /* requests that name it */
    uint32_t node_changes;    /* of the runtime, as far as its core knows them */
    uint64_t results_attempt; /* that the results are of */
    uint64_t logged_wait_us;  /* when waiting was last logged, and why */
    uint64_t logged_wait_reason;
    char owner[CLAIM_OWNER_SIZE];
    struct core_config config;
    uint64_t fence_ttl_ms;

    struct core_lock *core;
    struct node_result results[];
};

/* claims_start - of a struct with its events, else zeroed. 0, or -1 out of memory. claims_stop: no claim may be
 * left. */
int claims_start(struct claims *, struct runtime *);
void claims_stop(struct claims *);
/* claim_new - a claim for that handle; NULL: out of memory. The named owner is joined once more. */
struct claim *claim_new(struct claims *, struct keylist *, struct quorlock *, const struct core_config *,
                        struct named_owner *, uint64_t fence_ttl_ms);
/* claim_acquire - begins to ask for that handle, or behind others to wait for a sign. seen: what stood in its
 * way before, bits of enum core_seen. 0 or a status. */
int claim_acquire(struct claim *, struct quorlock *, uint64_t begun_us, bool behind, uint32_t seen);
/* claim_release - begins to release for that handle, the last that held it; the callback gets its end. 0 or a
 * status. */
int claim_release(struct claim *, struct quorlock *, const struct lock_callback *);
/* claim_remaining_ms - until another owner may hold the keys after a loss. */
uint32_t claim_remaining_ms(const struct claim *);
/* claim_abandon - ends an acquire without a callback. */
void claim_abandon(struct claim *);
/* claim_step - one event for the core, and all that follows from it. claim_step_randomly: with fresh random
 * bytes and the floor of fencing tokens, as an event needs them that may begin an attempt; without random bytes
 * nothing but an attempt has to wait. */
int claim_step(struct claim *, struct core_event *);
int claim_step_randomly(struct claim *, struct core_event *);
/* claim_dispatch - checks again, and says what to tell now. */
struct core_completion claim_dispatch(struct claim *);
/* claim_text_owner - the owner's text becomes that of the latest attempt; of none where it has not got the
 * lock. */
void claim_text_owner(struct claim *, bool granted);
/* claim_notify_subscribed - tells the core which nodes' notices come; old: since before its acquire. */
void claim_notify_subscribed(struct claim *, bool old);
/* claim_clock_stepped - a node's clock stepped forward: votes asked for before count no more. */
void claim_clock_stepped(struct claim *, uint32_t node, uint64_t before_us);
/* claim_on_node_state - forwards a node's state to the core. */
void claim_on_node_state(struct claim *, uint32_t node);
/* claim_let_go - releases the keys when no handle holds them any more. */
void claim_let_go(struct claim *);
/* claim_reap - frees a claim without a handle once nothing is owed. */
void claim_reap(struct claim *);
/* claim_destroy - frees the memory, whatever is owed. */
void claim_destroy(struct claim *);

#endif
