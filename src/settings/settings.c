/* SPDX-License-Identifier: BSD-3-Clause */
#include "settings/settings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "settings/credentials.h"
#include "settings/sources.h"

struct quorlock_settings {
    struct values values;
    struct sources sources;
    struct credentials credentials;
    const char *nodes[QUORLOCK_NODES_MAX];
    char *list; /* the texts of the nodes */
};

/* settings_asked - return the set as the only value that the caller gives. */
static const char *settings_asked(const void *set, const char *key)
{
    return strcmp(key, "set") == 0 ? set : NULL;
}

/* settings_takes - return true: keys of locks and of the command are checked, too. */
static bool settings_takes(const void *set, const char *key)
{
    (void)set;
    return key != NULL;
}

/* settings_again - read the password file again, as the function `credentials` of a client. */
static int settings_again(quorlock_credentials *to, const char *node, void *arg)
{
    quorlock_settings *settings = arg;

    return credentials_again(to, node, &settings->values);
}

static int settings_read(quorlock_settings *settings, const char *file, const char *set)
{
    const struct sources_caller caller = {file, "", settings_asked, settings_takes, set};
    struct quorlock_client_options *client = &settings->values.client;
    char error[2 * PATH_MAX] = "";
    int status;

    settings->values = values_begin();
    settings->values.set = set;
    status = sources_settle(&settings->sources, &settings->values, &caller);
    if (status != 0) return status;
    settings->list = strdup(settings->values.nodes);
    if (settings->list == NULL) return QUORLOCK_ERR_NOMEM;
    status = credentials_read(&settings->credentials, &settings->values, error, sizeof(error));
    text_format(&settings->sources.error, "%s", error);
    values_nodes(client, settings->nodes, settings->list);
    client->user = settings->credentials.user;
    client->password = settings->credentials.password;
    if (!settings->credentials.again) return status;
    client->credentials = settings_again;
    client->credentials_arg = settings;
    return status;
}

/* settings_report - report the error, safe for a terminal. */
static int settings_report(struct quorlock_error *ret, int status, const struct text *text)
{
    struct quorlock_error error;
    struct text safe = {0};

    text_add_safe(&safe, text->bytes, text->length);
    (void)caller_fail(&error, status, "%.*s", (int)safe.length, safe.length > 0 ? safe.bytes : "");
    text_clear(&safe);
    return caller_report(ret, status, error.text);
}

int quorlock_settings_load(quorlock_settings **ret, const char *file, const char *set, struct quorlock_error *error)
{
    quorlock_settings *settings = ret != NULL ? calloc(1, sizeof(*settings)) : NULL;
    int status;

    if (ret == NULL) return caller_report(error, QUORLOCK_ERR_INVAL, "ret is NULL: there is no place for the settings");
    if (settings == NULL) return caller_report(error, QUORLOCK_ERR_NOMEM, "");
    status = settings_read(settings, file, set);
    if (status == 0) {
        *ret = settings;
        return caller_report(error, 0, "");
    }
    (void)settings_report(error, status, &settings->sources.error);
    quorlock_settings_free(settings);
    return status;
}

#define MEMBER(name)                                                                                                   \
    {                                                                                                                  \
#name, offsetof(struct quorlock_client_options, name), sizeof(((struct quorlock_client_options *)NULL)->name)  \
    }

/* Without what may lie between them: nobody sets those bytes. */
static const struct {
    const char *name;
    size_t offset, size;
} members[] = {MEMBER(nodes),
               MEMBER(n_nodes),
               MEMBER(policy),
               MEMBER(guard),
               MEMBER(max_lease_ms),
               MEMBER(dialect),
               MEMBER(user),
               MEMBER(password),
               MEMBER(credentials),
               MEMBER(credentials_arg),
               MEMBER(tls_ca),
               MEMBER(tls_cert),
               MEMBER(tls_key),
               MEMBER(tls_name),
               MEMBER(key_prefix),
               MEMBER(owner_label),
               MEMBER(set_name),
               MEMBER(node_timeout_ms),
               MEMBER(connect_timeout_ms),
               MEMBER(reconnect_min_ms),
               MEMBER(reconnect_max_ms),
               MEMBER(drift_ppm),
               MEMBER(drift_fixed_ms),
               MEMBER(allow_eviction),
               MEMBER(log),
               MEMBER(log_arg)};
_Static_assert(sizeof(struct quorlock_client_options) - offsetof(struct quorlock_client_options, log_arg) <=
                   sizeof(uint64_t),
               "add the new member, too");

static bool is_zero(const void *bytes, size_t size)
{
    static const char zeros[sizeof(uint64_t)];

    return memcmp(bytes, zeros, size) == 0;
}

/* check_member - check that a member of the caller's struct has no value yet, which would get lost; or, of a struct
 * that is too short for it, that the settings have none. */
static int check_member(size_t i, const quorlock_settings *settings, const struct quorlock_client_options *options,
                        struct quorlock_error *error)
{
    bool fits = members[i].offset + members[i].size <= options->size;
    const char *bytes = fits ? (const char *)options : (const char *)&settings->values.client;

    if (is_zero(bytes + members[i].offset, members[i].size)) return 0;
    return caller_fail(error, QUORLOCK_ERR_INVAL,
                       fits ? "options->%s is set already: set it after quorlock_settings_options()"
                            : "a file or variable gives %s, for which this program's struct of options is too old",
                       members[i].name);
}

int quorlock_settings_options(const quorlock_settings *settings, struct quorlock_client_options *options,
                              struct quorlock_error *ret_error)
{
    struct quorlock_error error = {.text = "settings or options is NULL, or options->size is not set"};
    size_t size = options != NULL ? options->size : 0;
    int status = settings == NULL || size < sizeof(size) ? QUORLOCK_ERR_INVAL : 0;

    for (size_t i = 0; status == 0 && i < sizeof(members) / sizeof(members[0]); i++)
        status = check_member(i, settings, options, &error);
    if (status == 0) {
        const struct quorlock_client_options *known = &settings->values.client;

        memcpy(options, known, size < sizeof(*known) ? size : sizeof(*known));
        options->size = size;
    }
    return caller_report(ret_error, status, error.text);
}

void quorlock_settings_free(quorlock_settings *settings)
{
    if (settings == NULL) return;
    if (settings->list != NULL) explicit_bzero(settings->list, strlen(settings->values.nodes));
    sources_forget(&settings->sources, &settings->values);
    credentials_wipe(&settings->credentials);
    sources_clear(&settings->sources);
    free(settings->list);
    free(settings);
}

int settings_check_login(const struct quorlock_client_options *options, struct quorlock_error *error)
{
    const quorlock_settings *settings = options->credentials_arg;

    if (options->credentials != settings_again ||
        (options->user == settings->values.client.user && options->password == settings->values.client.password))
        return 0;
    return caller_fail(
        error, QUORLOCK_ERR_INVAL,
        "user or password is not that of the settings, whose password-file is read before each login: set "
        "credentials to NULL, too");
}

bool settings_asks_program(const struct quorlock_client_options *options)
{
    return options->credentials != NULL && options->credentials != settings_again &&
           options->credentials != quorlock_credentials_read_file;
}
