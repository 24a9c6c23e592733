/* SPDX-License-Identifier: BSD-3-Clause */
/* debt.h - releases that nodes still owe us */
#pragma once

#include "state.h"

#define DEBT_WAKES_ALL UINT32_MAX

/*
 * Each node has room for one debt. Only a lock whose attempts fail while a node does not answer has more debts, so each
 * step lends room for these.
 *
 * debt_has_room  - tell whether the node has room for one more debt, and so may be asked. The lock takes the room that
 *                  the step lends if that debt may need it.
 * debt_give_back - give that room back at the end of a step, if the lock needs none of it until the next one
 */
bool debt_has_room(struct core_lock *, const struct step *, struct core_node *);
void debt_give_back(struct core_lock *);
/* debt_end_attempt - release the present attempt at every node that may have its key (rule 2.1). wakes: the node that
 * publishes the release, if it deletes the key; n_nodes: none. DEBT_WAKES_ALL: every node publishes, even without the
 * key, for waiters do not listen at all nodes. */
void debt_end_attempt(struct core_lock *, struct step *, uint32_t wakes);
/* debt_waive - let the keys of the present attempt or hold stay where they are: another client may have its token. */
void debt_waive(struct core_lock *);
/* debt_waits - tell whether a release waits for room in the node's queue. No new request may overtake it. */
bool debt_waits(const struct core_node *);
/* debt_count - count the node's debts. */
uint32_t debt_count(const struct core_node *);
/* debt_of - return the node's debt of that attempt, or NULL. */
const struct debt *debt_of(const struct core_node *, uint64_t attempt);
/* debt_has_token - tell whether the node has a debt of that token. */
bool debt_has_token(const struct core_node *, const struct core_token *);
/* debt_pay - send the node's debts that its present connection has not carried yet. */
void debt_pay(struct core_lock *, struct step *, uint32_t node);
/* debt_on_room - send the node's debts that could not be queued before. */
void debt_on_room(struct core_lock *, struct step *, uint32_t node);
/* debt_on_reply - take the reply to a release. */
void debt_on_reply(struct core_lock *, struct step *, const struct core_reply *);
/* debt_hurry - send the node's debts that wait for their next try. Return false if there are none. */
bool debt_hurry(struct core_lock *, struct step *, uint32_t node);
/* debt_on_set_answered - take the reply to a request that may set the key, or that was sent after one. */
void debt_on_set_answered(struct core_lock *, const struct core_reply *);
/* debt_on_connection_ended - remember that requests without an answer may be executed later (rule 2.6). */
void debt_on_connection_ended(struct core_lock *, uint32_t node, uint64_t now_us);
/* debt_may_come_late - tell whether the node may still execute a request of the present attempt. */
bool debt_may_come_late(const struct core_lock *, const struct core_node *, uint64_t now_us);
/* debt_on_timer - drop debts whose keys have expired, and send those that are due. */
void debt_on_timer(struct core_lock *, struct step *);
/* debt_deadline - return when debt_on_timer is due, or CORE_NEVER. */
uint64_t debt_deadline(const struct core_lock *);

/* debt_judge_release - end the release in flight once its result is certain. */
void debt_judge_release(struct core_lock *, uint64_t now_us);
/* debt_end_release - end the release in flight with the answers so far. */
void debt_end_release(struct core_lock *);
/* debt_release_deadline - return when the release in flight ends without a quorum of answers, or CORE_NEVER. */
uint64_t debt_release_deadline(const struct core_lock *);
