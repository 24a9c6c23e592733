/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c - sim: many seeds, or one seed as a readable trace
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "actions.h"
#include "controls.h"
#include "handover.h"
#include "modes.h"
#include "shrink.h"

#include "world.h"

#define RUNS_COMPLETE  10000u /* so many runs must have seen every kind of fault, outcome and rare state */
#define RUNS_TWICE     30u    /* so many seeds are run twice, and must happen the same both times */
#define VIOLATIONS_MAX 3u

struct options {
    uint64_t runs, runs_default, seconds, seed;
    enum plan_bias bias;
    const char *only, *without, *control;
    bool trace, actions, controls, handovers, modes, help, hashes, buggify;
};

static const char usage[] =
    "usage: sim [--runs N] [--seconds S] [--seed S] [--bias B]\n"
    "                                   runs of the seeds from S on, N of them or as many as there is time for\n"
    "       sim --seed S --trace [--only LIST] [--without LIST]\n"
    "                                   one run as a trace, with only these faults (f3) and actors (a2), and without\n"
    "                                   these features\n"
    "       sim --actions [--runs N] [--seed S] [--bias B]\n"
    "                                   runs as actions of the model in tests/model, which tests/model/traces checks\n"
    "       sim --handovers             how long hand-overs take; fails where they take too long\n"
    "       sim --modes                 the same of waits among readers and writers, and for permits\n"
    "       sim_controls --controls [--control NAME]   breaks rules and sees whether it is noticed\n"
    "       sim_controls --seed S --trace --control NAME\n"
    "\n"
    "  --runs-default N   as --runs, where neither that nor QUORLOCK_SIM_RUNS is given\n"
    "  QUORLOCK_SIM_RUNS and QUORLOCK_SIM_SEED stand for --runs and --seed.\n"
    "  --hashes           prints the hash of each run\n"
    "  --buggify          clients make troubles up; losses and refusals need no reason then\n"
    "  --bias B           what the runs are bent towards:\n";

static const char more_usage[] =
    "\n"
    "A failing seed is shrunk: faults, actors and features are left out while the same invariant is violated, and the\n"
    "line that replays the rest is printed. The same seed always has the same events.\n"
    "\n"
    "A trace has a line for each event, with the true time in ms, which no client or server knows:\n"
    "  [1110.042] FAULT f3 server is frozen (server 1, ...)    of the plan, by number, as in --only\n"
    "  [1110.042] actor 2  < acquires: OK                         a user calls the library, and what that returned\n"
    "  [1110.042] server 1  acquire k0 c1.1:3fa2... 500           a command is executed, scripts by their names\n"
    "  [1110.042] actor 2  > OK: \"k0\" is held...                  a callback\n"
    "  [1110.042] client 1   \"10.0.0.2:6379: ready...\"            a line of the library's log\n"
    "  [1110.042] register  refuses actor 2, token 17             a write arrives somewhere, too late\n";

static void print_usage(void)
{
    (void)fputs(usage, stdout);
    for (uint32_t i = 0; i < BIASES; i++) (void)printf("    %2u  %s\n", i, plan_bias_text((enum plan_bias)i));
    (void)fputs(more_usage, stdout);
}

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
    const char *value = getenv(name);

    if (value == NULL || *value == '\0' || read_number(value, ret)) return true;
    (void)fprintf(stderr, "sim: %s is \"%s\": give a number\n", name, value);
    return false;
}

static bool read_option(struct options *options, const char *name, const char *value)
{
    uint64_t bias = BIASES;
    const struct {
        const char *name;
        uint64_t *number;
        const char **text;
    } known[] = {{"--runs", &options->runs, NULL},
                 {"--runs-default", &options->runs_default, NULL},
                 {"--seconds", &options->seconds, NULL},
                 {"--seed", &options->seed, NULL},
                 {"--bias", &bias, NULL},
                 {"--only", NULL, &options->only},
                 {"--without", NULL, &options->without},
                 {"--control", NULL, &options->control}};

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
    (void)fprintf(stderr, "sim: %s is no option: see --help\n", name);
    return false;
}

static bool read_options(struct options *options, int argc, char **argv)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {{"--help", &options->help},         {"--trace", &options->trace},
                 {"--controls", &options->controls}, {"--handovers", &options->handovers},
                 {"--hashes", &options->hashes},     {"--buggify", &options->buggify},
                 {"--modes", &options->modes},       {"--actions", &options->actions}};

    if (!read_environment("QUORLOCK_SIM_RUNS", &options->runs)) return false;
    if (!read_environment("QUORLOCK_SIM_SEED", &options->seed)) return false;
    for (int i = 1; i < argc; i++) {
        bool found = false;

        for (size_t k = 0; k < sizeof(flags) / sizeof(flags[0]); k++) {
            if (strcmp(argv[i], flags[k].name) != 0) continue;
            *flags[k].flag = found = true;
        }
        if (found) continue;
        if (!read_option(options, argv[i], i + 1 < argc ? argv[i + 1] : "")) return false;
        i++;
    }
    return true;
}

static bool run_trace(struct world *world, const struct options *options)
{
    static struct plan plan;
    static struct totals totals;
    struct shrunk shrunk = {0};
    bool held;

    if (options->without != NULL && !shrink_without(options->without, &shrunk.without)) {
        (void)fprintf(stderr, "sim: --without \"%s\": give numbers of features, with commas between\n",
                      options->without);
        return false;
    }
    plan_make(&plan, options->seed, options->bias, shrunk.without);
    if (options->only != NULL && !shrink_only(&plan, options->only)) {
        (void)fprintf(stderr, "sim: --only \"%s\": give faults below f%u and actors below a%u, with commas between\n",
                      options->only, plan.n_faults, plan.n_actors);
        return false;
    }
    world->trace = options->trace;
    held = world_run(world, &plan, &totals);
    (void)printf("hash %016" PRIx64 "\n", world->hash);
    if (!held) shrink_report(world, &plan, options->bias, &shrunk, stdout);
    return held;
}

/* The same seed must happen the same way, or no failure could be replayed. */
static bool run_twice(struct world *world, const struct options *options)
{
    static struct plan plan;
    static struct totals ignored;

    for (uint64_t i = 0; i < RUNS_TWICE && i < options->runs; i++) {
        uint64_t hash;

        plan_make(&plan, options->seed + i, options->bias, 0);
        (void)world_run(world, &plan, &ignored);
        hash = world->hash;
        (void)world_run(world, &plan, &ignored);
        if (hash == world->hash) continue;
        (void)fprintf(stderr, "sim: seed %" PRIu64 " happens differently when it is run again\n", options->seed + i);
        return false;
    }
    return true;
}

static double seconds_of(clockid_t clock)
{
    struct timespec now;

    (void)clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void print_speed(const struct totals *totals, double seconds, double cpu_seconds)
{
    double runs = (double)totals->runs;

    if (totals->runs == 0) return;
    (void)printf("a run: %.1f s in the world, %.0f moments, %.0f commands, %.0f turns, %.2f ms of the CPU, %.2f us a "
                 "moment\n",
                 (double)totals->passed_us / runs / 1e6, (double)totals->moments / runs,
                 (double)totals->commands / runs, (double)totals->turns / runs, cpu_seconds / runs * 1e3,
                 cpu_seconds / (double)totals->moments * 1e6);
    (void)printf("%.1f runs a second, %.1f a second of the CPU\n", runs / seconds, runs / cpu_seconds);
}

static bool run_many(struct world *world, const struct options *options)
{
    static struct plan plan;
    static struct totals totals;
    struct shrunk shrunk;
    uint32_t violations = 0;
    bool good = options->hashes || run_twice(world, options);
    double begun = seconds_of(CLOCK_MONOTONIC), cpu_begun = seconds_of(CLOCK_PROCESS_CPUTIME_ID);

    for (uint64_t i = 0; i < options->runs && violations < VIOLATIONS_MAX; i++) {
        if (options->seconds != 0 && seconds_of(CLOCK_MONOTONIC) - begun >= (double)options->seconds) break;
        plan_make(&plan, options->seed + i, options->bias, 0);
        if (!world_run(world, &plan, &totals)) {
            violations++;
            shrink_plan(world, &plan, options->bias, &shrunk);
            shrink_report(world, &plan, options->bias, &shrunk, stdout);
        }
        if (options->hashes) (void)printf("%" PRIu64 " %016" PRIx64 "\n", options->seed + i, world->hash);
    }
    if (!options->hashes) {
        totals_print(&totals, stdout);
        print_speed(&totals, seconds_of(CLOCK_MONOTONIC) - begun, seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu_begun);
    }
    if (totals.runs >= RUNS_COMPLETE && violations == 0 && options->bias == BIAS_NONE && !world->buggify)
        good &= totals_complete(&totals, stdout);
    if (world->buggify) {
        (void)printf("%" PRIu64 " troubles made up\n", world->made_up);
        good &= world->made_up >= totals.runs;
    }
    (void)printf("sim: %" PRIu64 " runs from seed %" PRIu64 ": %u violations\n", totals.runs, options->seed,
                 violations);
    return good && violations == 0;
}

static bool run_actions(struct world *world, const struct options *options)
{
    static struct plan plan;
    static struct totals ignored;

    world->actions = true;
    for (uint64_t i = 0; i < options->runs; i++) {
        plan_make(&plan, options->seed + i, options->bias, 0);
        world->plan = &plan;
        actions_begin(world, options->bias);
        (void)world_run(world, &plan, &ignored);
        actions_end(world);
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct world world;
    struct options options = {.runs = UINT64_MAX, .seed = 1};
    bool good;

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (!read_options(&options, argc, argv)) return 64;
    if (options.help) {
        print_usage();
        return 0;
    }
    if (options.runs == UINT64_MAX && options.runs_default != 0) options.runs = options.runs_default;
    if (options.runs == UINT64_MAX && options.seconds == 0) options.seconds = 20;
    world_open(&world);
    world.buggify = options.buggify;
    if (options.control != NULL && !options.controls && !controls_set(&world, options.control, &options.bias)) {
        (void)fprintf(stderr, "sim: --control \"%s\": no such control\n", options.control);
        world_close(&world);
        return 64;
    }
    if (options.handovers) {
        good = handover_table(&world, stdout);
    } else if (options.modes) {
        good = modes_table(&world, stdout);
    } else if (options.controls) {
        good = controls_run(&world, options.seed, options.control);
    } else if (options.actions) {
        (void)setvbuf(stdout, NULL, _IOFBF, 0);
        good = run_actions(&world, &options);
    } else if (options.trace || options.only != NULL || options.without != NULL) {
        good = run_trace(&world, &options);
    } else {
        good = run_many(&world, &options);
    }
    world_close(&world);
    return good ? 0 : 1;
}
