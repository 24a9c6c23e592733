/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compact.h - a lock that is held, or lost and not released yet, and has nothing under way, as one small record
 *
 * Everything else that a lock is made of follows from the record and the nodes' present states, so the lock's memory
 * can serve other locks meanwhile. Numbers of attempts and of rounds begin anew, because no answer is on its way that
 * could name an earlier one. A member that is not stored in full is rounded to the safe side. Where rounding would
 * change what the lock does next, the lock is not made compact.
 */
#pragma once

#include "types.h"

struct core_lock;

/* What is kept of a node. */
struct core_compact_node {
    uint32_t
        age_us; /* when its yes was asked for that counts: so long before base_us; CORE_COMPACT_NO_YES: none counts */
    uint32_t vote : 3;  /* enum core_vote */
    uint32_t fault : 3; /* enum fault_class */
    bool there : 1;     /* the key may be there */
    bool gone : 1;
    bool overdue : 1, unfit : 1; /* doubts */
    uint32_t latency_us : 22;    /* the caller's, who measures it */
};

#define CORE_COMPACT_NO_YES      UINT32_MAX
#define CORE_COMPACT_LATENCY_MAX ((1u << 22) - 1)

struct core_compact {
    uint64_t granted_us;
    uint64_t base_us; /* when it is renewed; where it is not, when the record was written */
    struct core_token token;
    uint32_t lease_ms;
    uint32_t rounds;       /* attempts of its acquire */
    uint32_t waiters : 15; /* as in struct core_lock, where it is not more than fits */
    uint32_t first_arbiter : 5;
    uint32_t slot : 6; /* with permits */
    uint32_t loss : 3; /* enum core_loss; CORE_LOSS_NONE: it is held */
    bool renews : 1;   /* at base_us */
    bool renewed : 1;  /* once at least */
    bool whole : 1;
    struct core_compact_node nodes[]; /* and behind them, with fencing, the token of the grant */
};

/* core_compact_size - of the record; with any config CORE_COMPACT_SIZE_MAX at most. */
#define CORE_COMPACT_SIZE_MAX                                                                                          \
    (sizeof(struct core_compact) + CORE_NODES_MAX * sizeof(struct core_compact_node) + sizeof(uint64_t))
size_t core_compact_size(const struct core_config *);
/* core_compact - write the record; false: the lock cannot be compact now. The lock stays as it is. */
bool core_compact(const struct core_lock *, uint64_t now_us, struct core_compact *ret);
/* core_expand - make the lock from its record, as core_init does for a new one. nodes: the present states of all. */
void core_expand(struct core_lock *, const struct core_config *, const struct core_compact *,
                 const struct core_node_change *nodes, uint64_t now_us);

/* core_compact_deadline - when the lock must be made from it to renew, or to notice its loss; CORE_NEVER: never.
 * core_compact_lost_at: when it is lost unless it is renewed. core_compact_valid_until: end of its validity. */
uint64_t core_compact_deadline(const struct core_compact *, const struct core_config *);
/* core_compact_repair_at - when it must be made from it for a repair before that; drawn anew each time. CORE_NEVER: it
 * need not. nodes: the present states of all. */
uint64_t core_compact_repair_at(const struct core_compact *, const struct core_config *,
                                const struct core_node_change *nodes, uint64_t now_us);
uint64_t core_compact_lost_at(const struct core_compact *, const struct core_config *);
uint64_t core_compact_valid_until(const struct core_compact *, const struct core_config *);
/* core_compact_valid_us, core_compact_fence: as of the lock. core_compact_holds: it is not lost. */
uint64_t core_compact_valid_us(const struct core_compact *, const struct core_config *, uint64_t now_us);
uint64_t core_compact_fence(const struct core_compact *, const struct core_config *);
bool core_compact_holds(const struct core_compact *);
/* core_compact_lose - its time is over; returns the reason. core_compact_drop_yes: the node's yes does not count where
 * it was asked for before that; true: it did count. */
enum core_loss core_compact_lose(struct core_compact *, const struct core_config *, uint64_t now_us);
bool core_compact_drop_yes(struct core_compact *, uint32_t node, uint64_t before_us);
