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
 * sync_reports_keep_inspect, _break, _list, _bootstrap, _doctor - copy such a report; of a list, a part
 *
 * If memory is out, they note that.
 */
void sync_reports_keep_inspect(struct sync_reports *, int status, const struct quorlock_inspect_report *);
void sync_reports_keep_break(struct sync_reports *, int status, const struct quorlock_break_report *);
void sync_reports_keep_list(struct sync_reports *, int status, const struct quorlock_list_report *);
void sync_reports_keep_bootstrap(struct sync_reports *, int status, const struct quorlock_bootstrap_report *);
void sync_reports_keep_doctor(struct sync_reports *, int status, const struct quorlock_doctor_report *);

/* Who is told of the copies: the callback of that kind is there. */
struct sync_listener {
    quorlock_inspect_cb inspect;
    quorlock_break_cb broken;
    quorlock_list_cb list;
    quorlock_bootstrap_cb bootstrap;
    quorlock_doctor_cb doctor;
    void *arg;
};

/* sync_reports_tell - call the listener with each copy, in order, and free all. If memory was out, return NOMEM without
 * a call; else return status. */
int sync_reports_tell(struct sync_reports *, int status, const struct sync_listener *);
