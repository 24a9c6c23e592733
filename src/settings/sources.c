/* SPDX-License-Identifier: BSD-3-Clause */
#include "settings/sources.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system_os.h"
#include "settings/hide.h"

#define SYSTEM_FILE "/etc/quorlock.conf"

/* sources_fail - add the error, and return INVAL. */
__attribute__((format(printf, 2, 3))) static int sources_fail(struct sources *sources, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    text_format_list(&sources->error, format, list);
    va_end(list);
    return QUORLOCK_ERR_INVAL;
}

static int sources_no_memory(struct sources *sources)
{
    sources_fail(sources, "out of memory");
    return QUORLOCK_ERR_NOMEM;
}

/* variable - return the value of a variable, or NULL if it is not set or empty. */
static const char *variable(const char *name)
{
    const char *value = name != NULL ? system_environment(name) : NULL;

    return value != NULL && *value != '\0' ? value : NULL;
}

/* ---- files ---- */

static int add_file(struct sources *sources, const char *path, bool needed)
{
    struct configfile *file = &sources->files[sources->n_files];
    int status = configfile_read(file, path, needed);

    snprintf(sources->looked_for[sources->n_files], PATH_MAX, "%s", path);
    sources->n_files++;
    if (status != 0) sources_fail(sources, "%s", file->error != NULL ? file->error : "out of memory");
    return status;
}

/* sources_read_files - read the named file, or those of the user and of the system. */
static int sources_read_files(struct sources *sources, const struct sources_caller *caller)
{
    const char *named = caller->file != NULL ? caller->file : variable("QUORLOCK_CONFIG");
    const char *base = variable("XDG_CONFIG_HOME"), *home = variable("HOME");
    bool is_based = base != NULL && *base == '/';
    char path[PATH_MAX];
    int status = 0;

    if (named != NULL && strstr(named, "://") != NULL)
        return sources_fail(sources, "\"%s\" is an address, not a configuration file: write %snodes URI,URI,...",
                            hide_shown(named), caller->front);
    if (named != NULL) return add_file(sources, named, true);
    if (is_based || home != NULL) {
        snprintf(path, sizeof(path), "%s%s/quorlock/config", is_based ? base : home, is_based ? "" : "/.config");
        status = add_file(sources, path, false);
    }
    return status != 0 ? status : add_file(sources, SYSTEM_FILE, false);
}

/* is_quoted - return whether the value stands in quotes. Files of other programs have quotes there; here they would be
 * a part of the value. */
static bool is_quoted(const char *value)
{
    size_t length = strlen(value);

    return length > 1 && (value[0] == '"' || value[0] == '\'') && value[length - 1] == value[0];
}

static int sources_check_keys(struct sources *sources, const struct configfile *file)
{
    for (size_t i = 0; i < file->n_items; i++) {
        const struct config_item *item = &file->items[i];
        const char *wrong = NULL;

        if (item->key == NULL) continue;
        if (values_place(item->key) == N_VALUE_KEYS) {
            wrong = "is no key of a file; quorlock config lists the keys";
        } else if (values_place(item->key) == VALUE_SET && *item->set != '\0') {
            wrong = "must be before all sets";
        } else if (*item->value == '\0') {
            wrong = "has no value: write one, or remove the line";
        } else if (is_quoted(item->value)) {
            wrong = values_place(item->key) == values_place("password")
                        ? "has quotes around it: leave them out. A password that has them goes into a password-file"
                        : "has quotes around its value: leave them out";
        }
        if (wrong != NULL) return sources_fail(sources, "%s:%u: %.40s %s", file->path, item->line, item->key, wrong);
    }
    return 0;
}

static bool is_secret(const struct config_item *item)
{
    return item->key != NULL && (strcmp(item->key, "nodes") == 0 || strcmp(item->key, "password") == 0);
}

void sources_warn(const struct sources *sources, size_t number, struct text *text)
{
    const struct configfile *file = &sources->files[number];

    for (size_t i = 0; file->is_public && i < file->n_items; i++) {
        const struct config_item *item = &file->items[i];

        if (!is_secret(item) || (strcmp(item->key, "nodes") == 0 && strchr(item->value, '@') == NULL)) continue;
        text_format(text, "%s:%u: a password in a file that every user may read: chmod o= %s", file->path, item->line,
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

const char *sources_set(const struct sources *sources, size_t number)
{
    for (size_t f = 0; f < sources->n_files; f++) {
        struct configfile before = sources->files[f];

        for (before.n_items = 0; before.n_items < sources->files[f].n_items; before.n_items++) {
            const struct config_item *item = &before.items[before.n_items];
            bool known =
                item->key != NULL || has_set(&before, item->set) || (f > 0 && has_set(sources->files, item->set));

            if (!known && number-- == 0) return item->set;
        }
    }
    return NULL;
}

void sources_sets(const struct sources *sources, struct text *text)
{
    const char *name;

    for (size_t i = 0; (name = sources_set(sources, i)) != NULL; i++) {
        text_format(text, "%s", i > 0 ? ", " : "");
        text_add_known(text, name);
    }
}

/* ---- values ---- */

/* set_from - set a value; an error begins with the place that the value is from. */
static int set_from(struct sources *sources, struct values *values, size_t place, const struct source *source,
                    char *value)
{
    bool commented = source->path != NULL && (strstr(value, " #") != NULL || strstr(value, "\t#") != NULL);
    char name[PATH_MAX + 64];
    int status;

    if (source->path != NULL)
        snprintf(name, sizeof(name), "%s:%u: %s", source->path, source->line, value_keys[place].key);
    status = values_set(values, value_keys[place].key, source->path != NULL ? name : value_keys[place].variable, value,
                        &sources->error);
    if (status != 0 && commented) text_format(&sources->error, "; a comment is a line of its own, which begins with #");
    return status;
}

/* sources_look - find the value of the key in that layer: 0, or QUORLOCK_ERR_NOMEM. *ret is NULL if there is none. */
static int sources_look(struct sources *sources, size_t place, struct source *source, enum source_layer layer,
                        const char *set, char **ret)
{
    struct config_item *item = NULL;
    size_t i = 0;

    *ret = NULL;
    if (layer == SOURCE_ENVIRONMENT) {
        const char *value = variable(value_keys[place].variable);

        /* Setting it may change it, and the program may change its environment. */
        if (value != NULL) *ret = source->copy = strdup(value);
        return value != NULL && *ret == NULL ? sources_no_memory(sources) : 0;
    }
    if (layer == SOURCE_SET && set == NULL) return 0;
    for (; item == NULL && i < sources->n_files; i++)
        item = configfile_find(&sources->files[i], layer == SOURCE_SET ? set : "", value_keys[place].key);
    if (item == NULL) return 0;
    source->path = sources->files[i - 1].path;
    source->line = item->line;
    *ret = item->value;
    return 0;
}

static int sources_settle_one(struct sources *sources, struct values *values, size_t place, enum source_layer layer)
{
    struct source *source = &sources->found[place];
    const char *partner = value_keys[place].partner;
    enum source_layer other = partner != NULL ? sources->found[values_place(partner)].layer : SOURCE_NONE;
    char *value;
    int status;

    if (source->layer != SOURCE_NONE || (other != SOURCE_NONE && other < layer)) return 0;
    status = sources_look(sources, place, source, layer, values->set, &value);
    if (value == NULL) return status;
    source->layer = layer;
    source->value = value;
    return set_from(sources, values, place, source, value);
}

/* has_nodes - return whether the chosen set has nodes. */
static bool has_nodes(const struct sources *sources, const char *set)
{
    for (size_t i = 0; i < sources->n_files; i++)
        if (configfile_find(&sources->files[i], set, "nodes") != NULL) return true;
    return false;
}

/* check_set - check that the chosen set exists, and that no variable overrides its nodes. */
static int check_set(struct sources *sources, const struct values *values, const struct sources_caller *caller)
{
    const struct source *set = &sources->found[VALUE_SET];
    struct text *error = &sources->error;
    bool known = false;

    if (set->layer == SOURCE_NONE) return 0;
    for (size_t i = 0; i < sources->n_files; i++) known |= has_set(&sources->files[i], values->set);
    if (known && (set->layer == SOURCE_FILE || caller->asked(caller->arg, "nodes") != NULL ||
                  variable("QUORLOCK_NODES") == NULL || !has_nodes(sources, values->set)))
        return 0;
    if (set->layer == SOURCE_OPTION) {
        text_format(error, "%sset: ", caller->front);
    } else if (set->layer == SOURCE_ENVIRONMENT) {
        text_format(error, "%s: ", value_keys[VALUE_SET].variable);
    } else {
        text_format(error, "%s:%u: set: ", set->path, set->line);
    }
    if (known)
        return sources_fail(sources,
                            "both the set \"%s\" and QUORLOCK_NODES give nodes: unset QUORLOCK_NODES, or give %snodes",
                            hide_shown(values->set), caller->front);
    if (sources_set(sources, 0) != NULL) {
        text_format(error, "\"%s\" is no set of the configuration files, which have ", hide_shown(values->set));
        sources_sets(sources, error);
        return QUORLOCK_ERR_INVAL;
    }
    return sources_fail(sources, "\"%s\" is no set: there is no [set NAME] in %s%s%s", hide_shown(values->set),
                        sources->looked_for[0], sources->n_files > 1 ? ", nor in " : "",
                        sources->n_files > 1 ? sources->looked_for[1] : "");
}

/* leave_out - forget where a text is from, and clear its setting. */
static void leave_out(struct sources *sources, struct values *values, size_t place)
{
    struct source *source = &sources->found[place];
    void *setting = (char *)values + value_keys[place].setting;

    *(const char **)setting = NULL;
    *source = (struct source){.copy = source->copy};
}

/* end_tls - forget TLS settings of environment and files if no node uses TLS: they may be for other nodes. */
static void end_tls(struct sources *sources, struct values *values)
{
    static const char *const texts[] = {"tls-ca", "tls-cert", "tls-key", "tls-name"};

    if (strcasestr(values->nodes, "rediss://") != NULL || strcasestr(values->nodes, "valkeys://") != NULL) return;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        size_t place = values_place(texts[i]);

        if (sources->found[place].layer > SOURCE_OPTION) leave_out(sources, values, place);
    }
}

/* sources_end - use the defaults for all that is not set. */
static int sources_end(struct sources *sources, struct values *values)
{
    size_t file = values_place("password-file");
    size_t nodes = values_place("nodes");

    /* Both were in the same layer: password wins. */
    if (sources->found[values_place("password")].layer != SOURCE_NONE && sources->found[file].layer != SOURCE_NONE)
        leave_out(sources, values, file);
    if (values->nodes == NULL) values->nodes = sources->found[nodes].copy = strdup(value_keys[nodes].usual);
    if (values->nodes == NULL) return sources_no_memory(sources);
    end_tls(sources, values);
    for (size_t i = 0; i < N_VALUE_KEYS; i++)
        if (sources->found[i].layer == SOURCE_NONE) sources->found[i].value = value_keys[i].usual;
    return 0;
}

int sources_settle(struct sources *sources, struct values *values, const struct sources_caller *caller)
{
    int status = sources_read_files(sources, caller);

    for (size_t i = 0; i < N_VALUE_KEYS; i++) {
        struct source *source = &sources->found[i];

        source->value = caller->asked(caller->arg, value_keys[i].key);
        if (source->value != NULL) source->layer = SOURCE_OPTION;
    }
    for (size_t i = 0; status == 0 && i < sources->n_files; i++)
        status = sources_check_keys(sources, &sources->files[i]);
    if (status == 0) status = sources_settle_one(sources, values, VALUE_SET, SOURCE_ENVIRONMENT);
    if (status == 0) status = sources_settle_one(sources, values, VALUE_SET, SOURCE_FILE);
    if (status == 0) status = check_set(sources, values, caller);
    for (enum source_layer layer = SOURCE_ENVIRONMENT; layer <= SOURCE_FILE; layer++)
        for (size_t i = VALUE_SET + 1; status == 0 && i < N_VALUE_KEYS; i++)
            if (caller->takes(caller->arg, value_keys[i].key)) status = sources_settle_one(sources, values, i, layer);
    return status != 0 ? status : sources_end(sources, values);
}

int sources_check(struct sources *sources)
{
    struct values scratch = {0};
    int status = 0;

    for (size_t f = 0; f < sources->n_files; f++) {
        for (size_t i = 0; status == 0 && i < sources->files[f].n_items; i++) {
            const struct config_item *item = &sources->files[f].items[i];
            const struct source source = {.path = sources->files[f].path, .line = item->line};

            if (item->key != NULL) status = set_from(sources, &scratch, values_place(item->key), &source, item->value);
        }
    }
    return status;
}

void sources_forget(struct sources *sources, const struct values *values)
{
    char *password = sources->found[values_place("password")].copy;

    if (values->nodes != NULL) hide_addresses(values->nodes);
    if (password != NULL) explicit_bzero(password, strlen(password));
    for (size_t f = 0; f < sources->n_files; f++) {
        for (size_t i = 0; i < sources->files[f].n_items; i++) {
            const struct config_item *item = &sources->files[f].items[i];

            if (is_secret(item) && item->value != values->nodes) explicit_bzero(item->value, strlen(item->value));
        }
    }
}

void sources_clear(struct sources *sources)
{
    for (size_t i = 0; i < sources->n_files; i++) configfile_clear(&sources->files[i]);
    for (size_t i = 0; i < N_VALUE_KEYS; i++) {
        char *copy = sources->found[i].copy;

        if (copy != NULL) explicit_bzero(copy, strlen(copy)); /* of nodes or a password */
        free(copy);
    }
    text_clear(&sources->error);
    *sources = (struct sources){0};
}

void sources_blame(const struct sources *sources, struct text *text)
{
    for (size_t i = VALUE_SET + 1; i < N_VALUE_KEYS; i++) {
        const struct source *source = &sources->found[i];

        if (source->path == NULL || source->layer < SOURCE_SET) continue;
        text_format(text, "%s%s (%s:%u)", text->length > 0 ? ", " : "values from files: ", value_keys[i].key,
                    source->path, source->line);
    }
}
