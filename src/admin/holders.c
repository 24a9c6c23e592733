/* SPDX-License-Identifier: BSD-3-Clause */
#include "admin/holders.h"

#include "redis/dialect/others.h"
#include "runtime/owner.h"

void holders_clear(struct holders *holders, const struct alloc *alloc)
{
    for (size_t i = 0; i < holders->n; i++) alloc_free(alloc, holders->names[i]);
    alloc_free(alloc, holders->all);
    alloc_free(alloc, holders->places);
    alloc_free(alloc, holders->names);
    *holders = (struct holders){0};
}

/* holders_add - add one; false: out of memory. */
static bool holders_add(struct holders *holders, const struct alloc *alloc, const struct other *other)
{
    struct quorlock_holder *ret = &holders->all[holders->n];
    char *name = owner_copy(alloc, other->holder, other->holder_length);

    if (name == NULL) return false;
    *ret = (struct quorlock_holder){.kind = other->kind == OTHER_SLOT     ? QUORLOCK_HOLDER_SLOT
                                            : other->kind == OTHER_READER ? QUORLOCK_HOLDER_READER
                                                                          : QUORLOCK_HOLDER_WAITS,
                                    .holder = name,
                                    .ttl_ms = other->ttl_ms,
                                    .fence = other->fence,
                                    .slot = other->kind == OTHER_SLOT ? other->number : QUORLOCK_SLOT_NONE,
                                    .place = other->kind == OTHER_SLOT ? 0 : other->number,
                                    .shared = other->kind == OTHER_READER || other->kind == OTHER_READER_WAITS};
    holders->names[holders->n] = name;
    holders->places[holders->n++] = ret;
    return true;
}

bool holders_read(struct holders *holders, const struct alloc *alloc, const struct node_reply *reply)
{
    const char *begin = reply->others, *end, *at = begin;
    struct other other;
    size_t n = 0;

    holders_clear(holders, alloc);
    if (begin == NULL) return true;
    end = begin + reply->others_length;
    while (others_next(&at, end, &other)) {
        if (other.kind == OTHER_PERMITS) holders->permits = other.number;
        n += other.kind != OTHER_PERMITS;
    }
    if (n == 0) return true;
    holders->all = alloc_zero(alloc, n * sizeof(*holders->all));
    holders->places = alloc_zero(alloc, n * sizeof(void *));
    holders->names = alloc_zero(alloc, n * sizeof(char *));
    if (holders->all == NULL || holders->places == NULL || holders->names == NULL) goto failed;
    for (at = begin; others_next(&at, end, &other);)
        if (other.kind != OTHER_PERMITS && !holders_add(holders, alloc, &other)) goto failed;
    return true;
failed:
    holders_clear(holders, alloc);
    return false;
}
