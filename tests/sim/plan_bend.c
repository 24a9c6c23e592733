/* SPDX-License-Identifier: BSD-3-Clause */
/* plan_bend.c - the shape of a run in which one kind of situation matters */
#include "parts/rng.h"
#include "plan.h"

#define MS UINT64_C(1000)

static void bend_calm(struct plan *plan, struct rng *rng)
{
    static const uint8_t contenders[] = {2, 3, 10, 30};

    plan->n_servers = rng_one_in(rng, 2) ? 3 : 5;
    plan->n_keys = 1;
    plan->n_machines = plan->n_actors = contenders[rng_below(rng, rng_one_in(rng, 8) ? 4 : 3)];
    plan->lease_ms = 500;
    plan->max_lease_ms = 2 * plan->lease_ms;
    plan->active_us = 3 * MS * plan->lease_ms;
    plan->service_us = 2;
    plan->split_one_in = 0;
    plan->turns = plan->calm = true;
}

static void bend_many(struct plan *plan, struct rng *rng, uint32_t least, uint32_t most)
{
    plan->n_keys = 1;
    plan->n_machines = plan->n_actors = (uint32_t)rng_between(rng, least, most);
    plan->lease_ms = (uint32_t)rng_between(rng, 200, 300);
    plan->max_lease_ms = 2 * plan->lease_ms;
    plan->active_us = plan->lease_ms * MS;
}

static void bend_flood(struct plan *plan, struct rng *rng)
{
    plan->n_flood = (uint32_t)rng_between(rng, 100, 3000);
    plan->n_machines = (uint32_t)rng_between(rng, 1, 2);
    plan->lease_ms = (uint32_t)rng_between(rng, 5, 30) * 1000;
    plan->max_lease_ms = 30000;
    plan->active_us = plan->lease_ms * MS / 2;
}

static void bend_members(struct plan *plan, struct rng *rng)
{
    if (plan->lease_ms > 1000) plan->lease_ms = 500;
    plan->max_lease_ms = (uint32_t)(plan->lease_ms * rng_between(rng, 2, 4));
    plan->active_us = plan->lease_ms * MS * rng_between(rng, 12, 24);
}

/* What was not released is still there in the end. */
static void bend_debts(struct plan *plan, struct rng *rng)
{
    plan->lease_ms = (uint32_t)rng_between(rng, 10, 20) * 1000;
    plan->max_lease_ms = 30000;
    plan->pace_us = rng_between(rng, 10, 100) * MS;
    plan->active_us = plan->pace_us * rng_between(rng, 4, 16);
}

/* Requests are given up while packets are lost, and come late; what they leave does not end by itself in time. */
static void bend_packets(struct plan *plan, struct rng *rng)
{
    plan->lease_ms = (uint32_t)rng_between(rng, 40, 60) * 1000;
    plan->max_lease_ms = 2 * plan->lease_ms;
    plan->pace_us = rng_between(rng, 300, 1500) * MS;
    plan->active_us = rng_between(rng, 6, 16) * 1000 * MS;
    plan->late_us = rng_between(rng, 1, 8) * 1000 * MS;
    plan->n_keys = (uint32_t)rng_between(rng, 1, 3);
}

static void bend_nests(struct plan *plan, struct rng *rng)
{
    plan->n_keys = plan->n_machines = 1;
    plan->n_actors = (uint32_t)rng_between(rng, 4, 10);
    plan->lease_ms = (uint32_t)rng_between(rng, 200, 400);
    plan->max_lease_ms = 4 * plan->lease_ms;
    plan->active_us = plan->lease_ms * MS * rng_between(rng, 3, 8);
}

static void bend_beat(struct plan *plan, struct rng *rng)
{
    plan->n_machines = (uint32_t)rng_between(rng, 1, 3);
    plan->n_actors = (uint32_t)rng_between(rng, 8, 24);
    plan->n_keys = PLAN_KEYS_MAX;
}

static void bend_reconnects(struct plan *plan, struct rng *rng)
{
    plan->n_machines = (uint32_t)rng_between(rng, 1, 2);
    plan->n_actors = (uint32_t)rng_between(rng, 8, 16);
    plan->n_keys = PLAN_KEYS_MAX;
    plan->n_flood = (uint32_t)rng_between(rng, 10, 40);
    plan->lease_ms = 400;
    plan->max_lease_ms = 2 * plan->lease_ms;
    plan->active_us = 1500 * MS;
    plan->service_us = 100;
}

/* What is to come too late is often on its way: a long one, in a short lease. */
static void bend_far(struct plan *plan, struct rng *rng)
{
    plan->lease_ms = (uint32_t)rng_between(rng, 200, 400);
    plan->max_lease_ms = plan->lease_ms * (uint32_t)rng_between(rng, 2, 4);
    plan->active_us = plan->lease_ms * MS * rng_between(rng, 4, 8);
    plan->late_us = plan->lease_ms * MS * rng_between(rng, 1, 8) / 4;
    plan->far = true;
}

/* Many users of few keys. */
static void bend_modes(struct plan *plan, struct rng *rng, uint32_t keys_most)
{
    plan->n_keys = (uint32_t)rng_between(rng, 1, keys_most);
    plan->n_machines = (uint32_t)rng_between(rng, 2, 5);
    plan->n_actors = (uint32_t)rng_between(rng, 4, 12);
    plan->lease_ms = (uint32_t)rng_between(rng, 200, 600);
    plan->max_lease_ms = plan->lease_ms * (uint32_t)rng_between(rng, 2, 4);
    plan->active_us = plan->lease_ms * MS * rng_between(rng, 4, 10);
    plan->turns = rng_one_in(rng, 2);
}

void plan_bend(struct plan *plan, struct rng *rng)
{
    enum plan_bias bias = plan->bias;

    if (bias == BIAS_NONE) return;
    plan->outside = plan->counters_void = false;
    switch (bias) {
    case BIAS_LATE_EXTEND: bend_far(plan, rng); break;
    case BIAS_LATE_RENEWAL:
        bend_far(plan, rng);
        plan->n_keys = (uint32_t)rng_between(rng, 3, PLAN_KEYS_MAX);
        plan->n_actors = (uint32_t)rng_between(rng, 5, 8);
        break;
    case BIAS_LOSS:
    case BIAS_TOKENS_LOST: plan->active_us = plan->lease_ms * MS * rng_between(rng, 8, 16); break;
    case BIAS_ELECTION:
        plan->lease_ms = (uint32_t)rng_between(rng, 400, 1000);
        plan->max_lease_ms = 2 * plan->lease_ms;
        plan->active_us = plan->lease_ms * MS * rng_between(rng, 6, 12);
        plan->n_machines = (uint32_t)rng_between(rng, 3, 5);
        plan->n_actors = 2;
        break;
    case BIAS_TWINS:
        plan->n_servers = 3;
        plan->n_keys = 1;
        plan->n_machines = (uint32_t)rng_between(rng, 2, 4);
        break;
    case BIAS_TOKENS:
        bend_far(plan, rng);
        plan->keeps_counters = true;
        plan->n_servers = 3;
        plan->n_keys = 1;
        plan->n_machines = (uint32_t)rng_between(rng, 3, 4);
        plan->n_actors = plan->n_machines;
        plan->max_lease_ms = 4 * plan->lease_ms;
        plan->active_us = plan->lease_ms * MS * rng_between(rng, 8, 16);
        break;
    case BIAS_CROWD:
        bend_many(plan, rng, 20, PLAN_MACHINES_MAX);
        plan->service_us = 1000;
        plan->turns = true;
        break;
    case BIAS_QUEUE:
        bend_many(plan, rng, 8, 16);
        plan->turns = true;
        break;
    case BIAS_CALM:
    case BIAS_FROZEN:
    case BIAS_ODD: bend_calm(plan, rng); break;
    case BIAS_FARTHER:
        bend_calm(plan, rng);
        plan->n_machines = plan->n_actors = 10;
        break;
    case BIAS_PASSWORDS:
    case BIAS_LIVENESS: plan->turns = true; break;
    case BIAS_PERMITS: bend_modes(plan, rng, 1); break;
    case BIAS_SHARED: bend_modes(plan, rng, 2); break;
    case BIAS_OUTSIDE:
        plan->outside = true;
        plan->counters_void = rng_one_in(rng, 2);
        break;
    case BIAS_FLOOD: bend_flood(plan, rng); break;
    case BIAS_MEMBERS: bend_members(plan, rng); break;
    case BIAS_RECONNECTS: bend_reconnects(plan, rng); break;
    case BIAS_BEAT: bend_beat(plan, rng); break;
    case BIAS_LIVES:
        plan->n_machines = (uint32_t)rng_between(rng, 1, 2);
        plan->n_actors = (uint32_t)rng_between(rng, 4, 12);
        break;
    case BIAS_DEBTS: bend_debts(plan, rng); break;
    case BIAS_NESTS: bend_nests(plan, rng); break;
    case BIAS_PACKETS: bend_packets(plan, rng); break;
    default: break;
    }
}
