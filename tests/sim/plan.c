/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan.h"

#include <string.h>

#include "../../src/core/validity.h"
#include "rng.h"

#define MS UINT64_C(1000)

static const char *const fault_texts[] = {
#define TEXT(name, text) text,
    PLAN_FAULT_MAP(TEXT)
#undef TEXT
};

static const char *const fault_names[] = {
#define NAME(name, text) #name,
    PLAN_FAULT_MAP(NAME)
#undef NAME
};

const char *plan_fault_text(enum plan_fault_kind kind)
{
    return fault_texts[kind];
}

const char *plan_fault_name(enum plan_fault_kind kind)
{
    return fault_names[kind];
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
    plan->max_lease_us = 4 * plan->base_lease_us;
    plan->active_us = plan->base_lease_us * rng_between(rng, 4, 9);
    plan->stall_us = plan->base_lease_us * rng_between(rng, 2, 12) / 4;
    plan->connect_timeout_us = rng_between(rng, 10, 60) * MS;
    plan->reconnect_min_us = rng_between(rng, 1, 20) * MS;
    plan->reconnect_max_us = rng_between(rng, 20, 200) * MS;
    plan->late_us = plan->base_lease_us * rng_between(rng, 1, 8) / 4;
    plan->memory_lost = rng_one_in(rng, 8);
    plan->strays = rng_one_in(rng, 8);
    plan->long_extends = rng_one_in(rng, 3);
}

/* Client and node together stay within the allowed rate error, at its very edge in half of the runs: slow
 * clients and fast nodes are what hurts. */
static void draw_clocks(struct plan *plan, struct rng *rng, uint32_t drift_ppm)
{
    int32_t for_client = (int32_t)rng_below(rng, drift_ppm + 1);
    int32_t for_node = (int32_t)drift_ppm - for_client;
    bool edge = rng_one_in(rng, 2);

    for (uint32_t i = 0; i < plan->n_clients; i++) {
        struct plan_client *client = &plan->clients[i];

        client->offset_us = rng_between(rng, 1, 1u << 31) * 100;
        client->rate_ppm = (int32_t)rng_between(rng, 0, 2 * (uint64_t)for_client) - for_client;
        if (edge && !rng_one_in(rng, 4)) client->rate_ppm = -for_client;
    }
    for (uint32_t i = 0; i < plan->n_nodes; i++) {
        plan->node_offset_us[i] = rng_between(rng, 1, 1u << 31) * 1000;
        plan->node_rate_ppm[i] = (int32_t)rng_between(rng, 0, 2 * (uint64_t)for_node) - for_node;
        if (edge && !rng_one_in(rng, 4)) plan->node_rate_ppm[i] = for_node;
        plan->delay_us[i] = (uint32_t)rng_between(rng, 40, 1500);
    }
}

static void draw_lock(struct plan *plan, struct plan_lock *lock, struct rng *rng, uint32_t drift_ppm)
{
    struct core_config *config = &lock->config;
    uint64_t lease_us = plan->base_lease_us;
    uint64_t allowance_us;

    if (rng_one_in(rng, 4)) lease_us = lease_us * rng_between(rng, 4, 8) / 4;
    lease_us -= lease_us % MS;
    allowance_us = validity_allowance_us(lease_us, drift_ppm, 2 * MS);
    *config = (struct core_config){
        .n_nodes = plan->n_nodes,
        .quorum = plan->quorum,
        .lease_us = lease_us,
        .renew_us = lease_us / 3,
        .wait_us = CORE_NEVER,
        .max_hold_us = CORE_NEVER,
        .node_timeout_us = lease_us / 10,
        .drift_ppm = drift_ppm,
        .drift_fixed_us = 2 * MS,
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
                                 : validity_lost_margin_us(lease_us, drift_ppm, config->drift_fixed_us);

        while (config->renew_us + 2 * config->node_timeout_us + margin_us > lease_us - allowance_us)
            config->renew_us -= config->renew_us / 4;
    }
}

static void draw_locks(struct plan *plan, struct rng *rng, enum plan_bias bias)
{
    static const uint32_t drifts_ppm[] = {10000, 10000, 1000, 30000};
    uint32_t drift_ppm = drifts_ppm[rng_below(rng, 4)];

    draw_clocks(plan, rng, drift_ppm);
    for (uint32_t i = 0; i < plan->n_locks; i++) {
        struct plan_lock *lock = &plan->locks[i];

        lock->client = (uint8_t)(i < plan->n_clients ? i : rng_below(rng, plan->n_clients));
        lock->key = (uint8_t)rng_below(rng, plan->n_keys);
        draw_lock(plan, lock, rng, drift_ppm);
        /* Nothing but extends by hand: a lease that one of them lost is not mended by the next renewal. */
        if (bias == BIAS_LATE_EXECUTION && !rng_one_in(rng, 3)) lock->config.renew_us = CORE_NEVER;
    }
}

static enum plan_fault_kind draw_kind(const struct plan *plan, struct rng *rng, enum plan_bias bias)
{
    for (;;) {
        enum plan_fault_kind kind = (enum plan_fault_kind)rng_below(rng, FAULT_KINDS);
        bool loses = kind == FAULT_CRASH_EMPTY || kind == FAULT_BREAK;

        if (loses && !plan->memory_lost) continue;
        if (kind == FAULT_DEATH && !rng_one_in(rng, 3)) continue;
        if (bias == BIAS_LATE_EXECUTION && rng_one_in(rng, 2)) return FAULT_RESET_LATE;
        if (bias == BIAS_LATE_EXECUTION && rng_one_in(rng, 3)) return FAULT_SLOW;
        if (bias == BIAS_LATE_CLIENT && rng_one_in(rng, 3)) return FAULT_PAUSE_TELL;
        if (bias == BIAS_LATE_CLIENT && rng_one_in(rng, 2)) return FAULT_PAUSE;
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

    if (!rng_one_in(rng, 10)) n = rng_between(rng, 1, 6);
    if (rng_one_in(rng, 3)) n = rng_between(rng, 7, 20);
    if (rng_one_in(rng, 12)) n = rng_between(rng, 21, PLAN_FAULTS_MAX);
    if (bias != BIAS_NONE) n = rng_between(rng, 8, PLAN_FAULTS_MAX);
    plan->n_faults = (uint32_t)n;
    for (uint32_t i = 0; i < plan->n_faults; i++) {
        struct plan_fault *fault = &plan->faults[i];

        fault->kind = draw_kind(plan, rng, bias);
        fault->at_us = rng_below(rng, plan->active_us);
        fault->for_us = draw_length(plan, rng);
        fault->nth = (uint32_t)rng_between(rng, 1, 12);
        if (fault->kind == FAULT_PAUSE_SEND) fault->nth *= 4;
        fault->client = (uint8_t)rng_below(rng, plan->n_clients);
        fault->node = (uint8_t)rng_below(rng, plan->n_nodes);
        fault->all = rng_one_in(rng, 2);
    }
    for (uint32_t i = 0; i < plan->n_nodes - plan->quorum; i++) {
        if (rng_one_in(rng, 8)) plan->node_gone[rng_below(rng, plan->n_nodes)] = true;
    }
}

void plan_make(struct plan *plan, uint64_t seed, enum plan_bias bias)
{
    struct rng rng;

    memset(plan, 0, sizeof(*plan));
    plan->seed = seed;
    rng_seed(&rng, seed, 1);
    draw_shape(plan, &rng);
    if (bias == BIAS_LATE_EXECUTION) plan->long_extends = true;
    if (bias != BIAS_NONE) plan->memory_lost = false;
    draw_locks(plan, &rng, bias);
    rng_seed(&rng, seed, 2);
    draw_faults(plan, &rng, bias);
}
