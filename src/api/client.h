/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <quorlock/quorlock.h>

#include "base/system.h"

/* client_new_on - quorlock_client_new on any system, with the memory hooks of the options as its alloc: so a
 * test runs a client in a world of its own. */
int client_new_on(quorlock_client **ret, const struct system *, const struct quorlock_client_options *);
