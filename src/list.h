/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * list.h - lists in the order of coming; a place in one is embedded in what it lists
 */
#ifndef QUORLOCK_LIST_H
#define QUORLOCK_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct link {
    struct link *next, *prev;
    bool in;
};

struct list {
    struct link *first, *last;
    size_t count;
};

/* LIST_ITEM - what the link is embedded in; NULL for NULL. */
#define LIST_ITEM(link, type, member) ((type *)list_item((link), offsetof(type, member)))

void *list_item(struct link *, size_t offset);
/* list_add - at the end; nothing happens to what is in it already. */
void list_add(struct list *, struct link *);
/* list_remove - nothing happens to what is not in it. */
void list_remove(struct list *, struct link *);

#endif
