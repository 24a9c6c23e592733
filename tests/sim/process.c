/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * process.c - a client's loop around the core
 *
 * The clock is read just before every step. Commands are queued in their order; one that cannot be queued comes
 * back as not sent, in the same turn. Callbacks run later, from the top of the loop. A quiet lock gets no
 * events; it gets the node states of all nodes before its next acquire.
 *
 * A client that stands still (process_pause) misses everything; what came meanwhile happens when it goes on, in
 * an order that only keeps what one connection promises.
 */
#include "sim.h"

#include <string.h>

#define UNSENT_MAX    CORE_COMMANDS_MAX
#define CALLBACKS_MAX 8

void process_new_lock(struct world *world, struct lock *lock)
{
    lock->core = (struct core_lock *)(void *)(world->memory + lock->index * world_lock_size());
    lock->life++;
    lock->timer_us = 0;
    lock->dispatch_planned = false;
    lock->active = false;
    subscriptions_close(world, lock);
    memset(&lock->verdicts, 0, sizeof(lock->verdicts));
    memset(lock->taken_attempt, 0, sizeof(lock->taken_attempt));
    core_init(lock->core, &lock->config);
    actor_begin(world, lock);
}

void process_pause(struct world *world, uint32_t client_index, uint64_t for_us)
{
    struct client *client = &world->clients[client_index];
    uint64_t until_us = world->now_us + for_us;

    if (!client->alive || until_us <= client->paused_until_us) return;
    TRACE(world, "client %u stands still for %llu us", client_index, (unsigned long long)for_us);
    client->paused_total_us +=
        until_us - (client->paused_until_us > world->now_us ? client->paused_until_us : world->now_us);
    client->paused_until_us = until_us;
}

void process_suspend(struct world *world, uint32_t client_index, uint64_t for_us)
{
    struct client *client = &world->clients[client_index];

    if (!client->alive || world->now_us < client->suspended_until_us) return;
    process_pause(world, client_index, for_us);
    client->suspended_from_us = world->now_us;
    client->suspended_until_us = world->now_us + for_us;
    client->suspended_us += for_us;
}

bool process_postponed(struct world *world, const struct event *event)
{
    struct client *client = &world->clients[event->client];
    uint64_t until_us = client->paused_until_us;
    uint32_t apart = event->type == EVENT_ANSWER || event->type == EVENT_CLOSED
                         ? event->node
                         : 100u + event->type + 32u * event->index;
    uint64_t on_us = until_us + world_apart(world, until_us, event->client, apart);

    if (!client->alive || until_us == 0 || world->now_us >= on_us) return false;
    world_postpone(world, event, on_us);
    return true;
}

/* A clock that is read twice in one microsecond may show the same; never less. */
uint64_t process_clock(struct world *world, uint32_t client_index)
{
    struct client *client = &world->clients[client_index];
    uint64_t now_us = world_client_clock(world, client_index, world->now_us);

    if (now_us > client->last_now_us) client->last_now_us = now_us;
    return client->last_now_us;
}

/* The standstill or death that is planned for this opportunity. Returns how long it stands still. */
static uint64_t strike_nth(struct world *world, uint32_t client, enum plan_fault_kind pause, enum plan_fault_kind death,
                           uint32_t nth)
{
    const struct plan *plan = world->plan;
    uint64_t most_us = plan->active_us + plan->base_lease_us / 4 - world->now_us;
    uint64_t pause_us = 0;

    if (world->phase != PHASE_FAULTS) return 0;
    for (uint32_t i = 0; i < plan->n_faults; i++) {
        const struct plan_fault *fault = &plan->faults[i];

        if (fault->client != client || fault->nth != nth || fault->left_out) continue;
        if (fault->kind != pause && fault->kind != death) continue;
        world->totals->faults[fault->kind]++;
        if (fault->kind == pause) {
            pause_us = fault->for_us < most_us ? fault->for_us : most_us;
        } else {
            world_plan(world, world->now_us, EVENT_FAULT, 0, 0, i, 0);
        }
    }
    if (pause_us != 0) process_pause(world, client, pause_us);
    return pause_us;
}

static void plan_timer(struct world *world, struct lock *lock)
{
    struct rng *rng = &world->clients[lock->client].rng;
    uint64_t deadline_us = core_deadline(lock->core);
    uint64_t at_us;

    if (deadline_us == CORE_NEVER) return;
    at_us = world_client_when(world, lock->client, deadline_us);
    if (at_us < world->now_us) at_us = world->now_us;
    /* A loop is a little late mostly, and now and then by some milliseconds. */
    at_us += rng_below(rng, 100);
    if (rng_one_in(rng, 16)) at_us += rng_below(rng, 4000);
    if (lock->timer_us != 0 && lock->timer_us <= at_us) return;
    lock->timer_us = at_us;
    world_plan(world, at_us, EVENT_TIMER, lock->client, 0, lock->index, lock->life);
}

static void plan_dispatch(struct world *world, struct lock *lock)
{
    struct client *client = &world->clients[lock->client];

    if (lock->dispatch_planned) return;
    lock->dispatch_planned = true;
    (void)strike_nth(world, lock->client, FAULT_PAUSE_CALLBACK, FAULT_DEATH_CALLBACK, ++client->callbacks);
    world_plan(world, world->now_us + rng_below(&client->rng, rng_one_in(&client->rng, 32) ? 3000 : 100),
               EVENT_DISPATCH, lock->client, 0, lock->index, lock->life);
}

static uint32_t queue_commands(struct world *world, struct lock *lock, const struct core_update *update,
                               struct core_tag *ret_unsent)
{
    struct client *client = &world->clients[lock->client];
    uint64_t pause_us;
    uint64_t leaves_us;
    uint32_t unsent = 0;

    if (update->n_commands == 0) return 0;
    pause_us = strike_nth(world, lock->client, FAULT_PAUSE_SEND, FAULT_DEATH_SEND, ++client->sends);
    leaves_us = world->now_us + pause_us + rng_below(&client->rng, 60);
    for (uint32_t i = 0; i < update->n_commands; i++) {
        const struct core_command *command = &update->commands[i];

        if (world->trace) trace_command(world, lock, command);
        if (command->tag.op == OP_PEEK) world->totals->of[TOTAL_PEEKS]++;
        judge_asked(world, lock, command);
        if (!link_send(world, lock, command, leaves_us)) ret_unsent[unsent++] = command->tag;
    }
    return unsent;
}

static int call(struct world *world, struct lock *lock, struct core_event *event);

static void give_back_unsent(struct world *world, struct lock *lock, const struct core_tag *tags, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct core_event event = {.type = CORE_EV_REPLY};

        event.reply = (struct core_reply){.tag = tags[i],
                                          .generation = world->clients[lock->client].links[tags[i].node].generation,
                                          .outcome = OUTCOME_UNSENT,
                                          .fault = FAULT_CLASS_TEMPORARY,
                                          .ttl_us = -2};
        world->totals->of[TOTAL_UNSENT]++;
        (void)call(world, lock, &event);
    }
}

static void note(struct world *world, uint32_t log)
{
    uint64_t *of = world->totals->of;

    of[TOTAL_ATTEMPTS_FAILED] += (log & CORE_LOG_ATTEMPT_FAILED) != 0;
    of[TOTAL_RENEWED] += (log & CORE_LOG_RENEWED) != 0;
    of[TOTAL_RENEW_FAILED] += (log & CORE_LOG_RENEW_FAILED) != 0;
    of[TOTAL_DEGRADED] += (log & CORE_LOG_DEGRADED) != 0;
    of[TOTAL_WHOLE] += (log & CORE_LOG_WHOLE) != 0;
    of[TOTAL_REPAIRED] += (log & CORE_LOG_REPAIRED) != 0;
}

/* An attempt may follow from it. */
static bool may_begin(enum core_event_type type)
{
    return type == CORE_EV_ACQUIRE || type == CORE_EV_TIMER || type == CORE_EV_NOTICE || type == CORE_EV_LISTENING ||
           type == CORE_EV_WAKE;
}

static int step(struct world *world, struct lock *lock, struct core_event *event, struct core_update *update)
{
    unsigned char random[CORE_RANDOM_SIZE];
    struct core_tag unsent[UNSENT_MAX];
    uint32_t n_unsent;
    int status;

    if (may_begin(event->type)) {
        rng_bytes(&world->clients[lock->client].rng, random, sizeof(random));
        event->random = random;
        event->wall_us = lock->config.fencing ? world_wall_us(world, lock->client) : 0;
    }
    event->now_us = process_clock(world, lock->client);
    if (world->trace) trace_step(world, lock, event);
    world->totals->steps++;
    judge_before(world, lock, event);
    status = core_step(lock->core, event, update);
    event->random = NULL; /* ends with this step */
    trace_mix(world, ((uint64_t)lock->index << 32) | ((uint64_t)event->type << 24) |
                         ((uint64_t)update->n_commands << 8) | (uint64_t)update->completion.kind);
    note(world, update->log);
    if (world->trace) trace_completion(world, lock, &update->completion);
    judge_after(world, lock, event, update, status);
    lock->active = !core_quiet(lock->core);
    subscriptions_follow(world, lock);
    n_unsent = queue_commands(world, lock, update, unsent);
    if (update->dispatch) plan_dispatch(world, lock);
    plan_timer(world, lock);
    give_back_unsent(world, lock, unsent, n_unsent);
    return status;
}

static int call(struct world *world, struct lock *lock, struct core_event *event)
{
    struct core_update update;

    return step(world, lock, event, &update);
}

static void show_state(struct world *world, struct lock *lock, uint32_t node)
{
    const struct link *link = &world->clients[lock->client].links[node];
    struct core_event event = {.type = CORE_EV_NODE,
                               .node = {.index = node,
                                        .state = link->state,
                                        .generation = world_talks(link->state) ? link->generation : 0,
                                        .fault = link->fault,
                                        .srtt_us = link->srtt_us}};

    (void)call(world, lock, &event);
}

/* Another lock of this client on the same key that holds it, or that waits for it. */
static struct lock *sibling(struct world *world, const struct lock *lock, bool holds)
{
    if (world->plan->n_locks == world->plan->n_clients) return NULL;
    for (uint32_t i = 0; i < world->plan->n_locks; i++) {
        struct lock *other = &world->locks[i];

        if (other == lock || other->client != lock->client || other->key != lock->key) continue;
        if (holds ? other->verdicts.notified_held : other->verdicts.acquiring.pending) return other;
    }
    return NULL;
}

int process_acquire(struct world *world, struct lock *lock)
{
    struct core_event event = {.type = CORE_EV_ACQUIRE};
    struct rng *rng = &world->clients[lock->client].rng;
    uint64_t wait_us = lock->config.wait_us;

    event.acquire.behind = sibling(world, lock, true) != NULL && rng_one_in(rng, 2);
    if (world->phase == PHASE_FAULTS && wait_us != 0 && wait_us != CORE_NEVER && rng_one_in(rng, 8)) {
        event.acquire.begun_us = process_clock(world, lock->client) - rng_below(rng, wait_us / 4 + 1);
    }
    world->totals->of[TOTAL_BEHIND] += event.acquire.behind;
    if (!lock->active) {
        for (uint32_t node = 0; node < world->plan->n_nodes; node++) show_state(world, lock, node);
    }
    return call(world, lock, &event);
}

int process_extend(struct world *world, struct lock *lock, uint64_t lease_us)
{
    return call(world, lock, &(struct core_event){.type = CORE_EV_EXTEND, .extend = {.lease_us = lease_us}});
}

int process_release(struct world *world, struct lock *lock)
{
    struct core_event wake = {.type = CORE_EV_WAKE};
    struct rng *rng = &world->clients[lock->client].rng;
    bool held = lock->verdicts.notified_held;
    int status;

    if (held) handover_freed(world, lock);
    status = call(world, lock, &(struct core_event){.type = CORE_EV_RELEASE});
    if (held && status == CORE_OK && sibling(world, lock, false) != NULL) {
        world->totals->of[TOTAL_WAKES]++;
        wake.wake.yield = rng_one_in(rng, 8);
        (void)call(world, sibling(world, lock, false), &wake);
    }
    return status;
}

int process_cancel(struct world *world, struct lock *lock, int reason)
{
    return call(world, lock, &(struct core_event){.type = CORE_EV_CANCEL, .cancel = {.status = reason}});
}

void process_node_state(struct world *world, uint32_t client, uint32_t node)
{
    for (uint32_t i = 0; i < world->plan->n_locks; i++) {
        if (world->locks[i].client == client && world->locks[i].active) show_state(world, &world->locks[i], node);
    }
}

void process_room(struct world *world, uint32_t client)
{
    if (!world->clients[client].alive) return;
    for (uint32_t i = 0; i < world->plan->n_locks; i++) {
        for (uint32_t node = 0; node < world->plan->n_nodes; node++) {
            struct core_event event = {.type = CORE_EV_ROOM, .room = {.node = node}};

            if (world->locks[i].client == client && world->locks[i].active) (void)call(world, &world->locks[i], &event);
        }
    }
}

void process_reply(struct world *world, struct lock *lock, uint32_t life, const struct core_reply *reply)
{
    struct core_event event = {.type = CORE_EV_REPLY, .reply = *reply};

    if (lock->life != life || !world->clients[lock->client].alive) return;
    (void)call(world, lock, &event);
}

void process_listening(struct world *world, struct lock *lock, uint32_t node)
{
    (void)call(world, lock, &(struct core_event){.type = CORE_EV_LISTENING, .listening = {.node = node}});
}

void process_notice(struct world *world, struct lock *lock, uint32_t node, uint64_t holder_id)
{
    (void)call(world, lock,
               &(struct core_event){.type = CORE_EV_NOTICE, .notice = {.node = node, .holder_id = holder_id}});
}

void process_node_clock(struct world *world, uint32_t client, uint32_t node, uint64_t sent_us, uint64_t received_us,
                        uint64_t node_us)
{
    struct nodeclock *clock = &world->clients[client].links[node].clock;
    struct core_event event = {.type = CORE_EV_STEP, .step = {.node = node, .before_us = sent_us}};

    if (node_us == 0 || !world->clients[client].alive) return;
    if (!nodeclock_stepped(clock, sent_us, received_us, node_us, world->plan->drift_ppm, PLAN_DRIFT_FIXED_US)) {
        return;
    }
    judge_stepped(world, client, node);
    for (uint32_t i = 0; i < world->plan->n_locks; i++) {
        if (world->locks[i].client == client && world->locks[i].active) (void)call(world, &world->locks[i], &event);
    }
}

void process_timer(struct world *world, const struct event *event)
{
    struct lock *lock = &world->locks[event->index];

    if (lock->life != event->serial || !world->clients[lock->client].alive) return;
    if (lock->timer_us == 0 || world->now_us < lock->timer_us) return;
    if (process_postponed(world, event)) return;
    lock->timer_us = 0;
    /* The deadline may have moved on since this was planned. */
    if (core_deadline(lock->core) <= process_clock(world, lock->client)) {
        (void)call(world, lock, &(struct core_event){.type = CORE_EV_TIMER});
    }
    if (lock->life == event->serial) plan_timer(world, lock);
}

void process_dispatch(struct world *world, const struct event *event)
{
    struct lock *lock = &world->locks[event->index];

    if (lock->life != event->serial || !world->clients[lock->client].alive) return;
    if (process_postponed(world, event)) return;
    for (uint32_t i = 0; lock->life == event->serial && !world->over; i++) {
        struct core_event dispatch = {.type = CORE_EV_DISPATCH};
        bool granted = core_phase_now(lock->core) == CORE_GRANTED;
        struct core_update update;

        (void)step(world, lock, &dispatch, &update);
        if (granted && core_phase_now(lock->core) != CORE_HELD) world->totals->of[TOTAL_TOO_LATE]++;
        if (update.completion.kind == CORE_NOTIFY_NOTHING) break;
        actor_notify(world, lock, &update.completion);
        if (i > CALLBACKS_MAX)
            judge_violated(world, I6_NOTIFIED_ONCE, "lock %u has callbacks without end", lock->index);
    }
    if (lock->life == event->serial) lock->dispatch_planned = false;
}

/* The client born in its place finds a clock that runs. */
static void see_again(struct world *world, uint32_t client_index)
{
    struct client *client = &world->clients[client_index];

    if (world->now_us >= client->suspended_until_us) return;
    client->suspended_us -= client->suspended_until_us - world->now_us;
    client->suspended_until_us = world->now_us;
}

void process_die(struct world *world, uint32_t client)
{
    if (!world->clients[client].alive) return;
    for (uint32_t i = 0; i < world->plan->n_locks; i++) {
        struct lock *lock = &world->locks[i];

        if (lock->client != client) continue;
        judge_death(world, lock);
        subscriptions_close(world, lock);
        lock->active = false;
        lock->state = ACTOR_DEAD;
        lock->act_serial++;
        lock->life++;
    }
    world->clients[client].alive = false;
    world->clients[client].paused_until_us = 0;
    see_again(world, client);
    link_die(world, client);
}

void process_born(struct world *world, uint32_t client)
{
    if (world->clients[client].alive) return;
    world->clients[client].alive = true;
    link_open_all(world, client);
    for (uint32_t i = 0; i < world->plan->n_locks; i++) {
        if (world->locks[i].client == client) process_new_lock(world, &world->locks[i]);
    }
}
