/* SPDX-License-Identifier: BSD-3-Clause */
/* glib.h - a client on GLib, 2.36 or later: quorlock_loop_glib(context); NULL is the default context */
#ifndef QUORLOCK_ADAPTERS_GLIB_H
#define QUORLOCK_ADAPTERS_GLIB_H

#include <glib.h>
#include <quorlock/adapters/cast.h>
#include <quorlock/loop.h>

struct quorlock_glib_source {
    GSource source;
    int fd;
    gpointer tag; /* of the descriptor, while something is wanted of it */
    unsigned wanted;
    void (*ready)(void *of, unsigned events);
    void (*fire)(void *of);
    void *of;
};

static inline gboolean quorlock_glib_dispatch(GSource *arg, GSourceFunc function, gpointer data)
{
    void *self = arg;
    struct quorlock_glib_source *source = QUORLOCK_CAST(struct quorlock_glib_source *, self);
    unsigned ready = 0;
    gint64 at_us;
    int there;

    (void)function;
    (void)data;
    if (source->ready == NULL) {
        at_us = g_source_get_ready_time(arg);
        /* GLib still dispatches what was ready, although it was stopped or moved since. */
        if (at_us < 0 || at_us > g_get_monotonic_time()) return G_SOURCE_CONTINUE;
        g_source_set_ready_time(arg, -1);
        source->fire(source->of);
    } else if (source->tag != NULL) {
        there = QUORLOCK_CAST(int, g_source_query_unix_fd(arg, source->tag));
        if ((there & G_IO_IN) != 0) ready |= QUORLOCK_LOOP_READ;
        if ((there & G_IO_OUT) != 0) ready |= QUORLOCK_LOOP_WRITE;
        if ((there & (G_IO_ERR | G_IO_HUP | G_IO_NVAL)) != 0) ready = source->wanted;
        ready &= source->wanted;
        if (ready != 0) source->ready(source->of, ready);
    }
    return G_SOURCE_CONTINUE;
}

static inline struct quorlock_glib_source *quorlock_glib_source_new(void *context, void (*ready)(void *, unsigned),
                                                                    void (*fire)(void *), void *of)
{
    static GSourceFuncs functions = {NULL, NULL, quorlock_glib_dispatch, NULL, NULL, NULL};
    GSource *made = g_source_new(&functions, sizeof(struct quorlock_glib_source));
    void *self = made;
    struct quorlock_glib_source *source = QUORLOCK_CAST(struct quorlock_glib_source *, self);

    source->ready = ready;
    source->fire = fire;
    source->of = of;
    /* A callback may run the main loop. */
    g_source_set_can_recurse(made, TRUE);
    g_source_attach(made, QUORLOCK_CAST(GMainContext *, context));
    return source;
}

static inline void quorlock_glib_free(void *source)
{
    g_source_destroy(QUORLOCK_CAST(GSource *, source));
    g_source_unref(QUORLOCK_CAST(GSource *, source));
}

static inline void *quorlock_glib_watch_new(void *context, int fd, void (*ready)(void *, unsigned), void *of)
{
    struct quorlock_glib_source *source = quorlock_glib_source_new(context, ready, NULL, of);

    source->fd = fd;
    return source;
}

/* A descriptor of which nothing is wanted is taken out: it would still tell of a hang-up, again and again. */
static inline int quorlock_glib_watch_set(void *watch, unsigned events)
{
    struct quorlock_glib_source *source = QUORLOCK_CAST(struct quorlock_glib_source *, watch);
    unsigned wanted = 0;

    source->wanted = events;
    if ((events & QUORLOCK_LOOP_READ) != 0) wanted |= QUORLOCK_CAST(unsigned, G_IO_IN);
    if ((events & QUORLOCK_LOOP_WRITE) != 0) wanted |= QUORLOCK_CAST(unsigned, G_IO_OUT);
    if (source->tag != NULL && events == 0) {
        g_source_remove_unix_fd(&source->source, source->tag);
        source->tag = NULL;
    } else if (source->tag != NULL) {
        g_source_modify_unix_fd(&source->source, source->tag, QUORLOCK_CAST(GIOCondition, wanted));
    } else if (events != 0) {
        source->tag = g_source_add_unix_fd(&source->source, source->fd, QUORLOCK_CAST(GIOCondition, wanted));
    }
    return 0;
}

static inline void *quorlock_glib_new(void *context, void (*fire)(void *), void *of)
{
    return quorlock_glib_source_new(context, NULL, fire, of);
}

static inline int quorlock_glib_timer_set(void *timer, uint64_t after_us)
{
    g_source_set_ready_time(QUORLOCK_CAST(GSource *, timer), g_get_monotonic_time() + QUORLOCK_CAST(gint64, after_us));
    return 0;
}

static inline void quorlock_glib_stop(void *source)
{
    g_source_set_ready_time(QUORLOCK_CAST(GSource *, source), -1);
}

static inline void quorlock_glib_task_run(void *task)
{
    g_source_set_ready_time(QUORLOCK_CAST(GSource *, task), 0);
}

static inline struct quorlock_loop quorlock_loop_glib(GMainContext *context)
{
    struct quorlock_loop loop = {
        sizeof(loop),       context,           quorlock_glib_watch_new, quorlock_glib_watch_set,
        quorlock_glib_free, quorlock_glib_new, quorlock_glib_timer_set, quorlock_glib_stop,
        quorlock_glib_free, quorlock_glib_new, quorlock_glib_task_run,  quorlock_glib_stop,
        quorlock_glib_free};

    return loop;
}

#undef QUORLOCK_CAST

#endif
