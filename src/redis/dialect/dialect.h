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

#define DIALECT_SHA_LENGTH 40
#define DIALECT_HOLDER_MAX 4096 /* the scripts cut a longer value */

/* What a script is for. Each dialect has a text of its own for some of them. */
enum script {
    SCRIPT_EXTEND,
    SCRIPT_RELEASE,
    SCRIPT_PEEK,
    SCRIPT_BREAK,
    SCRIPT_ACQUIRE,
    SCRIPT_RAISE,
    SCRIPT_COMBINED,
    SCRIPT_SHARED_EXTEND,
    SCRIPT_SHARED_RELEASE,
    SCRIPT_SHARED_ACQUIRE,
    SCRIPT_SHARED_RAISE,
    SCRIPT_INTEND,
    SCRIPT_PERMIT,
    SCRIPTS, /* how many there are */
};
_Static_assert(SCRIPTS <= 32, "a bit for each");

struct dialect_script {
    const char *name; /* of its file, without .lua; NULL: the dialect has none */
    const char *text;
    size_t length;
    const char *sha;
};

/* DIALECT_SCRIPT - the one of that file, from scripts.h. */
#define DIALECT_SCRIPT(file)                                                                                           \
    {                                                                                                                  \
        .name = #file, .text = script_##file, .length = sizeof(script_##file) - 1, .sha = sha_##file                   \
    }

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

struct dialect {
    const struct dialect_script *scripts; /* by enum script */
    /* The commands that a user needs the right to, from acquire to release; NULL at the end. */
    const char *const *commands;
    /* Appends one command; a failure stays in the buffer. A script whose bit is in whole_sent goes by its hash, else
     * whole, and its bit is set. True: it is a script. */
    bool (*build)(struct bytes *, const struct node_request *, uint32_t *whole_sent, const struct guard *);
    /* What a request is in a batch; 0: it goes alone. NULL: all do. */
    char (*letter)(const struct node_request *, const struct guard *);
    /* As build, all of a batch. The reply is one string: a reply to each request, as it would travel. */
    void (*build_batch)(struct bytes *, const struct dialect_batch *, uint32_t *whole_sent, const struct guard *);
    size_t batch_frame;   /* the bytes of such a command, or a plain one, without keys and owners, at most; */
    size_t counter_frame; /* of a counter's key without the lock's */
    /* The channel on which the key's releases are published, cut where ret is too small; its length. */
    size_t (*channel)(const struct node_key *, char *ret, size_t size);
    /* Fills all of ret but the latency; an error text goes into `text`. ret may point into reply and text. A
     * good outcome with FAULT_GUARD: it was executed, but the guard is not the one we saw. */
    void (*judge)(enum op, bool by_script, const struct reply *, struct node_reply *ret, char *text, size_t text_size);
};

extern const struct dialect dialect_plain;
extern const struct dialect dialect_redisson;

/* dialect_build - for a dialect whose scripts have the order, keys, arguments and replies of plain's. Only
 * plain itself acquires without a script. */
bool dialect_build(struct bytes *, const struct node_request *, uint32_t *whole_sent, const struct guard *,
                   const struct dialect *);
