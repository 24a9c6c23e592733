/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lister.h - find the locks on one server by SCAN, over a connection of its own
 *
 * Each step is one read-only script: one SCAN with a bounded COUNT, and what its keys hold. So no step blocks the
 * server for long, and no request of a lock waits behind it on its connection.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/protocol.h"
#include "redis/link/config.h"

#define LISTER_COUNT 250u /* keys of a step, by the server's judgement */

struct lister;
struct system;

enum lister_kind {
    LISTER_LOCK = 'x',
    LISTER_READERS = 'r', /* `number` of them; 0: unknown */
    LISTER_SLOT = 's',    /* of a name with `number` permits; 0: unknown */
    LISTER_OTHER = 'o',   /* a string of another form that expires; no holder */
    LISTER_DENIED = 'd',  /* the user may not read this key, which may be a lock */
};

/* A key that was found. SCAN may return a key twice. */
struct lister_key {
    enum lister_kind kind;
    uint32_t number;
    int64_t ttl_ms; /* -1: no expiry; at most NODE_MS_MAX */
    const char *key, *holder;
    size_t key_length, holder_length;
};

struct lister_config {
    struct system *system;
    const struct alloc *alloc;
    struct link_config link;      /* its log function is not used */
    bool redisson;                /* list hashes of Redisson; else strings */
    const char *pattern, *prefix; /* for MATCH; of the keys, "" for none; both must live as long as the listing */
    bool (*found)(void *arg, const struct lister_key *);  /* false: end the listing, without done() */
    void (*done)(void *arg, enum fault, const char *why); /* FAULT_NONE: all keys were visited */
    void *arg;
};

/* lister_start - start a listing. done() is called once, from the loop; after that, or lister_cancel, the listing is
 * gone. NULL: out of memory. */
struct lister *lister_start(const struct lister_config *);
/* lister_cancel - end the listing without done(); NULL has no effect. */
void lister_cancel(struct lister *);
