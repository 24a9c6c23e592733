/* SPDX-License-Identifier: BSD-3-Clause */
/* bootstrap.c - quorlock bootstrap: declare that no lock is held, so that the first client need not wait */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "cli.h"
#include "document.h"
#include "report.h"
#include "say.h"
#include "settings/duration.h"

static size_t cli_bootstrap_count(const struct quorlock_bootstrap_report *report, int state)
{
    size_t n = 0;

    for (size_t i = 0; i < report->n_nodes; i++) n += report->nodes[i]->state == state;
    return n;
}

/* longest_lease - return the longest max lease of the guards in the report. A guard is 2|N|set|max_lease|... */
static unsigned long longest_lease(const struct quorlock_bootstrap_report *report)
{
    unsigned long longest = 0;

    for (size_t i = 0; i < report->n_nodes; i++) {
        const char *field = report->nodes[i]->guard;
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

/* cli_bootstrap_add_command - add the command that replaces the guards with that max lease. It has the addresses if
 * they are from the command line and have no password. */
static void cli_bootstrap_add_command(struct text *text, const struct settings *settings, unsigned long max_lease_ms)
{
    const char *known = getenv("QUORLOCK_NODES");

    text_format(text, "'quorlock bootstrap --reconfigure --max-lease %lums", max_lease_ms);
    if (settings->values.client.set_name != NULL) text_format(text, " --set-name %s", settings->values.client.set_name);
    if (args_asked(settings, "set") != NULL) text_format(text, " --set %s", settings->values.set);
    if (args_asked(settings, "nodes") != NULL && (known == NULL || strcmp(known, settings->values.nodes) != 0))
        text_format(text, " --nodes %s",
                    strchr(settings->values.nodes, '@') != NULL ? "URI,URI,..." : settings->values.nodes);
    text_format(text, "'");
}

/* add_half - if only some nodes were written, or may be, add what to do; false: no node was. */
static bool add_half(struct text *text, const struct settings *settings, const struct quorlock_bootstrap_report *report)
{
    size_t written = cli_bootstrap_count(report, QUORLOCK_BOOTSTRAP_WRITTEN),
           closed = cli_bootstrap_count(report, QUORLOCK_BOOTSTRAP_CLOSED);
    size_t unknown = cli_bootstrap_count(report, QUORLOCK_BOOTSTRAP_UNKNOWN),
           ended = cli_bootstrap_count(report, QUORLOCK_BOOTSTRAP_ENDED);

    written += ended;
    if (written + closed + unknown == 0) return false;
    text_format(text, "half done: %zu of %zu nodes bootstrapped", written, report->n_nodes);
    if (closed > 0) text_format(text, ", %zu closed to all clients", closed);
    if (unknown > 0) text_format(text, ", %zu unknown (no answer came; the guard may be written)", unknown);
    if (written + closed + unknown < report->n_nodes) text_format(text, ", the others unchanged");
    text_format(text, ". ");
    if (ended > 0) {
        text_format(text, "Run the same command again\n");
    } else if (settings->reconfigure) {
        text_format(text, "Run the same command again, until it ends with 0. Give clients the new settings only "
                          "then\n");
    } else {
        cli_bootstrap_add_command(text, settings, session_max_lease_ms(settings));
        text_format(text, " replaces all guards; the nodes vote after one max lease\n");
    }
    return true;
}

static void add_guarded(struct text *text, const struct settings *settings,
                        const struct quorlock_bootstrap_report *report)
{
    if (settings->reconfigure) {
        text_format(text, "a node has a value at quorlock:guard that this version cannot read: use the newest quorlock "
                          "everywhere; or, if no program needs the value, 'redis-cli -h HOST -p PORT DEL "
                          "quorlock:guard' there\n");
    } else {
        text_format(text,
                    "%zu of %zu nodes have a guard already, so locks may be held there; to change the number of nodes, "
                    "their names or the max lease give --reconfigure%s\n",
                    cli_bootstrap_count(report, QUORLOCK_BOOTSTRAP_GUARDED), report->n_nodes,
                    settings->if_needed ? "" : "; --if-needed accepts guards that are right");
    }
}

/* add_spared - if not all guards were written, report that; false: all were. */
static bool add_spared(struct text *text, const struct quorlock_bootstrap_report *report)
{
    size_t ended = cli_bootstrap_count(report, QUORLOCK_BOOTSTRAP_ENDED);

    if (cli_bootstrap_count(report, QUORLOCK_BOOTSTRAP_WRITTEN) > 0) return false;
    if (ended == 0) {
        text_format(text, "%zu of %zu nodes have the right guards already: nothing was written%s\n",
                    cli_bootstrap_count(report, QUORLOCK_BOOTSTRAP_GUARDED), report->n_nodes,
                    cli_bootstrap_count(report, QUORLOCK_BOOTSTRAP_FREE) > 0
                        ? "; the next client quarantines a node without one"
                        : "");
    } else {
        text_format(text,
                    "ended the quarantine of %zu of %zu nodes for a client with a max lease above %lu ms: none of its "
                    "locks is held\n",
                    ended, report->n_nodes, longest_lease(report));
    }
    return true;
}

/* cli_bootstrap_add_verdict - add the lines above the table: what was done, or why not. */
static void cli_bootstrap_add_verdict(struct text *text, const struct settings *settings, int status,
                                      const struct quorlock_bootstrap_report *report)
{
    switch (status) {
    case QUORLOCK_OK:
        if (add_spared(text, report)) return;
        text_format(text, "bootstrapped %zu nodes for leases up to %lu ms; %s\n", report->n_nodes,
                    longest_lease(report),
                    settings->reconfigure ? "no node votes before the longer of the old and the new max lease is over"
                                          : "no lock is held on them");
        return;
    case QUORLOCK_ERR_STATE: add_guarded(text, settings, report); break;
    case QUORLOCK_ERR_HELD:
        text_format(text,
                    "other clients of quorlock are connected, and may hold locks that the nodes have forgotten: stop "
                    "them, wait for one max lease, or give --yes if none of them holds a lock\n");
        break;
    case QUORLOCK_ERR_AUTH:
        text_format(text,
                    "the user may not see all that is needed. If it lacks +client|list: grant that, or give --yes "
                    "if no client of quorlock holds a lock on the nodes\n");
        break;
    case QUORLOCK_ERR_NOQUORUM:
        text_format(text, "not every node answered as needed: mend that, then run bootstrap again\n");
        break;
    case QUORLOCK_ERR_INVAL:
        text_format(text, "the guards of the nodes have different max leases: give the one that all clients use, ");
        cli_bootstrap_add_command(text, settings, longest_lease(report));
        text_format(text, "\n");
        break;
    default: text_format(text, "%s\n", quorlock_status_text(status)); break;
    }
    if (!add_half(text, settings, report)) text_format(text, "nothing was written\n");
}

static void cli_bootstrap_done(int status, const struct quorlock_bootstrap_report *report, void *arg)
{
    struct session *session = arg;
    const struct shown shown = shown_bootstrapped(report, report_quorum(session->settings, report->n_nodes));
    struct text text = {0};

    if (session->settings->json) {
        report_json(&text, "quorlock:guard", &shown, REPORT_BOOTSTRAP);
    } else {
        cli_bootstrap_add_verdict(&text, session->settings, status, report);
        report_table(&text, &shown, REPORT_BOOTSTRAP);
    }
    session->status = put(&text);
    if (session->status == 0)
        session->status =
            status == QUORLOCK_ERR_STATE || status == QUORLOCK_ERR_HELD ? EXIT_HELD : session_exit(status);
    session_leave(session);
}

/* ---- confirmation of a reconfiguration ---- */

/* Return an earlier address of the same server; NULL: there is none. */
static const char *twin_of(const json_t *nodes, size_t index)
{
    const char *run_id = document_text_of(json_array_get(nodes, index), "run_id");

    for (size_t i = 0; i < index && run_id != NULL; i++) {
        const json_t *node = json_array_get(nodes, i);
        const char *other = document_text_of(node, "run_id");

        if (other != NULL && strcmp(other, run_id) == 0) return document_text_of(node, "node");
    }
    return NULL;
}

static void cli_bootstrap_add_guard(struct text *text, const json_t *node)
{
    int guard = document_truth_of(node, "guard");
    int64_t n_nodes = document_number_of(node, "guard_nodes");

    if (guard <= 0) {
        text_format(text, guard == 0 ? "; it has no guard" : "; whether it has a guard is not known");
    } else if (n_nodes < 0) {
        text_format(text, "; its guard cannot be read");
    } else {
        text_format(text, "; its guard is for %" PRId64 " nodes, max lease ", n_nodes);
        duration_add(text, (uint32_t)document_number_of(node, "guard_max_lease_ms"));
    }
}

static void cli_bootstrap_add_node(struct text *text, const json_t *nodes, size_t index)
{
    const json_t *node = json_array_get(nodes, index);
    const char *twin = twin_of(nodes, index);
    int64_t clients = document_number_of(node, "clients");
    bool reachable = document_truth_of(node, "reachable") > 0;

    text_format(text, "  %s  ", document_text_of(node, "node"));
    if (!reachable) {
        text_format(text, "down: ");
        text_add_known(text, document_text_of(node, "error"));
    } else if (clients >= 0) {
        text_format(text, "%" PRId64 " connections, including ours", clients);
    } else {
        text_format(text, "the number of connections is not known");
    }
    if (reachable) cli_bootstrap_add_guard(text, node);
    if (twin != NULL) text_format(text, "; the same server as %s: list each server once", twin);
    text_format(text, "\n");
}

/* show_plan - print what a reconfiguration would do, and the connected clients. */
static void show_plan(int status, const struct quorlock_doctor_report *report, void *arg)
{
    struct session *session = arg;
    const struct settings *settings = session->settings;
    struct text text = {0};
    json_t *nodes;

    session_leave(session);
    if (status != 0) {
        say("%s", quorlock_status_text(status));
        session->status = EXIT_SYSTEM;
        return;
    }
    nodes = document_read(report->facts_json);
    if (nodes == NULL) text.failed = true;
    for (size_t i = 0; i < json_array_size(nodes); i++) cli_bootstrap_add_node(&text, nodes, i);
    text_format(&text, "bootstrap --reconfigure writes guards for %zu nodes, a set ", json_array_size(nodes));
    json_decref(nodes);
    text_format(&text, settings->values.client.set_name != NULL ? "named %s" : "without name",
                settings->values.client.set_name != NULL ? settings->values.client.set_name : "");
    text_format(&text, ", max lease ");
    if (settings->values.client.max_lease_ms > 0) {
        duration_add(&text, settings->values.client.max_lease_ms);
    } else {
        text_format(&text, "as now");
    }
    text_format(&text, ".\nIt ends every lock that is held on them: all clients are disconnected, clients with other "
                       "settings are refused,\nand no node votes before the longer of the old and the new max lease is "
                       "over.\n");
    session->status = put(&text);
}

/* confirm - ask for confirmation: 0, or the exit status after a message. */
static int confirm(const struct settings *settings)
{
    /* These are static because callbacks for a frozen node may refer to them until the process ends. */
    static struct session session;
    static struct settings quiet;
    char answer[8] = "";
    int status;

    if (!settings->dry_run && (settings->json || isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0)) {
        say("bootstrap --reconfigure ends every lock that is held on these nodes, and there is no terminal for a "
            "confirmation: give --dry-run to see what it does, or give --yes to do it");
        return EXIT_USAGE;
    }
    quiet = *settings;
    if (quiet.verbose == 0) quiet.verbose = -1; /* the plan has the reasons why nodes are down */
    status = session_open(&session, &quiet);
    if (status != 0) return status;
    status = quorlock_client_doctor(session.client, show_plan, &session);
    status = session_run(&session, session_check(&session, status));
    if (status != 0 || settings->dry_run) return status;
    fprintf(stderr, "Do it? Write yes: ");
    if (fgets(answer, sizeof(answer), stdin) != NULL && strcmp(answer, "yes\n") == 0) return 0;
    say("nothing was written");
    return EXIT_HELD;
}

int verb_bootstrap(const struct settings *settings)
{
    /* It is static because callbacks for a frozen node may refer to it until the process ends. */
    static struct session session;
    struct quorlock_bootstrap_options options = {.size = sizeof(options),
                                                 .reconfigure = settings->reconfigure,
                                                 .if_needed = settings->if_needed,
                                                 .despite_clients = settings->yes};
    int status = 0;

    if (settings->dry_run && (!settings->reconfigure || settings->json)) {
        say("--dry-run needs --reconfigure, and no --json: doctor shows the guards as JSON");
        return EXIT_USAGE;
    }
    if (settings->reconfigure && (settings->dry_run || !settings->yes)) status = confirm(settings);
    if (status != 0 || settings->dry_run) return status;
    status = session_open(&session, settings);
    if (status != 0) return status;
    status = quorlock_client_bootstrap(session.client, &options, cli_bootstrap_done, &session);
    return session_run(&session, session_check(&session, status));
}
