/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * modes.c - how long users wait in the scenes of the plan: readers and writers for each other, and users of a name for
 * a permit
 */
#include <inttypes.h>
#include <string.h>

#include "world.h"

#define RUNS 6u /* of each scene */

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

/* Of users who have the same bound. */
struct waits {
    uint64_t longest_us, most_us;
    uint32_t users, grants;
    uint8_t shared, permits;
};

static bool belongs(const struct waits *waits, const struct plan_actor *actor)
{
    return waits->users == 0 || (waits->most_us == actor->course.most_us && waits->shared == actor->shared);
}

/* Users of one kind stand side by side. */
static uint32_t note(const struct world *world, struct waits *waits)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < world->plan->n_actors; i++) {
        const struct actor *actor = &world->actors[i];

        if (i > 0 && !belongs(&waits[n], actor->plan)) n++;
        waits[n].shared = actor->plan->shared;
        waits[n].permits = (uint8_t)actor->plan->options.permits;
        waits[n].most_us = actor->plan->course.most_us;
        waits[n].users++;
        waits[n].grants += actor->n_grants;
        if (actor->longest_us > waits[n].longest_us) waits[n].longest_us = actor->longest_us;
    }
    return n + 1;
}

static void print(const struct world *world, const char *name, const struct waits *waits, FILE *out)
{
    const char *what = waits->shared != 0 ? "readers" : "writers";
    double trip_us = (double)world->plan->round_trip_us;

    (void)fprintf(out, "%-50s %5u %-8s %7u %9.2f %8.1f", name, waits->users, waits->permits != 0 ? "permits" : what,
                  waits->grants, (double)waits->longest_us / 1000, (double)waits->longest_us / trip_us);
    if (waits->most_us != 0)
        (void)fprintf(out, " %9.2f\n", (double)waits->most_us / 1000);
    else
        (void)fputs("         -\n", out);
}

/* Whose wait is judged must have been granted, too. */
static bool play(struct world *world, uint64_t seed, FILE *out)
{
    static struct plan plan;
    static struct totals ignored;
    const struct shrunk nothing = {0};
    struct waits waits[PLAN_ACTORS_MAX] = {{0}};
    uint32_t n;
    bool good;

    plan_make(&plan, seed, BIAS_SCENES, 0);
    good = world_run(world, &plan, &ignored);
    n = note(world, waits);
    for (uint32_t i = 0; i < n; i++) {
        print(world, i == 0 ? plan_scene_name(seed) : "", &waits[i], out);
        good &= waits[i].most_us == 0 || waits[i].grants >= waits[i].users;
    }
    if (!good) shrink_report(world, &plan, BIAS_SCENES, &nothing, out);
    return good;
}

bool modes_table(struct world *world, FILE *out)
{
    bool good = true;

    (void)fprintf(out, "%-50s %5s %-8s %7s %9s %8s %9s\n", "longest waits", "users", "", "grants", "ms", "trips",
                  "bound, ms");
    for (uint64_t scene = 0; scene < plan_scenes(); scene++) {
        bool held = true;

        for (uint64_t run = 0; run < RUNS && held; run++) held = play(world, scene + run * plan_scenes(), out);
        good &= held;
    }
    return good;
}
