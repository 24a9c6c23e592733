/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "base/system.h"

struct event_base;

/* system_libevent - the system itself, with that base as the loop. Both stay the caller's. */
struct system system_libevent(struct event_base *, const struct alloc *);
/* system_environment - a variable of the environment; NULL where there is none, or the program has rights that its user
 * has not. */
const char *system_environment(const char *name);
