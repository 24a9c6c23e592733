/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * listed.h - what a listed lock is, by what each node has at its key; pure functions
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <quorlock/quorlock.h>

#include "base/protocol.h"
#include "redis/lister.h"

/* What one node has at a key. */
struct listed_there {
    char *holder; /* NULL: nothing */
    int64_t ttl_ms;
    uint32_t number; /* of readers; of permits */
    enum lister_kind kind;
};

/* listed_fits - match a glob as Redis does. SCAN cannot: its pattern also finds keys with something in front. */
bool listed_fits(const char *pattern, const char *text);
/* listed_judge - describe the holder that is on most nodes: on how many, and what a quorum of them has at least. Key
 * and slot stay 0. Without a holder `nodes` is 0. */
void listed_judge(const struct listed_there *, uint32_t n_nodes, uint32_t quorum, struct quorlock_listed *ret);
/* listed_state - return the enum quorlock_list_state of a node that has ended with this fault. */
int listed_state(enum fault);
