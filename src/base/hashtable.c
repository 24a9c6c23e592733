/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/hashtable.h"

#define BUCKETS_MIN        64u
#define ENTRIES_PER_BUCKET 2u /* on average, at most */

static struct hashtable_entry **hashtable_bucket_of(const struct hashtable *table, uint64_t hash)
{
    return &table->buckets[hash % table->n_buckets];
}

static void hashtable_put(struct hashtable *table, struct hashtable_entry *entry)
{
    struct hashtable_entry **bucket = hashtable_bucket_of(table, entry->hash);

    entry->next = *bucket;
    *bucket = entry;
}

/* Without memory for more buckets the chains just get longer. */
int hashtable_reserve(struct hashtable *table, const struct alloc *alloc)
{
    struct hashtable grown = {.n_buckets = table->n_buckets == 0 ? BUCKETS_MIN : 2 * table->n_buckets};

    if (table->count < ENTRIES_PER_BUCKET * table->n_buckets) return 0;
    grown.buckets = alloc_zero(alloc, grown.n_buckets * sizeof(struct hashtable_entry *));
    if (grown.buckets == NULL) return table->n_buckets == 0 ? -1 : 0;
    for (size_t i = 0; i < table->n_buckets; i++) {
        struct hashtable_entry *next;

        for (struct hashtable_entry *entry = table->buckets[i]; entry != NULL; entry = next) {
            next = entry->next;
            hashtable_put(&grown, entry);
        }
    }
    grown.count = table->count;
    alloc_free(alloc, table->buckets);
    *table = grown;
    return 0;
}

void hashtable_add(struct hashtable *table, struct hashtable_entry *entry)
{
    hashtable_put(table, entry);
    table->count++;
}

void hashtable_remove(struct hashtable *table, struct hashtable_entry *entry)
{
    struct hashtable_entry **at = hashtable_bucket_of(table, entry->hash);

    while (*at != entry) at = &(*at)->next;
    *at = entry->next;
    table->count--;
}

struct hashtable_entry *hashtable_after(const struct hashtable *table, const struct hashtable_entry *entry)
{
    size_t bucket = entry == NULL ? 0 : entry->hash % table->n_buckets + 1;

    if (entry != NULL && entry->next != NULL) return entry->next;
    while (bucket < table->n_buckets && table->buckets[bucket] == NULL) bucket++;
    return bucket < table->n_buckets ? table->buckets[bucket] : NULL;
}

static struct hashtable_entry *with_hash(struct hashtable_entry *entry, uint64_t hash)
{
    while (entry != NULL && entry->hash != hash) entry = entry->next;
    return entry;
}

struct hashtable_entry *hashtable_first(const struct hashtable *table, uint64_t hash)
{
    return table->count == 0 ? NULL : with_hash(*hashtable_bucket_of(table, hash), hash);
}

struct hashtable_entry *hashtable_next(const struct hashtable_entry *entry)
{
    return with_hash(entry->next, entry->hash);
}

void hashtable_free(struct hashtable *table, const struct alloc *alloc)
{
    alloc_free(alloc, table->buckets);
    *table = (struct hashtable){0};
}
