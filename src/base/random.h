/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * random.h - random bytes of the system, fetched some thousand at a time
 *
 * After a fork, parent and child must not hand out the same bytes. So the stock of bytes and its count lie in memory
 * that the kernel zeroes in a child (MADV_WIPEONFORK): the child's stock is empty. Bytes that were handed out are
 * wiped. If the system has no such memory, each draw asks the system.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct system;

struct random {
    struct random_page *page; /* NULL: not needed yet, or not available */
    bool without;             /* such memory is not available */
};

/* random_draw - write fresh bytes to `ret`. Returns 0, or -1 when the system has none. Blocks while a system that has
 * just booted has none yet. */
int random_draw(struct random *, struct system *, void *ret, size_t size);
/* random_clear - wipe and free the stock; a zeroed struct is fine. */
void random_clear(struct random *, struct system *);
