/* SPDX-License-Identifier: BSD-3-Clause */
#include "events.h"

#include <stdio.h>
#include <stdlib.h>

/* The library's heap orders by one number: the order of planning is behind the time. */
enum { ORDER_BITS = 23 };

static struct event *take(struct events *events)
{
    struct event *event = events->free;

    if (event != NULL) {
        events->free = event->next;
        return event;
    }
    event = alloc_zero(&events->alloc, sizeof(*event));
    if (event == NULL || heap_reserve(&events->heap, &events->alloc, events->heap.used + 1) != 0) {
        (void)fputs("sim: out of memory\n", stderr);
        exit(2);
    }
    return event;
}

bool events_next(struct events *events, struct event *ret)
{
    struct event *first = (struct event *)(void *)heap_first(&events->heap);

    if (first == NULL) return false;
    *ret = *first;
    heap_set(&events->heap, &first->entry, UINT64_MAX);
    first->next = events->free;
    events->free = first;
    return true;
}

void events_clear(struct events *events)
{
    struct event event;

    while (events_next(events, &event)) continue;
    events->planned = 0;
}

void events_free(struct events *events)
{
    events_clear(events);
    for (struct event *event = events->free, *next; event != NULL; event = next) {
        next = event->next;
        alloc_free(&events->alloc, event);
    }
    heap_clear(&events->heap, &events->alloc);
}

void events_plan(struct events *events, const struct event *planned)
{
    struct event *event = take(events);

    *event = *planned;
    event->entry = (struct heap_entry){.at_us = UINT64_MAX, .index = HEAP_OUT};
    heap_set(&events->heap, &event->entry, (planned->at_us << ORDER_BITS) + events->planned++);
}
