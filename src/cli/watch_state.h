/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch_state.h - the state of nodes and keys for quorlock watch, and its events: no I/O, and time is an argument
 *
 * A node is asked for one key at a time, and its answer is kept until the next one. A key is judged when the answers of
 * a round are there, so a lock that is acquired or released makes one event, not one for each node.
 */
#pragma once

#include <quorlock/quorlock.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WATCH_NEVER UINT64_MAX

enum watch_answer {
    WATCH_SILENT, /* no answer about the key: not asked yet, down, or an error */
    WATCH_FREE,
    WATCH_HELD,
    WATCH_FOREIGN, /* a value of another type */
};

/* Numbers of slots and readers of a name. */
struct watch_parts {
    uint32_t permits;        /* how many the name has; 0: none */
    uint32_t slots, readers; /* held permits; clients that hold the key shared */
};

/* The answer of one node about one key. */
struct watch_vote {
    enum watch_answer answer;
    char *holder, *error, *type;
    /* The lease ends between these times; they differ by the time that the answer took. */
    uint64_t ends_after_us, ends_before_us;
    int64_t waiters; /* -1: unknown */
    struct watch_parts parts;
};

enum watch_verdict {
    WATCH_UNKNOWN, /* too few nodes answered */
    WATCH_IS_FREE,
    WATCH_TAKEN,  /* an owner is on nodes, but not on a quorum */
    WATCH_QUORUM, /* an owner is on a quorum */
    WATCH_NO_LOCK,
    WATCH_NOT_JUDGED,
};

struct watch_key {
    const char *name;
    struct watch_vote votes[QUORLOCK_NODES_MAX];
    /* The latest judgement. */
    enum watch_verdict verdict;
    char *holder; /* the owner on most nodes; kept while too few nodes answer */
    uint32_t n_votes, n_answers;
    uint64_t ends_after_us, ends_before_us; /* end of the quorum */
    uint32_t voters;                        /* the nodes that name the holder, a bit for each */
    uint64_t judged_us;
    uint64_t lease_us;         /* the longest rest of this holder's lease so far */
    struct watch_parts parts;  /* numbers that a quorum of nodes reaches */
    int64_t waiters;           /* the highest number of a node; -1: unknown */
    uint64_t waiting_since_us; /* since when somebody has waited; WATCH_NEVER: nobody waits */
};

struct watch_node {
    char *name, *error;
    bool asked, up;                /* it was asked; it answered the last time */
    uint64_t quarantined_until_us; /* 0: not quarantined */
    char *quarantine_why;          /* NULL: not quarantined, or unknown */
};

enum watch_event_type {
    WATCH_HOLDER,        /* another owner, or the first one */
    WATCH_QUORUM_GAINED, /* by the same owner */
    WATCH_QUORUM_LOST,
    WATCH_VOTES, /* the same owner, on more or fewer nodes */
    WATCH_FREED,
    WATCH_FOUND_NO_LOCK,
    WATCH_BECAME_UNKNOWN, /* too few nodes answer now */
    WATCH_RENEWED,
    WATCH_WAITERS,
    WATCH_PARTS, /* another number of held permits or readers */
    WATCH_NODE_DOWN,
    WATCH_NODE_UP,
    WATCH_QUARANTINE_BEGAN,
    WATCH_QUARANTINE_ENDED,
};

struct watch_event {
    enum watch_event_type type;
    const struct watch_key *key;   /* NULL: it is about a node */
    const struct watch_node *node; /* NULL: it is about a key */
    const char *previous;          /* WATCH_HOLDER: the owner before, or NULL */
};

struct watch_state {
    struct watch_key *keys;
    size_t n_keys, n_nodes;
    uint32_t quorum; /* 0: there is no answer yet */
    struct watch_node nodes[QUORLOCK_NODES_MAX];
    void (*tell)(void *arg, const struct watch_event *);
    void *arg;
    bool failed; /* out of memory */
};

/*
 * watch_state_init  - initialize a zeroed struct; the names belong to the caller; false: out of memory
 * watch_state_clear - free all, also after a failed init
 */
bool watch_state_init(struct watch_state *state, const char *const *names, size_t n_names);
void watch_state_clear(struct watch_state *state);
/*
 * watch_answer - take a report about that node only, which was asked at asked_us
 * watch_judge  - judge the key at the end of a round
 *
 * Both report changes by tell().
 */
void watch_answer(struct watch_state *state, size_t key, size_t node, const struct quorlock_inspect_report *report,
                  uint64_t asked_us, uint64_t now_us);
void watch_judge(struct watch_state *state, size_t key, uint64_t now_us);
/* watch_is_named - return whether that vote names the key's holder. */
bool watch_is_named(const struct watch_key *key, const struct watch_vote *vote);
/* watch_left_us - return the time from now to then; 0: it is over; WATCH_NEVER: it has no end. */
uint64_t watch_left_us(uint64_t then_us, uint64_t now_us);
