/* SPDX-License-Identifier: BSD-3-Clause */
/* doctor.c - quorlock doctor: find what could make a lock on the nodes unsafe, and how to mend it */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "cli.h"
#include "document.h"
#include "say.h"

enum { NAME_SIZE = 300 };

struct doctor {
    struct session session;
    struct settings settings;
    /* Servers that are listed twice; the library refuses such a list. */
    char twins[QUORLOCK_NODES_MAX][NAME_SIZE];
    size_t n_twins;
};

/* count_findings - count the findings: first those about twins, then those of the examination. */
static size_t count_findings(const struct doctor *doctor, const struct quorlock_doctor_report *report)
{
    return doctor->n_twins + report->n_findings;
}

static struct quorlock_finding finding_at(const struct doctor *doctor, const struct quorlock_doctor_report *report,
                                          size_t index)
{
    if (index >= doctor->n_twins) return *report->findings[index - doctor->n_twins];
    return (struct quorlock_finding){.severity = QUORLOCK_SEVERITY_UNSAFE,
                                     .code = "same-server",
                                     .node = doctor->twins[index],
                                     .text = "it is listed twice: one server would vote twice",
                                     .remedy = "list each server once"};
}

/* Indexed by severity. */
static const char *const severities[] = {"note", "warning", "unsafe", "outage"};
static const char *const verdicts[] = {"sound", "warnings", "unsafe", "outage"};

/* cli_doctor_verdict - return the worst severity. An outage does not hide that the nodes are unsafe, too. */
static int cli_doctor_verdict(const struct doctor *doctor, const struct quorlock_doctor_report *report)
{
    int verdict = QUORLOCK_SEVERITY_NOTE;

    for (size_t i = 0; i < count_findings(doctor, report); i++) {
        int severity = finding_at(doctor, report, i).severity;

        if (severity == QUORLOCK_SEVERITY_UNSAFE) return severity;
        if (severity > verdict) verdict = severity;
    }
    return verdict;
}

/* cli_doctor_status - return the exit status of a verdict. */
static int cli_doctor_status(int verdict)
{
    return verdict == QUORLOCK_SEVERITY_OUTAGE ? 2 : verdict;
}

/* ---- as a table ---- */

enum column { NODE, VERSION, ROLE, LATENCY, CLOCK, MEMORY, PERSISTENCE, GUARD, CLIENTS, FEATURES, N_COLUMNS };

static void add_ms(struct text *text, int64_t ms)
{
    if (ms < 1000) {
        text_format(text, "%" PRId64 " ms", ms);
    } else if (ms % 1000 != 0) {
        text_format(text, "%" PRId64 ".%" PRId64 " s", ms / 1000, ms % 1000 / 100);
    } else {
        text_format(text, "%" PRId64 " s", ms / 1000);
    }
}

static void add_bytes(struct text *text, int64_t bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    double number = (double)bytes;
    size_t unit = 0;

    for (; number >= 1024 && unit < 4; unit++) number /= 1024;
    text_format(text, unit > 0 ? "%.1f %s" : "%.0f %s", number, units[unit]);
}

static void add_clock(struct text *cell, const json_t *node)
{
    int64_t offset_us = document_number_of(node, "clock_offset_us");
    int64_t error_us = document_number_of(node, "clock_error_us");
    int64_t off_us = offset_us < 0 ? -offset_us : offset_us;

    if (error_us < 0) return;
    /* An offset within the error of the measurement counts as 0. */
    if (off_us <= error_us) off_us = 0;
    text_format(cell, "%s", off_us == 0 ? "" : offset_us < 0 ? "-" : "+");
    add_ms(cell, off_us / 1000);
}

static void add_memory(struct text *cell, const json_t *node)
{
    int64_t used = document_number_of(node, "used_memory"), most = document_number_of(node, "maxmemory");

    if (used < 0) return;
    add_bytes(cell, used);
    if (most == 0) {
        text_format(cell, ", no limit");
    } else {
        text_format(cell, " of ");
        add_bytes(cell, most);
        text_format(cell, ", ");
        text_add_known(cell, document_text_of(node, "maxmemory_policy"));
    }
}

static void add_persistence(struct text *cell, const json_t *node)
{
    int appendonly = document_truth_of(node, "appendonly");
    const char *appendfsync = document_text_of(node, "appendfsync");

    if (appendonly < 0) return;
    text_format(cell, appendonly != 0 ? "aof " : "no aof");
    if (appendonly != 0) text_add_known(cell, appendfsync != NULL ? appendfsync : "?");
}

static void cli_doctor_add_guard(struct text *cell, const json_t *node)
{
    int guard = document_truth_of(node, "guard");
    int64_t n_nodes = document_number_of(node, "guard_nodes");
    int64_t quarantine_ms = document_number_of(node, "quarantine_ms");

    if (guard <= 0) {
        text_format(cell, guard == 0 ? "none" : "unknown");
        return;
    }
    if (n_nodes < 0) {
        text_format(cell, "foreign");
    } else {
        text_format(cell, "%" PRId64 " nodes, ", n_nodes);
        add_ms(cell, document_number_of(node, "guard_max_lease_ms"));
    }
    if (quarantine_ms > 0) {
        text_format(cell, ", quarantined ");
        add_ms(cell, quarantine_ms);
    }
}

static void cli_doctor_add_role(struct text *cell, const json_t *node)
{
    const char *mode = document_text_of(node, "mode");

    text_add_known(cell, mode != NULL && strcmp(mode, "standalone") != 0 ? mode : document_text_of(node, "role"));
}

static void cli_doctor_add_clients(struct text *cell, const json_t *node)
{
    int64_t clients = document_number_of(node, "clients");

    if (clients < 0) return;
    text_format(cell, "%" PRId64 " of %" PRId64, clients, document_number_of(node, "clients_max"));
}

static void cli_doctor_add_cell(struct text *cell, const void *rows, size_t row, size_t column)
{
    const json_t *node = json_array_get(rows, row);
    bool reachable = document_truth_of(node, "reachable") > 0;

    if (column == NODE) text_add_known(cell, document_text_of(node, "node"));
    if (column == VERSION) text_add_known(cell, reachable ? document_text_of(node, "version") : "unreachable");
    if (!reachable) return;
    switch (column) {
    case ROLE: cli_doctor_add_role(cell, node); break;
    case LATENCY: text_format(cell, "%.2f ms", (double)document_number_of(node, "latency_us") / 1000.0); break;
    case CLOCK: add_clock(cell, node); break;
    case MEMORY: add_memory(cell, node); break;
    case PERSISTENCE: add_persistence(cell, node); break;
    case GUARD: cli_doctor_add_guard(cell, node); break;
    case CLIENTS: cli_doctor_add_clients(cell, node); break;
    case FEATURES:
        text_format(cell, "%s%s", document_truth_of(node, "tracking") > 0 ? "tracking" : "no tracking",
                    document_truth_of(node, "msetex") > 0 ? ", MSETEX" : "");
        break;
    default: break;
    }
}

static void add_findings(struct text *text, const struct doctor *doctor, const struct quorlock_doctor_report *report,
                         size_t n_nodes)
{
    size_t counts[4] = {0};

    for (size_t i = 0; i < count_findings(doctor, report); i++) {
        struct quorlock_finding finding = finding_at(doctor, report, i);
        size_t start;

        counts[finding.severity]++;
        if (i == 0) text_format(text, "\n");
        start = text->length;
        text_format(text, "%s", severities[finding.severity]);
        text_pad(text, start, 9);
        text_add_known(text, finding.node);
        if (finding.node != NULL) text_format(text, ": ");
        text_add_known(text, finding.text);
        text_format(text, " [%s]\n         -> ", finding.code);
        text_add_known(text, finding.remedy);
        text_format(text, "\n");
    }
    text_format(text,
                "\n%s: %zu unsafe, %zu warnings, %zu notes; %" PRIu32 " of %zu nodes answered, %" PRIu32
                " make a quorum\n",
                verdicts[cli_doctor_verdict(doctor, report)], counts[2], counts[1], counts[0], report->reachable,
                n_nodes, report->quorum);
}

/* ---- as JSON ---- */

static json_t *finding_json(const struct quorlock_finding *finding)
{
    json_t *object = json_object();

    document_add(&object, "severity", document_text(severities[finding->severity]));
    document_add(&object, "code", document_text(finding->code));
    document_add(&object, "node", document_text(finding->node));
    document_add(&object, "text", document_text(finding->text));
    document_add(&object, "remedy", document_text(finding->remedy));
    return object;
}

/* write_json - the facts about the nodes are a part of it as they are. */
static void write_json(struct text *text, const struct doctor *doctor, const struct quorlock_doctor_report *report)
{
    json_t *object = json_object(), *findings = json_array();

    for (size_t i = 0; i < count_findings(doctor, report); i++) {
        struct quorlock_finding finding = finding_at(doctor, report, i);

        document_append(&findings, finding_json(&finding));
    }
    document_add(&object, "verdict", document_text(verdicts[cli_doctor_verdict(doctor, report)]));
    document_add(&object, "quorum", document_number(report->quorum, 0));
    document_add(&object, "reachable", document_number(report->reachable, 0));
    document_add(&object, "nodes", document_read(report->facts_json));
    document_add(&object, "findings", findings);
    document_write(text, object);
}

static void write_table(struct text *text, const struct doctor *doctor, const struct quorlock_doctor_report *report)
{
    static const char *const heads[N_COLUMNS] = {"node",   "version",     "role",  "latency", "clock",
                                                 "memory", "persistence", "guard", "clients", "features"};
    json_t *nodes = document_read(report->facts_json);

    if (nodes == NULL) text->failed = true;
    text_add_table(text, heads, N_COLUMNS, cli_doctor_add_cell, nodes, json_array_size(nodes));
    add_findings(text, doctor, report, json_array_size(nodes));
    json_decref(nodes);
}

/* ---- the verb ---- */

static void cli_doctor_done(int status, const struct quorlock_doctor_report *report, void *arg)
{
    struct doctor *doctor = arg;
    struct text text = {0};

    session_leave(&doctor->session);
    if (status != 0) {
        say("%s", quorlock_status_text(status));
        doctor->session.status = EXIT_SYSTEM;
        return;
    }
    if (doctor->settings.json) {
        write_json(&text, doctor, report);
    } else {
        write_table(&text, doctor, report);
    }
    doctor->session.status = put(&text);
    if (doctor->session.status == 0) doctor->session.status = cli_doctor_status(cli_doctor_verdict(doctor, report));
}

/*
 * take_twin - if the client refused a server that is listed twice, make that a finding, and remove the second entry
 *
 * The error is "nodes 1 and 3 are the same server, 127.0.0.1:6379, given twice". This reads the 3 and the address.
 */
static bool take_twin(struct doctor *doctor, char *list)
{
    static const char and[] = " and ", same[] = " are the same server, ";
    const char *second = strstr(doctor->session.error.text, and), *name = strstr(doctor->session.error.text, same);
    unsigned long index = second != NULL ? strtoul(second + strlen(and), NULL, 10) : 0;
    char *comma = list, *end;

    if (index < 2 || name == NULL || doctor->n_twins == QUORLOCK_NODES_MAX) return false;
    name += strlen(same);
    snprintf(doctor->twins[doctor->n_twins++], NAME_SIZE, "%.*s", (int)strcspn(name, ","), name);
    for (; index > 1 && *comma != '\0'; index--) comma = strchrnul(comma + 1, ',');
    end = *comma != '\0' ? strchrnul(comma + 1, ',') : comma;
    memmove(comma, end, strlen(end) + 1);
    return true;
}

/* open_session - make the client: 0, or the exit status after a message. */
static int open_session(struct doctor *doctor, const char *nodes)
{
    char *list = strdup(nodes);
    int status;

    if (list == NULL) {
        say("out of memory");
        return EXIT_SYSTEM;
    }
    doctor->settings.values.nodes = list;
    do {
        status = session_try(&doctor->session, &doctor->settings);
    } while (status == QUORLOCK_ERR_INVAL && take_twin(doctor, list));
    if (status != 0) say("%s", doctor->session.error.text);
    if (status == QUORLOCK_ERR_INVAL) session_blame(&doctor->settings);
    explicit_bzero(list, strlen(nodes)); /* it may have passwords */
    free(list);
    return session_exit(status);
}

int verb_doctor(const struct settings *settings)
{
    /* It is static because callbacks for a frozen node may refer to it until the process ends. */
    static struct doctor doctor;
    int status;

    if (settings->acl != NULL) return acl_print(settings);
    if (args_asked(settings, "dialect") != NULL || settings->no_notices) {
        say("doctor takes --dialect and --no-notices only with --acl USER");
        return EXIT_USAGE;
    }
    doctor = (struct doctor){.settings = *settings};
    doctor.settings.values.client.dialect = QUORLOCK_DIALECT_PLAIN;
    /* The report has the reasons why nodes are down. */
    if (settings->verbose == 0) doctor.settings.verbose = -1;
    status = open_session(&doctor, settings->values.nodes);
    if (status != 0) return status;
    status = quorlock_client_doctor(doctor.session.client, cli_doctor_done, &doctor);
    return session_run(&doctor.session, session_check(&doctor.session, status));
}
