/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node_connect.c - from a pause to the first byte of the handshake
 */
#include "redis/node_impl.h"

#include <string.h>

static void begin_handshake(struct node *node)
{
    if (!reply_open(&node->parser)) {
        node_drop_nomem(node);
        return;
    }
    node->step = NODE_STEP_HANDSHAKE;
    node->handshake_us = node_now(node);
    enum handshake_eviction eviction = HANDSHAKE_EVICTION_UNASKED;
    if (guard_is_on(&node->guard))
        eviction = node->config.allow_eviction ? HANDSHAKE_EVICTION_WARNS : HANDSHAKE_EVICTION_FAILS;
    guard_forget(&node->guard);
    handshake_begin(&node->handshake, &node->conn.out, node->config.uri, node->client_name, node->dialect,
                    eviction);
    conn_secret(&node->conn);
    if (node->conn.out.fault) {
        node_drop_nomem(node);
        return;
    }
    conn_wake(&node->conn);
    node_arm_step(node);
}

static void follow(struct node *node, enum dial_result result)
{
    switch (result) {
    case DIAL_RESOLVING:
        node->step = NODE_STEP_RESOLVE;
        node_arm_step(node);
        break;
    case DIAL_CONNECTING:
        node->step = NODE_STEP_TCP;
        node_arm_step(node);
        break;
    case DIAL_FAILED: node_drop(node, NODE_FAULT_UNREACHABLE, node->dial.why); break;
    case DIAL_NOMEM: node_drop_nomem(node); break;
    }
}

void node_fail_address(struct node *node, const char *problem)
{
    conn_close(&node->conn);
    dial_blame(&node->dial, problem);
    follow(node, dial_next(&node->dial));
}

void node_on_connected(struct node *node)
{
    int error = conn_finish(&node->conn);
    if (error)
        node_fail_address(node, strerror(error));
    else
        begin_handshake(node);
}

void node_on_resolved(void *arg)
{
    struct node *node = arg;
    node_enter(node);
    follow(node, dial_next(&node->dial));
    node_leave(node);
}

void node_begin(struct node *node)
{
    follow(node, dial_begin(&node->dial));
}
