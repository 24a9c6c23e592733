/* SPDX-License-Identifier: BSD-3-Clause */
#include "session.h"

#include <event2/event.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "say.h"

enum { CLOSE_GRACE_US = 100000, HOST_SHOWN = 40, LABEL_SIZE = 65 };

/* libevent would print on stderr by itself, past say(). What matters of it reaches us as an error. */
static void session_hush(int severity, const char *text)
{
    (void)severity;
    (void)text;
}

/* libevent ends the process where it finds no descriptor for its signals: with 1, which means that somebody
 * else holds the lock, and without a word. */
static void session_die(int status)
{
    (void)status;
    say("cannot make an event loop: out of memory or of descriptors");
    _exit(EXIT_SYSTEM);
}

static void session_log(void *arg, int level, const char *text)
{
    const struct session *session = arg;
    int least = session->verbose > 1   ? QUORLOCK_LOG_DEBUG
                : session->verbose > 0 ? QUORLOCK_LOG_INFO
                : session->verbose < 0 ? QUORLOCK_LOG_ERROR + 1
                                       : QUORLOCK_LOG_WARN;
    if (level >= least || strncmp(text, "waiting for", strlen("waiting for")) == 0) say("%s", text);
}

int session_exit(int status)
{
    switch (status) {
    case QUORLOCK_OK: return EXIT_OK;
    case QUORLOCK_INVAL:
    case QUORLOCK_UNSUPPORTED: return EXIT_USAGE;
    case QUORLOCK_NOMEM: return EXIT_SYSTEM;
    default: return EXIT_NO_QUORUM;
    }
}

/* The default label: host and process, so that who looks at a lock finds its holder. */
static void session_label(char *label)
{
    char host[HOST_SHOWN + 1] = "";
    gethostname(host, sizeof(host) - 1);
    for (char *p = host; *p; p++)
        if (*p <= ' ' || *p > '~') *p = '-';
    snprintf(label, LABEL_SIZE, "%s:%ld:", host[0] ? host : "host", (long)getpid());
}

/* session_nodes - cuts the list at its commas; the result points into *ret_copy. Both are the caller's. */
static const char **session_nodes(const char *list, char **ret_copy, size_t *ret_n)
{
    size_t n = 1;
    for (const char *p = list; *p; p++) n += *p == ',';
    char *copy = strdup(list);
    const char **nodes = calloc(n, sizeof(*nodes));
    if (!copy || !nodes) {
        free(copy);
        free(nodes);
        return NULL;
    }
    char *rest = copy;
    for (size_t i = 0; i < n; i++) nodes[i] = strsep(&rest, ",");
    *ret_copy = copy;
    *ret_n = n;
    return nodes;
}

static int session_open_client(struct session *session, const struct settings *settings, char *error,
                               size_t error_size)
{
    char label[LABEL_SIZE];
    char *copy = NULL;
    size_t n_nodes = 0;
    const char **nodes = session_nodes(settings->nodes, &copy, &n_nodes);
    if (!nodes) return QUORLOCK_NOMEM;
    session_label(label);
    struct quorlock_client_options options = {
        .size = sizeof(options),
        .nodes = nodes,
        .n_nodes = n_nodes,
        .policy = settings->policy,
        .dialect = settings->dialect,
        .guard = settings->guard,
        .node_timeout_ms = settings->node_timeout_ms,
        .max_lease_ms = settings->max_lease_ms,
        .set_name = settings->set_name,
        .allow_eviction = settings->allow_eviction,
        .owner_label = settings->label ? settings->label : label,
        .log = session_log,
        .log_arg = session,
        .error = error,
        .error_size = error_size,
    };
    int status = quorlock_client_new(&session->client, session->base, &options);
    /* The library has its own copies; these may hold passwords. */
    explicit_bzero(copy, strlen(settings->nodes));
    free(copy);
    free(nodes);
    return status;
}

int session_try(struct session *session, const struct settings *settings, char *error, size_t error_size)
{
    error[0] = '\0';
    *session = (struct session){.verbose = settings->verbose};
    event_set_log_callback(session_hush);
    event_set_fatal_callback(session_die);
    struct event_config *config = event_config_new();
    if (config && event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER) == 0)
        session->base = event_base_new_with_config(config);
    if (config) event_config_free(config);
    if (!session->base) {
        snprintf(error, error_size, "cannot make an event loop: out of memory or of descriptors");
        return QUORLOCK_NOMEM;
    }
    int status = session_open_client(session, settings, error, error_size);
    if (!status) return 0;
    if (!error[0]) snprintf(error, error_size, "%s", quorlock_status_text(status));
    event_base_free(session->base);
    session->base = NULL;
    return status;
}

int session_open(struct session *session, const struct settings *settings)
{
    char error[SESSION_ERROR_SIZE];
    int status = session_try(session, settings, error, sizeof(error));
    if (status) say("%s", error);
    return session_exit(status);
}

bool session_loop(struct session *session)
{
    if (event_base_dispatch(session->base) == 0) return true;
    say("the event loop failed");
    return false;
}

void session_leave(struct session *session)
{
    event_base_loopbreak(session->base);
}

static void session_closed(void *arg)
{
    struct session *session = arg;
    session->closed = true;
    session_leave(session);
}

void session_close(struct session *session)
{
    if (!session->base) return;
    struct timeval grace = {.tv_usec = CLOSE_GRACE_US};
    if (quorlock_client_close(session->client, session_closed, session) == 0) {
        event_base_loopexit(session->base, &grace);
        event_base_dispatch(session->base);
    }
    /* Not closed in time: the process ends now and takes client and loop with it. */
    if (session->closed) {
        event_base_free(session->base);
        *session = (struct session){.closed = true};
    }
}
