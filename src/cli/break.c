/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * break.c - quorlock break: looks at all keys first, says what it is about to break, then breaks it everywhere
 */
#include <string.h>

#include "cli.h"
#include "json.h"
#include "render.h"
#include "say.h"
#include "session.h"

struct breaking {
    struct session session;
    const struct settings *settings;
    size_t at;  /* the key that is looked at, or broken, now */
    int status; /* exit status */
};

static const char *break_key(const struct breaking *breaking)
{
    return breaking->settings->words[breaking->at];
}

static void break_end(struct breaking *breaking, int status)
{
    breaking->status = status;
    session_leave(&breaking->session);
}

static void break_done(int status, const struct quorlock_report *report, void *arg);
static void break_seen(int status, const struct quorlock_report *report, void *arg);

/* break_look, break_now - with the key whose turn it is; 0 or an exit status, said already. */
static int break_look(struct breaking *breaking)
{
    int status = quorlock_inspect(breaking->session.client, break_key(breaking), break_seen, breaking);
    if (status) say("%s", quorlock_client_error(breaking->session.client));
    return session_exit(status);
}

static int break_now(struct breaking *breaking)
{
    int status = quorlock_break(breaking->session.client, break_key(breaking), break_done, breaking);
    if (status) say("%s", quorlock_client_error(breaking->session.client));
    return session_exit(status);
}

static void break_done(int status, const struct quorlock_report *report, void *arg)
{
    struct breaking *breaking = arg;
    const char *key = break_key(breaking);
    bool several = breaking->settings->n_words > 1;
    struct text text = {0};
    if (breaking->settings->json) {
        json_report(&text, key, report, true);
    } else {
        size_t broken = 0;
        for (size_t i = 0; i < report->n_nodes; i++) broken += report->nodes[i]->broken != 0;
        if (several) text_add(&text, "\n", 1);
        render_table(&text, report, RENDER_BREAK);
        if (several) {
            text_add(&text, "\"", 1);
            text_add_safe(&text, key, strlen(key));
            text_format(&text, "\" ");
        }
        text_format(&text, "broken on %zu of %zu nodes\n", broken, report->n_nodes);
    }
    int written = put(&text);
    text_clear(&text);
    if (!breaking->status) breaking->status = session_exit(status);
    if (!written && ++breaking->at < breaking->settings->n_words) written = break_now(breaking);
    if (written || breaking->at == breaking->settings->n_words)
        break_end(breaking, written ? written : breaking->status);
}

/* What is about to be broken is shown first: the report after the fact may be lost with the connection. */
static void break_seen(int status, const struct quorlock_report *report, void *arg)
{
    struct breaking *breaking = arg;
    const char *key = break_key(breaking);
    struct text text = {0};
    int written = 0;
    render_summary(&text, key, report, breaking->settings->dialect);
    if (breaking->settings->json) {
        /* stdout is for the one JSON document. */
        if (text.length && !text.failed) say("about to break: %.*s", (int)text.length - 1, text.bytes);
    } else {
        written = put(&text);
    }
    text_clear(&text);
    (void)status; /* also a minority is broken where it can be reached */
    if (!written && ++breaking->at < breaking->settings->n_words) {
        written = break_look(breaking);
    } else if (!written) {
        breaking->at = 0;
        written = break_now(breaking);
    }
    if (written) break_end(breaking, written);
}

int verb_break(const struct settings *settings)
{
    /* Static: where a frozen node outlives our patience it is still referred to when the process ends. */
    static struct breaking breaking;
    breaking = (struct breaking){.settings = settings};
    if (settings->n_words == 0 || settings->command) {
        say("break takes keys and nothing else: quorlock break KEY...");
        return EXIT_USAGE;
    }
    /* Looking at a lock must not write a guard. */
    struct settings own = *settings;
    own.guard = QUORLOCK_GUARD_OFF;
    int status = session_open(&breaking.session, &own);
    if (status) return status;
    status = break_look(&breaking);
    if (status) {
        breaking.status = status;
    } else if (!session_loop(&breaking.session)) {
        breaking.status = EXIT_SYSTEM;
    }
    session_close(&breaking.session);
    return breaking.status;
}
