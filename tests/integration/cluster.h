/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cluster.h - redis-servers for a test: start, stop, freeze, restart, wipe, and look at them from outside
 *
 * They are real (cluster.c), or model servers in a simulated world (simulated/cluster.c), which have no ports, folders
 * and unix sockets.
 *
 * The servers listen on 127.0.0.1 at free ports and on a unix socket in a folder of their own, and die with the
 * test whatever ends it. Every function here fails the running cmocka test when it cannot do its work.
 *
 * Where QUORLOCK_TEST_TLS is set in the environment the addresses are of rediss://, with a certificate of the test's
 * own; what looks at the servers from outside does so without TLS.
 */
#ifndef TESTS_CLUSTER_H
#define TESTS_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CLUSTER_NODES_MAX 9
#define TEXT_SIZE         256
#define LISTENERS_MAX     16

struct server {
    pid_t pid; /* 0: not running */
    uint16_t port;
    uint16_t tls_port;      /* 0: none */
    int reservations[2];    /* bound sockets that keep the ports ours while the server is down; -1: none */
    const char *password;   /* requirepass, from the next start on; also used to look at it from outside */
    const char *more;       /* of its configuration, from the next start on; NULL: nothing */
    char folder[TEXT_SIZE]; /* data, log, unix socket */
    char address[TEXT_SIZE];
    char unix_address[TEXT_SIZE]; /* unix:///... */
};

struct listener;

struct cluster {
    uint32_t n;
    char folder[64];
    struct server servers[CLUSTER_NODES_MAX];
    const char *addresses[CLUSTER_NODES_MAX]; /* host:port of each, or rediss://host:port */
    char tls_ca[TEXT_SIZE];                   /* what signed the servers' certificate; "" without TLS */
};

void cluster_start(struct cluster *, uint32_t n);
/* cluster_end - kills all servers and removes their folders. Fine on a cluster that never started. */
void cluster_end(struct cluster *);

/* server_start - returns when it answers. Its memory is what an earlier life left in its folder. */
void server_start(struct server *);
void server_kill(struct server *); /* SIGKILL, and waits for its end */
void server_freeze(struct server *);
void server_thaw(struct server *);
void server_restart(struct server *); /* killed, then started with its memory */
void server_wipe(struct server *);    /* killed, then started empty */

/* The server's own account, asked by a connection from outside. */
bool server_holds(const struct server *, const char *key, const char *value);
bool server_has(const struct server *, const char *key);
/* server_value - the string at the key, "" where there is none. */
void server_value(const struct server *, const char *key, char *ret, size_t size);
int64_t server_pttl(const struct server *, const char *key); /* -1: no expiry, -2: no key */
/* server_do - a command that must not answer with an error; words are split at spaces by hiredis. */
void server_do(const struct server *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* server_run - commands with semicolons between them, in one script. */
void server_run(const struct server *, const char *commands);
long long server_ask_number(const struct server *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* server_keys - how many keys begin so; "": all. */
long long server_keys(const struct server *, const char *prefix);

/* server_lock_calls - commands that take, renew, release or look at locks, as the server counted them: SET and
 * scripts. server_clients - connections to it, but that which asks. */
long long server_lock_calls(const struct server *);
/* server_script_calls - of scripts alone; server_lock_calls counts the SETs in them, too. */
long long server_script_calls(const struct server *);
long long server_clients(const struct server *);

/* server_listen - open a connection from outside that has subscribed to the channel when it returns. It is closed with
 * the servers, or by listener_close.
 * listener_to - SUBSCRIBE or PSUBSCRIBE to one more.
 * listener_next - wait for the next message, and copy it and, unless NULL, its channel. */
struct listener *server_listen(const struct server *, const char *channel);
void listener_to(struct listener *, const char *command, const char *channel);
void listener_next(struct listener *, char *ret_channel, char *ret, size_t size);
void listener_close(struct listener *);

/* cluster_holders - on how many running servers the key holds that value; NULL: any value. */
uint32_t cluster_holders(const struct cluster *, const char *key, const char *value);
/* cluster_await_free - waits until no running server has the key. */
void cluster_await_free(const struct cluster *, const char *key);

/* A port without a listener, for as long as the descriptor stays open. */
int reserve_port(uint16_t *ret_port);

/* clock_us - the clock that leases are judged by. wall_us - the wall clock.
 * cluster_pause_us - let so much time pass; no loop of this process runs meanwhile. */
uint64_t clock_us(void);
uint64_t wall_us(void);
void cluster_pause_us(uint64_t us);

#endif
