/* SPDX-License-Identifier: BSD-3-Clause */
/* report.h - the nodes' answers for people and as JSON: owners, votes and reports */
#pragma once

#include <quorlock/quorlock.h>

#include "settings/text.h"
#include "shown.h"

struct settings;

enum report_kind { REPORT_INSPECT, REPORT_BREAK, REPORT_BOOTSTRAP };

/* report_summary - add a line that tells whether the key is held in that dialect, and by which owner. */
void report_summary(struct text *text, const char *key, const struct shown *report, int dialect);
/* report_status - return the exit status of inspect --quiet where a quorum answered: EXIT_OK (held, or taken by several
 * owners), EXIT_HELD (free), or EXIT_CONFIG (a foreign value). */
int report_status(const struct shown *report);
/* report_table - add a line for each node; the columns depend on the kind and on the answers. */
void report_table(struct text *text, const struct shown *report, enum report_kind kind);
/* report_json - add a line of JSON; quorlock(1) describes its fields. */
void report_json(struct text *text, const char *key, const struct shown *report, enum report_kind kind);

/* report_votes - print the vote of each node and its reason, a line for each; nodes with the same long reason share a
 * line. */
void report_votes(const struct quorlock_vote *const *votes, size_t n_votes);
/* report_reason - add why a node is down; only the first words of a reason that was printed before. */
void report_reason(struct text *line, const char *reason);
/* report_held - print who holds the lock, in the library's words, and what helps. */
void report_held(const struct settings *settings, const struct quorlock_result *result);
/* report_quorum - return how many of the nodes are a quorum. */
size_t report_quorum(const struct settings *settings, size_t n_nodes);
/* report_is_held - return whether an acquire failed because others hold the lock, and not for a lack of votes. */
bool report_is_held(const struct settings *settings, const struct quorlock_result *result);
/* report_released - print where a release did not arrive; if all is well only with -v. */
void report_released(const struct settings *settings, const char *name, const struct quorlock_result *result);
