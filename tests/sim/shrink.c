/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shrink.c - shrinks a failing run: leaves out faults, then users, then features, while the same invariant is violated
 *
 * First half of them, then a quarter, and in the end one by one.
 */
#include "shrink.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

/* One way to leave things out of a plan. */
struct cut {
    struct world *world;
    struct plan *plan;
    enum plan_bias bias;
    enum invariant invariant;
    uint32_t without;
};

static bool still_violated(struct cut *cut)
{
    static struct totals ignored;

    (void)world_run(cut->world, cut->plan, &ignored);
    return cut->world->violation.invariant == cut->invariant;
}

static bool *left_out(struct cut *cut, uint32_t i)
{
    struct plan *plan = cut->plan;

    return i < plan->n_faults ? &plan->faults[i].left_out : &plan->actors[i - plan->n_faults].left_out;
}

/* Tries without those from .. from + n - 1; true where that went well. */
static bool leave_out(struct cut *cut, uint32_t from, uint32_t n, uint32_t end)
{
    bool before[PLAN_FAULTS_MAX + PLAN_ACTORS_MAX];
    bool changed = false;

    for (uint32_t i = from; i < end; i++) before[i] = *left_out(cut, i);
    for (uint32_t i = from; i < from + n && i < end; i++) {
        changed |= !*left_out(cut, i);
        *left_out(cut, i) = true;
    }
    if (!changed) return false;
    if (still_violated(cut)) return true;
    for (uint32_t i = from; i < end; i++) *left_out(cut, i) = before[i];
    return false;
}

static void cut_range(struct cut *cut, uint32_t begin, uint32_t end)
{
    for (uint32_t n = (end - begin + 1) / 2; n > 0; n /= 2) {
        for (uint32_t from = begin; from < end; from += n) (void)leave_out(cut, from, n, end);
    }
}

/* A plan without a feature is made anew, with the same left out. */
static bool remake(struct cut *cut, uint32_t without)
{
    static struct plan before;

    before = *cut->plan;
    plan_make(cut->plan, before.seed, cut->bias, without);
    if (cut->plan->n_faults != before.n_faults || cut->plan->n_actors != before.n_actors) return false;
    for (uint32_t i = 0; i < before.n_faults; i++) cut->plan->faults[i].left_out = before.faults[i].left_out;
    for (uint32_t i = 0; i < before.n_actors; i++) cut->plan->actors[i].left_out = before.actors[i].left_out;
    return true;
}

static void cut_features(struct cut *cut)
{
    static struct plan before;

    for (uint32_t i = 0; i < FEATURES; i++) {
        before = *cut->plan;
        if (!plan_has(&before, (enum plan_feature)i)) continue;
        if (remake(cut, cut->without | 1u << i) && still_violated(cut)) {
            cut->without |= 1u << i;
        } else {
            *cut->plan = before;
        }
    }
}

void shrink_plan(struct world *world, struct plan *plan, enum plan_bias bias, struct shrunk *ret)
{
    struct cut cut = {.world = world, .plan = plan, .bias = bias, .invariant = world->violation.invariant};
    uint32_t n = plan->n_faults;
    bool trace = world->trace;

    world->trace = false;
    cut_range(&cut, 0, n);
    cut_range(&cut, n, n + plan->n_actors);
    cut_features(&cut);
    n = plan->n_faults;
    cut_range(&cut, 0, n);
    cut_range(&cut, n, n + plan->n_actors);
    (void)still_violated(&cut);
    world->trace = trace;
    ret->without = cut.without;
}

bool shrink_only(struct plan *plan, const char *list)
{
    for (uint32_t i = 0; i < plan->n_faults; i++) plan->faults[i].left_out = true;
    for (uint32_t i = 0; i < plan->n_actors; i++) plan->actors[i].left_out = strchr(list, 'a') != NULL;
    while (*list != '\0') {
        bool fault = *list == 'f';
        uint32_t most = fault ? plan->n_faults : plan->n_actors;
        char *end;
        unsigned long index;

        if (!fault && *list != 'a') return false;
        index = strtoul(list + 1, &end, 10);
        if (end == list + 1 || index >= most || (*end != ',' && *end != '\0')) return false;
        if (fault)
            plan->faults[index].left_out = false;
        else
            plan->actors[index].left_out = false;
        list = *end == ',' ? end + 1 : end;
    }
    return true;
}

bool shrink_without(const char *list, uint32_t *ret)
{
    *ret = 0;
    while (*list != '\0') {
        char *end;
        unsigned long index = strtoul(list, &end, 10);

        if (end == list || index >= FEATURES || (*end != ',' && *end != '\0')) return false;
        *ret |= 1u << index;
        list = *end == ',' ? end + 1 : end;
    }
    return true;
}

static void print_needs(const struct plan *plan, FILE *out)
{
    for (uint32_t i = 0; i < plan->n_faults; i++) {
        const struct plan_fault *fault = &plan->faults[i];

        if (fault->left_out) continue;
        (void)fprintf(out, "    f%-2u at %" PRIu64 " us: %s (server %u, machine %u, for %" PRIu64 " us)\n", i,
                      fault->at_us, plan_fault_text(fault->kind), fault->server, fault->machine, fault->for_us);
    }
    for (uint32_t i = 0; i < plan->n_actors; i++) {
        const struct plan_actor *actor = &plan->actors[i];

        if (actor->left_out) continue;
        (void)fprintf(out,
                      "    a%-2u of client %u, keys %02x, shared %02x, permits %u, owner %u, lease %u ms, wait %d ms\n",
                      i, actor->client, actor->keys, actor->shared, actor->options.permits, actor->owner,
                      actor->options.lease_ms, (int)actor->options.wait_ms);
    }
    plan_print_sets(plan, out);
    for (uint32_t i = 0; i < FEATURES; i++) {
        if (plan_has(plan, (enum plan_feature)i))
            (void)fprintf(out, "    with %s\n", plan_feature_text((enum plan_feature)i));
    }
}

void shrink_report(const struct world *world, const struct plan *plan, enum plan_bias bias, const struct shrunk *shrunk,
                   FILE *out)
{
    const char *comma = "";

    (void)fprintf(out,
                  "sim: VIOLATION of %s\n  seed %" PRIu64 ", at %" PRIu64 ".%03" PRIu64 " ms: %s\n"
                  "  %u servers, %u machines, %u clients%s; it needs:\n",
                  trace_invariant(world->violation.invariant), plan->seed, world->violation.at_us / 1000,
                  world->violation.at_us % 1000, world->violation.text, plan->n_servers, plan->n_machines,
                  plan->n_clients, plan->outside ? ", outside of the claim" : "");
    print_needs(plan, out);
    (void)fprintf(out, "  replay: sim --seed %" PRIu64, plan->seed);
    if (bias != BIAS_NONE) (void)fprintf(out, " --bias %u", (unsigned)bias);
    (void)fputs(" --trace --only \"", out);
    for (uint32_t i = 0; i < plan->n_faults + plan->n_actors; i++) {
        bool fault = i < plan->n_faults;
        uint32_t number = fault ? i : i - plan->n_faults;

        if (fault ? plan->faults[number].left_out : plan->actors[number].left_out) continue;
        (void)fprintf(out, "%s%c%u", comma, fault ? 'f' : 'a', number);
        comma = ",";
    }
    (void)fputs("\"", out);
    comma = " --without \"";
    for (uint32_t i = 0; i < FEATURES; i++) {
        if ((shrunk->without >> i & 1u) == 0) continue;
        (void)fprintf(out, "%s%u", comma, i);
        comma = ",";
    }
    (void)fputs(shrunk->without != 0 ? "\"\n" : "\n", out);
}
