/* SPDX-License-Identifier: BSD-3-Clause */
/* test_guard_text.c - the value of the guard key, and what people are told of a quarantine */
#include <string.h>

#include "redis/dialect/guard_text.h"
#include "test.h"

#define V1 "1|3|s|500|aaaa|bbbb|9000"
#define V2 "2|3|s|500|aaaa|bbbb|9000|700|declared|6000|restart|800|9500"

static bool read_text(const char *text, struct guard_text *ret)
{
    return guard_text_read(text, strlen(text), ret);
}

TEST(a_guard_of_each_format_is_read)
{
    struct guard_text guard;

    assert_true(read_text(V1, &guard));
    assert_int_equal(guard.n_nodes, 3);
    assert_string_equal(guard.set, "s");
    assert_int_equal(guard.max_lease_ms, 500);
    assert_string_equal(guard.run_id, "aaaa");
    assert_string_equal(guard.replid, "bbbb");
    assert_int_equal(guard.till_ms, 9000);
    assert_int_equal(guard.longest_ms, 500);
    assert_int_equal(guard.cause, QUARANTINE_UNKNOWN);
    assert_true(read_text(V1 "|600", &guard));
    assert_int_equal(guard.longest_ms, 600);
    assert_true(read_text(V2, &guard));
    assert_int_equal(guard.longest_ms, 700);
    assert_true(guard.declared);
    assert_int_equal(guard.made_ms, 6000);
    assert_int_equal(guard.cause, QUARANTINE_RESTART);
    assert_int_equal(guard.wanted_ms, 800);
    assert_int_equal(guard.wanted_till_ms, 9500);
    assert_true(read_text("2|3|s|500|aaaa|bbbb|9000|700|found|6000|first|0|0", &guard));
    assert_false(guard.declared);
}

TEST(other_texts_are_no_guard)
{
    static const char long_id[] = "1|3|s|500|0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef|b|9";
    static const char *const rows[] = {
        "",
        "1|3|s|500|a|b",
        "3|3|s|500|a|b|9",
        "1|x|s|500|a|b|9",
        "1|4294967296|s|500|a|b|9",
        "1|3|s|x|a|b|9",
        "1|3|s|500|a|b|x",
        "1|3|s|500|a|b|18446744073709551616",
        "1|3|s|500|a|b|-9",
        "1|3|s|500|a|b|9|x",
        "1|3|s|500|a|b|9|7|8",
        "1|3||500|a|b|9|7|declared|6|restart|8|9",
        "2|3|s|500|a|b|9",
        "2|3|s|500|a|b|9|x|declared|6|restart|8|9",
        "2|3|s|500|a|b|9|7|declared|x|restart|8|9",
        "2|3|s|500|a|b|9|7|declared|6|restart|x|9",
        "2|3|s|500|a|b|9|7|declared|6|restart|8|x",
        "2|3|s|500|a|b|9|7|declared|6|restart|8|9|",
        long_id,
        "1|3|s|500|b|0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef|9",
    };
    static char longest[600] = "1|3|";
    struct guard_text guard;

    for (size_t i = 0; i < LENGTH(rows); i++) assert_false(read_text(rows[i], &guard));
    assert_false(guard_text_read(V1 "\0", sizeof(V1), &guard));
    /* The name of the set, of 128 characters, and the whole text. */
    memset(longest + 4, 's', GUARD_SET_SIZE);
    memcpy(longest + 4 + GUARD_SET_SIZE, "|5|a|b|9", sizeof("|5|a|b|9"));
    assert_false(read_text(longest, &guard));
    assert_true(guard_text_read("1|3||5|a|b|9", 12, &guard));
    memset(longest, '|', sizeof(longest) - 1);
    assert_false(read_text(longest, &guard));
}

TEST(the_last_of_two_quarantines_ends_it)
{
    struct guard_text guard = {.till_ms = 9000, .wanted_till_ms = 9000, .cause = QUARANTINE_FIRST};

    assert_int_equal(guard_text_end_ms(&guard), 9000);
    assert_int_equal(guard_text_cause(&guard), QUARANTINE_FIRST);
    assert_int_equal(guard_text_first_ms(&guard, 8000), 1000);
    assert_int_equal(guard_text_first_ms(&guard, 9000), 0);
    guard.wanted_till_ms = 9001;
    assert_int_equal(guard_text_end_ms(&guard), 9001);
    assert_int_equal(guard_text_cause(&guard), QUARANTINE_CLIENT);
    guard.cause = QUARANTINE_RESTART;
    assert_int_equal(guard_text_first_ms(&guard, 8000), 0);
}

TEST(causes_are_read)
{
    static const struct {
        const char *text;
        enum quarantine_cause cause;
        uint32_t wanted_ms;
    } rows[] = {
        {"none", QUARANTINE_NONE, 0},
        {"first", QUARANTINE_FIRST, 0},
        {"restart", QUARANTINE_RESTART, 0},
        {"reconfigure", QUARANTINE_RECONFIGURE, 0},
        {"replication", QUARANTINE_REPLICATION, 0},
        {"client:800", QUARANTINE_CLIENT, 800},
        {"client:", QUARANTINE_UNKNOWN, 0},
        {"client:8x", QUARANTINE_UNKNOWN, 0},
        {"restarted", QUARANTINE_UNKNOWN, 0},
        {"", QUARANTINE_UNKNOWN, 0},
        {"restart                         ", QUARANTINE_UNKNOWN, 0},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        uint32_t wanted_ms = 1;

        assert_int_equal(quarantine_cause_read(rows[i].text, strlen(rows[i].text), &wanted_ms), rows[i].cause);
        assert_int_equal(wanted_ms, rows[i].wanted_ms);
    }
    /* No more than its length. */
    assert_int_equal(quarantine_cause_read("firstly", 5, &(uint32_t){0}), QUARANTINE_FIRST);
}

#define ENDS     "; 'quorlock bootstrap' ends that at once, where none of them is held"
#define DECLARES "; 'quorlock bootstrap --yes' ends that at once, where no lock is held on any of the nodes"
#define OF_OLDER "for a client with a max lease of 5m: its leases may be older than the guard"
#define REPLID   "its replication id changed: " QUARANTINE_ID_CHANGES

TEST(a_quarantine_is_described)
{
    static const struct {
        enum quarantine_cause cause;
        uint64_t until_ms;
        enum guard_set set;
        const char *text;
    } rows[] = {
        {QUARANTINE_UNKNOWN, 0, GUARD_SET_UNKNOWN, "it restarted, or is new, and may have lost its memory"},
        {QUARANTINE_RESTART, 0, GUARD_SET_UNKNOWN, "it restarted and may have lost its memory"},
        {QUARANTINE_REPLICATION, 0, GUARD_SET_UNKNOWN, REPLID},
        {QUARANTINE_RECONFIGURE, 0, GUARD_SET_UNKNOWN,
         "set up anew by 'quorlock bootstrap --reconfigure': leases from before it may be held"},
        {QUARANTINE_FIRST, 0, GUARD_SET_UNKNOWN, "first contact: it had no guard, and locks may be held"},
        {QUARANTINE_FIRST, 0, GUARD_SET_FIRST, "first contact: it had no guard, and locks may be held" DECLARES},
        {QUARANTINE_FIRST, 0, GUARD_SET_OLDER,
         "it had no guard, and other nodes have one: it lost its memory, and locks that it forgot may be held"},
        {QUARANTINE_FIRST, 0, GUARD_SET_LOST,
         "its guard is gone: it lost its memory, and locks that it forgot may be held"},
        {QUARANTINE_CLIENT, 0, GUARD_SET_UNKNOWN, OF_OLDER ENDS},
        {QUARANTINE_CLIENT, 0, GUARD_SET_OLDER, OF_OLDER ENDS},
        {QUARANTINE_CLIENT, 0, GUARD_SET_FIRST, OF_OLDER ", which is of a first contact" DECLARES},
        {QUARANTINE_CLIENT, 0, GUARD_SET_LOST, OF_OLDER},
        {QUARANTINE_CLIENT, 1764144090000, GUARD_SET_LOST,
         "for a client with a max lease of 5m, until 2025-11-26 08:01:30 UTC: its leases may be older than the guard"},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        char text[512];

        quarantine_describe(text, sizeof(text), rows[i].cause, 300000, rows[i].until_ms, rows[i].set);
        assert_string_equal(text, rows[i].text);
    }
}

TEST(durations_have_the_largest_unit_that_fits)
{
    static const struct {
        uint64_t ms;
        const char *text;
    } rows[] = {{0, "0ms"},     {1, "1ms"},      {1500, "1500ms"}, {90000, "90s"},
                {300000, "5m"}, {7200000, "2h"}, {5400000, "90m"}};

    for (size_t i = 0; i < LENGTH(rows); i++) {
        char text[24];

        assert_string_equal(guard_length(text, sizeof(text), rows[i].ms), rows[i].text);
    }
}
