/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.h - the allocator of one client: counts its blocks, and fails where it shall
 */
#ifndef TESTS_FUZZ_API_MEMORY_H
#define TESTS_FUZZ_API_MEMORY_H

#include <stdint.h>

#include <quorlock/quorlock.h>

#include "draw.h"

struct memory {
    struct draw draw;
    uint32_t fail_once_in; /* 0: never */
    long blocks;           /* not given back yet */
    uint64_t failed;
};

/* memory_hooks - allocator hooks upon it. */
struct quorlock_allocator memory_hooks(struct memory *);

#endif
