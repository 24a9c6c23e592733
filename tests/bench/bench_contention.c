/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_contention.c - one process that contends for a key; the script `contention` starts many of them
 *
 * usage: bench_contention [--hold-us N] [--think-us N] [--uneven] [--handles N] [--lease-ms N] [--redisson] [--fair]
 *                         [--permits K] [--readers PERCENT] NODE...
 *        bench_contention --raw NODE...
 *
 * Connects, says "ready", and reads "KEY BEGIN END" from stdin, times in nanoseconds of CLOCK_MONOTONIC, which
 * is the same for all processes of a machine. From BEGIN to END each handle acquires, holds, releases and
 * thinks, again and again. Then every turn is printed: when the grant came, when it called release, when
 * that was answered, how many attempts it took, when it called acquire, its slot, and 1 where it was a reader.
 *
 * --uneven: a handle thinks for any time up to twice as long. --permits: the key has so many. --readers: so many of 100
 * turns, drawn at random, are those of readers.
 *
 * --raw: the baseline under the same load: a PING and its answer, sync, on one node after the other.
 */
#include <event2/event.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <limits.h>
#include <quorlock/quorlock.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "program.h"

#define KEY_SIZE     128
#define HANDLES_MAX  1024
#define RAW_PAUSE_US 3000
#define NS_PER_US    1000u

struct turn {
    uint64_t granted_ns, release_ns, released_ns;
    uint32_t rounds;
    uint64_t asked_ns;
    uint32_t slot;
    bool shared;
};

struct handle {
    struct bench *bench;
    quorlock_lock *locks[2]; /* the second is a reader's */
    quorlock_lock *lock;     /* of this turn */
    struct event *timer;
    struct turn turn;
    bool inside;
};

struct bench {
    struct event_base *base;
    quorlock_client *client;
    uint32_t hold_us, think_us, lease_ms, n_handles, permits, readers;
    bool fair;
    bool uneven;
    int dialect;
    char key[KEY_SIZE];
    uint64_t begin_ns, end_ns;
    struct handle *handles;
    uint32_t at_work;
    struct turn *turns;
    size_t n_turns, room;
    unsigned failed; /* acquires that were not granted */
};

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void sleep_until(uint64_t until_ns)
{
    struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u), .tv_nsec = (long)(until_ns % 1000000000u)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0) continue;
}

static void fail(const char *what)
{
    fprintf(stderr, "bench_contention: %s\n", what);
    exit(70);
}

/* "KEY BEGIN END"; without it, our script has gone. */
static void read_order(struct bench *bench)
{
    char line[KEY_SIZE + 64];
    const char *key;
    char *left = NULL;
    const char *begin_ns, *end_ns;

    printf("ready\n");
    fflush(stdout);
    if (fgets(line, sizeof(line), stdin) == NULL) exit(0);
    key = strtok_r(line, " \n", &left);
    begin_ns = strtok_r(NULL, " \n", &left);
    end_ns = strtok_r(NULL, " \n", &left);
    if (end_ns == NULL || strlen(key) >= sizeof(bench->key)) fail("the order is not KEY BEGIN END");
    memcpy(bench->key, key, strlen(key) + 1);
    bench->begin_ns = strtoull(begin_ns, NULL, 10);
    bench->end_ns = strtoull(end_ns, NULL, 10);
}

/* ---- the baseline ---- */

static redisContext *reach(const char *node)
{
    char host[256];
    const char *colon = strrchr(node, ':');
    struct timeval limit = {.tv_sec = 1};
    redisContext *context;

    if (colon == NULL) fail("--raw wants host:port");
    snprintf(host, sizeof(host), "%.*s", (int)(colon - node), node);
    context = redisConnectWithTimeout(host, (int)strtol(colon + 1, NULL, 10), limit);
    if (context == NULL || context->err != 0) fail("a node does not answer");
    redisSetTimeout(context, limit);
    return context;
}

static void measure_raw(struct bench *bench, char **nodes, int n_nodes)
{
    redisContext *contexts[QUORLOCK_NODES_MAX];

    if (n_nodes > QUORLOCK_NODES_MAX) fail("too many nodes");
    for (int i = 0; i < n_nodes; i++) contexts[i] = reach(nodes[i]);
    read_order(bench);
    sleep_until(bench->begin_ns);
    for (int i = 0; now_ns() < bench->end_ns; i = (i + 1) % n_nodes) {
        uint64_t begun_ns = now_ns();
        void *reply = redisCommand(contexts[i], "PING");

        if (reply == NULL) fail("a node does not answer any more");
        printf("raw %" PRIu64 "\n", now_ns() - begun_ns);
        freeReplyObject(reply);
        sleep_until(begun_ns + (uint64_t)RAW_PAUSE_US * NS_PER_US);
    }
    for (int i = 0; i < n_nodes; i++) redisFree(contexts[i]);
}

/* ---- contention ---- */

static void next(struct handle *handle);

static void note(struct bench *bench, const struct turn *turn)
{
    if (bench->n_turns == bench->room) {
        bench->room = bench->room == 0 ? 4096 : 2 * bench->room;
        bench->turns = realloc(bench->turns, bench->room * sizeof(*bench->turns));
        if (bench->turns == NULL) fail("no memory");
    }
    bench->turns[bench->n_turns++] = *turn;
}

static void wake_in(struct handle *handle, uint32_t us)
{
    struct timeval delay = {.tv_sec = us / 1000000, .tv_usec = us % 1000000};

    if (event_add(handle->timer, &delay) != 0) fail("no timer");
}

static void think(struct handle *handle)
{
    uint32_t think_us = handle->bench->think_us;

    if (handle->bench->uneven) think_us = (uint32_t)((uint64_t)random() % (2 * (uint64_t)think_us + 1));
    if (think_us != 0) {
        wake_in(handle, think_us);
    } else {
        next(handle);
    }
}

static void on_released(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct handle *handle = arg;

    handle->turn.released_ns = now_ns();
    note(handle->bench, &handle->turn);
    think(handle);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct handle *handle = arg;

    if (!handle->inside) {
        next(handle);
        return;
    }
    handle->inside = false;
    handle->turn.release_ns = now_ns();
    if (quorlock_lock_release(handle->lock, on_released, handle) != 0) fail("release");
}

static void on_acquired(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct handle *handle = arg;

    if (result->status != QUORLOCK_OK) {
        if (result->status != QUORLOCK_ERR_CANCELED) handle->bench->failed++;
        next(handle);
        return;
    }
    handle->turn.granted_ns = now_ns();
    handle->turn.rounds = result->rounds;
    handle->turn.slot = result->slot;
    handle->inside = true;
    wake_in(handle, handle->bench->hold_us);
}

static void next(struct handle *handle)
{
    struct bench *bench = handle->bench;

    handle->turn = (struct turn){.asked_ns = now_ns(), .shared = random() % 100 < (long)bench->readers};
    handle->lock = handle->locks[handle->turn.shared];
    if (handle->turn.asked_ns >= bench->end_ns) {
        if (--bench->at_work == 0) event_base_loopbreak(bench->base);
    } else if (quorlock_lock_acquire(handle->lock, on_acquired, handle) != 0) {
        fail(quorlock_client_error(bench->client));
    }
}

/* Who still waits at the end goes. */
static void on_end(evutil_socket_t fd, short what, void *arg)
{
    struct bench *bench = arg;

    for (uint32_t i = 0; i < bench->n_handles; i++) {
        struct handle *handle = &bench->handles[i];

        if (!handle->inside && handle->lock != NULL) (void)quorlock_lock_cancel(handle->lock);
    }
}

static quorlock_lock *lock_on(struct bench *bench, const char *key, uint32_t permits, uint64_t shared)
{
    struct quorlock_lock_options options = {.size = sizeof(options),
                                            .lease_ms = bench->lease_ms,
                                            .permits = permits,
                                            .fair = bench->fair,
                                            .shared = shared};
    quorlock_lock *lock = NULL;

    if (quorlock_lock_new(&lock, bench->client, &key, 1, &options) != 0) fail(quorlock_client_error(bench->client));
    return lock;
}

static void on_first(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    if (result->status != QUORLOCK_OK) fail(result->text);
    quorlock_lock_free(lock);
    event_base_loopbreak(arg);
}

static void connect_client(struct bench *bench, const char *const *nodes, size_t n_nodes)
{
    struct quorlock_error error;
    char key[KEY_SIZE];
    struct quorlock_client_options options = {.size = sizeof(options),
                                              .nodes = nodes,
                                              .n_nodes = n_nodes,
                                              .guard = QUORLOCK_GUARD_OFF,
                                              .dialect = bench->dialect};

    bench->base = program_loop();
    if (quorlock_client_new(&bench->client, bench->base, &options, &error) != 0) fail(error.text);
    snprintf(key, sizeof(key), "warm:%ld", (long)getpid());
    if (quorlock_lock_acquire(lock_on(bench, key, 0, 0), on_first, bench->base) != 0) fail("first acquire");
    event_base_dispatch(bench->base);
}

static void contend(struct bench *bench)
{
    struct event *end = event_new(bench->base, -1, 0, on_end, bench);
    struct timeval until;
    uint64_t left_us;

    sleep_until(bench->begin_ns);
    left_us = bench->end_ns > now_ns() ? (bench->end_ns - now_ns()) / NS_PER_US + 1 : 0;
    until = (struct timeval){.tv_sec = (time_t)(left_us / 1000000), .tv_usec = (suseconds_t)(left_us % 1000000)};
    bench->handles = calloc(bench->n_handles, sizeof(*bench->handles));
    if (end == NULL || event_add(end, &until) != 0 || bench->handles == NULL) fail("no memory");
    bench->at_work = bench->n_handles;
    for (uint32_t i = 0; i < bench->n_handles; i++) {
        struct handle *handle = &bench->handles[i];

        handle->bench = bench;
        handle->locks[0] = lock_on(bench, bench->key, bench->permits, 0);
        if (bench->readers != 0) handle->locks[1] = lock_on(bench, bench->key, 0, QUORLOCK_SHARED_ALL);
        handle->timer = event_new(bench->base, -1, 0, on_timer, handle);
        /* Else all would begin at once. */
        if (bench->uneven) {
            think(handle);
        } else {
            next(handle);
        }
    }
    event_base_dispatch(bench->base);
    for (uint32_t i = 0; i < bench->n_handles; i++) event_free(bench->handles[i].timer);
    event_free(end);
}

static void tell(const struct bench *bench)
{
    for (size_t i = 0; i < bench->n_turns; i++) {
        const struct turn *turn = &bench->turns[i];

        printf("turn %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRIu64 " %" PRIu32 " %d\n", turn->granted_ns,
               turn->release_ns, turn->released_ns, turn->rounds, turn->asked_ns, turn->slot, turn->shared);
    }
    printf("failed %u\n", bench->failed);
}

static bool read_number(const char *word, uint32_t most, uint32_t *ret)
{
    char *end;
    unsigned long value = word == NULL ? ULONG_MAX : strtoul(word, &end, 10);

    if (word == NULL || *word == '\0' || *end != '\0' || value > most) return false;
    *ret = (uint32_t)value;
    return true;
}

int main(int argc, char **argv)
{
    struct bench bench = {.hold_us = 2000, .lease_ms = 5000, .n_handles = 1};
    bool raw = false;
    bool good = true;
    int at = 1;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    srandom((unsigned)getpid());
    for (; good && at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "--raw") == 0)
            raw = true;
        else if (strcmp(argv[at], "--redisson") == 0)
            bench.dialect = QUORLOCK_DIALECT_REDISSON;
        else if (strcmp(argv[at], "--uneven") == 0)
            bench.uneven = true;
        else if (strcmp(argv[at], "--fair") == 0)
            bench.fair = true;
        else if (strcmp(argv[at], "--permits") == 0)
            good = read_number(argv[++at], QUORLOCK_PERMITS_MAX, &bench.permits);
        else if (strcmp(argv[at], "--readers") == 0)
            good = read_number(argv[++at], 100, &bench.readers);
        else if (strcmp(argv[at], "--hold-us") == 0)
            good = read_number(argv[++at], 1000000, &bench.hold_us);
        else if (strcmp(argv[at], "--think-us") == 0)
            good = read_number(argv[++at], 1000000, &bench.think_us);
        else if (strcmp(argv[at], "--lease-ms") == 0)
            good = read_number(argv[++at], 30000, &bench.lease_ms);
        else if (strcmp(argv[at], "--handles") == 0)
            good = read_number(argv[++at], HANDLES_MAX, &bench.n_handles);
        else
            good = false;
    }
    if (!good || at >= argc || bench.n_handles == 0) {
        fprintf(
            stderr,
            "usage: bench_contention [--hold-us N] [--think-us N] [--uneven] [--handles N] [--lease-ms N] "
            "[--redisson] [--fair] [--permits K] [--readers PERCENT] NODE...\n       bench_contention --raw NODE...\n");
        return 64;
    }
    if (raw) {
        measure_raw(&bench, argv + at, argc - at);
        return 0;
    }
    connect_client(&bench, (const char *const *)argv + at, (size_t)(argc - at));
    read_order(&bench);
    contend(&bench);
    quorlock_client_close(bench.client, NULL, NULL);
    event_base_dispatch(bench.base);
    event_base_free(bench.base);
    tell(&bench);
    free(bench.handles);
    free(bench.turns);
    return 0;
}
