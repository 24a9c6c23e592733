/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan.h"

#include <string.h>

#include "../../src/core/validity.h"
#include "rng.h"

#define MS           UINT64_C(1000)
#define QUEUE_ONE_IN 300u
#define CALM_ONE_IN  300u
/* The longest hand-over in a calm world: far below a poll. */
#define CALM_TRIPS   16u
#define CALM_LATE_US 12000u
/* And the longest where a key that is no lock's came to the arbiter. */
#define ODD_FOUND_US 1500000u
/* And its requests: some times what all of them send in one attempt, for as long as the lock is held. */
#define CALM_REQUESTS      100u
#define CALM_REQUESTS_EACH 25u

static const char *const fault_texts[] = {
#define TEXT(name, text) text,
    PLAN_FAULT_MAP(TEXT)
#undef TEXT
};

const char *plan_fault_text(enum plan_fault_kind kind)
{
    return fault_texts[kind];
}

static void draw_shape(struct plan *plan, struct rng *rng)
{
    static const uint8_t nodes[] = {3, 3, 3, 4, 5, 5, 7};
    static const uint32_t leases_ms[] = {100, 150, 200, 300, 500};
    bool all = rng_one_in(rng, 6);

    plan->n_nodes = nodes[rng_below(rng, sizeof(nodes))];
    plan->quorum = all ? plan->n_nodes : plan->n_nodes / 2 + 1;
    plan->n_keys = rng_one_in(rng, 8) ? 2 : 1;
    plan->n_clients = (uint32_t)rng_between(rng, 2, 4);
    if (rng_one_in(rng, 8)) plan->n_clients = (uint32_t)rng_between(rng, 5, 8);
    if (rng_one_in(rng, 150)) plan->n_clients = (uint32_t)rng_between(rng, 9, PLAN_CLIENTS_MAX);
    plan->n_locks = plan->n_clients;
    if (rng_one_in(rng, 6)) plan->n_locks++;
    plan->base_lease_us = leases_ms[rng_below(rng, 5)] * MS;
    plan->max_lease_us = plan->base_lease_us * rng_between(rng, 2, 4);
    plan->active_us = plan->base_lease_us * rng_between(rng, 4, 9);
    plan->stall_us = plan->base_lease_us * rng_between(rng, 2, 12) / 4;
    plan->connect_timeout_us = rng_between(rng, 10, 60) * MS;
    plan->reconnect_min_us = rng_between(rng, 1, 20) * MS;
    plan->reconnect_max_us = rng_between(rng, 20, 200) * MS;
    plan->late_us = plan->base_lease_us * rng_between(rng, 1, 8) / 4;
    if (rng_one_in(rng, 8)) plan->near_us = (uint32_t)rng_between(rng, 20, 100);
    if (rng_one_in(rng, 8)) plan->service_us = (uint32_t)rng_between(rng, 5, 50);
    plan->strays = rng_one_in(rng, 8);
    plan->long_extends = rng_one_in(rng, 3);
}

static void draw_rules(struct plan *plan, struct rng *rng)
{
    static const enum plan_guard guards[] = {PLAN_GUARD_OFF, PLAN_GUARD_CONNECTION, PLAN_GUARD_CONNECTION,
                                             PLAN_GUARD_STRICT};

    plan->guard = guards[rng_below(rng, 4)];
    plan->cold = plan->guard != PLAN_GUARD_OFF && rng_one_in(rng, 12);
    plan->fencing = rng_one_in(rng, 2);
    plan->mixed = plan->fencing && rng_one_in(rng, 6);
    plan->outside = rng_one_in(rng, 6);
    plan->counters_void = plan->outside && rng_one_in(rng, 2);
}

static void bend_calm(struct plan *plan, struct rng *rng)
{
    static const uint8_t contenders[] = {2, 3, 10, 30};

    plan->n_nodes = rng_one_in(rng, 2) ? 3 : 5;
    plan->quorum = plan->n_nodes / 2 + 1;
    plan->n_keys = 1;
    plan->n_clients = plan->n_locks = contenders[plan->seed % 4];
    plan->base_lease_us = 500 * MS;
    plan->max_lease_us = 2 * plan->base_lease_us;
    plan->active_us = 3 * plan->base_lease_us;
    plan->stall_us = 2 * plan->active_us;
    plan->near_us = 0;
    plan->service_us = 2;
    plan->cold = plan->long_extends = false;
    plan->turns = plan->calm = true;
}

static void bend_many(struct plan *plan, struct rng *rng, uint32_t least, uint32_t leases)
{
    plan->n_keys = 1;
    plan->n_clients = plan->n_locks = (uint32_t)rng_between(rng, least, PLAN_CLIENTS_MAX);
    plan->base_lease_us = rng_between(rng, 100, 200) * MS;
    plan->max_lease_us = 2 * plan->base_lease_us;
    plan->active_us = leases * plan->base_lease_us;
    plan->near_us = 0;
    plan->cold = false;
}

static void bend(struct plan *plan, struct rng *rng, enum plan_bias bias)
{
    if (bias == BIAS_NONE) return;
    plan->outside = plan->counters_void = false;
    switch (bias) {
    case BIAS_LATE_EXECUTION: plan->long_extends = true; break;
    case BIAS_LOSS:
    case BIAS_TOKENS_LOST:
        if (plan->guard == PLAN_GUARD_OFF) plan->guard = PLAN_GUARD_CONNECTION;
        plan->active_us = plan->base_lease_us * rng_between(rng, 8, 16);
        break;
    case BIAS_TWINS:
        plan->guard = PLAN_GUARD_CONNECTION;
        plan->n_nodes = 3;
        plan->quorum = 2;
        break;
    case BIAS_TOKENS:
        plan->keeps_counters = true;
        plan->n_nodes = 3;
        plan->quorum = 2;
        plan->n_keys = 1;
        plan->n_clients = plan->n_locks = (uint32_t)rng_between(rng, 3, 4);
        plan->max_lease_us = 4 * plan->base_lease_us;
        plan->active_us = plan->base_lease_us * rng_between(rng, 8, 16);
        break;
    case BIAS_CROWD:
        bend_many(plan, rng, 20, 1);
        plan->service_us = 1000;
        break;
    case BIAS_QUEUE:
        bend_many(plan, rng, 10, 4);
        plan->turns = true;
        break;
    case BIAS_CALM:
    case BIAS_FROZEN:
    case BIAS_ODD: bend_calm(plan, rng); break;
    case BIAS_OUTSIDE:
        plan->outside = true;
        plan->counters_void = rng_one_in(rng, 2);
        break;
    default: break;
    }
    if (bias == BIAS_TOKENS || bias == BIAS_TOKENS_LOST) {
        plan->fencing = true;
        plan->mixed = false;
    }
}

static int64_t draw_error(struct rng *rng, uint64_t most_us)
{
    return (int64_t)rng_between(rng, 0, 2 * most_us) - (int64_t)most_us;
}

/*
 * Wall clocks. Tokens of a node that lost its counter rise by them alone: clients are right to within half a
 * max_lease, nodes are not behind by a whole one (the floor is clamped by their clocks). Where counters are
 * lost without a quarantine, only clocks that are right can help.
 */
static void draw_walls(struct plan *plan, struct rng *rng)
{
    for (uint32_t i = 0; i < plan->n_clients; i++) {
        struct plan_client *client = &plan->clients[i];

        client->wall_error_us = draw_error(rng, plan->max_lease_us / 100 * 45);
        if (!plan->keeps_counters && rng_one_in(rng, 3)) client->wall_error_us /= 16;
        if (plan->counters_void) client->wall_error_us = 0;
    }
    for (uint32_t i = 0; i < plan->n_nodes; i++) {
        int64_t error_us = draw_error(rng, plan->max_lease_us / 100 * 30);

        if (rng_one_in(rng, 4)) error_us = (int64_t)rng_between(rng, 0, 1u << 31) * 10;
        plan->node_offset_us[i] = (uint64_t)((int64_t)PLAN_EPOCH_US + error_us);
    }
}

/* Client and node together stay within the allowed rate error, at its very edge in half of the runs: slow
 * clients and fast nodes are what hurts. */
static void draw_clocks(struct plan *plan, struct rng *rng)
{
    uint64_t drift_ppm = plan->drift_ppm;
    int32_t for_client = (int32_t)rng_below(rng, drift_ppm - drift_ppm * drift_ppm / 1000000 - 2);
    /* By a client that is slow by c, a node that is fast by f is fast by (c + f) / (1 - c). */
    int32_t for_node = (int32_t)(drift_ppm - drift_ppm * (uint64_t)for_client / 1000000) - for_client - 1;
    bool edge = rng_one_in(rng, 2);

    for (uint32_t i = 0; i < plan->n_clients; i++) {
        struct plan_client *client = &plan->clients[i];

        client->offset_us = rng_between(rng, 1, 1u << 31) * 100;
        client->rate_ppm = (int32_t)rng_between(rng, 0, 2 * (uint64_t)for_client) - for_client;
        if (edge && !rng_one_in(rng, 4)) client->rate_ppm = -for_client;
    }
    for (uint32_t i = 0; i < plan->n_nodes; i++) {
        plan->node_rate_ppm[i] = (int32_t)rng_between(rng, 0, 2 * (uint64_t)for_node) - for_node;
        if (edge && !rng_one_in(rng, 4)) plan->node_rate_ppm[i] = for_node;
        plan->delay_us[i] = (uint32_t)rng_between(rng, 40, 1500);
        /* A round trip takes a quarter of a node timeout: split votes are found out late. */
        if (plan->near_us != 0) plan->delay_us[i] = (uint32_t)plan->base_lease_us / 80;
    }
    if (plan->near_us != 0) plan->connect_timeout_us += plan->base_lease_us / 4;
    draw_walls(plan, rng);
}

static void draw_lock(struct plan *plan, struct plan_lock *lock, struct rng *rng)
{
    struct core_config *config = &lock->config;
    uint64_t lease_us = plan->base_lease_us;
    uint64_t allowance_us;

    if (rng_one_in(rng, 4)) lease_us = lease_us * rng_between(rng, 4, 8) / 4;
    lease_us -= lease_us % MS;
    allowance_us = validity_allowance_us(lease_us, plan->drift_ppm, PLAN_DRIFT_FIXED_US);
    *config = (struct core_config){
        .n_nodes = plan->n_nodes,
        .quorum = plan->quorum,
        .lease_us = lease_us,
        .renew_us = lease_us / 3,
        .wait_us = CORE_NEVER,
        .max_hold_us = CORE_NEVER,
        .node_timeout_us = lease_us / 10,
        .drift_ppm = plan->drift_ppm,
        .drift_fixed_us = PLAN_DRIFT_FIXED_US,
        .fencing = plan->fencing && !(plan->mixed && rng_one_in(rng, 3)),
    };
    if (rng_one_in(rng, 3)) config->wait_us = rng_between(rng, PLAN_WAIT_MIN_US, 4 * lease_us);
    if (rng_one_in(rng, 40)) config->wait_us = rng_between(rng, 1, PLAN_WAIT_MIN_US);
    if (rng_one_in(rng, 5)) config->wait_us = 0;
    if (rng_one_in(rng, 6)) config->renew_us = CORE_NEVER;
    if (rng_one_in(rng, 8)) config->min_valid_us = lease_us / rng_between(rng, 2, 8);
    if (rng_one_in(rng, 8)) config->max_hold_us = rng_between(rng, lease_us / 4, 4 * lease_us);
    if (rng_one_in(rng, 8)) config->lost_margin_us = rng_between(rng, 2 * allowance_us, lease_us / 3);
    /* What the options of the library allow: a renewal must be able to come in time. */
    if (config->renew_us != CORE_NEVER) {
        uint64_t margin_us = config->lost_margin_us != 0
                                 ? config->lost_margin_us
                                 : validity_lost_margin_us(lease_us, plan->drift_ppm, config->drift_fixed_us);

        while (config->renew_us + 2 * config->node_timeout_us + margin_us > lease_us - allowance_us)
            config->renew_us -= config->renew_us / 4;
    }
}

static void draw_locks(struct plan *plan, struct rng *rng, enum plan_bias bias)
{
    static const uint32_t drifts_ppm[] = {10000, 10000, 1000, 30000};

    plan->drift_ppm = drifts_ppm[rng_below(rng, 4)];
    draw_clocks(plan, rng);
    for (uint32_t i = 0; i < plan->n_locks; i++) {
        struct plan_lock *lock = &plan->locks[i];

        lock->client = (uint8_t)(i < plan->n_clients ? i : rng_below(rng, plan->n_clients));
        lock->key = (uint8_t)rng_below(rng, plan->n_keys);
        draw_lock(plan, lock, rng);
        /* Nothing but extends by hand: a lease that one of them lost is not mended by the next renewal. */
        if (bias == BIAS_LATE_EXECUTION && !rng_one_in(rng, 3)) lock->config.renew_us = CORE_NEVER;
        if (bias == BIAS_CROWD || plan->turns) {
            lock->config.wait_us = CORE_NEVER;
            lock->config.min_valid_us = 0;
        }
        if (plan->calm) lock->config.max_hold_us = CORE_NEVER;
        /* A lock that waits asks the arbiter first, and grants are orderly: here they must not be. */
        if ((bias == BIAS_TOKENS || bias == BIAS_LATE_CLIENT) && !rng_one_in(rng, 3)) lock->config.wait_us = 0;
    }
}

/* Clients that all list one server twice do no harm together; some beside others do. */
static void draw_twins(struct plan *plan, struct rng *rng, enum plan_bias bias)
{
    uint8_t instead = (uint8_t)rng_below(rng, plan->n_nodes);
    uint8_t twin = (uint8_t)((instead + rng_between(rng, 1, plan->n_nodes - 1)) % plan->n_nodes);

    if (bias != BIAS_TWINS && (bias != BIAS_NONE || !rng_one_in(rng, 16))) return;
    /* The one thing that it is found out by comes with the guard. */
    if (plan->guard == PLAN_GUARD_OFF) return;
    for (uint32_t i = 0; i < plan->n_clients; i++) {
        plan->clients[i].twins = i == 0 || (i > 1 && rng_one_in(rng, 2));
        plan->clients[i].twin = twin;
        plan->clients[i].twin_instead = instead;
    }
}

/* May this plan have a fault of that kind? */
static bool allows(const struct plan *plan, enum plan_fault_kind kind)
{
    bool guarded = plan->guard != PLAN_GUARD_OFF;
    bool covered = false;

    switch (kind) {
    case FAULT_CRASH_EMPTY:
    case FAULT_PROMOTE:
    case FAULT_FLIP: covered = guarded; break;
    /* Fenced acquires look at the guard as strict ones do. */
    case FAULT_FLUSH: covered = plan->guard == PLAN_GUARD_STRICT || (guarded && plan->fencing && !plan->mixed); break;
    case FAULT_FLIP_LIVE: covered = plan->guard == PLAN_GUARD_STRICT; break;
    case FAULT_BREAK:
    case FAULT_STEP_FORWARD:
    case FAULT_SUSPEND: return plan->outside;
    case FAULT_STEP_BACK: return !plan->counters_void;
    default: return true;
    }
    /* Counters are lost: either the quarantine makes up for it, and no clock that steps can end that early, or
     * nothing does. */
    if (plan->keeps_counters) return false;
    return plan->outside ? plan->counters_void : covered;
}

static enum plan_fault_kind draw_bent(struct rng *rng, enum plan_bias bias)
{
    static const enum plan_fault_kind losses[] = {FAULT_CRASH_EMPTY, FAULT_CRASH_EMPTY, FAULT_PROMOTE, FAULT_FLIP};
    static const enum plan_fault_kind cuts[] = {FAULT_CUT_TO, FAULT_CUT_FROM, FAULT_RESET_LATE, FAULT_FREEZE};
    static const enum plan_fault_kind outside[] = {FAULT_STEP_FORWARD, FAULT_SUSPEND, FAULT_FLUSH, FAULT_FLIP_LIVE};

    switch (bias) {
    case BIAS_LATE_EXECUTION:
        if (rng_one_in(rng, 2)) return FAULT_RESET_LATE;
        if (rng_one_in(rng, 3)) return FAULT_SLOW;
        break;
    case BIAS_LATE_CLIENT:
        if (rng_one_in(rng, 3)) return FAULT_PAUSE_CALLBACK;
        if (rng_one_in(rng, 2)) return FAULT_PAUSE;
        break;
    case BIAS_LOSS:
    case BIAS_TOKENS_LOST:
        if (!rng_one_in(rng, 3)) return losses[rng_below(rng, 4)];
        break;
    case BIAS_TOKENS:
        if (rng_one_in(rng, 3)) return FAULT_FREEZE;
        if (!rng_one_in(rng, 4)) return FAULT_PAUSE_SEND;
        break;
    case BIAS_TWINS:
        if (!rng_one_in(rng, 3)) return cuts[rng_below(rng, 4)];
        break;
    case BIAS_OUTSIDE:
        if (rng_one_in(rng, 2)) return outside[rng_below(rng, 4)];
        break;
    default: break;
    }
    return FAULT_KINDS;
}

static enum plan_fault_kind draw_kind(const struct plan *plan, struct rng *rng, enum plan_bias bias)
{
    for (;;) {
        enum plan_fault_kind kind = draw_bent(rng, bias);

        /* That one is not among many: draw_odd. */
        if (kind == FAULT_KINDS) kind = (enum plan_fault_kind)rng_below(rng, FAULT_ODD);
        if (!allows(plan, kind)) continue;
        if (kind == FAULT_DEATH && !rng_one_in(rng, 3)) continue;
        if ((kind == FAULT_DEATH_CALLBACK || kind == FAULT_DEATH_SEND) && !rng_one_in(rng, 3)) continue;
        return kind;
    }
}

/* How long a fault lasts: around a lease is where the protocol is tender. */
static uint64_t draw_length(const struct plan *plan, struct rng *rng)
{
    uint64_t lease_us = plan->base_lease_us;

    switch (rng_below(rng, 4)) {
    case 0: return rng_between(rng, 1, lease_us / 10);
    case 1: return rng_between(rng, lease_us / 10, lease_us);
    case 2: return rng_between(rng, lease_us * 3 / 4, lease_us * 5 / 4);
    default: return rng_between(rng, lease_us, 3 * lease_us);
    }
}

static void draw_faults(struct plan *plan, struct rng *rng, enum plan_bias bias)
{
    uint64_t n = 0;

    if (plan->calm) return;
    if (!rng_one_in(rng, 10)) n = rng_between(rng, 1, 6);
    if (rng_one_in(rng, 3)) n = rng_between(rng, 7, 20);
    if (rng_one_in(rng, 12)) n = rng_between(rng, 21, PLAN_FAULTS_MAX);
    if (bias != BIAS_NONE) n = rng_between(rng, 8, PLAN_FAULTS_MAX);
    if (bias == BIAS_CROWD) n = 0;
    if (bias == BIAS_QUEUE) n = rng_below(rng, 9);
    plan->n_faults = (uint32_t)n;
    for (uint32_t i = 0; i < plan->n_faults; i++) {
        struct plan_fault *fault = &plan->faults[i];

        fault->kind = draw_kind(plan, rng, bias);
        fault->at_us = rng_below(rng, plan->active_us);
        fault->for_us = draw_length(plan, rng);
        fault->nth = (uint32_t)rng_between(rng, 1, 12);
        if (fault->kind == FAULT_PAUSE_SEND || fault->kind == FAULT_DEATH_SEND) {
            fault->nth = (uint32_t)rng_between(rng, 1, 48);
        }
        fault->client = (uint8_t)rng_below(rng, plan->n_clients);
        fault->node = (uint8_t)rng_below(rng, plan->n_nodes);
        fault->all = rng_one_in(rng, 2);
        if (bias == BIAS_TWINS) fault->all = false;
        if (fault->kind == FAULT_STEP_BACK) {
            uint64_t most_us = plan->max_lease_us / 100 * 40;

            /* All together: a clock that is behind by a max_lease is no floor for tokens any more. */
            if (fault->for_us > most_us - plan->back_us) fault->for_us = most_us - plan->back_us;
            plan->back_us += fault->for_us;
        }
    }
    for (uint32_t i = 0; i < plan->n_nodes - plan->quorum && bias != BIAS_CROWD && bias != BIAS_QUEUE; i++) {
        if (rng_one_in(rng, 8)) plan->node_gone[rng_below(rng, plan->n_nodes)] = true;
    }
}

/* The order of arbiters, the same for all locks of a key. */
static void draw_arbiters(struct plan *plan, struct rng *rng)
{
    uint8_t order[PLAN_KEYS_MAX][PLAN_NODES_MAX];

    for (uint32_t key = 0; key < PLAN_KEYS_MAX; key++) {
        uint32_t first = (uint32_t)rng_below(rng, plan->n_nodes);

        for (uint32_t i = 0; i < plan->n_nodes; i++) order[key][i] = (uint8_t)((first + i) % plan->n_nodes);
    }
    for (uint32_t i = 0; i < plan->n_locks; i++) {
        memcpy(plan->locks[i].config.arbiters, order[plan->locks[i].key], plan->n_nodes);
    }
}

/* One node of those that a quorum can do without. */
static void freeze_for_good(struct plan *plan, uint8_t node, uint64_t at_us)
{
    plan->faults[plan->n_faults++] =
        (struct plan_fault){.kind = FAULT_FREEZE, .at_us = at_us, .for_us = 1u << 31, .node = node, .for_ever = true};
}

static void draw_waiting(struct plan *plan, struct rng *rng, enum plan_bias bias)
{
    static const uint32_t lost_permille[] = {0, 0, 0, 0, 50, 300, 1000};

    draw_arbiters(plan, rng);
    if (plan->calm) {
        uint32_t delay_us = (uint32_t)rng_between(rng, 300, 700);

        for (uint32_t i = 0; i < plan->n_nodes; i++) plan->delay_us[i] = delay_us;
        plan->round_trip_us = 2 * delay_us + plan->service_us;
        plan->requests_most = CALM_REQUESTS + CALM_REQUESTS_EACH * plan->n_locks;
        plan->handover_most_us = CALM_TRIPS * plan->round_trip_us + CALM_LATE_US;
        if (bias == BIAS_FROZEN) {
            freeze_for_good(plan, plan->locks[0].config.arbiters[0], plan->active_us / 8);
        }
        return;
    }
    plan->lost_permille = lost_permille[rng_below(rng, 7)];
    if (rng_one_in(rng, bias == BIAS_QUEUE ? 2 : 8)) {
        for (uint32_t i = 0; i < plan->n_locks; i++) plan->locks[i].peer = rng_one_in(rng, 2);
    }
    if (bias == BIAS_QUEUE && plan->quorum < plan->n_nodes && rng_one_in(rng, 2)) {
        freeze_for_good(plan, (uint8_t)rng_below(rng, plan->n_nodes), rng_below(rng, plan->active_us));
    }
}

static uint32_t nodes_out_for_good(const struct plan *plan)
{
    bool out[PLAN_NODES_MAX] = {false};
    uint32_t n = 0;

    for (uint32_t i = 0; i < plan->n_faults; i++) {
        if (plan->faults[i].for_ever) out[plan->faults[i].node] = true;
    }
    for (uint32_t i = 0; i < plan->n_nodes; i++) n += out[i] || plan->node_gone[i];
    return n;
}

/* On a node that a quorum can do without, beside those that are out for good. */
static void draw_odd(struct plan *plan, struct rng *rng, enum plan_bias bias)
{
    struct plan_fault *fault = &plan->faults[plan->n_faults];
    bool wanted = bias == BIAS_ODD || ((bias == BIAS_NONE || bias == BIAS_QUEUE) && rng_one_in(rng, 8));

    if (!wanted || plan->n_faults == PLAN_FAULTS_MAX) return;
    if (nodes_out_for_good(plan) >= plan->n_nodes - plan->quorum) return;
    *fault = (struct plan_fault){.kind = FAULT_ODD,
                                 .at_us = rng_below(rng, plan->active_us),
                                 .for_us = 1u << 31,
                                 .node = (uint8_t)rng_below(rng, plan->n_nodes),
                                 .nth = (uint32_t)rng_below(rng, plan->n_keys),
                                 .for_ever = true};
    plan->n_faults++;
    if (bias != BIAS_ODD) return;
    fault->node = plan->locks[0].config.arbiters[0];
    fault->at_us = plan->active_us / 8;
    /* Waiters have to find out by their polls. */
    plan->handover_most_us = ODD_FOUND_US;
}

/* Now and then a situation of waiting. */
static enum plan_bias draw_situation(struct rng *rng)
{
    if (rng_one_in(rng, QUEUE_ONE_IN)) return BIAS_QUEUE;
    return rng_one_in(rng, CALM_ONE_IN) ? BIAS_CALM : BIAS_NONE;
}

void plan_make(struct plan *plan, uint64_t seed, enum plan_bias bias)
{
    struct rng rng;

    rng_seed(&rng, seed, 5);
    if (bias == BIAS_NONE) bias = draw_situation(&rng);
    memset(plan, 0, sizeof(*plan));
    plan->seed = seed;
    rng_seed(&rng, seed, 1);
    draw_shape(plan, &rng);
    draw_rules(plan, &rng);
    bend(plan, &rng, bias);
    draw_locks(plan, &rng, bias);
    draw_twins(plan, &rng, bias);
    rng_seed(&rng, seed, 2);
    draw_faults(plan, &rng, bias);
    rng_seed(&rng, seed, 4);
    draw_waiting(plan, &rng, bias);
    rng_seed(&rng, seed, 7);
    draw_odd(plan, &rng, bias);
}
