/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bootstrap.c - write the guards of all nodes, when the nodes are new or their settings change
 *
 * With reconfigure, at most one of the old and the new set of clients can have a quorum at any time, even if a
 * bootstrap is killed half-way:
 *
 * 1. Nothing is written before every node was reached and read, and permits every later step.
 * 2. On each node one transaction writes a guard and disconnects the old clients. From then on the node refuses them.
 * None of their acquires can be in flight, although acquires do not check the guard.
 * 3. Two rounds: the first writes, on all nodes, a guard that admits no client, and the second writes the new guards.
 * So no new client can vote while an old one can, and after half of a bootstrap neither set has a quorum. Nodes that
 * leave the set are not known here; the operator must stop them before.
 * 4. The quarantine lasts from that moment for the longest lease of any old or new guard. A second attempt never
 * shortens it.
 * 5. If that is longer than the new max_lease, success is reported only after the quarantine. The reason: a new client
 *    quarantines an emptied node for the new max_lease only, but an old, longer lease may still run. The nodes cannot
 * prevent that. It is safe if clients get the shorter max_lease after the quarantine; clients with the old one stay
 * refused.
 *
 * Without reconfigure, the operator declares that no lock is held on any node. One node cannot show that: if other
 * nodes have let clients vote, a node without a guard has lost its data, and locks that it forgot may be held. So
 * guards are written only if no node has let anybody vote: each is without a guard, or in the quarantine of its first
 * contact. The first contacts must be about the same time, because nodes that lost their data one after the other may
 * have had a holder until the last one.
 *
 * Nodes that all lost their data at the same time look like new ones. So nobody else with a guard may be connected to
 * them, who may hold a lock that they forgot, unless the caller knows better.
 *
 * Several clients may do this at the same time; each writes some guards. With if_needed, one that finds guards which
 * fit looks again before it fails, for the others finish their work meanwhile.
 *
 * A quarantine for a client with a longer max_lease than the guard's is over when nobody holds such a lease, whatever
 * other locks are held. So it is ended on each node that has one.
 */
#include "admin/inspect.h"

#include <stdio.h>
#include <string.h>

#include "redis/dialect/guard.h"
#include "redis/guard_sets.h"

#define MS             1000u
#define LOOK_AGAIN_US  100000u
#define LOOK_AGAIN_MAX 50u

/* A stage ends at all nodes before the next one begins. */
enum stage { LOOKS, PAUSES, COUNTS, CLOSES, WRITES, WAITS, CHECKS };

struct bootstrap_node {
    char *guard;                       /* first as found, then as written; NULL: none */
    uint32_t max_lease_ms, longest_ms; /* of the found guard; longest_ms: of leases that may still run */
    bool guarded, unreadable;          /* there was a guard; it could not be read */
    bool same_set, wanted;             /* it was of this set; it was quarantined for a client with a longer max lease */
    uint64_t first_ms;                 /* rest of the quarantine of a first contact */
    uint32_t n_clients;                /* others that may hold locks */
    bool closed, written;              /* now its guard admits no client; now it is the new one */
};

struct bootstrap {
    bool reconfigure, if_needed, despite_clients;
    bool ends; /* it only ends quarantines for clients with a longer max lease */
    bool done; /* nothing needs to be written */
    enum stage stage;
    uint32_t looked_again;
    uint32_t lease_ms, longest_ms; /* of the new guards */
    quorlock_bootstrap_cb call;
    void *arg;
    struct bootstrap_node nodes[QUORLOCK_NODES_MAX];
};

static struct bootstrap *admin_bootstrap_own(const struct inspect *inspect)
{
    return inspect->more;
}

static struct runtime *admin_bootstrap_runtime_of(const struct inspect *inspect)
{
    return inspect->report.all->runtime;
}

static uint32_t n_nodes(const struct inspect *inspect)
{
    return admin_bootstrap_runtime_of(inspect)->n_nodes;
}

/* ---- replies ---- */

static void admin_bootstrap_set_guard(const struct inspect *inspect, struct bootstrap_node *node,
                                      const struct node_reply *reply)
{
    const struct alloc *alloc = &admin_bootstrap_runtime_of(inspect)->alloc;

    alloc_free(alloc, node->guard);
    node->guard = reply->holder != NULL ? owner_copy(alloc, reply->holder, reply->holder_length) : NULL;
}

static bool was_seen(const struct inspect_node *node)
{
    return node->answer == ANSWER_IN && (node->reply.outcome == OUTCOME_YES || node->reply.outcome == OUTCOME_MISSING);
}

static bool admin_bootstrap_answered(const struct inspect_node *node, enum outcome outcome)
{
    return node->answer == ANSWER_IN && node->reply.outcome == outcome;
}

/* node_now_ms - return the time by the node's clock, as its quarantine shows it; without one the end of the latest one.
 */
static uint64_t node_now_ms(const struct guard_text *guard, int64_t quarantine_ms)
{
    uint64_t end_ms = guard_text_end_ms(guard);

    if (quarantine_ms <= 0) return end_ms;
    return end_ms > (uint64_t)quarantine_ms ? end_ms - (uint64_t)quarantine_ms : 0;
}

/* admin_bootstrap_look - read a found guard. A value of another type counts as a guard that cannot be read. */
static void admin_bootstrap_look(const struct inspect *inspect, uint32_t index, const struct node_reply *reply)
{
    const struct runtime *runtime = admin_bootstrap_runtime_of(inspect);
    struct bootstrap_node *node = &admin_bootstrap_own(inspect)->nodes[index];
    struct guard_text guard = {0};
    bool read = reply->outcome == OUTCOME_YES && guard_text_read(reply->holder, reply->holder_length, &guard);
    uint64_t now_ms = node_now_ms(&guard, reply->quarantine_ms);

    admin_bootstrap_set_guard(inspect, node, reply);
    node->guarded = reply->outcome == OUTCOME_YES || reply->fault == FAULT_FOREIGN;
    node->unreadable = node->guarded && !read;
    node->max_lease_ms = node->longest_ms = guard.max_lease_ms;
    if (guard.till_ms > now_ms && guard.longest_ms > node->longest_ms) node->longest_ms = guard.longest_ms;
    node->same_set = read && guard.n_nodes == runtime->n_nodes && strcmp(guard.set, runtime->set) == 0;
    node->first_ms = 0;
    if (strcmp(guard.run_id, node_run_id(runtime->nodes[index].node)) == 0)
        node->first_ms = guard_text_first_ms(&guard, now_ms);
    node->wanted = guard.wanted_till_ms > now_ms;
}

static void admin_bootstrap_explain(struct inspect *inspect, uint32_t index, const char *why)
{
    struct inspect_node *node = &inspect->nodes[index];
    const struct alloc *alloc = &admin_bootstrap_runtime_of(inspect)->alloc;

    alloc_free(alloc, node->error);
    node->error = alloc_text(alloc, why, strlen(why));
}

static void take_count(struct inspect *inspect, uint32_t index, const struct node_reply *reply)
{
    char why[80];

    if (reply->outcome != OUTCOME_YES || reply->count == 0) return;
    admin_bootstrap_own(inspect)->nodes[index].n_clients = reply->count;
    snprintf(why, sizeof(why), "%u connection%s of other clients of quorlock", (unsigned)reply->count,
             reply->count == 1 ? "" : "s");
    admin_bootstrap_explain(inspect, index, why);
}

static void admin_bootstrap_on_reply(struct inspect *inspect, uint32_t index, const struct node_reply *reply)
{
    const struct bootstrap *bootstrap = inspect->more;
    struct bootstrap_node *node = &admin_bootstrap_own(inspect)->nodes[index];
    enum op op = inspect->nodes[index].op;

    if (op == OP_BOOTSTRAP) {
        /* Without reconfigure it was a script whose last command writes: after an error nothing was written. */
        if (!bootstrap->reconfigure && reply->fault == FAULT_OTHER) inspect->nodes[index].reply.outcome = OUTCOME_ERROR;
        if (reply->outcome == OUTCOME_YES) {
            node->closed = bootstrap->stage == CLOSES;
            node->written = !node->closed;
        }
        if (reply->holder != NULL) admin_bootstrap_set_guard(inspect, node, reply);
    } else if (op == OP_PEEK && bootstrap->stage == LOOKS) {
        admin_bootstrap_look(inspect, index, reply);
        /* The error speaks of a lock of another dialect, but this key is the guard. */
        if (reply->fault == FAULT_FOREIGN) admin_bootstrap_explain(inspect, index, GUARD_FOREIGN);
        if (bootstrap->reconfigure && was_seen(&inspect->nodes[index])) {
            inspect_ask(inspect, index, OP_MAY_KILL);
        }
    } else if (op == OP_CLIENTS) {
        take_count(inspect, index, reply);
    }
}

/* ---- stages ---- */

/* choose_lease - choose the max_lease to write: the given one, or else the present one. False: the nodes have several.
 */
static bool choose_lease(const struct inspect *inspect)
{
    const struct runtime *runtime = admin_bootstrap_runtime_of(inspect);
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

static bool fits(const struct bootstrap *bootstrap, const struct bootstrap_node *node)
{
    return node->same_set && node->max_lease_ms == bootstrap->lease_ms;
}

/* is_spared - return whether nothing is written to the node. */
static bool is_spared(const struct bootstrap *bootstrap, const struct bootstrap_node *node)
{
    return bootstrap->ends && !node->wanted;
}

/* is_done - return whether a quorum has guards as they would be written, and no node has another one. A node without a
 * guard gets it from the next client, with the quarantine that it needs. */
static bool is_done(const struct inspect *inspect)
{
    const struct bootstrap *bootstrap = inspect->more;
    uint32_t n_fit = 0;

    for (uint32_t i = 0; i < n_nodes(inspect); i++) {
        const struct bootstrap_node *node = &bootstrap->nodes[i];

        if (node->guarded && !fits(bootstrap, node)) return false;
        n_fit += node->guarded;
    }
    return n_fit >= runtime_quorum(admin_bootstrap_runtime_of(inspect));
}

/* judge_first - do as judge_looks, without reconfigure (rule 4.12). */
static int judge_first(const struct inspect *inspect)
{
    struct bootstrap *bootstrap = inspect->more;
    bool first, wanted = false, fit = true, seen = true;
    struct guard_sets sets = {0};
    uint32_t max_lease_ms = bootstrap->lease_ms;

    for (uint32_t i = 0; i < n_nodes(inspect); i++) {
        const struct bootstrap_node *node = &bootstrap->nodes[i];

        seen &= node->guarded || was_seen(&inspect->nodes[i]);
        if (node->guarded) max_lease_ms = node->max_lease_ms;
        fit &= !node->guarded || fits(bootstrap, node);
        wanted |= node->wanted;
    }
    for (uint32_t i = 0; i < n_nodes(inspect); i++) {
        const struct bootstrap_node *node = &bootstrap->nodes[i];
        bool lasts = node->first_ms != 0 && node->same_set;

        guard_sets_add(&sets, node->guarded && !lasts ? GUARD_SET_OLDER : GUARD_SET_FIRST,
                       node->guarded ? node->first_ms : (uint64_t)max_lease_ms + 1);
    }
    first = guard_sets_judge(&sets, max_lease_ms) == GUARD_SET_FIRST;
    bootstrap->ends = !first && fit && wanted;
    /* To end quarantines, not all nodes are needed: a node that is down keeps its quarantine. */
    if ((seen && first) || bootstrap->ends) return 0;
    if (!first && bootstrap->if_needed && !wanted && is_done(inspect)) bootstrap->done = true;
    if (bootstrap->done) return 0;
    return seen ? QUORLOCK_ERR_STATE : QUORLOCK_ERR_NOQUORUM;
}

/* judge_looks - return 0 if guards may be written, or nothing needs to be written; else the status of the bootstrap. */
static int judge_looks(const struct inspect *inspect)
{
    const struct bootstrap *bootstrap = inspect->more;
    int status = 0;

    for (uint32_t i = 0; i < n_nodes(inspect) && bootstrap->reconfigure; i++) {
        if (bootstrap->nodes[i].unreadable) {
            if (status == 0) status = QUORLOCK_ERR_STATE;
        } else if (!was_seen(&inspect->nodes[i])) {
            status = QUORLOCK_ERR_NOQUORUM;
        }
    }
    if (status == 0 && !choose_lease(inspect)) status = QUORLOCK_ERR_INVAL;
    return status == 0 && !bootstrap->reconfigure ? judge_first(inspect) : status;
}

static void admin_bootstrap_write_all(struct inspect *inspect, enum stage stage)
{
    struct bootstrap *bootstrap = inspect->more;

    bootstrap->stage = stage;
    for (uint32_t i = 0; i < n_nodes(inspect); i++) {
        if (is_spared(bootstrap, &bootstrap->nodes[i])) continue;
        inspect->nodes[i].tried = false;
        inspect_ask(inspect, i, OP_BOOTSTRAP);
    }
    inspect_set_deadline(inspect);
}

/* admin_bootstrap_judge_written - return the status of a round. STATE: another client was faster on all nodes. */
static int admin_bootstrap_judge_written(const struct inspect *inspect)
{
    int status = 0;
    bool half = false;

    for (uint32_t i = 0; i < n_nodes(inspect); i++) {
        if (is_spared(inspect->more, &admin_bootstrap_own(inspect)->nodes[i])) continue;
        if (admin_bootstrap_answered(&inspect->nodes[i], OUTCOME_YES)) {
            half = true;
        } else if (!admin_bootstrap_answered(&inspect->nodes[i], OUTCOME_OTHER)) {
            status = QUORLOCK_ERR_NOQUORUM;
        } else if (status == 0) {
            status = QUORLOCK_ERR_STATE;
        }
    }
    return status == QUORLOCK_ERR_STATE && half ? QUORLOCK_ERR_NOQUORUM : status;
}

static void count_clients(struct inspect *inspect)
{
    admin_bootstrap_own(inspect)->stage = COUNTS;
    for (uint32_t i = 0; i < n_nodes(inspect); i++) inspect_ask(inspect, i, OP_CLIENTS);
    inspect_set_deadline(inspect);
}

/* judge_clients - return 0 if nobody else may hold a lock on the nodes, else the status. */
static int admin_bootstrap_judge_clients(const struct inspect *inspect)
{
    int status = 0;

    for (uint32_t i = 0; i < n_nodes(inspect); i++) {
        const struct inspect_node *node = &inspect->nodes[i];

        if (admin_bootstrap_own(inspect)->nodes[i].n_clients > 0) return QUORLOCK_ERR_HELD;
        if (admin_bootstrap_answered(node, OUTCOME_YES)) continue;
        status =
            node->answer == ANSWER_IN && node->reply.fault == FAULT_AUTH ? QUORLOCK_ERR_AUTH : QUORLOCK_ERR_NOQUORUM;
    }
    return status;
}

/* may_fit_soon - return whether the guards are such that another client may be writing the rest of them. */
static bool may_fit_soon(const struct inspect *inspect)
{
    const struct bootstrap *bootstrap = inspect->more;

    for (uint32_t i = 0; i < n_nodes(inspect); i++) {
        const struct bootstrap_node *node = &bootstrap->nodes[i];
        const struct inspect_node *asked = &inspect->nodes[i];
        bool known = was_seen(asked) || admin_bootstrap_answered(asked, OUTCOME_OTHER);

        if (!known || (node->guarded && !fits(bootstrap, node))) return false;
    }
    return bootstrap->if_needed && bootstrap->looked_again < LOOK_AGAIN_MAX;
}

/* fail - fail with that status, or look again after a pause: then return 0. */
static int fail(struct inspect *inspect, int status)
{
    struct runtime *runtime = admin_bootstrap_runtime_of(inspect);
    struct bootstrap *bootstrap = inspect->more;

    if (status == 0 || !may_fit_soon(inspect)) return status;
    bootstrap->looked_again++;
    bootstrap->stage = PAUSES;
    runtime_wake_at(runtime, &inspect->waker, runtime_now_us(runtime) + LOOK_AGAIN_US);
    return 0;
}

/* wait_out - wait for the end of the quarantines, plus the drift allowance. admin_bootstrap_check checks the result. */
static void wait_out(struct inspect *inspect, uint64_t left_ms)
{
    struct runtime *runtime = admin_bootstrap_runtime_of(inspect);
    struct bootstrap *bootstrap = inspect->more;
    uint64_t wait_us = (left_ms + 2) * MS;
    char left[24], longest[24], lease[24];

    wait_us += wait_us * runtime->options.drift_ppm / 1000000u;
    bootstrap->stage = WAITS;
    runtime_wake_at(runtime, &inspect->waker, runtime_now_us(runtime) + wait_us);
    runtime_log(
        runtime, QUORLOCK_LOG_WARN,
        "all nodes have their new guards; waiting %s more, because leases of up to %s may still run: give clients "
        "the max lease of %s when this has ended, and not before",
        guard_length(left, sizeof(left), (wait_us / MS + 999) / 1000 * 1000),
        guard_length(longest, sizeof(longest), bootstrap->longest_ms),
        guard_length(lease, sizeof(lease), bootstrap->lease_ms));
}

static bool admin_bootstrap_waits(const struct inspect *inspect)
{
    enum stage stage = admin_bootstrap_own(inspect)->stage;

    return stage == WAITS || stage == PAUSES;
}

static void wait_over(struct inspect *inspect)
{
    struct bootstrap *bootstrap = inspect->more;

    bootstrap->stage = bootstrap->stage == WAITS ? CHECKS : LOOKS;
    bootstrap->ends = false;
    for (uint32_t i = 0; i < n_nodes(inspect); i++) bootstrap->nodes[i].n_clients = 0;
    inspect_ask_all(inspect);
}

/* is_as_written - return whether the guard has not changed since it was written. */
static bool is_as_written(const struct inspect_node *node, const char *guard)
{
    return admin_bootstrap_answered(node, OUTCOME_YES) && guard != NULL && node->holder != NULL &&
           strcmp(guard, node->holder) == 0;
}

/* quarantine_left_ms - return the rest of the quarantine, without one for a client with a longer max lease. */
static int64_t quarantine_left_ms(const struct inspect_node *node)
{
    struct guard_text guard;
    uint64_t now_ms;

    if (!admin_bootstrap_answered(node, OUTCOME_YES) || node->holder == NULL || node->reply.quarantine_ms <= 0)
        return 0;
    if (!guard_text_read(node->holder, strlen(node->holder), &guard)) return node->reply.quarantine_ms;
    now_ms = node_now_ms(&guard, node->reply.quarantine_ms);
    return guard.till_ms > now_ms ? (int64_t)(guard.till_ms - now_ms) : 0;
}

static int admin_bootstrap_check(struct inspect *inspect)
{
    struct bootstrap *bootstrap = inspect->more;
    int64_t left_ms = 0;
    int status = 0;

    for (uint32_t i = 0; i < n_nodes(inspect); i++) {
        const struct inspect_node *node = &inspect->nodes[i];
        int64_t node_left_ms = quarantine_left_ms(node);

        if (node_left_ms > left_ms) left_ms = node_left_ms;
        bootstrap->nodes[i].written = is_as_written(node, bootstrap->nodes[i].guard);
        if (!bootstrap->nodes[i].written) status = QUORLOCK_ERR_NOQUORUM;
    }
    /* More than that means that a clock was set back. The next client notices that too. */
    if (left_ms > bootstrap->longest_ms) left_ms = bootstrap->longest_ms;
    if (status == 0 && left_ms > 0) wait_out(inspect, (uint64_t)left_ms);
    return status;
}

/* Rule 4.13. */
static bool admin_bootstrap_step(struct inspect *inspect, int *ret_status)
{
    struct bootstrap *bootstrap = inspect->more;
    int status;

    *ret_status = 0;
    switch (bootstrap->stage) {
    case LOOKS:
        status = judge_looks(inspect);
        *ret_status = fail(inspect, status);
        if (status != 0 || bootstrap->done) return false;
        if (bootstrap->reconfigure || bootstrap->ends || bootstrap->despite_clients) {
            admin_bootstrap_write_all(inspect, bootstrap->reconfigure ? CLOSES : WRITES);
        } else {
            count_clients(inspect);
        }
        return true;
    case COUNTS:
        status = admin_bootstrap_judge_clients(inspect);
        *ret_status = fail(inspect, status);
        if (status != 0) return false;
        admin_bootstrap_write_all(inspect, WRITES);
        return true;
    case CLOSES:
        *ret_status = admin_bootstrap_judge_written(inspect);
        if (*ret_status != 0) return false;
        admin_bootstrap_write_all(inspect, WRITES);
        return true;
    case WRITES:
        status = admin_bootstrap_judge_written(inspect);
        *ret_status = fail(inspect, status);
        if (status == 0 && bootstrap->reconfigure && bootstrap->longest_ms > bootstrap->lease_ms) {
            wait_out(inspect, bootstrap->longest_ms);
        }
        return false;
    case CHECKS: *ret_status = admin_bootstrap_check(inspect); break;
    case PAUSES:
    case WAITS: break;
    }
    return false;
}

static void admin_bootstrap_fill(const struct inspect *inspect, struct node_request *request)
{
    const struct bootstrap *bootstrap = inspect->more;

    request->force = bootstrap->reconfigure;
    request->closes = bootstrap->stage == CLOSES;
    request->ends = bootstrap->ends;
    request->lease_ms = bootstrap->lease_ms;
    request->longest_ms = bootstrap->longest_ms;
}

/* ---- the report ---- */

static int admin_bootstrap_state_of(const struct bootstrap *bootstrap, const struct inspect_node *asked,
                                    const struct bootstrap_node *node)
{
    bool checks = bootstrap->stage == CHECKS;
    bool known = asked->answer == ANSWER_IN && asked->reply.outcome != OUTCOME_UNKNOWN;

    if (node->written) return bootstrap->ends ? QUORLOCK_BOOTSTRAP_ENDED : QUORLOCK_BOOTSTRAP_WRITTEN;
    if (checks && known)
        return asked->reply.outcome == OUTCOME_YES ? QUORLOCK_BOOTSTRAP_GUARDED : QUORLOCK_BOOTSTRAP_FREE;
    if (checks) return QUORLOCK_BOOTSTRAP_DOWN;
    if (!known && asked->tried) return QUORLOCK_BOOTSTRAP_UNKNOWN;
    if (node->closed) return QUORLOCK_BOOTSTRAP_CLOSED;
    if (!known) return QUORLOCK_BOOTSTRAP_DOWN;
    if (node->n_clients > 0) return QUORLOCK_BOOTSTRAP_IN_USE;
    if (asked->reply.outcome == OUTCOME_ERROR && !node->unreadable) return QUORLOCK_BOOTSTRAP_ERROR;
    return node->guarded || asked->reply.outcome == OUTCOME_OTHER ? QUORLOCK_BOOTSTRAP_GUARDED
                                                                  : QUORLOCK_BOOTSTRAP_FREE;
}

static void admin_bootstrap_tell(const struct inspect *inspect, int status)
{
    const struct bootstrap *bootstrap = inspect->more;
    struct quorlock_bootstrap_node each[QUORLOCK_NODES_MAX];
    const struct quorlock_bootstrap_node *nodes[QUORLOCK_NODES_MAX];
    const struct quorlock_bootstrap_report report = {.nodes = nodes, .n_nodes = n_nodes(inspect)};

    for (uint32_t i = 0; i < n_nodes(inspect); i++) {
        const struct inspect_node *asked = &inspect->nodes[i];
        const struct bootstrap_node *node = &bootstrap->nodes[i];
        bool checks = bootstrap->stage == CHECKS;

        each[i] = (struct quorlock_bootstrap_node){
            .node = node_name(admin_bootstrap_runtime_of(inspect)->nodes[i].node),
            .state = admin_bootstrap_state_of(bootstrap, asked, node),
            .guard = checks && !node->written ? asked->holder : node->guard,
            .error = asked->error,
            .latency_us = asked->reply.latency_us,
            .quarantine_ms = inspect_quarantine_ms(asked),
        };
        nodes[i] = &each[i];
    }
    bootstrap->call(status, &report, bootstrap->arg);
}

static void admin_bootstrap_clear(struct inspect *inspect)
{
    for (uint32_t i = 0; i < n_nodes(inspect); i++) {
        alloc_free(&admin_bootstrap_runtime_of(inspect)->alloc, admin_bootstrap_own(inspect)->nodes[i].guard);
    }
}

int bootstrap_begin(struct admin *all, const struct quorlock_bootstrap_options *options, quorlock_bootstrap_cb cb,
                    void *arg)
{
    static const struct inspect_kind kind = {.fill = admin_bootstrap_fill,
                                             .reply = admin_bootstrap_on_reply,
                                             .step = admin_bootstrap_step,
                                             .waits = admin_bootstrap_waits,
                                             .wait_over = wait_over,
                                             .tell = admin_bootstrap_tell,
                                             .clear = admin_bootstrap_clear};
    struct runtime *runtime = all->runtime;
    struct quorlock_bootstrap_options checked;
    struct bootstrap *bootstrap;
    int status = report_check(all, cb != NULL);

    if (status == 0) status = options_bootstrap(&checked, options, &runtime->error);
    if (status != 0) return status;
    if (runtime->options.guard != QUORLOCK_GUARD_OFF) {
        return runtime_fail(
            runtime, QUORLOCK_ERR_INVAL,
            "bootstrap needs a client with QUORLOCK_GUARD_OFF: other clients write guards by themselves");
    }
    bootstrap = alloc_zero(&runtime->alloc, sizeof(*bootstrap));
    if (bootstrap == NULL) return runtime_fail_plainly(runtime, QUORLOCK_ERR_NOMEM);
    bootstrap->reconfigure = checked.reconfigure != 0;
    bootstrap->if_needed = checked.if_needed != 0;
    bootstrap->despite_clients = checked.despite_clients != 0;
    bootstrap->call = cb;
    bootstrap->arg = arg;
    /* The guard's key has no prefix. */
    return inspect_start(all, &kind, bootstrap, OP_PEEK, "", GUARD_KEY);
}
