/* SPDX-License-Identifier: BSD-3-Clause */
/* rest.c - what servers still hold when all was released, and when every lease has ended */
#include <string.h>

#include "world.h"

#define READERS "quorlock:readers:"

struct rest {
    struct world *world;
    uint32_t server;
    bool silent;
    uint64_t last_ms; /* when the last reader of a set ends, by the server's clock */
};

/* It talks to neither entry of a server that it lists twice, so it cannot release there. */
static bool is_expelled(const struct rest *rest, uint32_t client)
{
    const struct plan_client *plan = &rest->world->plan->clients[client];

    return plan->twins && plan->twin == rest->server;
}

/* Of a client that is there, by its label: others' debts nobody pays. */
static bool has_to_release(const struct rest *rest, const char *owner, size_t owner_length)
{
    const struct world *world = rest->world;

    for (uint32_t i = 0; i < world->plan->n_clients; i++) {
        size_t length = strlen(world->clients[i].label);

        if (owner_length <= length || memcmp(owner, world->clients[i].label, length) != 0) continue;
        return world->clients[i].state == CLIENT_OPEN && !is_expelled(rest, i);
    }
    return false;
}

static void left_behind(const struct rest *rest, const char *name, size_t length, const char *owner,
                        size_t owner_length)
{
    judge_violated(rest->world, I8_LEFT_BEHIND, "the key %.*s of %.*s is left on server %u %s", (int)length, name,
                   (int)owner_length, owner, rest->server, rest->silent ? "at rest" : "although all was released");
}

/* Redis ends no entry by itself, but one that has expired is no more than a key that has: others whose lease is longer
 * keep the set, and nobody has to release it. */
static void look_at_reader(void *arg, const char *member, size_t length, double score)
{
    struct rest *rest = arg;

    if ((uint64_t)score > rest->last_ms) rest->last_ms = (uint64_t)score;
    if ((uint64_t)score <= server_wall_us(rest->world->servers[rest->server]) / 1000) return;
    if (has_to_release(rest, member, length)) left_behind(rest, READERS, strlen(READERS) - 1, member, length);
}

static void look_at_readers(struct rest *rest, const char *name, size_t length, uint64_t expires_ms)
{
    struct server *of = rest->world->servers[rest->server];

    rest->last_ms = 0;
    model_members(server_model(of), name, length, server_wall_us(of), look_at_reader, rest);
    if (expires_ms != 0 && expires_ms <= rest->last_ms) return;
    judge_violated(rest->world, I8_LEFT_BEHIND, "the key %.*s on server %u outlives its last reader by %llu ms",
                   (int)length, name, rest->server, (unsigned long long)(expires_ms - rest->last_ms));
}

static bool begins(const char *name, size_t length, const char *front)
{
    return length > strlen(front) && memcmp(name, front, strlen(front)) == 0;
}

/* What is kept beside locks, and how many permits a name has, ends by itself; slots are locks. */
static void look_at_rest(void *arg, const char *name, size_t length, const struct model_value *value)
{
    struct rest *rest = arg;
    bool slot = begins(name, length, "quorlock:slot:"), lock = slot || !begins(name, length, "quorlock:");
    const char *owner = value->owner != NULL ? value->owner : "";

    if (!rest->silent && begins(name, length, READERS)) look_at_readers(rest, name, length, value->expires_ms);
    if (!lock && (begins(name, length + 1, "quorlock:guard") || begins(name, length, "quorlock:fence:"))) return;
    if (value->expires_ms == 0 || (value->type == MODEL_OTHER && lock)) return;
    if (rest->silent || (lock && has_to_release(rest, owner, value->owner_length)))
        left_behind(rest, name, length, owner, value->owner_length);
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
