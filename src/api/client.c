/* SPDX-License-Identifier: BSD-3-Clause */
/* client.c - make a client from its layers, connect them, and close it */
#include "api/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/inspect.h"
#include "api/metrics.h"
#include "api/statistics.h"
#include "base/system_os.h"
#include "election/candidate.h"
#include "election/elections.h"
#include "election/observer.h"
#include "lock/lock.h"
#include "settings/settings.h"

struct quorlock_client {
    struct runtime runtime;
    struct locks locks; /* registered first: losses are reported before anything else */
    struct admin admin;
    struct elections elections;
    struct statistics statistics;
    quorlock_settings *settings; /* if the caller gave no options; else NULL */
    void (*closed)(void *arg);
    void *closed_arg;
};

static int copy_text(struct runtime *runtime, char **ret, const char *text)
{
    if (text == NULL) text = "";
    *ret = alloc_text(&runtime->alloc, text, strlen(text));
    return *ret == NULL ? QUORLOCK_ERR_NOMEM : 0;
}

/* ---- the end ---- */

/* dismantle - free everything, also of a client that was built only in part. */
static void dismantle(struct quorlock_client *client)
{
    struct runtime *runtime = &client->runtime;
    const struct alloc alloc = runtime->alloc;

    /* Nodes first, so that requests in flight report nothing to layers that are gone. */
    nodes_stop(runtime);
    elections_stop(&client->elections);
    locks_stop(&client->locks);
    admin_stop(&client->admin);
    nodes_close_tls(runtime);
    runtime_stop(runtime);
    alloc_free(&alloc, runtime->nodes);
    alloc_free(&alloc, runtime->key_prefix);
    alloc_free(&alloc, runtime->owner_label);
    quorlock_settings_free(client->settings);
    alloc_free(&alloc, client);
}

static void client_on_ended(void *arg)
{
    struct quorlock_client *client = arg;
    void (*closed)(void *) = client->closed;
    void *closed_arg = client->closed_arg;

    dismantle(client);
    if (closed != NULL) closed(closed_arg);
}

/* ---- the beginning ---- */

/* copy_label - copy the label, and end it with a colon, by which messages separate it from the token. */
static int copy_label(struct runtime *runtime, const char *label)
{
    char text[OPTIONS_LABEL_SIZE] = "";

    if (label != NULL && *label != '\0')
        snprintf(text, sizeof(text), "%s%s", label, label[strlen(label) - 1] != ':' ? ":" : "");
    return copy_text(runtime, &runtime->owner_label, text);
}

/* copy_options - copy the options that are used after the call, and clear the others. */
static int copy_options(struct runtime *runtime, struct quorlock_error *error)
{
    struct quorlock_client_options *options = &runtime->options;
    int status = nodes_parse(runtime, options->nodes, error);

    if (status == 0) status = nodes_open_tls(runtime, error);
    if (status == 0) status = copy_text(runtime, &runtime->key_prefix, options->key_prefix);
    if (status == 0) status = copy_label(runtime, options->owner_label);
    if (status != 0) return status;
    options->key_prefix = runtime->key_prefix;
    runtime->prefix_length = strlen(runtime->key_prefix);
    options->owner_label = runtime->owner_label;
    nodes_name_set(runtime);
    /* NULL stays NULL, and means that the caller gave no name. */
    if (options->set_name != NULL) options->set_name = runtime->set;
    options->nodes = NULL;
    options->user = options->password = NULL;
    options->tls_ca = options->tls_cert = options->tls_key = options->tls_name = NULL;
    return 0;
}

static int client_build(struct quorlock_client *client, struct quorlock_error *error)
{
    struct runtime *runtime = &client->runtime;
    int status;

    runtime->nodes = alloc_zero(&runtime->alloc, runtime->n_nodes * sizeof(struct runtime_node));
    if (runtime->nodes == NULL) return QUORLOCK_ERR_NOMEM;
    status = copy_options(runtime, error);
    if (status != 0) return status;
    if (runtime->options.dialect == QUORLOCK_DIALECT_REDISSON && owner_uuid(runtime->uuid, &runtime->system) != 0) {
        return caller_fail(error, QUORLOCK_ERR_STATE, "getrandom failed: without random bytes there is no owner token");
    }
    if (runtime_start(runtime) != 0) {
        return caller_fail(error, QUORLOCK_ERR_NOMEM, "cannot make a timer: out of memory or of file descriptors");
    }
    if (nodes_start(runtime) != 0 || locks_start(&client->locks, runtime) != 0) return QUORLOCK_ERR_NOMEM;
    admin_start(&client->admin, runtime);
    elections_start(&client->elections, runtime, &client->locks, &client->admin);
    return 0;
}

static int client_make(quorlock_client **ret, const struct system *system, const struct quorlock_client_options *given,
                       const struct client_extras *extras, struct quorlock_error *error)
{
    struct quorlock_client_options options;
    struct quorlock_client *client;
    struct alloc alloc;
    int status = options_client(&options, given, error);

    if (status == 0) status = settings_check_login(&options, error);
    if (status != 0) return status;
    alloc_init(&alloc, extras->memory);
    client = alloc_zero(&alloc, sizeof(*client));
    if (client == NULL) return QUORLOCK_ERR_NOMEM;
    client->runtime.alloc = alloc;
    client->runtime.system = *system;
    client->runtime.system.alloc = &client->runtime.alloc;
    client->runtime.clock.shown = extras->clock;
    client->runtime.options = options;
    client->runtime.buggify = extras->buggify;
    client->runtime.max_lease_given = options_max_lease_given(given);
    client->runtime.n_nodes = (uint32_t)options.n_nodes;
    status = client_build(client, error);
    if (status == 0) {
        *ret = client;
    } else {
        dismantle(client);
    }
    return status;
}

int client_new_on(quorlock_client **ret, const struct system *system, const struct quorlock_client_options *given,
                  const struct client_extras *extras, struct quorlock_error *ret_error)
{
    struct quorlock_error error = {.text = ""};

    return caller_report(ret_error, client_make(ret, system, given, extras, &error), error.text);
}

/* ---- the public API ---- */

/* new_of_settings - make a client with the options that environment and files give. */
static int new_of_settings(quorlock_client **ret, const struct system *system, const struct client_extras *extras,
                           struct quorlock_error *error)
{
    struct quorlock_client_options options = {.size = sizeof(options)};
    quorlock_settings *settings = NULL;
    int status = quorlock_settings_load(&settings, NULL, NULL, error);

    if (status == 0) status = quorlock_settings_options(settings, &options, error);
    if (status == 0) status = client_make(ret, system, &options, extras, error);
    if (status == 0) {
        (*ret)->settings = settings;
    } else {
        quorlock_settings_free(settings);
    }
    return status;
}

/* new_in_environment - make a client; QUORLOCK_BUGGIFY in the environment may give a seed. */
static int new_in_environment(quorlock_client **ret, const struct system *system,
                              const struct quorlock_client_options *given, struct expiry_clock *clock,
                              struct quorlock_error *ret_error)
{
    struct quorlock_error error = {.text = ""};
    struct client_extras extras = {.clock = clock};
    int status = options_buggify(&extras.buggify, system_environment("QUORLOCK_BUGGIFY"), &error);

    if (status == 0 && given == NULL) {
        status = new_of_settings(ret, system, &extras, &error);
    } else if (status == 0) {
        status = client_make(ret, system, given, &extras, &error);
    }
    return caller_report(ret_error, status, error.text);
}

int client_new_shown(quorlock_client **ret, struct event_base *base, const struct quorlock_client_options *given,
                     struct expiry_clock *clock, struct quorlock_error *error)
{
    const struct system system = system_libevent(base, NULL);

    if (ret == NULL || base == NULL) {
        return caller_report(error, QUORLOCK_ERR_INVAL,
                             ret == NULL ? "ret is NULL: there is no place for the client"
                                         : "base is NULL: an event_base is required");
    }
    return new_in_environment(ret, &system, given, clock, error);
}

int quorlock_client_new(quorlock_client **ret, struct event_base *base, const struct quorlock_client_options *given,
                        struct quorlock_error *error)
{
    return client_new_shown(ret, base, given, NULL, error);
}

/* check_loop - copy the loop, and check that all functions are there, and that its size has none that we do not know.
 */
static int check_loop(struct quorlock_loop *ret, const struct quorlock_loop *given, struct quorlock_error *error)
{
    int status;

    if (given == NULL) return caller_fail(error, QUORLOCK_ERR_INVAL, "loop is NULL: an event loop is required");
    status = caller_copy(ret, sizeof(*ret), given, given->size, "quorlock_loop", error);
    if (status != 0) return status;
    if (ret->watch_new != NULL && ret->watch_set != NULL && ret->watch_free != NULL && ret->timer_new != NULL &&
        ret->timer_set != NULL && ret->timer_stop != NULL && ret->timer_free != NULL && ret->task_new != NULL &&
        ret->task_run != NULL && ret->task_stop != NULL && ret->task_free != NULL) {
        return 0;
    }
    return caller_fail(error, QUORLOCK_ERR_INVAL,
                       "a function of loop is NULL: all functions of struct quorlock_loop are required");
}

int quorlock_client_new_on_loop(quorlock_client **ret, const struct quorlock_loop *given,
                                const struct quorlock_client_options *options, struct quorlock_error *ret_error)
{
    struct quorlock_error error = {.text = "ret is NULL: there is no place for the client"};
    struct quorlock_loop loop;
    struct system system;
    int status = ret == NULL ? QUORLOCK_ERR_INVAL : check_loop(&loop, given, &error);

    if (status != 0) return caller_report(ret_error, status, error.text);
    system = system_os(&loop, NULL);
    return new_in_environment(ret, &system, options, NULL, ret_error);
}

int quorlock_client_close(quorlock_client *client, void (*cb)(void *arg), void *arg)
{
    if (client == NULL) return QUORLOCK_ERR_INVAL;
    if (client->runtime.closing) return runtime_fail_plainly(&client->runtime, QUORLOCK_ERR_CLOSED);
    client->closed = cb;
    client->closed_arg = arg;
    runtime_close(&client->runtime, client_on_ended, client);
    elections_close(&client->elections);
    locks_close(&client->locks);
    admin_close(&client->admin);
    nodes_may_end(&client->runtime);
    return 0;
}

int quorlock_client_set_credentials(quorlock_client *client, const char *node, const char *user, const char *password)
{
    if (client->runtime.closing) return runtime_fail_plainly(&client->runtime, QUORLOCK_ERR_CLOSED);
    return nodes_log_in(&client->runtime, node, user, password);
}

const char *quorlock_client_error(const quorlock_client *client)
{
    return client->runtime.error.text;
}

uint32_t quorlock_client_lost_margin_max_ms(const quorlock_client *client, uint32_t lease_ms, uint32_t renew_ms)
{
    return options_lost_margin_max_ms(&client->runtime.options, lease_ms, renew_ms);
}

int quorlock_lock_new(quorlock_lock **ret, quorlock_client *client, const char *const *keys, size_t n_keys,
                      const struct quorlock_lock_options *options)
{
    return lock_new(ret, &client->locks, keys, n_keys, options);
}

void client_log_from(quorlock_client *client, int level)
{
    client->runtime.log_from = level;
}

void client_show_lock(quorlock_lock *lock, struct expiry *shown)
{
    handle_show_in(lock, shown);
}

void client_show_candidate(quorlock_candidate *candidate, struct expiry *shown)
{
    candidate_show_in(candidate, shown);
}

int quorlock_client_inspect(quorlock_client *client, const char *key, quorlock_inspect_cb cb, void *arg)
{
    return inspect_key(&client->admin, key, cb, arg);
}

int quorlock_client_inspect_node(quorlock_client *client, size_t node, const char *key, quorlock_inspect_cb cb,
                                 void *arg)
{
    return inspect_one(&client->admin, node, key, cb, arg);
}

int quorlock_client_break(quorlock_client *client, const char *key, const char *owner, quorlock_break_cb cb, void *arg)
{
    return inspect_break(&client->admin, key, owner, cb, arg);
}

int quorlock_client_bootstrap(quorlock_client *client, const struct quorlock_bootstrap_options *options,
                              quorlock_bootstrap_cb cb, void *arg)
{
    return bootstrap_begin(&client->admin, options, cb, arg);
}

int quorlock_client_list(quorlock_client *client, const char *pattern, quorlock_list_cb cb, void *arg)
{
    return list_begin(&client->admin, pattern, cb, arg);
}

int quorlock_client_doctor(quorlock_client *client, quorlock_doctor_cb cb, void *arg)
{
    return doctor_begin(&client->admin, cb, arg);
}

int quorlock_candidate_new(quorlock_candidate **ret, quorlock_client *client, const char *name,
                           const struct quorlock_candidate_options *options)
{
    return candidate_new(ret, &client->elections, name, options);
}

int quorlock_observer_new(quorlock_observer **ret, quorlock_client *client, const char *name,
                          const struct quorlock_observer_options *options)
{
    return observer_new(ret, &client->elections, name, options);
}

int quorlock_client_statistics(quorlock_client *client, struct quorlock_statistics *ret)
{
    return statistics_give(&client->statistics, &client->locks, ret);
}

int quorlock_client_metrics(quorlock_client *client, const struct quorlock_metrics_options *given, char *buffer,
                            size_t size, size_t *ret_length)
{
    const struct quorlock_statistics statistics = statistics_read(&client->statistics, &client->locks);
    struct quorlock_metrics_options options;
    int status = metrics_options(&options, given, &client->runtime.error);

    if (status != 0) return status;
    if (ret_length == NULL || (buffer == NULL && size > 0)) {
        return runtime_fail(&client->runtime, QUORLOCK_ERR_INVAL, "%s is NULL: there is no place for the %s",
                            ret_length == NULL ? "ret_length" : "buffer", ret_length == NULL ? "length" : "text");
    }
    *ret_length = metrics_write(&statistics, &options, buffer, size);
    return 0;
}

bool client_asks_program(const struct quorlock_client_options *options)
{
    return settings_asks_program(options);
}
