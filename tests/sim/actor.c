/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * actor.c - acquires, holds for a while, extends, releases; cancels, loses, frees; and misuses now and then
 */
#include "sim.h"

static struct rng *rng_of(struct world *world, struct lock *lock)
{
    return &world->clients[lock->client].rng;
}

static void act_in(struct world *world, struct lock *lock, uint64_t pause_us)
{
    lock->act_serial++;
    world_plan(world, world->now_us + pause_us, EVENT_ACT, lock->client, 0, lock->index, lock->act_serial);
}

void actor_begin(struct world *world, struct lock *lock)
{
    lock->state = ACTOR_IDLE;
    if (world->phase >= PHASE_STOPPED) return;
    /* Where each lock must have a turn, all come at once. */
    act_in(world, lock, rng_below(rng_of(world, lock), world->plan->turns ? 200 : lock->config.lease_us));
}

void actor_hurry(struct world *world, struct lock *lock)
{
    if (lock->state == ACTOR_DEAD) return;
    act_in(world, lock, rng_below(rng_of(world, lock), 1000));
}

static void expect(struct world *world, struct lock *lock, const char *call, int status, int expected)
{
    if (status == expected) return;
    judge_violated(world, I6_NOTIFIED_ONCE, "lock %u: %s answered \"%s\", expected \"%s\"", lock->index, call,
                   trace_status(status), trace_status(expected));
}

/* After the faults one turn of each lock is enough, where each must have one. */
static bool wants(const struct world *world, const struct lock *lock)
{
    if (world->phase >= PHASE_STOPPED) return false;
    return !(world->plan->turns && world->phase == PHASE_HEALED && lock->had_turn);
}

static void begin_acquire(struct world *world, struct lock *lock)
{
    expect(world, lock, "acquire", process_acquire(world, lock), CORE_OK);
    lock->state = ACTOR_ACQUIRING;
    if (world->phase == PHASE_FAULTS && !world->plan->calm && rng_one_in(rng_of(world, lock), 6)) {
        act_in(world, lock, rng_below(rng_of(world, lock), 2 * lock->config.lease_us));
    }
}

static void begin_release(struct world *world, struct lock *lock)
{
    int status = process_release(world, lock);

    /* The release before this hold may still be in flight, for one node timeout at most. */
    if (status == CORE_BUSY && lock->verdicts.releasing.pending) {
        act_in(world, lock, 2000);
        return;
    }
    expect(world, lock, "release", status, CORE_OK);
    lock->state = ACTOR_RELEASING;
    if (wants(world, lock) && rng_one_in(rng_of(world, lock), 4)) begin_acquire(world, lock);
}

static void begin_extend(struct world *world, struct lock *lock)
{
    struct rng *rng = rng_of(world, lock);
    uint64_t lease_us = core_lease_us(lock->core);
    int status;

    if (world->plan->long_extends || rng_one_in(rng, 4)) lease_us = lease_us * rng_between(rng, 4, 8) / 4;
    if (lease_us > world->plan->max_lease_us) lease_us = world->plan->max_lease_us;
    lease_us -= lease_us % 1000;
    status = process_extend(world, lock, lease_us);
    /* It may have been lost, or come to its longest hold, a moment ago. */
    if (status == CORE_STATE) {
        act_in(world, lock, rng_below(rng, lease_us / 4));
        return;
    }
    expect(world, lock, "extend", status, CORE_OK);
    lock->state = ACTOR_EXTENDING;
    if (rng_one_in(rng, 4)) act_in(world, lock, rng_below(rng, lock->config.node_timeout_us));
}

static void cancel(struct world *world, struct lock *lock)
{
    expect(world, lock, "cancel", process_cancel(world, lock, CORE_CANCELED), CORE_OK);
}

static void begin_free(struct world *world, struct lock *lock)
{
    world->totals->of[TOTAL_FREED]++;
    lock->state = ACTOR_FREED;
    act_in(world, lock, 0);
}

static void misuse(struct world *world, struct lock *lock)
{
    int status = 0;

    switch (rng_below(rng_of(world, lock), 3)) {
    case 0: status = process_acquire(world, lock); break;
    case 1: status = process_extend(world, lock, core_lease_us(lock->core) - 1000); break;
    default: status = process_cancel(world, lock, CORE_CANCELED); break;
    }
    if (status == CORE_OK) judge_violated(world, I6_NOTIFIED_ONCE, "lock %u: a misuse was accepted", lock->index);
    world->totals->of[TOTAL_MISUSES]++;
}

/* Somewhere else, under the protection of the lock. It may arrive when nothing of the lease is left. */
static void write_something(struct world *world, struct lock *lock)
{
    struct rng *rng = rng_of(world, lock);
    uint64_t lease_us = lock->config.lease_us;

    if (rng_one_in(rng, 3)) return;
    tokens_write(world, lock, rng_below(rng, rng_one_in(rng, 4) ? 2 * lease_us : lease_us / 16));
}

static void act_holding(struct world *world, struct lock *lock)
{
    struct rng *rng = rng_of(world, lock);

    write_something(world, lock);
    if (world->now_us >= lock->hold_until_us || world->phase >= PHASE_HEALED) {
        if (world->phase == PHASE_FAULTS && !world->plan->calm && rng_one_in(rng, 10)) {
            begin_free(world, lock);
        } else {
            begin_release(world, lock);
        }
    } else if (rng_one_in(rng, 12)) {
        misuse(world, lock);
        act_in(world, lock, rng_below(rng, lock->config.lease_us));
    } else if (!lock->verdicts.extending.pending && (world->plan->long_extends || rng_one_in(rng, 3))) {
        begin_extend(world, lock);
    } else {
        act_in(world, lock, lock->hold_until_us - world->now_us);
    }
}

static void act_lost(struct world *world, struct lock *lock)
{
    if (lock->verdicts.extending.pending) return; /* its verdict comes next */
    if (wants(world, lock) && rng_one_in(rng_of(world, lock), 3)) {
        begin_acquire(world, lock);
    } else {
        begin_release(world, lock);
    }
}

/* A handle that was freed: cancels, releases, and is gone when the core is quiet. */
static void act_freed(struct world *world, struct lock *lock)
{
    enum core_phase phase;

    if (lock->verdicts.acquiring.pending || lock->verdicts.extending.pending) cancel(world, lock);
    phase = core_phase_now(lock->core);
    if (phase == CORE_HELD || phase == CORE_LOST) (void)process_release(world, lock);
    if (core_quiet(lock->core)) {
        process_new_lock(world, lock);
        return;
    }
    act_in(world, lock, lock->config.lease_us / 8);
}

void actor_act(struct world *world, const struct event *event)
{
    struct lock *lock = &world->locks[event->index];

    if (lock->act_serial != event->serial || lock->state == ACTOR_DEAD) return;
    if (process_postponed(world, event)) return;
    judge_in_time(world, lock);
    switch (lock->state) {
    case ACTOR_IDLE:
        if (wants(world, lock)) begin_acquire(world, lock);
        break;
    case ACTOR_ACQUIRING:
        if (lock->verdicts.acquiring.pending && !(world->plan->calm && world->phase < PHASE_STOPPED))
            cancel(world, lock);
        break;
    case ACTOR_HOLDING: act_holding(world, lock); break;
    case ACTOR_EXTENDING:
        if (lock->verdicts.extending.pending) cancel(world, lock);
        break;
    case ACTOR_LOST: act_lost(world, lock); break;
    case ACTOR_FREED: act_freed(world, lock); break;
    case ACTOR_RELEASING:
    case ACTOR_DEAD: break;
    }
}

/* Holds and rests of some round trips, now and then of many. */
static uint64_t calm_us(const struct world *world, struct rng *rng)
{
    return rng_below(rng, (rng_one_in(rng, 8) ? 160u : 20u) * world->plan->round_trip_us);
}

static void on_granted(struct world *world, struct lock *lock)
{
    struct rng *rng = rng_of(world, lock);
    uint64_t lease_us = lock->config.lease_us;
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
    write_something(world, lock);
    if (hold_us == 0) {
        begin_release(world, lock);
    } else {
        act_in(world, lock, world->plan->calm || rng_one_in(rng, 2) ? hold_us : rng_below(rng, hold_us));
    }
}

static void on_acquired(struct world *world, struct lock *lock, int status)
{
    struct rng *rng = rng_of(world, lock);
    uint64_t rest_us = lock->config.lease_us / 4;

    if (status == CORE_OK) {
        on_granted(world, lock);
        return;
    }
    lock->state = ACTOR_IDLE;
    if (world->phase == PHASE_FAULTS && rng_one_in(rng, 16)) {
        begin_free(world, lock);
    } else {
        act_in(world, lock, rng_below(rng, world->phase == PHASE_FAULTS ? 3 * rest_us : rest_us));
    }
}

void actor_notify(struct world *world, struct lock *lock, const struct core_completion *completion)
{
    struct rng *rng = rng_of(world, lock);
    uint64_t soon_us = rng_below(rng, lock->config.lease_us / 2);

    if (lock->state == ACTOR_FREED) {
        act_in(world, lock, 0);
        return;
    }
    switch (completion->kind) {
    case CORE_NOTIFY_ACQUIRED: on_acquired(world, lock, completion->status); break;
    case CORE_NOTIFY_LOST:
        lock->state = ACTOR_LOST;
        act_in(world, lock, rng_one_in(rng, 2) ? 0 : soon_us);
        break;
    case CORE_NOTIFY_EXTENDED:
        if (lock->state == ACTOR_EXTENDING) lock->state = ACTOR_HOLDING;
        /* Now and then the longer lease is all that is wanted. */
        if (world->phase == PHASE_FAULTS && world->plan->long_extends && completion->status == CORE_OK &&
            rng_one_in(rng, 2)) {
            lock->hold_until_us = world->now_us + 5 * core_lease_us(lock->core);
            soon_us = 5 * core_lease_us(lock->core);
        }
        act_in(world, lock, soon_us);
        break;
    case CORE_NOTIFY_RELEASED:
        if (lock->state != ACTOR_RELEASING) break;
        lock->state = ACTOR_IDLE;
        if (world->plan->calm) soon_us = calm_us(world, rng);
        act_in(world, lock, soon_us);
        break;
    case CORE_NOTIFY_NOTHING: break;
    }
}
