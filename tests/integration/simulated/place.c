/* SPDX-License-Identifier: BSD-3-Clause */
#include "place.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "sim/parts/machine.h"
#include "sim/parts/net.h"
#include "sim/parts/place_fixture.h"
#include "sim/parts/server.h"
#include "test.h"

#define BOOT_US UINT64_C(5000000000)
#define WALL_US UINT64_C(1800000000000000)
#define TICK_US 2000u

struct calls {
    long long scripts, sets;
};

static struct place {
    struct queue queue;
    struct net *net;
    struct machine *machine;
    struct server *servers[PLACE_SERVERS_MAX];
    struct calls calls[PLACE_SERVERS_MAX];
    uint64_t seed;
    char password[64]; /* by CONFIG SET */
} place;

static void on_replied(void *arg, struct session *session, const char *script, const struct word *words, size_t n_words,
                       const struct word *reply)
{
    struct calls *calls = arg;

    if (script != NULL) calls->scripts++;
    if (n_words > 0 && words[0].length == 3 && strncasecmp(words[0].text, "set", 3) == 0) calls->sets++;
}

void place_begin(uint64_t seed)
{
    const struct skew skews[MACHINE_CLOCKS] = {{0, BOOT_US, 0}, {0, BOOT_US, 0}, {0, WALL_US, 0}};
    const struct machine_events events = {0};

    (void)place_end();
    place_make(&place.queue, &place.net, &place.machine, place.servers, PLACE_SERVERS_MAX);
    place.seed = seed;
    net_reset(place.net, seed, 1, PLACE_SERVERS_MAX);
    machine_boot(place.machine, 0, rng_mix(seed, 1), skews, &events);
}

size_t place_end(void)
{
    size_t left;

    if (place.net == NULL) return 0;
    left = machine_blocks(place.machine) + machine_descriptors(place.machine);
    place_free(&place.queue, place.net, place.machine, place.servers, PLACE_SERVERS_MAX);
    place = (struct place){0};
    return left;
}

const struct system *place_system(void)
{
    return machine_system(place.machine);
}

const struct alloc_hooks *place_memory(void)
{
    return machine_allocator(place.machine);
}

uint64_t place_clock_us(void)
{
    return BOOT_US + place.queue.now_us;
}

uint64_t place_wall_us(void)
{
    return WALL_US + place.queue.now_us;
}

void place_turn(uint64_t until_us)
{
    uint64_t tick_us = place.queue.now_us + TICK_US;

    until_us -= BOOT_US;
    (void)queue_next(&place.queue, until_us < tick_us ? until_us : tick_us);
}

void place_sleep(uint64_t us)
{
    uint64_t until_us = place.queue.now_us + us;

    machine_stall(place.machine, us + 1, false);
    while (place.queue.now_us < until_us && queue_next(&place.queue, until_us)) continue;
}

void place_boot(uint32_t index, const char *password)
{
    const struct model_events events = {.replied = on_replied, .arg = &place.calls[index]};
    const struct skew wall = {0, WALL_US, 0};

    server_boot(place.servers[index], index, rng_mix(place.seed, 2 + index), &wall, &events);
    model_manners(server_model(place.servers[index]))->password = password;
}

void place_launch(uint32_t index, bool empty, const char *password)
{
    model_manners(server_model(place.servers[index]))->password = password;
    server_launch(place.servers[index], empty ? SERVER_EMPTY : SERVER_KEEPS, empty, 0);
}

void place_crash(uint32_t index)
{
    server_crash(place.servers[index], false);
}

void place_freeze(uint32_t index, bool frozen)
{
    server_halt(place.servers[index], frozen ? NEVER : place.queue.now_us);
}

struct count {
    const char *prefix;
    long long n;
};

static void count(void *arg, const char *key, size_t length, const struct model_value *value)
{
    struct count *of = arg;
    size_t n = strlen(of->prefix);

    of->n += length >= n && memcmp(key, of->prefix, n) == 0;
}

long long place_keys(uint32_t index, const char *prefix)
{
    struct server *server = place.servers[index];
    struct count of = {.prefix = prefix};

    model_each(server_model(server), server_wall_us(server), count, &of);
    return of.n;
}

static const char *dbsize(uint32_t index)
{
    static char text[24];

    snprintf(text, sizeof(text), "%lld", place_keys(index, ""));
    return text;
}

/* CONFIG SET of what the model has manners for. */
static bool configure(struct model_manners *manners, const char *name, const char *value)
{
    if (strcmp(name, "maxmemory") == 0) {
        manners->full = strcmp(value, "1") == 0;
    } else if (strcmp(name, "requirepass") == 0) {
        snprintf(place.password, sizeof(place.password), "%s", value);
        manners->password = place.password;
    } else {
        return false;
    }
    return true;
}

const char *place_do(uint32_t index, const char *const *words, size_t n_words)
{
    struct server *server = place.servers[index];
    struct model *model = server_model(server);

    if (n_words == 1 && strcmp(words[0], "DBSIZE") == 0) return dbsize(index);
    if (n_words == 4 && strcmp(words[0], "CONFIG") == 0 && strcmp(words[1], "SET") == 0 &&
        configure(model_manners(model), words[2], words[3]))
        return "OK";
    return model_do(model, server_wall_us(server), words, n_words);
}

static void on_hang_up(void *arg)
{
    (void)arg;
    fail_msg("the server closed the connection of who listens");
}

struct session *place_listen(uint32_t index, void (*write)(void *arg, const void *bytes, size_t size), void *arg)
{
    return model_open(server_model(place.servers[index]), write, on_hang_up, arg);
}

void place_say(uint32_t index, struct session *session, const char *bytes, size_t size)
{
    model_feed(session, bytes, size);
    assert_true(model_step(session, server_wall_us(place.servers[index])));
}

void place_deafen(struct session *session)
{
    model_close(session);
}

long long place_scripts(uint32_t index)
{
    return place.calls[index].scripts;
}

long long place_sets(uint32_t index)
{
    return place.calls[index].sets;
}
