/* SPDX-License-Identifier: BSD-3-Clause */
/* blocking_report.h - copies of reports, which the thread that asked for them reads while the loop goes on */
#pragma once

#include <quorlock/quorlock.h>

#include <stdbool.h>

struct blocking_chunk;

/* Begins with zeros. */
struct blocking_reports {
    struct blocking_chunk *chunks;
    struct blocking_part *first, *last; /* in the chunks */
    bool no_memory;
};

/*
 * blocking_reports_keep         - copy a report
 * blocking_reports_keep_listing - copy a part of a list
 *
 * If memory is out, they note that.
 */
void blocking_reports_keep(struct blocking_reports *, int status, const struct quorlock_report *);
void blocking_reports_keep_listing(struct blocking_reports *, int status, const struct quorlock_listing *);
/* blocking_reports_tell - call `report` or `list` with each copy, in order, and free all. If memory was out, return
 * NOMEM without a call; else return status. */
int blocking_reports_tell(struct blocking_reports *, int status, quorlock_report_cb report, quorlock_list_cb list,
                          void *arg);
