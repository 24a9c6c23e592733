/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/heap.h"

#include <assert.h>

int heap_reserve(struct heap *heap, const struct alloc *alloc, size_t n)
{
    size_t room = heap->room == 0 ? 16 : heap->room;
    void *slots;

    if (n <= heap->room) return 0;
    if (n >= HEAP_OUT) return -1;
    while (room < n) room *= 2;
    slots = alloc_resize(alloc, heap->slots, room * sizeof(struct heap_slot));
    if (slots == NULL) return -1;
    heap->slots = slots;
    heap->room = room;
    return 0;
}

void heap_clear(struct heap *heap, const struct alloc *alloc)
{
    alloc_free(alloc, heap->slots);
    *heap = (struct heap){0};
}

static void put(struct heap *heap, struct heap_slot slot, size_t index)
{
    heap->slots[index] = slot;
    slot.entry->index = (uint32_t)index;
}

/* The earliest below that index; `used` where there is none. */
static size_t least_child(const struct heap *heap, size_t index)
{
    size_t first = HEAP_CHILDREN * index + 1, least = first;

    if (first >= heap->used) return heap->used;
    for (size_t i = first + 1; i < first + HEAP_CHILDREN && i < heap->used; i++) {
        if (heap->slots[i].at_us < heap->slots[least].at_us) least = i;
    }
    return least;
}

static void settle(struct heap *heap, struct heap_slot slot, size_t index)
{
    while (index > 0 && slot.at_us < heap->slots[(index - 1) / HEAP_CHILDREN].at_us) {
        put(heap, heap->slots[(index - 1) / HEAP_CHILDREN], index);
        index = (index - 1) / HEAP_CHILDREN;
    }
    for (;;) {
        size_t child = least_child(heap, index);

        if (child >= heap->used || heap->slots[child].at_us >= slot.at_us) break;
        put(heap, heap->slots[child], index);
        index = child;
    }
    put(heap, slot, index);
}

static void take_out(struct heap *heap, struct heap_entry *entry)
{
    size_t index = entry->index;
    struct heap_slot last = heap->slots[--heap->used];

    entry->index = HEAP_OUT;
    if (last.entry != entry) settle(heap, last, index);
}

void heap_set(struct heap *heap, struct heap_entry *entry, uint64_t at_us)
{
    if (at_us == UINT64_MAX) {
        if (entry->index != HEAP_OUT) take_out(heap, entry);
        return;
    }
    if (entry->index == HEAP_OUT) {
        assert(heap->used < heap->room);
        entry->index = (uint32_t)heap->used++;
    }
    settle(heap, (struct heap_slot){at_us, entry}, entry->index);
}

struct heap_entry *heap_first(const struct heap *heap)
{
    return heap->used > 0 ? heap->slots[0].entry : NULL;
}

uint64_t heap_first_us(const struct heap *heap)
{
    return heap->used > 0 ? heap->slots[0].at_us : UINT64_MAX;
}

uint64_t heap_time_us(const struct heap *heap, const struct heap_entry *entry)
{
    return heap->slots[entry->index].at_us;
}
