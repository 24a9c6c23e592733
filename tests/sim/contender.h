/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * contender.h - what the user of a lock does with it, by chance
 */
#ifndef QUORLOCK_SIM_CONTENDER_H
#define QUORLOCK_SIM_CONTENDER_H

#include "world.h"

/* contender_begin - plans the first act of a lock that was made. */
void contender_begin(struct world *, uint32_t lock);
void contender_act(struct world *, const struct happening *);
/* contender_told - a callback of the library. */
void contender_told(struct world *, uint32_t lock, const struct core_completion *);
/* contender_hurry - the phase has changed: act anew, soon. */
void contender_hurry(struct world *, uint32_t lock);

#endif
