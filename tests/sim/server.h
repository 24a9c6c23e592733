/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server.h - what one Redis server does with our requests
 */
#ifndef QUORLOCK_SIM_SERVER_H
#define QUORLOCK_SIM_SERVER_H

#include "world.h"

/* Of the slot of such a key: no lock lives as often. */
#define SERVER_ODD_LIFE UINT32_MAX

/* server_execute - does it, and fills in request->reply. */
void server_execute(struct world *, struct request *);
/* server_expire - the key's expiry may have come. */
void server_expire(struct world *, uint32_t server, uint32_t key);
/* server_delete - somebody who is not our client deletes the key. */
void server_delete(struct world *, uint32_t server, uint32_t key);
/* server_leave_odd - a key that is no lock's, for good; false where somebody's is there. */
bool server_leave_odd(struct world *, uint32_t server, uint32_t key);
/* server_forget_all - locks, counters and guard are gone. */
void server_forget_all(struct world *, uint32_t server);
/* server_remember - what a replica has got so far; server_recall - it is the server's memory now. */
void server_remember(struct world *, uint32_t server);
void server_recall(struct world *, uint32_t server);
/* server_step_clock - keys that have expired by the new clock expire. */
void server_step_clock(struct world *, uint32_t server, int64_t by_us);
/* server_holds - does the node hold this token now, by its own clock? */
bool server_holds(const struct world *, uint32_t server, uint32_t key, const struct core_token *);
/* server_name_of - whom a refusal or a notice names. */
uint64_t server_name_of(const struct core_token *);
/* server_expires_at - true time at which the key ends unless it is extended. */
uint64_t server_expires_at(const struct world *, uint32_t server, uint32_t key);

#endif
