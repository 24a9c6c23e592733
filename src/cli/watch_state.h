/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch_state.h - what quorlock watch knows of nodes and keys, and what that tells: no I/O, and time is an argument
 *
 * A node is asked for one key at a time. Its answer is kept until the next one. A key is judged when the answers of a
 * round are in, so that a lock that is taken or given back is one event, and none for each node.
 */
#pragma once

#include <quorlock/quorlock.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WATCH_NEVER UINT64_MAX

enum watch_answer {
    WATCH_SILENT, /* not asked yet, down, or an error: it says nothing of the key */
    WATCH_FREE,
    WATCH_HELD,
    WATCH_FOREIGN, /* a value of another type */
};

/* Who has a part in a name. */
struct watch_parts {
    uint32_t permits;        /* of the name; 0: it has none */
    uint32_t slots, readers; /* so many hold one, or hold the key shared */
};

/* What one node says of one key. */
struct watch_vote {
    enum watch_answer answer;
    char *holder, *error, *type;
    /* The lease ends not before the one and not after the other, for the answer was on its way for a while. */
    uint64_t ends_after_us, ends_before_us;
    int64_t waiters; /* -1: not known */
    struct watch_parts parts;
};

enum watch_verdict {
    WATCH_UNKNOWN, /* too few nodes answered to tell */
    WATCH_IS_FREE,
    WATCH_TAKEN,  /* an owner is on nodes, and not on a quorum */
    WATCH_QUORUM, /* it is on a quorum */
    WATCH_NO_LOCK,
    WATCH_NOT_JUDGED,
};

struct watch_key {
    const char *name;
    struct watch_vote votes[QUORLOCK_NODES_MAX];
    /* As it was judged last. */
    enum watch_verdict verdict;
    char *holder; /* the one on most nodes; kept while too few nodes answer */
    uint32_t n_votes, n_answers;
    uint64_t ends_after_us, ends_before_us; /* the quorum's end */
    uint32_t voters;                        /* the nodes of which that is: those that name the holder, a bit each */
    uint64_t judged_us;
    uint64_t lease_us;         /* the longest that was left of this holder's */
    struct watch_parts parts;  /* at least so many on each node of a quorum */
    int64_t waiters;           /* the most that a node knows of; -1: none says */
    uint64_t waiting_since_us; /* since then there was always one that waits; WATCH_NEVER: none does */
};

struct watch_node {
    char *name, *error;
    bool asked, up;                /* it was asked, and answered last time */
    uint64_t quarantined_until_us; /* 0: it is not */
    char *quarantine_why;          /* NULL: it is not, or not known */
};

enum watch_event_type {
    WATCH_HOLDER,        /* another owner than before, or the first */
    WATCH_QUORUM_GAINED, /* the same owner */
    WATCH_QUORUM_LOST,
    WATCH_VOTES, /* the same owner, on more or fewer nodes than before */
    WATCH_FREED,
    WATCH_FOUND_NO_LOCK,
    WATCH_LOST_SIGHT, /* too few nodes answer now */
    WATCH_RENEWED,
    WATCH_WAITERS,
    WATCH_PARTS, /* another number of permits is held, or of readers */
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
    uint32_t quorum; /* 0: no answer came yet */
    struct watch_node nodes[QUORLOCK_NODES_MAX];
    void (*tell)(void *arg, const struct watch_event *);
    void *arg;
    bool failed; /* out of memory */
};

/* watch_state_init - of a zeroed struct; the names belong to the caller. False: out of memory. watch_state_clear: frees
 * all, also after that. */
bool watch_state_init(struct watch_state *state, const char *const *names, size_t n_names);
void watch_state_clear(struct watch_state *state);
/* watch_answer - a report about that node alone, which was asked at that time. watch_judge - the answers of a round are
 * in, as far as they are waited for. Both tell what changed. */
void watch_answer(struct watch_state *state, size_t key, size_t node, const struct quorlock_report *report,
                  uint64_t asked_us, uint64_t now_us);
void watch_judge(struct watch_state *state, size_t key, uint64_t now_us);
/* watch_is_named - whether that vote is for the key's holder. */
bool watch_is_named(const struct watch_key *key, const struct watch_vote *vote);
/* watch_left_us - from now to then; 0 when it is over, WATCH_NEVER where it has no end. */
uint64_t watch_left_us(uint64_t then_us, uint64_t now_us);
