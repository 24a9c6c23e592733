/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_latency.c - what an uncontended lock costs, against one raw round trip
 *
 * usage: bench_latency [--guard off|connection|strict] [--fence] CYCLES NODE...
 *
 * Measures, in one run: a blocking SET NX PX + DEL on each node that answers (the baseline is the median of
 * the SET alone), then CYCLES acquires and releases of one lock. Prints medians in microseconds and the ratio
 * to the baseline, for figures of two machines cannot be compared but ratios can. The guard is off unless asked
 * for: with one, the nodes are to be bootstrapped before.
 */
#include <event2/event.h>
#include <hiredis/hiredis.h>
#include <quorlock/quorlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WARM_UP 50

struct bench {
    struct event_base *base;
    quorlock_client *client;
    quorlock *lock;
    int guard, fencing;
    size_t cycles, done, failed;
    double begun_us;
    double *acquire_us, *release_us;
};

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double quantile(double *values, size_t n, double share)
{
    if (n == 0) return 0;
    qsort(values, n, sizeof(*values), compare);
    return values[(size_t)((double)(n - 1) * share)];
}

/* The baseline: one command on one connection, blocking; 0 where the node does not answer. */
static double raw_median_us(const char *node, size_t cycles)
{
    char host[256];
    const char *colon = strrchr(node, ':');
    struct timeval limit = {.tv_usec = 200000};
    redisContext *context;
    double *set_us = calloc(cycles, sizeof(*set_us));
    double median_us = 0;
    size_t n = 0;

    if (set_us == NULL || colon == NULL) exit(64);
    snprintf(host, sizeof(host), "%.*s", (int)(colon - node), node);
    context = redisConnectWithTimeout(host, (int)strtol(colon + 1, NULL, 10), limit);
    if (context != NULL && context->err == 0) redisSetTimeout(context, limit);
    while (context != NULL && context->err == 0 && n < cycles) {
        double begun_us = now_us();

        freeReplyObject(redisCommand(context, "SET bench:raw owner NX PX 30000"));
        set_us[n++] = now_us() - begun_us;
        freeReplyObject(redisCommand(context, "DEL bench:raw"));
    }
    if (context != NULL && context->err == 0) median_us = quantile(set_us, n, 0.5);
    if (context != NULL) redisFree(context);
    free(set_us);
    return median_us;
}

static void next(struct bench *bench);

static void on_released(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    struct bench *bench = arg;

    bench->failed += result->status != QUORLOCK_OK;
    bench->release_us[bench->done++] = now_us() - bench->begun_us;
    next(bench);
}

static void on_acquired(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    struct bench *bench = arg;

    if (result->status != QUORLOCK_OK) {
        fprintf(stderr, "bench_latency: %s\n", result->text);
        exit(69);
    }
    bench->acquire_us[bench->done] = now_us() - bench->begun_us;
    bench->begun_us = now_us();
    quorlock_release(lock, on_released, bench);
}

static void next(struct bench *bench)
{
    if (bench->done == bench->cycles) {
        event_base_loopbreak(bench->base);
        return;
    }
    bench->begun_us = now_us();
    if (quorlock_acquire(bench->lock, on_acquired, bench) != 0) {
        fprintf(stderr, "bench_latency: %s\n", quorlock_client_error(bench->client));
        exit(70);
    }
}

static void run(struct bench *bench, const char *const *nodes, size_t n_nodes)
{
    struct event_config *config = event_config_new();
    struct quorlock_client_options options = {
        .size = sizeof(options), .nodes = nodes, .n_nodes = n_nodes, .guard = bench->guard};
    struct quorlock_options lock = {
        .size = sizeof(lock), .lease_ms = 30000, .wait_ms = 5000, .fencing = bench->fencing};
    const char *key = "bench:lock";

    event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
    bench->base = event_base_new_with_config(config);
    if (quorlock_client_new(&bench->client, bench->base, &options) != 0 ||
        quorlock_new(&bench->lock, bench->client, &key, 1, &lock) != 0) {
        fprintf(stderr, "bench_latency: cannot make a client of these nodes\n");
        exit(64);
    }
    next(bench);
    event_base_dispatch(bench->base);
    quorlock_client_close(bench->client, NULL, NULL);
    event_base_dispatch(bench->base);
    event_base_free(bench->base);
    event_config_free(config);
}

/* read_options - the index of the first word that is no option; -1: one is wrong. */
static int read_options(struct bench *bench, int argc, char **argv)
{
    static const char *const guards[] = {
        [QUORLOCK_GUARD_OFF] = "off", [QUORLOCK_GUARD_CONNECTION] = "connection", [QUORLOCK_GUARD_STRICT] = "strict"};
    int at = 1;

    bench->guard = QUORLOCK_GUARD_OFF;
    for (; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "--fence") == 0) {
            bench->fencing = 1;
            continue;
        }
        if (strcmp(argv[at], "--guard") != 0 || ++at == argc) return -1;
        bench->guard = QUORLOCK_GUARD_STRICT;
        while (bench->guard > 0 && strcmp(argv[at], guards[bench->guard]) != 0) bench->guard--;
        if (bench->guard == 0) return -1;
    }
    return at;
}

int main(int argc, char **argv)
{
    struct bench bench = {0};
    int first = read_options(&bench, argc, argv);
    double baseline_us = 0;
    double acquire_us, release_us;
    size_t measured;

    if (first < 0 || argc - first < 2 || strtol(argv[first], NULL, 10) <= WARM_UP) {
        fprintf(stderr,
                "usage: bench_latency [--guard off|connection|strict] [--fence] CYCLES NODE... (more than %d "
                "cycles)\n",
                WARM_UP);
        return 64;
    }
    bench.cycles = (size_t)strtol(argv[first++], NULL, 10);
    for (int i = first; i < argc && baseline_us == 0; i++) baseline_us = raw_median_us(argv[i], bench.cycles);
    bench.acquire_us = calloc(bench.cycles, sizeof(double));
    bench.release_us = calloc(bench.cycles, sizeof(double));
    if (bench.acquire_us == NULL || bench.release_us == NULL || baseline_us == 0) {
        fprintf(stderr, "bench_latency: no node answers, or no memory\n");
        free(bench.acquire_us);
        free(bench.release_us);
        return 69;
    }
    run(&bench, (const char *const *)argv + first, (size_t)(argc - first));
    measured = bench.cycles - WARM_UP;
    acquire_us = quantile(bench.acquire_us + WARM_UP, measured, 0.5);
    release_us = quantile(bench.release_us + WARM_UP, measured, 0.5);
    printf("raw SET %6.0f us | acquire %6.0f us = x%.2f (p99 %6.0f us) | release %6.0f us = x%.2f | %zu failed\n",
           baseline_us, acquire_us, acquire_us / baseline_us, quantile(bench.acquire_us + WARM_UP, measured, 0.99),
           release_us, release_us / baseline_us, bench.failed);
    free(bench.acquire_us);
    free(bench.release_us);
    return 0;
}
