/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/subscriber.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/hashtable.h"
#include "base/list.h"
#include "redis/link/link.h"
#include "redis/wire/errors.h"

/* Of silence before a PING. Keepalive finds a connection that died, and whoever is among the first to wait asks a node
 * every few seconds. A server has one such connection for each waiter, and must have time for others. */
#define IDLE_MS         60000u
#define SUBSCRIBER_NAME "quorlock-notices"

enum pending_kind {
    PENDING_LISTEN,
    PENDING_MUTED, /* a PENDING_LISTEN that was forgotten before its answer, which is not reported */
    PENDING_FORGET,
    PENDING_PING,
};

/* A command that the server has not answered yet. */
struct pending {
    struct link link;
    struct hashtable_entry entry; /* in `listens`, if it is PENDING_LISTEN */
    enum pending_kind kind;
    size_t length;
    char channel[];
};

struct subscriber {
    uint32_t index;
    struct subscriber_events events;
    struct redis_link link;
    struct list pending;      /* oldest first: an error reply names no channel, so the order tells its command */
    struct hashtable listens; /* those of kind PENDING_LISTEN, by channel */
    size_t n_pending_bytes;   /* the size of all pending commands */
    bool lacked_room;  /* there was no room for a subscription, which may be tried again when nothing is pending */
    uint64_t heard_us; /* when bytes last came, or the oldest pending command was sent after that */
    char logged[LINK_TEXT_SIZE];  /* the fault that was logged last, since the connection was open */
    char refusal[LINK_TEXT_SIZE]; /* the refusal that was logged last */
};

/* Return until when an open connection may be silent. Then a PING is sent, or the connection dropped. */
static uint64_t silence_ends_us(const struct subscriber *subscriber)
{
    const struct link_config *config = &subscriber->link.config;
    uint64_t timeout_us = (uint64_t)config->timeout_ms * 1000;
    uint64_t idle_us = (uint64_t)(config->idle_ms != 0 ? config->idle_ms : IDLE_MS) * 1000;

    if (timeout_us == 0) timeout_us = 1000;
    if (subscriber->pending.count == 0 && timeout_us < idle_us) timeout_us = idle_us;
    return subscriber->heard_us + timeout_us;
}

/* ---- commands without an answer ---- */

static struct pending *oldest(const struct subscriber *subscriber)
{
    return FIRST_OF(&subscriber->pending, struct pending, link);
}

static enum bytes_fault subscriber_push(struct subscriber *subscriber, enum pending_kind kind, const char *channel,
                                        size_t length)
{
    const struct alloc *alloc = subscriber->link.alloc;
    struct pending *pending;

    if (subscriber->n_pending_bytes + sizeof(*pending) + length > CONN_OUT_MAX) return BYTES_FULL;
    if (kind == PENDING_LISTEN && hashtable_reserve(&subscriber->listens, alloc) != 0) return BYTES_NOMEM;
    pending = alloc_zero(alloc, sizeof(*pending) + length);
    if (pending == NULL) return BYTES_NOMEM;
    pending->kind = kind;
    pending->length = length;
    if (length > 0) memcpy(pending->channel, channel, length);
    list_add(&subscriber->pending, &pending->link);
    if (kind == PENDING_LISTEN) {
        pending->entry.hash = hash_bytes(HASH_START, channel, length);
        hashtable_add(&subscriber->listens, &pending->entry);
    }
    subscriber->n_pending_bytes += sizeof(*pending) + length;
    return BYTES_FINE;
}

static void unlist(struct subscriber *subscriber, struct pending *pending)
{
    list_remove(&subscriber->pending, &pending->link);
    if (pending->kind == PENDING_LISTEN) hashtable_remove(&subscriber->listens, &pending->entry);
    subscriber->n_pending_bytes -= sizeof(*pending) + pending->length;
}

static void pop(struct subscriber *subscriber)
{
    struct pending *first = oldest(subscriber);

    unlist(subscriber, first);
    alloc_free(subscriber->link.alloc, first);
}

static void forget_all(struct subscriber *subscriber)
{
    while (subscriber->pending.count > 0) pop(subscriber);
    subscriber->lacked_room = false;
}

static struct pending *pending_listen(const struct subscriber *subscriber, const char *channel, size_t length)
{
    uint64_t hash = hash_bytes(HASH_START, channel, length);

    HASHTABLE_EACH_OF (struct pending, pending, &subscriber->listens, hash, entry) {
        if (pending->length == length && memcmp(pending->channel, channel, length) == 0) return pending;
    }
    return NULL;
}

/* Make all pending subscriptions to that channel unreported. If a server is silent, very many may be pending, and all
 * be forgotten at once: hence the hash table. */
static void mute(struct subscriber *subscriber, const char *channel, size_t length)
{
    struct pending *pending;

    while (subscriber->listens.count > 0 && (pending = pending_listen(subscriber, channel, length)) != NULL) {
        hashtable_remove(&subscriber->listens, &pending->entry);
        pending->kind = PENDING_MUTED;
    }
}

/* ---- asking ---- */

/* Send one command. Its answer comes behind those of all earlier commands. */
static int subscriber_ask(struct subscriber *subscriber, enum pending_kind kind, const char *channel, size_t length)
{
    struct bytes *out = &subscriber->link.conn.out;
    size_t mark = out->used;
    enum bytes_fault fault;

    if (kind == PENDING_PING) {
        BYTES_TEXTS(out, "PING");
    } else {
        bytes_command(out, 2);
        bytes_text(out, kind == PENDING_LISTEN ? "SUBSCRIBE" : "UNSUBSCRIBE");
        bytes_word(out, channel, length);
    }
    fault = out->fault;
    if (fault == BYTES_FINE) fault = subscriber_push(subscriber, kind, channel, length);
    if (fault != BYTES_FINE) {
        bytes_cut(out, mark);
        if (kind == PENDING_LISTEN) subscriber->lacked_room = true;
        return fault == BYTES_FULL ? SUBSCRIBER_FULL : SUBSCRIBER_NOMEM;
    }
    if (subscriber->pending.count == 1) {
        subscriber->heard_us = link_now_us(&subscriber->link);
        link_arm_by(&subscriber->link, subscriber->heard_us, silence_ends_us(subscriber));
    }
    conn_wake(&subscriber->link.conn);
    return SUBSCRIBER_ASKED;
}

/* ---- answers ---- */

static void subscriber_misfit(struct subscriber *subscriber)
{
    link_drop(&subscriber->link, FAULT_PROTO, "a reply that nobody asked for");
}

/* If this answers the oldest pending command, remove that; else return false. */
static bool answers(struct subscriber *subscriber, enum pending_kind kind, const struct reply_item *channel,
                    bool *ret_muted)
{
    const struct pending *first = oldest(subscriber);

    if (first == NULL) return false;
    *ret_muted = first->kind == PENDING_MUTED;
    if (first->kind != kind && !(*ret_muted && kind == PENDING_LISTEN)) return false;
    if (channel != NULL &&
        (channel->length != first->length || memcmp(channel->text, first->channel, first->length) != 0))
        return false;
    pop(subscriber);
    return true;
}

static void on_pong(struct subscriber *subscriber)
{
    bool muted = false;

    if (!answers(subscriber, PENDING_PING, NULL, &muted)) subscriber_misfit(subscriber);
}

/* A reply of "subscribe" or "unsubscribe", the channel, and the number of subscriptions. */
static void subscriber_on_confirmed(struct subscriber *subscriber, enum pending_kind kind,
                                    const struct reply_item *channel)
{
    bool muted = false;

    if (!answers(subscriber, kind, channel, &muted))
        subscriber_misfit(subscriber);
    else if (kind == PENDING_LISTEN && !muted && subscriber->events.listening != NULL)
        subscriber->events.listening(subscriber->events.arg, subscriber->index, channel->text, channel->length);
}

static void subscriber_on_array(struct subscriber *subscriber, const struct reply *raw)
{
    const struct reply_item *items = raw->elements;
    const struct subscriber_events *events = &subscriber->events;

    if (reply_fits(raw, "sss") && reply_is(&items[0], "message")) {
        if (events->message != NULL)
            events->message(events->arg, subscriber->index, items[1].text, items[1].length, items[2].text,
                            items[2].length);
    } else if (reply_fits(raw, "ssi") && reply_is(&items[0], "subscribe")) {
        subscriber_on_confirmed(subscriber, PENDING_LISTEN, &items[1]);
    } else if (reply_fits(raw, "ssi") && reply_is(&items[0], "unsubscribe")) {
        subscriber_on_confirmed(subscriber, PENDING_FORGET, &items[1]);
    } else if (raw->n_elements == 2 && items[0].type == REPLY_STRING && reply_is(&items[0], "pong")) {
        on_pong(subscriber);
    } else {
        subscriber_misfit(subscriber);
    }
}

/* Removed from the list before the callback, which may change the list. */
static void subscriber_refuse(struct subscriber *subscriber, struct pending *refused, const char *why)
{
    uint32_t connection = subscriber->link.connection;

    unlist(subscriber, refused);
    if (strcmp(subscriber->refusal, why) != 0) {
        snprintf(subscriber->refusal, sizeof(subscriber->refusal), "%s", why);
        link_log(&subscriber->link, QUORLOCK_LOG_WARN, "%s; waiters poll instead", why);
    }
    if (link_is_on(&subscriber->link, connection) && subscriber->events.refused != NULL)
        subscriber->events.refused(subscriber->events.arg, subscriber->index, refused->channel, refused->length, why);
    alloc_free(subscriber->link.alloc, refused);
}

static void subscriber_on_error(struct subscriber *subscriber, const struct reply_item *item)
{
    struct error_class class = error_classify(item->text, item->length);
    struct pending *first = oldest(subscriber);
    bool listens = first != NULL && (first->kind == PENDING_LISTEN || first->kind == PENDING_MUTED);
    const char *what = first != NULL ? "PING" : "an error that nobody asked for";
    char why[LINK_TEXT_SIZE];

    handshake_describe(subscriber->link.config.uri, listens ? "SUBSCRIBE" : what, item, why, sizeof(why));
    /* A busy server recovers: a new connection subscribes again then. A full one may stay full, and the subscriptions
     * that it did accept are worth more. Any reply to a PING shows that the server is alive, and a failed UNSUBSCRIBE
     * does no harm. */
    if (first == NULL || reply_begins(item, "NOAUTH") || (listens && class.fault == FAULT_TEMPORARY))
        link_drop(&subscriber->link, class.fault, "%s", why);
    else if (first->kind == PENDING_LISTEN)
        subscriber_refuse(subscriber, first, why);
    else
        pop(subscriber);
}

static void take_reply(struct subscriber *subscriber, const struct reply *raw)
{
    const struct reply_item *self = &raw->self;

    if (self->type == REPLY_ARRAY)
        subscriber_on_array(subscriber, raw);
    else if (self->type == REPLY_ERROR)
        subscriber_on_error(subscriber, self);
    else if (self->type == REPLY_STATUS && reply_is(self, "PONG"))
        on_pong(subscriber); /* the form of the reply while nothing is subscribed */
    else
        subscriber_misfit(subscriber);
}

static void subscriber_on_reply(void *arg, const struct reply *raw)
{
    struct subscriber *subscriber = arg;
    uint32_t connection = subscriber->link.connection;

    take_reply(subscriber, raw);
    if (!link_is_on(&subscriber->link, connection) || !subscriber->lacked_room || subscriber->pending.count > 0) return;
    subscriber->lacked_room = false;
    if (subscriber->events.room != NULL) subscriber->events.room(subscriber->events.arg, subscriber->index);
}

/* ---- the connection ---- */

static void subscriber_on_connected(void *arg)
{
    struct subscriber *subscriber = arg;
    struct redis_link *link = &subscriber->link;

    handshake_greet(&link->handshake, &link->conn.out, link->config.uri, link->config.client_name);
}

static void subscriber_on_greeted(void *arg)
{
    struct subscriber *subscriber = arg;
    uint32_t connection = subscriber->link.connection;

    link_open(&subscriber->link);
    subscriber->heard_us = link_now_us(&subscriber->link);
    subscriber->logged[0] = '\0';
    (void)link_arm(&subscriber->link, silence_ends_us(subscriber));
    link_log(&subscriber->link, QUORLOCK_LOG_DEBUG, "open");
    if (link_is_on(&subscriber->link, connection) && subscriber->events.open != NULL)
        subscriber->events.open(subscriber->events.arg, subscriber->index);
}

static void subscriber_on_heard(void *arg)
{
    struct subscriber *subscriber = arg;

    subscriber->heard_us = link_now_us(&subscriber->link);
}

/* The silence was too long: send a PING first, then drop the connection. */
static void subscriber_on_due(void *arg)
{
    struct subscriber *subscriber = arg;
    uint64_t until_us = silence_ends_us(subscriber);

    if (link_now_us(&subscriber->link) < until_us) {
        (void)link_arm(&subscriber->link, until_us);
    } else if (subscriber->pending.count > 0) {
        link_drop(&subscriber->link, FAULT_UNREACHABLE, "no answer within %u ms: frozen, or cut off",
                  (unsigned)subscriber->link.config.timeout_ms);
    } else if (subscriber_ask(subscriber, PENDING_PING, NULL, 0) != SUBSCRIBER_ASKED) {
        link_drop_nomem(&subscriber->link);
    }
}

/* A server that refuses a user will still refuse it a moment later. */
static bool subscriber_waits_long(void *arg, enum fault fault)
{
    (void)arg;
    return fault == FAULT_AUTH || fault == FAULT_LOGIN;
}

/* The node's own log lines report what is wrong with a server or the network; here it only delays notices. */
static void log_end(struct subscriber *subscriber, enum fault fault, const char *why)
{
    if (fault == FAULT_UNREACHABLE || fault == FAULT_TEMPORARY) {
        link_log(&subscriber->link, QUORLOCK_LOG_DEBUG, "%s", why);
        return;
    }
    if (strcmp(subscriber->logged, why) == 0) return;
    snprintf(subscriber->logged, sizeof(subscriber->logged), "%s", why);
    link_log(&subscriber->link, QUORLOCK_LOG_WARN, "%s", why);
}

static void subscriber_on_closed(void *arg, bool was_open, enum fault fault, const char *why)
{
    struct subscriber *subscriber = arg;
    uint32_t connection = subscriber->link.connection;

    forget_all(subscriber);
    log_end(subscriber, fault, why);
    if (was_open && link_is_on(&subscriber->link, connection) && subscriber->events.closed != NULL)
        subscriber->events.closed(subscriber->events.arg, subscriber->index, why);
}

static void subscriber_on_ended(void *arg)
{
    struct subscriber *subscriber = arg;

    forget_all(subscriber);
    hashtable_free(&subscriber->listens, subscriber->link.alloc);
    alloc_free(subscriber->link.alloc, subscriber);
}

/* ---- what the owner calls ---- */

static const struct link_events subscriber_link_events = {
    .log_prefix = "release notices: ",
    .connected = subscriber_on_connected,
    .greeted = subscriber_on_greeted,
    .heard = subscriber_on_heard,
    .reply = subscriber_on_reply,
    .due = subscriber_on_due,
    .waits_long = subscriber_waits_long,
    .closed = subscriber_on_closed,
    .ended = subscriber_on_ended,
};

struct subscriber *subscriber_new(struct system *system, const struct alloc *alloc, uint32_t index,
                                  const struct link_config *config, const struct subscriber_events *events)
{
    struct link_config link = *config;
    struct subscriber *subscriber = alloc_zero(alloc, sizeof(*subscriber));

    if (subscriber == NULL) return NULL;
    link.user_timeout_ms = config->timeout_ms;
    if (config->client_name == NULL) link.client_name = SUBSCRIBER_NAME;
    subscriber->index = index;
    subscriber->events = *events;
    if (link_init(&subscriber->link, system, alloc, &link, &subscriber_link_events, subscriber)) return subscriber;
    link_end(&subscriber->link);
    return NULL;
}

void subscriber_free(struct subscriber *subscriber)
{
    if (subscriber != NULL) link_end(&subscriber->link);
}

void subscriber_start(struct subscriber *subscriber)
{
    if (subscriber->link.dead || subscriber->link.step != LINK_STOPPED) return;
    (void)link_start(&subscriber->link);
}

void subscriber_stop(struct subscriber *subscriber)
{
    if (subscriber->link.dead || subscriber->link.step == LINK_STOPPED) return;
    link_stop(&subscriber->link);
    forget_all(subscriber);
}

bool subscriber_is_open(const struct subscriber *subscriber)
{
    return link_is_open(&subscriber->link);
}

int subscriber_listen(struct subscriber *subscriber, const char *channel, size_t length)
{
    if (!subscriber_is_open(subscriber)) return SUBSCRIBER_NOT_OPEN;
    if (length > SUBSCRIBER_CHANNEL_MAX) return SUBSCRIBER_FULL;
    return subscriber_ask(subscriber, PENDING_LISTEN, channel, length);
}

void subscriber_forget(struct subscriber *subscriber, const char *channel, size_t length)
{
    if (!subscriber_is_open(subscriber) || length > SUBSCRIBER_CHANNEL_MAX) return;
    mute(subscriber, channel, length);
    (void)subscriber_ask(subscriber, PENDING_FORGET, channel, length);
}
