/* SPDX-License-Identifier: BSD-3-Clause */
/* holders.h - of one node's answer: the slots, readers and waiting clients of a name, as reports have them */
#pragma once

#include <stdbool.h>

#include <quorlock/quorlock.h>

#include "base/alloc.h"
#include "redis/dialect/request.h"

struct holders {
    uint32_t permits;
    struct quorlock_holder *all;
    const struct quorlock_holder **places; /* of each of them */
    char **names;
    size_t n;
};

/* holders_read - takes them from a reply in place of the former ones. Where memory is short there are none, and it is
 * false. */
bool holders_read(struct holders *, const struct alloc *, const struct node_reply *);
void holders_clear(struct holders *, const struct alloc *);
