/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/sync_report.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct sync_chunk {
    struct sync_chunk *next;
    max_align_t bytes[];
};

struct sync_part {
    struct sync_part *next;
    int status;
    /* One of them: the others are NULL. */
    const struct quorlock_inspect_report *inspect;
    const struct quorlock_break_report *broken;
    const struct quorlock_list_report *list;
    const struct quorlock_bootstrap_report *bootstrap;
    const struct quorlock_doctor_report *doctor;
};

/* sync_report_keep - return a copy of the bytes; NULL for NULL, or no memory. */
static void *sync_report_keep(struct sync_reports *reports, const void *bytes, size_t size)
{
    struct sync_chunk *chunk = bytes != NULL ? malloc(sizeof(*chunk) + size) : NULL;

    if (chunk == NULL) {
        if (bytes != NULL) reports->no_memory = true;
        return NULL;
    }
    chunk->next = reports->chunks;
    reports->chunks = chunk;
    return memcpy(chunk->bytes, bytes, size);
}

static const char *keep_text(struct sync_reports *reports, const char *text)
{
    return text != NULL ? sync_report_keep(reports, text, strlen(text) + 1) : NULL;
}

static const struct quorlock_holder *const *keep_holders(struct sync_reports *reports,
                                                         const struct quorlock_holder *const *given, size_t n)
{
    const struct quorlock_holder **holders = sync_report_keep(reports, given, n * sizeof(void *));

    for (size_t i = 0; holders != NULL && i < n; i++) {
        struct quorlock_holder *copy = sync_report_keep(reports, given[i], sizeof(*copy));

        if (copy != NULL) copy->holder = keep_text(reports, given[i]->holder);
        holders[i] = copy;
    }
    return holders;
}

static struct quorlock_listed *keep_listed(struct sync_reports *reports, const struct quorlock_listed *given)
{
    struct quorlock_listed *copy = sync_report_keep(reports, given, sizeof(*given));

    if (copy == NULL) return NULL;
    copy->key = keep_text(reports, given->key);
    copy->holder = keep_text(reports, given->holder);
    return copy;
}

static struct quorlock_finding *keep_finding(struct sync_reports *reports, const struct quorlock_finding *given)
{
    struct quorlock_finding *copy = sync_report_keep(reports, given, sizeof(*given));

    if (copy == NULL) return NULL;
    copy->code = keep_text(reports, given->code);
    copy->node = keep_text(reports, given->node);
    copy->text = keep_text(reports, given->text);
    copy->remedy = keep_text(reports, given->remedy);
    return copy;
}

static void sync_reports_add(struct sync_reports *reports, struct sync_part part)
{
    struct sync_part *copy = sync_report_keep(reports, &part, sizeof(part));

    if (copy == NULL) return;
    if (reports->last != NULL) {
        reports->last->next = copy;
    } else {
        reports->first = copy;
    }
    reports->last = copy;
}

/* ---- reports, and their nodes ---- */

static struct quorlock_inspect_node *keep_inspect_node(struct sync_reports *reports,
                                                       const struct quorlock_inspect_node *given)
{
    struct quorlock_inspect_node *copy = sync_report_keep(reports, given, sizeof(*given));

    if (copy == NULL) return NULL;
    copy->node = keep_text(reports, given->node);
    copy->holder = keep_text(reports, given->holder);
    copy->error = keep_text(reports, given->error);
    copy->type = keep_text(reports, given->type);
    copy->quarantine_why = keep_text(reports, given->quarantine_why);
    copy->holders = keep_holders(reports, given->holders, given->n_holders);
    return copy;
}

void sync_reports_keep_inspect(struct sync_reports *reports, int status, const struct quorlock_inspect_report *given)
{
    struct quorlock_inspect_report *copy = sync_report_keep(reports, given, sizeof(*given));
    const struct quorlock_inspect_node **nodes =
        sync_report_keep(reports, given->nodes, given->n_nodes * sizeof(void *));

    for (size_t i = 0; nodes != NULL && i < given->n_nodes; i++) nodes[i] = keep_inspect_node(reports, given->nodes[i]);
    if (copy == NULL) return;
    copy->holder = keep_text(reports, given->holder);
    copy->nodes = nodes;
    sync_reports_add(reports, (struct sync_part){.status = status, .inspect = copy});
}

static struct quorlock_break_node *keep_break_node(struct sync_reports *reports,
                                                   const struct quorlock_break_node *given)
{
    struct quorlock_break_node *copy = sync_report_keep(reports, given, sizeof(*given));

    if (copy == NULL) return NULL;
    copy->node = keep_text(reports, given->node);
    copy->holder = keep_text(reports, given->holder);
    copy->error = keep_text(reports, given->error);
    copy->type = keep_text(reports, given->type);
    copy->holders = keep_holders(reports, given->holders, given->n_holders);
    return copy;
}

void sync_reports_keep_break(struct sync_reports *reports, int status, const struct quorlock_break_report *given)
{
    struct quorlock_break_report *copy = sync_report_keep(reports, given, sizeof(*given));
    const struct quorlock_break_node **nodes = sync_report_keep(reports, given->nodes, given->n_nodes * sizeof(void *));

    for (size_t i = 0; nodes != NULL && i < given->n_nodes; i++) nodes[i] = keep_break_node(reports, given->nodes[i]);
    if (copy == NULL) return;
    copy->holder = keep_text(reports, given->holder);
    copy->nodes = nodes;
    sync_reports_add(reports, (struct sync_part){.status = status, .broken = copy});
}

static struct quorlock_list_node *keep_list_node(struct sync_reports *reports, const struct quorlock_list_node *given)
{
    struct quorlock_list_node *copy = sync_report_keep(reports, given, sizeof(*given));

    if (copy == NULL) return NULL;
    copy->node = keep_text(reports, given->node);
    copy->error = keep_text(reports, given->error);
    return copy;
}

void sync_reports_keep_list(struct sync_reports *reports, int status, const struct quorlock_list_report *given)
{
    struct quorlock_list_report *copy = sync_report_keep(reports, given, sizeof(*given));
    const struct quorlock_listed **locks = sync_report_keep(reports, given->locks, given->n_locks * sizeof(void *));
    const struct quorlock_list_node **nodes = sync_report_keep(reports, given->nodes, given->n_nodes * sizeof(void *));
    const char **others = sync_report_keep(reports, given->other_keys, given->n_other_keys * sizeof(void *));

    for (size_t i = 0; others != NULL && i < given->n_other_keys; i++)
        others[i] = keep_text(reports, given->other_keys[i]);
    for (size_t i = 0; locks != NULL && i < given->n_locks; i++) locks[i] = keep_listed(reports, given->locks[i]);
    for (size_t i = 0; nodes != NULL && i < given->n_nodes; i++) nodes[i] = keep_list_node(reports, given->nodes[i]);
    if (copy == NULL) return;
    copy->locks = locks;
    copy->nodes = nodes;
    copy->other_keys = others;
    sync_reports_add(reports, (struct sync_part){.status = status, .list = copy});
}

static struct quorlock_bootstrap_node *keep_bootstrap_node(struct sync_reports *reports,
                                                           const struct quorlock_bootstrap_node *given)
{
    struct quorlock_bootstrap_node *copy = sync_report_keep(reports, given, sizeof(*given));

    if (copy == NULL) return NULL;
    copy->node = keep_text(reports, given->node);
    copy->guard = keep_text(reports, given->guard);
    copy->error = keep_text(reports, given->error);
    return copy;
}

void sync_reports_keep_bootstrap(struct sync_reports *reports, int status,
                                 const struct quorlock_bootstrap_report *given)
{
    struct quorlock_bootstrap_report *copy = sync_report_keep(reports, given, sizeof(*given));
    const struct quorlock_bootstrap_node **nodes =
        sync_report_keep(reports, given->nodes, given->n_nodes * sizeof(void *));

    for (size_t i = 0; nodes != NULL && i < given->n_nodes; i++)
        nodes[i] = keep_bootstrap_node(reports, given->nodes[i]);
    if (copy == NULL) return;
    copy->nodes = nodes;
    sync_reports_add(reports, (struct sync_part){.status = status, .bootstrap = copy});
}

void sync_reports_keep_doctor(struct sync_reports *reports, int status, const struct quorlock_doctor_report *given)
{
    struct quorlock_doctor_report *copy = sync_report_keep(reports, given, sizeof(*given));
    const struct quorlock_finding **findings =
        sync_report_keep(reports, given->findings, given->n_findings * sizeof(void *));

    for (size_t i = 0; findings != NULL && i < given->n_findings; i++)
        findings[i] = keep_finding(reports, given->findings[i]);
    if (copy == NULL) return;
    copy->findings = findings;
    copy->facts_json = keep_text(reports, given->facts_json);
    sync_reports_add(reports, (struct sync_part){.status = status, .doctor = copy});
}

int sync_reports_tell(struct sync_reports *reports, int status, const struct sync_listener *listener)
{
    struct sync_chunk *chunk = reports->chunks;

    for (const struct sync_part *part = reports->first; part != NULL && !reports->no_memory; part = part->next) {
        if (part->inspect != NULL) listener->inspect(part->status, part->inspect, listener->arg);
        if (part->broken != NULL) listener->broken(part->status, part->broken, listener->arg);
        if (part->list != NULL) listener->list(part->status, part->list, listener->arg);
        if (part->bootstrap != NULL) listener->bootstrap(part->status, part->bootstrap, listener->arg);
        if (part->doctor != NULL) listener->doctor(part->status, part->doctor, listener->arg);
    }
    while (chunk != NULL) {
        struct sync_chunk *next = chunk->next;

        free(chunk);
        chunk = next;
    }
    return reports->no_memory ? QUORLOCK_ERR_NOMEM : status;
}
