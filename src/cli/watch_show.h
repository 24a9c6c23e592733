/* SPDX-License-Identifier: BSD-3-Clause */
/* watch_show.h - the output of quorlock watch: an event as a line or as JSON, and the table */
#pragma once

#include <time.h>

#include "settings/text.h"
#include "watch_state.h"

/* The present time by two clocks. */
struct watch_time {
    uint64_t now_us;        /* by the clock of the state */
    struct timespec of_day; /* by the wall clock */
};

enum { WATCH_LINES_KEPT = 64 };

struct watch_look {
    size_t rows, columns; /* of the terminal; rows 0: no limit */
    bool colors, bars;
    bool live; /* it is drawn over the previous picture */
    uint32_t interval_ms;
    const struct text *lines; /* the latest events, newest first */
    size_t n_lines;
};

/*
 * watch_line - add an event in words, without the end of the line
 * watch_json - add an event as a line of JSON; quorlock(1) describes its fields
 */
void watch_line(struct text *text, const struct watch_state *state, const struct watch_event *event,
                const struct watch_time *time);
void watch_json(struct text *text, const struct watch_state *state, const struct watch_event *event,
                const struct watch_time *time);
/* watch_table - add each key with a line for each node, and below it the latest events, if there is room. */
void watch_table(struct text *text, const struct watch_state *state, const struct watch_look *look,
                 const struct watch_time *time);
