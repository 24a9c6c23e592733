/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table.h - a hash table of entries that are embedded in what they stand for, one bucket an entry on average
 */
#ifndef QUORLOCK_BASE_TABLE_H
#define QUORLOCK_BASE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

struct table_entry {
    struct table_entry *next; /* in its bucket */
    uint64_t hash;
};

struct table {
    struct table_entry **buckets;
    size_t n_buckets, count;
};

/* table_reserve - so that the next table_add finds a bucket. 0, or -1 out of memory. */
int table_reserve(struct table *, const struct alloc *);
/* table_add - behind a table_reserve that returned 0; entry->hash is set. */
void table_add(struct table *, struct table_entry *);
/* table_remove - the entry must be in the table. */
void table_remove(struct table *, struct table_entry *);
/* table_first, table_next - the entries with that hash, newest first; NULL: no more. */
struct table_entry *table_first(const struct table *, uint64_t hash);
struct table_entry *table_next(const struct table_entry *);
/* table_clear - frees the buckets. */
void table_clear(struct table *, const struct alloc *);

#endif
