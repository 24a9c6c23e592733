/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bootstrap.c - writes the guards of all nodes, when they are new or when what they are set up for changes
 *
 * At most one of the old and the new set of clients can have a quorum at any time, even if a bootstrap is
 * killed half-way:
 *
 * 1. It writes nothing unless every node was seen, was read, and permits every later step.
 * 2. On each node one transaction writes a guard and disconnects the old clients. From then on the node refuses them,
 *    and none of their acquires, which do not check the guard, can be under way.
 * 3. A guard that exists, or that the next client may write, is first replaced on all nodes by one that admits no
 *    client. Only then are the new guards written. So the new clients have no vote while the old ones have one, and a
 *    half-done bootstrap leaves no quorum to either. (Nodes that leave the set are not known here and must be stopped
 *    before.)
 * 4. A quarantine lasts, from that moment, for the longest lease that any old or new guard allows. A second try, also
 *    after half of a first one, never shortens it.
 * 5. If that is longer than the new max_lease, success is reported only after the quarantine. Until then new clients
 *    would quarantine an emptied node for the new max_lease only, while an old, longer lease runs, and the guards
 *    with the longer one may vanish from all nodes at once. Nothing on the nodes can prevent that. It is safe if
 *    clients get the shorter max_lease after that and not before; clients with the old one stay refused meanwhile.
 */
#include "admin/inspect.h"

#include <string.h>

#include "redis/dialect/guard.h"
#include "redis/examine.h"

#define MS 1000u

/* Each stage ends at all nodes before the next begins. */
enum stage { LOOKS, CLOSES, WRITES, WAITS, CHECKS };

struct bootstrap_node {
    char *guard;                       /* as found, then as written; NULL: none */
    uint32_t max_lease_ms, longest_ms; /* of the guard as found; longest_ms: of leases that may run */
    bool guarded, unreadable;          /* as found */
    bool closed, written;              /* its guard admits no client; is as it was asked for */
};

struct bootstrap {
    bool reconfigure;
    enum stage stage;
    uint32_t lease_ms, longest_ms; /* what is written */
    struct bootstrap_node nodes[QUORLOCK_NODES_MAX];
};

static struct bootstrap *own(const struct inspect *inspect)
{
    return inspect->more;
}

static struct runtime *runtime_of(const struct inspect *inspect)
{
    return inspect->report.all->runtime;
}

static uint32_t n_nodes(const struct inspect *inspect)
{
    return runtime_of(inspect)->n_nodes;
}

/* ---- replies ---- */

static void set_guard(const struct inspect *inspect, struct bootstrap_node *node, const struct node_reply *reply)
{
    const struct alloc *alloc = &runtime_of(inspect)->alloc;

    alloc_free(alloc, node->guard);
    node->guard = reply->holder != NULL ? owner_copy(alloc, reply->holder, reply->holder_length) : NULL;
}

static bool was_seen(const struct inspect_node *node)
{
    return node->answer == ANSWER_IN && (node->reply.outcome == OUTCOME_YES || node->reply.outcome == OUTCOME_MISSING);
}

static bool answered(const struct inspect_node *node, enum outcome outcome)
{
    return node->answer == ANSWER_IN && node->reply.outcome == outcome;
}

/* A value of another type in the guard's place is a guard that cannot be read. */
static void look(const struct inspect *inspect, struct bootstrap_node *node, const struct node_reply *reply)
{
    struct examine_facts facts = {.reachable = true};

    set_guard(inspect, node, reply);
    node->guarded = reply->outcome == OUTCOME_YES || reply->fault == FAULT_FOREIGN;
    if (reply->outcome == OUTCOME_YES) examine_read_guard(&facts, reply->holder, reply->holder_length);
    node->unreadable = node->guarded && facts.guard.state != EXAMINE_GUARD_THERE;
    node->max_lease_ms = node->longest_ms = facts.guard.max_lease_ms;
    if (reply->quarantine_ms > 0 && facts.guard.longest_ms > node->longest_ms) {
        node->longest_ms = facts.guard.longest_ms;
    }
}

/* Not as of a lock's key, which may be of another dialect. */
static void explain_foreign(struct inspect *inspect, uint32_t index)
{
    static const char why[] = GUARD_FOREIGN;
    struct inspect_node *node = &inspect->nodes[index];
    const struct alloc *alloc = &runtime_of(inspect)->alloc;

    alloc_free(alloc, node->error);
    node->error = alloc_text(alloc, why, sizeof(why) - 1);
}

static void on_reply(struct inspect *inspect, uint32_t index, const struct node_reply *reply)
{
    const struct bootstrap *bootstrap = inspect->more;
    struct bootstrap_node *node = &own(inspect)->nodes[index];
    enum op op = inspect->nodes[index].op;

    if (op == OP_BOOTSTRAP) {
        if (reply->outcome == OUTCOME_YES) {
            node->closed = bootstrap->stage == CLOSES;
            node->written = !node->closed;
        }
        if (reply->holder != NULL) set_guard(inspect, node, reply);
    } else if (op == OP_PEEK && bootstrap->stage == LOOKS) {
        look(inspect, node, reply);
        if (reply->fault == FAULT_FOREIGN) explain_foreign(inspect, index);
        if (bootstrap->reconfigure && was_seen(&inspect->nodes[index])) {
            inspect_ask(inspect, index, OP_MAY_KILL);
        }
    }
}

/* ---- stages ---- */

/* The max_lease to write: as given, else the present one. False: the nodes have several. */
static bool choose_lease(const struct inspect *inspect)
{
    const struct runtime *runtime = runtime_of(inspect);
    struct bootstrap *bootstrap = inspect->more;
    bool given = runtime->max_lease_given || !bootstrap->reconfigure;

    bootstrap->lease_ms = given ? runtime->options.max_lease_ms : 0;
    for (uint32_t i = 0; i < runtime->n_nodes && !given; i++) {
        const struct bootstrap_node *node = &bootstrap->nodes[i];

        if (!node->guarded) continue;
        if (bootstrap->lease_ms != 0 && bootstrap->lease_ms != node->max_lease_ms) return false;
        bootstrap->lease_ms = node->max_lease_ms;
    }
    if (bootstrap->lease_ms == 0) bootstrap->lease_ms = runtime->options.max_lease_ms;
    bootstrap->longest_ms = bootstrap->lease_ms;
    for (uint32_t i = 0; i < runtime->n_nodes; i++) {
        const struct bootstrap_node *node = &bootstrap->nodes[i];

        if (node->longest_ms > bootstrap->longest_ms) bootstrap->longest_ms = node->longest_ms;
    }
    return true;
}

/* 0: the guards may be written; or the status of a bootstrap that changed nothing. */
static int judge_looks(const struct inspect *inspect)
{
    const struct bootstrap *bootstrap = inspect->more;
    int status = 0;

    for (uint32_t i = 0; i < n_nodes(inspect); i++) {
        const struct bootstrap_node *node = &bootstrap->nodes[i];

        if (bootstrap->reconfigure ? node->unreadable : node->guarded) {
            if (status == 0) status = QUORLOCK_STATE;
        } else if (!was_seen(&inspect->nodes[i])) {
            status = QUORLOCK_NOQUORUM;
        }
    }
    if (status == 0 && !choose_lease(inspect)) status = QUORLOCK_INVAL;
    return status;
}

static void write_all(struct inspect *inspect, enum stage stage)
{
    own(inspect)->stage = stage;
    for (uint32_t i = 0; i < n_nodes(inspect); i++) {
        inspect->nodes[i].tried = false;
        inspect_ask(inspect, i, OP_BOOTSTRAP);
    }
    inspect_set_deadline(inspect);
}

/* STATE: another client was faster on all nodes. */
static int judge_written(const struct inspect *inspect)
{
    int status = 0;
    bool half = false;

    for (uint32_t i = 0; i < n_nodes(inspect); i++) {
        if (answered(&inspect->nodes[i], OUTCOME_YES)) {
            half = true;
        } else if (!answered(&inspect->nodes[i], OUTCOME_OTHER)) {
            status = QUORLOCK_NOQUORUM;
        } else if (status == 0) {
            status = QUORLOCK_STATE;
        }
    }
    return status == QUORLOCK_STATE && half ? QUORLOCK_NOQUORUM : status;
}

/* Our clock may run faster than theirs: what is left of a quarantine afterwards is waited for as well. */
static void wait_out(struct inspect *inspect, uint64_t left_ms)
{
    struct runtime *runtime = runtime_of(inspect);
    struct bootstrap *bootstrap = inspect->more;
    uint64_t wait_us = (left_ms + 2) * MS;
    char left[24], longest[24], lease[24];

    wait_us += wait_us * runtime->options.drift_ppm / 1000000u;
    bootstrap->stage = WAITS;
    runtime_wake_at(runtime, &inspect->waker, runtime_now_us(runtime) + wait_us);
    runtime_log(runtime, QUORLOCK_LOG_WARN,
                "all nodes are set up anew; waiting %s more, for leases of up to %s may still run: give clients the "
                "max lease of %s when this has ended, and not before",
                guard_length(left, sizeof(left), (wait_us / MS + 999) / 1000 * 1000),
                guard_length(longest, sizeof(longest), bootstrap->longest_ms),
                guard_length(lease, sizeof(lease), bootstrap->lease_ms));
}

static bool waits(const struct inspect *inspect)
{
    return own(inspect)->stage == WAITS;
}

static void wait_over(struct inspect *inspect)
{
    own(inspect)->stage = CHECKS;
    inspect_ask_all(inspect);
}

/* The guard has not changed since it was written. */
static bool is_as_written(const struct inspect_node *node, const char *guard)
{
    return answered(node, OUTCOME_YES) && guard != NULL && node->holder != NULL && strcmp(guard, node->holder) == 0;
}

static int check(struct inspect *inspect)
{
    struct bootstrap *bootstrap = inspect->more;
    int64_t left_ms = 0;
    int status = 0;

    for (uint32_t i = 0; i < n_nodes(inspect); i++) {
        const struct inspect_node *node = &inspect->nodes[i];

        if (node->answer == ANSWER_IN && node->reply.quarantine_ms > left_ms) {
            left_ms = node->reply.quarantine_ms;
        }
        bootstrap->nodes[i].written = is_as_written(node, bootstrap->nodes[i].guard);
        if (!bootstrap->nodes[i].written) status = QUORLOCK_NOQUORUM;
    }
    /* More than that means that a clock was set back, which the next client sees, too. */
    if (left_ms > bootstrap->longest_ms) left_ms = bootstrap->longest_ms;
    if (status == 0 && left_ms > 0) wait_out(inspect, (uint64_t)left_ms);
    return status;
}

static bool step(struct inspect *inspect, int *ret_status)
{
    struct bootstrap *bootstrap = inspect->more;

    *ret_status = 0;
    switch (bootstrap->stage) {
    case LOOKS:
        *ret_status = judge_looks(inspect);
        if (*ret_status != 0) return false;
        write_all(inspect, bootstrap->reconfigure ? CLOSES : WRITES);
        return true;
    case CLOSES:
        *ret_status = judge_written(inspect);
        if (*ret_status != 0) return false;
        write_all(inspect, WRITES);
        return true;
    case WRITES:
        *ret_status = judge_written(inspect);
        if (*ret_status == 0 && bootstrap->longest_ms > bootstrap->lease_ms) {
            wait_out(inspect, bootstrap->longest_ms);
        }
        return false;
    case CHECKS: *ret_status = check(inspect); break;
    case WAITS: break;
    }
    return false;
}

static void fill(const struct inspect *inspect, struct node_request *request)
{
    const struct bootstrap *bootstrap = inspect->more;

    request->force = bootstrap->reconfigure;
    request->closes = bootstrap->stage == CLOSES;
    request->lease_ms = bootstrap->lease_ms;
    request->longest_ms = bootstrap->longest_ms;
}

/* ---- the report ---- */

static const char *state_of(const struct inspect_node *asked, const struct bootstrap_node *node, bool checks)
{
    bool known = asked->answer == ANSWER_IN && asked->reply.outcome != OUTCOME_UNKNOWN;

    if (node->written) return "bootstrapped";
    if (checks && known) return asked->reply.outcome == OUTCOME_YES ? "guarded" : "free";
    if (checks) return "down";
    if (!known && asked->tried) return "unknown";
    if (node->closed) return "closed";
    if (!known) return "down";
    if (asked->reply.outcome == OUTCOME_ERROR && !node->unreadable) return "error";
    return node->guarded || asked->reply.outcome == OUTCOME_OTHER ? "guarded" : "free";
}

static void report(const struct inspect *inspect, uint32_t index, struct quorlock_node_report *ret)
{
    const struct inspect_node *asked = &inspect->nodes[index];
    const struct bootstrap_node *node = &own(inspect)->nodes[index];
    bool checks = own(inspect)->stage == CHECKS;

    ret->state = state_of(asked, node, checks);
    ret->holder = checks && !node->written ? asked->holder : node->guard;
    if (asked->answer != ANSWER_IN || asked->reply.outcome == OUTCOME_UNKNOWN) return;
    ret->ttl_ms = asked->reply.ttl_ms;
    if (asked->reply.has_guard) ret->quarantine_ms = asked->reply.quarantine_ms > 0 ? asked->reply.quarantine_ms : 0;
}

static void clear(struct inspect *inspect)
{
    for (uint32_t i = 0; i < n_nodes(inspect); i++) {
        alloc_free(&runtime_of(inspect)->alloc, own(inspect)->nodes[i].guard);
    }
}

int bootstrap_begin(struct admin *all, const struct quorlock_bootstrap_options *options, quorlock_report_cb cb,
                    void *arg)
{
    static const struct inspect_kind kind = {.fill = fill,
                                             .reply = on_reply,
                                             .step = step,
                                             .waits = waits,
                                             .wait_over = wait_over,
                                             .report = report,
                                             .clear = clear};
    struct runtime *runtime = all->runtime;
    struct quorlock_bootstrap_options checked;
    struct bootstrap *bootstrap;
    int status = report_check(all, cb != NULL);

    if (status == 0) status = options_bootstrap(&checked, options, &runtime->error);
    if (status != 0) return status;
    if (runtime->options.guard != QUORLOCK_GUARD_OFF) {
        return runtime_fail(runtime, QUORLOCK_INVAL,
                            "bootstrap needs a client with QUORLOCK_GUARD_OFF: another writes guards by itself");
    }
    bootstrap = alloc_zero(&runtime->alloc, sizeof(*bootstrap));
    if (bootstrap == NULL) return runtime_fail_plainly(runtime, QUORLOCK_NOMEM);
    bootstrap->reconfigure = checked.reconfigure != 0;
    /* The guard is not of this client's key space. */
    return inspect_start(all, &kind, bootstrap, OP_PEEK, "", GUARD_KEY, cb, arg);
}
