/* SPDX-License-Identifier: BSD-3-Clause */
/* libevent.h - a client on libevent 2.1: quorlock_loop_libevent(base). quorlock_client_new() does the same. */
#ifndef QUORLOCK_ADAPTERS_LIBEVENT_H
#define QUORLOCK_ADAPTERS_LIBEVENT_H

#include <event2/event.h>
#include <quorlock/adapters/cast.h>
#include <quorlock/loop.h>
#include <stdlib.h>

/* A watch has two events, so that to want what is wanted already costs no system call; others have the first. */
struct quorlock_libevent_source {
    struct event *event, *writer;
    void (*ready)(void *of, unsigned events);
    void (*fire)(void *of);
    void *of;
};

static inline void quorlock_libevent_on_ready(evutil_socket_t fd, short what, void *arg)
{
    struct quorlock_libevent_source *source = QUORLOCK_CAST(struct quorlock_libevent_source *, arg);

    (void)fd;
    source->ready(source->of, what == EV_READ ? QUORLOCK_LOOP_READ : QUORLOCK_LOOP_WRITE);
}

static inline void quorlock_libevent_on_fire(evutil_socket_t fd, short what, void *arg)
{
    struct quorlock_libevent_source *source = QUORLOCK_CAST(struct quorlock_libevent_source *, arg);

    (void)fd;
    (void)what;
    source->fire(source->of);
}

static inline void quorlock_libevent_free(void *arg)
{
    struct quorlock_libevent_source *source = QUORLOCK_CAST(struct quorlock_libevent_source *, arg);

    if (source->event != NULL) event_free(source->event);
    if (source->writer != NULL) event_free(source->writer);
    free(source);
}

static inline void *quorlock_libevent_watch_new(void *base, int fd, void (*ready)(void *, unsigned), void *of)
{
    struct quorlock_libevent_source *source =
        QUORLOCK_CAST(struct quorlock_libevent_source *, calloc(1, sizeof(*source)));

    if (source == NULL) return NULL;
    source->ready = ready;
    source->of = of;
    source->event = event_new(QUORLOCK_CAST(struct event_base *, base), fd, EV_READ | EV_PERSIST,
                              quorlock_libevent_on_ready, source);
    source->writer = event_new(QUORLOCK_CAST(struct event_base *, base), fd, EV_WRITE | EV_PERSIST,
                               quorlock_libevent_on_ready, source);
    if (source->event != NULL && source->writer != NULL) return source;
    quorlock_libevent_free(source);
    return NULL;
}

static inline int quorlock_libevent_watch_set(void *watch, unsigned events)
{
    struct quorlock_libevent_source *source = QUORLOCK_CAST(struct quorlock_libevent_source *, watch);

    if ((events & QUORLOCK_LOOP_READ) == 0) event_del(source->event);
    if ((events & QUORLOCK_LOOP_WRITE) == 0) event_del(source->writer);
    if ((events & QUORLOCK_LOOP_READ) != 0 && event_add(source->event, NULL) != 0) return -1;
    if ((events & QUORLOCK_LOOP_WRITE) != 0 && event_add(source->writer, NULL) != 0) return -1;
    return 0;
}

static inline void *quorlock_libevent_new(void *base, void (*fire)(void *), void *of)
{
    struct quorlock_libevent_source *source =
        QUORLOCK_CAST(struct quorlock_libevent_source *, calloc(1, sizeof(*source)));

    if (source == NULL) return NULL;
    source->fire = fire;
    source->of = of;
    source->event = event_new(QUORLOCK_CAST(struct event_base *, base), -1, 0, quorlock_libevent_on_fire, source);
    if (source->event != NULL) return source;
    free(source);
    return NULL;
}

static inline int quorlock_libevent_timer_set(void *timer, uint64_t after_us)
{
    struct timeval after;

    after.tv_sec = QUORLOCK_CAST(time_t, after_us / 1000000u);
    after.tv_usec = QUORLOCK_CAST(suseconds_t, after_us % 1000000u);
    return event_add(QUORLOCK_CAST(struct quorlock_libevent_source *, timer)->event, &after);
}

static inline void quorlock_libevent_stop(void *source)
{
    event_del(QUORLOCK_CAST(struct quorlock_libevent_source *, source)->event);
}

static inline void quorlock_libevent_task_run(void *task)
{
    event_active(QUORLOCK_CAST(struct quorlock_libevent_source *, task)->event, EV_TIMEOUT, 0);
}

static inline struct quorlock_loop quorlock_loop_libevent(struct event_base *base)
{
    struct quorlock_loop loop = {sizeof(loop),
                                 base,
                                 quorlock_libevent_watch_new,
                                 quorlock_libevent_watch_set,
                                 quorlock_libevent_free,
                                 quorlock_libevent_new,
                                 quorlock_libevent_timer_set,
                                 quorlock_libevent_stop,
                                 quorlock_libevent_free,
                                 quorlock_libevent_new,
                                 quorlock_libevent_task_run,
                                 quorlock_libevent_stop,
                                 quorlock_libevent_free};

    return loop;
}

#undef QUORLOCK_CAST

#endif
