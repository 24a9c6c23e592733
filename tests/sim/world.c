/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.c - builds a world from a plan, and lets things happen in order
 *
 * Four phases: faults and contention; healed, where each key that is asked for must be
 * granted; stopped, where all locks are released and must come to rest; silence, after which no key may be
 * left.
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_US     10000u   /* how often the phase is looked at */
#define LIVENESS_US 4000000u /* beyond the longest lease: polls of up to 1 s, reconnecting, splits */
#define TURN_US     1500000u /* where each lock must have a turn: a poll, and a hold */
#define EVENTS_MAX  2000000u /* a world that never comes to its end */

uint64_t clock_read(uint64_t offset_us, int32_t rate_ppm, uint64_t true_us)
{
    return (uint64_t)((int64_t)(offset_us + true_us) + (int64_t)true_us * rate_ppm / 1000000);
}

uint64_t clock_when(uint64_t offset_us, int32_t rate_ppm, uint64_t shown_us)
{
    uint64_t since_us = shown_us > offset_us ? shown_us - offset_us : 0;
    uint64_t true_us = (uint64_t)((int64_t)since_us * 1000000 / (1000000 + rate_ppm));

    while (clock_read(offset_us, rate_ppm, true_us) < shown_us) true_us++;
    while (true_us > 0 && clock_read(offset_us, rate_ppm, true_us - 1) >= shown_us) true_us--;
    return true_us;
}

/* While it stands still, it has already lost all of that standstill, but for what is left of it. */
uint64_t world_client_clock(const struct world *world, uint32_t index, uint64_t true_us)
{
    const struct plan_client *plan = &world->plan->clients[index];
    const struct client *client = &world->clients[index];
    uint64_t shown_us = clock_read(plan->offset_us, plan->rate_ppm, true_us) - client->suspended_us;

    if (true_us >= client->suspended_until_us) return shown_us;
    return shown_us + client->suspended_until_us -
           (true_us > client->suspended_from_us ? true_us : client->suspended_from_us);
}

uint64_t world_client_when(const struct world *world, uint32_t index, uint64_t shown_us)
{
    const struct plan_client *plan = &world->plan->clients[index];
    const struct client *client = &world->clients[index];

    return clock_when(plan->offset_us, plan->rate_ppm, shown_us + client->suspended_us);
}

uint64_t world_wall_us(const struct world *world, uint32_t client)
{
    int64_t error_us = world->plan->clients[client].wall_error_us;

    return (uint64_t)((int64_t)(PLAN_EPOCH_US + world->now_us) + error_us);
}

uint64_t world_node_us(const struct world *world, uint32_t server)
{
    return clock_read(world->nodes[server].offset_us, world->plan->node_rate_ppm[server], world->now_us);
}

uint64_t world_node_ms(const struct world *world, uint32_t server)
{
    return world_node_us(world, server) / 1000;
}

static void *or_die(void *memory)
{
    if (memory != NULL) return memory;
    (void)fputs("sim: out of memory\n", stderr);
    exit(2);
}

void *world_room(void *items, uint32_t n, uint32_t *capacity, size_t size)
{
    if (n < *capacity) return items;
    *capacity = *capacity == 0 ? 256 : 2 * *capacity;
    return or_die(realloc(items, *capacity * size));
}

void world_open(struct world *world)
{
    memset(world, 0, sizeof(*world));
    world->memory = or_die(malloc(PLAN_LOCKS_MAX * world_lock_size()));
    alloc_init(&world->events.alloc, NULL);
    world->judged = UINT32_MAX;
}

void world_close(struct world *world)
{
    events_free(&world->events);
    free(world->requests);
    free(world->grants);
    free(world->memory);
}

static void build(struct world *world, const struct plan *plan)
{
    memset(world->nodes, 0, sizeof(world->nodes));
    memset(world->clients, 0, plan->n_clients * sizeof(world->clients[0]));
    memset(world->locks, 0, sizeof(world->locks));
    memset(&world->violation, 0, sizeof(world->violation));
    memset(world->grants_healed, 0, sizeof(world->grants_healed));
    events_clear(&world->events);
    world->plan = plan;
    world->now_us = 0;
    world->phase = PHASE_FAULTS;
    world->n_ghosts = 0;
    memset(world->shadows, 0, sizeof(world->shadows));
    memset(world->registers, 0, sizeof(world->registers));
    world->n_grants = 0;
    world->runs = 0;
    world->n_requests = 0;
    world->free_request = WORLD_NOBODY;
    world->over = false;
    world->hash = plan->seed;
    rng_seed(&world->chance, plan->seed, 3);
    rng_seed(&world->subscriptions_rng, plan->seed, 6);
    memset(world->handover, 0, sizeof(world->handover));
    for (uint32_t i = 0; i < plan->n_nodes; i++) {
        world->nodes[i].up = true;
        world->nodes[i].offset_us = plan->node_offset_us[i];
        guard_new_run(world, i);
        if (!plan->cold) guard_bootstrap(world, i);
    }
    for (uint32_t i = 0; i < plan->n_locks; i++) {
        world->locks[i].index = i;
        world->locks[i].config = plan->locks[i].config;
        world->locks[i].client = plan->locks[i].client;
        world->locks[i].key = plan->locks[i].key;
        world->locks[i].state = ACTOR_DEAD;
    }
    for (uint32_t i = 0; i < plan->n_clients; i++) {
        rng_seed(&world->clients[i].rng, plan->seed, 100 + i);
        process_born(world, i);
    }
    fault_plan_all(world);
    world_plan(world, plan->active_us, EVENT_PHASE, 0, 0, 0, 0);
}

static void enter(struct world *world, enum world_phase phase, uint64_t for_us)
{
    static const char *const texts[] = {"faults", "all faults have ended", "all locks are released", "silence"};

    TRACE(world, "%s", texts[phase]);
    world->phase = phase;
    world->phase_until_us = world->now_us + for_us;
    for (uint32_t i = 0; i < world->plan->n_locks && phase <= PHASE_STOPPED; i++) actor_hurry(world, &world->locks[i]);
}

static bool all_granted(const struct world *world)
{
    for (uint32_t i = 0; i < world->plan->n_locks; i++) {
        const struct lock *lock = &world->locks[i];

        if (lock->state == ACTOR_DEAD) continue;
        if (lock->config.wait_us != 0 && lock->config.wait_us < PLAN_WAIT_MIN_US) continue;
        if (world->plan->clients[lock->client].twins) continue;
        if (world->grants_healed[lock->key] == 0) return false;
        if (world->plan->turns && lock->config.wait_us == CORE_NEVER && !lock->had_turn) return false;
    }
    return true;
}

/* No lock is granted any more, or one was never granted. */
static void judge_starved(struct world *world)
{
    unsigned long long since_us = world->now_us - world->plan->active_us;

    for (uint32_t i = 0; i < world->plan->n_locks; i++) {
        const struct lock *lock = &world->locks[i];

        if (world->grants_healed[lock->key] == 0) continue;
        if (world->plan->turns && lock->state != ACTOR_DEAD && !lock->had_turn) {
            judge_violated(world, I10_FORGOTTEN, "lock %u had no turn for %llu us after the last fault", i, since_us);
        }
    }
    judge_violated(world, I9_LIVENESS, "no lock was granted for %llu us after the last fault", since_us);
}

static bool all_quiet(const struct world *world)
{
    for (uint32_t i = 0; i < world->plan->n_locks; i++) {
        const struct lock *lock = &world->locks[i];

        if (lock->state == ACTOR_DEAD) continue;
        if (lock->state != ACTOR_IDLE || !core_quiet(lock->core)) return false;
    }
    return true;
}

static void look_at_locks(struct world *world)
{
    for (uint32_t i = 0; i < world->plan->n_locks; i++) judge_in_time(world, &world->locks[i]);
}

static void look(struct world *world)
{
    const struct plan *plan = world->plan;
    uint64_t lease_us = plan->max_lease_us / 100 * 104;

    if (world->phase == PHASE_FAULTS) {
        fault_heal(world);
        /* Keys and quarantines that were begun late, by clocks that were set back. */
        enter(world, PHASE_HEALED,
              2 * lease_us + 2 * plan->back_us + plan->late_us + plan->base_lease_us + LIVENESS_US +
                  (plan->turns ? plan->n_locks * TURN_US : 0));
    } else if (world->phase == PHASE_HEALED) {
        look_at_locks(world);
        if (all_granted(world)) {
            handover_end(world);
            enter(world, PHASE_STOPPED, 2 * lease_us + plan->stall_us + plan->late_us);
        } else if (world->now_us >= world->phase_until_us) {
            judge_starved(world);
            world->over = true;
        }
    } else if (world->phase == PHASE_STOPPED) {
        look_at_locks(world);
        if (all_quiet(world)) {
            /* The dead have no rest: their last bytes may still be on slow ways. */
            enter(world, PHASE_SILENT, lease_us + plan->late_us + plan->stall_us + 4 * plan->base_lease_us);
            world_plan(world, world->phase_until_us, EVENT_PHASE, 0, 0, 0, 0);
            return;
        }
        if (world->now_us >= world->phase_until_us) {
            judge_violated(world, I10_FORGOTTEN, "a lock does not come to rest");
            world->over = true;
        }
    } else {
        judge_silent(world);
        world->over = true;
    }
    world_plan(world, world->now_us + LOOK_US, EVENT_PHASE, 0, 0, 0, 0);
}

static void handle(struct world *world, const struct event *event)
{
    switch ((enum event_type)event->type) {
    case EVENT_ARRIVE: link_arrive(world, event); break;
    case EVENT_ANSWER: link_answer(world, event); break;
    case EVENT_TIMEOUT: link_timeout(world, event); break;
    case EVENT_STALL: link_stall(world, event); break;
    case EVENT_CLOSED: link_closed(world, event); break;
    case EVENT_GREET: link_greet(world, event); break;
    case EVENT_CONNECT: link_connect(world, event); break;
    case EVENT_GUARD: link_guard(world, event); break;
    case EVENT_RETRY: link_retry(world, event); break;
    case EVENT_TIMER: process_timer(world, event); break;
    case EVENT_DISPATCH: process_dispatch(world, event); break;
    case EVENT_ACT: actor_act(world, event); break;
    case EVENT_EXPIRY: server_expire(world, event->node, event->index); break;
    case EVENT_FAULT: fault_event(world, event->index, event->serial); break;
    case EVENT_WRITE: tokens_write_arrives(world, event->index); break;
    case EVENT_RESTART: fault_restart(world, event->node, event->serial); break;
    case EVENT_BIRTH:
        world->totals->of[TOTAL_BIRTHS]++;
        process_born(world, event->client);
        break;
    case EVENT_SUBSCRIBE: subscriptions_subscribe(world, event); break;
    case EVENT_LISTENING: subscriptions_listening(world, event); break;
    case EVENT_NOTICE: subscriptions_notice(world, event); break;
    case EVENT_PHASE: look(world); break;
    }
}

bool world_run(struct world *world, const struct plan *plan, struct totals *totals)
{
    struct event event;
    uint32_t judged = world->judged;
    uint32_t n = 0;

    world->totals = totals;
    totals->runs++;
    /* What is not promised is counted, not judged (judge_violated). */
    if (plan->outside) {
        totals->of[TOTAL_OUTSIDE]++;
        world->judged &= ~((1u << I1_EXCLUSION) | (1u << I5_QUORUM_HOLDS));
        if (plan->counters_void) world->judged &= ~((1u << I2_UNIQUE) | (1u << I4_ORDER));
    }
    build(world, plan);
    while (!world->over && events_next(&world->events, &event)) {
        world->now_us = event.at_us;
        handle(world, &event);
        if (++n > EVENTS_MAX) {
            judge_violated(world, I10_FORGOTTEN, "the world never comes to its end");
            break;
        }
    }
    totals->events += n;
    world->judged = judged;
    return world->violation.invariant == INVARIANT_NONE;
}
