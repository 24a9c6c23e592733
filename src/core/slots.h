/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slots.h - permits: which slot of a name is asked for
 *
 * A permit is a slot, and a slot is a lock: at most as many hold a name as it has slots. An attempt asks for one slot;
 * what is here only decides for which, and no vote depends on it.
 */
#pragma once

#include "types.h"

/* What a node said about all slots when it refused one. */
struct core_slots_node {
    uint64_t at_us;    /* when it answered; 0: never */
    uint64_t free;     /* slots that are free there, a bit each */
    uint64_t first_us; /* when the lease ends that ends first of those not passed over; CORE_NEVER: none does */
};

/* A slot that a quorum refused although the arbiter gave it. */
struct core_slot {
    uint64_t since_us, until_us;
    uint64_t holder_id; /* whose lease ends then; 0: unknown */
};

/* Of a name with so many permits. The caller's block of core_slots_size, for all its locks of that name. */
struct core_slots {
    uint32_t n;
    uint8_t last;    /* the slot that one of these locks gave back last; CORE_SLOT_NONE: none since an attempt asked */
    uint64_t ours;   /* slots that these locks hold, a bit each */
    uint64_t passed; /* slots that are passed over */
    struct core_slots_node nodes[CORE_NODES_MAX];
    struct core_slot each[];
};

struct core_lock;
struct step;

size_t core_slots_size(uint32_t n);
/* core_slots_init - of a zeroed block. core_slots_hold: one of the locks holds the slot from now on, or no more. */
void core_slots_init(struct core_slots *, uint32_t n);
void core_slots_hold(struct core_slots *, uint32_t slot, bool holds);

/* slots_choose - the slot that the attempt which begins asks for; all: it asks all nodes at once. */
uint8_t slots_choose(struct core_lock *, struct step *, bool all);
/* slots_shut - what the arbiter is to pass over, a bit each. */
uint64_t slots_shut(struct core_slots *, const struct core_lock *, uint64_t now_us);
/* slots_on_refusal - a node's answer. */
void slots_on_refusal(struct core_slots *, const struct core_reply *, uint64_t now_us);
/* slots_on_notice - that holder released its slot; 0: one whose name is unknown. */
void slots_on_notice(struct core_slots *, uint64_t holder_id);
/* slots_judge - the nodes were asked for a slot, and no quorum granted it, so many did: whether it is passed over, and
 * until when at least where the votes were split. */
void slots_judge(struct core_lock *, struct step *, uint32_t yes, uint64_t split_until_us);
/* slots_know_free - a slot other than those is free on a quorum, as far as the nodes said just now. slots_suit_all:
 * the next attempt asks all nodes for one of these, and not the arbiter first. */
bool slots_know_free(struct core_slots *, const struct core_lock *, uint64_t now_us);
bool slots_suit_all(struct core_slots *, const struct core_lock *, uint64_t now_us);
/* slots_free_us - when the first lease ends that stands in the way, by itself. */
uint64_t slots_free_us(const struct core_slots *, const struct core_lock *);
