/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * membership.c - an operator gives the clients another set of nodes
 *
 * As quorlock.h says, servers that leave are stopped first, and processes are started with the new set after the
 * reconfiguration has ended with 0. Until its turn comes each process uses the old set, also after it was killed and
 * started again. Hasty operators start processes with the new set earlier. That is safe, because the two sets never
 * both have a quorum (rule 4.13).
 */
#include "membership.h"

#include "operator.h"
#include "process.h"
#include "trace.h"
#include "user.h"

#define RENEWED_HEALED_US 100000u

const struct plan_set *membership_set(const struct world *world, uint32_t client)
{
    return &world->plan->sets[world->clients[client].renewed];
}

uint32_t membership_server(const struct world *world, uint32_t client, uint32_t node)
{
    return membership_set(world, client)->servers[plan_server(world->plan, client, node)];
}

uint32_t membership_quorum(const struct world *world, uint32_t client)
{
    uint32_t n = membership_set(world, client)->n;

    return world->plan->clients[client].policy == QUORLOCK_POLICY_ALL ? n : n / 2 + 1;
}

bool membership_is_renewed(const struct world *world, const struct user_client *client)
{
    return client->index == world->plan->n_clients || world->processes[client->machine].renewed;
}

bool membership_is_settled(const struct world *world)
{
    if (world->reconfigures == 0 || !world->plan->changes) return true;
    for (uint32_t i = 0; i < world->plan->n_clients; i++) {
        if (!world->clients[i].renewed) return false;
    }
    return true;
}

/* ---- one process after the other ---- */

static void close_now(void *arg)
{
    (void)user_close(arg, false);
}

static void on_renewal(void *arg)
{
    struct process *process = arg;
    struct world *world = process->world;

    process->renewed = true;
    TRACE(world, "machine %u has the new settings", process->index);
    if (!process->alive) return;
    if (rng_mix(world->plan->seed, 7100 + process->index) % 2 == 0) {
        process_kill(process, false, world_now(world) + 1);
        return;
    }
    for (uint32_t i = 0; i < world->plan->n_clients; i++) {
        struct user_client *client = &world->clients[i];

        if (client->machine == process->index && client->state == CLIENT_OPEN)
            machine_call(process->machine, close_now, client);
    }
}

static void renew_in(struct process *process, uint64_t most_us)
{
    struct world *world = process->world;

    if (process->renewed) return;
    process->renewal.happen = on_renewal;
    process->renewal.arg = process;
    queue_set(&world->queue, &process->renewal,
              world_now(world) + rng_mix(world->plan->seed, 7000 + process->index) % most_us);
}

static void count(struct world *world)
{
    const struct plan_set *before = &world->plan->sets[0], *now = &world->plan->sets[1];
    uint64_t *of = world->totals->of;

    of[TOTAL_SET_GREW] += now->n > before->n;
    of[TOTAL_SET_SHRANK] += now->n < before->n;
    of[TOTAL_SET_REPLACED] += now->n == before->n && world->plan->n_servers > now->n;
    of[TOTAL_SET_RENAMED] += now->renamed;
    of[TOTAL_LEASE_LONGER] += now->max_lease_ms > before->max_lease_ms;
    of[TOTAL_LEASE_SHORTER] += now->max_lease_ms < before->max_lease_ms;
}

/* Those whose time is not set yet. */
static void renew_all(struct world *world)
{
    uint64_t most_us = world->phase == PHASE_FAULTS ? 4 * MS * world->plan->max_lease_ms : RENEWED_HEALED_US;

    for (uint32_t i = 0; i < world->plan->n_machines; i++) {
        if (world->processes[i].renewal.happen == NULL) renew_in(&world->processes[i], most_us);
    }
}

void membership_begin(struct world *world)
{
    for (uint32_t i = 0; i < world->plan->n_servers; i++) {
        if (plan_leaves(world->plan, i)) site_stop(&world->sites[i]);
    }
    if (world->plan->hasty) renew_all(world);
}

void membership_changed(struct world *world)
{
    if (!world->plan->changes) return;
    if (!world->changed) count(world);
    world->changed = true;
    renew_all(world);
}

void membership_heal(struct world *world)
{
    for (uint32_t i = 0; i < world->plan->n_machines; i++) {
        if (world->processes[i].renewal.happen != NULL) renew_in(&world->processes[i], RENEWED_HEALED_US);
    }
}
