/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "base/system.h"

struct event_base;

/* system_libevent - the system itself, with that base as the loop. Both stay the caller's. */
struct system system_libevent(struct event_base *, const struct alloc *);
