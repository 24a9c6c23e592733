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

/* reentry_check - whether its named owner may acquire: 0, or a status with its text. ret_claim: the claim that
 * the owner holds already, or NULL. */
int reentry_check(struct quorlock *, struct claim **ret_claim);
/* reentry_enter - one more hold, at once or after a renewal. 0 or a status; ret_why: the reason. reentry_leave:
 * the handle waits for that renewal no more. */
int reentry_enter(struct quorlock *, struct claim *, const char **ret_why);
void reentry_leave(struct quorlock *);
/* reentry_renews_again - the second look, right before the callback of one more hold, as before that of a grant: the
 * process may have stood still since the first. True: the hold comes after a renewal; else its status is told now. */
bool reentry_renews_again(struct quorlock *);
/* reentry_renewed - the renewal that pending holds wait for has ended. */
void reentry_renewed(struct claim *, int status);
/* reentry_admit - the claim was granted: its owner's waiting handles enter it. */
void reentry_admit(struct claim *);
