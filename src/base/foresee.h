/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * foresee.h - memory that is needed soon comes to the cache meanwhile
 *
 * A lock that rested for seconds is in no cache. Of many that are renewed together, each would be waited for.
 */
#pragma once

#include <stddef.h>

#define FORESEE_LINE  64u
#define FORESEE_LOCK  320u /* what a lock that rests takes, with its keys */
#define FORESEE_CLAIM 832u /* what an answer meets of a claim of three nodes */

/* foresee - so many bytes from there on; any address, also of what is gone. */
static inline void foresee(const void *from, size_t size)
{
    for (size_t at = 0; at < size; at += FORESEE_LINE) __builtin_prefetch((const char *)from + at);
}
