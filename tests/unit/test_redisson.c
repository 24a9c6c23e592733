/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_redisson.c - the redisson dialect: commands as words, replies judged, owners
 */
#include <quorlock/quorlock.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lock/message.h"
#include "runtime/owner.h"
#include "redis/dialect/dialect.h"
#include "redis/wire/reply.h"

static struct alloc memory;

/* ---- commands ---- */

static const struct guard off = {.mode = QUORLOCK_GUARD_OFF, .max_lease_ms = 700};
static const struct guard lax = {.mode = QUORLOCK_GUARD_CONNECTION, .seen = "G", .max_lease_ms = 500};
static const struct guard strict = {.mode = QUORLOCK_GUARD_STRICT, .seen = "G", .max_lease_ms = 500};

struct words {
    struct node_request request;
    const struct guard *guard;
    const char *wanted; /* the words that are sent, joined by spaces; hashes by their first letter */
};

static const struct node_key two[] = {{"k", 1}, {"l", 1}};
#define KEY NODE_KEY("k", 1), .owner = "u:1", .owner_length = 3, .lease_ms = 9
static const struct words words[] = {
    /* Never a SET, whatever the guard. */
    {{.op = NODE_ACQUIRE, KEY}, NULL, "EVALSHA e 1 k 1 u:1 9    604800000 30000"},
    {{.op = NODE_ACQUIRE, KEY}, &off, "EVALSHA e 1 k 1 u:1 9    604800000 700"},
    {{.op = NODE_ACQUIRE, KEY}, &lax, "EVALSHA e 2 k quorlock:guard 1 u:1 9 G   604800000 500"},
    {{.op = NODE_ACQUIRE, KEY}, &strict, "EVALSHA e 2 k quorlock:guard 1 u:1 9 G strict  604800000 500"},
    {{.op = NODE_ACQUIRE, KEY, .fenced = true, .fence = 77, .fence_ttl_ms = 88},
     &lax,
     "EVALSHA e 3 k quorlock:guard quorlock:fence:k 1 u:1 9 G  77 88 500"},
    {{.op = NODE_REPAIR, KEY}, &off, "EVALSHA e 1 k 1 u:1 9  repair  604800000 700"},
    {{.op = NODE_REPAIR, KEY, .fenced = true, .fence = 5},
     &lax,
     "EVALSHA e 3 k quorlock:guard quorlock:fence:k 1 u:1 9 G repair 5 604800000 500"},
    {{.op = NODE_EXTEND, KEY}, &off, "EVALSHA a 1 k 1 u:1 9"},
    {{.op = NODE_EXTEND, KEY}, &lax, "EVALSHA a 2 k quorlock:guard 1 u:1 9 G  604800000"},
    {{.op = NODE_RELEASE, KEY}, &off, "EVALSHA b 1 k 1 u:1"},
    {{.op = NODE_RELEASE, KEY, .fence = 5, .fence_ttl_ms = 6},
     &off,
     "EVALSHA b 2 k quorlock:fence:k 1 u:1  5 6"},
    {{.op = NODE_RAISE, KEY, .fence = 5}, &off, "EVALSHA f 2 k quorlock:fence:k 1 u:1  5 604800000"},
    {{.op = NODE_ACQUIRE, .keys = two, .n_keys = 2, .owner = "u:1", .owner_length = 3, .lease_ms = 9},
     &lax,
     "EVALSHA e 3 k l quorlock:guard 2 u:1 9 G   604800000 500"},
    {{.op = NODE_RELEASE, KEY, .silent = true}, &off, "EVALSHA b 1 k 1 u:1   604800000 silent"},
    {{.op = NODE_PEEK, KEY}, &strict, "EVALSHA c 1 k"},
    {{.op = NODE_BREAK, KEY}, &strict, "EVALSHA d 1 k"},
};

/* Word number `index` of one command as it travels. */
static const char *word_at(const struct bytes *out, size_t index, size_t *ret_length)
{
    const char *at = memchr(out->data, '\n', out->used);
    assert_non_null(at);
    for (at++;; index--) {
        size_t length = strtoul(at + 1, NULL, 10);
        at = strchr(at, '\n') + 1;
        *ret_length = length;
        if (index == 0) return at;
        at += length + 2;
    }
}

static void read_words(const struct bytes *out, char *ret, size_t size)
{
    size_t used = 0, n = strtoul(out->data + 1, NULL, 10);
    for (size_t i = 0; i < n; i++) {
        size_t length;
        const char *word = word_at(out, i, &length);
        int shown = length == DIALECT_SHA_LENGTH ? 1 : (int)length;
        assert_true(word + length + 2 <= out->data + out->used);
        used += (size_t)snprintf(ret + used, size - used, "%s%.*s", i ? " " : "", shown, word);
        assert_true(used < size);
    }
}

static void fill_shas(struct dialect_shas *shas)
{
    for (size_t i = 0; i < DIALECT_SCRIPTS_MAX; i++) {
        memset(shas->sha[i], 'a' + (int)i, DIALECT_SHA_LENGTH);
        shas->sha[i][DIALECT_SHA_LENGTH] = '\0';
    }
}

static void test_words(void **state)
{
    struct dialect_shas shas;
    (void)state;
    fill_shas(&shas);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        char said[512];
        struct bytes out;
        bytes_init(&out, &memory, 65536);
        assert_true(dialect_redisson.build(&out, &words[i].request, &shas, words[i].guard));
        assert_int_equal(out.fault, BYTES_FINE);
        bytes_append(&out, "", 1);
        read_words(&out, said, sizeof said);
        assert_string_equal(said, words[i].wanted);
        bytes_clear(&out);
    }
}

/* Where the server forgot the scripts each travels whole: this dialect's own. */
static void test_use_evals(void **state)
{
    static const struct {
        enum node_op op;
        size_t script;
    } rows[] = {{NODE_EXTEND, 0},  {NODE_RELEASE, 1}, {NODE_PEEK, 2},  {NODE_BREAK, 3},
                {NODE_ACQUIRE, 4}, {NODE_RAISE, 5},   {NODE_REPAIR, 4}};
    struct dialect_shas shas;
    (void)state;
    fill_shas(&shas);
    assert_int_equal(dialect_redisson.n_scripts, dialect_plain.n_scripts);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct node_request request = {.op = rows[i].op, KEY, .use_eval = true};
        const struct dialect_script *script = &dialect_redisson.scripts[rows[i].script];
        struct bytes out;
        size_t length;
        bytes_init(&out, &memory, 65536);
        assert_false(dialect_redisson.build(&out, &request, &shas, NULL));
        bytes_append(&out, "", 1);
        const char *text = word_at(&out, 1, &length);
        assert_int_equal(length, script->length);
        assert_memory_equal(text, script->text, length);
        assert_string_equal(script->name, dialect_plain.scripts[rows[i].script].name);
        assert_string_not_equal(script->text, dialect_plain.scripts[rows[i].script].text);
        bytes_clear(&out);
    }
}

/* The guard that bootstrap looks at is a string in either dialect. */
static void test_guard_is_peeked_plainly(void **state)
{
    struct node_request request = {.op = NODE_PEEK, NODE_KEY(GUARD_KEY, sizeof GUARD_KEY - 1)};
    struct dialect_shas shas;
    struct bytes out;
    size_t length;
    (void)state;
    fill_shas(&shas);
    bytes_init(&out, &memory, 65536);
    assert_false(dialect_redisson.build(&out, &request, &shas, NULL));
    bytes_append(&out, "", 1);
    const char *text = word_at(&out, 1, &length);
    assert_int_equal(length, dialect_plain.scripts[2].length);
    assert_memory_equal(text, dialect_plain.scripts[2].text, length);
    bytes_clear(&out);
}

/* ---- replies ---- */

struct judgement {
    enum node_op op;
    const char *wire;
    enum node_outcome outcome;
    enum node_fault fault;
    const char *holder;
    int64_t ttl_ms;
    uint64_t fence, count;
    const char *error; /* a part of it, or where there is none the type; NULL: neither */
};

#define FINE  NODE_FAULT_NONE
#define PROTO NODE_FAULT_PROTO
#define PEEK  "*6\r\n$3\r\nu:1\r\n:9\r\n:17\r\n:0\r\n:-1\r\n"
static const struct judgement judgements[] = {
    {NODE_ACQUIRE, "*3\r\n:1\r\n:17\r\n:5\r\n", NODE_YES, FINE, NULL, -2, 17, 0, NULL},
    {NODE_ACQUIRE, "*2\r\n$3\r\nu:2\r\n:9\r\n", NODE_OTHER, FINE, "u:2", 9, 0, 0, NULL},
    {NODE_ACQUIRE, "*2\r\n$3\r\nu:2\r\n:-1\r\n", NODE_OTHER, FINE, "u:2", -1, 0, 0, NULL},
    /* A SET's answers are none to a script: neither a grant nor a refusal. */
    {NODE_ACQUIRE, "+OK\r\n", NODE_ERROR, PROTO, NULL, -2, 0, 0, "acquire (script): a reply that does not fit"},
    {NODE_ACQUIRE, "$-1\r\n", NODE_ERROR, PROTO, NULL, -2, 0, 0, "does not fit"},
    {NODE_REPAIR, "+OK\r\n", NODE_ERROR, PROTO, NULL, -2, 0, 0, "repair (script)"},
    {NODE_REPAIR, "*-1\r\n", NODE_ERROR, PROTO, NULL, -2, 0, 0, "does not fit"},
    {NODE_EXTEND, "*2\r\n:1\r\n:5\r\n", NODE_YES, FINE, NULL, -2, 0, 0, NULL},
    {NODE_EXTEND, ":0\r\n", NODE_MISSING, FINE, NULL, -2, 0, 0, NULL},
    {NODE_RELEASE, ":1\r\n", NODE_YES, FINE, NULL, -2, 0, 0, NULL},
    {NODE_RELEASE, "*2\r\n$3\r\nu:2\r\n:9\r\n", NODE_OTHER, FINE, "u:2", 9, 0, 0, NULL},
    {NODE_RELEASE, "*2\r\n:1\r\n$5\r\nGUARD\r\n", NODE_YES, NODE_FAULT_GUARD, NULL, -2, 0, 0, NULL},
    {NODE_PEEK, PEEK ":3\r\n", NODE_YES, FINE, "u:1", 9, 17, 3, NULL},
    {NODE_PEEK, PEEK ":99999999999\r\n", NODE_YES, FINE, "u:1", 9, 17, UINT32_MAX, NULL},
    {NODE_PEEK, PEEK ":-3\r\n", NODE_ERROR, PROTO, NULL, -2, 0, 0, "does not fit"},
    {NODE_PEEK, PEEK "$1\r\n3\r\n", NODE_ERROR, PROTO, NULL, -2, 0, 0, "does not fit"},
    {NODE_PEEK, "*6\r\n$-1\r\n:-2\r\n:17\r\n:1\r\n:0\r\n:0\r\n", NODE_MISSING, FINE, NULL, -2, 17, 0, NULL},
    {NODE_PEEK, "*5\r\n$1\r\n1\r\n:-1\r\n:0\r\n:1\r\n:0\r\n", NODE_YES, FINE, "1", -1, 0, 0, NULL},
    {NODE_BREAK, "*3\r\n$3\r\nu:1\r\n:9\r\n$4\r\nhash\r\n", NODE_YES, FINE, "u:1", 9, 0, 0, NULL},
    {NODE_BREAK, "*3\r\n$-1\r\n:-1\r\n$6\r\nstring\r\n", NODE_YES, FINE, NULL, -1, 0, 0, "string"},
    {NODE_RAISE, "*3\r\n:1\r\n:7\r\n:5\r\n", NODE_YES, FINE, NULL, -2, 7, 0, NULL},
    {NODE_BOOTSTRAP, "$9\r\nwritten:x\r\n", NODE_YES, FINE, "x", -2, 0, 0, NULL},
    {NODE_ACQUIRE, "-WRONGTYPE Operation against\r\n", NODE_ERROR, NODE_FAULT_FOREIGN, NULL, -2, 0, 0,
     "no hash"},
    {NODE_PEEK, "-WRONGTYPE string\r\n", NODE_ERROR, NODE_FAULT_FOREIGN, NULL, -2, 0, 0,
     "give --dialect plain"},
    {NODE_PEEK, "-WRONGTYPE zset\r\n", NODE_ERROR, NODE_FAULT_FOREIGN, NULL, -2, 0, 0, "a zset and no hash"},
    {NODE_PEEK, "-WRONGTYPE Operation against\r\n", NODE_ERROR, NODE_FAULT_FOREIGN, NULL, -2, 0, 0, "no hash"},
    {NODE_ACQUIRE, "-NOPERM no\r\n", NODE_ERROR, NODE_FAULT_AUTH, NULL, -2, 0, 0, "acquire (script): NOPERM"},
    {NODE_ACQUIRE, "-NOSCRIPT no\r\n", NODE_NOSCRIPT, FINE, NULL, -2, 0, 0, "NOSCRIPT"},
};

static void assert_judged(const struct judgement *wanted, const struct node_reply *got)
{
    if (got->outcome != wanted->outcome || got->fault != wanted->fault || got->ttl_ms != wanted->ttl_ms ||
        got->fence != wanted->fence || got->count != wanted->count)
        fail_msg("%d %s: outcome %d fault %d ttl %lld fence %llu count %u", (int)wanted->op, wanted->wire,
                 got->outcome, got->fault, (long long)got->ttl_ms, (unsigned long long)got->fence,
                 (unsigned)got->count);
    if (!wanted->holder != !got->holder || (got->holder && strcmp(got->holder, wanted->holder) != 0))
        fail_msg("%s: holder %s", wanted->wire, got->holder ? got->holder : "(null)");
    const char *error = got->error ? got->error : got->type;
    if (!wanted->error != !error || (error && !strstr(error, wanted->error)))
        fail_msg("%s: error %s", wanted->wire, error ? error : "(null)");
}

static void test_judgements(void **state)
{
    struct reply_parser parser;
    (void)state;
    reply_init(&parser, &memory);
    assert_true(reply_open(&parser));
    for (size_t i = 0; i < sizeof judgements / sizeof judgements[0]; i++) {
        const struct reply *raw = NULL;
        const char *why = NULL;
        struct node_reply got;
        char text[320];
        reply_feed(&parser, judgements[i].wire, strlen(judgements[i].wire));
        assert_int_equal(reply_next(&parser, &raw, &why), REPLY_READY);
        memset(&got, 0x5a, sizeof got);
        dialect_redisson.judge(judgements[i].op, true, raw, &got, text, sizeof text);
        assert_judged(&judgements[i], &got);
    }
    reply_clear(&parser);
}

/* ---- owners ---- */

static void test_uuid(void **state)
{
    char uuid[OWNER_UUID_SIZE], other[OWNER_UUID_SIZE], owner[OWNER_REDISSON_SIZE];
    unsigned char seen_version = 0, seen_variants = 0;
    (void)state;
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(owner_uuid(uuid), 0);
        assert_int_equal(strlen(uuid), OWNER_UUID_LENGTH);
        assert_int_equal(uuid[14], '4');
        assert_non_null(memchr("89ab", uuid[19], 4));
        seen_variants |= (unsigned char)(1u << (uuid[19] == '8'   ? 0
                                                : uuid[19] == '9' ? 1
                                                                  : uuid[19] - 'a' + 2));
        seen_version |= (unsigned char)(uuid[0] != '4');
        snprintf(owner, sizeof owner, "%s:1", uuid);
        assert_true(owner_is_redisson(owner));
        assert_int_equal(owner_uuid(other), 0);
        assert_string_not_equal(uuid, other);
    }
    assert_int_equal(seen_variants, 15);
    assert_int_equal(seen_version, 1);
}

#define UUID "1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b"

static void test_number(void **state)
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
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char owner[OWNER_REDISSON_SIZE];
        struct core_token token;
        memcpy(token.bytes, rows[i].bytes, sizeof token.bytes);
        assert_int_equal(owner_redisson(owner, UUID, &token), strlen(rows[i].owner));
        assert_string_equal(owner, rows[i].owner);
        assert_true(owner_is_redisson(owner));
    }
}

static void test_shown(void **state)
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
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char shown[96];
        assert_int_equal(owner_is_redisson(rows[i].owner), rows[i].redisson);
        assert_string_equal(message_owner(shown, sizeof shown, rows[i].owner), rows[i].shown);
    }
}

/* What a server sent, as a text that is as different as the bytes were. */
static void test_copied(void **state)
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
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *copy = owner_copy(&memory, rows[i].bytes, rows[i].length);
        assert_non_null(copy);
        assert_string_equal(copy, rows[i].text);
        alloc_free(&memory, copy);
    }
}

static void test_option(void **state)
{
    const char *node = "127.0.0.1:6379";
    struct quorlock_client_options ret, options = {.size = sizeof options, .nodes = &node, .n_nodes = 1};
    struct options_error error = {""};
    (void)state;
    options.dialect = QUORLOCK_DIALECT_REDISSON;
    assert_int_equal(options_client(&ret, &options, &error), 0);
    assert_int_equal(ret.dialect, QUORLOCK_DIALECT_REDISSON);
    options.dialect = 2;
    assert_int_equal(options_client(&ret, &options, &error), QUORLOCK_INVAL);
    assert_non_null(strstr(error.text, "dialect is 2"));
}

static void test_same_owner(void **state)
{
    static const char first[] = "11111111-2222-4333-8444-555555555555:17";
    static const char second[] = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee:17";
    static const char third[] = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee:18";

    (void)state;
    assert_int_equal(quorlock_same_owner("host:1:abc", "host:1:abc"), 1);
    assert_int_equal(quorlock_same_owner("host:1:abc", "host:1:abd"), 0);
    assert_int_equal(quorlock_same_owner(first, second), 1);
    assert_int_equal(quorlock_same_owner(second, third), 0);
    assert_int_equal(quorlock_same_owner(first, "host:17"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_use_evals),
        cmocka_unit_test(test_guard_is_peeked_plainly),
        cmocka_unit_test(test_judgements),
        cmocka_unit_test(test_uuid),
        cmocka_unit_test(test_number),
        cmocka_unit_test(test_shown),
        cmocka_unit_test(test_copied),
        cmocka_unit_test(test_option),
        cmocka_unit_test(test_same_owner),
    };
    alloc_init(&memory, NULL);
    return cmocka_run_group_tests_name("redisson", tests, NULL, NULL);
}
