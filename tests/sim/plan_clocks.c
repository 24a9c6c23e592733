/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan_clocks.c - the clocks of machines and servers: how fast they are, and what they show
 *
 * Client and server together stay within the allowance. In half of the runs they are at its edge. The worst case is a
 * slow client with a fast server.
 */
#include "parts/rng.h"
#include "plan.h"

#define MS     UINT64_C(1000)
#define FAR_US 8000u /* one way, at most */

static int64_t draw_error(struct rng *rng, uint64_t most_us)
{
    return (int64_t)rng_between(rng, 0, 2 * most_us) - (int64_t)most_us;
}

/*
 * Wall clocks. Tokens of a server that lost its counters rise by them alone: clients are right to within half a
 * max_lease, servers are not behind by a whole one (the floor is clamped by their clocks). Where counters are lost
 * without a quarantine, only clocks that are right can help.
 */
static void draw_walls(struct plan *plan, struct rng *rng)
{
    uint64_t max_lease_us = plan_shorter_max_lease_ms(plan) * MS;

    for (uint32_t i = 0; i < PLAN_MACHINES_MAX; i++) {
        struct plan_machine *machine = &plan->machines[i];

        machine->wall_error_us = draw_error(rng, max_lease_us / 100 * 45);
        if (!plan->keeps_counters && rng_one_in(rng, 3)) machine->wall_error_us /= 16;
        /* Counters that are kept need no clocks. */
        if (plan->keeps_counters && rng_one_in(rng, 2)) machine->wall_error_us *= 1000;
        if (plan->counters_void) machine->wall_error_us = 0;
    }
    for (uint32_t i = 0; i < PLAN_SERVERS_MAX; i++) {
        int64_t error_us = draw_error(rng, max_lease_us / 100 * 30);

        if (rng_one_in(rng, 4)) error_us = (int64_t)rng_between(rng, 0, 1u << 31) * 10;
        plan->servers[i].wall_us = (uint64_t)((int64_t)PLAN_EPOCH_US + error_us);
    }
}

void plan_clocks(struct plan *plan, struct rng *rng)
{
    static const uint32_t drifts_ppm[] = {10000, 10000, 10000, 1000, 30000};
    uint64_t drift_ppm = plan->drift_ppm = drifts_ppm[rng_below(rng, 5)];
    int32_t for_client = (int32_t)rng_below(rng, drift_ppm - drift_ppm * drift_ppm / 1000000 - 2);
    /* By a client that is slow by c, a server that is fast by f is fast by (c + f) / (1 - c). */
    int32_t for_server = (int32_t)(drift_ppm - drift_ppm * (uint64_t)for_client / 1000000) - for_client - 1;
    bool edge = rng_one_in(rng, 2);

    for (uint32_t i = 0; i < PLAN_MACHINES_MAX; i++) {
        struct plan_machine *machine = &plan->machines[i];

        machine->boot_us = rng_between(rng, 1, 1u << 31) * 100;
        machine->raw_us = rng_one_in(rng, 2) ? machine->boot_us : rng_between(rng, 1, 1u << 31) * 100;
        machine->rate_ppm = (int32_t)rng_between(rng, 0, 2 * (uint64_t)for_client) - for_client;
        if (edge && !rng_one_in(rng, 4)) machine->rate_ppm = -for_client;
    }
    for (uint32_t i = 0; i < PLAN_SERVERS_MAX; i++) {
        struct plan_server *server = &plan->servers[i];

        server->rate_ppm = (int32_t)rng_between(rng, 0, 2 * (uint64_t)for_server) - for_server;
        if (edge && !rng_one_in(rng, 4)) server->rate_ppm = for_server;
        server->delay_us = (uint32_t)rng_between(rng, 40, plan->far ? FAR_US : 1500);
        /* The last answer that a quorum needs comes long after the others. */
        if (plan->bias == BIAS_LATE_RENEWAL && i < plan->n_servers / 2) server->delay_us /= 8;
        if (plan->bias == BIAS_LATE_RENEWAL && i >= plan->n_servers / 2) server->delay_us = FAR_US;
    }
    draw_walls(plan, rng);
}
