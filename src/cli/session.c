/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli.h"

#include <event2/event.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <syslog.h>
#include <unistd.h>

#include "notify.h"
#include "owner.h"
#include "report.h"
#include "say.h"
#include "settings/credentials.h"

static const char no_loop[] = "cannot make an event loop: out of memory or of descriptors";

enum { CLOSE_GRACE_US = 100000, HOST_SHOWN = 40, LABEL_SIZE = 65 };

/* hush - drop the text of libevent, which would print it on stderr. Important faults are also returned as errors. */
static void hush(int severity, const char *text)
{
    (void)severity;
    (void)text;
}

/* die - end the process when libevent would: it finds no descriptor for its signals. libevent would print no message,
 * and exit with 1, which means that somebody else holds the lock. */
static void die(int status)
{
    (void)status;
    say("%s", no_loop);
    _exit(EXIT_SYSTEM);
}

/* say_line - print a line of the log. The reason why a node is down is shortened if it was printed before. */
static void say_line(const struct settings *settings, int level, const char *text)
{
    static const int priorities[] = {LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERR};
    static const char down[] = ": down: ";
    const char *reason = strstr(text, down);
    int front = reason != NULL ? (int)(reason - text) + (int)strlen(down) : 0;
    bool is_down = reason != NULL && memchr(text, '"', (size_t)front) == NULL;
    struct text line = {0};

    if (is_down) {
        text_format(&line, "%.*s", front, text);
        report_reason(&line, text + front);
    } else {
        text_format(&line, "%s%s", text, owner_parent_in(settings, text));
    }
    say_text(priorities[level], &line);
}

static void log_line(int level, const char *text, void *arg)
{
    struct session *session = arg;
    int verbose = session->settings->verbose;
    bool waits = strncmp(text, "waiting for", strlen("waiting for")) == 0;
    int least = verbose > 1   ? QUORLOCK_LOG_DEBUG
                : verbose > 0 ? QUORLOCK_LOG_INFO
                : verbose < 0 ? QUORLOCK_LOG_ERROR + 1
                              : QUORLOCK_LOG_WARN;

    if (waits) notify_status(NULL, "%s", text);
    if (waits && session->settings->quiet) return;
    if (waits && verbose <= 0 && session->waits_left-- == 0) {
        session->waits_left = 0;
        return;
    }
    if (level >= least || waits) say_line(session->settings, level, text);
}

int session_exit(int status)
{
    switch (status) {
    case QUORLOCK_OK: return EXIT_OK;
    case QUORLOCK_ERR_INVAL:
    case QUORLOCK_ERR_UNSUPPORTED: return EXIT_USAGE;
    case QUORLOCK_ERR_NOMEM: return EXIT_SYSTEM;
    case QUORLOCK_ERR_AUTH:
    case QUORLOCK_ERR_FOREIGN:
    case QUORLOCK_ERR_PROTO: return EXIT_CONFIG;
    case QUORLOCK_ERR_LOST: return EXIT_LOST;
    default: return EXIT_NO_QUORUM;
    }
}

int session_refused(int status)
{
    return status == QUORLOCK_ERR_INVAL ? EXIT_CONFIG : session_exit(status);
}

/* session_make_label - write the default label, which names host and process, so that people can find the holder. */
static void session_make_label(char label[LABEL_SIZE])
{
    char host[HOST_SHOWN + 1] = "";

    gethostname(host, sizeof(host) - 1);
    for (char *p = host; *p != '\0'; p++)
        if (*p <= ' ' || *p > '~') *p = '-';
    snprintf(label, LABEL_SIZE, "%s:%ld:", host[0] != '\0' ? host : "host", (long)getpid());
}

static int make_client(struct session *session)
{
    const struct values *values = &session->settings->values;
    struct quorlock_client_options options = values->client;
    const char *nodes[QUORLOCK_NODES_MAX];
    char label[LABEL_SIZE];
    char *list = strdup(values->nodes);
    struct credentials credentials;
    int status;

    if (list == NULL) return QUORLOCK_ERR_NOMEM;
    options.size = sizeof(options);
    options.log = log_line;
    options.log_arg = session;
    session_make_label(label);
    if (options.owner_label == NULL) options.owner_label = label;
    status = credentials_read(&credentials, values, session->error.text, sizeof(session->error.text));
    /* A unit starts its service again: somebody may just be writing the file, or giving it to the service's user. */
    if (status == QUORLOCK_ERR_INVAL && session->settings->command != NULL) status = QUORLOCK_ERR_AUTH;
    credentials_give(&options, &credentials, values);
    values_nodes(&options, nodes, list);
    if (status == 0) status = quorlock_client_new(&session->client, session->base, &options, &session->error);
    /* These may have passwords; the library has its own copies. */
    credentials_wipe(&credentials);
    explicit_bzero(list, strlen(values->nodes));
    free(list);
    return status;
}

uint32_t session_max_lease_ms(const struct settings *settings)
{
    uint32_t max_lease_ms = settings->values.client.max_lease_ms;

    return max_lease_ms > 0 ? max_lease_ms : QUORLOCK_LEASE_MS_DEFAULT;
}

uint32_t session_lease_ms(const struct settings *settings)
{
    uint32_t max_lease_ms = session_max_lease_ms(settings);

    if (settings->values.lease_ms > 0) return settings->values.lease_ms;
    if (settings->keep_ms > QUORLOCK_LEASE_MS_DEFAULT) return settings->keep_ms;
    return max_lease_ms < QUORLOCK_LEASE_MS_DEFAULT ? max_lease_ms : QUORLOCK_LEASE_MS_DEFAULT;
}

static struct event_base *make_loop(void)
{
    struct event_config *config = event_config_new();
    struct event_base *base = NULL;

    if (config != NULL && event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER) == 0)
        base = event_base_new_with_config(config);
    if (config != NULL) event_config_free(config);
    return base;
}

int session_try(struct session *session, const struct settings *settings)
{
    int status = QUORLOCK_ERR_NOMEM;

    event_set_log_callback(hush);
    event_set_fatal_callback(die);
    *session = (struct session){.settings = settings, .base = make_loop(), .waits_left = UINT_MAX};
    if (session->base != NULL) status = make_client(session);
    if (status == 0) return 0;
    if (session->error.text[0] == '\0')
        snprintf(session->error.text, sizeof(session->error.text), "%s",
                 session->base == NULL ? no_loop : quorlock_status_text(status));
    if (session->base != NULL) event_base_free(session->base);
    session->base = NULL;
    return status;
}

void session_blame(const struct settings *settings)
{
    struct text text = {0};

    sources_blame(settings->sources, &text);
    if (text.length > 0) {
        say_text(LOG_ERR, &text);
    } else {
        text_clear(&text);
    }
}

int session_open(struct session *session, const struct settings *settings)
{
    int status = session_try(session, settings);

    if (status != 0) say("%s", session->error.text);
    if (status == QUORLOCK_ERR_INVAL || status == QUORLOCK_ERR_AUTH) session_blame(settings);
    return session_exit(status);
}

int session_check(const struct session *session, int status)
{
    if (status != 0) say("%s", quorlock_client_error(session->client));
    if (status == QUORLOCK_ERR_INVAL) session_blame(session->settings);
    return session_exit(status);
}

int session_run(struct session *session, int failed)
{
    int status = failed;

    if (status == 0 && event_base_dispatch(session->base) != 0) {
        say("the event loop failed");
        status = EXIT_SYSTEM;
    }
    if (status == 0) status = session->status;
    session_close(session);
    return status;
}

struct timeval session_span(uint32_t ms)
{
    return (struct timeval){.tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000};
}

void session_leave(struct session *session)
{
    event_base_loopbreak(session->base);
}

static void closed(void *arg)
{
    struct session *session = arg;

    session->closed = true;
    session_leave(session);
}

void session_close(struct session *session)
{
    struct timeval grace = {.tv_usec = CLOSE_GRACE_US};

    if (session->base == NULL) return;
    if (quorlock_client_close(session->client, closed, session) == 0) {
        event_base_loopexit(session->base, &grace);
        event_base_dispatch(session->base);
    }
    /* If the client is not closed in time, the end of the process ends it. */
    if (session->closed) {
        event_base_free(session->base);
        *session = (struct session){.closed = true};
    }
}
