/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_reply_hiredis.c - the parser of replies beside that of hiredis: the same bytes are the same replies
 *
 * Streams of RESP2 replies from fixed seeds go to both parsers in the same pieces, whole and with bytes changed. What
 * hiredis refuses or waits for, ours does not return as a reply; what both return is equal. Of a changed stream ours
 * may refuse what hiredis takes, for the reasons in `stricter`.
 */
#include <hiredis/hiredis.h>
#include <string.h>

#include "redis/wire/reply.h"
#include "test.h"

#ifdef __SANITIZE_ADDRESS__
#define STREAMS 10000 /* each takes ten times as long */
#else
#define STREAMS 60000
#endif
#define WIRE_MAX  16384
#define TEXT_MAX  2000
#define CHANGES   3
#define REPLIES   6
#define ONE_IN(n) (draw(&seed, n) == 0)

/* Limits that are ours alone. And hiredis does not look at what is behind a string; before 1.0 not for half a line
 * break in a line either. */
static const char *const stricter[] = {"too large", "too many", "too deep", "longer than its header", "half a line"};

struct wire {
    char bytes[WIRE_MAX];
    size_t used;
    size_t n_replies;
};

/* One stream on its way through both. */
struct both {
    struct reply_parser ours;
    redisReader *theirs;
    bool changed;
    bool refused; /* by hiredis */
    size_t n_replies;
};

static uint64_t seed;

/* splitmix64: a number below n. */
static size_t draw(uint64_t *state, size_t n)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (size_t)((z ^ (z >> 31)) % n);
}

/* ---- what a server might send ---- */

__attribute__((format(printf, 2, 3))) static void add(struct wire *wire, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    wire->used += (size_t)vsnprintf(wire->bytes + wire->used, WIRE_MAX - wire->used, format, args);
    va_end(args);
    assert_true(wire->used < WIRE_MAX);
}

static void add_bytes(struct wire *wire, size_t length, bool is_line)
{
    for (size_t i = 0; i < length; i++) {
        char byte = (char)draw(&seed, 256);

        if (ONE_IN(8)) byte = "\r\n:$*+-0"[draw(&seed, 8)];
        wire->bytes[wire->used++] = is_line && (byte == '\r' || byte == '\n') ? ' ' : byte;
    }
}

static void add_integer(struct wire *wire)
{
    static const long long extremes[] = {
        0,  -1, INT64_MAX, INT64_MIN, INT64_MAX - 1, 999999999999999999, 1000000000000000000,
        -9, 10, INT32_MAX, INT32_MIN};
    long long number = (long long)draw(&seed, SIZE_MAX) >> draw(&seed, 63);

    add(wire, ":%lld\r\n", ONE_IN(3) ? extremes[draw(&seed, LENGTH(extremes))] : number);
}

static void add_flat(struct wire *wire)
{
    size_t length = draw(&seed, ONE_IN(40) ? TEXT_MAX : 20), kind = draw(&seed, 8);

    switch (kind) {
    case 0: add(wire, "+OK\r\n"); return;
    case 1: add(wire, "$-1\r\n"); return;
    case 2: add(wire, "*-1\r\n"); return;
    case 3: add(wire, ONE_IN(2) ? "+" : "-"); break;
    case 4:
    case 5: add(wire, "$%zu\r\n", length); break;
    default: add_integer(wire); return;
    }
    add_bytes(wire, length, kind == 3);
    add(wire, "\r\n");
}

static void add_reply(struct wire *wire)
{
    size_t n = draw(&seed, REPLY_ELEMENTS_MAX + 1);
    bool numbers = ONE_IN(2);

    if (ONE_IN(2)) {
        add_flat(wire);
        return;
    }
    add(wire, "*%zu\r\n", n);
    for (; n > 0; n--) {
        if (numbers)
            add_integer(wire);
        else
            add_flat(wire);
        if (wire->used > WIRE_MAX / 2) numbers = true;
    }
}

static void make(struct wire *wire)
{
    size_t begin = 0, again = 0;

    wire->used = wire->n_replies = 0;
    for (size_t n = 1 + draw(&seed, REPLIES); n > 0 && wire->used < WIRE_MAX / 4; n--) {
        if (again > 0 && again < TEXT_MAX && ONE_IN(3)) {
            memcpy(wire->bytes + wire->used, wire->bytes + begin, again);
            wire->used += again;
        } else {
            begin = wire->used;
            add_reply(wire);
            again = wire->used - begin;
        }
        wire->n_replies++;
    }
}

/* Replace, insert and take out bytes. What only RESP3 has, hiredis knows or does not, by its version. */
static void change(struct wire *wire)
{
    static const char likely[] = "\r\n+-:$*0123456789";

    for (size_t n = 1 + draw(&seed, CHANGES); n > 0 && wire->used > 0; n--) {
        size_t at = draw(&seed, wire->used), how = draw(&seed, 3);
        char *place = wire->bytes + at;

        if (how == 1) memmove(place + 1, place, wire->used++ - at);
        if (how == 2)
            memmove(place, place + 1, --wire->used - at);
        else
            *place = ONE_IN(4) ? (char)draw(&seed, 256) : likely[draw(&seed, sizeof(likely) - 1)];
    }
    for (size_t i = 0; i < wire->used; i++)
        if (wire->bytes[i] != '\0' && strchr("_>%#,(=~|!", wire->bytes[i]) != NULL) wire->bytes[i] = '.';
}

/* ---- both parsers ---- */

static bool is_equal(const struct reply_item *item, const redisReply *theirs)
{
    switch (theirs->type) {
    case REDIS_REPLY_NIL: return item->type == REPLY_NIL;
    case REDIS_REPLY_INTEGER: return item->type == REPLY_INTEGER && item->integer == theirs->integer;
    case REDIS_REPLY_ARRAY: return item->type == REPLY_ARRAY;
    case REDIS_REPLY_STATUS:
        if (item->type != REPLY_STATUS) return false;
        break;
    case REDIS_REPLY_ERROR:
        if (item->type != REPLY_ERROR) return false;
        break;
    case REDIS_REPLY_STRING:
        if (item->type != REPLY_STRING) return false;
        break;
    default: return false;
    }
    return item->length == theirs->len && memcmp(item->text, theirs->str, theirs->len + 1) == 0;
}

static void expect_equal(const struct reply *ours, const redisReply *theirs)
{
    assert_non_null(theirs);
    assert_true(is_equal(&ours->self, theirs));
    if (theirs->type != REDIS_REPLY_ARRAY) return;
    assert_int_equal(ours->n_elements, theirs->elements);
    for (size_t i = 0; i < ours->n_elements; i++) assert_true(is_equal(&ours->elements[i], theirs->element[i]));
}

static bool is_stricter(const char *why)
{
    for (size_t i = 0; i < LENGTH(stricter); i++)
        if (strstr(why, stricter[i]) != NULL) return true;
    return false;
}

/* Read the next reply by both; false: there is none. Once hiredis has refused the stream, ours must not return one. */
static bool next_by_both(struct both *both, enum reply_result *ret)
{
    const struct reply *ours;
    const char *why;
    void *theirs = NULL;
    enum reply_result result = *ret = reply_next(&both->ours, &ours, &why);

    /* hiredis would allocate what such a header announces. */
    if (result == REPLY_BAD && both->changed && is_stricter(why)) return false;
    if (!both->refused) both->refused = redisReaderGetReply(both->theirs, &theirs) != REDIS_OK;
    assert_true(!both->refused || both->changed);
    if (result == REPLY_READY) {
        assert_false(both->refused);
        expect_equal(ours, theirs);
        both->n_replies++;
    } else {
        assert_null(theirs);
        assert_true(result == REPLY_NONE || (result == REPLY_BAD && both->refused));
    }
    freeReplyObject(theirs);
    return result == REPLY_READY;
}

static void feed(struct both *both, const struct wire *wire)
{
    static const size_t most[] = {1, 2, 16, 600, WIRE_MAX};
    static char piece[WIRE_MAX];
    size_t longest = most[draw(&seed, LENGTH(most))];
    enum reply_result result = REPLY_NONE;

    for (size_t at = 0, n; at < wire->used && result == REPLY_NONE; at += n) {
        n = 1 + draw(&seed, longest);
        if (n > wire->used - at) n = wire->used - at;
        memcpy(piece, wire->bytes + at, n);
        reply_feed(&both->ours, piece, n);
        if (!both->refused) assert_int_equal(redisReaderFeed(both->theirs, piece, n), REDIS_OK);
        while (next_by_both(both, &result)) {
        }
        /* Ours must not need them any more. */
        memset(piece, '?', n);
    }
}

static void run(struct both *both, uint64_t number, bool changed)
{
    static struct wire wire;

    seed = number;
    both->changed = changed;
    both->refused = false;
    both->n_replies = 0;
    both->theirs = redisReaderCreate();
    make(&wire);
    if (changed) change(&wire);
    reply_open(&both->ours);
    feed(both, &wire);
    assert_true(changed || both->n_replies == wire.n_replies);
    assert_true(changed || reply_is_drained(&both->ours));
    redisReaderFree(both->theirs);
}

TEST(the_same_bytes_are_the_same_replies_as_to_hiredis)
{
    struct both both;

    reply_init(&both.ours, &memory);
    for (uint64_t i = 0; i < STREAMS; i++) run(&both, i, false);
    reply_clear(&both.ours);
}

/* The test is of use only where most of the streams are refused, and many are refused late. */
TEST(what_hiredis_refuses_is_refused)
{
    struct both both;
    size_t n_refused = 0, n_late = 0;

    reply_init(&both.ours, &memory);
    for (uint64_t i = 0; i < STREAMS; i++) {
        run(&both, i, true);
        n_refused += both.refused;
        n_late += both.refused && both.n_replies > 0;
    }
    print_message("%zu of %d refused by hiredis, %zu behind replies\n", n_refused, STREAMS, n_late);
    assert_true(n_refused > STREAMS / 8 && n_late > STREAMS / 16);
    reply_clear(&both.ours);
}
