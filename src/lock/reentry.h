/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reentry.h - several holds of one owner
 *
 * The owner is a name that the caller gives, for an event loop has no threads to tell callers apart by. What
 * the nodes see is one plain lock with one token; how often it is held is counted here, for a count on the
 * nodes would differ from node to node, grow by every repeated request and go with a node's memory.
 */
#ifndef QUORLOCK_LOCK_REENTRY_H
#define QUORLOCK_LOCK_REENTRY_H

#include "lock/handle.h"

/* reentry_check - may this handle's named owner acquire now? 0, or a status with its text. ret_claim: what it
 * holds already, to be entered; NULL: nothing. */
int reentry_check(struct quorlock *, struct claim **ret_claim);
/* reentry_enter - one more hold, at once or after a renewal. 0 or a status, with *ret_why in words. */
int reentry_enter(struct quorlock *, struct claim *, const char **ret_why);
/* reentry_renewed - the renewal that pending holds wait for has ended. */
void reentry_renewed(struct claim *, int status);
/* reentry_leave - the handle is no pending hold any more. */
void reentry_leave(struct quorlock *);
/* reentry_admit - the claim was granted: its owner's other handles need not wait any more. */
void reentry_admit(struct claim *);

#endif
