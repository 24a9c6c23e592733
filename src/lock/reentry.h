/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reentry.h - several holds of one owner
 *
 * The caller names the owner, for an event loop has no threads to tell callers apart by. The nodes see one
 * plain lock with one token. Holds are counted here: a count on the nodes would differ between nodes, grow with
 * every repeated request, and be lost with a node's memory.
 */
#pragma once

#include "lock/handle.h"

/* reentry_find - look whether the named owner of the handle may acquire: 0, or a status with its text. ret_claim: the
 * claim that the owner holds already, or NULL. */
int reentry_find(struct quorlock_lock *, struct claim **ret_claim);
/* reentry_enter - add one more hold, at once or after a renewal. 0 or a status; ret_why: the reason.
 * reentry_leave - stop waiting for that renewal. */
int reentry_enter(struct quorlock_lock *, struct claim *, const char **ret_why);
void reentry_leave(struct quorlock_lock *);
/* reentry_renews_again - check the validity a second time, right before the callback of one more hold: the process may
 * have been suspended since the first check. True: the hold comes after a renewal; else its callback runs now. */
bool reentry_renews_again(struct quorlock_lock *);
/* reentry_renewed - the renewal has ended for which pending holds wait. */
void reentry_renewed(struct claim *, int status);
/* reentry_admit - the claim was granted: its owner's waiting handles enter it. */
void reentry_admit(struct claim *);
