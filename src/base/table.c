/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/table.h"

#define BUCKETS_MIN 64u

static struct table_entry **bucket_of(const struct table *table, uint64_t hash)
{
    return &table->buckets[hash % table->n_buckets];
}

static void put(struct table *table, struct table_entry *entry)
{
    struct table_entry **bucket = bucket_of(table, entry->hash);

    entry->next = *bucket;
    *bucket = entry;
}

/* Without memory for more buckets the chains get longer, that is all. */
int table_reserve(struct table *table, const struct alloc *alloc)
{
    struct table grown = {.n_buckets = table->n_buckets == 0 ? BUCKETS_MIN : 2 * table->n_buckets};

    if (table->count < table->n_buckets) return 0;
    grown.buckets = alloc_zero(alloc, grown.n_buckets * sizeof(struct table_entry *));
    if (grown.buckets == NULL) return table->n_buckets == 0 ? -1 : 0;
    for (size_t i = 0; i < table->n_buckets; i++) {
        struct table_entry *next;

        for (struct table_entry *entry = table->buckets[i]; entry != NULL; entry = next) {
            next = entry->next;
            put(&grown, entry);
        }
    }
    grown.count = table->count;
    alloc_free(alloc, table->buckets);
    *table = grown;
    return 0;
}

void table_add(struct table *table, struct table_entry *entry)
{
    put(table, entry);
    table->count++;
}

void table_remove(struct table *table, struct table_entry *entry)
{
    struct table_entry **at = bucket_of(table, entry->hash);

    while (*at != entry) at = &(*at)->next;
    *at = entry->next;
    table->count--;
}

static struct table_entry *with_hash(struct table_entry *entry, uint64_t hash)
{
    while (entry != NULL && entry->hash != hash) entry = entry->next;
    return entry;
}

struct table_entry *table_first(const struct table *table, uint64_t hash)
{
    return table->count == 0 ? NULL : with_hash(*bucket_of(table, hash), hash);
}

struct table_entry *table_next(const struct table_entry *entry)
{
    return with_hash(entry->next, entry->hash);
}

void table_clear(struct table *table, const struct alloc *alloc)
{
    alloc_free(alloc, table->buckets);
    *table = (struct table){0};
}
