/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * notices.c - release notices for those who wait
 *
 * Whoever waits gets them from some of the nodes, once these confirmed the subscription; before, and where it
 * is not confirmed at all, polls have to do. A subscription outlives its last waiter by a moment: who fights
 * for a key mostly comes back soon.
 */
#include <string.h>

#include "lock/lock.h"
#include "redis/subscriber.h"

#define LINGER_US        500000u
#define CHANNEL_BUCKETS  64u
#define CHANNEL_SIZE     (QUORLOCK_KEY_LENGTH_MAX + 64)
#define SUBSCRIBER_LABEL "quorlock-notices"

_Static_assert(QUORLOCK_NODES_MAX < 32, "a bit for each node");

struct channel {
    struct channel *next; /* in its bucket */
    uint64_t hash;
    uint32_t nodes;     /* that are asked for its notices, a bit each */
    uint32_t confirmed; /* whose notices come */
    struct list subscriptions;
    size_t length;
    char name[];
};

/* ---- channels ---- */

static uint64_t hash_of(const char *bytes, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */

    for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    return hash;
}

static struct channel **place_of(struct notices *notices, const char *name, size_t length)
{
    uint64_t hash = hash_of(name, length);
    struct channel **at = &notices->buckets[hash % notices->n_buckets];

    while (*at != NULL &&
           ((*at)->hash != hash || (*at)->length != length || memcmp((*at)->name, name, length) != 0)) {
        at = &(*at)->next;
    }
    return at;
}

static struct channel *find(struct quorlock_client *client, const char *name, size_t length)
{
    return client->notices.n_channels == 0 ? NULL : *place_of(&client->notices, name, length);
}

static void listen_on(struct quorlock_client *client, struct channel *channel, uint32_t nodes)
{
    nodes &= ~channel->nodes;
    channel->nodes |= nodes;
    for (uint32_t i = 0; i < client->n_nodes; i++) {
        if ((nodes & 1u << i) == 0) continue;
        subscriber_start(client->nodes[i].subscriber);
        /* Not open yet: asked when it is. No room: polls have to do. */
        (void)subscriber_listen(client->nodes[i].subscriber, channel->name, channel->length);
    }
}

static struct channel *channel_of(struct quorlock_client *client, const struct node_key *key)
{
    struct notices *notices = &client->notices;
    char name[CHANNEL_SIZE];
    size_t length = node_channel(client->nodes[0].node, key, name, sizeof(name));
    struct channel **at = place_of(notices, name, length);

    if (*at != NULL) return *at;
    *at = alloc_zero(&client->alloc, sizeof(**at) + length);
    if (*at == NULL) return NULL;
    memcpy((*at)->name, name, length);
    (*at)->length = length;
    (*at)->hash = hash_of(name, length);
    notices->n_channels++;
    return *at;
}

static void drop_channel(struct quorlock_client *client, struct channel *channel)
{
    struct channel **at = place_of(&client->notices, channel->name, channel->length);

    *at = channel->next;
    client->notices.n_channels--;
    for (uint32_t i = 0; i < client->n_nodes; i++) {
        if ((channel->nodes & 1u << i) != 0) {
            subscriber_forget(client->nodes[i].subscriber, channel->name, channel->length);
        }
        if (client->notices.n_channels == 0) subscriber_stop(client->nodes[i].subscriber);
    }
    alloc_free(&client->alloc, channel);
}

/* ---- lines ---- */

static void on_linger_over(struct waker *waker)
{
    struct quorlock_client *client =
        (struct quorlock_client *)(void *)((char *)waker - offsetof(struct quorlock_client, linger));
    uint64_t now_us = client_now_us(client);
    struct keylist *keylist;

    while ((keylist = LIST_ITEM(client->notices.quiet.first, struct keylist, quiet)) != NULL &&
           keylist->quiet_until_us <= now_us) {
        notices_drop(keylist);
    }
    if (keylist != NULL) client_wake_at(client, &client->linger, keylist->quiet_until_us);
}

void notices_open(struct keylist *keylist)
{
    struct quorlock_client *client = keylist->client;

    list_remove(&client->notices.quiet, &keylist->quiet);
    if (keylist->subscriptions != NULL) return;
    keylist->subscriptions = alloc_zero(&client->alloc, keylist->n_keys * sizeof(struct subscription));
    if (keylist->subscriptions == NULL) return;
    for (size_t i = 0; i < keylist->n_keys; i++) {
        struct channel *channel = channel_of(client, &keylist->keys[i]);

        if (channel == NULL) {
            notices_drop(keylist);
            return;
        }
        keylist->subscriptions[i].keylist = keylist;
        keylist->subscriptions[i].channel = channel;
        list_add(&channel->subscriptions, &keylist->subscriptions[i].link);
        listen_on(client, channel, keylist_listens_on(keylist));
    }
}

void notices_close(struct keylist *keylist)
{
    struct quorlock_client *client = keylist->client;

    if (keylist->subscriptions == NULL) return;
    keylist->quiet_until_us = client_now_us(client) + LINGER_US;
    list_add(&client->notices.quiet, &keylist->quiet);
    if (client->notices.quiet.count == 1) client_wake_at(client, &client->linger, keylist->quiet_until_us);
}

void notices_drop(struct keylist *keylist)
{
    struct quorlock_client *client = keylist->client;

    list_remove(&client->notices.quiet, &keylist->quiet);
    if (keylist->subscriptions == NULL) return;
    for (size_t i = 0; i < keylist->n_keys; i++) {
        struct channel *channel = keylist->subscriptions[i].channel;

        if (channel == NULL) continue;
        list_remove(&channel->subscriptions, &keylist->subscriptions[i].link);
        if (channel->subscriptions.count == 0) drop_channel(client, channel);
    }
    alloc_free(&client->alloc, keylist->subscriptions);
    keylist->subscriptions = NULL;
}

uint32_t notices_confirmed(const struct keylist *keylist)
{
    uint32_t confirmed = UINT32_MAX;

    if (keylist->subscriptions == NULL) return 0;
    for (size_t i = 0; i < keylist->n_keys; i++) confirmed &= keylist->subscriptions[i].channel->confirmed;
    return confirmed;
}

/* ---- what the subscribers tell ---- */

static void on_open(void *arg, uint32_t index)
{
    struct quorlock_client *client = arg;
    struct notices *notices = &client->notices;

    for (size_t i = 0; notices->n_channels > 0 && i < notices->n_buckets; i++) {
        for (struct channel *channel = notices->buckets[i]; channel != NULL; channel = channel->next) {
            if ((channel->nodes & 1u << index) == 0) continue;
            (void)subscriber_listen(client->nodes[index].subscriber, channel->name, channel->length);
        }
    }
}

static void on_closed(void *arg, uint32_t index, const char *why)
{
    struct quorlock_client *client = arg;
    struct notices *notices = &client->notices;

    (void)why;
    for (size_t i = 0; notices->n_channels > 0 && i < notices->n_buckets; i++) {
        for (struct channel *channel = notices->buckets[i]; channel != NULL; channel = channel->next) {
            channel->confirmed &= ~(1u << index);
            for (struct link *at = channel->subscriptions.first; at != NULL; at = at->next) {
                queue_unsubscribed(LIST_ITEM(at, struct subscription, link)->keylist, index);
            }
        }
    }
}

static void on_listening(void *arg, uint32_t index, const char *name, size_t length)
{
    struct channel *channel = find(arg, name, length);
    struct list_walk walk;
    struct link *at;

    if (channel == NULL) return;
    channel->confirmed |= 1u << index;
    list_walk_begin(&walk, &channel->subscriptions);
    while ((at = list_walk_next(&walk)) != NULL)
        queue_subscribed(LIST_ITEM(at, struct subscription, link)->keylist);
}

/* What hash_notice.lua says of a failed attempt's release. */
static bool is_for_peers(const char *payload, size_t length)
{
    return length == 2 && memcmp(payload, "00", 2) == 0;
}

static void on_message(void *arg, uint32_t index, const char *name, size_t length, const char *payload,
                       size_t payload_length)
{
    struct quorlock_client *client = arg;
    struct channel *channel = find(client, name, length);
    /* Redisson's notices do not say whose release it was. */
    bool named = client->options.dialect == QUORLOCK_DIALECT_PLAIN && payload_length > 0;
    uint64_t holder_id = named ? claim_holder_id(payload, payload_length) : 0;
    struct list_walk walk;
    struct link *at;

    if (channel == NULL || (!named && is_for_peers(payload, payload_length))) return;
    list_walk_begin(&walk, &channel->subscriptions);
    while ((at = list_walk_next(&walk)) != NULL) {
        queue_on_notice(LIST_ITEM(at, struct subscription, link)->keylist, index, holder_id);
    }
}

static void on_refused(void *arg, uint32_t index, const char *name, size_t length, const char *why)
{
    /* The subscriber has logged it. */
    (void)arg;
    (void)index;
    (void)name;
    (void)length;
    (void)why;
}

static void on_log(void *arg, int level, const char *text)
{
    client_log(arg, level, "%s", text);
}

static uint64_t now_us(void *arg)
{
    return client_now_us(arg);
}

int notices_init(struct quorlock_client *client)
{
    struct subscriber_events events = {.open = on_open,
                                       .closed = on_closed,
                                       .listening = on_listening,
                                       .refused = on_refused,
                                       .message = on_message,
                                       .log = on_log,
                                       .arg = client};

    client->notices.buckets = alloc_zero(&client->alloc, CHANNEL_BUCKETS * sizeof(struct channel *));
    if (client->notices.buckets == NULL) return -1;
    client->notices.n_buckets = CHANNEL_BUCKETS;
    if (client_reserve_waker(client, &client->linger, on_linger_over) != 0) return -1;
    for (uint32_t i = 0; i < client->n_nodes; i++) {
        struct subscriber_config config = {.index = i,
                                           .uri = &client->nodes[i].uri,
                                           .client_name = SUBSCRIBER_LABEL,
                                           .timeout_ms = client_timeout_ms(client),
                                           .reconnect_min_ms = client->options.reconnect_min_ms,
                                           .reconnect_max_ms = client->options.reconnect_max_ms,
                                           .now_us = now_us,
                                           .now_arg = client};

        client->nodes[i].subscriber = subscriber_new(client->base, &client->alloc, &config, &events);
        if (client->nodes[i].subscriber == NULL) return -1;
    }
    return 0;
}

void notices_clear(struct quorlock_client *client)
{
    for (uint32_t i = 0; i < client->n_nodes; i++) subscriber_free(client->nodes[i].subscriber);
    alloc_free(&client->alloc, client->notices.buckets);
}
