/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * named_owner.h - the owners that callers name, for reentry: one struct for each name in use
 */
#ifndef QUORLOCK_LOCK_NAMED_OWNER_H
#define QUORLOCK_LOCK_NAMED_OWNER_H

#include "base/alloc.h"
#include "base/hashtable.h"
#include "base/list.h"

struct named_owner {
    struct hashtable_entry entry;
    uint32_t users;     /* handles and claims */
    struct list claims; /* of its claims, those that are active */
    char name[];
};

/* named_owner_join - the owner of that name, made if there is none; NULL: out of memory. named_owner_leave
 * gives it up; nothing happens to NULL. */
struct named_owner *named_owner_join(struct hashtable *, const struct alloc *, const char *name);
void named_owner_leave(struct hashtable *, const struct alloc *, struct named_owner *);

#endif
