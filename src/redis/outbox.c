/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/outbox.h"

#include <assert.h>

/* See outbox_begin. */
#define OUTBOX_ROOM 65536u
/* For this long all scripts are sent as text after one was lost: longer than most pauses before a request is repeated.
 */
#define OUTBOX_WHOLE_US 1000000u

/* Limits by enum node_room: requests in flight, and bytes that wait to be sent. */
static const struct {
    size_t requests, bytes;
} rooms[] = {
    [NODE_ROOM_NEW] = {(size_t)INFLIGHT_MAX / 2, CONN_OUT_MAX / 4},
    [NODE_ROOM_KEEP] = {(size_t)INFLIGHT_MAX / 4 * 3, CONN_OUT_MAX / 4 * 3},
    [NODE_ROOM_NEXT] = {INFLIGHT_MAX, CONN_OUT_MAX},
};

void outbox_init(struct outbox *outbox, const struct alloc *alloc, struct redis_link *link,
                 const struct dialect *dialect, const struct guard *guard, uint64_t stall_us)
{
    *outbox = (struct outbox){.link = link, .dialect = dialect, .guard = guard, .stall_us = stall_us};
    inflight_init(&outbox->inflight, alloc);
    batch_init(&outbox->batch, alloc);
    tracking_init(&outbox->tracking, alloc);
}

void outbox_clear(struct outbox *outbox)
{
    inflight_clear(&outbox->inflight);
    batch_clear(&outbox->batch);
    tracking_clear(&outbox->tracking);
}

void outbox_begin(struct outbox *outbox)
{
    outbox->alone = false;
    outbox->untracked = false;
    tracking_forget(&outbox->tracking);
    outbox->whole_sent = 0;
    outbox->whole_until_us = 0;
    bytes_reserve(&outbox->link->conn.out, OUTBOX_ROOM);
}

/* Readers renew one key together, so each would be told of the others; slots have other keys than their name. */
static bool is_tracked(const struct outbox *outbox, const struct node_request *request)
{
    if (request->n_keys != 1 || request->permits != 0 || request->shared != 0) return false;
    if (!outbox->link->handshake.tracks || outbox->untracked) return false;
    return request->op == OP_EXTEND || request->watch;
}

static struct inflight_request entry_of(const struct outbox *outbox, const struct node_request *request,
                                        uint64_t now_us, bool by_script)
{
    uint64_t timeout_us = (uint64_t)request->timeout_ms * 1000;

    return (struct inflight_request){.tag = request->tag,
                                     .sent_us = now_us,
                                     .deadline_us = timeout_us > 0 ? now_us + timeout_us : INFLIGHT_NEVER,
                                     .timeout_ms = request->timeout_ms,
                                     .op = request->op,
                                     .by_script = by_script,
                                     .patient = request->patient,
                                     .watched = is_tracked(outbox, request),
                                     .parts = guard_parts(request)};
}

/* Add a request in flight behind all others. */
static void outbox_push(struct outbox *outbox, const struct inflight_request *entry)
{
    uint64_t stall_us = outbox->stall_us;
    uint64_t wake_us = entry->deadline_us;

    inflight_push(&outbox->inflight, entry);
    outbox->unsent++;
    /* When the timer fires, node_on_due() looks at all requests in flight. */
    if (stall_us > 0 && entry->sent_us + stall_us < wake_us) wake_us = entry->sent_us + stall_us;
    link_arm_by(outbox->link, entry->sent_us, wake_us);
}

/* Return whether the last command sent the text of a script. before: whole_sent before it. */
static bool went_whole(struct outbox *outbox, uint32_t before)
{
    if (outbox->whole_sent == before) return false;
    if (outbox->whole_until_us == 0) return true;
    if (link_now_us(outbox->link) < outbox->whole_until_us)
        outbox->whole_sent = 0;
    else
        outbox->whole_until_us = 0;
    return true;
}

/* The node's own question, written from `mark` on, is in flight. `behind`: bytes for which room is kept behind it.
 * False: there is no such room, and the question is cut off. */
static bool push_own(struct outbox *outbox, const struct inflight_request *entry, size_t mark, size_t behind)
{
    struct bytes *out = &outbox->link->conn.out;

    bytes_reserve(out, behind);
    if (out->fault != BYTES_FINE) {
        bytes_cut(out, mark);
        return false;
    }
    inflight_push(&outbox->inflight, entry);
    outbox->unsent++;
    return true;
}

/* Ask the server to tell of the next change of these keys: all words of a batch, or one key. `behind`: see push_own.
 * Whoever is not told learns of a change at the next renewal, so this fails silently. */
static void outbox_track(struct outbox *outbox, const struct bytes *words, const struct node_key *key,
                         const uint64_t *hashes, size_t n, size_t behind)
{
    const struct inflight_request entry = {.sent_us = link_now_us(outbox->link),
                                           .deadline_us = INFLIGHT_NEVER,
                                           .reported = true,
                                           .tracks = true,
                                           .parts = 1};
    struct bytes *out = &outbox->link->conn.out;
    size_t mark = out->used;

    if (inflight_reserve(&outbox->inflight, outbox->batch.content.n + 1) != INFLIGHT_ROOM) return;
    if (!tracking_reserve(&outbox->tracking, n)) return;
    guard_track(out);
    bytes_command(out, n + 1);
    bytes_text(out, "EXISTS");
    if (words != NULL)
        bytes_append(out, words->data, words->used);
    else
        bytes_word(out, key->text, key->length);
    if (push_own(outbox, &entry, mark, behind)) tracking_begin(&outbox->tracking, hashes, n);
}

/* All keys of the batch: a change of another key of it concerns no lock, or one that is glad to hear. */
static void track_batch(struct outbox *outbox)
{
    const struct batch *batch = &outbox->batch;
    bool watched = false;

    for (size_t i = 0; i < batch->content.n; i++) watched |= batch->entries[i].watched;
    if (watched) outbox_track(outbox, &batch->content.keys, NULL, batch->key_hashes, batch->content.n, 0);
}

static void track_command(struct outbox *outbox, const struct node_request *request)
{
    uint64_t hash = batch_key_hash(request->keys);

    outbox_track(outbox, NULL, request->keys, &hash, 1, batch_size(&outbox->batch, outbox->dialect));
}

/* Room in the buffer was kept when each request was added to the batch. */
static void write_batch(struct outbox *outbox)
{
    struct batch *batch = &outbox->batch;
    size_t n = batch->content.n;
    uint32_t before = outbox->whole_sent;

    batch_build(batch, &outbox->link->conn.out, outbox->dialect, &outbox->whole_sent, outbox->guard);
    assert(outbox->link->conn.out.fault == BYTES_FINE);
    batch->entries[0].batch = n > 1 ? (uint8_t)n : 0;
    batch->entries[0].whole = went_whole(outbox, before);
    for (size_t i = 0; i < n; i++) outbox_push(outbox, &batch->entries[i]);
}

void outbox_flush(struct outbox *outbox)
{
    if (outbox->batch.content.n == 0) return;
    write_batch(outbox);
    track_batch(outbox);
    batch_forget(&outbox->batch);
}

/* Rules 1.2 and 1.8. The time for an answer runs from when the request left; a lease runs from when it was queued. */
void outbox_sent(struct outbox *outbox, uint64_t now_us)
{
    for (size_t i = outbox->inflight.count - outbox->unsent; i < outbox->inflight.count; i++) {
        struct inflight_request *entry = inflight_at(&outbox->inflight, i);

        entry->sent_us = now_us;
        if (entry->deadline_us != INFLIGHT_NEVER) entry->deadline_us = now_us + (uint64_t)entry->timeout_ms * 1000;
    }
    outbox->unsent = 0;
}

bool outbox_has_room(const struct outbox *outbox, enum node_room room)
{
    size_t bytes = outbox->link->conn.out.used + batch_size(&outbox->batch, outbox->dialect);

    return link_is_open(outbox->link) && outbox_count(outbox) < rooms[room].requests && bytes < rooms[room].bytes;
}

size_t outbox_count(const struct outbox *outbox)
{
    return outbox->inflight.count + outbox->batch.content.n;
}

static enum node_room room_of(enum op op)
{
    return op == OP_EXTEND || op == OP_RELEASE ? NODE_ROOM_KEEP : NODE_ROOM_NEXT;
}

/* Write the request as the last command so far. Room for the batch behind it is kept. */
static enum bytes_fault outbox_add_command(struct outbox *outbox, const struct node_request *request, uint64_t now_us)
{
    struct bytes *out = &outbox->link->conn.out;
    size_t mark = out->used;
    uint32_t before = outbox->whole_sent;
    bool by_script = outbox->dialect->build(out, request, &outbox->whole_sent, outbox->guard);
    struct inflight_request entry = entry_of(outbox, request, now_us, by_script);
    enum bytes_fault fault;

    bytes_reserve(out, batch_size(&outbox->batch, outbox->dialect));
    fault = out->fault;
    if (fault == BYTES_FINE) {
        entry.whole = went_whole(outbox, before);
        outbox_push(outbox, &entry);
        if (entry.watched) track_command(outbox, request);
    } else {
        bytes_cut(out, mark);
        outbox->whole_sent = before;
    }
    return fault;
}

/* Add the request to the batch, with room in the buffer and among the requests in flight. */
static enum bytes_fault add_waiting(struct outbox *outbox, char letter, const struct node_request *request,
                                    uint64_t key_hash, uint64_t now_us)
{
    struct bytes *out = &outbox->link->conn.out;
    struct inflight_request entry = entry_of(outbox, request, now_us, true);
    enum bytes_fault fault;

    bytes_reserve(out, batch_size_with(&outbox->batch, outbox->dialect, request));
    fault = out->fault;
    bytes_cut(out, out->used);
    return fault != BYTES_FINE ? fault : batch_add(&outbox->batch, letter, request, key_hash, &entry);
}

int outbox_send(struct outbox *outbox, const struct node_request *request)
{
    char letter = outbox->alone ? '\0' : outbox->dialect->letter(request, outbox->guard);
    /* While there is no batch, an ordinary command need not be compared with it. */
    bool hashed = request->n_keys == 1 && (letter != '\0' || outbox->batch.content.n > 0);
    uint64_t key_hash = hashed ? batch_key_hash(request->keys) : 0;
    enum bytes_fault fault;
    uint64_t now_us;

    assert(request->n_keys <= (request->op == OP_BREAK ? 1 : NODE_KEYS_MAX));
    assert(request->n_keys > 0 || request->op == OP_BOOTSTRAP || request->op == OP_MAY_KILL ||
           request->op == OP_CLIENTS);
    if (!link_is_open(outbox->link)) return NODE_NOT_READY;
    if (!outbox_has_room(outbox, room_of(request->op))) return NODE_FULL;
    if (batch_has_key(&outbox->batch, request, key_hash) || (letter != '\0' && batch_is_full(&outbox->batch, request)))
        outbox_flush(outbox);
    switch (inflight_reserve(&outbox->inflight, outbox->batch.content.n + 1)) {
    case INFLIGHT_ROOM: break;
    case INFLIGHT_FULL: return NODE_FULL;
    case INFLIGHT_NOMEM: return NODE_NOMEM;
    }
    /* The clock is read before the first byte is queued: a lease runs from here. */
    now_us = link_now_us(outbox->link);
    fault = letter != '\0' ? add_waiting(outbox, letter, request, key_hash, now_us) : BYTES_NOMEM;
    /* If there is no memory for the batch, there may be enough for a command of its own. */
    if (fault != BYTES_FINE) fault = outbox_add_command(outbox, request, now_us);
    if (fault != BYTES_FINE) return fault == BYTES_FULL ? NODE_FULL : NODE_NOMEM;
    if (request->timeout_ms > 0) outbox->timeout_ms = request->timeout_ms;
    conn_wake(&outbox->link->conn);
    return NODE_SENT;
}

bool outbox_ask_guard(struct outbox *outbox, bool compares, uint64_t now_us)
{
    struct bytes *out = &outbox->link->conn.out;
    size_t mark = out->used;
    struct inflight_request entry = {.sent_us = now_us,
                                     .deadline_us = INFLIGHT_NEVER,
                                     .reported = true,
                                     .guard = true,
                                     .by_script = !compares,
                                     .parts = compares};

    if (inflight_reserve(&outbox->inflight, outbox->batch.content.n + 1) != INFLIGHT_ROOM) return false;
    if (compares)
        guard_compare(out);
    else
        guard_ask(outbox->guard, out);
    if (!push_own(outbox, &entry, mark, batch_size(&outbox->batch, outbox->dialect))) return false;
    conn_wake(&outbox->link->conn);
    return true;
}

bool outbox_may_harm_late(struct outbox *outbox)
{
    for (size_t i = 0; i < outbox->inflight.count; i++) {
        const struct inflight_request *entry = inflight_at(&outbox->inflight, i);

        if (entry->guard || (entry->op != OP_RELEASE && !entry->tracks)) return true;
    }
    return false;
}

void outbox_on_error(struct outbox *outbox, bool noscript)
{
    if (noscript || inflight_at(&outbox->inflight, 0)->whole) outbox->whole_sent = 0;
    if (noscript) outbox->whole_until_us = link_now_us(outbox->link) + OUTBOX_WHOLE_US;
}

void outbox_close(struct outbox *outbox)
{
    for (size_t i = 0; i < outbox->batch.content.n; i++) inflight_push(&outbox->inflight, &outbox->batch.entries[i]);
    batch_forget(&outbox->batch);
    outbox->unsent = 0;
}
