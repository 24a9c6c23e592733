/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * outcome.h - the operations that a server is asked for, their outcomes, and the faults of servers
 */
#ifndef QUORLOCK_REDIS_OUTCOME_H
#define QUORLOCK_REDIS_OUTCOME_H

/*
 * Of several keys a server sets, extends and raises all or none, in one script. Where another owner holds some
 * of them, the reply names the holder with the longest remaining lease; no expiry is longest. A key of another
 * type makes the whole request an error (NODE_FAULT_FOREIGN).
 */
enum node_op {
    NODE_ACQUIRE, /* set the keys to the owner with the lease, only if they are free; by script also where some
                     are the owner's, so the same request may come twice. fenced: one counter above those of
                     all keys, and `fence` at least, is stored for each of them and returned */
    NODE_EXTEND,  /* where the keys are the owner's: each expires after the lease or later. fenced: the counters
                     live on, and are `fence` at least */
    NODE_RELEASE, /* delete those keys that are the owner's, whatever the others are (also where the reply is an
                     error of a foreign type), and publish each. fence != 0: the counters are that at least */
    NODE_PEEK,    /* the holder of the keys, and its remaining lease */
    NODE_BREAK,   /* delete the key, whatever owner holds it, and publish */
    NODE_REPAIR,  /* acquire for a lock that is held: sets what is missing, and extends the rest. fence != 0:
                     the counters are that at least, no increment */
    NODE_RAISE,   /* where the keys are the owner's: the counters to `fence`, unless one is higher; the reply
                     has the highest */
    NODE_MAY_KILL,  /* whether the user has all rights for NODE_BOOTSTRAP with force; changes nothing */
    NODE_BOOTSTRAP, /* write the guard; lease_ms is its max_lease. Without force: only where there is none, and
                       without a quarantine; else OTHER, and the holder is the present guard. With force: over
                       the present one, with a quarantine of longest_ms, and in the same transaction every other
                       client of the server is disconnected. YES: the holder is the new guard. Neither this nor
                       NODE_MAY_KILL uses key and owner */
};

enum node_outcome {
    NODE_YES,      /* granted; extended; all deleted; for PEEK and BREAK: there was a holder */
    NODE_OTHER,    /* another owner holds one of the keys (holder and ttl where the operation learns them) */
    NODE_MISSING,  /* a key is not there (extend, raise, release); none is (peek, break) */
    NODE_NOSCRIPT, /* the server does not have the script any more; send again with use_eval */
    NODE_ERROR,    /* an error reply: not executed, see fault and error */
    NODE_UNKNOWN, /* the deadline passed, the connection ended, or an error reply that errors.c does not list */
};

/* Why a server, or one request to it, got no answer. */
enum node_fault {
    NODE_FAULT_NONE = 0,
    NODE_FAULT_UNREACHABLE, /* resolve, connect, connection lost, stalled */
    NODE_FAULT_TIMEOUT,     /* this request's deadline passed */
    NODE_FAULT_TEMPORARY,   /* LOADING, MASTERDOWN, TRYAGAIN, BUSY */
    NODE_FAULT_REPLICA,     /* READONLY, or a replica seen in the handshake: the node list is wrong */
    NODE_FAULT_CLUSTER,     /* MOVED, CLUSTERDOWN, or cluster mode seen in the handshake */
    NODE_FAULT_AUTH,        /* NOAUTH, WRONGPASS, NOPERM, a wrong password in the handshake */
    NODE_FAULT_REFUSED,     /* OOM, MISCONF, NOREPLICAS, max number of clients, DENIED */
    NODE_FAULT_FOREIGN,     /* WRONGTYPE */
    NODE_FAULT_PROTO,       /* not Redis, a malformed or unexpected reply, a server older than 6.2 */
    NODE_FAULT_OTHER,       /* an error reply not listed */
    NODE_FAULT_LIMIT,       /* a bound of our own: ring full, out of memory */
    NODE_FAULT_CONFIG, /* its guard has another N, set or max_lease than this client, or it may evict keys */
    NODE_FAULT_GUARD,  /* its guard changed while we were connected, or cannot be kept: it may have lost its
                          memory */
};

#endif
