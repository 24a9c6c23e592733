/* SPDX-License-Identifier: BSD-3-Clause */
/* holders.h - the slots, readers and waiting clients of a name in one node's answer */
#pragma once

#include <stdbool.h>

#include <quorlock/quorlock.h>

#include "base/alloc.h"
#include "redis/dialect/request.h"

struct holders {
    uint32_t permits;
    struct quorlock_holder *all;
    const struct quorlock_holder **places; /* pointers to them */
    char **names;
    size_t n;
};

/* holders_read - replace the holders by those of a reply. False: out of memory, and there are none. */
bool holders_read(struct holders *, const struct alloc *, const struct node_reply *);
void holders_clear(struct holders *, const struct alloc *);
