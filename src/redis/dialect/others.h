/* SPDX-License-Identifier: BSD-3-Clause */
/* others.h - read the list that peek and break return: holders of slots, readers and waiting clients of a name */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kind of a line; the scripts write the letter. */
enum other_kind {
    OTHER_PERMITS = 'p', /* the name has `number` permits */
    OTHER_SLOT = 's',    /* slot `number` is held */
    OTHER_READER = 'r',
    OTHER_WRITER_WAITS = 'w', /* number: its place in the queue of a fair lock, or 0 */
    OTHER_READER_WAITS = 'q',
};

struct other {
    enum other_kind kind;
    uint32_t number;
    uint64_t fence;
    int64_t ttl_ms; /* -1: no expiry; at most NODE_MS_MAX */
    const char *holder;
    size_t holder_length;
};

/* others_next - read the line at *at and move *at behind it. False: there is no line left, or, if *at is not at `end`,
 * the line is malformed. */
bool others_next(const char **at, const char *end, struct other *ret);
/* others_fit - return whether the text is such a list; it may be empty. */
bool others_fit(const char *text, size_t length);
