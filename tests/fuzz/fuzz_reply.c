/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_reply.c - bytes of a server, in pieces, through parser, judgement and handshake
 *
 * The first byte says how large the pieces are; the rest is what the server says.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "redis/dialect.h"
#include "redis/handshake.h"
#include "redis/reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every byte that a result points at can be read. */
static void fuzz_touch(const struct node_reply *reply)
{
    size_t sum = 0;
    if (reply->error) sum += strlen(reply->error);
    for (size_t i = 0; reply->holder && i < reply->holder_length; i++) sum += (unsigned char)reply->holder[i];
    if (sum == SIZE_MAX) abort();
    if (reply->outcome > NODE_UNKNOWN || reply->fault > NODE_FAULT_GUARD) abort();
    if (reply->ttl_ms < -2) abort();
    if ((reply->outcome == NODE_ERROR) && !reply->error) abort();
}

static void fuzz_judge(size_t piece, const struct reply *reply)
{
    static const enum node_op ops[] = {NODE_ACQUIRE, NODE_EXTEND, NODE_RELEASE,   NODE_PEEK,    NODE_BREAK,
                                       NODE_REPAIR,  NODE_RAISE,  NODE_BOOTSTRAP, NODE_MAY_KILL};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        struct node_reply judged;
        char text[320];
        dialect_plain.judge(ops[i], piece & 1, reply, &judged, text, sizeof text);
        fuzz_touch(&judged);
        dialect_redisson.judge(ops[i], piece & 1, reply, &judged, text, sizeof text);
        fuzz_touch(&judged);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct alloc alloc;
    struct reply_parser parser;
    struct bytes out;
    struct handshake shake;
    char host[] = "h", user[] = "bob", password[] = "sesame";
    const struct uri uri = {
        .kind = URI_NAME, .host = host, .port = 1, .db = 1, .user = user, .password = password};
    enum handshake_result shaken = HANDSHAKE_MORE;
    const struct reply *reply = NULL;
    const char *why = NULL;
    if (!size) return 0;
    alloc_init(&alloc, NULL);
    bytes_init(&out, &alloc, 65536);
    handshake_begin(&shake, &out, &uri, "me", &dialect_plain, HANDSHAKE_EVICTION_FAILS);
    reply_init(&parser, &alloc);
    if (!reply_open(&parser)) abort();
    size_t piece = data[0] ? data[0] : REPLY_BYTES_MAX, at = 1;
    enum reply_result result = REPLY_NONE;
    while (at < size && result == REPLY_NONE) {
        size_t length = size - at < piece ? size - at : piece;
        reply_feed(&parser, (const char *)data + at, length);
        at += length;
        while ((result = reply_next(&parser, &reply, &why)) == REPLY_READY) {
            fuzz_judge(piece, reply);
            if (shaken == HANDSHAKE_MORE) shaken = handshake_reply(&shake, reply);
        }
        if (result != REPLY_NONE && !*why) abort();
        if (shaken == HANDSHAKE_FAILED && strstr(shake.why, password)) abort();
    }
    reply_clear(&parser);
    bytes_clear(&out);
    return 0;
}
