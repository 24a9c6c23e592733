/* SPDX-License-Identifier: BSD-3-Clause */
/* test_others.c - the lines of slots, readers and waiting clients, as the scripts write them and as nobody does */
#include <string.h>

#include "redis/dialect/others.h"
#include "redis/dialect/request.h"
#include "test.h"

#define H64  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define H256 H64 H64 H64 H64

TEST(a_line_is_read)
{
    static const struct {
        const char *text;
        struct other other;
    } rows[] = {
        {"p 3 0 -2 0 \n", {OTHER_PERMITS, 3, 0, -2, "", 0}},
        {"s 256 9007199254740991 500 3 bob\n", {OTHER_SLOT, 256, 9007199254740991, 500, "bob", 3}},
        {"r 0 7 -1 7 a\nb cd \n", {OTHER_READER, 0, 7, -1, "a\nb cd ", 7}},
        {"w 1 0 -3 1 x\n", {OTHER_WRITER_WAITS, 1, 0, -2, "x", 1}},
        {"q 0 0 99999999999999999999 1 x\n", {OTHER_READER_WAITS, 0, 0, NODE_MS_MAX, "x", 1}},
        {"q 0 0 9223372036854774807 1 x\n", {OTHER_READER_WAITS, 0, 0, NODE_MS_MAX, "x", 1}},
        {"r 0 0 0 256 " H256 "\n", {OTHER_READER, 0, 0, 0, H256, 256}},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        const char *at = rows[i].text, *end = at + strlen(at);
        struct other other;

        assert_true(others_next(&at, end, &other));
        assert_ptr_equal(at, end);
        assert_int_equal(other.kind, rows[i].other.kind);
        assert_int_equal(other.number, rows[i].other.number);
        assert_int_equal(other.fence, rows[i].other.fence);
        assert_int_equal(other.ttl_ms, rows[i].other.ttl_ms);
        assert_int_equal(other.holder_length, rows[i].other.holder_length);
        assert_memory_equal(other.holder, rows[i].other.holder, other.holder_length);
        assert_false(others_next(&at, end, &other));
    }
}

TEST(other_lines_are_none)
{
    static const char *const rows[] = {
        "x 0 0 0 0 \n",
        "s0 0 0 0 \n",
        "s",
        "s ",
        "s 1",
        "s 1 ",
        "s -1 0 0 0 \n",
        "s 257 0 0 0 \n",
        "s a 0 0 0 \n",
        "s 0 -1 0 0 \n",
        "s 0 9007199254740992 0 0 \n",
        "s 0 0 - 0 \n",
        "s 0 0 x 0 \n",
        "s 0 0 1x 0 \n",
        "s 0 0 0 -1 \n",
        "s 0 0 0 257 " H256 "x\n",
        "s 0 0 0 3 bo\n",
        "s 0 0 0 3 bobb\n",
        "s 0 0 0 3 bob",
        "s 0 0 0 0\n",
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        const char *at = rows[i];
        struct other other;

        assert_false(others_next(&at, at + strlen(at), &other));
        assert_ptr_equal(at, rows[i]);
        assert_false(others_fit(rows[i], strlen(rows[i])));
    }
    assert_false(others_fit("\0 0 0 0 0 \n", 11));
}

TEST(each_line_of_a_list_is_looked_at)
{
    static const char good[] = "p 3 0 -2 0 \ns 0 1 5 1 a\ns 2 2 6 1 b\n";

    assert_true(others_fit("", 0));
    assert_true(others_fit(good, sizeof(good) - 1));
    assert_false(others_fit(good, sizeof(good) - 2));
    assert_false(others_fit(good, sizeof(good)));
}
