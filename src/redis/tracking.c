/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/tracking.h"

#include <assert.h>

#define TRACKING_FIRST 16u

void tracking_init(struct tracking *tracking, const struct alloc *alloc)
{
    *tracking = (struct tracking){.alloc = alloc};
}

void tracking_clear(struct tracking *tracking)
{
    alloc_free(tracking->alloc, tracking->words);
    tracking_init(tracking, tracking->alloc);
}

static uint64_t *word_at(const struct tracking *tracking, size_t index)
{
    return &tracking->words[(tracking->head + index) & (tracking->capacity - 1)];
}

bool tracking_reserve(struct tracking *tracking, size_t n)
{
    size_t capacity = tracking->capacity != 0 ? tracking->capacity : TRACKING_FIRST;
    size_t needed = tracking->count + n + 1;
    uint64_t *words;

    if (needed <= tracking->capacity) return true;
    while (capacity < needed) capacity *= 2;
    words = alloc_zero(tracking->alloc, capacity * sizeof(*words));
    if (words == NULL) return false;
    for (size_t i = 0; i < tracking->count; i++) words[i] = *word_at(tracking, i);
    alloc_free(tracking->alloc, tracking->words);
    tracking->words = words;
    tracking->capacity = capacity;
    tracking->head = 0;
    return true;
}

void tracking_begin(struct tracking *tracking, const uint64_t *hashes, size_t n)
{
    assert(tracking->count + n < tracking->capacity);
    *word_at(tracking, tracking->count++) = n;
    for (size_t i = 0; i < n; i++) *word_at(tracking, tracking->count++) = hashes[i];
}

void tracking_end(struct tracking *tracking)
{
    size_t n;

    if (tracking->count == 0) return;
    n = (size_t)*word_at(tracking, 0) + 1;
    assert(n <= tracking->count);
    tracking->head = (tracking->head + n) & (tracking->capacity - 1);
    tracking->count -= n;
}

void tracking_forget(struct tracking *tracking)
{
    tracking->head = tracking->count = 0;
}

bool tracking_reads(const struct tracking *tracking, uint64_t hash)
{
    size_t n = tracking->count > 0 ? (size_t)*word_at(tracking, 0) : 0;

    for (size_t i = 1; i <= n; i++) {
        if (*word_at(tracking, i) == hash) return true;
    }
    return false;
}
