/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attempt.c - one try on all nodes, and its verdict
 *
 * 1. A fresh token; every READY node is asked at once. One that is still connecting is asked when it becomes
 *    READY, within one node timeout of the attempt's begin. When it is not the acquire's first attempt the
 *    arbiter is asked alone: its no ends the attempt, with its yes, or without an answer, the others are asked.
 * 2. The Qth yes grants (hold.c). When Q yeses are out of reach the attempt is doomed: it is released
 *    everywhere at once, so that others need not wait while we find out why it failed. So it is when Q nodes
 *    have voted, somebody is in the way, and only nodes that do not answer could still make up for it: whoever
 *    held on to the votes he has until the node timeout, one frozen node would make stop everybody.
 * 3. A doomed attempt asks the nodes that refused who holds the lock, and ends when the verdict is certain:
 *    Q nodes voted (somebody holds it, or votes were split), or no further node can vote (no quorum).
 * 4. Then the acquire fails, or waits (wait.c) and tries again with the next token.
 */
#include "state.h"

#include <assert.h>
#include <string.h>

struct tally {
    uint32_t yes, other, pending, peeking, peeked;
    uint32_t auth, foreign, proto, config;
};

static bool may_still_connect(const struct core_node *node)
{
    return node->vote == CORE_VOTE_NONE && node->state == CORE_NODE_CONNECTING;
}

static uint64_t connect_until_us(const struct core_lock *lock)
{
    return validity_add(lock->attempt_begun_us, lock->config.node_timeout_us);
}

static struct tally count_votes(const struct core_lock *lock)
{
    struct tally tally = {0};

    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        const struct core_node *node = &lock->nodes[i];

        tally.yes += node->vote == CORE_VOTE_YES;
        tally.other += node->vote == CORE_VOTE_OTHER;
        tally.pending += node->vote == CORE_VOTE_PENDING || may_still_connect(node);
        tally.peeking += node->peeking;
        tally.peeked += node->vote == CORE_VOTE_OTHER && !node->peeking;
        if (node->vote != CORE_VOTE_FAILED) continue;
        tally.auth += node->fault == CORE_FAULT_AUTH;
        tally.foreign += node->fault == CORE_FAULT_FOREIGN;
        tally.proto += node->fault == CORE_FAULT_PROTO;
        tally.config += node->fault == CORE_FAULT_CONFIG;
    }
    return tally;
}

bool attempt_lacks_quorum(const struct core_lock *lock)
{
    struct tally tally = count_votes(lock);

    return lock->doomed && tally.yes + tally.other + tally.pending < lock->config.quorum;
}

static void vote_failed(struct core_node *node, enum core_fault fault)
{
    node->vote = CORE_VOTE_FAILED;
    node->fault = fault;
}

static void send_acquire(struct core_lock *lock, struct step *step, uint32_t index, bool use_eval)
{
    struct core_node *node = &lock->nodes[index];
    struct core_command *command;

    node->vote = CORE_VOTE_PENDING;
    node->asked_us = step->now_us;
    node->touched = true;
    node->touched_until_us = validity_debt_until(step->now_us, lock->lease_us);
    command = core_send(lock, step, index, CORE_OP_ACQUIRE, lock->lease_us, use_eval);
    command->fence = lock->floor;
    /* A first try of all nodes is mostly granted; others mostly meet somebody. */
    command->explain = lock->attempts > 1 || lock->arbiter_only;
}

static void ask(struct core_lock *lock, struct step *step, uint32_t index)
{
    struct core_node *node = &lock->nodes[index];

    if (!debt_room(node, step->now_us) || debt_waits(node)) {
        vote_failed(node, CORE_FAULT_PASSING);
        return;
    }
    node->met_holder_id = node->holder_id;
    node->holder_id = 0;
    node->ttl_us = -2;
    send_acquire(lock, step, index, false);
}

static void ask_rest(struct core_lock *lock, struct step *step)
{
    lock->arbiter_only = false;
    lock->given_back_id = 0;
    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        uint32_t index = lock->config.arbiters[i];
        struct core_node *node = &lock->nodes[index];

        if (node->vote != CORE_VOTE_NONE) continue;
        if (node->state == CORE_NODE_READY) {
            ask(lock, step, index);
        } else if (node->state != CORE_NODE_CONNECTING) {
            vote_failed(node, node->down_fault);
        }
    }
}

/* What the nodes said in the attempt before is nothing in this one. */
static void clear_votes(struct core_lock *lock)
{
    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        struct core_node *node = &lock->nodes[i];

        assert(!node->touched);
        if (node->vote != CORE_VOTE_NONE) {
            node->last_vote = node->vote;
            node->last_fault = node->fault;
        }
        node->vote = CORE_VOTE_NONE;
        node->fault = CORE_FAULT_NONE;
        node->yes_round = node->repair_round = 0;
        node->peeking = node->gone = node->raising = false;
        node->fence = 0;
        node->valid_until_us = node->stepped_us = 0;
    }
}

static void begin(struct core_lock *lock, struct step *step, bool all)
{
    uint32_t arbiter = all ? lock->config.n_nodes : wait_arbiter(lock);

    assert(step->random != NULL);
    if (!(BROKEN(CONTROL_SAME_TOKEN) && lock->attempts > 0)) {
        memcpy(lock->token.bytes, step->random, CORE_TOKEN_SIZE);
    }
    backoff_seed(&lock->jitter, step->random + CORE_TOKEN_SIZE);
    lock->phase = CORE_ASKING;
    lock->queued = false;
    lock->attempt++;
    lock->attempts++;
    lock->attempt_begun_us = step->now_us;
    lock->doomed = lock->noticed = lock->doubting = lock->doubted = false;
    lock->woken_id = lock->released_id;
    lock->heard = false;
    lock->round = 0;
    /* Kleppmann's objection to counters is that they get lost: the wall clock is the floor under them. */
    lock->floor = lock->config.fencing ? core_larger(step->wall_us, lock->fence + 1) : 0;
    clear_votes(lock);
    if (arbiter < lock->config.n_nodes) {
        lock->arbiter_only = true;
        lock->arbiter = arbiter;
        lock->rest_at_us = wait_timeout(lock, arbiter, step->now_us);
        ask(lock, step, arbiter);
    } else {
        ask_rest(lock, step);
    }
}

static void peek(struct core_lock *lock, struct step *step, uint32_t index)
{
    struct core_node *node = &lock->nodes[index];

    /* It may have named the holder already. */
    if (!core_can_talk(node) || node->holder_id != 0) return;
    node->peeking = true;
    core_send(lock, step, index, CORE_OP_PEEK, 0, false);
}

void attempt_doom(struct core_lock *lock, struct step *step)
{
    lock->doomed = true;
    debt_end_attempt(lock, step);
    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        if (lock->nodes[i].vote == CORE_VOTE_OTHER) peek(lock, step, i);
    }
}

static void fail(struct core_lock *lock, int status)
{
    lock->phase = CORE_IDLE;
    lock->acquiring = lock->queued = false;
    lock->notify_acquired = true;
    lock->acquired_status = status;
}

int attempt_wait_status(const struct core_lock *lock)
{
    bool held = lock->seen_held;
    bool noquorum = lock->seen_noquorum;

    /* Later attempts have told by now, or were granted too late: then it is neither. */
    if (lock->phase == CORE_ASKING && lock->attempts == 1 && !held && !noquorum) {
        struct tally tally = count_votes(lock);

        /* Where Q nodes granted, and only their token is not agreed yet, it is neither. */
        noquorum = tally.yes + tally.other < lock->config.quorum;
        held = !noquorum && tally.other > 0;
    }
    if (held && !noquorum) return CORE_HELD_BY_OTHER;
    if (noquorum && !held) return CORE_NOQUORUM;
    return CORE_TIMEDOUT;
}

/*
 * Several that try at the same moment split the votes: nobody has the lock, and one of them will. Whoever tries
 * once takes part in that, for half a node timeout, or all of them would leave and nobody had it. Who is
 * refused by the arbiter then leaves: the one that has the arbiter is the one that will.
 */
static uint64_t settle_until_us(const struct core_lock *lock)
{
    return validity_add(lock->wait_until_us, lock->config.node_timeout_us / 2);
}

static bool may_settle(const struct core_lock *lock, uint64_t now_us, int status)
{
    if (status != CORE_HELD_BY_OTHER || lock->arbiter_only || BROKEN(CONTROL_NO_BACKOFF)) return false;
    return !wait_meets_holder(lock) && now_us < settle_until_us(lock);
}

static void wait_or_fail(struct core_lock *lock, struct step *step, int status, bool held)
{
    lock->log |= CORE_LOG_ATTEMPT_FAILED;
    if (lock->config.wait_us == 0 && !may_settle(lock, step->now_us, status)) {
        fail(lock, status);
        return;
    }
    wait_begin(lock, step->now_us, held);
    if (lock->config.wait_us == 0 && settle_until_us(lock) < lock->retry_at_us) {
        lock->retry_at_us = settle_until_us(lock);
    }
}

static void conclude(struct core_lock *lock, struct step *step, const struct tally *tally)
{
    uint32_t spare = lock->config.n_nodes - lock->config.quorum;
    bool held = tally->yes + tally->other >= lock->config.quorum;

    /* What no waiting mends is told at once. */
    if (tally->foreign > spare) {
        fail(lock, CORE_FOREIGN_KEY);
    } else if (tally->auth > spare) {
        fail(lock, CORE_NO_AUTH);
    } else if (tally->proto > spare) {
        fail(lock, CORE_NO_PROTO);
    } else if (tally->config > spare) {
        fail(lock, CORE_INVAL);
    } else {
        lock->seen_held |= held;
        lock->seen_noquorum |= !held;
        wait_or_fail(lock, step, held ? CORE_HELD_BY_OTHER : CORE_NOQUORUM, held);
        doubt_learn(lock);
    }
}

/* Until when a vote that is to come is waited for, where somebody is in the way. */
static uint64_t late_at(const struct core_lock *lock, uint32_t index)
{
    const struct core_node *node = &lock->nodes[index];

    if (may_still_connect(node)) return wait_timeout(lock, index, lock->attempt_begun_us);
    return node->overdue ? 0 : wait_timeout(lock, index, node->asked_us);
}

/* From when on a quorum is out of reach without votes that are late; never where nobody is in the way. */
static uint64_t hopeless_at(const struct core_lock *lock, const struct tally *tally)
{
    uint32_t quorum = lock->config.quorum;
    uint64_t late_us[CORE_NODES_MAX];
    uint32_t pending = 0;

    /* Who tries once cannot try again when the late vote was a yes. */
    if (lock->config.wait_us == 0 || BROKEN(CONTROL_WAITS_FOR_LATE)) return CORE_NEVER;
    if (tally->other == 0 || tally->yes >= quorum || tally->yes + tally->other < quorum) return CORE_NEVER;
    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        const struct core_node *node = &lock->nodes[i];

        if (node->vote == CORE_VOTE_PENDING || may_still_connect(node)) late_us[pending++] = late_at(lock, i);
    }
    return validity_of_quorum(late_us, pending, quorum - tally->yes);
}

static void agree(struct core_lock *lock, struct step *step, uint32_t pending)
{
    if (lock->config.fencing) {
        fence_judge(lock, step, pending);
    } else {
        hold_grant(lock, step);
    }
}

/* The arbiter's no is the answer for this attempt. Contention or outage is told by the states of the nodes. */
static void refused_by_arbiter(struct core_lock *lock, struct step *step)
{
    uint32_t ready = 0;

    for (uint32_t i = 0; i < lock->config.n_nodes; i++) ready += lock->nodes[i].state == CORE_NODE_READY;
    if (ready >= lock->config.quorum) {
        lock->seen_held = true;
    } else {
        lock->seen_noquorum = true;
    }
    wait_or_fail(lock, step, CORE_HELD_BY_OTHER, true);
}

/*
 * True: the others are asked now too
 *
 * After its no nothing of ours is anywhere, for it was asked alone, and said on this very connection that
 * somebody else's key is there.
 */
static bool judge_arbiter(struct core_lock *lock, struct step *step)
{
    struct core_node *node = &lock->nodes[lock->arbiter];

    if (node->vote == CORE_VOTE_OTHER) {
        node->touched = false;
        if (!doubt_arbiter(lock)) {
            refused_by_arbiter(lock, step);
            return false;
        }
    }
    if (node->vote == CORE_VOTE_PENDING) {
        if (step->now_us < lock->rest_at_us) return false;
        node->overdue = true;
    }
    ask_rest(lock, step);
    return true;
}

static void judge(struct core_lock *lock, struct step *step)
{
    uint32_t quorum = lock->config.quorum;
    struct tally tally;
    bool voted;
    bool explained;

    if (lock->phase != CORE_ASKING) return;
    if (lock->arbiter_only && !judge_arbiter(lock, step)) return;
    tally = count_votes(lock);
    if (!lock->doomed) {
        if (tally.yes >= quorum) {
            agree(lock, step, tally.pending);
        } else if (tally.yes + tally.pending < quorum || step->now_us >= hopeless_at(lock, &tally)) {
            attempt_doom(lock, step);
        }
        if (!lock->doomed) return;
        tally = count_votes(lock);
    }
    lock->doubted |= step->now_us >= doubt_until(lock);
    voted = (tally.yes + tally.other >= quorum && lock->doubted) || tally.pending == 0;
    explained = tally.peeking == 0 || tally.peeked >= quorum;
    if (voted && explained) conclude(lock, step, &tally);
}

static void wait_bound(struct core_lock *lock, struct step *step)
{
    int status = attempt_wait_status(lock);

    lock->seen_held |= status == CORE_HELD_BY_OTHER;
    lock->seen_noquorum |= status == CORE_NOQUORUM;
    debt_end_attempt(lock, step);
    fail(lock, status);
}

/* Its turn comes in the order in which the attempts of all locks were wanted. */
static void wait_for_room(struct core_lock *lock, bool all)
{
    lock->queued_all = all || (lock->queued && lock->queued_all);
    lock->queued = true;
    lock->phase = CORE_WAITING;
    lock->retry_at_us = CORE_NEVER;
}

void attempt_again(struct core_lock *lock, struct step *step, bool all)
{
    if (step->no_attempt || step->random == NULL || lock->queued) {
        wait_for_room(lock, all);
        return;
    }
    begin(lock, step, all);
    judge(lock, step);
}

void attempt_on_room(struct core_lock *lock, struct step *step)
{
    if (!lock->queued || step->random == NULL) return;
    lock->queued = false;
    attempt_again(lock, step, lock->queued_all);
}

void attempt_begin_acquire(struct core_lock *lock, struct step *step, const struct core_event *event)
{
    uint64_t begun_us = event->begun_us != 0 ? event->begun_us : step->now_us;

    lock->acquiring = true;
    lock->queued = false;
    lock->attempts = lock->polls = lock->splits = 0;
    lock->seen_held = (event->seen & CORE_SEEN_HELD) != 0;
    lock->seen_noquorum = (event->seen & CORE_SEEN_NOQUORUM) != 0;
    lock->lease_us = lock->config.lease_us;
    lock->wait_until_us = validity_add(begun_us, lock->config.wait_us);
    lock->released_id = lock->polled_id = 0;
    if (step->random != NULL) backoff_seed(&lock->jitter, step->random + CORE_TOKEN_SIZE);
    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        struct core_node *node = &lock->nodes[i];

        node->holder_id = 0;
        node->vote = node->last_vote = CORE_VOTE_NONE;
        node->noticed = node->listening = false;
        node->own_notices = 0;
    }
    if (event->behind && lock->config.wait_us != 0) {
        wait_behind(lock, step->now_us);
    } else {
        attempt_again(lock, step, true);
    }
}

static void give_up_connecting(struct core_lock *lock, uint64_t now_us)
{
    if (now_us < connect_until_us(lock)) return;
    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        if (may_still_connect(&lock->nodes[i])) vote_failed(&lock->nodes[i], CORE_FAULT_PASSING);
    }
}

void attempt_on_timer(struct core_lock *lock, struct step *step)
{
    if (lock->phase != CORE_ASKING && lock->phase != CORE_WAITING) return;
    if (lock->config.wait_us != 0 && step->now_us >= lock->wait_until_us) {
        wait_bound(lock, step);
        return;
    }
    if (lock->phase == CORE_WAITING && step->now_us >= lock->retry_at_us) attempt_again(lock, step, false);
    if (!lock->arbiter_only) give_up_connecting(lock, step->now_us);
    judge(lock, step);
}

static void connection_ended(struct core_node *node)
{
    node->peeking = false;
    if (node->vote == CORE_VOTE_PENDING || node->raising) vote_failed(node, node->down_fault);
    /* Not acknowledged: no vote, so it counts for no validity either. */
    if (node->raising) node->valid_until_us = 0;
    node->raising = false;
}

/* A node that was still connecting at the verdict adds its vote, until the first renewal asks it anyway. */
static bool still_asks(const struct core_lock *lock)
{
    if (lock->phase == CORE_ASKING) return !lock->doomed && !lock->arbiter_only;
    return (lock->phase == CORE_GRANTED || lock->phase == CORE_HELD) && lock->round == 0;
}

/* The attempt is lost, and what this node would have said tells contention from outage. */
static void ask_holder(struct core_lock *lock, struct step *step, uint32_t index)
{
    struct core_node *node = &lock->nodes[index];

    node->vote = CORE_VOTE_PENDING;
    node->met_holder_id = node->holder_id;
    node->holder_id = 0;
    node->ttl_us = -2;
    peek(lock, step, index);
}

void attempt_on_node_state(struct core_lock *lock, struct step *step, uint32_t index)
{
    struct core_node *node = &lock->nodes[index];

    /* A lock that is held can do without the vote: many of them at once would fill the node's queue. */
    if (node->state == CORE_NODE_READY && node->vote == CORE_VOTE_NONE && still_asks(lock) &&
        (lock->phase == CORE_ASKING || !step->no_attempt)) {
        ask(lock, step, index);
    }
    if (node->state == CORE_NODE_READY && node->vote == CORE_VOTE_NONE && lock->doomed && !lock->arbiter_only &&
        lock->phase == CORE_ASKING) {
        ask_holder(lock, step, index);
    }
    if (lock->phase == CORE_ASKING) {
        /* While the arbiter has the word nobody else is asked, or has failed to answer: it may come back. */
        if (node->state != CORE_NODE_READY && node->state != CORE_NODE_CONNECTING &&
            node->vote == CORE_VOTE_NONE && !lock->arbiter_only) {
            vote_failed(node, node->down_fault);
        }
        if (!core_can_talk(node)) connection_ended(node);
        judge(lock, step);
    } else if (lock->phase == CORE_WAITING) {
        wait_on_node_state(lock, index, step->now_us);
    }
}

static void on_vote(struct core_lock *lock, struct step *step, const struct core_reply *reply)
{
    struct core_node *node = &lock->nodes[reply->tag.node];

    if (node->vote != CORE_VOTE_PENDING) return;
    switch (reply->outcome) {
    case CORE_YES:
        node->vote = CORE_VOTE_YES;
        node->fence = reply->fence;
        node->vote_sent_us = reply->tag.sent_us;
        node->valid_until_us = validity_of_vote(reply->tag.sent_us, reply->tag.lease_us, lock->config.drift_ppm,
                                                lock->config.drift_fixed_us);
        break;
    case CORE_OTHER:
        node->vote = CORE_VOTE_OTHER;
        node->gone = true;
        node->holder_id = reply->holder_id;
        node->ttl_us = reply->ttl_us;
        if (reply->listeners > 0) lock->waiters = reply->listeners;
        if (lock->phase == CORE_ASKING && lock->doomed) peek(lock, step, reply->tag.node);
        break;
    case CORE_UNSENT:
        node->touched = false;
        vote_failed(node, CORE_FAULT_PASSING);
        break;
    case CORE_NOSCRIPT:
        /* Asked again only while no release of this attempt is queued. */
        if (!lock->doomed) {
            send_acquire(lock, step, reply->tag.node, true);
            return;
        }
        vote_failed(node, CORE_FAULT_PASSING);
        break;
    default: vote_failed(node, reply->fault); break;
    }
    if (reply->outcome != CORE_UNSENT) doubt_on_vote(node);
}

/* A renewal asks this node already. Its answer comes behind this one on the same connection, and settles the
 * round; this one can only tell that the key is there. */
static void on_overtaken_vote(struct core_lock *lock, const struct core_reply *reply)
{
    struct core_node *node = &lock->nodes[reply->tag.node];
    uint64_t until_us = validity_of_vote(reply->tag.sent_us, reply->tag.lease_us, lock->config.drift_ppm,
                                         lock->config.drift_fixed_us);

    if (reply->outcome == CORE_YES && until_us > node->valid_until_us) node->valid_until_us = until_us;
}

static void on_peek(struct core_lock *lock, struct step *step, const struct core_reply *reply)
{
    struct core_node *node = &lock->nodes[reply->tag.node];

    if (!node->peeking) return;
    if (reply->outcome == CORE_NOSCRIPT) {
        core_send(lock, step, reply->tag.node, CORE_OP_PEEK, 0, true);
        return;
    }
    node->peeking = false;
    if (reply->outcome == CORE_YES || reply->outcome == CORE_OTHER) {
        node->holder_id = reply->holder_id;
        node->ttl_us = reply->ttl_us;
        node->vote = CORE_VOTE_OTHER;
    } else if (reply->outcome == CORE_ERROR && reply->fault == CORE_FAULT_FOREIGN) {
        vote_failed(node, CORE_FAULT_FOREIGN);
        doubt_on_vote(node);
    } else if (node->vote == CORE_VOTE_PENDING && reply->outcome == CORE_MISSING) {
        node->vote = CORE_VOTE_YES; /* it would have granted */
    } else if (node->vote == CORE_VOTE_PENDING) {
        vote_failed(node, reply->fault == CORE_FAULT_NONE ? CORE_FAULT_PASSING : reply->fault);
    }
}

static void on_raised(struct core_lock *lock, struct step *step, const struct core_reply *reply)
{
    struct core_node *node = &lock->nodes[reply->tag.node];

    if (!node->raising || node->vote != CORE_VOTE_YES) return;
    if (reply->outcome == CORE_NOSCRIPT && !lock->doomed) {
        fence_raise(lock, step, reply->tag.node, true);
        return;
    }
    node->raising = false;
    if (reply->outcome == CORE_YES) {
        node->fence = reply->fence;
    } else {
        /* Its key is not ours any more, or nobody knows: no acknowledgement, no vote. */
        node->valid_until_us = 0;
        node->gone = reply->outcome == CORE_MISSING || reply->outcome == CORE_OTHER;
        vote_failed(node, reply->fault == CORE_FAULT_NONE ? CORE_FAULT_PASSING : reply->fault);
    }
}

void attempt_on_reply(struct core_lock *lock, struct step *step, const struct core_reply *reply)
{
    if (reply->tag.op == CORE_OP_PEEK) {
        if (lock->phase == CORE_ASKING) on_peek(lock, step, reply);
    } else if (reply->tag.op == CORE_OP_RAISE) {
        if (lock->phase == CORE_ASKING) on_raised(lock, step, reply);
    } else if (lock->phase == CORE_HELD && lock->round > 0) {
        on_overtaken_vote(lock, reply);
    } else if (lock->phase == CORE_ASKING || lock->phase == CORE_GRANTED || lock->phase == CORE_HELD) {
        on_vote(lock, step, reply);
    }
    if (lock->phase == CORE_ASKING) {
        judge(lock, step);
    } else {
        hold_late_vote(lock, step);
    }
}

void attempt_on_step(struct core_lock *lock, struct step *step, uint32_t index, uint64_t before_us)
{
    struct core_node *node = &lock->nodes[index];

    if (lock->phase != CORE_ASKING || node->vote != CORE_VOTE_YES || node->vote_sent_us >= before_us) return;
    vote_failed(node, CORE_FAULT_PASSING);
    node->raising = false;
    judge(lock, step);
}

void attempt_too_late(struct core_lock *lock, struct step *step)
{
    debt_end_attempt(lock, step);
    wait_or_fail(lock, step, CORE_TIMEDOUT, true);
}

static uint64_t timeouts_end_us(const struct core_lock *lock)
{
    struct tally tally = count_votes(lock);
    uint64_t ends_us = lock->doomed ? CORE_NEVER : hopeless_at(lock, &tally);

    if (lock->doomed && doubt_until(lock) != 0) ends_us = doubt_until(lock);
    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        if (may_still_connect(&lock->nodes[i]) && connect_until_us(lock) < ends_us) {
            ends_us = connect_until_us(lock);
        }
    }
    return ends_us;
}

uint64_t attempt_deadline(const struct core_lock *lock)
{
    uint64_t deadline_us = CORE_NEVER;

    if (lock->phase == CORE_WAITING) deadline_us = lock->retry_at_us;
    if (lock->phase == CORE_ASKING) {
        deadline_us = lock->arbiter_only ? lock->rest_at_us : timeouts_end_us(lock);
    }
    if (lock->config.wait_us != 0 && lock->wait_until_us < deadline_us) deadline_us = lock->wait_until_us;
    return deadline_us;
}
