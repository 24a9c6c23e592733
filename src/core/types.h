/* SPDX-License-Identifier: BSD-3-Clause */
/* types.h - what goes into the core and what comes out */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/protocol.h"
#include "limits.h"

#define CORE_NEVER UINT64_MAX

/* Random bytes, fresh for each attempt. The caller makes the owner's text at the nodes from them. */
struct core_token {
    unsigned char bytes[CORE_TOKEN_SIZE];
};

/* Shared by all locks with the same options. Checked by options.c. All times in microseconds. */
/* How the caller waits for the lock and holds it: nothing of this reaches the nodes, but for keep_us at a release. */
struct core_holder {
    uint64_t wait_us;  /* 0: try once; CORE_NEVER: for ever */
    uint64_t renew_us; /* CORE_NEVER: no renewal */
    /* Renewals are due at multiples of this, so that those of many locks go out together, and earlier by a random part
     * of renew_us, so that not all of them do. 0: exactly renew_us after the one before. */
    uint64_t renew_grid_us;
    uint64_t min_valid_us;
    uint64_t lost_margin_us; /* 0: 2 x allowance, at least 10 ms, of the lease in use */
    uint64_t max_hold_us;    /* CORE_NEVER: no bound */
    uint64_t keep_us;        /* the keys stay for so long after a grant, also when they are released; 0: they do not */
};

/* Behind holder stands what the nodes are asked, and how: a lock may take over the attempt of another lock only if all
 * of that is the same (core_asks_same). */
struct core_config {
    struct core_holder holder;
    uint64_t lease_us;
    uint64_t node_timeout_us; /* of a request */
    uint64_t connect_us;      /* of a node that is still connecting, before it can be asked */
    uint64_t drift_fixed_us;
    uint64_t shared; /* the keys that are locked shared, a bit each in the order of the nodes' requests */
    uint32_t n_nodes;
    uint32_t quorum;
    uint32_t drift_ppm;
    uint32_t permits; /* 0: an ordinary lock */
    bool fencing;     /* every grant carries a token that rises over the quorum */
    bool told;        /* nodes can report changes of the key (rules 3.11 and 6.10) */
    bool fair;        /* the arbiter serves the waiting locks in the order in which they came (fair.c) */
    bool reads;       /* all keys are shared: the token is the highest counter of the nodes, and no counter rises */
    /* The nodes in an order that all clients share. A lock's waiters look for their arbiter in this order, from the
     * lock's first arbiter on. */
    uint8_t arbiters[CORE_NODES_MAX];
};

/* All of it but for the padding at the end: configs are compared byte by byte. */
#define CORE_CONFIG_SIZE (offsetof(struct core_config, arbiters) + CORE_NODES_MAX)
_Static_assert(CORE_CONFIG_SIZE == 12 * sizeof(uint64_t) + 4 * sizeof(uint32_t) + 4 * sizeof(bool) + CORE_NODES_MAX,
               "there is padding between the members");

/* core_asks_same - tell whether the nodes are asked the same for both. */
static inline bool core_asks_same(const struct core_config *one, const struct core_config *two)
{
    return memcmp(&one->lease_us, &two->lease_us, CORE_CONFIG_SIZE - sizeof(one->holder)) == 0;
}

enum core_phase { CORE_IDLE, CORE_ASKING, CORE_WAITING, CORE_GRANTED, CORE_HELD, CORE_LOST };

/* Travels with a command and comes back with its reply. */
struct core_tag {
    uint64_t attempt;
    uint64_t sent_us;
    uint64_t lease_us; /* in a release: how long the keys are kept before they expire; 0: they are deleted */
    uint32_t round;    /* acquire is round 0 of its attempt, each renewal one more */
    uint8_t op;        /* enum op */
    uint8_t node;
    uint8_t slot; /* with permits: the slot asked for (first); in a release CORE_SLOT_NONE: any slot of this token */
};

struct core_command {
    struct core_tag tag;
    struct core_token token;
    uint64_t timeout_us; /* 0: until reply or disconnection */
    uint64_t fence;      /* acquire: the floor; raise, repair, release: the token for the counter; 0: none */
    uint64_t waited_us;  /* acquire of shared keys or with queues, intent: how long the lock has waited */
    uint64_t queued_us;  /* acquire with queues: how long the lock stays in the queue without another request */
    bool explain;        /* acquire: a refusal should name the holder and its remaining lease */
    bool watch;          /* acquire, peek: the node should tell when the key changes next */
    bool patient;        /* acquire, intent: one of many asks, and nothing is lost if the node answers late */
    bool silent;         /* release: publish nothing */
    bool if_deleted;     /* release: publish only if the key was deleted */
    bool queues;         /* acquire: the node refuses while others in its queue come first; intent: leave the queue */
    bool any;            /* acquire with permits: take the first free slot, from the tag's slot on and round */
    uint64_t passed;     /* with any: slots that are not taken, a bit each */
};

struct core_reply {
    struct core_tag tag;
    enum outcome outcome;
    enum fault_class fault;
    uint64_t holder_id;  /* a hash of the holder's token; 0: unknown */
    int64_t ttl_us;      /* the holder's remaining lease; -1: endless; -2: unknown */
    uint64_t fence;      /* the node's counter after a yes to acquire or raise; 0 without fencing */
    uint32_t generation; /* of the connection that carried the request */
    uint32_t listeners;  /* subscribers of the key at this node, from a refused acquire or a release; 0: unknown */
    uint64_t refusing;   /* after a refused acquire of several keys: the keys held by others, a bit each; 0: unknown */
    uint32_t turns;      /* after a refused acquire with queues: after so many releases it may be granted; else 0 */
    uint32_t before;     /* of these, the turns of others in the queue that come first; after an intent: so many of the
                            same mode came before */
    bool readers;        /* the holder stands for all that hold the keys shared */
    bool watched;        /* the node was asked to tell when the key changes next */
    bool given_up;       /* after a refusal: the key in the way may be a late one of ours; its release was just sent */
    bool overdue;        /* not sent, and the node leaves earlier requests unanswered: room may never come */
    uint8_t slot;        /* with permits, after a yes to acquire: the slot granted */
    uint64_t free;       /* with permits, after a refusal: the slots free at this node, a bit each */
    int64_t first_us;    /* with permits, after a refusal: until the first lease ends of the slots that were not passed
                            over; -1: no lease ends */
};

enum core_event_type {
    CORE_EV_ACQUIRE,  /* may use random */
    CORE_EV_HAND_OFF, /* another owner with the same options takes over the acquire in flight */
    CORE_EV_EXTEND,
    CORE_EV_RELEASE,
    CORE_EV_DETACH, /* the lock is not held any more, and its keys stay for whoever adopts its token */
    CORE_EV_CANCEL,
    CORE_EV_TIMER, /* may use random */
    CORE_EV_NODE,  /* a node's state changed */
    CORE_EV_REPLY,
    CORE_EV_NOTICE,    /* may use random: a node tells that a key of this lock was released */
    CORE_EV_HINT,      /* a server tells by itself that the key changed, or was found gone: it may be free */
    CORE_EV_LISTENING, /* the subscription is confirmed: notices come from now on; earlier ones may have been missed */
    CORE_EV_WAKE,      /* may use random: a lock of this process has just released the keys */
    CORE_EV_STEP,      /* a node's clock has certainly stepped forward (nodeclock.h) */
    CORE_EV_BEGIN,     /* may use random: the nodes have room for the command that core_wants() names */
    CORE_EV_ROOM,      /* a node has room for releases that could not be queued */
    CORE_EV_LOOK,      /* a node tells that our key may be gone from it: begin a round */
    CORE_EV_LOSE,      /* treat the hold as about to expire */
    CORE_EV_DISPATCH,  /* callbacks may run now: check the validity again, and return the next completion */
};

struct core_event {
    enum core_event_type type;
    uint64_t now_us;             /* never smaller than in an earlier event; read just before the step */
    const unsigned char *random; /* CORE_RANDOM_SIZE fresh bytes of the system's random source */
    uint64_t wall_us;            /* with random, and fencing: the wall clock, the least fencing token */
    /* The nodes have no room for a new attempt, a new round, or a round for a repair. The lock does not begin it, but
     * wants it (core_wants) until CORE_EV_BEGIN. Without random bytes no attempt can begin either. */
    bool no_attempt, no_round, no_repair;
    bool logged_in;           /* a node has accepted a login of this client, so a refused login may be accepted later */
    struct core_slots *slots; /* with permits: the slots of the lock's name, in every event; else NULL */
    /* A block of core_debts_size(), zeroed or from an earlier lock, if the lock has none: it takes the block if it
     * needs one. NULL: no memory; then no node is asked that owes a release. */
    struct debt *debts;
    union {
        struct core_reply reply;
        struct core_acquire {
            uint64_t begun_us; /* wait_us counts from then; 0: from now */
            uint32_t seen;     /* what was in the way before, bits of enum core_seen */
            bool behind;       /* a lock of this process holds the keys, or others come first: wait for a notice, a
                                  wake or a poll before the first attempt */
            uint32_t late;     /* nodes that leave earlier requests of this client unanswered, a bit each */
            const struct core_token *adopts; /* the nodes are asked to extend the keys of that token, once; NULL: they
                                                are asked for the keys */
        } acquire;
        struct {
            uint64_t begun_us;                /* the new owner's wait_us counts from then */
            const struct core_config *config; /* the same but for holder; its wait_us is not 0 */
        } hand_off;
        struct {
            uint64_t lease_us; /* 0: the present lease */
        } extend;
        struct {
            bool undo; /* the owner has not begun its work: nothing is kept */
        } release;
        struct {
            int status; /* of the completion */
        } cancel;
        struct core_node_change {
            uint32_t index;
            enum node_state state;
            uint32_t generation; /* of the connection that takes requests; rises with each connection */
            enum fault_class fault;
            uint32_t srtt_us;      /* 0: unknown */
            uint64_t life_us;      /* when this client first met the present server process and guard; 0: unknown */
            uint64_t connected_us; /* since when the present connection takes requests; 0: no lock asks anew for that */
        } node;
        struct core_notice {
            uint32_t node;
            uint32_t key;       /* place of the released key among the lock's keys */
            uint64_t holder_id; /* the owner that released; 0: unknown */
        } notice;
        struct {
            uint32_t node;
        } hint;
        struct {
            uint32_t node;
            bool before_acquire; /* confirmed before the acquire, so no notice was missed */
        } listening;
        struct {
            bool yield; /* let other processes try first */
        } wake;
        struct {
            uint32_t node;
            uint64_t before_us; /* votes that were asked for earlier do not count */
        } step;
        struct {
            uint32_t node;
        } room;
        struct {
            uint32_t node;
            bool by_server; /* not by the client that deleted our key: it may be a change of our own */
        } look;
    };
};

/* What was in the way of attempts so far; a bit each. */
enum core_seen {
    CORE_SEEN_HELD = 1,     /* another client's lock */
    CORE_SEEN_NOQUORUM = 2, /* less than a quorum of nodes could vote */
};

/* Equal in value to enum quorlock_status; asserted in lock.c. */
enum core_status {
    CORE_OK = 0,
    CORE_INVAL = -1, /* also: the nodes refuse our configuration */
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

/* A completion for the owner's callback. */
struct core_completion {
    enum core_notify kind;
    int status;             /* enum core_status */
    enum core_loss loss;    /* of LOST */
    bool expired;           /* of RELEASED: the hold had expired or was lost before */
    uint64_t keep_until_us; /* of RELEASED: the keys are kept until then; 0: they are not */
};

/* Worth a log line; a bit each. */
enum core_log {
    CORE_LOG_ATTEMPT_FAILED = 1,
    CORE_LOG_RENEWED = 2,      /* a round reached its quorum */
    CORE_LOG_RENEW_FAILED = 4, /* a round ended without a quorum */
    CORE_LOG_DEGRADED = 8,     /* not all nodes say yes any more */
    CORE_LOG_WHOLE = 16,       /* all nodes say yes again */
    CORE_LOG_REPAIRED = 32,    /* a node got the key again */
};

/* A debt that leaves the core: the node may still execute a request of the attempt. The caller repeats the release, for
 * the last time at until_us or later. */
struct core_late {
    uint64_t until_us; /* 0: there is none */
    uint64_t gone_us;  /* a key that was set until until_us has expired by then */
    uint64_t from_us;  /* until then the keys are kept, and are not released */
    uint64_t fence;
    struct core_token token;
    uint8_t node;
    uint8_t slot; /* with permits, as in struct core_tag */
    bool twice;   /* more than one such request may come */
};

struct core_update {
    uint32_t n_commands;
    struct core_command commands[CORE_COMMANDS_MAX]; /* to be queued in this order */
    bool dispatch; /* completions are pending: send CORE_EV_DISPATCH from the top of the loop, soon */
    struct core_completion completion; /* after CORE_EV_DISPATCH only: send the event again until NOTHING comes */
    struct core_late late;             /* after CORE_EV_REPLY only */
    uint32_t log;
};

/* The work that waits for room at the nodes, and begins with CORE_EV_BEGIN. */
enum core_wants {
    CORE_WANTS_NOTHING,
    CORE_WANTS_ATTEMPT,
    CORE_WANTS_REPAIR, /* a round before a renewal is due */
    CORE_WANTS_ROUND,
};

enum core_vote {
    CORE_VOTE_NONE,
    CORE_VOTE_PENDING,
    CORE_VOTE_YES,
    CORE_VOTE_OTHER,
    CORE_VOTE_FAILED,
    CORE_VOTE_MISSING,
    CORE_VOTE_REPAIRED, /* the key was missing and was set again: the next round's yes counts */
};
