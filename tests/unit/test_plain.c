/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_plain.c - the plain dialect: requests to commands, replies to typed results
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dialect_fixture.h"
#include "redis/dialect/others.h"
#include "redis/wire/errors.h"

/* ---- commands ---- */

#define KEY  NODE_KEY("k", 1), .owner = "me", .owner_length = 2, .lease_ms = 9
#define KEYS .keys = two, .n_keys = 2, .owner = "me", .owner_length = 2, .lease_ms = 9
static const struct node_key two[] = {{"k", 1}, {"l", 1}};
static const struct dialect_sent sent[] = {
    {{.op = OP_ACQUIRE, KEY}, &guard_lax, "SET k me NX PX 9"},
    {{.op = OP_ACQUIRE, KEY}, &guard_off, "SET k me NX PX 9"},
    {{.op = OP_ACQUIRE, KEY}, NULL, "SET k me NX PX 9"},
    {{.op = OP_ACQUIRE, KEY}, &guard_strict, "EVALSHA e 2 k quorlock:guard 1 me 9 G  604800009 strict 500"},
    {{.op = OP_ACQUIRE, KEY, .fenced = true},
     &guard_strict,
     "EVALSHA e 3 k quorlock:guard quorlock:fence:k 1 me 9 G 0 604800009 strict 500"},
    {{.op = OP_ACQUIRE, KEY, .fenced = true, .fence = 77, .fence_ttl_ms = 88},
     &guard_lax,
     "EVALSHA e 3 k quorlock:guard quorlock:fence:k 1 me 9 G 77 97  500"},
    {{.op = OP_ACQUIRE, KEY, .fenced = true}, &guard_off, "EVALSHA e 2 k quorlock:fence:k 1 me 9  0 604800009  700"},
    {{.op = OP_ACQUIRE, KEY, .fenced = true}, NULL, "EVALSHA e 2 k quorlock:fence:k 1 me 9  0 604800009  30000"},
    {{.op = OP_REPAIR, KEY}, &guard_off, "EVALSHA e 1 k 1 me 9   604800009 repair 700"},
    {{.op = OP_ACQUIRE, KEY, .explain = true}, NULL, "EVALSHA e 1 k 1 me 9   604800009  30000"},
    {{.op = OP_REPAIR, KEY}, &guard_lax, "EVALSHA e 2 k quorlock:guard 1 me 9 G  604800009 repair 500"},
    {{.op = OP_REPAIR, KEY, .fenced = true, .fence = 5},
     &guard_off,
     "EVALSHA e 2 k quorlock:fence:k 1 me 9  5 604800009 repair 700"},
    {{.op = OP_EXTEND, KEY}, &guard_off, "EVALSHA a 1 k 1 me 9"},
    {{.op = OP_EXTEND, KEY}, &guard_lax, "EVALSHA a 2 k quorlock:guard 1 me 9 G  604800009"},
    {{.op = OP_EXTEND, KEY, .fenced = true, .fence = 5},
     &guard_strict,
     "EVALSHA a 3 k quorlock:guard quorlock:fence:k 1 me 9 G 5 604800009"},
    {{.op = OP_EXTEND, KEY, .fenced = true}, &guard_off, "EVALSHA a 2 k quorlock:fence:k 1 me 9  0 604800009"},
    {{.op = OP_RELEASE, KEY}, &guard_off, "EVALSHA b 1 k 1 me 9"},
    {{.op = OP_RELEASE, KEY, .fenced = true}, &guard_lax, "EVALSHA b 2 k quorlock:guard 1 me 9 G  604800009"},
    {{.op = OP_RELEASE, KEY, .fence = 5, .fence_ttl_ms = 6}, &guard_off, "EVALSHA b 2 k quorlock:fence:k 1 me 9  5 15"},
    {{.op = OP_RELEASE, KEY, .silent = true}, NULL, "EVALSHA b 1 k 1 me 9   604800009 silent"},
    {{.op = OP_RELEASE, KEY, .silent = true, .keep = true}, NULL, "EVALSHA b 1 k 1 me 9   604800009 keep"},
    {{.op = OP_RELEASE, KEY, .if_deleted = true}, NULL, "EVALSHA b 1 k 1 me 9   604800009 deleted"},
    {{.op = OP_RELEASE, KEY, .silent = true, .if_deleted = true}, NULL, "EVALSHA b 1 k 1 me 9   604800009 silent"},
    {{.op = OP_ACQUIRE, KEYS, .fenced = true, .fence = 5},
     &guard_strict,
     "EVALSHA e 5 k l quorlock:guard quorlock:fence:k quorlock:fence:l 2 me 9 G 5 604800009 strict 500"},
    {{.op = OP_RELEASE, KEYS, .fence = 5},
     &guard_off,
     "EVALSHA b 4 k l quorlock:fence:k quorlock:fence:l 2 me 9  5 604800009"},
    {{.op = OP_PEEK, KEYS}, &guard_strict, "EVALSHA c 2 k l"},
    {{.op = OP_RAISE, KEY, .fence = 5},
     &guard_lax,
     "EVALSHA f 3 k quorlock:guard quorlock:fence:k 1 me 9 G 5 604800009"},
    {{.op = OP_RAISE, KEY, .fence = 5}, &guard_off, "EVALSHA f 2 k quorlock:fence:k 1 me 9  5 604800009"},
    {{.op = OP_PEEK, KEY, .fenced = true}, &guard_strict, "EVALSHA c 1 k"},
    {{.op = OP_PEEK, KEY, .explain = true}, &guard_off, "EVALSHA c 1 k waiters"},
    {{.op = OP_PEEK, KEY, .read_only = true}, &guard_off, "EVALSHA_RO c 1 k"},
    {{.op = OP_BREAK, KEY}, &guard_strict, "EVALSHA d 1 k me"},
    {{.op = OP_BREAK, KEY, .explain = true}, &guard_off, "EVALSHA d 1 k me"},
    {{.op = OP_BREAK, NODE_KEY("k", 1)}, &guard_strict, "EVALSHA d 1 k"},
};

#define WAITER .waiter = "w", .waiter_length = 1, .waited_us = 70000

static const struct dialect_sent of_shared_keys[] = {
    {{.op = OP_ACQUIRE, KEY, .shared = 1}, &guard_off, "EVALSHA j 1 k 1 me 9   604800009  700  0 s"},
    {{.op = OP_ACQUIRE, KEY, .shared = 1, WAITER},
     &guard_lax,
     "EVALSHA j 2 k quorlock:guard 1 me 9 G  604800009  500 w 70000 s"},
    {{.op = OP_ACQUIRE, KEYS, .shared = 2},
     &guard_strict,
     "EVALSHA j 3 k l quorlock:guard 2 me 9 G  604800009 strict 500  0 xs"},
    {{.op = OP_ACQUIRE, KEYS, .shared = 3, .fenced = true},
     &guard_off,
     "EVALSHA j 4 k l quorlock:fence:k quorlock:fence:l 2 me 9  read 604800009  700  0 ss"},
    {{.op = OP_REPAIR, KEY, .shared = 1, .fenced = true},
     &guard_off,
     "EVALSHA j 2 k quorlock:fence:k 1 me 9  read 604800009 repair 700  0 s"},
    {{.op = OP_ACQUIRE, KEYS, .shared = 1, .fenced = true, .fence = 5},
     &guard_off,
     "EVALSHA j 4 k l quorlock:fence:k quorlock:fence:l 2 me 9  5 604800009  700  0 sx"},
    {{.op = OP_EXTEND, KEYS, .shared = 1}, &guard_off, "EVALSHA h 2 k l 2 me 9   604800009 sx"},
    {{.op = OP_EXTEND, KEY, .shared = 1, .fenced = true},
     &guard_off,
     "EVALSHA h 2 k quorlock:fence:k 1 me 9  0 604800009 s"},
    {{.op = OP_RELEASE, KEY, .shared = 1}, &guard_off, "EVALSHA i 1 k 1 me 9   604800009  s"},
    {{.op = OP_RELEASE, KEY, .shared = 1, .silent = true},
     &guard_lax,
     "EVALSHA i 2 k quorlock:guard 1 me 9 G  604800009 silent s"},
    {{.op = OP_RELEASE, KEY, .shared = 1, .if_deleted = true},
     &guard_off,
     "EVALSHA i 1 k 1 me 9   604800009 deleted s"},
    {{.op = OP_RAISE, KEYS, .shared = 1, .fence = 5},
     &guard_off,
     "EVALSHA k 4 k l quorlock:fence:k quorlock:fence:l 2 me 9  5 604800009 sx"},
    {{.op = OP_INTEND, KEYS, .shared = 1, WAITER}, &guard_strict, "EVALSHA l 2 k l 2 w 70000 9 sx"},
    {{.op = OP_INTEND, KEY, WAITER}, &guard_strict, "EVALSHA l 1 k 1 w 70000 9 x"},
};

DIALECT_TEST(requests_of_shared_keys_say_the_mode_of_each)
{
    assert_sent(f, &dialect_plain, of_shared_keys, LENGTH(of_shared_keys));
}

#define PERMIT KEY, .permits = 5, .slot = 3

/* Behind the name of the script. */
static const struct dialect_sent of_permits[] = {
    {{.op = OP_ACQUIRE, PERMIT},
     &guard_off,
     "EVALSHA m 2 quorlock:slot:3:k quorlock:permits:k 1 me 9   604800009  700 acquire 5  00000"},
    {{.op = OP_ACQUIRE, PERMIT, .any = true, .passed = 0x11},
     &guard_lax,
     "EVALSHA m 3 quorlock:slot:3:k quorlock:permits:k quorlock:guard 1 me 9 G  604800009  500 acquire 5 any 10001"},
    {{.op = OP_ACQUIRE, PERMIT, .fenced = true, .fence = 77},
     &guard_strict,
     "EVALSHA m 4 quorlock:slot:3:k quorlock:permits:k quorlock:guard quorlock:fence:quorlock:slot:3:k 1 me 9 G 77 "
     "604800009 strict 500 acquire 5  00000"},
    {{.op = OP_REPAIR, PERMIT},
     &guard_off,
     "EVALSHA m 2 quorlock:slot:3:k quorlock:permits:k 1 me 9   604800009 repair 700 acquire 5  00000"},
    {{.op = OP_EXTEND, PERMIT, .fenced = true, .fence = 5, .fence_ttl_ms = 6},
     &guard_off,
     "EVALSHA m 3 quorlock:slot:3:k quorlock:permits:k quorlock:fence:quorlock:slot:3:k 1 me 9  5 15  700 extend 5  "
     "00000"},
    {{.op = OP_RELEASE, PERMIT},
     &guard_off,
     "EVALSHA m 2 quorlock:slot:3:k quorlock:permits:k 1 me 9   604800009  700 release 5  00000"},
    {{.op = OP_RELEASE, PERMIT, .fenced = true, .any = true, .silent = true},
     &guard_lax,
     "EVALSHA m 3 quorlock:slot:3:k quorlock:permits:k quorlock:guard 1 me 9 G  604800009 silent 500 release 5 any "
     "00000"},
    {{.op = OP_RELEASE, PERMIT, .if_deleted = true},
     &guard_off,
     "EVALSHA m 2 quorlock:slot:3:k quorlock:permits:k 1 me 9   604800009 deleted 700 release 5  00000"},
};

DIALECT_TEST(requests_for_permits_name_their_slot)
{
    assert_sent(f, &dialect_plain, of_permits, LENGTH(of_permits));
}

/* A slot is a lock like any other to those that raise its counter or ask for its holder. */
static const struct dialect_sent of_slots[] = {
    {{.op = OP_RAISE, PERMIT, .fence = 5},
     &guard_lax,
     "EVALSHA f 3 quorlock:slot:3:k quorlock:guard quorlock:fence:quorlock:slot:3:k 1 me 9 G 5 604800009"},
    {{.op = OP_PEEK, PERMIT}, &guard_strict, "EVALSHA c 1 quorlock:slot:3:k"},
};

DIALECT_TEST(other_requests_for_permits_are_of_a_key)
{
    assert_sent(f, &dialect_plain, of_slots, LENGTH(of_slots));
}

#define APP  NODE_KEY("app:k", 5), .prefix = 4, .owner = "me", .owner_length = 2, .lease_ms = 9
#define APPS .keys = under, .n_keys = 2, .prefix = 4, .owner = "me", .owner_length = 2, .lease_ms = 9
static const struct node_key under[] = {{"app:k", 5}, {"app:l", 5}};
static const struct dialect_sent of_a_prefix[] = {
    {{.op = OP_ACQUIRE, APP}, &guard_lax, "SET app:k me NX PX 9"},
    {{.op = OP_ACQUIRE, APPS, .fenced = true},
     &guard_lax,
     "EVALSHA e 5 app:k app:l quorlock:guard app:quorlock:fence:k app:quorlock:fence:l 2 me 9 G 0 604800009  500 app:"},
    {{.op = OP_EXTEND, APP}, &guard_off, "EVALSHA a 1 app:k 1 me 9"},
    {{.op = OP_EXTEND, APP, .fenced = true}, &guard_off, "EVALSHA a 2 app:k app:quorlock:fence:k 1 me 9  0 604800009"},
    {{.op = OP_RELEASE, APP}, &guard_off, "EVALSHA b 1 app:k 1 me 9   604800009  app:"},
    {{.op = OP_RELEASE, APP, .silent = true}, &guard_off, "EVALSHA b 1 app:k 1 me 9   604800009 silent app:"},
    {{.op = OP_RAISE, APP, .fence = 5}, &guard_off, "EVALSHA f 2 app:k app:quorlock:fence:k 1 me 9  5 604800009"},
    {{.op = OP_PEEK, APP}, &guard_off, "EVALSHA c 1 app:k  app:"},
    {{.op = OP_PEEK, APP, .explain = true}, &guard_off, "EVALSHA c 1 app:k waiters app:"},
    {{.op = OP_BREAK, APP}, &guard_off, "EVALSHA d 1 app:k me app:"},
    {{.op = OP_BREAK, NODE_KEY("app:k", 5), .prefix = 4}, &guard_off, "EVALSHA d 1 app:k  app:"},
    {{.op = OP_ACQUIRE, APPS, .shared = 2, WAITER},
     &guard_off,
     "EVALSHA j 2 app:k app:l 2 me 9   604800009  700 w 70000 xs app:"},
    {{.op = OP_EXTEND, APP, .shared = 1}, &guard_off, "EVALSHA h 1 app:k 1 me 9   604800009 s app:"},
    {{.op = OP_RELEASE, APP, .shared = 1}, &guard_off, "EVALSHA i 1 app:k 1 me 9   604800009  s app:"},
    {{.op = OP_RAISE, APP, .shared = 1, .fence = 5},
     &guard_off,
     "EVALSHA k 2 app:k app:quorlock:fence:k 1 me 9  5 604800009 s app:"},
    {{.op = OP_INTEND, APP, WAITER}, &guard_off, "EVALSHA l 1 app:k 1 w 70000 9 x app:"},
    {{.op = OP_INTEND, APP, WAITER, .fair = true}, &guard_off, "EVALSHA o 1 app:k 1 w app:"},
    {{.op = OP_ACQUIRE, APP, WAITER, .fair = true, .queued_ms = 8},
     &guard_off,
     "EVALSHA n 1 app:k 1 me 9   604800009  700 w 70000 8 x app:"},
    {{.op = OP_ACQUIRE, APP, .permits = 5, .slot = 3, .fenced = true},
     &guard_lax,
     "EVALSHA m 4 app:quorlock:slot:3:k app:quorlock:permits:k quorlock:guard app:quorlock:fence:quorlock:slot:3:k "
     "1 me 9 G 0 604800009  500 acquire 5  00000 app:"},
    {{.op = OP_ACQUIRE, APP, WAITER, .permits = 2, .fair = true},
     &guard_off,
     "EVALSHA p 2 app:quorlock:slot:0:k app:quorlock:permits:k 1 me 9   604800009  700 acquire 2  00 w 70000 0 app:"},
};

DIALECT_TEST(all_names_but_the_guard_begin_with_the_prefix)
{
    static const struct node_key key = {"app:k", 5};
    char channel[64];

    assert_sent(f, &dialect_plain, of_a_prefix, LENGTH(of_a_prefix));
    assert_int_equal(dialect_plain.channel(&key, 4, channel, sizeof(channel)), 23);
    assert_memory_equal(channel, "app:quorlock:released:k", 23);
    assert_int_equal(dialect_plain.channel(&key, 0, channel, sizeof(channel)), 23);
    assert_memory_equal(channel, "quorlock:released:app:k", 23);
    assert_int_equal(dialect_plain.channel(&key, 4, channel, 10), 10);
}

DIALECT_TEST(replies_about_permits_tell_of_slots)
{
    struct node_reply reply = dialect_judge(f, &dialect_plain, OP_ACQUIRE, true, "*4\r\n:1\r\n:7\r\n:55\r\n:63\r\n");

    assert_int_equal(reply.outcome, OUTCOME_YES);
    assert_int_equal(reply.slot, 63);
    assert_int_equal(reply.fence, 7);
    assert_int_equal(reply.node_time_us, 55);
    reply = dialect_judge(f, &dialect_plain, OP_ACQUIRE, true, "*5\r\n$3\r\nyou\r\n:9\r\n:2\r\n$5\r\n01001\r\n:4\r\n");
    assert_int_equal(reply.outcome, OUTCOME_OTHER);
    assert_int_equal(reply.ttl_ms, 9);
    assert_int_equal(reply.count, 2);
    assert_int_equal(reply.free, 0x12);
    assert_int_equal(reply.first_ttl_ms, 4);
    /* Nothing ends by itself, and no slot has that number. */
    reply = dialect_judge(f, &dialect_plain, OP_ACQUIRE, true, "*5\r\n$3\r\nyou\r\n:-1\r\n:2\r\n$0\r\n\r\n:-1\r\n");
    assert_int_equal(reply.free, 0);
    assert_int_equal(reply.first_ttl_ms, -1);
    reply = dialect_judge(f, &dialect_plain, OP_ACQUIRE, true, "*4\r\n:1\r\n:7\r\n:55\r\n:64\r\n");
    assert_int_equal(reply.fault, FAULT_PROTO);
    reply = dialect_judge(f, &dialect_plain, OP_EXTEND, true, "*4\r\n:1\r\n:7\r\n:55\r\n:1\r\n");
    assert_int_equal(reply.fault, FAULT_PROTO);
    reply =
        dialect_judge(f, &dialect_plain, OP_ACQUIRE, true, "-PERMITS the name has 3 permits, this lock gives 5\r\n");
    assert_int_equal(reply.fault, FAULT_CONFIG);
    assert_int_equal(reply.outcome, OUTCOME_ERROR);
    assert_contains(reply.error,
                    "the name has 3 permits, this lock gives 5 (all clients of a name must give the same number; ");
}

#define CLIENT(name) "id=3 name=" name " age=1\n"

DIALECT_TEST(replies_of_rare_requests_are_read)
{
    static const struct {
        enum op op;
        const char *wire;
        enum outcome outcome;
        uint32_t turns, before, count;
        uint64_t refusing;
        bool fits;
    } rows[] = {
        {OP_ACQUIRE, "*6\r\n$1\r\nb\r\n:9\r\n:2\r\n$3\r\n011\r\n:4\r\n:3\r\n", OUTCOME_OTHER, 4, 3, 2, 6, true},
        {OP_ACQUIRE, "*6\r\n$1\r\nb\r\n:9\r\n:2\r\n$0\r\n\r\n:-4\r\n:-3\r\n", OUTCOME_OTHER, 0, 0, 2, 0, true},
        {OP_ACQUIRE, "*4\r\n$1\r\nb\r\n:9\r\n:-1\r\n$1\r\n1\r\n", OUTCOME_ERROR, 0, 0, 0, 0, false},
        {OP_ACQUIRE, "*3\r\n:1\r\n:9007199254740991\r\n:1\r\n", OUTCOME_YES, 0, 0, 0, 0, true},
        {OP_ACQUIRE, "*3\r\n:1\r\n:9007199254740992\r\n:1\r\n", OUTCOME_ERROR, 0, 0, 0, 0, false},
        {OP_ACQUIRE, "*3\r\n:1\r\n:-1\r\n:1\r\n", OUTCOME_ERROR, 0, 0, 0, 0, false},
        {OP_ACQUIRE, "*3\r\n:1\r\n:1\r\n:-1\r\n", OUTCOME_ERROR, 0, 0, 0, 0, false},
        {OP_ACQUIRE, "*3\r\n:2\r\n:1\r\n:1\r\n", OUTCOME_ERROR, 0, 0, 0, 0, false},
        {OP_ACQUIRE, "*4\r\n:1\r\n:7\r\n:5\r\n:-1\r\n", OUTCOME_ERROR, 0, 0, 0, 0, false},
        {OP_INTEND, ":1\r\n", OUTCOME_YES, 0, 0, 0, 0, true},
        {OP_INTEND, ":5\r\n", OUTCOME_YES, 0, 4, 0, 0, true},
        {OP_INTEND, ":-1\r\n", OUTCOME_ERROR, 0, 0, 0, 0, false},
        {OP_EXTEND, ":1\r\n", OUTCOME_YES, 0, 0, 0, 0, true},
        {OP_EXTEND, ":2\r\n", OUTCOME_ERROR, 0, 0, 0, 0, false},
        {OP_EXTEND, "*0\r\n", OUTCOME_ERROR, 0, 0, 0, 0, false},
        {OP_RELEASE, "*2\r\n:0\r\n$5\r\nGUARD\r\n", OUTCOME_MISSING, 0, 0, 0, 0, true},
        {OP_RELEASE, ":-1\r\n", OUTCOME_ERROR, 0, 0, 0, 0, false},
        {OP_CLIENTS, "$85\r\n" CLIENT("quorlock") CLIENT("quorlock-unguarded") CLIENT("quorlock") "\r\n", OUTCOME_YES,
         0, 0, 2, 0, true},
        {OP_CLIENTS, "+OK\r\n", OUTCOME_ERROR, 0, 0, 0, 0, false},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct node_reply got = dialect_judge(f, &dialect_plain, rows[i].op, true, rows[i].wire);

        if (got.outcome != rows[i].outcome || (got.fault != FAULT_PROTO) != rows[i].fits)
            fail_msg("%s: outcome %d fault %d", rows[i].wire, got.outcome, got.fault);
        assert_int_equal(got.turns, rows[i].turns);
        assert_int_equal(got.before, rows[i].before);
        assert_int_equal(got.count, rows[i].count);
        assert_int_equal(got.refusing, rows[i].refusing);
    }
}

DIALECT_TEST(clients_are_listed)
{
    static const struct dialect_sent row = {{.op = OP_CLIENTS}, &guard_off, "CLIENT LIST"};

    assert_sent(f, &dialect_plain, &row, 1);
}

DIALECT_TEST(requests_become_commands)
{
    assert_sent(f, &dialect_plain, sent, LENGTH(sent));
}

static void assert_bytes(struct dialect_fixture *f, const struct node_request *request, const char *wanted)
{
    dialect_build_one(f, &dialect_plain, request, NULL, ALL_SENT, request->op != OP_ACQUIRE);
    assert_int_equal(f->out.used, strlen(wanted));
    assert_memory_equal(f->out.data, wanted, f->out.used);
}

DIALECT_TEST(commands_are_these_bytes)
{
    char release[128];
    struct node_request request = {
        .op = OP_ACQUIRE, NODE_KEY("key", 3), .owner = "me", .owner_length = 2, .lease_ms = 30000};

    snprintf(release, sizeof(release),
             "*7\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n1\r\n$3\r\nkey\r\n$1\r\n1\r\n$2\r\nme\r\n$5\r\n30000\r\n",
             dialect_plain.scripts[SCRIPT_RELEASE].sha);
    assert_bytes(f, &request, "*6\r\n$3\r\nSET\r\n$3\r\nkey\r\n$2\r\nme\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n30000\r\n");
    request.op = OP_RELEASE;
    assert_bytes(f, &request, release);
}

TEST(requests_of_one_key_that_need_a_script_go_together)
{
    const struct {
        struct node_request request;
        char letter;
        const struct guard *guard;
    } rows[] = {
        {{.op = OP_RELEASE, KEY}, 'r', NULL},
        {{.op = OP_RELEASE, KEY, .fenced = true}, 'r', NULL},
        {{.op = OP_RELEASE, KEY, .if_deleted = true}, 'd', NULL},
        {{.op = OP_RELEASE, KEY, .silent = true}, 's', NULL},
        {{.op = OP_RELEASE, KEY, .silent = true, .if_deleted = true}, 's', NULL},
        {{.op = OP_RELEASE, KEY, .silent = true, .keep = true}, '\0', NULL},
        {{.op = OP_RELEASE, KEY, .fenced = true, .fence = 5}, 'r', NULL},
        {{.op = OP_RELEASE, KEY, .fenced = true, .shared = 1}, '\0', NULL},
        {{.op = OP_RELEASE, KEY, .permits = 2}, '\0', NULL},
        {{.op = OP_RELEASE, KEYS}, '\0', NULL},
        {{.op = OP_EXTEND, KEY}, 'e', NULL},
        {{.op = OP_EXTEND, KEY, .fenced = true, .fence = 5}, 'e', NULL},
        {{.op = OP_EXTEND, KEYS}, '\0', NULL},
        {{.op = OP_ACQUIRE, KEY}, '\0', NULL},
        {{.op = OP_ACQUIRE, KEY}, '\0', &guard_off},
        {{.op = OP_ACQUIRE, KEY}, '\0', &guard_lax},
        {{.op = OP_ACQUIRE, KEY}, 'a', &guard_strict},
        {{.op = OP_ACQUIRE, KEYS}, '\0', &guard_strict},
        {{.op = OP_ACQUIRE, KEY, .explain = true}, '\0', NULL},
        {{.op = OP_ACQUIRE, KEY, .fenced = true, .fence = 5}, 'a', NULL},
        {{.op = OP_ACQUIRE, KEY, .fenced = true, .shared = 1}, '\0', NULL},
        {{.op = OP_REPAIR, KEY}, '\0', NULL},
        {{.op = OP_REPAIR, KEY, .fenced = true, .fence = 5}, '\0', NULL},
        {{.op = OP_RAISE, KEY}, '\0', NULL},
        {{.op = OP_PEEK, KEY}, '\0', NULL},
        {{.op = OP_BREAK, KEY}, '\0', NULL},
        {{.op = OP_BOOTSTRAP}, '\0', NULL},
    };

    for (size_t i = 0; i < LENGTH(rows); i++)
        assert_int_equal(dialect_plain.letter(&rows[i].request, rows[i].guard), rows[i].letter);
}

/* Behind the name of the script and its keys: how many, letters, lease, guard, each, life, strict, max_lease. */
#define NOTHING      "$0\r\n\r\n"
#define ARGS(lease)  "$1\r\n2\r\n$2\r\nrs\r\n$1\r\n" lease "\r\n"
#define LIFE(number) "$9\r\n" number "\r\n"

static void batch_of_two(struct dialect_batch *batch, bool fenced)
{
    *batch = (struct dialect_batch){
        .n = 2, .letters = "rs", .lease_ms = fenced ? 9 : 0, .fenced = fenced, .fence_ttl_ms = fenced ? 6 : 0};
    bytes_init(&batch->keys, &memory, 100);
    bytes_init(&batch->owners, &memory, 100);
    bytes_init(&batch->numbers, &memory, 100);
    bytes_text(&batch->keys, "k\n");
    bytes_text(&batch->keys, "l");
    bytes_text(&batch->owners, "me");
    bytes_text(&batch->owners, "you");
    if (!fenced) return;
    bytes_number(&batch->numbers, 5);
    bytes_number(&batch->numbers, 0);
}

static void clear_batch(struct dialect_batch *batch)
{
    bytes_clear(&batch->keys);
    bytes_clear(&batch->owners);
    bytes_clear(&batch->numbers);
}

DIALECT_TEST(a_batch_becomes_one_command)
{
    static const struct {
        const struct guard *guard;
        bool whole, fenced;
        const char *head, *n_keys, *tail;
    } rows[] = {
        {&guard_off, false, false, "*15\r\n$7\r\nEVALSHA\r\n", "$1\r\n2\r\n",
         ARGS("0") NOTHING NOTHING LIFE("604800000") NOTHING "$3\r\n700\r\n"},
        {NULL, false, false, "*15\r\n$7\r\nEVALSHA\r\n", "$1\r\n2\r\n",
         ARGS("0") NOTHING NOTHING LIFE("604800000") NOTHING "$5\r\n30000\r\n"},
        {&guard_lax, false, false, "*16\r\n$7\r\nEVALSHA\r\n", "$1\r\n3\r\n",
         "$14\r\nquorlock:guard\r\n" ARGS("0") "$1\r\nG\r\n" NOTHING LIFE("604800000") NOTHING "$3\r\n500\r\n"},
        {&guard_off, true, false, "*15\r\n$4\r\nEVAL\r\n", "$1\r\n2\r\n",
         ARGS("0") NOTHING NOTHING LIFE("604800000") NOTHING "$3\r\n700\r\n"},
        {&guard_strict, false, true, "*20\r\n$7\r\nEVALSHA\r\n", "$1\r\n5\r\n",
         "$14\r\nquorlock:guard\r\n$17\r\nquorlock:fence:k\n\r\n$16\r\nquorlock:fence:l\r\n" ARGS(
             "9") "$1\r\nG\r\n$4\r\neach\r\n$2\r\n15\r\n$6\r\nstrict\r\n$3\r\n500\r\n"},
    };
    const struct dialect_script *script = &dialect_plain.scripts[SCRIPT_COMBINED];

    for (size_t i = 0; i < LENGTH(rows); i++) {
        const char *named = rows[i].whole ? script->text : script->sha;
        uint32_t whole_sent = rows[i].whole ? ~(1u << SCRIPT_COMBINED) : 1u << SCRIPT_COMBINED;
        struct dialect_batch batch;
        char wanted[400];

        batch_of_two(&batch, rows[i].fenced);
        bytes_cut(&f->out, 0);
        dialect_plain.build_batch(&f->out, &batch, &whole_sent, rows[i].guard);
        assert_true((whole_sent >> SCRIPT_COMBINED & 1) != 0);
        bytes_append(&f->out, "", 1);
        assert_true(f->out.used < script->length + DIALECT_BATCH_FRAME);
        assert_memory_equal(f->out.data, rows[i].head, strlen(rows[i].head));
        assert_contains(f->out.data, named);
        snprintf(wanted, sizeof(wanted), "%s$2\r\nk\n\r\n$1\r\nl\r\n%s$2\r\nme\r\n$3\r\nyou\r\n%s", rows[i].n_keys,
                 rows[i].tail, rows[i].fenced ? "$1\r\n5\r\n$1\r\n0\r\n" : "");
        assert_contains(f->out.data, wanted);
        clear_batch(&batch);
    }
}

TEST(a_command_that_does_not_fit_leaves_what_was_there)
{
    uint32_t whole_sent = 0;
    struct node_request request = {.op = OP_PEEK, NODE_KEY("key", 3), .owner = "", .lease_ms = 1};
    struct bytes out;

    bytes_init(&out, &memory, 100);
    bytes_append(&out, "before", 6);
    dialect_plain.build(&out, &request, &whole_sent, NULL);
    assert_int_equal(out.fault, BYTES_FULL);
    bytes_cut(&out, 6);
    assert_int_equal(out.fault, BYTES_FINE);
    assert_memory_equal(out.data, "before", 6);
    bytes_clear(&out);
}

TEST(what_does_not_fit_is_not_written)
{
    static const char much[200];
    struct bytes out;

    bytes_init(&out, &memory, 100);
    bytes_append(&out, "before", 6);
    bytes_append(&out, much, 95);
    assert_int_equal(out.fault, BYTES_FULL);
    bytes_append(&out, "x", 1);
    assert_int_equal(out.used, 6);
    bytes_cut(&out, 6);
    bytes_append(&out, much, 94);
    assert_int_equal(out.fault, BYTES_FINE);
    assert_int_equal(out.used, 100);
    bytes_clear(&out);
}

/* ---- replies ---- */

#define HANDED_ON   "-@user_script: 1: "
#define OLD_SCRIPT  "-ERR Error running script (call to f_ab): @user_script:3: "
#define ACL_FAILURE "-ERR ACL failure in script: "
#define RAISED      " script: 40b8b0673148f7f8c80bf2149f20c13c8535cc50, on @user_script:1.\r\n"

#define GONE "-GUARD the guard changed or is gone: the server may have lost its memory\r\n"

/* A peek of a free key, and what stands behind the number of waiters. */
#define PARTS(item) "*7\r\n$-1\r\n:-2\r\n:0\r\n$0\r\n\r\n:-1\r\n:3\r\n" item

static const struct dialect_judged judged[] = {
    {OP_ACQUIRE, "+OK\r\n", OUTCOME_YES, FINE, .ttl_ms = NO_TTL, .by_set = true},
    {OP_ACQUIRE, "$-1\r\n", OUTCOME_OTHER, FINE, .ttl_ms = NO_TTL, .by_set = true},
    {OP_ACQUIRE, "*-1\r\n", OUTCOME_OTHER, FINE, .ttl_ms = NO_TTL, .by_set = true},
    {OP_ACQUIRE, ":1\r\n", DOES_NOT_FIT, .by_set = true},
    {OP_ACQUIRE, "+QUEUED\r\n", DOES_NOT_FIT, .by_set = true},
    {OP_ACQUIRE, "$2\r\nOK\r\n", DOES_NOT_FIT, .by_set = true},
    {OP_ACQUIRE, "*0\r\n", DOES_NOT_FIT, .by_set = true},
    {OP_ACQUIRE, "+OK\r\n", DOES_NOT_FIT},
    {OP_ACQUIRE, "$-1\r\n", DOES_NOT_FIT},
    {OP_REPAIR, "+OK\r\n", DOES_NOT_FIT},
    {OP_REPAIR, ":0\r\n", DOES_NOT_FIT},
    {OP_ACQUIRE, ":0\r\n", DOES_NOT_FIT},
    {OP_EXTEND, ":1\r\n", OUTCOME_YES, FINE, .ttl_ms = NO_TTL},
    {OP_EXTEND, ":0\r\n", OUTCOME_MISSING, FINE, .ttl_ms = NO_TTL},
    {OP_EXTEND, ":2\r\n", DOES_NOT_FIT},
    {OP_EXTEND, "+OK\r\n", DOES_NOT_FIT},
    {OP_EXTEND, "$-1\r\n", DOES_NOT_FIT},
    {OP_EXTEND, "*2\r\n$3\r\nbob\r\n:77\r\n", OUTCOME_OTHER, FINE, .ttl_ms = 77, .holder = "bob"},
    {OP_EXTEND, "*2\r\n$3\r\nbob\r\n:-1\r\n", OUTCOME_OTHER, FINE, .ttl_ms = -1, .holder = "bob"},
    {OP_EXTEND, "*1\r\n$3\r\nbob\r\n", DOES_NOT_FIT},
    {OP_EXTEND, "*2\r\n$3\r\nbob\r\n$1\r\n7\r\n", DOES_NOT_FIT},
    {OP_EXTEND, "*2\r\n$-1\r\n:7\r\n", DOES_NOT_FIT},
    {OP_EXTEND, "*3\r\n$3\r\nbob\r\n:7\r\n$1\r\nx\r\n", DOES_NOT_FIT},
    {OP_RELEASE, ":1\r\n", OUTCOME_YES, FINE, .ttl_ms = NO_TTL},
    {OP_RELEASE, ":0\r\n", OUTCOME_MISSING, FINE, .ttl_ms = NO_TTL},
    {OP_RELEASE, "*2\r\n$0\r\n\r\n:5\r\n", OUTCOME_OTHER, FINE, .ttl_ms = 5, .holder = ""},
    {OP_PEEK, ":0\r\n", OUTCOME_MISSING, FINE, .ttl_ms = NO_TTL},
    {OP_PEEK, ":1\r\n", DOES_NOT_FIT},
    {OP_PEEK, "*2\r\n$3\r\nbob\r\n:77\r\n", OUTCOME_YES, FINE, .ttl_ms = 77, .holder = "bob"},
    {OP_BREAK, ":0\r\n", OUTCOME_MISSING, FINE, .ttl_ms = NO_TTL},
    {OP_BREAK, "*3\r\n$3\r\nbob\r\n:77\r\n$6\r\nstring\r\n", OUTCOME_YES, FINE, .ttl_ms = 77, .holder = "bob"},
    {OP_PEEK, "-WRONGTYPE list\r\n", OUTCOME_ERROR, FAULT_FOREIGN, .ttl_ms = NO_TTL,
     .error = "a list, not a string: it is not a lock"},
    {OP_PEEK, "-WRONGTYPE hash\r\n", OUTCOME_ERROR, FAULT_FOREIGN, .ttl_ms = NO_TTL,
     .error = "give --dialect redisson"},
    {OP_PEEK, "-WRONGTYPE \r\n", OUTCOME_ERROR, FAULT_FOREIGN, .ttl_ms = NO_TTL,
     .error = "another type, or another dialect"},
    {OP_PEEK, "-WRONGTYPE\r\n", OUTCOME_ERROR, FAULT_FOREIGN, .ttl_ms = NO_TTL,
     .error = "another type, or another dialect"},
    {OP_EXTEND, "-WRONGTYPE Operation against\r\n", OUTCOME_ERROR, FAULT_FOREIGN, .ttl_ms = NO_TTL,
     .error = "another dialect"},
    {OP_BREAK, "*3\r\n$-1\r\n:-1\r\n$4\r\nhash\r\n", OUTCOME_YES, FINE, .ttl_ms = -1, .error = "hash"},
    {OP_BREAK, "*2\r\n$3\r\nbob\r\n:77\r\n", OUTCOME_OTHER, FINE, .ttl_ms = 77, .holder = "bob"},
    /* Errors, one of each kind */
    {OP_ACQUIRE, "-LOADING Redis is loading\r\n", OUTCOME_ERROR, FAULT_TEMPORARY, .ttl_ms = NO_TTL, .error = "LOADING",
     .by_set = true},
    {OP_ACQUIRE, "-MASTERDOWN Link\r\n", OUTCOME_ERROR, FAULT_TEMPORARY, .ttl_ms = NO_TTL, .error = "MASTERDOWN",
     .by_set = true},
    {OP_ACQUIRE, "-TRYAGAIN\r\n", OUTCOME_ERROR, FAULT_TEMPORARY, .ttl_ms = NO_TTL, .error = "TRYAGAIN",
     .by_set = true},
    {OP_ACQUIRE, "-BUSY Redis is busy\r\n", OUTCOME_ERROR, FAULT_TEMPORARY, .ttl_ms = NO_TTL, .error = "BUSY",
     .by_set = true},
    {OP_ACQUIRE, "-BUSYKEY exists\r\n", OUTCOME_UNKNOWN, FAULT_OTHER, .ttl_ms = NO_TTL, .error = "BUSYKEY",
     .by_set = true},
    {OP_ACQUIRE, "-READONLY You can't\r\n", OUTCOME_ERROR, FAULT_REPLICA, .ttl_ms = NO_TTL,
     .error = "independent masters", .by_set = true},
    {OP_ACQUIRE, "-NOAUTH Authentication\r\n", OUTCOME_ERROR, FAULT_LOGIN, .ttl_ms = NO_TTL, .error = "PASSWORD@host",
     .by_set = true},
    {OP_ACQUIRE, "-NOPERM this user\r\n", OUTCOME_ERROR, FAULT_AUTH, .ttl_ms = NO_TTL, .error = "acquire (SET): NOPERM",
     .by_set = true},
    {OP_ACQUIRE, "-OOM command\r\n", OUTCOME_ERROR, FAULT_REFUSED, .ttl_ms = NO_TTL, .error = "maxmemory",
     .by_set = true},
    {OP_ACQUIRE, "-MISCONF x\r\n", OUTCOME_ERROR, FAULT_REFUSED, .ttl_ms = NO_TTL, .error = "disk", .by_set = true},
    {OP_ACQUIRE, "-NOREPLICAS x\r\n", OUTCOME_ERROR, FAULT_REFUSED, .ttl_ms = NO_TTL, .error = "min-replicas",
     .by_set = true},
    {OP_ACQUIRE, "-ERR max number of clients reached\r\n", OUTCOME_ERROR, FAULT_REFUSED, .ttl_ms = NO_TTL,
     .error = "maxclients", .by_set = true},
    {OP_ACQUIRE, "-DENIED Redis\r\n", OUTCOME_ERROR, FAULT_REFUSED, .ttl_ms = NO_TTL, .error = "protected mode",
     .by_set = true},
    {OP_ACQUIRE, "-MOVED 1 h:1\r\n", OUTCOME_ERROR, FAULT_CLUSTER, .ttl_ms = NO_TTL, .error = "cluster",
     .by_set = true},
    {OP_ACQUIRE, "-CLUSTERDOWN x\r\n", OUTCOME_ERROR, FAULT_CLUSTER, .ttl_ms = NO_TTL, .error = "cluster",
     .by_set = true},
    {OP_ACQUIRE, "-ERR whatever\r\n", OUTCOME_UNKNOWN, FAULT_OTHER, .ttl_ms = NO_TTL, .error = "ERR whatever",
     .by_set = true},
    {OP_ACQUIRE, "-\r\n", OUTCOME_UNKNOWN, FAULT_OTHER, .ttl_ms = NO_TTL, .error = "acquire", .by_set = true},
    {OP_PEEK, "-NOSCRIPT No matching script.\r\n", OUTCOME_ERROR, FAULT_TEMPORARY, .ttl_ms = NO_TTL,
     .error = "NOSCRIPT"},
    {OP_ACQUIRE, "-NOSCRIPT what?\r\n", OUTCOME_ERROR, FAULT_TEMPORARY, .ttl_ms = NO_TTL, .error = "NOSCRIPT",
     .by_set = true},
    {OP_PEEK, "-WRONGTYPE Operation against\r\n", OUTCOME_ERROR, FAULT_FOREIGN, .ttl_ms = NO_TTL,
     .error = "another type"},
    {OP_RELEASE, OLD_SCRIPT "-READONLY You can't\r\n", OUTCOME_ERROR, FAULT_REPLICA, .ttl_ms = NO_TTL,
     .error = "masters"},
    {OP_RELEASE, OLD_SCRIPT "WRONGTYPE Operation\r\n", OUTCOME_ERROR, FAULT_FOREIGN, .ttl_ms = NO_TTL, .error = "type"},
    {OP_RELEASE, HANDED_ON "-READONLY You can't\r\n", OUTCOME_ERROR, FAULT_REPLICA, .ttl_ms = NO_TTL,
     .error = "masters"},
    {OP_RELEASE, HANDED_ON "-OOM command\r\n", OUTCOME_ERROR, FAULT_REFUSED, .ttl_ms = NO_TTL, .error = "maxmemory"},
    {OP_RELEASE, HANDED_ON "The user executing the script can't\r\n", OUTCOME_ERROR, FAULT_AUTH, .ttl_ms = NO_TTL,
     .error = "SETUSER"},
    {OP_RELEASE, HANDED_ON "what ever\r\n", OUTCOME_UNKNOWN, FAULT_OTHER, .ttl_ms = NO_TTL, .error = "what ever"},
    {OP_RELEASE, "-ERR The user executing the script can't\r\n", OUTCOME_ERROR, FAULT_AUTH, .ttl_ms = NO_TTL,
     .error = "SETUSER"},
    /* A missing right in the words of Redis 8 and Valkey 8.1: passed on by the script, and raised in it. */
    {OP_RELEASE, ACL_FAILURE "User bob has no permissions to run the 'pexpire' command\r\n", OUTCOME_ERROR, FAULT_AUTH,
     .ttl_ms = NO_TTL, .error = "SETUSER"},
    {OP_RELEASE, ACL_FAILURE "User bob has no permissions to run the 'pttl' command" RAISED, OUTCOME_ERROR, FAULT_AUTH,
     .ttl_ms = NO_TTL, .error = "SETUSER"},
    {OP_RELEASE, ACL_FAILURE "No permissions to access a key\r\n", OUTCOME_ERROR, FAULT_AUTH, .ttl_ms = NO_TTL,
     .error = "No permissions to access a key (give"},
    {OP_RELEASE, OLD_SCRIPT "what ever\r\n", OUTCOME_UNKNOWN, FAULT_OTHER, .ttl_ms = NO_TTL, .error = "what ever"},
    /* Of scripts: with tokens, the clock and the guard. */
    {OP_ACQUIRE, "*3\r\n:1\r\n:17\r\n:1700000000000001\r\n", OUTCOME_YES, FINE, .ttl_ms = NO_TTL, .fence = 17,
     .node_time_us = 1700000000000001},
    {OP_REPAIR, "*3\r\n:1\r\n:0\r\n:5\r\n", OUTCOME_YES, FINE, .ttl_ms = NO_TTL, .node_time_us = 5},
    {OP_ACQUIRE, "*2\r\n$3\r\nbob\r\n:9\r\n", OUTCOME_OTHER, FINE, .ttl_ms = 9, .holder = "bob"},
    {OP_ACQUIRE, "*3\r\n:2\r\n:17\r\n:5\r\n", DOES_NOT_FIT},
    {OP_ACQUIRE, "*3\r\n:1\r\n:-17\r\n:5\r\n", DOES_NOT_FIT},
    {OP_ACQUIRE, "*3\r\n:1\r\n$2\r\n17\r\n:5\r\n", DOES_NOT_FIT},
    {OP_ACQUIRE, "*2\r\n:1\r\n:17\r\n", DOES_NOT_FIT},
    {OP_RAISE, "*3\r\n:1\r\n:9007199254740991\r\n:5\r\n", OUTCOME_YES, FINE, .ttl_ms = NO_TTL,
     .fence = 9007199254740991, .node_time_us = 5},
    {OP_RAISE, ":0\r\n", OUTCOME_MISSING, FINE, .ttl_ms = NO_TTL},
    {OP_RAISE, ":1\r\n", DOES_NOT_FIT},
    {OP_RAISE, "+OK\r\n", DOES_NOT_FIT},
    {OP_EXTEND, "*2\r\n:1\r\n:1700000000000001\r\n", OUTCOME_YES, FINE, .ttl_ms = NO_TTL,
     .node_time_us = 1700000000000001},
    {OP_EXTEND, "*2\r\n:0\r\n:5\r\n", DOES_NOT_FIT},
    {OP_EXTEND, "*2\r\n:1\r\n:-5\r\n", DOES_NOT_FIT},
    {OP_EXTEND, GONE, OUTCOME_ERROR, FAULT_GUARD, .ttl_ms = NO_TTL, .error = "the guard changed or is gone"},
    {OP_ACQUIRE, "-FENCE the counter\r\n", OUTCOME_ERROR, FAULT_REFUSED, .ttl_ms = NO_TTL, .error = "FENCE"},
    {OP_RELEASE, "*2\r\n:1\r\n$5\r\nGUARD\r\n", OUTCOME_YES, FAULT_GUARD, .ttl_ms = NO_TTL},
    {OP_RELEASE, "*2\r\n:-2\r\n$5\r\nGUARD\r\n", DOES_NOT_FIT},
    {OP_BREAK, "*2\r\n:1\r\n:1\r\n", DOES_NOT_FIT},
    {OP_PEEK, "*5\r\n$3\r\nbob\r\n:9\r\n:17\r\n$5\r\nfirst\r\n:250\r\n", OUTCOME_YES, FINE, .ttl_ms = 9, .fence = 17,
     .has_guard = true, .quarantine_ms = 250, .holder = "bob"},
    {OP_PEEK, "*5\r\n$-1\r\n:-2\r\n:17\r\n$0\r\n\r\n:-1\r\n", OUTCOME_MISSING, FINE, .ttl_ms = NO_TTL, .fence = 17},
    {OP_PEEK, "*5\r\n$-1\r\n:-2\r\n:-17\r\n$4\r\nnone\r\n:0\r\n", OUTCOME_MISSING, FINE, .ttl_ms = NO_TTL,
     .has_guard = true},
    {OP_PEEK, "*6\r\n$-1\r\n:-2\r\n:0\r\n$0\r\n\r\n:-1\r\n:3\r\n", OUTCOME_MISSING, FINE, .ttl_ms = NO_TTL,
     .waiters = 3},
    {OP_PEEK, "*6\r\n$-1\r\n:-2\r\n:0\r\n$0\r\n\r\n:-1\r\n:-1\r\n", OUTCOME_MISSING, FINE, .ttl_ms = NO_TTL},
    {OP_PEEK, "*6\r\n$-1\r\n:-2\r\n:0\r\n$0\r\n\r\n:-1\r\n$1\r\n3\r\n", DOES_NOT_FIT},
    {OP_PEEK, "*5\r\n$-1\r\n:-2\r\n$2\r\n17\r\n$4\r\nnone\r\n:0\r\n", DOES_NOT_FIT},
    {OP_PEEK, "*5\r\n:1\r\n:-2\r\n:17\r\n$4\r\nnone\r\n:0\r\n", DOES_NOT_FIT},
    {OP_PEEK, PARTS("$0\r\n\r\n"), OUTCOME_MISSING, FINE, .ttl_ms = NO_TTL, .waiters = 3},
    {OP_PEEK, PARTS("$11\r\np 5 0 0 0 \n\r\n"), OUTCOME_MISSING, FINE, .ttl_ms = NO_TTL, .waiters = 3},
    {OP_PEEK, PARTS("$10\r\np 5 0 0 0 \r\n"), DOES_NOT_FIT},
    {OP_PEEK, PARTS("$11\r\nx 5 0 0 0 \n\r\n"), DOES_NOT_FIT},
    {OP_PEEK, PARTS("$12\r\nr 0 0 9 2 a\n\r\n"), DOES_NOT_FIT},
    {OP_PEEK, PARTS(":1\r\n"), DOES_NOT_FIT},
    {OP_BREAK, "*4\r\n$-1\r\n:-2\r\n$4\r\nnone\r\n$12\r\nr 0 0 9 1 a\n\r\n", OUTCOME_YES, FINE, .ttl_ms = NO_TTL},
    {OP_BREAK, "*4\r\n$1\r\nb\r\n:7\r\n$6\r\nstring\r\n$12\r\nr 0 0 9 1 a\n\r\n", OUTCOME_YES, FINE, .ttl_ms = 7,
     .holder = "b"},
    {OP_BREAK, "*4\r\n$1\r\nb\r\n:7\r\n$6\r\nstring\r\n$1\r\nr\r\n", DOES_NOT_FIT},
    {OP_BREAK, "*4\r\n$1\r\nb\r\n:7\r\n$6\r\nstring\r\n:1\r\n", DOES_NOT_FIT},
    {OP_BOOTSTRAP, "$9\r\nwritten:x\r\n", OUTCOME_YES, FINE, .ttl_ms = NO_TTL, .holder = "x"},
    {OP_BOOTSTRAP, "$9\r\nguarded:x\r\n", OUTCOME_OTHER, FINE, .ttl_ms = NO_TTL, .holder = "x"},
    {OP_BOOTSTRAP, "$9\r\nnothing:x\r\n", DOES_NOT_FIT},
    {OP_BOOTSTRAP, "$4\r\nwrit\r\n", DOES_NOT_FIT},
    {OP_BOOTSTRAP, ":1\r\n", DOES_NOT_FIT},
    {OP_BOOTSTRAP, "*1\r\n$9\r\nwritten:x\r\n", DOES_NOT_FIT},
    {OP_BOOTSTRAP, "*2\r\n:1\r\n:1\r\n", DOES_NOT_FIT},
    {OP_BOOTSTRAP, "*2\r\n$9\r\nwritten:x\r\n+OK\r\n", DOES_NOT_FIT},
    {OP_MAY_KILL, "*1\r\n:0\r\n", OUTCOME_YES, FINE, .ttl_ms = NO_TTL},
    {OP_MAY_KILL, "*1\r\n+OK\r\n", DOES_NOT_FIT},
    {OP_MAY_KILL, "*0\r\n", DOES_NOT_FIT},
    {OP_MAY_KILL, ":0\r\n", DOES_NOT_FIT},
    {OP_CLIENTS, "$29\r\nid=1 name=quorlock-unguarded\n\r\n", OUTCOME_YES, FINE, .ttl_ms = NO_TTL},
    {OP_CLIENTS, "*0\r\n", DOES_NOT_FIT},
    {OP_ACQUIRE, "-NOSCRIPT no\r\n", OUTCOME_ERROR, FAULT_TEMPORARY, .ttl_ms = NO_TTL, .error = "NOSCRIPT"},
    /* How many listen for a release, as a refusal and a release report it. */
    {OP_ACQUIRE, "*3\r\n$1\r\nu\r\n:9\r\n:30\r\n", OUTCOME_OTHER, FINE, .ttl_ms = 9, .count = 30, .holder = "u"},
    {OP_REPAIR, "*3\r\n$1\r\nu\r\n:9\r\n:0\r\n", OUTCOME_OTHER, FINE, .ttl_ms = 9, .holder = "u"},
    {OP_ACQUIRE, "*3\r\n$1\r\nu\r\n:9\r\n:-1\r\n", DOES_NOT_FIT},
    {OP_ACQUIRE, "*3\r\n$1\r\nu\r\n:9\r\n$1\r\n3\r\n", DOES_NOT_FIT},
    {OP_ACQUIRE, "*2\r\n$1\r\nu\r\n:9\r\n", OUTCOME_OTHER, FINE, .ttl_ms = 9, .holder = "u"},
    /* And which of several keys are in the way. */
    {OP_ACQUIRE, "*4\r\n$1\r\nu\r\n:9\r\n:30\r\n$3\r\n011\r\n", OUTCOME_OTHER, FINE, .ttl_ms = 9, .count = 30,
     .holder = "u", .refusing = 6},
    {OP_ACQUIRE, "*4\r\n$1\r\nu\r\n:9\r\n:30\r\n:3\r\n", DOES_NOT_FIT},
    {OP_RELEASE, ":31\r\n", OUTCOME_YES, FINE, .ttl_ms = NO_TTL, .count = 30},
    {OP_RELEASE, ":9999999999\r\n", OUTCOME_YES, FINE, .ttl_ms = NO_TTL, .count = UINT32_MAX},
    {OP_RELEASE, ":-1\r\n", DOES_NOT_FIT},
    {OP_RELEASE, "*2\r\n:4\r\n$5\r\nGUARD\r\n", OUTCOME_YES, FAULT_GUARD, .ttl_ms = NO_TTL, .count = 3},
};

/* Any bytes in a holder; numbers that a report has no room for, cut. */
TEST(a_list_of_parts_is_read)
{
    static const char list[] =
        "p 5 0 0 0 \ns 4 1700000000000001 -1 5 a\0\nb \nr 0 0 99999999999999999999 1 x\nw 0 0 7 0 \nq 0 0 7 1 y\n";
    static const struct other wanted[] = {
        {OTHER_PERMITS, 5, 0, 0, "", 0},           {OTHER_SLOT, 4, 1700000000000001, -1, "a\0\nb ", 5},
        {OTHER_READER, 0, 0, NODE_MS_MAX, "x", 1}, {OTHER_WRITER_WAITS, 0, 0, 7, "", 0},
        {OTHER_READER_WAITS, 0, 0, 7, "y", 1},
    };
    const char *at = list, *end = list + sizeof(list) - 1;
    struct other got;

    assert_true(others_fit(list, sizeof(list) - 1));
    for (size_t i = 0; i < LENGTH(wanted); i++) {
        assert_true(others_next(&at, end, &got));
        assert_int_equal(got.kind, wanted[i].kind);
        assert_int_equal(got.number, wanted[i].number);
        assert_int_equal(got.fence, wanted[i].fence);
        assert_int_equal(got.ttl_ms, wanted[i].ttl_ms);
        assert_int_equal(got.holder_length, wanted[i].holder_length);
        assert_memory_equal(got.holder, wanted[i].holder, wanted[i].holder_length);
    }
    assert_ptr_equal(at, end);
    assert_false(others_next(&at, end, &got));
    /* What is cut anywhere but behind a line is no list. */
    for (size_t i = 0; i < sizeof(list) - 1; i++) {
        bool whole = i == 0 || (list[i - 1] == '\n' && list[i] >= 'a' && list[i + 1] == ' ' && list[i - 2] != '\0');

        assert_int_equal(others_fit(list, i), whole);
    }
}

TEST(what_is_no_list_of_parts)
{
    static const char *const lists[] = {"p",
                                        "p ",
                                        "s 1 0 0 0\n",
                                        "s -1 0 0 0 \n",
                                        "s 257 0 0 0 \n",
                                        "s 1 -1 0 0 \n",
                                        "s 1 9007199254740992 0 0 \n",
                                        "s 1 0 0 257 \n",
                                        "s 1 0 0 -1 \n",
                                        "s  1 0 0 0 \n",
                                        "s 1 0 0 1 ab\n",
                                        "S 1 0 0 0 \n",
                                        "s 1 0 - 0 \n"};

    for (size_t i = 0; i < LENGTH(lists); i++) assert_false(others_fit(lists[i], strlen(lists[i])));
}

DIALECT_TEST(replies_become_results)
{
    assert_judged(f, &dialect_plain, judged, LENGTH(judged));
}

DIALECT_TEST(a_holder_is_bytes)
{
    static const char wire[] = "*2\r\n$5\r\na\0\r\nb\r\n:9\r\n";
    struct node_reply got;

    reply_feed(&f->parser, wire, sizeof(wire) - 1);
    got = dialect_judge(f, &dialect_plain, OP_PEEK, true, "");
    assert_int_equal(got.holder_length, 5);
    assert_memory_equal(got.holder, "a\0\r\nb", 6);
}

/* What a server echoes of our command may be a token or a password. */
TEST(the_echo_of_a_command_is_cut)
{
    static const char text[] = "ERR unknown command 'AUTH', with args beginning with: 'sesame'";
    char described[320];

    error_describe(described, sizeof(described), "AUTH", text, sizeof(text) - 1);
    assert_string_equal(described, "AUTH: ERR unknown command 'AUTH' (is it renamed or removed? "
                                   "'quorlock doctor' names what is missing)");
}
