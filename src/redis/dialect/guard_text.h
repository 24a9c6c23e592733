/* SPDX-License-Identifier: BSD-3-Clause */
/* guard_text.h - the value of the guard key, as scripts/parts/guard_text.lua has it, and why it quarantines its node */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/protocol.h"

#define GUARD_ID_SIZE  64
#define GUARD_SET_SIZE 128

struct guard_text {
    uint32_t n_nodes, max_lease_ms;
    uint32_t longest_ms; /* the longest max_lease that the quarantine until till_ms is for */
    char set[GUARD_SET_SIZE], run_id[GUARD_ID_SIZE], replid[GUARD_ID_SIZE];
    bool declared;
    enum quarantine_cause cause; /* of the quarantine until till_ms */
    uint32_t wanted_ms;          /* the max_lease of a client that was refused, and when its last lease has ended */
    uint64_t till_ms, made_ms, wanted_till_ms;
};

/* What is known of the guards of all nodes. A node without guard is new only where none of the others has let clients
 * vote; else it is one that was emptied. So it is where they came one after the other: a lock may have been held on
 * those that were not empty yet. */
enum guard_set {
    GUARD_SET_UNKNOWN,
    GUARD_SET_FIRST, /* no node has a guard, but of one first contact that lasts yet */
    GUARD_SET_OLDER, /* one has, or they are of several */
};

/* guard_text_read - false: no guard of format 1 or 2. */
bool guard_text_read(const char *text, size_t length, struct guard_text *ret);
/* guard_text_number - decimal digits and nothing else. */
bool guard_text_number(const char *text, uint64_t *ret);
/* guard_text_end_ms - when the last of its quarantines ends. guard_text_cause: why that one. */
uint64_t guard_text_end_ms(const struct guard_text *);
enum quarantine_cause guard_text_cause(const struct guard_text *);
/* guard_text_first_ms - what is left of the quarantine of a first contact, which has let no client vote yet; 0: none.
 */
uint64_t guard_text_first_ms(const struct guard_text *, uint64_t now_ms);
/* quarantine_cause_read - a cause as scripts name it, and of QUARANTINE_CLIENT the max_lease behind its colon. */
enum quarantine_cause quarantine_cause_read(const char *text, size_t length, uint32_t *ret_wanted_ms);
/* quarantine_describe - why, until when where that is told (0: it is not), and what ends it. */
void quarantine_describe(char *ret, size_t size, enum quarantine_cause, uint32_t wanted_ms, uint64_t until_ms,
                         enum guard_set);
/* guard_length - milliseconds as the command writes a duration: 5m, 90s, 1500ms. */
const char *guard_length(char *ret, size_t size, uint64_t ms);
