/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core.c - events in, tells out
 */
#include "core.h"

#include <assert.h>
#include <string.h>

#include "state.h"

#define SRTT_MAX_US  1000000u
#define SRTT_STEP_US 1000u

#ifdef QUORLOCK_CONTROLS
enum core_control core_control = CONTROL_NONE;
#endif

size_t core_size(uint32_t n_nodes)
{
    return sizeof(struct core_lock) + n_nodes * sizeof(struct core_node);
}

void core_init(struct core_lock *lock, const struct core_config *config)
{
    assert(config->n_nodes >= 1 && config->n_nodes <= CORE_NODES_MAX);
    assert(config->quorum >= 1 && config->quorum <= config->n_nodes);
    assert(config->lease_us < CORE_TIME_MAX_US);
    memset(lock, 0, core_size(config->n_nodes));
    lock->config = *config;
    lock->lease_us = config->lease_us;
    lock->retry_at_us = lock->renew_at_us = CORE_NEVER;
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        lock->nodes[i].state = CORE_NODE_DOWN;
        lock->nodes[i].down_fault = CORE_FAULT_PASSING;
        lock->nodes[i].ttl_us = -2;
    }
    if (BROKEN(CONTROL_HALF_QUORUM)) lock->config.quorum = config->n_nodes / 2;
    if (config->n_nodes > 1 && config->arbiters[0] == config->arbiters[1]) {
        for (uint32_t i = 0; i < config->n_nodes; i++) lock->config.arbiters[i] = (uint8_t)i;
    }
}

struct core_command *core_send(struct core_lock *lock, struct step *step, uint32_t node, enum core_op op,
                               uint64_t lease_us, bool use_eval)
{
    struct core_update *update = step->update;
    struct core_command *command;

    assert(update->n_commands < CORE_COMMANDS_MAX);
    command = &update->commands[update->n_commands++];
    command->tag.attempt = lock->attempt;
    command->tag.sent_us = step->now_us;
    command->tag.lease_us = lease_us;
    command->tag.round = lock->round;
    command->tag.op = (uint8_t)op;
    command->tag.node = (uint8_t)node;
    command->token = lock->token;
    command->timeout_us = lock->config.node_timeout_us;
    command->fence = lock->fence;
    command->use_eval = use_eval;
    command->explain = command->silent = false;
    return command;
}

static int refuse_acquire(const struct core_lock *lock)
{
    if (lock->acquiring || lock->notify_acquired || lock->extending || lock->notify_extended) return CORE_BUSY;
    /* A loss that was not told yet is told first. */
    return lock->phase == CORE_HELD || lock->notify_lost ? CORE_STATE : 0;
}

static int start_acquire(struct core_lock *lock, struct step *step, const struct core_event *event)
{
    int status = refuse_acquire(lock);

    if (status != 0) return status;
    assert(lock->phase == CORE_IDLE || lock->phase == CORE_LOST);
    debt_end_attempt(lock, step);
    attempt_begin_acquire(lock, step, event);
    return 0;
}

/* Votes, notices and the order of tries are the same for whoever stood behind. */
static int hand_off(struct core_lock *lock, const struct core_event *event)
{
    assert(event->wait_us != 0);
    if (!lock->acquiring) return CORE_STATE;
    lock->config.wait_us = event->wait_us;
    lock->wait_until_us = validity_add(event->begun_us, event->wait_us);
    return 0;
}

static int start_extend(struct core_lock *lock, struct step *step, uint64_t lease_us)
{
    if (lock->acquiring || lock->notify_acquired || lock->extending || lock->notify_extended) return CORE_BUSY;
    if (lock->phase != CORE_HELD) return CORE_STATE;
    if (step->now_us >= validity_add(lock->granted_us, lock->config.max_hold_us)) return CORE_STATE;
    if (lease_us == 0) lease_us = lock->lease_us;
    /* Never shorten: a renewal on its way counts on the lease it asked for. */
    if (lease_us < lock->lease_us) return CORE_INVAL;
    lock->extending = true;
    lock->extend_lease_us = lease_us;
    hold_begin_round(lock, step);
    return 0;
}

static int start_release(struct core_lock *lock, struct step *step)
{
    if (lock->acquiring || lock->notify_acquired || lock->extending || lock->notify_extended) return CORE_BUSY;
    if (lock->releasing || lock->notify_released) return CORE_BUSY;
    if (lock->phase != CORE_HELD && lock->phase != CORE_LOST) return CORE_STATE;
    lock->release_expired = lock->phase == CORE_LOST;
    lock->phase = CORE_IDLE;
    lock->notified_held = lock->round_waits = false;
    lock->notify_lost = false;
    lock->releasing = true;
    lock->release_absent = 0;
    lock->release_looked_us = 0;
    lock->release_attempt = lock->attempt;
    lock->release_until_us = validity_add(step->now_us, lock->config.node_timeout_us);
    debt_end_attempt(lock, step);
    debt_judge_release(lock, step->now_us);
    return 0;
}

static int cancel(struct core_lock *lock, struct step *step, int reason)
{
    if (lock->acquiring) {
        debt_end_attempt(lock, step);
        lock->phase = CORE_IDLE;
        lock->acquiring = lock->queued = false;
        lock->notify_acquired = true;
        lock->acquired_status = reason;
    } else if (lock->extending) {
        lock->extending = false;
        lock->notify_extended = true;
        lock->extended_status = reason;
    } else if (!lock->notify_acquired && !lock->notify_extended) {
        return CORE_STATE;
    }
    return 0;
}

/*
 * The second validity check. The Qth yes may have waited long for its turn, in the kernel or behind a slow
 * callback; a grant is told only if it still holds now, with at least min_valid_us left.
 */
static bool still_good(const struct core_lock *lock, uint64_t now_us)
{
    if (BROKEN(CONTROL_NO_SECOND_CHECK)) return true;
    return now_us < hold_lost_at(lock) && lock->validity_us - now_us >= lock->config.min_valid_us;
}

static void dispatch(struct core_lock *lock, struct step *step)
{
    struct core_completion *completion = &step->update->completion;

    if (lock->notify_lost) {
        lock->notify_lost = false;
        *completion =
            (struct core_completion){.kind = CORE_NOTIFY_LOST, .status = CORE_LOST_LOCK, .loss = lock->loss};
        return;
    }
    if (lock->phase == CORE_GRANTED && !still_good(lock, step->now_us)) attempt_too_late(lock, step);
    /* The release of an earlier hold ends before a grant is told, so that the grant can be released in turn. */
    if (lock->phase == CORE_GRANTED) debt_end_release(lock);
    if (lock->notify_released) {
        lock->notify_released = false;
        *completion = (struct core_completion){
            .kind = CORE_NOTIFY_RELEASED, .status = lock->released_status, .expired = lock->release_expired};
    } else if (lock->phase == CORE_GRANTED) {
        lock->phase = CORE_HELD;
        lock->acquiring = false;
        lock->notified_held = true;
        *completion = (struct core_completion){.kind = CORE_NOTIFY_ACQUIRED, .status = CORE_OK};
    } else if (lock->notify_acquired) {
        lock->notify_acquired = false;
        *completion = (struct core_completion){.kind = CORE_NOTIFY_ACQUIRED, .status = lock->acquired_status};
    } else if (lock->notify_extended) {
        lock->notify_extended = false;
        *completion = (struct core_completion){.kind = CORE_NOTIFY_EXTENDED, .status = lock->extended_status};
    }
}

static void on_node_state(struct core_lock *lock, struct step *step, const struct core_event *event)
{
    struct core_node *node = &lock->nodes[event->node];

    assert(event->node < lock->config.n_nodes);
    node->state = event->state;
    node->generation = core_can_talk(node) ? event->generation : 0;
    assert(!core_can_talk(node) || node->generation != 0);
    node->down_fault = event->fault == CORE_FAULT_NONE ? CORE_FAULT_PASSING : event->fault;
    if (event->srtt_us != 0) node->srtt_us = event->srtt_us;
    node->overdue = node->unfit = false;
    debt_pay(lock, step, event->node);
    attempt_on_node_state(lock, step, event->node);
    hold_on_node_state(lock, step, event->node);
    debt_judge_release(lock, step->now_us);
}

/* A vote counts only on the attempt and the connection it was asked on. */
static bool is_current(const struct core_lock *lock, const struct core_reply *reply)
{
    const struct core_node *node = &lock->nodes[reply->tag.node];

    if (reply->tag.attempt != lock->attempt) return false;
    return reply->outcome == CORE_UNKNOWN || reply->outcome == CORE_UNSENT ||
           (core_can_talk(node) && reply->generation == node->generation);
}

/*
 * Patience with an arbiter, and the pauses after split votes, are counted in round trips as they are now: many
 * who wait at once make them longer, and would fight for ever with the measure of a quiet time. One answer at
 * most doubles the measure, or whoever once stood still for a second would be patient for seconds.
 */
static void update_rtt(struct core_node *node, uint64_t took_us)
{
    uint64_t srtt_us = node->srtt_us;

    if (BROKEN(CONTROL_STALE_TRIPS)) return;
    if (srtt_us != 0 && took_us > 8 * srtt_us + SRTT_STEP_US) took_us = 8 * srtt_us + SRTT_STEP_US;
    if (took_us > SRTT_MAX_US) took_us = SRTT_MAX_US;
    node->srtt_us = (uint32_t)(srtt_us == 0 ? took_us : (7 * srtt_us + took_us) / 8);
}

static void on_reply(struct core_lock *lock, struct step *step, const struct core_reply *reply)
{
    struct core_node *node = &lock->nodes[reply->tag.node];

    assert(reply->tag.node < lock->config.n_nodes);
    if (reply->outcome == CORE_UNKNOWN) node->overdue = true;
    if (reply->outcome < CORE_UNKNOWN) {
        node->overdue = false;
        if (reply->generation == node->generation) {
            update_rtt(node, validity_sub(step->now_us, reply->tag.sent_us));
        }
    }
    if (reply->tag.op == CORE_OP_RELEASE) {
        debt_on_reply(lock, step, reply);
    } else if (!is_current(lock, reply)) {
        return;
    } else if (reply->tag.op == CORE_OP_EXTEND || reply->tag.op == CORE_OP_REPAIR) {
        hold_on_reply(lock, step, reply);
    } else {
        attempt_on_reply(lock, step, reply);
    }
}

static void on_timer(struct core_lock *lock, struct step *step)
{
    debt_on_timer(lock, step);
    attempt_on_timer(lock, step);
    hold_on_timer(lock, step);
    debt_judge_release(lock, step->now_us);
}

static void on_begin(struct core_lock *lock, struct step *step)
{
    attempt_on_room(lock, step);
    hold_on_room(lock, step);
}

static int take_event(struct core_lock *lock, struct step *step, const struct core_event *event)
{
    switch (event->type) {
    case CORE_EV_ACQUIRE: return start_acquire(lock, step, event);
    case CORE_EV_HAND_OFF: return hand_off(lock, event);
    case CORE_EV_EXTEND: return start_extend(lock, step, event->lease_us);
    case CORE_EV_RELEASE: return start_release(lock, step);
    case CORE_EV_CANCEL: return cancel(lock, step, event->reason);
    case CORE_EV_TIMER: on_timer(lock, step); break;
    case CORE_EV_NODE: on_node_state(lock, step, event); break;
    case CORE_EV_REPLY: on_reply(lock, step, &event->reply); break;
    case CORE_EV_NOTICE: wait_on_notice(lock, step, event); break;
    case CORE_EV_LISTENING: wait_on_listening(lock, step, event); break;
    case CORE_EV_WAKE: wait_on_wake(lock, step, event->behind); break;
    case CORE_EV_BEGIN: on_begin(lock, step); break;
    case CORE_EV_ROOM: debt_on_room(lock, step, event->node); break;
    case CORE_EV_STEP:
        hold_on_step(lock, step, event->node, event->before_us);
        attempt_on_step(lock, step, event->node, event->before_us);
        break;
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
                        .update = update};
    int status;

    update->n_commands = 0;
    update->completion = (struct core_completion){.kind = CORE_NOTIFY_NOTHING};
    lock->log = 0;
    /* Loss comes before whatever else has happened. */
    if (!(BROKEN(CONTROL_LATE_RENEWAL) && event->type == CORE_EV_REPLY)) hold_check_lost(lock, event->now_us);
    status = take_event(lock, &step, event);
    update->log = lock->log;
    update->dispatch = lock->notify_lost || lock->notify_acquired || lock->notify_extended ||
                       lock->notify_released || lock->phase == CORE_GRANTED;
    return status;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t core_deadline(const struct core_lock *lock)
{
    uint64_t deadline_us = CORE_NEVER;

    if (lock->phase == CORE_ASKING || lock->phase == CORE_WAITING) deadline_us = attempt_deadline(lock);
    deadline_us = sooner(deadline_us, hold_deadline(lock));
    deadline_us = sooner(deadline_us, debt_deadline(lock));
    deadline_us = sooner(deadline_us, debt_release_deadline(lock));
    return deadline_us;
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
    if (lock->queued) return CORE_WANTS_ATTEMPT;
    return lock->round_waits ? CORE_WANTS_ROUND : CORE_WANTS_NOTHING;
}

bool core_listens(const struct core_lock *lock)
{
    /* An acquire whose first attempt waits for room has met nobody whose release it could wait for. */
    if (lock->queued && lock->attempts == 0 && !lock->seen_held) return false;
    if (lock->config.wait_us == 0) return false;
    return lock->acquiring && (lock->phase == CORE_WAITING || lock->attempts > 1);
}

enum core_loss core_loss(const struct core_lock *lock)
{
    return lock->loss;
}

int core_wait_verdict(const struct core_lock *lock)
{
    return attempt_wait_status(lock);
}

uint32_t core_seen(const struct core_lock *lock)
{
    return (lock->seen_held ? CORE_SEEN_HELD : 0u) | (lock->seen_noquorum ? CORE_SEEN_NOQUORUM : 0u);
}

bool core_notified_held(const struct core_lock *lock)
{
    return lock->notified_held;
}

uint64_t core_valid_us(const struct core_lock *lock, uint64_t now_us)
{
    if (!lock->notified_held || now_us >= hold_lost_at(lock)) return 0;
    return validity_sub(lock->validity_us, now_us);
}

bool core_loss_pending(const struct core_lock *lock)
{
    return lock->notify_lost;
}

uint64_t core_remaining_us(const struct core_lock *lock, uint64_t now_us)
{
    bool over = lock->loss == CORE_LOSS_GONE || lock->loss == CORE_LOSS_CLOCK;

    if (lock->phase == CORE_LOST && over) return 0;
    return validity_sub(lock->validity_us, now_us);
}

uint64_t core_valid_until(const struct core_lock *lock)
{
    return lock->phase == CORE_GRANTED || lock->phase == CORE_HELD ? lock->validity_us : 0;
}

uint64_t core_lost_at(const struct core_lock *lock)
{
    return lock->phase == CORE_GRANTED || lock->phase == CORE_HELD ? hold_lost_at(lock) : 0;
}

uint64_t core_fence(const struct core_lock *lock)
{
    return lock->phase == CORE_GRANTED || lock->phase == CORE_HELD ? lock->fence : 0;
}

uint64_t core_lease_us(const struct core_lock *lock)
{
    return lock->lease_us;
}

enum core_vote core_vote(const struct core_lock *lock, uint32_t node, enum core_fault *fault)
{
    const struct core_node *at = &lock->nodes[node];
    bool granted = lock->phase == CORE_GRANTED || lock->phase == CORE_HELD || lock->phase == CORE_LOST;
    bool before = at->vote == CORE_VOTE_NONE && !granted;

    if (fault != NULL) *fault = before ? at->last_fault : at->fault;
    return before ? at->last_vote : at->vote;
}

uint32_t core_counted(const struct core_lock *lock)
{
    uint32_t counted = 0;

    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        const struct core_node *node = &lock->nodes[i];

        counted += !node->gone && node->valid_until_us != 0 && node->valid_until_us >= lock->validity_us;
    }
    return counted;
}

uint64_t core_attempt(const struct core_lock *lock)
{
    return lock->attempt;
}

uint32_t core_rounds(const struct core_lock *lock)
{
    return lock->attempts;
}

const struct core_token *core_token_now(const struct core_lock *lock)
{
    return &lock->token;
}

bool core_quiet(const struct core_lock *lock)
{
    return lock->phase == CORE_IDLE && !lock->acquiring && !lock->releasing && !lock->notify_acquired &&
           !lock->notify_extended && !lock->notify_released && !debt_any(lock);
}

uint32_t core_debts(const struct core_lock *lock, uint32_t node)
{
    uint32_t owed = 0;

    for (uint32_t k = 0; k < CORE_DEBTS_MAX; k++) owed += lock->nodes[node].debts[k].owed;
    return owed;
}
