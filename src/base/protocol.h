/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * protocol.h - the operations on a node, their outcomes, and the faults of a node
 *
 * These are the terms in which src/core decides and which src/redis translates to and from Redis commands. The two
 * folders do not know each other.
 */
#pragma once

#include <stdbool.h>

/* The texts that a node reports in place of an owner. HOLDER_READERS: the key is locked shared. HOLDER_WAITS, with a
 * name behind it: a writer waits for the key, and readers that came later wait behind that writer. */
#define HOLDER_READERS "quorlock:readers"
#define HOLDER_WAITS   "quorlock:waits:"
/* Behind it stands the token of an owner that has released the key, which is kept. */
#define HOLDER_KEPT "quorlock:kept:"

enum node_state {
    NODE_CONNECTING,  /* the first connection, or one more try after a READY one ended: may vote soon */
    NODE_READY,       /* takes requests; the generation is that of this connection */
    NODE_QUARANTINED, /* takes requests, too, but may have lost its data, so its yes to an acquire is not counted.
                         Becomes READY with the same generation */
    NODE_DOWN,        /* the last try to connect failed, for the reported reason; it goes on trying */
};

/* node_takes_requests - return whether requests can be sent. A quarantined node takes them, but its votes are not
 * counted. */
static inline bool node_takes_requests(enum node_state state)
{
    return state == NODE_READY || state == NODE_QUARANTINED;
}

/* The reason for a node's last quarantine. */
enum quarantine_cause {
    QUARANTINE_NONE = 0,
    QUARANTINE_UNKNOWN,     /* the guard was written by another version */
    QUARANTINE_FIRST,       /* there was no guard when a client connected */
    QUARANTINE_RESTART,     /* the server process is not the one that the guard names */
    QUARANTINE_RECONFIGURE, /* bootstrap replaced an existing guard */
    QUARANTINE_CLIENT,      /* a client with a longer max_lease than the guard's was refused */
    QUARANTINE_REPLICATION, /* the server process is the one that the guard names, its replication id is not */
};

/*
 * A server sets, extends and raises several keys in one script, all or none. If another owner holds some of them, the
 * reply names the holder with the longest remaining lease (no expiry counts as longest). A key of another type fails
 * the whole request (FAULT_FOREIGN).
 */
enum op {
    OP_ACQUIRE, /* set the keys to the owner, with the lease, if all are free. By script, keys that the owner holds
                   already are accepted, so the same request may be sent twice. fenced: one counter, above those of all
                   keys and at least `fence`, is stored for each key and returned */
    OP_EXTEND, /* if all keys are the owner's: each expires after the lease or later. fenced: the counters live as long,
                  and become at least `fence` */
    OP_RELEASE, /* delete the keys that are the owner's, whatever the others hold (even if the reply is a foreign-type
                   error), and publish a notice for each. keep: they are not deleted, but expire after the lease.
                   fence != 0: the counters become at least that */
    OP_PEEK,    /* return the holder of the keys, and its remaining lease */
    OP_BREAK,   /* delete the key, whoever holds it, and publish a notice */
    OP_REPAIR,  /* mend a lock that is held: set the missing keys and extend the others. fence != 0: the counters become
                   at least that; they are not incremented */
    OP_RAISE,   /* if all keys are the owner's: raise the counters to `fence`, unless one is higher; the reply has the
                   highest */
    OP_MAY_KILL,  /* test whether the user has all rights for OP_BOOTSTRAP with force; change nothing */
    OP_BOOTSTRAP, /* write the guard, with lease_ms as its max_lease. Without force: only if there is none, or one that
                     a first contact wrote whose quarantine still lasts, so that no client was granted a lock; no
                     quarantine begins. Else OTHER, and the holder is the present guard. ends: only end the quarantine
                     for a client with a longer max_lease. With force: replace the guard, quarantine the node for
                     longest_ms, and disconnect all other clients of the server in the same transaction. YES: the holder
                     is the new guard. Neither this nor OP_MAY_KILL uses key and owner */
    OP_CLIENTS, /* count the connections of clients of quorlock that may hold locks; the sender's own has no guard, and
                   does not count. Uses no key and owner */
    OP_INTEND,  /* remember the waiter for lease_ms if a holder of the other mode blocks it, so that later ones wait
                   behind it; lease_ms 0: forget it. YES, which is not a vote */
};

enum outcome {
    OUTCOME_YES,     /* granted; extended; all deleted; PEEK and BREAK: there was a holder */
    OUTCOME_OTHER,   /* another owner holds one of the keys (holder and ttl are set if the operation returns them) */
    OUTCOME_MISSING, /* a key does not exist (extend, raise, release); no key exists (peek, break) */
    OUTCOME_ERROR,   /* an error reply, so not executed; see fault and error */
    OUTCOME_UNKNOWN, /* perhaps executed: the deadline passed, the connection ended, or the error reply is unknown */
    OUTCOME_UNSENT,  /* could not be queued, so certainly not executed */
};

/* Why a server, or one request to it, failed. */
enum fault {
    FAULT_NONE = 0,
    FAULT_UNREACHABLE, /* resolve, connect, connection lost, stalled */
    FAULT_TIMEOUT,     /* this request's deadline passed */
    FAULT_TEMPORARY,   /* LOADING, MASTERDOWN, TRYAGAIN, BUSY, NOSCRIPT; or denied for a key of another request in the
                          batch */
    FAULT_REPLICA,     /* READONLY, or a replica seen in the handshake: the node list is wrong */
    FAULT_CLUSTER,     /* MOVED, CLUSTERDOWN, or cluster mode seen in the handshake */
    FAULT_AUTH,        /* NOPERM: a right is missing; or a certificate is not accepted */
    FAULT_REFUSED,     /* OOM, MISCONF, NOREPLICAS, max number of clients, DENIED */
    FAULT_FOREIGN,     /* WRONGTYPE */
    FAULT_PROTO,       /* not Redis, a malformed or unexpected reply, a server older than 6.2 */
    FAULT_OTHER,       /* an error reply not listed */
    FAULT_LIMIT,       /* a limit of ours: too many requests in flight, or out of memory */
    FAULT_CONFIG, /* its guard names another number of nodes, set or max_lease than this client; it may evict keys; or
                     the lock's name has another number of permits */
    FAULT_GUARD,  /* its guard changed during the connection, or cannot be read: it may have lost its data. Or a
                     reconfigure is unfinished, and the guard admits no client yet */
    FAULT_LOGIN,  /* WRONGPASS, NOAUTH: the login is refused, perhaps while passwords are being changed */
    FAULTS,       /* their number */
};

/* The classes of faults that a verdict depends on. */
enum fault_class {
    FAULT_CLASS_NONE,
    FAULT_CLASS_TEMPORARY,
    FAULT_CLASS_LOGIN, /* this and the following may be permanent: see core_is_permanent */
    FAULT_CLASS_AUTH,
    FAULT_CLASS_FOREIGN,
    FAULT_CLASS_PROTO,
    FAULT_CLASS_CONFIG,
};

static inline enum fault_class fault_class(enum fault fault)
{
    switch (fault) {
    case FAULT_NONE: return FAULT_CLASS_NONE;
    case FAULT_LOGIN: return FAULT_CLASS_LOGIN;
    case FAULT_AUTH: return FAULT_CLASS_AUTH;
    case FAULT_FOREIGN: return FAULT_CLASS_FOREIGN;
    case FAULT_PROTO: return FAULT_CLASS_PROTO;
    case FAULT_CONFIG: return FAULT_CLASS_CONFIG;
    default: return FAULT_CLASS_TEMPORARY;
    }
}
