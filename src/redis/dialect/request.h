/* SPDX-License-Identifier: BSD-3-Clause */
/* request.h - one request to a server, and its reply */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/protocol.h"

#define NODE_TAG_SIZE 48

/* Opaque to the node, which returns it with the reply. The memory that `about` points to is prefetched before that. */
union node_tag {
    unsigned char bytes[NODE_TAG_SIZE];
    void *about;
    uint64_t align_number;
};

#define NODE_KEYS_MAX 64

struct node_key {
    const char *text; /* with the prefix; any bytes */
    size_t length;
};

/* NODE_KEY - initialize the keys of a request that has one key. */
#define NODE_KEY(key, bytes) .keys = &(const struct node_key){.text = (key), .length = (bytes)}, .n_keys = 1

/* The names of connections in CLIENT LIST: of clients with a guard, and of others, whose locks it does not protect. */
#define NODE_CLIENT_NAME      "quorlock"
#define NODE_CLIENT_UNGUARDED "quorlock-unguarded"

struct node_request {
    enum op op;
    bool read_only;  /* PEEK: send EVAL_RO (from Redis 7.0 on), for a user who may only read the keys */
    bool explain;    /* ACQUIRE: use a script even if SET would do, so that a refusal names the holder and its remaining
                        lease. PEEK: also count the waiting clients */
    bool patient;    /* the connection is not dropped as soon as others if the answer is late */
    bool watch;      /* ACQUIRE, PEEK: the server should tell when the key changes next; see tracking.h */
    bool silent;     /* RELEASE: do not wake waiters of this library */
    bool if_deleted; /* RELEASE: publish no notice for a key that was not deleted */
    bool keep;       /* RELEASE, with silent: do not delete the keys, but let them expire after lease_ms */
    bool any; /* with permits. ACQUIRE: take the first free slot, counted from `slot` on and wrapping around; the reply
                 tells which. RELEASE: delete whichever slot is the owner's */
    /* The key is a name with so many permits, and the request is about this slot of it. 0: an ordinary lock. */
    uint8_t permits, slot;
    /* BOOTSTRAP. force: replace an existing guard. closes: write a guard for 0 nodes, which admits no client. ends:
     * keep the guard, but end its quarantine for a client with a longer max_lease */
    bool force, closes, ends;
    bool fenced; /* the keys have fencing counters */
    bool fair;   /* ACQUIRE: refuse while others in the queue come first. INTEND: leave the queue */
    /* 1 to NODE_KEYS_MAX keys, sorted, without duplicates; BREAK takes one. Read during node_send() only. */
    const struct node_key *keys;
    size_t n_keys;
    size_t prefix;     /* the length of the client's prefix, with which each key begins */
    uint64_t passed;   /* ACQUIRE: slots that `any` skips, one bit each */
    const char *owner; /* the owner token; unused by PEEK. BREAK: delete only what that one holds; NULL: all */
    size_t owner_length;
    uint32_t lease_ms;
    uint32_t timeout_ms;   /* 0: no deadline; it ends with the reply or the connection */
    uint64_t fence;        /* a floor or a token, see enum op; below 2^53 */
    uint64_t fence_ttl_ms; /* how long a counter lives after its last use; 0: seven days */
    uint64_t shared;       /* the keys that are locked shared, one bit each, the first key's lowest */
    const char *waiter;    /* the waiter's name, which stays the same while it waits; for INTEND, for ACQUIRE of shared
                              keys (NULL: nobody waits), and for ACQUIRE with fair */
    size_t waiter_length;
    uint64_t waited_us;  /* how long it has waited */
    uint32_t queued_ms;  /* ACQUIRE with fair: how long it stays in the queue without a request; 0: it is not in it */
    uint32_t longest_ms; /* BOOTSTRAP: the longest lease that may still be running */
    union node_tag tag;
};

/* The longest duration in a reply, in ms: in us it still fits into 63 bits. Longer ones are cut to it. */
#define NODE_MS_MAX (INT64_MAX / 1000 - 1000)

struct node_reply {
    enum outcome outcome;
    enum fault fault;
    const char *error;  /* a text without a password; NULL: none */
    const char *holder; /* any bytes; NULL: unknown */
    size_t holder_length;
    const char *type; /* FAULT_FOREIGN, and BREAK of a value that is not a lock of this dialect: the value's type, as
                         the server names it; NULL: unknown */
    size_t type_length;
    int64_t ttl_ms; /* -1: no expiry; -2: unknown; at most NODE_MS_MAX */
    uint32_t latency_us;
    uint64_t fence; /* the counter (the highest of several keys): fenced ACQUIRE, RAISE, PEEK; 0: none, or unknown */
    uint64_t node_time_us; /* the server's clock: EXTEND, RAISE, and ACQUIRE and REPAIR by script; else 0 */
    int64_t quarantine_ms; /* PEEK: the rest of the quarantine; -1: none; at most NODE_MS_MAX */
    int64_t waiters;       /* PEEK with explain: how many clients listen for a release; -1: unknown */
    const char *others;    /* PEEK with explain, and BREAK: others with a part in the key, see others.h; NULL: none */
    size_t others_length;
    bool has_guard;              /* PEEK */
    enum quarantine_cause cause; /* PEEK: the cause of that quarantine */
    uint32_t wanted_ms;          /* for QUARANTINE_CLIENT: that client's max_lease */
    bool watched;                /* the server was asked to tell when the key changes next */
    bool readers;                /* the holder is HOLDER_READERS */
    uint32_t count; /* PEEK in the redisson dialect: how often the holder holds the lock; RELEASE, and a refused ACQUIRE
                       by script: how many clients listen for a release; else 0 */
    uint8_t slot;   /* ACQUIRE and REPAIR of a permit: the slot that is held now */
    uint64_t free;  /* a refused ACQUIRE of a permit: the free slots, one bit each */
    uint64_t refusing; /* a refused ACQUIRE of several keys: those that another owner holds, one bit each; 0: unknown */
    uint32_t turns;    /* a refused ACQUIRE with fair: after so many releases it may be granted; else 0 */
    uint32_t before; /* of these, the turns of others in the queue that come first; INTEND: waiting clients of the same
                        mode that came before */
    int64_t first_ttl_ms; /* a refused ACQUIRE of a permit: the shortest remaining lease, without skipped slots; -1: no
                             lease ends by itself */
};

/* The result of node_send. FULL, NOMEM: a connection holds a bounded number of requests and bytes; try again in
 * events.room(). */
enum node_send_result { NODE_SENT = 0, NODE_NOT_READY = -1, NODE_FULL = -2, NODE_NOMEM = -3 };

/*
 * How much of a connection's bounded room a request may use. New attempts leave room for renewals and releases; both
 * leave room for the next requests of attempts that have begun.
 */
enum node_room {
    NODE_ROOM_NEW,  /* the first requests of an attempt */
    NODE_ROOM_KEEP, /* OP_EXTEND and OP_RELEASE; node_send() returns FULL if there is no such room */
    NODE_ROOM_NEXT, /* all others */
};
