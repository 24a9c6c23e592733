/* SPDX-License-Identifier: BSD-3-Clause */
/* watch_show.h - what quorlock watch shows: an event as a line or as JSON, and the table */
#pragma once

#include <time.h>

#include "text.h"
#include "watch_state.h"

/* The present time by either clock. */
struct watch_time {
    uint64_t now_us;        /* by that of the state */
    struct timespec of_day; /* by the wall */
};

enum { WATCH_LINES_KEPT = 64 };

struct watch_look {
    size_t rows, columns; /* of the terminal; rows 0: there is no end */
    bool colors, bars;
    bool live; /* it is drawn over the last one */
    uint32_t interval_ms;
    const struct text *lines; /* the latest events, the newest first */
    size_t n_lines;
};

/* watch_line - an event in words, without the end of the line. watch_json: one line; its fields are described in
 * quorlock(1). */
void watch_line(struct text *text, const struct watch_state *state, const struct watch_event *event,
                const struct watch_time *time);
void watch_json(struct text *text, const struct watch_state *state, const struct watch_event *event,
                const struct watch_time *time);
/* watch_table - every key with a line for each node, and below it, as far as there is room, the latest events. */
void watch_table(struct text *text, const struct watch_state *state, const struct watch_look *look,
                 const struct watch_time *time);
