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

struct list_walk;

struct list {
    struct link *first, *last;
    size_t count;
    struct list_walk *walks; /* under way */
};

/*
 * A walk over a list that may change under it. It meets everything that was in the list when the walk began and
 * still is when its turn comes, once, whatever is removed meanwhile; what is added meanwhile it does not meet.
 */
struct list_walk {
    struct list *list;
    struct link *next, *last; /* NULL: nothing is left */
    struct list_walk *outer;
};

/* LIST_ITEM - what the link is embedded in; NULL for NULL. */
#define LIST_ITEM(link, type, member) ((type *)list_item((link), offsetof(type, member)))

void *list_item(struct link *, size_t offset);
/* list_add - at the end; nothing happens to what is in it already. */
void list_add(struct list *, struct link *);
/* list_remove - nothing happens to what is not in it. */
void list_remove(struct list *, struct link *);
/* list_walk_begin - the walk must be walked to its end, which list_walk_next tells by NULL. */
void list_walk_begin(struct list_walk *, struct list *);
struct link *list_walk_next(struct list_walk *);

#endif
