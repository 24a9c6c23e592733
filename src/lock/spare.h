/* SPDX-License-Identifier: BSD-3-Clause */
/* spare.h - blocks of one size that are kept for the next use: a client's claims */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"

struct spare_block;

struct spare {
    const struct alloc *alloc;
    size_t size, most; /* of a block; how many are kept */
    struct spare_block *first;
    size_t count;
};

/* spare_take - one of those that are kept, or NULL. spare_keep: takes one back; false: it was freed, for enough are
 * there. NULL is fine. spare_clear: frees those that are kept. */
void *spare_take(struct spare *);
bool spare_keep(struct spare *, void *block);
void spare_clear(struct spare *);
