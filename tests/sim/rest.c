/* SPDX-License-Identifier: BSD-3-Clause */
/* rest.c - what servers still hold when all was released, and when every lease has ended */
#include <string.h>

#include "world.h"

struct rest {
    struct world *world;
    uint32_t server;
    bool silent;
};

/* It talks to neither entry of a server that it lists twice, so it cannot release there. */
static bool is_expelled(const struct rest *rest, uint32_t client)
{
    const struct plan_client *plan = &rest->world->plan->clients[client];

    return plan->twins && plan->twin == rest->server;
}

/* Of a client that is there, by its label: others' debts nobody pays. */
static bool has_to_release(const struct rest *rest, const struct model_value *value)
{
    const struct world *world = rest->world;

    for (uint32_t i = 0; i < world->plan->n_clients; i++) {
        size_t length = strlen(world->clients[i].label);

        if (value->owner_length <= length || memcmp(value->owner, world->clients[i].label, length) != 0) continue;
        return world->clients[i].state == CLIENT_OPEN && !is_expelled(rest, i);
    }
    return false;
}

static void look_at_rest(void *arg, const char *name, size_t length, const struct model_value *value)
{
    const struct rest *rest = arg;
    struct world *world = rest->world;
    bool ours = length > 9 && memcmp(name, "quorlock:", 9) == 0;

    if (ours || value->type == MODEL_OTHER || value->expires_ms == 0) return;
    if (!rest->silent && !has_to_release(rest, value)) return;
    judge_violated(world, I8_LEFT_BEHIND, "the key %.*s of %.*s is left on server %u %s", (int)length, name,
                   (int)(value->owner != NULL ? value->owner_length : 0), value->owner != NULL ? value->owner : "",
                   rest->server, rest->silent ? "at rest" : "although all was released");
}

static void look_at_servers(struct world *world, bool silent)
{
    for (uint32_t i = 0; i < world->plan->n_servers; i++) {
        struct rest rest = {.world = world, .server = i, .silent = silent};

        /* A clock that was set back keeps keys for longer. What was executed after its release was not released. */
        if (world->sites[i].stepped_back || operator_is_out(world, i) || (!silent && world->sites[i].late)) continue;
        model_each(server_model(world->servers[i]), server_wall_us(world->servers[i]), look_at_rest, &rest);
    }
}

void rest_quiet(struct world *world)
{
    look_at_servers(world, false);
}

void rest_silent(struct world *world)
{
    look_at_servers(world, true);
}
