/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tokens.c - fencing tokens, and a register that takes a write only with a token not older than it has seen
 *
 * Writes travel for long, and clients that only believe to hold the lock write too. Whatever happened to
 * exclusion, a write is never taken after one of a grant that began when ours had been reported already.
 */
#include "sim.h"

#include <inttypes.h>

void tokens_see(struct lock *lock, const struct core_reply *reply)
{
    struct shown *shown = &lock->verdicts.shown[reply->tag.node];

    /* Two answers may have changed places only where the core does not count the older one any more. */
    *shown = (struct shown){.attempt = reply->tag.attempt, .fence = reply->fence};
}

/* I4: where both took a node, the later one has the larger token. */
static void check_order(struct world *world, const struct grant *grant, const struct grant *before)
{
    for (uint32_t i = 0; i < world->plan->n_nodes; i++) {
        if (grant->order[i] == 0 || before->order[i] == 0) continue;
        if ((grant->order[i] > before->order[i]) == (grant->token > before->token)) continue;
        judge_violated(world, I4_ORDER,
                       "on node %u lock %u came %s lock %u, but their tokens are %" PRIu64 " and %" PRIu64, i,
                       grant->lock, grant->order[i] > before->order[i] ? "after" : "before", before->lock, grant->token,
                       before->token);
    }
}

static void check_tokens(struct world *world, const struct grant *grant)
{
    for (const struct grant *before = world->grants; before != grant; before++) {
        if (before->key != grant->key) continue;
        if (before->reported_us <= grant->begun_us && before->token >= grant->token) {
            judge_violated(world, I3_RISES,
                           "lock %u has the token %" PRIu64 ", but lock %u had reported %" PRIu64 " before it began",
                           grant->lock, grant->token, before->lock, before->token);
        }
        if (before->token == grant->token) {
            judge_violated(world, I2_UNIQUE, "lock %u and lock %u both have the token %" PRIu64, grant->lock,
                           before->lock, grant->token);
        }
        check_order(world, grant, before);
    }
}

void tokens_granted(struct world *world, struct lock *lock)
{
    uint64_t token = core_fence(lock->core);
    struct grant *grant;
    uint32_t shown = 0;

    if ((token != 0) != lock->config.fencing) {
        judge_violated(world, I7_FOREIGN_VOTE, "lock %u has %s token", lock->index, token != 0 ? "a" : "no");
    }
    if (!lock->config.fencing) return;
    world->totals->of[TOTAL_TOKENS]++;
    world->grants = world_room(world->grants, world->n_grants, &world->grants_capacity, sizeof(*grant));
    grant = &world->grants[world->n_grants++];
    *grant = (struct grant){.token = token,
                            .begun_us = lock->verdicts.attempt_begun_us,
                            .reported_us = world->now_us,
                            .lock = lock->index,
                            .key = lock->key};
    for (uint32_t i = 0; i < world->plan->n_nodes; i++) {
        const struct shown *of = &lock->verdicts.shown[i];
        uint32_t server = plan_server(world->plan, lock->client, i);

        if (of->attempt != core_attempt(lock->core) || of->fence != token) continue;
        shown++;
        if (lock->taken_attempt[server] == of->attempt) grant->order[server] = lock->taken_order[server];
    }
    lock->verdicts.grant = world->n_grants - 1;
    if (shown < world->plan->quorum) {
        judge_violated(world, I7_FOREIGN_VOTE, "lock %u has a token that %u nodes have shown", lock->index, shown);
    }
    check_tokens(world, grant);
}

void tokens_write(struct world *world, struct lock *lock, uint64_t delay_us)
{
    if (!lock->config.fencing) return;
    world_plan(world, world->now_us + delay_us, EVENT_WRITE, lock->client, 0, lock->verdicts.grant, 0);
}

void tokens_write_arrives(struct world *world, uint32_t index)
{
    const struct grant *grant = &world->grants[index];
    struct guarded_register *at = &world->registers[grant->key];

    if (grant->token < at->newest && world->server_rule != SERVER_TAKES_ANY) {
        world->totals->of[world->plan->outside ? TOTAL_REFUSED_OUTSIDE : TOTAL_WRITES_REFUSED]++;
        TRACE(world, "register  refuses lock %u, token %" PRIu64, grant->lock, grant->token);
        return;
    }
    world->totals->of[TOTAL_WRITES]++;
    TRACE(world, "register  takes a write of lock %u, token %" PRIu64, grant->lock, grant->token);
    if (grant->reported_us <= at->latest_begun_us) {
        judge_violated(world, STALE_WRITE, "lock %u overwrote what a later grant had written", grant->lock);
    }
    at->newest = grant->token;
    if (grant->begun_us > at->latest_begun_us) at->latest_begun_us = grant->begun_us;
}
