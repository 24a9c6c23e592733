/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shrink.c - leaves out faults: half of them, a quarter, one by one, while the same invariant is violated
 */
#include "sim.h"

#include <inttypes.h>
#include <stdlib.h>

static bool still_violated(struct world *world, const struct plan *plan, enum invariant invariant)
{
    static struct totals ignored;

    (void)world_run(world, plan, &ignored);
    return world->violation.invariant == invariant;
}

/* Tries without the faults from .. from + n - 1; true where that went well. */
static bool leave_out(struct world *world, struct plan *plan, uint32_t from, uint32_t n, enum invariant invariant)
{
    bool before[PLAN_FAULTS_MAX];
    bool changed = false;

    for (uint32_t i = 0; i < plan->n_faults; i++) before[i] = plan->faults[i].left_out;
    for (uint32_t i = from; i < from + n && i < plan->n_faults; i++) {
        changed |= !plan->faults[i].left_out;
        plan->faults[i].left_out = true;
    }
    if (!changed) return false;
    if (still_violated(world, plan, invariant)) return true;
    for (uint32_t i = 0; i < plan->n_faults; i++) plan->faults[i].left_out = before[i];
    return false;
}

void shrink_plan(struct world *world, struct plan *plan)
{
    enum invariant invariant = world->violation.invariant;
    bool trace = world->trace;

    world->trace = false;
    for (uint32_t n = (plan->n_faults + 1) / 2; n > 0; n /= 2) {
        bool again = true;

        while (again) {
            again = false;
            for (uint32_t from = 0; from < plan->n_faults; from += n) {
                again |= leave_out(world, plan, from, n, invariant);
            }
        }
    }
    (void)still_violated(world, plan, invariant);
    world->trace = trace;
}

bool shrink_only(struct plan *plan, const char *list)
{
    for (uint32_t i = 0; i < plan->n_faults; i++) plan->faults[i].left_out = true;
    while (*list != '\0') {
        char *end;
        unsigned long index = strtoul(list, &end, 10);

        if (end == list || index >= plan->n_faults || (*end != ',' && *end != '\0')) return false;
        plan->faults[index].left_out = false;
        list = *end == ',' ? end + 1 : end;
    }
    return true;
}

void shrink_report(const struct world *world, const struct plan *plan, enum plan_bias bias, FILE *out)
{
    const char *comma = "";

    (void)fprintf(out,
                  "sim: VIOLATION of %s\n  seed %" PRIu64 ", at %" PRIu64 ".%03" PRIu64 " ms: %s\n"
                  "  %u nodes, quorum %u, %u clients, %u locks%s; faults that it needs:\n",
                  trace_invariant(world->violation.invariant), plan->seed, world->violation.at_us / 1000,
                  world->violation.at_us % 1000, world->violation.text, plan->n_nodes, plan->quorum, plan->n_clients,
                  plan->n_locks, plan->outside ? ", outside of the claim" : "");
    for (uint32_t i = 0; i < plan->n_faults; i++) {
        const struct plan_fault *fault = &plan->faults[i];

        if (fault->left_out) continue;
        (void)fprintf(out, "    %2u: at %" PRIu64 " us: %s (node %u, client %u, for %" PRIu64 " us)\n", i, fault->at_us,
                      plan_fault_text(fault->kind), fault->node, fault->client, fault->for_us);
    }
    (void)fprintf(out, "  replay: sim --seed %" PRIu64, plan->seed);
    if (bias != BIAS_NONE) (void)fprintf(out, " --bias %u", (unsigned)bias);
    (void)fputs(" --trace --only \"", out);
    for (uint32_t i = 0; i < plan->n_faults; i++) {
        if (plan->faults[i].left_out) continue;
        (void)fprintf(out, "%s%u", comma, i);
        comma = ",";
    }
    (void)fputs("\"\n", out);
}
