/* SPDX-License-Identifier: BSD-3-Clause */
#include <quorlock/adapters/sd-event.h>

#include "kind.h"
#include "test.h"

static sd_event *event;

static void open_loop(void)
{
    assert_true(sd_event_new(&event) >= 0);
}

static struct quorlock_loop table(void)
{
    return quorlock_loop_sd_event(event);
}

static void turn(void)
{
    assert_true(sd_event_run(event, UINT64_MAX) >= 0);
}

static void close_loop(void)
{
    event = sd_event_unref(event);
}

const struct loop_kind loop_kind = {open_loop, table, turn, close_loop};
