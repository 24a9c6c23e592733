/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crowd.c - a client that acquires thousands of locks in one turn of the loop, and holds them at the same time
 *
 * If nothing fails, every lock is granted, and none is lost to the load (I11).
 */
#include "crowd.h"

#include <stdlib.h>
#include <string.h>

#include "judge.h"
#include "process.h"
#include "rare.h"
#include "user.h"

#define LOOK_US 50000u

static struct user_client *client_of(struct promise *promise)
{
    return &promise->world->clients[promise->client];
}

bool crowd_is_done(const struct user_client *client)
{
    return client->crowd.done == client->crowd.n;
}

static void on_released(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct promise *promise = arg;
    struct crowd *crowd = &client_of(promise)->crowd;

    (void)result;
    if (!user_kept(promise) || crowd->locks[promise->flood] != lock) return;
    crowd->locks[promise->flood] = NULL;
    crowd->done++;
    quorlock_lock_free(lock);
}

static void release(struct user_client *client, uint32_t i)
{
    struct promise *promise = user_promise(client->world, client->index, NULL, PROMISE_RELEASE, NEVER);

    if (promise == NULL) return;
    promise->flood = i;
    client->crowd.held[i] = false;
    rare_released(client->world, client->index);
    if (quorlock_lock_release(client->crowd.locks[i], on_released, promise) == QUORLOCK_OK) return;
    user_drop(promise);
    judge_violated(client->world, I6_TOLD_ONCE, "client %u: lock %u of many cannot be released", client->index, i);
}

static void on_lost(quorlock_lock *lock, const struct quorlock_loss *loss, void *arg)
{
    struct user_client *client = arg;
    struct world *world = client->world;

    (void)lock;
    if (!process_of(world, client->index)->alive || world->over) return;
    if (world->plan->n_faults == 0 && !process_stood(process_of(world, client->index))) {
        judge_violated(world, I11_OWN_LOAD, "client %u: one of many locks is lost (%s), and nothing failed",
                       client->index, loss->text);
    }
}

static void on_acquired(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct promise *promise = arg;
    struct user_client *client = client_of(promise);
    struct world *world = promise->world;
    struct crowd *crowd = &client->crowd;
    uint64_t lease_us = world->plan->lease_ms * MS;

    if (!user_kept(promise) || crowd->locks == NULL || crowd->locks[promise->flood] != lock) return;
    if (result->status != QUORLOCK_OK) {
        if (result->status != QUORLOCK_ERR_CANCELED && result->status != QUORLOCK_ERR_CLOSED &&
            world->plan->n_faults == 0) {
            judge_violated(world, I11_OWN_LOAD, "client %u: one of many locks is refused (%s), and nothing failed",
                           client->index, result->text);
        }
        crowd->locks[promise->flood] = NULL;
        crowd->done++;
        quorlock_lock_free(lock);
        return;
    }
    world->totals->of[TOTAL_FLOODED]++;
    crowd->granted++;
    crowd->held[promise->flood] = true;
    crowd->hold_until_us[promise->flood] =
        world_now(world) + (rng_one_in(&client->rng, 2) ? 0 : rng_below(&client->rng, lease_us));
    if (crowd->hold_until_us[promise->flood] == world_now(world)) release(client, promise->flood);
}

static void begin_one(struct user_client *client, uint32_t i)
{
    struct world *world = client->world;
    struct crowd *crowd = &client->crowd;
    const struct quorlock_lock_options options = {.size = sizeof(options), .lease_ms = world->plan->lease_ms};
    struct promise *promise;
    char name[32];
    const char *const keys[] = {name};

    (void)snprintf(name, sizeof(name), "f%u.%u", client->index, i);
    if (quorlock_lock_new(&crowd->locks[i], client->client, keys, 1, &options) != QUORLOCK_OK) {
        crowd->done++;
        crowd->locks[i] = NULL;
        return;
    }
    promise = user_promise(world, client->index, NULL, PROMISE_ACQUIRE, NEVER);
    if (promise == NULL) return;
    promise->flood = i;
    quorlock_lock_set_on_lost(crowd->locks[i], on_lost, client);
    if (quorlock_lock_acquire(crowd->locks[i], on_acquired, promise) == QUORLOCK_OK) return;
    user_drop(promise);
    quorlock_lock_free(crowd->locks[i]);
    crowd->locks[i] = NULL;
    crowd->done++;
}

static void look(void *arg)
{
    struct user_client *client = arg;
    struct crowd *crowd = &client->crowd;
    uint64_t now_us = world_now(client->world);

    if (client->state != CLIENT_OPEN || crowd->locks == NULL) return;
    for (uint32_t i = 0; i < crowd->n && !crowd->begun; i++) begin_one(client, i);
    crowd->begun = true;
    for (uint32_t i = 0; i < crowd->n && crowd->locks != NULL; i++) {
        if (crowd->held[i] && (now_us >= crowd->hold_until_us[i] || client->world->phase >= PHASE_HEALED))
            release(client, i);
    }
    if (!crowd_is_done(client)) queue_set(&client->world->queue, &crowd->moment, now_us + LOOK_US);
}

static void on_moment(void *arg)
{
    struct user_client *client = arg;
    struct process *process = process_of(client->world, client->index);

    if (process->alive && client->state == CLIENT_OPEN) machine_call(process->machine, look, client);
}

static void *room(size_t n, size_t size)
{
    void *memory = calloc(n, size);

    if (memory != NULL) return memory;
    (void)fputs("sim: out of memory\n", stderr);
    exit(2);
}

void crowd_begin(struct user_client *client)
{
    struct world *world = client->world;
    struct crowd *crowd = &client->crowd;
    uint32_t n = world->plan->n_flood;

    if (n == 0 || client->life > 1 || world->phase != PHASE_FAULTS) return;
    *crowd = (struct crowd){.n = n, .moment = {.happen = on_moment, .arg = client}};
    crowd->locks = room(n, sizeof(quorlock_lock *));
    crowd->held = room(n, sizeof(crowd->held[0]));
    crowd->hold_until_us = room(n, sizeof(crowd->hold_until_us[0]));
    queue_set(&world->queue, &crowd->moment, world_now(world) + rng_below(&client->rng, 2000 * MS));
}

void crowd_forget(struct user_client *client)
{
    struct crowd *crowd = &client->crowd;

    queue_set(&client->world->queue, &crowd->moment, NEVER);
    for (uint32_t i = 0; i < crowd->n; i++) {
        crowd->locks[i] = NULL;
        crowd->held[i] = false;
    }
    crowd->done = crowd->n;
    crowd->begun = true;
}

void crowd_free(struct user_client *client)
{
    free(client->crowd.locks);
    free(client->crowd.held);
    free(client->crowd.hold_until_us);
    client->crowd = (struct crowd){0};
}
