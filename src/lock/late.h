/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * late.h - releases that are paid again, because what they release may still be executed
 *
 * A core hands such a debt over (struct core_late), so neither the claim nor its caller waits for it. The release is
 * sent again after pauses that grow, those of one node together, and at once where the key refused an acquire.
 */
#pragma once

#include "lock/admission.h"
#include "lock/keylist.h"
#include "lock/terms.h"

/* Those of one client. */
struct lates {
    struct runtime *runtime;
    const struct admission *admission;
    struct hashtable *terms; /* that of the claims */
    struct list all;         /* in the order of coming */
    struct hashtable by_keys;
    struct waker look;
};

/* lates_start - of a zeroed struct. lates_stop: forgets all; no request of one may be in flight. */
void lates_start(struct lates *, struct runtime *, const struct admission *, struct hashtable *terms);
void lates_stop(struct lates *);
/* late_add - one more debt. Of too many the oldest is forgotten, and so is this one where memory is out: then a key
 * that comes late ends with its lease. */
void late_add(struct lates *, struct keylist *, struct terms *, const struct core_late *);
/* late_pay - an acquire of these keys was refused: sends what may be in its way at that node. holder_id: who refused,
 * as in struct core_reply; 0: unknown. False: there is nothing. */
bool late_pay(struct lates *, const struct keylist *, uint32_t node, uint64_t holder_id);
