/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handshake.h - the commands on a new connection before it is used, and what their replies must be
 *
 * AUTH, SELECT, CLIENT SETNAME, INFO, EVAL leave in one write, and what the owner appends to them (node.c: a look at
 * the guard), so that a handshake takes one round trip. The replies are judged in order; the first bad one
 * ends the handshake, with a reason that names the remedy. Subscribers and examinations ask less.
 */
#pragma once

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
    HANDSHAKE_PING,        /* does the server let us in */
    HANDSHAKE_SERVER,      /* INFO server: is it Redis, new enough, no cluster node, no Sentinel */
    HANDSHAKE_REPLICATION, /* INFO replication: is it a master */
    HANDSHAKE_MEMORY,      /* INFO memory: may it evict keys */
    HANDSHAKE_RIGHTS,      /* a script: may the user run all that a lock needs, up to its release */
    HANDSHAKE_AWAKE,       /* a script, where those are not asked for: a server that loads its data answers INFO */
    HANDSHAKE_STEPS,
};

#define HANDSHAKE_FIRST_BYTES 40

struct handshake {
    const struct uri *uri;
    const struct dialect *dialect;
    enum handshake_step steps[HANDSHAKE_STEPS];
    size_t n_steps, at;
    char first[HANDSHAKE_FIRST_BYTES]; /* the first bytes from the server */
    size_t n_first;
    char version[32]; /* as "Redis 7.0.15" */
    char run_id[GUARD_ID_SIZE], replid[GUARD_ID_SIZE];
    bool evicting_fine;
    char warning[320]; /* for the log; "": nothing */
    enum fault fault;
    char why[320];
};

enum handshake_result { HANDSHAKE_MORE, HANDSHAKE_DONE, HANDSHAKE_FAILED };

/* What to do with a server that may evict keys. UNASKED: neither that nor the rights are asked for; so without
 * a guard, where the caller may only want to inspect. */
enum handshake_eviction { HANDSHAKE_EVICTION_UNASKED, HANDSHAKE_EVICTION_WARNS, HANDSHAKE_EVICTION_FAILS };
/* handshake_begin - appends all its commands; a failure stays in the buffer. client_name may be NULL. */
void handshake_begin(struct handshake *, struct bytes *, const struct uri *, const char *client_name,
                     const struct dialect *, enum handshake_eviction);
/* handshake_greet - AUTH, CLIENT SETNAME, PING: for release notices a server in any state will do. */
void handshake_greet(struct handshake *, struct bytes *, const struct uri *, const char *client_name);
/* handshake_enter - AUTH and SELECT where the address has a user, a password or a database; else nothing. */
void handshake_enter(struct handshake *, struct bytes *, const struct uri *);
/* handshake_hear - bytes that came, before they are parsed: keeps the first, for handshake_malformed. */
void handshake_hear(struct handshake *, const char *data, size_t length);
/* handshake_malformed - the text for bytes that could not be parsed, for that reason. first: no reply came
 * before, so it is no Redis server. */
void handshake_malformed(const struct handshake *, bool first, const char *reason, char *ret, size_t size);
/* handshake_describe - the text for an error reply, without any part of the password. */
void handshake_describe(const struct uri *, const char *what, const struct reply_item *error, char *ret, size_t size);
/* handshake_reply - the next reply. FAILED: fault and why are set. */
enum handshake_result handshake_reply(struct handshake *, const struct reply *);
