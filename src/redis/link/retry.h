/* SPDX-License-Identifier: BSD-3-Clause */
/* retry.h - how long to wait before the next try to connect */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct system;

struct retry {
    uint32_t min_ms, max_ms;
    uint32_t failures; /* in a row; each makes the pause longer */
    uint64_t random;
};

/* retry_init - initialize. spare_seed: the seed of the jitter if the kernel has no random bytes yet. */
void retry_init(struct retry *, struct system *, uint32_t min_ms, uint32_t max_ms, uint64_t spare_seed);
/* retry_pause_us - return the pause after a try failed or a connection ended. lasted_us: how long the connection was
 * open; 0: never. After an open connection the next try comes at once. But one that lasted less than the shortest pause
 * counts as a failure, so that a server that accepts and closes is not flooded. longest: return the longest pause,
 * because trying again soon will not help. */
uint64_t retry_pause_us(struct retry *, uint64_t lasted_us, bool longest);
