/* SPDX-License-Identifier: BSD-3-Clause */
/* spare.h - memory blocks of one size that are kept for the next use */
#pragma once

#include <stddef.h>

#include "base/alloc.h"

struct spare_block;

struct spare {
    const struct alloc *alloc;
    size_t size, most; /* of a block; how many are kept */
    struct spare_block *first;
    size_t count;
};

/* spare_take - return one of the blocks that are kept, or NULL.
 * spare_keep - keep that block, or free it where enough are kept.
 * spare_clear - free the blocks that are kept. */
void *spare_take(struct spare *);
void spare_keep(struct spare *, void *block);
void spare_clear(struct spare *);
