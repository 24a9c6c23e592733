/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rest.c - what servers still hold of ended attempts: when all locks are released, and when every lease has ended
 *
 * A request that is executed late, behind the release, may leave a key of an ended attempt. GIVEN_UP_US after that, or
 * after the last fault, a living client must have released that key (I14). Other keys that nobody holds end with their
 * lease before.
 */
#include <string.h>

#include "holds.h"
#include "judge.h"
#include "keep.h"
#include "operator.h"
#include "passing.h"

#include "rest.h"

#define READERS     "quorlock:readers:"
#define GUARD       "quorlock:guard"
#define GIVEN_UP_US UINT64_C(21000000) /* and a little, for leases of 20 s */

struct rest {
    struct world *world;
    uint32_t server;
    bool silent;
    enum invariant invariant;
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

    if (keep_may_stand(world, world_hash(owner, owner_length))) return false;
    if (passing_may_stand(world, world_hash(owner, owner_length))) return false;
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
    judge_violated(rest->world, rest->invariant, "the key %.*s of %.*s is left on server %u %s", (int)length, name,
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

/* What is kept beside locks, and how many permits a name has, ends by itself; slots are locks. All but the guard stands
 * under the prefix. */
static void look_at_rest(void *arg, const char *name, size_t length, const struct model_value *value)
{
    struct rest *rest = arg;
    size_t n = 0;
    const char *bare = world_bare(rest->world, name, length, &n), *owner = value->owner != NULL ? value->owner : "";
    bool lock;

    if (length == strlen(GUARD) && memcmp(name, GUARD, length) == 0) return;
    if (bare == NULL) {
        judge_violated(rest->world, I8_LEFT_BEHIND, "the key %.*s on server %u is outside of the prefix", (int)length,
                       name, rest->server);
        return;
    }
    lock = begins(bare, n, "quorlock:slot:") || !begins(bare, n, "quorlock:");
    if (!rest->silent && begins(bare, n, READERS)) look_at_readers(rest, name, length, value->expires_ms);
    if (!lock && begins(bare, n, "quorlock:fence:")) return;
    /* A dead client may be the last of a queue, which no lock depends on. */
    if (begins(bare, n + 1, "quorlock:clock") || begins(bare, n, "quorlock:queue:") ||
        begins(bare, n, "quorlock:intents:"))
        return;
    if (value->expires_ms == 0 || (value->type == MODEL_OTHER && lock)) return;
    if (rest->silent || (lock && has_to_release(rest, owner, value->owner_length)))
        left_behind(rest, name, length, owner, value->owner_length);
}

/* ---- attempts that have ended ---- */

/* Do leases outlive the time that is left to release? And may clients talk to all servers again? */
static bool is_lasting(const struct world *world)
{
    return world->plan->max_lease_ms * MS > GIVEN_UP_US && !world->plan->changes && world->reconfigures == 0;
}

static bool is_judged(const struct world *world, uint32_t server)
{
    const struct site *site = &world->sites[server];

    return is_lasting(world) && site->late && !site->old && !operator_is_out(world, server);
}

static uint64_t later(uint64_t a_us, uint64_t b_us)
{
    return a_us > b_us ? a_us : b_us;
}

bool rest_is_due(const struct world *world)
{
    uint64_t now_us = world_now(world);

    for (uint32_t i = 0; i < world->plan->n_servers; i++) {
        uint64_t late_us = world->sites[i].executed_late_us;

        if (is_judged(world, i) && now_us < later(world->healed_us, late_us) + GIVEN_UP_US) return false;
    }
    return true;
}

static bool is_held(const struct world *world, uint64_t token_hash)
{
    for (uint32_t i = 0; i < world->plan->n_actors; i++) {
        const struct window *window = &world->actors[i].window;

        if (window->open && window->token_hash == token_hash) return true;
    }
    return false;
}

static struct given_up *given_up_of(struct world *world, uint32_t server, uint32_t place, uint64_t token_hash)
{
    struct given_up *new = NULL;

    for (uint32_t i = 0; i < world->n_given_up; i++) {
        struct given_up *one = &world->given_up[i];

        if (one->token_hash == token_hash && one->server == server && one->place == place) return one;
        if (one->token_hash == 0) new = one;
    }
    if (new == NULL && world->n_given_up < GIVEN_UP_MAX) new = &world->given_up[world->n_given_up++];
    if (new == NULL) return NULL;
    *new = (struct given_up){
        .token_hash = token_hash, .since_us = world_now(world), .server = (uint8_t)server, .place = (uint8_t)place};
    return new;
}

/* An attempt that is under way takes less time, and so does a grant that was not told yet. */
static void look_at_token(void *arg, uint32_t place, const char *token, size_t length)
{
    const struct rest *rest = arg;
    struct world *world = rest->world;
    uint64_t hash = world_hash(token, length), since_us;
    struct given_up *one;

    if (is_held(world, hash) || !has_to_release(rest, token, length)) return;
    one = given_up_of(world, rest->server, place, hash);
    if (one == NULL) return;
    one->stands = true;
    since_us = later(one->since_us, world->sites[rest->server].executed_late_us);
    if (world_now(world) < since_us + GIVEN_UP_US) return;
    judge_violated(world, I14_GIVEN_UP, "%.*s, which nobody holds, has been standing on server %u for %llu us, key %u",
                   (int)length, token, rest->server, (unsigned long long)(world_now(world) - one->since_us),
                   place / PLACES_OF_KEY);
}

void rest_look(struct world *world)
{
    if (!is_lasting(world)) return;
    for (uint32_t i = 0; i < world->n_given_up; i++) world->given_up[i].stands = false;
    for (uint32_t i = 0; i < world->plan->n_servers; i++) {
        struct rest rest = {.world = world, .server = i};

        if (!operator_is_out(world, i) && !world->sites[i].old) holds_each(world, i, look_at_token, &rest);
    }
    for (uint32_t i = 0; i < world->n_given_up; i++) {
        if (!world->given_up[i].stands) world->given_up[i].token_hash = 0;
    }
    world->totals->of[TOTAL_JUDGED_LATE] += world_now(world) >= world->healed_us + GIVEN_UP_US;
}

/* ---- all ---- */

static void look_at_server(struct rest *rest)
{
    struct server *of = rest->world->servers[rest->server];

    /* A clock that was set back keeps keys for longer. */
    if (rest->world->sites[rest->server].stepped_back || operator_is_out(rest->world, rest->server)) return;
    model_each(server_model(of), server_wall_us(of), look_at_rest, rest);
}

/* What was executed after its release is released again, later. */
void rest_quiet(struct world *world)
{
    for (uint32_t i = 0; i < world->plan->n_servers; i++) {
        struct rest rest = {.world = world, .server = i, .invariant = I8_LEFT_BEHIND};

        if (!world->sites[i].late) look_at_server(&rest);
    }
}

void rest_late(struct world *world)
{
    for (uint32_t i = 0; i < world->plan->n_servers; i++) {
        struct rest rest = {.world = world, .server = i, .invariant = I14_GIVEN_UP};

        if (is_judged(world, i)) look_at_server(&rest);
    }
}

void rest_silent(struct world *world)
{
    for (uint32_t i = 0; i < world->plan->n_servers; i++) {
        struct rest rest = {.world = world, .server = i, .silent = true, .invariant = I8_LEFT_BEHIND};

        look_at_server(&rest);
    }
}
