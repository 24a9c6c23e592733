/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crowd.c - how seldom one of many waiting clients asks the nodes (rule 6.15)
 *
 * The nodes remember a place in a queue for twice the pause that its client makes for those before it: see queue_life()
 * of queue.lua. Whoever is far behind relies on notices, or on the arbiter to be told in time (rule 9.5); also all
 * readers, who may have the key as soon as the first of them does. A lock that hears no notices asks sooner.
 */
#include "crowd.h"

#include "arbiter.h"

#define CROWD_FEW     8u /* so many others do not count */
#define SPREAD_MAX_US 300000000u
#define DEAF_MAX_US   5000000u

bool crowd_knows_place(const struct core_lock *lock)
{
    return lock->wait.intent_us != 0 && lock->wait.ahead != UINT32_MAX;
}

static bool listens(const struct core_lock *lock)
{
    bool any = false;

    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) any |= node->notices.listening;
    return any;
}

/* Return how many clients come first, or else how many wait for the same keys, too: a node tells that with its first
 * refusal. A fair lock that hears of no release must not wait for its turn for long. */
static uint32_t count_others(const struct core_lock *lock)
{
    if (lock->config->fair) return listens(lock) ? lock->wait.turns : 0;
    return crowd_knows_place(lock) ? lock->wait.ahead : lock->waiters;
}

uint64_t crowd_spread_us(const struct core_lock *lock)
{
    uint32_t others = count_others(lock);
    uint64_t most_us;

    if (others <= CROWD_FEW) return 0;
    most_us = listens(lock) ? SPREAD_MAX_US : DEAF_MAX_US;
    return core_smaller(core_larger((uint64_t)others * CROWD_EACH_US, arbiter_pace_us(lock)), most_us);
}

uint64_t crowd_kept_us(const struct core_lock *lock)
{
    assert(!lock->config->fair);
    if (!crowd_knows_place(lock)) return 0;
    return 2 * core_smaller((uint64_t)lock->wait.ahead * CROWD_EACH_US, SPREAD_MAX_US);
}
