/* SPDX-License-Identifier: BSD-3-Clause */
/* test_server.c - a server's host does what server.h says: serves, freezes, ends, comes back */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/address.h"
#include "base/system.h"
#include "server.h"
#include "test.h"

#define MS      UINT64_C(1000)
#define SECOND  UINT64_C(1000000)
#define WALL_US (1800000000 * SECOND)

struct fixture {
    struct queue queue;
    struct net *net;
    struct server *server;
    int fds[2];
    char said[2][8192];
    uint64_t executed_us[64];
    unsigned n_executed, n_changed;
};

static void on_executed(void *arg, struct session *session, const char *command)
{
    struct fixture *f = arg;

    if (f->n_executed < LENGTH(f->executed_us)) f->executed_us[f->n_executed++] = f->queue.now_us;
}

static void on_changed(void *arg, const char *key, size_t length)
{
    ((struct fixture *)arg)->n_changed++;
}

static void on_woken(void *arg, int fd)
{
    (void)arg;
}

static void pass(struct fixture *f, uint64_t us)
{
    uint64_t until_us = f->queue.now_us + us;

    while (queue_next(&f->queue, until_us)) continue;
}

static void dial(struct fixture *f, int i)
{
    struct address address = {.length = sizeof(struct sockaddr_in)};
    struct sockaddr_in *to = (struct sockaddr_in *)&address.storage;

    to->sin_family = AF_INET;
    to->sin_port = htons(6379);
    to->sin_addr.s_addr = htonl(NET_SUBNET | net_address(f->net, 0));
    f->fds[i] = net_connect(f->net, 0, &address, 60000, on_woken, f);
    pass(f, 10 * MS);
}

static int setup(void **state)
{
    static struct fixture f;
    const struct model_events events = {.changed = on_changed, .executed = on_executed, .arg = &f};

    memset(&f, 0, sizeof(f));
    f.net = net_new(&f.queue);
    f.server = server_new(&f.queue, f.net);
    net_reset(f.net, 3, 1, 1);
    server_boot(f.server, 0, 4, &(struct skew){0, WALL_US, 0}, &events);
    for (int i = 0; i < 2; i++) dial(&f, i);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    server_free(f->server);
    net_free(f->net);
    queue_free(&f->queue);
    return 0;
}

#define SERVER_TEST(name) TEST_WITH(fixture, name, setup, teardown)

/* One word each, with blanks between. */
static void say(struct fixture *f, int i, const char *command)
{
    char bytes[512] = "";
    unsigned n_words = times_in(command, " ") + 1;
    size_t used = (size_t)snprintf(bytes, sizeof(bytes), "*%u\r\n", n_words);

    for (const char *at = command; n_words > 0; n_words--) {
        size_t length = strcspn(at, " ");

        used += (size_t)snprintf(bytes + used, sizeof(bytes) - used, "$%zu\r\n%.*s\r\n", length, (int)length, at);
        at += length + 1;
    }
    assert_int_equal(net_send(f->net, f->fds[i], bytes, used), used);
}

/* What was said there since last; "EOF" where it ended. */
static const char *heard(struct fixture *f, int i)
{
    ssize_t n = net_recv(f->net, f->fds[i], f->said[i], sizeof(f->said[i]) - 1);

    if (n == 0 || (n < 0 && errno == ECONNRESET)) return "EOF";
    f->said[i][n > 0 ? n : 0] = '\0';
    return f->said[i];
}

static const char *ask(struct fixture *f, int i, const char *command)
{
    say(f, i, command);
    pass(f, 10 * MS);
    return heard(f, i);
}

SERVER_TEST(commands_are_served_one_at_a_time_in_turn)
{
    server_service_us(f->server, 1000);
    for (int i = 0; i < 5; i++) say(f, 0, "SET first x");
    say(f, 1, "SET second x");
    pass(f, SECOND);
    assert_int_equal(server_executed(f->server), 6);
    for (unsigned i = 1; i < 6; i++) assert_true(f->executed_us[i] > f->executed_us[i - 1]);
    assert_string_equal(heard(f, 0), "+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n");
    assert_string_equal(heard(f, 1), "+OK\r\n");
    assert_int_equal(f->n_changed, 6);
}

/* Also what its client has reset meanwhile, and in front of what came on a later connection. */
SERVER_TEST(a_frozen_server_executes_what_it_had_received)
{
    server_halt(f->server, f->queue.now_us + SECOND);
    say(f, 0, "SET key old");
    pass(f, 10 * MS);
    net_close(f->net, f->fds[0], true);
    pass(f, 10 * MS);
    say(f, 1, "GET key");
    assert_int_equal(server_executed(f->server), 0);
    pass(f, SECOND);
    assert_string_equal(heard(f, 1), "$3\r\nold\r\n");
    assert_int_equal(server_executed(f->server), 2);
}

SERVER_TEST(a_process_ends_and_comes_back_with_its_memory_or_another)
{
    static const char *const values[] = {"$3\r\nnew\r\n", "$-1\r\n", "$3\r\nold\r\n"};

    for (enum server_memory with = SERVER_KEEPS; with <= SERVER_OLD; with++) {
        assert_string_equal(ask(f, 0, "SET key old"), "+OK\r\n");
        server_snapshot(f->server);
        assert_string_equal(ask(f, 0, "SET key new"), "+OK\r\n");
        server_crash(f->server, false);
        assert_false(server_is_up(f->server));
        pass(f, 10 * MS);
        assert_string_equal(heard(f, 0), "EOF");
        net_close(f->net, f->fds[0], false);
        dial(f, 0);
        assert_int_equal(net_finish(f->net, f->fds[0]), ECONNREFUSED);
        net_close(f->net, f->fds[0], false);
        server_launch(f->server, with, false, 0);
        assert_true(server_is_up(f->server));
        dial(f, 0);
        assert_string_equal(ask(f, 0, "GET key"), values[with]);
    }
}

static void note_identity(struct fixture *f, const char *command, const char *field, char ret[64])
{
    const char *line = strstr(ask(f, 0, command), field);

    assert_non_null(line);
    snprintf(ret, 64, "%.*s", (int)strcspn(line, "\r"), line);
}

SERVER_TEST(each_process_has_a_run_id)
{
    char before[64], after[64], replid_before[64], replid_after[64];

    for (int promoted = 0; promoted < 2; promoted++) {
        note_identity(f, "INFO server", "run_id:", before);
        note_identity(f, "INFO replication", "master_replid:", replid_before);
        server_crash(f->server, false);
        server_launch(f->server, SERVER_KEEPS, promoted != 0, 0);
        net_close(f->net, f->fds[0], false);
        dial(f, 0);
        note_identity(f, "INFO server", "run_id:", after);
        note_identity(f, "INFO replication", "master_replid:", replid_after);
        assert_string_not_equal(before, after);
        assert_int_equal(strcmp(replid_before, replid_after) != 0, promoted);
    }
}

SERVER_TEST(a_server_loads_and_may_be_busy)
{
    server_crash(f->server, false);
    server_launch(f->server, SERVER_KEEPS, false, SECOND);
    net_close(f->net, f->fds[0], false);
    dial(f, 0);
    assert_contains(ask(f, 0, "GET key"), "-LOADING");
    pass(f, SECOND);
    assert_string_equal(ask(f, 0, "GET key"), "$-1\r\n");
    server_busy(f->server, f->queue.now_us + SECOND);
    assert_contains(ask(f, 0, "GET key"), "-BUSY");
    pass(f, SECOND);
    assert_string_equal(ask(f, 0, "GET key"), "$-1\r\n");
}

/* What expired before a step back of its clock does not return. */
SERVER_TEST(keys_expire_by_the_servers_clock)
{
    skew_rate(server_clock(f->server), f->queue.now_us, 1000000);
    assert_string_equal(ask(f, 0, "SET key x PX 10000"), "+OK\r\n");
    pass(f, 4 * SECOND);
    assert_string_equal(ask(f, 0, "EXISTS key"), ":1\r\n");
    pass(f, SECOND);
    f->n_changed = 0;
    skew_step(server_clock(f->server), f->queue.now_us, -(int64_t)(60 * SECOND));
    assert_non_null(server_model(f->server));
    assert_int_equal(f->n_changed, 1);
    assert_string_equal(ask(f, 0, "EXISTS key"), ":0\r\n");
    assert_string_equal(ask(f, 0, "SET key x PX 10000"), "+OK\r\n");
    skew_step(server_clock(f->server), f->queue.now_us, (int64_t)(11 * SECOND));
    assert_string_equal(ask(f, 0, "EXISTS key"), ":0\r\n");
}

/* Its own session, another's, and one of a client too many. */
SERVER_TEST(a_server_hangs_up)
{
    char command[64];

    snprintf(command, sizeof(command), "CLIENT KILL ID %.1s", ask(f, 1, "CLIENT ID") + 1);
    assert_string_equal(ask(f, 0, command), ":1\r\n");
    assert_string_equal(heard(f, 1), "EOF");
    assert_string_equal(ask(f, 0, "PING"), "+PONG\r\n");
    net_close(f->net, f->fds[1], false);
    model_manners(server_model(f->server))->max_clients = 1;
    dial(f, 1);
    pass(f, 10 * MS);
    assert_contains(heard(f, 1), "-ERR max number of clients");
    assert_string_equal(heard(f, 1), "EOF");
    assert_int_equal(net_send(f->net, f->fds[0], "*x\r\n", 4), 4);
    pass(f, 10 * MS);
    assert_contains(heard(f, 0), "-ERR Protocol error");
    assert_string_equal(heard(f, 0), "EOF");
}
