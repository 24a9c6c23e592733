/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * actor.c - a user of one lock: acquires, holds, nests, extends and releases; cancels, loses, frees and closes;
 * sometimes misuses the API
 *
 * Everything runs in the event loop of the actor's machine: in a callback of the library, or in an event of the user.
 */
#include "actor.h"

#include <string.h>

#include "judge.h"
#include "membership.h"
#include "passing.h"
#include "process.h"
#include "tokens.h"
#include "user.h"

#define AGAIN_US 20000u
#define BEATS    8u /* in a lease */

static bool has(const struct actor *actor, enum plan_feature feature)
{
    return plan_has(actor->world->plan, feature);
}

/* What holds and rests are measured by. */
static bool extends_much(const struct actor *actor)
{
    return actor->world->plan->bias == BIAS_LATE_EXECUTION || actor->world->plan->bias == BIAS_LATE_EXTEND;
}

static uint64_t lease_us(const struct actor *actor)
{
    uint64_t pace_us = actor->world->plan->pace_us;

    return pace_us != 0 ? pace_us : actor->plan->options.lease_ms * MS;
}

static uint64_t draw(struct actor *actor, uint64_t below)
{
    return rng_below(&actor->rng, below > UINT32_MAX ? UINT32_MAX : below);
}

/* Drawn in any case, so that leaving out a feature changes nothing else. */
static bool draw_if(struct actor *actor, enum plan_feature feature, uint32_t one_in)
{
    bool drawn = rng_one_in(&actor->rng, one_in);

    return drawn && has(actor, feature) && actor->world->phase == PHASE_FAULTS;
}

/* ---- when it acts ---- */

static void act(struct actor *);

static void on_call(void *arg)
{
    struct actor *actor = arg;

    if (!actor_process(actor)->alive || actor->world->over || !actor->called) return;
    actor->called = false;
    if (actor_client(actor)->state == CLIENT_OPEN && !actor->plan->left_out) act(actor);
}

static void on_moment(void *arg)
{
    struct actor *actor = arg;

    if (!actor_process(actor)->alive || actor_client(actor)->state != CLIENT_OPEN || actor->called) return;
    actor->called = true;
    machine_call(actor_process(actor)->machine, on_call, actor);
}

static void act_in(struct actor *actor, uint64_t pause_us)
{
    uint64_t at_us = world_now(actor->world) + pause_us, beat_us = lease_us(actor) / BEATS;

    if (has(actor, FEATURE_BEAT) && actor->world->phase == PHASE_FAULTS) at_us += beat_us - at_us % beat_us;
    actor->moment.happen = on_moment;
    actor->moment.arg = actor;
    queue_set(&actor->world->queue, &actor->moment, at_us);
}

void actor_begin(struct actor *actor)
{
    uint64_t pause_us = draw(actor, actor->world->plan->turns ? 200 : lease_us(actor));

    if (actor->plan->course.set) pause_us = actor->plan->course.begin_us;
    actor->state = ACTOR_IDLE;
    if (actor->world->phase < PHASE_STOPPED && !actor->plan->left_out) act_in(actor, pause_us);
}

void actor_hurry(struct actor *actor)
{
    if (actor_client(actor)->state == CLIENT_OPEN && !actor->plan->left_out) act_in(actor, draw(actor, 1000));
}

void actor_reset(struct actor *actor)
{
    judge_given_back(actor, "released");
    queue_set(&actor->world->queue, &actor->moment, NEVER);
    actor->state = ACTOR_IDLE;
    actor->called = actor->lost = false;
    actor->lock = NULL;
    actor->holds = actor->releasing = 0;
    actor->acquiring = actor->extending = NULL;
    actor->adopting = NULL;
}

/* ---- what it calls ---- */

static void expect(struct actor *actor, const char *call, int status, int expected)
{
    if (status == expected || !actor_process(actor)->alive) return;
    judge_violated(actor->world, I6_TOLD_ONCE, "actor %u: %s answered %s, expected %s", actor->index, call,
                   quorlock_status_name(status), quorlock_status_name(expected));
}

/* After the faults one turn of each lock is enough, where each must have one. */
static bool wants(const struct actor *actor)
{
    if (actor->world->phase >= PHASE_STOPPED) return false;
    return !(actor->world->plan->turns && actor->world->phase == PHASE_HEALED && actor->had_turn);
}

static void begin_acquire(struct actor *actor)
{
    int status;

    if (actor->lock == NULL && user_new(actor) != QUORLOCK_OK) {
        act_in(actor, AGAIN_US);
        return;
    }
    status = user_acquire(actor, passing_take(actor));
    /* No attempt, and so no owner token, without random bytes. */
    if (status == QUORLOCK_ERR_STATE && process_lacks_random(actor_process(actor)) && actor->plan->owner == 0) {
        actor->world->totals->of[TOTAL_CALLS_NO_RANDOM]++;
        act_in(actor, AGAIN_US);
        return;
    }
    /* Other holds of the owner may stand in the way, be lost, or have come to their longest hold. */
    if (status == QUORLOCK_ERR_NOMEM ||
        (actor->plan->owner != 0 &&
         (status == QUORLOCK_ERR_LOST || status == QUORLOCK_ERR_INVAL || status == QUORLOCK_ERR_STATE))) {
        actor->world->totals->of[TOTAL_NESTED_FAILED] += status != QUORLOCK_ERR_NOMEM;
        act_in(actor, AGAIN_US);
        return;
    }
    expect(actor, "acquire", status, QUORLOCK_OK);
    if (actor->holds == 0 || actor->lost) actor->state = ACTOR_ACQUIRING;
    if (draw_if(actor, FEATURE_CANCELS, 5)) act_in(actor, draw(actor, 2 * lease_us(actor)));
}

static void free_handle(struct actor *actor, bool inside)
{
    actor->world->totals->of[TOTAL_FREED_INSIDE] += inside;
    user_free(actor);
    if (wants(actor)) act_in(actor, draw(actor, lease_us(actor) / 2));
}

static void begin_release(struct actor *actor)
{
    bool quietly = draw_if(actor, FEATURE_FREES, 12);
    int status = user_release(actor, quietly);

    expect(actor, "release", status, QUORLOCK_OK);
    if (actor->holds > 0) {
        act_in(actor, draw(actor, lease_us(actor) / 4));
        return;
    }
    actor->state = quietly ? ACTOR_IDLE : ACTOR_RELEASING;
    if (rng_one_in(&actor->rng, 4) && wants(actor) && !actor->plan->course.set) {
        begin_acquire(actor);
    } else if (quietly) {
        act_in(actor, draw(actor, lease_us(actor) / 2));
    }
}

static void begin_extend(struct actor *actor)
{
    uint32_t most_ms = membership_set(actor->world, actor->plan->client)->max_lease_ms;
    uint32_t lease_ms = actor->lease_ms;
    bool longer = rng_one_in(&actor->rng, extends_much(actor) ? 2 : 4);
    uint64_t quarters = rng_between(&actor->rng, 4, 8);
    int status;

    if (longer) lease_ms = (uint32_t)(lease_ms * quarters / 4);
    if (lease_ms > most_ms) lease_ms = most_ms;
    if (!longer && draw_if(actor, FEATURE_MISUSES, 3)) lease_ms = 0;
    status = user_extend(actor, lease_ms);
    /* It may have been lost, or come to its longest hold, a moment ago; another handle of its owner may extend it, or
     * have made it longer. */
    if (status == QUORLOCK_ERR_STATE ||
        (actor->plan->owner != 0 && (status == QUORLOCK_ERR_BUSY || status == QUORLOCK_ERR_INVAL))) {
        act_in(actor, draw(actor, lease_us(actor) / 4));
        return;
    }
    if (status == QUORLOCK_ERR_NOMEM) {
        act_in(actor, AGAIN_US);
        return;
    }
    expect(actor, "extend", status, QUORLOCK_OK);
    actor->state = ACTOR_EXTENDING;
    if (draw_if(actor, FEATURE_CANCELS, 4)) act_in(actor, draw(actor, lease_us(actor) / 10));
}

static void cancel(struct actor *actor)
{
    expect(actor, "cancel", user_cancel(actor), QUORLOCK_OK);
}

static void misuse(struct actor *actor)
{
    bool plain = actor->plan->owner == 0;
    int status = QUORLOCK_ERR_STATE;
    int expected = QUORLOCK_ERR_STATE;

    switch (rng_below(&actor->rng, 4)) {
    case 0:
        /* One that does not listen to losses may have lost it. */
        if (plain && !actor->no_lost && judge_is_open(actor)) status = user_acquire(actor, NULL);
        break;
    case 1:
        expected = QUORLOCK_ERR_INVAL;
        status = plain ? user_extend(actor, actor->world->plan->max_lease_ms + 1) : expected;
        break;
    case 2:
        expected = QUORLOCK_ERR_INVAL;
        status = quorlock_client_inspect(actor_client(actor)->client, "", NULL, NULL);
        break;
    default: status = user_cancel(actor); break;
    }
    expect(actor, "a misuse", status, expected);
    actor->world->totals->of[TOTAL_MISUSES]++;
}

/* Somewhere else, under the protection of the lock. It may arrive when nothing of the lease is left. */
static void write_something(struct actor *actor)
{
    bool writes = !rng_one_in(&actor->rng, 3);
    bool late = rng_one_in(&actor->rng, 4);
    uint64_t delay_us = draw(actor, late ? 2 * lease_us(actor) : lease_us(actor) / 16);

    if (writes) tokens_write(actor, delay_us);
}

/* Whole clients: asks them things, or ends them. False: the client is closing. */
static bool trouble(struct actor *actor, bool inside)
{
    struct user_client *client = actor_client(actor);
    uint32_t key = (uint32_t)draw(actor, actor->world->plan->n_keys);

    if (draw_if(actor, FEATURE_READS, 8)) (void)user_inspect(client, key);
    if (draw_if(actor, FEATURE_READS, 24)) (void)user_examine(client);
    if (draw_if(actor, FEATURE_CLOSES, actor->world->plan->bias == BIAS_LIVES ? 8 : 24) &&
        (!inside || has(actor, FEATURE_INSIDE))) {
        (void)user_close(client, inside);
    }
    return client->state == CLIENT_OPEN && actor_process(actor)->alive;
}

/* ---- acts ---- */

static void act_holding(struct actor *actor)
{
    struct world *world = actor->world;

    write_something(actor);
    if (!trouble(actor, false)) return;
    if (world_now(world) >= actor->hold_until_us || world->phase >= PHASE_HEALED) {
        if (passing_hand_on(actor)) {
            actor->state = ACTOR_IDLE;
            act_in(actor, draw(actor, lease_us(actor) / 2));
        } else if (draw_if(actor, FEATURE_FREES, 8)) {
            free_handle(actor, false);
        } else {
            begin_release(actor);
        }
    } else if (draw_if(actor, FEATURE_MISUSES, 6)) {
        misuse(actor);
        act_in(actor, draw(actor, lease_us(actor)));
    } else if (actor->plan->owner != 0 && actor->holds < 3 && actor->acquiring == NULL &&
               draw_if(actor, FEATURE_OWNERS, 3)) {
        begin_acquire(actor);
    } else if (actor->extending == NULL && actor->acquiring == NULL &&
               draw_if(actor, FEATURE_EXTENDS, extends_much(actor) ? 1 : 3)) {
        begin_extend(actor);
    } else {
        act_in(actor, actor->hold_until_us - world_now(world));
    }
}

/* An owner's hold has to be released; another handle can be acquired anew. */
static void act_lost(struct actor *actor)
{
    if (actor->acquiring != NULL || actor->extending != NULL) return; /* their verdicts come next */
    if (actor->plan->owner == 0 && wants(actor) && rng_one_in(&actor->rng, 3)) {
        begin_acquire(actor);
    } else if (draw_if(actor, FEATURE_FREES, 6)) {
        free_handle(actor, false);
    } else {
        begin_release(actor);
    }
}

static void act_busy(struct actor *actor, struct promise *promise)
{
    if (promise == NULL || !promise->pending) return;
    /* When all is to come to rest, what waits is canceled. */
    if (actor->world->phase < PHASE_STOPPED && actor->world->plan->calm) return;
    if (draw_if(actor, FEATURE_FREES, 3)) {
        free_handle(actor, false);
    } else {
        cancel(actor);
    }
}

static void act(struct actor *actor)
{
    if (actor->acquiring != NULL && actor->holds > 0) {
        act_busy(actor, actor->acquiring);
        return;
    }
    switch (actor->state) {
    case ACTOR_IDLE:
        if (wants(actor) && trouble(actor, false)) begin_acquire(actor);
        break;
    case ACTOR_ACQUIRING: act_busy(actor, actor->acquiring); break;
    case ACTOR_HOLDING: act_holding(actor); break;
    case ACTOR_EXTENDING: act_busy(actor, actor->extending); break;
    case ACTOR_LOST: act_lost(actor); break;
    case ACTOR_RELEASING: break;
    }
}

/* ---- callbacks ---- */

/* Holds and rests of some round trips, now and then of many. */
static uint64_t calm_us(struct actor *actor)
{
    return draw(actor, (rng_one_in(&actor->rng, 8) ? 160u : 20u) * actor->world->plan->round_trip_us);
}

static uint64_t draw_hold_us(struct actor *actor)
{
    uint64_t one = lease_us(actor);
    uint64_t hold_us;

    switch (rng_below(&actor->rng, 8)) {
    case 0: hold_us = 0; break;
    case 1: hold_us = one + draw(actor, 5 * one); break;
    case 2: hold_us = 100 * one; break; /* until it is lost */
    case 3:
    case 4: hold_us = draw(actor, 2 * one); break;
    default: hold_us = draw(actor, one / 2); break;
    }
    if (extends_much(actor) && rng_one_in(&actor->rng, 2)) hold_us = 6 * one;
    if (actor->world->plan->bias == BIAS_LATE_RENEWAL && !rng_one_in(&actor->rng, 4)) hold_us = 6 * one;
    if (actor->world->phase >= PHASE_HEALED) hold_us = draw(actor, one / 8);
    if (actor->world->plan->calm) hold_us = calm_us(actor);
    if (actor->plan->course.set && actor->world->phase < PHASE_HEALED) hold_us = actor->plan->course.hold_us;
    return hold_us;
}

static void on_granted(struct actor *actor)
{
    struct world *world = actor->world;
    enum world_phase phase;
    uint64_t hold_us;

    actor->state = ACTOR_HOLDING;
    write_something(actor);
    if (draw_if(actor, FEATURE_LATE_LOOP, 4)) {
        process_stall(actor_process(actor), draw(actor, 30000), false);
        if (!actor_process(actor)->alive || actor->world->over) return;
    }
    /* Only now: the faults may have ended while it stalled. And it may stall in what it calls. */
    phase = world->phase;
    hold_us = draw_hold_us(actor);
    actor->hold_until_us = world_now(world) + hold_us;
    if (!trouble(actor, true)) return;
    if (world->phase != phase) hold_us = draw_hold_us(actor);
    if (draw_if(actor, FEATURE_INSIDE, 16)) {
        free_handle(actor, true);
        if (rng_one_in(&actor->rng, 2)) begin_acquire(actor);
    } else if (hold_us == 0) {
        begin_release(actor);
    } else {
        act_in(actor, world->plan->calm || rng_one_in(&actor->rng, 2) ? hold_us : draw(actor, hold_us));
    }
}

void actor_acquired(struct actor *actor, const struct quorlock_result *result)
{
    uint64_t rest_us = lease_us(actor) / 4;

    if (result->status == QUORLOCK_OK) {
        on_granted(actor);
        return;
    }
    if (actor->state == ACTOR_LOST || actor->holds > 0) {
        act_in(actor, draw(actor, rest_us));
        return;
    }
    actor->state = ACTOR_IDLE;
    if (draw_if(actor, FEATURE_INSIDE, 8)) {
        free_handle(actor, true);
    } else {
        act_in(actor, draw(actor, actor->world->phase == PHASE_FAULTS ? 3 * rest_us : rest_us));
    }
}

void actor_extended(struct actor *actor, const struct quorlock_result *result)
{
    uint64_t soon_us = draw(actor, lease_us(actor) / 2);

    if (actor->state == ACTOR_EXTENDING) actor->state = actor->lost ? ACTOR_LOST : ACTOR_HOLDING;
    /* Now and then the longer lease is all that is wanted. */
    if (extends_much(actor) && result->status == QUORLOCK_OK && rng_one_in(&actor->rng, 2) &&
        actor->world->phase == PHASE_FAULTS) {
        actor->hold_until_us = world_now(actor->world) + 5 * MS * actor->lease_ms;
        soon_us = 5 * MS * actor->lease_ms;
    }
    act_in(actor, soon_us);
}

void actor_released(struct actor *actor, const struct quorlock_result *result)
{
    uint64_t soon_us = draw(actor, lease_us(actor) / 2);

    (void)result;
    if (actor->state != ACTOR_RELEASING || actor->releasing > 0) return;
    actor->state = ACTOR_IDLE;
    if (actor->world->plan->calm) soon_us = calm_us(actor);
    if (actor->plan->course.set) soon_us = actor->plan->course.rest_us;
    if (draw_if(actor, FEATURE_INSIDE, 8)) {
        free_handle(actor, true);
    } else {
        act_in(actor, soon_us);
    }
}

/* Of its owner, which are told of the same loss next, or were a moment ago; not all of them. */
static void free_neighbours(struct actor *actor)
{
    for (uint32_t i = 0; i < actor->world->plan->n_actors; i++) {
        struct actor *other = &actor->world->actors[i];

        if (other == actor || other->plan->client != actor->plan->client || other->lock == NULL) continue;
        if (other->plan->owner == actor->plan->owner && rng_one_in(&actor->rng, 2)) free_handle(other, true);
    }
}

void actor_lost(struct actor *actor, const struct quorlock_loss *loss)
{
    enum plan_bias bias = actor->world->plan->bias;
    uint64_t soon_us = draw(actor, lease_us(actor) / 2);

    (void)loss;
    actor->state = ACTOR_LOST;
    if ((bias == BIAS_LIVES || bias == BIAS_NESTS) && draw_if(actor, FEATURE_INSIDE, 2)) free_neighbours(actor);
    if (draw_if(actor, FEATURE_INSIDE, 8)) {
        free_handle(actor, true);
    } else {
        act_in(actor, rng_one_in(&actor->rng, 2) ? 0 : soon_us);
    }
}
