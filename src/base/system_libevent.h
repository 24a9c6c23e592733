/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QUORLOCK_BASE_SYSTEM_LIBEVENT_H
#define QUORLOCK_BASE_SYSTEM_LIBEVENT_H

#include "base/system.h"

struct event_base;

/* system_libevent - the system itself, with that base as the loop. Both stay the caller's. */
struct system system_libevent(struct event_base *, const struct alloc *);

#endif
