/* SPDX-License-Identifier: BSD-3-Clause */
/* attempt.h - one try on all nodes, and its verdict */
#pragma once

#include "wait.h"

/* attempt_begin_acquire - begin an acquire: its first attempt, or the wait behind others. */
void attempt_begin_acquire(struct core_lock *, struct step *, const struct core_acquire *);
/* attempt_try - begin the attempt that wait.c asks for, if any. If the nodes have no room, the attempt waits for
 * attempt_on_room. */
void attempt_try(struct core_lock *, struct step *, enum wait_verdict);
/* attempt_on_room - begin the attempt that waits for room, if any. */
void attempt_on_room(struct core_lock *, struct step *);
/* attempt_on_timer - serve the deadlines of an attempt or of the wait. */
void attempt_on_timer(struct core_lock *, struct step *);
/* attempt_on_node_state - ask a node that became READY, or stop waiting for a node that went away. */
void attempt_on_node_state(struct core_lock *, struct step *, uint32_t node);
/* attempt_on_reply - take the reply to an acquire, an adoption's extend, a peek or a raise of the present attempt. */
void attempt_on_reply(struct core_lock *, struct step *, const struct core_reply *);
/* attempt_on_step - drop the node's yes if it was asked for before before_us: the node's clock stepped forward. */
void attempt_on_step(struct core_lock *, struct step *, uint32_t node, uint64_t before_us);
/* attempt_too_late - release a grant of which too little validity is left, and wait or fail. */
void attempt_too_late(struct core_lock *, struct step *);
/* attempt_release - release the present attempt, or hold, at every node that may have its key. */
void attempt_release(struct core_lock *, struct step *);
/* attempt_give_up - end the acquire in flight with this status. */
void attempt_give_up(struct core_lock *, struct step *, int status);
/* attempt_deadline - return when attempt_on_timer is due, or CORE_NEVER. */
uint64_t attempt_deadline(const struct core_lock *);
/* attempt_wait_status - return the status at the end of the wait: the reason that all attempts had in common, or
 * TIMEDOUT. */
int attempt_wait_status(const struct core_lock *);
