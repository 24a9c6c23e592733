/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.c - builds a world from a plan, and leads it through its phases
 *
 *   FAULTS   faults and contention
 *   HEALED   each key that is asked for must be granted
 *   STOPPED  all is released
 *   QUIET    after it no key of a living client may be left, except where a request was executed late
 *   LATE     after it none may be left there either
 *   CLOSING  all memory must come back
 *   SILENT   after it no key may be left at all
 */
#include "world.h"
#include "base/protocol.h"

#include <stdlib.h>
#include <string.h>

#include "actor.h"
#include "crowd.h"
#include "election.h"
#include "executed.h"
#include "handover.h"
#include "judge.h"
#include "membership.h"
#include "operator.h"
#include "process.h"
#include "rest.h"
#include "trace.h"
#include "user.h"

#define LIVENESS_US UINT64_C(10000000) /* beyond the longest lease: polls, reconnecting, stalled connections */
#define TURN_US     UINT64_C(1500000)  /* where each lock must have a turn: a poll, and a hold */
#define ALL_LOST    1000u              /* in a thousand notices */
#define CROWD_US    UINT64_C(200000)   /* the same in a crowd, where nothing fails: it takes some 30 ms */
#define FLOOD_US    UINT64_C(60000000)
#define QUIET_US    UINT64_C(3000000) /* to release what failed, beyond the time to connect */
#define BOOTED_US   300000u           /* the others start when the operator has made the guards */
#define MOMENTS_MAX 20000000u         /* a world that never comes to its end */

uint64_t world_hash(const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    size_t front = sizeof(HOLDER_KEPT) - 1;
    uint64_t hash;
    uint64_t word;

    /* A kept key is still its owner's. */
    if (length > front && memcmp(at, HOLDER_KEPT, front) == 0) {
        at += front;
        length -= front;
    }
    hash = length;
    for (; length >= sizeof(word); at += sizeof(word), length -= sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        hash = rng_mix(hash, word);
    }
    for (; length > 0; length--) hash = rng_mix(hash, *at++);
    return hash == 0 ? 1 : hash;
}

void world_mix(struct world *world, uint64_t what)
{
    world->hash = rng_mix(world->hash ^ world_now(world), what);
}

const char *world_full_key(const struct world *world, uint32_t key)
{
    return world->full_keys[key];
}

const char *world_bare(const struct world *world, const char *name, size_t length, size_t *ret_length)
{
    size_t prefix = strlen(world->prefix);

    if (length < prefix || memcmp(name, world->prefix, prefix) != 0) return NULL;
    *ret_length = length - prefix;
    return name + prefix;
}

uint32_t world_key_index(const struct world *world, const char *key, size_t length)
{
    for (uint32_t i = 0; i < world->plan->n_keys; i++) {
        if (strlen(world->full_keys[i]) == length && memcmp(world->full_keys[i], key, length) == 0) return i;
    }
    return NOBODY;
}

/* ---- memory that serves many runs ---- */

static void *room(size_t n, size_t size)
{
    void *memory = calloc(n, size);

    if (memory != NULL) return memory;
    (void)fputs("sim: out of memory\n", stderr);
    exit(2);
}

void world_open(struct world *world)
{
    memset(world, 0, sizeof(*world));
    world->net = net_new(&world->queue);
    for (uint32_t i = 0; i < PLAN_SERVERS_MAX; i++) world->servers[i] = server_new(&world->queue, world->net);
    for (uint32_t i = 0; i < MACHINES_ALL; i++) world->processes[i].machine = machine_new(&world->queue, world->net);
    world->promises = room(PROMISES_MAX, sizeof(*world->promises));
    world->grants = room(GRANTS_MAX, sizeof(*world->grants));
    world->shadows = room(SHADOWS_MAX, sizeof(*world->shadows));
    world->judged = UINT32_MAX;
    world->register_checks = true;
}

void world_close(struct world *world)
{
    for (uint32_t i = 0; i < MACHINES_ALL; i++) machine_free(world->processes[i].machine);
    for (uint32_t i = 0; i < PLAN_SERVERS_MAX; i++) server_free(world->servers[i]);
    net_free(world->net);
    queue_free(&world->queue);
    free(world->promises);
    free(world->grants);
    free(world->shadows);
}

/* ---- building ---- */

static void name_all(struct world *world)
{
    const struct plan *plan = world->plan;
    bool named = !plan_has(plan, FEATURE_BOOTSTRAP) || plan->clients[0].twins;

    (void)snprintf(world->prefix, sizeof(world->prefix), "%s", plan_has(plan, FEATURE_PREFIX) ? "app:" : "");
    (void)snprintf(world->set_name, sizeof(world->set_name), "%s", named ? "world" : "");
    for (uint32_t i = 0; i < PLAN_KEYS_MAX; i++) {
        (void)snprintf(world->keys[i], sizeof(world->keys[i]), "k%u", i);
        (void)snprintf(world->full_keys[i], sizeof(world->full_keys[i]), "%sk%u", world->prefix, i);
    }
}

static void build_servers(struct world *world)
{
    const struct plan *plan = world->plan;

    for (uint32_t i = 0; i < plan->n_servers; i++) {
        const struct skew wall = {.shown_us = plan->servers[i].wall_us, .rate_ppm = plan->servers[i].rate_ppm};
        struct site *site = &world->sites[i];

        if (site->snapshot != NULL) model_forget(site->snapshot);
        memset(site, 0, sizeof(*site));
        site->world = world;
        site->index = i;
        server_boot(world->servers[i], i, rng_mix(plan->seed, 300 + i), &wall, executed_events(world, i));
        server_service_us(world->servers[i], plan->service_us);
    }
}

static void build_users(struct world *world)
{
    const struct plan *plan = world->plan;

    for (uint32_t i = 0; i <= plan->n_clients; i++) {
        struct user_client *client = &world->clients[i];

        memset(client, 0, sizeof(*client));
        client->world = world;
        client->index = i;
        client->machine = i == plan->n_clients ? plan->n_machines : plan->clients[i].machine;
        rng_seed(&client->rng, plan->seed, 2000 + i);
    }
    for (uint32_t i = 0; i < plan->n_actors; i++) {
        struct actor *actor = &world->actors[i];

        memset(actor, 0, sizeof(*actor));
        actor->world = world;
        actor->index = i;
        actor->plan = &plan->actors[i];
        actor->grant = actor->kept = NOBODY;
        rng_seed(&actor->rng, plan->seed, 3000 + i);
    }
    election_build(world);
    for (uint32_t i = 0; i < PLAN_FAULTS_MAX; i++) world->faults[i] = (struct fault_run){.world = world, .index = i};
    for (uint32_t i = 0; i < WRITES_MAX; i++) world->writes[i].moment = (struct moment){0};
}

static void look(struct world *);

static void on_look(void *arg)
{
    look(arg);
}

static void boot_all(void *arg)
{
    struct world *world = arg;

    for (uint32_t i = 0; i < world->plan->n_machines; i++) process_boot(world, i);
}

static void build_machines(struct world *world)
{
    const struct plan *plan = world->plan;
    bool waits = plan_has(plan, FEATURE_BOOTSTRAP);

    for (uint32_t i = 0; i <= plan->n_machines; i++) {
        struct machine *machine = world->processes[i].machine;

        world->processes[i] = (struct process){.world = world, .index = i, .machine = machine};
    }
    if (operator_is_needed(world)) process_boot(world, plan->n_machines);
    world->boot_moment = (struct moment){.happen = boot_all, .arg = world};
    queue_set(&world->queue, &world->boot_moment, waits ? BOOTED_US : 0);
}

static void build(struct world *world, const struct plan *plan)
{
    queue_clear(&world->queue);
    world->plan = plan;
    world->phase = PHASE_FAULTS;
    world->n_ghosts = world->n_shadows = world->n_grants = world->n_promises = world->n_given_up = 0;
    world->n_kept = 0;
    world->n_passed = 0;
    world->healed_us = 0;
    world->runs = world->commands = world->rounds = world->term = 0;
    world->reconfigures = 0;
    world->bootstraps_after_heal = false;
    world->over = world->judging = world->bootstraps = world->bootstrap_again = world->rewrites = world->changed =
        false;
    world->hash = plan->seed;
    world->peer = (struct peer){0};
    world->handover = (struct handover){0};
    memset(world->freed, 0, sizeof(world->freed));
    memset(world->registers, 0, sizeof(world->registers));
    memset(world->grants_healed, 0, sizeof(world->grants_healed));
    memset(&world->violation, 0, sizeof(world->violation));
    net_reset(world->net, plan->seed, plan->n_machines + 1, plan->n_servers);
    name_all(world);
    build_servers(world);
    build_users(world);
    build_machines(world);
    operator_begin(world);
    world->phase_moment = (struct moment){.happen = on_look, .arg = world};
    queue_set(&world->queue, &world->phase_moment, plan->active_us);
}

/* ---- phases ---- */

static void enter(struct world *world, enum world_phase phase, uint64_t for_us)
{
    static const char *const texts[] = {
        "faults", "all faults have ended", "all locks are released", "quiet", "late", "closing", "silence"};

    TRACE(world, "---- %s", texts[phase]);
    world->phase = phase;
    world->phase_until_us = world_now(world) + for_us;
    for (uint32_t i = 0; i < world->plan->n_actors && phase <= PHASE_STOPPED; i++) actor_hurry(&world->actors[i]);
    if (phase <= PHASE_STOPPED) election_hurry(world);
}

/* Must it be granted, or its keys? */
static bool counts(const struct world *world, const struct actor *actor)
{
    const struct plan_actor *plan = actor->plan;

    if (plan->left_out || world->plan->clients[plan->client].twins) return false;
    /* While others hold what they believe to be one of more permits, or fewer, it is refused. */
    for (uint32_t key = 0; key < world->plan->n_keys; key++) {
        if ((plan->keys >> key & 1u) != 0 && world->plan->other_permits[key] != 0) return false;
    }
    return plan->options.wait_ms == 0 ||
           (plan->options.wait_ms >= 4 * PLAN_WAIT_MIN_MS && plan->options.wait_ms != QUORLOCK_TRY_ONCE);
}

static bool was_granted(const struct world *world, const struct plan_actor *plan, uint32_t key)
{
    return world->grants_healed[key][plan->shared >> key & 1u] > 0;
}

/*
 * Among writers there is no order: others that had a key of a list alone may have it again before all of the list's
 * keys are free at once. A notice tells the list of each such moment; where none ever comes it asks once a second, and
 * may miss all of them.
 */
static bool may_miss_alone(const struct world *world, const struct plan_actor *plan)
{
    for (uint32_t key = 0; key < world->plan->n_keys; key++) {
        bool alone = (plan->keys >> key & 1u) != 0 && (plan->shared >> key & 1u) == 0;

        if (alone && was_granted(world, plan, key)) return true;
    }
    return false;
}

/* One owner asks for its keys in one way at a time: the others wait for that. */
static bool may_miss(const struct world *world, const struct plan_actor *plan)
{
    if (world->plan->lost_permille != ALL_LOST) return false;
    for (uint32_t i = 0; i < world->plan->n_actors; i++) {
        const struct plan_actor *other = world->actors[i].plan;
        bool same_owner = plan->owner != 0 && other->owner == plan->owner && other->client == plan->client;

        if ((other == plan || same_owner) && may_miss_alone(world, other)) return true;
    }
    return false;
}

/*
 * Others that keep a key after its release leave it free for a moment at a time, and tell nobody: whoever asks first
 * has it. Who waits for less than they keep it may miss each moment. So may who waits without end, while they take the
 * key.
 */
static bool may_miss_kept(const struct world *world, const struct plan_actor *plan)
{
    for (uint32_t i = 0; i < world->plan->n_actors; i++) {
        const struct plan_actor *other = world->actors[i].plan;

        if (other == plan || (other->keys & plan->keys) == 0 || other->options.keep_ms == 0) continue;
        if (other->options.keep_ms > plan->options.wait_ms) return true;
        for (uint32_t key = 0; key < world->plan->n_keys; key++) {
            if ((other->keys & plan->keys & 1u << key) != 0 && world->grants_healed[key][0] > 0) return true;
        }
    }
    return false;
}

/* Each of its keys was granted, in its mode; or it was, where each lock is to have a turn. */
static bool is_satisfied(const struct world *world, const struct actor *actor)
{
    const struct plan_actor *plan = actor->plan;

    if (may_miss_kept(world, plan)) return true;
    for (uint32_t key = 0; key < world->plan->n_keys; key++) {
        if ((plan->keys >> key & 1u) != 0 && !was_granted(world, plan, key) && !may_miss(world, plan)) return false;
    }
    return !world->plan->turns || plan->options.wait_ms != 0 || actor->had_turn;
}

static bool all_granted(struct world *world)
{
    for (uint32_t i = 0; i < world->plan->n_actors; i++) {
        const struct actor *actor = &world->actors[i];

        if (counts(world, actor) && !is_satisfied(world, actor)) return false;
    }
    for (uint32_t i = 0; i < world->plan->n_clients; i++) {
        if (!crowd_is_done(&world->clients[i])) return false;
    }
    return true;
}

/* No lock is granted any more, or one was never granted. */
static void judge_starved(struct world *world)
{
    unsigned long long since_us = world_now(world) - world->plan->active_us;

    for (uint32_t i = 0; i < world->plan->n_actors; i++) {
        const struct actor *actor = &world->actors[i];

        if (!counts(world, actor) || is_satisfied(world, actor)) continue;
        judge_violated(world, I9_LIVENESS, "actor %u was not granted its lock for %llu us after the last fault", i,
                       since_us);
    }
    if (!election_is_settled(world))
        judge_violated(world, I9_LIVENESS, "no leader was elected and observed for %llu us after the last fault",
                       since_us);
    for (uint32_t i = 0; i < world->plan->n_clients; i++) {
        if (crowd_is_done(&world->clients[i])) continue;
        judge_violated(world, I10_FORGOTTEN,
                       "locks of client %u's crowd were not granted for %llu us after the last "
                       "fault",
                       i, since_us);
    }
    judge_violated(world, I10_FORGOTTEN, "an operator did not come to an end for %llu us after the last fault",
                   since_us);
}

static bool is_idle(const struct actor *actor)
{
    return actor->holds == 0 && actor->acquiring == NULL && actor->extending == NULL && actor->releasing == 0;
}

static bool all_idle(struct world *world)
{
    for (uint32_t i = 0; i < world->plan->n_actors; i++) {
        if (!is_idle(&world->actors[i])) return false;
    }
    for (uint32_t i = 0; i <= world->plan->n_clients; i++) {
        const struct user_client *client = &world->clients[i];

        if (client->pending > 0 || client->state == CLIENT_CLOSING || !crowd_is_done(client)) return false;
    }
    return true;
}

static void close_now(void *arg)
{
    (void)user_close(arg, false);
}

static void close_all(struct world *world)
{
    for (uint32_t i = 0; i <= world->plan->n_clients; i++) {
        struct user_client *client = &world->clients[i];

        if (client->state == CLIENT_OPEN) machine_call(process_of(world, i)->machine, close_now, client);
    }
}

static bool all_closed(const struct world *world)
{
    for (uint32_t i = 0; i <= world->plan->n_clients; i++) {
        if (world->clients[i].state != CLIENT_NONE) return false;
    }
    return true;
}

static void look_healed(struct world *world)
{
    uint64_t lease_us = world->plan->max_lease_ms * MS / 100 * 104;

    if (all_granted(world) && election_is_settled(world) && !world->bootstraps && membership_is_settled(world)) {
        handover_end(world);
        enter(world, PHASE_STOPPED, 2 * lease_us + world->plan->late_us + LIVENESS_US);
    } else if (world_now(world) >= world->phase_until_us) {
        judge_starved(world);
        world->over = true;
    }
}

/* A node that answers again may be met by a connection that is given up after three times the node's time, and three
 * seconds at least; by a connect that hangs for its own time; and then by a pause. */
static uint64_t quiet_us(const struct world *world)
{
    uint64_t longest_ms = 0;

    for (uint32_t i = 0; i < world->plan->n_clients; i++) {
        uint64_t timeout_ms = user_timeout_ms(world, i), given_up_ms = 3 * timeout_ms > 3000 ? 3 * timeout_ms : 3000;
        uint64_t connects_ms = given_up_ms + user_connect_ms(world, i) + world->plan->clients[i].reconnect_max_ms;

        if (connects_ms > longest_ms) longest_ms = connects_ms;
    }
    return QUIET_US + longest_ms * MS;
}

static void look_rest(struct world *world)
{
    const struct plan *plan = world->plan;
    uint64_t lease_us = plan->max_lease_ms * MS / 100 * 104;

    if (world->phase == PHASE_STOPPED && all_idle(world)) {
        enter(world, PHASE_QUIET, quiet_us(world));
    } else if (world->phase == PHASE_CLOSING && all_closed(world)) {
        /* The dead have no rest: their last bytes may still be on slow ways. */
        enter(world, PHASE_SILENT, lease_us + plan->late_us + 4 * MS * plan->lease_ms);
    } else if (world_now(world) < world->phase_until_us || (world->phase == PHASE_LATE && !rest_is_due(world))) {
        return;
    } else if (world->phase == PHASE_QUIET) {
        rest_quiet(world);
        enter(world, PHASE_LATE, 0);
    } else if (world->phase == PHASE_LATE) {
        rest_late(world);
        enter(world, PHASE_CLOSING, LIVENESS_US);
        close_all(world);
    } else if (world->phase == PHASE_SILENT) {
        rest_silent(world);
        world->over = true;
    } else {
        judge_violated(world, I10_FORGOTTEN, "a %s does not come to rest",
                       world->phase == PHASE_CLOSING ? "client" : "lock");
        world->over = true;
    }
}

/* So long after the last fault each key must be granted, or each lock. */
static uint64_t patience_us(const struct world *world)
{
    const struct plan *plan = world->plan;
    uint64_t lease_us = plan->max_lease_ms * MS / 100 * 104;

    if (plan->bias == BIAS_CROWD) return 2 * lease_us + plan->n_actors * CROWD_US;
    /* Keys and quarantines that were begun late, by clocks that were set back. */
    return 2 * lease_us + 2 * plan->back_us + plan->late_us + plan->lease_ms * MS + LIVENESS_US +
           (plan->turns ? plan->n_actors * TURN_US : 0) + (plan->n_flood > 0 ? FLOOD_US : 0) +
           (plan->elections ? 4 * (uint64_t)plan->lease_ms * MS + LIVENESS_US : 0) +
           2 * lease_us * world->reconfigures + (plan->changes ? 2 * lease_us + 2 * plan->operator_again_us : 0);
}

static void look(struct world *world)
{
    const struct plan *plan = world->plan;
    uint64_t each_us = plan->lease_ms * MS / 8;
    uint64_t next_us;

    judge_look(world);
    if (world->phase == PHASE_FAULTS) {
        operator_heal(world);
        world->healed_us = world_now(world);
        enter(world, PHASE_HEALED, patience_us(world));
    } else if (world->phase == PHASE_HEALED) {
        look_healed(world);
    } else {
        look_rest(world);
    }
    if (world->phase >= PHASE_HEALED && world->phase <= PHASE_LATE) rest_look(world);
    if (each_us > 200 * MS) each_us = 200 * MS;
    next_us = world_now(world) + each_us;
    if ((world->phase == PHASE_QUIET || world->phase == PHASE_SILENT) && next_us < world->phase_until_us)
        next_us = world->phase_until_us;
    queue_set(&world->queue, &world->phase_moment, next_us);
}

/* What connections, users and time may cost. */
static void count_requests(struct world *world)
{
    const struct plan *plan = world->plan;
    uint64_t ms = world_now(world) / MS;
    uint64_t due = plan->n_servers * (40 * (uint64_t)world->n_promises + plan->n_clients * (300 + ms / 10));
    uint64_t part = world->commands * 100 / due;

    if (part > world->totals->most_requests) world->totals->most_requests = part;
    if (part <= 100) return;
    judge_violated(world, REQUEST_STORM, "%llu requests in %llu ms for %u callbacks",
                   (unsigned long long)world->commands, (unsigned long long)ms, world->n_promises);
}

bool world_run(struct world *world, const struct plan *plan, struct totals *totals)
{
    uint32_t judged = world->judged;
    uint64_t n = 0;

    world->totals = totals;
    totals->runs++;
    /* What is not promised is counted, not judged (judge_violated). */
    if (plan->outside) {
        totals->of[TOTAL_OUTSIDE]++;
        world->judged &= ~((1u << I1_EXCLUSION) | (1u << I5_QUORUM_HOLDS) | (1u << I7_FOREIGN_VOTE) |
                           (1u << I12_PERMITS) | (1u << I13_READERS) | (1u << I16_ONE_LEADER) | (1u << I18_KEPT));
        if (plan->counters_void) world->judged &= ~((1u << I2_UNIQUE) | (1u << I4_ORDER));
    }
    /* What is made up has no reason in the world. */
    if (world->buggify) world->judged &= ~((1u << UNEXPLAINED) | (1u << I11_OWN_LOAD));
    for (uint32_t i = 0; i < FEATURES; i++) totals->features[i] += plan_has(plan, (enum plan_feature)i);
    build(world, plan);
    while (!world->over && queue_next(&world->queue, NEVER - 1)) {
        if (++n < MOMENTS_MAX) continue;
        judge_violated(world, I10_FORGOTTEN, "the world never comes to its end");
        break;
    }
    /* What is left of memory is judged, too. */
    world->over = world->violation.invariant != INVARIANT_NONE;
    count_requests(world);
    process_bury_all(world);
    world->over = true;
    for (uint32_t i = 0; i < plan->n_clients; i++) crowd_free(&world->clients[i]);
    for (uint32_t i = 0; i < plan->n_servers; i++) {
        const struct model *model = server_model(world->servers[i]);
        uint64_t told, wrong;

        model_pushes(model, &told, &wrong);
        totals->of[TOTAL_NOTICES_LOST] += model_lost_notices(model);
        totals->of[TOTAL_TOLD] += told;
        totals->of[TOTAL_TOLD_WRONG] += wrong;
    }
    totals->moments += n;
    totals->passed_us += world_now(world);
    world->judged = judged;
    return world->violation.invariant == INVARIANT_NONE;
}
