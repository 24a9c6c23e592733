/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_redisson.c - the redisson dialect: commands as words, replies judged, owners
 */
#include <quorlock/quorlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system_os.h"
#include "dialect_fixture.h"
#include "lock/message.h"
#include "runtime/owner.h"

/* ---- commands ---- */

static const struct node_key two[] = {{"k", 1}, {"l", 1}};
#define KEY NODE_KEY("k", 1), .owner = "u:1", .owner_length = 3, .lease_ms = 9
static const struct dialect_sent sent[] = {
    /* Never a SET, whatever the guard. */
    {{.op = OP_ACQUIRE, KEY}, NULL, "EVALSHA e 1 k 1 u:1 9   604800009  30000"},
    {{.op = OP_ACQUIRE, KEY}, &guard_off, "EVALSHA e 1 k 1 u:1 9   604800009  700"},
    {{.op = OP_ACQUIRE, KEY}, &guard_lax, "EVALSHA e 2 k quorlock:guard 1 u:1 9 G  604800009  500"},
    {{.op = OP_ACQUIRE, KEY}, &guard_strict, "EVALSHA e 2 k quorlock:guard 1 u:1 9 G  604800009 strict 500"},
    {{.op = OP_ACQUIRE, KEY, .fenced = true, .fence = 77, .fence_ttl_ms = 88},
     &guard_lax,
     "EVALSHA e 3 k quorlock:guard quorlock:fence:k 1 u:1 9 G 77 97  500"},
    {{.op = OP_REPAIR, KEY}, &guard_off, "EVALSHA e 1 k 1 u:1 9   604800009 repair 700"},
    {{.op = OP_REPAIR, KEY, .fenced = true, .fence = 5},
     &guard_lax,
     "EVALSHA e 3 k quorlock:guard quorlock:fence:k 1 u:1 9 G 5 604800009 repair 500"},
    {{.op = OP_EXTEND, KEY}, &guard_off, "EVALSHA a 1 k 1 u:1 9"},
    {{.op = OP_EXTEND, KEY}, &guard_lax, "EVALSHA a 2 k quorlock:guard 1 u:1 9 G  604800009"},
    {{.op = OP_RELEASE, KEY}, &guard_off, "EVALSHA b 1 k 1 u:1 9"},
    {{.op = OP_RELEASE, KEY, .fence = 5, .fence_ttl_ms = 6},
     &guard_off,
     "EVALSHA b 2 k quorlock:fence:k 1 u:1 9  5 15"},
    {{.op = OP_RAISE, KEY, .fence = 5}, &guard_off, "EVALSHA f 2 k quorlock:fence:k 1 u:1 9  5 604800009"},
    {{.op = OP_ACQUIRE, .keys = two, .n_keys = 2, .owner = "u:1", .owner_length = 3, .lease_ms = 9},
     &guard_lax,
     "EVALSHA e 3 k l quorlock:guard 2 u:1 9 G  604800009  500"},
    {{.op = OP_RELEASE, KEY, .silent = true}, &guard_off, "EVALSHA b 1 k 1 u:1 9   604800009 silent"},
    {{.op = OP_PEEK, KEY}, &guard_strict, "EVALSHA c 1 k"},
    {{.op = OP_BREAK, KEY}, &guard_strict, "EVALSHA d 1 k u:1"},
};

DIALECT_TEST(requests_become_commands)
{
    assert_sent(f, &dialect_redisson, sent, LENGTH(sent));
}

#define APP NODE_KEY("app:k", 5), .prefix = 4, .owner = "u:1", .owner_length = 3, .lease_ms = 9
/* Only those that look at counters need to know the prefix. */
static const struct dialect_sent of_a_prefix[] = {
    {{.op = OP_ACQUIRE, APP, .fenced = true},
     &guard_lax,
     "EVALSHA e 3 app:k quorlock:guard app:quorlock:fence:k 1 u:1 9 G 0 604800009  500"},
    {{.op = OP_RELEASE, APP}, &guard_off, "EVALSHA b 1 app:k 1 u:1 9"},
    {{.op = OP_PEEK, APP}, &guard_off, "EVALSHA c 1 app:k  app:"},
    {{.op = OP_BREAK, APP}, &guard_off, "EVALSHA d 1 app:k u:1 app:"},
};

DIALECT_TEST(the_prefix_is_a_part_of_the_name_that_redisson_knows)
{
    static const struct node_key key = {"app:k", 5};
    char channel[64];

    assert_sent(f, &dialect_redisson, of_a_prefix, LENGTH(of_a_prefix));
    assert_int_equal(dialect_redisson.channel(&key, 4, channel, sizeof(channel)), 30);
    assert_memory_equal(channel, "redisson_lock__channel:{app:k}", 30);
}

static void assert_script(const struct dialect_fixture *f, const struct dialect_script *script)
{
    size_t length;
    const char *text = dialect_word(f, 1, &length);

    assert_int_equal(length, script->length);
    assert_memory_equal(text, script->text, length);
}

/* At its first use each travels whole: this dialect's own. */
DIALECT_TEST(scripts_travel_whole)
{
    static const struct {
        enum op op;
        enum script script;
    } rows[] = {{OP_EXTEND, SCRIPT_EXTEND}, {OP_RELEASE, SCRIPT_RELEASE}, {OP_PEEK, SCRIPT_PEEK},
                {OP_BREAK, SCRIPT_BREAK},   {OP_ACQUIRE, SCRIPT_ACQUIRE}, {OP_RAISE, SCRIPT_RAISE},
                {OP_REPAIR, SCRIPT_ACQUIRE}};

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct node_request request = {.op = rows[i].op, KEY};
        const struct dialect_script *script = &dialect_redisson.scripts[rows[i].script];

        dialect_build_one(f, &dialect_redisson, &request, NULL, 0, true);
        assert_script(f, script);
        assert_string_not_equal(script->text, dialect_plain.scripts[rows[i].script].text);
    }
}

/* Acquires, too: the dialect has no command for them. */
DIALECT_TEST(a_batch_becomes_a_script_of_its_own)
{
    const struct {
        struct node_request request;
        char letter;
    } rows[] = {{{.op = OP_ACQUIRE, KEY}, 'a'},
                {{.op = OP_ACQUIRE, KEY, .fenced = true, .fence = 5}, 'a'},
                {{.op = OP_ACQUIRE, .keys = two, .n_keys = 2}, '\0'},
                {{.op = OP_EXTEND, KEY}, 'e'},
                {{.op = OP_RELEASE, KEY}, 'r'},
                {{.op = OP_RELEASE, KEY, .silent = true}, 's'},
                {{.op = OP_RELEASE, KEY, .if_deleted = true}, 'd'},
                {{.op = OP_RELEASE, KEY, .silent = true, .keep = true}, '\0'},
                {{.op = OP_REPAIR, KEY}, '\0'}};
    struct dialect_batch batch = {.n = 2, .letters = "ar", .lease_ms = 9};
    const char *rest = "$1\r\n2\r\n$2\r\nar\r\n$1\r\n9\r\n$0\r\n\r\n";
    uint32_t whole_sent = 0;

    for (size_t i = 0; i < LENGTH(rows); i++)
        assert_int_equal(dialect_redisson.letter(&rows[i].request, &guard_off), rows[i].letter);
    bytes_init(&batch.keys, &memory, 100);
    bytes_text(&batch.keys, "k");
    bytes_text(&batch.keys, "l");
    dialect_redisson.build_batch(&f->out, &batch, &whole_sent, &guard_off);
    bytes_clear(&batch.keys);
    assert_int_equal(whole_sent, 1u << SCRIPT_COMBINED);
    assert_script(f, &dialect_redisson.scripts[SCRIPT_COMBINED]);
    assert_non_null(memmem(f->out.data, f->out.used, rest, strlen(rest)));
}

/* The guard that bootstrap looks at is a string in either dialect. */
DIALECT_TEST(the_guard_is_peeked_by_the_plain_script)
{
    struct node_request request = {.op = OP_PEEK, NODE_KEY(GUARD_KEY, sizeof(GUARD_KEY) - 1)};

    dialect_build_one(f, &dialect_redisson, &request, NULL, ALL_SENT, true);
    assert_script(f, &dialect_plain.scripts[SCRIPT_PEEK]);
}

/* ---- replies ---- */

#define PEEK "*6\r\n$3\r\nu:1\r\n:9\r\n:17\r\n$0\r\n\r\n:-1\r\n"
static const struct dialect_judged judged[] = {
    {OP_ACQUIRE, "*3\r\n:1\r\n:17\r\n:5\r\n", OUTCOME_YES, FINE, .ttl_ms = NO_TTL, .fence = 17, .node_time_us = 5},
    {OP_ACQUIRE, "*2\r\n$3\r\nu:2\r\n:9\r\n", OUTCOME_OTHER, FINE, .ttl_ms = 9, .holder = "u:2"},
    {OP_ACQUIRE, "*2\r\n$3\r\nu:2\r\n:-1\r\n", OUTCOME_OTHER, FINE, .ttl_ms = -1, .holder = "u:2"},
    /* A SET's answers are none to a script: neither a grant nor a refusal. */
    {OP_ACQUIRE, "+OK\r\n", OUTCOME_ERROR, PROTO, -2, .error = "acquire (script): a reply that does not fit"},
    {OP_ACQUIRE, "$-1\r\n", DOES_NOT_FIT},
    {OP_REPAIR, "+OK\r\n", OUTCOME_ERROR, PROTO, -2, .error = "repair (script)"},
    {OP_REPAIR, "*-1\r\n", DOES_NOT_FIT},
    {OP_EXTEND, "*2\r\n:1\r\n:5\r\n", OUTCOME_YES, FINE, .ttl_ms = NO_TTL, .node_time_us = 5},
    {OP_EXTEND, ":0\r\n", OUTCOME_MISSING, FINE, .ttl_ms = NO_TTL},
    {OP_RELEASE, ":1\r\n", OUTCOME_YES, FINE, .ttl_ms = NO_TTL},
    {OP_RELEASE, "*2\r\n$3\r\nu:2\r\n:9\r\n", OUTCOME_OTHER, FINE, .ttl_ms = 9, .holder = "u:2"},
    {OP_RELEASE, "*2\r\n:1\r\n$5\r\nGUARD\r\n", OUTCOME_YES, FAULT_GUARD, .ttl_ms = NO_TTL},
    {OP_PEEK, PEEK ":3\r\n", OUTCOME_YES, FINE, .ttl_ms = 9, .holder = "u:1", .fence = 17, .count = 3},
    {OP_PEEK, PEEK ":99999999999\r\n", OUTCOME_YES, FINE, .ttl_ms = 9, .holder = "u:1", .fence = 17,
     .count = UINT32_MAX},
    {OP_PEEK, "*7\r\n$3\r\nu:1\r\n:9\r\n:17\r\n$0\r\n\r\n:-1\r\n:5\r\n:3\r\n", OUTCOME_YES, FINE, .ttl_ms = 9,
     .holder = "u:1", .fence = 17, .count = 3, .waiters = 5},
    {OP_PEEK, PEEK ":-3\r\n", DOES_NOT_FIT},
    {OP_PEEK, PEEK "$1\r\n3\r\n", DOES_NOT_FIT},
    {OP_PEEK, "*6\r\n$-1\r\n:-2\r\n:17\r\n$4\r\nnone\r\n:0\r\n:0\r\n", OUTCOME_MISSING, FINE, .ttl_ms = NO_TTL,
     .fence = 17, .has_guard = true},
    {OP_PEEK, "*5\r\n$1\r\n1\r\n:-1\r\n:0\r\n$4\r\nnone\r\n:0\r\n", OUTCOME_YES, FINE, .ttl_ms = -1, .holder = "1",
     .has_guard = true},
    {OP_BREAK, "*3\r\n$3\r\nu:1\r\n:9\r\n$4\r\nhash\r\n", OUTCOME_YES, FINE, .ttl_ms = 9, .holder = "u:1"},
    {OP_BREAK, "*3\r\n$-1\r\n:-1\r\n$6\r\nstring\r\n", OUTCOME_YES, FINE, .ttl_ms = -1, .error = "string"},
    {OP_RAISE, "*3\r\n:1\r\n:7\r\n:5\r\n", OUTCOME_YES, FINE, .ttl_ms = NO_TTL, .fence = 7, .node_time_us = 5},
    {OP_BOOTSTRAP, "$9\r\nwritten:x\r\n", OUTCOME_YES, FINE, .ttl_ms = NO_TTL, .holder = "x"},
    {OP_ACQUIRE, "-WRONGTYPE Operation against\r\n", OUTCOME_ERROR, FAULT_FOREIGN, .ttl_ms = NO_TTL,
     .error = "not a hash"},
    {OP_PEEK, "-WRONGTYPE string\r\n", OUTCOME_ERROR, FAULT_FOREIGN, .ttl_ms = NO_TTL, .error = "give --dialect plain"},
    {OP_PEEK, "-WRONGTYPE zset\r\n", OUTCOME_ERROR, FAULT_FOREIGN, .ttl_ms = NO_TTL, .error = "a zset, not a hash"},
    {OP_PEEK, "-WRONGTYPE Operation against\r\n", OUTCOME_ERROR, FAULT_FOREIGN, .ttl_ms = NO_TTL,
     .error = "not a hash"},
    {OP_ACQUIRE, "-NOPERM no\r\n", OUTCOME_ERROR, FAULT_AUTH, .ttl_ms = NO_TTL, .error = "acquire (script): NOPERM"},
    {OP_ACQUIRE, "-NOSCRIPT no\r\n", OUTCOME_ERROR, FAULT_TEMPORARY, .ttl_ms = NO_TTL, .error = "NOSCRIPT"},
};

DIALECT_TEST(replies_become_results)
{
    assert_judged(f, &dialect_redisson, judged, LENGTH(judged));
}

/* ---- owners ---- */

TEST(a_new_uuid_is_random_and_well_formed)
{
    char uuid[OWNER_UUID_SIZE], other[OWNER_UUID_SIZE], owner[OWNER_REDISSON_SIZE];
    unsigned char seen_version = 0, seen_variants = 0;
    struct system system = system_libevent(NULL, NULL);

    for (int i = 0; i < 1000; i++) {
        assert_int_equal(owner_uuid(uuid, &system), 0);
        assert_int_equal(strlen(uuid), OWNER_UUID_LENGTH);
        assert_int_equal(uuid[14], '4');
        assert_non_null(memchr("89ab", uuid[19], 4));
        seen_variants |= (unsigned char)(1u << (uuid[19] == '8' ? 0 : uuid[19] == '9' ? 1 : uuid[19] - 'a' + 2));
        seen_version |= (unsigned char)(uuid[0] != '4');
        snprintf(owner, sizeof(owner), "%s:1", uuid);
        assert_true(owner_is_redisson(owner));
        assert_int_equal(owner_uuid(other, &system), 0);
        assert_string_not_equal(uuid, other);
    }
    assert_int_equal(seen_variants, 15);
    assert_int_equal(seen_version, 1);
}

#define UUID "1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b"

TEST(an_owner_has_the_uuid_and_a_positive_number)
{
    static const struct {
        unsigned char bytes[CORE_TOKEN_SIZE];
        const char *owner;
    } rows[] = {
        {{0, 0, 0, 0, 0, 0, 1, 2, 9}, UUID ":258"},
        {{0x80, 0, 0, 0, 0, 0, 0, 7}, UUID ":7"}, /* never negative */
        {{0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, UUID ":9223372036854775807"},
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, UUID ":9223372036854775807"},
        {{0}, UUID ":1"}, /* positive */
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        char owner[OWNER_REDISSON_SIZE];
        struct core_token token;

        memcpy(token.bytes, rows[i].bytes, sizeof(token.bytes));
        assert_int_equal(owner_redisson(owner, UUID, &token), strlen(rows[i].owner));
        assert_string_equal(owner, rows[i].owner);
        assert_true(owner_is_redisson(owner));
    }
}

TEST(owners_are_shown_short)
{
    static const struct {
        const char *owner, *shown;
        bool redisson;
    } rows[] = {
        {UUID ":41", "1b4e28ba:41", true},
        {UUID ":9223372036854775807", "1b4e28ba:9223372036854775807", true},
        {UUID ":", UUID ":", false},
        {UUID, "1b4e28ba", false},
        {UUID ":4x", UUID ":4x", false},
        /* A label that is a uuid, before a token of ours. */
        {UUID ":12345678901234567890", UUID ":12345678", false},
        {"1B4E28BA-2fa1-4d3b-a3f5-ef19b5a7633b:1", "1B4E28BA-2fa1-4d3b-a3f5-ef19b5a7633b:1", false},
        {"1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633:1", "1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633:1", false},
        {"host:7:0123456789abcdef", "host:7:01234567", false},
        {"", "\"\"", false},
        {"RReadWriteLock:leftover", "RReadWriteLock:leftover", false},
        /* An escape is one character; a token with one has no label. */
        {"\\x00\\xfa:\\x01:abcdef", "\\x00\\xfa:\\x01:abc", false},
        {"\xe2\x82\xac\xe2\x80\x8b a:b345678", "\\xe2\\x82\\xac\\xe2\\x80\\x8b\\x20a:b34", false},
        {"1b4e28ba-", "1b4e28ba", false},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        char shown[96];

        assert_int_equal(owner_is_redisson(rows[i].owner), rows[i].redisson);
        assert_string_equal(message_owner(shown, sizeof(shown), rows[i].owner), rows[i].shown);
    }
}

/* What a server sent, as a text that is as different as the bytes were. */
TEST(bytes_of_an_owner_become_text)
{
    static const struct {
        const char *bytes;
        size_t length;
        const char *text;
    } rows[] = {
        {"", 0, ""},
        {"host:7:01ab", 11, "host:7:01ab"},
        {"a\0b", 3, "a\\x00b"},
        {"\0", 1, "\\x00"},
        {"\x1b[1m\x7f", 5, "\\x1b[1m\\x7f"},
        {"\xc2\x9b", 2, "\\xc2\\x9b"},                   /* a control of 8 bits */
        {"\xc2\xa1", 2, "\xc2\xa1"},                     /* the first character behind them */
        {"\xc1\xbf\xc3", 3, "\\xc1\\xbf\\xc3"},          /* too long a form; cut off */
        {"\xe0\x9f\xbf", 3, "\\xe0\\x9f\\xbf"},          /* too long a form */
        {"\xed\xa0\x80", 3, "\\xed\\xa0\\x80"},          /* half of a pair */
        {"\xf0\x9f\x94\x92", 4, "\xf0\x9f\x94\x92"},     /* a lock */
        {"\xf4\x90\x80\x80", 4, "\\xf4\\x90\\x80\\x80"}, /* beyond the last one */
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        char *copy = owner_copy(&memory, rows[i].bytes, rows[i].length);

        assert_non_null(copy);
        assert_string_equal(copy, rows[i].text);
        alloc_free(&memory, copy);
    }
}

TEST(owners_are_the_same_by_their_number)
{
    static const char first[] = "11111111-2222-4333-8444-555555555555:17";
    static const char second[] = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee:17";
    static const char third[] = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee:18";

    assert_int_equal(quorlock_owner_equals("host:1:abc", "host:1:abc"), 1);
    assert_int_equal(quorlock_owner_equals("host:1:abc", "host:1:abd"), 0);
    assert_int_equal(quorlock_owner_equals(first, second), 1);
    assert_int_equal(quorlock_owner_equals(second, third), 0);
    assert_int_equal(quorlock_owner_equals(first, "host:17"), 0);
}
