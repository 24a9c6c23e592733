/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_waiters.c - what a release costs the nodes while clients wait
 *
 * usage: bench_waiters key|list WAITERS RELEASES HOLD_MS NODE,NODE,...
 *
 * key: so many clients contend for one key, of which each holds it for so long again and again. list: so many wait for
 * two keys of which one is held all the time, while another client takes and releases the other. Prints as JSON how
 * many requests to nodes all clients together sent for each release.
 */
#include <event2/event.h>
#include <quorlock/quorlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

#define WAITERS_LIMIT  1000
#define RELEASES_LIMIT 1000000
#define HOLD_MS_LIMIT  60000
#define LEASE_MS       30000u

struct bench;

struct user {
    struct bench *bench;
    quorlock_client *client;
    quorlock *lock;
    struct event *timer;
};

struct bench {
    struct event_base *base;
    const char *nodes;
    uint32_t n, releases, hold_ms;
    bool list;
    struct user *users; /* the waiters; with `list` behind them who holds one key, and who uses the other */
    uint32_t n_users, seen;
    uint64_t begun; /* requests until the measured part began */
};

static uint64_t requests_of(const struct bench *bench)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < bench->n_users; i++) {
        struct quorlock_statistics now = {.size = sizeof(now)};

        if (quorlock_client_statistics(bench->users[i].client, &now) != 0) program_fail("no statistics");
        for (size_t k = 0; k < now.n_nodes; k++) sum += now.nodes[k]->requests;
    }
    return sum;
}

/* Who begins is no waiter yet: the first releases do not count. */
static void count(struct bench *bench)
{
    uint32_t warm_up = bench->list ? 10 : bench->n + 10;

    if (++bench->seen == warm_up) bench->begun = requests_of(bench);
    if (bench->seen == warm_up + bench->releases) event_base_loopbreak(bench->base);
}

static void on_acquired(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    struct user *user = arg;
    struct timeval hold = {.tv_sec = user->bench->hold_ms / 1000,
                           .tv_usec = (suseconds_t)(user->bench->hold_ms % 1000) * 1000};

    (void)lock;
    if (result->status != QUORLOCK_OK) program_fail(result->text);
    if (user->timer != NULL) event_add(user->timer, &hold);
}

static void take(struct user *user)
{
    if (quorlock_acquire(user->lock, on_acquired, user) != 0) program_fail(quorlock_client_error(user->client));
}

static void on_released(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    struct user *user = arg;

    (void)lock;
    (void)result;
    count(user->bench);
    take(user);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct user *user = arg;

    (void)fd;
    (void)what;
    if (quorlock_release(user->lock, on_released, user) != 0) program_fail(quorlock_client_error(user->client));
}

static void on_ready(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    if (result->status != QUORLOCK_OK) program_fail(result->text);
    quorlock_free(lock);
    event_base_loopbreak(arg);
}

static quorlock *lock_of(struct user *user, const char *const *keys, size_t n_keys)
{
    const struct quorlock_options options = {
        .size = sizeof(options), .lease_ms = LEASE_MS, .wait_ms = QUORLOCK_WAIT_FOREVER};
    quorlock *lock = NULL;

    if (quorlock_new(&lock, user->client, keys, n_keys, &options) != 0)
        program_fail(quorlock_client_error(user->client));
    return lock;
}

/* Its client has reached a quorum. */
static void add(struct bench *bench, const char *const *keys, size_t n_keys, bool releases)
{
    struct user *user = &bench->users[bench->n_users];
    const struct quorlock_client_options options = {.guard = QUORLOCK_GUARD_OFF};
    char warm[32];
    const char *key = warm;

    (void)snprintf(warm, sizeof(warm), "warm:%u", bench->n_users++);
    user->bench = bench;
    user->client = program_client(bench->base, bench->nodes, options);
    if (quorlock_acquire(lock_of(user, &key, 1), on_ready, bench->base) != 0)
        program_fail(quorlock_client_error(user->client));
    event_base_dispatch(bench->base);
    user->lock = lock_of(user, keys, n_keys);
    if (releases) user->timer = event_new(bench->base, -1, 0, on_timer, user);
}

static void measure(struct bench *bench)
{
    const char *const keys[] = {"waiters:a", "waiters:b"};

    bench->users = calloc(bench->n + 2, sizeof(*bench->users));
    if (bench->users == NULL) program_fail("no memory");
    for (uint32_t i = 0; i < bench->n; i++) add(bench, keys, bench->list ? 2 : 1, !bench->list);
    if (bench->list) {
        add(bench, &keys[0], 1, false);
        add(bench, &keys[1], 1, true);
    }
    /* With a list those that hold come first. */
    for (uint32_t i = bench->n_users; i > 0; i--) take(&bench->users[i - 1]);
    event_base_dispatch(bench->base);
    printf("{\"requests_a_release\": %.2f}\n", (double)(requests_of(bench) - bench->begun) / bench->releases);
}

int main(int argc, char **argv)
{
    struct bench bench = {.base = NULL};
    bool good = argc == 6 && program_number(&bench.n, argv[2], WAITERS_LIMIT) &&
                program_number(&bench.releases, argv[3], RELEASES_LIMIT) &&
                program_number(&bench.hold_ms, argv[4], HOLD_MS_LIMIT);

    if (!good || (strcmp(argv[1], "key") != 0 && strcmp(argv[1], "list") != 0)) {
        fprintf(stderr, "usage: bench_waiters key|list WAITERS RELEASES HOLD_MS NODE,NODE,...\n");
        return 64;
    }
    bench.list = strcmp(argv[1], "list") == 0;
    bench.nodes = argv[5];
    bench.base = program_loop();
    measure(&bench);
    /* The process ends, and with it all that waits. */
    free(bench.users);
    return 0;
}
