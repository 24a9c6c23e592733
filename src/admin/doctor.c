/* SPDX-License-Identifier: BSD-3-Clause */
#include "admin/facts.h"
#include "admin/report.h"

struct examination;

struct patient {
    struct examination *examination;
    struct examine *examine; /* NULL: done */
    struct examine_facts facts;
};

struct examination {
    struct report report;
    quorlock_doctor_cb call;
    void *arg;
    int status;
    uint32_t left;
    struct diagnosis diagnosis;
    char *facts_json;
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
    alloc_free(alloc, examination->facts_json);
    alloc_free(alloc, examination);
}

/* ---- the report ---- */

/* name_nodes - write the nodes and what is known about them. */
static void name_nodes(const struct examination *examination, struct diagnose_node ret[QUORLOCK_NODES_MAX])
{
    const struct runtime *runtime = admin_doctor_runtime_of(examination);

    for (uint32_t i = 0; i < runtime->n_nodes; i++) {
        const struct uri *uri = &runtime->nodes[i].uri;

        ret[i] = (struct diagnose_node){uri->name, uri->user, &examination->patients[i].facts};
    }
}

static void admin_doctor_judge(struct examination *examination, const struct diagnose_node *nodes)
{
    const struct runtime *runtime = admin_doctor_runtime_of(examination);
    const struct quorlock_client_options *options = &runtime->options;
    /* A client without guard and max_lease_ms expects what the guards say. */
    bool unset = options->guard == QUORLOCK_GUARD_OFF && !runtime->max_lease_given;
    struct diagnose_set set = {.nodes = nodes,
                               .n_nodes = runtime->n_nodes,
                               .quorum = runtime_quorum(runtime),
                               .set = runtime->set,
                               .prefix = runtime->key_prefix,
                               .named = options->set_name != NULL,
                               .max_lease_ms = unset ? 0 : options->max_lease_ms,
                               .allow_eviction = options->allow_eviction != 0};

    diagnose(&set, &examination->diagnosis);
}

static void admin_doctor_notify(struct report *base)
{
    struct examination *examination = CONTAINER_OF(base, struct examination, report);
    const struct runtime *runtime = admin_doctor_runtime_of(examination);
    struct quorlock_doctor_report report = {.quorum = runtime_quorum(runtime), .facts_json = examination->facts_json};
    struct diagnose_node nodes[QUORLOCK_NODES_MAX];

    name_nodes(examination, nodes);
    facts_write(nodes, runtime->n_nodes, examination->facts_json, facts_room(nodes, runtime->n_nodes));
    for (uint32_t i = 0; i < runtime->n_nodes; i++) {
        report.reachable += nodes[i].facts->reachable;
        if (examination->status == 0 && nodes[i].facts->nomem) examination->status = QUORLOCK_ERR_NOMEM;
    }
    if (examination->status == 0) {
        admin_doctor_judge(examination, nodes);
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

/* reserve - allocate all that the report will need. Returns 0, or -1 out of memory. */
static int reserve(struct examination *examination)
{
    const struct runtime *runtime = admin_doctor_runtime_of(examination);
    struct diagnosis *diagnosis = &examination->diagnosis;
    struct diagnose_node nodes[QUORLOCK_NODES_MAX];

    name_nodes(examination, nodes);
    diagnosis->room = diagnose_room(runtime->n_nodes);
    diagnosis->findings = alloc_zero(&runtime->alloc, diagnosis->room * sizeof(const struct quorlock_finding *));
    diagnosis->words = alloc_zero(&runtime->alloc, diagnosis->room * sizeof(struct diagnose_words));
    examination->facts_json = alloc_zero(&runtime->alloc, facts_room(nodes, runtime->n_nodes));
    return diagnosis->findings != NULL && diagnosis->words != NULL && examination->facts_json != NULL ? 0 : -1;
}

int doctor_begin(struct admin *all, quorlock_doctor_cb cb, void *arg)
{
    struct runtime *runtime = all->runtime;
    struct examination *examination;
    int status = report_check(all, cb != NULL);

    if (status != 0) return status;
    examination = alloc_zero(&runtime->alloc, sizeof(*examination) + runtime->n_nodes * sizeof(struct patient));
    if (examination == NULL) return runtime_fail_plainly(runtime, QUORLOCK_ERR_NOMEM);
    examination->report = (struct report){
        .all = all, .close = close_examination, .notify = admin_doctor_notify, .destroy = admin_doctor_destroy};
    examination->call = cb;
    examination->arg = arg;
    if (reserve(examination) != 0 || admin_doctor_begin(examination) != 0) {
        admin_doctor_destroy(&examination->report);
        return runtime_fail_plainly(runtime, QUORLOCK_ERR_NOMEM);
    }
    report_begin(all, &examination->report);
    return 0;
}
