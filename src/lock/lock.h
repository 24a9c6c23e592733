/* SPDX-License-Identifier: BSD-3-Clause */
/* lock.h - the locks of one client: made, wired to the client's nodes and loop, closed, freed */
#pragma once

#include "lock/handle.h"

/* lock_new - as quorlock_lock_new, for all locks of one client. */
int lock_new(struct quorlock_lock **ret, struct locks *, const char *const *keys, size_t n_keys,
             const struct quorlock_lock_options *);
/* locks_start - start a zeroed struct, once the runtime has its nodes. 0, or -1 out of memory.
 * locks_close - give every lock up; the handles stay valid until locks_stop.
 * locks_stop - free everything, also what locks_start made in part. */
int locks_start(struct locks *, struct runtime *);
void locks_close(struct locks *);
void locks_stop(struct locks *);
