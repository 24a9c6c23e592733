/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_modes.c - uncontended locks of all modes, in turn: what a permit and a reader's lock cost beside a plain one
 *
 * usage: bench_modes IN_FLIGHT SECONDS NODE,NODE,...
 *
 * Prints as JSON for each mode its slices, in the order in which they ran: the first slices of all modes, then the
 * second ones.
 */
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "bench/load.h"
#include "program.h"

#define PERMITS       5
#define SLICE_NS      100000000u
#define NS_PER_S      1000000000.0
#define NS_PER_US     1000.0
#define ROUNDS_MAX    2000u
#define IN_FLIGHT_MAX 100000u
#define SECONDS_MAX   600u
#define WARM_UP       3u

enum mode { PLAIN, PERMIT, SHARED, MODES };

static const char *const names[MODES] = {"plain", "permit", "shared"};

struct measured {
    double seconds, cpu_us, p50_us, p99_us;
    uint64_t locks, failed;
};

struct bench {
    struct event_base *base;
    quorlock_client *client;
    struct load *loads[MODES];
    struct measured slices[MODES][ROUNDS_MAX];
};

static void make_load(struct bench *bench, enum mode mode, uint32_t in_flight)
{
    char front[64];
    struct load_options options = {.prefix = front, .in_flight = in_flight, .lock = {.size = sizeof(options.lock)}};

    snprintf(front, sizeof(front), "modes:%s:", names[mode]);
    if (mode == PERMIT) options.lock.permits = PERMITS;
    if (mode == SHARED) options.lock.shared = QUORLOCK_SHARED_ALL;
    if (load_new(&bench->loads[mode], bench->base, bench->client, &options) != 0)
        program_fail(quorlock_client_error(bench->client));
    if (load_warm(bench->loads[mode]) != 0) program_fail(load_why(bench->loads[mode]));
}

static void measure(struct bench *bench, enum mode mode, struct measured *ret)
{
    static struct slice slice;

    if (load_run(bench->loads[mode], SLICE_NS, &slice) != 0) program_fail(quorlock_client_error(bench->client));
    *ret = (struct measured){.seconds = (double)(slice.ended_ns - slice.begun_ns) / NS_PER_S,
                             .cpu_us = (double)slice.cpu_ns / NS_PER_US,
                             .p50_us = latencies_us(&slice.acquire, 0.5),
                             .p99_us = latencies_us(&slice.acquire, 0.99),
                             .locks = slice.cycles,
                             .failed = slice.failed};
}

static void tell(const struct bench *bench, uint32_t rounds)
{
    for (int mode = 0; mode < MODES; mode++) {
        printf("%s\"%s\": [", mode == 0 ? "{" : ", ", names[mode]);
        for (uint32_t i = 0; i < rounds; i++) {
            const struct measured *slice = &bench->slices[mode][i];

            printf("%s{\"locks\": %llu, \"failed\": %llu, \"seconds\": %.6f, \"cpu_us\": %.1f, \"p50_us\": %.1f, "
                   "\"p99_us\": %.1f}",
                   i == 0 ? "" : ", ", (unsigned long long)slice->locks, (unsigned long long)slice->failed,
                   slice->seconds, slice->cpu_us, slice->p50_us, slice->p99_us);
        }
        printf("]");
    }
    printf("}\n");
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct quorlock_client_options options = {.guard = QUORLOCK_GUARD_OFF};
    uint32_t in_flight, seconds, rounds;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argc != 4 || !program_number(&in_flight, argv[1], IN_FLIGHT_MAX) ||
        !program_number(&seconds, argv[2], SECONDS_MAX)) {
        fprintf(stderr, "usage: bench_modes IN_FLIGHT SECONDS NODE,NODE,...\n");
        return 64;
    }
    bench.base = program_loop();
    bench.client = program_client(bench.base, argv[3], options);
    for (enum mode mode = 0; mode < MODES; mode++) make_load(&bench, mode, in_flight);
    rounds = (uint32_t)(seconds * (NS_PER_S / SLICE_NS)) / MODES + 1;
    if (rounds > ROUNDS_MAX) rounds = ROUNDS_MAX;
    for (uint32_t i = 0; i < WARM_UP; i++)
        for (enum mode mode = 0; mode < MODES; mode++) measure(&bench, mode, &bench.slices[mode][0]);
    for (uint32_t i = 0; i < rounds; i++)
        for (enum mode mode = 0; mode < MODES; mode++) measure(&bench, mode, &bench.slices[mode][i]);
    tell(&bench, rounds);
    for (int mode = 0; mode < MODES; mode++) load_free(bench.loads[mode], false);
    quorlock_client_close(bench.client, NULL, NULL);
    event_base_dispatch(bench.base);
    event_base_free(bench.base);
    return 0;
}
