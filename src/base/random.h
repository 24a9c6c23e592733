/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * random.h - random bytes of the system, drawn some thousand at a time
 *
 * A fork must not repeat a byte. So what was drawn ahead lies, with the count of it, in memory that is zeroed in a
 * child, which then has nothing ahead; and what was handed out is wiped. Where the system has no such memory, nothing
 * is drawn ahead.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct system;

struct random {
    struct random_page *page; /* NULL: none is needed yet, or there is none */
    bool without;             /* there is none */
};

/* random_draw - fresh bytes. 0, or -1: the system has none. Waits where it has none yet. */
int random_draw(struct random *, struct system *, void *ret, size_t size);
/* random_clear - of a zeroed one, too. */
void random_clear(struct random *, struct system *);
