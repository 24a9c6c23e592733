/* SPDX-License-Identifier: BSD-3-Clause */
/* net.c - the calls of both ends, addresses, and the faults of links */
#include "net.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/system.h"
#include "net_conn.h"
#include "panic.h"

#define PORT          6379
#define FD_FIRST      100000 /* no descriptors of this process */
#define FD_STRIDE     10000
#define DELAY_US      200
#define SYN_US        1000000 /* until TCP tries again: doubled each time */
#define SYN_LIMIT_US  127000000
#define SENT_LIMIT_US 924000000 /* where the user sets none: tcp_retries2 */

/* ---- the whole ---- */

struct net *net_new(struct queue *queue)
{
    struct net *net = calloc(1, sizeof(*net));

    if (net == NULL) panic("no memory for a network");
    net->queue = queue;
    return net;
}

struct route *net_route(struct net *net, uint32_t machine, uint32_t server)
{
    if (machine >= net->n_machines || server >= net->n_servers) panic("no link from %u to %u", machine, server);
    return &net->routes[machine * net->n_servers + server];
}

static void drop_all(struct net *net)
{
    for (uint32_t i = 0; i < net->n_machines * net->n_servers; i++)
        LIST_WALK (struct conn, conn, &net->routes[i].conns, at) tcp_drop(conn);
    for (uint32_t i = 0; i < net->n_machines; i++) {
        struct fds *fds = &net->fds[i];

        if (fds->n > 0) memset(fds->conns, 0, fds->n * sizeof(struct conn *));
        fds->n = fds->lowest = 0;
    }
}

void net_free(struct net *net)
{
    if (net == NULL) return;
    drop_all(net);
    while (net->spare != NULL) {
        struct conn *conn = net->spare;

        net->spare = conn->next_spare;
        for (enum net_way way = 0; way < NET_WAYS; way++) {
            free(conn->pipes[way].bytes);
            free(conn->pipes[way].segments);
        }
        free(conn);
    }
    for (uint32_t i = 0; i < net->fds_room; i++) free(net->fds[i].conns);
    free(net->fds);
    free(net->routes);
    free(net);
}

static void make_room(struct net *net, uint32_t n_machines, uint32_t n_routes)
{
    if (n_routes > net->routes_room) {
        net->routes = realloc(net->routes, n_routes * sizeof(net->routes[0]));
        net->routes_room = n_routes;
    }
    if (n_machines > net->fds_room) {
        net->fds = realloc(net->fds, n_machines * sizeof(net->fds[0]));
        if (net->fds != NULL) memset(net->fds + net->fds_room, 0, (n_machines - net->fds_room) * sizeof(net->fds[0]));
        net->fds_room = n_machines;
    }
    if (net->routes == NULL || net->fds == NULL) panic("no memory for %u machines", n_machines);
}

void net_reset(struct net *net, uint64_t seed, uint32_t n_machines, uint32_t n_servers)
{
    uint32_t n_routes = n_machines * n_servers;

    if (n_servers >= NET_ADDRESSES / 2) panic("%u servers are too many", n_servers);
    drop_all(net);
    make_room(net, n_machines, n_routes);
    net->n_machines = n_machines;
    net->n_servers = n_servers;
    memset(net->at_address, 0, sizeof(net->at_address));
    for (uint32_t i = 0; i < n_servers; i++) {
        net->hosts[i] = (struct host){.address = i + 1};
        net->at_address[i + 1] = (uint8_t)(i + 1);
    }
    net->next_address = n_servers + 1;
    for (uint32_t i = 0; i < n_routes; i++) {
        net->routes[i] = (struct route){.link.delay_us = {DELAY_US, DELAY_US}};
        rng_seed(&net->routes[i].rng, seed, rng_mix(i / n_servers, i % n_servers));
    }
}

/* ---- descriptors ---- */

uint32_t net_fd_index(int fd)
{
    return (uint32_t)(fd - FD_FIRST) % FD_STRIDE;
}

static struct conn *conn_of(const struct net *net, int fd)
{
    uint32_t machine = (uint32_t)(fd - FD_FIRST) / FD_STRIDE, i = net_fd_index(fd);
    const struct fds *fds = fd >= FD_FIRST && machine < net->n_machines ? &net->fds[machine] : NULL;

    if (fds == NULL || i >= fds->n || fds->conns[i] == NULL) panic("descriptor %d is used, and is not open", fd);
    return fds->conns[i];
}

static int open_fd(struct net *net, struct conn *conn)
{
    struct fds *fds = &net->fds[conn->machine];
    uint32_t i = fds->lowest;

    while (i < fds->n && fds->conns[i] != NULL) i++;
    if (i == fds->room) {
        fds->room = fds->room > 0 ? fds->room * 2 : 16;
        fds->conns = realloc(fds->conns, fds->room * sizeof(struct conn *));
        if (fds->conns == NULL || fds->room >= FD_STRIDE) panic("%u descriptors are too many", fds->room);
    }
    if (i == fds->n) fds->n++;
    fds->conns[i] = conn;
    fds->lowest = i + 1;
    return FD_FIRST + (int)(conn->machine * FD_STRIDE + i);
}

static void close_fd(struct net *net, const struct conn *conn)
{
    struct fds *fds = &net->fds[conn->machine];
    uint32_t i = net_fd_index(conn->fd);

    fds->conns[i] = NULL;
    if (i < fds->lowest) fds->lowest = i;
}

/* ---- the handshake ---- */

static void happen_at(struct conn *conn, void (*happen)(void *), uint64_t at_us)
{
    conn->shake = (struct moment){.index = conn->shake.index, .happen = happen, .arg = conn};
    queue_set(conn->net->queue, &conn->shake, at_us);
}

static void refuse(struct conn *conn, int error)
{
    tcp_fail(conn, error);
}

static void on_given_up(void *arg)
{
    refuse(arg, ETIMEDOUT);
}

static void send_syn(void *arg);

/* Nobody answered. */
static void try_again(struct conn *conn)
{
    uint64_t again_us = conn->began_us + (((uint64_t)1 << conn->tries) - 1) * SYN_US;
    uint64_t limit_us = conn->timeout_us < SYN_LIMIT_US ? conn->timeout_us : SYN_LIMIT_US;

    if (again_us < conn->began_us + limit_us)
        happen_at(conn, send_syn, again_us);
    else
        happen_at(conn, on_given_up, conn->began_us + limit_us);
}

static void on_refused(void *arg)
{
    struct conn *conn = arg;

    if (tcp_is_cut(conn, NET_TO_CLIENT))
        try_again(conn);
    else
        refuse(conn, ECONNREFUSED);
}

static void on_accepted(void *arg)
{
    struct conn *conn = arg;

    if (tcp_is_cut(conn, NET_TO_CLIENT)) {
        try_again(conn);
        return;
    }
    conn->connected = true;
    conn->heard_us = conn->net->queue->now_us;
    conn->far = conn->process == conn->host->process ? FAR_OPEN : FAR_LOST;
    tcp_push(conn, NET_TO_SERVER, SEGMENT_OPENED, NULL, 0);
    conn->woken(conn->woken_arg, conn->fd);
}

static void on_syn(void *arg)
{
    struct conn *conn = arg;
    const struct net_link *link = &conn->route->link;

    if (tcp_is_cut(conn, NET_TO_SERVER) || tcp_is_away(conn) || link->drops_syn || tcp_is_lost(conn)) {
        try_again(conn);
        return;
    }
    conn->process = conn->host->process;
    happen_at(conn, conn->host->listens && !link->refuses ? on_accepted : on_refused,
              conn->net->queue->now_us + tcp_trip_us(conn, NET_TO_CLIENT, 0));
}

static void send_syn(void *arg)
{
    struct conn *conn = arg;

    conn->tries++;
    happen_at(conn, on_syn, conn->net->queue->now_us + tcp_trip_us(conn, NET_TO_SERVER, 0));
}

/* ---- the machine's end ---- */

int net_connect(struct net *net, uint32_t machine, const struct address *address, uint32_t user_timeout_ms,
                net_woken woken, void *arg)
{
    const struct sockaddr_in *to = (const struct sockaddr_in *)&address->storage;
    uint32_t ip = ntohl(to->sin_addr.s_addr);
    struct conn *conn;

    errno = ENETUNREACH;
    if (to->sin_family != AF_INET || (ip & ~(NET_ADDRESSES - 1u)) != NET_SUBNET) return -1;
    ip %= NET_ADDRESSES;
    /* Where nobody is, nobody answers; the link of somebody else carries that silence. */
    conn = tcp_new(net, machine, net->at_address[ip] > 0 ? net->at_address[ip] - 1u : 0);
    conn->address = ip;
    conn->woken = woken;
    conn->woken_arg = arg;
    conn->timeout_us = user_timeout_ms > 0 ? user_timeout_ms * UINT64_C(1000) : SENT_LIMIT_US;
    conn->fd = open_fd(net, conn);
    if (ntohs(to->sin_port) == PORT)
        send_syn(conn);
    else
        happen_at(conn, on_refused, net->queue->now_us + DELAY_US);
    return conn->fd;
}

int net_finish(struct net *net, int fd)
{
    struct conn *conn = conn_of(net, fd);
    int error = conn->error;

    conn->error = 0;
    return error;
}

static ssize_t fail(struct conn *conn, int otherwise)
{
    errno = conn->error != 0 ? conn->error : otherwise;
    conn->error = 0;
    return -1;
}

ssize_t net_send(struct net *net, int fd, const void *bytes, size_t size)
{
    struct conn *conn = conn_of(net, fd);
    size_t room = tcp_free_room(conn);
    uint32_t one_in = conn->route->link.split_one_in;

    if (conn->broken) return fail(conn, EPIPE);
    if (!conn->connected || room == 0) {
        conn->starved = true;
        errno = EAGAIN;
        return -1;
    }
    if (size > room) size = room;
    if (size > 1 && one_in > 0 && rng_one_in(&conn->route->rng, one_in))
        size = 1 + (size_t)rng_below(&conn->route->rng, size - 1);
    tcp_push(conn, NET_TO_SERVER, SEGMENT_BYTES, bytes, size);
    return (ssize_t)size;
}

ssize_t net_recv(struct net *net, int fd, void *ret, size_t size)
{
    struct conn *conn = conn_of(net, fd);
    struct pipe *pipe = &conn->pipes[NET_TO_CLIENT];
    size_t unread = pipe->arrived - pipe->read;

    if (unread > 0) {
        if (size > unread) size = unread;
        memcpy(ret, pipe->bytes + pipe->read, size);
        pipe->read += size;
        return (ssize_t)size;
    }
    if (conn->error != 0) return fail(conn, 0);
    if (conn->ended || conn->broken) return 0;
    errno = EAGAIN;
    return -1;
}

bool net_has_input(struct net *net, int fd)
{
    const struct conn *conn = conn_of(net, fd);
    const struct pipe *pipe = &conn->pipes[NET_TO_CLIENT];

    return pipe->arrived > pipe->read || (conn->error == 0 && (conn->ended || conn->broken));
}

unsigned net_ready(struct net *net, int fd)
{
    const struct conn *conn = conn_of(net, fd);
    const struct pipe *pipe = &conn->pipes[NET_TO_CLIENT];
    unsigned ready = 0;

    if (conn->broken) return WATCH_READ | WATCH_WRITE;
    if (!conn->connected) return 0;
    if (pipe->arrived > pipe->read || conn->ended) ready |= WATCH_READ;
    if (tcp_is_writable(conn)) ready |= WATCH_WRITE;
    return ready;
}

uint32_t net_server_of(const struct net *net, int fd)
{
    return conn_of(net, fd)->server;
}

bool net_is_owed(const struct net *net, int fd)
{
    const struct conn *conn = conn_of(net, fd);
    const struct pipe *to = &conn->pipes[NET_TO_SERVER], *from = &conn->pipes[NET_TO_CLIENT];

    return conn->cut_short || to->used != to->read || from->used != from->read;
}

bool net_is_full(struct net *net, uint32_t machine, uint32_t server)
{
    LIST_EACH (struct conn, conn, &net_route(net, machine, server)->conns, at) {
        if (conn->connected && conn->fd >= 0 && conn->starved && tcp_free_room(conn) == 0) return true;
    }
    return false;
}

bool net_is_deserted(const struct conn *conn)
{
    return conn->fd < 0;
}

bool net_is_resent(const struct conn *conn)
{
    return conn->resent && conn->near == NEAR_IN_ORDER && !conn->proxied;
}

void net_keep_sending(struct net *net, int fd)
{
    conn_of(net, fd)->keeps_sending = true;
}

void net_close(struct net *net, int fd, bool reset)
{
    struct conn *conn = conn_of(net, fd);

    close_fd(net, conn);
    tcp_close(conn, reset ? NEAR_RESET : NEAR_IN_ORDER);
}

void net_die(struct net *net, uint32_t machine, bool host)
{
    struct fds *fds = &net->fds[machine];

    for (uint32_t i = 0; i < fds->n; i++) {
        struct conn *conn = fds->conns[i];

        fds->conns[i] = NULL;
        if (conn != NULL) tcp_close(conn, host ? NEAR_VANISHED : conn->keeps_sending ? NEAR_DIED : NEAR_RESET);
    }
    fds->n = fds->lowest = 0;
}

/* ---- the server's end ---- */

/* All connections to that server. */
#define EACH_CONN(net, server, conn)                                                                                   \
    for (uint32_t machine_ = 0; machine_ < (net)->n_machines; machine_++)                                              \
        LIST_WALK (struct conn, conn, &net_route(net, machine_, server)->conns, at)

void net_listen(struct net *net, uint32_t server, const struct net_server *listener)
{
    struct host *host = &net->hosts[server];
    bool was_gone = host->gone;

    host->listens = listener != NULL;
    if (listener == NULL) return;
    host->listener = *listener;
    host->gone = host->frozen = false;
    if (!was_gone) return;
    EACH_CONN(net, server, conn) tcp_changed(conn);
}

void net_freeze(struct net *net, uint32_t server, bool frozen)
{
    net->hosts[server].frozen = frozen;
    if (frozen) return;
    EACH_CONN(net, server, conn) tcp_serve(conn);
}

void net_reply(struct conn *conn, const void *bytes, size_t size)
{
    if (conn->far != FAR_OPEN || conn->broken || size == 0) return;
    if (conn->fd >= 0)
        tcp_push(conn, NET_TO_CLIENT, SEGMENT_BYTES, bytes, size);
    else
        tcp_refuse(conn);
}

void net_hang_up(struct conn *conn)
{
    if (conn->far != FAR_OPEN) return;
    tcp_lost(conn, false, true);
}

void net_ended(struct net *net, uint32_t server, bool host)
{
    struct host *at = &net->hosts[server];

    at->process++;
    at->gone = host;
    at->frozen = at->listens = false;
    EACH_CONN(net, server, conn)
    {
        if (conn->far == FAR_OPEN) tcp_lost(conn, rng_one_in(&conn->route->rng, 2), !host);
    }
    if (!host) return;
    EACH_CONN(net, server, conn) tcp_changed(conn);
}

uint32_t net_address(const struct net *net, uint32_t server)
{
    return net->hosts[server].address;
}

uint32_t net_move(struct net *net, uint32_t server)
{
    struct host *host = &net->hosts[server];

    if (net->next_address == NET_ADDRESSES - 1) panic("no address is left");
    net->at_address[host->address] = 0;
    host->address = net->next_address++;
    net->at_address[host->address] = (uint8_t)(server + 1);
    EACH_CONN(net, server, conn) tcp_changed(conn);
    return host->address;
}

/* ---- faults ---- */

struct net_link *net_link(struct net *net, uint32_t machine, uint32_t server)
{
    return &net_route(net, machine, server)->link;
}

void net_changed(struct net *net, uint32_t machine, uint32_t server)
{
    LIST_WALK (struct conn, conn, &net_route(net, machine, server)->conns, at) tcp_changed(conn);
}

void net_tear(struct net *net, uint32_t machine, uint32_t server)
{
    LIST_WALK (struct conn, conn, &net_route(net, machine, server)->conns, at) tcp_tear(conn);
}

void net_break(struct net *net, uint32_t machine, uint32_t server, bool late, uint64_t late_us)
{
    LIST_WALK (struct conn, conn, &net_route(net, machine, server)->conns, at) tcp_break(conn, late, late_us);
}

void net_heal(struct net *net)
{
    for (uint32_t i = 0; i < net->n_machines * net->n_servers; i++) {
        struct route *route = &net->routes[i];
        struct net_link *link = &route->link;

        *link = (struct net_link){.delay_us = {link->delay_us[NET_TO_SERVER], link->delay_us[NET_TO_CLIENT]},
                                  .split_one_in = link->split_one_in,
                                  .steady = link->steady};
        memset(route->idle_us, 0, sizeof(route->idle_us));
        LIST_WALK (struct conn, conn, &route->conns, at) tcp_hasten(conn);
    }
}
