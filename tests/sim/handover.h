/* SPDX-License-Identifier: BSD-3-Clause */
/* handover.h - how long a lock is free while others wait, where nothing fails */
#pragma once

#include "world.h"

/* handover_freed - the owner of a hold calls release. handover_asked: a request for the key is executed.
 * handover_granted: the owner is told of a grant. handover_end: no hand-over is waited for any more. */
void handover_freed(struct actor *);
void handover_asked(struct world *);
void handover_granted(struct actor *);
void handover_end(struct world *);
/* handover_table - hand-overs among 2, 3, 10 and 30 contenders; prints, and returns whether what must hold of them
 * does: with notices and without faults the median is 3 round trips at most. */
bool handover_table(struct world *, FILE *);
