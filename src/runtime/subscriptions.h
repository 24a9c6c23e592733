/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * subscriptions.h - release notices for locks that wait
 *
 * A listener subscribes to the channels of its keys at some nodes. The connections for this exist while there is a
 * listener, and a little longer, because a waiter for a contended key mostly comes back soon. Until a node has
 * confirmed the subscription, waiters poll.
 */
#pragma once

#include "base/hashtable.h"
#include "runtime/nodes.h"

struct listener;
struct subscription;

struct listener_events {
    void (*confirmed)(struct listener *);                   /* more nodes confirmed the subscription */
    void (*unsubscribed)(struct listener *, uint32_t node); /* the node sends no more notices */
    /* A notice came. key: the place of the released key. holder_id: owner_id of the owner that released it, or 0. */
    void (*notice)(struct listener *, uint32_t node, uint32_t key, uint64_t holder_id);
    void (*refused)(struct listener *); /* a node refused the subscription, which was logged; NULL: no matter */
};

struct listener {
    const struct listener_events *events;
    struct subscription *subscriptions; /* one for each key while it listens, else NULL */
    size_t n;
    struct link quiet; /* in the list of listeners that stop soon */
    uint64_t quiet_until_us;
};

/* The subscriptions of one client. */
struct subscriptions {
    struct runtime *runtime;
    struct hashtable channels;
    struct list quiet; /* listeners that stop soon */
    struct waker linger;
};

/* subscriptions_start - make the nodes' subscribers, which do not run yet. Returns 0, or -1 out of memory. */
int subscriptions_start(struct subscriptions *, struct runtime *);
/* subscriptions_stop - free the subscribers, in any state. No listener may be left. */
void subscriptions_stop(struct subscriptions *);
/* subscriptions_open - listen to the keys' channels at these nodes, a bit each, as far as memory and nodes allow. */
void subscriptions_open(struct subscriptions *, struct listener *, const struct node_key *keys, size_t n_keys,
                        uint32_t nodes);
/* subscriptions_linger - stop listening soon. */
void subscriptions_linger(struct subscriptions *, struct listener *);
/* subscriptions_close - stop listening now. */
void subscriptions_close(struct subscriptions *, struct listener *);
/* subscriptions_confirmed - return the nodes that have confirmed the subscription to all keys, a bit each. */
uint32_t subscriptions_confirmed(const struct listener *);
