/* SPDX-License-Identifier: BSD-3-Clause */
#include "admin/inspect.h"

#include <string.h>

#include "redis/dialect/dialect.h"
#include "redis/dialect/guard_text.h"
#include "redis/guard_sets.h"

#define WHY_SIZE 320 /* of a quarantine */

static struct runtime *admin_inspect_runtime_of(const struct inspect *inspect)
{
    return inspect->report.all->runtime;
}

static void admin_inspect_complete(struct inspect *inspect, int status)
{
    if (inspect->report.complete) return;
    inspect->status = status;
    runtime_wake_at(admin_inspect_runtime_of(inspect), &inspect->waker, UINT64_MAX);
    report_complete(&inspect->report);
}

static bool admin_inspect_waits(const struct inspect *inspect)
{
    return inspect->kind != NULL && inspect->kind->waits(inspect);
}

static bool admin_inspect_is_enough(const struct inspect *);

static void admin_inspect_judge(struct inspect *inspect)
{
    int status = 0;

    if (admin_inspect_is_enough(inspect)) {
        admin_inspect_complete(inspect, 0);
        return;
    }
    do {
        for (uint32_t i = 0; i < admin_inspect_runtime_of(inspect)->n_nodes; i++) {
            if (inspect->nodes[i].answer < ANSWER_IN) return;
        }
    } while (inspect->kind != NULL && inspect->kind->step(inspect, &status));
    if (!admin_inspect_waits(inspect)) admin_inspect_complete(inspect, status);
}

static void no_answer(struct inspect *inspect, uint32_t index, enum fault fault, const char *why)
{
    struct inspect_node *node = &inspect->nodes[index];

    node->answer = ANSWER_NONE;
    node->reply.fault = fault;
    alloc_free(&admin_inspect_runtime_of(inspect)->alloc, node->error);
    node->error = alloc_text(&admin_inspect_runtime_of(inspect)->alloc, why, strlen(why));
}

static void admin_inspect_ask(struct inspect *inspect, uint32_t index)
{
    struct runtime *runtime = admin_inspect_runtime_of(inspect);
    struct inspect_node *node = &inspect->nodes[index];
    const char *why = node_why(runtime->nodes[index].node);
    struct core_tag tag = {.node = (uint8_t)index};
    struct node_request request = {.op = node->op,
                                   .read_only = node->read_only,
                                   .explain = inspect->kind == NULL,
                                   NODE_KEY(inspect->key, inspect->key_length),
                                   .prefix = (size_t)(inspect->name - inspect->key),
                                   .timeout_ms = runtime_timeout_ms(runtime)};
    int result;

    if (inspect->owner != NULL) {
        request.owner = inspect->owner;
        request.owner_length = strlen(inspect->owner);
    }
    if (inspect->kind != NULL) inspect->kind->fill(inspect, &request);
    result = nodes_send(runtime, &request, &inspect->requester, &tag);
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
    inspect->nodes[index].again = inspect->nodes[index].read_only = false;
    admin_inspect_ask(inspect, index);
}

static void admin_inspect_look_at(struct inspect *inspect, uint32_t index)
{
    struct node *node = admin_inspect_runtime_of(inspect)->nodes[index].node;

    if (inspect->nodes[index].answer != ANSWER_WAITED_FOR) return;
    switch (node_state_now(node)) {
    case NODE_READY:
    case NODE_QUARANTINED: inspect_ask(inspect, index, inspect->op); break;
    case NODE_DOWN: no_answer(inspect, index, node_fault_now(node), node_why(node)); break;
    case NODE_CONNECTING: break;
    }
}

static void admin_inspect_on_node_changed(struct report *report, uint32_t index)
{
    struct inspect *inspect = CONTAINER_OF(report, struct inspect, report);

    admin_inspect_look_at(inspect, index);
    admin_inspect_judge(inspect);
}

static void clear_texts(const struct alloc *alloc, struct inspect_node *node)
{
    alloc_free(alloc, node->error);
    alloc_free(alloc, node->holder);
    alloc_free(alloc, node->type);
    node->error = node->holder = node->type = NULL;
    holders_clear(&node->holders, alloc);
}

/* is_missed - return whether the node sent a text for which there was no memory. */
static bool is_missed(const char *said, const char *kept)
{
    return said != NULL && kept == NULL;
}

/* note_guard - remember the state of this node's guard. Only all guards together show whether the nodes are new. */
static void note_guard(struct inspect *inspect, uint32_t index, const struct node_reply *reply)
{
    bool answered = reply->outcome == OUTCOME_YES || reply->outcome == OUTCOME_MISSING;
    bool lasts = reply->cause == QUARANTINE_FIRST;
    enum guard_set set = !reply->has_guard || lasts ? GUARD_SET_FIRST : GUARD_SET_OLDER;
    struct admin *all = inspect->report.all;

    if (inspect->nodes[index].op != OP_PEEK || inspect->kind != NULL) return;
    all->guards[index].set = answered ? set : GUARD_SET_UNKNOWN;
    all->guards[index].until_us = lasts ? runtime_now_us(all->runtime) + (uint64_t)reply->quarantine_ms * 1000 : 0;
}

/* set_of - judge the guards of all nodes together. */
static enum guard_set set_of(const struct inspect *inspect)
{
    const struct admin *all = inspect->report.all;
    struct guard_sets sets = {0};

    /* A node without a guard counts as unknown: its quarantine has not begun, so nobody knows when it would end. */
    for (uint32_t i = 0; i < all->runtime->n_nodes; i++) {
        bool none = all->guards[i].set == GUARD_SET_FIRST && all->guards[i].until_us == 0;

        guard_sets_add(&sets, none ? GUARD_SET_UNKNOWN : all->guards[i].set, all->guards[i].until_us / 1000);
    }
    return guard_sets_judge(&sets, all->runtime->options.max_lease_ms);
}

/* keep - store a reply. */
static void keep(struct inspect *inspect, uint32_t index, const struct node_reply *reply)
{
    const struct alloc *alloc = &admin_inspect_runtime_of(inspect)->alloc;
    struct inspect_node *node = &inspect->nodes[index];
    bool whole;

    node->answer = ANSWER_IN;
    /* The first reply names the right that is missing, and is kept. */
    if (node->read_only && reply->outcome >= OUTCOME_ERROR && reply->fault != FAULT_FOREIGN) return;
    node->reply = *reply;
    node->reply.error = node->reply.holder = node->reply.type = node->reply.others = NULL;
    clear_texts(alloc, node);
    if (reply->error != NULL) node->error = alloc_text(alloc, reply->error, strlen(reply->error));
    if (reply->holder != NULL) node->holder = owner_copy(alloc, reply->holder, reply->holder_length);
    if (reply->type != NULL) node->type = owner_copy(alloc, reply->type, reply->type_length);
    note_guard(inspect, index, reply);
    whole = reply->others == NULL || holders_read(&node->holders, alloc, reply);
    whole = whole && !is_missed(reply->holder, node->holder) && !is_missed(reply->type, node->type);
    /* Without this the key would look free, because its holder is not known. */
    if (!whole && node->op == OP_PEEK) no_answer(inspect, index, FAULT_LIMIT, "out of memory");
    if (inspect->kind != NULL) inspect->kind->reply(inspect, index, reply);
}

/* passes - return whether to ask again: the request was not executed, and the next one may be. */
static bool passes(const struct inspect_node *node, const struct node_reply *reply)
{
    return reply->outcome == OUTCOME_ERROR && reply->fault == FAULT_TEMPORARY && node->op != OP_BOOTSTRAP;
}

static void admin_inspect_on_reply(struct requester *requester, const struct core_tag *tag, uint32_t generation,
                                   const struct node_reply *reply)
{
    struct inspect *inspect = CONTAINER_OF(requester, struct inspect, requester);
    uint32_t index = tag->node;
    struct inspect_node *node = &inspect->nodes[index];

    (void)generation;
    inspect->report.in_flight--;
    if (inspect->report.complete) return;
    if (passes(node, reply) && !node->again) {
        node->again = true;
        admin_inspect_ask(inspect, index);
    } else {
        bool denied = reply->fault == FAULT_AUTH && !node->read_only && node->op == OP_PEEK;

        keep(inspect, index, reply);
        node->read_only |= denied;
        if (denied) admin_inspect_ask(inspect, index);
    }
    admin_inspect_judge(inspect);
}

static void on_deadline(struct waker *waker)
{
    struct inspect *inspect = CONTAINER_OF(waker, struct inspect, waker);

    if (inspect->patience_us > 0) {
        inspect->patience_us = 0;
        inspect_set_deadline(inspect);
        admin_inspect_judge(inspect);
        return;
    }
    if (admin_inspect_waits(inspect)) {
        inspect->kind->wait_over(inspect);
        admin_inspect_judge(inspect);
        return;
    }
    for (uint32_t i = 0; i < admin_inspect_runtime_of(inspect)->n_nodes; i++) {
        struct node *node = admin_inspect_runtime_of(inspect)->nodes[i].node;
        const char *why = node_why(node);

        if (inspect->nodes[i].answer >= ANSWER_IN) continue;
        no_answer(inspect, i, FAULT_TIMEOUT, *why != '\0' ? why : "no answer in time");
    }
    admin_inspect_judge(inspect);
}

void inspect_set_deadline(struct inspect *inspect)
{
    struct runtime *runtime = admin_inspect_runtime_of(inspect);
    uint64_t wait_us = 1000ull * (runtime->options.connect_timeout_ms + runtime_timeout_ms(runtime));

    if (inspect->patience_us > 0) wait_us = inspect->patience_us;
    runtime_wake_at(runtime, &inspect->waker, runtime_now_us(runtime) + wait_us);
}

void inspect_ask_all(struct inspect *inspect)
{
    inspect_set_deadline(inspect);
    for (uint32_t i = inspect->first; i < inspect->end; i++) {
        inspect->nodes[i].answer = ANSWER_WAITED_FOR;
        admin_inspect_look_at(inspect, i);
    }
}

/* is_known - return whether the node's reply shows what it has. */
static bool admin_inspect_is_known(const struct inspect_node *node)
{
    return node->answer == ANSWER_IN && node->reply.outcome != OUTCOME_UNKNOWN;
}

int64_t inspect_quarantine_ms(const struct inspect_node *node)
{
    if (!admin_inspect_is_known(node) || !node->reply.has_guard) return -1;
    return node->reply.quarantine_ms > 0 ? node->reply.quarantine_ms : 0;
}

static int admin_inspect_state_of(const struct inspect_node *node)
{
    if (!admin_inspect_is_known(node)) return QUORLOCK_INSPECT_DOWN;
    switch (node->reply.outcome) {
    case OUTCOME_MISSING: return QUORLOCK_INSPECT_FREE;
    case OUTCOME_OTHER: return QUORLOCK_INSPECT_HELD; /* not by the owner that was to be broken */
    case OUTCOME_YES:
        /* Without a holder, break has deleted a value of another type, or only slots. */
        return node->holder != NULL ? QUORLOCK_INSPECT_HELD
               : node->type != NULL ? QUORLOCK_INSPECT_FOREIGN
                                    : QUORLOCK_INSPECT_FREE;
    default: return node->reply.fault == FAULT_FOREIGN ? QUORLOCK_INSPECT_FOREIGN : QUORLOCK_INSPECT_ERROR;
    }
}

static void report_node(const struct inspect *inspect, uint32_t index, struct quorlock_inspect_node *ret)
{
    const struct inspect_node *node = &inspect->nodes[index];

    *ret = (struct quorlock_inspect_node){.node = node_name(admin_inspect_runtime_of(inspect)->nodes[index].node),
                                          .state = admin_inspect_state_of(node),
                                          .ttl_ms = -2,
                                          .latency_us = node->reply.latency_us,
                                          .error = node->error,
                                          .holder = node->holder,
                                          .fence = node->reply.fence,
                                          .quarantine_ms = inspect_quarantine_ms(node),
                                          .waiters = -1};
    if (!admin_inspect_is_known(node)) return;
    ret->ttl_ms = node->reply.ttl_ms;
    ret->waiters = node->reply.waiters;
    ret->permits = node->holders.permits;
    ret->holders = node->holders.places;
    ret->n_holders = node->holders.n;
    if (node->reply.outcome == OUTCOME_YES) ret->count = node->reply.count;
    if (node->reply.outcome == OUTCOME_YES || node->reply.outcome >= OUTCOME_ERROR) ret->type = node->type;
}

static bool is_held_by(const struct quorlock_inspect_node *node, const char *holder)
{
    return node->holder != NULL && quorlock_owner_equals(node->holder, holder) != 0;
}

/* quorum_ttl_ms - return the Qth longest remaining lease of that holder, by the nodes' own clocks. */
static uint32_t quorum_ttl_ms(const struct quorlock_inspect_report *report, const char *holder)
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

static void admin_inspect_find_holder(struct quorlock_inspect_report *report)
{
    for (size_t i = 0; i < report->n_nodes; i++) {
        const char *holder = report->nodes[i]->holder;
        uint32_t same = 0;
        uint32_t equal = 0;

        if (holder == NULL) continue;
        for (size_t k = 0; k < report->n_nodes; k++) {
            const char *other = report->nodes[k]->holder;

            if (other == NULL || quorlock_owner_equals(other, holder) == 0) continue;
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

/* A report of the answers so far, and the memory behind its pointers. */
struct whole_report {
    struct quorlock_inspect_report report;
    struct quorlock_inspect_node each[QUORLOCK_NODES_MAX];
    const struct quorlock_inspect_node *nodes[QUORLOCK_NODES_MAX];
    char why[QUORLOCK_NODES_MAX][WHY_SIZE];
};

_Static_assert((int)QUORLOCK_BREAK_DOWN == (int)QUORLOCK_INSPECT_DOWN, "states of keys");
_Static_assert((int)QUORLOCK_BREAK_ERROR == (int)QUORLOCK_INSPECT_ERROR, "states of keys");
_Static_assert((int)QUORLOCK_BREAK_FREE == (int)QUORLOCK_INSPECT_FREE, "states of keys");
_Static_assert((int)QUORLOCK_BREAK_HELD == (int)QUORLOCK_INSPECT_HELD, "states of keys");
_Static_assert((int)QUORLOCK_BREAK_FOREIGN == (int)QUORLOCK_INSPECT_FOREIGN, "states of keys");
_Static_assert((int)QUORLOCK_QUARANTINE_REPLICATION == (int)QUARANTINE_REPLICATION, "causes of quarantines");

/* explain_quarantine - describe a quarantine. It needs the answers of all nodes: what one guard means depends on the
 * others. */
static void explain_quarantine(const struct inspect *inspect, uint32_t at, struct whole_report *whole)
{
    const struct node_reply *reply = &inspect->nodes[inspect->first + at].reply;
    struct quorlock_inspect_node *ret = &whole->each[at];

    if (ret->quarantine_ms <= 0) return;
    ret->quarantine = (int)reply->cause;
    ret->quarantine_why = whole->why[at];
    quarantine_describe(whole->why[at], WHY_SIZE, reply->cause, reply->wanted_ms, 0, set_of(inspect));
}

static uint32_t admin_inspect_answered(const struct inspect *inspect)
{
    uint32_t answered = 0;

    for (uint32_t i = inspect->first; i < inspect->end; i++) {
        const struct node_reply *reply = &inspect->nodes[i].reply;

        answered += admin_inspect_is_known(&inspect->nodes[i]) &&
                    (reply->outcome != OUTCOME_ERROR || reply->fault == FAULT_FOREIGN);
    }
    return answered;
}

static const struct quorlock_inspect_report *fill_report(const struct inspect *inspect, struct whole_report *whole)
{
    struct quorlock_inspect_report *report = &whole->report;

    *report = (struct quorlock_inspect_report){.quorum = runtime_quorum(admin_inspect_runtime_of(inspect)),
                                               .answered = admin_inspect_answered(inspect),
                                               .nodes = whole->nodes,
                                               .n_nodes = inspect->end - inspect->first};
    for (uint32_t i = 0; i < report->n_nodes; i++) {
        report_node(inspect, inspect->first + i, &whole->each[i]);
        explain_quarantine(inspect, i, whole);
        whole->nodes[i] = &whole->each[i];
    }
    admin_inspect_find_holder(report);
    return report;
}

static bool admin_inspect_is_enough(const struct inspect *inspect)
{
    struct whole_report whole;
    const struct quorlock_inspect_report *report;

    if (inspect->enough == NULL) return false;
    report = fill_report(inspect, &whole);
    return inspect->enough(report) || (inspect->patience_us == 0 && report->answered >= report->quorum);
}

/* Too few nodes answered. AUTH: those that do not refuse us would be too few as well. */
static int admin_inspect_lack(const struct inspect *inspect, size_t n_asked, uint32_t needed)
{
    size_t refused = 0;

    for (uint32_t i = inspect->first; i < inspect->end; i++) {
        const struct inspect_node *node = &inspect->nodes[i];

        refused +=
            report_refuses(node->reply.fault) && (node->answer == ANSWER_NONE || node->reply.outcome == OUTCOME_ERROR);
    }
    return report_lack(refused, n_asked, needed);
}

static int admin_inspect_status(const struct inspect *inspect)
{
    const struct runtime *runtime = admin_inspect_runtime_of(inspect);
    uint32_t n_asked = inspect->end - inspect->first;
    uint32_t needed = n_asked == runtime->n_nodes ? runtime_quorum(runtime) : 1;
    bool lacks = inspect->status == 0 && admin_inspect_answered(inspect) < needed;

    if (!lacks && inspect->status != QUORLOCK_ERR_NOQUORUM) return inspect->status;
    return admin_inspect_lack(inspect, n_asked, needed);
}

static void tell_broken(const struct inspect *inspect, int status, const struct quorlock_inspect_report *before)
{
    struct quorlock_break_node each[QUORLOCK_NODES_MAX];
    const struct quorlock_break_node *nodes[QUORLOCK_NODES_MAX];
    const struct quorlock_break_report report = {.quorum = before->quorum,
                                                 .held = before->held,
                                                 .holder = before->holder,
                                                 .valid_ms = before->valid_ms,
                                                 .nodes = nodes,
                                                 .n_nodes = before->n_nodes};

    for (size_t i = 0; i < before->n_nodes; i++) {
        const struct quorlock_inspect_node *node = before->nodes[i];
        bool broken = inspect->nodes[i].answer == ANSWER_IN && inspect->nodes[i].reply.outcome == OUTCOME_YES;

        each[i] = (struct quorlock_break_node){.node = node->node,
                                               .state = broken ? QUORLOCK_BREAK_BROKEN : node->state,
                                               .holder = node->holder,
                                               .error = node->error,
                                               .ttl_ms = node->ttl_ms,
                                               .latency_us = node->latency_us,
                                               .type = node->type,
                                               .permits = node->permits,
                                               .holders = node->holders,
                                               .n_holders = node->n_holders};
        nodes[i] = &each[i];
    }
    inspect->broken(status, &report, inspect->arg);
}

static void admin_inspect_notify(struct report *base)
{
    struct inspect *inspect = CONTAINER_OF(base, struct inspect, report);
    struct whole_report whole;
    int status = admin_inspect_status(inspect);

    runtime_batch(inspect->report.all->runtime, false);
    if (inspect->kind != NULL) {
        inspect->kind->tell(inspect, status);
    } else if (inspect->op == OP_BREAK) {
        tell_broken(inspect, status, fill_report(inspect, &whole));
    } else {
        inspect->inspected(status, fill_report(inspect, &whole), inspect->arg);
    }
}

static void close_inspect(struct report *report)
{
    admin_inspect_complete(CONTAINER_OF(report, struct inspect, report), QUORLOCK_ERR_CLOSED);
}

static void admin_inspect_destroy(struct report *report)
{
    struct inspect *inspect = CONTAINER_OF(report, struct inspect, report);
    struct runtime *runtime = admin_inspect_runtime_of(inspect);
    const struct alloc *alloc = &runtime->alloc;

    for (uint32_t i = 0; i < runtime->n_nodes; i++) clear_texts(alloc, &inspect->nodes[i]);
    if (inspect->kind != NULL) inspect->kind->clear(inspect);
    runtime_stop_waker(&inspect->waker);
    alloc_free(alloc, inspect->more);
    alloc_free(alloc, inspect->key);
    alloc_free(alloc, inspect->owner);
    alloc_free(alloc, inspect);
}

static struct inspect *admin_inspect_build(struct admin *all, const struct inspect_kind *kind, void *more,
                                           const char *prefix, const char *key)
{
    const struct alloc *alloc = &all->runtime->alloc;
    uint32_t n_nodes = all->runtime->n_nodes;
    struct inspect *inspect = alloc_zero(alloc, sizeof(*inspect) + n_nodes * sizeof(struct inspect_node));

    if (inspect == NULL) return NULL;
    inspect->report.node_changed = admin_inspect_on_node_changed;
    inspect->report.close = close_inspect;
    inspect->report.notify = admin_inspect_notify;
    inspect->report.destroy = admin_inspect_destroy;
    inspect->requester.reply = admin_inspect_on_reply;
    inspect->kind = kind;
    inspect->more = more;
    inspect->end = n_nodes;
    for (uint32_t i = 0; i < n_nodes; i++) inspect->nodes[i].reply.ttl_ms = -2;
    inspect->key = alloc_joined(alloc, prefix, key, &inspect->key_length);
    if (inspect->key == NULL) {
        alloc_free(alloc, inspect);
        return NULL;
    }
    runtime_start_waker(all->runtime, &inspect->waker, on_deadline);
    inspect->name = inspect->key + strlen(prefix);
    return inspect;
}

static void admin_inspect_start(struct inspect *inspect, struct admin *all, enum op op)
{
    inspect->op = op;
    report_begin(all, &inspect->report);
    inspect_ask_all(inspect);
    admin_inspect_judge(inspect);
}

int inspect_start(struct admin *all, const struct inspect_kind *kind, void *more, enum op op, const char *prefix,
                  const char *key)
{
    struct inspect *inspect = admin_inspect_build(all, kind, more, prefix, key);

    if (inspect == NULL) {
        alloc_free(&all->runtime->alloc, more);
        return runtime_fail_plainly(all->runtime, QUORLOCK_ERR_NOMEM);
    }
    admin_inspect_start(inspect, all, op);
    return 0;
}

static int check_key(struct admin *all, const char *key, bool has_callback)
{
    int status = report_check(all, has_callback);

    return status != 0 ? status : options_key(key, &all->runtime->options, &all->runtime->error);
}

/* new_inspect - make an inspection or a break of the key. Returns 0, or a status and its text. */
static int new_inspect(struct inspect **ret, struct admin *all, const char *key, bool has_callback, void *arg)
{
    int status = check_key(all, key, has_callback);

    if (status != 0) return status;
    *ret = admin_inspect_build(all, NULL, NULL, all->runtime->key_prefix, key);
    if (*ret == NULL) return runtime_fail_plainly(all->runtime, QUORLOCK_ERR_NOMEM);
    (*ret)->arg = arg;
    return 0;
}

int inspect_key(struct admin *all, const char *key, quorlock_inspect_cb cb, void *arg)
{
    return inspect_until(all, key, NULL, 0, cb, arg);
}

int inspect_break(struct admin *all, const char *key, const char *owner, quorlock_break_cb cb, void *arg)
{
    const struct alloc *alloc = &all->runtime->alloc;
    struct inspect *inspect = NULL;
    char *copy = NULL;
    int status = check_key(all, key, cb != NULL);

    if (status == 0 && owner != NULL && (*owner == '\0' || strlen(owner) > DIALECT_HOLDER_MAX))
        status = runtime_fail(all->runtime, QUORLOCK_ERR_INVAL,
                              "owner: give the whole token of a holder, 1 to %d bytes", DIALECT_HOLDER_MAX);
    if (status != 0) return status;
    if (owner != NULL) {
        copy = alloc_text(alloc, owner, strlen(owner));
        if (copy == NULL) return runtime_fail_plainly(all->runtime, QUORLOCK_ERR_NOMEM);
    }
    status = new_inspect(&inspect, all, key, true, arg);
    if (status != 0) {
        alloc_free(alloc, copy);
        return status;
    }
    inspect->owner = copy;
    inspect->broken = cb;
    admin_inspect_start(inspect, all, OP_BREAK);
    return 0;
}

int inspect_until(struct admin *all, const char *key, bool (*enough)(const struct quorlock_inspect_report *),
                  uint64_t patience_us, quorlock_inspect_cb cb, void *arg)
{
    struct inspect *inspect;
    int status = new_inspect(&inspect, all, key, cb != NULL, arg);

    if (status != 0) return status;
    inspect->inspected = cb;
    inspect->enough = enough;
    inspect->patience_us = patience_us;
    admin_inspect_start(inspect, all, OP_PEEK);
    return 0;
}

int inspect_one(struct admin *all, size_t node, const char *key, quorlock_inspect_cb cb, void *arg)
{
    struct runtime *runtime = all->runtime;
    struct inspect *inspect;
    int status = check_key(all, key, cb != NULL);

    if (status == 0 && node >= runtime->n_nodes)
        status = runtime_fail(runtime, QUORLOCK_ERR_INVAL, "node %zu: there are %u nodes, counted from 0", node,
                              runtime->n_nodes);
    if (status == 0) status = new_inspect(&inspect, all, key, true, arg);
    if (status != 0) return status;
    inspect->inspected = cb;
    for (uint32_t i = 0; i < runtime->n_nodes; i++) inspect->nodes[i].answer = ANSWER_NONE;
    inspect->first = (uint32_t)node;
    inspect->end = inspect->first + 1;
    admin_inspect_start(inspect, all, OP_PEEK);
    return 0;
}
