/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * subscriptions.h - release notices for locks that wait
 *
 * A listener subscribes on some nodes to the channels of its keys. These connections exist while there is a
 * listener, and a little longer, for a waiter for a contended key mostly comes back soon. Until a node has
 * confirmed the subscription, waiters poll.
 */
#pragma once

#include "base/hashtable.h"
#include "runtime/nodes.h"

struct listener;
struct subscription;

struct listener_events {
    /* More nodes confirmed the subscription. A node's notices come no more. A notice came; key: the place of the one
     * that was released; holder_id: owner_id of the owner that did, or 0. */
    void (*confirmed)(struct listener *);
    void (*unsubscribed)(struct listener *, uint32_t node);
    void (*notice)(struct listener *, uint32_t node, uint32_t key, uint64_t holder_id);
};

struct listener {
    const struct listener_events *events;
    struct subscription *subscriptions; /* one a key while it listens, else NULL */
    size_t n;
    struct link quiet; /* it stops listening soon */
    uint64_t quiet_until_us;
};

/* The subscriptions of one client. */
struct subscriptions {
    struct runtime *runtime;
    struct hashtable channels;
    struct list quiet; /* listeners that stop soon */
    struct waker linger;
};

/* subscriptions_start - makes the nodes' subscribers, stopped. 0, or -1 out of memory. subscriptions_stop: fine
 * in any state; no listener may be left. */
int subscriptions_start(struct subscriptions *, struct runtime *);
void subscriptions_stop(struct subscriptions *);
/* subscriptions_open - the listener listens to the keys' channels on these nodes, a bit each, as far as memory
 * and nodes allow. subscriptions_linger: it stops soon. subscriptions_close: at once. */
void subscriptions_open(struct subscriptions *, struct listener *, const struct node_key *keys, size_t n_keys,
                        uint32_t nodes);
void subscriptions_linger(struct subscriptions *, struct listener *);
void subscriptions_close(struct subscriptions *, struct listener *);
/* subscriptions_confirmed - nodes whose notices come to the listener, a bit each. */
uint32_t subscriptions_confirmed(const struct listener *);
