/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait.c - when the next attempt begins, and which nodes it asks first
 *
 * 1. An attempt after the first asks the arbiter first (arbiter.c). Of many contenders one gets its yes, and asks the
 *    others; the rest are refused at the cost of one request each, and hold nothing that could split the votes.
 * 2. A holder is waited for until its lease ends on a quorum of nodes, with polls of the arbiter in between: a peer
 *    that is not quorlock publishes nothing when it releases. Votes that were split are tried again after a pause
 *    that grows.
 * 3. A notice of a release wakes: at once from the arbiter or from Q nodes, else one round trip later. A notice that
 *    comes during an attempt may be too late for it, so another attempt follows. The other nodes' notices of the
 *    release that led to an attempt do not count, but for those of nodes that refused that attempt and that the
 *    release reached only then. Where many clients wait, each draws its turn: a few ask at once, the others later and
 *    later, so that a release costs the nodes hardly more requests with thirty waiters than with three. A refusing node
 *    reports the number of clients that listen, of which some may not wait any more. Of several keys, a waiter asks
 * when all those were released that refused the latest attempt on a quorum, or at the arbiter: others may come and go.
 * 4. Notices come only after the subscription is confirmed. A release before that is found by one more try then (the
 *    lost wake).
 * 5. A failed attempt publishes its release only where it stood in the way (attempt.c).
 * 6. Where fewer than a quorum of nodes are ready no attempt can be granted. The lock sleeps until a node is ready, or
 *    says what ends the acquire; else it looks seldom, and its log goes on.
 * 7. A lock of this process that releases hands the keys over: its releases and the next lock's acquire go to all
 *    nodes in one flush, in this order. Now and then it yields to other processes: then the next lock waits for the
 *    notice, or a little longer than that takes.
 *
 * Timeouts and pauses are counted in round trips, as the answers show them (core.c).
 */
#include "wait.h"

#include <assert.h>

#include "arbiter.h"
#include "slots.h"

#define TTL_ENDLESS     (-1)
#define AFTER_EXPIRY_US 1000u /* the node counts its expiry in milliseconds */
#define YIELD_SRTTS     4u
/* So many waiters ask at once after a release, as many of the rest in the first span after that, and twice as many in
 * each one more, for of those who listen fewer may wait than the node counts. All that are left ask where these are so
 * few, or in the span that begins so late. Each span is four times as long as the one before. */
#define TURNS_AT_ONCE 2u
#define TURNS_FEW     8u
#define TURNS_LATE_US 40000u
#define SPAN_GROWTH   4u
#define SPAN_MIN_US   200u /* also where the RTT is unknown */
/* So few ask all nodes, where these are so few, and one holder was there for so long. */
#define FEW_WAITERS 8u
#define FEW_NODES   5u
#define QUIET_SRTTS 4u

static uint64_t free_in_us(const struct core_node *node)
{
    if (node->vote == CORE_VOTE_YES) return 0;
    if (node->vote != CORE_VOTE_OTHER || node->asked.holder.ttl_us == TTL_ENDLESS) return CORE_NEVER;
    return node->asked.holder.ttl_us < 0 ? 0 : (uint64_t)node->asked.holder.ttl_us;
}

/* The Qth smallest remaining lease: then a quorum is free by itself. Where only the arbiter was asked, its. */
static uint64_t quorum_free_in_us(const struct core_lock *lock)
{
    uint64_t left[CORE_NODES_MAX];
    uint32_t n = lock->config->n_nodes;

    if (lock->attempt.stage == ATTEMPT_ASKS_ARBITER) {
        return validity_add(free_in_us(&lock->nodes[lock->attempt.arbiter]), AFTER_EXPIRY_US);
    }
    for (uint32_t i = 0; i < n; i++) left[i] = free_in_us(&lock->nodes[i]);
    /* The Qth smallest of n is the (n - Q + 1)th largest. */
    return validity_add(validity_of_quorum(left, n, n - lock->config->quorum + 1), AFTER_EXPIRY_US);
}

static uint64_t quorum_srtt_us(const struct core_lock *lock)
{
    uint64_t srtt_us[CORE_NODES_MAX];
    uint32_t n = lock->config->n_nodes;

    for (uint32_t i = 0; i < n; i++) srtt_us[i] = lock->nodes[i].srtt_us;
    return validity_of_quorum(srtt_us, n, n - lock->config->quorum + 1);
}

uint64_t wait_split_us(struct core_lock *lock)
{
    return backoff_split_us(&lock->jitter, quorum_srtt_us(lock), lock->wait.splits++);
}

/* With permits the slot on which votes were split is passed over so long (slots.c). */
static uint64_t pause_for_slot_us(struct core_lock *lock, const struct step *step, bool held)
{
    uint64_t poll_us = backoff_poll_us(&lock->jitter, lock->wait.polls++);
    uint64_t free_at_us = held ? slots_free_us(step->slots, lock) : CORE_NEVER;
    uint64_t free_us = validity_add(validity_sub(free_at_us, step->now_us), AFTER_EXPIRY_US);

    assert(step->slots != NULL);
    return free_us < poll_us ? free_us + backoff_split_us(&lock->jitter, quorum_srtt_us(lock), 1) : poll_us;
}

/* What was seen of the nodes is looked at, too, for by that a node that comes back is noticed. */
static bool is_outage(const struct core_lock *lock)
{
    return !core_quorum_is_ready(lock) && (lock->acquire.seen & CORE_SEEN_NOQUORUM) != 0;
}

/* A client that only the arbiter named is waited for like a holder: if it fails, its release is published. */
static uint64_t pause_us(struct core_lock *lock, const struct step *step, bool held)
{
    uint64_t poll_us;
    uint64_t free_us;

    if (is_outage(lock)) return backoff_outage_us(&lock->jitter);
    if (step->slots != NULL) return pause_for_slot_us(lock, step, held);
    if (held && lock->attempt.stage != ATTEMPT_ASKS_ARBITER && !arbiter_meets_holder(lock, step->now_us)) {
        return wait_split_us(lock);
    }
    lock->wait.splits = 0;
    poll_us = backoff_poll_us(&lock->jitter, lock->wait.polls++);
    free_us = held ? quorum_free_in_us(lock) : CORE_NEVER;
    /* All waiters see the same expiry: jitter, so that not all ask at once. */
    return free_us < poll_us ? free_us + backoff_split_us(&lock->jitter, quorum_srtt_us(lock), 1) : poll_us;
}

static void sooner(struct core_lock *lock, uint64_t at_us)
{
    if (core_awaits_first_attempt(lock)) return;
    assert(lock->phase == CORE_WAITING);
    lock->wait.poll_at_us = core_smaller(lock->wait.poll_at_us, at_us);
    lock->wait.retry_at_us = core_smaller(lock->wait.retry_at_us, at_us);
}

static bool is_drawn(struct core_lock *lock, uint32_t waiters)
{
    return waiters <= TURNS_AT_ONCE || backoff_uniform(&lock->jitter, waiters - 1) < TURNS_AT_ONCE;
}

/* The pause after a release, drawn at random. */
static uint64_t turn_us(struct core_lock *lock)
{
    uint64_t span_us = quorum_srtt_us(lock);
    uint64_t begin_us = 0;
    uint64_t end_us = 0;

    if (span_us < SPAN_MIN_US) span_us = SPAN_MIN_US;
    for (uint32_t waiters = lock->waiters; !is_drawn(lock, waiters);) {
        if (end_us > 0) waiters = end_us < TURNS_LATE_US && waiters / 2 >= TURNS_FEW ? waiters / 2 : 1;
        begin_us = end_us;
        end_us += span_us;
        span_us *= SPAN_GROWTH;
    }
    assert(begin_us <= end_us);
    return begin_us + backoff_uniform(&lock->jitter, end_us - begin_us);
}

/* Each release is drawn for anew: an older turn would come in the middle of the next hold. */
static void wait_take_turn(struct core_lock *lock, uint64_t at_us)
{
    assert(lock->phase == CORE_WAITING);
    lock->wait.retry_at_us = core_smaller(at_us, lock->wait.poll_at_us);
}

/* Another holder than before: where no notice came other clients hand over without one, so poll again soon. An id is of
 * one hold: what came between two looks at it was a contender, at a node that lacks the holder's key. */
static void watch_holder(struct core_lock *lock, uint64_t now_us)
{
    struct wait *wait = &lock->wait;
    struct named before = wait->before;
    uint64_t holder_id = 0;

    for (uint32_t i = 0; i < lock->config->n_nodes && holder_id == 0; i++) {
        const struct core_node *node = &lock->nodes[core_arbiter(lock, i)];

        if (node->asked.odd_id == 0) holder_id = core_named_by(node);
    }
    if (holder_id == wait->polled.id) return;
    /* Those who hand over to each other here tell it. */
    if (!wait->told) wait->polls = 0;
    wait->before = wait->polled;
    wait->polled = holder_id == before.id ? before : (struct named){holder_id, now_us};
}

/* All that was in the way there was released since, as far as is known. */
static bool may_grant(const struct core_lock *lock, const struct core_node *node)
{
    return node->vote != CORE_VOTE_OTHER || (node->asked.refusing & ~lock->wait.heard) == 0;
}

/* An attempt is not refused for what refused the latest one. */
static bool wait_may_be_free(const struct core_lock *lock)
{
    uint32_t may = 0;

    if (lock->attempt.stage == ATTEMPT_ASKS_ARBITER) return may_grant(lock, &lock->nodes[lock->attempt.arbiter]);
    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) may += may_grant(lock, node);
    return may >= lock->config->quorum;
}

static void wait_hear(struct core_lock *lock, uint64_t keys)
{
    lock->wait.heard |= keys;
    lock->wait.told = true;
}

/* Any key may have been released. */
static void hear_all(struct core_lock *lock)
{
    if (lock->phase != CORE_ASKING) return;
    wait_hear(lock, UINT64_MAX);
    lock->wait.notice = NOTICE_DURING_ATTEMPT;
}

void wait_begin(struct core_lock *lock, const struct step *step, bool held)
{
    uint64_t now_us = step->now_us;

    assert(lock->phase == CORE_ASKING || lock->phase == CORE_GRANTED);
    assert(lock->queued == WAIT_STAY);
    watch_holder(lock, now_us);
    lock->phase = CORE_WAITING;
    lock->wait.searches = false;
    lock->wait.poll_at_us = lock->wait.retry_at_us = validity_add(now_us, pause_us(lock, step, held));
    lock->wait.told = false;
    if (lock->wait.notice == NOTICE_DURING_ATTEMPT && wait_may_be_free(lock)) {
        uint64_t short_us = backoff_split_us(&lock->jitter, quorum_srtt_us(lock), 0);

        wait_take_turn(lock, validity_add(now_us, short_us + turn_us(lock)));
        lock->wait.notice = NOTICE_TURN_DRAWN;
        lock->wait.woken_id = lock->wait.released_id;
    }
    for (uint32_t i = 0; i < lock->config->n_nodes; i++) lock->nodes[i].notices.heard = false;
    /* It is woken by itself, also where no notice comes. */
    assert(lock->wait.poll_at_us < CORE_NEVER);
    assert(lock->wait.retry_at_us >= now_us && lock->wait.retry_at_us <= lock->wait.poll_at_us);
}

void wait_behind(struct core_lock *lock, uint64_t now_us)
{
    assert(!core_is_acquiring(lock));
    assert(lock->acquire.attempts == 0);
    lock->acquire.seen |= CORE_SEEN_HELD;
    lock->phase = CORE_WAITING;
    lock->wait.poll_at_us = lock->wait.retry_at_us =
        validity_add(now_us, backoff_poll_us(&lock->jitter, lock->wait.polls++));
}

void wait_on_node_state(struct core_lock *lock, const struct step *step, uint32_t index)
{
    const struct core_node *node = &lock->nodes[index];
    bool answers = node->state == NODE_READY || core_is_permanent(step, node->down_fault);

    assert(lock->phase == CORE_WAITING);
    if (!answers || (lock->acquire.seen & CORE_SEEN_NOQUORUM) == 0) return;
    sooner(lock, validity_add(step->now_us, backoff_split_us(&lock->jitter, node->srtt_us, 1)));
}

/*
 * With two contenders and odd N one always gets a majority: asking the arbiter first would only cost a round trip. Of a
 * few more waiters about two are drawn to ask at once, and where three are, few nodes seldom split their votes so that
 * none has a majority. Where one holder follows the other at once that takes more of the nodes than it gains.
 */
static bool are_few(const struct core_lock *lock, uint64_t now_us)
{
    bool quiet = validity_sub(now_us, lock->wait.polled.since_us) >= QUIET_SRTTS * quorum_srtt_us(lock);
    uint32_t most = quiet && lock->config->n_nodes <= FEW_NODES ? FEW_WAITERS : 2;

    if (lock->waiters == 0 || lock->waiters > most || 2 * lock->config->quorum != lock->config->n_nodes + 1)
        return false;
    for (uint32_t i = 0; i < lock->config->n_nodes; i++) {
        if (lock->nodes[i].state != NODE_READY || !arbiter_fits(&lock->nodes[i])) return false;
    }
    return true;
}

static enum wait_verdict wait_wake(struct core_lock *lock, const struct step *step)
{
    uint64_t pause_us = turn_us(lock);

    assert(lock->phase == CORE_WAITING);
    if (pause_us > 0) {
        lock->wait.notice = NOTICE_TURN_DRAWN;
        lock->wait.woken_id = lock->wait.released_id;
        wait_take_turn(lock, validity_add(step->now_us, pause_us));
        return WAIT_STAY;
    }
    lock->wait.polls = 0;
    /* Which slot was released only the arbiter can say. */
    return step->slots == NULL && are_few(lock, step->now_us) ? WAIT_TRY_ALL : WAIT_TRY_ARBITER;
}

/* The node refused the latest attempt because of that holder, or may have: the release came too late there. */
static bool released_late(const struct core_node *node, uint64_t holder_id)
{
    return node->vote == CORE_VOTE_PENDING || core_named_by(node) == holder_id;
}

enum wait_verdict wait_on_notice(struct core_lock *lock, struct step *step, uint32_t index, uint32_t key,
                                 uint64_t holder_id)
{
    struct core_node *node = &lock->nodes[index];
    uint32_t noticed = 0;
    bool arbiter;
    bool drawn;
    bool known;

    assert(index < lock->config->n_nodes);
    assert(key < 64);
    if (!core_is_acquiring(lock) || core_awaits_first_attempt(lock)) return WAIT_STAY;
    if (node->notices.own > 0) {
        node->notices.own--;
        return WAIT_STAY;
    }
    if (step->slots != NULL) slots_on_notice(step->slots, holder_id);
    drawn = lock->wait.notice == NOTICE_TURN_DRAWN;
    known = holder_id != 0 && holder_id == lock->wait.woken_id;
    /* Of another holder it says nothing about the key that is there. */
    if (holder_id == node->asked.odd_id) node->asked.odd_id = 0;
    wait_hear(lock, UINT64_C(1) << key);
    if (lock->phase == CORE_WAITING && !wait_may_be_free(lock)) return WAIT_STAY;
    arbiter = index == arbiter_choose(lock);
    lock->belief.released_id = arbiter ? 0 : holder_id;
    /* A late notice of the release that woke us already, or for which our turn is drawn. */
    if (known && (drawn || (!arbiter && !released_late(node, holder_id)))) return WAIT_STAY;
    lock->wait.released_id = holder_id;
    if (lock->phase == CORE_ASKING) lock->wait.notice = NOTICE_DURING_ATTEMPT;
    if (lock->phase != CORE_WAITING) return WAIT_STAY;
    node->notices.heard = true;
    for (uint32_t i = 0; i < lock->config->n_nodes; i++) noticed += lock->nodes[i].notices.heard;
    if (arbiter || (noticed >= lock->config->quorum && !drawn)) return wait_wake(lock, step);
    if (!drawn) wait_take_turn(lock, validity_add(step->now_us, node->srtt_us + turn_us(lock)));
    return WAIT_STAY;
}

void wait_on_listening(struct core_lock *lock, uint64_t now_us, uint32_t index, bool before_acquire)
{
    struct core_node *node = &lock->nodes[index];
    uint32_t listening = 0;

    assert(index < lock->config->n_nodes);
    if (!core_is_acquiring(lock)) return;
    node->notices.listening = true;
    node->notices.own = 0;
    /* Nothing was missed: no node was asked before the confirmation. */
    if (before_acquire || lock->acquire.attempts == 0) return;
    hear_all(lock);
    for (uint32_t i = 0; i < lock->config->n_nodes; i++) listening += lock->nodes[i].notices.listening;
    if (lock->phase != CORE_WAITING) return;
    /* The next holder releases on at least one of these nodes. */
    if (index == arbiter_choose(lock) || listening == lock->config->n_nodes - lock->config->quorum + 1) {
        sooner(lock, validity_add(now_us, node->srtt_us));
    }
}

enum wait_verdict wait_on_wake(struct core_lock *lock, uint64_t now_us, bool yield)
{
    uint64_t srtt_us = quorum_srtt_us(lock);

    hear_all(lock);
    if (lock->phase != CORE_WAITING) return WAIT_STAY;
    if (!yield) return WAIT_TRY_ALL;
    sooner(lock, validity_add(now_us, YIELD_SRTTS * srtt_us + ARBITER_GRACE_US));
    return WAIT_STAY;
}
