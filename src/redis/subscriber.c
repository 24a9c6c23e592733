/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * subscriber.c - the life of a connection for notices
 *
 *   STOPPED <--> PAUSE --> RESOLVE --> TCP --> HANDSHAKE --> OPEN
 *                  ^          |         |          |           |
 *                  +----------+---------+----------+-----------+  subscriber_drop()
 *
 * As in a node, every entry from the loop stands between subscriber_enter() and subscriber_leave(), and after
 * every callback subscriber_is_on() says whether the connection, or the subscriber, is still there.
 */
#include "redis/subscriber.h"

#include <assert.h>
#include <event2/event.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "redis/link/conn.h"
#include "redis/link/dial.h"
#include "redis/link/handshake.h"
#include "redis/link/retry.h"
#include "redis/link/uri.h"
#include "redis/pending.h"
#include "redis/wire/errors.h"
#include "redis/wire/reply.h"

#define SUBSCRIBER_TEXT_SIZE   480
#define SUBSCRIBER_READ_SIZE   16384
#define SUBSCRIBER_READS_MAX   64      /* of one event, so that a talkative server does not starve the others */
#define SUBSCRIBER_IDLE_US_MIN 1000000 /* of silence, before a PING */
#define SUBSCRIBER_NAME        "quorlock-notices"

enum subscriber_state {
    SUBSCRIBER_STOPPED,
    SUBSCRIBER_PAUSE,
    SUBSCRIBER_RESOLVE,
    SUBSCRIBER_TCP,
    SUBSCRIBER_HANDSHAKE,
    SUBSCRIBER_OPEN,
};

struct subscriber {
    struct alloc alloc;
    struct subscriber_config config;
    struct subscriber_events events;
    char *client_name;

    enum subscriber_state state;
    char why[SUBSCRIBER_TEXT_SIZE];
    char told[SUBSCRIBER_TEXT_SIZE];    /* the fault that was logged last, since it was open */
    char refusal[SUBSCRIBER_TEXT_SIZE]; /* the refusal that was logged last */
    uint32_t connection;                /* counts all of them, to see that one ended meanwhile */
    uint32_t depth;                     /* entries from the loop on the stack */
    bool dead;

    struct event *timer;
    uint64_t timer_us; /* what it is armed for; UINT64_MAX: nothing */
    uint64_t step_us;  /* when the present step ends, or the pause */
    uint64_t open_us;
    uint64_t heard_us; /* the latest sign of life, or when the oldest question was asked after it */
    struct retry retry;
    struct dial dial;
    struct conn conn;
    struct reply_parser parser;
    struct handshake handshake;
    struct pending pending;
};

static uint64_t subscriber_now(const struct subscriber *subscriber)
{
    return subscriber->config.now_us(subscriber->config.now_arg);
}

static void subscriber_destroy(struct subscriber *subscriber)
{
    struct alloc alloc = subscriber->alloc;
    conn_clear(&subscriber->conn);
    dial_cancel(&subscriber->dial);
    if (subscriber->timer) event_free(subscriber->timer);
    reply_clear(&subscriber->parser);
    pending_clear(&subscriber->pending);
    alloc_free(&alloc, subscriber->client_name);
    alloc_free(&alloc, subscriber);
}

static void subscriber_enter(struct subscriber *subscriber)
{
    subscriber->depth++;
}

static void subscriber_leave(struct subscriber *subscriber)
{
    assert(subscriber->depth);
    subscriber->depth--;
    if (!subscriber->depth && subscriber->dead) subscriber_destroy(subscriber);
}

static bool subscriber_is_on(const struct subscriber *subscriber, uint32_t connection)
{
    return !subscriber->dead && subscriber->connection == connection;
}

__attribute__((format(printf, 3, 4))) static void subscriber_log(struct subscriber *subscriber, int level,
                                                                 const char *format, ...)
{
    char text[SUBSCRIBER_TEXT_SIZE], line[SUBSCRIBER_TEXT_SIZE + 128];
    if (!subscriber->events.log || subscriber->dead) return;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(line, sizeof line, "%s: release notices: %s", subscriber->config.uri->name, text);
    subscriber->events.log(subscriber->events.arg, level, line);
}

/* ---- time ---- */

static void subscriber_arm(struct subscriber *subscriber, uint64_t wake_us)
{
    if (subscriber->dead) return;
    uint64_t now_us = subscriber_now(subscriber);
    uint64_t delay_us = wake_us > now_us ? wake_us - now_us : 0;
    struct timeval delay = {.tv_sec = (time_t)(delay_us / 1000000),
                            .tv_usec = (suseconds_t)(delay_us % 1000000)};
    subscriber->timer_us = wake_us;
    if (event_add(subscriber->timer, &delay) != 0)
        subscriber_log(subscriber, QUORLOCK_LOG_ERROR, "no memory for a timer");
}

static uint64_t subscriber_timeout_us(const struct subscriber *subscriber)
{
    return subscriber->config.timeout_ms ? (uint64_t)subscriber->config.timeout_ms * 1000 : 1000;
}

static void subscriber_step(struct subscriber *subscriber, enum subscriber_state state)
{
    subscriber->state = state;
    subscriber->step_us = subscriber_now(subscriber) + subscriber_timeout_us(subscriber);
    subscriber_arm(subscriber, subscriber->step_us);
}

/* Until when an open connection may be silent: then it is asked, or left. */
static uint64_t subscriber_silence_ends_us(const struct subscriber *subscriber)
{
    uint64_t timeout_us = subscriber_timeout_us(subscriber);
    if (!subscriber->pending.n && timeout_us < SUBSCRIBER_IDLE_US_MIN) timeout_us = SUBSCRIBER_IDLE_US_MIN;
    return subscriber->heard_us + timeout_us;
}

/* ---- the end of a connection ---- */

static void subscriber_hang_up(struct subscriber *subscriber)
{
    conn_close(&subscriber->conn);
    dial_cancel(&subscriber->dial);
    pending_forget_all(&subscriber->pending);
    subscriber->connection++;
}

/* What a server or the network does is the node's to report; here it only delays notices. */
static void subscriber_log_end(struct subscriber *subscriber, enum node_fault fault, const char *why)
{
    if (fault == NODE_FAULT_UNREACHABLE || fault == NODE_FAULT_TEMPORARY) {
        subscriber_log(subscriber, QUORLOCK_LOG_DEBUG, "%s", why);
        return;
    }
    if (strcmp(subscriber->told, why) == 0) return;
    snprintf(subscriber->told, sizeof subscriber->told, "%s", why);
    subscriber_log(subscriber, QUORLOCK_LOG_WARN, "%s", why);
}

static void subscriber_drop(struct subscriber *subscriber, enum node_fault fault, const char *reason)
{
    char why[SUBSCRIBER_TEXT_SIZE];
    bool was_open = subscriber->state == SUBSCRIBER_OPEN;
    uint64_t now_us = subscriber_now(subscriber);
    snprintf(why, sizeof why, "%s", reason);
    subscriber_hang_up(subscriber);
    subscriber->state = SUBSCRIBER_PAUSE;
    snprintf(subscriber->why, sizeof subscriber->why, "%s", why);
    /* Who is not let in will not be let in a moment later. */
    subscriber->step_us =
        now_us + (fault == NODE_FAULT_AUTH
                      ? retry_longest_us(&subscriber->retry)
                      : retry_pause_us(&subscriber->retry, was_open ? now_us - subscriber->open_us : 0));
    subscriber_arm(subscriber, subscriber->step_us);
    uint32_t connection = subscriber->connection;
    subscriber_log_end(subscriber, fault, why);
    if (was_open && subscriber_is_on(subscriber, connection) && subscriber->events.closed)
        subscriber->events.closed(subscriber->events.arg, subscriber->config.index, why);
}

static void subscriber_drop_nomem(struct subscriber *subscriber)
{
    subscriber_drop(subscriber, NODE_FAULT_LIMIT, "out of memory");
}

static void subscriber_drop_errno(struct subscriber *subscriber, int error)
{
    char why[SUBSCRIBER_TEXT_SIZE];
    const char *where = subscriber->state == SUBSCRIBER_HANDSHAKE ? " during the handshake" : "";
    if (error)
        snprintf(why, sizeof why, "connection lost%s: %s", where, strerror(error));
    else
        snprintf(why, sizeof why, "the server closed the connection%s", where);
    subscriber_drop(subscriber, NODE_FAULT_UNREACHABLE, why);
}

static void subscriber_drop_malformed(struct subscriber *subscriber, const char *reason)
{
    char why[SUBSCRIBER_TEXT_SIZE];
    bool during = subscriber->state == SUBSCRIBER_HANDSHAKE;
    handshake_malformed(&subscriber->handshake, during, reason, why, sizeof why);
    subscriber_drop(subscriber, NODE_FAULT_PROTO, why);
}

/* ---- asking ---- */

/* One command; its answer is awaited behind all that was asked before. */
static int subscriber_ask(struct subscriber *subscriber, enum pending_kind kind, const char *channel,
                          size_t length)
{
    struct bytes *out = &subscriber->conn.out;
    size_t mark = out->used;
    if (kind == PENDING_PING) {
        bytes_command(out, 1);
        bytes_text(out, "PING");
    } else {
        bytes_command(out, 2);
        bytes_text(out, kind == PENDING_LISTEN ? "SUBSCRIBE" : "UNSUBSCRIBE");
        bytes_word(out, channel, length);
    }
    enum bytes_fault fault = out->fault;
    if (!fault) fault = pending_push(&subscriber->pending, kind, channel, length);
    if (fault) {
        bytes_cut(out, mark);
        return fault == BYTES_FULL ? SUBSCRIBER_FULL : SUBSCRIBER_NOMEM;
    }
    if (subscriber->pending.n == 1) {
        subscriber->heard_us = subscriber_now(subscriber);
        /* The timer only ever moves nearer here; when it fires it looks again. */
        uint64_t wake_us = subscriber_silence_ends_us(subscriber);
        if (wake_us < subscriber->timer_us) subscriber_arm(subscriber, wake_us);
    }
    conn_wake(&subscriber->conn);
    return SUBSCRIBER_ASKED;
}

/* ---- answers ---- */

static void subscriber_misfit(struct subscriber *subscriber)
{
    subscriber_drop(subscriber, NODE_FAULT_PROTO, "a reply that nobody asked for");
}

static bool subscriber_is_word(const struct reply_item *item, const char *word)
{
    size_t length = strlen(word);
    return item->length == length && memcmp(item->text, word, length) == 0;
}

/* Takes the oldest question where this answers it; else false. */
static bool subscriber_answers(struct subscriber *subscriber, enum pending_kind kind,
                               const struct reply_item *channel, bool *ret_muted)
{
    if (!subscriber->pending.n) return false;
    struct pending_entry entry = pending_first(&subscriber->pending);
    *ret_muted = entry.kind == PENDING_MUTED;
    if (entry.kind != kind && !(*ret_muted && kind == PENDING_LISTEN)) return false;
    if (channel && (channel->length != entry.length || memcmp(channel->text, entry.channel, entry.length) != 0))
        return false;
    pending_pop(&subscriber->pending);
    return true;
}

static void subscriber_on_pong(struct subscriber *subscriber)
{
    bool muted = false;
    if (!subscriber_answers(subscriber, PENDING_PING, NULL, &muted)) subscriber_misfit(subscriber);
}

/* "subscribe" or "unsubscribe", the channel, how many there are now. */
static void subscriber_on_confirmed(struct subscriber *subscriber, enum pending_kind kind,
                                    const struct reply_item *channel)
{
    bool muted = false;
    if (!subscriber_answers(subscriber, kind, channel, &muted))
        subscriber_misfit(subscriber);
    else if (kind == PENDING_LISTEN && !muted && subscriber->events.listening)
        subscriber->events.listening(subscriber->events.arg, subscriber->config.index, channel->text,
                                     channel->length);
}

static void subscriber_on_array(struct subscriber *subscriber, const struct reply *raw)
{
    const struct reply_item *items = raw->elements;
    const struct subscriber_events *events = &subscriber->events;
    bool named = raw->n_elements && items[0].type == REPLY_STRING;
    bool of_channel = named && raw->n_elements == 3 && items[1].type == REPLY_STRING;
    if (of_channel && items[2].type == REPLY_STRING && subscriber_is_word(&items[0], "message")) {
        if (events->message)
            events->message(events->arg, subscriber->config.index, items[1].text, items[1].length,
                            items[2].text, items[2].length);
    } else if (of_channel && items[2].type == REPLY_INTEGER && subscriber_is_word(&items[0], "subscribe")) {
        subscriber_on_confirmed(subscriber, PENDING_LISTEN, &items[1]);
    } else if (of_channel && items[2].type == REPLY_INTEGER && subscriber_is_word(&items[0], "unsubscribe")) {
        subscriber_on_confirmed(subscriber, PENDING_FORGET, &items[1]);
    } else if (named && raw->n_elements == 2 && subscriber_is_word(&items[0], "pong")) {
        subscriber_on_pong(subscriber);
    } else {
        subscriber_misfit(subscriber);
    }
}

static void subscriber_describe(const struct subscriber *subscriber, const char *what,
                                const struct reply_item *item, char *ret, size_t size)
{
    if (uri_tells_password(subscriber->config.uri, item->text, item->length))
        snprintf(ret, size, "%s: refused", what);
    else
        error_describe(ret, size, what, item->text, item->length);
}

/* The name is only in our list, which the callback may change. */
static void subscriber_refuse(struct subscriber *subscriber, const struct pending_entry *entry, const char *why)
{
    char *channel = alloc_text(&subscriber->alloc, entry->channel, entry->length);
    size_t length = entry->length;
    if (!channel) {
        subscriber_drop_nomem(subscriber);
        return;
    }
    pending_pop(&subscriber->pending);
    uint32_t connection = subscriber->connection;
    if (strcmp(subscriber->refusal, why) != 0) {
        snprintf(subscriber->refusal, sizeof subscriber->refusal, "%s", why);
        subscriber_log(subscriber, QUORLOCK_LOG_WARN, "%s; waiters ask again now and then instead", why);
    }
    if (subscriber_is_on(subscriber, connection) && subscriber->events.refused)
        subscriber->events.refused(subscriber->events.arg, subscriber->config.index, channel, length, why);
    alloc_free(&subscriber->alloc, channel);
}

static void subscriber_on_error(struct subscriber *subscriber, const struct reply_item *item)
{
    char why[SUBSCRIBER_TEXT_SIZE];
    struct error_class class = error_classify(item->text, item->length);
    struct pending_entry entry = {.kind = PENDING_PING};
    if (subscriber->pending.n) entry = pending_first(&subscriber->pending);
    bool is_listen = entry.kind == PENDING_LISTEN || entry.kind == PENDING_MUTED;
    const char *what = is_listen               ? "SUBSCRIBE"
                       : subscriber->pending.n ? "PING"
                                               : "an error that nobody asked for";
    subscriber_describe(subscriber, what, item, why, sizeof why);
    bool noauth = item->length >= 6 && memcmp(item->text, "NOAUTH", 6) == 0;
    /* BUSY passes: a new connection is open when it has passed. */
    if (!subscriber->pending.n || noauth || (is_listen && class.fault == NODE_FAULT_TEMPORARY))
        subscriber_drop(subscriber, class.fault, why);
    else if (entry.kind == PENDING_LISTEN)
        subscriber_refuse(subscriber, &entry, why);
    else
        pending_pop(&subscriber->pending); /* whatever it says to a PING, it lives; a forget was not vital */
}

static void subscriber_on_notice(struct subscriber *subscriber, const struct reply *raw)
{
    const struct reply_item *self = &raw->self;
    switch (self->type) {
    case REPLY_ARRAY: subscriber_on_array(subscriber, raw); break;
    case REPLY_ERROR: subscriber_on_error(subscriber, self); break;
    case REPLY_STATUS:
        /* So is a PING answered where nothing is subscribed. */
        if (subscriber_is_word(self, "PONG"))
            subscriber_on_pong(subscriber);
        else
            subscriber_misfit(subscriber);
        break;
    case REPLY_NIL:
    case REPLY_INTEGER:
    case REPLY_STRING: subscriber_misfit(subscriber); break;
    }
}

static void subscriber_on_handshake_reply(struct subscriber *subscriber, const struct reply *raw)
{
    switch (handshake_reply(&subscriber->handshake, raw)) {
    case HANDSHAKE_MORE: break;
    case HANDSHAKE_FAILED:
        subscriber_drop(subscriber, subscriber->handshake.fault, subscriber->handshake.why);
        break;
    case HANDSHAKE_DONE: {
        uint32_t connection = subscriber->connection;
        subscriber->state = SUBSCRIBER_OPEN;
        subscriber->open_us = subscriber->heard_us = subscriber_now(subscriber);
        subscriber->why[0] = subscriber->told[0] = '\0';
        subscriber_arm(subscriber, subscriber_silence_ends_us(subscriber));
        subscriber_log(subscriber, QUORLOCK_LOG_DEBUG, "open");
        if (subscriber_is_on(subscriber, connection) && subscriber->events.open)
            subscriber->events.open(subscriber->events.arg, subscriber->config.index);
        break;
    }
    }
}

/* All whole replies in these bytes. Afterwards the connection, or the subscriber, may be gone. */
static void subscriber_feed(struct subscriber *subscriber, const char *data, size_t length)
{
    uint32_t connection = subscriber->connection;
    subscriber->heard_us = subscriber_now(subscriber);
    handshake_hear(&subscriber->handshake, data, length);
    reply_feed(&subscriber->parser, data, length);
    do {
        const struct reply *raw = NULL;
        const char *why = NULL;
        switch (reply_next(&subscriber->parser, &raw, &why)) {
        case REPLY_NONE: return;
        case REPLY_BAD: subscriber_drop_malformed(subscriber, why); return;
        case REPLY_NOMEM: subscriber_drop_nomem(subscriber); return;
        case REPLY_READY: break;
        }
        if (subscriber->state == SUBSCRIBER_OPEN)
            subscriber_on_notice(subscriber, raw);
        else
            subscriber_on_handshake_reply(subscriber, raw);
    } while (subscriber_is_on(subscriber, connection));
}

static void subscriber_drain(struct subscriber *subscriber)
{
    char buffer[SUBSCRIBER_READ_SIZE];
    uint32_t connection = subscriber->connection;
    for (int i = 0; i < SUBSCRIBER_READS_MAX; i++) {
        ssize_t n = conn_read(&subscriber->conn, buffer, sizeof buffer);
        if (n == 0) return;
        if (n < 0) {
            subscriber_drop_errno(subscriber, subscriber->conn.error);
            return;
        }
        subscriber_feed(subscriber, buffer, (size_t)n);
        if (!subscriber_is_on(subscriber, connection) || (size_t)n < sizeof buffer) return;
    }
}

/* ---- connecting ---- */

static void subscriber_follow(struct subscriber *subscriber, enum dial_result result)
{
    switch (result) {
    case DIAL_RESOLVING: subscriber_step(subscriber, SUBSCRIBER_RESOLVE); break;
    case DIAL_CONNECTING: subscriber_step(subscriber, SUBSCRIBER_TCP); break;
    case DIAL_FAILED: subscriber_drop(subscriber, NODE_FAULT_UNREACHABLE, subscriber->dial.why); break;
    case DIAL_NOMEM: subscriber_drop_nomem(subscriber); break;
    }
}

static void subscriber_fail_address(struct subscriber *subscriber, const char *problem)
{
    conn_close(&subscriber->conn);
    dial_blame(&subscriber->dial, problem);
    subscriber_follow(subscriber, dial_next(&subscriber->dial));
}

static void subscriber_on_resolved(void *arg)
{
    struct subscriber *subscriber = arg;
    subscriber_enter(subscriber);
    subscriber_follow(subscriber, dial_next(&subscriber->dial));
    subscriber_leave(subscriber);
}

static void subscriber_on_connected(struct subscriber *subscriber)
{
    int error = conn_finish(&subscriber->conn);
    struct bytes *out = &subscriber->conn.out;
    if (error) {
        subscriber_fail_address(subscriber, strerror(error));
        return;
    }
    if (reply_open(&subscriber->parser)) {
        const char *name = subscriber->client_name ? subscriber->client_name : SUBSCRIBER_NAME;
        handshake_greet(&subscriber->handshake, out, subscriber->config.uri, name);
        conn_secret(&subscriber->conn);
        if (!out->fault) {
            conn_wake(&subscriber->conn);
            subscriber_step(subscriber, SUBSCRIBER_HANDSHAKE);
            return;
        }
    }
    subscriber_drop_nomem(subscriber);
}

static void subscriber_on_step_timer(struct subscriber *subscriber)
{
    char why[SUBSCRIBER_TEXT_SIZE];
    unsigned timeout_ms = subscriber->config.timeout_ms;
    switch (subscriber->state) {
    case SUBSCRIBER_PAUSE: subscriber_follow(subscriber, dial_begin(&subscriber->dial)); break;
    case SUBSCRIBER_RESOLVE:
        snprintf(why, sizeof why, "cannot resolve %s: no answer within %u ms", subscriber->config.uri->host,
                 timeout_ms);
        subscriber_drop(subscriber, NODE_FAULT_UNREACHABLE, why);
        break;
    case SUBSCRIBER_TCP:
        snprintf(why, sizeof why, "no answer within %u ms", timeout_ms);
        subscriber_fail_address(subscriber, why);
        break;
    case SUBSCRIBER_HANDSHAKE:
        snprintf(why, sizeof why, "no answer to the handshake within %u ms: frozen, or not a Redis server",
                 timeout_ms);
        subscriber_drop(subscriber, NODE_FAULT_UNREACHABLE, why);
        break;
    case SUBSCRIBER_STOPPED:
    case SUBSCRIBER_OPEN: break;
    }
}

/* Its silence has lasted: asked about it, it must answer. */
static void subscriber_on_silence(struct subscriber *subscriber)
{
    if (subscriber->pending.n) {
        char why[SUBSCRIBER_TEXT_SIZE];
        snprintf(why, sizeof why, "no answer within %u ms: frozen, or cut off",
                 (unsigned)subscriber->config.timeout_ms);
        subscriber_drop(subscriber, NODE_FAULT_UNREACHABLE, why);
    } else if (subscriber_ask(subscriber, PENDING_PING, NULL, 0) != SUBSCRIBER_ASKED) {
        subscriber_drop_nomem(subscriber);
    }
}

/* A timer may fire early, and a process that was stopped finds its notices waiting: read first, then judge. */
static void subscriber_on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct subscriber *subscriber = arg;
    (void)fd;
    (void)what;
    subscriber_enter(subscriber);
    subscriber->timer_us = UINT64_MAX;
    uint32_t connection = subscriber->connection;
    if (subscriber->state == SUBSCRIBER_OPEN || subscriber->state == SUBSCRIBER_HANDSHAKE)
        subscriber_drain(subscriber);
    /* A connection that ended meanwhile has armed the timer anew. */
    if (subscriber_is_on(subscriber, connection)) {
        bool open = subscriber->state == SUBSCRIBER_OPEN;
        uint64_t until_us = open ? subscriber_silence_ends_us(subscriber) : subscriber->step_us;
        if (subscriber_now(subscriber) < until_us)
            subscriber_arm(subscriber, until_us);
        else if (open)
            subscriber_on_silence(subscriber);
        else
            subscriber_on_step_timer(subscriber);
    }
    subscriber_leave(subscriber);
}

static void subscriber_on_conn(void *arg, enum conn_ready ready)
{
    struct subscriber *subscriber = arg;
    subscriber_enter(subscriber);
    uint32_t connection = subscriber->connection;
    int error = subscriber->conn.error;
    if (ready == CONN_CONNECTED)
        subscriber_on_connected(subscriber);
    else if (ready != CONN_SENT)
        subscriber_drain(subscriber);
    if (ready == CONN_BROKEN && subscriber_is_on(subscriber, connection))
        subscriber_drop_errno(subscriber, error);
    subscriber_leave(subscriber);
}

/* ---- what the owner calls ---- */

struct subscriber *subscriber_new(struct event_base *base, const struct alloc *alloc,
                                  const struct subscriber_config *config,
                                  const struct subscriber_events *events)
{
    struct subscriber *subscriber = alloc_zero(alloc, sizeof *subscriber);
    if (!subscriber) return NULL;
    subscriber->alloc = *alloc;
    subscriber->config = *config;
    subscriber->events = *events;
    subscriber->timer_us = UINT64_MAX;
    snprintf(subscriber->why, sizeof subscriber->why, "stopped");
    reply_init(&subscriber->parser, &subscriber->alloc);
    pending_init(&subscriber->pending, &subscriber->alloc, CONN_OUT_MAX);
    retry_init(&subscriber->retry, config->reconnect_min_ms, config->reconnect_max_ms,
               subscriber_now(subscriber) ^ (uint64_t)(uintptr_t)subscriber);
    dial_init(&subscriber->dial, &subscriber->conn, &subscriber->alloc, config->uri, config->timeout_ms,
              subscriber_on_resolved, subscriber);
    bool fine = conn_init(&subscriber->conn, base, &subscriber->alloc, subscriber_on_conn, subscriber);
    subscriber->timer = event_new(base, -1, 0, subscriber_on_timer, subscriber);
    if (config->client_name) {
        subscriber->client_name = alloc_text(alloc, config->client_name, strlen(config->client_name));
        fine = fine && subscriber->client_name;
    }
    if (fine && subscriber->timer) return subscriber;
    subscriber_destroy(subscriber);
    return NULL;
}

void subscriber_free(struct subscriber *subscriber)
{
    if (!subscriber || subscriber->dead) return;
    subscriber_stop(subscriber);
    subscriber->dead = true;
    /* Else frames of ours are still on the stack; the last of them frees the memory. */
    if (!subscriber->depth) subscriber_destroy(subscriber);
}

void subscriber_start(struct subscriber *subscriber)
{
    if (subscriber->dead || subscriber->state != SUBSCRIBER_STOPPED) return;
    subscriber->state = SUBSCRIBER_PAUSE;
    snprintf(subscriber->why, sizeof subscriber->why, "connecting");
    subscriber_arm(subscriber, subscriber->step_us);
}

void subscriber_stop(struct subscriber *subscriber)
{
    if (subscriber->dead || subscriber->state == SUBSCRIBER_STOPPED) return;
    /* Only a pause outlasts this; after anything else the next try may come at once. */
    if (subscriber->state != SUBSCRIBER_PAUSE) subscriber->step_us = 0;
    subscriber_hang_up(subscriber);
    subscriber->state = SUBSCRIBER_STOPPED;
    snprintf(subscriber->why, sizeof subscriber->why, "stopped");
    subscriber->timer_us = UINT64_MAX;
    event_del(subscriber->timer);
}

bool subscriber_is_open(const struct subscriber *subscriber)
{
    return !subscriber->dead && subscriber->state == SUBSCRIBER_OPEN;
}

const char *subscriber_why(const struct subscriber *subscriber)
{
    return subscriber->why;
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
    pending_mute(&subscriber->pending, channel, length);
    (void)subscriber_ask(subscriber, PENDING_FORGET, channel, length);
}
