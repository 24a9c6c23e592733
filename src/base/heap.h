/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heap.h - deadlines of many locks behind one timer: a min-heap of pointers
 *
 * An entry is embedded in what it wakes. Room is reserved before, so that nothing can fail later. Each slot has its
 * deadline beside the pointer, and eight below it that lie together: of a hundred thousand locks each is somewhere else
 * in memory, and to look into one takes as long as much of what a renewal does, also to tell it where it is now.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

#define HEAP_OUT      UINT32_MAX
#define HEAP_CHILDREN 8u

struct heap_entry {
    uint32_t index; /* HEAP_OUT: not in it */
};

struct heap_slot {
    uint64_t at_us;
    struct heap_entry *entry;
};

struct heap {
    struct heap_slot *slots;
    size_t used, room;
};

/* heap_reserve - room for n entries in all; 0, or -1 out of memory, or where they are more than an index can tell. */
int heap_reserve(struct heap *, const struct alloc *, size_t n);
void heap_clear(struct heap *, const struct alloc *);
/* heap_set - puts the entry in, moves it, or takes it out where at_us is UINT64_MAX. */
void heap_set(struct heap *, struct heap_entry *, uint64_t at_us);
/* heap_first - the earliest, or NULL. heap_first_us: its time, UINT64_MAX where there is none. heap_time_us: the time
 * of an entry that is in the heap. */
struct heap_entry *heap_first(const struct heap *);
uint64_t heap_first_us(const struct heap *);
uint64_t heap_time_us(const struct heap *, const struct heap_entry *);
