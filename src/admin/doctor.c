/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doctor.c - examines all nodes at once and tells what was found
 *
 * An examination counts among the client's requests in flight, so that the client outlives it, and looks by its
 * waker whether the client is being closed: often enough to see it before the client's patience ends.
 */
#include <string.h>

#include "admin/diagnose.h"
#include "api/client.h"
#include "redis/examine.h"

#define LOOK_MS_MAX 20u

enum stage { ASKING, ENDED, TELLING };

struct examination;

struct patient {
    struct examination *examination;
    struct examine *examine; /* NULL: done */
    struct examine_facts facts;
    char version[48], refused[160];
};

struct examination {
    struct waker waker; /* first: it is handed back */
    struct quorlock_client *client;
    quorlock_examination_cb call;
    void *arg;
    enum stage stage;
    int status;
    uint32_t left;
    struct diagnosis diagnosis;
    struct patient patients[];
};

static void destroy(struct examination *examination)
{
    struct quorlock_client *client = examination->client;
    const struct alloc alloc = client->alloc;

    for (uint32_t i = 0; i < client->n_nodes; i++) examine_cancel(examination->patients[i].examine);
    alloc_free(&alloc, examination->diagnosis.findings);
    alloc_free(&alloc, examination->diagnosis.words);
    alloc_free(&alloc, examination);
}

/* ---- telling ---- */

static const char *known(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

/* "PUBLISH, TYPE"; NULL where nothing is refused */
static const char *list_refused(struct patient *patient)
{
    size_t used = 0;

    for (unsigned right = 0; right < EXAMINE_RIGHTS; right++) {
        const char *text = examine_right_text((enum examine_right)right);

        if ((patient->facts.refused_rights & (1u << right)) == 0) continue;
        if (used + strlen(text) + 3 > sizeof(patient->refused)) break;
        if (used > 0) used += (size_t)(stpcpy(patient->refused + used, ", ") - (patient->refused + used));
        used += (size_t)(stpcpy(patient->refused + used, text) - (patient->refused + used));
    }
    return used > 0 ? patient->refused : NULL;
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

    *ret = (struct quorlock_node_facts){
        .node = name,
        .reachable = here,
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
        .refused = list_refused(patient),
    };
    if (facts->version[0] != '\0') {
        (void)stpcpy(stpcpy(stpcpy(patient->version, facts->kind), " "), facts->version);
        ret->version = patient->version;
    }
    fill_guard(facts, ret);
}

static void judge(struct examination *examination)
{
    const struct quorlock_client *client = examination->client;
    const struct quorlock_client_options *options = &client->options;
    struct diagnose_node nodes[QUORLOCK_NODES_MAX];
    /* A client that only looks takes what the guards say, where it was told nothing. */
    bool unset = options->guard == QUORLOCK_GUARD_OFF && !client->max_lease_given;
    struct diagnose_set set = {.nodes = nodes,
                               .n_nodes = client->n_nodes,
                               .quorum = options_quorum(options->policy, client->n_nodes),
                               .set = client->set,
                               .named = options->set_name != NULL,
                               .max_lease_ms = unset ? 0 : options->max_lease_ms,
                               .allow_eviction = options->allow_eviction != 0};

    for (uint32_t i = 0; i < client->n_nodes; i++) {
        const struct uri *uri = &client->nodes[i].uri;

        nodes[i] = (struct diagnose_node){uri->name, uri->user, &examination->patients[i].facts};
    }
    diagnose(&set, &examination->diagnosis);
}

static void notify(struct examination *examination)
{
    const struct quorlock_client *client = examination->client;
    struct quorlock_node_facts each[QUORLOCK_NODES_MAX];
    const struct quorlock_node_facts *nodes[QUORLOCK_NODES_MAX];
    struct quorlock_examination report = {.quorum = options_quorum(client->options.policy, client->n_nodes),
                                          .nodes = nodes,
                                          .n_nodes = client->n_nodes};

    for (uint32_t i = 0; i < client->n_nodes; i++) {
        struct patient *patient = &examination->patients[i];

        fill_facts(patient, client->nodes[i].uri.name, &each[i]);
        nodes[i] = &each[i];
        report.reachable += patient->facts.reachable;
        if (examination->status == 0 && patient->facts.nomem) examination->status = QUORLOCK_NOMEM;
    }
    if (examination->status == 0) {
        judge(examination);
        report.findings = examination->diagnosis.findings;
        report.n_findings = examination->diagnosis.n_findings;
        report.severity = diagnose_severity(&examination->diagnosis);
    }
    examination->call(examination->status, &report, examination->arg);
}

/* ---- asking ---- */

static void end(struct examination *examination, int status)
{
    struct quorlock_client *client = examination->client;

    for (uint32_t i = 0; i < client->n_nodes; i++) {
        examine_cancel(examination->patients[i].examine);
        examination->patients[i].examine = NULL;
    }
    examination->status = status;
    examination->stage = ENDED;
}

static uint64_t look_us(const struct quorlock_client *client)
{
    uint32_t patience_ms = client_timeout_ms(client);

    return patience_ms >= 2 * LOOK_MS_MAX ? LOOK_MS_MAX * 1000ull : patience_ms * 500ull;
}

/*
 * Wakers are woken in the order of their times. So when this one comes back from ENDED, every lock that was due
 * has been woken before it, and a loss that is to be told stands in the list: losses are told first. A client
 * that is being closed has given its locks up, and does not wait for us much longer: it is told at once.
 */
static void on_wake(struct waker *waker)
{
    struct examination *examination = (struct examination *)waker;
    struct quorlock_client *client = examination->client;
    uint64_t now_us = client_now_us(client);

    if (examination->stage == ASKING && client->closing) {
        end(examination, QUORLOCK_CLOSED);
    } else if (examination->stage == ASKING) {
        client_wake_at(client, waker, now_us + look_us(client));
        return;
    } else if (!client->closing && (examination->stage == ENDED || client->lost.count > 0)) {
        examination->stage = TELLING;
        client_wake_at(client, waker, now_us + 1);
        return;
    }
    /* Out of the client first: the callback may close it. */
    client->in_flight--;
    client->n_examinations--;
    client_return_waker(client, waker);
    notify(examination);
    destroy(examination);
}

static void on_examined(void *arg)
{
    struct patient *patient = arg;
    struct examination *examination = patient->examination;

    patient->examine = NULL;
    examination->left--;
    if (examination->left > 0) return;
    end(examination, 0);
    client_wake_at(examination->client, &examination->waker, client_now_us(examination->client));
}

static uint64_t examine_clock(void *arg)
{
    return client_now_us(arg);
}

static int begin(struct examination *examination)
{
    struct quorlock_client *client = examination->client;

    for (uint32_t i = 0; i < client->n_nodes; i++) {
        struct patient *patient = &examination->patients[i];
        struct examine_config config = {.base = client->base,
                                        .alloc = &client->alloc,
                                        .uri = &client->nodes[i].uri,
                                        .key_prefix = client->key_prefix,
                                        .timeout_ms = client_timeout_ms(client),
                                        .now_us = examine_clock,
                                        .now_arg = client,
                                        .done = on_examined,
                                        .arg = patient};

        patient->examination = examination;
        patient->examine = examine_start(&config, &patient->facts);
        if (patient->examine == NULL) return -1;
        examination->left++;
    }
    return 0;
}

int quorlock_examine(quorlock_client *client, quorlock_examination_cb cb, void *arg)
{
    struct examination *examination;
    size_t room = diagnose_room(client->n_nodes);

    if (client->closing) {
        return client_fail(client, QUORLOCK_CLOSED, "%s", quorlock_status_text(QUORLOCK_CLOSED));
    }
    if (cb == NULL) return client_fail(client, QUORLOCK_INVAL, "the callback is NULL: a report needs a reader");
    examination = alloc_zero(&client->alloc, sizeof(*examination) + client->n_nodes * sizeof(struct patient));
    if (examination == NULL) goto nomem;
    examination->client = client;
    examination->call = cb;
    examination->arg = arg;
    examination->diagnosis.room = room;
    examination->diagnosis.findings =
        alloc_zero(&client->alloc, room * sizeof(const struct quorlock_finding *));
    examination->diagnosis.words = alloc_zero(&client->alloc, room * sizeof(struct diagnose_words));
    if (examination->diagnosis.findings == NULL || examination->diagnosis.words == NULL) goto nomem;
    if (begin(examination) != 0 || client_reserve_waker(client, &examination->waker, on_wake) != 0) goto nomem;
    client->in_flight++;
    client->n_examinations++;
    client_wake_at(client, &examination->waker, client_now_us(client) + look_us(client));
    return 0;
nomem:
    if (examination != NULL) destroy(examination);
    return client_fail(client, QUORLOCK_NOMEM, "%s", quorlock_status_text(QUORLOCK_NOMEM));
}
