/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan.h"

#include <string.h>

#include "parts/rng.h"

#define MS UINT64_C(1000)

static const char *const fault_texts[] = {
#define TEXT(name, text) text,
    PLAN_FAULT_MAP(TEXT)
#undef TEXT
};
static const char *const feature_texts[] = {
#define TEXT(name, text) text,
    PLAN_FEATURE_MAP(TEXT)
#undef TEXT
};
static const char *const bias_texts[] = {
#define TEXT(name, text) text,
    PLAN_BIAS_MAP(TEXT)
#undef TEXT
};

const char *plan_fault_text(enum plan_fault_kind kind)
{
    return fault_texts[kind];
}

const char *plan_feature_text(enum plan_feature feature)
{
    return feature_texts[feature];
}

const char *plan_bias_text(enum plan_bias bias)
{
    return bias_texts[bias];
}

/* ---- features ---- */

static uint32_t bit(enum plan_feature feature)
{
    return 1u << feature;
}

/* Features that the bias needs, and those that it cannot have. */
static uint32_t bend_features(uint32_t features, enum plan_bias bias)
{
    uint32_t rare = bit(FEATURE_COLD) | bit(FEATURE_PEERS) | bit(FEATURE_ALL);

    switch (bias) {
    case BIAS_LATE_EXECUTION:
    case BIAS_LATE_EXTEND: return (features & ~rare) | bit(FEATURE_EXTENDS);
    case BIAS_PASSWORDS:
    case BIAS_LATE_CLIENT: return features & ~rare;
    case BIAS_ELECTION: return features & ~rare & ~bit(FEATURE_REDISSON);
    case BIAS_LATE_RENEWAL:
        return features & ~rare & ~bit(FEATURE_KEYLISTS) & ~bit(FEATURE_UNRENEWED) & ~bit(FEATURE_MAX_HOLD);
    case BIAS_TOKENS:
    case BIAS_TOKENS_LOST: return (features & ~rare) | bit(FEATURE_FENCING);
    case BIAS_LOSS: return features & ~rare;
    case BIAS_PASSING:
    case BIAS_KEEP: return features & ~rare & ~bit(FEATURE_REDISSON) & ~bit(FEATURE_OWNERS);
    case BIAS_NESTS:
        return (features & ~rare & ~bit(FEATURE_CLOSES)) | bit(FEATURE_OWNERS) | bit(FEATURE_INSIDE) |
               bit(FEATURE_UNRENEWED) | bit(FEATURE_MAX_HOLD);
    case BIAS_BEAT:
        return (features & ~rare & ~bit(FEATURE_FENCING) & ~bit(FEATURE_REDISSON) & ~bit(FEATURE_KEYLISTS)) |
               bit(FEATURE_BEAT);
    case BIAS_MEMBERS:
    case BIAS_DEBTS:
    case BIAS_PACKETS: return features & ~rare & ~bit(FEATURE_BOOTSTRAP);
    case BIAS_TWINS: return (features & ~rare & ~bit(FEATURE_OWNERS)) | bit(FEATURE_NAMES);
    case BIAS_CALM:
    case BIAS_FROZEN:
    case BIAS_ODD:
    case BIAS_FARTHER:
        return features & (bit(FEATURE_FENCING) | bit(FEATURE_PREFIX) | bit(FEATURE_REDISSON) | bit(FEATURE_LOG));
    case BIAS_CROWD:
    case BIAS_QUEUE:
        return features & (bit(FEATURE_FENCING) | bit(FEATURE_PREFIX) | bit(FEATURE_REDISSON) | bit(FEATURE_PEERS) |
                           bit(FEATURE_PERMITS) | bit(FEATURE_SHARED));
    case BIAS_PERMITS: return (features & ~rare & ~bit(FEATURE_REDISSON)) | bit(FEATURE_PERMITS);
    case BIAS_SHARED: return (features & ~rare & ~bit(FEATURE_REDISSON)) | bit(FEATURE_SHARED) | bit(FEATURE_PEERS);
    case BIAS_LIVES:
        return features | bit(FEATURE_FREES) | bit(FEATURE_CLOSES) | bit(FEATURE_INSIDE) | bit(FEATURE_OWNERS);
    default: return features;
    }
}

/* Some runs have few features, some have most. */
static void draw_features(struct plan *plan, struct rng *rng, enum plan_bias bias)
{
    static const uint8_t rare[] = {
        [FEATURE_REDISSON] = 4,  [FEATURE_ALL] = 6,    [FEATURE_PEERS] = 6,     [FEATURE_COLD] = 12,
        [FEATURE_BOOTSTRAP] = 8, [FEATURE_CLOSES] = 3, [FEATURE_LATE_LOOP] = 4, [FEATURE_BEAT] = 6,
        [FEATURE_PERMITS] = 4,   [FEATURE_SHARED] = 3};
    uint32_t one_in = (uint32_t)rng_between(rng, 1, 4);

    for (uint32_t i = 0; i < FEATURE_KEEP; i++) {
        uint32_t of = i < sizeof(rare) && rare[i] != 0 ? rare[i] : one_in;

        if (rng_one_in(rng, of)) plan->features |= 1u << i;
    }
    if (bias != BIAS_NONE) plan->features &= ~bit(FEATURE_BEAT);
    /* What a bias needs its rules for would be rarer. */
    if (bias != BIAS_NONE && bias != BIAS_QUEUE && bias != BIAS_LIVENESS && bias != BIAS_LIVES && bias != BIAS_MEMORY &&
        bias != BIAS_PACKETS)
        plan->features &= ~(bit(FEATURE_PERMITS) | bit(FEATURE_SHARED));
    plan->features = bend_features(plan->features, bias);
    /* A peer writes strings. */
    if (plan_has(plan, FEATURE_REDISSON))
        plan->features &= ~(bit(FEATURE_PEERS) | bit(FEATURE_PERMITS) | bit(FEATURE_SHARED));
    if (plan_has(plan, FEATURE_COLD)) plan->features &= ~bit(FEATURE_BOOTSTRAP);
}

/* ---- the shape ---- */

static void draw_shape(struct plan *plan, struct rng *rng)
{
    static const uint8_t servers[] = {3, 3, 3, 3, 4, 5, 5, 5, 7};
    static const uint32_t leases_ms[] = {200, 200, 250, 300, 400, 500, 800, 1000, 3000, 10000};

    plan->n_servers = servers[rng_below(rng, sizeof(servers))];
    if (rng_one_in(rng, 24)) plan->n_servers = (uint32_t)rng_between(rng, 1, 2);
    plan->n_keys = (uint32_t)(rng_one_in(rng, 2) ? 1 : rng_between(rng, 1, PLAN_KEYS_MAX));
    plan->n_machines = (uint32_t)rng_between(rng, 1, 4);
    if (rng_one_in(rng, 8)) plan->n_machines = 5;
    plan->lease_ms = leases_ms[rng_below(rng, 10)];
    plan->max_lease_ms = (uint32_t)(plan->lease_ms * rng_between(rng, 2, 4));
    if (plan->max_lease_ms > 30000) plan->max_lease_ms = 30000;
    plan->active_us = plan->lease_ms * MS * rng_between(rng, 3, 8);
    if (plan->active_us > 40000 * MS) plan->active_us = 40000 * MS;
    plan->late_us = plan->lease_ms * MS * rng_between(rng, 1, 8) / 4;
    plan->service_us = rng_one_in(rng, 4) ? (uint32_t)rng_between(rng, 5, 50) : 2;
    plan->split_one_in = rng_one_in(rng, 6) ? (uint32_t)rng_between(rng, 1, 8) : 0;
    plan->outside = rng_one_in(rng, 8);
    plan->counters_void = plan->outside && rng_one_in(rng, 2);
    plan->no_info = rng_one_in(rng, 12);
    plan->n_actors = (uint32_t)rng_between(rng, 2, 6);
    if (rng_one_in(rng, 6)) plan->n_actors = (uint32_t)rng_between(rng, 6, 16);
}

/* ---- clients ---- */

static void draw_clients(struct plan *plan, struct rng *rng, enum plan_bias bias)
{
    static const uint8_t guards[] = {QUORLOCK_GUARD_OFF, QUORLOCK_GUARD_CONNECTION, QUORLOCK_GUARD_CONNECTION,
                                     QUORLOCK_GUARD_STRICT};
    uint8_t guard = guards[rng_below(rng, 4)];
    bool mixed = rng_one_in(rng, 4);

    if (guard == QUORLOCK_GUARD_OFF &&
        (bias == BIAS_LOSS || bias == BIAS_TOKENS_LOST || bias == BIAS_TWINS || bias == BIAS_MEMBERS)) {
        guard = QUORLOCK_GUARD_CONNECTION;
    }
    if (guard == QUORLOCK_GUARD_OFF) plan->features &= ~(bit(FEATURE_COLD) | bit(FEATURE_BOOTSTRAP));
    if (guard == QUORLOCK_GUARD_OFF) plan->no_info = false;
    plan->n_clients = plan->n_machines;
    for (uint32_t i = 0; i < PLAN_CLIENTS_MAX; i++) {
        struct plan_client *client = &plan->clients[i];
        bool pair = rng_one_in(rng, 2);

        client->machine = (uint8_t)(i < plan->n_machines ? i : i - plan->n_machines);
        client->policy =
            plan_has(plan, FEATURE_ALL) && !(mixed && pair) ? QUORLOCK_POLICY_ALL : QUORLOCK_POLICY_MAJORITY;
        client->guard = guard == QUORLOCK_GUARD_CONNECTION && mixed && pair ? QUORLOCK_GUARD_STRICT : guard;
        client->reconnect_min_ms = (uint32_t)rng_between(rng, 1, 50);
        /* In long runs less often: a server that loads for long is asked again and again. */
        client->reconnect_max_ms = client->reconnect_min_ms + (uint32_t)rng_between(rng, 1, 500) + plan->lease_ms / 20;
        client->node_timeout_ms = rng_one_in(rng, 3) && (!plan->far || bias == BIAS_LATE_EXTEND)
                                      ? (uint32_t)rng_between(rng, plan->lease_ms / 12, plan->lease_ms / 10)
                                      : 0;
        if (bias == BIAS_PACKETS) client->node_timeout_ms = pair ? (uint32_t)rng_between(rng, 50, 1000) : 0;
        /* To connect takes a round trip, and so do TLS and the handshake. */
        client->connect_timeout_ms = 3 * client->node_timeout_ms;
        if (bias == BIAS_TWINS) client->reconnect_max_ms = client->reconnect_min_ms + plan->lease_ms / 8;
        if (plan_has(plan, FEATURE_PAIRS) && pair && i < plan->n_machines && plan->n_clients < 2 * plan->n_machines &&
            plan->n_clients < 8) {
            plan->n_clients++;
        }
    }
}

/* Clients that all list one server twice do no harm together; some beside others do. */
static void draw_twins(struct plan *plan, struct rng *rng, enum plan_bias bias)
{
    uint8_t instead = (uint8_t)rng_below(rng, plan->n_servers);
    uint8_t twin =
        (uint8_t)((instead + (plan->n_servers > 1 ? rng_between(rng, 1, plan->n_servers - 1) : 0)) % plan->n_servers);

    if (bias != BIAS_TWINS && (bias != BIAS_NONE || !rng_one_in(rng, 24))) return;
    /* The one thing that it is found out by comes with the guard, and the second address is a name. */
    if (plan->clients[0].guard == QUORLOCK_GUARD_OFF || plan->n_servers < 3) return;
    for (uint32_t i = 0; i < plan->n_clients; i++) {
        plan->clients[i].twins = i == 0 || (i > 1 && rng_one_in(rng, 2));
        plan->clients[i].twin = twin;
        plan->clients[i].twin_instead = instead;
        /* Its second connection to that server ends each time. */
        if (bias == BIAS_NONE) plan->clients[i].reconnect_max_ms += 500;
    }
}

/* ---- actors ---- */

static uint32_t allowance_ms(const struct plan *plan, uint32_t lease_ms)
{
    return (lease_ms * (plan->drift_ppm / 100) + 9999) / 10000 + 2;
}

/* What the options of the library allow: a renewal must be able to come in time. */
static void fit_schedule(const struct plan *plan, const struct plan_client *client,
                         struct quorlock_lock_options *options)
{
    uint32_t allowance = allowance_ms(plan, options->lease_ms);
    uint32_t useful = options->lease_ms - allowance;
    uint32_t margin = options->lost_margin_ms;

    if (margin == 0) margin = 2 * allowance > 10 ? 2 * allowance : 10;
    if (options->renew_ms == QUORLOCK_RENEW_NEVER) return;
    if (options->renew_ms == 0) options->renew_ms = options->lease_ms / 3;
    while (options->renew_ms > 1 && options->renew_ms + 2 * (client->node_timeout_ms + 1) + margin + 2 > useful)
        options->renew_ms -= options->renew_ms / 4 + 1;
}

static void draw_options(const struct plan *plan, const struct plan_client *client,
                         struct quorlock_lock_options *options, struct rng *rng)
{
    uint32_t lease_ms = plan->lease_ms;
    bool draws[10];

    for (uint32_t i = 0; i < 10; i++) draws[i] = rng_one_in(rng, 4);
    if (draws[0]) lease_ms = (uint32_t)(lease_ms * rng_between(rng, 4, 8) / 4);
    if (lease_ms > plan_shorter_max_lease_ms(plan)) lease_ms = plan_shorter_max_lease_ms(plan);
    *options = (struct quorlock_lock_options){.size = sizeof(*options), .lease_ms = lease_ms};
    options->wait_ms = 0;
    if (plan_has(plan, FEATURE_BOUNDS) && draws[1])
        options->wait_ms = (uint32_t)rng_between(rng, PLAN_WAIT_MIN_MS, 4ull * lease_ms);
    if (plan_has(plan, FEATURE_BOUNDS) && draws[2] && draws[3])
        options->wait_ms = (uint32_t)rng_between(rng, 1, PLAN_WAIT_MIN_MS);
    if (plan_has(plan, FEATURE_TRIES) && draws[4]) options->wait_ms = QUORLOCK_TRY_ONCE;
    if (plan_has(plan, FEATURE_UNRENEWED) && draws[5]) options->renew_ms = QUORLOCK_RENEW_NEVER;
    if (plan_has(plan, FEATURE_MIN_VALID) && draws[6])
        options->min_valid_ms = lease_ms / (uint32_t)rng_between(rng, 2, 8);
    if (plan_has(plan, FEATURE_MAX_HOLD) && draws[7])
        options->max_hold_ms = (uint32_t)rng_between(rng, lease_ms / 4, 4ull * lease_ms);
    if (plan_has(plan, FEATURE_MARGINS) && draws[8])
        options->lost_margin_ms = (uint32_t)rng_between(rng, 2ull * allowance_ms(plan, lease_ms), lease_ms / 4);
    options->fencing = plan_has(plan, FEATURE_FENCING);
    if (plan_has(plan, FEATURE_FENCING) && plan->bias == BIAS_NONE && draws[9]) options->fencing = 0;
    fit_schedule(plan, client, options);
}

static uint8_t draw_keys(const struct plan *plan, struct rng *rng)
{
    uint32_t n = (uint32_t)rng_between(rng, 1, 4);
    bool several = rng_one_in(rng, 2);
    uint8_t keys = (uint8_t)(1u << rng_below(rng, plan->n_keys));

    for (uint32_t i = 1; i < n; i++) {
        uint8_t more = (uint8_t)(1u << rng_below(rng, plan->n_keys));

        if (several && plan_has(plan, FEATURE_KEYLISTS)) keys |= more;
    }
    return keys;
}

static void draw_actors(struct plan *plan, uint64_t seed, enum plan_bias bias)
{
    if (plan->n_actors < plan->n_clients) plan->n_actors = plan->n_clients;
    for (uint32_t i = 0; i < plan->n_actors; i++) {
        struct plan_actor *actor = &plan->actors[i];
        struct rng rng;
        bool owned;

        rng_seed(&rng, seed, 1000 + i);
        actor->client = (uint8_t)(i < plan->n_clients ? i : rng_below(&rng, plan->n_clients));
        actor->keys = draw_keys(plan, &rng);
        owned = rng_one_in(&rng, 2) || bias == BIAS_NESTS;
        if (owned && plan_has(plan, FEATURE_OWNERS))
            actor->owner = (uint8_t)rng_between(&rng, 1, bias == BIAS_LIVES || bias == BIAS_NESTS ? 1 : 2);
        /* One owner nests the same list only. */
        for (uint32_t k = 0; k < i && actor->owner != 0; k++) {
            const struct plan_actor *other = &plan->actors[k];

            if (other->client == actor->client && other->owner == actor->owner) actor->keys = other->keys;
        }
        draw_options(plan, &plan->clients[actor->client], &actor->options, &rng);
        if ((bias == BIAS_LATE_EXECUTION || bias == BIAS_LATE_EXTEND) && !rng_one_in(&rng, 3))
            actor->options.renew_ms = QUORLOCK_RENEW_NEVER;
        if (bias == BIAS_CROWD || plan->turns) {
            actor->options.wait_ms = 0;
            actor->options.min_valid_ms = actor->options.max_hold_ms = 0;
        }
        if (bias == BIAS_PACKETS && !rng_one_in(&rng, 3))
            actor->options.wait_ms =
                rng_one_in(&rng, 2) ? QUORLOCK_TRY_ONCE : (uint32_t)rng_between(&rng, PLAN_WAIT_MIN_MS, 3000);
        /* A lock that waits asks the arbiter first, and grants are orderly: here they must not be. */
        if ((bias == BIAS_TOKENS || bias == BIAS_LATE_CLIENT) && !rng_one_in(&rng, 3))
            actor->options.wait_ms = QUORLOCK_TRY_ONCE;
    }
}

/* ---- faults ---- */

static bool all_strict(const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->n_clients; i++) {
        if (plan->clients[i].guard != QUORLOCK_GUARD_STRICT) return false;
    }
    return true;
}

/* Of FLUSHALL a server tells; else scripts must look. */
static bool sees_flush(const struct plan *plan)
{
    return all_strict(plan) || (plan->clients[0].guard != QUORLOCK_GUARD_OFF && plan->untracked == 0);
}

static bool loses_memory(enum plan_fault_kind kind)
{
    return kind == FAULT_CRASH_EMPTY || kind == FAULT_CRASH_OLD || kind == FAULT_PROMOTE || kind == FAULT_FLIP ||
           kind == FAULT_FLIP_LIVE || kind == FAULT_FLUSH;
}

/* May this plan have a fault of that kind? */
static bool allows(const struct plan *plan, enum plan_fault_kind kind)
{
    bool covered = plan->clients[0].guard != QUORLOCK_GUARD_OFF;

    switch (kind) {
    case FAULT_FLUSH: covered = sees_flush(plan); break;
    case FAULT_FLIP_LIVE:
        /* An operator whose connections are from before could change nothing any more. */
        if (plan->no_info && plan->changes) return false;
        covered = all_strict(plan) && !plan->no_info;
        break;
    case FAULT_STEP_FORWARD:
    case FAULT_PAUSE: return plan->outside;
    case FAULT_BREAK: return plan->outside || plan->keys_void != 0;
    case FAULT_STEP_BACK: return !plan->counters_void;
    case FAULT_LOOKUP:
    case FAULT_MOVE: return plan_has(plan, FEATURE_NAMES);
    case FAULT_RECONFIGURE: return covered && !plan->outside;
    case FAULT_ROTATE: return plan->bias == BIAS_PASSWORDS;
    case FAULT_PEER_KEY: return plan_has(plan, FEATURE_PEERS);
    case FAULT_ODD: return false; /* not among many: draw_odd */
    default: break;
    }
    if (!loses_memory(kind)) return true;
    /* Peers take the vote of a server that lost its memory. */
    if (plan->keeps_counters || plan_has(plan, FEATURE_PEERS)) return false;
    return plan->outside ? plan->counters_void : covered;
}

#define OF(...)                                                                                                        \
    {                                                                                                                  \
        __VA_ARGS__, FAULT_KINDS                                                                                       \
    }

/* What the bias has most of. */
static const enum plan_fault_kind bent[BIASES][8] = {
    [BIAS_LATE_EXECUTION] = OF(FAULT_RESET_LATE, FAULT_RESET_LATE, FAULT_RESET_LATE, FAULT_SLOW),
    [BIAS_LATE_CLIENT] = OF(FAULT_STALL_CALLBACK, FAULT_STALL, FAULT_STALL_CLOCK, FAULT_STALL_SEND, FAULT_SUSPEND),
    [BIAS_LATE_EXTEND] = OF(FAULT_RESET_LATE, FAULT_RESET_LATE, FAULT_RESET_LATE, FAULT_SLOW),
    [BIAS_LATE_RENEWAL] = OF(FAULT_STALL, FAULT_SUSPEND, FAULT_STALL_CLOCK),
    [BIAS_LOSS] = OF(FAULT_CRASH_EMPTY, FAULT_CRASH_EMPTY, FAULT_PROMOTE, FAULT_FLIP, FAULT_CRASH_OLD, FAULT_FLUSH),
    [BIAS_TOKENS] =
        OF(FAULT_FREEZE, FAULT_STALL_SEND, FAULT_STALL_SEND, FAULT_CUT_FROM, FAULT_RESET_LATE, FAULT_RESET_LATE),
    [BIAS_TOKENS_LOST] = OF(FAULT_CRASH_EMPTY, FAULT_CRASH_EMPTY, FAULT_PROMOTE, FAULT_FLIP),
    [BIAS_TWINS] = OF(FAULT_CUT_TO, FAULT_CUT_FROM, FAULT_RESET_LATE, FAULT_FREEZE),
    [BIAS_OUTSIDE] = OF(FAULT_STEP_FORWARD, FAULT_PAUSE, FAULT_FLUSH, FAULT_BREAK),
    [BIAS_QUEUE] = OF(FAULT_MUTE, FAULT_MUTE, FAULT_PEER_KEY, FAULT_RESET),
    [BIAS_LIVES] = OF(FAULT_KILL, FAULT_KILL_CALLBACK, FAULT_RESET, FAULT_STALL_CALLBACK),
    [BIAS_MEMBERS] = OF(FAULT_RESET_LATE, FAULT_STALL, FAULT_CUT_TO, FAULT_CRASH_EMPTY, FAULT_KILL),
    [BIAS_DEBTS] = OF(FAULT_RESET, FAULT_KILL_CLIENTS, FAULT_LOADING, FAULT_BUSY, FAULT_BUSY, FAULT_MISCONF),
    [BIAS_RECONNECTS] = OF(FAULT_RESET, FAULT_RESET, FAULT_KILL_CLIENTS, FAULT_CRASH),
    [BIAS_BEAT] = OF(FAULT_RESET_LATE, FAULT_RESET, FAULT_FORGET_SCRIPTS, FAULT_PEER_KEY, FAULT_BUSY, FAULT_MUTE),
    [BIAS_ELECTION] =
        OF(FAULT_FREEZE, FAULT_CUT_TO, FAULT_CUT_FROM, FAULT_STALL, FAULT_KILL, FAULT_CRASH, FAULT_SUSPEND),
    [BIAS_PERMITS] =
        OF(FAULT_FREEZE, FAULT_CUT_TO, FAULT_RESET_LATE, FAULT_STALL, FAULT_KILL, FAULT_CRASH_EMPTY, FAULT_RESET),
    [BIAS_SHARED] =
        OF(FAULT_PEER_KEY, FAULT_PEER_KEY, FAULT_CUT_TO, FAULT_RESET_LATE, FAULT_STALL, FAULT_KILL, FAULT_STEP_BACK),
    [BIAS_PASSWORDS] = OF(FAULT_ROTATE, FAULT_ROTATE, FAULT_ROTATE, FAULT_KILL_CLIENTS, FAULT_CRASH),
    [BIAS_PACKETS] = OF(FAULT_CUT, FAULT_CUT_TO, FAULT_LOSSY, FAULT_PROXY, FAULT_PROXY, FAULT_RESET, FAULT_FORGET),
    [BIAS_MEMORY] = OF(FAULT_NO_MEMORY, FAULT_NO_MEMORY, FAULT_NO_MEMORY, FAULT_NO_DESCRIPTORS, FAULT_RESET),
};

static enum plan_fault_kind draw_bent(struct rng *rng, enum plan_bias bias)
{
    uint64_t n = 0;

    while (bent[bias][n] != FAULT_KINDS && bent[bias][n] != 0) n++;
    return bent[bias][rng_below(rng, n)];
}

static enum plan_fault_kind draw_kind(const struct plan *plan, struct rng *rng, enum plan_bias bias, uint64_t swarm)
{
    for (;;) {
        enum plan_fault_kind kind = (enum plan_fault_kind)rng_below(rng, FAULT_ROTATE);

        if (bias == BIAS_DEBTS || (bent[bias][1] != 0 && !rng_one_in(rng, 3))) {
            kind = draw_bent(rng, bias);
        } else if ((swarm >> kind & 1u) == 0 && !rng_one_in(rng, 32)) {
            continue;
        }
        if (!allows(plan, kind)) continue;
        return kind;
    }
}

/* How long a fault lasts: around a lease is where the protocol is tender. */
static uint64_t draw_length(const struct plan *plan, struct rng *rng)
{
    uint64_t lease_us = plan->pace_us != 0 ? plan->pace_us : plan->lease_ms * MS;

    /* Around what a client waits for before it gives a connection up. */
    if (plan->bias == BIAS_PACKETS && rng_one_in(rng, 2)) return rng_between(rng, 1200, 5000) * MS;
    switch (rng_below(rng, 4)) {
    case 0: return rng_between(rng, 1, lease_us / 10);
    case 1: return rng_between(rng, lease_us / 10, lease_us);
    case 2: return rng_between(rng, lease_us * 3 / 4, lease_us * 5 / 4);
    default: return rng_between(rng, lease_us, 3 * lease_us);
    }
}

static uint32_t draw_number(const struct plan *plan, struct rng *rng, enum plan_bias bias)
{
    uint64_t n = 0;

    if (!rng_one_in(rng, 8)) n = rng_between(rng, 1, 6);
    if (rng_one_in(rng, 3)) n = rng_between(rng, 7, 16);
    if (rng_one_in(rng, 16)) n = rng_between(rng, 17, PLAN_FAULTS_MAX - 4);
    if (bias != BIAS_NONE) n = rng_between(rng, 6, 32);
    if (bias == BIAS_CROWD || plan->calm) n = 0;
    if (bias == BIAS_MEMBERS) n = rng_one_in(rng, 3) ? 0 : rng_between(rng, 1, 10);
    if (bias == BIAS_QUEUE) n = rng_below(rng, 9);
    if (bias == BIAS_DEBTS || bias == BIAS_NESTS) n = rng_between(rng, 1, 8);
    if (bias == BIAS_PACKETS) n = rng_between(rng, 2, 12);
    if (bias == BIAS_FLOOD || bias == BIAS_LIVENESS) n = rng_one_in(rng, 2) ? 0 : rng_between(rng, 1, 4);
    return (uint32_t)n;
}

/* All together: a clock that is behind by a max_lease is no floor for tokens any more. */
static void limit_back(struct plan *plan, struct plan_fault *fault)
{
    uint64_t most_us = plan_shorter_max_lease_ms(plan) * MS / 100 * 40;

    if (fault->kind != FAULT_STEP_BACK) return;
    if (fault->for_us > most_us - plan->back_us) fault->for_us = most_us - plan->back_us;
    plan->back_us += fault->for_us;
}

static uint8_t first_void(const struct plan *plan)
{
    uint8_t key = 0;

    while ((plan->keys_void >> key & 1u) == 0) key++;
    return key;
}

/* A client that lists one server twice cannot reach the one that it lists beside. */
static void cut_third(const struct plan *plan, struct plan_fault *fault)
{
    fault->machine = plan->clients[0].machine;
    fault->server = (uint8_t)(3 - plan->clients[0].twin - plan->clients[0].twin_instead);
}

static void draw_faults(struct plan *plan, struct rng *rng, enum plan_bias bias)
{
    uint64_t swarm = rng_next(rng) | (rng_one_in(rng, 2) ? rng_next(rng) : 0);

    if (rng_one_in(rng, 8)) plan->keys_void = (uint8_t)(1u << rng_below(rng, plan->n_keys));
    if (bias != BIAS_NONE && bias != BIAS_LIVES) plan->keys_void = 0;
    plan->n_faults = draw_number(plan, rng, bias);
    for (uint32_t i = 0; i < plan->n_faults; i++) {
        struct plan_fault *fault = &plan->faults[i];

        fault->kind = draw_kind(plan, rng, bias, swarm);
        fault->at_us = rng_below(rng, plan->active_us);
        fault->for_us = draw_length(plan, rng);
        fault->nth = (uint32_t)rng_between(rng, 1, rng_one_in(rng, 2) ? 4 : 48);
        fault->machine = (uint8_t)rng_below(rng, plan->n_machines);
        fault->server = (uint8_t)rng_below(rng, plan->n_servers);
        fault->key = (uint8_t)rng_below(rng, plan->n_keys);
        fault->all = rng_one_in(rng, 2) && bias != BIAS_TWINS;
        if (fault->kind == FAULT_BREAK && !plan->outside) fault->key = first_void(plan);
        if (bias == BIAS_TWINS && rng_one_in(rng, 2)) cut_third(plan, fault);
        if (loses_memory(fault->kind)) plan->loses_memory = true;
        /* A server without a guard is theirs who come first, and there are clients of two sets. */
        if (loses_memory(fault->kind) && plan->changes) fault->server = 0;
        limit_back(plan, fault);
    }
}

/* ---- situations ---- */

/* Not where contention matters most: who is not told comes late. */
static void draw_lost(struct plan *plan, struct rng *rng, enum plan_bias bias)
{
    static const uint16_t permille[] = {0, 0, 0, 0, 50, 300, 1000};

    if (bias == BIAS_NONE || bias == BIAS_QUEUE || bias == BIAS_LIVENESS)
        plan->lost_permille = permille[rng_below(rng, 7)];
}

/* Not where requests are counted: each push is a reason to ask again. */
static void draw_tracking(struct plan *plan, struct rng *rng)
{
    static const uint16_t one_in[] = {0, 0, 1000, 100};

    if (rng_one_in(rng, 4)) plan->untracked = (uint32_t)rng_below(rng, 1u << plan->n_servers);
    if (!plan->calm) plan->push_one_in = one_in[rng_below(rng, 4)];
}

/* Locks of Redisson's have no terms. */
static void draw_elections(struct plan *plan, struct rng *rng, enum plan_bias bias)
{
    bool some = rng_one_in(rng, 4) && bias == BIAS_NONE;

    plan->elections = (some || bias == BIAS_ELECTION) && !plan_has(plan, FEATURE_REDISSON);
}

/* Now and then a situation that takes long. */
static enum plan_bias draw_situation(struct rng *rng)
{
    static const enum plan_bias rare[] = {BIAS_QUEUE, BIAS_CALM,       BIAS_FROZEN, BIAS_ODD,    BIAS_CROWD,
                                          BIAS_FLOOD, BIAS_RECONNECTS, BIAS_BEAT,   BIAS_PACKETS};
    static const enum plan_bias some[] = {BIAS_LIVENESS, BIAS_LIVES,   BIAS_MEMORY, BIAS_LOSS,     BIAS_LATE_EXECUTION,
                                          BIAS_MEMBERS,  BIAS_PERMITS, BIAS_SHARED, BIAS_PASSWORDS};

    if (rng_one_in(rng, 60)) return rare[rng_below(rng, 9)];
    return rng_one_in(rng, 4) ? some[rng_below(rng, 9)] : BIAS_NONE;
}

void plan_make(struct plan *plan, uint64_t seed, enum plan_bias bias, uint32_t without)
{
    struct rng rng;

    if (bias == BIAS_SCENES) {
        plan_make(plan, seed, BIAS_CALM, without);
        plan_scene(plan, seed);
        return;
    }
    rng_seed(&rng, seed, 5);
    if (bias == BIAS_NONE) {
        bias = draw_situation(&rng);
        if (bias == BIAS_CALM && rng_one_in(&rng, 2)) bias = BIAS_FAIR;
    }
    if (bias == BIAS_FAIR) {
        plan_make(plan, seed, BIAS_CALM, without);
        plan->bias = BIAS_FAIR;
        if ((without & bit(FEATURE_FAIR)) == 0) plan_fair(plan, &rng);
        if ((without & bit(FEATURE_PERMITS)) == 0) plan_fair_permits(plan, &rng);
        rng_seed(&rng, seed, 16);
        plan_fair_steps(plan, &rng);
        return;
    }
    memset(plan, 0, sizeof(*plan));
    plan->seed = seed;
    plan->bias = bias;
    rng_seed(&rng, seed, 1);
    draw_shape(plan, &rng);
    plan_bend(plan, &rng);
    rng_seed(&rng, seed, 10);
    plan_draw_sets(plan, &rng);
    rng_seed(&rng, seed, 8);
    draw_features(plan, &rng, bias);
    plan->features &= ~without;
    rng_seed(&rng, seed, 9);
    draw_clients(plan, &rng, bias);
    plan_clocks(plan, &rng);
    draw_twins(plan, &rng, bias);
    draw_actors(plan, seed, bias);
    rng_seed(&rng, seed, 12);
    plan_modes(plan, &rng);
    rng_seed(&rng, seed, 15);
    draw_tracking(plan, &rng);
    rng_seed(&rng, seed, 4);
    plan_calm(plan, &rng);
    rng_seed(&rng, seed, 2);
    draw_faults(plan, &rng, bias);
    rng_seed(&rng, seed, 7);
    plan_stays(plan, &rng);
    plan_draw_change(plan, &rng);
    rng_seed(&rng, seed, 10);
    draw_lost(plan, &rng, bias);
    rng_seed(&rng, seed, 11);
    draw_elections(plan, &rng, bias);
    rng_seed(&rng, seed, 13);
    if ((without & bit(FEATURE_KEEP)) == 0) plan_keep(plan, &rng);
    rng_seed(&rng, seed, 14);
    if ((without & bit(FEATURE_FAIR)) == 0) plan_fair(plan, &rng);
}
