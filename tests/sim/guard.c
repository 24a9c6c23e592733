/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * guard.c - the restart guard
 *
 * A node that cannot be sure of its memory has no vote for one max_lease, by its own clock: whatever it may
 * have forgotten has ended then. A key of its own, which names the server that wrote it, shows whether it is.
 */
#include "sim.h"

void guard_new_replid(struct world *world, uint32_t server)
{
    world->nodes[server].replid = ++world->runs;
}

void guard_new_run(struct world *world, uint32_t server)
{
    world->nodes[server].run = ++world->runs;
    world->nodes[server].started_us = world->now_us;
    guard_new_replid(world, server);
}

void guard_bootstrap(struct world *world, uint32_t server)
{
    struct node *node = &world->nodes[server];

    node->guard = (struct guard){.there = true, .run = node->run, .replid = node->replid};
}

static bool is_kept(const struct world *world)
{
    return world->plan->guard != PLAN_GUARD_OFF && world->server_rule != SERVER_NO_GUARD &&
           world->server_rule != SERVER_UPTIME_GUARD;
}

/* What clients without a guard in the node go by. INFO reports whole seconds of the wall clock, since the whole
 * second in which the process was started. */
static uint64_t left_by_uptime_ms(const struct world *world, uint32_t server)
{
    const struct node *node = &world->nodes[server];
    uint64_t started_us = clock_read(node->offset_us, world->plan->node_rate_ppm[server], node->started_us) / 1000000;
    uint64_t uptime_ms = (world_node_us(world, server) / 1000000 - started_us) * 1000;
    uint64_t max_lease_ms = world->plan->max_lease_us / 1000;

    /* All were there for long when the world began. */
    if (node->started_us == 0) return 0;
    return uptime_ms < max_lease_ms ? max_lease_ms - uptime_ms : 0;
}

bool guard_look(struct world *world, uint32_t server, struct guard *ret_seen, uint64_t *ret_left_ms)
{
    struct node *node = &world->nodes[server];
    struct guard *guard = &node->guard;
    uint64_t now_ms = world_node_ms(world, server);
    uint64_t most_ms = now_ms + world->plan->max_lease_us / 1000 + 1;
    bool kept = guard->there && guard->run == node->run && guard->replid == node->replid;

    *ret_left_ms = 0;
    if (world->server_rule == SERVER_UPTIME_GUARD) *ret_left_ms = left_by_uptime_ms(world, server);
    if (!is_kept(world)) return true;
    /* A quarantine further away than any lease: its clock was set back. */
    if (!kept || guard->until_ms > most_ms) {
        if (world->now_us < node->refuse_writes_until_us) return false;
        *guard = (struct guard){.there = true, .run = node->run, .replid = node->replid, .until_ms = most_ms};
        world->totals->of[TOTAL_GUARD_WRITTEN]++;
        TRACE(world, "node %u   may have lost its memory: no vote for %llu ms", server,
              (unsigned long long)(most_ms - now_ms));
    }
    *ret_seen = *guard;
    *ret_left_ms = guard->until_ms > now_ms ? guard->until_ms - now_ms : 0;
    return true;
}

static bool same(const struct guard *a, const struct guard *b)
{
    return a->there == b->there && a->run == b->run && a->replid == b->replid && a->until_ms == b->until_ms;
}

bool guard_broken(const struct world *world, const struct request *request)
{
    uint32_t server = plan_server(world->plan, request->client, request->node);

    return is_kept(world) && !same(&world->nodes[server].guard, &request->seen);
}

bool guard_is_strict_broken(const struct world *world, const struct request *request)
{
    const struct node *node = &world->nodes[plan_server(world->plan, request->client, request->node)];

    if (world->plan->guard != PLAN_GUARD_STRICT || !is_kept(world)) return false;
    return request->seen.run != node->run || request->seen.replid != node->replid;
}
