/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics.h - the client's metrics in a file, for the textfile collector of Prometheus' node_exporter
 *
 * Each time the file is made anew beside the old one, and renamed, so that no reader sees half of it.
 */
#pragma once

#include <quorlock/quorlock.h>

#include <stdbool.h>

struct event;
struct event_base;

struct metrics {
    quorlock_client *client;
    const char *path; /* NULL: no file is wanted */
    char *label;      /* of all samples: the name of the file, by which those of several files differ */
    struct event *timer;
    bool failed; /* the latest time, and it was said */
};

/* metrics_start - writes the file now and then every few seconds; path NULL: does nothing. 0, or the exit status after
 * saying why not. */
int metrics_start(struct metrics *metrics, struct event_base *base, quorlock_client *client, const char *path);
/* metrics_end - writes it for the last time. Fine in any state. */
void metrics_end(struct metrics *metrics);
