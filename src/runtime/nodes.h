/* SPDX-License-Identifier: BSD-3-Clause */
/* nodes.h - the nodes of one client: made, observed, asked */
#pragma once

#include "base/histogram.h"
#include "core/core.h"
#include "core/nodeclock.h"
#include "redis/node.h"
#include "runtime/runtime.h"

#define NODES_RUN_ID_SIZE 64

struct runtime_node {
    struct uri uri;
    bool has_answer; /* the program has set the credentials for the next login, before that asked */
    struct node *node;
    struct subscriber *subscriber; /* runs while a lock waits for release notices */
    struct nodeclock clock;
    struct link_counts counts;
    struct histogram round_trips;
    uint64_t requests;
    uint32_t connections;           /* connections that took requests */
    uint64_t life, life_us;         /* node_life, and when this client first met it */
    uint64_t connected_us;          /* since when the latest connection took requests */
    char run_id[NODES_RUN_ID_SIZE]; /* of the latest server process; kept when the connection ends */
};

/* A layer that wants events of nodes. Observers are called in the order of registration; all functions but `changed`
 * may be NULL. */
struct node_observer {
    struct link link; /* in runtime->observers */
    /* The node's state, or its reason, changed. */
    void (*changed)(struct node_observer *, uint32_t node);
    /* Called after `changed`: another server process or another guard than before answers. */
    void (*revived)(struct node_observer *, uint32_t node);
    /* Called instead: the same ones answer on another connection than before. */
    void (*reconnected)(struct node_observer *, uint32_t node);
    /* The node's clock stepped forward, so leases from before before_us may have ended early. */
    void (*clock_stepped)(struct node_observer *, uint32_t node, uint64_t before_us);
    /* The server tells that another client changed a key that was extended there; it may be wrong. */
    void (*told)(struct node_observer *, uint32_t node, const struct node_key *);
    /* The node's connection may have room again. */
    void (*has_room)(struct node_observer *, uint32_t node);
};

/* Sends requests, and receives the replies. */
struct requester {
    void (*reply)(struct requester *, const struct core_tag *, uint32_t generation, const struct node_reply *);
};

/* nodes_parse - read the addresses. Returns 0, or a status with its text in error. */
int nodes_parse(struct runtime *, const char *const *uris, struct quorlock_error *error);
/* nodes_open_tls - read the certificates if an address asks for TLS. Returns 0, or a status with its text in error. */
int nodes_open_tls(struct runtime *, struct quorlock_error *error);
/* nodes_close_tls - free them. No node, subscriber or examination may be left. */
void nodes_close_tls(struct runtime *);
/*
 * nodes_name_set - set runtime->set and runtime->order
 *
 * The set is the caller's name, or a hash of the sorted addresses without databases, so that clients of the same
 * servers have the same set. The order of the nodes is that of the addresses, too. If the caller names the set,
 * addresses may differ between clients, so the order is that of the caller's list.
 */
void nodes_name_set(struct runtime *);
/* nodes_link - return how to connect to the node. */
struct link_config nodes_link(struct runtime *, uint32_t node);
/* nodes_start - make the nodes, which connect when the loop runs. Returns 0, or -1 out of memory. */
int nodes_start(struct runtime *);
/* nodes_stop - free the nodes, in any state. */
void nodes_stop(struct runtime *);
/* nodes_may_end - prepare for the end of the process while the client closes. */
void nodes_may_end(struct runtime *);
/* nodes_observe - register an observer. */
void nodes_observe(struct runtime *, struct node_observer *);
/* nodes_log_in - implement quorlock_client_set_credentials. */
int nodes_log_in(struct runtime *, const char *node, const char *user, const char *password);
/* nodes_send - enum node_send_result. After NODE_SENT the requester gets one reply with this tag, and must live
 * until then. nodes_can_talk: the node takes requests. */
int nodes_send(struct runtime *, struct node_request *, struct requester *, const struct core_tag *);
bool nodes_can_talk(const struct node *);
/* nodes_statistics - return the node's state and counts, without round_trips. */
struct quorlock_node_statistics nodes_statistics(struct runtime *, uint32_t node);
