/* SPDX-License-Identifier: BSD-3-Clause */
#include "options_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROTOCOL "1"
#define MS_MAX   86400000ul
#define MANY     1000ul

static int bad(const char *name, const char *wanted)
{
    const char *value = getenv(name);

    (void)fprintf(stderr, "chaos_client: %s: '%s' is not %s; cluster/chaos sets it\n", name, value != NULL ? value : "",
                  wanted);
    return -1;
}

static int read_list(char **ret_items, size_t *ret_n, const char *name)
{
    char *text = getenv(name), *rest = NULL, *item;
    size_t n = 0;

    for (item = text != NULL ? strtok_r(text, ",", &rest) : NULL; item != NULL; item = strtok_r(NULL, ",", &rest)) {
        if (n == CHAOS_LIST_MAX) return bad(name, "a list of 1 to 31");
        ret_items[n++] = item;
    }
    *ret_n = n;
    return n != 0 ? 0 : bad(name, "a list of 1 to 31");
}

/* Read MIN-MAX or one number, in milliseconds. */
static int read_range(struct chaos_range *ret_range, const char *name)
{
    const char *text = getenv(name);
    unsigned long min, max;
    char *end;

    if (text == NULL) return bad(name, "milliseconds or MIN-MAX");
    errno = 0;
    min = strtoul(text, &end, 10);
    max = min;
    if (end != text && *end == '-') {
        text = end + 1;
        max = strtoul(text, &end, 10);
    }
    if (end == text || *end != 0 || errno != 0 || min > max || max > MS_MAX)
        return bad(name, "milliseconds or MIN-MAX");
    ret_range->min = (uint32_t)min;
    ret_range->max = (uint32_t)max;
    return 0;
}

/* Return the index of a word in a list that ends with NULL; -1: not found. */
static int find_word(const char *text, const char *const *words)
{
    for (int i = 0; text != NULL && words[i] != NULL; i++)
        if (strcmp(words[i], text) == 0) return i;
    return -1;
}

static int read_word(int *ret_number, const char *name, const char *const *words)
{
    *ret_number = find_word(getenv(name), words);
    return *ret_number >= 0 ? 0 : bad(name, words[0]);
}

/* Read a number from 1 to MANY; the default is 1. */
static int read_count(uint32_t *ret_count, const char *name)
{
    const char *text = getenv(name);
    unsigned long count = 1;
    char *end = NULL;

    if (text != NULL) count = strtoul(text, &end, 10);
    if (count < 1 || count > MANY || (end != NULL && *end != 0)) return bad(name, "a number from 1 to 1000");
    *ret_count = (uint32_t)count;
    return 0;
}

/* Read the mode of each key; the default is lock. */
static int read_modes(struct chaos_options *options)
{
    static const char *const words[] = {"lock", "permits", "shared", "election", NULL};
    char *items[CHAOS_LIST_MAX];
    size_t n;

    if (getenv("QUORLOCK_CHAOS_MODES") == NULL) return 0;
    if (read_list(items, &n, "QUORLOCK_CHAOS_MODES") != 0) return -1;
    if (n != options->n_keys) return bad("QUORLOCK_CHAOS_MODES", "a mode for each key");
    for (size_t i = 0; i < n; i++) {
        int mode = find_word(items[i], words);

        if (mode < 0) return bad("QUORLOCK_CHAOS_MODES", "a list of lock, permits, shared, election");
        options->modes[i] = (enum chaos_mode)mode;
        if (options->modes[i] != options->modes[0]) options->mixed = true;
    }
    return 0;
}

static int read_flag(bool *ret_flag, const char *name)
{
    static const char *const words[] = {"0", "1", NULL};
    int number;

    if (read_word(&number, name, words) != 0) return -1;
    *ret_flag = number != 0;
    return 0;
}

int options_read(struct chaos_options *ret_options)
{
    static const char *const guards[] = {"default", "off", "connection", "strict", NULL};
    const char *version = getenv("QUORLOCK_CHAOS_VERSION"), *seed = getenv("QUORLOCK_CHAOS_SEED");
    struct chaos_options options = {.name = getenv("QUORLOCK_CHAOS_CLIENT")};
    struct chaos_range max_lease_ms;

    if (version == NULL || strcmp(version, PROTOCOL) != 0) return bad("QUORLOCK_CHAOS_VERSION", PROTOCOL);
    if (options.name == NULL) return bad("QUORLOCK_CHAOS_CLIENT", "a name");
    if (seed == NULL) return bad("QUORLOCK_CHAOS_SEED", "a number");
    options.seed = strtoull(seed, NULL, 10);
    if (read_list(options.nodes, &options.n_nodes, "QUORLOCK_CHAOS_NODES") != 0 ||
        read_list(options.keys, &options.n_keys, "QUORLOCK_CHAOS_KEYS") != 0 || read_modes(&options) != 0 ||
        read_count(&options.permits, "QUORLOCK_CHAOS_PERMITS") != 0 ||
        read_count(&options.n_users, "QUORLOCK_CHAOS_USERS") != 0 ||
        read_range(&options.lease_ms, "QUORLOCK_CHAOS_LEASE_MS") != 0 ||
        read_range(&options.hold_ms, "QUORLOCK_CHAOS_HOLD_MS") != 0 ||
        read_range(&options.think_ms, "QUORLOCK_CHAOS_THINK_MS") != 0 ||
        read_range(&options.wait_ms, "QUORLOCK_CHAOS_WAIT_MS") != 0 ||
        read_range(&max_lease_ms, "QUORLOCK_CHAOS_MAX_LEASE_MS") != 0 ||
        read_word(&options.guard, "QUORLOCK_CHAOS_GUARD", guards) != 0 ||
        read_flag(&options.fencing, "QUORLOCK_CHAOS_FENCE") != 0 ||
        read_flag(&options.verbose, "QUORLOCK_CHAOS_VERBOSE") != 0)
        return -1;
    options.max_lease_ms = max_lease_ms.max;
    options.broken_rule = getenv("QUORLOCK_CHAOS_BREAK");
    *ret_options = options;
    return 0;
}

/* Read the password anew for each login, because it changes. */
static int on_login(quorlock_credentials *to, const char *node, void *arg)
{
    char password[256];
    FILE *file = fopen(arg, "re");
    const char *line = file != NULL ? fgets(password, sizeof(password), file) : NULL;

    (void)node;
    if (file != NULL) (void)fclose(file);
    if (line == NULL) return quorlock_credentials_refuse(to, "the password file cannot be read");
    password[strcspn(password, "\n")] = 0;
    return quorlock_credentials_set(to, NULL, password);
}

void options_of_client(struct quorlock_client_options *ret, const struct chaos_options *options)
{
    ret->nodes = (const char *const *)options->nodes;
    ret->n_nodes = options->n_nodes;
    if (strncmp(ret->nodes[0], "rediss://", strlen("rediss://")) == 0) {
        ret->tls_ca = getenv("QUORLOCK_TLS_CA");
        ret->tls_name = getenv("QUORLOCK_TLS_NAME");
    }
    ret->credentials_arg = getenv("QUORLOCK_PASSWORD_FILE");
    if (ret->credentials_arg != NULL) ret->credentials = on_login;
    ret->guard = options->guard;
    ret->max_lease_ms = options->max_lease_ms;
    ret->owner_label = options->name;
}

uint64_t options_draw(uint64_t *seed)
{
    uint64_t z = (*seed += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint32_t options_pick(uint64_t *seed, struct chaos_range range)
{
    return range.min + (uint32_t)(options_draw(seed) % (range.max - range.min + 1));
}
