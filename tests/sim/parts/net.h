/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net.h - TCP connections between machines and servers, with everything that can go wrong on the way
 *
 * A link is what lies between one machine and one server; it has two directions. Bytes of a connection arrive in
 * order, cut anywhere. What is lost, by a cut or else, is sent again as TCP does it: some 0.2, 0.6, 1.4, 3, 6.2... s
 * after the first time. A server listens at 10.0.0.<index + 1> port 6379, and may get another address (net_move).
 *
 * The kernel goes on sending for a connection that was closed in order, for as long as its user timeout. So its bytes
 * may arrive after the first requests of its successor. Sent again, they mostly come one segment at a time, and the
 * server's answer to the first is met by a reset, because nobody reads it any more: what is behind is never executed.
 * A connection that was closed with a reset sends nothing again; what is on its way then may arrive all the same.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "queue.h"
#include "rng.h"

#define NET_SUBNET 0x0a000000u /* 10.0.0.0 */

struct address;
struct conn;
struct net;

enum net_way { NET_TO_SERVER, NET_TO_CLIENT, NET_WAYS };

/* What a machine's end tells its loop: something has changed there, look at net_ready(). */
typedef void (*net_woken)(void *arg, int fd);

/* What the server's end is told. accept returns what the others are handed as `session`. */
struct net_server {
    void *(*accept)(void *server, struct conn *);
    void (*input)(void *session, const void *bytes, size_t size);
    void (*gone)(void *session); /* the client's end closed, or the connection broke: no net_reply any more */
    void *server;
};

struct net *net_new(struct queue *);
void net_free(struct net *);
/* net_reset - begin a new world without connections and faults, whose chance comes from that seed. */
void net_reset(struct net *, uint64_t seed, uint32_t n_machines, uint32_t n_servers);

/* ---- the machine's end: as the calls of struct system_ops ---- */

int net_connect(struct net *, uint32_t machine, const struct address *, uint32_t user_timeout_ms, net_woken, void *arg);
int net_finish(struct net *, int fd);
ssize_t net_send(struct net *, int fd, const void *bytes, size_t size);
ssize_t net_recv(struct net *, int fd, void *ret, size_t size);
bool net_has_input(struct net *, int fd);
/* net_ready - return whether the descriptor is ready: bits of WATCH_READ and WATCH_WRITE. */
unsigned net_ready(struct net *, int fd);
uint32_t net_server_of(const struct net *, int fd);
/* net_fd_index - return the descriptor's number on its machine, from 0. Descriptors are unique in the world. */
uint32_t net_fd_index(int fd);
/* net_keep_sending - let net_die() close the connection in order, as the call of that name in struct system_ops. */
void net_keep_sending(struct net *, int fd);
/* net_close - close the connection in order, behind what was sent, unless unread bytes wait. reset: drop what has not
 * left. */
void net_close(struct net *, int fd, bool reset);
/*
 * net_is_owed     - return whether some bytes of the connection have not been read, or never will be
 * net_is_full     - return whether a connection of the link takes no more bytes
 * net_is_deserted - return whether the machine has closed the connection
 */
bool net_is_owed(const struct net *, int fd);
bool net_is_full(struct net *, uint32_t machine, uint32_t server);
bool net_is_deserted(const struct conn *);
/* net_is_resent - return whether a living process closed the connection in order, and its bytes were sent again. */
bool net_is_resent(const struct conn *);
/* net_die - the process of the machine has ended: reset its connections, or close them in order. host: the servers hear
 * nothing for some minutes. */
void net_die(struct net *, uint32_t machine, bool host);

/* ---- the server's end ---- */

/* net_listen - accept connections for the server; NULL: refuse them. */
void net_listen(struct net *, uint32_t server, const struct net_server *);
/* net_freeze - stop the process: its kernel still accepts connections and bytes, which wait there. */
void net_freeze(struct net *, uint32_t server, bool frozen);
void net_reply(struct conn *, const void *bytes, size_t size);
void net_hang_up(struct conn *);
/* net_ended - the server's process has ended: end its connections, with or without a reset. host: they are silent until
 * the host is back, and then reset. Nobody listens until net_listen(). */
void net_ended(struct net *, uint32_t server, bool host);
/* net_move - give the server another address, and return its last byte. The old address does not answer. */
uint32_t net_move(struct net *, uint32_t server);
uint32_t net_address(const struct net *, uint32_t server);

/* ---- faults ---- */

struct net_link {
    uint64_t delay_us[NET_WAYS];     /* mean, one way */
    uint64_t cut_until_us[NET_WAYS]; /* nothing arrives until then; NEVER: for good */
    uint64_t slow_us;                /* added to each delay... */
    uint64_t slow_until_us;          /* ...until then */
    uint32_t bytes_per_ms;           /* 0: any number */
    uint32_t room;                   /* bytes that are sent and have not arrived: beyond them EAGAIN; 0: 64 KiB */
    uint32_t split_one_in;           /* so many arrivals come in pieces; 0: none */
    bool steady;                     /* delays do not vary */
    uint32_t lose_one_in;            /* so many arrivals are lost, and come when they are sent again; 0: none */
    uint64_t forgets_us;             /* a middlebox forgets connections that were idle for so long; 0: it does not */
    bool proxied;                    /* what was sent goes on from there, also after a reset */
    bool refuses;                    /* connect is refused */
    bool drops_syn;                  /* connect hangs */
};

/* net_link - return the link of the pair. After a change call net_changed(). */
struct net_link *net_link(struct net *, uint32_t machine, uint32_t server);
void net_changed(struct net *, uint32_t machine, uint32_t server);
/* net_tear - let only a part of what is on its way to the server arrive, as if the link were cut in the middle of it.
 */
void net_tear(struct net *, uint32_t machine, uint32_t server);
/* net_break - reset the connections of the link, perhaps in the middle of what is on its way. late: bytes on their way
 * to the server arrive, and may be executed, long after the client saw the end. */
void net_break(struct net *, uint32_t machine, uint32_t server, bool late, uint64_t late_us);
/* net_heal - end all faults of links; delay_us, split_one_in and steady stay. What is on its way arrives soon, except
 * what a kernel or a proxy sends again. */
void net_heal(struct net *);
