/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock/spare.h"

struct spare_block {
    struct spare_block *next;
};

void *spare_take(struct spare *spare)
{
    struct spare_block *block = spare->first;

    if (block == NULL) return NULL;
    spare->first = block->next;
    spare->count--;
    return block;
}

bool spare_keep(struct spare *spare, void *block)
{
    struct spare_block *kept = block;

    if (kept == NULL) return false;
    if (spare->count == spare->most) {
        alloc_free(spare->alloc, kept);
        return false;
    }
    kept->next = spare->first;
    spare->first = kept;
    spare->count++;
    return true;
}

void spare_clear(struct spare *spare)
{
    while (spare->count > 0) alloc_free(spare->alloc, spare_take(spare));
}
