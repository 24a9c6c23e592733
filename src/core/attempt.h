/* SPDX-License-Identifier: BSD-3-Clause */
/* attempt.h - one try on all nodes, and its verdict */
#pragma once

#include "wait.h"

void attempt_begin_acquire(struct core_lock *, struct step *, const struct core_acquire *);
/* attempt_try - begins the attempt that wait.c asks for, if any. Where the nodes have no room for it, it waits
 * for attempt_on_room. */
void attempt_try(struct core_lock *, struct step *, enum wait_verdict);
void attempt_on_room(struct core_lock *, struct step *);
void attempt_on_timer(struct core_lock *, struct step *);
void attempt_on_node_state(struct core_lock *, struct step *, uint32_t node);
void attempt_on_reply(struct core_lock *, struct step *, const struct core_reply *);
/* attempt_on_step - the node's clock stepped forward: a yes that was asked for before does not count. */
void attempt_on_step(struct core_lock *, struct step *, uint32_t node, uint64_t before_us);
/* attempt_too_late - Q yeses came, but too little of the validity is left. */
void attempt_too_late(struct core_lock *, struct step *);
/* attempt_release - releases the present attempt, or hold, on every node that may have its key. */
void attempt_release(struct core_lock *, struct step *);
/* attempt_give_up - ends the acquire in flight with this status. */
void attempt_give_up(struct core_lock *, struct step *, int status);
uint64_t attempt_deadline(const struct core_lock *);
/* attempt_wait_status - what the wait bound says: the reason that all attempts had, TIMEDOUT where they had
 * several. */
int attempt_wait_status(const struct core_lock *);
