/* SPDX-License-Identifier: BSD-3-Clause */
/* hashtable.h - an intrusive hash table: entries are embedded in the structs that they list. Buckets have at most two
 * entries on average. */
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

/* HASHTABLE_EACH - iterate over all entries, in no order.
 * HASHTABLE_EACH_OF - iterate over the entries with that hash, newest first.
 * The table must not change meanwhile. */
/* NOLINTBEGIN(bugprone-macro-parentheses): a declaration takes none */
#define HASHTABLE_EACH(type, item, table, member)                                                                      \
    for (type *item = CONTAINER_OF(hashtable_after(table, NULL), type, member); (item) != NULL;                        \
         (item) = CONTAINER_OF(hashtable_after(table, &(item)->member), type, member))
#define HASHTABLE_EACH_OF(type, item, table, hash, member)                                                             \
    for (type *item = CONTAINER_OF(hashtable_first(table, hash), type, member); (item) != NULL;                        \
         (item) = CONTAINER_OF(hashtable_next(&(item)->member), type, member))
/* NOLINTEND(bugprone-macro-parentheses) */

/* hashtable_reserve - make room for the next hashtable_add, whose entry->hash is set. Returns 0, or -1 when memory is
 * out. */
int hashtable_reserve(struct hashtable *, const struct alloc *);
void hashtable_add(struct hashtable *, struct hashtable_entry *);
/* hashtable_remove - remove an entry, which must be in the table. */
void hashtable_remove(struct hashtable *, struct hashtable_entry *);
/* The steps of the loops above; NULL ends them. */
struct hashtable_entry *hashtable_after(const struct hashtable *, const struct hashtable_entry *);
struct hashtable_entry *hashtable_first(const struct hashtable *, uint64_t hash);
struct hashtable_entry *hashtable_next(const struct hashtable_entry *);
/* hashtable_free - free the buckets; the entries belong to their owners. */
void hashtable_free(struct hashtable *, const struct alloc *);
