/* SPDX-License-Identifier: BSD-3-Clause */
/* state.h - what a core_lock is made of */
#pragma once

#include <assert.h>

#include "backoff.h"
#include "types.h"
#include "validity.h"

/* What a step passes on. */
struct step {
    uint64_t now_us;
    const unsigned char *random; /* may be NULL where no attempt can begin */
    uint64_t wall_us;
    bool no_attempt, no_round, no_repair; /* as in struct core_event */
    bool logged_in;                       /* likewise */
    struct core_slots *slots;             /* likewise */
    struct core_update *update;
};

enum debt_state {
    DEBT_NONE,
    DEBT_OWED,    /* sent on the present connection, or to be sent at again_at_us or on the next connection */
    DEBT_UNSENT,  /* the node had no room for it: sent with CORE_EV_ROOM */
    DEBT_REFUSED, /* with an error that may last: sent again at again_at_us, but no result waits for that */
};

/* What our keys of one attempt have at the nodes. */
struct attempt_id {
    uint64_t number; /* over the lock's life */
    uint64_t fence;  /* the fencing token of the grant; in a debt the one to leave in the node's counter; 0: none */
    struct core_token token;
    uint8_t slot; /* with permits: which is asked for or held; in a debt as in struct core_tag */
};

/* A release that a node has not answered yet. */
struct debt {
    struct attempt_id id;     /* whose key it is */
    uint64_t until_us;        /* the key has certainly expired by then */
    uint64_t again_at_us;     /* the next try on the same connection; CORE_NEVER: none */
    uint32_t sent_generation; /* the connection it was sent on; 0: it is not under way */
    uint32_t tries;           /* that failed */
    enum debt_state state : 8;
    bool silent, if_deleted; /* as in struct core_command */
    bool unclear;            /* an earlier try may have been executed */
    bool echoed;             /* its notice will come to us, too: counted in own_notices */
    bool open, late;         /* as in struct core_node */
    bool twice;              /* late, and the key may be there by a later request, too */
};

/* A question after the vote that the node has not answered yet. */
enum follow_up {
    FOLLOW_UP_NONE,
    FOLLOW_UP_PEEK,  /* after its refusal */
    FOLLOW_UP_RAISE, /* after its yes */
};

/* Our key of the present attempt or hold. */
struct core_key {
    uint64_t until_us;       /* it may be there until then; 0: it is not */
    uint64_t valid_until_us; /* the yes counts until then; 0: no yes */
    uint64_t sent_us;        /* when that yes was asked for */
    uint64_t stepped_us;     /* when its clock was last found to have stepped; 0: never */
    uint32_t yes_round;      /* the last renewal round in which the node said yes */
    uint32_t repair_round;   /* the last renewal round after which it was given the key again */
};

/* What is known of a node while its vote is asked for, and what it owes. */
struct core_asked {
    uint64_t at_us; /* when its vote was asked for the last time */
    uint64_t fence; /* its counter, as last shown while the key was ours */

    /* The holder that it named when it refused. */
    struct {
        uint64_t id;        /* 0: unknown */
        uint64_t before_id; /* when it was asked the time before */
        int64_t ttl_us;
        bool readers; /* those that hold the keys shared */
    } holder;

    uint64_t refusing; /* the keys in the way when it refused, a bit each; 0: it does not say which */

    uint64_t odd_id; /* its key is no quorum's, and has this holder; 0: it has no odd key */
    enum follow_up follow_up;
    bool asked_twice; /* in this attempt, for a key of ours that was given up stood in the way */
    bool cut;         /* its vote did not come, but the next one may: the connection ended, or the time for it, or the
                         node refused for a reason that passes */
};

struct core_node {
    uint32_t generation; /* 0: it takes no requests */
    uint32_t srtt_us;
    enum node_state state : 8;
    enum fault_class down_fault : 8;

    /* Its answer in the present attempt, or in the latest renewal round. */
    enum core_vote vote : 8;
    enum fault_class fault : 8;
    enum core_vote last_vote : 8; /* in the attempt of this acquire before, in which it was asked */

    /* Reasons not to ask it first. */
    struct {
        bool overdue; /* left a request unanswered, and has answered nothing since */
        bool unfit;   /* answered the latest question for its vote with an error */
    } doubt;

    struct {
        bool listening; /* its notices come */
        bool heard;     /* one came since the wait began */
        uint8_t own;    /* releases of ours whose notices will come */
    } notices;

    /* A request that may set the key has no answer: on the present connection; on one that ended, so that it may still
     * be executed, up to the lock's late_until_us. */
    bool open, late;
    bool gone; /* its latest definite answer: our key is not there */
    struct core_key key;
    struct core_asked asked;
    struct debt debts[CORE_DEBTS_MAX];
};

/* The acquire in flight: in the phases from ASKING to GRANTED. */
struct acquire {
    uint64_t begun_us;
    uint64_t until_us; /* the wait bound */
    uint32_t seen;     /* what stood in the way so far, bits of enum core_seen */
    uint32_t attempts;
};

enum attempt_stage {
    ATTEMPT_ASKS_ALL,
    ATTEMPT_ASKS_ARBITER, /* the others with its yes, or at rest_at_us */
    ATTEMPT_DOOMED,       /* cannot win: it was released, and the reason is being found */
};

/* An arbiter that refused names a holder that the others are asked about, in the same attempt. */
enum attempt_doubt {
    DOUBT_NONE,
    DOUBT_OPEN,    /* the others' answers are waited for */
    DOUBT_SETTLED, /* whether all have answered or not */
};

struct attempt {
    uint64_t floor; /* of its fencing token */
    uint64_t begun_us;
    enum attempt_stage stage;
    enum attempt_doubt doubt;
    uint32_t arbiter;
    bool arbiter_late; /* the others were asked without its answer */
    uint64_t rest_at_us;
};

enum wait_verdict {
    WAIT_STAY,        /* no attempt */
    WAIT_TRY_ARBITER, /* the next attempt, which asks the arbiter first */
    WAIT_TRY_ALL,     /* the next attempt, which asks all nodes at once */
};

/* A release that was heard of. */
enum wait_notice {
    NOTICE_NONE,
    NOTICE_DURING_ATTEMPT, /* the attempt under way may have asked too early */
    NOTICE_TURN_DRAWN,     /* our turn after it is drawn */
};

/* A holder, or a contender that was taken for one. */
struct named {
    uint64_t id;
    uint64_t since_us; /* when it was seen first */
};

struct wait {
    uint64_t retry_at_us;
    uint64_t poll_at_us; /* the same without any notice */
    enum wait_notice notice;
    bool searches;            /* with permits: for a free one, and has not waited for one yet */
    uint64_t heard;           /* the keys of which notices came since the latest attempt began, a bit each */
    bool told;                /* a notice came since the latest wait began */
    uint64_t released_id;     /* the holder whose release the latest notice reported */
    uint64_t woken_id;        /* the same when the latest attempt began, or when our turn was drawn */
    struct named polled;      /* the holder when the latest wait began */
    struct named before;      /* another one, before that */
    uint64_t intent_us;       /* when the nodes were told last that it waits; 0: they do not know it, or not any more */
    struct core_token waiter; /* its name there */
    uint32_t polls, splits;
};

/* Whether the holder that the arbiter names is believed. */
struct belief {
    uint32_t polls;        /* so many more times */
    uint64_t confirmed_id; /* the holder, as far as all nodes answered when they were asked last */
    uint64_t released_id;  /* the holder whose release other nodes reported since all were asked */
};

enum round_state {
    ROUND_SETTLED, /* each node has answered or cannot; also before the first round */
    ROUND_DECIDED, /* renewed */
    ROUND_OPEN,
};

struct hold {
    uint64_t granted_us;
    uint64_t validity_us;
    uint64_t round_begun_us;
    uint64_t renew_at_us;
    uint64_t repair_at_us;    /* a round that repairs, or confirms a repair, is due before; CORE_NEVER: none */
    uint64_t extend_lease_us; /* of the extend in flight; 0: none */
    uint32_t round;           /* 0: the acquire */
    uint32_t renew_failures;
    enum core_loss loss : 8;
    enum round_state round_state : 8;
    bool round_waits;  /* for room at the nodes */
    bool repair_waits; /* likewise, a round that is due for a repair only */
    bool looks;        /* that round is due although the nodes are what they were */
    bool repaired;     /* a node was given the key in this round */
    bool confirms;     /* and one in the round before */
    bool whole;        /* all nodes said yes in the latest settled round */
};

struct release {
    uint64_t attempt; /* whose release is in flight; 0: none */
    uint64_t until_us;
    uint64_t looked_us; /* when it was found nearly late; 0: not yet */
    uint32_t absent;    /* nodes that answered that our key was not there */
    bool expired;
};

struct core_lock {
    const struct core_config *config;
    struct attempt_id id; /* of the latest attempt; the fencing token is that of the latest grant */
    struct backoff_jitter jitter;
    uint64_t lease_us; /* of the latest acquire or extend */
    struct acquire acquire;
    struct attempt attempt;
    struct wait wait;
    struct belief belief;
    struct hold hold;
    struct release release;
    uint64_t late_until_us; /* see struct core_node */
    uint32_t owing;         /* nodes that may owe a release, a bit each */
    uint32_t waiters; /* clients that listen, this one included, as a node last reported, also to an earlier acquire;
                         0: unknown */

    /* Completions for the owner, one with each CORE_EV_DISPATCH. */
    struct {
        int8_t status[CORE_NOTIFY_RELEASED + 1];
        uint8_t kinds; /* a bit for each enum core_notify */
    } pending;

    uint8_t first_arbiter; /* where its order of arbiters begins in the config's */
    uint32_t log;          /* of the present step */
    enum core_phase phase : 8;
    enum wait_verdict queued : 8; /* the attempt that waits for room at the nodes */
    struct core_node nodes[];
};

/* The end of the lock's nodes. */
#define CORE_END(lock) ((lock)->nodes + (lock)->config->n_nodes)

/* core_arbiter - the node that is asked first where so many before it do not serve. */
static inline uint32_t core_arbiter(const struct core_lock *lock, uint32_t place)
{
    uint32_t index = lock->config->arbiters[(lock->first_arbiter + place) % lock->config->n_nodes];

    assert(place < lock->config->n_nodes);
    assert(index < lock->config->n_nodes);
    return index;
}

/* core_quorum_is_ready - so many nodes are READY that an attempt may be granted. */
static inline bool core_quorum_is_ready(const struct core_lock *lock)
{
    uint32_t ready = 0;

    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) ready += node->state == NODE_READY;
    return ready >= lock->config->quorum;
}

/* core_count_yeses - nodes whose key counts for the present validity. */
static inline uint32_t core_count_yeses(const struct core_lock *lock)
{
    uint32_t n = 0;

    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        n += !node->gone && node->key.valid_until_us != 0 && node->key.valid_until_us >= lock->hold.validity_us;
    }
    return n;
}

static inline bool core_is_acquiring(const struct core_lock *lock)
{
    return lock->phase == CORE_ASKING || lock->phase == CORE_WAITING || lock->phase == CORE_GRANTED;
}

/* core_awaits_first_attempt - it waits for room at the nodes, and no sign of a release can bring that forward. */
static inline bool core_awaits_first_attempt(const struct core_lock *lock)
{
    return lock->queued != WAIT_STAY && lock->acquire.attempts == 0;
}

static inline bool core_is_pending(const struct core_lock *lock, enum core_notify kind)
{
    return (lock->pending.kinds & 1u << kind) != 0;
}

/* core_notify - the owner will be notified of this. */
static inline void core_notify(struct core_lock *lock, enum core_notify kind, int status)
{
    /* Each is reported once: the next one of its kind does not begin before. */
    assert(kind > CORE_NOTIFY_NOTHING && kind <= CORE_NOTIFY_RELEASED);
    assert(!core_is_pending(lock, kind));
    lock->pending.kinds = (uint8_t)(lock->pending.kinds | 1u << kind);
    lock->pending.status[kind] = (int8_t)status;
}

/* core_forget - there is nothing to notify it of any more. */
static inline void core_forget(struct core_lock *lock, enum core_notify kind)
{
    lock->pending.kinds = (uint8_t)(lock->pending.kinds & ~(1u << kind));
}

/* core_can_talk - the node takes requests, though perhaps not for its vote. */
static inline bool core_can_talk(const struct core_node *node)
{
    return node_takes_requests(node->state);
}

/* core_is_permanent - a node with that fault will not vote soon. Of a login that is refused it is not known: while
 * passwords are changed a client may have the new one before a server has it, or after. */
static inline bool core_is_permanent(const struct step *step, enum fault_class fault)
{
    return fault > FAULT_CLASS_LOGIN || (fault == FAULT_CLASS_LOGIN && !step->logged_in);
}

/* core_vote_failed - there is no vote of this node; for now, where no fault is known. */
static inline void core_vote_failed(struct core_node *node, enum fault_class fault)
{
    /* Faults are counted by their class: see struct vote_tally. */
    assert(fault <= FAULT_CLASS_CONFIG);
    node->vote = CORE_VOTE_FAILED;
    node->fault = fault;
    if (fault == FAULT_CLASS_NONE) node->fault = FAULT_CLASS_TEMPORARY;
}

/* core_vote_until - until when a yes to the command with this tag counts. */
static inline uint64_t core_vote_until(const struct core_lock *lock, const struct core_tag *tag)
{
    return validity_of_vote(tag->sent_us, tag->lease_us, lock->config->drift_ppm, lock->config->drift_fixed_us);
}

/* core_named_by - the holder that this node named when it refused its vote; 0: none. */
static inline uint64_t core_named_by(const struct core_node *node)
{
    return node->vote == CORE_VOTE_OTHER ? node->asked.holder.id : 0;
}

/* core_send - adds a command for a node to the update, and returns it. */
static inline struct core_command *core_send(struct core_lock *lock, struct step *step, uint32_t node, enum op op,
                                             uint64_t lease_us)
{
    struct core_command *command = &step->update->commands[step->update->n_commands++];

    assert(step->update->n_commands <= CORE_COMMANDS_MAX);
    assert(node < lock->config->n_nodes);
    assert(core_can_talk(&lock->nodes[node]));
    /* Keys are set and kept for a lease, never without end. */
    assert(lease_us > 0 || op == OP_RELEASE || op == OP_PEEK || op == OP_INTEND);
    *command = (struct core_command){.tag = {.attempt = lock->id.number,
                                             .sent_us = step->now_us,
                                             .lease_us = lease_us,
                                             .round = lock->hold.round,
                                             .op = (uint8_t)op,
                                             .node = (uint8_t)node,
                                             .slot = lock->id.slot},
                                     .token = lock->id.token,
                                     .timeout_us = lock->config->node_timeout_us,
                                     .fence = lock->config->reads ? 0 : lock->id.fence};
    return command;
}

static inline uint64_t core_larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline uint64_t core_smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}
