/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/slice.h"

#include <string.h>
#include <time.h>

#define NS_PER_S 1000000000u

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t slice_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

void slice_begin(struct slice *slice)
{
    memset(slice, 0, sizeof(*slice));
    slice->cpu_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID);
    slice->begun_ns = slice_now_ns();
}

void slice_end(struct slice *slice)
{
    slice->ended_ns = slice_now_ns();
    slice->cpu_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID) - slice->cpu_ns;
}

static void add_latencies(struct latencies *latencies, const struct latencies *more)
{
    latencies->n += more->n;
    for (size_t i = 0; i < LATENCIES_BUCKETS; i++) latencies->buckets[i] += more->buckets[i];
}

void slice_add(struct slice *slice, const struct slice *more)
{
    slice->ended_ns += more->ended_ns - more->begun_ns;
    slice->cpu_ns += more->cpu_ns;
    slice->cycles += more->cycles;
    slice->failed += more->failed;
    slice->usage.cpu_us += more->usage.cpu_us;
    slice->usage.commands += more->usage.commands;
    slice->usage.bytes += more->usage.bytes;
    add_latencies(&slice->acquire, &more->acquire);
    add_latencies(&slice->release, &more->release);
}

/* slice_bucket_of - return the bucket of a time. Below LATENCIES_FINE each bucket is a nanosecond; above, each power of
 * two has LATENCIES_FINE buckets. */
static size_t slice_bucket_of(uint64_t ns)
{
    unsigned shift = ns < LATENCIES_FINE ? 0 : 57u - (unsigned)__builtin_clzll(ns);
    size_t bucket = shift * LATENCIES_FINE + (size_t)(ns >> shift);

    return bucket < LATENCIES_BUCKETS ? bucket : LATENCIES_BUCKETS - 1;
}

/* middle_ns - return the middle of a bucket. */
static double middle_ns(size_t bucket)
{
    size_t shift = bucket < 2 * LATENCIES_FINE ? 0 : bucket / LATENCIES_FINE - 1;
    uint64_t front = bucket - shift * LATENCIES_FINE;

    return ((double)front + 0.5) * (double)((uint64_t)1 << shift);
}

void latencies_add(struct latencies *latencies, uint64_t ns)
{
    latencies->n++;
    latencies->buckets[slice_bucket_of(ns)]++;
}

double latencies_us(const struct latencies *latencies, double share)
{
    uint64_t below = 0, wanted = (uint64_t)((double)latencies->n * share);
    size_t bucket = 0;

    if (latencies->n == 0) return 0;
    if (wanted >= latencies->n) wanted = latencies->n - 1;
    for (; bucket < LATENCIES_BUCKETS - 1; bucket++) {
        below += latencies->buckets[bucket];
        if (below > wanted) break;
    }
    return middle_ns(bucket) / 1000;
}
