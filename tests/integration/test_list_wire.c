/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_list_wire.c - which keys of one server are listed as locks, and as what
 */
#include "keys_fixture.h"

#include "redis/lister.h"

#define HEX      "0123456789abcdef0123456789abcdef01234567" /* what an owner token ends with */
#define UUID     "01234567-89ab-cdef-0123-456789abcdef"
#define LONG_PX  " PX 600000"
#define FAR      "99999999999999" /* ms since 1970 */
#define READERS  "SET a quorlock:readers PX 600000;ZADD quorlock:readers:a "
#define LABEL_64 "llllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll"

static char listed[1024];
static enum fault fault;
static int ends;

static bool on_found(void *arg, const struct lister_key *key)
{
    size_t used = strlen(listed);
    int64_t s = key->ttl_ms < 0 ? key->ttl_ms : (key->ttl_ms + 999) / 1000;

    (void)arg;
    snprintf(listed + used, sizeof(listed) - used, "%c %u %lld %.*s %.*s\n", (char)key->kind, (unsigned)key->number,
             (long long)(s > 500 ? 600 : s), (int)key->key_length, key->key, (int)key->holder_length, key->holder);
    return true;
}

static void on_done(void *arg, enum fault how, const char *why)
{
    (void)arg;
    (void)why;
    fault = how;
    ends++;
}

static void list(const char *pattern, const char *prefix)
{
    const struct lister_config config = {.system = &probe->system,
                                         .alloc = &probe->alloc,
                                         .link = probe->config.link,
                                         .redisson = !plain(),
                                         .pattern = pattern,
                                         .prefix = prefix,
                                         .found = on_found,
                                         .done = on_done};

    listed[0] = '\0';
    ends = 0;
    assert_non_null(lister_start(&config));
    await_count(&ends, 1, GENEROUS_MS, "the end of the listing");
    assert_int_equal(fault, FAULT_NONE);
}

struct row {
    const char *there, *wanted;
};

static void try_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        wipe();
        server_run(server, rows[i].there);
        list("*", "");
        if (strcmp(listed, rows[i].wanted) != 0) fail_msg("%s: %s", rows[i].there, listed);
    }
}

TEST_RUNS(locks, RUN_WITH(locks, "", setup_plain))
{
    static const struct row rows[] = {
        {"PING", ""},
        {"SET a me:" HEX LONG_PX, "x 0 600 a me:" HEX "\n"},
        {"SET a " HEX LONG_PX, "x 0 600 a " HEX "\n"},
        {"SET a " LABEL_64 ":" HEX LONG_PX, "x 0 600 a " LABEL_64 ":" HEX "\n"},
        {"SET a quorlock:kept:me:" HEX LONG_PX, "x 0 600 a quorlock:kept:me:" HEX "\n"},
        /* For ever. */
        {"SET a me:" HEX, "x 0 -1 a me:" HEX "\n"},
        {"SET a " HEX, ""},
        {"SET a " HEX ";SET quorlock:fence:a 1", "x 0 -1 a " HEX "\n"},
        {"SET a odd", ""},
        {"SET a odd;SET quorlock:fence:a 1", "x 0 -1 a odd\n"},
        {"SET a odd;RPUSH quorlock:fence:a 1", ""},
        /* Of another form: another program's, maybe. */
        {"SET a odd" LONG_PX, "o 0 600 a \n"},
        {"SET a me:x" HEX LONG_PX, "o 0 600 a \n"},
        {"SET a x" HEX LONG_PX, "o 0 600 a \n"},
        {"SET a me:X123456789abcdef0123456789abcdef01234567" LONG_PX, "o 0 600 a \n"},
        {"SET a l" LABEL_64 ":" HEX LONG_PX, "o 0 600 a \n"},
        /* Of no lock. */
        {"RPUSH a x", ""},
        {"HSET a f v", ""},
        {"SET quorlock:guard x" LONG_PX, ""},
        {"SET quorlock:permits:a 3" LONG_PX, ""},
        {"SET quorlock:slot:100:a me:" HEX LONG_PX, ""},
    };

    try_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

TEST_RUNS(readers_and_slots, RUN_WITH(readers_and_slots, "", setup_plain))
{
    static const struct row rows[] = {
        {READERS FAR " me", "r 1 600 a quorlock:readers\n"},
        {READERS FAR " me " FAR " you 1000 late", "r 2 600 a quorlock:readers\n"},
        {READERS "1000 late", ""},
        {"SET a quorlock:readers" LONG_PX, ""},
        {"SET quorlock:slot:7:a me:" HEX LONG_PX, "s 0 600 quorlock:slot:7:a me:" HEX "\n"},
        {"SET quorlock:permits:a 12;SET quorlock:slot:11:a " HEX LONG_PX, "s 12 600 quorlock:slot:11:a " HEX "\n"},
        {"SET quorlock:permits:a x;SET quorlock:slot:0:a me:" HEX LONG_PX, "s 0 600 quorlock:slot:0:a me:" HEX "\n"},
        /* In its way for ever. */
        {"SET quorlock:slot:0:a odd", "s 0 -1 quorlock:slot:0:a odd\n"},
        {"SET quorlock:slot:0:a odd" LONG_PX, ""},
        {"SET quorlock:slot:0:a quorlock:readers" LONG_PX, ""},
    };

    try_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

TEST_RUNS(locks_of_redisson, RUN_WITH(locks_of_redisson, "", setup_redisson))
{
    static const struct row rows[] = {
        {"HSET a " UUID ":1 1;PEXPIRE a 600000", "x 0 600 a " UUID ":1\n"},
        {"HSET a " UUID ":1 1", "x 0 -1 a " UUID ":1\n"},
        {"HSET a " UUID ":12345678901234567890 1", ""},
        {"HSET a 0" UUID ":1 1", ""},
        {"HSET a odd 1", ""},
        {"HSET a " UUID ":1 1 " UUID ":2 1", ""},
        {"HSET a mode read " UUID ":1 1", "r 0 -1 a RReadWriteLock:read\n"},
        {"HSET a mode write " UUID ":1 1", "x 0 -1 a RReadWriteLock:write\n"},
        {"HSET a mode odd " UUID ":1 1", ""},
        {"SET a " HEX, ""},
    };

    try_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

TEST_RUNS(the_pattern_and_the_prefix_choose, RUN_WITH(the_pattern_and_the_prefix_choose, "", setup_plain))
{
    server_run(server, "SET app:a me:" HEX LONG_PX ";SET other:a me:" HEX LONG_PX ";SET app:quorlock:permits:a 3;"
                       "SET app:quorlock:slot:2:a me:" HEX LONG_PX ";SET app:b odd;SET app:quorlock:fence:b 1");
    list("app:*", "app:");
    assert_int_equal(times_in(listed, "\n"), 3);
    assert_contains(listed, "x 0 600 app:a me:" HEX "\n");
    assert_contains(listed, "s 3 600 app:quorlock:slot:2:a me:" HEX "\n");
    assert_contains(listed, "x 0 -1 app:b odd\n");
    list("*:a", "app:");
    assert_contains(listed, "x 0 600 other:a me:" HEX "\n");
}
