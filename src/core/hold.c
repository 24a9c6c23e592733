/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hold.c - renewal, repair, and loss
 *
 * Chapter 3 of src/protocol.md has the rules. A round asks every node that takes requests to extend our key if the node
 * still has it.
 */
#include "hold.h"

#include <assert.h>

#include "debt.h"

#define FIRST_US           1000000u /* nodes report changes only after a renewal; most holds are over by then */
#define RENEW_SPREAD       16u      /* renewals are due up to 1/16 of renew_us early */
#define REPAIR_SPAN_MAX_US 1000000u /* the repairs of many locks are spread over this time */
#define REPAIR_SPAN_PART   10u      /* or over this part of the lease, if that is shorter */

/* Rule 3.5. */
uint64_t hold_margin_us(const struct core_config *config, uint64_t lease_us)
{
    if (config->holder.lost_margin_us != 0) return config->holder.lost_margin_us;
    return validity_lost_margin_us(lease_us, config->drift_ppm, config->drift_fixed_us);
}

/* Rule 3.5. */
uint64_t hold_lost_at(const struct core_lock *lock)
{
    return validity_sub(lock->hold.validity_us, hold_margin_us(lock->config, lock->lease_us));
}

/* Rule 3.14: the clocks of a quorum stepped in this hold, within one lease. More likely our own clock was stopped, so
 * no validity can be trusted. */
static bool own_clock_stopped(const struct core_lock *lock, uint64_t now_us)
{
    uint32_t stepped = 0;

    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        uint64_t at_us = node->key.stepped_us;

        stepped += at_us != 0 && validity_add(at_us, lock->lease_us) > now_us;
    }
    return stepped >= lock->config->quorum;
}

/* Rules 1.3, 3.2 and 3.14. */
static uint64_t present_validity_us(const struct core_lock *lock, uint64_t now_us)
{
    uint64_t ends_us[CORE_NODES_MAX];

    if (own_clock_stopped(lock, now_us)) return 0;
    for (uint32_t i = 0; i < lock->config->n_nodes; i++) {
        ends_us[i] = lock->nodes[i].key.valid_until_us;
    }
    return validity_of_quorum(ends_us, lock->config->n_nodes, lock->config->quorum);
}

static uint64_t held_until_us(const struct core_lock *lock)
{
    return validity_add(lock->hold.granted_us, lock->config->holder.max_hold_us);
}

/* Round down to the grid, so that renewals due at nearly the same time go out together. The jitter spreads the renewals
 * of locks that were acquired together. */
static uint64_t on_grid(struct core_lock *lock, uint64_t begun_us, uint64_t after_us)
{
    uint64_t grid_us = lock->config->holder.renew_grid_us;
    uint64_t due_us = validity_add(begun_us, after_us);

    if (grid_us == 0) return due_us;
    assert(due_us > after_us / RENEW_SPREAD);
    due_us -= backoff_uniform(&lock->jitter, after_us / RENEW_SPREAD);
    return due_us - due_us % grid_us;
}

/* When the next renewal is due after a round that began at begun_us (rule 3.12). CORE_NEVER: renewal is off or has
 * ended. */
static uint64_t renewal_after(struct core_lock *lock, uint64_t begun_us)
{
    bool ends = validity_add(begun_us, lock->config->holder.renew_us) >= held_until_us(lock);

    return ends ? CORE_NEVER : on_grid(lock, begun_us, lock->config->holder.renew_us);
}

/* Rule 1.4. */
void hold_grant(struct core_lock *lock, uint64_t now_us)
{
    assert(lock->phase == CORE_ASKING);
    assert(lock->attempt.stage == ATTEMPT_ASKS_ALL);
    assert(lock->attempt.begun_us <= now_us);
    lock->phase = CORE_GRANTED;
    lock->hold = (struct hold){.granted_us = now_us,
                               .validity_us = present_validity_us(lock, now_us),
                               .repair_at_us = CORE_NEVER,
                               .whole = true};
    lock->hold.renew_at_us = renewal_after(lock, lock->attempt.begun_us);
    /* Rule 3.11. */
    if (lock->hold.renew_at_us != CORE_NEVER && lock->config->told && FIRST_US < lock->config->holder.renew_us)
        lock->hold.renew_at_us = on_grid(lock, lock->attempt.begun_us, FIRST_US);
    for (struct core_node *node = lock->nodes; node < CORE_END(lock); node++) node->told = node->extended = false;
}

/* ---- soon ---- */

uint64_t hold_repair_span_us(uint64_t lease_us)
{
    return core_smaller(REPAIR_SPAN_MAX_US, lease_us / REPAIR_SPAN_PART);
}

/* Rule 3.11. */
bool hold_is_untold(const struct core_config *config, bool renewed, const struct core_node_change *node,
                    uint64_t asked_us)
{
    return config->told && renewed && asked_us < node->connected_us;
}

/* Rule 3.10. */
static void repair_soon(struct core_lock *lock, uint64_t now_us)
{
    uint64_t pause_us;

    assert(lock->phase == CORE_HELD);
    /* Rule 3.12: the round would lengthen the lease. */
    if (lock->config->holder.renew_us == CORE_NEVER) return;
    if (lock->hold.repair_waits || lock->hold.repair_at_us != CORE_NEVER) return;
    pause_us = backoff_uniform(&lock->jitter, hold_repair_span_us(lock->lease_us));
    lock->hold.repair_at_us = validity_add(now_us, pause_us);
}

/* When the nodes were asked last. */
static uint64_t hold_asked_us(const struct core_lock *lock)
{
    uint64_t latest_us = lock->hold.round_begun_us;

    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        latest_us = core_larger(latest_us, node->key.sent_us);
    }
    return latest_us;
}

/* How many nodes reported a change since the latest round began. */
static uint32_t count_told(const struct core_lock *lock)
{
    uint32_t told = 0;

    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) told += node->told;
    return told;
}

/* Rule 3.11. */
static void look_in_time(struct core_lock *lock, uint64_t now_us)
{
    uint32_t told = count_told(lock);

    if (told <= lock->hold.looked || lock->hold.renew_at_us == CORE_NEVER) return;
    if (told > lock->config->n_nodes - lock->config->quorum)
        lock->hold.renew_at_us = core_smaller(lock->hold.renew_at_us, now_us);
    repair_soon(lock, now_us);
    lock->hold.looks = lock->hold.repair_at_us != CORE_NEVER;
}

void hold_look(struct core_lock *lock, uint64_t now_us, uint32_t index, bool by_server)
{
    /* Rule 3.11: a change reported before the first renewal may be our own SET. */
    if (lock->phase != CORE_HELD || (by_server && !lock->nodes[index].extended)) return;
    lock->nodes[index].told = true;
    look_in_time(lock, now_us);
}

void hold_begin(struct core_lock *lock, uint64_t now_us)
{
    assert(lock->phase == CORE_GRANTED);
    assert(now_us < hold_lost_at(lock));
    lock->phase = CORE_HELD;
    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        if (node->state == NODE_QUARANTINED) repair_soon(lock, now_us); /* rule 3.10 */
    }
}

/* ---- its end ---- */

static void end_extend(struct core_lock *lock, int status)
{
    if (lock->hold.extend_lease_us == 0) return;
    lock->hold.extend_lease_us = 0;
    core_notify(lock, CORE_NOTIFY_EXTENDED, status);
}

static void hold_mark_lost(struct core_lock *lock, enum core_loss loss)
{
    assert(lock->phase == CORE_HELD);
    assert(loss != CORE_LOSS_NONE);
    lock->phase = CORE_LOST;
    lock->hold.round_waits = lock->hold.repair_waits = false;
    lock->hold.loss = loss;
    core_notify(lock, CORE_NOTIFY_LOST, CORE_LOST_LOCK);
    end_extend(lock, CORE_LOST_LOCK);
    /* Rule 3.5: an extend succeeded, but the owner has not got its completion yet. */
    if (lock->pending.status[CORE_NOTIFY_EXTENDED] == CORE_OK) {
        lock->pending.status[CORE_NOTIFY_EXTENDED] = CORE_LOST_LOCK;
    }
    assert(lock->hold.extend_lease_us == 0);
}

/* Rule 3.12. */
enum core_loss hold_loss_reason(const struct core_config *config, uint64_t granted_us, uint64_t now_us)
{
    if (config->holder.renew_us == CORE_NEVER) return CORE_LOSS_NOT_RENEWED;
    return now_us >= validity_add(granted_us, config->holder.max_hold_us) ? CORE_LOSS_MAX_HOLD : CORE_LOSS_EXPIRED;
}

/* Rules 3.4 and 3.5. */
void hold_check_lost(struct core_lock *lock, uint64_t now_us)
{
    if (lock->phase != CORE_HELD || now_us < hold_lost_at(lock)) return;
    hold_mark_lost(lock, hold_loss_reason(lock->config, lock->hold.granted_us, now_us));
    assert(lock->phase == CORE_LOST);
}

void hold_lose(struct core_lock *lock, uint64_t now_us)
{
    if (lock->phase != CORE_HELD) return;
    lock->hold.validity_us =
        core_smaller(lock->hold.validity_us, validity_add(now_us, hold_margin_us(lock->config, lock->lease_us)));
    hold_check_lost(lock, now_us);
    assert(lock->phase == CORE_LOST);
}

static void send_repair(struct core_lock *lock, struct step *step, uint32_t index)
{
    struct core_node *node = &lock->nodes[index];

    /* Rule 3.8: once a round, and only after a renewal. */
    assert(node->key.repair_round < lock->hold.round && lock->config->quorum < lock->config->n_nodes);
    assert(lock->phase == CORE_HELD && lock->hold.round_state != ROUND_OPEN);
    node->key.repair_round = lock->hold.round;
    node->key.until_us = validity_debt_until(step->now_us, lock->lease_us);
    /* Rule 3.9. Until the answer it is unknown whether the node has the key. */
    node->gone = node->extended = false;
    node->open = true;
    core_send(lock, step, index, OP_REPAIR, lock->lease_us);
}

/* Rule 3.8. */
static void repair_missing(struct core_lock *lock, struct step *step)
{
    for (uint32_t i = 0; i < lock->config->n_nodes; i++) {
        struct core_node *node = &lock->nodes[i];

        if (node->vote != CORE_VOTE_MISSING || node->key.repair_round == lock->hold.round) continue;
        if (node->key.until_us == 0 && !debt_has_room(lock, step, node)) continue;
        send_repair(lock, step, i);
    }
}

static void round_renewed(struct core_lock *lock, uint64_t now_us)
{
    assert(lock->hold.round_state == ROUND_OPEN);
    /* Rule 3.3: a yes on its way counts for the longer lease. */
    assert(lock->hold.extend_lease_us == 0 || lock->hold.extend_lease_us >= lock->lease_us);
    lock->hold.round_state = ROUND_DECIDED;
    lock->hold.renew_failures = 0;
    if (lock->hold.extend_lease_us != 0) lock->lease_us = lock->hold.extend_lease_us;
    lock->hold.renew_at_us = renewal_after(lock, lock->hold.round_begun_us);
    look_in_time(lock, now_us);
    lock->log |= CORE_LOG_RENEWED;
    end_extend(lock, CORE_OK);
}

/* Rules 3.7 and 3.12. */
static void round_failed(struct core_lock *lock, uint64_t now_us)
{
    bool lasts = now_us < held_until_us(lock);
    uint64_t pause_us = backoff_renew_us(&lock->jitter, lock->config->node_timeout_us, ++lock->hold.renew_failures);

    assert(lock->hold.round_state == ROUND_OPEN);
    assert(lock->hold.renew_at_us == CORE_NEVER);
    if (lasts && lock->config->holder.renew_us != CORE_NEVER) lock->hold.renew_at_us = validity_add(now_us, pause_us);
    lock->log |= CORE_LOG_RENEW_FAILED;
    end_extend(lock, CORE_NOQUORUM);
}

static void round_settled(struct core_lock *lock, bool whole)
{
    assert(lock->hold.round_state != ROUND_SETTLED);
    lock->hold.round_state = ROUND_SETTLED;
    if (whole != lock->hold.whole) lock->log |= whole ? CORE_LOG_WHOLE : CORE_LOG_DEGRADED;
    lock->hold.whole = whole;
}

static void hold_judge(struct core_lock *lock, struct step *step)
{
    uint32_t n = lock->config->n_nodes;
    uint32_t quorum = lock->config->quorum;
    uint32_t yes = 0;
    uint32_t pending = 0;
    uint32_t gone = 0;
    uint64_t validity_us = present_validity_us(lock, step->now_us);

    assert(lock->phase == CORE_GRANTED || lock->phase == CORE_HELD);
    for (uint32_t i = 0; i < n; i++) {
        yes += lock->nodes[i].key.yes_round == lock->hold.round;
        pending += lock->nodes[i].vote == CORE_VOTE_PENDING;
        gone += lock->nodes[i].gone;
    }
    /* Rule 3.2: a node that lost the key counts until the round is settled, because meanwhile the yes of another node,
     * which was repaired before, may replace it. */
    if (validity_us > lock->hold.validity_us || pending == 0) lock->hold.validity_us = validity_us;
    if (lock->phase != CORE_HELD) return;
    if (gone > n - quorum) { /* rule 3.6 */
        hold_mark_lost(lock, CORE_LOSS_GONE);
        return;
    }
    if (lock->hold.round_state == ROUND_OPEN && yes >= quorum) round_renewed(lock, step->now_us); /* rule 3.2 */
    if (yes >= quorum) repair_missing(lock, step);
    if (lock->hold.round_state == ROUND_OPEN && pending == 0) round_failed(lock, step->now_us);
    if (lock->hold.round_state != ROUND_SETTLED && pending == 0) round_settled(lock, yes == n);
    hold_check_lost(lock, step->now_us);
    assert(lock->phase == CORE_LOST || step->now_us < hold_lost_at(lock));
}

static void send_extend(struct core_lock *lock, struct step *step, uint32_t index, uint64_t lease_us)
{
    struct core_node *node = &lock->nodes[index];
    uint64_t until_us = validity_debt_until(step->now_us, lease_us);

    /* Rule 2.4: the renewed key lives longer, and so does the debt for it. */
    if (node->key.until_us != 0) node->key.until_us = core_larger(node->key.until_us, until_us);
    /* Rule 10.3: executed late, it would prolong a key that was released and is kept. */
    if (lock->config->holder.keep_us != 0) node->open = true;
    core_send(lock, step, index, OP_EXTEND, lease_us);
}

static uint64_t round_lease_us(const struct core_lock *lock)
{
    return lock->hold.extend_lease_us != 0 ? lock->hold.extend_lease_us : lock->lease_us;
}

void hold_begin_round(struct core_lock *lock, struct step *step)
{
    assert(lock->phase == CORE_HELD);
    lock->hold.renew_at_us = lock->hold.repair_at_us = CORE_NEVER;
    lock->hold.repair_waits = lock->hold.looks = false;
    lock->hold.round_waits = step->no_round; /* rule 14.1 */
    if (lock->hold.round_waits) return;
    lock->hold.confirms = lock->hold.repaired;
    lock->hold.repaired = false;
    lock->hold.round++;
    lock->hold.round_state = ROUND_OPEN;
    lock->hold.round_begun_us = step->now_us;
    lock->hold.looked = (uint8_t)count_told(lock);
    for (uint32_t i = 0; i < lock->config->n_nodes; i++) {
        struct core_node *node = &lock->nodes[i];

        node->told = false;
        if (!core_can_talk(node)) {
            core_vote_failed(node, node->down_fault);
            continue;
        }
        node->vote = CORE_VOTE_PENDING;
        send_extend(lock, step, i, round_lease_us(lock));
    }
    hold_judge(lock, step);
}

/* Begin a round for a repair, or wait until the nodes have room or the renewal is due. */
static void begin_repair(struct core_lock *lock, struct step *step)
{
    lock->hold.repair_at_us = CORE_NEVER;
    /* Without a renewal ahead, a round is under way or waits, or renewal has ended. */
    if (lock->hold.renew_at_us == CORE_NEVER) return;
    lock->hold.repair_waits = step->no_repair;
    if (!step->no_repair) hold_begin_round(lock, step);
}

void hold_on_timer(struct core_lock *lock, struct step *step)
{
    if (lock->phase != CORE_HELD) return;
    if (step->now_us >= lock->hold.renew_at_us) {
        hold_begin_round(lock, step);
    } else if (step->now_us >= lock->hold.repair_at_us) {
        begin_repair(lock, step);
    }
}

void hold_on_room(struct core_lock *lock, struct step *step)
{
    bool waits = lock->hold.round_waits || lock->hold.repair_waits;

    if (waits) hold_begin_round(lock, step);
}

void hold_on_node_state(struct core_lock *lock, struct step *step, const struct core_node_change *change)
{
    struct core_node *node = &lock->nodes[change->index];

    if (lock->phase != CORE_HELD) return;
    if (!core_can_talk(node) && node->vote == CORE_VOTE_PENDING) {
        core_vote_failed(node, node->down_fault);
        hold_judge(lock, step);
    }
    /* Rule 3.8: when it takes requests again it may be in another life, so its answer permits no repair. */
    if (!core_can_talk(node) && node->vote == CORE_VOTE_MISSING) core_vote_failed(node, node->down_fault);
    /* Rule 3.7: while renewal fails, a node that comes back may complete the quorum. */
    if (core_can_talk(node) && lock->hold.renew_failures > 0 && lock->hold.round_state != ROUND_OPEN &&
        lock->hold.renew_at_us != CORE_NEVER) {
        lock->hold.renew_at_us = step->now_us;
    }
    /* Rule 3.10: the node has another life than when it was asked. */
    if (core_can_talk(node) && node->vote != CORE_VOTE_PENDING && hold_asked_us(lock) < change->life_us) {
        lock->hold.repaired = false;
        repair_soon(lock, step->now_us);
    }
    if (core_can_talk(node) && hold_is_untold(lock->config, lock->hold.round > 0, change, hold_asked_us(lock)))
        repair_soon(lock, step->now_us);
}

static void hold_on_yes(struct core_lock *lock, const struct core_tag *tag)
{
    struct core_node *node = &lock->nodes[tag->node];
    uint64_t until_us = core_vote_until(lock, tag);

    if (until_us > node->key.valid_until_us) {
        node->key.valid_until_us = until_us;
        node->key.sent_us = tag->sent_us;
    }
    node->gone = false;
    node->extended = true;
    if (tag->round > node->key.yes_round) node->key.yes_round = tag->round;
    if (tag->round == lock->hold.round) node->vote = CORE_VOTE_YES;
}

static void on_absent(struct core_lock *lock, const struct core_reply *reply)
{
    struct core_node *node = &lock->nodes[reply->tag.node];

    /* Rule 3.9: a repair followed the request, so the answer is outdated. */
    if (reply->tag.round <= node->key.repair_round) return;
    node->gone = true;
    node->key.valid_until_us = 0;
    if (reply->tag.round == lock->hold.round) {
        node->vote = reply->outcome == OUTCOME_MISSING ? CORE_VOTE_MISSING : CORE_VOTE_OTHER;
    }
}

static void on_repaired(struct core_lock *lock, uint64_t now_us, const struct core_reply *reply)
{
    struct core_node *node = &lock->nodes[reply->tag.node];

    /* Without a yes the repair is tried again after the next round. At once, a node that refuses, or whose queue is
     * full, would be asked without end. */
    if (reply->tag.round != node->key.repair_round) return;
    switch (reply->outcome) {
    case OUTCOME_UNKNOWN: break;
    case OUTCOME_YES:
        /* Rule 3.9: the node has our key again, and counts from its yes in the next round on. */
        lock->log |= CORE_LOG_REPAIRED;
        lock->hold.repaired = true;
        if (lock->hold.confirms) break; /* rule 3.10: one round confirms */
        if (reply->tag.round == lock->hold.round) node->vote = CORE_VOTE_REPAIRED;
        repair_soon(lock, now_us);
        break;
    default: node->gone = true; break; /* as before the repair */
    }
}

/* Rule 3.16: a node that has lost its scripts, for instance, gets them with the next request. */
static bool ask_once_more(struct core_lock *lock, struct step *step, const struct core_reply *reply)
{
    struct core_node *node = &lock->nodes[reply->tag.node];

    if (reply->outcome != OUTCOME_ERROR || reply->fault != FAULT_CLASS_TEMPORARY) return false;
    if (node->key.again_round == lock->hold.round) return false;
    assert(core_can_talk(node));
    node->key.again_round = lock->hold.round;
    send_extend(lock, step, reply->tag.node, round_lease_us(lock));
    return true;
}

void hold_on_reply(struct core_lock *lock, struct step *step, const struct core_reply *reply)
{
    struct core_node *node = &lock->nodes[reply->tag.node];

    if (lock->phase != CORE_HELD) return;
    /* Nobody answers a round that has not begun. */
    assert(reply->tag.round > 0 && reply->tag.round <= lock->hold.round);
    if (reply->tag.op == OP_REPAIR) {
        on_repaired(lock, step->now_us, reply);
    } else if (reply->outcome == OUTCOME_YES) { /* rule 3.1 */
        hold_on_yes(lock, &reply->tag);
    } else if (reply->outcome == OUTCOME_MISSING || reply->outcome == OUTCOME_OTHER) {
        on_absent(lock, reply);
    } else if (reply->tag.round == lock->hold.round && node->vote == CORE_VOTE_PENDING) {
        if (ask_once_more(lock, step, reply)) return;
        core_vote_failed(node, reply->fault);
    }
    hold_judge(lock, step);
}

/* Rule 3.13: the step ends our key early at that node. Its next yes counts again, so a round begins at once. */
void hold_on_step(struct core_lock *lock, struct step *step, uint32_t index, uint64_t before_us)
{
    struct core_key *key = &lock->nodes[index].key;

    assert(index < lock->config->n_nodes);
    key->stepped_us = step->now_us;
    if (key->sent_us < before_us) key->valid_until_us = 0;
    if (lock->phase == CORE_GRANTED) {
        lock->hold.validity_us = present_validity_us(lock, step->now_us);
    } else if (lock->phase == CORE_HELD && own_clock_stopped(lock, step->now_us)) {
        hold_mark_lost(lock, CORE_LOSS_CLOCK);
    } else if (lock->phase == CORE_HELD) {
        lock->hold.validity_us = present_validity_us(lock, step->now_us);
        if (lock->hold.renew_at_us != CORE_NEVER) lock->hold.renew_at_us = step->now_us;
        hold_check_lost(lock, step->now_us);
    }
}

void hold_late_vote(struct core_lock *lock, struct step *step)
{
    if (lock->phase == CORE_GRANTED || lock->phase == CORE_HELD) hold_judge(lock, step);
}

/* Rules 3.1, 3.5 and 3.10. */
uint64_t hold_deadline(const struct core_lock *lock)
{
    if (lock->phase != CORE_HELD) return CORE_NEVER;
    return core_smaller(hold_lost_at(lock), core_smaller(lock->hold.renew_at_us, lock->hold.repair_at_us));
}
