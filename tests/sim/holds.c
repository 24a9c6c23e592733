/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * holds.c - what servers hold of locks, slots and readers, and who took it in which order
 *
 * A reader holds by its entry among the readers of the key, and only while the key itself shows that there are readers
 * (rule 8.2).
 */
#include <stdio.h>
#include <string.h>

#include "judge.h"
#include "trace.h"

#include "holds.h"

#define NAME_SIZE 80u
#define READERS   "quorlock:readers"
#define INTENTS   "quorlock:intents:"

enum invariant holds_conflict(const struct held *a, const struct held *b)
{
    uint32_t common = a->keys & b->keys, written = common & ~(uint32_t)(a->shared & b->shared);

    if (common == 0 || written == 0) return INVARIANT_NONE;
    if (a->permits != 0 || b->permits != 0) return a->slot == b->slot ? I1_EXCLUSION : INVARIANT_NONE;
    return (written & ~(uint32_t)(a->shared | b->shared)) != 0 ? I1_EXCLUSION : I13_READERS;
}

/* ---- names ---- */

static const char *name_place(const struct world *world, uint32_t place, char ret[NAME_SIZE])
{
    uint32_t key = place / PLACES_OF_KEY, slot = place % PLACES_OF_KEY;
    const char *name = world->keys[key];

    if (slot == PLACE_READERS)
        (void)snprintf(ret, NAME_SIZE, "%s" READERS ":%s", world->prefix, name);
    else if (world->plan->permits[key] != 0)
        (void)snprintf(ret, NAME_SIZE, "%squorlock:slot:%u:%s", world->prefix, slot, name);
    else
        (void)snprintf(ret, NAME_SIZE, "%s%s", world->prefix, name);
    return ret;
}

/* behind - return what follows the front of a name. NULL: the name begins in another way. */
static const char *behind(const char *name, size_t length, const char *front)
{
    size_t n = strlen(front);

    return length > n && memcmp(name, front, n) == 0 ? name + n : NULL;
}

/* find_place - return the place of a key on a server. NOBODY: the plan does not have the key. */
static uint32_t find_place(const struct world *world, const char *name, size_t length)
{
    const char *bare = world_bare(world, name, length, &length), *rest;
    uint32_t slot = 0, key = 0;

    if (bare == NULL) return NOBODY;
    rest = behind(bare, length, "quorlock:slot:");
    if (rest != NULL) {
        if (rest[0] < '0' || rest[0] >= '0' + PLAN_PERMITS_MAX || length < 17 || rest[1] != ':') return NOBODY;
        slot = (uint32_t)(rest[0] - '0');
        rest += 2;
    } else {
        rest = behind(bare, length, READERS ":");
        slot = rest != NULL ? (uint32_t)PLACE_READERS : 0;
    }
    if (rest == NULL) rest = bare;
    length -= (size_t)(rest - bare);
    while (key < world->plan->n_keys &&
           (strlen(world->keys[key]) != length || memcmp(world->keys[key], rest, length) != 0))
        key++;
    if (key == world->plan->n_keys || (world->plan->permits[key] != 0) != (rest != bare && slot != PLACE_READERS))
        return NOBODY;
    return holds_place(key, slot);
}

/* ---- what stands there ---- */

bool holds_is_quarantined(struct world *world, uint32_t server)
{
    struct server *of = world->servers[server];
    static const char name[] = "quorlock:guard";
    struct model_value value;
    uint64_t till_ms = 0;
    size_t bars = 0;

    if (!model_look(server_model(of), name, sizeof(name) - 1, server_wall_us(of), &value)) return false;
    for (size_t i = 0; i < value.owner_length && bars < 7; i++) {
        if (value.owner[i] == '|') {
            bars++;
        } else if (bars == 6 && value.owner[i] >= '0' && value.owner[i] <= '9') {
            till_ms = 10 * till_ms + (uint64_t)(value.owner[i] - '0');
        }
    }
    /* A quarantine for a client with a longer max_lease does not concern connections that were there before. */
    return till_ms * MS > server_wall_us(of);
}

struct search {
    uint64_t token_hash, expires_ms;
};

static void match_reader(void *arg, const char *member, size_t length, double score)
{
    struct search *search = arg;

    if (world_hash(member, length) == search->token_hash) search->expires_ms = (uint64_t)score;
}

/* expires_ms - return when the place expires for that token, by the server's clock. 0: another token has it, or none;
 * UINT64_MAX: never. */
static uint64_t expires_ms(struct world *world, uint32_t server, uint32_t place, uint64_t token_hash)
{
    struct server *of = world->servers[server];
    bool reads = place % PLACES_OF_KEY == PLACE_READERS;
    uint64_t wall_us = server_wall_us(of), owner_hash = reads ? world_hash(READERS, strlen(READERS)) : token_hash;
    struct search search = {.token_hash = token_hash};
    struct model_value value;
    char name[NAME_SIZE];

    name_place(world, reads ? holds_place(place / PLACES_OF_KEY, 0) : place, name);
    if (!model_look(server_model(of), name, strlen(name), wall_us, &value) || value.owner == NULL ||
        world_hash(value.owner, value.owner_length) != owner_hash)
        return 0;
    if (value.expires_ms == 0) value.expires_ms = UINT64_MAX;
    if (!reads) return value.expires_ms;
    name_place(world, place, name);
    model_members(server_model(of), name, strlen(name), wall_us, match_reader, &search);
    return search.expires_ms < value.expires_ms ? search.expires_ms : value.expires_ms;
}

static uint64_t place_until_us(struct world *world, uint32_t server, uint32_t place, uint64_t token_hash)
{
    struct server *of = world->servers[server];
    uint64_t wall_us = server_wall_us(of), until_ms = expires_ms(world, server, place, token_hash);

    if (until_ms == UINT64_MAX) return NEVER;
    for (uint32_t i = 0; i < world->n_shadows; i++) {
        const struct shadow *shadow = &world->shadows[i];

        if (shadow->server != server || shadow->place != place || shadow->token_hash != token_hash) continue;
        if (shadow->expires_ms > until_ms) until_ms = shadow->expires_ms;
    }
    return until_ms * MS > wall_us ? skew_when(server_clock(of), until_ms * MS) : 0;
}

static uint32_t place_in(const struct held *held, uint32_t key)
{
    return holds_place(key, (held->shared >> key & 1u) != 0 ? PLACE_READERS : held->slot);
}

uint64_t holds_until_us(struct world *world, uint32_t server, const struct window *window)
{
    uint64_t until_us = NEVER;

    for (uint32_t key = 0; key < world->plan->n_keys; key++) {
        uint64_t one_us;

        if ((window->held.keys >> key & 1u) == 0) continue;
        one_us = place_until_us(world, server, place_in(&window->held, key), window->token_hash);
        if (one_us < until_us) until_us = one_us;
    }
    return until_us;
}

/* ---- who took it ---- */

const struct taking *holds_latest(const struct site *site, uint32_t place)
{
    uint32_t n = site->n_takings[place];

    return n == 0 ? NULL : &site->takings[place][(n - 1) % HOLDS_MAX];
}

/* find_taking - return the first taking of the place by that token, or NULL. Later ones are repairs. */
static const struct taking *find_taking(const struct site *site, uint32_t place, uint64_t token_hash)
{
    uint32_t n = site->n_takings[place];

    for (uint32_t i = n > HOLDS_MAX ? n - HOLDS_MAX : 0; i < n; i++) {
        const struct taking *taking = &site->takings[place][i % HOLDS_MAX];

        if (taking->token_hash == token_hash) return taking;
    }
    return NULL;
}

const struct taking *holds_taking(struct site *site, const struct window *window)
{
    const struct taking *last = NULL;

    for (uint32_t key = 0; key < site->world->plan->n_keys; key++) {
        const struct taking *taking;

        if ((window->held.keys >> key & 1u) == 0) continue;
        taking = find_taking(site, place_in(&window->held, key), window->token_hash);
        if (taking == NULL) return NULL;
        if (last == NULL || taking->quarantined || (!last->quarantined && taking->order > last->order)) last = taking;
    }
    return last;
}

void holds_as_taken(struct world *world, struct window *window)
{
    uint32_t before = window->held.shared;

    for (uint32_t i = 0; i < world->plan->n_servers; i++) {
        for (uint32_t key = 0; key < world->plan->n_keys; key++) {
            if (find_taking(&world->sites[i], holds_place(key, 0), window->token_hash) != NULL)
                window->held.shared &= (uint8_t) ~(1u << key);
        }
    }
    world->totals->of[TOTAL_READS_WRITTEN] += window->held.shared != before;
}

static void take(struct site *site, uint32_t place, uint64_t token_hash)
{
    bool quarantined = token_hash != 0 && holds_is_quarantined(site->world, site->index);

    site->takings[place][site->n_takings[place]++ % HOLDS_MAX] =
        (struct taking){.token_hash = token_hash, .order = ++site->order, .quarantined = quarantined};
    site->world->totals->of[TOTAL_QUARANTINED] += quarantined;
}

/* ---- changes ---- */

/* check_windows - check the windows of all readers of the key, or of the holder with that token. */
static void check_windows(struct world *world, uint32_t key, uint64_t token_hash, bool readers)
{
    for (uint32_t i = 0; i < world->plan->n_actors; i++) {
        struct actor *actor = &world->actors[i];
        const struct held *held = &actor->window.held;

        if (!actor->window.open || (held->keys >> key & 1u) == 0) continue;
        if (readers ? (held->shared >> key & 1u) == 0 : actor->window.token_hash != token_hash) continue;
        if (judge_is_open(actor)) judge_quorum(actor);
    }
}

static void on_second_look(void *arg)
{
    struct site *site = arg;
    uint32_t changed = site->readers_changed;

    site->readers_changed = 0;
    for (uint32_t key = 0; key < site->world->plan->n_keys && !site->world->over; key++) {
        if ((changed >> key & 1u) != 0) check_windows(site->world, key, 0, true);
    }
}

/* A script changes the entries and the key one after the other. */
static void look_at_readers(struct site *site, uint32_t key)
{
    site->readers_changed |= (uint8_t)(1u << key);
    site->second_look = (struct moment){.index = site->second_look.index, .happen = on_second_look, .arg = site};
    queue_set(&site->world->queue, &site->second_look, world_now(site->world));
}

struct readers {
    struct site *site;
    uint32_t place, n;
};

static void see_reader(void *arg, const char *member, size_t length, double score)
{
    struct readers *readers = arg;
    uint64_t hash = world_hash(member, length);

    (void)score;
    readers->n++;
    if (find_taking(readers->site, readers->place, hash) == NULL) take(readers->site, readers->place, hash);
}

static void readers_changed(struct site *site, uint32_t place, const char *name, size_t length)
{
    struct server *of = site->world->servers[site->index];
    struct readers readers = {.site = site, .place = place};

    model_members(server_model(of), name, length, server_wall_us(of), see_reader, &readers);
    site->world->totals->of[TOTAL_READERS_BESIDE] += readers.n > 1;
    look_at_readers(site, place / PLACES_OF_KEY);
}

static void count_split(struct world *world, uint32_t place, uint64_t hash)
{
    for (uint32_t i = 0; i < world->plan->n_servers && hash != 0; i++) {
        const struct taking *other = holds_latest(&world->sites[i], place);

        world->totals->of[TOTAL_SPLIT] += other != NULL && other->token_hash != 0 && other->token_hash != hash;
    }
}

static void lock_changed(struct site *site, uint32_t place, const char *name, size_t length)
{
    struct world *world = site->world;
    struct server *of = world->servers[site->index];
    const struct taking *before = holds_latest(site, place);
    uint64_t hash_before = before != NULL ? before->token_hash : 0, hash = 0;
    uint64_t sentinel = world_hash(READERS, strlen(READERS));
    struct model_value value;

    if (model_look(server_model(of), name, length, server_wall_us(of), &value) && value.owner != NULL)
        hash = world_hash(value.owner, value.owner_length);
    if (hash == sentinel || hash_before == sentinel) look_at_readers(site, place / PLACES_OF_KEY);
    if (hash == hash_before) return;
    if (hash != 0 && hash != sentinel && find_taking(site, place, hash) != NULL) world->totals->of[TOTAL_REPAIRED]++;
    take(site, place, hash);
    count_split(world, place, hash);
    if (hash_before != 0 && hash_before != sentinel) check_windows(world, place / PLACES_OF_KEY, hash_before, false);
}

static void show_intent(void *arg, const char *member, size_t length, double score)
{
    const struct site *site = arg;
    double left_ms = score - (double)server_wall_us(site->world->servers[site->index]) / 1000;

    TRACE(site->world, "          waits: %.*s, for %.0f ms", (int)length, member, left_ms);
}

static void intents_changed(struct site *site, const char *name, size_t length)
{
    struct server *of = site->world->servers[site->index];

    site->world->totals->of[TOTAL_INTENTS]++;
    if (!site->world->trace) return;
    TRACE(site->world, "server %u  now has %.*s", site->index, (int)length, name);
    model_members(server_model(of), name, length, server_wall_us(of), show_intent, site);
}

void holds_changed(struct site *site, const char *name, size_t length)
{
    uint32_t place;

    if (site->world->over) return;
    place = find_place(site->world, name, length);
    if (place == NOBODY) {
        size_t bare_length = 0;
        const char *bare = world_bare(site->world, name, length, &bare_length);

        if (bare != NULL && behind(bare, bare_length, INTENTS) != NULL) intents_changed(site, name, length);
        return;
    }
    if (place % PLACES_OF_KEY == PLACE_READERS)
        readers_changed(site, place, name, length);
    else
        lock_changed(site, place, name, length);
}

void holds_look_again(struct site *site, uint32_t key)
{
    bool named = site->world->plan->permits[key] != 0;
    char name[NAME_SIZE];

    for (uint32_t slot = 0; slot < PLACES_OF_KEY; slot++) {
        if (named ? slot == PLACE_READERS : slot != 0 && slot != PLACE_READERS) continue;
        name_place(site->world, holds_place(key, slot), name);
        holds_changed(site, name, strlen(name));
    }
}

/* ---- memory that goes ---- */

struct forgotten {
    struct site *site;
    uint32_t place;
};

static void remember(struct forgotten *forgotten, const char *token, size_t length, uint64_t until_ms)
{
    struct world *world = forgotten->site->world;

    if (world->n_shadows == SHADOWS_MAX) return;
    world->shadows[world->n_shadows++] = (struct shadow){.token_hash = world_hash(token, length),
                                                         .expires_ms = until_ms,
                                                         .server = (uint8_t)forgotten->site->index,
                                                         .place = (uint8_t)forgotten->place};
}

static void forget_reader(void *arg, const char *member, size_t length, double score)
{
    remember(arg, member, length, (uint64_t)score);
}

static void forget_key(void *arg, const char *name, size_t length, const struct model_value *value)
{
    struct site *site = arg;
    struct server *of = site->world->servers[site->index];
    struct forgotten forgotten = {.site = site, .place = find_place(site->world, name, length)};

    if (forgotten.place == NOBODY) return;
    if (forgotten.place % PLACES_OF_KEY == PLACE_READERS)
        model_members(server_model(of), name, length, server_wall_us(of), forget_reader, &forgotten);
    else if (value->owner != NULL)
        remember(&forgotten, value->owner, value->owner_length, value->expires_ms);
}

struct standing {
    struct world *world;
    uint32_t server, place;
    holds_standing each;
    void *arg;
};

static void see_standing_reader(void *arg, const char *member, size_t length, double score)
{
    const struct standing *standing = arg;

    if ((uint64_t)score > server_wall_us(standing->world->servers[standing->server]) / MS)
        standing->each(standing->arg, standing->place, member, length);
}

static void see_standing_key(void *arg, const char *name, size_t length, const struct model_value *value)
{
    struct standing *standing = arg;
    struct server *of = standing->world->servers[standing->server];

    standing->place = find_place(standing->world, name, length);
    if (standing->place == NOBODY) return;
    if (standing->place % PLACES_OF_KEY == PLACE_READERS)
        model_members(server_model(of), name, length, server_wall_us(of), see_standing_reader, standing);
    else if (value->owner != NULL)
        standing->each(standing->arg, standing->place, value->owner, value->owner_length);
}

void holds_each(struct world *world, uint32_t server, holds_standing each, void *arg)
{
    struct server *of = world->servers[server];
    struct standing standing = {.world = world, .server = server, .each = each, .arg = arg};

    model_each(server_model(of), server_wall_us(of), see_standing_key, &standing);
}

void holds_forgets(struct site *site)
{
    struct server *of = site->world->servers[site->index];

    model_each(server_model(of), server_wall_us(of), forget_key, site);
}
