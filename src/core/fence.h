/* SPDX-License-Identifier: BSD-3-Clause */
/* fence.h - one fencing token over the quorum */
#pragma once

#include "state.h"

enum fence_verdict {
    FENCE_AGREED,   /* the token is in the lock's fence */
    FENCE_WAIT,     /* for acknowledgements or votes */
    FENCE_HOPELESS, /* no quorum can show one token any more */
};

/* fence_judge - Q nodes granted, and so many votes are pending; sends the raises that are needed. */
enum fence_verdict fence_judge(struct core_lock *, struct step *, uint32_t pending);
