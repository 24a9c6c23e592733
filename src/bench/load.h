/* SPDX-License-Identifier: BSD-3-Clause */
/* load.h - locks of one client that are acquired and released in a loop, many at a time, each with its own key */
#pragma once

#include <quorlock/quorlock.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/slice.h"

struct event_base;
struct load;

struct load_options {
    const char *prefix; /* of the keys; the number of the lock is appended */
    uint32_t in_flight;
    struct quorlock_lock_options lock; /* load.c sets wait_ms */
};

/* load_new - make the locks, for a client on that base: 0, or a status of the library, with the text in the client. */
int load_new(struct load **ret, struct event_base *base, quorlock_client *client, const struct load_options *options);
/* load_free - free it; NULL is permitted. locks_gone: the client is closed, so its handles do not exist any more. */
void load_free(struct load *load, bool locks_gone);
/* load_warm - acquire and release one lock: 0, or a status of the library, with the text in load_why or, if that is
 * empty, in the client. After load_stop: CANCELED. */
int load_warm(struct load *load);
/* load_run - acquire and release all locks for that time, then end the cycles in flight: 0, or the status of a call
 * that failed, with the text in the client. */
int load_run(struct load *load, uint64_t span_ns, struct slice *slice);
/* load_starves - return whether in the last load_run the last acquire of every lock failed, after waiting a minute. */
bool load_starves(const struct load *load);
/* load_rounds - acquire and release every lock that many times; otherwise as load_run. */
int load_rounds(struct load *load, uint32_t rounds, struct slice *slice);
/* load_why - return the text of the last acquire or release that failed, or "". */
const char *load_why(const struct load *load);
/* load_stop - end this load_run and every later one early, and cancel acquires in flight. Call it from the loop. */
void load_stop(struct load *load);
