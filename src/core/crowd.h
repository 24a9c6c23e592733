/* SPDX-License-Identifier: BSD-3-Clause */
/* crowd.h - how seldom one of many waiting clients asks the nodes (rule 6.15) */
#pragma once

#include "state.h"

#define CROWD_EACH_US 100000u /* the pause for each client that comes first */

/* crowd_knows_place - tell whether the lock stands in a queue: that of the arbiter, or one of intents, whose nodes have
 * said how many of its mode come before it. */
bool crowd_knows_place(const struct core_lock *);
/* crowd_spread_us - return the longest pause between two polls of one of many; the shortest is half of it. 0: few wait.
 */
uint64_t crowd_spread_us(const struct core_lock *);
/* crowd_kept_us - return for how long the nodes keep the intent of this lock, as far as that is known; else 0. */
uint64_t crowd_kept_us(const struct core_lock *);
