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
    size_t at;  /* the key that is asked for now */
    int status; /* exit status */
};

static void inspect_done(int status, const struct quorlock_report *report, void *arg);

/* inspect_ask - asks for the key whose turn it is; 0 or an exit status. */
static int inspect_ask(struct inspect *inspect)
{
    const char *key = inspect->settings->words[inspect->at];
    int status = quorlock_inspect(inspect->session.client, key, inspect_done, inspect);
    if (status) say("%s", quorlock_client_error(inspect->session.client));
    return session_exit(status);
}

static void inspect_done(int status, const struct quorlock_report *report, void *arg)
{
    struct inspect *inspect = arg;
    const char *key = inspect->settings->words[inspect->at];
    struct text text = {0};
    if (inspect->settings->json) {
        json_report(&text, key, report, false);
    } else {
        if (inspect->at > 0) text_add(&text, "\n", 1);
        render_summary(&text, key, report, inspect->settings->dialect);
        render_table(&text, report, RENDER_INSPECT);
    }
    int written = put(&text);
    text_clear(&text);
    if (!inspect->status) inspect->status = session_exit(status);
    if (!written && ++inspect->at < inspect->settings->n_words) written = inspect_ask(inspect);
    if (written) inspect->status = written;
    if (written || inspect->at == inspect->settings->n_words) session_leave(&inspect->session);
}

int verb_inspect(const struct settings *settings)
{
    /* Static: where a frozen node outlives our patience it is still referred to when the process ends. */
    static struct inspect inspect;
    inspect = (struct inspect){.settings = settings};
    if (settings->n_words == 0 || settings->command) {
        say("inspect takes keys and nothing else: quorlock inspect KEY...");
        return EXIT_USAGE;
    }
    /* Looking at a lock must not write a guard. */
    struct settings own = *settings;
    own.guard = QUORLOCK_GUARD_OFF;
    int status = session_open(&inspect.session, &own);
    if (status) return status;
    status = inspect_ask(&inspect);
    if (status) {
        inspect.status = status;
    } else if (!session_loop(&inspect.session)) {
        inspect.status = EXIT_SYSTEM;
    }
    session_close(&inspect.session);
    return inspect.status;
}
