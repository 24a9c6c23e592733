/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * counted.h - what this process asks of the system and of the allocator while it counts
 *
 * The program has functions of the same names as the C library's, so that calls of all its libraries come here, and
 * passes them on. A call that these libraries make inside of another one is not seen.
 */
#pragma once

#include <stdint.h>

struct counted {
    uint64_t allocations; /* malloc, calloc, realloc, by all libraries */
    uint64_t reads, writes, waits;
    uint64_t other_calls; /* timers, epoll_ctl, random bytes */
    uint64_t clocks;      /* clock_gettime, which mostly is no system call */
    uint64_t requests;    /* to Redis */
    uint64_t bytes_out, bytes_in;
};

/* counted_begin - from zero; counted_end - what was counted since. */
void counted_begin(void);
struct counted counted_end(void);
