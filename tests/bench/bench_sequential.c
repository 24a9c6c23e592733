/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_sequential.c - a peer: the simplest client there is, which asks one node after the other and blocks
 *
 * usage: bench_sequential NODE...     (host:port)
 *
 * SET NX PX on each node in turn, then a compare-and-delete on each, by a thread with connections of its own for
 * every lock under way. The orders on standard input and the answers are those of all peers: see programs.py.
 */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "bench/slice.h"
#include "program.h"

#define NODES_MAX   31
#define WORKERS_MAX 4096
#define LEASE_MS    30000
#define NS_PER_MS   1000000u

static const char script[] = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end "
                             "return 0";
static char **nodes;
static size_t n_nodes;

struct worker {
    pthread_t thread;
    redisContext *contexts[NODES_MAX];
    char sha[41];
    char key[128];
    uint64_t until_ns;
    struct slice slice;
};

static struct worker *connect_worker(void)
{
    struct worker *worker = calloc(1, sizeof(*worker));

    if (worker == NULL) program_fail("no memory");
    for (size_t i = 0; i < n_nodes; i++) {
        const char *colon = strrchr(nodes[i], ':');
        char host[256];
        redisReply *reply;

        if (colon == NULL) program_fail("a node is host:port");
        snprintf(host, sizeof(host), "%.*s", (int)(colon - nodes[i]), nodes[i]);
        worker->contexts[i] = redisConnect(host, (int)strtol(colon + 1, NULL, 10));
        if (worker->contexts[i] == NULL || worker->contexts[i]->err != 0) program_fail("a node does not answer");
        reply = redisCommand(worker->contexts[i], "SCRIPT LOAD %s", script);
        if (reply == NULL || reply->type != REDIS_REPLY_STRING) program_fail("a node takes no script");
        snprintf(worker->sha, sizeof(worker->sha), "%s", reply->str);
        freeReplyObject(reply);
    }
    return worker;
}

/* cycle - true where every node gave the lock. */
static bool cycle(struct worker *worker, uint64_t number)
{
    uint64_t begun_ns = slice_now_ns(), granted_ns;
    size_t granted = 0;

    for (size_t i = 0; i < n_nodes; i++) {
        redisReply *reply =
            redisCommand(worker->contexts[i], "SET %s %032" PRIx64 " NX PX %d", worker->key, number, LEASE_MS);

        if (reply == NULL) program_fail("a node does not answer any more");
        granted += reply->type == REDIS_REPLY_STATUS;
        freeReplyObject(reply);
    }
    granted_ns = slice_now_ns();
    latencies_add(&worker->slice.acquire, granted_ns - begun_ns);
    for (size_t i = 0; i < n_nodes; i++)
        freeReplyObject(
            redisCommand(worker->contexts[i], "EVALSHA %s 1 %s %032" PRIx64, worker->sha, worker->key, number));
    latencies_add(&worker->slice.release, slice_now_ns() - granted_ns);
    return granted == n_nodes;
}

static void *work(void *arg)
{
    struct worker *worker = arg;

    for (uint64_t number = 1; slice_now_ns() < worker->until_ns; number++) {
        if (cycle(worker, number))
            worker->slice.cycles++;
        else
            worker->slice.failed++;
    }
    return NULL;
}

static void tell(const struct slice *all)
{
    printf("{\"locks\": %" PRIu64 ", \"failed\": %" PRIu64 ", \"seconds\": %.6f, \"cpu_s\": %.6f, \"p50_us\": %.3f, "
           "\"p99_us\": %.3f, \"p999_us\": %.3f}\n",
           all->cycles, all->failed, (double)(all->ended_ns - all->begun_ns) / 1e9, (double)all->cpu_ns / 1e9,
           latencies_us(&all->acquire, 0.5), latencies_us(&all->acquire, 0.99), latencies_us(&all->acquire, 0.999));
    fflush(stdout);
}

static void run(struct worker **workers, size_t n_workers, uint64_t span_ns, const char *prefix)
{
    static struct slice all;

    slice_begin(&all);
    for (size_t i = 0; i < n_workers; i++) {
        struct worker *worker = workers[i];

        snprintf(worker->key, sizeof(worker->key), "%s%zu", prefix, i);
        memset(&worker->slice, 0, sizeof(worker->slice));
        worker->until_ns = all.begun_ns + span_ns;
        if (pthread_create(&worker->thread, NULL, work, worker) != 0) program_fail("no thread");
    }
    for (size_t i = 0; i < n_workers; i++) (void)pthread_join(workers[i]->thread, NULL);
    slice_end(&all);
    for (size_t i = 0; i < n_workers; i++) slice_add(&all, &workers[i]->slice);
    tell(&all);
}

/* obey - "IN_FLIGHT MS PREFIX" */
static void obey(char *order)
{
    static struct worker *workers[WORKERS_MAX];
    static size_t n_workers;
    char *end;
    size_t n_wanted = strtoul(order, &end, 10);
    uint64_t ms = strtoull(end, &end, 10);

    if (n_wanted == 0 || n_wanted > WORKERS_MAX || *end != ' ')
        program_fail("an order is IN_FLIGHT MS PREFIX, 4096 at most");
    end[strcspn(end, "\n")] = '\0';
    while (n_workers < n_wanted) workers[n_workers++] = connect_worker();
    run(workers, n_wanted, ms * NS_PER_MS, end + 1);
}

int main(int argc, char **argv)
{
    char order[256];

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    nodes = argv + 1;
    n_nodes = (size_t)argc - 1;
    if (n_nodes == 0 || n_nodes > NODES_MAX) {
        fprintf(stderr, "usage: bench_sequential NODE...\n");
        return 64;
    }
    printf("ready sequential, blocking hiredis %d.%d\n", HIREDIS_MAJOR, HIREDIS_MINOR);
    fflush(stdout);
    while (fgets(order, sizeof(order), stdin) != NULL) obey(order);
    return 0;
}
