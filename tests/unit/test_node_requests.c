/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_node_requests.c - requests, deadlines and bounds of a node, against a server that plays scripts
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <event2/event.h>

#include "node_fixture.h"
#include "redis/inflight.h"

/* Only the transport sends by send(): one call is one write. */
static unsigned n_writes;
static uint64_t n_written; /* bytes */
/* So much is taken by one call, and then nothing by the next: a full socket, without filling one. 0: all. */
static size_t write_most;
static bool write_full;

ssize_t send(int fd, const void *data, size_t length, int flags)
{
    ssize_t n;

    n_writes++;
    if (write_most != 0) {
        write_full = !write_full;
        if (!write_full) {
            errno = EAGAIN;
            return -1;
        }
        if (length > write_most) length = write_most;
    }
    n = sendto(fd, data, length, flags, NULL, 0);
    if (n > 0) n_written += (uint64_t)n;
    return n;
}

static const struct fake_step plain_good[] = {SHAKE, END};
static const struct fake_step shut[] = {CLOSE};

NODE_TEST(the_handshake_is_one_write_of_these_commands)
{
    static const struct fake_step script[] = {EXPECT("AUTH bob se same"),
                                              SEND("+OK\r\n"),
                                              EXPECT("SELECT 2"),
                                              SEND("+OK\r\n"),
                                              EXPECT("CLIENT SETNAME me"),
                                              SEND("+OK\r\n"),
                                              SHAKE,
                                              END};
    unsigned before;

    node_fixture_open(f);
    node_fixture_uri(f, "redis://bob:se%20same@127.0.0.1", "/2");
    fake_play(f->server, script);
    assert_non_null(node_fixture_new_node(f));
    before = n_writes;
    run_until(f, "ready 1");
    assert_int_equal(n_writes - before, 1);
    assert_int_equal(fake_commands(f->server), 6);
    assert_trace(f, "ready 1\n");
    assert_string_equal(node_why(f->node), "");
    assert_true(node_srtt_us(f->node) > 0);
    assert_contains(f->logged, "Redis 7.0.15");
}

/* ---- requests ---- */

NODE_TEST(requests_of_one_turn_are_one_write)
{
    static const struct fake_step script[] = {SHAKE,
                                              EXPECT("SET key owner NX PX 30000"),
                                              SEND("+OK\r\n"),
                                              EXPECT("EVAL extend 1 key 1 owner 30000"),
                                              SEND(":0\r\n"),
                                              EXPECT("EVAL release 1 key 1 owner"),
                                              SEND("*2\r\n$3\r\nbob\r\n:7\r\n"),
                                              EXPECT("EVAL peek 1 key"),
                                              SEND("-WRONGTYPE x\r\n"),
                                              EXPECT("EVAL break 1 key"),
                                              SEND("*3\r\n$-1\r\n:-1\r\n$4\r\nhash\r\n"),
                                              END};
    unsigned before;

    node_fixture_ready(f, script);
    before = n_writes;
    ask_sent(f, 1, OP_ACQUIRE, 10000);
    ask_sent(f, 2, OP_EXTEND, 0);
    ask_sent(f, 3, OP_RELEASE, 10000);
    ask_sent(f, 4, OP_PEEK, 0);
    ask_sent(f, 5, OP_BREAK, 0);
    run_until(f, "5 yes");
    assert_int_equal(n_writes - before, 1);
    assert_trace(f, "ready 1\n1 yes\n2 missing\n3 other\n4 error foreign\n5 yes\n");
    assert_string_equal(f->error, "");
    assert_string_equal(f->type, "hash");
    assert_string_equal(f->holder, "bob");
    assert_true(f->latency_us > 0 && f->latency_us < LIMIT_S * 1000000);
}

NODE_TEST(replies_are_read_byte_by_byte)
{
    static const struct fake_step script[] = {
        SHAKE, EXPECT("SET"), EXPECT("EVAL "), SLEEP(5), STEP(FAKE_PIECES, "+OK\r\n*2\r\n$3\r\nbob\r\n:123\r\n"), END};

    node_fixture_ready(f, script);
    ask_sent(f, 1, OP_ACQUIRE, 0);
    ask_sent(f, 2, OP_PEEK, 0);
    run_until(f, "2 yes");
    assert_trace(f, "ready 1\n1 yes\n2 yes\n");
    assert_string_equal(f->holder, "bob");
}

NODE_TEST(bytes_are_counted_as_on_the_wire)
{
    static const struct fake_step script[] = {SHAKE, EXPECT("SET"), SEND("+OK\r\n"), END};
    static struct link_counts counts;
    uint64_t before = n_written, bytes_in;

    counts = (struct link_counts){0};
    node_fixture_open(f);
    f->config.link.counts = &counts;
    fake_play(f->server, script);
    assert_non_null(node_fixture_new_node(f));
    run_until(f, "ready 1");
    bytes_in = counts.bytes_in;
    assert_int_equal(ask(f, 1, OP_ACQUIRE, 0), NODE_SENT);
    run_until(f, "1 yes");
    assert_int_equal(counts.bytes_in - bytes_in, strlen("+OK\r\n"));
    assert_int_equal(counts.bytes_out, n_written - before);
}

/* ---- scripts ---- */

NODE_TEST(a_script_goes_whole_at_its_first_use_on_a_connection)
{
    static const struct fake_step first[] = {SHAKE,
                                             EXPECT("EVAL peek 1 key"),
                                             EXPECT("EVALSHA peek 1 key"),
                                             EXPECT("EVAL break 1 key"),
                                             EXPECT("EVALSHA break 1 key"),
                                             CLOSE};
    static const struct fake_step second[] = {SHAKE, EXPECT("EVAL peek 1 key"), SEND(":0\r\n"), END};

    node_fixture_start(f, first);
    fake_play(f->server, second);
    run_until(f, "ready 1");
    ask_sent(f, 1, OP_PEEK, 0);
    ask_sent(f, 2, OP_PEEK, 0);
    ask_sent(f, 3, OP_BREAK, 0);
    ask_sent(f, 4, OP_BREAK, 0);
    run_until(f, "ready 2");
    ask_sent(f, 5, OP_PEEK, 0);
    run_until(f, "5 missing");
}

/* Whatever asks next brings its script; whoever asked asks again. The server may forget again at any time. */
NODE_TEST(forgotten_scripts_are_a_fault_that_passes_and_go_whole_for_a_while)
{
    static const struct fake_step script[] = {SHAKE,
                                              EXPECT("EVAL peek"),
                                              EXPECT("EVAL break"),
                                              SEND(":0\r\n:0\r\n"),
                                              EXPECT("EVALSHA peek"),
                                              SEND("-NOSCRIPT No matching script.\r\n"),
                                              EXPECT("EVAL break"),
                                              EXPECT("EVAL peek"),
                                              EXPECT("EVAL peek"),
                                              SEND(":0\r\n:0\r\n:0\r\n"),
                                              EXPECT("EVAL peek"),
                                              EXPECT("EVALSHA peek"),
                                              SEND(":0\r\n:0\r\n"),
                                              END};

    node_fixture_ready(f, script);
    ask_sent(f, 1, OP_PEEK, 0);
    ask_sent(f, 2, OP_BREAK, 0);
    run_until(f, "2 missing");
    ask_sent(f, 3, OP_PEEK, 0);
    run_until(f, "3 error temporary");
    assert_contains(f->error, "NOSCRIPT");
    ask_sent(f, 4, OP_BREAK, 0);
    ask_sent(f, 5, OP_PEEK, 0);
    ask_sent(f, 6, OP_PEEK, 0);
    run_until(f, "6 missing");
    block_ms(1000);
    ask_sent(f, 7, OP_PEEK, 0);
    ask_sent(f, 8, OP_PEEK, 0);
    run_until(f, "8 missing");
}

/* A server that refused a script may not have looked at it. */
NODE_TEST(a_script_whose_first_use_was_refused_goes_whole_again)
{
    static const char *const replies[] = {"-NOPERM x\r\n", "-BUSY x\r\n", "-OOM x\r\n", "-ERR odd\r\n"};

    for (size_t i = 0; i < LENGTH(replies); i++) {
        struct fake_step script[] = {SHAKE,
                                     EXPECT("EVAL peek"),
                                     SEND(replies[i]),
                                     EXPECT("EVAL peek"),
                                     SEND(":0\r\n"),
                                     EXPECT("EVALSHA peek"),
                                     SEND(replies[i]),
                                     EXPECT("EVALSHA peek"),
                                     END};

        node_fixture_ready(f, script);
        for (unsigned tag = 1; tag <= 3; tag++) {
            char wanted[16];

            snprintf(wanted, sizeof(wanted), "\n%u ", tag);
            ask_sent(f, tag, OP_PEEK, 0);
            run_until(f, wanted);
        }
        ask_sent(f, 4, OP_PEEK, 0);
        while (fake_commands(f->server) < 8) run_on(f, 1);
    }
}

/* The buffer has room for scripts, but not for such a key beside it. */
NODE_TEST(a_script_that_found_no_room_goes_whole_later)
{
    static char key[70000];
    static const struct fake_step script[] = {SHAKE, EXPECT("SET"), SEND("+OK\r\n"), EXPECT("EVAL peek 1 key"), END};
    struct node_request request = {.op = OP_PEEK, NODE_KEY(key, sizeof(key)), .owner = ""};

    node_fixture_ready(f, script);
    ask_sent(f, 1, OP_ACQUIRE, 0);
    run_until(f, "1 yes");
    f->counted.until_failure = 0;
    assert_int_equal(node_send(f->node, &request), NODE_NOMEM);
    f->counted.until_failure = -1;
    ask_sent(f, 2, OP_PEEK, 0);
    while (fake_commands(f->server) < 6) run_on(f, 1);
}

/* The server is not what it was: its reply is reported, the other outcome is unknown. */
NODE_TEST(a_server_that_changed_is_connected_to_anew)
{
    static const struct {
        const char *reply, *trace;
    } rows[] = {
        {"-LOADING Redis is loading\r\n", "ready 1\n1 error temporary\n2 unknown unreachable\nconnecting temporary\n"},
        {"-READONLY You can't write\r\n", "ready 1\n1 error replica\n2 unknown unreachable\nconnecting replica\n"},
        {"-MASTERDOWN Link\r\n", "ready 1\n1 error temporary\n2 unknown unreachable\nconnecting temporary\n"},
        {"-NOAUTH Authentication required.\r\n", "ready 1\n1 error login\n2 unknown unreachable\nconnecting login\n"},
        {":17\r\n", "ready 1\n1 error proto\n2 unknown unreachable\nconnecting proto\n"},
        {">1\r\n+push\r\n", "ready 1\n1 unknown unreachable\n2 unknown unreachable\nconnecting proto\n"},
        {"$536870912\r\n", "ready 1\n1 unknown unreachable\n2 unknown unreachable\nconnecting proto\n"},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        const struct fake_step script[] = {SHAKE, EXPECT("SET"), SEND(rows[i].reply), END};

        node_fixture_start(f, script);
        fake_play(f->server, plain_good);
        run_until(f, "ready");
        ask_sent(f, 1, OP_ACQUIRE, 0);
        ask_sent(f, 2, OP_PEEK, 0);
        run_until(f, "connecting");
        assert_trace(f, rows[i].trace);
        assert_int_equal(ask(f, 3, OP_PEEK, 0), NODE_NOT_READY);
        run_until(f, "ready 2");
    }
}

NODE_TEST(a_request_refused_by_right_or_memory_keeps_the_connection)
{
    static const struct fake_step script[] = {SHAKE,
                                              EXPECT("SET"),
                                              SEND("-NOPERM no rights for SET\r\n"),
                                              EXPECT("SET"),
                                              SEND("-OOM command not allowed\r\n"),
                                              EXPECT("SET"),
                                              SEND("-ERR whatever\r\n"),
                                              EXPECT("SET"),
                                              SEND("$-1\r\n"),
                                              END};

    node_fixture_ready(f, script);
    for (unsigned i = 1; i <= 4; i++) ask_sent(f, i, OP_ACQUIRE, 0);
    run_until(f, "4 other");
    assert_trace(f, "ready 1\n1 error auth\n2 error refused\n3 unknown other\n4 other\n");
}

NODE_TEST(a_reply_without_a_request_ends_the_connection)
{
    static const struct fake_step script[] = {SHAKE, EXPECT("SET"), SEND("+OK\r\n+OK\r\n"), END};

    node_fixture_start(f, script);
    fake_play(f->server, plain_good);
    run_until(f, "ready");
    ask_sent(f, 1, OP_ACQUIRE, 0);
    run_until(f, "ready 2");
    assert_trace(f, "ready 1\n1 yes\nconnecting proto\nready 2\n");
    assert_contains(f->logged, "nobody asked for");
}

static void ask_more(struct node_fixture *f, const char *line)
{
    if (strcmp(line, "1 yes") == 0) assert_int_equal(ask(f, 2, OP_ACQUIRE, 0), NODE_SENT);
}

NODE_TEST(a_surplus_reply_does_not_answer_a_request_queued_behind_it)
{
    static const struct fake_step script[] = {SHAKE, EXPECT("SET"), SEND("+OK\r\n+OK\r\n"), END};

    node_fixture_start(f, script);
    fake_play(f->server, plain_good);
    f->on_line = ask_more;
    run_until(f, "ready");
    ask_sent(f, 1, OP_ACQUIRE, 0);
    run_until(f, "ready 2");
    assert_trace(f, "ready 1\n1 yes\n2 unknown unreachable\nconnecting proto\nready 2\n");
}

NODE_TEST(a_close_in_a_reply_leaves_outcomes_unknown)
{
    static const struct fake_step script[] = {SHAKE, EXPECT("SET"), SEND("+OK\r\n+O"), CLOSE};

    node_fixture_start(f, script);
    fake_play(f->server, shut);
    fake_play(f->server, shut);
    fake_play(f->server, plain_good);
    run_until(f, "ready");
    for (unsigned i = 1; i <= 3; i++) ask_sent(f, i, OP_ACQUIRE, 0);
    run_until(f, "ready 2");
    assert_trace(f, "ready 1\n1 yes\n2 unknown unreachable\n3 unknown unreachable\n"
                    "connecting unreachable\ndown unreachable\nready 2\n");
    assert_int_equal(fake_connections(f->server), 4);
}

/* ---- deadlines ---- */

/* The deadline leaves a tombstone in the ring: the late answer is swallowed, the next one is for the next
 * request.
 */
NODE_TEST(an_answer_behind_its_deadline_is_swallowed)
{
    static const struct fake_step script[] = {SHAKE,
                                              EXPECT("SET"),
                                              EXPECT("EVAL "),
                                              SEND("+OK\r\n"),
                                              STEP(FAKE_PIECES, "*2\r\n$3\r\nbob\r\n:9\r\n"),
                                              EXPECT("SET"),
                                              SEND("$-1\r\n"),
                                              END};
    uint32_t srtt_us;

    node_fixture_ready(f, script);
    srtt_us = node_srtt_us(f->node);
    ask_sent(f, 1, OP_ACQUIRE, 20);
    run_until(f, "1 unknown");
    assert_contains(f->error, "within 20 ms");
    assert_true(f->latency_us >= 20000);
    assert_int_equal(node_srtt_us(f->node), srtt_us);
    ask_sent(f, 2, OP_PEEK, 0);
    run_until(f, "2 yes");
    ask_sent(f, 3, OP_ACQUIRE, 0);
    run_until(f, "3 other");
    assert_trace(f, "ready 1\n1 unknown timeout\n2 yes\n3 other\n");
}

NODE_TEST(each_request_has_a_deadline_of_its_own)
{
    node_fixture_ready(f, plain_good);
    /* Far apart: deadlines that one turn of the loop finds passed are reported in the order of sending. */
    ask_sent(f, 1, OP_ACQUIRE, 2000);
    ask_sent(f, 2, OP_ACQUIRE, 20);
    ask_sent(f, 3, OP_ACQUIRE, 0);
    ask_sent(f, 4, OP_ACQUIRE, 800);
    run_until(f, "1 unknown");
    assert_trace(f, "ready 1\n2 unknown timeout\n4 unknown timeout\n1 unknown timeout\n");
}

NODE_TEST(a_connection_whose_head_is_not_answered_stalls)
{
    node_fixture_open(f);
    f->config.stall_ms = 600; /* the handshake must not take so long on a busy machine */
    fake_play(f->server, plain_good);
    fake_play(f->server, plain_good);
    assert_non_null(node_fixture_new_node(f));
    run_until(f, "ready");
    run_on(f, 700); /* idle is not stalled */
    assert_trace(f, "ready 1\n");
    ask_sent(f, 1, OP_ACQUIRE, 20);
    ask_sent(f, 2, OP_RELEASE, 0);
    run_until(f, "ready 2");
    assert_trace(f, "ready 1\n1 unknown timeout\n2 unknown unreachable\nconnecting unreachable\nready 2\n");
    assert_contains(f->error, "no answer for 600 ms");
}

static void ask_patiently(struct node_fixture *f, unsigned tag)
{
    struct node_request request = {
        .op = OP_ACQUIRE, NODE_KEY("key", 3), .owner = "owner", .owner_length = 5, .lease_ms = 30000, .patient = true};

    request.tag.align_number = tag;
    assert_int_equal(node_send(f->node, &request), NODE_SENT);
}

/* Unless somebody else is in a hurry on the same connection. */
NODE_TEST(a_connection_whose_requests_are_patient_stalls_later)
{
    for (int hurries = 0; hurries < 2; hurries++) {
        node_fixture_open(f);
        f->config.stall_ms = 600;
        fake_play(f->server, plain_good);
        fake_play(f->server, plain_good);
        assert_non_null(node_fixture_new_node(f));
        run_until(f, "ready");
        ask_patiently(f, 1);
        if (hurries != 0) ask_sent(f, 2, OP_EXTEND, 0);
        run_until(f, "ready 2");
        assert_contains(f->error, hurries != 0 ? "no answer for 600 ms" : "no answer for 2400 ms");
    }
}

static uint64_t idle_us;

static uint64_t clock_after_idling(void *arg)
{
    return clock_us(arg) + idle_us;
}

/* Something between may have forgotten the connection. */
NODE_TEST(a_connection_that_was_quiet_for_long_stalls_sooner)
{
    node_fixture_open(f);
    idle_us = 0;
    f->config.link.now_us = clock_after_idling;
    fake_play(f->server, plain_good);
    fake_play(f->server, plain_good);
    assert_non_null(node_fixture_new_node(f));
    run_until(f, "ready");
    idle_us = 6000000;
    ask_sent(f, 1, OP_ACQUIRE, 0);
    run_until(f, "ready 2");
    assert_trace(f, "ready 1\n1 unknown unreachable\nconnecting unreachable\nready 2\n");
    assert_contains(f->error, " after a silence, connection dropped");
}

/* How the node closed its latest connection. */
static int closed_by_reset;

static void note_close(struct system *system, int fd, bool reset)
{
    closed_by_reset = reset;
    system_libevent(NULL, NULL).ops->close(system, fd, reset);
}

/* A set that the system still retransmits would be executed behind its release on the next connection. */
NODE_TEST(a_connection_with_requests_without_an_answer_is_reset)
{
    static const struct {
        const char *what;
        enum op ops[2];
        unsigned n, timeout_ms;
        bool greets, reset;
    } rows[] = {{.what = "nothing under way"},
                {"an acquire", {OP_ACQUIRE}, 1, 0, false, true},
                {"an acquire over its time", {OP_ACQUIRE}, 1, 1, false, true},
                {"an acquire, and its release", {OP_ACQUIRE, OP_RELEASE}, 2, 0, false, true},
                {"a repair", {OP_RELEASE, OP_REPAIR}, 2, 0, false, true},
                {"a release of what was answered", {OP_RELEASE}, 1, 0, false, false},
                {.what = "the greeting", .greets = true, .reset = true}};

    for (size_t i = 0; i < LENGTH(rows); i++) {
        static const struct fake_step silent[] = {END};
        struct system_ops ops;

        node_fixture_open(f);
        ops = *f->system.ops;
        ops.close = note_close;
        f->system.ops = &ops;
        closed_by_reset = -1;
        fake_play(f->server, rows[i].greets ? silent : plain_good);
        assert_non_null(node_fixture_new_node(f));
        if (rows[i].greets)
            run_on(f, 100);
        else
            run_until(f, "ready");
        for (unsigned n = 0; n < rows[i].n; n++) ask_sent(f, n, rows[i].ops[n], rows[i].timeout_ms);
        if (rows[i].timeout_ms > 0) run_until(f, "unknown timeout");
        node_free(f->node);
        f->node = NULL;
        if (closed_by_reset != rows[i].reset) fail_msg("%s: %d", rows[i].what, closed_by_reset);
    }
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
    fake_write(((struct node_fixture *)arg)->server, "+OK\r\n");
}

/* A loop that stalled finds the deadline passed and the reply there, in one turn: the timer reads first. */
NODE_TEST(a_reply_that_lies_there_beats_its_deadline)
{
    static const struct fake_step script[] = {SHAKE, EXPECT("SET"), END};
    const struct timeval block_at = {0, 10000}, write_at = {0, 20000};

    node_fixture_ready(f, script);
    ask_sent(f, 1, OP_ACQUIRE, 60);
    event_base_once(f->base, -1, EV_TIMEOUT, on_block, NULL, &block_at);
    event_base_once(f->base, -1, EV_TIMEOUT, on_write, f, &write_at);
    run_until(f, "1 ");
    assert_trace(f, "ready 1\n1 yes\n");
    assert_true(f->latency_us >= 60000);
}

/* ---- bounds ---- */

NODE_TEST(a_full_ring_refuses_until_an_answer_comes)
{
    char last[128];

    node_fixture_ready(f, plain_good);
    for (unsigned i = 1; i <= INFLIGHT_MAX; i++) ask_sent(f, i, OP_ACQUIRE, 0);
    assert_int_equal(ask(f, 0, OP_ACQUIRE, 0), NODE_FULL);
    run_on(f, 20);
    assert_int_equal(ask(f, 0, OP_ACQUIRE, 0), NODE_FULL);
    fake_write(f->server, "+OK\r\n");
    run_until(f, "1 yes");
    ask_sent(f, INFLIGHT_MAX + 1, OP_ACQUIRE, 0);
    fake_write(f->server, "?\r\n");
    run_until(f, "connecting");
    assert_int_equal(f->n_replies, INFLIGHT_MAX + 1);
    snprintf(last, sizeof(last), "%d unknown unreachable\n%d unknown unreachable\nconnecting proto\n", INFLIGHT_MAX,
             INFLIGHT_MAX + 1);
    assert_contains(f->trace, last);
}

NODE_TEST(new_locks_leave_room_for_held_ones_and_both_for_attempts_under_way)
{
    unsigned n = 0;

    node_fixture_start(f, plain_good);
    assert_false(node_has_room(f->node, NODE_ROOM_NEXT));
    run_until(f, "ready");
    while (node_has_room(f->node, NODE_ROOM_NEW)) ask_sent(f, ++n, OP_ACQUIRE, 0);
    assert_int_equal(n, INFLIGHT_MAX / 2);
    while (node_has_room(f->node, NODE_ROOM_KEEP)) ask_sent(f, ++n, OP_RELEASE, 0);
    assert_int_equal(n, INFLIGHT_MAX / 4 * 3);
    assert_int_equal(ask(f, 0, OP_RELEASE, 0), NODE_FULL);
    assert_int_equal(ask(f, 0, OP_EXTEND, 0), NODE_FULL);
    ask_sent(f, ++n, OP_PEEK, 0);
}

/* The caller keeps the loop from running: that is not the server's fault. */
NODE_TEST(a_deadline_counts_from_the_write)
{
    static const struct fake_step answers[] = {SHAKE, EXPECT("SET key"), SEND("+OK\r\n"), END};

    node_fixture_ready(f, answers);
    ask_sent(f, 1, OP_ACQUIRE, 1000);
    block_ms(1200);
    run_until(f, "1 ");
    assert_contains(f->trace, "1 yes");
}

NODE_TEST(silence_makes_a_node_late_but_an_unread_answer_does_not)
{
    node_fixture_ready(f, plain_good);
    block_ms(300);
    assert_false(node_is_late(f->node)); /* nothing is asked of it */
    ask_sent(f, 1, OP_ACQUIRE, 0);
    assert_false(node_is_late(f->node));
    while (!node_is_late(f->node)) run_on(f, 5);
    fake_write(f->server, "+OK\r\n");
    while (node_is_late(f->node)) block_ms(1);
    assert_int_equal(f->n_replies, 0);
    run_until(f, "1 yes");
    assert_false(node_is_late(f->node));
}

NODE_TEST(a_server_that_was_slow_is_late_after_a_timeout_of_its_requests)
{
    node_fixture_ready(f, plain_good);
    ask_sent(f, 1, OP_ACQUIRE, 60000);
    run_on(f, 1000);
    fake_write(f->server, "+OK\r\n");
    run_until(f, "1 yes");
    ask_sent(f, 2, OP_ACQUIRE, 50);
    fake_write(f->server, "+OK\r\n");
    run_until(f, "2 ");
    ask_sent(f, 3, OP_ACQUIRE, 0);
    run_on(f, 100);
    assert_true(node_is_late(f->node));
}

NODE_TEST(output_that_the_socket_does_not_take_follows_in_order)
{
    static char key[8192];
    struct fake_step script[2 * 100 + 2] = {SHAKE};
    struct node_request request = {.op = OP_ACQUIRE, NODE_KEY(key, sizeof(key)), .owner = "o", .owner_length = 1};
    int result = NODE_SENT;
    unsigned n_sent = 0;

    for (size_t i = 0; i < 100; i++) {
        script[1 + 2 * i] = (struct fake_step)EXPECT("SET kkkkkkkkkkkkkkkk");
        script[2 + 2 * i] = (struct fake_step)SEND("+OK\r\n");
    }
    memset(key, 'k', sizeof(key));
    node_fixture_ready(f, script);
    while (result == NODE_SENT) {
        request.tag.align_number = n_sent + 1;
        result = node_send(f->node, &request);
        if (result == NODE_SENT) n_sent++;
    }
    assert_int_equal(result, NODE_FULL); /* four megabytes wait */
    assert_in_range(n_sent, 101, INFLIGHT_MAX - 1);
    write_most = 5000;
    run_until(f, "\n100 yes\n");
    write_most = 0;
    assert_int_equal(f->n_replies, 100);
}
