/* SPDX-License-Identifier: BSD-3-Clause */
/* controls.h - rules broken on purpose, which the judge must notice */
#pragma once

#include "world.h"

bool controls_run(struct world *, uint64_t first_seed, const char *name);
bool controls_set(struct world *, const char *name, enum plan_bias *ret_bias);
