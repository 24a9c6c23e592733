/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server.c - keys, expiry by the node's clock in milliseconds, and the rules of our scripts
 *
 * A key set at any moment of a millisecond expires at the begin of the millisecond in which its lease ends.
 * Real servers keep it up to one millisecond longer; this is the harder case.
 */
#include "server.h"

#include <string.h>

#include "judge.h"
#include "story.h"

static bool same(const struct core_token *a, const struct core_token *b)
{
    return memcmp(a->bytes, b->bytes, CORE_TOKEN_SIZE) == 0;
}

static uint64_t name_of(const struct core_token *token)
{
    uint64_t name = 0;

    memcpy(&name, token->bytes, sizeof(name));
    return name | 1;
}

bool server_holds(const struct world *world, uint32_t node, uint32_t key, const struct core_token *token)
{
    const struct slot *slot = &world->nodes[node].slots[key];

    return slot->set && world_node_ms(world, node) < slot->expires_ms && same(&slot->token, token);
}

uint64_t server_expires_at(const struct world *world, uint32_t node, uint32_t key)
{
    const struct plan *plan = world->plan;

    return clock_when(plan->node_offset_us[node], plan->node_rate_ppm[node],
                      world->nodes[node].slots[key].expires_ms * 1000);
}

static void vanish(struct world *world, uint32_t node, uint32_t key)
{
    struct slot *slot = &world->nodes[node].slots[key];
    uint32_t lock = slot->lock;

    slot->set = false;
    judge_key_gone(world, node, key, lock, slot->life);
}

/* One planned look a key is enough: it is planned again while the expiry moves on. */
static void watch(struct world *world, uint32_t node, uint32_t key)
{
    struct slot *slot = &world->nodes[node].slots[key];

    if (slot->watched_us != 0) return;
    slot->watched_us = server_expires_at(world, node, key);
    world_plan(world, slot->watched_us, HAPPEN_EXPIRY, 0, node, key, 0);
}

void server_expire(struct world *world, uint32_t node, uint32_t key)
{
    struct slot *slot = &world->nodes[node].slots[key];

    if (slot->set && world_node_ms(world, node) >= slot->expires_ms) {
        STORY(world, "node %u   key %u of lock %u expires", node, key, slot->lock);
        vanish(world, node, key);
    }
    if (slot->watched_us != 0 && world->now_us >= slot->watched_us) {
        slot->watched_us = 0;
        if (slot->set) watch(world, node, key);
    }
}

void server_delete(struct world *world, uint32_t node, uint32_t key)
{
    if (world->nodes[node].slots[key].set) vanish(world, node, key);
}

static void write_slot(struct world *world, const struct request *request, struct slot *slot, uint32_t key)
{
    const struct link *link = &world->clients[request->client].links[request->node];
    const struct core_tag *tag = &request->command.tag;
    uint64_t expires_ms = world_node_ms(world, request->node) + tag->lease_us / 1000;

    if (!slot->set || expires_ms > slot->expires_ms || world->server_rule == SERVER_SHORTENS) {
        if (slot->set && expires_ms < slot->expires_ms)
            slot->watched_us = 0; /* the planned look comes too late */
        slot->expires_ms = expires_ms;
        slot->last_sent_us = tag->sent_us;
        slot->last_lease_us = tag->lease_us;
        slot->generation = request->generation;
        slot->late = !request->queued || request->generation != link->generation;
    }
    slot->set = true;
    slot->token = request->command.token;
    slot->lock = request->lock;
    slot->life = request->life;
    watch(world, request->node, key);
}

static void show_holder(const struct world *world, struct request *request, const struct slot *slot)
{
    request->reply.holder_id = name_of(&slot->token);
    request->reply.ttl_us = (int64_t)(slot->expires_ms - world_node_ms(world, request->node)) * 1000;
}

static enum core_outcome do_acquire(struct world *world, struct request *request, struct slot *slot,
                                    uint32_t key)
{
    if (slot->set) return CORE_OTHER;
    write_slot(world, request, slot, key);
    return CORE_YES;
}

static enum core_outcome do_extend(struct world *world, struct request *request, struct slot *slot,
                                   uint32_t key)
{
    if (!slot->set) {
        if (world->server_rule != SERVER_RESURRECTS) return CORE_MISSING;
    } else if (!same(&slot->token, &request->command.token)) {
        show_holder(world, request, slot);
        return CORE_OTHER;
    }
    write_slot(world, request, slot, key);
    return CORE_YES;
}

static enum core_outcome do_release(struct world *world, struct request *request, const struct slot *slot,
                                    uint32_t key)
{
    if (!slot->set) return CORE_MISSING;
    if (!same(&slot->token, &request->command.token) && world->server_rule != SERVER_DELETES_ANY) {
        return CORE_OTHER;
    }
    vanish(world, request->node, key);
    return CORE_YES;
}

/* The counter of fencing tokens: at least what it is raised to, never less than it was. */
static enum core_outcome do_raise(struct world *world, struct request *request, const struct slot *slot,
                                  uint32_t key)
{
    uint64_t *counter = &world->nodes[request->node].counters[key];

    if (!slot->set) return CORE_MISSING;
    if (!same(&slot->token, &request->command.token)) return CORE_OTHER;
    if (*counter < request->command.fence) *counter = request->command.fence;
    request->reply.fence = *counter;
    return CORE_YES;
}

static enum core_outcome do_op(struct world *world, struct request *request)
{
    uint32_t key = world->locks[request->lock].key;
    struct slot *slot = &world->nodes[request->node].slots[key];

    switch ((enum core_op)request->command.tag.op) {
    case CORE_OP_ACQUIRE:
    case CORE_OP_REPAIR: return do_acquire(world, request, slot, key);
    case CORE_OP_EXTEND: return do_extend(world, request, slot, key);
    case CORE_OP_RELEASE: return do_release(world, request, slot, key);
    case CORE_OP_RAISE: return do_raise(world, request, slot, key);
    case CORE_OP_PEEK:
        if (!slot->set) return CORE_MISSING;
        show_holder(world, request, slot);
        return CORE_YES;
    }
    return CORE_ERROR;
}

/* Acquire and repair are a plain command; all else is a script. */
static bool is_script(unsigned op)
{
    return op != CORE_OP_ACQUIRE && op != CORE_OP_REPAIR;
}

void server_execute(struct world *world, struct request *request)
{
    struct node *node = &world->nodes[request->node];
    struct core_reply *reply = &request->reply;
    unsigned op = request->command.tag.op;

    *reply = (struct core_reply){
        .tag = request->command.tag, .generation = request->generation, .holder_id = 0, .ttl_us = -2};
    server_expire(world, request->node, world->locks[request->lock].key);
    if (world->now_us < node->refuse_all_until_us ||
        (world->now_us < node->refuse_writes_until_us && !is_script(op))) {
        reply->outcome = CORE_ERROR;
        reply->fault = CORE_FAULT_PASSING;
        world->totals->of[TOTAL_REFUSED]++;
    } else if (is_script(op) && !request->command.whole_script && (node->scripts & (1u << op)) == 0) {
        reply->outcome = CORE_NOSCRIPT;
        world->totals->of[TOTAL_NOSCRIPT]++;
    } else {
        if (is_script(op)) node->scripts |= 1u << op;
        reply->outcome = do_op(world, request);
    }
    STORY(world, "node %u   executes %s of lock %u, attempt %llu: %s%s", (unsigned)request->node, story_op(op),
          request->lock, (unsigned long long)request->command.tag.attempt, story_outcome(reply->outcome),
          request->queued ? "" : " (its connection has ended)");
}
