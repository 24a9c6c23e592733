/* SPDX-License-Identifier: BSD-3-Clause */
/* arbiter.h - which node is asked first, and how far its answer is trusted */
#pragma once

#include "state.h"

/* What a busy machine may add to some round trips. */
#define ARBITER_GRACE_US 1000u

/* arbiter_choose - the node to ask first; n_nodes where there is none. */
uint32_t arbiter_choose(const struct core_lock *);
/* arbiter_fits - the node may be the arbiter, if it is READY. */
bool arbiter_fits(const struct core_node *);
/* arbiter_timeout - until when the answer to a question sent at asked_us is waited for, where another client is
 * in the way. */
uint64_t arbiter_timeout(const struct core_node *, uint64_t asked_us);
/* arbiter_doubt - the arbiter refused: true where the other nodes shall be asked, too. */
bool arbiter_doubt(struct core_lock *);
/* arbiter_doubt_until - until when the answers that check the arbiter's answer are waited for; 0: none are. */
uint64_t arbiter_doubt_until(const struct core_lock *);
/* arbiter_on_vote - the node has answered a question for its vote. */
void arbiter_on_vote(struct core_node *);
/* arbiter_learn - all nodes were asked and no quorum granted: records which holder is confirmed, and which
 * nodes have an odd key. */
void arbiter_learn(struct core_lock *);
/* arbiter_meets_holder - the refusals name a holder of the lock, not only a contender. */
bool arbiter_meets_holder(const struct core_lock *, uint64_t now_us);
