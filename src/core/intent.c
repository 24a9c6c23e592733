/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * intent.c - the intent of a waiting lock at the nodes, so that it is not passed over for ever
 *
 * Readers hold a key together, so a writer could wait for ever while new readers come before the old ones are gone.
 * Readers could wait for ever behind writers that hand the key on. An intent prevents both:
 *
 * 1. A lock that waits because of holders of the other mode sends its intent to all nodes, for newcomers ask all
 *    nodes. A node keeps the intent of a writer while readers hold the key, and that of a reader while a writer
 *    holds it. The intent of a list of keys in both modes counts as a writer's, and all nodes keep it. A lock sends
 *    or renews its intent only while a quorum is READY: otherwise it would keep other clients out while it waits for
 *    a node that only it cannot reach.
 * 2. While a writer's intent is there, readers that come later are refused. Readers that hold the key keep it.
 * 3. After the release of a writer, readers with an intent come before other writers, for a moment.
 * 4. A node drops an intent after LIFE_US unless an attempt renews it. The lock withdraws its intent when it is
 *    granted or stops waiting. So a client that died delays others for LIFE_US at most. The node answers how many
 *    clients of the same mode came before. Behind many of them a lock polls seldom (rule 6.15), and the node keeps the
 *    intent for longer; but of the first for no longer than LIFE_US after it has become the first.
 * 5. Intents of a crowd of readers come late and seldom, so that the nodes have time for the holder: a reader that
 *    finds many others sends its intent with its first poll, and renews it when a third of the node's time is over.
 *
 * The intent is named by the token of the acquire's first attempt. No grant depends on an intent.
 */
#include "intent.h"

#include <assert.h>

#include "crowd.h"

#define LIFE_US  2000000u /* polls, which renew it, come once a second at least */
#define AGAIN_US 500000u

void intent_begin(struct core_lock *lock)
{
    assert(lock->phase == CORE_ASKING);
    if (lock->acquire.attempts > 1) return;
    lock->wait.waiter = lock->id.token;
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
    command->queues = lock->config->fair;
    command->patient = true;
}

static void intent_send_all(struct core_lock *lock, struct step *step, uint64_t life_us)
{
    for (uint32_t i = 0; i < lock->config->n_nodes; i++) {
        if (core_can_talk(&lock->nodes[i])) send(lock, step, i, life_us);
    }
}

/* Only holders of the other mode can pass a lock over for ever: writers do not hold a key together. */
static bool other_mode_refused(const struct core_lock *lock)
{
    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        if (node->vote == CORE_VOTE_OTHER && (lock->config->reads || node->asked.holder.readers)) return true;
    }
    return false;
}

/* Rules 6.15 and 8.6. */
static bool intent_is_due(const struct core_lock *lock, uint64_t now_us)
{
    uint64_t left_us = lock->wait.intent_us;

    if (left_us != 0) return now_us >= left_us + core_larger(AGAIN_US, crowd_kept_us(lock) / 3);
    return !lock->config->reads || intent_waited_us(lock, now_us) >= crowd_spread_us(lock) / 2;
}

/* Rules 8.4 and 8.6. */
void intent_leave(struct core_lock *lock, struct step *step)
{
    assert(lock->phase == CORE_WAITING);
    if (lock->config->holder.wait_us == 0) return;
    /* Rule 9.3: a fair lock has its place in the arbiter's queue instead. */
    if (lock->config->fair) return;
    if (!core_quorum_is_ready(lock)) return;
    if (!other_mode_refused(lock)) return;
    if (!intent_is_due(lock, step->now_us)) return;
    lock->wait.intent_us = step->now_us;
    lock->wait.ahead = UINT32_MAX;
    intent_send_all(lock, step, LIFE_US);
}

/* Rule 6.15. */
void intent_on_reply(struct core_lock *lock, const struct core_reply *reply)
{
    if (lock->phase != CORE_WAITING || lock->wait.intent_us == 0 || reply->outcome != OUTCOME_YES) return;
    lock->wait.ahead = (uint32_t)core_smaller(lock->wait.ahead, reply->before);
}

/* Rules 8.6 and 9.4. */
void intent_withdraw(struct core_lock *lock, struct step *step)
{
    uint32_t arbiter = lock->attempt.plan.first;

    if (lock->wait.intent_us == 0) return;
    assert(core_is_acquiring(lock));
    assert(lock->config->holder.wait_us != 0);
    lock->wait.intent_us = 0;
    if (lock->config->fair && lock->phase == CORE_GRANTED && arbiter < lock->config->n_nodes &&
        lock->nodes[arbiter].vote == CORE_VOTE_YES) {
        /* In the first attempt it had no place at the arbiter. */
        uint32_t left = lock->wait.queues & ~(1u << arbiter);

        if (lock->acquire.attempts > 1) left |= 1u << arbiter;
        for (uint32_t i = 0; i < lock->config->n_nodes; i++) {
            if ((left >> i & 1u) != 0 && core_can_talk(&lock->nodes[i])) send(lock, step, i, 0);
        }
        return;
    }
    intent_send_all(lock, step, 0);
}
