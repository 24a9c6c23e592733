/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node.c - replies, deadlines and the end of one server's connection; how it begins is in node_connect.c
 */
#include "redis/node_impl.h"

#include <assert.h>
#include <event2/event.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "redis/wire/errors.h"

#define NODE_READ_SIZE  16384
#define NODE_READS_MAX  64 /* of one event, so that a talkative server does not starve the others */
#define NODE_SRTT_SHIFT 3  /* each reply weighs an eighth */

/* Requests on their way at most, and bytes that wait to be sent, by enum node_room. */
static const struct {
    size_t requests, bytes;
} node_rooms[] = {
    [NODE_ROOM_NEW] = {(size_t)RING_MAX / 2, CONN_OUT_MAX / 4},
    [NODE_ROOM_KEEP] = {(size_t)RING_MAX / 4 * 3, CONN_OUT_MAX / 4 * 3},
    [NODE_ROOM_NEXT] = {RING_MAX, CONN_OUT_MAX},
};

/* A node is late when it says nothing for so many round trips, and so long more. */
#define NODE_LATE_TRIPS 4u
#define NODE_LATE_US    20000u

uint64_t node_now(const struct node *node)
{
    return node->config.now_us(node->config.now_arg);
}

static void destroy(struct node *node)
{
    struct alloc alloc = node->alloc;
    conn_clear(&node->conn);
    dial_cancel(&node->dial);
    if (node->timer != NULL) event_free(node->timer);
    reply_clear(&node->parser);
    ring_clear(&node->ring);
    alloc_free(&alloc, node->client_name);
    alloc_free(&alloc, node);
}

void node_enter(struct node *node)
{
    node->depth++;
}

void node_leave(struct node *node)
{
    assert(node->depth);
    node->depth--;
    if (!node->depth && node->dead) destroy(node);
}

bool node_is_on(const struct node *node, uint32_t connection)
{
    return !node->dead && node->connection == connection;
}

void node_log(struct node *node, int level, const char *format, ...)
{
    char text[NODE_TEXT_SIZE], line[NODE_TEXT_SIZE + 128];
    if (node->events.log == NULL || node->dead) return;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    snprintf(line, sizeof(line), "%s: %s", node->config.uri->name, text);
    node->events.log(node->events.arg, level, line);
}

static void log_state(struct node *node)
{
    bool setup = node->fault == NODE_FAULT_REPLICA || node->fault == NODE_FAULT_CLUSTER ||
                 node->fault == NODE_FAULT_AUTH || node->fault == NODE_FAULT_PROTO ||
                 node->fault == NODE_FAULT_CONFIG || node->fault == NODE_FAULT_GUARD;
    switch (node->state) {
    case NODE_READY: node_log(node, QUORLOCK_LOG_INFO, "ready, %s", node->handshake.version); break;
    case NODE_QUARANTINED: node_log(node, QUORLOCK_LOG_WARN, "%s", node->why); break;
    case NODE_CONNECTING: node_log(node, QUORLOCK_LOG_WARN, "connection ended: %s", node->why); break;
    case NODE_DOWN:
        node_log(node, setup ? QUORLOCK_LOG_ERROR : QUORLOCK_LOG_WARN, "down: %s", node->why);
        break;
    }
}

void node_set_state(struct node *node, enum node_state state, enum node_fault fault, const char *why)
{
    if (node->state == state && node->fault == fault && strcmp(node->why, why) == 0) return;
    node->state = state;
    node->fault = fault;
    snprintf(node->why, sizeof(node->why), "%s", why);
    log_state(node);
    if (node->dead || node->events.state == NULL) return;
    char copy[NODE_TEXT_SIZE];
    memcpy(copy, node->why, sizeof(copy));
    node->events.state(node->events.arg, node->config.index, state, node_generation(node), fault, copy);
}

/* ---- time ---- */

void node_arm(struct node *node, uint64_t wake_us)
{
    if (node->dead) return;
    node->timer_us = wake_us;
    if (wake_us == NODE_NEVER) {
        event_del(node->timer);
        return;
    }
    uint64_t now_us = node_now(node);
    uint64_t delay_us = wake_us > now_us ? wake_us - now_us : 0;
    struct timeval delay = {.tv_sec = (time_t)(delay_us / 1000000),
                            .tv_usec = (suseconds_t)(delay_us % 1000000)};
    if (event_add(node->timer, &delay) != 0) node_log(node, QUORLOCK_LOG_ERROR, "no memory for a timer");
}

void node_arm_step(struct node *node)
{
    uint64_t timeout_ms = node->config.timeout_ms ? node->config.timeout_ms : 1;
    node->step_us = node_now(node) + timeout_ms * 1000;
    node_arm(node, node->step_us);
}

static uint64_t next_try_us(struct node *node, bool was_ready)
{
    uint64_t now_us = node_now(node);
    if (node->expelled) return now_us + retry_longest_us(&node->retry);
    return now_us + retry_pause_us(&node->retry, was_ready ? now_us - node->ready_us : 0);
}

/* ---- the end of a connection ---- */

void node_report(struct node *node, const union node_tag *tag, const struct node_reply *reply)
{
    if (!node->dead && node->events.reply != NULL)
        node->events.reply(node->events.arg, node->config.index, node->generation, tag, reply);
}

/* Nothing can be pushed meanwhile, for the state is no longer OPEN. */
static void report_unknown(struct node *node, const char *why)
{
    while (node->ring.count && !node->dead) {
        struct ring_entry entry = *ring_at(&node->ring, 0);
        ring_pop(&node->ring);
        struct node_reply reply = {.outcome = NODE_UNKNOWN,
                                   .fault = NODE_FAULT_UNREACHABLE,
                                   .error = why,
                                   .ttl_ms = -2,
                                   .quarantine_ms = -1};
        if (!entry.reported) node_report(node, &entry.tag, &reply);
    }
}

void node_drop(struct node *node, enum node_fault fault, const char *reason)
{
    char why[NODE_TEXT_SIZE];
    bool was_ready = node->step == NODE_STEP_OPEN;
    snprintf(why, sizeof(why), "%s", reason);
    conn_close(&node->conn);
    dial_cancel(&node->dial);
    node->connection++;
    node->fresh = 0;
    node->step = NODE_STEP_PAUSE;
    node->step_us = next_try_us(node, was_ready);
    node_arm(node, node->step_us);
    report_unknown(node, why);
    bool again = was_ready && !node->expelled;
    node->expelled = false;
    if (!node->dead) node_set_state(node, again ? NODE_CONNECTING : NODE_DOWN, fault, why);
}

static void drop_errno(struct node *node, int error)
{
    char why[NODE_TEXT_SIZE];
    const char *where = node->step == NODE_STEP_HANDSHAKE ? " during the handshake" : "";
    if (error)
        snprintf(why, sizeof(why), "connection lost%s: %s", where, strerror(error));
    else
        snprintf(why, sizeof(why), "the server closed the connection%s", where);
    node_drop(node, NODE_FAULT_UNREACHABLE, why);
}

void node_drop_nomem(struct node *node)
{
    node_drop(node, NODE_FAULT_LIMIT, "out of memory");
}

/* What hiredis could not read. */
static void drop_malformed(struct node *node, const char *reason)
{
    char why[NODE_TEXT_SIZE];
    handshake_malformed(&node->handshake, node->step == NODE_STEP_HANDSHAKE, reason, why, sizeof(why));
    node_drop(node, NODE_FAULT_PROTO, why);
}

/* ---- replies ---- */

static void smooth(struct node *node, uint32_t latency_us)
{
    if (!node->srtt_us)
        node->srtt_us = latency_us ? latency_us : 1;
    else
        node->srtt_us =
            (uint32_t)(node->srtt_us - (node->srtt_us >> NODE_SRTT_SHIFT) + (latency_us >> NODE_SRTT_SHIFT));
}

static uint32_t span_us(uint64_t passed_us)
{
    return passed_us > UINT32_MAX ? UINT32_MAX : (uint32_t)passed_us;
}

/* Something was heard of it now: so long after that. */
static uint32_t heard_after_us(struct node *node, uint64_t then_us)
{
    node->heard_us = node_now(node);
    return span_us(node->heard_us - then_us);
}

static bool wants_reconnect(const struct reply *raw)
{
    return raw->self.type == REPLY_ERROR && error_classify(raw->self.text, raw->self.length).reconnect;
}

/* Off the ring before anything is told: the callback may send, and the ring may move. */
static void on_request_reply(struct node *node, const struct reply *raw)
{
    if (!node->answerable) {
        node_drop(node, NODE_FAULT_PROTO, "a reply that nobody asked for");
        return;
    }
    if (ring_at(&node->ring, 0)->parts) {
        node_on_part(node, ring_at(&node->ring, 0), raw);
        return;
    }
    node->answerable--;
    struct ring_entry entry = *ring_at(&node->ring, 0);
    uint32_t latency_us = heard_after_us(node, entry.sent_us);
    ring_pop(&node->ring);
    if (entry.guard) {
        node_on_guard_reply(node, raw);
        return;
    }

    struct node_reply reply;
    char text[NODE_TEXT_SIZE];
    node->dialect->judge(entry.op, entry.by_hash, raw, &reply, text, sizeof(text));
    bool misfit = reply.outcome == NODE_ERROR && reply.fault == NODE_FAULT_PROTO;
    bool drop = misfit || wants_reconnect(raw) || reply.fault == NODE_FAULT_GUARD;
    enum node_fault fault = reply.fault;
    /* It was done: that is all the asker has to know. */
    if (reply.outcome <= NODE_MISSING) reply.fault = NODE_FAULT_NONE;
    if (!entry.reported) {
        reply.latency_us = latency_us;
        smooth(node, latency_us);
        uint32_t connection = node->connection;
        node_report(node, &entry.tag, &reply);
        if (!node_is_on(node, connection)) return;
    }
    if (drop) node_drop(node, fault, text);
}

static void on_handshake_reply(struct node *node, const struct reply *raw)
{
    if (node->guard.asked) {
        if (node->answerable)
            node_on_guard_reply(node, raw);
        else
            node_drop(node, NODE_FAULT_PROTO, "a reply that nobody asked for");
        return;
    }
    if (!node->handshake.at) smooth(node, heard_after_us(node, node->handshake_us));
    switch (handshake_reply(&node->handshake, raw)) {
    case HANDSHAKE_MORE: break;
    case HANDSHAKE_FAILED: {
        char why[NODE_TEXT_SIZE];
        snprintf(why, sizeof(why), "%s", node->handshake.why);
        node_drop(node, node->handshake.fault, why);
        break;
    }
    case HANDSHAKE_DONE: node_end_handshake(node); break;
    }
}

/* All whole replies in these bytes. Afterwards the connection, or the node, may be gone. */
static void feed(struct node *node, const char *data, size_t length)
{
    uint32_t connection = node->connection;
    handshake_hear(&node->handshake, data, length);
    node->answerable = node->step == NODE_STEP_OPEN ? node->ring.count - node->fresh : node->guard.asked;
    reply_feed(&node->parser, data, length);
    do {
        const struct reply *raw = NULL;
        const char *why = NULL;
        switch (reply_next(&node->parser, &raw, &why)) {
        case REPLY_NONE: return;
        case REPLY_BAD: drop_malformed(node, why); return;
        case REPLY_NOMEM: node_drop_nomem(node); return;
        case REPLY_READY: break;
        }
        if (node->step == NODE_STEP_OPEN)
            on_request_reply(node, raw);
        else
            on_handshake_reply(node, raw);
    } while (node_is_on(node, connection));
}

static void read_all(struct node *node)
{
    char buffer[NODE_READ_SIZE];
    uint32_t connection = node->connection;
    for (int i = 0; i < NODE_READS_MAX; i++) {
        ssize_t n = conn_read(&node->conn, buffer, sizeof(buffer));
        if (n == 0) return;
        if (n < 0) {
            drop_errno(node, node->conn.error);
            return;
        }
        feed(node, buffer, (size_t)n);
        /* A short read emptied the socket: the next would only say EAGAIN. */
        if (!node_is_on(node, connection) || (size_t)n < sizeof(buffer)) return;
    }
}

/* Reads and handles what the socket has. */
static void drain(struct node *node)
{
    size_t before = node->ring.count;
    read_all(node);
    if (!node->dead && node->events.room != NULL && node->ring.count < before)
        node->events.room(node->events.arg, node->config.index);
}

/* ---- deadlines ---- */

/*
 * The time to answer runs from when the request left. A caller may do much between its call and the end of the
 * loop's turn; only a lease counts from before.
 */
static void on_sent(struct node *node)
{
    uint64_t now_us = node_now(node);
    for (size_t i = node->ring.count - node->fresh; i < node->ring.count; i++) {
        struct ring_entry *entry = ring_at(&node->ring, i);
        entry->sent_us = now_us;
        if (entry->deadline_us != RING_NEVER) entry->deadline_us = now_us + (uint64_t)entry->timeout_ms * 1000;
    }
    node->fresh = 0;
}

/* What is over its time becomes a tombstone. Callbacks may push behind the end, which moves no index. */
static void expire(struct node *node, uint64_t now_us)
{
    uint32_t connection = node->connection;
    size_t count = node->ring.count - node->fresh;
    for (size_t i = 0; i < count; i++) {
        struct ring_entry *entry = ring_at(&node->ring, i);
        if (entry->reported || entry->deadline_us > now_us) continue;
        entry->reported = true;
        char text[64];
        snprintf(text, sizeof(text), "no answer within %u ms", (unsigned)entry->timeout_ms);
        struct node_reply reply = {.outcome = NODE_UNKNOWN,
                                   .fault = NODE_FAULT_TIMEOUT,
                                   .error = text,
                                   .ttl_ms = -2,
                                   .quarantine_ms = -1,
                                   .latency_us = span_us(now_us - entry->sent_us)};
        union node_tag tag = entry->tag;
        node_report(node, &tag, &reply);
        if (!node_is_on(node, connection)) return;
    }
}

static void on_open_timer(struct node *node)
{
    uint32_t connection = node->connection;
    uint64_t stall_us = (uint64_t)node->config.stall_ms * 1000;
    uint64_t now_us = node_now(node);
    expire(node, now_us);
    if (!node_is_on(node, connection)) return;
    if (stall_us && node->ring.count > node->fresh && now_us - ring_at(&node->ring, 0)->sent_us >= stall_us) {
        char why[NODE_TEXT_SIZE];
        snprintf(why, sizeof(why), "no answer for %u ms, connection dropped", (unsigned)node->config.stall_ms);
        node_drop(node, NODE_FAULT_UNREACHABLE, why);
        return;
    }
    node_watch_guard(node, now_us);
    node_arm(node, node_open_wake_us(node));
}

static void on_step_timer(struct node *node)
{
    char why[NODE_TEXT_SIZE];
    unsigned timeout_ms = node->config.timeout_ms;
    if (node_now(node) < node->step_us) {
        node_arm(node, node->step_us);
        return;
    }
    switch (node->step) {
    case NODE_STEP_PAUSE: node_begin(node); break;
    case NODE_STEP_RESOLVE:
        snprintf(why, sizeof(why), "cannot resolve %s: no answer within %u ms", node->config.uri->host,
                 timeout_ms);
        node_drop(node, NODE_FAULT_UNREACHABLE, why);
        break;
    case NODE_STEP_TCP:
        snprintf(why, sizeof(why), "no answer within %u ms", timeout_ms);
        node_fail_address(node, why);
        break;
    case NODE_STEP_HANDSHAKE:
        snprintf(why, sizeof(why), "no answer to the handshake within %u ms: frozen, or not a Redis server",
                 timeout_ms);
        node_drop(node, NODE_FAULT_UNREACHABLE, why);
        break;
    case NODE_STEP_OPEN: break;
    }
}

/* A timer may fire early, and a process that was stopped finds its replies waiting: read first, then judge. */
static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct node *node = arg;
    (void)fd;
    (void)what;
    node_enter(node);
    node->timer_us = NODE_NEVER;
    uint32_t connection = node->connection;
    if (node->step == NODE_STEP_OPEN || node->step == NODE_STEP_HANDSHAKE) drain(node);
    /* A connection that ended meanwhile has armed the timer anew. */
    if (node_is_on(node, connection)) {
        if (node->step == NODE_STEP_OPEN)
            on_open_timer(node);
        else
            on_step_timer(node);
    }
    node_leave(node);
}

static void on_conn(void *arg, enum conn_ready ready)
{
    struct node *node = arg;
    node_enter(node);
    uint32_t connection = node->connection;
    int error = node->conn.error;
    switch (ready) {
    case CONN_CONNECTED: node_on_connected(node); break;
    case CONN_READABLE: drain(node); break;
    case CONN_SENT: on_sent(node); break;
    case CONN_BROKEN:
        drain(node);
        if (node_is_on(node, connection)) drop_errno(node, error);
        break;
    }
    node_leave(node);
}

/* ---- what the client calls ---- */

struct node *node_new(struct event_base *base, const struct alloc *alloc, const struct node_config *config,
                      const struct node_events *events)
{
    struct node *node = alloc_zero(alloc, sizeof(*node));
    if (node == NULL) return NULL;
    node->base = base;
    node->alloc = *alloc;
    node->config = *config;
    node->events = *events;
    guard_init(&node->guard, config);
    node->countdown = node->countdown_text;
    node->dialect = config->dialect == QUORLOCK_DIALECT_REDISSON ? &dialect_redisson : &dialect_plain;
    node->state = NODE_CONNECTING;
    node->timer_us = NODE_NEVER;
    snprintf(node->why, sizeof(node->why), "connecting");
    reply_init(&node->parser, &node->alloc);
    ring_init(&node->ring, &node->alloc);
    retry_init(&node->retry, config->reconnect_min_ms, config->reconnect_max_ms,
               node_now(node) ^ (uint64_t)(uintptr_t)node);
    dial_init(&node->dial, &node->conn, &node->alloc, config->uri, config->stall_ms, node_on_resolved, node);
    bool fine = conn_init(&node->conn, base, &node->alloc, on_conn, node);
    node->timer = event_new(base, -1, 0, on_timer, node);
    if (config->client_name != NULL) {
        node->client_name = alloc_text(alloc, config->client_name, strlen(config->client_name));
        fine = fine && node->client_name != NULL;
    }
    const struct timeval at_once = {0, 0};
    if (!fine || node->timer == NULL || event_add(node->timer, &at_once) != 0) {
        destroy(node);
        return NULL;
    }
    return node;
}

void node_free(struct node *node)
{
    if (node == NULL || node->dead) return;
    node->dead = true;
    if (!node->depth) {
        destroy(node);
        return;
    }
    /* Frames of ours are still on the stack; the last of them frees the memory. */
    conn_close(&node->conn);
    dial_cancel(&node->dial);
    event_del(node->timer);
}

bool node_has_room(const struct node *node, enum node_room room)
{
    return !node->dead && node->step == NODE_STEP_OPEN && node->ring.count < node_rooms[room].requests &&
           node->conn.out.used < node_rooms[room].bytes;
}

size_t node_in_flight(const struct node *node)
{
    return node->ring.count;
}

static enum node_room room_of(enum node_op op)
{
    return op == NODE_EXTEND || op == NODE_RELEASE ? NODE_ROOM_KEEP : NODE_ROOM_NEXT;
}

bool node_is_late(const struct node *node)
{
    if (node->dead || node->step != NODE_STEP_OPEN || node->ring.count == node->fresh) return false;
    const struct ring_entry *first = &node->ring.entries[node->ring.head];
    uint64_t since_us = first->sent_us > node->heard_us ? first->sent_us : node->heard_us;
    uint64_t late_us = since_us + NODE_LATE_TRIPS * (uint64_t)node->srtt_us + NODE_LATE_US;
    /* The process may have stood still itself: then the answers lie there unread. */
    return node_now(node) >= late_us && !conn_has_input(&node->conn);
}

int node_send(struct node *node, const struct node_request *request)
{
    assert(request->n_keys <= (request->op == NODE_BREAK ? 1 : NODE_KEYS_MAX));
    assert(request->n_keys || request->op == NODE_BOOTSTRAP || request->op == NODE_MAY_KILL);
    if (node->dead || node->step != NODE_STEP_OPEN) return NODE_NOT_READY;
    if (!node_has_room(node, room_of(request->op))) return NODE_FULL;
    switch (ring_reserve(&node->ring)) {
    case RING_ROOM: break;
    case RING_FULL: return NODE_FULL;
    case RING_NOMEM: return NODE_NOMEM;
    }
    /* Read before the first byte is queued: a lease counts from here. */
    uint64_t now_us = node_now(node);
    struct bytes *out = &node->conn.out;
    size_t mark = out->used;
    bool by_hash = node->dialect->build(out, request, &node->handshake.shas, &node->guard);
    if (out->fault) {
        int result = out->fault == BYTES_FULL ? NODE_FULL : NODE_NOMEM;
        bytes_cut(out, mark);
        return result;
    }
    uint64_t timeout_us = (uint64_t)request->timeout_ms * 1000;
    uint64_t stall_us = (uint64_t)node->config.stall_ms * 1000;
    struct ring_entry entry = {.tag = request->tag,
                               .sent_us = now_us,
                               .deadline_us = timeout_us ? now_us + timeout_us : RING_NEVER,
                               .timeout_ms = request->timeout_ms,
                               .op = request->op,
                               .by_hash = by_hash,
                               .parts = guard_parts(request)};
    ring_push(&node->ring, &entry);
    node->fresh++;
    conn_wake(&node->conn);
    /* The timer only ever moves nearer here; when it fires it looks at the whole ring. */
    uint64_t wake_us =
        stall_us && now_us + stall_us < entry.deadline_us ? now_us + stall_us : entry.deadline_us;
    if (wake_us < node->timer_us) node_arm(node, wake_us);
    return NODE_SENT;
}

size_t node_channel(const struct node *node, const struct node_key *key, char *ret, size_t size)
{
    return node->dialect->channel(key, ret, size);
}

enum node_state node_state_now(const struct node *node)
{
    bool took = node->state == NODE_READY || node->state == NODE_QUARANTINED;
    return node->step == NODE_STEP_OPEN || !took ? node->state : NODE_CONNECTING;
}

uint32_t node_generation(const struct node *node)
{
    return node->step == NODE_STEP_OPEN ? node->generation : 0;
}

enum node_fault node_fault_now(const struct node *node)
{
    return node->fault;
}

uint32_t node_srtt_us(const struct node *node)
{
    return node->srtt_us;
}

const char *node_name(const struct node *node)
{
    return node->config.uri->name;
}
