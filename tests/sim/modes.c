/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * modes.c - how long readers and writers wait for each other, and users of a name for a permit, where all do the same
 * again and again
 *
 * Nothing fails but processes that are killed on purpose, so each wait has a bound: what must end before, and the time
 * in which that is noticed.
 */
#include <inttypes.h>
#include <string.h>

#include "world.h"

#define SCENE_RUNS 6u
#define PARTS_MAX  3u
#define LEASE_MS   2000u
#define ACTIVE_US  (30000 * MS)
#define NEVER_ENDS (UINT64_C(3600000) * MS)
/* To be told of a release, by a notice, and to ask. */
#define NOTICED_US (100 * MS)
/* So long readers who were refused have their turn before the next writer, at most; and a writer who is gone keeps
 * readers out for no longer. */
#define TURN_MS 3000u

/* Users of one kind. Their times are shifted a little from one to the next. */
struct part {
    uint32_t n;
    uint8_t keys, shared, permits;
    uint64_t begin_us, hold_us, rest_us;
    uint64_t most_us; /* that one of them may wait; 0: not judged */
    double most_trips;
    uint64_t killed_us; /* 0: not */
};

struct scene {
    const char *name;
    struct part parts[PARTS_MAX];
};

static const struct scene scenes[] = {
    {"endless readers, one writer",
     {{.n = 6, .keys = 1, .shared = 1, .hold_us = 400 * MS, .rest_us = 7 * MS, .most_us = 500 * MS},
      {.n = 1, .keys = 1, .begin_us = 1000 * MS, .hold_us = 100 * MS, .rest_us = 300 * MS, .most_us = 500 * MS}}},
    {"endless writers, one reader",
     {{.n = 6, .keys = 1, .hold_us = 100 * MS, .rest_us = 1 * MS},
      {.n = 1,
       .keys = 1,
       .shared = 1,
       .begin_us = 1000 * MS,
       .hold_us = 50 * MS,
       .rest_us = 300 * MS,
       .most_us = 200 * MS + NOTICED_US}}},
    {"endless readers and endless writers",
     {{.n = 4, .keys = 1, .shared = 1, .hold_us = 150 * MS, .rest_us = 3 * MS, .most_us = TURN_MS * MS},
      {.n = 4, .keys = 1, .hold_us = 100 * MS, .rest_us = 1 * MS, .most_us = 4 * TURN_MS * MS}}},
    {"a writer that dies while it waits",
     {{.n = 3, .keys = 1, .shared = 1, .hold_us = 400 * MS, .rest_us = 50 * MS, .most_us = TURN_MS * MS},
      {.n = 1, .keys = 1, .begin_us = 5000 * MS, .hold_us = 100 * MS, .killed_us = 5100 * MS}}},
    {"a reader that dies holding",
     {{.n = 1, .keys = 1, .shared = 1, .hold_us = NEVER_ENDS, .killed_us = 5000 * MS},
      {.n = 1,
       .keys = 1,
       .begin_us = 5100 * MS,
       .hold_us = 100 * MS,
       .rest_us = 100 * MS,
       .most_us = LEASE_MS * MS + 1000 * MS}}},
    {"two lists in crossed modes",
     {{.n = 2, .keys = 3, .shared = 1, .hold_us = 50 * MS, .rest_us = 1 * MS, .most_us = 4 * TURN_MS * MS},
      {.n = 2, .keys = 3, .shared = 2, .hold_us = 50 * MS, .rest_us = 1 * MS, .most_us = 4 * TURN_MS * MS}}},
    {"the last free permit of five",
     {{.n = 4, .keys = 1, .permits = 5, .hold_us = NEVER_ENDS},
      {.n = 1,
       .keys = 1,
       .permits = 5,
       .begin_us = 1000 * MS,
       .hold_us = 20 * MS,
       .rest_us = 30 * MS,
       .most_trips = 3}}},
    {"five users of five permits",
     {{.n = 5, .keys = 1, .permits = 5, .hold_us = 40 * MS, .rest_us = 9 * MS, .most_trips = 5}}},
    {"ten users of five permits",
     {{.n = 10, .keys = 1, .permits = 5, .hold_us = 40 * MS, .rest_us = 5 * MS, .most_us = 1000 * MS}}},
    {"a holder of a permit that dies",
     {{.n = 1, .keys = 1, .permits = 1, .hold_us = NEVER_ENDS, .killed_us = 5000 * MS},
      {.n = 1,
       .keys = 1,
       .permits = 1,
       .begin_us = 5100 * MS,
       .hold_us = 100 * MS,
       .rest_us = 100 * MS,
       .most_us = LEASE_MS * MS + 1000 * MS}}},
};

void modes_waited(struct actor *actor)
{
    uint64_t waited_us = world_now(actor->world) - actor->acquire_since_us;

    if (actor->world->phase == PHASE_FAULTS && waited_us > actor->longest_us) actor->longest_us = waited_us;
}

/* ---- the plan of a scene ---- */

static void add_actor(struct plan *plan, const struct part *part, uint32_t nth, bool fencing)
{
    struct plan_actor *actor = &plan->actors[plan->n_actors];
    uint64_t shift_us = (uint64_t)nth * (part->hold_us < ACTIVE_US ? part->hold_us / part->n : MS);

    *actor = (struct plan_actor){
        .client = (uint8_t)plan->n_actors, .keys = part->keys, .shared = part->shared, .course = {.set = true}};
    actor->options = (struct quorlock_options){.size = sizeof(actor->options),
                                               .lease_ms = LEASE_MS,
                                               .wait_ms = QUORLOCK_WAIT_FOREVER,
                                               .fencing = fencing,
                                               .permits = part->permits};
    actor->course.begin_us = part->begin_us + shift_us;
    actor->course.hold_us = part->hold_us;
    actor->course.rest_us = part->rest_us + nth * MS;
    if (part->killed_us != 0)
        plan->faults[plan->n_faults++] = (struct plan_fault){
            .kind = FAULT_KILL, .at_us = part->killed_us, .for_us = ACTIVE_US, .machine = (uint8_t)plan->n_actors};
    plan->n_actors++;
}

static void shape(struct plan *plan, const struct scene *scene, uint64_t seed)
{
    bool fencing = seed % 2 == 0;

    plan_make(plan, seed, BIAS_CALM, 0);
    plan->features &= ~(1u << FEATURE_REDISSON);
    plan->handover_most_us = plan->handover_mostly_us = plan->requests_most = plan->lost_permille = 0;
    plan->lease_ms = LEASE_MS;
    plan->max_lease_ms = plan->sets[0].max_lease_ms = plan->sets[1].max_lease_ms = 2 * LEASE_MS;
    plan->active_us = ACTIVE_US;
    plan->n_keys = 2;
    plan->n_actors = plan->n_faults = 0;
    memset(plan->permits, 0, sizeof(plan->permits));
    for (uint32_t i = 0; i < PARTS_MAX; i++) {
        const struct part *part = &scene->parts[i];

        if (part->permits != 0) plan->permits[0] = part->permits;
        for (uint32_t n = 0; n < part->n; n++) add_actor(plan, part, n, fencing);
    }
    plan->n_machines = plan->n_clients = plan->n_actors;
}

/* ---- what came of it ---- */

static bool judge_part(const struct world *world, const struct part *part, uint32_t first, double longest_us[],
                       uint32_t grants[])
{
    double most_us = (double)part->most_us;
    bool good = true;

    if (part->most_trips > 0) most_us = part->most_trips * (double)world->plan->round_trip_us + 200;
    for (uint32_t i = first; i < first + part->n; i++) {
        const struct actor *actor = &world->actors[i];

        if ((double)actor->longest_us > *longest_us) *longest_us = (double)actor->longest_us;
        *grants += actor->n_grants;
        if (most_us > 0) good &= (double)actor->longest_us <= most_us && actor->n_grants > 0;
    }
    return good;
}

static bool play(struct world *world, const struct scene *scene, uint64_t seed, double longest_us[], uint32_t grants[])
{
    static struct plan plan;
    static struct totals ignored;
    const struct shrunk nothing = {0};
    uint32_t first = 0;
    bool good;

    shape(&plan, scene, seed);
    good = world_run(world, &plan, &ignored);
    if (!good) shrink_report(world, &plan, BIAS_CALM, &nothing, stdout);
    for (uint32_t i = 0; i < PARTS_MAX; i++) {
        good &= judge_part(world, &scene->parts[i], first, &longest_us[i], &grants[i]);
        first += scene->parts[i].n;
    }
    return good;
}

bool modes_table(struct world *world, FILE *out)
{
    bool good = true;

    (void)fprintf(out, "%-38s %5s %5s %8s %12s %12s\n", "longest waits", "users", "reads", "grants", "ms", "bound");
    for (size_t k = 0; k < sizeof(scenes) / sizeof(scenes[0]); k++) {
        double longest_us[PARTS_MAX] = {0};
        uint32_t grants[PARTS_MAX] = {0};
        bool held = true;

        for (uint64_t seed = 1; seed <= SCENE_RUNS; seed++)
            held = held && play(world, &scenes[k], seed, longest_us, grants);
        for (uint32_t i = 0; i < PARTS_MAX && scenes[k].parts[i].n != 0; i++) {
            const struct part *part = &scenes[k].parts[i];

            (void)fprintf(out, "%-38s %5u %5x %8u %12.2f ", i == 0 ? scenes[k].name : "", part->n, part->shared,
                          grants[i], longest_us[i] / 1000);
            if (part->most_trips > 0)
                (void)fprintf(out, "%6.1f trips", part->most_trips);
            else
                (void)fprintf(out, "%12.2f", (double)part->most_us / 1000);
            (void)fputs(held ? "\n" : "   TOO LONG\n", out);
        }
        good &= held;
    }
    return good;
}
