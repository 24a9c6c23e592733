/* SPDX-License-Identifier: BSD-3-Clause */
/* executed.h - what servers execute and change */
#pragma once

#include "world.h"

/* executed_events - what happens on that server is told to them. */
const struct model_events *executed_events(struct world *, uint32_t server);
