/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * intent.c - what a waiting lock leaves at the nodes, so that it is not passed over for ever
 *
 * Readers hold a key together, so a writer could wait for ever while new ones come and old ones go; and of writers that
 * hand the key on, readers.
 *
 * 1. A lock that waits, and was refused because of the other mode, is remembered by the nodes that would refuse it: a
 *    writer where readers are, a reader where a writer is; a list of both modes like a writer, and by all nodes. All
 *    are told, not only the arbiter: a newcomer asks all of them. One that too few nodes can grant is not remembered,
 *    or renewed: it would keep others out for as long as it waits for a node that only it cannot reach.
 * 2. Readers that come later than a writer that is remembered are refused. Those that hold go on.
 * 3. A writer that gives the key back leaves it to the readers that are remembered, for a moment, before other writers.
 * 4. A node forgets it after LIFE_US, which its attempts renew; and at once when the lock is granted, or waits no more.
 *    So one that died delays others no longer than that.
 *
 * An intent has the name of the first attempt, for as long as the lock waits. No grant depends on one.
 */
#include "intent.h"

#include <assert.h>

#define LIFE_US  2000000u /* polls come once a second at least */
#define AGAIN_US 500000u

void intent_begin(struct core_lock *lock)
{
    assert(lock->phase == CORE_ASKING);
    if (lock->acquire.attempts > 1) return;
    lock->wait.waiter = lock->id.token;
    lock->wait.intent_us = 0;
}

uint64_t intent_waited_us(const struct core_lock *lock, uint64_t now_us)
{
    return validity_sub(now_us, lock->acquire.begun_us);
}

static void send(struct core_lock *lock, struct step *step, uint32_t node, uint64_t life_us)
{
    struct core_command *command = core_send(lock, step, node, OP_INTEND, life_us);

    command->token = lock->wait.waiter;
    command->fence = 0;
    command->waited_us = intent_waited_us(lock, step->now_us);
}

static void intent_send_all(struct core_lock *lock, struct step *step, uint64_t life_us)
{
    for (uint32_t i = 0; i < lock->config->n_nodes; i++) {
        if (core_can_talk(&lock->nodes[i])) send(lock, step, i, life_us);
    }
}

/* Among writers alone nobody is passed over: they have no newcomers that hold together. */
static bool other_mode_refused(const struct core_lock *lock)
{
    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        if (node->vote == CORE_VOTE_OTHER && (lock->config->reads || node->asked.holder.readers)) return true;
    }
    return false;
}

void intent_leave(struct core_lock *lock, struct step *step)
{
    uint64_t *left_us = &lock->wait.intent_us;

    assert(lock->phase == CORE_WAITING);
    if (lock->config->wait_us == 0) return;
    if (!core_quorum_is_ready(lock)) return;
    if (!other_mode_refused(lock)) return;
    if (*left_us != 0 && step->now_us < *left_us + AGAIN_US) return;
    *left_us = step->now_us;
    intent_send_all(lock, step, LIFE_US);
}

void intent_withdraw(struct core_lock *lock, struct step *step)
{
    if (lock->wait.intent_us == 0) return;
    assert(core_is_acquiring(lock));
    assert(lock->config->wait_us != 0);
    lock->wait.intent_us = 0;
    intent_send_all(lock, step, 0);
}
