/* SPDX-License-Identifier: BSD-3-Clause */
#include "hand_loop.h"

static void *made(struct hand_loop *loop, bool no_memory)
{
    if (no_memory) return NULL;
    loop->objects++;
    return loop;
}

static void *watch_new(void *arg, int fd, void (*ready)(void *, unsigned), void *of)
{
    struct hand_loop *loop = arg;

    assert_int_equal(fd, loop->fd);
    loop->ready = ready;
    loop->ready_of = of;
    return made(loop, loop->no_watch);
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
    ((struct hand_loop *)watch)->objects--;
}

static void *task_new(void *arg, void (*run)(void *), void *of)
{
    struct hand_loop *loop = arg;

    loop->run = run;
    loop->run_of = of;
    return made(loop, loop->no_task);
}

static void task_run(void *task)
{
    ((struct hand_loop *)task)->due = true;
}

static void task_stop(void *task)
{
    ((struct hand_loop *)task)->due = false;
}

static void task_free(void *task)
{
    task_stop(task);
    ((struct hand_loop *)task)->objects--;
}

static void *timer_new(void *arg, void (*fire)(void *), void *of)
{
    struct hand_loop *loop = arg;

    loop->fire = fire;
    loop->fire_of = of;
    return made(loop, loop->no_timer);
}

static int timer_set(void *timer, uint64_t after_us)
{
    struct hand_loop *loop = timer;

    if (loop->timer_fails) return -1;
    loop->timed = true;
    loop->after_us = after_us;
    return 0;
}

static void timer_stop(void *timer)
{
    ((struct hand_loop *)timer)->timed = false;
}

static void timer_free(void *timer)
{
    timer_stop(timer);
    ((struct hand_loop *)timer)->objects--;
}

struct quorlock_loop hand_loop_functions(struct hand_loop *loop)
{
    return (struct quorlock_loop){.arg = loop,
                                  .watch_new = watch_new,
                                  .watch_set = watch_set,
                                  .watch_free = watch_free,
                                  .timer_new = timer_new,
                                  .timer_set = timer_set,
                                  .timer_stop = timer_stop,
                                  .timer_free = timer_free,
                                  .task_new = task_new,
                                  .task_run = task_run,
                                  .task_stop = task_stop,
                                  .task_free = task_free};
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

void hand_loop_fire(struct hand_loop *loop)
{
    assert_true(loop->timed);
    loop->timed = false;
    loop->fire(loop->fire_of);
}
