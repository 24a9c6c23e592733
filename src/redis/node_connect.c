/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node_connect.c - from a pause to the first byte of the handshake
 */
#include "node_impl.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

static void node_begin_handshake(struct node *node)
{
    if (!reply_open(&node->parser)) {
        node_drop_nomem(node);
        return;
    }
    node->state = NODE_HANDSHAKE;
    node->n_first = 0;
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

/* Names the address where the node's own name does not. */
void node_describe_connect(struct node *node, const char *problem)
{
    char address[INET6_ADDRSTRLEN] = "";
    if (node->config.uri->kind == URI_NAME && node->address_at) {
        const struct sockaddr_storage *storage = &node->addresses.addresses[node->address_at - 1].storage;
        const void *bytes = storage->ss_family == AF_INET6
                                ? (const void *)&((const struct sockaddr_in6 *)storage)->sin6_addr
                                : (const void *)&((const struct sockaddr_in *)storage)->sin_addr;
        if (!inet_ntop(storage->ss_family, bytes, address, sizeof address)) address[0] = '\0';
    }
    snprintf(node->address_why, sizeof node->address_why, "connect%s%s: %s", *address ? " to " : "", address,
             problem);
}

/* The next address that at least begins to connect; none is left: down. */
void node_try_address(struct node *node)
{
    while (node->address_at < node->addresses.n_addresses) {
        const struct resolve_address *address = &node->addresses.addresses[node->address_at++];
        int error = conn_open(&node->conn, (const struct sockaddr *)&address->storage, address->length,
                              node->config.stall_ms);
        if (!error) {
            node->state = NODE_TCP;
            node_arm_step(node);
            return;
        }
        node_describe_connect(node, strerror(error));
    }
    node_drop(node, NODE_FAULT_UNREACHABLE, node->address_why);
}

void node_on_connected(struct node *node)
{
    int error = conn_finish(&node->conn);
    if (!error) {
        node_begin_handshake(node);
        return;
    }
    conn_close(&node->conn);
    node_describe_connect(node, strerror(error));
    node_try_address(node);
}

static void node_on_resolved(void *arg, const struct resolve_answer *answer)
{
    struct node *node = arg;
    node_enter(node);
    node->resolve = NULL;
    if (answer->n_addresses) {
        node->addresses = *answer;
        node_try_address(node);
    } else {
        char why[NODE_TEXT_SIZE];
        snprintf(why, sizeof why, "cannot resolve %s: %s", node->config.uri->host, answer->why);
        node_drop(node, NODE_FAULT_UNREACHABLE, why);
    }
    node_leave(node);
}

/* The one address of a unix path or numeric host. False: not an address; uri_parse does not let it come here.
 */
static bool node_fill_address(struct node *node)
{
    const struct uri *uri = node->config.uri;
    struct resolve_address *address = &node->addresses.addresses[0];
    memset(address, 0, sizeof *address);
    struct sockaddr_un *local = (struct sockaddr_un *)&address->storage;
    struct sockaddr_in *v4 = (struct sockaddr_in *)&address->storage;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address->storage;
    if (uri->kind == URI_UNIX) {
        local->sun_family = AF_UNIX;
        address->length = sizeof *local;
        return (size_t)snprintf(local->sun_path, sizeof local->sun_path, "%s", uri->host) <
               sizeof local->sun_path;
    }
    if (inet_pton(AF_INET, uri->host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(uri->port);
        address->length = sizeof *v4;
        return true;
    }
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(uri->port);
    address->length = sizeof *v6;
    return inet_pton(AF_INET6, uri->host, &v6->sin6_addr) == 1;
}

void node_begin(struct node *node)
{
    const struct uri *uri = node->config.uri;
    node->address_at = 0;
    node->addresses.n_addresses = 0;
    node_describe_connect(node, "no address");
    if (uri->kind == URI_NAME) {
        node->state = NODE_RESOLVE;
        node->resolve = resolve_start(node->base, &node->alloc, uri->host, uri->port, node_on_resolved, node);
        if (node->resolve)
            node_arm_step(node);
        else
            node_drop_nomem(node);
        return;
    }
    if (node_fill_address(node)) node->addresses.n_addresses = 1;
    node_try_address(node);
}
