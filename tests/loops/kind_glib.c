/* SPDX-License-Identifier: BSD-3-Clause */
#include <quorlock/adapters/glib.h>

#include "kind.h"
#include "test.h"

static GMainContext *context;

static void open_loop(void)
{
    context = g_main_context_new();
}

static struct quorlock_loop table(void)
{
    return quorlock_loop_glib(context);
}

static void turn(void)
{
    g_main_context_iteration(context, TRUE);
}

static void close_loop(void)
{
    g_main_context_unref(context);
}

const struct loop_kind loop_kind = {open_loop, table, turn, close_loop};
