/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resolve.h - look up host names with the system's resolver, without blocking the loop; system_os() uses it
 *
 * getaddrinfo() follows /etc/nsswitch.conf and /etc/resolv.conf, as all programs of the system do. It blocks, so each
 * name that is looked up gets a thread, which ends with the answer. getaddrinfo() cannot be interrupted, so the thread
 * of a canceled lookup runs on. The next lookup of that name, by any client of the process, waits for its answer
 * instead of starting another thread.
 */
#pragma once

#include "base/system.h"

/* resolve_start, resolve_cancel - see struct system_ops. */
struct lookup *resolve_start(struct system *, const char *name, uint16_t port,
                             void (*done)(void *arg, const struct addresses *), void *arg);
void resolve_cancel(struct lookup *);
