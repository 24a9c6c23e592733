/* SPDX-License-Identifier: BSD-3-Clause */
/* guard_text.h - parse the value of the guard key (see scripts/modules/guard.lua), and describe a quarantine */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/protocol.h"

#define GUARD_ID_SIZE  64
#define GUARD_SET_SIZE 128

/* Rule 4.15. */
#define QUARANTINE_ID_CHANGES                                                                                          \
    "it took its memory from another server, or its replicas came or were away and it cannot tell (it does not count " \
    "what it takes, or CONFIG RESETSTAT reset that)"

struct guard_text {
    uint32_t n_nodes, max_lease_ms;
    uint32_t longest_ms; /* the longest max_lease that the quarantine until till_ms covers */
    char set[GUARD_SET_SIZE], run_id[GUARD_ID_SIZE], replid[GUARD_ID_SIZE];
    bool declared;
    enum quarantine_cause cause; /* why there is a quarantine until till_ms */
    uint32_t wanted_ms;          /* the max_lease of a client that was refused; its last lease ends at wanted_till_ms */
    uint64_t till_ms, made_ms, wanted_till_ms;
};

/* The state of the guards of all nodes. A node without a guard is new only if no other node has let clients take locks;
 * otherwise it lost its data. The same is assumed if the nodes had their first contacts one long after the other: a
 * lock may have been held on those that were not empty yet. */
enum guard_set {
    GUARD_SET_UNKNOWN,
    GUARD_SET_FIRST, /* no node has a guard, except from one first contact that still lasts */
    GUARD_SET_OLDER, /* a node has an older guard, or there were several first contacts */
    GUARD_SET_LOST,  /* only to describe a quarantine: this client had votes of the node */
};

/* guard_text_read - parse the text. False: it is not a guard of format 1 or 2. */
bool guard_text_read(const char *text, size_t length, struct guard_text *ret);
/* guard_text_number - parse a number of decimal digits only. */
bool guard_text_number(const char *text, uint64_t *ret);
/* guard_text_end_ms - return when the last of its quarantines ends.
 * guard_text_cause - return the cause of that one. */
uint64_t guard_text_end_ms(const struct guard_text *);
enum quarantine_cause guard_text_cause(const struct guard_text *);
/* guard_text_first_ms - return the rest of the quarantine of a first contact, during which no vote is counted; 0: none.
 */
uint64_t guard_text_first_ms(const struct guard_text *, uint64_t now_ms);
/* quarantine_cause_read - parse a cause as the scripts name it; for QUARANTINE_CLIENT also the max_lease behind its
 * colon. */
enum quarantine_cause quarantine_cause_read(const char *text, size_t length, uint32_t *ret_wanted_ms);
/* quarantine_describe - write why a node is quarantined, until when (until_ms 0: left out), and what ends it. */
void quarantine_describe(char *ret, size_t size, enum quarantine_cause, uint32_t wanted_ms, uint64_t until_ms,
                         enum guard_set);
/* guard_length - write milliseconds as the command writes durations: 5m, 90s, 1500ms. */
const char *guard_length(char *ret, size_t size, uint64_t ms);
