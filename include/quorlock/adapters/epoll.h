/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * epoll.h - a client on a bare epoll, and by it on any loop that can watch one descriptor
 *
 *     struct quorlock_epoll loop;
 *     struct quorlock_loop table;
 *
 *     if (quorlock_epoll_open(&loop) != 0) ...
 *     table = quorlock_loop_epoll(&loop);
 *     quorlock_client_new_on_loop(&client, &table, &options);
 *     while (...) quorlock_epoll_run(&loop, -1);
 *
 * A program with an epoll, poll or select of its own watches loop.fd there for reading, and calls
 * quorlock_epoll_run(&loop, 0) whenever it is readable. It needs the POSIX names: -std=gnu11, or _GNU_SOURCE.
 */
#ifndef QUORLOCK_ADAPTERS_EPOLL_H
#define QUORLOCK_ADAPTERS_EPOLL_H

#include <quorlock/adapters/cast.h>
#include <quorlock/loop.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define QUORLOCK_EPOLL_BATCH 64

struct quorlock_epoll {
    int fd;
    int n;                                          /* events that were ready and are not passed on yet */
    struct epoll_event batch[QUORLOCK_EPOLL_BATCH]; /* these */
};

/* Each has a descriptor: timers have the kernel's, tasks one that is always readable. */
struct quorlock_epoll_source {
    struct quorlock_epoll *epoll;
    int fd, added;
    uint32_t wanted;
    void (*ready)(void *of, unsigned events); /* of a watch */
    void (*fire)(void *of);                   /* of a timer, or a task */
    int is_timer;
    void *of;
};

/* quorlock_epoll_open - 0, or -1 with errno. */
static inline int quorlock_epoll_open(struct quorlock_epoll *epoll)
{
    memset(epoll, 0, sizeof(*epoll));
    epoll->fd = epoll_create1(EPOLL_CLOEXEC);
    return epoll->fd >= 0 ? 0 : -1;
}

/* quorlock_epoll_close - when the close of its clients was reported. */
static inline void quorlock_epoll_close(struct quorlock_epoll *epoll)
{
    close(epoll->fd);
}

static inline void quorlock_epoll_pass_on(struct quorlock_epoll_source *source, uint32_t events)
{
    uint64_t expirations;
    unsigned ready = 0;

    if ((events & (EPOLLERR | EPOLLHUP)) != 0) events = source->wanted;
    events &= source->wanted;
    if ((events & EPOLLIN) != 0) ready |= QUORLOCK_LOOP_READ;
    if ((events & EPOLLOUT) != 0) ready |= QUORLOCK_LOOP_WRITE;
    if (ready == 0) return;
    if (source->ready != NULL) {
        source->ready(source->of, ready);
    } else if (source->is_timer != 0) {
        /* Empty where it was set anew, or stopped, since it was ready. */
        if (read(source->fd, &expirations, sizeof(expirations)) > 0) source->fire(source->of);
    } else {
        source->wanted = 0;
        source->fire(source->of);
    }
}

/* quorlock_epoll_run - waits until something is ready, timeout_ms at most, -1: for ever; and does what is to be done.
 * Not from inside a callback of the client. Returns how much was ready, or -1 with errno: EINTR after a signal. */
static inline int quorlock_epoll_run(struct quorlock_epoll *epoll, int timeout_ms)
{
    int n = epoll_wait(epoll->fd, epoll->batch, QUORLOCK_EPOLL_BATCH, timeout_ms);

    epoll->n = n > 0 ? n : 0;
    for (int i = 0; i < epoll->n; i++) {
        struct quorlock_epoll_source *source = QUORLOCK_CAST(struct quorlock_epoll_source *, epoll->batch[i].data.ptr);

        if (source != NULL) quorlock_epoll_pass_on(source, epoll->batch[i].events);
    }
    epoll->n = 0;
    return n;
}

/* The descriptor of a task stays in the epoll, disarmed, so that to run it cannot fail. */
static inline int quorlock_epoll_control(struct quorlock_epoll_source *source, int what, uint32_t wanted)
{
    struct epoll_event event;

    memset(&event, 0, sizeof(event));
    event.events = wanted;
    if (source->ready == NULL && source->is_timer == 0) event.events |= EPOLLONESHOT;
    event.data.ptr = source;
    if (epoll_ctl(source->epoll->fd, what, source->fd, &event) != 0) return -1;
    source->wanted = wanted;
    source->added = what != EPOLL_CTL_DEL;
    return 0;
}

static inline void quorlock_epoll_free(void *arg)
{
    struct quorlock_epoll_source *source = QUORLOCK_CAST(struct quorlock_epoll_source *, arg);

    for (int i = 0; i < source->epoll->n; i++) {
        if (source->epoll->batch[i].data.ptr == source) source->epoll->batch[i].data.ptr = NULL;
    }
    if (source->added != 0) (void)quorlock_epoll_control(source, EPOLL_CTL_DEL, 0);
    if (source->ready == NULL) close(source->fd);
    free(source);
}

static inline struct quorlock_epoll_source *quorlock_epoll_source_new(void *epoll, int fd, void *of)
{
    struct quorlock_epoll_source *source = NULL;

    if (fd >= 0) source = QUORLOCK_CAST(struct quorlock_epoll_source *, calloc(1, sizeof(*source)));
    if (source == NULL) return NULL;
    source->epoll = QUORLOCK_CAST(struct quorlock_epoll *, epoll);
    source->fd = fd;
    source->of = of;
    return source;
}

static inline void *quorlock_epoll_watch_new(void *epoll, int fd, void (*ready)(void *, unsigned), void *of)
{
    struct quorlock_epoll_source *source = quorlock_epoll_source_new(epoll, fd, of);

    if (source != NULL) source->ready = ready;
    return source;
}

static inline int quorlock_epoll_watch_set(void *watch, unsigned events)
{
    struct quorlock_epoll_source *source = QUORLOCK_CAST(struct quorlock_epoll_source *, watch);
    uint32_t wanted = 0;

    if ((events & QUORLOCK_LOOP_READ) != 0) wanted |= EPOLLIN;
    if ((events & QUORLOCK_LOOP_WRITE) != 0) wanted |= EPOLLOUT;
    if (wanted == source->wanted) return 0;
    if (wanted == 0) return quorlock_epoll_control(source, EPOLL_CTL_DEL, 0);
    return quorlock_epoll_control(source, source->added != 0 ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, wanted);
}

/* A descriptor of ours; closes it where that fails. */
static inline void *quorlock_epoll_own(void *epoll, int fd, void (*fire)(void *), void *of, int is_timer)
{
    struct quorlock_epoll_source *source = quorlock_epoll_source_new(epoll, fd, of);

    if (source == NULL) {
        if (fd >= 0) close(fd);
        return NULL;
    }
    source->fire = fire;
    source->is_timer = is_timer;
    if (quorlock_epoll_control(source, EPOLL_CTL_ADD, is_timer != 0 ? QUORLOCK_CAST(uint32_t, EPOLLIN) : 0) == 0)
        return source;
    quorlock_epoll_free(source);
    return NULL;
}

static inline void *quorlock_epoll_timer_new(void *epoll, void (*fire)(void *), void *of)
{
    return quorlock_epoll_own(epoll, timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC), fire, of, 1);
}

static inline int quorlock_epoll_timer_set(void *timer, uint64_t after_us)
{
    struct itimerspec when;

    memset(&when, 0, sizeof(when));
    when.it_value.tv_sec = QUORLOCK_CAST(time_t, after_us / 1000000u);
    /* Zero would disarm it. */
    when.it_value.tv_nsec = after_us > 0 ? QUORLOCK_CAST(long, after_us % 1000000u) * 1000 : 1;
    return timerfd_settime(QUORLOCK_CAST(struct quorlock_epoll_source *, timer)->fd, 0, &when, NULL);
}

static inline void quorlock_epoll_timer_stop(void *timer)
{
    struct itimerspec never;

    memset(&never, 0, sizeof(never));
    (void)timerfd_settime(QUORLOCK_CAST(struct quorlock_epoll_source *, timer)->fd, 0, &never, NULL);
}

static inline void *quorlock_epoll_task_new(void *epoll, void (*run)(void *), void *of)
{
    return quorlock_epoll_own(epoll, eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC), run, of, 0);
}

static inline void quorlock_epoll_task_run(void *task)
{
    struct quorlock_epoll_source *source = QUORLOCK_CAST(struct quorlock_epoll_source *, task);

    if (source->wanted == 0) (void)quorlock_epoll_control(source, EPOLL_CTL_MOD, EPOLLIN);
}

static inline void quorlock_epoll_task_stop(void *task)
{
    struct quorlock_epoll_source *source = QUORLOCK_CAST(struct quorlock_epoll_source *, task);

    if (source->wanted != 0) (void)quorlock_epoll_control(source, EPOLL_CTL_MOD, 0);
}

static inline struct quorlock_loop quorlock_loop_epoll(struct quorlock_epoll *epoll)
{
    struct quorlock_loop loop = {sizeof(loop),
                                 epoll,
                                 quorlock_epoll_watch_new,
                                 quorlock_epoll_watch_set,
                                 quorlock_epoll_free,
                                 quorlock_epoll_timer_new,
                                 quorlock_epoll_timer_set,
                                 quorlock_epoll_timer_stop,
                                 quorlock_epoll_free,
                                 quorlock_epoll_task_new,
                                 quorlock_epoll_task_run,
                                 quorlock_epoll_task_stop,
                                 quorlock_epoll_free};

    return loop;
}

#undef QUORLOCK_CAST

#endif
