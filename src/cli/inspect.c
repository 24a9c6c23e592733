/* SPDX-License-Identifier: BSD-3-Clause */
/* inspect.c - quorlock inspect, and quorlock break, which inspects all keys before it deletes the first one */
#include <string.h>

#include "cli.h"
#include "report.h"
#include "say.h"

struct keys {
    struct session session;
    enum report_kind kind;
    bool breaking; /* break has shown all keys, and deletes them now */
    int worst;     /* with --quiet or --owner: the highest exit status so far */
    size_t at;     /* index of the present key */
};

static const char *key_now(const struct keys *keys)
{
    return keys->session.settings->words[keys->at];
}

static void show_holders(struct text *text, const struct keys *keys, const struct shown *report)
{
    if (keys->session.settings->json) {
        report_json(text, key_now(keys), report, REPORT_INSPECT);
        return;
    }
    if (keys->at > 0) text_add(text, "\n", 1);
    report_summary(text, key_now(keys), report, keys->session.settings->values.client.dialect);
    report_table(text, report, REPORT_INSPECT);
}

/* show_before - show the holder before the key is deleted: the connection may be lost before the report of that. */
static void show_before(struct text *text, const struct keys *keys, const struct shown *report)
{
    const char *line_end;

    report_summary(text, key_now(keys), report, keys->session.settings->values.client.dialect);
    if (!keys->session.settings->json || text->failed) return;
    /* stdout is for JSON only, and a message is one line. */
    line_end = memchr(text->bytes, '\n', text->length);
    say("about to break: %.*s", (int)(line_end - text->bytes), text->bytes);
    text_clear(text);
}

static void show_broken(struct text *text, struct keys *keys, const struct shown *report)
{
    const char *key = key_now(keys), *owner = keys->session.settings->owner;
    bool several = keys->session.settings->n_words > 1;
    size_t broken = 0;

    for (size_t i = 0; i < report->n_nodes; i++) broken += report->nodes[i].broken;
    if (broken == 0 && owner != NULL) keys->worst = EXIT_HELD;
    if (keys->session.settings->json) {
        report_json(text, key, report, REPORT_BREAK);
        return;
    }
    if (several) text_format(text, "\n");
    report_table(text, report, REPORT_BREAK);
    if (several) {
        text_format(text, "\"");
        text_add_known(text, key);
        text_format(text, "\" ");
    }
    text_format(text, "broken on %zu of %zu nodes%s\n", broken, report->n_nodes,
                broken == 0 && owner != NULL ? ", for that owner does not hold it" : "");
}

static void on_inspected(int status, const struct quorlock_inspect_report *report, void *arg);
static void on_broken(int status, const struct quorlock_break_report *report, void *arg);

/* cli_inspect_ask - ask for the present key: 0, or the exit status after a message. */
static int cli_inspect_ask(struct keys *keys)
{
    quorlock_client *client = keys->session.client;
    const char *key = key_now(keys), *owner = keys->session.settings->owner;

    return session_check(&keys->session, keys->breaking ? quorlock_client_break(client, key, owner, on_broken, keys)
                                                        : quorlock_client_inspect(client, key, on_inspected, keys));
}

static void cli_inspect_answered(struct keys *keys, int status, const struct shown *report)
{
    size_t n_keys = keys->session.settings->n_words;
    struct text text = {0};
    int failed;

    if (keys->kind == REPORT_INSPECT && keys->session.settings->quiet) {
        int one = report_status(report); /* overridden below if too few nodes answered */

        if (one > keys->worst) keys->worst = one;
    } else if (keys->kind == REPORT_INSPECT) {
        show_holders(&text, keys, report);
    } else if (keys->breaking) {
        show_broken(&text, keys, report);
    } else {
        show_before(&text, keys, report);
        /* Keys are deleted even if fewer than a quorum of nodes answered. */
        status = 0;
    }
    failed = put(&text);
    if (keys->session.status == 0) keys->session.status = session_exit(status);
    if (keys->session.status == 0 && keys->at + 1 == n_keys) keys->session.status = keys->worst;
    keys->at++;
    if (failed == 0 && keys->at == n_keys && keys->kind == REPORT_BREAK && !keys->breaking) {
        keys->breaking = true;
        keys->at = 0;
    }
    if (failed == 0 && keys->at < n_keys) {
        failed = cli_inspect_ask(keys);
        if (failed == 0) return;
    }
    if (failed != 0) keys->session.status = failed;
    session_leave(&keys->session);
}

static void on_inspected(int status, const struct quorlock_inspect_report *report, void *arg)
{
    const struct shown shown = shown_inspected(report);

    cli_inspect_answered(arg, status, &shown);
}

static void on_broken(int status, const struct quorlock_break_report *report, void *arg)
{
    const struct shown shown = shown_broken(report);

    cli_inspect_answered(arg, status, &shown);
}

static int cli_inspect_run(const struct settings *settings, enum report_kind kind)
{
    /* It is static because callbacks for a frozen node may refer to it until the process ends. */
    static struct keys keys;
    int status = session_open(&keys.session, settings);

    keys.kind = kind;
    return status != 0 ? status : session_run(&keys.session, cli_inspect_ask(&keys));
}

int verb_inspect(const struct settings *settings)
{
    return cli_inspect_run(settings, REPORT_INSPECT);
}

int verb_break(const struct settings *settings)
{
    return cli_inspect_run(settings, REPORT_BREAK);
}
