/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan.h - what one run is made of: the world's shape and the faults, all drawn from one seed beforehand
 *
 * Faults are a list, so that a failing run can be tried again with some of them left out.
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
    PLAN_WAIT_MIN_US = 20000, /* who waits less may never be granted, and that is right */
};

/* Name in the trace and the totals. */
#define PLAN_FAULT_MAP(X)                                                                                      \
    X(CRASH, "node crashes, keeps its memory")                                                                 \
    X(CRASH_EMPTY, "node crashes, comes back empty")                                                           \
    X(FREEZE, "node stands still")                                                                             \
    X(CUT_TO, "one-way cut towards the node")                                                                  \
    X(CUT_FROM, "one-way cut from the node")                                                                   \
    X(RESET, "connection ends")                                                                                \
    X(RESET_LATE, "connection ends, what was sent executes later")                                             \
    X(SLOW, "link is slow")                                                                                    \
    X(PAUSE, "client stands still")                                                                            \
    X(PAUSE_TELL, "client stands still before a callback")                                                     \
    X(PAUSE_SEND, "client stands still before its bytes leave")                                                \
    X(DEATH, "client dies")                                                                                    \
    X(REFUSE_WRITES, "node refuses to set keys")                                                               \
    X(REFUSE_ALL, "node refuses everything")                                                                   \
    X(FORGET_SCRIPTS, "node forgets its scripts")                                                              \
    X(UNSENT, "client cannot queue a request")                                                                 \
    X(BREAK, "an operator breaks the lock")

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
    uint32_t nth; /* PAUSE_TELL, PAUSE_SEND: at the nth opportunity of that client */
    uint8_t client;
    uint8_t node;
    bool all;      /* CUT: every client's link to that node; RESET: all of that client's connections */
    bool left_out; /* by shrinking */
};

/* What the run is bent towards. A negative control needs the scene in which its rule matters. */
enum plan_bias {
    BIAS_NONE,
    BIAS_LATE_EXECUTION, /* connections end, what was sent executes late, leases are extended to longer ones */
    BIAS_LATE_CLIENT,    /* clients stand still where it hurts, links are slow */
};

struct plan_client {
    int32_t rate_ppm;
    uint64_t offset_us;
};

struct plan_lock {
    struct core_config config;
    uint8_t client;
    uint8_t key;
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
    int32_t node_rate_ppm[PLAN_NODES_MAX];
    uint64_t node_offset_us[PLAN_NODES_MAX];
    bool node_gone[PLAN_NODES_MAX]; /* does not come back when the faults end; never a quorum of them */
    bool memory_lost;               /* keys vanish: I1 and I5 cannot be judged without a guard */
    bool strays;                    /* answers on a dead connection reach the core all the same */
    bool long_extends;
    struct plan_client clients[PLAN_CLIENTS_MAX];
    struct plan_lock locks[PLAN_LOCKS_MAX];
    struct plan_fault faults[PLAN_FAULTS_MAX];
};

/* plan_make - the plan of this seed; the same for ever for the same seed and bias. */
void plan_make(struct plan *, uint64_t seed, enum plan_bias);
/* plan_fault_text - what this kind of fault is, for people. */
const char *plan_fault_text(enum plan_fault_kind);
/* plan_fault_name - short, for the totals. */
const char *plan_fault_name(enum plan_fault_kind);

#endif
