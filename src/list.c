/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * list.c - the lists of a client that a lock can be in
 */
#include "lock.h"

void list_add(struct list *list, struct quorlock *lock, enum lock_list which)
{
    struct link *link = &lock->links[which];

    if (link->in) return;
    *link = (struct link){.prev = list->last, .in = true};
    if (list->last != NULL) {
        list->last->links[which].next = lock;
    } else {
        list->first = lock;
    }
    list->last = lock;
    list->count++;
}

void list_remove(struct list *list, struct quorlock *lock, enum lock_list which)
{
    struct link *link = &lock->links[which];

    if (!link->in) return;
    if (link->prev != NULL) {
        link->prev->links[which].next = link->next;
    } else {
        list->first = link->next;
    }
    if (link->next != NULL) {
        link->next->links[which].prev = link->prev;
    } else {
        list->last = link->prev;
    }
    *link = (struct link){0};
    list->count--;
}
