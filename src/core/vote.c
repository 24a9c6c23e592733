/* SPDX-License-Identifier: BSD-3-Clause */
#include "vote.h"

#include <assert.h>
#include <string.h>

#include "arbiter.h"
#include "crowd.h"
#include "debt.h"
#include "fair.h"
#include "intent.h"
#include "news.h"
#include "slots.h"
#include "wait.h"

bool vote_may_still_connect(const struct core_node *node)
{
    return node->vote == CORE_VOTE_NONE && node->state == NODE_CONNECTING;
}

/* Rules 4.3 and 11.2. */
bool vote_may_ask(const struct core_lock *lock, const struct core_node *node)
{
    return lock->acquire.adopts ? core_can_talk(node) : node->state == NODE_READY;
}

struct vote_tally vote_count(const struct core_lock *lock)
{
    struct vote_tally tally = {0};

    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        bool peeking = node->asked.follow_up == FOLLOW_UP_PEEK;

        tally.peeking += peeking;
        if (node->vote == CORE_VOTE_YES) {
            tally.yes++;
        } else if (node->vote == CORE_VOTE_PENDING || vote_may_still_connect(node)) {
            tally.pending++;
        } else if (node->vote == CORE_VOTE_OTHER) {
            tally.other++;
            tally.peeked += !peeking;
        } else if (node->vote == CORE_VOTE_FAILED) {
            tally.failed[node->fault]++;
        }
    }
    assert(tally.yes + tally.other + tally.pending <= lock->config->n_nodes);
    return tally;
}

static void send_acquire(struct core_lock *lock, struct step *step, uint32_t index)
{
    struct core_node *node = &lock->nodes[index];
    struct core_command *command;

    /* Rule 2.1: a failed attempt was released, so a key that it set now would stay. */
    assert(lock->phase == CORE_ASKING || lock->phase == CORE_GRANTED || lock->phase == CORE_HELD);
    assert(lock->attempt.stage != ATTEMPT_FAILED);
    node->vote = CORE_VOTE_PENDING;
    node->open = true;
    node->asked.at_us = step->now_us;
    node->key.until_us = validity_debt_until(step->now_us, lock->lease_us);
    command = core_send(lock, step, index, OP_ACQUIRE, lock->lease_us);
    command->fence = lock->attempt.floor;
    if (lock->config->shared != 0) command->waited_us = intent_waited_us(lock, step->now_us);
    if (lock->config->fair && lock->attempt.stage == ATTEMPT_ASKS_ARBITER) fair_queue(lock, step, command);
    /* The first attempt is mostly granted, later attempts are mostly refused. */
    command->explain = lock->acquire.attempts > 1 || lock->attempt.stage == ATTEMPT_ASKS_ARBITER;
    command->watch = node->asked.watched = command->explain && wait_watches(lock);
    command->patient = crowd_spread_us(lock) != 0;
    if (step->slots == NULL) return;
    command->any = lock->attempt.stage == ATTEMPT_ASKS_ARBITER;
    command->passed = slots_shut(step->slots, lock, step->now_us);
}

/* Rule 11.2. Executed late, it would prolong keys that were released and are kept (rule 10.3). */
static void send_adoption(struct core_lock *lock, struct step *step, uint32_t index)
{
    struct core_node *node = &lock->nodes[index];

    assert(lock->phase == CORE_ASKING || lock->phase == CORE_GRANTED || lock->phase == CORE_HELD);
    assert(lock->hold.round == 0);
    node->vote = CORE_VOTE_PENDING;
    node->open = lock->config->holder.keep_us != 0;
    node->asked.at_us = step->now_us;
    node->key.until_us = validity_debt_until(step->now_us, lock->lease_us);
    core_send(lock, step, index, OP_EXTEND, lock->lease_us);
}

static void forget_holder(struct core_node *node)
{
    node->asked.holder.before_id = node->asked.holder.id;
    node->asked.holder.id = 0;
    node->asked.holder.ttl_us = -2;
    node->asked.holder.readers = false;
}

void vote_ask(struct core_lock *lock, struct step *step, uint32_t index)
{
    struct core_node *node = &lock->nodes[index];

    /* A node is asked once an attempt, and only while its yes counts (rule 4.3). */
    assert(node->vote == CORE_VOTE_NONE);
    assert(vote_may_ask(lock, node));
    /* Rule 2.3. */
    if (!debt_has_room(lock, step, node) || debt_waits(node)) {
        core_vote_failed(node, FAULT_CLASS_TEMPORARY);
        return;
    }
    forget_holder(node);
    if (lock->acquire.adopts) {
        send_adoption(lock, step, index);
    } else {
        send_acquire(lock, step, index);
    }
}

void vote_peek(struct core_lock *lock, struct step *step, uint32_t index)
{
    struct core_node *node = &lock->nodes[index];

    assert(lock->attempt.stage == ATTEMPT_FAILED);
    /* The refusal may have named the holder already. */
    if (!core_can_talk(node) || node->asked.holder.id != 0) return;
    node->asked.follow_up = FOLLOW_UP_PEEK;
    node->asked.watched = wait_watches(lock);
    core_send(lock, step, index, OP_PEEK, 0)->watch = node->asked.watched;
}

void vote_ask_holder(struct core_lock *lock, struct step *step, uint32_t index)
{
    assert(lock->nodes[index].vote == CORE_VOTE_NONE);
    lock->nodes[index].vote = CORE_VOTE_PENDING;
    forget_holder(&lock->nodes[index]);
    vote_peek(lock, step, index);
}

/* Rule 1.6. */
void vote_clear(struct core_lock *lock)
{
    for (struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        assert(node->key.until_us == 0);
        if (node->vote != CORE_VOTE_NONE) node->last_vote = node->vote;
        node->vote = CORE_VOTE_NONE;
        node->fault = FAULT_CLASS_NONE;
        node->asked.follow_up = FOLLOW_UP_NONE;
        node->asked.asked_twice = false;
        node->asked.fence = 0;
        node->open = node->late = false;
        node->asked.cut = false;
        memset(&node->key, 0, sizeof(node->key));
        node->gone = false;
    }
}

/* Rule 1.7. */
void vote_connection_ended(struct core_node *node)
{
    assert(!core_can_talk(node));
    if (node->vote == CORE_VOTE_PENDING) {
        core_vote_failed(node, node->down_fault);
        node->asked.cut = true;
    }
    if (node->asked.follow_up == FOLLOW_UP_RAISE) {
        /* Rule 5.3: the token is not acknowledged, so the yes counts for nothing. */
        core_vote_failed(node, node->down_fault);
        node->key.valid_until_us = 0;
    }
    node->asked.follow_up = FOLLOW_UP_NONE;
}

/* Rule 4.3: no node in quarantine is asked for a vote, so it said yes before. It may have lost our key since, and
 * another holder may have repaired its own there. */
void vote_quarantined(const struct core_lock *lock, struct core_node *node)
{
    if (node->state != NODE_QUARANTINED || node->vote != CORE_VOTE_YES || lock->acquire.adopts) return;
    core_vote_failed(node, node->down_fault);
    node->key.valid_until_us = 0;
    node->asked.follow_up = FOLLOW_UP_NONE;
}

/* Rule 7.3: the arbiter chooses the slot, and the other nodes are asked for that slot. A broken server may name any
 * slot. */
static bool is_of_slot(struct core_lock *lock, const struct core_reply *reply)
{
    if (reply->slot >= lock->config->permits) return false;
    if (lock->attempt.stage == ATTEMPT_ASKS_ARBITER) lock->id.slot = reply->slot;
    return reply->slot == lock->id.slot;
}

static void vote_on_yes(struct core_lock *lock, const struct step *step, const struct core_reply *reply)
{
    struct core_node *node = &lock->nodes[reply->tag.node];

    assert(node->vote == CORE_VOTE_PENDING);
    if (step->slots != NULL && !is_of_slot(lock, reply)) {
        core_vote_failed(node, FAULT_CLASS_PROTO);
        return;
    }
    node->vote = CORE_VOTE_YES;
    node->asked.fence = reply->fence;
    node->key.sent_us = reply->tag.sent_us;
    node->key.valid_until_us = core_vote_until(lock, &reply->tag);
    /* Rule 2.4: the debt for a key lasts longer than the yes. */
    assert(node->key.until_us == 0 || node->key.valid_until_us <= node->key.until_us);
}

/* Rule 2.8: ask the node once more if the key in its way may be one of ours, from an attempt that was given up. The
 * release of that key is sent before the request, on the same connection. */
static bool ask_again(struct core_lock *lock, struct step *step, const struct core_reply *reply)
{
    struct core_node *node = &lock->nodes[reply->tag.node];
    bool paid = debt_hurry(lock, step, reply->tag.node) || reply->given_up;

    if (!paid || lock->phase != CORE_ASKING || node->asked.asked_twice) return false;
    if (lock->attempt.stage == ATTEMPT_FAILED) return false;
    node->asked.asked_twice = true;
    send_acquire(lock, step, reply->tag.node);
    return true;
}

static void on_vote(struct core_lock *lock, struct step *step, const struct core_reply *reply)
{
    struct core_node *node = &lock->nodes[reply->tag.node];
    bool failed;

    if (node->vote != CORE_VOTE_PENDING) return;
    if (lock->acquire.adopts && reply->outcome == OUTCOME_MISSING) {
        node->vote = CORE_VOTE_MISSING;
        node->gone = true;
        return;
    }
    failed = lock->attempt.stage == ATTEMPT_FAILED;
    switch (reply->outcome) {
    case OUTCOME_YES: vote_on_yes(lock, step, reply); break;
    case OUTCOME_OTHER:
        if (!lock->acquire.adopts && ask_again(lock, step, reply)) return;
        node->vote = CORE_VOTE_OTHER;
        node->gone = true;
        node->asked.holder.id = reply->holder_id;
        node->asked.holder.ttl_us = reply->ttl_us;
        node->asked.holder.readers = reply->readers;
        node->asked.tells = reply->watched;
        news_on_refusal(lock, reply->tag.node);
        if (reply->listeners > 0) lock->waiters = reply->listeners;
        node->asked.refusing = reply->refusing;
        fair_on_refusal(lock, reply);
        if (step->slots != NULL) slots_on_refusal(step->slots, reply, step->now_us);
        if (failed) vote_peek(lock, step, reply->tag.node);
        break;
    case OUTCOME_UNSENT:
        if (!lock->acquire.adopts) node->key.until_us = 0;
        core_vote_failed(node, FAULT_CLASS_TEMPORARY);
        return;
    default:
        core_vote_failed(node, reply->fault);
        node->asked.cut = reply->outcome == OUTCOME_UNKNOWN || reply->fault == FAULT_CLASS_TEMPORARY;
        break;
    }
    arbiter_on_vote(node);
}

/* A vote that arrives while a renewal asks the node already. The answer to the renewal follows on the same connection
 * and settles the round. The vote only proves that the node had the key. */
static void on_overtaken_vote(struct core_lock *lock, const struct core_reply *reply)
{
    struct core_node *node = &lock->nodes[reply->tag.node];
    uint64_t until_us = core_vote_until(lock, &reply->tag);

    if (reply->outcome == OUTCOME_YES) {
        node->key.valid_until_us = core_larger(until_us, node->key.valid_until_us);
    }
}

static void on_peek(struct core_lock *lock, const struct core_reply *reply)
{
    struct core_node *node = &lock->nodes[reply->tag.node];

    if (node->asked.follow_up != FOLLOW_UP_PEEK) return;
    node->asked.follow_up = FOLLOW_UP_NONE;
    /* Rule 1.11: the node would have granted; or it will, once it has executed the release that was just sent. */
    if ((node->vote == CORE_VOTE_PENDING &&
         (reply->outcome == OUTCOME_MISSING || (reply->readers && lock->config->reads))) ||
        reply->given_up) {
        node->vote = CORE_VOTE_YES;
    } else if (reply->outcome == OUTCOME_YES || reply->outcome == OUTCOME_OTHER) {
        node->asked.holder.id = reply->holder_id;
        node->asked.holder.ttl_us = reply->ttl_us;
        node->asked.holder.readers = reply->readers;
        node->asked.refusing = 0;
        node->vote = CORE_VOTE_OTHER;
    } else if (reply->outcome == OUTCOME_ERROR && reply->fault == FAULT_CLASS_FOREIGN) {
        core_vote_failed(node, FAULT_CLASS_FOREIGN);
        arbiter_on_vote(node);
    } else if (node->vote == CORE_VOTE_PENDING) {
        core_vote_failed(node, reply->fault);
    }
    assert(node->vote != CORE_VOTE_PENDING);
}

static void on_raised(struct core_lock *lock, const struct core_reply *reply)
{
    struct core_node *node = &lock->nodes[reply->tag.node];

    if (node->asked.follow_up != FOLLOW_UP_RAISE) return;
    assert(node->vote == CORE_VOTE_YES);
    node->asked.follow_up = FOLLOW_UP_NONE;
    if (reply->outcome == OUTCOME_YES) {
        node->asked.fence = reply->fence;
    } else {
        /* Rule 5.3: the node may not have our key any more. Without its acknowledgement the yes does not count. */
        node->key.valid_until_us = 0;
        node->gone = reply->outcome == OUTCOME_MISSING || reply->outcome == OUTCOME_OTHER;
        core_vote_failed(node, reply->fault);
    }
}

void vote_on_reply(struct core_lock *lock, struct step *step, const struct core_reply *reply)
{
    bool asking = lock->phase == CORE_ASKING;

    if (reply->tag.op == OP_PEEK) {
        if (asking) on_peek(lock, reply);
    } else if (reply->tag.op == OP_RAISE) {
        if (asking) on_raised(lock, reply);
    } else if (lock->phase == CORE_HELD && lock->hold.round > 0) {
        on_overtaken_vote(lock, reply);
    } else if (asking || lock->phase == CORE_GRANTED || lock->phase == CORE_HELD) {
        on_vote(lock, step, reply);
    }
}
