/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report.h - what inspect, break and bootstrap report of the nodes, for people and as JSON
 */
#ifndef QUORLOCK_CLI_REPORT_H
#define QUORLOCK_CLI_REPORT_H

#include <quorlock/quorlock.h>

#include "text.h"

enum report_kind { REPORT_INSPECT, REPORT_BREAK, REPORT_BOOTSTRAP };

/* report_summary - the line that says whether the key is held, and by which owner, in that dialect. */
void report_summary(struct text *text, const char *key, const struct quorlock_report *report, int dialect);
/* report_table - a line for each node; the columns depend on the kind, and on what is known. */
void report_table(struct text *text, const struct quorlock_report *report, enum report_kind kind);
/* report_json - one line; its fields are described in quorlock(1). */
void report_json(struct text *text, const char *key, const struct quorlock_report *report,
                 enum report_kind kind);

#endif
