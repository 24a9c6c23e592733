/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node.h - one Redis server, and requests to it
 *
 * A node connects and reads its guard. Then it is READY, or QUARANTINED until the guard lets
 * it vote. When the connection ends it tries again for ever. Requests are pipelined on the one connection;
 * everything queued in one turn of the loop leaves in one write, renewals and releases together behind the rest
 * (batch.h). Requests for one key are executed in the order of node_send(). Replies come from the loop, never from
 * inside node_send().
 *
 * A request whose deadline passes is reported as OUTCOME_UNKNOWN, and its place in the ring stays as a
 * tombstone that swallows the late reply. When a connection ends, every request on it that was not reported yet
 * is reported as OUTCOME_UNKNOWN, and then the new state.
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
    /* Its state, or the reason, changed. generation: counts, from 1, the connections that took requests; 0
     * unless READY or QUARANTINED. */
    void (*state)(void *arg, uint32_t index, enum node_state, uint32_t generation, enum fault, const char *why);
    /* One call for each node_send that returned 0. */
    void (*reply)(void *arg, uint32_t index, uint32_t generation, const union node_tag *, const struct node_reply *);
    /* What is known of the guards of all nodes; NULL: nothing. */
    enum guard_set (*set)(void *arg);
    /* Requests may have found room that did not before. */
    void (*room)(void *arg, uint32_t index);
    void *arg;
};

struct node_config {
    uint32_t index;
    struct link_config link;
    uint32_t stall_ms; /* drops the connection when its oldest request is unanswered so long */
    uint32_t dialect;  /* enum quorlock_dialect */
    /* The restart guard. All zero: none, and the server is not asked for it. */
    uint32_t guard;        /* enum quorlock_guard; 0 is off here */
    uint32_t n_nodes;      /* how many nodes the set has */
    const char *set;       /* its name or hash; kept by the caller as long as the node */
    bool set_named;        /* the caller gave a name */
    uint32_t max_lease_ms; /* 0: QUORLOCK_LEASE_MS_DEFAULT */
    bool allow_eviction;   /* a server that may evict keys is a warning, not a fault */
};

/* node_new - a node that starts to connect when the loop runs; system and alloc live as long. NULL: out of
 * memory. */
struct node *node_new(struct system *, const struct alloc *, const struct node_config *, const struct node_events *);
/* node_free - ends the connection and the node. Requests in flight are not reported any more; no callback
 * comes after or from it. May be called from inside a callback of this node. */
void node_free(struct node *);

/* node_log_in_again - where the server refused the last login, tries the next one without a pause. */
void node_log_in_again(struct node *);

/* node_send - queues one request; NODE_SENT promises one reply callback, anything else none. */
int node_send(struct node *, const struct node_request *);

/* node_has_room - whether a request of that kind could be queued now; false where it takes no requests. */
bool node_has_room(const struct node *, enum node_room);
/* node_in_flight - requests that are not answered yet, also those whose deadline has passed. */
size_t node_in_flight(const struct node *);
/* node_is_late - requests have been unanswered for far longer than its replies take, and no reply is waiting to
 * be read: it is frozen, or out of reach. */
bool node_is_late(const struct node *);
enum node_state node_state_now(const struct node *);
uint32_t node_generation(const struct node *); /* 0 unless READY or QUARANTINED */
/* node_why - why it is not READY, or ""; while QUARANTINED it counts down: valid until the next call. */
const char *node_why(const struct node *);
enum fault node_fault_now(const struct node *);
/* node_srtt_us - smoothed round trip; 0 while unknown. */
uint32_t node_srtt_us(const struct node *);
const char *node_name(const struct node *); /* address without credentials */
/* node_quarantined_until_us - on the client's clock; 0 when not QUARANTINED. */
uint64_t node_quarantined_until_us(const struct node *);
/* node_guard_set - of its own guard: UNKNOWN before one was read, and where one of a first contact may be another now.
 * ret_until_us: by our clock, when the quarantine of a first contact ends. */
enum guard_set node_guard_set(const struct node *, uint64_t *ret_until_us);
/* node_channel - the channel on which this node's dialect publishes the key's releases, cut where ret is too
 * small; its length. */
size_t node_channel(const struct node *, const struct node_key *, char *ret, size_t size);
/* node_run_id - the server process that answers on this connection; "" while unknown. */
const char *node_run_id(const struct node *);
/* node_may_end - the process may end before node_free: what is unanswered then is delivered all the same, if it does no
 * harm late. */
void node_may_end(struct node *);
/* node_life - a number of the server process and the guard that the latest connection met: another one after a restart,
 * or where the guard changed; 0: none was met yet. */
uint64_t node_life(const struct node *);
/* node_expel - the caller found a fault of an open node, for instance one server listed twice: drops the
 * connection, with all reports from inside this call, and tries again after the longest pause. May be called
 * from inside a callback. */
void node_expel(struct node *, enum fault, const char *why);
