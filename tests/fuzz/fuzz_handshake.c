/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_handshake.c - a new connection: what is said on it, and a server that answers anything
 *
 * The first bytes choose the address, the dialect and how many steps a good server answers before the bytes
 * begin. No password is in any reason, whatever the server echoes.
 */
#include "feed.h"
#include "redis/link/handshake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a good server says to that step. */
static const char *good(enum handshake_step step)
{
    switch (step) {
    case HANDSHAKE_AUTH:
    case HANDSHAKE_SELECT:
    case HANDSHAKE_TRACKING:
    case HANDSHAKE_CACHING:
    case HANDSHAKE_SETNAME: return "+OK\r\n";
    case HANDSHAKE_HELLO: return "%1\r\n$5\r\nproto\r\n:3\r\n";
    case HANDSHAKE_PING: return "+PONG\r\n";
    case HANDSHAKE_SERVER: return "$56\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:ab\r\n\r\n";
    case HANDSHAKE_REPLICATION: return "$32\r\nrole:master\r\nmaster_replid:abc\r\n\r\n";
    case HANDSHAKE_MEMORY: return "$13\r\nmaxmemory:0\r\n\r\n";
    case HANDSHAKE_AWAKE: return "$0\r\n\r\n";
    default: return NULL;
    }
}

static void check_reason(const struct handshake *shake, const char *why)
{
    CHECK(*why != '\0');
    for (; *why != '\0'; why++) {
        CHECK((unsigned char)*why >= 0x20 && *why != 0x7f);
        CHECK(strncmp(why, shake->uri->password, strlen(shake->uri->password)) != 0);
    }
}

static void check_result(const struct handshake *shake, enum handshake_result result)
{
    CHECK(shake->at <= shake->n_steps);
    CHECK(strnlen(shake->run_id, GUARD_ID_SIZE) < GUARD_ID_SIZE);
    CHECK(strnlen(shake->replid, GUARD_ID_SIZE) < GUARD_ID_SIZE);
    switch (result) {
    case HANDSHAKE_MORE: CHECK(shake->at < shake->n_steps); break;
    case HANDSHAKE_DONE: CHECK(shake->at == shake->n_steps); break;
    case HANDSHAKE_FAILED:
        CHECK(shake->fault != FAULT_NONE);
        check_reason(shake, shake->why);
        break;
    }
}

static enum handshake_result hear(struct handshake *shake, struct reply_parser *parser, const char *text, size_t length)
{
    enum handshake_result shaken = HANDSHAKE_MORE;
    enum reply_result result = REPLY_NONE;
    const struct reply *reply = NULL;
    const char *why = NULL;
    char malformed[320];
    handshake_hear(shake, text, length);
    reply_feed(parser, text, length);
    while (shaken == HANDSHAKE_MORE && (result = reply_next(parser, &reply, &why)) == REPLY_READY) {
        shaken = handshake_reply(shake, reply);
        check_result(shake, shaken);
    }
    if (shaken != HANDSHAKE_MORE || result == REPLY_NONE) return shaken;
    handshake_malformed(shake, shake->at == 0, why, malformed, sizeof(malformed));
    check_reason(shake, malformed);
    return HANDSHAKE_FAILED;
}

static void begin(struct handshake *shake, struct bytes *out, const struct uri *uri, uint8_t shape)
{
    const struct dialect *dialect = (shape & 1) != 0 ? &dialect_redisson : &dialect_plain;
    const char *name = (shape & 2) != 0 ? "me" : NULL;
    if ((shape & 4) != 0)
        handshake_greet(shake, out, uri, name);
    else
        handshake_begin(shake, out, uri, name, dialect, (enum handshake_eviction)((shape >> 3 & 3) % 3));
    CHECK(out->fault == BYTES_FINE && out->used != 0 && shake->n_steps != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = {data, size};
    char host[] = "h", user[] = "bob", password[] = "sesame";
    uint8_t shape = feed_byte(&feed), steps = feed_byte(&feed), first = feed_byte(&feed);
    const struct uri uri = {.kind = URI_NAME,
                            .host = host,
                            .port = 1,
                            .db = shape & 64,
                            .user = (shape & 32) != 0 ? user : NULL,
                            .password = password};
    size_t piece = first != 0 ? first : 4096;
    enum handshake_result result = HANDSHAKE_MORE;
    struct alloc alloc;
    struct bytes out;
    struct handshake shake;
    struct reply_parser parser;
    alloc_init(&alloc, NULL);
    bytes_init(&out, &alloc, 65536);
    begin(&shake, &out, &uri, shape);
    reply_init(&parser, &alloc);
    reply_open(&parser);
    for (; steps % 16 != 0 && result == HANDSHAKE_MORE; steps--) {
        const char *text = good(shake.steps[shake.at]);
        if (text == NULL) break;
        result = hear(&shake, &parser, text, strlen(text));
        CHECK(result != HANDSHAKE_FAILED);
    }
    while (feed.left != 0 && result == HANDSHAKE_MORE) {
        size_t length = feed.left < piece ? feed.left : piece;
        result = hear(&shake, &parser, (const char *)feed.data, length);
        feed.data += length;
        feed.left -= length;
    }
    reply_clear(&parser);
    bytes_clear(&out);
    return 0;
}
