/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attempt.c - one try on all nodes, and its verdict
 *
 * Chapter 1 of src/protocol.md has the rules of an attempt, and chapter 11 those of an adoption, which is an attempt
 * that extends the keys of another client's token. An attempt that fails is released everywhere at once, so that other
 * clients need not wait while this one asks for the reason. Then the acquire fails, or waits (wait.c) and tries again.
 */
#include "attempt.h"

#include <assert.h>
#include <string.h>

#include "arbiter.h"
#include "debt.h"
#include "fair.h"
#include "fence.h"
#include "hold.h"
#include "intent.h"
#include "news.h"
#include "slots.h"
#include "vote.h"

/* A connection may begin a moment after the attempt that waits for it; its own timeout gives the better reason. */
#define CONNECT_GRACE_US 100000u

/* Rule 1.9. */
static uint64_t connect_until_us(const struct core_lock *lock)
{
    const struct core_config *config = lock->config;
    struct vote_tally tally = vote_count(lock);
    bool enough = tally.yes + tally.other >= config->quorum;
    uint64_t patience_us = enough ? config->node_timeout_us : validity_add(config->connect_us, CONNECT_GRACE_US);

    return validity_add(lock->attempt.begun_us, patience_us);
}

/*
 * The node that publishes the release of a failed attempt (rule 2.10) is the arbiter: other clients asked it first, and
 * our key made it refuse them. No node publishes if the lock is held without the arbiter, or if too few nodes can vote:
 * then each client gets the arbiter's yes in turn and fails, and a notice would only make the next client try.
 */
static uint32_t node_that_wakes(const struct core_lock *lock, uint64_t now_us)
{
    struct vote_tally tally;
    bool outage;

    if (lock->phase != CORE_ASKING) return DEBT_WAKES_ALL;
    tally = vote_count(lock);
    outage = lock->attempt.stage == ATTEMPT_FAILED && tally.yes + tally.other + tally.pending < lock->config->quorum;
    if (outage || arbiter_meets_holder(lock, now_us)) return lock->config->n_nodes;
    return arbiter_choose(lock);
}

void attempt_release(struct core_lock *lock, struct step *step)
{
    debt_end_attempt(lock, step, node_that_wakes(lock, step->now_us));
}

static void attempt_fail(struct core_lock *lock, struct step *step, int status)
{
    assert(core_is_acquiring(lock));
    assert(status != CORE_OK);
    intent_withdraw(lock, step);
    lock->phase = CORE_IDLE;
    lock->awaits_room = WAIT_STAY;
    core_notify(lock, CORE_NOTIFY_ACQUIRED, status);
}

void attempt_give_up(struct core_lock *lock, struct step *step, int status)
{
    if (lock->acquire.adopts) {
        debt_waive(lock); /* rule 11.3 */
    } else {
        attempt_release(lock, step); /* rule 2.1 */
    }
    attempt_fail(lock, step, status);
}

static void attempt_ask_others(struct core_lock *lock, struct step *step)
{
    assert(lock->phase == CORE_ASKING);
    lock->attempt.stage = ATTEMPT_ASKS_ALL;
    lock->news.elsewhere_id = 0;
    for (uint32_t i = 0; i < lock->config->n_nodes; i++) {
        uint32_t index = core_arbiter(lock, i);
        struct core_node *node = &lock->nodes[index];

        if (node->vote != CORE_VOTE_NONE) continue;
        if (vote_may_ask(lock, node)) {
            vote_ask(lock, step, index);
        } else if (node->state != NODE_CONNECTING) {
            core_vote_failed(node, node->down_fault);
        }
    }
}

/* A node that an adoption does not ask now may have the keys, too, and gets the release later. */
static void expect_keys(struct core_lock *lock, const struct step *step)
{
    for (struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        if (debt_has_room(lock, step, node)) node->key.until_us = validity_debt_until(step->now_us, lock->lease_us);
    }
}

/* A fair lock waits for a node that is connecting (rule 9.2). */
static void ask_first(struct core_lock *lock, struct step *step, struct plan plan)
{
    lock->attempt.plan = plan;
    if (plan.first >= lock->config->n_nodes) {
        attempt_ask_others(lock, step);
        return;
    }
    lock->attempt.stage = ATTEMPT_ASKS_ARBITER;
    if (vote_may_ask(lock, &lock->nodes[plan.first])) vote_ask(lock, step, plan.first);
}

/* Rules 9.1 and 9.2: one node after the other. */
static void ask_next(struct core_lock *lock, struct step *step)
{
    do {
        ask_first(lock, step, fair_plan(lock, step->now_us));
    } while (lock->attempt.stage == ATTEMPT_ASKS_ARBITER &&
             lock->nodes[lock->attempt.plan.first].vote == CORE_VOTE_FAILED);
}

/* A fair lock asks all nodes for a permit only after it asked the arbiter. */
static struct plan plan_of(const struct core_lock *lock, const struct step *step, enum wait_verdict verdict)
{
    bool again = step->slots != NULL && lock->acquire.attempts > 1;
    bool all = verdict == WAIT_TRY_ALL;

    if (lock->config->fair && !lock->acquire.adopts && !(all && again)) return fair_plan(lock, step->now_us);
    if (!all) return arbiter_plan(lock, step->now_us);
    return (struct plan){.first = lock->config->n_nodes};
}

static void attempt_begin(struct core_lock *lock, struct step *step, enum wait_verdict verdict)
{
    struct attempt *attempt = &lock->attempt;
    struct plan plan;

    assert(step->random != NULL);
    assert(lock->phase == CORE_IDLE || lock->phase == CORE_WAITING || lock->phase == CORE_LOST);
    /* Rules 1.1 and 11.2. */
    if (!lock->acquire.adopts) memcpy(lock->id.token.bytes, step->random, CORE_TOKEN_SIZE);
    backoff_seed(&lock->jitter, step->random + CORE_TOKEN_SIZE);
    lock->phase = CORE_ASKING;
    lock->acquire.attempts++;
    lock->id.number++;
    attempt->begun_us = step->now_us;
    attempt->doubt = DOUBT_NONE;
    attempt->arbiter_late = lock->wait.arbiter_late;
    lock->wait.arbiter_late = false;
    fence_begin(lock, step);
    news_begin(&lock->news);
    lock->hold.round = 0;
    intent_begin(lock);
    vote_clear(lock);
    if (lock->acquire.adopts) expect_keys(lock, step);
    plan = plan_of(lock, step, verdict);
    if (step->slots != NULL) lock->id.slot = slots_choose(lock, step, plan.first == lock->config->n_nodes);
    /* Rule 1.6: a second attempt of one number would count the votes of the first. */
    assert(lock->id.number >= lock->acquire.attempts);
    if (lock->config->fair && !lock->acquire.adopts) fair_begin(lock, step->now_us);
    ask_first(lock, step, plan);
}

/* Rules 1.10, 1.11 and 2.1. */
static void fail_attempt(struct core_lock *lock, struct step *step)
{
    assert(lock->phase == CORE_ASKING);
    assert(lock->attempt.stage == ATTEMPT_ASKS_ALL);
    lock->attempt.stage = ATTEMPT_FAILED;
    attempt_release(lock, step);
    for (uint32_t i = 0; i < lock->config->n_nodes; i++) {
        if (lock->nodes[i].vote == CORE_VOTE_OTHER) vote_peek(lock, step, i);
    }
}

/* Rule 1.11. */
int attempt_wait_status(const struct core_lock *lock)
{
    uint32_t seen = lock->acquire.seen;

    /* Each later attempt has recorded its reason, or was granted too late. */
    if (lock->phase == CORE_ASKING && lock->acquire.attempts == 1 && seen == 0) {
        struct vote_tally tally = vote_count(lock);

        /* Neither, where Q nodes granted and only their token is not agreed yet. */
        if (tally.yes + tally.other < lock->config->quorum) {
            seen = CORE_SEEN_NOQUORUM;
        } else if (tally.other > 0) {
            seen = CORE_SEEN_HELD;
        }
    }
    if (seen == CORE_SEEN_HELD) return CORE_HELD_BY_OTHER;
    return seen == CORE_SEEN_NOQUORUM ? CORE_NOQUORUM : CORE_TIMEDOUT;
}

/*
 * Rule 1.13. Clients that try at the same moment split the votes, so that no client gets the lock. If all clients that
 * try once gave up then, the lock would stay free. So an acquire that tries once goes on for half a node timeout, until
 * the arbiter refuses it: the client with the arbiter's yes gets the lock.
 */
static uint64_t settle_until_us(const struct core_lock *lock)
{
    return validity_add(lock->acquire.until_us, lock->config->node_timeout_us / 2);
}

/*
 * Until when an acquire goes on (rule 6.14). An acquire that tries once waits for its first attempt without a bound. It
 * waits for room for a later attempt, which settles split votes, for about as long as that attempt would take.
 */
static uint64_t goes_on_until_us(const struct core_lock *lock)
{
    if (lock->config->holder.wait_us != 0) return lock->acquire.until_us;
    if (lock->awaits_room == WAIT_STAY || lock->acquire.attempts == 0) return CORE_NEVER;
    return validity_add(settle_until_us(lock), lock->config->node_timeout_us / 2);
}

/* Rule 1.13. */
static bool may_settle(const struct core_lock *lock, uint64_t now_us, int status)
{
    if (status != CORE_HELD_BY_OTHER || lock->attempt.stage == ATTEMPT_ASKS_ARBITER) return false;
    return !arbiter_meets_holder(lock, now_us) && now_us < settle_until_us(lock);
}

/*
 * Rule 1.13. An acquire that tries once makes a second attempt when connections ended before the node timeout. They
 * were old, and a firewall or proxy had dropped them; the nodes are being connected again. It also makes a second
 * attempt after an error that passes: a node that has lost its scripts, for instance, has them again by then.
 */
static bool was_cut_off(const struct core_lock *lock, const struct step *step, int status)
{
    uint64_t until_us = validity_add(lock->attempt.begun_us, lock->config->node_timeout_us);
    uint32_t cut = 0;
    uint32_t voted = 0;

    if (status != CORE_NOQUORUM || lock->acquire.attempts > 1 || step->now_us >= until_us) return false;
    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        voted += node->vote == CORE_VOTE_YES || node->vote == CORE_VOTE_OTHER;
        cut += node->asked.cut && (node->state == NODE_READY || node->state == NODE_CONNECTING);
    }
    return cut + voted >= lock->config->quorum;
}

/* Rule 7.4: another slot may be free, so try it at once. Each attempt rules out a slot, so the search ends. Rule 9.7:
 * the slots that are free behind others in the queue are theirs. */
static bool searches_on(const struct core_lock *lock, const struct step *step, int status)
{
    if (lock->wait.behind) return false;
    return step->slots != NULL && status == CORE_HELD_BY_OTHER && slots_know_free(step->slots, lock, step->now_us);
}

/* The next attempt follows without a pause, as soon as the caller admits it. */
static void ask_all_again(struct core_lock *lock)
{
    lock->phase = CORE_WAITING;
    lock->awaits_room = WAIT_TRY_ALL;
    lock->wait.poll_at_us = lock->wait.retry_at_us = CORE_NEVER;
}

/* After a failed attempt: search on (rule 7.4), ask once more (rule 1.13), fail, or wait (chapter 6). */
static void wait_or_fail(struct core_lock *lock, struct step *step, int status)
{
    bool first = lock->acquire.attempts == 1 || lock->wait.searches;

    lock->log |= CORE_LOG_ATTEMPT_FAILED;
    if (searches_on(lock, step, status)) {
        lock->phase = CORE_WAITING;
        lock->wait.searches = first;
        lock->wait.poll_at_us = lock->wait.retry_at_us =
            lock->config->fair ? fair_search_at_us(lock, step->now_us) : step->now_us;
        return;
    }
    if (lock->config->holder.wait_us == 0 && was_cut_off(lock, step, status)) {
        ask_all_again(lock);
        return;
    }
    if (lock->config->holder.wait_us == 0 && !may_settle(lock, step->now_us, status)) {
        attempt_fail(lock, step, status);
        return;
    }
    wait_begin(lock, step, status == CORE_NOQUORUM ? AWAIT_NODES : AWAIT_HOLDER);
    intent_leave(lock, step);
    if (lock->config->holder.wait_us == 0) {
        lock->wait.retry_at_us = core_smaller(lock->wait.retry_at_us, settle_until_us(lock));
    }
}

/*
 * Rule 1.12. Count the nodes that will not vote because of this fault, however long the acquire waits.
 *
 * A refused login counts as missing rights (FAULT_CLASS_AUTH) for an acquire that tries once, and for a client that has
 * never logged in at any node.
 */
static uint32_t failed_for_good(const struct core_lock *lock, const struct step *step, const struct vote_tally *tally,
                                enum fault_class fault)
{
    bool may_log_in = step->logged_in && lock->config->holder.wait_us != 0;

    if (fault != FAULT_CLASS_AUTH || may_log_in) return tally->failed[fault];
    return tally->failed[FAULT_CLASS_AUTH] + tally->failed[FAULT_CLASS_LOGIN];
}

/* Return the status for faults of the nodes that last, or 0 (rule 1.12). */
static int permanent_status(const struct core_lock *lock, const struct step *step, const struct vote_tally *tally)
{
    static const struct {
        enum fault_class fault;
        int status;
    } permanent[] = {{FAULT_CLASS_FOREIGN, CORE_FOREIGN_KEY},
                     {FAULT_CLASS_AUTH, CORE_NO_AUTH},
                     {FAULT_CLASS_PROTO, CORE_NO_PROTO},
                     {FAULT_CLASS_CONFIG, CORE_INVAL}};
    uint32_t spare = lock->config->n_nodes - lock->config->quorum;

    for (size_t i = 0; i < sizeof(permanent) / sizeof(permanent[0]); i++) {
        if (failed_for_good(lock, step, tally, permanent[i].fault) > spare) return permanent[i].status;
    }
    return 0;
}

/* Rule 1.11: the failed attempt ends. */
static void conclude(struct core_lock *lock, struct step *step, const struct vote_tally *tally)
{
    bool held = tally->yes + tally->other >= lock->config->quorum;
    int status = permanent_status(lock, step, tally);

    /* The attempt was released, so it is no grant, whatever its votes are. */
    assert(lock->phase == CORE_ASKING);
    assert(lock->attempt.stage == ATTEMPT_FAILED);
    if (status != 0) {
        attempt_fail(lock, step, status);
        return;
    }
    lock->acquire.seen |= held ? CORE_SEEN_HELD : CORE_SEEN_NOQUORUM;
    if (step->slots != NULL && held)
        slots_judge(lock, step, tally->yes, validity_add(step->now_us, wait_split_us(lock)));
    wait_or_fail(lock, step, held ? CORE_HELD_BY_OTHER : CORE_NOQUORUM);
    assert(lock->phase == CORE_WAITING || core_is_pending(lock, CORE_NOTIFY_ACQUIRED));
    arbiter_learn(lock);
}

/* Until when an outstanding vote is waited for while another client is in the way (rule 1.10). */
static uint64_t late_at(const struct core_lock *lock, const struct core_node *node)
{
    if (vote_may_still_connect(node)) return arbiter_timeout(node, lock->attempt.begun_us);
    return node->doubt.overdue ? 0 : arbiter_timeout(node, node->asked.at_us);
}

/* When a quorum gets out of reach without late votes (rule 1.10). CORE_NEVER: no other client is in the way. */
static uint64_t hopeless_at(const struct core_lock *lock, const struct vote_tally *tally)
{
    uint32_t quorum = lock->config->quorum;
    uint64_t late_us[CORE_NODES_MAX];
    uint32_t pending = 0;

    /* An acquire that tries once, and an adoption, have no later attempt, so they wait for late votes. */
    if (lock->config->holder.wait_us == 0 || lock->acquire.adopts) return CORE_NEVER;
    if (tally->yes >= quorum || tally->yes + tally->other < quorum) return CORE_NEVER;
    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        bool comes = node->vote == CORE_VOTE_PENDING || vote_may_still_connect(node);

        if (comes) late_us[pending++] = late_at(lock, node);
    }
    return validity_of_quorum(late_us, pending, quorum - tally->yes);
}

/* Rule 9.4. A node refused because of a holder that has released the lock since, and keeps a place for this lock. When
 * that place is left, the node must have our key, or it would say yes to another lock, whose attempt fails in vain. */
static void ask_where_queued(struct core_lock *lock, struct step *step)
{
    assert(lock->phase == CORE_GRANTED && lock->attempt.stage == ATTEMPT_ASKS_ALL);
    for (uint32_t i = 0; i < lock->config->n_nodes; i++) {
        struct core_node *node = &lock->nodes[i];
        bool queued = (lock->wait.queues >> i & 1u) != 0;

        if (!queued || node->vote != CORE_VOTE_OTHER || !vote_may_ask(lock, node)) continue;
        node->vote = CORE_VOTE_NONE;
        node->gone = false;
        vote_ask(lock, step, i);
    }
}

/* A quorum said yes (rule 1.4). Return false if it cannot agree on a fencing token (rule 5.2). */
static bool agree(struct core_lock *lock, struct step *step, uint32_t pending)
{
    switch (lock->config->fencing ? fence_judge(lock, step, pending) : FENCE_AGREED) {
    case FENCE_AGREED:
        hold_grant(lock, step->now_us);
        ask_where_queued(lock, step);
        intent_withdraw(lock, step);
        break;
    case FENCE_HOPELESS: return false;
    case FENCE_WAIT: break;
    }
    return true;
}

/* Rules 11.2 and 11.3. */
static void judge_adoption(struct core_lock *lock, struct step *step)
{
    struct vote_tally tally = vote_count(lock);
    uint32_t gone = 0;
    int status;

    assert(lock->attempt.stage == ATTEMPT_ASKS_ALL);
    if (tally.yes >= lock->config->quorum && agree(lock, step, tally.pending)) return;
    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) gone += node->gone;
    tally = vote_count(lock);
    if (gone > lock->config->n_nodes - lock->config->quorum) {
        debt_end_attempt(lock, step, DEBT_WAKES_ALL);
        attempt_fail(lock, step, CORE_LOST_LOCK);
    } else if (tally.pending == 0) {
        status = permanent_status(lock, step, &tally);
        attempt_give_up(lock, step, status != 0 ? status : CORE_NOQUORUM);
    }
}

/* Rule 7.6: the slot that the arbiter took is unknown, so no slot may be held with this token. */
static void begin_anew(struct core_lock *lock, struct step *step)
{
    assert(lock->attempt.stage == ATTEMPT_ASKS_ARBITER);
    lock->wait.arbiter_late = lock->nodes[lock->attempt.plan.first].vote == CORE_VOTE_PENDING;
    debt_end_attempt(lock, step, lock->attempt.plan.first);
    ask_all_again(lock);
}

/*
 * Act on the arbiter's answer, or on its delay (rules 6.1 to 6.3). Return true if the other nodes have now been asked,
 * too.
 *
 * After the arbiter's refusal no node has our key: only the arbiter was asked, and it answered on the same connection
 * that it has another client's key.
 */
static bool judge_arbiter(struct core_lock *lock, struct step *step)
{
    struct core_node *node = &lock->nodes[lock->attempt.plan.first];

    assert(lock->attempt.plan.first < lock->config->n_nodes);
    /* Rule 6.3: a doubted refusal asks the other nodes at once, so the arbiter is judged once an attempt. */
    assert(lock->attempt.doubt == DOUBT_NONE);
    assert(node->vote != CORE_VOTE_NONE || lock->config->fair);
    if (node->vote == CORE_VOTE_OTHER) {
        node->key.until_us = 0;
        if (lock->wait.behind || !arbiter_doubt(lock)) {
            /* Rule 9.2: a former arbiter of this attempt may still grant. */
            if (lock->config->fair) debt_end_attempt(lock, step, lock->config->n_nodes);
            /* Rule 1.11: the other nodes were not asked, so their states tell contention from outage. */
            lock->acquire.seen |= core_quorum_is_ready(lock) ? CORE_SEEN_HELD : CORE_SEEN_NOQUORUM;
            wait_or_fail(lock, step, CORE_HELD_BY_OTHER);
            return false;
        }
    }
    if (node->vote == CORE_VOTE_PENDING || (vote_may_still_connect(node) && !node->doubt.broken)) {
        if (step->now_us < lock->attempt.plan.until_us) return false;
        node->doubt.overdue = true;
    }
    if (node->vote == CORE_VOTE_YES || node->vote == CORE_VOTE_OTHER) {
        attempt_ask_others(lock, step);
        return true;
    }
    switch (lock->attempt.plan.on_silence) {
    case SILENCE_ASKS_REST: attempt_ask_others(lock, step); break;
    case SILENCE_ASKS_NEXT: ask_next(lock, step); break;
    case SILENCE_BEGINS_ANEW: begin_anew(lock, step); break;
    }
    return lock->attempt.stage != ATTEMPT_ASKS_ARBITER;
}

static void attempt_judge(struct core_lock *lock, struct step *step)
{
    struct attempt *attempt = &lock->attempt;
    uint32_t quorum = lock->config->quorum;
    struct vote_tally tally;
    bool voted;
    bool explained;

    if (lock->phase != CORE_ASKING) return;
    if (lock->acquire.adopts) {
        judge_adoption(lock, step);
        return;
    }
    if (attempt->stage == ATTEMPT_ASKS_ARBITER && !judge_arbiter(lock, step)) return;
    tally = vote_count(lock);
    if (attempt->stage == ATTEMPT_ASKS_ALL) {
        /* Rules 1.4 and 1.10. */
        if (tally.yes >= quorum) {
            if (!agree(lock, step, tally.pending)) fail_attempt(lock, step);
        } else if (tally.yes + tally.pending < quorum || step->now_us >= hopeless_at(lock, &tally)) {
            fail_attempt(lock, step);
        }
        if (attempt->stage == ATTEMPT_ASKS_ALL) return;
        tally = vote_count(lock);
    }
    if (attempt->doubt == DOUBT_OPEN && step->now_us >= arbiter_doubt_until(lock)) {
        attempt->doubt = DOUBT_SETTLED;
    }
    /* Rule 1.11. */
    voted = (tally.yes + tally.other >= quorum && attempt->doubt != DOUBT_OPEN) || tally.pending == 0;
    explained = tally.peeking == 0 || tally.peeked >= quorum;
    if (voted && explained) conclude(lock, step, &tally);
}

void attempt_try(struct core_lock *lock, struct step *step, enum wait_verdict verdict)
{
    if (verdict == WAIT_STAY) return;
    /* The attempt before has ended and was released. */
    assert(!core_is_acquiring(lock) || lock->phase == CORE_WAITING);
    assert(lock->phase != CORE_HELD);
    if (!step->no_attempt && step->random != NULL && lock->awaits_room == WAIT_STAY) {
        attempt_begin(lock, step, verdict);
        attempt_judge(lock, step);
    } else {
        /* Rule 14.1: the caller admits the attempts of all locks in the order of their requests. */
        if (lock->awaits_room != WAIT_TRY_ALL) lock->awaits_room = verdict;
        lock->phase = CORE_WAITING;
        lock->wait.retry_at_us = CORE_NEVER;
    }
}

void attempt_on_room(struct core_lock *lock, struct step *step)
{
    enum wait_verdict queued = lock->awaits_room;

    lock->awaits_room = WAIT_STAY;
    attempt_try(lock, step, queued);
}

void attempt_begin_acquire(struct core_lock *lock, struct step *step, const struct core_acquire *acquire)
{
    uint64_t begun_us = acquire->begun_us != 0 ? acquire->begun_us : step->now_us;

    assert(begun_us <= step->now_us);
    lock->acquire = (struct acquire){
        .begun_us = begun_us, .until_us = validity_add(begun_us, lock->config->holder.wait_us), .seen = acquire->seen};
    if (acquire->adopts != NULL) {
        lock->acquire.adopts = true;
        lock->acquire.until_us = CORE_NEVER;
        lock->id.token = *acquire->adopts;
        lock->id.fence = 0;
    }
    lock->lease_us = lock->config->lease_us;
    lock->wait = (struct wait){.poll_at_us = CORE_NEVER, .retry_at_us = CORE_NEVER};
    lock->news = (struct news){0};
    lock->belief = (struct belief){0};
    if (step->random != NULL) backoff_seed(&lock->jitter, step->random + CORE_TOKEN_SIZE);
    for (struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        node->asked = (struct core_asked){.holder = {.ttl_us = -2}};
        node->vote = node->last_vote = CORE_VOTE_NONE;
        memset(&node->notices, 0, sizeof(node->notices));
    }
    if (acquire->behind && lock->config->holder.wait_us != 0) {
        wait_behind(lock, step->now_us);
    } else {
        attempt_try(lock, step, WAIT_TRY_ALL);
    }
}

/* Rule 1.9. */
static void give_up_connecting(struct core_lock *lock, uint64_t now_us)
{
    if (now_us < connect_until_us(lock)) return;
    for (struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        if (vote_may_still_connect(node)) core_vote_failed(node, FAULT_CLASS_TEMPORARY);
    }
}

void attempt_on_timer(struct core_lock *lock, struct step *step)
{
    if (lock->phase != CORE_ASKING && lock->phase != CORE_WAITING) return;
    if (step->now_us >= goes_on_until_us(lock)) { /* rule 6.14 */
        int status = attempt_wait_status(lock);

        if (status == CORE_HELD_BY_OTHER) lock->acquire.seen |= CORE_SEEN_HELD;
        if (status == CORE_NOQUORUM) lock->acquire.seen |= CORE_SEEN_NOQUORUM;
        attempt_give_up(lock, step, status);
        return;
    }
    if (lock->phase == CORE_WAITING && step->now_us >= lock->wait.retry_at_us) {
        bool all = step->slots != NULL && !lock->wait.behind && slots_suit_all(step->slots, lock, step->now_us);

        attempt_try(lock, step, all ? WAIT_TRY_ALL : WAIT_TRY_ARBITER);
    }
    if (lock->attempt.stage != ATTEMPT_ASKS_ARBITER) give_up_connecting(lock, step->now_us);
    attempt_judge(lock, step);
}

/* Rules 1.4 and 1.9: a node that was still connecting at the grant adds its vote, until the first renewal asks it
 * anyway. If the nodes have no room, a held lock does without that vote: many such locks at once would fill the node's
 * queue. */
static bool still_asks(const struct core_lock *lock, const struct step *step)
{
    if (lock->phase == CORE_ASKING) return lock->attempt.stage == ATTEMPT_ASKS_ALL;
    if (lock->phase != CORE_GRANTED && lock->phase != CORE_HELD) return false;
    return !step->no_attempt;
}

void attempt_on_node_state(struct core_lock *lock, struct step *step, uint32_t index)
{
    struct core_node *node = &lock->nodes[index];
    bool asking = lock->phase == CORE_ASKING;

    assert(index < lock->config->n_nodes);
    if (asking && node->state == NODE_READY) fence_renew_floor(lock, step->now_us); /* rule 5.5 */
    if (vote_may_ask(lock, node) && node->vote == CORE_VOTE_NONE) {
        bool awaited = asking && lock->attempt.stage == ATTEMPT_ASKS_ARBITER && index == lock->attempt.plan.first;

        if (awaited) lock->attempt.plan = fair_plan_at(lock, index, step->now_us);
        if (awaited || still_asks(lock, step)) {
            vote_ask(lock, step, index);
        } else if (asking && lock->attempt.stage == ATTEMPT_FAILED) {
            vote_ask_holder(lock, step, index);
        }
    }
    if (asking) {
        /* While the arbiter alone is asked another node may come back before its vote is needed. */
        if (node->state != NODE_CONNECTING && node->vote == CORE_VOTE_NONE &&
            (lock->attempt.stage != ATTEMPT_ASKS_ARBITER || index == lock->attempt.plan.first)) {
            core_vote_failed(node, node->down_fault);
        }
        if (!core_can_talk(node)) vote_connection_ended(node);
        vote_quarantined(lock, node);
        attempt_judge(lock, step);
    } else if (lock->phase == CORE_WAITING) {
        wait_on_node_state(lock, step, index);
    }
}

void attempt_on_reply(struct core_lock *lock, struct step *step, const struct core_reply *reply)
{
    vote_on_reply(lock, step, reply);
    if (lock->phase == CORE_ASKING) {
        attempt_judge(lock, step);
    } else if (reply->tag.op == OP_PEEK) {
        wait_on_peek(lock, step->now_us, reply);
    } else {
        hold_late_vote(lock, step);
    }
}

/* Rule 3.13. */
void attempt_on_step(struct core_lock *lock, struct step *step, uint32_t index, uint64_t before_us)
{
    struct core_node *node = &lock->nodes[index];

    assert(index < lock->config->n_nodes);
    if (lock->phase != CORE_ASKING || node->vote != CORE_VOTE_YES || node->key.sent_us >= before_us) return;
    core_vote_failed(node, FAULT_CLASS_TEMPORARY);
    node->asked.follow_up = FOLLOW_UP_NONE;
    attempt_judge(lock, step);
}

/* Rule 1.5. */
void attempt_too_late(struct core_lock *lock, struct step *step)
{
    assert(lock->phase == CORE_GRANTED);
    if (lock->acquire.adopts) {
        attempt_give_up(lock, step, CORE_TIMEDOUT);
        return;
    }
    attempt_release(lock, step);
    wait_or_fail(lock, step, CORE_TIMEDOUT);
    assert(lock->phase != CORE_GRANTED);
}

/* Rules 1.9, 1.10 and 6.3. */
static uint64_t timeouts_end_us(const struct core_lock *lock)
{
    uint64_t ends_us = CORE_NEVER;

    assert(lock->attempt.stage != ATTEMPT_ASKS_ARBITER);
    if (lock->attempt.stage != ATTEMPT_FAILED) {
        struct vote_tally tally = vote_count(lock);

        ends_us = hopeless_at(lock, &tally);
    } else if (arbiter_doubt_until(lock) != 0) {
        ends_us = arbiter_doubt_until(lock);
    }
    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        if (vote_may_still_connect(node)) return core_smaller(ends_us, connect_until_us(lock));
    }
    return ends_us;
}

uint64_t attempt_deadline(const struct core_lock *lock)
{
    uint64_t deadline_us = lock->wait.retry_at_us;

    assert(lock->phase == CORE_ASKING || lock->phase == CORE_WAITING);
    if (lock->phase == CORE_ASKING) {
        deadline_us = lock->attempt.stage == ATTEMPT_ASKS_ARBITER ? lock->attempt.plan.until_us : timeouts_end_us(lock);
    }
    return core_smaller(deadline_us, goes_on_until_us(lock));
}
