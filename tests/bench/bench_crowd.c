/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_crowd.c - what clients that wait for one key cost its nodes and its holder
 *
 * usage: bench_crowd [--fair] [--shared] [--permits N] [--waiters N] [--grants N] [--grant-ms N] [--hold-ms N]
 *                    [--lease-ms N] NODE...
 *
 * One client holds the key, or all its permits. N clients, in processes of their own, wait for it: with --shared as
 * readers, with --fair in the queue. After some time the holder releases, one permit if it has several; each waiter
 * that is granted releases after --grant-ms, until all of them were, or so many as --grants says. Prints a line of
 * JSON: whether the holder lost the lock, how many nodes its release reached, when the first waiter was granted, the
 * longest time between two grants, by how much the renewals of another lock of the holder were late meanwhile at most,
 * and, of the busiest node, requests a second, those of the time of the grants, and its CPU in hundredths.
 */
#include <event2/event.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <quorlock/quorlock.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "program.h"

#define PROCESSES 4u
#define KEY       "crowd"
#define LIMIT_MS  600000u
#define RENEW_MS  100u /* of the holder's other lock: its requests are few beside those of the grants */

struct crowd {
    const char *const *nodes;
    size_t n_nodes;
    uint32_t waiters, grants, grant_ms, hold_ms, lease_ms, permits;
    bool fair, shared;
    int pipe[2]; /* the waiters write a byte each: w it waits, g it was granted, x it failed */
    struct event_base *base;
    /* of the holder */
    quorlock_client *client;
    bool released;
    uint32_t held, lost, reached;
    uint64_t gap_ms;                /* the longest time between two grants */
    quorlock_lock *beside;          /* another lock of the holder, of another key */
    uint32_t highest_ms, lowest_ms; /* its validity */
};

struct load {
    double cpu_s[QUORLOCK_NODES_MAX];
    double requests[QUORLOCK_NODES_MAX];
};

_Noreturn static void crowd_fail(const char *what)
{
    fprintf(stderr, "bench_crowd: %s\n", what);
    exit(70);
}

static uint64_t crowd_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static quorlock_client *crowd_client(const struct crowd *crowd, struct event_base *base)
{
    struct quorlock_error error;
    struct quorlock_client_options options = {
        .size = sizeof(options), .nodes = crowd->nodes, .n_nodes = crowd->n_nodes, .guard = QUORLOCK_GUARD_OFF};
    quorlock_client *client = NULL;

    if (quorlock_client_new(&client, base, &options, &error) != 0) crowd_fail(error.text);
    return client;
}

static quorlock_lock *crowd_lock(const struct crowd *crowd, quorlock_client *client, bool shared)
{
    static const char *const keys[] = {KEY};
    struct quorlock_lock_options options = {.size = sizeof(options),
                                            .lease_ms = crowd->lease_ms,
                                            .fair = crowd->fair,
                                            .permits = crowd->permits,
                                            .shared = shared ? QUORLOCK_SHARED_ALL : 0};
    quorlock_lock *lock = NULL;

    if (quorlock_lock_new(&lock, client, keys, 1, &options) != 0) crowd_fail(quorlock_client_error(client));
    return lock;
}

/* ---- the waiters ---- */

static void say_byte(const struct crowd *crowd, char byte)
{
    if (write(crowd->pipe[1], &byte, 1) != 1) _exit(0);
}

static void give_back(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)quorlock_lock_release(arg, NULL, NULL);
}

static void on_turn(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    const struct crowd *crowd = arg;
    struct timeval delay = {.tv_sec = crowd->grant_ms / 1000, .tv_usec = (suseconds_t)(crowd->grant_ms % 1000) * 1000};

    say_byte(crowd, result->status == QUORLOCK_OK ? 'g' : 'x');
    if (result->status != QUORLOCK_OK) return;
    if (crowd->grant_ms == 0)
        give_back(-1, 0, lock);
    else if (event_base_once(crowd->base, -1, EV_TIMEOUT, give_back, lock, &delay) != 0)
        crowd_fail("event_base_once");
}

_Noreturn static void wait_in_a_process(struct crowd *crowd, uint32_t n)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    crowd->base = program_loop();
    for (uint32_t i = 0; i < n; i++) {
        quorlock_lock *lock = crowd_lock(crowd, crowd_client(crowd, crowd->base), crowd->shared);

        if (quorlock_lock_acquire(lock, on_turn, crowd) != 0) crowd_fail("acquire");
        say_byte(crowd, 'w');
        if (i % 16 == 15) (void)event_base_loop(crowd->base, EVLOOP_NONBLOCK);
    }
    (void)event_base_dispatch(crowd->base);
    _exit(0);
}

/* ---- the nodes ---- */

static redisContext *crowd_connect(const char *node)
{
    char host[256];
    const char *colon = strrchr(node, ':');
    redisContext *context;

    if (colon == NULL) crowd_fail("a node is host:port here");
    snprintf(host, sizeof(host), "%.*s", (int)(colon - node), node);
    context = redisConnect(host, (int)strtol(colon + 1, NULL, 10));
    if (context == NULL || context->err != 0) crowd_fail("a node does not answer");
    return context;
}

static double number_behind(const char *text, const char *name)
{
    const char *at = strstr(text, name);

    return at != NULL ? strtod(at + strlen(name), NULL) : 0;
}

/* What clients send, without what scripts call. */
static void read_load(const struct crowd *crowd, struct load *ret)
{
    static const char *const kinds[] = {"cmdstat_eval:calls=", "cmdstat_evalsha:calls=", "cmdstat_ping:calls=",
                                        "cmdstat_subscribe:calls=", "cmdstat_unsubscribe:calls="};

    *ret = (struct load){0};
    for (size_t i = 0; i < crowd->n_nodes; i++) {
        redisContext *context = crowd_connect(crowd->nodes[i]);
        redisReply *cpu = redisCommand(context, "INFO cpu");
        redisReply *calls = redisCommand(context, "INFO commandstats");

        if (cpu == NULL || calls == NULL || cpu->str == NULL || calls->str == NULL) crowd_fail("INFO");
        ret->cpu_s[i] = number_behind(cpu->str, "used_cpu_user:") + number_behind(cpu->str, "used_cpu_sys:");
        for (size_t kind = 0; kind < sizeof(kinds) / sizeof(*kinds); kind++)
            ret->requests[i] += number_behind(calls->str, kinds[kind]);
        freeReplyObject(cpu);
        freeReplyObject(calls);
        redisFree(context);
    }
}

static double most(const struct crowd *crowd, const double *after, const double *before)
{
    double ret = 0;

    for (size_t i = 0; i < crowd->n_nodes; i++)
        if (after[i] - before[i] > ret) ret = after[i] - before[i];
    return ret;
}

/* ---- the holder ---- */

static void on_held(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct crowd *crowd = arg;

    (void)lock;
    if (result->status != QUORLOCK_OK) crowd_fail(result->text);
    crowd->held++;
}

static void on_lost(quorlock_lock *lock, const struct quorlock_loss *loss, void *arg)
{
    struct crowd *crowd = arg;

    (void)lock;
    fprintf(stderr, "bench_crowd: %s\n", loss->text);
    crowd->lost++;
}

static void on_released(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct crowd *crowd = arg;

    (void)lock;
    crowd->released = true;
    crowd->reached = result->granted;
}

static void run_for(struct crowd *crowd, uint32_t ms)
{
    struct timeval delay = {.tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000};

    (void)event_base_loopexit(crowd->base, &delay);
    (void)event_base_loop(crowd->base, EVLOOP_NO_EXIT_ON_EMPTY);
}

static void look_beside(struct crowd *crowd)
{
    uint32_t valid_ms = quorlock_lock_valid_ms(crowd->beside);

    if (valid_ms > crowd->highest_ms) crowd->highest_ms = valid_ms;
    if (valid_ms < crowd->lowest_ms) crowd->lowest_ms = valid_ms;
}

/* By how much the validity was lower than renewals in time leave it. */
static uint32_t late_ms(const struct crowd *crowd)
{
    uint32_t in_time_ms = crowd->lowest_ms + RENEW_MS;

    return crowd->highest_ms > in_time_ms ? crowd->highest_ms - in_time_ms : 0;
}

/* Run until so many bytes of that kind came; return how many ms that took. */
static uint64_t await_bytes(struct crowd *crowd, char kind, uint32_t n)
{
    uint64_t begun_ms = crowd_now_ms(), last_ms = begun_ms;
    char bytes[512];

    while (n > 0) {
        struct pollfd ready = {.fd = crowd->pipe[0], .events = POLLIN};
        ssize_t length;

        run_for(crowd, 1);
        if (crowd->beside != NULL) look_beside(crowd);
        if (crowd_now_ms() - begun_ms > LIMIT_MS) crowd_fail("the waiters do not go on");
        if (poll(&ready, 1, 0) <= 0) continue;
        length = read(crowd->pipe[0], bytes, n < sizeof(bytes) ? n : sizeof(bytes));
        if (kind == 'g' && crowd_now_ms() - last_ms > crowd->gap_ms) crowd->gap_ms = crowd_now_ms() - last_ms;
        last_ms = crowd_now_ms();
        for (ssize_t i = 0; i < length; i++) {
            if (bytes[i] == 'x') crowd_fail("a waiter failed");
            n -= bytes[i] == kind;
        }
    }
    return crowd_now_ms() - begun_ms;
}

/* Return one of the locks that the holder has. */
static quorlock_lock *hold(struct crowd *crowd)
{
    quorlock_lock *lock;
    uint32_t n = crowd->permits > 0 ? crowd->permits : 1;

    crowd->base = program_loop();
    crowd->client = crowd_client(crowd, crowd->base);
    for (uint32_t i = 0; i < n; i++) {
        lock = crowd_lock(crowd, crowd->client, false);
        (void)quorlock_lock_set_on_lost(lock, on_lost, crowd);
        if (quorlock_lock_acquire(lock, on_held, crowd) != 0) crowd_fail("acquire");
    }
    while (crowd->held < n) run_for(crowd, 1);
    return lock;
}

static void hold_beside(struct crowd *crowd)
{
    static const char *const keys[] = {"beside"};
    struct quorlock_lock_options options = {.size = sizeof(options), .lease_ms = crowd->lease_ms, .renew_ms = RENEW_MS};
    uint32_t held = crowd->held;

    if (quorlock_lock_new(&crowd->beside, crowd->client, keys, 1, &options) != 0 ||
        quorlock_lock_acquire(crowd->beside, on_held, crowd) != 0)
        crowd_fail("the lock beside");
    while (crowd->held == held) run_for(crowd, 1);
    crowd->lowest_ms = UINT32_MAX;
}

static void measure(struct crowd *crowd)
{
    quorlock_lock *lock = hold(crowd);
    struct load before, during, released, after;
    uint64_t begun_ms, first_ms, all_ms;
    double seconds;

    for (uint32_t i = 0; i < PROCESSES; i++) {
        uint32_t n = crowd->waiters / PROCESSES + (i < crowd->waiters % PROCESSES);
        pid_t child = fork();

        if (child < 0) crowd_fail("fork");
        if (child == 0) wait_in_a_process(crowd, n);
    }
    (void)await_bytes(crowd, 'w', crowd->waiters);
    run_for(crowd, crowd->hold_ms / 2);
    read_load(crowd, &before);
    begun_ms = crowd_now_ms();
    run_for(crowd, crowd->hold_ms / 2);
    read_load(crowd, &during);
    seconds = (double)(crowd_now_ms() - begun_ms) / 1000;
    hold_beside(crowd);
    read_load(crowd, &released);
    if (crowd->lost == 0 && quorlock_lock_release(lock, on_released, crowd) != 0) crowd_fail("release");
    first_ms = await_bytes(crowd, 'g', 1);
    all_ms = await_bytes(crowd, 'g', crowd->grants - 1);
    read_load(crowd, &after);
    while (crowd->lost == 0 && !crowd->released) run_for(crowd, 1);
    printf("{\"waiters\": %" PRIu32 ", \"lost\": %" PRIu32 ", \"reached\": %" PRIu32 ", \"first_ms\": %" PRIu64
           ", \"all_ms\": %" PRIu64 ", \"cpu_percent\": %.1f, \"requests_a_second\": %.1f, \"requests_a_grant\": %.1f, "
           "\"gap_ms\": %" PRIu64 ", \"late_ms\": %" PRIu32 ", \"cpu_ms_a_grant\": %.2f}\n",
           crowd->waiters, crowd->lost, crowd->reached, first_ms, all_ms,
           100 * most(crowd, during.cpu_s, before.cpu_s) / seconds,
           most(crowd, during.requests, before.requests) / seconds,
           most(crowd, after.requests, released.requests) / crowd->grants, crowd->gap_ms, late_ms(crowd),
           1000 * most(crowd, after.cpu_s, released.cpu_s) / crowd->grants);
}

static void allow_sockets(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static bool read_option(struct crowd *crowd, const char *name, const char *word)
{
    if (strcmp(name, "--waiters") == 0) return program_number(&crowd->waiters, word, 20000);
    if (strcmp(name, "--grants") == 0) return program_number(&crowd->grants, word, 20000);
    if (strcmp(name, "--grant-ms") == 0) return program_number(&crowd->grant_ms, word, 10000);
    if (strcmp(name, "--permits") == 0) return program_number(&crowd->permits, word, QUORLOCK_PERMITS_MAX);
    if (strcmp(name, "--hold-ms") == 0) return program_number(&crowd->hold_ms, word, 600000);
    return strcmp(name, "--lease-ms") == 0 && program_number(&crowd->lease_ms, word, 30000);
}

int main(int argc, char **argv)
{
    struct crowd crowd = {.waiters = 100, .hold_ms = 14000, .lease_ms = 10000};
    bool good = true;
    int at = 1;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    for (; good && at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "--fair") == 0)
            crowd.fair = true;
        else if (strcmp(argv[at], "--shared") == 0)
            crowd.shared = true;
        else if (at + 1 < argc) {
            good = read_option(&crowd, argv[at], argv[at + 1]);
            at++;
        } else
            good = false;
    }
    if (!good || at >= argc) {
        fprintf(stderr,
                "usage: bench_crowd [--fair] [--shared] [--permits N] [--waiters N] [--grants N] [--grant-ms N] "
                "[--hold-ms N] [--lease-ms N] NODE...\n");
        return 64;
    }
    if (crowd.grants == 0 || crowd.grants > crowd.waiters) crowd.grants = crowd.waiters;
    crowd.nodes = (const char *const *)argv + at;
    crowd.n_nodes = (size_t)(argc - at);
    if (crowd.n_nodes > QUORLOCK_NODES_MAX || pipe(crowd.pipe) != 0) crowd_fail("too many nodes, or no pipe");
    allow_sockets();
    measure(&crowd);
    fflush(stdout);
    /* The waiters end with this process. */
    _exit(crowd.lost == 0 ? 0 : 1);
}
