/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c - model: checks the fencing rules exhaustively in small worlds, and that broken rules are found out
 *
 * A search that gave up (time, memory) has shown nothing, so it counts as failed.
 */
#include "model.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 64 };

struct options {
    bool check, controls;
    unsigned nodes, grants;
    struct model_limits limits;
};

struct control {
    const char *name;
    enum model_broken broken;
    unsigned watched; /* each of these invariants must be found violated */
};

static const struct control controls[] = {
    {"no write-back", MODEL_NO_WRITE_BACK, MODEL_I2 | MODEL_I3},
    {"acknowledgement without counter <= T", MODEL_ACK_ANY, MODEL_I2 | MODEL_I4},
    {"unconditional write", MODEL_WRITE_ANY, MODEL_I2 | MODEL_I3 | MODEL_I4},
    {"raise without a look at the owner", MODEL_NO_OWNER, MODEL_I2 | MODEL_I4},
    {"Q = N/2", MODEL_HALF, MODEL_I2 | MODEL_I3},
    {"a node loses its counter", MODEL_FORGETFUL, MODEL_I2 | MODEL_I3 | MODEL_I4},
};

static const char *const usage_text =
    "Usage: model [--check] [--controls] [--nodes N --grants G] [--seconds-limit S] [--memory-limit-mb M]\n"
    "Searches the fencing rules in small worlds, exhaustively.\n"
    "  --check              the rules hold: N=3 with 3 grants, N=5 with 2, and others\n"
    "  --controls           each rule, once broken, is found out\n"
    "  --nodes N --grants G with --check: this world only (N 1 to 5, G 1 to 4)\n"
    "  --seconds-limit S    all searches together (default 300); past it the check has failed\n"
    "  --memory-limit-mb M  for one search (default 1500); past it the check has failed\n";

static struct model_config sound_config(unsigned nodes, unsigned grants)
{
    return (struct model_config){
        .nodes = nodes,
        .grants = grants,
        .quorum = nodes / 2 + 1,
        .lift = true,
        .symmetry = true,
        .forget = true,
        .watched = MODEL_I2 | MODEL_I3 | MODEL_I4,
    };
}

static const char *invariant_name(unsigned invariant)
{
    switch (invariant) {
    case MODEL_I2: return "I2 (tokens are unique)";
    case MODEL_I3: return "I3 (tokens rise in real time)";
    case MODEL_I4: return "I4 (token order is hold order)";
    default: return "several invariants";
    }
}

static void search(struct options *options, const struct model_config *config, struct model_result *ret_result)
{
    model_search(config, &options->limits, ret_result);
    options->limits.seconds -= ret_result->seconds;
}

/* One world, one line. */
static bool check_world(struct options *options, const char *what, const struct model_config *config,
                        struct model_result *ret_result)
{
    static const char *const verdicts[] = {"holds", "VIOLATED", "GAVE UP"};
    bool sound;

    search(options, config, ret_result);
    /* A world in which not all can report would prove little. */
    sound = ret_result->verdict == MODEL_EXHAUSTED && ret_result->reported_max == config->grants;
    printf("%-8s N=%u Q=%u grants=%u, %s: %zu states, %zu steps, depth %u, tokens to %u, %u of %u reported, "
           "%.1f s, "
           "%zu MB\n",
           sound || ret_result->verdict != MODEL_EXHAUSTED ? verdicts[ret_result->verdict] : "VACUOUS",
           config->nodes, config->quorum, config->grants, what, ret_result->states, ret_result->steps,
           ret_result->depth, ret_result->value_max, ret_result->reported_max, config->grants,
           ret_result->seconds, ret_result->memory_mb);
    if (ret_result->verdict == MODEL_GAVE_UP) printf("         %s\n", ret_result->gave_up);
    if (ret_result->verdict == MODEL_VIOLATED) {
        printf("         %s\n", invariant_name(ret_result->violated));
        model_tell(config, ret_result->trace, ret_result->n_trace);
    }
    fflush(stdout);
    free(ret_result->trace);
    return sound;
}

/* The small world again without what makes the search small: it must come to the very same reports. */
static bool check_reductions(struct options *options)
{
    struct model_config config = sound_config(3, 2);
    struct model_result reduced;
    struct model_result renamed;
    struct model_result plain;
    bool same;

    bool sound = check_world(options, "reduced", &config, &reduced);
    config.forget = false;
    config.separate = true;
    sound = check_world(options, "nothing forgotten, all steps apart", &config, &renamed) && sound;
    config.symmetry = false;
    sound = check_world(options, "the same without symmetry", &config, &plain) && sound;
    same = memcmp(&reduced.outcomes, &plain.outcomes, sizeof(plain.outcomes)) == 0 &&
           memcmp(&renamed.outcomes, &plain.outcomes, sizeof(plain.outcomes)) == 0 &&
           plain.renamed == renamed.states;
    printf("%-8s reductions: the same reports with them and without, %zu states are %zu but for their names "
           "(with symmetry: %zu)\n",
           same ? "holds" : "DIFFERS", plain.states, plain.renamed, renamed.states);
    return sound && same;
}

static unsigned check_all(struct options *options)
{
    struct model_result result;
    struct model_result reduced;
    struct model_config config = sound_config(3, 3);
    unsigned failed = 0;

    failed += check_world(options, "counters alone", &config, &reduced) ? 0 : 1;
    config.floors[0] = 4;
    config.n_floors = 1;
    failed += check_world(options, "counters with a floor", &config, &result) ? 0 : 1;
    config = sound_config(3, 3);
    config.forget = false;
    failed += check_world(options, "nothing forgotten", &config, &result) ? 0 : 1;
    if (memcmp(&reduced.outcomes, &result.outcomes, sizeof(result.outcomes)) != 0) {
        printf("DIFFERS  what was forgotten would have made other reports possible\n");
        failed++;
    }
    config = sound_config(3, 3);
    config.quorum = 3;
    failed += check_world(options, "policy ALL", &config, &result) ? 0 : 1;
    config = sound_config(4, 2);
    failed += check_world(options, "counters alone", &config, &result) ? 0 : 1;
    config = sound_config(5, 2);
    failed += check_world(options, "counters alone", &config, &result) ? 0 : 1;
    failed += check_reductions(options) ? 0 : 1;
    printf("model: %s, N=3 with 3 grants and N=5 with 2 searched exhaustively, %u failed\n",
           failed == 0 ? "the fencing rules hold" : "FAILED", failed);
    return failed;
}

static bool check_control(struct options *options, const struct control *control, unsigned invariant)
{
    struct model_config config = sound_config(3, 3);
    struct model_result result;
    bool caught;

    /* No licence here: every step of the trace is one that the rules, but for the broken one, allow. */
    config.lift = false;
    config.forget = false;
    config.broken = control->broken;
    config.watched = invariant;
    if (control->broken == MODEL_HALF) config.quorum = config.nodes / 2;
    search(options, &config, &result);
    caught = result.verdict == MODEL_VIOLATED && result.n_trace != 0 &&
             (result.trace[result.n_trace - 1].violated & invariant) != 0;
    printf("%-8s %s: %s after %zu steps (%zu states)\n", caught ? "caught" : "MISSED", control->name,
           invariant_name(invariant), result.n_trace, result.states);
    if (result.verdict == MODEL_GAVE_UP) printf("         %s\n", result.gave_up);
    model_tell(&config, result.trace, result.n_trace);
    fflush(stdout);
    free(result.trace);
    return caught;
}

static unsigned check_controls(struct options *options)
{
    size_t n = sizeof(controls) / sizeof(controls[0]);
    struct model_config config = sound_config(3, 3);
    struct model_result result;
    unsigned failed = 0;

    /* The same world with nothing broken: what the controls find, they find because of the break. */
    config.lift = false;
    config.forget = false;
    failed += check_world(options, "by the letter, nothing broken", &config, &result) ? 0 : 1;
    for (size_t c = 0; c < n; c++) {
        for (unsigned invariant = MODEL_I2; invariant <= MODEL_I4; invariant <<= 1) {
            if ((controls[c].watched & invariant) == 0) continue;
            failed += check_control(options, &controls[c], invariant) ? 0 : 1;
        }
    }
    printf("model: %s, %zu broken rules, %u failed\n", failed == 0 ? "all controls caught" : "FAILED", n,
           failed);
    return failed;
}

static bool parse_number(const char *name, const char *text, unsigned long least, unsigned long most,
                         unsigned long *ret_value)
{
    char *end = NULL;
    unsigned long value;

    errno = 0;
    value = strtoul(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || value < least || value > most) {
        fprintf(stderr, "model: --%s %s: give a whole number from %lu to %lu\n", name, text, least, most);
        return false;
    }
    *ret_value = value;
    return true;
}

static bool parse_options(int argc, char **argv, struct options *options, bool *ret_help)
{
    static const struct option names[] = {
        {"check", no_argument, NULL, 'c'},
        {"controls", no_argument, NULL, 'b'},
        {"nodes", required_argument, NULL, 'n'},
        {"grants", required_argument, NULL, 'g'},
        {"seconds-limit", required_argument, NULL, 's'},
        {"memory-limit-mb", required_argument, NULL, 'm'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    unsigned long value = 0;
    int which;

    while ((which = getopt_long(argc, argv, "h", names, NULL)) != -1) {
        bool good = true;

        switch (which) {
        case 'c': options->check = true; break;
        case 'b': options->controls = true; break;
        case 'n':
            good = parse_number("nodes", optarg, 1, MODEL_NODES_MAX, &value);
            options->nodes = (unsigned)value;
            break;
        case 'g':
            good = parse_number("grants", optarg, 1, MODEL_GRANTS_MAX, &value);
            options->grants = (unsigned)value;
            break;
        case 's':
            good = parse_number("seconds-limit", optarg, 1, 86400, &value);
            options->limits.seconds = (double)value;
            break;
        case 'm':
            good = parse_number("memory-limit-mb", optarg, 16, 65536, &value);
            options->limits.memory_mb = value;
            break;
        case 'h': *ret_help = true; break;
        default: return false;
        }
        if (!good) return false;
    }
    if (optind < argc) {
        fprintf(stderr, "model: %s: no such argument; see --help\n", argv[optind]);
        return false;
    }
    if ((options->nodes == 0) != (options->grants == 0) || (options->nodes != 0 && options->controls)) {
        fprintf(stderr, "model: --nodes and --grants go together, and with --check only\n");
        return false;
    }
    /* A state has to fit into 128 bits. */
    if (options->nodes * (5 + 7 * options->grants) + 5 * options->grants > 128) {
        fprintf(stderr, "model: --nodes %u --grants %u: too large a world; take one of them smaller\n",
                options->nodes, options->grants);
        return false;
    }
    if (!options->check && !options->controls) options->check = true;
    return true;
}

int main(int argc, char **argv)
{
    struct options options = {.limits = {.seconds = 300, .memory_mb = 1500}};
    struct model_result result;
    bool help = false;
    unsigned failed = 0;

    if (!parse_options(argc, argv, &options, &help)) return EXIT_USAGE;
    if (help) {
        fputs(usage_text, stdout);
        return EXIT_SUCCESS;
    }
    if (options.nodes != 0) {
        struct model_config config = sound_config(options.nodes, options.grants);

        failed += check_world(&options, "counters alone", &config, &result) ? 0 : 1;
    } else if (options.check) {
        failed += check_all(&options);
    }
    if (options.controls) failed += check_controls(&options);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
