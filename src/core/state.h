/* SPDX-License-Identifier: BSD-3-Clause */
/* state.h - what a core_lock is made of */
#pragma once

#include <assert.h>

#include "backoff.h"
#include "types.h"
#include "validity.h"

/* One step: its event's context, and the update that it fills. */
struct step {
    uint64_t now_us;
    const unsigned char *random; /* NULL: no attempt can begin in this step */
    uint64_t wall_us;
    bool no_attempt, no_round, no_repair; /* as in struct core_event */
    bool logged_in;                       /* likewise */
    struct core_slots *slots;             /* likewise */
    struct debt *debts;                   /* likewise */
    struct core_update *update;
};

enum debt_state {
    DEBT_NONE,
    DEBT_OWED,    /* sent on the present connection, or due at again_at_us or on the next connection */
    DEBT_UNSENT,  /* the node's queue was full: CORE_EV_ROOM sends the release */
    DEBT_REFUSED, /* the error may last: sent again at again_at_us, but no result waits for the answer */
};

/* An attempt, and what its keys hold at the nodes. */
struct attempt_id {
    uint64_t number; /* counted over the lock's life */
    uint64_t fence;  /* fencing token of the grant; in a debt: the token that the node's counter keeps; 0: none */
    struct core_token token;
    uint8_t slot; /* with permits: the slot asked for or held; in a debt as in struct core_tag */
};

/* A debt: a release that a node has not answered yet. */
struct debt {
    struct attempt_id id;     /* the attempt that is released */
    uint64_t until_us;        /* the key has certainly expired by then */
    uint64_t keep_until_us;   /* until then the release does not delete the key, but lets it expire then (rule 10.1) */
    uint64_t again_at_us;     /* the next try on the same connection; CORE_NEVER: none */
    uint32_t sent_generation; /* the connection that carries the release; 0: none */
    uint32_t tries;           /* failed tries */
    enum debt_state state : 8;
    bool silent, if_deleted; /* as in struct core_command */
    bool unclear;            /* an earlier try may have been executed */
    bool echoed;             /* this client receives the notice of the release, too: counted in notices.own */
    bool open, late;         /* as in struct core_node */
    bool twice;              /* late, and a later request may have set the key again */
};

/* A question that follows the vote and has no answer yet. */
enum follow_up {
    FOLLOW_UP_NONE,
    FOLLOW_UP_PEEK,  /* after a refusal: who is the holder? */
    FOLLOW_UP_RAISE, /* after a yes: raise the counter (fence.c) */
};

/* The key of the present attempt or hold at one node. */
struct core_key {
    uint64_t until_us;       /* the node may have the key until then; 0: the node does not have it */
    uint64_t valid_until_us; /* the node's yes counts until then; 0: no yes */
    uint64_t sent_us;        /* when the request left that the node answered with this yes */
    uint64_t stepped_us;     /* when the node's clock was last found to have stepped; 0: never */
    uint32_t yes_round;      /* the last renewal round in which the node said yes */
    uint32_t repair_round;   /* the last renewal round after which the key was repaired */
    uint32_t again_round;    /* the last renewal round in which the node was asked once more */
};

/* What one acquire knows of a node. */
struct core_asked {
    uint64_t at_us; /* when the node was last asked for its vote */
    uint64_t fence; /* the node's counter, as last shown while the node had our key */

    /* The holder that the node named when it refused. */
    struct {
        uint64_t id;        /* 0: unknown */
        uint64_t before_id; /* the holder named by the refusal before this one */
        int64_t ttl_us;
        bool readers; /* the holder stands for all that hold the keys shared */
    } holder;

    uint64_t refusing; /* the keys that another owner holds there, a bit each; 0: unknown */

    uint64_t minority_id; /* the node's key has this holder, which no quorum has; 0: no such key (arbiter.c) */
    enum follow_up follow_up;
    bool watched;     /* the node was to be asked to tell when the key changes */
    bool tells;       /* it was asked */
    bool asked_twice; /* in this attempt, because an abandoned key of ours was in the way */
    bool cut;         /* no vote, but the next attempt may get one: the connection ended, the time was over, or the
                         node refused for a reason that passes */
};

struct core_node {
    uint32_t generation; /* of the connection; 0: the node takes no requests */
    uint32_t srtt_us;
    enum node_state state : 8;
    enum fault_class down_fault : 8;

    /* The node's answer in the present attempt, or in the latest renewal round. */
    enum core_vote vote : 8;
    enum fault_class fault : 8;
    enum core_vote last_vote : 8; /* the answer in the latest earlier attempt of this acquire that asked the node */

    /* Reasons not to ask the node first. */
    struct {
        bool overdue; /* a request had no answer, and no other answer came since */
        bool unfit;   /* the node answered the latest request for its vote with an error */
        bool broken;  /* its connection has failed */
    } doubt;

    struct {
        bool listening; /* the subscription is confirmed */
        uint8_t own;    /* notices of our own releases that are still to come */
        uint32_t turns; /* of a fair lock: releases heard since the latest attempt began */
    } notices;

    /* A request that may set the key (rules 2.6 and 10.3) has no answer. open: it was sent on the present connection.
     * late: it was sent on a connection that has ended, so the node may still execute it, until the lock's
     * late_until_us. */
    bool open, late;
    bool gone;     /* the latest definite answer: the node does not have our key */
    bool extended; /* our key was extended there since it was set */
    bool told;     /* since the latest round began, somebody told that another client changed our key there */
    struct core_key key;
    struct core_asked asked;
    struct debt debt;
    struct debt *more; /* CORE_DEBTS_LENT others, in a block that was lent; NULL: no room but for the first */
};

/* The acquire in flight, in the phases from ASKING to GRANTED; afterwards the latest one. */
struct acquire {
    uint64_t begun_us;
    uint64_t until_us; /* end of the wait */
    uint32_t seen;     /* what was in the way so far, bits of enum core_seen */
    uint32_t attempts;
    bool adopts; /* the token came from another client (rule 11.2) */
};

enum attempt_stage {
    ATTEMPT_ASKS_ALL,
    ATTEMPT_ASKS_ARBITER, /* the first node of the plan only; all others with its yes, or when its time is over */
    ATTEMPT_FAILED,       /* no quorum can grant: released, and the reason is being found */
};

/* The arbiter refused, and in the same attempt the other nodes are asked whether its holder is there, too. */
enum attempt_doubt {
    DOUBT_NONE,
    DOUBT_OPEN,    /* their answers are waited for */
    DOUBT_SETTLED, /* all have answered, or the time for that is over */
};

/* What an attempt does if its first node does not answer in time. */
enum on_silence {
    SILENCE_ASKS_REST,   /* ask all other nodes */
    SILENCE_ASKS_NEXT,   /* ask the next one first (rule 9.2) */
    SILENCE_BEGINS_ANEW, /* ask all, with another token (rule 7.6) */
};

/* Whom an attempt asks first: arbiter.c and fair.c decide that, and attempt.c carries it out. */
struct plan {
    uint32_t first;    /* n_nodes: all are asked at once, and the rest does not count */
    uint64_t until_us; /* until then the first node's answer is waited for */
    enum on_silence on_silence;
};

struct attempt {
    uint64_t floor;       /* least fencing token: the wall clock, or higher */
    uint64_t floor_at_us; /* when the wall clock showed that */
    uint64_t begun_us;
    enum attempt_stage stage;
    enum attempt_doubt doubt;
    struct plan plan;
    bool arbiter_late; /* all nodes are asked, for the arbiter of the attempt before did not answer in time */
};

enum wait_verdict {
    WAIT_STAY,        /* no attempt now */
    WAIT_TRY_ARBITER, /* an attempt that asks the arbiter first */
    WAIT_TRY_ALL,     /* an attempt that asks all nodes at once */
};

/*
 * What a waiting lock heard of releases, and whether it asks because of that (rules 6.7 to 6.11; news.c).
 *
 *                      another release                pause drawn (rule 6.8)
 *        OLD --------------------------------> FRESH ------------------------> DRAWN
 *         |                                    ^   ^                             |
 *         | the same again, by a node          |   +-----------------------------+
 *         | whose answer is awaited            |     another one, by the arbiter
 *         +--------------> REPEATED -----------+
 *                             it then names the holder: the release was late there
 *
 * An attempt that begins makes each of them OLD.
 */
enum news_state { NEWS_OLD, NEWS_REPEATED, NEWS_FRESH, NEWS_DRAWN };

struct news {
    enum news_state state;
    bool published;        /* a notice came since the latest wait began */
    uint64_t id;           /* the holder of the latest release; 0: unknown */
    uint64_t elsewhere_id; /* the holder whose release others than the arbiter reported since all nodes were asked */
    uint64_t keys;         /* released since the latest attempt began, a bit each */
    uint32_t nodes;        /* those that published a release since the latest wait began, a bit each */
    uint32_t hints;        /* those whose server reported a change, a bit each: their next report does not count */
};

/* A holder, or a contender that was taken for a holder. */
struct named {
    uint64_t id;
    uint64_t since_us; /* when a node named it first */
};

struct wait {
    uint64_t retry_at_us;
    uint64_t poll_at_us;      /* the next attempt if no notice comes */
    bool searches;            /* with permits: tries slot after slot, and has not paused yet */
    bool arbiter_late;        /* the latest attempt ended because its arbiter did not answer in time */
    struct named polled;      /* the holder when the latest wait began */
    struct named before;      /* the holder before that one */
    uint64_t intent_us;       /* when the intent was last sent (intent.c); 0: the nodes have none */
    struct core_token waiter; /* the intent's name at the nodes */
    uint32_t polls, splits;
    uint32_t queues; /* of a fair lock: the nodes that may have a place for it in a queue, a bit each */
    uint32_t ahead;  /* so many intents came before that of this lock, at the node where they are fewest */
    uint32_t turns;  /* of a fair lock: after so many releases it may be its turn */
    bool behind;     /* others in the arbiter's queue come first */
    bool far;        /* so many that the lock listens to a channel of its own (rule 9.5) */
};

/* How far the arbiter's refusals are believed (rule 6.3). */
struct belief {
    uint32_t polls;        /* refusals that are still believed */
    uint64_t confirmed_id; /* the holder that all nodes confirmed when they were last asked */
};

enum round_state {
    ROUND_SETTLED, /* each node has answered, or cannot; also before the first round */
    ROUND_DECIDED, /* a quorum said yes */
    ROUND_OPEN,
};

struct hold {
    uint64_t granted_us;
    uint64_t validity_us;
    uint64_t round_begun_us;
    uint64_t renew_at_us;
    uint64_t repair_at_us;    /* a round for a repair, or to confirm one, is due before renew_at_us; CORE_NEVER: none */
    uint64_t extend_lease_us; /* of the extend in flight; 0: none */
    uint32_t round;           /* 0: the acquire */
    uint32_t renew_failures;
    enum core_loss loss : 8;
    enum round_state round_state : 8;
    uint8_t looked;    /* so many nodes reported a change before this round (rule 3.11) */
    bool round_waits;  /* a renewal waits for room at the nodes */
    bool repair_waits; /* a round for a repair waits for room at the nodes */
    bool looks;        /* a round for a repair is due although no node changed (CORE_EV_LOOK) */
    bool repaired;     /* a node was repaired in this round */
    bool confirms;     /* a node was repaired in the round before */
    bool whole;        /* all nodes said yes in the latest settled round */
};

/* The release in flight. */
struct release {
    uint64_t attempt; /* 0: none is in flight */
    uint64_t until_us;
    uint64_t looked_us;     /* when its end was first found near (debt.c); 0: not yet */
    uint64_t keep_until_us; /* as in struct debt */
    uint32_t absent;        /* nodes that did not have our key */
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
    struct news news;
    struct belief belief;
    struct hold hold;
    struct release release;
    uint64_t late_until_us; /* see struct core_node */
    uint32_t owing;         /* nodes that may owe a release, a bit each */
    uint32_t waiters; /* clients that listen, this one included, as a node last reported in any acquire; 0: unknown */

    /* Completions for the owner: each CORE_EV_DISPATCH takes one. */
    struct {
        int8_t status[CORE_NOTIFY_RELEASED + 1];
        uint8_t kinds; /* a bit for each enum core_notify */
    } pending;

    uint8_t first_arbiter; /* the place in config->arbiters where this lock begins */
    uint32_t log;          /* bits of enum core_log, of the present step */
    enum core_phase phase : 8;
    enum wait_verdict awaits_room : 8; /* the attempt that waits for room at the nodes */
    struct core_node nodes[];
};

/* The end of the lock's nodes. */
#define CORE_END(lock) ((lock)->nodes + (lock)->config->n_nodes)

/* core_arbiter - the node in that place of the lock's order of arbiters. */
static inline uint32_t core_arbiter(const struct core_lock *lock, uint32_t place)
{
    uint32_t index = lock->config->arbiters[(lock->first_arbiter + place) % lock->config->n_nodes];

    assert(place < lock->config->n_nodes);
    assert(index < lock->config->n_nodes);
    return index;
}

/* core_quorum_is_ready - a quorum of nodes is READY, so an attempt may be granted. */
static inline bool core_quorum_is_ready(const struct core_lock *lock)
{
    uint32_t ready = 0;

    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) ready += node->state == NODE_READY;
    return ready >= lock->config->quorum;
}

/* core_count_yeses - count the nodes whose yes lasts as long as the present validity. */
static inline uint32_t core_count_yeses(const struct core_lock *lock)
{
    uint32_t n = 0;

    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        n += node->key.valid_until_us != 0 && node->key.valid_until_us >= lock->hold.validity_us;
    }
    return n;
}

static inline bool core_is_acquiring(const struct core_lock *lock)
{
    return lock->phase == CORE_ASKING || lock->phase == CORE_WAITING || lock->phase == CORE_GRANTED;
}

/* core_awaits_first_attempt - the acquire waits for room at the nodes; a notice cannot bring its first attempt forward.
 */
static inline bool core_awaits_first_attempt(const struct core_lock *lock)
{
    return lock->awaits_room != WAIT_STAY && lock->acquire.attempts == 0;
}

static inline bool core_is_pending(const struct core_lock *lock, enum core_notify kind)
{
    return (lock->pending.kinds & 1u << kind) != 0;
}

/* core_notify - add a completion for the owner. */
static inline void core_notify(struct core_lock *lock, enum core_notify kind, int status)
{
    /* The owner learns the end of an operation before the next one of its kind begins. */
    assert(kind > CORE_NOTIFY_NOTHING && kind <= CORE_NOTIFY_RELEASED);
    assert(!core_is_pending(lock, kind));
    lock->pending.kinds = (uint8_t)(lock->pending.kinds | 1u << kind);
    lock->pending.status[kind] = (int8_t)status;
}

/* core_forget - drop a completion. */
static inline void core_forget(struct core_lock *lock, enum core_notify kind)
{
    lock->pending.kinds = (uint8_t)(lock->pending.kinds & ~(1u << kind));
}

/* core_can_talk - the node takes requests; a quarantined node does, too, but its vote does not count. */
static inline bool core_can_talk(const struct core_node *node)
{
    return node_takes_requests(node->state);
}

/* core_take_connection - note what became of the node's connection. */
static inline void core_take_connection(struct core_node *node, const struct core_node_change *now)
{
    node->state = now->state;
    node->generation = core_can_talk(node) ? now->generation : 0;
    node->down_fault = now->fault;
    node->doubt.broken = now->fault != FAULT_CLASS_NONE;
}

/* core_is_permanent - a node with that fault will not vote soon. A refused login is permanent only before the first
 * login of this client: while a password is changed, client and server may get the new one at different times. */
static inline bool core_is_permanent(const struct step *step, enum fault_class fault)
{
    return fault > FAULT_CLASS_LOGIN || (fault == FAULT_CLASS_LOGIN && !step->logged_in);
}

/* core_vote_failed - record that the node does not vote. FAULT_CLASS_NONE counts as FAULT_CLASS_TEMPORARY. */
static inline void core_vote_failed(struct core_node *node, enum fault_class fault)
{
    /* struct vote_tally has an entry for each class. */
    assert(fault <= FAULT_CLASS_CONFIG);
    node->vote = CORE_VOTE_FAILED;
    node->fault = fault;
    if (fault == FAULT_CLASS_NONE) node->fault = FAULT_CLASS_TEMPORARY;
}

/* core_vote_until - return until when a yes to the command with this tag counts. */
static inline uint64_t core_vote_until(const struct core_lock *lock, const struct core_tag *tag)
{
    return validity_of_vote(tag->sent_us, tag->lease_us, lock->config->drift_ppm, lock->config->drift_fixed_us);
}

/* core_named_by - return the holder that this node named with its refusal, or 0. */
static inline uint64_t core_named_by(const struct core_node *node)
{
    return node->vote == CORE_VOTE_OTHER ? node->asked.holder.id : 0;
}

/* core_send - add a command for a node to the update, and return it. Rule 1.2: now is its send time. */
static inline struct core_command *core_send(struct core_lock *lock, struct step *step, uint32_t node, enum op op,
                                             uint64_t lease_us)
{
    struct core_command *command = &step->update->commands[step->update->n_commands++];

    assert(step->update->n_commands <= CORE_COMMANDS_MAX);
    assert(node < lock->config->n_nodes);
    assert(core_can_talk(&lock->nodes[node]));
    /* No key is set or kept without an expiry. */
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
