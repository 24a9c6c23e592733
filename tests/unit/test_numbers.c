/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_numbers.c - numbers that a node reports, however large: no sum of them overflows
 */
#include <string.h>

#include "dialect_fixture.h"
#include "fixture.h"

#define LARGEST  "9223372036854775807"
#define SMALLEST "-9223372036854775808"

static const struct dialect *const dialects[] = {&dialect_plain, &dialect_redisson};

DIALECT_TEST(a_remaining_lease_fits_into_microseconds)
{
    static const struct {
        enum op op;
        const char *wire;
    } rows[] = {
        {OP_ACQUIRE, "*3\r\n$1\r\na\r\n:%\r\n:1\r\n"},
        {OP_ACQUIRE, "*2\r\n$1\r\na\r\n:%\r\n"},
        {OP_EXTEND, "*2\r\n$1\r\na\r\n:%\r\n"},
        {OP_RELEASE, "*2\r\n$1\r\na\r\n:%\r\n"},
        {OP_BREAK, "*3\r\n$1\r\na\r\n:%\r\n$6\r\nstring\r\n"},
        {OP_PEEK, "*5\r\n$1\r\na\r\n:%\r\n:1\r\n$5\r\nfirst\r\n:%\r\n"},
    };
    static const struct {
        const char *said;
        int64_t wanted_ms;
    } numbers[] = {
        {LARGEST, NODE_MS_MAX},
        {"10000000000000000", NODE_MS_MAX},
        {"18446744073709600", NODE_MS_MAX},
        {"9223372036854775", 0},
        {"3600000", 3600000},
        {"0", 0},
        {"-1", -1},
        {"-2", -2},
        {SMALLEST, -2},
    };

    for (size_t i = 0; i < LENGTH(dialects) * LENGTH(rows) * LENGTH(numbers); i++) {
        const struct dialect *dialect = dialects[i % LENGTH(dialects)];
        size_t row = i / LENGTH(dialects) % LENGTH(rows);
        size_t number = i / LENGTH(dialects) / LENGTH(rows);
        int64_t wanted_ms = numbers[number].wanted_ms;
        char wire[256] = "";
        struct node_reply reply;

        for (const char *at = rows[row].wire; *at != '\0'; at++) {
            size_t left = sizeof(wire) - strlen(wire) - 1;

            strncat(wire, *at == '%' ? numbers[number].said : at, *at == '%' ? left : 1);
        }
        reply = dialect_judge(f, dialect, rows[row].op, true, wire);
        assert_in_range(reply.ttl_ms + 2, 0, NODE_MS_MAX + 2);
        assert_in_range(reply.quarantine_ms + 1, 0, NODE_MS_MAX + 1);
        if (wanted_ms != 0) assert_int_equal(reply.ttl_ms, wanted_ms);
    }
    _Static_assert(NODE_MS_MAX <= INT64_MAX / 1000, "microseconds of it fit");
}

/* The nodes count in doubles, which lose digits there. */
DIALECT_TEST(a_counter_beyond_2_to_the_53_is_no_token)
{
    for (size_t d = 0; d < 2; d++) {
        struct node_reply reply =
            dialect_judge(f, dialects[d], OP_RAISE, true, "*3\r\n:1\r\n:9007199254740991\r\n:5\r\n");

        assert_int_equal(reply.outcome, OUTCOME_YES);
        assert_int_equal(reply.fence, 9007199254740991);
        reply = dialect_judge(f, dialects[d], OP_RAISE, true, "*3\r\n:1\r\n:" LARGEST "\r\n:5\r\n");
        assert_int_equal(reply.outcome, OUTCOME_ERROR);
        assert_int_equal(reply.fault, FAULT_PROTO);
        reply = dialect_judge(f, dialects[d], OP_ACQUIRE, true, "*3\r\n:1\r\n:9007199254740992\r\n:" LARGEST "\r\n");
        assert_int_equal(reply.fault, FAULT_PROTO);
    }
}

DIALECT_TEST(numbers_of_listeners_saturate)
{
    for (size_t d = 0; d < 2; d++) {
        assert_int_equal(dialect_judge(f, dialects[d], OP_RELEASE, true, ":" LARGEST "\r\n").count, UINT32_MAX);
        assert_int_equal(dialect_judge(f, dialects[d], OP_RELEASE, true, ":" SMALLEST "\r\n").fault, FAULT_PROTO);
        assert_int_equal(
            dialect_judge(f, dialects[d], OP_ACQUIRE, true, "*3\r\n$1\r\na\r\n:1\r\n:" LARGEST "\r\n").count,
            UINT32_MAX);
    }
}

/* The core waits for it as long as for a poll. */
CORE_TEST(the_longest_lease_does_not_look_like_a_free_lock)
{
    static const int64_t ttls_us[] = {INT64_MAX, INT64_MAX - 1, INT64_MIN, NODE_MS_MAX * 1000};

    for (size_t i = 0; i < LENGTH(ttls_us); i++) {
        struct core_reply holder = {.outcome = OUTCOME_YES, .holder_id = 7, .ttl_us = ttls_us[i]};

        fixture_open_waiting(f, 3, 2, CORE_NEVER);
        fixture_acquire(f);
        for (uint32_t k = 0; k < 3; k++) fixture_answer(f, k, OP_ACQUIRE, OUTCOME_OTHER);
        for (uint32_t k = 0; k < 3; k++)
            if (fixture_pending(f, k, OP_PEEK) > 0) fixture_answer_with(f, k, OP_PEEK, &holder);
        assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
        if (ttls_us[i] > 0) assert_in_range(fixture_pass_to_attempt(f), 50 * MS, 100 * MS);
    }
}
