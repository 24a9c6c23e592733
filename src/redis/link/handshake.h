/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handshake.h - the first commands on a new connection, and the checks of their replies
 *
 * AUTH, SELECT, CLIENT SETNAME, INFO, EVAL, HELLO and CLIENT TRACKING, and ACL WHOAMI where a certificate may tell who
 * we are, leave in one write, together with what the owner appends (node_guard.c: the question about the guard), so a
 * handshake takes one round trip. The replies are checked in order. The first bad one ends the handshake, with a reason
 * that names the remedy. Subscribers and examinations ask less.
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
    HANDSHAKE_KNOCK, /* TIME with a word too many: a server that is paused refuses that at once, and runs nothing */
    HANDSHAKE_AUTH,
    HANDSHAKE_SELECT,
    HANDSHAKE_SETNAME,
    HANDSHAKE_PING,        /* does the server let us in? */
    HANDSHAKE_SERVER,      /* INFO server: is it Redis, new enough, no cluster node, no Sentinel? */
    HANDSHAKE_REPLICATION, /* INFO replication: is it a master? */
    HANDSHAKE_MEMORY,      /* INFO memory: may it evict keys? */
    HANDSHAKE_USER,        /* ACL WHOAMI: as whom does the server know our certificate? */
    HANDSHAKE_RIGHTS,      /* a script: may the user run all that a lock needs, up to its release? */
    HANDSHAKE_AWAKE, /* a script, when rights are not checked: a server that loads its data answers INFO, but no script
                      */
    HANDSHAKE_HELLO, /* RESP3, in which a server can speak unasked */
    HANDSHAKE_TRACKING, /* it tells when a key that we named has changed: only the guard, see guard.h */
    HANDSHAKE_CACHING,  /* what the next command reads is such a key */
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
    char version[32]; /* such as "Redis 7.0.15" */
    char user[64];    /* who we are, for texts; "": as the address says */
    char run_id[GUARD_ID_SIZE], replid[GUARD_ID_SIZE];
    bool evicting_fine;
    bool resp3, tracks; /* the server speaks RESP3; it tells of changes of the guard */
    char warning[320];  /* for the log; "": none */
    bool doubted;       /* INFO lacks what `why` says: HELLO, which may name the server, is awaited */
    char other[32];     /* what HELLO says it is, if neither Redis nor Valkey */
    enum fault fault;
    char why[320];
};

enum handshake_result { HANDSHAKE_MORE, HANDSHAKE_DONE, HANDSHAKE_FAILED };

/* How to treat a server that may evict keys. UNASKED: check neither that nor the rights. This is for clients without a
 * guard, which may only want to inspect. */
enum handshake_eviction { HANDSHAKE_EVICTION_UNASKED, HANDSHAKE_EVICTION_WARNS, HANDSHAKE_EVICTION_FAILS };
/* handshake_begin - append all commands of a node; a failure stays in the buffer. client_name may be NULL. */
void handshake_begin(struct handshake *, struct bytes *, const struct uri *, const char *client_name,
                     const struct dialect *, enum handshake_eviction);
/* handshake_greet - append AUTH, CLIENT SETNAME, PING: release notices work on a server in any state. */
void handshake_greet(struct handshake *, struct bytes *, const struct uri *, const char *client_name);
/* handshake_knock - append AUTH if the address has a user or a password, or else a command that any server refuses; and
 * SELECT if it has a database. handshake_look - append these two likewise, and the question whether it is a server of
 * ours. */
void handshake_knock(struct handshake *, struct bytes *, const struct uri *);
void handshake_look(struct handshake *, struct bytes *, const struct uri *);
/* handshake_hear - note bytes that came, before they are parsed: the first ones are kept for handshake_malformed. */
void handshake_hear(struct handshake *, const char *data, size_t length);
/* handshake_malformed - write the text for bytes that could not be parsed, for that reason. first: there was no reply
 * before, so it is not a Redis server. */
void handshake_malformed(const struct handshake *, bool first, const char *reason, char *ret, size_t size);
/* handshake_describe - write the text for an error reply, without any part of the password. */
void handshake_describe(const struct uri *, const char *what, const struct reply_item *error, char *ret, size_t size);
/* handshake_still_doubted - the connection of a doubted server ended for that reason: put the doubt in its place. */
void handshake_still_doubted(const struct handshake *, enum fault *, char *why, size_t size);
/* handshake_reply - check the next reply. FAILED: fault and why are set. */
enum handshake_result handshake_reply(struct handshake *, const struct reply *);
