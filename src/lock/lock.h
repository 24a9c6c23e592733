/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock.h - the public API of a lock, as far as the client has a part in it
 */
#ifndef QUORLOCK_LOCK_LOCK_H
#define QUORLOCK_LOCK_LOCK_H

#include "lock/handle.h"

/* lock_new - behind quorlock_new. */
int lock_new(struct quorlock **ret, struct locks *, const char *const *keys, size_t n_keys,
             const struct quorlock_options *);
/* lock_give_up - ends what is in flight with that status, and releases in the background. */
void lock_give_up(struct quorlock *, int status);

#endif
