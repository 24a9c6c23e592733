/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_conn.c - connections, and the addresses they are opened to, over a socket and a loop that are in the test's
 * hands
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "base/address.h"
#include "base/system.h"
#include "hand_loop.h"
#include "redis/link/conn.h"
#include "redis/link/dial.h"
#include "test.h"

#define FD          7
#define READS_MAX   64
#define EVENTS_SIZE 400

/* What a call of send or recv returns: so many bytes at most, or that errno. */
struct step {
    int error;
    size_t n;
};

struct socket_fixture {
    struct system_ops ops;
    struct system system;
    struct link_counts counts;
    struct uri uri;
    struct link_config config;
    struct conn conn;
    struct dial dial;

    const struct step *steps; /* of the coming calls; behind them nothing is ready */
    size_t n_steps;
    int connect_error, finish_error; /* of the coming calls */
    struct hand_loop loop;
    char sent[64];
    size_t n_sent;
    struct address address; /* of the latest connect */
    uint32_t user_timeout_ms;
    unsigned connects, closes, resets, layers_freed, kept;
    char events[EVENTS_SIZE]; /* what the owner was told */
    struct conn_layer layer;
    ssize_t layer_returns;
    unsigned layer_waits;
    unsigned lookups, cancels, resolved;
    int lookup_error;
    void (*looked_up)(void *, const struct addresses *);
    void *looked_up_arg;
};

static struct socket_fixture *at;

/* ---- the socket ---- */

static int begin_connect(struct system *system, const struct address *address, uint32_t user_timeout_ms)
{
    (void)system;
    at->connects++;
    at->address = *address;
    at->user_timeout_ms = user_timeout_ms;
    errno = at->connect_error;
    return at->connect_error == 0 ? FD : -1;
}

static int finish_connect(struct system *system, int fd)
{
    (void)system;
    assert_int_equal(fd, FD);
    return at->finish_error;
}

static ssize_t next_step(size_t size)
{
    struct step step = {EAGAIN, 0};

    if (at->n_steps > 0) {
        step = *at->steps++;
        at->n_steps--;
    }
    errno = step.error;
    return step.error != 0 ? -1 : (ssize_t)(step.n < size ? step.n : size);
}

static ssize_t send_bytes(struct system *system, int fd, const void *bytes, size_t size)
{
    ssize_t n = next_step(size);

    (void)system;
    assert_int_equal(fd, FD);
    if (n > 0) memcpy(at->sent + at->n_sent, bytes, (size_t)n);
    if (n > 0) at->n_sent += (size_t)n;
    return n;
}

static ssize_t receive(struct system *system, int fd, void *ret, size_t size)
{
    ssize_t n = next_step(size);

    (void)system;
    assert_int_equal(fd, FD);
    if (n > 0) memset(ret, 'r', (size_t)n);
    return n;
}

static bool has_input(struct system *system, int fd)
{
    (void)system;
    return fd == FD;
}

static void keep_sending(struct system *system, int fd)
{
    (void)system;
    assert_int_equal(fd, FD);
    at->kept++;
}

static void close_socket(struct system *system, int fd, bool reset)
{
    (void)system;
    assert_int_equal(fd, FD);
    at->closes++;
    at->resets += reset;
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
    errno = at->lookup_error;
    return at->lookup_error == 0 ? (void *)at : NULL;
}

static void cancel_lookup(struct lookup *lookup)
{
    assert_ptr_equal(lookup, at);
    at->cancels++;
}

/* ---- the layer ---- */

static ssize_t layer_answer(unsigned *waits)
{
    if (at->layer_waits != 0) *waits = at->layer_waits;
    return at->layer_returns;
}

static ssize_t layer_greet(struct conn_layer *layer, unsigned *waits)
{
    (void)layer;
    return layer_answer(waits);
}

static ssize_t layer_read(struct conn_layer *layer, void *ret, size_t size, unsigned *waits)
{
    (void)layer;
    (void)ret;
    (void)size;
    return layer_answer(waits);
}

static ssize_t layer_write(struct conn_layer *layer, const void *bytes, size_t size, unsigned *waits)
{
    (void)layer;
    (void)bytes;
    (void)size;
    return layer_answer(waits);
}

static void layer_free(struct conn_layer *layer)
{
    assert_ptr_equal(layer, &at->layer);
    at->layers_freed++;
}

/* ---- the fixture ---- */

static void note(void *arg, enum conn_ready ready)
{
    static const char *const names[] = {"connected", "readable", "sending", "sent", "broken"};
    struct socket_fixture *f = arg;
    size_t used = strlen(f->events);

    snprintf(f->events + used, sizeof(f->events) - used, "%s ", names[ready]);
}

static void on_resolved(void *arg)
{
    struct socket_fixture *f = arg;

    f->resolved++;
}

static int setup(void **state)
{
    static struct socket_fixture f;

    memset(&f, 0, sizeof(f));
    at = &f;
    f.ops = (struct system_ops){.connect = begin_connect,
                                .finish = finish_connect,
                                .send = send_bytes,
                                .recv = receive,
                                .has_input = has_input,
                                .keep_sending = keep_sending,
                                .close = close_socket,
                                .lookup = begin_lookup,
                                .lookup_cancel = cancel_lookup};
    f.system = (struct system){.ops = &f.ops, .alloc = &memory};
    f.loop.fd = FD;
    f.system.loop = hand_loop_functions(&f.loop);
    f.layer = (struct conn_layer){layer_greet, layer_read, layer_write, layer_free};
    assert_true(conn_init(&f.conn, &f.system, &memory, note, &f));
    f.conn.counts = &f.counts;
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct socket_fixture *f = *state;

    dial_cancel(&f->dial);
    conn_clear(&f->conn);
    uri_clear(&f->uri, &memory);
    return 0;
}

#define SOCKET_TEST(name) TEST_WITH(socket_fixture, name, setup, teardown)

#define PLAY(...)                                                                                                      \
    (f->steps = (const struct step[]){__VA_ARGS__}, f->n_steps = LENGTH(((const struct step[]){__VA_ARGS__})))

static const struct address anywhere = {.length = 1};

static void connect_now(struct socket_fixture *f)
{
    assert_int_equal(conn_open(&f->conn, &anywhere, 0, NULL), 0);
    assert_int_equal(f->loop.watched, WATCH_WRITE);
    assert_int_equal(conn_finish(&f->conn), CONN_DONE);
    assert_int_equal(f->loop.watched, WATCH_READ);
}

static void say(struct socket_fixture *f, const char *text)
{
    bytes_append(&f->conn.out, text, strlen(text));
    conn_wake(&f->conn);
}

static void assert_events(struct socket_fixture *f, const char *events)
{
    assert_string_equal(f->events, events);
    f->events[0] = '\0';
}

static void assert_sent(const struct socket_fixture *f, const char *text)
{
    assert_int_equal(f->n_sent, strlen(text));
    assert_memory_equal(f->sent, text, f->n_sent);
    assert_int_equal(f->counts.bytes_out, f->n_sent);
}

/* ---- reading and writing ---- */

SOCKET_TEST(what_is_said_leaves_as_the_socket_takes_it)
{
    connect_now(f);
    PLAY({EINTR, 0}, {0, 2}, {EAGAIN, 0});
    say(f, "hello");
    assert_true(f->loop.due);
    hand_loop_run(&f->loop);
    assert_events(f, "sending sent ");
    assert_sent(f, "he");
    assert_int_equal(f->loop.watched, WATCH_READ | WATCH_WRITE);
    /* Behind what waits: not out of its turn. */
    PLAY({0, 9});
    say(f, "you");
    hand_loop_run(&f->loop);
    assert_events(f, "sending sent ");
    assert_sent(f, "he");
    hand_loop_ready(&f->loop, WATCH_WRITE);
    assert_sent(f, "helloyou");
    assert_int_equal(f->loop.watched, WATCH_READ);
    assert_events(f, "");
    hand_loop_ready(&f->loop, WATCH_READ);
    assert_events(f, "readable ");
}

SOCKET_TEST(a_write_that_fails_is_told_with_its_reason)
{
    static const struct step broken[] = {{EPIPE, 0}};

    for (int later = 0; later < 2; later++) {
        connect_now(f);
        assert_null(conn_why(&f->conn));
        f->steps = broken;
        f->n_steps = later == 0;
        say(f, "x");
        hand_loop_run(&f->loop);
        assert_events(f, later == 0 ? "sending broken " : "sending sent ");
        f->n_steps = later == 1;
        if (later == 1) hand_loop_ready(&f->loop, WATCH_WRITE | WATCH_READ);
        if (later == 1) assert_events(f, "broken ");
        assert_string_equal(conn_why(&f->conn), "Broken pipe");
        conn_close(&f->conn, false);
    }
}

SOCKET_TEST(a_loop_without_memory_breaks_a_connection)
{
    char buffer[8];

    connect_now(f);
    f->loop.watch_fails = true;
    PLAY({0, 0});
    say(f, "x");
    hand_loop_run(&f->loop);
    assert_events(f, "sending broken ");
    assert_string_equal(conn_why(&f->conn), strerror(ENOMEM));
    conn_close(&f->conn, false);

    f->loop.watch_fails = false;
    assert_int_equal(conn_open(&f->conn, &anywhere, 0, NULL), 0);
    f->loop.watch_fails = true;
    assert_int_equal(conn_finish(&f->conn), CONN_FAILED);
    assert_string_equal(conn_why(&f->conn), strerror(ENOMEM));
    conn_close(&f->conn, false);

    f->loop.watch_fails = false;
    f->layer_returns = 1;
    assert_int_equal(conn_open(&f->conn, &anywhere, 0, &f->layer), 0);
    assert_int_equal(conn_finish(&f->conn), CONN_DONE);
    f->layer_returns = 0;
    f->layer_waits = WATCH_WRITE;
    f->loop.watch_fails = true;
    assert_int_equal(conn_read(&f->conn, buffer, sizeof(buffer)), -1);
}

SOCKET_TEST(what_a_read_returns)
{
    static const struct {
        struct step steps[2];
        ssize_t n;
        const char *why;
        unsigned left;
    } rows[] = {
        {{{0, 8}, {0, 3}}, 8, NULL, 1},          /* there may be more */
        {{{0, 3}, {0, 3}}, 3, NULL, 1},          /* the socket is empty: not asked again */
        {{{EINTR, 0}, {0, 8}}, 8, NULL, 0},      /* once more */
        {{{EINTR, 0}, {EAGAIN, 0}}, 0, NULL, 0}, /* nothing */
        {{{EAGAIN, 0}, {0, 8}}, 0, NULL, 1},     /* nothing */
        {{{0, 0}, {0, 8}}, -1, NULL, 1},         /* the end */
        {{{ECONNRESET, 0}, {0, 8}}, -1, "Connection reset by peer", 1},
    };
    char buffer[8];

    for (size_t i = 0; i < LENGTH(rows); i++) {
        uint64_t before = f->counts.bytes_in;

        connect_now(f);
        conn_allow_reads(&f->conn);
        f->steps = rows[i].steps;
        f->n_steps = LENGTH(rows[i].steps);
        /* A close says EINTR nowhere, and errno is what the last call left. */
        errno = EINTR;
        assert_int_equal(conn_read(&f->conn, buffer, sizeof(buffer)), rows[i].n);
        assert_int_equal(f->n_steps, rows[i].left);
        if (rows[i].why == NULL)
            assert_null(conn_why(&f->conn));
        else
            assert_string_equal(conn_why(&f->conn), rows[i].why);
        assert_int_equal(f->counts.bytes_in - before, rows[i].n > 0 ? rows[i].n : 0);
        if (rows[i].n == 3) assert_int_equal(conn_read(&f->conn, buffer, sizeof(buffer)), 0);
        if (rows[i].n == 3) assert_int_equal(f->n_steps, 1);
        conn_close(&f->conn, false);
    }
}

SOCKET_TEST(a_talkative_peer_does_not_starve_others)
{
    struct step steps[2 * READS_MAX];
    char buffer[8];
    int n = 0;

    for (size_t i = 0; i < LENGTH(steps); i++) steps[i] = (struct step){0, sizeof(buffer)};
    connect_now(f);
    f->steps = steps;
    f->n_steps = LENGTH(steps);
    hand_loop_ready(&f->loop, WATCH_READ);
    while (conn_read(&f->conn, buffer, sizeof(buffer)) > 0) n++;
    assert_int_equal(n, READS_MAX);
    hand_loop_ready(&f->loop, WATCH_READ);
    assert_int_equal(conn_read(&f->conn, buffer, sizeof(buffer)), sizeof(buffer));
}

SOCKET_TEST(a_connection_without_counts_reads_and_writes)
{
    char buffer[8];

    connect_now(f);
    f->conn.counts = NULL;
    PLAY({0, 8}, {0, 1});
    conn_allow_reads(&f->conn);
    assert_int_equal(conn_read(&f->conn, buffer, sizeof(buffer)), 8);
    say(f, "x");
    hand_loop_run(&f->loop);
    assert_int_equal(f->n_sent, 1);
}

/* ---- passwords ---- */

/* All memory of the buffer is looked at, so all has a value. */
static void fill_buffer(struct socket_fixture *f)
{
    bytes_reserve(&f->conn.out, 1);
    memset(f->conn.out.data, 0, f->conn.out.capacity);
}

static bool has_secret(const struct socket_fixture *f)
{
    return memmem(f->conn.out.data, f->conn.out.capacity, "cret", 4) != NULL;
}

SOCKET_TEST(a_password_is_wiped_when_it_has_left)
{
    connect_now(f);
    fill_buffer(f);
    f->conn.secret = true;
    PLAY({0, 2});
    say(f, "secret");
    hand_loop_run(&f->loop);
    assert_true(f->conn.secret && has_secret(f));
    PLAY({0, 9});
    hand_loop_ready(&f->loop, WATCH_WRITE);
    assert_false(f->conn.secret || has_secret(f));
    /* What is no secret is not wiped, which would take time. */
    PLAY({0, 9});
    say(f, "secret");
    hand_loop_run(&f->loop);
    assert_true(has_secret(f));
}

SOCKET_TEST(a_password_that_did_not_leave_is_wiped_with_the_connection)
{
    for (int secret = 0; secret < 2; secret++) {
        connect_now(f);
        fill_buffer(f);
        f->conn.secret = secret == 1;
        say(f, "secret");
        conn_close(&f->conn, false);
        assert_int_equal(f->conn.out.used, 0);
        assert_false(f->loop.due || f->conn.secret);
        assert_int_equal(has_secret(f), secret == 0);
    }
}

/* ---- opening and closing ---- */

SOCKET_TEST(what_waits_until_it_is_connected_leaves_then)
{
    assert_int_equal(conn_open(&f->conn, &anywhere, 0, NULL), 0);
    assert_false(conn_has_input(&f->conn));
    say(f, "x");
    hand_loop_run(&f->loop);
    assert_events(f, "");
    assert_int_equal(f->n_sent, 0);
    hand_loop_ready(&f->loop, WATCH_WRITE);
    assert_events(f, "connected ");
    assert_int_equal(conn_finish(&f->conn), CONN_DONE);
    assert_true(f->loop.due && conn_has_input(&f->conn));
    PLAY({0, 1});
    hand_loop_run(&f->loop);
    assert_events(f, "sending sent ");
    assert_sent(f, "x");
}

static void close_conn(void *arg, enum conn_ready ready)
{
    struct socket_fixture *f = arg;

    note(f, ready);
    conn_close(&f->conn, false);
}

SOCKET_TEST(an_owner_may_close_while_it_appends)
{
    conn_clear(&f->conn);
    assert_true(conn_init(&f->conn, &f->system, &memory, close_conn, f));
    connect_now(f);
    say(f, "x");
    hand_loop_run(&f->loop);
    assert_events(f, "sending ");
    assert_int_equal(f->n_sent, 0);
    /* The task may run all the same. */
    hand_loop_run(&f->loop);
    assert_events(f, "");
    assert_false(conn_has_input(&f->conn));
}

SOCKET_TEST(an_end_is_told_to_the_system)
{
    conn_keep_sending(&f->conn);
    conn_close(&f->conn, true);
    assert_int_equal(f->kept + f->closes, 0);
    for (unsigned reset = 0; reset < 2; reset++) {
        connect_now(f);
        conn_keep_sending(&f->conn);
        conn_close(&f->conn, reset != 0);
        conn_close(&f->conn, reset != 0);
        assert_int_equal(f->kept, reset + 1);
        assert_int_equal(f->closes, reset + 1);
        assert_int_equal(f->resets, reset);
    }
}

SOCKET_TEST(a_connection_that_cannot_be_opened_is_closed)
{
    f->connect_error = ENETUNREACH;
    assert_int_equal(conn_open(&f->conn, &anywhere, 0, &f->layer), ENETUNREACH);
    assert_int_equal(f->layers_freed, 1);
    assert_int_equal(f->closes, 0);
    f->connect_error = 0;
    f->loop.no_watch = true;
    assert_int_equal(conn_open(&f->conn, &anywhere, 0, &f->layer), ENOMEM);
    assert_int_equal(f->layers_freed, 2);
    assert_int_equal(f->resets, 1);
    f->loop.no_watch = false;
    f->loop.watch_fails = true;
    assert_int_equal(conn_open(&f->conn, &anywhere, 0, &f->layer), ENOMEM);
    assert_int_equal(f->layers_freed, 3);
    assert_int_equal(f->resets, 2);
    f->loop.watch_fails = false;
    f->finish_error = ECONNREFUSED;
    assert_int_equal(conn_open(&f->conn, &anywhere, 0, NULL), 0);
    assert_int_equal(conn_finish(&f->conn), CONN_FAILED);
    assert_string_equal(conn_why(&f->conn), "Connection refused");
}

SOCKET_TEST(a_layer_greets_first)
{
    char buffer[8];

    assert_int_equal(conn_open(&f->conn, &anywhere, 0, &f->layer), 0);
    f->layer_waits = WATCH_READ;
    assert_int_equal(conn_finish(&f->conn), CONN_LATER);
    assert_int_equal(f->loop.watched, WATCH_READ);
    /* The socket is asked once whether it is connected. */
    f->finish_error = ECONNREFUSED;
    f->layer_waits = WATCH_WRITE;
    assert_int_equal(conn_finish(&f->conn), CONN_LATER);
    assert_int_equal(f->loop.watched, WATCH_WRITE);
    f->layer_returns = 1;
    assert_int_equal(conn_finish(&f->conn), CONN_DONE);
    assert_int_equal(f->loop.watched, WATCH_READ);
    /* It reads, and has to write for that. */
    f->layer_returns = 0;
    f->layer_waits = WATCH_WRITE;
    assert_int_equal(conn_read(&f->conn, buffer, sizeof(buffer)), 0);
    assert_int_equal(f->loop.watched, WATCH_WRITE);
    hand_loop_ready(&f->loop, WATCH_WRITE);
    assert_events(f, "readable ");
    f->layer_returns = 5;
    assert_int_equal(conn_read(&f->conn, buffer, sizeof(buffer)), 5);
    assert_int_equal(f->loop.watched, WATCH_READ);
    /* It writes, and has to read for that. */
    f->layer_returns = 0;
    f->layer_waits = WATCH_READ;
    say(f, "x");
    hand_loop_run(&f->loop);
    assert_events(f, "sending sent ");
    assert_int_equal(f->loop.watched, WATCH_READ);
    f->layer_returns = 1;
    hand_loop_ready(&f->loop, WATCH_READ);
    assert_events(f, "readable ");
    assert_int_equal(f->conn.out.used, 0);
    f->layer_returns = -1;
    assert_int_equal(conn_read(&f->conn, buffer, sizeof(buffer)), -1);
    conn_close(&f->conn, false);
    assert_int_equal(f->layers_freed, 1);
}

SOCKET_TEST(a_layer_may_fail_to_greet)
{
    f->finish_error = 0;
    assert_int_equal(conn_open(&f->conn, &anywhere, 0, &f->layer), 0);
    f->layer_returns = -1;
    assert_int_equal(conn_finish(&f->conn), CONN_FAILED);
    conn_close(&f->conn, true);
    assert_int_equal(conn_open(&f->conn, &anywhere, 0, &f->layer), 0);
    f->layer_returns = 0;
    f->layer_waits = WATCH_READ;
    f->loop.watch_fails = true;
    assert_int_equal(conn_finish(&f->conn), CONN_FAILED);
    assert_string_equal(conn_why(&f->conn), strerror(ENOMEM));
    /* What it says comes before the errno. */
    snprintf(f->conn.why, sizeof(f->conn.why), "TLS: no");
    assert_string_equal(conn_why(&f->conn), "TLS: no");
}

/* ---- addresses ---- */

static enum dial_result dial_to(struct socket_fixture *f, const char *text)
{
    char error[256];

    conn_close(&f->conn, false);
    dial_cancel(&f->dial);
    uri_clear(&f->uri, &memory);
    if (uri_parse(&f->uri, &memory, text, error, sizeof(error)) != 0) fail_msg("%s", error);
    f->config = (struct link_config){.uri = &f->uri, .user_timeout_ms = 4321};
    dial_init(&f->dial, &f->conn, &f->config, on_resolved, f);
    return dial_begin(&f->dial);
}

SOCKET_TEST(an_address_without_a_name_is_dialed_at_once)
{
    const struct sockaddr_un *local = (const struct sockaddr_un *)&f->address.storage;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&f->address.storage;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&f->address.storage;

    assert_int_equal(dial_to(f, "10.1.2.3:7001"), DIAL_CONNECTING);
    assert_int_equal(f->user_timeout_ms, 4321);
    assert_int_equal(f->address.length, sizeof(*v4));
    assert_int_equal(v4->sin_family, AF_INET);
    assert_int_equal(ntohs(v4->sin_port), 7001);
    assert_int_equal(ntohl(v4->sin_addr.s_addr), 0x0a010203);

    assert_int_equal(dial_to(f, "[fd00::5]:7002"), DIAL_CONNECTING);
    assert_int_equal(f->address.length, sizeof(*v6));
    assert_int_equal(v6->sin6_family, AF_INET6);
    assert_int_equal(ntohs(v6->sin6_port), 7002);
    assert_int_equal(v6->sin6_addr.s6_addr[0], 0xfd);
    assert_int_equal(v6->sin6_addr.s6_addr[15], 5);

    assert_int_equal(dial_to(f, "unix:///run/redis.sock"), DIAL_CONNECTING);
    assert_int_equal(f->address.length, sizeof(*local));
    assert_int_equal(local->sun_family, AF_UNIX);
    assert_string_equal(local->sun_path, "/run/redis.sock");
    assert_int_equal(f->lookups, 0);
    assert_int_equal(dial_left(&f->dial), 0);
}

SOCKET_TEST(an_address_that_cannot_be_dialed_is_told)
{
    f->connect_error = ECONNREFUSED;
    assert_int_equal(dial_to(f, "10.1.2.3"), DIAL_FAILED);
    assert_int_equal(f->dial.fault, FAULT_UNREACHABLE);
    assert_string_equal(f->dial.why, "connect: Connection refused");
    assert_int_equal(dial_next(&f->dial), DIAL_FAILED);
    assert_int_equal(f->connects, 1);
}

static const struct addresses two = {
    .n = 2,
    .at = {{.storage = {.ss_family = AF_INET}, .length = 16}, {.storage = {.ss_family = AF_INET6}, .length = 28}}};

SOCKET_TEST(a_name_is_looked_up_and_its_addresses_are_dialed_in_turn)
{
    assert_int_equal(dial_to(f, "redis.example"), DIAL_RESOLVING);
    assert_null(dial_address(&f->dial));
    /* One lookup at a time. */
    assert_int_equal(dial_begin(&f->dial), DIAL_RESOLVING);
    assert_int_equal(f->lookups, 1);
    f->looked_up(f->looked_up_arg, &two);
    assert_int_equal(f->resolved, 1);
    dial_cancel(&f->dial);
    assert_int_equal(f->cancels, 0);
    f->connect_error = ENETUNREACH;
    assert_int_equal(dial_next(&f->dial), DIAL_FAILED);
    assert_int_equal(f->connects, 2);
    assert_string_equal(f->dial.why, "connect to ::: Network is unreachable");
    /* The next try asks again. */
    f->connect_error = 0;
    assert_int_equal(dial_begin(&f->dial), DIAL_RESOLVING);
    assert_int_equal(f->lookups, 2);
    assert_string_equal(f->dial.why, "connect: no address");
    f->looked_up(f->looked_up_arg, &two);
    assert_int_equal(dial_next(&f->dial), DIAL_CONNECTING);
    assert_int_equal(dial_left(&f->dial), 1);
    assert_int_equal(dial_address(&f->dial)->ss_family, AF_INET);
    conn_close(&f->conn, true);
    assert_int_equal(dial_next(&f->dial), DIAL_CONNECTING);
    assert_int_equal(dial_left(&f->dial), 0);
    assert_int_equal(f->address.length, 28);
}

SOCKET_TEST(a_name_without_an_address_is_told)
{
    static const struct addresses none = {.why = "Name or service not known"};

    f->lookup_error = ENOMEM;
    assert_int_equal(dial_to(f, "redis.example"), DIAL_FAILED);
    assert_int_equal(f->dial.fault, FAULT_LIMIT);
    assert_string_equal(f->dial.why, "cannot resolve redis.example: Cannot allocate memory");
    f->lookup_error = 0;
    assert_int_equal(dial_to(f, "redis.example"), DIAL_RESOLVING);
    f->looked_up(f->looked_up_arg, &none);
    assert_int_equal(dial_next(&f->dial), DIAL_FAILED);
    assert_int_equal(f->dial.fault, FAULT_UNREACHABLE);
    assert_string_equal(f->dial.why, "cannot resolve redis.example: Name or service not known");
    assert_int_equal(dial_to(f, "[fe80::1%nowhere]"), DIAL_RESOLVING);
    f->looked_up(f->looked_up_arg, &none);
    assert_string_equal(f->dial.why, "cannot resolve fe80::1%nowhere: this machine has no such interface");
    assert_int_equal(dial_begin(&f->dial), DIAL_RESOLVING);
    dial_cancel(&f->dial);
    dial_cancel(&f->dial);
    assert_int_equal(f->cancels, 1);
}
