/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_subscriber.c - the connection for release notices, against a server that plays scripts
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include <cmocka.h>

#include "notice_world.h"
#include "redis/link/conn.h"

/* A whole good connection that listens to "a". */
static const struct fake_step good[] = {GREET, EXPECT("SUBSCRIBE a"), SEND(SUBSCRIBED("a")), END};

/* ---- notices ---- */

static void test_notices(void **state)
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
    struct notices notices;
    (void)state;
    notices_begin(&notices);
    notices.wants = "ab";
    fake_play(notices.world.server, script);
    world_uri(&notices.world, "redis://bob:sesame@127.0.0.1", "/7");
    notices_start(&notices);
    notices.act_at = "message  ";
    notices.act = ACT_FORGET;
    run_until(&notices.world, "message b end");
    assert_story(&notices.world, "open\nlistening a\nmessage a one\nlistening b\n"
                                 "message a\\x00\\x0a \\x0d\\x0a\\x00\\xff\n"
                                 "message b two\nmessage a two\nmessage  \nmessage a new\nmessage b end\n");
    assert_int_equal(fake_connections(notices.world.server), 1);
    notices_end(&notices);
}

static const char conversation[] = SUBSCRIBED("a") MESSAGE("a", "one") PONG NOPERM MESSAGE("a", "two");
static const char conversation_story[] =
    "open\nlistening a\nmessage a one\nclosed\nopen\nlistening a\nmessage a one\nclosed\n";

/* Nobody asked for that PONG: so far it must come in whatever packets, and no further. */
static void test_split(void **state)
{
    (void)state;
    for (size_t at = 1; at < sizeof conversation - 1; at++) {
        const struct fake_step script[] = {
            GREET,    EXPECT("SUBSCRIBE a"),   {FAKE_SEND, (unsigned)at, conversation, NULL},
            SLEEP(1), SEND(conversation + at), END};
        const struct fake_step pieces[] = {GREET, EXPECT("SUBSCRIBE a"), STEP(FAKE_PIECES, conversation), END};
        struct notices notices;
        notices_begin_with(&notices, "a", script);
        fake_play(notices.world.server, pieces);
        run_until(&notices.world, conversation_story);
        assert_holds(notices.why, "nobody asked");
        notices_end(&notices);
    }
}

static void test_many_in_one_packet(void **state)
{
    enum { N = 2000 };
    static const char one[] = MESSAGE("a", "one");
    char *text = malloc(N * sizeof one + 1);
    struct notices notices;
    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < N; i++) memcpy(text + i * (sizeof one - 1), one, sizeof one);
    const struct fake_step script[] = {GREET,      EXPECT("SUBSCRIBE a"),     SEND(SUBSCRIBED("a")),
                                       SEND(text), SEND(MESSAGE("a", "end")), END};
    notices_begin_with(&notices, "a", script);
    run_until(&notices.world, "message a one\n");
    run_until(&notices.world, "message a end\n");
    assert_int_equal(times_in(notices.world.story, "message a one\n"), N);
    notices_end(&notices);
    free(text);
}

/* The lost-wake race: between a forget and a later listen nothing was heard, whatever was confirmed before. */
static void test_forgotten_meanwhile(void **state)
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
    struct notices notices;
    (void)state;
    notices_begin_with(&notices, "ab", script);
    run_until(&notices.world, "open");
    subscriber_forget(notices.subscriber, "a", 1);
    assert_int_equal(subscriber_listen(notices.subscriber, "a", 1), SUBSCRIBER_ASKED);
    subscriber_forget(notices.subscriber, "b", 1);
    run_until(&notices.world, "message a end");
    assert_story(&notices.world, "open\nmessage z mid\nlistening a\nmessage a end\n");
    notices_end(&notices);
}

static void test_refused(void **state)
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
    struct notices notices;
    (void)state;
    notices_begin(&notices);
    notices.wants = "abcd";
    fake_play(notices.world.server, script);
    world_uri(&notices.world, "redis://:sesame@127.0.0.1", "");
    notices_start(&notices);
    notices.act_at = "refused c";
    notices.act = ACT_LISTEN;
    run_until(&notices.world, "refused c");
    assert_holds(notices.why, "SUBSCRIBE: NOPERM No permissions to access a channel (give this user the right");
    run_until(&notices.world, "message a end");
    assert_story(&notices.world,
                 "open\nlistening a\nrefused b\nrefused c\nrefused d\nlistening z\nmessage a end\n");
    assert_string_equal(notices.why, "SUBSCRIBE: refused");
    /* Told once for all the channels. */
    assert_int_equal(times_in(notices.world.logged, "NOPERM"), 1);
    assert_int_equal(times_in(notices.world.logged, "sesame"), 0);
    notices_end(&notices);
}

/* ---- beginning and end ---- */

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
    {{EXPECT("AUTH"), SEND("+OK\r\n+OK\r\n$4\r\nPONG\r\n"), END}, "PING: a reply that Redis would not give"},
    {{SEND("-ERR max number of clients reached\r\n"), CLOSE}, "maxclients"},
    {{SEND("-DENIED Redis is running in protected mode\r\n"), CLOSE}, "protected mode"},
    {{SEND("HTTP/1.1 400 Bad Request\r\n\r\n"), END}, "not a Redis server: it says \"HTTP/1.1 400"},
    {{EXPECT("AUTH"), SEND("What is AUTH bob sesame?\r\n"), END}, "not a Redis server"},
    {{EXPECT("AUTH"), CLOSE}, "closed the connection during the handshake"},
    {{EXPECT("AUTH"), SEND("+OK\r\n"), RESET}, "connection lost during the handshake"},
    {{CLOSE}, "closed the connection during the handshake"},
    {{RESET}, "Connection reset by peer"}, /* noticed while connecting, or later */
};

static void test_not_let_in(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        struct notices notices;
        notices_begin(&notices);
        notices.wants = "a";
        fake_play(notices.world.server, refusals[i].script);
        fake_play(notices.world.server, refusals[i].script);
        fake_play(notices.world.server, good);
        world_uri(&notices.world, "redis://bob:sesame@127.0.0.1", "");
        notices_start(&notices);
        run_until(&notices.world, "listening a");
        assert_story(&notices.world, "open\nlistening a\n");
        assert_holds(notices.world.logged, refusals[i].why);
        assert_int_equal(times_in(notices.world.logged, "sesame"), 0);
        notices_end(&notices);
    }
}

/* A wrong password is told once, another reason again; and a pause is kept where somebody stops and starts. */
static void test_wrong_password(void **state)
{
    static const struct fake_step wrong[] = {EXPECT("AUTH"), SEND("-WRONGPASS no\r\n"), END};
    static const struct fake_step other[] = {EXPECT("AUTH"), SEND("-ERR AUTH is off\r\n"), END};
    struct notices notices;
    (void)state;
    notices_begin(&notices);
    for (int i = 0; i < 3; i++) fake_play(notices.world.server, wrong);
    fake_play(notices.world.server, other);
    fake_play(notices.world.server, wrong);
    fake_play(notices.world.server, good);
    world_uri(&notices.world, "redis://:sesame@127.0.0.1", "");
    notices.wants = "a";
    notices_start(&notices);
    run_until(&notices.world, "listening a");
    assert_int_equal(fake_connections(notices.world.server), 6);
    assert_int_equal(times_in(notices.world.logged, "WRONGPASS"), 2);
    assert_int_equal(times_in(notices.world.logged, "is off"), 1);
    notices_end(&notices);

    notices_begin(&notices);
    fake_play(notices.world.server, wrong);
    world_uri(&notices.world, "redis://:sesame@127.0.0.1", "");
    notices.config.reconnect_min_ms = 2;
    notices.config.reconnect_max_ms = 3600000;
    notices_start(&notices);
    while (!strstr(notices.world.logged, "WRONGPASS")) event_base_loop(notices.world.base, EVLOOP_ONCE);
    for (int i = 0; i < 3; i++) {
        subscriber_stop(notices.subscriber);
        subscriber_stop(notices.subscriber);
        subscriber_start(notices.subscriber);
        run_on(&notices.world, 20);
    }
    assert_int_equal(fake_connections(notices.world.server), 1);
    assert_story(&notices.world, "");
    notices_end(&notices);
}

/* No matter for notices. */
static void test_odd_servers(void **state)
{
    static const char *const answers[] = {
        "+OK\r\n-LOADING Redis is loading the dataset in memory\r\n",
        "+OK\r\n-MASTERDOWN Link with MASTER is down\r\n",
        "-NOPERM no SETNAME\r\n-NOPERM no PING\r\n",
        "-ERR unknown command\r\n-ERR unknown command\r\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        const struct fake_step script[] = {EXPECT("CLIENT SETNAME me"), EXPECT("PING"),        SEND(answers[i]),
                                           EXPECT("SUBSCRIBE a"),       SEND(SUBSCRIBED("a")), END};
        struct notices notices;
        notices_begin(&notices);
        notices.config.client_name = "me";
        notices.wants = "a";
        fake_play(notices.world.server, script);
        world_uri(&notices.world, "localhost", "");
        notices_start(&notices);
        run_until(&notices.world, "listening a");
        assert_int_equal(fake_connections(notices.world.server), 1);
        notices_end(&notices);
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

/* Whatever the server does, the subscriber is open again on a new connection. */
static void test_ends(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        const struct fake_step script[] = {GREET, EXPECT("SUBSCRIBE a"), ends[i].script[0], ends[i].script[1],
                                           END};
        struct notices notices;
        notices_begin_with(&notices, "a", script);
        fake_play(notices.world.server, good);
        run_until(&notices.world, "closed\nopen\nlistening a\n");
        assert_holds(notices.why, ends[i].why);
        assert_int_equal(times_in(notices.world.story, "closed"), 1);
        notices_end(&notices);
    }
}

/* ---- silence ---- */

static void test_ping(void **state)
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
    struct notices notices;
    (void)state;
    notices_begin(&notices);
    notices.config.timeout_ms = 200;
    fake_play(notices.world.server, script);
    notices_start(&notices);
    run_until(&notices.world, "open");
    uint64_t open_us = clock_us(NULL);
    while (fake_commands(notices.world.server) < 4) event_base_loop(notices.world.base, EVLOOP_ONCE);
    /* Two of them: at most one a second, whatever the timeout. */
    assert_true(clock_us(NULL) - open_us >= 1900000);
    assert_int_equal(subscriber_listen(notices.subscriber, "z", 1), SUBSCRIBER_ASKED);
    run_until(&notices.world, "closed");
    assert_string_equal(notices.why, "no answer within 200 ms: frozen, or cut off");
    assert_story(&notices.world, "open\nlistening z\nclosed\n");
    assert_int_equal(fake_commands(notices.world.server), 7);
    notices_end(&notices);
}

static void test_no_answer(void **state)
{
    static const struct fake_step silent[] = {END};
    static const struct fake_step deaf[] = {GREET, EXPECT("SUBSCRIBE a"), END};
    struct notices notices;
    (void)state;
    notices_begin(&notices);
    notices.config.timeout_ms = 50;
    notices.wants = "a";
    fake_play(notices.world.server, silent);
    fake_play(notices.world.server, deaf);
    fake_play(notices.world.server, deaf);
    notices_start(&notices);
    run_until(&notices.world, "open\nclosed\nopen\nclosed\n");
    assert_holds(notices.world.logged, "no answer to the handshake within 50 ms");
    assert_string_equal(notices.why, "no answer within 50 ms: frozen, or cut off");
    notices_end(&notices);
}

/* ---- from inside callbacks ---- */

static const struct fake_step eventful[] = {
    GREET,
    EXPECT("SUBSCRIBE a"),
    EXPECT("SUBSCRIBE b"),
    SEND(SUBSCRIBED("a") NOPERM MESSAGE("a", "one") MESSAGE("a", "two")),
    CLOSE,
    END};
static const char *const moments[] = {"open",          "listening a",   "refused b",
                                      "message a one", "message a two", "closed"};
enum { N_MOMENTS = sizeof moments / sizeof moments[0] };

static void test_act_inside(void **state)
{
    static const enum act acts[] = {ACT_STOP, ACT_RESTART, ACT_FREE};
    (void)state;
    for (size_t i = 0; i < (size_t)N_MOMENTS * 3; i++) {
        const char *moment = moments[i / 3];
        struct notices notices;
        notices_begin_with(&notices, "ab", eventful);
        fake_play(notices.world.server, eventful);
        notices.act_at = moment;
        notices.act = acts[i % 3];
        run_until(&notices.world, moment);
        if (notices.act == ACT_FREE) {
            run_on(&notices.world, 10);
            assert_int_equal(notices.world.after_free, 0);
            notices.world.freed = false;
        } else {
            if (notices.act == ACT_STOP) {
                size_t told = notices.world.told;
                assert_false(subscriber_is_open(notices.subscriber));
                assert_int_equal(subscriber_listen(notices.subscriber, "a", 1), SUBSCRIBER_NOT_OPEN);
                subscriber_forget(notices.subscriber, "a", 1);
                run_on(&notices.world, 10);
                assert_int_equal(notices.world.told, told);
                assert_string_equal(subscriber_why(notices.subscriber), "stopped");
                subscriber_start(notices.subscriber);
            }
            /* It is a new connection, and the old one says no more. */
            unsigned ends_wanted = strcmp(moment, "closed") == 0 ? 2 : 1;
            while (times_in(notices.world.story, "closed\n") < ends_wanted)
                event_base_loop(notices.world.base, EVLOOP_ONCE);
            assert_int_equal(times_in(notices.world.story, "open\n"), 2);
            assert_int_equal(fake_connections(notices.world.server), 2);
        }
        notices_end(&notices);
    }
}

/* As an owner may who gives up when something is logged. */
static void log_then_act(void *arg, int level, const char *text)
{
    struct notices *notices = arg;
    world_log(&notices->world, level, text);
    if (strstr(text, notices->act_at)) notices_act(notices);
}

static void test_free_inside_log(void **state)
{
    static const struct fake_step wrong[] = {EXPECT("CLIENT"), SEND("-NOAUTH no\r\n"), END};
    static const char *const lines[] = {"NOAUTH", "open", "NOPERM", "closed the connection"};
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct notices notices;
        notices_begin(&notices);
        notices.wants = "ab";
        notices.act = ACT_FREE;
        notices.act_at = lines[i];
        fake_play(notices.world.server, wrong);
        fake_play(notices.world.server, eventful);
        notices.log = log_then_act;
        notices.world.on_line = NULL;
        notices_start(&notices);
        while (notices.subscriber) event_base_loop(notices.world.base, EVLOOP_ONCE);
        run_on(&notices.world, 10);
        notices_end(&notices);
    }
}

/* ---- bounds ---- */

static void test_full(void **state)
{
    static char name[SUBSCRIBER_CHANNEL_MAX + 1];
    static const struct fake_step script[] = {GREET, END};
    struct notices notices;
    int result = SUBSCRIBER_ASKED;
    unsigned asked = 0;
    (void)state;
    memset(name, 'n', sizeof name);
    notices_begin_with(&notices, "", script);
    fake_play(notices.world.server, good);
    assert_int_equal(subscriber_listen(notices.subscriber, "a", 1), SUBSCRIBER_NOT_OPEN);
    run_until(&notices.world, "open");
    assert_int_equal(subscriber_listen(notices.subscriber, name, sizeof name), SUBSCRIBER_FULL);
    while (result == SUBSCRIBER_ASKED && asked < 1000) {
        result = subscriber_listen(notices.subscriber, name, sizeof name - 1);
        asked++;
    }
    assert_int_equal(result, SUBSCRIBER_FULL);
    assert_in_range(asked, CONN_OUT_MAX / sizeof name / 2, CONN_OUT_MAX / sizeof name + 1);
    /* Sent, but not answered, they fill the list all the same. */
    while (fake_commands(notices.world.server) < 2) event_base_loop(notices.world.base, EVLOOP_ONCE);
    run_on(&notices.world, 50);
    assert_int_equal(subscriber_listen(notices.subscriber, name, sizeof name - 1), SUBSCRIBER_FULL);
    /* What is full is of use again on the next connection. */
    notices.wants = "a";
    subscriber_stop(notices.subscriber);
    subscriber_start(notices.subscriber);
    run_until(&notices.world, "open\nlistening a\n");
    notices_end(&notices);
}

/* One allocation fails, whichever it is: later all is well, or there was no subscriber in the first place. */
static void test_nomem(void **state)
{
    bool failed = true;
    (void)state;
    for (long turn = 0; failed; turn++) {
        struct notices notices;
        notices_begin(&notices);
        world_uri(&notices.world, "localhost", "");
        for (int i = 0; i < 3; i++) fake_play(notices.world.server, good);
        notices.config.client_name = "me";
        notices.world.counted.until_failure = turn;
        if (notices_create(&notices)) {
            subscriber_start(notices.subscriber);
            for (unsigned opens = 0; !strstr(notices.world.story, "listening a");) {
                event_base_loop(notices.world.base, EVLOOP_ONCE);
                if (times_in(notices.world.story, "open\n") == opens) continue;
                opens++;
                while (subscriber_listen(notices.subscriber, "a", 1) == SUBSCRIBER_NOMEM) continue;
            }
        }
        failed = notices.world.counted.until_failure < 0;
        notices_end(&notices);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_notices),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_many_in_one_packet),
        cmocka_unit_test(test_forgotten_meanwhile),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_not_let_in),
        cmocka_unit_test(test_wrong_password),
        cmocka_unit_test(test_odd_servers),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_ping),
        cmocka_unit_test(test_no_answer),
        cmocka_unit_test(test_act_inside),
        cmocka_unit_test(test_free_inside_log),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_nomem),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
