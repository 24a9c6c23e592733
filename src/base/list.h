/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * list.h - lists in the order of coming: with a count, and with walks that survive removal. A place in a list is
 * embedded in what is listed. A zeroed list, or link, is ready for use.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Backwards the links go in a circle, so that the first one leads to the last. */
struct link {
    struct link *next; /* NULL: it is the last */
    struct link *back; /* NULL: it is in no list */
};

/* A list that is small: it has no count, and knows no walks. */
struct row {
    struct link *first;
};

struct list_walk;

struct list {
    struct row row;
    size_t count;
    struct list_walk *walks; /* under way */
};

/* A walk over a list that may change under it. It visits, once each, the items that were in the list when it
 * began, except those that are removed before their turn. */
struct list_walk {
    struct list *list;
    struct link *next, *last; /* NULL: nothing is left */
    struct list_walk *outer;
};

/* CONTAINER_OF - the struct in which that member is embedded; NULL for NULL. */
#define CONTAINER_OF(pointer, type, member) ((type *)container_of((pointer), offsetof(type, member)))

/* FIRST_OF - the first that is listed; NULL: the list is empty. */
#define FIRST_OF(list, type, member) CONTAINER_OF(list_first(list), type, member)

/* LIST_EACH - what is listed, in order; the list must not change meanwhile. LIST_WALK: the same with a walk,
 * which survives changes and must not be left early. */
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

/* list_first, list_next - NULL: no more. list_has: the link is in a list. */
static inline struct link *list_first(const struct list *list)
{
    return list->row.first;
}

static inline struct link *list_next(const struct link *link)
{
    return link->next;
}

static inline bool list_has(const struct link *link)
{
    return link->back != NULL;
}

/* row_add, row_remove, row_first - as for a list. */
static inline void row_add(struct row *row, struct link *link)
{
    if (list_has(link)) return;
    if (row->first == NULL) {
        row->first = link;
    } else {
        link->back = row->first->back;
        link->back->next = link;
    }
    row->first->back = link;
}

static inline void row_remove(struct row *row, struct link *link)
{
    if (!list_has(link)) return;
    /* It may have been the only one: then nobody leads backwards to anybody. */
    if (row->first == link) {
        row->first = link->next;
    } else {
        link->back->next = link->next;
    }
    if (link->next != NULL) {
        link->next->back = link->back;
    } else if (row->first != NULL) {
        row->first->back = link->back;
    }
    *link = (struct link){NULL, NULL};
}

static inline struct link *row_first(const struct row *row)
{
    return row->first;
}

/* list_add - at the end, where it is in no list yet. list_remove: where it is in the list. */
void list_add(struct list *, struct link *);
void list_remove(struct list *, struct link *);
/* The steps of LIST_WALK; NULL: no more. list_walk_first is list_walk_begin and list_walk_next. */
void list_walk_begin(struct list_walk *, struct list *);
struct link *list_walk_next(struct list_walk *);
struct link *list_walk_first(struct list_walk *, struct list *);
