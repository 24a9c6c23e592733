/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inspect.c - quorlock inspect: who holds a lock, node by node
 */
#include <stdio.h>

#include "cli.h"
#include "json.h"
#include "render.h"
#include "say.h"
#include "session.h"

struct inspect {
    struct session session;
    const struct settings *settings;
    int status; /* exit status */
};

static void inspect_done(int status, const struct quorlock_report *report, void *arg)
{
    struct inspect *inspect = arg;
    const char *key = inspect->settings->words[0];
    struct text text = {0};
    if (inspect->settings->json) {
        json_report(&text, key, report, false);
    } else {
        render_summary(&text, key, report);
        render_table(&text, report, RENDER_INSPECT);
    }
    inspect->status = put(&text);
    if (!inspect->status) inspect->status = session_exit(status);
    text_clear(&text);
    session_leave(&inspect->session);
}

int verb_inspect(const struct settings *settings)
{
    /* Static: where a frozen node outlives our patience it is still referred to when the process ends. */
    static struct inspect inspect;
    inspect = (struct inspect){.settings = settings, .status = EXIT_NO_QUORUM};
    if (settings->n_words != 1 || settings->command) {
        say("inspect takes one key and nothing else: quorlock inspect KEY");
        return EXIT_USAGE;
    }
    /* Looking at a lock must not write a guard. */
    struct settings own = *settings;
    own.guard = QUORLOCK_GUARD_OFF;
    int status = session_open(&inspect.session, &own);
    if (status) return status;
    status = quorlock_inspect(inspect.session.client, settings->words[0], inspect_done, &inspect);
    if (status) {
        say("%s", quorlock_client_error(inspect.session.client));
        inspect.status = session_exit(status);
    } else if (!session_loop(&inspect.session)) {
        inspect.status = EXIT_SYSTEM;
    }
    session_close(&inspect.session);
    return inspect.status;
}
