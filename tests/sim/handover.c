/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handover.c - how long a lock is free while others wait, in round trips, and how many requests all clients send
 * meanwhile
 *
 * If nothing fails, a hand-over has a bound far below the pause between polls. A waiter that finds a free key by a poll
 * was not woken.
 */
#include <inttypes.h>
#include <string.h>

#include "judge.h"
#include "shrink.h"

#include "handover.h"

#define SLOW_MIN 4u
#define RUNS     12u /* of each line of the table */

#define LISTS_BEGIN_US 5000u
#define LISTS_HOLD_US  20000u
#define LISTS_REST_US  5000u

static bool another_waits(struct actor *freed)
{
    struct world *world = freed->world;

    for (uint32_t i = 0; i < world->plan->n_actors; i++) {
        struct actor *actor = &world->actors[i];

        if (actor == freed || actor->acquiring == NULL || (actor->plan->keys & freed->plan->keys) == 0) continue;
        if (world_now(world) >= actor->acquire_since_us + world->plan->listens_us) return true;
    }
    return false;
}

void handover_freed(struct actor *actor)
{
    struct handover *handover = &actor->world->handover;

    if (!actor->world->plan->calm) return;
    handover->open = another_waits(actor);
    handover->since_us = world_now(actor->world);
    handover->requests = 0;
}

void handover_asked(struct world *world)
{
    world->handover.requests++;
    world->handover.all++;
}

static void judge_requests(struct world *world)
{
    const struct plan *plan = world->plan;
    uint32_t all = world->handover.all;

    if (plan->requests_most == 0 || all <= plan->requests_most) return;
    judge_violated(world, REQUEST_STORM, "%u requests from one grant to the next, by %u contenders", all,
                   plan->n_actors);
}

static void judge_longest(struct world *world, uint64_t took_us)
{
    uint64_t most_us = world->plan->handover_most_us;

    if (most_us == 0 || took_us <= most_us) return;
    judge_violated(world, I9_LIVENESS, "no lock was granted for %llu us after a release, although some waited",
                   (unsigned long long)took_us);
}

static void judge_most(struct world *world, uint64_t took_us)
{
    struct handover *handover = &world->handover;
    uint64_t mostly_us = world->plan->handover_mostly_us;

    handover->n++;
    handover->n_slow += mostly_us != 0 && took_us > mostly_us;
    if (handover->n_slow < SLOW_MIN || 2 * handover->n_slow <= handover->n) return;
    judge_violated(world, I9_LIVENESS, "%u of %u times no lock was granted for more than %llu us after a release",
                   handover->n_slow, handover->n, (unsigned long long)mostly_us);
}

static void note(struct handovers *handovers, uint64_t parts, const struct handover *handover)
{
    handovers->n++;
    handovers->requests += handover->requests;
    handovers->all += handover->all;
    if (handover->all > handovers->most) handovers->most = handover->all;
    handovers->of[parts < HANDOVER_BUCKETS ? parts : HANDOVER_BUCKETS - 1]++;
}

void handover_granted(struct actor *actor)
{
    struct world *world = actor->world;
    struct handover *handover = &world->handover;
    uint64_t took_us = world_now(world) - handover->since_us;
    uint64_t trip_us = world->plan->round_trip_us;

    if (!world->plan->calm) return;
    judge_requests(world);
    if (handover->open) {
        judge_longest(world, took_us);
        judge_most(world, took_us);
        world->totals->of[TOTAL_HANDOVERS]++;
        /* Rounded up: what is printed is not less than what it was. */
        if (world->handovers != NULL)
            note(world->handovers, (took_us * HANDOVER_PER_TRIP + trip_us - 1) / trip_us, handover);
    }
    handover->open = false;
    handover->all = 0;
}

void handover_end(struct world *world)
{
    if (world->handover.open) judge_longest(world, world_now(world) - world->handover.since_us);
    world->handover.open = false;
}

/* ---- the table ---- */

static const uint32_t crowds[] = {2, 3, 10, 30};
#define CROWDS (sizeof(crowds) / sizeof(crowds[0]))

struct kind {
    const char *name;
    enum plan_bias bias;
    uint32_t lost_permille;       /* of notices */
    bool told;                    /* the servers tell of changed keys; else none does, where notices are lost */
    bool lists;                   /* most wait for two keys, of which one stays taken and one is released */
    double median_most;           /* in round trips, with the time of the servers; 0: not judged */
    double requests_most[CROWDS]; /* of all from one grant to the next, on average; 0: left out */
};

/* The bounds of requests are today's figures and a tenth: other draws of chance change them by less. With lists, two of
 * the contenders are holders, and none would wait if there were no more. */
static const struct kind kinds[] = {
    {"notices", BIAS_CALM, 0, false, false, 3.1, {16, 17, 23, 35}},
    {"notices, the first arbiter frozen", BIAS_FROZEN, 0, false, false, 3.1, {12, 13, 20, 33}},
    {"notices, an odd key at the first", BIAS_ODD, 0, false, false, 3.1, {16, 18, 28, 42}},
    {"one notice of ten lost", BIAS_CALM, 100, false, false, 3.1, {16, 17, 23, 35}},
    {"polls alone", BIAS_CALM, 1000, false, false, 0, {11, 11, 15, 25}},
    {"the servers tell, and nobody else", BIAS_CALM, 1000, true, false, 3.1, {15, 18, 23, 40}},
    {"notices, and the servers tell", BIAS_CALM, 0, true, false, 3.1, {17, 19, 23, 35}},
    {"lists, another key of them is held", BIAS_CALM, 0, false, true, 0, {0, 10, 14, 24}},
};

static double trips(const struct handovers *handovers, uint32_t permille)
{
    uint64_t passed = 0;
    uint32_t at = 0;

    while (at < HANDOVER_BUCKETS - 1) {
        passed += handovers->of[at];
        if (passed * 1000 >= handovers->n * permille) break;
        at++;
    }
    return (double)at / HANDOVER_PER_TRIP;
}

/* shape_lists - let one actor hold the second key all the time, and one take and release the first, which is no reason
 * to ask for those that wait for both. */
static void shape_lists(struct plan *plan)
{
    const struct plan_course stays = {.set = true, .hold_us = 10 * plan->active_us};
    const struct plan_course releases = {
        .set = true, .begin_us = LISTS_BEGIN_US, .hold_us = LISTS_HOLD_US, .rest_us = LISTS_REST_US};

    plan->n_keys = 2;
    plan->handover_most_us = plan->handover_mostly_us = 0;
    for (uint32_t i = 0; i < plan->n_actors; i++) plan->actors[i].keys = 3;
    plan->actors[0].keys = 2;
    plan->actors[0].course = stays;
    plan->actors[1].keys = 1;
    plan->actors[1].course = releases;
}

static void shape(struct plan *plan, const struct kind *kind, uint64_t seed)
{
    plan_make(plan, seed, kind->bias, 0);
    if (kind->lists) shape_lists(plan);
    if (kind->told || kind->lost_permille == 1000) plan->untracked = kind->told ? 0 : UINT32_MAX;
    for (uint32_t i = 0; i < plan->n_clients && kind->told; i++) plan->clients[i].guard = QUORLOCK_GUARD_CONNECTION;
    if (kind->lost_permille == 0) return;
    /* Polls have to help: that takes as long as it takes. */
    plan->handover_most_us = plan->handover_mostly_us = 0;
    plan->lost_permille = kind->lost_permille;
}

static bool measure(struct world *world, const struct kind *kind, uint32_t contenders, struct handovers *ret)
{
    static struct plan plan;
    static struct totals ignored;
    const struct shrunk nothing = {0};
    bool held = true;

    memset(ret, 0, sizeof(*ret));
    world->handovers = ret;
    for (uint64_t seed = 1, runs = 0; runs < RUNS && held; seed++) {
        shape(&plan, kind, seed);
        if (plan.n_actors != contenders) continue;
        runs++;
        held = world_run(world, &plan, &ignored);
        if (!held) shrink_report(world, &plan, kind->bias, &nothing, stdout);
    }
    world->handovers = NULL;
    return held;
}

/* row - print one row of the table; false: a bound does not hold. */
static bool row(const struct kind *kind, uint32_t crowd, const struct handovers *handovers, FILE *out)
{
    double n = handovers->n == 0 ? 1 : (double)handovers->n;
    double median = trips(handovers, 500), all = (double)handovers->all / n;
    bool slow = kind->median_most > 0 && median > kind->median_most;
    bool many = all > kind->requests_most[crowd];

    (void)fprintf(out, "%-36s %10u %6" PRIu64 " %8.2f %8.2f %8.2f %9.1f %9.1f %6" PRIu64 "%s%s\n", kind->name,
                  crowds[crowd], handovers->n, median, trips(handovers, 990), trips(handovers, 1000),
                  (double)handovers->requests / n, all, handovers->most, slow ? "   TOO SLOW" : "",
                  many ? "   TOO MANY REQUESTS" : "");
    return !slow && !many && handovers->n != 0;
}

bool handover_table(struct world *world, FILE *out)
{
    static struct handovers handovers;
    bool good = true;

    (void)fprintf(out, "%-36s %10s %6s %8s %8s %8s %9s %9s %6s\n", "hand-over, in round trips", "contenders", "n",
                  "median", "99 %", "longest", "requests", "a grant", "most");
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        for (uint32_t crowd = 0; crowd < CROWDS; crowd++) {
            bool held;

            if (kinds[k].requests_most[crowd] == 0) continue;
            held = measure(world, &kinds[k], crowds[crowd], &handovers);
            good &= row(&kinds[k], crowd, &handovers, out) && held;
        }
    }
    return good;
}
