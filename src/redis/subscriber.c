/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * subscriber.c - the life of a connection for notices
 *
 *   STOPPED <--> PAUSE --> RESOLVE --> TCP --> HANDSHAKE --> OPEN
 *                  ^          |         |          |           |
 *                  +----------+---------+----------+-----------+  drop()
 *
 * As in a node, every entry from the loop stands between enter() and leave(), and after
 * every callback is_on() says whether the connection, or the subscriber, is still there.
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

static uint64_t now(const struct subscriber *subscriber)
{
    return subscriber->config.now_us(subscriber->config.now_arg);
}

static void destroy(struct subscriber *subscriber)
{
    struct alloc alloc = subscriber->alloc;
    conn_clear(&subscriber->conn);
    dial_cancel(&subscriber->dial);
    if (subscriber->timer != NULL) event_free(subscriber->timer);
    reply_clear(&subscriber->parser);
    pending_clear(&subscriber->pending);
    alloc_free(&alloc, subscriber->client_name);
    alloc_free(&alloc, subscriber);
}

static void enter(struct subscriber *subscriber)
{
    subscriber->depth++;
}

static void leave(struct subscriber *subscriber)
{
    assert(subscriber->depth);
    subscriber->depth--;
    if (!subscriber->depth && subscriber->dead) destroy(subscriber);
}

static bool is_on(const struct subscriber *subscriber, uint32_t connection)
{
    return !subscriber->dead && subscriber->connection == connection;
}

__attribute__((format(printf, 3, 4))) static void subscriber_log(struct subscriber *subscriber, int level,
                                                                 const char *format, ...)
{
    char text[SUBSCRIBER_TEXT_SIZE], line[SUBSCRIBER_TEXT_SIZE + 128];
    if (subscriber->events.log == NULL || subscriber->dead) return;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    snprintf(line, sizeof(line), "%s: release notices: %s", subscriber->config.uri->name, text);
    subscriber->events.log(subscriber->events.arg, level, line);
}

/* ---- time ---- */

static void arm(struct subscriber *subscriber, uint64_t wake_us)
{
    if (subscriber->dead) return;
    uint64_t now_us = now(subscriber);
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
    subscriber->step_us = now(subscriber) + subscriber_timeout_us(subscriber);
    arm(subscriber, subscriber->step_us);
}

/* Until when an open connection may be silent: then it is asked, or left. */
static uint64_t silence_ends_us(const struct subscriber *subscriber)
{
    uint64_t timeout_us = subscriber_timeout_us(subscriber);
    if (!subscriber->pending.n && timeout_us < SUBSCRIBER_IDLE_US_MIN) timeout_us = SUBSCRIBER_IDLE_US_MIN;
    return subscriber->heard_us + timeout_us;
}

/* ---- the end of a connection ---- */

static void hang_up(struct subscriber *subscriber)
{
    conn_close(&subscriber->conn);
    dial_cancel(&subscriber->dial);
    pending_forget_all(&subscriber->pending);
    subscriber->connection++;
}

/* What a server or the network does is the node's to report; here it only delays notices. */
static void log_end(struct subscriber *subscriber, enum node_fault fault, const char *why)
{
    if (fault == NODE_FAULT_UNREACHABLE || fault == NODE_FAULT_TEMPORARY) {
        subscriber_log(subscriber, QUORLOCK_LOG_DEBUG, "%s", why);
        return;
    }
    if (strcmp(subscriber->told, why) == 0) return;
    snprintf(subscriber->told, sizeof(subscriber->told), "%s", why);
    subscriber_log(subscriber, QUORLOCK_LOG_WARN, "%s", why);
}

static void drop(struct subscriber *subscriber, enum node_fault fault, const char *reason)
{
    char why[SUBSCRIBER_TEXT_SIZE];
    bool was_open = subscriber->state == SUBSCRIBER_OPEN;
    uint64_t now_us = now(subscriber);
    snprintf(why, sizeof(why), "%s", reason);
    hang_up(subscriber);
    subscriber->state = SUBSCRIBER_PAUSE;
    snprintf(subscriber->why, sizeof(subscriber->why), "%s", why);
    /* Who is not let in will not be let in a moment later. */
    subscriber->step_us =
        now_us + (fault == NODE_FAULT_AUTH
                      ? retry_longest_us(&subscriber->retry)
                      : retry_pause_us(&subscriber->retry, was_open ? now_us - subscriber->open_us : 0));
    arm(subscriber, subscriber->step_us);
    uint32_t connection = subscriber->connection;
    log_end(subscriber, fault, why);
    if (was_open && is_on(subscriber, connection) && subscriber->events.closed != NULL)
        subscriber->events.closed(subscriber->events.arg, subscriber->config.index, why);
}

static void drop_nomem(struct subscriber *subscriber)
{
    drop(subscriber, NODE_FAULT_LIMIT, "out of memory");
}

static void drop_errno(struct subscriber *subscriber, int error)
{
    char why[SUBSCRIBER_TEXT_SIZE];
    const char *where = subscriber->state == SUBSCRIBER_HANDSHAKE ? " during the handshake" : "";
    if (error)
        snprintf(why, sizeof(why), "connection lost%s: %s", where, strerror(error));
    else
        snprintf(why, sizeof(why), "the server closed the connection%s", where);
    drop(subscriber, NODE_FAULT_UNREACHABLE, why);
}

static void drop_malformed(struct subscriber *subscriber, const char *reason)
{
    char why[SUBSCRIBER_TEXT_SIZE];
    bool during = subscriber->state == SUBSCRIBER_HANDSHAKE;
    handshake_malformed(&subscriber->handshake, during, reason, why, sizeof(why));
    drop(subscriber, NODE_FAULT_PROTO, why);
}

/* ---- asking ---- */

/* One command; its answer is awaited behind all that was asked before. */
static int ask(struct subscriber *subscriber, enum pending_kind kind, const char *channel, size_t length)
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
        subscriber->heard_us = now(subscriber);
        /* The timer only ever moves nearer here; when it fires it looks again. */
        uint64_t wake_us = silence_ends_us(subscriber);
        if (wake_us < subscriber->timer_us) arm(subscriber, wake_us);
    }
    conn_wake(&subscriber->conn);
    return SUBSCRIBER_ASKED;
}

/* ---- answers ---- */

static void misfit(struct subscriber *subscriber)
{
    drop(subscriber, NODE_FAULT_PROTO, "a reply that nobody asked for");
}

static bool is_word(const struct reply_item *item, const char *word)
{
    size_t length = strlen(word);
    return item->length == length && memcmp(item->text, word, length) == 0;
}

/* Takes the oldest question where this answers it; else false. */
static bool answers(struct subscriber *subscriber, enum pending_kind kind, const struct reply_item *channel,
                    bool *ret_muted)
{
    if (!subscriber->pending.n) return false;
    struct pending_entry entry = pending_first(&subscriber->pending);
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
    bool named = raw->n_elements && items[0].type == REPLY_STRING;
    bool of_channel = named && raw->n_elements == 3 && items[1].type == REPLY_STRING;
    if (of_channel && items[2].type == REPLY_STRING && is_word(&items[0], "message")) {
        if (events->message != NULL)
            events->message(events->arg, subscriber->config.index, items[1].text, items[1].length,
                            items[2].text, items[2].length);
    } else if (of_channel && items[2].type == REPLY_INTEGER && is_word(&items[0], "subscribe")) {
        on_confirmed(subscriber, PENDING_LISTEN, &items[1]);
    } else if (of_channel && items[2].type == REPLY_INTEGER && is_word(&items[0], "unsubscribe")) {
        on_confirmed(subscriber, PENDING_FORGET, &items[1]);
    } else if (named && raw->n_elements == 2 && is_word(&items[0], "pong")) {
        on_pong(subscriber);
    } else {
        misfit(subscriber);
    }
}

static void describe(const struct subscriber *subscriber, const char *what, const struct reply_item *item,
                     char *ret, size_t size)
{
    if (uri_tells_password(subscriber->config.uri, item->text, item->length))
        snprintf(ret, size, "%s: refused", what);
    else
        error_describe(ret, size, what, item->text, item->length);
}

/* The name is only in our list, which the callback may change. */
static void refuse(struct subscriber *subscriber, const struct pending_entry *entry, const char *why)
{
    char *channel = alloc_text(&subscriber->alloc, entry->channel, entry->length);
    size_t length = entry->length;
    if (channel == NULL) {
        drop_nomem(subscriber);
        return;
    }
    pending_pop(&subscriber->pending);
    uint32_t connection = subscriber->connection;
    if (strcmp(subscriber->refusal, why) != 0) {
        snprintf(subscriber->refusal, sizeof(subscriber->refusal), "%s", why);
        subscriber_log(subscriber, QUORLOCK_LOG_WARN, "%s; waiters ask again now and then instead", why);
    }
    if (is_on(subscriber, connection) && subscriber->events.refused != NULL)
        subscriber->events.refused(subscriber->events.arg, subscriber->config.index, channel, length, why);
    alloc_free(&subscriber->alloc, channel);
}

static void on_error(struct subscriber *subscriber, const struct reply_item *item)
{
    char why[SUBSCRIBER_TEXT_SIZE];
    struct error_class class = error_classify(item->text, item->length);
    struct pending_entry entry = {.kind = PENDING_PING};
    if (subscriber->pending.n) entry = pending_first(&subscriber->pending);
    bool is_listen = entry.kind == PENDING_LISTEN || entry.kind == PENDING_MUTED;
    const char *what = is_listen               ? "SUBSCRIBE"
                       : subscriber->pending.n ? "PING"
                                               : "an error that nobody asked for";
    describe(subscriber, what, item, why, sizeof(why));
    bool noauth = item->length >= 6 && memcmp(item->text, "NOAUTH", 6) == 0;
    /* BUSY passes: a new connection is open when it has passed. */
    if (!subscriber->pending.n || noauth || (is_listen && class.fault == NODE_FAULT_TEMPORARY))
        drop(subscriber, class.fault, why);
    else if (entry.kind == PENDING_LISTEN)
        refuse(subscriber, &entry, why);
    else
        pending_pop(&subscriber->pending); /* whatever it says to a PING, it lives; a forget was not vital */
}

static void on_notice(struct subscriber *subscriber, const struct reply *raw)
{
    const struct reply_item *self = &raw->self;
    switch (self->type) {
    case REPLY_ARRAY: on_array(subscriber, raw); break;
    case REPLY_ERROR: on_error(subscriber, self); break;
    case REPLY_STATUS:
        /* So is a PING answered where nothing is subscribed. */
        if (is_word(self, "PONG"))
            on_pong(subscriber);
        else
            misfit(subscriber);
        break;
    case REPLY_NIL:
    case REPLY_INTEGER:
    case REPLY_STRING: misfit(subscriber); break;
    }
}

static void on_handshake_reply(struct subscriber *subscriber, const struct reply *raw)
{
    switch (handshake_reply(&subscriber->handshake, raw)) {
    case HANDSHAKE_MORE: break;
    case HANDSHAKE_FAILED: drop(subscriber, subscriber->handshake.fault, subscriber->handshake.why); break;
    case HANDSHAKE_DONE: {
        uint32_t connection = subscriber->connection;
        subscriber->state = SUBSCRIBER_OPEN;
        subscriber->open_us = subscriber->heard_us = now(subscriber);
        subscriber->why[0] = subscriber->told[0] = '\0';
        arm(subscriber, silence_ends_us(subscriber));
        subscriber_log(subscriber, QUORLOCK_LOG_DEBUG, "open");
        if (is_on(subscriber, connection) && subscriber->events.open != NULL)
            subscriber->events.open(subscriber->events.arg, subscriber->config.index);
        break;
    }
    }
}

/* All whole replies in these bytes. Afterwards the connection, or the subscriber, may be gone. */
static void feed(struct subscriber *subscriber, const char *data, size_t length)
{
    uint32_t connection = subscriber->connection;
    subscriber->heard_us = now(subscriber);
    handshake_hear(&subscriber->handshake, data, length);
    reply_feed(&subscriber->parser, data, length);
    do {
        const struct reply *raw = NULL;
        const char *why = NULL;
        switch (reply_next(&subscriber->parser, &raw, &why)) {
        case REPLY_NONE: return;
        case REPLY_BAD: drop_malformed(subscriber, why); return;
        case REPLY_NOMEM: drop_nomem(subscriber); return;
        case REPLY_READY: break;
        }
        if (subscriber->state == SUBSCRIBER_OPEN)
            on_notice(subscriber, raw);
        else
            on_handshake_reply(subscriber, raw);
    } while (is_on(subscriber, connection));
}

static void drain(struct subscriber *subscriber)
{
    char buffer[SUBSCRIBER_READ_SIZE];
    uint32_t connection = subscriber->connection;
    for (int i = 0; i < SUBSCRIBER_READS_MAX; i++) {
        ssize_t n = conn_read(&subscriber->conn, buffer, sizeof(buffer));
        if (n == 0) return;
        if (n < 0) {
            drop_errno(subscriber, subscriber->conn.error);
            return;
        }
        feed(subscriber, buffer, (size_t)n);
        if (!is_on(subscriber, connection) || (size_t)n < sizeof(buffer)) return;
    }
}

/* ---- connecting ---- */

static void follow(struct subscriber *subscriber, enum dial_result result)
{
    switch (result) {
    case DIAL_RESOLVING: subscriber_step(subscriber, SUBSCRIBER_RESOLVE); break;
    case DIAL_CONNECTING: subscriber_step(subscriber, SUBSCRIBER_TCP); break;
    case DIAL_FAILED: drop(subscriber, NODE_FAULT_UNREACHABLE, subscriber->dial.why); break;
    case DIAL_NOMEM: drop_nomem(subscriber); break;
    }
}

static void fail_address(struct subscriber *subscriber, const char *problem)
{
    conn_close(&subscriber->conn);
    dial_blame(&subscriber->dial, problem);
    follow(subscriber, dial_next(&subscriber->dial));
}

static void on_resolved(void *arg)
{
    struct subscriber *subscriber = arg;
    enter(subscriber);
    follow(subscriber, dial_next(&subscriber->dial));
    leave(subscriber);
}

static void on_connected(struct subscriber *subscriber)
{
    int error = conn_finish(&subscriber->conn);
    struct bytes *out = &subscriber->conn.out;
    if (error) {
        fail_address(subscriber, strerror(error));
        return;
    }
    if (reply_open(&subscriber->parser)) {
        const char *name = subscriber->client_name != NULL ? subscriber->client_name : SUBSCRIBER_NAME;
        handshake_greet(&subscriber->handshake, out, subscriber->config.uri, name);
        conn_secret(&subscriber->conn);
        if (!out->fault) {
            conn_wake(&subscriber->conn);
            subscriber_step(subscriber, SUBSCRIBER_HANDSHAKE);
            return;
        }
    }
    drop_nomem(subscriber);
}

static void on_step_timer(struct subscriber *subscriber)
{
    char why[SUBSCRIBER_TEXT_SIZE];
    unsigned timeout_ms = subscriber->config.timeout_ms;
    switch (subscriber->state) {
    case SUBSCRIBER_PAUSE: follow(subscriber, dial_begin(&subscriber->dial)); break;
    case SUBSCRIBER_RESOLVE:
        snprintf(why, sizeof(why), "cannot resolve %s: no answer within %u ms", subscriber->config.uri->host,
                 timeout_ms);
        drop(subscriber, NODE_FAULT_UNREACHABLE, why);
        break;
    case SUBSCRIBER_TCP:
        snprintf(why, sizeof(why), "no answer within %u ms", timeout_ms);
        fail_address(subscriber, why);
        break;
    case SUBSCRIBER_HANDSHAKE:
        snprintf(why, sizeof(why), "no answer to the handshake within %u ms: frozen, or not a Redis server",
                 timeout_ms);
        drop(subscriber, NODE_FAULT_UNREACHABLE, why);
        break;
    case SUBSCRIBER_STOPPED:
    case SUBSCRIBER_OPEN: break;
    }
}

/* Its silence has lasted: asked about it, it must answer. */
static void on_silence(struct subscriber *subscriber)
{
    if (subscriber->pending.n) {
        char why[SUBSCRIBER_TEXT_SIZE];
        snprintf(why, sizeof(why), "no answer within %u ms: frozen, or cut off",
                 (unsigned)subscriber->config.timeout_ms);
        drop(subscriber, NODE_FAULT_UNREACHABLE, why);
    } else if (ask(subscriber, PENDING_PING, NULL, 0) != SUBSCRIBER_ASKED) {
        drop_nomem(subscriber);
    }
}

/* A timer may fire early, and a process that was stopped finds its notices waiting: read first, then judge. */
static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct subscriber *subscriber = arg;
    (void)fd;
    (void)what;
    enter(subscriber);
    subscriber->timer_us = UINT64_MAX;
    uint32_t connection = subscriber->connection;
    if (subscriber->state == SUBSCRIBER_OPEN || subscriber->state == SUBSCRIBER_HANDSHAKE) drain(subscriber);
    /* A connection that ended meanwhile has armed the timer anew. */
    if (is_on(subscriber, connection)) {
        bool open = subscriber->state == SUBSCRIBER_OPEN;
        uint64_t until_us = open ? silence_ends_us(subscriber) : subscriber->step_us;
        if (now(subscriber) < until_us)
            arm(subscriber, until_us);
        else if (open)
            on_silence(subscriber);
        else
            on_step_timer(subscriber);
    }
    leave(subscriber);
}

static void on_conn(void *arg, enum conn_ready ready)
{
    struct subscriber *subscriber = arg;
    enter(subscriber);
    uint32_t connection = subscriber->connection;
    int error = subscriber->conn.error;
    if (ready == CONN_CONNECTED)
        on_connected(subscriber);
    else if (ready != CONN_SENT)
        drain(subscriber);
    if (ready == CONN_BROKEN && is_on(subscriber, connection)) drop_errno(subscriber, error);
    leave(subscriber);
}

/* ---- what the owner calls ---- */

struct subscriber *subscriber_new(struct event_base *base, const struct alloc *alloc,
                                  const struct subscriber_config *config,
                                  const struct subscriber_events *events)
{
    struct subscriber *subscriber = alloc_zero(alloc, sizeof(*subscriber));
    if (subscriber == NULL) return NULL;
    subscriber->alloc = *alloc;
    subscriber->config = *config;
    subscriber->events = *events;
    subscriber->timer_us = UINT64_MAX;
    snprintf(subscriber->why, sizeof(subscriber->why), "stopped");
    reply_init(&subscriber->parser, &subscriber->alloc);
    pending_init(&subscriber->pending, &subscriber->alloc, CONN_OUT_MAX);
    retry_init(&subscriber->retry, config->reconnect_min_ms, config->reconnect_max_ms,
               now(subscriber) ^ (uint64_t)(uintptr_t)subscriber);
    dial_init(&subscriber->dial, &subscriber->conn, &subscriber->alloc, config->uri, config->timeout_ms,
              on_resolved, subscriber);
    bool fine = conn_init(&subscriber->conn, base, &subscriber->alloc, on_conn, subscriber);
    subscriber->timer = event_new(base, -1, 0, on_timer, subscriber);
    if (config->client_name != NULL) {
        subscriber->client_name = alloc_text(alloc, config->client_name, strlen(config->client_name));
        fine = fine && subscriber->client_name != NULL;
    }
    if (fine && subscriber->timer != NULL) return subscriber;
    destroy(subscriber);
    return NULL;
}

void subscriber_free(struct subscriber *subscriber)
{
    if (subscriber == NULL || subscriber->dead) return;
    subscriber_stop(subscriber);
    subscriber->dead = true;
    /* Else frames of ours are still on the stack; the last of them frees the memory. */
    if (!subscriber->depth) destroy(subscriber);
}

void subscriber_start(struct subscriber *subscriber)
{
    if (subscriber->dead || subscriber->state != SUBSCRIBER_STOPPED) return;
    subscriber->state = SUBSCRIBER_PAUSE;
    snprintf(subscriber->why, sizeof(subscriber->why), "connecting");
    arm(subscriber, subscriber->step_us);
}

void subscriber_stop(struct subscriber *subscriber)
{
    if (subscriber->dead || subscriber->state == SUBSCRIBER_STOPPED) return;
    /* Only a pause outlasts this; after anything else the next try may come at once. */
    if (subscriber->state != SUBSCRIBER_PAUSE) subscriber->step_us = 0;
    hang_up(subscriber);
    subscriber->state = SUBSCRIBER_STOPPED;
    snprintf(subscriber->why, sizeof(subscriber->why), "stopped");
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
    return ask(subscriber, PENDING_LISTEN, channel, length);
}

void subscriber_forget(struct subscriber *subscriber, const char *channel, size_t length)
{
    if (!subscriber_is_open(subscriber) || length > SUBSCRIBER_CHANNEL_MAX) return;
    pending_mute(&subscriber->pending, channel, length);
    (void)ask(subscriber, PENDING_FORGET, channel, length);
}
