/* SPDX-License-Identifier: BSD-3-Clause */
#include "model_store.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static void *resized(void *block, size_t size)
{
    void *grown = realloc(block, size);

    if (grown == NULL) abort();
    return grown;
}

void blob_set(struct blob *blob, const char *text, size_t length)
{
    if (length > blob->room || blob->text == NULL) {
        blob->room = length < 32 ? 32 : length;
        blob->text = resized(blob->text, blob->room);
    }
    if (length != 0) memmove(blob->text, text, length);
    blob->length = length;
}

bool blob_is(const struct blob *blob, const char *text, size_t length)
{
    return blob->length == length && (length == 0 || memcmp(blob->text, text, length) == 0);
}

void store_init(struct store *store)
{
    *store = (struct store){0};
    alloc_init(&store->alloc, NULL);
}

static void free_entries(struct list *list)
{
    while (list->count > 0) {
        struct entry *entry = FIRST_OF(list, struct entry, link);

        list_remove(list, &entry->link);
        for (size_t i = 0; i < entry->room_items; i++) free(entry->items[i].text);
        free(entry->items);
        free(entry->key.text);
        free(entry);
    }
}

void store_free(struct store *store)
{
    free_entries(&store->entries);
    free_entries(&store->spare);
    hashtable_free(&store->table, &store->alloc);
}

static uint64_t hash_of(uint32_t db, const char *key, size_t length)
{
    return hash_bytes(HASH_START + db, key, length);
}

struct entry *store_find(const struct store *store, uint32_t db, const char *key, size_t length)
{
    HASHTABLE_EACH_OF (struct entry, entry, &store->table, hash_of(db, key, length), hashed) {
        if (entry->db == db && blob_is(&entry->key, key, length)) return entry;
    }
    return NULL;
}

struct entry *store_make(struct store *store, uint32_t db, const char *key, size_t length, enum value_type type)
{
    struct entry *entry = FIRST_OF(&store->spare, struct entry, link);

    if (entry != NULL) {
        list_remove(&store->spare, &entry->link);
    } else {
        entry = resized(NULL, sizeof(*entry));
        *entry = (struct entry){0};
    }
    entry->db = db;
    entry->type = type;
    entry->n_items = 0;
    entry->expires_ms = 0;
    blob_set(&entry->key, key, length);
    entry->hashed.hash = hash_of(db, key, length);
    if (hashtable_reserve(&store->table, &store->alloc) != 0) abort();
    hashtable_add(&store->table, &entry->hashed);
    list_add(&store->entries, &entry->link);
    return entry;
}

void store_remove(struct store *store, struct entry *entry)
{
    hashtable_remove(&store->table, &entry->hashed);
    list_remove(&store->entries, &entry->link);
    list_add(&store->spare, &entry->link);
}

void store_clear(struct store *store)
{
    while (store->entries.count > 0) store_remove(store, FIRST_OF(&store->entries, struct entry, link));
}

void store_copy(struct store *to, const struct store *from)
{
    store_clear(to);
    LIST_EACH (struct entry, entry, &from->entries, link) {
        struct entry *copy = store_make(to, entry->db, entry->key.text, entry->key.length, entry->type);

        copy->expires_ms = entry->expires_ms;
        for (size_t i = 0; i < entry->n_items; i++) entry_add(copy, entry->items[i].text, entry->items[i].length);
    }
}

struct blob *entry_add(struct entry *entry, const char *text, size_t length)
{
    if (entry->n_items == entry->room_items) {
        size_t room = entry->room_items == 0 ? 2 : 2 * entry->room_items;

        entry->items = resized(entry->items, room * sizeof(*entry->items));
        memset(entry->items + entry->room_items, 0, (room - entry->room_items) * sizeof(*entry->items));
        entry->room_items = room;
    }
    blob_set(&entry->items[entry->n_items], text, length);
    return &entry->items[entry->n_items++];
}

void entry_remove(struct entry *entry, size_t at, size_t n)
{
    for (; n > 0; n--) {
        struct blob removed = entry->items[at];

        memmove(entry->items + at, entry->items + at + 1, (entry->n_items - at - 1) * sizeof(removed));
        entry->items[--entry->n_items] = removed;
    }
}

void entry_retype(struct entry *entry, enum value_type type)
{
    entry->n_items = 0;
    entry->type = type;
}

size_t entry_find(const struct entry *entry, const char *text, size_t length, size_t step)
{
    for (size_t i = 0; i < entry->n_items; i += step) {
        if (blob_is(&entry->items[i], text, length)) return i;
    }
    return entry->n_items;
}
