/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compat.h - the reply reader of hiredis, 0.14 to 1.x
 *
 * Only redisReader is used: it kept its shape over all these versions. What changed: the count handed to
 * createArray became size_t in 1.0, and RESP3 types came, which we never ask for and refuse.
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
