/* SPDX-License-Identifier: BSD-3-Clause */
#include "hand_loop.h"

static void *watch_new(void *arg, int fd, void (*ready)(void *, unsigned), void *of)
{
    struct hand_loop *loop = arg;

    assert_int_equal(fd, loop->fd);
    loop->ready = ready;
    loop->ready_of = of;
    return loop->no_watch ? NULL : loop;
}

static int watch_set(void *watch, unsigned events)
{
    struct hand_loop *loop = watch;

    if (loop->watch_fails) return -1;
    loop->watched = events;
    return 0;
}

static void watch_free(void *watch)
{
    ((struct hand_loop *)watch)->watched = 0;
}

static void *task_new(void *arg, void (*run)(void *), void *of)
{
    struct hand_loop *loop = arg;

    loop->run = run;
    loop->run_of = of;
    return loop;
}

static void task_run(void *task)
{
    ((struct hand_loop *)task)->due = true;
}

static void task_stop(void *task)
{
    ((struct hand_loop *)task)->due = false;
}

struct quorlock_loop hand_loop_functions(struct hand_loop *loop)
{
    return (struct quorlock_loop){.arg = loop,
                                  .watch_new = watch_new,
                                  .watch_set = watch_set,
                                  .watch_free = watch_free,
                                  .task_new = task_new,
                                  .task_run = task_run,
                                  .task_stop = task_stop,
                                  .task_free = task_stop};
}

void hand_loop_ready(const struct hand_loop *loop, unsigned events)
{
    loop->ready(loop->ready_of, events);
}

void hand_loop_run(struct hand_loop *loop)
{
    loop->due = false;
    loop->run(loop->run_of);
}
