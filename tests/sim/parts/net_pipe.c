/* SPDX-License-Identifier: BSD-3-Clause */
/* net_pipe.c - bytes on their way */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net_conn.h"
#include "panic.h"

#define BYTES_FIRST    1024
#define SEGMENTS_FIRST 16
#define SPARE_MAX      2048 /* bytes that a connection keeps for the next one */
#define ROOM_DEFAULT   65536
#define HASTE_US       200000 /* at most so long after the end of all faults until what they held up arrives */
#define RTO_US         200000 /* until TCP sends again what is not acknowledged: doubled each time... */
#define RTO_MORE_US    12000
#define RTO_MAX_US     120000000 /* ...up to here */
#define ACK_US         40000     /* an acknowledgement waits for an answer that takes it along */
#define KEPT_US        3000000   /* a proxy that stalled */
#define ORPHAN_US      60000000  /* what the kernel, or a proxy, goes on sending for a connection that is closed */
#define PIECE_US       200
#define KEEP_IDLE_US   10000000 /* as system_os.c sets it */
#define KEEP_PROBES_US 9000000
#define SERVER_IDLE_US 300000000 /* Redis' own tcp-keepalive */

/* ---- the path ---- */

bool tcp_is_cut(const struct conn *conn, enum net_way way)
{
    return conn->route->link.cut_until_us[way] > conn->net->queue->now_us;
}

bool tcp_is_away(const struct conn *conn)
{
    return conn->host->gone || conn->host->address != conn->address;
}

bool tcp_is_lost(struct conn *conn)
{
    uint32_t one_in = conn->route->link.lose_one_in;

    return one_in > 0 && rng_one_in(&conn->route->rng, one_in);
}

static bool passes(const struct conn *conn, enum net_way way)
{
    return !tcp_is_cut(conn, way) && !tcp_is_away(conn) && !conn->forgotten;
}

uint64_t tcp_trip_us(struct conn *conn, enum net_way way, size_t size)
{
    struct route *route = conn->route;
    const struct net_link *link = &route->link;
    uint64_t now_us = conn->net->queue->now_us, half_us = link->delay_us[way] / 2;
    uint64_t trip_us = 1 + half_us + (link->steady ? half_us : rng_long_tail(&route->rng, half_us));

    if (now_us < link->slow_until_us) trip_us += link->slow_us;
    if (link->bytes_per_ms == 0) return trip_us;
    if (route->idle_us[way] < now_us) route->idle_us[way] = now_us;
    route->idle_us[way] += size * 1000 / link->bytes_per_ms;
    return trip_us + (route->idle_us[way] - now_us);
}

/* ---- storage ---- */

static void make_room(struct pipe *pipe, size_t size)
{
    if (pipe->read == pipe->used) pipe->read = pipe->arrived = pipe->used = 0;
    if (pipe->used + size <= pipe->room) return;
    if (pipe->read > 0) memmove(pipe->bytes, pipe->bytes + pipe->read, pipe->used - pipe->read);
    pipe->arrived -= pipe->read;
    pipe->used -= pipe->read;
    pipe->read = 0;
    if (pipe->used + size <= pipe->room) return;
    while (pipe->used + size > pipe->room) pipe->room = pipe->room > 0 ? pipe->room * 2 : BYTES_FIRST;
    pipe->bytes = realloc(pipe->bytes, pipe->room);
    if (pipe->bytes == NULL) panic("no memory for %zu bytes on their way", pipe->room);
}

static struct segment *append(struct pipe *pipe)
{
    if (pipe->first + pipe->n < pipe->segments_room) return &pipe->segments[pipe->first + pipe->n++];
    if (pipe->first > 0) {
        memmove(pipe->segments, pipe->segments + pipe->first, pipe->n * sizeof(pipe->segments[0]));
        pipe->first = 0;
        return &pipe->segments[pipe->n++];
    }
    pipe->segments_room = pipe->segments_room > 0 ? pipe->segments_room * 2 : SEGMENTS_FIRST;
    pipe->segments = realloc(pipe->segments, pipe->segments_room * sizeof(pipe->segments[0]));
    if (pipe->segments == NULL) panic("no memory for %zu segments", pipe->segments_room);
    return &pipe->segments[pipe->n++];
}

/* What has not arrived never will. */
static void forget(struct conn *conn, enum net_way way)
{
    struct pipe *pipe = &conn->pipes[way];

    conn->cut_short |= pipe->used > pipe->arrived;
    pipe->used = pipe->arrived;
    pipe->first = pipe->n = 0;
    queue_set(conn->net->queue, &pipe->arrival, NEVER);
}

/* ---- the clocks of TCP ---- */

/*
 * Sent bytes that stay unacknowledged for too long, or probes of an idle connection, end it for the machine. Both
 * can happen only while something is wrong with the path, so only then is there a moment for it.
 */
static uint64_t patience_ends_us(struct conn *conn)
{
    const struct pipe *pipe = &conn->pipes[NET_TO_SERVER];
    uint64_t now_us = conn->net->queue->now_us;

    if (conn->unacked_us != NEVER && conn->acked_us <= now_us) {
        if (conn->acked_us > conn->heard_us) conn->heard_us = conn->acked_us;
        conn->unacked_us = conn->acked_us = NEVER;
    }
    if (conn->unacked_us != NEVER) return conn->unacked_us + conn->timeout_us;
    if (pipe->n > 0) return pipe->segments[pipe->first].sent_us + conn->timeout_us;
    return conn->heard_us + KEEP_IDLE_US + KEEP_PROBES_US;
}

static bool path_is_fine(const struct conn *conn)
{
    return passes(conn, NET_TO_SERVER) && passes(conn, NET_TO_CLIENT);
}

static void on_patience(void *arg)
{
    struct conn *conn = arg;
    uint64_t now_us = conn->net->queue->now_us, ends_us;

    if (conn->fd < 0) {
        forget(conn, NET_TO_SERVER);
        conn->end_due = true;
        tcp_serve(conn);
        return;
    }
    if (!conn->connected || conn->broken) return;
    ends_us = patience_ends_us(conn);
    if (path_is_fine(conn) && conn->unacked_us == NEVER && conn->pipes[NET_TO_SERVER].n == 0) {
        /* A probe gets its answer. */
        conn->heard_us = now_us;
        if (conn->far == FAR_LOST) tcp_fail(conn, ECONNRESET);
    } else if (now_us < ends_us) {
        queue_set(conn->net->queue, &conn->patience, ends_us);
    } else {
        tcp_fail(conn, ETIMEDOUT);
    }
}

/* Probes while all was well were answered. */
static void lose_patience(struct conn *conn)
{
    uint64_t now_us = conn->net->queue->now_us, ends_us;

    if (conn->fd < 0 || !conn->connected || conn->broken) return;
    if (conn->patience.index == 0) conn->heard_us += (now_us - conn->heard_us) / KEEP_IDLE_US * KEEP_IDLE_US;
    ends_us = patience_ends_us(conn);
    if (conn->patience.index == 0 || ends_us < conn->patience.at_us)
        queue_set(conn->net->queue, &conn->patience, ends_us);
}

/* ---- arrival ---- */

static void wake(struct conn *conn)
{
    if (conn->fd >= 0) conn->woken(conn->woken_arg, conn->fd);
}

/* The server's kernel knows no such connection. */
static void bounce(struct conn *conn)
{
    if (conn->resetting || conn->fd < 0) return;
    conn->resetting = true;
    tcp_push(conn, NET_TO_CLIENT, SEGMENT_RESET, NULL, 0);
}

static void reach_server(struct conn *conn, const struct segment *segment)
{
    if (tcp_is_cut(conn, NET_TO_CLIENT)) {
        if (conn->unacked_us == NEVER) conn->unacked_us = segment->sent_us;
        conn->acked_us = conn->route->link.cut_until_us[NET_TO_CLIENT];
        lose_patience(conn);
    } else {
        conn->heard_us = conn->net->queue->now_us;
    }
    if (conn->far != FAR_OPEN) {
        conn->pipes[NET_TO_SERVER].read = conn->pipes[NET_TO_SERVER].arrived;
        bounce(conn);
    }
    if (segment->kind == SEGMENT_OPENED) conn->accept_due = true;
    if (segment->kind == SEGMENT_END) conn->end_due = true;
}

static void reach_client(struct conn *conn, const struct segment *segment)
{
    conn->heard_us = conn->net->queue->now_us;
    if (segment->kind == SEGMENT_END) conn->ended = true;
    if (segment->kind != SEGMENT_RESET) return;
    /* Some systems throw away what was not read yet. */
    if (rng_one_in(&conn->route->rng, 2)) conn->pipes[NET_TO_CLIENT].read = conn->pipes[NET_TO_CLIENT].arrived;
    tcp_fail(conn, ECONNRESET);
}

/* The first segment, or a piece of it. */
static struct segment take(struct conn *conn, struct pipe *pipe)
{
    struct segment *first = &pipe->segments[pipe->first], taken = *first;
    uint32_t one_in = conn->route->link.split_one_in;

    if (first->size > 1 && one_in > 0 && rng_one_in(&conn->route->rng, one_in)) {
        taken.size = 1 + (uint32_t)rng_below(&conn->route->rng, first->size - 1);
        first->size -= taken.size;
        first->at_us = conn->net->queue->now_us + 1 + rng_below(&conn->route->rng, PIECE_US);
    } else {
        pipe->n--;
        pipe->first = pipe->n > 0 ? pipe->first + 1 : 0;
    }
    pipe->arrived += taken.size;
    return taken;
}

/* ---- what is lost is sent again ---- */

/* The first time after that one at which the first segment is sent again. */
static uint64_t again_us(struct conn *conn, enum net_way way, uint64_t after_us)
{
    const struct pipe *pipe = &conn->pipes[way];
    const uint64_t *delay_us = conn->route->link.delay_us;
    uint64_t at_us = pipe->segments[pipe->first].sent_us, step_us;

    if (conn->rto_us == 0)
        conn->rto_us = (uint32_t)(RTO_US + delay_us[NET_TO_SERVER] + delay_us[NET_TO_CLIENT] +
                                  rng_below(&conn->route->rng, RTO_MORE_US));
    for (step_us = conn->rto_us; at_us <= after_us; step_us = step_us < RTO_MAX_US / 2 ? 2 * step_us : RTO_MAX_US)
        at_us += step_us;
    return at_us;
}

/* Nobody sends for it any more, and the server hears nothing for some minutes. */
static void abandon(struct conn *conn)
{
    struct queue *queue = conn->net->queue;

    forget(conn, NET_TO_SERVER);
    if (conn->far == FAR_OPEN && conn->patience.index == 0)
        queue_set(queue, &conn->patience, queue->now_us + SERVER_IDLE_US);
}

/* A kernel gives up on a closed connection when the user timeout of its process has passed since the first time that
 * it sent again. */
static bool is_given_up(const struct conn *conn, uint64_t at_us)
{
    const struct pipe *pipe = &conn->pipes[NET_TO_SERVER];
    uint64_t longest_us = conn->proxied || conn->timeout_us > ORPHAN_US ? ORPHAN_US : conn->timeout_us;

    return conn->fd < 0 && at_us > pipe->segments[pipe->first].sent_us + conn->rto_us + longest_us;
}

static void send_again(struct conn *conn, enum net_way way)
{
    struct pipe *pipe = &conn->pipes[way];
    uint64_t until_us = conn->route->link.cut_until_us[way], now_us = conn->net->queue->now_us, at_us;
    bool sends = conn->near != NEAR_VANISHED && (conn->near != NEAR_RESET || conn->proxied);

    if (way == NET_TO_SERVER && !sends) {
        abandon(conn);
        return;
    }
    if (until_us == NEVER || tcp_is_away(conn) || conn->forgotten) return;
    at_us = again_us(conn, way, until_us > now_us ? until_us : now_us);
    if (way == NET_TO_SERVER && is_given_up(conn, at_us)) {
        abandon(conn);
        return;
    }
    if (way == NET_TO_SERVER) conn->again = true;
    queue_set(conn->net->queue, &pipe->arrival, at_us);
}

static void await_path(struct conn *conn, enum net_way way)
{
    struct pipe *pipe = &conn->pipes[way];

    if (pipe->segments[pipe->first].kind == SEGMENT_RESET) {
        /* Nobody sends it again. */
        forget(conn, way);
        conn->resetting = false;
    } else {
        send_again(conn, way);
    }
    lose_patience(conn);
}

/* What is sent again for a closed connection is one segment, unless the kernel has put them together. The others leave
 * when that is acknowledged: with the answer to it, which is met by a reset, or before. */
static void hold_back(struct conn *conn)
{
    struct pipe *pipe = &conn->pipes[NET_TO_SERVER];
    struct rng *rng = &conn->route->rng;
    uint64_t acked_us = conn->net->queue->now_us + (rng_one_in(rng, 2) ? ACK_US : 0), at_us;

    if (pipe->n == 0 || rng_one_in(rng, 3)) return;
    at_us = acked_us + tcp_trip_us(conn, NET_TO_CLIENT, 0) + tcp_trip_us(conn, NET_TO_SERVER, 0);
    for (size_t i = 0; i < pipe->n; i++) {
        struct segment *segment = &pipe->segments[pipe->first + i];

        if (segment->at_us < at_us) segment->at_us = at_us;
    }
}

static void arrive(struct conn *conn, enum net_way way)
{
    struct pipe *pipe = &conn->pipes[way];
    uint64_t now_us = conn->net->queue->now_us;
    bool late = way == NET_TO_SERVER && conn->again && conn->fd < 0;

    if (!passes(conn, way) || tcp_is_lost(conn)) {
        await_path(conn, way);
        return;
    }
    if (way == NET_TO_SERVER) conn->again = false;
    conn->resent |= late;
    while (pipe->n > 0 && pipe->segments[pipe->first].at_us <= now_us) {
        struct segment segment = take(conn, pipe);

        if (way == NET_TO_SERVER)
            reach_server(conn, &segment);
        else
            reach_client(conn, &segment);
        if (late) hold_back(conn);
        late = false;
    }
    if (pipe->n > 0) queue_set(conn->net->queue, &pipe->arrival, pipe->segments[pipe->first].at_us);
    if (way == NET_TO_CLIENT) {
        wake(conn);
        return;
    }
    tcp_serve(conn);
}

static void on_arrival_at_server(void *arg)
{
    arrive(arg, NET_TO_SERVER);
}

static void on_arrival_at_client(void *arg)
{
    arrive(arg, NET_TO_CLIENT);
}

/* ---- connections ---- */

static struct conn *spare_conn(struct net *net)
{
    struct conn *conn = net->spare;

    if (conn != NULL) {
        net->spare = conn->next_spare;
        return conn;
    }
    conn = calloc(1, sizeof(*conn));
    if (conn == NULL) panic("no memory for a connection");
    return conn;
}

static struct pipe fresh_pipe(const struct pipe *old, void (*happen)(void *), struct conn *conn)
{
    return (struct pipe){.arrival = {.happen = happen, .arg = conn},
                         .bytes = old->bytes,
                         .room = old->room,
                         .segments = old->segments,
                         .segments_room = old->segments_room};
}

struct conn *tcp_new(struct net *net, uint32_t machine, uint32_t server)
{
    struct conn *conn = spare_conn(net);
    const struct pipe to_server = fresh_pipe(&conn->pipes[NET_TO_SERVER], on_arrival_at_server, conn);
    const struct pipe to_client = fresh_pipe(&conn->pipes[NET_TO_CLIENT], on_arrival_at_client, conn);

    *conn = (struct conn){.net = net,
                          .route = net_route(net, machine, server),
                          .host = &net->hosts[server],
                          .machine = machine,
                          .server = server,
                          .address = net->hosts[server].address,
                          .pipes = {to_server, to_client},
                          .fd = -1,
                          .began_us = net->queue->now_us,
                          .heard_us = net->queue->now_us,
                          .used_us = net->queue->now_us,
                          .patience = {.happen = on_patience, .arg = conn},
                          .unacked_us = NEVER,
                          .acked_us = NEVER};
    list_add(&conn->route->conns, &conn->at);
    return conn;
}

/* Else each of thousands would once have been the one that carried most, and keep that. */
static void trim(struct pipe *pipe)
{
    if (pipe->room > SPARE_MAX) {
        free(pipe->bytes);
        pipe->bytes = NULL;
        pipe->room = 0;
    }
    if (pipe->segments_room * sizeof(pipe->segments[0]) > SPARE_MAX) {
        free(pipe->segments);
        pipe->segments = NULL;
        pipe->segments_room = 0;
    }
}

void tcp_drop(struct conn *conn)
{
    struct net *net = conn->net;

    queue_set(net->queue, &conn->shake, NEVER);
    queue_set(net->queue, &conn->patience, NEVER);
    for (enum net_way way = 0; way < NET_WAYS; way++) {
        queue_set(net->queue, &conn->pipes[way].arrival, NEVER);
        trim(&conn->pipes[way]);
    }
    list_remove(&conn->route->conns, &conn->at);
    conn->next_spare = net->spare;
    net->spare = conn;
}

static void drop_if_over(struct conn *conn)
{
    if (conn->fd < 0 && conn->far != FAR_OPEN && !conn->busy) tcp_drop(conn);
}

void tcp_push(struct conn *conn, enum net_way way, enum segment_kind kind, const void *bytes, size_t size)
{
    struct pipe *pipe = &conn->pipes[way];
    uint64_t now_us = conn->net->queue->now_us;
    struct segment *last = pipe->n > 0 ? &pipe->segments[pipe->first + pipe->n - 1] : NULL;
    uint64_t after_us = last != NULL ? last->at_us : 0, at_us;

    if (conn->route->link.forgets_us != 0 && now_us - conn->used_us > conn->route->link.forgets_us)
        conn->forgotten = true;
    conn->used_us = now_us;
    make_room(pipe, size);
    if (size > 0) memcpy(pipe->bytes + pipe->used, bytes, size);
    pipe->used += size;
    /* What leaves at one time leaves in one piece. */
    if (last != NULL && last->kind == kind && last->sent_us == now_us && kind == SEGMENT_BYTES) {
        last->size += (uint32_t)size;
        return;
    }
    at_us = now_us + tcp_trip_us(conn, way, size);
    *append(pipe) = (struct segment){at_us > after_us ? at_us : after_us, now_us, (uint32_t)size, kind};
    if (pipe->n == 1) queue_set(conn->net->queue, &pipe->arrival, at_us);
}

void tcp_fail(struct conn *conn, int error)
{
    conn->error = error;
    conn->broken = true;
    queue_set(conn->net->queue, &conn->shake, NEVER);
    queue_set(conn->net->queue, &conn->patience, NEVER);
    forget(conn, NET_TO_SERVER);
    forget(conn, NET_TO_CLIENT);
    if (conn->far == FAR_OPEN) tcp_push(conn, NET_TO_SERVER, SEGMENT_END, NULL, 0);
    wake(conn);
}

void tcp_serve(struct conn *conn)
{
    struct pipe *pipe = &conn->pipes[NET_TO_SERVER];
    const struct net_server *listener = &conn->host->listener;

    if (conn->host->frozen) return;
    conn->busy = true;
    if (conn->far == FAR_OPEN && conn->accept_due) conn->session = listener->accept(listener->server, conn);
    conn->accept_due = false;
    if (conn->far == FAR_OPEN && pipe->read < pipe->arrived)
        listener->input(conn->session, pipe->bytes + pipe->read, pipe->arrived - pipe->read);
    pipe->read = pipe->arrived;
    if (conn->far == FAR_OPEN && conn->end_due) {
        conn->far = FAR_CLOSED;
        if (conn->session != NULL) listener->gone(conn->session);
    }
    conn->busy = false;
    if (conn->starved && tcp_is_writable(conn)) {
        conn->starved = false;
        wake(conn);
    }
    drop_if_over(conn);
}

/* A proxy goes on sending, and may have kept what it has for a while. */
static void hand_over(struct conn *conn)
{
    struct pipe *pipe = &conn->pipes[NET_TO_SERVER];
    struct rng *rng = &conn->route->rng;
    uint64_t at_us = conn->net->queue->now_us + rng_below(rng, KEPT_US);

    conn->proxied = conn->route->link.proxied && rng_one_in(rng, 2);
    if (!conn->proxied || pipe->n == 0 || rng_one_in(rng, 2)) return;
    for (size_t i = 0; i < pipe->n; i++) pipe->segments[pipe->first + i].at_us = at_us;
    queue_set(conn->net->queue, &pipe->arrival, at_us);
}

/* What was not there in time has to be sent again: nobody does so. The rest is in the network. */
static void take_back(struct conn *conn)
{
    const struct pipe *pipe = &conn->pipes[NET_TO_SERVER];

    if (pipe->n > 0 && (pipe->segments[pipe->first].at_us <= conn->net->queue->now_us || conn->again))
        forget(conn, NET_TO_SERVER);
}

void tcp_close(struct conn *conn, enum near_end near)
{
    struct queue *queue = conn->net->queue;
    const struct pipe *from = &conn->pipes[NET_TO_CLIENT];

    queue_set(queue, &conn->shake, NEVER);
    queue_set(queue, &conn->patience, NEVER);
    /* The kernel resets what was not read to its end. */
    if (near != NEAR_VANISHED && from->arrived > from->read) near = NEAR_RESET;
    conn->fd = -1;
    conn->near = near;
    forget(conn, NET_TO_CLIENT);
    if (near == NEAR_RESET) hand_over(conn);
    if (near == NEAR_RESET && !conn->proxied) take_back(conn);
    /* When it broke, the end was sent. */
    if (conn->far == FAR_OPEN && near != NEAR_VANISHED && !conn->broken)
        tcp_push(conn, NET_TO_SERVER, SEGMENT_END, NULL, 0);
    if (near == NEAR_VANISHED && tcp_is_cut(conn, NET_TO_SERVER)) forget(conn, NET_TO_SERVER);
    if (conn->far == FAR_OPEN && (conn->pipes[NET_TO_SERVER].n == 0 || near == NEAR_VANISHED || tcp_is_away(conn)))
        queue_set(queue, &conn->patience, queue->now_us + SERVER_IDLE_US);
    drop_if_over(conn);
}

/* Its kernel knows no such connection any more. The server sends its answer again until it hears that. */
void tcp_refuse(struct conn *conn)
{
    struct queue *queue = conn->net->queue;
    uint64_t at_us = conn->route->link.cut_until_us[NET_TO_CLIENT];

    if (conn->refused || conn->near == NEAR_VANISHED || conn->forgotten || tcp_is_away(conn) || at_us == NEVER) return;
    conn->refused = true;
    at_us = at_us > queue->now_us ? at_us + rng_below(&conn->route->rng, RTO_US) : queue->now_us;
    at_us += tcp_trip_us(conn, NET_TO_CLIENT, 0) + tcp_trip_us(conn, NET_TO_SERVER, 0);
    if (conn->patience.index == 0 || at_us < conn->patience.at_us) queue_set(queue, &conn->patience, at_us);
}

void tcp_tear(struct conn *conn)
{
    struct pipe *pipe = &conn->pipes[NET_TO_SERVER];
    struct segment *first = pipe->n > 0 ? &pipe->segments[pipe->first] : NULL, torn;

    if (first == NULL || first->at_us <= conn->net->queue->now_us || first->size < 2) return;
    if (conn->again || !passes(conn, NET_TO_SERVER)) return;
    torn = *first;
    torn.size = 1 + (uint32_t)rng_below(&conn->route->rng, first->size - 1);
    first->size -= torn.size;
    pipe->arrived += torn.size;
    reach_server(conn, &torn);
    tcp_serve(conn);
}

void tcp_lost(struct conn *conn, bool reset, bool told)
{
    conn->far = FAR_LOST;
    conn->accept_due = conn->end_due = false;
    conn->session = NULL;
    /* A host that vanished sends nothing again. */
    if (!told) forget(conn, NET_TO_CLIENT);
    if (conn->fd >= 0 && told && !conn->broken) {
        if (!reset || !conn->resetting) tcp_push(conn, NET_TO_CLIENT, reset ? SEGMENT_RESET : SEGMENT_END, NULL, 0);
        if (reset) conn->resetting = true;
    }
    drop_if_over(conn);
}

void tcp_break(struct conn *conn, bool late, uint64_t late_us)
{
    struct pipe *pipe = &conn->pipes[NET_TO_SERVER];
    uint64_t at_us = conn->net->queue->now_us + late_us;

    if (conn->fd < 0 || conn->broken) return;
    if (!late && rng_one_in(&conn->route->rng, 2)) tcp_tear(conn);
    if (!late || pipe->n == 0) {
        tcp_fail(conn, ECONNRESET);
        return;
    }
    conn->broken = true;
    conn->error = ECONNRESET;
    forget(conn, NET_TO_CLIENT);
    queue_set(conn->net->queue, &conn->patience, NEVER);
    for (size_t i = 0; i < pipe->n; i++) pipe->segments[pipe->first + i].at_us = at_us;
    queue_set(conn->net->queue, &pipe->arrival, at_us);
    if (conn->far == FAR_OPEN) tcp_push(conn, NET_TO_SERVER, SEGMENT_END, NULL, 0);
    wake(conn);
}

void tcp_changed(struct conn *conn)
{
    struct queue *queue = conn->net->queue;

    if (conn->unacked_us != NEVER && conn->acked_us > queue->now_us)
        conn->acked_us =
            tcp_is_cut(conn, NET_TO_CLIENT) ? conn->route->link.cut_until_us[NET_TO_CLIENT] : queue->now_us;
    for (enum net_way way = 0; way < NET_WAYS; way++) {
        struct pipe *pipe = &conn->pipes[way];

        if (pipe->n == 0) continue;
        if (pipe->segments[pipe->first].at_us > queue->now_us)
            queue_set(queue, &pipe->arrival, pipe->segments[pipe->first].at_us);
        else if (passes(conn, way))
            send_again(conn, way);
        else
            await_path(conn, way);
    }
    if (!path_is_fine(conn) || conn->far == FAR_LOST) lose_patience(conn);
    if (conn->starved) tcp_serve(conn);
}

void tcp_hasten(struct conn *conn)
{
    uint64_t now_us = conn->net->queue->now_us, soon_us = now_us + HASTE_US;

    for (enum net_way way = 0; way < NET_WAYS && !conn->broken && conn->fd >= 0; way++) {
        struct pipe *pipe = &conn->pipes[way];

        for (size_t i = 0; i < pipe->n; i++) {
            struct segment *segment = &pipe->segments[pipe->first + i];

            if (segment->at_us > soon_us) segment->at_us = soon_us;
            /* What waits for its next time to be sent. */
            if (segment->at_us <= now_us) segment->at_us = now_us + 1 + rng_below(&conn->route->rng, HASTE_US);
        }
    }
    tcp_changed(conn);
}

size_t tcp_free_room(const struct conn *conn)
{
    const struct pipe *pipe = &conn->pipes[NET_TO_SERVER];
    size_t room = conn->route->link.room > 0 ? conn->route->link.room : ROOM_DEFAULT, used = pipe->used - pipe->read;

    return used < room ? room - used : 0;
}

bool tcp_is_writable(const struct conn *conn)
{
    const struct pipe *pipe = &conn->pipes[NET_TO_SERVER];

    return tcp_free_room(conn) * 2 >= pipe->used - pipe->read && tcp_free_room(conn) > 0;
}
