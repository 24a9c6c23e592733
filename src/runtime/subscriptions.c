/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/subscriptions.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "redis/subscriber.h"

#define LINGER_US 500000u
/* The longest is that of a waiter of its own: see lock/far.c. */
#define CHANNEL_SIZE (QUORLOCK_KEY_LENGTH_MAX + OPTIONS_LABEL_SIZE + 2 * CORE_TOKEN_SIZE + 64)

_Static_assert(QUORLOCK_NODES_MAX < 32, "a bit for each node");

struct channel {
    struct hashtable_entry entry;
    uint32_t nodes;     /* nodes whose notices are wanted, a bit each */
    uint32_t asked;     /* of these, nodes that got the SUBSCRIBE on their present connection */
    uint32_t confirmed; /* of these, nodes that have confirmed it */
    struct list subscriptions;
    size_t length;
    char name[];
};

/* One listener's use of one channel. */
struct subscription {
    struct link link; /* in the channel */
    struct listener *listener;
    struct channel *channel;
};

/* ---- channels ---- */

static struct channel *find_hashed(const struct subscriptions *all, uint64_t hash, const char *name, size_t length)
{
    HASHTABLE_EACH_OF (struct channel, channel, &all->channels, hash, entry) {
        if (channel->length == length && memcmp(channel->name, name, length) == 0) return channel;
    }
    return NULL;
}

static struct channel *subscriptions_find(const struct subscriptions *all, const char *name, size_t length)
{
    return find_hashed(all, hash_bytes(HASH_START, name, length), name, length);
}

/* Subscribe to the channel at one node. Return false if the subscriber is not open or has no room: ask_for_all runs
 * when that has changed, and waiters poll until then. */
static bool subscriptions_ask_node(struct subscriptions *all, struct channel *channel, uint32_t index)
{
    uint32_t node = 1u << index;

    assert(index < all->runtime->n_nodes);
    assert((channel->confirmed & ~channel->nodes) == 0 && (channel->asked & ~channel->nodes) == 0);
    if ((channel->nodes & ~channel->asked & node) == 0) return true;
    if (subscriber_listen(all->runtime->nodes[index].subscriber, channel->name, channel->length) != SUBSCRIBER_ASKED)
        return false;
    channel->asked |= node;
    return true;
}

static void ask_for_all(void *arg, uint32_t index)
{
    struct subscriptions *all = arg;

    HASHTABLE_EACH (struct channel, channel, &all->channels, entry) {
        if (!subscriptions_ask_node(all, channel, index)) return;
    }
}

static void listen_on(struct subscriptions *all, struct channel *channel, uint32_t nodes)
{
    assert((nodes >> all->runtime->n_nodes) == 0);
    nodes &= ~channel->nodes;
    channel->nodes |= nodes;
    for (uint32_t i = 0; i < all->runtime->n_nodes; i++) {
        if ((nodes & 1u << i) == 0) continue;
        subscriber_start(all->runtime->nodes[i].subscriber);
        (void)subscriptions_ask_node(all, channel, i);
    }
}

static struct channel *channel_of(struct subscriptions *all, const struct node_key *key)
{
    const struct alloc *alloc = &all->runtime->alloc;
    char name[CHANNEL_SIZE];
    size_t length = node_channel(all->runtime->nodes[0].node, key, all->runtime->prefix_length, name, sizeof(name));
    uint64_t hash = hash_bytes(HASH_START, name, length);
    struct channel *channel = find_hashed(all, hash, name, length);

    assert(length > 0 && length <= sizeof(name));
    if (channel != NULL) return channel;
    if (hashtable_reserve(&all->channels, alloc) != 0) return NULL;
    channel = alloc_zero(alloc, sizeof(*channel) + length);
    if (channel == NULL) return NULL;
    memcpy(channel->name, name, length);
    channel->length = length;
    channel->entry.hash = hash;
    hashtable_add(&all->channels, &channel->entry);
    return channel;
}

static void drop_channel(struct subscriptions *all, struct channel *channel)
{
    assert(channel->subscriptions.count == 0);
    hashtable_remove(&all->channels, &channel->entry);
    for (uint32_t i = 0; i < all->runtime->n_nodes; i++) {
        struct subscriber *subscriber = all->runtime->nodes[i].subscriber;

        if ((channel->nodes & 1u << i) != 0) subscriber_forget(subscriber, channel->name, channel->length);
        if (all->channels.count == 0) subscriber_stop(subscriber);
    }
    alloc_free(&all->runtime->alloc, channel);
}

/* ---- listeners ---- */

static void on_linger_over(struct waker *waker)
{
    struct subscriptions *all = CONTAINER_OF(waker, struct subscriptions, linger);
    uint64_t now_us = runtime_now_us(all->runtime);
    struct listener *listener;

    while ((listener = FIRST_OF(&all->quiet, struct listener, quiet)) != NULL && listener->quiet_until_us <= now_us) {
        subscriptions_close(all, listener);
    }
    if (listener != NULL) runtime_wake_at(all->runtime, &all->linger, listener->quiet_until_us);
}

void subscriptions_open(struct subscriptions *all, struct listener *listener, const struct node_key *keys,
                        size_t n_keys, uint32_t nodes)
{
    assert(n_keys > 0 && listener->events != NULL);
    list_remove(&all->quiet, &listener->quiet);
    if (listener->subscriptions != NULL) return;
    listener->subscriptions = alloc_zero(&all->runtime->alloc, n_keys * sizeof(struct subscription));
    if (listener->subscriptions == NULL) return;
    listener->n = n_keys;
    for (size_t i = 0; i < n_keys; i++) {
        struct channel *channel = channel_of(all, &keys[i]);

        if (channel == NULL) {
            subscriptions_close(all, listener);
            return;
        }
        listener->subscriptions[i].listener = listener;
        listener->subscriptions[i].channel = channel;
        list_add(&channel->subscriptions, &listener->subscriptions[i].link);
        listen_on(all, channel, nodes);
    }
}

void subscriptions_linger(struct subscriptions *all, struct listener *listener)
{
    if (listener->subscriptions == NULL) return;
    /* The list is ordered by quiet_until_us. */
    assert(!list_has(&listener->quiet));
    listener->quiet_until_us = runtime_now_us(all->runtime) + LINGER_US;
    list_add(&all->quiet, &listener->quiet);
    if (all->quiet.count == 1) runtime_wake_at(all->runtime, &all->linger, listener->quiet_until_us);
}

void subscriptions_close(struct subscriptions *all, struct listener *listener)
{
    list_remove(&all->quiet, &listener->quiet);
    if (listener->subscriptions == NULL) return;
    for (size_t i = 0; i < listener->n; i++) {
        struct channel *channel = listener->subscriptions[i].channel;

        if (channel == NULL) continue;
        list_remove(&channel->subscriptions, &listener->subscriptions[i].link);
        if (channel->subscriptions.count == 0) drop_channel(all, channel);
    }
    alloc_free(&all->runtime->alloc, listener->subscriptions);
    listener->subscriptions = NULL;
    assert(!list_has(&listener->quiet));
}

uint32_t subscriptions_confirmed(const struct listener *listener)
{
    uint32_t confirmed = UINT32_MAX;

    if (listener->subscriptions == NULL) return 0;
    for (size_t i = 0; i < listener->n; i++) confirmed &= listener->subscriptions[i].channel->confirmed;
    return confirmed;
}

/* ---- what the subscribers report ---- */

static void subscriptions_on_closed(void *arg, uint32_t index, const char *why)
{
    struct subscriptions *all = arg;

    (void)why;
    assert(index < all->runtime->n_nodes);
    HASHTABLE_EACH (struct channel, channel, &all->channels, entry) {
        if ((channel->nodes & 1u << index) == 0) continue;
        channel->asked &= ~(1u << index);
        channel->confirmed &= ~(1u << index);
        LIST_EACH (struct subscription, each, &channel->subscriptions, link) {
            each->listener->events->unsubscribed(each->listener, index);
        }
    }
}

static void on_listening(void *arg, uint32_t index, const char *name, size_t length)
{
    struct channel *channel = subscriptions_find(arg, name, length);

    if (channel == NULL) return;
    assert(index < QUORLOCK_NODES_MAX);
    channel->confirmed |= 1u << index;
    LIST_WALK (struct subscription, each, &channel->subscriptions, link) {
        each->listener->events->confirmed(each->listener);
    }
}

static void on_refused(void *arg, uint32_t index, const char *name, size_t length, const char *why)
{
    struct channel *channel = subscriptions_find(arg, name, length);

    (void)index, (void)why;
    if (channel == NULL) return;
    LIST_WALK (struct subscription, each, &channel->subscriptions, link) {
        if (each->listener->events->refused != NULL) each->listener->events->refused(each->listener);
    }
}

static void on_message(void *arg, uint32_t index, const char *name, size_t length, const char *payload,
                       size_t payload_length)
{
    struct subscriptions *all = arg;
    struct channel *channel = subscriptions_find(all, name, length);
    /* Redisson's notices do not name the owner. */
    bool named = all->runtime->options.dialect == QUORLOCK_DIALECT_PLAIN && payload_length > 0;
    uint64_t holder_id = named ? owner_id(payload, payload_length) : 0;

    if (channel == NULL) return;
    /* hash_notice.lua publishes this for a failed attempt's release. */
    if (!named && payload_length == 2 && memcmp(payload, "00", 2) == 0) return;
    LIST_WALK (struct subscription, each, &channel->subscriptions, link) {
        each->listener->events->notice(each->listener, index, (uint32_t)(each - each->listener->subscriptions),
                                       holder_id);
    }
}

int subscriptions_start(struct subscriptions *all, struct runtime *runtime)
{
    struct subscriber_events events = {.open = ask_for_all,
                                       .closed = subscriptions_on_closed,
                                       .listening = on_listening,
                                       .refused = on_refused,
                                       .message = on_message,
                                       .room = ask_for_all,
                                       .arg = all};

    assert(all->runtime == NULL);
    all->runtime = runtime;
    runtime_start_waker(runtime, &all->linger, on_linger_over);
    for (uint32_t i = 0; i < runtime->n_nodes; i++) {
        struct link_config link = nodes_link(runtime, i);

        runtime->nodes[i].subscriber = subscriber_new(&runtime->system, &runtime->alloc, i, &link, &events);
        if (runtime->nodes[i].subscriber == NULL) return -1;
    }
    return 0;
}

void subscriptions_stop(struct subscriptions *all)
{
    struct runtime *runtime = all->runtime;

    if (runtime == NULL) return;
    assert(all->channels.count == 0 && all->quiet.count == 0);
    for (uint32_t i = 0; i < runtime->n_nodes; i++) subscriber_free(runtime->nodes[i].subscriber);
    hashtable_free(&all->channels, &runtime->alloc);
}
