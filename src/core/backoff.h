/* SPDX-License-Identifier: BSD-3-Clause */
/* backoff.h - jittered pauses between attempts */
#pragma once

#include <stdint.h>

/* For jitter only, never for tokens; seeded from an event's random bytes. */
struct backoff_jitter {
    uint64_t state;
};

void backoff_seed(struct backoff_jitter *, const unsigned char bytes[8]);
/* backoff_uniform - evenly in 0 .. bound inclusive. */
uint64_t backoff_uniform(struct backoff_jitter *, uint64_t bound);

/* backoff_split_us - the pause after votes were split among contenders: uniform in 0 .. 2 x srtt x 2^n, at most
 * 64 x srtt, so that contenders collide less and less. */
uint64_t backoff_split_us(struct backoff_jitter *, uint64_t srtt_us, uint32_t tries);

/* backoff_poll_us - the pause while the lock is held: grows from 100 ms to 1 s, jittered by half of it. Other
 * clients than quorlock publish nothing when they release. */
uint64_t backoff_poll_us(struct backoff_jitter *, uint32_t polls);

/* backoff_outage_us - the same while too few nodes can vote: 10 s, jittered by half of it. A node that comes back ends
 * it. */
uint64_t backoff_outage_us(struct backoff_jitter *);

/* backoff_renew_us - the pause before a failed renewal round is tried again: none at first, then growing from
 * a quarter of the node timeout to the whole of it, jittered. */
uint64_t backoff_renew_us(struct backoff_jitter *, uint64_t node_timeout_us, uint32_t failures);

/* backoff_debt_us - the pause before a release that a node refused, or did not answer, is sent again: grows
 * from 10 ms to 1 s, jittered by half of it. */
uint64_t backoff_debt_us(struct backoff_jitter *, uint32_t tries);

/* backoff_late_us - the pause before a release that found nothing is sent again, because its acquire may still be
 * executed: 1, 2, 4, 8 s, and then 16. Without jitter, so that those of one node leave together. */
uint64_t backoff_late_us(uint32_t tries);

/* backoff_stand_us - the pause before a deposed leader stands again: grows from 100 ms to most_us, jittered by half of
 * it. backoff_observe_us: before an observer asks again, from 10 ms on. */
uint64_t backoff_stand_us(struct backoff_jitter *, uint64_t most_us, uint32_t times);
uint64_t backoff_observe_us(struct backoff_jitter *, uint64_t most_us, uint32_t times);
