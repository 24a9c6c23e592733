/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quorlock.h - one lock on N independent Redis masters, asynchronously
 *
 * Here is the contract of each function: ownership, thread, errors, units. The manual explains the rest: quorlock(3)
 * names its pages, and each comment names its page. Times end in their unit.
 *
 * Rules for every function, unless its comment says otherwise:
 *
 * - Threads. A client and its locks belong to the thread that runs the event loop. For other threads see sync.h.
 * - Callbacks. A function that takes a callback and returns 0 calls it exactly once, later, from the loop, never from
 *   inside the call. After another return value the callback never runs. A callback may call every function, and may
 *   free its lock or close its client.
 * - Ownership. Arguments are copied before the call returns. What a callback gets is valid until the callback returns.
 * - Structs of the library may grow at their end. So arrays are arrays of pointers: result->votes[i]->node.
 * - Structs of the caller begin with `size`. Fill them with zeros and set size = sizeof. A zero means the default. If a
 *   byte that this version does not know is not zero, the call returns INVAL.
 * - Errors. 0 or a negative quorlock_status, here without its prefix. quorlock_client_error() has the text, or, where
 *   there is no client, the last argument, a struct quorlock_error; it may be NULL. Once the client is closed, every
 *   function but statistics and metrics returns CLOSED.
 * - The library prints nothing, has no global state, never ends the process, and raises no SIGPIPE.
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

#define QUORLOCK_VERSION        "0.3.0"
#define QUORLOCK_VERSION_NUMBER 3000 /* 1000000 x major + 1000 x minor + patch */

struct event_base;
typedef struct quorlock_client quorlock_client; /* a set of nodes on one event loop */
typedef struct quorlock_lock quorlock_lock;     /* one lock; reusable */

/* quorlock_status_name() and quorlock_status_text() know them, too. */
enum quorlock_status {
    QUORLOCK_OK = 0,            /* success */
    QUORLOCK_ERR_INVAL = -1,    /* invalid argument */
    QUORLOCK_ERR_NOMEM = -2,    /* out of memory */
    QUORLOCK_ERR_BUSY = -3,     /* another operation of this lock is in flight */
    QUORLOCK_ERR_STATE = -4,    /* not possible in the present state of the lock */
    QUORLOCK_ERR_HELD = -5,     /* somebody else holds the lock */
    QUORLOCK_ERR_NOQUORUM = -6, /* too few nodes can vote */
    QUORLOCK_ERR_TIMEDOUT = -7, /* the wait ended without a result */
    QUORLOCK_ERR_LOST = -8,     /* the lock was lost */
    QUORLOCK_ERR_CANCELED = -9, /* canceled by the caller */
    QUORLOCK_ERR_CLOSED = -10,  /* the client is closed */
    QUORLOCK_ERR_AUTH = -11,    /* the nodes refuse our credentials or rights, or their certificates are not accepted */
    QUORLOCK_ERR_FOREIGN = -12, /* the key holds a value of another type or dialect */
    QUORLOCK_ERR_PROTO = -13,   /* the nodes do not speak Redis as expected */
    QUORLOCK_ERR_UNSUPPORTED = -14, /* not supported by this version or build */
};

enum quorlock_policy {
    QUORLOCK_POLICY_MAJORITY = 0, /* Redlock: floor(N/2)+1 nodes */
    QUORLOCK_POLICY_ALL = 1,      /* MultiLock: all N nodes */
};

enum quorlock_dialect {
    QUORLOCK_DIALECT_PLAIN = 0,    /* a string at the key, as redsync, node-redlock and most others write it */
    QUORLOCK_DIALECT_REDISSON = 1, /* a hash at the key, as RLock, RedissonRedLock and RedissonMultiLock write it */
};

/* When to check the guard, which keeps a node that restarted without its data from voting too early. */
enum quorlock_guard {
    QUORLOCK_GUARD_DEFAULT = 0,    /* the same as CONNECTION */
    QUORLOCK_GUARD_OFF = 1,        /* never: a node that restarts without its data can vote twice */
    QUORLOCK_GUARD_CONNECTION = 2, /* when connecting, renewing and releasing, and when the node tells of a change of
                                      it: FLUSHALL */
    QUORLOCK_GUARD_STRICT = 3,     /* and in every acquire: also notices SWAPDB, and works where a user may not run
                                      CLIENT TRACKING */
};

enum quorlock_log_level { QUORLOCK_LOG_DEBUG = 0, QUORLOCK_LOG_INFO, QUORLOCK_LOG_WARN, QUORLOCK_LOG_ERROR };

/* Why a call failed. Each call that gets one writes it: the status that it returns, and the text, "" for QUORLOCK_OK.
 * It has no size, because it never grows. */
struct quorlock_error {
    int status;     /* enum quorlock_status */
    char text[512]; /* in words, without passwords; cut if it is long */
};

#define QUORLOCK_NODES_MAX            31
#define QUORLOCK_KEYS_MAX             64
#define QUORLOCK_KEY_LENGTH_MAX       1024
#define QUORLOCK_OWNER_LENGTH_MAX     256
#define QUORLOCK_LEASE_MS_MIN         10
#define QUORLOCK_LEASE_MS_MAX         86400000u /* one day */
#define QUORLOCK_LEASE_MS_DEFAULT     30000u    /* default of a lease, and of a client's max_lease_ms */
#define QUORLOCK_TIMEOUT_MS_MAX       60000u    /* one minute */
#define QUORLOCK_TRY_ONCE             UINT32_MAX
#define QUORLOCK_RENEW_NEVER          UINT32_MAX
#define QUORLOCK_FENCE_TTL_MS_DEFAULT 604800000u /* seven days */
#define QUORLOCK_PERMITS_MAX          64
#define QUORLOCK_SLOT_NONE            UINT32_MAX /* the slot of what holds no permit */
#define QUORLOCK_LIST_MAX             1000000u   /* locks that quorlock_client_list() finds */
#define QUORLOCK_LIST_OTHERS_MAX      1000u      /* names of other strings, likewise */
#define QUORLOCK_SHARED_ALL           UINT64_MAX

/* quorlock_log_cb - get one line of the log, without newline and without passwords. It runs from the loop, before the
 * callback that the line explains. */
typedef void (*quorlock_log_cb)(int level, const char *text, void *arg);

typedef struct quorlock_credentials quorlock_credentials; /* takes those for one login */

/* quorlock_credentials_cb - say by one of the functions below what to log in with at that node, and return what it
 * returns. If that is not 0, or none of them was called, the former credentials stay in use. It must not block, nor
 * call anything else of the library. */
typedef int (*quorlock_credentials_cb)(quorlock_credentials *to, const char *node, void *arg);

/*
 * quorlock_credentials_set    - log in with these; NULL or "": none. They are copied, and the copies are wiped. Errors:
 *                               INVAL (the user has more than 1024 bytes, or the password more than 16384)
 * quorlock_credentials_refuse - there are none now. The reason goes to the log, and must have no password; NULL:
 *                               unknown. Returns STATE
 *
 * Only in that callback. See quorlock_client_new(3).
 */
QUORLOCK_API int quorlock_credentials_set(quorlock_credentials *to, const char *user, const char *password);
QUORLOCK_API int quorlock_credentials_refuse(quorlock_credentials *to, const char *why);

/* quorlock_credentials_read_file - such a callback: log in with the user in the options, and the first line of the file
 * `path`, which is its argument. The file is read before each login, so a password may change while the client runs. */
QUORLOCK_API int quorlock_credentials_read_file(quorlock_credentials *to, const char *node, void *path);

/* quorlock_credentials_defer - such a callback, or what one ends with: they come later. The login waits, at most until
 * connect_timeout_ms ends, for quorlock_client_set_credentials with that node. In a sync client without a callback of
 * its own it is also the event QUORLOCK_EVENT_LOGIN. */
QUORLOCK_API int quorlock_credentials_defer(quorlock_credentials *to, const char *node, void *arg);

/* See quorlock_client_new(3). */
struct quorlock_client_options {
    size_t size;
    const char *const *nodes; /* such as redis://host:port, rediss://host:port (TLS), unix:///path, host:port */
    size_t n_nodes;           /* 1 to QUORLOCK_NODES_MAX; no address twice */
    int policy;               /* enum quorlock_policy */
    int guard;                /* enum quorlock_guard */
    uint32_t max_lease_ms;    /* the same for all clients of the nodes; default QUORLOCK_LEASE_MS_DEFAULT */
    int dialect;              /* enum quorlock_dialect */

    /* For nodes whose address has neither user nor password; NULL or "": none. */
    const char *user, *password;
    quorlock_credentials_cb credentials; /* asked before each login; default: user and password above */
    void *credentials_arg;

    /* For rediss:// only. PEM files, which are read again for new connections when they have changed. */
    const char *tls_ca;   /* CA certificates: a file, or a folder as `openssl rehash` makes it; default the system's */
    const char *tls_cert; /* our certificate and those between it and its CA, for servers that ask for one */
    const char *tls_key;  /* its key, without a passphrase; default: in the file tls_cert */
    const char *tls_name; /* the name in the certificates of the servers; default: the host of each address */

    const char *key_prefix;  /* in front of every key on the nodes; default none */
    const char *owner_label; /* readable front of owner tokens; default none; plain dialect only */
    const char *set_name;    /* name of this set of nodes; default: a hash of the sorted addresses */

    uint32_t node_timeout_ms;    /* later answers are not counted; default: a tenth of the lease, 50 to 1000 */
    uint32_t connect_timeout_ms; /* lookup, connect and handshake; default 3000, or node_timeout_ms if more */
    uint32_t reconnect_min_ms;   /* first pause before connecting again; default 50 */
    uint32_t reconnect_max_ms;   /* longest pause; default 2000 */
    uint32_t drift_ppm;          /* how much the rates of two clocks may differ; default 10000 (1 %) */
    uint32_t drift_fixed_ms;     /* added to it; default 2 */
    uint32_t allow_eviction;     /* not 0: use nodes that may evict keys, and only warn */

    quorlock_log_cb log;
    void *log_arg;
};

/* See quorlock_lock_new(3). */
struct quorlock_lock_options {
    size_t size;
    uint32_t lease_ms; /* at most max_lease_ms; default QUORLOCK_LEASE_MS_DEFAULT, or max_lease_ms if less */
    uint32_t wait_ms;  /* longest wait of an acquire; default: no limit; QUORLOCK_TRY_ONCE */
    uint32_t fencing;  /* not 0: every grant has a fencing token, which rises over the quorum */
    uint32_t fair;     /* not 0: locks that wait get the keys in the order in which they came; plain dialect only */
    uint32_t permits;  /* the key has so many permits, and the lock takes one; default: none; plain dialect only */
    /* Keep the keys for this long after the grant, even if the lock is released earlier; 0 to lease_ms. Without permits
     * and shared keys; plain dialect only. */
    uint32_t keep_ms;
    uint64_t shared;         /* keys to lock shared: a bit for each by its place, or QUORLOCK_SHARED_ALL; plain dialect
                                only */
    const char *owner;       /* holds of one owner nest; NULL: no nesting */
    const char *label;       /* instead of the client's owner_label, for this lock; NULL: the client's */
    uint32_t max_hold_ms;    /* no renewal after a hold of this length; default: no limit */
    uint32_t renew_ms;       /* longest time between two renewals; default a third of the lease; QUORLOCK_RENEW_NEVER */
    uint32_t lost_margin_ms; /* a loss is reported so long before validity ends; default: 2 x drift, at least 10 */
    uint32_t min_valid_ms;   /* least validity with which a grant counts; default 0 */
    uint32_t fence_ttl_ms;   /* how long nodes keep an unused counter; default QUORLOCK_FENCE_TTL_MS_DEFAULT */
};

/* quorlock_client_options_init, quorlock_lock_options_init - do as `struct ... options = {.size = sizeof options}`: all
 * defaults. For callers whose language has no such initialiser; size is that of their struct. Any thread. See
 * quorlock_client_options_init(3). */
QUORLOCK_API void quorlock_client_options_init(struct quorlock_client_options *options, size_t size);
QUORLOCK_API void quorlock_lock_options_init(struct quorlock_lock_options *options, size_t size);

typedef struct quorlock_settings quorlock_settings; /* what environment and configuration files give */

/*
 * quorlock_settings_load    - read what the command quorlock reads. NULL for file: QUORLOCK_CONFIG, or the usual files;
 *                             NULL for set: the one that QUORLOCK_SET or a file names. Errors: INVAL, NOMEM; *ret is
 *                             untouched then
 * quorlock_settings_options - fill *options, of which only `size` is set. Change members afterwards. The texts belong
 * to the settings. Errors: INVAL (another member is set, or the struct is older than a key of the files)
 * quorlock_settings_free    - wipe passwords, and free. Close clients with these options before. NULL is permitted
 *
 * Any thread. See quorlock_settings_load(3).
 */
QUORLOCK_API int quorlock_settings_load(quorlock_settings **ret, const char *file, const char *set,
                                        struct quorlock_error *error);
QUORLOCK_API int quorlock_settings_options(const quorlock_settings *settings, struct quorlock_client_options *options,
                                           struct quorlock_error *error);
QUORLOCK_API void quorlock_settings_free(quorlock_settings *settings);

enum quorlock_vote_outcome {
    QUORLOCK_VOTE_NONE = 0,    /* not asked */
    QUORLOCK_VOTE_PENDING,     /* asked, no answer yet */
    QUORLOCK_VOTE_GRANTED,     /* yes; of a release: our key is gone, or kept */
    QUORLOCK_VOTE_REFUSED,     /* another owner has the key; of a release: our key was not there any more */
    QUORLOCK_VOTE_FAILED,      /* not counted: unreachable, too late, or an error reply; see error */
    QUORLOCK_VOTE_MISSING,     /* an extend found no key of ours */
    QUORLOCK_VOTE_QUARANTINED, /* not counted: the node may have lost its data; see error */
};

/* See quorlock_lock_acquire(3). */
struct quorlock_vote {
    const char *node;    /* the address without credentials */
    int outcome;         /* enum quorlock_vote_outcome */
    uint32_t latency_us; /* of this answer; 0: none */
    const char *error;   /* why the vote is not counted, or NULL */
    const char *holder;  /* the owner of the key there; NULL: unknown */
    int64_t ttl_ms;      /* the remaining lease of that owner; -1: no expiry; -2: unknown */
};

struct quorlock_result {
    int status; /* enum quorlock_status */
    uint32_t granted, refused, failed;
    uint32_t rounds;     /* attempts of this acquire */
    uint32_t elapsed_ms; /* from the call to the result */
    uint32_t valid_ms;   /* the validity left now; 0: not held */
    const char *text;    /* the result in words */
    const char *token;   /* the whole owner token; NULL: none */
    uint64_t fence;      /* the fencing token; 0 without fencing */
    const struct quorlock_vote *const *votes;
    size_t n_votes;
    uint32_t slot; /* the permit that the lock holds, 0 to permits - 1; QUORLOCK_SLOT_NONE: none */
};

typedef void (*quorlock_lock_cb)(quorlock_lock *, const struct quorlock_result *, void *arg);

enum quorlock_loss_reason {
    QUORLOCK_LOSS_EXPIRED = 1, /* renewal did not reach a quorum in time */
    QUORLOCK_LOSS_GONE,        /* so many nodes lost the key that a quorum is out of reach */
    QUORLOCK_LOSS_MAX_HOLD,    /* max_hold_ms ended renewal */
    QUORLOCK_LOSS_NOT_RENEWED, /* QUORLOCK_RENEW_NEVER, and the lease ends */
    QUORLOCK_LOSS_CLOCK,       /* this machine stopped for a while, as the clocks of a quorum show */
};

/* See quorlock_lock_set_on_lost(3). */
struct quorlock_loss {
    int reason; /* enum quorlock_loss_reason */
    const char *text;
    uint32_t remaining_ms; /* until another owner may hold the lock; 0: it may already */
    const struct quorlock_vote *const *votes;
    size_t n_votes;
};

typedef void (*quorlock_lost_cb)(quorlock_lock *, const struct quorlock_loss *, void *arg);

enum quorlock_holder_kind {
    QUORLOCK_HOLDER_SLOT = 1, /* holds a permit */
    QUORLOCK_HOLDER_READER,   /* holds the key shared */
    QUORLOCK_HOLDER_WAITS,    /* waits for the key, and has announced it to other clients */
};

/* A holder or a waiting client of a key, as one node knows it. */
struct quorlock_holder {
    int kind;           /* enum quorlock_holder_kind */
    const char *holder; /* as in struct quorlock_inspect_node */
    int64_t ttl_ms;     /* likewise */
    uint64_t fence;     /* the slot's fencing counter; 0: none */
    uint32_t slot;      /* QUORLOCK_HOLDER_SLOT; else QUORLOCK_SLOT_NONE */
    int shared;         /* QUORLOCK_HOLDER_WAITS: not 0: it wants the key shared */
    uint32_t place;     /* QUORLOCK_HOLDER_WAITS: in the queue of a fair lock, from 1 on; 0: in none */
};

/* Why the votes of a node are ignored for a while. */
enum quorlock_quarantine {
    QUORLOCK_QUARANTINE_NONE = 0,
    QUORLOCK_QUARANTINE_UNKNOWN,     /* its guard was written by another version */
    QUORLOCK_QUARANTINE_FIRST,       /* it had no guard; quorlock_client_bootstrap can end it */
    QUORLOCK_QUARANTINE_RESTART,     /* it restarted */
    QUORLOCK_QUARANTINE_RECONFIGURE, /* a reconfiguration wrote its guard anew */
    QUORLOCK_QUARANTINE_CLIENT, /* a client with a longer max lease was refused; quorlock_client_bootstrap can end it */
    QUORLOCK_QUARANTINE_REPLICATION, /* its replication id changed, and it may have taken other data */
};

/* What a node has at a key. */
enum quorlock_inspect_state {
    QUORLOCK_INSPECT_DOWN = 0, /* no answer; see error */
    QUORLOCK_INSPECT_ERROR,    /* an error in place of an answer, likewise */
    QUORLOCK_INSPECT_FREE,
    QUORLOCK_INSPECT_HELD,
    QUORLOCK_INSPECT_FOREIGN, /* a value that is no lock of this dialect */
};

/* One node and a key. See quorlock_client_inspect(3). */
struct quorlock_inspect_node {
    const char *node;
    int state; /* enum quorlock_inspect_state */
    uint32_t latency_us;
    const char *holder; /* whole; control characters, and bytes that are not UTF-8, as \xNN; NULL: none */
    const char *error;  /* why there is no answer; NULL: there is one */
    int64_t ttl_ms;     /* -1: no expiry; -2: no holder, or unknown */
    uint64_t fence;     /* the key's fencing counter; 0: none */
    const char *type;   /* of a foreign value: "hash", "list" ...; NULL: unknown, or not foreign */
    uint32_t count;     /* redisson dialect: how many holds its holder has; else 0 */
    uint32_t permits;   /* how many permits the name has; 0: none */
    const struct quorlock_holder *const *holders; /* slots by number, then readers, then waiting clients */
    size_t n_holders;
    int64_t waiters;            /* clients that are subscribed to releases of the key; -1: unknown */
    int64_t quarantine_ms;      /* its votes are ignored for so long; 0: they count; -1: no guard, or unknown */
    int quarantine;             /* enum quorlock_quarantine */
    const char *quarantine_why; /* the same in words, with the remedy; NULL: none */
};

struct quorlock_inspect_report {
    uint32_t quorum;    /* how many nodes are one */
    uint32_t answered;  /* how many nodes answered */
    int held;           /* not 0: one owner holds the key on a quorum of nodes */
    const char *holder; /* that owner; NULL: none, or its name differs from node to node */
    uint32_t valid_ms;  /* until the holder's quorum ends, by the nodes' own clocks; 0: not held */
    const struct quorlock_inspect_node *const *nodes;
    size_t n_nodes;
};

/* status, here and below: 0 if a quorum of nodes answered; else NOQUORUM, AUTH (too many refuse us), CLOSED ... The
 * report is there in any case. */
typedef void (*quorlock_inspect_cb)(int status, const struct quorlock_inspect_report *, void *arg);

/* What became of a key on a node. */
enum quorlock_break_state {
    QUORLOCK_BREAK_DOWN = 0, /* no answer; see error */
    QUORLOCK_BREAK_ERROR,    /* an error in place of an answer, likewise */
    QUORLOCK_BREAK_FREE,     /* there was nothing to delete */
    QUORLOCK_BREAK_HELD,     /* it stays, for another owner holds it */
    QUORLOCK_BREAK_FOREIGN,  /* it stays, for it is no lock of this dialect */
    QUORLOCK_BREAK_BROKEN,   /* it was deleted, or the owner's part in it */
};

/* One node and a key, as it was before. The other members are those of struct quorlock_inspect_node. */
struct quorlock_break_node {
    const char *node;
    int state; /* enum quorlock_break_state */
    uint32_t latency_us;
    const char *holder;
    const char *error;
    int64_t ttl_ms;
    const char *type; /* also of a foreign value that was deleted */
    uint32_t permits;
    const struct quorlock_holder *const *holders;
    size_t n_holders;
};

/* The same as in struct quorlock_inspect_report, before the deletion. */
struct quorlock_break_report {
    uint32_t quorum;
    int held;
    const char *holder;
    uint32_t valid_ms;
    const struct quorlock_break_node *const *nodes;
    size_t n_nodes;
};

typedef void (*quorlock_break_cb)(int status, const struct quorlock_break_report *, void *arg);

/*
 * quorlock_version     - return the version of the library, "major.minor.patch"
 * quorlock_status_name - return "HELD" for QUORLOCK_ERR_HELD; "UNKNOWN" for an unknown number
 * quorlock_status_text - return a short description
 *
 * Any thread; the texts are constants. See quorlock_version(3).
 */
QUORLOCK_API const char *quorlock_version(void);
QUORLOCK_API const char *quorlock_status_name(int status);
QUORLOCK_API const char *quorlock_status_text(int status);

/* quorlock_owner_equals - return whether two holders, as votes and reports show them, are one owner. Any thread. See
 * quorlock_client_inspect(3). */
QUORLOCK_API int quorlock_owner_equals(const char *holder, const char *other);

/* quorlock_client_new - make a client of n_nodes nodes on the caller's base, which must outlive it. NULL for options:
 * as quorlock_settings_load() finds them. An unreachable node is no error. Errors: INVAL, NOMEM, STATE (the system has
 * no random bytes); *ret is untouched then. See quorlock_client_new(3). */
QUORLOCK_API int quorlock_client_new(quorlock_client **ret, struct event_base *base,
                                     const struct quorlock_client_options *options, struct quorlock_error *error);

typedef void (*quorlock_closed_cb)(void *arg);

/* quorlock_client_close - release all locks, wait for the answers for at most one node timeout, and free everything.
 * Operations in flight end with CLOSED. cb runs last, and may be NULL; then no handle of the client may be used.
 * Errors: CLOSED (called twice), INVAL (NULL). See quorlock_client_new(3). */
QUORLOCK_API int quorlock_client_close(quorlock_client *client, quorlock_closed_cb cb, void *arg);

/* quorlock_client_set_credentials - set user and password for later logins at that node, if its address has neither;
 * NULL: at all such nodes. They are copied; NULL or "": none. If the client has a function `credentials`, they are for
 * the logins that wait at that node, or else for the next one, and the function is not asked. Errors: INVAL (there is
 * no such node), STATE (node is NULL, and there is that function), NOMEM (some nodes may have got them: call again),
 * CLOSED. See quorlock_client_new(3). */
QUORLOCK_API int quorlock_client_set_credentials(quorlock_client *client, const char *node, const char *user,
                                                 const char *password);

/* quorlock_client_error - return the text of the last call on this client or its locks that failed. It is never NULL,
 * and valid until the next call. */
QUORLOCK_API const char *quorlock_client_error(const quorlock_client *client);

/* quorlock_lock_new - make a lock on n_keys keys, 1 to QUORLOCK_KEYS_MAX; it is not acquired yet. Errors: INVAL, NOMEM,
 * CLOSED, UNSUPPORTED (permits, shared keys, keep_ms or fair in the redisson dialect); *ret is untouched then. See
 * quorlock_lock_new(3). */
QUORLOCK_API int quorlock_lock_new(quorlock_lock **ret, quorlock_client *client, const char *const *keys, size_t n_keys,
                                   const struct quorlock_lock_options *options);

/* quorlock_client_lost_margin_max_ms - return the longest lost_margin_ms that locks of the client with this lease_ms
 * and renew_ms may have, which are as in struct quorlock_lock_options; 0: such locks are refused. */
QUORLOCK_API uint32_t quorlock_client_lost_margin_max_ms(const quorlock_client *client, uint32_t lease_ms,
                                                         uint32_t renew_ms);

/* quorlock_lock_acquire - ask all nodes in parallel, again and again until wait_ms is over; a failed acquire releases
 * its votes. Result: OK, HELD, NOQUORUM, TIMEDOUT, AUTH, FOREIGN, PROTO, INVAL, CANCELED, CLOSED, NOMEM; with an owner
 * also LOST, STATE. Errors: BUSY, STATE (held already, or the system has no random bytes), NOMEM, CLOSED; with an owner
 * also INVAL, LOST. For the queue of a client, nested holds and what each status means see quorlock_lock_acquire(3). */
QUORLOCK_API int quorlock_lock_acquire(quorlock_lock *lock, quorlock_lock_cb cb, void *arg);

/* quorlock_lock_set_wait_ms - set wait_ms, as in the options, for acquires that begin later. As an acquire it gives up
 * a hold that was lost. Errors: STATE (held), BUSY (an operation is in flight), NOMEM, CLOSED. See
 * quorlock_lock_acquire(3). */
QUORLOCK_API int quorlock_lock_set_wait_ms(quorlock_lock *lock, uint32_t wait_ms);

/* quorlock_lock_extend - renew now, with a lease at least as long as the present one; 0: as long. Later renewals use it
 * too. Result: OK, LOST, NOQUORUM (held for its old validity), CANCELED, CLOSED. Errors: INVAL (shorter, or above
 * max_lease_ms), BUSY, STATE (not held, or max_hold_ms has ended renewal), NOMEM (still held and renewed), CLOSED. See
 * quorlock_lock_acquire(3). */
QUORLOCK_API int quorlock_lock_extend(quorlock_lock *lock, uint32_t lease_ms, quorlock_lock_cb cb, void *arg);

/* quorlock_lock_release - end one hold. The owner's last release deletes the keys on every node; after it no loss is
 * reported. The result comes when a quorum has answered, or after one node timeout. Nodes that could not be reached are
 * released later. With keep_ms the keys may stay. Result: OK; LOST (the lock had expired or was lost before); NOQUORUM
 * (too few answers), CLOSED. cb may be NULL. Errors: STATE (never acquired), BUSY (in flight: an acquire or extend,
 * which can be canceled, or the release of the last hold), CLOSED. See quorlock_lock_acquire(3). */
QUORLOCK_API int quorlock_lock_release(quorlock_lock *lock, quorlock_lock_cb cb, void *arg);
/* quorlock_lock_undo - do as quorlock_lock_release, but keep nothing, whatever keep_ms is: the work of the hold has not
 * begun. */
QUORLOCK_API int quorlock_lock_undo(quorlock_lock *lock, quorlock_lock_cb cb, void *arg);

/* quorlock_lock_cancel - end an acquire or extend in flight: its callback comes with CANCELED, the votes of the acquire
 * are released, and a lock that was being extended stays held. Errors: STATE (nothing in flight), CLOSED, INVAL (NULL).
 * See quorlock_lock_acquire(3). */
QUORLOCK_API int quorlock_lock_cancel(quorlock_lock *lock);

/* quorlock_lock_detach - stop holding the lock without releasing it, so that another client can adopt it: set
 * *ret_token to the whole owner token, valid until the next call, *ret_fence to the fencing token, or 0, and
 * *ret_valid_ms to the validity left. The last two may be NULL. No loss is reported any more, and the handle can be
 * used again. Nobody else gets the keys until they expire. Errors: STATE (not held), BUSY (an extend is in flight),
 * INVAL (ret_token is NULL), UNSUPPORTED (as quorlock_lock_adopt), CLOSED. See quorlock_lock_adopt(3). */
QUORLOCK_API int quorlock_lock_detach(quorlock_lock *lock, const char **ret_token, uint64_t *ret_fence,
                                      uint32_t *ret_valid_ms);

/* quorlock_lock_adopt - ask all nodes once to extend the keys that the token holds, with this lock's lease. With a
 * quorum of yeses the lock is held, as after an acquire. Two holders of one token are one owner to the nodes, and no
 * fencing token tells them apart: the caller ensures that there is one. Result: OK; LOST (so many nodes do not have it
 * that no quorum can; the keys that were left are released); NOQUORUM, AUTH, FOREIGN, PROTO, INVAL, TIMEDOUT, CANCELED
 * or CLOSED (nothing was released: the token may be adopted again until its keys expire). Errors: as
 * quorlock_lock_acquire; also INVAL (no owner token), STATE (this client holds or releases that token), UNSUPPORTED
 * (shared keys, permits, an owner, the redisson dialect). See quorlock_lock_adopt(3). */
QUORLOCK_API int quorlock_lock_adopt(quorlock_lock *lock, const char *token, quorlock_lock_cb cb, void *arg);

/* quorlock_lock_free - cancel, release all holds in the background, and free. Do not use the handle after this call.
 * Pending callbacks still run, canceled ones with CANCELED; in them the pointer may only be compared. NULL is
 * permitted. See quorlock_lock_new(3). */
QUORLOCK_API void quorlock_lock_free(quorlock_lock *lock);

/* quorlock_lock_set_on_lost - set the callback for a loss; NULL: none. It runs at most once a grant: lost_margin_ms
 * before validity ends, or, if the loop or the process was stalled, before any other callback of the client. It never
 * runs after quorlock_lock_release. After it the lock is not held. See quorlock_lock_set_on_lost(3). */
QUORLOCK_API void quorlock_lock_set_on_lost(quorlock_lock *lock, quorlock_lost_cb cb, void *arg);

/*
 * quorlock_lock_valid_ms - read the clock, and return how long the lock is still valid; 0: not held, do not act
 * quorlock_lock_token    - return the whole owner token of the present grant, valid until the next call, or NULL
 * quorlock_lock_fence    - return the fencing token of the present grant; 0 without fencing
 *
 * See quorlock_lock_set_on_lost(3).
 */
QUORLOCK_API uint32_t quorlock_lock_valid_ms(const quorlock_lock *lock);
QUORLOCK_API const char *quorlock_lock_token(const quorlock_lock *lock);
QUORLOCK_API uint64_t quorlock_lock_fence(const quorlock_lock *lock);

/*
 * quorlock_client_inspect      - ask every node for the holder of the key; nothing is written
 * quorlock_client_inspect_node - ask one node, by its index in the options; status 0: it answered
 * quorlock_client_break        - delete on every node what that owner, a whole token, holds: the key, its slots, or its
 *                                part as a reader. NULL: whatever anybody holds. The report shows what was held
 *
 * Errors: INVAL, NOMEM, CLOSED. See quorlock_client_inspect(3).
 */
QUORLOCK_API int quorlock_client_inspect(quorlock_client *client, const char *key, quorlock_inspect_cb cb, void *arg);
QUORLOCK_API int quorlock_client_inspect_node(quorlock_client *client, size_t node, const char *key,
                                              quorlock_inspect_cb cb, void *arg);
QUORLOCK_API int quorlock_client_break(quorlock_client *client, const char *key, const char *owner,
                                       quorlock_break_cb cb, void *arg);

enum quorlock_mode {
    QUORLOCK_MODE_EXCLUSIVE = 1,
    QUORLOCK_MODE_SHARED, /* readers hold it */
    QUORLOCK_MODE_PERMIT, /* one permit of its name is held */
};

/* A lock that is held. The other members: quorlock_client_list(3). */
struct quorlock_listed {
    const char *key;
    const char *holder; /* the one on most nodes, as in struct quorlock_inspect_node */
    int mode;           /* enum quorlock_mode */
    uint32_t nodes;     /* how many nodes have this holder; fewer than a quorum do not make a lock */
    int64_t ttl_ms;     /* what is left of the lease on a quorum, or of the longest on fewer nodes; -1: no expiry */
    uint32_t readers;   /* of a shared lock, on a quorum; 0: unknown */
    uint32_t permits;   /* how many permits the name has; 0: unknown */
    uint32_t slot;      /* which of them is held; QUORLOCK_SLOT_NONE: another mode */
};

/* How far a node's search came. */
enum quorlock_list_state {
    QUORLOCK_LIST_DOWN = 0, /* no answer; see error */
    QUORLOCK_LIST_ERROR,    /* an error in place of an answer, likewise */
    QUORLOCK_LIST_LISTED,   /* to the end; with an error: some keys could not be read */
};

struct quorlock_list_node {
    const char *node;
    int state;         /* enum quorlock_list_state */
    const char *error; /* or NULL */
};

/* A part of the locks that were found. See quorlock_client_list(3). */
struct quorlock_list_report {
    int more;                                   /* not 0: the callback runs again, with more locks */
    uint32_t quorum;                            /* how many nodes are one */
    uint32_t answered;                          /* how many nodes have listed all their keys */
    const struct quorlock_listed *const *locks; /* in no order */
    size_t n_locks;
    const struct quorlock_list_node *const *nodes;
    size_t n_nodes;
    const char *const *other_keys; /* other strings that expire: locks of other programs, perhaps; in no order */
    size_t n_other_keys;           /* at most QUORLOCK_LIST_OTHERS_MAX; 0 while `more` is not */
    uint64_t others;               /* how many there are, on the node that has the most if they are more */
};

/* status: 0 if a quorum of nodes answered; else NOQUORUM, AUTH, NOMEM, CLOSED ...; the same in all calls of a list. */
typedef void (*quorlock_list_cb)(int status, const struct quorlock_list_report *, void *arg);

/* quorlock_client_list - find the locks whose keys match the pattern, a glob as of SCAN MATCH (NULL: all), in steps of
 * SCAN on every node. cb runs after the last step, once or more often; keys and pattern are without key_prefix. Nothing
 * is written on the nodes. Errors: INVAL (the pattern is empty or too long; no callback), NOMEM, CLOSED. See
 * quorlock_client_list(3). */
QUORLOCK_API int quorlock_client_list(quorlock_client *client, const char *pattern, quorlock_list_cb cb, void *arg);

struct quorlock_bootstrap_options {
    size_t size;
    uint32_t reconfigure; /* not 0: replace existing guards: the number of nodes, their names or max_lease_ms change */
    uint32_t if_needed;   /* not 0: if a quorum has fitting guards, and no node has another one, write nothing; the
                             status is 0 */
    uint32_t despite_clients; /* not 0: declare that no lock is held although other clients of quorlock are connected */
};

/* What became of a node's guard. See quorlock_client_bootstrap(3). */
enum quorlock_bootstrap_state {
    QUORLOCK_BOOTSTRAP_DOWN = 0, /* no answer; see error */
    QUORLOCK_BOOTSTRAP_ERROR,    /* an error in place of an answer, likewise */
    QUORLOCK_BOOTSTRAP_FREE,     /* there is none, as before */
    QUORLOCK_BOOTSTRAP_GUARDED,  /* it is as it was */
    QUORLOCK_BOOTSTRAP_WRITTEN,  /* it is the new one */
    QUORLOCK_BOOTSTRAP_ENDED,    /* it is as it was, without the quarantine for a client with a longer max lease */
    QUORLOCK_BOOTSTRAP_CLOSED,   /* it admits no client until the work is finished */
    QUORLOCK_BOOTSTRAP_UNKNOWN,  /* the node got the command to write, and no answer shows whether it did */
    QUORLOCK_BOOTSTRAP_IN_USE,   /* nothing was written, for other clients are connected; error tells how many */
};

struct quorlock_bootstrap_node {
    const char *node;
    int state; /* enum quorlock_bootstrap_state */
    uint32_t latency_us;
    const char *guard;     /* as the node has it: 2|nodes|set|max_lease_ms|...; NULL: none, or unknown */
    const char *error;     /* or NULL */
    int64_t quarantine_ms; /* as in struct quorlock_inspect_node */
};

struct quorlock_bootstrap_report {
    const struct quorlock_bootstrap_node *const *nodes;
    size_t n_nodes;
};

typedef void (*quorlock_bootstrap_cb)(int status, const struct quorlock_bootstrap_report *, void *arg);

/* quorlock_bootstrap_options_init - as quorlock_client_options_init. */
QUORLOCK_API void quorlock_bootstrap_options_init(struct quorlock_bootstrap_options *options, size_t size);

/* quorlock_client_bootstrap - declare that no lock is held on any node, so that clients need not wait for one max lease
 * at their first contact with the nodes. The client must have been made with QUORLOCK_GUARD_OFF and the max_lease_ms to
 * set up. Status: 0, STATE, HELD (other clients with a guard are connected), INVAL, NOQUORUM, AUTH, CLOSED. Errors:
 * INVAL, NOMEM, CLOSED. If status is not 0 the work may be half done: see quorlock_client_bootstrap(3), also for the
 * rules of a reconfiguration. */
QUORLOCK_API int quorlock_client_bootstrap(quorlock_client *client, const struct quorlock_bootstrap_options *options,
                                           quorlock_bootstrap_cb cb, void *arg);

enum quorlock_severity {
    QUORLOCK_SEVERITY_NOTE = 0,    /* worth knowing */
    QUORLOCK_SEVERITY_WARNING = 1, /* costs availability, or safety together with another fault */
    QUORLOCK_SEVERITY_UNSAFE = 2,  /* a lock on these nodes may be held twice */
    QUORLOCK_SEVERITY_OUTAGE = 3,  /* no lock can be taken, because too few nodes can vote */
};

/* The codes stay the same from version to version. quorlock(1) lists them in THE DOCTOR. */
struct quorlock_finding {
    int severity; /* enum quorlock_severity */
    const char *code;
    const char *node; /* NULL: about all nodes, or this machine */
    const char *text;
    const char *remedy;
};

struct quorlock_doctor_report {
    int severity; /* of the worst finding; QUORLOCK_SEVERITY_NOTE: also if there is none */
    uint32_t quorum, reachable;
    const struct quorlock_finding *const *findings; /* the worst first */
    size_t n_findings;
    const char *facts_json; /* what is known about each node: see quorlock_client_doctor(3) */
};

/* status: 0, whatever was found; NOMEM or CLOSED: no findings, and only a part of the facts. */
typedef void (*quorlock_doctor_cb)(int status, const struct quorlock_doctor_report *, void *arg);

/* quorlock_client_doctor - ask every node what could make a lock unsafe there. Nothing is written on the nodes, and no
 * text has a password. Errors: INVAL (no callback), NOMEM, CLOSED. See quorlock_client_doctor(3). */
QUORLOCK_API int quorlock_client_doctor(quorlock_client *client, quorlock_doctor_cb cb, void *arg);

/* ---- statistics ---- */

/* Each time is counted in the first bucket whose bound is not below it. See quorlock_client_statistics(3), also for all
 * other members of these structs. All counts begin when the client is made. */
struct quorlock_histogram {
    uint64_t count, sum_us;
    size_t n_buckets;
    const uint64_t *buckets;   /* how many times fell into each */
    const uint64_t *bounds_us; /* of each; that of the last is UINT64_MAX */
};

enum quorlock_node_state {
    QUORLOCK_NODE_STATE_CONNECTING = 0, /* for the first time, or right after a connection ended */
    QUORLOCK_NODE_STATE_READY,
    QUORLOCK_NODE_STATE_QUARANTINED, /* it renews and releases, but its votes are ignored */
    QUORLOCK_NODE_STATE_DOWN,        /* the last attempt to connect failed; others follow */
};

/* Faults of a node, or of one request to it. In metrics each is a label: its name in small letters, "protocol" for
 * PROTO. */
enum quorlock_node_error {
    QUORLOCK_NODE_ERROR_UNREACHABLE = 1, /* no connection, or it ended */
    QUORLOCK_NODE_ERROR_TIMEOUT = 2,     /* no answer in time */
    QUORLOCK_NODE_ERROR_TEMPORARY = 3,   /* LOADING, BUSY, ... */
    QUORLOCK_NODE_ERROR_REPLICA = 4,
    QUORLOCK_NODE_ERROR_CLUSTER = 5,
    QUORLOCK_NODE_ERROR_AUTH = 6,    /* rights are missing, or a certificate is not accepted */
    QUORLOCK_NODE_ERROR_REFUSED = 7, /* OOM, MISCONF, too many clients, ... */
    QUORLOCK_NODE_ERROR_FOREIGN = 8, /* there is a value of another type at the key */
    QUORLOCK_NODE_ERROR_PROTO = 9,   /* no Redis server, or too old */
    QUORLOCK_NODE_ERROR_OTHER = 10,
    QUORLOCK_NODE_ERROR_LIMIT = 11,  /* this process is out of memory */
    QUORLOCK_NODE_ERROR_CONFIG = 12, /* it is set up for other clients, or may evict keys */
    QUORLOCK_NODE_ERROR_GUARD = 13,  /* its guard changed under the connection: it may have lost its memory */
    QUORLOCK_NODE_ERROR_LOGIN = 14,  /* it refuses user or password, or needs some */
};

struct quorlock_node_statistics {
    const char *node;       /* the address without credentials */
    int state;              /* enum quorlock_node_state */
    const char *why;        /* why it is not READY, or NULL */
    uint64_t quarantine_ms; /* how long its votes will still be ignored; 0: they count, or it is not connected */
    uint32_t round_trip_us; /* of the latest requests, smoothed; 0: unknown */
    uint32_t in_flight;     /* requests without an answer so far */
    uint64_t requests;      /* that were sent, each request of a batch counted */
    uint64_t reconnects;    /* connections except the first */
    uint64_t bytes_in;      /* of all connections to it, as on the wire */
    uint64_t bytes_out;     /* likewise */
    const uint64_t *errors; /* by enum quorlock_node_error */
    size_t n_errors;        /* the largest value of enum quorlock_node_error, plus 1 */
    const struct quorlock_histogram *round_trips; /* of requests with an answer in time */
};

/* The caller sets size once, and may have the struct filled any number of times. The pointers belong to the client;
 * their contents change when the loop runs. */
struct quorlock_statistics {
    size_t size;
    const struct quorlock_histogram *const *acquires; /* by -status: from the call to the callback */
    size_t n_acquires;
    const struct quorlock_histogram *holds; /* from the grant until the lock was released or lost */
    const uint64_t *losses;                 /* by enum quorlock_loss_reason */
    size_t n_losses;                        /* the largest value of enum quorlock_loss_reason, plus 1 */
    uint64_t renewals;                      /* renewals that reached a quorum, also by quorlock_lock_extend */
    uint64_t renewals_failed;               /* renewals that did not */
    uint64_t degradations;                  /* renewals that found that not all nodes hold the lock any more */
    uint64_t held;                          /* locks that are held; nested holds of one owner count once */
    uint64_t degraded;                      /* those of them that not all nodes held at the latest renewal */
    uint64_t waiting;                       /* acquires whose callback has not run yet */
    uint64_t in_flight;                     /* requests without an answer so far */
    const struct quorlock_node_statistics *const *nodes;
    size_t n_nodes;
};

/* quorlock_client_statistics - fill *ret, without asking a node or allocating memory. Errors: INVAL (ret->size is too
 * small, or a byte that this version does not know is not 0), and nothing is written. */
QUORLOCK_API int quorlock_client_statistics(quorlock_client *client, struct quorlock_statistics *ret);

enum quorlock_metrics_format {
    QUORLOCK_METRICS_OPENMETRICS = 0, /* application/openmetrics-text; version=1.0.0; charset=utf-8 */
    QUORLOCK_METRICS_PROMETHEUS = 1,  /* text/plain; version=0.0.4, as node_exporter's textfile collector reads it */
};

struct quorlock_metrics_options {
    size_t size;
    int format;              /* enum quorlock_metrics_format */
    const char *label_name;  /* one more label of every sample: letters, digits and _, not __ first; default none */
    const char *label_value; /* bytes that are not UTF-8 become \xNN */
};

/* quorlock_metrics_options_init - as quorlock_client_options_init. */
QUORLOCK_API void quorlock_metrics_options_init(struct quorlock_metrics_options *options, size_t size);

/* quorlock_client_metrics - write the statistics as text for Prometheus: at most size bytes, with a NUL at the end. Set
 * *ret_length to the length of the whole text without the NUL; if that is size or more, the text was cut. buffer may be
 * NULL if size is 0. options may be NULL. Errors: INVAL, and nothing is written. See quorlock_client_statistics(3). */
QUORLOCK_API int quorlock_client_metrics(quorlock_client *client, const struct quorlock_metrics_options *options,
                                         char *buffer, size_t size, size_t *ret_length);

#ifdef __cplusplus
}
#endif
#endif
