/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * actor.c    - acquires, holds for a while, extends, releases; cancels, loses, frees; and misuses now and then
 */
#include "sim.h"

static struct rng *rng_of(struct world *world, uint32_t index)
{
    return &world->clients[world->locks[index].client].rng;
}

static uint64_t lease_of(const struct world *world, uint32_t index)
{
    return world->locks[index].config.lease_us;
}

static void act_in(struct world *world, uint32_t index, uint64_t pause_us)
{
    struct lock *lock = &world->locks[index];

    lock->act_serial++;
    world_plan(world, world->now_us + pause_us, EVENT_ACT, lock->client, 0, index, lock->act_serial);
}

void actor_begin(struct world *world, uint32_t index)
{
    world->locks[index].state = ACTOR_IDLE;
    if (world->phase >= PHASE_STOPPED) return;
    /* Where each lock must have a turn, all come at once. */
    act_in(world, index, rng_below(rng_of(world, index), world->plan->turns ? 200 : lease_of(world, index)));
}

void actor_hurry(struct world *world, uint32_t index)
{
    if (world->locks[index].state == ACTOR_DEAD) return;
    act_in(world, index, rng_below(rng_of(world, index), 1000));
}

static void expect(struct world *world, uint32_t index, const char *call, int status, int expected)
{
    if (status == expected) return;
    judge_violated(world, I6_TOLD_ONCE, "lock %u: %s answered \"%s\", expected \"%s\"", index, call,
                   trace_status(status), trace_status(expected));
}

/* After the faults one turn of each lock is enough, where each must have one. */
static bool wants(const struct world *world, uint32_t index)
{
    if (world->phase >= PHASE_STOPPED) return false;
    return !(world->plan->turns && world->phase == PHASE_HEALED && world->locks[index].had_turn);
}

static void begin_acquire(struct world *world, uint32_t index)
{
    struct lock *lock = &world->locks[index];

    expect(world, index, "acquire", process_acquire(world, index), CORE_OK);
    lock->state = ACTOR_ACQUIRING;
    if (world->phase == PHASE_FAULTS && !world->plan->calm && rng_one_in(rng_of(world, index), 6)) {
        act_in(world, index, rng_below(rng_of(world, index), 2 * lease_of(world, index)));
    }
}

static void begin_release(struct world *world, uint32_t index)
{
    struct lock *lock = &world->locks[index];
    int status = process_release(world, index);

    /* The release before this hold may still be in flight, for one node timeout at most. */
    if (status == CORE_BUSY && lock->verdicts.releasing.pending) {
        act_in(world, index, 2000);
        return;
    }
    expect(world, index, "release", status, CORE_OK);
    lock->state = ACTOR_RELEASING;
    if (wants(world, index) && rng_one_in(rng_of(world, index), 4)) begin_acquire(world, index);
}

static void begin_extend(struct world *world, uint32_t index)
{
    struct lock *lock = &world->locks[index];
    struct rng *rng = rng_of(world, index);
    uint64_t lease_us = core_lease_us(lock->core);
    int status;

    if (world->plan->long_extends || rng_one_in(rng, 4)) lease_us = lease_us * rng_between(rng, 4, 8) / 4;
    if (lease_us > world->plan->max_lease_us) lease_us = world->plan->max_lease_us;
    lease_us -= lease_us % 1000;
    status = process_extend(world, index, lease_us);
    /* It may have been lost, or come to its longest hold, a moment ago. */
    if (status == CORE_STATE) {
        act_in(world, index, rng_below(rng, lease_us / 4));
        return;
    }
    expect(world, index, "extend", status, CORE_OK);
    lock->state = ACTOR_EXTENDING;
    if (rng_one_in(rng, 4)) act_in(world, index, rng_below(rng, lock->config.node_timeout_us));
}

static void cancel(struct world *world, uint32_t index)
{
    expect(world, index, "cancel", process_cancel(world, index, CORE_CANCELED), CORE_OK);
}

static void begin_free(struct world *world, uint32_t index)
{
    world->totals->of[TOTAL_FREED]++;
    world->locks[index].state = ACTOR_FREED;
    act_in(world, index, 0);
}

static void misuse(struct world *world, uint32_t index)
{
    const struct lock *lock = &world->locks[index];
    int status = 0;

    switch (rng_below(rng_of(world, index), 3)) {
    case 0: status = process_acquire(world, index); break;
    case 1: status = process_extend(world, index, core_lease_us(lock->core) - 1000); break;
    default: status = process_cancel(world, index, CORE_CANCELED); break;
    }
    if (status == CORE_OK) judge_violated(world, I6_TOLD_ONCE, "lock %u: a misuse was accepted", index);
    world->totals->of[TOTAL_MISUSES]++;
}

/* Somewhere else, under the protection of the lock. It may arrive when nothing of the lease is left. */
static void write_something(struct world *world, uint32_t index)
{
    struct rng *rng = rng_of(world, index);
    uint64_t lease_us = lease_of(world, index);

    if (rng_one_in(rng, 3)) return;
    tokens_write(world, index, rng_below(rng, rng_one_in(rng, 4) ? 2 * lease_us : lease_us / 16));
}

static void act_holding(struct world *world, uint32_t index)
{
    struct lock *lock = &world->locks[index];
    struct rng *rng = rng_of(world, index);

    write_something(world, index);
    if (world->now_us >= lock->hold_until_us || world->phase >= PHASE_HEALED) {
        if (world->phase == PHASE_FAULTS && !world->plan->calm && rng_one_in(rng, 10)) {
            begin_free(world, index);
        } else {
            begin_release(world, index);
        }
    } else if (rng_one_in(rng, 12)) {
        misuse(world, index);
        act_in(world, index, rng_below(rng, lease_of(world, index)));
    } else if (!lock->verdicts.extending.pending && (world->plan->long_extends || rng_one_in(rng, 3))) {
        begin_extend(world, index);
    } else {
        act_in(world, index, lock->hold_until_us - world->now_us);
    }
}

static void act_lost(struct world *world, uint32_t index)
{
    struct lock *lock = &world->locks[index];

    if (lock->verdicts.extending.pending) return; /* its verdict comes next */
    if (wants(world, index) && rng_one_in(rng_of(world, index), 3)) {
        begin_acquire(world, index);
    } else {
        begin_release(world, index);
    }
}

/* A handle that was freed: cancels, releases, and is gone when the core is quiet. */
static void act_freed(struct world *world, uint32_t index)
{
    struct lock *lock = &world->locks[index];
    enum core_phase phase;

    if (lock->verdicts.acquiring.pending || lock->verdicts.extending.pending) cancel(world, index);
    phase = core_phase_now(lock->core);
    if (phase == CORE_HELD || phase == CORE_LOST) (void)process_release(world, index);
    if (core_quiet(lock->core)) {
        process_new_lock(world, index);
        return;
    }
    act_in(world, index, lease_of(world, index) / 8);
}

void actor_act(struct world *world, const struct event *event)
{
    uint32_t index = event->index;
    struct lock *lock = &world->locks[index];

    if (lock->act_serial != event->serial || lock->state == ACTOR_DEAD) return;
    if (process_postponed(world, event)) return;
    judge_in_time(world, index);
    switch (lock->state) {
    case ACTOR_IDLE:
        if (wants(world, index)) begin_acquire(world, index);
        break;
    case ACTOR_ACQUIRING:
        if (lock->verdicts.acquiring.pending && !(world->plan->calm && world->phase < PHASE_STOPPED))
            cancel(world, index);
        break;
    case ACTOR_HOLDING: act_holding(world, index); break;
    case ACTOR_EXTENDING:
        if (lock->verdicts.extending.pending) cancel(world, index);
        break;
    case ACTOR_LOST: act_lost(world, index); break;
    case ACTOR_FREED: act_freed(world, index); break;
    case ACTOR_RELEASING:
    case ACTOR_DEAD: break;
    }
}

/* Holds and rests of some round trips, now and then of many. */
static uint64_t calm_us(const struct world *world, struct rng *rng)
{
    return rng_below(rng, (rng_one_in(rng, 8) ? 160u : 20u) * world->plan->round_trip_us);
}

static void told_granted(struct world *world, uint32_t index)
{
    struct lock *lock = &world->locks[index];
    struct rng *rng = rng_of(world, index);
    uint64_t lease_us = lease_of(world, index);
    uint64_t hold_us;

    switch (rng_below(rng, 8)) {
    case 0: hold_us = 0; break;
    case 1: hold_us = rng_between(rng, lease_us, 6 * lease_us); break;
    case 2: hold_us = 100 * lease_us; break; /* until it is lost */
    case 3:
    case 4: hold_us = rng_below(rng, 2 * lease_us); break;
    default: hold_us = rng_below(rng, lease_us / 2); break;
    }
    if (world->plan->long_extends && rng_one_in(rng, 2)) hold_us = 6 * lease_us;
    if (world->phase >= PHASE_HEALED) hold_us = rng_below(rng, lease_us / 8);
    if (world->plan->calm) hold_us = calm_us(world, rng);
    lock->state = ACTOR_HOLDING;
    lock->hold_until_us = world->now_us + hold_us;
    write_something(world, index);
    if (hold_us == 0) {
        begin_release(world, index);
    } else {
        act_in(world, index, world->plan->calm || rng_one_in(rng, 2) ? hold_us : rng_below(rng, hold_us));
    }
}

static void told_acquired(struct world *world, uint32_t index, int status)
{
    struct lock *lock = &world->locks[index];
    struct rng *rng = rng_of(world, index);
    uint64_t rest_us = lease_of(world, index) / 4;

    if (status == CORE_OK) {
        told_granted(world, index);
        return;
    }
    lock->state = ACTOR_IDLE;
    if (world->phase == PHASE_FAULTS && rng_one_in(rng, 16)) {
        begin_free(world, index);
    } else {
        act_in(world, index, rng_below(rng, world->phase == PHASE_FAULTS ? 3 * rest_us : rest_us));
    }
}

void actor_notify(struct world *world, uint32_t index, const struct core_completion *tell)
{
    struct lock *lock = &world->locks[index];
    struct rng *rng = rng_of(world, index);
    uint64_t soon_us = rng_below(rng, lease_of(world, index) / 2);

    if (lock->state == ACTOR_FREED) {
        act_in(world, index, 0);
        return;
    }
    switch (tell->kind) {
    case CORE_NOTIFY_ACQUIRED: told_acquired(world, index, tell->status); break;
    case CORE_NOTIFY_LOST:
        lock->state = ACTOR_LOST;
        act_in(world, index, rng_one_in(rng, 2) ? 0 : soon_us);
        break;
    case CORE_NOTIFY_EXTENDED:
        if (lock->state == ACTOR_EXTENDING) lock->state = ACTOR_HOLDING;
        /* Now and then the longer lease is all that is wanted. */
        if (world->phase == PHASE_FAULTS && world->plan->long_extends && tell->status == CORE_OK &&
            rng_one_in(rng, 2)) {
            lock->hold_until_us = world->now_us + 5 * core_lease_us(lock->core);
            soon_us = 5 * core_lease_us(lock->core);
        }
        act_in(world, index, soon_us);
        break;
    case CORE_NOTIFY_RELEASED:
        if (lock->state != ACTOR_RELEASING) break;
        lock->state = ACTOR_IDLE;
        if (world->plan->calm) soon_us = calm_us(world, rng);
        act_in(world, index, soon_us);
        break;
    case CORE_NOTIFY_NOTHING: break;
    }
}
