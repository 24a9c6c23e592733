/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * debt.c - an attempt that ended is released on every node, whatever the node answered
 *
 * A release goes out on the connection the acquire went out on, so it is executed after it. Where there is no
 * connection, or it broke before the answer, the debt is paid again on the next one, until the key has
 * certainly expired. Where the node refuses it in passing (busy, loading, out of memory) it is tried again with
 * pauses that grow; where it did not fit into the queue, when there is room. What then remains costs liveness
 * for one lease at most, never exclusion: the token of a dead attempt counts for nobody.
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
                         bool use_eval)
{
    struct core_command *command = core_send(lock, step, node, CORE_OP_RELEASE, 0, use_eval);

    debt->sent_generation = lock->nodes[node].generation;
    if (debt->unsent && lock->releasing && debt->attempt == lock->release_attempt) {
        lock->release_until_us = validity_add(step->now_us, lock->config.node_timeout_us);
        lock->release_looked_us = 0;
    }
    debt->refused = debt->unsent = false;
    debt->again_at_us = CORE_NEVER;
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
    *debt = (struct debt){.owed = true,
                          .token = lock->token,
                          .attempt = lock->attempt,
                          /* An attempt that was never granted has no token to leave behind. */
                          .fence = lock->phase == CORE_ASKING ? 0 : lock->fence,
                          .until_us = node->touched_until_us,
                          .silent = wakes_nobody(lock, index),
                          .again_at_us = CORE_NEVER};
    if (!core_can_talk(node)) return;
    if (lock->phase == CORE_ASKING && !debt->silent && node->vote == CORE_VOTE_YES) {
        debt->told = wait_own_notice(node);
    }
    send_release(lock, step, index, debt, false);
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

        if (ended(debt, step->now_us) || debt->sent_generation == node->generation) continue;
        /* Whoever asked before on a connection that ended does not know what became of it. */
        if (debt->sent_generation != 0 && !debt->refused) debt->unclear = true;
        send_release(lock, step, index, debt, false);
    }
}

void debt_on_room(struct core_lock *lock, struct step *step, uint32_t index)
{
    struct core_node *node = &lock->nodes[index];

    assert(index < lock->config.n_nodes);
    for (uint32_t k = 0; k < CORE_DEBTS_MAX && core_can_talk(node); k++) {
        struct debt *debt = &node->debts[k];

        if (debt->unsent && !ended(debt, step->now_us)) send_release(lock, step, index, debt, false);
    }
    debt_judge_release(lock, step->now_us);
}

/* No notice of it is to come: the next one is news. */
static void untold(struct core_node *node, struct debt *debt)
{
    if (debt->told && node->own_notices > 0) node->own_notices--;
    debt->told = false;
}

static void failed(struct core_lock *lock, struct step *step, struct debt *debt)
{
    debt->sent_generation = 0;
    debt->again_at_us = validity_add(step->now_us, backoff_debt_us(&lock->jitter, debt->tries++));
}

/* There was no key of ours: unless we deleted it by an earlier try, that says something about the hold. */
static void absent(struct core_lock *lock, struct debt *debt)
{
    debt->owed = false;
    if (lock->releasing && debt->attempt == lock->release_attempt && !debt->unclear) lock->release_absent++;
}

static void answered(struct core_lock *lock, struct step *step, const struct core_reply *reply,
                     struct debt *debt)
{
    switch (reply->outcome) {
    case CORE_YES: debt->owed = false; break;
    case CORE_OTHER:
    case CORE_MISSING: absent(lock, debt); break;
    case CORE_NOSCRIPT: send_release(lock, step, reply->tag.node, debt, true); return;
    case CORE_UNKNOWN:
        debt->unclear = true;
        failed(lock, step, debt);
        break;
    case CORE_UNSENT:
        debt->sent_generation = 0;
        debt->unsent = true;
        break;
    case CORE_ERROR:
        if (reply->fault == CORE_FAULT_FOREIGN) {
            absent(lock, debt); /* a value of another type is there, and so no key of ours */
        } else if (reply->fault == CORE_FAULT_PASSING) {
            failed(lock, step, debt);
        } else {
            debt->refused = true; /* the same connection would answer the same */
        }
        break;
    }
    if (reply->outcome != CORE_YES || reply->listeners == 0) untold(&lock->nodes[reply->tag.node], debt);
}

void debt_on_reply(struct core_lock *lock, struct step *step, const struct core_reply *reply)
{
    struct core_node *node = &lock->nodes[reply->tag.node];

    for (uint32_t k = 0; k < CORE_DEBTS_MAX; k++) {
        struct debt *debt = &node->debts[k];

        if (!debt->owed || debt->attempt != reply->tag.attempt) continue;
        if (debt->sent_generation != reply->generation) continue; /* paid again on a newer connection */
        answered(lock, step, reply, debt);
    }
    debt_judge_release(lock, step->now_us);
}

static bool is_due(const struct core_node *node, const struct debt *debt, uint64_t now_us)
{
    return debt->owed && core_can_talk(node) && debt->again_at_us <= now_us;
}

/* One step has room for so many, beside an attempt that ends and one that begins; the rest is due at once. */
void debt_on_timer(struct core_lock *lock, struct step *step)
{
    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        struct core_node *node = &lock->nodes[i];

        for (uint32_t k = 0; k < CORE_DEBTS_MAX; k++) {
            struct debt *debt = &node->debts[k];

            if (ended(debt, step->now_us)) {
                untold(node, debt);
                debt->owed = false;
            } else if (is_due(node, debt, step->now_us) && step->update->n_commands < lock->config.n_nodes) {
                send_release(lock, step, i, debt, false);
            }
        }
    }
}

bool debt_any(const struct core_lock *lock)
{
    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        for (uint32_t k = 0; k < CORE_DEBTS_MAX; k++) {
            if (lock->nodes[i].debts[k].owed) return true;
        }
    }
    return false;
}

uint64_t debt_deadline(const struct core_lock *lock)
{
    uint64_t first_us = CORE_NEVER;

    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        for (uint32_t k = 0; k < CORE_DEBTS_MAX; k++) {
            const struct debt *debt = &lock->nodes[i].debts[k];

            if (debt->owed && debt->until_us < first_us) first_us = debt->until_us;
            if (is_due(&lock->nodes[i], debt, first_us)) first_us = debt->again_at_us;
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
        } else if (core_can_talk(node) && !debt->refused) {
            tally.coming +=
                debt->unsent || debt->sent_generation == node->generation || debt->again_at_us != CORE_NEVER;
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
    lock->notify_released = true;
}

void debt_end_release(struct core_lock *lock)
{
    if (lock->releasing) end_release(lock, count_release(lock).clear >= lock->config.quorum);
}

/* So long before its end, and so long after we knew that, an answer may still be read. */
static uint64_t last_wait_us(const struct core_lock *lock)
{
    return lock->config.node_timeout_us / 4;
}

/*
 * Where the process stood still over the time to answer, the answers lie there unread, or the releases have not
 * even left: so it is over only some time after it was first looked at.
 */
static bool answers_are_late(struct core_lock *lock, uint64_t now_us)
{
    uint64_t look_at_us = validity_sub(lock->release_until_us, last_wait_us(lock));

    if (now_us < look_at_us) return false;
    if (lock->release_looked_us == 0) lock->release_looked_us = now_us;
    return now_us >= lock->release_until_us && now_us >= lock->release_looked_us + last_wait_us(lock);
}

/*
 * When so many nodes answered that our key was not there that no quorum had it, the hold had ended before. Some
 * may lack it rightly: they restarted, or never had it. Where only answers that are still to come can tell,
 * they are waited for, for one node timeout.
 */
void debt_judge_release(struct core_lock *lock, uint64_t now_us)
{
    uint32_t quorum = lock->config.quorum;
    uint32_t spare = lock->config.n_nodes - quorum;
    struct release_tally tally;
    bool late;

    if (!lock->releasing) return;
    tally = count_release(lock);
    late = answers_are_late(lock, now_us);
    if (lock->release_absent > spare) lock->release_expired = true;
    if (tally.clear >= quorum) {
        bool open = !lock->release_expired && lock->release_absent + tally.coming > spare;

        if (late || !open) end_release(lock, true);
    } else if (tally.clear + tally.coming < quorum || (tally.queued == 0 && late)) {
        end_release(lock, false);
    }
}

uint64_t debt_release_deadline(const struct core_lock *lock)
{
    uint64_t looked_us = lock->release_looked_us;
    struct release_tally tally;

    if (!lock->releasing) return CORE_NEVER;
    tally = count_release(lock);
    /* The time to answer runs from when it was sent, not while it waits for room; but where a quorum answered,
     * what others could add is not waited for any longer. */
    if (tally.queued > 0 && tally.clear < lock->config.quorum) return CORE_NEVER;
    if (looked_us == 0) return validity_sub(lock->release_until_us, last_wait_us(lock));
    return core_larger(lock->release_until_us, looked_us + last_wait_us(lock));
}
