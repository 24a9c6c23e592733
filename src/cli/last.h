/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * last.h - what outlives a run in its metrics file: how and when the latest run ended, and when one last succeeded
 *
 * The counters of a client begin at 0 in each run, so an alert on them does not notice a job that fails every night.
 * These gauges are carried from the file of the run before into that of this one.
 */
#pragma once

#include <stdint.h>

#include "settings/text.h"

enum { LAST_RESULT_SIZE = 16 };

struct last {
    char result[LAST_RESULT_SIZE]; /* of the latest run that ended; "": none did */
    uint64_t status;               /* its exit status */
    uint64_t end_s, success_s;     /* the ends of that run and of the latest with result "ok", since 1970; 0: none */
};

/* last_read - read the gauges from the metrics file of the run before. A gauge that cannot be read stays unknown. */
void last_read(struct last *last, const char *path);
/* last_end - the run ends now with this status. The result is one word of small letters. */
void last_end(struct last *last, const char *result, int status);
/* last_result - return the result for a status that nothing else explains. */
const char *last_result(int status);
/* last_write - add the gauges to the client's metrics, with their label. While the run goes on, one gauge more has the
 * time of the writing. */
void last_write(const struct last *last, bool is_running, struct text *text);
