/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keep.c - locks that are kept after their release (rule 10.1): how long their keys stay, and that nobody else gets
 * them
 *
 * A hold is kept for keep_ms after its grant. Its user knows only roughly when that was: not before the request for the
 * vote that its validity counts from, and not after its callback. So a kept key has a least and a longest time to stay.
 */
#include "keep.h"

#include "actor.h"
#include "holds.h"
#include "judge.h"
#include "membership.h"
#include "process.h"

#define ROUNDED_US (3 * MS) /* the milliseconds of clients and servers */
#define SLOW_US    1000000u /* a release is under way for no longer, once the faults have ended */

static uint64_t keep_us(const struct actor *actor)
{
    return actor->plan->options.keep_ms * MS;
}

static uint64_t drift_us(const struct world *world, uint64_t of_us)
{
    return of_us * world->plan->drift_ppm / 1000000 * 2 + ROUNDED_US;
}

void keep_given_back(struct actor *actor)
{
    struct world *world = actor->world;
    const struct window *window = &actor->window;
    uint64_t now_us = process_now_us(actor_process(actor)), most_us = window->granted_us + keep_us(actor);
    struct kept *kept = &world->kept[world->n_kept % KEPT_MAX];

    /* Which hold of an owner was its first is not known here. */
    if (actor->plan->owner != 0) most_us = now_us + actor->plan->options.lease_ms * MS;
    if (keep_us(actor) == 0 || actor->lost || most_us <= now_us) return;
    *kept = (struct kept){.token_hash = window->token_hash,
                          .held = window->held,
                          .actor = actor->index,
                          .released_us = world_now(world),
                          .least_us = window->asked_us + keep_us(actor),
                          .rest_us = most_us - now_us};
    if (actor->plan->owner == 0) actor->kept = world->n_kept % KEPT_MAX;
    world->n_kept++;
    world->totals->of[TOTAL_KEPT]++;
}

/* The key stands there for long enough, and not for too long. */
static void check_server(struct actor *actor, const struct kept *kept, uint32_t server, uint64_t least_us)
{
    struct world *world = actor->world;
    const struct site *site = &world->sites[server];
    const struct window window = {.held = kept->held, .token_hash = kept->token_hash};
    uint64_t until_us = holds_until_us(world, server, &window);
    uint64_t most_us = world_now(world) + kept->rest_us + drift_us(world, kept->rest_us);

    if (until_us < least_us) {
        judge_violated(world, I18_KEPT, "actor %u keeps its key until %llu us, but server %u only until %llu us",
                       actor->index, (unsigned long long)least_us, server, (unsigned long long)until_us);
    }
    /* What it would have held for longer is no fault of the release. */
    if (until_us <= most_us || site->stepped_back || site->late || site->old || world->plan->loses_memory) return;
    judge_violated(world, I18_KEPT, "actor %u keeps its key until %llu us at most, but server %u until %llu us",
                   actor->index, (unsigned long long)most_us, server, (unsigned long long)until_us);
}

void keep_answered(struct actor *actor, const struct quorlock_result *result)
{
    struct world *world = actor->world;
    struct process *process = actor_process(actor);
    uint32_t client = actor->plan->client, n = 0;
    struct kept *kept = actor->kept != NOBODY ? &world->kept[actor->kept] : NULL;
    uint64_t least_us;

    actor->kept = NOBODY;
    if (kept == NULL || kept->actor != actor->index || result->status == QUORLOCK_ERR_LOST ||
        world->plan->clients[client].twins)
        return;
    if ((kept->held.keys & world->plan->keys_void) != 0) return;
    /* It may have been released when the time was over. */
    if (process_now_us(process) >= kept->least_us) return;
    least_us = process_true_us(process, kept->least_us);
    least_us -= least_us < drift_us(world, keep_us(actor)) ? least_us : drift_us(world, keep_us(actor));
    for (size_t i = 0; i < result->n_votes && i < membership_set(world, client)->n; i++) {
        if (result->votes[i]->outcome != QUORLOCK_VOTE_GRANTED) continue;
        check_server(actor, kept, membership_server(world, client, (uint32_t)i), least_us);
        n++;
    }
    if (n < membership_quorum(world, client)) return;
    kept->closed_until_us = least_us;
    world->totals->of[TOTAL_KEPT_QUORUM]++;
}

void keep_check(struct actor *actor)
{
    struct world *world = actor->world;

    for (uint32_t i = 0; i < KEPT_MAX && i < world->n_kept; i++) {
        const struct kept *kept = &world->kept[i];

        if (world_now(world) >= kept->closed_until_us || kept->token_hash == actor->window.token_hash) continue;
        if (holds_conflict(&actor->window.held, &kept->held) == INVARIANT_NONE) continue;
        judge_violated(world, I18_KEPT, "actor %u is granted a key that actor %u keeps until %llu us", actor->index,
                       kept->actor, (unsigned long long)kept->closed_until_us);
    }
}

bool keep_may_stand(const struct world *world, uint64_t token_hash)
{
    for (uint32_t i = 0; i < KEPT_MAX && i < world->n_kept; i++) {
        const struct kept *kept = &world->kept[i];
        uint64_t from_us = kept->released_us > world->healed_us ? kept->released_us : world->healed_us;
        uint64_t for_us = kept->rest_us + drift_us(world, kept->rest_us) + world->plan->late_us + SLOW_US;

        if (kept->token_hash == token_hash && world_now(world) < from_us + for_us) return true;
    }
    return false;
}
