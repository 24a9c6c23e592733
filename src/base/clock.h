/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock.h - elapsed time that counts suspend and is not slewed
 *
 * Leases run on while a machine sleeps, so CLOCK_BOOTTIME is right and CLOCK_MONOTONIC is not; but a time
 * daemon may slow BOOTTIME down, which CLOCK_MONOTONIC_RAW does not follow. Elapsed time is the larger of the
 * two advances over any interval, so an error makes a lock end early, never late.
 *
 * BOOTTIME is read each time, for a machine may have slept just now. RAW is read once a millisecond at most: a slew
 * takes a tenth of that at most, which the fixed part of the drift allowance, a millisecond at least, covers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct expiry_clock;
struct system;

struct clock {
    int64_t skew_low_us; /* raw - boot when raw last was not ahead */
    uint64_t extra_us;   /* what raw has gained on boot */
    uint64_t last_us;
    uint64_t compared_us; /* what boot showed when raw was read last */
    int started;
    struct expiry_clock *shown; /* for other threads; NULL: none reads */
};

/* clock_date - milliseconds since 1970 as in 2026-11-26 08:21:30, in UTC; false: they are too many. ret needs
 * CLOCK_DATE_SIZE bytes. */
#define CLOCK_DATE_SIZE 32
bool clock_date(char *ret, uint64_t ms);
/* clock_now_us - now, never smaller than before. */
uint64_t clock_now_us(struct clock *, struct system *);
/* clock_advance - the same arithmetic over given readings. */
uint64_t clock_advance(struct clock *, uint64_t boot_us, uint64_t raw_us);
