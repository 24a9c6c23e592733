/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/histogram.h"

static const uint64_t bounds_us[HISTOGRAM_BUCKETS] = {
    30,      100,      300,      1000,      3000,      10000,      30000,       100000,      300000,    1000000,
    3000000, 10000000, 30000000, 100000000, 300000000, 1000000000, 3000000000u, 10000000000, UINT64_MAX};

/* Most durations are short, so a search from the front finds their bucket first. */
void histogram_add(struct histogram *histogram, uint64_t us)
{
    size_t i = 0;

    while (us > bounds_us[i]) i++;
    histogram->buckets[i]++;
    histogram->count++;
    histogram->sum_us += us;
}

struct quorlock_histogram histogram_view(const struct histogram *histogram)
{
    return (struct quorlock_histogram){.count = histogram->count,
                                       .sum_us = histogram->sum_us,
                                       .n_buckets = HISTOGRAM_BUCKETS,
                                       .buckets = histogram->buckets,
                                       .bounds_us = bounds_us};
}
