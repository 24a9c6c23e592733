/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hold.c - renewal, repair, and loss
 *
 * A round asks every READY node to extend our key where it still is ours.
 *
 * - A yes moves that node's end of validity; the lock's validity is the Qth largest of them. A node that says
 *   our key is not there counts for nothing from the settled round on.
 * - A round with Q yeses is a renewal, and repairs: nodes where the key is missing get it again, and count
 *   from the next round's yes on. Without Q yeses nothing is repaired, for somebody else may rightly be
 *   collecting votes there.
 * - A round without Q yeses is tried again, at once and then with pauses, until lost_at.
 * - When so many nodes say that our key is not there that Q is out of reach, the lock is lost at once.
 */
#include "state.h"

#include <assert.h>

static uint64_t margin_us(const struct core_lock *lock)
{
    const struct core_config *config = &lock->config;

    if (config->lost_margin_us != 0) return config->lost_margin_us;
    return validity_lost_margin_us(lock->lease_us, config->drift_ppm, config->drift_fixed_us);
}

uint64_t hold_lost_at(const struct core_lock *lock)
{
    return validity_sub(lock->validity_us, lock->margin_us);
}

/* The clocks of a quorum stepped in this attempt, and within one lease: it is rather our own that stood still,
 * and nothing we know can be trusted. */
static bool stood_still(const struct core_lock *lock, uint64_t now_us)
{
    uint32_t stepped = 0;

    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        uint64_t at_us = lock->nodes[i].stepped_us;

        stepped += at_us != 0 && validity_add(at_us, lock->lease_us) > now_us;
    }
    return stepped >= lock->config.quorum;
}

static uint64_t present_validity_us(const struct core_lock *lock, uint64_t now_us)
{
    uint64_t ends_us[CORE_NODES_MAX];

    if (stood_still(lock, now_us)) return 0;
    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        ends_us[i] = lock->nodes[i].gone ? 0 : lock->nodes[i].valid_until_us;
    }
    return validity_of_quorum(ends_us, lock->config.n_nodes, lock->config.quorum);
}

static uint64_t hold_until_us(const struct core_lock *lock)
{
    return validity_add(lock->granted_us, lock->config.max_hold_us);
}

/* When the next renewal is due after a round begun then; never where renewal is off or has ended. */
static uint64_t renewal_after(const struct core_lock *lock, uint64_t begun_us)
{
    uint64_t due_us = validity_add(begun_us, lock->config.renew_us);

    return due_us < hold_until_us(lock) ? due_us : CORE_NEVER;
}

void hold_grant(struct core_lock *lock, struct step *step)
{
    lock->phase = CORE_GRANTED;
    lock->granted_us = step->now_us;
    lock->validity_us = present_validity_us(lock, step->now_us);
    lock->margin_us = margin_us(lock);
    lock->renew_at_us = renewal_after(lock, lock->attempt_begun_us);
    lock->round_open = lock->round_waits = false;
    lock->round_settled = false;
    lock->whole = true;
    lock->renew_failures = 0;
    lock->loss = CORE_LOSS_NONE;
}

static void lose(struct core_lock *lock, enum core_loss loss)
{
    assert(lock->phase == CORE_HELD && lock->notified_held);
    lock->phase = CORE_LOST;
    lock->notified_held = lock->round_waits = false;
    lock->loss = loss;
    lock->notify_lost = true;
    if (lock->extending) {
        lock->extending = false;
        lock->notify_extended = true;
        lock->extended_status = CORE_LOST_LOCK;
    } else if (lock->notify_extended && lock->extended_status == CORE_OK) {
        /* The extend succeeded, but the loss came before that was told. */
        lock->extended_status = CORE_LOST_LOCK;
    }
}

void hold_check_lost(struct core_lock *lock, uint64_t now_us)
{
    if (BROKEN(CONTROL_RESURRECT)) return;
    if (lock->phase != CORE_HELD || now_us < hold_lost_at(lock)) return;
    if (lock->config.renew_us == CORE_NEVER) {
        lose(lock, CORE_LOSS_NOT_RENEWED);
    } else if (now_us >= hold_until_us(lock)) {
        lose(lock, CORE_LOSS_MAX_HOLD);
    } else {
        lose(lock, CORE_LOSS_EXPIRED);
    }
}

static void send_repair(struct core_lock *lock, struct step *step, uint32_t index, bool use_eval)
{
    struct core_node *node = &lock->nodes[index];

    node->repair_round = lock->round;
    node->touched = true;
    node->touched_until_us = validity_debt_until(step->now_us, lock->lease_us);
    /* From now on nobody knows that the key is not there. */
    node->gone = false;
    node->valid_until_us = 0;
    core_send(lock, step, index, CORE_OP_REPAIR, lock->lease_us, use_eval);
}

static void repair(struct core_lock *lock, struct step *step, uint32_t index)
{
    struct core_node *node = &lock->nodes[index];

    if (!core_can_talk(node) || node->repair_round == lock->round) return;
    if (!node->touched && !debt_room(node, step->now_us)) return;
    send_repair(lock, step, index, false);
}

static void repair_missing(struct core_lock *lock, struct step *step)
{
    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        if (lock->nodes[i].vote == CORE_VOTE_MISSING) repair(lock, step, i);
    }
}

static void extended(struct core_lock *lock, int status)
{
    if (!lock->extending) return;
    lock->extending = false;
    lock->notify_extended = true;
    lock->extended_status = status;
}

static void round_renewed(struct core_lock *lock)
{
    lock->round_open = false;
    lock->renew_failures = 0;
    if (lock->extending) lock->lease_us = lock->extend_lease_us;
    lock->margin_us = margin_us(lock);
    lock->renew_at_us = renewal_after(lock, lock->round_begun_us);
    lock->log |= CORE_LOG_RENEWED;
    extended(lock, CORE_OK);
}

static void round_failed(struct core_lock *lock, uint64_t now_us)
{
    uint64_t pause_us = backoff_renew_us(&lock->jitter, lock->config.node_timeout_us, ++lock->renew_failures);

    lock->round_open = false;
    lock->renew_at_us = CORE_NEVER;
    if (lock->config.renew_us != CORE_NEVER && now_us < hold_until_us(lock)) {
        lock->renew_at_us = validity_add(now_us, pause_us);
    }
    lock->log |= CORE_LOG_RENEW_FAILED;
    extended(lock, CORE_NOQUORUM);
}

static void round_settled(struct core_lock *lock, uint32_t yes)
{
    bool whole = yes == lock->config.n_nodes;

    lock->round_settled = true;
    if (whole != lock->whole) lock->log |= whole ? CORE_LOG_WHOLE : CORE_LOG_DEGRADED;
    lock->whole = whole;
}

static void judge(struct core_lock *lock, struct step *step)
{
    uint32_t n = lock->config.n_nodes;
    uint32_t quorum = lock->config.quorum;
    uint32_t yes = 0;
    uint32_t pending = 0;
    uint32_t gone = 0;
    uint64_t validity_us = present_validity_us(lock, step->now_us);

    for (uint32_t i = 0; i < n; i++) {
        yes += lock->round > 0 && lock->nodes[i].yes_round == lock->round;
        pending += lock->nodes[i].vote == CORE_VOTE_PENDING;
        gone += lock->nodes[i].gone;
    }
    /* A gone node's share ends with the settled round: until then a node that was repaired before, and whose
     * yes is on its way, may stand in for it. */
    if (validity_us > lock->validity_us || pending == 0) lock->validity_us = validity_us;
    if (lock->phase != CORE_HELD) return;
    if (gone > n - quorum && !BROKEN(CONTROL_RESURRECT)) {
        lose(lock, CORE_LOSS_GONE);
        return;
    }
    if (lock->round_open && yes >= quorum) round_renewed(lock);
    if (lock->round > 0 && (yes >= quorum || BROKEN(CONTROL_RESURRECT))) repair_missing(lock, step);
    if (lock->round_open && pending == 0) round_failed(lock, step->now_us);
    if (lock->round > 0 && !lock->round_settled && pending == 0) round_settled(lock, yes);
    hold_check_lost(lock, step->now_us);
}

static void send_extend(struct core_lock *lock, struct step *step, uint32_t index, uint64_t lease_us,
                        bool use_eval)
{
    struct core_node *node = &lock->nodes[index];
    uint64_t until_us = validity_debt_until(step->now_us, lease_us);

    /* Asked anew, the key lives longer: so does the debt that it may become. */
    if (node->touched && until_us > node->touched_until_us) node->touched_until_us = until_us;
    core_send(lock, step, index, CORE_OP_EXTEND, lease_us, use_eval);
}

void hold_begin_round(struct core_lock *lock, struct step *step)
{
    uint64_t lease_us = lock->extending ? lock->extend_lease_us : lock->lease_us;

    lock->renew_at_us = CORE_NEVER;
    lock->round_waits = step->no_round;
    if (lock->round_waits) return;
    lock->round++;
    lock->round_open = true;
    lock->round_settled = false;
    lock->round_begun_us = step->now_us;
    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        struct core_node *node = &lock->nodes[i];

        if (!core_can_talk(node)) {
            node->vote = CORE_VOTE_FAILED;
            node->fault = node->down_fault;
            continue;
        }
        node->vote = CORE_VOTE_PENDING;
        send_extend(lock, step, i, lease_us, false);
    }
    judge(lock, step);
}

void hold_on_timer(struct core_lock *lock, struct step *step)
{
    if (lock->phase == CORE_HELD && step->now_us >= lock->renew_at_us) hold_begin_round(lock, step);
}

void hold_on_room(struct core_lock *lock, struct step *step)
{
    if (lock->phase == CORE_HELD && lock->round_waits) hold_begin_round(lock, step);
}

void hold_on_node_state(struct core_lock *lock, struct step *step, uint32_t index)
{
    struct core_node *node = &lock->nodes[index];

    if (lock->phase != CORE_HELD) return;
    if (!core_can_talk(node) && node->vote == CORE_VOTE_PENDING) {
        node->vote = CORE_VOTE_FAILED;
        node->fault = node->down_fault;
        judge(lock, step);
    }
    /* While renewal fails, a node that comes back is the help that was waited for. */
    if (core_can_talk(node) && lock->renew_failures > 0 && !lock->round_open &&
        lock->renew_at_us != CORE_NEVER) {
        lock->renew_at_us = step->now_us;
    }
}

static void on_yes(struct core_lock *lock, const struct core_tag *tag)
{
    struct core_node *node = &lock->nodes[tag->node];
    uint64_t until_us =
        validity_of_vote(tag->sent_us, tag->lease_us, lock->config.drift_ppm, lock->config.drift_fixed_us);

    if (until_us > node->valid_until_us || node->gone) {
        node->valid_until_us = until_us;
        node->vote_sent_us = tag->sent_us;
    }
    node->gone = false;
    if (tag->round > node->yes_round) node->yes_round = tag->round;
    if (tag->round == lock->round) node->vote = CORE_VOTE_YES;
}

static void on_absent(struct core_lock *lock, const struct core_reply *reply)
{
    struct core_node *node = &lock->nodes[reply->tag.node];

    /* An answer from before a repair that is under way, or done, says nothing new. */
    if (reply->tag.round <= node->repair_round) return;
    node->gone = true;
    node->valid_until_us = 0;
    node->holder_id = reply->holder_id;
    node->ttl_us = reply->ttl_us;
    if (reply->tag.round == lock->round) {
        node->vote = reply->outcome == CORE_MISSING ? CORE_VOTE_MISSING : CORE_VOTE_OTHER;
    }
}

static void on_repaired(struct core_lock *lock, struct step *step, const struct core_reply *reply)
{
    struct core_node *node = &lock->nodes[reply->tag.node];

    /* Without a yes it is tried again after the next round, not at once: a node that refuses, or a request that
     * cannot be queued, would be asked without end. */
    if (reply->tag.round != node->repair_round) return;
    switch (reply->outcome) {
    case CORE_YES:
        /* It holds our key again, but counts from the next round's yes on. */
        lock->log |= CORE_LOG_REPAIRED;
        if (BROKEN(CONTROL_RESURRECT)) on_yes(lock, &reply->tag);
        break;
    case CORE_NOSCRIPT:
        if (reply->tag.round == lock->round) send_repair(lock, step, reply->tag.node, true);
        break;
    case CORE_UNKNOWN: break;
    default: node->gone = true; break; /* as it was */
    }
}

void hold_on_reply(struct core_lock *lock, struct step *step, const struct core_reply *reply)
{
    struct core_node *node = &lock->nodes[reply->tag.node];

    if (lock->phase != CORE_HELD) return;
    if (reply->tag.op == CORE_OP_REPAIR) {
        on_repaired(lock, step, reply);
    } else if (reply->outcome == CORE_YES) {
        on_yes(lock, &reply->tag);
    } else if (reply->outcome == CORE_MISSING || reply->outcome == CORE_OTHER) {
        on_absent(lock, reply);
    } else if (reply->outcome == CORE_NOSCRIPT && reply->tag.round == lock->round) {
        send_extend(lock, step, reply->tag.node, reply->tag.lease_us, true);
        return;
    } else if (reply->tag.round == lock->round && node->vote == CORE_VOTE_PENDING) {
        node->vote = CORE_VOTE_FAILED;
        node->fault = reply->fault;
    }
    judge(lock, step);
}

/* One node whose clock steps ends our key there early; its next yes counts again, and is asked for at once. */
void hold_on_step(struct core_lock *lock, struct step *step, uint32_t index, uint64_t before_us)
{
    lock->nodes[index].stepped_us = step->now_us;
    if (lock->nodes[index].vote_sent_us < before_us) lock->nodes[index].valid_until_us = 0;
    if (lock->phase == CORE_GRANTED) {
        lock->validity_us = present_validity_us(lock, step->now_us);
    } else if (lock->phase == CORE_HELD && stood_still(lock, step->now_us)) {
        lose(lock, CORE_LOSS_CLOCK);
    } else if (lock->phase == CORE_HELD) {
        lock->validity_us = present_validity_us(lock, step->now_us);
        if (lock->renew_at_us != CORE_NEVER) lock->renew_at_us = step->now_us;
        hold_check_lost(lock, step->now_us);
    }
}

void hold_late_vote(struct core_lock *lock, struct step *step)
{
    if (lock->phase == CORE_GRANTED || lock->phase == CORE_HELD) judge(lock, step);
}

uint64_t hold_deadline(const struct core_lock *lock)
{
    uint64_t lost_at_us = hold_lost_at(lock);

    if (lock->phase != CORE_HELD) return CORE_NEVER;
    return lost_at_us < lock->renew_at_us ? lost_at_us : lock->renew_at_us;
}
