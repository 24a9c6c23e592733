/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prefetch.h - load memory into the cache before it is needed
 *
 * A lock that was idle for seconds is in no cache. When many are renewed together, each would cost a cache miss.
 */
#pragma once

#include <stddef.h>

#define PREFETCH_LINE  64u
#define PREFETCH_LOCK  384u /* a compact lock, and mostly its key list behind it */
#define PREFETCH_CLAIM 832u /* the parts of a claim of three nodes that an answer touches */

/* prefetch - load that many bytes. Any address will do, even of freed memory. */
static inline void prefetch(const void *from, size_t size)
{
    for (size_t at = 0; at < size; at += PREFETCH_LINE) __builtin_prefetch((const char *)from + at);
}
