/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * raw.h - the baseline: the cost of the same requests through hiredis, without lock logic
 *
 * Each node has one pipelined connection of hiredis; over TLS it is a connection of quorlock: see secure.h. A cycle
 * sends SET KEY TOKEN NX PX LEASE to all nodes in parallel. When all have answered, it sends a compare-and-delete by
 * EVALSHA to all nodes. There is no quorum, validity, renewal or retry: a node that does not answer delays the cycle,
 * and is left out after about a second.
 *
 * The functions run an event loop of their own until they have finished.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/slice.h"

struct event_base;
struct raw;

struct raw_options {
    const char *user, *password; /* for nodes whose address has neither; may be NULL */
    const char *nodes;           /* URI,URI,..., as for quorlock_client_new */
    const char *prefix;          /* of the keys; the number of the cycle in flight is appended */
    uint32_t in_flight;
    uint32_t lease_ms;
    const char *tls_ca, *tls_cert, *tls_key, *tls_name; /* as for quorlock_client_new */
};

/* raw_new - connect to the nodes, and wait for their answers, for a second at most. NULL: out of memory. */
struct raw *raw_new(const struct raw_options *options);
void raw_free(struct raw *raw);
struct event_base *raw_base(const struct raw *raw);
/* raw_ready - return how many nodes answer. Each raw_run connects to the others again. */
size_t raw_ready(const struct raw *raw);
/* raw_tls - return how many nodes are reached over TLS. */
size_t raw_tls(const struct raw *raw);
/* raw_node - return the name of a node without its password, and why it does not answer; NULL: there is no such node.
 */
const char *raw_node(const struct raw *raw, size_t i, const char **ret_error);
/* raw_run - keep in_flight cycles running for that time, then end them. */
void raw_run(struct raw *raw, uint64_t span_ns, struct slice *slice);
/* raw_stop - have raw_run begin no cycle any more. */
void raw_stop(struct raw *raw);
/* raw_usage - add the work of the nodes since the last call, by their INFO; `usage` may be NULL. */
void raw_usage(struct raw *raw, struct usage *usage);
/* raw_clean - delete the keys that consist of one of these prefixes and the number of a cycle in flight, on every node
 * that answers now; return how many nodes did it. */
size_t raw_clean(struct raw *raw, const char *const *prefixes, size_t n_prefixes);
