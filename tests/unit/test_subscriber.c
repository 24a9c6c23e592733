/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_subscriber.c - the connection for release notices, against a server that plays scripts
 */
#include <stdio.h>
#include <string.h>

#include <event2/event.h>

#include "notice_fixture.h"
#include "redis/link/conn.h"

/* A whole good connection that listens to "a". */
static const struct fake_step good[] = {GREET, EXPECT("SUBSCRIBE a"), SEND(SUBSCRIBED("a")), END};

/* ---- notices ---- */

NODE_TEST(notices_come_as_bytes_until_the_channel_is_forgotten)
{
    static const struct fake_step script[] = {
        EXPECT("AUTH bob sesame"),
        SEND("+OK\r\n"),
        EXPECT("CLIENT SETNAME quorlock-notices"),
        SEND("+OK\r\n"),
        EXPECT("PING"),
        SEND("+PONG\r\n"),
        EXPECT("SUBSCRIBE a"),
        EXPECT("SUBSCRIBE b"),
        SEND(SUBSCRIBED("a") MESSAGE("a", "one") SUBSCRIBED("b")),
        BYTES("*3\r\n$7\r\nmessage\r\n$3\r\na\0\n\r\n$4\r\n\r\n\0\xff\r\n"),
        SEND(MESSAGE("b", "two") MESSAGE("a", "two") "*3\r\n$7\r\nmessage\r\n$0\r\n\r\n$0\r\n\r\n"),
        EXPECT("UNSUBSCRIBE a"),
        SEND(MESSAGE("a", "new") UNSUBSCRIBED("a") MESSAGE("b", "end")),
        END};

    notice_fixture_begin(f);
    f->wants = "ab";
    fake_play(f->server, script);
    node_fixture_uri(f, "redis://bob:sesame@127.0.0.1", "/7");
    notice_fixture_start(f);
    f->act_at = "message  ";
    f->act = ACT_FORGET;
    run_until(f, "message b end");
    assert_trace(f, "open\nlistening a\nmessage a one\nlistening b\n"
                    "message a\\x00\\x0a \\x0d\\x0a\\x00\\xff\n"
                    "message b two\nmessage a two\nmessage  \nmessage a new\nmessage b end\n");
    assert_int_equal(fake_connections(f->server), 1);
}

static const char conversation[] = SUBSCRIBED("a") MESSAGE("a", "one") PONG NOPERM MESSAGE("a", "two");
static const char conversation_trace[] =
    "open\nlistening a\nmessage a one\nclosed\nopen\nlistening a\nmessage a one\nclosed\n";

/* The PONG was not asked for: the trace ends there, however the bytes are cut into packets. */
NODE_TEST(replies_may_be_cut_anywhere)
{
    for (size_t at = 1; at < sizeof(conversation) - 1; at++) {
        const struct fake_step script[] = {
            GREET,    EXPECT("SUBSCRIBE a"),   {FAKE_SEND, (unsigned)at, conversation, NULL},
            SLEEP(1), SEND(conversation + at), END};
        const struct fake_step pieces[] = {GREET, EXPECT("SUBSCRIBE a"), STEP(FAKE_PIECES, conversation), END};

        notice_fixture_begin_with(f, "a", script);
        fake_play(f->server, pieces);
        run_until(f, conversation_trace);
        assert_contains(f->why, "nobody asked");
    }
}

NODE_TEST(many_notices_come_in_one_packet)
{
    enum { N = 2000 };
    static const char one[] = MESSAGE("a", "one");
    static char text[N * sizeof(one) + 1];

    for (size_t i = 0; i < N; i++) memcpy(text + i * (sizeof(one) - 1), one, sizeof(one));
    const struct fake_step script[] = {GREET,      EXPECT("SUBSCRIBE a"),     SEND(SUBSCRIBED("a")),
                                       SEND(text), SEND(MESSAGE("a", "end")), END};
    notice_fixture_begin_with(f, "a", script);
    run_until(f, "message a one\n");
    run_until(f, "message a end\n");
    assert_int_equal(times_in(f->trace, "message a one\n"), N);
}

/* The lost-wake race: notices between a forget and a later listen are missed, whatever was confirmed before. */
NODE_TEST(a_confirmation_from_before_a_forget_does_not_count)
{
    static const struct fake_step script[] = {GREET,
                                              EXPECT("SUBSCRIBE a"),
                                              EXPECT("SUBSCRIBE b"),
                                              EXPECT("UNSUBSCRIBE a"),
                                              EXPECT("SUBSCRIBE a"),
                                              EXPECT("UNSUBSCRIBE b"),
                                              SEND(SUBSCRIBED("a") NOPERM UNSUBSCRIBED("a")),
                                              SEND(MESSAGE("z", "mid") SUBSCRIBED("a")),
                                              SEND("-ERR no UNSUBSCRIBE\r\n" MESSAGE("a", "end")),
                                              END};

    notice_fixture_begin_with(f, "ab", script);
    run_until(f, "open");
    subscriber_forget(f->subscriber, "a", 1);
    assert_int_equal(subscriber_listen(f->subscriber, "a", 1), SUBSCRIBER_ASKED);
    subscriber_forget(f->subscriber, "b", 1);
    run_until(f, "message a end");
    assert_trace(f, "open\nmessage z mid\nlistening a\nmessage a end\n");
}

NODE_TEST(a_refused_channel_is_reported_and_the_reason_logged_once)
{
    static const struct fake_step script[] = {
        GREET,
        EXPECT("SUBSCRIBE a"),
        EXPECT("SUBSCRIBE b"),
        EXPECT("SUBSCRIBE c"),
        EXPECT("SUBSCRIBE d"),
        SEND(SUBSCRIBED("a") NOPERM NOPERM),
        EXPECT("SUBSCRIBE z"),
        SEND("-ERR sesame is not a channel\r\n" SUBSCRIBED("z") MESSAGE("a", "end")),
        END};

    notice_fixture_begin(f);
    f->wants = "abcd";
    fake_play(f->server, script);
    node_fixture_uri(f, "redis://:sesame@127.0.0.1", "");
    notice_fixture_start(f);
    f->act_at = "refused c";
    f->act = ACT_LISTEN;
    run_until(f, "refused c");
    assert_contains(f->why, "SUBSCRIBE: NOPERM No permissions to access a channel (give this user the right");
    run_until(f, "message a end");
    assert_trace(f, "open\nlistening a\nrefused b\nrefused c\nrefused d\nlistening z\nmessage a end\n");
    assert_string_equal(f->why, "SUBSCRIBE: refused");
    assert_int_equal(times_in(f->logged, "NOPERM"), 1);
    assert_int_equal(times_in(f->logged, "sesame"), 0);
}

/* ---- beginning and end ---- */

/* Redis 8.6 refuses a subscription while its memory is full. The others stay. */
NODE_TEST(a_full_server_keeps_the_other_subscriptions)
{
    static const char full[] = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    static const struct fake_step script[] = {GREET,
                                              EXPECT("SUBSCRIBE a"),
                                              SEND(SUBSCRIBED("a")),
                                              EXPECT("SUBSCRIBE b"),
                                              SEND(full),
                                              EXPECT("SUBSCRIBE c"),
                                              SEND(full),
                                              SEND(MESSAGE("a", "end")),
                                              END};

    notice_fixture_begin_with(f, "a", script);
    run_until(f, "listening a");
    assert_int_equal(subscriber_listen(f->subscriber, "b", 1), SUBSCRIBER_ASKED);
    assert_int_equal(subscriber_listen(f->subscriber, "c", 1), SUBSCRIBER_ASKED);
    run_until(f, "message a end");
    assert_trace(f, "open\nlistening a\nrefused b\nrefused c\nmessage a end\n");
    assert_int_equal(times_in(f->logged, "waiters poll instead"), 1);
    assert_int_equal(fake_connections(f->server), 1);
}

struct refusal {
    struct fake_step script[8];
    const char *why;
};

static const struct refusal refusals[] = {
    {{EXPECT("AUTH"), SEND("-WRONGPASS invalid username-password pair\r\n"), END}, "user \"bob\""},
    {{EXPECT("AUTH"), SEND("-ERR sesame?\r\n"), END}, "AUTH"},
    {{EXPECT("AUTH"), SEND("+OK\r\n+OK\r\n-NOAUTH Authentication required.\r\n"), END}, "PING: NOAUTH"},
    {{EXPECT("AUTH"), SEND("+OK\r\n-NOAUTH Authentication required.\r\n"), END}, "CLIENT SETNAME: NOAUTH"},
    {{EXPECT("AUTH"), SEND("+OK\r\n+OK\r\n-BUSY Redis is busy running a script.\r\n"), END}, "PING: BUSY"},
    {{EXPECT("AUTH"), SEND("+OK\r\n+OK\r\n$4\r\nPONG\r\n"), END}, "PING: an unexpected reply"},
    {{SEND("-ERR max number of clients reached\r\n"), CLOSE}, "refused: ERR max number"},
    {{SEND("-DENIED Redis is running in protected mode\r\n"), CLOSE}, "protected mode"},
    {{SEND("HTTP/1.1 400 Bad Request\r\n\r\n"), END}, "not a Redis server: it says \"HTTP/1.1 400"},
    {{EXPECT("AUTH"), SEND("What is AUTH bob sesame?\r\n"), END}, "not a Redis server"},
    {{EXPECT("AUTH"), CLOSE}, "closed the connection during the handshake"},
    {{EXPECT("AUTH"), SEND("+OK\r\n"), RESET}, "connection lost during the handshake"},
    {{CLOSE}, "closed the connection during the handshake"},
    {{RESET}, "Connection reset by peer"}, /* noticed while connecting, or later */
};

NODE_TEST(a_failed_handshake_is_logged_and_tried_again)
{
    for (size_t i = 0; i < LENGTH(refusals); i++) {
        notice_fixture_begin(f);
        f->wants = "a";
        fake_play(f->server, refusals[i].script);
        fake_play(f->server, refusals[i].script);
        fake_play(f->server, good);
        node_fixture_uri(f, "redis://bob:sesame@127.0.0.1", "");
        notice_fixture_start(f);
        run_until(f, "listening a");
        assert_trace(f, "open\nlistening a\n");
        assert_contains(f->logged, "release notices: open");
        assert_contains(f->logged, refusals[i].why);
        assert_int_equal(times_in(f->logged, "sesame"), 0);
    }
}

NODE_TEST(each_reason_of_a_failed_handshake_is_logged_once)
{
    static const struct fake_step wrong[] = {EXPECT("AUTH"), SEND("-WRONGPASS no\r\n"), END};
    static const struct fake_step other[] = {EXPECT("AUTH"), SEND("-ERR AUTH is off\r\n"), END};
    static const struct fake_step brief[] = {GREET, EXPECT("SUBSCRIBE a"), SEND(SUBSCRIBED("a")), CLOSE};

    notice_fixture_begin(f);
    for (int i = 0; i < 3; i++) fake_play(f->server, wrong);
    fake_play(f->server, other);
    fake_play(f->server, wrong);
    fake_play(f->server, brief); /* what comes behind an open connection is news */
    fake_play(f->server, wrong);
    fake_play(f->server, good);
    node_fixture_uri(f, "redis://:sesame@127.0.0.1", "");
    f->wants = "a";
    notice_fixture_start(f);
    run_until(f, "closed\nopen\nlistening a");
    assert_int_equal(fake_connections(f->server), 8);
    assert_int_equal(times_in(f->logged, "WRONGPASS"), 3);
    assert_int_equal(times_in(f->logged, "is off"), 1);
}

NODE_TEST(a_restart_keeps_the_pause_before_the_next_connection)
{
    static const struct fake_step wrong[] = {EXPECT("AUTH"), SEND("-WRONGPASS no\r\n"), END};

    notice_fixture_begin(f);
    fake_play(f->server, wrong);
    node_fixture_uri(f, "redis://:sesame@127.0.0.1", "");
    f->config.link.reconnect_min_ms = 2;
    f->config.link.reconnect_max_ms = 3600000;
    notice_fixture_start(f);
    while (strstr(f->logged, "WRONGPASS") == NULL) event_base_loop(f->base, EVLOOP_ONCE);
    for (int i = 0; i < 3; i++) {
        subscriber_stop(f->subscriber);
        subscriber_stop(f->subscriber);
        subscriber_start(f->subscriber);
        run_on(f, 20);
    }
    assert_int_equal(fake_connections(f->server), 1);
    assert_trace(f, "");
}

NODE_TEST(errors_that_do_not_concern_notices_are_ignored)
{
    static const char *const answers[] = {
        "+OK\r\n-LOADING Redis is loading the dataset in memory\r\n",
        "+OK\r\n-MASTERDOWN Link with MASTER is down\r\n",
        "-NOPERM no SETNAME\r\n-NOPERM no PING\r\n",
        "-ERR unknown command\r\n-ERR unknown command\r\n",
    };

    for (size_t i = 0; i < LENGTH(answers); i++) {
        const struct fake_step script[] = {EXPECT("CLIENT SETNAME me"), EXPECT("PING"),        SEND(answers[i]),
                                           EXPECT("SUBSCRIBE a"),       SEND(SUBSCRIBED("a")), END};

        notice_fixture_begin(f);
        f->config.link.client_name = "me";
        f->wants = "a";
        fake_play(f->server, script);
        node_fixture_uri(f, "localhost", "");
        notice_fixture_start(f);
        run_until(f, "listening a");
        assert_int_equal(fake_connections(f->server), 1);
    }
}

static const struct refusal ends[] = {
    {{CLOSE}, "the server closed the connection"},
    {{RESET}, "connection lost"},
    {{SEND("*3\r\n$7\r\nmess"), CLOSE}, "the server closed the connection"},
    {{SEND(":1\r\n")}, "a reply that nobody asked for"},
    {{SEND("$3\r\nabc\r\n")}, "a reply that nobody asked for"},
    {{SEND("$-1\r\n")}, "a reply that nobody asked for"},
    {{SEND("+OK\r\n")}, "a reply that nobody asked for"},
    {{SEND("+PONG\r\n")}, "a reply that nobody asked for"},
    {{SEND(PONG)}, "a reply that nobody asked for"},
    {{SEND("*0\r\n")}, "a reply that nobody asked for"},
    {{SEND("*-1\r\n")}, "a reply that nobody asked for"},
    {{SEND("*1\r\n$7\r\nmessage\r\n")}, "a reply that nobody asked for"},
    {{SEND("*3\r\n$7\r\nmessage\r\n$1\r\na\r\n:1\r\n")}, "a reply that nobody asked for"},
    {{SEND("*3\r\n$7\r\nmessage\r\n$-1\r\n$1\r\na\r\n")}, "a reply that nobody asked for"},
    {{SEND("*3\r\n$7\r\nmassage\r\n$1\r\na\r\n$1\r\nb\r\n")}, "a reply that nobody asked for"},
    {{SEND("*4\r\n$8\r\npmessage\r\n$1\r\na\r\n$1\r\na\r\n$1\r\nb\r\n")}, "a reply that nobody asked for"},
    {{SEND("*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n")}, "a reply that nobody asked for"},
    {{SEND(UNSUBSCRIBED("a"))}, "a reply that nobody asked for"},
    {{SEND(SUBSCRIBED("a") SUBSCRIBED("a"))}, "a reply that nobody asked for"},
    {{SEND(SUBSCRIBED("b"))}, "a reply that nobody asked for"},
    {{SEND("*3\r\n$9\r\nsubscribe\r\n$2\r\naa\r\n:1\r\n")}, "a reply that nobody asked for"},
    {{SEND(SUBSCRIBED("a") "-ERR boo\r\n")}, "an error that nobody asked for: ERR boo"},
    {{SEND("-BUSY Redis is busy running a script.\r\n")}, "SUBSCRIBE: BUSY"},
    {{SEND("-NOAUTH Authentication required.\r\n")}, "SUBSCRIBE: NOAUTH"},
    {{SEND("boo\r\n")}, "malformed reply"},
    {{SEND("*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$300000\r\n")}, "too large"},
    {{SEND("*3\r\n$7\r\nmessage\r\n$99999999999\r\n")}, "too large"},
    {{SEND("*100000000\r\n")}, "malformed reply"},
    {{SEND("*9\r\n")}, "too many elements"},
    {{SEND("*1\r\n*1\r\n:1\r\n")}, "nested too deep"},
};

NODE_TEST(whatever_ends_a_connection_the_next_one_is_opened)
{
    for (size_t i = 0; i < LENGTH(ends); i++) {
        const struct fake_step script[] = {GREET, EXPECT("SUBSCRIBE a"), ends[i].script[0], ends[i].script[1], END};

        notice_fixture_begin_with(f, "a", script);
        fake_play(f->server, good);
        run_until(f, "closed\nopen\nlistening a\n");
        assert_contains(f->why, ends[i].why);
        assert_int_equal(times_in(f->trace, "closed"), 1);
    }
}

/* ---- silence ---- */

NODE_TEST(silence_is_probed_by_ping_so_often_at_most)
{
    static const struct fake_step script[] = {GREET,
                                              EXPECT("PING"),
                                              SEND("+PONG\r\n"),
                                              EXPECT("PING"),
                                              SEND("-NOPERM no PING\r\n"),
                                              EXPECT("SUBSCRIBE z"),
                                              SEND(SUBSCRIBED("z")),
                                              EXPECT("PING"),
                                              SEND(PONG),
                                              EXPECT("PING"),
                                              END};
    uint64_t open_us;

    notice_fixture_begin(f);
    f->config.link.timeout_ms = 200;
    f->config.link.idle_ms = 1000;
    fake_play(f->server, script);
    notice_fixture_start(f);
    run_until(f, "open");
    open_us = clock_us(NULL);
    while (fake_commands(f->server) < 4) event_base_loop(f->base, EVLOOP_ONCE);
    assert_true(clock_us(NULL) - open_us >= 1900000);
    assert_int_equal(subscriber_listen(f->subscriber, "z", 1), SUBSCRIBER_ASKED);
    run_until(f, "closed");
    assert_string_equal(f->why, "no answer within 200 ms: frozen, or cut off");
    assert_trace(f, "open\nlistening z\nclosed\n");
    assert_int_equal(fake_commands(f->server), 7);
}

NODE_TEST(a_server_that_does_not_answer_is_dropped)
{
    static const struct fake_step silent[] = {END};
    static const struct fake_step frozen[] = {GREET, EXPECT("SUBSCRIBE a"), END};

    notice_fixture_begin(f);
    f->config.link.timeout_ms = f->config.link.connect_ms = 50;
    f->wants = "a";
    fake_play(f->server, silent);
    fake_play(f->server, frozen);
    fake_play(f->server, frozen);
    notice_fixture_start(f);
    run_until(f, "open\nclosed\nopen\nclosed\n");
    assert_contains(f->logged, "no answer to the handshake within 50 ms");
    assert_string_equal(f->why, "no answer within 50 ms: frozen, or cut off");
}

/* ---- from inside callbacks ---- */

static const struct fake_step eventful[] = {GREET,
                                            EXPECT("SUBSCRIBE a"),
                                            EXPECT("SUBSCRIBE b"),
                                            SEND(SUBSCRIBED("a") NOPERM MESSAGE("a", "one") MESSAGE("a", "two")),
                                            CLOSE,
                                            END};
static const char *const moments[] = {"open", "listening a", "refused b", "message a one", "message a two", "closed"};
enum { N_MOMENTS = LENGTH(moments) };

NODE_TEST(any_callback_may_stop_restart_or_free_the_subscriber)
{
    static const enum act acts[] = {ACT_STOP, ACT_RESTART, ACT_FREE};

    for (size_t i = 0; i < (size_t)N_MOMENTS * 3; i++) {
        const char *moment = moments[i / 3];
        unsigned ends_wanted = strcmp(moment, "closed") == 0 ? 2 : 1;

        notice_fixture_begin_with(f, "ab", eventful);
        fake_play(f->server, eventful);
        f->act_at = moment;
        f->act = acts[i % 3];
        run_until(f, moment);
        if (f->act == ACT_FREE) {
            run_on(f, 10);
            assert_int_equal(f->after_free, 0);
            f->freed = false;
        } else {
            if (f->act == ACT_STOP) {
                size_t before = f->trace_length;

                assert_false(subscriber_is_open(f->subscriber));
                assert_int_equal(subscriber_listen(f->subscriber, "a", 1), SUBSCRIBER_NOT_OPEN);
                subscriber_forget(f->subscriber, "a", 1);
                run_on(f, 10);
                assert_int_equal(f->trace_length, before);
                subscriber_start(f->subscriber);
            }
            /* The old connection reports nothing more. */
            while (times_in(f->trace, "closed\n") < ends_wanted) event_base_loop(f->base, EVLOOP_ONCE);
            assert_int_equal(times_in(f->trace, "open\n"), 2);
            assert_int_equal(fake_connections(f->server), 2);
        }
    }
}

/* An owner may free it when something is logged. */
static void log_then_act(int level, const char *text, void *arg)
{
    struct node_fixture *f = arg;

    node_fixture_log(level, text, f);
    if (strstr(text, f->act_at) != NULL) notice_fixture_act(f);
}

NODE_TEST(the_log_callback_may_free_the_subscriber)
{
    static const struct fake_step wrong[] = {EXPECT("CLIENT"), SEND("-NOAUTH no\r\n"), END};
    static const char *const lines[] = {"NOAUTH", "open", "NOPERM", "closed the connection"};

    for (size_t i = 0; i < LENGTH(lines); i++) {
        notice_fixture_begin(f);
        f->wants = "ab";
        f->act = ACT_FREE;
        f->act_at = lines[i];
        fake_play(f->server, wrong);
        fake_play(f->server, eventful);
        f->config.link.log = log_then_act;
        f->on_line = NULL;
        notice_fixture_start(f);
        while (f->subscriber != NULL) event_base_loop(f->base, EVLOOP_ONCE);
        run_on(f, 10);
    }
}

/* ---- bounds ---- */

NODE_TEST(a_full_subscriber_refuses_until_the_next_connection)
{
    static char name[SUBSCRIBER_CHANNEL_MAX + 1];
    static const struct fake_step script[] = {GREET, END};
    int result = SUBSCRIBER_ASKED;
    unsigned asked = 0;

    memset(name, 'n', sizeof(name));
    notice_fixture_begin_with(f, "", script);
    fake_play(f->server, good);
    assert_int_equal(subscriber_listen(f->subscriber, "a", 1), SUBSCRIBER_NOT_OPEN);
    run_until(f, "open");
    assert_int_equal(subscriber_listen(f->subscriber, name, sizeof(name)), SUBSCRIBER_FULL);
    while (result == SUBSCRIBER_ASKED && asked < 1000) {
        result = subscriber_listen(f->subscriber, name, sizeof(name) - 1);
        asked++;
    }
    assert_int_equal(result, SUBSCRIBER_FULL);
    assert_in_range(asked, CONN_OUT_MAX / sizeof(name) / 2, CONN_OUT_MAX / sizeof(name) + 1);
    /* Channels that were sent but not answered fill the list, too. */
    while (fake_commands(f->server) < 2) event_base_loop(f->base, EVLOOP_ONCE);
    run_on(f, 50);
    assert_int_equal(subscriber_listen(f->subscriber, name, sizeof(name) - 1), SUBSCRIBER_FULL);
    f->wants = "a";
    subscriber_stop(f->subscriber);
    subscriber_start(f->subscriber);
    run_until(f, "open\nlistening a\n");
}

NODE_TEST(whatever_allocation_fails_the_subscriber_listens_in_the_end)
{
    bool failed = true;

    for (long turn = 0; failed; turn++) {
        notice_fixture_begin(f);
        node_fixture_uri(f, "localhost", "");
        for (int i = 0; i < 3; i++) fake_play(f->server, good);
        f->config.link.client_name = "me";
        f->counted.until_failure = turn;
        if (notice_fixture_create(f) != NULL) {
            subscriber_start(f->subscriber);
            for (unsigned opens = 0; strstr(f->trace, "listening a") == NULL;) {
                event_base_loop(f->base, EVLOOP_ONCE);
                if (times_in(f->trace, "open\n") == opens) continue;
                opens++;
                while (subscriber_listen(f->subscriber, "a", 1) == SUBSCRIBER_NOMEM) continue;
            }
        }
        failed = f->counted.until_failure < 0;
    }
}
