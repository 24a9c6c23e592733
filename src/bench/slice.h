/* SPDX-License-Identifier: BSD-3-Clause */
/* slice.h - what is measured while one kind of load runs for a short time */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Each power of two of nanoseconds has so many buckets: a latency is known to one part in 64. */
#define LATENCIES_FINE    ((size_t)64)
#define LATENCIES_BUCKETS (LATENCIES_FINE * 40)

struct latencies {
    uint64_t n;
    uint32_t buckets[LATENCIES_BUCKETS];
};

/* What the nodes' own statistics say, all nodes together. */
struct usage {
    double cpu_us;
    uint64_t commands; /* also those inside of scripts */
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
/* slice_begin - forgets what it has and reads the clocks; slice_end - reads them again. */
void slice_begin(struct slice *slice);
void slice_end(struct slice *slice);
/* slice_add - the times, counts and latencies of another slice. begun_ns and ended_ns keep their difference only. */
void slice_add(struct slice *slice, const struct slice *more);
void latencies_add(struct latencies *latencies, uint64_t ns);
/* latencies_us - what that share of them does not exceed, 0.5 for the median; 0 where there are none. */
double latencies_us(const struct latencies *latencies, double share);
