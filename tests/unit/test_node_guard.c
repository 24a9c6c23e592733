/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_node_guard.c - a node and its guard, and the rights that it asks for first, against a server that plays
 * scripts
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quorlock/quorlock.h>

#include "dialect_fixture.h"
#include "node_fixture.h"

#define ASK_GUARD EXPECT("EVAL local n, set, lease")
#define SEEN      "1|3|s|500|aaaa|bbbb|0"
#define CLEAR     "*4\r\n$4\r\nkept\r\n:0\r\n:500\r\n$21\r\n" SEEN "\r\n"
/* The end of the quarantine is the server's business: only what is left counts. */
#define SEEN_LATER                     "1|3|s|500|aaaa|bbbb|7"
#define SEEN_RESTARTED                 "2|3|s|500|aaaa|bbbb|9000|500|found|6000|restart|0|0"
#define SEEN_FIRST                     "2|3|s|500|aaaa|bbbb|9000|500|found|6000|first|0|0"
#define REMAINS(why, ms, length, seen) "*4\r\n$" why "\r\n:" ms "\r\n:500\r\n$" length "\r\n" seen "\r\n"
#define KEPT(ms)                       REMAINS("4\r\nkept", ms, "21", SEEN_LATER)
#define LOST(ms)                       REMAINS("4\r\nlost", ms, "51", SEEN_RESTARTED)
#define NEW(ms)                        REMAINS("3\r\nnew", ms, "49", SEEN_FIRST)
#define GONE                           "-GUARD the guard changed or is gone: the server may have lost its memory\r\n"

#define UNTRACKED "-ERR no\r\n-ERR no\r\n-ERR no\r\n"
#define TRACKS                                                                                                         \
    EXPECT("HELLO 3"), SEND("%1\r\n$5\r\nproto\r\n:3\r\n"), EXPECT("CLIENT TRACKING ON OPTIN"), SEND("+OK\r\n"),       \
        EXPECT("CLIENT CACHING YES"), SEND("+OK\r\n")
#define ALL_CHANGED   ">2\r\n$10\r\ninvalidate\r\n_\r\n"
#define GUARD_TOUCHED ">2\r\n$10\r\ninvalidate\r\n*1\r\n$14\r\nquorlock:guard\r\n"
#define OTHER_TOUCHED ">2\r\n$10\r\ninvalidate\r\n*1\r\n$5\r\nother\r\n"
#define COMPARE       EXPECT("CLIENT CACHING YES"), SEND("+OK\r\n"), EXPECT("GET quorlock:guard")
#define KEY_TOUCHED   ">2\r\n$10\r\ninvalidate\r\n*1\r\n$3\r\nkey\r\n"
#define READ_KEYS     EXPECT("CLIENT CACHING YES"), SEND("+OK\r\n"), EXPECT("EXISTS key")
#define EXTENDED      "*2\r\n:1\r\n:1700000000000001\r\n"
#define UP_TO_RIGHTS                                                                                                   \
    EXPECT("CLIENT"), EXPECT("INFO server"), EXPECT("INFO replication"), EXPECT("INFO memory"), EXPECT("EVAL"),        \
        SEND("+OK\r\n$36\r\nredis_version:7.0.0\r\nrun_id:12345678\r\n$34\r\nrole:master\r\nmaster_replid:"            \
             "1234567\r\n$0\r\n\r\n")

static const struct fake_step clear[] = {SHAKE, ASK_GUARD, SEND(CLEAR), END};

/* Opens a node that keeps a guard in that mode. */
static void begin(struct node_fixture *f, uint32_t mode, const struct fake_step *script)
{
    node_fixture_open(f);
    f->config.guard = mode;
    f->config.n_nodes = 3;
    f->config.set = "s";
    fake_play(f->server, script);
    assert_non_null(node_fixture_new_node(f));
}

/* ---- at the handshake ---- */

NODE_TEST(scripts_carry_the_guard_that_the_handshake_saw)
{
    static const struct fake_step script[] = {SHAKE,
                                              ASK_GUARD,
                                              SEND(CLEAR),
                                              EXPECT("SET key owner NX PX 30000"),
                                              SEND("+OK\r\n"),
                                              EXPECT("EVAL extend 2 key quorlock:guard 1 owner 30000 " SEEN),
                                              SEND("*2\r\n:1\r\n:1700000000000001\r\n"),
                                              EXPECT("EVAL release 2 key quorlock:guard 1 owner 30000 " SEEN),
                                              SEND(":1\r\n"),
                                              END};

    begin(f, QUORLOCK_GUARD_CONNECTION, script);
    run_until(f, "ready 1");
    assert_string_equal(node_run_id(f->node), "aaaa");
    assert_int_equal(node_quarantined_until_us(f->node), 0);
    /* A plain acquire is a SET without it. */
    ask_sent(f, 1, OP_ACQUIRE, 0);
    ask_sent(f, 2, OP_EXTEND, 0);
    ask_sent(f, 3, OP_RELEASE, 0);
    run_until(f, "3 yes");
    assert_trace(f, "ready 1\n1 yes\n2 yes\n3 yes\n");
}

NODE_TEST(without_a_guard_nothing_is_asked)
{
    static const struct fake_step script[] = {SHAKE, EXPECT("EVAL extend 1 key 1 owner 30000"), SEND(":1\r\n"), END};

    begin(f, QUORLOCK_GUARD_OFF, script);
    run_until(f, "ready 1");
    assert_int_equal(fake_commands(f->server), 4); /* SETNAME, two INFO, EVAL */
    ask_sent(f, 1, OP_EXTEND, 0);
    run_until(f, "1 yes");
    assert_string_equal(node_run_id(f->node), "aaaa");
}

static const struct {
    const char *reply, *trace, *why;
} refusals[] = {
    {"-NOPERM this user\r\n", "down auth\n", "restart guard (key quorlock:guard): NOPERM"},
    {"-READONLY You can't\r\n", "down replica\n", "READONLY"},
    {"-LOADING Redis is\r\n", "down temporary\n", "LOADING"},
    {"-OOM command\r\n", "down refused\n", "OOM"},
    {"-MISCONF x\r\n", "down refused\n", "MISCONF"},
    {"-ERR what ever\r\n", "down guard\n", "restart guard (key quorlock:guard): ERR what ever"},
    {"*4\r\n$8\r\nconflict\r\n$1\r\n5\r\n$1\r\nt\r\n$4\r\n2000\r\n", "down config\n",
     "its guard says 5 nodes, set t, max lease 2000 ms; this client says 3 nodes, set s, max lease 30000 ms: give all "
     "clients the same (here --max-lease 2s or QUORLOCK_MAX_LEASE=2s; --set-name t; all 5 nodes), or change the "
     "nodes by 'quorlock bootstrap --reconfigure --max-lease 30s'"},
    {"*4\r\n$8\r\nconflict\r\n$1\r\n3\r\n$16\r\n0123456789abcdef\r\n$5\r\n30000\r\n", "down config\n",
     "its guard says 3 nodes, a set without name, max lease 30000 ms; this client says 3 nodes, set s, max lease 30000 "
     "ms: give all clients the same (here the same addresses), or change"},
    {"*2\r\n$8\r\nconflict\r\n$3\r\n2|x\r\n", "down config\n", "\"2|x\""},
    {"*1\r\n$8\r\nconflict\r\n", "down proto\n", "does not fit"},
    {"*4\r\n$8\r\nconflict\r\n:5\r\n$1\r\nt\r\n$4\r\n2000\r\n", "down proto\n", "does not fit"},
    {"*0\r\n", "down proto\n", "does not fit"},
    {":1\r\n", "down proto\n", "does not fit"},
    {"+OK\r\n", "down proto\n", "does not fit"},
    {"$-1\r\n", "down proto\n", "does not fit"},
    {"*4\r\n$4\r\nkept\r\n:-1\r\n:500\r\n$1\r\nx\r\n", "down proto\n", "does not fit"},
    {"*4\r\n$4\r\nkept\r\n:99999999999\r\n:500\r\n$1\r\nx\r\n", "down proto\n", "does not fit"},
    {"*4\r\n$4\r\nkept\r\n:0\r\n:0\r\n$1\r\nx\r\n", "down proto\n", "does not fit"},
    {"*4\r\n$4\r\nkept\r\n:0\r\n:500\r\n$0\r\n\r\n", "down proto\n", "does not fit"},
    {"*4\r\n$4\r\nkept\r\n$1\r\n0\r\n:500\r\n$1\r\nx\r\n", "down proto\n", "does not fit"},
    {"*3\r\n$4\r\nkept\r\n:0\r\n:500\r\n", "down proto\n", "does not fit"},
};

NODE_TEST(a_guard_that_cannot_be_read_keeps_the_node_down)
{
    for (size_t i = 0; i < LENGTH(refusals); i++) {
        struct fake_step script[] = {SHAKE, ASK_GUARD, SEND(refusals[i].reply), END};

        begin(f, QUORLOCK_GUARD_STRICT, script);
        fake_play(f->server, clear);
        run_until(f, "down");
        assert_trace(f, refusals[i].trace);
        assert_contains(f->why, refusals[i].why);
        assert_int_equal(ask(f, 1, OP_ACQUIRE, 0), NODE_NOT_READY);
        run_until(f, "ready 1");
    }
}

/* It must be compared whole. */
NODE_TEST(a_guard_that_is_too_long_does_not_fit)
{
    static char reply[GUARD_TEXT_SIZE + 64];
    char text[GUARD_TEXT_SIZE + 1];

    memset(text, 'x', GUARD_TEXT_SIZE);
    text[GUARD_TEXT_SIZE] = '\0';
    snprintf(reply, sizeof(reply), "*4\r\n$4\r\nkept\r\n:0\r\n:500\r\n$%d\r\n%s\r\n", GUARD_TEXT_SIZE, text);
    struct fake_step script[] = {SHAKE, ASK_GUARD, SEND(reply), END};
    begin(f, QUORLOCK_GUARD_STRICT, script);
    run_until(f, "down proto");
}

#define ASK "*1\r\n$3\r\nask\r\n"

/* The look wrote nothing, and what is to be written is asked for when the rest of the handshake went well. */
NODE_TEST(a_guard_that_is_to_be_written_is_asked_for_again)
{
    static const struct fake_step written[] = {SHAKE, ASK_GUARD, SEND(ASK), ASK_GUARD, SEND(CLEAR), END};
    static const struct fake_step never[] = {SHAKE, ASK_GUARD, SEND(ASK), ASK_GUARD, SEND(ASK), END};

    begin(f, QUORLOCK_GUARD_CONNECTION, written);
    run_until(f, "ready 1");
    begin(f, QUORLOCK_GUARD_CONNECTION, never);
    run_until(f, "down proto");
}

NODE_TEST(a_guard_that_comes_before_it_was_asked_for_is_refused)
{
    static const struct fake_step script[] = {UP_TO_RIGHTS, SEND("$0\r\n\r\n" UNTRACKED ASK CLEAR), END};

    begin(f, QUORLOCK_GUARD_CONNECTION, script);
    run_until(f, "down");
    assert_trace(f, "down proto\n");
    assert_contains(f->why, "nobody asked for");
}

NODE_TEST(a_server_without_a_run_id_is_refused)
{
    static const struct fake_step script[] = {SHAKE_AS("redis_version:7.0.0\r\n", NULL), ASK_GUARD, END};

    begin(f, QUORLOCK_GUARD_CONNECTION, script);
    run_until(f, "down proto");
    assert_contains(f->why, "run_id");
}

#define STAND_IN                                                                                                       \
    EXPECT("CLIENT"), EXPECT("INFO server"), SEND("+OK\r\n-ERR section (server) is not supported\r\n"),                \
        EXPECT("INFO replication"), EXPECT("INFO memory"), EXPECT("EVAL"), EXPECT("HELLO 3"),                          \
        SEND("-ERR no INFO\r\n-ERR no INFO\r\n$0\r\n\r\n")

NODE_TEST(a_server_that_is_none_is_named)
{
    static const struct fake_step script[] = {STAND_IN, SEND("%1\r\n$6\r\nserver\r\n$9\r\nminiredis\r\n"), END};

    begin(f, QUORLOCK_GUARD_CONNECTION, script);
    run_until(f, "down proto");
    assert_contains(f->why, "not a Redis server, but miniredis: INFO: ");
}

/* Whatever else goes wrong at such a server, the first that it lacks is the reason. */
NODE_TEST(what_a_server_lacks_is_the_reason_whatever_it_says_to_hello)
{
    static const struct fake_step scripts[][16] = {{STAND_IN, SEND("*100\r\n"), END}, {STAND_IN, CLOSE}};
    static const char *const traces[] = {"down proto", "down other"};

    for (size_t i = 0; i < LENGTH(scripts); i++) {
        begin(f, QUORLOCK_GUARD_CONNECTION, scripts[i]);
        run_until(f, traces[i]);
        assert_contains(f->why, "section (server) is not supported");
    }
}

NODE_TEST(a_server_without_a_run_id_is_refused_whatever_the_guard)
{
    static const struct fake_step script[] = {SHAKE_AS("redis_version:7.0.0\r\n", NULL), END};

    begin(f, QUORLOCK_GUARD_OFF, script);
    run_until(f, "down proto");
    assert_contains(f->why, "INFO has no run_id");
}

/* ---- rights ---- */

/* A lock that could not be renewed or released is not acquired. */
NODE_TEST(a_missing_right_keeps_the_node_down)
{
    static const struct {
        const char *reply, *trace, *why;
    } answers[] = {
        {"$7\r\nPEXPIRE\r\n", "down auth\n", "user \"default\" may not run PEXPIRE, so locks could not be renewed"},
        {"$8\r\nPTTL DEL\r\n", "down auth\n", "(ACL SETUSER default +pttl +del; or undo its rename-command)"},
        {"$8\r\nPEXPIREX\r\n", "down proto\n", "does not fit"},
        {"$6\r\nsesame\r\n", "down proto\n", "does not fit"},
        {"$9\r\nDEL  PTTL\r\n", "down proto\n", "does not fit"},
        {":0\r\n", "down proto\n", "EVAL: an unexpected reply"},
        {"-NOPERM this user has no permissions to run the 'eval' command\r\n", "down auth\n", "EVAL: NOPERM"},
    };

    for (size_t i = 0; i < LENGTH(answers); i++) {
        struct fake_step script[] = {UP_TO_RIGHTS, SEND(answers[i].reply), END};

        begin(f, QUORLOCK_GUARD_CONNECTION, script);
        run_until(f, "down");
        assert_trace(f, answers[i].trace);
        assert_contains(f->why, answers[i].why);
    }
}

/* ---- what the server tells by itself ---- */

NODE_TEST(no_vote_counts_between_a_change_and_the_next_look_at_the_guard)
{
    static const char *const pushes[] = {ALL_CHANGED "+OK\r\n", GUARD_TOUCHED ALL_CHANGED "+OK\r\n"};

    for (size_t i = 0; i < LENGTH(pushes); i++) {
        const struct fake_step script[] = {SHAKE,
                                           TRACKS,
                                           ASK_GUARD,
                                           SEND(CLEAR),
                                           EXPECT("SET key owner NX PX 30000"),
                                           SEND(pushes[i]),
                                           COMPARE,
                                           SEND("$21\r\n" SEEN "\r\n"),
                                           EXPECT("SET key owner NX PX 30000"),
                                           SEND("+OK\r\n"),
                                           END};

        begin(f, QUORLOCK_GUARD_CONNECTION, script);
        run_until(f, "ready 1");
        ask_sent(f, 1, OP_ACQUIRE, 0);
        run_until(f, "1 unknown");
        ask_sent(f, 2, OP_ACQUIRE, 0);
        run_until(f, "2 yes");
        /* The guard was as before, so the connection lasts. */
        assert_trace(f, "ready 1\n1 unknown guard\n2 yes\n");
    }
}

NODE_TEST(a_change_of_another_key_is_nothing_to_the_guard)
{
    static const struct fake_step script[] = {
        SHAKE, TRACKS, ASK_GUARD, SEND(CLEAR), EXPECT("SET"), SEND(OTHER_TOUCHED "+OK\r\n"), END};

    begin(f, QUORLOCK_GUARD_CONNECTION, script);
    run_until(f, "ready 1");
    ask_sent(f, 1, OP_ACQUIRE, 0);
    run_until(f, "1 yes");
    assert_trace(f, "ready 1\ntold other\n1 yes\n");
}

/* Scripts compare the guard themselves. */
NODE_TEST(a_script_s_answer_counts_after_a_push)
{
    static const struct fake_step script[] = {SHAKE,
                                              TRACKS,
                                              ASK_GUARD,
                                              SEND(CLEAR),
                                              EXPECT("EVAL extend"),
                                              SEND(ALL_CHANGED "*2\r\n:1\r\n:1700000000000001\r\n"),
                                              READ_KEYS,
                                              SEND(":1\r\n"),
                                              COMPARE,
                                              SEND("$21\r\n" SEEN "\r\n"),
                                              END};

    begin(f, QUORLOCK_GUARD_CONNECTION, script);
    run_until(f, "ready 1");
    ask_sent(f, 1, OP_EXTEND, 0);
    run_until(f, "1 yes");
    assert_trace(f, "ready 1\n1 yes\n");
}

/* Of the renewal itself some servers tell before its reply, others behind it. */
NODE_TEST(of_a_key_that_was_extended_the_change_behind_the_read_is_told)
{
    static const struct fake_step script[] = {SHAKE,
                                              TRACKS,
                                              ASK_GUARD,
                                              SEND(CLEAR KEY_TOUCHED),
                                              EXPECT("EVAL extend"),
                                              SEND(KEY_TOUCHED EXTENDED KEY_TOUCHED),
                                              READ_KEYS,
                                              SEND(KEY_TOUCHED ":1\r\n" OTHER_TOUCHED KEY_TOUCHED),
                                              EXPECT("EVALSHA"),
                                              SEND(EXTENDED),
                                              READ_KEYS,
                                              SEND(KEY_TOUCHED ":0\r\n"),
                                              EXPECT("SET"),
                                              SEND("+OK\r\n"),
                                              END};

    begin(f, QUORLOCK_GUARD_CONNECTION, script);
    run_until(f, "told key");
    ask_sent(f, 1, OP_EXTEND, 0);
    run_until(f, "told other\ntold key");
    assert_true(f->watched);
    ask_sent(f, 2, OP_EXTEND, 0);
    run_until(f, "2 yes");
    ask_sent(f, 3, OP_ACQUIRE, 0);
    run_until(f, "3 yes");
    assert_false(f->watched);
    assert_trace(f, "ready 1\ntold key\n1 yes\ntold other\ntold key\n2 yes\n3 yes\n");
}

NODE_TEST(a_server_that_refuses_the_read_of_keys_is_not_asked_again)
{
    static const struct fake_step script[] = {
        SHAKE,
        TRACKS,
        ASK_GUARD,
        SEND(CLEAR),
        EXPECT("EVAL extend"),
        SEND(EXTENDED),
        READ_KEYS,
        SEND("-NOPERM this user has no permissions to run the 'exists' command\r\n"),
        EXPECT("EVALSHA"),
        SEND(EXTENDED),
        EXPECT("SET"),
        SEND("+OK\r\n"),
        END};

    begin(f, QUORLOCK_GUARD_CONNECTION, script);
    run_until(f, "ready 1");
    ask_sent(f, 1, OP_EXTEND, 0);
    run_until(f, "1 yes");
    while (node_in_flight(f->node) > 0) run_on(f, 1);
    ask_sent(f, 2, OP_EXTEND, 0);
    run_until(f, "2 yes");
    assert_false(f->watched);
    ask_sent(f, 3, OP_ACQUIRE, 0);
    run_until(f, "3 yes");
    assert_trace(f, "ready 1\n1 yes\n2 yes\n3 yes\n");
}

NODE_TEST(an_answer_of_another_kind_to_the_read_of_keys_ends_the_connection)
{
    static const struct fake_step script[] = {
        SHAKE, TRACKS, ASK_GUARD, SEND(CLEAR), EXPECT("EVAL extend"), SEND(EXTENDED), READ_KEYS, SEND("+OK\r\n"), END};

    begin(f, QUORLOCK_GUARD_CONNECTION, script);
    fake_play(f->server, clear);
    run_until(f, "ready 1");
    ask_sent(f, 1, OP_EXTEND, 0);
    run_until(f, "ready 2");
    assert_trace(f, "ready 1\n1 yes\nconnecting proto\nready 2\n");
}

NODE_TEST(a_guard_that_is_gone_when_the_server_tells_ends_the_connection)
{
    static const char *const guards[] = {"_\r\n", "$5\r\nother\r\n", "-NOPERM x\r\n"};

    for (size_t i = 0; i < LENGTH(guards); i++) {
        const struct fake_step script[] = {SHAKE,   TRACKS,          ASK_GUARD, SEND(CLEAR), SEND(ALL_CHANGED),
                                           COMPARE, SEND(guards[i]), END};

        begin(f, QUORLOCK_GUARD_CONNECTION, script);
        fake_play(f->server, clear);
        run_until(f, "ready 2");
        assert_trace(f, "ready 1\nconnecting guard\nready 2\n");
    }
}

/* What was read before the push may not be there any more. */
NODE_TEST(a_push_before_the_node_is_ready_is_looked_after)
{
    static const struct fake_step script[] = {SHAKE,   TRACKS,        ASK_GUARD, SEND(ALL_CHANGED CLEAR),
                                              COMPARE, SEND("_\r\n"), END};

    begin(f, QUORLOCK_GUARD_CONNECTION, script);
    fake_play(f->server, clear);
    run_until(f, "ready 2");
    assert_trace(f, "ready 1\nconnecting guard\nready 2\n");
}

/* A write makes the server forget that this connection read the guard, and it tells the connection of that. */
NODE_TEST(a_guard_that_the_node_wrote_is_compared_and_so_tracked_again)
{
    static const struct fake_step script[] = {SHAKE,
                                              TRACKS,
                                              ASK_GUARD,
                                              SEND("*1\r\n$3\r\nask\r\n"),
                                              ASK_GUARD,
                                              SEND(CLEAR GUARD_TOUCHED),
                                              COMPARE,
                                              SEND("$21\r\n" SEEN "\r\n"),
                                              EXPECT("SET"),
                                              SEND("_\r\n"),
                                              END};

    begin(f, QUORLOCK_GUARD_CONNECTION, script);
    run_until(f, "ready 1");
    ask_sent(f, 1, OP_ACQUIRE, 0);
    run_until(f, "1 other");
    assert_trace(f, "ready 1\n1 other\n");
}

/* A client without a guard may only want to inspect. */
NODE_TEST(without_a_guard_no_rights_are_asked_for)
{
    static const char *const replies[] = {"$0\r\n\r\n", "-NOPERM this user has no permissions to run 'eval'\r\n"};

    for (size_t i = 0; i < LENGTH(replies); i++) {
        struct fake_step script[] = {
            EXPECT("CLIENT"),
            EXPECT("INFO server"),
            EXPECT("INFO replication"),
            EXPECT("EVAL return '' 0"),
            SEND("+OK\r\n$29\r\nredis_version:7.0.0\r\nrun_id:a\r\n$28\r\nrole:master\r\nmaster_replid:b\r\n"),
            SEND(replies[i]),
            END};

        begin(f, QUORLOCK_GUARD_OFF, script);
        run_until(f, "ready 1");
    }
}

/* ---- quarantine ---- */

NODE_TEST(a_quarantine_ends_when_the_server_says_so)
{
    static const struct fake_step script[] = {SHAKE,
                                              ASK_GUARD,
                                              SEND(LOST("60")),
                                              EXPECT("SET key"),
                                              SEND("+OK\r\n"),
                                              ASK_GUARD,
                                              SEND(KEPT("150")), /* its clock goes slower */
                                              ASK_GUARD,
                                              SEND(CLEAR),
                                              EXPECT("EVAL extend 2 key quorlock:guard 1 owner 30000 " SEEN),
                                              SEND(":0\r\n"),
                                              END};
    uint64_t before_us;

    begin(f, QUORLOCK_GUARD_CONNECTION, script);
    before_us = clock_us(NULL);
    run_until(f, "quarantined 1");
    assert_contains(f->why, "quarantined for 0.1 s more: it restarted and may have lost its memory");
    assert_contains(node_why(f->node), "it restarted");
    assert_int_equal(node_generation(f->node), 1);
    assert_true(node_quarantined_until_us(f->node) >= before_us + 62600); /* 1 % and 2 ms more */
    ask_sent(f, 1, OP_ACQUIRE, 0);
    run_until(f, "ready 1");
    assert_true(clock_us(NULL) >= before_us + 62600 + 153500);
    assert_string_equal(node_why(f->node), "");
    ask_sent(f, 2, OP_EXTEND, 0);
    run_until(f, "2 missing");
    assert_trace(f, "quarantined 1\n1 yes\nquarantined 1\nready 1\n2 missing\n");
    assert_int_equal(fake_connections(f->server), 1);
}

NODE_TEST(the_reason_counts_down_the_quarantine)
{
    static const struct fake_step script[] = {SHAKE, ASK_GUARD, SEND(NEW("2000")), END};

    begin(f, QUORLOCK_GUARD_CONNECTION, script);
    run_until(f, "quarantined 1");
    assert_contains(f->why, "quarantined for 2.");
    assert_contains(f->why, "first contact: it had no guard, and locks may be held");
    while (clock_us(NULL) + 1500000 > node_quarantined_until_us(f->node)) run_on(f, 1);
    block_ms(600);
    assert_contains(node_why(f->node), "quarantined for 1.");
    assert_trace(f, "quarantined 1\n");
}

/* What the nodes' guards say together is judged by what each says while it is open. */
NODE_TEST(a_first_contact_is_known_as_long_as_the_connection)
{
    static const struct fake_step first[] = {SHAKE, ASK_GUARD, SEND(NEW("2000")), EXPECT("SET"), CLOSE};
    static const struct fake_step older[] = {SHAKE, ASK_GUARD, SEND(CLEAR), END};
    uint64_t until_us, now_us = clock_us(NULL);

    begin(f, QUORLOCK_GUARD_CONNECTION, first);
    fake_play(f->server, older);
    assert_int_equal(node_guard_set(f->node, &until_us), GUARD_SET_UNKNOWN);
    run_until(f, "quarantined 1");
    assert_int_equal(node_guard_set(f->node, &until_us), GUARD_SET_FIRST);
    assert_true(until_us >= now_us + 2000000);
    ask_sent(f, 1, OP_ACQUIRE, 0);
    run_until(f, "connecting unreachable");
    assert_int_equal(node_guard_set(f->node, &until_us), GUARD_SET_UNKNOWN);
    run_until(f, "ready 2");
    assert_int_equal(node_guard_set(f->node, &until_us), GUARD_SET_OLDER);
}

NODE_TEST(a_second_look_at_the_guard_that_fails_ends_the_connection)
{
    static const struct fake_step script[] = {SHAKE,
                                              ASK_GUARD,
                                              SEND(NEW("10")),
                                              ASK_GUARD,
                                              SEND("*4\r\n$8\r\nconflict\r\n$1\r\n5\r\n$1\r\ns\r\n$3\r\n500\r\n"),
                                              END};
    static const struct fake_step closes[] = {SHAKE, ASK_GUARD, SEND(KEPT("10")), ASK_GUARD, CLOSE};

    begin(f, QUORLOCK_GUARD_CONNECTION, script);
    fake_play(f->server, closes);
    fake_play(f->server, clear);
    f->config.link.reconnect_min_ms = 2;
    run_until(f, "ready 3");
    assert_trace(f, "quarantined 1\nconnecting config\nquarantined 2\nconnecting unreachable\nready 3\n");
}

/* Its run_id and master_replid are those of the handshake, which another client contradicts. */
NODE_TEST(a_second_look_at_the_guard_of_another_process_connects_anew)
{
    static const struct fake_step script[] = {SHAKE, ASK_GUARD, SEND(LOST("10")), ASK_GUARD, SEND(LOST("10000")), END};

    begin(f, QUORLOCK_GUARD_CONNECTION, script);
    fake_play(f->server, clear);
    f->config.link.reconnect_min_ms = 2;
    run_until(f, "ready 2");
    assert_trace(f, "quarantined 1\nconnecting guard\nready 2\n");
}

NODE_TEST(a_second_look_without_an_answer_stalls)
{
    static const struct fake_step script[] = {SHAKE, ASK_GUARD, SEND(NEW("10")), ASK_GUARD, EXPECT("no third one"),
                                              END};

    node_fixture_open(f);
    f->config.guard = QUORLOCK_GUARD_CONNECTION;
    f->config.set = "s";
    f->config.stall_ms = 600;
    fake_play(f->server, script);
    fake_play(f->server, clear);
    assert_non_null(node_fixture_new_node(f));
    run_until(f, "ready 2");
    assert_trace(f, "quarantined 1\nconnecting unreachable\nready 2\n");
}

/* ---- a guard that changes ---- */

NODE_TEST(a_guard_that_is_gone_ends_the_connection)
{
    static const struct fake_step script[] = {
        SHAKE,         ASK_GUARD, SEND(CLEAR), EXPECT("EVAL "),
        EXPECT("SET"), SLEEP(5), /* the connection was of use: it is made anew at once */
        SEND(GONE),    END};
    static const struct fake_step later[] = {SHAKE, ASK_GUARD, SEND(NEW("10000")), END};

    begin(f, QUORLOCK_GUARD_CONNECTION, script);
    fake_play(f->server, later);
    run_until(f, "ready");
    ask_sent(f, 1, OP_EXTEND, 0);
    ask_sent(f, 2, OP_ACQUIRE, 0);
    run_until(f, "quarantined 2");
    assert_trace(f, "ready 1\n1 error guard\n2 unknown unreachable\nconnecting guard\nquarantined 2\n");
}

NODE_TEST(a_release_is_carried_out_although_the_guard_changed)
{
    static const char *const replies[] = {"*2\r\n:1\r\n$5\r\nGUARD\r\n", "*2\r\n:0\r\n$5\r\nGUARD\r\n",
                                          "*3\r\n$3\r\nbob\r\n:5\r\n$5\r\nGUARD\r\n"};
    static const char *const outcomes[] = {"1 yes", "1 missing", "1 other"};

    for (size_t i = 0; i < 3; i++) {
        struct fake_step script[] = {SHAKE, ASK_GUARD, SEND(CLEAR), EXPECT("EVAL "), SEND(replies[i]), END};
        char wanted[128];

        begin(f, QUORLOCK_GUARD_CONNECTION, script);
        fake_play(f->server, clear);
        run_until(f, "ready");
        ask_sent(f, 1, OP_RELEASE, 0);
        run_until(f, "ready 2");
        snprintf(wanted, sizeof(wanted), "ready 1\n%s\nconnecting guard\nready 2\n", outcomes[i]);
        assert_trace(f, wanted);
        assert_string_equal(f->error, "");
        assert_contains(f->logged, "release (script): the guard changed or is gone");
    }
}

/* ---- a node that is expelled ---- */

static void expel(struct node_fixture *f, const char *line)
{
    if (strcmp(line, "ready 1") == 0) node_expel(f->node, FAULT_CONFIG, "listed twice");
}

NODE_TEST(a_callback_may_expel_the_node)
{
    static const struct fake_step closes[] = {SHAKE, ASK_GUARD, SEND(CLEAR), CLOSE};

    begin(f, QUORLOCK_GUARD_CONNECTION, clear);
    fake_play(f->server, closes);
    fake_play(f->server, clear);
    f->on_line = expel;
    run_until(f, "ready 3");
    /* It has come back like any other: the next end of its connection is no reason to call it down. */
    assert_trace(f, "ready 1\ndown config\nready 2\nconnecting unreachable\nready 3\n");
}

NODE_TEST(an_expelled_node_ends_its_requests)
{
    static const struct fake_step script[] = {SHAKE, ASK_GUARD, SEND(CLEAR), END};

    begin(f, QUORLOCK_GUARD_CONNECTION, script);
    node_expel(f->node, FAULT_CONFIG, "too early"); /* does nothing */
    assert_trace(f, "");
    run_until(f, "ready");
    ask_sent(f, 1, OP_ACQUIRE, 0);
    node_expel(f->node, FAULT_CONFIG, "listed twice");
    assert_trace(f, "ready 1\n1 unknown unreachable\ndown config\n");
    assert_string_equal(node_why(f->node), "listed twice");
    assert_int_equal(node_state_now(f->node), NODE_DOWN);
}

/* ---- callbacks may free ---- */

NODE_TEST(callbacks_of_the_guard_may_free_the_node)
{
    static const char *const lines[] = {"quarantined 1", "ready 1", "1 error guard", "connecting guard"};
    static const struct fake_step script[] = {SHAKE,       ASK_GUARD,       SEND(NEW("5")), ASK_GUARD,
                                              SEND(CLEAR), EXPECT("EVAL "), SEND(GONE),     END};

    for (size_t i = 0; i < LENGTH(lines); i++) {
        begin(f, QUORLOCK_GUARD_CONNECTION, script);
        f->free_at = lines[i];
        run_until(f, i == 0 ? lines[0] : "quarantined 1");
        if (!f->freed) run_until(f, "ready 1");
        if (!f->freed) ask_sent(f, 1, OP_EXTEND, 0);
        if (!f->freed) run_until(f, lines[i]);
        assert_true(f->freed);
    }
}

NODE_TEST(whatever_allocation_fails_the_guarded_node_connects)
{
    static const struct fake_step script[] = {SHAKE, ASK_GUARD, SEND(NEW("5")), ASK_GUARD, SEND(CLEAR), END};
    bool failed = true;

    for (long i = 0; failed; i++) {
        node_fixture_open(f);
        f->config.guard = QUORLOCK_GUARD_STRICT;
        f->config.set = "s";
        node_fixture_uri(f, "127.0.0.1", "");
        for (int n = 0; n < 3; n++) fake_play(f->server, script);
        f->counted.until_failure = i;
        if (node_fixture_new_node(f) != NULL) run_until(f, "ready");
        failed = f->counted.until_failure < 0;
        f->counted.until_failure = -1;
    }
}

/* And longer by the drift, for the node's clock may be slower. */
DIALECT_TEST(what_is_left_of_a_quarantine_is_counted_from_the_reply)
{
    struct guard guard = {.mode = QUORLOCK_GUARD_CONNECTION, .asked = true};
    char text[256];

    dialect_feed(f, "*4\r\n$4\r\nkept\r\n:1000\r\n:500\r\n$1\r\nx\r\n");
    assert_int_equal(dialect_next(f), REPLY_READY);
    assert_int_equal(guard_judge(&guard, f->reply, 7), GUARD_QUARANTINED);
    assert_int_equal(guard.until_us, 7 + 1000000 + 10000 + 2000);
    assert_false(guard.asked);
    guard_describe(&guard, GUARD_SET_UNKNOWN, 7, text, sizeof(text));
    assert_contains(text, "quarantined for 1.1 s more: it restarted, or is new,");
    guard_describe(&guard, GUARD_SET_UNKNOWN, guard.until_us - 1, text, sizeof(text));
    assert_contains(text, "quarantined for 0.1 s more");
    guard_describe(&guard, GUARD_SET_UNKNOWN, guard.until_us + 1, text, sizeof(text));
    assert_contains(text, "quarantined for 0.0 s more");
}
