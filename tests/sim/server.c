/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server.c - keys, counters, expiry by the node's clock in milliseconds, and the rules of our scripts
 *
 * A key set at any moment of a millisecond expires at the begin of the millisecond in which its lease ends.
 * Real servers keep it up to one millisecond longer; this is the harder case.
 */
#include "sim.h"

#include <string.h>

#define ODD_LEASE_MS 1000000000u

static bool same(const struct core_token *a, const struct core_token *b)
{
    return memcmp(a->bytes, b->bytes, CORE_TOKEN_SIZE) == 0;
}

uint64_t server_name_of(const struct core_token *token)
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
    return clock_when(world->nodes[node].offset_us, world->plan->node_rate_ppm[node],
                      world->nodes[node].slots[key].expires_ms * 1000);
}

static void vanish(struct world *world, uint32_t node, uint32_t key)
{
    struct slot *slot = &world->nodes[node].slots[key];
    uint32_t lock = slot->lock;

    slot->set = false;
    judge_key_gone(world, &world->locks[lock], slot->life);
}

/* One event a key is enough: it is planned again while the expiry moves on. */
static void watch(struct world *world, uint32_t node, uint32_t key)
{
    struct slot *slot = &world->nodes[node].slots[key];

    if (slot->watched_us != 0) return;
    slot->watched_us = server_expires_at(world, node, key);
    world_plan(world, slot->watched_us, EVENT_EXPIRY, 0, node, key, 0);
}

void server_expire(struct world *world, uint32_t node, uint32_t key)
{
    struct slot *slot = &world->nodes[node].slots[key];

    if (slot->set && world_node_ms(world, node) >= slot->expires_ms) {
        TRACE(world, "node %u   key %u of lock %u expires", node, key, slot->lock);
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

bool server_leave_odd(struct world *world, uint32_t node, uint32_t key)
{
    struct slot *slot = &world->nodes[node].slots[key];

    server_expire(world, node, key);
    if (slot->set) return false;
    *slot = (struct slot){.set = true, .life = SERVER_ODD_LIFE, .watched_us = slot->watched_us};
    slot->expires_ms = world_node_ms(world, node) + ODD_LEASE_MS;
    TRACE(world, "node %u   gets an odd key %u", node, key);
    return true;
}

static void forget(struct world *world, uint32_t node, uint32_t key)
{
    const struct slot *slot = &world->nodes[node].slots[key];

    if (!slot->set) return;
    judge_key_forgotten(world, node, &world->locks[slot->lock], &slot->token, slot->expires_ms);
    vanish(world, node, key);
}

void server_forget_all(struct world *world, uint32_t server)
{
    for (uint32_t key = 0; key < world->plan->n_keys; key++) {
        forget(world, server, key);
        world->nodes[server].counters[key] = 0;
    }
    world->nodes[server].guard = (struct guard){.there = false};
}

void server_remember(struct world *world, uint32_t server)
{
    struct node *node = &world->nodes[server];

    node->replica.there = true;
    node->replica.guard = node->guard;
    memcpy(node->replica.slots, node->slots, sizeof(node->slots));
    memcpy(node->replica.counters, node->counters, sizeof(node->counters));
}

void server_recall(struct world *world, uint32_t server)
{
    struct node *node = &world->nodes[server];

    for (uint32_t key = 0; key < world->plan->n_keys; key++) {
        forget(world, server, key);
        node->slots[key] = node->replica.slots[key];
        /* A client that has released it since need not release it again. */
        node->slots[key].late = true;
        node->slots[key].watched_us = 0;
        if (world_node_ms(world, server) >= node->slots[key].expires_ms) node->slots[key].set = false;
        if (node->slots[key].set) watch(world, server, key);
    }
    memcpy(node->counters, node->replica.counters, sizeof(node->counters));
    node->guard = node->replica.guard;
    node->replica.there = false;
}

void server_step_clock(struct world *world, uint32_t server, int64_t by_us)
{
    struct node *node = &world->nodes[server];

    node->offset_us = (uint64_t)((int64_t)node->offset_us + by_us);
    if (by_us < 0) node->stepped_back = true;
    for (uint32_t key = 0; key < world->plan->n_keys; key++) {
        node->slots[key].watched_us = 0;
        server_expire(world, server, key);
        if (node->slots[key].set) watch(world, server, key);
    }
}

static uint32_t which_server(const struct world *world, const struct request *request)
{
    return plan_server(world->plan, request->client, request->node);
}

static void write_slot(struct world *world, const struct request *request, struct slot *slot, uint32_t key)
{
    uint32_t server = which_server(world, request);
    const struct link *link = &world->clients[request->client].links[request->node];
    const struct core_tag *tag = &request->command.tag;
    uint64_t expires_ms = world_node_ms(world, server) + tag->lease_us / 1000;

    if (!slot->set || expires_ms > slot->expires_ms || world->server_rule == SERVER_SHORTENS) {
        if (slot->set && expires_ms < slot->expires_ms) slot->watched_us = 0; /* the planned event comes too late */
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
    watch(world, server, key);
}

static void show_holder(const struct world *world, struct request *request, const struct slot *slot)
{
    request->reply.holder_id = server_name_of(&slot->token);
    request->reply.ttl_us = (int64_t)(slot->expires_ms - world_node_ms(world, which_server(world, request))) * 1000;
}

/* A token is at least what the client's wall clock shows, as far as the node's clock allows. */
static uint64_t next_token(const struct world *world, const struct request *request, uint64_t counter)
{
    uint64_t most_us = world_node_us(world, which_server(world, request)) + world->plan->max_lease_us / 2;
    uint64_t floor = request->command.fence < most_us ? request->command.fence : most_us;

    if (world->server_rule == SERVER_NO_FLOOR || world->server_rule == SERVER_RAISES_ANY) return counter + 1;
    return counter + 1 > floor ? counter + 1 : floor;
}

/* A plain acquire that need not explain a refusal is a plain command, and so is a repair without a guard; all
 * else is a script. */
static bool is_script(const struct world *world, const struct request *request)
{
    enum op op = (enum op)request->command.tag.op;

    if (op != OP_ACQUIRE && op != OP_REPAIR) return true;
    if (request->command.explain) return true;
    if (world->locks[request->lock].config.fencing) return true;
    if (op == OP_REPAIR) return world->plan->guard != PLAN_GUARD_OFF;
    return world->plan->guard == PLAN_GUARD_STRICT;
}

static void carry(uint64_t *counter, uint64_t token)
{
    if (*counter < token) *counter = token;
}

static enum outcome do_acquire(struct world *world, struct request *request, struct slot *slot, uint32_t key)
{
    uint32_t server = which_server(world, request);
    struct node *node = &world->nodes[server];
    struct lock *lock = &world->locks[request->lock];
    bool repairs = request->command.tag.op == OP_REPAIR;

    if (slot->set) {
        show_holder(world, request, slot);
        request->reply.listeners = subscriptions_count(world, server, key);
        if (!is_script(world, request)) { /* a plain SET reports no holder */
            request->reply.listeners = 0;
            request->reply.holder_id = 0;
            request->reply.ttl_us = -2;
        }
        return OUTCOME_OTHER;
    }
    if (lock->config.fencing) {
        if (repairs) {
            carry(&node->counters[key], request->command.fence);
        } else {
            node->counters[key] = next_token(world, request, node->counters[key]);
        }
        request->reply.fence = node->counters[key];
    }
    if (!repairs && lock->life == request->life) {
        lock->taken_attempt[server] = request->command.tag.attempt;
        lock->taken_order[server] = ++node->acquires;
    }
    write_slot(world, request, slot, key);
    return OUTCOME_YES;
}

static enum outcome do_extend(struct world *world, struct request *request, struct slot *slot, uint32_t key)
{
    if (!slot->set) {
        if (world->server_rule != SERVER_RESURRECTS) return OUTCOME_MISSING;
    } else if (!same(&slot->token, &request->command.token)) {
        show_holder(world, request, slot);
        return OUTCOME_OTHER;
    }
    write_slot(world, request, slot, key);
    if (world->locks[request->lock].config.fencing) {
        carry(&world->nodes[which_server(world, request)].counters[key], request->command.fence);
    }
    return OUTCOME_YES;
}

static enum outcome do_release(struct world *world, struct request *request, const struct slot *slot, uint32_t key)
{
    const struct core_command *command = &request->command;
    uint32_t server = which_server(world, request);
    bool ours = slot->set && (same(&slot->token, &command->token) || world->server_rule == SERVER_DELETES_ANY);
    enum outcome absent = slot->set ? OUTCOME_OTHER : OUTCOME_MISSING;

    if (!command->silent && (ours || !command->if_deleted) && !world->plan->locks[request->lock].peer) {
        request->reply.listeners = ours ? subscriptions_count(world, server, key) : 0;
        subscriptions_publish(world, server, key, &command->token);
    }
    if (!ours) return absent;
    carry(&world->nodes[server].counters[key], command->fence);
    vanish(world, server, key);
    return OUTCOME_YES;
}

/* The counter of fencing tokens: at least what it is raised to, never less than it was. */
static enum outcome do_raise(struct world *world, struct request *request, const struct slot *slot, uint32_t key)
{
    uint64_t *counter = &world->nodes[which_server(world, request)].counters[key];

    world->totals->of[TOTAL_RAISES]++;
    if (world->server_rule == SERVER_RAISES_ANY) {
        *counter = request->reply.fence = request->command.fence;
        return OUTCOME_YES;
    }
    if (!slot->set) return OUTCOME_MISSING;
    if (!same(&slot->token, &request->command.token)) {
        show_holder(world, request, slot);
        return OUTCOME_OTHER;
    }
    if (*counter <= request->command.fence) *counter = request->command.fence;
    request->reply.fence = *counter;
    return OUTCOME_YES;
}

static enum outcome do_op(struct world *world, struct request *request)
{
    uint32_t key = world->locks[request->lock].key;
    struct slot *slot = &world->nodes[which_server(world, request)].slots[key];

    switch ((enum op)request->command.tag.op) {
    case OP_ACQUIRE:
    case OP_REPAIR: return do_acquire(world, request, slot, key);
    case OP_EXTEND: return do_extend(world, request, slot, key);
    case OP_RELEASE: return do_release(world, request, slot, key);
    case OP_RAISE: return do_raise(world, request, slot, key);
    case OP_PEEK:
        if (!slot->set) return OUTCOME_MISSING;
        show_holder(world, request, slot);
        return OUTCOME_YES;
    default: return OUTCOME_ERROR;
    }
}

static bool sets_keys(enum op op)
{
    return op == OP_ACQUIRE || op == OP_REPAIR;
}

static void refuse(struct world *world, struct core_reply *reply)
{
    reply->outcome = OUTCOME_ERROR;
    reply->fault = FAULT_CLASS_TEMPORARY;
    world->totals->of[TOTAL_REFUSED]++;
}

/* Our own key is released whatever became of the guard. */
static void run_script(struct world *world, struct request *request)
{
    enum op op = (enum op)request->command.tag.op;

    request->guard_broken = op != OP_PEEK && guard_broken(world, request);
    if (op == OP_ACQUIRE && guard_is_strict_broken(world, request)) request->guard_broken = true;
    if (request->guard_broken) world->totals->of[TOTAL_GUARD_BROKEN]++;
    if (request->guard_broken && op != OP_RELEASE) {
        refuse(world, &request->reply);
        return;
    }
    request->reply.outcome = do_op(world, request);
    if (request->reply.outcome == OUTCOME_YES && op != OP_RELEASE && op != OP_PEEK) {
        request->node_us = world_node_us(world, which_server(world, request));
    }
}

void server_execute(struct world *world, struct request *request)
{
    uint32_t server = which_server(world, request);
    struct node *node = &world->nodes[server];
    struct core_reply *reply = &request->reply;
    enum op op = (enum op)request->command.tag.op;

    *reply = (struct core_reply){
        .tag = request->command.tag, .generation = request->generation, .holder_id = 0, .ttl_us = -2};
    request->node_us = 0;
    request->guard_broken = false;
    server_expire(world, server, world->locks[request->lock].key);
    if (world->now_us < node->refuse_all_until_us || (world->now_us < node->refuse_writes_until_us && sets_keys(op))) {
        refuse(world, reply);
    } else if (!is_script(world, request)) {
        reply->outcome = do_op(world, request);
    } else if (!request->command.use_eval && (node->scripts & (1u << op)) == 0) {
        reply->outcome = OUTCOME_NOSCRIPT;
        world->totals->of[TOTAL_NOSCRIPT]++;
    } else {
        node->scripts |= 1u << op;
        run_script(world, request);
    }
    TRACE(world, "node %u   executes %s of lock %u, attempt %llu: %s%s%s", server, trace_op(op), request->lock,
          (unsigned long long)request->command.tag.attempt, trace_outcome(reply->outcome),
          request->guard_broken ? " (the guard has changed)" : "",
          request->queued ? "" : " (its connection has ended)");
}
