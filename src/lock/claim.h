/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * claim.h - one owner's claim to the keys: ties one core to the nodes and the clock
 *
 * A handle gets a claim when it begins to ask the nodes, so a handle in the queue costs little. It keeps the
 * claim while it has anything to do. The claim of a freed handle lives on until every release was answered.
 * Handles of one owner share one claim. While the keys are held and nothing is under way, a small record stands for
 * the claim (rest.h), and its memory serves others.
 */
#pragma once

#include "core/core.h"
#include "core/rest.h"
#include "lock/admission.h"
#include "lock/counts.h"
#include "lock/keylist.h"
#include "lock/late.h"
#include "lock/request.h"
#include "lock/result.h"
#include "lock/spare.h"
#include "lock/terms.h"

struct claim;
struct quorlock;

/* What a claim reports to the files above it. */
struct claim_events {
    void (*held)(struct claim *); /* handles hold it, and its validity may have changed; only where it is shown */
    void (*logs)(struct claim *, uint32_t log); /* bits of enum core_log */
    void (*lost)(struct claim *);               /* the callbacks for loss are due */
    void (*keys_released)(struct claim *);      /* it holds the keys no more; its releases are queued */
    uint64_t (*due)(struct claim *);            /* its deadline passed; returns the time to continue with */
    void (*quiet)(struct claim *);              /* it is held, and perhaps has nothing under way; it may go */
    void (*destroyed)(struct claim *);          /* its memory goes */
};

/* What a claim holds. */
struct claim_hold {
    const struct core_config *config;
    uint64_t granted_us;
    uint32_t slot; /* with permits */
};

/* Troubles that are made up; see buggify.h. */
struct claim_troubles {
    /* After each step: until when what is due is not reported. 0: it is at once. */
    uint64_t (*hold_back)(struct claim *, const struct core_update *, uint64_t now_us);
    void (*strike)(struct claim *); /* trouble_us has come */
};

/* All claims of one client. */
struct claims {
    struct runtime *runtime;
    struct admission admission;
    struct lates lates;
    const struct claim_events *events;
    struct list all;
    struct list active;      /* want every change of a node */
    struct list lost, ready; /* callbacks are due: for a loss; for something else */
    struct hashtable owners;
    struct hashtable terms;
    uint64_t last_fence; /* the latest token of any grant */
    struct counts counts;
    const struct claim_troubles *troubles; /* NULL: none */
    uint64_t trouble_state;
    struct spare works;  /* of core_work_size, for cores that ask for votes */
    struct spare blocks; /* for claims */
};

struct lock_callback {
    quorlock_cb call;
    void *arg;
    uint64_t begun_us;
};

struct claim {
    struct claims *all;
    struct keylist *keylist;
    struct quorlock *handle; /* that made it; NULL when that was freed */
    struct requester requester;
    struct applicant applicant;
    struct waker waker;
    struct link in_all, in_active, in_owner;
    struct link in_due;        /* in lost, where loss_due, or in ready */
    struct list sharers;       /* nests of the handles that hold it, where these have an owner; else it is its handle */
    uint32_t holds;            /* the sum of their shares */
    struct list pending_holds; /* handles of the same owner that hold it, too, when it has been renewed */
    struct named_owner *named; /* the caller's name of the owner; NULL: no reentry */
    bool counted;              /* in keylist->held */
    bool degraded;             /* in counts.degraded */
    bool listens;              /* in keylist->listeners */
    bool put_off;              /* its release waits for the callback of a renewal */
    uint32_t known_subscribed; /* nodes of which the core knows that their notices come, a bit each */
    uint32_t late_ms;          /* its next report is made so late */
    uint64_t trouble_us;       /* when a trouble strikes; 0: none does */
    struct quorlock *acquirer, *extender, *releaser; /* handles whose operation is in flight */
    struct lock_callback released;                   /* the releaser's */

    uint32_t pins;             /* callbacks of it on the stack */
    uint32_t in_flight;        /* requests that name it */
    uint32_t node_changes;     /* the runtime's count, as far as its core knows */
    uint64_t results_attempt;  /* that the results are of, */
    uint64_t released_attempt; /* and their parts about the latest release */
    uint64_t logged_us;        /* when a wait or a failing renewal was last logged, and why */
    uint64_t logged_reason;
    struct terms *terms;
    struct core_token token; /* of the latest grant */
    bool granted;            /* the latest acquire that has ended */
    bool loss_due;

    struct core_lock *core;
    struct node_result results[];
};

/* claims_start - of a struct with its events, and admission.begin, else zeroed. claims_stop: no claim may be left.
 */
void claims_start(struct claims *, struct runtime *);
void claims_stop(struct claims *);
/* claims_node_now - what a core is told of a node. */
struct core_node_change claims_node_now(const struct runtime *, uint32_t node);
/* claim_new - a claim for that handle; NULL: out of memory. claim_resume: the one that the record stands for; it may
 * take the last blocks that are kept, for where memory is out there are no others. */
struct claim *claim_new(struct claims *, struct keylist *, struct quorlock *, struct terms *, struct named_owner *);
struct claim *claim_resume(struct claims *, struct keylist *, struct quorlock *, struct terms *,
                           const struct core_rest *);
/* claim_acquire - begins to ask for that handle, or, where it is behind others, to wait for a notice. promised: its
 * call has returned, so without random bytes it waits for them; else that is STATE. 0 or a status. claim_abandon: ends
 * that without a callback. */
int claim_acquire(struct claim *, struct quorlock *, const struct core_acquire *, bool promised);
void claim_abandon(struct claim *);
/* claim_agree - its acquire goes on by the terms of another handle, to which it was handed off. */
void claim_agree(struct claim *, struct terms *);
/* claim_remaining_ms - until another owner may hold the keys after a loss. */
uint32_t claim_remaining_ms(const struct claim *);
/* claim_begin_admitted - there is room for what the claim waits for; see struct admission. */
bool claim_begin_admitted(struct applicant *);
/* claim_wake - its deadline has come. */
void claim_wake(struct claim *);
/* claim_step - one event for the core, and all that follows from it. claim_step_randomly: for an event that may
 * begin an attempt, with random bytes and the floor of fencing tokens; without random bytes only the attempt
 * has to wait. claim_dispatch: checks again, and returns what to report now. */
int claim_step(struct claim *, struct core_event *);
int claim_step_randomly(struct claim *, struct core_event *);
struct core_completion claim_dispatch(struct claim *);
/* claim_note_owner - an acquire ended. claim_owner: where that was a grant, writes its owner as the nodes know it to
 * ret, of REQUEST_OWNER_SIZE, and returns that; else NULL. */
void claim_note_owner(struct claim *, bool granted);
const char *claim_owner(const struct claim *, char *ret);
/* claims_count_hold - a claim for these keys began to hold them, or ended it. */
void claims_count_hold(struct claims *, struct keylist *, const struct claim_hold *, bool holds, uint64_t now_us);
/* claim_notify_subscribed - reports to the core which nodes' notices come; old: since before its acquire.
 * claim_clock_stepped: a node's clock stepped forward, so earlier votes count no more. claim_on_node_state: the
 * node's present state. */
void claim_notify_subscribed(struct claim *, bool old);
void claim_clock_stepped(struct claim *, uint32_t node, uint64_t before_us);
void claim_on_node_state(struct claim *, uint32_t node);
/* claim_reap - frees a claim without a handle once nothing is owed. claim_destroy: frees it, whatever is owed. */
void claim_reap(struct claim *);
void claim_destroy(struct claim *);
