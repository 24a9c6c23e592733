/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring.h - requests in flight on one connection, oldest first
 *
 * Replies come in order, so the next one belongs to the head. An entry that was reported already (its deadline
 * passed) stays as a tombstone that swallows the late reply.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "redis/dialect/request.h"

#define RING_MAX   32768
#define RING_NEVER UINT64_MAX

struct ring_entry {
    union node_tag tag;
    uint64_t sent_us;
    uint64_t deadline_us; /* RING_NEVER: none */
    uint32_t timeout_ms;
    enum op op;
    bool reported;
    bool by_script;
    bool whole;    /* it brought a script whole, which the server may not keep where it answers by an error */
    bool guard;    /* the node's own question about its guard */
    uint8_t parts; /* so many replies of a transaction come before the one that counts */
    uint8_t batch; /* so many entries, from this one on, share one reply; 0: it has its own */
};

struct ring {
    const struct alloc *alloc;
    struct ring_entry *entries;
    size_t capacity; /* a power of two, or 0 */
    size_t head, count;
};

enum ring_room { RING_ROOM = 0, RING_FULL, RING_NOMEM };

void ring_init(struct ring *, const struct alloc *);
void ring_clear(struct ring *);
/* ring_reserve - makes sure that so many more pushes find room. */
enum ring_room ring_reserve(struct ring *, size_t n);
/* ring_push - behind a ring_reserve that found room. */
void ring_push(struct ring *, const struct ring_entry *);
/* ring_at - counted from the oldest; moves with the next reserve. */
struct ring_entry *ring_at(struct ring *, size_t index);
void ring_pop(struct ring *);
/* ring_wake_us - when to look at it again: the nearest deadline, or the stall limit of the oldest. */
uint64_t ring_wake_us(struct ring *, uint64_t stall_us);
