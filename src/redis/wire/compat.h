/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compat.h - the reply reader of hiredis, 0.14 to 1.x
 *
 * Only redisReader is used, which is much the same in all these versions. In 1.0 the count given to createArray
 * became size_t, and types of RESP3 came, which are never asked for and refused.
 */
#ifndef QUORLOCK_REDIS_COMPAT_H
#define QUORLOCK_REDIS_COMPAT_H

#include <hiredis/hiredis.h>

#if defined(HIREDIS_MAJOR) && HIREDIS_MAJOR >= 1
typedef size_t compat_count;
#define COMPAT_RESP3 1
#else
typedef int compat_count;
#define COMPAT_RESP3 0
#endif

#endif
