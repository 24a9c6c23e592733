/* SPDX-License-Identifier: BSD-3-Clause */
/* histogram.h - counts of durations by length; see struct quorlock_histogram */
#pragma once

#include <quorlock/quorlock.h>

#define HISTOGRAM_BUCKETS 19

struct histogram {
    uint64_t count, sum_us;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

/* histogram_add - count one more duration. */
void histogram_add(struct histogram *, uint64_t us);
/* histogram_view - return what callers of the library see of it. */
struct quorlock_histogram histogram_view(const struct histogram *);
