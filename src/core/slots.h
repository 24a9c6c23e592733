/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slots.h - permits: which slot of a name is asked for
 *
 * Rule 7.1: a permit is a slot, and a slot is a lock, so a name has at most as many holders as slots. An attempt asks
 * for one slot. This file only chooses the slot; no vote depends on it.
 */
#pragma once

#include "types.h"

/* A node's report of all slots, from its latest refusal. */
struct core_slots_node {
    uint64_t at_us;    /* when the report came; 0: never */
    uint64_t free;     /* slots that are free there, a bit each */
    uint64_t first_us; /* when the first lease ends of the slots that were not passed over; CORE_NEVER: no lease ends */
};

/* A slot that is passed over (rule 7.5). */
struct core_slot {
    uint64_t since_us, until_us;
    uint64_t holder_id; /* the holder whose lease ends at until_us; 0: unknown */
};

/* The slots of one name. The caller owns the block of core_slots_size bytes, for all its locks of that name. */
struct core_slots {
    uint32_t n;
    uint8_t last;    /* the slot that one of these locks released last; CORE_SLOT_NONE: none since the last attempt */
    uint64_t ours;   /* slots that these locks hold, a bit each */
    uint64_t passed; /* slots that are passed over, a bit each */
    struct core_slots_node nodes[CORE_NODES_MAX];
    struct core_slot each[];
};

struct core_lock;
struct step;

/* core_slots_size - return the bytes that n slots need. */
size_t core_slots_size(uint32_t n);
/* core_slots_init - make n slots from a zeroed block. */
void core_slots_init(struct core_slots *, uint32_t n);
/* core_slots_hold - record that one of the locks now holds the slot, or holds it no more. */
void core_slots_hold(struct core_slots *, uint32_t slot, bool holds);

/* slots_choose - return the slot for an attempt that begins. all: the attempt asks all nodes at once. */
uint8_t slots_choose(struct core_lock *, struct step *, bool all);
/* slots_shut - return the slots that the arbiter must pass over, a bit each. */
uint64_t slots_shut(struct core_slots *, const struct core_lock *, uint64_t now_us);
/* slots_on_refusal - take the report in a node's refusal. */
void slots_on_refusal(struct core_slots *, const struct core_reply *, uint64_t now_us);
/* slots_on_notice - take the notice that this holder released its slot. holder_id 0: an unknown holder. */
void slots_on_notice(struct core_slots *, uint64_t holder_id);
/* slots_judge - after a failed attempt, decide whether its slot is passed over (rule 7.5). yes: nodes that granted.
 * split_until_us: until when the slot is passed over after split votes. */
void slots_judge(struct core_lock *, struct step *, uint32_t yes, uint64_t split_until_us);
/* slots_know_free - tell whether any slot may be free on a quorum, by the latest reports. */
bool slots_know_free(struct core_slots *, const struct core_lock *, uint64_t now_us);
/* slots_suit_all - tell whether the next attempt asks all nodes at once for such a slot (rule 7.2). */
bool slots_suit_all(struct core_slots *, const struct core_lock *, uint64_t now_us);
/* slots_free_us - return when the first lease in the way ends. */
uint64_t slots_free_us(const struct core_slots *, const struct core_lock *);
