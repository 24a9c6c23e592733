/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * guard.h - the restart guard of one node: what keeps a server that lost its memory from voting too early
 *
 * The server carries a key that names the process it was written in. A connection reads it once, at its
 * beginning; a process that is not the one named there is quarantined for the longest lease. What was read is
 * compared, whole, by every script that runs later, so that a change under a live connection is seen. No I/O
 * and no clock here: node_guard.c asks and waits.
 */
#ifndef QUORLOCK_REDIS_GUARD_H
#define QUORLOCK_REDIS_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"
#include "node.h"
#include "reply.h"

#define GUARD_KEY              "quorlock:guard"
#define GUARD_TEXT_SIZE        512
#define GUARD_ID_SIZE          64
#define GUARD_WHY_SIZE         480
#define GUARD_LEASE_DEFAULT_MS 30000u

enum guard_reason { GUARD_KEPT, GUARD_NEW, GUARD_LOST, GUARD_UNSET };

struct guard {
    /* From the configuration. */
    uint32_t mode; /* enum quorlock_guard */
    uint32_t n_nodes, max_lease_ms;
    const char *set;
    /* Of this connection. */
    char run_id[GUARD_ID_SIZE], replid[GUARD_ID_SIZE];
    char seen[GUARD_TEXT_SIZE]; /* the guard, whole; "" before it was read */
    enum guard_reason reason;
    bool unset;        /* there is none, and nobody said what max_lease to write */
    uint64_t until_us; /* when to look again; 0: not quarantined */
    bool asked;        /* the guard script is on its way */
    uint32_t lease_ms; /* what the guard says, or said on an earlier connection; 0: never read */
    uint32_t told_ms;  /* what a guard said last, here or on another node: written where there is none; or 0 */
    /* Of a guard that will not do. */
    enum node_fault fault;
    char why[GUARD_WHY_SIZE];
};

void guard_init(struct guard *, const struct node_config *);
bool guard_is_on(const struct guard *);
/* guard_forget - a new connection begins: all that was known of the old one goes, but for the max_lease. */
void guard_forget(struct guard *);
/* guard_meet - whom INFO named on this connection. */
void guard_meet(struct guard *, const char *run_id, const char *replid);
/* guard_ask - appends the guard script; a failure stays in the buffer. */
void guard_ask(const struct guard *, struct bytes *);
enum guard_verdict { GUARD_CLEAR, GUARD_QUARANTINED, GUARD_FAILED };
/* guard_judge - its reply, received at now_us. FAILED: fault and why are set. */
enum guard_verdict guard_judge(struct guard *, const struct reply *, uint64_t now_us);
/* guard_describe - why the node is quarantined, for people. */
void guard_describe(const struct guard *, uint64_t now_us, char *ret, size_t size);
/* guard_bootstrap - appends the script for NODE_BOOTSTRAP; guard_disconnect_others: what follows with force. */
void guard_bootstrap(const struct guard *, struct bytes *, const struct node_request *);
void guard_disconnect_others(struct bytes *);

#endif
