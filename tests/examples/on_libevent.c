/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * on_libevent.c - a daemon on libevent that works for a while under a lock
 *
 * usage: on_libevent WORK_MS NODE...
 */
#include <quorlock/adapters/libevent.h>

#include "example.h"
#include "keeper.h"

static struct event *work;
static struct timeval work_time;

static void on_worked(evutil_socket_t fd, short what, void *keeper)
{
    (void)fd;
    (void)what;
    keeper_end(keeper);
}

static void on_held(void *arg)
{
    (void)arg;
    evtimer_add(work, &work_time);
}

/* Without anything to wait for the loop ends by itself. */
static void on_ended(void *arg)
{
    (void)arg;
}

int main(int argc, char **argv)
{
    struct keeper keeper = {.held = on_held, .ended = on_ended};
    struct event_base *base = example_base();
    const struct quorlock_loop loop = quorlock_loop_libevent(base);
    unsigned long work_ms;

    if (argc < 3) die("usage: on_libevent WORK_MS NODE...");
    work_ms = strtoul(argv[1], NULL, 10);
    work_time = (struct timeval){.tv_sec = (time_t)(work_ms / 1000), .tv_usec = (suseconds_t)(work_ms % 1000) * 1000};
    work = evtimer_new(base, on_worked, &keeper);
    keeper_begin(&keeper, &loop, (const char *const *)argv + 2, (size_t)(argc - 2));
    event_base_dispatch(base);
    event_free(work);
    event_base_free(base);
    return 0;
}
