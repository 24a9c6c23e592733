/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "base/system.h"

struct event_base;

/* system_os - return the real system, on that loop, which stays the caller's; its arg is NULL.
 * system_libevent - the same on an event_base. */
struct system system_os(const struct quorlock_loop *, const struct alloc *);
struct system system_libevent(struct event_base *, const struct alloc *);
/* system_environment - return an environment variable. NULL: it is not set, or the program runs with more rights than
 * its user (secure_getenv). */
const char *system_environment(const char *name);
