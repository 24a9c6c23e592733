/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_keys_refused.c - several keys in one request, on one real server, in both dialects: what the server, its
 * rights or its guard refuse leaves nothing behind; and as many and as large keys as there may be
 */
#include "keys_fixture.h"

#include <hiredis/hiredis.h>

/* ---- what a server refuses ---- */

DIALECTS_TEST(test_foreign)
{
    static const enum op ops[] = {OP_ACQUIRE, OP_REPAIR, OP_EXTEND, OP_RAISE, OP_PEEK};

    for (size_t k = 0; k < sizeof(ops) / sizeof(ops[0]); k++) {
        for (size_t p = 0; p < N; p++) {
            wipe();
            /* The other dialect's, among keys that are ours, or free. */
            put((p + 1) % N, US, SHORT_MS);
            dialect = plain() ? QUORLOCK_DIALECT_REDISSON : QUORLOCK_DIALECT_PLAIN;
            put(p, US, SHORT_MS);
            dialect = plain() ? QUORLOCK_DIALECT_REDISSON : QUORLOCK_DIALECT_PLAIN;
            assert_fault(ask_fenced(ops[k], 5), FAULT_FOREIGN);
            assert_int_equal(key_count(), 2);
            assert_left((p + 1) % N, 1, SHORT_MS);
        }
    }
}

static void as_bob(const char *rights)
{
    redisContext *context = redisConnect("127.0.0.1", server->port);
    char address[TEXT_SIZE + 32], command[512];
    redisReply *reply;

    snprintf(command, sizeof(command), "ACL SETUSER bob reset on >sesame %s", rights);
    reply = redisCommand(context, command); /* its words, split at spaces */
    assert_string_equal(reply->str, "OK");
    freeReplyObject(reply);
    redisFree(context);
    snprintf(address, sizeof(address), "redis://bob:sesame@%s", server->address);
    probe_close(probe);
    open_probe(address, QUORLOCK_GUARD_OFF);
}

/* A right that one key lacks refuses all of them. */
DIALECTS_TEST(test_rights)
{
    static const char *const lacking[] = {"~a ~b", "~b ~c", "~a ~c", "~a ~b %%R~c", "%%R~a ~b ~c"};
    static const enum op ops[] = {OP_ACQUIRE, OP_REPAIR, OP_EXTEND, OP_RAISE, OP_PEEK, OP_RELEASE};
    char rights[128];

    fixture_needs_real_servers();
    for (size_t r = 0; r < sizeof(lacking) / sizeof(lacking[0]); r++) {
        snprintf(rights, sizeof(rights), "~ready? ~quorlock:fence:* &* +@all %s", lacking[r]);
        as_bob(rights);
        for (size_t k = 0; k < sizeof(ops) / sizeof(ops[0]); k++) {
            /* A user that may only read may PEEK, where the server distinguishes reading and writing. */
            if (ops[k] == OP_PEEK && strchr(lacking[r], '%') != NULL) continue;
            wipe();
            assert_fault(ask_fenced(ops[k], 5), FAULT_AUTH);
            assert_int_equal(key_count(), 0);
        }
    }
}

/* Where a later key cannot be written the earlier ones are taken back. */
DIALECTS_TEST(test_taken_back)
{
    fixture_needs_real_servers();
    for (size_t way = 0; way < 2; way++) {
        for (size_t p = 0; p < N; p++) {
            const char *command = plain() ? "set" : way == 0 ? "hset" : "pexpire";
            redisContext *context = redisConnect("127.0.0.1", server->port);
            char selector[64], less[32];
            redisReply *reply;

            wipe();
            snprintf(selector, sizeof(selector), "(+%s%s%s%s)", command, p == 0 ? "" : " ~a", p == 1 ? "" : " ~b",
                     p == 2 ? "" : " ~c");
            as_bob("~* &* +@all");
            snprintf(less, sizeof(less), "-%s", command);
            reply = redisCommand(context, "ACL SETUSER bob %s %s", less, selector);
            assert_string_equal(reply->str, "OK");
            freeReplyObject(reply);
            /* Servers that have it set a list with it. */
            freeReplyObject(redisCommand(context, "ACL SETUSER bob -msetex"));
            redisFree(context);
            assert_fault(ask(OP_ACQUIRE), FAULT_AUTH);
            assert_int_equal(key_count(), 0);
            /* What was ours before stays. */
            put((p + 1) % N, US, LONG_MS);
            assert_fault(ask(OP_REPAIR), FAULT_AUTH);
            assert_int_equal(key_count(), 1);
            assert_true(holds((p + 1) % N, US));
        }
    }
}

/* ---- as many and as large as there may be ---- */

/* Any bytes, sorted: the first two differ from key to key. */
static void fill(char text[NODE_KEYS_MAX][1024], struct node_key *ret)
{
    for (size_t i = 0; i < NODE_KEYS_MAX; i++) {
        for (size_t k = 0; k < sizeof(text[i]); k++) text[i][k] = (char)(unsigned char)(k * 7);
        text[i][0] = '\r';
        text[i][1] = (char)(unsigned char)(4 * i);
        text[i][2] = '\n';
        text[i][3] = '\0';
        ret[i] = (struct node_key){text[i], sizeof(text[i])};
    }
}

DIALECTS_TEST(test_large)
{
    static const enum op ops[] = {OP_ACQUIRE, OP_REPAIR, OP_EXTEND, OP_RAISE, OP_PEEK, OP_RELEASE, OP_EXTEND};
    static char text[NODE_KEYS_MAX][1024];
    struct node_key many[NODE_KEYS_MAX];
    struct node_request bootstrap = {.op = OP_BOOTSTRAP};
    struct node_request last = request_of(OP_ACQUIRE, THEM);
    struct node_request request;
    struct answer answers[12] = {{.came = false}}, refused;

    (void)probe_ask(probe, &bootstrap);
    probe_close(probe);
    open_probe(server->address, QUORLOCK_GUARD_STRICT);
    fill(text, many);
    for (int round = 0; round < 2; round++) { /* the scripts whole, and by their hashes */
        for (size_t k = 0; k < sizeof(ops) / sizeof(ops[0]); k++) {
            bool gone = k == sizeof(ops) / sizeof(ops[0]) - 1;
            struct answer answer;

            request = request_of(ops[k], US);
            request.keys = many;
            request.n_keys = NODE_KEYS_MAX;
            request.fenced = true;
            request.fence = 5;
            answer = probe_ask(probe, &request);
            assert_outcome(answer, gone ? OUTCOME_MISSING : OUTCOME_YES);
            if (ops[k] == OP_PEEK) assert_string_equal(answer.holder, US);
            /* The guard, the counters and, while they are held, the locks. */
            assert_int_equal(key_count(), 1 + NODE_KEYS_MAX * (gone || ops[k] == OP_RELEASE ? 1 : 2));
        }
    }
    /* Another owner has one of them. */
    last.keys = &many[NODE_KEYS_MAX - 1];
    last.n_keys = 1;
    assert_outcome(probe_ask(probe, &last), OUTCOME_YES);
    request = request_of(OP_ACQUIRE, US);
    request.keys = many;
    request.n_keys = NODE_KEYS_MAX;
    refused = probe_ask(probe, &request);
    assert_held_by(refused, THEM, 1, LEASE_MS);
    assert_true(refused.reply.refusing == UINT64_C(1) << (NODE_KEYS_MAX - 1));
    assert_int_equal(key_count(), 1 + NODE_KEYS_MAX + 1);
    /* A dozen of these in one turn of the loop. */
    request.op = OP_PEEK;
    request.timeout_ms = 20000;
    for (size_t i = 0; i < 12; i++) {
        request.tag.about = &answers[i];
        assert_int_equal(node_send(probe->node, &request), NODE_SENT);
    }
    request.tag.about = NULL;
    assert_outcome(probe_ask(probe, &request), OUTCOME_YES);
    for (size_t i = 0; i < 12; i++) assert_outcome(answers[i], OUTCOME_YES);
}
