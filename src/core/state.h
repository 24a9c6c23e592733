/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * state.h - what a core_lock is made of
 */
#ifndef QUORLOCK_CORE_STATE_H
#define QUORLOCK_CORE_STATE_H

#include "backoff.h"
#include "core.h"

/* A release that a node has not answered yet. */
struct debt {
    bool owed;
    struct core_token token;
    uint64_t attempt;
    uint64_t fence; /* the token to leave in the node's counter; 0: none */
    bool silent;
    uint64_t until_us;        /* the key has certainly expired by then */
    uint32_t sent_generation; /* connection it is under way on, or was refused on for good; 0: none */
    bool refused;             /* for good: that connection is not asked again */
    bool unclear;             /* an earlier try may have been executed */
    bool told;                /* a notice of it is to come to us, too: counted in own_notices */
    uint32_t tries;           /* that failed */
    uint64_t again_at_us;     /* when it is tried again on the same connection; CORE_NEVER: it is not */
    bool unsent;              /* the node had no room for it: it goes out with CORE_EV_ROOM */
};

struct core_node {
    enum core_node_state state;
    uint32_t generation;
    enum core_fault down_fault;
    uint32_t srtt_us;

    /* The latest round of the present attempt. */
    enum core_vote vote;
    enum core_fault fault;
    enum core_vote last_vote; /* in the attempt in which it was asked last, of this acquire */
    enum core_fault last_fault;
    uint32_t yes_round;    /* the last renewal round it said yes in */
    uint32_t repair_round; /* the last renewal round after which it was given the key again */
    bool peeking;
    uint64_t holder_id; /* who refused us, 0 where unknown */
    int64_t ttl_us;

    /* The present attempt. */
    bool touched;              /* our key may be there */
    uint64_t touched_until_us; /* until then, at most */
    bool gone;                 /* its latest definite answer: our key is not there */
    uint64_t valid_until_us;   /* its yes counts until then; 0: no yes */
    uint64_t vote_sent_us;     /* when that yes was asked for */
    uint64_t asked_us;         /* when it was asked for its vote the last time */
    uint64_t stepped_us;       /* when its clock was last found to have stepped; 0: never */
    uint64_t met_holder_id;    /* who refused us when it was asked the time before */
    uint64_t fence;            /* its counter, as last told while the key was ours */
    bool raising;              /* a raise is under way */

    /* Waiting. */
    bool overdue;        /* it left a question unanswered, and has not answered anything since: no arbiter */
    bool unfit;          /* it answered the latest question for its vote with an error: no arbiter */
    bool odd;            /* its key is no quorum's: no arbiter, while it is */
    uint64_t odd_id;     /* that key's */
    bool listening;      /* its notices come */
    bool noticed;        /* one came since we began to wait */
    uint8_t own_notices; /* releases of ours that it tells us of, too */

    struct debt debts[CORE_DEBTS_MAX];
};

struct core_lock {
    struct core_config config;
    enum core_phase phase;
    struct backoff_jitter jitter;

    struct core_token token;
    uint64_t attempt;
    uint64_t fence; /* the agreed token of the present grant */
    uint64_t floor; /* of the present attempt's tokens */

    /* The acquire in flight. */
    bool acquiring;
    uint64_t wait_until_us;
    uint64_t retry_at_us;
    uint64_t attempt_begun_us;
    bool queued;        /* an attempt waits for room at the nodes */
    bool queued_all;    /* that one shall ask all nodes at once */
    bool doomed;        /* this attempt cannot win; it was released and is only being classified */
    bool seen_held;     /* an attempt failed because of another holder */
    bool seen_noquorum; /* an attempt failed because too few could vote */
    bool arbiter_only;  /* the others are asked with the yes of this one, or after rest_at_us */
    uint32_t arbiter;
    uint64_t rest_at_us;
    bool noticed;           /* a notice came during this attempt: it may have asked too early */
    uint64_t released_id;   /* whose release the latest notice told */
    uint64_t woken_id;      /* the same, as it was when the latest attempt began */
    bool heard;             /* a release was heard of, and our turn after it is drawn */
    uint64_t given_back_id; /* whose release other nodes than the arbiter told since all were asked */
    uint64_t confirmed_id;  /* who may hold it, as far as all nodes said when they were asked last */
    bool doubting;          /* this attempt asks all whether the arbiter's word is true */
    bool doubted;           /* and whoever has not answered by now is not waited for */
    uint32_t belief;        /* so many times more the arbiter is believed that the same holder is there */
    uint32_t waiters; /* who listens, ourselves among them, as a node told last, also for an acquire before; 0:
                       unknown */
    uint64_t poll_at_us; /* when we try again whatever we hear */
    uint64_t polled_id;  /* who held it when we began to wait the last time */
    uint32_t attempts, polls, splits;

    /* The hold. */
    bool notified_held;
    uint64_t lease_us;
    uint64_t granted_us;
    uint64_t validity_us;
    uint64_t margin_us;
    uint64_t renew_at_us;
    uint64_t round_begun_us;
    uint32_t round;
    bool round_open;    /* neither renewed nor failed yet */
    bool round_settled; /* every node has answered or cannot */
    bool round_waits;   /* a round waits for room at the nodes */
    bool whole;         /* all nodes said yes in the latest settled round */
    uint32_t renew_failures;
    bool extending;
    uint64_t extend_lease_us;

    /* The release in flight. */
    bool releasing;
    uint64_t release_attempt;
    uint64_t release_until_us;
    uint64_t release_looked_us; /* when it was found nearly late; 0: not yet */
    bool release_expired;
    uint32_t release_absent; /* nodes that answered it that our key was not there */

    /* What waits to be told. */
    bool notify_lost, notify_acquired, notify_extended, notify_released;
    enum core_loss loss;
    int acquired_status, extended_status, released_status;

    uint32_t log; /* of the present step */
    struct core_node nodes[];
};

/* What a step carries through the rooms. */
struct step {
    uint64_t now_us;
    const unsigned char *random; /* may be NULL where no attempt can begin */
    uint64_t wall_us;
    bool no_attempt, no_round; /* as in struct core_event */
    struct core_update *update;
};

/* core_can_talk - takes requests, if not for a vote. */
static inline bool core_can_talk(const struct core_node *node)
{
    return node->state == CORE_NODE_READY || node->state == CORE_NODE_QUARANTINED;
}
static inline uint64_t core_larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}
/* core_named_by - the holder that refused this node's vote in this attempt; 0 where unknown. */
static inline uint64_t core_named_by(const struct core_node *node)
{
    return node->vote == CORE_VOTE_OTHER ? node->holder_id : 0;
}

#endif
