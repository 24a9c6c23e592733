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

static void bootstrap_told(const struct bootstrap *bootstrap, int status, struct text *text)
{
    const struct settings *settings = bootstrap->settings;
    unsigned max_lease_ms = settings->max_lease_ms ? settings->max_lease_ms : DEFAULT_MAX_LEASE_MS;
    switch (status) {
    case QUORLOCK_OK:
        text_format(text, "bootstrapped: no client of these nodes may use a lease above %u ms\n", max_lease_ms);
        if (settings->reconfigure)
            text_format(text, "every node is quarantined for the longer of the old and the new max lease\n");
        break;
    case QUORLOCK_STATE:
        text_format(text,
                    "nothing was done to nodes that have a guard already: locks may be held there. To change "
                    "their number, names or max lease use --reconfigure\n");
        break;
    default:
        text_format(text, "not every node could be reached: mend that first, then bootstrap again\n");
        break;
    }
}

static void bootstrap_done(int status, const struct quorlock_report *report, void *arg)
{
    struct bootstrap *bootstrap = arg;
    struct text text = {0};
    if (bootstrap->settings->json) {
        json_report(&text, "quorlock:guard", report, false);
    } else {
        bootstrap_told(bootstrap, status, &text);
        render_table(&text, report, false);
    }
    bootstrap->status = put(&text);
    if (!bootstrap->status) bootstrap->status = status == QUORLOCK_STATE ? EXIT_HELD : session_exit(status);
    text_clear(&text);
    session_leave(&bootstrap->session);
}

int verb_bootstrap(const struct settings *settings)
{
    static struct bootstrap bootstrap;
    struct settings own = *settings;
    bootstrap = (struct bootstrap){.settings = settings, .status = EXIT_NO_QUORUM};
    if (settings->n_words != 0 || settings->command) {
        say("bootstrap takes no key: quorlock bootstrap");
        return EXIT_USAGE;
    }
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
