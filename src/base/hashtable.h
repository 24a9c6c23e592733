/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hashtable.h - a hash table of entries that are embedded in what they stand for, one bucket an entry on
 * average
 */
#ifndef QUORLOCK_BASE_HASHTABLE_H
#define QUORLOCK_BASE_HASHTABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

struct hashtable_entry {
    struct hashtable_entry *next; /* in its bucket */
    uint64_t hash;
};

struct hashtable {
    struct hashtable_entry **buckets;
    size_t n_buckets, count;
};

/* hashtable_reserve - so that the next hashtable_add finds a bucket. 0, or -1 out of memory. */
int hashtable_reserve(struct hashtable *, const struct alloc *);
/* hashtable_add - behind a hashtable_reserve that returned 0; entry->hash is set. */
void hashtable_add(struct hashtable *, struct hashtable_entry *);
/* hashtable_remove - the entry must be in the table. */
void hashtable_remove(struct hashtable *, struct hashtable_entry *);
/* hashtable_first, hashtable_next - the entries with that hash, newest first; NULL: no more. */
struct hashtable_entry *hashtable_first(const struct hashtable *, uint64_t hash);
struct hashtable_entry *hashtable_next(const struct hashtable_entry *);
/* hashtable_clear - frees the buckets. */
void hashtable_clear(struct hashtable *, const struct alloc *);

#endif
