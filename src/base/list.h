/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * list.h - intrusive lists in order of insertion, with a count, and iterations that survive removals. A link is
 * embedded in the struct that is listed. A zeroed list or link is ready for use.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The back pointers form a circle: the first link's points to the last. */
struct link {
    struct link *next; /* NULL: this is the last */
    struct link *back; /* NULL: this is in no list */
};

/* A list of one pointer, without a count and without LIST_WALK. */
struct bare_list {
    struct link *first;
};

struct list_walk;

struct list {
    struct bare_list bare;
    size_t count;
    struct list_walk *walks; /* the iterations in progress */
};

/* An iteration over a list that may change meanwhile. It visits once each item that was in the list when it began,
 * except those that are removed before their turn. */
struct list_walk {
    struct list *list;
    struct link *next, *last; /* NULL: no item is left */
    struct list_walk *outer;
};

/* CONTAINER_OF - return the struct in which that member is embedded; NULL for NULL. */
#define CONTAINER_OF(pointer, type, member) ((type *)container_of((pointer), offsetof(type, member)))

/* FIRST_OF - return the first item; NULL: the list is empty. */
#define FIRST_OF(list, type, member) CONTAINER_OF(list_first(list), type, member)

/* LIST_EACH - iterate over the items in order; the list must not change meanwhile.
 * LIST_WALK - the same, but the list may change. The loop must run to its end: no break, no return. */
/* NOLINTBEGIN(bugprone-macro-parentheses): a declaration takes none */
#define LIST_EACH(type, item, from, member)                                                                            \
    for (type *item = FIRST_OF(from, type, member); (item) != NULL;                                                    \
         (item) = CONTAINER_OF(list_next(&(item)->member), type, member))
#define LIST_WALK(type, item, from, member)                                                                            \
    for (struct list_walk item##_walk = {.list = NULL}; (item##_walk).list == NULL;)                                   \
        for (type *item = CONTAINER_OF(list_walk_first(&item##_walk, from), type, member); (item) != NULL;             \
             (item) = CONTAINER_OF(list_walk_next(&item##_walk), type, member))
/* NOLINTEND(bugprone-macro-parentheses) */

static inline void *container_of(void *member, size_t offset)
{
    return member == NULL ? NULL : (char *)member - offset;
}

/* list_first, list_next - return the next link; NULL ends the list.
 * list_has - return whether the link is in a list. */
static inline struct link *list_first(const struct list *list)
{
    return list->bare.first;
}

static inline struct link *list_next(const struct link *link)
{
    return link->next;
}

static inline bool list_has(const struct link *link)
{
    return link->back != NULL;
}

/* bare_list_add, bare_list_remove, bare_list_first - as list_add, list_remove and list_first. */
static inline void bare_list_add(struct bare_list *list, struct link *link)
{
    if (list_has(link)) return;
    if (list->first == NULL) {
        list->first = link;
    } else {
        link->back = list->first->back;
        link->back->next = link;
    }
    list->first->back = link;
}

static inline void bare_list_remove(struct bare_list *list, struct link *link)
{
    if (!list_has(link)) return;
    /* If this was the only link, no back pointer is left to mend. */
    if (list->first == link) {
        list->first = link->next;
    } else {
        link->back->next = link->next;
    }
    if (link->next != NULL) {
        link->next->back = link->back;
    } else if (list->first != NULL) {
        list->first->back = link->back;
    }
    *link = (struct link){NULL, NULL};
}

static inline struct link *bare_list_first(const struct bare_list *list)
{
    return list->first;
}

/* list_add - append the link, unless it is in a list already.
 * list_remove - remove the link, if it is in the list. */
void list_add(struct list *, struct link *);
void list_remove(struct list *, struct link *);
/* The steps of LIST_WALK; NULL ends it. list_walk_first is list_walk_begin and list_walk_next. */
void list_walk_begin(struct list_walk *, struct list *);
struct link *list_walk_next(struct list_walk *);
struct link *list_walk_first(struct list_walk *, struct list *);
