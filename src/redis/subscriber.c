/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/subscriber.h"

#include <stdio.h>
#include <string.h>

#include "redis/link/link.h"
#include "redis/pending.h"
#include "redis/wire/errors.h"

#define SUBSCRIBER_IDLE_US_MIN 1000000 /* of silence, before a PING */
#define SUBSCRIBER_NAME        "quorlock-notices"

struct subscriber {
    struct alloc alloc;
    struct subscriber_config config;
    struct subscriber_events events;
    struct redis_link link;
    struct pending pending;
    uint64_t heard_us; /* the latest sign of life, or when the oldest pending command was sent after it */
    char why[LINK_TEXT_SIZE];
    char logged[LINK_TEXT_SIZE];  /* the fault that was logged last, since it was open */
    char refusal[LINK_TEXT_SIZE]; /* the refusal that was logged last */
};

/* Until when an open connection may be silent: then a PING is sent, or the connection dropped. */
static uint64_t silence_ends_us(const struct subscriber *subscriber)
{
    uint64_t timeout_us = (uint64_t)subscriber->config.timeout_ms * 1000;

    if (timeout_us == 0) timeout_us = 1000;
    if (subscriber->pending.n == 0 && timeout_us < SUBSCRIBER_IDLE_US_MIN) timeout_us = SUBSCRIBER_IDLE_US_MIN;
    return subscriber->heard_us + timeout_us;
}

/* ---- asking ---- */

/* One command; its answer comes behind those to all earlier ones. */
static int ask(struct subscriber *subscriber, enum pending_kind kind, const char *channel, size_t length)
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
    if (fault == BYTES_FINE) fault = pending_push(&subscriber->pending, kind, channel, length);
    if (fault != BYTES_FINE) {
        bytes_cut(out, mark);
        return fault == BYTES_FULL ? SUBSCRIBER_FULL : SUBSCRIBER_NOMEM;
    }
    if (subscriber->pending.n == 1) {
        subscriber->heard_us = link_now_us(&subscriber->link);
        link_arm_by(&subscriber->link, silence_ends_us(subscriber));
    }
    conn_wake(&subscriber->link.conn);
    return SUBSCRIBER_ASKED;
}

/* ---- answers ---- */

static void misfit(struct subscriber *subscriber)
{
    link_drop(&subscriber->link, FAULT_PROTO, "a reply that nobody asked for");
}

/* Takes the oldest pending command where this answers it; else false. */
static bool answers(struct subscriber *subscriber, enum pending_kind kind, const struct reply_item *channel,
                    bool *ret_muted)
{
    struct pending_entry entry;

    if (subscriber->pending.n == 0) return false;
    entry = pending_first(&subscriber->pending);
    *ret_muted = entry.kind == PENDING_MUTED;
    if (entry.kind != kind && !(*ret_muted && kind == PENDING_LISTEN)) return false;
    if (channel != NULL &&
        (channel->length != entry.length || memcmp(channel->text, entry.channel, entry.length) != 0))
        return false;
    pending_pop(&subscriber->pending);
    return true;
}

static void on_pong(struct subscriber *subscriber)
{
    bool muted = false;

    if (!answers(subscriber, PENDING_PING, NULL, &muted)) misfit(subscriber);
}

/* "subscribe" or "unsubscribe", the channel, how many there are now. */
static void on_confirmed(struct subscriber *subscriber, enum pending_kind kind,
                         const struct reply_item *channel)
{
    bool muted = false;

    if (!answers(subscriber, kind, channel, &muted))
        misfit(subscriber);
    else if (kind == PENDING_LISTEN && !muted && subscriber->events.listening != NULL)
        subscriber->events.listening(subscriber->events.arg, subscriber->config.index, channel->text,
                                     channel->length);
}

static void on_array(struct subscriber *subscriber, const struct reply *raw)
{
    const struct reply_item *items = raw->elements;
    const struct subscriber_events *events = &subscriber->events;

    if (reply_fits(raw, "sss") && reply_is(&items[0], "message")) {
        if (events->message != NULL)
            events->message(events->arg, subscriber->config.index, items[1].text, items[1].length,
                            items[2].text, items[2].length);
    } else if (reply_fits(raw, "ssi") && reply_is(&items[0], "subscribe")) {
        on_confirmed(subscriber, PENDING_LISTEN, &items[1]);
    } else if (reply_fits(raw, "ssi") && reply_is(&items[0], "unsubscribe")) {
        on_confirmed(subscriber, PENDING_FORGET, &items[1]);
    } else if (raw->n_elements == 2 && items[0].type == REPLY_STRING && reply_is(&items[0], "pong")) {
        on_pong(subscriber);
    } else {
        misfit(subscriber);
    }
}

/* Only the pending list has the name, and the callback may change the list. */
static void refuse(struct subscriber *subscriber, const struct pending_entry *entry, const char *why)
{
    char *channel = alloc_text(&subscriber->alloc, entry->channel, entry->length);
    size_t length = entry->length;
    uint32_t connection = subscriber->link.connection;

    if (channel == NULL) {
        link_drop_nomem(&subscriber->link);
        return;
    }
    pending_pop(&subscriber->pending);
    if (strcmp(subscriber->refusal, why) != 0) {
        snprintf(subscriber->refusal, sizeof(subscriber->refusal), "%s", why);
        link_log(&subscriber->link, QUORLOCK_LOG_WARN, "%s; waiters ask again now and then instead", why);
    }
    if (link_is_on(&subscriber->link, connection) && subscriber->events.refused != NULL)
        subscriber->events.refused(subscriber->events.arg, subscriber->config.index, channel, length, why);
    alloc_free(&subscriber->alloc, channel);
}

static void on_error(struct subscriber *subscriber, const struct reply_item *item)
{
    struct error_class class = error_classify(item->text, item->length);
    bool asked = subscriber->pending.n > 0, listens;
    struct pending_entry entry = {.kind = PENDING_PING};
    const char *what = asked ? "PING" : "an error that nobody asked for";
    char why[LINK_TEXT_SIZE];

    if (asked) entry = pending_first(&subscriber->pending);
    listens = entry.kind == PENDING_LISTEN || entry.kind == PENDING_MUTED;
    handshake_describe(subscriber->config.uri, listens ? "SUBSCRIBE" : what, item, why, sizeof(why));
    /* BUSY ends some time: a new connection opens after that. Any reply to a PING is a sign of life, and a
     * forget is not vital. */
    if (!asked || reply_begins(item, "NOAUTH") || (listens && class.fault == FAULT_TEMPORARY))
        link_drop(&subscriber->link, class.fault, why);
    else if (entry.kind == PENDING_LISTEN)
        refuse(subscriber, &entry, why);
    else
        pending_pop(&subscriber->pending);
}

static void on_reply(void *arg, const struct reply *raw)
{
    struct subscriber *subscriber = arg;
    const struct reply_item *self = &raw->self;

    if (self->type == REPLY_ARRAY)
        on_array(subscriber, raw);
    else if (self->type == REPLY_ERROR)
        on_error(subscriber, self);
    else if (self->type == REPLY_STATUS && reply_is(self, "PONG"))
        on_pong(subscriber); /* while nothing is subscribed */
    else
        misfit(subscriber);
}

/* ---- the connection ---- */

static void on_connected(void *arg)
{
    struct subscriber *subscriber = arg;
    struct redis_link *link = &subscriber->link;

    handshake_greet(&link->handshake, &link->conn.out, subscriber->config.uri, link->client_name);
}

static void on_greeted(void *arg)
{
    struct subscriber *subscriber = arg;
    uint32_t connection = subscriber->link.connection;

    link_open(&subscriber->link);
    subscriber->heard_us = link_now_us(&subscriber->link);
    subscriber->why[0] = subscriber->logged[0] = '\0';
    (void)link_arm(&subscriber->link, silence_ends_us(subscriber));
    link_log(&subscriber->link, QUORLOCK_LOG_DEBUG, "open");
    if (link_is_on(&subscriber->link, connection) && subscriber->events.open != NULL)
        subscriber->events.open(subscriber->events.arg, subscriber->config.index);
}

static void on_heard(void *arg)
{
    struct subscriber *subscriber = arg;

    subscriber->heard_us = link_now_us(&subscriber->link);
}

/* Too long a silence: first a PING, then the end. */
static void on_due(void *arg)
{
    struct subscriber *subscriber = arg;
    uint64_t until_us = silence_ends_us(subscriber);
    char why[LINK_TEXT_SIZE];

    if (link_now_us(&subscriber->link) < until_us) {
        (void)link_arm(&subscriber->link, until_us);
    } else if (subscriber->pending.n > 0) {
        snprintf(why, sizeof(why), "no answer within %u ms: frozen, or cut off",
                 (unsigned)subscriber->config.timeout_ms);
        link_drop(&subscriber->link, FAULT_UNREACHABLE, why);
    } else if (ask(subscriber, PENDING_PING, NULL, 0) != SUBSCRIBER_ASKED) {
        link_drop_nomem(&subscriber->link);
    }
}

/* A server that refuses a user will still refuse it a moment later. */
static bool waits_long(void *arg, enum fault fault)
{
    (void)arg;
    return fault == FAULT_AUTH;
}

/* The node reports what is wrong with a server or the network; here it only delays notices. */
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

static void on_closed(void *arg, bool was_open, enum fault fault, const char *why)
{
    struct subscriber *subscriber = arg;
    uint32_t connection = subscriber->link.connection;

    pending_forget_all(&subscriber->pending);
    snprintf(subscriber->why, sizeof(subscriber->why), "%s", why);
    log_end(subscriber, fault, why);
    if (was_open && link_is_on(&subscriber->link, connection) && subscriber->events.closed != NULL)
        subscriber->events.closed(subscriber->events.arg, subscriber->config.index, why);
}

static void on_ended(void *arg)
{
    struct subscriber *subscriber = arg;
    struct alloc alloc = subscriber->alloc;

    pending_clear(&subscriber->pending);
    alloc_free(&alloc, subscriber);
}

/* ---- what the owner calls ---- */

static const struct link_events subscriber_link_events = {
    .connected = on_connected,
    .greeted = on_greeted,
    .heard = on_heard,
    .reply = on_reply,
    .due = on_due,
    .waits_long = waits_long,
    .closed = on_closed,
    .ended = on_ended,
};

struct subscriber *subscriber_new(struct system *system, const struct alloc *alloc,
                                  const struct subscriber_config *config,
                                  const struct subscriber_events *events)
{
    const struct link_config link = {.uri = config->uri,
                                     .topic = "release notices: ",
                                     .client_name =
                                         config->client_name != NULL ? config->client_name : SUBSCRIBER_NAME,
                                     .timeout_ms = config->timeout_ms,
                                     .user_timeout_ms = config->timeout_ms,
                                     .steps_end_us = LINK_NEVER,
                                     .reconnect_min_ms = config->reconnect_min_ms,
                                     .reconnect_max_ms = config->reconnect_max_ms,
                                     .now_us = config->now_us,
                                     .now_arg = config->now_arg,
                                     .log = events->log,
                                     .log_arg = events->arg};
    struct subscriber *subscriber = alloc_zero(alloc, sizeof(*subscriber));

    if (subscriber == NULL) return NULL;
    subscriber->alloc = *alloc;
    subscriber->config = *config;
    subscriber->events = *events;
    snprintf(subscriber->why, sizeof(subscriber->why), "stopped");
    pending_init(&subscriber->pending, &subscriber->alloc, CONN_OUT_MAX);
    if (link_init(&subscriber->link, system, &subscriber->alloc, &link, &subscriber_link_events, subscriber))
        return subscriber;
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
    snprintf(subscriber->why, sizeof(subscriber->why), "connecting");
    (void)link_start(&subscriber->link);
}

void subscriber_stop(struct subscriber *subscriber)
{
    if (subscriber->link.dead || subscriber->link.step == LINK_STOPPED) return;
    link_stop(&subscriber->link);
    pending_forget_all(&subscriber->pending);
    snprintf(subscriber->why, sizeof(subscriber->why), "stopped");
}

bool subscriber_is_open(const struct subscriber *subscriber)
{
    return link_is_open(&subscriber->link);
}

const char *subscriber_why(const struct subscriber *subscriber)
{
    return subscriber->why;
}

int subscriber_listen(struct subscriber *subscriber, const char *channel, size_t length)
{
    if (!subscriber_is_open(subscriber)) return SUBSCRIBER_NOT_OPEN;
    if (length > SUBSCRIBER_CHANNEL_MAX) return SUBSCRIBER_FULL;
    return ask(subscriber, PENDING_LISTEN, channel, length);
}

void subscriber_forget(struct subscriber *subscriber, const char *channel, size_t length)
{
    if (!subscriber_is_open(subscriber) || length > SUBSCRIBER_CHANNEL_MAX) return;
    pending_mute(&subscriber->pending, channel, length);
    (void)ask(subscriber, PENDING_FORGET, channel, length);
}
