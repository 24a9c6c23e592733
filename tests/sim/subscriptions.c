/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * subscriptions.c - subscriber connections: each lock that waits has one to each node, with a delay of its own
 *
 * A notice may overtake the answer of the release that it reports, or come long after it. A notice that is
 * published without a subscription, or is on its way when the connection ends, is lost.
 */
#include "sim.h"

/* What is on its way has the serial of its subscription, and is dropped where that has ended. */
static struct subscription *subscription_of(struct world *world, const struct event *event)
{
    struct subscription *subscription = &world->locks[event->index].subscriptions[event->node];

    return subscription->serial == event->serial ? subscription : NULL;
}

static void plan(struct world *world, uint64_t at_us, enum event_type type, struct lock *lock, uint32_t node,
                 uint64_t holder_id)
{
    events_plan(&world->events, &(struct event){.at_us = at_us,
                                                .type = (uint8_t)type,
                                                .client = lock->client,
                                                .node = (uint8_t)node,
                                                .index = lock->index,
                                                .serial = lock->subscriptions[node].serial,
                                                .holder_id = holder_id});
}

/* Blocked: it comes when that has passed. */
static bool blocked(struct world *world, const struct event *event, uint64_t until_us)
{
    if (world->now_us >= until_us) return false;
    world_postpone(world, event, until_us);
    return true;
}

static uint64_t delay_us(struct world *world, struct lock *lock, uint32_t node)
{
    return link_delay(world, &world->subscriptions_rng, lock->client, node);
}

/* Connecting takes a round trip, and then the request is on its way. */
static void begin(struct world *world, struct lock *lock, uint32_t node, uint64_t pause_us)
{
    struct subscription *subscription = &lock->subscriptions[node];

    subscription->serial++;
    subscription->subscribed = false;
    subscription->last_us = world->now_us;
    plan(world, world->now_us + pause_us + 3 * delay_us(world, lock, node), EVENT_SUBSCRIBE, lock, node, 0);
}

static uint64_t pause_us(struct world *world)
{
    return rng_between(&world->subscriptions_rng, world->plan->reconnect_min_us, world->plan->reconnect_max_us);
}

void subscriptions_follow(struct world *world, struct lock *lock)
{
    bool listens = core_listens(lock->core) && !world->plan->locks[lock->index].peer;

    if (listens == lock->listens) return;
    if (!listens) {
        subscriptions_close(world, lock);
        return;
    }
    lock->listens = true;
    for (uint32_t node = 0; node < world->plan->n_nodes; node++) begin(world, lock, node, 0);
}

void subscriptions_close(struct world *world, struct lock *lock)
{
    lock->listens = false;
    for (uint32_t node = 0; node < world->plan->n_nodes; node++) {
        lock->subscriptions[node].serial++;
        lock->subscriptions[node].subscribed = false;
    }
}

void subscriptions_publish(struct world *world, uint32_t server, uint32_t key, const struct core_token *token)
{
    bool lost = world->now_us < world->nodes[server].notices_lost_until_us;

    for (uint32_t i = 0; i < world->plan->n_locks; i++) {
        struct lock *lock = &world->locks[i];

        if (lock->key != key || !lock->listens) continue;
        for (uint32_t node = 0; node < world->plan->n_nodes; node++) {
            struct subscription *subscription = &lock->subscriptions[node];
            uint64_t at_us;

            if (plan_server(world->plan, lock->client, node) != server || !subscription->subscribed) continue;
            if (lost || rng_below(&world->subscriptions_rng, 1000) < world->plan->lost_permille) {
                world->totals->of[TOTAL_NOTICES_LOST]++;
                continue;
            }
            at_us = world->now_us + delay_us(world, lock, node);
            at_us = world_in_order(&subscription->last_us, at_us);
            plan(world, at_us, EVENT_NOTICE, lock, node, server_name_of(token));
        }
    }
}

uint32_t subscriptions_count(const struct world *world, uint32_t server, uint32_t key)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < world->plan->n_locks; i++) {
        const struct lock *lock = &world->locks[i];

        if (lock->key != key || !lock->listens) continue;
        for (uint32_t node = 0; node < world->plan->n_nodes; node++) {
            count += plan_server(world->plan, lock->client, node) == server && lock->subscriptions[node].subscribed;
        }
    }
    return count;
}

void subscriptions_end(struct world *world, uint32_t client, uint32_t node)
{
    for (uint32_t i = 0; i < world->plan->n_locks; i++) {
        if (world->locks[i].client != client || !world->locks[i].listens) continue;
        begin(world, &world->locks[i], node, pause_us(world));
    }
}

void subscriptions_node_died(struct world *world, uint32_t server)
{
    for (uint32_t client = 0; client < world->plan->n_clients; client++) {
        for (uint32_t node = 0; node < world->plan->n_nodes; node++) {
            if (plan_server(world->plan, client, node) == server) subscriptions_end(world, client, node);
        }
    }
}

void subscriptions_subscribe(struct world *world, const struct event *event)
{
    struct subscription *subscription = subscription_of(world, event);
    const struct node *server = &world->nodes[plan_server(world->plan, event->client, event->node)];
    struct lock *lock = &world->locks[event->index];
    uint64_t at_us;

    if (subscription == NULL) return;
    if (blocked(world, event, world->clients[event->client].links[event->node].to_cut_until_us)) return;
    if (blocked(world, event, server->frozen_until_us)) return;
    if (!server->up) {
        begin(world, lock, event->node, pause_us(world));
        return;
    }
    subscription->subscribed = true;
    at_us = world->now_us + delay_us(world, lock, event->node);
    at_us = world_in_order(&subscription->last_us, at_us);
    plan(world, at_us, EVENT_LISTENING, lock, event->node, 0);
}

void subscriptions_listening(struct world *world, const struct event *event)
{
    if (subscription_of(world, event) == NULL) return;
    if (blocked(world, event, world->clients[event->client].links[event->node].from_cut_until_us)) return;
    if (process_postponed(world, event)) return;
    world->totals->of[TOTAL_LISTENING]++;
    process_listening(world, &world->locks[event->index], event->node);
}

void subscriptions_notice(struct world *world, const struct event *event)
{
    if (subscription_of(world, event) == NULL) return;
    if (blocked(world, event, world->clients[event->client].links[event->node].from_cut_until_us)) return;
    if (process_postponed(world, event)) return;
    world->totals->of[TOTAL_NOTICES]++;
    process_notice(world, &world->locks[event->index], event->node, event->holder_id);
}
