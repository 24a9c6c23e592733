/* SPDX-License-Identifier: BSD-3-Clause */
/* net_fixture.h - two machines, two servers and a network, for its tests */
#pragma once

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/address.h"
#include "base/system.h"
#include "net.h"
#include "test.h"

#define MS       UINT64_C(1000)
#define SECOND   UINT64_C(1000000)
#define MACHINES 2
#define SERVERS  2
#define TIMEOUT  5000 /* ms, of sent bytes */

struct fixture;

struct session {
    struct fixture *f;
    struct conn *conn;
};

/* A server that remembers what it was told, and answers each input with "+" and the same. */
struct fixture {
    struct queue queue;
    struct net *net;
    struct session sessions[64];
    unsigned n_sessions;
    struct conn *conn; /* the last that was accepted */
    unsigned accepted, gone, inputs, woken;
    char heard[8192], said[8192];
    size_t n_heard, n_said;
    int fd;
};

static inline void *on_accept(void *server, struct conn *conn)
{
    struct fixture *f = server;
    struct session *session = &f->sessions[f->n_sessions++ % 64];

    *session = (struct session){f, conn};
    f->conn = conn;
    f->accepted++;
    return session;
}

static inline void on_input(void *arg, const void *bytes, size_t size)
{
    const struct session *session = arg;
    struct fixture *f = session->f;

    assert_true(f->n_heard + size < sizeof(f->heard));
    memcpy(f->heard + f->n_heard, bytes, size);
    f->n_heard += size;
    f->inputs++;
    net_reply(session->conn, "+", 1);
    net_reply(session->conn, bytes, size);
}

static inline void on_gone(void *session)
{
    ((struct session *)session)->f->gone++;
}

static inline void on_woken(void *arg, int fd)
{
    ((struct fixture *)arg)->woken++;
}

static inline void listen_at(struct fixture *f, uint32_t server)
{
    net_listen(f->net, server, &(struct net_server){on_accept, on_input, on_gone, f});
}

static inline int setup(void **state)
{
    static struct fixture f;

    memset(&f, 0, sizeof(f));
    f.net = net_new(&f.queue);
    net_reset(f.net, 7, MACHINES, SERVERS);
    for (uint32_t i = 0; i < SERVERS; i++) listen_at(&f, i);
    *state = &f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;

    net_free(f->net);
    assert_int_equal(f->queue.used, 0);
    queue_free(&f->queue);
    return 0;
}

#define NET_TEST(name) TEST_WITH(fixture, name, setup, teardown)

static inline void pass(struct fixture *f, uint64_t us)
{
    uint64_t until_us = f->queue.now_us + us;

    while (queue_next(&f->queue, until_us)) continue;
}

static inline int dial(struct fixture *f, uint32_t machine, uint32_t last_byte, uint16_t port)
{
    struct address address = {.length = sizeof(struct sockaddr_in)};
    struct sockaddr_in *to = (struct sockaddr_in *)&address.storage;

    to->sin_family = AF_INET;
    to->sin_port = htons(port);
    to->sin_addr.s_addr = htonl(NET_SUBNET | last_byte);
    f->fd = net_connect(f->net, machine, &address, TIMEOUT, on_woken, f);
    return f->fd;
}

static inline void open_one(struct fixture *f)
{
    int fd = dial(f, 0, 1, 6379);

    assert_int_equal(net_ready(f->net, fd), 0);
    pass(f, 100 * MS);
    assert_int_equal(net_ready(f->net, fd), WATCH_WRITE);
    assert_int_equal(net_finish(f->net, fd), 0);
    assert_int_equal(f->accepted, 1);
}

static inline void say(struct fixture *f, const char *text)
{
    assert_int_equal(net_send(f->net, f->fd, text, strlen(text)), strlen(text));
}

/* What has arrived for the machine so far; 0: there is an end, else the errno, mostly EAGAIN. */
static inline int listen_to(struct fixture *f)
{
    ssize_t n;

    while ((n = net_recv(f->net, f->fd, f->said + f->n_said, sizeof(f->said) - f->n_said)) > 0) f->n_said += (size_t)n;
    return n == 0 ? 0 : errno;
}

/* Nothing of what was sent arrives; the server sees the end between these two times, in seconds from now. */
static inline void expect_gone(struct fixture *f, uint64_t after_s, uint64_t until_s)
{
    pass(f, after_s * SECOND);
    assert_int_equal(f->n_heard + f->gone, 0);
    pass(f, (until_s - after_s) * SECOND);
    assert_int_equal(f->n_heard, 0);
    assert_int_equal(f->gone, 1);
}

static inline void cut(struct fixture *f, enum net_way way, uint64_t for_us)
{
    net_link(f->net, 0, 0)->cut_until_us[way] = for_us == NEVER ? NEVER : f->queue.now_us + for_us;
    net_changed(f->net, 0, 0);
}
