/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * controls.h - negative controls: rules broken on purpose, which the judge must notice
 */
#ifndef QUORLOCK_SIM_CONTROLS_H
#define QUORLOCK_SIM_CONTROLS_H

#include <stdbool.h>
#include <stdint.h>

#include "world.h"

/* controls_run - breaks every rule in turn, over seeds from first_seed on, until each was caught its minimum
 * number of times; then the same seeds with nothing broken. Prints a table; false where one was not caught. */
bool controls_run(struct world *, uint64_t first_seed);
/* controls_set - breaks the rule of this name, for a replay; NULL or "none" breaks nothing. */
bool controls_set(struct world *, const char *name, enum plan_bias *ret_bias);

#endif
