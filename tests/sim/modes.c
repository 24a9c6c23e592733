/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * modes.c - how long users wait in the scenes of the plan: readers and writers for each other, and users of a name for
 * a permit
 */
#include <inttypes.h>
#include <string.h>

#include "judge.h"
#include "shrink.h"

#include "modes.h"

#define RUNS 2u /* of each scene */

static bool is_late(const struct actor *actor)
{
    uint64_t most_us = actor->plan->course.most_us;

    return most_us != 0 && actor->longest_us > most_us;
}

void modes_waited(struct actor *actor)
{
    uint64_t waited_us = world_now(actor->world) - actor->acquire_since_us;

    if (actor->world->phase != PHASE_FAULTS) return;
    if (waited_us > actor->longest_us) actor->longest_us = waited_us;
    if (!is_late(actor)) return;
    judge_violated(actor->world, I10_FORGOTTEN, "actor %u waits for %" PRIu64 " us, %" PRIu64 " are the bound",
                   actor->index, waited_us, actor->plan->course.most_us);
}

/* ---- the table ---- */

/* Of users of one kind, who stand side by side in the plan. */
struct waits {
    uint64_t longest_us, most_us;
    double trips;
    uint32_t users, grants;
    uint8_t shared, permits;
    bool granted; /* each of them */
};

static bool belongs(const struct waits *waits, const struct plan_actor *actor)
{
    return waits->users == 0 || (waits->most_us == actor->course.most_us && waits->shared == actor->shared);
}

static void add(struct waits *waits, const struct actor *actor)
{
    double trips = (double)actor->longest_us / (double)actor->world->plan->round_trip_us;

    waits->shared = actor->plan->shared;
    waits->permits = (uint8_t)actor->plan->options.permits;
    waits->most_us = actor->plan->course.most_us;
    waits->granted &= actor->n_grants > 0;
    waits->users++;
    waits->grants += actor->n_grants;
    if (actor->longest_us > waits->longest_us) waits->longest_us = actor->longest_us;
    if (trips > waits->trips) waits->trips = trips;
}

static uint32_t sum_up(const struct world *world, struct waits *sums)
{
    struct waits waits[PLAN_ACTORS_MAX] = {{.granted = true}};
    uint32_t n = 0;

    for (uint32_t i = 0; i < world->plan->n_actors; i++) {
        if (!belongs(&waits[n], world->actors[i].plan)) waits[++n].granted = true;
        add(&waits[n], &world->actors[i]);
    }
    for (uint32_t i = 0; i <= n; i++) {
        waits[i].grants += sums[i].grants;
        if (sums[i].longest_us > waits[i].longest_us) waits[i].longest_us = sums[i].longest_us;
        if (sums[i].trips > waits[i].trips) waits[i].trips = sums[i].trips;
        sums[i] = waits[i];
    }
    return n + 1;
}

static void print(const char *name, const struct waits *waits, FILE *out)
{
    const char *what = waits->shared != 0 ? "readers" : "writers";

    (void)fprintf(out, "%-50s %5u %-8s %7u %9.2f %8.1f", name, waits->users, waits->permits != 0 ? "permits" : what,
                  waits->grants, (double)waits->longest_us / 1000, waits->trips);
    if (waits->most_us != 0)
        (void)fprintf(out, " %9.2f\n", (double)waits->most_us / 1000);
    else
        (void)fputs("         -\n", out);
}

/* Whose wait is judged must have been granted, too. */
static bool play(struct world *world, uint64_t scene, FILE *out)
{
    static struct plan plan;
    static struct totals ignored;
    const struct shrunk nothing = {0};
    struct waits waits[PLAN_ACTORS_MAX] = {{0}};
    uint32_t n = 0;
    bool good = true;

    for (uint64_t run = 0; run < RUNS && good; run++) {
        plan_make(&plan, scene + run * plan_scenes(), BIAS_SCENES, 0);
        good = world_run(world, &plan, &ignored);
        n = sum_up(world, waits);
    }
    for (uint32_t i = 0; i < n; i++) {
        print(i == 0 ? plan_scene_name(scene) : "", &waits[i], out);
        good &= waits[i].most_us == 0 || waits[i].granted;
    }
    if (!good) shrink_report(world, &plan, BIAS_SCENES, &nothing, out);
    return good;
}

bool modes_table(struct world *world, FILE *out)
{
    bool good = true;

    (void)fprintf(out, "%-50s %5s %-8s %7s %9s %8s %9s\n", "longest waits", "users", "", "grants", "ms", "trips",
                  "bound, ms");
    for (uint64_t scene = 0; scene < plan_scenes(); scene++) good &= play(world, scene, out);
    return good;
}
