/* SPDX-License-Identifier: BSD-3-Clause */
/* actor.h - what users do with their locks, by chance */
#pragma once

#include "process.h"
#include "world.h"

void actor_begin(struct actor *);
void actor_hurry(struct actor *);
void actor_reset(struct actor *); /* its handle is gone */
void actor_acquired(struct actor *, const struct quorlock_result *);
void actor_extended(struct actor *, const struct quorlock_result *);
void actor_released(struct actor *, const struct quorlock_result *);
void actor_lost(struct actor *, const struct quorlock_loss *);
static inline struct user_client *actor_client(struct actor *actor)
{
    return &actor->world->clients[actor->plan->client];
}
static inline struct process *actor_process(struct actor *actor)
{
    return process_of(actor->world, actor->plan->client);
}
