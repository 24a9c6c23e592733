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
#include "duration.h"
#include "hide.h"
#include "say.h"
#include "sources.h"
#include "supervise.h"

enum column { KEY, VALUE, FROM, N_COLUMNS };

/* visible - return the value without passwords, for the caller to free; NULL: there is none, or out of memory. */
static char *visible(const struct source *source)
{
    char *value = source->value != NULL ? strdup(source->value) : NULL;

    if (value != NULL && strcmp(source->key, "password") == 0) {
        explicit_bzero(value, strlen(value));
        free(value);
        return strdup("***");
    }
    if (value != NULL) hide_addresses(value);
    return value;
}

static void add_from(struct text *text, const struct source *source)
{
    switch (source->layer) {
    case SOURCE_OPTION: text_format(text, "--%s", source->key); break;
    case SOURCE_ENVIRONMENT: text_format(text, "%s", source->variable); break;
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
    const struct source *source = (const struct source *)rows + row;
    char *value;

    switch ((enum column)column) {
    case KEY: text_format(cell, "%s", source->key); break;
    case VALUE:
        value = visible(source);
        text_add_known(cell, value != NULL ? value : "-");
        free(value);
        break;
    case FROM: add_from(cell, source); break;
    case N_COLUMNS: break;
    }
}

static void add_text(struct text *text)
{
    static const char *const heads[N_COLUMNS] = {"KEY", "VALUE", "FROM"};
    size_t n_sources, n_files;
    const struct source *all = sources_all(&n_sources);
    const struct configfile *files = sources_files(&n_files);
    struct text sets = {0};

    text_add_table(text, heads, N_COLUMNS, config_add_cell, all, n_sources);
    for (size_t i = 0; i < n_files; i++) {
        if (files[i].path == NULL) continue;
        text_format(text, "file: ");
        text_add_known(text, files[i].path);
        text_format(text, "\n");
    }
    sources_sets(&sets);
    if (sets.length > 0) text_format(text, "sets: %.*s\n", (int)sets.length, sets.bytes);
    text_clear(&sets);
}

static json_t *source_json(const struct source *source)
{
    static const char *const layers[] = {"default", "option", "environment", "set", "file"};
    bool in_file = source->layer == SOURCE_SET || source->layer == SOURCE_FILE;
    json_t *object = json_object();
    char *value = visible(source);

    document_add(&object, "value", document_text(value));
    document_add(&object, "from", document_text(layers[source->layer]));
    document_add(&object, "file", document_text(in_file ? source->path : NULL));
    document_add(&object, "line", document_number(in_file ? source->line : 0, 1));
    free(value);
    return object;
}

static void config_add_json(struct text *text)
{
    json_t *object = json_object(), *files = json_array(), *sets = json_array(), *values = json_object();
    size_t n_sources, n_files;
    const struct source *all = sources_all(&n_sources);
    const struct configfile *read = sources_files(&n_files);

    for (size_t i = 0; i < n_files; i++)
        if (read[i].path != NULL) document_append(&files, document_text(read[i].path));
    for (size_t i = 0; i < n_sources; i++) document_add(&values, all[i].key, source_json(&all[i]));
    for (size_t i = 0; sources_set(i) != NULL; i++) document_append(&sets, document_text(sources_set(i)));
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
    struct settings scratch = {.nodes = usual, .password = "for a user", .guard = QUORLOCK_GUARD_OFF};
    struct session session = {0};
    int status = item != NULL ? args_set(&scratch, item->key, item->key, item->value) : 0;

    if (status == 0) status = session_try(&session, &scratch);
    if (status != 0) snprintf(error, error_size, "%s", session.error);
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
    struct quorlock_options options = {
        .size = sizeof(options),
        .lease_ms = session_lease_ms(settings),
        .fencing = settings->fence,
    };
    const char *key = "config";
    struct session session = {0};
    quorlock *lock = NULL;
    int status = supervise_check_lease(settings);

    if (status != 0) sources_blame();
    if (status == 0) status = session_open(&session, settings);
    if (status != 0) return status;
    status = session_check(&session, quorlock_new(&lock, session.client, &key, 1, &options));
    if (status == 0) quorlock_free(lock);
    session_close(&session);
    return status;
}

/* check_values - check all values by the library, after sources_check: 0, or EXIT_USAGE after a message. */
static int check_values(const struct settings *settings)
{
    static const char *const keys[] = {"nodes", "user", "password", "label", "set-name"};
    char error[sizeof(((struct session *)NULL)->error)];
    size_t n_files;
    const struct configfile *files = sources_files(&n_files);

    /* If no client can be made at all, the files are not the reason. */
    if (try_value(NULL, error, sizeof(error)) != 0) return 0;
    for (size_t f = 0; f < n_files; f++)
        for (size_t i = 0; i < files[f].n_items; i++) {
            const struct config_item *item = &files[f].items[i];

            if (!IS_ONE_OF(item->key, keys)) continue;
            if (session_exit(try_value(item, error, sizeof(error))) != EXIT_USAGE) continue;
            say("%s:%u: %s: %s", files[f].path, item->line, item->key, error);
            return EXIT_USAGE;
        }
    return check_force(settings);
}

/* ---- settings that are not used now ---- */

static bool is_in_force(const struct config_item *item)
{
    size_t n_sources;
    const struct source *all = sources_all(&n_sources);

    for (size_t i = 0; i < n_sources; i++)
        if (all[i].value == item->value) return true;
    return false;
}

/* warn_of_files - warn of named files that we may not read. Settings that are not used now may be for another user, so
 * this is no error. */
static void warn_of_files(void)
{
    static const char *const keys[] = {"password-file", "tls-ca", "tls-cert", "tls-key"};
    size_t n_files;
    const struct configfile *files = sources_files(&n_files);

    for (size_t f = 0; f < n_files; f++)
        for (size_t i = 0; i < files[f].n_items; i++) {
            const struct config_item *item = &files[f].items[i];

            if (!IS_ONE_OF(item->key, keys) || is_in_force(item)) continue;
            if (faccessat(AT_FDCWD, item->value, R_OK, AT_EACCESS) == 0) continue;
            say_at(LOG_WARNING, "%s:%u: %s, which is not used now: \"%s\": %s", files[f].path, item->line, item->key,
                   item->value, strerror(errno));
        }
}

/* find_in_files - return the item of a key for that set, and its file. */
static const struct config_item *find_in_files(const char *set, const char *key, const char **ret_path)
{
    const char *const places[] = {set, ""};
    size_t n_files;
    const struct configfile *files = sources_files(&n_files);
    const struct config_item *item = NULL;

    for (size_t p = 0; p < sizeof(places) / sizeof(places[0]); p++)
        for (size_t f = 0; f < n_files; f++) {
            item = configfile_find(&files[f], places[p], key);
            *ret_path = files[f].path;
            if (item != NULL) return item;
        }
    return NULL;
}

/* warn_of_leases - warn of leases that are longer than the max lease of their set. */
static void warn_of_leases(const struct settings *settings)
{
    const char *set, *path = NULL, *other = NULL;

    for (size_t i = 0; (set = sources_set(i)) != NULL; i++) {
        const struct config_item *lease = find_in_files(set, "lease", &path);
        const struct config_item *max = find_in_files(set, "max-lease", &other);
        uint32_t lease_ms = 0, max_ms = QUORLOCK_LEASE_MS_DEFAULT;

        if (settings->set != NULL && strcmp(settings->set, set) == 0) continue;
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
    int status = sources_check();

    if (status == 0) status = check_values(settings);
    if (status != 0) return status;
    warn_of_files();
    warn_of_leases(settings);
    if (settings->json) {
        config_add_json(&text);
    } else {
        add_text(&text);
    }
    return put(&text);
}
