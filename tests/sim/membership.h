/* SPDX-License-Identifier: BSD-3-Clause */
/* membership.h - the clients get another set of nodes, one process after the other */
#pragma once

#include "world.h"

/*
 * membership_set    - return the nodes of the client
 * membership_server - return the server behind one of its nodes
 * membership_quorum - return how many of its nodes must grant
 */
const struct plan_set *membership_set(const struct world *, uint32_t client);
uint32_t membership_server(const struct world *, uint32_t client, uint32_t node);
uint32_t membership_quorum(const struct world *, uint32_t client);
/* membership_is_renewed - return whether the client was made with the new settings.
 * membership_is_settled - return whether all clients were, or nothing changes. */
bool membership_is_renewed(const struct world *, const struct user_client *);
bool membership_is_settled(const struct world *);
/*
 * membership_begin   - stop the servers that leave the set, before a reconfigure
 * membership_changed - the reconfigure has succeeded: begin to renew the clients
 * membership_heal    - the faults have ended: renew all other clients soon
 */
void membership_begin(struct world *);
void membership_changed(struct world *);
void membership_heal(struct world *);
