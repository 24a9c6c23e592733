/* SPDX-License-Identifier: BSD-3-Clause */
/* fair.h - the arbiter serves the waiting locks in the order in which they came */
#pragma once

#include "state.h"

/* fair_plan - return the plan that asks the next node with its queue first (rules 9.1 and 9.2); all nodes, if no node
 * is left that serves. */
struct plan fair_plan(const struct core_lock *, uint64_t now_us);
/* fair_plan_at - the same with this node as the arbiter. */
struct plan fair_plan_at(const struct core_lock *, uint32_t node, uint64_t now_us);
/* fair_search_at_us - return when to ask for another slot that nodes report as free, at an attempt's end. */
uint64_t fair_search_at_us(const struct core_lock *, uint64_t now_us);
/* fair_begin - begin to count releases anew, with an attempt. */
void fair_begin(struct core_lock *, uint64_t now_us);
/* fair_queue - make the command for the lock's arbiter one that looks at the queue. */
void fair_queue(struct core_lock *, const struct step *, struct core_command *);
/* fair_on_refusal - take the place in the queue that the arbiter's refusal tells. */
void fair_on_refusal(struct core_lock *, const struct core_reply *);
/* fair_is_far - tell whether the arbiter tells this lock by itself when it comes near the head of the queue. */
bool fair_is_far(const struct core_lock *);
/* fair_hear - count a notice from that node about these keys, or, for n_nodes, a release by this process. */
void fair_hear(struct core_lock *, uint32_t node, uint64_t keys);
/* fair_is_turn - tell whether so many releases were heard that the arbiter may grant. */
bool fair_is_turn(const struct core_lock *);
