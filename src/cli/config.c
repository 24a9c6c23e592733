/* SPDX-License-Identifier: BSD-3-Clause */
/* config.c - quorlock config: show each setting and its source, and check the files */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "cli.h"
#include "document.h"
#include "say.h"
#include "settings/duration.h"
#include "settings/hide.h"
#include "supervise.h"

enum column { KEY, VALUE, FROM, N_COLUMNS };

/* visible - return the value without passwords, for the caller to free; NULL: there is none, or out of memory. */
static char *visible(const struct sources *sources, size_t place)
{
    const struct source *source = &sources->found[place];
    char *value = source->value != NULL ? strdup(source->value) : NULL;

    if (value != NULL && strcmp(value_keys[place].key, "password") == 0) {
        explicit_bzero(value, strlen(value));
        free(value);
        return strdup("***");
    }
    if (value != NULL) hide_addresses(value);
    return value;
}

static void add_from(struct text *text, const struct sources *sources, size_t place)
{
    const struct source *source = &sources->found[place];

    switch (source->layer) {
    case SOURCE_OPTION: text_format(text, "--%s", value_keys[place].key); break;
    case SOURCE_ENVIRONMENT: text_format(text, "%s", value_keys[place].variable); break;
    case SOURCE_SET:
    case SOURCE_FILE:
        text_add_known(text, source->path);
        text_format(text, ":%u", source->line);
        break;
    case SOURCE_NONE: text_format(text, "default"); break;
    }
}

static void config_add_cell(struct text *cell, const void *rows, size_t row, size_t column)
{
    const struct sources *sources = rows;
    char *value;

    switch ((enum column)column) {
    case KEY: text_format(cell, "%s", value_keys[row].key); break;
    case VALUE:
        value = visible(sources, row);
        text_add_known(cell, value != NULL ? value : "-");
        free(value);
        break;
    case FROM: add_from(cell, sources, row); break;
    case N_COLUMNS: break;
    }
}

static void add_text(struct text *text, const struct sources *sources)
{
    static const char *const heads[N_COLUMNS] = {"KEY", "VALUE", "FROM"};
    struct text sets = {0};

    text_add_table(text, heads, N_COLUMNS, config_add_cell, sources, N_VALUE_KEYS);
    for (size_t i = 0; i < sources->n_files; i++) {
        if (sources->files[i].path == NULL) continue;
        text_format(text, "file: ");
        text_add_known(text, sources->files[i].path);
        text_format(text, "\n");
    }
    sources_sets(sources, &sets);
    if (sets.length > 0) text_format(text, "sets: %.*s\n", (int)sets.length, sets.bytes);
    text_clear(&sets);
}

static json_t *source_json(const struct sources *sources, size_t place)
{
    static const char *const layers[] = {"default", "option", "environment", "set", "file"};
    const struct source *source = &sources->found[place];
    bool in_file = source->layer == SOURCE_SET || source->layer == SOURCE_FILE;
    json_t *object = json_object();
    char *value = visible(sources, place);

    document_add(&object, "value", document_text(value));
    document_add(&object, "from", document_text(layers[source->layer]));
    document_add(&object, "file", document_text(in_file ? source->path : NULL));
    document_add(&object, "line", document_number(in_file ? source->line : 0, 1));
    free(value);
    return object;
}

static void config_add_json(struct text *text, const struct sources *sources)
{
    json_t *object = json_object(), *files = json_array(), *sets = json_array(), *values = json_object();
    const char *set;

    for (size_t i = 0; i < sources->n_files; i++)
        if (sources->files[i].path != NULL) document_append(&files, document_text(sources->files[i].path));
    for (size_t i = 0; i < N_VALUE_KEYS; i++) document_add(&values, value_keys[i].key, source_json(sources, i));
    for (size_t i = 0; (set = sources_set(sources, i)) != NULL; i++) document_append(&sets, document_text(set));
    document_add(&object, "files", files);
    document_add(&object, "sets", sets);
    document_add(&object, "values", values);
    document_write(text, object);
}

/* ---- checks by the library ---- */

/* try_value - make a client with this value and otherwise correct ones. It asks no node, because its loop does not run.
 * Return the status of the library, with its text in `error`. */
static int try_value(const struct config_item *item, char *error, size_t error_size)
{
    static char usual[] = "127.0.0.1";
    struct settings scratch = {
        .values = {.nodes = usual, .client = {.password = "for a user", .guard = QUORLOCK_GUARD_OFF}}};
    struct session session = {0};
    struct text wrong = {0};
    int status = item != NULL ? values_set(&scratch.values, item->key, item->key, item->value, &wrong) : 0;

    text_clear(&wrong); /* sources_check has found none */
    if (status == 0) status = session_try(&session, &scratch);
    if (status != 0) snprintf(error, error_size, "%s", session.error.text);
    if (status == 0) session_close(&session);
    return status;
}

static bool is_one_of(const char *key, const char *const *keys, size_t n_keys)
{
    for (size_t i = 0; key != NULL && i < n_keys; i++)
        if (strcmp(key, keys[i]) == 0) return true;
    return false;
}
#define IS_ONE_OF(key, keys) is_one_of(key, keys, sizeof(keys) / sizeof((keys)[0]))

/* check_force - check that a lock can be made with the present settings: 0, or EXIT_USAGE after a message. It reads the
 * files that they name, and asks no node. */
static int check_force(const struct settings *settings)
{
    struct quorlock_lock_options options = {
        .size = sizeof(options),
        .lease_ms = session_lease_ms(settings),
        .fencing = settings->values.fence != 0,
    };
    const char *key = "config";
    struct session session = {0};
    quorlock_lock *lock = NULL;
    int status = supervise_check_lease(settings);

    if (status != 0) session_blame(settings);
    if (status == 0) status = session_open(&session, settings);
    if (status != 0) return status;
    status = session_check(&session, quorlock_lock_new(&lock, session.client, &key, 1, &options));
    if (status == 0) quorlock_lock_free(lock);
    session_close(&session);
    return status;
}

/* check_values - check all values by the library, after sources_check: 0, or EXIT_USAGE after a message. */
static int check_values(const struct settings *settings)
{
    static const char *const keys[] = {"nodes", "user", "password", "label", "set-name"};
    char error[sizeof(((struct session *)NULL)->error.text)];
    const struct sources *sources = settings->sources;

    /* If no client can be made at all, the files are not the reason. */
    if (try_value(NULL, error, sizeof(error)) != 0) return 0;
    for (size_t f = 0; f < sources->n_files; f++)
        for (size_t i = 0; i < sources->files[f].n_items; i++) {
            const struct config_item *item = &sources->files[f].items[i];

            if (!IS_ONE_OF(item->key, keys)) continue;
            if (session_exit(try_value(item, error, sizeof(error))) != EXIT_USAGE) continue;
            say("%s:%u: %s: %s", sources->files[f].path, item->line, item->key, error);
            return EXIT_USAGE;
        }
    return check_force(settings);
}

/* ---- settings that are not used now ---- */

static bool is_in_force(const struct sources *sources, const struct config_item *item)
{
    for (size_t i = 0; i < N_VALUE_KEYS; i++)
        if (sources->found[i].value == item->value) return true;
    return false;
}

/* warn_of_files - warn of named files that we may not read. Settings that are not used now may be for another user, so
 * this is no error. */
static void warn_of_files(const struct sources *sources)
{
    static const char *const keys[] = {"password-file", "tls-ca", "tls-cert", "tls-key"};

    for (size_t f = 0; f < sources->n_files; f++)
        for (size_t i = 0; i < sources->files[f].n_items; i++) {
            const struct config_item *item = &sources->files[f].items[i];

            if (!IS_ONE_OF(item->key, keys) || is_in_force(sources, item)) continue;
            if (faccessat(AT_FDCWD, item->value, R_OK, AT_EACCESS) == 0) continue;
            say_at(LOG_WARNING, "%s:%u: %s, which is not used now: \"%s\": %s", sources->files[f].path, item->line,
                   item->key, item->value, strerror(errno));
        }
}

/* find_in_files - return the item of a key for that set, and its file. */
static const struct config_item *find_in_files(const struct sources *sources, const char *set, const char *key,
                                               const char **ret_path)
{
    const char *const places[] = {set, ""};
    const struct config_item *item = NULL;

    for (size_t p = 0; p < sizeof(places) / sizeof(places[0]); p++)
        for (size_t f = 0; f < sources->n_files; f++) {
            item = configfile_find(&sources->files[f], places[p], key);
            *ret_path = sources->files[f].path;
            if (item != NULL) return item;
        }
    return NULL;
}

/* warn_of_leases - warn of leases that are longer than the max lease of their set. */
static void warn_of_leases(const struct settings *settings)
{
    const char *set, *path = NULL, *other = NULL;

    for (size_t i = 0; (set = sources_set(settings->sources, i)) != NULL; i++) {
        const struct config_item *lease = find_in_files(settings->sources, set, "lease", &path);
        const struct config_item *max = find_in_files(settings->sources, set, "max-lease", &other);
        uint32_t lease_ms = 0, max_ms = QUORLOCK_LEASE_MS_DEFAULT;

        if (settings->values.set != NULL && strcmp(settings->values.set, set) == 0) continue;
        if (lease != NULL) duration_read(lease->value, &lease_ms);
        if (max != NULL) duration_read(max->value, &max_ms);
        if (lease_ms <= max_ms) continue;
        say_at(LOG_WARNING,
               "%s:%u: lease: in the set \"%s\" it is longer than the max lease, %s: shorten the lease, or "
               "lengthen the max lease for all clients of these nodes",
               path, lease->line, set, max != NULL ? max->value : LEASE_SHOWN);
    }
}

int verb_config(const struct settings *settings)
{
    struct text text = {0};
    int status = session_exit(sources_check(settings->sources));

    if (status != 0) say_text(LOG_ERR, &settings->sources->error);
    if (status == 0) status = check_values(settings);
    if (status != 0) return status;
    warn_of_files(settings->sources);
    warn_of_leases(settings);
    if (settings->json) {
        config_add_json(&text, settings->sources);
    } else {
        add_text(&text, settings->sources);
    }
    return put(&text);
}
