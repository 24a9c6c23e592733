/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handover.h - from the release of a lock that somebody waits for to the next grant of its key
 *
 * Time is counted in round trips to a node, and requests of all locks of the key are counted with it. Where
 * nothing fails a hand-over has a bound, far below the pause between polls: whoever needs a poll to find out
 * that the key is free was not woken.
 */
#ifndef QUORLOCK_SIM_HANDOVER_H
#define QUORLOCK_SIM_HANDOVER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "world.h"

enum { HANDOVER_BUCKETS = 4096, HANDOVER_PER_TRIP = 20 };

struct handovers {
    uint64_t n;
    uint64_t requests;             /* from release to grant */
    uint64_t all;                  /* from grant to grant */
    uint64_t most;                 /* the same, of the grant that cost most */
    uint32_t of[HANDOVER_BUCKETS]; /* by length, in parts of a round trip */
};

/* handover_freed - the owner of a hold calls release. */
void handover_freed(struct world *, uint32_t lock);
/* handover_asked - a request for the key leaves. */
void handover_asked(struct world *, uint32_t key);
/* handover_granted - the owner is told. */
void handover_granted(struct world *, uint32_t lock);
/* handover_end - nobody is waited for any more. */
void handover_end(struct world *);

/* handover_table - hand-overs among 2, 3, 10 and 30 contenders; prints, and returns whether what must hold of
 * them does: with notices and without faults the median is 3 round trips at most. */
bool handover_table(struct world *, FILE *);

#endif
