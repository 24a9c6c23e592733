/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bootstrap.c - writes the guards of all nodes, when they are new or when what they are set up for changes
 *
 * At most one of the old and the new set of clients can have a quorum at any time, wherever this ends, be it by
 * kill -9:
 *
 * 1. Nothing is written unless every node was seen, could be read, and lets us do all of it.
 * 2. On each node a guard is written and the old clients are disconnected in one transaction. From then on they
 * are refused there, and none of their acquires, that look at no guard, can be under way.
 * 3. Guards that were there, or may be written by the next client, are first replaced by such that fit nobody,
 * on all nodes; only when all are, the new guards are written. So the new clients get no vote of an old node
 * while the old clients have one of any node, and nobody has a quorum of what this leaves half done. (Nodes
 * that leave the set are stopped before: we do not know them.)
 * 4. A quarantine lasts for the longest lease that any guard allows, the new one among them, from that moment
 *    on; so a second try, also after half of a first one, makes none shorter.
 * 5. Where that is longer than the new max_lease the success is told only when the quarantine is over. Until
 * then a node that is emptied would be quarantined by new clients for the new max_lease alone, while an old,
 * longer lease runs, and the guard that tells it may be gone from all nodes at once. Nothing on the nodes can
 * prevent that; but whoever gives clients the shorter max_lease when this has ended, and not before, is safe:
 * nobody knows of it while a longer lease may run. Clients of the old one stay refused meanwhile.
 */
#include <string.h>

#include "admin/inspect_impl.h"
#include "lock/owner.h"
#include "redis/dialect/guard.h"
#include "redis/examine.h"

#define MS 1000u

static void set_guard(const struct inspect *inspect, struct inspect_node *node, const struct node_reply *reply)
{
    const struct alloc *alloc = &inspect->client->alloc;

    alloc_free(alloc, node->guard);
    node->guard = reply->holder != NULL ? owner_copy(alloc, reply->holder, reply->holder_length) : NULL;
}

static bool was_seen(const struct inspect_node *node)
{
    return node->answer == ANSWER_IN && (node->outcome == NODE_YES || node->outcome == NODE_MISSING);
}

/* What was found at the guard's place; a value of another type is none that can be read, either. */
static void look(const struct inspect *inspect, struct inspect_node *node, const struct node_reply *reply)
{
    struct examine_facts facts = {.reachable = true};
    int64_t left_ms = reply->quarantine_ms;

    set_guard(inspect, node, reply);
    node->guarded = reply->outcome == NODE_YES || reply->fault == NODE_FAULT_FOREIGN;
    if (reply->outcome == NODE_YES) examine_read_guard(&facts, reply->holder, reply->holder_length);
    node->unreadable = node->guarded && facts.guard.state != EXAMINE_GUARD_THERE;
    node->max_lease_ms = node->longest_ms = facts.guard.max_lease_ms;
    if (left_ms > 0 && facts.guard.longest_ms > node->longest_ms) node->longest_ms = facts.guard.longest_ms;
}

void bootstrap_on_reply(struct inspect *inspect, uint32_t index, const struct node_reply *reply)
{
    struct inspect_node *node = &inspect->nodes[index];

    if (node->op == NODE_BOOTSTRAP) {
        if (reply->outcome == NODE_YES) {
            node->closed = inspect->stage == BOOTSTRAP_CLOSES;
            node->written = !node->closed;
        }
        if (reply->holder != NULL) set_guard(inspect, node, reply);
    } else if (node->op == NODE_PEEK && inspect->stage == BOOTSTRAP_LOOKS) {
        look(inspect, node, reply);
        if (inspect->reconfigure && was_seen(node)) inspect_ask(inspect, index, NODE_MAY_KILL);
    }
}

/* The max_lease to write: as given, else the present one. False: the nodes have several. */
static bool choose_lease(struct inspect *inspect)
{
    const struct quorlock_client *client = inspect->client;
    bool given = client->max_lease_given || !inspect->reconfigure;

    inspect->lease_ms = given ? client->options.max_lease_ms : 0;
    for (uint32_t i = 0; i < client->n_nodes && !given; i++) {
        const struct inspect_node *node = &inspect->nodes[i];

        if (!node->guarded) continue;
        if (inspect->lease_ms != 0 && inspect->lease_ms != node->max_lease_ms) return false;
        inspect->lease_ms = node->max_lease_ms;
    }
    if (inspect->lease_ms == 0) inspect->lease_ms = client->options.max_lease_ms;
    inspect->longest_ms = inspect->lease_ms;
    for (uint32_t i = 0; i < client->n_nodes; i++) {
        const struct inspect_node *node = &inspect->nodes[i];

        if (node->longest_ms > inspect->longest_ms) inspect->longest_ms = node->longest_ms;
    }
    return true;
}

/* May anything be written? 0, or the status of a bootstrap that left all as it was. */
static int judge_looks(struct inspect *inspect)
{
    int status = 0;

    for (uint32_t i = 0; i < inspect->client->n_nodes; i++) {
        const struct inspect_node *node = &inspect->nodes[i];
        bool stands = inspect->reconfigure ? node->unreadable : node->guarded;

        if (stands) {
            if (status == 0) status = QUORLOCK_STATE;
        } else if (!was_seen(node)) {
            status = QUORLOCK_NOQUORUM;
        }
    }
    if (status == 0 && !choose_lease(inspect)) status = QUORLOCK_INVAL;
    return status;
}

static void write_all(struct inspect *inspect, enum bootstrap_stage stage)
{
    inspect->stage = stage;
    for (uint32_t i = 0; i < inspect->client->n_nodes; i++) {
        inspect->nodes[i].tried = false;
        inspect_ask(inspect, i, NODE_BOOTSTRAP);
    }
    inspect_set_deadline(inspect);
}

/* STATE: somebody else was faster, on all nodes. */
static int judge_written(const struct inspect *inspect)
{
    int status = 0;
    bool half = false;

    for (uint32_t i = 0; i < inspect->client->n_nodes; i++) {
        const struct inspect_node *node = &inspect->nodes[i];

        bool other = node->answer == ANSWER_IN && node->outcome == NODE_OTHER;

        if (node->answer == ANSWER_IN && node->outcome == NODE_YES) {
            half = true;
        } else if (!other) {
            status = QUORLOCK_NOQUORUM;
        } else if (status == 0) {
            status = QUORLOCK_STATE;
        }
    }
    return status == QUORLOCK_STATE && half ? QUORLOCK_NOQUORUM : status;
}

/* By our clock, which may go faster than theirs; what they have left then is waited for as well. */
static void wait_out(struct inspect *inspect, uint64_t left_ms)
{
    struct quorlock_client *client = inspect->client;
    uint64_t wait_us = (left_ms + 2) * MS;
    char left[24], longest[24], lease[24];

    wait_us += wait_us * client->options.drift_ppm / 1000000u;
    inspect->stage = BOOTSTRAP_WAITS;
    client_wake_at(client, &inspect->waker, client_now_us(client) + wait_us);
    client_log(
        client, QUORLOCK_LOG_WARN,
        "all nodes are set up anew; waiting %s more, for leases of up to %s may still run: give clients the "
        "max lease of %s when this has ended, and not before",
        guard_length(left, sizeof(left), (wait_us / MS + 999) / 1000 * 1000),
        guard_length(longest, sizeof(longest), inspect->longest_ms),
        guard_length(lease, sizeof(lease), inspect->lease_ms));
}

bool bootstrap_waits(const struct inspect *inspect)
{
    return inspect->bootstrap && inspect->stage == BOOTSTRAP_WAITS;
}

void bootstrap_wait_over(struct inspect *inspect)
{
    inspect->stage = BOOTSTRAP_CHECKS;
    inspect_ask_all(inspect);
}

/* Was everything as it is now all the time? */
static bool is_as_written(const struct inspect_node *node)
{
    return node->answer == ANSWER_IN && node->outcome == NODE_YES && node->guard != NULL &&
           node->holder != NULL && strcmp(node->guard, node->holder) == 0;
}

static void check(struct inspect *inspect, int *ret_status)
{
    int64_t left_ms = 0;

    *ret_status = 0;
    for (uint32_t i = 0; i < inspect->client->n_nodes; i++) {
        struct inspect_node *node = &inspect->nodes[i];

        if (node->answer == ANSWER_IN && node->quarantine_ms > left_ms) left_ms = node->quarantine_ms;
        node->written = is_as_written(node);
        if (!node->written) *ret_status = QUORLOCK_NOQUORUM;
    }
    /* More than that is a clock that was set back: the next client sees it, too. */
    if (left_ms > inspect->longest_ms) left_ms = inspect->longest_ms;
    if (*ret_status == 0 && left_ms > 0) wait_out(inspect, (uint64_t)left_ms);
}

bool bootstrap_step(struct inspect *inspect, int *ret_status)
{
    *ret_status = 0;
    switch (inspect->stage) {
    case BOOTSTRAP_LOOKS:
        *ret_status = judge_looks(inspect);
        if (*ret_status != 0) return false;
        write_all(inspect, inspect->reconfigure ? BOOTSTRAP_CLOSES : BOOTSTRAP_WRITES);
        return true;
    case BOOTSTRAP_CLOSES:
        *ret_status = judge_written(inspect);
        if (*ret_status != 0) return false;
        write_all(inspect, BOOTSTRAP_WRITES);
        return true;
    case BOOTSTRAP_WRITES:
        *ret_status = judge_written(inspect);
        if (*ret_status == 0 && inspect->longest_ms > inspect->lease_ms) wait_out(inspect, inspect->longest_ms);
        return false;
    case BOOTSTRAP_CHECKS: check(inspect, ret_status); break;
    case BOOTSTRAP_WAITS: break;
    }
    return false;
}

/* ---- the report ---- */

/* What stands there, as far as anybody knows. */
static const char *state_of(const struct inspect *inspect, const struct inspect_node *node)
{
    bool answered = node->answer == ANSWER_IN && node->outcome != NODE_UNKNOWN;
    bool checks = inspect->stage == BOOTSTRAP_CHECKS;

    if (node->written) return "bootstrapped";
    if (checks && answered) return node->outcome == NODE_YES ? "guarded" : "free";
    if (checks) return "down";
    if (!answered && node->tried) return "unknown";
    if (node->closed) return "closed";
    if (!answered) return "down";
    if (node->outcome == NODE_ERROR && !node->unreadable) return "error";
    return node->guarded || node->outcome == NODE_OTHER ? "guarded" : "free";
}

void bootstrap_report(const struct inspect *inspect, uint32_t index, struct quorlock_node_report *ret)
{
    const struct inspect_node *node = &inspect->nodes[index];

    ret->state = state_of(inspect, node);
    ret->holder = inspect->stage == BOOTSTRAP_CHECKS && !node->written ? node->holder : node->guard;
    if (node->answer != ANSWER_IN || node->outcome == NODE_UNKNOWN) return;
    ret->ttl_ms = node->ttl_ms;
    if (node->has_guard) ret->quarantine_ms = node->quarantine_ms > 0 ? node->quarantine_ms : 0;
}
