/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock.h - one lock: its core, its texts, its callbacks
 */
#ifndef QUORLOCK_LOCK_H
#define QUORLOCK_LOCK_H

#include "client.h"
#include "core/core.h"

#define LOCK_OWNER_SIZE (OPTIONS_LABEL_MAX + 2 * CORE_TOKEN_SIZE + 1)
#define LOCK_TEXT_SIZE  1024

/* What one node said, for people; the verdict is the core's. */
struct lock_note {
    char *error, *holder;
    char *refusal; /* where the node's guard allows no lease as long as ours: both in words */
    int64_t ttl_ms;
    uint32_t latency_us;
    int released; /* enum quorlock_vote_outcome of the latest release */
};

struct lock_callback {
    quorlock_cb call;
    void *arg;
    uint64_t begun_us;
};

struct quorlock {
    struct quorlock_client *client;
    struct waker waker;
    struct link links[LOCK_LISTS];
    char *key; /* with prefix, as the nodes know it */
    size_t key_length;
    char *name; /* for people: without prefix, printable */
    struct lock_callback acquired, extended, released;
    quorlock_lost_cb lost;
    void *lost_arg;

    bool freed;             /* the handle is dead; the rest goes when nothing is owed any more */
    uint32_t pins;          /* callbacks of it on the stack */
    uint32_t in_flight;     /* requests that name it */
    uint32_t levels;        /* as of client->levels */
    uint64_t noted_attempt; /* that the notes are of */
    uint64_t told_wait_us;  /* when waiting was last logged, and why */
    uint64_t told_wait_reason;
    char owner[LOCK_OWNER_SIZE];
    bool fencing;
    uint64_t fence_ttl_ms;

    struct core_lock *core;
    struct lock_note notes[];
};

void list_add(struct list *, struct quorlock *, enum lock_list);
void list_remove(struct list *, struct quorlock *, enum lock_list);

/* lock_lease_refused - the node's guard says a max_lease_ms that is shorter than our lease. */
bool lock_lease_refused(const struct quorlock *, uint32_t node);
/* lock_on_step - a node's clock stepped forward: votes asked for before count no more. */
void lock_on_step(struct quorlock *, uint32_t node, uint64_t before_us);
/* lock_on_level - forwards a node's level to the core. */
void lock_on_level(struct quorlock *, uint32_t node);
void lock_on_reply(struct quorlock *, const struct core_tag *, uint32_t generation, const struct node_reply *);
/* lock_tell - one DISPATCH and its callback. The lock may be gone afterwards. */
void lock_tell(struct quorlock *);
/* lock_give_up - ends what is in flight with that status, releases in the background. */
void lock_give_up(struct quorlock *, int status);
/* lock_reap - frees the memory of a freed lock once nothing is owed. */
void lock_reap(struct quorlock *);
/* lock_destroy - frees the memory, whatever is owed. */
void lock_destroy(struct quorlock *);

/* words.c: results and log lines in words */
/* words_owner - an owner for people: label and first 8 characters of the token, printable; of a Redisson owner
 * the first 8 of its uuid, and its number. */
const char *words_owner(char *ret, size_t size, const char *owner);
/* words_votes - the latest round as votes, counted into result. */
void words_votes(const struct quorlock *, struct quorlock_vote *votes, struct quorlock_result *result);
void words_release_votes(const struct quorlock *, struct quorlock_vote *votes, struct quorlock_result *result);
/* words_verdict - why the latest attempt failed, or that it did not. */
void words_verdict(const struct quorlock *, int status, const struct quorlock_result *, char *text,
                   size_t size);
/* words_log - log lines for what a step brought about: bits of enum core_note. */
void words_log(struct quorlock *, uint32_t notes);
/* words_reason - the same for two attempts that failed alike. */
uint64_t words_reason(const struct quorlock_result *);

#endif
