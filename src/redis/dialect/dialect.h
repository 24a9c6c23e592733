/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dialect.h - how a lock looks on the wire: commands for requests, typed results from replies
 *
 * Each dialect is one table without state. Two dialects never share a key.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/dialect/guard.h"
#include "redis/dialect/request.h"
#include "redis/wire/bytes.h"
#include "redis/wire/reply.h"

#define DIALECT_SCRIPTS_MAX 7
#define DIALECT_SHA_LENGTH  40
#define DIALECT_HOLDER_MAX  4096 /* the scripts cut a longer value */

struct dialect_script {
    const char *name;
    const char *text;
    size_t length;
    const char *sha; /* of one that is loaded at its first use: its hash */
};

/* So few that no script keeps the server for long, and that the holders of all its keys fit into one reply. */
#define DIALECT_BATCH_MAX 60
_Static_assert((size_t)DIALECT_BATCH_MAX *(DIALECT_HOLDER_MAX + 64) <= REPLY_BYTES_MAX, "one reply");

/* Requests of one key each that leave as one command; no two of them have the same key. */
struct dialect_batch {
    size_t n;
    char letters[DIALECT_BATCH_MAX]; /* what dialect->letter said of each */
    uint32_t lease_ms;               /* of those that have one; 0: none has */
    bool fenced;                     /* all keys have counters, or none has; */
    uint64_t fence_ttl_ms;           /* of all the same life */
    struct bytes keys, owners;       /* of each a word, as it travels */
    struct bytes numbers;            /* likewise, with counters: the floor of an acquire, else the token; 0: none */
};

/* What each server answered to SCRIPT LOAD. */
struct dialect_shas {
    char sha[DIALECT_SCRIPTS_MAX][DIALECT_SHA_LENGTH + 1];
};

struct dialect {
    size_t n_scripts; /* that every connection loads; */
    size_t n_later;   /* behind them those for a few clients, each loaded at its first use */
    const struct dialect_script *scripts;
    /* The commands that a user needs the right to, from acquire to release; NULL at the end. */
    const char *const *commands;
    /* Appends one command; a failure stays in the buffer. True: it names a script by its hash. */
    bool (*build)(struct bytes *, const struct node_request *, const struct dialect_shas *, const struct guard *);
    /* What a request is in a batch; 0: it goes alone. NULL: all do. */
    char (*letter)(const struct node_request *, const struct guard *);
    /* As build, all of a batch. by_eval: with the whole script, which the server keeps. The reply is one string: a
     * reply to each request, as it would travel. */
    void (*build_batch)(struct bytes *, const struct dialect_batch *, bool by_eval, const struct dialect_shas *,
                        const struct guard *);
    size_t batch_frame;   /* the bytes of such a command without keys and owners, at most; */
    size_t counter_frame; /* of a counter's key without the lock's */
    /* The channel on which the key's releases are published, cut where ret is too small; its length. */
    size_t (*channel)(const struct node_key *, char *ret, size_t size);
    /* Fills all of ret but the latency; an error text goes into `text`. ret may point into reply and text. A
     * good outcome with FAULT_GUARD: it was executed, but the guard is not the one we saw. */
    void (*judge)(enum op, bool by_hash, const struct reply *, struct node_reply *ret, char *text, size_t text_size);
};

extern const struct dialect dialect_plain;
extern const struct dialect dialect_redisson;

/* dialect_build - for a dialect whose scripts have the order, keys, arguments and replies of plain's. Only
 * plain itself acquires without a script. */
bool dialect_build(struct bytes *, const struct node_request *, const struct dialect_shas *, const struct guard *,
                   const struct dialect *);
