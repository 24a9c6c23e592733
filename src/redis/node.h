/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node.h - one Redis server, and requests to it
 *
 * A node connects and reads its guard. Then it is READY, or QUARANTINED until the guard lets it vote. When the
 * connection ends, the node tries again, without end. Requests are pipelined on the one connection. All that was queued
 * in one turn of the loop leaves in one write; renewals and releases leave together behind the others (batch.h).
 * Requests for one key are executed in the order of node_send(). Replies are reported from the loop, never from inside
 * node_send().
 *
 * A request whose deadline passes is reported as OUTCOME_UNKNOWN. Its entry among the requests in flight stays as a
 * tombstone, which takes the late reply. When a connection ends, all its requests that were not reported yet are
 * reported as OUTCOME_UNKNOWN, and after them the new state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "redis/dialect/guard_text.h"
#include "redis/dialect/request.h"
#include "redis/link/config.h"

struct node;
struct system;

struct node_events {
    /* The state or its reason changed. generation: the number of this connection, counted from 1, if the node is READY
     * or QUARANTINED; else 0. */
    void (*state)(void *arg, uint32_t index, enum node_state, uint32_t generation, enum fault, const char *why);
    /* Called once for each node_send that returned NODE_SENT. */
    void (*reply)(void *arg, uint32_t index, uint32_t generation, const union node_tag *, const struct node_reply *);
    /* Asks what is known of the guards of all nodes. May be NULL. */
    enum guard_set (*set)(void *arg);
    /* The server tells that another client changed a key that was extended here; it may be wrong. May be NULL. */
    void (*told)(void *arg, uint32_t index, const struct node_key *);
    /* There may be room for requests again. */
    void (*room)(void *arg, uint32_t index);
    void *arg;
};

struct node_config {
    uint32_t index;
    struct link_config link;
    uint32_t stall_ms; /* the connection is dropped when its oldest request is unanswered for so long */
    uint32_t dialect;  /* enum quorlock_dialect */
    /* The restart guard. All zero: there is none, and the server's is not read. */
    uint32_t guard;        /* enum quorlock_guard; 0 means off here */
    uint32_t n_nodes;      /* the number of nodes in the set */
    const char *set;       /* the name or hash of the set; must live as long as the node */
    bool set_named;        /* it is a name that the caller gave */
    uint32_t max_lease_ms; /* 0: QUORLOCK_LEASE_MS_DEFAULT */
    bool allow_eviction;   /* warn about a server that may evict keys, instead of refusing it */
};

/* node_new - make a node, which starts to connect when the loop runs. system and alloc must live as long. NULL: out of
 * memory. */
struct node *node_new(struct system *, const struct alloc *, const struct node_config *, const struct node_events *);
/* node_free - close the connection and free the node. Requests in flight are not reported; no callback runs during or
 * after this call. It may be called from inside a callback of this node. */
void node_free(struct node *);

/* node_log_in_again - try to log in again without a pause, if the server refused the last login. */
void node_log_in_again(struct node *);

/* node_send - queue one request. NODE_SENT promises one reply callback; with any other result there is none. */
int node_send(struct node *, const struct node_request *);

/* node_has_room - return whether a request of that kind could be queued now; false while the node takes no requests. */
bool node_has_room(const struct node *, enum node_room);
/* node_in_flight - return the number of unanswered requests, including those whose deadline has passed. */
size_t node_in_flight(const struct node *);
/* node_is_late - return whether requests have been unanswered for far longer than replies of this node take, and no
 * reply waits to be read, or whether its first connection takes long: the server is frozen or unreachable. */
bool node_is_late(const struct node *);
enum node_state node_state_now(const struct node *);
uint32_t node_generation(const struct node *); /* 0 unless READY or QUARANTINED */
/* node_why - return why the node is not READY, or "". While it is QUARANTINED the text counts down. Valid until the
 * next call. */
const char *node_why(const struct node *);
enum fault node_fault_now(const struct node *);
/* node_srtt_us - return the smoothed round trip time; 0: unknown. */
uint32_t node_srtt_us(const struct node *);
const char *node_name(const struct node *); /* the address without credentials */
/* node_quarantined_until_us - return the end of the quarantine by the client's clock; 0: not QUARANTINED. */
uint64_t node_quarantined_until_us(const struct node *);
/* node_guard_set - return the state of this node's own guard (enum guard_set). UNKNOWN before it was read, and for the
 * guard of a first contact after the connection ended, because it may have changed. *ret_until_us: the end of the first
 * contact's quarantine by our clock. */
enum guard_set node_guard_set(const struct node *, uint64_t *ret_until_us);
/* node_channel - write the channel on which this node's dialect publishes releases of the key, cut to `size` bytes;
 * return its length. */
size_t node_channel(const struct node *, const struct node_key *, size_t prefix, char *ret, size_t size);
/* node_run_id - return the run_id of the server process behind this connection; "" while unknown. */
const char *node_run_id(const struct node *);
/* node_may_end - prepare for the end of the process before node_free: requests that do no harm if they are executed
 * late are delivered even so. */
void node_may_end(struct node *);
/* node_life - return a number for the server process and the guard that the latest connection met. It changes after a
 * restart and when the guard changes. 0: there was no connection yet. */
uint64_t node_life(const struct node *);
/* node_expel - drop an open connection because the caller found a fault, for instance one server listed twice. All
 * reports are made during this call; the next try comes after the longest pause. May be called from inside a callback.
 */
void node_expel(struct node *, enum fault, const char *why);
