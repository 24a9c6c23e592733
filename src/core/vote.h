/* SPDX-License-Identifier: BSD-3-Clause */
/* vote.h - asks nodes for their votes, reads the answers, and counts them */
#pragma once

#include "state.h"

struct vote_tally {
    uint32_t yes, other, pending;
    uint32_t peeking, peeked; /* nodes asked for the holder: without an answer; with one, or out of reach */
    uint32_t failed[FAULT_CLASS_CONFIG + 1];
};

/* vote_count - count the votes of the present attempt. */
struct vote_tally vote_count(const struct core_lock *);
/* vote_may_still_connect - tell whether the node has not been asked because it is still connecting. */
bool vote_may_still_connect(const struct core_node *);
/* vote_may_ask - tell whether the node's yes would count. A node in quarantine renews locks, and so it has a vote in an
 * adoption. */
bool vote_may_ask(const struct core_lock *, const struct core_node *);
/* vote_clear - forget the votes of the attempt before. */
void vote_clear(struct core_lock *);
/* vote_ask - send an acquire, or for an adoption an extend, unless the node owes too many releases. */
void vote_ask(struct core_lock *, struct step *, uint32_t node);
/* vote_peek - ask a node that refused for the holder, unless its refusal named the holder. */
void vote_peek(struct core_lock *, struct step *, uint32_t node);
/* vote_ask_holder - in a failed attempt, ask a node that has just become READY for the holder instead of its vote. */
void vote_ask_holder(struct core_lock *, struct step *, uint32_t node);
/* vote_connection_ended - drop what the node had still to answer. */
void vote_connection_ended(struct core_node *);
/* vote_quarantined - drop the yes of a node that is in quarantine by now. */
void vote_quarantined(const struct core_lock *, struct core_node *);
/* vote_on_reply - take the reply to an acquire, an adoption's extend, a peek or a raise of the present attempt. */
void vote_on_reply(struct core_lock *, struct step *, const struct core_reply *);
