/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait.c - when to try again, and whom to ask first
 *
 * 1. Whoever waits asks one node first, the arbiter: the first in the order shared by all clients that is READY
 *    and whose word is worth something (doubt.c). Of many contenders one gets its yes, and asks the others; the
 * rest were refused at the cost of one request each, and hold nothing that could split the votes.
 * 2. Somebody who holds the lock is waited for: until his lease ends on a quorum of nodes, and with a poll of
 *    the arbiter in between, for peers publish nothing when they release. Votes that were split are tried again
 *    after a pause that grows.
 * 3. A notice of a release wakes: at once from the arbiter or from Q nodes, else one round trip later. One that
 *    comes while an attempt is under way may have come too late for it, so another attempt follows. Where many
 *    hear it, only a few ask at once, by lot, and the others later and later: so a release costs the nodes as
 * many questions of thirty who wait as of three. How many they are a node tells whom it refuses.
 * 4. Notices come only from when the subscription was confirmed: what was released before is found by one more
 *    try after that (the lost wake).
 * 5. A failed attempt tells of its release where it was in anybody's way: on the arbiter, unless a holder is
 *    there or too few nodes can vote, for then the next one would try in vain, and wake the next (debt.c).
 * 6. A lock of this process that gives the keys back hands them over: its releases and the next one's acquire
 *    go to all nodes in one flush, and in this order. Now and then it yields to other processes instead: then
 *    the notice decides, or a little more time than that takes.
 *
 * Patience and pauses are counted in round trips as the answers show them (core.c).
 */
#include <assert.h>

#include "state.h"

#define TTL_ENDLESS     (-1)
#define AFTER_EXPIRY_US 1000u /* the node's expiry runs in milliseconds */
/* Two round trips, and what a busy machine may add to them. */
#define GRACE_US        1000u
#define OWN_NOTICES_MAX 200u
#define YIELD_SRTTS     4u
/* Of a crowd so many ask at once when they hear of a release; and of the rest so many in each span after it,
 * one four times as long as the one before. */
#define TURNS_AT_ONCE 2u
#define SPAN_GROWTH   4u
#define SPAN_MIN_US   200u   /* also where no round trip was measured yet: a span of nothing never ends */
#define SPANS_US      10000u /* the last span begins before that: a lot must not take as long as a poll */

uint32_t wait_arbiter(const struct core_lock *lock)
{
    uint32_t spare = lock->config.n_nodes;

    if (BROKEN(CONTROL_NO_BACKOFF)) return lock->config.n_nodes;
    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        uint32_t index = lock->config.arbiters[i];

        if (lock->nodes[index].state != CORE_NODE_READY) continue;
        if (doubt_fits(&lock->nodes[index]) || BROKEN(CONTROL_NEVER_OVERDUE)) return index;
        if (spare == lock->config.n_nodes && doubt_may_serve(&lock->nodes[index])) spare = index;
    }
    return spare;
}

uint64_t wait_timeout(const struct core_lock *lock, uint32_t index, uint64_t asked_us)
{
    if (BROKEN(CONTROL_NEVER_OVERDUE)) return CORE_NEVER;
    return validity_add(asked_us, 2 * (uint64_t)lock->nodes[index].srtt_us + GRACE_US);
}

/* Whom it named in this attempt, 0 where nobody. */
static uint64_t refused_by(const struct core_node *node)
{
    return node->vote == CORE_VOTE_OTHER ? node->holder_id : 0;
}

/* One foreign owner on a quorum, or on a node when it was asked twice running, is a holder; else votes were
 * split. An odd key is nobody's, but so many of them are as good as a holder. */
bool wait_meets_holder(const struct core_lock *lock)
{
    if (doubt_is_blocked(lock)) return true;
    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        uint64_t holder_id = refused_by(&lock->nodes[i]);
        uint32_t same = 0;

        if (holder_id == 0 || lock->nodes[i].odd) continue;
        if (holder_id == lock->nodes[i].met_holder_id) return true;
        for (uint32_t k = 0; k < lock->config.n_nodes; k++) same += refused_by(&lock->nodes[k]) == holder_id;
        if (same >= lock->config.quorum) return true;
    }
    return false;
}

static uint64_t free_in_us(const struct core_node *node)
{
    if (node->vote == CORE_VOTE_YES) return 0;
    if (node->vote != CORE_VOTE_OTHER || node->ttl_us == TTL_ENDLESS) return CORE_NEVER;
    return node->ttl_us < 0 ? 0 : (uint64_t)node->ttl_us;
}

/* The Qth smallest remaining lease: then a quorum is free by itself. Where only the arbiter was asked, its. */
static uint64_t quorum_free_in_us(const struct core_lock *lock)
{
    uint64_t left[CORE_NODES_MAX];
    uint32_t n = lock->config.n_nodes;

    if (lock->arbiter_only) return validity_add(free_in_us(&lock->nodes[lock->arbiter]), AFTER_EXPIRY_US);
    for (uint32_t i = 0; i < n; i++) left[i] = free_in_us(&lock->nodes[i]);
    /* The Qth smallest of n is the (n - Q + 1)th largest. */
    return validity_add(validity_of_quorum(left, n, n - lock->config.quorum + 1), AFTER_EXPIRY_US);
}

static uint64_t quorum_srtt_us(const struct core_lock *lock)
{
    uint64_t srtt_us[CORE_NODES_MAX];
    uint32_t n = lock->config.n_nodes;

    for (uint32_t i = 0; i < n; i++) srtt_us[i] = lock->nodes[i].srtt_us;
    return validity_of_quorum(srtt_us, n, n - lock->config.quorum + 1);
}

/* Whom the arbiter names alone is waited for like a holder: a contender who fails tells us. */
static uint64_t pause_us(struct core_lock *lock, bool held)
{
    uint64_t poll_us;
    uint64_t free_us;

    if (BROKEN(CONTROL_NO_BACKOFF)) return 0;
    if (held && !lock->arbiter_only && !wait_meets_holder(lock)) {
        return backoff_split_us(&lock->jitter, quorum_srtt_us(lock), lock->splits++);
    }
    lock->splits = 0;
    poll_us = backoff_poll_us(&lock->jitter, lock->polls++);
    free_us = held ? quorum_free_in_us(lock) : CORE_NEVER;
    /* Everybody who waits sees the same expiry; do not all come at once. */
    return free_us < poll_us ? free_us + backoff_split_us(&lock->jitter, quorum_srtt_us(lock), 1) : poll_us;
}

static void sooner(struct core_lock *lock, uint64_t at_us)
{
    if (at_us < lock->poll_at_us) lock->poll_at_us = at_us;
    if (at_us < lock->retry_at_us) lock->retry_at_us = at_us;
}

static bool asks_at_once(struct core_lock *lock)
{
    return lock->waiters <= TURNS_AT_ONCE || backoff_uniform(&lock->jitter, lock->waiters - 1) < TURNS_AT_ONCE;
}

/* By lot: how long after a release we ask. */
static uint64_t turn_us(struct core_lock *lock)
{
    uint64_t span_us = quorum_srtt_us(lock);
    uint64_t begin_us = 0;
    uint64_t end_us = 0;

    if (span_us < SPAN_MIN_US) span_us = SPAN_MIN_US;
    while (!asks_at_once(lock) && end_us < SPANS_US) {
        begin_us = end_us;
        end_us += span_us;
        span_us *= SPAN_GROWTH;
    }
    return begin_us + backoff_uniform(&lock->jitter, end_us - begin_us);
}

/* Each release is drawn for anew: an old lot would ask in the middle of somebody's hold. */
static void take_turn(struct core_lock *lock, uint64_t at_us)
{
    lock->retry_at_us = at_us < lock->poll_at_us ? at_us : lock->poll_at_us;
}

/* Another holder than before: peers hand over without a word, so look again soon. */
static void watch_holder(struct core_lock *lock)
{
    uint64_t holder_id = 0;

    for (uint32_t i = 0; i < lock->config.n_nodes && holder_id == 0; i++) {
        const struct core_node *node = &lock->nodes[lock->config.arbiters[i]];

        if (!node->odd) holder_id = refused_by(node);
    }
    if (holder_id != lock->polled_id) lock->polls = 0;
    lock->polled_id = holder_id;
}

void wait_begin(struct core_lock *lock, uint64_t now_us, bool held)
{
    watch_holder(lock);
    lock->phase = CORE_WAITING;
    lock->poll_at_us = lock->retry_at_us = validity_add(now_us, pause_us(lock, held));
    if (lock->noticed) {
        uint64_t short_us = backoff_split_us(&lock->jitter, quorum_srtt_us(lock), 0);

        take_turn(lock, validity_add(now_us, short_us + turn_us(lock)));
        lock->heard = true;
        lock->woken_id = lock->released_id;
    }
    lock->noticed = false;
    for (uint32_t i = 0; i < lock->config.n_nodes; i++) lock->nodes[i].noticed = false;
}

void wait_behind(struct core_lock *lock, uint64_t now_us)
{
    lock->seen_held = true;
    lock->phase = CORE_WAITING;
    lock->poll_at_us = lock->retry_at_us = validity_add(now_us, backoff_poll_us(&lock->jitter, lock->polls++));
}

void wait_on_node_state(struct core_lock *lock, uint32_t index, uint64_t now_us)
{
    const struct core_node *node = &lock->nodes[index];

    if (node->state != CORE_NODE_READY || !lock->seen_noquorum) return;
    sooner(lock, validity_add(now_us, backoff_split_us(&lock->jitter, node->srtt_us, 1)));
}

/* Of two who ask an odd number of nodes at the same time one gets more of them. So nothing is won by the
 * arbiter's word, and a round trip is lost. */
static bool are_two(const struct core_lock *lock)
{
    if (lock->waiters == 0 || lock->waiters > 2 || 2 * lock->config.quorum != lock->config.n_nodes + 1)
        return false;
    for (uint32_t i = 0; i < lock->config.n_nodes; i++) {
        if (lock->nodes[i].state != CORE_NODE_READY || !doubt_fits(&lock->nodes[i])) return false;
    }
    return true;
}

static void wake(struct core_lock *lock, struct step *step)
{
    uint64_t pause_us = turn_us(lock);

    if (pause_us > 0) {
        lock->heard = true;
        lock->woken_id = lock->released_id;
        take_turn(lock, validity_add(step->now_us, pause_us));
    } else {
        lock->polls = 0;
        attempt_again(lock, step, are_two(lock));
    }
}

void wait_on_notice(struct core_lock *lock, struct step *step, const struct core_event *event)
{
    struct core_node *node = &lock->nodes[event->node];
    uint32_t noticed = 0;
    bool arbiter;

    assert(event->node < lock->config.n_nodes);
    if (!lock->acquiring) return;
    if (node->own_notices > 0) {
        node->own_notices--;
        return;
    }
    node->odd = false;
    arbiter = event->node == wait_arbiter(lock);
    lock->given_back_id = arbiter ? 0 : event->holder_id;
    /* A straggler of the release that woke us already, or for which our turn is drawn. */
    if ((!arbiter || lock->heard) && event->holder_id != 0 && event->holder_id == lock->woken_id) return;
    lock->released_id = event->holder_id;
    if (lock->phase == CORE_ASKING && !BROKEN(CONTROL_LOST_WAKE)) lock->noticed = true;
    if (lock->phase != CORE_WAITING) return;
    node->noticed = true;
    for (uint32_t i = 0; i < lock->config.n_nodes; i++) noticed += lock->nodes[i].noticed;
    if (arbiter || (noticed >= lock->config.quorum && !lock->heard)) {
        wake(lock, step);
    } else if (!lock->heard) {
        take_turn(lock, validity_add(step->now_us, node->srtt_us + turn_us(lock)));
    }
}

void wait_on_listening(struct core_lock *lock, struct step *step, const struct core_event *event)
{
    struct core_node *node = &lock->nodes[event->node];
    uint32_t listening = 0;

    assert(event->node < lock->config.n_nodes);
    if (!lock->acquiring || BROKEN(CONTROL_LOST_WAKE)) return;
    node->listening = true;
    node->own_notices = 0;
    /* Nothing was missed since the first question, or by who stands behind a lock of this process. */
    if (event->behind || lock->attempts == 0) return;
    if (lock->phase == CORE_ASKING) lock->noticed = true;
    for (uint32_t i = 0; i < lock->config.n_nodes; i++) listening += lock->nodes[i].listening;
    if (lock->phase != CORE_WAITING) return;
    /* Whoever gets the lock next will tell one of these. */
    if (event->node == wait_arbiter(lock) || listening == lock->config.n_nodes - lock->config.quorum + 1) {
        sooner(lock, validity_add(step->now_us, node->srtt_us));
    }
}

void wait_on_wake(struct core_lock *lock, struct step *step, bool yield)
{
    uint64_t srtt_us = quorum_srtt_us(lock);

    if (lock->phase == CORE_ASKING) lock->noticed = true;
    if (lock->phase != CORE_WAITING) return;
    if (yield) {
        sooner(lock, validity_add(step->now_us, YIELD_SRTTS * srtt_us + GRACE_US));
    } else {
        attempt_again(lock, step, true);
    }
}

bool wait_own_notice(struct core_node *node)
{
    if (!node->listening || node->own_notices >= OWN_NOTICES_MAX) return false;
    node->own_notices++;
    return true;
}
