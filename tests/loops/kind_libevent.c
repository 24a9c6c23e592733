/* SPDX-License-Identifier: BSD-3-Clause */
#include <quorlock/adapters/libevent.h>

#include "kind.h"
#include "test.h"

static struct event_base *base;

static void open_loop(void)
{
    base = event_base_new();
    assert_non_null(base);
}

static struct quorlock_loop table(void)
{
    return quorlock_loop_libevent(base);
}

static void turn(void)
{
    event_base_loop(base, EVLOOP_ONCE);
}

static void close_loop(void)
{
    int left = event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED | EVENT_BASE_COUNT_ACTIVE);

    event_base_free(base);
    assert_int_equal(left, 0);
}

const struct loop_kind loop_kind = {open_loop, table, turn, close_loop};
