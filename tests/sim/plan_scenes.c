/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan_scenes.c - scenes: runs in which all users do the same again and again, such as readers and writers without a
 * pause, or users of a name's last permit
 *
 * Only the faults of the scene happen. So each wait has a bound: the end of what it waits for, and the time to notice
 * that end. Nodes that restart one after the other, or are out of memory, lose no lock that is held.
 */
#include "parts/rng.h"
#include "plan.h"

#define MS         UINT64_C(1000)
#define PARTS_MAX  3u
#define LEASE_MS   2000u
#define ACTIVE_US  (30000 * MS)
#define NEVER_ENDS (UINT64_C(3600000) * MS)
#define CONNECT_US (300 * MS) /* before that who begins has no connections yet */
/* To be told of a release, by a notice, and to ask. */
#define NOTICED_US (100 * MS)
/* Who was not told asks again so soon. */
#define POLL_US (1200 * MS)
/* What is left on a node for who waits ends so soon by itself. */
#define INTENT_US (2000 * MS)
#define LATE_US   300u
/* Lists whose nodes hear of them in another order may try in vain again and again, each time after a longer random
 * pause. Five of 700 runs waited for longer than 1500 ms, one for 2166 ms. */
#define APART_US (3000 * MS)
/* Servers restart so far apart: sooner than such a lease is renewed, and later than a client is connected again and has
 * repaired what it holds. */
#define RESTARTS_US   (2500 * MS)
#define AWAY_US       (100 * MS)
#define KEPT_LEASE_MS 12000u
/* Later than all have what they keep, and sooner than the first renewal. */
#define FULL_US (3000 * MS)
#define FAR_US  (15 * MS) /* one way */

/* Users of one kind. Their times are shifted a little from one to the next. */
struct part {
    uint32_t n;
    uint8_t keys, shared, permits;
    uint64_t begin_us, hold_us, rest_us;
    uint64_t most_us; /* that one of them may wait, and so many round trips; both 0: not judged */
    uint32_t most_trips;
    uint64_t killed_us;            /* 0: not */
    bool cut;                      /* from the server that waiters ask first */
    void (*befall)(struct plan *); /* what befalls the servers; no lock is lost by that */
    /* It needs all servers, and is far from every second one, its neighbour from the others. So servers hear of the two
     * in another order. */
    bool apart;
};

struct scene {
    const char *name;
    struct part parts[PARTS_MAX];
};

static struct plan_fault *add_fault(struct plan *plan, enum plan_fault_kind kind, uint64_t at_us, uint64_t for_us)
{
    struct plan_fault *fault = &plan->faults[plan->n_faults++];

    *fault = (struct plan_fault){.kind = kind, .at_us = at_us, .for_us = for_us, .machine = (uint8_t)plan->n_actors};
    return fault;
}

/* Under the guard: else a server that forgot would vote for others. */
static void restart_servers(struct plan *plan)
{
    uint32_t n = 0;

    plan->features &= ~(1u << FEATURE_PEERS | 1u << FEATURE_COLD | 1u << FEATURE_BOOTSTRAP);
    plan->loses_memory = true;
    for (uint32_t i = 0; i < PLAN_CLIENTS_MAX; i++) {
        plan->clients[i].guard = QUORLOCK_GUARD_CONNECTION;
        plan->clients[i].policy = QUORLOCK_POLICY_MAJORITY;
    }
    /* Two servers lose all with one of them. */
    for (uint64_t at_us = RESTARTS_US; at_us < ACTIVE_US - RESTARTS_US && plan->n_servers > 2; at_us += RESTARTS_US) {
        struct plan_fault *fault = add_fault(plan, FAULT_CRASH_EMPTY, at_us, AWAY_US);

        fault->server = (uint8_t)(n++ % plan->n_servers);
        fault->nth = 1;
    }
}

/* For renewals they need none. */
static void fill_servers(struct plan *plan)
{
    for (uint32_t i = 0; i < plan->n_servers; i++) add_fault(plan, FAULT_FULL, FULL_US, ACTIVE_US)->server = (uint8_t)i;
}

static const struct scene scenes[] = {
    {"endless readers, one writer",
     {{.n = 6, .keys = 1, .shared = 1, .hold_us = 400 * MS, .rest_us = 7 * MS, .most_us = 400 * MS + POLL_US},
      {.n = 1,
       .keys = 1,
       .begin_us = 1000 * MS,
       .hold_us = 100 * MS,
       .rest_us = 300 * MS,
       .most_us = 400 * MS + POLL_US}}},
    {"endless writers, one reader",
     {{.n = 6, .keys = 1, .hold_us = 100 * MS, .rest_us = 1 * MS},
      {.n = 1,
       .keys = 1,
       .shared = 1,
       .begin_us = 1000 * MS,
       .hold_us = 50 * MS,
       .rest_us = 300 * MS,
       .most_us = 200 * MS + POLL_US}}},
    {"endless readers and endless writers",
     {{.n = 4,
       .keys = 1,
       .shared = 1,
       .hold_us = 150 * MS,
       .rest_us = 3 * MS,
       .most_us = 150 * MS + 100 * MS + POLL_US},
      {.n = 4, .keys = 1, .hold_us = 100 * MS, .rest_us = 1 * MS, .most_us = 6 * INTENT_US}}},
    {"a writer that dies while it waits",
     {{.n = 3, .keys = 1, .shared = 1, .hold_us = 400 * MS, .rest_us = 50 * MS, .most_us = INTENT_US + NOTICED_US},
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
     {{.n = 2, .keys = 3, .shared = 1, .hold_us = 50 * MS, .rest_us = 1 * MS, .most_us = 1500 * MS},
      {.n = 2, .keys = 3, .shared = 2, .hold_us = 50 * MS, .rest_us = 1 * MS, .most_us = 1500 * MS}}},
    {"three lists in crossed modes",
     {{.n = 2, .keys = 7, .shared = 6, .hold_us = 30 * MS, .rest_us = 1 * MS, .most_us = 3000 * MS},
      {.n = 2, .keys = 7, .shared = 3, .hold_us = 30 * MS, .rest_us = 1 * MS, .most_us = 3000 * MS},
      {.n = 2, .keys = 7, .shared = 7, .hold_us = 30 * MS, .rest_us = 1 * MS, .most_us = 3000 * MS}}},
    {"two lists in crossed modes, each far from other nodes",
     {{.n = 1, .keys = 3, .shared = 1, .hold_us = 40 * MS, .rest_us = 170 * MS, .most_us = APART_US, .apart = true},
      {.n = 1, .keys = 3, .shared = 2, .hold_us = 40 * MS, .rest_us = 180 * MS, .most_us = APART_US, .apart = true}}},
    {"three lists in crossed modes, each far from other nodes",
     {{.n = 1, .keys = 7, .shared = 6, .hold_us = 30 * MS, .rest_us = 160 * MS, .most_us = APART_US, .apart = true},
      {.n = 1, .keys = 7, .shared = 3, .hold_us = 30 * MS, .rest_us = 170 * MS, .most_us = APART_US, .apart = true},
      {.n = 1, .keys = 7, .shared = 5, .hold_us = 30 * MS, .rest_us = 180 * MS, .most_us = APART_US, .apart = true}}},
    {"the last free permit of five",
     {{.n = 4, .keys = 1, .permits = 5, .hold_us = NEVER_ENDS},
      {.n = 1,
       .keys = 1,
       .permits = 5,
       .begin_us = 1000 * MS,
       .hold_us = 20 * MS,
       .rest_us = 30 * MS,
       .most_us = LATE_US,
       .most_trips = 3}}},
    {"five users of five permits",
     {{.n = 5,
       .keys = 1,
       .permits = 5,
       .begin_us = CONNECT_US,
       .hold_us = 40 * MS,
       .rest_us = 9 * MS,
       .most_us = LATE_US,
       .most_trips = 4}}},
    {"ten users of five permits",
     {{.n = 10, .keys = 1, .permits = 5, .hold_us = 40 * MS, .rest_us = 5 * MS, .most_us = 1000 * MS}}},
    {"a permit whose holder dies",
     {{.n = 1, .keys = 1, .permits = 1, .hold_us = NEVER_ENDS, .killed_us = 5000 * MS},
      {.n = 1,
       .keys = 1,
       .permits = 1,
       .begin_us = 5100 * MS,
       .hold_us = 100 * MS,
       .rest_us = 100 * MS,
       .most_us = LEASE_MS * MS + 1000 * MS}}},
    {"the last permit, the first node lacks the others",
     {{.n = 4, .keys = 1, .permits = 5, .hold_us = NEVER_ENDS, .cut = true},
      {.n = 1,
       .keys = 1,
       .permits = 5,
       .begin_us = 1000 * MS,
       .hold_us = 20 * MS,
       .rest_us = 30 * MS,
       .most_us = LATE_US,
       .most_trips = 5}}},
    {"all nodes restart empty, one after the other",
     {{.n = 2, .keys = 1, .shared = 1, .hold_us = NEVER_ENDS, .befall = restart_servers},
      {.n = 1, .keys = 2, .hold_us = NEVER_ENDS, .befall = restart_servers},
      {.n = 1, .keys = 2, .begin_us = 1000 * MS, .hold_us = 100 * MS}}},
    {"all nodes run out of memory",
     {{.n = 2, .keys = 1, .shared = 1, .hold_us = NEVER_ENDS, .befall = fill_servers},
      {.n = 1, .keys = 2, .hold_us = NEVER_ENDS, .befall = fill_servers}}},
};

uint32_t plan_scenes(void)
{
    return sizeof(scenes) / sizeof(scenes[0]);
}

static const struct scene *scene_of(uint64_t seed)
{
    return &scenes[seed % plan_scenes()];
}

const char *plan_scene_name(uint64_t seed)
{
    return scene_of(seed)->name;
}

static void set_apart(struct plan *plan)
{
    plan->clients[plan->n_actors].policy = QUORLOCK_POLICY_ALL;
    for (uint32_t server = plan->n_actors % 2; server < plan->n_servers; server += 2) {
        struct plan_fault *fault = add_fault(plan, FAULT_SLOW, 0, FAR_US);

        fault->server = (uint8_t)server;
        fault->for_ever = true;
    }
}

static void add_actor(struct plan *plan, const struct part *part, uint32_t nth, bool fencing)
{
    struct plan_actor *actor = &plan->actors[plan->n_actors];
    struct plan_course *course = &actor->course;

    *actor = (struct plan_actor){.client = (uint8_t)plan->n_actors, .keys = part->keys, .shared = part->shared};
    actor->options = (struct quorlock_lock_options){
        .size = sizeof(actor->options), .lease_ms = plan->lease_ms, .fencing = fencing, .permits = part->permits};
    course->set = true;
    course->begin_us = part->begin_us + nth * (part->hold_us < ACTIVE_US ? part->hold_us / part->n : MS);
    course->hold_us = part->hold_us;
    course->rest_us = part->rest_us + nth * MS;
    course->keeps = part->befall != NULL;
    course->most_us = part->most_us + part->most_trips * plan->round_trip_us;
    if (part->killed_us != 0) (void)add_fault(plan, FAULT_KILL, part->killed_us, ACTIVE_US);
    if (part->cut) {
        struct plan_fault *fault = add_fault(plan, FAULT_CUT_TO, 0, ACTIVE_US);

        fault->server = plan_first_arbiter(plan);
        fault->for_ever = true;
    }
    if (part->apart) set_apart(plan);
    plan->n_actors++;
}

/* In calm weather. */
void plan_scene(struct plan *plan, uint64_t seed)
{
    const struct scene *scene = scene_of(seed);
    bool fencing = seed / plan_scenes() % 2 == 0;

    plan->handover_most_us = plan->handover_mostly_us = plan->listens_us = 0;
    plan->requests_most = plan->lost_permille = 0;
    plan->features &= ~(1u << FEATURE_REDISSON);
    plan->lease_ms = scene->parts[0].befall != NULL ? KEPT_LEASE_MS : LEASE_MS;
    plan->max_lease_ms = plan->sets[0].max_lease_ms = plan->sets[1].max_lease_ms = 2 * plan->lease_ms;
    plan->active_us = ACTIVE_US;
    plan->n_keys = 2;
    plan->n_actors = plan->n_faults = 0;
    for (uint32_t i = 0; i < PARTS_MAX; i++) {
        const struct part *part = &scene->parts[i];

        if (part->permits != 0) plan->permits[0] = part->permits;
        if (part->keys > 3) plan->n_keys = 3;
        for (uint32_t n = 0; n < part->n; n++) add_actor(plan, part, n, fencing);
    }
    plan->n_machines = plan->n_clients = plan->n_actors;
    if (scene->parts[0].befall != NULL) scene->parts[0].befall(plan);
}
