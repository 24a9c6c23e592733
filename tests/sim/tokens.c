/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tokens.c - fencing tokens, and a register that refuses a write with a token older than one that it has seen
 * (rule 15.2)
 *
 * Writes take long, and users that only believe to hold the lock write, too. Whatever happened to exclusion, the
 * register never takes a write of a grant after a write of a later grant, which began when the first had been reported.
 */
#include "tokens.h"

#include <inttypes.h>

#include "actor.h"
#include "holds.h"
#include "judge.h"
#include "trace.h"

/* The place of the first key that it does not only read; NOBODY: it reads all. */
static uint32_t first_written(const struct world *world, const struct held *held, uint8_t keys_void)
{
    for (uint32_t key = 0; key < world->plan->n_keys; key++) {
        if (((held->keys & ~(uint32_t)held->shared & ~(uint32_t)keys_void) >> key & 1u) != 0)
            return holds_place(key, held->slot);
    }
    return NOBODY;
}

/* When its token took the key on that server; 0: it does not hold it. */
static uint32_t order_on(struct world *world, uint32_t server, const struct actor *actor)
{
    uint32_t place = first_written(world, &actor->window.held, 0);
    const struct taking *taking = place != NOBODY ? holds_latest(&world->sites[server], place) : NULL;

    return taking != NULL && taking->token_hash == actor->window.token_hash ? taking->order : 0;
}

/* I4: where both took a server, the later one has the larger token. */
static void check_order(struct world *world, const struct grant *grant, const struct grant *before)
{
    /* The order is that of the first key. */
    if (grant->held.keys != before->held.keys || grant->held.shared != before->held.shared) return;
    for (uint32_t i = 0; i < world->plan->n_servers; i++) {
        if (grant->order[i] == 0 || before->order[i] == 0) continue;
        if ((grant->order[i] > before->order[i]) == (grant->token > before->token)) continue;
        judge_violated(world, I4_ORDER,
                       "on server %u actor %u came %s actor %u, but their tokens are %" PRIu64 " and %" PRIu64, i,
                       grant->actor, grant->order[i] > before->order[i] ? "after" : "before", before->actor,
                       grant->token, before->token);
    }
}

/* Inside of the claim windows do not overlap: what was granted before was held before. But where a machine stalled
 * between its look at the clock and its callback the window may have no length. */
static void check_writers(struct world *world, const struct grant *grant, const struct grant *before, bool by_begin)
{
    if ((!by_begin || before->reported_us <= grant->begun_us) && before->token > grant->token) {
        judge_violated(world, I3_RISES,
                       "actor %u has the token %" PRIu64 ", but actor %u had been told %" PRIu64 " before",
                       grant->actor, grant->token, before->actor, before->token);
    }
    if (before->token == grant->token) {
        judge_violated(world, I2_UNIQUE, "actor %u and actor %u both have the token %" PRIu64, grant->actor,
                       before->actor, grant->token);
    }
    check_order(world, grant, before);
}

/* A reader's token is not its own: it is that of a writer before it, or higher, as long as counters survive. */
static void check_reader(struct world *world, const struct grant *grant, const struct grant *before)
{
    const struct plan *plan = world->plan;

    if (plan->loses_memory || plan->changes || before->reported_us > grant->begun_us) return;
    if (grant->token >= before->token) return;
    judge_violated(world, I3_RISES, "actor %u reads with the token %" PRIu64 ", but actor %u wrote with %" PRIu64,
                   grant->actor, grant->token, before->actor, before->token);
}

static void check_tokens(struct world *world, const struct grant *grant, bool late)
{
    const struct held *held = &grant->held;
    bool by_begin = late || world->plan->outside;

    for (const struct grant *before = world->grants; before != grant; before++) {
        uint32_t written = before->held.keys & held->keys & ~(uint32_t)before->held.shared;

        /* Each slot has a counter of its own. */
        if (written == 0 || before->held.slot != held->slot) continue;
        if ((written & ~(uint32_t)held->shared) != 0) check_writers(world, grant, before, by_begin);
        if ((written & held->shared) != 0) check_reader(world, grant, before);
    }
}

/* A further hold of an owner, in which another was before. */
static bool is_known(struct actor *actor)
{
    struct world *world = actor->world;

    for (uint32_t i = world->n_grants; i > 0; i--) {
        if (world->grants[i - 1].token_hash != actor->window.token_hash) continue;
        actor->grant = i - 1;
        return true;
    }
    return false;
}

void tokens_granted(struct actor *actor)
{
    struct world *world = actor->world;
    uint64_t token = actor->window.fence;
    bool wanted = actor->plan->options.fencing != 0;
    bool reads = actor->window.held.shared == actor->window.held.keys;
    struct grant *grant;

    actor->grant = NOBODY;
    /* A reader that no writer came before may be told none. */
    if ((wanted && token == 0 && actor->window.open && !reads) || (!wanted && token != 0 && actor->plan->owner == 0)) {
        judge_violated(world, I7_FOREIGN_VOTE, "actor %u has %s token", actor->index, token != 0 ? "a" : "no");
    }
    if (token == 0 || world->n_grants == GRANTS_MAX || is_known(actor)) return;
    world->totals->of[TOTAL_TOKENS]++;
    actor->grant = world->n_grants;
    grant = &world->grants[world->n_grants++];
    *grant = (struct grant){.token = token,
                            .begun_us = actor->acquire_since_us,
                            .reported_us = world_now(world),
                            .token_hash = actor->window.token_hash,
                            .actor = actor->index,
                            .held = actor->window.held};
    for (uint32_t i = 0; i < world->plan->n_servers; i++) grant->order[i] = order_on(world, i, actor);
    if ((actor->plan->keys & world->plan->keys_void) == 0)
        check_tokens(world, grant, actor_process(actor)->stood_in_turn);
}

static void write_arrives(struct world *world, const struct grant *grant, uint32_t place)
{
    struct guarded_register *at = &world->registers[place];

    if (grant->token < at->newest && world->register_checks) {
        world->totals->of[world->plan->outside ? TOTAL_REFUSED_OUTSIDE : TOTAL_WRITES_REFUSED]++;
        TRACE(world, "register  refuses actor %u, token %" PRIu64, grant->actor, grant->token);
        return;
    }
    world->totals->of[TOTAL_WRITES]++;
    TRACE(world, "register  takes a write of actor %u, token %" PRIu64, grant->actor, grant->token);
    if (grant->reported_us <= at->latest_begun_us) {
        judge_violated(world, STALE_WRITE, "actor %u overwrote what a later grant had written", grant->actor);
    }
    at->newest = grant->token;
    if (grant->begun_us > at->latest_begun_us) at->latest_begun_us = grant->begun_us;
}

static void on_arrival(void *arg)
{
    const struct written *written = arg;
    struct world *world = written->world;
    const struct grant *grant = &world->grants[written->grant];

    uint32_t place = first_written(world, &grant->held, world->plan->keys_void);

    if (place != NOBODY) write_arrives(world, grant, place);
}

/* Rule 15.2. */
void tokens_write(struct actor *actor, uint64_t delay_us)
{
    struct world *world = actor->world;

    if (actor->grant == NOBODY) return;
    for (uint32_t i = 0; i < WRITES_MAX; i++) {
        struct written *written = &world->writes[i];

        if (written->moment.index != 0) continue;
        written->world = world;
        written->grant = actor->grant;
        written->moment.happen = on_arrival;
        written->moment.arg = written;
        queue_set(&world->queue, &written->moment, world_now(world) + delay_us);
        return;
    }
}
