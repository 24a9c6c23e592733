/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arbiter.c - which node is asked first, and how far its answer is trusted
 *
 * After its first attempt an acquire asks one node first, the arbiter: the first READY node that is fit, in the
 * order that all clients share. So of many contenders one gets its yes.
 *
 * While the arbiter names a new holder its answer is enough. But its key may be one that no quorum has: of a
 * holder that is gone elsewhere, of an operator, without expiry, of another use of the name. A client that
 * believed it would wait for ever, while newcomers, which ask all nodes, got the lock.
 *
 * 1. An arbiter that names the same holder again is believed only after all nodes were asked about that holder, and
 *    then for some polls. Otherwise the others are asked in the same attempt.
 * 2. Nor is it believed where another node reported that this very holder released the lock.
 * 3. Where so many nodes lack that holder's key that no quorum can have it, and the node names the holder again, the
 *    node's key is odd: the node is not the arbiter any more, until it votes or names another holder.
 * 4. A node that answers with an error is not the arbiter either, until it votes, unless no other node is fit.
 */
#include "arbiter.h"

#include <assert.h>

#include "validity.h"

/* So often a holder is believed to be there still, where no node contradicts. */
#define BELIEF_POLLS 4u
/* So often one that was not named before. */
#define BELIEF_NEWS 1u
/* A contender's key may be named again within so many round trips. */
#define CONTENDER_SRTTS 4u
#define FEW_CONTENDERS  3u

bool arbiter_fits(const struct core_node *node)
{
    return !node->doubt.overdue && !node->doubt.unfit && node->asked.odd_id == 0;
}

static bool may_serve(const struct core_node *node)
{
    return !node->doubt.overdue && node->asked.odd_id == 0;
}

uint32_t arbiter_choose(const struct core_lock *lock)
{
    uint32_t spare = lock->config->n_nodes;

    for (uint32_t i = 0; i < lock->config->n_nodes; i++) {
        uint32_t index = core_arbiter(lock, i);

        if (lock->nodes[index].state != NODE_READY) continue;
        if (arbiter_fits(&lock->nodes[index])) return index;
        if (spare == lock->config->n_nodes && may_serve(&lock->nodes[index])) spare = index;
    }
    assert(spare == lock->config->n_nodes || lock->nodes[spare].state == NODE_READY);
    return spare;
}

uint64_t arbiter_timeout(const struct core_node *node, uint64_t asked_us)
{
    return validity_add(asked_us, 2 * (uint64_t)node->srtt_us + ARBITER_GRACE_US);
}

/* The node has another holder's key, or none: this holder's key is not there. Nor is it under a value of
 * another type. */
static bool speaks_against(const struct core_node *node, uint64_t holder_id)
{
    switch (node->vote) {
    case CORE_VOTE_YES: return true;
    case CORE_VOTE_FAILED: return node->fault == FAULT_CLASS_FOREIGN;
    case CORE_VOTE_OTHER: return node->asked.holder.id != 0 && node->asked.holder.id != holder_id;
    default: return false;
    }
}

static uint32_t count_without(const struct core_lock *lock, uint64_t holder_id)
{
    uint32_t without = 0;

    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        without += speaks_against(node, holder_id);
    }
    return without;
}

/* No quorum can have this holder's key. */
static bool disproved(const struct core_lock *lock, uint64_t holder_id)
{
    return count_without(lock, holder_id) > lock->config->n_nodes - lock->config->quorum;
}

/* It may hold the lock: a quorum named it, or all nodes had time to answer and none contradicts. */
static bool confirmed(const struct core_lock *lock, uint64_t holder_id)
{
    uint32_t named = 0;

    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        named += core_named_by(node) == holder_id;
    }
    if (holder_id != 0 && named >= lock->config->quorum) return true;
    return lock->attempt.doubt != DOUBT_NONE && count_without(lock, holder_id) == 0;
}

void arbiter_learn(struct core_lock *lock)
{
    assert(lock->attempt.stage == ATTEMPT_DOOMED);
    lock->belief.confirmed_id = 0;
    lock->belief.polls = 0;
    for (uint32_t i = 0; i < lock->config->n_nodes; i++) {
        struct core_node *node = &lock->nodes[core_arbiter(lock, i)];

        if (node->vote != CORE_VOTE_OTHER) continue;
        if (disproved(lock, node->asked.holder.id)) {
            node->asked.odd_id = node->asked.holder.id == node->asked.holder.before_id ? node->asked.holder.id : 0;
        } else if (lock->belief.polls == 0 && confirmed(lock, node->asked.holder.id)) {
            lock->belief.confirmed_id = node->asked.holder.id;
            lock->belief.polls = BELIEF_POLLS;
        }
    }
}

bool arbiter_doubt(struct core_lock *lock)
{
    const struct core_node *node = &lock->nodes[lock->attempt.arbiter];
    uint64_t holder_id = node->asked.holder.id;
    bool released = holder_id != 0 && holder_id == lock->belief.released_id;
    bool is_new = holder_id != node->asked.holder.before_id && holder_id != lock->belief.confirmed_id;

    assert(lock->attempt.stage == ATTEMPT_ASKS_ARBITER);
    assert(lock->attempt.doubt == DOUBT_NONE);
    assert(node->vote == CORE_VOTE_OTHER);
    if (is_new && !released) {
        lock->belief.polls = BELIEF_NEWS;
    } else if (lock->belief.polls > 0 && !released) {
        lock->belief.polls--;
    } else {
        lock->attempt.doubt = DOUBT_OPEN;
    }
    return lock->attempt.doubt == DOUBT_OPEN;
}

uint64_t arbiter_doubt_until(const struct core_lock *lock)
{
    uint64_t until_us = 0;

    if (lock->attempt.doubt != DOUBT_OPEN) return 0;
    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        if (node->vote != CORE_VOTE_PENDING) continue;
        until_us = core_larger(until_us, arbiter_timeout(node, node->asked.at_us));
    }
    return until_us;
}

void arbiter_on_vote(struct core_node *node)
{
    assert(node->vote == CORE_VOTE_YES || node->vote == CORE_VOTE_OTHER || node->vote == CORE_VOTE_FAILED);
    node->doubt.unfit = node->vote == CORE_VOTE_FAILED;
    if (node->vote == CORE_VOTE_YES) node->asked.odd_id = 0;
    if (core_named_by(node) != 0 && core_named_by(node) != node->asked.odd_id) node->asked.odd_id = 0;
}

/* An attempt that fails leaves its key there until its owner knows, and has released it. With more contenders one
 * that takes it for a holder calms the others. */
static bool may_contend(const struct core_lock *lock, const struct core_node *node, uint64_t now_us)
{
    const struct wait *wait = &lock->wait;

    return lock->waiters <= FEW_CONTENDERS && core_named_by(node) == wait->polled.id &&
           validity_sub(now_us, wait->polled.since_us) < CONTENDER_SRTTS * (uint64_t)node->srtt_us;
}

/* One foreign owner on a quorum, or on one node that was asked twice and not at once after the first time, is a
 * holder; else votes were split. Odd keys belong to no holder, but enough of them block a quorum like one. */
bool arbiter_meets_holder(const struct core_lock *lock, uint64_t now_us)
{
    uint32_t odd = 0;

    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        uint64_t holder_id = core_named_by(node);
        uint32_t same = 0;

        odd += node->asked.odd_id != 0 && node->vote == CORE_VOTE_OTHER;
        if (holder_id == 0 || node->asked.odd_id != 0) continue;
        if (holder_id == node->asked.holder.before_id && !may_contend(lock, node, now_us)) return true;
        for (uint32_t k = 0; k < lock->config->n_nodes; k++) same += core_named_by(&lock->nodes[k]) == holder_id;
        if (same >= lock->config->quorum) return true;
    }
    assert(odd <= lock->config->n_nodes);
    return odd > lock->config->n_nodes - lock->config->quorum;
}
