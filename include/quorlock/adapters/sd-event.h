/* SPDX-License-Identifier: BSD-3-Clause */
/* sd-event.h - a client on sd-event of libsystemd, 243 or later: quorlock_loop_sd_event(event) */
#ifndef QUORLOCK_ADAPTERS_SD_EVENT_H
#define QUORLOCK_ADAPTERS_SD_EVENT_H

#include <quorlock/adapters/cast.h>
#include <quorlock/loop.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>
#include <time.h>

struct quorlock_sd_source {
    sd_event_source *event;
    unsigned wanted; /* of a watch; of a task: 1 when it is to run */
    void (*ready)(void *of, unsigned events);
    void (*fire)(void *of);
    void *of;
};

static inline void quorlock_sd_free(void *arg)
{
    struct quorlock_sd_source *source = QUORLOCK_CAST(struct quorlock_sd_source *, arg);

    sd_event_source_disable_unref(source->event);
    free(source);
}

/* made: what sd_event_add_... returned. Its source begins disabled. */
static inline void *quorlock_sd_made(struct quorlock_sd_source *source, int made)
{
    if (made >= 0 && sd_event_source_set_enabled(source->event, SD_EVENT_OFF) >= 0) return source;
    quorlock_sd_free(source);
    return NULL;
}

static inline struct quorlock_sd_source *quorlock_sd_source_new(void (*ready)(void *, unsigned), void (*fire)(void *),
                                                                void *of)
{
    struct quorlock_sd_source *source = QUORLOCK_CAST(struct quorlock_sd_source *, calloc(1, sizeof(*source)));

    if (source == NULL) return NULL;
    source->ready = ready;
    source->fire = fire;
    source->of = of;
    return source;
}

static inline int quorlock_sd_on_io(sd_event_source *event, int fd, uint32_t revents, void *arg)
{
    struct quorlock_sd_source *source = QUORLOCK_CAST(struct quorlock_sd_source *, arg);
    unsigned ready = 0;

    (void)event;
    (void)fd;
    if ((revents & EPOLLIN) != 0) ready |= QUORLOCK_LOOP_READ;
    if ((revents & EPOLLOUT) != 0) ready |= QUORLOCK_LOOP_WRITE;
    if ((revents & (EPOLLERR | EPOLLHUP)) != 0) ready = source->wanted;
    ready &= source->wanted;
    if (ready != 0) source->ready(source->of, ready);
    return 0;
}

static inline void *quorlock_sd_watch_new(void *loop, int fd, void (*ready)(void *, unsigned), void *of)
{
    struct quorlock_sd_source *source = quorlock_sd_source_new(ready, NULL, of);

    if (source == NULL) return NULL;
    return quorlock_sd_made(
        source, sd_event_add_io(QUORLOCK_CAST(sd_event *, loop), &source->event, fd, 0, quorlock_sd_on_io, source));
}

static inline int quorlock_sd_watch_set(void *watch, unsigned events)
{
    struct quorlock_sd_source *source = QUORLOCK_CAST(struct quorlock_sd_source *, watch);
    uint32_t wanted = 0;

    source->wanted = events;
    if ((events & QUORLOCK_LOOP_READ) != 0) wanted |= EPOLLIN;
    if ((events & QUORLOCK_LOOP_WRITE) != 0) wanted |= EPOLLOUT;
    if (sd_event_source_set_io_events(source->event, wanted) < 0) return -1;
    return sd_event_source_set_enabled(source->event, events == 0 ? SD_EVENT_OFF : SD_EVENT_ON) < 0 ? -1 : 0;
}

static inline int quorlock_sd_on_time(sd_event_source *event, uint64_t at_us, void *arg)
{
    struct quorlock_sd_source *source = QUORLOCK_CAST(struct quorlock_sd_source *, arg);

    (void)event;
    (void)at_us;
    source->wanted = 0;
    source->fire(source->of);
    return 0;
}

/* Without an accuracy sd-event may be a quarter of a second late. */
static inline void *quorlock_sd_timer_new(void *loop, void (*fire)(void *), void *of)
{
    struct quorlock_sd_source *source = quorlock_sd_source_new(NULL, fire, of);

    if (source == NULL) return NULL;
    return quorlock_sd_made(source, sd_event_add_time(QUORLOCK_CAST(sd_event *, loop), &source->event, CLOCK_BOOTTIME,
                                                      UINT64_MAX, 1, quorlock_sd_on_time, source));
}

/* From now, and not from when the loop last looked at the clock. */
static inline int quorlock_sd_timer_set(void *timer, uint64_t after_us)
{
    struct quorlock_sd_source *source = QUORLOCK_CAST(struct quorlock_sd_source *, timer);
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    after_us += QUORLOCK_CAST(uint64_t, now.tv_sec) * 1000000u + QUORLOCK_CAST(uint64_t, now.tv_nsec) / 1000u;
    if (sd_event_source_set_time(source->event, after_us) < 0) return -1;
    return sd_event_source_set_enabled(source->event, SD_EVENT_ONESHOT) < 0 ? -1 : 0;
}

static inline void quorlock_sd_stop(void *arg)
{
    struct quorlock_sd_source *source = QUORLOCK_CAST(struct quorlock_sd_source *, arg);

    source->wanted = 0;
    (void)sd_event_source_set_enabled(source->event, SD_EVENT_OFF);
}

/* A task is a timer that is due: a deferred source would come before whatever else is ready. */
static inline void quorlock_sd_task_run(void *task)
{
    struct quorlock_sd_source *source = QUORLOCK_CAST(struct quorlock_sd_source *, task);

    if (source->wanted != 0) return;
    source->wanted = 1;
    (void)sd_event_source_set_time(source->event, 0);
    (void)sd_event_source_set_enabled(source->event, SD_EVENT_ONESHOT);
}

static inline struct quorlock_loop quorlock_loop_sd_event(sd_event *event)
{
    struct quorlock_loop loop = {sizeof(loop),          event,
                                 quorlock_sd_watch_new, quorlock_sd_watch_set,
                                 quorlock_sd_free,      quorlock_sd_timer_new,
                                 quorlock_sd_timer_set, quorlock_sd_stop,
                                 quorlock_sd_free,      quorlock_sd_timer_new,
                                 quorlock_sd_task_run,  quorlock_sd_stop,
                                 quorlock_sd_free};

    return loop;
}

#undef QUORLOCK_CAST

#endif
