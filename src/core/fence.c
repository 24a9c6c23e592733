/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fence.c - one fencing token over the quorum: increment with a floor
 *
 * 1. A node that grants increments its counter, to the floor at least, and shows it with its yes.
 * 2. The token is the largest counter shown, T. If Q granted nodes show T, it stands: one round trip.
 * 3. Else the granted nodes that showed less are asked to raise: only where the key still is ours, and only if
 *    the counter is not above T already, a node stores T and acknowledges; else it shows its higher counter,
 *    which becomes the new T.
 * 4. The token stands when Q nodes show this very T.
 *
 * Two grants with one token would share a node that had the counter T under both; but the later of the two
 * incremented it there when it took the key. For the same reason tokens rise: a later quorum shares a node with
 * this one, whose counter was T at least when T was told. No clock is involved.
 */
#include "state.h"

static uint64_t largest_shown(const struct core_lock *lock)
{
    uint64_t largest = 0;

    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        const struct core_node *node = &lock->nodes[i];

        if (node->vote == CORE_VOTE_YES && node->fence > largest) largest = node->fence;
    }
    return largest;
}

void fence_raise(struct core_lock *lock, struct step *step, uint32_t index, bool use_eval)
{
    struct core_command *command = core_send(lock, step, index, CORE_OP_RAISE, lock->lease_us, use_eval);

    command->fence = largest_shown(lock);
    lock->nodes[index].raising = true;
}

/* A node that shows less and is out of reach cannot be raised: its yes is of no use any more. */
static void drop_unreachable(struct core_lock *lock, uint64_t token)
{
    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        struct core_node *node = &lock->nodes[i];

        if (node->vote != CORE_VOTE_YES || node->fence == token || core_can_talk(node)) continue;
        node->vote = CORE_VOTE_FAILED;
        node->fault = node->down_fault;
        node->valid_until_us = 0;
    }
}

void fence_judge(struct core_lock *lock, struct step *step, uint32_t pending)
{
    uint64_t token = largest_shown(lock);
    uint32_t agreed = 0;
    uint32_t behind = 0;

    drop_unreachable(lock, token);
    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        const struct core_node *node = &lock->nodes[i];

        if (node->vote != CORE_VOTE_YES) continue;
        if (BROKEN(CONTROL_NO_WRITE_BACK) || node->fence == token) {
            agreed++;
        } else {
            behind++;
        }
    }
    if (agreed >= lock->config.quorum) {
        lock->fence = token;
        hold_grant(lock, step);
    } else if (agreed + behind + pending < lock->config.quorum) {
        attempt_doom(lock, step);
    } else {
        for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
            const struct core_node *node = &lock->nodes[i];

            if (node->vote == CORE_VOTE_YES && node->fence != token && !node->raising) {
                fence_raise(lock, step, i, false);
            }
        }
    }
}
