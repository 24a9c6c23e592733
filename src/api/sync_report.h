/* SPDX-License-Identifier: BSD-3-Clause */
/* sync_report.h - copies of reports, which the thread that asked for them reads while the loop goes on */
#pragma once

#include <quorlock/quorlock.h>

#include <stdbool.h>

struct sync_chunk;

/* Begins with zeros. */
struct sync_reports {
    struct sync_chunk *chunks;
    struct sync_part *first, *last; /* in the chunks */
    bool no_memory;
};

/*
 * sync_reports_keep         - copy a report
 * sync_reports_keep_listing - copy a part of a list
 *
 * If memory is out, they note that.
 */
void sync_reports_keep(struct sync_reports *, int status, const struct quorlock_report *);
void sync_reports_keep_listing(struct sync_reports *, int status, const struct quorlock_listing *);
/* sync_reports_tell - call `report` or `list` with each copy, in order, and free all. If memory was out, return
 * NOMEM without a call; else return status. */
int sync_reports_tell(struct sync_reports *, int status, quorlock_report_cb report, quorlock_list_cb list, void *arg);
