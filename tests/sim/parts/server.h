/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server.h - a Redis server in the world: a host with a clock, a process that can stop, end and come back, and the
 * model inside
 *
 * It executes one command at a time, each takes some time. While it is frozen its connections stay open and what
 * arrives waits.
 */
#pragma once

#include "model.h"
#include "net.h"
#include "queue.h"
#include "rng.h"
#include "skew.h"

struct server;

struct server *server_new(struct queue *, struct net *);
void server_free(struct server *);
/* server_boot - a fresh host with an empty process that listens. */
void server_boot(struct server *, uint32_t index, uint64_t seed, const struct skew *wall, const struct model_events *);

/* server_crash - kill -9, or the host vanishes; from then on it is down. server_start: it listens again, with the
 * memory it had, or that of `memory`, or none; always a new run_id; a new replid too where asked (promotion of a
 * replica on the same address). loading_us: answers LOADING for so long first. */
enum server_memory { SERVER_KEEPS, SERVER_EMPTY, SERVER_OLD };
void server_crash(struct server *, bool host);
void server_start(struct server *, enum server_memory, bool new_replid, uint64_t loading_us);
/* server_snapshot - what SERVER_OLD brings back. */
void server_snapshot(struct server *);
void server_freeze(struct server *, uint64_t until_us); /* NEVER: for good */
void server_busy(struct server *, uint64_t until_us);   /* BUSY for everything meanwhile */
void server_service_us(struct server *, uint32_t each_us);
bool server_is_up(const struct server *);

struct skew *server_clock(struct server *);     /* to change it */
uint64_t server_wall_us(const struct server *); /* now */
struct model *server_model(struct server *);
/* server_executed - commands so far. */
uint64_t server_executed(const struct server *);
/* server_is_deserted - the machine has closed the connection of that session. */
bool server_is_deserted(const struct session *);
/* server_is_resent - as net_is_resent(). */
bool server_is_resent(const struct session *);
