/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * debt.c - an attempt that ended is released on every node, whatever the node answered
 *
 * A release goes out on the connection the acquire went out on, so it is executed after it. Where there is no
 * connection, or it broke before the answer, the debt is paid again on the next one, until the key has
 * certainly expired. What then remains costs liveness for one lease at most, never exclusion: the token of a
 * dead attempt counts for nobody.
 */
#include "state.h"

#include <assert.h>

static bool ended(const struct debt *debt, uint64_t now_us)
{
    return !debt->owed || debt->until_us <= now_us;
}

bool debt_room(struct core_node *node, uint64_t now_us)
{
    for (uint32_t k = 0; k < CORE_DEBTS_MAX; k++) {
        if (ended(&node->debts[k], now_us)) return true;
    }
    return false;
}

static void send_release(struct core_lock *lock, struct step *step, uint32_t node, struct debt *debt,
                         bool whole_script)
{
    struct core_command *command = core_send(lock, step, node, CORE_OP_RELEASE, 0, whole_script);

    debt->sent_generation = lock->nodes[node].generation;
    if (debt->unsent && lock->releasing && debt->attempt == lock->release_attempt) {
        lock->release_until_us = validity_add(step->now_us, lock->config.node_timeout_us);
    }
    debt->unsent = false;
    command->fence = debt->fence;
    command->silent = debt->silent;
    command->tag.attempt = debt->attempt;
    command->token = debt->token;
    /* No deadline: however late the node answers, we want to know that the key is gone. */
    command->timeout_us = 0;
}

/*
 * A failed attempt wakes nobody, unless it held the arbiter: whoever waits asks that one, and was refused for
 * our sake. But where somebody holds the lock without the arbiter, or too few nodes can vote, we all get the
 * arbiter's yes in turn, and in vain: our release would only make the next one try.
 */
static bool wakes_nobody(const struct core_lock *lock, uint32_t index)
{
    if (lock->phase != CORE_ASKING) return false;
    if (index != wait_arbiter(lock)) return true;
    return !BROKEN(CONTROL_WAKES_IN_VAIN) && (wait_meets_holder(lock) || attempt_lacks_quorum(lock));
}

static void owe(struct core_lock *lock, struct step *step, uint32_t index)
{
    struct core_node *node = &lock->nodes[index];
    struct debt *debt = NULL;

    for (uint32_t k = 0; k < CORE_DEBTS_MAX && debt == NULL; k++) {
        if (ended(&node->debts[k], step->now_us)) debt = &node->debts[k];
    }
    /* Nobody is asked without room for his debt (debt_room). */
    assert(debt != NULL);
    debt->owed = true;
    debt->token = lock->token;
    debt->attempt = lock->attempt;
    /* An attempt that was never granted has no token to leave behind. */
    debt->fence = lock->phase == CORE_ASKING ? 0 : lock->fence;
    debt->until_us = node->touched_until_us;
    debt->sent_generation = 0;
    debt->unsent = false;
    debt->silent = wakes_nobody(lock, index);
    if (lock->phase == CORE_ASKING && !debt->silent && node->vote == CORE_VOTE_YES) wait_own_notice(node);
    if (core_can_talk(node)) send_release(lock, step, index, debt, false);
}

/* The arbiter first: whoever waits asks it as soon as it has told him. */
void debt_end_attempt(struct core_lock *lock, struct step *step)
{
    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        uint32_t index = lock->config.arbiters[i];
        struct core_node *node = &lock->nodes[index];

        if (!node->touched) continue;
        node->touched = false;
        owe(lock, step, index);
    }
}

void debt_pay(struct core_lock *lock, struct step *step, uint32_t index)
{
    struct core_node *node = &lock->nodes[index];

    if (!core_can_talk(node)) return;
    for (uint32_t k = 0; k < CORE_DEBTS_MAX; k++) {
        struct debt *debt = &node->debts[k];

        if (!ended(debt, step->now_us) && debt->sent_generation != node->generation) {
            send_release(lock, step, index, debt, false);
        }
    }
}

void debt_on_reply(struct core_lock *lock, struct step *step, const struct core_reply *reply)
{
    struct core_node *node = &lock->nodes[reply->tag.node];

    for (uint32_t k = 0; k < CORE_DEBTS_MAX; k++) {
        struct debt *debt = &node->debts[k];

        if (!debt->owed || debt->attempt != reply->tag.attempt) continue;
        if (debt->sent_generation != reply->generation) continue; /* paid again on a newer connection */
        switch (reply->outcome) {
        case CORE_YES:
        case CORE_OTHER:
        case CORE_MISSING: debt->owed = false; break;
        case CORE_NOSCRIPT: send_release(lock, step, reply->tag.node, debt, true); break;
        case CORE_UNSENT: debt->unsent = true; /* fall through */
        case CORE_UNKNOWN: debt->sent_generation = 0; break;
        case CORE_ERROR: break; /* the same connection would answer the same; the next one is asked again */
        }
    }
    debt_judge_release(lock, step->now_us);
}

void debt_forget_expired(struct core_lock *lock, uint64_t now_us)
{
    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        for (uint32_t k = 0; k < CORE_DEBTS_MAX; k++) {
            struct debt *debt = &lock->nodes[i].debts[k];

            if (ended(debt, now_us)) debt->owed = false;
        }
    }
}

bool debt_any(const struct core_lock *lock)
{
    return debt_deadline(lock) != CORE_NEVER;
}

uint64_t debt_deadline(const struct core_lock *lock)
{
    uint64_t first_us = CORE_NEVER;

    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        for (uint32_t k = 0; k < CORE_DEBTS_MAX; k++) {
            const struct debt *debt = &lock->nodes[i].debts[k];

            if (debt->owed && debt->until_us < first_us) first_us = debt->until_us;
        }
    }
    return first_us;
}

bool debt_waits(const struct core_node *node)
{
    for (uint32_t k = 0; k < CORE_DEBTS_MAX; k++) {
        if (node->debts[k].owed && node->debts[k].unsent) return true;
    }
    return false;
}

/* The debt of that attempt that the node still owes; NULL where it owes none. */
static const struct debt *owes(const struct core_node *node, uint64_t attempt)
{
    for (uint32_t k = 0; k < CORE_DEBTS_MAX; k++) {
        if (node->debts[k].owed && node->debts[k].attempt == attempt) return &node->debts[k];
    }
    return NULL;
}

struct release_tally {
    uint32_t clear;  /* nodes on which nothing of it is left */
    uint32_t coming; /* nodes whose answer can still come on their present connection */
    uint32_t queued; /* of these, nodes to which it could not be sent yet, and that answer others meanwhile */
};

static struct release_tally count_release(const struct core_lock *lock)
{
    struct release_tally tally = {0};

    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        const struct core_node *node = &lock->nodes[i];
        const struct debt *debt = owes(node, lock->release_attempt);

        if (debt == NULL) {
            tally.clear++;
        } else if (core_can_talk(node)) {
            tally.coming += debt->unsent || debt->sent_generation == node->generation;
            tally.queued += debt->unsent && !node->overdue;
        }
    }
    return tally;
}

static void end_release(struct core_lock *lock, bool clear)
{
    /* What had expired or was lost is nobody's concern any more, wherever a rest of it may be. */
    lock->released_status = clear || lock->release_expired ? CORE_OK : CORE_NOQUORUM;
    lock->releasing = false;
    lock->tell_released = true;
}

void debt_end_release(struct core_lock *lock)
{
    if (lock->releasing) end_release(lock, count_release(lock).clear >= lock->config.quorum);
}

void debt_judge_release(struct core_lock *lock, uint64_t now_us)
{
    uint32_t quorum = lock->config.quorum;
    struct release_tally tally;

    if (!lock->releasing) return;
    tally = count_release(lock);
    if (tally.clear >= quorum) {
        end_release(lock, true);
    } else if (tally.clear + tally.coming < quorum || (tally.queued == 0 && now_us >= lock->release_until_us)) {
        end_release(lock, false);
    }
}

uint64_t debt_release_deadline(const struct core_lock *lock)
{
    /* The time to answer runs from when it was sent, not while it waits for room. */
    if (!lock->releasing || count_release(lock).queued > 0) return CORE_NEVER;
    return lock->release_until_us;
}
