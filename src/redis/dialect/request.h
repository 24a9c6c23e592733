/* SPDX-License-Identifier: BSD-3-Clause */
/* request.h - one request to a server, and its reply */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/protocol.h"

#define NODE_TAG_SIZE 48

/* Opaque to the node, which returns it with the reply; where its first word points to is foreseen. */
union node_tag {
    unsigned char bytes[NODE_TAG_SIZE];
    void *about;
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
    enum op op;
    bool read_only;  /* PEEK: by a command that servers from 7.0 on have, for a user who may only read the keys */
    bool explain;    /* ACQUIRE: by script even where a native SET would do, so that a refusal names the
                        holder and its remaining lease. PEEK: also how many clients wait */
    bool silent;     /* RELEASE: our own waiters ignore what it publishes */
    bool if_deleted; /* RELEASE: publishes nothing of a key that it does not delete */
    bool any;        /* with permits: ACQUIRE: the first free slot from `slot` on, and round; the reply says which.
                        RELEASE: whichever slot is the owner's */
    /* The key is a name with so many permits, and the request is about this slot of it. 0: an ordinary lock. */
    uint8_t permits, slot;
    /* BOOTSTRAP: over a guard that is there; the guard is for 0 nodes, so that it fits no client; the guard stays, and
     * its quarantine for a client with a longer max_lease ends */
    bool force, closes, ends;
    bool fenced; /* the keys have fencing counters */
    /* 1 to NODE_KEYS_MAX, sorted, each once; BREAK takes one. Used within node_send() only. */
    const struct node_key *keys;
    size_t n_keys;
    uint64_t passed;   /* ACQUIRE: slots that `any` passes over, a bit each */
    const char *owner; /* the whole token; unused by PEEK and BREAK */
    size_t owner_length;
    uint32_t lease_ms;
    uint32_t timeout_ms;   /* 0: none of its own; ends with reply or connection */
    uint64_t fence;        /* a floor or a token, see enum op; below 2^53 */
    uint64_t fence_ttl_ms; /* a counter's life after its last use; 0: seven days */
    uint64_t shared;       /* the keys that are locked shared, a bit each from the lowest on */
    const char *waiter;    /* who waits for the keys, under one name for as long as it does: INTEND, and ACQUIRE of
                              shared keys, where NULL: nobody */
    size_t waiter_length;
    uint32_t waited_ms;  /* for so long it has */
    uint32_t longest_ms; /* BOOTSTRAP: the longest lease that may still run */
    union node_tag tag;
};

/* The longest span of a reply, in ms: in us it still fits into 63 bits. Longer ones are cut to it. */
#define NODE_MS_MAX (INT64_MAX / 1000 - 1000)

struct node_reply {
    enum outcome outcome;
    enum fault fault;
    const char *error; /* text without a password; NULL where there is none */
    const char *holder;
    size_t holder_length; /* holder may be any bytes; NULL where unknown */
    const char *type;     /* FAULT_FOREIGN, and BREAK of what is no lock of this dialect: the type of the
                             value, as the server names it; NULL where unknown */
    size_t type_length;
    int64_t ttl_ms; /* -1: no expiry; -2: unknown; at most NODE_MS_MAX */
    uint32_t latency_us;
    uint64_t fence;        /* the counter, of several keys the highest: fenced ACQUIRE, RAISE, PEEK; 0: none, or
                              unknown */
    uint64_t node_time_us; /* the server's clock: EXTEND, RAISE, and ACQUIRE and REPAIR by script; else 0 */
    int64_t quarantine_ms; /* PEEK: what is left of the quarantine; -1: nothing; at most NODE_MS_MAX */
    int64_t waiters;       /* PEEK with explain: how many clients listen for a release; -1: not known */
    const char *others;    /* PEEK with explain, and BREAK: who else has a part in the key, see others.h; NULL: none */
    size_t others_length;
    bool has_guard;              /* PEEK */
    enum quarantine_cause cause; /* PEEK: what that quarantine is for, */
    uint32_t wanted_ms;          /* and of a client its max_lease */
    bool readers;                /* the holder stands for those that hold the key shared */
    uint32_t count;              /* PEEK in the redisson dialect: how often the holder holds it; RELEASE, and a refused
                                    ACQUIRE by script: how many clients listen for a release; else 0 */
    uint8_t slot;                /* ACQUIRE and REPAIR of a permit: which is held now */
    uint64_t free;               /* a refused ACQUIRE of a permit: the slots that are free there, a bit each; */
    uint64_t refusing;    /* a refused ACQUIRE of several keys: those of another owner's, a bit each; 0: unknown */
    int64_t first_ttl_ms; /* of a permit: and what is left of the lease that ends first, without slots passed over; -1:
                             nothing ends by itself */
};

/* What becomes of a request. FULL, NOMEM: a connection holds a bounded number of requests and bytes; events.room()
 * follows when to try again. */
enum node_send_result { NODE_SENT = 0, NODE_NOT_READY = -1, NODE_FULL = -2, NODE_NOMEM = -3 };

/*
 * How much of a connection's bounded room a request may use. New attempts leave room for renewals and releases;
 * both leave room for the next requests of attempts under way.
 */
enum node_room {
    NODE_ROOM_NEW,  /* begins an attempt */
    NODE_ROOM_KEEP, /* OP_EXTEND and OP_RELEASE: node_send() refuses them as FULL where there is none */
    NODE_ROOM_NEXT, /* all else */
};
