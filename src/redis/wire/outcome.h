/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * outcome.h - what a server may be asked, what may come of it, and what may be wrong with it
 */
#ifndef QUORLOCK_REDIS_OUTCOME_H
#define QUORLOCK_REDIS_OUTCOME_H

/*
 * Of several keys a node takes, extends and raises all or none, in one script. Where somebody else has some of
 * them the reply names the holder who stands in the way longest, and his remaining lease; no expiry is longest.
 * A key of another type makes the whole request an error (NODE_FAULT_FOREIGN).
 */
enum node_op {
    NODE_ACQUIRE,  /* set the keys to the owner with the lease, only if they are free; by script also where some
                      are the owner's, so the same request may come twice. fenced: one counter above those of
                      all keys, `fence` at least, is stored for each of them and told */
    NODE_EXTEND,   /* where the keys are the owner's: each expiry to at least the lease. fenced: the counters
                      live on, and are `fence` at least */
    NODE_RELEASE,  /* delete those keys that are the owner's, whatever the others are (also with an error of a
                      foreign type), and publish each. fence != 0: the counters are that at least */
    NODE_PEEK,     /* who holds the keys, for how long */
    NODE_BREAK,    /* delete the key whoever holds it, publish */
    NODE_REPAIR,   /* acquire for a lock that is held: sets what is missing, and extends the rest. fence != 0:
                      the counters are that at least, no increment */
    NODE_RAISE,    /* where the keys are the owner's: the counters to `fence`, unless one is higher; tells the
                      highest */
    NODE_MAY_KILL, /* NODE_BOOTSTRAP with force would be let do all of it: yes, or why not. Does nothing */
    NODE_BOOTSTRAP, /* writes the guard: lease_ms is its max_lease. Without force only where there is none,
                       without quarantine; else OTHER, and the holder is what stands there. With force over what
                       is there, with a quarantine for longest_ms, and in the same moment every other client of
                       the server is made to reconnect: both or neither. YES: the holder is the new guard.
                       Neither this nor NODE_MAY_KILL uses key and owner */
};

enum node_outcome {
    NODE_YES,      /* granted; extended; all deleted; for PEEK and BREAK: there was a holder */
    NODE_OTHER,    /* somebody else has one of the keys (holder and ttl where the op learns them) */
    NODE_MISSING,  /* a key is not there (extend, raise, release); none is (peek, break) */
    NODE_NOSCRIPT, /* the server forgot our script; ask again with use_eval */
    NODE_ERROR,    /* an error reply: not executed, see fault and error */
    NODE_UNKNOWN,  /* outcome unknown: deadline, connection ended, an error reply that nobody listed */
};

/* What kind of fault keeps a node, or one request, from an answer. */
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
    NODE_FAULT_LIMIT,       /* our own bound: ring full, out of memory */
    NODE_FAULT_CONFIG,      /* set up otherwise than we are (N, set, max_lease), or evicts keys */
    NODE_FAULT_GUARD,       /* its guard changed under us, or cannot be kept: it may have lost its memory */
};

#endif
