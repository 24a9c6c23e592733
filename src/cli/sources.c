/* SPDX-License-Identifier: BSD-3-Clause */
#include "sources.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "hide.h"
#include "say.h"

#define SYSTEM_FILE "/etc/quorlock.conf"

/* Of one option: what else may give it a value, and what holds where nothing does. */
struct habit {
    const char *key;
    const char *variable; /* NULL: none */
    const char *partner;  /* where that one was settled in an earlier layer, this one is not looked for */
    const char *usual;    /* NULL: nothing */
};

static const struct habit habits[] = {
    {"set", "QUORLOCK_SET", NULL, NULL},
    {"nodes", "QUORLOCK_NODES", NULL, "127.0.0.1:6379,127.0.0.1:6380,127.0.0.1:6381"},
    {"user", "QUORLOCK_USER", NULL, NULL},
    {"password", "QUORLOCK_PASSWORD", "password-file", NULL},
    {"password-file", "QUORLOCK_PASSWORD_FILE", "password", NULL},
    {"tls-ca", "QUORLOCK_TLS_CA", NULL, "those of the system"},
    {"tls-cert", "QUORLOCK_TLS_CERT", NULL, NULL},
    {"tls-key", "QUORLOCK_TLS_KEY", "tls-cert", NULL},
    {"tls-name", "QUORLOCK_TLS_NAME", NULL, "the host of each address"},
    {"policy", NULL, NULL, "majority"},
    {"lease", NULL, NULL, LEASE_SHOWN ", or the max lease where that is shorter"},
    {"max-lease", "QUORLOCK_MAX_LEASE", NULL, LEASE_SHOWN},
    {"wait", NULL, NULL, "forever"},
    {"node-timeout", NULL, NULL, "a tenth of the lease, at least 50ms, at most 1s"},
    {"connect-timeout", NULL, NULL, "3s, or the node timeout where that is more"},
    {"label", NULL, NULL, "HOST:PID:"},
    {"dialect", NULL, NULL, "plain"},
    {"guard", NULL, NULL, "connection"},
    {"set-name", NULL, NULL, "from the addresses"},
    {"allow-eviction", NULL, NULL, "no"},
    {"fence", NULL, NULL, "no"},
    {"in-flight", NULL, NULL, SHOWN(BENCH_IN_FLIGHT)},
    {"seconds", NULL, NULL, SHOWN(BENCH_SECONDS)},
};
enum { N_HABITS = sizeof(habits) / sizeof(habits[0]), SET = 0, FILES_MAX = 2 };

/* One for the process. */
static struct {
    struct configfile files[FILES_MAX];
    size_t n_files;
    char looked_for[FILES_MAX][PATH_MAX];
    struct source found[N_HABITS];
    char *nodes; /* a copy of the variable or the default, for set_nodes changes it */
} sources;

static size_t place_of(const char *key)
{
    size_t i = 0;

    while (i < N_HABITS && strcmp(habits[i].key, key) != 0) i++;
    return i;
}

bool sources_know(const char *key)
{
    return place_of(key) < N_HABITS;
}

static struct source *sources_find(const char *key)
{
    return &sources.found[place_of(key)];
}

/* variable - NULL where it is not set, or empty. */
static char *variable(const char *name)
{
    char *value = name != NULL ? getenv(name) : NULL;

    return value != NULL && *value != '\0' ? value : NULL;
}

/* ---- files ---- */

static int add_file(const char *path, bool needed)
{
    struct configfile *file = &sources.files[sources.n_files];
    int status = configfile_read(file, path, needed);

    snprintf(sources.looked_for[sources.n_files], PATH_MAX, "%s", path);
    sources.n_files++;
    return status;
}

/* read_files - the one that was named, or the user's and the system's. */
static int sources_read_files(const struct settings *settings)
{
    const char *named = settings->config != NULL ? settings->config : variable("QUORLOCK_CONFIG");
    const char *base = variable("XDG_CONFIG_HOME"), *home = variable("HOME");
    bool is_based = base != NULL && *base == '/';
    char path[PATH_MAX];
    int status = 0;

    if (named != NULL && strstr(named, "://") != NULL) {
        say("\"%s\" is an address and no configuration file: write --nodes URI,URI,...", hide_shown(named));
        return EXIT_USAGE;
    }
    if (named != NULL) return add_file(named, true);
    if (is_based || home != NULL) {
        snprintf(path, sizeof(path), "%s%s/quorlock/config", is_based ? base : home, is_based ? "" : "/.config");
        status = add_file(path, false);
    }
    return status != 0 ? status : add_file(SYSTEM_FILE, false);
}

static int sources_check_keys(const struct configfile *file)
{
    for (size_t i = 0; i < file->n_items; i++) {
        const struct config_item *item = &file->items[i];
        const char *wrong = NULL;

        if (item->key == NULL) continue;
        if (!sources_know(item->key))
            wrong = args_knows(item->key) ? "cannot stand in a file" : "is no key; quorlock config lists them";
        else if (strcmp(item->key, habits[SET].key) == 0 && *item->set != '\0')
            wrong = "must stand in front of all sets";
        else if (*item->value == '\0')
            wrong = "has no value: leave the line out, or write one";
        if (wrong == NULL) continue;
        say("%s:%u: %.40s %s", file->path, item->line, item->key, wrong);
        return EXIT_USAGE;
    }
    return 0;
}

/* warn - of a password that any user may read. */
static void warn(const struct configfile *file)
{
    for (size_t i = 0; i < file->n_items; i++) {
        const struct config_item *item = &file->items[i];
        bool secret = item->key != NULL && (strcmp(item->key, "password") == 0 ||
                                            (strcmp(item->key, "nodes") == 0 && strchr(item->value, '@') != NULL));

        if (!secret || !file->is_public) continue;
        say_at(LOG_WARNING, "%s:%u: a password, and every user may read the file: chmod o= %s", file->path, item->line,
               file->path);
        return;
    }
}

static bool has_set(const struct configfile *file, const char *set)
{
    for (size_t i = 0; i < file->n_items; i++)
        if (file->items[i].key == NULL && strcmp(file->items[i].set, set) == 0) return true;
    return false;
}

const char *sources_set(size_t number)
{
    for (size_t f = 0; f < sources.n_files; f++) {
        struct configfile before = sources.files[f];

        for (before.n_items = 0; before.n_items < sources.files[f].n_items; before.n_items++) {
            const struct config_item *item = &before.items[before.n_items];
            bool known =
                item->key != NULL || has_set(&before, item->set) || (f > 0 && has_set(sources.files, item->set));

            if (!known && number-- == 0) return item->set;
        }
    }
    return NULL;
}

void sources_sets(struct text *text)
{
    const char *name;

    for (size_t i = 0; (name = sources_set(i)) != NULL; i++) {
        text_format(text, "%s", i > 0 ? ", " : "");
        text_add_known(text, name);
    }
}

/* ---- values ---- */

/* origin - how a message names the place of a value. */
static const char *origin(const struct source *source)
{
    static char text[PATH_MAX + 64];

    if (source->path == NULL) return source->variable;
    snprintf(text, sizeof(text), "%s:%u: %s", source->path, source->line, source->key);
    return text;
}

/* look - for the key in that layer; the value, or NULL. */
static char *sources_look(struct source *source, enum source_layer layer, const char *set)
{
    struct config_item *item = NULL;
    size_t i = 0;

    if (layer == SOURCE_ENVIRONMENT) return variable(source->variable);
    if (layer == SOURCE_SET && set == NULL) return NULL;
    for (; item == NULL && i < sources.n_files; i++)
        item = configfile_find(&sources.files[i], layer == SOURCE_SET ? set : "", source->key);
    if (item == NULL) return NULL;
    source->path = sources.files[i - 1].path;
    source->line = item->line;
    return item->value;
}

/* copy_nodes - NULL: out of memory, which was said. */
static char *copy_nodes(const char *nodes)
{
    sources.nodes = strdup(nodes);
    if (sources.nodes == NULL) say("out of memory");
    return sources.nodes;
}

static int sources_settle_one(struct settings *settings, size_t place, enum source_layer layer)
{
    struct source *source = &sources.found[place];
    const char *partner = habits[place].partner;
    enum source_layer other = partner != NULL ? sources_find(partner)->layer : SOURCE_NONE;
    char *value;

    if (source->layer != SOURCE_NONE || (other != SOURCE_NONE && other < layer)) return 0;
    value = sources_look(source, layer, settings->set);
    if (value == NULL) return 0;
    if (layer == SOURCE_ENVIRONMENT && strcmp(source->key, "nodes") == 0) value = copy_nodes(value);
    if (value == NULL) return EXIT_SYSTEM;
    source->layer = layer;
    source->value = value;
    return args_set(settings, source->key, origin(source), value);
}

/* check_set - that it is there, and that nobody gets other nodes than those of the set that was asked for. */
static int check_set(const struct settings *settings)
{
    struct source *set = &sources.found[SET], nodes = {.key = "nodes"};
    const char *name = set->layer == SOURCE_OPTION ? "--set" : origin(set);
    struct text sets = {0};
    bool known = false;

    if (set->layer == SOURCE_NONE) return 0;
    for (size_t i = 0; i < sources.n_files; i++) known |= has_set(&sources.files[i], settings->set);
    if (known && (set->layer == SOURCE_FILE || args_asked(settings, "nodes") != NULL ||
                  variable("QUORLOCK_NODES") == NULL || sources_look(&nodes, SOURCE_SET, settings->set) == NULL))
        return 0;
    sources_sets(&sets);
    if (known) {
        say("%s: the set \"%s\" and QUORLOCK_NODES both name nodes: unset QUORLOCK_NODES, or give --nodes", name,
            hide_shown(settings->set));
    } else if (sets.length > 0) {
        say("%s: \"%s\" is no set of a configuration file: there are %.*s", name, hide_shown(settings->set),
            (int)sets.length, sets.bytes);
    } else {
        say("%s: \"%s\" is no set: there is no [set NAME] in %s%s%s", name, hide_shown(settings->set),
            sources.looked_for[0], sources.n_files > 1 ? ", nor in " : "",
            sources.n_files > 1 ? sources.looked_for[1] : "");
    }
    text_clear(&sets);
    return EXIT_USAGE;
}

static void sources_begin(const struct settings *settings)
{
    for (size_t i = 0; i < sources.n_files; i++) configfile_clear(&sources.files[i]);
    sources.n_files = 0;
    free(sources.nodes);
    sources.nodes = NULL;
    for (size_t i = 0; i < N_HABITS; i++) {
        struct source *source = &sources.found[i];

        *source = (struct source){.key = habits[i].key, .variable = habits[i].variable};
        source->value = args_asked(settings, source->key);
        if (source->value != NULL) source->layer = SOURCE_OPTION;
    }
}

/* leave_out - what is found is not in force; its setting is for the caller to clear. */
static void leave_out(struct source *source)
{
    *source = (struct source){.key = source->key, .variable = source->variable};
}

/* end_tls - only for nodes that ask for TLS: the same environment and files may serve others too. */
static void end_tls(struct settings *settings)
{
    const struct {
        const char *key;
        const char **setting;
    } texts[] = {{"tls-ca", &settings->tls_ca},
                 {"tls-cert", &settings->tls_cert},
                 {"tls-key", &settings->tls_key},
                 {"tls-name", &settings->tls_name}};

    if (strcasestr(settings->nodes, "rediss://") != NULL || strcasestr(settings->nodes, "valkeys://") != NULL) return;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct source *source = sources_find(texts[i].key);

        if (source->layer <= SOURCE_OPTION) continue;
        *texts[i].setting = NULL;
        leave_out(source);
    }
}

/* end - what holds where nothing was said. */
static int sources_end(struct settings *settings)
{
    struct source *file = sources_find("password-file");

    /* They were in one layer. */
    if (sources_find("password")->layer != SOURCE_NONE && file->layer != SOURCE_NONE) {
        settings->password_file = NULL;
        leave_out(file);
    }
    if (settings->nodes == NULL) settings->nodes = copy_nodes(habits[place_of("nodes")].usual);
    if (settings->nodes == NULL) return EXIT_SYSTEM;
    end_tls(settings);
    for (size_t i = 0; i < N_HABITS; i++)
        if (sources.found[i].layer == SOURCE_NONE) sources.found[i].value = habits[i].usual;
    return 0;
}

int sources_settle(struct settings *settings, enum args_place place)
{
    int status;

    sources_begin(settings);
    status = sources_read_files(settings);
    for (size_t i = 0; status == 0 && i < sources.n_files; i++) {
        status = sources_check_keys(&sources.files[i]);
        if (status == 0) warn(&sources.files[i]);
    }
    if (status == 0) status = sources_settle_one(settings, SET, SOURCE_ENVIRONMENT);
    if (status == 0) status = sources_settle_one(settings, SET, SOURCE_FILE);
    if (status == 0) status = check_set(settings);
    for (enum source_layer layer = SOURCE_ENVIRONMENT; layer <= SOURCE_FILE; layer++)
        for (size_t i = SET + 1; status == 0 && i < N_HABITS; i++)
            if (args_takes(place, habits[i].key)) status = sources_settle_one(settings, i, layer);
    return status != 0 ? status : sources_end(settings);
}

int sources_check(void)
{
    struct settings scratch = {0};
    int status = 0;

    for (size_t f = 0; f < sources.n_files; f++) {
        for (size_t i = 0; status == 0 && i < sources.files[f].n_items; i++) {
            const struct config_item *item = &sources.files[f].items[i];
            struct source source = {.key = item->key, .path = sources.files[f].path, .line = item->line};

            if (item->key != NULL) status = args_set(&scratch, item->key, origin(&source), item->value);
        }
    }
    return status;
}

void sources_forget(const struct settings *settings)
{
    hide_addresses(settings->nodes);
    for (size_t f = 0; f < sources.n_files; f++) {
        for (size_t i = 0; i < sources.files[f].n_items; i++) {
            const struct config_item *item = &sources.files[f].items[i];
            bool secret = item->key != NULL && (strcmp(item->key, "nodes") == 0 || strcmp(item->key, "password") == 0);

            if (secret && item->value != settings->nodes) explicit_bzero(item->value, strlen(item->value));
        }
    }
}

void sources_blame(void)
{
    struct text text = {0};

    for (size_t i = SET + 1; i < N_HABITS; i++) {
        const struct source *source = &sources.found[i];

        if (source->path == NULL || source->layer < SOURCE_SET) continue;
        text_format(&text, "%s%s (%s:%u)", text.length > 0 ? ", " : "values from files: ", source->key, source->path,
                    source->line);
    }
    if (text.length > 0) {
        say_text(LOG_ERR, &text);
    } else {
        text_clear(&text);
    }
}

const struct source *sources_all(size_t *ret_n)
{
    *ret_n = N_HABITS;
    return sources.found;
}

const struct configfile *sources_files(size_t *ret_n)
{
    *ret_n = sources.n_files;
    return sources.files;
}
