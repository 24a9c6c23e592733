/* SPDX-License-Identifier: BSD-3-Clause */
/* handover.h - how long a lock is free while others wait, where nothing fails */
#pragma once

#include "world.h"

/*
 * handover_freed   - begin a hand-over: the owner of a hold calls release
 * handover_asked   - count a request for the key that a server executes
 * handover_granted - end the hand-over: the callback of a grant runs
 * handover_end     - forget a hand-over that has begun
 */
void handover_freed(struct actor *);
void handover_asked(struct world *);
void handover_granted(struct actor *);
void handover_end(struct world *);
/* handover_table - print the hand-overs among 2, 3, 10 and 30 contenders; return whether they keep their bounds: with
 * notices and without faults the median takes 3 round trips at most. */
bool handover_table(struct world *, FILE *);
