/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_numbers.c - numbers that a node says, however large: nothing that is reckoned with them overflows
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/validity.h"
#include "redis/dialect/dialect.h"
#include "redis/wire/reply.h"
#include "scene.h"

#define LARGEST  "9223372036854775807"
#define SMALLEST "-9223372036854775808"

static struct alloc memory;
static const struct dialect *const dialects[] = {&dialect_plain, &dialect_redisson};

static struct node_reply judged(const struct dialect *dialect, enum node_op op, const char *wire)
{
    static char text[320];
    struct reply_parser parser;
    const struct reply *raw = NULL;
    const char *why = NULL;
    struct node_reply ret;
    reply_init(&parser, &memory);
    assert_true(reply_open(&parser));
    reply_feed(&parser, wire, strlen(wire));
    assert_int_equal(reply_next(&parser, &raw, &why), REPLY_READY);
    dialect->judge(op, true, raw, &ret, text, sizeof text);
    ret.holder = NULL;
    reply_clear(&parser);
    return ret;
}

static void a_remaining_lease_fits_into_microseconds(void **state)
{
    static const struct {
        enum node_op op;
        const char *wire;
    } rows[] = {
        {NODE_ACQUIRE, "*3\r\n$1\r\na\r\n:%\r\n:1\r\n"},
        {NODE_ACQUIRE, "*2\r\n$1\r\na\r\n:%\r\n"},
        {NODE_EXTEND, "*2\r\n$1\r\na\r\n:%\r\n"},
        {NODE_RELEASE, "*2\r\n$1\r\na\r\n:%\r\n"},
        {NODE_BREAK, "*3\r\n$1\r\na\r\n:%\r\n$6\r\nstring\r\n"},
        {NODE_PEEK, "*5\r\n$1\r\na\r\n:%\r\n:1\r\n:1\r\n:%\r\n"},
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
    (void)state;
    for (size_t d = 0; d < 2; d++) {
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++) {
                char wire[256] = "";
                for (const char *at = rows[i].wire; *at; at++) {
                    size_t used = strlen(wire);
                    if (*at == '%')
                        strncat(wire, numbers[k].said, sizeof wire - used - 1);
                    else
                        strncat(wire, at, 1);
                }
                struct node_reply reply = judged(dialects[d], rows[i].op, wire);
                assert_in_range(reply.ttl_ms + 2, 0, NODE_MS_MAX + 2);
                assert_in_range(reply.quarantine_ms + 1, 0, NODE_MS_MAX + 1);
                if (numbers[k].wanted_ms) assert_int_equal(reply.ttl_ms, numbers[k].wanted_ms);
            }
        }
    }
    _Static_assert(NODE_MS_MAX <= INT64_MAX / 1000, "microseconds of it fit");
}

/* No token is as large: what the nodes count with loses digits there. */
static void a_counter_that_cannot_be_is_no_token(void **state)
{
    (void)state;
    for (size_t d = 0; d < 2; d++) {
        struct node_reply reply = judged(dialects[d], NODE_RAISE, "*3\r\n:1\r\n:9007199254740991\r\n:5\r\n");
        assert_int_equal(reply.outcome, NODE_YES);
        assert_int_equal(reply.fence, 9007199254740991);
        reply = judged(dialects[d], NODE_RAISE, "*3\r\n:1\r\n:" LARGEST "\r\n:5\r\n");
        assert_int_equal(reply.outcome, NODE_ERROR);
        assert_int_equal(reply.fault, NODE_FAULT_PROTO);
        reply = judged(dialects[d], NODE_ACQUIRE, "*3\r\n:1\r\n:9007199254740992\r\n:" LARGEST "\r\n");
        assert_int_equal(reply.fault, NODE_FAULT_PROTO);
    }
}

static void as_many_listeners_as_can_be_counted(void **state)
{
    (void)state;
    for (size_t d = 0; d < 2; d++) {
        assert_int_equal(judged(dialects[d], NODE_RELEASE, ":" LARGEST "\r\n").count, UINT32_MAX);
        assert_int_equal(judged(dialects[d], NODE_RELEASE, ":" SMALLEST "\r\n").fault, NODE_FAULT_PROTO);
        assert_int_equal(judged(dialects[d], NODE_ACQUIRE, "*3\r\n$1\r\na\r\n:1\r\n:" LARGEST "\r\n").count,
                         UINT32_MAX);
    }
}

/* The core gets any number there is, and waits no shorter for it than a poll takes. */
static void the_longest_lease_is_no_free_lock(void **state)
{
    static const int64_t ttls_us[] = {INT64_MAX, INT64_MAX - 1, INT64_MIN, NODE_MS_MAX * 1000};
    (void)state;
    for (size_t i = 0; i < sizeof ttls_us / sizeof ttls_us[0]; i++) {
        struct scene *scene = scene_open_waiting(3, 2, CORE_NEVER);
        struct core_reply holder = {.outcome = CORE_YES, .holder_id = 7, .ttl_us = ttls_us[i]};
        scene_acquire(scene);
        for (uint32_t k = 0; k < 3; k++) scene_answer(scene, k, CORE_OP_ACQUIRE, CORE_OTHER);
        for (uint32_t k = 0; k < 3; k++)
            if (scene_asked(scene, k, CORE_OP_PEEK) > 0) scene_answer_with(scene, k, CORE_OP_PEEK, &holder);
        assert_int_equal(core_phase_now(scene->lock), CORE_WAITING);
        if (ttls_us[i] > 0) assert_in_range(scene_pass_to_attempt(scene), 50 * MS, 100 * MS);
        scene_close(scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_remaining_lease_fits_into_microseconds),
        cmocka_unit_test(a_counter_that_cannot_be_is_no_token),
        cmocka_unit_test(as_many_listeners_as_can_be_counted),
        cmocka_unit_test(the_longest_lease_is_no_free_lock),
    };
    alloc_init(&memory, NULL);
    return cmocka_run_group_tests_name("numbers from nodes", tests, NULL, NULL);
}
