/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * locks.h - all locks of one client: wired to the client's nodes and loop, closed, freed
 */
#ifndef QUORLOCK_LOCK_LOCKS_H
#define QUORLOCK_LOCK_LOCKS_H

#include "lock/handle.h"

/* locks_start - of a zeroed struct, when the runtime has its nodes. 0, or -1 out of memory. */
int locks_start(struct locks *, struct runtime *);
/* locks_close - every lock is given up. They stay in memory, and handles good, until locks_stop: a caller may
 * still free them. */
void locks_close(struct locks *);
/* locks_stop - frees everything, whatever is owed; fine where locks_start failed. */
void locks_stop(struct locks *);

#endif
