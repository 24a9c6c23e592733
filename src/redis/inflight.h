/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inflight.h - the requests in flight on one connection, oldest first, in a ring buffer
 *
 * Replies come in order, so the next reply belongs to the oldest request. A request that was reported already, because
 * its deadline passed, stays as a tombstone that takes the late reply.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "redis/dialect/request.h"

#define INFLIGHT_MAX   32768
#define INFLIGHT_NEVER UINT64_MAX

struct inflight_request {
    union node_tag tag;
    uint64_t sent_us;
    uint64_t deadline_us; /* INFLIGHT_NEVER: none */
    uint32_t timeout_ms;
    enum op op : 8;
    bool reported;
    bool patient; /* as in struct node_request */
    bool by_script;
    bool whole;    /* it sent the text of a script, which the server may not keep if it answers by an error */
    bool guard;    /* the node's own question about its guard */
    bool watched;  /* with such a read behind it */
    bool tracks;   /* the node's own read of keys that the server is to watch; see tracking.h */
    uint8_t parts; /* so many replies of a transaction come before the last, which counts */
    uint8_t batch; /* this many requests, from this one on, share one reply; 0: it has its own */
};

struct inflight {
    const struct alloc *alloc;
    struct inflight_request *entries;
    size_t capacity; /* a power of two, or 0 */
    size_t head, count;
};

enum inflight_room { INFLIGHT_ROOM = 0, INFLIGHT_FULL, INFLIGHT_NOMEM };

void inflight_init(struct inflight *, const struct alloc *);
void inflight_clear(struct inflight *);
/* inflight_reserve - make room for n more requests. */
enum inflight_room inflight_reserve(struct inflight *, size_t n);
/* inflight_push - append a request; inflight_reserve must have found room. */
void inflight_push(struct inflight *, const struct inflight_request *);
/* inflight_at - return a request, counted from the oldest. The pointer is valid until the next inflight_reserve. */
struct inflight_request *inflight_at(struct inflight *, size_t index);
void inflight_pop(struct inflight *);
/* inflight_wake_us - return when to look at the requests again: at the nearest deadline, or when the oldest has been
 * unanswered for stall_us (0: for ever). */
uint64_t inflight_wake_us(struct inflight *, uint64_t stall_us);
