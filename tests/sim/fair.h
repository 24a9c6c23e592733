/* SPDX-License-Identifier: BSD-3-Clause */
/* fair.h - the order of fair locks */
#pragma once

#include "world.h"

/* fair_granted - judge the order of fair locks, I15. */
void fair_granted(struct actor *);
