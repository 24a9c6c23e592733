/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * expiry.h - until when a lock is valid, for threads other than the loop's
 *
 * The loop's thread writes both structs, and any thread reads them without waiting. A reader never finds more time left
 * than the loop's thread would find at the same moment: it reads the clocks itself, last, and takes the later of the
 * two. So a loop that runs late, or stands still, makes nothing valid for longer.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

struct system;

/* What a client's clock (clock.h) is ahead of the clocks of the system. It shows BOOTTIME + boot_us or
 * MONOTONIC_RAW + raw_us, whichever is more, and never less than it showed last. None of the three ever becomes
 * smaller, so a mixture of old and new does no harm. */
struct expiry_clock {
    _Atomic uint64_t boot_us, raw_us, last_us;
};

/* By the client's clock; both 0: not valid. */
struct expiry {
    _Atomic uint64_t lost_at_us, valid_until_us;
};

/* expiry_clock_set, expiry_clock_shows, expiry_set - publish, in the loop's thread. expiry_left_us - the validity left,
 * 0 from lost_at_us on; from any thread. */
void expiry_clock_set(struct expiry_clock *, uint64_t boot_us, uint64_t raw_us);
void expiry_clock_shows(struct expiry_clock *, uint64_t now_us);
void expiry_set(struct expiry *, uint64_t lost_at_us, uint64_t valid_until_us);
uint64_t expiry_left_us(const struct expiry *, const struct expiry_clock *, struct system *);
