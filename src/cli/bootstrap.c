/* SPDX-License-Identifier: BSD-3-Clause */
/* bootstrap.c - quorlock bootstrap: declares that no lock is held, so that the first client need not wait */
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "cli.h"
#include "report.h"
#include "say.h"

static size_t count(const struct quorlock_report *report, const char *state)
{
    size_t n = 0;

    for (size_t i = 0; i < report->n_nodes; i++) n += strcmp(report->nodes[i]->state, state) == 0;
    return n;
}

/* longest_lease - the longest max lease of the guards in the report, which are written 1|N|set|max_lease|... */
static unsigned long longest_lease(const struct quorlock_report *report)
{
    unsigned long longest = 0;

    for (size_t i = 0; i < report->n_nodes; i++) {
        const char *field = report->nodes[i]->holder;
        unsigned long found;

        for (int n = 0; n < 3 && field != NULL; n++) {
            field = strchr(field, '|');
            if (field != NULL) field++;
        }
        found = field != NULL ? strtoul(field, NULL, 10) : 0;
        if (found > longest) longest = found;
    }
    return longest;
}

/* add_command - the command that sets the nodes up anew for that max lease: with their addresses where these
 * came from the command line and hold no password. */
static void add_command(struct text *text, const struct settings *settings, unsigned long max_lease_ms)
{
    const char *known = getenv("QUORLOCK_NODES");

    text_format(text, "'quorlock bootstrap --reconfigure --max-lease %lums", max_lease_ms);
    if (settings->set_name != NULL) text_format(text, " --set-name %s", settings->set_name);
    if (args_asked(settings, "set") != NULL) text_format(text, " --set %s", settings->set);
    if (args_asked(settings, "nodes") != NULL && (known == NULL || strcmp(known, settings->nodes) != 0))
        text_format(text, " --nodes %s", strchr(settings->nodes, '@') != NULL ? "URI,URI,..." : settings->nodes);
    text_format(text, "'");
}

/* add_half - what to do where some nodes were written, or may be, and some not; false: none was. */
static bool add_half(struct text *text, const struct settings *settings, const struct quorlock_report *report)
{
    size_t written = count(report, "bootstrapped"), closed = count(report, "closed");
    size_t unknown = count(report, "unknown");

    if (written + closed + unknown == 0) return false;
    text_format(text, "half done: %zu of %zu nodes bootstrapped", written, report->n_nodes);
    if (closed > 0) text_format(text, ", %zu closed to all clients", closed);
    if (unknown > 0) text_format(text, ", %zu unknown (no answer came, it may be done)", unknown);
    if (written + closed + unknown < report->n_nodes) text_format(text, ", the others as they were");
    text_format(text, ". ");
    if (settings->reconfigure) {
        text_format(text, "Give this very command again, until it ends with 0, and no client the new settings "
                          "before\n");
    } else {
        add_command(text, settings, settings->max_lease_ms > 0 ? settings->max_lease_ms : 30000);
        text_format(text, " does all of them anew, and they vote after one max lease\n");
    }
    return true;
}

static void add_guarded(struct text *text, const struct settings *settings, const struct quorlock_report *report)
{
    if (settings->reconfigure) {
        text_format(text, "the value at quorlock:guard on some node is no guard that this version can read: use the "
                          "newest quorlock everywhere, or if no program needs it, 'redis-cli -h HOST -p PORT DEL "
                          "quorlock:guard' there\n");
    } else {
        text_format(text,
                    "%zu of %zu nodes have a guard already, so locks may be held there; to change their number, "
                    "names or max lease give --reconfigure\n",
                    count(report, "guarded"), report->n_nodes);
    }
}

/* add_verdict - the lines above the table: what was declared, or why nothing was. */
static void add_verdict(struct text *text, const struct settings *settings, int status,
                        const struct quorlock_report *report)
{
    switch (status) {
    case QUORLOCK_OK:
        text_format(text, "bootstrapped %zu nodes for leases up to %lu ms; %s\n", report->n_nodes,
                    longest_lease(report),
                    settings->reconfigure ? "none votes before the longer of the old and the new max lease is over"
                                          : "no lock is held on them");
        return;
    case QUORLOCK_STATE: add_guarded(text, settings, report); break;
    case QUORLOCK_NOQUORUM:
        text_format(text, "not every node answered as it should: mend that, then bootstrap again\n");
        break;
    case QUORLOCK_INVAL:
        text_format(text, "the guards of the nodes say different max leases: give the one that all clients use, ");
        add_command(text, settings, longest_lease(report));
        text_format(text, "\n");
        break;
    default: text_format(text, "%s\n", quorlock_status_text(status)); break;
    }
    if (!add_half(text, settings, report)) text_format(text, "nothing was written\n");
}

static void done(int status, const struct quorlock_report *report, void *arg)
{
    struct session *session = arg;
    struct text text = {0};

    if (session->settings->json) {
        report_json(&text, "quorlock:guard", report, REPORT_BOOTSTRAP);
    } else {
        add_verdict(&text, session->settings, status, report);
        report_table(&text, report, REPORT_BOOTSTRAP);
    }
    session->status = put(&text);
    if (session->status == 0) session->status = status == QUORLOCK_STATE ? EXIT_HELD : session_exit(status);
    session_leave(session);
}

int verb_bootstrap(const struct settings *settings)
{
    /* Static: a frozen node may refer to it until the process ends. */
    static struct session session;
    struct quorlock_bootstrap_options options = {.size = sizeof(options), .reconfigure = settings->reconfigure};
    int status = session_open(&session, settings);

    if (status != 0) return status;
    status = quorlock_bootstrap(session.client, &options, done, &session);
    return session_run(&session, session_check(&session, status));
}
