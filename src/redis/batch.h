/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * batch.h - collect the requests of one turn of the loop and send them as one command
 *
 * Many small scripts cost a server more than one script that does the same work. No request is delayed for a batch: it
 * leaves at the end of the turn, as everything else does, and a batch of one request is sent as the ordinary command.
 * The dialect decides which requests may share a batch; those with a lease must have the same one. Requests of the turn
 * that are sent on their own overtake the batch, but never one for a key that is in it: see batch_has_key.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/dialect/dialect.h"
#include "redis/inflight.h"

struct batch {
    struct dialect_batch content;
    struct node_request first;              /* the first request; its key and owner are copied to content */
    size_t key_length;                      /* the length of its key */
    uint64_t key_hashes[DIALECT_BATCH_MAX]; /* hashes of the keys */
    uint64_t filter[16]; /* a Bloom filter of these hashes: most keys are found to be new by it alone */
    struct inflight_request entries[DIALECT_BATCH_MAX];
};

void batch_init(struct batch *, const struct alloc *);
void batch_clear(struct batch *);
/* batch_is_full - return whether the request needs another batch: this one has no place left, or another lease, or
 * other counters. */
bool batch_is_full(const struct batch *, const struct node_request *);
/* batch_key_hash - return the hash of a key. Two keys with the same hash just do not share a batch. */
uint64_t batch_key_hash(const struct node_key *);
/* batch_has_key - return whether the batch may have a key of the request, whose hash is given. The batch must then be
 * executed first. */
bool batch_has_key(const struct batch *, const struct node_request *, uint64_t hash);
/* batch_size - return the size of its command in bytes.
 * batch_size_with - return the size with one more request. */
size_t batch_size(const struct batch *, const struct dialect *);
size_t batch_size_with(const struct batch *, const struct dialect *, const struct node_request *);
/* batch_add - add a request for which batch_is_full and batch_has_key are false. */
enum bytes_fault batch_add(struct batch *, char letter, const struct node_request *, uint64_t hash,
                           const struct inflight_request *);
/* batch_build - append the command of the batch, or the ordinary command of its only request; see build() of dialect.h.
 */
void batch_build(const struct batch *, struct bytes *, const struct dialect *, uint32_t *whole_sent,
                 const struct guard *);
/* batch_forget - make the batch empty again. */
void batch_forget(struct batch *);

/* The reply to a batch, taken apart into one reply for each request. */
struct batch_replies {
    struct reply_parser parser;
    const struct reply *all; /* one reply for all requests; NULL: each has its own */
};

void batch_replies_init(struct batch_replies *, const struct alloc *);
void batch_replies_clear(struct batch_replies *);
/* batch_replies_begin - start with the reply to a batch, which must stay until the last call of batch_replies_next.
 */
void batch_replies_begin(struct batch_replies *, const struct reply *);
/* batch_replies_next - return the reply to the next request. `last` tells that it is the last request of the batch. If
 * the server sent too few replies, or too many, the result is a reply that fits no request. NULL: out of memory. */
const struct reply *batch_replies_next(struct batch_replies *, bool last);
