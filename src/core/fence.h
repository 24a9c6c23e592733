/* SPDX-License-Identifier: BSD-3-Clause */
/* fence.h - one fencing token over the quorum */
#pragma once

#include "state.h"

enum fence_verdict {
    FENCE_AGREED,   /* lock->id.fence is the token */
    FENCE_WAIT,     /* acknowledgements or votes are still to come */
    FENCE_HOPELESS, /* no quorum can show one token any more */
};

/* fence_begin - begin an attempt with the least token that its step gives; none without fencing. */
void fence_begin(struct core_lock *, const struct step *);
/* fence_renew_floor - a node became READY during the attempt: no floor older than a node timeout is for it. */
void fence_renew_floor(struct core_lock *, uint64_t now_us);
/* fence_judge - agree on a token after Q nodes granted; ask nodes to raise their counters where needed. pending: votes
 * that are still to come. */
enum fence_verdict fence_judge(struct core_lock *, struct step *, uint32_t pending);
