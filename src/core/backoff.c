/* SPDX-License-Identifier: BSD-3-Clause */
#include "backoff.h"

#include <assert.h>
#include <string.h>

#define SRTT_MIN_US      200u /* also before the first measurement */
#define SRTT_MAX_US      1000000u
#define SPLIT_SHIFT_MAX  5u
#define POLL_MIN_US      100000u
#define POLL_MAX_US      1000000u
#define POLL_TOLD_MAX_US 4000000u
#define OUTAGE_US        10000000u
#define DEBT_MIN_US      10000u
#define DEBT_MAX_US      1000000u
#define LATE_MIN_US      1000000u
#define LATE_SHIFT_MAX   4u /* 16 s */
#define STAND_MIN_US     100000u
#define OBSERVE_MIN_US   10000u

void backoff_seed(struct backoff_jitter *jitter, const unsigned char bytes[8])
{
    memcpy(&jitter->state, bytes, sizeof(jitter->state));
}

/* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014. */
static uint64_t backoff_next(struct backoff_jitter *jitter)
{
    uint64_t z = jitter->state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t backoff_uniform(struct backoff_jitter *jitter, uint64_t bound)
{
    uint64_t drawn = backoff_next(jitter);

    if (bound != UINT64_MAX) drawn %= bound + 1;
    assert(drawn <= bound);
    return drawn;
}

/* Rule 6.5. */
uint64_t backoff_split_us(struct backoff_jitter *jitter, uint64_t srtt_us, uint32_t tries)
{
    uint32_t shift = tries < SPLIT_SHIFT_MAX ? tries : SPLIT_SHIFT_MAX;
    uint64_t pause_us;

    if (srtt_us < SRTT_MIN_US) srtt_us = SRTT_MIN_US;
    if (srtt_us > SRTT_MAX_US) srtt_us = SRTT_MAX_US;
    pause_us = backoff_uniform(jitter, (2 * srtt_us) << shift);
    assert(pause_us <= (2ull * SRTT_MAX_US) << SPLIT_SHIFT_MAX);
    return pause_us;
}

/* least_us, doubled with each time up to most_us, jittered. */
static uint64_t growing(struct backoff_jitter *jitter, uint64_t least_us, uint64_t most_us, uint32_t times)
{
    uint64_t pause_us = least_us;

    while (times-- > 0 && pause_us < most_us) pause_us *= 2;
    if (pause_us > most_us) pause_us = most_us;
    pause_us = pause_us / 2 + backoff_uniform(jitter, pause_us / 2);
    assert(pause_us <= most_us);
    return pause_us;
}

/* Rule 6.6. */
uint64_t backoff_poll_us(struct backoff_jitter *jitter, uint32_t polls, bool told)
{
    return growing(jitter, POLL_MIN_US, told ? POLL_TOLD_MAX_US : POLL_MAX_US, polls);
}

uint64_t backoff_outage_us(struct backoff_jitter *jitter)
{
    return growing(jitter, OUTAGE_US, OUTAGE_US, 0);
}

uint64_t backoff_debt_us(struct backoff_jitter *jitter, uint32_t tries)
{
    return growing(jitter, DEBT_MIN_US, DEBT_MAX_US, tries);
}

uint64_t backoff_late_us(uint32_t tries)
{
    return (uint64_t)LATE_MIN_US << (tries < LATE_SHIFT_MAX ? tries : LATE_SHIFT_MAX);
}

uint64_t backoff_stand_us(struct backoff_jitter *jitter, uint64_t most_us, uint32_t times)
{
    return growing(jitter, STAND_MIN_US, most_us, times);
}

uint64_t backoff_observe_us(struct backoff_jitter *jitter, uint64_t most_us, uint32_t times)
{
    return growing(jitter, OBSERVE_MIN_US, most_us, times);
}

uint64_t backoff_renew_us(struct backoff_jitter *jitter, uint64_t node_timeout_us, uint32_t failures)
{
    uint64_t pause_us = node_timeout_us / 4;

    if (failures <= 1) return 0;
    for (uint32_t i = 2; i < failures && pause_us < node_timeout_us; i++) pause_us *= 2;
    if (pause_us > node_timeout_us) pause_us = node_timeout_us;
    pause_us = pause_us / 2 + backoff_uniform(jitter, pause_us / 2 + 1);
    assert(pause_us <= node_timeout_us + 1);
    return pause_us;
}
