/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c - model: checks the fencing rules exhaustively in small worlds, and that broken rules are found out
 *
 * A search that gave up has shown nothing, so it counts as failed.
 */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 64 };

/* Of all searches together; past it a check has failed. */
#define SECONDS_MAX 300.0

struct control {
    const char *name;
    enum model_broken broken;
    unsigned watched; /* each of these invariants must be found violated */
};

static const struct control broken_rules[] = {
    {"no write-back", MODEL_NO_WRITE_BACK, MODEL_I2 | MODEL_I3},
    {"acknowledgement without counter <= T", MODEL_ACK_ANY, MODEL_I2 | MODEL_I4},
    {"unconditional write", MODEL_WRITE_ANY, MODEL_I2 | MODEL_I3 | MODEL_I4},
    {"raise without a look at the owner", MODEL_NO_OWNER, MODEL_I2 | MODEL_I4},
    {"Q = N/2", MODEL_HALF, MODEL_I2 | MODEL_I3},
    {"a node loses its counter", MODEL_FORGETFUL, MODEL_I2 | MODEL_I3 | MODEL_I4},
};

static const char *const usage_text = "Usage: model [--check] [--controls]\n"
                                      "Searches the fencing rules in small worlds, exhaustively.\n"
                                      "  --check     the rules hold: N=3 with 3 grants, N=5 with 2, and others\n"
                                      "  --controls  each rule, once broken, is found out\n";

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

static void search(const struct model_config *config, struct model_result *ret_result)
{
    static double seconds_left = SECONDS_MAX;

    model_search(config, seconds_left, ret_result);
    seconds_left -= ret_result->seconds;
}

/* One world, one line. */
static bool check_world(const char *what, const struct model_config *config, struct model_result *ret_result)
{
    static const char *const verdicts[] = {"holds", "VIOLATED", "GAVE UP"};
    bool sound;

    search(config, ret_result);
    /* A world in which not all can report would prove little. */
    sound = ret_result->verdict == MODEL_EXHAUSTED && ret_result->reported_max == config->grants;
    printf("%-8s N=%u Q=%u grants=%u, %s: %zu states, %zu steps, depth %u, tokens to %u, %u of %u reported, "
           "%.1f s\n",
           sound || ret_result->verdict != MODEL_EXHAUSTED ? verdicts[ret_result->verdict] : "VACUOUS", config->nodes,
           config->quorum, config->grants, what, ret_result->states, ret_result->steps, ret_result->depth,
           ret_result->value_max, ret_result->reported_max, config->grants, ret_result->seconds);
    if (ret_result->verdict == MODEL_GAVE_UP) printf("         %s\n", ret_result->gave_up);
    if (ret_result->verdict == MODEL_VIOLATED) {
        printf("         %s\n", invariant_name(ret_result->violated));
        model_print_trace(config, ret_result->trace, ret_result->n_trace);
    }
    fflush(stdout);
    free(ret_result->trace);
    return sound;
}

/* The small world again without what makes the search small: it must come to the very same reports. */
static bool check_reductions(void)
{
    struct model_config config = sound_config(3, 2);
    struct model_result reduced;
    struct model_result renamed;
    struct model_result plain;
    bool same;

    bool sound = check_world("reduced", &config, &reduced);
    config.forget = false;
    config.separate = true;
    sound = check_world("nothing forgotten, all steps apart", &config, &renamed) && sound;
    config.symmetry = false;
    sound = check_world("the same without symmetry", &config, &plain) && sound;
    same = memcmp(&reduced.outcomes, &plain.outcomes, sizeof(plain.outcomes)) == 0 &&
           memcmp(&renamed.outcomes, &plain.outcomes, sizeof(plain.outcomes)) == 0 && plain.renamed == renamed.states;
    printf("%-8s reductions: the same reports with them and without, %zu states are %zu but for their names "
           "(with symmetry: %zu)\n",
           same ? "holds" : "DIFFERS", plain.states, plain.renamed, renamed.states);
    return sound && same;
}

static unsigned check_all(void)
{
    struct model_result result;
    struct model_result reduced;
    struct model_config config = sound_config(3, 3);
    unsigned failed = 0;

    failed += !check_world("counters alone", &config, &reduced);
    config.floors[0] = 4;
    config.n_floors = 1;
    failed += !check_world("counters with a floor", &config, &result);
    config = sound_config(3, 3);
    config.forget = false;
    failed += !check_world("nothing forgotten", &config, &result);
    if (memcmp(&reduced.outcomes, &result.outcomes, sizeof(result.outcomes)) != 0) {
        printf("DIFFERS  what was forgotten would have made other reports possible\n");
        failed++;
    }
    config = sound_config(3, 3);
    config.quorum = 3;
    failed += !check_world("policy ALL", &config, &result);
    config = sound_config(4, 2);
    failed += !check_world("counters alone", &config, &result);
    config = sound_config(5, 2);
    failed += !check_world("counters alone", &config, &result);
    failed += !check_reductions();
    printf("model: %s, N=3 with 3 grants and N=5 with 2 searched exhaustively, %u failed\n",
           failed == 0 ? "the fencing rules hold" : "FAILED", failed);
    return failed;
}

static bool check_control(const struct control *control, unsigned invariant)
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
    search(&config, &result);
    caught = result.verdict == MODEL_VIOLATED && result.n_trace != 0 &&
             (result.trace[result.n_trace - 1].step.violated & invariant) != 0;
    printf("%-8s %s: %s after %zu steps (%zu states)\n", caught ? "caught" : "MISSED", control->name,
           invariant_name(invariant), result.n_trace, result.states);
    if (result.verdict == MODEL_GAVE_UP) printf("         %s\n", result.gave_up);
    model_print_trace(&config, result.trace, result.n_trace);
    fflush(stdout);
    free(result.trace);
    return caught;
}

static unsigned check_controls(void)
{
    size_t n = sizeof(broken_rules) / sizeof(broken_rules[0]);
    struct model_config config = sound_config(3, 3);
    struct model_result result;
    unsigned failed = 0;

    /* The same world with nothing broken: what the controls find, they find because of the break. */
    config.lift = false;
    config.forget = false;
    failed += !check_world("by the letter, nothing broken", &config, &result);
    for (size_t c = 0; c < n; c++) {
        for (unsigned invariant = MODEL_I2; invariant <= MODEL_I4; invariant <<= 1) {
            if ((broken_rules[c].watched & invariant) == 0) continue;
            failed += !check_control(&broken_rules[c], invariant);
        }
    }
    printf("model: %s, %zu broken rules, %u failed\n", failed == 0 ? "all controls caught" : "FAILED", n, failed);
    return failed;
}

int main(int argc, char **argv)
{
    bool check = argc == 1, controls = false;
    unsigned failed = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--check") == 0) {
            check = true;
        } else if (strcmp(argv[i], "--controls") == 0) {
            controls = true;
        } else {
            bool help = strcmp(argv[i], "--help") == 0;

            fputs(usage_text, help ? stdout : stderr);
            return help ? EXIT_SUCCESS : EXIT_USAGE;
        }
    }
    if (check) failed += check_all();
    if (controls) failed += check_controls();
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
