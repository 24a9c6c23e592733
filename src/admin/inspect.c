/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inspect.c - who holds a key, node by node; and breaking it. Bootstrap looks at the guards in the same way
 */
#include "admin/inspect_impl.h"

#include <string.h>

#include "lock/owner.h"

static void destroy(struct inspect *inspect)
{
    struct quorlock_client *client = inspect->client;
    const struct alloc alloc = client->alloc;

    for (uint32_t i = 0; i < client->n_nodes; i++) {
        alloc_free(&alloc, inspect->nodes[i].error);
        alloc_free(&alloc, inspect->nodes[i].holder);
        alloc_free(&alloc, inspect->nodes[i].guard);
        alloc_free(&alloc, inspect->nodes[i].type);
    }
    client_return_waker(client, &inspect->waker);
    alloc_free(&alloc, inspect->key);
    alloc_free(&alloc, inspect);
}

static void complete(struct inspect *inspect, int status)
{
    if (inspect->complete) return;
    inspect->complete = true;
    inspect->status = status;
    client_wake_at(inspect->client, &inspect->waker, UINT64_MAX);
    client_run_soon(inspect->client);
}

static void judge(struct inspect *inspect)
{
    int status = 0;

    do {
        for (uint32_t i = 0; i < inspect->client->n_nodes; i++) {
            if (inspect->nodes[i].answer < ANSWER_IN) return;
        }
    } while (inspect->bootstrap && bootstrap_step(inspect, &status));
    if (!bootstrap_waits(inspect)) complete(inspect, status);
}

static void no_answer(struct inspect *inspect, uint32_t index, enum node_fault fault, const char *why)
{
    struct inspect_node *node = &inspect->nodes[index];

    node->answer = ANSWER_NONE;
    node->fault = fault;
    alloc_free(&inspect->client->alloc, node->error);
    node->error = alloc_text(&inspect->client->alloc, why, strlen(why));
}

static void ask(struct inspect *inspect, uint32_t index, bool use_eval)
{
    struct request request = {.owner = inspect, .kind = REQUEST_INSPECT};
    struct inspect_node *node = &inspect->nodes[index];
    const char *why = node_why(inspect->client->nodes[index].node);
    struct node_request node_request = {.op = node->op,
                                        .use_eval = use_eval,
                                        NODE_KEY(inspect->key, inspect->key_length),
                                        .force = inspect->reconfigure,
                                        .closes = inspect->stage == BOOTSTRAP_CLOSES,
                                        .lease_ms = inspect->lease_ms,
                                        .longest_ms = inspect->longest_ms,
                                        .timeout_ms = client_timeout_ms(inspect->client)};
    int result = client_send(inspect->client, index, &node_request, &request);

    if (result == NODE_SENT) {
        inspect->in_flight++;
        node->answer = ANSWER_ASKED;
        node->tried |= node->op == NODE_BOOTSTRAP;
    } else if (result == NODE_NOT_READY && *why != '\0') {
        no_answer(inspect, index, NODE_FAULT_UNREACHABLE, why);
    } else {
        no_answer(inspect, index, NODE_FAULT_LIMIT, "too many requests wait for this node");
    }
}

void inspect_ask(struct inspect *inspect, uint32_t index, enum node_op op)
{
    inspect->nodes[index].op = op;
    inspect->nodes[index].again = false;
    ask(inspect, index, false);
}

static void look_at(struct inspect *inspect, uint32_t index)
{
    struct node *node = inspect->client->nodes[index].node;

    if (inspect->nodes[index].answer != ANSWER_WAITED_FOR) return;
    switch (node_state_now(node)) {
    case NODE_READY:
    case NODE_QUARANTINED: inspect_ask(inspect, index, inspect->op); break;
    case NODE_DOWN: no_answer(inspect, index, node_fault_now(node), node_why(node)); break;
    case NODE_CONNECTING: break;
    }
}

void inspect_on_node_state(struct quorlock_client *client, uint32_t index)
{
    for (struct inspect *inspect = client->inspections; inspect != NULL; inspect = inspect->next) {
        if (inspect->complete) continue;
        look_at(inspect, index);
        judge(inspect);
    }
}

void inspect_on_reply(struct inspect *inspect, uint32_t index, const struct node_reply *reply)
{
    const struct alloc *alloc = &inspect->client->alloc;
    struct inspect_node *node = &inspect->nodes[index];

    inspect->in_flight--;
    if (inspect->complete) return;
    if (reply->outcome == NODE_NOSCRIPT && !node->again) {
        node->again = true;
        ask(inspect, index, true);
        judge(inspect);
        return;
    }
    node->answer = ANSWER_IN;
    node->outcome = reply->outcome;
    node->fault = reply->fault;
    node->ttl_ms = reply->ttl_ms;
    node->latency_us = reply->latency_us;
    node->fence = reply->fence;
    node->quarantine_ms = reply->quarantine_ms;
    node->has_guard = reply->has_guard;
    node->count = reply->count;
    alloc_free(alloc, node->error);
    alloc_free(alloc, node->holder);
    alloc_free(alloc, node->type);
    node->error = node->holder = node->type = NULL;
    if (reply->error != NULL) node->error = alloc_text(alloc, reply->error, strlen(reply->error));
    if (reply->holder != NULL) node->holder = owner_copy(alloc, reply->holder, reply->holder_length);
    if (reply->type != NULL) node->type = owner_copy(alloc, reply->type, reply->type_length);
    if (inspect->bootstrap) bootstrap_on_reply(inspect, index, reply);
    judge(inspect);
}

static void on_deadline(struct waker *waker)
{
    struct inspect *inspect = (struct inspect *)waker;

    if (bootstrap_waits(inspect)) {
        bootstrap_wait_over(inspect);
        judge(inspect);
        return;
    }
    for (uint32_t i = 0; i < inspect->client->n_nodes; i++) {
        struct node *node = inspect->client->nodes[i].node;
        const char *why = node_why(node);

        if (inspect->nodes[i].answer >= ANSWER_IN) continue;
        no_answer(inspect, i, NODE_FAULT_TIMEOUT, *why != '\0' ? why : "no answer in time");
    }
    judge(inspect);
}

void inspect_set_deadline(struct inspect *inspect)
{
    struct quorlock_client *client = inspect->client;

    client_wake_at(client, &inspect->waker, client_now_us(client) + 2000ull * client_timeout_ms(client));
}

void inspect_ask_all(struct inspect *inspect)
{
    inspect_set_deadline(inspect);
    for (uint32_t i = 0; i < inspect->client->n_nodes; i++) {
        inspect->nodes[i].answer = ANSWER_WAITED_FOR;
        look_at(inspect, i);
    }
}

static void report_node(const struct inspect *inspect, uint32_t index, struct quorlock_node_report *ret)
{
    const struct inspect_node *node = &inspect->nodes[index];

    *ret = (struct quorlock_node_report){.node = node_name(inspect->client->nodes[index].node),
                                         .state = "down",
                                         .ttl_ms = -2,
                                         .latency_us = node->latency_us,
                                         .error = node->error,
                                         .holder = node->holder,
                                         .fence = node->fence,
                                         .quarantine_ms = -1};
    if (inspect->bootstrap) {
        bootstrap_report(inspect, index, ret);
        return;
    }
    if (node->answer != ANSWER_IN || node->outcome == NODE_UNKNOWN) return;
    ret->ttl_ms = node->ttl_ms;
    if (node->has_guard) ret->quarantine_ms = node->quarantine_ms > 0 ? node->quarantine_ms : 0;
    if (node->outcome == NODE_MISSING) {
        ret->state = "free";
    } else if (node->outcome == NODE_YES) {
        ret->count = node->count;
        /* A value of another type, which break has deleted. */
        ret->state = node->holder != NULL ? "held" : "foreign";
        ret->type = node->type;
        ret->broken = inspect->op == NODE_BREAK;
    } else {
        ret->state = node->fault == NODE_FAULT_FOREIGN ? "foreign" : "error";
        ret->type = node->type;
    }
}

/* The Qth largest remaining lease of that holder, by the nodes' own clocks. */
static uint32_t quorum_ttl_ms(const struct quorlock_report *report, const char *holder)
{
    uint32_t best_ms = 0;

    for (size_t i = 0; i < report->n_nodes; i++) {
        int64_t ttl_ms = report->nodes[i]->ttl_ms;
        uint32_t as_long = 0;

        if (report->nodes[i]->holder == NULL || !quorlock_same_owner(report->nodes[i]->holder, holder))
            continue;
        for (size_t k = 0; k < report->n_nodes; k++) {
            const struct quorlock_node_report *other = report->nodes[k];

            if (other->holder == NULL || !quorlock_same_owner(other->holder, holder)) continue;
            as_long += other->ttl_ms == -1 || (ttl_ms != -1 && other->ttl_ms >= ttl_ms);
        }
        if (as_long < report->quorum) continue;
        if (ttl_ms == -1 || ttl_ms > UINT32_MAX) return UINT32_MAX;
        if (ttl_ms > 0 && (uint32_t)ttl_ms > best_ms) best_ms = (uint32_t)ttl_ms;
    }
    return best_ms;
}

static void find_holder(struct quorlock_report *report)
{
    for (size_t i = 0; i < report->n_nodes; i++) {
        const char *holder = report->nodes[i]->holder;
        uint32_t same = 0;
        uint32_t equal = 0;

        if (holder == NULL) continue;
        for (size_t k = 0; k < report->n_nodes; k++) {
            const char *other = report->nodes[k]->holder;

            if (other == NULL || !quorlock_same_owner(other, holder)) continue;
            same++;
            equal += strcmp(other, holder) == 0;
        }
        if (same < report->quorum) continue;
        report->held = 1;
        report->holder = equal == same ? holder : NULL;
        report->valid_ms = quorum_ttl_ms(report, holder);
        return;
    }
}

static void notify(struct inspect *inspect)
{
    struct quorlock_client *client = inspect->client;
    struct quorlock_node_report each[QUORLOCK_NODES_MAX];
    const struct quorlock_node_report *nodes[QUORLOCK_NODES_MAX];
    struct quorlock_report report = {.key = inspect->name,
                                     .quorum = options_quorum(client->options.policy, client->n_nodes),
                                     .nodes = nodes,
                                     .n_nodes = client->n_nodes};
    int status = inspect->status;

    for (uint32_t i = 0; i < client->n_nodes; i++) {
        report_node(inspect, i, &each[i]);
        nodes[i] = &each[i];
        report.answered +=
            inspect->nodes[i].answer == ANSWER_IN && inspect->nodes[i].outcome != NODE_UNKNOWN &&
            (inspect->nodes[i].outcome != NODE_ERROR || inspect->nodes[i].fault == NODE_FAULT_FOREIGN);
    }
    if (!inspect->bootstrap) find_holder(&report);
    if (status == 0 && report.answered < report.quorum) status = QUORLOCK_NOQUORUM;
    inspect->notified = true;
    inspect->call(status, &report, inspect->arg);
}

size_t inspect_waiting(const struct quorlock_client *client)
{
    size_t waiting = 0;

    for (const struct inspect *inspect = client->inspections; inspect != NULL; inspect = inspect->next) {
        waiting += inspect->complete && !inspect->notified;
    }
    return waiting;
}

void inspect_notify(struct quorlock_client *client)
{
    for (struct inspect *inspect = client->inspections; inspect != NULL; inspect = inspect->next) {
        if (!inspect->complete || inspect->notified) continue;
        notify(inspect);
        return;
    }
}

void inspect_sweep(struct quorlock_client *client)
{
    struct inspect **at = &client->inspections;

    /* A callback may have begun new ones, in front; and one in which this runs again may hold a place. */
    if (client->running > 1) return;
    while (*at != NULL) {
        struct inspect *inspect = *at;

        if (inspect->notified && inspect->in_flight == 0) {
            *at = inspect->next;
            destroy(inspect);
        } else {
            at = &inspect->next;
        }
    }
}

void inspect_close_all(struct quorlock_client *client)
{
    for (struct inspect *inspect = client->inspections; inspect != NULL; inspect = inspect->next) {
        complete(inspect, QUORLOCK_CLOSED);
    }
}

void inspect_drop_all(struct quorlock_client *client)
{
    while (client->inspections != NULL) {
        struct inspect *inspect = client->inspections;

        client->inspections = inspect->next;
        destroy(inspect);
    }
}

static int copy_key(struct inspect *inspect, const char *key)
{
    /* The guard is not of this client's key space. */
    const char *prefix = inspect->bootstrap ? "" : inspect->client->key_prefix;

    inspect->key = alloc_joined(&inspect->client->alloc, prefix, key, &inspect->key_length);
    if (inspect->key == NULL) return -1;
    inspect->name = inspect->key + strlen(prefix);
    return 0;
}

static int start(struct quorlock_client *client, enum node_op op, const char *key,
                 const struct quorlock_bootstrap_options *bootstrap, quorlock_report_cb cb, void *arg)
{
    struct inspect *inspect;
    int status;

    if (client->closing) {
        return client_fail(client, QUORLOCK_CLOSED, "%s", quorlock_status_text(QUORLOCK_CLOSED));
    }
    if (cb == NULL) return client_fail(client, QUORLOCK_INVAL, "the callback is NULL: a report needs a reader");
    status = bootstrap != NULL ? 0 : options_key(key, &client->options, &client->error);
    if (status != 0) return status;
    inspect = alloc_zero(&client->alloc, sizeof(*inspect) + client->n_nodes * sizeof(struct inspect_node));
    if (inspect == NULL) goto nomem;
    inspect->client = client;
    inspect->bootstrap = bootstrap != NULL;
    inspect->reconfigure = bootstrap != NULL && bootstrap->reconfigure;
    if (copy_key(inspect, key) != 0) goto nomem;
    if (client_reserve_waker(client, &inspect->waker, on_deadline) != 0) goto nomem;
    inspect->op = op;
    inspect->call = cb;
    inspect->arg = arg;
    inspect->next = client->inspections;
    client->inspections = inspect;
    for (uint32_t i = 0; i < client->n_nodes; i++) inspect->nodes[i].ttl_ms = -2;
    inspect_ask_all(inspect);
    judge(inspect);
    return 0;
nomem:
    if (inspect != NULL) alloc_free(&client->alloc, inspect->key);
    alloc_free(&client->alloc, inspect);
    return client_fail(client, QUORLOCK_NOMEM, "%s", quorlock_status_text(QUORLOCK_NOMEM));
}

int quorlock_inspect(quorlock_client *client, const char *key, quorlock_report_cb cb, void *arg)
{
    return start(client, NODE_PEEK, key, NULL, cb, arg);
}

int quorlock_break(quorlock_client *client, const char *key, quorlock_report_cb cb, void *arg)
{
    return start(client, NODE_BREAK, key, NULL, cb, arg);
}

int quorlock_bootstrap(quorlock_client *client, const struct quorlock_bootstrap_options *options,
                       quorlock_report_cb cb, void *arg)
{
    struct quorlock_bootstrap_options checked;
    int status = options_bootstrap(&checked, options, &client->error);

    if (status != 0) return status;
    if (client->options.guard != QUORLOCK_GUARD_OFF) {
        return client_fail(client, QUORLOCK_INVAL,
                           "bootstrap needs a client with QUORLOCK_GUARD_OFF: another writes guards by itself");
    }
    return start(client, NODE_PEEK, "quorlock:guard", &checked, cb, arg);
}
