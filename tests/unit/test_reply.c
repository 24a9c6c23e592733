/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_reply.c - replies as bytes to typed results, whole and in pieces; commands as bytes
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "redis/dialect/dialect.h"
#include "redis/wire/errors.h"
#include "redis/wire/reply.h"

static struct alloc memory;

struct row {
    enum node_op op;
    const char *wire;
    enum node_outcome outcome;
    enum node_fault fault;
    const char *holder;
    long ttl_ms;
    const char *error; /* a part of it, or where there is none the type; NULL: neither */
};

#define NONE        NODE_FAULT_NONE
#define PROTO       NODE_FAULT_PROTO
#define HANDED_ON   "-@user_script: 1: "
#define OLD_SCRIPT  "-ERR Error running script (call to f_ab): @user_script:3: "
#define ACL_FAILURE "-ERR ACL failure in script: "
#define RAISED      " script: 40b8b0673148f7f8c80bf2149f20c13c8535cc50, on @user_script:1.\r\n"

static const struct row rows[] = {
    {NODE_ACQUIRE, "+OK\r\n", NODE_YES, NONE, NULL, -2, NULL},
    {NODE_ACQUIRE, "$-1\r\n", NODE_OTHER, NONE, NULL, -2, NULL},
    {NODE_ACQUIRE, "*-1\r\n", NODE_OTHER, NONE, NULL, -2, NULL},
    {NODE_ACQUIRE, ":1\r\n", NODE_ERROR, PROTO, NULL, -2, "does not fit"},
    {NODE_ACQUIRE, "+QUEUED\r\n", NODE_ERROR, PROTO, NULL, -2, "does not fit"},
    {NODE_ACQUIRE, "$2\r\nOK\r\n", NODE_ERROR, PROTO, NULL, -2, "does not fit"},
    {NODE_ACQUIRE, "*0\r\n", NODE_ERROR, PROTO, NULL, -2, "does not fit"},
    {NODE_EXTEND, ":1\r\n", NODE_YES, NONE, NULL, -2, NULL},
    {NODE_EXTEND, ":0\r\n", NODE_MISSING, NONE, NULL, -2, NULL},
    {NODE_EXTEND, ":2\r\n", NODE_ERROR, PROTO, NULL, -2, "does not fit"},
    {NODE_EXTEND, "+OK\r\n", NODE_ERROR, PROTO, NULL, -2, "does not fit"},
    {NODE_EXTEND, "$-1\r\n", NODE_ERROR, PROTO, NULL, -2, "does not fit"},
    {NODE_EXTEND, "*2\r\n$3\r\nbob\r\n:77\r\n", NODE_OTHER, NONE, "bob", 77, NULL},
    {NODE_EXTEND, "*2\r\n$3\r\nbob\r\n:-1\r\n", NODE_OTHER, NONE, "bob", -1, NULL},
    {NODE_EXTEND, "*1\r\n$3\r\nbob\r\n", NODE_ERROR, PROTO, NULL, -2, "does not fit"},
    {NODE_EXTEND, "*2\r\n$3\r\nbob\r\n$1\r\n7\r\n", NODE_ERROR, PROTO, NULL, -2, "does not fit"},
    {NODE_EXTEND, "*2\r\n$-1\r\n:7\r\n", NODE_ERROR, PROTO, NULL, -2, "does not fit"},
    {NODE_EXTEND, "*3\r\n$3\r\nbob\r\n:7\r\n$1\r\nx\r\n", NODE_ERROR, PROTO, NULL, -2, "does not fit"},
    {NODE_RELEASE, ":1\r\n", NODE_YES, NONE, NULL, -2, NULL},
    {NODE_RELEASE, ":0\r\n", NODE_MISSING, NONE, NULL, -2, NULL},
    {NODE_RELEASE, "*2\r\n$0\r\n\r\n:5\r\n", NODE_OTHER, NONE, "", 5, NULL},
    {NODE_PEEK, ":0\r\n", NODE_MISSING, NONE, NULL, -2, NULL},
    {NODE_PEEK, ":1\r\n", NODE_ERROR, PROTO, NULL, -2, "does not fit"},
    {NODE_PEEK, "*2\r\n$3\r\nbob\r\n:77\r\n", NODE_YES, NONE, "bob", 77, NULL},
    {NODE_BREAK, ":0\r\n", NODE_MISSING, NONE, NULL, -2, NULL},
    {NODE_BREAK, "*3\r\n$3\r\nbob\r\n:77\r\n$6\r\nstring\r\n", NODE_YES, NONE, "bob", 77, NULL},
    {NODE_PEEK, "-WRONGTYPE list\r\n", NODE_ERROR, NODE_FAULT_FOREIGN, NULL, -2,
     "a list and no string: it is no lock"},
    {NODE_PEEK, "-WRONGTYPE hash\r\n", NODE_ERROR, NODE_FAULT_FOREIGN, NULL, -2, "give --dialect redisson"},
    {NODE_PEEK, "-WRONGTYPE \r\n", NODE_ERROR, NODE_FAULT_FOREIGN, NULL, -2,
     "another type, or another dialect"},
    {NODE_PEEK, "-WRONGTYPE\r\n", NODE_ERROR, NODE_FAULT_FOREIGN, NULL, -2, "another type, or another dialect"},
    {NODE_EXTEND, "-WRONGTYPE Operation against\r\n", NODE_ERROR, NODE_FAULT_FOREIGN, NULL, -2,
     "another dialect"},
    {NODE_BREAK, "*3\r\n$-1\r\n:-1\r\n$4\r\nhash\r\n", NODE_YES, NONE, NULL, -1, "hash"},
    {NODE_BREAK, "*2\r\n$3\r\nbob\r\n:77\r\n", NODE_ERROR, PROTO, NULL, -2, "does not fit"},
    /* Errors, one of each kind */
    {NODE_ACQUIRE, "-LOADING Redis is loading\r\n", NODE_ERROR, NODE_FAULT_TEMPORARY, NULL, -2, "LOADING"},
    {NODE_ACQUIRE, "-MASTERDOWN Link\r\n", NODE_ERROR, NODE_FAULT_TEMPORARY, NULL, -2, "MASTERDOWN"},
    {NODE_ACQUIRE, "-TRYAGAIN\r\n", NODE_ERROR, NODE_FAULT_TEMPORARY, NULL, -2, "TRYAGAIN"},
    {NODE_ACQUIRE, "-BUSY Redis is busy\r\n", NODE_ERROR, NODE_FAULT_TEMPORARY, NULL, -2, "BUSY"},
    {NODE_ACQUIRE, "-BUSYKEY exists\r\n", NODE_UNKNOWN, NODE_FAULT_OTHER, NULL, -2, "BUSYKEY"},
    {NODE_ACQUIRE, "-READONLY You can't\r\n", NODE_ERROR, NODE_FAULT_REPLICA, NULL, -2, "independent masters"},
    {NODE_ACQUIRE, "-NOAUTH Authentication\r\n", NODE_ERROR, NODE_FAULT_AUTH, NULL, -2, "PASSWORD@host"},
    {NODE_ACQUIRE, "-NOPERM this user\r\n", NODE_ERROR, NODE_FAULT_AUTH, NULL, -2, "acquire (SET): NOPERM"},
    {NODE_ACQUIRE, "-OOM command\r\n", NODE_ERROR, NODE_FAULT_REFUSED, NULL, -2, "maxmemory"},
    {NODE_ACQUIRE, "-MISCONF x\r\n", NODE_ERROR, NODE_FAULT_REFUSED, NULL, -2, "disk"},
    {NODE_ACQUIRE, "-NOREPLICAS x\r\n", NODE_ERROR, NODE_FAULT_REFUSED, NULL, -2, "min-replicas"},
    {NODE_ACQUIRE, "-ERR max number of clients reached\r\n", NODE_ERROR, NODE_FAULT_REFUSED, NULL, -2,
     "maxclients"},
    {NODE_ACQUIRE, "-DENIED Redis\r\n", NODE_ERROR, NODE_FAULT_REFUSED, NULL, -2, "protected mode"},
    {NODE_ACQUIRE, "-MOVED 1 h:1\r\n", NODE_ERROR, NODE_FAULT_CLUSTER, NULL, -2, "cluster"},
    {NODE_ACQUIRE, "-CLUSTERDOWN x\r\n", NODE_ERROR, NODE_FAULT_CLUSTER, NULL, -2, "cluster"},
    {NODE_ACQUIRE, "-ERR whatever\r\n", NODE_UNKNOWN, NODE_FAULT_OTHER, NULL, -2, "ERR whatever"},
    {NODE_ACQUIRE, "-\r\n", NODE_UNKNOWN, NODE_FAULT_OTHER, NULL, -2, "acquire"},
    {NODE_PEEK, "-NOSCRIPT No matching script.\r\n", NODE_NOSCRIPT, NONE, NULL, -2, "NOSCRIPT"},
    {NODE_ACQUIRE, "-NOSCRIPT what?\r\n", NODE_ERROR, NODE_FAULT_TEMPORARY, NULL, -2, "NOSCRIPT"},
    {NODE_PEEK, "-WRONGTYPE Operation against\r\n", NODE_ERROR, NODE_FAULT_FOREIGN, NULL, -2, "another type"},
    {NODE_RELEASE, OLD_SCRIPT "-READONLY You can't\r\n", NODE_ERROR, NODE_FAULT_REPLICA, NULL, -2, "masters"},
    {NODE_RELEASE, OLD_SCRIPT "WRONGTYPE Operation\r\n", NODE_ERROR, NODE_FAULT_FOREIGN, NULL, -2, "type"},
    {NODE_RELEASE, HANDED_ON "-READONLY You can't\r\n", NODE_ERROR, NODE_FAULT_REPLICA, NULL, -2, "masters"},
    {NODE_RELEASE, HANDED_ON "-OOM command\r\n", NODE_ERROR, NODE_FAULT_REFUSED, NULL, -2, "maxmemory"},
    {NODE_RELEASE, HANDED_ON "The user executing the script can't\r\n", NODE_ERROR, NODE_FAULT_AUTH, NULL, -2,
     "SETUSER"},
    {NODE_RELEASE, HANDED_ON "what ever\r\n", NODE_UNKNOWN, NODE_FAULT_OTHER, NULL, -2, "what ever"},
    {NODE_RELEASE, "-ERR The user executing the script can't\r\n", NODE_ERROR, NODE_FAULT_AUTH, NULL, -2,
     "SETUSER"},
    /* A missing right as Redis 8 and Valkey 8.1 tell it: handed on by the script, and raised in it */
    {NODE_RELEASE, ACL_FAILURE "User bob has no permissions to run the 'pexpire' command\r\n", NODE_ERROR,
     NODE_FAULT_AUTH, NULL, -2, "SETUSER"},
    {NODE_RELEASE, ACL_FAILURE "User bob has no permissions to run the 'pttl' command" RAISED, NODE_ERROR,
     NODE_FAULT_AUTH, NULL, -2, "SETUSER"},
    {NODE_RELEASE, ACL_FAILURE "No permissions to access a key\r\n", NODE_ERROR, NODE_FAULT_AUTH, NULL, -2,
     "No permissions to access a key (give"},
    {NODE_RELEASE, OLD_SCRIPT "what ever\r\n", NODE_UNKNOWN, NODE_FAULT_OTHER, NULL, -2, "what ever"},
};

static void assert_row(const struct row *row, const struct reply *reply)
{
    struct node_reply got;
    char text[320];
    memset(&got, 0x5a, sizeof got);
    dialect_plain.judge(row->op, row->op != NODE_ACQUIRE, reply, &got, text, sizeof text);
    if (got.outcome != row->outcome || got.fault != row->fault || got.ttl_ms != row->ttl_ms)
        fail_msg("%s: outcome %d fault %d ttl %ld", row->wire, got.outcome, got.fault, (long)got.ttl_ms);
    if (!row->holder != !got.holder || (got.holder && strcmp(got.holder, row->holder) != 0))
        fail_msg("%s: holder %s", row->wire, got.holder ? got.holder : "(null)");
    if (got.holder && row->holder) assert_int_equal(got.holder_length, strlen(row->holder));
    const char *error = got.error ? got.error : got.type;
    if (!row->error != !error || (error && !strstr(error, row->error)))
        fail_msg("%s: error %s", row->wire, error ? error : "(null)");
}

static void parser_open(struct reply_parser *parser)
{
    reply_init(parser, &memory);
    assert_true(reply_open(parser));
}

static void test_whole(void **state)
{
    (void)state;
    struct reply_parser parser;
    const struct reply *reply = NULL;
    const char *why = NULL;
    parser_open(&parser);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        reply_feed(&parser, rows[i].wire, strlen(rows[i].wire));
        if (reply_next(&parser, &reply, &why) != REPLY_READY) fail_msg("%s: %s", rows[i].wire, why);
        assert_row(&rows[i], reply);
        assert_int_equal(reply_next(&parser, &reply, &why), REPLY_NONE);
    }
    reply_clear(&parser);
}

static void test_byte_by_byte(void **state)
{
    (void)state;
    struct reply_parser parser;
    const struct reply *reply = NULL;
    const char *why = NULL;
    parser_open(&parser);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t length = strlen(rows[i].wire);
        for (size_t j = 0; j < length; j++) {
            reply_feed(&parser, rows[i].wire + j, 1);
            enum reply_result result = reply_next(&parser, &reply, &why);
            assert_int_equal(result, j + 1 < length ? REPLY_NONE : REPLY_READY);
        }
        assert_row(&rows[i], reply);
    }
    reply_clear(&parser);
}

static uint32_t count_of(enum node_op op, const char *wire, enum node_outcome outcome)
{
    struct reply_parser parser;
    const struct reply *reply = NULL;
    const char *why = NULL;
    struct node_reply got;
    char text[320];
    parser_open(&parser);
    reply_feed(&parser, wire, strlen(wire));
    assert_int_equal(reply_next(&parser, &reply, &why), REPLY_READY);
    memset(&got, 0x5a, sizeof got);
    dialect_plain.judge(op, true, reply, &got, text, sizeof text);
    reply_clear(&parser);
    if (got.outcome != outcome) fail_msg("%s: outcome %d", wire, got.outcome);
    return got.count;
}

/* How many listen for a release, as a refusal and a release tell it. */
static void test_listeners(void **state)
{
    (void)state;
    assert_int_equal(count_of(NODE_ACQUIRE, "*3\r\n$1\r\nu\r\n:9\r\n:30\r\n", NODE_OTHER), 30);
    assert_int_equal(count_of(NODE_REPAIR, "*3\r\n$1\r\nu\r\n:9\r\n:0\r\n", NODE_OTHER), 0);
    assert_int_equal(count_of(NODE_ACQUIRE, "*3\r\n$1\r\nu\r\n:9\r\n:-1\r\n", NODE_ERROR), 0);
    assert_int_equal(count_of(NODE_ACQUIRE, "*3\r\n$1\r\nu\r\n:9\r\n$1\r\n3\r\n", NODE_ERROR), 0);
    assert_int_equal(count_of(NODE_ACQUIRE, "*2\r\n$1\r\nu\r\n:9\r\n", NODE_OTHER), 0);
    assert_int_equal(count_of(NODE_RELEASE, ":1\r\n", NODE_YES), 0);
    assert_int_equal(count_of(NODE_RELEASE, ":31\r\n", NODE_YES), 30);
    assert_int_equal(count_of(NODE_RELEASE, ":9999999999\r\n", NODE_YES), UINT32_MAX);
    assert_int_equal(count_of(NODE_RELEASE, ":0\r\n", NODE_MISSING), 0);
    assert_int_equal(count_of(NODE_RELEASE, ":-1\r\n", NODE_ERROR), 0);
    assert_int_equal(count_of(NODE_RELEASE, "*2\r\n:4\r\n$5\r\nGUARD\r\n", NODE_YES), 3);
}

/* All in one buffer, more than the reader keeps without moving what is left. */
static void test_pipelined(void **state)
{
    (void)state;
    struct reply_parser parser;
    const struct reply *reply = NULL;
    const char *why = NULL;
    static char wire[65536];
    size_t used = 0, n_rounds = 4;
    for (size_t round = 0; round < n_rounds; round++)
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            size_t length = strlen(rows[i].wire);
            assert_true(used + length < sizeof wire);
            memcpy(wire + used, rows[i].wire, length);
            used += length;
        }
    parser_open(&parser);
    reply_feed(&parser, wire, used);
    for (size_t round = 0; round < n_rounds; round++)
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            assert_int_equal(reply_next(&parser, &reply, &why), REPLY_READY);
            assert_row(&rows[i], reply);
        }
    assert_int_equal(reply_next(&parser, &reply, &why), REPLY_NONE);
    reply_clear(&parser);
}

static void test_holder_is_bytes(void **state)
{
    (void)state;
    static const char wire[] = "*2\r\n$5\r\na\0\r\nb\r\n:9\r\n";
    struct reply_parser parser;
    const struct reply *reply = NULL;
    const char *why = NULL;
    struct node_reply got;
    char text[320];
    parser_open(&parser);
    reply_feed(&parser, wire, sizeof wire - 1);
    assert_int_equal(reply_next(&parser, &reply, &why), REPLY_READY);
    dialect_plain.judge(NODE_PEEK, true, reply, &got, text, sizeof text);
    assert_int_equal(got.holder_length, 5);
    assert_memory_equal(got.holder, "a\0\r\nb", 6);
    reply_clear(&parser);
}

struct refused_row {
    const char *wire, *why;
};

static const struct refused_row refused_rows[] = {
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
    {">2\r\n+message\r\n+x\r\n", ""},
    {"%1\r\n+a\r\n+b\r\n", ""},
    {"#t\r\n", ""},
    {",1.5\r\n", ""},
};

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused_rows / sizeof refused_rows[0]; i++) {
        const struct refused_row *row = &refused_rows[i];
        struct reply_parser parser;
        const struct reply *reply = NULL;
        const char *why = NULL;
        parser_open(&parser);
        reply_feed(&parser, row->wire, strlen(row->wire));
        enum reply_result result;
        while ((result = reply_next(&parser, &reply, &why)) == REPLY_READY) continue;
        if (result != REPLY_BAD) fail_msg("%s: taken", row->wire);
        if (!strstr(why, row->why) || !*why) fail_msg("%s: why: %s", row->wire, why);
        /* It stays refused, and the parser can be opened anew. */
        assert_int_equal(reply_next(&parser, &reply, &why), REPLY_BAD);
        assert_true(reply_open(&parser));
        reply_feed(&parser, "+OK\r\n", 5);
        assert_int_equal(reply_next(&parser, &reply, &why), REPLY_READY);
        reply_clear(&parser);
    }
}

/* A line that never ends costs no more than the limit. */
static void test_endless(void **state)
{
    (void)state;
    static char chunk[16384];
    struct reply_parser parser;
    const struct reply *reply = NULL;
    const char *why = NULL;
    memset(chunk, 'x', sizeof chunk);
    parser_open(&parser);
    reply_feed(&parser, "+", 1);
    enum reply_result result = REPLY_NONE;
    size_t fed = 0;
    while (result == REPLY_NONE) {
        assert_true(fed <= REPLY_BYTES_MAX);
        reply_feed(&parser, chunk, sizeof chunk);
        fed += sizeof chunk;
        result = reply_next(&parser, &reply, &why);
    }
    assert_int_equal(result, REPLY_BAD);
    assert_non_null(strstr(why, "too large"));
    reply_clear(&parser);
}

/* An integer that has not wholly arrived is no header. */
static void test_long_integer(void **state)
{
    (void)state;
    struct reply_parser parser;
    const struct reply *reply = NULL;
    const char *why = NULL;
    parser_open(&parser);
    reply_feed(&parser, ":999999999999", 13);
    assert_int_equal(reply_next(&parser, &reply, &why), REPLY_NONE);
    reply_feed(&parser, "\r", 1);
    assert_int_equal(reply_next(&parser, &reply, &why), REPLY_NONE);
    reply_feed(&parser, "\n", 1);
    assert_int_equal(reply_next(&parser, &reply, &why), REPLY_READY);
    assert_int_equal(reply->self.integer, 999999999999);
    reply_clear(&parser);
}

/* The largest string that is taken, in pieces. */
static void test_large(void **state)
{
    (void)state;
    static char chunk[1000];
    struct reply_parser parser;
    const struct reply *reply = NULL;
    const char *why = NULL;
    memset(chunk, 'x', sizeof chunk);
    parser_open(&parser);
    reply_feed(&parser, "$200000\r\n", 9);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(reply_next(&parser, &reply, &why), REPLY_NONE);
        reply_feed(&parser, chunk, sizeof chunk);
    }
    assert_int_equal(reply_next(&parser, &reply, &why), REPLY_NONE);
    reply_feed(&parser, "\r\n", 2);
    assert_int_equal(reply_next(&parser, &reply, &why), REPLY_READY);
    assert_int_equal(reply->self.length, 200000);
    assert_int_equal(reply->self.text[199999], 'x');
    assert_int_equal(reply->self.text[200000], 0);
    reply_clear(&parser);
}

static void *refuse_reallocate(void *arg, void *block, size_t size)
{
    (void)arg;
    (void)block;
    (void)size;
    return NULL;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    struct alloc alloc = memory;
    struct reply_parser parser;
    const struct reply *reply = NULL;
    const char *why = NULL;
    alloc.hooks.reallocate = refuse_reallocate;
    reply_init(&parser, &alloc);
    assert_true(reply_open(&parser));
    reply_feed(&parser, "+OK\r\n", 5);
    assert_int_equal(reply_next(&parser, &reply, &why), REPLY_NOMEM);
    assert_int_equal(reply_next(&parser, &reply, &why), REPLY_NOMEM);
    reply_clear(&parser);
}

/* What a server echoes of our command may be a token or a password. */
static void test_echo_is_cut(void **state)
{
    (void)state;
    static const char text[] = "ERR unknown command 'AUTH', with args beginning with: 'sesame'";
    char described[320];
    error_describe(described, sizeof described, "AUTH", text, sizeof text - 1);
    assert_string_equal(described, "AUTH: ERR unknown command 'AUTH'");
}

static void assert_built(const struct node_request *request, const char *wanted)
{
    struct bytes out;
    struct dialect_shas shas;
    for (size_t i = 0; i < DIALECT_SCRIPTS_MAX; i++) {
        memset(shas.sha[i], 'a' + (int)i, DIALECT_SHA_LENGTH);
        shas.sha[i][DIALECT_SHA_LENGTH] = '\0';
    }
    bytes_init(&out, &memory, 65536);
    dialect_plain.build(&out, request, &shas, NULL);
    assert_int_equal(out.fault, BYTES_FINE);
    assert_int_equal(out.used, strlen(wanted));
    assert_memory_equal(out.data, wanted, out.used);
    bytes_clear(&out);
}

#define SHA_A "$40\r\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"
#define SHA_B "$40\r\nbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n"
#define SHA_C "$40\r\ncccccccccccccccccccccccccccccccccccccccc\r\n"
#define SHA_D "$40\r\ndddddddddddddddddddddddddddddddddddddddd\r\n"

static void test_build(void **state)
{
    (void)state;
    struct node_request request = {
        .op = NODE_ACQUIRE, NODE_KEY("key", 3), .owner = "me", .owner_length = 2, .lease_ms = 30000};
    assert_built(&request,
                 "*6\r\n$3\r\nSET\r\n$3\r\nkey\r\n$2\r\nme\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n30000\r\n");
    request.op = NODE_EXTEND;
    assert_built(&request, "*7\r\n$7\r\nEVALSHA\r\n" SHA_A
                           "$1\r\n1\r\n$3\r\nkey\r\n$1\r\n1\r\n$2\r\nme\r\n$5\r\n30000\r\n");
    request.op = NODE_RELEASE;
    assert_built(&request, "*6\r\n$7\r\nEVALSHA\r\n" SHA_B "$1\r\n1\r\n$3\r\nkey\r\n$1\r\n1\r\n$2\r\nme\r\n");
    request.op = NODE_PEEK;
    assert_built(&request, "*4\r\n$7\r\nEVALSHA\r\n" SHA_C "$1\r\n1\r\n$3\r\nkey\r\n");
    request.op = NODE_BREAK;
    assert_built(&request, "*4\r\n$7\r\nEVALSHA\r\n" SHA_D "$1\r\n1\r\n$3\r\nkey\r\n");
}

static void test_build_bounded(void **state)
{
    (void)state;
    struct bytes out;
    struct dialect_shas shas;
    struct node_request request = {
        .op = NODE_PEEK, .use_eval = true, NODE_KEY("key", 3), .owner = "", .lease_ms = 1};
    bytes_init(&out, &memory, 100);
    bytes_append(&out, "before", 6);
    dialect_plain.build(&out, &request, &shas, NULL);
    assert_int_equal(out.fault, BYTES_FULL);
    bytes_cut(&out, 6);
    assert_int_equal(out.fault, BYTES_FINE);
    assert_memory_equal(out.data, "before", 6);
    bytes_clear(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),           cmocka_unit_test(test_byte_by_byte),
        cmocka_unit_test(test_listeners),       cmocka_unit_test(test_pipelined),
        cmocka_unit_test(test_holder_is_bytes), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_endless),         cmocka_unit_test(test_large),
        cmocka_unit_test(test_out_of_memory),   cmocka_unit_test(test_echo_is_cut),
        cmocka_unit_test(test_build),           cmocka_unit_test(test_build_bounded),
        cmocka_unit_test(test_long_integer),
    };
    alloc_init(&memory, NULL);
    return cmocka_run_group_tests_name("reply", tests, NULL, NULL);
}
