/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * buggify.h - troubles that a client makes up, so that programs meet them in their tests; off unless asked for
 *
 * They are drawn from a seed, in the order in which locks are asked for, granted, renewed and released. None makes a
 * lock look better than it is, so a program that is right stays right:
 *
 * - NOQUORUM: an acquire or extend is canceled, with that status.
 * - An early loss: the core is told that the hold is over, or that the nodes' clocks stepped. It reports the loss, and
 *   the lock is released when its owner releases it, as always.
 * - A late grant, and the late end of a release: the callback runs later, by a node timeout at most, and within the
 *   bound of a wait. Whether the grant is still good is decided after that, as always.
 */
#pragma once

#include "lock/claim.h"

/* buggify_start - begins to make troubles up, and says so in the log. Seed 0: never. */
void buggify_start(struct claims *, uint64_t seed);
/* buggify_acquire, buggify_extend, buggify_release - right after one of the claim has begun. */
void buggify_acquire(struct claim *);
void buggify_extend(struct claim *);
void buggify_release(struct claim *);
