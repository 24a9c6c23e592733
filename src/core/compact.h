/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compact.h - a lock that is held, or lost and not released yet, and has nothing under way, as one small record
 *
 * Everything else that a lock is made of follows from the record and the nodes' present states, so the lock's memory
 * can serve other locks meanwhile. Numbers of attempts and of rounds begin anew, because no answer is on its way that
 * could name an earlier one. A member that is not stored in full is rounded to the safe side. Where rounding would
 * change what the lock does next, the lock is not made compact (rule 3.15).
 */
#pragma once

#include "types.h"

struct core_lock;

/* A node's part of the record; members are named as in struct core_node. */
struct core_compact_node {
    uint32_t age_us;    /* the time from core_key's sent_us to base_us; CORE_COMPACT_NO_YES: no yes counts */
    uint32_t vote : 3;  /* enum core_vote */
    uint32_t fault : 3; /* enum fault_class */
    bool there : 1;     /* the node may have the key */
    bool gone : 1;
    bool overdue : 1, unfit : 1;
    uint32_t latency_us : 22; /* belongs to the caller, who measures it */
};

#define CORE_COMPACT_NO_YES      UINT32_MAX
#define CORE_COMPACT_LATENCY_MAX ((1u << 22) - 1)

struct core_compact {
    uint64_t granted_us;
    uint64_t base_us; /* when the next renewal is due; without renewal, when the record was written */
    struct core_token token;
    uint32_t lease_ms;
    uint32_t rounds : 27; /* attempts of the acquire */
    uint32_t looked : 5;
    uint32_t waiters : 15; /* as in struct core_lock, or the largest value that fits */
    uint32_t first_arbiter : 5;
    uint32_t slot : 6; /* with permits */
    uint32_t loss : 3; /* enum core_loss; CORE_LOSS_NONE: the lock is held */
    bool renews : 1;   /* a renewal is due at base_us */
    bool renewed : 1;  /* at least once */
    bool whole : 1;
    struct core_compact_node nodes[]; /* followed by the fencing token of the grant, with fencing */
};

/* core_compact_size - return the size of the record: at most CORE_COMPACT_SIZE_MAX with any config. */
#define CORE_COMPACT_SIZE_MAX                                                                                          \
    (sizeof(struct core_compact) + CORE_NODES_MAX * sizeof(struct core_compact_node) + sizeof(uint64_t))
size_t core_compact_size(const struct core_config *);
/* core_compact - write the record. Return false if the lock cannot be compact now. The lock does not change. */
bool core_compact(const struct core_lock *, uint64_t now_us, struct core_compact *ret);
/* core_expand - make the lock from its record, in place of core_init. nodes: the present states of all nodes. */
void core_expand(struct core_lock *, const struct core_config *, const struct core_compact *,
                 const struct core_node_change *nodes, uint64_t now_us);

/* core_compact_deadline - return when the lock must be expanded to renew it or to notice its loss, or CORE_NEVER. */
uint64_t core_compact_deadline(const struct core_compact *, const struct core_config *);
/* core_compact_repair_at - return when the lock must be expanded for a repair, or CORE_NEVER. Each call draws the time
 * anew. nodes: the present states of all nodes. */
uint64_t core_compact_repair_at(const struct core_compact *, const struct core_config *,
                                const struct core_node_change *nodes, uint64_t now_us);
/* core_compact_lost_at - return when the lock is lost unless it is renewed. */
uint64_t core_compact_lost_at(const struct core_compact *, const struct core_config *);
/* core_compact_valid_until - return the end of the lock's validity. */
uint64_t core_compact_valid_until(const struct core_compact *, const struct core_config *);
/* core_compact_valid_us - as core_valid_us. */
uint64_t core_compact_valid_us(const struct core_compact *, const struct core_config *, uint64_t now_us);
/* core_compact_fence - as core_fence. */
uint64_t core_compact_fence(const struct core_compact *, const struct core_config *);
/* core_compact_holds - tell whether the lock is held, and not lost. */
bool core_compact_holds(const struct core_compact *);
/* core_compact_lose - turn a held lock into a lost one, and return the reason. */
enum core_loss core_compact_lose(struct core_compact *, const struct core_config *, uint64_t now_us);
/* core_compact_drop_yes - drop the node's yes if it was asked for before before_us. Return true if there was one. */
bool core_compact_drop_yes(struct core_compact *, uint32_t node, uint64_t before_us);
