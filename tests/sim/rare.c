/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rare.c - counts rare states that the plans must reach, as users, servers and the network see them
 *
 * A grant counts as woken by a notice if another client had released the lock right before, and by a poll or a timer if
 * nobody had.
 */
#include "rare.h"

#include "actor.h"
#include "holds.h"
#include "judge.h"
#include "membership.h"
#include "process.h"

#define SOON_US 50000u /* below any poll */

static uint64_t *of(const struct world *world)
{
    return world->totals->of;
}

static void freed(struct world *world, uint32_t keys, const struct freed *how)
{
    for (uint32_t key = 0; key < world->plan->n_keys; key++) {
        if ((keys >> key & 1u) != 0) world->freed[key] = *how;
    }
}

void rare_given_back(struct actor *actor)
{
    const struct freed how = {.at_us = world_now(actor->world), .client = actor->plan->client, .by = FREED_BY_RELEASE};

    freed(actor->world, actor->plan->keys, &how);
    rare_released(actor->world, actor->plan->client);
}

void rare_released(struct world *world, uint32_t client)
{
    for (uint32_t i = 0; i < membership_set(world, client)->n; i++) {
        if (!net_is_full(world->net, world->clients[client].machine, membership_server(world, client, i))) continue;
        of(world)[TOTAL_RELEASED_FULL]++;
        return;
    }
}

void rare_abandoned(struct world *world, uint32_t keys)
{
    const struct freed how = {.at_us = world_now(world), .client = NOBODY, .by = FREED_BY_NOBODY};

    freed(world, keys, &how);
}

static void count_wake(struct actor *actor, const struct freed *how)
{
    struct world *world = actor->world;
    bool soon = world_now(world) < how->at_us + SOON_US;

    if (how->by == FREED_BY_NOBODY) {
        of(world)[TOTAL_WOKEN_BY_NOBODY]++;
    } else if (soon && how->client != actor->plan->client) {
        of(world)[TOTAL_WOKEN_BY_NOTICE]++;
    } else if (soon && process_stood(actor_process(actor))) {
        of(world)[TOTAL_HANDED_ON_LATE]++;
    } else if (soon) {
        of(world)[TOTAL_HANDED_ON]++;
    }
}

/* By the new nodes, while others still have the old ones. */
static bool is_beside_old(const struct actor *actor)
{
    const struct world *world = actor->world;

    for (uint32_t i = 0; i < world->plan->n_clients && world->clients[actor->plan->client].renewed; i++) {
        if (!world->clients[i].renewed && world->clients[i].state == CLIENT_OPEN) return true;
    }
    return false;
}

void rare_granted(struct actor *actor)
{
    struct world *world = actor->world;

    of(world)[TOTAL_BESIDE_OLD] += is_beside_old(actor);
    for (uint32_t key = 0; key < world->plan->n_keys; key++) {
        struct freed *how = &world->freed[key];

        if ((actor->plan->keys >> key & 1u) == 0) continue;
        if (how->by != FREED_NOT && actor->acquire_since_us < how->at_us) count_wake(actor, how);
        how->by = FREED_NOT;
    }
}

/* On one server it could have had one of its keys, and not another. */
void rare_refused(struct actor *actor)
{
    struct world *world = actor->world;

    for (uint32_t i = 0; i < world->plan->n_servers; i++) {
        uint32_t taken = 0, free = 0;

        for (uint32_t key = 0; key < world->plan->n_keys; key++) {
            const struct taking *latest = holds_latest(&world->sites[i], holds_place(key, 0));

            if ((actor->plan->keys >> key & 1u) == 0) continue;
            if (latest != NULL && latest->token_hash != 0)
                taken++;
            else
                free++;
        }
        if (taken == 0 || free == 0) continue;
        of(world)[TOTAL_HALF_TAKEN]++;
        return;
    }
}

void rare_quarantined(struct site *site)
{
    struct world *world = site->world;

    for (uint32_t i = 0; i < world->plan->n_actors; i++) {
        struct actor *actor = &world->actors[i];

        of(world)[TOTAL_QUARANTINE_HOLDING] += actor->window.open && judge_is_open(actor);
    }
}

void rare_executed(struct site *site, struct session *session)
{
    bool late = server_is_deserted(session);

    of(site->world)[TOTAL_EXECUTED_LATE] += late;
    if (late) site->executed_late_us = world_now(site->world);
}

void rare_closed(struct process *process, bool owed)
{
    struct world *world = process->world;

    for (uint32_t i = 0; i < world->plan->n_clients && owed; i++) {
        if (world->clients[i].machine != process->index || world->clients[i].state != CLIENT_OPEN) continue;
        of(world)[TOTAL_CUT_SHORT]++;
        return;
    }
}
