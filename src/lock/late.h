/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * late.h - releases that are sent again, because the acquire that they release may still be executed
 *
 * A core hands such a debt over (struct core_late), so neither the claim nor its caller waits for it. The release is
 * sent again after pauses that grow, those of one node together. It is sent at once when an acquire of the keys was
 * refused at that node.
 */
#pragma once

#include "lock/admission.h"
#include "lock/keylist.h"
#include "lock/terms.h"

/* The late releases of one client. */
struct lates {
    struct runtime *runtime;
    const struct admission *admission;
    struct hashtable *terms; /* that of the claims */
    struct list all;         /* in the order of coming */
    struct hashtable by_keys;
    struct waker look;
};

/* lates_start - start a zeroed struct. lates_stop - forget all; no request of theirs may be in flight. */
void lates_start(struct lates *, struct runtime *, const struct admission *, struct hashtable *terms);
void lates_stop(struct lates *);
/* late_add - keep one more debt. If there are too many, the oldest is forgotten; without memory this one is. A key that
 * is set late then expires. */
void late_add(struct lates *, struct keylist *, struct terms *, const struct core_late *);
/* late_pay - an acquire of these keys was refused at that node: send the releases of what may be in its way. holder_id:
 * the holder that the refusal named, as in struct core_reply; 0: unknown. False: there are none. */
bool late_pay(struct lates *, const struct keylist *, uint32_t node, uint64_t holder_id);
/* lates_have_token - tell whether a release of that token is still to be sent again. */
bool lates_have_token(const struct lates *, const struct core_token *);
