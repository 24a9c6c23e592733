/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * on_epoll.c - a daemon with an epoll of its own that works for a while under a lock
 *
 * usage: on_epoll WORK_MS NODE...
 *
 * The client is one descriptor more in it.
 */
#include <quorlock/adapters/epoll.h>

#include "example.h"
#include "keeper.h"

static int work;
static struct itimerspec work_time;
static bool has_ended;

static void on_held(void *arg)
{
    (void)arg;
    timerfd_settime(work, 0, &work_time, NULL);
}

static void on_ended(void *arg)
{
    (void)arg;
    has_ended = true;
}

static void watch(int epoll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) die("epoll_ctl failed");
}

static void on_ready(struct keeper *keeper, struct quorlock_epoll *client, int fd)
{
    uint64_t expirations;

    if (fd == client->fd) {
        quorlock_epoll_run(client, 0);
    } else if (read(work, &expirations, sizeof(expirations)) > 0) {
        keeper_end(keeper);
    }
}

int main(int argc, char **argv)
{
    struct keeper keeper = {.held = on_held, .ended = on_ended};
    struct quorlock_epoll client;
    struct quorlock_loop loop;
    struct epoll_event event;
    unsigned long work_ms;
    int epoll = epoll_create1(EPOLL_CLOEXEC);

    if (argc < 3) die("usage: on_epoll WORK_MS NODE...");
    work_ms = strtoul(argv[1], NULL, 10);
    work_time.it_value =
        (struct timespec){.tv_sec = (time_t)(work_ms / 1000), .tv_nsec = (long)(work_ms % 1000) * 1000000};
    work = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (epoll < 0 || work < 0 || quorlock_epoll_open(&client) != 0) die("no event loop");
    watch(epoll, client.fd);
    watch(epoll, work);
    loop = quorlock_loop_epoll(&client);
    keeper_begin(&keeper, &loop, (const char *const *)argv + 2, (size_t)(argc - 2));
    while (!has_ended) {
        if (epoll_wait(epoll, &event, 1, -1) == 1) on_ready(&keeper, &client, event.data.fd);
    }
    quorlock_epoll_close(&client);
    close(work);
    close(epoll);
    return 0;
}
