/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue.h - what will happen, in the order of true time
 *
 * True time is microseconds from 0, which no client and no server knows. It stands still while something happens,
 * and then jumps to what happens next. Of two moments at one time the one that was set first comes first.
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
    uint64_t stall_us; /* a machine stands still until then, inside a moment; 0: none does */
    struct queue_place *heap;
    size_t used, room;
};

/* queue_clear - forgets all moments and goes back to 0; memory is kept. queue_free: frees it.
 * A zeroed queue is ready for use. */
void queue_clear(struct queue *);
void queue_free(struct queue *);
/* queue_set - it happens at that time, instead of whenever it was set to before; NEVER takes it out. */
void queue_set(struct queue *, struct moment *, uint64_t at_us);
/* queue_next - jumps to the first moment not after until_us, takes it out and lets it happen; false where there is
 * none: then true time is until_us. May be called from inside a moment: so one machine stands still while the
 * others go on. */
bool queue_next(struct queue *, uint64_t until_us);
