/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/batch.h"

#include <assert.h>
#include <string.h>

#include "redis/link/conn.h"

/* What is around a word, and around the words of one plain command; the guard as seen is among them. */
#define WORD_FRAME  16
#define NUMBER_WORD 32 /* a number with that */
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

uint64_t batch_mark(const struct node_request *request)
{
    const struct node_key *key = request->keys;
    uint64_t mark = key->length, word;
    size_t at = 0;

    for (; at + sizeof(word) <= key->length; at += sizeof(word)) {
        memcpy(&word, key->text + at, sizeof(word));
        mark = (mark ^ word) * 0x9e3779b97f4a7c15u;
        mark ^= mark >> 32;
    }
    word = 0;
    memcpy(&word, key->text + at, key->length - at);
    mark = (mark ^ word) * 0x9e3779b97f4a7c15u;
    return mark ^ mark >> 32;
}

/* The bit of a mark among those of seen. */
static uint64_t bit_of(uint64_t mark)
{
    return 1ull << mark % 64;
}

static size_t word_of(const struct batch *batch, uint64_t mark)
{
    return mark / 64 % (sizeof(batch->seen) / sizeof(batch->seen[0]));
}

bool batch_meets(const struct batch *batch, const struct node_request *request, uint64_t mark)
{
    bool met = false;

    if (batch->content.n == 0 || request->n_keys != 1) return batch->content.n > 0;
    if ((batch->seen[word_of(batch, mark)] & bit_of(mark)) == 0) return false;
    for (size_t i = 0; i < batch->content.n; i++) met |= batch->marks[i] == mark;
    return met;
}

static size_t size_of(const struct batch *batch, const struct dialect *dialect)
{
    const struct dialect_batch *content = &batch->content;
    size_t counters = content->fenced ? content->keys.used + content->n * dialect->counter_frame : 0;

    return PLAIN_FRAME + dialect->batch_frame + content->keys.used + content->owners.used + counters +
           content->numbers.used;
}

size_t batch_size(const struct batch *batch, const struct dialect *dialect)
{
    return batch->content.n > 0 ? size_of(batch, dialect) : 0;
}

size_t batch_size_with(const struct batch *batch, const struct dialect *dialect, const struct node_request *request)
{
    size_t counter = request->fenced ? request->keys[0].length + WORD_FRAME + dialect->counter_frame + NUMBER_WORD : 0;

    return size_of(batch, dialect) + request->keys[0].length + request->owner_length + 2 * (size_t)WORD_FRAME + counter;
}

/* All or none. */
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

enum bytes_fault batch_add(struct batch *batch, char letter, const struct node_request *request, uint64_t mark,
                           const struct ring_entry *entry)
{
    struct dialect_batch *content = &batch->content;
    enum bytes_fault fault;

    assert(!batch_is_full(batch, request) && request->n_keys == 1);
    fault = write_words(content, request);
    if (fault != BYTES_FINE) return fault;
    if (content->n == 0) {
        batch->first = *request;
        batch->key_length = request->keys[0].length;
        content->fenced = request->fenced;
        content->fence_ttl_ms = request->fence_ttl_ms;
    }
    if (is_leased(request)) content->lease_ms = request->lease_ms;
    content->letters[content->n] = letter;
    batch->seen[word_of(batch, mark)] |= bit_of(mark);
    batch->marks[content->n] = mark;
    batch->entries[content->n++] = *entry;
    return BYTES_FINE;
}

/* The text of the only word, which has CR LF behind it. */
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
    batch->content.n = batch->content.lease_ms = 0;
    batch->content.fenced = false;
    memset(batch->seen, 0, sizeof(batch->seen));
    bytes_cut(&batch->content.keys, 0);
    bytes_cut(&batch->content.owners, 0);
    bytes_cut(&batch->content.numbers, 0);
}

/* An empty array. */
static const struct reply batch_misfit = {.self = {.type = REPLY_ARRAY}};

void verdicts_init(struct verdicts *verdicts, const struct alloc *alloc)
{
    reply_init(&verdicts->parser, alloc);
}

void verdicts_clear(struct verdicts *verdicts)
{
    reply_clear(&verdicts->parser);
}

bool verdicts_begin(struct verdicts *verdicts, const struct reply *reply)
{
    struct reply_parser *parser = &verdicts->parser;

    verdicts->all = reply->self.type == REPLY_ERROR ? reply : &batch_misfit;
    if (reply->self.type != REPLY_STRING) return true;
    verdicts->all = NULL;
    /* What is left in it is of a connection that ended in the midst of a batch. */
    if ((parser->reader == NULL || !reply_is_drained(parser)) && !reply_open(parser)) return false;
    reply_feed(parser, reply->self.text, reply->self.length);
    return true;
}

const struct reply *verdicts_next(struct verdicts *verdicts, bool last)
{
    const struct reply *verdict;
    const char *why;

    if (verdicts->all != NULL) return verdicts->all;
    switch (reply_next(&verdicts->parser, &verdict, &why)) {
    case REPLY_READY: break;
    case REPLY_NOMEM: return NULL;
    default: return &batch_misfit;
    }
    return last && !reply_is_drained(&verdicts->parser) ? &batch_misfit : verdict;
}
