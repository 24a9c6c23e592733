/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model_store.h - the keys of a model, and their values
 *
 * A value is a list of byte strings: a string's one, a hash's fields and values in turn, a list's or set's elements,
 * a sorted set's members and scores in turn. Keys and elements are in the order in which they were made, but for sorted
 * sets. What is removed keeps its memory for what comes next.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/hashtable.h"
#include "base/list.h"

struct blob {
    char *text;
    size_t length, room;
};

enum value_type { VALUE_STRING, VALUE_HASH, VALUE_LIST, VALUE_SET, VALUE_ZSET };

struct entry {
    struct hashtable_entry hashed;
    struct link link;
    uint32_t db;
    enum value_type type;
    struct blob key;
    struct blob *items;
    size_t n_items, room_items;
    uint64_t expires_ms; /* 0: never */
};

struct store {
    struct alloc alloc;
    struct hashtable table;
    struct list entries, spare;
};

void blob_set(struct blob *, const char *text, size_t length);
bool blob_is(const struct blob *, const char *text, size_t length);

void store_init(struct store *);
void store_free(struct store *);
struct entry *store_find(const struct store *, uint32_t db, const char *key, size_t length);
/* store_make - without items; the key must not be there. */
struct entry *store_make(struct store *, uint32_t db, const char *key, size_t length, enum value_type);
void store_remove(struct store *, struct entry *); /* its key stays readable until the next store_make */
void store_clear(struct store *);
void store_copy(struct store *to, const struct store *from); /* instead of what is there */

/* entry_add - one item more, at the end. entry_remove: n of them, the others keep their order. */
struct blob *entry_add(struct entry *, const char *text, size_t length);
void entry_remove(struct entry *, size_t at, size_t n);
void entry_retype(struct entry *, enum value_type); /* without items */
/* entry_find - the first item that is this, of every step-th; n_items: none. */
size_t entry_find(const struct entry *, const char *text, size_t length, size_t step);
