/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slots.c - permits: which slot of a name is asked for
 *
 * Chapter 7 of src/protocol.md has the rules.
 *
 * - The next attempt asks all nodes for one random slot, and not the arbiter, if the arbiter has reported that none of
 *   the slots that may be free is free there. It does so, too, if several slots are free and the lock has not paused
 *   yet: this takes one round trip instead of two, and few contenders draw the same slot.
 * - After split votes a slot is passed over while contenders pause. A slot of unknown state is passed over, too.
 * - A report from before the acquire can show that a slot is free, but not that it is taken.
 * - If the vote of a late arbiter could complete a quorum, the next attempt asks for the same slot through another
 *   arbiter.
 */
#include "slots.h"

#include <assert.h>
#include <string.h>

#include "arbiter.h"

size_t core_slots_size(uint32_t n)
{
    assert(n > 0 && n <= CORE_SLOTS_MAX);
    return sizeof(struct core_slots) + n * sizeof(struct core_slot);
}

void core_slots_init(struct core_slots *slots, uint32_t n)
{
    assert(n > 0 && n <= CORE_SLOTS_MAX);
    assert(slots->ours == 0 && slots->passed == 0);
    slots->n = n;
    slots->last = CORE_SLOT_NONE;
}

static uint64_t bit(uint32_t slot)
{
    assert(slot < CORE_SLOTS_MAX);
    return UINT64_C(1) << slot;
}

static uint64_t all_of(const struct core_slots *slots)
{
    return slots->n >= CORE_SLOTS_MAX ? UINT64_MAX : bit(slots->n) - 1;
}

/* Rule 7.1. */
void core_slots_hold(struct core_slots *slots, uint32_t slot, bool holds)
{
    assert(slot < slots->n);
    /* The nodes will report the same. */
    for (uint32_t i = 0; i < CORE_NODES_MAX; i++) {
        slots->nodes[i].free = holds ? slots->nodes[i].free & ~bit(slot) : slots->nodes[i].free | bit(slot);
    }
    slots->ours = holds ? slots->ours | bit(slot) : slots->ours & ~bit(slot);
    if (!holds) slots->last = (uint8_t)slot;
}

/* ---- reports of the nodes ---- */

void slots_on_refusal(struct core_slots *slots, const struct core_reply *reply, uint64_t now_us)
{
    struct core_slots_node *node = &slots->nodes[reply->tag.node];

    node->at_us = now_us;
    node->free = reply->free & all_of(slots);
    node->first_us = reply->first_us < 0 ? CORE_NEVER : validity_add(now_us, (uint64_t)reply->first_us);
}

/* Rule 7.4: a report counts for two node timeouts, for an attempt may wait that long for a frozen node. */
static bool slots_is_news(const struct core_slots_node *node, const struct core_lock *lock, uint64_t now_us)
{
    return node->at_us != 0 && validity_add(node->at_us, 2 * lock->config->node_timeout_us) > now_us;
}

/* A slot that was taken before the acquire may be free now. */
static bool is_of_acquire(const struct core_slots_node *node, const struct core_lock *lock, uint64_t now_us)
{
    return slots_is_news(node, lock, now_us) && node->at_us >= lock->acquire.begun_us;
}

/* Rule 7.4: a quorum may grant the slot if at least one node reports it as free, and with the nodes without a report
 * they are a quorum. */
static bool slots_may_be_free(const struct core_slots *slots, const struct core_lock *lock, uint32_t slot,
                              uint64_t now_us)
{
    uint32_t free = 0;
    uint32_t silent = 0;

    for (uint32_t i = 0; i < lock->config->n_nodes; i++) {
        const struct core_slots_node *node = &slots->nodes[i];

        if (slots_is_news(node, lock, now_us) && (node->free & bit(slot)) != 0) {
            free++;
        } else if (!is_of_acquire(node, lock, now_us) && lock->nodes[i].state == NODE_READY) {
            silent++;
        }
    }
    return free > 0 && free + silent >= lock->config->quorum;
}

static bool is_taken(const struct core_slots *slots, const struct core_lock *lock, uint32_t slot, uint64_t now_us)
{
    uint32_t taken = 0;

    for (uint32_t i = 0; i < lock->config->n_nodes; i++) {
        taken += is_of_acquire(&slots->nodes[i], lock, now_us) && (slots->nodes[i].free & bit(slot)) == 0;
    }
    return taken > lock->config->n_nodes - lock->config->quorum;
}

/* ---- slots that are passed over ---- */

static bool is_free_again(const struct core_slots *slots, const struct core_lock *lock, uint32_t slot)
{
    uint32_t free = 0;

    for (uint32_t i = 0; i < lock->config->n_nodes; i++) {
        free += slots->nodes[i].at_us > slots->each[slot].since_us && (slots->nodes[i].free & bit(slot)) != 0;
    }
    return free >= lock->config->quorum;
}

/* Rule 7.5. */
uint64_t slots_shut(struct core_slots *slots, const struct core_lock *lock, uint64_t now_us)
{
    for (uint32_t i = 0; i < slots->n; i++) {
        if (slots->each[i].until_us <= now_us || is_free_again(slots, lock, i)) slots->passed &= ~bit(i);
    }
    assert(((slots->passed | slots->ours) & ~all_of(slots)) == 0);
    return slots->passed | slots->ours;
}

void slots_on_notice(struct core_slots *slots, uint64_t holder_id)
{
    for (uint32_t i = 0; i < slots->n; i++) {
        if (holder_id == 0 || slots->each[i].holder_id == holder_id) slots->passed &= ~bit(i);
    }
}

/* When the keys in the way will have expired. A key without expiry counts for one lease. */
static uint64_t holders_until_us(const struct core_lock *lock, uint64_t now_us, uint64_t *ret_holder_id)
{
    uint64_t until_us = now_us;

    *ret_holder_id = 0;
    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        int64_t ttl_us = node->vote == CORE_VOTE_OTHER ? node->asked.holder.ttl_us : 0;

        if (node->vote == CORE_VOTE_OTHER && *ret_holder_id == 0) *ret_holder_id = node->asked.holder.id;
        if (ttl_us == -1) ttl_us = (int64_t)lock->lease_us;
        if (ttl_us > 0) until_us = core_larger(until_us, validity_add(now_us, (uint64_t)ttl_us));
    }
    assert(until_us >= now_us);
    return until_us;
}

/* Rule 7.6: the arbiter had not answered in time, and its vote could complete a quorum. */
static bool needs_late_arbiter(const struct core_lock *lock, uint32_t yes)
{
    return lock->attempt.arbiter_late && yes + 1 >= lock->config->quorum;
}

/* Rule 7.5. */
void slots_judge(struct core_lock *lock, struct step *step, uint32_t yes, uint64_t split_until_us)
{
    struct core_slots *slots = step->slots;
    uint32_t slot = lock->id.slot;
    uint32_t arbiter = arbiter_choose(lock);
    bool gave = arbiter < lock->config->n_nodes && lock->nodes[arbiter].vote == CORE_VOTE_YES;
    struct core_slot *at = &slots->each[slot];
    uint64_t until_us;

    assert(slot < slots->n);
    assert(lock->attempt.stage == ATTEMPT_FAILED);
    if (needs_late_arbiter(lock, yes)) return;
    if (!gave && is_taken(slots, lock, slot, step->now_us)) return;
    until_us = holders_until_us(lock, step->now_us, &at->holder_id);
    if (arbiter_meets_holder(lock, step->now_us)) {
        lock->wait.splits = 0;
    } else {
        until_us = core_smaller(until_us, split_until_us);
    }
    at->since_us = step->now_us;
    at->until_us = until_us;
    slots->passed |= bit(slot);
}

/* ---- the next slot ---- */

static uint64_t known_free(struct core_slots *slots, const struct core_lock *lock, uint64_t now_us)
{
    uint64_t free = all_of(slots) & ~slots_shut(slots, lock, now_us);

    for (uint32_t i = 0; i < slots->n; i++) {
        if ((free & bit(i)) != 0 && !slots_may_be_free(slots, lock, i, now_us)) free &= ~bit(i);
    }
    return free;
}

/* The slots among these that the arbiter reports as free; all of them without a report. */
static uint64_t at_arbiter(const struct core_slots *slots, const struct core_lock *lock, uint64_t free, uint64_t now_us)
{
    uint32_t arbiter = arbiter_choose(lock);

    if (arbiter == lock->config->n_nodes || !slots_is_news(&slots->nodes[arbiter], lock, now_us)) return free;
    return free & slots->nodes[arbiter].free;
}

bool slots_know_free(struct core_slots *slots, const struct core_lock *lock, uint64_t now_us)
{
    return known_free(slots, lock, now_us) != 0;
}

/* Rule 7.2. */
bool slots_suit_all(struct core_slots *slots, const struct core_lock *lock, uint64_t now_us)
{
    uint64_t free = known_free(slots, lock, now_us);
    bool several = (free & (free - 1)) != 0;

    if (several && lock->wait.searches) return true;
    return free != 0 && at_arbiter(slots, lock, free, now_us) == 0;
}

/* Draw one of these slots at random. */
static uint8_t slots_draw(struct core_lock *lock, uint64_t from)
{
    uint64_t places = 0;
    uint8_t slot = 0;

    assert(from != 0);
    for (uint64_t rest = from; rest != 0; rest &= rest - 1) places++;
    for (places = backoff_uniform(&lock->jitter, places - 1); places > 0; places--) from &= from - 1;
    while ((from & bit(slot)) == 0) slot++;
    assert(slot < CORE_SLOTS_MAX);
    return slot;
}

/* Rule 7.2. */
uint8_t slots_choose(struct core_lock *lock, struct step *step, bool all)
{
    struct core_slots *slots = step->slots;
    uint64_t shut = slots_shut(slots, lock, step->now_us);
    uint64_t free = known_free(slots, lock, step->now_us);
    uint8_t last = slots->last;

    /* A free slot is not passed over. */
    assert((free & shut) == 0);
    if (all) {
        slots->last = CORE_SLOT_NONE;
        if (last < slots->n && (shut & bit(last)) == 0 && !is_taken(slots, lock, last, step->now_us)) return last;
    } else {
        free = at_arbiter(slots, lock, free, step->now_us);
    }
    if (free != 0) return slots_draw(lock, free);
    /* The refusals of the same slot show how far the arbiter can be trusted. */
    if (!all && lock->acquire.attempts > 1) return lock->id.slot;
    if ((all_of(slots) & ~shut) != 0) return slots_draw(lock, all_of(slots) & ~shut);
    return slots_draw(lock, all_of(slots));
}

uint64_t slots_free_us(const struct core_slots *slots, const struct core_lock *lock)
{
    uint64_t first_us = CORE_NEVER;

    for (uint32_t i = 0; i < lock->config->n_nodes; i++) {
        if (lock->nodes[i].vote == CORE_VOTE_OTHER) first_us = core_smaller(first_us, slots->nodes[i].first_us);
    }
    for (uint32_t i = 0; i < slots->n; i++) {
        if ((slots->passed & bit(i)) != 0) first_us = core_smaller(first_us, slots->each[i].until_us);
    }
    assert(slots->n == lock->config->permits);
    return first_us;
}
