/* SPDX-License-Identifier: BSD-3-Clause */
/* guard_sets.h - compare the guards of all nodes: are the nodes new, or did one lose its data? */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "redis/dialect/guard_text.h"

/* All zero: no node was added yet. */
struct guard_sets {
    bool unknown, older, any;
    uint64_t least_ms, most_ms;
};

/* guard_sets_add - add one node. left_ms: if its guard is of a first contact (FIRST), the rest of that quarantine; if
 * it has no guard, a whole quarantine and 1 ms. */
void guard_sets_add(struct guard_sets *, enum guard_set, uint64_t left_ms);
/* guard_sets_judge - return the verdict over all nodes. max_lease_ms: that of the guards. */
enum guard_set guard_sets_judge(const struct guard_sets *, uint32_t max_lease_ms);
