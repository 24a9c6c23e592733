/* SPDX-License-Identifier: BSD-3-Clause */
/* machine.c - a machine's life: boots, stalls, dies, is buried */
#include "machine.h"

#include <stdlib.h>

#include "machine_parts.h"
#include "panic.h"

#define NAMES_US       1000
#define BURIAL_US      UINT64_C(3600000000) /* of its own time: far more than any close takes */
#define RANDOM_TURNS   1
#define RANDOM_BYTES   2
#define RANDOM_LOOKUPS 3

struct machine *machine_new(struct queue *queue, struct net *net)
{
    struct machine *machine = calloc(1, sizeof(*machine));

    if (machine == NULL) panic("no memory for a machine");
    machine->world_queue = machine->queue = queue;
    machine->net = net;
    return machine;
}

static void forget_call(struct call *call)
{
    struct machine *machine = call->machine;

    machine_due(&call->due, NULL);
    list_remove(&machine->calls, &call->at);
    call->next_spare = machine->spare_calls;
    machine->spare_calls = call;
}

static void forget_calls(struct machine *machine)
{
    while (machine->calls.count > 0) forget_call(FIRST_OF(&machine->calls, struct call, at));
}

void machine_free(struct machine *machine)
{
    if (machine == NULL) return;
    machine_memory_free(machine);
    forget_calls(machine);
    while (machine->spare_calls != NULL) {
        struct call *call = machine->spare_calls;

        machine->spare_calls = call->next_spare;
        free(call);
    }
    queue_free(&machine->own_queue);
    free(machine->scratch);
    free(machine->slots);
    free(machine);
}

static void on_clocks_changed(void *arg)
{
    machine_timers_set(arg);
}

void machine_boot(struct machine *machine, uint32_t index, uint64_t seed, const struct skew skews[MACHINE_CLOCKS],
                  const struct machine_events *events)
{
    if (machine->running || machine->n_blocks > 0 || machine->descriptors > 0)
        panic("machine %u boots, and has %zu blocks and %u descriptors", index, machine->n_blocks,
              machine->descriptors);
    forget_calls(machine);
    machine_memory_free(machine);
    queue_set(machine->world_queue, &machine->turn, NEVER);
    queue_set(machine->world_queue, &machine->clocks_changed, NEVER);
    *machine = (struct machine){.queue = machine->world_queue,
                                .world_queue = machine->world_queue,
                                .own_queue = machine->own_queue,
                                .net = machine->net,
                                .index = index,
                                .system = {&machine_ops, machine_loop(machine), &machine->alloc, machine},
                                .events = *events,
                                .clocks = {skews[MACHINE_BOOT], skews[MACHINE_RAW], skews[MACHINE_WALL]},
                                .turn = {.happen = machine_turn, .arg = machine},
                                .clocks_changed = {.happen = on_clocks_changed, .arg = machine},
                                .scratch = machine->scratch,
                                .scratch_room = machine->scratch_room,
                                .spare_calls = machine->spare_calls,
                                .names_us = NAMES_US,
                                .slots = machine->slots,
                                .slots_room = machine->slots_room,
                                .descriptors_limit = UINT32_MAX};
    rng_seed(&machine->turn_rng, seed, RANDOM_TURNS);
    rng_seed(&machine->random_rng, seed, RANDOM_BYTES);
    rng_seed(&machine->lookup_rng, seed, RANDOM_LOOKUPS);
    machine_memory_init(machine);
}

const struct system *machine_system(struct machine *machine)
{
    return &machine->system;
}

/* ---- standing still ---- */

/* From inside a callback: the others go on until then. When it was over. */
static uint64_t stand_still(struct machine *machine, uint64_t until_us)
{
    struct queue *queue = machine->queue;
    uint64_t outer_us = queue->stall_us;

    if (outer_us != 0 && until_us > outer_us) until_us = outer_us;
    queue->stall_us = until_us;
    while (!machine->dead && queue_next(queue, until_us)) continue;
    queue->stall_us = outer_us;
    return queue->now_us;
}

/* lose - clocks are about to lose this span of true time; false where they have lost all of it already. */
static bool lose(struct machine *machine, uint64_t *from_us, uint64_t until_us)
{
    if (*from_us < machine->lost_until_us) *from_us = machine->lost_until_us;
    if (until_us <= *from_us) return false;
    machine->lost_until_us = until_us;
    return true;
}

void machine_stall(struct machine *machine, uint64_t for_us, bool suspend)
{
    const struct skew *boot = &machine->clocks[MACHINE_BOOT];
    uint64_t now_us = machine->queue->now_us, from_us = now_us, until_us = now_us + for_us;

    if (machine->dead) return;
    if (machine->running)
        until_us = stand_still(machine, until_us);
    else if (machine->awake_us < until_us)
        machine->awake_us = until_us;
    if (!suspend || machine->dead || !lose(machine, &from_us, until_us)) return;
    skew_pause(&machine->clocks[MACHINE_RAW], now_us, from_us, until_us);
    /* By its own measure of that time. */
    machine->suspended_us += skew_read(boot, until_us) - skew_read(boot, from_us);
    machine_timers_set(machine);
}

void machine_pause(struct machine *machine, uint64_t for_us)
{
    uint64_t now_us = machine->queue->now_us, from_us = now_us, until_us = now_us + for_us;

    if (machine->dead || machine->running || !lose(machine, &from_us, until_us)) return;
    skew_pause(&machine->clocks[MACHINE_BOOT], now_us, from_us, until_us);
    skew_pause(&machine->clocks[MACHINE_RAW], now_us, from_us, until_us);
    machine_timers_set(machine);
    machine_stall(machine, for_us, false);
}

/* ---- the user's code ---- */

static void run_call(struct due *due)
{
    struct call *call = CONTAINER_OF(due, struct call, due);

    forget_call(call);
    call->call(call->arg);
}

void machine_call(struct machine *machine, void (*function)(void *arg), void *arg)
{
    struct call *call = machine->spare_calls;

    if (machine->dead) return;
    if (call != NULL)
        machine->spare_calls = call->next_spare;
    else
        call = malloc(sizeof(*call));
    if (call == NULL) panic("no memory for a call");
    *call = (struct call){.due.run = run_call, .machine = machine, .call = function, .arg = arg};
    list_add(&machine->calls, &call->at);
    machine_due(&call->due, &machine->pending);
    machine_soon(machine);
}

/* ---- the end ---- */

void machine_kill(struct machine *machine, bool host)
{
    if (machine->dead) return;
    machine->dead = true;
    queue_set(machine->queue, &machine->turn, NEVER);
    LIST_EACH (struct timer, timer, &machine->timers, at) queue_set(machine->queue, &timer->moment, NEVER);
    LIST_EACH (struct lookup, lookup, &machine->lookups, at) queue_set(machine->queue, &lookup->moment, NEVER);
    forget_calls(machine);
    net_die(machine->net, machine->index, host);
}

bool machine_is_running(const struct machine *machine)
{
    return machine->running;
}

size_t machine_bury(struct machine *machine, void (*close)(void *arg), void *arg)
{
    size_t left;

    if (!machine->dead || machine->running) panic("machine %u is buried alive", machine->index);
    machine->queue = &machine->own_queue;
    queue_clear(machine->queue);
    machine->queue->now_us = machine->awake_us = machine->world_queue->now_us;
    machine->burying = true;
    machine_timers_set(machine);
    machine_lookups_set(machine);
    for (uint32_t i = 0; i < machine->slots_room; i++)
        if (machine->slots[i].fd >= 0) machine_woken(machine, machine->slots[i].fd);
    machine_soon(machine);
    close(arg);
    while (machine->n_blocks > 0 && queue_next(machine->queue, machine->world_queue->now_us + BURIAL_US)) continue;
    left = machine->n_blocks;
    queue_clear(machine->queue);
    if (left == 0 && machine->descriptors > 0)
        panic("machine %u leaves %u descriptors open", machine->index, machine->descriptors);
    machine_memory_free(machine);
    for (uint32_t i = 0; i < machine->slots_room; i++) machine->slots[i] = (struct slot){.fd = -1};
    machine->descriptors = 0;
    machine->burying = false;
    machine->queue = machine->world_queue;
    return left;
}

/* ---- descriptors, clocks, counts ---- */

void machine_limit_descriptors(struct machine *machine, uint32_t n)
{
    machine->descriptors_limit = n;
}

uint32_t machine_descriptors(const struct machine *machine)
{
    return machine->descriptors;
}

struct skew *machine_clock(struct machine *machine, int which)
{
    if (!machine->dead && machine->clocks_changed.index == 0)
        queue_set(machine->queue, &machine->clocks_changed, machine->queue->now_us);
    return &machine->clocks[which];
}

uint64_t machine_now_us(struct machine *machine)
{
    return clock_advance(&machine->clock, machine_shows_us(machine, MACHINE_BOOT),
                         machine_shows_us(machine, MACHINE_RAW));
}

const struct machine_counts *machine_counted(const struct machine *machine)
{
    return &machine->counts;
}

void machine_names(struct machine *machine, uint64_t mean_us, bool fail)
{
    machine->names_us = mean_us;
    machine->names_fail = fail;
    machine_lookups_set(machine);
}
