/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resolve.h - a host name to addresses by the system's resolver, without blocking the loop: the lookups of system_os()
 *
 * getaddrinfo() goes by /etc/nsswitch.conf and /etc/resolv.conf as every program of the system does. It blocks, so
 * each name that is looked up has a thread, which ends with the answer. getaddrinfo() cannot be interrupted: the thread
 * of a canceled lookup goes on, and the next lookup of that name, by whatever client of the process, waits for its
 * answer instead of beginning anew.
 */
#pragma once

#include "base/system.h"

/* resolve_start, resolve_cancel - see struct system_ops. */
struct lookup *resolve_start(struct system *, const char *name, uint16_t port,
                             void (*done)(void *arg, const struct addresses *), void *arg);
void resolve_cancel(struct lookup *);
