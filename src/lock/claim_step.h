/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * claim_step.h - what a claim is, and its steps: events for its core, and all that follows from them
 *
 * The core's commands go to the nodes as requests, and the nodes' answers go to the core and, for people, into the
 * results. Nothing here frees a claim.
 */
#pragma once

#include "base/spare.h"
#include "core/compact.h"
#include "core/core.h"
#include "lock/admission.h"
#include "lock/answers.h"
#include "lock/counts.h"
#include "lock/far.h"
#include "lock/keylist.h"
#include "lock/late.h"
#include "lock/request.h"
#include "lock/terms.h"

struct claim;
struct quorlock_lock;

/* What a claim reports to the files above it. */
struct claim_events {
    void (*held)(struct claim *); /* handles hold it, and its validity may have changed; only where it is shown */
    void (*logs)(struct claim *, uint32_t log); /* bits of enum core_log */
    void (*lost)(struct claim *);               /* the callbacks for loss are due */
    void (*keys_released)(struct claim *);      /* it holds the keys no more; its releases are queued */
    uint64_t (*due)(struct claim *);            /* its deadline passed; returns the time to continue with */
    void (*quiet)(struct claim *);     /* it is held, and perhaps has nothing under way: the callee may destroy it */
    void (*destroyed)(struct claim *); /* its memory is freed */
};

/* What a claim holds. */
struct claim_hold {
    const struct core_config *config;
    uint64_t granted_us;
    uint32_t slot; /* with permits */
};

/* Faults that are made up; see buggify.h. */
struct claim_faults {
    /* After each step: return until when a report is held back; 0: it is not. */
    uint64_t (*hold_back)(struct claim *, const struct core_update *, uint64_t now_us);
    void (*inject)(struct claim *); /* fault_us has come */
};

/* All claims of one client. */
struct claims {
    struct runtime *runtime;
    struct admission admission;
    struct lates lates;
    const struct claim_events *events;
    struct list all;
    struct list active;      /* claims whose cores want every change of a node */
    struct list lost, ready; /* callbacks are due: for a loss; for something else */
    struct hashtable owners;
    struct hashtable terms;
    uint64_t last_fence; /* the latest token of any grant */
    bool no_far;         /* a node refused such a channel, which its ACL does not know */
    struct counts counts;
    const struct claim_faults *faults; /* NULL: none */
    uint64_t fault_state;
    struct spare blocks; /* of claims that are gone, for the next ones */
    struct spare debts;  /* blocks of core_debts_size(), likewise */
    struct debt *lent;   /* such a block, for the lock that needs one next; NULL: none is made yet */
};

struct lock_callback {
    quorlock_lock_cb call;
    void *arg;
    uint64_t begun_us;
};

struct claim {
    struct claims *all;
    struct keylist *keylist;
    struct quorlock_lock *handle; /* that made it; NULL when that was freed */
    struct requester requester;
    struct applicant applicant;
    struct waker waker;
    struct link in_all, in_active, in_owner;
    struct link in_due;  /* in lost, where loss_due, or in ready */
    struct list sharers; /* struct reentrant of each handle that holds it, where named; else its handle holds it */
    uint32_t holds;      /* the sum of their shares */
    struct list pending_holds; /* handles of the same owner that will hold it when it has been renewed */
    struct named_owner *named; /* the caller's name of the owner; NULL: no reentry */
    bool counted;              /* in keylist->held */
    bool degraded;             /* in counts.degraded */
    bool listens;              /* in keylist->listeners */
    struct far *far;           /* it listens there instead; NULL: it does not */
    bool put_off;              /* its release waits for the callback of a renewal */
    bool undone;               /* its release keeps nothing */
    uint32_t known_subscribed; /* nodes of which the core knows that their notices come, a bit each */
    uint32_t late_ms;          /* by so much its next report is late */
    uint64_t fault_us;         /* when a made-up fault happens; 0: never */
    struct quorlock_lock *acquirer, *extender, *releaser; /* handles whose operation is in flight */
    struct lock_callback released;                        /* the releaser's */

    uint32_t pins;             /* callbacks of it on the stack */
    uint32_t in_flight;        /* requests whose answers come to it */
    uint32_t node_changes;     /* the runtime's count, as far as its core knows */
    uint64_t results_attempt;  /* the attempt that the results are of, */
    uint64_t released_attempt; /* and of their parts about the latest release */
    uint64_t logged_us;        /* when a wait or a failing renewal was last logged, and why */
    uint64_t logged_reason;
    struct terms *terms;
    struct core_token token; /* of the latest grant */
    bool granted;            /* the latest acquire that ended was a grant */
    bool loss_due;

    struct core_lock *core;
    struct node_result results[];
};

/* claim_check - assert that everything that follows from the core's state was done, and which members go together.
 * Between two steps, so at the begin and the end of each call and callback. */
void claim_check(const struct claim *);
/* claims_node_now - return the present state of a node, as a core needs it. */
struct core_node_change claims_node_now(const struct claims *, uint32_t node);
/* claims_are_few - return whether so few locks are held that each may ask a node anew when it is connected anew. */
bool claims_are_few(const struct claims *);
/* claim_step - step the core by one event, and do all that follows. 0 or a status.
 * claim_step_randomly - the same for an event that may begin an attempt, with random bytes and the floor of fencing
 * tokens; without random bytes only the attempt has to wait.
 * claim_dispatch - check the grant a second time, and return what to report now. */
int claim_step(struct claim *, struct core_event *);
int claim_step_randomly(struct claim *, struct core_event *);
struct core_completion claim_dispatch(struct claim *);
/* claim_acquire - begin to ask for that handle, or, where it is behind others, to wait for a notice. promised: the call
 * of the user has returned, so out of random bytes or memory the attempt waits; else that is STATE or NOMEM. 0 or a
 * status. claim_abandon - end that without a callback. */
int claim_acquire(struct claim *, struct quorlock_lock *, const struct core_acquire *, bool promised);
void claim_abandon(struct claim *);
/* claim_begin_admitted - begin what the claim waits for, now that there is room; see struct admission. */
bool claim_begin_admitted(struct applicant *);
/* claim_take_reply - step by a node's answer. claim_take_node - step by a node's present state.
 * claim_notify_subscribed - step by the nodes whose notices come now; old: since before the acquire. */
void claim_take_reply(struct claim *, const struct core_tag *, uint32_t generation, const struct node_reply *);
void claim_take_node(struct claim *, uint32_t node);
void claim_notify_subscribed(struct claim *, bool old);
/* claim_listen - listen for this claim, at the channels of its keys, or, where it is far behind, at one of its own; or
 * stop that. */
void claim_listen(struct claim *, bool wanted);
/* claims_count_hold - count that a claim for these keys began to hold them, or ended. */
void claims_count_hold(struct claims *, struct keylist *, const struct claim_hold *, bool holds, uint64_t now_us);
/* claim_keep_owner - remember the owner token if the acquire that ended was a grant.
 * claim_owner - write that owner, as the nodes know it, to ret, of REQUEST_OWNER_SIZE, and return it. NULL: the latest
 * acquire was no grant. */
void claim_keep_owner(struct claim *, bool granted);
const char *claim_owner(const struct claim *, char *ret);
/* claim_remaining_ms - return the time until another owner may hold the keys after a loss. */
uint32_t claim_remaining_ms(const struct claim *);
