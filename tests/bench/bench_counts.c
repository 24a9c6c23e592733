/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_counts.c - what a lock costs in things that can be counted, whatever else the machine does
 *
 * usage: bench_counts [--raw | --uncounted] [--in-flight N] [--rounds N] [--guard off|connection|strict] [--fence]
 * [--redisson] NODE,NODE,...
 *
 * Takes and gives back so many locks at a time, so many times each, and prints as JSON what that took, a lock:
 * allocations, system calls, readings of the clock, requests and bytes. --raw: the same of the baseline, whose
 * cycles go on for a tenth of a second a round. --uncounted: nothing is counted, for callgrind, which can be told to
 * collect in measured() only.
 */
#include <event2/event.h>
#include <getopt.h>
#include <quorlock/quorlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/load.h"
#include "bench/raw.h"
#include "counted.h"
#include "program.h"

#define WARM_UP_ROUNDS 8
#define RAW_ROUND_NS   100000000u
#define NUMBER_MAX     1000000
#define NODES_LIMIT_NS 20000000000u

struct counts {
    bool raw, uncounted;
    uint32_t in_flight, rounds;
    int guard, dialect;
    int fencing;
    char prefix[64];
    const char *nodes;
    struct slice slice;
    struct counted counted;
};

/* measured - a function of its own, for callgrind. */
__attribute__((noinline)) static void measured(struct counts *counts, struct load *load)
{
    if (!counts->uncounted) counted_begin();
    if (load_rounds(load, counts->rounds, &counts->slice) != 0) program_fail("a call was refused");
    counts->counted = counted_end();
}

static void measure_raw(struct counts *counts)
{
    struct raw_options options = {
        .nodes = counts->nodes, .prefix = counts->prefix, .in_flight = counts->in_flight, .lease_ms = 30000};
    struct raw *raw = raw_new(&options);

    if (raw == NULL || raw_ready(raw) == 0) program_fail("no node answers");
    raw_run(raw, 1, &counts->slice);
    counted_begin();
    raw_run(raw, (uint64_t)RAW_ROUND_NS * counts->rounds, &counts->slice);
    counts->counted = counted_end();
    raw_free(raw);
}

/* ---- all nodes answer ---- */

struct waiting {
    struct event_base *base;
    bool done;
};

static void on_inspected(int status, const struct quorlock_inspect_report *report, void *arg)
{
    struct waiting *waiting = arg;

    waiting->done = report->answered == report->n_nodes;
    event_base_loopbreak(waiting->base);
}

/* await_nodes - a lock that is not asked of all nodes costs less. */
static void await_nodes(quorlock_client *client, struct event_base *base)
{
    struct waiting waiting = {.base = base};
    uint64_t begun_ns = slice_now_ns();

    while (!waiting.done) {
        if (quorlock_client_inspect(client, "quorlock-bench", on_inspected, &waiting) != 0)
            program_fail(quorlock_client_error(client));
        event_base_dispatch(base);
        if (slice_now_ns() - begun_ns > NODES_LIMIT_NS) program_fail("not every node answers");
    }
}

static void measure_locks(struct counts *counts)
{
    struct quorlock_client_options wanted = {.guard = counts->guard, .dialect = counts->dialect};
    struct event_base *base = program_loop();
    quorlock_client *client = program_client(base, counts->nodes, wanted);
    struct load_options options = {.prefix = counts->prefix,
                                   .in_flight = counts->in_flight,
                                   .lock = {.size = sizeof(options.lock), .fencing = counts->fencing != 0}};
    struct load *load = NULL;

    if (load_new(&load, base, client, &options) != 0) program_fail(quorlock_client_error(client));
    await_nodes(client, base);
    if (load_rounds(load, WARM_UP_ROUNDS, &counts->slice) != 0) program_fail(load_why(load));
    measured(counts, load);
    if (counts->slice.cycles == 0) program_fail(load_why(load));
    load_free(load, false);
    quorlock_client_close(client, NULL, NULL);
    event_base_dispatch(base);
    event_base_free(base);
}

static void tell(const struct counts *counts)
{
    const struct counted *counted = &counts->counted;
    double locks = (double)counts->slice.cycles;
    const struct {
        const char *name;
        uint64_t n;
    } rows[] = {
        {"allocations", counted->allocations},
        {"system_calls", counted->reads + counted->writes + counted->waits + counted->other_calls},
        {"reads", counted->reads},
        {"writes", counted->writes},
        {"waits", counted->waits},
        {"other_calls", counted->other_calls},
        {"clock_readings", counted->clocks},
        {"requests", counted->requests},
        {"bytes_out", counted->bytes_out},
        {"bytes_in", counted->bytes_in},
    };

    printf("{\"locks\": %.0f", locks);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        printf(", \"%s\": %.3f", rows[i].name, (double)rows[i].n / locks);
    printf("}\n");
}

static bool set_guard(int *guard, const char *word)
{
    static const char *const names[] = {"", "off", "connection", "strict"};

    for (*guard = QUORLOCK_GUARD_STRICT; *guard > 0 && strcmp(word, names[*guard]) != 0;) --*guard;
    return *guard > 0;
}

static bool read_options(struct counts *counts, int argc, char **argv)
{
    static const struct option options[] = {
        {"raw", no_argument, NULL, 'r'},       {"in-flight", required_argument, NULL, 'i'},
        {"fence", no_argument, NULL, 'f'},     {"rounds", required_argument, NULL, 'n'},
        {"redisson", no_argument, NULL, 'd'},  {"guard", required_argument, NULL, 'g'},
        {"uncounted", no_argument, NULL, 'u'}, {0},
    };
    bool good = true;

    for (int got; good && (got = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (got) {
        case 'r': counts->raw = true; break;
        case 'u': counts->uncounted = true; break;
        case 'f': counts->fencing = 1; break;
        case 'd': counts->dialect = QUORLOCK_DIALECT_REDISSON; break;
        case 'i': good = program_number(&counts->in_flight, optarg, NUMBER_MAX); break;
        case 'n': good = program_number(&counts->rounds, optarg, NUMBER_MAX); break;
        case 'g': good = set_guard(&counts->guard, optarg); break;
        default: good = false;
        }
    }
    if (good && optind == argc - 1) counts->nodes = argv[optind];
    return counts->nodes[0] != '\0';
}

int main(int argc, char **argv)
{
    static struct counts counts = {.nodes = "", .in_flight = 1, .rounds = 1000, .guard = QUORLOCK_GUARD_OFF};

    if (!read_options(&counts, argc, argv)) {
        fprintf(
            stderr,
            "usage: bench_counts [--raw | --uncounted] [--in-flight N] [--rounds N] [--guard off|connection|strict] "
            "[--fence] [--redisson] NODE,NODE,...\n");
        return 64;
    }
    snprintf(counts.prefix, sizeof(counts.prefix), "quorlock-bench:%08ld:", (long)getpid());
    if (counts.raw) {
        measure_raw(&counts);
    } else {
        measure_locks(&counts);
    }
    tell(&counts);
    return 0;
}
