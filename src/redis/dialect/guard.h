/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * guard.h - the restart guard of one node, which keeps a server that lost its data from voting too early
 *
 * The guard is a key on the server that names the server process that was running when it was written. A connection
 * reads it once, at its beginning; if another process runs now, the node is quarantined for the longest lease. Every
 * later script compares the whole guard with the text that was read, so a change during a connection is noticed. A SET
 * compares nothing: there the server itself tells of the change (CLIENT TRACKING), in front of the next reply on this
 * connection. Until the guard was read again, no vote that was given without such a comparison counts. The server tells
 * once of each change, so the guard is tracked from the first read on this connection on, and again from each
 * comparison on. It tells also of a guard that this connection writes. This file does no I/O and reads no clock:
 * node_guard.c asks and waits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/dialect/guard_text.h"
#include "redis/dialect/request.h"
#include "redis/wire/bytes.h"
#include "redis/wire/reply.h"

#define GUARD_KEY       "quorlock:guard"
#define GUARD_FOREIGN   "the key " GUARD_KEY " holds a value of another type: if no program needs it, delete that key"
#define GUARD_TEXT_SIZE 512
#define GUARD_WHY_SIZE  640

struct guard {
    /* From the configuration. */
    uint32_t mode; /* enum quorlock_guard */
    uint32_t n_nodes, max_lease_ms;
    const char *set;
    bool set_named; /* `set` is a name that the caller gave; else it is a hash of the addresses */
    /* For this connection. */
    char run_id[GUARD_ID_SIZE], replid[GUARD_ID_SIZE];
    char seen[GUARD_TEXT_SIZE]; /* the text of the guard; "" before it was read */
    enum quarantine_cause cause;
    uint32_t wanted_ms;  /* the max_lease of the client in QUARANTINE_CLIENT */
    uint64_t end_ms;     /* the end of the quarantine by the server's clock */
    uint64_t until_us;   /* the same by our clock; 0: not quarantined */
    uint64_t recheck_us; /* when to read the guard again; 0: never */
    bool asked;          /* the guard script is in flight */
    bool looks;          /* that one may not write */
    /* From the last connection that read the guard. */
    enum guard_set set_seen; /* FIRST: its first contact lasts until first_until_us; OLDER: any other guard */
    uint64_t first_until_us;
    bool voted; /* some connection found that the node votes, so this client may hold a lock there */
    /* After GUARD_FAILED. */
    enum fault fault;
    char why[GUARD_WHY_SIZE];
};

/* guard_init - initialize. mode: enum quorlock_guard. max_lease_ms 0: the default. set: the set's name or hash, which
 * must live as long as the guard. */
void guard_init(struct guard *, uint32_t mode, uint32_t n_nodes, uint32_t max_lease_ms, const char *set,
                bool set_named);
bool guard_is_on(const struct guard *);
/* guard_forget - start with a new connection: forget what the old one read. */
void guard_forget(struct guard *);
/* guard_meet - note the server process that INFO named on this connection. */
void guard_meet(struct guard *, const char *run_id, const char *replid);
/* guard_look - append the guard script as a read-only question; a failure stays in the buffer. It is sent before
 * guard_meet, in one write with the rest of the handshake, whose replies may still show that this is the wrong server:
 * hence it must not write. If something must be written, or the script may not run INFO, the verdict is GUARD_ASK.
 * guard_ask - append the guard script, which may write. */
void guard_look(struct guard *, struct bytes *);
void guard_ask(const struct guard *, struct bytes *);
/* guard_is_in - return whether that push tells of a change of the guard: of this key, or of all.
 * guard_track - append the command (CLIENT CACHING) that makes the server remember what the next one reads.
 * guard_compare - append that command and GET of the guard, which has two replies.
 * guard_is_kept - return whether the second reply is the guard that was read. */
bool guard_is_in(const struct reply *push);
void guard_track(struct bytes *);
void guard_compare(struct bytes *);
bool guard_is_kept(const struct guard *, const struct reply *);
#define GUARD_CHANGED "the guard changed or is gone: the server may have lost its memory"
enum guard_verdict { GUARD_CLEAR, GUARD_QUARANTINED, GUARD_FAILED, GUARD_ASK };
/* guard_judge - read the reply, received at now_us. FAILED: fault and why are set. */
enum guard_verdict guard_judge(struct guard *, const struct reply *, uint64_t now_us);
/* guard_recheck_at - set when to ask again; the question may come later. */
void guard_recheck_at(struct guard *, uint64_t us);
/* guard_describe - write why the node is quarantined, and for how long. */
void guard_describe(const struct guard *, enum guard_set, uint64_t now_us, char *ret, size_t size);
/* guard_bootstrap - append OP_BOOTSTRAP or OP_MAY_KILL.
 * guard_parts - return how many replies come before its last one, GUARD_PARTS at most. */
#define GUARD_PARTS 3
void guard_bootstrap(const struct guard *, struct bytes *, const struct node_request *);
uint8_t guard_parts(const struct node_request *);
/* guard_judge_bootstrap - read that last reply; false: it fits neither request. */
bool guard_judge_bootstrap(enum op, const struct reply *, struct node_reply *ret, char *text, size_t size);
