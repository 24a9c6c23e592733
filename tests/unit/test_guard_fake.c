/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_guard_fake.c - a node and its guard, against a server that plays scripts
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quorlock/quorlock.h>

#include <cmocka.h>

#include "node_world.h"
#include "redis/dialect/dialect.h"

#define ASK_GUARD EXPECT("EVAL local function info")
#define SEEN      "1|3|s|500|aaaa|bbbb|0"
#define CLEAR     "*4\r\n$4\r\nkept\r\n:0\r\n:500\r\n$21\r\n" SEEN "\r\n"
/* The end of the quarantine is the server's business: only what is left counts. */
#define SEEN_LATER       "1|3|s|500|aaaa|bbbb|7"
#define REMAINS(why, ms) "*4\r\n$" why "\r\n:" ms "\r\n:500\r\n$21\r\n" SEEN_LATER "\r\n"
#define GONE             "-GUARD the guard changed or is gone: the server may have lost its memory\r\n"

static const struct fake_step clear[] = {SHAKE, ASK_GUARD, SEND(CLEAR), END};

/* A world whose node keeps a guard in that mode. */
static void begin(struct world *world, uint32_t mode, const struct fake_step *script)
{
    world_open(world);
    world->config.guard = mode;
    world->config.n_nodes = 3;
    world->config.set = "s";
    fake_play(world->server, script);
    assert_non_null(world_node(world));
}

/* ---- at the beginning ---- */

static void test_clear(void **state)
{
    static const struct fake_step script[] = {
        SHAKE,
        ASK_GUARD,
        SEND(CLEAR),
        EXPECT("SET key owner NX PX 30000"),
        SEND("+OK\r\n"),
        EXPECT("EVALSHA aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 2 key quorlock:guard 1 owner 30000 " SEEN),
        SEND("*2\r\n:1\r\n:1700000000000001\r\n"),
        EXPECT("EVALSHA bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb 2 key quorlock:guard 1 owner " SEEN),
        SEND(":1\r\n"),
        END};
    struct world world;
    (void)state;
    begin(&world, QUORLOCK_GUARD_CONNECTION, script);
    run_until(&world, "ready 1");
    assert_string_equal(node_run_id(world.node), "aaaa");
    assert_int_equal(node_quarantined_until_us(world.node), 0);
    /* The plain acquire is what it always was; the scripts look at the guard. */
    ask_sent(&world, 1, NODE_ACQUIRE, 0);
    ask_sent(&world, 2, NODE_EXTEND, 0);
    ask_sent(&world, 3, NODE_RELEASE, 0);
    run_until(&world, "3 yes");
    assert_story(&world, "ready 1\n1 yes\n2 yes\n3 yes\n");
    world_close(&world);
}

static void test_off_asks_nothing(void **state)
{
    static const struct fake_step script[] = {
        SHAKE, EXPECT("EVALSHA aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 1 key 1 owner 30000"), SEND(":1\r\n"),
        END};
    struct world world;
    (void)state;
    begin(&world, QUORLOCK_GUARD_OFF, script);
    run_until(&world, "ready 1");
    assert_int_equal(fake_commands(world.server), 9); /* SETNAME, two INFO, six scripts */
    ask_sent(&world, 1, NODE_EXTEND, 0);
    run_until(&world, "1 yes");
    assert_string_equal(node_run_id(world.node), "aaaa");
    world_close(&world);
}

struct refusal {
    const char *reply, *story, *why;
};

static const struct refusal refusals[] = {
    {"-NOPERM this user\r\n", "down auth\n", "restart guard (key quorlock:guard): NOPERM"},
    {"-READONLY You can't\r\n", "down replica\n", "READONLY"},
    {"-LOADING Redis is\r\n", "down temporary\n", "LOADING"},
    {"-OOM command\r\n", "down refused\n", "OOM"},
    {"-MISCONF x\r\n", "down refused\n", "MISCONF"},
    {"-ERR what ever\r\n", "down guard\n", "restart guard (key quorlock:guard): ERR what ever"},
    {"*4\r\n$8\r\nconflict\r\n$1\r\n5\r\n$1\r\nt\r\n$4\r\n2000\r\n", "down config\n",
     "its guard says 5 nodes, set t, max_lease 2000 ms; this client says 3 nodes, set s, max_lease 30000 ms: "
     "give "
     "all clients the same (here --max-lease 2s, QUORLOCK_MAX_LEASE=2s or max_lease_ms = 2000; --set-name t; "
     "all 5 "
     "nodes), or change the nodes by 'quorlock bootstrap --reconfigure --max-lease 30s'"},
    {"*4\r\n$8\r\nconflict\r\n$1\r\n3\r\n$16\r\n0123456789abcdef\r\n$5\r\n30000\r\n", "down config\n",
     "the same (here the same addresses), or change"},
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

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        struct fake_step script[] = {SHAKE, ASK_GUARD, SEND(refusals[i].reply), END};
        struct world world;
        begin(&world, QUORLOCK_GUARD_STRICT, script);
        fake_play(world.server, clear);
        run_until(&world, "down");
        assert_story(&world, refusals[i].story);
        assert_holds(world.why, refusals[i].why);
        assert_int_equal(ask(&world, 1, NODE_ACQUIRE, 0), NODE_NOT_READY);
        run_until(&world, "ready 1");
        world_close(&world);
    }
}

/* A guard of any length does not fit: what is compared must be whole. */
static void test_too_long(void **state)
{
    char reply[GUARD_TEXT_SIZE + 64], text[GUARD_TEXT_SIZE + 1];
    struct world world;
    (void)state;
    memset(text, 'x', GUARD_TEXT_SIZE);
    text[GUARD_TEXT_SIZE] = '\0';
    snprintf(reply, sizeof reply, "*4\r\n$4\r\nkept\r\n:0\r\n:500\r\n$%d\r\n%s\r\n", GUARD_TEXT_SIZE, text);
    struct fake_step script[] = {SHAKE, ASK_GUARD, SEND(reply), END};
    begin(&world, QUORLOCK_GUARD_STRICT, script);
    run_until(&world, "down proto");
    world_close(&world);
}

#define SHA "$40\r\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"

/* A guard's reply before it was asked for is nobody's. */
static void test_reply_unasked(void **state)
{
    static const struct fake_step script[] = {
        EXPECT("CLIENT"),
        EXPECT("INFO server"),
        EXPECT("INFO replication"),
        EXPECT("INFO memory"),
        EXPECT("EVAL"),
        SEND("+OK\r\n$36\r\nredis_version:7.0.0\r\nrun_id:12345678\r\n$34\r\nrole:master\r\nmaster_replid:"
             "1234567\r\n$0\r\n\r\n$0\r\n\r\n"),
        EXPECT("SCRIPT"),
        EXPECT("SCRIPT"),
        EXPECT("SCRIPT"),
        EXPECT("SCRIPT"),
        EXPECT("SCRIPT"),
        EXPECT("SCRIPT"),
        SEND(SHA SHA SHA SHA SHA SHA CLEAR),
        END};
    struct world world;
    (void)state;
    begin(&world, QUORLOCK_GUARD_CONNECTION, script);
    run_until(&world, "down");
    assert_story(&world, "down proto\n");
    assert_holds(world.why, "nobody asked for");
    world_close(&world);
}

static void test_unnamed_server(void **state)
{
    static const struct fake_step script[] = {SHAKE_AS("redis_version:7.0.0\r\n", NULL), END};
    struct world world;
    (void)state;
    begin(&world, QUORLOCK_GUARD_CONNECTION, script);
    run_until(&world, "down proto");
    assert_holds(world.why, "run_id");
    world_close(&world);
}

/* ---- quarantine ---- */

static void test_quarantine_ends(void **state)
{
    static const struct fake_step script[] = {
        SHAKE,
        ASK_GUARD,
        SEND(REMAINS("4\r\nlost", "60")),
        EXPECT("SET key"),
        SEND("+OK\r\n"),
        ASK_GUARD,
        SEND(REMAINS("4\r\nkept", "150")), /* its clock goes slower */
        ASK_GUARD,
        SEND(CLEAR),
        EXPECT("EVALSHA aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 2 key quorlock:guard 1 owner 30000 " SEEN),
        SEND(":0\r\n"),
        END};
    struct world world;
    (void)state;
    begin(&world, QUORLOCK_GUARD_CONNECTION, script);
    uint64_t before_us = clock_us(NULL);
    run_until(&world, "quarantined 1");
    assert_holds(world.why, "quarantined for 0.1 s more: it restarted and may have lost its memory");
    assert_holds(node_why(world.node), "it restarted");
    assert_int_equal(node_generation(world.node), 1);
    assert_true(node_quarantined_until_us(world.node) >= before_us + 62600); /* 1 % and 2 ms more */
    ask_sent(&world, 1, NODE_ACQUIRE, 0);
    run_until(&world, "ready 1");
    assert_true(clock_us(NULL) >= before_us + 62600 + 153500);
    assert_string_equal(node_why(world.node), "");
    ask_sent(&world, 2, NODE_EXTEND, 0);
    run_until(&world, "2 missing");
    assert_story(&world, "quarantined 1\n1 yes\nquarantined 1\nready 1\n2 missing\n");
    assert_int_equal(fake_connections(world.server), 1);
    world_close(&world);
}

static void test_quarantine_counts_down(void **state)
{
    static const struct fake_step script[] = {SHAKE, ASK_GUARD, SEND(REMAINS("3\r\nnew", "2000")), END};
    struct world world;
    (void)state;
    begin(&world, QUORLOCK_GUARD_CONNECTION, script);
    run_until(&world, "quarantined 1");
    assert_holds(world.why, "quarantined for 2.");
    assert_holds(world.why, "no guard yet: first contact waits one max_lease; 'quorlock bootstrap'");
    while (clock_us(NULL) + 1500000 > node_quarantined_until_us(world.node)) run_on(&world, 1);
    block_ms(600);
    assert_holds(node_why(world.node), "quarantined for 1.");
    assert_story(&world, "quarantined 1\n");
    world_close(&world);
}

/* At the second look the server is set up otherwise, or refuses. */
static void test_second_look_fails(void **state)
{
    static const struct fake_step script[] = {
        SHAKE,
        ASK_GUARD,
        SEND(REMAINS("3\r\nnew", "10")),
        ASK_GUARD,
        SEND("*4\r\n$8\r\nconflict\r\n$1\r\n5\r\n$1\r\ns\r\n$3\r\n500\r\n"),
        END};
    static const struct fake_step closes[] = {SHAKE, ASK_GUARD, SEND(REMAINS("4\r\nkept", "10")), ASK_GUARD,
                                              CLOSE};
    struct world world;
    (void)state;
    begin(&world, QUORLOCK_GUARD_CONNECTION, script);
    fake_play(world.server, closes);
    fake_play(world.server, clear);
    world.config.reconnect_min_ms = 2;
    run_until(&world, "ready 3");
    assert_story(&world, "quarantined 1\nconnecting config\nquarantined 2\nconnecting unreachable\nready 3\n");
    world_close(&world);
}

/* Nobody answers it: the stall limit sees that too. */
static void test_second_look_stalls(void **state)
{
    static const struct fake_step script[] = {SHAKE, ASK_GUARD, SEND(REMAINS("3\r\nnew", "10")), END};
    struct world world;
    (void)state;
    world_open(&world);
    world.config.guard = QUORLOCK_GUARD_CONNECTION;
    world.config.set = "s";
    world.config.stall_ms = 50;
    fake_play(world.server, script);
    fake_play(world.server, clear);
    assert_non_null(world_node(&world));
    run_until(&world, "ready 2");
    assert_story(&world, "quarantined 1\nconnecting unreachable\nready 2\n");
    world_close(&world);
}

/* ---- a guard that changes ---- */

static void test_guard_gone(void **state)
{
    static const struct fake_step script[] = {SHAKE,         ASK_GUARD, SEND(CLEAR), EXPECT("EVALSHA"),
                                              EXPECT("SET"), SLEEP(5), /* so that the connection was of use */
                                              SEND(GONE),    END};
    static const struct fake_step later[] = {SHAKE, ASK_GUARD, SEND(REMAINS("3\r\nnew", "10000")), END};
    struct world world;
    (void)state;
    begin(&world, QUORLOCK_GUARD_CONNECTION, script);
    fake_play(world.server, later);
    run_until(&world, "ready");
    ask_sent(&world, 1, NODE_EXTEND, 0);
    ask_sent(&world, 2, NODE_ACQUIRE, 0);
    run_until(&world, "quarantined 2");
    assert_story(&world, "ready 1\n1 error guard\n2 unknown unreachable\nconnecting guard\nquarantined 2\n");
    world_close(&world);
}

/* A release is never refused for it. */
static void test_release_goes_through(void **state)
{
    static const char *const replies[] = {"*2\r\n:1\r\n$5\r\nGUARD\r\n", "*2\r\n:0\r\n$5\r\nGUARD\r\n",
                                          "*3\r\n$3\r\nbob\r\n:5\r\n$5\r\nGUARD\r\n"};
    static const char *const outcomes[] = {"1 yes", "1 missing", "1 other"};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct fake_step script[] = {SHAKE, ASK_GUARD, SEND(CLEAR), EXPECT("EVALSHA"), SEND(replies[i]), END};
        struct world world;
        char wanted[128];
        begin(&world, QUORLOCK_GUARD_CONNECTION, script);
        fake_play(world.server, clear);
        run_until(&world, "ready");
        ask_sent(&world, 1, NODE_RELEASE, 0);
        run_until(&world, "ready 2");
        snprintf(wanted, sizeof wanted, "ready 1\n%s\nconnecting guard\nready 2\n", outcomes[i]);
        assert_story(&world, wanted);
        assert_string_equal(world.error, "");
        assert_holds(world.logged, "release (script): the guard changed or is gone");
        world_close(&world);
    }
}

/* ---- expelled ---- */

static void expel(struct world *world, const char *line)
{
    if (strcmp(line, "ready 1") == 0) node_expel(world->node, NODE_FAULT_CONFIG, "listed twice");
}

static void test_expelled_in_callback(void **state)
{
    struct world world;
    (void)state;
    world_open(&world);
    world.config.guard = QUORLOCK_GUARD_CONNECTION;
    world.config.set = "s";
    world.on_line = expel;
    fake_play(world.server, clear);
    fake_play(world.server, clear);
    assert_non_null(world_node(&world));
    run_until(&world, "ready 2");
    assert_story(&world, "ready 1\ndown config\nready 2\n");
    world_close(&world);
}

static void test_expelled_with_requests(void **state)
{
    static const struct fake_step script[] = {SHAKE, ASK_GUARD, SEND(CLEAR), END};
    struct world world;
    (void)state;
    begin(&world, QUORLOCK_GUARD_CONNECTION, script);
    node_expel(world.node, NODE_FAULT_CONFIG, "too early"); /* nothing to expel */
    assert_story(&world, "");
    run_until(&world, "ready");
    ask_sent(&world, 1, NODE_ACQUIRE, 0);
    node_expel(world.node, NODE_FAULT_CONFIG, "listed twice");
    assert_story(&world, "ready 1\n1 unknown unreachable\ndown config\n");
    assert_string_equal(node_why(world.node), "listed twice");
    assert_int_equal(node_state_now(world.node), NODE_DOWN);
    world_close(&world);
}

/* ---- callbacks may free ---- */

static void test_freed(void **state)
{
    static const char *const lines[] = {"quarantined 1", "ready 1", "1 error guard", "connecting guard"};
    static const struct fake_step script[] = {SHAKE,      ASK_GUARD,   SEND(REMAINS("3\r\nnew", "5")),
                                              ASK_GUARD,  SEND(CLEAR), EXPECT("EVALSHA"),
                                              SEND(GONE), END};
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct world world;
        begin(&world, QUORLOCK_GUARD_CONNECTION, script);
        world.free_at = lines[i];
        run_until(&world, i == 0 ? lines[0] : "quarantined 1");
        if (!world.freed) run_until(&world, "ready 1");
        if (!world.freed) ask_sent(&world, 1, NODE_EXTEND, 0);
        if (!world.freed) run_until(&world, lines[i]);
        assert_true(world.freed);
        world_close(&world);
    }
}

/* Each allocation fails once: it goes on all the same, or says so. */
static void test_memory(void **state)
{
    static const struct fake_step script[] = {SHAKE,     ASK_GUARD,   SEND(REMAINS("3\r\nnew", "5")),
                                              ASK_GUARD, SEND(CLEAR), END};
    (void)state;
    bool failed = true;
    for (long i = 0; failed; i++) {
        struct world world;
        world_open(&world);
        world.config.guard = QUORLOCK_GUARD_STRICT;
        world.config.set = "s";
        world_uri(&world, "127.0.0.1", "");
        for (int n = 0; n < 3; n++) fake_play(world.server, script);
        world.counted.until_failure = i;
        if (world_node(&world)) run_until(&world, "ready");
        failed = world.counted.until_failure < 0;
        world.counted.until_failure = -1;
        world_close(&world);
    }
}

/* ---- words and judgements ---- */

static const struct guard strict = {.mode = QUORLOCK_GUARD_STRICT, .seen = "G", .max_lease_ms = 500};
static const struct guard lax = {.mode = QUORLOCK_GUARD_CONNECTION, .seen = "G", .max_lease_ms = 500};
static const struct guard off = {.mode = QUORLOCK_GUARD_OFF, .max_lease_ms = 700};

struct words {
    struct node_request request;
    const struct guard *guard;
    const char *wanted; /* the words that are sent, joined by spaces */
};

#define KEY  NODE_KEY("k", 1), .owner = "me", .owner_length = 2, .lease_ms = 9
#define KEYS .keys = two, .n_keys = 2, .owner = "me", .owner_length = 2, .lease_ms = 9
static const struct node_key two[] = {{"k", 1}, {"l", 1}};
static const struct words words[] = {
    {{.op = NODE_ACQUIRE, KEY}, &lax, "SET k me NX PX 9"},
    {{.op = NODE_ACQUIRE, KEY}, &off, "SET k me NX PX 9"},
    {{.op = NODE_ACQUIRE, KEY}, NULL, "SET k me NX PX 9"},
    {{.op = NODE_ACQUIRE, KEY}, &strict, "EVALSHA e 2 k quorlock:guard 1 me 9 G strict  604800000 500"},
    {{.op = NODE_ACQUIRE, KEY, .fenced = true},
     &strict,
     "EVALSHA e 3 k quorlock:guard quorlock:fence:k 1 me 9 G strict 0 604800000 500"},
    {{.op = NODE_ACQUIRE, KEY, .fenced = true, .fence = 77, .fence_ttl_ms = 88},
     &lax,
     "EVALSHA e 3 k quorlock:guard quorlock:fence:k 1 me 9 G  77 88 500"},
    {{.op = NODE_ACQUIRE, KEY, .fenced = true},
     &off,
     "EVALSHA e 2 k quorlock:fence:k 1 me 9   0 604800000 700"},
    {{.op = NODE_ACQUIRE, KEY, .fenced = true},
     NULL,
     "EVALSHA e 2 k quorlock:fence:k 1 me 9   0 604800000 30000"},
    {{.op = NODE_REPAIR, KEY}, &off, "EVALSHA e 1 k 1 me 9  repair  604800000 700"},
    {{.op = NODE_ACQUIRE, KEY, .explain = true}, NULL, "EVALSHA e 1 k 1 me 9    604800000 30000"},
    {{.op = NODE_REPAIR, KEY}, &lax, "EVALSHA e 2 k quorlock:guard 1 me 9 G repair  604800000 500"},
    {{.op = NODE_REPAIR, KEY, .fenced = true, .fence = 5},
     &off,
     "EVALSHA e 2 k quorlock:fence:k 1 me 9  repair 5 604800000 700"},
    {{.op = NODE_EXTEND, KEY}, &off, "EVALSHA a 1 k 1 me 9"},
    {{.op = NODE_EXTEND, KEY}, &lax, "EVALSHA a 2 k quorlock:guard 1 me 9 G  604800000"},
    {{.op = NODE_EXTEND, KEY, .fenced = true, .fence = 5},
     &strict,
     "EVALSHA a 3 k quorlock:guard quorlock:fence:k 1 me 9 G 5 604800000"},
    {{.op = NODE_EXTEND, KEY, .fenced = true}, &off, "EVALSHA a 2 k quorlock:fence:k 1 me 9  0 604800000"},
    {{.op = NODE_RELEASE, KEY}, &off, "EVALSHA b 1 k 1 me"},
    {{.op = NODE_RELEASE, KEY, .fenced = true}, &lax, "EVALSHA b 2 k quorlock:guard 1 me G  604800000"},
    {{.op = NODE_RELEASE, KEY, .fence = 5, .fence_ttl_ms = 6},
     &off,
     "EVALSHA b 2 k quorlock:fence:k 1 me  5 6"},
    {{.op = NODE_RELEASE, KEY, .silent = true}, NULL, "EVALSHA b 1 k 1 me   604800000 silent"},
    {{.op = NODE_ACQUIRE, KEYS, .fenced = true, .fence = 5},
     &strict,
     "EVALSHA e 5 k l quorlock:guard quorlock:fence:k quorlock:fence:l 2 me 9 G strict 5 604800000 500"},
    {{.op = NODE_RELEASE, KEYS, .fence = 5},
     &off,
     "EVALSHA b 4 k l quorlock:fence:k quorlock:fence:l 2 me  5 604800000"},
    {{.op = NODE_PEEK, KEYS}, &strict, "EVALSHA c 2 k l"},
    {{.op = NODE_RAISE, KEY, .fence = 5},
     &lax,
     "EVALSHA f 3 k quorlock:guard quorlock:fence:k 1 me G 5 604800000"},
    {{.op = NODE_RAISE, KEY, .fence = 5}, &off, "EVALSHA f 2 k quorlock:fence:k 1 me  5 604800000"},
    {{.op = NODE_PEEK, KEY, .fenced = true}, &strict, "EVALSHA c 1 k"},
    {{.op = NODE_BREAK, KEY}, &strict, "EVALSHA d 1 k"},
};

/* The words of one command, a hash as its first letter. */
static void read_words(const struct bytes *out, char *ret, size_t size)
{
    size_t at = 0, used = 0;
    ret[0] = '\0';
    while (at < out->used && out->data[at] != '\n') at++;
    at++;
    while (at < out->used) {
        size_t length = strtoul(out->data + at + 1, NULL, 10);
        while (out->data[at] != '\n') at++;
        at++;
        int shown = length == DIALECT_SHA_LENGTH ? 1 : (int)length;
        used += (size_t)snprintf(ret + used, size - used, "%s%.*s", used ? " " : "", shown, out->data + at);
        at += length + 2;
    }
    /* As many words as were announced. */
    size_t n = used ? 1 : 0;
    for (const char *c = ret; *c; c++) n += *c == ' ';
    assert_int_equal(strtoul(out->data + 1, NULL, 10), n);
}

static void test_words(void **state)
{
    struct alloc memory;
    struct dialect_shas shas;
    (void)state;
    alloc_init(&memory, NULL);
    for (size_t i = 0; i < DIALECT_SCRIPTS_MAX; i++) {
        memset(shas.sha[i], 'a' + (int)i, DIALECT_SHA_LENGTH);
        shas.sha[i][DIALECT_SHA_LENGTH] = '\0';
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        char said[512];
        struct bytes out;
        bytes_init(&out, &memory, 65536);
        bool by_hash = dialect_plain.build(&out, &words[i].request, &shas, words[i].guard);
        read_words(&out, said, sizeof said);
        assert_string_equal(said, words[i].wanted);
        assert_int_equal(by_hash, strncmp(said, "EVALSHA", 7) == 0);
        bytes_clear(&out);
    }
}

/* What is left is counted from the reply on, and a clock of theirs that goes slower is allowed for. */
static void test_margin(void **state)
{
    static const char wire[] = "*4\r\n$4\r\nkept\r\n:1000\r\n:500\r\n$1\r\nx\r\n";
    struct alloc memory;
    struct reply_parser parser;
    const struct reply *raw = NULL;
    const char *why = NULL;
    char text[256];
    struct guard guard = {.mode = QUORLOCK_GUARD_CONNECTION, .asked = true};
    (void)state;
    alloc_init(&memory, NULL);
    reply_init(&parser, &memory);
    assert_true(reply_open(&parser));
    reply_feed(&parser, wire, sizeof wire - 1);
    assert_int_equal(reply_next(&parser, &raw, &why), REPLY_READY);
    assert_int_equal(guard_judge(&guard, raw, 7), GUARD_QUARANTINED);
    assert_int_equal(guard.until_us, 7 + 1000000 + 10000 + 2000);
    assert_false(guard.asked);
    guard_describe(&guard, 7, text, sizeof text);
    assert_holds(text, "quarantined for 1.1 s more: it restarted, or is new,");
    guard_describe(&guard, guard.until_us - 1, text, sizeof text);
    assert_holds(text, "quarantined for 0.1 s more");
    guard_describe(&guard, guard.until_us + 1, text, sizeof text);
    assert_holds(text, "quarantined for 0.0 s more");
    reply_clear(&parser);
}

struct judgement {
    enum node_op op;
    enum node_outcome outcome;
    enum node_fault fault;
    bool has_guard;
    const char *wire;
    uint64_t fence, node_time_us;
    int64_t quarantine_ms, ttl_ms;
};

#define FINE  NODE_FAULT_NONE
#define PROTO NODE_FAULT_PROTO
static const struct judgement judgements[] = {
    {NODE_ACQUIRE, NODE_YES, FINE, false, "*3\r\n:1\r\n:17\r\n:1700000000000001\r\n", 17, 1700000000000001, -1,
     -2},
    {NODE_REPAIR, NODE_YES, FINE, false, "*3\r\n:1\r\n:0\r\n:5\r\n", 0, 5, -1, -2},
    {NODE_REPAIR, NODE_YES, FINE, false, "+OK\r\n", 0, 0, -1, -2},
    {NODE_REPAIR, NODE_OTHER, FINE, false, "$-1\r\n", 0, 0, -1, -2},
    {NODE_ACQUIRE, NODE_OTHER, FINE, false, "*2\r\n$3\r\nbob\r\n:9\r\n", 0, 0, -1, 9},
    {NODE_ACQUIRE, NODE_ERROR, PROTO, false, "*3\r\n:2\r\n:17\r\n:5\r\n", 0, 0, -1, -2},
    {NODE_ACQUIRE, NODE_ERROR, PROTO, false, "*3\r\n:1\r\n:-17\r\n:5\r\n", 0, 0, -1, -2},
    {NODE_ACQUIRE, NODE_ERROR, PROTO, false, "*3\r\n:1\r\n$2\r\n17\r\n:5\r\n", 0, 0, -1, -2},
    {NODE_ACQUIRE, NODE_ERROR, PROTO, false, "*2\r\n:1\r\n:17\r\n", 0, 0, -1, -2},
    {NODE_RAISE, NODE_YES, FINE, false, "*3\r\n:1\r\n:9007199254740991\r\n:5\r\n", 9007199254740991, 5, -1, -2},
    {NODE_RAISE, NODE_MISSING, FINE, false, ":0\r\n", 0, 0, -1, -2},
    {NODE_RAISE, NODE_ERROR, PROTO, false, ":1\r\n", 0, 0, -1, -2},
    {NODE_RAISE, NODE_ERROR, PROTO, false, "+OK\r\n", 0, 0, -1, -2},
    {NODE_EXTEND, NODE_YES, FINE, false, "*2\r\n:1\r\n:1700000000000001\r\n", 0, 1700000000000001, -1, -2},
    {NODE_EXTEND, NODE_ERROR, PROTO, false, "*2\r\n:0\r\n:5\r\n", 0, 0, -1, -2},
    {NODE_EXTEND, NODE_ERROR, PROTO, false, "*2\r\n:1\r\n:-5\r\n", 0, 0, -1, -2},
    {NODE_EXTEND, NODE_ERROR, NODE_FAULT_GUARD, false, GONE, 0, 0, -1, -2},
    {NODE_ACQUIRE, NODE_ERROR, NODE_FAULT_REFUSED, false, "-FENCE the counter\r\n", 0, 0, -1, -2},
    {NODE_RELEASE, NODE_YES, NODE_FAULT_GUARD, false, "*2\r\n:1\r\n$5\r\nGUARD\r\n", 0, 0, -1, -2},
    {NODE_RELEASE, NODE_ERROR, PROTO, false, "*2\r\n:-2\r\n$5\r\nGUARD\r\n", 0, 0, -1, -2},
    {NODE_BREAK, NODE_ERROR, PROTO, false, "*2\r\n:1\r\n:1\r\n", 0, 0, -1, -2},
    {NODE_PEEK, NODE_YES, FINE, true, "*5\r\n$3\r\nbob\r\n:9\r\n:17\r\n:1\r\n:250\r\n", 17, 0, 250, 9},
    {NODE_PEEK, NODE_MISSING, FINE, false, "*5\r\n$-1\r\n:-2\r\n:17\r\n:0\r\n:-1\r\n", 17, 0, -1, -2},
    {NODE_PEEK, NODE_MISSING, FINE, true, "*5\r\n$-1\r\n:-2\r\n:-17\r\n:1\r\n:0\r\n", 0, 0, -1, -2},
    {NODE_PEEK, NODE_ERROR, PROTO, false, "*5\r\n$-1\r\n:-2\r\n$2\r\n17\r\n:1\r\n:0\r\n", 0, 0, -1, -2},
    {NODE_PEEK, NODE_ERROR, PROTO, false, "*5\r\n:1\r\n:-2\r\n:17\r\n:1\r\n:0\r\n", 0, 0, -1, -2},
    {NODE_BOOTSTRAP, NODE_YES, FINE, false, "$9\r\nwritten:x\r\n", 0, 0, -1, -2},
    {NODE_BOOTSTRAP, NODE_OTHER, FINE, false, "$9\r\nguarded:x\r\n", 0, 0, -1, -2},
    {NODE_BOOTSTRAP, NODE_ERROR, PROTO, false, "$9\r\nnothing:x\r\n", 0, 0, -1, -2},
    {NODE_BOOTSTRAP, NODE_ERROR, PROTO, false, "$4\r\nwrit\r\n", 0, 0, -1, -2},
    {NODE_BOOTSTRAP, NODE_ERROR, PROTO, false, ":1\r\n", 0, 0, -1, -2},
    {NODE_BOOTSTRAP, NODE_ERROR, PROTO, false, "*1\r\n$9\r\nwritten:x\r\n", 0, 0, -1, -2},
    {NODE_BOOTSTRAP, NODE_ERROR, PROTO, false, "*2\r\n:1\r\n:1\r\n", 0, 0, -1, -2},
    {NODE_BOOTSTRAP, NODE_ERROR, PROTO, false, "*2\r\n$9\r\nwritten:x\r\n+OK\r\n", 0, 0, -1, -2},
    {NODE_MAY_KILL, NODE_YES, FINE, false, "*1\r\n:0\r\n", 0, 0, -1, -2},
    {NODE_MAY_KILL, NODE_ERROR, PROTO, false, "*1\r\n+OK\r\n", 0, 0, -1, -2},
    {NODE_MAY_KILL, NODE_ERROR, PROTO, false, "*0\r\n", 0, 0, -1, -2},
    {NODE_MAY_KILL, NODE_ERROR, PROTO, false, ":0\r\n", 0, 0, -1, -2},
    {NODE_ACQUIRE, NODE_NOSCRIPT, FINE, false, "-NOSCRIPT no\r\n", 0, 0, -1, -2},
};

static void test_judgements(void **state)
{
    struct alloc memory;
    struct reply_parser parser;
    (void)state;
    alloc_init(&memory, NULL);
    reply_init(&parser, &memory);
    assert_true(reply_open(&parser));
    for (size_t i = 0; i < sizeof judgements / sizeof judgements[0]; i++) {
        const struct judgement *wanted = &judgements[i];
        const struct reply *raw = NULL;
        const char *why = NULL;
        struct node_reply got;
        char text[320];
        reply_feed(&parser, wanted->wire, strlen(wanted->wire));
        assert_int_equal(reply_next(&parser, &raw, &why), REPLY_READY);
        memset(&got, 0x5a, sizeof got);
        dialect_plain.judge(wanted->op, true, raw, &got, text, sizeof text);
        if (got.outcome != wanted->outcome || got.fault != wanted->fault || got.fence != wanted->fence ||
            got.node_time_us != wanted->node_time_us || got.quarantine_ms != wanted->quarantine_ms ||
            got.ttl_ms != wanted->ttl_ms || got.has_guard != wanted->has_guard)
            fail_msg("%d %s: outcome %d fault %d fence %llu time %llu quarantine %lld ttl %lld guard %d",
                     (int)wanted->op, wanted->wire, got.outcome, got.fault, (unsigned long long)got.fence,
                     (unsigned long long)got.node_time_us, (long long)got.quarantine_ms, (long long)got.ttl_ms,
                     got.has_guard);
        if (got.outcome == NODE_ERROR) assert_non_null(got.error);
    }
    reply_clear(&parser);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clear),
        cmocka_unit_test(test_off_asks_nothing),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_reply_unasked),
        cmocka_unit_test(test_unnamed_server),
        cmocka_unit_test(test_quarantine_ends),
        cmocka_unit_test(test_quarantine_counts_down),
        cmocka_unit_test(test_second_look_fails),
        cmocka_unit_test(test_second_look_stalls),
        cmocka_unit_test(test_guard_gone),
        cmocka_unit_test(test_release_goes_through),
        cmocka_unit_test(test_expelled_in_callback),
        cmocka_unit_test(test_expelled_with_requests),
        cmocka_unit_test(test_freed),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_margin),
        cmocka_unit_test(test_judgements),
    };
    return cmocka_run_group_tests_name("guard against a scripted server", tests, NULL, NULL);
}
