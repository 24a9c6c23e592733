/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tokens.h - fencing tokens: unique, rising, and of use
 *
 * The use is shown by a register that takes a write only with a token not older than the newest it has seen.
 * Writes travel for long, and clients that only believe to hold the lock write too; whatever happened to
 * exclusion, a write must never be taken after one of a grant that was begun when ours had been told already.
 */
#ifndef QUORLOCK_SIM_TOKENS_H
#define QUORLOCK_SIM_TOKENS_H

#include "world.h"

/* tokens_see - a node shows its counter with a yes to an acquire or a raise. */
void tokens_see(struct lock *, const struct core_reply *);
/* tokens_granted - a grant was told: I2, I3, I4. */
void tokens_granted(struct world *, uint32_t lock);
/* tokens_write - the owner writes, under the token of its latest grant. */
void tokens_write(struct world *, uint32_t lock, uint64_t delay_us);
void tokens_write_arrives(struct world *, uint32_t grant);

#endif
