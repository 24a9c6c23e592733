/* SPDX-License-Identifier: BSD-3-Clause */
/* config.h - how to connect to a server, and how long that may take */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/protocol.h"
#include "redis/link/uri.h"

struct list;
struct tls;

/* Traffic of the connections to one server, and their failures. */
struct link_counts {
    uint64_t bytes_in, bytes_out;
    uint64_t errors[FAULTS]; /* ended connections and failed tries to connect, by fault */
};

/* Log in as the uri says; wait for link_log_in(); or do not log in now. */
enum link_login { LOGIN_READY, LOGIN_LATER, LOGIN_NONE };

struct link_config {
    const struct uri *uri;   /* must live as long as the link, like client_name */
    struct tls *tls;         /* for a URI with TLS; must live as long, too */
    const char *client_name; /* for CLIENT SETNAME, or NULL */
    uint32_t timeout_ms;     /* for an answer, once the link is OPEN */
    uint32_t connect_ms;     /* for one try, from the lookup of the name to OPEN */
    uint32_t idle_ms;        /* of silence before a subscriber sends a PING; 0: a minute */
    uint32_t reconnect_min_ms, reconnect_max_ms;
    uint64_t (*now_us)(void *arg); /* the client's clock */
    /* Called when bytes have come, and when they were handled; in between now_us() may return the same time. May be
     * NULL. */
    void (*batch)(void *arg, bool begins);
    void (*log)(int level, const char *text, void *arg); /* may be NULL */
    /* Called right before each login; may change the login in the uri. NONE: for the reason in `why`. May be NULL. */
    enum link_login (*login)(void *arg, const struct uri *, char *why, size_t size);
    struct list *logins;        /* of links that wait for link_log_in(); may be NULL if none ever does */
    void *arg;                  /* for these four functions */
    struct link_counts *counts; /* must live as long as the link; may be NULL */
    /* Set by node, subscriber and examine: */
    uint32_t user_timeout_ms; /* see conn_open() */
    uint64_t steps_end_us;    /* when every try and every question has ended; 0: no limit */
};
