/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * redisson_peer.h - what an RLock sends to one server, by hand
 *
 * All return at once or fail the running test.
 */
#ifndef TESTS_REDISSON_PEER_H
#define TESTS_REDISSON_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster.h"

#define PEER_NIL (-99)

/* peer_acquire - PEER_NIL: it is theirs; else the remaining lease of its holder. */
long long peer_acquire(const struct server *, const char *key, const char *owner, uint32_t lease_ms);

/* peer_read - the read lock of an RReadWriteLock: PEER_NIL: it is theirs; else the remaining lease of a writer.
 */
long long peer_read(const struct server *, const char *key, const char *owner, uint32_t lease_ms);
/* peer_read_end - the last reader's unlock. 1: released, PEER_NIL: not theirs. */
long long peer_read_end(const struct server *, const char *key, const char *owner);

/* peer_counts - the count of that owner's field, 0 where there is no such field. */
long long peer_counts(const struct server *, const char *key, const char *owner);
/* peer_fields - how many fields the hash has; fails where there is something else. */
long long peer_fields(const struct server *, const char *key);

#endif
