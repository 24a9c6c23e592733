/* SPDX-License-Identifier: BSD-3-Clause */
/* load.h - locks of one client that are taken and given back again and again, so many at a time, each with a key
 * of its own */
#pragma once

#include <quorlock/quorlock.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/slice.h"

struct event_base;
struct load;

struct load_options {
    const char *prefix; /* of the keys; the number of the lock follows */
    uint32_t in_flight;
    struct quorlock_options lock; /* wait_ms is ours */
};

/* load_new - the locks of a client that lives on that base; 0, or a library status with the text in the client. */
int load_new(struct load **ret, struct event_base *base, quorlock_client *client, const struct load_options *options);
/* load_free - after the client was closed, with `locks_gone`, the handles are gone already. NULL is fine. */
void load_free(struct load *load, bool locks_gone);
/* load_warm - takes and gives back one lock. 0, or a library status; then load_why has the text, or where that is
 * empty the client. After load_stop: CANCELED. */
int load_warm(struct load *load);
/* load_run - keeps all locks busy for that time, then ends the cycles that are under way. Returns 0, or a library
 * status: a start was refused, the text is in the client. */
int load_run(struct load *load, uint64_t span_ns, struct slice *slice);
/* load_starves - whether in the last load_run the last try of each lock, of a minute, failed. */
bool load_starves(const struct load *load);
/* load_rounds - the same, but every lock is taken and given back so many times, whatever the time. */
int load_rounds(struct load *load, uint32_t rounds, struct slice *slice);
/* load_why - the last acquire or release that failed in words, or "". */
const char *load_why(const struct load *load);
/* load_stop - ends load_run early, from the loop, now and in future: acquires under way are canceled. */
void load_stop(struct load *load);
