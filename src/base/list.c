/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/list.h"

#include <assert.h>

void list_add(struct list *list, struct link *link)
{
    if (list_has(link)) return;
    bare_list_add(&list->bare, link);
    list->count++;
}

static void pass_over(struct list_walk *walk, struct link *link)
{
    /* The walk would have ended at this link; now it is over. */
    if (walk->next == link && walk->last == link) {
        walk->next = walk->last = NULL;
    } else if (walk->next == link) {
        walk->next = link->next;
    } else if (walk->last == link) {
        walk->last = link->back;
    }
}

void list_remove(struct list *list, struct link *link)
{
    if (!list_has(link)) return;
    for (struct list_walk *walk = list->walks; walk != NULL; walk = walk->outer) pass_over(walk, link);
    bare_list_remove(&list->bare, link);
    list->count--;
}

void list_walk_begin(struct list_walk *walk, struct list *list)
{
    *walk = (struct list_walk){.list = list, .next = list_first(list), .outer = list->walks};
    if (walk->next != NULL) walk->last = walk->next->back;
    list->walks = walk;
}

struct link *list_walk_next(struct list_walk *walk)
{
    struct link *link = walk->next;

    if (link == NULL) {
        assert(walk->list->walks == walk);
        walk->list->walks = walk->outer;
    } else if (link == walk->last) {
        walk->next = walk->last = NULL;
    } else {
        walk->next = list_next(link);
    }
    return link;
}

struct link *list_walk_first(struct list_walk *walk, struct list *list)
{
    list_walk_begin(walk, list);
    return list_walk_next(walk);
}
