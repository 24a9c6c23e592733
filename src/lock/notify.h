/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * notify.h - the user callbacks of locks, from the top of the loop
 *
 * Losses go first, whatever waits. Else a grant goes first, for its validity runs; then what is told without a
 * core: a handle that waited behind others is told what the first of them knows, as long as that one is there.
 */
#ifndef QUORLOCK_LOCK_NOTIFY_H
#define QUORLOCK_LOCK_NOTIFY_H

#include "lock/handle.h"

/* notify_budget - limits what is told in this turn to what waits now. */
void notify_budget(struct locks *);
/* notify_next - one callback; false: none is left in this turn. */
bool notify_next(struct locks *);
/* notify_waits - something waits to be told. */
bool notify_waits(const struct locks *);

#endif
