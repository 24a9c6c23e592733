/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * expiry.h - how long a lock is still valid, for threads other than the loop's
 *
 * The loop's thread writes both structs; any thread reads them without blocking. A reader never finds more time left
 * than the loop's thread would find at the same moment: it reads the system's clocks itself, after everything else, and
 * uses the latest of all times. So a loop that is late or stopped does not make a lock valid for longer.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

struct system;

/* How far a client's clock (clock.h) is ahead of the clocks of the system. The clock shows the larger of BOOTTIME +
 * boot_us and MONOTONIC_RAW + raw_us, and never less than the last time it showed. None of the three ever decreases, so
 * a reader that finds old and new values mixed does no harm. */
struct expiry_clock {
    _Atomic uint64_t boot_us, raw_us, last_us;
};

/* Times of the client's clock; both 0: not valid. */
struct expiry {
    _Atomic uint64_t lost_at_us, valid_until_us;
};

/* expiry_clock_set, expiry_clock_shows, expiry_set - publish new values; call them in the loop's thread.
 * expiry_left_us - return the validity that is left, 0 from lost_at_us on; call it from any thread. */
void expiry_clock_set(struct expiry_clock *, uint64_t boot_us, uint64_t raw_us);
void expiry_clock_shows(struct expiry_clock *, uint64_t now_us);
void expiry_set(struct expiry *, uint64_t lost_at_us, uint64_t valid_until_us);
uint64_t expiry_left_us(const struct expiry *, const struct expiry_clock *, struct system *);
