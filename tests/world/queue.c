/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue.h"

#include <stdlib.h>

#include "panic.h"

#define ROOM_FIRST 256

static bool sooner(const struct moment *a, const struct moment *b)
{
    return a->at_us < b->at_us || (a->at_us == b->at_us && a->order < b->order);
}

/* Places are counted from 1, as moment.index is. */
static void put(struct queue *queue, size_t index, struct moment *moment)
{
    queue->heap[index - 1] = moment;
    moment->index = index;
}

static void rise(struct queue *queue, struct moment *moment)
{
    size_t index = moment->index;

    while (index > 1 && sooner(moment, queue->heap[index / 2 - 1])) {
        put(queue, index, queue->heap[index / 2 - 1]);
        index /= 2;
    }
    put(queue, index, moment);
}

static void sink(struct queue *queue, struct moment *moment)
{
    size_t index = moment->index;

    while (index * 2 <= queue->used) {
        size_t child = index * 2;

        if (child < queue->used && sooner(queue->heap[child], queue->heap[child - 1])) child++;
        if (!sooner(queue->heap[child - 1], moment)) break;
        put(queue, index, queue->heap[child - 1]);
        index = child;
    }
    put(queue, index, moment);
}

static void take_out(struct queue *queue, struct moment *moment)
{
    size_t index = moment->index;
    struct moment *last = queue->heap[--queue->used];

    moment->index = 0;
    if (last == moment) return;
    put(queue, index, last);
    rise(queue, last);
    sink(queue, last);
}

static void grow(struct queue *queue)
{
    queue->room = queue->room > 0 ? queue->room * 2 : ROOM_FIRST;
    queue->heap = realloc(queue->heap, queue->room * sizeof(struct moment *));
    if (queue->heap == NULL) panic("no memory for %zu moments", queue->room);
}

void queue_set(struct queue *queue, struct moment *moment, uint64_t at_us)
{
    if (at_us == NEVER) {
        if (moment->index > 0) take_out(queue, moment);
        return;
    }
    moment->at_us = at_us > queue->now_us ? at_us : queue->now_us;
    moment->order = queue->order++;
    if (moment->index == 0) {
        if (queue->used == queue->room) grow(queue);
        put(queue, ++queue->used, moment);
        rise(queue, moment);
    } else {
        rise(queue, moment);
        sink(queue, moment);
    }
}

bool queue_next(struct queue *queue, uint64_t until_us)
{
    struct moment *first = queue->used > 0 ? queue->heap[0] : NULL;

    if (first == NULL || first->at_us > until_us) {
        if (until_us != NEVER && until_us > queue->now_us) queue->now_us = until_us;
        return false;
    }
    queue->now_us = first->at_us;
    take_out(queue, first);
    first->happen(first->arg);
    return true;
}

void queue_clear(struct queue *queue)
{
    for (size_t i = 0; i < queue->used; i++) queue->heap[i]->index = 0;
    queue->used = 0;
    queue->now_us = queue->order = queue->stall_us = 0;
}

void queue_free(struct queue *queue)
{
    free(queue->heap);
    *queue = (struct queue){.heap = NULL};
}
