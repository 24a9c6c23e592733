/* SPDX-License-Identifier: BSD-3-Clause */
/* hashtable.h - a hash table of entries that are embedded in what they list, one or two entries a bucket on average */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/list.h"

struct hashtable_entry {
    struct hashtable_entry *next; /* in its bucket */
    uint64_t hash;
};

struct hashtable {
    struct hashtable_entry **buckets;
    size_t n_buckets, count;
};

/* HASHTABLE_EACH - what is listed, in any order. HASHTABLE_EACH_OF: only what has that hash, newest first. The
 * table must not change meanwhile. */
/* NOLINTBEGIN(bugprone-macro-parentheses): a declaration takes none */
#define HASHTABLE_EACH(type, item, table, member)                                                                      \
    for (type *item = CONTAINER_OF(hashtable_after(table, NULL), type, member); (item) != NULL;                        \
         (item) = CONTAINER_OF(hashtable_after(table, &(item)->member), type, member))
#define HASHTABLE_EACH_OF(type, item, table, hash, member)                                                             \
    for (type *item = CONTAINER_OF(hashtable_first(table, hash), type, member); (item) != NULL;                        \
         (item) = CONTAINER_OF(hashtable_next(&(item)->member), type, member))
/* NOLINTEND(bugprone-macro-parentheses) */

/* hashtable_reserve - room for the next hashtable_add, whose entry->hash is set. 0, or -1 out of memory. */
int hashtable_reserve(struct hashtable *, const struct alloc *);
void hashtable_add(struct hashtable *, struct hashtable_entry *);
/* hashtable_remove - the entry must be in the table. */
void hashtable_remove(struct hashtable *, struct hashtable_entry *);
/* The steps of the loops above; NULL: no more. */
struct hashtable_entry *hashtable_after(const struct hashtable *, const struct hashtable_entry *);
struct hashtable_entry *hashtable_first(const struct hashtable *, uint64_t hash);
struct hashtable_entry *hashtable_next(const struct hashtable_entry *);
/* hashtable_free - frees the buckets. */
void hashtable_free(struct hashtable *, const struct alloc *);
