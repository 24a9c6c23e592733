/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/batch.h"

#include <assert.h>
#include <string.h>

#include "redis/link/conn.h"

/* Upper bounds for the protocol bytes around a word, for a number, and for the words of one ordinary command, among
 * them the guard. */
#define WORD_FRAME  16
#define NUMBER_WORD 32 /* a number, with these bytes */
#define PLAIN_FRAME 1024

void batch_init(struct batch *batch, const struct alloc *alloc)
{
    batch->content.n = 0;
    bytes_init(&batch->content.keys, alloc, CONN_OUT_MAX);
    bytes_init(&batch->content.owners, alloc, CONN_OUT_MAX);
    bytes_init(&batch->content.numbers, alloc, CONN_OUT_MAX);
}

void batch_clear(struct batch *batch)
{
    batch_forget(batch);
    bytes_clear(&batch->content.keys);
    bytes_clear(&batch->content.owners);
    bytes_clear(&batch->content.numbers);
}

static bool is_leased(const struct node_request *request)
{
    return request->op == OP_EXTEND || request->op == OP_ACQUIRE;
}

static bool has_other_counters(const struct dialect_batch *content, const struct node_request *request)
{
    return request->fenced != content->fenced || (content->fenced && request->fence_ttl_ms != content->fence_ttl_ms);
}

bool batch_is_full(const struct batch *batch, const struct node_request *request)
{
    const struct dialect_batch *content = &batch->content;
    uint32_t lease_ms = content->lease_ms;

    return content->n == DIALECT_BATCH_MAX || (content->n > 0 && has_other_counters(content, request)) ||
           (lease_ms != 0 && is_leased(request) && request->lease_ms != lease_ms);
}

uint64_t batch_key_hash(const struct node_key *key)
{
    uint64_t hash = key->length, word;
    size_t at = 0;

    for (; at + sizeof(word) <= key->length; at += sizeof(word)) {
        memcpy(&word, key->text + at, sizeof(word));
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    word = 0;
    memcpy(&word, key->text + at, key->length - at);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

/* The bit of a key hash in its word of the filter. */
static uint64_t bit_of(uint64_t hash)
{
    return 1ull << hash % 64;
}

static size_t word_of(const struct batch *batch, uint64_t hash)
{
    return hash / 64 % (sizeof(batch->filter) / sizeof(batch->filter[0]));
}

bool batch_has_key(const struct batch *batch, const struct node_request *request, uint64_t hash)
{
    bool met = false;

    if (batch->content.n == 0 || request->n_keys != 1) return batch->content.n > 0;
    if ((batch->filter[word_of(batch, hash)] & bit_of(hash)) == 0) return false;
    for (size_t i = 0; i < batch->content.n; i++) met |= batch->key_hashes[i] == hash;
    return met;
}

static size_t size_of(const struct batch *batch, const struct dialect *dialect)
{
    const struct dialect_batch *content = &batch->content;
    size_t counters = content->fenced ? content->keys.used + content->n * DIALECT_COUNTER_FRAME : 0;

    return PLAIN_FRAME + dialect->scripts[SCRIPT_COMBINED].length + DIALECT_BATCH_FRAME + content->keys.used +
           content->owners.used + counters + content->numbers.used + content->prefix;
}

size_t batch_size(const struct batch *batch, const struct dialect *dialect)
{
    return batch->content.n > 0 ? size_of(batch, dialect) : 0;
}

size_t batch_size_with(const struct batch *batch, const struct dialect *dialect, const struct node_request *request)
{
    size_t counter = request->fenced ? request->keys[0].length + WORD_FRAME + DIALECT_COUNTER_FRAME + NUMBER_WORD : 0;
    size_t words = request->keys[0].length + request->owner_length + request->prefix + 3 * (size_t)WORD_FRAME;

    return size_of(batch, dialect) + words + counter;
}

/* Append the words of the request to the three buffers, all or none. */
static enum bytes_fault write_words(struct dialect_batch *content, const struct node_request *request)
{
    size_t keys = content->keys.used, owners = content->owners.used, numbers = content->numbers.used;
    enum bytes_fault fault;

    bytes_word(&content->keys, request->keys[0].text, request->keys[0].length);
    bytes_word(&content->owners, request->owner, request->owner_length);
    if (request->fenced) bytes_number(&content->numbers, request->fence);
    fault = content->keys.fault != BYTES_FINE ? content->keys.fault : content->owners.fault;
    if (fault == BYTES_FINE) fault = content->numbers.fault;
    if (fault == BYTES_FINE) return fault;
    bytes_cut(&content->keys, keys);
    bytes_cut(&content->owners, owners);
    bytes_cut(&content->numbers, numbers);
    return fault;
}

enum bytes_fault batch_add(struct batch *batch, char letter, const struct node_request *request, uint64_t hash,
                           const struct inflight_request *entry)
{
    struct dialect_batch *content = &batch->content;
    enum bytes_fault fault;

    assert(!batch_is_full(batch, request) && request->n_keys == 1);
    assert(content->n == 0 || request->prefix == content->prefix);
    fault = write_words(content, request);
    if (fault != BYTES_FINE) return fault;
    if (content->n == 0) {
        batch->first = *request;
        batch->key_length = request->keys[0].length;
        content->prefix = request->prefix;
        content->fenced = request->fenced;
        content->fence_ttl_ms = request->fence_ttl_ms;
    }
    if (is_leased(request)) content->lease_ms = request->lease_ms;
    content->letters[content->n] = letter;
    batch->filter[word_of(batch, hash)] |= bit_of(hash);
    batch->key_hashes[content->n] = hash;
    batch->entries[content->n++] = *entry;
    return BYTES_FINE;
}

/* The text of the only word in the buffer, which ends with CR LF. */
static const char *text_of(const struct bytes *word, size_t length)
{
    return word->data + word->used - 2 - length;
}

void batch_build(const struct batch *batch, struct bytes *out, const struct dialect *dialect, uint32_t *whole_sent,
                 const struct guard *guard)
{
    const struct dialect_batch *content = &batch->content;
    struct node_request alone = batch->first;
    struct node_key key;

    if (content->n > 1) {
        dialect->build_batch(out, content, whole_sent, guard);
        return;
    }
    key = (struct node_key){.text = text_of(&content->keys, batch->key_length), .length = batch->key_length};
    alone.keys = &key;
    alone.owner = text_of(&content->owners, alone.owner_length);
    (void)dialect->build(out, &alone, whole_sent, guard);
}

void batch_forget(struct batch *batch)
{
    batch->content.n = batch->content.prefix = batch->content.lease_ms = 0;
    batch->content.fenced = false;
    memset(batch->filter, 0, sizeof(batch->filter));
    bytes_cut(&batch->content.keys, 0);
    bytes_cut(&batch->content.owners, 0);
    bytes_cut(&batch->content.numbers, 0);
}

/* An empty array fits no request. */
static const struct reply batch_misfit = {.self = {.type = REPLY_ARRAY}};

void batch_replies_init(struct batch_replies *replies, const struct alloc *alloc)
{
    reply_init(&replies->parser, alloc);
}

void batch_replies_clear(struct batch_replies *replies)
{
    reply_clear(&replies->parser);
}

void batch_replies_begin(struct batch_replies *replies, const struct reply *reply)
{
    struct reply_parser *parser = &replies->parser;

    replies->all = reply->self.type == REPLY_ERROR ? reply : &batch_misfit;
    if (reply->self.type != REPLY_STRING) return;
    replies->all = NULL;
    /* Bytes that are left in the parser belong to a connection that ended in the middle of a batch. */
    reply_open(parser);
    reply_feed(parser, reply->self.text, reply->self.length);
}

const struct reply *batch_replies_next(struct batch_replies *replies, bool last)
{
    const struct reply *reply;
    const char *why;

    if (replies->all != NULL) return replies->all;
    switch (reply_next(&replies->parser, &reply, &why)) {
    case REPLY_READY: break;
    case REPLY_NOMEM: return NULL;
    default: return &batch_misfit;
    }
    return last && !reply_is_drained(&replies->parser) ? &batch_misfit : reply;
}
