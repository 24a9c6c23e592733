/* SPDX-License-Identifier: BSD-3-Clause */
/* core_world.h - what the bytes of fuzz_core decide about a lock, and what its nodes have said */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/core.h"
#include "core/nodeclock.h"
#include "core/slots.h"
#include "feed.h"

#define NODES_MAX  7
#define FLYING_MAX 256
#define START_US   1000000000ull

struct flying {
    struct core_command command;
    uint32_t generation;
};

struct model_node {
    enum node_state state;
    uint32_t generation, generations;
    uint64_t yes_until_us; /* the latest end that a yes of the present attempt can justify */
    uint64_t yes_sent_us;  /* when that yes was asked for */
    uint8_t yes_slot;      /* that it named */
    uint64_t counter;      /* of fencing: never goes back */
    uint64_t ahead_us;     /* its clock before ours: grows with each step */
    struct nodeclock clock;
    uint64_t read_ahead_us; /* as it was at the latest reading */
};

struct world {
    const uint8_t *data;
    size_t left;
    uint64_t now_us;
    struct core_config config;
    struct core_config successors[2]; /* of the owners that it was handed to: the lock has one of them */
    uint32_t handed, first_arbiter;
    struct core_lock *lock;
    struct core_slots *slots; /* with permits */
    struct model_node nodes[NODES_MAX];
    struct flying flying[FLYING_MAX];
    uint32_t n_flying;
    uint64_t token_count;
    uint64_t attempt;
    uint64_t fence;            /* of the latest grant */
    bool no_attempt, no_round; /* the nodes have no room */
    /* What is owed to the owner. */
    bool acquiring, extending, releasing, held;
    uint64_t wait_until_us; /* of the acquire in flight */
};

static inline bool can_talk(const struct model_node *node)
{
    return node->state == NODE_READY || node->state == NODE_QUARANTINED;
}

static inline uint8_t next_byte(struct world *world)
{
    if (world->left == 0) return 0;
    world->left--;
    return *world->data++;
}

static inline uint64_t next_number(struct world *world)
{
    uint64_t number = next_byte(world);

    return number | (uint64_t)next_byte(world) << 8;
}

/* One of 16 magnitudes, so that a byte or two reach from a microsecond to a day. */
static inline uint64_t next_span_us(struct world *world)
{
    uint8_t byte = next_byte(world);

    return (1ull + (byte & 15)) << (2 * (byte >> 4));
}

static inline uint64_t allowance_us(const struct core_config *config, uint64_t lease_us)
{
    return (lease_us * config->drift_ppm + 999999) / 1000000 + config->drift_fixed_us;
}

/* Most are ordinary locks. */
static inline void choose_mode(struct world *world, uint8_t shape)
{
    struct core_config *config = &world->config;
    uint32_t mode = shape / NODES_MAX % 8;

    if (mode == 5) config->permits = 1 + next_byte(world) % 9;
    if (mode == 6) config->shared = 1;
    /* Of two keys. */
    if (mode == 7) config->shared = 2;
    config->reads = mode == 6;
    if (config->permits == 0) return;
    world->slots = calloc(1, core_slots_size(config->permits));
    CHECK(world->slots != NULL);
    core_slots_init(world->slots, config->permits);
}

/* The bounds that a client's options obey: a renewal can come in time. */
static inline void choose_config(struct world *world)
{
    static const uint64_t waits_us[4] = {0, 50000, 3000000, CORE_NEVER};
    struct core_config *config = &world->config;
    uint8_t bits = next_byte(world);
    uint8_t shape = next_byte(world);
    uint64_t room_us;

    config->n_nodes = 1 + shape % NODES_MAX;
    config->fencing = shape >= 128;
    config->quorum = (bits & 1) != 0 ? config->n_nodes : config->n_nodes / 2 + 1;
    config->lease_us = 10000 + next_number(world) * 500;
    config->wait_us = waits_us[bits >> 1 & 3];
    config->drift_ppm = (bits & 8) != 0 ? 10000 : next_byte(world) * 100u;
    config->drift_fixed_us = 2000;
    config->lost_margin_us = (bits & 16) != 0 ? 0 : config->lease_us / 8;
    config->node_timeout_us = config->lease_us / 10;
    config->max_hold_us = (bits & 32) != 0 ? CORE_NEVER : config->lease_us * (1 + next_byte(world) % 8);
    room_us = config->lease_us - allowance_us(config, config->lease_us);
    config->min_valid_us = (bits & 64) != 0 ? 0 : room_us / 2;
    config->renew_us = (bits & 128) != 0 ? config->lease_us / 3 : CORE_NEVER;
    for (uint32_t i = 0; i < config->n_nodes; i++) config->arbiters[i] = (uint8_t)i;
    choose_mode(world, shape);
    world->first_arbiter = bits % config->n_nodes; /* by the key's hash */
}

/* Only of the slot that is held. */
static inline uint64_t yes_until_us(const struct world *world, uint32_t index)
{
    const struct model_node *node = &world->nodes[index];
    bool counts = world->config.permits == 0 || node->yes_slot == core_slot(world->lock);

    return counts ? node->yes_until_us : 0;
}

static inline uint64_t quorum_end_us(const struct world *world)
{
    uint64_t best_us = 0;

    /* The largest end that at least Q nodes reach. */
    for (uint32_t i = 0; i < world->config.n_nodes; i++) {
        uint64_t end_us = yes_until_us(world, i);
        uint32_t reach = 0;

        for (uint32_t k = 0; k < world->config.n_nodes; k++) reach += yes_until_us(world, k) >= end_us;
        if (reach >= world->config.quorum && end_us > best_us) best_us = end_us;
    }
    return best_us;
}
