/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server.h - what one Redis server does with our requests
 */
#ifndef QUORLOCK_SIM_SERVER_H
#define QUORLOCK_SIM_SERVER_H

#include "world.h"

/* server_execute - does it, and fills in request->reply. */
void server_execute(struct world *, struct request *);
/* server_expire - the key's expiry may have come. */
void server_expire(struct world *, uint32_t node, uint32_t key);
/* server_delete - somebody who is not our client deletes the key, or the memory is lost. */
void server_delete(struct world *, uint32_t node, uint32_t key);
/* server_holds - does the node hold this token now, by its own clock? */
bool server_holds(const struct world *, uint32_t node, uint32_t key, const struct core_token *);
/* server_expires_at - true time at which the key ends unless it is extended. */
uint64_t server_expires_at(const struct world *, uint32_t node, uint32_t key);

#endif
