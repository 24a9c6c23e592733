/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reply.h - parse the bytes from a server into typed replies
 *
 * All replies are read into one that is reused, so a reply costs no allocation, and the few that most requests of a
 * lock get are read without a look at the others. Each of our commands is answered with one value or a short flat
 * array. Anything larger or deeper is refused before it costs memory, whatever length the server announces. Of RESP3 it
 * knows what a server sends after HELLO 3: null, pushes, and maps, of which the first few plain values are kept.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

#define REPLY_ELEMENTS_MAX 8
#define REPLY_BYTES_MAX    ((size_t)1 << 18) /* the longest reply, in bytes on the wire */

/* From ARRAY on a value has others in it. */
enum reply_type {
    REPLY_NIL,
    REPLY_STATUS,
    REPLY_ERROR,
    REPLY_INTEGER,
    REPLY_STRING,
    REPLY_ARRAY,
    REPLY_PUSH,
    REPLY_MAP
};

struct reply_item {
    enum reply_type type;
    int64_t integer;
    const char *text; /* STATUS, ERROR, STRING: any bytes, with a NUL behind them */
    size_t length;
    size_t offset; /* the place of the text, while the buffer may still move */
};

struct reply {
    struct reply_item self;
    size_t n_elements; /* of an ARRAY, a PUSH with the lists in it, or the first plain ones of a MAP: name, value ... */
    struct reply_item elements[REPLY_ELEMENTS_MAX];
};

struct reply_buffer {
    char *bytes;
    size_t room;
};

/* What of a reply that is not whole yet has been read: a reply that comes in many pieces is not read again from its
 * begin with each. */
struct reply_progress {
    size_t at;       /* of the bytes ahead */
    size_t searched; /* of these, where no line ends before it */
    size_t text;     /* of the buffer for texts */
    size_t missing;  /* values that it announced and that have not come; 0: none of it has come */
};

struct reply_parser {
    const struct alloc *alloc;
    struct reply reply;
    struct reply_buffer text; /* of the latest reply */
    struct reply_buffer kept; /* the bytes ahead, if they are no whole reply yet */
    const char *ahead;        /* bytes that were fed, and not yet read */
    size_t n_ahead;
    bool inside; /* they are in `kept` */
    struct reply_progress done;
    size_t same; /* the length of the latest reply, right before `ahead`, if it was a plain one; else 0 */
    bool nomem;
    const char *fault; /* why a reply was refused */
};

/* reply_is - return whether the item's text is that word.
 * reply_begins - return whether it begins with it. */
bool reply_is(const struct reply_item *, const char *word);
bool reply_begins(const struct reply_item *, const char *front);
/* reply_fits - return whether it is an array of exactly these types: i integer, s string, n string or nil. */
bool reply_fits(const struct reply *, const char *types);

enum reply_result { REPLY_NONE, REPLY_READY, REPLY_BAD, REPLY_NOMEM };

void reply_init(struct reply_parser *, const struct alloc *);
/* reply_open - prepare for the bytes of a new connection. */
void reply_open(struct reply_parser *);
/* reply_keep_room - take memory beforehand, so that none is needed for a reply whose texts have at most so many bytes,
 * and which comes in pieces of at most `piece` bytes. If there is none, reply_next asks again. Call it after
 * reply_open. */
void reply_keep_room(struct reply_parser *, size_t texts, size_t piece);
void reply_clear(struct reply_parser *);
/* reply_is_drained - return whether all bytes that were fed belong to replies that reply_next has returned. */
bool reply_is_drained(const struct reply_parser *);
/* reply_feed - pass more bytes of this connection, at most REPLY_BYTES_MAX at once. They must stay until reply_next
 * returns NONE or more bytes are fed. Failures are reported by reply_next. */
void reply_feed(struct reply_parser *, const char *data, size_t length);
/* reply_next - return the next whole reply, if there is one. READY: *ret is valid until the next call on this parser.
 * BAD, NOMEM: the connection is unusable, for the reason *ret_why. */
enum reply_result reply_next(struct reply_parser *, const struct reply **ret, const char **ret_why);
