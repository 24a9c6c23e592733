/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/expiry.h"

#include "base/system.h"

void expiry_clock_set(struct expiry_clock *clock, uint64_t boot_us, uint64_t raw_us)
{
    atomic_store_explicit(&clock->boot_us, boot_us, memory_order_release);
    atomic_store_explicit(&clock->raw_us, raw_us, memory_order_release);
}

void expiry_clock_shows(struct expiry_clock *clock, uint64_t now_us)
{
    atomic_store_explicit(&clock->last_us, now_us, memory_order_release);
}

/* The order is the reverse of the reader's: a reader that finds the new lost_at_us also finds the new valid_until_us.
 * With the old lost_at_us it finds the old end, which was true then, or the new one. */
void expiry_set(struct expiry *expiry, uint64_t lost_at_us, uint64_t valid_until_us)
{
    atomic_store_explicit(&expiry->valid_until_us, valid_until_us, memory_order_release);
    atomic_store_explicit(&expiry->lost_at_us, lost_at_us, memory_order_release);
}

static uint64_t read_us(const struct expiry_clock *clock, struct system *system)
{
    uint64_t boot_ahead_us = atomic_load_explicit(&clock->boot_us, memory_order_acquire);
    uint64_t raw_ahead_us = atomic_load_explicit(&clock->raw_us, memory_order_acquire);
    uint64_t now_us = atomic_load_explicit(&clock->last_us, memory_order_acquire);
    uint64_t by_boot_us = system->ops->boot_us(system) + boot_ahead_us;
    uint64_t by_raw_us = system->ops->raw_us(system) + raw_ahead_us;

    if (by_boot_us > now_us) now_us = by_boot_us;
    return by_raw_us > now_us ? by_raw_us : now_us;
}

uint64_t expiry_left_us(const struct expiry *expiry, const struct expiry_clock *clock, struct system *system)
{
    uint64_t lost_at_us = atomic_load_explicit(&expiry->lost_at_us, memory_order_acquire);
    uint64_t valid_until_us = atomic_load_explicit(&expiry->valid_until_us, memory_order_acquire);
    uint64_t now_us;

    if (lost_at_us == 0) return 0;
    /* The clocks are read last: a thread that was suspended in between finds less time left, not more. */
    now_us = read_us(clock, system);
    return now_us < lost_at_us && now_us < valid_until_us ? valid_until_us - now_us : 0;
}
