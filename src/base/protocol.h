/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * protocol.h - what a node is asked, what comes of it, and what may be wrong with the node
 *
 * src/core decides by these words and src/redis speaks them to the server; the two do not know each other.
 */
#pragma once

#include <stdbool.h>

/* Whom a node names in place of an owner: all that hold the key shared; and, with its name behind, a writer for which
 * readers wait that came later. */
#define HOLDER_READERS "quorlock:readers"
#define HOLDER_WAITS   "quorlock:waits:"

enum node_state {
    NODE_CONNECTING,  /* the first connection, or the first try after a READY one ended: may vote soon */
    NODE_READY,       /* takes requests; the generation is that of this connection */
    NODE_QUARANTINED, /* takes requests likewise, but may have lost its memory: its yes to an acquire is no
                         vote. Becomes READY with the same generation */
    NODE_DOWN,        /* the last try failed; the reason says why. It goes on trying */
};

/* node_takes_requests - though perhaps not for its vote. */
static inline bool node_takes_requests(enum node_state state)
{
    return state == NODE_READY || state == NODE_QUARANTINED;
}

/* What the last quarantine of a node is for. */
enum quarantine_cause {
    QUARANTINE_NONE = 0,
    QUARANTINE_UNKNOWN,     /* its guard is of another version's */
    QUARANTINE_FIRST,       /* it had no guard when a client came */
    QUARANTINE_RESTART,     /* another process of the server, or another role, since its guard was written */
    QUARANTINE_RECONFIGURE, /* its guard was written anew over another one */
    QUARANTINE_CLIENT,      /* a client with a longer max_lease than the guard's was refused */
};

/*
 * Of several keys a server sets, extends and raises all or none, in one script. Where another owner holds some
 * of them, the reply names the holder with the longest remaining lease; no expiry is longest. A key of another
 * type makes the whole request an error (FAULT_FOREIGN).
 */
enum op {
    OP_ACQUIRE,   /* set the keys to the owner with the lease, only if they are free; by script also where some
                     are the owner's, so the same request may come twice. fenced: one counter above those of
                     all keys, and `fence` at least, is stored for each of them and returned */
    OP_EXTEND,    /* where the keys are the owner's: each expires after the lease or later. fenced: the counters
                     live on, and are `fence` at least */
    OP_RELEASE,   /* delete those keys that are the owner's, whatever the others are (also where the reply is an
                     error of a foreign type), and publish each. fence != 0: the counters are that at least */
    OP_PEEK,      /* the holder of the keys, and its remaining lease */
    OP_BREAK,     /* delete the key, whatever owner holds it, and publish */
    OP_REPAIR,    /* acquire for a lock that is held: sets what is missing, and extends the rest. fence != 0:
                     the counters are that at least, no increment */
    OP_RAISE,     /* where the keys are the owner's: the counters to `fence`, unless one is higher; the reply
                     has the highest */
    OP_MAY_KILL,  /* whether the user has all rights for OP_BOOTSTRAP with force; changes nothing */
    OP_BOOTSTRAP, /* write the guard; lease_ms is its max_lease. Without force: only where there is none, or one of
                     a first contact that has let no client vote yet, and without a quarantine; else OTHER, and
                     the holder is the present guard. ends: only ends the quarantine for a client with a longer
                     max_lease. With force: over the present one, with a quarantine of longest_ms, and in the
                     same transaction every other client of the server is disconnected. YES: the holder is the
                     new guard. Neither this nor OP_MAY_KILL uses key and owner */
    OP_INTEND,    /* the waiter is remembered for lease_ms where one of the other mode is in its way, so that others
                     wait behind it; 0: it waits no more. YES, which is no vote */
};

enum outcome {
    OUTCOME_YES,     /* granted; extended; all deleted; for PEEK and BREAK: there was a holder */
    OUTCOME_OTHER,   /* another owner holds one of the keys (holder and ttl where the operation learns them) */
    OUTCOME_MISSING, /* a key is not there (extend, raise, release); none is (peek, break) */
    OUTCOME_ERROR,   /* an error reply: not executed, see fault and error */
    OUTCOME_UNKNOWN, /* executed or not: the deadline passed, the connection ended, an unknown error reply */
    OUTCOME_UNSENT,  /* could not be queued: certainly not executed */
};

/* Why a server, or one request to it, got no answer. */
enum fault {
    FAULT_NONE = 0,
    FAULT_UNREACHABLE, /* resolve, connect, connection lost, stalled */
    FAULT_TIMEOUT,     /* this request's deadline passed */
    FAULT_TEMPORARY,   /* LOADING, MASTERDOWN, TRYAGAIN, BUSY, NOSCRIPT; denied for a key of another request */
    FAULT_REPLICA,     /* READONLY, or a replica seen in the handshake: the node list is wrong */
    FAULT_CLUSTER,     /* MOVED, CLUSTERDOWN, or cluster mode seen in the handshake */
    FAULT_AUTH,        /* NOPERM: a right is missing; a certificate is not accepted */
    FAULT_REFUSED,     /* OOM, MISCONF, NOREPLICAS, max number of clients, DENIED */
    FAULT_FOREIGN,     /* WRONGTYPE */
    FAULT_PROTO,       /* not Redis, a malformed or unexpected reply, a server older than 6.2 */
    FAULT_OTHER,       /* an error reply not listed */
    FAULT_LIMIT,       /* a bound of our own: ring full, out of memory */
    FAULT_CONFIG,      /* its guard has another N, set or max_lease than this client, or it may evict keys */
    FAULT_GUARD,       /* its guard changed while we were connected, or cannot be kept: it may have lost its
                          memory; or it is for no client yet, amid a reconfigure */
    FAULT_LOGIN,       /* WRONGPASS, NOAUTH: the login is refused, perhaps amid a change of passwords */
    FAULTS,            /* how many there are */
};

/* Faults as far as a verdict depends on them. */
enum fault_class {
    FAULT_CLASS_NONE,
    FAULT_CLASS_TEMPORARY,
    FAULT_CLASS_LOGIN, /* this and those behind it may be permanent: see core_is_permanent */
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
