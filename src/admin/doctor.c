/* SPDX-License-Identifier: BSD-3-Clause */
#include "admin/diagnose.h"

#include <string.h>

#include "admin/report.h"

struct examination;

struct patient {
    struct examination *examination;
    struct examine *examine; /* NULL: done */
    struct examine_facts facts;
    char version[48], refused[160];
};

struct examination {
    struct report report;
    quorlock_doctor_cb call;
    void *arg;
    int status;
    uint32_t left;
    struct diagnosis diagnosis;
    struct patient patients[];
};

static struct runtime *admin_doctor_runtime_of(const struct examination *examination)
{
    return examination->report.all->runtime;
}

static void cancel_all(struct examination *examination)
{
    for (uint32_t i = 0; i < admin_doctor_runtime_of(examination)->n_nodes; i++) {
        examine_cancel(examination->patients[i].examine);
        examination->patients[i].examine = NULL;
    }
}

static void admin_doctor_destroy(struct report *report)
{
    struct examination *examination = CONTAINER_OF(report, struct examination, report);
    const struct alloc *alloc = &admin_doctor_runtime_of(examination)->alloc;

    cancel_all(examination);
    alloc_free(alloc, examination->diagnosis.findings);
    alloc_free(alloc, examination->diagnosis.words);
    alloc_free(alloc, examination);
}

/* ---- the report ---- */

static const char *known(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

static void fill_guard(const struct examine_facts *facts, struct quorlock_node_facts *ret)
{
    const struct examine_guard *guard = &facts->guard;

    ret->guard_nodes = ret->guard_max_lease_ms = ret->quarantine_ms = -1;
    ret->guard = guard->state == EXAMINE_GUARD_UNKNOWN ? -1 : guard->state != EXAMINE_GUARD_NONE;
    if (guard->state != EXAMINE_GUARD_THERE) return;
    ret->guard_nodes = guard->n_nodes;
    ret->guard_max_lease_ms = guard->max_lease_ms;
    ret->guard_set = guard->set;
    ret->quarantine_ms = guard->quarantine_ms;
}

static void fill_facts(struct patient *patient, const char *name, struct quorlock_node_facts *ret)
{
    const struct examine_facts *facts = &patient->facts;
    bool here = facts->reachable;

    diagnose_list_rights(patient->refused, sizeof(patient->refused), facts->refused_rights, false);
    *ret = (struct quorlock_node_facts){
        .node = name,
        .reachable = here,
        .tls = facts->tls,
        .error = here ? NULL : facts->error,
        .latency_us = here ? (int64_t)facts->latency_us : -1,
        .mode = known(facts->mode),
        .role = known(facts->role),
        .run_id = known(facts->run_id),
        .replicas = facts->role[0] != '\0' ? (int64_t)facts->replicas : -1,
        .used_memory = facts->has_memory ? (int64_t)facts->used_memory : -1,
        .maxmemory = facts->has_memory ? (int64_t)facts->maxmemory : -1,
        .maxmemory_policy = known(facts->policy),
        .appendonly = facts->has_persistence ? facts->aof : -1,
        .appendfsync = known(facts->appendfsync),
        .has_clock = facts->has_clock,
        .clock_offset_us = facts->offset_us,
        .clock_error_us = facts->offset_error_us,
        .clients = facts->has_clients ? (int64_t)facts->clients : -1,
        .clients_max = facts->has_clients ? (int64_t)facts->maxclients : -1,
        .refused = known(patient->refused),
        .tracking = here ? diagnose_has_tracking(facts) : -1,
        .msetex = here ? diagnose_has_msetex(facts) : -1,
    };
    if (facts->version[0] != '\0') {
        (void)stpcpy(stpcpy(stpcpy(patient->version, facts->kind), " "), facts->version);
        ret->version = patient->version;
    }
    fill_guard(facts, ret);
}

static void admin_doctor_judge(struct examination *examination)
{
    const struct runtime *runtime = admin_doctor_runtime_of(examination);
    const struct quorlock_client_options *options = &runtime->options;
    struct diagnose_node nodes[QUORLOCK_NODES_MAX];
    /* A client without guard and max_lease_ms expects what the guards say. */
    bool unset = options->guard == QUORLOCK_GUARD_OFF && !runtime->max_lease_given;
    struct diagnose_set set = {.nodes = nodes,
                               .n_nodes = runtime->n_nodes,
                               .quorum = runtime_quorum(runtime),
                               .set = runtime->set,
                               .named = options->set_name != NULL,
                               .max_lease_ms = unset ? 0 : options->max_lease_ms,
                               .allow_eviction = options->allow_eviction != 0};

    for (uint32_t i = 0; i < runtime->n_nodes; i++) {
        const struct uri *uri = &runtime->nodes[i].uri;

        nodes[i] = (struct diagnose_node){uri->name, uri->user, &examination->patients[i].facts};
    }
    diagnose(&set, &examination->diagnosis);
}

static void admin_doctor_notify(struct report *base)
{
    struct examination *examination = CONTAINER_OF(base, struct examination, report);
    const struct runtime *runtime = admin_doctor_runtime_of(examination);
    struct quorlock_node_facts each[QUORLOCK_NODES_MAX];
    const struct quorlock_node_facts *nodes[QUORLOCK_NODES_MAX];
    struct quorlock_doctor_report report = {
        .quorum = runtime_quorum(runtime), .nodes = nodes, .n_nodes = runtime->n_nodes};

    for (uint32_t i = 0; i < runtime->n_nodes; i++) {
        struct patient *patient = &examination->patients[i];

        fill_facts(patient, runtime->nodes[i].uri.name, &each[i]);
        nodes[i] = &each[i];
        report.reachable += patient->facts.reachable;
        if (examination->status == 0 && patient->facts.nomem) examination->status = QUORLOCK_ERR_NOMEM;
    }
    if (examination->status == 0) {
        admin_doctor_judge(examination);
        report.findings = examination->diagnosis.findings;
        report.n_findings = examination->diagnosis.n_findings;
        report.severity = diagnose_severity(&examination->diagnosis);
    }
    runtime_batch(examination->report.all->runtime, false);
    examination->call(examination->status, &report, examination->arg);
}

/* ---- asking ---- */

static void close_examination(struct report *report)
{
    struct examination *examination = CONTAINER_OF(report, struct examination, report);

    cancel_all(examination);
    examination->status = QUORLOCK_ERR_CLOSED;
    report_complete(report);
}

static void on_examined(void *arg)
{
    struct patient *patient = arg;
    struct examination *examination = patient->examination;

    patient->examine = NULL;
    if (--examination->left == 0) report_complete(&examination->report);
}

static int admin_doctor_begin(struct examination *examination)
{
    struct runtime *runtime = admin_doctor_runtime_of(examination);

    for (uint32_t i = 0; i < runtime->n_nodes; i++) {
        struct patient *patient = &examination->patients[i];
        struct examine_config config = {.system = &runtime->system,
                                        .alloc = &runtime->alloc,
                                        .link = nodes_link(runtime, i),
                                        .key_prefix = runtime->key_prefix,
                                        .done = on_examined,
                                        .arg = patient};

        patient->examination = examination;
        patient->examine = examine_start(&config, &patient->facts);
        if (patient->examine == NULL) return -1;
        examination->left++;
    }
    return 0;
}

int doctor_begin(struct admin *all, quorlock_doctor_cb cb, void *arg)
{
    struct runtime *runtime = all->runtime;
    struct examination *examination;
    struct diagnosis *diagnosis;
    int status = report_check(all, cb != NULL);

    if (status != 0) return status;
    examination = alloc_zero(&runtime->alloc, sizeof(*examination) + runtime->n_nodes * sizeof(struct patient));
    if (examination == NULL) return runtime_fail_plainly(runtime, QUORLOCK_ERR_NOMEM);
    examination->report = (struct report){
        .all = all, .close = close_examination, .notify = admin_doctor_notify, .destroy = admin_doctor_destroy};
    examination->call = cb;
    examination->arg = arg;
    diagnosis = &examination->diagnosis;
    diagnosis->room = diagnose_room(runtime->n_nodes);
    diagnosis->findings = alloc_zero(&runtime->alloc, diagnosis->room * sizeof(const struct quorlock_finding *));
    diagnosis->words = alloc_zero(&runtime->alloc, diagnosis->room * sizeof(struct diagnose_words));
    if (diagnosis->findings == NULL || diagnosis->words == NULL || admin_doctor_begin(examination) != 0) {
        admin_doctor_destroy(&examination->report);
        return runtime_fail_plainly(runtime, QUORLOCK_ERR_NOMEM);
    }
    report_begin(all, &examination->report);
    return 0;
}
