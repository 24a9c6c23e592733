/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fault.c - what each kind of fault does to the world
 *
 * No fault lasts beyond the time of faults by more than a quarter of a lease, so that what comes after can be
 * judged for liveness; but for one node that stays frozen, or a key that stays on one, where the plan says so.
 */
#include "sim.h"

#define ODD_AGAIN_US 300u

/* These come at their nth opportunity (process.c). */
static bool is_nth(enum plan_fault_kind kind)
{
    return kind == FAULT_PAUSE_CALLBACK || kind == FAULT_PAUSE_SEND || kind == FAULT_DEATH_CALLBACK ||
           kind == FAULT_DEATH_SEND;
}

void fault_plan_all(struct world *world)
{
    for (uint32_t i = 0; i < world->plan->n_faults; i++) {
        const struct plan_fault *fault = &world->plan->faults[i];

        if (is_nth(fault->kind) || fault->left_out) continue;
        world_plan(world, fault->at_us, EVENT_FAULT, 0, 0, i, 0);
    }
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void crash(struct world *world, uint32_t index, bool empty, uint64_t until_us)
{
    struct node *node = &world->nodes[index];

    if (!node->up) return;
    node->up = false;
    node->life++;
    node->scripts = 0;
    if (empty) server_forget_all(world, index);
    link_node_died(world, index);
    if (until_us != 0) world_plan(world, until_us, EVENT_RESTART, 0, index, 0, node->life);
}

void fault_restart(struct world *world, uint32_t index, uint32_t life)
{
    struct node *node = &world->nodes[index];

    if (node->up || node->life != life) return;
    TRACE(world, "node %u   is up again", index);
    node->up = true;
    guard_new_run(world, index);
}

/*
 * Replication to the replica stops now; some time later it is the node. What was written meanwhile is gone,
 * also from the guard. A node that was a replica itself has got the memory of its master then.
 */
static void promote(struct world *world, const struct plan_fault *fault, uint32_t index, uint32_t part,
                    uint64_t until_us)
{
    struct node *node = &world->nodes[fault->node];
    uint64_t started_us = node->started_us;

    if (part == 0) {
        server_remember(world, fault->node);
        world_plan(world, until_us, EVENT_FAULT, 0, 0, index, 1);
        return;
    }
    if (!node->replica.there || world->phase != PHASE_FAULTS) return;
    if (fault->kind != FAULT_PROMOTE && !node->up) return;
    TRACE(world, "node %u   is what its replica was", (unsigned)fault->node);
    world->totals->of[TOTAL_PROMOTED]++;
    server_recall(world, fault->node);
    node->up = true;
    if (fault->kind == FAULT_PROMOTE) {
        guard_new_run(world, fault->node);
        node->started_us = started_us; /* the replica was there for as long */
    } else {
        guard_new_replid(world, fault->node);
    }
    if (fault->kind == FAULT_FLIP_LIVE) return;
    node->life++;
    link_node_died(world, fault->node);
}

static void step_clock(struct world *world, const struct plan_fault *fault)
{
    int64_t by_us = (int64_t)fault->for_us;

    server_step_clock(world, fault->node, fault->kind == FAULT_STEP_BACK ? -by_us : by_us);
}

static void cut(struct world *world, const struct plan_fault *fault, uint64_t until_us)
{
    for (uint32_t client = 0; client < world->plan->n_clients; client++) {
        struct link *link = &world->clients[client].links[fault->node];

        if (!fault->all && client != fault->client) continue;
        if (fault->kind == FAULT_CUT_TO) {
            link->to_cut_until_us = later(link->to_cut_until_us, until_us);
        } else {
            link->from_cut_until_us = later(link->from_cut_until_us, until_us);
        }
    }
}

static void end_connection(struct world *world, const struct plan_fault *fault, uint32_t index)
{
    const struct client *client = &world->clients[fault->client];

    if (!client->alive) return;
    if (world->now_us < client->paused_until_us) {
        world_plan(world, client->paused_until_us, EVENT_FAULT, 0, 0, index, 0);
        return;
    }
    for (uint32_t node = 0; node < world->plan->n_nodes; node++) {
        if (!fault->all && node != fault->node) continue;
        link_end(world, &world->clients[fault->client].links[node],
                 fault->kind == FAULT_RESET_LATE ? FATE_LATE : FATE_ANY);
    }
}

static void end_subscriptions(struct world *world, const struct plan_fault *fault)
{
    for (uint32_t node = 0; node < world->plan->n_nodes; node++) {
        if (fault->all || node == fault->node) subscriptions_end(world, fault->client, node);
    }
}

static void slow(struct world *world, const struct plan_fault *fault, uint64_t until_us)
{
    for (uint32_t node = 0; node < world->plan->n_nodes; node++) {
        struct link *link = &world->clients[fault->client].links[node];

        if (!fault->all && node != fault->node) continue;
        link->slow_until_us = later(link->slow_until_us, until_us);
        link->slow_us = fault->nth % 2 == 0 ? until_us - world->now_us : (until_us - world->now_us) / 32;
    }
}

static void die(struct world *world, const struct plan_fault *fault, uint64_t until_us)
{
    process_die(world, fault->client);
    if (fault->nth % 2 == 0) world_plan(world, until_us, EVENT_BIRTH, fault->client, 0, 0, 0);
}

static void break_lock(struct world *world, uint32_t key)
{
    for (uint32_t i = 0; i < world->plan->n_nodes; i++) {
        if (world->nodes[i].up) server_delete(world, i, key);
    }
}

/* The client's locks are notified of new room, unless the client stands still. */
static void fill_queues(struct world *world, const struct plan_fault *fault, uint32_t index, uint32_t part,
                        uint64_t until_us)
{
    struct client *client = &world->clients[fault->client];

    if (part == 0) {
        client->unsent_until_us = later(client->unsent_until_us, world->now_us + (until_us - world->now_us) / 8);
    } else if (world->now_us >= client->unsent_until_us && world->now_us >= client->paused_until_us) {
        process_room(world, fault->client);
        return;
    }
    world_plan(world, later(client->unsent_until_us, client->paused_until_us), EVENT_FAULT, 0, 0, index, 1);
}

/* As soon as the key is free there, so that no lock loses a vote. */
static void leave_odd_key(struct world *world, const struct plan_fault *fault, uint32_t index)
{
    if (world->phase >= PHASE_STOPPED) return;
    if (world->nodes[fault->node].up && server_leave_odd(world, fault->node, fault->nth)) return;
    world_plan(world, world->now_us + ODD_AGAIN_US, EVENT_FAULT, 0, 0, index, 1);
}

static void begin(struct world *world, const struct plan_fault *fault, uint32_t index, uint32_t part, uint64_t until_us)
{
    struct node *node = &world->nodes[fault->node];

    switch (fault->kind) {
    case FAULT_CRASH: crash(world, fault->node, false, until_us); break;
    case FAULT_CRASH_EMPTY: crash(world, fault->node, true, until_us); break;
    case FAULT_PROMOTE:
    case FAULT_FLIP:
    case FAULT_FLIP_LIVE: promote(world, fault, index, part, until_us); break;
    case FAULT_FLUSH:
        if (node->up) server_forget_all(world, fault->node);
        break;
    case FAULT_STEP_BACK:
    case FAULT_STEP_FORWARD: step_clock(world, fault); break;
    case FAULT_FREEZE: node->frozen_until_us = later(node->frozen_until_us, until_us); break;
    case FAULT_CUT_TO:
    case FAULT_CUT_FROM: cut(world, fault, until_us); break;
    case FAULT_RESET:
    case FAULT_RESET_LATE: end_connection(world, fault, index); break;
    case FAULT_SLOW: slow(world, fault, until_us); break;
    case FAULT_PAUSE: process_pause(world, fault->client, until_us - world->now_us); break;
    case FAULT_SUSPEND: process_suspend(world, fault->client, until_us - world->now_us); break;
    case FAULT_DEATH:
    case FAULT_DEATH_CALLBACK:
    case FAULT_DEATH_SEND: die(world, fault, until_us); break;
    case FAULT_REFUSE_WRITES: node->refuse_writes_until_us = later(node->refuse_writes_until_us, until_us); break;
    case FAULT_REFUSE_ALL: node->refuse_all_until_us = later(node->refuse_all_until_us, until_us); break;
    case FAULT_FORGET_SCRIPTS: node->scripts = 0; break;
    case FAULT_UNSENT: fill_queues(world, fault, index, part, until_us); break;
    case FAULT_UNSUBSCRIBE: end_subscriptions(world, fault); break;
    case FAULT_LOSE_NOTICES: node->notices_lost_until_us = later(node->notices_lost_until_us, until_us); break;
    case FAULT_BREAK: break_lock(world, fault->nth % world->plan->n_keys); break;
    case FAULT_ODD: leave_odd_key(world, fault, index); break;
    case FAULT_PAUSE_CALLBACK:
    case FAULT_PAUSE_SEND:
    case FAULT_KINDS: break;
    }
}

void fault_event(struct world *world, uint32_t index, uint32_t part)
{
    const struct plan *plan = world->plan;
    const struct plan_fault *fault = &plan->faults[index];
    uint64_t until_us = world->now_us + fault->for_us;

    if (until_us > plan->active_us + plan->base_lease_us / 4 && !fault->for_ever)
        until_us = plan->active_us + plan->base_lease_us / 4;
    if (until_us <= world->now_us) until_us = world->now_us + 1;
    if (part == 0 && !is_nth(fault->kind)) world->totals->faults[fault->kind]++;
    TRACE(world, "FAULT %u  %s (node %u, client %u, for %llu us)", index, plan_fault_text(fault->kind),
          (unsigned)fault->node, (unsigned)fault->client, (unsigned long long)(until_us - world->now_us));
    begin(world, fault, index, part, until_us);
}

void fault_heal(struct world *world)
{
    for (uint32_t i = 0; i < world->plan->n_nodes; i++) {
        if (!world->plan->node_gone[i]) continue;
        TRACE(world, "node %u   is gone for good", i);
        crash(world, i, false, 0);
        world->nodes[i].life++;
        world->nodes[i].up = false;
    }
}
