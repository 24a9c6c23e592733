/* SPDX-License-Identifier: BSD-3-Clause */
/* arbiter.h - which node is asked first, and how far its answer is trusted */
#pragma once

#include "state.h"

/* Added to timeouts in round trips, for a busy machine. */
#define ARBITER_GRACE_US 1000u

/* arbiter_choose - return the node to ask first, or n_nodes if no node serves. */
uint32_t arbiter_choose(const struct core_lock *);
/* arbiter_fits - tell whether the node may be the arbiter while it is READY. */
bool arbiter_fits(const struct core_node *);
/* arbiter_plan - return the plan of an attempt that asks the arbiter first (rules 6.1, 6.2 and 7.6). */
struct plan arbiter_plan(const struct core_lock *, uint64_t now_us);
/* arbiter_timeout - return until when the answer to a request from asked_us is waited for while another client is in
 * the way. */
uint64_t arbiter_timeout(const struct core_node *, uint64_t asked_us);
/* arbiter_pace_us - return the least pause between two polls of one of many waiting clients: so many round trips that
 * a node that is slow because of them is asked less. */
uint64_t arbiter_pace_us(const struct core_lock *);
/* arbiter_doubt - after the arbiter's refusal, tell whether the other nodes are to be asked, too (rule 6.3). */
bool arbiter_doubt(struct core_lock *);
/* arbiter_doubt_until - return until when the other nodes' answers are waited for after such a doubt, or 0. */
uint64_t arbiter_doubt_until(const struct core_lock *);
/* arbiter_on_vote - take the node's answer to a request for its vote. */
void arbiter_on_vote(struct core_node *);
/* arbiter_learn - after all nodes were asked and no quorum granted, record the confirmed holder and minority keys. */
void arbiter_learn(struct core_lock *);
/* arbiter_meets_holder - tell whether the refusals name a holder of the lock, not only a contender. */
bool arbiter_meets_holder(const struct core_lock *, uint64_t now_us);
