/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "base/system.h"

struct event_base;

/* system_os - the system itself, on that loop, which stays the caller's; its arg is NULL. system_libevent: on that
 * base. */
struct system system_os(const struct quorlock_loop *, const struct alloc *);
struct system system_libevent(struct event_base *, const struct alloc *);
/* system_environment - a variable of the environment; NULL where there is none, or the program has rights that its user
 * has not. */
const char *system_environment(const char *name);
