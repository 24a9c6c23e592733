/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * json.h - a report as JSON, one line
 */
#ifndef QUORLOCK_CLI_JSON_H
#define QUORLOCK_CLI_JSON_H

#include <quorlock/quorlock.h>

#include "text.h"

/* json_report - null stands where there is nothing to tell; a ttl_ms of -1 is a key that never expires, a
 * quarantine_ms of 0 a guard that lets the node vote.
 * `broken`: each node tells also whether its key was deleted. */
void json_report(struct text *text, const char *key, const struct quorlock_report *report, bool broken);

#endif
