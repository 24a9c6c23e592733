/* SPDX-License-Identifier: BSD-3-Clause */
/* slice.h - measurements of a short time of one kind of load */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Number of buckets for each power of two of nanoseconds: the error of a latency is at most one part in 64. */
#define LATENCIES_FINE    ((size_t)64)
#define LATENCIES_BUCKETS (LATENCIES_FINE * 40)

struct latencies {
    uint64_t n;
    uint32_t buckets[LATENCIES_BUCKETS];
};

/* Sums of the nodes' own statistics. */
struct usage {
    double cpu_us;
    uint64_t commands; /* including those inside scripts */
    uint64_t bytes;    /* received and sent */
};

struct slice {
    uint64_t begun_ns, ended_ns; /* CLOCK_MONOTONIC */
    uint64_t cpu_ns;             /* of this process */
    uint64_t cycles, failed;     /* cycle: acquired and released */
    struct usage usage;
    struct latencies acquire, release;
};

uint64_t slice_now_ns(void);
/*
 * slice_begin - clear the slice, and read the clocks
 * slice_end   - read the clocks again
 */
void slice_begin(struct slice *slice);
void slice_end(struct slice *slice);
/* slice_add - add the times, counts and latencies of another slice. Of begun_ns and ended_ns only the difference has a
 * meaning then. */
void slice_add(struct slice *slice, const struct slice *more);
void latencies_add(struct latencies *latencies, uint64_t ns);
/* latencies_us - return the quantile of that share in microseconds, 0.5 for the median; 0: there are no latencies. */
double latencies_us(const struct latencies *latencies, double share);
