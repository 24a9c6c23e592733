/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handover.c - hand-overs in round trips to a node, and the requests of all locks of the key meanwhile
 *
 * Where nothing fails a hand-over has a bound, far below the pause between polls: a waiter that needs a poll to
 * find out that the key is free was not woken.
 */
#include "sim.h"

#include <inttypes.h>
#include <string.h>

#define RUNS       24u /* of each line of the table */
#define MEDIAN_MAX (3u * HANDOVER_PER_TRIP)

static bool another_waits(const struct world *world, const struct lock *freed)
{
    for (uint32_t i = 0; i < world->plan->n_locks; i++) {
        const struct lock *lock = &world->locks[i];

        if (lock != freed && lock->key == freed->key && lock->state != ACTOR_DEAD && lock->verdicts.acquiring.pending)
            return true;
    }
    return false;
}

void handover_freed(struct world *world, struct lock *lock)
{
    struct handover *handover = &world->handover[lock->key];

    if (!world->plan->calm) return;
    handover->open = another_waits(world, lock);
    handover->since_us = world->now_us;
    handover->requests = 0;
}

void handover_asked(struct world *world, uint32_t key)
{
    world->handover[key].requests++;
    world->handover[key].all++;
}

static void note(struct handovers *handovers, uint64_t parts, const struct handover *handover)
{
    handovers->n++;
    handovers->requests += handover->requests;
    handovers->all += handover->all;
    if (handover->all > handovers->most) handovers->most = handover->all;
    handovers->of[parts < HANDOVER_BUCKETS ? parts : HANDOVER_BUCKETS - 1]++;
}

static void judge_requests(struct world *world, const struct handover *handover)
{
    if (world->plan->requests_most == 0 || handover->all <= world->plan->requests_most) return;
    judge_violated(world, REQUEST_STORM, "%u requests from one grant to the next, by %u contenders", handover->all,
                   world->plan->n_locks);
}

static void judge(struct world *world, uint64_t took_us)
{
    uint64_t most_us = world->plan->handover_most_us;

    if (most_us == 0 || took_us <= most_us) return;
    judge_violated(world, I9_LIVENESS, "no lock was granted for %llu us after a release, although some waited",
                   (unsigned long long)took_us);
}

void handover_granted(struct world *world, struct lock *lock)
{
    struct handover *handover = &world->handover[lock->key];
    uint64_t took_us = world->now_us - handover->since_us;
    uint64_t trip_us = world->plan->round_trip_us;

    judge_requests(world, handover);
    if (handover->open) judge(world, took_us);
    if (handover->open && world->handovers != NULL) {
        /* Rounded up: what is printed is not less than what it was. */
        note(world->handovers, (took_us * HANDOVER_PER_TRIP + trip_us - 1) / trip_us, handover);
    }
    handover->open = false;
    handover->all = 0;
}

void handover_end(struct world *world)
{
    for (uint32_t key = 0; key < PLAN_KEYS_MAX; key++) {
        if (world->handover[key].open) judge(world, world->now_us - world->handover[key].since_us);
        world->handover[key].open = false;
    }
}

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

enum kind { KIND_CALM, KIND_FROZEN, KIND_ODD, KIND_LOSSY, KIND_POLLS, KINDS };

static enum plan_bias bias_of(enum kind kind)
{
    if (kind == KIND_ODD) return BIAS_ODD;
    return kind == KIND_FROZEN ? BIAS_FROZEN : BIAS_CALM;
}

static void shape(struct plan *plan, enum kind kind, uint64_t seed)
{
    plan_make(plan, seed, bias_of(kind));
    if (kind < KIND_LOSSY) return;
    /* Polls have to help: that takes as long as it takes. */
    plan->handover_most_us = 0;
    plan->lost_permille = kind == KIND_LOSSY ? 100 : 1000;
}

static bool update_rtt(struct world *world, enum kind kind, uint32_t contenders, struct handovers *ret)
{
    static struct plan plan;
    static struct totals ignored;
    bool held = true;

    memset(ret, 0, sizeof(*ret));
    world->handovers = ret;
    for (uint64_t seed = 1, runs = 0; runs < RUNS && held; seed++) {
        shape(&plan, kind, seed);
        if (plan.n_locks != contenders) continue;
        runs++;
        held = world_run(world, &plan, &ignored);
        if (!held) shrink_report(world, &plan, bias_of(kind), stdout);
    }
    world->handovers = NULL;
    return held;
}

bool handover_table(struct world *world, FILE *out)
{
    static const char *const names[KINDS] = {"notices", "notices, the first arbiter frozen",
                                             "notices, an odd key at the first", "one notice of ten lost",
                                             "polls alone"};
    static const uint32_t contenders[] = {2, 3, 10, 30};
    static struct handovers handovers;
    bool good = true;

    (void)fprintf(out, "%-36s %10s %6s %8s %8s %8s %9s %9s %6s\n", "hand-over, in round trips", "contenders", "n",
                  "median", "99 %", "longest", "requests", "a grant", "most");
    for (int kind = 0; kind < KINDS; kind++) {
        for (size_t i = 0; i < sizeof(contenders) / sizeof(contenders[0]); i++) {
            bool held = update_rtt(world, (enum kind)kind, contenders[i], &handovers);
            double median = trips(&handovers, 500);
            bool slow = kind == KIND_CALM && median * HANDOVER_PER_TRIP > MEDIAN_MAX;

            (void)fprintf(out, "%-36s %10u %6" PRIu64 " %8.2f %8.2f %8.2f %9.1f %9.1f %6" PRIu64 "%s\n", names[kind],
                          contenders[i], handovers.n, median, trips(&handovers, 990), trips(&handovers, 1000),
                          handovers.n == 0 ? 0 : (double)handovers.requests / (double)handovers.n,
                          handovers.n == 0 ? 0 : (double)handovers.all / (double)handovers.n, handovers.most,
                          slow ? "   TOO SLOW" : "");
            good &= held && !slow && handovers.n != 0;
        }
    }
    return good;
}
