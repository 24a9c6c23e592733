/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * on_libuv.c - a daemon on libuv that works for a while under a lock
 *
 * usage: on_libuv WORK_MS NODE...
 */
#include <quorlock/adapters/libuv.h>

#include "example.h"
#include "keeper.h"

static uv_timer_t work;
static uint64_t work_ms;

static void on_worked(uv_timer_t *timer)
{
    keeper_end(timer->data);
}

static void on_held(void *arg)
{
    (void)arg;
    uv_timer_start(&work, on_worked, work_ms, 0);
}

/* When its handles are closed, too, the loop ends by itself. */
static void on_ended(void *arg)
{
    (void)arg;
    uv_close((uv_handle_t *)&work, NULL);
}

int main(int argc, char **argv)
{
    struct keeper keeper = {.held = on_held, .ended = on_ended};
    const struct quorlock_loop loop = quorlock_loop_libuv(uv_default_loop());

    if (argc < 3) die("usage: on_libuv WORK_MS NODE...");
    work_ms = strtoul(argv[1], NULL, 10);
    uv_timer_init(uv_default_loop(), &work);
    work.data = &keeper;
    keeper_begin(&keeper, &loop, (const char *const *)argv + 2, (size_t)(argc - 2));
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    return uv_loop_close(uv_default_loop()) == 0 ? 0 : 1;
}
