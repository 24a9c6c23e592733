/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * notify.h - the user callbacks of locks, from the top of the loop
 *
 * Losses go first. Then come grants, because their validity runs. Then come completions without a core: their votes are
 * those of the claim at the head of the queue, so they run while that claim is still there.
 */
#pragma once

#include "lock/handle.h"

/* notify_budget - limit this turn to the callbacks that are due now.
 * notify_next - run one of them; false: none is left in this turn.
 * notify_waits - a callback is due, in this turn or the next. */
void notify_budget(struct locks *);
bool notify_next(struct turn *);
bool notify_waits(const struct locks *);
