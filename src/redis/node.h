/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node.h - one Redis server: its connection's whole life, and requests to it
 *
 * A node resolves, connects, authenticates, selects, names itself, loads its scripts, looks at its guard and is
 * READY, or QUARANTINED until the guard lets it vote; when the connection ends it is DOWN, pauses (jittered,
 * growing) and tries again for ever. Requests are pipelined on the one connection, so they are executed in the
 * order of node_send(); everything queued in one turn of the loop leaves in one write. Replies come in order,
 * from the loop, never from inside node_send().
 *
 * A request has a deadline of its own. When it passes the request is reported as NODE_UNKNOWN and its place in
 * the ring stays as a tombstone that swallows the late reply. A connection whose oldest request has been
 * unanswered for the stall limit is dropped. When a connection ends, every request on it that was not reported
 * yet is reported as NODE_UNKNOWN first, then the new state.
 *
 * All functions belong to the thread that runs the base. Nothing here decides about locks.
 */
#ifndef QUORLOCK_REDIS_NODE_H
#define QUORLOCK_REDIS_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

struct event_base;
struct evdns_base;
struct node;

enum node_state {
    NODE_CONNECTING,  /* the first connection, or the first try after a READY one ended: may vote soon */
    NODE_READY,       /* takes requests; the generation is that of this connection */
    NODE_QUARANTINED, /* takes requests likewise, but may have lost its memory: its yes to an acquire is no
                         vote. Becomes READY with the same generation */
    NODE_DOWN,        /* the last try failed; the reason says why. It goes on trying */
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

#define NODE_TAG_SIZE 48

/* Opaque to the node, given back with the reply. */
union node_tag {
    unsigned char bytes[NODE_TAG_SIZE];
    void *align_pointer;
    uint64_t align_number;
};

#define NODE_KEYS_MAX 64

struct node_key {
    const char *text; /* with prefix; any bytes */
    size_t length;
};

/* Initializes the keys of a request that has one key. */
#define NODE_KEY(key, bytes) .keys = &(const struct node_key){.text = (key), .length = (bytes)}, .n_keys = 1

struct node_request {
    enum node_op op;
    bool use_eval; /* EVAL instead of EVALSHA */
    bool explain;  /* ACQUIRE: by script even where a native SET would do, so that a refusal tells the
                      holder and the remaining lease */
    bool silent;   /* RELEASE: publishes nothing that our own waiters mind */
    /* 1 to NODE_KEYS_MAX, sorted, each once; BREAK takes one. Used within node_send() only. */
    const struct node_key *keys;
    size_t n_keys;
    const char *owner; /* the whole token; unused by PEEK and BREAK */
    size_t owner_length;
    uint32_t lease_ms;
    uint32_t timeout_ms;   /* 0: none of its own; ends with reply or connection */
    bool fenced;           /* the keys have counters */
    uint64_t fence;        /* a floor or a token, see enum node_op; below 2^53 */
    uint64_t fence_ttl_ms; /* a counter's life after its last use; 0: seven days */
    bool force;            /* BOOTSTRAP */
    bool closes;           /* BOOTSTRAP: the guard is one that fits no client, for 0 nodes */
    uint32_t longest_ms;   /* BOOTSTRAP: of leases that may run */
    union node_tag tag;
};

/* The longest span that a reply tells, in ms: in us it still fits into 63 bits. What a node says beyond is cut
 * to it. */
#define NODE_MS_MAX (INT64_MAX / 1000 - 1000)

struct node_reply {
    enum node_outcome outcome;
    enum node_fault fault;
    const char *error; /* text for people, no password in it; NULL where there is none */
    const char *holder;
    size_t holder_length; /* holder may be any bytes; NULL where unknown */
    const char *type; /* NODE_FAULT_FOREIGN, and BREAK of what is no lock of this dialect: the type that stands
                         there, in the server's word; NULL where unknown */
    size_t type_length;
    int64_t ttl_ms; /* -1: no expiry; -2: unknown; at most NODE_MS_MAX */
    uint32_t latency_us;
    uint64_t fence;        /* the counter, of several keys the highest: fenced ACQUIRE, RAISE, PEEK; 0: none, or
                              unknown */
    uint64_t node_time_us; /* the server's clock: EXTEND, RAISE, and ACQUIRE and REPAIR by script; else 0 */
    int64_t quarantine_ms; /* PEEK: what the guard there has left of it; -1: nothing; at most NODE_MS_MAX */
    bool has_guard;        /* PEEK */
    uint32_t count; /* PEEK in the redisson dialect: how often the holder holds it; RELEASE, and ACQUIRE by
                       script that was refused: how many listen for a release; else 0 */
};

struct node_events {
    /* Its state, or the reason, changed. generation: counts, from 1, the connections that took requests; 0
     * unless READY or QUARANTINED. */
    void (*state)(void *arg, uint32_t index, enum node_state, uint32_t generation, enum node_fault,
                  const char *why);
    /* One call for each node_send that returned 0. */
    void (*reply)(void *arg, uint32_t index, uint32_t generation, const union node_tag *,
                  const struct node_reply *);
    /* Requests may have found room that did not before. */
    void (*room)(void *arg, uint32_t index);
    void (*log)(void *arg, int level, const char *text);
    void *arg;
};

struct node_config {
    uint32_t index;
    const struct uri *uri;   /* kept by the caller as long as the node */
    const char *client_name; /* for CLIENT SETNAME, or NULL */
    uint32_t timeout_ms;     /* for each step of connecting and the handshake */
    uint32_t stall_ms;       /* oldest request unanswered so long: drop the connection */
    uint32_t reconnect_min_ms, reconnect_max_ms;
    uint32_t dialect;              /* enum quorlock_dialect */
    uint64_t (*now_us)(void *arg); /* the client's clock */
    void *now_arg;
    /* The restart guard. All zero: none, and nothing is asked or written for it. */
    uint32_t guard;        /* enum quorlock_guard; 0 is off here */
    uint32_t n_nodes;      /* how many nodes the set has */
    const char *set;       /* its name or hash; kept by the caller as long as the node */
    bool set_named;        /* a name, which the caller gave */
    uint32_t max_lease_ms; /* 0: 30000 */
    bool allow_eviction;   /* a server that may evict keys is a warning, not a fault */
};

/* node_new - a node that starts to connect when the loop runs. NULL: out of memory. */
struct node *node_new(struct event_base *, const struct alloc *, const struct node_config *,
                      const struct node_events *);
/* node_free - ends the connection and the node. Requests in flight are not reported any more; no callback
 * comes after or from it. May be called from inside a callback of this node. */
void node_free(struct node *);

/* FULL, NOMEM: what the connection holds is bounded; events.room() tells when to try again. */
enum node_send_result { NODE_SENT = 0, NODE_NOT_READY = -1, NODE_FULL = -2, NODE_NOMEM = -3 };
/* node_send - queues one request; NODE_SENT promises one reply callback, anything else none. */
int node_send(struct node *, const struct node_request *);

/*
 * How much of a connection's bounded room a request may use. What asks for new locks leaves some to what keeps
 * and gives back those that are held; both leave some to what an attempt under way asks next.
 */
enum node_room {
    NODE_ROOM_NEW,  /* begins an attempt */
    NODE_ROOM_KEEP, /* NODE_EXTEND and NODE_RELEASE: node_send() refuses them as FULL where there is none */
    NODE_ROOM_NEXT, /* all else */
};
/* node_has_room - whether a request of that kind could be queued now; false where it takes no requests. */
bool node_has_room(const struct node *, enum node_room);
/* node_in_flight - requests that are not answered yet, those included whose time is over. */
size_t node_in_flight(const struct node *);
/* node_is_late - it has left requests unanswered for far longer than its answers take, and nothing that could
 * be read says otherwise: frozen, or out of reach. */
bool node_is_late(const struct node *);
enum node_state node_state_now(const struct node *);
uint32_t node_generation(const struct node *); /* 0 unless READY or QUARANTINED */
/* node_why - why it is not READY, for people; "" when READY. Of a QUARANTINED node it counts down: valid until
 * the next call. */
const char *node_why(const struct node *);
enum node_fault node_fault_now(const struct node *);
/* node_srtt_us - smoothed round trip; 0 while unknown. */
uint32_t node_srtt_us(const struct node *);
const char *node_name(const struct node *); /* address without credentials */
/* node_quarantined_until_us - on the client's clock; 0 when not QUARANTINED. */
uint64_t node_quarantined_until_us(const struct node *);
/* node_channel - the channel on which this node's dialect tells the key's releases, cut where ret is too small;
 * its length. */
size_t node_channel(const struct node *, const struct node_key *, char *ret, size_t size);
/* node_run_id - which process answers there, as told on this connection; "" while unknown. */
const char *node_run_id(const struct node *);
/*
 * node_expel - the caller found a fault of the node (one server listed twice, say)
 *
 * The connection is dropped: what is in flight is reported as unknown, then DOWN with that reason is told, all
 * from inside this call. It tries again with the longest pauses. May be called from inside a callback. Nothing
 * happens to a node that is not READY or QUARANTINED.
 */
void node_expel(struct node *, enum node_fault, const char *why);

#endif
