/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics.h - write the client's metrics to a file, for the textfile collector of Prometheus' node_exporter
 *
 * Each time it writes a new file beside the old one, and renames it, so that no reader sees half of it.
 */
#pragma once

#include <quorlock/quorlock.h>

#include <stdbool.h>

#include "last.h"

struct event;
struct event_base;

struct metrics {
    quorlock_client *client;
    const char *path; /* NULL: no file */
    char *label;      /* the name of the file, on each sample, because samples of several files must differ */
    struct event *timer;
    struct last last; /* what outlives a run */
    bool is_running;
    bool failed; /* the latest write failed, and that was printed */
};

/* metrics_start - write the file now and every few seconds: 0, or the exit status after a message. path NULL: do
 * nothing. */
int metrics_start(struct metrics *metrics, struct event_base *base, quorlock_client *client, const char *path);
/* metrics_end - write the file for the last time, with the exit status of the run and its result: see last.h. It may be
 * called in any state. */
void metrics_end(struct metrics *metrics, const char *result, int status);
