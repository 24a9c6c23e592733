/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bootstrap.c - quorlock bootstrap: says that no lock is held, so that the first client need not wait
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "json.h"
#include "render.h"
#include "say.h"
#include "session.h"

struct bootstrap {
    struct session session;
    const struct settings *settings;
    unsigned long max_lease_ms; /* asked for, or the default */
    int status;                 /* exit status */
};

static size_t bootstrap_count(const struct quorlock_report *report, const char *state)
{
    size_t n = 0;
    for (size_t i = 0; i < report->n_nodes; i++) n += strcmp(report->nodes[i]->state, state) == 0;
    return n;
}

/* bootstrap_max_lease - of a guard, 1|N|set|max_lease|..., as an option takes it; 0 where it is none. */
static unsigned long bootstrap_max_lease(const char *guard)
{
    for (int i = 0; i < 3 && guard; i++) {
        guard = strchr(guard, '|');
        if (guard) guard++;
    }
    return guard ? strtoul(guard, NULL, 10) : 0;
}

/* bootstrap_longest - the longest max lease of the guards in the report. */
static unsigned long bootstrap_longest(const struct quorlock_report *report)
{
    unsigned long longest = 0;
    for (size_t i = 0; i < report->n_nodes; i++) {
        unsigned long found = bootstrap_max_lease(report->nodes[i]->holder);
        if (found > longest) longest = found;
    }
    return longest;
}

static void bootstrap_tell_done(const struct bootstrap *bootstrap, const struct quorlock_report *report,
                                struct text *text)
{
    text_format(text, "bootstrapped %zu nodes for leases up to %lu ms; ", report->n_nodes,
                bootstrap_longest(report));
    if (bootstrap->settings->reconfigure) {
        text_format(text, "none votes before the longer of the old and the new max lease is over\n");
    } else {
        text_format(text, "no lock is held on them\n");
    }
}

/* bootstrap_command - what sets up the nodes anew for that max lease, as it can be given: with their addresses
 * where these came from the command line and hold no password. */
static void bootstrap_command(const struct bootstrap *bootstrap, unsigned long max_lease_ms, struct text *text)
{
    const struct settings *settings = bootstrap->settings;
    const char *known = getenv("QUORLOCK_NODES");
    text_format(text, "'quorlock bootstrap --reconfigure --max-lease %lums", max_lease_ms);
    if (settings->set_name) text_format(text, " --set-name %s", settings->set_name);
    if (settings->nodes_asked && !(known && strcmp(known, settings->nodes) == 0)) {
        text_format(text, " --nodes %s", strchr(settings->nodes, '@') ? "URI,URI,..." : settings->nodes);
    }
    text_format(text, "'");
}

/* bootstrap_tell_half - what to do where some nodes were written, or may be, and some not. */
static void bootstrap_tell_half(const struct bootstrap *bootstrap, const struct quorlock_report *report,
                                struct text *text)
{
    size_t written = bootstrap_count(report, "bootstrapped"), closed = bootstrap_count(report, "closed");
    size_t unknown = bootstrap_count(report, "unknown");
    text_format(text, "half done: %zu of %zu nodes bootstrapped", written, report->n_nodes);
    if (closed) text_format(text, ", %zu closed to all clients", closed);
    if (unknown) text_format(text, ", %zu unknown (no answer came, it may be done)", unknown);
    if (written + closed + unknown < report->n_nodes) text_format(text, ", the others as they were");
    if (bootstrap->settings->reconfigure) {
        text_format(text,
                    ". Give this very command again, until it ends with 0, and no client the new settings "
                    "before\n");
    } else {
        text_format(text, ". ");
        bootstrap_command(bootstrap, bootstrap->max_lease_ms, text);
        text_format(text, " does all of them anew, and they vote after one max lease\n");
    }
}

static void bootstrap_tell_guarded(const struct bootstrap *bootstrap, const struct quorlock_report *report,
                                   struct text *text)
{
    if (bootstrap->settings->reconfigure) {
        text_format(
            text, "what stands at quorlock:guard on some node is no guard that this version can read: use the "
                  "newest quorlock everywhere, or if it is nobody's, 'redis-cli -h HOST -p PORT DEL "
                  "quorlock:guard' there\n");
        return;
    }
    text_format(text,
                "%zu of %zu nodes have a guard already, so locks may be held there; to change their number, "
                "names or max lease give --reconfigure\n",
                bootstrap_count(report, "guarded"), report->n_nodes);
}

/* bootstrap_tell - the lines above the table: what was declared, or why nothing was. */
static void bootstrap_tell(const struct bootstrap *bootstrap, int status, const struct quorlock_report *report,
                           struct text *text)
{
    bool half = bootstrap_count(report, "bootstrapped") || bootstrap_count(report, "closed") ||
                bootstrap_count(report, "unknown");
    switch (status) {
    case QUORLOCK_OK: bootstrap_tell_done(bootstrap, report, text); return;
    case QUORLOCK_STATE: bootstrap_tell_guarded(bootstrap, report, text); break;
    case QUORLOCK_NOQUORUM:
        text_format(text, "not every node answered as it should: mend that, then bootstrap again\n");
        break;
    case QUORLOCK_INVAL:
        text_format(
            text, "the guards of the nodes say different max leases: give the one that all clients are told, ");
        bootstrap_command(bootstrap, bootstrap_longest(report), text);
        text_format(text, "\n");
        break;
    default: text_format(text, "%s\n", quorlock_status_text(status)); break;
    }
    if (half) {
        bootstrap_tell_half(bootstrap, report, text);
    } else {
        text_format(text, "nothing was written\n");
    }
}

static void bootstrap_done(int status, const struct quorlock_report *report, void *arg)
{
    struct bootstrap *bootstrap = arg;
    struct text text = {0};
    if (bootstrap->settings->json) {
        json_report(&text, "quorlock:guard", report, false);
    } else {
        bootstrap_tell(bootstrap, status, report, &text);
        render_table(&text, report, RENDER_BOOTSTRAP);
    }
    bootstrap->status = put(&text);
    if (!bootstrap->status) bootstrap->status = status == QUORLOCK_STATE ? EXIT_HELD : session_exit(status);
    text_clear(&text);
    session_leave(&bootstrap->session);
}

int verb_bootstrap(const struct settings *settings)
{
    /* Static: where a frozen node outlives our patience it is still referred to when the process ends. */
    static struct bootstrap bootstrap;
    bootstrap = (struct bootstrap){.settings = settings,
                                   .max_lease_ms = settings->max_lease_ms ? settings->max_lease_ms : 30000,
                                   .status = EXIT_NO_QUORUM};
    if (settings->n_words != 0 || settings->command) {
        say("bootstrap takes no key: quorlock bootstrap");
        return EXIT_USAGE;
    }
    /* A client with a guard would write it by itself, with a quarantine. */
    struct settings own = *settings;
    own.guard = QUORLOCK_GUARD_OFF;
    int status = session_open(&bootstrap.session, &own);
    if (status) return status;
    struct quorlock_bootstrap_options options = {.size = sizeof(options), .reconfigure = settings->reconfigure};
    status = quorlock_bootstrap(bootstrap.session.client, &options, bootstrap_done, &bootstrap);
    if (status) {
        say("%s", quorlock_client_error(bootstrap.session.client));
        bootstrap.status = session_exit(status);
    } else if (!session_loop(&bootstrap.session)) {
        bootstrap.status = EXIT_SYSTEM;
    }
    session_close(&bootstrap.session);
    return bootstrap.status;
}
