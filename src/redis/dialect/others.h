/* SPDX-License-Identifier: BSD-3-Clause */
/* others.h - who has a part in a name beside the holder of its key, as peek and break list them */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a line of the list is about; the letters are those of the scripts. */
enum other_kind {
    OTHER_PERMITS = 'p', /* the name has `number` permits */
    OTHER_SLOT = 's',    /* slot `number` is held */
    OTHER_READER = 'r',
    OTHER_WRITER_WAITS = 'w',
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

/* others_next - the next line of *at, which moves behind it. False: there is no more, or, where *at has not reached
 * `end`, no line. */
bool others_next(const char **at, const char *end, struct other *ret);
/* others_fit - whether it is such a list, also an empty one. */
bool others_fit(const char *text, size_t length);
