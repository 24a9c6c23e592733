/* SPDX-License-Identifier: BSD-3-Clause */
#include <quorlock/adapters/libuv.h>

#include "kind.h"
#include "test.h"

static uv_loop_t loop;

static void open_loop(void)
{
    assert_int_equal(uv_loop_init(&loop), 0);
}

static struct quorlock_loop table(void)
{
    return quorlock_loop_libuv(&loop);
}

static void turn(void)
{
    uv_run(&loop, UV_RUN_ONCE);
}

static void close_loop(void)
{
    /* Handles that are closing end. */
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

const struct loop_kind loop_kind = {open_loop, table, turn, close_loop};
