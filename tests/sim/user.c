/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * user.c - calls of the public API, and the callbacks that they promise
 *
 * A call that returns 0 promises one callback. Any other call promises none.
 */
#include "user.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "actions.h"
#include "actor.h"
#include "api/client.h"
#include "crowd.h"
#include "election.h"
#include "judge.h"
#include "keep.h"
#include "membership.h"
#include "operator.h"
#include "passing.h"
#include "process.h"
#include "rare.h"
#include "trace.h"

#define OPEN_AGAIN_US 20000u

/* ---- promises ---- */

struct promise *user_promise(struct world *world, uint32_t client, struct actor *actor, enum promise_kind kind,
                             uint64_t bound_us)
{
    struct promise *promise;

    if (world->n_promises == PROMISES_MAX) return NULL;
    promise = &world->promises[world->n_promises++];
    *promise = (struct promise){.world = world,
                                .actor = actor,
                                .lock = actor != NULL ? actor->lock : NULL,
                                .kind = (uint8_t)kind,
                                .client = (uint8_t)client,
                                .pending = true,
                                .handle = actor != NULL ? actor->handle : 0,
                                .flood = NOBODY,
                                .since_us = world_now(world),
                                .stood_us = process_of(world, client)->stood_us,
                                .bound_us = bound_us};
    world->clients[client].pending++;
    world->totals->calls++;
    return promise;
}

void user_drop(struct promise *promise)
{
    promise->pending = false;
    promise->world->clients[promise->client].pending--;
    /* The last one that was made, mostly. */
    if (promise == &promise->world->promises[promise->world->n_promises - 1]) promise->world->n_promises--;
}

bool user_kept(struct promise *promise)
{
    struct world *world = promise->world;
    struct process *process = process_of(world, promise->client);

    if (!process->alive || world->over) return false;
    world_mix(world, ((uint64_t)promise->kind << 8) | promise->client);
    if (!promise->pending) {
        judge_violated(world, I6_TOLD_ONCE, "client %u: the callback of %s comes twice, or without a promise",
                       promise->client, trace_promise((enum promise_kind)promise->kind));
        return false;
    }
    promise->pending = false;
    world->clients[promise->client].pending--;
    judge_called(world, promise->client);
    return true;
}

/* is_operators - return whether it is the operator's client, which is the last one and has the default options. */
static bool is_operators(const struct world *world, uint32_t client)
{
    return client == world->plan->n_clients;
}

uint32_t user_timeout_ms(const struct world *world, uint32_t client)
{
    uint32_t given_ms = is_operators(world, client) ? 0 : world->plan->clients[client].node_timeout_ms;

    return given_ms != 0 ? given_ms : 1000;
}

uint32_t user_connect_ms(const struct world *world, uint32_t client)
{
    uint32_t given_ms = is_operators(world, client) ? 0 : world->plan->clients[client].connect_timeout_ms;

    return given_ms != 0 ? given_ms : 3000;
}

/* user_node_timeout_ms - return the node timeout of a lock as the library computes it, or more. */
uint32_t user_node_timeout_ms(const struct world *world, const struct actor *actor)
{
    uint32_t given_ms = world->plan->clients[actor->plan->client].node_timeout_ms;
    uint32_t lease_ms = actor->plan->options.lease_ms;

    /* Of an owner's handles the lease of the outermost counts. */
    if (actor->plan->owner != 0) lease_ms = world->plan->max_lease_ms;
    if (given_ms != 0) return given_ms;
    if (lease_ms < 500) return 50;
    return lease_ms < 10000 ? lease_ms / 10 : 1000;
}

/* ---- clients ---- */

static void on_log(int level, const char *text, void *arg)
{
    const struct user_client *client = arg;
    struct world *world = client->world;

    (void)level;
    world->made_up += strncmp(text, "buggify: ", strlen("buggify: ")) == 0;
    if (!process_of(world, client->index)->alive || world->over) return;
    world_mix(world, world_hash(text, strlen(text)));
    TRACE(world, "client %u   \"%s\"", client->index, text);
}

struct addresses_of {
    char texts[PLAN_SERVERS_MAX][32];
    const char *list[PLAN_SERVERS_MAX];
};

/* name_nodes - write the addresses of the nodes. A server that is listed twice is listed by its number and by its name.
 */
static void name_nodes(const struct world *world, uint32_t client, struct addresses_of *ret)
{
    const struct plan *plan = world->plan;

    for (uint32_t i = 0; i < membership_set(world, client)->n; i++) {
        uint32_t server = membership_server(world, client, i);
        bool named = plan_has(plan, FEATURE_NAMES);

        /* The second address of a server that is listed twice. */
        if (!plan->changes && server != i) named = !named;
        (void)snprintf(ret->texts[i], sizeof(ret->texts[i]), named ? "node%u" : "10.0.0.%u", server + (named ? 0 : 1));
        ret->list[i] = ret->texts[i];
    }
}

/* buggify_seed - return a seed for each client; 0 (no injected faults) for the operator and for calm runs. */
static uint64_t buggify_seed(const struct user_client *client)
{
    const struct world *world = client->world;
    bool troubled = world->buggify && !world->plan->calm && !is_operators(world, client->index);

    return troubled ? world->plan->seed + client->index + 1 : 0;
}

/* on_credentials - give the credentials that people have set for the server by now. */
static int on_credentials(quorlock_credentials *to, const char *node, void *arg)
{
    struct world *world = arg;
    bool named = strncmp(node, "node", strlen("node")) == 0;
    unsigned long server = strtoul(node + strlen(named ? "node" : "10.0.0."), NULL, 10) - (named ? 0 : 1);
    char password[16];

    site_password(world->sites[server % PLAN_SERVERS_MAX].told_password, password);
    return quorlock_credentials_set(to, NULL, password);
}

static int make_client(struct user_client *client)
{
    struct world *world = client->world;
    const struct plan *plan = world->plan;
    bool operates = is_operators(world, client->index);
    const struct plan_client *own = &plan->clients[client->index % PLAN_CLIENTS_MAX];
    struct process *process = process_of(world, client->index);
    struct quorlock_error error;
    struct addresses_of nodes;
    const struct plan_set *set = membership_set(world, client->index);
    const char *set_name = set->renamed ? "renamed" : world->set_name;
    struct quorlock_client_options options = {.size = sizeof(options),
                                              .nodes = nodes.list,
                                              .n_nodes = set->n,
                                              .policy = operates ? QUORLOCK_POLICY_MAJORITY : own->policy,
                                              .dialect = plan_has(plan, FEATURE_REDISSON) ? QUORLOCK_DIALECT_REDISSON
                                                                                          : QUORLOCK_DIALECT_PLAIN,
                                              .guard = operates ? QUORLOCK_GUARD_OFF : own->guard,
                                              .node_timeout_ms = operates ? 0 : own->node_timeout_ms,
                                              .connect_timeout_ms = operates ? 0 : own->connect_timeout_ms,
                                              .max_lease_ms = set->max_lease_ms,
                                              .drift_ppm = plan->drift_ppm,
                                              .reconnect_min_ms = operates ? 0 : own->reconnect_min_ms,
                                              .reconnect_max_ms = operates ? 0 : own->reconnect_max_ms,
                                              .key_prefix = world->prefix[0] != '\0' ? world->prefix : NULL,
                                              .owner_label = client->label,
                                              .set_name = set_name[0] != '\0' ? set_name : NULL,
                                              .log = plan_has(plan, FEATURE_LOG) || world->buggify ? on_log : NULL,
                                              .log_arg = client,
                                              .credentials = plan->bias == BIAS_PASSWORDS ? on_credentials : NULL,
                                              .credentials_arg = world};
    const struct client_extras extras = {
        .clock = &client->clock, .memory = machine_allocator(process->machine), .buggify = buggify_seed(client)};
    int status;

    name_nodes(world, client->index, &nodes);
    status = client_new_on(&client->client, machine_system(process->machine), &options, &extras, &error);
    if (status == QUORLOCK_ERR_STATE && process_lacks_random(process)) {
        world->totals->of[TOTAL_CALLS_NO_RANDOM]++;
    } else if (status != QUORLOCK_OK && status != QUORLOCK_ERR_NOMEM &&
               world_now(world) >= process->no_memory_until_us) {
        judge_violated(world, UNEXPLAINED, "client %u cannot be made: %s", client->index, error.text);
    }
    return status;
}

static void open_now(void *arg)
{
    user_open(arg);
}

static void on_moment(void *arg)
{
    struct user_client *client = arg;
    struct process *process = process_of(client->world, client->index);

    if (process->alive && client->state == CLIENT_NONE) machine_call(process->machine, open_now, client);
}

void user_open(struct user_client *client)
{
    struct world *world = client->world;
    bool operates = client->index == world->plan->n_clients;

    if (client->state != CLIENT_NONE || world->phase >= PHASE_CLOSING || world->over) return;
    client->moment.happen = on_moment;
    client->moment.arg = client;
    client->life++;
    client->let_in = false;
    client->renewed = membership_is_renewed(world, client);
    (void)snprintf(client->label, sizeof(client->label), "c%u.%u:", client->index, client->life);
    if (make_client(client) != QUORLOCK_OK) {
        queue_set(&world->queue, &client->moment, world_now(world) + OPEN_AGAIN_US);
        return;
    }
    TRACE(world, "client %u < is made, on machine %u", client->index, client->machine);
    client->state = CLIENT_OPEN;
    for (uint32_t i = 0; i < world->plan->n_actors && !operates; i++) {
        if (world->actors[i].plan->client == client->index) actor_begin(&world->actors[i]);
    }
    if (!operates) crowd_begin(client);
    if (!operates) election_begin(client);
    /* The new settings came while the machine stalled in there: it was made with the old ones. */
    if (client->renewed != membership_is_renewed(world, client)) (void)user_close(client, false);
}

static void forget_handles(struct user_client *client)
{
    struct world *world = client->world;

    for (uint32_t i = 0; i < world->plan->n_actors; i++) {
        if (world->actors[i].plan->client == client->index) actor_reset(&world->actors[i]);
    }
    crowd_forget(client);
    if (client->index < world->plan->n_clients) election_forget(client);
}

static void check_all_kept(const struct user_client *client)
{
    const struct world *world = client->world;

    for (uint32_t i = 0; i < world->n_promises && client->pending > 0; i++) {
        const struct promise *promise = &world->promises[i];

        if (promise->client != client->index || !promise->pending) continue;
        judge_violated(client->world, I6_TOLD_ONCE,
                       "client %u is closed, and the callback of %s of actor %d never came", client->index,
                       trace_promise((enum promise_kind)promise->kind),
                       promise->actor != NULL ? (int)promise->actor->index : -1);
    }
}

static void on_closed(void *arg)
{
    struct promise *promise = arg;
    struct world *world = promise->world;
    struct user_client *client = &world->clients[promise->client];
    struct process *process = process_of(world, client->index);
    uint32_t others = 0;

    if (!user_kept(promise)) return;
    TRACE(world, "client %u > is closed", client->index);
    judge_ended(promise, QUORLOCK_OK);
    check_all_kept(client);
    client->state = CLIENT_NONE;
    client->client = NULL;
    for (uint32_t i = 0; i <= world->plan->n_clients; i++) {
        others += world->clients[i].machine == client->machine && world->clients[i].state != CLIENT_NONE;
    }
    if (others == 0 && machine_blocks(process->machine) != 0) {
        judge_violated(world, LEAK, "client %u is closed, and %zu blocks of memory are left", client->index,
                       machine_blocks(process->machine));
    }
    if (others == 0 && machine_descriptors(process->machine) != 0) {
        judge_violated(world, LEAK, "client %u is closed, and %u descriptors are left", client->index,
                       machine_descriptors(process->machine));
    }
    if (client->index == world->plan->n_clients || world->phase >= PHASE_STOPPED) return;
    queue_set(&world->queue, &client->moment,
              world_now(world) + rng_below(&client->rng, world->plan->lease_ms * MS / 2));
}

/* check_closing - check that handles of a closing client refuse all calls with CLOSED. */
static void check_closing(struct user_client *client, quorlock_lock *const *locks)
{
    for (uint32_t i = 0; i < client->world->plan->n_actors; i++) {
        if (locks[i] == NULL || quorlock_lock_cancel(locks[i]) == QUORLOCK_ERR_CLOSED) continue;
        judge_violated(client->world, I6_TOLD_ONCE, "actor %u can cancel although its client is closing", i);
    }
}

/* check_gauges - check that no more locks are counted as degraded than as held. This shows locks that are counted
 * twice, or for ever. */
static void check_gauges(struct user_client *client)
{
    struct quorlock_statistics statistics = {.size = sizeof(statistics)};

    if (quorlock_client_statistics(client->client, &statistics) != QUORLOCK_OK) return;
    if (statistics.degraded <= statistics.held) return;
    judge_violated(client->world, LEAK, "client %u counts %" PRIu64 " degraded of %" PRIu64 " held locks",
                   client->index, statistics.degraded, statistics.held);
}

bool user_close(struct user_client *client, bool inside)
{
    struct world *world = client->world;
    uint64_t bound_us = client->crowd.n > 0 ? NEVER : 3 * MS * user_timeout_ms(world, client->index);
    quorlock_lock *locks[PLAN_ACTORS_MAX] = {NULL};
    struct promise *promise;

    if (client->state != CLIENT_OPEN) return false;
    for (uint32_t i = 0; i < world->plan->n_actors; i++) {
        if (world->actors[i].plan->client == client->index) locks[i] = world->actors[i].lock;
    }
    promise = user_promise(world, client->index, NULL, PROMISE_CLOSE, bound_us);
    if (promise == NULL) return false;
    TRACE(world, "client %u < closes", client->index);
    check_gauges(client);
    world->totals->of[TOTAL_CLOSES]++;
    world->totals->of[TOTAL_CLOSED_INSIDE] += inside;
    forget_handles(client);
    client->state = CLIENT_CLOSING;
    client->closing = promise;
    if (quorlock_client_close(client->client, on_closed, promise) != QUORLOCK_OK) {
        judge_violated(world, I6_TOLD_ONCE, "client %u cannot be closed", client->index);
    } else if (quorlock_client_close(client->client, on_closed, promise) != QUORLOCK_ERR_CLOSED) {
        judge_violated(world, I6_TOLD_ONCE, "client %u can be closed twice", client->index);
    }
    if (process_of(world, client->index)->alive) check_closing(client, locks);
    return true;
}

void user_forget(struct user_client *client)
{
    struct world *world = client->world;

    for (uint32_t i = 0; i < world->n_promises && client->pending > 0; i++) {
        struct promise *promise = &world->promises[i];

        if (promise->client != client->index || !promise->pending) continue;
        promise->pending = false;
        client->pending--;
    }
    forget_handles(client);
    queue_set(&world->queue, &client->moment, NEVER);
    client->state = CLIENT_NONE;
    client->client = NULL;
}

/* ---- locks ---- */

int user_new(struct actor *actor)
{
    struct world *world = actor->world;
    struct quorlock_lock_options options = actor->plan->options;
    const char *keys[PLAN_KEYS_MAX];
    char owner[16];
    size_t n = 0;
    int status;

    /* The order makes no difference. */
    for (uint32_t i = 0; i < world->plan->n_keys; i++) {
        uint32_t key = (i + actor->index) % world->plan->n_keys;

        if ((actor->plan->keys >> key & 1u) == 0) continue;
        options.shared |= (uint64_t)(actor->plan->shared >> key & 1u) << n;
        keys[n++] = world->keys[key];
    }
    if (actor->plan->shared == actor->plan->keys && actor->index % 2 == 0) options.shared = QUORLOCK_SHARED_ALL;
    (void)snprintf(owner, sizeof(owner), "owner %u", actor->plan->owner);
    if (actor->plan->owner != 0) options.owner = owner;
    status = quorlock_lock_new(&actor->lock, actor_client(actor)->client, keys, n, &options);
    if (status == QUORLOCK_OK) {
        client_show_lock(actor->lock, &actor->shown);
        actor->handle++;
        actor->lease_ms = options.lease_ms;
    } else if (status == QUORLOCK_ERR_NOMEM) {
        world->totals->of[TOTAL_CALLS_NOMEM]++;
    } else {
        judge_violated(world, UNEXPLAINED, "actor %u cannot make its lock: %s", actor->index,
                       quorlock_client_error(actor_client(actor)->client));
    }
    return status;
}

/* is_ours - return whether a callback is one that the actor still expects. Callbacks of a freed handle run, too: with
 * CANCELED, or with a result that had been decided before. */
static bool is_ours(const struct promise *promise, int status)
{
    const struct actor *actor = promise->actor;

    if (actor->lock != NULL && promise->handle == actor->handle) return true;
    TRACE(promise->world, "actor %u  > %s of a handle that is gone: %s", actor->index,
          trace_promise((enum promise_kind)promise->kind), quorlock_status_name(status));
    promise->world->totals->of[TOTAL_CLOSED] += status == QUORLOCK_ERR_CLOSED;
    if (promise->kind == PROMISE_ACQUIRE && status == QUORLOCK_OK) {
        judge_violated(promise->world, I6_TOLD_ONCE, "actor %u is granted a lock whose handle it has freed",
                       actor->index);
    }
    return false;
}

static void on_acquired(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct promise *promise = arg;
    struct actor *actor = promise->actor;

    (void)lock;
    if (!user_kept(promise)) return;
    world_mix(promise->world, (uint64_t)result->status);
    if (!is_ours(promise, result->status)) return;
    actor->acquiring = NULL;
    promise->world->rounds += result->rounds;
    TRACE(promise->world, "actor %u  > %s: %s", actor->index, quorlock_status_name(result->status), result->text);
    judge_ended(promise, result->status);
    if (result->status == QUORLOCK_ERR_HELD) rare_refused(actor);
    if (result->status == QUORLOCK_OK) judge_granted(actor, result);
    if (result->status != QUORLOCK_OK) passing_refused(actor, result->status);
    if (process_at(actor_process(actor), AT_CALLBACK)) actor_acquired(actor, result);
}

static void on_lost(quorlock_lock *lock, const struct quorlock_loss *loss, void *arg)
{
    struct actor *actor = arg;
    struct world *world = actor->world;

    if (!actor_process(actor)->alive || world->over) return;
    world_mix(world, (uint64_t)loss->reason);
    TRACE(world, "actor %u  > LOST: %s, %u ms remain", actor->index, loss->text, loss->remaining_ms);
    if (lock != actor->lock) {
        judge_violated(world, I6_TOLD_ONCE, "actor %u is told of the loss of a handle that it has freed", actor->index);
        return;
    }
    judge_lost(actor, loss);
    if (process_at(actor_process(actor), AT_CALLBACK)) actor_lost(actor, loss);
}

int user_acquire(struct actor *actor, const char *adopts)
{
    struct world *world = actor->world;
    uint32_t wait_ms = adopts != NULL ? QUORLOCK_TRY_ONCE : actor->plan->options.wait_ms;
    uint64_t timeout_us = user_node_timeout_ms(world, actor) * MS;
    uint64_t connect_us = user_connect_ms(world, actor->plan->client) * MS;
    uint64_t bound_us =
        wait_ms == QUORLOCK_TRY_ONCE ? 2 * connect_us + 4 * timeout_us : wait_ms * MS / 100 * 104 + timeout_us / 4;
    struct promise *promise;
    bool nested = actor->holds > 0 && !actor->lost;
    int status;

    if (wait_ms == 0 || actor_client(actor)->crowd.n > 0) bound_us = NEVER;
    promise = user_promise(world, actor->plan->client, actor, PROMISE_ACQUIRE, bound_us);
    if (promise == NULL) return QUORLOCK_ERR_NOMEM;
    if (actor->holds == 0) {
        actor->no_lost = world->plan->bias == BIAS_NONE && rng_one_in(&actor->rng, 16);
        quorlock_lock_set_on_lost(actor->lock, actor->no_lost ? NULL : on_lost, actor);
    }
    status = adopts != NULL ? quorlock_lock_adopt(actor->lock, adopts, on_acquired, promise)
                            : quorlock_lock_acquire(actor->lock, on_acquired, promise);
    TRACE(world, "actor %u  < %s%s: %s", actor->index, adopts != NULL ? "adopts" : "acquires",
          nested ? " once more" : "", quorlock_status_name(status));
    if (status != QUORLOCK_OK) {
        passing_refused(actor, status);
        user_drop(promise);
        world->totals->of[TOTAL_CALLS_NOMEM] += status == QUORLOCK_ERR_NOMEM;
    }
    /* A new acquire gives up a lost hold, also if it fails. */
    if (actor->lost && actor->plan->owner == 0) {
        judge_given_back(actor, "released");
        actor->holds = 0;
        actor->state = ACTOR_IDLE;
    }
    if (status != QUORLOCK_OK) return status;
    if (actor->releasing > 0) world->totals->of[TOTAL_REACQUIRED]++;
    actor->acquiring = promise;
    actor->acquire_since_us = world_now(world);
    return 0;
}

static void on_extended(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct promise *promise = arg;
    struct actor *actor = promise->actor;

    (void)lock;
    if (!user_kept(promise) || !is_ours(promise, result->status)) return;
    actor->extending = NULL;
    TRACE(promise->world, "actor %u  > extended: %s", actor->index, quorlock_status_name(result->status));
    judge_ended(promise, result->status);
    if (process_at(actor_process(actor), AT_CALLBACK)) actor_extended(actor, result);
}

int user_extend(struct actor *actor, uint32_t lease_ms)
{
    struct world *world = actor->world;
    struct promise *promise =
        user_promise(world, actor->plan->client, actor, PROMISE_EXTEND, 3 * MS * user_node_timeout_ms(world, actor));
    int status;

    if (promise == NULL) return QUORLOCK_ERR_NOMEM;
    status = quorlock_lock_extend(actor->lock, lease_ms, on_extended, promise);
    TRACE(world, "actor %u  < extends to %u ms: %s", actor->index, lease_ms, quorlock_status_name(status));
    if (status != QUORLOCK_OK) {
        user_drop(promise);
    } else {
        actor->extending = promise;
        if (lease_ms > actor->lease_ms) actor->lease_ms = lease_ms;
    }
    return status;
}

static void on_released(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct promise *promise = arg;
    struct actor *actor = promise->actor;

    (void)lock;
    if (!user_kept(promise) || !is_ours(promise, result->status)) return;
    actor->releasing--;
    TRACE(promise->world, "actor %u  > released: %s", actor->index, result->text);
    judge_ended(promise, result->status);
    keep_answered(actor, result);
    promise->world->totals->of[result->status == QUORLOCK_ERR_LOST ? TOTAL_RELEASED_EXPIRED : TOTAL_RELEASED]++;
    if (process_at(actor_process(actor), AT_CALLBACK)) actor_released(actor, result);
}

int user_release(struct actor *actor, bool quietly)
{
    struct world *world = actor->world;
    uint64_t bound_us = user_node_timeout_ms(world, actor) * MS / 4 * 6;
    struct window before = actor->window;
    struct promise *promise = NULL;
    int status;

    if (actor_client(actor)->crowd.n > 0) bound_us = NEVER;
    /* The hold ends with the call: what is sent may arrive before it returns. */
    if (actor->holds == 1) judge_given_back(actor, "released");
    if (!quietly) promise = user_promise(world, actor->plan->client, actor, PROMISE_RELEASE, bound_us);
    status = quorlock_lock_release(actor->lock, promise != NULL ? on_released : NULL, promise);
    TRACE(world, "actor %u  < releases: %s", actor->index, quorlock_status_name(status));
    if (status != QUORLOCK_OK) {
        if (promise != NULL) user_drop(promise);
        actor->window = before;
        return status;
    }
    if (promise != NULL) actor->releasing++;
    if (actor->holds > 0) actor->holds--;
    return 0;
}

int user_detach(struct actor *actor, char ret_token[128])
{
    struct window before = actor->window;
    const char *token = NULL;
    uint64_t fence = 0;
    uint32_t valid_ms = 0;
    int status;

    judge_given_back(actor, NULL);
    status = quorlock_lock_detach(actor->lock, &token, &fence, &valid_ms);
    TRACE(actor->world, "actor %u  < detaches: %s", actor->index, quorlock_status_name(status));
    if (status != QUORLOCK_OK) {
        actor->window = before;
        return status;
    }
    (void)snprintf(ret_token, 128, "%s", token);
    actor->holds = 0;
    if (before.open) actions_holder(actor, "detached");
    if (fence != before.fence || valid_ms == 0)
        judge_violated(actor->world, I6_TOLD_ONCE, "actor %u detaches a lock that is not as it was", actor->index);
    return 0;
}

int user_cancel(struct actor *actor)
{
    int status = quorlock_lock_cancel(actor->lock);

    TRACE(actor->world, "actor %u  < cancels: %s", actor->index, quorlock_status_name(status));
    return status;
}

void user_free(struct actor *actor)
{
    struct world *world = actor->world;
    quorlock_lock *lock = actor->lock;

    if (lock == NULL) return;
    TRACE(world, "actor %u  < frees its handle", actor->index);
    world->totals->of[TOTAL_FREED]++;
    world->totals->of[TOTAL_FREED_BUSY] += actor->acquiring != NULL || actor->extending != NULL || actor->releasing > 0;
    actor_reset(actor);
    quorlock_lock_free(lock);
}

/* ---- reports ---- */

/* Slots by number, then readers, then those that wait, each with its name. */
static void check_holders(struct world *world, size_t index, const struct quorlock_holder *const *holders,
                          size_t n_holders)
{
    uint64_t before = 0;

    for (size_t k = 0; k < n_holders; k++) {
        const struct quorlock_holder *holder = holders[k];
        uint64_t place = (uint64_t)holder->kind << 32 | holder->slot;
        bool fits = holder->kind == QUORLOCK_HOLDER_SLOT ? holder->slot < QUORLOCK_PERMITS_MAX
                                                         : holder->slot == QUORLOCK_SLOT_NONE;

        if (place < before || holder->kind < QUORLOCK_HOLDER_SLOT || holder->kind > QUORLOCK_HOLDER_WAITS ||
            holder->holder == NULL || !fits) {
            judge_violated(world, UNEXPLAINED, "holder %zu of node %zu is reported as kind %d, slot %u", k, index,
                           holder->kind, holder->slot);
            return;
        }
        TRACE(world, "           node %zu: %s, kind %d, slot %u, for %lld ms", index, holder->holder, holder->kind,
              holder->slot, (long long)holder->ttl_ms);
        world->totals->of[TOTAL_HOLDERS]++;
        before = place;
    }
}

/* reported - note a report; false: nobody waits for it any more. */
static bool reported(struct promise *promise, int status)
{
    struct world *world = promise->world;

    if (!user_kept(promise)) return false;
    TRACE(world, "client %u > %s: %s", promise->client, trace_promise((enum promise_kind)promise->kind),
          quorlock_status_name(status));
    world_mix(world, (uint64_t)status);
    return true;
}

static void on_inspected(int status, const struct quorlock_inspect_report *report, void *arg)
{
    struct promise *promise = arg;
    struct world *world = promise->world;

    if (!reported(promise, status)) return;
    for (size_t i = 0; i < report->n_nodes; i++)
        check_holders(world, i, report->nodes[i]->holders, report->nodes[i]->n_holders);
    judge_ended(promise, status);
    world->totals->of[TOTAL_INSPECTED] += status == QUORLOCK_OK;
}

static void on_broken(int status, const struct quorlock_break_report *report, void *arg)
{
    struct promise *promise = arg;
    struct world *world = promise->world;

    if (!reported(promise, status)) return;
    for (size_t i = 0; i < report->n_nodes; i++)
        check_holders(world, i, report->nodes[i]->holders, report->nodes[i]->n_holders);
    judge_ended(promise, status);
    world->totals->of[TOTAL_BROKEN] += status == QUORLOCK_OK;
}

static void on_bootstrapped(int status, const struct quorlock_bootstrap_report *report, void *arg)
{
    struct promise *promise = arg;
    struct world *world = promise->world;

    (void)report;
    if (!reported(promise, status)) return;
    judge_ended(promise, status);
    if (status != QUORLOCK_OK) return;
    world->bootstraps = world->bootstraps_after_heal;
    world->bootstraps_after_heal = false;
    membership_changed(world);
    world->totals->of[promise->flood == 1 ? TOTAL_RECONFIGURED : TOTAL_BOOTSTRAPPED]++;
}

static void on_examination(int status, const struct quorlock_doctor_report *examination, void *arg)
{
    struct promise *promise = arg;
    struct world *world = promise->world;

    if (!user_kept(promise)) return;
    TRACE(world, "client %u > examined: %s, %zu findings", promise->client, quorlock_status_name(status),
          examination != NULL ? examination->n_findings : 0);
    for (size_t i = 0; examination != NULL && i < examination->n_findings; i++) {
        TRACE(world, "client %u   %s %s: %s", promise->client, examination->findings[i]->code,
              examination->findings[i]->node != NULL ? examination->findings[i]->node : "",
              examination->findings[i]->text);
    }
    judge_ended(promise, status);
    world->totals->of[TOTAL_EXAMINED] += status == QUORLOCK_OK;
}

static int ask(struct user_client *client, enum promise_kind kind, uint32_t key, uint64_t bound_us, bool reconfigure)
{
    struct world *world = client->world;
    const struct quorlock_bootstrap_options options = {
        .size = sizeof(options), .reconfigure = reconfigure, .despite_clients = true};
    struct promise *promise;
    int status = QUORLOCK_ERR_CLOSED;

    if (client->state == CLIENT_NONE) return status;
    promise = user_promise(world, client->index, NULL, kind, bound_us);
    if (promise == NULL) return QUORLOCK_ERR_NOMEM;
    promise->flood = reconfigure;
    switch (kind) {
    case PROMISE_INSPECT:
        status = quorlock_client_inspect(client->client, world->keys[key], on_inspected, promise);
        break;
    case PROMISE_BREAK:
        status = quorlock_client_break(client->client, world->keys[key], NULL, on_broken, promise);
        break;
    case PROMISE_EXAMINE: status = quorlock_client_doctor(client->client, on_examination, promise); break;
    case PROMISE_BOOTSTRAP:
        status = quorlock_client_bootstrap(client->client, &options, on_bootstrapped, promise);
        break;
    default: break;
    }
    TRACE(world, "client %u < %s: %s", client->index, trace_promise(kind), quorlock_status_name(status));
    if (status != QUORLOCK_OK) user_drop(promise);
    return status;
}

/* answer_us - return how long connecting and that many answers may take. */
static uint64_t answer_us(const struct user_client *client, uint32_t questions)
{
    const struct world *world = client->world;

    return MS * (user_connect_ms(world, client->index) + questions * user_timeout_ms(world, client->index));
}

int user_inspect(struct user_client *client, uint32_t key)
{
    return ask(client, PROMISE_INSPECT, key, answer_us(client, 2), false);
}

int user_break(struct user_client *client, uint32_t key)
{
    return ask(client, PROMISE_BREAK, key, answer_us(client, 2), false);
}

int user_examine(struct user_client *client)
{
    return ask(client, PROMISE_EXAMINE, 0, answer_us(client, 3), false);
}

int user_bootstrap(struct user_client *client, bool reconfigure)
{
    uint64_t bound_us = 10 * answer_us(client, 2) + UINT64_C(3) * client->world->plan->max_lease_ms * MS;

    return ask(client, PROMISE_BOOTSTRAP, 0, bound_us, reconfigure);
}
