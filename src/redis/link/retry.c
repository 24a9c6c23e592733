/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/link/retry.h"

#include "base/system.h"

#define RETRY_LONGEST 32 /* doublings: more than any limit needs */

void retry_init(struct retry *retry, struct system *system, uint32_t min_ms, uint32_t max_ms, uint64_t spare_seed)
{
    *retry = (struct retry){.min_ms = min_ms, .max_ms = max_ms};
    /* Jitter only keeps clients from retrying at the same times, so any seed will do if the kernel has none yet. */
    if (system->ops->random(system, &retry->random, sizeof(retry->random), false) != 0) retry->random = spare_seed;
}

/* splitmix64 is good enough for jitter. */
static uint64_t next_random(struct retry *retry)
{
    uint64_t z = retry->random += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t retry_pause_us(struct retry *retry, uint64_t lasted_us, bool longest)
{
    uint64_t bound_us = (uint64_t)retry->min_ms * 1000, most_us = (uint64_t)retry->max_ms * 1000;

    if (longest && retry->failures < RETRY_LONGEST) retry->failures = RETRY_LONGEST;
    if (!longest && lasted_us > 0 && lasted_us >= bound_us) {
        retry->failures = 0;
        return 0;
    }
    /* Between half and all of a bound that doubles with each failure. */
    for (uint32_t i = 0; i < retry->failures && bound_us < most_us; i++) bound_us *= 2;
    if (bound_us > most_us) bound_us = most_us;
    if (bound_us < 1000) bound_us = 1000;
    if (retry->failures < UINT32_MAX) retry->failures++;
    return bound_us / 2 + next_random(retry) % (bound_us / 2 + 1);
}
