/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * state.h - what a core_lock is made of, for the rooms of the core only
 *
 *   core.c     events in, tells out, questions
 *   attempt.c  one try on all nodes: votes, verdict
 *   wait.c     when to try again, and whom to ask first
 *   doubt.c    how far the word of one node is believed
 *   hold.c     renewal, repair, loss
 *   debt.c     releases that nodes owe us
 *   fence.c    one fencing token over the quorum
 */
#ifndef QUORLOCK_CORE_STATE_H
#define QUORLOCK_CORE_STATE_H

#include "backoff.h"
#include "control.h"
#include "core.h"
#include "validity.h"

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

/* core.c */
/* core_can_talk - takes requests, if not for a vote. */
static inline bool core_can_talk(const struct core_node *node)
{
    return node->state == CORE_NODE_READY || node->state == CORE_NODE_QUARANTINED;
}
static inline uint64_t core_larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}
/* core_send - adds a command for a node, asked now, and returns it. */
struct core_command *core_send(struct core_lock *, struct step *, uint32_t node, enum core_op,
                               uint64_t lease_us, bool use_eval);

/* wait.c */
/* wait_arbiter - whom to ask first; n_nodes where there is nobody. */
uint32_t wait_arbiter(const struct core_lock *);
/* wait_timeout - until when an answer is waited for that was asked for then, where somebody is in the way. */
uint64_t wait_timeout(const struct core_lock *, uint32_t node, uint64_t asked_us);
/* wait_meets_holder - who refused us holds the lock; else he tries like us. */
bool wait_meets_holder(const struct core_lock *);
/* wait_begin - an attempt failed: when to try again. held: a quorum voted. */
void wait_begin(struct core_lock *, uint64_t now_us, bool held);
/* wait_behind - a lock of this process holds the keys. */
void wait_behind(struct core_lock *, uint64_t now_us);
void wait_on_node_state(struct core_lock *, uint32_t node, uint64_t now_us);
void wait_on_notice(struct core_lock *, struct step *, const struct core_event *);
void wait_on_listening(struct core_lock *, struct step *, const struct core_event *);
void wait_on_wake(struct core_lock *, struct step *, bool yield);
/* wait_own_notice - a release of ours goes out there that will be told to us, too: no news. True: counted. */
bool wait_own_notice(struct core_node *);

/* doubt.c */
/* doubt_fits - it may be the arbiter, if it is READY; doubt_may_serve: where no other fits. */
bool doubt_fits(const struct core_node *);
bool doubt_may_serve(const struct core_node *);
/* doubt_learn - all nodes were asked, and a quorum did not grant: who holds it, and whose key is odd? */
void doubt_learn(struct core_lock *);
/* doubt_arbiter - the arbiter refused: ask the others, too? */
bool doubt_arbiter(struct core_lock *);
/* doubt_until - until when answers are waited for that say whether the arbiter's word is true; 0: none are. */
uint64_t doubt_until(const struct core_lock *);
/* doubt_on_vote - a node has answered a question for its vote. */
void doubt_on_vote(struct core_node *);
/* doubt_is_blocked - odd keys alone keep everybody from a quorum. */
bool doubt_is_blocked(const struct core_lock *);

/* attempt.c */
/* attempt_again - the next attempt of the acquire in flight: all nodes at once, or the arbiter first. Where the
 * nodes have no room for it, it waits for attempt_on_room. */
void attempt_again(struct core_lock *, struct step *, bool all);
void attempt_on_room(struct core_lock *, struct step *);
void attempt_begin_acquire(struct core_lock *, struct step *, const struct core_event *);
void attempt_on_timer(struct core_lock *, struct step *);
void attempt_on_node_state(struct core_lock *, struct step *, uint32_t node);
void attempt_on_reply(struct core_lock *, struct step *, const struct core_reply *);
/* attempt_on_step - a node's clock stepped forward: its yes that was asked for before is none. */
void attempt_on_step(struct core_lock *, struct step *, uint32_t node, uint64_t before_us);
/* attempt_doom - Q yeses are out of reach. */
void attempt_doom(struct core_lock *, struct step *);
/* attempt_lacks_quorum - it failed because too few nodes could vote. */
bool attempt_lacks_quorum(const struct core_lock *);
/* attempt_too_late - Q yeses came, but nothing is left of the validity. */
void attempt_too_late(struct core_lock *, struct step *);
uint64_t attempt_deadline(const struct core_lock *);
/* attempt_wait_status - what the wait bound says: the whole story of all attempts, or TIMEDOUT where it is
 * mixed. */
int attempt_wait_status(const struct core_lock *);

/* hold.c */
/* hold_grant - the Qth yes came. */
void hold_grant(struct core_lock *, struct step *);
uint64_t hold_lost_at(const struct core_lock *);
/* hold_check_lost - to be called before anything else in a step. */
void hold_check_lost(struct core_lock *, uint64_t now_us);
void hold_on_timer(struct core_lock *, struct step *);
void hold_on_node_state(struct core_lock *, struct step *, uint32_t node);
void hold_on_reply(struct core_lock *, struct step *, const struct core_reply *);
/* hold_on_step - a node's clock stepped forward: its votes begun before count no more. */
void hold_on_step(struct core_lock *, struct step *, uint32_t node, uint64_t before_us);
/* hold_late_vote - a yes of the acquire that came after the verdict. */
void hold_late_vote(struct core_lock *, struct step *);
/* hold_begin_round - or, where the nodes have no room for it, waits for hold_on_room. */
void hold_begin_round(struct core_lock *, struct step *);
void hold_on_room(struct core_lock *, struct step *);
uint64_t hold_deadline(const struct core_lock *);

/* fence.c */
/* fence_judge - Q nodes granted: grants when Q of them show one token, else raises; dooms the attempt where
 * that is out of reach. */
void fence_judge(struct core_lock *, struct step *, uint32_t pending);
/* fence_raise - asks one node to raise its counter to the largest that a granted node showed. */
void fence_raise(struct core_lock *, struct step *, uint32_t node, bool use_eval);

/* debt.c */
bool debt_room(struct core_node *, uint64_t now_us);
/* debt_end_attempt - releases the present attempt on every node that may hold its key. */
void debt_end_attempt(struct core_lock *, struct step *);
/* debt_pay - the node has a connection, perhaps a new one. */
void debt_pay(struct core_lock *, struct step *, uint32_t node);
/* debt_on_room - sends what the node had no room for. */
void debt_on_room(struct core_lock *, struct step *, uint32_t node);
/* debt_waits - the node had no room for a release of ours: nothing new is asked of it before. */
bool debt_waits(const struct core_node *);
void debt_on_reply(struct core_lock *, struct step *, const struct core_reply *);
void debt_on_timer(struct core_lock *, struct step *);
bool debt_any(const struct core_lock *);
uint64_t debt_deadline(const struct core_lock *);
/* debt_judge_release - ends the release in flight when its result is certain. */
void debt_judge_release(struct core_lock *, uint64_t now_us);
/* debt_end_release - ends it with what is known now. */
void debt_end_release(struct core_lock *);
/* debt_release_deadline - when the release in flight ends without a quorum of answers. */
uint64_t debt_release_deadline(const struct core_lock *);

#endif
