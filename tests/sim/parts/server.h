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
/* server_boot - start a new host with an empty process that listens. */
void server_boot(struct server *, uint32_t index, uint64_t seed, const struct skew *wall, const struct model_events *);

/* server_crash - end the process as kill -9 does. host: the whole host vanishes.
 * server_launch - start a process that listens, with the memory of before, an older one or none. It has a new run_id,
 * and if asked a new replid, as a replica that was promoted. It answers LOADING for the first loading_us. */
enum server_memory { SERVER_KEEPS, SERVER_EMPTY, SERVER_OLD };
void server_crash(struct server *, bool host);
void server_launch(struct server *, enum server_memory, bool new_replid, uint64_t loading_us);
/* server_snapshot - store the memory for SERVER_OLD. */
void server_snapshot(struct server *);
/*
 * server_halt     - stop the process until then; NEVER: for good
 * server_busy       - answer BUSY to everything until then
 * server_service_us - set how long a command takes
 */
void server_halt(struct server *, uint64_t until_us);
void server_busy(struct server *, uint64_t until_us);
void server_service_us(struct server *, uint32_t each_us);
bool server_is_up(const struct server *);

/* server_clock - return the clock, to change it. server_wall_us - return what it shows now. */
struct skew *server_clock(struct server *);
uint64_t server_wall_us(const struct server *);
struct model *server_model(struct server *);
/* server_executed - return how many commands were executed so far. */
uint64_t server_executed(const struct server *);
/* server_is_deserted - return whether the machine has closed the connection of the session. */
bool server_is_deserted(const struct session *);
/* server_is_resent - return net_is_resent() of the session's connection. */
bool server_is_resent(const struct session *);
