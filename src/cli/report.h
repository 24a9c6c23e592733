/* SPDX-License-Identifier: BSD-3-Clause */
/* report.h - what nodes answered: owners, votes and reports, for people and as JSON */
#pragma once

#include <quorlock/quorlock.h>

#include "text.h"

enum report_kind { REPORT_INSPECT, REPORT_BREAK, REPORT_BOOTSTRAP };

/* report_summary - the line that says whether the key is held, and by which owner, in that dialect. */
void report_summary(struct text *text, const char *key, const struct quorlock_report *report, int dialect);
/* report_status - for inspect --quiet: EXIT_OK the key is held, or taken by several; EXIT_HELD, 1, it is free;
 * else why it cannot tell. */
int report_status(const struct quorlock_report *report);
/* report_table - a line for each node; the columns depend on the kind, and on what is known. */
void report_table(struct text *text, const struct quorlock_report *report, enum report_kind kind);
/* report_json - one line; its fields are described in quorlock(1). */
void report_json(struct text *text, const char *key, const struct quorlock_report *report, enum report_kind kind);

/* report_votes - says how each node voted and why, in a line for each, or for those with the same long reason. */
void report_votes(const struct quorlock_vote *const *votes, size_t n_votes);
/* report_reason - adds why a node is down; the first words suffice for a reason that was given in full before. */
void report_reason(struct text *line, const char *reason);
/* report_held - say who holds the lock, in the library's words, and what helps. */
void report_held(const struct quorlock_result *result);
/* report_gone - after a release: on how many nodes our key is certainly not. */
size_t report_gone(const struct quorlock_result *result);
