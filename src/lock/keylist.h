/* SPDX-License-Identifier: BSD-3-Clause */
/* keylist.h - lists of keys, and owners that callers name: one struct for each in use */
#pragma once

#include "base/hashtable.h"
#include "core/core.h"
#include "core/slots.h"
#include "runtime/subscriptions.h"

struct claim;

#define KEYLIST_MARK_SIZE 4u

/* The key lists of one client. */
struct keylists {
    struct runtime *runtime;
    struct hashtable table; /* by the hash of the keys */
    struct subscriptions subscriptions;
    const struct listener_events *events; /* of the listener of each key list */
};

/* What a key list needs only after a claim has released its keys, or waited for them. */
struct contention {
    struct keylist *keylist;
    struct listener listener;
    uint32_t handed;          /* times in a row that the keys were handed on inside this process */
    uint64_t gave_back_us;    /* when a claim of this process gave them back */
    uint64_t gave_back_id;    /* of the owner that gave them back */
    uint64_t foreign_id;      /* of the owner in another process whose release was reported last */
    uint64_t others_until_us; /* until then other processes are assumed to wait for them */
};

/* The keys that locks of one client share. Locks with permits have a list of their own for each number of permits,
 * apart from that of ordinary locks of the key. */
struct keylist {
    struct keylists *all;
    struct hashtable_entry entry;
    uint32_t users;          /* handles and claims */
    uint32_t held : 31;      /* claims that hold the keys: with permits, or where they are shared, several at once */
    uint32_t reads : 1;      /* those claims hold all of the keys shared */
    uint32_t listeners : 24; /* claims that want notices */
    uint32_t permits : 8;    /* 0: ordinary locks */
    uint32_t n_keys : 7;
    uint32_t fair : 1;     /* a handle is fair, so all locks of the list have the arbiter of fair locks */
    uint32_t name_at : 24; /* where its name begins in this block */
    unsigned char mark[KEYLIST_MARK_SIZE]; /* see keylist_mark; the last bit is 0 */
    struct bare_list
        waiting;         /* handles in the order of coming; the first asks the nodes, of fair permits the first ones */
    struct claim *asked; /* the claim that asked the nodes last: its votes are why the others wait */
    struct contention *contention;
    struct quorlock_lock
        *holder; /* of the handles that held the keys alone the latest; NULL: none yet, or it is gone */
    /* With prefix, as the nodes know them; with permits struct core_slots, and the bytes of keys and name follow. */
    struct node_key keys[];
};

/* keylist_slots - return the slots of a list with permits; NULL: it has none. */
static inline struct core_slots *keylist_slots(struct keylist *keylist)
{
    return keylist->permits == 0 ? NULL : (struct core_slots *)(void *)&keylist->keys[1];
}

/* keylist_name - return the keys for people: without prefix, printable. */
static inline const char *keylist_name(const struct keylist *keylist)
{
    return (const char *)keylist + keylist->name_at;
}

/* An owner whom callers named; see reentry.h. */
struct named_owner {
    struct hashtable_entry entry;
    uint32_t users;     /* handles and claims */
    struct list claims; /* of its claims, those that are active */
    char name[];
};

/* keylist_join - return the list of these sorted keys with so many permits, made where there is none; NULL: out of
 * memory. keylist_leave - one user less; the last one frees it. */
struct keylist *keylist_join(struct keylists *, const char *const *keys, size_t n_keys, uint32_t permits);
void keylist_leave(struct keylist *);
/* keylist_of_key - return the list of this one key, with prefix, of ordinary locks; NULL: there is none. */
struct keylist *keylist_of_key(const struct keylists *, const struct node_key *);
/* keylist_check - assert which members go together, at the begin and the end of what changes a list. */
void keylist_check(const struct keylist *);
/* keylist_admits - return whether one more claim of this process, with this config, may hold the keys beside those that
 * hold them, and so may ask the nodes. Otherwise it waits until one of them gives the keys back. */
bool keylist_admits(const struct keylist *, const struct core_config *);
/* keylist_count_hold - count that one more claim with this config holds the keys, or one less. */
void keylist_count_hold(struct keylist *, const struct core_config *, bool holds);
/*
 * keylist_mark - write what the last bytes of an owner's token tell of its lock
 *
 * They are a hash of the keys in any order, and in the last bit whether each grant carries a fencing token. So whoever
 * adopts the token learns that the keys are not all of the lock's, or that its counters were not raised for it. The
 * other 128 bits of the token are random.
 */
void keylist_mark(const struct keylist *, bool fenced, unsigned char ret[KEYLIST_MARK_SIZE]);
/* keylist_misfit - return NULL if a lock of these keys may adopt the token, else why not. */
const char *keylist_misfit(const struct keylist *, bool fenced, const struct core_token *);
/* keylist_first_arbiter - return which node in the client's order waiters for these keys ask first.
 * keylist_arbiter - return the index of that node. */
uint32_t keylist_first_arbiter(const struct keylist *);
uint32_t keylist_arbiter(const struct keylist *);
/* keylist_contention - return it, made where there is none; NULL: out of memory, which costs liveness only. */
struct contention *keylist_contention(struct keylist *);
/* keylist_forget_contention - free it where nobody has waited for the keys lately: they are held for a while. */
void keylist_forget_contention(struct keylist *);
/* keylist_confirmed - return the nodes that confirmed the subscription, a bit each. */
uint32_t keylist_confirmed(const struct keylist *);
/* keylist_listen - count that one more claim wants notices, or one less; subscribe, or stop soon. */
void keylist_listen(struct keylist *, bool wanted);
/* keylist_count_listeners - a node reported how many clients listened to a release of ours.
 * keylist_others_listen - other processes waited for the keys a moment ago. */
void keylist_count_listeners(struct keylist *, uint32_t node, uint32_t listeners);
bool keylist_others_listen(const struct keylist *);
/* keylist_common_key - return a key that both lists lock; NULL: there is none. */
const char *keylist_common_key(const struct keylist *, const struct keylist *);
/* named_owner_join - return the owner of that name, made where there is none; NULL: out of memory.
 * named_owner_leave - one user less; NULL is fine. */
struct named_owner *named_owner_join(struct hashtable *, const struct alloc *, const char *name);
void named_owner_leave(struct hashtable *, const struct alloc *, struct named_owner *);
