/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * process.c - a process on a machine, from its start to its end
 *
 * A process may be suspended inside one of its own callbacks. The world then goes on while the frames of that callback
 * are below it on the stack. So the memory of such a process is freed only after these frames have returned.
 */
#include "process.h"

#include <string.h>

#include "judge.h"
#include "operator.h"
#include "rare.h"
#include "trace.h"
#include "user.h"

#define BURY_AGAIN_US 1000u
#define SPINS_MAX     1000u

static void on_turned(void *arg, struct machine *machine)
{
    struct process *process = arg;

    (void)machine;
    if (!process->alive) return;
    judge_turned(process);
    process->stood_in_turn = process->stood_at_look = false;
}

static void on_reads_clock(void *arg, struct machine *machine)
{
    struct process *process = arg;

    (void)machine;
    if (!process->world->judging) (void)process_at(process, AT_CLOCK);
}

static void on_sends(void *arg, struct machine *machine, uint32_t server, size_t size)
{
    (void)machine;
    (void)server;
    (void)size;
    (void)process_at(arg, AT_SEND);
}

/* Deterministic, and without a stream of its own: the nth allocation fails. */
static bool on_allocates(void *arg, struct machine *machine, size_t size)
{
    struct process *process = arg;
    struct world *world = process->world;

    (void)machine;
    (void)size;
    if (!process->alive || world_now(world) >= process->no_memory_until_us) return true;
    process->allocations++;
    return rng_mix(world->plan->seed ^ process->life, process->allocations) % process->no_memory_one_in != 0;
}

bool process_lacks_random(const struct process *process)
{
    return world_now(process->world) < process->no_random_until_us;
}

static bool on_draws(void *arg, struct machine *machine)
{
    struct process *process = arg;
    struct world *world = process->world;

    (void)machine;
    if (!process->alive || !process_lacks_random(process)) return true;
    process->draws++;
    if (rng_mix(world->plan->seed ^ process->life, process->draws) % process->no_random_one_in != 0) return true;
    world->totals->of[TOTAL_NO_RANDOM]++;
    return false;
}

static void on_closes(void *arg, struct machine *machine, bool owed)
{
    (void)machine;
    rare_closed(arg, owed);
}

bool process_at(struct process *process, enum opportunity opportunity)
{
    if (!process->alive || process->inside || process->world->over) return process->alive;
    operator_strike(process, opportunity);
    /* The library looks at the clock before the next callback. */
    if (opportunity == AT_CALLBACK) process->stood_in_turn = false;
    return process->alive;
}

/* ---- birth ---- */

static void open_client(void *arg)
{
    user_open(arg);
}

void process_boot(struct world *world, uint32_t index)
{
    struct process *process = &world->processes[index];
    const struct plan_machine *plan = &world->plan->machines[index % PLAN_MACHINES_MAX];
    uint64_t now_us = world_now(world);
    uint64_t wall_us = PLAN_EPOCH_US + now_us + (uint64_t)plan->wall_error_us;
    struct skew skews[3] = {
        [MACHINE_BOOT] = {.begun_us = now_us, .shown_us = plan->boot_us, .rate_ppm = plan->rate_ppm},
        [MACHINE_RAW] = {.begun_us = now_us, .shown_us = plan->raw_us, .rate_ppm = plan->rate_ppm},
        [MACHINE_WALL] = {.begun_us = now_us, .shown_us = wall_us, .rate_ppm = 0},
    };

    process->events = (struct machine_events){.turned = on_turned,
                                              .reads_clock = on_reads_clock,
                                              .sends = on_sends,
                                              .allocates = on_allocates,
                                              .draws = on_draws,
                                              .closes = on_closes,
                                              .arg = process};
    process->rate_ppm = plan->rate_ppm;
    process->life++;
    process->alive = true;
    process->inside = process->stood_in_turn = process->stood_at_look = false;
    process->stands_until_us = process->no_memory_until_us = process->no_random_until_us = 0;
    machine_boot(process->machine, index, rng_mix(world->plan->seed, 5000 + 100 * process->life + index), skews,
                 &process->events);
    TRACE(world, "machine %u starts", index);
    for (uint32_t i = 0; i <= world->plan->n_clients; i++) {
        struct user_client *client = &world->clients[i];

        if (client->machine == index) machine_call(process->machine, open_client, client);
    }
}

/* ---- death ---- */

static void close_clients(void *arg)
{
    struct process *process = arg;
    struct world *world = process->world;

    for (uint32_t i = 0; i <= world->plan->n_clients; i++) {
        struct user_client *client = &world->clients[i];

        if (client->machine != process->index || client->state != CLIENT_OPEN) continue;
        client->state = CLIENT_CLOSING;
        (void)quorlock_client_close(client->client, NULL, NULL);
    }
}

static void bury(struct process *process)
{
    struct world *world = process->world;
    uint64_t spins = machine_counted(process->machine)->spins;
    size_t blocks = machine_bury(process->machine, close_clients, process);

    world->totals->of[TOTAL_BURIED]++;
    if (spins > world->totals->most_spins) world->totals->most_spins = spins;
    if (spins > SPINS_MAX) {
        judge_violated(world, REQUEST_STORM, "machine %u: its loop spun for %llu turns", process->index,
                       (unsigned long long)spins);
    }
    if (blocks != 0) {
        judge_violated(world, LEAK, "machine %u: %zu blocks of memory are left when all its clients are closed",
                       process->index, blocks);
    }
    for (uint32_t i = 0; i <= world->plan->n_clients; i++) {
        if (world->clients[i].machine == process->index) user_forget(&world->clients[i]);
    }
}

static void on_birth(void *arg)
{
    struct process *process = arg;
    struct world *world = process->world;

    if (machine_is_running(process->machine)) {
        queue_set(&world->queue, &process->birth, world_now(world) + BURY_AGAIN_US);
        return;
    }
    bury(process);
    world->totals->of[TOTAL_BIRTHS]++;
    process_boot(world, process->index);
}

void process_kill(struct process *process, bool host, uint64_t again_us)
{
    struct world *world = process->world;

    if (!process->alive) return;
    TRACE(world, "machine %u %s", process->index, host ? "vanishes" : "is killed");
    judge_killed(process);
    process->alive = false;
    machine_kill(process->machine, host);
    process->birth = (struct moment){.happen = on_birth, .arg = process};
    queue_set(&world->queue, &process->birth, again_us);
}

void process_bury_all(struct world *world)
{
    for (uint32_t i = 0; i <= world->plan->n_machines; i++) {
        struct process *process = &world->processes[i];

        if (process->life == 0) continue;
        if (process->alive) machine_kill(process->machine, false);
        process->alive = false;
        bury(process);
    }
}

/* ---- standing still ---- */

void process_stall(struct process *process, uint64_t for_us, bool suspend)
{
    struct world *world = process->world;
    uint64_t begun_us = world_now(world);
    uint64_t until_us = begun_us + for_us;
    uint64_t stands_until_us = process->stands_until_us;

    if (!process->alive || process->inside) return;
    TRACE(world, "machine %u stalls for %llu us%s", process->index, (unsigned long long)for_us,
          suspend ? ", suspended" : "");
    judge_stalls(process);
    process->stood_in_turn = process->inside = true;
    if (until_us > stands_until_us) process->stands_until_us = until_us;
    machine_stall(process->machine, for_us, suspend);
    process->inside = false;
    /* From inside of one of its callbacks it is over, and may have been shortened. */
    world->totals->of[TOTAL_STALL_TURN] += world_now(world) > begun_us;
    if (world_now(world) > begun_us) process->stands_until_us = until_us = world_now(world);
    if (stands_until_us > begun_us) begun_us = stands_until_us;
    if (until_us > begun_us) process->stood_us += until_us - begun_us;
}

bool process_stood(const struct process *process)
{
    return process->stands_until_us != 0 && world_now(process->world) < process->stands_until_us + LATE_US;
}

/* ---- its clock ---- */

uint64_t process_now_us(struct process *process)
{
    uint64_t now_us;

    process->world->judging = true;
    now_us = machine_now_us(process->machine);
    process->world->judging = false;
    return now_us;
}

uint64_t process_true_us(struct process *process, uint64_t shown_us)
{
    uint64_t now_us = process_now_us(process);
    uint64_t left_us = shown_us > now_us ? shown_us - now_us : 0;

    return world_now(process->world) + left_us * 1000000 / (uint64_t)(1000000 + process->rate_ppm);
}
