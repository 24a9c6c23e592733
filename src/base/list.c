/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/list.h"

#include <assert.h>

void *list_item(struct link *link, size_t offset)
{
    return link == NULL ? NULL : (char *)link - offset;
}

void list_add(struct list *list, struct link *link)
{
    if (link->in) return;
    *link = (struct link){.prev = list->last, .in = true};
    if (list->last != NULL) {
        list->last->next = link;
    } else {
        list->first = link;
    }
    list->last = link;
    list->count++;
}

static void pass_over(struct list_walk *walk, const struct link *link)
{
    /* What stood before the last one is the last one now, or is behind us. */
    if (walk->next == link && walk->last == link) {
        walk->next = walk->last = NULL;
    } else if (walk->next == link) {
        walk->next = link->next;
    } else if (walk->last == link) {
        walk->last = link->prev;
    }
}

void list_remove(struct list *list, struct link *link)
{
    if (!link->in) return;
    for (struct list_walk *walk = list->walks; walk != NULL; walk = walk->outer) pass_over(walk, link);
    if (link->prev != NULL) {
        link->prev->next = link->next;
    } else {
        list->first = link->next;
    }
    if (link->next != NULL) {
        link->next->prev = link->prev;
    } else {
        list->last = link->prev;
    }
    *link = (struct link){0};
    list->count--;
}

void list_walk_begin(struct list_walk *walk, struct list *list)
{
    *walk = (struct list_walk){.list = list, .next = list->first, .last = list->last, .outer = list->walks};
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
        walk->next = link->next;
    }
    return link;
}
