/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/histogram.h"

static const uint64_t bounds_us[QUORLOCK_HISTOGRAM_BUCKETS] = {
    30,      100,      300,      1000,      3000,      10000,      30000,       100000,      300000,    1000000,
    3000000, 10000000, 30000000, 100000000, 300000000, 1000000000, 3000000000u, 10000000000, UINT64_MAX};

/* Most durations are short, so a search from the front finds their bucket first. */
void histogram_add(struct quorlock_histogram *histogram, uint64_t us)
{
    size_t i = 0;

    while (us > bounds_us[i]) i++;
    histogram->buckets[i]++;
    histogram->count++;
    histogram->sum_us += us;
}

uint64_t quorlock_histogram_bound_us(size_t bucket)
{
    return bucket < QUORLOCK_HISTOGRAM_BUCKETS ? bounds_us[bucket] : UINT64_MAX;
}
