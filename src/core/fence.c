/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fence.c - one fencing token over the quorum: increment with a floor
 *
 * Chapter 5 of src/protocol.md has the rules. Here T is the largest counter that a node shows.
 *
 * Tokens are unique. Two grants with one token would share a node whose counter was T under both, but that node
 * incremented its counter when it granted the later key. Tokens rise: a later quorum shares a node with this one,
 * and that node's counter was at least T when T was agreed. No clock is involved, unless counters were lost.
 *
 * Nodes that become READY together are asked with one floor, so that they agree at once. A reader's token may be higher
 * than that of the last writer, if a writer's attempt failed or a node granted it late.
 *
 * In an adoption no node increments or shows its counter with its yes. All are asked to raise it to 1 at least, and so
 * show it. T is the token of the former owner, or higher if a node of that grant showed more only after the grant. No
 * other grant has T, because the keys were never free in between.
 */
#include "fence.h"

#include <assert.h>

/* Rule 5.7: no node counts up for readers. */
static bool counts(const struct core_lock *lock)
{
    return lock->config->fencing && !lock->config->reads;
}

/* Rule 5.4. */
void fence_begin(struct core_lock *lock, const struct step *step)
{
    lock->attempt.floor = counts(lock) ? core_larger(step->wall_us, lock->id.fence + 1) : 0;
    lock->attempt.floor_at_us = step->now_us;
}

/* Rule 5.5. */
void fence_renew_floor(struct core_lock *lock, uint64_t now_us)
{
    struct attempt *attempt = &lock->attempt;

    if (now_us - attempt->floor_at_us <= lock->config->node_timeout_us) return;
    if (attempt->floor != 0) attempt->floor += now_us - attempt->floor_at_us;
    attempt->floor_at_us = now_us;
}

/* Rule 11.4. */
static uint64_t largest_shown(const struct core_lock *lock)
{
    uint64_t largest = lock->acquire.adopts ? 1 : 0;

    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        if (node->vote == CORE_VOTE_YES && node->asked.fence > largest) largest = node->asked.fence;
    }
    return largest;
}

/* Ask one node to raise its counter to the largest counter shown (rule 5.3). */
static void ask_to_raise(struct core_lock *lock, struct step *step, uint32_t index)
{
    struct core_command *command = core_send(lock, step, index, OP_RAISE, lock->lease_us);

    command->fence = largest_shown(lock);
    /* Counters only rise. */
    assert(lock->nodes[index].asked.fence < command->fence);
    lock->nodes[index].asked.follow_up = FOLLOW_UP_RAISE;
}

/* Rule 5.3: drop the yes of a node that shows less and is out of reach, for its counter cannot be raised. */
static void drop_unreachable(struct core_lock *lock, uint64_t token)
{
    for (struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        if (node->vote != CORE_VOTE_YES || node->asked.fence == token || core_can_talk(node)) continue;
        core_vote_failed(node, node->down_fault);
        node->key.valid_until_us = 0;
    }
}

enum fence_verdict fence_judge(struct core_lock *lock, struct step *step, uint32_t pending)
{
    uint64_t token = largest_shown(lock);
    uint32_t agreed = 0;
    uint32_t behind = 0;

    assert(lock->config->fencing);
    assert(lock->phase == CORE_ASKING && lock->attempt.stage == ATTEMPT_ASKS_ALL);
    /* Rule 5.7: readers need no unique token. Any quorum of earlier grants shares a node with this one. */
    if (lock->config->reads) {
        lock->id.fence = token;
        return FENCE_AGREED;
    }
    drop_unreachable(lock, token);
    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        if (node->vote != CORE_VOTE_YES) continue;
        if (node->asked.fence == token) {
            agreed++;
        } else {
            behind++;
        }
    }
    assert(agreed + behind + pending <= lock->config->n_nodes);
    if (agreed >= lock->config->quorum) { /* rule 5.2 */
        lock->id.fence = token;
        return FENCE_AGREED;
    }
    if (agreed + behind + pending < lock->config->quorum) return FENCE_HOPELESS;
    for (uint32_t i = 0; i < lock->config->n_nodes; i++) {
        const struct core_node *node = &lock->nodes[i];

        if (node->vote == CORE_VOTE_YES && node->asked.fence != token && node->asked.follow_up != FOLLOW_UP_RAISE) {
            ask_to_raise(lock, step, i);
        }
    }
    return FENCE_WAIT;
}
