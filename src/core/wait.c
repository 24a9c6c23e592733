/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait.c - when the next attempt begins, and which nodes it asks first
 *
 * Chapter 6 of src/protocol.md has the rules. Timeouts and pauses are counted in measured round trips (update_rtt).
 *
 * A release costs the nodes hardly more requests with thirty waiters than with three: each waiter draws a pause by
 * itself. A node reports the number of its subscribers when it refuses; some of these may not wait any more.
 */
#include "wait.h"

#include <assert.h>

#include "arbiter.h"
#include "crowd.h"
#include "fair.h"
#include "news.h"
#include "slots.h"

#define TTL_ENDLESS     (-1)
#define AFTER_EXPIRY_US 1000u /* the node counts its expiry in milliseconds */
#define YIELD_SRTTS     4u
/* Rule 6.8: how waiters spread after a release. Each waiter decides by itself, with these probabilities. */
#define TURNS_AT_ONCE 2u /* so many ask at once, and as many in the first span after that; then twice as many each */
#define TURNS_FEW     8u /* if no more are left, all ask in the next span */
#define TURNS_LATE_US 40000u /* all ask in the span that begins so late */
#define SPAN_GROWTH   4u     /* each span is so many times as long as the one before */
#define SPAN_MIN_US   200u   /* also for an unknown RTT */
#define WATCHERS_MAX  40u    /* of more none has the nodes report changes */
/* When a few waiters ask all nodes at once: see are_few. */
#define FEW_WAITERS 8u
#define FEW_NODES   5u
#define QUIET_SRTTS 4u
#define ALONE_US    (UINT64_C(20) * CROWD_EACH_US) /* up to so many others a lock polls as one that waits alone */

/* Rule 6.6. */
static uint64_t free_in_us(const struct core_node *node)
{
    if (node->vote == CORE_VOTE_YES) return 0;
    if (node->vote != CORE_VOTE_OTHER || node->asked.holder.ttl_us == TTL_ENDLESS) return CORE_NEVER;
    return node->asked.holder.ttl_us < 0 ? 0 : (uint64_t)node->asked.holder.ttl_us;
}

/* Rule 6.6: until a quorum is free by expiry. That is the Qth smallest remaining lease, or the arbiter's if only the
 * arbiter was asked. */
static uint64_t quorum_free_in_us(const struct core_lock *lock)
{
    uint64_t left[CORE_NODES_MAX];
    uint32_t n = lock->config->n_nodes;

    if (lock->attempt.stage == ATTEMPT_ASKS_ARBITER) {
        return validity_add(free_in_us(&lock->nodes[lock->attempt.plan.first]), AFTER_EXPIRY_US);
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

static uint64_t poll_us_of(struct core_lock *lock, bool told)
{
    uint64_t pause_us = backoff_poll_us(&lock->jitter, lock->wait.polls++, told);
    uint64_t most_us = crowd_spread_us(lock);

    if (most_us <= ALONE_US) return pause_us;
    return core_larger(pause_us, most_us / 2 + backoff_uniform(&lock->jitter, most_us / 2));
}

/* Return the pause before the next poll, or until the lock expires. All waiters know the same expiry: jitter keeps them
 * from asking at the same time. Of a queue only the first ones ask then. */
static uint64_t until_free_us(struct core_lock *lock, uint64_t poll_us, uint64_t free_us)
{
    uint64_t spread = crowd_spread_us(lock);

    if (free_us >= poll_us) return poll_us;
    if (spread <= ALONE_US) return free_us + backoff_split_us(&lock->jitter, quorum_srtt_us(lock), 1);
    if (crowd_knows_place(lock)) return poll_us;
    return core_smaller(poll_us, free_us + backoff_uniform(&lock->jitter, spread));
}

/* With permits: the pause is the same after split votes, for the slot is passed over meanwhile (rule 7.5). */
static uint64_t pause_for_slot_us(struct core_lock *lock, const struct step *step, enum awaited awaited)
{
    uint64_t poll_us = poll_us_of(lock, false);
    uint64_t free_at_us = awaited == AWAIT_HOLDER ? slots_free_us(step->slots, lock) : CORE_NEVER;
    uint64_t free_us = validity_add(validity_sub(free_at_us, step->now_us), AFTER_EXPIRY_US);

    assert(step->slots != NULL);
    return until_free_us(lock, poll_us, free_us);
}

/* Rule 6.12. Only with CORE_SEEN_NOQUORUM does a node that comes back end the pause (wait_on_node_state). */
static bool is_outage(const struct core_lock *lock)
{
    return !core_quorum_is_ready(lock) && (lock->acquire.seen & CORE_SEEN_NOQUORUM) != 0;
}

/* The arbiter reports changes of the key, and its next one counts (rule 6.10). */
static bool is_told(const struct core_lock *lock)
{
    uint32_t arbiter = arbiter_choose(lock);

    return arbiter < lock->config->n_nodes && lock->nodes[arbiter].asked.tells && news_awaits_hint(lock, arbiter);
}

/* Rules 6.5 and 6.6. A contender that only the arbiter named is waited for like a holder: if it fails, its release is
 * published. */
static uint64_t pause_us(struct core_lock *lock, const struct step *step, enum awaited awaited)
{
    bool held = awaited == AWAIT_HOLDER;
    uint64_t poll_us;
    uint64_t free_us;

    if (is_outage(lock)) return backoff_outage_us(&lock->jitter);
    if (step->slots != NULL) return pause_for_slot_us(lock, step, awaited);
    if (held && lock->attempt.stage != ATTEMPT_ASKS_ARBITER && !arbiter_meets_holder(lock, step->now_us)) {
        return wait_split_us(lock);
    }
    lock->wait.splits = 0;
    poll_us = poll_us_of(lock, is_told(lock));
    free_us = held ? quorum_free_in_us(lock) : CORE_NEVER;
    return until_free_us(lock, poll_us, free_us);
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

/* Draw the pause after a release (rule 6.8). */
static uint64_t turn_us(struct core_lock *lock)
{
    uint64_t span_us = quorum_srtt_us(lock);
    uint64_t begin_us = 0;
    uint64_t end_us = 0;

    /* Rule 9.5: the queue decides whose turn it is. */
    if (lock->config->fair) return 0;

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

/* Rule 6.8: a new release replaces an older pause, which would end in the middle of the next hold. */
static void wait_take_turn(struct core_lock *lock, uint64_t at_us)
{
    assert(lock->phase == CORE_WAITING);
    lock->wait.retry_at_us = core_smaller(at_us, lock->wait.poll_at_us);
}

static void draw_pause(struct core_lock *lock, uint64_t at_us)
{
    lock->news.state = NEWS_DRAWN;
    wait_take_turn(lock, at_us);
}

/* Rule 6.6: remember the holder, and since when it is known. If the holder changed without a notice, other clients
 * release without notices, so poll soon again. An id belongs to one hold: if the same id comes back, the id in between
 * was that of a contender, at a node that lacks the holder's key. */
static void watch_holder(struct core_lock *lock, uint64_t now_us)
{
    struct wait *wait = &lock->wait;
    struct named before = wait->before;
    uint64_t holder_id = 0;

    for (uint32_t i = 0; i < lock->config->n_nodes && holder_id == 0; i++) {
        const struct core_node *node = &lock->nodes[core_arbiter(lock, i)];

        if (node->asked.minority_id == 0) holder_id = core_named_by(node);
    }
    if (holder_id == wait->polled.id) return;
    if (!lock->news.published) wait->polls = 0;
    wait->before = wait->polled;
    wait->polled = holder_id == before.id ? before : (struct named){holder_id, now_us};
}

/* Rule 6.9: notices came for all keys that the node refused. */
static bool may_grant(const struct core_lock *lock, const struct core_node *node)
{
    return node->vote != CORE_VOTE_OTHER || (node->asked.refusing & ~lock->news.keys) == 0;
}

/* Rule 6.9: the keys that refused the latest attempt have been released. */
static bool wait_may_be_free(const struct core_lock *lock)
{
    uint32_t may = 0;

    if (lock->config->fair) return fair_is_turn(lock);
    if (lock->attempt.stage == ATTEMPT_ASKS_ARBITER) return may_grant(lock, &lock->nodes[lock->attempt.plan.first]);
    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) may += may_grant(lock, node);
    return may >= lock->config->quorum;
}

/* Rule 6.11: take all keys for released, for notices may have been missed. */
static void hear_all(struct core_lock *lock)
{
    if (lock->phase != CORE_ASKING) return;
    lock->news.keys = UINT64_MAX;
    lock->news.state = NEWS_FRESH;
}

/* Rule 6.10. If releases are published, no server needs to report them, too. Of many waiters (rule 6.15) one soon
 * polls, while each report of a renewal would make all of them ask. */
bool wait_watches(const struct core_lock *lock)
{
    if (!lock->config->told || lock->config->fair) return false;
    if (lock->waiters > WATCHERS_MAX) return false;
    return lock->config->holder.wait_us != 0 && !lock->news.published;
}

/* Rule 6.10. The first attempt is mostly granted, so it does not watch. */
static void watch_arbiter(struct core_lock *lock, struct step *step)
{
    uint32_t index = arbiter_choose(lock);
    struct core_node *node = &lock->nodes[index];

    if (index == lock->config->n_nodes || node->vote != CORE_VOTE_OTHER || node->asked.watched) return;
    node->asked.watched = wait_watches(lock);
    if (node->asked.watched) core_send(lock, step, index, OP_PEEK, 0)->watch = true;
}

void wait_begin(struct core_lock *lock, struct step *step, enum awaited awaited)
{
    uint64_t now_us = step->now_us;

    assert(lock->phase == CORE_ASKING || lock->phase == CORE_GRANTED);
    assert(lock->awaits_room == WAIT_STAY);
    watch_holder(lock, now_us);
    watch_arbiter(lock, step);
    lock->phase = CORE_WAITING;
    lock->wait.searches = false;
    lock->wait.poll_at_us = lock->wait.retry_at_us = validity_add(now_us, pause_us(lock, step, awaited));
    if (lock->news.state == NEWS_FRESH && wait_may_be_free(lock)) { /* rule 6.11 */
        uint64_t short_us = backoff_split_us(&lock->jitter, quorum_srtt_us(lock), 0);

        draw_pause(lock, validity_add(now_us, short_us + turn_us(lock)));
    }
    news_end(&lock->news);
    /* A waiter tries again also if no notice comes. */
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
        validity_add(now_us, backoff_poll_us(&lock->jitter, lock->wait.polls++, false));
}

/* Rule 6.12. */
void wait_on_node_state(struct core_lock *lock, const struct step *step, uint32_t index)
{
    const struct core_node *node = &lock->nodes[index];
    bool answers = node->state == NODE_READY || core_is_permanent(step, node->down_fault);

    assert(lock->phase == CORE_WAITING);
    if (!answers || ((lock->acquire.seen & CORE_SEEN_NOQUORUM) == 0 && lock->news.keys == 0)) return;
    sooner(lock, validity_add(step->now_us, backoff_split_us(&lock->jitter, node->srtt_us, 1)));
}

/*
 * Rule 6.8. With two contenders and odd N, one contender always gets a majority: asking the arbiter first would only
 * cost a round trip. Of a few more waiters about two are drawn to ask at once. If three ask, few nodes seldom split
 * their votes so that no waiter has a majority. Where one holder follows the other closely, this would cost more than
 * it gains.
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
        draw_pause(lock, validity_add(step->now_us, pause_us));
        return WAIT_STAY;
    }
    lock->wait.polls = 0;
    /* Rule 7.2: with permits the arbiter chooses the slot. */
    return step->slots == NULL && are_few(lock, step->now_us) ? WAIT_TRY_ALL : WAIT_TRY_ARBITER;
}

/* What a release says besides that the lock may be free (rules 6.4, 6.9, 7.5 and 9.5). */
static void learn(struct core_lock *lock, const struct step *step, const struct core_notice *notice)
{
    struct core_node *node = &lock->nodes[notice->node];
    uint64_t key = UINT64_C(1) << notice->key;

    assert(notice->key < 64);
    if (step->slots != NULL) slots_on_notice(step->slots, notice->holder_id);
    if (notice->holder_id == node->asked.minority_id) node->asked.minority_id = 0;
    lock->news.published = true;
    lock->news.keys |= key;
    if (lock->config->fair && !news_is_known(&lock->news, notice->holder_id)) fair_hear(lock, notice->node, key);
}

enum wait_verdict wait_on_notice(struct core_lock *lock, const struct step *step, const struct core_notice *notice)
{
    struct core_node *node = &lock->nodes[notice->node];
    bool arbiter;

    assert(notice->node < lock->config->n_nodes);
    if (core_awaits_first_attempt(lock)) return WAIT_STAY; /* rule 14.1 */
    if (node->notices.own > 0) {                           /* rule 2.10: the release of our own failed attempt */
        node->notices.own--;
        return WAIT_STAY;
    }
    learn(lock, step, notice);
    if (!core_quorum_is_ready(lock) || !wait_may_be_free(lock)) return WAIT_STAY; /* rules 6.12 and 6.9 */
    arbiter = notice->node == arbiter_choose(lock);
    lock->news.elsewhere_id = arbiter ? 0 : notice->holder_id;                        /* rule 6.3 */
    if (!news_hear(lock, notice->node, arbiter, notice->holder_id)) return WAIT_STAY; /* rule 6.7 */
    if (lock->phase != CORE_WAITING) return WAIT_STAY;                                /* rule 6.11 */
    if (arbiter || news_is_of_quorum(lock)) return wait_wake(lock, step);             /* rule 6.7 */
    wait_take_turn(lock, validity_add(step->now_us, node->srtt_us + turn_us(lock)));
    return WAIT_STAY;
}

void wait_on_hint(struct core_lock *lock, uint64_t now_us, uint32_t index)
{
    uint64_t trip_us;

    if (!news_take_hint(lock, index)) return;                                  /* rule 6.10 */
    if (lock->phase != CORE_WAITING || lock->news.state == NEWS_DRAWN) return; /* rules 6.11 and 6.8 */
    if (!core_quorum_is_ready(lock)) return;                                   /* rule 6.12 */
    trip_us = index == arbiter_choose(lock) ? 0 : lock->nodes[index].srtt_us;
    draw_pause(lock, validity_add(now_us, trip_us + turn_us(lock)));
}

void wait_on_peek(struct core_lock *lock, uint64_t now_us, const struct core_reply *reply)
{
    /* Rule 6.10: the key changed before the node began to watch it. */
    if (reply->outcome == OUTCOME_MISSING) wait_on_hint(lock, now_us, reply->tag.node);
}

void wait_on_listening(struct core_lock *lock, uint64_t now_us, uint32_t index, bool before_acquire)
{
    struct core_node *node = &lock->nodes[index];
    uint32_t listening = 0;

    assert(index < lock->config->n_nodes);
    node->notices.listening = true;
    node->notices.own = 0;
    /* Rule 6.11: no node was asked before the confirmation, so no notice was missed. */
    if (before_acquire || lock->acquire.attempts == 0) return;
    hear_all(lock);
    for (uint32_t i = 0; i < lock->config->n_nodes; i++) listening += lock->nodes[i].notices.listening;
    if (lock->phase != CORE_WAITING) return;
    /* A quorum that releases includes at least one of these nodes. */
    if (index == arbiter_choose(lock) || listening == lock->config->n_nodes - lock->config->quorum + 1) {
        sooner(lock, validity_add(now_us, node->srtt_us));
    }
}

/* Rule 6.13. */
enum wait_verdict wait_on_wake(struct core_lock *lock, uint64_t now_us, bool yield)
{
    uint64_t srtt_us = quorum_srtt_us(lock);

    hear_all(lock);
    if (lock->phase == CORE_ASKING) lock->news.published = true;
    if (lock->phase != CORE_WAITING) return WAIT_STAY;
    if (lock->config->fair) fair_hear(lock, lock->config->n_nodes, UINT64_MAX);
    if (!core_quorum_is_ready(lock)) {
        lock->news.keys = UINT64_MAX;
        return WAIT_STAY;
    }
    if (lock->config->fair) return fair_is_turn(lock) ? WAIT_TRY_ARBITER : WAIT_STAY;
    if (!yield) return WAIT_TRY_ALL;
    sooner(lock, validity_add(now_us, YIELD_SRTTS * srtt_us + ARBITER_GRACE_US));
    return WAIT_STAY;
}
