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

/* An option that may come from elsewhere: its variable, and its default. */
struct source_option {
    const char *key;
    const char *variable; /* in the environment; NULL: none */
    const char *partner;  /* if this key was set in an earlier layer, `key` is not used */
    const char *usual;    /* the default as text; NULL: none */
};

static const struct source_option options[] = {
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
    {"lease", NULL, NULL, LEASE_SHOWN ", or the max lease if that is shorter"},
    {"max-lease", "QUORLOCK_MAX_LEASE", NULL, LEASE_SHOWN},
    {"wait", NULL, NULL, "forever"},
    {"node-timeout", NULL, NULL, "a tenth of the lease, at least 50ms, at most 1s"},
    {"connect-timeout", NULL, NULL, "3s, or the node timeout if that is more"},
    {"label", NULL, NULL, "HOST:PID:"},
    {"dialect", NULL, NULL, "plain"},
    {"prefix", "QUORLOCK_PREFIX", NULL, NULL},
    {"guard", NULL, NULL, "connection"},
    {"set-name", NULL, NULL, "a hash of the addresses"},
    {"allow-eviction", NULL, NULL, "no"},
    {"fence", NULL, NULL, "no"},
    {"in-flight", NULL, NULL, SHOWN(BENCH_IN_FLIGHT)},
    {"seconds", NULL, NULL, SHOWN(BENCH_SECONDS)},
};
enum { N_OPTIONS = sizeof(options) / sizeof(options[0]), SET = 0, FILES_MAX = 2 };

/* The process has one. */
static struct {
    struct configfile files[FILES_MAX];
    size_t n_files;
    char looked_for[FILES_MAX][PATH_MAX];
    struct source found[N_OPTIONS];
    char *nodes; /* a copy of the variable or the default, because set_nodes changes it */
} sources;

static size_t place_of(const char *key)
{
    size_t i = 0;

    while (i < N_OPTIONS && strcmp(options[i].key, key) != 0) i++;
    return i;
}

bool sources_know(const char *key)
{
    return place_of(key) < N_OPTIONS;
}

static struct source *sources_find(const char *key)
{
    return &sources.found[place_of(key)];
}

/* variable - return the value of a variable, or NULL if it is not set or empty. */
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
    if (status == 0) return 0;
    say("%s", file->error != NULL ? file->error : "out of memory");
    return status == QUORLOCK_NOMEM ? EXIT_SYSTEM : EXIT_USAGE;
}

/* sources_read_files - read the named file, or those of the user and of the system. */
static int sources_read_files(const struct settings *settings)
{
    const char *named = settings->config != NULL ? settings->config : variable("QUORLOCK_CONFIG");
    const char *base = variable("XDG_CONFIG_HOME"), *home = variable("HOME");
    bool is_based = base != NULL && *base == '/';
    char path[PATH_MAX];
    int status = 0;

    if (named != NULL && strstr(named, "://") != NULL) {
        say("\"%s\" is an address, not a configuration file: write --nodes URI,URI,...", hide_shown(named));
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
            wrong = args_knows(item->key) ? "is an option only, not a key of a file"
                                          : "is no key; quorlock config lists the keys";
        else if (strcmp(item->key, options[SET].key) == 0 && *item->set != '\0')
            wrong = "must be before all sets";
        else if (*item->value == '\0')
            wrong = "has no value: write one, or remove the line";
        if (wrong == NULL) continue;
        say("%s:%u: %.40s %s", file->path, item->line, item->key, wrong);
        return EXIT_USAGE;
    }
    return 0;
}

/* warn - warn of a password that every user may read. */
static void warn(const struct configfile *file)
{
    for (size_t i = 0; i < file->n_items; i++) {
        const struct config_item *item = &file->items[i];
        bool secret = item->key != NULL && (strcmp(item->key, "password") == 0 ||
                                            (strcmp(item->key, "nodes") == 0 && strchr(item->value, '@') != NULL));

        if (!secret || !file->is_public) continue;
        say_at(LOG_WARNING, "%s:%u: a password in a file that every user may read: chmod o= %s", file->path, item->line,
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

/* origin - return the place of a value for messages. */
static const char *origin(const struct source *source)
{
    static char text[PATH_MAX + 64];

    if (source->path == NULL) return source->variable;
    snprintf(text, sizeof(text), "%s:%u: %s", source->path, source->line, source->key);
    return text;
}

/* sources_look - return the value of the key in that layer, or NULL. */
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

/* copy_nodes - copy the addresses; NULL after a message: out of memory. */
static char *copy_nodes(const char *nodes)
{
    sources.nodes = strdup(nodes);
    if (sources.nodes == NULL) say("out of memory");
    return sources.nodes;
}

static int sources_settle_one(struct settings *settings, size_t place, enum source_layer layer)
{
    struct source *source = &sources.found[place];
    const char *partner = options[place].partner;
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

/* check_set - check that the chosen set exists, and that no variable overrides its nodes. */
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
        say("%s: both the set \"%s\" and QUORLOCK_NODES give nodes: unset QUORLOCK_NODES, or give --nodes", name,
            hide_shown(settings->set));
    } else if (sets.length > 0) {
        say("%s: \"%s\" is no set of the configuration files, which have %.*s", name, hide_shown(settings->set),
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
    for (size_t i = 0; i < N_OPTIONS; i++) {
        struct source *source = &sources.found[i];

        *source = (struct source){.key = options[i].key, .variable = options[i].variable};
        source->value = args_asked(settings, source->key);
        if (source->value != NULL) source->layer = SOURCE_OPTION;
    }
}

/* leave_out - forget a source; the caller clears its setting. */
static void leave_out(struct source *source)
{
    *source = (struct source){.key = source->key, .variable = source->variable};
}

/* end_tls - forget TLS settings of environment and files if no node uses TLS: they may be for other nodes. */
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

/* sources_end - use the defaults for all that is not set. */
static int sources_end(struct settings *settings)
{
    struct source *file = sources_find("password-file");

    /* Both were in the same layer: password wins. */
    if (sources_find("password")->layer != SOURCE_NONE && file->layer != SOURCE_NONE) {
        settings->password_file = NULL;
        leave_out(file);
    }
    if (settings->nodes == NULL) settings->nodes = copy_nodes(options[place_of("nodes")].usual);
    if (settings->nodes == NULL) return EXIT_SYSTEM;
    end_tls(settings);
    for (size_t i = 0; i < N_OPTIONS; i++)
        if (sources.found[i].layer == SOURCE_NONE) sources.found[i].value = options[i].usual;
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
        for (size_t i = SET + 1; status == 0 && i < N_OPTIONS; i++)
            if (args_takes(place, options[i].key)) status = sources_settle_one(settings, i, layer);
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

    for (size_t i = SET + 1; i < N_OPTIONS; i++) {
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
    *ret_n = N_OPTIONS;
    return sources.found;
}

const struct configfile *sources_files(size_t *ret_n)
{
    *ret_n = sources.n_files;
    return sources.files;
}
