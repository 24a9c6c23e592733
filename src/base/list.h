/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * list.h - lists in the order of coming, over the tail queues of <sys/queue.h>: with a count, and with walks
 * that survive removal. A place in a list is embedded in what is listed. A zeroed list, or link, is ready for
 * use.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

struct link {
    TAILQ_ENTRY(link) at; /* outside of a list zeroed; inside, something points to it */
};

struct list_walk;

struct list {
    TAILQ_HEAD(link_head, link) links;
    size_t count;
    struct list_walk *walks; /* under way */
};

/* A list that is small: it has no count, and knows no walks. Backwards its links go in a circle, so that the first one
 * leads to the last. */
struct row {
    struct link *first;
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
    return TAILQ_FIRST(&list->links);
}

static inline struct link *list_next(const struct link *link)
{
    return TAILQ_NEXT(link, at);
}

static inline bool list_has(const struct link *link)
{
    return link->at.tqe_prev != NULL;
}

/* row_add, row_remove, row_first - as for a list. */
static inline void row_add(struct row *row, struct link *link)
{
    struct link **end = row->first != NULL ? row->first->at.tqe_prev : &row->first;

    if (list_has(link)) return;
    *end = link;
    link->at.tqe_prev = end;
    row->first->at.tqe_prev = &link->at.tqe_next;
}

static inline void row_remove(struct row *row, struct link *link)
{
    struct link *next = link->at.tqe_next;

    if (!list_has(link)) return;
    if (row->first == link) {
        row->first = next;
    } else {
        *link->at.tqe_prev = next;
        if (next == NULL) next = row->first;
    }
    if (next != NULL) next->at.tqe_prev = link->at.tqe_prev;
    *link = (struct link){{NULL, NULL}};
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
