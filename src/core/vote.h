/* SPDX-License-Identifier: BSD-3-Clause */
/* vote.h - asks nodes for their votes, reads the answers, and counts them */
#pragma once

#include "state.h"

struct vote_tally {
    uint32_t yes, other, pending;
    uint32_t peeking, peeked; /* nodes that were asked for the holder, and have named it or cannot */
    uint32_t failed[FAULT_CLASS_CONFIG + 1];
};

struct vote_tally vote_count(const struct core_lock *);
/* vote_may_still_connect - the node is not asked yet, but may be soon. */
bool vote_may_still_connect(const struct core_node *);
/* vote_clear - forgets the votes of the attempt before. */
void vote_clear(struct core_lock *);
/* vote_ask - sends an acquire, unless the node owes too many releases. */
void vote_ask(struct core_lock *, struct step *, uint32_t node);
/* vote_peek - asks the node that refused for the holder, unless it named it. */
void vote_peek(struct core_lock *, struct step *, uint32_t node);
/* vote_ask_holder - the attempt is lost: this node's answer only tells contention from outage. */
void vote_ask_holder(struct core_lock *, struct step *, uint32_t node);
void vote_connection_ended(struct core_node *);
/* vote_on_reply - an answer to an acquire, a peek or a raise of the present attempt. */
void vote_on_reply(struct core_lock *, struct step *, const struct core_reply *);
