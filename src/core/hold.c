/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hold.c - renewal, repair, and loss
 *
 * A round asks every node that takes requests to extend our key where it still is ours.
 *
 * - A yes moves that node's end of validity; the lock's validity is the Qth largest of them. A node that answers that
 *   our key is not there counts for nothing from the settled round on.
 * - A round with Q yeses is a renewal, and repairs: nodes where the key is missing get it again, and count from the
 *   next round's yes on. Without Q yeses nothing is repaired, for another client may rightly be collecting votes
 *   there.
 * - A round without Q yeses is tried again, at once and then with pauses, until lost_at.
 * - When so many nodes answer that our key is not there that Q is out of reach, the lock is lost at once.
 */
#include "hold.h"

#include <assert.h>

#include "debt.h"

#define RENEW_SPREAD 16u /* a renewal may be earlier by this part of the time between two */

uint64_t hold_margin_us(const struct core_config *config, uint64_t lease_us)
{
    if (config->lost_margin_us != 0) return config->lost_margin_us;
    return validity_lost_margin_us(lease_us, config->drift_ppm, config->drift_fixed_us);
}

uint64_t hold_lost_at(const struct core_lock *lock)
{
    return validity_sub(lock->hold.validity_us, hold_margin_us(lock->config, lock->lease_us));
}

/* The clocks of a quorum stepped in this hold, within one lease: more likely our own clock stood still, and no
 * validity that we know can be trusted. */
static bool stood_still(const struct core_lock *lock, uint64_t now_us)
{
    uint32_t stepped = 0;

    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        uint64_t at_us = node->key.stepped_us;

        stepped += at_us != 0 && validity_add(at_us, lock->lease_us) > now_us;
    }
    return stepped >= lock->config->quorum;
}

static uint64_t present_validity_us(const struct core_lock *lock, uint64_t now_us)
{
    uint64_t ends_us[CORE_NODES_MAX];

    if (stood_still(lock, now_us)) return 0;
    for (uint32_t i = 0; i < lock->config->n_nodes; i++) {
        ends_us[i] = lock->nodes[i].gone ? 0 : lock->nodes[i].key.valid_until_us;
    }
    return validity_of_quorum(ends_us, lock->config->n_nodes, lock->config->quorum);
}

static uint64_t held_until_us(const struct core_lock *lock)
{
    return validity_add(lock->hold.granted_us, lock->config->max_hold_us);
}

/* Locks that were taken together are not renewed together for ever, but those that are due at nearly the same time are.
 */
static uint64_t on_grid(struct core_lock *lock, uint64_t due_us)
{
    uint32_t grid_us = lock->config->renew_grid_us;

    if (grid_us == 0 || due_us == CORE_NEVER) return due_us;
    due_us -= backoff_uniform(&lock->jitter, lock->config->renew_us / RENEW_SPREAD);
    return due_us - due_us % grid_us;
}

/* When the next renewal is due after a round begun then; never where renewal is off or has ended. */
static uint64_t renewal_after(struct core_lock *lock, uint64_t begun_us)
{
    uint64_t due_us = validity_add(begun_us, lock->config->renew_us);

    return due_us < held_until_us(lock) ? on_grid(lock, due_us) : CORE_NEVER;
}

void hold_grant(struct core_lock *lock, uint64_t now_us)
{
    lock->phase = CORE_GRANTED;
    lock->hold = (struct hold){.granted_us = now_us, .validity_us = present_validity_us(lock, now_us), .whole = true};
    lock->hold.renew_at_us = renewal_after(lock, lock->work->attempt.begun_us);
}

static void end_extend(struct core_lock *lock, int status)
{
    if (lock->hold.extend_lease_us == 0) return;
    lock->hold.extend_lease_us = 0;
    core_notify(lock, CORE_NOTIFY_EXTENDED, status);
}

static void lose(struct core_lock *lock, enum core_loss loss)
{
    assert(lock->phase == CORE_HELD);
    lock->phase = CORE_LOST;
    lock->hold.round_waits = false;
    lock->hold.loss = loss;
    core_notify(lock, CORE_NOTIFY_LOST, CORE_LOST_LOCK);
    end_extend(lock, CORE_LOST_LOCK);
    /* The extend succeeded, but the loss came before its completion. */
    if (lock->pending.status[CORE_NOTIFY_EXTENDED] == CORE_OK) {
        lock->pending.status[CORE_NOTIFY_EXTENDED] = CORE_LOST_LOCK;
    }
}

enum core_loss hold_loss_reason(const struct core_config *config, uint64_t granted_us, uint64_t now_us)
{
    if (config->renew_us == CORE_NEVER) return CORE_LOSS_NOT_RENEWED;
    return now_us >= validity_add(granted_us, config->max_hold_us) ? CORE_LOSS_MAX_HOLD : CORE_LOSS_EXPIRED;
}

void hold_check_lost(struct core_lock *lock, uint64_t now_us)
{
    if (lock->phase != CORE_HELD || now_us < hold_lost_at(lock)) return;
    lose(lock, hold_loss_reason(lock->config, lock->hold.granted_us, now_us));
}

void hold_lose(struct core_lock *lock, uint64_t now_us)
{
    if (lock->phase != CORE_HELD) return;
    lock->hold.validity_us =
        core_smaller(lock->hold.validity_us, validity_add(now_us, hold_margin_us(lock->config, lock->lease_us)));
    hold_check_lost(lock, now_us);
}

static void send_repair(struct core_lock *lock, struct step *step, uint32_t index, bool use_eval)
{
    struct core_node *node = &lock->nodes[index];

    node->key.repair_round = lock->hold.round;
    node->key.until_us = validity_debt_until(step->now_us, lock->lease_us);
    /* From now on it is unknown whether the key is there. */
    node->gone = false;
    node->key.valid_until_us = 0;
    core_send(lock, step, index, OP_REPAIR, lock->lease_us, use_eval);
}

static void repair_missing(struct core_lock *lock, struct step *step)
{
    for (uint32_t i = 0; i < lock->config->n_nodes; i++) {
        struct core_node *node = &lock->nodes[i];

        if (node->vote != CORE_VOTE_MISSING || node->key.repair_round == lock->hold.round) continue;
        if (!core_can_talk(node) || (node->key.until_us == 0 && !debt_has_room(node, step->now_us))) continue;
        send_repair(lock, step, i, false);
    }
}

static void round_renewed(struct core_lock *lock)
{
    lock->hold.round_state = ROUND_DECIDED;
    lock->hold.renew_failures = 0;
    if (lock->hold.extend_lease_us != 0) lock->lease_us = lock->hold.extend_lease_us;
    lock->hold.renew_at_us = renewal_after(lock, lock->hold.round_begun_us);
    lock->log |= CORE_LOG_RENEWED;
    end_extend(lock, CORE_OK);
}

static void round_failed(struct core_lock *lock, uint64_t now_us)
{
    uint64_t pause_us = backoff_renew_us(&lock->jitter, lock->config->node_timeout_us, ++lock->hold.renew_failures);

    lock->hold.renew_at_us = CORE_NEVER;
    if (lock->config->renew_us != CORE_NEVER && now_us < held_until_us(lock)) {
        lock->hold.renew_at_us = validity_add(now_us, pause_us);
    }
    lock->log |= CORE_LOG_RENEW_FAILED;
    end_extend(lock, CORE_NOQUORUM);
}

static void round_settled(struct core_lock *lock, bool whole)
{
    lock->hold.round_state = ROUND_SETTLED;
    if (whole != lock->hold.whole) lock->log |= whole ? CORE_LOG_WHOLE : CORE_LOG_DEGRADED;
    lock->hold.whole = whole;
}

static void judge(struct core_lock *lock, struct step *step)
{
    uint32_t n = lock->config->n_nodes;
    uint32_t quorum = lock->config->quorum;
    uint32_t yes = 0;
    uint32_t pending = 0;
    uint32_t gone = 0;
    uint64_t validity_us = present_validity_us(lock, step->now_us);

    for (uint32_t i = 0; i < n; i++) {
        yes += lock->hold.round > 0 && lock->nodes[i].key.yes_round == lock->hold.round;
        pending += lock->nodes[i].vote == CORE_VOTE_PENDING;
        gone += lock->nodes[i].gone;
    }
    /* A node that lost the key counts until the round is settled: a node that was repaired before, and whose
     * yes is on its way, may replace it. */
    if (validity_us > lock->hold.validity_us || pending == 0) lock->hold.validity_us = validity_us;
    if (lock->phase != CORE_HELD) return;
    if (gone > n - quorum) {
        lose(lock, CORE_LOSS_GONE);
        return;
    }
    if (lock->hold.round_state == ROUND_OPEN && yes >= quorum) round_renewed(lock);
    if (lock->hold.round > 0 && yes >= quorum) repair_missing(lock, step);
    if (lock->hold.round_state == ROUND_OPEN && pending == 0) round_failed(lock, step->now_us);
    if (lock->hold.round_state != ROUND_SETTLED && pending == 0) round_settled(lock, yes == n);
    hold_check_lost(lock, step->now_us);
}

static void send_extend(struct core_lock *lock, struct step *step, uint32_t index, uint64_t lease_us, bool use_eval)
{
    struct core_node *node = &lock->nodes[index];
    uint64_t until_us = validity_debt_until(step->now_us, lease_us);

    /* Asked anew, the key lives longer: so does the debt that it may become. */
    if (node->key.until_us != 0) node->key.until_us = core_larger(node->key.until_us, until_us);
    core_send(lock, step, index, OP_EXTEND, lease_us, use_eval);
}

void hold_begin_round(struct core_lock *lock, struct step *step)
{
    uint64_t lease_us = lock->hold.extend_lease_us != 0 ? lock->hold.extend_lease_us : lock->lease_us;

    lock->hold.renew_at_us = CORE_NEVER;
    lock->hold.round_waits = step->no_round;
    if (lock->hold.round_waits) return;
    lock->hold.round++;
    lock->hold.round_state = ROUND_OPEN;
    lock->hold.round_begun_us = step->now_us;
    for (uint32_t i = 0; i < lock->config->n_nodes; i++) {
        struct core_node *node = &lock->nodes[i];

        if (!core_can_talk(node)) {
            core_vote_failed(node, node->down_fault);
            continue;
        }
        node->vote = CORE_VOTE_PENDING;
        send_extend(lock, step, i, lease_us, false);
    }
    judge(lock, step);
}

void hold_on_timer(struct core_lock *lock, struct step *step)
{
    if (lock->phase == CORE_HELD && step->now_us >= lock->hold.renew_at_us) hold_begin_round(lock, step);
}

void hold_on_room(struct core_lock *lock, struct step *step)
{
    if (lock->phase == CORE_HELD && lock->hold.round_waits) hold_begin_round(lock, step);
}

void hold_on_node_state(struct core_lock *lock, struct step *step, uint32_t index)
{
    struct core_node *node = &lock->nodes[index];

    if (lock->phase != CORE_HELD) return;
    if (!core_can_talk(node) && node->vote == CORE_VOTE_PENDING) {
        core_vote_failed(node, node->down_fault);
        judge(lock, step);
    }
    /* While renewal fails, a node that comes back may complete the quorum. */
    if (core_can_talk(node) && lock->hold.renew_failures > 0 && lock->hold.round_state != ROUND_OPEN &&
        lock->hold.renew_at_us != CORE_NEVER) {
        lock->hold.renew_at_us = step->now_us;
    }
}

static void on_yes(struct core_lock *lock, const struct core_tag *tag)
{
    struct core_node *node = &lock->nodes[tag->node];
    uint64_t until_us = core_vote_until(lock, tag);

    if (until_us > node->key.valid_until_us || node->gone) {
        node->key.valid_until_us = until_us;
        node->key.sent_us = tag->sent_us;
    }
    node->gone = false;
    if (tag->round > node->key.yes_round) node->key.yes_round = tag->round;
    if (tag->round == lock->hold.round) node->vote = CORE_VOTE_YES;
}

static void on_absent(struct core_lock *lock, const struct core_reply *reply)
{
    struct core_node *node = &lock->nodes[reply->tag.node];

    /* An answer from before a repair that is under way, or done, is outdated. */
    if (reply->tag.round <= node->key.repair_round) return;
    node->gone = true;
    node->key.valid_until_us = 0;
    if (reply->tag.round == lock->hold.round) {
        node->vote = reply->outcome == OUTCOME_MISSING ? CORE_VOTE_MISSING : CORE_VOTE_OTHER;
    }
}

static void on_repaired(struct core_lock *lock, struct step *step, const struct core_reply *reply)
{
    struct core_node *node = &lock->nodes[reply->tag.node];

    /* Without a yes it is tried again after the next round, not at once: a node that refuses, or whose queue is
     * full, would be asked without end. */
    if (reply->tag.round != node->key.repair_round) return;
    switch (reply->outcome) {
    case OUTCOME_YES:
        /* It holds our key again, but counts from the next round's yes on. */
        lock->log |= CORE_LOG_REPAIRED;
        break;
    case OUTCOME_NOSCRIPT:
        if (reply->tag.round == lock->hold.round) send_repair(lock, step, reply->tag.node, true);
        break;
    case OUTCOME_UNKNOWN: break;
    default: node->gone = true; break; /* as it was */
    }
}

void hold_on_reply(struct core_lock *lock, struct step *step, const struct core_reply *reply)
{
    struct core_node *node = &lock->nodes[reply->tag.node];

    if (lock->phase != CORE_HELD) return;
    if (reply->tag.op == OP_REPAIR) {
        on_repaired(lock, step, reply);
    } else if (reply->outcome == OUTCOME_YES) {
        on_yes(lock, &reply->tag);
    } else if (reply->outcome == OUTCOME_MISSING || reply->outcome == OUTCOME_OTHER) {
        on_absent(lock, reply);
    } else if (reply->outcome == OUTCOME_NOSCRIPT && reply->tag.round == lock->hold.round) {
        send_extend(lock, step, reply->tag.node, reply->tag.lease_us, true);
        return;
    } else if (reply->tag.round == lock->hold.round && node->vote == CORE_VOTE_PENDING) {
        core_vote_failed(node, reply->fault);
    }
    judge(lock, step);
}

/* A node whose clock steps ends our key there early; its next yes counts again, and is asked for at once. */
void hold_on_step(struct core_lock *lock, struct step *step, uint32_t index, uint64_t before_us)
{
    struct core_key *key = &lock->nodes[index].key;

    if (lock->nodes[index].owes) return;
    key->stepped_us = step->now_us;
    if (key->sent_us < before_us) key->valid_until_us = 0;
    if (lock->phase == CORE_GRANTED) {
        lock->hold.validity_us = present_validity_us(lock, step->now_us);
    } else if (lock->phase == CORE_HELD && stood_still(lock, step->now_us)) {
        lose(lock, CORE_LOSS_CLOCK);
    } else if (lock->phase == CORE_HELD) {
        lock->hold.validity_us = present_validity_us(lock, step->now_us);
        if (lock->hold.renew_at_us != CORE_NEVER) lock->hold.renew_at_us = step->now_us;
        hold_check_lost(lock, step->now_us);
    }
}

void hold_late_vote(struct core_lock *lock, struct step *step)
{
    if (lock->phase == CORE_GRANTED || lock->phase == CORE_HELD) judge(lock, step);
}

uint64_t hold_deadline(const struct core_lock *lock)
{
    return lock->phase == CORE_HELD ? core_smaller(hold_lost_at(lock), lock->hold.renew_at_us) : CORE_NEVER;
}
