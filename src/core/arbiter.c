/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arbiter.c - which node is asked first, and how far its answer is trusted (rules 6.1 to 6.5)
 *
 * The arbiter is the node that an attempt after the first asks first: the first READY node that is fit, in the order
 * that all clients share. One of many contenders gets its yes.
 *
 * A refusal that names a new holder is believed. But no quorum may have that holder's key: it may be left from a
 * lock that was released elsewhere, or set by an operator, without expiry, or by another user of the name. A client
 * that believed such a refusal would wait for ever, while newcomers, which ask all nodes, get the lock.
 *
 * A minority key is one whose holder no quorum can have, because too many nodes lack that key. A node that answers with
 * an error is the arbiter only if no other node is fit.
 */
#include "arbiter.h"

#include <assert.h>

#include "validity.h"

/* Rule 6.3: refusals that are believed, of a holder that all nodes confirmed, and of a new holder. */
#define BELIEF_POLLS 4u
#define BELIEF_NEWS  1u
/* Within so many round trips, a holder that is named again may be a contender. */
#define CONTENDER_SRTTS 4u
#define FEW_CONTENDERS  3u
#define PACE_SRTTS      20u
#define PACE_MAX_US     4000000u

/* Rules 6.2 and 6.4. */
bool arbiter_fits(const struct core_node *node)
{
    return !node->doubt.overdue && !node->doubt.unfit && node->asked.minority_id == 0;
}

static bool may_serve(const struct core_node *node)
{
    return !node->doubt.overdue && node->asked.minority_id == 0;
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

/* Rule 6.2. */
uint64_t arbiter_timeout(const struct core_node *node, uint64_t asked_us)
{
    return validity_add(asked_us, 2 * (uint64_t)node->srtt_us + ARBITER_GRACE_US);
}

struct plan arbiter_plan(const struct core_lock *lock, uint64_t now_us)
{
    struct plan plan = {.first = arbiter_choose(lock)};

    if (plan.first == lock->config->n_nodes) return plan;
    plan.until_us = arbiter_timeout(&lock->nodes[plan.first], now_us);
    plan.on_silence = lock->config->permits != 0 ? SILENCE_BEGINS_ANEW : SILENCE_ASKS_REST;
    return plan;
}

/* Rule 6.15. */
uint64_t arbiter_pace_us(const struct core_lock *lock)
{
    uint32_t index = arbiter_choose(lock);

    if (index == lock->config->n_nodes) return 0;
    return core_smaller(PACE_SRTTS * (uint64_t)lock->nodes[index].srtt_us, PACE_MAX_US);
}

/* The node answered, and does not have this holder's key: it granted, or has another holder's key or a foreign value.
 */
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

/* Too many nodes lack this holder's key for a quorum to have it. */
static bool disproved(const struct core_lock *lock, uint64_t holder_id)
{
    return count_without(lock, holder_id) > lock->config->n_nodes - lock->config->quorum;
}

/* The holder may hold the lock: a quorum named it, or all nodes had time to answer and none lacks its key. */
static bool confirmed(const struct core_lock *lock, uint64_t holder_id)
{
    uint32_t named = 0;

    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        named += core_named_by(node) == holder_id;
    }
    if (holder_id != 0 && named >= lock->config->quorum) return true;
    return lock->attempt.doubt != DOUBT_NONE && count_without(lock, holder_id) == 0;
}

/* Rules 6.3 and 6.4. */
void arbiter_learn(struct core_lock *lock)
{
    assert(lock->attempt.stage == ATTEMPT_FAILED);
    lock->belief.confirmed_id = 0;
    lock->belief.polls = 0;
    for (uint32_t i = 0; i < lock->config->n_nodes; i++) {
        struct core_node *node = &lock->nodes[core_arbiter(lock, i)];

        if (node->vote != CORE_VOTE_OTHER) continue;
        if (disproved(lock, node->asked.holder.id)) {
            node->asked.minority_id = node->asked.holder.id == node->asked.holder.before_id ? node->asked.holder.id : 0;
        } else if (lock->belief.polls == 0 && confirmed(lock, node->asked.holder.id)) {
            lock->belief.confirmed_id = node->asked.holder.id;
            lock->belief.polls = BELIEF_POLLS;
        }
    }
}

/* Rule 6.3. */
bool arbiter_doubt(struct core_lock *lock)
{
    const struct core_node *node = &lock->nodes[lock->attempt.plan.first];
    uint64_t holder_id = node->asked.holder.id;
    bool released = holder_id != 0 && holder_id == lock->news.elsewhere_id;
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

/* Rules 6.2 and 6.4. */
void arbiter_on_vote(struct core_node *node)
{
    assert(node->vote == CORE_VOTE_YES || node->vote == CORE_VOTE_OTHER || node->vote == CORE_VOTE_FAILED);
    node->doubt.unfit = node->vote == CORE_VOTE_FAILED;
    if (node->vote == CORE_VOTE_YES) node->asked.minority_id = 0;
    if (core_named_by(node) != 0 && core_named_by(node) != node->asked.minority_id) node->asked.minority_id = 0;
}

/* The holder may be a contender whose attempt failed, and whose release is still on its way. Among many contenders it
 * is better taken for a holder, so that they do not all try again. */
static bool may_contend(const struct core_lock *lock, const struct core_node *node, uint64_t now_us)
{
    const struct wait *wait = &lock->wait;

    return lock->waiters <= FEW_CONTENDERS && core_named_by(node) == wait->polled.id &&
           validity_sub(now_us, wait->polled.since_us) < CONTENDER_SRTTS * (uint64_t)node->srtt_us;
}

/* Rule 6.5: an owner is a holder if a quorum names it, or one node names it twice with some time in between. Otherwise
 * votes were split. Minority keys are not a holder's, but enough of them block a quorum. */
bool arbiter_meets_holder(const struct core_lock *lock, uint64_t now_us)
{
    uint32_t minority = 0;

    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        uint64_t holder_id = core_named_by(node);
        uint32_t same = 0;

        minority += node->asked.minority_id != 0 && node->vote == CORE_VOTE_OTHER;
        if (holder_id == 0 || node->asked.minority_id != 0) continue;
        if (holder_id == node->asked.holder.before_id && !may_contend(lock, node, now_us)) return true;
        for (uint32_t k = 0; k < lock->config->n_nodes; k++) same += core_named_by(&lock->nodes[k]) == holder_id;
        if (same >= lock->config->quorum) return true;
    }
    assert(minority <= lock->config->n_nodes);
    return minority > lock->config->n_nodes - lock->config->quorum;
}
