/* SPDX-License-Identifier: BSD-3-Clause */
#include "skew.h"

#define MILLION 1000000

/* Whole millions and the rest apart, so that nothing overflows. */
uint64_t skew_read(const struct skew *skew, uint64_t true_us)
{
    int64_t passed_us = true_us > skew->begun_us ? (int64_t)(true_us - skew->begun_us) : 0;
    int64_t gained_us = passed_us / MILLION * skew->rate_ppm + passed_us % MILLION * skew->rate_ppm / MILLION;

    return skew->shown_us + (uint64_t)(passed_us + gained_us);
}

uint64_t skew_when(const struct skew *skew, uint64_t shown_us)
{
    int64_t pace = MILLION + (int64_t)skew->rate_ppm;
    uint64_t left_us, when_us;

    if (shown_us <= skew->shown_us) return skew->begun_us;
    left_us = shown_us - skew->shown_us;
    /* It stops, or that is beyond all time. */
    if (pace <= 0 || left_us / (uint64_t)pace > INT64_MAX / 2 / MILLION) return UINT64_MAX;
    when_us = skew->begun_us + left_us / (uint64_t)pace * MILLION + left_us % (uint64_t)pace * MILLION / (uint64_t)pace;
    while (when_us > skew->begun_us && skew_read(skew, when_us - 1) >= shown_us) when_us--;
    while (skew_read(skew, when_us) < shown_us) when_us++;
    return when_us;
}

void skew_step(struct skew *skew, uint64_t now_us, int64_t by_us)
{
    uint64_t shown_us = skew_read(skew, now_us);

    skew->begun_us = now_us;
    skew->shown_us = by_us < 0 && shown_us < (uint64_t)-by_us ? 0 : shown_us + (uint64_t)by_us;
}

void skew_pause(struct skew *skew, uint64_t now_us, uint64_t from_us, uint64_t until_us)
{
    /* From now on it counts anew, so that nothing is rounded differently at the end. */
    skew_step(skew, now_us, 0);
    skew_step(skew, now_us, -(int64_t)(skew_read(skew, until_us) - skew_read(skew, from_us)));
}

void skew_rate(struct skew *skew, uint64_t now_us, int32_t rate_ppm)
{
    skew->shown_us = skew_read(skew, now_us);
    skew->begun_us = now_us;
    skew->rate_ppm = rate_ppm;
}
