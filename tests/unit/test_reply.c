/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_reply.c - the parser of replies: what it refuses, and its limits; what replies mean is in test_plain.c
 */
#include <string.h>

#include "dialect_fixture.h"

static const struct {
    const char *wire, *why;
} malformed[] = {
    {"HTTP/1.1 400 Bad Request\r\n", ""},
    {"$999999999\r\n", "too large"},
    {"$262145\r\n", "too large"},
    {"$9223372036854775807\r\n", ""},
    {"$99999999999999999999999\r\n", ""},
    {"$-2\r\n", ""},
    {"$3\r\nabcdef\r\n:x\r\n", ""},
    {"*1000000000\r\n", ""},
    {"*9\r\n", "too many"},
    {"*2147483648\r\n", ""},
    {"*-2\r\n", ""},
    {"*1\r\n*1\r\n:1\r\n", "deep"},
    {"*1\r\n*0\r\n", "deep"},
    {"*2\r\n:1\r\n$300000\r\n", "too large"},
    {":12x\r\n", ""},
    {":+5\r\n", ""},
    {":-0\r\n", ""},
    {":05\r\n", ""},
    {"*2\r\n:1\r\n:05\r\n", ""},
    {"$02\r\nhi\r\n", ""},
    {":9223372036854775808\r\n", ""},
    {"+a\nb\r\n", "half a line break"},
    {"-a\r\r\n", "half a line break"},
    {"$262134\r\n", "too large"},
    {"*1\r\n$262130\r\n", "too large"},
    {"%262145\r\n", ""},
    {"%131072\r\n", "too large"},
    {"*1\r\n>1\r\n+message\r\n", "deep"},
    {">2\r\n+message\r\n*8\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n:6\r\n:7\r\n:8\r\n", "too many"},
    {">-1\r\n", ""},
    {"%-1\r\n", ""},
    {"_1\r\n", ""},
    {"#t\r\n", ""},
    {",1.5\r\n", ""},
};

DIALECT_TEST(malformed_replies_are_refused_for_good)
{
    for (size_t i = 0; i < LENGTH(malformed); i++) {
        enum reply_result result;

        dialect_feed(f, malformed[i].wire);
        while ((result = dialect_next(f)) == REPLY_READY) continue;
        if (result != REPLY_BAD) fail_msg("%s: accepted", malformed[i].wire);
        if (strstr(f->why, malformed[i].why) == NULL || *f->why == '\0') {
            fail_msg("%s: why: %s", malformed[i].wire, f->why);
        }
        assert_int_equal(dialect_next(f), REPLY_BAD);
        /* The parser can be opened anew. */
        reply_open(&f->parser);
        dialect_feed(f, "+OK\r\n");
        assert_int_equal(dialect_next(f), REPLY_READY);
        reply_open(&f->parser);
    }
}

/* Plain replies, and others. */
static const char mixed[] = "*2\r\n:1\r\n:1700000000000000\r\n:7\r\n+OK\r\n$-1\r\n+OKAY\r\n:123456789012345678\r\n:"
                            "1234567890123456789\r\n:-5\r\n"
                            "$2\r\nhi\r\n:8\r\n*2\r\n:1\r\n$-1\r\n+OK\r\n"
                            "*8\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n:6\r\n:7\r\n:8\r\n*0\r\n*2\r\n:9\r\n:-5\r\n:3\r\n"
                            "_\r\n*-1\r\n>2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n>2\r\n+invalidate\r\n_\r\n"
                            "%2\r\n+modules\r\n*2\r\n%1\r\n+a\r\n:1\r\n_\r\n+x\r\n:2\r\n*2\r\n_\r\n:4\r\n+end\r\n";

static const struct reply_item mixed_items[] = {{.type = REPLY_ARRAY, .offset = 2},
                                                {.type = REPLY_INTEGER, .integer = 7},
                                                {.type = REPLY_STATUS, .text = "OK"},
                                                {.type = REPLY_NIL},
                                                {.type = REPLY_STATUS, .text = "OKAY"},
                                                {.type = REPLY_INTEGER, .integer = 123456789012345678},
                                                {.type = REPLY_INTEGER, .integer = 1234567890123456789},
                                                {.type = REPLY_INTEGER, .integer = -5},
                                                {.type = REPLY_STRING, .text = "hi"},
                                                {.type = REPLY_INTEGER, .integer = 8},
                                                {.type = REPLY_ARRAY, .offset = 2},
                                                {.type = REPLY_STATUS, .text = "OK"},
                                                {.type = REPLY_ARRAY, .offset = 8},
                                                {.type = REPLY_ARRAY, .offset = 0},
                                                {.type = REPLY_ARRAY, .offset = 2},
                                                {.type = REPLY_INTEGER, .integer = 3},
                                                {.type = REPLY_NIL},
                                                {.type = REPLY_NIL},
                                                {.type = REPLY_PUSH, .offset = 2},
                                                {.type = REPLY_PUSH, .offset = 2},
                                                {.type = REPLY_MAP, .offset = 6},
                                                {.type = REPLY_ARRAY, .offset = 2},
                                                {.type = REPLY_STATUS, .text = "end"}};

static size_t expect_mixed(struct dialect_fixture *f, size_t n)
{
    for (; dialect_next(f) == REPLY_READY; n++) {
        const struct reply_item *item = &mixed_items[n];

        assert_true(n < LENGTH(mixed_items));
        assert_int_equal(f->reply->self.type, item->type);
        /* Of an array or a map it is the number of elements. */
        assert_int_equal(f->reply->n_elements, item->offset);
        for (size_t i = 0; n == 12 && i < 8; i++) {
            assert_int_equal(f->reply->elements[i].type, REPLY_INTEGER);
            assert_int_equal(f->reply->elements[i].integer, i + 1);
        }
        if (n == 0) assert_int_equal(f->reply->elements[1].integer, 1700000000000000);
        if (n == 14) assert_int_equal(f->reply->elements[1].integer, -5);
        if (n == 18)
            assert_true(reply_is(&f->reply->elements[0], "invalidate") && reply_is(&f->reply->elements[1], "k"));
        if (n == 19 || n == 21) assert_int_equal(f->reply->elements[n == 19].type, REPLY_NIL);
        if (item->type == REPLY_INTEGER) assert_int_equal(f->reply->self.integer, item->integer);
        if (item->text == NULL) continue;
        assert_string_equal(f->reply->self.text, item->text);
        assert_int_equal(f->reply->self.length, strlen(item->text));
    }
    return n;
}

DIALECT_TEST(replies_are_read_wherever_the_bytes_are_cut)
{
    for (size_t cut = 0; cut < sizeof(mixed); cut++) {
        size_t n;

        reply_feed(&f->parser, mixed, cut);
        n = expect_mixed(f, 0);
        reply_feed(&f->parser, mixed + cut, sizeof(mixed) - 1 - cut);
        assert_int_equal(expect_mixed(f, n), LENGTH(mixed_items));
    }
}

/* The same bytes again are the same reply again, whatever came between. */
DIALECT_TEST(what_is_like_the_reply_before_is_like_it)
{
    static const char again[] = "*2\r\n:1\r\n:7\r\n*2\r\n:1\r\n:7\r\n*2\r\n:1\r\n:8\r\n"
                                "*1\r\n$1\r\nx\r\n*2\r\n:1\r\n:8\r\n*2\r\n:1\r\n:8\r\n:8\r\n:8\r\n+OK\r\n+OK\r\n";
    static const int64_t seconds[] = {7, 7, 8, 0, 8, 8};

    for (size_t cut = 0; cut < sizeof(again); cut++) {
        size_t n = 0;

        for (int part = 0; part < 2; part++) {
            reply_feed(&f->parser, again + (part == 0 ? 0 : cut), part == 0 ? cut : sizeof(again) - 1 - cut);
            for (; dialect_next(f) == REPLY_READY; n++) {
                enum reply_type type = n < 6 ? REPLY_ARRAY : n < 8 ? REPLY_INTEGER : REPLY_STATUS;

                assert_int_equal(f->reply->self.type, type);
                if (type == REPLY_INTEGER) assert_int_equal(f->reply->self.integer, 8);
                if (type != REPLY_ARRAY) continue;
                assert_int_equal(f->reply->n_elements, n == 3 ? 1 : 2);
                if (n == 3) continue;
                assert_int_equal(f->reply->elements[0].integer, 1);
                assert_int_equal(f->reply->elements[1].integer, seconds[n]);
            }
        }
        assert_int_equal(n, 10);
    }
    /* What lies before other bytes was no reply of this connection. */
    dialect_feed(f, ":9\r\n");
    assert_int_equal(dialect_next(f), REPLY_READY);
    dialect_feed(f, &":7\r\n:7\r\n"[4]);
    assert_int_equal(dialect_next(f), REPLY_READY);
    assert_int_equal(f->reply->self.integer, 7);
}

DIALECT_TEST(a_line_without_end_costs_no_more_than_the_limit)
{
    static char chunk[16384];
    enum reply_result result = REPLY_NONE;

    memset(chunk, 'x', sizeof(chunk));
    dialect_feed(f, "+");
    for (size_t fed = 0; result == REPLY_NONE; fed += sizeof(chunk)) {
        assert_true(fed <= REPLY_BYTES_MAX);
        reply_feed(&f->parser, chunk, sizeof(chunk));
        result = dialect_next(f);
    }
    assert_int_equal(result, REPLY_BAD);
    assert_contains(f->why, "too large");
}

/* An integer that has not wholly arrived is no header. */
DIALECT_TEST(a_long_integer_is_read_when_it_has_arrived)
{
    dialect_feed(f, ":999999999999");
    assert_int_equal(dialect_next(f), REPLY_NONE);
    dialect_feed(f, "\r");
    assert_int_equal(dialect_next(f), REPLY_NONE);
    dialect_feed(f, "\n");
    assert_int_equal(dialect_next(f), REPLY_READY);
    assert_int_equal(f->reply->self.integer, 999999999999);
}

DIALECT_TEST(the_largest_string_is_read_in_pieces)
{
    static char chunk[1000];

    memset(chunk, 'x', sizeof(chunk));
    dialect_feed(f, "$200000\r\n");
    for (int i = 0; i < 200; i++) {
        assert_int_equal(dialect_next(f), REPLY_NONE);
        reply_feed(&f->parser, chunk, sizeof(chunk));
    }
    assert_int_equal(dialect_next(f), REPLY_NONE);
    dialect_feed(f, "\r\n");
    assert_int_equal(dialect_next(f), REPLY_READY);
    assert_int_equal(f->reply->self.length, 200000);
    assert_int_equal(f->reply->self.text[199999], 'x');
    assert_int_equal(f->reply->self.text[200000], 0);
}

/* Byte by byte each of these takes a hundredth of a second: what has been read is not read again with each byte. */
DIALECT_TEST(the_longest_replies_are_read_byte_by_byte)
{
    static const char *const headers[] = {"$262133\r\n", "+", "%43680\r\n"};

    for (size_t i = 0; i < LENGTH(headers); i++) {
        const char *text = i == 2 ? "_\r\n" : "x";
        size_t each = strlen(text), left = i == 2 ? 87360 * each : REPLY_BYTES_MAX - strlen(headers[i]) - 2;

        dialect_feed(f, headers[i]);
        for (size_t at = 0; at < left; at++) {
            assert_int_equal(dialect_next(f), REPLY_NONE);
            reply_feed(&f->parser, text + at % each, 1);
        }
        if (i < 2) dialect_feed(f, "\r\n");
        assert_int_equal(dialect_next(f), REPLY_READY);
        assert_int_equal(f->reply->self.length, i < 2 ? left : 0);
        assert_true(reply_is_drained(&f->parser));
    }
}

TEST(the_parser_reports_that_memory_is_out)
{
    struct counted counted = {.for_good = true};
    const struct alloc_hooks hooks = counted_hooks(&counted);
    struct alloc alloc;
    struct reply_parser parser;
    const struct reply *reply = NULL;
    const char *why = NULL;

    alloc_init(&alloc, &hooks);
    alloc.hooks.allocate = memory.hooks.allocate;
    reply_init(&parser, &alloc);
    reply_open(&parser);
    reply_feed(&parser, "$2\r\nhi\r\n", 8);
    assert_int_equal(reply_next(&parser, &reply, &why), REPLY_NOMEM);
    assert_int_equal(reply_next(&parser, &reply, &why), REPLY_NOMEM);
    reply_clear(&parser);
}
