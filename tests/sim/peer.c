/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer.c - a plain peer, which takes a lock, holds it for a while and releases it; it knows no guard
 */
#include <stdio.h>
#include <string.h>

#include "judge.h"
#include "operator.h"
#include "rare.h"
#include "trace.h"

#include "peer.h"

static bool can_ask(struct site *site)
{
    const struct model_manners *manners = model_manners(site_model(site));

    return !site->down && world_now(site->world) >= site->frozen_until_us && !manners->replica && !manners->busy &&
           !manners->loading && !manners->full && !manners->misconf;
}

static bool holds(struct site *site, const char *name, const char *token)
{
    struct server *server = site->world->servers[site->index];
    struct model_value value;

    return model_look(site_model(site), name, strlen(name), server_wall_us(server), &value) && value.owner != NULL &&
           value.owner_length == strlen(token) && memcmp(value.owner, token, value.owner_length) == 0;
}

static void give_back(struct world *world)
{
    struct peer *peer = &world->peer;
    const char *name = world_full_key(world, peer->key);

    if (peer->held) rare_abandoned(world, 1u << peer->key);
    peer->held = false;
    for (uint32_t i = 0; i < world->plan->n_servers; i++) {
        struct site *site = &world->sites[i];

        if (can_ask(site) && holds(site, name, peer->token)) (void)site_command(site, "DEL", name, NULL, NULL);
        site_look_again(site);
    }
}

static void on_peer(void *arg)
{
    give_back(arg);
}

/* In our way of writing a lock, or in another one. */
static void ask(struct site *site, const char *name, const char *lease, bool as_hash)
{
    struct server *server = site->world->servers[site->index];
    const char *const words[] = {"SET", name, site->world->peer.token, "NX", "PX", lease};
    struct model_value value;

    if (!as_hash) {
        (void)model_do(site_model(site), server_wall_us(server), words, 6);
    } else if (!model_look(site_model(site), name, strlen(name), server_wall_us(server), &value)) {
        (void)site_command(site, "HSET", name, site->world->peer.token, "1");
        (void)site_command(site, "PEXPIRE", name, lease, NULL);
    }
}

void peer_takes(struct world *world, const struct plan_fault *fault)
{
    struct peer *peer = &world->peer;
    uint64_t lease_us = world->plan->lease_ms * MS;
    const char *name = world_full_key(world, fault->key);
    char lease[24];
    uint32_t votes = 0;

    if (peer->moment.index != 0) return;
    peer->key = fault->key;
    (void)snprintf(peer->token, sizeof(peer->token), "peer-%llu", (unsigned long long)++world->runs);
    (void)snprintf(lease, sizeof(lease), "%llu", (unsigned long long)(lease_us / MS));
    for (uint32_t i = 0; i < world->plan->n_servers; i++) {
        struct site *site = &world->sites[i];

        if (!can_ask(site) || (!fault->all && i != fault->server)) continue;
        ask(site, name, lease, fault->nth % 3 == 0);
        votes += holds(site, name, peer->token);
        site_look_again(site);
    }
    peer->held = votes > world->plan->n_servers / 2;
    TRACE(world, "peer      %s key %u, on %u servers", peer->held ? "takes" : "has in part", fault->key, votes);
    peer->until_us = world_now(world) + lease_us - lease_us / 1000 * (world->plan->drift_ppm / 900) - 3 * MS;
    world->totals->of[TOTAL_PEER_HELD] += peer->held;
    peer->moment = (struct moment){.happen = on_peer, .arg = world};
    if (peer->held) judge_peer(world);
    queue_set(&world->queue, &peer->moment, world_now(world) + lease_us / (peer->held ? 2 : 64));
}
