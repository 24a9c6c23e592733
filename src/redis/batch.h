/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * batch.h - requests of one turn of the loop that wait for its end, to leave as one command
 *
 * Many small scripts cost a server more than one that does the work of all. None waits for a batch: what is there
 * when the turn ends is sent, and one request alone goes as the plain command. Which requests may go together is the
 * dialect's to say; those with a lease must have the same one. A batch leaves behind other requests of the turn that
 * came later, but never behind one for a key of its own: see batch_meets.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/dialect/dialect.h"
#include "redis/ring.h"

struct batch {
    struct dialect_batch content;
    struct node_request first;         /* its key and owner are those in content */
    size_t key_length;                 /* of the first */
    uint64_t marks[DIALECT_BATCH_MAX]; /* of their keys */
    uint64_t seen[16];                 /* a bit for each mark: most keys are found to be others by it alone */
    struct ring_entry entries[DIALECT_BATCH_MAX];
};

void batch_init(struct batch *, const struct alloc *);
void batch_clear(struct batch *);
/* batch_is_full - the request must go with another batch: there is no place, or it has another lease, or other
 * counters. */
bool batch_is_full(const struct batch *, const struct node_request *);
/* batch_mark - of its only key: equal for equal keys. Where it is equal for others, too, they only do not go together.
 */
uint64_t batch_mark(const struct node_request *);
/* batch_meets - the request, with that mark, may have a key that is in the batch, which must be executed first. */
bool batch_meets(const struct batch *, const struct node_request *, uint64_t mark);
/* batch_size - how many bytes it takes to send it; batch_size_with: with one more request. */
size_t batch_size(const struct batch *, const struct dialect *);
size_t batch_size_with(const struct batch *, const struct dialect *, const struct node_request *);
/* batch_add - one more, which must not meet it. */
enum bytes_fault batch_add(struct batch *, char letter, const struct node_request *, uint64_t mark,
                           const struct ring_entry *);
/* batch_build - appends its command, or the plain one of its only request; see build() of dialect.h. */
void batch_build(const struct batch *, struct bytes *, const struct dialect *, uint32_t *whole_sent,
                 const struct guard *);
/* batch_forget - it is empty again. */
void batch_forget(struct batch *);

/* The reply to a batch, taken apart. */
struct verdicts {
    struct reply_parser parser;
    const struct reply *all; /* the same for each request; NULL: each has its own */
};

void verdicts_init(struct verdicts *, const struct alloc *);
void verdicts_clear(struct verdicts *);
/* verdicts_begin - of that reply, which stays until the last was taken; an error is for all. False: out of memory. */
bool verdicts_begin(struct verdicts *, const struct reply *);
/* verdicts_next - for the next request; where the reply has none for it, or one too many, what fits no request. NULL:
 * out of memory. */
const struct reply *verdicts_next(struct verdicts *, bool last);
