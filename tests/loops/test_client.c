/* SPDX-License-Identifier: BSD-3-Clause */
/* test_client.c - whole clients on a loop, with real servers: they keep what quorlock/loop.h promises, and work */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guard.h"
#include "integration/cluster.h"
#include "kind.h"
#include "test.h"

#define MS         UINT64_C(1000)
#define LIMIT_US   (60000 * MS)
#define TICK_US    (5 * MS)
#define LEASE_MS   9000u /* a busy machine may stall for seconds between two renewals */
#define USERS      6
#define NODES      3
#define LOG_LENGTH 65536

struct fixture;

/* A client, its lock, and what was told of them. */
struct user {
    struct fixture *f;
    quorlock_client *client;
    quorlock_lock *lock;
    int acquired, released, closed, lost, reports;
    int status;
    uint32_t answered;
    void (*on_acquired)(struct user *);
};

struct fixture {
    struct cluster cluster;
    struct quorlock_loop loop;
    void *tick; /* not of the guarded loop */
    struct quorlock_loop plain;
    struct quorlock_client_options options;
    struct user users[USERS];
    char names[NODES][TEXT_SIZE];
    const char *nodes[NODES];
    char log[LOG_LENGTH];
};

static void on_tick(void *arg)
{
    struct fixture *f = arg;

    f->plain.timer_set(f->tick, TICK_US);
}

static void on_log(int level, const char *text, void *arg)
{
    struct fixture *f = arg;
    size_t used = strlen(f->log);

    snprintf(f->log + used, sizeof(f->log) - used, "%s\n", text);
}

static int begin(void **state, uint32_t n_servers)
{
    static struct fixture f;

    memset(&f, 0, sizeof(f));
    loop_kind.open();
    f.plain = loop_kind.table();
    f.loop = guard_begin(&f.plain);
    cluster_start(&f.cluster, n_servers);
    f.tick = f.plain.timer_new(f.plain.arg, on_tick, &f);
    assert_non_null(f.tick);
    on_tick(&f);
    f.options = (struct quorlock_client_options){.size = sizeof(f.options),
                                                 .nodes = f.cluster.addresses,
                                                 .n_nodes = n_servers,
                                                 .guard = QUORLOCK_GUARD_OFF,
                                                 .log = on_log,
                                                 .log_arg = &f};
    *state = &f;
    return 0;
}

static int setup(void **state)
{
    return begin(state, NODES);
}

static int setup_bare(void **state)
{
    return begin(state, 0);
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    cluster_end(&f->cluster);
    f->plain.timer_free(f->tick);
    guard_end();
    loop_kind.close();
    return 0;
}

#define SERVERS_TEST(name) TEST_WITH(fixture, name, setup, teardown)
#define BARE_TEST(name)    TEST_WITH(fixture, name, setup_bare, teardown)

#define UNTIL(f, condition)                                                                                            \
    for (uint64_t until_us_ = clock_us() + LIMIT_US; !(condition);) {                                                  \
        if (clock_us() > until_us_) fail_msg("%s did not come. Log:\n%s", #condition, (f)->log);                       \
        loop_kind.turn();                                                                                              \
    }

/* ---- users ---- */

static void on_acquired(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct user *user = arg;

    user->acquired++;
    user->status = result->status;
    if (user->on_acquired != NULL) user->on_acquired(user);
}

static void on_released(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct user *user = arg;

    user->released++;
    user->status = result->status;
}

static void on_lost(quorlock_lock *lock, const struct quorlock_loss *loss, void *arg)
{
    ((struct user *)arg)->lost++;
}

static void on_report(int status, const struct quorlock_inspect_report *report, void *arg)
{
    struct user *user = arg;

    user->reports++;
    user->answered = report->answered;
}

static void on_closed(void *arg)
{
    ((struct user *)arg)->closed++;
}

static struct user *make(struct fixture *f, size_t i, const char *key)
{
    const struct quorlock_lock_options options = {.size = sizeof(options), .lease_ms = LEASE_MS};
    struct user *user = &f->users[i];
    struct quorlock_error error;

    user->f = f;
    if (quorlock_client_new_on_loop(&user->client, &f->loop, &f->options, &error) != 0) fail_msg("%s", error.text);
    assert_int_equal(quorlock_lock_new(&user->lock, user->client, &key, 1, &options), 0);
    quorlock_lock_set_on_lost(user->lock, on_lost, user);
    return user;
}

/* Until all nodes answer. */
static void await_nodes(struct user *user)
{
    while (user->answered < NODES) {
        int reports = user->reports + 1;

        assert_int_equal(quorlock_client_inspect(user->client, "ready?", on_report, user), 0);
        UNTIL(user->f, user->reports == reports);
    }
}

static void acquire(struct user *user)
{
    assert_int_equal(quorlock_lock_acquire(user->lock, on_acquired, user), 0);
}

static void await_grant(struct user *user)
{
    UNTIL(user->f, user->acquired > 0);
    assert_int_equal(user->status, QUORLOCK_OK);
}

static void release(struct user *user)
{
    assert_int_equal(quorlock_lock_release(user->lock, on_released, user), 0);
    UNTIL(user->f, user->released > 0);
    assert_int_equal(user->status, QUORLOCK_OK);
}

static void start_close(struct user *user)
{
    assert_int_equal(quorlock_client_close(user->client, on_closed, user), 0);
}

/* It calls none of the loop's functions after that. */
static void await_silence(struct user *user)
{
    size_t calls;
    uint64_t until_us;

    UNTIL(user->f, user->closed > 0);
    calls = guard_calls();
    assert_int_equal(guard_live(), 0);
    for (until_us = clock_us() + 20 * MS; clock_us() < until_us;) loop_kind.turn();
    assert_int_equal(guard_calls(), calls);
    assert_int_equal(user->closed, 1);
}

static void close_user(struct user *user)
{
    start_close(user);
    await_silence(user);
}

static void pass(uint64_t us)
{
    uint64_t until_us = clock_us() + us;

    while (clock_us() < until_us) loop_kind.turn();
}

/* Until a renewal made the lock valid for longer than it was. */
static void await_renewal(struct user *user)
{
    uint64_t before_ms, valid_ms = UINT64_MAX;

    do {
        before_ms = valid_ms;
        pass(TICK_US);
        valid_ms = (uint64_t)quorlock_lock_valid_ms(user->lock);
    } while (valid_ms <= before_ms && user->lost == 0);
    assert_int_equal(user->lost, 0);
}

/* ---- life ---- */

SERVERS_TEST(a_lock_is_taken_kept_and_given_back)
{
    struct user *user = make(f, 0, "key");

    await_nodes(user);
    acquire(user);
    await_grant(user);
    await_renewal(user);
    assert_true(cluster_holders(&f->cluster, "key", quorlock_lock_token(user->lock)) >= 2);
    release(user);
    close_user(user);
    cluster_await_free(&f->cluster, "key");
}

/* Connections end by a reset and a hang-up, are refused, and come back. */
SERVERS_TEST(a_server_dies_and_comes_back)
{
    struct user *user = make(f, 0, "key");

    await_nodes(user);
    acquire(user);
    await_grant(user);
    server_kill(&f->cluster.servers[0]);
    await_renewal(user);
    server_start(&f->cluster.servers[0]);
    UNTIL(f, cluster_holders(&f->cluster, "key", quorlock_lock_token(user->lock)) == NODES);
    for (int i = 0; i < NODES; i++) server_kill(&f->cluster.servers[i]);
    UNTIL(f, user->lost > 0);
    assert_int_equal(quorlock_lock_valid_ms(user->lock), 0);
    close_user(user);
}

static void close_at_once(struct user *user)
{
    start_close(user);
}

SERVERS_TEST(a_client_is_closed_inside_its_callback)
{
    struct user *user = make(f, 0, "key");

    await_nodes(user);
    user->on_acquired = close_at_once;
    acquire(user);
    await_grant(user);
    await_silence(user);
    cluster_await_free(&f->cluster, "key");
}

/* ---- host names ---- */

static void name_nodes(struct fixture *f, const char *host)
{
    for (unsigned i = 0; i < NODES; i++) {
        snprintf(f->names[i], sizeof(f->names[i]), "%s:%u", host, i + 1);
        f->nodes[i] = f->names[i];
    }
    f->options.nodes = f->nodes;
    f->options.n_nodes = NODES;
}

/* The names are asked for from the first turn on. */
BARE_TEST(a_client_is_closed_while_names_are_looked_up)
{
    struct user *user;

    name_nodes(f, "quorlock.invalid");
    for (size_t turns = 0; turns < USERS; turns++) {
        user = make(f, turns, "key");
        for (size_t i = 0; i < turns; i++) loop_kind.turn();
        close_user(user);
    }
}

/* ---- the table ---- */

static void refused(struct fixture *f, const struct quorlock_loop *loop, const char *why)
{
    quorlock_client *client = NULL;
    struct quorlock_error error;

    assert_int_equal(quorlock_client_new_on_loop(&client, loop, &f->options, &error), QUORLOCK_ERR_INVAL);
    assert_null(client);
    assert_contains(error.text, why);
    assert_int_equal(guard_calls(), 0);
}

BARE_TEST(a_loop_needs_all_of_its_functions)
{
    size_t at = offsetof(struct quorlock_loop, watch_new);
    struct quorlock_loop loop;

    name_nodes(f, "127.0.0.1");
    for (; at < sizeof(loop); at += sizeof(void (*)(void))) {
        loop = f->loop;
        memset((char *)&loop + at, 0, sizeof(void (*)(void)));
        refused(f, &loop, "is NULL");
    }
    loop = f->loop;
    loop.size = 0;
    refused(f, &loop, "quorlock_loop.size is 0");
    loop.size = offsetof(struct quorlock_loop, task_free);
    refused(f, &loop, "is NULL");
    refused(f, NULL, "loop is NULL");
    assert_int_equal(quorlock_client_new_on_loop(NULL, &f->loop, &f->options, NULL), QUORLOCK_ERR_INVAL);
}

static void *none(void *arg, int fd, void (*ready)(void *, unsigned), void *of)
{
    return NULL;
}

static void *no_timer(void *arg, void (*fire)(void *), void *of)
{
    return NULL;
}

/* A loop without memory: everything that was made is freed again before the call returns. */
BARE_TEST(a_loop_may_be_out_of_memory)
{
    quorlock_client *client = NULL;

    name_nodes(f, "127.0.0.1");
    for (int what = 0; what < 3; what++) {
        struct quorlock_loop loop = f->loop;

        if (what == 0) loop.watch_new = none;
        if (what == 1) loop.timer_new = no_timer;
        if (what == 2) loop.task_new = no_timer;
        assert_int_equal(quorlock_client_new_on_loop(&client, &loop, &f->options, NULL), QUORLOCK_ERR_NOMEM);
        assert_int_equal(guard_live(), 0);
    }
    assert_null(client);
}
