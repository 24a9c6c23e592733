/* SPDX-License-Identifier: BSD-3-Clause */
/* executed.h - what servers execute and change */
#pragma once

#include "world.h"

/* executed_events - return the callbacks by which the judge sees what happens on that server. */
const struct model_events *executed_events(struct world *, uint32_t server);
