/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resolve.h - a host name to addresses, without ever blocking the loop: the lookups of system_os()
 *
 * By libevent's evdns: /etc/hosts, then the name servers of /etc/resolv.conf. Its base exists only while a
 * question is open, for an idle one would keep event_base_dispatch() from returning. On another loop than libevent a
 * base of ours is turned by a timer meanwhile.
 */
#pragma once

#include "base/system.h"

struct lookup *resolve_start(struct system *, const char *name, uint16_t port,
                             void (*done)(void *arg, const struct addresses *), void *arg);
void resolve_cancel(struct lookup *);
