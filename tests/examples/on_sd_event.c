/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * on_sd_event.c - a daemon on sd-event that works for a while under a lock
 *
 * usage: on_sd_event WORK_MS NODE...
 */
#include <quorlock/adapters/sd-event.h>

#include "example.h"
#include "keeper.h"

static sd_event *event;
static uint64_t work_us;

static int on_worked(sd_event_source *source, uint64_t at_us, void *keeper)
{
    (void)source;
    (void)at_us;
    keeper_end(keeper);
    return 0;
}

static void on_held(void *keeper)
{
    int status = sd_event_add_time_relative(event, NULL, CLOCK_BOOTTIME, work_us, 0, on_worked, keeper);

    if (status < 0) die("no timer: %d", status);
}

static void on_ended(void *arg)
{
    (void)arg;
    sd_event_exit(event, 0);
}

int main(int argc, char **argv)
{
    struct keeper keeper = {.held = on_held, .ended = on_ended, .arg = &keeper};
    struct quorlock_loop loop;
    int status;

    if (argc < 3) die("usage: on_sd_event WORK_MS NODE...");
    work_us = strtoul(argv[1], NULL, 10) * 1000;
    status = sd_event_default(&event);
    if (status < 0) die("no event loop: %d", status);
    loop = quorlock_loop_sd_event(event);
    keeper_begin(&keeper, &loop, (const char *const *)argv + 2, (size_t)(argc - 2));
    status = sd_event_loop(event);
    sd_event_unref(event);
    return status == 0 ? 0 : 1;
}
