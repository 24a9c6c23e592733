/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client.c - nodes, time and callbacks of one client
 *
 * User callbacks run from client_run() only, at the top of the loop. Before each of them all deadlines that
 * have passed are told to their locks, and losses go first: a process that was stopped hears of its losses
 * before it hears of anything else.
 */
#include "api/client.h"

#include <event2/event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "admin/inspect.h"
#include "lock/lock.h"

#define NODE_TIMEOUT_MS 1000u
#define STALL_FACTOR    3u
#define STALL_MS_MIN    3000u
#define LOG_LINE_SIZE   1400
#define LOG_LINES_MAX   1000

uint64_t client_now_us(struct quorlock_client *client)
{
    return clock_now_us(&client->clock);
}

int client_fail(struct quorlock_client *client, int status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(client->error.text, sizeof(client->error.text), format, args);
    va_end(args);
    return status;
}

/* ---- the log ---- */

struct log_line {
    struct link link;
    int level;
    char text[];
};

/* The hook may do what any callback may, so it must not run in the middle of what a step brings about. */
void client_log(struct quorlock_client *client, int level, const char *format, ...)
{
    char text[LOG_LINE_SIZE];
    struct log_line *line = NULL;
    va_list args;

    if (client->options.log == NULL) return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (client->log_lines.count < LOG_LINES_MAX) {
        line = alloc_zero(&client->alloc, sizeof(*line) + strlen(text) + 1);
    }
    if (line == NULL) {
        client->log_lines_dropped++;
        return;
    }
    line->level = level;
    memcpy(line->text, text, strlen(text) + 1);
    list_add(&client->log_lines, &line->link);
    client_run_soon(client);
}

static struct log_line *take_line(struct quorlock_client *client)
{
    struct log_line *line = LIST_ITEM(client->log_lines.first, struct log_line, link);

    if (line != NULL) list_remove(&client->log_lines, &line->link);
    return line;
}

static void notify_log_line(struct quorlock_client *client)
{
    struct log_line *line = take_line(client);
    size_t dropped = client->log_lines_dropped;

    client->options.log(client->options.log_arg, line->level, line->text);
    alloc_free(&client->alloc, line);
    if (dropped == 0 || client->log_lines.count > 0) return;
    client->log_lines_dropped = 0;
    client_log(client, QUORLOCK_LOG_WARN, "%zu lines of the log were dropped: too many at once, or no memory",
               dropped);
}

uint32_t client_timeout_ms(const struct quorlock_client *client)
{
    return client->options.node_timeout_ms != 0 ? client->options.node_timeout_ms : NODE_TIMEOUT_MS;
}

/* ---- deadlines ---- */

static bool callbacks_wait(const struct quorlock_client *client)
{
    return client->ready.count > 0 || client->completed.count > 0 || client->lost.count > 0 ||
           client->log_lines.count > 0 || inspect_waiting(client) > 0;
}

/* For the earliest deadline, or for the next turn where callbacks were put off to it. */
static void arm(struct quorlock_client *client)
{
    const struct heap_entry *first = heap_first(&client->deadlines);
    uint64_t at_us = first != NULL ? first->at_us : UINT64_MAX;
    uint64_t now_us;
    uint64_t left_us = 0;
    struct itimerspec when = {.it_value.tv_sec = 0};

    if (client->closing && client->close_until_us < at_us) at_us = client->close_until_us;
    if (callbacks_wait(client)) at_us = 0;
    /* Armed for something sooner: it looks then, and is armed anew. */
    if (at_us >= client->armed_us) return;
    client->armed_us = at_us;
    if (at_us > 0) {
        now_us = client_now_us(client);
        left_us = at_us > now_us ? at_us - now_us : 0;
    }
    when.it_value.tv_sec = (time_t)(left_us / 1000000u);
    when.it_value.tv_nsec = (long)(left_us % 1000000u * 1000u);
    /* Zero would disarm it. */
    if (left_us == 0) when.it_value.tv_nsec = 1;
    timerfd_settime(client->timer_fd, 0, &when, NULL);
}

int client_reserve_waker(struct quorlock_client *client, struct waker *waker, void (*wake)(struct waker *))
{
    waker->entry.index = HEAP_OUT;
    waker->wake = wake;
    if (heap_reserve(&client->deadlines, &client->alloc, client->n_wakers + 1) != 0) return -1;
    client->n_wakers++;
    return 0;
}

void client_return_waker(struct quorlock_client *client, struct waker *waker)
{
    client_wake_at(client, waker, UINT64_MAX);
    client->n_wakers--;
}

void client_wake_at(struct quorlock_client *client, struct waker *waker, uint64_t at_us)
{
    const struct heap_entry *first = heap_first(&client->deadlines);
    uint64_t before_us = first != NULL ? first->at_us : UINT64_MAX;

    if (waker->entry.at_us == at_us && waker->entry.index != HEAP_OUT) return;
    heap_set(&client->deadlines, &waker->entry, at_us);
    first = heap_first(&client->deadlines);
    /* A timer that comes too early looks and is armed anew: only a nearer deadline needs it now. */
    if (first != NULL && first->at_us < before_us && client->running == 0) arm(client);
}

static void wake_due(struct quorlock_client *client)
{
    uint64_t now_us = client_now_us(client);
    struct heap_entry *first;

    while ((first = heap_first(&client->deadlines)) != NULL && first->at_us <= now_us) {
        struct waker *waker = (struct waker *)first;

        /* Out first: it puts itself in again with its next deadline. */
        heap_set(&client->deadlines, first, UINT64_MAX);
        waker->wake(waker);
    }
}

/* ---- callbacks ---- */

void client_run_soon(struct quorlock_client *client)
{
    if (client->running == 0 && client->at_top != NULL) event_active(client->at_top, EV_TIMEOUT, 0);
}

static void destroy(struct quorlock_client *client);

static bool may_end(struct quorlock_client *client)
{
    if (!client->closing || client->running > 0) return false;
    if (callbacks_wait(client) || client->n_examinations > 0 || admission_owes(client)) return false;
    return client->in_flight == 0 || client_now_us(client) >= client->close_until_us;
}

/* It goes first, for its validity runs. Else who stood behind others does: what it is told is what the first of
 * them knows, as long as that one is there. */
static bool grant_waits(const struct quorlock_client *client)
{
    const struct claim *first = LIST_ITEM(client->ready.first, struct claim, ready);

    return first != NULL && core_phase_now(first->core) == CORE_GRANTED;
}

/* How many callbacks of each kind may run before the loop gets its turn. Losses are told whatever it is. */
struct budget {
    size_t lines, ready, completed, reports;
};

/* One callback; false: none is left in this turn. The log says first why something is told. */
static bool notify_next(struct quorlock_client *client, struct budget *budget)
{
    if (budget->lines > 0 && client->log_lines.count > 0) {
        budget->lines--;
        notify_log_line(client);
    } else if (client->lost.count > 0) {
        claim_notify(LIST_ITEM(client->lost.first, struct claim, lost));
    } else if (budget->completed > 0 && (budget->ready == 0 || !grant_waits(client))) {
        budget->completed--;
        if (client->completed.count > 0)
            lock_notify(LIST_ITEM(client->completed.first, struct quorlock, completed));
    } else if (budget->ready > 0) {
        budget->ready--;
        if (client->ready.count > 0) claim_notify(LIST_ITEM(client->ready.first, struct claim, ready));
    } else if (budget->reports > 0) {
        budget->reports--;
        inspect_notify(client);
    } else {
        return false;
    }
    return true;
}

/*
 * What waits to be told now is told now; what the callbacks bring about waits for the next turn, so that a
 * caller who answers each failure with a new try does not keep the loop from its sockets.
 */
static void client_run(struct quorlock_client *client)
{
    struct budget budget;

    client->running++;
    wake_due(client);
    admission_serve(client);
    budget =
        (struct budget){LOG_LINES_MAX, client->ready.count, client->completed.count, inspect_waiting(client)};
    while (notify_next(client, &budget)) wake_due(client);
    inspect_sweep(client);
    admission_serve(client);
    client->running--;
    if (client->running > 0) return;
    if (may_end(client)) {
        destroy(client);
        return;
    }
    arm(client);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct quorlock_client *client = arg;
    uint64_t expirations;

    (void)what;
    /* Only to make it unreadable again. */
    if (read(fd, &expirations, sizeof(expirations)) < 0) return;
    client->armed_us = UINT64_MAX;
    client_run(client);
}

static void on_top(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    client_run(arg);
}

/*
 * A timer of the kernel's, not of libevent: that one reckons from the time at which the loop last looked at the
 * clock, on a clock that stops in suspend, so after a long callback or a pause it would tell a loss late.
 */
static int start_timer(struct quorlock_client *client)
{
    client->armed_us = UINT64_MAX;
    client->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (client->timer_fd < 0) return -1;
    client->timer = event_new(client->base, client->timer_fd, EV_READ | EV_PERSIST, on_timer, client);
    client->at_top = event_new(client->base, -1, 0, on_top, client);
    if (client->timer == NULL || client->at_top == NULL) return -1;
    return event_add(client->timer, NULL);
}

/* ---- nodes ---- */

/*
 * One process behind two addresses would have two votes. Neither gets one, for who knows which was meant
 *
 * Compared with what the others were last, also while they are not connected: the two come back one after the
 * other, and the vote of the one must not meet the connection of the other.
 */
static void expel_twins(struct quorlock_client *client, uint32_t index)
{
    struct node *node = client->nodes[index].node;
    char why[300];

    snprintf(client->nodes[index].run_id, CLIENT_RUN_ID_SIZE, "%s", node_run_id(node));
    for (uint32_t i = 0; i < client->n_nodes; i++) {
        struct node *other = client->nodes[i].node;

        /* While the client is being built, later nodes are not there yet. */
        if (i == index || other == NULL || client->nodes[index].run_id[0] == '\0') continue;
        if (strcmp(client->nodes[index].run_id, client->nodes[i].run_id) != 0) continue;
        snprintf(why, sizeof(why), "%s and %s are one server: one server has one vote. List each server once",
                 node_name(node), node_name(other));
        node_expel(other, NODE_FAULT_CONFIG, why);
        node_expel(node, NODE_FAULT_CONFIG, why);
        return;
    }
}

static void on_node_state(void *arg, uint32_t index, enum node_state state, uint32_t generation,
                          enum node_fault fault, const char *why)
{
    struct quorlock_client *client = arg;
    struct list_walk walk;
    struct link *at;

    (void)generation;
    (void)fault;
    (void)why;
    client->node_changes++;
    if (state == NODE_READY || state == NODE_QUARANTINED) expel_twins(client, index);
    list_walk_begin(&walk, &client->active);
    while ((at = list_walk_next(&walk)) != NULL)
        claim_on_node_state(LIST_ITEM(at, struct claim, active), index);
    inspect_on_node_state(client, index);
}

/* A reading of the node's clock: has it stepped? */
static bool observe_clock(struct quorlock_client *client, uint32_t index, const struct core_tag *tag,
                          const struct node_reply *reply)
{
    if (reply->node_time_us == 0) return false;
    return nodeclock_stepped(&client->nodes[index].clock, tag->sent_us, client_now_us(client),
                             reply->node_time_us, client->options.drift_ppm,
                             (uint64_t)client->options.drift_fixed_ms * 1000u);
}

/* Every vote of this client that was asked for before the step may have ended early. The reading's own was set
 * by the clock after it. */
static void on_clock_step(struct quorlock_client *client, uint32_t index, uint64_t before_us)
{
    struct list_walk walk;
    struct link *at;

    client_log(client, QUORLOCK_LOG_ERROR,
               "%s: its clock stepped forward; leases there end early, and earlier votes of it count no more",
               node_name(client->nodes[index].node));
    list_walk_begin(&walk, &client->active);
    while ((at = list_walk_next(&walk)) != NULL) {
        claim_on_step(LIST_ITEM(at, struct claim, active), index, before_us);
    }
}

static void on_reply(void *arg, uint32_t index, uint32_t generation, const union node_tag *tag,
                     const struct node_reply *reply)
{
    struct quorlock_client *client = arg;
    struct request request;

    memcpy(&request, tag, sizeof(request));
    client->in_flight--;
    if (request.kind == REQUEST_CLAIM) {
        bool stepped = observe_clock(client, index, &request.tag, reply);

        claim_on_reply(request.owner, &request.tag, generation, reply);
        if (stepped) on_clock_step(client, index, request.tag.sent_us);
    } else {
        inspect_on_reply(request.owner, index, reply);
    }
    if (client->closing && client->in_flight == 0) client_run_soon(client);
}

static void on_room(void *arg, uint32_t index)
{
    struct quorlock_client *client = arg;

    (void)index;
    if (admission_is_wanted(client)) client_run_soon(client);
}

/* client_run serves what waits whenever it runs; this only makes it run. */
static void on_room_look(struct waker *waker)
{
    (void)waker;
}

static void on_log(void *arg, int level, const char *text)
{
    client_log(arg, level, "%s", text);
}

int client_send(struct quorlock_client *client, uint32_t index, struct node_request *node_request,
                const struct request *request)
{
    int result;

    _Static_assert(sizeof(struct request) <= NODE_TAG_SIZE, "a request's tag has room at the node");
    memcpy(&node_request->tag, request, sizeof(*request));
    result = node_send(client->nodes[index].node, node_request);
    if (result == NODE_SENT) client->in_flight++;
    return result;
}

struct address {
    char text[300];
    uint8_t index;
};

static int by_address(const void *a, const void *b)
{
    return strcmp(((const struct address *)a)->text, ((const struct address *)b)->text);
}

/*
 * The caller's name of the set, or a hash of the sorted addresses, without databases: whoever lists the same
 * servers has the same set. Nodes are asked first in the same order: in the caller's where he names the set,
 * for then the addresses may differ from client to client.
 */
static void name_set(struct quorlock_client *client, char text[OPTIONS_SET_SIZE])
{
    struct address sorted[QUORLOCK_NODES_MAX] = {0};
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */

    for (uint32_t i = 0; i < client->n_nodes; i++) {
        const struct uri *uri = &client->nodes[i].uri;

        snprintf(sorted[i].text, sizeof(sorted[i].text), "%s:%u", uri->host, (unsigned)uri->port);
        sorted[i].index = client->order[i] = (uint8_t)i;
    }
    if (client->options.set_name != NULL) {
        snprintf(text, OPTIONS_SET_SIZE, "%s", client->options.set_name);
        return;
    }
    qsort(sorted, client->n_nodes, sizeof(sorted[0]), by_address);
    for (uint32_t i = 0; i < client->n_nodes; i++) {
        client->order[i] = sorted[i].index;
        for (const char *at = sorted[i].text; *at != '\0'; at++) {
            hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
        }
        hash = (hash ^ '\n') * 0x100000001b3u;
    }
    snprintf(text, OPTIONS_SET_SIZE, "%016llx", (unsigned long long)hash);
}

static uint64_t node_clock(void *arg)
{
    return client_now_us(arg);
}

static int parse_nodes(struct quorlock_client *client, const char *const *nodes, struct options_error *error)
{
    for (uint32_t i = 0; i < client->n_nodes; i++) {
        char wrong[OPTIONS_ERROR_SIZE];
        int status;

        if (nodes[i] == NULL) return options_fail(error, QUORLOCK_INVAL, "nodes[%u] is NULL", i);
        status = uri_parse(&client->nodes[i].uri, &client->alloc, nodes[i], wrong, sizeof(wrong));
        /* Its place in the list, for of the address itself little may be quoted. */
        if (status != 0) return options_fail(error, status, "node %u: %.480s", i + 1, wrong);
        for (uint32_t k = 0; k < i; k++) {
            if (!uri_same(&client->nodes[i].uri, &client->nodes[k].uri)) continue;
            return options_fail(
                error, QUORLOCK_INVAL,
                "nodes %u and %u are the same server, %s, given twice: one server has one vote. "
                "Give each address once",
                k + 1, i + 1, client->nodes[i].uri.name);
        }
    }
    return 0;
}

static int start_nodes(struct quorlock_client *client)
{
    struct node_events events = {
        .state = on_node_state, .reply = on_reply, .room = on_room, .log = on_log, .arg = client};
    uint32_t stall_ms = STALL_FACTOR * client_timeout_ms(client);

    for (uint32_t i = 0; i < client->n_nodes; i++) {
        struct node_config config = {.index = i,
                                     .uri = &client->nodes[i].uri,
                                     .client_name = "quorlock",
                                     .timeout_ms = client_timeout_ms(client),
                                     .stall_ms = stall_ms > STALL_MS_MIN ? stall_ms : STALL_MS_MIN,
                                     .reconnect_min_ms = client->options.reconnect_min_ms,
                                     .reconnect_max_ms = client->options.reconnect_max_ms,
                                     .dialect = (uint32_t)client->options.dialect,
                                     .guard = (uint32_t)client->options.guard,
                                     .n_nodes = client->n_nodes,
                                     .set = client->set,
                                     .set_named = client->options.set_name != NULL,
                                     .max_lease_ms = client->options.max_lease_ms,
                                     .allow_eviction = client->options.allow_eviction != 0,
                                     .now_us = node_clock,
                                     .now_arg = client};

        client->nodes[i].node = node_new(client->base, &client->alloc, &config, &events);
        if (client->nodes[i].node == NULL) return QUORLOCK_NOMEM;
    }
    return 0;
}

/* ---- life ---- */

static int copy_text(struct quorlock_client *client, char **ret, const char *text)
{
    if (text == NULL) text = "";
    *ret = alloc_text(&client->alloc, text, strlen(text));
    return *ret == NULL ? QUORLOCK_NOMEM : 0;
}

/* Frees all but the last words. */
static void dismantle(struct quorlock_client *client)
{
    struct alloc alloc = client->alloc;
    struct log_line *line;

    for (uint32_t i = 0; i < client->n_nodes; i++) {
        node_free(client->nodes[i].node);
        uri_clear(&client->nodes[i].uri, &alloc);
    }
    while ((line = take_line(client)) != NULL) alloc_free(&alloc, line);
    while (client->claims.first != NULL) claim_destroy(LIST_ITEM(client->claims.first, struct claim, all));
    while (client->locks.first != NULL) lock_destroy(LIST_ITEM(client->locks.first, struct quorlock, all));
    alloc_free(&alloc, client->buckets);
    inspect_drop_all(client);
    notices_clear(client);
    heap_clear(&client->deadlines, &alloc);
    if (client->timer != NULL) event_free(client->timer);
    if (client->at_top != NULL) event_free(client->at_top);
    if (client->timer_fd >= 0) close(client->timer_fd);
    alloc_free(&alloc, client->key_prefix);
    alloc_free(&alloc, client->owner_label);
    alloc_free(&alloc, client->set);
    alloc_free(&alloc, client);
}

static void destroy(struct quorlock_client *client)
{
    void (*closed)(void *) = client->closed;
    void *arg = client->closed_arg;

    dismantle(client);
    if (closed != NULL) closed(arg);
}

static int build(struct quorlock_client *client, struct event_base *base, const char *const *nodes,
                 struct options_error *error)
{
    char set[OPTIONS_SET_SIZE];
    int status = parse_nodes(client, nodes, error);

    client->base = base;
    if (status == 0) status = copy_text(client, &client->key_prefix, client->options.key_prefix);
    if (status == 0) status = copy_text(client, &client->owner_label, client->options.owner_label);
    if (status != 0) return status;
    client->options.key_prefix = client->key_prefix;
    client->options.owner_label = client->owner_label;
    if (client->options.dialect == QUORLOCK_DIALECT_REDISSON && owner_uuid(client->uuid) != 0) {
        return options_fail(error, QUORLOCK_STATE, "getrandom failed: no owner without it");
    }
    name_set(client, set);
    status = copy_text(client, &client->set, set);
    if (status != 0) return status;
    /* Whether the caller gave the name stays to be seen. */
    if (client->options.set_name != NULL) client->options.set_name = client->set;
    if (start_timer(client) != 0) {
        return options_fail(error, QUORLOCK_NOMEM, "no timer: out of memory or of file descriptors");
    }
    admission_init(client);
    if (client_reserve_waker(client, &client->admission_look, on_room_look) != 0) return QUORLOCK_NOMEM;
    status = start_nodes(client);
    if (status == 0 && notices_init(client) != 0) status = QUORLOCK_NOMEM;
    return status;
}

int quorlock_client_new(quorlock_client **ret, struct event_base *base,
                        const struct quorlock_client_options *given)
{
    struct quorlock_client_options options;
    struct options_error error = {""};
    struct quorlock_client *client = NULL;
    struct alloc alloc;
    int status;

    if (ret == NULL || base == NULL) {
        options_report(given, ret == NULL ? "ret is NULL: there is no place for the client"
                                          : "base is NULL: the event_base to live on is needed");
        return QUORLOCK_INVAL;
    }
    status = options_client(&options, given, &error);
    if (status == 0) {
        alloc_init(&alloc, options.allocator);
        client = alloc_zero(&alloc, sizeof(*client) + options.n_nodes * sizeof(struct client_node));
        if (client == NULL) status = QUORLOCK_NOMEM;
    }
    if (status == 0) {
        client->alloc = alloc;
        client->timer_fd = -1;
        client->options = options;
        client->max_lease_given = options_max_lease_given(given);
        client->n_nodes = (uint32_t)options.n_nodes;
        status = build(client, base, options.nodes, &error);
        client->options.nodes = NULL;
        client->options.error = NULL;
        if (status != 0) dismantle(client);
    }
    if (status == QUORLOCK_NOMEM && error.text[0] == '\0')
        options_fail(&error, status, "%s", quorlock_status_text(status));
    if (status != 0) {
        options_report(given, error.text);
        return status;
    }
    *ret = client;
    return 0;
}

int quorlock_client_close(quorlock_client *client, void (*cb)(void *arg), void *arg)
{
    struct list_walk walk;
    struct link *at;

    if (client->closing) {
        return client_fail(client, QUORLOCK_CLOSED, "%s", quorlock_status_text(QUORLOCK_CLOSED));
    }
    client->closing = true;
    client->closed = cb;
    client->closed_arg = arg;
    client->close_until_us = client_now_us(client) + client_timeout_ms(client) * 1000ull;
    /* Locks stay in memory, and handles good, until the end: a caller may still free them. */
    list_walk_begin(&walk, &client->locks);
    while ((at = list_walk_next(&walk)) != NULL) {
        lock_give_up(LIST_ITEM(at, struct quorlock, all), QUORLOCK_CLOSED);
    }
    inspect_close_all(client);
    if (client->running == 0) {
        arm(client);
        client_run_soon(client);
    }
    return 0;
}

const char *quorlock_client_error(const quorlock_client *client)
{
    return client->error.text;
}
