/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/heap.h"

#include <assert.h>

int heap_reserve(struct heap *heap, const struct alloc *alloc, size_t n)
{
    size_t room = heap->room == 0 ? 16 : heap->room;
    void *entries;

    if (n <= heap->room) return 0;
    while (room < n) room *= 2;
    entries = alloc_resize(alloc, heap->entries, room * sizeof(struct heap_entry *));
    if (entries == NULL) return -1;
    heap->entries = entries;
    heap->room = room;
    return 0;
}

void heap_clear(struct heap *heap, const struct alloc *alloc)
{
    alloc_free(alloc, heap->entries);
    *heap = (struct heap){0};
}

static void put(struct heap *heap, struct heap_entry *entry, size_t index)
{
    heap->entries[index] = entry;
    entry->index = index;
}

static void settle(struct heap *heap, struct heap_entry *entry, size_t index)
{
    while (index > 0 && entry->at_us < heap->entries[(index - 1) / 2]->at_us) {
        put(heap, heap->entries[(index - 1) / 2], index);
        index = (index - 1) / 2;
    }
    for (;;) {
        size_t child = 2 * index + 1;

        if (child >= heap->used) break;
        if (child + 1 < heap->used && heap->entries[child + 1]->at_us < heap->entries[child]->at_us) child++;
        if (heap->entries[child]->at_us >= entry->at_us) break;
        put(heap, heap->entries[child], index);
        index = child;
    }
    put(heap, entry, index);
}

static void take_out(struct heap *heap, struct heap_entry *entry)
{
    size_t index = entry->index;
    struct heap_entry *last = heap->entries[--heap->used];

    entry->index = HEAP_OUT;
    if (last != entry) settle(heap, last, index);
}

void heap_set(struct heap *heap, struct heap_entry *entry, uint64_t at_us)
{
    entry->at_us = at_us;
    if (at_us == UINT64_MAX) {
        if (entry->index != HEAP_OUT) take_out(heap, entry);
        return;
    }
    if (entry->index == HEAP_OUT) {
        assert(heap->used < heap->room);
        put(heap, entry, heap->used++);
    }
    settle(heap, entry, entry->index);
}

struct heap_entry *heap_first(const struct heap *heap)
{
    return heap->used > 0 ? heap->entries[0] : NULL;
}
