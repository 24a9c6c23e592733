/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fair.c - the arbiter serves the waiting locks in the order in which they came
 *
 * Chapter 9 of src/protocol.md has the rules.
 *
 * A notice that was missed costs a poll, and a notice too many costs one request. A node whose first connection is
 * being made is waited for, for a moment: otherwise clients that start would ask different nodes. A lock that cannot
 * get a quorum stands in no queue: it would keep others out while it waits for a node that only it cannot reach, such
 * as one that it lists by a wrong name. A lock that waits gives its arbiter longer to answer: an arbiter that many
 * clients make slow must not lose all of them to the next node.
 *
 * With permits, an arbiter that did not answer may have taken a slot. So the next attempt asks all nodes for one slot,
 * without a queue (rule 7.6).
 */
#include "fair.h"

#include <assert.h>

#include "arbiter.h"
#include "intent.h"

#define LIFE_US    2000000u
#define CONNECT_US 250000u  /* for a first connection */
#define ANSWER_US  100000u  /* added to the round trips: an arbiter is not changed because a machine is busy */
#define FAR_TURNS  20u      /* after more the lock listens to a channel of its own; it is told when 10 come first */
#define STAYS_US   1000000u /* the same once the lock waits: a slow arbiter must not move a crowd to the next node */

/* Rule 9.2. */
static uint32_t fair_choose(const struct core_lock *lock)
{
    uint32_t spare = lock->config->n_nodes;

    assert(lock->config->fair);
    for (uint32_t i = 0; i < lock->config->n_nodes; i++) {
        uint32_t index = core_arbiter(lock, i);
        const struct core_node *node = &lock->nodes[index];

        if (node->vote != CORE_VOTE_NONE || node->doubt.overdue) continue;
        if (node->state == NODE_CONNECTING && !node->doubt.broken) return index;
        if (node->state != NODE_READY) continue;
        if (arbiter_fits(node)) return index;
        if (spare == lock->config->n_nodes && node->asked.minority_id == 0) spare = index;
    }
    return spare;
}

static uint64_t fair_timeout(const struct core_lock *lock, const struct core_node *node, uint64_t now_us)
{
    uint64_t stays_us = lock->acquire.attempts > 1 ? core_smaller(STAYS_US, lock->config->node_timeout_us / 2) : 0;

    if (node->state == NODE_CONNECTING) return validity_add(now_us, CONNECT_US);
    return validity_add(arbiter_timeout(node, now_us), core_larger(ANSWER_US, stays_us));
}

/* Rule 7.6: a node that is not asked yet takes no slot. */
struct plan fair_plan_at(const struct core_lock *lock, uint32_t index, uint64_t now_us)
{
    const struct core_node *node = &lock->nodes[index];
    bool takes = lock->config->permits != 0 && node->state == NODE_READY;

    return (struct plan){.first = index,
                         .until_us = fair_timeout(lock, node, now_us),
                         .on_silence = takes ? SILENCE_BEGINS_ANEW : SILENCE_ASKS_NEXT};
}

struct plan fair_plan(const struct core_lock *lock, uint64_t now_us)
{
    uint32_t index = fair_choose(lock);

    if (index == lock->config->n_nodes) return (struct plan){.first = index};
    return fair_plan_at(lock, index, now_us);
}

/* Rule 9.7. */
uint64_t fair_search_at_us(const struct core_lock *lock, uint64_t now_us)
{
    if (lock->attempt.stage != ATTEMPT_ASKS_ARBITER) return now_us;
    return arbiter_timeout(&lock->nodes[lock->attempt.plan.first], now_us);
}

/* Rules 9.4 and 9.5. */
void fair_begin(struct core_lock *lock, uint64_t now_us)
{
    lock->wait.turns = 1;
    lock->wait.behind = false;
    /* Once the arbiter was asked, the lock may stand in its queue. */
    if (lock->config->holder.wait_us != 0) lock->wait.intent_us = now_us;
    for (struct core_node *node = lock->nodes; node < CORE_END(lock); node++) node->notices.turns = 0;
}

static bool may_vote(const struct core_node *node)
{
    if (node->state == NODE_CONNECTING) return !node->doubt.broken;
    return node->state == NODE_READY && !node->doubt.unfit;
}

/* Rule 9.6. */
static bool may_stand(const struct core_lock *lock)
{
    uint32_t may = 0;

    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) may += may_vote(node);
    return may >= lock->config->quorum;
}

/* Rules 9.1 and 9.3. */
void fair_queue(struct core_lock *lock, const struct step *step, struct core_command *command)
{
    bool stands = may_stand(lock);

    assert(command->tag.op == OP_ACQUIRE && lock->attempt.stage == ATTEMPT_ASKS_ARBITER);
    command->queues = true;
    command->waited_us = stands ? intent_waited_us(lock, step->now_us) : 0;
    command->queued_us =
        stands && lock->config->holder.wait_us != 0 ? core_larger(LIFE_US, 2 * arbiter_pace_us(lock)) : 0;
    if (command->queued_us != 0) lock->wait.queues |= 1u << command->tag.node;
}

/* Rule 9.5: only the first of all arbiters tells a lock that came near. */
void fair_on_refusal(struct core_lock *lock, const struct core_reply *reply)
{
    assert(reply->outcome == OUTCOME_OTHER);
    if (reply->turns == 0) return;
    assert(reply->before <= reply->turns);
    lock->wait.turns = reply->turns;
    lock->wait.behind = reply->before > 0;
    lock->wait.far = reply->turns > FAR_TURNS && reply->tag.node == core_arbiter(lock, 0);
}

bool fair_is_far(const struct core_lock *lock)
{
    return lock->wait.far && lock->nodes[core_arbiter(lock, 0)].state == NODE_READY;
}

void fair_hear(struct core_lock *lock, uint32_t index, uint64_t keys)
{
    uint32_t n = lock->config->n_nodes;
    uint64_t refusing = lock->nodes[lock->attempt.plan.first % n].asked.refusing;

    if (refusing != 0 && (refusing & keys) == 0) return;
    for (uint32_t i = 0; i < n; i++) {
        if (index >= n || i == index) lock->nodes[i].notices.turns++;
    }
}

/* Rule 9.5. */
bool fair_is_turn(const struct core_lock *lock)
{
    uint32_t heard = 0;

    assert(lock->config->fair);
    if (lock->news.keys == UINT64_MAX) return true;
    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        if (node->notices.turns > heard) heard = node->notices.turns;
    }
    return heard >= lock->wait.turns;
}
