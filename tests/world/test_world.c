/* SPDX-License-Identifier: BSD-3-Clause */
/* test_world.c - whole clients in the simulated world, and that the world does what it says */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/client.h"
#include "machine.h"
#include "server.h"

#include "test.h"

#define SERVERS  3
#define LEASE_MS 30000u
#define SECOND   UINT64_C(1000000)
#define HOUR     (3600 * SECOND)
#define BOOT_US  UINT64_C(5000000000)
#define WALL_US  UINT64_C(1800000000000000)

struct life {
    struct machine *machine;
    quorlock_client *client;
    quorlock *lock;
    int status; /* of the last result; 1: none came */
    unsigned n_lost, n_closed;
};

static struct {
    struct queue queue;
    struct net *net;
    struct machine *machine;
    struct server *servers[SERVERS];
    struct life life;
    uint64_t hash, n_executed;
} w;

static void trace(uint64_t what)
{
    w.hash = rng_mix(rng_mix(w.hash, w.queue.now_us), what);
}

static void on_executed(void *arg, struct session *session, const char *command)
{
    w.n_executed++;
    trace((uint64_t)(unsigned char)command[0] << 8 | (unsigned char)command[1]);
}

static void on_turned(void *arg, struct machine *machine)
{
    trace(machine_counted(machine)->callbacks);
}

static void begin(uint64_t seed)
{
    static const struct model_events model_events = {.executed = on_executed};
    static const struct machine_events machine_events = {.turned = on_turned};
    const struct skew skews[MACHINE_CLOCKS] = {{0, BOOT_US, 10}, {0, BOOT_US, -20}, {0, WALL_US, 0}};
    const struct skew wall = {0, WALL_US + 5000, 30};

    if (w.net == NULL) {
        w.net = net_new(&w.queue);
        w.machine = machine_new(&w.queue, w.net);
        for (int i = 0; i < SERVERS; i++) w.servers[i] = server_new(&w.queue, w.net);
    }
    queue_clear(&w.queue);
    net_reset(w.net, seed, 1, SERVERS);
    for (unsigned i = 0; i < SERVERS; i++) server_boot(w.servers[i], i, rng_mix(seed, 100 + i), &wall, &model_events);
    machine_boot(w.machine, 0, rng_mix(seed, 200), skews, &machine_events);
    w.hash = seed;
    w.life = (struct life){.machine = w.machine, .status = 1};
}

static void end(void)
{
    machine_free(w.machine);
    for (int i = 0; i < SERVERS; i++) server_free(w.servers[i]);
    net_free(w.net);
    queue_free(&w.queue);
    memset(&w, 0, sizeof(w));
}

/* ---- a life ---- */

static void on_result(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    struct life *life = arg;

    life->status = result->status;
    trace((uint64_t)result->valid_ms << 8 | result->granted);
}

static void on_lost(quorlock *lock, const struct quorlock_loss *loss, void *arg)
{
    struct life *life = arg;

    life->n_lost++;
    trace(loss->remaining_ms);
}

static void on_closed(void *arg)
{
    struct life *life = arg;

    life->n_closed++;
}

static void on_log(void *arg, int level, const char *text)
{
    printf("%llu %s\n", (unsigned long long)w.queue.now_us, text);
}

static void be_born(void *arg)
{
    static const char *const nodes[] = {"10.0.0.1:6379", "node1:6379", "10.0.0.3:6379"};
    static const char *const key = "key";
    struct life *life = arg;
    const struct quorlock_client_options options = {.size = sizeof(options),
                                                    .nodes = nodes,
                                                    .n_nodes = SERVERS,
                                                    .guard = QUORLOCK_GUARD_OFF,
                                                    .log = getenv("LOG") ? on_log : NULL,
                                                    .allocator = machine_allocator(life->machine)};
    const struct quorlock_options lease = {.size = sizeof(lease), .lease_ms = LEASE_MS, .wait_ms = 5000};

    assert_int_equal(client_new_on(&life->client, machine_system(life->machine), &options), 0);
    assert_int_equal(quorlock_new(&life->lock, life->client, &key, 1, &lease), 0);
    quorlock_on_lost(life->lock, on_lost, life);
    assert_int_equal(quorlock_acquire(life->lock, on_result, life), 0);
}

static void close_client(void *arg)
{
    struct life *life = arg;

    assert_int_equal(quorlock_client_close(life->client, on_closed, life), 0);
}

static void until(uint64_t at_us)
{
    while (queue_next(&w.queue, at_us)) continue;
}

static uint64_t hour(uint64_t seed)
{
    begin(seed);
    machine_call(w.machine, be_born, &w.life);
    until(SECOND);
    assert_int_equal(w.life.status, 0);
    until(HOUR);
    assert_int_equal(w.life.n_lost, 0);
    assert_true(quorlock_valid_ms(w.life.lock) > LEASE_MS / 2);
    for (unsigned i = 0; i < SERVERS; i++) {
        net_link(w.net, 0, i)->cut_until_us[NET_TO_SERVER] = NEVER;
        net_changed(w.net, 0, i);
    }
    until(HOUR + 40 * SECOND);
    assert_int_equal(w.life.n_lost, 1);
    machine_call(w.machine, close_client, &w.life);
    until(HOUR + 60 * SECOND);
    assert_int_equal(w.life.n_closed, 1);
    assert_int_equal(machine_blocks(w.machine), 0);
    assert_int_equal(machine_descriptors(w.machine), 0);
    return w.hash;
}

TEST(a_client_lives_for_an_hour_and_one_seed_makes_one_trace)
{
    uint64_t first = hour(1);

    assert_int_equal(hour(1), first);
    assert_int_not_equal(hour(2), first);
    end();
    assert_int_equal(hour(1), first);
    end();
}
