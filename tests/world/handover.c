/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handover.c - how long a lock is free while others wait, and the requests of all meanwhile
 *
 * Where nothing fails a hand-over has a bound, far below the pause between polls: a waiter that needs a poll to find
 * out that the key is free was not woken.
 */
#include "world.h"

#define SLOW_MIN 4u

static bool another_waits(struct actor *freed)
{
    struct world *world = freed->world;

    for (uint32_t i = 0; i < world->plan->n_actors; i++) {
        struct actor *actor = &world->actors[i];

        if (actor != freed && actor->acquiring != NULL && (actor->plan->keys & freed->plan->keys) != 0) return true;
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

void handover_granted(struct actor *actor)
{
    struct world *world = actor->world;
    struct handover *handover = &world->handover;
    const struct plan *plan = world->plan;
    uint64_t took_us = world_now(world) - handover->since_us;

    if (!plan->calm) return;
    if (plan->requests_most != 0 && handover->all > plan->requests_most) {
        judge_violated(world, REQUEST_STORM, "%u requests from one grant to the next, by %u contenders", handover->all,
                       plan->n_actors);
    }
    if (handover->open && plan->handover_most_us != 0 && took_us > plan->handover_most_us) {
        judge_violated(world, I9_LIVENESS, "no lock was granted for %llu us after a release, although some waited",
                       (unsigned long long)took_us);
    }
    handover->n += handover->open;
    handover->n_slow += handover->open && took_us > plan->handover_mostly_us;
    if (handover->n_slow >= SLOW_MIN && 2 * handover->n_slow > handover->n) {
        judge_violated(world, I9_LIVENESS, "%u of %u times no lock was granted for more than %llu us after a release",
                       handover->n_slow, handover->n, (unsigned long long)plan->handover_mostly_us);
    }
    world->totals->of[TOTAL_HANDOVERS] += handover->open;
    handover->open = false;
    handover->all = 0;
}
