/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock.h - what one lock is made of
 *
 *   struct line      the keys, and everybody of this client who wants them
 *   struct claim      one owner's hand on the keys: the core, and what the nodes said to it
 *   struct quorlock  the caller's handle: callbacks, and a share of a claim
 *
 * Handles that wait for the same keys stand in line, and only the first of them asks the nodes. A handle gets a
 * claim when its turn to ask comes, so whoever stands behind costs little. The claim stays with it while it
 * holds or owes anything; when the handle is freed it goes on alone until every release was answered. Handles
 * of one owner share one claim.
 */
#ifndef QUORLOCK_LOCK_H
#define QUORLOCK_LOCK_H

#include "api/client.h"
#include "core/core.h"

#define LOCK_OWNER_SIZE (OPTIONS_LABEL_MAX + 2 * CORE_TOKEN_SIZE + 1)
#define LOCK_TEXT_SIZE  1024

struct keylist {
    struct quorlock_client *client;
    struct keylist *next; /* in the client's table */
    uint64_t hash;
    uint32_t users;                     /* handles and claims */
    struct list waiting;                /* handles in the order of coming; the first asks the nodes */
    uint32_t held;                      /* claims that hold the keys */
    struct claim *asked;                /* of whoever asked the nodes last: its votes are why the others wait */
    uint32_t handed;                    /* how often they were handed on inside this process, in a row */
    uint64_t gave_back_us;              /* when a claim of this process gave them back */
    uint64_t gave_back_id;              /* whose it was */
    uint64_t others_until_us;           /* others wait for them, as far as is known until then */
    struct subscription *subscriptions; /* one a key while it listens to notices, else NULL */
    uint32_t listeners;                 /* claims that want notices */
    struct link quiet;                  /* none does any more, and it stops listening soon */
    uint64_t quiet_until_us;
    char *name; /* for people: without prefix, printable */
    size_t n_keys;
    struct node_key keys[]; /* with prefix, as the nodes know them */
};

/* What one node said, for people; the verdict is the core's. */
struct node_result {
    char *error, *holder;
    struct unpaid unpaid; /* its place among the releases that the node had no room for */
    int64_t ttl_ms;
    uint64_t holder_attempt; /* in which it named the holder */
    uint64_t named_id;       /* the holder that it named last, also where it is not quoted any more */
    uint32_t latency_us;
    int released;                         /* enum quorlock_vote_outcome of the latest release, */
    char *release_holder, *release_error; /* and what its answer said; NULL: nothing */
};

struct lock_callback {
    quorlock_cb call;
    void *arg;
    uint64_t begun_us;
    bool owed; /* an operation is in flight: it will be told */
};

struct claim {
    struct quorlock_client *client;
    struct keylist *keylist;
    struct quorlock *handle; /* that made it; NULL when that was freed */
    struct waker waker;
    struct link all, active, lost, ready;
    struct list sharers;       /* handles that hold it */
    uint32_t holds;            /* the sum of their shares */
    struct list pending_holds; /* handles of the same owner that hold it, too, when it has been renewed */
    char *owner_name;          /* the caller's; NULL: it does not nest */
    bool counted;              /* in keylist->held */
    bool listens;              /* in keylist->listeners */
    uint32_t known_subscribed; /* nodes of which the core knows that their notices come, a bit each */
    struct list *waits_in;     /* of client->admission; NULL: it waits for no room */
    struct link waits;
    bool asking;  /* counted in client->admission.asking */
    bool put_off; /* its release has not begun yet: a renewal is to be told first */
    /* Whose operation is in flight, and whom its end is told. */
    struct quorlock *acquirer, *extender, *releaser;
    struct lock_callback released; /* the releaser's */

    uint32_t pins;            /* callbacks of it on the stack */
    uint32_t in_flight;       /* requests that name it */
    uint32_t node_changes;    /* as of client->node_changes */
    uint64_t results_attempt; /* that the notes are of */
    uint64_t logged_wait_us;  /* when waiting was last logged, and why */
    uint64_t logged_wait_reason;
    char owner[LOCK_OWNER_SIZE];
    struct core_config config;
    uint64_t fence_ttl_ms;

    struct core_lock *core;
    struct node_result results[];
};

/* A hold that was given back while its owner has others. */
struct given_back {
    struct link link;
    struct lock_callback callback;
    bool expired;
};

struct quorlock {
    struct quorlock_client *client;
    struct keylist *keylist;
    struct link all, share, completed;
    struct link turn;   /* in its keylist, or among a claim's pending_holds */
    struct waker waker; /* the wait bound, while somebody else asks the nodes for it */
    char *owner_name;
    struct claim *claim;      /* its own; NULL until it is needed */
    struct claim *held;       /* that it has a share of */
    struct claim *pending_on; /* whose entrant it is */
    uint32_t holds;
    struct lock_callback acquired, extended;
    uint32_t releases;      /* that are to be told yet */
    struct list given_back; /* of these, those of which no core knows */
    struct list spare;      /* one for each hold of an owner, so that it can always be given back */
    quorlock_lost_cb lost;
    void *lost_arg;
    /* What is to be told without a core's saying so. */
    bool notify_acquired;
    int acquired_status;
    const char *why; /* behind a status that is not about nodes; else NULL */
    bool freed;      /* the handle is dead; its memory goes when nothing is owed to it */
    uint32_t pins;   /* callbacks of it on the stack */
    uint64_t fence_ttl_ms;
    struct core_config config;
};

/* line.c: lines and their table */
/* keylist_join - the line for these keys, made if there is none; NULL: out of memory. keylist_leave gives it
 * up. */
struct keylist *keylist_join(struct quorlock_client *, const char *const *keys, size_t n_keys);
void keylist_leave(struct keylist *);
/* keylist_arbiters - in which order those who wait for these keys ask the nodes. */
void keylist_arbiters(const struct keylist *, struct core_config *);
/* keylist_listens_on - on which nodes those who wait for these keys listen, a bit each. */
uint32_t keylist_listens_on(const struct keylist *);
/* queue_acquire - the handle asks the nodes, or stands in line for that. 0 or a status. */
int queue_acquire(struct quorlock *);
/* queue_leave - the handle waits no more, whatever it waited for. */
void queue_leave(struct quorlock *);
/* queue_hand_off - the handle that asks the nodes is told this, and its acquire goes on for the next in line;
 * false where nobody can take its place. queue_expire_waiters: the same for all whose wait bounds have
 * passed, until the time that it returns. */
bool queue_hand_off(struct quorlock *, int status);
uint64_t queue_expire_waiters(struct claim *);
/* queue_advance - whoever is first now asks the nodes. */
void queue_advance(struct keylist *);
/* queue_keys_released - a claim of this process, that owner's, does not hold the keys any more; its releases
 * were just queued. */
void queue_keys_released(struct keylist *, uint64_t holder_id);
/* queue_count_listeners - so many heard from that node of a release of ours. */
void queue_count_listeners(struct keylist *, uint32_t node, uint32_t listeners);
/* queue_subscribed - more nodes confirmed that their notices come. queue_unsubscribed: one's come no more.
 * queue_on_notice: one came. */
void queue_subscribed(struct keylist *);
void queue_unsubscribed(struct keylist *, uint32_t node);
void queue_on_notice(struct keylist *, uint32_t node, uint64_t holder_id);
/* queue_wait_expired - the wait bound of a handle for which somebody else asks. */
void queue_wait_expired(struct waker *);

/* reentry.c: several holds of one owner */
/* reentry_check - may this owner acquire now? 0, or a status with its text. ret_claim: what it holds already,
 * to be entered; NULL: nothing. */
int reentry_check(struct quorlock *, struct claim **ret_claim);
/* reentry_enter - one more hold, at once or after a renewal. 0 or a status, with *ret_why in words. */
int reentry_enter(struct quorlock *, struct claim *, const char **ret_why);
/* reentry_renewed - the renewal that pending_holds wait for has ended. */
void reentry_renewed(struct claim *, int status);
/* reentry_leave - the handle is no entrant any more. */
void reentry_leave(struct quorlock *);
/* reentry_admit - the claim was granted: its owner's other handles need not wait any more. */
void reentry_admit(struct claim *);

/* claim.c: between the core and the nodes */
/* claim_new - a claim for that handle; NULL: out of memory. */
struct claim *claim_new(struct quorlock *);
/* claim_acquire - begins to ask for that handle, or behind others to wait for a sign. seen: what stood in its
 * way before, bits of enum core_seen. 0 or a status. */
int claim_acquire(struct quorlock *, bool behind, uint32_t seen);
/* claim_release - begins to release for that handle, the last that held it; the callback is told its end. 0 or
 * a status. */
int claim_release(struct quorlock *, struct claim *, const struct lock_callback *);
/* claim_remaining_ms - until what was lost may be somebody else's. */
uint32_t claim_remaining_ms(const struct claim *);
/* claim_abandon - ends an acquire that nobody wants any more; nobody is told. */
void claim_abandon(struct claim *);
/* claim_step - one event for the core, and all that follows from it. */
int claim_step(struct claim *, struct core_event *);
/* claim_draw - fresh bytes for an event that may begin an attempt. 0, or -1 where the system has none. */
int claim_draw(unsigned char random[CORE_RANDOM_SIZE]);
/* claim_fence_floor - no fencing token of the next attempt shall be below it; 0 without fencing. */
uint64_t claim_fence_floor(const struct quorlock_client *, const struct core_config *);
/* claim_holder_id - a hash of an owner's text, as the core knows holders. */
uint64_t claim_holder_id(const char *owner, size_t length);
/* claim_notify_subscribed - tells the core which nodes' notices come; old: since before its acquire. */
void claim_notify_subscribed(struct claim *, bool old);
/* claim_catch_up - tells the core the nodes' states that it did not hear of while it was idle. */
void claim_catch_up(struct claim *);
/* claim_on_step - a node's clock stepped forward: votes asked for before count no more. */
void claim_on_step(struct claim *, uint32_t node, uint64_t before_us);
/* claim_on_node_state - forwards a node's state to the core. */
void claim_on_node_state(struct claim *, uint32_t node);
void claim_on_reply(struct claim *, const struct core_tag *, uint32_t generation, const struct node_reply *);
/* claim_notify - one DISPATCH and its callbacks. The claim may be gone afterwards. */
void claim_notify(struct claim *);
/* claim_let_go - releases what nobody holds any more. */
void claim_let_go(struct claim *);
/* claim_reap - frees a claim without a handle once nothing is owed. */
void claim_reap(struct claim *);
/* claim_destroy - frees the memory, whatever is owed. */
void claim_destroy(struct claim *);

/* lock.c: handles */
/* lock_share - the handle holds the claim, once more. lock_unshare: so many times less. */
void lock_share(struct quorlock *, struct claim *);
void lock_unshare(struct quorlock *, uint32_t holds);
/* lock_complete_acquire - the end of an acquire that no core has to completion; lock_notify runs its callback.
 * why: in words, lives for ever; NULL: the votes say it. */
void lock_complete_acquire(struct quorlock *, int status, const char *why);
/* lock_notify - one such callback. The handle may be gone afterwards. */
void lock_notify(struct quorlock *);
/* lock_fail - notes the text for a call that fails, and returns the status. */
int lock_fail(struct quorlock *, int status, const char *why);
/* lock_call_back - the end of an operation. The handle may be gone afterwards. */
void lock_call_back(struct quorlock *, struct lock_callback *, struct claim *, const struct core_completion *);
/* lock_lost - tells the handle of a loss. It may be gone afterwards. */
void lock_lost(struct quorlock *, const struct quorlock_loss *);
/* lock_give_up - ends what is in flight with that status, releases in the background. */
void lock_give_up(struct quorlock *, int status);
/* lock_reap - frees a freed handle once nothing is owed to it. */
void lock_reap(struct quorlock *);
/* lock_destroy - frees the memory, whatever is owed. */
void lock_destroy(struct quorlock *);

/* message.c: results and log lines in words */
/* message_owner - an owner for people: label and first 8 characters of the token, in printable ASCII; of a
 * Redisson owner the first 8 of its uuid, and its number. */
const char *message_owner(char *ret, size_t size, const char *owner);
/* The votes of a result, and the pointers to them that it hands out. */
struct message_votes {
    struct quorlock_vote each[QUORLOCK_NODES_MAX];
    const struct quorlock_vote *at[QUORLOCK_NODES_MAX];
};
/* message_votes - the latest round as votes, counted into result, which points to them. */
void message_votes(const struct claim *, struct message_votes *, struct quorlock_result *result);
void message_release_votes(const struct claim *, struct message_votes *, struct quorlock_result *result);
/* message_released - what became of a hold that was given back; the votes are those of the release. */
void message_released(const struct claim *, const struct core_completion *, const struct quorlock_result *,
                      char *text, size_t size);
/* message_verdict - why the latest attempt failed, or that it did not. */
void message_verdict(const struct claim *, int status, const struct quorlock_result *, char *text, size_t size);
/* message_loss - why the lock was lost. */
const char *message_loss(enum core_loss);
/* message_log_loss - the log line of a loss that waits to be told. */
void message_log_loss(struct claim *);
/* message_log - log lines for what a step brought about: bits of enum core_log. */
void message_log(struct claim *, uint32_t log);
/* message_reason - the same for two attempts that failed alike. */
uint64_t message_reason(const struct quorlock_result *);

#endif
