/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doctor.c - quorlock doctor: what could make a lock on these nodes unsafe, and how to mend it
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "say.h"
#include "session.h"

enum { EXIT_WARNINGS = 1, EXIT_UNSAFE = 2 };
enum { COLUMNS = 9, NAME_SIZE = 300 };

/* A server that the list names twice in the same way; the library takes no such list. */
struct twin {
    char node[NAME_SIZE];
};

struct doctor {
    struct session session;
    const struct settings *settings;
    struct twin *twins;
    size_t n_twins;
    int status; /* exit status */
};

/* The twins' findings first, then those of the examination. */
static size_t doctor_count(const struct doctor *doctor, const struct quorlock_examination *report)
{
    return doctor->n_twins + report->n_findings;
}

static struct quorlock_finding doctor_finding(const struct doctor *doctor,
                                              const struct quorlock_examination *report, size_t index)
{
    if (index >= doctor->n_twins) return *report->findings[index - doctor->n_twins];
    return (struct quorlock_finding){.severity = QUORLOCK_UNSAFE,
                                     .code = "same-server",
                                     .node = doctor->twins[index].node,
                                     .text = "it is listed twice: one server would vote twice",
                                     .remedy = "list each server once"};
}

static int doctor_severity(const struct doctor *doctor, const struct quorlock_examination *report)
{
    return doctor->n_twins ? QUORLOCK_UNSAFE : report->severity;
}

static const char *severity_word(int severity)
{
    return severity == QUORLOCK_UNSAFE ? "unsafe" : severity == QUORLOCK_WARNING ? "warning" : "note";
}

/* ---- as a table ---- */

static void add_ms(struct text *text, int64_t ms)
{
    if (ms < 1000) {
        text_format(text, "%" PRId64 " ms", ms);
    } else if (ms % 1000) {
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
    text_format(text, unit ? "%.1f %s" : "%.0f %s", number, units[unit]);
}

static void add_known(struct text *text, const char *word)
{
    if (word) text_add_safe(text, word, strlen(word));
}

static void cell_clock(struct text *cell, const struct quorlock_node_facts *node)
{
    int64_t off_us = node->clock_offset_us < 0 ? -node->clock_offset_us : node->clock_offset_us;
    if (!node->has_clock) return;
    /* What is within the error of the measurement is no offset. */
    if (off_us <= node->clock_error_us) off_us = 0;
    text_format(cell, "%s", off_us == 0 ? "" : node->clock_offset_us < 0 ? "-" : "+");
    add_ms(cell, off_us / 1000);
}

static void cell_memory(struct text *cell, const struct quorlock_node_facts *node)
{
    if (node->used_memory < 0) return;
    add_bytes(cell, node->used_memory);
    if (node->maxmemory == 0) {
        text_format(cell, ", no limit");
    } else {
        text_format(cell, " of ");
        add_bytes(cell, node->maxmemory);
        text_format(cell, ", ");
        add_known(cell, node->maxmemory_policy);
    }
}

static void cell_persistence(struct text *cell, const struct quorlock_node_facts *node)
{
    if (node->appendonly < 0) return;
    text_format(cell, node->appendonly ? "aof " : "no aof");
    if (node->appendonly) add_known(cell, node->appendfsync ? node->appendfsync : "?");
}

static void cell_guard(struct text *cell, const struct quorlock_node_facts *node)
{
    if (node->guard == 0) text_format(cell, "none");
    if (node->guard < 0) text_format(cell, "unknown");
    if (node->guard <= 0) return;
    if (node->guard_nodes < 0) {
        text_format(cell, "foreign");
    } else {
        text_format(cell, "%" PRId64 " nodes, ", node->guard_nodes);
        add_ms(cell, node->guard_max_lease_ms);
    }
    if (node->quarantine_ms > 0) {
        text_format(cell, ", quarantined ");
        add_ms(cell, node->quarantine_ms);
    }
}

static void cell_add(struct text *cell, const struct quorlock_node_facts *node, int column)
{
    if (column == 0) add_known(cell, node->node);
    if (column == 1) add_known(cell, node->reachable ? node->version : "unreachable");
    if (!node->reachable) return;
    switch (column) {
    case 2:
        add_known(cell, node->mode && strcmp(node->mode, "standalone") != 0 ? node->mode : node->role);
        break;
    case 3: text_format(cell, "%.2f ms", (double)node->latency_us / 1000.0); break;
    case 4: cell_clock(cell, node); break;
    case 5: cell_memory(cell, node); break;
    case 6: cell_persistence(cell, node); break;
    case 7: cell_guard(cell, node); break;
    case 8:
        if (node->clients >= 0) text_format(cell, "%" PRId64 " of %" PRId64, node->clients, node->clients_max);
        break;
    default: break;
    }
}

static void doctor_table(struct text *text, const struct quorlock_examination *report)
{
    static const char *const heads[COLUMNS] = {"node",   "version",     "role",  "latency", "clock",
                                               "memory", "persistence", "guard", "clients"};
    size_t widths[COLUMNS];
    for (int column = 0; column < COLUMNS; column++) {
        widths[column] = strlen(heads[column]);
        for (size_t i = 0; i < report->n_nodes; i++) {
            struct text cell = {0};
            cell_add(&cell, report->nodes[i], column);
            size_t width = text_columns(&cell, 0);
            if (width > widths[column]) widths[column] = width;
            text_clear(&cell);
        }
    }
    for (size_t i = 0; i <= report->n_nodes; i++) {
        size_t line = text->length;
        for (int column = 0; column < COLUMNS; column++) {
            size_t start = text->length;
            if (i == 0) {
                text_format(text, "%s", heads[column]);
            } else {
                cell_add(text, report->nodes[i - 1], column);
            }
            text_pad(text, start, widths[column] + 2);
        }
        while (text->length > line && text->bytes[text->length - 1] == ' ') text->length--;
        text_add(text, "\n", 1);
    }
}

static void doctor_findings(const struct doctor *doctor, struct text *text,
                            const struct quorlock_examination *report)
{
    size_t counts[3] = {0};
    for (size_t i = 0; i < doctor_count(doctor, report); i++) {
        struct quorlock_finding finding = doctor_finding(doctor, report, i);
        counts[finding.severity]++;
        if (i == 0) text_format(text, "\n");
        size_t start = text->length;
        text_format(text, "%s", severity_word(finding.severity));
        text_pad(text, start, 9);
        if (finding.node) {
            add_known(text, finding.node);
            text_format(text, ": ");
        }
        add_known(text, finding.text);
        text_format(text, " [%s]\n         -> ", finding.code);
        add_known(text, finding.remedy);
        text_format(text, "\n");
    }
    text_format(text,
                "\n%s: %zu unsafe, %zu warnings, %zu notes; %" PRIu32 " of %zu nodes answered, %" PRIu32
                " make a quorum\n",
                counts[2]   ? "unsafe"
                : counts[1] ? "warnings"
                            : "sound",
                counts[2], counts[1], counts[0], report->reachable, report->n_nodes, report->quorum);
}

/* ---- as JSON ---- */

static void json_text(struct text *text, const char *name, const char *value)
{
    text_format(text, ", \"%s\": ", name);
    text_add_json(text, value);
}

static void json_number(struct text *text, const char *name, int64_t value)
{
    if (value < 0) {
        text_format(text, ", \"%s\": null", name);
    } else {
        text_format(text, ", \"%s\": %" PRId64, name, value);
    }
}

static void json_truth(struct text *text, const char *name, int value)
{
    text_format(text, ", \"%s\": %s", name, value < 0 ? "null" : value ? "true" : "false");
}

static void json_node(struct text *text, const struct quorlock_node_facts *node)
{
    text_format(text, "{\"node\": ");
    text_add_json(text, node->node);
    json_truth(text, "reachable", node->reachable);
    json_text(text, "error", node->error);
    json_number(text, "latency_us", node->latency_us);
    json_text(text, "version", node->version);
    json_text(text, "mode", node->mode);
    json_text(text, "role", node->role);
    json_text(text, "run_id", node->run_id);
    json_number(text, "replicas", node->replicas);
    json_number(text, "used_memory", node->used_memory);
    json_number(text, "maxmemory", node->maxmemory);
    json_text(text, "maxmemory_policy", node->maxmemory_policy);
    json_truth(text, "appendonly", node->appendonly);
    json_text(text, "appendfsync", node->appendfsync);
    json_truth(text, "guard", node->guard);
    json_number(text, "guard_nodes", node->guard_nodes);
    json_text(text, "guard_set", node->guard_set);
    json_number(text, "guard_max_lease_ms", node->guard_max_lease_ms);
    json_number(text, "quarantine_ms", node->quarantine_ms);
    if (node->has_clock) {
        text_format(text, ", \"clock_offset_us\": %" PRId64, node->clock_offset_us);
    } else {
        text_format(text, ", \"clock_offset_us\": null");
    }
    json_number(text, "clock_error_us", node->has_clock ? node->clock_error_us : -1);
    json_number(text, "clients", node->clients);
    json_number(text, "clients_max", node->clients_max);
    json_text(text, "refused", node->refused);
    json_truth(text, "tls", node->tls);
    text_format(text, "}");
}

static void doctor_json(const struct doctor *doctor, struct text *text,
                        const struct quorlock_examination *report)
{
    static const char *const verdicts[] = {"sound", "warnings", "unsafe"};
    text_format(text, "{\"verdict\": \"%s\", \"quorum\": %" PRIu32 ", \"reachable\": %" PRIu32 ", \"nodes\": [",
                verdicts[doctor_severity(doctor, report)], report->quorum, report->reachable);
    for (size_t i = 0; i < report->n_nodes; i++) {
        if (i) text_format(text, ", ");
        json_node(text, report->nodes[i]);
    }
    text_format(text, "], \"findings\": [");
    for (size_t i = 0; i < doctor_count(doctor, report); i++) {
        struct quorlock_finding finding = doctor_finding(doctor, report, i);
        text_format(text, "%s{\"severity\": \"%s\"", i ? ", " : "", severity_word(finding.severity));
        json_text(text, "code", finding.code);
        json_text(text, "node", finding.node);
        json_text(text, "text", finding.text);
        json_text(text, "remedy", finding.remedy);
        text_format(text, "}");
    }
    text_format(text, "]}\n");
}

/* ---- the verb ---- */

static void doctor_done(int status, const struct quorlock_examination *report, void *arg)
{
    struct doctor *doctor = arg;
    struct text text = {0};
    if (status) {
        say("%s", quorlock_status_text(status));
        doctor->status = EXIT_SYSTEM;
    } else {
        if (doctor->settings->json) {
            doctor_json(doctor, &text, report);
        } else {
            doctor_table(&text, report);
            doctor_findings(doctor, &text, report);
        }
        doctor->status = put(&text);
        if (!doctor->status) {
            int severity = doctor_severity(doctor, report);
            doctor->status = severity == QUORLOCK_UNSAFE    ? EXIT_UNSAFE
                             : severity == QUORLOCK_WARNING ? EXIT_WARNINGS
                                                            : EXIT_OK;
        }
    }
    text_clear(&text);
    session_leave(&doctor->session);
}

/* Takes entry `index` out of the list. */
static void list_cut(char *list, unsigned long index)
{
    char *start = list, *end;
    for (unsigned long i = 0; i < index && start; i++) {
        start = strchr(start, ',');
        if (start) start++;
    }
    if (!start) return;
    end = strchr(start, ',');
    if (end) {
        memmove(start, end + 1, strlen(end + 1) + 1);
    } else if (start > list) {
        start[-1] = '\0';
    }
}

/* Behind `front` in the text; NULL where it is not there. */
static const char *behind(const char *text, const char *front)
{
    const char *at = text ? strstr(text, front) : NULL;
    return at ? at + strlen(front) : NULL;
}

/* "nodes 1 and 3 are the same server, 127.0.0.1:6379, given twice": the 3 and the address. */
static bool twin_read(const char *error, unsigned long *ret_index, char *node, size_t size)
{
    const char *second = behind(error, " and "), *name = behind(error, " are the same server, ");
    if (!second || !name || strncmp(error, "nodes ", 6) != 0) return false;
    *ret_index = strtoul(second, NULL, 10);
    snprintf(node, size, "%.*s", (int)strcspn(name, ","), name);
    return *ret_index > 0;
}

/* Whether that error is about a server listed twice; then it becomes a finding and goes out of the list. */
static bool doctor_take_twin(struct doctor *doctor, const char *error, char *list)
{
    unsigned long index = 0;
    struct twin twin = {.node = ""};
    if (!twin_read(error, &index, twin.node, sizeof(twin.node))) return false;
    struct twin *twins = realloc(doctor->twins, (doctor->n_twins + 1) * sizeof(*twins));
    if (!twins) return false;
    doctor->twins = twins;
    doctor->twins[doctor->n_twins++] = twin;
    list_cut(list, index - 1);
    return true;
}

/* 0, or the exit status after saying why. */
static int doctor_open(struct doctor *doctor, const struct settings *settings)
{
    char error[SESSION_ERROR_SIZE];
    struct settings own = *settings;
    size_t length = strlen(settings->nodes);
    char *list = strdup(settings->nodes);
    if (!list) {
        say("out of memory");
        return EXIT_SYSTEM;
    }
    own.nodes = list;
    own.guard = QUORLOCK_GUARD_OFF; /* it looks, and writes none */
    /* The report tells of nodes that are down, and better. */
    if (own.verbose == 0) own.verbose = -1;
    int status = session_try(&doctor->session, &own, error, sizeof(error));
    while (status == QUORLOCK_INVAL && doctor_take_twin(doctor, error, list))
        status = session_try(&doctor->session, &own, error, sizeof(error));
    if (status) say("%s", error);
    explicit_bzero(list, length); /* may hold passwords */
    free(list);
    return session_exit(status);
}

int verb_doctor(const struct settings *settings)
{
    /* Static: where a frozen node outlives our patience it is still referred to when the process ends. */
    static struct doctor doctor;
    doctor = (struct doctor){.settings = settings, .status = EXIT_UNSAFE};
    if (settings->n_words != 0 || settings->command) {
        say("doctor takes no key: quorlock doctor");
        return EXIT_USAGE;
    }
    int status = doctor_open(&doctor, settings);
    if (!status) {
        status = quorlock_examine(doctor.session.client, doctor_done, &doctor);
        if (status) {
            say("%s", quorlock_client_error(doctor.session.client));
            doctor.status = session_exit(status);
        } else if (!session_loop(&doctor.session)) {
            doctor.status = EXIT_SYSTEM;
        }
        session_close(&doctor.session);
        status = doctor.status;
    }
    free(doctor.twins);
    return status;
}
