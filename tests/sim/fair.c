/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fair.c - if nothing fails, fair locks are granted in the order in which they came (I15)
 *
 * A lock comes when its first request is executed. A client connects with its first acquire, so that request may be
 * late. Clients measure by their own clocks how long they have waited. The clocks of servers are set back,
 * which changes no order. The first waiters get the free slots of a name with permits, in any order.
 */
#include "fair.h"

#include "judge.h"

#define COMES_TRIPS 20u
#define CLOCKS_PART 50u

/* Readers of all keys that both want are granted together. */
static bool is_rival(const struct plan_actor *a, const struct plan_actor *b)
{
    return (a->keys & b->keys & ~(a->shared & b->shared)) != 0 && a->options.permits == b->options.permits;
}

/* The slots that nobody holds; none of a lock without permits. */
static uint32_t slots_left(const struct actor *actor)
{
    const struct world *world = actor->world;
    uint32_t left = actor->plan->options.permits;

    for (uint32_t i = 0; i < world->plan->n_actors; i++) {
        const struct window *window = &world->actors[i].window;

        if (window->open && window->held.keys == actor->plan->keys && left > 0) left--;
    }
    return left;
}

void fair_granted(struct actor *actor)
{
    struct world *world = actor->world;
    uint64_t comes_us = COMES_TRIPS * world->plan->round_trip_us;
    uint32_t left = slots_left(actor);

    if (world->plan->bias != BIAS_FAIR || actor->plan->options.fair == 0) return;
    world->totals->of[TOTAL_FAIR]++;
    for (uint32_t i = 0; i < world->plan->n_actors; i++) {
        const struct actor *other = &world->actors[i];
        uint64_t waits_us = world_now(world) - other->acquire_since_us;

        if (other == actor || other->acquiring == NULL || other->plan->options.fair == 0) continue;
        if (!is_rival(actor->plan, other->plan)) continue;
        if (other->acquire_since_us + comes_us + waits_us / CLOCKS_PART >= actor->acquire_since_us) continue;
        if (left > 0) {
            left--;
            continue;
        }
        judge_violated(world, I15_ORDER_OF_COMING,
                       "actor %u is granted, which came %llu us after actor %u, which waits", actor->index,
                       (unsigned long long)(actor->acquire_since_us - other->acquire_since_us), i);
    }
}
