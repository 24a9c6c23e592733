/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * actor.h    - what the user of a lock does with it, by chance
 */
#ifndef QUORLOCK_SIM_ACTOR_H
#define QUORLOCK_SIM_ACTOR_H

#include "world.h"

/* actor_begin - plans the first act of a lock that was made. */
void actor_begin(struct world *, uint32_t lock);
void actor_act(struct world *, const struct event *);
/* actor_notify - a callback of the library. */
void actor_notify(struct world *, uint32_t lock, const struct core_completion *);
/* actor_hurry - the phase has changed: act anew, soon. */
void actor_hurry(struct world *, uint32_t lock);

#endif
