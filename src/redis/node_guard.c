/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node_guard.c - when a node looks at its guard: at the end of the handshake, and when a quarantine ends
 */
#include <stdio.h>
#include <string.h>

#include "redis/node_impl.h"

#define NODE_GUARD_RETRY_US 10000 /* where there was no room to ask */

static void tell_guard(struct node *node)
{
    char why[NODE_TEXT_SIZE];
    if (node->guard.until_us) {
        guard_describe(&node->guard, node_now(node), why, sizeof(why));
        node_set_state(node, NODE_QUARANTINED, NODE_FAULT_NONE, why);
    } else {
        node_set_state(node, NODE_READY, NODE_FAULT_NONE, "");
    }
}

static void node_open(struct node *node)
{
    node->step = NODE_STEP_OPEN;
    node->generation++;
    node->ready_us = node_now(node);
    node->answerable = 0;
    node_arm(node, node_open_wake_us(node));
    tell_guard(node);
}

void node_end_handshake(struct node *node)
{
    struct handshake *shake = &node->handshake;
    guard_meet(&node->guard, shake->run_id, shake->replid);
    if (shake->warning[0]) node_log(node, QUORLOCK_LOG_WARN, "%s", shake->warning);
    if (!guard_is_on(&node->guard)) {
        node_open(node);
        return;
    }
    if (!shake->run_id[0] || !shake->replid[0]) {
        node_drop(node, NODE_FAULT_PROTO, "INFO tells no run_id or master_replid: the guard cannot be kept");
        return;
    }
    guard_ask(&node->guard, &node->conn.out);
    if (node->conn.out.fault) {
        node_drop_nomem(node);
        return;
    }
    node->guard.asked = true;
    conn_wake(&node->conn);
    node_arm_step(node);
}

void node_on_guard_reply(struct node *node, const struct reply *raw)
{
    char why[GUARD_WHY_SIZE];
    if (guard_judge(&node->guard, raw, node_now(node)) == GUARD_FAILED) {
        memcpy(why, node->guard.why, sizeof(why));
        node_drop(node, node->guard.fault, why);
        return;
    }
    if (node->step == NODE_STEP_HANDSHAKE) {
        node_open(node);
        return;
    }
    uint64_t wake_us = node_open_wake_us(node);
    if (wake_us < node->timer_us) node_arm(node, wake_us);
    tell_guard(node);
}

/* Behind what is in flight; nobody but us hears of the reply. */
static void ask_guard(struct node *node, uint64_t now_us)
{
    struct bytes *out = &node->conn.out;
    size_t mark = out->used;
    struct ring_entry entry = {.sent_us = now_us, .deadline_us = RING_NEVER, .reported = true, .guard = true};
    if (ring_reserve(&node->ring) == RING_ROOM) {
        guard_ask(&node->guard, out);
        if (!out->fault) {
            ring_push(&node->ring, &entry);
            node->fresh++;
            node->guard.asked = true;
            conn_wake(&node->conn);
            return;
        }
        bytes_cut(out, mark);
    }
    node->guard.until_us = now_us + NODE_GUARD_RETRY_US;
}

void node_watch_guard(struct node *node, uint64_t now_us)
{
    const struct guard *guard = &node->guard;
    if (guard->until_us && !guard->asked && now_us >= guard->until_us) ask_guard(node, now_us);
}

uint64_t node_open_wake_us(struct node *node)
{
    const struct guard *guard = &node->guard;
    uint64_t wake_us = ring_wake_us(&node->ring, (uint64_t)node->config.stall_ms * 1000);
    return guard->until_us && !guard->asked && guard->until_us < wake_us ? guard->until_us : wake_us;
}

/*
 * A refusal: the server drops the whole transaction then, and tells no reason at its end. Where it refuses the
 * very first command there is no transaction, and what follows may have been executed one by one.
 */
void node_on_part(struct node *node, struct ring_entry *entry, const struct reply *raw)
{
    struct node_reply reply;
    char text[NODE_TEXT_SIZE];
    bool first = entry->parts-- == GUARD_PARTS && entry->op == NODE_BOOTSTRAP;
    union node_tag tag = entry->tag;
    if (raw->self.type != REPLY_ERROR || entry->reported) return;
    entry->reported = true;
    node->dialect->judge(entry->op, false, raw, &reply, text, sizeof(text));
    reply.outcome = first ? NODE_UNKNOWN : NODE_ERROR;
    node_report(node, &tag, &reply);
}

/* ---- what the client calls ---- */

uint64_t node_quarantined_until_us(const struct node *node)
{
    return node_state_now(node) == NODE_QUARANTINED ? node->guard.until_us : 0;
}

const char *node_run_id(const struct node *node)
{
    return node->guard.run_id;
}

const char *node_why(const struct node *node)
{
    if (node_state_now(node) != NODE_QUARANTINED) return node->why;
    guard_describe(&node->guard, node_now(node), node->countdown, NODE_TEXT_SIZE);
    return node->countdown;
}

void node_expel(struct node *node, enum node_fault fault, const char *why)
{
    if (node->dead || node->step != NODE_STEP_OPEN) return;
    node_enter(node);
    node->expelled = true;
    node_drop(node, fault, why);
    node_leave(node);
}
