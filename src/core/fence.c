/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fence.c - one fencing token over the quorum: increment with a floor
 *
 * 1. A node that grants increments its counter, to the floor at least, and shows it with its yes.
 * 2. The token T is the largest counter shown. If Q granted nodes show T, it is agreed: one round trip.
 * 3. Else the granted nodes that showed less are asked to raise. A node stores T and acknowledges only where the key
 *    still is ours and its counter is not above T; else it shows its higher counter, the new T.
 * 4. The token is agreed when Q nodes show this very T.
 *
 * Tokens are unique: two grants with one token would share a node whose counter was T under both, but the later
 * grant incremented it there when it took the key. Tokens rise for the same reason: a later quorum shares a
 * node with this one, and its counter was T at least when T was agreed. No clock is involved.
 *
 * A lock that is shared in all its keys is told T, which no node increments for it: so not less than the token of any
 * writer before it. It may be more, where a writer's attempt failed, and readers may be told different ones.
 */
#include "fence.h"

#include <assert.h>

static uint64_t largest_shown(const struct core_lock *lock)
{
    uint64_t largest = 0;

    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        if (node->vote == CORE_VOTE_YES && node->asked.fence > largest) largest = node->asked.fence;
    }
    return largest;
}

/* Asks one node to raise its counter to the largest that a granted node showed. */
static void ask_to_raise(struct core_lock *lock, struct step *step, uint32_t index)
{
    struct core_command *command = core_send(lock, step, index, OP_RAISE, lock->lease_us);

    command->fence = largest_shown(lock);
    /* A counter only rises. */
    assert(lock->nodes[index].asked.fence < command->fence);
    lock->nodes[index].asked.follow_up = FOLLOW_UP_RAISE;
}

/* A node that shows less and is out of reach cannot be raised: its yes does not count any more. */
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
    /* A reader takes no number of its own. Any quorum of earlier grants shares a node with this one. */
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
    if (agreed >= lock->config->quorum) {
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
