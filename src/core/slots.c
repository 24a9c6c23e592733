/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slots.c - permits: which slot of a name is asked for
 *
 * 1. The first attempt asks all nodes for one slot: the one that this process gave back last, or one drawn at random
 *    among those that it does not hold and that no quorum is known to refuse. So it takes one round trip while slots
 *    are plenty.
 * 2. A node that refuses says which slots are free there. While any may be free on a quorum, the next attempt follows
 *    at once: it asks the arbiter alone, which takes the first free slot from the one asked for on, and names it; the
 *    others are asked for that very slot. So only one of many contenders gets each slot. But all nodes are asked for
 *    one, drawn at random, where the arbiter said that it has none of those; and where several are free, and the lock
 *    has not waited for one: that takes one round trip in the place of two, and few contenders draw the same.
 * 3. A slot that a quorum refuses although the arbiter gave it is passed over: the arbiter, which lacks the holder's
 *    key, would give it again and again. So is one of which too little is known to say that it is taken. Until the
 *    holder's lease ends, or it releases, or a quorum says that the slot is free; where votes were split, for as long
 *    as contenders pause.
 * 4. What nodes said counts for two node timeouts: an attempt may wait so long for a node that is frozen. What they
 *    said before the acquire speaks for a slot and not against it.
 * 5. Where the arbiter had not answered in time, and with its vote a quorum may have the slot, the next attempt asks
 *    for that slot behind another arbiter.
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

void core_slots_hold(struct core_slots *slots, uint32_t slot, bool holds)
{
    assert(slot < slots->n);
    /* The nodes will say the same about it. */
    for (uint32_t i = 0; i < CORE_NODES_MAX; i++) {
        slots->nodes[i].free = holds ? slots->nodes[i].free & ~bit(slot) : slots->nodes[i].free | bit(slot);
    }
    slots->ours = holds ? slots->ours | bit(slot) : slots->ours & ~bit(slot);
    if (!holds) slots->last = (uint8_t)slot;
}

/* ---- what the nodes said ---- */

void slots_on_refusal(struct core_slots *slots, const struct core_reply *reply, uint64_t now_us)
{
    struct core_slots_node *node = &slots->nodes[reply->tag.node];

    node->at_us = now_us;
    node->free = reply->free & all_of(slots);
    node->first_us = reply->first_us < 0 ? CORE_NEVER : validity_add(now_us, (uint64_t)reply->first_us);
}

static bool slots_is_news(const struct core_slots_node *node, const struct core_lock *lock, uint64_t now_us)
{
    return node->at_us != 0 && validity_add(node->at_us, 2 * lock->config->node_timeout_us) > now_us;
}

/* Before, the slot may have been held that is free now. */
static bool is_of_acquire(const struct core_slots_node *node, const struct core_lock *lock, uint64_t now_us)
{
    return slots_is_news(node, lock, now_us) && node->at_us >= lock->acquire.begun_us;
}

/* A quorum may grant it: some nodes said that it is free, and with those that said nothing they are enough. */
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

uint64_t slots_shut(struct core_slots *slots, const struct core_lock *lock, uint64_t now_us)
{
    for (uint32_t i = 0; i < slots->n; i++) {
        if ((slots->passed & bit(i)) == 0) continue;
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

/* When the keys that stand in the way will have expired: as long as its lease may be where one has no expiry. */
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

/* It was asked first and had not answered, and with its vote a quorum may have the slot. */
static bool needs_late_arbiter(const struct core_lock *lock, uint32_t yes)
{
    return lock->attempt.arbiter_late && yes + 1 >= lock->config->quorum;
}

void slots_judge(struct core_lock *lock, struct step *step, uint32_t yes, uint64_t split_until_us)
{
    struct core_slots *slots = step->slots;
    uint32_t slot = lock->id.slot;
    uint32_t arbiter = arbiter_choose(lock);
    bool gave = arbiter < lock->config->n_nodes && lock->nodes[arbiter].vote == CORE_VOTE_YES;
    struct core_slot *at = &slots->each[slot];
    uint64_t until_us;

    assert(slot < slots->n);
    assert(lock->attempt.stage == ATTEMPT_DOOMED);
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

/* Those of them that the arbiter has, as far as it said. */
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

bool slots_suit_all(struct core_slots *slots, const struct core_lock *lock, uint64_t now_us)
{
    uint64_t free = known_free(slots, lock, now_us);
    bool several = (free & (free - 1)) != 0;

    if (several && lock->wait.searches) return true;
    return free != 0 && at_arbiter(slots, lock, free, now_us) == 0;
}

/* One of these, drawn at random. */
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

uint8_t slots_choose(struct core_lock *lock, struct step *step, bool all)
{
    struct core_slots *slots = step->slots;
    uint64_t shut = slots_shut(slots, lock, step->now_us);
    uint64_t free = known_free(slots, lock, step->now_us);
    uint8_t last = slots->last;

    /* What is free is not passed over. */
    assert((free & shut) == 0);
    if (all) {
        slots->last = CORE_SLOT_NONE;
        if (last < slots->n && (shut & bit(last)) == 0 && !is_taken(slots, lock, last, step->now_us)) return last;
    } else {
        free = at_arbiter(slots, lock, free, step->now_us);
    }
    if (free != 0) return slots_draw(lock, free);
    /* The holder of the same slot tells how far the arbiter is to be trusted. */
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
