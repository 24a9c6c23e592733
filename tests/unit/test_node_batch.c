/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_node_batch.c - requests of one turn of the loop that leave as one command, and each gets an answer of its own
 */
#include <stdio.h>
#include <string.h>

#include "node_fixture.h"
#include "redis/batch.h"

/* At its first use, and behind that. */
#define BATCH_OF(n)    "EVAL combined " n " "
#define BATCH_LATER(n) "EVALSHA combined " n " "
#define ALONE          "EVAL release 1 "
#define ALONE_LATER    "EVALSHA release 1 "

static const struct fake_step plain_good[] = {SHAKE, END};

static int send_key(struct node_fixture *f, unsigned tag, enum op op, const char *key, bool silent)
{
    struct node_request request = {
        .op = op, NODE_KEY(key, strlen(key)), .owner = "owner", .owner_length = 5, .lease_ms = 30000, .silent = silent};

    request.tag.align_number = tag;
    return node_send(f->node, &request);
}

/* Releases with the tags 1 to n, each of a key of its own. */
static void release(struct node_fixture *f, unsigned n)
{
    for (unsigned i = 1; i <= n; i++) {
        char key[8];

        snprintf(key, sizeof(key), "k%u", i);
        assert_int_equal(send_key(f, i, OP_RELEASE, key, false), NODE_SENT);
    }
}

/* ---- what goes together ---- */

NODE_TEST(releases_of_one_turn_are_one_command_behind_the_others)
{
    static const struct fake_step script[] = {
        SHAKE,
        EXPECT("SET other owner NX PX 30000"),
        SEND("+OK\r\n"),
        EXPECT(BATCH_OF("3") "k1 k2 k3 3 rrs 0   604800000  30000 owner owner owner"),
        SEND("$12\r\n:1\r\n:0\r\n:1\r\n\r\n"),
        END};

    node_fixture_ready(f, script);
    release(f, 2);
    assert_int_equal(send_key(f, 3, OP_RELEASE, "k3", true), NODE_SENT);
    assert_int_equal(send_key(f, 4, OP_ACQUIRE, "other", false), NODE_SENT);
    assert_int_equal(node_in_flight(f->node), 4);
    assert_int_equal(f->n_replies, 0);
    run_until(f, "3 yes");
    assert_trace(f, "ready 1\n4 yes\n1 yes\n2 missing\n3 yes\n");
    assert_int_equal(node_in_flight(f->node), 0);
}

/* What comes behind a release of its key is executed behind it; the next turn has a batch of its own. */
NODE_TEST(a_key_is_once_in_a_batch_and_keeps_its_order)
{
    static const struct fake_step script[] = {
        SHAKE,
        EXPECT(BATCH_OF("2") "k1 k2 2 rr"),
        EXPECT("SET k2 owner NX PX 30000"),
        EXPECT("EVAL peek 1 k1"),
        EXPECT(ALONE "k1 1 owner"),
        EXPECT(ALONE_LATER "k1 1 owner"),
        SEND("$8\r\n:1\r\n:1\r\n\r\n+OK\r\n*5\r\n$-1\r\n:-2\r\n:0\r\n$0\r\n\r\n:-1\r\n"),
        SEND(":0\r\n:0\r\n"),
        EXPECT(ALONE_LATER "k1 1 owner"),
        SEND(":1\r\n"),
        END};

    node_fixture_ready(f, script);
    release(f, 2);
    assert_int_equal(send_key(f, 3, OP_ACQUIRE, "k2", false), NODE_SENT);
    assert_int_equal(send_key(f, 4, OP_PEEK, "k1", false), NODE_SENT);
    assert_int_equal(send_key(f, 5, OP_RELEASE, "k1", false), NODE_SENT);
    assert_int_equal(send_key(f, 6, OP_RELEASE, "k1", false), NODE_SENT);
    run_until(f, "6 missing");
    assert_trace(f, "ready 1\n1 yes\n2 yes\n3 yes\n4 missing\n5 missing\n6 missing\n");
    release(f, 1);
    run_until(f, "6 missing\n1 yes\n");
}

NODE_TEST(what_a_batch_does_not_know_goes_alone)
{
    static const struct node_key two[] = {{"k1", 2}, {"k2", 2}};
    static const struct fake_step script[] = {SHAKE,
                                              EXPECT(ALONE "k9 1 owner"),
                                              EXPECT("EVALSHA release 2 k1 k2 2 owner"),
                                              EXPECT("EVALSHA release 2 k1 quorlock:fence:k1"),
                                              SEND(":1\r\n:1\r\n:1\r\n"),
                                              END};
    struct node_request request = {
        .op = OP_RELEASE, .keys = two, .n_keys = 2, .owner = "owner", .owner_length = 5, .tag.align_number = 1};

    node_fixture_ready(f, script);
    assert_int_equal(send_key(f, 9, OP_RELEASE, "k9", false), NODE_SENT);
    assert_int_equal(node_send(f->node, &request), NODE_SENT);
    request = (struct node_request){.op = OP_RELEASE, NODE_KEY("k1", 2), .owner = "owner", .owner_length = 5};
    request.fence = 5;
    request.tag.align_number = 2;
    assert_int_equal(node_send(f->node, &request), NODE_SENT);
    run_until(f, "2 yes");
    assert_trace(f, "ready 1\n9 yes\n1 yes\n2 yes\n");
}

/* One lease for all that have one. */
NODE_TEST(extends_go_with_releases_and_with_equal_leases)
{
    static const struct fake_step script[] = {
        SHAKE,
        EXPECT(BATCH_OF("3") "k1 k2 k3 3 ree 30000   604830000  30000 owner owner owner"),
        SEND("$28\r\n:1\r\n*2\r\n:1\r\n:5\r\n*2\r\n:1\r\n:5\r\n\r\n"),
        EXPECT(BATCH_LATER("2") "k4 k5 2 er 9   604800009  30000 owner owner"),
        SEND("$8\r\n:0\r\n:1\r\n\r\n"),
        END};
    struct node_request request = {
        .op = OP_EXTEND, NODE_KEY("k4", 2), .owner = "owner", .owner_length = 5, .lease_ms = 9, .tag.align_number = 4};

    node_fixture_ready(f, script);
    release(f, 1);
    assert_int_equal(send_key(f, 2, OP_EXTEND, "k2", false), NODE_SENT);
    assert_int_equal(send_key(f, 3, OP_EXTEND, "k3", false), NODE_SENT);
    assert_int_equal(node_send(f->node, &request), NODE_SENT);
    assert_int_equal(send_key(f, 5, OP_RELEASE, "k5", false), NODE_SENT);
    run_until(f, "5 yes");
    assert_trace(f, "ready 1\n1 yes\n2 yes\n3 yes\n4 missing\n5 yes\n");
}

static int acquire_fenced(struct node_fixture *f, unsigned tag, const char *key, uint32_t lease_ms, uint64_t ttl_ms)
{
    struct node_request request = {.op = OP_ACQUIRE,
                                   NODE_KEY(key, strlen(key)),
                                   .owner = "owner",
                                   .owner_length = 5,
                                   .lease_ms = lease_ms,
                                   .fenced = true,
                                   .fence = 70 + tag,
                                   .fence_ttl_ms = ttl_ms,
                                   .tag.align_number = tag};

    return node_send(f->node, &request);
}

/* Of the same lease, and with counters of the same life. */
NODE_TEST(acquires_with_counters_go_with_their_like)
{
    static const struct fake_step script[] = {
        SHAKE,
        EXPECT(BATCH_OF("4") "k1 k2 quorlock:fence:k1 quorlock:fence:k2 2 aa 9  each 100  30000 owner owner 71 72"),
        EXPECT("EVAL acquire 2 k3 quorlock:fence:k3 1 owner 8  73 99  30000"),
        EXPECT("EVALSHA acquire 2 k4 quorlock:fence:k4 1 owner 8  74 98  30000"),
        EXPECT(ALONE "k5 1 owner"),
        SEND("$34\r\n*3\r\n:1\r\n:71\r\n:5\r\n*3\r\n:1\r\n:72\r\n:5\r\n\r\n"),
        SEND("*3\r\n:1\r\n:73\r\n:5\r\n*3\r\n$1\r\nx\r\n:1\r\n:0\r\n:1\r\n"),
        END};

    node_fixture_ready(f, script);
    assert_int_equal(acquire_fenced(f, 1, "k1", 9, 91), NODE_SENT);
    assert_int_equal(acquire_fenced(f, 2, "k2", 9, 91), NODE_SENT);
    assert_int_equal(acquire_fenced(f, 3, "k3", 8, 91), NODE_SENT);
    assert_int_equal(acquire_fenced(f, 4, "k4", 8, 90), NODE_SENT);
    assert_int_equal(send_key(f, 5, OP_RELEASE, "k5", false), NODE_SENT);
    run_until(f, "5 yes");
    assert_trace(f, "ready 1\n1 yes\n2 yes\n3 yes\n4 other\n5 yes\n");
}

/* The script makes the channels' names with the prefix; the counters' are among its keys. */
NODE_TEST(a_batch_knows_the_prefix)
{
    static const struct fake_step script[] = {
        SHAKE,
        EXPECT(
            BATCH_OF("4") "p:1 p:2 p:quorlock:fence:1 p:quorlock:fence:2 2 aa 9  each 100  30000 owner owner 71 72 p:"),
        SEND("$34\r\n*3\r\n:1\r\n:71\r\n:5\r\n*3\r\n:1\r\n:72\r\n:5\r\n\r\n"), END};

    node_fixture_ready(f, script);
    for (unsigned i = 1; i <= 2; i++) {
        struct node_request request = {.op = OP_ACQUIRE,
                                       NODE_KEY(i == 1 ? "p:1" : "p:2", 3),
                                       .prefix = 2,
                                       .owner = "owner",
                                       .owner_length = 5,
                                       .lease_ms = 9,
                                       .fenced = true,
                                       .fence = 70 + i,
                                       .fence_ttl_ms = 91,
                                       .tag.align_number = i};

        assert_int_equal(node_send(f->node, &request), NODE_SENT);
    }
    run_until(f, "2 yes");
    assert_trace(f, "ready 1\n1 yes\n2 yes\n");
}

NODE_TEST(a_batch_is_bounded)
{
    static const struct fake_step script[] = {SHAKE, EXPECT(BATCH_OF("60") "k1 k2"), EXPECT(ALONE "k61"), END};

    node_fixture_ready(f, script);
    release(f, DIALECT_BATCH_MAX + 1);
    while (fake_commands(f->server) < 6) run_on(f, 1);
    assert_int_equal(node_in_flight(f->node), DIALECT_BATCH_MAX + 1);
}

/* ---- answers ---- */

NODE_TEST(each_request_of_a_batch_has_its_own_answer)
{
    static const char verdicts[] =
        ":3\r\n*2\r\n$3\r\nbob\r\n:77\r\n-WRONGTYPE hash\r\n:0\r\n-OOM memory\r\n-ERR odd\r\n:1\r\n";
    static char whole[200];
    struct fake_step script[] = {SHAKE, EXPECT(BATCH_OF("7")), SEND(whole), END};

    snprintf(whole, sizeof(whole), "$%zu\r\n%s\r\n", sizeof(verdicts) - 1, verdicts);
    node_fixture_ready(f, script);
    release(f, 7);
    run_until(f, "7 yes");
    assert_trace(f, "ready 1\n1 yes\n2 other\n3 error foreign\n4 missing\n5 error refused\n6 unknown other\n7 yes\n");
    assert_string_equal(f->holder, "bob");
}

NODE_TEST(an_error_of_the_whole_is_the_answer_to_each)
{
    static const struct {
        const char *reply, *trace;
    } rows[] = {
        {"-BUSY a script\r\n", "ready 1\n1 error temporary\n2 error temporary\n3 error temporary\n"},
        {"-ERR odd\r\n", "ready 1\n1 unknown other\n2 unknown other\n3 unknown other\n"},
        {"-LOADING x\r\n",
         "ready 1\n1 error temporary\n2 unknown unreachable\n3 unknown unreachable\nconnecting temporary\n"},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        const struct fake_step script[] = {SHAKE, EXPECT(BATCH_OF("3")), SEND(rows[i].reply), END};

        node_fixture_ready(f, script);
        release(f, 3);
        run_until(f, "3 ");
        if (strstr(rows[i].trace, "connecting") != NULL) run_until(f, "connecting");
        assert_trace(f, rows[i].trace);
    }
}

/* The server was told to forget: the next batch brings the script along. */
NODE_TEST(a_forgotten_script_of_batches_is_sent_again)
{
    static const struct fake_step script[] = {SHAKE,
                                              EXPECT(BATCH_OF("2")),
                                              SEND("$8\r\n:0\r\n:0\r\n\r\n"),
                                              EXPECT(BATCH_LATER("2")),
                                              SEND("-NOSCRIPT No matching script.\r\n"),
                                              EXPECT(BATCH_OF("2")),
                                              SEND("$8\r\n:1\r\n:1\r\n\r\n"),
                                              END};

    node_fixture_ready(f, script);
    release(f, 2);
    run_until(f, "2 missing");
    release(f, 2);
    run_until(f, "2 error temporary");
    release(f, 2);
    run_until(f, "2 yes");
    assert_trace(f, "ready 1\n1 missing\n2 missing\n1 error temporary\n2 error temporary\n1 yes\n2 yes\n");
}

/* A right to one of the keys may be missing: those with the others must not suffer for long. */
NODE_TEST(a_batch_that_is_denied_is_a_fault_that_passes_and_goes_one_by_one_from_then_on)
{
    static const struct fake_step script[] = {
        SHAKE,
        EXPECT(BATCH_OF("2")),
        SEND("-NOPERM this user has no permissions to access one of the keys\r\n"),
        EXPECT(ALONE "k1"),
        EXPECT(ALONE_LATER "k2"),
        SEND(":1\r\n-NOPERM this user\r\n"),
        END};

    node_fixture_ready(f, script);
    release(f, 2);
    run_until(f, "2 error");
    release(f, 2);
    run_until(f, "2 error auth");
    assert_trace(f, "ready 1\n1 error temporary\n2 error temporary\n1 yes\n2 error auth\n");
}

/* Whatever does not fit ends the connection, and is no yes to anybody behind it. */
NODE_TEST(verdicts_that_do_not_fit_end_the_connection)
{
    static const struct {
        const char *reply, *trace;
    } rows[] = {
        {"$8\r\n:1\r\n:1\r\n\r\n", "ready 1\n1 yes\n2 yes\n3 error proto\nconnecting proto\n"},
        {"$16\r\n:1\r\n:1\r\n:1\r\n:1\r\n\r\n", "ready 1\n1 yes\n2 yes\n3 error proto\nconnecting proto\n"},
        {"$14\r\n:1\r\n:1\r\n:1\r\n:1\r\n", "ready 1\n1 yes\n2 yes\n3 error proto\nconnecting proto\n"},
        {"$5\r\nhello\r\n", "ready 1\n1 error proto\n2 unknown unreachable\n3 unknown unreachable\nconnecting proto\n"},
        {"$0\r\n\r\n", "ready 1\n1 error proto\n2 unknown unreachable\n3 unknown unreachable\nconnecting proto\n"},
        {"$-1\r\n", "ready 1\n1 error proto\n2 unknown unreachable\n3 unknown unreachable\nconnecting proto\n"},
        {":1\r\n", "ready 1\n1 error proto\n2 unknown unreachable\n3 unknown unreachable\nconnecting proto\n"},
        {"*3\r\n:1\r\n:1\r\n:1\r\n",
         "ready 1\n1 error proto\n2 unknown unreachable\n3 unknown unreachable\nconnecting proto\n"},
        {"$27\r\n:1\r\n*2\r\n:1\r\n$5\r\nGUARD\r\n:1\r\n\r\n",
         "ready 1\n1 yes\n2 yes\n3 unknown unreachable\nconnecting guard\n"},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        const struct fake_step script[] = {SHAKE, EXPECT(BATCH_OF("3")), SEND(rows[i].reply), END};

        node_fixture_ready(f, script);
        release(f, 3);
        run_until(f, "connecting");
        assert_trace(f, rows[i].trace);
    }
}

NODE_TEST(the_verdicts_of_a_new_connection_begin_anew)
{
    static const struct fake_step first[] = {SHAKE, EXPECT(BATCH_OF("3")), SEND("$18\r\n:1\r\n-GUARD x\r\n:1\r\n\r\n"),
                                             END};
    static const struct fake_step second[] = {SHAKE, EXPECT(BATCH_OF("2")), SEND("$8\r\n:1\r\n:0\r\n\r\n"), END};

    node_fixture_start(f, first);
    fake_play(f->server, second);
    run_until(f, "ready 1");
    release(f, 3);
    run_until(f, "ready 2");
    release(f, 2);
    run_until(f, "2 missing");
}

/* ---- connections and deadlines ---- */

NODE_TEST(a_connection_that_ends_leaves_all_of_a_batch_unknown)
{
    static const struct fake_step script[] = {SHAKE, EXPECT(BATCH_OF("3")), SEND("$12\r\n:1\r\n:1\r\n"), CLOSE};

    node_fixture_start(f, script);
    fake_play(f->server, plain_good);
    run_until(f, "ready 1");
    release(f, 3);
    run_until(f, "ready 2");
    assert_trace(f, "ready 1\n1 unknown unreachable\n2 unknown unreachable\n3 unknown unreachable\n"
                    "connecting unreachable\nready 2\n");
}

static void lose_memory(struct node_fixture *f, const char *line)
{
    if (strcmp(line, "1 yes") == 0) f->counted.until_failure = 0;
}

/* What cannot be read is unknown, and no fault of the server. */
NODE_TEST(memory_that_is_short_in_the_midst_of_a_batch_ends_the_connection)
{
    static const struct fake_step script[] = {SHAKE, EXPECT(BATCH_OF("3")),
                                              SEND("$26\r\n:1\r\n*2\r\n$3\r\nbob\r\n:77\r\n:1\r\n\r\n"), END};

    node_fixture_start(f, script);
    fake_play(f->server, plain_good);
    run_until(f, "ready 1");
    f->on_line = lose_memory;
    release(f, 3);
    run_until(f, "ready 2");
    assert_trace(f, "ready 1\n1 yes\n2 unknown unreachable\n3 unknown unreachable\nconnecting limit\nready 2\n");
}

/* They have not left yet, and each has its answer all the same. */
NODE_TEST(what_waits_for_the_end_of_the_turn_is_reported_when_the_connection_ends_before)
{
    node_fixture_ready(f, plain_good);
    release(f, 3);
    node_expel(f->node, FAULT_CONFIG, "twins");
    assert_trace(f, "ready 1\n1 unknown unreachable\n2 unknown unreachable\n3 unknown unreachable\ndown config\n");
    assert_int_equal(node_in_flight(f->node), 0);
    run_on(f, 5);
}

static void ask_in_the_midst(struct node_fixture *f, const char *line)
{
    if (strcmp(line, "1 yes") == 0) assert_int_equal(send_key(f, 4, OP_RELEASE, "k4", false), NODE_SENT);
    if (strcmp(line, "2 yes") == 0) assert_int_equal(send_key(f, 5, OP_RELEASE, "k5", false), NODE_SENT);
}

NODE_TEST(a_callback_in_the_midst_of_a_batch_may_send)
{
    static const struct fake_step script[] = {SHAKE,
                                              EXPECT(BATCH_OF("3")),
                                              SEND("$12\r\n:1\r\n:1\r\n:1\r\n\r\n"),
                                              EXPECT(BATCH_LATER("2") "k4 k5"),
                                              SEND("$8\r\n:0\r\n:0\r\n\r\n"),
                                              END};

    node_fixture_ready(f, script);
    f->on_line = ask_in_the_midst;
    release(f, 3);
    run_until(f, "5 missing");
    assert_trace(f, "ready 1\n1 yes\n2 yes\n3 yes\n4 missing\n5 missing\n");
}

NODE_TEST(a_callback_in_the_midst_of_a_batch_may_free)
{
    static const struct fake_step script[] = {SHAKE, EXPECT(BATCH_OF("3")), SEND("$12\r\n:1\r\n:1\r\n:1\r\n\r\n"), END};

    node_fixture_ready(f, script);
    f->free_at = "2 yes";
    release(f, 3);
    run_until(f, "2 yes");
    run_on(f, 5);
    assert_trace(f, "ready 1\n1 yes\n2 yes\n");
}

NODE_TEST(a_deadline_in_a_batch_is_that_of_one_request)
{
    static const struct fake_step script[] = {SHAKE, EXPECT(BATCH_OF("2")), END};
    struct node_request request = {.op = OP_RELEASE,
                                   NODE_KEY("late", 4),
                                   .owner = "owner",
                                   .owner_length = 5,
                                   .timeout_ms = 20,
                                   .tag.align_number = 2};

    node_fixture_ready(f, script);
    release(f, 1);
    assert_int_equal(node_send(f->node, &request), NODE_SENT);
    run_until(f, "2 unknown timeout");
    fake_write(f->server, "$8\r\n:1\r\n:1\r\n\r\n");
    run_until(f, "1 yes");
    run_on(f, 5);
    assert_trace(f, "ready 1\n2 unknown timeout\n1 yes\n");
}

NODE_TEST(a_connection_that_does_not_answer_a_batch_stalls)
{
    node_fixture_open(f);
    f->config.stall_ms = 600;
    fake_play(f->server, plain_good);
    fake_play(f->server, plain_good);
    assert_non_null(node_fixture_new_node(f));
    run_until(f, "ready");
    release(f, 2);
    run_until(f, "ready 2");
    assert_trace(f, "ready 1\n1 unknown unreachable\n2 unknown unreachable\nconnecting unreachable\nready 2\n");
}

/* ---- bounds ---- */

/* Fills the buffer with large releases and acquires in turn, then with acquires; returns how many of them. */
static unsigned fill(struct node_fixture *f, unsigned *ret_releases)
{
    static char key[60000];
    struct node_request request = {NODE_KEY(key, sizeof(key)), .owner = "o", .owner_length = 1};
    unsigned n = 0;
    int result;

    memset(key, 'k', sizeof(key));
    do {
        key[0] = (char)('a' + n % 26);
        key[1] = (char)('a' + n / 26);
        request.op = n % 2 == 0 ? OP_RELEASE : OP_ACQUIRE;
        result = node_send(f->node, &request);
        if (result == NODE_SENT) n++;
    } while (result == NODE_SENT);
    assert_int_equal(result, NODE_FULL);
    *ret_releases = n / 2;
    n -= n / 2;
    request.op = OP_ACQUIRE;
    while (node_send(f->node, &request) == NODE_SENT) n++;
    return n;
}

/* What was accepted is sent, also where the last bytes of the buffer went to others meanwhile. */
NODE_TEST(a_full_buffer_has_room_for_what_waits)
{
    /* Static: the server may still read them when the fixture is torn down. */
    static struct fake_step script[100] = {SHAKE};
    static char batch[80];
    unsigned releases, acquires, again;

    node_fixture_ready(f, plain_good);
    acquires = fill(f, &releases);
    assert_in_range(releases, 10, DIALECT_BATCH_MAX);
    assert_in_range(acquires, releases + 5, 90);
    assert_int_equal(node_in_flight(f->node), releases + acquires);
    for (unsigned i = 1; i <= acquires; i++) script[i] = (struct fake_step)EXPECT("SET");
    snprintf(batch, sizeof(batch), BATCH_OF("%u"), releases);
    script[acquires + 1] = (struct fake_step)EXPECT(batch);
    script[acquires + 2] = (struct fake_step)SEND("?\r\n");
    node_fixture_ready(f, script);
    assert_int_equal(fill(f, &again), acquires);
    assert_int_equal(again, releases);
    run_until(f, "connecting");
    assert_int_equal(f->n_replies, releases + acquires);
}

NODE_TEST(where_memory_is_short_a_request_is_refused_or_answered)
{
    static const struct fake_step script[] = {SHAKE, END};

    for (long failure = 0; failure < 12; failure++) {
        unsigned n_sent = 0;

        node_fixture_ready(f, script);
        f->counted.until_failure = failure;
        for (unsigned i = 1; i <= 40; i++) {
            char key[200];

            snprintf(key, sizeof(key), "%0150u", i);
            n_sent += send_key(f, i, OP_RELEASE, key, false) == NODE_SENT;
        }
        f->counted.until_failure = -1;
        assert_in_range(n_sent, 39, 40);
        assert_int_equal(node_in_flight(f->node), n_sent);
        run_on(f, 1);
        fake_write(f->server, "?\r\n");
        run_until(f, "connecting");
        assert_int_equal(f->n_replies, n_sent);
    }
}

/* The first bytes of the answers to so many extends in one batch, and the others. */
#define PIECE_SIZE 100

NODE_TEST(without_memory_answers_to_a_batch_are_read_in_pieces)
{
    static const char answer[] = "*2\r\n:1\r\n:1800000010615384\r\n";
    static char begin[PIECE_SIZE + 1], rest[2048];
    static const struct fake_step script[] = {SHAKE, EXPECT(BATCH_OF("40")), SEND(begin), SLEEP(20), SEND(rest), END};
    char all[2048];
    int n = snprintf(all, sizeof(all), "$%zu\r\n", 40 * strlen(answer));

    for (unsigned i = 0; i < 40; i++) n += snprintf(all + n, sizeof(all) - (size_t)n, "%s", answer);
    memcpy(begin, all, PIECE_SIZE);
    snprintf(rest, sizeof(rest), "%s\r\n", all + PIECE_SIZE);
    node_fixture_ready(f, script);
    for (unsigned i = 1; i <= 40; i++) {
        char key[8];

        snprintf(key, sizeof(key), "k%u", i);
        assert_int_equal(send_key(f, i, OP_EXTEND, key, false), NODE_SENT);
    }
    f->counted.until_failure = 0;
    f->counted.for_good = true;
    run_until(f, "40 yes");
    f->counted.until_failure = -1;
    f->counted.for_good = false;
}

/* To release what is held takes no memory: the connection has room for one command since the acquire. */
NODE_TEST(without_memory_a_release_goes_alone)
{
    static const struct fake_step script[] = {
        SHAKE, EXPECT("SET k1 owner NX PX 30000"), SEND("+OK\r\n"), EXPECT(ALONE "k1 1 owner"), SEND(":1\r\n"), END};

    node_fixture_ready(f, script);
    assert_int_equal(send_key(f, 9, OP_ACQUIRE, "k1", false), NODE_SENT);
    run_until(f, "9 yes");
    f->counted.until_failure = 0;
    f->counted.for_good = true;
    release(f, 1);
    run_until(f, "1 yes");
    f->counted.until_failure = -1;
    f->counted.for_good = false;
}
