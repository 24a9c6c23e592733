/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core.h - one lock's deterministic state machine
 *
 * The core decides: it is fed events with the time and answers with commands for the nodes, the next time at
 * which it wants to be woken, and what the owner is to be told. It has no socket, clock, timer, random source
 * or memory of its own, so the same object code runs under libevent and under the simulator.
 *
 * How a lock travels:
 *
 *   IDLE --acquire--> ASKING --Q yeses--> GRANTED --dispatch, still valid--> HELD --lost_at--> LOST
 *                      |  ^                  |                                |
 *               failed |  | retry_at         | too late                       | release
 *                      v  |                  v                                v
 *                     WAITING <--------------+                              IDLE
 *
 * With fencing the token must be agreed between the Qth yes and GRANTED; this is still ASKING (fence.c).
 *
 * Where somebody else holds the lock, or votes were split, the next attempts ask one node first, the arbiter,
 * and the others only with its yes (wait.c). Notices of releases and of subscriptions only say when to try; no
 * vote depends on them.
 *
 * An attempt that ends in any way (failed, canceled, released, lost and released) leaves a *release debt* on
 * every node that may hold its key. A debt is paid by a release on the next connection that is READY, and ends
 * when the node answered, or when the lease has certainly ended. New attempts do not wait for debts: on one
 * connection the release goes out before the next acquire.
 */
#ifndef QUORLOCK_CORE_CORE_H
#define QUORLOCK_CORE_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "limits.h"

#define CORE_NEVER UINT64_MAX

/* Fresh for every attempt. What the nodes see is made from it by the caller (label and hex). */
struct core_token {
    unsigned char bytes[CORE_TOKEN_SIZE];
};

/* Checked by options.c before; the core asserts it. All times in microseconds. */
struct core_config {
    uint32_t n_nodes;
    uint32_t quorum;
    uint64_t lease_us;
    uint64_t renew_us; /* CORE_NEVER: no renewal */
    uint64_t wait_us;  /* 0: try once; CORE_NEVER: for ever */
    uint64_t min_valid_us;
    uint64_t lost_margin_us; /* 0: 2 x allowance, at least 10 ms, of the lease in use */
    uint64_t max_hold_us;    /* CORE_NEVER: no bound */
    uint64_t node_timeout_us;
    uint32_t drift_ppm;
    uint64_t drift_fixed_us;
    bool fencing; /* every grant carries a token that rises over the quorum */
    /* Node numbers in the order in which whoever waits for this key asks for an arbiter, the same for all
     * clients that know the nodes; all zero: as they are numbered. */
    uint8_t arbiters[CORE_NODES_MAX];
};

enum core_phase { CORE_IDLE, CORE_ASKING, CORE_WAITING, CORE_GRANTED, CORE_HELD, CORE_LOST };

/* What a node may do for us now. */
enum core_node_state {
    CORE_NODE_CONNECTING, /* may vote soon: a try waits for it, one node timeout at most */
    CORE_NODE_READY,
    CORE_NODE_QUARANTINED, /* may have lost its memory: extends, repairs and releases, but has no vote */
    CORE_NODE_DOWN,
};

/* Why there is no vote, as far as the verdict depends on it. */
enum core_fault {
    CORE_FAULT_NONE,
    CORE_FAULT_PASSING, /* unreachable, too late, loading, out of memory...: it may pass */
    CORE_FAULT_AUTH,
    CORE_FAULT_FOREIGN,
    CORE_FAULT_PROTO,
    CORE_FAULT_CONFIG, /* the node refuses how we are configured: another N, set, max_lease... */
};

enum core_op {
    CORE_OP_ACQUIRE, /* set if absent */
    CORE_OP_REPAIR,  /* the same on the wire, but no vote of this round */
    CORE_OP_EXTEND,
    CORE_OP_RELEASE,
    CORE_OP_PEEK,  /* who holds it, after a refusal */
    CORE_OP_RAISE, /* where the key is ours: the fencing counter to at least the token */
};

/* Travels with a command and comes back with its reply. */
struct core_tag {
    uint64_t attempt;
    uint64_t sent_us;
    uint64_t lease_us;
    uint32_t round; /* acquire is round 0 of its attempt, each renewal one more */
    uint8_t op;     /* enum core_op */
    uint8_t node;
};

struct core_command {
    struct core_tag tag;
    struct core_token token;
    uint64_t timeout_us; /* 0: until reply or disconnection */
    uint64_t fence;      /* acquire: the floor; raise, repair, release: the token to carry; 0: none */
    bool use_eval;
    bool explain; /* acquire: a refusal should name the holder and its remaining lease */
    bool silent;  /* release: nobody needs to be woken */
};

enum core_outcome {
    CORE_YES,     /* granted, extended, repaired, deleted; peek: a holder is there */
    CORE_OTHER,   /* somebody else's key is there */
    CORE_MISSING, /* no key is there */
    CORE_NOSCRIPT,
    CORE_ERROR,   /* refused with an error: not executed */
    CORE_UNKNOWN, /* executed or not, nobody knows: too late, connection ended */
    CORE_UNSENT,  /* could not be queued at all: certainly not executed */
};

struct core_reply {
    struct core_tag tag;
    enum core_outcome outcome;
    enum core_fault fault;
    uint64_t holder_id;  /* a hash of the holder's token; 0 where unknown */
    int64_t ttl_us;      /* its remaining lease; -1: endless; -2: unknown */
    uint64_t fence;      /* the node's counter after a yes to acquire or raise; 0 without fencing */
    uint32_t generation; /* of the connection it was asked on */
    uint32_t listeners;  /* acquire that was refused: who listens for a release there; release: whom it was told
                            to; 0 where unknown */
};

enum core_event_type {
    CORE_EV_ACQUIRE,  /* uses random, begun_us, behind, seen */
    CORE_EV_HAND_OFF, /* uses begun_us, wait_us: the acquire in flight goes on for another with the same wishes
                       */
    CORE_EV_EXTEND,   /* uses lease_us */
    CORE_EV_RELEASE,
    CORE_EV_CANCEL,    /* uses reason */
    CORE_EV_TIMER,     /* uses random */
    CORE_EV_NODE,      /* uses node, state, generation, fault, srtt_us */
    CORE_EV_REPLY,     /* uses reply */
    CORE_EV_NOTICE,    /* uses node, random, holder_id: a key of this lock was released there */
    CORE_EV_LISTENING, /* uses node, behind: its notices come; earlier ones may have been missed */
    CORE_EV_WAKE,      /* uses random: a lock of this process gave the keys back, right before */
    CORE_EV_STEP,      /* uses node, before_us: its clock was proven to have stepped forward (nodeclock.h) */
    CORE_EV_BEGIN,     /* uses random: there is room for what core_wants() named, and its turn has come */
    CORE_EV_ROOM,      /* uses node: it takes requests again that could not be queued before */
    CORE_EV_DISPATCH,  /* callbacks may run now: check again, and say what to tell */
};

struct core_event {
    enum core_event_type type;
    uint64_t now_us;             /* never smaller than in an earlier event; read just before the step */
    const unsigned char *random; /* CORE_RANDOM_SIZE fresh bytes of the system's random source */
    /* The nodes have no room for the commands of a new attempt, of a new round: it is not begun, but wanted
     * (core_wants) until CORE_EV_BEGIN. Without random bytes no attempt can begin either. */
    bool no_attempt, no_round;
    uint64_t wall_us; /* with random, and fencing: the wall clock, from which the floor of tokens is made */
    uint64_t lease_us;
    int reason; /* CANCEL: enum core_status to tell, CORE_CANCELED or CORE_CLOSED */
    uint32_t node;
    enum core_node_state state;
    uint32_t generation; /* of the READY connection; counts up for each node */
    enum core_fault fault;
    uint32_t srtt_us;
    uint64_t before_us; /* STEP: votes asked for before count no more */
    uint64_t begun_us;  /* ACQUIRE, HAND_OFF: since when it waits; the wait bound counts from there; 0: now */
    uint64_t wait_us;   /* HAND_OFF: the other's bound; not 0 */
    /* ACQUIRE: a lock of this process holds the keys, or others come first: do not ask before there is a sign;
     * WAKE: let others come first this time; LISTENING: since before the acquire. */
    bool behind;
    uint32_t seen;      /* ACQUIRE: what stood in the way while it waited before, bits of enum core_seen */
    uint64_t holder_id; /* NOTICE: whose release; 0 where unknown */
    struct core_reply reply;
};

/* What stood in the way of attempts so far; a bit each. */
enum core_seen {
    CORE_SEEN_HELD = 1,     /* somebody else's lock */
    CORE_SEEN_NOQUORUM = 2, /* too few nodes that can vote */
};

/* Equal in value to enum quorlock_status; asserted in claim.c. */
enum core_status {
    CORE_OK = 0,
    CORE_INVAL = -1, /* also the verdict where nodes refuse our configuration */
    CORE_BUSY = -3,
    CORE_STATE = -4,
    CORE_HELD_BY_OTHER = -5,
    CORE_NOQUORUM = -6,
    CORE_TIMEDOUT = -7,
    CORE_LOST_LOCK = -8,
    CORE_CANCELED = -9,
    CORE_CLOSED = -10,
    CORE_NO_AUTH = -11,
    CORE_FOREIGN_KEY = -12,
    CORE_NO_PROTO = -13,
};

enum core_notify {
    CORE_NOTIFY_NOTHING,
    CORE_NOTIFY_LOST,
    CORE_NOTIFY_ACQUIRED,
    CORE_NOTIFY_EXTENDED,
    CORE_NOTIFY_RELEASED
};
enum core_loss {
    CORE_LOSS_NONE,
    CORE_LOSS_EXPIRED,
    CORE_LOSS_GONE,
    CORE_LOSS_MAX_HOLD,
    CORE_LOSS_NOT_RENEWED,
    CORE_LOSS_CLOCK
};

/* One thing to tell the owner, right now and in this order. */
struct core_completion {
    enum core_notify kind;
    int status;          /* enum core_status */
    enum core_loss loss; /* TELL_LOST */
    bool expired;        /* TELL_RELEASED: it had expired or was lost before */
};

/* Worth a log line; a bit each. */
enum core_log {
    CORE_LOG_ATTEMPT_FAILED = 1,
    CORE_LOG_RENEWED = 2,      /* a round reached its quorum */
    CORE_LOG_RENEW_FAILED = 4, /* a round ended without */
    CORE_LOG_DEGRADED = 8,     /* fewer votes than nodes now, all had them before */
    CORE_LOG_WHOLE = 16,       /* all nodes again */
    CORE_LOG_REPAIRED = 32,    /* a node got the key again */
};

struct core_update {
    uint32_t n_commands;
    struct core_command commands[CORE_COMMANDS_MAX]; /* to be queued in this order */
    bool dispatch; /* something is to be told: call CORE_EV_DISPATCH from the top of the loop, soon */
    struct core_completion completion; /* after CORE_EV_DISPATCH only; call it again until NOTHING */
    uint32_t log;
};

/* What waits for room at the nodes, and begins with CORE_EV_BEGIN. */
enum core_wants { CORE_WANTS_NOTHING, CORE_WANTS_ATTEMPT, CORE_WANTS_ROUND };

enum core_vote {
    CORE_VOTE_NONE,
    CORE_VOTE_PENDING,
    CORE_VOTE_YES,
    CORE_VOTE_OTHER,
    CORE_VOTE_FAILED,
    CORE_VOTE_MISSING
};

struct core_lock;

/* core_size - bytes that a lock on n_nodes needs; memory is the caller's, aligned as by malloc. */
size_t core_size(uint32_t n_nodes);
/* core_init - a lock in IDLE; all nodes DOWN until events say better. The config is copied. */
void core_init(struct core_lock *, const struct core_config *);
/*
 * core_step - one event in, one update out
 *
 * *update is written whole up to n_commands; it need not be initialized. Returns 0, or for ACQUIRE, EXTEND,
 * RELEASE, CANCEL and HAND_OFF a core_status (BUSY, STATE, INVAL); then nothing was begun.
 */
int core_step(struct core_lock *, const struct core_event *, struct core_update *);

/* core_deadline - when CORE_EV_TIMER is wanted, CORE_NEVER when not. Changes with every step. */
uint64_t core_deadline(const struct core_lock *);
enum core_phase core_phase_now(const struct core_lock *);
/* core_may_acquire - CORE_EV_ACQUIRE would not be refused. */
bool core_may_acquire(const struct core_lock *);
/* core_wants - what waits for room at the nodes. Changes with every step. */
enum core_wants core_wants(const struct core_lock *);
/* core_listens - notices would help. */
bool core_listens(const struct core_lock *);
/* core_wait_verdict - what the wait bound would say now, enum core_status. */
int core_wait_verdict(const struct core_lock *);
/* core_seen - what stood in the way of the latest acquire, bits of enum core_seen. */
uint32_t core_seen(const struct core_lock *);
/* core_loss - why the present or last loss came about. */
enum core_loss core_loss(const struct core_lock *);
/* core_notified_held - the owner was told that it holds the lock, and nothing else since. */
bool core_notified_held(const struct core_lock *);
/* core_valid_us - validity left; 0 from lost_at on, and whenever the owner was not told that it holds. */
uint64_t core_valid_us(const struct core_lock *, uint64_t now_us);
/* core_loss_pending - a loss waits to be told. */
bool core_loss_pending(const struct core_lock *);
/* core_remaining_us - until the validity of the present or lost grant ends, whatever was told; 0 where it may
 * have ended before the loss was noticed. */
uint64_t core_remaining_us(const struct core_lock *, uint64_t now_us);
/* core_valid_until - end of validity of a grant or hold, 0 where there is none. */
uint64_t core_valid_until(const struct core_lock *);
uint64_t core_lost_at(const struct core_lock *);
/* core_fence - fencing token of a grant or hold, 0 where there is none. */
uint64_t core_fence(const struct core_lock *);
uint64_t core_lease_us(const struct core_lock *);
/* core_vote - this node's latest answer in the present round, or before where an arbiter spared it the
 * question; fault says why it failed. */
enum core_vote core_vote(const struct core_lock *, uint32_t node, enum core_fault *fault);
/* core_counted - nodes whose key counts for the present validity. */
uint32_t core_counted(const struct core_lock *);
uint64_t core_attempt(const struct core_lock *); /* number of the latest attempt, from 1 over the lock's life */
uint32_t core_rounds(const struct core_lock *);  /* attempts of the present acquire */
const struct core_token *core_token_now(const struct core_lock *);
/* core_quiet - idle, nothing to tell, no debt: the memory may go. */
bool core_quiet(const struct core_lock *);
/* core_debts - releases that a node still owes us; n_nodes is no node. */
uint32_t core_debts(const struct core_lock *, uint32_t node);

#endif
