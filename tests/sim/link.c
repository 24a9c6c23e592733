/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.c - one connection at a time between a client and a node
 *
 * On one connection everything stays in order; between connections nothing does. What was sent before a
 * connection ended may still be executed by the server, even after what was sent on the next one. A request
 * lives until it is out of its connection's order and nothing of it is on the wire any more.
 */
#include "sim.h"

#define NONE UINT32_MAX

static struct link *get_link(struct world *world, uint32_t client, uint32_t node)
{
    return &world->clients[client].links[node];
}

static uint32_t which_server(const struct world *world, const struct link *link)
{
    return plan_server(world->plan, link->client, link->node);
}

static uint32_t take_request(struct world *world)
{
    uint32_t index = world->free_request;

    if (index != NONE) {
        world->free_request = world->requests[index].next;
        return index;
    }
    world->requests =
        world_room(world->requests, world->n_requests, &world->requests_capacity, sizeof(*world->requests));
    index = world->n_requests++;
    world->requests[index].serial = 0;
    return index;
}

static void settle(struct world *world, uint32_t index)
{
    struct request *request = &world->requests[index];

    if (request->queued || !request->landed) return;
    request->serial++;
    request->next = world->free_request;
    world->free_request = index;
}

static struct request *request_of(struct world *world, const struct event *event)
{
    struct request *request = &world->requests[event->index];

    return request->serial == event->serial ? request : NULL;
}

uint64_t link_delay(const struct world *world, struct rng *rng, uint32_t client, uint32_t node)
{
    const struct plan *plan = world->plan;
    const struct link *link = &world->clients[client].links[node];
    uint64_t delay_us;

    if (plan->calm) {
        delay_us = plan->delay_us[node] / 2 + rng_below(rng, plan->delay_us[node]);
    } else if (plan->near_us == 0) {
        delay_us = 20 + rng_long_tail(rng, plan->delay_us[node]);
    } else {
        delay_us = client % plan->n_nodes == node ? plan->near_us : plan->delay_us[node];
        delay_us += rng_below(rng, plan->near_us);
    }
    if (world->now_us < link->slow_until_us) delay_us += rng_below(rng, link->slow_us);
    return delay_us;
}

static uint64_t draw_delay(struct world *world, struct link *link)
{
    return link_delay(world, &world->chance, link->client, link->node);
}

static void watch_stall(struct world *world, struct link *link, uint64_t since_us)
{
    if (link->watched) return;
    link->watched = true;
    world_plan(world, since_us + world->plan->stall_us, EVENT_STALL, link->client, link->node, 0, link->generation);
}

bool link_send(struct world *world, struct lock *lock, const struct core_command *command, uint64_t leaves_us)
{
    uint32_t node = command->tag.node;
    struct link *link = get_link(world, lock->client, node);
    struct request *request;
    uint32_t index;
    uint64_t arrives_us;

    if (!world_talks(link->state) || world->now_us < world->clients[lock->client].unsent_until_us) {
        return false;
    }
    handover_asked(world, lock->key);
    index = take_request(world);
    request = &world->requests[index];
    *request = (struct request){.command = *command,
                                .sent_us = world->now_us,
                                .serial = request->serial,
                                .next = NONE,
                                .generation = link->generation,
                                .lock = lock->index,
                                .life = lock->life,
                                .seen = link->seen,
                                .client = lock->client,
                                .node = (uint8_t)node,
                                .queued = true};
    if (link->first == NONE) {
        link->first = index;
    } else {
        world->requests[link->last].next = index;
    }
    link->last = index;
    watch_stall(world, link, world->now_us);
    arrives_us = leaves_us + draw_delay(world, link);
    arrives_us = world_in_order(&link->to_last_us, arrives_us);
    world_plan(world, arrives_us, EVENT_ARRIVE, lock->client, node, index, request->serial);
    if (command->timeout_us != 0) {
        uint64_t due_us = world_client_clock(world, lock->client, world->now_us) + command->timeout_us;

        world_plan(world, world_client_when(world, lock->client, due_us) + rng_below(&world->chance, 200),
                   EVENT_TIMEOUT, lock->client, node, index, request->serial);
    }
    return true;
}

/* When a connection that stood still until then goes on. */
static uint64_t goes_on(const struct world *world, uint64_t until_us, const struct request *request)
{
    return until_us + world_apart(world, until_us, request->client * 64u + request->node, request->generation);
}

static void answer(struct world *world, struct request *request, uint32_t index)
{
    struct link *link = get_link(world, request->client, request->node);
    uint64_t arrives_us = world->now_us + draw_delay(world, link);

    if (request->queued) arrives_us = world_in_order(&link->from_last_us, arrives_us);
    world_plan(world, arrives_us, EVENT_ANSWER, request->client, request->node, index, request->serial);
}

static bool held_up(struct world *world, const struct event *event, uint64_t until_us, const struct request *request)
{
    uint64_t on_us = goes_on(world, until_us, request);

    if (until_us == 0 || world->now_us >= on_us) return false;
    world_postpone(world, event, on_us);
    return true;
}

/* Standstills that overlap may end in any order; requests on one connection keep theirs. */
static bool has_earlier(const struct world *world, const struct link *link, const struct request *request)
{
    if (!request->queued) return false;
    for (uint32_t i = link->first; &world->requests[i] != request; i = world->requests[i].next) {
        if (!world->requests[i].executed) return true;
    }
    return false;
}

static void wait_for_earlier(struct world *world, const struct event *event)
{
    world_postpone(world, event, world->now_us + 20);
}

/* A server does one thing after the other. */
static bool queues(struct world *world, const struct event *event, struct request *request)
{
    struct node *server = &world->nodes[plan_server(world->plan, request->client, request->node)];

    if (world->plan->service_us == 0 || request->served) return false;
    request->served = true;
    if (server->busy_until_us < world->now_us) server->busy_until_us = world->now_us;
    server->busy_until_us += world->plan->service_us;
    world_postpone(world, event, server->busy_until_us);
    return true;
}

void link_arrive(struct world *world, const struct event *event)
{
    struct request *request = request_of(world, event);
    struct link *link;
    const struct node *server;

    if (request == NULL) return;
    link = get_link(world, request->client, request->node);
    server = &world->nodes[which_server(world, link)];
    if (request->late_us != 0) {
        uint64_t late_us = request->late_us;

        request->late_us = 0;
        world_postpone(world, event, world->now_us + late_us);
        return;
    }
    if (held_up(world, event, link->to_cut_until_us, request)) return;
    if (held_up(world, event, server->frozen_until_us, request)) return;
    if (request->dropped || !server->up || request->generation <= link->server_gone) {
        request->landed = true;
        settle(world, event->index);
        return;
    }
    if (queues(world, event, request)) return;
    if (has_earlier(world, link, request)) {
        wait_for_earlier(world, event);
        return;
    }
    request->executed = true;
    if (!request->queued) world->totals->of[TOTAL_LATE_EXECUTED]++;
    server_execute(world, request);
    if (request->queued || world->plan->strays) {
        answer(world, request, event->index);
    } else {
        request->landed = true;
        settle(world, event->index);
    }
}

static void deliver_stray(struct world *world, uint32_t index)
{
    struct request *request = &world->requests[index];
    struct core_reply reply = request->reply;
    uint32_t lock = request->lock;
    uint32_t life = request->life;
    bool delivered = world->plan->strays && world->clients[request->client].alive;

    request->landed = true;
    settle(world, index);
    if (!delivered) return;
    world->totals->of[TOTAL_STRAYS]++;
    process_reply(world, &world->locks[lock], life, &reply);
}

static void update_rtt(struct world *world, struct link *link, const struct request *request)
{
    uint64_t took_us = world->now_us - request->sent_us;

    if (took_us > 1000000) took_us = 1000000;
    link->srtt_us = link->srtt_us == 0 ? (uint32_t)took_us : (uint32_t)((7 * (uint64_t)link->srtt_us + took_us) / 8);
}

/* An answer goes to the core, to the check of the node's clock, and to the connection, in this order. */
static void deliver(struct world *world, const struct request *request)
{
    struct link *link = get_link(world, request->client, request->node);

    if (request->reported) {
        world->totals->of[TOTAL_SWALLOWED]++;
    } else {
        uint64_t received_us = process_clock(world, request->client);

        process_reply(world, &world->locks[request->lock], request->life, &request->reply);
        process_node_clock(world, request->client, request->node, request->reply.tag.sent_us, received_us,
                           request->node_us);
    }
    if (!request->guard_broken || !world->clients[request->client].alive) return;
    if (link->generation == request->generation) link_end(world, link, FATE_ANY);
}

void link_answer(struct world *world, const struct event *event)
{
    struct request *request = request_of(world, event);
    struct request delivered;
    struct link *link;

    if (request == NULL) return;
    link = get_link(world, request->client, request->node);
    if (held_up(world, event, link->from_cut_until_us, request)) return;
    if (process_postponed(world, event)) return;
    if (!request->queued) {
        deliver_stray(world, event->index);
        return;
    }
    if (&world->requests[link->first] != request) {
        wait_for_earlier(world, event);
        return;
    }
    link->first = request->next;
    request->queued = false;
    update_rtt(world, link, request);
    delivered = *request;
    request->landed = true;
    settle(world, event->index);
    deliver(world, &delivered);
}

static void report_unknown(struct world *world, uint32_t index)
{
    struct request *request = &world->requests[index];
    struct core_reply reply = {.tag = request->command.tag,
                               .generation = request->generation,
                               .outcome = OUTCOME_UNKNOWN,
                               .fault = FAULT_CLASS_TEMPORARY,
                               .ttl_us = -2};

    request->reported = true;
    world->totals->of[TOTAL_UNKNOWN]++;
    process_reply(world, &world->locks[request->lock], request->life, &reply);
}

void link_timeout(struct world *world, const struct event *event)
{
    struct request *request = request_of(world, event);

    if (request == NULL || request->reported || !request->queued) return;
    if (process_postponed(world, event)) return;
    world->totals->of[TOTAL_TIMEOUTS]++;
    report_unknown(world, event->index);
}

static void set_state(struct world *world, struct link *link, enum node_state state, enum fault_class fault)
{
    if (link->state == state && link->fault == fault) return;
    link->state = state;
    link->fault = fault;
    process_node_state(world, link->client, link->node);
}

static void begin_try(struct world *world, struct link *link)
{
    link->tries++;
    link->node_life = world->nodes[which_server(world, link)].life;
    link->try_until_us = world->now_us + world->plan->connect_timeout_us;
    link->greeted = false;
    world_plan(world, world->now_us + 2 * draw_delay(world, link), EVENT_GREET, link->client, link->node, 0,
               link->tries);
}

static void try_failed(struct world *world, struct link *link)
{
    uint64_t pause_us = world->plan->reconnect_min_us << (link->failures < 10 ? link->failures : 10);

    if (pause_us > world->plan->reconnect_max_us || link->expelled) pause_us = world->plan->reconnect_max_us;
    link->failures++;
    link->tries++;
    world->totals->of[TOTAL_CONNECT_FAILED]++;
    world_plan(world, world->now_us + pause_us / 2 + rng_below(&world->chance, pause_us / 2 + 1), EVENT_RETRY,
               link->client, link->node, 0, link->tries);
    set_state(world, link, NODE_DOWN, link->expelled ? FAULT_CLASS_CONFIG : FAULT_CLASS_TEMPORARY);
    link->expelled = false;
}

/* Takes the requests out of their order; the fate decides what becomes of them on the wire. */
static uint32_t detach(struct world *world, struct link *link, enum link_fate fate)
{
    uint32_t first = link->first;
    uint64_t late_us = fate == FATE_LATE ? rng_between(&world->chance, 1, world->plan->late_us) : 0;
    uint64_t draw = rng_below(&world->chance, 4);
    uint64_t keep = draw == 0 ? 0 : draw == 1 ? rng_below(&world->chance, 8) : UINT64_MAX;

    if (fate == FATE_DROPPED) keep = 0;
    if (fate == FATE_LATE) keep = UINT64_MAX;
    if (fate == FATE_ANY && draw == 3) late_us = rng_between(&world->chance, 1, world->plan->late_us);
    for (uint32_t i = first; i != NONE; i = world->requests[i].next) {
        struct request *request = &world->requests[i];

        request->queued = false;
        if (request->executed) continue;
        if (keep == 0) {
            request->dropped = true;
        } else {
            keep--;
            request->late_us = late_us;
        }
    }
    link->first = link->last = NONE;
    link->watched = false;
    return first;
}

void link_end(struct world *world, struct link *link, enum link_fate fate)
{
    uint32_t index;

    if (!world_talks(link->state)) return;
    TRACE(world, "client %u   connection %u to node %u has ended", link->client, link->generation, link->node);
    index = detach(world, link, fate);
    link->state = NODE_CONNECTING;
    link->fault = FAULT_CLASS_TEMPORARY;
    link->failures = 0;
    link->quarantine_until_us = 0;
    for (uint32_t next; index != NONE; index = next) {
        next = world->requests[index].next;
        if (!world->requests[index].reported) report_unknown(world, index);
        settle(world, index);
    }
    if (link->expelled) {
        try_failed(world, link);
        return;
    }
    process_node_state(world, link->client, link->node);
    begin_try(world, link);
}

void link_die(struct world *world, uint32_t client)
{
    for (uint32_t node = 0; node < world->plan->n_nodes; node++) {
        struct link *link = get_link(world, client, node);
        uint32_t index = detach(world, link, FATE_ANY);

        for (uint32_t next; index != NONE; index = next) {
            next = world->requests[index].next;
            world->requests[index].reported = true;
            settle(world, index);
        }
        link->tries++;
        link->state = NODE_DOWN;
        link->fault = FAULT_CLASS_TEMPORARY;
    }
}

void link_node_died(struct world *world, uint32_t server)
{
    subscriptions_node_died(world, server);
    for (uint32_t client = 0; client < world->plan->n_clients; client++) {
        for (uint32_t node = 0; node < world->plan->n_nodes; node++) {
            struct link *link = get_link(world, client, node);
            uint64_t seen_us;

            if (which_server(world, link) != server) continue;
            seen_us = world->now_us + draw_delay(world, link);
            link->server_gone = link->generation;
            if (!world_talks(link->state)) continue;
            seen_us = world_in_order(&link->from_last_us, seen_us);
            world_plan(world, seen_us, EVENT_CLOSED, client, node, 0, link->generation);
        }
    }
}

void link_closed(struct world *world, const struct event *event)
{
    struct link *link = get_link(world, event->client, event->node);

    if (!world->clients[event->client].alive || link->generation != event->serial) return;
    if (process_postponed(world, event)) return;
    link_end(world, link, FATE_DROPPED);
}

void link_stall(struct world *world, const struct event *event)
{
    struct link *link = get_link(world, event->client, event->node);
    uint64_t since_us;

    if (!world_talks(link->state) || link->generation != event->serial || !link->watched) return;
    if (process_postponed(world, event)) return;
    link->watched = false;
    if (link->first == NONE) return;
    since_us = world->requests[link->first].sent_us;
    if (world->now_us < since_us + world->plan->stall_us) {
        watch_stall(world, link, since_us);
        return;
    }
    world->totals->of[TOTAL_STALLS]++;
    link_end(world, link, FATE_ANY);
}

/* A server behind two entries would have two votes: neither entry gets one. */
static bool expel_twins(struct world *world, struct link *link)
{
    enum server_rule rule = world->server_rule;

    if (world->plan->guard == PLAN_GUARD_OFF || rule == SERVER_TWINS_UNSEEN) return false;
    for (uint32_t i = 0; i < world->plan->n_nodes; i++) {
        struct link *other = get_link(world, link->client, i);

        if (i == link->node || other->run != link->run) continue;
        if (rule == SERVER_TWINS_FORGOTTEN && !world_talks(other->state)) continue;
        TRACE(world, "client %u   nodes %u and %u are one server", link->client, i, link->node);
        world->totals->of[TOTAL_TWINS]++;
        other->expelled = true;
        link_end(world, other, FATE_ANY);
        return true;
    }
    return false;
}

static void plan_guard_look(struct world *world, struct link *link)
{
    world_plan(world, world_client_when(world, link->client, link->quarantine_until_us), EVENT_GUARD, link->client,
               link->node, 0, link->generation);
}

/* A little is added to what is left of the quarantine, for clocks differ. */
static void take_guard(struct world *world, struct link *link)
{
    uint64_t left_us = link->answer_left_ms * 1000;

    link->seen = link->answer;
    if (left_us == 0) {
        world->totals->of[TOTAL_QUARANTINE_ENDED] += link->quarantine_until_us != 0;
        link->quarantine_until_us = 0;
        set_state(world, link, NODE_READY, FAULT_CLASS_NONE);
        return;
    }
    world->totals->of[TOTAL_QUARANTINED] += link->quarantine_until_us == 0;
    link->quarantine_until_us = process_clock(world, link->client) + left_us + left_us / 100 + 2000;
    plan_guard_look(world, link);
    set_state(world, link, NODE_QUARANTINED, FAULT_CLASS_NONE);
}

static bool greets(struct world *world, struct link *link)
{
    uint32_t index = which_server(world, link);
    struct node *server = &world->nodes[index];

    if (!server->up || server->life != link->node_life || world->now_us >= link->try_until_us) return false;
    if (world->now_us < server->refuse_all_until_us) return false;
    if (!guard_look(world, index, &link->answer, &link->answer_left_ms)) return false;
    link->run = server->run;
    server->scripts = UINT32_MAX; /* the handshake loads them */
    return true;
}

/* Blocked: tried again when that has passed, or the handshake's time. */
static bool is_blocked(struct world *world, const struct event *event, uint64_t until_us)
{
    const struct link *link = get_link(world, event->client, event->node);
    uint64_t again_us = until_us < link->try_until_us ? until_us : link->try_until_us;

    if (world->now_us >= again_us) return false;
    world_postpone(world, event, again_us);
    return true;
}

void link_greet(struct world *world, const struct event *event)
{
    struct link *link = get_link(world, event->client, event->node);
    uint64_t frozen_us = world->nodes[which_server(world, link)].frozen_until_us;
    uint64_t blocked_us = link->to_cut_until_us > frozen_us ? link->to_cut_until_us : frozen_us;

    if (!world->clients[event->client].alive || link->tries != event->serial) return;
    if (is_blocked(world, event, blocked_us)) return;
    link->greeted = greets(world, link);
    world_plan(world, world->now_us + draw_delay(world, link), EVENT_CONNECT, event->client, event->node, 0,
               link->tries);
}

void link_connect(struct world *world, const struct event *event)
{
    struct link *link = get_link(world, event->client, event->node);

    if (!world->clients[event->client].alive || link->tries != event->serial) return;
    if (process_postponed(world, event)) return;
    if (is_blocked(world, event, link->from_cut_until_us)) return;
    if (!link->greeted || world->nodes[which_server(world, link)].life != link->node_life ||
        world->now_us >= link->try_until_us) {
        try_failed(world, link);
        return;
    }
    link->generation++;
    link->failures = 0;
    link->to_last_us = link->from_last_us = world->now_us;
    link->quarantine_until_us = 0;
    world->totals->of[TOTAL_READY]++;
    if (expel_twins(world, link)) {
        link->expelled = true;
        try_failed(world, link);
    } else {
        take_guard(world, link);
    }
}

enum { GUARD_DUE, GUARD_AT_SERVER, GUARD_ANSWERED };

/* The quarantine is over by our clock: the node is asked again. */
void link_guard(struct world *world, const struct event *event)
{
    struct link *link = get_link(world, event->client, event->node);
    uint32_t server = which_server(world, link);
    uint64_t held_us = 0;

    if (!world->clients[event->client].alive || link->generation != event->serial) return;
    if (link->state != NODE_QUARANTINED) return;
    if (event->index == GUARD_AT_SERVER) {
        held_us = world->nodes[server].frozen_until_us;
        if (link->to_cut_until_us > held_us) held_us = link->to_cut_until_us;
    } else {
        if (process_postponed(world, event)) return;
        if (event->index == GUARD_ANSWERED) held_us = link->from_cut_until_us;
    }
    if (event->index == GUARD_DUE && process_clock(world, event->client) < link->quarantine_until_us) {
        plan_guard_look(world, link);
        return;
    }
    if (world->now_us < held_us) {
        world_postpone(world, event, held_us);
        return;
    }
    if (event->index == GUARD_ANSWERED) {
        take_guard(world, link);
        return;
    }
    if (event->index == GUARD_AT_SERVER) {
        /* The end of the connection is on its way. */
        if (!world->nodes[server].up || link->generation <= link->server_gone) return;
        if (!guard_look(world, server, &link->answer, &link->answer_left_ms)) {
            link_end(world, link, FATE_ANY);
            return;
        }
    }
    world_plan(world, world->now_us + draw_delay(world, link), EVENT_GUARD, event->client, event->node,
               event->index + 1, event->serial);
}

void link_retry(struct world *world, const struct event *event)
{
    struct link *link = get_link(world, event->client, event->node);

    if (!world->clients[event->client].alive || link->tries != event->serial) return;
    if (process_postponed(world, event)) return;
    begin_try(world, link);
}

void link_open_all(struct world *world, uint32_t client)
{
    for (uint32_t node = 0; node < world->plan->n_nodes; node++) {
        struct link *link = get_link(world, client, node);

        link->client = client;
        link->node = node;
        link->state = NODE_CONNECTING;
        link->fault = FAULT_CLASS_TEMPORARY;
        link->first = link->last = NONE;
        link->failures = 0;
        link->run = 0;
        link->clock.known = false;
        begin_try(world, link);
    }
}
