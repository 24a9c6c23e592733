/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_node_requests.c - requests, deadlines and bounds of a node, against a server that plays scripts
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <event2/event.h>

#include <cmocka.h>

#include "node_world.h"
#include "redis/ring.h"

/* Only the transport sends by send(): one call is one write. */
static unsigned n_writes;
/* So much is taken by one call, and then nothing by the next: a full socket, without filling one. 0: all. */
static size_t write_most;
static bool write_full;

ssize_t send(int fd, const void *data, size_t length, int flags)
{
    n_writes++;
    if (write_most) {
        write_full = !write_full;
        if (!write_full) {
            errno = EAGAIN;
            return -1;
        }
        if (length > write_most) length = write_most;
    }
    return sendto(fd, data, length, flags, NULL, 0);
}

static const struct fake_step plain_good[] = {SHAKE, END};
static const struct fake_step shut[] = {CLOSE};

static void test_handshake_words(void **state)
{
    static const struct fake_step script[] = {EXPECT("AUTH bob se same"),
                                              SEND("+OK\r\n"),
                                              EXPECT("SELECT 2"),
                                              SEND("+OK\r\n"),
                                              EXPECT("CLIENT SETNAME me"),
                                              SEND("+OK\r\n"),
                                              SHAKE,
                                              END};
    struct world world;
    (void)state;
    world_open(&world);
    world_uri(&world, "redis://bob:se%20same@127.0.0.1", "/2");
    fake_play(world.server, script);
    assert_non_null(world_node(&world));
    unsigned before = n_writes;
    run_until(&world, "ready 1");
    assert_int_equal(n_writes - before, 1);
    assert_int_equal(fake_commands(world.server), 11);
    assert_story(&world, "ready 1\n");
    assert_string_equal(node_why(world.node), "");
    assert_true(node_srtt_us(world.node) > 0);
    assert_holds(world.logged, "Redis 7.0.15");
    world_close(&world);
}

/* ---- requests ---- */

static void test_requests(void **state)
{
    static const struct fake_step script[] = {
        SHAKE,
        EXPECT("SET key owner NX PX 30000"),
        SEND("+OK\r\n"),
        EXPECT("EVALSHA aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 1 key 1 owner 30000"),
        SEND(":0\r\n"),
        EXPECT("EVALSHA bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb 1 key 1 owner"),
        SEND("*2\r\n$3\r\nbob\r\n:7\r\n"),
        EXPECT("EVALSHA cccccccccccccccccccccccccccccccccccccccc 1 key"),
        SEND("-WRONGTYPE x\r\n"),
        EXPECT("EVALSHA dddddddddddddddddddddddddddddddddddddddd 1 key"),
        SEND("*3\r\n$-1\r\n:-1\r\n$4\r\nhash\r\n"),
        END};
    /* The scripts come in the order in which the node loads them: extend, release, peek, break. */
    struct world world;
    (void)state;
    world_start(&world, script);
    run_until(&world, "ready");
    unsigned before = n_writes;
    ask_sent(&world, 1, NODE_ACQUIRE, 10000);
    ask_sent(&world, 2, NODE_EXTEND, 0);
    ask_sent(&world, 3, NODE_RELEASE, 10000);
    ask_sent(&world, 4, NODE_PEEK, 0);
    ask_sent(&world, 5, NODE_BREAK, 0);
    run_until(&world, "5 yes");
    assert_int_equal(n_writes - before, 1); /* one turn, one write */
    assert_story(&world, "ready 1\n1 yes\n2 missing\n3 other\n4 error foreign\n5 yes\n");
    assert_string_equal(world.error, "");
    assert_string_equal(world.type, "hash");
    assert_string_equal(world.holder, "bob");
    assert_true(world.latency_us > 0 && world.latency_us < LIMIT_S * 1000000);
    world_close(&world);
}

static void test_pieces(void **state)
{
    static const struct fake_step script[] = {SHAKE,
                                              EXPECT("SET"),
                                              EXPECT("EVALSHA"),
                                              SLEEP(5),
                                              STEP(FAKE_PIECES, "+OK\r\n*2\r\n$3\r\nbob\r\n:123\r\n"),
                                              END};
    struct world world;
    (void)state;
    world_start(&world, script);
    run_until(&world, "ready");
    ask_sent(&world, 1, NODE_ACQUIRE, 0);
    ask_sent(&world, 2, NODE_PEEK, 0);
    run_until(&world, "2 yes");
    assert_story(&world, "ready 1\n1 yes\n2 yes\n");
    assert_string_equal(world.holder, "bob");
    world_close(&world);
}

static void ask_whole(struct world *world, const char *line)
{
    if (strcmp(line, "1 noscript") != 0) return;
    struct node_request request = {
        .op = NODE_RELEASE, .use_eval = true, NODE_KEY("key", 3), .owner = "owner", .owner_length = 5};
    request.tag.align_number = 2;
    assert_int_equal(node_send(world->node, &request), NODE_SENT);
}

static void test_noscript(void **state)
{
    static const struct fake_step script[] = {SHAKE,
                                              EXPECT("EVALSHA bbbb"),
                                              SEND("-NOSCRIPT No matching script.\r\n"),
                                              EXPECT("EVAL local function"),
                                              SEND(":1\r\n"),
                                              END};
    struct world world;
    (void)state;
    world_start(&world, script);
    world.on_line = ask_whole;
    run_until(&world, "ready");
    ask_sent(&world, 1, NODE_RELEASE, 0);
    run_until(&world, "2 yes");
    assert_story(&world, "ready 1\n1 noscript\n2 yes\n");
    world_close(&world);
}

struct changed {
    const char *reply, *story;
};

/* The server is not what it was: the reply is told, the rest is unknown, the connection is made anew. */
static void test_server_changed(void **state)
{
    static const struct changed rows[] = {
        {"-LOADING Redis is loading\r\n",
         "ready 1\n1 error temporary\n2 unknown unreachable\nconnecting temporary\n"},
        {"-READONLY You can't write\r\n",
         "ready 1\n1 error replica\n2 unknown unreachable\nconnecting replica\n"},
        {"-MASTERDOWN Link\r\n", "ready 1\n1 error temporary\n2 unknown unreachable\nconnecting temporary\n"},
        {":17\r\n", "ready 1\n1 error proto\n2 unknown unreachable\nconnecting proto\n"},
        {">1\r\n+push\r\n", "ready 1\n1 unknown unreachable\n2 unknown unreachable\nconnecting proto\n"},
        {"$536870912\r\n", "ready 1\n1 unknown unreachable\n2 unknown unreachable\nconnecting proto\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct fake_step script[] = {SHAKE, EXPECT("SET"), SEND(rows[i].reply), END};
        struct world world;
        world_start(&world, script);
        fake_play(world.server, plain_good);
        run_until(&world, "ready");
        ask_sent(&world, 1, NODE_ACQUIRE, 0);
        ask_sent(&world, 2, NODE_PEEK, 0);
        run_until(&world, "connecting");
        assert_story(&world, rows[i].story);
        assert_int_equal(ask(&world, 3, NODE_PEEK, 0), NODE_NOT_READY);
        run_until(&world, "ready 2");
        world_close(&world);
    }
}

/* Refused by right or memory: the connection is as good as before. */
static void test_plain_refusals(void **state)
{
    static const struct fake_step script[] = {SHAKE,
                                              EXPECT("SET"),
                                              SEND("-NOPERM no rights for SET\r\n"),
                                              EXPECT("SET"),
                                              SEND("-OOM command not allowed\r\n"),
                                              EXPECT("SET"),
                                              SEND("-NOAUTH Authentication required.\r\n"),
                                              EXPECT("SET"),
                                              SEND("-ERR whatever\r\n"),
                                              EXPECT("SET"),
                                              SEND("$-1\r\n"),
                                              END};
    struct world world;
    (void)state;
    world_start(&world, script);
    run_until(&world, "ready");
    for (unsigned i = 1; i <= 5; i++) ask_sent(&world, i, NODE_ACQUIRE, 0);
    run_until(&world, "5 other");
    assert_story(&world, "ready 1\n1 error auth\n2 error refused\n3 error auth\n4 unknown other\n5 other\n");
    world_close(&world);
}

static void test_unsolicited(void **state)
{
    static const struct fake_step script[] = {SHAKE, EXPECT("SET"), SEND("+OK\r\n+OK\r\n"), END};
    struct world world;
    (void)state;
    world_start(&world, script);
    fake_play(world.server, plain_good);
    run_until(&world, "ready");
    ask_sent(&world, 1, NODE_ACQUIRE, 0);
    run_until(&world, "ready 2");
    assert_story(&world, "ready 1\n1 yes\nconnecting proto\nready 2\n");
    assert_holds(world.logged, "nobody asked for");
    world_close(&world);
}

/* The surplus reply must not become the answer to a request that was only queued meanwhile. */
static void ask_more(struct world *world, const char *line)
{
    if (strcmp(line, "1 yes") == 0) assert_int_equal(ask(world, 2, NODE_ACQUIRE, 0), NODE_SENT);
}

static void test_unsolicited_before_request(void **state)
{
    static const struct fake_step script[] = {SHAKE, EXPECT("SET"), SEND("+OK\r\n+OK\r\n"), END};
    struct world world;
    (void)state;
    world_start(&world, script);
    fake_play(world.server, plain_good);
    world.on_line = ask_more;
    run_until(&world, "ready");
    ask_sent(&world, 1, NODE_ACQUIRE, 0);
    run_until(&world, "ready 2");
    assert_story(&world, "ready 1\n1 yes\n2 unknown unreachable\nconnecting proto\nready 2\n");
    world_close(&world);
}

static void test_closed_in_the_middle(void **state)
{
    static const struct fake_step script[] = {SHAKE, EXPECT("SET"), SEND("+OK\r\n+O"), CLOSE};
    struct world world;
    (void)state;
    world_start(&world, script);
    fake_play(world.server, shut);
    fake_play(world.server, shut);
    fake_play(world.server, plain_good);
    run_until(&world, "ready");
    for (unsigned i = 1; i <= 3; i++) ask_sent(&world, i, NODE_ACQUIRE, 0);
    run_until(&world, "ready 2");
    assert_story(&world, "ready 1\n1 yes\n2 unknown unreachable\n3 unknown unreachable\n"
                         "connecting unreachable\ndown unreachable\nready 2\n");
    assert_int_equal(fake_connections(world.server), 4);
    world_close(&world);
}

/* ---- deadlines ---- */

/* No answer in time: unknown, at once. The late answer is swallowed, and the next one is for the next request.
 */
static void test_tombstone(void **state)
{
    static const struct fake_step script[] = {SHAKE,
                                              EXPECT("SET"),
                                              EXPECT("EVALSHA"),
                                              SEND("+OK\r\n"),
                                              STEP(FAKE_PIECES, "*2\r\n$3\r\nbob\r\n:9\r\n"),
                                              EXPECT("SET"),
                                              SEND("$-1\r\n"),
                                              END};
    struct world world;
    (void)state;
    world_start(&world, script);
    run_until(&world, "ready");
    uint32_t srtt_us = node_srtt_us(world.node);
    ask_sent(&world, 1, NODE_ACQUIRE, 20);
    run_until(&world, "1 unknown");
    assert_holds(world.error, "within 20 ms");
    assert_true(world.latency_us >= 20000);
    assert_int_equal(node_srtt_us(world.node), srtt_us); /* no answer, no measure */
    ask_sent(&world, 2, NODE_PEEK, 0);
    run_until(&world, "2 yes");
    ask_sent(&world, 3, NODE_ACQUIRE, 0);
    run_until(&world, "3 other");
    assert_story(&world, "ready 1\n1 unknown timeout\n2 yes\n3 other\n");
    world_close(&world);
}

/* Each request has a deadline of its own, not in the order of sending. */
static void test_deadline_order(void **state)
{
    struct world world;
    (void)state;
    world_start(&world, plain_good);
    run_until(&world, "ready");
    /* Far apart: those that one turn of the loop finds over are told in the order of sending. */
    ask_sent(&world, 1, NODE_ACQUIRE, 2000);
    ask_sent(&world, 2, NODE_ACQUIRE, 20);
    ask_sent(&world, 3, NODE_ACQUIRE, 0);
    ask_sent(&world, 4, NODE_ACQUIRE, 800);
    run_until(&world, "1 unknown");
    assert_story(&world, "ready 1\n2 unknown timeout\n4 unknown timeout\n1 unknown timeout\n");
    world_close(&world);
}

static void test_stall(void **state)
{
    struct world world;
    (void)state;
    world_open(&world);
    world.config.stall_ms = 60;
    fake_play(world.server, plain_good);
    fake_play(world.server, plain_good);
    assert_non_null(world_node(&world));
    run_until(&world, "ready");
    run_on(&world, 100); /* idle is not stalled */
    assert_story(&world, "ready 1\n");
    ask_sent(&world, 1, NODE_ACQUIRE, 20);
    ask_sent(&world, 2, NODE_RELEASE, 0);
    run_until(&world, "ready 2");
    assert_story(&world,
                 "ready 1\n1 unknown timeout\n2 unknown unreachable\nconnecting unreachable\nready 2\n");
    assert_holds(world.error, "no answer for 60 ms");
    world_close(&world);
}

static void on_block(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    block_ms(150);
}

static void on_write(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    fake_write(((struct world *)arg)->server, "+OK\r\n");
}

/*
 * A loop that stood still finds the deadline passed and the reply just there, in one and the same turn, behind
 * the poll: the timer must look at the socket before it judges.
 */
static void test_read_before_judging(void **state)
{
    static const struct fake_step script[] = {SHAKE, EXPECT("SET"), END};
    struct world world;
    (void)state;
    world_start(&world, script);
    run_until(&world, "ready");
    struct event *blocker = event_new(world.base, -1, 0, on_block, NULL);
    struct event *writer = event_new(world.base, -1, 0, on_write, &world);
    const struct timeval block_at = {0, 10000}, write_at = {0, 20000};
    ask_sent(&world, 1, NODE_ACQUIRE, 60);
    event_add(blocker, &block_at);
    event_add(writer, &write_at);
    run_until(&world, "1 ");
    assert_story(&world, "ready 1\n1 yes\n");
    assert_true(world.latency_us >= 60000);
    event_free(blocker);
    event_free(writer);
    world_close(&world);
}

/* ---- bounds ---- */

static void test_ring_full(void **state)
{
    struct world world;
    (void)state;
    world_start(&world, plain_good);
    run_until(&world, "ready");
    for (unsigned i = 1; i <= RING_MAX; i++) ask_sent(&world, i, NODE_ACQUIRE, 0);
    assert_int_equal(ask(&world, 0, NODE_ACQUIRE, 0), NODE_FULL);
    run_on(&world, 20);
    assert_int_equal(ask(&world, 0, NODE_ACQUIRE, 0), NODE_FULL);
    fake_write(world.server, "+OK\r\n");
    run_until(&world, "1 yes");
    ask_sent(&world, RING_MAX + 1, NODE_ACQUIRE, 0);
    fake_write(world.server, "?\r\n");
    run_until(&world, "connecting");
    assert_int_equal(world.n_replies, RING_MAX + 1);
    assert_holds(world.story, "4096 unknown unreachable\n4097 unknown unreachable\nconnecting proto\n");
    world_close(&world);
}

/* New locks leave room to those that are held, and both to attempts that are under way. */
static void test_kinds_of_room(void **state)
{
    struct world world;
    unsigned n = 0;
    (void)state;
    world_start(&world, plain_good);
    assert_false(node_has_room(world.node, NODE_ROOM_NEXT));
    run_until(&world, "ready");
    while (node_has_room(world.node, NODE_ROOM_NEW)) ask_sent(&world, ++n, NODE_ACQUIRE, 0);
    assert_int_equal(n, RING_MAX / 2);
    while (node_has_room(world.node, NODE_ROOM_KEEP)) ask_sent(&world, ++n, NODE_RELEASE, 0);
    assert_int_equal(n, RING_MAX / 4 * 3);
    assert_int_equal(ask(&world, 0, NODE_RELEASE, 0), NODE_FULL);
    assert_int_equal(ask(&world, 0, NODE_EXTEND, 0), NODE_FULL);
    ask_sent(&world, ++n, NODE_PEEK, 0);
    world_close(&world);
}

/* The caller does something else for long before the loop gets its turn: that is not the server's fault. */
static void test_time_runs_from_the_write(void **state)
{
    static const struct timespec pause = {1, 200000000};
    static const struct fake_step answers[] = {SHAKE, EXPECT("SET key"), SEND("+OK\r\n"), END};
    struct world world;
    (void)state;

    world_start(&world, answers);
    run_until(&world, "ready");
    ask_sent(&world, 1, NODE_ACQUIRE, 1000);
    nanosleep(&pause, NULL);
    run_until(&world, "1 ");
    assert_holds(world.story, "1 yes");
    world_close(&world);
}

/* Silence makes it late, an answer that waits to be read does not. */
static void test_late(void **state)
{
    const struct timespec pause = {0, 300000000};
    struct world world;
    (void)state;
    world_start(&world, plain_good);
    run_until(&world, "ready");
    nanosleep(&pause, NULL);
    assert_false(node_is_late(world.node)); /* nothing is asked of it */
    ask_sent(&world, 1, NODE_ACQUIRE, 0);
    assert_false(node_is_late(world.node));
    while (!node_is_late(world.node)) run_on(&world, 5);
    fake_write(world.server, "+OK\r\n");
    while (node_is_late(world.node)) nanosleep(&(struct timespec){0, 1000000}, NULL);
    assert_int_equal(world.n_replies, 0);
    run_until(&world, "1 yes");
    assert_false(node_is_late(world.node));
    world_close(&world);
}

/* More than the sockets take at once: what is left follows when there is room, in order and whole. */
static void test_large_output(void **state)
{
    static char key[8192];
    struct fake_step script[2 * 100 + 2] = {SHAKE};
    struct world world;
    unsigned n_sent = 0;
    (void)state;
    for (size_t i = 0; i < 100; i++) {
        script[1 + 2 * i] = (struct fake_step)EXPECT("SET kkkkkkkkkkkkkkkk");
        script[2 + 2 * i] = (struct fake_step)SEND("+OK\r\n");
    }
    memset(key, 'k', sizeof key);
    world_start(&world, script);
    run_until(&world, "ready");
    struct node_request request = {
        .op = NODE_ACQUIRE, NODE_KEY(key, sizeof key), .owner = "o", .owner_length = 1};
    int result = NODE_SENT;
    while (result == NODE_SENT) {
        request.tag.align_number = n_sent + 1;
        result = node_send(world.node, &request);
        if (result == NODE_SENT) n_sent++;
    }
    assert_int_equal(result, NODE_FULL); /* four megabytes wait */
    assert_in_range(n_sent, 101, RING_MAX - 1);
    write_most = 5000;
    run_until(&world, "\n100 yes\n");
    write_most = 0;
    assert_int_equal(world.n_replies, 100);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handshake_words),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_noscript),
        cmocka_unit_test(test_server_changed),
        cmocka_unit_test(test_plain_refusals),
        cmocka_unit_test(test_unsolicited),
        cmocka_unit_test(test_unsolicited_before_request),
        cmocka_unit_test(test_closed_in_the_middle),
        cmocka_unit_test(test_tombstone),
        cmocka_unit_test(test_deadline_order),
        cmocka_unit_test(test_stall),
        cmocka_unit_test(test_read_before_judging),
        cmocka_unit_test(test_ring_full),
        cmocka_unit_test(test_kinds_of_room),
        cmocka_unit_test(test_time_runs_from_the_write),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_large_output),
    };
    return cmocka_run_group_tests_name("requests to a node", tests, NULL, NULL);
}
