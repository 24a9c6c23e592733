/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quorlock.h - one lock on N independent Redis masters, asynchronously
 *
 * The caller owns a libevent event_base, or by loop.h any other event loop, and runs it. A client connects to N nodes
 * on it; a lock asks all nodes at once, is held when a majority (Redlock) or all of them (MultiLock) granted it inside
 * the validity window, is renewed on every node, and tells its owner before it can be lost.
 *
 * Rules that hold for every function here, unless its comment says otherwise:
 *
 * - Threads. A client and its locks belong to the thread that runs the loop. Only quorlock_version,
 *   quorlock_status_name and quorlock_status_text may be called from anywhere. blocking.h is the door for threads.
 * - Callbacks. A start function (acquire, extend, release, inspect, break, bootstrap) that returns 0 promises its
 *   callback exactly once, later, from the loop and never from inside the call. Non-zero means that the callback
 *   never comes. A callback may call anything here, also free its lock or close the client.
 * - Ownership. What is handed in is copied before the call returns. What a callback is handed belongs to the library
 *   and is valid during that callback only.
 * - Structs. They may grow at their end. What the library hands out is its own: arrays are arrays of pointers,
 *   result->votes[i]->node, so that a caller need not know how large a struct is. What the caller makes begins with
 *   its size, see above struct quorlock_allocator.
 * - Errors. 0 or a negative quorlock_status. After a non-zero return quorlock_client_error() has the text. Of a
 *   client that was closed every function but statistics and metrics answers CLOSED, whatever else is wrong.
 * - The library prints nothing, keeps no globals and never ends the process. It does not raise SIGPIPE.
 * - An event_base should have EVENT_BASE_FLAG_PRECISE_TIMER: without it libevent rounds timers to some 4 ms. The
 *   library never trusts the loop's cached time: it reads the clock itself.
 */
#ifndef QUORLOCK_QUORLOCK_H
#define QUORLOCK_QUORLOCK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(QUORLOCK_BUILDING)
#define QUORLOCK_API __attribute__((visibility("default")))
#else
#define QUORLOCK_API
#endif

#define QUORLOCK_VERSION_MAJOR 0
#define QUORLOCK_VERSION_MINOR 1
#define QUORLOCK_VERSION_PATCH 0
#define QUORLOCK_VERSION       "0.1.0"

struct event_base;
typedef struct quorlock_client quorlock_client; /* a set of nodes on one event loop */
typedef struct quorlock quorlock;               /* one lock; reusable */

/* Every status: name, value, text. */
#define QUORLOCK_STATUS_MAP(X)                                                                                         \
    X(OK, 0, "success")                                                                                                \
    X(INVAL, -1, "invalid argument")                                                                                   \
    X(NOMEM, -2, "out of memory")                                                                                      \
    X(BUSY, -3, "another operation of this lock is in flight")                                                         \
    X(STATE, -4, "not possible in the present state of the lock")                                                      \
    X(HELD, -5, "somebody else holds the lock")                                                                        \
    X(NOQUORUM, -6, "too few nodes can vote")                                                                          \
    X(TIMEDOUT, -7, "the wait bound came before a verdict")                                                            \
    X(LOST, -8, "the lock was lost")                                                                                   \
    X(CANCELED, -9, "canceled by the caller")                                                                          \
    X(CLOSED, -10, "the client is closed")                                                                             \
    X(AUTH, -11, "the nodes refuse our credentials or rights, or their certificates are not accepted")                 \
    X(FOREIGN, -12, "the key holds a value of another type or dialect")                                                \
    X(PROTO, -13, "the nodes do not speak Redis as expected")                                                          \
    X(UNSUPPORTED, -14, "not supported by this version or build")

enum quorlock_status {
#define QUORLOCK_STATUS_ENUM(name, value, text) QUORLOCK_##name = (value),
    QUORLOCK_STATUS_MAP(QUORLOCK_STATUS_ENUM)
#undef QUORLOCK_STATUS_ENUM
};

enum quorlock_policy {
    QUORLOCK_MAJORITY = 0, /* Redlock: floor(N/2)+1 nodes */
    QUORLOCK_ALL = 1,      /* MultiLock: all N nodes */
};

enum quorlock_dialect {
    QUORLOCK_DIALECT_PLAIN = 0, /* a string at the key, as redsync, node-redlock and most others write it */
    /* A hash at the key, as RLock, RedissonRedLock and RedissonMultiLock write it. */
    QUORLOCK_DIALECT_REDISSON = 1,
};

/* The restart guard: how a node that lost its memory is kept from voting too early. */
enum quorlock_guard {
    QUORLOCK_GUARD_DEFAULT = 0,    /* connection */
    QUORLOCK_GUARD_OFF = 1,        /* a node that restarts without its memory can vote twice */
    QUORLOCK_GUARD_CONNECTION = 2, /* looked at when connecting, renewing and releasing */
    QUORLOCK_GUARD_STRICT = 3,     /* and in every acquire: also sees FLUSHALL on a live connection */
};

enum quorlock_log_level { QUORLOCK_LOG_DEBUG = 0, QUORLOCK_LOG_INFO, QUORLOCK_LOG_WARN, QUORLOCK_LOG_ERROR };

#define QUORLOCK_NODES_MAX        31
#define QUORLOCK_KEYS_MAX         64
#define QUORLOCK_KEY_LENGTH_MAX   1024
#define QUORLOCK_OWNER_LENGTH_MAX 256
#define QUORLOCK_LEASE_MS_MIN     10
#define QUORLOCK_LEASE_MS_MAX     86400000u /* one day */
#define QUORLOCK_LEASE_MS_DEFAULT 30000u    /* of a lease, and of a client's max_lease_ms */
#define QUORLOCK_TIMEOUT_MS_MAX   60000u    /* one minute */
#define QUORLOCK_WAIT_FOREVER     UINT32_MAX
#define QUORLOCK_RENEW_NEVER      UINT32_MAX
#define QUORLOCK_FENCE_TTL_MS     604800000u /* seven days */
#define QUORLOCK_PERMITS_MAX      64
#define QUORLOCK_SHARED_ALL       UINT64_MAX

/*
 * What the caller makes starts with its size, so that it can grow: fill with zeros, set size = sizeof. A zero
 * means the default. A non-zero byte behind what this library knows is QUORLOCK_INVAL.
 *
 * Memory hooks, all three or none. They are handed `arg`, obey the rules of malloc, realloc and free, and are
 * called from the client's thread only. hiredis, libevent, OpenSSL and the adapters of loops keep their own.
 */
struct quorlock_allocator {
    size_t size;
    void *(*allocate)(void *arg, size_t size);
    void *(*reallocate)(void *arg, void *block, size_t size);
    void (*release)(void *arg, void *block);
    void *arg;
};

/* One line of text without newline and without passwords; owner tokens are cut to label and 8 characters. Like
 * every callback it runs from the loop. Lines come in order, each before the callback that it explains. Beyond
 * a thousand waiting lines further ones are dropped, and a line says how many. */
typedef void (*quorlock_log_cb)(void *arg, int level, const char *text);

#define QUORLOCK_USER_SIZE     1025
#define QUORLOCK_PASSWORD_SIZE 16385 /* the most that a server takes */

/* What a callback credentials writes: texts that end with a zero byte, "" for none. It comes zeroed. */
struct quorlock_credentials {
    size_t size; /* of this struct, as the library knows it */
    char user[QUORLOCK_USER_SIZE], password[QUORLOCK_PASSWORD_SIZE];
    char why[256]; /* why there are none now, for the log */
};

struct quorlock_client_options {
    size_t size;
    const char *const *nodes;  /* redis:// or valkey://[user[:password]@]host[:port][/db], rediss:// or valkeys:// for
                                  TLS, unix:///path, host:port; IPv6 in brackets. A name is looked up by the system's
                                  resolver, in a thread that exists until the answer is here */
    size_t n_nodes;            /* 1 .. QUORLOCK_NODES_MAX; no address twice */
    int policy;                /* enum quorlock_policy */
    int dialect;               /* enum quorlock_dialect */
    int guard;                 /* enum quorlock_guard */
    uint32_t node_timeout_ms;  /* a node that has not answered by then has no vote in the round; 1 to
                                  QUORLOCK_TIMEOUT_MS_MAX; default: lease/10, at least 50, at most 1000 */
    uint32_t max_lease_ms;     /* the largest lease that any client of these nodes uses, the same for all: nodes whose
                                  guard has another refuse us. Default: QUORLOCK_LEASE_MS_DEFAULT, whatever they say */
    uint32_t drift_ppm;        /* clock rate error allowed for, client plus node; default 10000 (1 %) */
    uint32_t drift_fixed_ms;   /* added to it; default 2 */
    uint32_t reconnect_min_ms; /* first pause before connecting again; default 50 */
    uint32_t reconnect_max_ms; /* longest pause; default 2000 */
    const char *key_prefix;    /* put before every key on the nodes; default none */
    const char *owner_label;   /* readable front of every owner token, at most 64 printable characters without
                                  space, and a colon follows; default none. Not in the redisson dialect */
    const char *set_name;      /* name of this set of nodes, where clients address the nodes differently;
                                  default: a hash of the sorted addresses */
    int allow_eviction;        /* a node that may evict keys is warned about, not refused */
    const struct quorlock_allocator *allocator;
    quorlock_log_cb log;
    void *log_arg;
    char *error; /* where quorlock_client_new writes the text of its error; may be NULL */
    size_t error_size;
    /* For every node whose address has neither user nor password, written as they are, without %XX; NULL or "":
       none. Copied, as the addresses are, and kept until the client is closed or has others, for it connects again;
       the copy of a password is wiped then. The caller may wipe its own when quorlock_client_new has returned. */
    const char *user, *password;
    /* For nodes of rediss://; an error where there is none. Files in PEM, read again when they changed, for the next
     * connections; where a new one is bad all of the former stay in use. Certificate and name are always verified. */
    const char *tls_ca;   /* CA certificates that the servers' are signed by: a file, or a folder as openssl rehash
                             makes it; default the system's */
    const char *tls_cert; /* our certificate, and those between it and its CA, for servers that ask for one */
    const char *tls_key;  /* its key, without a passphrase; default: it is in tls_cert too */
    const char *tls_name; /* the name or address that the servers' certificates have; default the host of each
                             address */
    uint64_t buggify;     /* not 0: a seed for made-up losses, to test a program with; see quorlock(7). Default:
                             QUORLOCK_BUGGIFY in the environment, else off */
    /* Asked before each login to a node whose address has neither user nor password; in the loop's thread. It writes
       both to ret, which is copied and wiped, and returns 0; not 0: those of before stay in use, at first `user` and
       `password`. It must not block, nor call this library. NULL: none is asked. */
    int (*credentials)(void *arg, const char *node, struct quorlock_credentials *ret);
    void *credentials_arg;
    uint32_t connect_timeout_ms; /* a node that is not connected by then, name lookup and handshake included, is down.
                                    A lock that tries once waits so long for connecting nodes, while fewer than a
                                    quorum have answered. Range as node_timeout_ms; default 3000, or that if more */
};

struct quorlock_options {
    size_t size;
    uint32_t lease_ms;     /* QUORLOCK_LEASE_MS_MIN .. the client's max_lease_ms; default QUORLOCK_LEASE_MS_DEFAULT, or
                              that if less */
    uint32_t wait_ms;      /* how long acquire may wait, also behind others of this client; 0: try once;
                              QUORLOCK_WAIT_FOREVER */
    uint32_t renew_ms;     /* at most between two renewals; default lease/3; QUORLOCK_RENEW_NEVER: hold for one lease */
    uint32_t min_valid_ms; /* grant only if so much validity is left; default 0 */
    uint32_t
        lost_margin_ms;    /* loss is reported so long before validity ends; default 2 x drift allowance, at least 10 */
    uint32_t max_hold_ms;  /* no renewal after so long a hold; default none */
    int fencing;           /* every grant carries a token that rises over the quorum */
    uint32_t fence_ttl_ms; /* how long nodes keep a key's counter after its last use, at least the client's
                              max_lease_ms; default QUORLOCK_FENCE_TTL_MS */
    const char *owner;     /* in whose name it is held, 1 to QUORLOCK_OWNER_LENGTH_MAX bytes: holds of one
                              owner nest, see quorlock_acquire. NULL: no reentry */
    const char *label;     /* readable front of this lock's owner tokens instead of the client's owner_label, 1 to
                              64 printable characters without space; a colon follows it. NULL: the client's. Not in
                              the redisson dialect */
    uint64_t shared;       /* the keys that are locked shared, a bit each by its place in the list, from the lowest bit
                              on; QUORLOCK_SHARED_ALL: all of them, and then the fencing token is the highest of a writer's
                              that a quorum shows, or 0; see quorlock_new(3). Default: none. Not in the redisson dialect */
    uint32_t permits;      /* the key is a name with so many permits, 1 to QUORLOCK_PERMITS_MAX, and this lock is one of
                              them: its slot is in the result, and tokens rise slot by slot. One key, not shared; all
                              clients use the same number. Default: an ordinary lock. Not in the redisson dialect */
};

enum quorlock_vote_outcome {
    QUORLOCK_VOTE_NONE = 0,    /* not asked */
    QUORLOCK_VOTE_PENDING,     /* asked, no answer yet */
    QUORLOCK_VOTE_GRANTED,     /* said yes; in a release: our key is gone */
    QUORLOCK_VOTE_REFUSED,     /* another owner's key is there; in a release: ours was not there any more */
    QUORLOCK_VOTE_FAILED,      /* no vote: unreachable, too late, or an error reply; see error */
    QUORLOCK_VOTE_MISSING,     /* an extend found no key of ours */
    QUORLOCK_VOTE_QUARANTINED, /* no vote: the node may have lost its memory; see error */
};

struct quorlock_vote {
    const char *node;    /* the address without credentials */
    int outcome;         /* enum quorlock_vote_outcome */
    uint32_t latency_us; /* of this answer; 0 where there is none */
    const char *error;   /* why there is no vote; else NULL */
    const char *holder;  /* whose key stands there, as in a report; NULL where unknown */
    int64_t ttl_ms;      /* remaining lease of that holder; -1: it has no expiry; -2: unknown */
};

struct quorlock_result {
    int status; /* enum quorlock_status */
    uint32_t granted, refused, failed;
    uint32_t rounds;     /* attempts that this acquire made */
    uint32_t elapsed_ms; /* from the call to the verdict */
    uint32_t valid_ms;   /* validity left now; 0 when not held */
    int expired;         /* a release found that the lock had expired or was lost before */
    const char *text;    /* the verdict in words */
    const char *token;   /* our owner token, whole; NULL where there was none */
    uint64_t fence;      /* fencing token of the grant; 0 without fencing */
    const struct quorlock_vote *const *votes;
    size_t n_votes;
    uint32_t slot; /* of a lock with permits: which of them it holds, 0 to permits - 1; else 0 */
};

typedef void (*quorlock_cb)(quorlock *, const struct quorlock_result *, void *arg);

enum quorlock_lost_reason {
    QUORLOCK_LOST_EXPIRED = 1, /* renewal did not reach a quorum in time */
    QUORLOCK_LOST_GONE,        /* so many nodes lost our key that a quorum is out of reach */
    QUORLOCK_LOST_MAX_HOLD,    /* max_hold_ms ended renewal */
    QUORLOCK_LOST_NOT_RENEWED, /* QUORLOCK_RENEW_NEVER and the lease ends */
    QUORLOCK_LOST_CLOCK,       /* the clocks of a quorum ran ahead of ours: this machine stood still */
};

struct quorlock_loss {
    int reason; /* enum quorlock_lost_reason */
    const char *text;
    uint32_t remaining_ms; /* until another owner may hold the lock; 0: it may already */
    const struct quorlock_vote *const *votes;
    size_t n_votes;
};

typedef void (*quorlock_lost_cb)(quorlock *, const struct quorlock_loss *, void *arg);

enum quorlock_holder_kind {
    QUORLOCK_HOLDER_SLOT = 1, /* holds a permit */
    QUORLOCK_HOLDER_READER,   /* holds the key shared */
    QUORLOCK_HOLDER_WAITS,    /* waits for the key, and has other clients wait for it meanwhile */
};

/* One of several that one node knows of for a key. */
struct quorlock_holder {
    int kind;           /* enum quorlock_holder_kind */
    const char *holder; /* as in struct quorlock_node_report */
    int64_t ttl_ms;     /* likewise */
    uint64_t fence;     /* the slot's fencing counter; 0 where there is none */
    uint32_t slot;
    int shared; /* QUORLOCK_HOLDER_WAITS: it waits to hold the key shared */
};

/* Why a node has no vote for the time being. */
enum quorlock_quarantine {
    QUORLOCK_QUARANTINE_NONE = 0,
    QUORLOCK_QUARANTINE_UNKNOWN,     /* its guard was written by another version */
    QUORLOCK_QUARANTINE_FIRST,       /* it had no guard: quorlock_bootstrap ends it where that is so on all nodes */
    QUORLOCK_QUARANTINE_RESTART,     /* it restarted, or was promoted */
    QUORLOCK_QUARANTINE_RECONFIGURE, /* its guard was written anew by a reconfiguration */
    QUORLOCK_QUARANTINE_CLIENT       /* a client with a longer max lease was refused; quorlock_bootstrap ends it */
};

/* What one node knows about a key. state: "free", "held", "foreign", "down", "error"; quorlock_bootstrap
 * has its own. */
struct quorlock_node_report {
    const char *node;
    const char *state;
    const char *holder; /* whole: control characters, and bytes that are no UTF-8, as \xNN; NULL where none */
    const char *error;  /* NULL where none */
    int64_t ttl_ms;     /* -1: no expiry; -2: none or unknown */
    uint32_t latency_us;
    int broken;            /* quorlock_break: this node's key was deleted */
    uint32_t count;        /* redisson dialect: how often its holder holds it; else 0 */
    uint64_t fence;        /* the key's fencing counter; 0 where there is none */
    int64_t quarantine_ms; /* the node has no vote for so long; 0: it has; -1: no guard there, or not known */
    const char *type;      /* foreign: what stands there, "hash", "list"...; NULL where not known, or not foreign */
    int64_t waiters;       /* quorlock_inspect: so many clients listen there for a release of the key; -1: not known */
    /* quorlock_inspect, and what quorlock_break deleted. How many permits the name has, as known until the lease of the
     * last one that was held there would have ended, also where it was released; 0: none was. They change neither state
     * nor holder, which are those of a lock without permits. */
    uint32_t permits;
    const struct quorlock_holder *const *holders; /* slots by number, readers, those that wait */
    size_t n_holders;
    int quarantine;             /* enum quorlock_quarantine: why there is one */
    const char *quarantine_why; /* the same in words, with what ends it; NULL where there is none */
};

struct quorlock_report {
    const char *key;
    uint32_t quorum;    /* how many nodes make one */
    int held;           /* one owner is on a quorum of nodes (quorlock_same_owner) */
    const char *holder; /* that owner; NULL where there is none, or where its name differs from node to node */
    uint32_t valid_ms;  /* until the quorum of that holder ends by the nodes' own clocks; 0 when not held */
    uint32_t answered;  /* nodes that answered */
    const struct quorlock_node_report *const *nodes;
    size_t n_nodes;
};

/* status: 0 when a quorum of nodes answered; else NOQUORUM, CLOSED ...; the report is there all the same. */
typedef void (*quorlock_report_cb)(int status, const struct quorlock_report *, void *arg);

/* quorlock_version - version of the library that runs, "major.minor.patch". quorlock_status_name: "HELD" for
 * QUORLOCK_HELD; "UNKNOWN" for what is no status. quorlock_status_text: a sentence part. Any thread. */
QUORLOCK_API const char *quorlock_version(void);
QUORLOCK_API const char *quorlock_status_name(int status);
QUORLOCK_API const char *quorlock_status_text(int status);

/* quorlock_same_owner - whether two holders, as votes and reports show them, are one owner. Any thread. Their
 * texts are equal; or both are <uuid>:<number>, as Redisson writes owners, with the same number: a
 * RedissonRedLock or RedissonMultiLock has a client, and so a uuid, for each server. */
QUORLOCK_API int quorlock_same_owner(const char *holder, const char *other);

/* quorlock_client_new - a client of n_nodes nodes on the caller's base; starts to connect when the loop runs. The base
 * must outlive the client. Errors: INVAL, NOMEM, and STATE where the system has no random bytes, with the text in
 * options->error; *ret is untouched then. An unreachable node is no error: it shows in the votes. */
QUORLOCK_API int quorlock_client_new(quorlock_client **ret, struct event_base *base,
                                     const struct quorlock_client_options *options);

/* quorlock_client_close - releases all locks on every node that can be reached, then frees everything. Waits
 * for the answers of nodes at most one node timeout after the last release was sent. Operations in flight end
 * with CLOSED. cb (may be NULL) runs last, from the loop; by then all memory of the client is free and no
 * handle of it may be used. Only what libevent has of a name's lookup that was open is freed by the next turn of
 * the caller's event_base: before event_base_free() call event_base_loop(base, EVLOOP_NONBLOCK) where cb ended the
 * loop. Errors: CLOSED when called twice; INVAL, client is NULL, and cb does not come. */
QUORLOCK_API int quorlock_client_close(quorlock_client *client, void (*cb)(void *arg), void *arg);

/*
 * quorlock_client_set_credentials - what later logins use where an address has neither user nor password
 *
 * Both are copied, NULL or "" is none, and what was used before is wiped. Connections that are open stay; a node that
 * refused the last login is tried again at once. Errors: INVAL (each address has a user or a password), STATE (the
 * client has a callback credentials), NOMEM (some nodes may have the new ones: call again), CLOSED.
 */
QUORLOCK_API int quorlock_client_set_credentials(quorlock_client *client, const char *user, const char *password);

/* quorlock_client_error - text of the last call on this client or its locks that returned non-zero; valid
 * until the next call. Never NULL. */
QUORLOCK_API const char *quorlock_client_error(const quorlock_client *client);

/*
 * quorlock_new - a lock on n_keys keys, 1 to QUORLOCK_KEYS_MAX, not yet acquired
 *
 * Of several keys every node takes, renews and releases all or none; there is one validity and one fencing
 * token for them. The order in which they are named makes no difference: lists that share a key exclude each
 * other and cannot block each other. It is granted when a quorum has all keys free at once, and lost when one of
 * them is.
 *
 * Any number of handles may be made for the same keys, also on one client: they exclude each other unless they
 * have the same owner.
 *
 * Errors: INVAL (no key or too many, one twice, an empty key, one that with the client's key_prefix is too long
 * or begins with "quorlock:", an empty or too long owner, lease out of range, a renewal that cannot come in
 * time), NOMEM, CLOSED.
 */
QUORLOCK_API int quorlock_new(quorlock **ret, quorlock_client *client, const char *const *keys, size_t n_keys,
                              const struct quorlock_options *options);

/*
 * quorlock_acquire - asks all nodes at once, again and again until wait_ms
 *
 * May be called while a release of this lock is still in flight. A failed acquire releases everywhere what it
 * took. Requests that the connections cannot carry yet wait in the client, in the order of the calls. wait_ms
 * counts that time, too, but with wait_ms 0 the nodes are asked all the same.
 * A node that refuses the login is tried again until wait_ms, for a password may be changed there just now; AUTH is
 * the result where wait_ms is 0, where no node has ever let this client in, and where a right is missing.
 * Result: OK, HELD, NOQUORUM, TIMEDOUT, AUTH, FOREIGN, PROTO, INVAL (the nodes are set up for other clients
 * than this, may evict keys, or two of them are one server: see the votes), CANCELED, CLOSED, NOMEM (memory ran
 * out while it waited). Errors: BUSY, STATE (already held, or the system has no random bytes), NOMEM. A hold without
 * an owner that was lost is given up by an acquire, also by one that fails for want of memory or random bytes.
 *
 * Waiting. Handles of one client that wait for the same keys form a queue in the order of their calls. Only the
 * first of them asks the nodes, so many waiters cost what one costs. When a lock of this client is released,
 * the next in the queue asks in the same write, and mostly gets it; now and then this client lets other clients
 * go first. There is no order among clients. A lock with wait_ms 0 does not queue; if several such locks split
 * the votes, it keeps trying for about one node timeout.
 *
 * Reentry. If the same owner already holds the same keys on this client, by this handle or another, the acquire
 * succeeds without asking the nodes: one more hold. The lock is renewed first if less than a third of its lease
 * is left, or less than this handle's min_valid_ms, or if this handle wants a longer lease. Such a renewal may
 * end with NOQUORUM, TIMEDOUT or LOST; the other holds stay as they are. All holds share one owner token, one
 * fencing token and one validity; the outermost handle's options rule renewal. A handle in the queue is
 * admitted as soon as its owner holds the keys. An owner is a name among the handles of one client: the nodes
 * do not see it, and in another client or process it is another owner. It should name something that does one
 * step after the other (a task, a request, a thread); things that must exclude each other need different
 * owners. Further errors, or results of a handle that queued, or whose callback came so late that the hold had
 * to be renewed after all: LOST (the owner lost these keys, and has not released all its holds yet), INVAL (the
 * owner holds, or waits for, another list that shares a key with this one; fencing is wanted and the outermost
 * hold has no token; the lease is longer than the guard of a node allows), STATE (it would have to be renewed
 * first, and max_hold_ms has ended its renewal; or the owner holds a key shared that this one wants alone, and so
 * would wait for itself).
 */
QUORLOCK_API int quorlock_acquire(quorlock *lock, quorlock_cb cb, void *arg);

/* quorlock_extend - renews now, with a lease at least as long as the present one; later renewals use it too.
 * lease_ms 0: the present one. Result: OK, LOST, NOQUORUM (the lock is still held for its old validity),
 * CANCELED, CLOSED. Errors: INVAL (shorter, or above max_lease_ms), BUSY (also while another handle of the same
 * owner extends it, or waits for a renewal), STATE (not held, or max_hold_ms has ended its renewal),
 * NOMEM (it is still held, and renewed). */
QUORLOCK_API int quorlock_extend(quorlock *lock, uint32_t lease_ms, quorlock_cb cb, void *arg);

/*
 * quorlock_release - gives one hold back; with its owner's last the lock, on every node
 *
 * Without an owner there is one hold. With an owner, each release but the last ends with OK, no votes, and a
 * text that says so. It does not matter which handle releases last.
 *
 * The hold ends with this call; after the handle's last one no loss is reported to it any more. cb may be NULL.
 * Releasing a lock that expired or was lost succeeds and sets result->expired; so does a release that finds the
 * key missing, or another owner's, on so many nodes that no quorum had it. The result comes when a quorum of
 * nodes has answered, and waits for further answers where only these can tell whether it had expired. It comes
 * one node timeout after the release was sent at the latest, then with NOQUORUM if no quorum answered: nodes
 * that could not be reached, or refused for the moment, are released later, and their keys end with the lease
 * at the latest. A held lock can always be released, also while the release of an earlier hold is in flight. Where
 * memory is out, and so many locks are being renewed or released that none of their memory is free, the result is
 * NOQUORUM without votes, and the keys end with the lease.
 * Errors: STATE (never acquired), BUSY (acquire or extend in flight: cancel it first; or its last hold is being
 * released already).
 */
QUORLOCK_API int quorlock_release(quorlock *lock, quorlock_cb cb, void *arg);

/* quorlock_cancel - ends an acquire or extend in flight: its callback comes with CANCELED, what it took is
 * released. A canceled extend leaves the lock held. What had failed already, or an extend that had succeeded, keeps its
 * result. Errors: STATE (nothing in flight), CLOSED, INVAL (lock is NULL). */
QUORLOCK_API int quorlock_cancel(quorlock *lock);

/* quorlock_free - cancels, releases all its holds in the background and frees; the handle is dead at once,
 * though callbacks still owed come, those of what it canceled with CANCELED, and the pointer only as a name. NULL is
 * fine. */
QUORLOCK_API void quorlock_free(quorlock *lock);

/* quorlock_on_lost - sets the callback for loss; NULL takes it away. It runs for every handle that holds the
 * lock, at most once a grant: lost_margin_ms before validity ends if the loop runs on time, and if the loop or
 * the process stood still, before any other callback of this client. It never runs after quorlock_release was
 * called. After it the lock is not held: release it, or, without an owner, acquire it anew. */
QUORLOCK_API void quorlock_on_lost(quorlock *lock, quorlock_lost_cb cb, void *arg);

/* quorlock_valid_ms - validity left, by the clock read now; 0: not held, do not act. Of the present grant,
 * quorlock_token: the owner token, whole, or NULL; valid until the next call. quorlock_fence: the fencing
 * token; 0 without fencing. */
QUORLOCK_API uint32_t quorlock_valid_ms(const quorlock *lock);
QUORLOCK_API const char *quorlock_token(const quorlock *lock);
QUORLOCK_API uint64_t quorlock_fence(const quorlock *lock);

/* quorlock_inspect - asks every node for the key's holder; changes nothing. quorlock_break: deletes the key on
 * every node, with all slots of a name that has permits and all readers, and reports what it held. The holder learns of
 * its loss at its next renewal. Errors: INVAL, NOMEM, CLOSED. quorlock_inspect_node: asks one node, by its place in the
 * options, so that no other one delays the answer; the report has that node alone, and the status is 0 when it
 * answered. Another error: INVAL, no such node. */
QUORLOCK_API int quorlock_inspect(quorlock_client *client, const char *key, quorlock_report_cb cb, void *arg);
QUORLOCK_API int quorlock_inspect_node(quorlock_client *client, size_t node, const char *key, quorlock_report_cb cb,
                                       void *arg);
QUORLOCK_API int quorlock_break(quorlock_client *client, const char *key, quorlock_report_cb cb, void *arg);

struct quorlock_bootstrap_options {
    size_t size;
    int reconfigure; /* nodes have a guard already, and their number, names or max_lease_ms changes */
    /* Status 0, and nothing is written, where a quorum has guards that fit and no other guard is seen. Not an int:
     * older programs leave what stands behind reconfigure unset. */
    int64_t if_needed;
};

/*
 * quorlock_bootstrap - declares that no lock is held on any node, so that the first client need not wait
 *
 * Without it the first contact with nodes that have no guard waits one max_lease_ms. It writes the guards, and
 * ends that wait where it goes on: every node must be reachable, and each without a guard or in the quarantine of
 * its first contact. It also ends the quarantine for a client with a longer max lease than the guard's, on each
 * node that has one; then it only declares that no lease of such a client is held which is older than the guard.
 * Else, and where first contacts are seconds apart, status is STATE and nothing was written: a node without a guard
 * among others that vote was emptied, and its quarantine stays. The client must have been made with
 * QUORLOCK_GUARD_OFF, and the max_lease_ms that shall hold.
 *
 * With reconfigure the guards are written anew: every node is quarantined for the longest of the old and the new
 * max lease, and all clients are made to reconnect. The rules for servers that leave and for a max lease that becomes
 * shorter are in quorlock_bootstrap(3). A guard that this library cannot read is left alone: STATE.
 *
 * The report shows each node, with its guard as holder: state "bootstrapped"; "ended" (the quarantine for a client
 * with a longer max lease); "guarded" (as it was), "free" (as it was, without a guard); "closed" (refuses all
 * clients until a reconfigure of it is finished); "unknown" (it was told to write, and it is not known whether it
 * did); "down", "error". Where some are "bootstrapped", "closed" or "unknown" and status is not 0 it is half done:
 * the same call again, with reconfigure, finishes it; "ended": the same call again. Errors: INVAL, NOMEM, CLOSED.
 * Status: 0, STATE, INVAL, NOQUORUM (not all nodes could be reached, or do it), CLOSED.
 */
QUORLOCK_API int quorlock_bootstrap(quorlock_client *client, const struct quorlock_bootstrap_options *options,
                                    quorlock_report_cb cb, void *arg);

enum quorlock_severity {
    QUORLOCK_NOTE = 0,    /* worth knowing */
    QUORLOCK_WARNING = 1, /* costs availability, or may cost safety together with another fault */
    QUORLOCK_UNSAFE = 2,  /* a lock on these nodes may be held twice, or cannot be taken at all */
};

/* What quorlock_examine found. The codes, which stay the same: unreachable, version, sentinel, cluster,
 * replica, replicas, eviction, memory, persistence, guard-missing, guard-format, guard-unread, guard-nodes,
 * guard-set, guard-lease, quarantine, rights, names, clock, clocks, plain-text, clients, same-server,
 * no-quorum. */
struct quorlock_finding {
    int severity; /* enum quorlock_severity */
    const char *code;
    const char *node; /* NULL: about all of them, or this machine */
    const char *text;
    const char *remedy;
};

/* What is known of one node. NULL stands for a text that is not known, -1 for a number. */
struct quorlock_node_facts {
    const char *node;
    int reachable;
    int tls;           /* the connection is encrypted */
    const char *error; /* why it is not reachable; else NULL */
    int64_t latency_us;
    const char *version; /* "Redis 7.0.15" */
    const char *mode;    /* "standalone", "cluster", "sentinel" */
    const char *role;    /* "master", "replica" */
    const char *run_id;
    int64_t replicas;
    int64_t used_memory, maxmemory; /* bytes; maxmemory 0: no limit */
    const char *maxmemory_policy;
    int appendonly;          /* 1 or 0 */
    int guard;               /* 1: there is one; 0: there is none */
    const char *appendfsync; /* NULL also where we may not ask */
    int64_t guard_nodes, guard_max_lease_ms;
    const char *guard_set;
    int64_t quarantine_ms; /* no vote for so long yet */
    int has_clock;
    int64_t clock_offset_us; /* its clock ahead of this machine's */
    int64_t clock_error_us;  /* the offset is so exact, either way */
    int64_t clients, clients_max;
    const char *refused; /* commands that it refuses us, "PUBLISH, TYPE"; NULL: none */
};

struct quorlock_examination {
    int severity; /* the worst of the findings; QUORLOCK_NOTE where there is none */
    uint32_t quorum, reachable;
    const struct quorlock_node_facts *const *nodes;
    size_t n_nodes;
    const struct quorlock_finding *const *findings; /* the worst first */
    size_t n_findings;
};

/* status: 0, whatever was found; NOMEM or CLOSED: then there are no findings, and facts only in part. */
typedef void (*quorlock_examination_cb)(int status, const struct quorlock_examination *, void *arg);

/* quorlock_examine - asks every node what could make a lock unsafe there, and says how to mend it. Each node is
 * asked over a connection of its own that lasts for the examination only; it ends within three node timeouts.
 * It writes nothing on the nodes, refuses no node, and has no password in its texts. Errors: INVAL (no
 * callback), NOMEM, CLOSED. */
QUORLOCK_API int quorlock_examine(quorlock_client *client, quorlock_examination_cb cb, void *arg);

/* ---- statistics ---- */

#define QUORLOCK_BUCKETS 19

/* Times by length. Each is counted in the first bucket whose bound is not below it. The bounds, in us: 30, 100, 300,
 * 1000, and so on to 10,000,000,000; the last bucket has none. */
struct quorlock_histogram {
    uint64_t count, sum_us;
    uint64_t buckets[QUORLOCK_BUCKETS];
};

/* quorlock_bucket_us - the bound of that bucket; UINT64_MAX: it has none. Any thread. */
QUORLOCK_API uint64_t quorlock_bucket_us(size_t bucket);

enum quorlock_node_state {
    QUORLOCK_NODE_CONNECTING = 0, /* for the first time, or anew right after a connection ended */
    QUORLOCK_NODE_READY,
    QUORLOCK_NODE_QUARANTINED, /* renews and releases, but has no vote yet */
    QUORLOCK_NODE_DOWN,        /* the last try to connect failed; it goes on trying */
};

/* What can be wrong with a node, or with one request to it: name, value, label in metrics. */
#define QUORLOCK_NODE_ERROR_MAP(X)                                                                                     \
    X(UNREACHABLE, 1, "unreachable") /* no connection, or it ended */                                                  \
    X(TIMEOUT, 2, "timeout")         /* no answer in time */                                                           \
    X(TEMPORARY, 3, "temporary")     /* LOADING, BUSY, ... */                                                          \
    X(REPLICA, 4, "replica")                                                                                           \
    X(CLUSTER, 5, "cluster")                                                                                           \
    X(AUTH, 6, "auth")       /* rights are missing, or a certificate is not accepted */                                \
    X(REFUSED, 7, "refused") /* OOM, MISCONF, too many clients, ... */                                                 \
    X(FOREIGN, 8, "foreign") /* a value of another type stands at the key */                                           \
    X(PROTO, 9, "protocol")  /* not Redis, or too old */                                                               \
    X(OTHER, 10, "other")                                                                                              \
    X(LIMIT, 11, "limit")   /* memory of this process */                                                               \
    X(CONFIG, 12, "config") /* it is set up for other clients, or may evict keys */                                    \
    X(GUARD, 13, "guard")   /* its guard changed under the connection: it may have lost its memory */                  \
    X(LOGIN, 14, "login")   /* it refuses user or password, or wants some */

enum quorlock_node_error {
#define QUORLOCK_NODE_ERROR_ENUM(name, value, label) QUORLOCK_NODE_ERROR_##name = (value),
    QUORLOCK_NODE_ERROR_MAP(QUORLOCK_NODE_ERROR_ENUM)
#undef QUORLOCK_NODE_ERROR_ENUM
};

/* All counts are since the client was made. */
struct quorlock_node_statistics {
    const char *node;       /* the address without credentials */
    int state;              /* enum quorlock_node_state */
    const char *why;        /* why it is not READY; else NULL */
    uint64_t quarantine_ms; /* it has no vote for so long; 0: it has, or is not there */
    uint32_t round_trip_us; /* the latest ones, smoothed; 0: unknown */
    uint32_t in_flight;     /* requests that it has not answered yet */
    uint64_t requests;      /* that were sent; each of those that went together is counted */
    uint64_t reconnects;    /* connections that were ready for requests, but for the first */
    uint64_t bytes_in;      /* over all connections to it, as TLS has them where they are encrypted */
    uint64_t bytes_out;     /* likewise */
    const uint64_t *errors; /* by enum quorlock_node_error: requests without an answer that counts; connections that
                               ended, and tries to connect that failed */
    size_t n_errors;        /* the largest of enum quorlock_node_error, and 1 */
    const struct quorlock_histogram *round_trips; /* of requests that were answered in time */
};

/*
 * The caller makes it, sets size = sizeof once, and has it filled as often as it likes. What the pointers in it point
 * to belongs to the client, and changes when the loop runs.
 */
struct quorlock_statistics {
    size_t size;
    const struct quorlock_histogram *const *acquires; /* by -status: how long they took from the call to the callback */
    size_t n_acquires;
    const struct quorlock_histogram *holds; /* from the grant until the lock was given back or lost */
    const uint64_t *losses;                 /* by enum quorlock_lost_reason */
    size_t n_losses;                        /* the largest of enum quorlock_lost_reason, and 1 */
    uint64_t renewals;                      /* rounds that reached a quorum, also those of quorlock_extend */
    uint64_t renewals_failed;               /* rounds that did not */
    uint64_t degradations;                  /* a renewal found that not all nodes hold the lock any more */
    uint64_t held;                          /* locks that are held; holds of one owner that nest are one */
    uint64_t degraded;                      /* those of them that not all nodes held at the latest renewal */
    uint64_t waiting;                       /* acquires whose callback has not come yet */
    uint64_t in_flight;                     /* requests whose answers are waited for */
    const struct quorlock_node_statistics *const *nodes;
    size_t n_nodes;
};

/* quorlock_client_statistics - what the client counted so far. It asks no node, and takes no memory. Errors: INVAL
 * (ret->size is too small, or a byte behind what this library knows is not 0); then nothing is written. */
QUORLOCK_API int quorlock_client_statistics(quorlock_client *client, struct quorlock_statistics *ret);

enum quorlock_metrics_format {
    QUORLOCK_METRICS_OPENMETRICS = 0, /* application/openmetrics-text; version=1.0.0; charset=utf-8 */
    QUORLOCK_METRICS_PROMETHEUS = 1,  /* text/plain; version=0.0.4, as node_exporter's textfile collector reads it */
};

struct quorlock_metrics_options {
    size_t size;
    int format;              /* enum quorlock_metrics_format */
    const char *label_name;  /* of one more label on every sample; default none. Letters, digits and _, no __ first */
    const char *label_value; /* what is no UTF-8 in it becomes \xNN */
};

/*
 * quorlock_client_metrics - the statistics as text for Prometheus and the like
 *
 * Writes at most size bytes, with a NUL at the end, and to *ret_length how long the whole text is without it: where
 * that is size or more, the text was cut. buffer may be NULL where size is 0. options NULL: OpenMetrics. The text has
 * no keys and no credentials; quorlock(7) lists what is in it. Errors: INVAL, and nothing is written.
 */
QUORLOCK_API int quorlock_client_metrics(quorlock_client *client, const struct quorlock_metrics_options *options,
                                         char *buffer, size_t size, size_t *ret_length);

#ifdef __cplusplus
}
#endif
#endif
