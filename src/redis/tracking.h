/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tracking.h - the keys of which a server is just being asked to tell when another client changes them
 *
 * Behind a renewal or a waiter's request, in the same write, the node reads the keys once more in a way that makes the
 * server remember them: it tells of the next change (CLIENT CACHING YES, EXISTS). Our renewal is a change, too, of
 * which some servers tell before its reply and others behind it, but all of them in front of the reply to the read. So
 * what a server tells of a key while the read is in flight is older than the read or our own, and means nothing. Here
 * are the keys of the reads in flight, as hashes, oldest read first.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

struct tracking {
    const struct alloc *alloc;
    uint64_t *words; /* for each read the number of its keys, and then their hashes; a ring */
    size_t capacity; /* a power of two, or 0 */
    size_t head, count;
};

void tracking_init(struct tracking *, const struct alloc *);
void tracking_clear(struct tracking *);
/* tracking_reserve - make room for a read of n keys. False: out of memory.
 * tracking_begin - a read of keys with these hashes begins; tracking_reserve must have found room. */
bool tracking_reserve(struct tracking *, size_t n);
void tracking_begin(struct tracking *, const uint64_t *hashes, size_t n);
/* tracking_end - the oldest read was answered. tracking_forget - no read is in flight any more. */
void tracking_end(struct tracking *);
void tracking_forget(struct tracking *);
/* tracking_reads - return whether the oldest read in flight is of a key with that hash. What a server tells of keys of
 * later reads comes before their renewals, whose replies say it, too. */
bool tracking_reads(const struct tracking *, uint64_t hash);
