/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doubt.c - how far the word of one node is believed
 *
 * The arbiter alone says who holds the lock, while that is news. Its key may be one that no quorum has: of a
 * holder that is gone elsewhere, of an operator's, without expiry, of another use of the name. Whoever believed
 * it would wait for ever, with newcomers, who ask all nodes, coming before it.
 *
 * 1. An arbiter that goes on naming the same holder is believed only after all nodes were asked about it, and
 *    then for some polls. Otherwise the others are asked in the same attempt.
 * 2. Nor is it believed where another node told that this very holder gave the lock back.
 * 3. Where so many nodes do not have that holder's key that no quorum can have it, and it is named again, the
 *    node's key is odd: it is not the arbiter any more, until it votes or names another.
 * 4. A node that answers with an error is not the arbiter either, until it votes, unless there is no better
 * one.
 */
#include "state.h"

/* So many times a holder that nothing speaks against is believed to be there still. */
#define BELIEF_POLLS 4u
/* So many times one that was not named before. */
#define BELIEF_NEWS 1u

bool doubt_fits(const struct core_node *node)
{
    return !node->overdue && !node->unfit && !node->odd;
}

bool doubt_may_serve(const struct core_node *node)
{
    return !node->overdue && !node->odd;
}

/* Of another holder, or of none: then this holder's key is not there. A value of another type is no lock's. */
static bool speaks_against(const struct core_node *node, uint64_t holder_id)
{
    switch (node->vote) {
    case CORE_VOTE_YES: return true;
    case CORE_VOTE_FAILED: return node->fault == CORE_FAULT_FOREIGN;
    case CORE_VOTE_OTHER: return node->holder_id != 0 && node->holder_id != holder_id;
    default: return false;
    }
}

static uint32_t count_without(const struct core_lock *lock, uint64_t holder_id)
{
    uint32_t without = 0;

    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        without += speaks_against(&lock->nodes[i], holder_id);
    }
    return without;
}

/* No quorum can have this holder's key. */
static bool disproved(const struct core_lock *lock, uint64_t holder_id)
{
    return count_without(lock, holder_id) > lock->config.n_nodes - lock->config.quorum;
}

/* It may hold the lock: a quorum named it, or all who answer were waited for and nothing speaks against it. */
static bool confirmed(const struct core_lock *lock, uint64_t holder_id)
{
    uint32_t named = 0;

    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        named += lock->nodes[i].vote == CORE_VOTE_OTHER && lock->nodes[i].holder_id == holder_id;
    }
    if (holder_id != 0 && named >= lock->config.quorum) return true;
    return lock->doubting && count_without(lock, holder_id) == 0;
}

void doubt_learn(struct core_lock *lock)
{
    lock->confirmed_id = 0;
    lock->belief = 0;
    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        struct core_node *node = &lock->nodes[lock->config.arbiters[i]];

        if (node->vote != CORE_VOTE_OTHER) continue;
        if (disproved(lock, node->holder_id)) {
            node->odd = node->holder_id != 0 && node->holder_id == node->met_holder_id;
            node->odd_id = node->holder_id;
        } else if (lock->belief == 0 && confirmed(lock, node->holder_id)) {
            lock->confirmed_id = node->holder_id;
            lock->belief = BELIEF_POLLS;
        }
    }
}

bool doubt_arbiter(struct core_lock *lock)
{
    const struct core_node *node = &lock->nodes[lock->arbiter];
    uint64_t holder_id = node->holder_id;
    bool gave_back = holder_id != 0 && holder_id == lock->given_back_id;
    bool news = holder_id != node->met_holder_id && holder_id != lock->confirmed_id;

    if (BROKEN(CONTROL_BELIEVES_ONE)) return false;
    if (news && !gave_back) {
        lock->belief = BELIEF_NEWS;
    } else if (lock->belief > 0 && !gave_back) {
        lock->belief--;
    } else {
        lock->doubting = true;
    }
    return lock->doubting;
}

uint64_t doubt_until(const struct core_lock *lock)
{
    uint64_t until_us = 0;

    for (uint32_t i = 0; i < lock->config.n_nodes && lock->doubting && !lock->doubted; i++) {
        uint64_t timeout_us = wait_timeout(lock, i, lock->nodes[i].asked_us);

        if (lock->nodes[i].vote == CORE_VOTE_PENDING && timeout_us > until_us) until_us = timeout_us;
    }
    return until_us;
}

void doubt_on_vote(struct core_node *node)
{
    node->unfit = node->vote == CORE_VOTE_FAILED;
    if (node->vote == CORE_VOTE_YES) node->odd = false;
    if (node->vote == CORE_VOTE_OTHER && node->holder_id != 0 && node->holder_id != node->odd_id) {
        node->odd = false;
    }
}

bool doubt_is_blocked(const struct core_lock *lock)
{
    uint32_t odd = 0;

    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        odd += lock->nodes[i].odd && lock->nodes[i].vote == CORE_VOTE_OTHER;
    }
    return odd > lock->config.n_nodes - lock->config.quorum;
}
