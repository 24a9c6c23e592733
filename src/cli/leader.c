/* SPDX-License-Identifier: BSD-3-Clause */
/* leader.c - quorlock leader: show who leads an election, once or at each change */
#include <quorlock/election.h>

#include <event2/event.h>

#include <inttypes.h>
#include <signal.h>
#include <syslog.h>
#include <unistd.h>

#include "cli.h"
#include "document.h"
#include "output.h"
#include "say.h"

struct observation {
    struct session session;
    const char *name;
    struct output output;    /* for output_has_reader */
    struct event *on_closed; /* NULL: the reader is not watched */
    bool said;               /* it has printed that it waits */
};

static void leader_add_line(struct text *text, const char *name, const struct quorlock_leader *leader)
{
    text_format(text, "\"");
    text_add_known(text, name);
    text_format(text, "\": ");
    switch (leader->state) {
    case QUORLOCK_LEADER_KNOWN:
        text_add_known(text, leader->text);
        text_format(text, " leads, term %" PRIu64, leader->term);
        break;
    case QUORLOCK_LEADER_NONE: text_format(text, "nobody leads"); break;
    default: text_format(text, "unknown: too few nodes answer, or they do not agree"); break;
    }
}

static void leader_add_json(struct text *text, const char *name, const struct quorlock_leader *leader)
{
    static const char *const states[] = {"unknown", "none", "leads"};
    bool known = leader->state == QUORLOCK_LEADER_KNOWN;
    json_t *line = json_object();

    document_add(&line, "name", document_text(name));
    document_add(&line, "state", document_text(states[leader->state]));
    document_add(&line, "leader", document_text(leader->text));
    document_add(&line, "term", document_number((int64_t)leader->term, 1));
    document_add(&line, "owner", document_text(leader->owner));
    document_add(&line, "valid_ms", document_number(known ? (int64_t)leader->valid_ms : -1, 0));
    document_write(text, line);
}

static int exit_of(int state)
{
    if (state == QUORLOCK_LEADER_KNOWN) return EXIT_OK;
    return state == QUORLOCK_LEADER_NONE ? EXIT_HELD : EXIT_NO_QUORUM;
}

static void leader_leave(struct observation *observation, int status)
{
    if (observation->on_closed != NULL) event_free(observation->on_closed);
    observation->on_closed = NULL;
    observation->session.status = status;
    session_leave(&observation->session);
}

/* ---- the reader of the output ---- */

static bool leave_without_reader(struct observation *observation)
{
    if (observation->on_closed == NULL || output_has_reader(&observation->output)) return false;
    leader_leave(observation, EXIT_SIGNAL + SIGPIPE);
    return true;
}

/* leader_on_closed - end if the reader has ended. Without changes nothing is written, so no write would show that. */
static void leader_on_closed(evutil_socket_t fd, short what, void *arg)
{
    struct observation *observation = arg;

    (void)fd;
    (void)what;
    if (!leave_without_reader(observation)) event_del(observation->on_closed);
}

/* watch_reader - watch the reader of a pipe or socket. A terminal is readable when somebody types, and a file has no
 * reader. */
static int watch_reader(struct observation *observation)
{
    const struct settings *settings = observation->session.settings;

    if ((!settings->follow && !settings->wait_leader) || isatty(STDOUT_FILENO) == 1) return 0;
    observation->output.fd = STDOUT_FILENO;
    observation->on_closed =
        event_new(observation->session.base, STDOUT_FILENO, EV_READ | EV_PERSIST, leader_on_closed, observation);
    if (observation->on_closed == NULL) {
        say("out of memory");
        return EXIT_SYSTEM;
    }
    (void)event_add(observation->on_closed, NULL);
    return 0;
}

/* ---- changes ---- */

static void changed(quorlock_observer *observer, const struct quorlock_leader *leader, void *arg)
{
    struct observation *observation = arg;
    const struct settings *settings = observation->session.settings;
    bool waits = settings->wait_leader && leader->state != QUORLOCK_LEADER_KNOWN;
    struct text line = {0};
    int failed;

    (void)observer;
    if (leave_without_reader(observation)) return;
    if (waits && !settings->follow) {
        leader_add_line(&line, observation->name, leader);
        if (!observation->said) say_text(LOG_NOTICE, &line);
        observation->said = true;
        text_clear(&line);
        return;
    }
    if (settings->json) {
        leader_add_json(&line, observation->name, leader);
    } else {
        leader_add_line(&line, observation->name, leader);
        text_format(&line, "\n");
    }
    failed = put(&line);
    if (failed != 0) {
        leader_leave(observation, failed);
    } else if (!settings->follow) {
        leader_leave(observation, exit_of(leader->state));
    }
}

static int observe(struct observation *observation)
{
    const struct quorlock_observer_options options = {.size = sizeof(options), .changed = changed, .arg = observation};
    quorlock_observer *observer;
    int status = session_check(&observation->session, quorlock_observer_new(&observer, observation->session.client,
                                                                            observation->name, &options));

    return status != 0 ? status : watch_reader(observation);
}

int verb_leader(const struct settings *settings)
{
    /* It is static because callbacks for a frozen node may refer to it until the process ends. */
    static struct observation observation;
    int status;

    if (settings->n_words != 1) {
        say("leader takes one name, and not %zu: quorlock leader [OPTIONS] NAME", settings->n_words);
        return EXIT_USAGE;
    }
    observation.name = settings->words[0];
    status = session_open(&observation.session, settings);
    return status != 0 ? status : session_run(&observation.session, observe(&observation));
}
