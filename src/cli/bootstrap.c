/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bootstrap.c - quorlock bootstrap: says that no lock is held, so that the first client need not wait
 */
#include <string.h>

#include "cli.h"
#include "json.h"
#include "render.h"
#include "say.h"
#include "session.h"

enum { DEFAULT_MAX_LEASE_MS = 30000 };

struct bootstrap {
    struct session session;
    const struct settings *settings;
    int status; /* exit status */
};

static size_t bootstrap_count(const struct quorlock_report *report, const char *state)
{
    size_t n = 0;
    for (size_t i = 0; i < report->n_nodes; i++) n += strcmp(report->nodes[i]->state, state) == 0;
    return n;
}

/* bootstrap_tell - the line above the table: what was declared, or why nothing was. */
static void bootstrap_tell(const struct bootstrap *bootstrap, int status, const struct quorlock_report *report,
                           struct text *text)
{
    const struct settings *settings = bootstrap->settings;
    unsigned max_lease_ms = settings->max_lease_ms ? settings->max_lease_ms : DEFAULT_MAX_LEASE_MS;
    size_t written = bootstrap_count(report, "bootstrapped");
    switch (status) {
    case QUORLOCK_OK:
        text_format(text, "bootstrapped %zu nodes for leases up to %u ms; ", written, max_lease_ms);
        if (settings->reconfigure) {
            text_format(text, "none votes before the longer of the old and the new max lease is over\n");
        } else {
            text_format(text, "no lock is held on them\n");
        }
        return;
    case QUORLOCK_STATE:
        text_format(
            text,
            "%zu of %zu nodes have a guard already, so locks may be held there; to change their number, "
            "names or max lease give --reconfigure\n",
            bootstrap_count(report, "guarded"), report->n_nodes);
        break;
    case QUORLOCK_NOQUORUM:
        text_format(text, "not every node answered as it should: mend that, then bootstrap again\n");
        break;
    default: text_format(text, "%s\n", quorlock_status_text(status)); break;
    }
    /* Only where two did it at once, or a node went away in between. */
    if (written) {
        text_format(text, "%zu of %zu nodes were bootstrapped all the same\n", written, report->n_nodes);
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
    bootstrap = (struct bootstrap){.settings = settings, .status = EXIT_NO_QUORUM};
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
