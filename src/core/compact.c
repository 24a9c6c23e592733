/* SPDX-License-Identifier: BSD-3-Clause */
#include "compact.h"

#include <assert.h>
#include <string.h>

#include "core.h"
#include "debt.h"
#include "hold.h"
#include "state.h"

#define MS          1000u
#define WAITERS_MAX 0x7fffu
#define ROUNDS_MAX  0x7ffffffu

_Static_assert(sizeof(struct core_compact_node) == 2 * sizeof(uint32_t), "two words for each node");
_Static_assert(sizeof(struct core_compact) == 2 * sizeof(uint64_t) + CORE_TOKEN_SIZE + 3 * sizeof(uint32_t),
               "no padding");
_Static_assert(CORE_NODES_MAX < 32 && CORE_SLOTS_MAX <= 64, "five bits, and six");
_Static_assert((int)CORE_VOTE_REPAIRED < 8 && (int)FAULT_CLASS_CONFIG < 8, "three bits have room for each");

static size_t fence_offset(const struct core_config *config)
{
    return offsetof(struct core_compact, nodes) + config->n_nodes * sizeof(struct core_compact_node);
}

size_t core_compact_size(const struct core_config *config)
{
    size_t size = fence_offset(config) + (config->fencing ? sizeof(uint64_t) : 0);

    assert(size <= CORE_COMPACT_SIZE_MAX);
    return size;
}

static uint64_t lease_us(const struct core_compact *record)
{
    return (uint64_t)record->lease_ms * MS;
}

bool core_compact_holds(const struct core_compact *record)
{
    return record->loss == CORE_LOSS_NONE;
}

/* How long a vote counts after its send time. */
static uint64_t vote_us(const struct core_config *config, uint64_t lease)
{
    return validity_of_vote(0, lease, config->drift_ppm, config->drift_fixed_us);
}

static uint64_t valid_until(const struct core_compact *record, const struct core_config *config, uint64_t span_us)
{
    uint64_t ends_us[CORE_NODES_MAX];

    for (uint32_t i = 0; i < config->n_nodes; i++) {
        const struct core_compact_node *node = &record->nodes[i];
        bool counts = node->age_us != CORE_COMPACT_NO_YES;

        assert(!counts || node->age_us <= record->base_us);
        ends_us[i] = counts ? validity_add(record->base_us - node->age_us, span_us) : 0;
    }
    return validity_of_quorum(ends_us, config->n_nodes, config->quorum);
}

/* ---- from the lock to the record ---- */

/* Write the node's yes; an expired yes is none. Return false if the record has no room for its age. */
static bool write_yes(const struct core_lock *lock, const struct core_key *key, uint64_t now_us,
                      const struct core_compact *record, struct core_compact_node *ret)
{
    ret->age_us = CORE_COMPACT_NO_YES;
    if (lock->phase == CORE_LOST || key->valid_until_us <= now_us) return true;
    if (record->base_us - key->sent_us >= CORE_COMPACT_NO_YES) return false;
    ret->age_us = (uint32_t)(record->base_us - key->sent_us);
    return true;
}

static bool write_node(const struct core_lock *lock, const struct core_node *node, uint64_t now_us,
                       const struct core_compact *record, struct core_compact_node *ret)
{
    const struct core_key *key = &node->key;
    bool stepped = key->stepped_us != 0 && validity_add(key->stepped_us, lock->lease_us) > now_us;

    *ret = (struct core_compact_node){.vote = node->vote & 7u,
                                      .fault = node->fault & 7u,
                                      .there = key->until_us != 0,
                                      .gone = node->gone,
                                      .overdue = node->doubt.overdue,
                                      .unfit = node->doubt.unfit};
    if (debt_may_come_late(lock, node, now_us)) return false;
    if (node->vote == CORE_VOTE_PENDING || (stepped && lock->phase == CORE_HELD)) return false;
    /* After core_expand a release expects the key to expire by then. */
    if (key->until_us > validity_debt_until(now_us, lock->lease_us)) return false;
    return write_yes(lock, key, now_us, record, ret);
}

/* Late votes of the acquire count until the first renewal. */
static bool awaits_votes(const struct core_lock *lock)
{
    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        if (node->vote == CORE_VOTE_NONE) return true;
    }
    return false;
}

static bool core_compact_is_quiet(const struct core_lock *lock)
{
    const struct hold *hold = &lock->hold;

    if (lock->phase != CORE_HELD && lock->phase != CORE_LOST) return false;
    if (lock->owing != 0 || lock->release.attempt != 0 || lock->pending.kinds != 0) return false;
    if (lock->phase == CORE_LOST) return true;
    if (hold->round == 0 && awaits_votes(lock)) return false;
    /* After a failed round, each node that comes back brings the next round forward. */
    return hold->extend_lease_us == 0 && !hold->round_waits && !hold->repair_waits && !hold->looks &&
           hold->round_state == ROUND_SETTLED && hold->renew_failures == 0;
}

/* The ends of validity that core_expand computes are those of the lock. */
static bool counts_as_written(const struct core_lock *lock, const struct core_compact *record)
{
    uint64_t span_us = vote_us(lock->config, lock->lease_us);

    for (uint32_t i = 0; i < lock->config->n_nodes; i++) {
        const struct core_key *key = &lock->nodes[i].key;

        if (record->nodes[i].age_us == CORE_COMPACT_NO_YES) continue;
        if (key->valid_until_us != validity_add(key->sent_us, span_us)) return false;
    }
    return valid_until(record, lock->config, span_us) == lock->hold.validity_us;
}

/* Rule 3.15. */
bool core_compact(const struct core_lock *lock, uint64_t now_us, struct core_compact *ret)
{
    const struct hold *hold = &lock->hold;
    uint64_t lease_ms = lock->lease_us / MS;

    if (!core_compact_is_quiet(lock) || lease_ms > UINT32_MAX || lease_ms * MS != lock->lease_us) return false;
    /* The record has few bits for these. */
    assert(lock->first_arbiter < CORE_NODES_MAX && lock->id.slot < CORE_SLOTS_MAX);
    assert(lock->acquire.attempts > 0);
    *ret = (struct core_compact){.granted_us = hold->granted_us,
                                 .base_us = now_us,
                                 .token = lock->id.token,
                                 .lease_ms = (uint32_t)lease_ms,
                                 .rounds = core_smaller(lock->acquire.attempts, ROUNDS_MAX) & ROUNDS_MAX,
                                 .looked = hold->looked & 31u,
                                 .first_arbiter = lock->first_arbiter & 31u,
                                 .slot = lock->id.slot & 63u,
                                 .waiters = core_smaller(lock->waiters, WAITERS_MAX) & WAITERS_MAX,
                                 .renews = hold->renew_at_us != CORE_NEVER,
                                 .renewed = hold->round > 0,
                                 .whole = hold->whole};
    if (lock->phase == CORE_LOST) ret->loss = hold->loss & 7u;
    if (ret->renews) ret->base_us = core_larger(hold->renew_at_us, now_us);
    assert(core_compact_holds(ret) == (lock->phase == CORE_HELD));
    assert(ret->base_us >= now_us);
    if (lock->config->fencing) memcpy((char *)ret + fence_offset(lock->config), &lock->id.fence, sizeof(uint64_t));
    for (uint32_t i = 0; i < lock->config->n_nodes; i++) {
        if (!write_node(lock, &lock->nodes[i], now_us, ret, &ret->nodes[i])) return false;
    }
    return lock->phase == CORE_LOST || counts_as_written(lock, ret);
}

/* ---- does it need a repair? ---- */

/* The latest send time of a yes that counts. */
static uint64_t core_compact_asked_us(const struct core_compact *record, const struct core_config *config)
{
    uint64_t latest_us = 0;

    for (uint32_t i = 0; i < config->n_nodes; i++) {
        uint32_t age_us = record->nodes[i].age_us;

        if (age_us != CORE_COMPACT_NO_YES) latest_us = core_larger(latest_us, record->base_us - age_us);
    }
    return latest_us;
}

/* Another server process, or another guard, than at since_us. */
static bool is_new_since(const struct core_node_change *node, uint64_t since_us)
{
    return node_takes_requests(node->state) && since_us < node->life_us;
}

static bool node_wants_repair(const struct core_compact *record, const struct core_config *config,
                              const struct core_node_change *node, uint64_t since_us)
{
    const struct core_compact_node *at = &record->nodes[node->index];
    bool voted = at->there || at->age_us != CORE_COMPACT_NO_YES;

    assert(node->index < CORE_NODES_MAX);
    if (node->state == NODE_QUARANTINED && !record->renewed && !voted) return true;
    if (node_takes_requests(node->state) && at->vote == CORE_VOTE_REPAIRED) return true;
    if (node_takes_requests(node->state) && hold_is_untold(config, record->renewed, node, since_us)) return true;
    return is_new_since(node, since_us);
}

/* Rules 3.10 and 3.11. */
static bool wants_repair(const struct core_compact *record, const struct core_config *config,
                         const struct core_node_change *nodes)
{
    bool wants = false;
    uint64_t since_us;

    if (!core_compact_holds(record) || !record->renews) return false;
    since_us = core_compact_asked_us(record, config);
    for (uint32_t i = 0; i < config->n_nodes && !wants; i++)
        wants = node_wants_repair(record, config, &nodes[i], since_us);
    return wants;
}

uint64_t core_compact_repair_at(const struct core_compact *record, const struct core_config *config,
                                const struct core_node_change *nodes, uint64_t now_us)
{
    struct backoff_jitter jitter;

    assert(config->n_nodes <= CORE_NODES_MAX);
    if (!wants_repair(record, config, nodes)) return CORE_NEVER;
    memcpy(&jitter.state, record->token.bytes, sizeof(jitter.state));
    jitter.state ^= now_us;
    return validity_add(now_us, backoff_uniform(&jitter, hold_repair_span_us(lease_us(record))));
}

/* ---- from the record to the lock ---- */

static void read_node(struct core_node *node, const struct core_compact *record, const struct core_compact_node *from,
                      const struct core_node_change *now, uint64_t debt_until_us, uint64_t span_us)
{
    core_take_connection(node, now);
    node->srtt_us = now->srtt_us;
    node->vote = (enum core_vote)from->vote;
    node->fault = (enum fault_class)from->fault;
    node->gone = from->gone;
    node->extended = record->renewed && from->vote == CORE_VOTE_YES;
    node->doubt.overdue = from->overdue;
    node->doubt.unfit = from->unfit;
    if (from->there) node->key.until_us = debt_until_us;
    if (from->age_us == CORE_COMPACT_NO_YES) return;
    node->key.sent_us = record->base_us - from->age_us;
    node->key.valid_until_us = validity_add(node->key.sent_us, span_us);
}

/* Rule 3.15. */
void core_expand(struct core_lock *lock, const struct core_config *config, const struct core_compact *record,
                 const struct core_node_change *nodes, uint64_t now_us)
{
    uint64_t span_us = vote_us(config, lease_us(record));
    uint64_t debt_until_us = validity_debt_until(now_us, lease_us(record));
    uint64_t seed, since_us = core_compact_asked_us(record, config);

    assert(record->rounds > 0);
    core_init(lock, config, record->first_arbiter);
    lock->phase = core_compact_holds(record) ? CORE_HELD : CORE_LOST;
    lock->id = (struct attempt_id){.number = record->rounds,
                                   .fence = core_compact_fence(record, config),
                                   .token = record->token,
                                   .slot = record->slot};
    memcpy(&seed, record->token.bytes, sizeof(seed));
    lock->jitter.state = seed ^ record->base_us;
    lock->lease_us = lease_us(record);
    lock->acquire.attempts = record->rounds;
    lock->waiters = record->waiters;
    lock->hold = (struct hold){.granted_us = record->granted_us,
                               .validity_us = valid_until(record, config, span_us),
                               .renew_at_us = record->renews ? record->base_us : CORE_NEVER,
                               .repair_at_us = CORE_NEVER,
                               .round = record->renewed,
                               .looked = record->looked,
                               .whole = record->whole};
    lock->hold.loss = (enum core_loss)record->loss;
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        assert(nodes[i].index == i);
        read_node(&lock->nodes[i], record, &record->nodes[i], &nodes[i], debt_until_us, span_us);
        lock->hold.repaired |= record->nodes[i].vote == CORE_VOTE_REPAIRED;
    }
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        if (is_new_since(&nodes[i], since_us)) lock->hold.repaired = false;
    }
    if (wants_repair(record, config, nodes)) lock->hold.repair_at_us = now_us;
    /* A quorum counts for the validity. */
    assert(lock->hold.validity_us == 0 || core_count_yeses(lock) >= config->quorum);
}

/* ---- the record ---- */

uint64_t core_compact_valid_until(const struct core_compact *record, const struct core_config *config)
{
    return valid_until(record, config, vote_us(config, lease_us(record)));
}

uint64_t core_compact_lost_at(const struct core_compact *record, const struct core_config *config)
{
    return validity_sub(core_compact_valid_until(record, config), hold_margin_us(config, lease_us(record)));
}

uint64_t core_compact_deadline(const struct core_compact *record, const struct core_config *config)
{
    if (!core_compact_holds(record)) return CORE_NEVER;
    return core_smaller(core_compact_lost_at(record, config), record->renews ? record->base_us : CORE_NEVER);
}

uint64_t core_compact_valid_us(const struct core_compact *record, const struct core_config *config, uint64_t now_us)
{
    if (!core_compact_holds(record) || now_us >= core_compact_lost_at(record, config)) return 0;
    return validity_sub(core_compact_valid_until(record, config), now_us);
}

uint64_t core_compact_fence(const struct core_compact *record, const struct core_config *config)
{
    uint64_t fence = 0;

    if (config->fencing) memcpy(&fence, (const char *)record + fence_offset(config), sizeof(fence));
    return fence;
}

enum core_loss core_compact_lose(struct core_compact *record, const struct core_config *config, uint64_t now_us)
{
    enum core_loss loss = hold_loss_reason(config, record->granted_us, now_us);

    assert(core_compact_holds(record));
    assert(loss != CORE_LOSS_NONE);
    record->loss = loss & 7u;
    return loss;
}

bool core_compact_drop_yes(struct core_compact *record, uint32_t node, uint64_t before_us)
{
    struct core_compact_node *at = &record->nodes[node];

    assert(node < CORE_NODES_MAX);
    if (at->age_us == CORE_COMPACT_NO_YES || record->base_us - at->age_us >= before_us) return false;
    at->age_us = CORE_COMPACT_NO_YES;
    return true;
}
