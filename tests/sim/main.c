/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c - sim: many seeds, or one seed as a readable trace
 */
#include "sim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RUNS_DEFAULT   100000u
#define RUNS_COMPLETE  20000u /* so many runs must have seen every kind of fault and outcome */
#define RUNS_TWICE     200u   /* so many seeds are run twice, and must happen the same both times */
#define VIOLATIONS_MAX 5u

struct options {
    uint64_t runs, runs_default, seed;
    enum plan_bias bias;
    const char *only, *control;
    bool trace, controls, help;
};

static const char usage[] =
    "usage: sim [--runs N] [--seed S] [--bias B]      N runs, of the seeds from S on\n"
    "       sim --seed S --trace [--only LIST]        one run as a trace, with only these faults\n"
    "       sim_controls --controls                   breaks rules and sees whether it is noticed\n"
    "       sim_controls --seed S --trace --control NAME\n"
    "\n"
    "  --bias B          situations that the runs are bent towards: 0 mixed, 1 late execution,\n"
    "                    2 late clients, 3 memory lost, 4 tokens, 5 tokens and counters lost,\n"
    "                    6 servers listed twice, 7 crowds, 8 outside of what is promised, 9 queues,\n"
    "                    10 calm, 11 one node frozen, 12 an odd key on one node\n"
    "  --runs-default N  as --runs, where neither that nor QUORLOCK_SIM_RUNS is given\n"
    "  QUORLOCK_SIM_RUNS and QUORLOCK_SIM_SEED stand for --runs and --seed.\n"
    "\n"
    "A failing seed is shrunk: faults are left out while the same invariant is violated, and the line\n"
    "that replays the rest is printed. The same seed always has the same events.\n"
    "\n"
    "A trace has a line for each event, with the true time in ms, which no client or node knows:\n"
    "  [1110.042] FAULT 3  node stands still (node 1, ...)   of the plan, by number, as in --only\n"
    "  [1110.042] client 2 lock 2 < acquires                 the owner calls\n"
    "  [1110.042] client 2 lock 2   acquire of attempt 4.0 -> node 1 (token 3fa2c1)\n"
    "                                      a request leaves; attempt and renewal round\n"
    "  [1110.042] node 1   executes acquire of lock 2, attempt 4: yes\n"
    "  [1110.042] client 2 lock 2 > node 1: acquire of attempt 4.0: yes (generation 1, asking, counter 17)\n"
    "                                      the answer: of which connection, in which phase of the lock,\n"
    "                                      with which fencing counter\n"
    "  [1110.042] client 2 lock 2 : node 1 is quarantined, generation 2\n"
    "  [1110.042] client 2 lock 2 = GRANTED, valid for 96000 us by its clock (fence 17)\n"
    "                                      the owner is notified\n"
    "  [1110.042] register  refuses lock 2, token 17         a write arrives somewhere, too late\n";

static bool read_number(const char *text, uint64_t *ret)
{
    char *end;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || *text == '-') return false;
    *ret = value;
    return true;
}

static bool read_environment(const char *name, uint64_t *ret)
{
    const char *text = getenv(name);

    if (text == NULL || *text == '\0' || read_number(text, ret)) return true;
    (void)fprintf(stderr, "sim: %s is \"%s\": give a number\n", name, text);
    return false;
}

static bool read_option(struct options *options, const char *name, const char *value)
{
    uint64_t bias = BIASES;
    const struct {
        const char *name;
        uint64_t *number;
        const char **text;
    } known[] = {{"--runs", &options->runs, NULL}, {"--runs-default", &options->runs_default, NULL},
                 {"--seed", &options->seed, NULL}, {"--bias", &bias, NULL},
                 {"--only", NULL, &options->only}, {"--control", NULL, &options->control}};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(name, known[i].name) != 0) continue;
        if (known[i].text != NULL) {
            *known[i].text = value;
        } else if (!read_number(value, known[i].number) || (known[i].number == &bias && bias >= BIASES)) {
            (void)fprintf(stderr, "sim: %s is \"%s\": give a number\n", name, value);
            return false;
        }
        if (known[i].number == &bias) options->bias = (enum plan_bias)bias;
        return true;
    }
    (void)fputs(usage, stderr);
    return false;
}

static bool read_options(struct options *options, int argc, char **argv)
{
    if (!read_environment("QUORLOCK_SIM_RUNS", &options->runs)) return false;
    if (!read_environment("QUORLOCK_SIM_SEED", &options->seed)) return false;
    for (int i = 1; i < argc && !options->help; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            options->help = true;
        } else if (strcmp(argv[i], "--trace") == 0) {
            options->trace = true;
        } else if (strcmp(argv[i], "--controls") == 0) {
            options->controls = true;
        } else if (!read_option(options, argv[i], i + 1 < argc ? argv[i + 1] : "")) {
            return false;
        } else {
            i++;
        }
    }
    if (options->runs == UINT64_MAX) options->runs = options->runs_default;
    return true;
}

static bool run_trace(struct world *world, const struct options *options)
{
    static struct plan plan;
    static struct totals totals;
    bool held;

    plan_make(&plan, options->seed, options->bias);
    if (options->only != NULL && !shrink_only(&plan, options->only)) {
        (void)fprintf(stderr, "sim: --only \"%s\": give numbers of faults below %u, with commas between\n",
                      options->only, plan.n_faults);
        return false;
    }
    world->trace = true;
    held = world_run(world, &plan, &totals);
    (void)printf("hash %016" PRIx64 "\n", world->hash);
    if (!held) shrink_report(world, &plan, options->bias, stdout);
    return held;
}

/* The same seed must happen the same way, or no failure could be replayed. */
static bool run_twice(struct world *world, const struct options *options)
{
    static struct plan plan;
    static struct totals ignored;

    for (uint64_t i = 0; i < RUNS_TWICE && i < options->runs; i++) {
        uint64_t hash;

        plan_make(&plan, options->seed + i, options->bias);
        (void)world_run(world, &plan, &ignored);
        hash = world->hash;
        (void)world_run(world, &plan, &ignored);
        if (hash == world->hash) continue;
        (void)fprintf(stderr, "sim: seed %" PRIu64 " happens differently when it is run again\n", options->seed + i);
        return false;
    }
    return true;
}

static bool run_many(struct world *world, const struct options *options)
{
    static struct plan plan;
    static struct totals totals;
    uint32_t violations = 0;
    bool good = run_twice(world, options);
    clock_t begun = clock();

    for (uint64_t i = 0; i < options->runs && violations < VIOLATIONS_MAX; i++) {
        plan_make(&plan, options->seed + i, options->bias);
        if (world_run(world, &plan, &totals)) continue;
        violations++;
        (void)shrink_plan(world, &plan);
        shrink_report(world, &plan, options->bias, stdout);
    }
    totals_print(&totals, stdout);
    totals_print_outside(&totals, stdout);
    (void)printf("%.3f ms a run\n",
                 (double)(clock() - begun) * 1000 / CLOCKS_PER_SEC / (double)(totals.runs == 0 ? 1 : totals.runs));
    good &= handover_table(world, stdout);
    if (options->runs >= RUNS_COMPLETE && violations == 0) good &= totals_complete(&totals, stdout);
    (void)printf("sim: %" PRIu64 " runs from seed %" PRIu64 ": %u violations\n", totals.runs, options->seed,
                 violations);
    return good && violations == 0;
}

int main(int argc, char **argv)
{
    static struct world world;
    struct options options = {.runs = UINT64_MAX, .runs_default = RUNS_DEFAULT, .seed = 1};
    bool good;

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (!read_options(&options, argc, argv)) return 64;
    if (options.help) {
        (void)fputs(usage, stdout);
        return 0;
    }
    world_open(&world);
    if (options.control != NULL && !controls_set(&world, options.control, &options.bias)) {
        (void)fprintf(stderr, "sim: --control \"%s\": no such control\n", options.control);
        world_close(&world);
        return 64;
    }
    if (options.controls) {
        good = controls_run(&world, options.seed);
    } else if (options.trace) {
        good = run_trace(&world, &options);
    } else {
        good = run_many(&world, &options);
    }
    world_close(&world);
    return good ? 0 : 1;
}
