/* SPDX-License-Identifier: BSD-3-Clause */
/* test_lister.c - a listing of the locks on one server, against a server that plays scripts */
#include <stdio.h>
#include <string.h>

#include <event2/event.h>

#include "node_fixture.h"
#include "redis/dialect/request.h"
#include "redis/lister.h"

#define LOOK     EXPECT("INFO server"), SEND("$34\r\nredis_version:7.0.0\r\nrun_id:aaaa\r\n\r\n")
#define KEY_LIST "x 0 500 3 3 keybob\n"

struct listing {
    struct node_fixture *node;
    struct lister_config config;
    struct lister *lister;
    char found[512];
    unsigned n_found, n_done;
    unsigned stop_at; /* at the so-manyth key the listing is ended */
    enum fault fault;
    char why[700];
    char reply[2][1024]; /* what scripts send */
    unsigned size;       /* of the latest */
};

static struct listing listing;

static bool on_found(void *arg, const struct lister_key *key)
{
    struct listing *f = arg;
    size_t used = strlen(f->found);

    assert_int_equal(f->n_done, 0);
    snprintf(f->found + used, sizeof(f->found) - used, "%c %.*s %.*s %u %lld\n", (char)key->kind, (int)key->key_length,
             key->key, (int)key->holder_length, key->holder, (unsigned)key->number, (long long)key->ttl_ms);
    return ++f->n_found != f->stop_at;
}

static void on_done(void *arg, enum fault fault, const char *why)
{
    struct listing *f = arg;

    f->n_done++;
    f->fault = fault;
    snprintf(f->why, sizeof(f->why), "%s", why);
}

static int setup(void **state)
{
    (void)node_fixture_setup(state);
    memset(&listing, 0, sizeof(listing));
    listing.node = *state;
    *state = &listing;
    return 0;
}

static int teardown(void **state)
{
    *state = listing.node;
    return node_fixture_teardown(state);
}

#define LISTER_TEST(name) TEST_WITH(listing, name, setup, teardown)

static void begin(struct listing *f, const struct fake_step *script)
{
    node_fixture_open(f->node);
    node_fixture_uri(f->node, "127.0.0.1", "");
    fake_play(f->node->server, script);
    f->found[0] = '\0';
    f->n_found = f->n_done = 0;
    f->config = (struct lister_config){.system = &f->node->system,
                                       .alloc = &f->node->alloc,
                                       .link = f->node->config.link,
                                       .pattern = "*",
                                       .prefix = "",
                                       .found = on_found,
                                       .done = on_done,
                                       .arg = f};
}

static void run(struct listing *f)
{
    f->lister = lister_start(&f->config);
    assert_non_null(f->lister);
    assert_int_equal(f->n_done, 0);
    while (f->n_done == 0) event_base_loop(f->node->base, EVLOOP_ONCE);
    assert_int_equal(f->n_done, 1);
}

/* The reply of a step. */
static const char *step(struct listing *f, size_t index, const char *cursor, const char *lines, size_t length)
{
    char *reply = f->reply[index];
    int n = snprintf(reply, sizeof(f->reply[0]), "*2\r\n$%zu\r\n%s\r\n$%zu\r\n", strlen(cursor), cursor, length);

    memcpy(reply + n, lines, length);
    memcpy(reply + n + length, "\r\n", 3);
    f->size = (unsigned)n + (unsigned)length + 2;
    return reply;
}

static void expect_end(struct listing *f, enum fault fault, const char *why)
{
    assert_int_equal(f->fault, fault);
    assert_string_equal(f->why, why);
}

/* ---- steps ---- */

LISTER_TEST(steps_go_on_where_the_one_before_ended)
{
    const struct fake_step script[] = {LOOK,
                                       EXPECT("EVAL list 0 0 *a* 250"),
                                       SEND(step(f, 0, "17", KEY_LIST KEY_LIST, 2 * (sizeof(KEY_LIST) - 1))),
                                       EXPECT("EVAL list 0 17 *a* 250"),
                                       SEND(step(f, 1, "0", "r 2 -1 1 0 k\n", 13)),
                                       END};

    begin(f, script);
    f->config.pattern = "*a*";
    run(f);
    expect_end(f, FAULT_NONE, "");
    assert_string_equal(f->found, "x key bob 0 500\nx key bob 0 500\nr k  2 -1\n");
}

LISTER_TEST(each_dialect_has_a_script_and_a_prefix_is_told)
{
    const struct fake_step script[] = {LOOK, EXPECT("EVAL redisson_list 0 0 * 250 app:"), SEND(step(f, 0, "0", "", 0)),
                                       END};

    begin(f, script);
    f->config.redisson = true;
    f->config.prefix = "app:";
    run(f);
    expect_end(f, FAULT_NONE, "");
    assert_string_equal(f->found, "");
}

LISTER_TEST(fewer_keys_are_asked_for_where_they_are_too_many)
{
    static const char many[] = "*2\r\n$0\r\n\r\n$0\r\n\r\n";
    const struct fake_step script[] = {LOOK,
                                       EXPECT("EVAL list 0 0 * 250"),
                                       SEND(many),
                                       EXPECT("EVAL list 0 0 * 62"),
                                       SEND(step(f, 0, "9", "", 0)),
                                       EXPECT("EVAL list 0 9 * 250"),
                                       SEND(many),
                                       EXPECT("EVAL list 0 9 * 62"),
                                       SEND(many),
                                       EXPECT("EVAL list 0 9 * 15"),
                                       SEND(many),
                                       EXPECT("EVAL list 0 9 * 3"),
                                       SEND(many),
                                       EXPECT("EVAL list 0 9 * 1"),
                                       SEND(many),
                                       END};

    begin(f, script);
    run(f);
    expect_end(f, FAULT_LIMIT, "SCAN: the server returns too many keys at once");
    assert_int_equal(fake_commands(f->node->server), 8);
}

/* ---- lines ---- */

/* There may be a NUL in the lines. */
static void run_with(struct listing *f, const char *cursor, const char *lines, size_t length)
{
    const char *reply = step(f, 0, cursor, lines, length);
    const struct fake_step script[] = {LOOK, EXPECT("EVAL list"), {FAKE_SEND, f->size, reply, NULL}, END};

    begin(f, script);
    run(f);
}

LISTER_TEST(lines_are_read)
{
    static const struct {
        const char *line;
        size_t length; /* 0: up to its end */
        const char *found;
    } rows[] = {
        {"x 0 500 3 3 keybob\n", 0, "x key bob 0 500\n"},
        {"s 4294967296 -2 1 0 k\n", 0, "s k  4294967295 -2\n"},
        {"o 0 9223372036854775807 1 0 k\n", 0, "o k  0 9223372036853775\n"},
        {"d 0 0 0 0 \n", 0, "d   0 0\n"},
        {"x 0 1 3 0 k\n\n\n", 0, "x k\n\n  0 1\n"},
        /* Not ours, but the operator should hear of it. */
        {"x 0 1 3 1 k\0yz\nx 0 1 1 0 k\n", 27, "x k  0 1\n"},
        {"d 0 1 3 0 k\0y\n", 14, "d k  0 1\n"},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        run_with(f, "0", rows[i].line, rows[i].length != 0 ? rows[i].length : strlen(rows[i].line));
        expect_end(f, FAULT_NONE, "");
        assert_string_equal(f->found, rows[i].found);
    }
}

LISTER_TEST(what_cannot_be_read_ends_the_listing)
{
    static const struct {
        const char *cursor, *lines;
    } rows[] = {
        {"0", "y 0 1 1 0 k\n"},  {"0", "x0 1 1 0 k\n"},
        {"0", "x 0x1 1 0 k\n"},  {"0", "x  1 1 0 k\n"},
        {"0", "x -1 1 1 0 k\n"}, {"0", "x 0 -3 1 0 k\n"},
        {"0", "x 0 1 -1 0 k\n"}, {"0", "x 0 1 1 -1 k\n"},
        {"0", "x 0 1 1 1 k\n"},  {"0", "x 0 1 1 1 k"},
        {"0", "x 0 1 1 0 kk\n"}, {"0", "x 0 1 99999999999 0 k\n"},
        {"1a", "x 0 1 1 0 k\n"}, {"123456789012345678901234", ""},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        run_with(f, rows[i].cursor, rows[i].lines, strlen(rows[i].lines));
        expect_end(f, FAULT_PROTO, "SCAN: a reply that cannot be read");
        assert_int_equal(f->n_found, rows[i].cursor[0] == '1' && rows[i].lines[0] != '\0');
    }
}

/* ---- errors ---- */

#define NOPERM "NOPERM this user has no permissions to run the 'scan' command"
#define LACKS  "SCAN of the keys: " NOPERM " (the user needs the rights "
#define PRINTS " to list locks: 'quorlock doctor --acl USER --ls' prints them)"

LISTER_TEST(other_replies_end_the_listing_with_the_reason)
{
    static const struct {
        bool redisson;
        const char *reply;
        enum fault fault;
        const char *why;
    } rows[] = {
        {false, "-" NOPERM "\r\n", FAULT_AUTH, LACKS "+info +eval +scan +getrange +get +pttl +zcount +time" PRINTS},
        {true, "-" NOPERM "\r\n", FAULT_AUTH, LACKS "+info +eval +scan +hlen +hkeys +hget +pttl" PRINTS},
        {false, "-LOADING Redis is loading\r\n", FAULT_TEMPORARY, "SCAN of the keys: LOADING Redis is loading"},
        {false, ":1\r\n", FAULT_PROTO, "SCAN: a reply that cannot be read"},
        {false, "*1\r\n$1\r\n0\r\n", FAULT_PROTO, "SCAN: a reply that cannot be read"},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        const struct fake_step script[] = {LOOK, EXPECT("EVAL"), SEND(rows[i].reply), END};

        begin(f, script);
        f->config.redisson = rows[i].redisson;
        run(f);
        expect_end(f, rows[i].fault, rows[i].why);
    }
}

LISTER_TEST(a_listing_does_not_begin_anew)
{
    static const struct fake_step script[] = {LOOK, EXPECT("EVAL"), CLOSE};

    begin(f, script);
    run(f);
    assert_int_equal(f->fault, FAULT_UNREACHABLE);
    assert_int_equal(fake_connections(f->node->server), 1);
}

LISTER_TEST(a_silent_server_ends_it)
{
    static const struct fake_step script[] = {LOOK, EXPECT("EVAL"), END};

    begin(f, script);
    f->config.link.timeout_ms = 500;
    run(f);
    assert_int_equal(f->fault, FAULT_TIMEOUT);
}

/* ---- the end ---- */

static void run_out(struct listing *f, long before)
{
    while (f->node->counted.out > before) event_base_loop(f->node->base, EVLOOP_ONCE);
}

/* The fixture sees what leaks. */
LISTER_TEST(who_found_enough_hears_no_more)
{
    const struct fake_step script[] = {LOOK, EXPECT("EVAL"),
                                       SEND(step(f, 0, "0", KEY_LIST KEY_LIST, 2 * (sizeof(KEY_LIST) - 1))), END};

    long before;

    begin(f, script);
    before = f->node->counted.out;
    f->stop_at = 1;
    assert_non_null(lister_start(&f->config));
    while (f->n_found == 0) event_base_loop(f->node->base, EVLOOP_ONCE);
    run_out(f, before);
    assert_int_equal(f->n_found, 1);
    assert_int_equal(f->n_done, 0);
}

LISTER_TEST(a_canceled_listing_is_over)
{
    static const struct fake_step script[] = {LOOK, EXPECT("EVAL"), END};
    struct lister *lister;
    long before;

    lister_cancel(NULL);
    begin(f, script);
    before = f->node->counted.out;
    lister = lister_start(&f->config);
    while (fake_commands(f->node->server) < 2) event_base_loop(f->node->base, EVLOOP_ONCE);
    lister_cancel(lister);
    run_out(f, before);
    assert_int_equal(f->n_done, 0);
}
