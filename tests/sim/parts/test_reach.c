/* SPDX-License-Identifier: BSD-3-Clause */
/* test_reach.c - locks that are tried once where nodes are far away, dead, or have been forgotten on the way */
#include <string.h>

#include "api/client.h"
#include "place_fixture.h"
#include "test.h"

#define SERVERS   3
#define MS        UINT64_C(1000)
#define SECOND    UINT64_C(1000000)
#define BOOT_US   UINT64_C(5000000000)
#define WALL_US   UINT64_C(1800000000000000)
#define LOOKUP_US (10 * MS) /* at most */
/* A first contact has a quarantine of a longest lease, and begins it. */
#define QUARANTINE_US (31 * SECOND)
#define NO_RESULT     1

struct fixture {
    struct queue queue;
    struct net *net;
    struct machine *machine;
    struct server *servers[SERVERS];
    quorlock_client *client;
    quorlock_lock *lock;
    int guard;
    uint32_t lease_ms, wait_ms;
    int status;
    uint64_t ended_us;
};

static struct fixture world;

static int setup(void **state)
{
    struct fixture *f = &world;

    memset(f, 0, sizeof(*f));
    place_make(&f->queue, &f->net, &f->machine, f->servers, SERVERS);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    place_free(&f->queue, f->net, f->machine, f->servers, SERVERS);
    return 0;
}

#define REACH_TEST(name) TEST_WITH(fixture, name, setup, teardown)

static void set_delay(struct fixture *f, uint32_t server, uint64_t round_trip_us)
{
    struct net_link *link = net_link(f->net, 0, server);

    link->delay_us[NET_TO_SERVER] = link->delay_us[NET_TO_CLIENT] = round_trip_us / 2;
    link->steady = true;
}

static void begin(struct fixture *f, uint64_t round_trip_us)
{
    const struct machine_events machine_events = {.arg = f};
    const struct model_events model_events = {.arg = f};
    const struct skew skews[MACHINE_CLOCKS] = {{0, BOOT_US, 0}, {0, BOOT_US, 0}, {0, WALL_US, 0}};
    const struct skew wall = {0, WALL_US, 0};

    queue_clear(&f->queue);
    net_reset(f->net, 1, 1, SERVERS);
    for (uint32_t i = 0; i < SERVERS; i++) {
        server_boot(f->servers[i], i, 100 + i, &wall, &model_events);
        set_delay(f, i, round_trip_us);
    }
    machine_boot(f->machine, 0, 200, skews, &machine_events);
    f->guard = QUORLOCK_GUARD_OFF;
    f->lease_ms = 30000;
    f->wait_ms = QUORLOCK_TRY_ONCE;
}

static void on_closed(void *arg)
{
    (void)arg;
}

static void pass(struct fixture *f, uint64_t us)
{
    uint64_t until_us = f->queue.now_us + us;

    while (queue_next(&f->queue, until_us)) continue;
}

static void open_client(void *arg)
{
    static const char *const nodes[SERVERS] = {"node0", "node1", "node2"};
    struct fixture *f = arg;
    const struct quorlock_client_options options = {
        .size = sizeof(options), .nodes = nodes, .n_nodes = SERVERS, .guard = f->guard};
    const struct client_extras extras = {.memory = machine_allocator(f->machine)};

    assert_int_equal(client_new_on(&f->client, machine_system(f->machine), &options, &extras, NULL), 0);
}

static void close_client(void *arg)
{
    struct fixture *f = arg;

    assert_int_equal(quorlock_client_close(f->client, on_closed, f), 0);
}

static void end(struct fixture *f)
{
    machine_call(f->machine, close_client, f);
    pass(f, 10 * SECOND);
    assert_int_equal(machine_blocks(f->machine), 0);
    assert_int_equal(machine_descriptors(f->machine), 0);
}

static void on_result(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct fixture *f = arg;

    f->status = result->status;
    f->ended_us = f->queue.now_us;
    if (result->status == QUORLOCK_OK) assert_int_equal(quorlock_lock_release(lock, NULL, NULL), 0);
}

static void acquire(void *arg)
{
    static const char *const key = "key";
    struct fixture *f = arg;
    const struct quorlock_lock_options lease = {.size = sizeof(lease), .lease_ms = f->lease_ms, .wait_ms = f->wait_ms};

    assert_int_equal(quorlock_lock_new(&f->lock, f->client, &key, 1, &lease), 0);
    assert_int_equal(quorlock_lock_acquire(f->lock, on_result, f), 0);
}

static void open_and_acquire(void *arg)
{
    open_client(arg);
    acquire(arg);
}

/* How long until the result came. */
static uint64_t result_us(struct fixture *f, void (*call)(void *))
{
    uint64_t begun_us = f->queue.now_us, limit_us = begun_us + 20 * SECOND;

    f->status = NO_RESULT;
    machine_call(f->machine, call, f);
    while (f->status == NO_RESULT && queue_next(&f->queue, limit_us)) continue;
    assert_int_not_equal(f->status, NO_RESULT);
    return f->ended_us - begun_us;
}

static const struct {
    uint64_t round_trip_us;
    uint32_t lease_ms;
} distances[] = {{600 * MS, 30000}, {40 * MS, 1000}};

/* One round trip each to connect, for the whole handshake, and to ask. */
REACH_TEST(a_new_client_needs_three_round_trips_to_a_lock)
{
    for (size_t i = 0; i < 2 * LENGTH(distances); i++) {
        uint64_t round_trip_us = distances[i / 2].round_trip_us;

        begin(f, round_trip_us);
        f->lease_ms = distances[i / 2].lease_ms;
        f->guard = i % 2 == 0 ? QUORLOCK_GUARD_OFF : QUORLOCK_GUARD_CONNECTION;
        if (i % 2 != 0) {
            machine_call(f->machine, open_client, f);
            pass(f, QUARANTINE_US + 5 * SECOND);
            end(f);
        }
        assert_in_range(result_us(f, open_and_acquire), 3 * round_trip_us, 3 * round_trip_us + LOOKUP_US);
        assert_int_equal(f->status, QUORLOCK_OK);
        end(f);
    }
}

/* Nothing comes back from one of them, whatever it is sent. */
REACH_TEST(a_dead_node_beside_two_delays_nobody)
{
    begin(f, 40 * MS);
    net_link(f->net, 0, 1)->cut_until_us[NET_TO_SERVER] = NEVER;
    assert_in_range(result_us(f, open_and_acquire), 120 * MS, 120 * MS + LOOKUP_US);
    assert_int_equal(f->status, QUORLOCK_OK);
    end(f);
}

/* The time to connect, and at most the time to answer behind it. */
REACH_TEST(without_a_quorum_it_ends_in_time)
{
    uint64_t took_us;

    begin(f, 40 * MS);
    for (uint32_t i = 1; i < SERVERS; i++) net_link(f->net, 0, i)->cut_until_us[NET_TO_SERVER] = NEVER;
    took_us = result_us(f, open_and_acquire);
    assert_int_equal(f->status, QUORLOCK_ERR_NOQUORUM);
    assert_in_range(took_us, 3 * SECOND, 4 * SECOND);
    end(f);
}

/* ---- connections that are there no more ---- */

static const struct {
    uint64_t round_trip_us;
    uint32_t lease_ms, wait_ms;
    uint64_t most_us;
} forgotten[] = {{MS, 30000, QUORLOCK_TRY_ONCE, SECOND},
                 {MS, 30000, 1000, SECOND},
                 {MS, 1000, QUORLOCK_TRY_ONCE, 100 * MS},
                 {100 * MS, 30000, QUORLOCK_TRY_ONCE, SECOND},
                 {100 * MS, 30000, 2000, 3 * SECOND / 2}};

/* The old connections lead nowhere without a word, as behind a middlebox that forgot them. */
REACH_TEST(connections_that_were_forgotten_while_idle_are_made_anew_within_a_try)
{
    for (size_t i = 0; i < LENGTH(forgotten); i++) {
        begin(f, forgotten[i].round_trip_us);
        f->lease_ms = forgotten[i].lease_ms;
        f->wait_ms = forgotten[i].wait_ms;
        (void)result_us(f, open_and_acquire);
        assert_int_equal(f->status, QUORLOCK_OK);
        pass(f, 6 * SECOND);
        for (uint32_t k = 0; k < SERVERS; k++) {
            set_delay(f, k, forgotten[i].round_trip_us);
            (void)net_move(f->net, k);
        }
        assert_in_range(result_us(f, acquire), 0, forgotten[i].most_us);
        assert_int_equal(f->status, QUORLOCK_OK);
        end(f);
    }
}

static uint64_t reconnects(struct fixture *f)
{
    struct quorlock_statistics statistics = {.size = sizeof(statistics)};
    uint64_t n = 0;

    assert_int_equal(quorlock_client_statistics(f->client, &statistics), 0);
    for (size_t i = 0; i < statistics.n_nodes; i++) n += statistics.nodes[i]->reconnects;
    return n;
}

/* They answer after a second and a half, whatever the connection. */
REACH_TEST(slow_servers_are_connected_to_anew_once)
{
    begin(f, MS);
    (void)result_us(f, open_and_acquire);
    pass(f, 6 * SECOND);
    f->wait_ms = 15000;
    for (int i = 0; i < SERVERS; i++) server_halt(f->servers[i], f->queue.now_us + 1500 * MS);
    (void)result_us(f, acquire);
    assert_int_equal(f->status, QUORLOCK_OK);
    assert_int_equal(reconnects(f), SERVERS);
    for (int k = 0; k < 5; k++) {
        for (int i = 0; i < SERVERS; i++) server_halt(f->servers[i], f->queue.now_us + 1500 * MS);
        f->status = NO_RESULT;
        machine_call(f->machine, acquire, f);
        pass(f, 3 * SECOND);
    }
    assert_int_equal(reconnects(f), SERVERS);
    end(f);
}
