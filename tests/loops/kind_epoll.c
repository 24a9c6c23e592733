/* SPDX-License-Identifier: BSD-3-Clause */
#include <quorlock/adapters/epoll.h>

#include <errno.h>
#include <poll.h>

#include "kind.h"
#include "test.h"

static struct quorlock_epoll loop;

static void open_loop(void)
{
    assert_int_equal(quorlock_epoll_open(&loop), 0);
}

static struct quorlock_loop table(void)
{
    return quorlock_loop_epoll(&loop);
}

/* As a program with a loop of its own does: the descriptor of the adapter is one that it watches. */
static void turn(void)
{
    struct pollfd pollfd = {.fd = loop.fd, .events = POLLIN};

    assert_int_equal(poll(&pollfd, 1, -1), 1);
    assert_true(quorlock_epoll_run(&loop, 0) >= 0);
}

static void close_loop(void)
{
    struct epoll_event event;
    int n = epoll_wait(loop.fd, &event, 1, 0);

    quorlock_epoll_close(&loop);
    assert_int_equal(n, 0);
}

const struct loop_kind loop_kind = {open_loop, table, turn, close_loop};
