/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock/named_owner.h"

#include <string.h>

#include "base/hash.h"

struct named_owner *named_owner_join(struct hashtable *table, const struct alloc *alloc, const char *name)
{
    uint64_t hash = hash_text(HASH_START, name);
    struct named_owner *owner;

    for (struct hashtable_entry *at = hashtable_first(table, hash); at != NULL; at = hashtable_next(at)) {
        owner = CONTAINER_OF(at, struct named_owner, entry);
        if (strcmp(owner->name, name) != 0) continue;
        owner->users++;
        return owner;
    }
    if (hashtable_reserve(table, alloc) != 0) return NULL;
    owner = alloc_zero(alloc, sizeof(*owner) + strlen(name) + 1);
    if (owner == NULL) return NULL;
    memcpy(owner->name, name, strlen(name) + 1);
    owner->entry.hash = hash;
    owner->users = 1;
    hashtable_add(table, &owner->entry);
    return owner;
}

void named_owner_leave(struct hashtable *table, const struct alloc *alloc, struct named_owner *owner)
{
    if (owner == NULL || --owner->users > 0) return;
    hashtable_remove(table, &owner->entry);
    alloc_free(alloc, owner);
}
