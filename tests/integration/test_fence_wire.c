/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_fence_wire.c - fencing counters of one node, and the rights that guard and fencing need, on a real
 * server
 */
#include <time.h>

#include "probe.h"

#define COUNTER    "quorlock:fence:key"
#define LARGEST    9007199254740991u /* 2^53 - 1 */
#define SEVEN_DAYS 604800000
#define A_DAY      86400000

static const struct server *server = SERVER(0);

/* Ready, in that mode; the guard is written without quarantine where there is none. */
static struct probe *begin(uint32_t mode)
{
    struct node_request request = {.op = OP_BOOTSTRAP};
    struct probe *probe = probe_ready(server->address, QUORLOCK_GUARD_OFF);

    (void)probe_ask(probe, &request);
    probe_close(probe);
    return probe_ready(server->address, mode);
}

static void assert_counts(struct answer answer, uint64_t fence)
{
    assert_int_equal(answer.reply.outcome, OUTCOME_YES);
    assert_int_equal(answer.reply.fence, fence);
}

SERVER_TEST(test_increments)
{
    static const uint32_t modes[] = {QUORLOCK_GUARD_OFF, QUORLOCK_GUARD_CONNECTION, QUORLOCK_GUARD_STRICT};
    struct probe *probe;
    struct answer answer;

    for (uint64_t i = 0; i < 3; i++) {
        uint64_t first, before_us;

        probe = begin(modes[i]);
        first = 3 * i + 1;
        before_us = wall_us();
        answer = probe_fenced(probe, OP_ACQUIRE, "a", 0);
        assert_counts(answer, first);
        assert_in_range(answer.reply.node_time_us, before_us, wall_us());
        assert_true(server_holds(server, "key", "a"));
        assert_in_range(server_pttl(server, "key"), 1, 30000);
        assert_in_range(server_pttl(server, COUNTER), SEVEN_DAYS, SEVEN_DAYS + 30000);
        /* A refusal counts nothing, and names the holder. */
        answer = probe_fenced(probe, OP_ACQUIRE, "b", 1000);
        assert_int_equal(answer.reply.outcome, OUTCOME_OTHER);
        assert_string_equal(answer.holder, "a");
        assert_in_range(answer.reply.ttl_ms, 1, 30000);
        assert_int_equal(answer.reply.fence, 0);
        /* The floor counts where it is higher, and only there. */
        assert_int_equal(probe_fenced(probe, OP_RELEASE, "a", 0).reply.outcome, OUTCOME_YES);
        assert_counts(probe_fenced(probe, OP_ACQUIRE, "b", first), first + 1);
        assert_int_equal(probe_do(probe, OP_RELEASE, "b").reply.outcome, OUTCOME_YES);
        assert_counts(probe_fenced(probe, OP_ACQUIRE, "c", first + 2), first + 2);
        assert_int_equal(probe_do(probe, OP_RELEASE, "c").reply.outcome, OUTCOME_YES);
        probe_close(probe);
    }
    server_do(server, "SET key x PX 30000");
    probe = begin(QUORLOCK_GUARD_OFF);
    answer = probe_do(probe, OP_PEEK, "");
    assert_int_equal(answer.reply.outcome, OUTCOME_YES);
    assert_string_equal(answer.holder, "x");
    assert_int_equal(answer.reply.fence, 9);
    assert_true(answer.reply.has_guard);
    assert_int_equal(answer.reply.quarantine_ms, -1);
}

/* Wall clocks in microseconds are sixteen digits, which Lua would round when it prints them its own way. */
SERVER_TEST(test_whole_numbers)
{
    char stored[TEXT_SIZE];
    struct probe *probe = begin(QUORLOCK_GUARD_CONNECTION);

    uint64_t floor = wall_us() | 1;
    char wanted[32];
    uint64_t before_us;
    struct answer answer;
    static const char *const bad[] = {"9007199254740992", "99999999999999999999", "-1", "1.5", "x", "nan", "inf"};
    assert_counts(probe_fenced(probe, OP_ACQUIRE, "a", floor), floor);
    server_value(server, COUNTER, stored, sizeof(stored));
    snprintf(wanted, sizeof(wanted), "%llu", (unsigned long long)floor);
    assert_string_equal(stored, wanted);
    assert_int_equal(probe_do(probe, OP_RELEASE, "a").reply.outcome, OUTCOME_YES);

    /* A floor far in the future is cut to the node's clock and half the longest lease. */
    before_us = wall_us();
    answer = probe_fenced(probe, OP_ACQUIRE, "a", LARGEST);
    assert_int_equal(answer.reply.outcome, OUTCOME_YES);
    assert_in_range(answer.reply.fence, before_us + 15000000, wall_us() + 15000000);
    assert_int_equal(answer.reply.fence, answer.reply.node_time_us + 15000000);
    assert_int_equal(probe_do(probe, OP_RELEASE, "a").reply.outcome, OUTCOME_YES);

    server_do(server, "SET " COUNTER " 9007199254740989");
    assert_counts(probe_fenced(probe, OP_ACQUIRE, "a", 1), LARGEST - 1);
    assert_true(server_holds(server, COUNTER, "9007199254740990"));
    assert_int_equal(probe_do(probe, OP_RELEASE, "a").reply.outcome, OUTCOME_YES);

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        server_do(server, "SET " COUNTER " %s", bad[i]);
        answer = probe_fenced(probe, OP_ACQUIRE, "a", 1);
        assert_int_equal(answer.reply.outcome, OUTCOME_ERROR);
        assert_int_equal(answer.reply.fault, FAULT_REFUSED);
        assert_contains(answer.error, "FENCE the counter is no whole number below 2^53");
        assert_contains(answer.error, "delete the key");
        assert_false(server_has(server, "key"));
        assert_true(server_holds(server, COUNTER, bad[i]));
    }
    assert_int_equal(probe->levels, 1);
}

SERVER_TEST(test_raise)
{
    struct answer answer;
    struct probe *probe = begin(QUORLOCK_GUARD_CONNECTION);

    assert_int_equal(probe_fenced(probe, OP_RAISE, "a", 5).reply.outcome, OUTCOME_MISSING);
    assert_false(server_has(server, COUNTER));
    assert_counts(probe_fenced(probe, OP_ACQUIRE, "a", 0), 1);
    answer = probe_fenced(probe, OP_RAISE, "b", 5);
    assert_int_equal(answer.reply.outcome, OUTCOME_OTHER);
    assert_string_equal(answer.holder, "a");
    assert_true(server_holds(server, COUNTER, "1"));
    assert_counts(probe_fenced(probe, OP_RAISE, "a", 5), 5);
    assert_true(server_holds(server, COUNTER, "5"));
    assert_counts(probe_fenced(probe, OP_RAISE, "a", 5), 5); /* again is fine */
    /* Never backwards: the reply has the higher one. */
    answer = probe_fenced(probe, OP_RAISE, "a", 4);
    assert_counts(answer, 5);
    assert_true(answer.reply.node_time_us > 0);
    assert_true(server_holds(server, COUNTER, "5"));
    server_do(server, "SET quorlock:guard other");
    answer = probe_fenced(probe, OP_RAISE, "a", 9);
    assert_int_equal(answer.reply.fault, FAULT_GUARD);
    assert_true(server_holds(server, COUNTER, "5"));
}

SERVER_TEST(test_carried)
{
    struct probe *probe = begin(QUORLOCK_GUARD_CONNECTION);
    struct node_request request = {.op = OP_ACQUIRE,
                                   NODE_KEY("key", 3),
                                   .owner = "a",
                                   .owner_length = 1,
                                   .lease_ms = 30000,
                                   .fenced = true,
                                   .fence_ttl_ms = A_DAY};
    struct answer answer;

    /* A repair brings the token and counts nothing up. */
    assert_counts(probe_fenced(probe, OP_REPAIR, "a", 7), 7);
    assert_true(server_holds(server, COUNTER, "7"));
    assert_int_equal(probe_fenced(probe, OP_REPAIR, "b", 9).reply.outcome, OUTCOME_OTHER);
    assert_true(server_holds(server, COUNTER, "7"));
    /* So does a release, but only of our own lock, and never backwards. */
    assert_int_equal(probe_fenced(probe, OP_RELEASE, "b", 50).reply.outcome, OUTCOME_OTHER);
    assert_true(server_holds(server, COUNTER, "7"));
    assert_int_equal(probe_fenced(probe, OP_RELEASE, "a", 8).reply.outcome, OUTCOME_YES);
    assert_true(server_holds(server, COUNTER, "8"));
    assert_counts(probe_fenced(probe, OP_REPAIR, "a", 3), 8);
    assert_int_equal(probe_fenced(probe, OP_RELEASE, "a", 2).reply.outcome, OUTCOME_YES);
    assert_true(server_holds(server, COUNTER, "8"));

    /* A lock that is held for longer than the counter's life keeps it alive; no life is cut short. */
    server_do(server, "DEL " COUNTER);
    assert_counts(probe_ask(probe, &request), 1);
    assert_in_range(server_pttl(server, COUNTER), A_DAY, A_DAY + 30000);
    server_do(server, "PEXPIRE " COUNTER " 60000");
    request.op = OP_EXTEND;
    assert_int_equal(probe_ask(probe, &request).reply.outcome, OUTCOME_YES);
    assert_in_range(server_pttl(server, COUNTER), A_DAY, A_DAY + 30000);
    request.fence_ttl_ms = 1000;
    request.fence = 4;
    answer = probe_ask(probe, &request);
    assert_int_equal(answer.reply.outcome, OUTCOME_YES);
    assert_true(answer.reply.node_time_us > 0);
    assert_in_range(server_pttl(server, COUNTER), A_DAY, A_DAY + 30000);
    assert_true(server_holds(server, COUNTER, "4"));
}

/* Without memory for lock and counter nothing stays; a release works all the same. */
SERVER_TEST(test_no_memory)
{
    struct probe *probe = begin(QUORLOCK_GUARD_STRICT);
    struct answer answer;

    server_do(server, "CONFIG SET maxmemory 1");
    answer = probe_fenced(probe, OP_ACQUIRE, "a", 0);
    assert_int_equal(answer.reply.outcome, OUTCOME_ERROR);
    assert_int_equal(answer.reply.fault, FAULT_REFUSED);
    assert_contains(answer.error, "OOM");
    assert_false(server_has(server, "key"));
    assert_false(server_has(server, COUNTER));
    server_do(server, "CONFIG SET maxmemory 0");
    assert_counts(probe_fenced(probe, OP_ACQUIRE, "a", 0), 1);
    server_do(server, "CONFIG SET maxmemory 1");
    assert_int_equal(probe_fenced(probe, OP_EXTEND, "a", 1).reply.outcome, OUTCOME_YES);
    assert_int_equal(probe_fenced(probe, OP_RELEASE, "a", 1).reply.outcome, OUTCOME_YES);
    assert_false(server_has(server, "key"));
}

/* The server may forget our scripts at any time: one request meets that, and then each brings its script for a while.
 */
SERVER_TEST(test_forgotten_scripts)
{
    static const enum op ops[] = {OP_ACQUIRE, OP_RAISE, OP_EXTEND, OP_REPAIR, OP_RELEASE};
    struct probe *probe = begin(QUORLOCK_GUARD_STRICT);

    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        enum outcome then = ops[i] == OP_RELEASE ? OUTCOME_MISSING : OUTCOME_YES;
        struct answer answer;

        assert_int_equal(probe_fenced(probe, ops[i], "a", 1).reply.outcome, OUTCOME_YES);
        server_do(server, "SCRIPT FLUSH");
        answer = probe_fenced(probe, ops[i], "a", 1);
        if (i == 0) {
            assert_int_equal(answer.reply.outcome, OUTCOME_ERROR);
            assert_int_equal(answer.reply.fault, FAULT_TEMPORARY);
            answer = probe_fenced(probe, ops[i], "a", 1);
        }
        assert_int_equal(answer.reply.outcome, then);
    }
}

/* The reply of a PEEK for a guard in quarantine, and for a free key. */
SERVER_TEST(test_peek)
{
    struct probe *probe;
    struct probe *looker = probe_ready(server->address, QUORLOCK_GUARD_OFF);
    struct answer answer = probe_do(looker, OP_PEEK, "");

    assert_int_equal(answer.reply.outcome, OUTCOME_MISSING);
    assert_false(answer.reply.has_guard);
    assert_int_equal(answer.reply.quarantine_ms, -1);
    assert_int_equal(answer.reply.fence, 0);
    assert_int_equal(answer.reply.ttl_ms, -2);
    assert_false(server_has(server, "quorlock:guard")); /* looking writes nothing */
    probe = probe_open(server->address);
    probe->config.max_lease_ms = 30000;
    probe_connect(probe);
    probe_await(probe, NODE_QUARANTINED);
    answer = probe_do(looker, OP_PEEK, "");
    assert_true(answer.reply.has_guard);
    assert_in_range(answer.reply.quarantine_ms, 1, 30001);
}

/* ---- rights ---- */

/* All requests of a client with guard and fencing. Returns the first failure, or NULL. */
static const char *whole_life(char *ret, size_t size)
{
    static const enum op ops[] = {OP_PEEK, OP_ACQUIRE, OP_RAISE, OP_EXTEND, OP_RELEASE, OP_REPAIR, OP_BREAK};
    const char *wrong = NULL;
    struct probe *probe;
    char address[TEXT_SIZE + 32];

    snprintf(address, sizeof(address), "redis://bob:sesame@%s", server->address);
    probe = probe_open(address);
    probe->config.guard = QUORLOCK_GUARD_STRICT;
    probe->config.max_lease_ms = 1000;
    probe_connect(probe);
    while (probe->levels == 0) fixture_turn(UINT64_MAX);
    if (probe->state != NODE_QUARANTINED) wrong = probe->why;
    for (size_t i = 0; wrong == NULL && i < sizeof(ops) / sizeof(ops[0]); i++) {
        struct node_request request = {.op = ops[i],
                                       NODE_KEY("key", 3),
                                       .owner = "bob",
                                       .owner_length = 3,
                                       .lease_ms = ops[i] == OP_EXTEND ? 60000 : 30000,
                                       .fenced = true,
                                       .fence = 5};
        struct answer answer = probe_ask(probe, &request);
        /* Left out by choice where the right is missing: a clock, a notice. */
        bool blind = ops[i] == OP_EXTEND && answer.reply.node_time_us == 0;

        if (answer.reply.outcome != (ops[i] == OP_PEEK ? OUTCOME_MISSING : OUTCOME_YES) || blind) {
            snprintf(ret, size, "%d: %s", (int)ops[i], answer.error);
            wrong = ret;
        }
    }
    if (wrong == probe->why) {
        snprintf(ret, size, "%s", probe->why);
        wrong = ret;
    }
    probe_close(probe);
    return wrong;
}

static void forget(void)
{
    server_do(server, "DEL key quorlock:guard " COUNTER);
}

SERVER_TEST(test_least_rights)
{
    static const char *const rights[] = {"~key",
                                         "~quorlock:guard",
                                         "~quorlock:fence:key",
                                         "+info",
                                         "+client|setname",
                                         "+eval",
                                         "+evalsha",
                                         "+get",
                                         "+set",
                                         "+del",
                                         "+pttl",
                                         "+pexpire",
                                         "+type",
                                         "+time"};
    const size_t n = sizeof(rights) / sizeof(rights[0]);
    char why[512];

    fixture_needs_real_servers();
    /* All of them, and not one more: enough. */
    for (size_t left_out = 0; left_out <= n; left_out++) {
        const char *wrong;
        bool optional;

        server_do(server, "ACL SETUSER bob reset on >sesame");
        for (size_t i = 0; i < n; i++) {
            if (i != left_out) server_do(server, "ACL SETUSER bob %s", rights[i]);
        }
        forget();
        wrong = whole_life(why, sizeof(why));
        if (left_out == n && wrong != NULL) fail_msg("not enough: %s", wrong);
        /* A name is for show only. */
        optional = left_out < n && strcmp(rights[left_out], "+client|setname") == 0;
        if (left_out < n && !optional && wrong == NULL) fail_msg("%s is not needed", rights[left_out]);
        if (left_out < n && optional && wrong != NULL) fail_msg("%s is needed: %s", rights[left_out], wrong);
    }
}
