/* SPDX-License-Identifier: BSD-3-Clause */
/* statistics.h - the counters of a client, for its caller */
#pragma once

#include "lock/lock.h"

/* The memory behind the pointers of a struct quorlock_statistics. */
struct statistics {
    struct quorlock_histogram acquires[COUNTS_STATUSES], holds, round_trips[QUORLOCK_NODES_MAX];
    struct quorlock_node_statistics nodes[QUORLOCK_NODES_MAX];
    const struct quorlock_histogram *acquires_at[COUNTS_STATUSES];
    const struct quorlock_node_statistics *nodes_at[QUORLOCK_NODES_MAX];
};

/* statistics_read - return the present counters. */
struct quorlock_statistics statistics_read(struct statistics *, struct locks *);
/* statistics_give - implement quorlock_client_statistics. */
int statistics_give(struct statistics *, struct locks *, struct quorlock_statistics *ret);
