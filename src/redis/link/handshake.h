/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handshake.h - what is said on a new connection before it may be used
 *
 * AUTH, SELECT, CLIENT SETNAME, INFO, EVAL, SCRIPT LOAD leave in one write; the replies are judged in order and
 * the first that will not do ends it, with a reason that names the remedy. One that only listens is greeted:
 * AUTH, CLIENT SETNAME, PING.
 */
#ifndef QUORLOCK_REDIS_HANDSHAKE_H
#define QUORLOCK_REDIS_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/dialect/dialect.h"
#include "redis/link/uri.h"
#include "redis/wire/bytes.h"
#include "redis/wire/reply.h"

enum handshake_step {
    HANDSHAKE_AUTH,
    HANDSHAKE_SELECT,
    HANDSHAKE_SETNAME,
    HANDSHAKE_PING,        /* are we let in: any answer that does not shut us out will do */
    HANDSHAKE_SERVER,      /* INFO server: is it Redis, new enough, no cluster, no sentinel */
    HANDSHAKE_REPLICATION, /* INFO replication: is it a master */
    HANDSHAKE_MEMORY,      /* INFO memory: may it evict keys */
    HANDSHAKE_RIGHTS,      /* a script: may we run all that a lock needs, up to its release */
    HANDSHAKE_SCRIPT,      /* one for each script */
};

#define HANDSHAKE_FIRST_BYTES 40
#define HANDSHAKE_STEPS_MAX   (HANDSHAKE_SCRIPT + DIALECT_SCRIPTS_MAX)

struct handshake {
    const struct uri *uri;
    const struct dialect *dialect;
    enum handshake_step steps[HANDSHAKE_STEPS_MAX];
    size_t n_steps, at, n_scripts;
    char first[HANDSHAKE_FIRST_BYTES]; /* what the server said first */
    size_t n_first;
    struct dialect_shas shas;
    char version[32]; /* as "Redis 7.0.15" */
    char run_id[GUARD_ID_SIZE], replid[GUARD_ID_SIZE];
    bool evicting_fine;
    char warning[320]; /* what the log should say; "" for nothing */
    enum node_fault fault;
    char why[320];
};

enum handshake_result { HANDSHAKE_MORE, HANDSHAKE_DONE, HANDSHAKE_FAILED };

/* What becomes of a server that may evict keys. For UNASKED it is not even asked, nor for our rights: so
 * without a guard, where somebody may only want to look. */
enum handshake_eviction { HANDSHAKE_EVICTION_UNASKED, HANDSHAKE_EVICTION_WARNS, HANDSHAKE_EVICTION_FAILS };
/* handshake_begin - appends all its commands; a failure stays in the buffer. client_name may be NULL. */
void handshake_begin(struct handshake *, struct bytes *, const struct uri *, const char *client_name,
                     const struct dialect *, enum handshake_eviction);
/* handshake_greet - the same where only notices are wanted, so any server's state will do. */
void handshake_greet(struct handshake *, struct bytes *, const struct uri *, const char *client_name);
/* handshake_enter - AUTH and SELECT, where the address asks for them: any server that lets us in will do. */
void handshake_enter(struct handshake *, struct bytes *, const struct uri *);
/* handshake_hear - bytes that came, before they are parsed: the first tell with whom we talk. */
void handshake_hear(struct handshake *, const char *data, size_t length);
/* handshake_malformed - one line for people about what could not be parsed, for that reason. first: no reply
 * came before, so it is no Redis server. */
void handshake_malformed(const struct handshake *, bool first, const char *reason, char *ret, size_t size);
/* handshake_describe - an error reply, for people; no part of the password is in it. */
void handshake_describe(const struct uri *, const char *what, const struct reply_item *error, char *ret,
                        size_t size);
/* handshake_reply - the next reply. FAILED: fault and why are set. */
enum handshake_result handshake_reply(struct handshake *, const struct reply *);

#endif
