/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dialect.h - how a lock is stored on a server: requests become commands, replies become typed results
 *
 * A dialect is one table without state. Two dialects never share a key.
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
#define DIALECT_HOLDER_MAX 4096 /* the scripts cut longer values */

/* The purpose of a script. Each dialect has its own text for some of them. */
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
    SCRIPT_FAIR_ACQUIRE,
    SCRIPT_FAIR_LEAVE,
    SCRIPT_FAIR_PERMIT,
    SCRIPTS, /* their number */
};
_Static_assert(SCRIPTS <= 32, "a bit for each");

struct dialect_script {
    const char *name; /* the name of its file without .lua; NULL: the dialect has none */
    const char *text;
    size_t length;
    const char *sha;
};

/* DIALECT_SCRIPT - the entry for that file, from scripts.h. */
#define DIALECT_SCRIPT(file)                                                                                           \
    {                                                                                                                  \
        .name = #file, .text = script_##file, .length = sizeof(script_##file) - 1, .sha = sha_##file                   \
    }

/* Few enough that no script blocks the server for long, and that the holders of all its keys fit into one reply. */
#define DIALECT_BATCH_MAX 60
_Static_assert((size_t)DIALECT_BATCH_MAX *(DIALECT_HOLDER_MAX + 64) <= REPLY_BYTES_MAX, "one reply");

/* Requests with one key each that are sent as one command. No two of them have the same key. */
struct dialect_batch {
    size_t n;
    size_t prefix;                   /* of all keys, see node_request */
    char letters[DIALECT_BATCH_MAX]; /* the result of dialect->letter for each */
    uint32_t lease_ms;               /* of the requests that have a lease; 0: none has */
    bool fenced;                     /* all keys have counters, or none has */
    uint64_t fence_ttl_ms;           /* how long the counters live */
    struct bytes keys, owners;       /* one word for each request, in the wire format */
    struct bytes numbers;            /* the same with counters: an acquire's floor, or the token; 0: none */
};

/* The size of a batch command, or of an ordinary one, without script, prefix, keys and owners; and of a counter's key
 * without the lock's key; at most. */
#define DIALECT_BATCH_FRAME   (GUARD_TEXT_SIZE + 384)
#define DIALECT_COUNTER_FRAME (16 + BYTES_WORD_FRAME)

struct dialect {
    const struct dialect_script *scripts; /* by enum script */
    /* The commands that a user must be allowed to run, from acquire to release; ends with NULL. */
    const char *const *commands;
    /* Append one command; a failure stays in the buffer. A script whose bit is in whole_sent is sent as its hash;
     * otherwise as its text, and the bit is set. Return whether it is a script. */
    bool (*build)(struct bytes *, const struct node_request *, uint32_t *whole_sent, const struct guard *);
    /* Return the request's letter in a batch; 0: it is sent alone. */
    char (*letter)(const struct node_request *, const struct guard *);
    /* As build, for a whole batch. The reply is one string that holds a reply to each request, in the wire format. */
    void (*build_batch)(struct bytes *, const struct dialect_batch *, uint32_t *whole_sent, const struct guard *);
    /* Write the channel on which releases of the key, whose first `prefix` bytes are the client's, are published, cut
     * to `size` bytes; return its length. */
    size_t (*channel)(const struct node_key *, size_t prefix, char *ret, size_t size);
    /* Fill all of ret except the latency; an error text is written to `text`. ret may point into reply and text. A good
     * outcome with FAULT_GUARD: the request was executed, but the guard is not the one that was read. */
    void (*judge)(enum op, bool by_script, const struct reply *, struct node_reply *ret, char *text, size_t text_size);
};

extern const struct dialect dialect_plain;
extern const struct dialect dialect_redisson;

/* dialect_build, dialect_build_batch - build() and build_batch() for a dialect whose scripts have the order, keys,
 * arguments and replies of plain's. Only plain itself can acquire without a script.
 * dialect_letter - return the request's letter in combined.lua; 0: it is sent alone. So is a release that keeps the
 * key: each has a time of its own.
 * dialect_judge_reply - judge() for the replies of such scripts, and of SET. */
bool dialect_build(struct bytes *, const struct node_request *, uint32_t *whole_sent, const struct guard *,
                   const struct dialect *);
void dialect_build_batch(struct bytes *, const struct dialect_batch *, uint32_t *whole_sent, const struct guard *,
                         const struct dialect *);
char dialect_letter(const struct node_request *);
void dialect_judge_reply(enum op, bool by_script, const struct reply *, struct node_reply *ret, char *text,
                         size_t text_size);
