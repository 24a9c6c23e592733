/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/statistics.h"

#include <stddef.h>
#include <string.h>

#include "base/caller.h"
#include "runtime/nodes.h"

struct quorlock_statistics statistics_read(struct statistics *statistics, struct locks *locks)
{
    const struct counts *counts = &locks->claims.counts;
    struct runtime *runtime = locks->runtime;

    for (size_t i = 0; i < COUNTS_STATUSES; i++) {
        statistics->acquires[i] = histogram_view(&counts->acquires[i]);
        statistics->acquires_at[i] = &statistics->acquires[i];
    }
    statistics->holds = histogram_view(&counts->holds);
    for (uint32_t i = 0; i < runtime->n_nodes; i++) {
        statistics->round_trips[i] = histogram_view(&runtime->nodes[i].round_trips);
        statistics->nodes[i] = nodes_statistics(runtime, i);
        statistics->nodes[i].round_trips = &statistics->round_trips[i];
        statistics->nodes_at[i] = &statistics->nodes[i];
    }
    return (struct quorlock_statistics){.acquires = statistics->acquires_at,
                                        .n_acquires = COUNTS_STATUSES,
                                        .holds = &statistics->holds,
                                        .losses = counts->losses,
                                        .n_losses = COUNTS_LOSSES,
                                        .renewals = counts->renewals,
                                        .renewals_failed = counts->renewals_failed,
                                        .degradations = counts->degradations,
                                        .held = counts->held,
                                        .degraded = counts->degraded,
                                        .waiting = counts->waiting,
                                        .in_flight = runtime->in_flight,
                                        .nodes = statistics->nodes_at,
                                        .n_nodes = runtime->n_nodes};
}

int statistics_give(struct statistics *statistics, struct locks *locks, struct quorlock_statistics *ret)
{
    struct runtime *runtime = locks->runtime;
    struct quorlock_statistics read;
    /* The size of the struct in the first release. It never changes, even when members are added. */
    size_t least = offsetof(struct quorlock_statistics, n_nodes) + sizeof(ret->n_nodes);
    size_t size;
    int status;

    if (ret == NULL)
        return runtime_fail(runtime, QUORLOCK_ERR_INVAL, "ret is NULL: there is no place for the statistics");
    size = ret->size;
    status = caller_check(least, sizeof(*ret), ret, size, "quorlock_statistics", &runtime->error);
    if (status != 0) return status;
    read = statistics_read(statistics, locks);
    read.size = size;
    memcpy(ret, &read, size < sizeof(read) ? size : sizeof(read));
    return 0;
}
