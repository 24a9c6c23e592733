/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/node.h"

#include <stdio.h>
#include <string.h>

#include "base/prefetch.h"
#include "redis/batch.h"
#include "redis/dialect/dialect.h"
#include "redis/link/link.h"
#include "redis/node_guard.h"
#include "redis/outbox.h"
#include "redis/wire/errors.h"

#define NODE_SRTT_SHIFT 3 /* each reply has a weight of one eighth */

/* A node is late when it has said nothing for this many round trips plus this time. */
#define NODE_LATE_TRIPS 4u
#define NODE_LATE_US    20000u
#define NODE_CONNECT_US 250000u /* for a first connection */

/*
 * After NODE_QUIET_US without a byte, something between client and server (NAT, a firewall) may have forgotten the
 * connection. Then nobody answers, and keepalive takes about 20 s to notice. So the first request after such a silence
 * has less time than others: NODE_QUIET_TRIPS round trips and NODE_QUIET_GRACE_US, in which the kernel retransmits once
 * (after 200 ms and a round trip). A server that is merely slow loses its connection this way, once after each such
 * silence.
 */
#define NODE_QUIET_US       5000000u
#define NODE_QUIET_TRIPS    2u
#define NODE_QUIET_GRACE_US 300000u
/* Many clients that wait would make a slow server slower if all of them connected anew. The kernel ends a connection
 * that leads nowhere all the same. */
#define NODE_PATIENCE 4u

struct node {
    struct node_config config;
    struct node_events events;
    const struct dialect *dialect;
    struct redis_link link;

    enum node_state state;
    enum fault fault;
    char why[LINK_TEXT_SIZE];
    uint32_t generation; /* of the latest connection that took requests */
    uint64_t life;       /* see node_life */
    bool expelled;       /* by node_expel: DOWN at once, and the longest pause */

    struct node_guard guard;
    char countdown_text[LINK_TEXT_SIZE];
    char *countdown; /* points to countdown_text, so that node_why() can write it in a const node */

    struct outbox out;
    struct batch_replies batch_replies;
    size_t answerable; /* requests that had left when the bytes at hand were read */
    uint64_t greet_us; /* when the handshake began */
    uint64_t heard_us; /* when bytes last came */
    uint32_t srtt_us;
};

/* ---- its state ---- */

static void log_state(struct node *node)
{
    bool setup = node->fault == FAULT_REPLICA || node->fault == FAULT_CLUSTER || node->fault == FAULT_AUTH ||
                 node->fault == FAULT_LOGIN || node->fault == FAULT_PROTO || node->fault == FAULT_CONFIG ||
                 node->fault == FAULT_GUARD;

    switch (node->state) {
    case NODE_READY: link_log(&node->link, QUORLOCK_LOG_INFO, "ready, %s", node->link.handshake.version); break;
    case NODE_QUARANTINED: link_log(&node->link, QUORLOCK_LOG_WARN, "%s", node->why); break;
    case NODE_CONNECTING: link_log(&node->link, QUORLOCK_LOG_WARN, "connection ended: %s", node->why); break;
    case NODE_DOWN: link_log(&node->link, setup ? QUORLOCK_LOG_ERROR : QUORLOCK_LOG_WARN, "down: %s", node->why); break;
    }
}

/* Set and report the state, if it is a change. */
static void set_state(struct node *node, enum node_state state, enum fault fault, const char *why)
{
    char copy[LINK_TEXT_SIZE];

    if (node->state == state && node->fault == fault && strcmp(node->why, why) == 0) return;
    node->state = state;
    node->fault = fault;
    snprintf(node->why, sizeof(node->why), "%s", why);
    log_state(node);
    if (node->link.dead || node->events.state == NULL) return;
    memcpy(copy, node->why, sizeof(copy));
    node->events.state(node->events.arg, node->config.index, state, node_generation(node), fault, copy);
}

static void describe_quarantine(const struct node *node, char *ret, size_t size)
{
    enum guard_set set = node->events.set != NULL ? node->events.set(node->events.arg) : GUARD_SET_UNKNOWN;

    guard_describe(&node->guard.key, set, link_now_us(&node->link), ret, size);
}

/* Rule 4.3. Set READY, or QUARANTINED as long as the guard demands it. */
static void set_open_state(struct node *node)
{
    char why[LINK_TEXT_SIZE];

    if (node->guard.key.until_us != 0) {
        describe_quarantine(node, why, sizeof(why));
        set_state(node, NODE_QUARANTINED, FAULT_NONE, why);
    } else {
        set_state(node, NODE_READY, FAULT_NONE, "");
    }
}

/* Whether nothing came for long before the oldest request left, nor since then. */
static bool node_is_quiet(const struct node *node, const struct inflight_request *oldest)
{
    return oldest->sent_us >= node->heard_us + NODE_QUIET_US;
}

/* Whether nobody is in a hurry for any of the answers. */
static bool node_is_patient(struct inflight *inflight)
{
    size_t i = 0;

    while (i < inflight->count && inflight_at(inflight, i)->patient) i++;
    return i == inflight->count;
}

/* Return how long the oldest request may be unanswered before the connection is dropped; 0: for ever. */
static uint64_t node_stall_limit_us(struct node *node)
{
    uint64_t stall_us = node->out.stall_us, limit_us, timeout_us, grace_us = NODE_QUIET_GRACE_US;
    const struct inflight_request *oldest;

    if (node->out.inflight.count == node->out.unsent) return stall_us;
    oldest = inflight_at(&node->out.inflight, 0);
    if (node_is_patient(&node->out.inflight)) return NODE_PATIENCE * stall_us;
    if (stall_us == 0 || !node_is_quiet(node, oldest)) return stall_us;
    timeout_us = (uint64_t)oldest->timeout_ms * 1000;
    /* If the request has little time, half of it is kept for another connection. */
    if (timeout_us > 0 && grace_us > timeout_us / 2) grace_us = timeout_us / 2;
    limit_us = NODE_QUIET_TRIPS * (uint64_t)node->srtt_us + grace_us;
    if (timeout_us > 0 && limit_us > timeout_us) limit_us = timeout_us;
    return limit_us < stall_us ? limit_us : stall_us;
}

/* Return when an open node must be woken: for its requests, or because a quarantine may be over. */
static uint64_t node_next_wake_us(struct node *node)
{
    uint64_t wake_us = inflight_wake_us(&node->out.inflight, node_stall_limit_us(node));
    uint64_t guard_us = node_guard_wake_us(&node->guard);

    return guard_us < wake_us ? guard_us : wake_us;
}

static void open_node(struct node *node)
{
    link_open(&node->link);
    node->generation++;
    node->life = node_guard_life(&node->guard);
    (void)link_arm(&node->link, node_next_wake_us(node));
    set_open_state(node);
    node_guard_on_open(&node->guard);
}

/* ---- replies ---- */

static void node_report(struct node *node, const union node_tag *tag, const struct node_reply *reply)
{
    if (!node->link.dead && node->events.reply != NULL)
        node->events.reply(node->events.arg, node->config.index, node->generation, tag, reply);
}

/* The tag is passed by value: the callback may send, which may move the requests in flight. */
static void report_unknown(struct node *node, union node_tag tag, enum fault fault, const char *error,
                           uint32_t latency_us)
{
    struct node_reply reply = {.outcome = OUTCOME_UNKNOWN,
                               .fault = fault,
                               .error = error,
                               .ttl_ms = -2,
                               .quarantine_ms = -1,
                               .waiters = -1,
                               .latency_us = latency_us};

    node_report(node, &tag, &reply);
}

static void update_srtt(struct node *node, uint32_t latency_us)
{
    if (node->srtt_us == 0)
        node->srtt_us = latency_us > 0 ? latency_us : 1;
    else
        node->srtt_us =
            (uint32_t)(node->srtt_us - (node->srtt_us >> NODE_SRTT_SHIFT) + (latency_us >> NODE_SRTT_SHIFT));
}

static uint32_t span_us(uint64_t passed_us)
{
    return passed_us > UINT32_MAX ? UINT32_MAX : (uint32_t)passed_us;
}

/* Note that bytes came now, and return how long after that time. */
static uint32_t heard_after_us(struct node *node, uint64_t then_us)
{
    node->heard_us = link_now_us(&node->link);
    return span_us(node->heard_us - then_us);
}

static bool wants_reconnect(const struct reply *raw)
{
    return raw->self.type == REPLY_ERROR && error_classify(raw->self.text, raw->self.length).reconnect;
}

static void on_guard_reply(struct node *node, const struct reply *raw)
{
    uint64_t now_us = link_now_us(&node->link);
    enum node_guard_news news = node_guard_on_reply(&node->guard, raw, now_us);

    if (news == NODE_GUARD_NONE) return;
    if (!link_is_open(&node->link)) {
        open_node(node);
        return;
    }
    link_arm_by(&node->link, now_us, node_next_wake_us(node));
    if (news != NODE_GUARD_SAME) set_open_state(node);
}

/*
 * A reply to one of a transaction's commands before the last. After an error the server discards the whole transaction,
 * and does not give the reason in its last reply. If MULTI itself fails there is no transaction, and the commands
 * behind it may have been executed one by one.
 */
static void on_part(struct node *node, struct inflight_request *entry, const struct reply *raw)
{
    struct node_reply reply;
    char text[LINK_TEXT_SIZE];
    bool first = entry->parts-- == GUARD_PARTS && entry->op == OP_BOOTSTRAP;
    union node_tag tag = entry->tag;

    if (raw->self.type != REPLY_ERROR || entry->reported) return;
    entry->reported = true;
    node->dialect->judge(entry->op, false, raw, &reply, text, sizeof(text));
    reply.outcome = first ? OUTCOME_UNKNOWN : OUTCOME_ERROR;
    node_report(node, &tag, &reply);
}

static void on_told(struct node *node, const struct reply_item *item)
{
    const struct node_key key = {.text = item->text, .length = item->length};

    if (node->link.dead || node->events.told == NULL || tracking_reads(&node->out.tracking, batch_key_hash(&key)))
        return;
    node->events.told(node->events.arg, node->config.index, &key);
}

static void on_tracked(struct node *node, const struct reply *raw)
{
    tracking_end(&node->out.tracking);
    if (raw->self.type == REPLY_INTEGER) return;
    if (raw->self.type != REPLY_ERROR)
        link_drop(&node->link, FAULT_PROTO, "EXISTS is not answered by a number");
    else if (error_classify(raw->self.text, raw->self.length).fault != FAULT_TEMPORARY)
        node->out.untracked = true;
}

/* Rule 4.10. */
static void on_request_reply(struct node *node, const struct inflight_request *entry, const struct reply *raw)
{
    uint32_t latency_us = heard_after_us(node, entry->sent_us);
    uint32_t connection = node->link.connection;
    struct node_reply reply;
    enum fault fault;
    char text[LINK_TEXT_SIZE];
    bool misfit, drop;

    node->dialect->judge(entry->op, entry->by_script, raw, &reply, text, sizeof(text));
    misfit = reply.outcome == OUTCOME_ERROR && reply.fault == FAULT_PROTO;
    drop = misfit || wants_reconnect(raw) || reply.fault == FAULT_GUARD;
    fault = reply.fault;
    /* The request was executed; the caller need not know of the changed guard, for which the connection is dropped
     * below. */
    if (reply.outcome <= OUTCOME_MISSING) reply.fault = FAULT_NONE;
    if (node_guard_doubts(&node->guard, entry, &reply)) {
        reply.outcome = OUTCOME_UNKNOWN;
        reply.fault = FAULT_GUARD;
        reply.error = GUARD_CHANGED;
    }
    if (!entry->reported) {
        reply.latency_us = latency_us;
        reply.watched = entry->watched;
        update_srtt(node, latency_us);
        node_report(node, &entry->tag, &reply);
        if (!link_is_on(&node->link, connection)) return;
    }
    if (drop) link_drop(&node->link, fault, "%s", text);
}

/* Take the oldest request off before its callback runs, which may send and so move the others. */
static struct inflight_request take_entry(struct node *node)
{
    struct inflight_request entry = *inflight_at(&node->out.inflight, 0);

    inflight_pop(&node->out.inflight);
    node->answerable--;
    return entry;
}

/* Return the reply that each request of a batch gets when the server refused the batch: nothing was executed. If the
 * user may not use one of the keys, requests are sent one by one from now on, so that a repeated request meets its own
 * denial only. */
static const struct reply *refusal(struct node *node, const struct reply *raw)
{
    static const char why[] = "TRYAGAIN the user may not use a key of the batch";
    static const struct reply again = {.self = {.type = REPLY_ERROR, .text = why, .length = sizeof(why) - 1}};

    if (error_classify(raw->self.text, raw->self.length).fault != FAULT_AUTH) return raw;
    node->out.alone = true;
    return &again;
}

/* Prefetch the owner of the answer after the next one of a batch. */
static void prefetch_answer(struct node *node, size_t n_left)
{
    if (n_left > 2) prefetch(inflight_at(&node->out.inflight, 1)->tag.about, PREFETCH_CLAIM);
}

/* One reply for n requests: report each as if it had been sent alone. */
static void on_batch_reply(struct node *node, size_t n, const struct reply *raw)
{
    uint32_t connection = node->link.connection;

    if (raw->self.type == REPLY_ERROR) raw = refusal(node, raw);
    batch_replies_begin(&node->batch_replies, raw);
    for (; n > 0 && link_is_on(&node->link, connection); n--) {
        const struct reply *reply = batch_replies_next(&node->batch_replies, n == 1);
        struct inflight_request entry;

        if (reply == NULL) {
            link_drop_nomem(&node->link);
            return;
        }
        entry = take_entry(node);
        prefetch_answer(node, n);
        on_request_reply(node, &entry, reply);
    }
}

static bool is_noscript(const struct reply *raw)
{
    return error_classify(raw->self.text, raw->self.length).noscript;
}

static void node_on_reply(void *arg, const struct reply *raw)
{
    struct node *node = arg;
    struct inflight_request entry;

    if (node->answerable == 0) {
        link_drop(&node->link, FAULT_PROTO, "a reply that nobody asked for");
        return;
    }
    if (!link_is_open(&node->link)) {
        /* If the guard is asked for again, bytes that came before that cannot be the answer. */
        node->answerable = 0;
        on_guard_reply(node, raw);
        return;
    }
    if (raw->self.type == REPLY_ERROR) outbox_on_error(&node->out, is_noscript(raw));
    if (inflight_at(&node->out.inflight, 0)->parts > 0) {
        on_part(node, inflight_at(&node->out.inflight, 0), raw);
        return;
    }
    if (inflight_at(&node->out.inflight, 0)->batch > 0) {
        on_batch_reply(node, inflight_at(&node->out.inflight, 0)->batch, raw);
        return;
    }
    entry = take_entry(node);
    if (entry.guard) {
        node->heard_us = link_now_us(&node->link);
        if (entry.by_script)
            on_guard_reply(node, raw);
        else
            node_guard_on_compared(&node->guard, raw);
    } else if (entry.tracks) {
        node->heard_us = link_now_us(&node->link);
        on_tracked(node, raw);
    } else {
        on_request_reply(node, &entry, raw);
    }
}

/* Never a verdict: a server whose table of such keys is full tells of changes that were none. */
static void node_on_push(void *arg, const struct reply *push)
{
    struct node *node = arg;

    if (node_guard_on_push(&node->guard, push) || !reply_is(&push->elements[0], "invalidate")) return;
    for (size_t i = 1; i < push->n_elements; i++) {
        if (push->elements[i].type == REPLY_STRING) on_told(node, &push->elements[i]);
    }
}

/* ---- the connection ---- */

static void node_on_connected(void *arg)
{
    struct node *node = arg;
    struct redis_link *link = &node->link;
    enum handshake_eviction eviction = HANDSHAKE_EVICTION_UNASKED;

    if (guard_is_on(&node->guard.key))
        eviction = node->config.allow_eviction ? HANDSHAKE_EVICTION_WARNS : HANDSHAKE_EVICTION_FAILS;
    node->greet_us = link_now_us(link);
    outbox_begin(&node->out);
    handshake_begin(&link->handshake, &link->conn.out, link->config.uri, link->config.client_name, node->dialect,
                    eviction);
    node_guard_begin(&node->guard);
}

static void node_on_heard(void *arg)
{
    struct node *node = arg;
    bool open = link_is_open(&node->link);

    node->answerable = open ? node->out.inflight.count - node->out.unsent : node->guard.key.asked;
    if (!open && node->link.handshake.n_first == 0) update_srtt(node, heard_after_us(node, node->greet_us));
}

/* The handshake succeeded. If a guard is kept, the answer to guard_look comes next. */
static void node_on_greeted(void *arg)
{
    struct node *node = arg;
    const char *warning = node->link.handshake.warning;

    if (warning[0] != '\0') link_log(&node->link, QUORLOCK_LOG_WARN, "%s", warning);
    if (node_guard_meet(&node->guard)) open_node(node);
}

static void node_on_readable(void *arg)
{
    struct node *node = arg;
    size_t before = node_in_flight(node);

    link_read(&node->link);
    if (!node->link.dead && node->events.room != NULL && node_in_flight(node) < before)
        node->events.room(node->events.arg, node->config.index);
}

static bool node_waits_long(void *arg, enum fault fault)
{
    const struct node *node = arg;

    (void)fault;
    return node->expelled;
}

/* The handshake may end with a question about the guard, which may write the guard. */
static bool resets(void *arg)
{
    struct node *node = arg;

    return !link_is_open(&node->link) || outbox_may_harm_late(&node->out);
}

/* Rule 1.7. */
static void node_on_closed(void *arg, bool was_open, enum fault fault, const char *why)
{
    struct node *node = arg;
    bool again = was_open && !node->expelled;

    outbox_close(&node->out);
    node->expelled = false;
    /* No request can be added meanwhile, because the link is no longer open. */
    while (node->out.inflight.count > 0 && !node->link.dead) {
        struct inflight_request entry = *inflight_at(&node->out.inflight, 0);

        inflight_pop(&node->out.inflight);
        if (!entry.reported) report_unknown(node, entry.tag, FAULT_UNREACHABLE, why, 0);
    }
    if (!node->link.dead) set_state(node, again ? NODE_CONNECTING : NODE_DOWN, fault, why);
}

static void node_on_ended(void *arg)
{
    struct node *node = arg;

    outbox_clear(&node->out);
    batch_replies_clear(&node->batch_replies);
    alloc_free(node->link.alloc, node);
}

static void on_sending(void *arg)
{
    struct node *node = arg;

    outbox_flush(&node->out);
}

static void on_sent(void *arg)
{
    struct node *node = arg;

    outbox_sent(&node->out, link_now_us(&node->link));
    if (node->out.inflight.count > 0 && node_is_quiet(node, inflight_at(&node->out.inflight, 0)))
        link_arm_by(&node->link, link_now_us(&node->link), node_next_wake_us(node));
}

/* ---- deadlines ---- */

/* Rule 1.8. Turn requests whose deadline has passed into tombstones. Callbacks may add requests at the end, which
 * changes no index. */
static void expire(struct node *node, uint64_t now_us)
{
    uint32_t connection = node->link.connection;
    size_t count = node->out.inflight.count - node->out.unsent;

    for (size_t i = 0; i < count && link_is_on(&node->link, connection); i++) {
        struct inflight_request *entry = inflight_at(&node->out.inflight, i);
        char text[64];

        if (entry->reported || entry->deadline_us > now_us) continue;
        entry->reported = true;
        snprintf(text, sizeof(text), "no answer within %u ms", (unsigned)entry->timeout_ms);
        report_unknown(node, entry->tag, FAULT_TIMEOUT, text, span_us(now_us - entry->sent_us));
    }
}

static void node_on_due(void *arg)
{
    struct node *node = arg;
    uint32_t connection = node->link.connection;
    uint64_t limit_us = node_stall_limit_us(node);
    uint64_t now_us = link_now_us(&node->link);

    expire(node, now_us);
    if (!link_is_on(&node->link, connection)) return;
    if (limit_us > 0 && node->out.inflight.count > node->out.unsent &&
        now_us - inflight_at(&node->out.inflight, 0)->sent_us >= limit_us) {
        link_drop(&node->link, FAULT_UNREACHABLE, "no answer for %u ms%s, connection dropped",
                  (unsigned)(limit_us / 1000), limit_us < node->out.stall_us ? " after a silence" : "");
        return;
    }
    node_guard_on_due(&node->guard, now_us);
    (void)link_arm(&node->link, node_next_wake_us(node));
}

/* ---- what the client calls ---- */

static const struct link_events node_link_events = {
    .log_prefix = "",
    .connected = node_on_connected,
    .greeted = node_on_greeted,
    .readable = node_on_readable,
    .heard = node_on_heard,
    .reply = node_on_reply,
    .push = node_on_push,
    .sending = on_sending,
    .sent = on_sent,
    .due = node_on_due,
    .waits_long = node_waits_long,
    .resets = resets,
    .closed = node_on_closed,
    .ended = node_on_ended,
};

struct node *node_new(struct system *system, const struct alloc *alloc, const struct node_config *config,
                      const struct node_events *events)
{
    struct node *node = alloc_zero(alloc, sizeof(*node));

    if (node == NULL) return NULL;
    node->config = *config;
    node->config.link.user_timeout_ms = config->stall_ms;
    node->events = *events;
    node->countdown = node->countdown_text;
    node->dialect = config->dialect == QUORLOCK_DIALECT_REDISSON ? &dialect_redisson : &dialect_plain;
    node->state = NODE_CONNECTING;
    snprintf(node->why, sizeof(node->why), "connecting");
    guard_init(&node->guard.key, config->guard, config->n_nodes, config->max_lease_ms, config->set, config->set_named);
    node->guard.link = &node->link;
    node->guard.out = &node->out;
    outbox_init(&node->out, alloc, &node->link, node->dialect, &node->guard.key, (uint64_t)config->stall_ms * 1000);
    batch_replies_init(&node->batch_replies, alloc);
    if (link_init(&node->link, system, alloc, &node->config.link, &node_link_events, node) && link_start(&node->link))
        return node;
    link_end(&node->link);
    return NULL;
}

void node_free(struct node *node)
{
    if (node != NULL) link_end(&node->link);
}

void node_may_end(struct node *node)
{
    if (!resets(node)) conn_keep_sending(&node->link.conn);
}

void node_expel(struct node *node, enum fault fault, const char *why)
{
    if (!link_is_open(&node->link)) return;
    node->expelled = true;
    link_drop(&node->link, fault, "%s", why);
}

void node_log_in_again(struct node *node)
{
    if (node->fault == FAULT_LOGIN) link_try_now(&node->link);
}

int node_send(struct node *node, const struct node_request *request)
{
    return outbox_send(&node->out, request);
}

bool node_has_room(const struct node *node, enum node_room room)
{
    return outbox_has_room(&node->out, room);
}

size_t node_in_flight(const struct node *node)
{
    return outbox_count(&node->out);
}

/* Tell whether the first connection takes longer than connecting to a server that answers. */
static bool connects_late(const struct node *node)
{
    const struct redis_link *link = &node->link;
    uint64_t limit_us = (uint64_t)link->config.connect_ms * 1000;

    if (node->state != NODE_CONNECTING || node->fault != FAULT_NONE || link->try_us < limit_us) return false;
    return link_now_us(link) >= link->try_us - limit_us + NODE_CONNECT_US;
}

bool node_is_late(const struct node *node)
{
    const struct inflight_request *first;
    uint64_t since_us, limit_us, timeout_us = (uint64_t)node->out.timeout_ms * 1000;

    if (!link_is_open(&node->link)) return connects_late(node);
    if (node->out.inflight.count == node->out.unsent) return false;
    first = &node->out.inflight.entries[node->out.inflight.head];
    since_us = first->sent_us > node->heard_us ? first->sent_us : node->heard_us;
    limit_us = NODE_LATE_TRIPS * (uint64_t)node->srtt_us + NODE_LATE_US;
    /* A server that was slow once makes the limit long; but whoever waits for this node loses its vote by then. */
    if (timeout_us > 0 && limit_us > timeout_us) limit_us = timeout_us;
    /* This process may have been suspended itself; then the answers wait to be read. */
    return link_now_us(&node->link) >= since_us + limit_us && !conn_has_input(&node->link.conn);
}

size_t node_channel(const struct node *node, const struct node_key *key, size_t prefix, char *ret, size_t size)
{
    return node->dialect->channel(key, prefix, ret, size);
}

enum node_state node_state_now(const struct node *node)
{
    bool took = node_takes_requests(node->state);

    return node->link.step == LINK_OPEN || !took ? node->state : NODE_CONNECTING;
}

uint32_t node_generation(const struct node *node)
{
    return node->link.step == LINK_OPEN ? node->generation : 0;
}

enum fault node_fault_now(const struct node *node)
{
    return node->fault;
}

/* The node was never connected and nothing has failed: return how far the first try has come. */
static const char *first_steps(const struct node *node)
{
    switch (node->link.step) {
    case LINK_RESOLVE: return "connecting: its name is being looked up";
    case LINK_GREET: return "connecting: no answer to the TLS handshake yet";
    case LINK_LOGIN: return "connecting: waits for credentials from the program";
    case LINK_HANDSHAKE: return "connecting: no answer to the handshake yet";
    default: return node->why;
    }
}

const char *node_why(const struct node *node)
{
    if (node->state == NODE_CONNECTING && node->fault == FAULT_NONE) return first_steps(node);
    if (node_state_now(node) != NODE_QUARANTINED) return node->why;
    describe_quarantine(node, node->countdown, LINK_TEXT_SIZE);
    return node->countdown;
}

uint64_t node_quarantined_until_us(const struct node *node)
{
    return node_state_now(node) == NODE_QUARANTINED ? node->guard.key.until_us : 0;
}

enum guard_set node_guard_set(const struct node *node, uint64_t *ret_until_us)
{
    const struct guard *key = &node->guard.key;
    bool lasts = key->until_us != 0 && link_is_open(&node->link);

    *ret_until_us = key->first_until_us;
    return key->set_seen == GUARD_SET_FIRST && !lasts ? GUARD_SET_UNKNOWN : key->set_seen;
}

const char *node_run_id(const struct node *node)
{
    return node->guard.key.run_id;
}

uint64_t node_life(const struct node *node)
{
    return node->life;
}

uint32_t node_srtt_us(const struct node *node)
{
    return node->srtt_us;
}

const char *node_name(const struct node *node)
{
    return node->config.link.uri->name;
}
