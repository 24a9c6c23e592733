/* SPDX-License-Identifier: BSD-3-Clause */
#include "guard.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>

#include "test.h"

enum sort { WATCH, TIMER, TASK };

/* Its memory stays until the end, so that a use after its end is seen. */
struct guarded {
    struct guarded *next;
    enum sort sort;
    bool is_freed, is_set; /* a timer that is set, a task that is to run */
    int fd;
    unsigned wanted;
    void *inner;
    void (*ready)(void *of, unsigned events);
    void (*fire)(void *of);
    void *of;
};

static struct quorlock_loop inner;
static struct guarded *all;
static size_t live, calls;
static pthread_t thread;
static bool inside; /* a call of the loop */

static void enter(void)
{
    assert_true(pthread_equal(pthread_self(), thread) != 0);
    assert_false(inside);
    inside = true;
    calls++;
}

static void leave(void)
{
    inside = false;
}

static struct guarded *enter_with(void *arg, enum sort sort)
{
    struct guarded *guarded = arg;

    enter();
    assert_int_equal(guarded->sort, sort);
    assert_false(guarded->is_freed);
    return guarded;
}

static void on_ready(void *arg, unsigned events)
{
    struct guarded *guarded = arg;

    assert_false(inside);
    assert_false(guarded->is_freed);
    assert_true(events != 0);
    assert_int_equal(events & ~guarded->wanted, 0);
    guarded->ready(guarded->of, events);
}

static void on_fire(void *arg)
{
    struct guarded *guarded = arg;

    assert_false(inside);
    assert_false(guarded->is_freed);
    assert_true(guarded->is_set);
    guarded->is_set = false;
    guarded->fire(guarded->of);
}

static struct guarded *add(enum sort sort, void *of)
{
    struct guarded *guarded = calloc(1, sizeof(*guarded));

    enter();
    assert_non_null(guarded);
    guarded->sort = sort;
    guarded->of = of;
    return guarded;
}

static void *added(struct guarded *guarded)
{
    leave();
    if (guarded->inner == NULL) {
        free(guarded);
        return NULL;
    }
    guarded->next = all;
    all = guarded;
    live++;
    return guarded;
}

static void *watch_new(void *arg, int fd, void (*ready)(void *, unsigned), void *of)
{
    struct guarded *guarded = add(WATCH, of);

    for (const struct guarded *at = all; at != NULL; at = at->next) {
        if (at->sort == WATCH && !at->is_freed) assert_int_not_equal(at->fd, fd);
    }
    guarded->fd = fd;
    guarded->ready = ready;
    guarded->inner = inner.watch_new(inner.arg, fd, on_ready, guarded);
    return added(guarded);
}

static int watch_set(void *watch, unsigned events)
{
    struct guarded *guarded = enter_with(watch, WATCH);
    int status = inner.watch_set(guarded->inner, events);

    assert_int_equal(events & ~(QUORLOCK_LOOP_READ | QUORLOCK_LOOP_WRITE), 0);
    guarded->wanted = events;
    leave();
    return status;
}

static void end(struct guarded *guarded, void (*release)(void *))
{
    guarded->is_freed = true;
    live--;
    release(guarded->inner);
    leave();
}

static void watch_free(void *watch)
{
    struct guarded *guarded = enter_with(watch, WATCH);

    assert_true(fcntl(guarded->fd, F_GETFD) >= 0);
    end(guarded, inner.watch_free);
}

static void *timer_new(void *arg, void (*fire)(void *), void *of)
{
    struct guarded *guarded = add(TIMER, of);

    guarded->fire = fire;
    guarded->inner = inner.timer_new(inner.arg, on_fire, guarded);
    return added(guarded);
}

static int timer_set(void *timer, uint64_t after_us)
{
    struct guarded *guarded = enter_with(timer, TIMER);
    int status = inner.timer_set(guarded->inner, after_us);

    guarded->is_set = true;
    leave();
    return status;
}

static void timer_stop(void *timer)
{
    struct guarded *guarded = enter_with(timer, TIMER);

    inner.timer_stop(guarded->inner);
    guarded->is_set = false;
    leave();
}

static void timer_free(void *timer)
{
    end(enter_with(timer, TIMER), inner.timer_free);
}

static void *task_new(void *arg, void (*run)(void *), void *of)
{
    struct guarded *guarded = add(TASK, of);

    guarded->fire = run;
    guarded->inner = inner.task_new(inner.arg, on_fire, guarded);
    return added(guarded);
}

static void task_run(void *task)
{
    struct guarded *guarded = enter_with(task, TASK);

    inner.task_run(guarded->inner);
    guarded->is_set = true;
    leave();
}

static void task_stop(void *task)
{
    struct guarded *guarded = enter_with(task, TASK);

    inner.task_stop(guarded->inner);
    guarded->is_set = false;
    leave();
}

static void task_free(void *task)
{
    end(enter_with(task, TASK), inner.task_free);
}

struct quorlock_loop guard_begin(const struct quorlock_loop *loop)
{
    inner = *loop;
    thread = pthread_self();
    inside = false;
    live = calls = 0;
    return (struct quorlock_loop){.size = sizeof(struct quorlock_loop),
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

void guard_end(void)
{
    size_t left = live;

    while (all != NULL) {
        struct guarded *next = all->next;

        free(all);
        all = next;
    }
    assert_int_equal(left, 0);
}

size_t guard_live(void)
{
    return live;
}

size_t guard_calls(void)
{
    return calls;
}
