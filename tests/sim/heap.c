/* SPDX-License-Identifier: BSD-3-Clause */
#include "heap.h"

#include <stdio.h>
#include <stdlib.h>

static bool before(const struct event *a, const struct event *b)
{
    if (a->at_us != b->at_us) return a->at_us < b->at_us;
    return a->order < b->order;
}

void heap_clear(struct heap *heap)
{
    heap->n = 0;
    heap->planned = 0;
}

void heap_free(struct heap *heap)
{
    free(heap->items);
    *heap = (struct heap){0};
}

static void grow(struct heap *heap)
{
    size_t capacity = heap->capacity == 0 ? 1024 : 2 * heap->capacity;
    struct event *items = realloc(heap->items, capacity * sizeof(*items));

    if (items == NULL) {
        (void)fputs("sim: out of memory\n", stderr);
        exit(2);
    }
    heap->items = items;
    heap->capacity = capacity;
}

void heap_push(struct heap *heap, struct event item)
{
    size_t at = heap->n;

    if (heap->n == heap->capacity) grow(heap);
    heap->n++;
    item.order = heap->planned++;
    while (at > 0) {
        size_t parent = (at - 1) / 4;

        if (!before(&item, &heap->items[parent])) break;
        heap->items[at] = heap->items[parent];
        at = parent;
    }
    heap->items[at] = item;
}

bool heap_pop(struct heap *heap, struct event *ret)
{
    struct event last;
    size_t at = 0;

    if (heap->n == 0) return false;
    *ret = heap->items[0];
    last = heap->items[--heap->n];
    for (;;) {
        size_t child = 4 * at + 1;
        size_t least = child;

        if (child >= heap->n) break;
        for (size_t i = child + 1; i < child + 4 && i < heap->n; i++) {
            if (before(&heap->items[i], &heap->items[least])) least = i;
        }
        if (!before(&heap->items[least], &last)) break;
        heap->items[at] = heap->items[least];
        at = least;
    }
    heap->items[at] = last;
    return true;
}
