/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan.h - what one run is made of: the world's shape and the faults, all drawn from one seed beforehand
 *
 * Faults are a list, so that a failing run can be tried again with some of them left out. Those inside of what
 * is promised may be in every plan; those outside only in plans that say so, where exclusion is not judged.
 */
#ifndef QUORLOCK_SIM_PLAN_H
#define QUORLOCK_SIM_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "../../src/core/core.h"

enum {
    PLAN_NODES_MAX = 7,
    PLAN_CLIENTS_MAX = 30,
    PLAN_LOCKS_MAX = 32,
    PLAN_KEYS_MAX = 2,
    PLAN_FAULTS_MAX = 48,
    PLAN_WAIT_MIN_US = 40000, /* a lock that waits less may never be granted */
};

#define PLAN_DRIFT_FIXED_US UINT64_C(2000)
/* What the wall clocks show when true time is 0, but for their errors. */
#define PLAN_EPOCH_US UINT64_C(1700000000000000)

/* Name in the trace and the totals. */
#define PLAN_FAULT_MAP(X)                                                                                              \
    X(CRASH, "node crashes, keeps its memory")                                                                         \
    X(CRASH_EMPTY, "node crashes, comes back empty")                                                                   \
    X(PROMOTE, "a replica that fell behind takes the node's place")                                                    \
    X(FLIP, "node turns replica and back, with older memory")                                                          \
    X(FLIP_LIVE, "the same, and no connection ends")                                                                   \
    X(FLUSH, "FLUSHALL on a node")                                                                                     \
    X(STEP_BACK, "node's clock steps back")                                                                            \
    X(STEP_FORWARD, "node's clock steps forward")                                                                      \
    X(FREEZE, "node stands still")                                                                                     \
    X(CUT_TO, "one-way cut towards the node")                                                                          \
    X(CUT_FROM, "one-way cut from the node")                                                                           \
    X(RESET, "connection ends")                                                                                        \
    X(RESET_LATE, "connection ends, what was sent executes later")                                                     \
    X(SLOW, "link is slow")                                                                                            \
    X(PAUSE, "client stands still")                                                                                    \
    X(PAUSE_CALLBACK, "client stands still before a callback")                                                         \
    X(PAUSE_SEND, "client stands still before its bytes leave")                                                        \
    X(SUSPEND, "client stands still, and its clock with it")                                                           \
    X(DEATH, "client dies")                                                                                            \
    X(DEATH_CALLBACK, "client dies before a callback")                                                                 \
    X(DEATH_SEND, "client dies while its bytes leave")                                                                 \
    X(REFUSE_WRITES, "node refuses to set keys")                                                                       \
    X(REFUSE_ALL, "node refuses everything")                                                                           \
    X(FORGET_SCRIPTS, "node forgets its scripts")                                                                      \
    X(UNSENT, "client cannot queue a request")                                                                         \
    X(UNSUBSCRIBE, "subscriber connections end")                                                                       \
    X(LOSE_NOTICES, "notices of a node get lost")                                                                      \
    X(BREAK, "an operator breaks the lock")                                                                            \
    X(ODD, "a key that is no lock's stays on a node for good")

enum plan_fault_kind {
#define PLAN_FAULT_ENUM(name, text) FAULT_##name,
    PLAN_FAULT_MAP(PLAN_FAULT_ENUM)
#undef PLAN_FAULT_ENUM
        FAULT_KINDS
};

struct plan_fault {
    enum plan_fault_kind kind;
    uint64_t at_us;
    uint64_t for_us;
    uint32_t nth; /* PAUSE_, DEATH_ of CALLBACK and SEND: at the nth opportunity of that client */
    uint8_t client;
    uint8_t node;
    bool all;      /* CUT: every client's link to that node; RESET: all of that client's connections */
    bool for_ever; /* FREEZE, ODD: beyond the time of faults */
    bool left_out; /* by shrinking */
};

/* What the run is bent towards. A negative control needs the situation in which its rule matters. */
enum plan_bias {
    BIAS_NONE,
    BIAS_LATE_EXECUTION, /* connections end, what was sent executes late, leases are extended to longer ones */
    BIAS_LATE_CLIENT,    /* clients stand still where it hurts, links are slow */
    BIAS_LOSS,           /* nodes lose their memory again and again, under the guard */
    BIAS_TOKENS,         /* fencing, by clients whose wall clocks differ */
    BIAS_TOKENS_LOST,    /* fencing, and nodes lose their counters, under the guard */
    BIAS_TWINS,          /* clients list one server twice and leave out another */
    BIAS_CROWD,          /* many contenders, slow servers, no faults */
    BIAS_OUTSIDE,        /* faults that nothing is promised under */
    BIAS_QUEUE,          /* many contenders; notices that get lost, peers without any, one node frozen for good */
    BIAS_CALM,           /* 2, 3, 10 or 30 contenders, steady links, no faults: how long does a hand-over take? */
    BIAS_FROZEN,         /* the same, and the first arbiter freezes for good */
    BIAS_ODD,            /* the same, and the first arbiter gets a key that is no lock's */
    BIASES
};

enum plan_guard { PLAN_GUARD_OFF, PLAN_GUARD_CONNECTION, PLAN_GUARD_STRICT };

struct plan_client {
    int32_t rate_ppm;
    uint64_t offset_us;
    int64_t wall_error_us;
    bool twins;                 /* lists one server twice: */
    uint8_t twin, twin_instead; /* the server of that entry stands in this entry too */
};

struct plan_lock {
    struct core_config config;
    uint8_t client;
    uint8_t key;
    bool peer; /* a client of another kind: publishes no releases, and gets no notices */
};

struct plan {
    uint64_t seed;
    uint32_t n_nodes, n_clients, n_locks, n_keys, n_faults;
    uint32_t quorum;
    uint64_t max_lease_us;
    uint64_t base_lease_us;
    uint64_t active_us; /* faults and contention until here */
    uint64_t stall_us;  /* connections whose oldest request is unanswered for so long are dropped */
    uint64_t connect_timeout_us;
    uint64_t reconnect_min_us, reconnect_max_us;
    uint64_t late_us; /* what outlives its connection may execute so much later */
    uint32_t delay_us[PLAN_NODES_MAX];
    uint32_t near_us;    /* 0, or: every client has a node of its own that is so near, and delays hardly vary */
    uint32_t service_us; /* a server takes so long for each request, one after the other */
    int32_t node_rate_ppm[PLAN_NODES_MAX];
    uint64_t node_offset_us[PLAN_NODES_MAX];
    bool node_gone[PLAN_NODES_MAX]; /* does not come back when the faults end; never a quorum of them */
    uint64_t back_us;               /* all steps back of all clocks */
    uint32_t drift_ppm;
    enum plan_guard guard;
    bool cold;           /* no node has a guard yet */
    bool fencing;        /* tokens are asked for: by all locks, or */
    bool mixed;          /* by some of them */
    bool outside;        /* faults outside of what is promised: exclusion is not judged */
    bool counters_void;  /* among them such that lose counters without a quarantine */
    bool keeps_counters; /* no fault makes a node forget */
    bool strays;         /* answers on a dead connection reach the core all the same */
    bool long_extends;
    bool turns;                /* after the faults each lock that waits for ever must be granted once */
    bool calm;                 /* delays hardly vary; no lock cancels */
    uint32_t lost_permille;    /* of notices */
    uint64_t round_trip_us;    /* calm: on average */
    uint32_t requests_most;    /* calm: from grant to grant; 0: not judged */
    uint64_t handover_most_us; /* calm: longer means that a waiter was not woken; 0: not judged */
    struct plan_client clients[PLAN_CLIENTS_MAX];
    struct plan_lock locks[PLAN_LOCKS_MAX];
    struct plan_fault faults[PLAN_FAULTS_MAX];
};

/* plan_make - the plan of this seed; the same for ever for the same seed and bias. */
void plan_make(struct plan *, uint64_t seed, enum plan_bias);
/* plan_server - which server stands behind this client's entry for a node. */
static inline uint32_t plan_server(const struct plan *plan, uint32_t client, uint32_t node)
{
    const struct plan_client *of = &plan->clients[client];

    return of->twins && of->twin_instead == node ? of->twin : node;
}
/* plan_fault_text - what this kind of fault is, for people. */
const char *plan_fault_text(enum plan_fault_kind);

#endif
