/* SPDX-License-Identifier: BSD-3-Clause */
#include "admin/inspect.h"

#include <string.h>

static struct runtime *runtime_of(const struct inspect *inspect)
{
    return inspect->report.all->runtime;
}

static void complete(struct inspect *inspect, int status)
{
    if (inspect->report.complete) return;
    inspect->status = status;
    runtime_wake_at(runtime_of(inspect), &inspect->waker, UINT64_MAX);
    report_complete(&inspect->report);
}

static bool waits(const struct inspect *inspect)
{
    return inspect->kind != NULL && inspect->kind->waits(inspect);
}

static void judge(struct inspect *inspect)
{
    int status = 0;

    do {
        for (uint32_t i = 0; i < runtime_of(inspect)->n_nodes; i++) {
            if (inspect->nodes[i].answer < ANSWER_IN) return;
        }
    } while (inspect->kind != NULL && inspect->kind->step(inspect, &status));
    if (!waits(inspect)) complete(inspect, status);
}

static void no_answer(struct inspect *inspect, uint32_t index, enum fault fault, const char *why)
{
    struct inspect_node *node = &inspect->nodes[index];

    node->answer = ANSWER_NONE;
    node->reply.fault = fault;
    alloc_free(&runtime_of(inspect)->alloc, node->error);
    node->error = alloc_text(&runtime_of(inspect)->alloc, why, strlen(why));
}

static void ask(struct inspect *inspect, uint32_t index, bool use_eval)
{
    struct runtime *runtime = runtime_of(inspect);
    struct inspect_node *node = &inspect->nodes[index];
    const char *why = node_why(runtime->nodes[index].node);
    struct core_tag tag = {.node = (uint8_t)index};
    struct node_request request = {.op = node->op,
                                   .use_eval = use_eval,
                                   NODE_KEY(inspect->key, inspect->key_length),
                                   .timeout_ms = runtime_timeout_ms(runtime)};
    int result;

    if (inspect->kind != NULL) inspect->kind->fill(inspect, &request);
    result = nodes_send(runtime, index, &request, &inspect->requester, &tag);
    if (result == NODE_SENT) {
        inspect->report.in_flight++;
        node->answer = ANSWER_ASKED;
        node->tried |= node->op == OP_BOOTSTRAP;
    } else if (result == NODE_NOT_READY && *why != '\0') {
        no_answer(inspect, index, FAULT_UNREACHABLE, why);
    } else {
        no_answer(inspect, index, FAULT_LIMIT, "too many requests wait for this node");
    }
}

void inspect_ask(struct inspect *inspect, uint32_t index, enum op op)
{
    inspect->nodes[index].op = op;
    inspect->nodes[index].again = false;
    ask(inspect, index, false);
}

static void look_at(struct inspect *inspect, uint32_t index)
{
    struct node *node = runtime_of(inspect)->nodes[index].node;

    if (inspect->nodes[index].answer != ANSWER_WAITED_FOR) return;
    switch (node_state_now(node)) {
    case NODE_READY:
    case NODE_QUARANTINED: inspect_ask(inspect, index, inspect->op); break;
    case NODE_DOWN: no_answer(inspect, index, node_fault_now(node), node_why(node)); break;
    case NODE_CONNECTING: break;
    }
}

static void on_node_changed(struct report *report, uint32_t index)
{
    struct inspect *inspect = CONTAINER_OF(report, struct inspect, report);

    look_at(inspect, index);
    judge(inspect);
}

static void clear_texts(const struct alloc *alloc, struct inspect_node *node)
{
    alloc_free(alloc, node->error);
    alloc_free(alloc, node->holder);
    alloc_free(alloc, node->type);
    node->error = node->holder = node->type = NULL;
}

static void on_reply(struct requester *requester, const struct core_tag *tag, uint32_t index, uint32_t generation,
                     const struct node_reply *reply)
{
    struct inspect *inspect = CONTAINER_OF(requester, struct inspect, requester);
    const struct alloc *alloc = &runtime_of(inspect)->alloc;
    struct inspect_node *node = &inspect->nodes[index];

    (void)tag;
    (void)generation;
    inspect->report.in_flight--;
    if (inspect->report.complete) return;
    if (reply->outcome == OUTCOME_NOSCRIPT && !node->again) {
        node->again = true;
        ask(inspect, index, true);
        judge(inspect);
        return;
    }
    node->answer = ANSWER_IN;
    node->reply = *reply;
    node->reply.error = node->reply.holder = node->reply.type = NULL;
    clear_texts(alloc, node);
    if (reply->error != NULL) node->error = alloc_text(alloc, reply->error, strlen(reply->error));
    if (reply->holder != NULL) node->holder = owner_copy(alloc, reply->holder, reply->holder_length);
    if (reply->type != NULL) node->type = owner_copy(alloc, reply->type, reply->type_length);
    if (inspect->kind != NULL) inspect->kind->reply(inspect, index, reply);
    judge(inspect);
}

static void on_deadline(struct waker *waker)
{
    struct inspect *inspect = CONTAINER_OF(waker, struct inspect, waker);

    if (waits(inspect)) {
        inspect->kind->wait_over(inspect);
        judge(inspect);
        return;
    }
    for (uint32_t i = 0; i < runtime_of(inspect)->n_nodes; i++) {
        struct node *node = runtime_of(inspect)->nodes[i].node;
        const char *why = node_why(node);

        if (inspect->nodes[i].answer >= ANSWER_IN) continue;
        no_answer(inspect, i, FAULT_TIMEOUT, *why != '\0' ? why : "no answer in time");
    }
    judge(inspect);
}

void inspect_set_deadline(struct inspect *inspect)
{
    struct runtime *runtime = runtime_of(inspect);

    runtime_wake_at(runtime, &inspect->waker, runtime_now_us(runtime) + 2000ull * runtime_timeout_ms(runtime));
}

void inspect_ask_all(struct inspect *inspect)
{
    inspect_set_deadline(inspect);
    for (uint32_t i = 0; i < runtime_of(inspect)->n_nodes; i++) {
        inspect->nodes[i].answer = ANSWER_WAITED_FOR;
        look_at(inspect, i);
    }
}

static void report_node(const struct inspect *inspect, uint32_t index, struct quorlock_node_report *ret)
{
    const struct inspect_node *node = &inspect->nodes[index];

    *ret = (struct quorlock_node_report){.node = node_name(runtime_of(inspect)->nodes[index].node),
                                         .state = "down",
                                         .ttl_ms = -2,
                                         .latency_us = node->reply.latency_us,
                                         .error = node->error,
                                         .holder = node->holder,
                                         .fence = node->reply.fence,
                                         .quarantine_ms = -1};
    if (inspect->kind != NULL) {
        inspect->kind->report(inspect, index, ret);
        return;
    }
    if (node->answer != ANSWER_IN || node->reply.outcome == OUTCOME_UNKNOWN) return;
    ret->ttl_ms = node->reply.ttl_ms;
    if (node->reply.has_guard) ret->quarantine_ms = node->reply.quarantine_ms > 0 ? node->reply.quarantine_ms : 0;
    if (node->reply.outcome == OUTCOME_MISSING) {
        ret->state = "free";
    } else if (node->reply.outcome == OUTCOME_YES) {
        ret->count = node->reply.count;
        /* A value of another type, which break has deleted. */
        ret->state = node->holder != NULL ? "held" : "foreign";
        ret->type = node->type;
        ret->broken = inspect->op == OP_BREAK;
    } else {
        ret->state = node->reply.fault == FAULT_FOREIGN ? "foreign" : "error";
        ret->type = node->type;
    }
}

static bool is_held_by(const struct quorlock_node_report *node, const char *holder)
{
    return node->holder != NULL && quorlock_same_owner(node->holder, holder) != 0;
}

/* The Qth largest remaining lease of that holder, by the nodes' own clocks. */
static uint32_t quorum_ttl_ms(const struct quorlock_report *report, const char *holder)
{
    uint32_t best_ms = 0;

    for (size_t i = 0; i < report->n_nodes; i++) {
        int64_t ttl_ms = report->nodes[i]->ttl_ms;
        uint32_t as_long = 0;

        if (!is_held_by(report->nodes[i], holder)) continue;
        for (size_t k = 0; k < report->n_nodes; k++) {
            int64_t other_ms = report->nodes[k]->ttl_ms;

            if (!is_held_by(report->nodes[k], holder)) continue;
            as_long += other_ms == -1 || (ttl_ms != -1 && other_ms >= ttl_ms);
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
            if (!is_held_by(report->nodes[k], holder)) continue;
            same++;
            equal += strcmp(report->nodes[k]->holder, holder) == 0;
        }
        if (same < report->quorum) continue;
        report->held = 1;
        report->holder = equal == same ? holder : NULL;
        report->valid_ms = quorum_ttl_ms(report, holder);
        return;
    }
}

static void notify(struct report *base)
{
    struct inspect *inspect = CONTAINER_OF(base, struct inspect, report);
    const struct runtime *runtime = runtime_of(inspect);
    struct quorlock_node_report each[QUORLOCK_NODES_MAX];
    const struct quorlock_node_report *nodes[QUORLOCK_NODES_MAX];
    struct quorlock_report report = {
        .key = inspect->name, .quorum = runtime_quorum(runtime), .nodes = nodes, .n_nodes = runtime->n_nodes};
    int status = inspect->status;

    for (uint32_t i = 0; i < runtime->n_nodes; i++) {
        const struct inspect_node *node = &inspect->nodes[i];

        report_node(inspect, i, &each[i]);
        nodes[i] = &each[i];
        report.answered += node->answer == ANSWER_IN && node->reply.outcome != OUTCOME_UNKNOWN &&
                           (node->reply.outcome != OUTCOME_ERROR || node->reply.fault == FAULT_FOREIGN);
    }
    if (inspect->kind == NULL) find_holder(&report);
    if (status == 0 && report.answered < report.quorum) status = QUORLOCK_NOQUORUM;
    runtime_batch(inspect->report.all->runtime, false);
    inspect->call(status, &report, inspect->arg);
}

static void close_inspect(struct report *report)
{
    complete(CONTAINER_OF(report, struct inspect, report), QUORLOCK_CLOSED);
}

static void destroy(struct report *report)
{
    struct inspect *inspect = CONTAINER_OF(report, struct inspect, report);
    struct runtime *runtime = runtime_of(inspect);
    const struct alloc *alloc = &runtime->alloc;

    for (uint32_t i = 0; i < runtime->n_nodes; i++) clear_texts(alloc, &inspect->nodes[i]);
    if (inspect->kind != NULL) inspect->kind->clear(inspect);
    runtime_return_waker(runtime, &inspect->waker);
    alloc_free(alloc, inspect->more);
    alloc_free(alloc, inspect->key);
    alloc_free(alloc, inspect);
}

static struct inspect *build(struct admin *all, const struct inspect_kind *kind, void *more, const char *prefix,
                             const char *key)
{
    const struct alloc *alloc = &all->runtime->alloc;
    uint32_t n_nodes = all->runtime->n_nodes;
    struct inspect *inspect = alloc_zero(alloc, sizeof(*inspect) + n_nodes * sizeof(struct inspect_node));

    if (inspect == NULL) return NULL;
    inspect->report.node_changed = on_node_changed;
    inspect->report.close = close_inspect;
    inspect->report.notify = notify;
    inspect->report.destroy = destroy;
    inspect->requester.reply = on_reply;
    inspect->kind = kind;
    inspect->more = more;
    for (uint32_t i = 0; i < n_nodes; i++) inspect->nodes[i].reply.ttl_ms = -2;
    inspect->key = alloc_joined(alloc, prefix, key, &inspect->key_length);
    if (inspect->key != NULL && runtime_reserve_waker(all->runtime, &inspect->waker, on_deadline) == 0) {
        inspect->name = inspect->key + strlen(prefix);
        return inspect;
    }
    alloc_free(alloc, inspect->key);
    alloc_free(alloc, inspect);
    return NULL;
}

int inspect_start(struct admin *all, const struct inspect_kind *kind, void *more, enum op op, const char *prefix,
                  const char *key, quorlock_report_cb cb, void *arg)
{
    struct inspect *inspect = build(all, kind, more, prefix, key);

    if (inspect == NULL) {
        alloc_free(&all->runtime->alloc, more);
        return runtime_fail_plainly(all->runtime, QUORLOCK_NOMEM);
    }
    inspect->op = op;
    inspect->call = cb;
    inspect->arg = arg;
    report_begin(all, &inspect->report);
    inspect_ask_all(inspect);
    judge(inspect);
    return 0;
}

int inspect_key(struct admin *all, enum op op, const char *key, quorlock_report_cb cb, void *arg)
{
    struct runtime *runtime = all->runtime;
    int status = report_check(all, cb != NULL);

    if (status == 0) status = options_key(key, &runtime->options, &runtime->error);
    if (status != 0) return status;
    return inspect_start(all, NULL, NULL, op, runtime->key_prefix, key, cb, arg);
}
