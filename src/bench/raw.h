/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * raw.h - the baseline: what the same requests cost without a lock's logic
 *
 * One pipelined hiredis connection to each node; over TLS the connection is quorlock's: see secure.h. A cycle is SET
 * KEY TOKEN NX PX LEASE on every node at once and, when all have answered, a compare-and-delete by EVALSHA on every
 * node at once. There is no quorum, no validity, no renewal and no retry: a node that does not answer holds the cycle
 * up, and after a while it is left out.
 *
 * The functions run an event loop of their own until they are done.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/slice.h"

struct event_base;
struct raw;

struct raw_options {
    const char *user, *password; /* of nodes whose address has neither; may be NULL */
    const char *nodes;           /* URI,URI,... that quorlock_client_new accepts */
    const char *prefix;          /* of the keys; the number of the cycle in flight follows */
    uint32_t in_flight;
    uint32_t lease_ms;
    const char *tls_ca, *tls_cert, *tls_key, *tls_name; /* as quorlock_client_new takes them */
};

/* raw_new - connects to the nodes and waits for their answers, a second at most. NULL: no memory. */
struct raw *raw_new(const struct raw_options *options);
void raw_free(struct raw *raw);
struct event_base *raw_base(const struct raw *raw);
/* raw_ready - how many nodes answer; those that did not are called again by each raw_run. */
size_t raw_ready(const struct raw *raw);
/* raw_tls - how many nodes are reached over TLS. */
size_t raw_tls(const struct raw *raw);
/* raw_node - the name of a node without its password, and why it does not answer; NULL behind the last one. */
const char *raw_node(const struct raw *raw, size_t i, const char **ret_error);
/* raw_run - keeps in_flight cycles busy for that time, then ends those that are under way. */
void raw_run(struct raw *raw, uint64_t span_ns, struct slice *slice);
/* raw_stop - raw_run begins no further cycle, from now on. */
void raw_stop(struct raw *raw);
/* raw_usage - adds what the nodes that answer did since the last call; `usage` may be NULL. */
void raw_usage(struct raw *raw, struct usage *usage);
/* raw_clean - deletes the keys that begin with these prefixes and go on with the number of a cycle in flight, on every
 * node that answers now; returns how many did it. */
size_t raw_clean(struct raw *raw, const char *const *prefixes, size_t n_prefixes);
