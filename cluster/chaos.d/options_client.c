/* SPDX-License-Identifier: BSD-3-Clause */
#include "options_client.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quorlock/quorlock.h>

enum {
    OPTION_NAME = 1,
    OPTION_NODES,
    OPTION_KEYS,
    OPTION_LEASE,
    OPTION_HOLD,
    OPTION_THINK,
    OPTION_WAIT,
    OPTION_MAX_LEASE,
    OPTION_SEED,
    OPTION_HISTORY,
    OPTION_REGISTERS,
    OPTION_SOURCE,
    OPTION_BREAK,
    OPTION_POLICY,
    OPTION_GUARD,
    OPTION_FENCE,
    OPTION_VERBOSE
};

static const struct option known[] = {
    {"name", required_argument, NULL, OPTION_NAME},           {"nodes", required_argument, NULL, OPTION_NODES},
    {"keys", required_argument, NULL, OPTION_KEYS},           {"lease", required_argument, NULL, OPTION_LEASE},
    {"hold", required_argument, NULL, OPTION_HOLD},           {"think", required_argument, NULL, OPTION_THINK},
    {"wait", required_argument, NULL, OPTION_WAIT},           {"max-lease", required_argument, NULL, OPTION_MAX_LEASE},
    {"seed", required_argument, NULL, OPTION_SEED},           {"history", required_argument, NULL, OPTION_HISTORY},
    {"registers", required_argument, NULL, OPTION_REGISTERS}, {"source", required_argument, NULL, OPTION_SOURCE},
    {"break", required_argument, NULL, OPTION_BREAK},         {"policy", required_argument, NULL, OPTION_POLICY},
    {"guard", required_argument, NULL, OPTION_GUARD},         {"fence", no_argument, NULL, OPTION_FENCE},
    {"verbose", no_argument, NULL, OPTION_VERBOSE},           {NULL, 0, NULL, 0},
};

static int bad(const char *option, const char *value, const char *wanted)
{
    (void)fprintf(stderr, "chaos_client: --%s: '%s' is not %s\n", option, value, wanted);
    return -1;
}

static int read_list(char **ret_items, size_t *ret_n, char *text)
{
    char *rest = NULL, *item;
    size_t n = 0;

    for (item = strtok_r(text, ",", &rest); item != NULL; item = strtok_r(NULL, ",", &rest)) {
        if (n == CHAOS_LIST_MAX) return -1;
        ret_items[n++] = item;
    }
    *ret_n = n;
    return n == 0 ? -1 : 0;
}

/* MIN-MAX or one number, milliseconds. */
static int read_range(struct chaos_range *ret_range, const char *text)
{
    char *end;
    unsigned long min, max;

    errno = 0;
    min = strtoul(text, &end, 10);
    if (end == text) return -1;
    max = min;
    if (*end == '-') {
        text = end + 1;
        max = strtoul(text, &end, 10);
        if (end == text) return -1;
    }
    if (*end != 0 || errno != 0 || min > max || max > 86400000ul) return -1;
    ret_range->min = (uint32_t)min;
    ret_range->max = (uint32_t)max;
    return 0;
}

/* The number of a word in a list that ends with NULL, or -1. */
static int read_word(const char *text, const char *const *words)
{
    int i;

    for (i = 0; words[i] != NULL; i++)
        if (strcmp(words[i], text) == 0) return i;
    return -1;
}

/* Names go into JSON and file names as they are. */
static int is_plain(const char *text)
{
    return *text != 0 && text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")] == 0;
}

static int take_keys(struct chaos_options *options, char *value)
{
    size_t i;

    if (read_list(options->keys, &options->n_keys, value) != 0) return bad("keys", value, "a list");
    for (i = 0; i < options->n_keys; i++)
        if (is_plain(options->keys[i]) == 0) return bad("keys", options->keys[i], "letters, digits, dot, dash");
    return 0;
}

static int take_range(struct chaos_range *ret_range, const char *option, const char *value)
{
    return read_range(ret_range, value) == 0 ? 0 : bad(option, value, "milliseconds or MIN-MAX");
}

static int take(struct chaos_options *options, int which, const char *option, char *value)
{
    static const char *const policies[] = {"majority", "all", NULL};
    static const char *const guards[] = {"default", "off", "connection", "strict", NULL};
    struct chaos_range range;

    switch (which) {
    case OPTION_NAME: options->name = value; return is_plain(value) != 0 ? 0 : bad(option, value, "a plain name");
    case OPTION_NODES:
        return read_list(options->nodes, &options->n_nodes, value) == 0 ? 0 : bad(option, value, "1 to 31 nodes");
    case OPTION_KEYS: return take_keys(options, value);
    case OPTION_LEASE: return take_range(&options->lease_ms, option, value);
    case OPTION_HOLD: return take_range(&options->hold_ms, option, value);
    case OPTION_THINK: return take_range(&options->think_ms, option, value);
    case OPTION_WAIT: return take_range(&options->wait_ms, option, value);
    case OPTION_MAX_LEASE:
        if (take_range(&range, option, value) != 0) return -1;
        options->max_lease_ms = range.max;
        return 0;
    case OPTION_SEED: options->seed = strtoull(value, NULL, 10); return 0;
    case OPTION_HISTORY: options->history = value; return 0;
    case OPTION_REGISTERS: options->registers = value; return 0;
    case OPTION_SOURCE: options->source = value; return 0;
    case OPTION_BREAK: options->broken_rule = value; return 0;
    case OPTION_POLICY:
        options->policy = read_word(value, policies);
        return options->policy >= 0 ? 0 : bad(option, value, "majority or all");
    case OPTION_GUARD:
        options->guard = read_word(value, guards);
        return options->guard >= 0 ? 0 : bad(option, value, "default, connection, strict or off");
    case OPTION_FENCE: options->fencing = 1; return 0;
    case OPTION_VERBOSE: options->verbose = 1; return 0;
    default: return -1;
    }
}

int options_read(struct chaos_options *ret_options, int argc, char **argv)
{
    struct chaos_options options = {
        .lease_ms = {500, 1000},
        .hold_ms = {2, 150},
        .think_ms = {1, 60},
        .wait_ms = {0, 3000},
        .max_lease_ms = 2000,
        .policy = QUORLOCK_MAJORITY,
    };
    int which, index;

    while ((which = getopt_long(argc, argv, "", known, &index)) != -1) {
        if (which == '?') return -1;
        if (take(&options, which, known[index].name, optarg) != 0) return -1;
    }
    if (optind < argc) return bad("name", argv[optind], "an option");
    if (options.name == NULL || options.n_nodes == 0 || options.n_keys == 0 || options.history == NULL ||
        options.registers == NULL) {
        (void)fprintf(stderr, "chaos_client: --name, --nodes, --keys, --history and --registers are needed\n");
        return -1;
    }
    *ret_options = options;
    return 0;
}
