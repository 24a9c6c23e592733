/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * buggify.h - faults that a client makes up, so that programs meet them in their tests; off unless asked for
 *
 * The faults are drawn from a seed, in the order in which locks are acquired, granted, renewed and released. None makes
 * a lock look better than it is, so a correct program stays correct:
 *
 * - NOQUORUM: an acquire or extend is canceled, with that status.
 * - An early loss: the core gets an event that the hold is over, or that the nodes' clocks stepped. The core reports
 * the loss, and the lock is released when its owner releases it, as always.
 * - A late grant, and the late end of a release: the callback runs later, by a node timeout at most, and within the
 *   bound of a wait. Whether the grant is still good is decided after that, as always.
 */
#pragma once

#include "lock/claim.h"

/* buggify_start - begin to make faults up, and log that. Seed 0: never. */
void buggify_start(struct claims *, uint64_t seed);
/* buggify_acquire, buggify_extend, buggify_release - called right after the claim has begun one. */
void buggify_acquire(struct claim *);
void buggify_extend(struct claim *);
void buggify_release(struct claim *);
