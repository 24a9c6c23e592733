/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_world.c - a whole client in the simulated world, with real scripts on model servers
 *
 * True time jumps to what happens next, so an hour passes in some ms, and one seed always makes one trace.
 */
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "api/client.h"
#include "lock/lock.h"
#include "place_fixture.h"
#include "test.h"

#define SERVERS   3
#define LEASE_MS  30000u
#define LEASES_MS (LEASE_MS + 1000u)
#define MS        UINT64_C(1000)
#define SECOND    UINT64_C(1000000)
#define HOUR      (3600 * SECOND)
#define RENEWALS  (HOUR / MS / (LEASE_MS / 3u)) /* at least; each is earlier by at most a 16th */
#define BOOT_US   UINT64_C(5000000000)
#define WALL_US   UINT64_C(1800000000000000)

/* Where a fault strikes: at the so-manyth clock reading, send or allocation of the machine. */
enum point { AT_CLOCK, AT_SEND, AT_ALLOCATION, POINTS };
enum harm { NO_FAULT, KILL, KILL_HOST, STALL, SUSPEND, NO_MEMORY };

struct fixture {
    struct queue queue;
    struct net *net;
    struct machine *machine;
    struct server *servers[SERVERS];
    quorlock_client *client, *other;
    quorlock_lock *lock;
    int status; /* of the last result; 1: none came */
    unsigned n_results, n_extended, n_lost, n_closed;
    uint32_t remaining_ms; /* when it was lost */
    uint32_t valid_ms;     /* of the last result */
    enum point point;
    enum harm fault;
    uint64_t until_fault; /* so many times the point is passed before */
    bool struck, closing;
    bool no_memory; /* from now on */
    uint64_t trace; /* hash of all that happened */
};

static unsigned real_looks; /* at the real clock */

/* In place of the C library's. */
int clock_gettime(clockid_t id, struct timespec *ret)
{
    real_looks++;
    return (int)syscall(SYS_clock_gettime, id, ret);
}

/* ---- what happens to the machine and to the servers ---- */

static void trace(struct fixture *f, uint64_t what)
{
    f->trace = rng_mix(rng_mix(f->trace, f->queue.now_us), what);
}

static void on_executed(void *arg, struct session *session, const char *command)
{
    struct fixture *f = arg;

    for (const char *at = command; *at != '\0'; at++) trace(f, (uint64_t)*at);
    if (strncmp(command, "extend", 6) == 0) f->n_extended++;
}

static void on_turned(void *arg, struct machine *machine)
{
    trace(arg, machine_counted(machine)->callbacks);
}

/* Whether memory is there. */
static bool strike(struct fixture *f, enum point point)
{
    if (f->fault == NO_FAULT || f->struck || f->point != point || f->until_fault-- > 0) return true;
    f->struck = true;
    if (f->fault == NO_MEMORY) return false;
    if (f->fault == KILL || f->fault == KILL_HOST)
        machine_kill(f->machine, f->fault == KILL_HOST);
    else
        machine_stall(f->machine, 40 * SECOND, f->fault == SUSPEND);
    return true;
}

static void on_reads_clock(void *arg, struct machine *machine)
{
    strike(arg, AT_CLOCK);
}

static void on_sends(void *arg, struct machine *machine, uint32_t server, size_t size)
{
    strike(arg, AT_SEND);
}

static bool on_allocates(void *arg, struct machine *machine, size_t size)
{
    const struct fixture *f = arg;

    return !f->no_memory && strike(arg, AT_ALLOCATION);
}

/* ---- the world ---- */

static struct fixture world;

static void begin(struct fixture *f, uint64_t seed)
{
    const struct model_events model_events = {.executed = on_executed, .arg = f};
    const struct machine_events machine_events = {
        .turned = on_turned, .reads_clock = on_reads_clock, .sends = on_sends, .allocates = on_allocates, .arg = f};
    const struct skew skews[MACHINE_CLOCKS] = {{0, BOOT_US, 10}, {0, BOOT_US, -20}, {0, WALL_US, 0}};
    const struct skew wall = {0, WALL_US + 5000, 30};

    queue_clear(&f->queue);
    net_reset(f->net, seed, 1, SERVERS);
    for (uint32_t i = 0; i < SERVERS; i++) {
        server_boot(f->servers[i], i, rng_mix(seed, 100 + i), &wall, &model_events);
        net_link(f->net, 0, i)->split_one_in = 4;
    }
    machine_boot(f->machine, 0, rng_mix(seed, 200), skews, &machine_events);
    f->client = NULL;
    f->lock = NULL;
    f->status = 1;
    f->n_results = f->n_extended = f->n_lost = f->n_closed = 0;
    f->fault = NO_FAULT;
    f->struck = f->closing = f->no_memory = false;
    f->trace = seed;
}

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

#define WORLD_TEST(name) TEST_WITH(fixture, name, setup, teardown)

static void until(struct fixture *f, uint64_t at_us)
{
    while (queue_next(&f->queue, at_us)) continue;
}

/* ---- the user ---- */

static void on_result(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct fixture *f = arg;

    f->status = result->status;
    f->valid_ms = result->valid_ms;
    f->n_results++;
    trace(f, (uint64_t)result->valid_ms << 8 | result->granted);
}

/* Before it is lost: a quorum of servers has the key for longer than is told. */
static void on_lost(quorlock_lock *lock, const struct quorlock_loss *loss, void *arg)
{
    struct fixture *f = arg;
    unsigned n = 0;

    for (int i = 0; i < SERVERS; i++) {
        uint64_t wall_us = server_wall_us(f->servers[i]);
        struct model_value value;

        if (model_look(server_model(f->servers[i]), "key", 3, wall_us, &value))
            n += value.expires_ms * MS > wall_us + loss->remaining_ms * MS;
    }
    f->n_lost++;
    f->remaining_ms = loss->remaining_ms;
    if (loss->remaining_ms > 0) assert_true(n > SERVERS / 2);
    trace(f, loss->remaining_ms);
}

static void on_closed(void *arg)
{
    struct fixture *f = arg;

    f->n_closed++;
}

static void start(void *arg)
{
    static const char *const nodes[SERVERS] = {"10.0.0.1", "node1", "10.0.0.3:6379"}, *const key = "key";
    struct fixture *f = arg;
    const struct quorlock_client_options options = {
        .size = sizeof(options), .nodes = nodes, .n_nodes = SERVERS, .guard = QUORLOCK_GUARD_OFF};
    const struct client_extras extras = {.memory = machine_allocator(f->machine)};
    const struct quorlock_lock_options lease = {.size = sizeof(lease), .lease_ms = LEASE_MS, .wait_ms = 2 * LEASE_MS};

    if (client_new_on(&f->client, machine_system(f->machine), &options, &extras, NULL) != 0) return;
    if (quorlock_lock_new(&f->lock, f->client, &key, 1, &lease) != 0) return;
    quorlock_lock_set_on_lost(f->lock, on_lost, f);
    (void)quorlock_lock_acquire(f->lock, on_result, f);
}

static void release(void *arg)
{
    struct fixture *f = arg;

    if (f->lock != NULL) (void)quorlock_lock_release(f->lock, on_result, f);
}

static void close_client(void *arg)
{
    struct fixture *f = arg;

    if (f->client != NULL && !f->closing) assert_int_equal(quorlock_client_close(f->client, on_closed, f), 0);
    f->closing = true;
}

static void on_finished(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    on_result(lock, result, arg);
    close_client(arg);
}

static void finish(void *arg)
{
    struct fixture *f = arg;

    if (f->lock == NULL || quorlock_lock_release(f->lock, on_finished, f) != 0) close_client(f);
}

static void assert_nothing_left(struct fixture *f)
{
    assert_int_equal(machine_blocks(f->machine), 0);
    assert_int_equal(machine_descriptors(f->machine), 0);
}

static void end(struct fixture *f, void (*close)(void *arg))
{
    machine_call(f->machine, close, f);
    until(f, HOUR);
    assert_nothing_left(f);
}

/* One hold ends well, the next in silence. */
static uint64_t live(struct fixture *f, uint64_t seed)
{
    begin(f, seed);
    machine_call(f->machine, start, f);
    until(f, HOUR);
    assert_int_equal(f->status, 0);
    assert_true(quorlock_lock_valid_ms(f->lock) > LEASE_MS / 2);
    assert_in_range(f->n_extended, SERVERS * (RENEWALS - 2), SERVERS * (RENEWALS * 16 / 15 + 2));
    machine_call(f->machine, release, f);
    until(f, HOUR + SECOND);
    assert_int_equal(f->n_results, 2);
    assert_int_equal(f->status, 0);
    assert_int_equal(quorlock_lock_acquire(f->lock, on_result, f), 0);
    until(f, HOUR + 60 * SECOND);
    assert_int_equal(f->n_results, 3);
    for (uint32_t i = 0; i < SERVERS; i++) {
        net_link(f->net, 0, i)->cut_until_us[NET_TO_SERVER] = NEVER;
        net_changed(f->net, 0, i);
    }
    assert_int_equal(f->n_lost, 0);
    until(f, HOUR + 60 * SECOND + LEASES_MS * MS);
    assert_int_equal(f->n_lost, 1);
    assert_true(f->remaining_ms > 0);
    machine_call(f->machine, close_client, f);
    until(f, HOUR + 100 * SECOND);
    assert_int_equal(f->n_closed, 1);
    assert_nothing_left(f);
    return f->trace;
}

WORLD_TEST(one_seed_makes_one_trace)
{
    uint64_t first = live(f, 1);

    assert_int_equal(live(f, 1), first);
    assert_int_not_equal(live(f, 2), first);
    /* Also with other memory. */
    teardown((void **)&f);
    setup((void **)&f);
    assert_int_equal(live(f, 1), first);
    assert_int_equal(real_looks, 0);
}

/* ---- a fault at every point of a short life ---- */

static void live_shortly(struct fixture *f, enum point point, enum harm fault, uint64_t until_fault)
{
    begin(f, 3);
    f->point = point;
    f->fault = fault;
    f->until_fault = until_fault;
    machine_call(f->machine, start, f);
    until(f, SECOND);
    /* Renewed twice, if all is well. */
    until(f, 25 * SECOND);
    machine_call(f->machine, finish, f);
    until(f, 200 * SECOND);
}

/* Its servers forget it, and the next process may have the lock when the lease has ended. */
WORLD_TEST(a_process_may_be_killed_anywhere)
{
    for (int i = 0; i < 2 * POINTS; i++) {
        uint64_t n = 0;

        do {
            live_shortly(f, (enum point)(i % POINTS), i < POINTS ? KILL : KILL_HOST, n++);
            if (!f->struck) break;
            assert_int_equal(machine_bury(f->machine, close_client, f), 0);
            assert_nothing_left(f);
            for (int s = 0; s < SERVERS; s++)
                assert_false(model_look(server_model(f->servers[s]), "key", 3, server_wall_us(f->servers[s]),
                                        &(struct model_value){0}));
        } while (true);
        assert_true(n > 15);
        assert_int_equal(f->n_closed, 1);
    }
}

/* It never believes to hold what it may not, and comes to its end. */
WORLD_TEST(a_process_may_stand_still_anywhere)
{
    for (int i = 0; i < 2 * (AT_SEND + 1); i++) {
        uint64_t n = 0, n_lost = 0;

        do {
            live_shortly(f, (enum point)(i / 2), i % 2 == 0 ? STALL : SUSPEND, n++);
            assert_int_equal(f->n_closed, 1);
            assert_true(f->n_results == 2 || (f->struck && f->n_results == 1));
            assert_nothing_left(f);
            n_lost += f->n_lost;
        } while (f->struck);
        assert_true(n_lost > 0);
        assert_int_equal(f->n_lost, 0);
    }
}

WORLD_TEST(memory_may_be_out_anywhere)
{
    uint64_t n = 0, n_granted = 0;

    do {
        live_shortly(f, AT_ALLOCATION, NO_MEMORY, n++);
        assert_int_equal(f->n_closed, f->client != NULL);
        assert_nothing_left(f);
        n_granted += f->n_results == 2;
    } while (f->struck);
    assert_true(n > 20 && n_granted > 1);
}

/* Far below the node timeout. */
WORLD_TEST(a_close_ends_with_the_last_answer)
{
    begin(f, 10);
    machine_call(f->machine, start, f);
    until(f, SECOND);
    assert_int_equal(f->status, 0);
    machine_call(f->machine, close_client, f);
    until(f, SECOND + 200 * MS);
    assert_int_equal(f->n_closed, 1);
    assert_nothing_left(f);
}

/* Nothing of it is in flight then; its last try ends with the node timeout. */
WORLD_TEST(a_release_that_busy_servers_refuse_is_told_before_the_close)
{
    begin(f, 4);
    machine_call(f->machine, start, f);
    until(f, SECOND);
    assert_int_equal(f->n_results, 1);
    for (int i = 0; i < SERVERS; i++) server_busy(f->servers[i], HOUR);
    machine_call(f->machine, release, f);
    until(f, SECOND + 100 * MS);
    assert_int_equal(f->n_results, 1);
    machine_call(f->machine, close_client, f);
    until(f, 10 * SECOND);
    assert_int_equal(f->n_closed, 1);
    assert_int_equal(f->n_results, 2);
    assert_int_equal(f->status, QUORLOCK_ERR_NOQUORUM);
    assert_nothing_left(f);
}

/* After the pause the answers may lie there unread, so the release is looked at once more, a while later. The time to
 * close has passed by then. */
WORLD_TEST(a_close_after_a_pause_sleeps_until_the_release_ends)
{
    begin(f, 7);
    machine_call(f->machine, start, f);
    until(f, SECOND);
    assert_int_equal(f->status, 0);
    for (int i = 0; i < SERVERS; i++) server_halt(f->servers[i], NEVER);
    machine_call(f->machine, release, f);
    until(f, SECOND + 50 * MS);
    machine_call(f->machine, close_client, f);
    until(f, SECOND + 100 * MS);
    machine_stall(f->machine, 2 * SECOND, false);
    until(f, 10 * SECOND);
    assert_int_equal(f->n_closed, 1);
    assert_int_equal(f->n_results, 2);
    assert_int_equal(f->status, QUORLOCK_ERR_NOQUORUM);
    assert_in_range(machine_counted(f->machine)->spins, 1, 20);
    assert_nothing_left(f);
}

static void on_released(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct fixture *f = arg;

    on_result(lock, result, f);
    assert_in_range(result->granted, SERVERS / 2 + 1, SERVERS);
    assert_string_equal(result->text, result->granted == SERVERS
                                          ? "released \"key\" on 3 of 3 nodes"
                                          : "released \"key\" on 2 of 3 nodes; on its way to 1 more");
}

static void release_and_acquire(void *arg)
{
    struct fixture *f = arg;

    assert_int_equal(quorlock_lock_release(f->lock, on_released, f), 0);
    assert_int_equal(quorlock_lock_acquire(f->lock, on_result, f), 0);
}

/* The answers to the release come during the next attempt, or when that is granted. */
WORLD_TEST(a_release_counts_its_own_answers_while_the_next_acquire_is_in_flight)
{
    for (uint64_t seed = 100; seed < 120; seed++) {
        begin(f, seed);
        machine_call(f->machine, start, f);
        until(f, SECOND);
        for (unsigned n = 1; n < 10; n += 2) {
            assert_int_equal(f->n_results, n);
            machine_call(f->machine, release_and_acquire, f);
            until(f, f->queue.now_us + SECOND);
        }
        assert_int_equal(f->status, QUORLOCK_OK);
        end(f, close_client);
    }
}

#define LEAST_MS (LEASE_MS / 3 * 2)

static void start_of_owner(void *arg)
{
    static const char *const key = "key";
    const struct quorlock_lock_options lease = {
        .size = sizeof(lease), .lease_ms = LEASE_MS, .wait_ms = QUORLOCK_TRY_ONCE, .owner = "me"};
    struct fixture *f = arg;

    start(f);
    quorlock_lock_free(f->lock);
    assert_int_equal(quorlock_lock_new(&f->lock, f->client, &key, 1, &lease), 0);
    assert_int_equal(quorlock_lock_acquire(f->lock, on_result, f), 0);
}

/* It is held long enough when it is called, and not any more when the callback could run. */
static void enter_and_stand_still(void *arg)
{
    static const char *const key = "key";
    const struct quorlock_lock_options lease = {.size = sizeof(lease),
                                                .lease_ms = LEASE_MS,
                                                .wait_ms = QUORLOCK_TRY_ONCE,
                                                .min_valid_ms = LEAST_MS,
                                                .owner = "me"};
    struct fixture *f = arg;
    quorlock_lock *inner;

    assert_int_equal(quorlock_lock_new(&inner, f->client, &key, 1, &lease), 0);
    assert_int_equal(quorlock_lock_acquire(inner, on_result, f), 0);
    machine_stall(f->machine, 2 * MS * (LEASE_MS - LEAST_MS), false);
}

WORLD_TEST(a_hold_has_the_least_validity_when_it_is_told)
{
    begin(f, 5);
    machine_call(f->machine, start_of_owner, f);
    until(f, SECOND);
    f->n_results = 0;
    assert_int_equal(f->status, 0);
    machine_call(f->machine, enter_and_stand_still, f);
    until(f, SECOND + LEASE_MS * MS);
    assert_int_equal(f->n_results, 1);
    assert_int_equal(f->status, 0);
    assert_true(f->valid_ms >= LEAST_MS);
    end(f, close_client);
}

static void start_of_bounded_owner(void *arg)
{
    static const char *const key = "key";
    const struct quorlock_lock_options lease = {.size = sizeof(lease),
                                                .lease_ms = LEASE_MS,
                                                .wait_ms = QUORLOCK_TRY_ONCE,
                                                .max_hold_ms = LEASE_MS / 2,
                                                .owner = "me"};
    struct fixture *f = arg;

    start(f);
    quorlock_lock_free(f->lock);
    assert_int_equal(quorlock_lock_new(&f->lock, f->client, &key, 1, &lease), 0);
    assert_int_equal(quorlock_lock_acquire(f->lock, on_result, f), 0);
}

static void on_refused(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    on_result(lock, result, arg);
    assert_non_null(strstr(result->text, "max_hold_ms"));
}

/* The longest hold of the outer one ends while the machine stalls. */
static void enter_for_the_last_time(void *arg)
{
    static const char *const key = "key";
    const struct quorlock_lock_options lease = {.size = sizeof(lease),
                                                .lease_ms = LEASE_MS,
                                                .wait_ms = QUORLOCK_TRY_ONCE,
                                                .min_valid_ms = LEAST_MS,
                                                .owner = "me"};
    struct fixture *f = arg;
    quorlock_lock *inner;

    assert_int_equal(quorlock_lock_new(&inner, f->client, &key, 1, &lease), 0);
    assert_int_equal(quorlock_lock_acquire(inner, on_refused, f), 0);
    machine_stall(f->machine, 2 * MS * (LEASE_MS - LEAST_MS), false);
}

WORLD_TEST(a_hold_that_can_be_renewed_no_more_is_refused_when_it_is_told)
{
    begin(f, 9);
    machine_call(f->machine, start_of_bounded_owner, f);
    until(f, SECOND);
    f->n_results = 0;
    assert_int_equal(f->status, 0);
    machine_call(f->machine, enter_for_the_last_time, f);
    until(f, SECOND + 2 * MS * (LEASE_MS - LEAST_MS) + 100 * MS);
    assert_int_equal(f->n_results, 1);
    assert_int_equal(f->status, QUORLOCK_ERR_STATE);
    assert_true(quorlock_lock_valid_ms(f->lock) > 0);
    end(f, close_client);
}

static void try_once(void *arg)
{
    static const char *const key = "other";
    const struct quorlock_lock_options lease = {
        .size = sizeof(lease), .lease_ms = LEASE_MS, .wait_ms = QUORLOCK_TRY_ONCE};
    struct fixture *f = arg;
    quorlock_lock *other;

    assert_int_equal(quorlock_lock_new(&other, f->client, &key, 1, &lease), 0);
    assert_int_equal(quorlock_lock_acquire(other, on_result, f), 0);
}

/* The frozen server owes answers to so many requests that there is no place for one more without memory. */
WORLD_TEST(a_close_does_not_wait_for_memory_to_release_on_a_frozen_server)
{
    for (unsigned n_tries = 0; n_tries < 20; n_tries++) {
        begin(f, 8);
        machine_call(f->machine, start, f);
        until(f, SECOND);
        server_halt(f->servers[0], NEVER);
        for (unsigned n = 0; n < n_tries; n++) {
            machine_call(f->machine, try_once, f);
            until(f, f->queue.now_us + 50 * MS);
        }
        assert_int_equal(f->n_results, 1 + n_tries);
        f->no_memory = true;
        machine_call(f->machine, close_client, f);
        until(f, f->queue.now_us + SECOND + 200 * MS);
        assert_int_equal(f->n_closed, 1);
        assert_nothing_left(f);
    }
}

/* Locks of keys with that name and a number, from the first to before the last. */
static void start_locks(struct fixture *f, const char *name, int first, int last,
                        const struct quorlock_lock_options *options, quorlock_lock_cb cb)
{
    for (int i = first; i < last; i++) {
        char text[24];
        const char *key = text;
        quorlock_lock *lock;

        snprintf(text, sizeof(text), "%s-%d", name, i);
        assert_int_equal(quorlock_lock_new(&lock, f->client, &key, 1, options), 0);
        assert_int_equal(quorlock_lock_acquire(lock, cb, f), 0);
    }
}

static void on_ignored(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    (void)result;
}

#define FLOOD 300 /* more attempts than a client makes at a time */

static void start_flood(void *arg)
{
    const struct quorlock_lock_options once = {
        .size = sizeof(once), .lease_ms = LEASE_MS, .wait_ms = QUORLOCK_TRY_ONCE};

    start_locks(arg, "flood", 0, FLOOD, &once, on_ignored);
}

/* Two in the queue for the key of another client, after one that goes: the first asks. The second waits for its turn,
 * and with another lease it does not go on with the attempts of the first. */
static void start_queue(void *arg)
{
    static const char *const key = "key";
    const uint32_t waits_ms[] = {400, 600};
    struct fixture *f = arg;

    quorlock_lock_free(f->lock);
    for (int i = 0; i < 2; i++) {
        const struct quorlock_lock_options lease = {
            .size = sizeof(lease), .lease_ms = LEASE_MS >> i, .wait_ms = waits_ms[i]};

        assert_int_equal(quorlock_lock_new(&f->lock, f->client, &key, 1, &lease), 0);
        assert_int_equal(quorlock_lock_acquire(f->lock, on_result, f), 0);
    }
}

static void close_both(void *arg)
{
    struct fixture *f = arg;

    assert_int_equal(quorlock_client_close(f->other, on_closed, f), 0);
    close_client(f);
}

/* The key goes while nobody listens, with the memory of the servers: no notice tells the lock that waits. */
WORLD_TEST(a_waiting_lock_asks_again_when_it_listens_again)
{
    for (uint64_t seed = 20; seed < 30; seed++) {
        begin(f, seed);
        machine_call(f->machine, start, f);
        until(f, SECOND);
        f->other = f->client;
        machine_call(f->machine, start, f);
        until(f, 5 * SECOND);
        assert_int_equal(f->n_results, 1);
        for (int i = 0; i < SERVERS; i++) {
            server_crash(f->servers[i], false);
            server_launch(f->servers[i], SERVER_EMPTY, false, 0);
        }
        until(f, 5 * SECOND + 100 * MS);
        assert_int_equal(f->n_results, 2);
        assert_int_equal(f->status, QUORLOCK_OK);
        end(f, close_both);
    }
}

/* Its turn comes when there is no room for an attempt any more: it was never asked for, but what kept the one before
 * it waiting kept it, too. */
WORLD_TEST(a_wait_without_room_ends_with_what_was_in_the_way_before)
{
    for (int busy = 0; busy < 2; busy++) {
        begin(f, 12);
        machine_call(f->machine, start, f);
        until(f, SECOND);
        assert_int_equal(f->status, QUORLOCK_OK);
        f->other = f->client;
        machine_call(f->machine, start, f);
        until(f, 2 * SECOND);
        for (int i = 0; i < SERVERS && busy != 0; i++) server_busy(f->servers[i], 2 * SECOND + 200 * MS);
        machine_call(f->machine, start_queue, f);
        until(f, 2 * SECOND + 200 * MS);
        for (int i = 0; i < SERVERS; i++) server_halt(f->servers[i], NEVER);
        machine_call(f->machine, start_flood, f);
        until(f, 2 * SECOND + 500 * MS);
        assert_int_equal(f->n_results, 3);
        until(f, 2 * SECOND + 700 * MS);
        assert_int_equal(f->n_results, 4);
        assert_int_equal(f->status, busy != 0 ? QUORLOCK_ERR_NOQUORUM : QUORLOCK_ERR_HELD);
        end(f, close_both);
    }
}

#ifndef __SANITIZE_ADDRESS__
#define CROWD 100 /* more than a client keeps blocks for; */
#define LATER 10  /* these share theirs */

static const struct quorlock_lock_options crowd_lease = {
    .size = sizeof(crowd_lease), .lease_ms = LEASE_MS, .wait_ms = QUORLOCK_TRY_ONCE, .renew_ms = 1000};

static void come_first(void *arg)
{
    start_locks(arg, "crowd", 0, CROWD, &crowd_lease, on_ignored);
}

static void come_later(void *arg)
{
    start_locks(arg, "crowd", CROWD, CROWD + LATER, &crowd_lease, on_ignored);
}

/* When its second renewal is due, all memory is taken by renewals of others that nobody answers. With all assertions
 * and a sanitizer that takes minutes. */
WORLD_TEST(a_lock_that_cannot_be_renewed_for_want_of_memory_is_lost_in_time)
{
    struct quorlock_statistics statistics = {.size = sizeof(statistics)};

    begin(f, 11);
    machine_call(f->machine, start, f);
    until(f, SECOND);
    machine_call(f->machine, come_first, f);
    until(f, SECOND + 400 * MS);
    machine_call(f->machine, come_later, f);
    until(f, 5 * SECOND);
    server_crash(f->servers[2], false);
    until(f, 17 * SECOND);
    assert_int_equal(quorlock_client_statistics(f->client, &statistics), 0);
    assert_int_equal(statistics.degraded, 1 + CROWD + LATER);
    for (int i = 0; i < 2; i++) server_halt(f->servers[i], NEVER);
    f->no_memory = true;
    until(f, 40 * SECOND);
    assert_int_equal(f->n_lost, 1);
    assert_true(f->remaining_ms > 0);
    /* A lost hold is over, wherever a key of it may be left. */
    machine_call(f->machine, release, f);
    until(f, 40 * SECOND + 500 * MS);
    assert_int_equal(f->n_results, 2);
    assert_int_equal(f->status, QUORLOCK_ERR_LOST);
    until(f, 50 * SECOND);
    assert_int_equal(quorlock_client_statistics(f->client, &statistics), 0);
    assert_int_equal(statistics.held, 0);
    assert_int_equal(statistics.degraded, 0);
    assert_int_equal(statistics.losses[QUORLOCK_LOSS_EXPIRED], 1 + CROWD + LATER);
    f->no_memory = false;
    end(f, close_client);
}
#endif

/* The server that restarted has lost the key; all the time there is room to renew it, and none to repair it only. */
WORLD_TEST(a_lock_that_waits_for_a_repair_is_renewed_in_time)
{
    begin(f, 13);
    machine_call(f->machine, start, f);
    until(f, SECOND);
    assert_true(handle_is_compact(f->lock));
    locks_of(f->lock)->claims.admission.paces[0].room = 1; /* half of that is none */
    server_crash(f->servers[1], false);
    server_launch(f->servers[1], SERVER_EMPTY, false, 0);
    until(f, MS * 2 * LEASES_MS);
    assert_int_equal(f->n_lost, 0);
    assert_true(quorlock_lock_valid_ms(f->lock) > LEASE_MS / 2);
    end(f, close_client);
}

/* The loop's plain timers do not count a suspended machine's time: one that was set before fires late. */
WORLD_TEST(a_request_after_a_suspension_ends_in_time)
{
    struct quorlock_statistics statistics = {.size = sizeof(statistics)};

    begin(f, 6);
    machine_call(f->machine, start, f);
    until(f, SECOND);
    assert_int_equal(f->status, 0);
    for (int i = 0; i < SERVERS; i++) server_halt(f->servers[i], NEVER);
    machine_call(f->machine, release, f);
    until(f, 2 * SECOND + 100 * MS);
    assert_int_equal(f->n_results, 2);
    machine_stall(f->machine, 40 * SECOND, true);
    machine_call(f->machine, try_once, f);
    until(f, 42 * SECOND + 200 * MS);
    assert_int_equal(quorlock_client_statistics(f->client, &statistics), 0);
    assert_int_equal(statistics.nodes[0]->state, QUORLOCK_NODE_STATE_CONNECTING);
    /* It is tried once more on the new connections, on which the servers say no more than before. */
    until(f, 45 * SECOND + 300 * MS);
    assert_int_equal(f->n_results, 3);
    assert_int_equal(f->status, QUORLOCK_ERR_NOQUORUM);
    end(f, close_client);
}

#define CYCLERS 512

static void on_cycled(quorlock_lock *lock, const struct quorlock_result *result, void *arg);

static void on_cycle_granted(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct fixture *f = arg;

    if (f->closing) return;
    assert_int_equal(result->status, QUORLOCK_OK);
    f->n_results++;
    assert_int_equal(quorlock_lock_release(lock, on_cycled, f), 0);
}

static void on_cycled(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    const struct fixture *f = arg;

    if (!f->closing) assert_int_equal(quorlock_lock_acquire(lock, on_cycle_granted, arg), 0);
}

/* Locks that are taken and given back again and again. */
static void start_cyclers(void *arg)
{
    const struct quorlock_lock_options lease = {
        .size = sizeof(lease), .lease_ms = LEASE_MS, .wait_ms = QUORLOCK_TRY_ONCE};
    struct fixture *f = arg;

    f->n_results = 0;
    start_locks(f, "cycled", 0, CYCLERS, &lease, on_cycle_granted);
}

/* Grants in half a second, after another half in which the client has learned how far the third server is. */
static unsigned cycle(struct fixture *f, uint64_t delay_us)
{
    unsigned grants;

    begin(f, 9);
    for (uint32_t i = 0; i < SERVERS; i++) {
        struct net_link *link = net_link(f->net, 0, i);

        link->delay_us[0] = link->delay_us[1] = i == SERVERS - 1 ? delay_us : 2 * MS;
        link->steady = true;
        link->room = 4u << 20;
        link->split_one_in = 0;
    }
    machine_call(f->machine, start, f);
    until(f, 2 * SECOND);
    assert_int_equal(f->status, 0);
    machine_call(f->machine, start_cyclers, f);
    until(f, 2 * SECOND + 500 * MS);
    grants = f->n_results;
    until(f, 3 * SECOND);
    grants = f->n_results - grants;
    end(f, close_client);
    return grants;
}

/* Its requests are on their way for so long that there are very many of them: the others are no slower for that. */
WORLD_TEST(a_server_that_is_far_away_holds_nobody_up)
{
    unsigned near = cycle(f, 2 * MS);

    for (uint64_t delay_ms = 10; delay_ms <= 160; delay_ms *= 4) {
        unsigned far = cycle(f, delay_ms * MS);

        if (far < near / 5 * 4) fail_msg("%u grants, %u where it is near", far, near);
    }
}
