/* SPDX-License-Identifier: BSD-3-Clause */
/* modes.h - how long readers and writers wait for each other, and for a permit */
#pragma once

#include "world.h"

/* modes_waited - check how long the actor has waited, if its wait has a bound. */
void modes_waited(struct actor *);
/* modes_table - print the longest waits of all scenes; return whether they are within their bounds. */
bool modes_table(struct world *, FILE *);
