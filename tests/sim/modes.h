/* SPDX-License-Identifier: BSD-3-Clause */
/* modes.h - how long readers and writers wait for each other, and for a permit */
#pragma once

#include "world.h"

/* modes_waited - its wait is over, or goes on: there may be a bound. */
void modes_waited(struct actor *);
/* modes_table - the longest waits in all scenes; prints, and returns whether they are within their bounds. */
bool modes_table(struct world *, FILE *);
