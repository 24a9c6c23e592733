/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_node_life.c - a node connects, fails to, and is freed, against a server that plays scripts
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "node_fixture.h"

static const struct fake_step plain_good[] = {SHAKE, END};

/* ---- handshake ---- */

struct refusal {
    struct fake_step script[12];
    const char *trace, *why;
};

static const struct refusal refusals[] = {
    {{SEND("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), CLOSE}, "down proto\n", "HTTP/1.1 400 Bad"},
    {{SEND("\x15\x03\x03"), END}, "down proto\n", "TLS"},
    {{EXPECT("AUTH"), SEND("What is AUTH bob sesame?\r\n"), END}, "down proto\n", "not a Redis server"},
    {{EXPECT("AUTH"), SEND("What is AUTH bob sesam"), END}, "down proto\n", "not a Redis server"},
    {{SEND("SSH-2.0-OpenSSH_9\r\n"), END}, "down proto\n", "SSH-2.0"},
    {{SEND("-ERR max number of clients reached\r\n"), CLOSE}, "down refused\n", "maxclients"},
    {{SEND("-DENIED Redis is running in protected mode\r\n"), CLOSE}, "down refused\n", "protected mode"},
    {{EXPECT("AUTH"), SEND("-WRONGPASS invalid username-password pair\r\n"), END}, "down login\n", "user \"bob\""},
    {{EXPECT("AUTH"), SEND("-ERR AUTH <password> called without any password configured\r\n"), END},
     "down login\n",
     "no password"},
    {{EXPECT("AUTH"), SEND("-ERR unknown command 'AUTH', with args beginning with: 'bob' 'sesame'\r\n"), END},
     "down login\n",
     "AUTH"},
    {{EXPECT("AUTH"), SEND("-ERR sesame is not what I want\r\n"), END}, "down login\n", "AUTH"},
    {{EXPECT("AUTH"), SEND("-LOADING sesame\r\n"), END}, "down temporary\n", "AUTH"},
    {{EXPECT("AUTH"), SEND(":1\r\n"), END}, "down proto\n", "AUTH"},
    {{EXPECT("AUTH"), SEND("+OK\r\n"), EXPECT("SELECT"), SEND("-ERR DB index is out of range\r\n"), END},
     "down other\n",
     "SELECT: ERR DB index"},
    {{EXPECT("AUTH"), SEND("+OK\r\n+OK\r\n+OK\r\n-NOPERM this user\r\n"), END}, "down auth\n", "INFO: NOPERM"},
    {{EXPECT("AUTH"), SEND("+OK\r\n+OK\r\n+OK\r\n-NOAUTH Authentication required.\r\n"), END},
     "down login\n",
     "redis://USER:PASSWORD@"},
    {{EXPECT("AUTH"), SEND("+OK\r\n+OK\r\n+OK\r\n$5\r\nhello\r\n"), END}, "down proto\n", "redis_version"},
    {{EXPECT("AUTH"), SEND("+OK\r\n+OK\r\n+OK\r\n+hello\r\n"), END}, "down proto\n", "not a Redis server"},
    {{EXPECT("AUTH"), SEND("+OK\r\n+OK\r\n+OK\r\n$99999999999\r\n"), END}, "down proto\n", "too large"},
    {{EXPECT("AUTH"), SEND("+OK\r\n+OK\r\n+OK\r\n*100000000\r\n"), END}, "down proto\n", "malformed"},
    {{SHAKE_AS("redis_version:6.0.16\r\n", NULL), END}, "down proto\n", "Redis 6.0.16 is too old: Redis 6.2"},
    {{SHAKE_AS("redis_version:7.2.4\r\nvalkey_version:7.1.9\r\n", NULL), END},
     "down proto\n",
     "Valkey 7.1.9 is too old: Valkey 7.2"},
    {{SHAKE_AS("redis_version:7.0.0\r\nredis_mode:cluster\r\n", NULL), END}, "down cluster\n", "cluster-enabled no"},
    {{SHAKE_AS("redis_version:7.2.4\r\nvalkey_version:8.1.0\r\nserver_mode:cluster\r\n", NULL), END},
     "down cluster\n",
     "cluster-enabled no"},
    {{SHAKE_AS("redis_version:7.0.0\r\nredis_mode:sentinel\r\n", NULL), END}, "down proto\n", "Sentinel"},
    {{SHAKE_AS(NULL, "role:slave\r\nmaster_host:10.0.0.9\r\nmaster_port:6379\r\n"), END},
     "down replica\n",
     "replica of 10.0.0.9:6379"},
    {{SHAKE_AS(NULL, "roles:master\r\n"), END}, "down proto\n", "role"},
    {{EXPECT("AUTH"), SEND("+OK\r\n"), CLOSE}, "down unreachable\n", "closed the connection during the handshake"},
    {{EXPECT("AUTH"), RESET}, "down unreachable\n", "during the handshake"},
};

/* Nobody needs to do anything. */
static bool passes(const char *trace)
{
    static const char *const traces[] = {"down temporary\n", "down refused\n", "down unreachable\n", "down other\n"};

    for (size_t i = 0; i < LENGTH(traces); i++) {
        if (strcmp(trace, traces[i]) == 0) return true;
    }
    return false;
}

NODE_TEST(a_node_reports_why_a_handshake_failed_and_tries_again)
{
    for (size_t i = 0; i < LENGTH(refusals); i++) {
        const struct refusal *refusal = &refusals[i];

        node_fixture_open(f);
        fake_play(f->server, refusal->script);
        fake_play(f->server, plain_good);
        node_fixture_uri(f, "redis://bob:sesame@127.0.0.1", "/1");
        assert_non_null(node_fixture_new_node(f));
        run_until(f, "down");
        assert_trace(f, refusal->trace);
        assert_contains(f->why, refusal->why);
        assert_int_equal(f->down_level, passes(refusal->trace) ? QUORLOCK_LOG_WARN : QUORLOCK_LOG_ERROR);
        assert_int_equal(ask(f, 1, OP_PEEK, 0), NODE_NOT_READY);
        run_until(f, "ready 1");
        if (strstr(f->logged, "ses") != NULL) fail_msg("a password: %s", f->logged);
    }
}

NODE_TEST(a_failure_that_repeats_is_reported_once)
{
    static const struct fake_step script[] = {EXPECT("CLIENT"),
                                              SEND("-NOPERM this name is only for show\r\n"),
                                              EXPECT("INFO"),
                                              SEND("$29\r\nredis_version:7.0.0\r\nrun_id:a\r\n"),
                                              EXPECT("INFO"),
                                              SEND("$28\r\nrole:master\r\nmaster_replid:b\r\n"),
                                              EXPECT("EVAL"),
                                              SEND("-LOADING Redis is loading the dataset in memory\r\n"),
                                              END};

    node_fixture_start(f, script);
    fake_play(f->server, script);
    fake_play(f->server, plain_good);
    run_until(f, "ready");
    assert_trace(f, "down temporary\nready 1\n");
    assert_int_equal(fake_connections(f->server), 3);
}

/* A node of a server that says nothing. */
static void connect_in_silence(struct node_fixture *f, uint32_t connect_ms)
{
    static const struct fake_step script[] = {END};

    node_fixture_open(f);
    f->config.link.connect_ms = connect_ms;
    fake_play(f->server, script);
    assert_non_null(node_fixture_new_node(f));
}

NODE_TEST(a_handshake_without_an_answer_ends_in_time)
{
    connect_in_silence(f, 30);
    run_until(f, "down");
    assert_trace(f, "down unreachable\n");
    assert_contains(f->why, "no answer to the handshake within 30 ms (connect_timeout_ms, --connect-timeout)");
}

NODE_TEST(a_node_that_connects_tells_how_far_it_came)
{
    connect_in_silence(f, 60000);
    for (int i = 0; i < 10000 && strcmp(node_why(f->node), "connecting") == 0; i++) run_on(f, 1);
    assert_string_equal(node_why(f->node), "connecting: no answer to the handshake yet");
}

NODE_TEST(a_node_whose_connection_ended_tells_why_until_it_is_back)
{
    static const struct fake_step good[] = {SHAKE, CLOSE}, silent[] = {END};

    node_fixture_open(f);
    fake_play(f->server, good);
    fake_play(f->server, silent);
    assert_non_null(node_fixture_new_node(f));
    run_until(f, "connecting unreachable");
    assert_null(strstr(f->logged, "down: "));
    while (fake_connections(f->server) < 2) run_on(f, 1);
    run_on(f, 20);
    assert_string_equal(node_why(f->node), f->why);
}

NODE_TEST(a_new_password_is_tried_at_once)
{
    static const struct fake_step wrong[] = {EXPECT("AUTH"), SEND("-WRONGPASS invalid\r\n"), END};

    node_fixture_open(f);
    f->config.link.reconnect_min_ms = f->config.link.reconnect_max_ms = 10000 * LIMIT_S;
    fake_play(f->server, wrong);
    fake_play(f->server, plain_good);
    node_fixture_uri(f, "redis://bob:sesame@127.0.0.1", "");
    assert_non_null(node_fixture_new_node(f));
    run_until(f, "down login");
    node_log_in_again(f->node);
    run_until(f, "ready 1");
}

NODE_TEST(a_port_that_refuses_is_reported_once)
{
    node_fixture_open(f);
    node_fixture_uri(f, "127.0.0.1", "");
    fake_free(f->server);
    f->server = NULL;
    assert_non_null(node_fixture_new_node(f));
    run_until(f, "down");
    run_on(f, 50); /* tries again and again */
    assert_trace(f, "down unreachable\n");
    assert_contains(f->why, "refused");
}

/* ---- the end ---- */

struct free_row {
    const char *free_at, *trace;
    struct fake_step script[8];
    uint32_t timeout_ms;
};

static void ask_three(struct node_fixture *f, const char *line)
{
    if (strcmp(line, "ready 1") != 0) return;
    for (unsigned i = 1; i <= 3; i++) assert_int_equal(ask(f, i, OP_ACQUIRE, i == 1 ? 20 : 0), NODE_SENT);
}

NODE_TEST(any_callback_may_free_the_node)
{
    static const struct free_row rows[] = {
        {"ready 1", "ready 1\n", {SHAKE, END}, 0},
        {"1 yes", "ready 1\n1 yes\n", {SHAKE, EXPECT("SET"), SEND("+OK\r\n+OK\r\n+OK\r\n"), END}, 0},
        {"3 yes", "ready 1\n1 yes\n2 yes\n3 yes\n", {SHAKE, EXPECT("SET"), SEND("+OK\r\n+OK\r\n+OK\r\n"), CLOSE}, 0},
        {"1 error replica",
         "ready 1\n1 error replica\n",
         {SHAKE, EXPECT("SET"), SEND("-READONLY x\r\n+OK\r\n"), END},
         0},
        {"1 error proto", "ready 1\n1 error proto\n", {SHAKE, EXPECT("SET"), SEND(":1\r\n+OK\r\n"), END}, 0},
        {"2 unknown unreachable",
         "ready 1\n1 unknown unreachable\n2 unknown unreachable\n",
         {SHAKE, EXPECT("SET"), CLOSE},
         0},
        {"1 unknown timeout", "ready 1\n1 unknown timeout\n", {SHAKE, END}, 20},
        {"connecting unreachable",
         "ready 1\n1 yes\n2 unknown unreachable\n3 unknown unreachable\nconnecting unreachable\n",
         {SHAKE, EXPECT("SET"), SEND("+OK\r\n"), CLOSE},
         0},
        {"down unreachable", "down unreachable\n", {CLOSE}, 0},
        {"down proto", "down proto\n", {SEND("?"), END}, 0},
        {"down login", "down login\n", {EXPECT("CLIENT"), SEND("-NOAUTH x\r\n+OK\r\n"), END}, 0},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        node_fixture_start(f, rows[i].script);
        f->free_at = rows[i].free_at;
        f->on_line = ask_three;
        run_until(f, rows[i].free_at);
        assert_null(f->node);
        run_on(f, 10);
        assert_trace(f, rows[i].trace);
    }
}

NODE_TEST(a_node_may_be_freed_at_any_turn_of_the_loop)
{
    for (int turns = 0; turns < 12; turns++) {
        node_fixture_start(f, plain_good);
        for (int i = 0; i < turns; i++) event_base_loop(f->base, EVLOOP_NONBLOCK);
        if (node_state_now(f->node) == NODE_READY) ask_sent(f, 1, OP_PEEK, 0);
        node_free(f->node);
        f->node = NULL;
        f->freed = true;
        run_on(f, 2);
    }
    node_free(NULL);
}

NODE_TEST(whatever_allocation_fails_the_node_connects_in_the_end)
{
    static const struct fake_step script[] = {SHAKE, EXPECT("SET"), SEND("+OK\r\n"), END};
    bool failed = true;
    long n = 0;

    for (; failed; n++) {
        assert_true(n < 100);
        node_fixture_open(f);
        for (int i = 0; i < 4; i++) fake_play(f->server, script);
        node_fixture_uri(f, n % 2 != 0 ? "localhost" : "127.0.0.1", "");
        f->counted.until_failure = n / 2;
        if (node_fixture_new_node(f) != NULL) {
            run_until(f, "ready");
            int result = ask(f, 1, OP_ACQUIRE, 0);
            if (result == NODE_NOMEM) result = ask(f, 1, OP_ACQUIRE, 0);
            assert_int_equal(result, NODE_SENT);
            run_until(f, "1 yes");
        }
        failed = f->counted.until_failure < 0;
    }
    assert_true(n > 6);
}
