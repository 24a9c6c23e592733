/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_threads.c - uncontended locks of the sync API, a thread for each, in turn with as many of the asynchronous API
 *
 * usage: bench_threads THREADS SECONDS NODE,NODE,...
 *
 * Prints as JSON for each of the two its slices, in the order in which they ran. switches: how often the kernel put a
 * thread of this process to sleep.
 */
#include <pthread.h>
#include <quorlock/sync.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "bench/load.h"
#include "program.h"

#define SLICE_NS    200000000u
#define NS_PER_S    1000000000.0
#define NS_PER_US   1000.0
#define ROUNDS_MAX  1000u
#define THREADS_MAX 4096u
#define SECONDS_MAX 600u
#define WARM_UP     2u
#define STACK_SIZE  ((size_t)256 * 1024)

enum api { THREADS, LOOP, APIS };

static const char *const names[APIS] = {"threads", "loop"};

struct measured {
    double seconds, cpu_us, p50_us, p99_us;
    uint64_t locks, failed, switches;
};

struct worker {
    struct bench *bench;
    pthread_t thread;
    quorlock_sync_lock *lock;
    struct slice slice; /* its cycles, failures and latencies */
};

struct bench {
    struct event_base *base;
    quorlock_client *client;
    struct load *load;
    quorlock_sync_client *sync;
    struct worker *workers;
    uint32_t n_workers;
    pthread_barrier_t begins, ends;
    uint64_t until_ns; /* of the slice; 0: there is none any more */
    struct measured slices[APIS][ROUNDS_MAX];
};

/* ---- threads ---- */

static void cycle(struct worker *worker)
{
    uint64_t begun_ns = slice_now_ns(), granted_ns;

    if (quorlock_sync_lock_acquire(worker->lock, NULL) != 0) {
        worker->slice.failed++;
        return;
    }
    granted_ns = slice_now_ns();
    latencies_add(&worker->slice.acquire, granted_ns - begun_ns);
    if (quorlock_sync_lock_release(worker->lock, NULL) == 0)
        worker->slice.cycles++;
    else
        worker->slice.failed++;
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    struct bench *bench = worker->bench;

    for (;;) {
        pthread_barrier_wait(&bench->begins);
        if (bench->until_ns == 0) return NULL;
        memset(&worker->slice, 0, sizeof(worker->slice));
        while (slice_now_ns() < bench->until_ns) cycle(worker);
        pthread_barrier_wait(&bench->ends);
    }
}

static quorlock_sync_client *open_client(const char *nodes)
{
    const char *addresses[QUORLOCK_NODES_MAX];
    struct quorlock_client_options options = {.size = sizeof(options), .nodes = addresses, .guard = QUORLOCK_GUARD_OFF};
    char *list = strdup(nodes), *rest = list;
    struct quorlock_error error;
    quorlock_sync_client *client = NULL;

    for (const char *node; options.n_nodes < QUORLOCK_NODES_MAX && (node = strsep(&rest, ",")) != NULL;)
        addresses[options.n_nodes++] = node;
    if (quorlock_sync_client_new(&client, &options, &error) != 0) program_fail(error.text);
    free(list);
    return client;
}

static void open_threads(struct bench *bench, const char *nodes)
{
    struct quorlock_error error;
    const struct quorlock_lock_options lock = {.size = sizeof(lock), .wait_ms = 60000};
    pthread_attr_t attributes;

    bench->sync = open_client(nodes);
    bench->workers = calloc(bench->n_workers, sizeof(*bench->workers));
    if (bench->workers == NULL || pthread_attr_init(&attributes) != 0 ||
        pthread_attr_setstacksize(&attributes, STACK_SIZE) != 0 ||
        pthread_barrier_init(&bench->begins, NULL, bench->n_workers + 1) != 0 ||
        pthread_barrier_init(&bench->ends, NULL, bench->n_workers + 1) != 0)
        program_fail("no memory");
    for (uint32_t i = 0; i < bench->n_workers; i++) {
        struct worker *worker = &bench->workers[i];
        char name[64];
        const char *key = name;

        snprintf(name, sizeof(name), "threads:%u", i);
        worker->bench = bench;
        if (quorlock_sync_lock_new(&worker->lock, bench->sync, &key, 1, &lock, &error) != 0) program_fail(error.text);
        if (pthread_create(&worker->thread, &attributes, work, worker) != 0) program_fail("no thread");
    }
    pthread_attr_destroy(&attributes);
}

static void run_threads(struct bench *bench, struct slice *slice)
{
    slice_begin(slice);
    bench->until_ns = slice->begun_ns + SLICE_NS;
    pthread_barrier_wait(&bench->begins);
    pthread_barrier_wait(&bench->ends);
    slice_end(slice);
    for (uint32_t i = 0; i < bench->n_workers; i++) {
        const struct slice *own = &bench->workers[i].slice;
        uint64_t ended_ns = slice->ended_ns;

        slice_add(slice, own);
        slice->ended_ns = ended_ns;
    }
}

static void close_threads(struct bench *bench)
{
    bench->until_ns = 0;
    pthread_barrier_wait(&bench->begins);
    for (uint32_t i = 0; i < bench->n_workers; i++) {
        pthread_join(bench->workers[i].thread, NULL);
        quorlock_sync_lock_free(bench->workers[i].lock);
    }
    quorlock_sync_client_close(bench->sync);
    pthread_barrier_destroy(&bench->begins);
    pthread_barrier_destroy(&bench->ends);
    free(bench->workers);
}

/* ---- the loop ---- */

static void open_loop(struct bench *bench, const char *nodes)
{
    const struct load_options options = {
        .prefix = "threads:loop:", .in_flight = bench->n_workers, .lock = {.size = sizeof(options.lock)}};

    bench->base = program_loop();
    bench->client = program_client(bench->base, nodes, (struct quorlock_client_options){.guard = QUORLOCK_GUARD_OFF});
    if (load_new(&bench->load, bench->base, bench->client, &options) != 0)
        program_fail(quorlock_client_error(bench->client));
    if (load_warm(bench->load) != 0) program_fail(load_why(bench->load));
}

static void close_loop(struct bench *bench)
{
    load_free(bench->load, false);
    quorlock_client_close(bench->client, NULL, NULL);
    event_base_dispatch(bench->base);
    event_base_free(bench->base);
}

/* ---- both ---- */

static uint64_t switches(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_nvcsw;
}

static void measure(struct bench *bench, enum api api, struct measured *ret)
{
    static struct slice slice;
    uint64_t before = switches();

    if (api == THREADS) {
        run_threads(bench, &slice);
    } else if (load_run(bench->load, SLICE_NS, &slice) != 0) {
        program_fail(quorlock_client_error(bench->client));
    }
    *ret = (struct measured){.seconds = (double)(slice.ended_ns - slice.begun_ns) / NS_PER_S,
                             .cpu_us = (double)slice.cpu_ns / NS_PER_US,
                             .p50_us = latencies_us(&slice.acquire, 0.5),
                             .p99_us = latencies_us(&slice.acquire, 0.99),
                             .locks = slice.cycles,
                             .failed = slice.failed,
                             .switches = switches() - before};
}

static void tell(const struct bench *bench, uint32_t rounds)
{
    for (int api = 0; api < APIS; api++) {
        printf("%s\"%s\": [", api == 0 ? "{" : ", ", names[api]);
        for (uint32_t i = 0; i < rounds; i++) {
            const struct measured *slice = &bench->slices[api][i];

            printf("%s{\"locks\": %llu, \"failed\": %llu, \"switches\": %llu, \"seconds\": %.6f, \"cpu_us\": %.1f, "
                   "\"p50_us\": %.1f, \"p99_us\": %.1f}",
                   i == 0 ? "" : ", ", (unsigned long long)slice->locks, (unsigned long long)slice->failed,
                   (unsigned long long)slice->switches, slice->seconds, slice->cpu_us, slice->p50_us, slice->p99_us);
        }
        printf("]");
    }
    printf("}\n");
}

int main(int argc, char **argv)
{
    static struct bench bench;
    uint32_t seconds, rounds;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argc != 4 || !program_number(&bench.n_workers, argv[1], THREADS_MAX) ||
        !program_number(&seconds, argv[2], SECONDS_MAX)) {
        fprintf(stderr, "usage: bench_threads THREADS SECONDS NODE,NODE,...\n");
        return 64;
    }
    open_threads(&bench, argv[3]);
    open_loop(&bench, argv[3]);
    rounds = (uint32_t)(seconds * (NS_PER_S / SLICE_NS)) / APIS + 1;
    if (rounds > ROUNDS_MAX) rounds = ROUNDS_MAX;
    for (uint32_t i = 0; i < WARM_UP; i++)
        for (enum api api = 0; api < APIS; api++) measure(&bench, api, &bench.slices[api][0]);
    for (uint32_t i = 0; i < rounds; i++)
        for (enum api api = 0; api < APIS; api++) measure(&bench, api, &bench.slices[api][i]);
    tell(&bench, rounds);
    close_loop(&bench);
    close_threads(&bench);
    return 0;
}
