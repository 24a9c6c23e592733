/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/inflight.h"

#include <assert.h>

#define INFLIGHT_FIRST 16

static_assert((INFLIGHT_MAX & (INFLIGHT_MAX - 1)) == 0, "index arithmetic masks");
static_assert((INFLIGHT_FIRST & (INFLIGHT_FIRST - 1)) == 0 && INFLIGHT_FIRST <= INFLIGHT_MAX, "index arithmetic masks");

void inflight_init(struct inflight *inflight, const struct alloc *alloc)
{
    *inflight = (struct inflight){.alloc = alloc};
}

void inflight_clear(struct inflight *inflight)
{
    alloc_free(inflight->alloc, inflight->entries);
    inflight_init(inflight, inflight->alloc);
}

struct inflight_request *inflight_at(struct inflight *inflight, size_t index)
{
    assert(index < inflight->count);
    return &inflight->entries[(inflight->head + index) & (inflight->capacity - 1)];
}

enum inflight_room inflight_reserve(struct inflight *inflight, size_t n)
{
    size_t capacity = inflight->capacity != 0 ? inflight->capacity : INFLIGHT_FIRST;
    struct inflight_request *entries;

    if (inflight->count + n <= inflight->capacity) return INFLIGHT_ROOM;
    if (inflight->count + n > INFLIGHT_MAX) return INFLIGHT_FULL;
    while (capacity < inflight->count + n) capacity *= 2;
    entries = alloc_zero(inflight->alloc, capacity * sizeof(*entries));
    if (entries == NULL) return INFLIGHT_NOMEM;
    for (size_t i = 0; i < inflight->count; i++) entries[i] = *inflight_at(inflight, i);
    alloc_free(inflight->alloc, inflight->entries);
    inflight->entries = entries;
    inflight->capacity = capacity;
    inflight->head = 0;
    return INFLIGHT_ROOM;
}

void inflight_push(struct inflight *inflight, const struct inflight_request *entry)
{
    assert(inflight->count < inflight->capacity);
    inflight->count++;
    *inflight_at(inflight, inflight->count - 1) = *entry;
}

void inflight_pop(struct inflight *inflight)
{
    assert(inflight->count != 0);
    inflight->head = (inflight->head + 1) & (inflight->capacity - 1);
    inflight->count--;
}

uint64_t inflight_wake_us(struct inflight *inflight, uint64_t stall_us)
{
    uint64_t wake_us = INFLIGHT_NEVER;

    if (inflight->count != 0 && stall_us != 0) wake_us = inflight_at(inflight, 0)->sent_us + stall_us;
    for (size_t i = 0; i < inflight->count; i++) {
        const struct inflight_request *entry = inflight_at(inflight, i);

        if (!entry->reported && entry->deadline_us < wake_us) wake_us = entry->deadline_us;
    }
    return wake_us;
}
