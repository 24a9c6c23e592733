/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/clock.h"

#include <time.h>

#include "base/expiry.h"
#include "base/system.h"

/* The two clocks cannot be read at the same instant, so raw may seem to gain up to this much. Such a gain is not
 * counted; the fixed part of the drift allowance covers it. */
#define TOLERANCE_US 200
/* A larger gain may only mean that this thread was interrupted between the two readings, so both are read again. */
#define READINGS 3
/* Only a slew makes BOOT fall behind RAW, and the kernel slews by a tenth and 0.05 % at most. So while BOOT advances by
 * this much it cannot lose more than the tolerance, and RAW need not be read. */
#define COMPARE_US 1000u

static int64_t skew_of(uint64_t boot_us, uint64_t raw_us)
{
    return (int64_t)(raw_us - boot_us);
}

static bool gains(const struct clock *clock, int64_t skew_us)
{
    return clock->started != 0 && skew_us > clock->skew_low_us + TOLERANCE_US;
}

/* Neither of the two published numbers ever decreases: a gain of raw moves from skew_low_us to extra_us. */
static void publish(const struct clock *clock)
{
    if (clock->shown != NULL)
        expiry_clock_set(clock->shown, clock->extra_us, clock->extra_us - (uint64_t)clock->skew_low_us);
}

static uint64_t clock_show(struct clock *clock, uint64_t boot_us)
{
    uint64_t now_us = boot_us + clock->extra_us;

    if (now_us > clock->last_us) clock->last_us = now_us;
    if (clock->shown != NULL) expiry_clock_shows(clock->shown, clock->last_us);
    return clock->last_us;
}

uint64_t clock_advance(struct clock *clock, uint64_t boot_us, uint64_t raw_us)
{
    int64_t skew_us = skew_of(boot_us, raw_us);

    clock->compared_us = boot_us;
    if (clock->started == 0) {
        clock->started = 1;
        clock->skew_low_us = skew_us;
    } else if (gains(clock, skew_us)) {
        clock->extra_us += (uint64_t)(skew_us - clock->skew_low_us);
        clock->skew_low_us = skew_us;
    } else if (skew_us < clock->skew_low_us) {
        /* Boot gained, by a suspend or a slew. It is the clock in use, so nothing needs to be added. */
        clock->skew_low_us = skew_us;
    }
    publish(clock);
    return clock_show(clock, boot_us);
}

uint64_t clock_now_us(struct clock *clock, struct system *system)
{
    uint64_t boot_us = system->ops->boot_us(system);
    uint64_t raw_us;

    if (clock->started != 0 && boot_us - clock->compared_us < COMPARE_US) return clock_show(clock, boot_us);
    raw_us = system->ops->raw_us(system);
    for (int i = 1; i < READINGS && gains(clock, skew_of(boot_us, raw_us)); i++) {
        boot_us = system->ops->boot_us(system);
        raw_us = system->ops->raw_us(system);
    }
    return clock_advance(clock, boot_us, raw_us);
}

bool clock_date(char *ret, uint64_t ms)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm utc;

    return ms <= INT64_MAX && gmtime_r(&seconds, &utc) != NULL && strftime(ret, CLOCK_DATE_SIZE, "%F %T", &utc) != 0;
}
