/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handshake.h - what is said on a new connection before it may be used
 *
 * AUTH, SELECT, CLIENT SETNAME, INFO, SCRIPT LOAD leave in one write; the replies are judged in order and the
 * first that will not do ends it, with a reason that names the remedy.
 */
#ifndef QUORLOCK_REDIS_HANDSHAKE_H
#define QUORLOCK_REDIS_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"
#include "dialect.h"
#include "node.h"
#include "reply.h"
#include "uri.h"

enum handshake_step {
    HANDSHAKE_AUTH,
    HANDSHAKE_SELECT,
    HANDSHAKE_SETNAME,
    HANDSHAKE_SERVER,      /* INFO server: is it Redis, new enough, no cluster, no sentinel */
    HANDSHAKE_REPLICATION, /* INFO replication: is it a master */
    HANDSHAKE_MEMORY,      /* INFO memory: may it evict keys */
    HANDSHAKE_SCRIPT,      /* one for each script */
};

#define HANDSHAKE_STEPS_MAX (HANDSHAKE_SCRIPT + DIALECT_SCRIPTS_MAX)

struct handshake {
    const struct uri *uri;
    const struct dialect *dialect;
    enum handshake_step steps[HANDSHAKE_STEPS_MAX];
    size_t n_steps, at, n_scripts;
    struct dialect_shas shas;
    char version[32]; /* as "Redis 7.0.15" */
    char run_id[GUARD_ID_SIZE], replid[GUARD_ID_SIZE];
    bool evicting_fine;
    char warning[320]; /* what the log should say; "" for nothing */
    enum node_fault fault;
    char why[320];
};

enum handshake_result { HANDSHAKE_MORE, HANDSHAKE_DONE, HANDSHAKE_FAILED };

/* What becomes of a server that may evict keys; for UNASKED it is not even asked. */
enum handshake_eviction { HANDSHAKE_EVICTION_UNASKED, HANDSHAKE_EVICTION_WARNS, HANDSHAKE_EVICTION_FAILS };
/* handshake_begin - appends all its commands; a failure stays in the buffer. client_name may be NULL. */
void handshake_begin(struct handshake *, struct bytes *, const struct uri *, const char *client_name,
                     const struct dialect *, enum handshake_eviction);
/* handshake_reply - the next reply. FAILED: fault and why are set. */
enum handshake_result handshake_reply(struct handshake *, const struct reply *);

#endif
