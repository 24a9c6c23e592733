/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * passing.c - locks that pass from one actor to another: one detaches, and another adopts the token
 *
 * A token waits in the world for the one actor that takes it, on any machine. It goes back if too few nodes answered.
 */
#include <string.h>

#include "judge.h"
#include "user.h"

#include "passing.h"

/* Of the mixed runs those pass locks on that keep locks, too. */
static bool passes(const struct actor *actor)
{
    const struct plan *plan = actor->world->plan;
    uint32_t unlike = 1u << FEATURE_REDISSON | 1u << FEATURE_COLD | 1u << FEATURE_PEERS | 1u << FEATURE_ALL;

    if (actor->world->phase != PHASE_FAULTS) return false;
    if (plan->bias == BIAS_PASSING) return true;
    return plan->bias == BIAS_NONE && (plan->features & unlike) == 0 && (plan->features & 1u << FEATURE_KEEP) != 0 &&
           actor->plan->shared == 0 && actor->plan->options.permits == 0 && actor->plan->owner == 0;
}

bool passing_hand_on(struct actor *actor)
{
    struct world *world = actor->world;
    struct passed *passed = &world->passed[world->n_passed % PASSED_MAX];

    if (!passes(actor) || actor->holds != 1 || actor->lost || actor->extending != NULL) return false;
    if (rng_one_in(&actor->rng, 3)) return false;
    *passed = (struct passed){.token_hash = actor->window.token_hash,
                              .keys = actor->plan->keys,
                              .fencing = actor->plan->options.fencing != 0,
                              .fence = actor->window.fence,
                              .waits = true};
    if (user_detach(actor, passed->token) != QUORLOCK_OK) {
        passed->waits = false;
        return false;
    }
    world->n_passed++;
    world->totals->of[TOTAL_DETACHED]++;
    return true;
}

const char *passing_take(struct actor *actor)
{
    struct world *world = actor->world;

    actor->adopting = NULL;
    if (!passes(actor)) return NULL;
    for (uint32_t i = 0; i < PASSED_MAX && i < world->n_passed; i++) {
        struct passed *passed = &world->passed[i];

        if (!passed->waits || passed->keys != actor->plan->keys) continue;
        if (passed->fencing != (actor->plan->options.fencing != 0)) continue;
        actor->adopting = passed;
        passed->waits = false;
        return passed->token;
    }
    return NULL;
}

void passing_refused(struct actor *actor, int status)
{
    struct passed *passed = actor->adopting;

    actor->adopting = NULL;
    if (passed == NULL) return;
    passed->waits = status != QUORLOCK_ERR_LOST;
}

void passing_adopted(struct actor *actor)
{
    const struct passed *passed = actor->adopting;

    actor->adopting = NULL;
    actor->world->totals->of[TOTAL_ADOPTED]++;
    if (actor->window.token_hash != passed->token_hash && actor->window.open)
        judge_violated(actor->world, I6_TOLD_ONCE, "actor %u has adopted another token than it was given",
                       actor->index);
    if (actor->window.fence < passed->fence && actor->window.open)
        judge_violated(actor->world, I3_RISES, "actor %u has adopted a lock with a lower fencing token", actor->index);
}

bool passing_may_stand(const struct world *world, uint64_t token_hash)
{
    for (uint32_t i = 0; i < PASSED_MAX && i < world->n_passed; i++) {
        if (world->passed[i].token_hash == token_hash) return true;
    }
    return false;
}
