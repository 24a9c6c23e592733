/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue.h - what will happen, in the order of true time
 *
 * True time is microseconds from 0, which no client and no server knows. It stops while something happens, and then
 * jumps to what happens next. Of two moments at one time the one that was set first comes first.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NEVER UINT64_MAX

/* Embedded in what it wakes. Zero it, then set happen and arg. */
struct moment {
    uint64_t at_us;
    size_t index; /* in the heap, from 1; 0: not in it */
    void (*happen)(void *arg);
    void *arg;
};

/* What is compared lies together. */
struct queue_place {
    uint64_t at_us, order;
    struct moment *moment;
};

struct queue {
    uint64_t now_us, order;
    uint64_t stall_us; /* a machine is stalled until then, inside a moment; 0: none */
    struct queue_place *heap;
    size_t used, room;
};

/* queue_clear - forget all moments, and go back to time 0. The memory stays. A zeroed queue is ready for use.
 * queue_free - free the memory. */
void queue_clear(struct queue *);
void queue_free(struct queue *);
/* queue_set - let the moment happen at that time, and not at an earlier setting; NEVER: take it out. */
void queue_set(struct queue *, struct moment *, uint64_t at_us);
/* queue_next - jump to the first moment that is not after until_us, and let it happen. False: there is none, and true
 * time is until_us. A moment may call it, so that one machine is stalled while the others go on. */
bool queue_next(struct queue *, uint64_t until_us);
