/* SPDX-License-Identifier: BSD-3-Clause */
/* nodes.h - the nodes of one client: made, observed, asked */
#pragma once

#include "core/core.h"
#include "core/nodeclock.h"
#include "redis/node.h"
#include "runtime/runtime.h"

#define NODES_RUN_ID_SIZE 64

struct runtime_node {
    struct uri uri;
    struct node *node;
    struct subscriber *subscriber; /* runs while a lock waits for release notices */
    struct nodeclock clock;
    struct link_counts counts; /* also of requests */
    struct quorlock_histogram round_trips;
    uint64_t requests;
    uint32_t connections;           /* that took requests */
    uint64_t life, life_us;         /* node_life, and when it was met */
    char run_id[NODES_RUN_ID_SIZE]; /* of the process that answered there last; kept when the connection ends */
};

/* A layer that wants events of nodes, in the order of registration; all but changed may be NULL. */
struct node_observer {
    struct link link; /* in runtime->observers */
    /* The node's state, or the reason of it, changed. Behind that: another server process, or another guard, than
     * before answers there. Its clock stepped forward: leases from before may have ended early. Its connection may
     * have room again. */
    void (*changed)(struct node_observer *, uint32_t node);
    void (*revived)(struct node_observer *, uint32_t node);
    void (*clock_stepped)(struct node_observer *, uint32_t node, uint64_t before_us);
    void (*has_room)(struct node_observer *, uint32_t node);
};

/* What sends requests and receives the replies. */
struct requester {
    void (*reply)(struct requester *, const struct core_tag *, uint32_t generation, const struct node_reply *);
};

/* nodes_parse - the addresses; 0 or a status with its text in error. */
int nodes_parse(struct runtime *, const char *const *uris, struct caller_error *error);
/* nodes_open_tls - reads the certificates where an address asks for TLS; 0 or a status with its text in error.
 * nodes_close_tls: when no node, subscriber or examination is left. */
int nodes_open_tls(struct runtime *, struct caller_error *error);
void nodes_close_tls(struct runtime *);
/*
 * nodes_name_set - runtime->set: the caller's name of the set, or a hash of the sorted addresses without
 * databases
 *
 * So clients of the same servers have the same set. It also orders the nodes for arbiters: by address, or,
 * where the caller names the set, as the caller lists them, for then addresses may differ between clients.
 */
void nodes_name_set(struct runtime *);
/* nodes_link - how to connect to that node. */
struct link_config nodes_link(struct runtime *, uint32_t node);
/* nodes_start - they connect when the loop runs. 0, or -1 out of memory. nodes_stop: fine in any state. nodes_may_end:
 * the client closes, and the process may end before that is done. */
int nodes_start(struct runtime *);
void nodes_stop(struct runtime *);
void nodes_may_end(struct runtime *);
void nodes_observe(struct runtime *, struct node_observer *);
/* nodes_log_in - quorlock_client_set_credentials. */
int nodes_log_in(struct runtime *, const char *user, const char *password);
/* nodes_send - enum node_send_result. After NODE_SENT the requester gets one reply with this tag, and must live
 * until then. nodes_can_talk: the node takes requests. */
int nodes_send(struct runtime *, struct node_request *, struct requester *, const struct core_tag *);
bool nodes_can_talk(const struct node *);
/* nodes_statistics - what is known of that node and was counted. */
struct quorlock_node_statistics nodes_statistics(struct runtime *, uint32_t node);
