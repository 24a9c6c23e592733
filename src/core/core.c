/* SPDX-License-Identifier: BSD-3-Clause */
/* core.c - events in, commands and completions out */
#include "core.h"

#include <assert.h>
#include <string.h>

#include "attempt.h"
#include "check.h"
#include "debt.h"
#include "fair.h"
#include "hold.h"
#include "intent.h"

#define SRTT_MAX_US  1000000u
#define SRTT_STEP_US 1000u

size_t core_size(uint32_t n_nodes)
{
    return sizeof(struct core_lock) + n_nodes * sizeof(struct core_node);
}

void core_init(struct core_lock *lock, const struct core_config *config, uint32_t first_arbiter)
{
    assert(config->n_nodes >= 1 && config->n_nodes <= CORE_NODES_MAX);
    assert(config->quorum >= 1 && config->quorum <= config->n_nodes);
    assert(config->lease_us > 0 && config->lease_us < CORE_TIME_MAX_US);
    assert(config->holder.keep_us <= config->lease_us);
    assert(config->permits <= CORE_SLOTS_MAX);
    assert(first_arbiter < config->n_nodes);
    memset(lock, 0, core_size(config->n_nodes));
    lock->config = config;
    lock->first_arbiter = (uint8_t)first_arbiter;
    lock->lease_us = config->lease_us;
    lock->hold.renew_at_us = lock->hold.repair_at_us = CORE_NEVER;
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        lock->nodes[i].state = NODE_DOWN;
        lock->nodes[i].down_fault = FAULT_CLASS_TEMPORARY;
    }
}

/* An acquire or an extend is in flight, or its completion is pending. */
static bool is_busy(const struct core_lock *lock)
{
    return core_is_acquiring(lock) || lock->hold.extend_lease_us != 0 || core_is_pending(lock, CORE_NOTIFY_ACQUIRED) ||
           core_is_pending(lock, CORE_NOTIFY_EXTENDED);
}

static int refuse_acquire(const struct core_lock *lock)
{
    if (is_busy(lock)) return CORE_BUSY;
    /* The owner learns of a loss before it acquires again. */
    return lock->phase == CORE_HELD || core_is_pending(lock, CORE_NOTIFY_LOST) ? CORE_STATE : 0;
}

static int start_acquire(struct core_lock *lock, struct step *step, const struct core_acquire *acquire)
{
    int status = refuse_acquire(lock);

    if (status != 0) return status;
    if (acquire->adopts != NULL && core_has_token(lock, acquire->adopts)) return CORE_STATE;
    assert(lock->phase == CORE_IDLE || lock->phase == CORE_LOST);
    /* Rule 6.2: what other locks of the client have met counts for this one, too. */
    for (uint32_t i = 0; i < lock->config->n_nodes; i++) lock->nodes[i].doubt.overdue = (acquire->late >> i & 1u) != 0;
    attempt_release(lock, step);
    attempt_begin_acquire(lock, step, acquire);
    /* The acquire is in flight, or has failed already. */
    assert(core_is_acquiring(lock) != core_is_pending(lock, CORE_NOTIFY_ACQUIRED));
    return 0;
}

/* Rule 6.13: only config->holder changes with the owner. Votes and notices go on counting. */
static int hand_off(struct core_lock *lock, uint64_t begun_us, const struct core_config *config)
{
    assert(config->holder.wait_us != 0);
    if (!core_is_acquiring(lock)) return CORE_STATE;
    assert(core_asks_same(config, lock->config));
    lock->config = config;
    lock->acquire.until_us = validity_add(begun_us, config->holder.wait_us);
    return 0;
}

static int start_extend(struct core_lock *lock, struct step *step, uint64_t lease_us)
{
    if (is_busy(lock)) return CORE_BUSY;
    if (lock->phase != CORE_HELD) return CORE_STATE;
    if (step->now_us >= validity_add(lock->hold.granted_us, lock->config->holder.max_hold_us)) return CORE_STATE;
    if (lease_us == 0) lease_us = lock->lease_us;
    /* Rule 3.3: the yes to a renewal on its way counts for the longer lease. */
    if (lease_us < lock->lease_us) return CORE_INVAL;
    lock->hold.extend_lease_us = lease_us;
    hold_begin_round(lock, step);
    assert((lock->hold.extend_lease_us != 0) != core_is_pending(lock, CORE_NOTIFY_EXTENDED));
    return 0;
}

int core_may_release(const struct core_lock *lock)
{
    if (is_busy(lock)) return CORE_BUSY;
    if (lock->release.attempt != 0 || core_is_pending(lock, CORE_NOTIFY_RELEASED)) return CORE_BUSY;
    return lock->phase == CORE_HELD || lock->phase == CORE_LOST ? 0 : CORE_STATE;
}

/* Rules 10.1 and 10.2: only a lock that its owner held is kept, for nobody did the work of others. */
static uint64_t keep_until_us(const struct core_lock *lock, uint64_t now_us)
{
    uint64_t until_us = validity_add(lock->hold.granted_us, lock->config->holder.keep_us);

    return lock->phase == CORE_HELD && now_us < until_us ? until_us : 0;
}

static int start_release(struct core_lock *lock, struct step *step, bool undo)
{
    int status = core_may_release(lock);

    if (status != 0) return status;
    lock->release = (struct release){.attempt = lock->id.number,
                                     .until_us = validity_add(step->now_us, lock->config->node_timeout_us),
                                     .keep_until_us = undo ? 0 : keep_until_us(lock, step->now_us),
                                     .expired = lock->phase == CORE_LOST};
    lock->phase = CORE_IDLE;
    lock->hold.round_waits = lock->hold.repair_waits = false;
    core_forget(lock, CORE_NOTIFY_LOST); /* rule 3.5: no loss after a release */
    attempt_release(lock, step);
    debt_judge_release(lock, step->now_us);
    assert((lock->release.attempt != 0) != core_is_pending(lock, CORE_NOTIFY_RELEASED));
    assert(!core_is_pending(lock, CORE_NOTIFY_LOST));
    return 0;
}

/* Rule 11.1. */
static int detach(struct core_lock *lock)
{
    if (is_busy(lock)) return CORE_BUSY;
    if (lock->phase != CORE_HELD) return CORE_STATE;
    lock->phase = CORE_IDLE;
    lock->hold.round_waits = lock->hold.repair_waits = false;
    debt_waive(lock);
    return 0;
}

static int cancel(struct core_lock *lock, struct step *step, int status)
{
    assert(status != CORE_OK);
    if (core_is_acquiring(lock)) {
        attempt_give_up(lock, step, status);
    } else if (lock->hold.extend_lease_us != 0) {
        lock->hold.extend_lease_us = 0;
        core_notify(lock, CORE_NOTIFY_EXTENDED, status);
    } else if (!is_busy(lock)) {
        return CORE_STATE;
    }
    return 0;
}

/*
 * Rule 1.5: the second validity check. The Qth yes may have waited long to be read, in the kernel or behind a slow
 * callback. A grant completes only if at least min_valid_us are left now.
 */
static bool still_good(const struct core_lock *lock, uint64_t now_us)
{
    return now_us < hold_lost_at(lock) && lock->hold.validity_us - now_us >= lock->config->holder.min_valid_us;
}

static bool core_take(struct core_lock *lock, enum core_notify kind, struct core_completion *ret)
{
    if (!core_is_pending(lock, kind)) return false;
    core_forget(lock, kind);
    *ret = (struct core_completion){.kind = kind, .status = lock->pending.status[kind]};
    if (kind == CORE_NOTIFY_LOST) ret->loss = lock->hold.loss;
    if (kind == CORE_NOTIFY_RELEASED) ret->expired = lock->release.expired;
    if (kind == CORE_NOTIFY_RELEASED) ret->keep_until_us = lock->release.keep_until_us;
    assert(kind != CORE_NOTIFY_LOST || (lock->phase == CORE_LOST && ret->loss != CORE_LOSS_NONE));
    return true;
}

static void dispatch(struct core_lock *lock, struct step *step)
{
    struct core_completion *completion = &step->update->completion;

    if (core_take(lock, CORE_NOTIFY_LOST, completion)) return;
    if (lock->phase == CORE_GRANTED && !still_good(lock, step->now_us)) attempt_too_late(lock, step);
    /* The release of an earlier hold completes before the grant, so that the owner can release the grant. */
    if (lock->phase == CORE_GRANTED) debt_end_release(lock);
    if (core_take(lock, CORE_NOTIFY_RELEASED, completion)) return;
    if (lock->phase == CORE_GRANTED) {
        hold_begin(lock, step->now_us);
        core_notify(lock, CORE_NOTIFY_ACQUIRED, CORE_OK);
    }
    if (!core_take(lock, CORE_NOTIFY_ACQUIRED, completion)) (void)core_take(lock, CORE_NOTIFY_EXTENDED, completion);
    /* The callback of a grant runs while the grant is valid. */
    assert(lock->phase != CORE_GRANTED);
    assert(completion->kind != CORE_NOTIFY_ACQUIRED || completion->status != CORE_OK ||
           core_valid_us(lock, step->now_us) >= core_larger(lock->config->holder.min_valid_us, 1));
}

static void core_on_node_state(struct core_lock *lock, struct step *step, const struct core_node_change *change)
{
    struct core_node *node = &lock->nodes[change->index];
    uint32_t generation = node->generation;

    assert(change->index < lock->config->n_nodes);
    core_take_connection(node, change);
    assert(!core_can_talk(node) || node->generation != 0);
    assert(!core_can_talk(node) || node->generation >= generation);
    if (node->generation != generation) debt_on_connection_ended(lock, change->index, step->now_us);
    if (change->srtt_us != 0) node->srtt_us = change->srtt_us;
    node->doubt.overdue = node->doubt.unfit = false;
    debt_pay(lock, step, change->index);
    attempt_on_node_state(lock, step, change->index);
    hold_on_node_state(lock, step, change);
    debt_judge_release(lock, step->now_us);
}

/* Rules 1.6 and 1.7: a vote counts only for the attempt, and on the connection, that it was asked on. */
static bool is_current(const struct core_lock *lock, const struct core_reply *reply)
{
    const struct core_node *node = &lock->nodes[reply->tag.node];

    if (reply->tag.attempt != lock->id.number) return false;
    return reply->outcome == OUTCOME_UNKNOWN || reply->outcome == OUTCOME_UNSENT ||
           (core_can_talk(node) && reply->generation == node->generation);
}

/*
 * Rule 6.2. The timeout for the arbiter and the pauses after split votes are counted in round trips. Many clients at
 * once make round trips longer; with the RTT of a quiet time these clients would collide for ever. One answer at most
 * doubles the RTT, so that a process that was suspended for a second does not wait for seconds afterwards.
 */
static void update_rtt(struct core_node *node, uint64_t took_us)
{
    uint64_t srtt_us = node->srtt_us;

    if (srtt_us != 0 && took_us > 8 * srtt_us + SRTT_STEP_US) took_us = 8 * srtt_us + SRTT_STEP_US;
    if (took_us > SRTT_MAX_US) took_us = SRTT_MAX_US;
    node->srtt_us = (uint32_t)(srtt_us == 0 ? took_us : (7 * srtt_us + took_us) / 8);
    /* An average lies between its two parts. */
    assert(srtt_us == 0 || node->srtt_us <= core_larger(srtt_us, took_us));
}

static void core_on_reply(struct core_lock *lock, struct step *step, const struct core_reply *reply)
{
    struct core_node *node = &lock->nodes[reply->tag.node];

    assert(reply->tag.node < lock->config->n_nodes);
    assert(reply->tag.sent_us <= step->now_us);
    if (reply->outcome == OUTCOME_UNKNOWN || reply->overdue) node->doubt.overdue = true;
    if (reply->outcome < OUTCOME_UNKNOWN) {
        node->doubt.overdue = false;
        if (reply->generation == node->generation) {
            update_rtt(node, validity_sub(step->now_us, reply->tag.sent_us));
        }
    }
    if (reply->tag.op == OP_ACQUIRE || reply->tag.op == OP_EXTEND || reply->tag.op == OP_REPAIR)
        debt_on_set_answered(lock, reply);
    if (reply->tag.op == OP_RELEASE) {
        debt_on_reply(lock, step, reply);
    } else if (!is_current(lock, reply)) {
        return;
    } else if (reply->tag.op == OP_INTEND) {
        intent_on_reply(lock, reply);
    } else if (reply->tag.round > 0) {
        hold_on_reply(lock, step, reply);
    } else {
        attempt_on_reply(lock, step, reply);
    }
}

static int take_event(struct core_lock *lock, struct step *step, const struct core_event *event)
{
    switch (event->type) {
    case CORE_EV_ACQUIRE: return start_acquire(lock, step, &event->acquire);
    case CORE_EV_HAND_OFF: return hand_off(lock, event->hand_off.begun_us, event->hand_off.config);
    case CORE_EV_EXTEND: return start_extend(lock, step, event->extend.lease_us);
    case CORE_EV_RELEASE: return start_release(lock, step, event->release.undo);
    case CORE_EV_DETACH: return detach(lock);
    case CORE_EV_CANCEL: return cancel(lock, step, event->cancel.status);
    case CORE_EV_TIMER:
        debt_on_timer(lock, step);
        attempt_on_timer(lock, step);
        hold_on_timer(lock, step);
        debt_judge_release(lock, step->now_us);
        break;
    case CORE_EV_NODE: core_on_node_state(lock, step, &event->node); break;
    case CORE_EV_REPLY: core_on_reply(lock, step, &event->reply); break;
    case CORE_EV_NOTICE: attempt_try(lock, step, wait_on_notice(lock, step, &event->notice)); break;
    case CORE_EV_HINT: wait_on_hint(lock, step->now_us, event->hint.node); break;
    case CORE_EV_LISTENING:
        wait_on_listening(lock, step->now_us, event->listening.node, event->listening.before_acquire);
        break;
    case CORE_EV_WAKE: attempt_try(lock, step, wait_on_wake(lock, step->now_us, event->wake.yield)); break;
    case CORE_EV_BEGIN:
        attempt_on_room(lock, step);
        hold_on_room(lock, step);
        break;
    case CORE_EV_ROOM: debt_on_room(lock, step, event->room.node); break;
    case CORE_EV_STEP:
        hold_on_step(lock, step, event->step.node, event->step.before_us);
        attempt_on_step(lock, step, event->step.node, event->step.before_us);
        break;
    case CORE_EV_LOOK: hold_look(lock, step->now_us, event->look.node, event->look.by_server); break;
    case CORE_EV_LOSE: hold_lose(lock, step->now_us); break;
    case CORE_EV_DISPATCH: dispatch(lock, step); break;
    }
    return 0;
}

int core_step(struct core_lock *lock, const struct core_event *event, struct core_update *update)
{
    struct step step = {.now_us = event->now_us,
                        .random = event->random,
                        .wall_us = event->wall_us,
                        .no_attempt = event->no_attempt,
                        .no_round = event->no_round,
                        .logged_in = event->logged_in,
                        .no_repair = event->no_repair,
                        .slots = event->slots,
                        .debts = event->debts,
                        .update = update};
    int status;

    update->n_commands = 0;
    update->completion = (struct core_completion){.kind = CORE_NOTIFY_NOTHING};
    update->late.until_us = 0;
    lock->log = 0;
    core_check(lock);
    assert((event->slots != NULL) == (lock->config->permits != 0));
    /* Rule 3.4: a loss comes first. Whatever arrives later cannot make the lock held again. */
    hold_check_lost(lock, event->now_us);
    status = take_event(lock, &step, event);
    update->log = lock->log;
    update->dispatch = lock->pending.kinds != 0 || lock->phase == CORE_GRANTED;
    debt_give_back(lock);
    core_check(lock);
    /* A refused call sends nothing. Completions and late debts come with one type of event each. */
    assert(status == 0 || update->n_commands == 0);
    assert(update->completion.kind == CORE_NOTIFY_NOTHING || event->type == CORE_EV_DISPATCH);
    assert(update->late.until_us == 0 || event->type == CORE_EV_REPLY);
    return status;
}

uint64_t core_deadline(const struct core_lock *lock)
{
    uint64_t deadline_us = core_smaller(hold_deadline(lock), debt_deadline(lock));

    if (lock->phase == CORE_ASKING || lock->phase == CORE_WAITING) {
        deadline_us = core_smaller(deadline_us, attempt_deadline(lock));
    }
    /* A loss is noticed in time. */
    assert(lock->phase != CORE_HELD || deadline_us <= hold_lost_at(lock));
    return core_smaller(deadline_us, debt_release_deadline(lock));
}

enum core_phase core_phase_now(const struct core_lock *lock)
{
    return lock->phase;
}

bool core_may_acquire(const struct core_lock *lock)
{
    return refuse_acquire(lock) == 0;
}

enum core_wants core_wants(const struct core_lock *lock)
{
    if (lock->awaits_room != WAIT_STAY) return CORE_WANTS_ATTEMPT;
    if (lock->hold.round_waits) return CORE_WANTS_ROUND;
    return lock->hold.repair_waits ? CORE_WANTS_REPAIR : CORE_WANTS_NOTHING;
}

bool core_listens(const struct core_lock *lock)
{
    /* The first attempt waits for room, and no holder is known whose release could be awaited. */
    if (lock->awaits_room != WAIT_STAY && lock->acquire.attempts == 0 && (lock->acquire.seen & CORE_SEEN_HELD) == 0) {
        return false;
    }
    if (lock->config->holder.wait_us == 0 || lock->wait.searches) return false;
    return core_is_acquiring(lock) && (lock->phase == CORE_WAITING || lock->acquire.attempts > 1);
}

bool core_is_far(const struct core_lock *lock)
{
    return core_listens(lock) && fair_is_far(lock);
}

enum core_loss core_loss(const struct core_lock *lock)
{
    return lock->hold.loss;
}

int core_wait_verdict(const struct core_lock *lock)
{
    return attempt_wait_status(lock);
}

uint64_t core_wait_until_us(const struct core_lock *lock)
{
    return lock->acquire.until_us;
}

uint64_t core_begun_us(const struct core_lock *lock)
{
    return lock->acquire.begun_us;
}

uint32_t core_seen(const struct core_lock *lock)
{
    return lock->acquire.seen;
}

bool core_notified_held(const struct core_lock *lock)
{
    return lock->phase == CORE_HELD;
}

uint64_t core_valid_us(const struct core_lock *lock, uint64_t now_us)
{
    if (lock->phase != CORE_HELD || now_us >= hold_lost_at(lock)) return 0;
    assert(lock->hold.validity_us > now_us);
    return validity_sub(lock->hold.validity_us, now_us);
}

bool core_loss_pending(const struct core_lock *lock)
{
    return core_is_pending(lock, CORE_NOTIFY_LOST);
}

bool core_release_pending(const struct core_lock *lock)
{
    return lock->pending.kinds == 1u << CORE_NOTIFY_RELEASED;
}

uint64_t core_remaining_us(const struct core_lock *lock, uint64_t now_us)
{
    bool over = lock->hold.loss == CORE_LOSS_GONE || lock->hold.loss == CORE_LOSS_CLOCK;

    if (lock->phase == CORE_LOST && over) return 0;
    return validity_sub(lock->hold.validity_us, now_us);
}

static bool is_granted(const struct core_lock *lock)
{
    return lock->phase == CORE_GRANTED || lock->phase == CORE_HELD;
}

uint64_t core_valid_until(const struct core_lock *lock)
{
    return is_granted(lock) ? lock->hold.validity_us : 0;
}

uint64_t core_lost_at(const struct core_lock *lock)
{
    return is_granted(lock) ? hold_lost_at(lock) : 0;
}

uint64_t core_granted_us(const struct core_lock *lock)
{
    return lock->hold.granted_us;
}

bool core_is_whole(const struct core_lock *lock)
{
    return lock->hold.whole;
}

uint64_t core_fence(const struct core_lock *lock)
{
    return is_granted(lock) ? lock->id.fence : 0;
}

uint64_t core_lease_us(const struct core_lock *lock)
{
    return lock->lease_us;
}

uint32_t core_slot(const struct core_lock *lock)
{
    return lock->id.slot;
}

enum core_vote core_vote(const struct core_lock *lock, uint32_t node)
{
    const struct core_node *at = &lock->nodes[node];
    bool before = at->vote == CORE_VOTE_NONE && !is_granted(lock) && lock->phase != CORE_LOST;

    assert(node < lock->config->n_nodes);
    return before ? at->last_vote : at->vote;
}

uint32_t core_counted(const struct core_lock *lock)
{
    return core_count_yeses(lock);
}

uint64_t core_attempt(const struct core_lock *lock)
{
    return lock->id.number;
}

uint32_t core_rounds(const struct core_lock *lock)
{
    return lock->acquire.attempts;
}

const struct core_token *core_waiter(const struct core_lock *lock)
{
    return lock->config->holder.wait_us != 0 || lock->config->fair ? &lock->wait.waiter : NULL;
}

const struct core_token *core_token_now(const struct core_lock *lock)
{
    return &lock->id.token;
}

bool core_has_token(const struct core_lock *lock, const struct core_token *token)
{
    /* Rule 11.4: a lock that waits has a token only if it adopts. Otherwise the token that is left is of an attempt, or
     * of a hold, that ended. */
    bool uses = lock->phase == CORE_WAITING ? lock->acquire.adopts : lock->phase != CORE_IDLE;
    bool has = uses && memcmp(&lock->id.token, token, sizeof(*token)) == 0;

    for (const struct core_node *node = lock->nodes; node < CORE_END(lock) && !has; node++) {
        has = debt_has_token(node, token);
    }
    return has;
}

bool core_quiet(const struct core_lock *lock)
{
    uint32_t owed = 0;

    for (uint32_t i = 0; i < lock->config->n_nodes; i++) owed += core_debts(lock, i);
    return lock->phase == CORE_IDLE && lock->release.attempt == 0 && lock->pending.kinds == 0 && owed == 0;
}

size_t core_debts_size(uint32_t n_nodes)
{
    return (size_t)n_nodes * CORE_DEBTS_LENT * sizeof(struct debt);
}

struct debt *core_debts_block(const struct core_lock *lock)
{
    return lock->nodes[0].more;
}

uint32_t core_debts(const struct core_lock *lock, uint32_t node)
{
    assert(node < lock->config->n_nodes);
    return debt_count(&lock->nodes[node]);
}
