/* SPDX-License-Identifier: BSD-3-Clause */
/* plan_sets.c - which servers are whose nodes, before an operator changes that and afterwards */
#include <string.h>

#include "parts/rng.h"
#include "plan.h"

static void fill(struct plan_set *set, uint32_t n, uint32_t max_lease_ms)
{
    *set = (struct plan_set){.n = n, .max_lease_ms = max_lease_ms};
    for (uint32_t i = 0; i < n; i++) set->servers[i] = (uint8_t)i;
}

/* So many leave, so many others join. Server 0 always stays. */
static void move_servers(struct plan *plan, uint32_t leave, uint32_t join)
{
    struct plan_set *now = &plan->sets[1];
    uint32_t n = plan->sets[0].n;

    now->n = n - leave + join;
    for (uint32_t i = 0; i < join; i++) now->servers[n - leave + i] = (uint8_t)(n + i);
    plan->n_servers = n + join;
}

static void draw_move(struct plan *plan, struct rng *rng)
{
    uint32_t some = (uint32_t)rng_between(rng, 1, 2);

    switch (rng_below(rng, 6)) {
    case 0: move_servers(plan, 0, some); break;
    case 1: move_servers(plan, plan->sets[0].n == 5 ? some : 0, plan->sets[0].n == 5 ? 0 : 2); break;
    case 2:
    case 3: move_servers(plan, 1, 1); break;
    case 4: move_servers(plan, some, some); break;
    default: break; /* only other settings */
    }
}

static void draw_settings(struct plan *plan, struct rng *rng)
{
    uint32_t less_ms = (uint32_t)(plan->lease_ms * rng_between(rng, 4, 7) / 4);
    bool same = plan->sets[1].n == plan->sets[0].n && plan->n_servers == plan->sets[0].n;
    bool renamed = rng_one_in(rng, 3);
    bool changed = rng_one_in(rng, 3);

    plan->sets[1].renamed = renamed || (same && !changed);
    if (changed) plan->sets[rng_below(rng, 2)].max_lease_ms = less_ms;
}

void plan_draw_sets(struct plan *plan, struct rng *rng)
{
    bool changes = plan->bias == BIAS_MEMBERS;

    plan->operator_again_us = 300000;
    if (changes) plan->n_servers = rng_one_in(rng, 2) ? 3 : 5;
    for (uint32_t i = 0; i < 2; i++) fill(&plan->sets[i], plan->n_servers, plan->max_lease_ms);
    plan->changes = changes;
    if (!changes) return;
    draw_move(plan, rng);
    draw_settings(plan, rng);
}

/* Around that time a quorum of the old nodes takes no writes: what is done is half done. */
static void draw_half(struct plan *plan, struct rng *rng, uint64_t at_us)
{
    uint64_t lease_us = plan->lease_ms * UINT64_C(1000);
    uint64_t early_us = rng_below(rng, lease_us);

    for (uint32_t i = 0; i <= plan->sets[0].n / 2 && plan->n_faults < PLAN_FAULTS_MAX; i++) {
        plan->faults[plan->n_faults++] = (struct plan_fault){.kind = rng_one_in(rng, 2) ? FAULT_FULL : FAULT_MISCONF,
                                                             .at_us = at_us > early_us ? at_us - early_us : 0,
                                                             .for_us = rng_between(rng, early_us, early_us + lease_us),
                                                             .server = (uint8_t)i};
    }
}

void plan_draw_change(struct plan *plan, struct rng *rng)
{
    bool hasty = rng_one_in(rng, 2) && plan->sets[1].max_lease_ms >= plan->sets[0].max_lease_ms;
    uint64_t at_us = rng_below(rng, plan->active_us / 2);
    bool half = rng_one_in(rng, 3);

    if (!plan->changes || plan->n_faults == PLAN_FAULTS_MAX) return;
    /* Old and new never both have a quorum, as long as no guard is lost; but for a shorter max_lease. */
    plan->hasty = hasty && !plan->loses_memory;
    plan->faults[plan->n_faults++] = (struct plan_fault){.kind = FAULT_RECONFIGURE, .at_us = at_us};
    if (rng_one_in(rng, 2)) plan->operator_again_us = 4000 * (uint64_t)plan->max_lease_ms;
    if (half) draw_half(plan, rng, at_us);
}

static void print_set(const struct plan_set *set, FILE *out)
{
    (void)fputs(" nodes", out);
    for (uint32_t i = 0; i < set->n; i++) (void)fprintf(out, " %u", set->servers[i]);
    (void)fprintf(out, ", max_lease %u ms%s", set->max_lease_ms, set->renamed ? ", another name" : "");
}

void plan_print_sets(const struct plan *plan, FILE *out)
{
    if (!plan->changes) return;
    (void)fputs("    clients of", out);
    print_set(&plan->sets[0], out);
    (void)fputs("; later of", out);
    print_set(&plan->sets[1], out);
    (void)fputs(plan->hasty ? ", some too early\n" : "\n", out);
}

bool plan_leaves(const struct plan *plan, uint32_t server)
{
    bool before = false, after = false;

    for (uint32_t i = 0; i < plan->sets[0].n; i++) before |= plan->sets[0].servers[i] == server;
    for (uint32_t i = 0; i < plan->sets[1].n; i++) after |= plan->sets[1].servers[i] == server;
    return before && !after;
}
