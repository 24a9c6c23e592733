/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/spare.h"

#include <assert.h>

struct spare_block {
    struct spare_block *next;
};

void *spare_take(struct spare *spare)
{
    struct spare_block *block = spare->first;

    assert((block == NULL) == (spare->count == 0));
    if (block == NULL) return NULL;
    spare->first = block->next;
    spare->count--;
    return block;
}

void spare_keep(struct spare *spare, void *block)
{
    struct spare_block *kept = block;

    assert(spare->size >= sizeof(*kept) && spare->count <= spare->most);
    if (spare->count == spare->most) {
        alloc_free(spare->alloc, kept);
        return;
    }
    kept->next = spare->first;
    spare->first = kept;
    spare->count++;
}

void spare_clear(struct spare *spare)
{
    while (spare->count > 0) alloc_free(spare->alloc, spare_take(spare));
    assert(spare->first == NULL);
}
