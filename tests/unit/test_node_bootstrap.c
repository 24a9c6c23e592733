/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_node_bootstrap.c - a node writes a guard, alone and as one transaction, against a server that plays
 * scripts
 */
#include <stdio.h>
#include <string.h>

#include "node_fixture.h"

static const struct fake_step again[] = {SHAKE, END};

static int bootstrap(struct node_fixture *f, unsigned tag, bool force, uint32_t timeout_ms)
{
    struct node_request request = {.op = OP_BOOTSTRAP, .force = force, .timeout_ms = timeout_ms};

    request.tag.align_number = tag;
    return node_send(f->node, &request);
}

#define TRANSACTION                                                                                                    \
    EXPECT("MULTI"), EXPECT("EVAL local n, set, lease"), EXPECT("CLIENT KILL TYPE normal SKIPME yes"), EXPECT("EXEC")
#define QUEUED  "+OK\r\n+QUEUED\r\n+QUEUED\r\n"
#define WRITTEN "$11\r\nwritten:1|x\r\n"

NODE_TEST(bootstrap_writes_a_guard_or_finds_one)
{
    static const struct fake_step script[] = {SHAKE,
                                              EXPECT("EVAL local n, set, lease"),
                                              SEND(WRITTEN),
                                              EXPECT("EVAL local n, set, lease"),
                                              SEND("$11\r\nguarded:2|y\r\n"),
                                              TRANSACTION,
                                              SEND(QUEUED "*2\r\n" WRITTEN ":12\r\n"),
                                              TRANSACTION,
                                              SEND(QUEUED "*2\r\n$11\r\nguarded:9|z\r\n:0\r\n"),
                                              END};

    node_fixture_ready(f, script);
    assert_int_equal(bootstrap(f, 1, false, 0), NODE_SENT);
    run_until(f, "1 yes");
    assert_string_equal(f->holder, "1|x");
    assert_int_equal(bootstrap(f, 2, false, 0), NODE_SENT);
    run_until(f, "2 other");
    assert_string_equal(f->holder, "2|y");
    assert_int_equal(bootstrap(f, 3, true, 10000), NODE_SENT);
    run_until(f, "3 yes");
    assert_int_equal(bootstrap(f, 4, true, 0), NODE_SENT);
    run_until(f, "4 other");
    assert_string_equal(f->holder, "9|z");
    assert_trace(f, "ready 1\n1 yes\n2 other\n3 yes\n4 other\n");
}

/* Not executed is certain only where the server said so; all else may have been written. */
static const struct {
    const char *replies, *trace, *error;
} transactions[] = {
    {"+OK\r\n+QUEUED\r\n-NOPERM this user has no permissions to run 'client|kill'\r\n-EXECABORT dropped\r\n",
     "error auth", "bootstrap: NOPERM"},
    {"+OK\r\n-OOM command\r\n+QUEUED\r\n-EXECABORT dropped\r\n", "error refused", "OOM"},
    {"-NOPERM this user has no permissions to run 'multi'\r\n" WRITTEN ":3\r\n-ERR EXEC without MULTI\r\n",
     "unknown auth", "NOPERM"},
    {QUEUED "*2\r\n-READONLY You can't\r\n:3\r\n", "error replica", "READONLY"},
    {QUEUED "*2\r\n" WRITTEN "-NOPERM no\r\n", "unknown auth", "CLIENT KILL: NOPERM no"},
    {QUEUED "-ERR what ever\r\n", "unknown other", "what ever"},
};

NODE_TEST(a_transaction_that_fails_is_reported_once_and_leaves_no_reply_over)
{
    for (size_t i = 0; i < LENGTH(transactions); i++) {
        struct fake_step script[] = {SHAKE,         TRANSACTION,     SEND(transactions[i].replies),
                                     EXPECT("SET"), SEND("+OK\r\n"), END};
        char trace[128];

        node_fixture_ready(f, script);
        assert_int_equal(bootstrap(f, 1, true, 0), NODE_SENT);
        run_until(f, "1 ");
        assert_contains(f->error, transactions[i].error);
        ask_sent(f, 2, OP_ACQUIRE, 0);
        run_until(f, "2 yes");
        snprintf(trace, sizeof(trace), "ready 1\n1 %s\n2 yes\n", transactions[i].trace);
        assert_trace(f, trace);
    }
}

NODE_TEST(a_transaction_without_all_answers_is_unknown)
{
    static const char *const replies[] = {"", "+OK\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n"};

    for (size_t i = 0; i < 6; i++) {
        struct fake_step ends[] = {SHAKE, TRANSACTION, SEND(replies[i / 2]), CLOSE, END};
        struct fake_step late[] = {SHAKE,
                                   TRANSACTION,
                                   SEND(replies[i / 2]),
                                   SLEEP(60),
                                   SEND(&(QUEUED "*2\r\n" WRITTEN ":12\r\n")[strlen(replies[i / 2])]),
                                   EXPECT("SET"),
                                   SEND("+OK\r\n"),
                                   END};

        node_fixture_start(f, i % 2 != 0 ? late : ends);
        fake_play(f->server, again);
        run_until(f, "ready");
        assert_int_equal(bootstrap(f, 1, true, i % 2 != 0 ? 20 : 0), NODE_SENT);
        run_until(f, "1 unknown");
        if (i % 2 != 0) {
            ask_sent(f, 2, OP_ACQUIRE, 0);
            run_until(f, "2 yes");
            assert_trace(f, "ready 1\n1 unknown timeout\n2 yes\n");
        }
    }
}

NODE_TEST(the_right_to_kill_is_tried_on_an_address_nobody_has)
{
    static const struct fake_step script[] = {
        SHAKE,
        EXPECT("MULTI"),
        EXPECT("CLIENT KILL TYPE normal SKIPME yes ADDR 0.0.0.0:0"),
        EXPECT("EXEC"),
        SEND("+OK\r\n+QUEUED\r\n*1\r\n:0\r\n"),
        EXPECT("MULTI"),
        EXPECT("CLIENT KILL"),
        EXPECT("EXEC"),
        SEND("+OK\r\n-NOPERM this user has no permissions to run 'client|kill'\r\n-EXECABORT dropped\r\n"),
        EXPECT("MULTI"),
        EXPECT("CLIENT KILL"),
        EXPECT("EXEC"),
        SEND("-NOPERM no 'multi'\r\n:0\r\n-ERR EXEC without MULTI\r\n"),
        EXPECT("MULTI"),
        EXPECT("CLIENT KILL"),
        EXPECT("EXEC"),
        SEND("+OK\r\n+QUEUED\r\n*1\r\n-NOPERM only now\r\n"),
        END};
    struct node_request request = {.op = OP_MAY_KILL};

    node_fixture_ready(f, script);
    for (unsigned i = 1; i <= 4; i++) {
        char line[16];

        snprintf(line, sizeof(line), "%u ", i);
        request.tag.align_number = i;
        assert_int_equal(node_send(f->node, &request), NODE_SENT);
        run_until(f, line);
    }
    assert_trace(f, "ready 1\n1 yes\n2 error auth\n3 error auth\n4 error auth\n");
}
