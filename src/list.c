/* SPDX-License-Identifier: BSD-3-Clause */
#include "list.h"

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

void list_remove(struct list *list, struct link *link)
{
    if (!link->in) return;
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
