/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/ring.h"

#include <assert.h>

#define RING_FIRST 16

static_assert((RING_MAX & (RING_MAX - 1)) == 0, "index arithmetic masks");
static_assert((RING_FIRST & (RING_FIRST - 1)) == 0 && RING_FIRST <= RING_MAX, "index arithmetic masks");

void ring_init(struct ring *ring, const struct alloc *alloc)
{
    *ring = (struct ring){.alloc = alloc};
}

void ring_clear(struct ring *ring)
{
    alloc_free(ring->alloc, ring->entries);
    ring_init(ring, ring->alloc);
}

struct ring_entry *ring_at(struct ring *ring, size_t index)
{
    assert(index < ring->count);
    return &ring->entries[(ring->head + index) & (ring->capacity - 1)];
}

enum ring_room ring_reserve(struct ring *ring, size_t n)
{
    size_t capacity = ring->capacity != 0 ? ring->capacity : RING_FIRST;
    struct ring_entry *entries;

    if (ring->count + n <= ring->capacity) return RING_ROOM;
    if (ring->count + n > RING_MAX) return RING_FULL;
    while (capacity < ring->count + n) capacity *= 2;
    entries = alloc_zero(ring->alloc, capacity * sizeof(*entries));
    if (entries == NULL) return RING_NOMEM;
    for (size_t i = 0; i < ring->count; i++) entries[i] = *ring_at(ring, i);
    alloc_free(ring->alloc, ring->entries);
    ring->entries = entries;
    ring->capacity = capacity;
    ring->head = 0;
    return RING_ROOM;
}

void ring_push(struct ring *ring, const struct ring_entry *entry)
{
    assert(ring->count < ring->capacity);
    ring->count++;
    *ring_at(ring, ring->count - 1) = *entry;
}

void ring_pop(struct ring *ring)
{
    assert(ring->count != 0);
    ring->head = (ring->head + 1) & (ring->capacity - 1);
    ring->count--;
}

uint64_t ring_wake_us(struct ring *ring, uint64_t stall_us)
{
    uint64_t wake_us = RING_NEVER;

    if (ring->count != 0 && stall_us != 0) wake_us = ring_at(ring, 0)->sent_us + stall_us;
    for (size_t i = 0; i < ring->count; i++) {
        const struct ring_entry *entry = ring_at(ring, i);

        if (!entry->reported && entry->deadline_us < wake_us) wake_us = entry->deadline_us;
    }
    return wake_us;
}
