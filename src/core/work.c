/* SPDX-License-Identifier: BSD-3-Clause */
#include "work.h"

#include <string.h>

/* The release of the latest attempt, which another attempt will follow. */
static void move_debt(const struct core_lock *lock, struct core_node *node)
{
    if (!node->owes) return;
    node->asked->debts[0] = node->debt;
    node->asked->debt_ids[0] = lock->id;
    node->owes = false;
    node->key = (struct core_key){0};
}

bool work_begin(struct core_lock *lock, const struct step *step)
{
    if (lock->work != NULL || step->work == NULL) return lock->work != NULL;
    lock->work = step->work;
    lock->work->attempt = (struct attempt){0};
    lock->work->wait = (struct wait){.retry_at_us = CORE_NEVER};
    lock->work->belief = (struct belief){0};
    for (uint32_t i = 0; i < lock->config->n_nodes; i++) {
        struct core_node *node = &lock->nodes[i];

        node->asked = &lock->work->asked[i];
        memset(node->asked, 0, offsetof(struct core_asked, debt_ids));
        node->asked->holder.ttl_us = -2;
        move_debt(lock, node);
    }
    return true;
}

bool work_is_needed(const struct core_lock *lock)
{
    if (core_is_acquiring(lock) || lock->owing != 0) return true;
    /* Votes that are late count until the first renewal. */
    for (uint32_t i = 0; lock->phase == CORE_HELD && lock->hold.round == 0 && i < lock->config->n_nodes; i++) {
        enum core_vote vote = lock->nodes[i].vote;

        if (vote == CORE_VOTE_PENDING || vote == CORE_VOTE_NONE) return true;
    }
    return false;
}

void *work_end(struct core_lock *lock)
{
    struct core_work *work = lock->work;

    lock->work = NULL;
    for (struct core_node *node = lock->nodes; node < CORE_END(lock); node++) node->asked = NULL;
    return work;
}
