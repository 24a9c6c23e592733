/* SPDX-License-Identifier: BSD-3-Clause */
/* backoff.h - jittered pauses between attempts */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A random sequence for jitter, never for tokens. */
struct backoff_jitter {
    uint64_t state;
};

/* backoff_seed - seed the sequence from an event's random bytes. */
void backoff_seed(struct backoff_jitter *, const unsigned char bytes[8]);
/* backoff_uniform - draw evenly from 0 to bound, inclusive. */
uint64_t backoff_uniform(struct backoff_jitter *, uint64_t bound);

/* Each of the following returns a pause. "Jittered" means drawn evenly from half of the pause to the whole. */

/* backoff_split_us - after split votes: drawn evenly from 0 to 2 x srtt x 2^tries, at most 64 x srtt, so that
 * contenders collide less and less. */
uint64_t backoff_split_us(struct backoff_jitter *, uint64_t srtt_us, uint32_t tries);

/* backoff_poll_us - before the next poll of a held lock: 100 ms, doubled with each poll up to 1 s, jittered. Clients
 * other than quorlock publish nothing when they release. told: up to 4 s, for a node tells of it. */
uint64_t backoff_poll_us(struct backoff_jitter *, uint32_t polls, bool told);

/* backoff_outage_us - before the next poll while less than a quorum can vote: 10 s, jittered. A node that comes back
 * ends the pause. */
uint64_t backoff_outage_us(struct backoff_jitter *);

/* backoff_renew_us - before a failed renewal round is repeated: none at first, then a quarter of the node timeout,
 * doubled up to the whole of it, jittered. */
uint64_t backoff_renew_us(struct backoff_jitter *, uint64_t node_timeout_us, uint32_t failures);

/* backoff_debt_us - before a release is sent again after an error or no answer: 10 ms, doubled up to 1 s, jittered. */
uint64_t backoff_debt_us(struct backoff_jitter *, uint32_t tries);

/* backoff_late_us - before a late debt's release is repeated (rule 2.6): 1, 2, 4, 8, and then 16 s. Not jittered, so
 * that the releases of one node go out together. */
uint64_t backoff_late_us(uint32_t tries);

/* backoff_stand_us - before a deposed leader stands for election again: 100 ms, doubled up to most_us, jittered. */
uint64_t backoff_stand_us(struct backoff_jitter *, uint64_t most_us, uint32_t times);

/* backoff_observe_us - before an observer asks again: 10 ms, doubled up to most_us, jittered. */
uint64_t backoff_observe_us(struct backoff_jitter *, uint64_t most_us, uint32_t times);
