/* SPDX-License-Identifier: BSD-3-Clause */
/* debt.h - releases that nodes still owe us */
#pragma once

#include "state.h"

#define DEBT_WAKES_ALL UINT32_MAX

/* debt_end_attempt - releases the present attempt on every node that may hold its key. wakes: the node whose
 * release is published where it deletes the key, or n_nodes: none; DEBT_WAKES_ALL: every node's, also where the key is
 * not there, for waiters do not listen on all nodes. */
void debt_end_attempt(struct core_lock *, struct step *, uint32_t wakes);
/* debt_end_vote - this node's part of the attempt is released, for it is unknown which slot it took, if any. */
void debt_end_vote(struct core_lock *, struct step *, uint32_t node);
/* debt_has_room - the node may be asked: there is room for the debt that may follow. */
bool debt_has_room(struct core_node *, uint64_t now_us);
/* debt_waits - a release could not be queued for the node: nothing new is asked of it before. */
bool debt_waits(const struct core_node *);
/* debt_count - of this node. */
uint32_t debt_count(const struct core_node *);
/* debt_pay - the node's state changed: what it owes is sent on a connection that has not seen it. */
void debt_pay(struct core_lock *, struct step *, uint32_t node);
/* debt_on_room - sends what could not be queued before. */
void debt_on_room(struct core_lock *, struct step *, uint32_t node);
void debt_on_reply(struct core_lock *, struct step *, const struct core_reply *);
/* debt_hurry - sends at once what this node refused and what waits for its next try. False: there is nothing. */
bool debt_hurry(struct core_lock *, struct step *, uint32_t node);
/* debt_on_set_answered - a reply to a request that may set the key, or that was sent behind one.
 * debt_on_connection_ended: what it left without an answer may be executed later. debt_may_come_late: a request of the
 * present attempt may be executed yet. */
void debt_on_set_answered(struct core_lock *, const struct core_reply *);
void debt_on_connection_ended(struct core_lock *, uint32_t node, uint64_t now_us);
bool debt_may_come_late(const struct core_lock *, const struct core_node *, uint64_t now_us);
void debt_on_timer(struct core_lock *, struct step *);
uint64_t debt_deadline(const struct core_lock *);

/* debt_judge_release - ends the release in flight when its result is certain. */
void debt_judge_release(struct core_lock *, uint64_t now_us);
/* debt_end_release - ends it with what is known now. */
void debt_end_release(struct core_lock *);
/* debt_release_deadline - when the release in flight ends without a quorum of answers. */
uint64_t debt_release_deadline(const struct core_lock *);
