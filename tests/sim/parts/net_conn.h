/* SPDX-License-Identifier: BSD-3-Clause */
/* net_conn.h - inside the network: links, hosts, and connections with a pipe for each direction */
#pragma once

#include "base/list.h"
#include "net.h"

#define NET_ADDRESSES 256

/* What lies between a machine and a server. */
struct route {
    struct net_link link;
    struct rng rng;
    struct list conns;
    uint64_t idle_us[NET_WAYS]; /* when all bytes before have left, where bandwidth is bounded */
};

/* A server's kernel. */
struct host {
    struct net_server listener;
    bool listens, gone, frozen; /* gone: the whole host, silently */
    uint32_t process;           /* counts them */
    uint32_t address;           /* its last byte */
};

/* Descriptors of a machine: the lowest free number is used next, so that a stale one is soon another's. */
struct fds {
    struct conn **conns;
    uint32_t n, room, lowest;
};

struct net {
    struct queue *queue;
    uint32_t n_machines, n_servers, routes_room, fds_room;
    struct route *routes; /* of machine m and server s at m * n_servers + s */
    struct host hosts[NET_ADDRESSES];
    uint32_t next_address;
    uint8_t at_address[NET_ADDRESSES]; /* the server there, counted from 1 */
    struct fds *fds;
    struct conn *spare;
};

enum segment_kind { SEGMENT_BYTES, SEGMENT_OPENED, SEGMENT_END, SEGMENT_RESET };

struct segment {
    uint64_t at_us, sent_us;
    uint32_t size;
    enum segment_kind kind;
};

/* One direction of a connection. Of its bytes some have been read, some wait for the reader, the rest is on its
 * way, in segments. */
struct pipe {
    struct moment arrival; /* of the first segment */
    unsigned char *bytes;
    size_t room, read, arrived, used;
    struct segment *segments;
    size_t first, n, segments_room;
};

/* The server's end. LOST: it knows nothing of the connection, and answers everything with a reset. */
enum far_end { FAR_NONE, FAR_OPEN, FAR_CLOSED, FAR_LOST };

/* How the machine left its end: not yet; the kernel sends what is there, and sends it again; what has not left is gone;
 * the process, or the whole host, has ended. */
enum near_end { NEAR_OPEN, NEAR_IN_ORDER, NEAR_RESET, NEAR_DIED, NEAR_VANISHED };

struct conn {
    struct net *net;
    struct route *route;
    struct host *host;
    struct link at; /* in route->conns */
    struct conn *next_spare;
    uint32_t machine, server;
    uint32_t address, process; /* of the server when it was made */
    struct pipe pipes[NET_WAYS];

    int fd; /* -1: the machine has closed it */
    net_woken woken;
    void *woken_arg;
    bool connected, broken; /* connecting: neither */
    bool ended;             /* the server's end has arrived */
    bool starved;           /* was told EAGAIN */
    bool cut_short;         /* something on its way never arrived */
    bool again;             /* the first segment to the server was lost, and is sent again */
    bool resent;            /* that arrived, when the machine had closed it in order */
    bool keeps_sending;     /* also when the process dies */
    bool proxied;           /* not by the machine itself */
    bool refused;           /* the server's answer met a closed end */
    bool forgotten;         /* by a middlebox: nothing arrives any more */
    enum near_end near;
    uint32_t rto_us;     /* 0: not drawn yet */
    uint64_t used_us;    /* when something was sent last, either way */
    int error;           /* to be told once */
    struct moment shake; /* of the handshake */
    uint64_t began_us;
    unsigned tries;
    uint64_t timeout_us;

    /* Only while something is wrong with the path: see on_patience(). */
    struct moment patience;
    uint64_t heard_us;
    uint64_t unacked_us, acked_us; /* sent then, arrived, and acknowledged only then; NEVER: nothing */

    enum far_end far;
    bool accept_due, end_due, resetting, busy;
    void *session;
};

struct route *net_route(struct net *, uint32_t machine, uint32_t server);
/* tcp_new - begin to connect. The connection is freed when both ends are closed. tcp_drop - free it at once. */
struct conn *tcp_new(struct net *, uint32_t machine, uint32_t server);
void tcp_drop(struct conn *);
/* tcp_push - send bytes, or an end, now. tcp_serve - give the server what has arrived, unless it is frozen. */
void tcp_push(struct conn *, enum net_way, enum segment_kind, const void *bytes, size_t size);
void tcp_serve(struct conn *);
/*
 * tcp_fail   - break the machine's end, with that errno
 * tcp_close  - close the machine's end in one of these ways
 * tcp_refuse - answer with a reset what the server sends to a closed end
 * tcp_lost   - the server's end is gone. told: the machine sees it, by a reset or behind all other bytes
 * tcp_tear, tcp_break - do what net_tear() and net_break() say
 */
void tcp_fail(struct conn *, int error);
void tcp_close(struct conn *, enum near_end);
void tcp_refuse(struct conn *);
void tcp_tear(struct conn *);
void tcp_lost(struct conn *, bool reset, bool told);
void tcp_break(struct conn *, bool late, uint64_t late_us);
/* tcp_changed - the path has changed: reckon anew when bytes arrive. tcp_hasten - the path is whole again: let what it
 * delayed arrive soon. */
void tcp_changed(struct conn *);
void tcp_hasten(struct conn *);
/*
 * tcp_trip_us - return how long the next bytes take
 * tcp_is_cut  - return whether nothing passes in that direction
 * tcp_is_lost - draw whether this packet is lost
 * tcp_is_away - return whether nobody is at the address
 */
uint64_t tcp_trip_us(struct conn *, enum net_way, size_t size);
bool tcp_is_cut(const struct conn *, enum net_way);
bool tcp_is_lost(struct conn *);
bool tcp_is_away(const struct conn *);
bool tcp_is_writable(const struct conn *);
size_t tcp_free_room(const struct conn *);
