/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_link.c - the life of one connection, step by step, with time and the loop in the test's hands
 *
 * The server is the other end of a socket pair.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/address.h"
#include "base/system_os.h"
#include "hand_loop.h"
#include "redis/link/link.h"
#include "test.h"

#define CONNECT_MS 600ull
#define TIMEOUT_MS 200ull
#define PAUSE_MS   100ull
#define OPTION     "(connect_timeout_ms, --connect-timeout)"

struct link_fixture {
    struct system_ops ops;
    struct system system;
    struct hand_loop loop;
    struct counted counted;
    struct alloc alloc;
    struct uri uri;
    struct link_counts counts;
    struct link_config config;
    struct link_events events;
    struct redis_link link;
    struct list logins;

    uint64_t now_us;
    int server; /* the other end of the newest connection; -1: closed */
    int connect_error, finish_error;
    unsigned ended, connects, resets, lookups, cancels;
    void (*looked_up)(void *, const struct addresses *);
    void *looked_up_arg;
    enum link_login login; /* of the coming calls */
    bool asks_nothing;     /* its handshake has no step */
    bool tracks, waits_long, unsafe;
    const char *end_at; /* the callback that ends the link */
    char trace[512], why[512], logged[512];
};

static struct link_fixture *at;

/* ---- the system ---- */

static int connect_pair(struct system *system, const struct address *address, uint32_t user_timeout_ms)
{
    int pair[2];

    (void)system;
    assert_int_not_equal(address->length, 0);
    assert_true(user_timeout_ms > at->config.connect_ms);
    at->connects++;
    errno = at->connect_error;
    if (at->connect_error != 0) return -1;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    if (at->server >= 0) close(at->server);
    at->loop.fd = pair[0];
    at->server = pair[1];
    return pair[0];
}

static int finish_connect(struct system *system, int fd)
{
    (void)system;
    assert_int_equal(fd, at->loop.fd);
    return at->finish_error;
}

static void close_socket(struct system *system, int fd, bool reset)
{
    (void)system;
    at->resets += reset;
    close(fd);
}

static struct lookup *begin_lookup(struct system *system, const char *name, uint16_t port,
                                   void (*done)(void *, const struct addresses *), void *arg)
{
    (void)system;
    (void)name;
    (void)port;
    at->lookups++;
    at->looked_up = done;
    at->looked_up_arg = arg;
    return (void *)at;
}

static void cancel_lookup(struct lookup *lookup)
{
    assert_ptr_equal(lookup, at);
    at->cancels++;
}

/* ---- the owner ---- */

static void note(struct link_fixture *f, const char *word)
{
    size_t used = strlen(f->trace);

    snprintf(f->trace + used, sizeof(f->trace) - used, "%s ", word);
    if (f->end_at == NULL || strcmp(f->end_at, word) != 0) return;
    link_end(&f->link);
    link_end(&f->link);
    /* At once, for a loop may run inside the callback. */
    assert_false(f->loop.timed || f->loop.due || f->loop.watched != 0);
    assert_int_equal(f->cancels, f->lookups);
}

static void on_connected(void *arg)
{
    struct link_fixture *f = arg;

    f->link.handshake = (struct handshake){.uri = &f->uri};
    if (!f->asks_nothing) handshake_greet(&f->link.handshake, &f->link.conn.out, &f->uri, NULL);
    f->link.handshake.tracks = f->tracks;
    note(f, "connected");
}

static void on_greeted(void *arg)
{
    struct link_fixture *f = arg;

    link_open(&f->link);
    note(f, "greeted");
}

static void on_readable(void *arg)
{
    struct link_fixture *f = arg;

    note(f, "readable");
    if (!f->link.dead) link_read(&f->link);
}

static void on_sending(void *arg)
{
    note(arg, "sending");
}

static void on_sent(void *arg)
{
    note(arg, "sent");
}

static void on_heard(void *arg)
{
    note(arg, "heard");
}

static void on_reply(void *arg, const struct reply *reply)
{
    (void)reply;
    note(arg, "reply");
}

static void on_push(void *arg, const struct reply *reply)
{
    assert_int_equal(reply->self.type, REPLY_PUSH);
    note(arg, "push");
}

static void on_due(void *arg)
{
    note(arg, "due");
}

static bool waits_long(void *arg, enum fault fault)
{
    const struct link_fixture *f = arg;

    assert_int_not_equal(fault, FAULT_NONE);
    return f->waits_long;
}

static bool resets(void *arg)
{
    return ((const struct link_fixture *)arg)->unsafe;
}

static void on_closed(void *arg, bool was_open, enum fault fault, const char *why)
{
    struct link_fixture *f = arg;

    assert_int_not_equal(fault, FAULT_NONE);
    snprintf(f->why, sizeof(f->why), "%s", why);
    note(f, was_open ? "closed" : "failed");
}

static void on_ended(void *arg)
{
    struct link_fixture *f = arg;

    f->ended++;
    note(f, "ended");
}

static uint64_t now_us(void *arg)
{
    return ((const struct link_fixture *)arg)->now_us;
}

static void on_batch(void *arg, bool begins)
{
    note(arg, begins ? "(" : ")");
}

static enum link_login on_login(void *arg, const struct uri *uri, char *why, size_t size)
{
    const struct link_fixture *f = arg;

    assert_ptr_equal(uri, &f->uri);
    if (f->login == LOGIN_NONE) snprintf(why, size, "the vault is sealed");
    return f->login;
}

static void on_log(int level, const char *text, void *arg)
{
    struct link_fixture *f = arg;

    assert_int_equal(level, QUORLOCK_LOG_ERROR);
    snprintf(f->logged, sizeof(f->logged), "%s", text);
}

/* ---- the fixture ---- */

static int setup(void **state)
{
    static struct link_fixture f;

    memset(&f, 0, sizeof(f));
    at = &f;
    f.counted.until_failure = -1;
    const struct alloc_hooks hooks = counted_hooks(&f.counted);
    alloc_init(&f.alloc, &hooks);
    f.system.loop = hand_loop_functions(&f.loop);
    f.system = system_os(&f.system.loop, &memory);
    f.ops = *f.system.ops;
    f.ops.connect = connect_pair;
    f.ops.finish = finish_connect;
    f.ops.close = close_socket;
    f.ops.lookup = begin_lookup;
    f.ops.lookup_cancel = cancel_lookup;
    f.system.ops = &f.ops;
    f.server = -1;
    f.now_us = 1000000000;
    f.events = (struct link_events){.log_prefix = "",
                                    .connected = on_connected,
                                    .greeted = on_greeted,
                                    .reply = on_reply,
                                    .due = on_due,
                                    .closed = on_closed,
                                    .ended = on_ended};
    f.config = (struct link_config){.uri = &f.uri,
                                    .timeout_ms = TIMEOUT_MS,
                                    .connect_ms = CONNECT_MS,
                                    .reconnect_min_ms = PAUSE_MS,
                                    .reconnect_max_ms = 64 * PAUSE_MS,
                                    .now_us = now_us,
                                    .log = on_log,
                                    .login = on_login,
                                    .logins = &f.logins,
                                    .arg = &f,
                                    .counts = &f.counts};
    *state = &f;
    return 0;
}

static void end(struct link_fixture *f)
{
    if (f->link.events != NULL && !f->link.dead) link_end(&f->link);
    if (f->link.events != NULL) assert_int_equal(f->ended, 1);
    uri_clear(&f->uri, &f->alloc);
    assert_int_equal(f->counted.out, 0);
    assert_int_equal(f->loop.objects, 0);
    if (f->server >= 0) close(f->server);
    f->server = -1;
    f->link.events = NULL;
    f->ended = 0;
    f->trace[0] = f->why[0] = '\0';
    f->end_at = NULL;
}

static int teardown(void **state)
{
    end(*state);
    return 0;
}

#define LINK_TEST(name) TEST_WITH(link_fixture, name, setup, teardown)

/* Take the trace so far. */
static void assert_trace(struct link_fixture *f, const char *wanted)
{
    assert_string_equal(f->trace, wanted);
    f->trace[0] = '\0';
}

static void assert_why(struct link_fixture *f, enum fault fault, const char *trace, const char *why)
{
    assert_trace(f, trace);
    assert_string_equal(f->why, why);
    assert_int_equal(f->counts.errors[fault], 1);
    f->counts.errors[fault] = 0;
}

static void assert_timer_ms(const struct link_fixture *f, uint64_t ms)
{
    assert_true(f->loop.timed);
    assert_int_equal(f->loop.after_us, ms * 1000);
}

/* That time after the timer was set. */
static void pass_us(struct link_fixture *f, uint64_t us)
{
    f->now_us += us;
    hand_loop_fire(&f->loop);
}

static void time_out(struct link_fixture *f)
{
    pass_us(f, f->loop.after_us);
}

static void start(struct link_fixture *f, const char *address)
{
    char error[256];

    end(f);
    assert_int_equal(uri_parse(&f->uri, &f->alloc, address, error, sizeof(error)), 0);
    assert_true(link_init(&f->link, &f->system, &f->alloc, &f->config, &f->events, f));
    assert_true(link_start(&f->link));
    assert_timer_ms(f, 0);
    time_out(f);
}

static void answer_lookup(struct link_fixture *f, size_t n)
{
    struct addresses addresses = {.n = n, .why = "no such name"};

    for (size_t i = 0; i < n; i++) {
        struct sockaddr_in *v4 = (struct sockaddr_in *)&addresses.at[i].storage;

        *v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl((uint32_t)i + 1)};
        addresses.at[i].length = sizeof(*v4);
    }
    f->looked_up(f->looked_up_arg, &addresses);
}

static void connect_it(struct link_fixture *f)
{
    assert_int_equal(f->link.step, LINK_CONNECT);
    hand_loop_ready(&f->loop, WATCH_WRITE);
    if (f->loop.due) hand_loop_run(&f->loop);
}

static void say(struct link_fixture *f, const char *text)
{
    assert_int_equal(write(f->server, text, strlen(text)), strlen(text));
}

static void hear(struct link_fixture *f, const char *text)
{
    say(f, text);
    hand_loop_ready(&f->loop, WATCH_READ);
}

static void open_it(struct link_fixture *f)
{
    start(f, "127.0.0.1:1");
    connect_it(f);
    hear(f, "+PONG\r\n");
    assert_trace(f, "connected greeted ");
    assert_true(link_is_open(&f->link) && link_is_on(&f->link, f->link.connection));
}

/* The server ends the connection. A whole close would be a reset where it has not read all. */
static void hang_up(struct link_fixture *f)
{
    shutdown(f->server, SHUT_WR);
    hand_loop_ready(&f->loop, WATCH_READ);
}

/* ---- the time of each step ---- */

static void reach(struct link_fixture *f, enum link_step step, const char *said)
{
    f->login = step == LINK_LOGIN ? LOGIN_LATER : LOGIN_READY;
    start(f, step == LINK_RESOLVE ? "name:1" : "redis://u:p@127.0.0.1:1");
    if (step > LINK_CONNECT) connect_it(f);
    if (said[0] != '\0') hear(f, said);
    assert_int_equal(f->link.step, step);
    f->trace[0] = '\0';
}

LINK_TEST(a_try_ends_in_each_step)
{
    static const struct {
        enum link_step step;
        const char *said;
        enum fault fault;
        const char *why;
    } rows[] = {
        {LINK_RESOLVE, "", FAULT_UNREACHABLE, "cannot resolve name: no answer within 600 ms yet " OPTION},
        {LINK_CONNECT, "", FAULT_UNREACHABLE, "connect: no answer within 600 ms " OPTION},
        {LINK_LOGIN, "", FAULT_TEMPORARY, "the program gave no credentials within 600 ms " OPTION},
        {LINK_HANDSHAKE, "", FAULT_UNREACHABLE,
         "no answer to the handshake within 600 ms " OPTION ": frozen, paused by CLIENT PAUSE, or not a Redis server"},
        {LINK_HANDSHAKE, "+OK\r\n", FAULT_UNREACHABLE,
         "no whole answer to the handshake within 600 ms " OPTION ": paused by CLIENT PAUSE, or frozen"},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        reach(f, rows[i].step, rows[i].said);
        assert_timer_ms(f, CONNECT_MS);
        /* A timer may fire early. */
        pass_us(f, CONNECT_MS * 1000 - 1);
        assert_trace(f, "");
        assert_int_equal(f->loop.after_us, 1);
        time_out(f);
        assert_why(f, rows[i].fault, "failed ", rows[i].why);
        assert_int_equal(f->link.step, LINK_PAUSE);
        assert_in_range(f->loop.after_us, PAUSE_MS * 500, PAUSE_MS * 1000);
        assert_int_equal(f->logins.count, 0);
        time_out(f);
        assert_int_equal(f->link.step, rows[i].step == LINK_RESOLVE ? LINK_RESOLVE : LINK_CONNECT);
        assert_timer_ms(f, CONNECT_MS);
    }
}

LINK_TEST(the_step_that_a_link_is_told_to_end_by_is_the_last)
{
    f->config.steps_end_us = f->now_us + 50000;
    start(f, "127.0.0.1:1");
    assert_timer_ms(f, 50);
    f->config.steps_end_us = f->now_us + CONNECT_MS * 1000 + 1;
    start(f, "127.0.0.1:1");
    assert_timer_ms(f, CONNECT_MS);
}

LINK_TEST(addresses_of_a_name_share_the_time_of_a_try)
{
    static const struct {
        uint32_t connect_ms;
        uint64_t shares_ms[3];
    } rows[] = {
        {9000, {3000, 3000, 3000}},
        {2400, {1000, 1000, 1000}}, /* a share is a second at least */
        {600, {600, 600, 600}},     /* or a whole try */
    };
    char why[128];

    /* The last one has its share for the handshake, too, however late that is. */
    for (size_t i = 0; i < LENGTH(rows); i++) {
        f->config.connect_ms = rows[i].connect_ms;
        start(f, "name:1");
        f->connects = 0;
        answer_lookup(f, 3);
        for (unsigned k = 0; k < 3; k++) {
            assert_int_equal(f->connects, k + 1);
            assert_timer_ms(f, rows[i].shares_ms[k]);
            time_out(f);
        }
        snprintf(why, sizeof(why), "connect to 0.0.0.3: no answer within %u ms " OPTION,
                 (unsigned)rows[i].shares_ms[2]);
        assert_why(f, FAULT_UNREACHABLE, "failed ", why);
        time_out(f);
        answer_lookup(f, 3);
        time_out(f);
        time_out(f);
        connect_it(f);
        assert_timer_ms(f, rows[i].shares_ms[2]);
        assert_int_equal(f->link.step, LINK_HANDSHAKE);
    }
}

LINK_TEST(an_address_that_refuses_is_followed_by_the_next)
{
    start(f, "name:1");
    f->connect_error = ECONNREFUSED;
    answer_lookup(f, 2);
    assert_int_equal(f->connects, 2);
    assert_why(f, FAULT_UNREACHABLE, "failed ", "connect to 0.0.0.2: Connection refused");
    /* Later than at once. */
    f->connect_error = 0;
    f->finish_error = ECONNREFUSED;
    time_out(f);
    answer_lookup(f, 2);
    connect_it(f);
    connect_it(f);
    assert_why(f, FAULT_UNREACHABLE, "failed ", "connect to 0.0.0.2: Connection refused");
    /* A name without an address. */
    time_out(f);
    answer_lookup(f, 0);
    assert_why(f, FAULT_UNREACHABLE, "failed ", "cannot resolve name: no such name");
}

/* ---- lookups ---- */

LINK_TEST(a_lookup_that_takes_longer_than_a_try_goes_on)
{
    start(f, "name:1");
    time_out(f);
    assert_trace(f, "failed ");
    time_out(f);
    assert_int_equal(f->link.step, LINK_RESOLVE);
    assert_int_equal(f->lookups, 1);
    time_out(f);
    assert_int_equal(f->link.step, LINK_PAUSE);
    /* Its answer ends the pause, and the try has all its time. */
    answer_lookup(f, 1);
    assert_int_equal(f->link.step, LINK_CONNECT);
    assert_timer_ms(f, CONNECT_MS);
    assert_int_equal(f->cancels, 0);
}

LINK_TEST(a_lookup_ends_with_its_link)
{
    start(f, "name:1");
    link_stop(&f->link);
    assert_int_equal(f->cancels, 1);
    assert_false(f->loop.timed);
    assert_true(link_start(&f->link));
    time_out(f);
    f->end_at = "failed";
    time_out(f);
    assert_trace(f, "failed ended ");
    assert_int_equal(f->cancels, 2);
    assert_int_equal(f->lookups, 2);
}

/* ---- logins ---- */

LINK_TEST(a_login_that_comes_later_is_awaited)
{
    reach(f, LINK_LOGIN, "");
    assert_int_equal(f->logins.count, 1);
    f->now_us += 100000;
    link_log_in(&f->link);
    assert_trace(f, "connected ");
    assert_int_equal(f->logins.count, 0);
    assert_int_equal(f->link.step, LINK_HANDSHAKE);
    assert_timer_ms(f, CONNECT_MS);
    hand_loop_run(&f->loop);
    hear(f, "+OK\r\n+PONG\r\n");
    assert_trace(f, "greeted ");
}

LINK_TEST(a_link_that_ends_awaits_no_login)
{
    for (int i = 0; i < 4; i++) {
        reach(f, LINK_LOGIN, "");
        if (i == 0) link_stop(&f->link);
        if (i == 1) link_end(&f->link);
        if (i == 2) hang_up(f);
        if (i == 3) hear(f, "-ERR max number of clients reached\r\n");
        assert_int_equal(f->logins.count, 0);
        if (i == 2) assert_why(f, FAULT_UNREACHABLE, "failed ", "the server closed the connection");
        if (i == 3)
            assert_why(f, FAULT_TEMPORARY, "failed ",
                       "it spoke before the login: it has as many clients as it may have, or is no Redis server");
    }
}

LINK_TEST(a_link_without_a_login_tries_again)
{
    f->login = LOGIN_NONE;
    start(f, "127.0.0.1:1");
    connect_it(f);
    assert_why(f, FAULT_TEMPORARY, "failed ", "the vault is sealed");
    assert_int_equal(f->link.step, LINK_PAUSE);
}

/* ---- an open link ---- */

LINK_TEST(what_has_come_is_read_before_a_deadline_is_judged)
{
    f->events.heard = on_heard;
    f->config.batch = on_batch;
    start(f, "127.0.0.1:1");
    connect_it(f);
    say(f, "+PONG\r\n");
    f->now_us += 2 * CONNECT_MS * 1000;
    hand_loop_fire(&f->loop);
    assert_trace(f, "connected ( heard greeted ) due ");
    say(f, ":1\r\n:2\r\n");
    assert_true(link_arm(&f->link, f->now_us));
    hand_loop_fire(&f->loop);
    assert_trace(f, "( heard reply reply ) due ");
    shutdown(f->server, SHUT_WR);
    assert_true(link_arm(&f->link, f->now_us));
    hand_loop_fire(&f->loop);
    assert_trace(f, "closed ");
}

LINK_TEST(an_answer_is_awaited_for_the_time_of_the_link)
{
    open_it(f);
    link_ask(&f->link);
    assert_true(f->loop.due);
    assert_timer_ms(f, TIMEOUT_MS);
    f->now_us += TIMEOUT_MS * 1000 - 1;
    link_drop_late(&f->link, FAULT_TIMEOUT);
    assert_trace(f, "");
    assert_int_equal(f->loop.after_us, 1);
    f->now_us++;
    link_drop_late(&f->link, FAULT_TIMEOUT);
    assert_why(f, FAULT_TIMEOUT, "closed ", "no answer within 200 ms: frozen, paused, cut off, or busy");
}

LINK_TEST(a_question_without_memory_ends_the_connection)
{
    open_it(f);
    f->link.conn.out.fault = BYTES_NOMEM;
    link_ask(&f->link);
    assert_why(f, FAULT_LIMIT, "closed ", "out of memory");
    assert_false(f->loop.due);
}

LINK_TEST(a_timer_is_set_earlier_but_not_later)
{
    open_it(f);
    assert_true(link_arm(&f->link, f->now_us + 5000));
    link_arm_by(&f->link, f->now_us, f->now_us + 9000);
    assert_timer_ms(f, 5);
    link_arm_by(&f->link, f->now_us, f->now_us + 3000);
    assert_timer_ms(f, 3);
    /* The machine was suspended: the timer is late, and is hurried once. */
    f->now_us += 4000;
    link_arm_by(&f->link, f->now_us, f->now_us + 9000);
    assert_timer_ms(f, 0);
    f->loop.after_us = 77;
    f->now_us += 4000;
    link_arm_by(&f->link, f->now_us, f->now_us + 9000);
    assert_int_equal(f->loop.after_us, 77);
    hand_loop_fire(&f->loop);
    assert_trace(f, "due ");
    link_arm_by(&f->link, f->now_us, f->now_us + 9000);
    assert_timer_ms(f, 9);
    f->now_us += 10000;
    link_arm_by(&f->link, f->now_us, f->now_us + 9000);
    assert_timer_ms(f, 0);
}

LINK_TEST(a_timer_without_memory_is_told)
{
    open_it(f);
    f->loop.timer_fails = true;
    assert_false(link_arm(&f->link, f->now_us));
    assert_string_equal(f->logged, "127.0.0.1:1: no memory for a timer");
    assert_true(link_arm(&f->link, LINK_NEVER));
    link_log(&f->link, QUORLOCK_LOG_ERROR, "%s %d", "x", 1);
    assert_string_equal(f->logged, "127.0.0.1:1: x 1");
    /* Without a log, nobody is. */
    f->link.config.log = NULL;
    f->logged[0] = '\0';
    assert_false(link_arm(&f->link, f->now_us));
    assert_string_equal(f->logged, "");
}

LINK_TEST(a_link_without_memory_is_not_made)
{
    char error[256];

    assert_int_equal(uri_parse(&f->uri, &f->alloc, "127.0.0.1:1", error, sizeof(error)), 0);
    for (int i = 0; i < 2; i++) {
        f->loop.no_timer = i == 0;
        f->loop.no_task = i == 1;
        assert_false(link_init(&f->link, &f->system, &f->alloc, &f->config, &f->events, f));
        f->ended = 0;
        link_end(&f->link);
        assert_trace(f, "ended ");
    }
}

LINK_TEST(what_a_server_says_unasked)
{
    static const struct {
        bool tracks, heeds;
        const char *trace;
    } rows[] = {{true, true, "push "}, {true, false, "closed "}, {false, true, "closed "}};

    for (size_t i = 0; i < LENGTH(rows); i++) {
        f->tracks = rows[i].tracks;
        f->events.push = rows[i].heeds ? on_push : NULL;
        open_it(f);
        hear(f, ">1\r\n+hi\r\n");
        if (rows[i].trace[0] == 'c')
            assert_why(f, FAULT_PROTO, "closed ", "a push that nobody asked for");
        else
            assert_trace(f, rows[i].trace);
    }
}

/* ---- the end of a connection ---- */

#define TLS_HINT "; if that is its tls-port, write rediss://"

LINK_TEST(why_a_connection_was_lost)
{
    static char large[10010] = "$9999\r\n"; /* more than there is room for without memory */
    static const struct {
        const char *address, *said, *why;
        bool reset;
    } rows[] = {
        {"127.0.0.1:1", "", "connection lost during the handshake: Connection reset by peer" TLS_HINT, true},
        {"127.0.0.1:1", "+PONG\r\n", "connection lost: Connection reset by peer", true},
        {"127.0.0.1:1", "-DENIED x\r\n", "refused: DENIED x (the server is in protected mode: set a password or bind)",
         false},
        {"127.0.0.1:1", large, "out of memory", false},
        {"redis://u:p@127.0.0.1:1", "", "the server closed the connection during the handshake" TLS_HINT, false},
        {"redis://u:p@127.0.0.1:1", "+OK\r\n", "the server closed the connection during the handshake", false},
        {"127.0.0.1:1", "+PONG\r\n", "the server closed the connection", false},
        {"rediss://127.0.0.1:1", "", "the server closed the connection during the handshake", false},
        {"unix:///tmp/s", "", "the server closed the connection during the handshake", false},
        {"127.0.0.1:1", "hello\r\n", "not a Redis server: it says \"hello\"", false},
        {"redis://u:p@127.0.0.1:1", "+OK\r\nhello\r\n", "malformed reply: a value of a kind that was not asked for",
         false},
    };

    snprintf(large + strlen(large), sizeof(large) - strlen(large), "%09999d\r\n", 1);
    for (size_t i = 0; i < LENGTH(rows); i++) {
        start(f, rows[i].address);
        connect_it(f);
        if (rows[i].said[0] == '$') f->counted.until_failure = 0;
        if (rows[i].said[0] != '\0') hear(f, rows[i].said);
        f->counted.until_failure = -1;
        if (rows[i].reset) {
            /* It has not read what we sent. */
            close(f->server);
            f->server = -1;
            hand_loop_ready(&f->loop, WATCH_READ);
        }
        if (f->link.step != LINK_PAUSE) hang_up(f);
        assert_string_equal(f->why, rows[i].why);
        assert_int_equal(f->link.step, LINK_PAUSE);
    }
}

LINK_TEST(a_connection_that_may_do_harm_is_reset)
{
    for (unsigned harm = 0; harm < 3; harm++) {
        f->events.resets = harm > 0 ? resets : NULL;
        f->unsafe = harm > 1;
        f->resets = 0;
        open_it(f);
        link_stop(&f->link);
        assert_int_equal(f->resets, harm > 1);
    }
}

LINK_TEST(how_long_a_pause_is)
{
    for (unsigned i = 0; i < 3; i++) {
        f->events.waits_long = i > 0 ? waits_long : NULL;
        f->waits_long = i > 1;
        open_it(f);
        f->now_us += i == 0 ? 1000 * PAUSE_MS : 0;
        hang_up(f);
        assert_trace(f, "closed ");
        if (i == 0) assert_timer_ms(f, 0); /* it lasted long enough */
        if (i == 1) assert_in_range(f->loop.after_us, PAUSE_MS * 500, PAUSE_MS * 1000);
        if (i == 2) assert_in_range(f->loop.after_us, 32 * PAUSE_MS * 1000, 64 * PAUSE_MS * 1000);
        assert_int_equal(f->link.step, LINK_PAUSE);
        link_try_now(&f->link);
        assert_timer_ms(f, 0);
        time_out(f);
        assert_int_equal(f->link.step, LINK_CONNECT);
        /* Nothing to hurry. */
        link_try_now(&f->link);
        assert_timer_ms(f, CONNECT_MS);
    }
}

LINK_TEST(a_stopped_link_starts_at_once_but_after_a_pause)
{
    open_it(f);
    link_stop(&f->link);
    assert_trace(f, "");
    assert_false(f->loop.timed || link_is_open(&f->link));
    f->now_us += 1000;
    assert_true(link_start(&f->link));
    assert_timer_ms(f, 0);
    time_out(f);
    connect_it(f);
    hang_up(f);
    assert_trace(f, "connected failed ");
    uint64_t pause_us = f->loop.after_us;
    link_stop(&f->link);
    assert_false(f->loop.timed);
    f->now_us += 1000;
    assert_true(link_start(&f->link));
    assert_int_equal(f->loop.after_us, pause_us - 1000);
}

LINK_TEST(any_callback_may_end_the_link)
{
    static const char *const words[] = {"connected", "sending", "sent", "readable", "(",     "heard",
                                        "greeted",   "reply",   ")",    "due",      "closed"};

    f->events.heard = on_heard;
    f->events.readable = on_readable;
    f->events.sending = on_sending;
    f->events.sent = on_sent;
    f->config.batch = on_batch;
    for (size_t i = 0; i < LENGTH(words); i++) {
        start(f, "127.0.0.1:1");
        f->end_at = words[i];
        connect_it(f);
        if (!f->link.dead) hear(f, "+PONG\r\n:1\r\n:2\r\n");
        if (!f->link.dead) assert_true(link_arm(&f->link, f->now_us));
        if (!f->link.dead) hand_loop_fire(&f->loop);
        if (!f->link.dead) hang_up(f);
        assert_true(f->link.dead);
        assert_int_equal(times_in(f->trace, "ended "), 1);
        assert_string_equal(f->trace + strlen(f->trace) - 6, "ended ");
        assert_false(link_is_on(&f->link, f->link.connection));
        link_try_now(&f->link);
        assert_true(link_arm(&f->link, f->now_us));
        link_log(&f->link, QUORLOCK_LOG_ERROR, "nobody hears this");
        assert_string_equal(f->logged, "");
        assert_false(f->loop.timed || link_is_open(&f->link));
    }
}

LINK_TEST(a_handshake_without_a_step_is_over_at_once)
{
    f->asks_nothing = true;
    start(f, "127.0.0.1:1");
    connect_it(f);
    assert_trace(f, "connected greeted ");
    assert_timer_ms(f, CONNECT_MS); /* the owner's from now on */
}

/* ---- the first bytes of a connection ---- */

LINK_TEST(a_password_leaves_and_is_forgotten)
{
    char heard[128];
    ssize_t n;

    start(f, "redis://u:p@127.0.0.1:1");
    hand_loop_ready(&f->loop, WATCH_WRITE);
    assert_true(f->link.conn.secret && f->loop.due);
    hand_loop_run(&f->loop);
    assert_false(f->link.conn.secret);
    n = read(f->server, heard, sizeof(heard) - 1);
    assert_true(n > 0);
    heard[n] = '\0';
    assert_string_equal(heard, "*3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$1\r\np\r\n*1\r\n$4\r\nPING\r\n");
    hear(f, "+OK\r\n+PONG\r\n");
    assert_trace(f, "connected greeted ");
    assert_int_equal(f->counts.bytes_out, n);
    assert_int_equal(f->counts.bytes_in, 12);
}

LINK_TEST(nothing_is_left_of_the_connection_before)
{
    open_it(f);
    hear(f, "$100\r\nabc");
    hang_up(f);
    time_out(f);
    connect_it(f);
    hang_up(f);
    assert_contains(f->why, TLS_HINT);
    f->link.handshake.doubted = true;
    time_out(f);
    time_out(f);
    assert_string_equal(f->why, "connect: no answer within 600 ms " OPTION);
    time_out(f);
    f->trace[0] = '\0';
    connect_it(f);
    hear(f, "+PONG\r\n");
    assert_trace(f, "connected greeted ");
}

LINK_TEST(what_came_before_a_write_failed_is_read)
{
    f->events.sending = on_sending;
    f->events.sent = on_sent;
    for (int reply = 0; reply < 2; reply++) {
        start(f, "127.0.0.1:1");
        connect_it(f);
        hear(f, "+PONG\r\n");
        assert_trace(f, "connected sending sent greeted ");
        if (reply == 1) say(f, ":1\r\n");
        shutdown(f->server, SHUT_RD);
        bytes_append(&f->link.conn.out, "x", 1);
        link_ask(&f->link);
        hand_loop_run(&f->loop);
        assert_trace(f, reply == 1 ? "sending reply closed " : "sending closed ");
        assert_string_equal(f->why, "connection lost: Broken pipe");
    }
}
