/* SPDX-License-Identifier: BSD-3-Clause */
/* guard_sets.h - the guards of all nodes together: are the nodes new, or was one of them emptied? */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "redis/dialect/guard_text.h"

/* All zero: none was looked at yet. */
struct guard_sets {
    bool unknown, older, any;
    uint64_t least_ms, most_ms;
};

/* guard_sets_add - one node. left_ms: what is left of the quarantine of its first contact, where FIRST; a whole one and
 * 1 ms where it has no guard. */
void guard_sets_add(struct guard_sets *, enum guard_set, uint64_t left_ms);
/* guard_sets_judge - what all of them say. max_lease_ms: that of the guards. */
enum guard_set guard_sets_judge(const struct guard_sets *, uint32_t max_lease_ms);
