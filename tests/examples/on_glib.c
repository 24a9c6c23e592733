/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * on_glib.c - a daemon on GLib that works for a while under a lock
 *
 * usage: on_glib WORK_MS NODE...
 */
#include <quorlock/adapters/glib.h>

#include "example.h"
#include "keeper.h"

static GMainLoop *main_loop;
static guint work_ms;

static gboolean on_worked(gpointer keeper)
{
    keeper_end(keeper);
    return G_SOURCE_REMOVE;
}

static void on_held(void *keeper)
{
    g_timeout_add(work_ms, on_worked, keeper);
}

static void on_ended(void *arg)
{
    (void)arg;
    g_main_loop_quit(main_loop);
}

int main(int argc, char **argv)
{
    struct keeper keeper = {.held = on_held, .ended = on_ended, .arg = &keeper};
    const struct quorlock_loop loop = quorlock_loop_glib(NULL);

    if (argc < 3) die("usage: on_glib WORK_MS NODE...");
    work_ms = (guint)strtoul(argv[1], NULL, 10);
    main_loop = g_main_loop_new(NULL, FALSE);
    keeper_begin(&keeper, &loop, (const char *const *)argv + 2, (size_t)(argc - 2));
    g_main_loop_run(main_loop);
    g_main_loop_unref(main_loop);
    return 0;
}
