/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock.h - a clock that counts suspend and cannot be slewed
 *
 * Leases run on while a machine sleeps, so CLOCK_BOOTTIME is the right clock and CLOCK_MONOTONIC is not. But a time
 * daemon may slow BOOTTIME down; CLOCK_MONOTONIC_RAW is never slewed. So elapsed time is the larger of the two advances
 * over any interval: an error ends a lock early, never late.
 *
 * BOOTTIME is read each time, because the machine may have been suspended a moment ago. RAW is read at most once a
 * millisecond: meanwhile a slew changes BOOTTIME by at most a tenth of a millisecond, which the fixed part of the drift
 * allowance (at least one millisecond) covers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct expiry_clock;
struct system;

struct clock {
    int64_t skew_low_us; /* raw - boot when raw was last not ahead */
    uint64_t extra_us;   /* how much raw has gained on boot */
    uint64_t last_us;
    uint64_t compared_us; /* boot when raw was last read */
    int started;
    struct expiry_clock *shown; /* the copy for other threads; NULL: no thread reads it */
};

/* clock_date - format milliseconds since 1970 as 2026-11-26 08:21:30, in UTC. False: the number is too large. `ret`
 * needs CLOCK_DATE_SIZE bytes. */
#define CLOCK_DATE_SIZE 32
bool clock_date(char *ret, uint64_t ms);
/* clock_now_us - read the clock; the result is never smaller than the one before. */
uint64_t clock_now_us(struct clock *, struct system *);
/* clock_advance - do the same arithmetic with the given readings. */
uint64_t clock_advance(struct clock *, uint64_t boot_us, uint64_t raw_us);
