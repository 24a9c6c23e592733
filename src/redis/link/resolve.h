/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resolve.h - a host name to addresses, without ever blocking the loop
 *
 * By libevent's evdns: /etc/hosts, then the name servers of /etc/resolv.conf. Its base exists only while a
 * question is open, for an idle one would keep event_base_dispatch() from returning.
 */
#ifndef QUORLOCK_REDIS_RESOLVE_H
#define QUORLOCK_REDIS_RESOLVE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/alloc.h"

#define RESOLVE_ADDRESSES_MAX 8

struct event_base;
struct resolve;

struct resolve_address {
    struct sockaddr_storage storage;
    socklen_t length;
};

struct resolve_answer {
    size_t n_addresses; /* 0: failed, see why */
    struct resolve_address addresses[RESOLVE_ADDRESSES_MAX];
    const char *why;
};

/*
 * resolve_start - asks for the addresses of a name
 *
 * done is called once, from the loop, never from inside the call; what it is handed is valid during the call.
 * The owner cancels when its patience ends; after done, or after cancel, the resolve is gone. NULL: out of
 * memory.
 */
struct resolve *resolve_start(struct event_base *, const struct alloc *, const char *name, uint16_t port,
                              void (*done)(void *arg, const struct resolve_answer *), void *arg);
void resolve_cancel(struct resolve *);

#endif
