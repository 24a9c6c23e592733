/* SPDX-License-Identifier: BSD-3-Clause */
/* config.h - how to connect to a server, and how long that may take */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/protocol.h"
#include "redis/link/uri.h"

struct tls;

/* What went over the connections to one server, and what went wrong. */
struct link_counts {
    uint64_t bytes_in, bytes_out;
    uint64_t errors[FAULTS]; /* ends of connections and of tries to connect */
};

struct link_config {
    const struct uri *uri;   /* kept by the caller as long as the link, as is the name */
    struct tls *tls;         /* how to speak it, where the uri asks for it; kept by the caller too */
    const char *client_name; /* for CLIENT SETNAME, or NULL */
    uint32_t timeout_ms;     /* of a question, once it is OPEN */
    uint32_t connect_ms;     /* of a try, from the lookup of the name to OPEN */
    uint32_t reconnect_min_ms, reconnect_max_ms;
    uint64_t (*now_us)(void *arg); /* the client's clock */
    /* Bytes have come: until it ends, now_us may stay what it is now. Or NULL. */
    void (*batch)(void *arg, bool begins);
    void (*log)(void *arg, int level, const char *text); /* or NULL */
    /* Right before each login: may change what the uri logs in with. False, with the reason: not now. Or NULL. */
    bool (*login)(void *arg, const struct uri *, char *why, size_t size);
    void *arg;                  /* of these four */
    struct link_counts *counts; /* kept by the caller as long as the link; or NULL */
    /* Set by node, subscriber and examine: */
    uint32_t user_timeout_ms; /* see conn_open() */
    uint64_t steps_end_us;    /* no try and no question lasts longer; 0: without bound */
};
