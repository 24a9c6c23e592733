/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libuv.h - a client on libuv: quorlock_loop_libuv(loop)
 *
 * When the close of the client is reported its handles are closing: as with any handle, let uv_run() go on until it
 * returns before uv_loop_close().
 */
#ifndef QUORLOCK_ADAPTERS_LIBUV_H
#define QUORLOCK_ADAPTERS_LIBUV_H

#include <quorlock/adapters/cast.h>
#include <quorlock/loop.h>
#include <stdlib.h>
#include <uv.h>

struct quorlock_libuv_source {
    union {
        uv_handle_t any;
        uv_poll_t poll;
        uv_timer_t timer;
        uv_idle_t idle;
    } handle;
    unsigned wanted;
    void (*ready)(void *of, unsigned events);
    void (*fire)(void *of);
    void *of;
};

static inline struct quorlock_libuv_source *quorlock_libuv_source_new(void (*ready)(void *, unsigned),
                                                                      void (*fire)(void *), void *of)
{
    struct quorlock_libuv_source *source = QUORLOCK_CAST(struct quorlock_libuv_source *, calloc(1, sizeof(*source)));

    if (source == NULL) return NULL;
    source->ready = ready;
    source->fire = fire;
    source->of = of;
    return source;
}

static inline void quorlock_libuv_on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static inline void quorlock_libuv_free(void *arg)
{
    struct quorlock_libuv_source *source = QUORLOCK_CAST(struct quorlock_libuv_source *, arg);

    source->handle.any.data = source;
    uv_close(&source->handle.any, quorlock_libuv_on_closed);
}

static inline void quorlock_libuv_on_poll(uv_poll_t *poll, int status, int events)
{
    struct quorlock_libuv_source *source = QUORLOCK_CAST(struct quorlock_libuv_source *, poll->data);
    unsigned ready = 0;

    if ((events & UV_READABLE) != 0) ready |= QUORLOCK_LOOP_READ;
    if ((events & UV_WRITABLE) != 0) ready |= QUORLOCK_LOOP_WRITE;
    if (status < 0) {
        /* libuv stops to watch a descriptor that has an error: the library finds it out when it reads or writes. */
        (void)uv_poll_start(poll, QUORLOCK_CAST(int, source->wanted), quorlock_libuv_on_poll);
        ready = source->wanted;
    }
    ready &= source->wanted;
    if (ready != 0) source->ready(source->of, ready);
}

static inline void *quorlock_libuv_watch_new(void *loop, int fd, void (*ready)(void *, unsigned), void *of)
{
    struct quorlock_libuv_source *source = quorlock_libuv_source_new(ready, NULL, of);

    if (source == NULL) return NULL;
    if (uv_poll_init(QUORLOCK_CAST(uv_loop_t *, loop), &source->handle.poll, fd) != 0) {
        free(source);
        return NULL;
    }
    source->handle.any.data = source;
    return source;
}

/* The bits are those of libuv. What is wanted already costs no system call. */
static inline int quorlock_libuv_watch_set(void *watch, unsigned events)
{
    struct quorlock_libuv_source *source = QUORLOCK_CAST(struct quorlock_libuv_source *, watch);

    if (events == source->wanted) return 0;
    source->wanted = events;
    if (events == 0) return uv_poll_stop(&source->handle.poll);
    return uv_poll_start(&source->handle.poll, QUORLOCK_CAST(int, events), quorlock_libuv_on_poll) == 0 ? 0 : -1;
}

static inline void quorlock_libuv_on_timer(uv_timer_t *timer)
{
    struct quorlock_libuv_source *source = QUORLOCK_CAST(struct quorlock_libuv_source *, timer->data);

    source->fire(source->of);
}

static inline void *quorlock_libuv_timer_new(void *loop, void (*fire)(void *), void *of)
{
    struct quorlock_libuv_source *source = quorlock_libuv_source_new(NULL, fire, of);

    if (source == NULL) return NULL;
    (void)uv_timer_init(QUORLOCK_CAST(uv_loop_t *, loop), &source->handle.timer);
    source->handle.any.data = source;
    return source;
}

/* Without the update it counts from when the loop last looked at the clock. Some versions of libuv run a timer of 0 ms
 * that sets itself again for ever, and nothing else. */
static inline int quorlock_libuv_timer_set(void *timer, uint64_t after_us)
{
    struct quorlock_libuv_source *source = QUORLOCK_CAST(struct quorlock_libuv_source *, timer);

    uv_update_time(source->handle.any.loop);
    if (after_us == 0) after_us = 1;
    return uv_timer_start(&source->handle.timer, quorlock_libuv_on_timer, after_us / 1000 + (after_us % 1000 != 0), 0);
}

static inline void quorlock_libuv_timer_stop(void *timer)
{
    (void)uv_timer_stop(&QUORLOCK_CAST(struct quorlock_libuv_source *, timer)->handle.timer);
}

static inline void quorlock_libuv_on_idle(uv_idle_t *idle)
{
    struct quorlock_libuv_source *source = QUORLOCK_CAST(struct quorlock_libuv_source *, idle->data);

    (void)uv_idle_stop(idle);
    source->fire(source->of);
}

static inline void *quorlock_libuv_task_new(void *loop, void (*run)(void *), void *of)
{
    struct quorlock_libuv_source *source = quorlock_libuv_source_new(NULL, run, of);

    if (source == NULL) return NULL;
    (void)uv_idle_init(QUORLOCK_CAST(uv_loop_t *, loop), &source->handle.idle);
    source->handle.any.data = source;
    return source;
}

static inline void quorlock_libuv_task_run(void *task)
{
    (void)uv_idle_start(&QUORLOCK_CAST(struct quorlock_libuv_source *, task)->handle.idle, quorlock_libuv_on_idle);
}

static inline void quorlock_libuv_task_stop(void *task)
{
    (void)uv_idle_stop(&QUORLOCK_CAST(struct quorlock_libuv_source *, task)->handle.idle);
}

static inline struct quorlock_loop quorlock_loop_libuv(uv_loop_t *loop)
{
    struct quorlock_loop table = {sizeof(table),
                                  loop,
                                  quorlock_libuv_watch_new,
                                  quorlock_libuv_watch_set,
                                  quorlock_libuv_free,
                                  quorlock_libuv_timer_new,
                                  quorlock_libuv_timer_set,
                                  quorlock_libuv_timer_stop,
                                  quorlock_libuv_free,
                                  quorlock_libuv_task_new,
                                  quorlock_libuv_task_run,
                                  quorlock_libuv_task_stop,
                                  quorlock_libuv_free};

    return table;
}

#undef QUORLOCK_CAST

#endif
