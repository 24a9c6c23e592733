/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue.h"

#include <stdlib.h>

#include "panic.h"

#define ROOM_FIRST 256

static bool sooner(const struct queue_place *a, const struct queue_place *b)
{
    return a->at_us < b->at_us || (a->at_us == b->at_us && a->order < b->order);
}

/* Places are counted from 1, as moment.index is. */
static void put(struct queue *queue, size_t index, const struct queue_place *place)
{
    queue->heap[index - 1] = *place;
    place->moment->index = index;
}

/* Puts it there, or higher up. */
static size_t rise(struct queue *queue, size_t index, const struct queue_place *place)
{
    while (index > 1 && sooner(place, &queue->heap[index / 2 - 1])) {
        put(queue, index, &queue->heap[index / 2 - 1]);
        index /= 2;
    }
    put(queue, index, place);
    return index;
}

/* Puts it there, or further down. */
static void sink(struct queue *queue, size_t index, const struct queue_place *place)
{
    while (index * 2 <= queue->used) {
        size_t child = index * 2;

        if (child < queue->used && sooner(&queue->heap[child], &queue->heap[child - 1])) child++;
        if (!sooner(&queue->heap[child - 1], place)) break;
        put(queue, index, &queue->heap[child - 1]);
        index = child;
    }
    put(queue, index, place);
}

static void place_at(struct queue *queue, size_t index, const struct queue_place *place)
{
    if (rise(queue, index, place) == index) sink(queue, index, place);
}

static void take_out(struct queue *queue, struct moment *moment)
{
    const struct queue_place last = queue->heap[--queue->used];
    size_t index = moment->index;

    moment->index = 0;
    if (last.moment != moment) place_at(queue, index, &last);
}

static void grow(struct queue *queue)
{
    queue->room = queue->room > 0 ? queue->room * 2 : ROOM_FIRST;
    queue->heap = realloc(queue->heap, queue->room * sizeof(queue->heap[0]));
    if (queue->heap == NULL) panic("no memory for %zu moments", queue->room);
}

void queue_set(struct queue *queue, struct moment *moment, uint64_t at_us)
{
    struct queue_place place = {at_us > queue->now_us ? at_us : queue->now_us, queue->order, moment};

    if (at_us == NEVER) {
        if (moment->index > 0) take_out(queue, moment);
        return;
    }
    queue->order++;
    moment->at_us = place.at_us;
    if (moment->index > 0) {
        place_at(queue, moment->index, &place);
        return;
    }
    if (queue->used == queue->room) grow(queue);
    rise(queue, ++queue->used, &place);
}

bool queue_next(struct queue *queue, uint64_t until_us)
{
    struct moment *first;

    if (queue->used == 0 || queue->heap[0].at_us > until_us) {
        if (until_us != NEVER && until_us > queue->now_us) queue->now_us = until_us;
        return false;
    }
    first = queue->heap[0].moment;
    queue->now_us = first->at_us;
    take_out(queue, first);
    first->happen(first->arg);
    return true;
}

void queue_clear(struct queue *queue)
{
    for (size_t i = 0; i < queue->used; i++) queue->heap[i].moment->index = 0;
    queue->used = 0;
    queue->now_us = queue->order = queue->stall_us = 0;
}

void queue_free(struct queue *queue)
{
    free(queue->heap);
    *queue = (struct queue){.heap = NULL};
}
