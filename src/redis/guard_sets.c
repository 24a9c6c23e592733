/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/guard_sets.h"

/* The first contacts of new nodes may be this far apart, because servers and clients do not all start at once. */
#define FIRST_SPREAD_PART     4u /* as a part of the max lease */
#define FIRST_SPREAD_LEAST_MS 2000u
#define FIRST_SPREAD_MOST_MS  5000u

void guard_sets_add(struct guard_sets *sets, enum guard_set one, uint64_t left_ms)
{
    sets->unknown |= one == GUARD_SET_UNKNOWN;
    sets->older |= one == GUARD_SET_OLDER;
    if (one != GUARD_SET_FIRST) return;
    if (!sets->any || left_ms < sets->least_ms) sets->least_ms = left_ms;
    if (!sets->any || left_ms > sets->most_ms) sets->most_ms = left_ms;
    sets->any = true;
}

/* Rule 4.12. */
enum guard_set guard_sets_judge(const struct guard_sets *sets, uint32_t max_lease_ms)
{
    uint64_t spread_ms = max_lease_ms / FIRST_SPREAD_PART;

    if (spread_ms < FIRST_SPREAD_LEAST_MS) spread_ms = FIRST_SPREAD_LEAST_MS;
    if (spread_ms > FIRST_SPREAD_MOST_MS) spread_ms = FIRST_SPREAD_MOST_MS;
    if (sets->older || sets->most_ms - sets->least_ms > spread_ms) return GUARD_SET_OLDER;
    return sets->unknown ? GUARD_SET_UNKNOWN : GUARD_SET_FIRST;
}
