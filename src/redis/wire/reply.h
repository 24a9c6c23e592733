/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reply.h - bytes from a server in, typed replies out
 *
 * The few replies that a lock mostly gets are read right here; hiredis parses all others into one reply that is used
 * again and again, so a reply costs no allocation. Every command of
 * ours is answered with one value or a flat array of a few; anything larger or deeper is refused before it
 * costs memory, whatever the server claims in its length headers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

#define REPLY_ELEMENTS_MAX 8
#define REPLY_BYTES_MAX    ((size_t)1 << 18) /* of one reply, as it travels */

enum reply_type { REPLY_NIL, REPLY_STATUS, REPLY_ERROR, REPLY_INTEGER, REPLY_STRING, REPLY_ARRAY };

struct reply_item {
    enum reply_type type;
    int64_t integer;
    const char *text; /* STATUS, ERROR, STRING: any bytes, and a NUL behind them */
    size_t length;
    size_t offset; /* where the text is, while it may still move */
};

struct reply {
    struct reply_item self;
    size_t n_elements; /* of an ARRAY */
    struct reply_item elements[REPLY_ELEMENTS_MAX];
};

struct reply_parser {
    const struct alloc *alloc;
    struct redisReader *reader;
    struct reply reply;
    char *text;
    size_t text_used, text_capacity;
    const char *ahead; /* bytes that were fed, and that hiredis does not have yet */
    size_t n_ahead;
    size_t same;    /* the bytes of the latest reply, right before those, where it was read right here; else 0 */
    size_t pending; /* bytes that hiredis was fed since the last whole reply */
    bool nomem;
    const char *fault; /* why it was refused, where hiredis did not */
    char why[160];
};

/* reply_is - whether the item's text is that word; reply_begins - whether it begins with it. */
bool reply_is(const struct reply_item *, const char *word);
bool reply_begins(const struct reply_item *, const char *front);
/* reply_fits - whether it is an array of just these types: i integer, s string, n string or nil. */
bool reply_fits(const struct reply *, const char *types);

enum reply_result { REPLY_NONE, REPLY_READY, REPLY_BAD, REPLY_NOMEM };

void reply_init(struct reply_parser *, const struct alloc *);
/* reply_open - ready for the bytes of a new connection. False: out of memory. */
bool reply_open(struct reply_parser *);
void reply_clear(struct reply_parser *);
/* reply_is_drained - nothing was fed that no whole reply has taken. */
bool reply_is_drained(const struct reply_parser *);
/* reply_feed - more bytes of this connection; at most REPLY_BYTES_MAX at once. They must stay until reply_next says
 * NONE, or more are fed. A failure comes out of reply_next. */
void reply_feed(struct reply_parser *, const char *data, size_t length);
/* reply_next - the next whole reply, if there is one. READY: *ret is valid until the next call on this parser.
 * BAD, NOMEM: the connection is of no use any more; *ret_why says why. */
enum reply_result reply_next(struct reply_parser *, const struct reply **ret, const char **ret_why);
